"""The answer of a watch: the decision, the findings, and how they are printed. Nothing here decides."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.answer.findings import (
    USUAL_BUGS,
    Decision,
    Finding,
    GateOutcome,
    Question,
    Status,
    decide,
)
from canaryproof.verify.audit.answer.instruments import LEVEL
from canaryproof.verify.audit.answer.text import WIDTH, finding_lines, is_open, speaker, wrap
from canaryproof.verify.audit.files.json_records import plain
from canaryproof.verify.audit.markup.digits import number, round_up
from canaryproof.verify.audit.watch.watch_findings import ASKED, NOTICE, findings_of
from canaryproof.verify.audit.watch.watch_record import WatchRecord

# No watch looks at these, whatever it is given.
NEVER = (
    "whether the noise's next numbers can be predicted, its last bits, and the time that a step takes",
    "examples that are twice in the data, or belong to one person",
    "what is released besides the parameters: metrics, early stopping, the choice of settings, other runs, pretraining "
    "on the same data",
    "gradients that are not finite, which make a step's whole sum so",
    "a loss that mixes examples, where only gradients are handed over; the noised count of an adaptive clipping",
)


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class WatchAnswer:
    """The answer of a watch.

    Attributes
    ----------
    findings
        The findings on noise, clipping, sampling, accounting and leak.
    decision
        The decision on the claim. It asks all five questions, and its level is that of all tests so far.
    delta, claim
        δ, and the claimed ε; None if nothing is claimed.
    steps, looked
        Steps so far, and the step of the last look, which the statistical tests are of.
    looks, tests
        Number of looks, and of the statistical tests in all of them.
    """

    findings: tuple[Finding, ...]
    decision: Decision
    delta: float
    claim: float | None
    steps: int
    looked: int
    looks: int
    tests: int

    def finding(self, question: Question | str) -> Finding:
        """Return the finding on a question."""
        return next(finding for finding in self.findings if finding.question == question)

    def to_dict(self) -> dict[str, Any]:
        """Return decision and findings in JSON's own types."""
        document: dict[str, Any] = plain(
            {
                "decision": asdict(self.decision),
                "findings": [asdict(finding) for finding in self.findings],
                **{name: getattr(self, name) for name in ("delta", "claim", "steps", "looked", "looks", "tests")},
                "never looked at": NEVER,
            }
        )
        return document

    def to_json(self) -> str:
        """Return decision and findings as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    @property
    def headline(self) -> str:
        """The decision, in a sentence."""
        claim = "what was configured"
        if self.claim is not None:
            claim = f"the claimed ε = {number(self.claim)} (δ = {self.delta:g})"
        ruling = {"failed": f"{claim} does not hold", "undecided": f"{claim} is not decided"}.get(
            self.decision.rule, f"nothing contradicts {claim}, and the noise is there"
        )
        return f"{self.decision.outcome}: {ruling}."

    @property
    def cause(self) -> str:
        """The grounds of the decision: what failed, what is open, or what would have been noticed."""
        if self.decision.outcome is GateOutcome.PASSED:
            noticed = self.finding(Question.NOISE).noticed
            return f"If only {noticed} had been added, this watch would have caught it nine times out of ten."
        failed = [finding for finding in self.findings if finding.status is Status.FAILED]
        deciding = failed or [finding for finding in self.findings if is_open(finding, self.decision)]
        return " ".join(f"{finding.question.capitalize()}: {finding.because}." for finding in deciding[:2])

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = WIDTH, encoding: str = "utf-8") -> str:
        """Print the answer in so many columns, the decision first."""
        looked = f"{self.steps:,} steps, δ = {self.delta:g}; statistical tests after step {self.looked:,}"
        outcome = self.decision.outcome
        # Parts that were not looked at matter where all others are as claimed.
        asked = [
            each for each in self.findings if each.status is not Status.AS_CLAIMED or outcome is GateOutcome.PASSED
        ]
        dos = dict.fromkeys(finding.do for finding in asked if finding.do)
        if outcome is GateOutcome.NOT_PASSED:
            dos[USUAL_BUGS] = None
        level = "no statistical test was made, and no exact check fails by chance."
        if self.tests:
            tests = f"{self.tests:,} tests in {self.looks} looks"
            level = f"at most {round_up(self.tests * LEVEL)} of honest trainings are NOT PASSED by chance ({tests})."
        blocks = [
            ("Watched", f"{looked}."),
            ("Do", " ".join(dos)),
            ("Level", f"{level[:1].upper()}{level[1:]}"),
            ("Never", f"No watch looks at: {'; '.join(NEVER)}."),
        ]
        say = speaker(encoding)
        lines = [*wrap(say(self.headline), width), *wrap(say(self.cause), width), ""]
        lines += [line for finding in self.findings for line in finding_lines(finding, width, say)]
        lines += ["", *(line for label, text in blocks if text for line in wrap(say(text), width, f"{label:10}"))]
        return "\n".join(lines)


def answer_of(record: WatchRecord, pinned: float | None = None) -> WatchAnswer:
    """Make the answer of a watch's record; the claimed ε is the pinned one, if there is one."""
    findings = findings_of(record, pinned)
    decision = decide(findings, ASKED, record.tests * LEVEL, NOTICE)
    claim = record.stated if record.claim is None else record.claim.epsilon(record.delta)
    claim = claim if pinned is None else pinned
    return WatchAnswer(findings, decision, record.delta, claim, record.steps, record.looked, record.looks, record.tests)
