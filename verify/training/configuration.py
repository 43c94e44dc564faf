"""Experiments as TOML files, checked: each field has one rule, and what breaks it gets one line.

A file has the fields of ``Heading`` and the tables of ``Settings``. A table ``[[sweep]]`` lists values of fields, which
change together if there are several in it; every combination of such tables is a cell. ``[quick]`` and ``[full]``
replace parts of all this at one size. ``ours`` lists fields that the source of the experiment does not state.

A rule makes a field of a dataclass, whose ``metadata["read"]`` returns a value or raises a ``ValueError``.
"""

import itertools
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from canaryproof.verify.files.errors import InputError
from canaryproof.verify.files.reading import content, opened

_LONGEST, _LONGEST_LINE = 60, 1000


def shortened(words: str) -> str:
    """Cut what would make a message long."""
    return words if len(words) <= _LONGEST else words[:_LONGEST] + "..."


def _refuse(rule: str, value: Any) -> ValueError:
    return ValueError(f"must be {rule}, not {shortened(repr(value))}")


def _rule(reader: Callable[[Any], Any], **options: Any) -> Any:
    return field(metadata={"read": reader}, **options)


def whole(low: int, high: int, **options: Any) -> Any:
    """Field of a whole number in a range."""

    def checked(value: Any) -> int:
        # True is an int to Python.
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise _refuse(f"a whole number from {low} to {high}", value)

    return _rule(checked, **options)


def number(low: float, high: float, *, infinite: bool = False, **options: Any) -> Any:
    """Field of a number in a range, or perhaps infinity."""

    def checked(value: Any) -> float:
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if known and (low <= value <= high or (infinite and value == math.inf)):
            return float(value)
        raise _refuse(f"a number from {low:g} to {high:g}{' or inf' if infinite else ''}", value)

    return _rule(checked, **options)


def one_of(*words: str, **options: Any) -> Any:
    """Field of one of some words."""

    def checked(value: Any) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise _refuse(f"one of {', '.join(words)}", value)

    return _rule(checked, **options)


