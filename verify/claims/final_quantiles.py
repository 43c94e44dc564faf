"""Table 5 of the final version: quantiles of ε̂ over fifty experiments, and what they say of the estimator."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from canaryproof.verify.claims import estimate_law
from canaryproof.verify.claims.estimate_law import MEANS, Law
from canaryproof.verify.claims.final_printed import STACKOVERFLOW_DELTA, TABLE_3, TABLE_5, Row
from canaryproof.verify.claims.final_text import DOCUMENT
from canaryproof.verify.claims.judging import LEVEL, claim, found
from canaryproof.verify.error_control import POWER
from canaryproof.verify.oneshot import estimators
from canaryproof.verify.results import Design, Outcome, Verdict

_EXPERIMENTS = 50
_ORDERS = (0.1, 0.3, 0.5, 0.7, 0.9)
# By every usual definition a quantile lies between the order statistics with these ranks and the next.
_RANKS = np.array([round(order * _EXPERIMENTS) for order in _ORDERS])
# Tests of a row: of each quantile, and of how far the outermost are apart.
_PARTS = len(_ORDERS) + 1
# A row of Table 5: noise, runs, canaries a run, quantiles.
Experiments = tuple[str, int, int, Sequence[str]]


def p_values(below: NDArray[np.float64]) -> NDArray[np.float64]:
    """p-values of printed quantiles of fifty estimates: one each, and one for how far the outermost are apart.

    Parameters
    ----------
    below
        Values of the estimate's law at the printed quantiles (last axis).

    Returns
    -------
    Two-sided p-values (last axis), no smaller than the exact ones: uniform draws take the place of the estimates, and
    the next order statistic on the safe side that of a quantile between two.
    """
    low, high = stats.binom.sf(_RANKS - 1, _EXPERIMENTS, below), stats.binom.cdf(_RANKS, _EXPERIMENTS, below)
    ranks, apart = _RANKS[-1] - _RANKS[0], below[..., -1:] - below[..., :1]
    near, far = (stats.beta(between, _EXPERIMENTS + 1 - between) for between in (ranks - 1, ranks + 1))
    spread = np.minimum(near.cdf(apart), far.sf(apart))
    return np.minimum(1.0, 2.0 * np.concatenate([np.minimum(low, high), spread], axis=-1))


def joint(rows: Sequence[Experiments], law: Law) -> float:
    """p-value of printed quantiles being those of estimates with one mean of the cosines: the largest over all means.

    Parameters
    ----------
    rows
        Rows of Table 5 at the same noise.
    law
        The estimate's law.
    """
    tests = [p_values(law(np.asarray(row[3], dtype=float), MEANS, STACKOVERFLOW_DELTA)) for row in rows]
    return min(1.0, len(rows) * _PARTS * float(np.concatenate(tests, axis=-1).min(axis=-1).max()))


def judge_spread(row: Experiments) -> Outcome:
    """Judge whether a row's quantiles are those of fifty estimates from 1,000 normal cosines each."""
    rows: dict[str, dict[str, Any]] = {}
    for name, law in (("fitted", estimate_law.fitted), ("pinned", estimate_law.pinned)):
        mean = estimate_law.mean_at(law, float(row[3][2]), 0.5, STACKOVERFLOW_DELTA)
        rows[name] = {
            "distance": mean,
            "epsilon": float(estimators.pinned_epsilon(STACKOVERFLOW_DELTA, np.asarray(mean))),
            "quantiles": [estimate_law.quantile(law, order, mean, STACKOVERFLOW_DELTA) for order in _ORDERS],
            "p_value": joint([row], law),
        }
    fitted, pinned = rows["fitted"], rows["pinned"]
    listed = ", ".join(f"{value:.2f}" for value in fitted["quantiles"])
    finding = (
        f"fitted Gaussians give {listed} (p = {fitted['p_value']:.2f}), a pinned variance far less spread "
        f"(p = {pinned['p_value']:.0e}); the median {row[3][2]} then belongs to a true ε of {fitted['epsilon']:.2f}"
    )
    # Of normal estimates: the fifty of a narrower law have their outermost quantiles in an interval of so small a
    # probability under the other.
    ranks = _RANKS[-1] - _RANKS[0]
    within = stats.beta.ppf(LEVEL / (2 * _PARTS), ranks - 1, _EXPERIMENTS + 2 - ranks)
    reach = stats.beta.ppf(0.5 + 0.5 * POWER, _RANKS[-1] + 1, _EXPERIMENTS - _RANKS[-1])
    narrower = float(special.ndtri(reach) / special.ndtri(0.5 + 0.5 * within))
    design = Design(
        f"the printed row is of {_EXPERIMENTS} estimates by fitted, each from 1,000 independent normal cosines with "
        "the null's variance",
        LEVEL,
        f"they are of estimates with a deviation {narrower:.2g} times smaller",
        POWER,
        _EXPERIMENTS,
    )
    verdict = Verdict.CONFIRMED if fitted["p_value"] >= LEVEL else Verdict.REFUTED
    return found(verdict, finding, design, estimators=rows, level=LEVEL)


