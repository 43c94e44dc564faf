"""Noise multipliers of the final version against the analytical ε printed in the same rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from flint import arb, fmpq

from canaryproof.kernels.certified import at_precision, gaussian_mechanism
from canaryproof.verify.papers.accounting import analytical
from canaryproof.verify.papers.check.documents import FINAL
from canaryproof.verify.papers.check.results import Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import Printed, conclude, fixed, holds, number, prints, rounding
from canaryproof.verify.papers.claims.transcripts import Final, Row

_NOISY_3, _NOISY_4 = Final.TABLE_3[1:], Final.TABLE_4[1:]
_TAIL = "tail of the privacy loss, one round"
# By name what m in δ = m^(−1.1) may be; the first is what the text says.
_STACKOVERFLOW = {"clients": Final.STACKOVERFLOW_CLIENTS}
_EMNIST = {
    "users": Final.EMNIST_USERS,
    "users × epochs": Final.EMNIST_USERS * Final.EMNIST_EPOCHS,
    "rounds × clients a round": Final.EMNIST_ROUNDS * Final.EMNIST_COHORT,
    "users × epochs + 1,000 canaries": Final.EMNIST_USERS * Final.EMNIST_EPOCHS + 1000,
}


def loss_tail(epsilon: str, sigma: Fraction) -> arb:
    """P(privacy loss > ε) of the Gaussian mechanism, as a ball."""
    x = Fraction(epsilon) * sigma - 1 / (2 * sigma)
    return (arb(fmpq(x.numerator, x.denominator)) / arb(2).sqrt()).erfc() / 2


def calibrated_by_tail(row: Row, m: int) -> bool:
    """Whether the σ with P(loss > ε) = m^(−1.1) is proven to round to the printed one."""

    def prove() -> bool:
        delta = arb(m) ** arb(fmpq(-11, 10))
        most, least = (loss_tail(row.analytical, sigma) for sigma in rounding(row.noise))
        return bool(least < delta < most)

    return at_precision(128, prove)


@dataclass(frozen=True)
class AccountedTraining:
    """A table's training, as accountings take it."""

    rounds: int
    sampling: float
    participations: int

    def readings(self, sigma: float, delta: float) -> dict[str, float]:
        """Return ε by accounting."""
        alone = analytical.readings(sigma, delta, rounds=self.rounds, participations=self.participations)
        return alone | analytical.sampled_readings(sigma, delta, self.rounds, self.sampling)


@cache
def _agreeing(row: Row, m: int, training: AccountedTraining) -> tuple[str, ...]:
    """Names of the accountings at δ = m^(−1.1) of which some σ that prints like the row's gives its ε."""
    more, less = (training.readings(float(sigma), m**-1.1) for sigma in rounding(row.noise))
    names = [name for name in more if name != _TAIL and less[name] <= float(row.analytical) <= more[name]]
    # The tail is proven and not only computed.
    return (*names, *[_TAIL] * calibrated_by_tail(row, m))


def judge_no_noise(row: Row) -> Outcome:
    """Judge the analytical ε of a row without noise: infinite, and nowhere else."""
    right = (Fraction(row.noise) == 0) == (row.analytical == "inf")
    finding = "without noise a release with a client and one without have no value in common: δ(ε) = 1 for every ε"
    return conclude(holds(right), finding, noise=row.noise, analytical=row.analytical)


