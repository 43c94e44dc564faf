"""How a verdict is made: of a condition, of a printed decimal, of p-values, of two settings."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from canaryproof.kernels.certified import Enclosure, at_precision
from canaryproof.verify.check.declared_tests import LEVEL
from canaryproof.verify.check.results import Check, Context, Design, Outcome, Subject, Verdict

# A judge's answer without the context, which only stochastic claims need.
Judge = Callable[[], Outcome]


def claim(id: str, source: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:  # noqa: A002
    """Return a document's claim as a check, with an id such as ``final.table2.row1`` or ``canife.section3.4.cap``."""
    return Check(id, Subject.DOCUMENT, source, statement, judge)


def fixed(judge: Callable[..., Outcome], *arguments: object) -> Callable[[Context], Outcome]:
    """Return the judge of a claim that depends on printed numbers only, and on nothing of the run."""
    return lambda _: judge(*arguments)


def placed(document: str, name: str) -> Callable[[str, str, str, Judge], Check]:
    """Return the maker of a document's claims from place in the id, place in words, statement and judge."""

    def make(place: str, source: str, statement: str, judge: Judge) -> Check:
        return claim(f"{document}.{place}", f"{name}, {source}", statement, fixed(judge))

    return make


def found(verdict: Verdict, finding: str, design: Design | None = None, **evidence: Any) -> Outcome:
    """Return what a judge found, with the test if it depends on chance, and the numbers behind it."""
    return Outcome(verdict, finding, evidence, design)


def holds(condition: object, otherwise: object = False) -> Verdict:
    """Return confirmed; else qualified, if it holds in another reading; else refuted."""
    if condition:
        return Verdict.CONFIRMED
    return Verdict.QUALIFIED if otherwise else Verdict.REFUTED


def judged(for_it: Sequence[float], against_it: Sequence[float], level: float = LEVEL) -> Verdict:
    """Judge by p-values: of the tests that must all reject, and of those that refute if one does."""
    if max(for_it) <= 0.5 * level:
        return Verdict.CONFIRMED
    return Verdict.REFUTED if min(against_it) <= 0.5 * level / len(against_it) else Verdict.INCONCLUSIVE


def both(ours: Verdict, printed: Verdict) -> Verdict:
    """Put the verdicts of two settings together, each found at half the level."""
    if ours is printed:
        return ours
    return Verdict.QUALIFIED if {ours, printed} == {Verdict.CONFIRMED, Verdict.REFUTED} else Verdict.INCONCLUSIVE


def rounding(printed: str) -> tuple[Fraction, Fraction]:
    """Return the least and the largest number that print like this: half a unit of the last digit either side.

    Decimals such as ``0.0644``, ``8.20e-7`` or ``100k``.
    """
    digits, exponent = (printed[:-1], "3") if printed.endswith("k") else [*printed.split("e"), "0"][:2]
    unit = Fraction(10) ** int(exponent)
    half = unit / (2 * 10 ** len(digits.partition(".")[2]))
    return Fraction(digits) * unit - half, Fraction(digits) * unit + half


def prints(value: Enclosure | arb | Fraction | float | tuple[float, float], printed: str) -> bool:
    """Whether a number, or all of an enclosure, a ball or an interval, is printed like this."""
    low, high = rounding(printed)
    if isinstance(value, arb):
        return bool(value >= _rational(low)) and bool(value <= _rational(high))
    if isinstance(value, Enclosure):
        value = (value.lo, value.hi)
    least, most = value if isinstance(value, tuple) else (value, value)
    return low <= least and most <= high


def proven(compute: Callable[[], arb], printed: str) -> tuple[bool, float]:
    """Return whether all of a ball, computed at 128 bits, is printed like this; and the ball's middle."""

    def decide() -> tuple[bool, float]:
        ball = compute()
        return prints(ball, printed), float(ball.mid())

    return at_precision(128, decide)


def _rational(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)
