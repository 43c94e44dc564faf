"""Table 5 of the final version: quantiles of ε̂ over fifty experiments, and what they say of the estimator."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from canaryproof.verify.claims.final_printed import CANARIES, STACKOVERFLOW_DELTA, TABLE_3, TABLE_5, Row
from canaryproof.verify.claims.final_text import DOCUMENT
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.oneshot import estimators
from canaryproof.verify.results import Context, Outcome, Verdict

_LEVEL = 1e-6
_EXPERIMENTS = 50
_ORDERS = (0.1, 0.3, 0.5, 0.7, 0.9)
# Samples that decide which distance has the printed median, to about 1%.
_FOR_MEDIAN = 1000


def _samples(context: Context, median: float, pinned: bool) -> tuple[float, NDArray[np.float64]]:
    """Distance at which ε̂ has this median, and draws of ε̂ there: a row for each fifty runs of 1,000 cosines."""
    groups = context.pick(100, 800)
    rng = np.random.default_rng(context.key("final.table5"))
    errors = rng.standard_normal(groups * _EXPERIMENTS) / math.sqrt(CANARIES)
    ratios = np.sqrt(rng.chisquare(CANARIES - 1, groups * _EXPERIMENTS) / CANARIES)

    def draw(distance: float, count: int) -> NDArray[np.float64]:
        if pinned:
            return estimators.pinned_epsilon(STACKOVERFLOW_DELTA, distance + errors[:count])
        return estimators.both_directions(STACKOVERFLOW_DELTA, distance + errors[:count], ratios[:count])

    distance = float(optimize.brentq(lambda m: np.median(draw(m, _FOR_MEDIAN)) - median, 0.02, 3.0, xtol=1e-4))
    return distance, draw(distance, errors.size).reshape(groups, _EXPERIMENTS)


def judge_spread(context: Context, quantiles: Sequence[str]) -> Outcome:
    """Judge whether printed quantiles have the spread of the estimate from 1,000 normal cosines."""
    printed = [float(value) for value in quantiles]
    rows: dict[str, dict[str, Any]] = {}
    for name in ("fitted", "pinned"):
        distance, values = _samples(context, printed[2], name == "pinned")
        sets = np.quantile(values, _ORDERS, axis=1)
        spreads = np.log(sets[4] - sets[0])
        score = (math.log(printed[4] - printed[0]) - spreads.mean()) / spreads.std(ddof=1)
        rows[name] = {
            "distance": distance,
            "epsilon": float(estimators.pinned_epsilon(STACKOVERFLOW_DELTA, np.asarray(distance))),
            "quantiles": [float(q) for q in np.quantile(values, _ORDERS)],
            "p_value": float(2.0 * stats.norm.sf(abs(score))),
            # Power: spreads that differ by this factor are told apart in half of all cases.
            "visible": math.exp(float(stats.norm.isf(0.5 * _LEVEL) * spreads.std(ddof=1))),
        }
    fitted, pinned = rows["fitted"], rows["pinned"]
    listed = ", ".join(f"{value:.2f}" for value in fitted["quantiles"])
    finding = (
        f"fitted Gaussians give {listed} (p = {fitted['p_value']:.2f}), a pinned variance far less spread "
        f"(p = {pinned['p_value']:.0e}); the median {printed[2]:g} then belongs to a true ε of {fitted['epsilon']:.2f}"
    )
    verdict = Verdict.CONFIRMED if fitted["p_value"] >= _LEVEL else Verdict.REFUTED
    return found(verdict, finding, estimators=rows, level=_LEVEL)


def judge_close(context: Context, rows: Sequence[tuple[str, int, int, Sequence[str]]] = TABLE_5) -> Outcome:
    """Judge whether one run and ten runs at the same noise, in pairs of rows, differ by more than chance."""
    worst = 0.0
    differences: list[float] = []
    for one, ten in zip(rows[::2], rows[1::2], strict=True):
        base, other = (np.asarray(row[3], dtype=float) for row in (one, ten))
        _, values = _samples(context, float(base[2]), pinned=False)
        errors = np.quantile(values, _ORDERS, axis=1).std(axis=1, ddof=1)
        worst = max(worst, float(np.max(np.abs(other - base) / (math.sqrt(2.0) * errors))))
        differences += list(map(float, other / base - 1.0))
    p_value = min(1.0, len(differences) * float(2.0 * stats.norm.sf(worst)))
    finding = (
        f"quantiles differ by {min(differences):+.0%} to {max(differences):+.0%}; as differences of two samples of "
        f"fifty, none stands out (smallest of ten p-values, times ten, {p_value:.2f})"
    )
    ordered = all(np.all(np.diff(np.asarray(row[3], dtype=float)) > 0.0) for row in rows)
    verdict = Verdict.CONFIRMED if ordered and p_value >= _LEVEL else Verdict.REFUTED
    return found(verdict, finding, differences=differences, p_value=p_value, level=_LEVEL)


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
            lambda context, quantiles=quantiles: judge_spread(context, quantiles),  # type: ignore[misc]
        )
        for number, (noise, runs, canaries, quantiles) in enumerate(TABLE_5, 1)
    ),
    claim(
        "final.table5.close",
        f"{DOCUMENT}, Section 5.3 and Table 5",
        "one run with 1000 canaries and ten runs with 100 have very close distributions of the estimate",
        judge_close,
    ),
)
