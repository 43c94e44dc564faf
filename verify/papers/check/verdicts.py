"""Decide a verdict from a printed number, a sentence, p-values, or two settings.

A printed number is confirmed if the exact value, rounded to the printed digits, is the printed one under the reading
that the text states. It is qualified if the digits come out under a reading that the text does not state, and refuted
if they do under none. A sentence is judged alike. A word such as "close" is the text's own tolerance.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from canaryproof.kernels.certified import Enclosure, at_precision
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.check.documents import Voice, voice
from canaryproof.verify.papers.check.results import Context, Design, Outcome, Result, Verdict

# The meaning of each verdict.
MEANINGS = {
    Verdict.CONFIRMED: "holds as printed",
    Verdict.QUALIFIED: "holds under a reading that the text does not state, which is named",
    Verdict.REFUTED: "false as printed under every reading; what is true is given",
    Verdict.INCONCLUSIVE: "the evidence cannot decide; what would decide is named",
    Verdict.NEEDS_DATA: "only a data set decides, which is named",
}


@dataclass(frozen=True, eq=False)
class _Fixed:
    judge: Callable[..., Outcome]
    arguments: tuple[object, ...]

    def __call__(self, _: Context) -> Outcome:
        return self.judge(*self.arguments)


def fixed(judge: Callable[..., Outcome], *arguments: object) -> Callable[[Context], Outcome]:
    """Return the judge of a claim that depends on printed numbers only, and on nothing of the run."""
    return _Fixed(judge, arguments)


@dataclass(frozen=True)
class Printed:
    """The rule of a claim that prints a number; ``judge`` takes any number in its place, and nothing of the run."""

    number: str
    judge: Callable[[str], Outcome]

    def __call__(self, _: Context) -> Outcome:
        """Judge the printed number."""
        return self.judge(self.number)


def is_fixed(judge: Callable[[Context], Outcome]) -> bool:
    """Tell whether a judge finds the same at every level and seed, as it depends on nothing of the run."""
    return isinstance(judge, (_Fixed, Printed))


def agreement(error: float) -> str:
    """Return to how much two numbers agree; below 1e-14 it is how a processor rounds, which differs between them."""
    return f"{max(error, 1e-14):.0e}"


def conclude(verdict: Verdict, finding: str, design: Design | None = None, **evidence: Any) -> Outcome:
    """Return what a judge found, with the test if it depends on chance, and the numbers behind it."""
    return Outcome(verdict, finding, evidence, design)


def holds(condition: object, otherwise: object = False) -> Verdict:
    """Judge a sentence: confirmed if it holds as worded; else qualified, if in a reading not stated; else refuted."""
    if condition:
        return Verdict.CONFIRMED
    return Verdict.QUALIFIED if otherwise else Verdict.REFUTED


class Within(StrEnum):
    """The tolerance that the text itself allows, by its words."""

    DIGITS = "rounds to the printed digits"
    ABOUT = 'within 10%, as "about", "close" and "slightly" allow'
    MAGNITUDE = "within a factor of two, as an order of magnitude allows"


_ABOUT, _MAGNITUDE = 0.1, 2.0
# A printed number, or a number that is said to be close to another.
Value = Enclosure | arb | Fraction | float | tuple[float, float]


@dataclass(frozen=True)
class NumberVerdict:
    """A verdict by the rule for printed numbers, with what it rests on."""

    verdict: Verdict
    printed: str
    # The reading under which the number comes out, or else the text's own, and the value there.
    reading: str
    value: float | tuple[float, float]
    rule: str

    @property
    def evidence(self) -> dict[str, Any]:
        """Return what a claim's page shows of the verdict."""
        return {
            "rule": {"printed": self.printed, "reading": self.reading, "value": self.value, "why": self.rule},
        }


def number(
    printed: str, readings: Mapping[str, Value], stated: Collection[str] | None = None, within: Within = Within.DIGITS
) -> NumberVerdict:
    """Judge a printed number by its exact value under each reading, of which the text states some.

    ``stated`` names the text's readings: the first one by default, or none.
    """
    stated = [next(iter(readings))] if stated is None else stated
    own = {name: value for name, value in readings.items() if name in stated}
    for name, value in own.items():
        if _comes_out(value, printed, within):
            return NumberVerdict(Verdict.CONFIRMED, printed, name, _plain(value), f"confirmed: {within}")
    for name, value in readings.items():
        if _comes_out(value, printed, within):
            why = f"qualified: {within}, under a reading that the text does not state"
            return NumberVerdict(Verdict.QUALIFIED, printed, name, _plain(value), why)
    for name, value in own.items():
        for how, range_ in _looser(printed, within).items():
            if _inside(value, range_):
                return NumberVerdict(Verdict.QUALIFIED, printed, f"{name}, {how}", _plain(value), f"qualified: {how}")
    name, value = next(iter(readings.items()))
    why = f"refuted: none of {len(readings)} readings {within}"
    return NumberVerdict(Verdict.REFUTED, printed, name, _plain(value), why)


