"""Experiments as TOML files, checked: each field has one rule, and what breaks it gets one line.

A file has the fields of ``Heading`` and the tables of ``Settings``. A table ``[[sweep]]`` lists values of fields, which
change together if there are several in it; every combination of such tables is a cell. ``[quick]`` and ``[full]``
replace parts of all this at one size. ``unstated`` lists fields that the source of the experiment does not state.
"""

import itertools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from canaryproof.kernels.refusals import short_repr, shorten
from canaryproof.kernels.successors import current_keys
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import content, open_file
from canaryproof.verify.audit.rules import line, number, one_of, whole


@dataclass(frozen=True, kw_only=True)
class Heading:
    """Keys above the first TOML table."""

    title: Annotated[str, line] = ""
    source: Annotated[str, line] = ""  # what it is an analogue of
    seed: Annotated[int, whole(0, 2**63 - 1)] = 0
    repetitions: Annotated[int, whole(1, 10_000)] = 1  # how often each cell is repeated with other randomness


@dataclass(frozen=True, kw_only=True)
class Data:
    """Table ``[data]``: whose examples are trained on."""

    format: Annotated[str, one_of("digits", "idx", "leaf", "plays", "tff", "cifar10")]  # ``digits`` needs no folder
    # what a client has (``digits``, ``idx``, ``cifar10``), or trains on at most (others)
    examples_per_client: Annotated[int, whole(1, 10**5)]
    length: Annotated[int, whole(2, 10_000)] = 80  # characters, or words, of an example of text
    words: Annotated[int, whole(1, 10**6)] = 10_000  # in the vocabulary of StackOverflow: the most frequent ones
    side: Annotated[int, whole(8, 178)] = 84  # width and height in pixels to which CelebA's images are brought


@dataclass(frozen=True, kw_only=True)
class Network:
    """Table ``[model]``: a name of ``networks``, and the width of its hidden layers, by default that of the papers."""

    name: Annotated[
        str,
        one_of(
            *("two_layer", "small_cnn", "four_layer_cnn", "resnet18"),
            *("char_lstm", "word_lstm", "sent140_lstm", "leaf_lstm"),
        ),
    ]
    hidden: Annotated[int, whole(1, 10**5)] | None = None


@dataclass(frozen=True, kw_only=True)
class Federated:
    """Table ``[training]``: DP-FedAvg.

    Clients take part ``shuffled`` in epochs, each once in every epoch; or ``uniform``, so many in each round without
    replacement. With ``bernoulli``, each takes part in each round by a coin of its own. ``cohort`` is the clients a
    round, with ``bernoulli`` their expected number. ``shuffled`` needs epochs, the others rounds.

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

    participation: Annotated[str, one_of("shuffled", "uniform", "bernoulli")] = "shuffled"
    cohort: Annotated[int, whole(1, 10**6)]
    epochs: Annotated[int, whole(1, 10**6)] | None = None
    rounds: Annotated[int, whole(1, 10**6)] | None = None
    client_rate: Annotated[float, number(0.0, 1e3)]
    local_epochs: Annotated[int, whole(1, 1000)] = 1
    batch_size: Annotated[int, whole(1, 10**5)]
    server: Annotated[str, one_of("sgd", "adam")] = "sgd"
    server_rate: Annotated[float, number(0.0, 1e3)]
    momentum: Annotated[float, number(0.0, 0.999)] = 0.0
    clip_norm: Annotated[float, number(1e-6, 1e6)]
    clip_quantile: Annotated[float, number(0.0, 1.0)] | None = None
    clip_rate: Annotated[float, number(0.0, 10.0)] = 0.2
    noise: Annotated[str, one_of("independent", "tree", "square_root")] = "independent"
    noise_multiplier: Annotated[float, number(0.0, 1e6)] | None = None
    one_round_epsilon: Annotated[float, number(1e-3, 1e5, infinite=True)] | None = None
    epsilon: Annotated[float, number(1e-3, 1e5, infinite=True)] | None = None
    until_accuracy: Annotated[float, number(0.0, 1.0)] | None = None
    accuracy_on: Annotated[str, one_of("test", "train")] = "test"
    accuracy_every: Annotated[int, whole(1, 10**6)] = 10


@dataclass(frozen=True, kw_only=True)
class CanaryPlan:
    """Table ``[canaries]``."""

    count: Annotated[int, whole(20, 10**6)]  # observed canaries of a run; there are as many unobserved ones
    # ``independent`` random directions, as in the papers, or ``orthonormal`` ones
    directions: Annotated[str, one_of("independent", "orthonormal")] = "independent"
    # ``fixed``: so many in and so many out, as in the papers, so that a file that states nothing stays what it was.
    # ``coin``: a fair coin decides on each of all these whether it is observed, so that ``one-run`` is proven.
    inclusion: Annotated[str, one_of("fixed", "coin")] = "fixed"
    # ``clients``: as clients do; ``periods``: once in each of so many equal periods; ``last_rounds``: a Poisson number
    # of the last rounds.
    participation: Annotated[str, one_of("clients", "periods", "last_rounds")] = "clients"
    presentations: Annotated[int, whole(1, 10**6)] = 1  # number of ``periods``
    last_rounds: Annotated[int, whole(1, 10**6)] = 1  # how many they are
    mean: Annotated[float, number(0.01, 1e6)] = 1.0  # of the Poisson law
    # models to train, each with so many canaries of its own; their scores are pooled
    runs: Annotated[int, whole(1, 1000)] = 1


@dataclass(frozen=True, kw_only=True)
class CanifePlan:
    """Table ``[canife]``: audits by CANIFE (Maddock et al., arXiv 2210.02912), by default as its own paper prints."""

    # rounds between audits; without it there is one, after the last round
    every: Annotated[int, whole(1, 10**6)] | None = None
    # attacks of an audit, each with a canary, mock clients and trials of its own
    audits: Annotated[int, whole(1, 1000)] = 1
    scores: Annotated[int, whole(20, 10**5)] = 100  # trials of an attack, and so its scores
    pool: Annotated[int, whole(1, 10**6)] = 512  # held-out examples of the mock clients that a canary is designed with
    # this, ``rate``, ``norm_constant`` and ``loss`` are as in ``canife.design``
    steps: Annotated[int, whole(1, 10**6)] = 2500
    rate: Annotated[float, number(1e-6, 1e3)] = 1.0
    norm_constant: Annotated[float, number(0.0, 1e6)] = 1.0
    # designed by the ``gradient``, as equation (1) has it, or by the client's ``update`` (Appendix F, second way)
    vector: Annotated[str, one_of("gradient", "update")] = "gradient"
    label: Annotated[str, one_of("soft", "class")] = "class"  # ``soft``: designed with the canary; ``class``: one class
    # ``noise``, or a ``sample`` of a mock client, which the design then leaves out
    start: Annotated[str, one_of("noise", "sample")] = "noise"
    loss: Annotated[str, one_of("covariance", "mean")] = "covariance"
    # the canary takes part in half of the trials (``halves``), or in each by a coin (``coins``)
    inclusion: Annotated[str, one_of("halves", "coins")] = "halves"


@dataclass(frozen=True, kw_only=True)
class AuditTable:
    """Table ``[audit]``."""

    delta: Annotated[float, number(1e-100, 0.5)]
    confidence: Annotated[float, number(0.5, 0.999999)] = 0.95  # of intervals and bounds
    without_canaries: bool = False  # whether to train the same model without canaries too


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


@dataclass(frozen=True)
class Cell:
    """A combination of swept values."""

    swept: Mapping[str, Any] = field(hash=False)  # by field, such as ``training.noise_multiplier``
    settings: Settings  # all of them, the swept ones included


@dataclass(frozen=True)
class Configuration:
    """A checked experiment at one size."""

    name: str  # of one that comes with the package, or the name of a file that ends in .toml
    size: str  # ``quick`` or ``full``
    heading: Heading
    axes: tuple[tuple[str, ...], ...]  # fields of each axis of the sweep
    cells: tuple[Cell, ...]  # the last axis changes fastest
    unstated: tuple[str, ...] = ()  # fields, such as ``training.batch_size``, that the source does not state


def names() -> list[str]:
    """Names of the experiments that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _shipped().iterdir() if entry.name.endswith(".toml"))


