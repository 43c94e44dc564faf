"""Claims of the public reviews of Andrew et al., and of the authors' answers.

The reviews are about the submission of 2023; the conversion to text lost the value of the lower bound that the answers
report beside CANIFE. The answers' sweep over d is judged cell by cell in ``verify.suites.tables``.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats
from statsmodels.stats.oneway import anova_generic
from statsmodels.stats.power import FTestAnovaPower, TTestIndPower

from canaryproof.verify.claims import review_bounds, review_estimates
from canaryproof.verify.claims.canife_numbers import fixed, rounding
from canaryproof.verify.claims.deciding import needs_data
from canaryproof.verify.claims.final_printed import CANARIES, PARAMETERS, STACKOVERFLOW_CLIENTS
from canaryproof.verify.claims.final_tables import unbiased
from canaryproof.verify.claims.judging import LEVEL, claim, found, holds
from canaryproof.verify.claims.review_bounds import TO_LDHU, TO_ZCEQ
from canaryproof.verify.error_control import POWER, visible_mean
from canaryproof.verify.results import Design, Outcome, Verdict
from canaryproof.verify.suites.tables import CELLS, PRINTED_RUNS, Cell

# Table 2 of the first version: accuracy in per cent without and with 1,000 canaries.
ACCURACIES = (("25.3", "25.3"), ("24.0", "23.9"), ("23.1", "23.1"), ("21.5", "21.5"), ("20.6", "20.5"))
_SWEEP = tuple(cell for cell in CELLS if cell.id.startswith("review.sweep."))
_TABLE_2 = tuple(cell for cell in CELLS if cell.id.startswith("final.table2."))


def judge_share(canaries: int, users: int, printed: str) -> Outcome:
    """Judge a printed share of users, in per cent."""
    share = Fraction(100 * canaries, users)
    least, most = (Fraction(end) for end in rounding(printed))
    finding = (
        f"{canaries:,} of {users:,} are {float(share):.4f}%; of StackOverflow's {STACKOVERFLOW_CLIENTS:,} they would "
        f"be {100 * canaries / STACKOVERFLOW_CLIENTS:.3f}%"
    )
    return found(holds(least <= share <= most), finding, share=float(share))


def judge_times(ours: int, least: int, times: int) -> Outcome:
    """Judge that "more than" so many users are so many times ours.

    Parameters
    ----------
    ours
        Users of the experiment.
    least
        What the other number is said to exceed.
    times
        The printed ratio.
    """
    ratio = Fraction(least, ours)
    if ratio >= times:
        return found(Verdict.CONFIRMED, f"at least {float(ratio):.2f} times", ratio=float(ratio))
    # A ratio without decimals printed to one digit and a zero may be rounded to the tens.
    roughly = ratio >= Fraction(times) / 2
    return found(
        Verdict.QUALIFIED if roughly else Verdict.REFUTED,
        f"only to the order of magnitude: {least:,} are {float(ratio):.2f} times {ours:,}; {times} times takes "
        f"{times * ours:,}",
        ratio=float(ratio),
    )


def judge_decrease(printed: str, accuracies: Sequence[tuple[str, str]]) -> Outcome:
    """Judge the largest decrease of accuracy by the first version's table.

    Parameters
    ----------
    printed
        Largest relative decrease, in per cent.
    accuracies
        Accuracies without and with canaries, in per cent.
    """
    limit = float(rounding(printed)[1])
    relative = max(100.0 * (1.0 - float(after) / float(before)) for before, after in accuracies)
    absolute = max(float(before) - float(after) for before, after in accuracies)
    # What is left of a decrease whose two accuracies were both rounded in its favour.
    gaps = [(float(rounding(before)[0] - rounding(after)[1]), float(before)) for before, after in accuracies]
    least = max(0.0, *(100.0 * gap / before for gap, before in gaps))
    finding = (
        f"the first version's table has {absolute:.1f} percentage points at most, a relative decrease of "
        f"{relative:.2f}% as printed, and {least:.2f}% at least before rounding"
    )
    evidence: dict[str, Any] = {"relative": relative, "absolute": absolute, "least": least}
    if relative <= limit:
        return found(Verdict.CONFIRMED, finding, **evidence)
    if absolute <= limit and least <= limit:
        return found(Verdict.QUALIFIED, f"only as percentage points, not relative: {finding}", **evidence)
    return found(Verdict.REFUTED, finding, **evidence)


def judge_sizes(least: int, parameters: Mapping[str, int]) -> Outcome:
    """Judge that models have more parameters than a limit."""
    listed = ", ".join(f"{name} {count / 1e6:.1f}M" for name, count in parameters.items())
    return found(holds(all(count > least for count in parameters.values())), listed, parameters=dict(parameters))


def judge_sweep(cells: Sequence[Cell]) -> Outcome:
    """Judge that a smaller dimension only adds variance: no bias in any cell, deviations falling with d.

    Parameters
    ----------
    cells
        Printed means and deviations of the sweep.
    """
    finding, p_value, design = unbiased(cells)
    by_epsilon = {
        epsilon: [cell.deviation for cell in sorted(cells, key=lambda cell: cell.dim) if cell.epsilon == epsilon]
        for epsilon in sorted({cell.epsilon for cell in cells})
    }
    falls = all(one > other for row in by_epsilon.values() for one, other in pairwise(row))
    factor = math.prod(row[0] / row[-1] for row in by_epsilon.values()) ** (1 / len(by_epsilon))
    return found(
        holds(falls and p_value >= LEVEL),
        f"{finding}; from d = 10,000 to 10 million deviations fall by {factor:.1f} on average, where 1/√k falls by "
        f"{1000**0.25:.1f}",
        design,
        deviations={str(epsilon): row for epsilon, row in by_epsilon.items()},
        p_value=p_value,
        level=LEVEL,
    )


def _jointly(p_values: Sequence[float], finding: str, null: str, alternative: str) -> Outcome:
    """Judge by the smallest of several p-values of printed runs (Bonferroni)."""
    joint = min(1.0, len(p_values) * min(p_values))
    finding += f" (joint p = {joint:.2g})"
    design = Design(null, LEVEL, alternative, POWER, PRINTED_RUNS)
    return found(holds(joint >= LEVEL), finding, design, p_value=joint, level=LEVEL, p_values=list(p_values))


def judge_rerun(cells: Sequence[Cell], others: Sequence[Cell]) -> Outcome:
    """Judge that two sets of printed simulations of the same settings agree, in means and in deviations.

    Parameters
    ----------
    cells, others
        Printed means and deviations, of 50 runs each.
    """
    p_values = []
    for cell, other in zip(cells, others, strict=True):
        means = [(item.mean, item.deviation, PRINTED_RUNS) for item in (cell, other)]
        p_values.append(float(stats.ttest_ind_from_stats(*means[0], *means[1], equal_var=False).pvalue))
        larger, smaller = sorted((cell.deviation, other.deviation), reverse=True)
        p_values.append(2.0 * float(stats.f.sf((larger / smaller) ** 2, PRINTED_RUNS - 1, PRINTED_RUNS - 1)))
    listed = ", ".join(
        f"{a.mean:g} ± {a.deviation:g} and {b.mean:g} ± {b.deviation:g}" for a, b in zip(cells, others, strict=True)
    )
    # The search may end at either sign.
    visible = abs(float(TTestIndPower().solve_power(None, PRINTED_RUNS, LEVEL / len(p_values), POWER)))
    return _jointly(
        p_values,
        f"{listed}, as draws of the same laws",
        "both printed sets are of normal estimates with the same laws",
        f"two means are {visible:.2g} standard deviations apart",
    )


def judge_dimension(cells: Sequence[Cell]) -> Outcome:
    """Judge that means of printed simulations at the same ε do not depend on the dimension.

    Parameters
    ----------
    cells
        Printed means and deviations, of 50 runs each.
    """
    p_values, ranges = [], []
    for epsilon in sorted({cell.epsilon for cell in cells}):
        row = [(cell.mean, cell.deviation) for cell in cells if cell.epsilon == epsilon]
        means, deviations = np.array(row).T
        welch = anova_generic(means, deviations**2, np.full(means.size, PRINTED_RUNS), use_var="unequal")
        p_values.append(float(welch.pvalue))
        ranges.append(f"{means.min():g} to {means.max():g}")
    # Cohen's effect of one mean that is off, with the others right, in that many standard deviations.
    count = len(cells) // len(p_values)
    effect = float(FTestAnovaPower().solve_power(None, count * PRINTED_RUNS, LEVEL / len(p_values), POWER, count))
    return _jointly(
        p_values,
        f"means at each ε run from {', '.join(ranges)}, as draws of the same law",
        "at each ε all printed means are of normal estimates with the same mean",
        f"one mean is {effect * count / math.sqrt(count - 1):.2g} standard deviations off",
    )


def judge_growth(cells: Sequence[Cell], exponent: float) -> Outcome:
    """Judge by printed deviations, which are as 1/√k, that the number of canaries grows like a power of d.

    Parameters
    ----------
    cells
        Printed means and deviations, of 50 runs each.
    exponent
        Of d in k, as read: the document's formula is lost.
    """
    x = np.log([cell.dim for cell in cells])
    y = np.log([cell.deviation for cell in cells])
    # One slope for all ε, each with a level of its own; a log deviation has variance 1/(2(n − 1)).
    groups = np.array([cell.epsilon for cell in cells])
    for epsilon in np.unique(groups):
        x[groups == epsilon] -= x[groups == epsilon].mean()
        y[groups == epsilon] -= y[groups == epsilon].mean()
    slope = float(x @ y / (x @ x))
    error = 1.0 / math.sqrt(2.0 * (PRINTED_RUNS - 1) * float(x @ x))
    p_value = 2.0 * float(stats.norm.sf(abs(slope + 0.5 * exponent) / error))
    finding = (
        f"read as k = √d, as our text lost the formula: the deviations fall as k ∝ d to the power {-2.0 * slope:.2f} ± "
        f"{2.0 * error:.2f} (p = {p_value:.2f})"
    )
    verdict = Verdict.QUALIFIED if p_value >= LEVEL else Verdict.REFUTED
    design = Design(
        f"the printed deviations are of normal estimates from d to the power {exponent:g} canaries",
        LEVEL,
        f"the power is off by {2.0 * error * visible_mean(1, LEVEL):.2g}",
        POWER,
        PRINTED_RUNS,
    )
    evidence: dict[str, Any] = {"p_value": p_value, "level": LEVEL, "exponent": -2.0 * slope, "error": 2.0 * error}
    return found(verdict, finding, design, **evidence)


CHECKS = (
    *review_bounds.CHECKS,
    *review_estimates.CHECKS,
    claim(
        "review.replaced.share",
        TO_ZCEQ,
        "Replacing 1,000 of 3 million users by canaries loses 0.033% of the data",
        fixed(judge_share, CANARIES, 3_000_000, "0.033"),
    ),
    claim(
        "review.users.ratio",
        TO_LDHU,
        "More than 3 million users are ten times the 341,000 of the experiments",
        fixed(judge_times, STACKOVERFLOW_CLIENTS, 3_000_000, 10),
    ),
    claim(
        "review.users.languages",
        TO_ZCEQ + " and LDHu",
        "Almost all of Gboard's language models by Xu et al. have more than 3 million users each",
        lambda _: found(
            Verdict.INCONCLUSIVE, "no document here prints a number of users; Xu et al. (arXiv 2305.18465) may"
        ),
    ),
    claim(
        "review.accuracy.decrease",
        TO_LDHU,
        "1,000 canaries among 341,000 clients decrease accuracy by at most 0.1% relatively",
        fixed(judge_decrease, "0.1", ACCURACIES),
    ),
    claim(
        "review.accuracy.measured",
        TO_LDHU,
        "The participation of 1,000 canaries has no significant effect on StackOverflow's accuracy",
        needs_data("review.accuracy.measured", "StackOverflow"),
    ),
    claim(
        "review.models.size",
        TO_LDHU,
        "The models of both benchmarks have more than a million parameters",
        fixed(judge_sizes, 10**6, PARAMETERS),
    ),
    claim(
        "review.sweep.variance",
        TO_LDHU,
        "The method works down to d = 10,000, with a higher variance only",
        fixed(judge_sweep, _SWEEP),
    ),
    claim(
        "review.sweep.rerun",
        TO_LDHU,
        "The sweep's row d = 1 million runs Table 2's experiment again",
        fixed(judge_rerun, [cell for cell in _SWEEP if cell.dim == 10**6], _TABLE_2),
    ),
    claim(
        "review.sweep.dimension",
        TO_ZCEQ,
        "Where d is large the estimate does not depend on d, from 10,000 to 10 million",
        fixed(judge_dimension, _SWEEP),
    ),
    claim(
        "review.sweep.canaries",
        TO_LDHU,
        "The number of canaries is set by d",
        fixed(judge_growth, _SWEEP, 0.5),
    ),
)
