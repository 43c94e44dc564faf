"""Judges of tables of lower bounds and estimates, which the first version and the submission share."""

from collections.abc import Callable, Sequence
from functools import partial

from canaryproof.verify.claims import accounting, final_all_rounds, final_bounds, final_figures
from canaryproof.verify.claims.final_printed import Row
from canaryproof.verify.claims.final_tables import FACTOR, near
from canaryproof.verify.claims.judging import claim, found, holds
from canaryproof.verify.claims.v1_judging import (
    Judge,
    below,
    decreasing,
    experiment,
)
from canaryproof.verify.claims.v1_printed import columns
from canaryproof.verify.results import Check, Outcome, Verdict


def judge_threat_models(rows: Sequence[Row]) -> Outcome:
    """Judge that the privacy loss is smaller when the final model alone is seen, by estimates and by lower bounds."""
    table = columns(rows)
    estimates = [a > b for a, b in zip(table["estimate_all"], table["estimate_final"], strict=True)]
    bounds = [a > b for a, b in zip(table["lower_all"], table["lower_final"], strict=True)]
    ratio = min(a / b for a, b in zip(table["estimate_all"], table["estimate_final"], strict=True))
    verdict = Verdict.REFUTED
    if all(estimates):
        verdict = Verdict.CONFIRMED if all(bounds) and ratio >= FACTOR else Verdict.QUALIFIED
    against = ", ".join(
        f"at noise {row.noise} {row.lower_all} for all iterates and {row.lower_final} for the final model, which is "
        "one of them"
        for row, lower in zip(rows, bounds, strict=True)
        if not lower
    )
    return found(
        verdict,
        f"by the estimates in {sum(estimates)} of {len(rows)} rows, by a factor of {ratio:.3g} at least; by the 95% "
        f"lower bounds in {sum(bounds)}{f': {against}' if against else ''}",
        estimates=estimates,
        bounds=bounds,
    )


def judge_analytical(rows: Sequence[Row], delta: float, rounds: int) -> Outcome:
    """Judge that no estimate from all iterates is above the analytical ε printed beside it.

    Parameters
    ----------
    rows
        Rows with noise.
    delta, rounds
        δ and the rounds of training.
    """
    listed, ratios = [], []
    for row in rows:
        bound = float(row.analytical.replace("k", "e3"))
        ratios.append(float(row.estimate_all) / bound)
        if ratios[-1] > 1.0:
            once = accounting.gaussian(float(row.noise), delta)
            alone = final_all_rounds.algorithm_3(rounds, 1.0 / float(row.noise), delta)
            listed.append(
                f"{row.estimate_all} at noise {row.noise}, above {row.analytical} (a round known to the adversary: "
                f"{once:.4g}; what the algorithm tends to with noise and canaries alone: {alone:.4g})"
            )
    return found(
        holds(not listed),
        "; ".join(listed) + "; an estimate is no lower bound, so that this speaks against the estimate"
        if listed
        else f"estimate over analytical ε is {', '.join(f'{ratio:.3g}' for ratio in ratios)}",
        ratios=ratios,
    )


def judge_separation(rows: Sequence[Row], least: float = 10.0) -> Outcome:
    """Judge that estimates from all iterates are far above the lower bounds: by a factor of ten or more."""
    ratios = [float(row.estimate_all) / float(row.lower_all) for row in rows]
    return found(
        holds(min(ratios) >= least),
        f"by factors of {', '.join(f'{ratio:.3g}' for ratio in ratios)}; no bound from 1,000 canaries exceeds "
        f"{max(final_bounds.largest_bounds(1000).values()):.2f}",
        ratios=ratios,
    )


def judge_high(rows: Sequence[Row], vacuous: float = 5.0) -> Outcome:
    """Judge that the estimates from all iterates are high: at least the ε = 5 that the documents call near certainty.

    Parameters
    ----------
    rows
        A table's rows.
    vacuous
        What counts as high.
    """
    low = [row for row in rows if float(row.estimate_all) < vacuous]
    verdict = Verdict.CONFIRMED if not low else Verdict.QUALIFIED if len(low) < len(rows) else Verdict.REFUTED
    listed = ", ".join(f"{row.estimate_all} at noise {row.noise}" for row in low)
    finding = f"{len(rows) - len(low)} of {len(rows)} are {vacuous:g} or more" + (f"; not {listed}" if low else "")
    return found(verdict, finding, low=[row.noise for row in low])


