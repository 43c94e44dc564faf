"""What a check is, what it finds, and what a run of checks leaves behind."""

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np


class Verdict(StrEnum):
    """What the evidence says of a statement."""

    CONFIRMED = "confirmed"  # holds as stated
    QUALIFIED = "qualified"  # holds only under a reading that the text does not state; the finding names it
    REFUTED = "refuted"  # false as stated; the finding gives what is true
    INCONCLUSIVE = "inconclusive"  # the evidence cannot decide at the declared power
    NEEDS_DATA = "needs-data"  # decided by one command once the user supplies a named data set


class Subject(StrEnum):
    """Whose statement is checked: a refuted one of ours is a failure, a refuted one of a document is a finding."""

    IMPLEMENTATION = "implementation"
    DOCUMENT = "document"


class Level(StrEnum):
    """How much work a run does."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True)
class Context:
    """What a check may depend on: the level and the seed, nothing else.

    Attributes
    ----------
    level
        How much work to do.
    seed
        Seed of the whole run, not negative.
    """

    level: Level
    seed: int

    def key(self, purpose: str) -> np.random.SeedSequence:
        """Root of all randomness used for one named purpose."""
        return np.random.SeedSequence(self.seed, spawn_key=(zlib.crc32(purpose.encode()),))

    def pick(self, quick: int, full: int) -> int:
        """Choose a sample size by level."""
        return quick if self.level is Level.QUICK else full


@dataclass(frozen=True)
class Outcome:
    """What a check finds.

    Attributes
    ----------
    verdict
        The verdict.
    finding
        One sentence with the numbers that decide.
    evidence
        Numbers behind it, ready for JSON.
    """

    verdict: Verdict
    finding: str
    evidence: Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """A statement and the function that judges it.

    Attributes
    ----------
    id
        Name, unique over all suites: place for a document's statement, topic for ours.
    subject
        Whose statement it is.
    source
        Document and place, or the module that makes the statement.
    statement
        The statement in our own words, with its printed numbers.
    judge
        Function that gathers the evidence.
    """

    id: str
    subject: Subject
    source: str
    statement: str
    judge: Callable[[Context], Outcome]


@dataclass(frozen=True)
class Result:
    """A judged check of a suite."""

    id: str
    suite: str
    subject: Subject
    source: str
    statement: str
    verdict: Verdict
    finding: str
    evidence: Mapping[str, Any]

    @property
    def failed(self) -> bool:
        """Whether this is a fault of ours and not a finding about a document."""
        return self.subject is Subject.IMPLEMENTATION and self.verdict is not Verdict.CONFIRMED


@dataclass(frozen=True)
class Run:
    """All results of a run, and what they depend on.

    Attributes
    ----------
    version
        Version of the package.
    level, seed
        As in ``Context``.
    results
        In the order of the suites' checks.
    """

    version: str
    level: Level
    seed: int
    results: tuple[Result, ...]

    @property
    def failures(self) -> tuple[Result, ...]:
        """Results that make the run fail."""
        return tuple(result for result in self.results if result.failed)

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON's own types: equal runs give equal documents."""
        document: dict[str, Any] = _plain(asdict(self))
        return document


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    # JSON has no infinities and no NaN.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def perform(suite: str, check: Check, context: Context) -> Result:
    """Judge one check of a suite."""
    outcome = check.judge(context)
    return Result(
        check.id,
        suite,
        check.subject,
        check.source,
        check.statement,
        outcome.verdict,
        outcome.finding,
        outcome.evidence,
    )