def judge_noise(row: Row, rows: Sequence[Row], sizes: Mapping[str, int], training: AccountedTraining) -> Outcome:
    """Judge a printed pair of noise multiplier and analytical ε under every accounting and every meaning of m.

    A reading is one of the table's training, and must fit all its rows.
    """
    agreeing = {name: list(_agreeing(row, m, training)) for name, m in sizes.items()}
    shared = {
        name: [
            reading for reading in names if all(reading in _agreeing(other, sizes[name], training) for other in rows)
        ]
        for name, names in agreeing.items()
    }
    first = next(iter(sizes))
    stated = "exact Gaussian, one round"
    # Numbers are shown at the first m that fits.
    m = next((m for name, m in sizes.items() if shared[name]), sizes[first])
    delta = m**-1.1
    exact = gaussian_mechanism.epsilon(delta, Fraction(row.noise))
    proper = gaussian_mechanism.noise_multiplier(Fraction(row.analytical), delta)
    tail = analytical.loss_tail(float(row.noise), delta)
    # Where the text says what m is and that ε is of one round, neither is part of the reading.
    readings = [
        f"{reading}, m = {name}" if len(sizes) > 1 else reading.removesuffix(", one round")
        for name, names in shared.items()
        for reading in names
    ]
    verdict = holds(stated in shared[first], readings)
    finding = (
        f"at δ = m^(−1.1), m = {m:,} (δ = {delta:.2e}), one unamplified round of σ = {row.noise} has exactly ε = "
        f"{exact.lo:.2f}, and its loss exceeds {tail:.2f} with probability δ; ε = {row.analytical} takes σ = "
        f"{proper.lo:.4f}"
    )
    if verdict is Verdict.QUALIFIED:
        finding = f"only as {'; or as '.join(readings)}, in all rows alike. {finding[0].upper()}{finding[1:]}"
    if training.participations > 1:
        all_rounds = analytical.gaussian(float(row.noise), delta, training.participations)
        finding += (
            f". The {training.participations} rounds of a client have ε = {all_rounds:.0f}, see `final.table4.epochs`"
        )
    evidence: dict[str, Any] = {
        "agreeing": agreeing,
        "agreeing_in_all_rows": shared,
        "epsilon": (exact.lo, exact.hi),
        "noise_multiplier": (proper.lo, proper.hi),
    }
    return conclude(verdict, finding, delta=delta, readings=training.readings(float(row.noise), delta), **evidence)


def _judge_stackoverflow(row: Row) -> Outcome:
    sampling = Final.STACKOVERFLOW_COHORT / Final.STACKOVERFLOW_CLIENTS
    return judge_noise(row, _NOISY_3, _STACKOVERFLOW, AccountedTraining(Final.STACKOVERFLOW_ROUNDS, sampling, 1))


def _judge_emnist(row: Row) -> Outcome:
    training = AccountedTraining(Final.EMNIST_ROUNDS, Final.EMNIST_COHORT / Final.EMNIST_USERS, Final.EMNIST_EPOCHS)
    return judge_noise(row, _NOISY_4, _EMNIST, training)


def _calibrated_exactly(row: Row, m: int) -> bool:
    """Whether the σ of which the mechanism's own ε at δ = m^(−1.1) is the row's rounds to the printed one."""
    proper = gaussian_mechanism.noise_multiplier(Fraction(row.analytical), m**-1.1)
    return prints(proper, row.noise)


