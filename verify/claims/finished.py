"""What finished experiments in a folder say, as far as claims ask for it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