def flag(**options: Any) -> Any:
    """Field of true or false."""

    def checked(value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise _refuse("true or false", value)

    return _rule(checked, **options)


def text(**options: Any) -> Any:
    """Field of a line of text."""

    def checked(value: Any) -> str:
        if isinstance(value, str) and len(value) <= _LONGEST_LINE and value.isprintable():
            return value
        raise _refuse(f"a line of at most {_LONGEST_LINE} characters", value)

    return _rule(checked, **options)


@dataclass(frozen=True, kw_only=True)
class Heading:
    """Keys above the first TOML table."""

    title: str = text(default="")
    source: str = text(default="")  # what it is an analogue of
    seed: int = whole(0, 2**63 - 1, default=0)
    repetitions: int = whole(1, 10_000, default=1)  # how often each cell is repeated with other randomness


@dataclass(frozen=True, kw_only=True)
class Data:
    """Table ``[data]``: whose examples are trained on."""

    format: str = one_of("digits", "idx", "leaf", "plays", "tff", "cifar10")  # ``digits`` needs no folder
    # what a client has (``digits``, ``idx``, ``cifar10``), or trains on at most (others)
    examples_per_client: int = whole(1, 10**5)
    length: int = whole(2, 10_000, default=80)  # characters, or words, of an example of text
    words: int = whole(1, 10**6, default=10_000)  # in the vocabulary of StackOverflow: the most frequent ones
    side: int = whole(8, 178, default=84)  # width and height in pixels to which CelebA's images are brought


@dataclass(frozen=True, kw_only=True)
class Network:
    """Table ``[model]``: a name of ``networks``, and the width of its hidden layers, by default that of the papers."""

    name: str = one_of(
        "two_layer",
        "small_cnn",
        "four_layer_cnn",
        "resnet18",
        "char_lstm",
        "word_lstm",
        "sent140_lstm",
        "leaf_lstm",
    )
    hidden: int | None = whole(1, 10**5, default=None)


@dataclass(frozen=True, kw_only=True)
class Federated:
    """Table ``[training]``: DP-FedAvg.

    Clients take part ``shuffled`` in epochs, each once in every epoch; ``uniform``, so many in each round without
    replacement; or ``bernoulli``, each in each round by a coin of its own. ``cohort`` is the clients a round, with
    ``bernoulli`` their expected number; ``shuffled`` needs epochs, the others rounds.

    With a quantile, the clip norm adapts to it with the learning rate ``clip_rate``. The noise on the number of
    unclipped clients is a twentieth of the cohort, as in Andrew et al. 2021.

    Noise is ``independent`` in each round, or correlated over rounds by a factorisation: ``tree``, or ``square_root``,
    whose cost grows with the square of the number of rounds. Its multiplier is given. Where noise is independent, it
    may follow from the analytical ε of a client that takes part in one round. With ``bernoulli`` it may follow from
    the ε of all rounds by Rényi accounting, as CANIFE has it. ``inf`` is no noise.

    The training ends when its accuracy on held-out examples (``test``) or on clients' own (``train``), which is looked
    at after every ``accuracy_every`` rounds, is ``until_accuracy`` or more. ``rounds`` is then the largest number of
    rounds. Participation is drawn and privacy is accounted for as if all of them were done: an upper bound.
    """

    participation: str = one_of("shuffled", "uniform", "bernoulli", default="shuffled")
    cohort: int = whole(1, 10**6)
    epochs: int | None = whole(1, 10**6, default=None)
    rounds: int | None = whole(1, 10**6, default=None)
    client_rate: float = number(0.0, 1e3)
    local_epochs: int = whole(1, 1000, default=1)
    batch_size: int = whole(1, 10**5)
    server: str = one_of("sgd", "adam", default="sgd")
    server_rate: float = number(0.0, 1e3)
    momentum: float = number(0.0, 0.999, default=0.0)
    clip_norm: float = number(1e-6, 1e6)
    clip_quantile: float | None = number(0.0, 1.0, default=None)
    clip_rate: float = number(0.0, 10.0, default=0.2)
    noise: str = one_of("independent", "tree", "square_root", default="independent")
    noise_multiplier: float | None = number(0.0, 1e6, default=None)
    one_round_epsilon: float | None = number(1e-3, 1e5, infinite=True, default=None)
    epsilon: float | None = number(1e-3, 1e5, infinite=True, default=None)
    until_accuracy: float | None = number(0.0, 1.0, default=None)
    accuracy_on: str = one_of("test", "train", default="test")
    accuracy_every: int = whole(1, 10**6, default=10)


@dataclass(frozen=True, kw_only=True)
class CanaryPlan:
    """Table ``[canaries]``."""

    count: int = whole(20, 10**6)  # observed canaries of a run; there are as many unobserved ones
    # ``independent`` random directions, as in the papers, or ``orthonormal`` ones
    directions: str = one_of("independent", "orthonormal", default="independent")
    # ``fixed``, or ``coin`` if a fair coin decides on each of all these whether it is observed.
    inclusion: str = one_of("fixed", "coin", default="fixed")
    # ``clients``: as clients do; ``periods``: once in each of so many equal periods; ``last_rounds``: a Poisson number
    # of the last rounds.
    participation: str = one_of("clients", "periods", "last_rounds", default="clients")
    presentations: int = whole(1, 10**6, default=1)  # number of ``periods``
    last_rounds: int = whole(1, 10**6, default=1)  # how many they are
    mean: float = number(0.01, 1e6, default=1.0)  # of the Poisson law
    # models to train, each with so many canaries of its own; their scores are pooled
    runs: int = whole(1, 1000, default=1)


@dataclass(frozen=True, kw_only=True)
class CanifePlan:
    """Table ``[canife]``: audits by CANIFE (Maddock et al., arXiv 2210.02912), by default as it prints."""

    # rounds between audits; without it there is one, after the last round
    every: int | None = whole(1, 10**6, default=None)
    # attacks of an audit, each with a canary, mock clients and trials of its own
    audits: int = whole(1, 1000, default=1)
    scores: int = whole(20, 10**5, default=100)  # trials of an attack, and so its scores
    pool: int = whole(1, 10**6, default=512)  # held-out examples of the mock clients that a canary is designed with
    # this, ``rate``, ``norm_constant`` and ``loss`` are as in ``canife.design``
    steps: int = whole(1, 10**6, default=2500)
    rate: float = number(1e-6, 1e3, default=1.0)
    norm_constant: float = number(0.0, 1e6, default=1.0)
    label: str = one_of("soft", "class", default="class")  # ``soft``: designed with the canary; ``class``: one class
    # ``noise``, or a ``sample`` of a mock client, which the design then leaves out
    start: str = one_of("noise", "sample", default="noise")
    loss: str = one_of("covariance", "mean", default="covariance")
    # the canary takes part in half of the trials (``halves``), or in each by a coin (``coins``)
    inclusion: str = one_of("halves", "coins", default="halves")


@dataclass(frozen=True, kw_only=True)
class AuditTable:
    """Table ``[audit]``."""

    delta: float = number(1e-100, 0.5)
    confidence: float = number(0.5, 0.999999, default=0.95)  # of intervals and bounds
    without_canaries: bool = flag(default=False)  # whether to train the same model without canaries too


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that decides a training, but its seeds; without random canaries, or without CANIFE, that plan is None."""

    data: Data
    model: Network
    training: Federated
    canaries: CanaryPlan | None = None
    canife: CanifePlan | None = None
    audit: AuditTable

    @property
    def random_canaries(self) -> CanaryPlan:
        """The plan of random canaries, where there must be some."""
        if self.canaries is None:
            raise ValueError("canaries: this table must be there")
        return self.canaries

    def check(self) -> None:
        """Check fields against each other; a ``ValueError`` names two that contradict each other."""
        training = self.training
        needed, other = ("epochs", "rounds") if training.participation == "shuffled" else ("rounds", "epochs")
        if getattr(training, needed) is None or getattr(training, other) is not None:
            raise ValueError(f"training.{needed}: must be given with {training.participation}, and {other} must not")
        noises = (training.noise_multiplier, training.one_round_epsilon, training.epsilon)
        if noises.count(None) != 2:
            raise ValueError(
                "training.noise_multiplier: this, one_round_epsilon or epsilon must be given, and only one"
            )
        for name in ("one_round_epsilon", "epsilon"):
            if getattr(training, name) is not None and training.noise != "independent":
                raise ValueError(f"training.{name}: must be given with independent noise alone")
        if training.epsilon is not None and training.participation != "bernoulli":
            raise ValueError("training.epsilon: must be given with bernoulli alone")
        if training.server == "adam" and training.momentum:
            raise ValueError("training.momentum: must not be given with adam")
        if self.canaries is None and self.canife is None:
            raise ValueError("canaries: this table or canife must be there")
        if self.canaries is None and self.audit.without_canaries:
            raise ValueError("audit.without_canaries: must be given with the table canaries alone")
        if self.canaries is not None and training.until_accuracy is not None:
            # A random canary's rounds are drawn for the whole training.
            raise ValueError("training.until_accuracy: must not be given with the table canaries")
        if self.canife is not None and (training.noise != "independent" or training.clip_quantile is not None):
            raise ValueError("canife: must be given with independent noise and a fixed clip norm alone")


SIZES = ("quick", "full")
# Time and memory that a dotted key takes of tomllib grow with the square of its length.
_LARGEST_FILE, _MOST_CELLS = 2**14, 1000
_TABLES = {
    "data": Data,
    "model": Network,
    "training": Federated,
    "canaries": CanaryPlan,
    "canife": CanifePlan,
    "audit": AuditTable,
}
_OPTIONAL = ("canaries", "canife")
_HEADING = tuple(entry.name for entry in fields(Heading))

_T = TypeVar("_T")


@dataclass(frozen=True)
class Cell:
    """A combination of swept values."""

    swept: Mapping[str, Any] = field(hash=False)  # by field, such as ``training.noise_multiplier``
    settings: Settings  # all of them, the swept ones included


@dataclass(frozen=True)
class Configuration:
    """A checked experiment at one size."""

    name: str  # of its file without the ending
    size: str  # ``quick`` or ``full``
    heading: Heading
    axes: tuple[tuple[str, ...], ...]  # fields of each axis of the sweep
    cells: tuple[Cell, ...]  # the last axis changes fastest
    ours: tuple[str, ...] = ()  # fields, such as ``training.batch_size``, that the source does not state


def names() -> list[str]:
    """Names of the experiments that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _shipped().iterdir() if entry.name.endswith(".toml"))


