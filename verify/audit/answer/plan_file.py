"""A plan as a file that is published before a run, and the comparison of an audit with it.

The file commits to the canaries' seed by a hash with a nonce. Seed and nonce are in a second file, which stays secret
until the report publishes both: whoever trains, and knew them before, could treat canaries in another way than people.
"""

import hashlib
import json
import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from canaryproof.kernels.refusals import short_repr
from canaryproof.verify.audit.answer.findings import RULES_VERSION, Status
from canaryproof.verify.audit.answer.plan import AuditPlan
from canaryproof.verify.audit.answer.plan_comparison import Comparison, Departure, Secret, minor, other_version
from canaryproof.verify.audit.answer.result import AuditResult
from canaryproof.verify.audit.answer.rounds_plan import RoundsPlan
from canaryproof.verify.audit.bounds.catalogue import DEFAULT, METHODS
from canaryproof.verify.audit.bounds.lower_bound import Inclusion
from canaryproof.verify.audit.canaries.round_scores import directions_of
from canaryproof.verify.audit.canaries.scores import Score
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import Count
from canaryproof.verify.audit.files.reading import ScoreKind, content, open_file, parsed_json, read_json
from canaryproof.verify.audit.levels import POWER

SCHEMA = "canaryproof audit plan 2.0.0"
_LARGEST = 2**22
# JSON's numbers are floats to many readers, which have whole numbers of so many bits.
_SEED_BITS = 53
# Numbers that are equal to five digits are equal: the commands of a plan print six.
_DIGITS = 1e-5
# The score of a release's canary.
_COSINE = "cosine with the release"


@dataclass(frozen=True)
class Decided:
    """The decisions of a plan.

    Attributes
    ----------
    subject, score
        What is audited, ``release`` or ``scores``, and the score of a canary.
    count, null_count
        Canaries that take part, and that do not; None where the null is known. Where coins decide which do, all
        canaries, and None.
    dim, directions
        Dimension and directions of the canaries.
    delta, confidence, claim, neighbours, noise_multiplier
        Arguments of the audit; the claim is its ε. The noise is that of a release, or of a round.
    rounds, participations, others_known
        Rounds of the training, those of a canary, and whether others' updates are known; None where rounds are drawn,
        or it is not recorded.
    difference
        Whether the release is a difference of two models, and not one noisy sum; None of scores.
    kind, inclusion, bounds, force
        Arguments of the audit; without names of bounds the default one decides.
    notice, ask
        What the decision asks for: a share of the noise, and questions, without names those of the rules.
    rules
        Version of the rules that make the decision.
    """

    subject: str
    score: str | None
    count: Count
    null_count: Count | None
    dim: Count | None
    directions: str | None
    delta: float
    confidence: float
    claim: float | None
    neighbours: str
    noise_multiplier: float | None
    rounds: Count | None
    participations: Count | None
    others_known: bool | None
    difference: bool | None
    kind: str
    inclusion: str
    bounds: tuple[str, ...]
    force: bool
    notice: float
    ask: tuple[str, ...]
    rules: Count


@dataclass(frozen=True)
class Noticed:
    """A share of the claimed noise that the planned canaries notice, with its probability; None if there is none."""

    share: float | None
    probability: float


@dataclass(frozen=True)
class MethodVersion:
    """A method, and the version of it that gives the planned numbers."""

    name: str
    version: Count


@dataclass(frozen=True)
class PlanFile:
    """The fields of a plan's file.

    Attributes
    ----------
    schema, version
        Name and version of the form, which ``plan_schema.json`` describes, and the package's version.
    seed_sha256
        SHA-256 of ``NONCE:SEED``: the nonce in hexadecimal, and the seed of the canaries.
    decided, bound, noticed
        What is decided, the lower bound that decides, and what the canaries notice.
    plan
        The plan, as ``canaryproof plan --json`` prints it.
    """

    schema: str
    version: str
    seed_sha256: str
    decided: Decided
    bound: MethodVersion
    noticed: Noticed
    plan: Any


