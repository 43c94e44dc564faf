"""Claims of the anonymous submission of Andrew et al.; ``submission_experiments`` has Section 5 and Appendix D.

Its Section 3, proofs and Appendix B are the final version's, lines of the suite of theorems; so is what Table 4's
caption says of Anderson's critical values.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

from scipy import stats

from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.papers.accounting import analytical
from canaryproof.verify.papers.check.documents import SUBMISSION
from canaryproof.verify.papers.check.results import Check, Outcome
from canaryproof.verify.papers.check.verdicts import Printed, conclude, fixed, holds, number, rounding
from canaryproof.verify.papers.claims import andrew_rules, costs, distributions, submission_experiments, v1
from canaryproof.verify.papers.claims.canife import rules as canife_rules
from canaryproof.verify.papers.claims.final_setting import judge_assumptions, judge_epoch
from canaryproof.verify.papers.claims.final_tables import LEVELS
from canaryproof.verify.papers.claims.needs_data import BENCHMARK, NeedsData
from canaryproof.verify.papers.claims.submission_experiments import EMNIST
from canaryproof.verify.papers.claims.table_judges import STACKOVERFLOW, repeated, separable
from canaryproof.verify.papers.claims.transcripts import FirstVersion, Row, Submission

_FASHION = "Fashion-MNIST, CANIFE's code and a two-layer network"
# Figure 1's caption: its noise, by the analytical ε ∞, 300, 100 and 30, and its repetitions.
_FIGURE_1 = (tuple(row.noise for row in Submission.TABLE_2), (1, 2, 4, 8))
# Figure 2's noise.
_FIGURE_2 = ("0.16", "0.18", "0.195")


def exceedance(count: int, least: int, level: Fraction) -> Fraction:
    """Return the probability that ``least`` or more of ``count`` independent tests reject, exactly."""
    return sum(
        (math.comb(count, n) * level**n * (1 - level) ** (count - n) for n in range(least, count + 1)), Fraction(0)
    )


def judge_three_of_fifteen(printed: str) -> Outcome:
    """Judge the probability that three or more of 15 Gaussian sets exceed the 15% point."""
    level = Fraction(3, 20)
    three, two = exceedance(15, 3, level), exceedance(15, 2, level)
    # The printed 0.574 is of a table that is a little off: what share of Gaussian sets exceeds it.
    size = anderson_darling.limit_law(True).sf(FirstVersion.WEAK_CRITICAL_VALUE)
    sized = float(stats.binom.sf(2, 15, size))
    right = anderson_darling.sample_critical_value(0.15, FirstVersion.CANARIES)
    judged = number(printed, {"three or more at the 15% point": three, "three or more at 0.574": sized})
    return conclude(
        judged.verdict,
        f"P(3 or more of 15) is {float(three):.4f} at 15% each; {float(two):.4f} is two or more. The right critical "
        f"value is {right:.3f}; {FirstVersion.WEAK_CRITICAL_VALUE} is exceeded by {100 * size:.1f}%, which "
        f"makes it {sized:.3f}",
        three=float(three),
        two=float(two),
        size=size,
        at_size=sized,
        **judged.evidence,
    )


def judge_figure_1() -> Outcome:
    """Judge that Table 4 is of the sets that Figure 1 shows."""
    levels = tuple(Submission.TABLE_4)
    repetitions: tuple[int, ...] = FirstVersion.REPETITIONS
    shared = [level for level in levels if level in _FIGURE_1[0]]
    return conclude(
        holds(levels == _FIGURE_1[0] and repetitions == _FIGURE_1[1]),
        f"Table 4 has noise {', '.join(levels)} and repetitions {', '.join(map(str, repetitions))}, Figure 1 noise "
        f"{', '.join(_FIGURE_1[0])} and repetitions {', '.join(map(str, _FIGURE_1[1]))}: the table is of "
        "the first version",
        shared=shared,
    )


def judge_plots(printed: str) -> Outcome:
    """Judge the number of Figure 1's plots."""
    count = len(_FIGURE_1[0])
    return conclude(holds(count == int(printed)), f"the caption has {count} values of noise, one a plot", plots=count)


