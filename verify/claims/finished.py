"""What finished experiments in a folder say, as far as claims ask for it."""

import hashlib
import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from canaryproof.verify.check.records import plain
from canaryproof.verify.check.results import Verdict
from canaryproof.verify.files.reading import InputError, opened
from canaryproof.verify.training import configuration

Swept = Mapping[str, Any]


@dataclass(frozen=True)
class Attack:
    """The audit of a repetition's canaries under one threat model.

    Attributes
    ----------
    observed, unobserved
        Canaries; none are unobserved where the null is exact.
    distance, distance_error, ratio, ratio_error
        Mean in the null's deviations, and deviation in those, with standard errors.
    statistic
        Anderson's, of the observed cosines.
    fitted, pinned
        Estimates.
    bound
        95% lower bound by the authors' method.
    """

    observed: int
    unobserved: int | None
    distance: float
    distance_error: float
    ratio: float
    ratio_error: float
    statistic: float
    fitted: float
    pinned: float
    bound: float


@dataclass(frozen=True)
class Trials:
    """An attack by CANIFE: a canary, and the scores of its trials.

    Attributes
    ----------
    health
        Canary health.
    accuracy
        Largest accuracy of a threshold.
    deviation
        Mean of both histograms' standard deviations.
    epsilon, separated
        ε̂ of the round, at the cap where a threshold makes no error; and infinite there.
    """

    health: float
    accuracy: float
    deviation: float
    epsilon: float
    separated: float


@dataclass(frozen=True)
class Round:
    """CANIFE's audit of a model: rounds done, the model's accuracy then, and the attacks."""

    round: int
    accuracy: float
    trials: tuple[Trials, ...]


@dataclass(frozen=True)
class Training:
    """One training: the model's accuracy on held-out examples, with canaries and without, and CANIFE's part.

    Attributes
    ----------
    accuracy, without
        Share of labels; ``without`` is None if it was not trained.
    audits
        CANIFE's, in order.
    composed
        Its ε̂ of the training; None if it has none.
    """

    accuracy: float
    without: float | None
    audits: tuple[Round, ...]
    composed: float | None


@dataclass(frozen=True)
class Repetition:
    """A cell's repetition: its trainings, and the audits of all canaries in them by attack."""

    runs: tuple[Training, ...]
    attacks: Mapping[str, Attack]


@dataclass(frozen=True)
class Cell:
    """A combination of swept values.

    Attributes
    ----------
    swept
        Values by field.
    settings
        All values by field.
    federation
        What the data set is called.
    dim, rounds, clients, test_examples
        What they say.
    noise_multiplier
        Noise multiplier, also where an ε decided it.
    repetitions
        What was found.
    """

    swept: Swept
    settings: Swept
    federation: str
    dim: int
    rounds: int
    clients: int
    test_examples: int
    noise_multiplier: float
    repetitions: tuple[Repetition, ...]

    def runs(self) -> Iterator[Training]:
        """Give the trainings of all repetitions."""
        for repetition in self.repetitions:
            yield from repetition.runs


@dataclass(frozen=True)
class Experiment:
    """A finished experiment that comes with the package.

    Attributes
    ----------
    name, size, folder
        Its name, its size, and the folder it was in.
    ours
        Fields that its source does not state.
    cells
        Its cells.
    """

    name: str
    size: str
    folder: str
    ours: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Measurements:
    """All that a folder holds.

    Attributes
    ----------
    experiments
        Experiments by name.
    benchmark
        Rows on the papers' numbers of CANIFE's benchmark on Fashion-MNIST; None if there is none.
    seconds
        Mean seconds that canaries, CANIFE and training took there.
    digest
        Digest of all files that were read.
    """

    experiments: Mapping[str, Experiment]
    benchmark: tuple[Mapping[str, str], ...] | None
    seconds: Mapping[str, float]
    digest: str


# Fields of a JSON document, each with its rule.


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