def judge_regime(rows: Sequence[Row]) -> Outcome:
    """Judge that with noise the final model's estimates are around one."""
    values = [float(row.estimate_final) for row in rows]
    agreed = all(near(value, 1.0) for value in values)
    listed = ", ".join(map(str, values))
    return found(holds(agreed), f"the estimates are {listed}; about is taken as a factor of {FACTOR:g}", values=values)


def figure(
    make: Callable[[str, str, str, Judge], Check], number: int, rows: Sequence[Row], delta: float
) -> list[Check]:
    """Return the claims on a figure of cosines that a table's estimates decide, for canaries seen once.

    Parameters
    ----------
    make
        Maker of the document's claims.
    number
        Number of the figure.
    rows
        The table, whose first row has no noise.
    delta
        δ.
    """
    return [
        make(
            f"figure{number}.separable",
            f"Figure {number}",
            "without noise the cosines of observed canaries are easily separable from the null distribution",
            partial(final_figures.judge_separable, rows[0], delta),
        ),
        make(
            f"figure{number}.noise",
            f"Figure {number}",
            "as the noise grows, the cosines of observed canaries approach the null distribution",
            partial(final_figures.judge_less_separable, rows, delta),
        ),
    ]


def checks(
    make: Callable[[str, str, str, Judge], Check],
    table: str,
    name: str,
    rows: Sequence[Row],
    delta: float,
    rounds: int,
    data: str,
) -> tuple[Check, ...]:
    """Return the claims of a table of lower bounds and estimates that all such tables allow.

    Parameters
    ----------
    make
        Maker of the document's claims.
    table, name
        Table in ids, such as ``v1.table3``, and in words.
    rows
        The table, whose first row has no noise.
    delta, rounds
        δ and the rounds of training.
    data
        What decides the rows.
    """
    document, place = table.split(".")
    source, values = f"Table {place.removeprefix('table')}", columns(rows)
    # From here on some canary is missed, or taken for one that was not there.
    erring = [row for row in rows if float(row.lower_all) < 6.0]
    return (
        *(
            experiment(
                table,
                name,
                number,
                f"at noise multiplier {row.noise} the lower bound and the estimate are {row.lower_all} and "
                f"{row.estimate_all} from all iterates, {row.lower_final} and {row.estimate_final} from the final "
                "model",
                data,
            )
            for number, row in enumerate(rows, 1)
        ),
        make(
            f"{place}.bounds",
            source,
            "the 95% lower bounds lie below the estimates",
            lambda: below(
                [
                    *zip(values["lower_all"], values["estimate_all"], strict=True),
                    *zip(values["lower_final"], values["estimate_final"], strict=True),
                ]
            ),
        ),
        make(
            f"{place}.decreasing",
            source,
            "lower bounds and estimates fall as the noise grows",
            lambda: decreasing(values),
        ),
        make(
            f"{place}.final",
            f"{source} and its caption",
            "the privacy loss is much lower if the final model alone is seen",
            partial(judge_threat_models, rows),
        ),
        make(
            f"{place}.below-analytical",
            source,
            "the analytical ε bounds what all iterates tell: no estimate is above it",
            partial(judge_analytical, rows[1:], delta, rounds),
        ),
        make(
            f"{place}.row1.cap",
            source,
            f"1k canaries, told apart without noise, give the 95% lower bound {rows[0].lower_all}",
            partial(final_bounds.judge_cap, rows[0]),
        ),
        claim(
            f"{document}.{place}.lower-final",
            name,
            f"the lower bounds {', '.join(row.lower_final for row in rows)} belong to the estimates "
            f"{', '.join(row.estimate_final for row in rows)}",
            lambda context: final_bounds.judge_fit(context, rows, delta, f"{table}.lower-final"),
        ),
        claim(
            f"{document}.{place}.lower-all",
            name,
            f"where the attack errs, the lower bounds {', '.join(row.lower_all for row in erring)} from all iterates "
            f"belong to the estimates {', '.join(row.estimate_all for row in erring)}",
            lambda context: final_all_rounds.judge_lower_all(context, erring, rounds, delta, f"{table}.lower-all"),
        ),
    )
