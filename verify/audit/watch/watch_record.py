"""The record of a watch: counts, sums, tests and exact checks, and no example, gradient or list of members.

Findings and the decision are made of this record alone, so that a file of it answers as the watch did.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from canaryproof.kernels.refusals import short_repr
from canaryproof.verify.audit.accounting.accountant import Claim, Neighbours, batch_size
from canaryproof.verify.audit.answer.findings import Question, Status
from canaryproof.verify.audit.answer.instruments import LEVEL, least_wrong_rate, noticed_share, upper_limit
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
    """An exact check that failed, why a question cannot be answered, or a part of it that is not looked at."""

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
    alone
        Examples whose gradients were compared with those that they have alone.
    trials
        Runs of the clipping with one member more, or another one.
    worst
        The one with the largest change, as a share of its limit.
    looks
        Looks after the steps 1, 2, 4, … at which the clipping was handed over; None in a file of a version before.
    """

    gradients: Count = 0
    long: Count = 0
    longest: float = 0.0
    sums: Count = 0
    apart: float = 0.0
    alone: Count = 0
    trials: Count = 0
    worst: ShadowTrial | None = None
    looks: Count | None = None


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
        Most steps in which one member took part, of all steps so far.
    largest
        Most members of one step so far.
    wrong_rate
        Share by which a rate is off that would have been noticed with probability 90%.
    """

    steps: Count
    members: Count
    rate: float | None
    mean: float
    most: Count
    largest: Count
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
        Exact checks that failed, reasons why something cannot be said, and parts of questions not looked at.
    attackers
        What attackers learn who see less, where canaries were inserted.
    alarms
        Findings that had failed when a training asked for them at a look: they stay failed.
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
    alarms: tuple[Observation, ...] = ()


def poisson_rate(claim: Claim) -> float | None:
    """Return the rate of Poisson sampling in a claim; None of any other claim."""
    sampling = claim.sampling
    return float(sampling.rate) if sampling is not None and sampling.kind == "poisson" and sampling.rate else None


def most_participations(claim: Claim, steps: int) -> int | None:
    """Return in how many of so many steps a claim lets one member take part; None where members are drawn anew."""
    if claim.epochs is not None and claim.rounds is not None:
        return -(-steps // (claim.rounds // claim.epochs))
    return claim.participations


def is_replaced(claim: Claim | None) -> bool:
    """Tell whether neighbours have a member in another's place, as in all batches of a fixed size."""
    return claim is not None and (claim.neighbours == "replace" or batch_size(claim) is not None)


def to_file(record: WatchRecord) -> bytes:
    """Return what a watch writes: its record, and the SHA-256 of that."""
    return f"{json_records.dump(json_records.seal(json_records.to_document(record)))}\n".encode()


def read_record(path: Path) -> WatchRecord:
    """Read what a watch wrote; an ``InputError`` says what breaks a rule."""
    document = read_json(path)
    try:
        record = json_records.read(WatchRecord, document)
        if record.schema != SCHEMA:
            raise ValueError(f"schema: must be {SCHEMA!r}, not {short_repr(record.schema)}")
        if not isinstance(document, dict) or json_records.seal(document)["sha256"] != document.get("sha256"):
            raise ValueError("was changed after it was written: its SHA-256 is not the one in its field sha256")
        for name, rule, holds in _rules(record):
            if not holds:
                raise ValueError(f"{name}: must {rule}")
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    return record


# Tests of a look, and the limit of the measured noise; a shadow member's limit has a share and its format's rounding.
_TESTS = {
    Question.NOISE: (
        *("noise", "noise by round", "equal rounds", "noise by layer", "mean", "normal law", "repeats within a round"),
        *("repeats between rounds", "span", "values"),
    ),
    Question.SAMPLING: ("batch size", "spread of batch sizes", "participations", "returns", "drawn once"),
}
_MOST_TESTS = sum(map(len, _TESTS.values())) + 1
_MOST_LIMIT = 1.5
_SAME = 1e-9