# Reading finished experiments: what ``canaryproof train`` and ``benchmark canife`` left in a folder.
#
# A file is believed no more than any other input: each field that is used has its type, numbers are finite or written
# as our writer writes infinities, and what the paper states of an experiment is as in the one that comes with the
# package.


RESULTS, BENCHMARK = "results.json", "canife.json"
_LARGEST_FILE = 2**28
# Twenty times the papers' number; experiments are simulated with so many.
_MOST_CANARIES = 20_000
# The lower bound that the papers print, and the null that each attack's printed numbers are against.
_BOUND = "andrew"
_NULLS = {"all": "unobserved", "final": "exact", "change": "exact"}
# What CANIFE makes of an attack without errors, which its figures show at the bound.
_RULE = "capped"


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
    size = words(document, "size")
    if size not in configuration.SIZES:
        raise ValueError(f"size: must be one of {', '.join(configuration.SIZES)}, not {repr(size)[:60]}")
    shipped = configuration.read(name, size)
    source = words(document, "source")
    # A file of the user's own may have the same name.
    if source != shipped.heading.source or not shipped.ours:
        return None
    cells = tuple(_cell(cell, f"cells[{i}]") for i, cell in enumerate(entries(document, "cells")))
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
    swept = member(value, place, "swept", dict, "an object")
    settings = _settings(member(value, place, "settings", dict, "an object"), f"{place}.settings")
    numbers = {name: count(value, place, name) for name in ("dim", "rounds", "clients", "test_examples")}
    repetitions = tuple(
        _repetition(one, f"{place}.results[{i}]")
        for i, one in enumerate(member(value, place, "results", list, "a list"))
    )
    if not repetitions:
        raise ValueError(f"{place}.results: must not be empty")
    multiplier = number(value, place, "noise_multiplier")
    federation = words(value, "federation", place)
    return Cell(swept, settings, federation, **numbers, noise_multiplier=multiplier, repetitions=repetitions)


