"""Findings, and the decision that one table of rules makes of them.

An audit of any kind ends in a list of findings, each of which answers one question. ``decide`` makes the decision of
them. Whatever people or programs read is laid out from both and decides nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from canaryproof.kernels.public import set_module


@set_module("canaryproof.typing")
class Question(StrEnum):
    """A question that an audit may answer."""

    INPUT = "input"  # are these the scores, seed, unit and order that they are said to be?
    NOISE = "noise"  # is the claimed noise there?
    CLIPPING = "clipping"  # was every record clipped?
    SAMPLING = "sampling"  # were the rounds drawn as claimed?
    ACCOUNTING = "accounting"  # does the recorded mechanism have the claimed ε?
    LEAK = "leak"  # does this attacker learn more than the claim allows?
    PLAN = "plan"  # is the audit the one that was decided beforehand?


@set_module("canaryproof.typing")
class Status(StrEnum):
    """The answer to a question."""

    AS_CLAIMED = "as claimed"
    FAILED = "failed"
    CANNOT_SAY = "cannot say"
    NOT_LOOKED_AT = "not looked at"


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Quantity:
    """A number of a finding: its name, its value (None if it is infinite or unknown), and its unit."""

    name: str
    value: float | None
    unit: str = ""


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Finding:
    """The answer to one question about a training, a release or scores.

    Attributes
    ----------
    question, status
        The question, and its answer.
    because
        The reason, one clause made from the numbers.
    noticed
        The smallest fault that would have been noticed with probability 90%; empty if none is known.
    do
        What to look at next; empty if there is nothing to do.
    numbers
        The numbers behind it.
    """

    question: Question
    status: Status
    because: str
    noticed: str = ""
    do: str = ""
    numbers: tuple[Quantity, ...] = ()


@set_module("canaryproof.typing")
class GateOutcome(StrEnum):
    """The outcome of a decision."""

    PASSED = "PASSED"
    NOT_PASSED = "NOT PASSED"
    CANNOT_SAY = "CANNOT SAY"


@dataclass(frozen=True)
class GateRule:
    """A rule of the decision: its name, the outcome, the exit status of a gate, and when it applies."""

    name: str
    outcome: GateOutcome
    status: int
    applies: str


# Where people find the bugs that are usually behind a question that failed.
USUAL_BUGS = 'See "What went wrong?" in the documentation.'
# The first rule that applies decides. Whoever changes one raises the version, which plans hold.
RULES_VERSION = 2
RULES = (
    GateRule("wrong-input", GateOutcome.CANNOT_SAY, 4, "the input is not what it is said to be"),
    GateRule("failed", GateOutcome.NOT_PASSED, 1, "noise, clipping, sampling, accounting or leak failed"),
    GateRule("undecided", GateOutcome.CANNOT_SAY, 3, "the audit is not as planned, or a question is not decided"),
    GateRule("passed", GateOutcome.PASSED, 0, "all questions of the gate are answered as claimed, and nothing failed"),
)


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Decision:
    """The decision on a claim.

    Attributes
    ----------
    outcome, status, rule
        The outcome, the exit status of a gate, and the name of the rule in ``RULES`` that decided.
    asked
        The questions that must be answered as claimed.
    level
        Probability, at most, with which an honest run is not passed, of all tests together.
    notice
        Share of the claimed noise that must be noticed with probability 90%.
    """

    outcome: GateOutcome
    status: int
    rule: str
    asked: tuple[Question, ...]
    level: float
    notice: float


def decide(findings: Sequence[Finding], asked: Iterable[Question], level: float, notice: float) -> Decision:
    """Make the decision of findings, one a question, by ``RULES``."""
    status = {finding.question: finding.status for finding in findings}
    asked = tuple(question for question in Question if question in set(asked))
    failed = {question for question, answer in status.items() if answer is Status.FAILED}
    # A plan that is held against an audit is asked for.
    planned = status.get(Question.PLAN, Status.NOT_LOOKED_AT) in (Status.NOT_LOOKED_AT, Status.AS_CLAIMED)
    open_questions = any(status.get(question) is not Status.AS_CLAIMED for question in asked)
    wrong, contradicted = Question.INPUT in failed, bool(failed - {Question.INPUT, Question.PLAN})
    applies = (wrong, contradicted, not planned or open_questions, True)
    rule = next(rule for rule, here in zip(RULES, applies, strict=True) if here)
    return Decision(rule.outcome, rule.status, rule.name, asked, level, notice)
