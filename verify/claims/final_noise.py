"""Noise multipliers of the final version against the analytical ε printed beside them."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from canaryproof.kernels.certified import at_precision, gaussian_mechanism
from canaryproof.verify.claims import accounting, sampled_rdp
from canaryproof.verify.claims.final_printed import (
    EMNIST_COHORT,
    EMNIST_EPOCHS,
    EMNIST_ROUNDS,
    EMNIST_USERS,
    STACKOVERFLOW_CLIENTS,
    STACKOVERFLOW_COHORT,
    STACKOVERFLOW_DELTA,
    STACKOVERFLOW_ROUNDS,
    TABLE_3,
    TABLE_4,
    Row,
    half_unit,
)
from canaryproof.verify.claims.final_text import DOCUMENT
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.results import Context, Outcome, Verdict

_TAIL = "tail of the privacy loss, one round"
# By name what m in δ = m^(−1.1) may be; the first is what the text says.
_STACKOVERFLOW = {"clients": STACKOVERFLOW_CLIENTS}
_EMNIST = {
    "users": EMNIST_USERS,
    "users × epochs": EMNIST_USERS * EMNIST_EPOCHS,
    "rounds × clients a round": EMNIST_ROUNDS * EMNIST_COHORT,
    "users × epochs + 1,000 canaries": EMNIST_USERS * EMNIST_EPOCHS + 1000,
}


def loss_tail(epsilon: str, sigma: Fraction) -> arb:
    """P(privacy loss > ε) of the Gaussian mechanism, as a ball."""
    x = Fraction(epsilon) * sigma - 1 / (2 * sigma)
    return (arb(fmpq(x.numerator, x.denominator)) / arb(2).sqrt()).erfc() / 2


def calibrated_by_tail(row: Row, m: int) -> bool:
    """Whether the σ with P(loss > ε) = m^(−1.1) is proven to round to the printed one."""

    def prove() -> bool:
        sigma, margin, delta = Fraction(row.noise), half_unit(row.noise), arb(m) ** arb(fmpq(-11, 10))
        return bool(loss_tail(row.analytical, sigma + margin) < delta < loss_tail(row.analytical, sigma - margin))

    return at_precision(128, prove)


def _agreeing(row: Row, delta: float, compute: Callable[[float, float], dict[str, float]]) -> list[str]:
    """Names of the accountings of which some σ that prints like the row's gives its ε."""
    sigma, margin, epsilon = Fraction(row.noise), half_unit(row.noise), float(row.analytical)
    more, less = compute(float(sigma - margin), delta), compute(float(sigma + margin), delta)
    return [name for name in more if less[name] <= epsilon <= more[name]]


def judge_noise(row: Row, sizes: dict[str, int], rounds: int, sampling: float, participations: int) -> Outcome:
    """Judge a printed pair of noise multiplier and analytical ε under every accounting and every meaning of m."""

    def compute(sigma: float, delta: float) -> dict[str, float]:
        readings = accounting.readings(sigma, delta, rounds=rounds, participations=participations)
        return {
            **readings,
            "RDP improved, Poisson sampling": accounting.rdp(sigma, delta, rounds, sampling),
            "RDP classical, Poisson sampling": accounting.rdp(sigma, delta, rounds, sampling, "classical"),
            "RDP improved, signed series, Poisson sampling": sampled_rdp.rdp(sigma, delta, rounds, sampling),
        }

    agreeing = {}
    for name, m in sizes.items():
        names = [reading for reading in _agreeing(row, m**-1.1, compute) if reading != _TAIL]
        # This one is proven and not only computed.
        agreeing[name] = names + [_TAIL] * calibrated_by_tail(row, m)
    first, m = next(iter(sizes.items()))
    delta = m**-1.1
    stated = "exact Gaussian, one round"
    exact = gaussian_mechanism.epsilon(delta, Fraction(row.noise))
    proper = gaussian_mechanism.noise_multiplier(Fraction(row.analytical), delta)
    readings = [f"{reading}, m = {name}" for name, names in agreeing.items() for reading in names]
    verdict = Verdict.CONFIRMED if stated in agreeing[first] else Verdict.QUALIFIED if readings else Verdict.REFUTED
    finding = (
        f"at δ = m^(−1.1), m = {m:,}, one unamplified round of σ = {row.noise} has exactly ε = {exact.lo:.2f}, and "
        f"ε = {row.analytical} takes σ = {proper.lo:.4f}"
    )
    if verdict is Verdict.QUALIFIED:
        finding = f"only as: {'; '.join(readings)}. {finding[0].upper()}{finding[1:]}"
    if participations > 1:
        all_rounds = accounting.gaussian(float(row.noise), delta, participations)
        finding += f"; {participations} participations have ε = {all_rounds:.0f}"
    evidence = {"agreeing": agreeing, "epsilon": (exact.lo, exact.hi), "noise_multiplier": (proper.lo, proper.hi)}
    return found(verdict, finding, delta=delta, readings=compute(float(row.noise), delta), **evidence)


def _judge_stackoverflow(row: Row) -> Outcome:
    sampling = STACKOVERFLOW_COHORT / STACKOVERFLOW_CLIENTS
    return judge_noise(row, _STACKOVERFLOW, STACKOVERFLOW_ROUNDS, sampling, 1)


def _judge_emnist(row: Row) -> Outcome:
    return judge_noise(row, _EMNIST, EMNIST_ROUNDS, EMNIST_COHORT / EMNIST_USERS, EMNIST_EPOCHS)


