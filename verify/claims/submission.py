"""Claims of the anonymous submission of Andrew et al.; Section 5 and Appendix D are a module beside.

Its Section 3, proofs and Appendix B are the final version's, lines of the suite of theorems; so is what Table 4's
caption says of Anderson's critical values.
"""

import math
from collections.abc import Mapping
from dataclasses import astuple
from fractions import Fraction

from scipy import stats

from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.check.declared_tests import LEVEL, POWER
from canaryproof.verify.check.results import Check, Design, Outcome, Verdict
from canaryproof.verify.check.verdicts import claim, found, holds, placed, prints
from canaryproof.verify.claims import laws, submission_experiments, v1
from canaryproof.verify.claims.deciding import needs_data
from canaryproof.verify.claims.final_tables import judge_medians
from canaryproof.verify.claims.printed import QUANTILES, Final, FirstVersion, Row, Submission
from canaryproof.verify.claims.simulated_tables import CELLS
from canaryproof.verify.claims.submission_experiments import EMNIST
from canaryproof.verify.claims.tables_judging import STACKOVERFLOW, experiment, figure, repeated
from canaryproof.verify.claims.v1 import judge_epochs

_claim = placed("submission", Submission.NAME)
_FASHION = "Fashion-MNIST, CANIFE's code and a two-layer network"
# Figure 1's caption: its noise, by the analytical ε ∞, 300, 100 and 30, and its repetitions.
_FIGURE_1 = (tuple(row.noise for row in Submission.TABLE_2), (1, 2, 4, 8))
_PLOTS_IN_TEXT = 3


def exceedance(count: int, least: int, level: Fraction) -> Fraction:
    """Return the probability that ``least`` or more of ``count`` independent tests reject, exactly."""
    return sum(
        (math.comb(count, n) * level**n * (1 - level) ** (count - n) for n in range(least, count + 1)), Fraction(0)
    )


def judge_three_of_fifteen(text: str = "0.68") -> Outcome:
    """Judge the probability that three or more of 15 Gaussian sets exceed the 15% point."""
    level = Fraction(3, 20)
    three, two = exceedance(15, 3, level), exceedance(15, 2, level)
    # The printed 0.574 is of a table that is a little off: what share of Gaussian sets exceeds it.
    size = anderson_darling.limit_law(True).sf(FirstVersion.WEAK_CRITICAL_VALUE)
    sized = float(stats.binom.sf(2, 15, size))
    right = anderson_darling.critical_value(0.15, True)
    agreed = prints(three, text)
    return found(
        holds(agreed),
        f"P(3 or more of 15) is {float(three):.4f} at 15% each; {float(two):.4f} is two or more. The right critical "
        f"value is {right:.3f}; {FirstVersion.WEAK_CRITICAL_VALUE} is exceeded by {100 * size:.1f}%, which "
        f"makes it {sized:.3f}",
        three=float(three),
        two=float(two),
        size=size,
        at_size=sized,
    )


def judge_figure_1() -> Outcome:
    """Judge that Table 4 is of the sets that Figure 1 shows."""
    levels = tuple(Submission.TABLE_4)
    repetitions: tuple[int, ...] = FirstVersion.REPETITIONS
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
    agreed = all(list(row[3]) == sorted(row[3], key=float) for row in Submission.TABLE_6)
    return found(
        holds(agreed),
        f"{len(Submission.TABLE_6)} rows of {len(QUANTILES)} quantiles rise",
        rows=len(Submission.TABLE_6),
    )


def judge_gaussian() -> Outcome:
    """Judge that Anderson's test cannot rule out that the sets of cosines are normal: at 1% each, at 5% all together.

    What the test does at the levels usual for it is the statement, so that the verdict follows from the printed
    statistics, without chance.
    """
    law = anderson_darling.limit_law(True)
    p_values = [law.sf(float(value)) for row in Submission.TABLE_4.values() for value in row]
    joint = 1.0 - (1.0 - min(p_values)) ** len(p_values)
    return found(
        holds(min(p_values) >= 0.01 and joint >= 0.05),
        f"the smallest of {len(p_values)} p-values is {min(p_values):.3f}, as small among so many with probability "
        f"{joint:.2f}",
        p_values=p_values,
        joint=joint,
    )


def _measured(place: str, source: str, statement: str, data: str) -> Check:
    return claim(
        f"submission.{place}", f"{Submission.NAME}, {source}", statement, needs_data(f"submission.{place}", data)
    )


# What the submission repeats of the first version and the final one of it: the same numbers, or other ones.


def judge_same(pairs: list[tuple[object, object]]) -> Outcome:
    """Judge that two documents print the same."""
    same = sum(a == b for a, b in pairs)
    return found(
        holds(same == len(pairs)), f"{same} of {len(pairs)} agree", differing=[p for p in pairs if p[0] != p[1]]
    )


