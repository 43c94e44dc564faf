"""The record of a watch: counts, sums, tests and exact checks, and no example, gradient or list of members.

Findings and the decision are made of this record alone, so that a file of it answers as the watch did.
"""

from dataclasses import dataclass
from pathlib import Path

from canaryproof.verify.audit.accounting.accountant import Claim, Neighbours
from canaryproof.verify.audit.answer.findings import Question, Status
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import Count
from canaryproof.verify.audit.files.reading import read_json

SCHEMA = "canaryproof watch 1.0.0"


@dataclass(frozen=True)
class Phase:
    """Steps of one noise multiplier, as the accountant reads it, and of the sampler's rate; None if that is unknown."""

    noise_multiplier: float
    rate: float | None
    steps: Count


@dataclass(frozen=True)
class LookTest:
    """A statistical test at the look after some step: of each name the one with the smallest p-value of all looks."""

    question: Question
    step: Count
    name: str
    observed: str
    p_value: float | None
    noticed: str


@dataclass(frozen=True)
class ShadowTrial:
    """A member more, or another one, in a run of the training's own clipping: what it changes, in clip norms."""

    member: str
    step: Count
    change: float
    limit: float

    @property
    def is_excessive(self) -> bool:
        """Whether the member changes the sum by more than it may, or makes it not finite."""
        return not self.change <= self.limit


@dataclass(frozen=True)
class Observation:
    """An exact check that failed, or a reason why a question cannot be answered; the first one of its kind."""

    question: Question
    status: Status
    step: Count
    because: str
    do: str


@dataclass(frozen=True)
class NoiseRecord:
    """The noise of the steps up to the last look.

    Attributes
    ----------
    steps, dim
        Steps in which it was measured, and coordinates of each.
    share
        Its deviation, in those that were claimed.
    high
        Upper limit of that at the level 1e-6, from the law of a sum of squares.
    noticed
        Largest share of the claimed noise that is noticed with probability 90%.
    """

    steps: Count
    dim: Count
    share: float
    high: float
    noticed: float


@dataclass(frozen=True)
class ClippingRecord:
    """The steps in which the clipping was looked at.

    Attributes
    ----------
    gradients, long
        Gradients of examples in the steps where the sum was made again, and those of them longer than the clip norm.
    longest
        Length of the longest one, in clip norms.
    sums
        Steps in which the sum was made again.
    apart
        Largest distance of both sums, in clip norms an example.
    trials
        Runs of the clipping with one member more, or another one.
    worst
        The one with the largest change, as a share of its limit.
    """

    gradients: Count = 0
    long: Count = 0
    longest: float = 0.0
    sums: Count = 0
    apart: float = 0.0
    trials: Count = 0
    worst: ShadowTrial | None = None


@dataclass(frozen=True)
class SamplingRecord:
    """Who was drawn, in the steps up to the last look.

    Attributes
    ----------
    steps, members
        Steps with a record of it, and members of the training.
    rate
        Rate that was tested: the claimed one, or the sampler's.
    mean
        Mean number of members of a step.
    most
        Most steps in which one member took part.
    wrong_rate
        Share by which a rate is off that would have been noticed with probability 90%.
    """

    steps: Count
    members: Count
    rate: float | None
    mean: float
    most: Count
    wrong_rate: float | None


@dataclass(frozen=True)
class AttackerEstimate:
    """An estimate of ε, with its 95% interval, from the scores that inserted canaries have for an attacker."""

    attacker: str
    canaries: Count
    epsilon: float
    low: float
    high: float


@dataclass(frozen=True)
class WatchRecord:
    """All that a watch has recorded.

    Attributes
    ----------
    schema, version
        The form of the record, and the version of the package that wrote it.
    delta
        δ of the claim.
    claim, stated
        The claimed mechanism, and a claimed ε without one.
    accountant
        ε of the training's own accountant; None if it was not asked.
    neighbours
        Which neighbours the claim is about.
    steps, looked, looks, tests
        Steps taken, the step of the last look, the number of looks, and of the statistical tests of all of them.
    clip_norm
        Whether a clip norm was known in each step.
    phases
        Steps of equal noise multiplier and rate, in their order of appearance.
    noise, clipping, sampling
        The record of each; None if there is none.
    results
        Of each test the result with the smallest p-value.
    observations
        Exact checks that failed, and reasons why something cannot be said.
    attackers
        What attackers learn who see less, where canaries were inserted.
    """

    schema: str
    version: str
    delta: float
    claim: Claim | None
    stated: float | None
    accountant: float | None
    neighbours: Neighbours
    steps: Count
    looked: Count
    looks: Count
    tests: Count
    phases: tuple[Phase, ...]
    noise: NoiseRecord | None
    clipping: ClippingRecord
    sampling: SamplingRecord | None
    results: tuple[LookTest, ...]
    observations: tuple[Observation, ...]
    attackers: tuple[AttackerEstimate, ...]


def read_record(path: Path) -> WatchRecord:
    """Read what a watch wrote; an ``InputError`` says what breaks a rule."""
    document = read_json(path)
    try:
        record = json_records.read(WatchRecord, document)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    if record.schema != SCHEMA:
        raise InputError(f"{path}: schema: must be {SCHEMA!r}, not {record.schema!r}")
    return record
