"""Rules of the fields of an experiment's tables: what each reads, and what it says of a value that breaks it.

A rule makes a field of a dataclass, whose ``metadata["read"]`` returns a value or raises a ``ValueError``.
"""

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any

_LONGEST, _LONGEST_LINE = 60, 1000


def shortened(text: str) -> str:
    """Cut what would make a message long."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _refuse(rule: str, value: Any) -> ValueError:
    return ValueError(f"must be {rule}, not {shortened(repr(value))}")


def _rule(read: Callable[[Any], Any], **options: Any) -> Any:
    return field(metadata={"read": read}, **options)


def whole(low: int, high: int, **options: Any) -> Any:
    """Field of a whole number in a range."""

    def read(value: Any) -> int:
        # True is an int to Python.
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise _refuse(f"a whole number from {low} to {high}", value)

    return _rule(read, **options)


def number(low: float, high: float, *, infinite: bool = False, **options: Any) -> Any:
    """Field of a number in a range, or perhaps infinity."""

    def read(value: Any) -> float:
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if known and (low <= value <= high or (infinite and value == math.inf)):
            return float(value)
        raise _refuse(f"a number from {low:g} to {high:g}{' or inf' if infinite else ''}", value)

    return _rule(read, **options)


def one_of(*names: str, **options: Any) -> Any:
    """Field of one of some words."""

    def read(value: Any) -> str:
        if isinstance(value, str) and value in names:
            return value
        raise _refuse(f"one of {', '.join(names)}", value)

    return _rule(read, **options)


def flag(**options: Any) -> Any:
    """Field of true or false."""

    def read(value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise _refuse("true or false", value)

    return _rule(read, **options)


def text(**options: Any) -> Any:
    """Field of a line of text."""

    def read(value: Any) -> str:
        if isinstance(value, str) and len(value) <= _LONGEST_LINE and value.isprintable():
            return value
        raise _refuse(f"a line of at most {_LONGEST_LINE} characters", value)

    return _rule(read, **options)
