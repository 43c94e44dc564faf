"""The submission's Appendix D, Table 3 and Figure 2: estimates on EMNIST."""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

from canaryproof.kernels.certified import gaussian_mechanism as mechanism
from canaryproof.verify.claims import accounting, estimate_law, final_printed
from canaryproof.verify.claims.final_tables import FACTOR, judge_order
from canaryproof.verify.claims.judging import found, holds
from canaryproof.verify.claims.submission_printed import SUBMISSION, TABLE_2, TABLE_3
from canaryproof.verify.claims.v1_accounting import calibrated, noise_alone, noise_mean, sampled
from canaryproof.verify.claims.v1_estimates import checks, judge_high
from canaryproof.verify.claims.v1_judging import (
    placed,
    printed,
)
from canaryproof.verify.claims.v1_printed import columns
from canaryproof.verify.results import Check, Outcome, Verdict

EMNIST = "federated EMNIST and a convolutional network trained on it"
USERS, EPOCHS, COHORT = 3383, 5, 34
_ROUNDS = round(EPOCHS * USERS / COHORT)
_DELTA = USERS**-1.1
_NOISE = tuple((row.noise, row.analytical) for row in TABLE_3[1:])
_FIGURE_2 = ("0.16", "0.18", "0.195")


def judge_rounds() -> Outcome:
    """Judge that the submission's and the final version's training are about equally many rounds."""
    ours = Fraction(EPOCHS * USERS, COHORT)
    final = Fraction(final_printed.EMNIST_EPOCHS * final_printed.EMNIST_USERS, final_printed.EMNIST_COHORT)
    return found(
        holds(abs(ours / final - 1) < Fraction(2, 100)),
        f"5 epochs of 34 clients a round are {float(ours):.1f} rounds, the final version's 15 of 101 are "
        f"{float(final):.1f}: as many rounds at three times the sampling rate and three times the participations",
        rounds=(float(ours), float(final)),
    )


def common_delta(rows: Sequence[tuple[str, str]]) -> tuple[float, float]:
    """Return the δ at which one round of the Gaussian mechanism has every row's ε, as printed: empty if low > high.

    Parameters
    ----------
    rows
        Noise multipliers and analytical ε, as printed.

    Returns
    -------
    Ends of the interval, proven: δ falls with ε.
    """
    ends = [[mechanism.delta(end, Fraction(sigma)) for end in printed(epsilon)] for sigma, epsilon in rows]
    return max(high.hi for _, high in ends), min(low.lo for low, _ in ends)


def judge_epsilon(multiplier: str, epsilon: str) -> Outcome:
    """Judge a printed analytical ε, of which the text says neither δ nor the accounting.

    It is tried at δ = m^(−1.1), as on StackOverflow, under every accounting; then at the one δ, if there is one, at
    which the exact Gaussian mechanism has the ε of all rows.

    Parameters
    ----------
    multiplier, epsilon
        As printed.
    """

    def readings(noise_multiplier: float) -> dict[str, float]:
        values: dict[str, float] = {}
        for size, m in {"users": USERS, "users × epochs": USERS * EPOCHS}.items():
            each = accounting.readings(noise_multiplier, m**-1.1, rounds=_ROUNDS, participations=EPOCHS)
            each |= sampled(noise_multiplier, m**-1.1, _ROUNDS, COHORT / USERS)
            values |= {f"{name}, m = {size}": value for name, value in each.items()}
        return values

    outcome = calibrated(multiplier, epsilon, readings, _DELTA, frozenset())
    five = accounting.gaussian(float(multiplier), _DELTA, EPOCHS)
    low, high = common_delta([(multiplier, epsilon), *(row for row in _NOISE if row[0] != multiplier)])
    verdict, finding = outcome.verdict, outcome.finding
    if verdict is Verdict.REFUTED and low <= high:
        verdict = Verdict.QUALIFIED
        finding = (
            f"only as one round of the exact Gaussian mechanism at a δ from {low:.6f} to {high:.6f}, which fits all "
            f"rows and is above 1/m = {1 / USERS:.1e}; at δ = m^(−1.1) {finding}"
        )
    finding += f"; {EPOCHS} rounds, one an epoch, are {five:.4g} at δ = {_DELTA:.2e}"
    return found(verdict, finding, common_delta=(low, high), **outcome.evidence)


