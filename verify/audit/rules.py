"""Rules of values: one wording for files, for Python's arguments and for the command line.

A value that breaks a rule is refused in a line: ``field: must be RULE, not VALUE``.
"""

import math
import operator
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from canaryproof.kernels.refusals import checked_texts, short_repr
from canaryproof.kernels.successors import current

_LONGEST_LINE = 1000


def printable(text: str) -> str:
    """Escape all of a text that could drive a terminal, hide words or turn them round, such as control characters.

    This is the one rule for what people read: pages, cards and streams apply it at their output, to whole texts, so
    that no name, report or plan has to be escaped where it is used. Lines and tabs stay.
    """
    return "\n".join(map(_printable_line, text.split("\n")))


def _printable_line(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode("ascii") for c in text)


def refusal(rule: str, value: object) -> ValueError:
    """Return the error that the value at a path must be something else."""
    return ValueError(f"must be {rule}, not {short_repr(value)}")


def whole(low: int, high: int) -> Callable[[Any], int]:
    """Return the rule of a whole number in a range: ``Annotated[int, whole(1, 9)]`` is a field that keeps it."""

    def check(value: Any) -> int:
        # True is an int to Python.
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise refusal(f"a whole number from {low} to {high}", value)

    return check


def number(low: float, high: float, *, infinite: bool = False) -> Callable[[Any], float]:
    """Return the rule of a number in a range, or perhaps infinity."""

    def check(value: Any) -> float:
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        if numeric and (low <= value <= high or (infinite and value == math.inf)):
            return float(value)
        raise refusal(f"a number from {low:g} to {high:g}{' or inf' if infinite else ''}", value)

    return check


def one_of(*words: str) -> Callable[[Any], str]:
    """Return the rule of one of some words."""

    def check(value: Any) -> str:
        if isinstance(value, str) and value in words:
            # A member of an enumeration is a string too.
            return str(value)
        raise refusal(f"one of {', '.join(words)}", value)

    return check


def line(value: Any) -> str:
    """Return a line of text; the rule of such a field."""
    if isinstance(value, str) and len(value) <= _LONGEST_LINE and value.isprintable():
        return value
    raise refusal(f"a line of at most {_LONGEST_LINE} characters", value)


@dataclass(frozen=True)
class NumberRange:
    """A range of numbers.

    Attributes
    ----------
    words
        The rule, after "must".
    low, high
        Ends of the range.
    open
        Whether the ends are excluded.
    whole
        Whether the numbers are whole.
    """

    words: str
    low: float
    high: float
    open: bool = False
    whole: bool = False

    def __contains__(self, value: float | Decimal) -> bool:
        """Tell whether a number keeps the rule."""
        inside = self.low < value < self.high if self.open else self.low <= value <= self.high
        # The range comes first: 1e999999999 is whole, and too long to be made an int.
        return inside and (not self.whole or value == int(value))

    def objection(self, value: object) -> str:
        """Say in words that a value breaks the rule."""
        return f"must {self.words}, not {short_repr(value)}"

    def number(self, name: str, value: object) -> float:
        """Return an argument as a float, or an int if it is to be whole.

        Raises
        ------
        ValueError
            If it is no number, or breaks the rule; ``name`` says which argument it is.
        """
        # A truth value or a time of numpy could be made a number, too.
        kind = str(getattr(value, "dtype", ""))
        if not isinstance(value, (bool, str, bytes)) and not any(word in kind for word in ("bool", "time")):
            with suppress(TypeError, ValueError, OverflowError):
                return self._convert(operator.index(value))  # type: ignore[arg-type]
            with suppress(TypeError, ValueError, OverflowError):
                return self._convert(float(value))  # type: ignore[arg-type]
        raise ValueError(f"{name}: {self.objection(value)}")

    def _convert(self, value: float) -> float:
        if value not in self:
            raise ValueError
        return int(value) if self.whole else float(value)


# The kernels take no subnormal δ.
DELTA = NumberRange(
    "lie strictly between 0 and 1, and be at least 2.23e-308", math.nextafter(sys.float_info.min, 0.0), 1.0, open=True
)
DELTA_OR_ZERO = NumberRange("lie in [0, 1)", 0.0, math.nextafter(1.0, 0.0))
CONFIDENCE = NumberRange("lie strictly between 0 and 1, at least 1e-09 away from either", 1e-9, 1.0 - 1e-9)
SHARE = NumberRange("lie between 0 and 1", 0.0, 1.0, open=True)
DIM = NumberRange("be a whole number from 2 to 1e12", 2, 10**12, whole=True)
TRIED = NumberRange("be a whole number from 1 to 1e6", 1, 10**6, whole=True)
INSERTED = NumberRange("be a whole number from 1 to 4294967296", 1, 2**32, whole=True)
ROUNDS = NumberRange("be a whole number from 1 to 1e9", 1, 10**9, whole=True)
NOISE_MULTIPLIER = NumberRange("lie between 0.01 and 1e+06", 0.01, 1e6)
POSITIVE = NumberRange("be positive and finite", 0.0, math.inf, open=True)
PROBABILITY = NumberRange("lie in [0, 1]", 0.0, 1.0)
CLAIM = NumberRange("lie between 0.001 and 10000", 0.001, 1e4)


def choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return an argument that is one of some words.

    Raises
    ------
    ValueError
        If it is none of them.
    """
    try:
        return one_of(*map(str, choices))(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def bounds(names: object, known: Iterable[str], option: str = "bounds") -> tuple[str, ...]:
    """Return the names of lower bounds that are asked for.

    Raises
    ------
    ValueError
        If one is not known, or a string stands in place of a list of names.
    """
    given, there = checked_texts(option, names, "names"), tuple(known)
    for name in given:
        if name not in there:
            raise ValueError(f"{option}: {_no_bound(name, there)}")
    return given


def _no_bound(name: str, there: tuple[str, ...]) -> str:
    """Say which bounds there are, or what stands in place of one that has left."""
    try:
        current("canaryproof.bounds.METHODS", name)
    except ValueError as left:
        return str(left)
    return f"there is no bound {short_repr(name)}; there are {', '.join(there)}"