def _settings(value: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Read settings by the rules of an experiment's file, where what is absent here is null."""
    tables = {}
    for name, table in value.items():
        if table is not None and not isinstance(table, dict):
            raise ValueError(f"{place}.{name[:60]}: must be an object")
        given = {field: entry for field, entry in (table or {}).items() if entry is not None}
        tables[name] = {field: math.inf if entry == "inf" else entry for field, entry in given.items()}
    try:
        settings = configuration.settings({name: table for name, table in tables.items() if table})
    except ValueError as error:
        raise ValueError(f"{place}.{error}") from None
    return dict(_flat(plain(asdict(settings))))


def _repetition(value: Any, place: str) -> Repetition:
    runs = tuple(_run(one, f"{place}.runs[{i}]") for i, one in enumerate(member(value, place, "runs", list, "a list")))
    if not runs:
        raise ValueError(f"{place}.runs: must not be empty")
    audits = optional(value, "audits")
    if audits is None:
        return Repetition(runs, {})
    attacks = {}
    for attack, null in _NULLS.items():
        inside = f"{place}.audits.{attack}"
        nulls = member(audits, f"{place}.audits", attack, dict, "an object")
        attacks[attack] = _attack(member(nulls, inside, null, dict, "an object"), f"{inside}.{null}")
    return Repetition(runs, attacks)


def _attack(value: Any, place: str) -> Attack:
    numbers = {name: number(value, place, name) for name in ("distance", "distance_error", "ratio", "ratio_error")}
    if not numbers["ratio"] > 0.0 or not min(numbers["distance_error"], numbers["ratio_error"]) >= 0.0:
        raise ValueError(f"{place}.ratio: must be above 0, and errors not below")
    if not 2 <= count(value, place, "observed") <= _MOST_CANARIES:
        raise ValueError(f"{place}.observed: must be from 2 to {_MOST_CANARIES:,}")
    normality, unobserved = optional(value, "normality"), optional(value, "unobserved")
    estimates = member(value, place, "estimates", dict, "an object")
    bounds = member(value, place, "bounds", dict, "an object")
    bound = member(bounds, f"{place}.bounds", _BOUND, dict, "an object")
    return Attack(
        observed=count(value, place, "observed"),
        unobserved=None if unobserved is None else count(value, place, "unobserved"),
        **numbers,
        statistic=float("nan") if normality is None else number(normality, f"{place}.normality", "statistic"),
        **{
            name: number(member(estimates, f"{place}.estimates", name, dict, "an object"), f"{place}.{name}", "epsilon")
            for name in ("fitted", "pinned")
        },
        bound=number(bound, f"{place}.bounds.{_BOUND}", "value"),
    )


def _run(value: Any, place: str) -> Training:
    without = None if optional(value, "accuracy_without") is None else number(value, place, "accuracy_without")
    canife = optional(value, "canife")
    if canife is None:
        return Training(number(value, place, "accuracy"), without, (), None)
    inside = f"{place}.canife"
    audits = tuple(
        _round(one, f"{inside}.audits[{i}]") for i, one in enumerate(member(canife, inside, "audits", list, "a list"))
    )
    return Training(number(value, place, "accuracy"), without, audits, _composed(canife, inside))


def _composed(canife: Any, place: str) -> float | None:
    """Return the mean over the attacks of an audit, of which most experiments have one."""
    rules = member(canife, place, "composed", dict, "an object")
    if optional(rules, _RULE) is None:
        return None
    values = member(rules, f"{place}.composed", _RULE, list, "a list")
    numbers = [number({str(i): one}, f"{place}.composed.{_RULE}", str(i)) for i, one in enumerate(values)]
    if not numbers:
        raise ValueError(f"{place}.composed.{_RULE}: must not be empty")
    return math.fsum(numbers) / len(numbers)


def _round(value: Any, place: str) -> Round:
    attacks = member(value, place, "attacks", list, "a list")
    found = tuple(_trials(one, f"{place}.attacks[{i}]") for i, one in enumerate(attacks))
    if not found:
        raise ValueError(f"{place}.attacks: must not be empty")
    return Round(count(value, place, "round"), number(value, place, "model_accuracy"), found)


def _trials(value: Any, place: str) -> Trials:
    deviations = member(value, place, "deviations", list, "a list")
    if len(deviations) != 2:
        raise ValueError(f"{place}.deviations: must be two numbers")
    both = [number({str(i): one}, f"{place}.deviations", str(i)) for i, one in enumerate(deviations)]
    epsilons = {
        rule: number(member(value, place, rule, dict, "an object"), f"{place}.{rule}", "epsilon")
        for rule in (_RULE, "separated")
    }
    return Trials(
        health=number(value, place, "health"),
        accuracy=number(value, place, "accuracy"),
        deviation=math.fsum(both) / 2,
        epsilon=epsilons[_RULE],
        separated=epsilons["separated"],
    )


def _benchmark(document: Any) -> tuple[tuple[Mapping[str, str], ...], Mapping[str, float]] | None:
    """Return the rows on printed numbers, with the seconds of the parts; None if it is not of Fashion-MNIST in full."""
    printed = member(document, "", "printed", dict, "an object")
    if member(printed, "printed", "fashion", bool, "true or false") is False or words(document, "level") != "full":
        return None
    rows = []
    for i, row in enumerate(member(printed, "printed", "claims", list, "a list")):
        place = f"printed.claims[{i}]"
        rows.append({name: words(row, name, place) for name in ("id", "method", "reading", "verdict", "finding")})
        for name in ("reading", "verdict"):
            if rows[-1][name] not in list(Verdict):
                raise ValueError(f"{place}.{name}: must be a verdict, not {rows[-1][name][:60]!r}")
    scenarios = entries(document, "scenarios")
    if not scenarios:
        raise ValueError("scenarios: must not be empty")
    seconds = member(scenarios[0], "scenarios[0]", "seconds", dict, "an object")
    parts = {name: number(seconds, "scenarios[0].seconds", name) for name in ("training", "oneshot", "canife")}
    return tuple(rows), parts
