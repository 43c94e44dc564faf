"""The text of an audit: in a sentence, in some 25 lines, and in full."""

import io
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from canaryproof.verify.audit.answer.findings import (
    RULES,
    USUAL_BUGS,
    Decision,
    Finding,
    GateOutcome,
    Quantity,
    Question,
    Status,
)
from canaryproof.verify.audit.answer.judgement import NOISE_WARNINGS, clause
from canaryproof.verify.audit.answer.misuse import CROWD, DIRECTION_LEVEL, MisuseWarning
from canaryproof.verify.audit.answer.result import (
    COMPOSED,
    FEWEST_DIMENSIONS,
    NOTICE,
    PARTICIPATIONS,
    AuditResult,
    AuditRow,
    EstimateRow,
    MechanismTest,
)
from canaryproof.verify.audit.answer.shape import LEVEL as SHAPE_LEVEL
from canaryproof.verify.audit.answer.shape import GoodnessOfFit, normality
from canaryproof.verify.audit.bounds.catalogue import DEFAULT
from canaryproof.verify.audit.bounds.lower_bound import Coverage
from canaryproof.verify.audit.canaries.scores import RoundsRecord, Score
from canaryproof.verify.audit.files.reading import ScoreKind
from canaryproof.verify.audit.markup.digits import (
    number,
    percent,
    plus_minus,
    round_down,
    round_to_error,
    round_up,
)
from canaryproof.verify.audit.markup.rich_tables import Console, Table, box

if TYPE_CHECKING:
    from canaryproof.verify.audit.blindspots.ranges import BlindSpots, Range

# A function that spells out the symbols that a terminal cannot show.
Say = Callable[[str], str]

WIDTH, MOST_LINES = 80, 25
_LABEL = 10
# Up to this δ bounds are nearly those at the δ of the table of medians.
_LARGEST_DELTA = 1e-4
# Below this width, findings are no table.
_NARROW = 60
# Replacements of symbols that a terminal cannot show; a pair of symbols comes before its parts.
_PLAIN = (
    ("√d", "sqrt(d)"),
    ("ε̂", "epsilon"),
    ("μ̂", "mu"),
    ("σ̂", "sigma"),
    ("μ₀", "mu0"),
    ("σ₀", "sigma0"),
    ("‖Σx‖²", "|sum x|^2"),
    ("‖ρ‖²", "|rho|^2"),
    ("σ²d", "sigma^2 d"),
    ("σ", "sigma"),
    ("∞", "infinity"),
    ("ε", "epsilon"),
    ("δ", "delta"),
    ("α", "alpha"),
    ("·", "*"),
    ("–", "-"),
    ("±", "+/-"),
    ("−", "-"),
    ("≥", ">="),
    ("²", "^2"),
)


def speaker(encoding: str) -> Say:
    """Return a function that spells out the symbols that an encoding does not have."""

    def say(text: str) -> str:
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            for symbol, word in _PLAIN:
                text = text.replace(symbol, word)
        return text

    return say


# The summary.


def answer(result: AuditResult) -> str:
    """State the decision and what it rests on, in a sentence or two that a person can repeat."""
    return f"{headline(result)} {_cause(result)}".strip()


def headline(result: AuditResult) -> str:
    """State the decision, or without a claim what this attacker learns."""
    decision = result.decision
    if decision is None:
        return f"{_sentence(result.finding(Question.LEAK).because)} Nothing is claimed, so nothing is decided."
    asked = f" (asked: {', '.join(decision.asked)})" if result.request.ask else ""
    return f"{decision.outcome}{asked}: {_ruling(result, decision)}."


def _ruling(result: AuditResult, decision: Decision) -> str:
    claim = "" if result.claim is None else f"the {claim_text(result.claim)} (δ = {result.delta:g})"
    match decision.rule:
        case "wrong-input":
            return "the input looks wrong, so that none of the numbers can be trusted"
        case "failed":
            # Another mechanism of this ε might leave the same scores.
            if result.is_refuted_by_curve_alone:
                return f"the mechanism behind {claim} is refuted"
            return f"{claim} does not hold"
        case "undecided":
            return f"{claim} is not decided"
    return f"nothing contradicts {claim}{_scope(result)}"


def _scope(result: AuditResult) -> str:
    """Say where and for whom nothing contradicts the claim of an audit that passed, and whether its noise was seen."""
    noise, part = result.finding(Question.NOISE).status, _measured_part(result)
    rounds = part and f" in the {part} that canaries measure"
    if noise is Status.AS_CLAIMED:
        return f"{rounds}, and the claimed noise is there"
    if noise is not Status.CANNOT_SAY and result.release_norm is None:
        return rounds
    where = ", only the training shows" if result.release_norm is not None else " is not decided"
    return f"{rounds}, for an attacker who does not know the others' data; whether the noise is there{where}"


