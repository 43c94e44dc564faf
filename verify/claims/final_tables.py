"""What the numbers of the final version's Tables 2, 3, 4 and 6 and of Section 5.4 say of one another."""

import math
from collections.abc import Sequence

from scipy import stats
from statsmodels.stats.power import TTestPower

from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.claims.final_printed import RESULTS, TABLE_3, TABLE_4, TABLE_6, Row
from canaryproof.verify.claims.final_text import DOCUMENT
from canaryproof.verify.claims.judging import LEVEL, claim, found, holds
from canaryproof.verify.error_control import POWER
from canaryproof.verify.results import Context, Design, Outcome, Verdict
from canaryproof.verify.suites.tables import CELLS, PRINTED_RUNS, Cell

# What "close", "about" and "in the ballpark" are taken to allow.
FACTOR = 2.0
_COLUMNS = ("lower_all", "estimate_all", "lower_final", "estimate_final")


def _numbers(rows: Sequence[Row], column: str) -> list[float]:
    return [float(getattr(row, column)) for row in rows]


def near(value: float, other: float) -> bool:
    """Return whether two numbers are within ``FACTOR`` of each other."""
    return 1.0 / FACTOR <= value / other <= FACTOR


def unbiased(cells: Sequence[Cell]) -> tuple[str, float, Design]:
    """Test that printed means of simulated estimates are those of estimates without bias.

    Parameters
    ----------
    cells
        Printed means and standard deviations.

    Returns
    -------
    What was found, in words, the joint p-value (Bonferroni), and the test.
    """
    scores = [(cell.mean - cell.epsilon) / (cell.deviation / math.sqrt(PRINTED_RUNS)) for cell in cells]
    worst = max(scores, key=abs)
    p_value = min(1.0, len(scores) * 2.0 * float(stats.t.sf(abs(worst), PRINTED_RUNS - 1)))
    # The search may end at either sign.
    visible = abs(float(TTestPower().solve_power(None, PRINTED_RUNS, LEVEL / len(cells), POWER)))
    finding = f"the mean farthest from ε is {worst:+.1f} standard errors off (joint p = {p_value:.2f})"
    design = Design(
        "the printed means are those of normal estimates without bias",
        LEVEL,
        f"one has a bias of {visible:.2g} standard deviations",
        POWER,
        PRINTED_RUNS,
    )
    return finding, p_value, design


def judge_very_close(cells: Sequence[Cell]) -> Outcome:
    """Judge that estimates are very close to ε, within 5% and without bias, and deviate little, by less than 20%."""
    errors = [cell.mean / cell.epsilon - 1.0 for cell in cells]
    deviations = [cell.deviation / cell.epsilon for cell in cells]
    finding, p_value, design = unbiased(cells)
    finding = (
        f"means are off by {', '.join(f'{error:+.1%}' for error in errors)}, standard deviations are "
        f"{', '.join(f'{value:.1%}' for value in deviations)} of ε; {finding}"
    )
    close = max(map(abs, errors)) <= 0.05 and max(deviations) < 0.2 and p_value >= LEVEL
    return found(holds(close), finding, design, errors=errors, deviations=deviations, p_value=p_value, level=LEVEL)


def judge_order(rows: Sequence[Row]) -> Outcome:
    """Judge that ε falls with the noise, a bound is below its estimate, and the final model tells less than all."""
    faults = [
        f"{column}: {one:g} then {other:g}"
        for column in _COLUMNS
        for one, other in zip(_numbers(rows, column), _numbers(rows, column)[1:], strict=False)
        if other > one
    ]
    for small, large in (
        ("lower_all", "estimate_all"),
        ("lower_final", "estimate_final"),
        ("estimate_final", "estimate_all"),
    ):
        faults += [
            f"{small} above {large} at noise {row.noise}"
            for row in rows
            if float(getattr(row, small)) > float(getattr(row, large))
        ]
    above = [r.noise for r in rows if float(r.lower_final) > float(r.lower_all)]
    finding = "; ".join(faults) if faults else "every comparison holds"
    if above:
        finding += f"; at noise {', '.join(above)} the final model has the larger lower bound, as its FPR is exact"
    return found(holds(not faults), finding, faults=faults)


def _fraction_of_analytical(rows: Sequence[Row]) -> list[float]:
    return [float(row.estimate_all) / float(row.analytical) for row in rows if row.analytical != "inf"]


def judge_close(rows: Sequence[Row]) -> Outcome:
    """Judge that the estimates of given rows are close to the analytical ε."""
    ratios = _fraction_of_analytical(rows)
    close = all(near(ratio, 1.0) for ratio in ratios)
    finding = f"ε̂/ε = {', '.join(f'{ratio:.2f}' for ratio in ratios)}, where close is a factor of {FACTOR:g} at most"
    if any(ratio > 1.0 for ratio in ratios):
        finding += "; but above 1 an estimate exceeds what is proven to be an upper bound"
    return found(holds(close), finding, ratios=ratios, factor=FACTOR)


