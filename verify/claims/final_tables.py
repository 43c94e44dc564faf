"""What the numbers of the final version's Tables 3, 4 and 6 and of Section 5.4 say of one another."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import integrate, special

from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.claims.final_printed import (
    EMNIST_DELTA,
    EMNIST_ROUNDS,
    STACKOVERFLOW_DELTA,
    STACKOVERFLOW_ROUNDS,
    TABLE_3,
    TABLE_4,
    TABLE_6,
    Row,
)
from canaryproof.verify.claims.final_text import DOCUMENT
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.oneshot import estimators
from canaryproof.verify.results import Context, Outcome, Verdict

_COLUMNS = ("lower_all", "estimate_all", "lower_final", "estimate_final")


def _decided(holds: bool) -> Verdict:
    return Verdict.CONFIRMED if holds else Verdict.REFUTED


def _numbers(rows: Sequence[Row], column: str) -> list[float]:
    return [float(getattr(row, column)) for row in rows]


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
    return found(_decided(not faults), finding, faults=faults)


def _fraction_of_analytical(rows: Sequence[Row]) -> list[float]:
    return [float(row.estimate_all) / float(row.analytical) for row in rows if row.analytical != "inf"]


def judge_close(rows: Sequence[Row], factor: float) -> Outcome:
    """Judge that the estimates of given rows are within a factor of the analytical ε."""
    ratios = _fraction_of_analytical(rows)
    holds = all(1.0 / factor <= ratio <= factor for ratio in ratios)
    finding = f"ε̂/ε = {', '.join(f'{ratio:.2f}' for ratio in ratios)}, within a factor of {factor}"
    if any(ratio > 1.0 for ratio in ratios):
        finding += "; but above 1 an estimate exceeds what is proven to be an upper bound"
    return found(_decided(holds), finding, ratios=ratios, factor=factor)


def largest_cosine(rounds: int, distance: float) -> tuple[float, float, float]:
    """Mean, deviation and skewness of a canary's largest standardised cosine, seen in one of the rounds.

    Parameters
    ----------
    rounds
        Rounds, with independent N(0, 1) cosines in those without the canary.
    distance
        Mean of the one with it; 0 for an unobserved canary.
    """
    x = np.linspace(-8.0, distance + 10.0, 200_001)
    above = -np.expm1((rounds - 1) * special.log_ndtr(x) + special.log_ndtr(x - distance))
    # Moments about the lower end a: E(X − a)^p = ∫ p (x − a)^(p − 1) P(X > x) dx.
    first, second, third = (float(integrate.trapezoid(p * (x - x[0]) ** (p - 1) * above, x)) for p in (1, 2, 3))
    variance = second - first**2
    skewness = (third - 3.0 * first * variance - first**3) / variance**1.5
    return float(x[0]) + first, math.sqrt(variance), skewness


def algorithm_3(rounds: int, noise_multiplier: float, delta: float) -> float:
    """Limit of Algorithm 3's ε̂ for many canaries where rounds hold one canary and noise, and no data.

    Parameters
    ----------
    rounds, noise_multiplier, delta
        Those of the training.
    """
    mean_0, deviation_0, _ = largest_cosine(rounds, 0.0)
    mean, deviation, _ = largest_cosine(rounds, 1.0 / noise_multiplier)
    distance, ratio = (mean - mean_0) / deviation_0, deviation / deviation_0
    return float(estimators.both_directions(delta, np.asarray(distance), np.asarray(ratio)))


def judge_tight() -> Outcome:
    """Judge that Algorithm 3's estimates from all rounds are tight: by the tables, and without data exactly."""
    rows: list[dict[str, Any]] = []
    tables = ((TABLE_3, STACKOVERFLOW_ROUNDS, STACKOVERFLOW_DELTA), (TABLE_4, EMNIST_ROUNDS, EMNIST_DELTA))
    for table, rounds, delta in tables:
        for row in table[1:]:
            limit = algorithm_3(rounds, float(row.noise), delta)
            printed, ratio = float(row.estimate_all), float(row.estimate_all) / float(row.analytical)
            rows.append(
                {"noise": row.noise, "analytical": row.analytical, "printed": printed, "ratio": ratio, "limit": limit}
            )
    ratios = [row["ratio"] for row in rows]
    skewness = largest_cosine(STACKOVERFLOW_ROUNDS, 0.0)[2]
    limits = ", ".join(f"{row['limit']:.0f} for {row['analytical']}" for row in rows[:3])
    finding = (
        f"printed ε̂/ε runs from {min(ratios):.2f} to {max(ratios):.2f}; with noise and canaries alone, where ε is "
        f"known, Algorithm 3 tends to {limits}: it fits a Gaussian to the largest of {STACKOVERFLOW_ROUNDS} cosines, "
        f"whose skewness is {skewness:.2f}, so that closeness hangs on how far the data attenuate a canary"
    )
    holds = all(0.8 <= ratio <= 1.0 for ratio in ratios)
    return found(_decided(holds), finding, rows=rows, skewness=skewness)


