"""Fields of a JSON document, each with its rule."""

import sys
from typing import Any

# Numbers that JSON has not, as ``results.plain`` writes them.
_NOT_FINITE = ("inf", "-inf", "nan")


def member(value: Any, place: str, name: str, kind: type, rule: str) -> Any:
    """Return a field of an object, which must be of a kind; the error names its place and the rule."""
    inside = f"{place}.{name}" if place else name
    if not isinstance(value, dict):
        raise ValueError(f"{place or 'the document'}: must be an object")
    if name not in value:
        raise ValueError(f"{inside}: is missing")
    # True is an int to Python.
    if not isinstance(value[name], kind) or (isinstance(value[name], bool) and kind is not bool):
        raise ValueError(f"{inside}: must be {rule}, not {repr(value[name])[:60]}")
    return value[name]


def optional(value: Any, name: str) -> Any:
    """Return a field that may be absent or null."""
    return value.get(name) if isinstance(value, dict) else None


def words(value: Any, name: str, place: str = "") -> str:
    """Return a field that is text."""
    found: str = member(value, place, name, str, "text")
    return found


def entries(value: Any, name: str) -> list[Any]:
    """Return a field of the document that is a list."""
    found: list[Any] = member(value, "", name, list, "a list")
    return found


def count(value: Any, place: str, name: str) -> int:
    """Return a field that is a whole number, not negative."""
    found: int = member(value, place, name, int, "a whole number")
    if found < 0:
        raise ValueError(f"{place}.{name}: must not be negative, not {found}")
    return found


def number(value: Any, place: str, name: str) -> float:
    """Return a field that is a finite number, or one that our writer writes in words."""
    if isinstance(value, dict) and value.get(name) in _NOT_FINITE:
        return float(value[name])
    found = member(value, place, name, (int, float), "a number")  # type: ignore[arg-type]
    # A number of many digits is none that our writer writes, nor is 1e999, which is infinite to Python.
    if not abs(found) <= sys.float_info.max:
        raise ValueError(f"{place}.{name}: must be finite, not {repr(found)[:60]}")
    return float(found)
