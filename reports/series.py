"""Series of numbers along d or k, and how fast they fall: what the convergence page shows."""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from canaryproof.verify.check.results import Result


@dataclass(frozen=True)
class Series:
    """A quantity along d or k, what is proven of it and what was simulated.

    Attributes
    ----------
    title
        What is shown.
    axis
        ``d`` or ``k``.
    quantity
        What the ordinate is.
    x
        Abscissae, positive.
    exact, bound, simulated, standard_error
        Ordinates at ``x``, or None: exact values, a proven bound, means of simulations and their standard errors.
    bound_label
        What the bound is.
    fitted_slope, slope_interval, confidence
        Slope in logarithms of what ``slope_of`` names, with its interval and that interval's confidence.
    slope_of
        ``exact``, ``bound`` or ``simulated``.
    proven_slope
        Slope that the theorem gives.
    note
        What else to know.
    exact_label
        What the exact values are, where they are so of something else, such as a leading term.
    """

    title: str
    axis: str
    quantity: str
    x: tuple[float, ...]
    exact: tuple[float, ...] | None
    bound: tuple[float, ...] | None
    bound_label: str
    simulated: tuple[float, ...] | None
    standard_error: tuple[float, ...] | None
    fitted_slope: float
    slope_interval: tuple[float, ...]
    slope_of: str
    confidence: float
    proven_slope: float
    note: str = ""
    exact_label: str = "exact"


def series_of(result: Result) -> tuple[Series, ...]:
    """Return the series in a result's evidence.

    Parameters
    ----------
    result
        Any result.

    Returns
    -------
    The series, none for most results.

    Raises
    ------
    ValueError
        If a field is missing, unknown or breaks a rule; the message names the result, the field and the rule.
    """
    found = result.evidence.get("convergence", [])
    place = f"{result.id}: convergence"
    if not isinstance(found, list | tuple):
        raise ValueError(f"{place}: must be a list")
    return tuple(_series(row, f"{place}[{i}]") for i, row in enumerate(found))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_numbers(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_number, value))


def _is_positive(value: Any) -> bool:
    return _is_number(value) and 0.0 < value < math.inf


_TEXT: tuple[Callable[[Any], bool], str] = (_is_text, "text")
_NUMBER: tuple[Callable[[Any], bool], str] = (_is_number, "a number")
_ORDINATES: tuple[Callable[[Any], bool], str] = (lambda v: v is None or _are_numbers(v), "a list of numbers or null")
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "title": _TEXT,
    "axis": (lambda value: value in ("d", "k"), "d or k"),
    "quantity": _TEXT,
    "x": (lambda v: _are_numbers(v) and len(v) > 0 and all(map(_is_positive, v)), "a list of positive numbers"),
    "exact": _ORDINATES,
    "bound": _ORDINATES,
    "bound_label": _TEXT,
    "simulated": _ORDINATES,
    "standard_error": _ORDINATES,
    "fitted_slope": _NUMBER,
    "slope_interval": (lambda value: _are_numbers(value) and len(value) == 2, "a list of two numbers"),
    "slope_of": (lambda value: value in ("exact", "bound", "simulated"), "exact, bound or simulated"),
    "confidence": (lambda value: _is_number(value) and 0.0 < value < 1.0, "a number between 0 and 1"),
    "proven_slope": _NUMBER,
    "note": _TEXT,
    "exact_label": _TEXT,
}


def _series(row: object, place: str) -> Series:
    if not isinstance(row, Mapping):
        raise ValueError(f"{place}: must be an object")
    for name in row:
        if name not in _RULES:
            raise ValueError(f"{place}.{name}: there is no such field; there are {', '.join(_RULES)}")
    for field in fields(Series):
        if field.name not in row and field.default is MISSING:
            raise ValueError(f"{place}.{field.name}: is missing")
    for name, value in row.items():
        holds, rule = _RULES[name]
        if not holds(value):
            raise ValueError(f"{place}.{name}: must be {rule}")
    for name in ("exact", "bound", "simulated", "standard_error"):
        if row[name] is not None and len(row[name]) != len(row["x"]):
            raise ValueError(f"{place}.{name}: must have as many numbers as x, {len(row['x'])}, not {len(row[name])}")
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Series(**values)