def judge_bounded(rows: Sequence[Row] = Submission.TABLE_2[1:]) -> Outcome:
    """Judge that the printed ε bound that of one Gaussian mechanism, at the least noise that prints like this."""
    exact = [analytical.gaussian(float(rounding(row.noise)[0]), FirstVersion.DELTA) for row in rows]
    return conclude(
        holds(all(float(row.analytical) >= value for row, value in zip(rows, exact, strict=True))),
        f"the exact ε at δ = m^(−1.1), m = 341k, is at most {', '.join(f'{value:.2f}' for value in exact)} at the "
        f"noise printed for {', '.join(row.analytical for row in rows)}",
        exact=exact,
    )


def judge_gaussian() -> Outcome:
    """Judge that Anderson's test cannot rule out that the sets of cosines are normal, at the printed levels.

    What the test does at them is the statement, so that the verdict follows from the printed
    statistics, without chance.
    """
    law = anderson_darling.limit_law(True)
    p_values = [law.sf(float(value)) for row in Submission.TABLE_4.values() for value in row]
    joint = 1.0 - (1.0 - min(p_values)) ** len(p_values)
    rejected = sum(p < 0.15 for p in p_values)
    return conclude(
        # Table 4's caption takes all sets together.
        holds(joint >= 0.05, min(p_values) >= 0.01),
        f"for all sets together, as Table 4's caption takes them: the smallest p-value is {min(p_values):.3f}, as "
        f"small among {len(p_values)} with probability {joint:.2f}. Singly, {rejected} of them are rejected at 15%",
        p_values=p_values,
        joint=joint,
    )


# Claims that the final version repeats.
_REPEATED = {
    "abstract.retrainings": ("abstract and Section 1", "abstract.retrainings"),
    "equation1": ("equation 1", "section2.equation1"),
    "section3.close": ("Section 3 and Table 1", "section3.close"),
    "section4.maximum": ("Section 4, Algorithm 3", "section4.1.maximum"),
    "section4.orthogonal": ("Section 4", "section4.orthogonal"),
    "section5.parameters": ("Section 5", "section5.1.parameters"),
    "section5.jeffreys": ("Section 5", "section5.1.jeffreys"),
    "section5.centered": ("Section 5", "section5.1.centered"),
    "section5.lower-bound": ("Section 5", "section5.1.confidence"),
    "footnote5": ("footnote 5", "section5.1.posterior"),
    "table2.row2.cap": ("Section 5 and Table 2", "table3.row2.cap"),
    "appendixD.data": ("Appendix D", "section5.2.1.size"),
    "appendixD.parameters": ("Appendix D", "section5.2.1.parameters"),
    "appendixH.epsilon": ("Appendix H", "section5.4.analytical"),
    "appendixH.settings": ("Appendix H", "section5.4.settings"),
    "appendixH.audits": ("Appendix H", "section5.4.audits"),
    "appendixH.closer": ("Appendix H", "section5.4.closer"),
    "table6.close": ("Appendix J and Table 6", "table5.close"),
    "appendixJ.canaries": ("Appendix J", "section5.3.canaries"),
    "appendixJ.models": ("Appendix J", "section5.3.trainings"),
    "appendixJ.orthogonal": ("Appendix J", "section5.3.orthogonal"),
}

# The submission leaves out that the dimension is to be high relative to the number of clients.
_REWORDED = {
    "section4.orthogonal": "Randomly sampled canary updates are nearly orthogonal to all true client updates",
}

