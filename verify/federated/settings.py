"""What decides a training: the tables of an experiment's file, each field with its rule."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_LONGEST, _LONGEST_LINE = 60, 1000


def shortened(text: str) -> str:
    """Cut what would make a message long."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _refuse(rule: str, value: Any) -> ValueError:
    return ValueError(f"must be {rule}, not {shortened(repr(value))}")


def _rule(read: Callable[[Any], Any], **options: Any) -> Any:
    return field(metadata={"read": read}, **options)


def _whole(low: int, high: int, **options: Any) -> Any:
    def read(value: Any) -> int:
        # True is an int to Python.
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise _refuse(f"a whole number from {low} to {high}", value)

    return _rule(read, **options)


def _number(low: float, high: float, *, infinite: bool = False, **options: Any) -> Any:
    def read(value: Any) -> float:
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if known and (low <= value <= high or (infinite and value == math.inf)):
            return float(value)
        raise _refuse(f"a number from {low:g} to {high:g}{' or inf' if infinite else ''}", value)

    return _rule(read, **options)


def _one_of(*names: str, **options: Any) -> Any:
    def read(value: Any) -> str:
        if isinstance(value, str) and value in names:
            return value
        raise _refuse(f"one of {', '.join(names)}", value)

    return _rule(read, **options)


