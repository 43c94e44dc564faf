"""The submission's Appendix D, Table 3 and Figure 2: estimates on EMNIST."""

from fractions import Fraction
from functools import partial

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.claims import final_printed
from canaryproof.verify.claims.judging import found
from canaryproof.verify.claims.submission_printed import SUBMISSION, TABLE_3
from canaryproof.verify.claims.submission_stackoverflow import FACTOR
from canaryproof.verify.claims.v1_accounting import accountings, calibrated, cap
from canaryproof.verify.claims.v1_judging import (
    Judge,
    agrees,
    below,
    decreasing,
    experiment,
    fixed,
    holds,
)
from canaryproof.verify.claims.v1_printed import columns
from canaryproof.verify.results import Check, Outcome, Verdict

_EMNIST = "federated EMNIST and a convolutional network trained on it"
USERS, EPOCHS, COHORT = 3383, 5, 34
_ROUNDS = round(EPOCHS * USERS / COHORT)
_DELTA = USERS**-1.1
# Users and characters of training plus test: TensorFlow Federated's documentation of emnist.load_data; and of the data
# set that it is made from, EMNIST ByClass (Cohen et al., arXiv 1702.05373).
_DOCUMENTED = {
    "digits": (3383, 341_873 + 40_832),
    "digits and letters": (3400, 671_585 + 77_483),
    "EMNIST ByClass": (None, 814_255),
}
_FIGURE_2 = ("0.16", "0.18", "0.195")


def convolutional_parameters(classes: int) -> int:
    """Count the parameters of Reddi et al.'s EMNIST model: two convolutions of 3 × 3, pooling, two dense layers.

    Parameters
    ----------
    classes
        Labels to tell apart.
    """
    first, second = 32, 64
    # 28 − 2 − 2 = 24 pixels a side after the convolutions, 12 after pooling.
    convolutions = (9 * 1 + 1) * first + (9 * first + 1) * second
    dense = (12 * 12 * second + 1) * 128
    return convolutions + dense + (128 + 1) * classes


def judge_parameters(text: str = "1.2") -> Outcome:
    """Judge the printed size of a network whose architecture is not stated, in millions."""
    counts = {classes: convolutional_parameters(classes) for classes in (10, 62)}
    agreed = [agrees(Fraction(count, 10**6), text) for count in counts.values()]
    return found(
        Verdict.QUALIFIED if all(agreed) else Verdict.REFUTED,
        f"if it is Reddi et al.'s network it has {counts[10]:,} parameters for digits and {counts[62]:,} with letters",
        parameters=list(counts.values()),
    )


def judge_data(users: int = USERS, characters: str = "814k") -> Outcome:
    """Judge the printed numbers of characters and users against the documented versions of the data set."""
    fits = [
        name for name, (people, count) in _DOCUMENTED.items() if people == users and agrees(Fraction(count), characters)
    ]
    listed = "; ".join(
        f"{name} has {count:,} characters{f' by {people:,} users' if people else ''}"
        for name, (people, count) in _DOCUMENTED.items()
    )
    return found(
        holds(bool(fits)),
        f"no documented version has both: {listed}" if not fits else listed,
        documented=_DOCUMENTED,
    )


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


def judge_epsilon(multiplier: str, epsilon: str) -> Outcome:
    """Judge a printed analytical ε, of which the text says neither δ nor the accounting.

    Parameters
    ----------
    multiplier, epsilon
        As printed.
    """
    sizes = {"users": USERS, "users × epochs": USERS * EPOCHS}
    readings = {
        f"{name}, m = {size}": reading
        for size, m in sizes.items()
        for name, reading in accountings(m**-1.1, _ROUNDS, COHORT / USERS, EPOCHS, losses=False).items()
    }
    outcome = calibrated(multiplier, epsilon, readings, _DELTA, frozenset())
    five = readings[f"exact Gaussian, {EPOCHS} rounds, m = users"](float(multiplier))
    implied = float(gaussian_mechanism.delta(float(epsilon), float(multiplier)))
    finding = (
        f"{outcome.finding}; {EPOCHS} rounds, one an epoch, are {five:.4g} at δ = {_DELTA:.2e}; one round has the "
        f"printed ε at δ = {implied:.2g}, above 1/m = {1 / USERS:.1e}"
    )
    return found(outcome.verdict, finding, implied_delta=implied, **outcome.evidence)


