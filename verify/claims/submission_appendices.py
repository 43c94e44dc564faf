"""The submission's Appendices E to J: repetitions, Gaussianity, CANIFE and several runs."""

import math
from fractions import Fraction

from scipy import stats

from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.claims.deciding import needs_data
from canaryproof.verify.claims.final_quantiles import judge_medians
from canaryproof.verify.claims.judging import claim, found, holds
from canaryproof.verify.claims.submission_emnist import EMNIST
from canaryproof.verify.claims.submission_printed import QUANTILES, SUBMISSION, TABLE_2, TABLE_4, TABLE_6
from canaryproof.verify.claims.v1_estimates import figure
from canaryproof.verify.claims.v1_judging import STACKOVERFLOW, STACKOVERFLOW_DELTA, agrees, experiment, placed
from canaryproof.verify.claims.v1_printed import REPETITIONS, WEAK_CRITICAL_VALUE
from canaryproof.verify.claims.v1_setting import judge_epochs
from canaryproof.verify.results import Check, Outcome

_FASHION = "Fashion-MNIST, CANIFE's code and a two-layer network"
# Figure 1's caption: its noise, by the analytical ε ∞, 300, 100 and 30, and its repetitions.
_FIGURE_1 = (tuple(row.noise for row in TABLE_2), (1, 2, 4, 8))
_PLOTS_IN_TEXT = 3


def exceedance(count: int, least: int, level: Fraction) -> Fraction:
    """Return the probability that ``least`` or more of ``count`` independent tests reject, exactly.

    Parameters
    ----------
    count, least
        Number of tests, and of rejections.
    level
        Probability that one of them rejects.
    """
    return sum(
        (math.comb(count, n) * level**n * (1 - level) ** (count - n) for n in range(least, count + 1)), Fraction(0)
    )


def judge_three_of_fifteen(text: str = "0.68") -> Outcome:
    """Judge the probability that three or more of 15 Gaussian sets exceed the 15% point."""
    level = Fraction(3, 20)
    three, two = exceedance(15, 3, level), exceedance(15, 2, level)
    # The printed 0.574 is of a table that is a little off: what share of Gaussian sets exceeds it.
    size = anderson_darling.limit_law(True).sf(WEAK_CRITICAL_VALUE)
    sized = float(stats.binom.sf(2, 15, size))
    right = anderson_darling.critical_value(0.15, True)
    agreed = agrees(three, text)
    return found(
        holds(agreed),
        f"P(3 or more of 15) is {float(three):.4f} at 15% each; {float(two):.4f} is two or more. The right critical "
        f"value is {right:.3f}; {WEAK_CRITICAL_VALUE} is exceeded by {100 * size:.1f}%, which "
        f"makes it {sized:.3f}",
        three=float(three),
        two=float(two),
        size=size,
        at_size=sized,
    )


def judge_figure_1() -> Outcome:
    """Judge that Table 4 is of the sets that Figure 1 shows."""
    levels = tuple(TABLE_4)
    repetitions: tuple[int, ...] = REPETITIONS
    shared = [level for level in levels if level in _FIGURE_1[0]]
    return found(
        holds(levels == _FIGURE_1[0] and repetitions == _FIGURE_1[1]),
        f"Table 4 has noise {', '.join(levels)} and repetitions {', '.join(map(str, repetitions))}, Figure 1 noise "
        f"{', '.join(_FIGURE_1[0])} and repetitions {', '.join(map(str, _FIGURE_1[1]))}: the table is of "
        "the first version",
        shared=shared,
    )


def judge_plots() -> Outcome:
    """Judge the number of Figure 1's plots."""
    count = len(_FIGURE_1[0])
    return found(holds(count == _PLOTS_IN_TEXT), f"the caption has {count} values of noise, one a plot", plots=count)


def judge_ordered() -> Outcome:
    """Judge that the quantiles of each row rise."""
    agreed = all(list(row[3]) == sorted(row[3], key=float) for row in TABLE_6)
    return found(holds(agreed), f"{len(TABLE_6)} rows of {len(QUANTILES)} quantiles rise", rows=len(TABLE_6))


