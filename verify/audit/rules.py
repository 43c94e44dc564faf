"""What an audit's arguments may be: one rule and one wording for Python and for the command line."""

import math
import operator
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal


def quoted(value: object) -> str:
    """Show a value that breaks a rule, in a short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 42 else text[:40] + "..."


@dataclass(frozen=True)
class Rule:
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

    def holds(self, number: float | Decimal) -> bool:
        """Tell whether a number keeps the rule."""
        inside = self.low < number < self.high if self.open else self.low <= number <= self.high
        # The range comes first: 1e999999999 is whole, and too long to be made an int.
        return inside and (not self.whole or number == int(number))

    def broken_by(self, value: object) -> str:
        """Say in words that a value breaks the rule."""
        return f"must {self.words}, not {quoted(value)}"

    def number(self, name: str, value: object) -> float:
        """Return an argument as a float, or an int if it is to be whole.

        Raises
        ------
        ValueError
            If it is no number, or breaks the rule; ``name`` says which argument it is.
        """
        if not isinstance(value, (bool, str, bytes)):
            with suppress(TypeError, ValueError, OverflowError):
                return self._kept(operator.index(value))  # type: ignore[arg-type]
            with suppress(TypeError, ValueError, OverflowError):
                return self._kept(float(value))  # type: ignore[arg-type]
        raise ValueError(f"{name}: {self.broken_by(value)}")

    def _kept(self, number: float) -> float:
        if not self.holds(number):
            raise ValueError
        return int(number) if self.whole else float(number)


# The kernels take no subnormal δ.
DELTA = Rule(
    "lie strictly between 0 and 1, and be at least 2.23e-308", math.nextafter(sys.float_info.min, 0.0), 1.0, open=True
)
CONFIDENCE = Rule("lie strictly between 0 and 1, at least 1e-09 away from either", 1e-9, 1.0 - 1e-9)
DIM = Rule("be a whole number from 2 to 1e12", 2, 10**12, whole=True)
NOISE_MULTIPLIER = Rule("lie between 0.01 and 1e+06", 0.01, 1e6)
CLAIM = Rule("lie between 0.001 and 10000", 0.001, 1e4)


def choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return an argument that is one of some words.

    Raises
    ------
    ValueError
        If it is none of them.
    """
    allowed = tuple(map(str, choices))
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}: {quoted(value)} is not one of {', '.join(map(repr, allowed))}")
    # A member of an enumeration is a string too.
    return str(value)


def bounds(names: object, known: Iterable[str], option: str = "bounds") -> tuple[str, ...]:
    """Return the names of lower bounds that are asked for.

    Raises
    ------
    ValueError
        If one is not known, or a string stands in place of a list of names.
    """
    if isinstance(names, str):
        raise ValueError(f"{option}: must be a list of names, not the string {quoted(names)}")
    if not isinstance(names, Iterable):
        raise ValueError(f"{option}: must be a list of names, not {quoted(names)}")
    given, there = tuple(names), tuple(known)
    for name in given:
        if name not in there:
            raise ValueError(f"{option}: there is no bound {quoted(name)}; there are {', '.join(there)}")
    return given
