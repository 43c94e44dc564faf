"""Experiments as TOML files, checked: each field has one rule, and what breaks it gets one line.

A file has the fields of ``settings.Heading`` and the tables of ``settings.Settings``. A table ``[[sweep]]`` lists
values of fields, which change together if there are several in it; every combination of such tables is a cell.
``[quick]`` and ``[full]`` replace parts of all this at one size. ``ours`` lists fields that the source of the
experiment does not state.
"""

import itertools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from canaryproof.verify.federated.fields import shortened
from canaryproof.verify.federated.settings import (
    AuditPlan,
    CanaryPlan,
    CanifePlan,
    Data,
    Federated,
    Heading,
    Network,
    Settings,
)
from canaryproof.verify.input_files import InputError, opened

SIZES = ("quick", "full")
_LARGEST_FILE, _MOST_CELLS = 10**6, 1000
_TABLES = {
    "data": Data,
    "model": Network,
    "training": Federated,
    "canaries": CanaryPlan,
    "canife": CanifePlan,
    "audit": AuditPlan,
}
_OPTIONAL = ("canaries", "canife")
_HEADING = tuple(entry.name for entry in fields(Heading))

_T = TypeVar("_T")


@dataclass(frozen=True)
class Cell:
    """A combination of swept values.

    Attributes
    ----------
    swept
        Values by field, such as ``training.noise_multiplier``.
    settings
        All settings, these included.
    """

    swept: Mapping[str, Any] = field(hash=False)
    settings: Settings


@dataclass(frozen=True)
class Configuration:
    """A checked experiment at one size.

    Attributes
    ----------
    name
        Name of its file without the ending.
    size
        ``quick`` or ``full``.
    heading
        What it is.
    axes
        Fields of each axis of the sweep.
    cells
        The cells, the last axis changing fastest.
    ours
        Fields, such as ``training.batch_size``, that the source does not state.
    """

    name: str
    size: str
    heading: Heading
    axes: tuple[tuple[str, ...], ...]
    cells: tuple[Cell, ...]
    ours: tuple[str, ...] = ()


def names() -> list[str]:
    """Names of the experiments that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _shipped().iterdir() if entry.name.endswith(".toml"))


def read(name: str, size: str) -> Configuration:
    """Read an experiment.

    Parameters
    ----------
    name
        Path of a file that ends in ``.toml``, or the name of an experiment that comes with the package.
    size
        ``quick`` or ``full``.

    Returns
    -------
    The experiment at that size; it is checked at both.

    Raises
    ------
    InputError
        If there is none, or it breaks a rule: the line names the file, the field and the rule.
    """
    if name in names():
        path = Path(str(_shipped() / f"{name}.toml"))
    elif name.endswith(".toml"):
        path = Path(name)
    else:
        raise InputError(
            f"{name}: must be a file whose name ends in .toml, or an experiment that comes with the package: "
            f"{', '.join(names())}"
        )
    with opened(path) as file:
        content = file.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise ValueError(f"must have at most {_LARGEST_FILE} bytes")
        try:
            document = tomllib.loads(content.decode())
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"is not TOML: {error}") from error
        except RecursionError as error:
            raise ValueError("is nested too deeply") from error
        return {other: _at_size(path.stem, document, other) for other in SIZES}[size]


def _shipped() -> Any:
    return files(__package__) / "experiments"


def _at_size(name: str, document: Mapping[str, Any], size: str) -> Configuration:
    merged = _merged(document, _table(document.get(size, {}), size))
    _check_names(merged, (*_HEADING, *_TABLES, "sweep", *SIZES, "ours"), "")
    axes = _axes(merged.get("sweep", []))
    combinations = (
        dict(itertools.chain.from_iterable(values.items() for values in chosen)) for chosen in itertools.product(*axes)
    )
    return Configuration(
        name,
        size,
        _section(Heading, {field: merged[field] for field in _HEADING if field in merged}, ""),
        tuple(tuple(axis[0]) for axis in axes),
        tuple(Cell(swept, settings(merged, swept)) for swept in combinations),
        _ours(merged.get("ours", [])),
    )


def _ours(listed: Any) -> tuple[str, ...]:
    known = {f"{table}.{entry.name}" for table, kind in _TABLES.items() for entry in fields(kind)}
    if not isinstance(listed, list):
        raise ValueError(f"ours: must be a list of fields, not {shortened(repr(listed))}")
    for i, name in enumerate(listed):
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"ours[{i}]: must be a field, such as training.batch_size, not {shortened(repr(name))}")
    return tuple(listed)


def settings(document: Mapping[str, Any], swept: Mapping[str, Any] = MappingProxyType({})) -> Settings:
    """Check the tables of a document.

    Parameters
    ----------
    document
        Tables by name.
    swept
        Values by field, instead of those in the tables.

    Raises
    ------
    ValueError
        If a field breaks its rule, or two contradict each other.
    """
    there = {place.partition(".")[0] for place in swept} | document.keys()
    tables = {
        name: dict(_table(document.get(name, {}), name)) for name in _TABLES if name not in _OPTIONAL or name in there
    }
    for place, value in swept.items():
        table, _, field = place.partition(".")
        tables[table][field] = value
    made = Settings(**{name: _section(_TABLES[name], table, f"{name}.") for name, table in tables.items()})
    made.check()
    return made


def _section(kind: type[_T], table: Mapping[str, Any], inside: str) -> _T:
    """Make a dataclass of a table that has its fields, and no others."""
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    _check_names(table, tuple(known), inside)
    values = {}
    for name, entry in known.items():
        if name in table:
            try:
                values[name] = entry.metadata["read"](table[name])
            except ValueError as error:
                raise ValueError(f"{inside}{name}: {error}") from None
        elif entry.default is MISSING:
            raise ValueError(f"{inside}{name}: is missing")
    return kind(**values)


def _axes(sweep: Any) -> list[list[dict[str, Any]]]:
    """Return the values that each axis takes by field."""
    if not isinstance(sweep, list):
        raise ValueError("sweep: must be written as [[sweep]], as there may be several")
    axes: list[list[dict[str, Any]]] = []
    for i, axis in enumerate(sweep):
        place = f"sweep[{i}]"
        lists = {
            f"{table}.{name}": values
            for table, inner in _table(axis, place).items()
            for name, values in _table(inner, f"{place}.{table}").items()
        }
        for name, values in lists.items():
            if name.partition(".")[0] not in _TABLES:
                raise ValueError(f"{place}.{shortened(name)}: there is no such field; tables are {', '.join(_TABLES)}")
            if not isinstance(values, list) or not values:
                raise ValueError(f"{place}.{name}: must be a list of values, not {shortened(repr(values))}")
            if any(name in earlier[0] for earlier in axes):
                raise ValueError(f"{place}.{name}: must not be in two sweeps")
        if len({len(values) for values in lists.values()}) != 1:
            raise ValueError(f"{place}: must have lists of one length")
        axes.append([dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)])
    if math.prod(map(len, axes)) > _MOST_CELLS:
        raise ValueError(f"sweep: must have at most {_MOST_CELLS} combinations")
    return axes


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for name, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _merged(merged[name], value) if both else value
    return merged


def _table(value: Any, place: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise ValueError(f"{shortened(place)}: must be a table, not {shortened(repr(value))}")


def _check_names(table: Mapping[str, Any], known: tuple[str, ...], inside: str) -> None:
    for name in table:
        if name not in known:
            raise ValueError(f"{inside}{shortened(name)}: there is no such field; there are {', '.join(known)}")