def _measured_part(result: AuditResult) -> str:
    """Return the number of rounds whose noise is measured, of how many; empty if it is all of them."""
    mechanism = result.mechanism
    return mechanism.rounds_text if mechanism is not None and mechanism.unmeasured_rounds else ""


def _cause(result: AuditResult) -> str:
    """Say what the decision rests on: what failed, what is open, or what would have been noticed."""
    decision = result.decision
    if decision is None:
        return ""
    if decision.outcome is GateOutcome.PASSED:
        asked = (
            f" The gate asked for {percent(decision.notice)}, not the usual {percent(NOTICE)}."
            if decision.notice != NOTICE
            else ""
        )
        return _notice_sentence(result) + asked
    failed = [finding for finding in result.findings if finding.status is Status.FAILED]
    if decision.rule == RULES[0].name:
        failed = failed[:1]
    deciding = failed or [finding for finding in result.findings if is_open(finding, decision)]
    return " ".join(f"{finding.question.capitalize()}: {finding.because}." for finding in deciding)


def _notice_sentence(result: AuditResult) -> str:
    """Say how much missing noise an audit that passed would have noticed."""
    noise = result.finding(Question.NOISE)
    # Canaries may notice more than the length does, but not where others' data of the stated norm take part.
    has_norm = result.request.data_norm is not None and noise.status is Status.AS_CLAIMED
    noticed = noise.noticed if has_norm else result.finding(Question.LEAK).noticed
    is_known = result.mechanism is not None and result.mechanism.traces.residual
    hides = noise.status is Status.NOT_LOOKED_AT and result.has_canaries and not is_known
    unless = ", unless others' data stood in for it" if hides or noise.status is Status.CANNOT_SAY else ""
    there = " in these rounds" if _measured_part(result) else ""
    caught = f"this audit would have caught it nine times out of ten{unless}"
    return noticed and f"If only {noticed} had been added{there}, {caught}."


def is_open(finding: Finding, decision: Decision) -> bool:
    """Tell whether a gate is not passed for this finding."""
    asked = finding.question in decision.asked or finding.question is Question.PLAN
    return finding.status is Status.FAILED or (asked and finding.status is not Status.AS_CLAIMED)


def _sentence(text: str) -> str:
    # A symbol keeps its case.
    return f"{text if text.startswith('ε') else text[:1].upper() + text[1:]}."


def claim_text(claim: float) -> str:
    """Name a claim."""
    return f"claimed ε = {number(claim)}"


def shown_bound(bound: AuditRow) -> str:
    """Print a bound with its name, rounded down, as a lower bound that is rounded up is invalid."""
    return f"{bound.name} ≥ {round_down(bound.low)}"


def summary(result: AuditResult, width: int = WIDTH, encoding: str = "utf-8", *, shell: bool = False) -> str:
    """Print the result in some 25 lines of 80 columns, or more lines of fewer columns, the decision first.

    Calls that print more are named as a shell has them, or as Python does.
    """
    say, width, calls = speaker(encoding), min(width, WIDTH), _SHELL if shell else _PYTHON

    def block(label: str, text: str) -> list[str]:
        return wrap(say(text), width, f"{label:{_LABEL}}") if text else []

    decision = result.decision
    head = [*wrap(say(headline(result)), width), *wrap(say(_cause(result)), width)]
    rows = [
        line
        for finding in result.findings
        if finding.status is not Status.NOT_LOOKED_AT or (result.claim is None and finding.question is Question.LEAK)
        for line in finding_lines(finding, width, say)
    ]
    before = [*block("Audited", _audit_text(result)), *block("Unchecked", _unanswered_text(result))]
    wrong = decision is not None and decision.rule == RULES[0].name
    do = block("Do", _do(result))
    more = block("More", f"{calls.details} has all numbers, tests and blind spots; {calls.plot} draws scores.")
    room = MOST_LINES - len(head) - len(rows) - len(before) - len(do) - len(more) - 2
    # The details have these, too.
    where_there_is_room: list[str] = []
    for label, text in (("Attacker", "" if wrong else meaning(result)), ("Level", _level(result))):
        lines = block(label, text)
        if len(where_there_is_room) + len(lines) <= room:
            where_there_is_room += lines
    after = [*do, *where_there_is_room, *more]
    room -= len(where_there_is_room)
    return "\n".join([*head, "", *rows, "", *before, *_notes(result, room, block), *after])


def finding_lines(finding: Finding, width: int, say: Say) -> list[str]:
    """Print a finding: its question and status stand in columns where there is room for them."""
    question, status = str(finding.question), say(_status_text(finding))
    if width < _NARROW:
        return wrap(say(f"{question}: {status}: {finding.because}"), width)
    return wrap(say(finding.because), width, f"  {question:12}{status:12}")


def _status_text(finding: Finding) -> str:
    if finding.status is Status.FAILED:
        return "FAILED"
    return "–" if finding.status is Status.NOT_LOOKED_AT else str(finding.status)