def secret_path(path: Path) -> Path:
    """Return the file with the seed and the nonce of a plan's file."""
    return path.with_name(f"{path.stem}.secret.json")


def draw_secret(seed: int | None) -> Secret:
    """Return a seed, drawn at random if none is given, with a new nonce."""
    return Secret(secrets.randbits(_SEED_BITS) if seed is None else seed, secrets.token_hex(16))


def file_contents(planned: AuditPlan | RoundsPlan, secret: Secret, document: dict[str, Any]) -> tuple[bytes, bytes]:
    """Return the contents of a plan's file and of the file with its secret; the document is the plan as JSON."""
    saved = PlanFile(
        schema=SCHEMA,
        version=version("canaryproof"),
        seed_sha256=_commitment(secret),
        decided=_decisions_of_plan(planned),
        bound=MethodVersion(DEFAULT, METHODS[DEFAULT].version),
        noticed=Noticed(planned.short_noise if planned.seeing is not None else None, POWER),
        plan=document,
    )
    return tuple(
        (json.dumps(json_records.to_document(each), indent=2, allow_nan=False) + "\n").encode()
        for each in (saved, secret)
    )  # type: ignore[return-value]


def _commitment(secret: Secret) -> str:
    return hashlib.sha256(f"{secret.nonce}:{secret.seed}".encode()).hexdigest()


def _decisions_of_plan(planned: AuditPlan | RoundsPlan) -> Decided:
    asked: dict[str, Any] = {
        "delta": planned.delta,
        "confidence": planned.confidence,
        "claim": planned.claim,
        "count": planned.total,
        "null_count": None,
        "inclusion": str(Inclusion.FIXED if planned.designs is None else Inclusion.COIN),
        "bounds": (),
        "force": False,
        "notice": planned.notice,
        "ask": (),
        "rules": RULES_VERSION,
    }
    if isinstance(planned, RoundsPlan):
        claim = planned.mechanism
        # Cosines of one round have an exact null.
        exact = claim.participations == 1
        return Decided(
            subject="scores",
            score=str(Score.LIKELIHOOD if claim.participations is None else Score.KNOWN_ROUNDS),
            dim=planned.dim,
            directions="independent",
            neighbours=claim.neighbours,
            noise_multiplier=claim.noise_multiplier,
            rounds=claim.rounds,
            participations=claim.participations,
            others_known=planned.known,
            difference=None,
            kind=str(ScoreKind.COSINE if exact else ScoreKind.ANY),
            **asked,
        )
    return Decided(
        subject="scores" if planned.all_rounds else "release",
        score=str(Score.LARGEST) if planned.all_rounds else _COSINE,
        dim=planned.dim,
        directions=planned.directions,
        neighbours=planned.neighbours,
        noise_multiplier=planned.release_noise,
        rounds=planned.rounds if planned.all_rounds else None,
        participations=1 if planned.all_rounds else None,
        others_known=None,
        # The difference of two models is planned by its rounds.
        difference=None if planned.all_rounds else False,
        kind=str(ScoreKind.COSINE),
        **asked,
    )


def _decisions_of_audit(result: AuditResult) -> Decided:
    request, record = result.request, result.scores.record
    canaries, traces = request.canaries, None if record is None else record.traces
    dim = result.dim if traces is None else traces.dim
    score = None if record is None else str(record.score)
    # Canaries without a round have no score of known rounds.
    count = result.count + (0 if record is None else record.left_out)
    # The other directions of a release's orthonormal canaries are the null.
    null_count = result.null_count if canaries is None else None
    if result.scores.inclusion is Inclusion.COIN and null_count is not None:
        count, null_count = count + null_count, None
    return Decided(
        subject="scores" if canaries is None else "release",
        score=score if canaries is None else _COSINE,
        count=count,
        null_count=null_count,
        dim=dim if canaries is None else canaries.dim,
        directions=None if canaries is None else directions_of(canaries),
        delta=result.delta,
        confidence=result.confidence,
        claim=result.claim,
        neighbours=result.neighbours,
        noise_multiplier=result.noise_multiplier,
        rounds=None if record is None else record.rounds,
        participations=None if record is None else record.participations,
        others_known=None if traces is None else traces.residual,
        difference=None if canaries is None else request.is_difference,
        kind=str(result.scores.kind),
        inclusion=str(result.scores.inclusion),
        bounds=request.bounds,
        force=request.force,
        notice=request.notice,
        # Who asks for more than the usual questions makes the gate stricter, and departs from no plan.
        ask=() if set(result.usual_questions) <= set(request.ask) else tuple(map(str, request.ask)),
        rules=RULES_VERSION,
    )