def _rules(record: WatchRecord) -> Iterator[tuple[str, str, bool]]:
    """Yield the rules of a record: a field, what it must, and whether it does. What can be derived is."""
    yield "delta", "lie strictly between 0 and 1", 0.0 < record.delta < 1.0
    yield "looked", "be at most the steps", record.looked <= record.steps
    fewest = record.looked.bit_length()
    yield "looks", f"be at least {fewest}, those after 1, 2, 4, … steps", record.looks >= fewest
    yield "looks", "be at most the steps that were looked at", record.looks <= record.looked
    tested = [result for result in record.results if result.p_value is not None]
    yield (
        "tests",
        f"be from {len(tested)} to {_MOST_TESTS} a look",
        (len(tested) <= record.tests <= _MOST_TESTS * record.looks),
    )
    yield "phases", "have no more steps than there are", sum(each.steps for each in record.phases) <= record.steps
    for phase in record.phases:
        yield "phases", "have finite noise multipliers that are not negative", 0.0 <= phase.noise_multiplier < math.inf
        yield "phases", "have rates from 0 to 1", phase.rate is None or 0.0 < phase.rate <= 1.0
    names = [(result.question, result.name) for result in record.results]
    yield "results", "have each test once", len(set(names)) == len(names)
    for result in record.results:
        yield "results", "be of tests that a watch makes", result.name in _TESTS.get(result.question, ())
        yield "results", "have p-values from 0 to 1", result.p_value is None or 0.0 <= result.p_value <= 1.0
        yield "results", "be of steps that were looked at", 1 <= result.step <= record.looked
    for seen in record.observations:
        yield "observations", "have failed, or say what cannot be said or was not looked at", seen.status in _OBSERVED
    for alarm in record.alarms:
        is_of_look = 1 <= alarm.step <= record.looked
        yield "alarms", "have failed at a step that was looked at", alarm.status is Status.FAILED and is_of_look
    for each in record.attackers:
        yield "attackers", "have ordered intervals", each.low <= each.epsilon <= each.high
    words = [record.version, *(each.attacker for each in record.attackers)]
    words += [word for seen in (*record.observations, *record.alarms) for word in (seen.because, seen.do)]
    words += [word for result in record.results for word in (result.observed, result.noticed)]
    words += [] if record.clipping.worst is None else [record.clipping.worst.member]
    yield "texts", "be printable lines", all(word.isprintable() for word in words)
    yield from _noise_rules(record)
    yield from _clipping_rules(record)
    yield from _sampling_rules(record)


_OBSERVED = (Status.FAILED, Status.CANNOT_SAY, Status.NOT_LOOKED_AT)


def _noise_rules(record: WatchRecord) -> Iterator[tuple[str, str, bool]]:
    noise = record.noise
    if noise is None:
        return
    yield "noise.steps", "be from 1 to those that were looked at", 1 <= noise.steps <= record.looked
    yield "noise.dim", "be at least 2", noise.dim >= 2
    yield "noise.share", "be finite and not negative", 0.0 <= noise.share < math.inf
    high = upper_limit(noise.share, noise.steps * noise.dim)
    yield "noise.high", f"be {high!r}, by the other numbers", math.isclose(noise.high, high, rel_tol=_SAME)
    most = noticed_share(noise.steps * noise.dim)
    yield "noise.noticed", f"be at most {most!r}, by the other numbers", 0.0 <= noise.noticed <= most * (1.0 + _SAME)


def _clipping_rules(record: WatchRecord) -> Iterator[tuple[str, str, bool]]:
    seen, most = record.clipping, 2.0 if is_replaced(record.claim) else 1.0
    yield "clipping.long", "be at most the gradients", seen.long <= seen.gradients
    yield (
        "clipping.longest",
        "be above 1 where gradients are long, and only there",
        (seen.longest > 1.0) == (seen.long > 0),
    )
    yield "clipping.looks", "be at most those after 1, 2, 4, … steps", (seen.looks or 0) <= record.looked.bit_length()
    yield "clipping.sums", "be at most the steps", seen.sums <= record.steps + 1
    yield "clipping.worst", "be there where there are trials, and only there", (seen.worst is None) == (not seen.trials)
    if seen.worst is not None:
        yield (
            "clipping.worst.limit",
            f"be from {most:g} to {_MOST_LIMIT * most:g}",
            (most <= seen.worst.limit <= _MOST_LIMIT * most),
        )
        yield "clipping.worst.step", "be a step that was taken", 1 <= seen.worst.step <= record.steps + 1


def _sampling_rules(record: WatchRecord) -> Iterator[tuple[str, str, bool]]:
    seen = record.sampling
    if seen is None:
        return
    yield "sampling.steps", "be from 1 to those that were looked at", 1 <= seen.steps <= record.looked
    yield "sampling.most", "be at most the steps", seen.most <= record.steps
    yield "sampling.rate", "lie in (0, 1]", seen.rate is None or 0.0 < seen.rate <= 1.0
    yield "sampling.mean", "be from 0 to the most members of a step", 0.0 <= seen.mean <= seen.largest * (1.0 + _SAME)
    if seen.rate is None or seen.rate == 1.0 or seen.wrong_rate is None:
        return
    least = least_wrong_rate(seen.members, seen.rate, seen.steps, LEVEL)
    least = math.inf if least is None else least
    yield (
        "sampling.wrong_rate",
        f"be at least {least!r}, by the other numbers",
        (seen.wrong_rate >= least * (1.0 - _SAME)),
    )
    # Each part of a training that was resumed has a look at least, and is tested by itself.
    deviation = math.sqrt(seen.members * seen.rate * (1.0 - seen.rate) / seen.steps)
    is_apart = abs(seen.mean - seen.members * seen.rate) > _BEYOND * math.sqrt(record.looks) * deviation
    failed = any(result.name == "batch size" and (result.p_value or 0.0) <= LEVEL for result in record.results)
    yield "sampling.mean", "be that of the claimed rate where the test of batch sizes says so", failed or not is_apart


# A normal number is beyond it with probability 1e-6.
_BEYOND = 4.9