def judge_delta(rows: Sequence[tuple[str, str]] = _NOISE) -> Outcome:
    """Judge that Table 3's analytical ε are at δ = m^(−1.1), the submission's choice on StackOverflow.

    Parameters
    ----------
    rows
        Noise multipliers and analytical ε, as printed.
    """
    low, high = common_delta(rows)
    one = f"all rows are one round of the Gaussian mechanism at a single δ, between {low:.6f} and {high:.6f}"
    return found(
        holds(low <= _DELTA <= high),
        f"m^(−1.1) = {_DELTA:.3g} with {USERS:,} users; {one if low <= high else 'no single δ fits the rows'}",
        common_delta=(low, high),
    )


def judge_epochs(rows: Sequence[tuple[str, str]] = _NOISE) -> Outcome:
    """Judge that the analytical ε bounds what a user loses who takes part in every epoch, at the δ that fits all rows.

    Parameters
    ----------
    rows
        Noise multipliers and analytical ε, as printed.
    """
    delta = max(_DELTA, common_delta(rows)[1])
    composed = [accounting.gaussian(float(sigma), delta, EPOCHS) for sigma, _ in rows]
    listed = ", ".join(f"{value:.1f} and not {row[1]}" for value, row in zip(composed, rows, strict=True))
    return found(
        holds(all(value <= float(row[1]) for value, row in zip(composed, rows, strict=True))),
        f"even at δ = {delta:.2g}, {EPOCHS} rounds known to the adversary have ε = {listed}",
        composed=composed,
        delta=delta,
    )


def judge_similar() -> Outcome:
    """Judge that both data sets' tables have the same order: with noise, of bounds and estimates, of threat models."""
    orders = {"StackOverflow": judge_order(TABLE_2), "EMNIST": judge_order(TABLE_3)}
    return found(
        holds(all(order.verdict is Verdict.CONFIRMED for order in orders.values())),
        "; ".join(f"{name}: {order.finding}" for name, order in orders.items()),
    )


def judge_close() -> Outcome:
    """Judge that at low noise the estimate from all iterates is close to the analytical ε."""
    row = TABLE_3[1]
    right = accounting.gaussian(float(row.noise), _DELTA, EPOCHS)
    once = accounting.gaussian(float(row.noise), _DELTA)
    ratios = {"printed": float(row.estimate_all) / float(row.analytical), "once": float(row.estimate_all) / once}
    ratios["epochs"] = float(row.estimate_all) / right
    return found(
        holds(min(ratios["once"], ratios["epochs"]) >= 1 / FACTOR),
        f"{row.estimate_all} is {ratios['printed']:.2f} of the printed {row.analytical}, the nearest of all rows, but "
        f"{ratios['once']:.2f} of the exact ε of one round ({once:.1f}) and {ratios['epochs']:.2f} of that of {EPOCHS} "
        f"({right:.1f}); close is taken as a factor of {FACTOR:g}",
        ratios=ratios,
    )


def judge_presentations() -> Outcome:
    """Judge the final model's estimates by noise alone, at δ = (users × epochs)^(−1.1), for one and five presentations.

    That δ is the one that the final version's noise multipliers on EMNIST fit.
    """
    delta = (USERS * EPOCHS) ** -1.1
    outcome = noise_alone(TABLE_3[1:], delta, _ROUNDS)
    medians = [
        estimate_law.quantile(estimate_law.fitted, 0.5, noise_mean(float(row.noise), _ROUNDS, EPOCHS), delta)
        for row in TABLE_3[1:]
    ]
    finding = (
        f"{outcome.finding}; if each took part in all {EPOCHS} epochs, as every user does, the medians would be "
        f"{', '.join(f'{median:.2f}' for median in medians)}"
    )
    return found(outcome.verdict, finding, outcome.design, five_presentations=medians, **outcome.evidence)


