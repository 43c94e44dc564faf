"""Judges that the claims of the first version and of the submission share: printed numbers, orders, noise, caps."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from canaryproof.kernels.certified import gaussian_mechanism as certified_mechanism
from canaryproof.verify.papers.accounting import analytical
from canaryproof.verify.papers.check.documents import FINAL, Document
from canaryproof.verify.papers.check.results import Check, Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import Within, close, conclude, fixed, holds, rounding
from canaryproof.verify.papers.claims import (
    distributions,
    final_bounds,
    final_noise,
    final_setting,
    final_tables,
    simulated_tables,
)
from canaryproof.verify.papers.claims.final_tables import FACTOR
from canaryproof.verify.papers.claims.needs_data import NeedsData
from canaryproof.verify.papers.claims.transcripts import FirstVersion, Row, columns

# The data that decide a row of results.
STACKOVERFLOW = "federated StackOverflow and a word model trained on it"
_FINAL = {
    check.id: check
    for part in (final_setting, final_noise, final_bounds, final_tables, simulated_tables)
    for check in part.CHECKS
}


def repeated(document: Document, id: str, section: str, original: str, statement: str = "") -> Check:  # noqa: A002
    """Return a statement that the final version repeats with the same numbers: it is judged once, there."""
    check = _FINAL[f"{FINAL.id}.{original}"]
    return document.claim(id, section, statement or check.statement, check.judge)


# Privacy accounting: noise, and what noise alone gives.

# ε by name of the reading, as functions of the noise multiplier.
Readings = Callable[[float], dict[str, float]]


def sampled(noise_multiplier: float, delta: float, rounds: int, sampling: float) -> dict[str, float]:
    """Return ε by Rényi accounting with Poisson sampling, by name of the reading, which tells the rate."""
    values = analytical.sampled_readings(noise_multiplier, delta, rounds, sampling)
    return {f"{name} at {sampling:.3g}": value for name, value in values.items()}


def calibrated(
    multiplier: str,
    epsilon: str,
    readings: Readings,
    delta: float,
    stated: frozenset[str],
    table: Sequence[tuple[str, str]] = (),
) -> Outcome:
    """Judge a printed ε under every reading, within the rounding of the noise multiplier and of an ε with decimals.

    A reading that the text does not state is of a whole table: it must hold for its other rows, noise and ε, too.
    """
    values, holding = _holding(multiplier, epsilon, readings)
    others = [_holding(*row, readings)[1] for row in table if row[0] != multiplier]
    common = [name for name in holding if all(name in other for other in others)]
    right = [name for name in holding if name in stated]
    exact = certified_mechanism.epsilon(delta, float(multiplier))
    goal = float(sum(rounding(epsilon), Fraction(0)) / 2)
    nearest = min(values, key=lambda name: abs(values[name] / goal - 1))
    named = right or common
    of_table = " of the whole table" if others and not right else ""
    finding = (
        f"holds under {len(named)} of {len(values)} readings{of_table}, such as {named[0]} ({values[named[0]]:.6g})"
        if named
        else f"under none of {len(values)} readings{of_table}; the nearest is {nearest} with {values[nearest]:.6g}"
    ) + f"; one round has ε = {exact.lo:.8g} by its enclosure"
    of_all: dict[str, Any] = {"common": common} if others else {}
    return conclude(holds(right, common), finding, delta=delta, readings=values, holding=holding, **of_all)


def _holding(multiplier: str, epsilon: str, readings: Readings) -> tuple[dict[str, float], list[str]]:
    """Return ε by every reading, and the readings under which the printed one comes out."""
    # A whole number is no rounded result but what the noise was calibrated to, by a search that ends near it.
    goal = float(sum(rounding(epsilon), Fraction(0)) / 2)
    low, high = (float(end) for end in rounding(epsilon)) if "." in epsilon else (goal * 0.999, goal * 1.001)
    values, most, fewest = (readings(float(s)) for s in (multiplier, *rounding(multiplier)))
    return values, [name for name in values if fewest[name] <= high and most[name] >= low]


# Tables of lower bounds and estimates.


def judge_threat_models(rows: Sequence[Row]) -> Outcome:
    """Judge that estimates are far lower when the final model alone is seen; list lower bounds too."""
    table = columns(rows)
    estimates = [a > b for a, b in zip(table["estimate_all"], table["estimate_final"], strict=True)]
    bounds = [a > b for a, b in zip(table["lower_all"], table["lower_final"], strict=True)]
    ratio = min(a / b for a, b in zip(table["estimate_all"], table["estimate_final"], strict=True))
    verdict = holds(ratio >= FACTOR, all(estimates))
    against = ", ".join(
        f"at noise {row.noise} {row.lower_all} for all iterates and {row.lower_final} for the final model, which is "
        "one of them"
        for row, lower in zip(rows, bounds, strict=True)
        if not lower
    )
    return conclude(
        verdict,
        f"by the estimates in {sum(estimates)} of {len(rows)} rows, by a factor of {ratio:.3g} at least; by the 95% "
        f"lower bounds in {sum(bounds)}{f': {against}' if against else ''}",
        estimates=estimates,
        bounds=bounds,
    )


def judge_separation(rows: Sequence[Row], least: float = 10.0) -> Outcome:
    """Judge that estimates from all iterates are far above the lower bounds: by a factor of ten or more."""
    ratios = [float(row.estimate_all) / float(row.lower_all) for row in rows]
    return conclude(
        holds(min(ratios) >= least),
        f"by factors of {', '.join(f'{ratio:.3g}' for ratio in ratios)}; no bound from 1,000 canaries exceeds "
        f"{max(final_bounds.largest_bounds(1000).values()):.2f}",
        ratios=ratios,
    )


def judge_regime(rows: Sequence[Row], stated: bool = True) -> Outcome:
    """Judge that with noise the final model's estimates are around one, where the text says so or where it does not."""
    values = [float(row.estimate_final) for row in rows]
    near = close(values, Within.MAGNITUDE) is Verdict.CONFIRMED
    finding = f"the estimates are {', '.join(row.estimate_final for row in rows)}, where ∼ 1 is {Within.MAGNITUDE}"
    if not stated:
        finding = f"only if this regime is ε ∼ 1, as later versions say: {finding}"
    return conclude(holds(near and stated, near), finding, values=values)