def judge_ballpark(rows: Sequence[Row]) -> Outcome:
    """Judge that estimates from all iterates are near the analytical ε.

    Parameters
    ----------
    rows
        Rows with noise.
    """
    ratios = [float(row.estimate_all) / float(row.analytical) for row in rows]
    close = [near(ratio, 1.0) for ratio in ratios]
    verdict = Verdict.CONFIRMED if all(close) else Verdict.QUALIFIED if any(close) else Verdict.REFUTED
    listed = ", ".join(f"{ratio:.3g} at {row.noise}" for ratio, row in zip(ratios, rows, strict=True))
    inside, outside = (
        ", ".join(row.noise for row, one in zip(rows, close, strict=True) if one is wanted) for wanted in (True, False)
    )
    reading = f", if moderate noise means {inside} and not {outside}" if verdict is Verdict.QUALIFIED else ""
    finding = f"estimate over analytical ε is {listed}: within a factor of {FACTOR:g} in {sum(close)} of {len(rows)}"
    return found(verdict, finding + reading, ratios=ratios)


def judge_below_analytical(rows: Sequence[Row]) -> Outcome:
    """Judge that no estimate from all rounds exceeds the analytical ε, the bound of every attack."""
    pairs = [(row.estimate_all, row.analytical) for row in rows if float(row.estimate_all) > float(row.analytical)]
    listed = "; ".join(f"{estimate} above {bound}" for estimate, bound in pairs)
    finding = f"no: {listed}" if pairs else f"all {len(rows)} estimates are below their bounds"
    return found(holds(not pairs), finding, above=pairs)


def judge_similar(one: Sequence[Row], other: Sequence[Row]) -> Outcome:
    """Judge that two tables tell the same qualitatively: all comparisons of ``judge_order`` hold in both."""
    ratios = {
        column: [b / a for a, b in zip(_numbers(one, column), _numbers(other, column), strict=True)]
        for column in ("estimate_all", "estimate_final")
    }
    everywhere, final = ratios.values()
    finding = (
        f"in their order; row by row the second's estimates are {min(final):.2f} to {max(final):.2f} times the first's "
        f"from the final model, and {min(everywhere):.2f} to {max(everywhere):.2f} times from all model deltas"
    )
    same = all(judge_order(rows).verdict is Verdict.CONFIRMED for rows in (one, other))
    return found(holds(same), finding, ratios=ratios)


def _judge_separation(_: Context) -> Outcome:
    ratios = [float(row.estimate_all) / float(row.lower_all) for row in TABLE_3[:2]]
    return found(
        holds(min(ratios) > 10.0),
        f"{ratios[0]:.0f} and {ratios[1]:.0f} times; with a sampled null no bound from 1,000 canaries can exceed 6.26",
        ratios=ratios,
    )


def _judge_final_lower(_: Context) -> Outcome:
    ratios = [float(r.estimate_all) / float(r.estimate_final) for r in (*TABLE_3, *TABLE_4)]
    finding = f"smaller by factors of {min(ratios):.1f} to {max(ratios):.0f}"
    return found(holds(min(ratios) > 2.0), finding, ratios=ratios)


def _judge_order_of_one(_: Context) -> Outcome:
    values = _numbers(TABLE_3[1:], "estimate_final")
    finding = f"{', '.join(f'{value:g}' for value in values)}: within a factor of two of 1 at every noise above 0"
    return found(holds(all(near(value, 1.0) for value in values)), finding, values=values)


def judge_gaussianity(rows: Sequence[tuple[str, tuple[float, ...]]] = TABLE_6) -> Outcome:
    """Judge that Anderson's test cannot rule out that the sixteen sets of cosines are normal.

    What the test does at the levels usual for it is the statement, so that the verdict follows from the printed
    statistics, without chance.
    """
    law = anderson_darling.limit_law(True)
    p_values = {f"{noise}, {2**i}": law.sf(value) for noise, row in rows for i, value in enumerate(row)}
    place, smallest = min(p_values.items(), key=lambda item: item[1])
    rejected = [name for name, p in p_values.items() if p < 0.01]
    joint = 1.0 - (1.0 - smallest) ** len(p_values)
    verdict = Verdict.CONFIRMED if not rejected else Verdict.QUALIFIED if joint >= 0.05 else Verdict.REFUTED
    finding = (
        f"only for the sixteen together at level 5%: the set at noise and presentations {place} has p = "
        f"{smallest:.4f}, rejected at 1% by the table's caption; the chance of one such among sixteen is {joint:.3f}"
        if rejected
        else f"the smallest p-value is {smallest:.3f}, at {place}"
    )
    return found(verdict, finding, p_values=p_values, joint=joint)


