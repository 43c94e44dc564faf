"""The intake of arguments that are no arrays: a check for each kind, whose refusal is a line with name and rule.

It loads no library, so that every command can name a rule at once.
"""

import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_LONGEST_PATH = 4096


def shorten(text: str, length: int = 60) -> str:
    """Keep of a text what fits into a line."""
    return text if len(text) <= length else text[:length] + "..."


def short_repr(value: object) -> str:
    """Show a value that breaks a rule, in a short line."""
    return shorten(" ".join(repr(value).split()))


@contextmanager
def refusals_of(name: str) -> Iterator[None]:
    """Begin a refusal with the name of the argument that it is of."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error


def checked_integer(name: str, value: object, low: int, high: int | None = None, rule: str = "") -> int:
    """Return a whole number from ``low`` to ``high``; ``rule`` says the range in words of its own."""
    # True is an int to Python, and a time is one to numpy.
    if not isinstance(value, bool) and "time" not in str(getattr(value, "dtype", "")):
        with suppress(TypeError):
            number = operator.index(value)  # type: ignore[arg-type]
            if low <= number and (high is None or number <= high):
                return number
    range_of = f"from {low} to {high}" if high is not None else f"of at least {low}"
    raise ValueError(f"{name} must be an integer {rule or range_of}, not {short_repr(value)}")


def check_flag(name: str, value: object) -> None:
    """Refuse a value that is not True or False: of nearly all else Python would make one of them."""
    # numpy has a truth value of its own, under one of two names.
    if type(value).__name__ not in ("bool", "bool_"):
        raise ValueError(f"{name} must be True or False, not {short_repr(value)}")


def check_type(name: str, value: object, kinds: Any, words: str) -> None:
    """Refuse a value that is of none of some classes; ``words`` say of which it must be."""
    if not isinstance(value, kinds):
        raise ValueError(f"{name} must be {words}, not {short_repr(value)}")


def checked_path(name: str, value: object) -> Path:
    """Return the path of a file; one that no system has would only fill the screen."""
    check_type(name, value, (str, os.PathLike), "a path")
    if len(os.fsencode(value)) > _LONGEST_PATH:  # type: ignore[arg-type]
        raise ValueError(f"{name} must be a path of at most {_LONGEST_PATH} bytes, not {short_repr(value)}")
    return Path(value)  # type: ignore[arg-type]


def checked_texts(name: str, values: object, words: str) -> tuple[str, ...]:
    """Return texts that stand in a list or another sequence; ``words`` say of which these are."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) != 1:
        one_text = " the string" if isinstance(values, str) else ""
        raise ValueError(f"{name}: must be a list of {words}, not{one_text} {short_repr(values)}")
    texts = tuple(values)
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{name}: must be a list of {words}, which {short_repr(text)} is not")
    return texts