def judge_close(rows: Sequence[Experiments] = TABLE_5) -> Outcome:
    """Judge whether one run and ten runs at the same noise, in pairs of rows, differ by more than chance."""
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    values = np.array([[row[3] for row in pair] for pair in pairs], dtype=float)
    differences = (values[:, 1] / values[:, 0] - 1.0).ravel().tolist()
    p_value = min(1.0, len(pairs) * min(joint(pair, estimate_law.fitted) for pair in pairs))
    finding = (
        f"quantiles differ by {min(differences):+.0%} to {max(differences):+.0%}; that both are of fifty "
        f"estimates with one law has p = {p_value:.2g}"
    )
    # Of normal estimates: one median is the lower tail of a mean between, the other its upper one.
    rank, parts = _RANKS[_ORDERS.index(0.5)], 2 * len(pairs) * _PARTS
    tail = special.ndtri(stats.beta.ppf(LEVEL / (2 * parts), rank, _EXPERIMENTS + 1 - rank))
    error = special.ndtri(stats.beta.ppf(0.5 + 0.5 * POWER, rank + 1, _EXPERIMENTS - rank))
    design = Design(
        f"both printed rows of a pair are of {_EXPERIMENTS} estimates by fitted, each from 1,000 independent normal "
        "cosines with the null's variance and one mean",
        LEVEL,
        f"in a pair they differ by {2.0 * (error - tail):.2g} deviations of an estimate",
        POWER,
        _EXPERIMENTS,
    )
    ordered = bool(np.all(np.diff(values) > 0.0))
    verdict = Verdict.CONFIRMED if ordered and p_value >= LEVEL else Verdict.REFUTED
    return found(verdict, finding, design, differences=differences, p_value=p_value, level=LEVEL)


def judge_medians(rows: Sequence[Row] = TABLE_3) -> Outcome:
    """Judge that Table 5's medians of one run each are the estimates of Table 3."""
    pairs = [
        (row.estimate_final, quantiles[2])
        for row in rows
        for noise, runs, _, quantiles in TABLE_5
        if runs == 1 and noise == row.noise
    ]
    listed = ", ".join(f"{one} and {other}" for one, other in pairs)
    same = all(one == other for one, other in pairs)
    return found(Verdict.CONFIRMED if same else Verdict.REFUTED, listed, pairs=pairs)


CHECKS = (
    claim(
        "final.table5.medians",
        f"{DOCUMENT}, Tables 3 and 5",
        "the medians of one run's estimates are the estimates of Table 3",
        lambda _: judge_medians(),
    ),
    *(
        claim(
            f"final.table5.row{number}.spread",
            f"{DOCUMENT}, Table 5",
            f"at noise {noise} and {runs} × {canaries} canaries, Algorithm 2's estimates have the quantiles "
            f"{', '.join(quantiles)}",
            lambda _, row=row: judge_spread(row),  # type: ignore[misc]
        )
        for number, row in enumerate(TABLE_5, 1)
        for noise, runs, canaries, quantiles in [row]
    ),
    claim(
        "final.table5.close",
        f"{DOCUMENT}, Section 5.3 and Table 5",
        "one run with 1000 canaries and ten runs with 100 have very close distributions of the estimate",
        lambda _: judge_close(),
    ),
)