def judge_emnist_size(rows: Sequence[Row] = TABLE_4[1:]) -> Outcome:
    """Judge which m of δ = m^(−1.1) all noise multipliers of Table 4 can have been calibrated with."""
    # Around users × epochs, a twentieth to both sides and more.
    fitting = [m for m in range(45_000, 56_000, 5) if all(calibrated_by_tail(row, m) for row in rows)]
    ends = min(fitting, default=0), max(fitting, default=0)
    by_name = {name: all(calibrated_by_tail(row, m) for row in rows) for name, m in _EMNIST.items()}
    users, both = by_name["users"], by_name["users × epochs"]
    verdict = Verdict.CONFIRMED if users else Verdict.QUALIFIED if both else Verdict.REFUTED
    places = EMNIST_USERS * EMNIST_EPOCHS
    finding = (
        f"read with m = users × epochs = {places:,}: by the tail of the loss all three σ fit only m from about "
        f"{ends[0]:,} to {ends[1]:,}, hence δ = {places**-1.1:.2e} and not {EMNIST_USERS**-1.1:.2e}"
    )
    return found(verdict, finding, fitting=ends, by_name=by_name)


def _judge_footnote_5(_: Context) -> Outcome:
    rows: list[dict[str, Any]] = []
    for row in TABLE_3[1:]:
        exact = gaussian_mechanism.epsilon(STACKOVERFLOW_DELTA, Fraction(row.noise))
        tail = accounting.loss_tail(float(row.noise), STACKOVERFLOW_DELTA)
        rows.append({"printed": row.analytical, "exact": (exact.lo, exact.hi), "tail": tail})
    listed = ", ".join(f"{row['exact'][0]:.2f} and not {row['printed']}" for row in rows)
    proven = all(calibrated_by_tail(row, STACKOVERFLOW_CLIENTS) for row in TABLE_3[1:])
    exact_too = all(
        accounting.gaussian(float(r.noise) - 5e-5, STACKOVERFLOW_DELTA) >= float(r.analytical) for r in TABLE_3[1:]
    )
    verdict = Verdict.CONFIRMED if exact_too else Verdict.QUALIFIED if proven else Verdict.REFUTED
    finding = (
        "as an upper bound, the ε that the loss exceeds with probability δ, 1/(2σ²) + z/σ; the mechanism's exact loss "
        f"of privacy is {listed}"
    )
    return found(verdict, finding, rows=rows)


# Section 5.4 prints no δ; these are usual ones for 60,000 examples.
_EXAMPLES, _BATCH = 60_000, 128
_DELTAS = {"1e-5": 1e-5, "1e-6": 1e-6, "1/n": 1.0 / _EXAMPLES, "n^(−1.1)": _EXAMPLES**-1.1}


def judge_canife_epsilon(printed: str = "34.5", sigma: float = 0.2) -> Outcome:
    """Judge the analytical ε of the comparison with CANIFE under every accounting at every usual δ."""
    rounds = round(_EXAMPLES / _BATCH)
    low, high = float(Fraction(printed) - half_unit(printed)), float(Fraction(printed) + half_unit(printed))
    values = {}
    for name, delta in _DELTAS.items():
        for reading, value in accounting.readings(sigma, delta, rounds=rounds, sampling=_BATCH / _EXAMPLES).items():
            values[f"{reading}, δ = {name}"] = value
    fitting = [name for name, value in values.items() if low <= value <= high]
    sampled = {name: value for name, value in values.items() if "Poisson" in name}
    finding = (
        f"only as: {'; '.join(fitting)}" if fitting else "under no accounting"
    ) + f". No δ is printed; with Poisson sampling, which CANIFE assumes, ε is {min(sampled.values()):.1f} or more"
    return found(Verdict.QUALIFIED if fitting else Verdict.REFUTED, finding, readings=values)


CHECKS = (
    *(
        claim(
            f"final.table3.row{number}.noise",
            f"{DOCUMENT}, Section 5.1 and Table 3",
            f"on StackOverflow, noise multiplier {row.noise} has an analytical ε of {row.analytical} at δ = m^(−1.1)",
            lambda _, row=row: _judge_stackoverflow(row),  # type: ignore[misc]
        )
        for number, row in enumerate(TABLE_3, 1)
        if row.analytical != "inf"
    ),
    claim(
        "final.section5.1.footnote5",
        f"{DOCUMENT}, footnote 5",
        "the analytical ε of 300, 100 and 30 equal the privacy loss of one unamplified Gaussian mechanism",
        _judge_footnote_5,
    ),
    *(
        claim(
            f"final.table4.row{number}.noise",
            f"{DOCUMENT}, Section 5.2.1 and Table 4",
            f"on EMNIST, noise multiplier {row.noise} has an analytical ε of {row.analytical}",
            lambda _, row=row: _judge_emnist(row),  # type: ignore[misc]
        )
        for number, row in enumerate(TABLE_4, 1)
        if row.analytical != "inf"
    ),
    claim(
        "final.table4.delta",
        f"{DOCUMENT}, Sections 5.1 and 5.2.1",
        "δ = m^(−1.1) with m the number of clients, for EMNIST 3,383",
        lambda _: judge_emnist_size(),
    ),
    claim(
        "final.section5.4.analytical",
        f"{DOCUMENT}, Section 5.4",
        "one epoch of Fashion-MNIST in batches of 128 at noise multiplier 0.2 has an analytical ε of 34.5",
        lambda _: judge_canife_epsilon(),
    ),
)