def separable(document: Document, row: Row, law: distributions.EstimateLaw) -> Check:
    """Return the claim on Figure 1 that a table's first row decides, for canaries seen once."""
    return document.claim(
        "figure1.separable",
        "Figure 1",
        "Without noise the distribution of observed cosines is easily separable from the null distribution",
        fixed(final_tables.judge_separable, row, FirstVersion.DELTA, law),
    )


def results_checks(
    document: Document,
    table: int,
    rows: Sequence[Row],
    measured: Callable[[Row], NeedsData],
    section: str = "",
    delta: float = 0.0,
) -> tuple[Check, ...]:
    """Return the claims of a table of lower bounds and estimates that all such tables allow.

    They have the section's name, and the δ that a table's analytical ε fit where none is printed.
    """
    name = f"Table {table}"
    return (
        *(
            document.claim(
                f"table{table}.row{number}",
                name,
                f"At noise multiplier {row.noise} the lower bound and the estimate are {row.lower_all} and "
                f"{row.estimate_all} from all iterates, {row.lower_final} and {row.estimate_final} from the final "
                "model",
                measured(row),
            )
            for number, row in enumerate(rows, 1)
        ),
        document.claim(
            f"table{table}.final",
            f"{name} and its caption",
            "Estimates are far lower if the final model alone is seen",
            fixed(judge_threat_models, rows),
        ),
        document.claim(
            f"table{table}.row1.cap",
            f"{section} and {name}" if section else name,
            f"From 1k canaries at noise {rows[0].noise}, told apart easily, the 95% lower bound is {rows[0].lower_all}",
            fixed(final_bounds.judge_cap, rows[0], delta),
        ),
    )