def compare_with_plan(result: AuditResult, path: Path, secret: Secret | None = None) -> Comparison:
    """Hold an audit against a plan's file.

    Parameters
    ----------
    result
        The audit.
    path
        The plan's file.
    secret
        Its seed and nonce, if a report published them; by default they are read next to it.

    Returns
    -------
    The comparison.

    Raises
    ------
    InputError
        If a file cannot be read or breaks a rule.
    """
    with open_file(path, (".json",)) as file:
        whole = bytes(content(file, _LARGEST))
        head = json_records.read(_PlanHead, document := parsed_json(whole))
        if not head.schema.startswith(SCHEMA.split(".")[0][:-1]):
            raise ValueError(f"schema: must begin with {SCHEMA.split('.')[0][:-1]!r}, not {short_repr(head.schema)}")
        same = minor(head.version) == minor(version("canaryproof"))
        planned = json_records.read(PlanFile, document) if same else None
    if secret is None:
        secret = _read_secret(secret_path(path))
    digest = hashlib.sha256(whole).hexdigest()
    if planned is None:
        differences = tuple(_departures_of_secret(head, result, secret))
        answer = other_version("plan", head.version)
        return Comparison(
            Status.FAILED if differences else Status.CANNOT_SAY,
            answer,
            path.name,
            digest,
            secret,
            differences,
            ("the plan",),
        )
    differences = tuple(_departures(planned, result, secret))
    unknown = tuple(_NAMES.get(name, name) for name in _unknown_fields(planned.decided, _decisions_of_audit(result)))
    unknown += ("seed of the canaries",) if result.request.canaries is None else ()
    answer = "As planned." if not differences else f"Not as planned: {', '.join(each.name for each in differences)}."
    if unknown:
        answer += f" Not known from the scores, and not compared: {', '.join(unknown)}."
    status = Status.FAILED if differences else Status.AS_CLAIMED
    return Comparison(status, answer, path.name, digest, secret, differences, unknown)


def audit_options(path: Path) -> dict[str, Any]:
    """Return what a plan's file decides as arguments of the command ``audit``, by name, with the seed of its secret.

    A plan that another minor version made gives none. An ``InputError`` says that a file cannot be read or breaks a
    rule, or that the secret is another plan's.
    """
    with open_file(path, (".json",)) as file:
        head = json_records.read(_PlanHead, document := parsed_json(content(file, _LARGEST)))
        if minor(head.version) != minor(version("canaryproof")):
            return {}
        planned = json_records.read(PlanFile, document)
        decided = planned.decided
        options: dict[str, Any] = {
            name: getattr(decided, name)
            for name in ("delta", "confidence", "noise_multiplier", "bounds", "force", "notice", "ask")
        }
        options |= _mechanism_options(planned)
    if decided.subject == "release":
        secret = _read_secret(secret_path(path))
        if _commitment(secret) != planned.seed_sha256:
            raise InputError(f"{secret_path(path)}: must be the secret of {path}, whose seed_sha256 is of another one")
        options |= {"count": decided.count, "seed": secret.seed, "directions": decided.directions}
        options["neighbours"] = decided.neighbours
    return {name: value for name, value in options.items() if value is not None}