def judge_close() -> Outcome:
    """Judge that at low noise the estimate from all iterates is close to the analytical ε."""
    row = TABLE_3[1]
    right = accountings(_DELTA, _ROUNDS, participations=EPOCHS)[f"exact Gaussian, {EPOCHS} rounds"](float(row.noise))
    once = accountings(_DELTA, _ROUNDS)["exact Gaussian, one round"](float(row.noise))
    ratios = {"printed": float(row.all_) / float(row.analytical), "once": float(row.all_) / once}
    ratios["epochs"] = float(row.all_) / right
    return found(
        holds(min(ratios["once"], ratios["epochs"]) >= 1 / FACTOR),
        f"{row.all_} is {ratios['printed']:.2f} of the printed {row.analytical}, the nearest of all rows, but "
        f"{ratios['once']:.2f} of the exact ε of one round ({once:.1f}) and {ratios['epochs']:.2f} of that of {EPOCHS} "
        f"({right:.1f}); close is taken as a factor of {FACTOR:g}",
        ratios=ratios,
    )


def judge_final() -> Outcome:
    """Judge that the results with noise fit between those of the final version, which is at other noise.

    All four columns fall with the noise there, so that a noise between two of its rows should have results between
    theirs, and one above its largest should have smaller ones.
    """
    names = ("lower_all", "estimate_all", "lower_final", "estimate_final")
    theirs = [(float(row.noise), [float(getattr(row, name)) for name in names]) for row in final_printed.TABLE_4]
    misfits, count = [], 0
    for row in TABLE_3[1:]:
        noise = float(row.noise)
        ours = [float(value) for value in (row.lower_all, row.all_, row.lower_final, row.final)]
        before = [values for level, values in theirs if level < noise][-1]
        after = next((values for level, values in theirs if level > noise), [0.0] * len(names))
        count += len(names)
        misfits += [
            f"{name} {value:g} at {row.noise}"
            for name, value, high, low in zip(names, ours, before, after, strict=True)
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


def _claim(place: str, source: str, statement: str, judge: Judge) -> Check:
    return fixed(f"submission.{place}", f"{SUBMISSION}, {source}", statement, judge)


_COLUMNS = columns(TABLE_3)

CHECKS: tuple[Check, ...] = (
    _claim("appendixD.data", "Appendix D", "EMNIST has 814k characters by 3383 users", judge_data),
    _claim("appendixD.parameters", "Appendix D", "the CNN has 1.2M parameters", judge_parameters),
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
    *(
        experiment("submission.table3", f"{SUBMISSION}, Table 3", number, row.statement(), _EMNIST)
        for number, row in enumerate(TABLE_3, 1)
    ),
    _claim(
        "table3.bounds",
        "Table 3",
        "the 95% lower bounds lie below the estimates",
        lambda: below(
            [
                *zip(_COLUMNS["lower-all"], _COLUMNS["all"], strict=True),
                *zip(_COLUMNS["lower-final"], _COLUMNS["final"], strict=True),
            ]
        ),
    ),
    _claim("table3.decreasing", "Table 3", "bounds and estimates fall as noise grows", lambda: decreasing(_COLUMNS)),
    _claim(
        "table3.final",
        "Table 3's caption",
        "estimates and bounds are lower if the final model alone is seen",
        lambda: below(
            [
                *zip(_COLUMNS["final"], _COLUMNS["all"], strict=True),
                *zip(_COLUMNS["lower-final"], _COLUMNS["lower-all"], strict=True),
            ]
        ),
    ),
    _claim(
        "table3.cap",
        "Table 3",
        "the lower bounds from all iterates, up to 6.25, are 95% bounds by Jeffreys' interval with 1,000 canaries",
        lambda: cap([row.lower_all for row in TABLE_3], _DELTA),
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