def judge_gaussian() -> Outcome:
    """Judge that Anderson's test cannot rule out that the sets of cosines are normal: at 1% each, at 5% all together.

    What the test does at the levels usual for it is the statement, so that the verdict follows from the printed
    statistics, without chance.
    """
    law = anderson_darling.limit_law(True)
    p_values = [law.sf(float(value)) for row in TABLE_4.values() for value in row]
    joint = 1.0 - (1.0 - min(p_values)) ** len(p_values)
    return found(
        holds(min(p_values) >= 0.01 and joint >= 0.05),
        f"the smallest of {len(p_values)} p-values is {min(p_values):.3f}, as small among so many with probability "
        f"{joint:.2f}",
        p_values=p_values,
        joint=joint,
    )


def _measured(place: str, source: str, statement: str, data: str) -> Check:
    return claim(f"submission.{place}", f"{SUBMISSION}, {source}", statement, needs_data(f"submission.{place}", data))


_claim = placed("submission", SUBMISSION)

CHECKS: tuple[Check, ...] = (
    _claim("appendixE.plots", "Appendix E and Figure 1", "Figure 1 shows three plots of growing noise", judge_plots),
    _claim(
        "figure3.periods",
        "Appendix E and Figure 3",
        "2048 rounds are divided into 1, 2, 4 or 8 periods, each canary in each of them once",
        lambda: judge_epochs(epochs=(1, 2, 4, 8)),
    ),
    *(
        experiment(
            "submission.table4",
            f"{SUBMISSION}, Table 4",
            number,
            f"at noise {noise} the statistics for 1, 2, 3, 5 and 10 repetitions are {', '.join(values)}",
            STACKOVERFLOW,
        )
        for number, (noise, values) in enumerate(TABLE_4.items(), 1)
    ),
    _claim(
        "table4.probability",
        "Table 4's caption",
        "three or more of 15 independent Gaussian sets exceed 0.574, the 15% point, with probability 68%",
        judge_three_of_fifteen,
    ),
    _claim("table4.figure1", "Table 4's caption", "its sets are those of Figure 1", judge_figure_1),
    _claim(
        "appendixG.gaussian",
        "Appendix G",
        "a strong test of goodness of fit cannot rule out that the 15 sets of cosines are Gaussian",
        judge_gaussian,
    ),
    *figure(_claim, 1, TABLE_2, STACKOVERFLOW_DELTA),
    *(
        _measured(f"figure{number}.measured", f"Figure {number}", statement, data)
        for number, statement, data in (
            (1, "cosines separate more with 1, 2, 4 and 8 repetitions and less with noise", STACKOVERFLOW),
            (2, "the estimate rises sharply from 1 to 8 repetitions at every noise", EMNIST),
            (3, "the estimate rises sharply from 1 to 8 repetitions at every noise", STACKOVERFLOW),
        )
    ),
    *(
        _measured(f"appendixH.{place}", "Appendix H", statement, _FASHION)
        for place, statement in (
            ("canife", "CANIFE's ε has mean 0.879 and standard deviation 0.124"),
            ("canaries", "the canaries' ε has mean 6.76 and standard deviation 1.06"),
            ("cost", "crafting canaries, in 2500 steps from a pool of 512, costs much computation"),
        )
    ),
    *(
        experiment(
            "submission.table6",
            f"{SUBMISSION}, Table 6",
            number,
            f"at noise {noise} with {runs} × {count} canaries the quantiles are {', '.join(values)}",
            STACKOVERFLOW,
        )
        for number, (noise, runs, count, values) in enumerate(TABLE_6, 1)
    ),
    _claim("table6.ordered", "Table 6", "the quantiles rise", judge_ordered),
    _claim(
        "table6.median", "Tables 2 and 6", "Table 2's estimates are medians of Table 6", lambda: judge_medians(TABLE_2)
    ),
)
