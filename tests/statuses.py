"""What an audit says in a few words: its decision, and what failed or is open."""

from canaryproof.verify.audit.answer.findings import GateOutcome, Question, Status
from canaryproof.verify.audit.answer.run_audit import Audit


def ruling(audit: Audit) -> str:
    """Return the outcome and the questions that decide it: ``NOT PASSED: noise, leak``; empty without a decision."""
    if audit.decision is None:
        return ""
    outcome = audit.decision.outcome
    failed = [finding.question.value for finding in audit.findings if finding.status is Status.FAILED]
    missing = [
        finding.question.value
        for finding in audit.findings
        if finding.question in audit.decision.asked and finding.status is not Status.AS_CLAIMED
    ]
    if outcome is GateOutcome.PASSED:
        return outcome.value
    deciding = ["input"] if audit.decision.status == 4 else failed or missing
    return f"{outcome.value}: {', '.join(deciding)}"


def has_passed(audit: Audit) -> bool:
    """Tell whether a gate passes."""
    return audit.decision is not None and audit.decision.outcome is GateOutcome.PASSED


def has_failed(audit: Audit, *questions: str) -> bool:
    """Tell whether one of these questions failed."""
    return any(audit.finding(question).status is Status.FAILED for question in map(Question, questions))
