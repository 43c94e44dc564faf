"""Claims of the public reviews of Andrew et al., and of the authors' answers.

The reviews are about the submission of 2023; the conversion to text lost the value of the lower bound that the answers
report beside CANIFE. The answers' sweep over d is judged cell by cell in ``verify.suites.tables``.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from scipy import stats

from canaryproof.verify.claims import review_bounds
from canaryproof.verify.claims.canife_numbers import fixed, rounding
from canaryproof.verify.claims.judging import claim, found, needs_data
from canaryproof.verify.claims.review_bounds import TO_LDHU, TO_ZCEQ
from canaryproof.verify.results import Outcome, Verdict
from canaryproof.verify.suites.tables import CELLS, PRINTED_RUNS, Cell

# Table 2 of the first version: accuracy in per cent without and with 1,000 canaries.
ACCURACIES = (("25.3", "25.3"), ("24.0", "23.9"), ("23.1", "23.1"), ("21.5", "21.5"), ("20.6", "20.5"))
_SWEEP = tuple(cell for cell in CELLS if cell.id.startswith("review.sweep."))


def judge_share(canaries: int, users: int, printed: str) -> Outcome:
    """Judge a printed share of users, in per cent."""
    share = Fraction(100 * canaries, users)
    least, most = (Fraction(end) for end in rounding(printed))
    return found(
        Verdict.CONFIRMED if least <= share <= most else Verdict.REFUTED,
        f"{canaries:,} of {users:,} are {float(share):.4f}%; of StackOverflow's 341,000 they would be "
        f"{100 * canaries / 341_000:.3f}%",
        share=float(share),
    )


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
    finding = (
        f"the first version's table has {absolute:.1f} percentage points at most, a relative decrease of "
        f"{relative:.2f}% as printed"
    )
    evidence = {"relative": relative, "absolute": absolute}
    if relative <= limit:
        return found(Verdict.CONFIRMED, finding, **evidence)
    if absolute <= limit:
        return found(Verdict.QUALIFIED, f"only as percentage points, not relative: {finding}", **evidence)
    return found(Verdict.REFUTED, finding, **evidence)


def judge_sizes(least: int, parameters: Mapping[str, int]) -> Outcome:
    """Judge that models have more parameters than a limit."""
    listed = ", ".join(f"{name} {count / 1e6:.1f}M" for name, count in parameters.items())
    holds = all(count > least for count in parameters.values())
    return found(Verdict.CONFIRMED if holds else Verdict.REFUTED, listed, parameters=dict(parameters))


def judge_sweep(cells: Sequence[Cell]) -> Outcome:
    """Judge that a smaller dimension only adds variance: no bias in any cell, deviations falling with d.

    Parameters
    ----------
    cells
        Printed means and deviations of the sweep.
    """
    level = 1e-6
    scores = [(cell.mean - cell.epsilon) / (cell.deviation / math.sqrt(PRINTED_RUNS)) for cell in cells]
    worst = max(scores, key=abs)
    p_value = min(1.0, len(scores) * 2.0 * float(stats.t.sf(abs(worst), PRINTED_RUNS - 1)))
    by_epsilon = {
        epsilon: [cell.deviation for cell in sorted(cells, key=lambda cell: cell.dim) if cell.epsilon == epsilon]
        for epsilon in sorted({cell.epsilon for cell in cells})
    }
    falls = all(one > other for row in by_epsilon.values() for one, other in pairwise(row))
    factor = math.prod(row[0] / row[-1] for row in by_epsilon.values()) ** (1 / len(by_epsilon))
    # Power: a bias of this many deviations would have been seen in half of all cases.
    visible = float(stats.t.isf(level / (2 * len(cells)), PRINTED_RUNS - 1)) / math.sqrt(PRINTED_RUNS)
    return found(
        Verdict.CONFIRMED if falls and p_value >= level else Verdict.REFUTED,
        f"the mean farthest from ε is {worst:+.1f} standard errors off (joint p = {p_value:.2f}); from d = 10,000 to "
        f"10 million deviations fall by {factor:.1f} on average, where 1/√k falls by {1000**0.25:.1f}",
        p_value=p_value,
        level=level,
        visible_bias=visible,
        deviations={str(epsilon): row for epsilon, row in by_epsilon.items()},
    )


CHECKS = (
    *review_bounds.CHECKS,
    claim(
        "review.replaced.share",
        TO_ZCEQ,
        "Replacing 1,000 of 3 million users by canaries loses 0.033% of the data",
        fixed(judge_share, 1000, 3_000_000, "0.033"),
    ),
    claim(
        "review.users.ratio",
        TO_LDHU,
        "More than 3 million users are ten times the 341,000 of the experiments",
        fixed(judge_times, 341_000, 3_000_000, 10),
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
        needs_data("StackOverflow", "canaryproof reproduce review.accuracy"),
    ),
    claim(
        "review.models.size",
        TO_LDHU,
        "The models of both benchmarks have more than a million parameters",
        fixed(judge_sizes, 10**6, {"StackOverflow LSTM": 4_100_000, "EMNIST CNN": 1_200_000}),
    ),
    claim(
        "review.sweep.variance",
        TO_LDHU,
        "The method works down to d = 10,000, with a higher variance only",
        fixed(judge_sweep, _SWEEP),
    ),
)