def _unanswered_text(result: AuditResult) -> str:
    """List the questions that were not looked at, each with the reason; equal reasons stand once."""
    reasons: dict[str, list[str]] = {}
    for finding in result.findings:
        if finding.status is Status.NOT_LOOKED_AT and not (result.claim is None and finding.question is Question.LEAK):
            reasons.setdefault(finding.because, []).append(str(finding.question))
    return "; ".join(f"{', '.join(questions)} ({because})" for because, questions in reasons.items())


def _do(result: AuditResult) -> str:
    """Say what to do: of what failed or is open, and first of what decides."""
    decision = result.decision
    if decision is None:
        return "Say what is claimed (an ε, or a noise multiplier), and the audit decides on it."
    if decision.rule == RULES[0].name:
        return " ".join(finding.do for finding in result.findings[:1])
    failed = [finding for finding in result.findings if finding.status is Status.FAILED]
    deciding = [finding.do for finding in failed or result.findings if is_open(finding, decision)]
    others = [finding.do for finding in result.findings if finding.status is Status.CANNOT_SAY]
    usual = [USUAL_BUGS] if decision.outcome is GateOutcome.NOT_PASSED else []
    return " ".join(dict.fromkeys(do for do in [*(deciding or others), *usual] if do))


def _level(result: AuditResult) -> str:
    """Say how often an honest run fails, and which tests share that."""
    if result.claim is None or result.withheld:
        return ""
    level = percent(1.0 - result.confidence)
    tests = "by the test of the claim's curve" if result.has_curve_test else "by the bound"
    if result.mechanism is not None and result.mechanism.claimed is not None:
        tests += " or the test of the noise"
    elif result.sampling_test is not None:
        tests += " or the test of the sampling"
    # Who negates scores because an audit asks for it has two chances.
    twice = (
        f", and {percent(DIRECTION_LEVEL)} more if you negated the scores because an audit asked for it"
        if result.has_unknown_direction
        else ""
    )
    tried = f", which pays for {result.request.tried:,} that were tried" if result.request.tried > 1 else ""
    return f"At most {level} of honest runs are NOT PASSED by chance, {tests}{tried}{twice}."


