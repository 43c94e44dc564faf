"""Reading finished experiments: what ``canaryproof train`` and ``benchmark canife`` left in a folder.

A file is believed no more than any other input: each field that is used has its type, numbers are finite or written as
our writer writes infinities, and what the paper states of an experiment is as in the one that comes with the package.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from canaryproof.verify.claims.finished import (
    Attack,
    Cell,
    Experiment,
    Measurements,
    Repetition,
    Round,
    Training,
    Trials,
)
from canaryproof.verify.federated import configuration
from canaryproof.verify.input_files import InputError, opened
from canaryproof.verify.results import Verdict, plain

RESULTS, BENCHMARK = "results.json", "canife.json"
_LARGEST_FILE = 2**28
# The lower bound that the papers print, and the null that each attack's printed numbers are against.
_BOUND = "andrew"
_NULLS = {"all": "unobserved", "final": "exact", "change": "exact"}
_NOT_FINITE = ("inf", "-inf", "nan")


def read(folder: Path) -> Measurements:
    """Read what is in a folder, or in folders in it.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    InputError
        If it is none, nothing in it is known, an experiment is there twice, or a file is damaged or not of the printed
        experiment: one line that names the file, the field and the rule.
    """
    try:
        if not folder.is_dir():
            raise InputError(f"{folder}: must be a folder")
        places = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from error
    experiments: dict[str, Experiment] = {}
    benchmark: tuple[Mapping[str, str], ...] | None = None
    seconds: Mapping[str, float] = {}
    digests = []
    for path in (place / name for place in places for name in (RESULTS, BENCHMARK)):
        if not path.is_file():
            continue
        with opened(path) as file:
            content = file.read(_LARGEST_FILE + 1)
            document = _parsed(content)
            if path.name == RESULTS:
                found = _experiment(document, path.parent)
                if found is None:
                    continue
                if found.name in experiments:
                    raise ValueError(f"name: {found.name} is in {experiments[found.name].folder} too")
                experiments[found.name] = found
            elif (rows := _benchmark(document)) is not None:
                if benchmark is not None:
                    raise ValueError("another folder has such results too")
                benchmark, seconds = rows
        digests.append(hashlib.sha256(content).hexdigest())
    if not digests:
        raise InputError(
            f"{folder}: must hold folders that canaryproof train or benchmark canife left, such as those of "
            "the experiments that come with the package"
        )
    return Measurements(experiments, benchmark, seconds, hashlib.sha256("".join(digests).encode()).hexdigest()[:16])


def _parsed(content: bytes) -> Any:
    def refuse(name: str) -> None:
        raise ValueError(f"is not JSON: {name}")

    if len(content) > _LARGEST_FILE:
        raise ValueError(f"must have at most {_LARGEST_FILE:,} bytes")
    try:
        return json.loads(content, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def _experiment(document: Any, folder: Path) -> Experiment | None:
    """Return an experiment that comes with the package; None if it is another."""
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str) or name not in configuration.names():
        return None
    size = _text(document, "size")
    if size not in configuration.SIZES:
        raise ValueError(f"size: must be one of {', '.join(configuration.SIZES)}, not {repr(size)[:60]}")
    shipped = configuration.read(name, size)
    source = _text(document, "source")
    # A file of the user's own may have the same name.
    if source != shipped.heading.source or not shipped.ours:
        return None
    cells = tuple(_cell(cell, f"cells[{i}]") for i, cell in enumerate(_list(document, "cells")))
    if not cells:
        raise ValueError("cells: must not be empty")
    swept = {field for axis in shipped.axes for field in axis}
    stated = {
        field: value
        for field, value in _flat(plain(asdict(shipped.cells[0].settings)))
        if field not in {*shipped.ours, *swept}
    }
    for i, cell in enumerate(cells):
        for field, value in stated.items():
            if cell.settings.get(field) != value:
                given = repr(cell.settings.get(field))[:60]
                raise ValueError(f"cells[{i}].settings.{field}: must be {value!r} as in {name}, not {given}")
    return Experiment(name, size, folder.name, shipped.ours, cells)


def _flat(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for table, fields in settings.items():
        for field, value in (fields or {}).items():
            yield f"{table}.{field}", value


def _cell(value: Any, place: str) -> Cell:
    swept = _field(value, place, "swept", dict, "an object")
    settings = _field(value, place, "settings", dict, "an object")
    for name, table in settings.items():
        if table is not None and not isinstance(table, dict):
            raise ValueError(f"{place}.settings.{name[:60]}: must be an object")
    numbers = {name: _whole(value, place, name) for name in ("dim", "rounds", "clients", "test_examples")}
    repetitions = tuple(
        _repetition(one, f"{place}.results[{i}]")
        for i, one in enumerate(_field(value, place, "results", list, "a list"))
    )
    if not repetitions:
        raise ValueError(f"{place}.results: must not be empty")
    multiplier = _number(value, place, "noise_multiplier")
    return Cell(swept, dict(_flat(settings)), **numbers, noise_multiplier=multiplier, repetitions=repetitions)


def _repetition(value: Any, place: str) -> Repetition:
    runs = tuple(_run(one, f"{place}.runs[{i}]") for i, one in enumerate(_field(value, place, "runs", list, "a list")))
    if not runs:
        raise ValueError(f"{place}.runs: must not be empty")
    audits = _optional(value, "audits")
    if audits is None:
        return Repetition(runs, {})
    attacks = {}
    for attack, null in _NULLS.items():
        inside = f"{place}.audits.{attack}"
        nulls = _field(audits, f"{place}.audits", attack, dict, "an object")
        attacks[attack] = _attack(_field(nulls, inside, null, dict, "an object"), f"{inside}.{null}")
    return Repetition(runs, attacks)


def _attack(value: Any, place: str) -> Attack:
    numbers = {name: _number(value, place, name) for name in ("distance", "distance_error", "ratio", "ratio_error")}
    normality, unobserved = _optional(value, "normality"), _optional(value, "unobserved")
    estimates = _field(value, place, "estimates", dict, "an object")
    bounds = _field(value, place, "bounds", dict, "an object")
    bound = _field(bounds, f"{place}.bounds", _BOUND, dict, "an object")
    return Attack(
        observed=_whole(value, place, "observed"),
        unobserved=None if unobserved is None else _whole(value, place, "unobserved"),
        **numbers,
        statistic=float("nan") if normality is None else _number(normality, f"{place}.normality", "statistic"),
        **{
            name: _number(
                _field(estimates, f"{place}.estimates", name, dict, "an object"), f"{place}.{name}", "epsilon"
            )
            for name in ("fitted", "pinned")
        },
        bound=_number(bound, f"{place}.bounds.{_BOUND}", "value"),
    )


def _run(value: Any, place: str) -> Training:
    without = None if _optional(value, "accuracy_without") is None else _number(value, place, "accuracy_without")
    canife = _optional(value, "canife")
    if canife is None:
        return Training(_number(value, place, "accuracy"), without, (), None)
    inside = f"{place}.canife"
    audits = tuple(
        _round(one, f"{inside}.audits[{i}]") for i, one in enumerate(_field(canife, inside, "audits", list, "a list"))
    )
    composed = None if _optional(canife, "epsilon") is None else _number(canife, inside, "epsilon")
    return Training(_number(value, place, "accuracy"), without, audits, composed)


def _round(value: Any, place: str) -> Round:
    trials = tuple(
        Trials(
            *(
                _number(one, f"{place}.attacks[{i}]", name)
                for name in ("health", "accuracy", "deviation", "capped", "separated")
            )
        )
        for i, one in enumerate(_field(value, place, "attacks", list, "a list"))
    )
    return Round(_whole(value, place, "round"), _number(value, place, "accuracy"), trials)


def _benchmark(document: Any) -> tuple[tuple[Mapping[str, str], ...], Mapping[str, float]] | None:
    """Return the rows on printed numbers, with the seconds of the parts; None if it is not of Fashion-MNIST in full."""
    printed = _field(document, "", "printed", dict, "an object")
    if _field(printed, "printed", "fashion", bool, "true or false") is False or _text(document, "level") != "full":
        return None
    rows = []
    for i, row in enumerate(_field(printed, "printed", "claims", list, "a list")):
        place = f"printed.claims[{i}]"
        rows.append({name: _text(row, name, place) for name in ("id", "method", "reading", "verdict", "finding")})
        for name in ("reading", "verdict"):
            if rows[-1][name] not in list(Verdict):
                raise ValueError(f"{place}.{name}: must be a verdict, not {rows[-1][name][:60]!r}")
    scenarios = _list(document, "scenarios")
    if not scenarios:
        raise ValueError("scenarios: must not be empty")
    seconds = _field(scenarios[0], "scenarios[0]", "seconds", dict, "an object")
    parts = {name: _number(seconds, "scenarios[0].seconds", name) for name in ("training", "oneshot", "canife")}
    return tuple(rows), parts


def _field(value: Any, place: str, name: str, kind: type, rule: str) -> Any:
    inside = f"{place}.{name}" if place else name
    if not isinstance(value, dict):
        raise ValueError(f"{place or 'the document'}: must be an object")
    if name not in value:
        raise ValueError(f"{inside}: is missing")
    # True is an int to Python.
    if not isinstance(value[name], kind) or (isinstance(value[name], bool) and kind is not bool):
        raise ValueError(f"{inside}: must be {rule}, not {repr(value[name])[:60]}")
    return value[name]


def _optional(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _text(value: Any, name: str, place: str = "") -> str:
    found: str = _field(value, place, name, str, "text")
    return found


def _list(value: Any, name: str) -> list[Any]:
    found: list[Any] = _field(value, "", name, list, "a list")
    return found


def _whole(value: Any, place: str, name: str) -> int:
    found: int = _field(value, place, name, int, "a whole number")
    if found < 0:
        raise ValueError(f"{place}.{name}: must not be negative, not {found}")
    return found


def _number(value: Any, place: str, name: str) -> float:
    if isinstance(value, dict) and value.get(name) in _NOT_FINITE:
        return float(value[name])
    found = _field(value, place, name, (int, float), "a number")  # type: ignore[arg-type]
    # A number of many digits is none that our writer writes, nor is 1e999, which is infinite to Python.
    if not abs(found) <= sys.float_info.max:
        raise ValueError(f"{place}.{name}: must be finite, not {repr(found)[:60]}")
    return float(found)
