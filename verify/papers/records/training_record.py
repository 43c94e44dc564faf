"""The record of a training experiment, its results.json: what trainings write, and reports and claims read."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from canaryproof.verify.audit.files.json_records import Count, NonEmpty, OmittedIfNone

# The null of the audit that an attack is shown and judged by.
NULLS = {"all": "unobserved", "final": "exact", "change": "exact"}
# Whether an attacker who knows a canary's rounds also knows the clients' data.
DATA_UNKNOWN, DATA_KNOWN = "data unknown", "data known"


@dataclass(frozen=True)
class FitRecord:
    """A test of a law: its statistic, and p-value."""

    statistic: float
    p_value: float


@dataclass(frozen=True)
class EstimateRecord:
    """An estimate ε̂, with its error, a 95% interval, and an enclosure of the number itself."""

    epsilon: float
    standard_error: float
    low: float
    high: float
    certified: tuple[float, float]


@dataclass(frozen=True)
class BoundRecord:
    """A lower bound on ε: its value, the upper end of a posterior interval, and the largest value it can have."""

    value: float
    upper: float | None
    kind: str
    coverage: str
    cap: float


@dataclass(frozen=True)
class AuditRecord:
    """An audit of a repetition's random canaries against one null.

    ``distance`` is their mean in the null's deviations, ``ratio`` their deviation in those.
    """

    observed: Count
    unobserved: Count | None
    distance: float
    distance_error: float
    ratio: float
    ratio_error: float
    variance_p_value: float
    normality: FitRecord | None
    null_law: FitRecord | None
    estimates: Mapping[str, EstimateRecord]
    bounds: Mapping[str, BoundRecord]


@dataclass(frozen=True)
class Density:
    """A density of scores at places of equal distances, with the first and the last of them."""

    low: float
    high: float
    y: NonEmpty[float]


@dataclass(frozen=True)
class RoundEpsilon:
    """CANIFE's ε̂ of a round at the threshold that makes it largest, the errors there, and how many scores there are.

    The limits are those of a threshold fixed in advance, and so not of this one; −∞ where the formula has no value. A
    score that reaches the threshold is taken for one with the canary.
    """

    epsilon: float
    lower: float
    upper: float
    threshold: float
    false_alarms: Count
    missed: Count
    null_count: Count
    count: Count


def largest_finite(count: int, null_count: int, delta: float) -> float:
    """Return the largest finite ε̂: one error of one kind, and none of the other."""
    return math.log((1.0 - delta) * max(count, null_count))


@dataclass(frozen=True)
class ZeroCountsRecord:
    """ε̂ of a round by what no error of a kind makes of it: infinity, or the largest finite value, at δ = 1/n."""

    separated: RoundEpsilon

    @property
    def capped(self) -> RoundEpsilon:
        """The same with the largest finite value in place of infinity."""
        estimate = self.separated
        delta = 1.0 / (estimate.count + estimate.null_count)
        largest = largest_finite(estimate.count, estimate.null_count, delta)
        return replace(estimate, epsilon=min(estimate.epsilon, largest))


@dataclass(frozen=True)
class DesignRecord:
    """How a canary's design ended."""

    loss: float
    norm: float
    health: float
    attempts: Count
    healthy: bool


@dataclass(frozen=True)
class CanifeAttackRecord:
    """An attack by CANIFE: ε̂ of its round, its canary, and its scores.

    ``accuracy`` is that of the best threshold, and ``deviations`` are of scores with the canary and without.
    """

    epsilon: ZeroCountsRecord
    canary: DesignRecord
    accuracy: float
    deviations: tuple[float, float]

    @property
    def deviation(self) -> float:
        """Mean deviation of scores with the canary and without, the paper's measure of a design."""
        return sum(self.deviations) / 2


@dataclass(frozen=True)
class CanifeScores:
    """CANIFE's audit of a model as it is kept until the training ends: canary and trials of each attack."""

    round: Count
    accuracy: float
    loss: NonEmpty[float]
    initial_loss: NonEmpty[float]
    norm: NonEmpty[float]
    attempts: NonEmpty[Count]
    healthy: NonEmpty[bool]
    scores: NonEmpty[NonEmpty[float]]
    inserted: NonEmpty[NonEmpty[bool]]
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class MethodValue:
    """A method's number in one training, and its interval."""

    epsilon: float
    low: float
    high: float


@dataclass(frozen=True)
class KnownRoundsRecord:
    """The noise multiplier that random canaries at known rounds measure, with its interval, and what it composes to.

    ``bound`` is the lower bound from the scores of known rounds, where they were audited, and ``carry_over`` tells by
    them whether later rounds depend on canaries, as of ``RoundsRecord``.
    """

    noise_multiplier: float
    low: float
    high: float
    epsilon: MethodValue
    bound: OmittedIfNone[float] = None
    carry_over: OmittedIfNone[float] = None