def wrap(text: str, width: int, label: str = "") -> list[str]:
    """Wrap a text to the right of a label, without breaking an equation."""
    whole = re.sub(r" ([=±≥]) ", "\u00a0\\1\u00a0", text)
    indent = " " * len(label)
    lines = textwrap.wrap(whole, width, initial_indent=label, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def notes(result: AuditResult) -> list[MisuseWarning]:
    """Return the warnings that no finding states."""
    stated = {finding.because for finding in result.findings}
    noise = {finding.question: finding.status for finding in result.findings}.get(Question.NOISE)
    # A release's length is the finding on noise, or not judged.
    length = ("less-noise",) if noise is Status.FAILED else NOISE_WARNINGS if noise is Status.NOT_LOOKED_AT else ()
    return [
        warning for warning in result.warnings if clause(warning.message) not in stated and warning.kind not in length
    ]


def _notes(result: AuditResult, room: int, block: Callable[[str, str], list[str]]) -> list[str]:
    """Print the warnings that fit, and the number of the others."""
    blocks = [block("Note", f"{warning.message} {warning.what_to_do}") for warning in notes(result)]
    shown: list[str] = []
    if room < 1:
        return shown
    for i, lines in enumerate(blocks):
        last = i == len(blocks) - 1
        if len(shown) + len(lines) + (not last) > room:
            return [*shown, *block("Note", f"{len(blocks) - i} more, in the details.")]
        shown += lines
    return shown


def _noun(result: AuditResult) -> str:
    return "cosines" if result.scores.kind is ScoreKind.COSINE else "scores"


def _audit_text(result: AuditResult) -> str:
    dim = "" if result.dim is None else f", d = {result.dim:,}"
    if result.release_norm is not None:
        subject = f"a released vector through its {result.count:,} canaries"
    elif result.null_count is None:
        subject = f"{result.count:,} observed {_noun(result)}"
    else:
        subject = f"{result.count:,} observed against {result.null_count:,} unobserved {_noun(result)}"
    ranks = ", by their ranks" if result.scores.ranked else ""
    # A claim that is a number does not say of which neighbours it is.
    stated = result.neighbours != "add-or-remove" or isinstance(result.request.claim, int | float)
    neighbours = f", neighbours: {result.neighbours.replace('-', ' ')}" if stated else ""
    return f"{subject}{ranks}{dim}, at δ = {result.delta!r}{neighbours}"


def _noise(result: AuditResult) -> str:
    mechanism = result.mechanism
    if mechanism is None or result.withheld:
        return ""
    traces, error = mechanism.all_traces, mechanism.measured.standard_error
    value = round_to_error(mechanism.measured.value, error)
    shown = f"{value} ± {round_to_error(error, error)}" if math.isfinite(error) else value
    rounds = mechanism.rounds_text
    test = "" if mechanism.p_value is None else f"; less than claimed: {shown_p_value(mechanism.p_value, '1e-300')}"
    return f"{shown}, of {traces.noise_source}, from {rounds}{test}"


def no_estimate(result: AuditResult) -> str:
    """Say why an audit states no estimate; empty if it states one."""
    if result.estimate is not None:
        return ""
    if not result.delta:
        return "two Gaussians have no finite ε at δ = 0"
    if result.has_equal_scores:
        return "the estimators take scores for normal, and all of one kind are equal"
    if result.is_contradicted:
        return "the lower bound is above the interval of the estimate, so that what it assumes is not so"
    if result.has_unequal_noise:
        return "rounds differ in their noise, and it is composed of one noise multiplier"
    if result.has_no_common_noise:
        return "the claimed rounds have no Gaussian noise of one multiplier, of which it is composed"
    if not result.estimates and result.is_not_normal:
        return f"the estimators take scores for normal. {result.shape.reason}"
    if not result.estimates:
        return result.warnings[0].message if result.warnings else "the scores have no noise, and ε is infinite"
    if result.scores.kind is not ScoreKind.COSINE:
        return "the estimators take scores for normal, which another scale of these scores would change"
    record = result.scores.record
    if record is not None and record.score is Score.LARGEST:
        return "the paper's estimator (Algorithm 3) takes the largest cosines for normal, and they are not"
    return f"the estimators take scores for normal. {result.shape.reason}"


def meaning(result: AuditResult) -> str:
    """Say for which attacker the numbers are, and what they do not mean."""
    wrong = result.decision is not None and result.decision.rule == RULES[0].name
    if result.withheld or (wrong and not result.request.force):
        return "The input is not what it is said to be, so no number says anything of an attacker."
    if result.estimate is None and result.bound is None:
        return "No number here has a known coverage, so none says what an attacker learns, or does not learn."
    who = _attacker(result)
    who = f"{who[:1].upper()}{who[1:]}."
    if result.estimate is None:
        order = "The bound takes nothing but the order of the scores; another" if result.null_count else "Another"
        return f"{who} {order} attack may learn more."
    whose = _neighbours_of_estimate(result, result.estimate)
    return f"{who}{whose} The estimate is a best guess and no limit: another attack may learn more."


def _attacker(result: AuditResult) -> str:
    """Say what the attacker knows and sees, for whom the numbers are."""
    noun, record = _noun(result), result.scores.record
    if result.release_norm is not None:
        return "knows one canary's direction and sees this release"
    if record is not None:
        who = f"knows one canary's direction, sees all releases, and knows {_KNOWN[_score_of(result, record)]}"
        return who + (", and all others' data" if record.traces is not None and record.traces.residual else "")
    if result.scores.kind is ScoreKind.COSINE:
        return f"knows one canary's direction and sees these {noun} alone"
    return f"sees these {noun} alone and guesses who took part"


def _neighbours_of_estimate(result: AuditResult, estimate: EstimateRow) -> str:
    """Say that an estimate is of other neighbours than the claim, as a sentence to append."""
    added = result.neighbours == "replace" and result.scores.neighbours != "replace" and estimate.name != COMPOSED
    return " It is of adding or removing a record, while the claim is of replacing one." if added else ""


def _score_of(result: AuditResult, record: RoundsRecord) -> Score:
    """Return the score of the attacker whom the numbers are for: a composed estimate may be for a stronger one."""
    composed = result.estimate is not None and result.estimate.name == COMPOSED
    sampled = result.recorded is not None and result.recorded.attacker == "sampling"
    return Score.KNOWN_ROUNDS if composed and not sampled else record.score


# Knowledge of a canary's rounds that a score needs.
_KNOWN = {
    Score.LARGEST: "nothing of its rounds",
    Score.LIKELIHOOD: "how its rounds were drawn",
    Score.KNOWN_ROUNDS: "its rounds",
}


# The sentences to report.


def to_report(result: AuditResult) -> str:
    """Fill in the sentences that the page "Which number may I report?" has for exactly this case."""
    decision = result.decision
    if decision is not None and decision.rule == RULES[0].name:
        because = result.findings[0].because.partition(". ")[0]
        return f"The audit says nothing of privacy, because its input looks wrong: {because}."
    canaries = result.request.canaries
    seed = "" if canaries is None else f", canary seed {canaries.seed}"
    audited = f"Audited: {_audit_text(result)}{seed}, for an attacker who {_attacker(result)}."
    return " ".join((audited, *_claim_to_report(result), *_estimate_to_report(result), *_bound_to_report(result)))


def _claim_to_report(result: AuditResult) -> Iterator[str]:
    decision = result.decision
    if decision is None:
        return
    claim = claim_text(result.claim or 0.0)
    if decision.outcome is GateOutcome.PASSED:
        yield f"The {claim} passed: nothing contradicts it{_scope(result)}."
        if result.request.ask:
            yield f"The audit was asked for {', '.join(decision.asked)}."
        if caught := _notice_sentence(result):
            yield caught
    elif decision.outcome is GateOutcome.CANNOT_SAY:
        open_questions = [finding.question for finding in result.findings if is_open(finding, decision)]
        yield f"The {claim} is not decided: the audit leaves the {', '.join(open_questions)} open."
    else:
        failed = [finding for finding in result.findings if finding.status is Status.FAILED]
        refuted = f"mechanism behind the {claim}" if result.is_refuted_by_curve_alone else claim
        yield f"The {refuted} is contradicted: {'; '.join(_contradiction(result, finding) for finding in failed)}."


def _contradiction(result: AuditResult, finding: Finding) -> str:
    if finding.question is not Question.LEAK:
        return finding.because
    if (p_value := result.claim_p_value) is not None:
        return f"so many coins are guessed right under it with a probability of at most {round_up(p_value)}"
    return "the lower bound is above it"


def _estimate_to_report(result: AuditResult) -> Iterator[str]:
    row, mechanism = result.estimate, result.mechanism
    if row is None:
        return
    value, _, low, high = estimate_digits(row)
    shown = f"This attacker's ε̂ is {value} ({percent(result.confidence)} interval {low} to {high})"
    if row.name == COMPOSED and mechanism is not None:
        measured = mechanism.measured
        noise = (
            round_to_error(each, measured.standard_error) for each in (measured.value, measured.low, measured.high)
        )
        of = mechanism.all_traces.noise_source
        yield "{}, composed of the measured noise multiplier {} ({} to {}) of {}{}.".format(
            shown, *noise, of, row.condition
        )
    else:
        yield f"{shown}: an estimate, and no bound.{_neighbours_of_estimate(result, row)}"


def _bound_to_report(result: AuditResult) -> Iterator[str]:
    row = result.bound
    if row is None:
        yield "No lower bound on ε can be reported, because none of known coverage was computed."
    elif row.coverage == Coverage.HEURISTIC:
        scores = "scores of one model" if result.scores.kind is ScoreKind.ANY else "cosines in so few dimensions"
        yield (
            f"No lower bound on ε can be reported, because nobody knows how the {scores} depend on each "
            "other unless a fair coin decides on each inclusion."
        )
    else:
        bound = f"ε is at least {round_down(row.low)}" if row.low else "No lower bound on ε above 0 was found,"
        if row.coverage == Coverage.PROVEN:
            about, why = "", f"proven given {row.assumes}"
        else:
            about = "about "
            why = f"asymptotic: proven given {row.assumes}, and the scores of one run depend on each other weakly"
        yield f"{bound} with {about}{percent(1.0 - result.level)} confidence ({row.name}, {why})."
        if math.isfinite(row.cap):
            yield f"By this bound so many scores give at most {round_down(row.cap)}, whatever leaks."


@dataclass(frozen=True)
class _Calls:
    """The calls that print more, spelled for a shell or for Python."""

    details: str
    plot: str


_SHELL = _Calls("--details", "--plot FILE.svg")
_PYTHON = _Calls("details()", "plot()")


# The details.


def details(result: AuditResult, width: int = WIDTH, encoding: str = "utf-8") -> str:
    """Print all that the summary leaves out."""
    say = speaker(encoding)
    # Rich takes the encoding from the file, and draws lines that it can show.
    file = io.TextIOWrapper(io.BytesIO(), encoding)
    console = Console(file=file, width=width, markup=False, emoji=False, highlight=False)
    for part in _parts(result, say):
        console.print(part if isinstance(part, Table) else say(part))
        # A part that ends in a colon introduces the next one.
        if isinstance(part, Table) or not part.endswith(":"):
            console.print()
    file.seek(0)
    lines = "\n".join(line.rstrip() for line in file)
    # Some tables begin with an empty line.
    return re.sub("\n{3,}", "\n\n", lines).rstrip()


def _parts(result: AuditResult, say: Say) -> Iterator[str | Table]:
    yield _heading(result)
    behind = [(str(finding.question), _behind(finding)) for finding in result.findings]
    yield _listing([(question, words) for question, words in behind if words], say)
    if result.warnings:
        yield _listing([(warning.kind, f"{warning.message} {warning.what_to_do}") for warning in result.warnings], say)
    if result.estimates:
        yield _estimates_table(result, say)
        yield _listing([(row.name, row.assumes) for row in result.estimates], say)
        yield "ε̂ of the fitted parameters, certified; the interval above says what the fit is worth:"
        proven = [row for row in result.estimates if math.isfinite(row.enclosure[1])]
        yield _listing([(row.name, _enclosure_text(row)) for row in proven], say)
    if result.bounds:
        yield _bounds_table(result.bounds, 1.0 - result.level, say)
        yield _listing([(row.name, f"needs {row.assumes}") for row in result.bounds], say)
        if limit := _limit_of_bounds(result):
            yield limit
    yield _listing(checks(result), say)
    yield from _blind_spots(result, say)
    yield meaning(result)
    if level := _level(result):
        yield level
    yield from remarks(result)
    if result.release_norm is not None:
        yield "The release is taken to be in units of the canary norm, in which canaries are taken out of it."
    who = "canaries" if result.has_canaries else "records"
    has_largest = any(row.name == "largest-score" for row in result.bounds)
    most, single = ("most ", " largest-score may come from a single one.") if has_largest else ("", "")
    yield f"Estimates and {most}bounds are averages over {who}, which must have taken part just as clients do.{single}"
    yield f"To report: {to_report(result)}"


def _limit_of_bounds(result: AuditResult) -> str:
    """Say what the default has, and what any valid bound can have, from scores much like these; empty elsewhere."""
    # Without details nothing needs it.
    from canaryproof.verify.audit.bounds import largest_median

    is_served = result.null_count is None and 0.0 < result.delta <= _LARGEST_DELTA
    row = largest_median.nearest(result.count, result.standardised_mean) if is_served else None
    if row is None or DEFAULT not in (bound.name for bound in result.bounds):
        return ""
    scores = f"{row.count:,} independent Gaussian scores of mean {row.mean:g}"
    at = f"δ = {largest_median.DELTA:g} and {percent(1.0 - largest_median.ALPHA)}"
    return (
        f"How sharp a bound can be: from {scores} (the nearest of {len(largest_median.TABLE)} cases), {DEFAULT} has a "
        f"median of {row.default:.3g} at {at}, and no valid bound has one above {round_up(row.largest, 3)}."
    )


def _behind(finding: Finding) -> str:
    """Print the numbers behind a finding, and the fault that it would have noticed nine times out of ten."""
    shown = (f"{each.name} {_quantity_digits(each)}{each.unit and f' {each.unit}'}" for each in finding.numbers)
    noticed = (f"would have been noticed nine times out of ten: {finding.noticed}",) if finding.noticed else ()
    return "; ".join([*shown, *noticed])


def _quantity_digits(quantity: Quantity) -> str:
    if quantity.value is None:
        return "∞"
    # A lower bound that is rounded up is invalid.
    return round_down(quantity.value, 6) if quantity.name == "lower bound" else number(quantity.value, 6)


def _heading(result: AuditResult) -> str:
    null = (
        "N(0, 1/d)"
        if result.null_count is None
        else f"Gaussian fitted to {result.null_count:,} unobserved {_noun(result)}"
    )
    dim = "" if result.dim is None else f"d = {result.dim:,}, "
    return f"k = {result.count:,} observed {_noun(result)}, {dim}δ = {result.delta!r}; null: {null}"


def _estimates_table(result: AuditResult, say: Say) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("estimator", overflow="fold")
    for heading in ("ε̂", "standard error", f"{percent(result.confidence)} interval"):
        table.add_column(say(heading), justify="right", overflow="fold")
    for row in result.estimates:
        value, error, low, high = estimate_digits(row)
        table.add_row(row.name, value, error, say(f"{low} – {high}"))
    return table


def _bounds_table(rows: Iterable[AuditRow], confidence: float, say: Say) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("bound", overflow="fold")
    table.add_column(say(f"ε, {percent(confidence)}"), justify="right", overflow="fold")
    for heading in ("kind", "coverage", "cap"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        # A lower bound that is rounded up is invalid.
        value = round_down(row.low)
        shown = f"≥ {value}" if math.isinf(row.high) else f"{value} – {number(row.high)}"
        table.add_row(row.name, say(shown), row.kind, row.basis, say(round_down(row.cap)))
    return table


def _enclosure_text(row: EstimateRow) -> str:
    return "in [{!r}, {!r}]".format(*row.enclosure)


def _listing(rows: Iterable[tuple[str, str]], say: Say) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*(say(cell) for cell in row))
    return table


def checks(result: AuditResult) -> Iterator[tuple[str, str]]:
    """Yield (name, result) of summary statistics and of tests of the assumptions."""
    closed = result.null_count is None
    if not result.has_equal_scores:
        mean, ratio = result.mean_error, result.ratio_error
        yield (
            f"standardised mean {'√d·μ̂' if closed else '(μ̂ − μ₀)/σ₀'}",
            plus_minus(result.standardised_mean, mean),
        )
        yield (
            f"deviation ratio {'√d·σ̂' if closed else 'σ̂/σ₀'}",
            plus_minus(result.deviation_ratio, ratio),
        )
        yield "equal variances", shown_p_value(result.variance_p_value, "1e-300")
    yield "observed are normal (Anderson–Darling)", _check_cell("A²", result.normality, "5e-31")
    if result.null_law is not None:
        yield "unobserved follow the null law (Kolmogorov–Smirnov)", _check_cell("D", result.null_law, "1e-300")
    if result.trace_test is not None:
        norm, error, p_value = result.trace_test
        shown = f"{plus_minus(norm, error)}, {shown_p_value(p_value, '1e-300')}"
        yield "norm of the canaries, by their trace in the release", shown
    if result.mechanism is not None:
        yield "noise multiplier, measured", _noise(result)
        if result.mechanism.measured.spread_p_value is not None:
            yield "rounds have equal noise", shown_p_value(result.mechanism.measured.spread_p_value, "1e-300")
        yield from _rounds(result.mechanism)
    if result.scores.record is not None:
        # No digit is negative zero.
        shown = f"{round(result.scores.record.carry_over, 1) + 0.0:.1f}".replace("-", "−")
        yield "cosines after canaries' first rounds", f"{shown} standard errors above those without"
    if result.dilution is not None and result.noise_multiplier is not None:
        yield "dilution ‖x‖²/(σ²d) − 1 without canaries", f"{result.dilution:.3g}".replace("-", "−")


def _rounds(mechanism: MechanismTest) -> Iterator[tuple[str, str]]:
    """Yield tests of the rounds' noise at the measured multiplier, from 8 rounds on."""
    traces, value = mechanism.all_traces, mechanism.measured.value
    if not 0.0 < value < math.inf or (independence := traces.independence_p_value(value)) is None:
        return
    yield "rounds' noise is normal (Anderson–Darling)", _check_cell("A²", normality(traces.z_scores(value)), "5e-31")
    yield "rounds are independent", shown_p_value(independence, "1e-300")


def _check_cell(symbol: str, check: GoodnessOfFit | None, smallest: str) -> str:
    if check is None:
        return "not tested: fewer than 8 values"
    return f"{symbol} = {check.statistic:.3g}, {shown_p_value(check.p_value, smallest)}"


def shown_p_value(p_value: float, smallest: str) -> str:
    """Print a p-value, or that it is below the smallest that is printed."""
    return f"p = {p_value:.2g}" if p_value > float(smallest) else f"p < {smallest}"


# Where an audit has no list of faults.
UNKNOWN_FAULTS = (
    "Which faults would have been noticed is known at δ above 0, for cosines in at least 1,000 dimensions, of records "
    "that are added or removed: with one release if a default bound decides, and with recorded rounds if a claim "
    "is made whose noise multiplier is in it or in the record. Of largest cosines over rounds it is not known."
)


def _blind_spots(result: AuditResult, say: Say) -> Iterator[str | Table]:
    # This import loads a table, which a summary does not need.
    from canaryproof.verify.audit.blindspots.fault_map import summary as mapped

    spots = result.blind_spots
    if spots is None:
        if not result.has_canaries:
            return
        yield UNKNOWN_FAULTS
        yield mapped()
        return
    seen = f"Would have been noticed with probability 90%, by the tests that decide, beside {claim_of_faults(spots)}:"
    unseen = "Would not have been noticed, and the instrument of a self-test that notices it (at a value):"
    missed = [(title, f"{where}; {by}") for title, where, by in unnoticed_rows(spots)]
    for heading, rows in ((seen, noticed_rows(spots)), (unseen, missed)):
        yield heading
        yield _listing(rows, say)
    yield mapped()
    if result.is_masked:
        yield "The lists above allow for what hides the claimed noise: others' data, or more noise than claimed."
    elif result.noise_multiplier is not None and result.release_norm is None:
        yield "How much data dilute the cosines, ‖x‖²/(σ²d) − 1, is not measured here; a release's length tells it."


def claim_of_faults(spots: "BlindSpots") -> str:
    """Return the words for the claim that a list of faults refers to."""
    claim = f"a claim of ε = {number(spots.epsilon)} (noise multiplier {spots.noise_multiplier:.4g})"
    return claim if spots.given else f"{claim}; give the noise multiplier if yours is another"


def noticed_rows(spots: "BlindSpots") -> list[tuple[str, str]]:
    """List the part of its parameter in which each fault would have been noticed."""
    return [(part.title, _part(part)) for part in spots.noticed] or [("nothing of the atlas", "")]


def unnoticed_rows(spots: "BlindSpots") -> list[tuple[str, str, str]]:
    """List where each fault would not have been noticed, with the largest ε there, and the instrument that does."""
    # This import loads a table, which a summary does not need.
    from canaryproof.verify.audit.blindspots.fault_map import detector_of

    return [
        (part.title, f"{_part(part)}; ε up to {number(part.epsilon)}", detector_of(part.mechanism))
        for part in spots.unnoticed
    ]


def _part(part: "Range") -> str:
    ends = number(part.low) if part.low == part.high else f"{number(part.low)} – {number(part.high)}"
    return f"{part.parameter}: {ends}"


# Remarks on bounds by their kind of coverage.
_COVERAGE = {
    "proven": "A bound of proven coverage is above ε in at most the stated share of audits, if what it needs holds.",
    "asymptotic": (
        "A bound of asymptotic coverage is proven for scores that are independent once all is known that the run draws "
        "only once, such as the scale of its noise."
    ),
    "heuristic": "No proof covers a heuristic bound: it may be above ε in any share of audits.",
}
_ONE_MODEL = (
    " Losses of one model whose members were fixed depend on each other in ways that nobody knows. If a fair coin "
    "decides for each record whether it takes part, the bound one-run is proven."
)
_FEW_DIMENSIONS = (
    " In so few dimensions the length of a release's noise, which moves all cosines together, is left to chance."
)
_OF_RELEASE = " Those of one release depend on each other, ever less as the dimension grows."


def remarks(result: AuditResult) -> Iterator[str]:
    """Yield remarks on the meaning of the numbers."""
    if result.bound is not None and result.neighbours != result.scores.neighbours:
        who = "Canaries" if result.has_canaries else "Records"
        yield f"{who} were only added, which moves a sum half as far as replacing: the bound is weak for the claim."
    if result.estimates and result.has_equal_variances:
        yield "The variances are not told apart, so that adaptive is pinned, with the upper end of fitted."
    elif result.estimates:
        yield "The variances differ, so that adaptive is fitted."
    if result.standardised_mean <= 0.0:
        mean = "positive" if result.null_count is None else "above the null's"
        yield f"The observed mean is not {mean}, so that pinned is 0: it sees no trace."
    if result.estimates and result.shape.reason:
        yield (
            f"{result.shape.reason} The estimates and their intervals are of ε of two Gaussians with the scores' means "
            "and variances, which need not be the mechanism's."
        )
    elif result.is_not_normal:
        by_chance = " Up to 1% of normal scores look otherwise, too." if result.shape.p_value < SHAPE_LEVEL else ""
        yield (
            f"{result.shape.reason} The estimators take scores for normal, and their intervals miss the ε of other "
            f"scores more often than they say: they are withheld.{by_chance}"
        )
    elif result.estimates and result.can_hide_a_tail:
        yield "So few scores may hide a heavy tail; if there is one, the intervals miss ε more often than they say."
    undecided = result.decision is not None and result.finding(Question.LEAK).status is Status.CANNOT_SAY
    by_default = result.bound is None or result.bound.name != PARTICIPATIONS
    # Where the noise itself was tested, as many canaries as there are may be enough.
    asks_for_more = undecided and by_default and not result.is_masked and (result.noticed_share or 0.0) < _HALF
    # A bound that is unproven decides by no number of scores.
    can_decide = result.bound is None or result.bound.coverage != Coverage.HEURISTIC
    if asks_for_more and can_decide and result.claim is not None and result.delta:
        yield _enough(result, result.claim)
    if isinstance(result.request.claim, int | float) and result.neighbours == "add-or-remove":
        yield "The claim is taken to be of adding or removing a record; of replacing one it is with neighbours replace."
    if result.bounds:
        yield "A cap is the most that a bound can say with so many scores, whatever leaks."
    for coverage in dict.fromkeys(row.coverage for row in result.bounds):
        of_release = coverage == Coverage.ASYMPTOTIC and result.has_canaries
        is_heuristic = coverage == Coverage.HEURISTIC
        one_model = is_heuristic and not result.has_canaries and result.scores.inclusion == "fixed"
        few = is_heuristic and result.has_canaries and (result.dim or math.inf) < FEWEST_DIMENSIONS
        yield _COVERAGE[coverage] + of_release * _OF_RELEASE + one_model * _ONE_MODEL + few * _FEW_DIMENSIONS
    if result.null_law is not None:
        yield (
            "A small p-value for the null law is expected where scores are maxima over rounds; for cosines with a "
            "single release it says that the dimension is wrong or the unobserved canaries are not random."
        )
    if result.scores.kind is ScoreKind.ANY:
        yield (
            "The law of these scores without a leak is not known here: there is no exact null, no test of the null "
            "law, no estimate from a norm, and no list of faults that would have been noticed."
        )


# The share of the noise that so many canaries would notice.
_HALF = 0.5


def _enough(result: AuditResult, claim: float) -> str:
    """Say how many canaries would notice half of the claimed noise."""
    count = result.bound_test(claim).sufficient_count(1.0 / (_HALF * result.claimed_noise(claim)))
    who = "canaries" if result.has_canaries else "scores"
    if count is None:
        return f"No lower bound from up to a million {who} would notice half of the noise of {claim_text(claim)}."
    kinds = "" if result.null_count is None else " of either kind"
    # Cosines in which canaries stand for each other's noise take a larger dimension, too.
    is_crowd = result.dim is not None and result.scores.record is None and result.scores.inserted is None
    crowded = is_crowd and count > CROWD * (_HALF * result.claimed_noise(claim)) ** 2 * (result.dim or 0)
    limit = ", in so many dimensions that they are no noise to each other" if crowded else ""
    return f"Some {count:,} {who}{kinds} would notice half of the noise of {claim_text(claim)}{limit}."


# Numbers.


def estimate_digits(row: EstimateRow) -> tuple[str, str, str, str]:
    """Print an estimate, its standard error and its interval."""
    error = row.standard_error
    value, shown, low, high = (round_to_error(x, error) for x in (row.epsilon, error, row.low, row.high))
    return value, shown, low, high