def read(name: str, size: str) -> Configuration:
    """Read an experiment, a file ``….toml`` or one that comes with the package, and check it at both sizes.

    An ``InputError`` names the file, the field and the rule.
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
        try:
            document = tomllib.loads(content(file, _LARGEST_FILE).decode())
            return {other: _at_size(path.stem, document, other) for other in SIZES}[size]
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"is not TOML: {error}") from error
        except RecursionError as error:
            raise ValueError("is nested too deeply") from error


def _shipped() -> Any:
    return files(__package__) / "experiments"


def _at_size(name: str, document: Mapping[str, Any], size: str) -> Configuration:
    own, known = _table(document.get(size, {}), size), (*_HEADING, *_TABLES, "sweep", "ours")
    _check_names(own, known, f"{size}.")
    _check_names(document, (*known, *SIZES), "")
    merged = _merged(document, own)
    axes = _axes(merged.get("sweep", []))
    combinations = (
        dict(itertools.chain.from_iterable(values.items() for values in chosen)) for chosen in itertools.product(*axes)
    )
    return Configuration(
        name,
        size,
        _section(Heading, {key: merged[key] for key in _HEADING if key in merged}, ""),
        tuple(tuple(axis[0]) for axis in axes),
        tuple(Cell(swept, settings(merged, swept)) for swept in combinations),
        _unstated(merged.get("ours", [])),
    )


def _unstated(listed: Any) -> tuple[str, ...]:
    known = {f"{table}.{entry.name}" for table, kind in _TABLES.items() for entry in fields(kind)}
    if not isinstance(listed, list):
        raise ValueError(f"ours: must be a list of fields, not {shortened(repr(listed))}")
    for i, name in enumerate(listed):
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"ours[{i}]: must be a field, such as training.batch_size, not {shortened(repr(name))}")
    return tuple(listed)


def settings(document: Mapping[str, Any], swept: Mapping[str, Any] = MappingProxyType({})) -> Settings:
    """Check the tables of a document, with swept values by field instead of those in the tables."""
    there = {path.partition(".")[0] for path in swept} | document.keys()
    tables = {
        name: dict(_table(document.get(name, {}), name)) for name in _TABLES if name not in _OPTIONAL or name in there
    }
    for path, value in swept.items():
        table, _, key = path.partition(".")
        tables[table][key] = value
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
        path = f"sweep[{i}]"
        lists = {
            f"{table}.{name}": values
            for table, inner in _table(axis, path).items()
            for name, values in _table(inner, f"{path}.{table}").items()
        }
        for name, values in lists.items():
            if name.partition(".")[0] not in _TABLES:
                raise ValueError(f"{path}.{shortened(name)}: there is no such field; tables are {', '.join(_TABLES)}")
            if not isinstance(values, list) or not values:
                raise ValueError(f"{path}.{name}: must be a list of values, not {shortened(repr(values))}")
            if any(name in earlier[0] for earlier in axes):
                raise ValueError(f"{path}.{name}: must not be in two sweeps")
        if len({len(values) for values in lists.values()}) != 1:
            raise ValueError(f"{path}: must have lists of one length")
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


def _table(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise ValueError(f"{shortened(name)}: must be a table, not {shortened(repr(value))}")


def _check_names(table: Mapping[str, Any], known: tuple[str, ...], inside: str) -> None:
    for name in table:
        if name not in known:
            raise ValueError(f"{inside}{shortened(name)}: there is no such field; there are {', '.join(known)}")