@dataclass(frozen=True)
class CanifeAuditRecord:
    """CANIFE's audit of a model after a round; ``composed`` has ε̂ of all rounds until then by rule, for each attack."""

    round: Count
    model_accuracy: float
    attacks: NonEmpty[CanifeAttackRecord]
    composed: Mapping[str, tuple[float, ...] | None]


@dataclass(frozen=True)
class CanifeRecord:
    """CANIFE's part of a training: rounds done, audits in order, and ε̂ of the training by rule, for each attack."""

    rounds: Count
    audits: tuple[CanifeAuditRecord, ...]
    composed: Mapping[str, tuple[float, ...] | None]


@dataclass(frozen=True)
class TrainingRecord:
    """One training; ``accuracy_without`` is that of the same one without canaries, where there was one.

    ``known_rounds`` is what random canaries at known rounds measure, by knowledge of the clients' data.
    """

    canary_seed: int
    accuracy: float
    accuracy_without: float | None
    warnings: tuple[str, ...]
    canife: OmittedIfNone[CanifeRecord] = None
    known_rounds: OmittedIfNone[Mapping[str, KnownRoundsRecord]] = None


@dataclass(frozen=True, kw_only=True)
class PartSeconds:
    """Seconds of a training's parts, the last two of CANIFE's audits."""

    training: float
    scoring: float
    noise: float
    design: OmittedIfNone[float] = None
    attack: OmittedIfNone[float] = None


@dataclass(frozen=True)
class Job:
    """One training of an experiment."""

    cell: Count
    repetition: Count
    run: Count
    with_canaries: bool

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"{self.cell:03}-{self.repetition:03}-{self.run:03}{'' if self.with_canaries else '-without'}"


@dataclass(frozen=True)
class TrainingSeconds(Job, PartSeconds):
    """Seconds of one training's parts."""


@dataclass(frozen=True)
class Finished:
    """Facts of a finished training, its run.json; ``rounds`` where it may end before its last.

    ``known_rounds`` as of ``TrainingRecord``.
    """

    accuracy: float
    seconds: PartSeconds
    warnings: tuple[str, ...]
    rounds: OmittedIfNone[Count] = None
    known_rounds: OmittedIfNone[Mapping[str, KnownRoundsRecord]] = None


@dataclass(frozen=True)
class Timings:
    """Times of all trainings of an experiment, its timings.json, which differ between equal experiments."""

    trainings: tuple[TrainingSeconds, ...]


class NoAuditsError(KeyError):
    """A repetition has no audits of random canaries."""


@dataclass(frozen=True)
class RepetitionRecord:
    """A repetition of a cell: its trainings, and by attack and null the audits of all random canaries in them."""

    runs: NonEmpty[TrainingRecord]
    audits: OmittedIfNone[Mapping[str, Mapping[str, AuditRecord]]] = None
    densities: OmittedIfNone[Mapping[str, Density]] = None

    def audit(self, attack: str) -> AuditRecord:
        """Return the audit that an attack is shown by; a KeyError names what is not there."""
        if self.audits is None:
            raise NoAuditsError("audits")
        return self.audits[attack][NULLS[attack]]


@dataclass(frozen=True)
class Analytical:
    """An analytical ε: an upper bound, infinite without noise; None where none is known."""

    epsilon: float | None
    relation: str  # which data sets are neighbours
    rule: str  # how it was found, or why it was not


@dataclass(frozen=True)
class CanifeTheory:
    """ε by CANIFE's accounting: of a round with the client in it, and of the training if that is Poisson sampling."""

    round: float
    training: float | None


@dataclass(frozen=True, kw_only=True)
class CellRecord:
    """A combination of swept values: these by field, all settings by table and field, and what was found."""

    swept: Mapping[str, Any]
    settings: Mapping[str, Any]
    federation: str
    clients: Count
    test_examples: Count
    dim: Count
    rounds: Count
    noise_multiplier: float
    analytical: Analytical
    canife: OmittedIfNone[CanifeTheory] = None
    results: NonEmpty[RepetitionRecord]

    def runs(self) -> Iterator[TrainingRecord]:
        """Give the trainings of all repetitions."""
        for repetition in self.results:
            yield from repetition.runs


@dataclass(frozen=True)
class ExperimentRecord:
    """An experiment: its name and size, its heading, the fields of each axis of its sweep, and its cells."""

    name: str
    size: str
    title: str
    source: str
    seed: int
    repetitions: Count
    axes: tuple[tuple[str, ...], ...]
    cells: NonEmpty[CellRecord]
