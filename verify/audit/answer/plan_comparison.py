"""The comparison of an audit with the plan that was made before the run, as a record and as a finding."""

from dataclasses import dataclass

from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import short_repr
from canaryproof.verify.audit.answer.findings import Finding, Question, Status
from canaryproof.verify.audit.files.json_records import Count


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Secret:
    """The seed and the nonce that a plan's file commits to.

    Attributes
    ----------
    seed, nonce
        Seed of the canaries, and the nonce in hexadecimal.
    """

    seed: Count
    nonce: str


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Departure:
    """A part of a plan that an audit does not keep.

    Attributes
    ----------
    name, planned, audited
        The part, as planned and as audited.
    """

    name: str
    planned: str
    audited: str


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Comparison:
    """The comparison of an audit with its plan.

    Attributes
    ----------
    status
        Whether the audit is as planned; a plan that another minor version made does not say.
    answer
        The same in a sentence or two.
    file, sha256
        Name of the plan's file, and its SHA-256.
    secret
        The seed and the nonce that the file commits to.
    differences
        What differs.
    unknown
        What an audit of these scores does not know, so that it is not held against the plan.
    """

    status: Status
    answer: str
    file: str
    sha256: str
    secret: Secret
    differences: tuple[Departure, ...]
    unknown: tuple[str, ...]

    @property
    def finding(self) -> Finding:
        """The finding on the plan."""
        parts = [f"{each.name}: {each.planned} planned, {each.audited} audited" for each in self.differences]
        because = "; ".join(parts) if parts else self.answer[:1].lower() + self.answer[1:].rstrip(".")
        do = "" if self.status is Status.AS_CLAIMED else "Audit what was planned, as it was planned."
        do = do if self.status is not Status.CANNOT_SAY else "Hold it against the plan with the version that made it."
        return Finding(Question.PLAN, self.status, because, do=do)

    def __str__(self) -> str:
        rows = [f"  {each.name}: {each.planned} planned, {each.audited} audited" for each in self.differences]
        return "\n".join([f"Plan: {self.answer}", *rows])


def minor(whole: str) -> list[str]:
    """Return a version up to its second number."""
    return whole.split(".")[:2]


def other_version(kind: str, made_by: str) -> str:
    """Say that a report or a plan was made by another minor version, which alone can judge it."""
    return (
        f"The {kind} was made by canaryproof {short_repr(made_by)[1:-1]}, whose numbers this version does not repeat; "
        "check it with that version."
    )