def _judge_separation(_: Context) -> Outcome:
    ratios = [float(row.estimate_all) / float(row.lower_all) for row in TABLE_3[:2]]
    return found(
        _decided(min(ratios) > 10.0),
        f"{ratios[0]:.0f} and {ratios[1]:.0f} times; no bound from 1,000 canaries can exceed 6.26",
        ratios=ratios,
    )


def _judge_final_lower(_: Context) -> Outcome:
    ratios = [float(r.estimate_all) / float(r.estimate_final) for r in (*TABLE_3, *TABLE_4)]
    finding = f"smaller by factors of {min(ratios):.1f} to {max(ratios):.0f}"
    return found(_decided(min(ratios) > 2.0), finding, ratios=ratios)


def _judge_order_of_one(_: Context) -> Outcome:
    values = _numbers(TABLE_3[1:], "estimate_final")
    finding = f"{', '.join(f'{value:g}' for value in values)}: within a factor of two of 1 at every noise above 0"
    return found(_decided(all(0.5 <= value <= 2.0 for value in values)), finding, values=values)


def judge_gaussianity(rows: Sequence[tuple[str, tuple[float, ...]]] = TABLE_6) -> Outcome:
    """Judge that Anderson's test cannot rule out that the sixteen sets of cosines are normal."""
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
    closer = bound - near < bound - far
    finding = (
        f"closer, {near / bound:.0%} of the analytical ε against {far / bound:.1%} and {near / far:.1f} times "
        f"CANIFE's; but the distance shrinks only from {bound - far:.1f} to {bound - near:.1f}"
    )
    return found(_decided(closer), finding, shares=(near / bound, far / bound))


CHECKS = (
    claim(
        "final.section4.1.moderate",
        f"{DOCUMENT}, Section 4.1 and caption of Table 3",
        "at moderate noise the estimates from all rounds are in the ballpark of the analytical ε (Tables 3 and 4)",
        lambda _: judge_close((TABLE_3[2], TABLE_4[2]), 1.5),
    ),
    claim(
        "final.section5.tight",
        f"{DOCUMENT}, Section 5",
        "where all iterates are observed, the method gives a tight estimate of ε",
        lambda _: judge_tight(),
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
        lambda _: judge_close(TABLE_3[1:3], 1.3),
    ),
    claim(
        "final.section5.2.1.close",
        f"{DOCUMENT}, Section 5.2.1",
        "with little noise EMNIST's estimates from all iterates are close to the analytical ε (258 and 300)",
        lambda _: judge_close(TABLE_4[1:2], 1.3),
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
            f"final.table{number}.order",
            f"{DOCUMENT}, Table {number}",
            "every column falls with the noise, lower bounds are below estimates, the final model tells less than all",
            lambda _, rows=rows: judge_order(rows),  # type: ignore[misc]
        )
        for number, rows in ((3, TABLE_3), (4, TABLE_4))
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