def _pairs(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return what two documents print, by name."""
    return {name: (one[name], other[name]) for name in one}


def judge_settings(pairs: Mapping[str, tuple[str, str]]) -> Outcome:
    """Judge that two versions print the same settings and results."""
    differing = [f"{name} {one} and {other}" for name, (one, other) in pairs.items() if one != other]
    same = len(pairs) - len(differing)
    finding = f"{same} of {len(pairs)} agree" + (f"; not: {', '.join(differing)}" if differing else "")
    return found(holds(not differing), finding, pairs=dict(pairs))


def _table_1() -> Outcome:
    # The final version's cells hold numbers.
    cells = {cell.epsilon: (cell.mean, cell.deviation) for cell in CELLS if cell.id.startswith("final.table2.")}
    ours = [(float(mean), float(deviation)) for _, _, mean, deviation in Submission.TABLE_1]
    return judge_same([(pair, cells[float(row[1])]) for pair, row in zip(ours, Submission.TABLE_1, strict=True)])


def judge_without_noise(row: Row = Submission.TABLE_2[0], other: Row = FirstVersion.TABLE_3[0]) -> Outcome:
    """Judge whether two versions' results of one setting without noise can be those of two runs."""
    values = (float(row.estimate_final), float(other.estimate_final))
    p_value = laws.same_mean(*values, FirstVersion.DELTA)
    pairs = [(float(a), float(b)) for a, b in zip(astuple(row)[2:], astuple(other)[2:], strict=True)]
    same = sum(a == b for a, b in pairs)
    verdict = Verdict.REFUTED
    if p_value >= LEVEL:
        verdict = Verdict.CONFIRMED if same == len(pairs) else Verdict.QUALIFIED
    listed = ", ".join(f"{a:g} and {b:g}" for a, b in pairs)
    finding = (
        f"{same} of {len(pairs)} numbers are equal ({listed}); that the final model's estimates are of two runs has "
        f"p = {p_value:.2g}"
    )
    noticed = laws.noticed_beside(min(values), FirstVersion.DELTA, LEVEL)
    design = Design(
        "both printed estimates are by fitted from 1,000 independent normal cosines each, with the null's variance and "
        "one mean",
        LEVEL,
        f"they are of an ε of {min(values):g} and one of {noticed:.2g}",
        POWER,
        FirstVersion.CANARIES,
    )
    return found(verdict, finding, design, pairs=pairs, p_value=p_value, level=LEVEL)


def judge_first_version(name: str) -> Outcome:
    """Judge a column of Table 2 against the first version's, of the same setting at other noise.

    More noise on the same training tells less, so that all results from both versions should fall with the noise, up
    to their own error. That of an estimate from the final model is taken from Table 6: 0.34 at most where noise is
    added, for one of four pairs. For all iterates 20% of the estimate, thrice what the fit of 1000 cosines allows.
    Lower bounds from all iterates are given none. These are allowances for what is printed, and no test: for one, the
    errors of estimates from the final model are as large as most of the estimates.
    """
    share = {"estimate_all": 0.2, "lower_all": 0.0}
    merged = sorted(
        (float(row.noise), float(getattr(row, name)), version)
        for version, table in (("v1", FirstVersion.TABLE_3), ("submission", Submission.TABLE_2))
        for row in table[1:]
    )
    rising = []
    for i, (noise, value, version) in enumerate(merged):
        for later_noise, later, other in merged[i + 1 :]:
            error = math.sqrt(2) * (share[name] * max(value, later) if name in share else 0.34)
            if other != version and later - value > 2 * error:
                rising.append(f"{value:g} at {noise:g} ({version}) but {later:g} at {later_noise:g} ({other})")
    zeros = [float(getattr(table[0], name)) for table in (FirstVersion.TABLE_3, Submission.TABLE_2)]
    return found(
        holds(not rising),
        f"{'; '.join(rising) or 'no pair contradicts the order'}; without noise {zeros[0]:g} and {zeros[1]:g}",
        merged=merged,
        rising=rising,
    )


# Claims that the final version repeats.
_REPEATED = {
    "abstract.retrainings": ("abstract and Section 1", "final.abstract.retrainings"),
    "equation1": ("equation 1", "final.section2.equation1"),
    "section3.close": ("Section 3 and Table 1", "final.section3.close"),
    "section4.orthogonal": ("Section 4", "final.section4.orthogonal"),
    "section5.canary-share": ("Sections 1 and 5", "final.section5.1.canary-share"),
    "section5.parameters": ("Section 5", "final.section5.1.parameters"),
    "section5.rounds": ("Section 5 (where our copy has 34k)", "final.section5.1.epoch"),
    "section5.jeffreys": ("Section 5", "final.section5.1.jeffreys"),
    "section5.lower-bound": ("Section 5", "final.section5.1.confidence"),
    "footnote4": ("footnote 4", "final.section5.1.footnote5"),
    "footnote5": ("footnote 5", "final.section5.1.posterior"),
    "table2.row2.cap": ("Section 5 and Table 2", "final.table3.row2.cap"),
    "appendixD.data": ("Appendix D", "final.section5.2.1.size"),
    "appendixD.parameters": ("Appendix D", "final.section5.2.1.parameters"),
    "appendixH.epsilon": ("Appendix H", "final.section5.4.analytical"),
    "appendixH.settings": ("Appendix H", "final.section5.4.settings"),
    "appendixH.audits": ("Appendix H", "final.section5.4.audits"),
    "appendixH.closer": ("Appendix H", "final.section5.4.closer"),
    "table6.close": ("Appendix J and Table 6", "final.table5.close"),
    "appendixJ.canaries": ("Appendix J", "final.section5.3.canaries"),
    "appendixJ.models": ("Appendix J", "final.section5.3.trainings"),
    "appendixJ.orthogonal": ("Appendix J", "final.section5.3.orthogonal"),
}
# The final version's Table 5 is Table 6 here.
_QUANTILES = {f"table6.row{row}.spread": f"final.table5.row{row}.spread" for row in range(1, 5)}

CHECKS: tuple[Check, ...] = (
    *(
        repeated(f"submission.{place}", f"{Submission.NAME}, {source}", original)
        for place, (source, original) in _REPEATED.items()
    ),
    *(
        repeated(f"submission.{place}", f"{Submission.NAME}, Table 6", original)
        for place, original in _QUANTILES.items()
    ),
    *v1.table_1_checks("submission", Submission.NAME, Submission.TABLE_1, "fitted"),
    *submission_experiments.CHECKS,
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
            f"{Submission.NAME}, Table 4",
            number,
            f"at noise {noise} the statistics for 1, 2, 3, 5 and 10 repetitions are {', '.join(values)}",
            STACKOVERFLOW,
        )
        for number, (noise, values) in enumerate(Submission.TABLE_4.items(), 1)
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
    *figure(_claim, 1, Submission.TABLE_2, FirstVersion.DELTA),
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
            f"{Submission.NAME}, Table 6",
            number,
            f"at noise {noise} with {runs} × {count} canaries the quantiles are {', '.join(values)}",
            STACKOVERFLOW,
        )
        for number, (noise, runs, count, values) in enumerate(Submission.TABLE_6, 1)
    ),
    _claim("table6.ordered", "Table 6", "the quantiles rise", judge_ordered),
    _claim(
        "table6.median",
        "Tables 2 and 6",
        "Table 2's estimates are medians of Table 6",
        lambda: judge_medians(Submission.TABLE_2),
    ),
    _claim("table1.versions", "Table 1", "Table 1 is the final version's Table 2", _table_1),
    _claim(
        "table1.v1",
        "Table 1; first version, Table 1",
        "Table 1 is the first version's, whose estimator is another",
        lambda: judge_same(list(zip(Submission.TABLE_1, FirstVersion.TABLE_1, strict=True))),
    ),
    _claim(
        "table2.versions",
        "Table 2",
        "Table 2 is the final version's Table 3",
        lambda: judge_same(list(zip(Submission.TABLE_2, Final.TABLE_3, strict=True))),
    ),
    _claim(
        "table2.v1.row1",
        "Table 2; first version, Table 3",
        "the results without noise are the first version's, of the same setting",
        judge_without_noise,
    ),
    _claim(
        "table2.v1.lower-all",
        "Table 2; first version, Table 3",
        "the lower bounds from all iterates agree with the first version's, of the same setting at other noise",
        lambda: judge_first_version("lower_all"),
    ),
    _claim(
        "table2.v1.all",
        "Table 2; first version, Table 3",
        "the estimates from all iterates agree with the first version's, of the same setting at other noise",
        lambda: judge_first_version("estimate_all"),
    ),
    _claim(
        "table2.v1.final",
        "Table 2; first version, Table 3",
        "the estimates from the final model agree with the first version's, of the same setting at other noise",
        lambda: judge_first_version("estimate_final"),
    ),
    _claim(
        "table3.row1.versions",
        "Table 3; final version, Table 4",
        "the results on EMNIST without noise are the final version's",
        lambda: judge_settings(
            {
                name: (getattr(Submission.TABLE_3[0], name), getattr(Final.TABLE_4[0], name))
                for name in ("lower_all", "estimate_all", "lower_final", "estimate_final")
            }
        ),
    ),
    _claim(
        "section5.versions",
        "Section 5; first version, Section 5",
        "the setting on StackOverflow, but for the number of clients, is the first version's",
        lambda: judge_settings(_pairs(Submission.SETTING, FirstVersion.SETTING)),
    ),
    _claim(
        "appendixD.versions",
        "Appendix D; final version, Section 5.2.1",
        "the setting on EMNIST is the final version's",
        lambda: judge_settings(_pairs(Submission.EMNIST, Final.EMNIST)),
    ),
    _claim(
        "appendixH.versions",
        "Appendix H; final version, Section 5.4",
        "the comparison with CANIFE is the final version's",
        lambda: judge_settings(_pairs(Submission.COMPARISON, Final.COMPARISON)),
    ),
    _claim(
        "table4.versions",
        "Table 4",
        "its statistics are the first version's",
        lambda: judge_same(list(zip(Submission.TABLE_4.values(), FirstVersion.TABLE_4.values(), strict=True))),
    ),
    _claim(
        "table6.versions",
        "Table 6",
        "Table 6 is the final version's Table 5",
        lambda: judge_same(list(zip(Submission.TABLE_6, Final.TABLE_5, strict=True))),
    ),
)