CHECKS: tuple[Check, ...] = (
    *(
        repeated(SUBMISSION, name, section, original, _REWORDED.get(name, ""))
        for name, (section, original) in _REPEATED.items()
    ),
    SUBMISSION.claim(
        "section5.rounds",
        "Section 5",
        "The 2048 rounds of 167 clients are one epoch in which each of the m = 34k clients (as our copy reads; both "
        "other versions have 341k) takes part exactly once",
        # With 34k clients δ and ε of Table 2 would be others, and the conclusion has hundreds of thousands.
        Printed("341k", partial(judge_epoch, misprint="34k")),
    ),
    SUBMISSION.claim(
        "footnote4",
        "footnote 4",
        "The analytical ε of 300, 100 and 30 are bounds: that of one unamplified Gaussian mechanism",
        fixed(judge_bounded),
    ),
    SUBMISSION.claim(
        "table5.order",
        "Table 5's caption",
        "Within each category of Table 5 methods are ordered from least to most strict assumptions",
        fixed(judge_assumptions, Submission.TABLE_5),
    ),
    *v1.table_1_checks(SUBMISSION, Submission.TABLE_1, "fitted"),
    *submission_experiments.CHECKS,
    SUBMISSION.claim(
        "appendixE.plots",
        "Appendix E and Figure 1",
        "Figure 1 shows three plots of growing noise",
        Printed("3", judge_plots),
    ),
    *v1.anderson_checks(SUBMISSION, Submission.TABLE_4),
    SUBMISSION.claim(
        "table4.probability",
        "Table 4's caption",
        "Three or more of 15 independent Gaussian sets exceed 0.574, the 15% point, with probability 68%",
        Printed("0.68", judge_three_of_fifteen),
    ),
    SUBMISSION.claim(
        "table4.figure1", "Table 4's caption", "Table 4's sets are those of Figure 1", fixed(judge_figure_1)
    ),
    SUBMISSION.claim(
        "appendixG.gaussian",
        "Appendix G",
        "A strong test of goodness of fit cannot rule out that the 15 sets of cosines are Gaussian",
        fixed(judge_gaussian),
    ),
    separable(SUBMISSION, Submission.TABLE_2[0], distributions.fitted),
    SUBMISSION.claim(
        "figure1.measured",
        "Figure 1",
        "Cosines separate more with 1, 2, 4 and 8 repetitions and less with noise",
        NeedsData(STACKOVERFLOW, ("final_figure2",), partial(andrew_rules.separates, *_FIGURE_1)),
    ),
    *(
        SUBMISSION.claim(
            f"figure{number}.measured",
            f"Figure {number}",
            "The estimate rises sharply from 1 to 8 repetitions at every noise",
            NeedsData(data, (experiment,), partial(andrew_rules.rises, noises, andrew_rules.TIMES)),
        )
        for number, data, experiment, noises in (
            (2, EMNIST, "submission_figure2", _FIGURE_2),
            (3, STACKOVERFLOW, "final_figure2", _FIGURE_1[0]),
        )
    ),
    SUBMISSION.claim(
        "appendixD.repetitions",
        "Appendix D, Figure 2",
        "The effect of more canary repetitions on EMNIST is qualitatively similar to the case of StackOverflow",
        NeedsData(
            f"{STACKOVERFLOW}, and {EMNIST}",
            ("final_figure2", "submission_figure2"),
            partial(andrew_rules.alike, (_FIGURE_1[0], _FIGURE_2), False),
        ),
    ),
    *(
        SUBMISSION.claim(f"appendixH.{name}", "Appendix H", statement, NeedsData(_FASHION, experiments, rule))
        for name, statement, experiments, rule in (
            (
                "canife",
                "CANIFE's ε has mean {} and standard deviation {}".format(*Submission.CANIFE),
                (BENCHMARK,),
                partial(canife_rules.benchmark_reading, "final.section5.4.canife"),
            ),
            (
                "canaries",
                "The canaries' ε has mean {} and standard deviation {}".format(*Submission.CANARIES),
                (BENCHMARK, "fashion_mnist"),
                partial(canife_rules.one_shot, "submission.appendixH.canaries"),
            ),
        )
    ),
    SUBMISSION.claim(
        "appendixH.cost",
        "Appendix H",
        "Crafting canaries, in 2500 steps from a pool of 512, costs much computation",
        fixed(costs.judge_crafting),
    ),
    *(
        SUBMISSION.claim(
            f"table6.row{number}",
            "Table 6",
            f"At noise {noise} with {runs} × {count} canaries the {LEVELS} quantiles are {', '.join(values)}",
            NeedsData(STACKOVERFLOW, ("final_table5",), partial(andrew_rules.quantiles, noise, runs, count, values)),
        )
        for number, (noise, runs, count, values) in enumerate(Submission.TABLE_6, 1)
    ),
)