def _mechanism_options(planned: PlanFile) -> dict[str, Any]:
    """Return the claim, unless it is that of the noise, and what scores do not say of themselves."""
    decided, numbers = planned.decided, planned.plan
    rounds_known = decided.score in (Score.LIKELIHOOD, Score.KNOWN_ROUNDS)
    try:
        noise = numbers["noise_epsilon" if rounds_known else "release_epsilon"]
        claim = decided.claim if decided.claim is not None and decided.claim > noise * (1.0 + _DIGITS) else None
        if not rounds_known:
            # Scores have neither a dimension nor a claim that follows from their noise.
            of_scores = {"claim": decided.claim, "dim": decided.dim, "inclusion": decided.inclusion}
            return {"claim": claim} if decided.subject == "release" else of_scores
        rate = numbers["mechanism"]["rate"]
    except (KeyError, TypeError) as error:
        raise ValueError(f"plan: has no number {error}") from None
    drawn = {"rate": rate, "rounds": decided.rounds} if decided.participations is None else {}
    return {"claim": claim, "participations": decided.participations, **drawn}


@dataclass(frozen=True)
class _PlanHead:
    """The fields of a plan of any version that say what made it, and what it commits to."""

    schema: str
    version: str
    seed_sha256: str


def _read_secret(path: Path) -> Secret:
    document = read_json(path, _LARGEST)
    try:
        return json_records.read(Secret, document)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def _departures(planned: PlanFile, result: AuditResult, secret: Secret) -> Iterator[Departure]:
    audited = _decisions_of_audit(result)
    yield from _departures_of_secret(planned, result, secret)
    skipped = {*_unknown_fields(planned.decided, audited), *_open_fields(planned.decided)}
    for name in (field.name for field in fields(Decided)):
        before, after = getattr(planned.decided, name), getattr(audited, name)
        if name not in skipped and not _are_equal(before, after):
            yield Departure(_NAMES.get(name, name), _show(before), _show(after))
    here = MethodVersion(DEFAULT, METHODS[DEFAULT].version)
    if planned.bound != here:
        before, after = (f"{bound.name}, version {bound.version}" for bound in (planned.bound, here))
        yield Departure("default lower bound", before, after)


def _departures_of_secret(planned: "PlanFile | _PlanHead", result: AuditResult, secret: Secret) -> Iterator[Departure]:
    if _commitment(secret) != planned.seed_sha256:
        yield Departure("commitment to the seed", planned.seed_sha256, _commitment(secret))
    canaries = result.request.canaries
    if canaries is not None and canaries.seed != secret.seed:
        # Both are secrets.
        yield Departure("seed of the canaries", "one", "another")


# Fields that scores may not say.
_PERHAPS = ("score", "rounds", "participations", "others_known", "directions", "dim")


def _unknown_fields(planned: Decided, audited: Decided) -> list[str]:
    """Return the fields of a plan that an audit does not know."""
    return [name for name in _PERHAPS if getattr(audited, name) is None and getattr(planned, name) is not None]


def _open_fields(planned: Decided) -> list[str]:
    """Return the fields that a plan leaves open."""
    return [
        name
        for name in ("rounds", "participations", "others_known", "difference", "noise_multiplier")
        if getattr(planned, name) is None
    ]


def _are_equal(planned: Any, audited: Any) -> bool:
    if isinstance(planned, float) and isinstance(audited, float):
        return math.isclose(planned, audited, rel_tol=_DIGITS)
    return bool(planned == audited)


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "the default"
    return "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


# Names of fields in words.
_NAMES = {
    "count": "number of canaries",
    "null_count": "number of unobserved canaries",
    "dim": "dimension",
    "delta": "δ",
    "claim": "claimed ε",
    "noise_multiplier": "noise multiplier",
    "others_known": "knowledge of others' updates",
    "difference": "difference of models",
    "bounds": "lower bounds",
    "force": "force",
    "notice": "share of the noise to be noticed",
    "ask": "questions that are asked",
    "rules": "version of the rules",
}
