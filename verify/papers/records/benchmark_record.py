"""The record of ``benchmark canife``, its canife.json: what the benchmark writes, and reports and claims read."""

from collections.abc import Mapping
from dataclasses import dataclass

from canaryproof.verify.audit.files.json_records import Count, NonEmpty, OmittedIfNone
from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.records.training_record import (
    Analytical,
    AuditRecord,
    BoundRecord,
    DesignRecord,
    KnownRoundsRecord,
    MethodValue,
    ZeroCountsRecord,
)


@dataclass(frozen=True)
class SpreadRecord:
    """Mean and deviation of one number a training; infinite if one of these is, and then how many are."""

    mean: float
    deviation: float
    infinite: Count


@dataclass(frozen=True)
class NeedsRecord:
    """Knowledge that an audit needs of a training, and views of it."""

    participation: str
    noise: str
    models: str


@dataclass(frozen=True)
class MethodRecord:
    """A method's numbers in all trainings of a scenario; ``cap`` is the largest that it can have."""

    name: str
    kind: str
    needs: NeedsRecord
    family: str
    epsilon: SpreadRecord
    values: NonEmpty[MethodValue]
    cap: float


@dataclass(frozen=True)
class EstimateOrBound:
    """An estimate or a bound in all trainings; ``source`` are the scores that it is of."""

    source: str
    name: str
    kind: str
    coverage: str
    epsilon: SpreadRecord
    cap: float


@dataclass(frozen=True)
class SecondsRecord:
    """Seconds of a training's parts: the training itself, scores of random canaries, and CANIFE by design."""

    training: float
    oneshot: float
    canife: Mapping[str, float]


@dataclass(frozen=True)
class CosinesRecord:
    """Cosines of a CANIFE canary's update with those of the training's clients."""

    root_mean_square: float
    largest: float


@dataclass(frozen=True)
class ScoreLawRecord:
    """Law of a canary's scores, with ε that unlimited scores would show."""

    shift: float
    noise: float
    mean: float
    clients: float
    deviation: float
    epsilon: float


@dataclass(frozen=True)
class AttackRecord:
    """An attack with so many scores."""

    scores: Count
    separation: float
    deviation: float
    epsilon: ZeroCountsRecord


@dataclass(frozen=True)
class RoundAuditRecord:
    """CANIFE's audit of a round: attacks by one canary; ``bounds`` are lower bounds from the first one's scores.

    ``accuracy`` is that of the first attack at its best threshold.
    """

    round: Count
    seconds: float
    cosines: CosinesRecord | None
    canary: DesignRecord
    law: ScoreLawRecord
    accuracy: float
    attacks: NonEmpty[AttackRecord]
    bounds: Mapping[str, BoundRecord]


@dataclass(frozen=True)
class AuditedTraining:
    """One training, audited by all methods.

    ``oneshot`` is by attack and null, ``canife`` by the design of canaries, ``known_rounds`` by knowledge of data.
    ``seen`` is Algorithm 3's audit without the observed canaries that by chance never took part, if there are some.
    """

    analytical: Analytical
    accuracy: float
    oneshot: Mapping[str, Mapping[str, AuditRecord]]
    canife: Mapping[str, NonEmpty[RoundAuditRecord]]
    seconds: SecondsRecord
    warnings: tuple[str, ...]
    known_rounds: OmittedIfNone[Mapping[str, KnownRoundsRecord]] = None
    seen: OmittedIfNone[AuditRecord] = None


@dataclass(frozen=True)
class CanariesRecord:
    """CANIFE's canaries of a scenario and a design, over all audited rounds."""

    separation: SpreadRecord
    deviation: SpreadRecord
    norm: SpreadRecord
    clients: SpreadRecord
    cosine: SpreadRecord
    noise: SpreadRecord
    accuracy: SpreadRecord
    unhealthy: Count
    audits: Count


@dataclass(frozen=True)
class ScenarioRecord:
    """Trainings of a scenario at a learning rate, by method; ``seconds`` are medians, ``canife`` is by design."""

    name: str
    rate: float
    analytical: Analytical
    accuracies: NonEmpty[float]
    methods: NonEmpty[MethodRecord]
    seconds: SecondsRecord
    canife: Mapping[str, CanariesRecord]
    audits: tuple[EstimateOrBound, ...]
    runs: OmittedIfNone[tuple[AuditedTraining, ...]] = None