def judge_much_closer(ours: str = "6.76", theirs: str = "0.879", analytical: str = "34.5") -> Outcome:
    """Judge that one estimate is much closer to the analytical ε than another."""
    near, far, bound = float(ours), float(theirs), float(analytical)
    gaps, ratios = [bound - value for value in (near, far)], [bound / value for value in (near, far)]
    # Much closer: at most half as far.
    by_ratio, by_distance = (2.0 * math.log(ratios[0]) <= math.log(ratios[1]), 2.0 * gaps[0] <= gaps[1])
    verdict = Verdict.CONFIRMED if by_ratio and by_distance else Verdict.QUALIFIED if by_ratio else Verdict.REFUTED
    finding = (
        f"{near / bound:.0%} of the analytical ε against {far / bound:.1%}, {near / far:.1f} times CANIFE's; but the "
        f"distance shrinks only from {gaps[1]:.1f} to {gaps[0]:.1f}"
    )
    if verdict is Verdict.QUALIFIED:
        finding = f"only as a ratio: {finding}"
    return found(verdict, finding, shares=(near / bound, far / bound), gaps=gaps)


CHECKS = (
    claim(
        "final.section3.close",
        f"{DOCUMENT}, Section 3 and Table 2",
        "the estimates 0.972 ± 0.148, 3.04 ± 0.137 and 9.98 ± 0.190 are very close to 1, 3 and 10, and deviate little",
        lambda _: judge_very_close([cell for cell in CELLS if cell.id.startswith("final.table2.")]),
    ),
    claim(
        "final.section4.1.moderate",
        f"{DOCUMENT}, Section 4.1 and caption of Table 3",
        "at moderate noise the estimates from all rounds are in the ballpark of the analytical ε (Tables 3 and 4)",
        lambda _: judge_ballpark((*TABLE_3[1:], *TABLE_4[1:])),
    ),
    claim(
        "final.section5.1.separation",
        f"{DOCUMENT}, Section 5.1",
        "at the lower noise multipliers the estimates from all rounds are much higher than the lower bounds",
        _judge_separation,
    ),
    claim(
        "final.section5.1.close",
        f"{DOCUMENT}, Section 5.1",
        "at low and medium noise the estimates are relatively close to the analytical ε: 382 and 300, 89.4 and 100",
        lambda _: judge_close(TABLE_3[1:3]),
    ),
    claim(
        "final.section5.2.1.close",
        f"{DOCUMENT}, Section 5.2.1",
        "with little noise EMNIST's estimates from all iterates are close to the analytical ε (258 and 300)",
        lambda _: judge_close(TABLE_4[1:2]),
    ),
    claim(
        "final.section5.1.final-lower",
        f"{DOCUMENT}, Sections 5.1 and 5.2.1",
        "estimates from the final model are far below those from all iterates, in Tables 3 and 4",
        _judge_final_lower,
    ),
    claim(
        "final.section5.1.order-of-one",
        f"{DOCUMENT}, Section 5.1",
        "with even a little noise the final model's estimate approaches 1",
        _judge_order_of_one,
    ),
    *(
        claim(
            f"final.table{number}.{name}",
            f"{DOCUMENT}, {place}",
            statement,
            lambda _, judge=judge, rows=rows: judge(rows),  # type: ignore[misc]
        )
        for number, (rows, _, _) in RESULTS.items()
        for name, place, statement, judge in (
            (
                "order",
                f"Table {number}",
                "every column falls with the noise, lower bounds are below estimates, the final model tells less than "
                "all",
                judge_order,
            ),
            (
                "below-analytical",
                f"footnote 5 and Table {number}",
                "an estimate from all model deltas is of a loss of privacy that the analytical ε beside it bounds",
                judge_below_analytical,
            ),
        )
    ),
    claim(
        "final.section5.2.1.similar",
        f"{DOCUMENT}, Section 5.2.1",
        "EMNIST's results are qualitatively those of StackOverflow",
        lambda _: judge_similar(TABLE_3, TABLE_4),
    ),
    claim(
        "final.section5.4.closer",
        f"{DOCUMENT}, Section 5.4",
        "an estimate of 6.76 is much closer to the analytical 34.5 than CANIFE's 0.879",
        lambda _: judge_much_closer(),
    ),
    claim(
        "final.appendixB.gaussian",
        f"{DOCUMENT}, Section 5.2, Appendix B and Table 6",
        "Anderson's test cannot rule out that the sixteen sets of 1000 cosines are Gaussian",
        lambda _: judge_gaussianity(),
    ),
)
