"""The reviews and answers on the printed estimates: beside their bounds, beside the analytical ε, and by the noise."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from canaryproof.verify.claims import final_figures, submission_printed
from canaryproof.verify.claims.canife_numbers import fixed
from canaryproof.verify.claims.final_printed import CANARIES, STACKOVERFLOW_DELTA, TABLE_3, Row
from canaryproof.verify.claims.judging import claim, found, holds
from canaryproof.verify.claims.review_bounds import SUBMISSION, TO_LDHU
from canaryproof.verify.results import Outcome, Verdict

_REVIEWER = "Reviews of Andrew et al., reviewer ZyjW"


def judge_smallest(limit: float, smallest: str, tables: Mapping[str, Sequence[Row]]) -> Outcome:
    """Judge that the final model's estimate is below a limit at the smallest analytical ε, itself printed.

    Parameters
    ----------
    limit
        The limit.
    smallest
        Analytical ε that is said to be the smallest.
    tables
        Rows by name of the table.
    """
    rows = {name: min(table, key=lambda row: float(row.analytical)) for name, table in tables.items()}
    listed = ", ".join(f"{name} {row.estimate_final} at ε = {row.analytical}" for name, row in rows.items())
    if not all(float(row.estimate_final) < limit for row in rows.values()):
        return found(Verdict.REFUTED, listed, estimates=listed)
    agree = [name for name, row in rows.items() if row.analytical == smallest]
    if len(agree) == len(rows):
        return found(Verdict.CONFIRMED, listed, estimates=listed)
    where = " and ".join(agree) or "no table"
    return found(Verdict.QUALIFIED, f"{smallest} is the smallest on {where} only: {listed}", estimates=listed)


def judge_smaller(tables: Mapping[str, Sequence[Row]]) -> Outcome:
    """Judge that estimates fall with the analytical ε, to the last row of every table.

    Parameters
    ----------
    tables
        Rows by name of the table, from the lowest noise to the highest.
    """
    rising = [
        f"{name} from {getattr(one, column)} to {getattr(other, column)}"
        for name, rows in tables.items()
        for column in ("estimate_all", "estimate_final")
        for one, other in pairwise(rows)
        if float(getattr(one, column)) <= float(getattr(other, column))
    ]
    ends = ", ".join(
        f"on {name} to {rows[-1].estimate_all} and {rows[-1].estimate_final} at ε = {rows[-1].analytical}"
        for name, rows in tables.items()
    )
    return found(holds(not rising), f"not {'; '.join(rising)}" if rising else f"they fall {ends}", rising=rising)


def judge_overstated(tables: Mapping[str, Sequence[Row]], factor: float = 10.0) -> Outcome:
    """Judge that the analytical ε is many times what the final model's release loses; what can be, no table confirms.

    Parameters
    ----------
    tables
        Rows by name of the table.
    factor
        How many times.
    """
    rows = [row for table in tables.values() for row in table if row.analytical != "inf"]
    by_estimate = [float(row.analytical) / float(row.estimate_final) for row in rows]
    by_bound = [float(row.analytical) / float(row.lower_final) for row in rows]
    verdict = Verdict.REFUTED if max(by_bound) < factor else Verdict.INCONCLUSIVE
    finding = (
        f"it is {min(by_estimate):.0f} to {max(by_estimate):.0f} times the estimate of one attack and "
        f"{min(by_bound):.0f} to {max(by_bound):.0f} times its lower bound; from above, nothing but the analytical ε "
        "is known of the final model"
    )
    return found(verdict, finding, by_estimate=by_estimate, by_bound=by_bound)


def judge_indistinguishable(row: Row) -> Outcome:
    """Judge that the density of observed cosines is almost that of the null, in a figure with several presentations.

    Parameters
    ----------
    row
        Of the figure's table.
    """
    shift = final_figures.distance(row, STACKOVERFLOW_DELTA)
    # Total variation of two Gaussians: what the best attack gains on guessing.
    variation = 2.0 * final_figures.accuracy(shift) - 1.0
    finding = (
        f"for canaries presented once, the only ones of which the text has an estimate: at {row.estimate_final} the "
        f"densities are {shift:.2f} standard deviations apart and differ by {variation:.1%} in total variation, while "
        f"the mean of {CANARIES:,} is {shift * math.sqrt(CANARIES):.1f} standard errors off"
    )
    return found(
        Verdict.QUALIFIED if variation < 0.1 else Verdict.REFUTED, finding, distance=shift, variation=variation
    )


def judge_wide(rows: Sequence[Row]) -> Outcome:
    """Judge that estimates from all rounds are farther above their lower bounds than the final model's.

    Parameters
    ----------
    rows
        Of a table.
    """
    everywhere = [float(row.estimate_all) / float(row.lower_all) for row in rows]
    final = [float(row.estimate_final) / float(row.lower_final) for row in rows]
    finding = (
        f"{min(everywhere):.1f} to {max(everywhere):.0f} times the bound from all rounds, {min(final):.1f} to "
        f"{max(final):.1f} times from the final model"
    )
    return found(holds(min(everywhere) > max(final)), finding, all=everywhere, final=final)


def judge_quantiles(printed: int) -> Outcome:
    """Judge the number of quantiles in the submission's Table 6.

    Parameters
    ----------
    printed
        Number stated.
    """
    counts = {len(quantiles) for *_, quantiles in submission_printed.TABLE_6}
    return found(holds(counts == {printed}), f"{', '.join(map(str, counts))} in each row", counts=sorted(counts))


CHECKS = (
    claim(
        "review.epsilon-final.smallest",
        TO_LDHU,
        "Even at the smallest analytical ε, 30, the final model's estimate is below 1",
        fixed(judge_smallest, 1.0, "30", SUBMISSION),
    ),
    claim(
        "review.epsilon-final.smaller",
        TO_LDHU,
        "More noise leads to smaller estimates still, from all rounds and from the final model",
        fixed(judge_smaller, SUBMISSION),
    ),
    claim(
        "review.epsilon-final.overstated",
        TO_LDHU,
        "The analytical ε vastly overstates the true risk of releasing only the final model",
        fixed(judge_overstated, SUBMISSION),
    ),
    claim(
        "review.figure1.indistinguishable",
        TO_LDHU,
        "At the analytical ε of 30, observed cosines in Figure 1 can hardly be told by eye from the null distribution",
        fixed(judge_indistinguishable, TABLE_3[-1]),
    ),
    claim(
        "review.table2.wide",
        _REVIEWER,
        "Table 2's intervals from bound to estimate are huge in the columns of all rounds",
        fixed(judge_wide, TABLE_3),
    ),
    claim(
        "review.table6.quantiles",
        _REVIEWER,
        "Table 6 shows five quantiles",
        fixed(judge_quantiles, 5),
    ),
)