@dataclass(frozen=True)
class ComposedRecord:
    """CANIFE's ε̂ of a training, and the largest that it can be."""

    epsilon: SpreadRecord
    cap: float


@dataclass(frozen=True)
class ScoreCountRecord:
    """How large CANIFE's ε̂ is with so many scores a round, its conversion at the training's δ and at 1/n.

    ``capped`` counts the audits whose ε̂ is the largest that their scores can show.

    ``separated`` is the number of audits without an error of either kind.
    """

    scores: Count
    round: SpreadRecord
    round_cap: float
    separated: Count
    capped: Count
    audits: Count
    at_delta: ComposedRecord
    at_reciprocal: ComposedRecord


@dataclass(frozen=True)
class UnlimitedRecord:
    """The same of unlimited scores, whose law is known."""

    round: SpreadRecord
    composed: SpreadRecord


@dataclass(frozen=True)
class DesignedRecord:
    """A design of CANIFE's canaries, and what its ε̂ is in trainings of the first scenario.

    ``kind`` says whether it is the printed one, differs from that by one choice or change, or is the redesign.
    """

    name: str
    kind: str
    rate: float
    norm_constant: float
    start: str
    label: str
    restarts: int
    counts: NonEmpty[ScoreCountRecord]
    unlimited: UnlimitedRecord


@dataclass(frozen=True)
class DataRecord:
    """The data of the trainings."""

    name: str
    clients: Count
    held_out: Count


@dataclass(frozen=True)
class BenchmarkPlan:
    """Sizes of a training and of its audits."""

    batch: Count  # examples in a round on average, one of each client that takes part
    canaries: Count  # observed random canaries; as many are unobserved
    every: Count  # CANIFE audits each round whose number, from 1 on, is a multiple of this
    pool: Count  # mock clients, whose examples are held-out ones
    steps: Count  # of a canary's design
    scores: NonEmpty[Count]  # numbers of scores of an audit's attacks; the first is CANIFE's own
    noise_multiplier: float
    clip_norm: float
    delta: float
    rate: float  # learning rate of DP-SGD

    def sizes(self, clients: int, dim: int) -> "BenchmarkSizes":
        """Return the sizes for one epoch of so many clients, and a model of this dimension."""
        rounds = -(-clients // self.batch)
        audited = tuple(range(self.every, rounds + 1, self.every))
        return BenchmarkSizes(**vars(self), audited=audited, rounds=rounds, sampling=self.batch / clients, dim=dim)


@dataclass(frozen=True)
class BenchmarkSizes(BenchmarkPlan):
    """A plan, and what follows from it for the data and the model."""

    audited: NonEmpty[Count]
    rounds: Count
    sampling: float
    dim: Count


@dataclass(frozen=True)
class MemoryRecord:
    """Bytes of the arrays that the methods hold."""

    oneshot: Count
    canife: Count


@dataclass(frozen=True)
class PrintedReading:
    """A reading of a printed number, what was found of it, and the verdicts on the reading and on the claim.

    A reading is a training, by how it samples and who counts as seen, with one method on it.
    """

    id: str
    statement: str
    training: str
    method: str
    epsilon: SpreadRecord
    reading: Verdict
    verdict: Verdict
    finding: str


@dataclass(frozen=True)
class PrintedRecord:
    """The printed numbers, which are decided on Fashion-MNIST alone."""

    fashion: bool
    level: float
    claims: tuple[PrintedReading, ...]


@dataclass(frozen=True, kw_only=True)
class BenchmarkRecord:
    """The benchmark: what was run, and what was found.

    ``compilation`` is in seconds, ``rdp`` is ε of the true noise by CANIFE's accountant. The first scenario is that of
    Poisson samples, and ``sweep`` has a training of it for each learning rate. The first design is the printed one.
    """

    level: str
    repeat: Count
    seed: int
    data: DataRecord
    setting: BenchmarkSizes
    compilation: float
    memory: MemoryRecord
    rdp: float
    scenarios: NonEmpty[ScenarioRecord]
    printed: OmittedIfNone[PrintedRecord] = None
    designs: NonEmpty[DesignedRecord]
    sweep: tuple[ScenarioRecord, ...]
    environment: Mapping[str, str]