def judge_final() -> Outcome:
    """Judge that the results with noise fit between those of the final version, which is at other noise.

    All four columns fall with the noise there, so that a noise between two of its rows should have results between
    theirs, and one above its largest should have smaller ones.
    """
    names = tuple(columns(TABLE_3))
    ours, theirs = (
        [(float(row.noise), [float(getattr(row, name)) for name in names]) for row in rows]
        for rows in (TABLE_3, final_printed.TABLE_4)
    )
    misfits, count = [], 0
    for noise, values_here in ours[1:]:
        before = [values for level, values in theirs if level < noise][-1]
        after = next((values for level, values in theirs if level > noise), [0.0] * len(names))
        count += len(names)
        misfits += [
            f"{name} {value:g} at {noise:g}"
            for name, value, high, low in zip(names, values_here, before, after, strict=True)
            if not low < value < high
        ]
    return found(
        holds(not misfits),
        f"{count - len(misfits)} of {count} results fit, in spite of the other sampling rate; misfits: "
        f"{', '.join(misfits) or 'none'}",
        misfits=misfits,
    )


def judge_figure_2(levels: tuple[str, ...] = _FIGURE_2) -> Outcome:
    """Judge that Figure 2's noise multipliers are rows of Table 3."""
    known = [row.noise for row in TABLE_3]
    return found(
        holds(all(level in known for level in levels)), f"of {', '.join(levels)} all are rows of Table 3", known=known
    )


_claim = placed("submission", SUBMISSION)

CHECKS: tuple[Check, ...] = (
    _claim(
        "appendixD.rounds",
        "Appendix D; final version, Section 5.2.1",
        "five epochs of 34 clients a round, where the final version has 15 epochs of 101, in 500 rounds",
        judge_rounds,
    ),
    *(
        _claim(
            f"table3.row{number}.epsilon",
            "Table 3",
            f"noise multiplier {row.noise} has the analytical ε {row.analytical}",
            partial(judge_epsilon, row.noise, row.analytical),
        )
        for number, row in enumerate(TABLE_3, 1)
        if row.analytical != "inf"
    ),
    _claim("table3.delta", "Table 3", "its analytical ε are at δ = m^(−1.1), with m = 3383 users", judge_delta),
    _claim(
        "table3.epochs",
        "Appendix D and Table 3",
        "its analytical ε bound the privacy loss of five epochs",
        judge_epochs,
    ),
    _claim(
        "appendixD.similar", "Appendix D", "the results on EMNIST are similar to those on StackOverflow", judge_similar
    ),
    *checks(_claim, "submission.table3", f"{SUBMISSION}, Table 3", TABLE_3, _DELTA, _ROUNDS, EMNIST),
    _claim(
        "table3.high",
        "Table 3's caption",
        "the estimates from all iterates are so high that membership inference is easy",
        partial(judge_high, TABLE_3),
    ),
    _claim(
        "table3.noise-alone",
        "Table 3",
        "the final model's estimates with noise are 1.20, 1.15, 1.08, 0.818 and 0.737, of canaries that take part as "
        "users do",
        judge_presentations,
    ),
    _claim(
        "table3.close",
        "Appendix D",
        "with all iterates and low noise the estimate is close to the analytical bound",
        judge_close,
    ),
    _claim(
        "table3.versions",
        "Table 3; final version, Table 4",
        "the same experiment at other noise fits between the final version's rows",
        judge_final,
    ),
    _claim("figure2", "Figure 2's caption", "its noise multipliers 0.16, 0.18 and 0.195 are Table 3's", judge_figure_2),
)