def rule(result: Result) -> str:
    """Return in a line why a statement has its verdict: of a printed number by the value and the reading."""
    judged = result.evidence.get("rule")
    if voice(result) is Voice.ANALOGUE:
        return f"{result.verdict}: of other data than the document's, which decide nothing of its own"
    if not isinstance(judged, Mapping):
        return f"{result.verdict}: {MEANINGS[result.verdict]}"
    value = judged["value"]
    is_interval = isinstance(value, list | tuple)
    computed = f"[{value[0]!r}, {value[1]!r}]" if is_interval else repr(value).removesuffix(".0")
    return f"{judged['why']}; printed {judged['printed']}, computed {computed} ({judged['reading']})"


def close(ratios: Sequence[float], within: Within = Within.ABOUT) -> Verdict:
    """Judge that numbers are close to others, by their ratios: qualified beyond 10% but within a factor of two."""
    worst = max(max(ratio, 1.0 / ratio) if ratio > 0.0 else float("inf") for ratio in ratios)
    if within is Within.ABOUT:
        return holds(max(abs(ratio - 1.0) for ratio in ratios) <= _ABOUT, worst <= _MAGNITUDE)
    return holds(worst <= _MAGNITUDE)


def from_p_values(for_it: Sequence[float], against_it: Sequence[float], level: float = LEVEL) -> Verdict:
    """Judge by p-values: of the tests that must all reject, and of those that refute if one does."""
    if max(for_it) <= 0.5 * level:
        return Verdict.CONFIRMED
    return Verdict.REFUTED if min(against_it) <= 0.5 * level / len(against_it) else Verdict.INCONCLUSIVE


def shares_hold(p_values: Mapping[str, float], runs: int, null: str, visible: str, level: float = LEVEL) -> Outcome:
    """Judge tests of shares of runs, none of which may reject; ``visible`` says from which error on one would."""
    label, smallest = min(p_values.items(), key=lambda item: item[1])
    return conclude(
        holds(smallest >= level / len(p_values)),
        f"smallest of {len(p_values)} p-values {smallest:.2g} ({label}; {runs:,} runs)",
        Design(null, level, f"a share of runs is off by {visible}", POWER, runs),
        runs=runs,
        level=level,
        p_values=dict(p_values),
    )


def both(first: Verdict, second: Verdict) -> Verdict:
    """Return the verdict on two settings together, each judged at half the level."""
    if first is second:
        return first
    return Verdict.QUALIFIED if {first, second} == {Verdict.CONFIRMED, Verdict.REFUTED} else Verdict.INCONCLUSIVE


def rounding(printed: str) -> tuple[Fraction, Fraction]:
    """Return the least and the largest number that print like this: half a unit of the last digit either side.

    Decimals such as ``0.0644``, ``8.20e-7`` or ``100k``.
    """
    digits, exponent = (printed[:-1], "3") if printed.endswith("k") else [*printed.split("e"), "0"][:2]
    unit = Fraction(10) ** int(exponent)
    half = unit / (2 * 10 ** len(digits.partition(".")[2]))
    return Fraction(digits) * unit - half, Fraction(digits) * unit + half


def prints(value: Value, printed: str) -> bool:
    """Whether a number, or all of an enclosure, a ball or an interval, is printed like this."""
    return _inside(value, rounding(printed))


def _inside(value: Value, range_: tuple[Fraction, Fraction]) -> bool:
    low, high = range_
    if isinstance(value, arb):
        return bool(value >= _rational(low)) and bool(value <= _rational(high))
    if isinstance(value, Enclosure):
        value = (value.lo, value.hi)
    least, most = value if isinstance(value, tuple) else (value, value)
    return low <= least and most <= high


def _comes_out(value: Value, printed: str, within: Within) -> bool:
    if prints(value, printed):
        return True
    middle = sum(rounding(printed), Fraction(0)) / 2
    if within is Within.ABOUT:
        return _inside(value, (middle * Fraction(9, 10), middle * Fraction(11, 10)))
    return within is Within.MAGNITUDE and _inside(value, (middle / 2, middle * 2))


def _looser(printed: str, within: Within) -> dict[str, tuple[Fraction, Fraction]]:
    """Return what is done to numbers without a word: digits cut off, or zeros that only hold their place."""
    low, high = rounding(printed)
    middle, half = (low + high) / 2, (high - low) / 2
    if within is Within.ABOUT:
        return {"to a factor of two": (middle / 2, middle * 2)}
    if within is Within.MAGNITUDE:
        return {}
    ranges = {"cut and not rounded": (middle, middle + 2 * half)}
    zeros = len(printed) - len(printed.rstrip("0"))
    if printed.isdigit() and 0 < zeros < len(printed):
        ranges["as a round number"] = (middle - half * 10**zeros, middle + half * 10**zeros)
    return ranges


def _plain(value: Value) -> float | tuple[float, float]:
    """Return a value as JSON has it; an enclosure as its ends."""
    if isinstance(value, Enclosure):
        return value.lo, value.hi
    if isinstance(value, arb):
        return float(value.lower()), float(value.upper())
    return value if isinstance(value, tuple) else float(value)


def proven(compute: Callable[[], arb], printed: str) -> tuple[bool, float]:
    """Return whether all of a ball, computed at 128 bits, is printed like this; and the ball's middle."""

    def decide() -> tuple[bool, float]:
        ball = compute()
        return prints(ball, printed), float(ball.mid())

    return at_precision(128, decide)


def _rational(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)
