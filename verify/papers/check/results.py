"""Checks, their outcomes, and the results of a run."""

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, Self

import numpy as np

from canaryproof.verify.audit.files.json_records import Count, OmittedIfNone, read, to_document

# 12 × the number of results in a full run.
_MOST_RESULTS = 10_000

# Bound on the probability that chance alone changes a verdict of a full run, summed over all stochastic checks.
FALSE_ALARM_BUDGET = 1e-3


class Verdict(StrEnum):
    """Verdict of the evidence on a statement."""

    CONFIRMED = "confirmed"  # holds as stated
    QUALIFIED = "qualified"  # holds under a reading, condition or approximation that the text does not state
    REFUTED = "refuted"  # false as stated; the finding gives what is true
    INCONCLUSIVE = "inconclusive"  # the evidence cannot decide at the declared power
    NEEDS_DATA = "needs-data"  # only a data set decides; the finding names it and the command that will


class Subject(StrEnum):
    """Author of the statement: a refuted one of the package is a failure, a refuted one of others is a finding."""

    IMPLEMENTATION = "implementation"
    DOCUMENT = "document"
    TOOL = "tool"  # of another tool's documentation


class Effort(StrEnum):
    """Amount of work in a run; ``--level`` and the files of runs name it."""

    SMOKE = "smoke"  # a quick run with fewer draws, for this package's own tests
    QUICK = "quick"
    FULL = "full"


# The suites, in the order of their results; ``suites.catalogue`` has the checks of each.
SUITE_NAMES = (
    "numerics", "algorithm1", "estimators", "audit", "theorems", "bounds", "claims", "orthonormal", "blindspots",
    "training", "canife",
)  # fmt: skip


class Measurements(Protocol):
    """The user's finished experiments, of which a run records the digest; ``claims.experiment_results`` reads them."""

    @property
    def digest(self) -> str:
        """Digest of all files that were read."""


@dataclass(frozen=True)
class Context:
    """All that a check may depend on: the level, the seed and the user's measurements."""

    level: Effort
    seed: int  # of the whole run, not negative
    # Finished experiments, which decide claims on what the papers measured.
    measurements: Measurements | None = field(default=None, hash=False)

    def key(self, purpose: str) -> np.random.SeedSequence:
        """Root of all randomness used for one named purpose."""
        return np.random.SeedSequence(self.seed, spawn_key=(zlib.crc32(purpose.encode()),))

    def pick(self, quick: int, full: int, smoke: int | None = None) -> int:
        """Choose a sample size by level; that of the quick level is the smoke level's too, unless another is given."""
        if self.level is Effort.FULL:
            return full
        return quick if smoke is None or self.level is Effort.QUICK else smoke


@dataclass(frozen=True)
class Design:
    """Declaration of a statistical test; it does not depend on the draws."""

    null: str  # what holds if there is nothing to find
    # Bound on the probability of another verdict than the null's though the null holds: all looks and parts together.
    level: float
    alternative: str  # what the test is to notice
    power: float  # probability, or a lower bound of it, with which it does
    runs: int  # size of each sample: simulations, unless the null says of what


@dataclass(frozen=True)
class Outcome:
    """Outcome of a check: a verdict, a sentence with the numbers that decide, and evidence ready for JSON."""

    verdict: Verdict
    finding: str
    evidence: Mapping[str, Any]
    # The test, if the verdict depends on chance. Inputs drawn to look for an exception to what always holds need none.
    design: Design | None = None


@dataclass(frozen=True)
class Check:
    """A statement, in our own words with its printed numbers, and the function that judges it."""

    id: str  # unique over all suites: a document's place, or a topic
    subject: Subject
    source: str  # document and place, or the module that makes the statement
    statement: str
    judge: Callable[[Context], Outcome]
    # Checks of a suite with the same key share an expensive computation and run in one process.
    shared_key: str = ""


@dataclass(frozen=True)
class Origin:
    """When and how a published result was judged: not all of them are of one run."""

    version: str
    date: str  # as in 2026-11-26
    level: Effort
    seed: Count
    source: str  # digest of the check's own code


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
    design: Design | None = None
    origin: OmittedIfNone[Origin] = None

    @property
    def failed(self) -> bool:
        """Whether this is a fault of the package and not a finding about a document."""
        return self.subject is Subject.IMPLEMENTATION and self.verdict is not Verdict.CONFIRMED

    @property
    def is_line(self) -> bool:
        """Whether this is about a line of a proof, of which there are too many to list those that hold."""
        return self.suite == "theorems" and "kind" in self.evidence

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON's own types: equal results give equal documents."""
        return to_document(self)

    @classmethod
    def from_json(cls, document: object) -> Self:
        """Read what ``to_json`` made; a ValueError of one line names the field and the rule."""
        return read(cls, document, exact=True)


@dataclass(frozen=True)
class Run:
    """All results of a run, in the order of the suites' checks, and what they depend on."""

    version: str
    level: Effort
    seed: Count
    results: tuple[Result, ...]

    @property
    def failures(self) -> tuple[Result, ...]:
        """Results that make the run fail."""
        return tuple(result for result in self.results if result.failed)

    @property
    def designs(self) -> tuple[Design, ...]:
        """Tests of the checks whose verdicts depend on chance."""
        return tuple(result.design for result in self.results if result.design is not None)

    @property
    def false_alarm_probability(self) -> float:
        """Bound on the probability that chance alone changes a verdict: the sum of the tests' levels."""
        return math.fsum(design.level for design in self.designs)

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON's own types: equal runs give equal documents."""
        return to_document(self)

    @classmethod
    def from_json(cls, document: object) -> Self:
        """Read what ``to_json`` made; a ValueError of one line names the field and the rule."""
        results = document.get("results") if isinstance(document, dict) else None
        if isinstance(results, list) and len(results) > _MOST_RESULTS:
            raise ValueError(f"results: must have at most {_MOST_RESULTS}, not {len(results)}")
        return read(cls, document, exact=True)


def false_alarms(run: Run) -> str:
    """Say in a line how probable it is that chance alone changed a verdict of a run."""
    return (
        f"{len(run.designs)} verdicts depend on chance; the probability that it changes one of them is at most "
        f"{run.false_alarm_probability:.1g}, of {FALSE_ALARM_BUDGET:g} that a run may have"
    )


def over_budget(run: Run) -> str:
    """Say in a line that chance alone may change a verdict more often than a run may have it; else nothing."""
    if run.false_alarm_probability <= FALSE_ALARM_BUDGET:
        return ""
    return (
        f"the levels of {len(run.designs)} tests add up to {run.false_alarm_probability:.1g}, more than the "
        f"{FALSE_ALARM_BUDGET:g} that a run may have"
    )


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
        outcome.design,
    )