def read(name: str, size: str) -> Configuration:
    """Read an experiment, a file ``….toml`` or one that comes with the package, and check it at both sizes.

    An ``InputError`` names the file, the field and the rule.
    """
    if name in names():
        path, called = Path(str(_shipped() / f"{name}.toml")), name
    elif name.endswith(".toml"):
        path, called = Path(name), Path(name).name
    else:
        raise InputError(
            f"{name}: must be a file whose name ends in .toml, or an experiment that comes with the package: "
            f"{', '.join(names())}"
        )
    with open_file(path) as file:
        try:
            document = current_keys("experiment", tomllib.loads(content(file, _LARGEST_FILE).decode("utf-8-sig")))
            return {other: _at_size(called, document, other) for other in SIZES}[size]
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"is not TOML: {error}") from error
        except RecursionError as error:
            raise ValueError("is nested too deeply") from error


def _shipped() -> Any:
    return files(__package__) / "experiments"


def _at_size(name: str, document: Mapping[str, Any], size: str) -> Configuration:
    own = current_keys("experiment", _table(document.get(size, {}), size))
    known = (*_HEADING, *_TABLES, "sweep", "unstated")
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
        json_records.read(Heading, {key: merged[key] for key in _HEADING if key in merged}, exact=True),
        tuple(tuple(axis[0]) for axis in axes),
        tuple(Cell(swept, settings(merged, swept)) for swept in combinations),
        _unstated(merged.get("unstated", [])),
    )


def _unstated(listed: Any) -> tuple[str, ...]:
    known = {f"{table}.{entry.name}" for table, kind in _TABLES.items() for entry in fields(kind)}
    if not isinstance(listed, list):
        raise ValueError(f"unstated: must be a list of fields, not {short_repr(listed)}")
    for i, name in enumerate(listed):
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"unstated[{i}]: must be a field, such as training.batch_size, not {short_repr(name)}")
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
    made = json_records.read(Settings, tables, exact=True)
    made.check()
    return made


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
                raise ValueError(f"{path}.{shorten(name)}: there is no such field; tables are {', '.join(_TABLES)}")
            if not isinstance(values, list) or not values:
                raise ValueError(f"{path}.{name}: must be a list of values, not {short_repr(values)}")
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
    raise ValueError(f"{shorten(name)}: must be a table, not {short_repr(value)}")


def _check_names(table: Mapping[str, Any], known: tuple[str, ...], inside: str) -> None:
    for name in table:
        if name not in known:
            raise ValueError(f"{inside}{shorten(name)}: there is no such field; there are {', '.join(known)}")