def _flag(**options: Any) -> Any:
    def read(value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise _refuse("true or false", value)

    return _rule(read, **options)


def _text(**options: Any) -> Any:
    def read(value: Any) -> str:
        if isinstance(value, str) and len(value) <= _LONGEST_LINE and value.isprintable():
            return value
        raise _refuse(f"a line of at most {_LONGEST_LINE} characters", value)

    return _rule(read, **options)


@dataclass(frozen=True, kw_only=True)
class Heading:
    """What stands above the tables.

    Attributes
    ----------
    title
        What the experiment shows.
    source
        What it is an analogue of.
    seed
        Seed of all randomness.
    repetitions
        How often each cell is repeated with other randomness.
    """

    title: str = _text(default="")
    source: str = _text(default="")
    seed: int = _whole(0, 2**63 - 1, default=0)
    repetitions: int = _whole(1, 10_000, default=1)


@dataclass(frozen=True, kw_only=True)
class Data:
    """Table ``[data]``: whose examples are trained on.

    Attributes
    ----------
    format
        ``digits`` needs no folder.
    examples_per_client
        How many examples a client has (``digits``, ``idx``, ``cifar10``), or trains on at most (others).
    length
        Characters, or words, of an example of text.
    words
        Words of the vocabulary of StackOverflow: the most frequent ones.
    side
        Width and height in pixels to which CelebA's images are brought.
    """

    format: str = _one_of("digits", "idx", "leaf", "plays", "tff", "cifar10")
    examples_per_client: int = _whole(1, 10**5)
    length: int = _whole(2, 10_000, default=80)
    words: int = _whole(1, 10**6, default=10_000)
    side: int = _whole(8, 178, default=84)


@dataclass(frozen=True, kw_only=True)
class Network:
    """Table ``[model]``.

    Attributes
    ----------
    name
        Model, as in ``federated.models``.
    hidden
        Width of its hidden layers; by default that of the papers.
    """

    name: str = _one_of(
        "two_layer",
        "small_cnn",
        "char_lstm",
        "word_lstm",
        "four_layer_cnn",
        "resnet18",
        "sent140_lstm",
        "leaf_lstm",
    )
    hidden: int | None = _whole(1, 10**5, default=None)


@dataclass(frozen=True, kw_only=True)
class Federated:
    """Table ``[training]``: DP-FedAvg.

    Attributes
    ----------
    participation
        How clients take part: ``shuffled`` in epochs, each once in every epoch; ``uniform``, so many in each round
        without replacement; ``bernoulli``, each in each round by a coin of its own.
    cohort
        Clients a round; with ``bernoulli``, their expected number.
    epochs, rounds
        How long to train: ``shuffled`` needs epochs, the others rounds.
    client_rate, local_epochs, batch_size
        Each client's own training.
    server, server_rate, momentum
        Server's optimiser, ``sgd`` or ``adam``.
    clip_norm
        Clip norm; the first one, if it adapts.
    clip_quantile, clip_rate
        With a quantile, the clip norm adapts to it with this learning rate; the noise on the number of unclipped
        clients is a twentieth of the cohort, as in Andrew et al. 2021.
    noise
        ``independent`` in each round, or correlated over rounds by a factorisation: ``tree``, or ``square_root``, whose
        cost grows with the square of the number of rounds.
    noise_multiplier, one_round_epsilon
        Noise multiplier, or the analytical ε of a client that takes part in one round, which decides it where noise is
        independent; ``inf`` is no noise.
    """

    participation: str = _one_of("shuffled", "uniform", "bernoulli", default="shuffled")
    cohort: int = _whole(1, 10**6)
    epochs: int | None = _whole(1, 10**6, default=None)
    rounds: int | None = _whole(1, 10**6, default=None)
    client_rate: float = _number(0.0, 1e3)
    local_epochs: int = _whole(1, 1000, default=1)
    batch_size: int = _whole(1, 10**5)
    server: str = _one_of("sgd", "adam", default="sgd")
    server_rate: float = _number(0.0, 1e3)
    momentum: float = _number(0.0, 0.999, default=0.0)
    clip_norm: float = _number(1e-6, 1e6)
    clip_quantile: float | None = _number(0.0, 1.0, default=None)
    clip_rate: float = _number(0.0, 10.0, default=0.2)
    noise: str = _one_of("independent", "tree", "square_root", default="independent")
    noise_multiplier: float | None = _number(0.0, 1e6, default=None)
    one_round_epsilon: float | None = _number(1e-3, 1e5, infinite=True, default=None)


@dataclass(frozen=True, kw_only=True)
class CanaryPlan:
    """Table ``[canaries]``.

    Attributes
    ----------
    count
        Observed canaries of a run; there are as many unobserved ones.
    inclusion
        ``fixed``, or ``coin`` if a fair coin decides on each of all these whether it is observed.
    participation
        ``clients``: as clients do; ``periods``: once in each of so many equal periods; ``last_rounds``: a Poisson
        number of the last rounds.
    presentations
        Number of ``periods``.
    last_rounds, mean
        How many rounds are the last, and the mean of the Poisson law.
    runs
        Models to train, each with so many canaries of its own; their scores are pooled.
    """

    count: int = _whole(20, 10**6)
    inclusion: str = _one_of("fixed", "coin", default="fixed")
    participation: str = _one_of("clients", "periods", "last_rounds", default="clients")
    presentations: int = _whole(1, 10**6, default=1)
    last_rounds: int = _whole(1, 10**6, default=1)
    mean: float = _number(0.01, 1e6, default=1.0)
    runs: int = _whole(1, 1000, default=1)


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """Table ``[audit]``.

    Attributes
    ----------
    delta
        Target δ.
    confidence
        Of intervals and bounds.
    without_canaries
        Whether to train the same model without canaries too, to see what they cost.
    """

    delta: float = _number(1e-100, 0.5)
    confidence: float = _number(0.5, 0.999999, default=0.95)
    without_canaries: bool = _flag(default=False)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that decides a training, but its seeds."""

    data: Data
    model: Network
    training: Federated
    canaries: CanaryPlan
    audit: AuditPlan

    def check(self) -> None:
        """Check fields against each other.

        Raises
        ------
        ValueError
            If two of them contradict each other; names them.
        """
        training = self.training
        needed, other = ("epochs", "rounds") if training.participation == "shuffled" else ("rounds", "epochs")
        if getattr(training, needed) is None or getattr(training, other) is not None:
            raise ValueError(f"training.{needed}: must be given with {training.participation}, and {other} must not")
        if (training.noise_multiplier is None) == (training.one_round_epsilon is None):
            raise ValueError("training.noise_multiplier: this or one_round_epsilon must be given, and not both")
        if training.one_round_epsilon is not None and training.noise != "independent":
            raise ValueError("training.one_round_epsilon: must be given with independent noise alone")
        if training.server == "adam" and training.momentum:
            raise ValueError("training.momentum: must not be given with adam")
