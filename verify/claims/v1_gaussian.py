"""Table 1 of the first version and of the submission: the Gaussian mechanism, by each version's own estimator."""

import math
from typing import Literal

import numpy as np
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.claims.judging import LEVEL, claim, found, holds
from canaryproof.verify.claims.v1_judging import V1, placed, repeated
from canaryproof.verify.claims.v1_printed import TABLE_1
from canaryproof.verify.oneshot import estimators
from canaryproof.verify.results import Check, Context, Design, Outcome, Verdict

Estimator = Literal["pinned", "fitted"]
_DIM, _COUNT, _DELTA, _RUNS = 10**6, 1000, 1e-6, 50


def judge_cell(context: Context, row: tuple[str, str, str, str], stated: Estimator) -> Outcome:
    """Judge a printed mean and deviation of 50 estimates by draws of them.

    The cosines are taken as independent N(1/√(σ² + k/d), 1) in the null's units, which leaves out terms of relative
    size k/d = 0.001: another road than the exact law by which the final version's table is judged.

    Parameters
    ----------
    context
        Level and seed of the run.
    row
        Noise multiplier, ε, mean and deviation as printed.
    stated
        The document's estimator: ``pinned`` inverts 1/(μ̂√d), ``fitted`` compares two Gaussians in both directions.
    """
    _, epsilon, mean, deviation = row
    runs, printed = context.pick(4000, 40000), (float(mean), float(deviation))
    rng = np.random.default_rng(context.key(f"claims/table1/{epsilon}"))
    sigma = math.hypot(gaussian_mechanism.noise_multiplier(float(epsilon), _DELTA), math.sqrt(_COUNT / _DIM))
    means = 1.0 / sigma + rng.standard_normal(runs) / math.sqrt(_COUNT)
    ratios = np.sqrt(rng.chisquare(_COUNT - 1, runs) / _COUNT)
    samples = {
        "pinned": estimators.pinned_epsilon(_DELTA, means),
        "fitted": estimators.both_directions(_DELTA, means, ratios),
    }
    rows = {}
    for name, sample in samples.items():
        ours, error = float(sample.mean()), float(sample.std(ddof=1))
        equal_means = stats.ttest_ind_from_stats(*printed, _RUNS, ours, error, runs, equal_var=False)
        spread = stats.f(_RUNS - 1, runs - 1)
        ratio = (printed[1] / error) ** 2
        tail = min(spread.cdf(ratio), spread.sf(ratio))
        # Two tests, each at half the level.
        p_value = min(1.0, 2.0 * min(float(equal_means.pvalue), 2.0 * float(tail)))
        rows[name] = {"mean": ours, "deviation": error, "p_value": p_value}
    agreeing = [name for name, values in rows.items() if values["p_value"] >= LEVEL]
    verdict = Verdict.CONFIRMED if stated in agreeing else Verdict.QUALIFIED if agreeing else Verdict.REFUTED
    listed = ", ".join(
        f"{name} {values['mean']:.3f} ± {values['deviation']:.3f} "
        f"{'agrees' if name in agreeing else 'does not (p = {:.0e})'.format(values['p_value'])}"
        for name, values in rows.items()
    )
    # By the test of means, with as few degrees of freedom as Welch's can have.
    own, fit = rows["pinned"], rows["fitted"]
    error = math.hypot(own["deviation"] / math.sqrt(_RUNS), fit["deviation"] / math.sqrt(runs))
    shift = abs(fit["mean"] - own["mean"]) / error
    design = Design(
        f"the printed numbers are those of {_RUNS} runs of pinned",
        LEVEL,
        "they are those of fitted, both directions",
        float(stats.nct.sf(stats.t.isf(0.25 * LEVEL, _RUNS - 1), _RUNS - 1, shift)),
        runs,
    )
    finding = f"this version's estimator is {stated}: {listed}"
    return found(verdict, finding, design, readings=rows, level=LEVEL, runs=runs)


def judge_not_rejected() -> Outcome:
    """Judge how likely it is that Anderson's test spares a million cosines at d = 1000."""
    count, dim, level = anderson_darling.COUNT, anderson_darling.DIM, anderson_darling.LEVEL
    spared = 1.0 - anderson_darling.power(count, dim, level, True)
    return found(
        holds(spared > 0.05),
        f"the test spares the cosine's law with probability {spared:.2f} and a normal one with {1 - level:.2f}: as "
        "printed it is the likely outcome, and hardly tells the two laws apart",
        probability=spared,
    )


def checks(document: str, name: str, rows: tuple[tuple[str, str, str, str], ...], stated: Estimator) -> list[Check]:
    """Return the claims of a Table 1.

    Parameters
    ----------
    document, name
        Document in ids and in words.
    rows
        Noise multiplier, ε, mean and deviation as printed.
    stated
        The document's estimator.
    """
    made = []
    for number, row in enumerate(rows, 1):
        place, source = f"{document}.table1.row{number}", f"{name}, Table 1"
        made += [
            repeated(f"{place}.sigma", source, f"final.table2.row{number}.sigma"),
            claim(
                place,
                source,
                f"at d = 10⁶, k = 10³, δ = 10⁻⁶ and ε = {row[1]} this version's estimator gives {row[2]} ± {row[3]} "
                f"over {_RUNS} simulations",
                lambda context, row=row: judge_cell(context, row, stated),  # type: ignore[misc]
            ),
        ]
    return made


CHECKS: tuple[Check, ...] = (
    *checks("v1", V1, TABLE_1, "pinned"),
    placed("v1", V1)(
        "section4.anderson",
        "Section 4",
        "Anderson's test does not reject normality of a million cosines at d = 1000, at level 15%",
        judge_not_rejected,
    ),
)