def calibrated_sizes(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the ends of the interval of all m that calibrate every row's σ by the tail of the loss."""

    def solve(row: Row, end: int) -> float:
        tail = loss_tail(row.analytical, rounding(row.noise)[end])
        return float((tail ** arb(fmpq(-10, 11))).mid())

    return max(solve(row, 0) for row in rows), min(solve(row, 1) for row in rows)


def judge_size(rows: Sequence[Row], sizes: Mapping[str, int]) -> Outcome:
    """Judge which m of δ = m^(−1.1) all noise multipliers of a table can have been calibrated with."""
    low, high = at_precision(128, lambda: calibrated_sizes(rows))
    fitting = {name: m for name, m in sizes.items() if all(calibrated_by_tail(row, m) for row in rows)}
    stated = next(iter(sizes.values()))
    # The mechanism's own ε takes another m in each row.
    exact = [gaussian_mechanism.delta(Fraction(row.analytical), Fraction(row.noise)).hi ** (-10 / 11) for row in rows]
    listed = ", ".join(f"{name} = {m:,} (δ = {m**-1.1:.2e})" for name, m in fitting.items())
    finding = (
        f"by the tail of the loss {len(rows)} noise multipliers fit m from about {low:,.0f} to {high:,.0f}, as "
        f"{listed or 'no number in the text'}; {stated:,} is δ = {stated**-1.1:.2e}; by the exact ε they "
        f"would take {', '.join(f'{m:,.0f}' for m in exact)}"
    )
    verdict = holds(all(_calibrated_exactly(row, stated) for row in rows), fitting)
    if verdict is Verdict.QUALIFIED:
        finding = f"only {finding}"
    return conclude(verdict, finding, fitting=(low, high), by_name=list(fitting), exact=exact)


def judge_emnist_size(rows: Sequence[Row] = Final.TABLE_4[1:]) -> Outcome:
    """Judge that noise multipliers on EMNIST, of which no δ is printed, fit m = users × epochs and not the users."""
    outcome = judge_size(rows, _EMNIST)
    fitting = outcome.evidence["by_name"]
    held = outcome.verdict is Verdict.QUALIFIED and "users × epochs" in fitting and "users" not in fitting
    return conclude(holds(held), outcome.finding, **outcome.evidence)


def judge_epochs(rows: Sequence[Row], participations: int = Final.EMNIST_EPOCHS) -> Outcome:
    """Judge whether the analytical ε of a table bounds what a client loses that takes part once in every epoch."""
    values: list[dict[str, Any]] = []
    for row in rows:
        sigma = float(row.noise)
        single, composed = (analytical.gaussian(sigma, Final.EMNIST_DELTA, count) for count in (1, participations))
        values.append({"printed": row.analytical, "one round": single, "composed": composed})
    right = all(value["composed"] <= float(value["printed"]) for value in values)
    listed = ", ".join("{composed:.0f} and not {printed}".format(**value) for value in values)
    once = ", ".join(f"{value['one round']:.0f}" for value in values)
    finding = (
        f"for a client of {participations} rounds that the attacker knows, as footnote 5 assumes, all iterates seen, ε "
        f"at δ = {Final.EMNIST_DELTA:.1e} is {listed}; they are ε of a single round ({once}, but for the rounding that "
        "`final.table4.row2.noise` names), which footnote 5 says of StackOverflow alone, where each client has one"
    )
    return conclude(holds(right), finding, rows=values)


def judge_no_bound(rows: Sequence[Row]) -> Outcome:
    """Judge that no bound of ε is known where a client takes part at most so many times."""
    counts = 1, 2, 4, 8
    bounds = {
        row.noise: [analytical.gaussian(float(row.noise), Final.STACKOVERFLOW_DELTA, count) for count in counts]
        for row in rows
        if Fraction(row.noise) > 0
    }
    listed = "; ".join(f"{'/'.join(f'{value:.0f}' for value in row)} at noise {n}" for n, row in bounds.items())
    finding = (
        "only if a tight one of the final model is meant, as Sections 1, 4 and 5.2 say and this sentence does not: r "
        "rounds of σ compose as one of σ/√r (arXiv 1905.02383), a "
        f"bound: for {'/'.join(map(str, counts))} participations {listed}"
    )
    return conclude(holds(not bounds, bounds), finding, bounds=bounds)


def _judge_footnote_5() -> Outcome:
    rows: list[dict[str, Any]] = []
    for row in Final.TABLE_3[1:]:
        exact = gaussian_mechanism.epsilon(Final.STACKOVERFLOW_DELTA, Fraction(row.noise))
        tail = analytical.loss_tail(float(row.noise), Final.STACKOVERFLOW_DELTA)
        rows.append({"printed": row.analytical, "exact": (exact.lo, exact.hi), "tail": tail})
    listed = ", ".join(f"{row['exact'][0]:.2f} and not {row['printed']}" for row in rows)
    proven = all(calibrated_by_tail(row, Final.STACKOVERFLOW_CLIENTS) for row in Final.TABLE_3[1:])
    exact_too = all(
        analytical.gaussian(float(r.noise) - 5e-5, Final.STACKOVERFLOW_DELTA) >= float(r.analytical)
        for r in Final.TABLE_3[1:]
    )
    verdict = holds(exact_too, proven)
    finding = (
        "only as an upper bound, the ε that the loss exceeds with probability δ, 1/(2σ²) + z/σ; the mechanism's exact "
        f"loss of privacy is {listed}"
    )
    return conclude(verdict, finding, rows=rows)


# Section 5.4 prints no δ; these are usual ones.
_DELTAS = {"1e-5": 1e-5, "1e-6": 1e-6, "1/n": 1.0 / Final.FASHION_EXAMPLES, "n^(−1.1)": Final.FASHION_EXAMPLES**-1.1}


def judge_canife_epsilon(printed: str, sigma: float = float(Final.CANIFE_NOISE)) -> Outcome:
    """Judge the analytical ε of the comparison with CANIFE under every accounting at every usual δ."""
    rounds = round(Final.FASHION_EXAMPLES / Final.FASHION_BATCH)
    sampling = Final.FASHION_BATCH / Final.FASHION_EXAMPLES
    values = {}
    for name, delta in _DELTAS.items():
        for reading, value in analytical.readings(sigma, delta, rounds=rounds, sampling=sampling).items():
            values[f"{reading}, δ = {name}"] = value
    fitting = [name for name, value in values.items() if prints(value, printed)]
    sampled = {name: value for name, value in values.items() if "Poisson" in name}
    finding = (
        (f"only as {'; or as '.join(fitting)}" if fitting else "under no accounting")
        + ". No δ is printed. All that fit are of one round, though the section says that CANIFE's assumptions hold; "
        f"with its Poisson sampling ε is {min(sampled.values()):.1f} or more"
    )
    judged = number(printed, values, stated=())
    return conclude(judged.verdict, finding, readings=values, **judged.evidence)


CHECKS = (
    *(
        FINAL.claim(
            f"table{table}.row{number}.noise",
            f"Section {section} and Table {table}",
            f"On {data}, noise multiplier {row.noise} has an analytical ε of "
            f"{row.analytical.replace('inf', '∞')} {delta}",
            fixed(judge if Fraction(row.noise) else judge_no_noise, row),
        )
        for table, section, data, delta, rows, judge in (
            (3, "5.1", "StackOverflow", "at δ = m^(−1.1)", Final.TABLE_3, _judge_stackoverflow),
            (4, "5.2.1", "EMNIST", "(no δ is printed)", Final.TABLE_4, _judge_emnist),
        )
        for number, row in enumerate(rows, 1)
    ),
    FINAL.claim(
        "section5.1.footnote5",
        "footnote 5",
        "The analytical ε of 300, 100 and 30 equal the privacy loss of one unamplified Gaussian mechanism",
        fixed(_judge_footnote_5),
    ),
    FINAL.claim(
        "table3.delta",
        "Section 5.1",
        "The target is δ = m^(−1.1) with m the number of clients, 341k",
        fixed(judge_size, _NOISY_3, _STACKOVERFLOW),
    ),
    FINAL.claim(
        "table4.epochs",
        "Section 5.2.1 and Table 4",
        "The analytical ε of 300, 100 and 30, called the analytical upper bound, bound ε of 15 epochs on EMNIST",
        fixed(judge_epochs, _NOISY_4),
    ),
    FINAL.claim(
        "section5.no-bound",
        "Section 5",
        "Where a user's participations are capped, no analytical bound of ε is known",
        fixed(judge_no_bound, Final.TABLE_3),
    ),
    FINAL.claim(
        "section5.4.analytical",
        "Section 5.4",
        "One epoch of Fashion-MNIST in batches of 128 at noise multiplier 0.2 has an analytical ε of 34.5",
        Printed(Final.CANIFE_ANALYTICAL, judge_canife_epsilon),
    ),
)
