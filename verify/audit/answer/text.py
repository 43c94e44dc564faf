"""The text of an audit: in a sentence, in at most 25 lines, and in full."""

import io
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from canaryproof.verify.audit.answer.misuse import has_few_values
from canaryproof.verify.audit.answer.result import (
    COMPOSED,
    PARTICIPATIONS,
    AuditResult,
    AuditRow,
    ClaimVerdict,
    EstimateRow,
    MechanismTest,
)
from canaryproof.verify.audit.answer.shape import GoodnessOfFit, normality
from canaryproof.verify.audit.bounds.lower_bound import Coverage
from canaryproof.verify.audit.canaries.scores import Score
from canaryproof.verify.audit.files.reading import ScoreKind
from canaryproof.verify.audit.markup.digits import number, percent, plus_minus, round_down, round_to_error

if TYPE_CHECKING:
    from canaryproof.verify.audit.blindspots.ranges import BlindSpots, Range

# A function that spells out the symbols that a terminal cannot show.
Say = Callable[[str], str]

WIDTH, MOST_LINES = 80, 25
_LABEL = 10
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


def _speaker(encoding: str) -> Say:
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
    """State the result in one or two sentences that a person can repeat."""
    return " ".join(filter(None, (_noise_sentence(result), _estimate_sentence(result), _claim_sentence(result))))


def _noise_sentence(result: AuditResult) -> str:
    mechanism = result.mechanism
    if mechanism is None or result.withheld:
        return ""
    subject = "training" if result.release_norm is None else "release"
    value, low, high = _noise_digits(mechanism)
    claimed_noise = "" if mechanism.claimed is None else f"; claimed {mechanism.claimed:.4g}"
    return (
        f"The {subject} behaves as if its noise multiplier were {value} ({percent(result.confidence)}: {low} to {high})"
        f"{claimed_noise}."
    )


def _noise_digits(mechanism: MechanismTest) -> tuple[str, str, str]:
    """Print a measured noise multiplier and its interval."""
    measured = mechanism.measured
    value, low, high = (
        round_to_error(each, measured.standard_error) for each in (measured.value, measured.low, measured.high)
    )
    return value, low, high


def _estimate_sentence(result: AuditResult) -> str:
    estimate, confidence = result.estimate, percent(result.confidence)
    if result.withheld:
        return f"No ε̂: {result.warnings[0].message}"
    bound = _bound_clause(result.bound, percent(1.0 - result.level))
    if estimate is None:
        why = "" if result.estimates or not result.delta else f" No ε̂: {no_estimate(result)}"
        return f"{bound[0].upper()}{bound[1:]}.{why}"
    value, _, low, high = estimate_digits(estimate)
    return f"ε̂ = {value} ({confidence}: {low} to {high}); {bound}."


def _bound_clause(bound: AuditRow | None, confidence: str) -> str:
    if bound is None:
        return "there is no lower bound of known coverage"
    if bound.low == 0.0:
        return "no lower bound above 0"
    # A bound of asymptotic coverage keeps its confidence in the limit only.
    about = "" if bound.coverage == Coverage.PROVEN else "about "
    return f"at least {round_down(bound.low, 2)} with {about}{confidence} confidence{bound.condition}"


def _claim_sentence(result: AuditResult) -> str:
    if result.claim is None:
        return ""
    claim = claim_text(result.claim)
    match result.verdict:
        case ClaimVerdict.WITHHELD:
            return f"The {claim} is not tested: no bound is given."
        case ClaimVerdict.EXCEEDED:
            proven = result.bound is not None and result.bound.coverage == Coverage.PROVEN
            which = "a valid" if proven else "an asymptotic"
            return f"The {claim} is exceeded by {which} lower bound."
        case ClaimVerdict.REFUTED:
            return f"The {claim} is refuted: there is less noise than claimed."
        case ClaimVerdict.NOTHING_SEEN:
            return f"Nothing of the canaries is seen, so that the {claim} is not tested."
        case ClaimVerdict.NOT_DECIDED:
            return f"The {claim} is not decided: the estimate is above it, no lower bound is."
        case ClaimVerdict.AT_ITS_CAP:
            return f"The {claim} is not tested: {_out_of_reach(result, result.claim)}."
        case _:
            if result.noticed_share is None:
                return f"Consistent with the {claim}; which fault this bound notices is not known."
            # A share that is rounded up might not have been noticed.
            share = math.floor(100.0 * result.noticed_share)
            power = f"{share}% of the claimed noise or less would have been noticed"
            return f"Consistent with the {claim}; {power}.{_doubt(result)}"


def _doubt(result: AuditResult) -> str:
    """Say what keeps a gate from passing."""
    if result.warnings:
        return " But a sign of misuse puts the input in doubt, and no gate passes." if result.is_doubtful else ""
    if result.noise_epsilon is not None:
        alone = f"the claimed noise alone has ε = {round_down(result.noise_epsilon)} for somebody who takes part"
        return f" But {alone}, and no gate passes."
    if result.trace_test is None or not result.has_other_trace:
        return ""
    norm, error, p_value = result.trace_test
    trace = f"the trace in this release is that of canaries of norm {plus_minus(norm, error)}"
    return f" But {trace}, not 1 ({shown_p_value(p_value, '1e-300')}): some may be missing, and no gate passes."


def _out_of_reach(result: AuditResult, claim: float) -> str:
    """Say why a claim cannot be exceeded."""
    if result.masking_variance:
        return "others' data, or more noise than claimed, would have hidden any lack of noise"
    bound = result.bound
    if bound is not None and bound.cap <= claim:
        return f"a bound from so many scores ends at {round_down(bound.cap)}"
    return "so few scores would have noticed no share of the claimed noise"


def claim_text(claim: float) -> str:
    """Name a claim."""
    return f"claimed ε = {number(claim)}"


def shown_bound(bound: AuditRow) -> str:
    """Print a bound with its name, rounded down, as a lower bound that is rounded up is invalid."""
    return f"{bound.name} ≥ {round_down(bound.low)}"


def summary(result: AuditResult, width: int = WIDTH, encoding: str = "utf-8", *, shell: bool = False) -> str:
    """Print the result in at most 25 lines of 80 columns, or more lines of fewer columns, the answer first.

    Calls that print more are named as a shell has them, or as Python does.
    """
    say, width = _speaker(encoding), min(width, WIDTH)

    def block(label: str, text: str) -> list[str]:
        return _wrap(say(text), width, f"{label:{_LABEL}}")

    head = _wrap(say(answer(result)), width)
    before = [*block("Audited", _audit_text(result)), *block("Checked", _check_text(result))]
    after = [
        line
        for label, text in (
            ("Noise", _noise(result)),
            ("Estimate", _estimate(result)),
            ("Bound", _bound(result)),
            ("Means", meaning(result)),
            ("Next", _next(result, _SHELL if shell else _PYTHON)),
        )
        if text
        for line in block(label, text)
    ]
    room = MOST_LINES - len(head) - len(before) - len(after) - 1
    return "\n".join([*head, "", *before, *_warnings(result, room, block), *after])


def _wrap(text: str, width: int, label: str = "") -> list[str]:
    """Wrap a text to the right of a label, without breaking an equation."""
    whole = re.sub(r" ([=±≥]) ", "\u00a0\\1\u00a0", text)
    lines = textwrap.wrap(whole, width, initial_indent=label, subsequent_indent=" " * len(label))
    return [line.replace("\u00a0", " ") for line in lines]


def _warnings(result: AuditResult, room: int, block: Callable[[str, str], list[str]]) -> list[str]:
    """Print the warnings that fit, and the number of the others."""
    blocks = [block("Warning", f"{warning.message} {warning.what_to_do}") for warning in result.warnings]
    shown: list[str] = []
    for i, lines in enumerate(blocks):
        last = i == len(blocks) - 1
        if len(shown) + len(lines) + (not last) > room:
            return [*shown, *block("Warning", f"{len(blocks) - i} more, in the details.")]
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


def _check_text(result: AuditResult) -> str:
    parts = ["no sign of misuse" if not result.warnings else f"signs of misuse: {len(result.warnings)}"]
    fits = (("normal scores", result.normality), ("null law", result.null_law))
    parts += [f"{name} {shown_p_value(fit.p_value, '1e-30')}" for name, fit in fits if fit is not None]
    if not result.has_equal_scores:
        parts.append(f"equal variances {shown_p_value(result.variance_p_value, '1e-300')}")
    return "; ".join(parts)


def _noise(result: AuditResult) -> str:
    mechanism = result.mechanism
    if mechanism is None or result.withheld:
        return ""
    traces, (value, _, _) = mechanism.traces, _noise_digits(mechanism)
    error = mechanism.measured.standard_error
    shown = f"{value} ± {round_to_error(error, error)}" if math.isfinite(error) else value
    rounds = "1 round" if len(traces.cosines) == 1 else f"{len(traces.cosines):,} rounds"
    test = "" if mechanism.p_value is None else f"; less than claimed: {shown_p_value(mechanism.p_value, '1e-300')}"
    return f"{shown}, of {traces.noise_source}, from {rounds}{test}"


def _estimate(result: AuditResult) -> str:
    if result.estimates and result.estimate is None:
        return f"in the details alone: {no_estimate(result)}"
    if result.estimate is None:
        # The answer says why an estimate is withheld.
        return "" if result.delta else f"none: {no_estimate(result)}"
    value, error, low, high = estimate_digits(result.estimate)
    if result.estimate.name == COMPOSED:
        which = "the measured noise, in the rounds of the claim or record"
    else:
        which = (
            "here pinned: no sign of another variance"
            if result.has_equal_variances
            else "here fitted: variances differ"
        )
    interval = f"{percent(result.confidence)} interval {low} to {high}"
    return f"{result.estimate.name} {value} ± {error}, {interval} ({which})"


def no_estimate(result: AuditResult) -> str:
    """Say why an audit states no estimate; empty if it states one."""
    if result.estimate is not None:
        return ""
    if not result.delta:
        return "two Gaussians have no finite ε at δ = 0"
    if result.has_equal_scores:
        return "the estimators take scores for normal, and all of one kind are equal"
    if not result.estimates:
        return result.warnings[0].message if result.warnings else "the scores have no noise, and ε is infinite"
    if result.scores.kind is not ScoreKind.COSINE:
        return "the estimators take scores for normal, which another scale of these scores would change"
    record = result.scores.record
    if record is not None and record.score is Score.LARGEST:
        return "the paper's estimator (Algorithm 3) takes the largest cosines for normal, and they are not"
    return f"the estimators take scores for normal. {result.shape.reason}"


def _bound(result: AuditResult) -> str:
    if result.withheld:
        return ""
    if result.bound is None:
        return "none of those asked for has a known coverage"
    confidence = percent(1.0 - result.level)
    added = result.neighbours != result.scores.neighbours
    few = "; each row counts as a canary, as so few values do not show copies" if _has_few_values(result) else ""
    weak = "; canaries were only added, which moves a sum half as far as replacing" if added else ""
    return f"{shown_bound(result.bound)} at {confidence}, {result.bound.basis}; needs {result.bound.assumes}{few}{weak}"


def _has_few_values(result: AuditResult) -> bool:
    """Tell whether scores other than cosines take so few values that copies of rows cannot be seen."""
    scores = result.scores
    if scores.kind is not ScoreKind.ANY or scores.unobserved is None:
        return False
    return has_few_values(np.concatenate([scores.observed, scores.unobserved]))


def meaning(result: AuditResult) -> str:
    """Say for which attacker the numbers are, and what they do not mean."""
    if result.withheld:
        return "The scores are not what they are said to be, so that an estimate would mean nothing."
    if result.estimate is None and result.bound is None:
        return "No number here has a known coverage, so that none says what an attacker learns, or does not learn."
    if result.estimate is None:
        return (
            f"The bound is for an attacker who knows a random canary and sees these {_noun(result)} alone. It holds "
            "under every rising transform of the scores. A low value excludes no other attack."
        )
    seen = "this release" if result.release_norm is not None else f"these {_noun(result)} alone"
    record = result.scores.record
    if record is not None:
        seen = f"all releases, and knows {_KNOWN[record.score]}"
        seen += ", and all others' data" if record.traces is not None and record.traces.residual else ""
    added = (
        result.neighbours == "replace" and result.scores.neighbours != "replace" and result.estimate.name != COMPOSED
    )
    whose = " It is of adding or removing a record, while the claim is of replacing one." if added else ""
    return (
        f"ε̂ is an estimate for an attacker who knows a random canary and sees {seen}.{whose} It is neither an upper "
        "nor a lower bound, and a low value excludes no other attack."
    )


# Knowledge of a canary's rounds that a score needs.
_KNOWN = {
    Score.LARGEST: "nothing of its rounds",
    Score.LIKELIHOOD: "how its rounds were drawn",
    Score.KNOWN_ROUNDS: "its rounds",
}


@dataclass(frozen=True)
class _Calls:
    """The calls that print more, spelled for a shell or for Python."""

    details: str
    plot: str
    force: str
    claim: str


_SHELL = _Calls("--details", "--plot FILE.svg", "--force", "--claim EPSILON")
_PYTHON = _Calls("details()", "plot()", "force=True", "claim=EPSILON")


def _next(result: AuditResult, calls: _Calls) -> str:
    if result.withheld:
        return f"Fix the cause and audit again; {calls.force} computes the estimates anyway."
    shown = f"shows all estimates, bounds and tests; {calls.plot} draws them."
    more = f"{calls.details} {shown}"
    if not result.has_trace:
        # Scores alone do not decide whether canaries are missing (see ``misuse``).
        cosines = result.scores.kind is ScoreKind.COSINE
        absent = (
            "they are not in this release (check seed, order of coordinates and file)" if cosines else "none took part"
        )
        if _has_equal_means(result):
            absent += ", or each group was standardised alone, as their means are equal to nine digits"
        decides = "An audit of the released vector decides it. " if cosines and result.release_norm is None else ""
        return f"Nothing of the canaries is seen: ε is near 0, or data hide them, or {absent}. {decides}{more}"
    match result.verdict:
        case None:
            return f"What is claimed? {calls.claim} compares it. {more}"
        case ClaimVerdict.CONSISTENT:
            blind = " and the faults that this audit misses" if result.has_blind_spots else ""
            return f"{calls.details} shows all estimates, bounds and tests{blind}; {calls.plot} draws them."
        case ClaimVerdict.EXCEEDED | ClaimVerdict.REFUTED:
            return f"Look for less noise, or less clipping, than was claimed. {more}"
        case ClaimVerdict.AT_ITS_CAP if result.masking_variance:
            return f"Take others' data out of what is audited, or audit each round. {more}"
        case _:
            return f"Take more canaries: {calls.details} says how many notice half of the claimed noise, and {shown}"


def _has_equal_means(result: AuditResult) -> bool:
    """Tell whether both groups of scores have one mean, to nine digits of their deviation."""
    observed, unobserved = result.scores.observed, result.scores.unobserved
    if unobserved is None:
        return False
    return abs(float(observed.mean()) - float(unobserved.mean())) < 1e-9 * float(unobserved.std())


# The details.


def details(result: AuditResult, width: int = WIDTH, encoding: str = "utf-8") -> str:
    """Print all that the summary leaves out."""
    say = _speaker(encoding)
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
    yield _listing(checks(result), say)
    yield from _blind_spots(result, say)
    yield from remarks(result)
    if result.release_norm is not None:
        yield "The release is taken to be in units of the canary norm, in which canaries are taken out of it."
    yield "Estimates and bounds are averages over canaries, which must have taken part just as clients do."


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
    traces, value = mechanism.traces, mechanism.measured.value
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


def _blind_spots(result: AuditResult, say: Say) -> Iterator[str | Table]:
    # This import loads a table, which a summary does not need.
    from canaryproof.verify.audit.blindspots.fault_map import summary as mapped

    spots = result.blind_spots
    if spots is None:
        yield (
            "Which faults would have been noticed is known of a default bound, for cosines with one release of d of at "
            "least 1,000."
        )
        yield mapped()
        return
    seen = f"Would have been noticed with probability 90%, by the tests that decide, beside {claim_of_faults(spots)}:"
    unseen = "Would not have been noticed, and the instrument of a self-test that notices it (at a value):"
    missed = [(title, f"{where}; {by}") for title, where, by in unnoticed_rows(spots)]
    for heading, rows in ((seen, noticed_rows(spots)), (unseen, missed)):
        yield heading
        yield _listing(rows, say)
    yield mapped()
    if result.masking_variance:
        yield "The lists above allow for what hides the claimed noise: others' data, or more noise than claimed."
    elif result.noise_multiplier is not None and result.release_norm is None:
        yield "How much data dilute the cosines, ‖x‖²/(σ²d) − 1, can be told from the released vector only."


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
        "A bound of asymptotic coverage is proven for independent scores. Those of one run depend on each other, ever "
        "less as the dimension grows."
    ),
    "heuristic": "No proof covers a heuristic bound: it may be above ε in any share of audits.",
}


def remarks(result: AuditResult) -> Iterator[str]:
    """Yield remarks on the meaning of the numbers."""
    if result.estimates and result.has_equal_variances:
        yield "The variances are not told apart, so that adaptive is pinned, with the upper end of fitted."
    elif result.estimates:
        yield "The variances differ, so that adaptive is fitted."
    if result.standardised_mean <= 0.0:
        mean = "positive" if result.null_count is None else "above the null's"
        yield f"The observed mean is not {mean}, so that pinned is 0: it sees no trace of the canaries."
    if result.estimates and result.shape.reason:
        yield (
            f"{result.shape.reason} The estimates and their intervals are of ε of two Gaussians with the scores' means "
            "and variances, which is not the mechanism's."
        )
    undecided = result.verdict in (ClaimVerdict.AT_ITS_CAP, ClaimVerdict.NOT_DECIDED)
    by_default = result.bound is None or result.bound.name != PARTICIPATIONS
    if undecided and by_default and result.claim is not None and result.delta and not result.masking_variance:
        yield _enough(result, result.claim)
    if isinstance(result.request.claim, int | float) and result.neighbours == "add-or-remove":
        yield "The claim is taken to be of adding or removing a record; of replacing one it is with neighbours replace."
    if result.bounds:
        yield "A cap is a bound's value at perfect separation of as many scores: it cannot be more, whatever leaks."
    for coverage in dict.fromkeys(row.coverage for row in result.bounds):
        yield _COVERAGE[coverage]
    if result.null_law is not None:
        yield (
            "A small p-value for the null law is expected where scores are maxima over rounds; for cosines with a "
            "single release it says that the dimension is wrong or the unobserved canaries are not random."
        )
    if result.scores.kind is ScoreKind.ANY:
        yield (
            "Only cosines have a known null: for these scores there is no exact null, no test of the null law, no "
            "estimate from a norm, and no list of faults that would have been noticed."
        )


def _enough(result: AuditResult, claim: float) -> str:
    """Say how many canaries would notice half of the claimed noise."""
    count = result.bound_test(claim).sufficient_count(1.0 / (0.5 * result.claimed_noise(claim)))
    if count is None:
        return f"No lower bound from up to a million canaries would notice half of the noise of {claim_text(claim)}."
    kinds = "" if result.null_count is None else " of either kind"
    return f"Some {count:,} canaries{kinds} would notice half of the noise of {claim_text(claim)}."


# Numbers.


def estimate_digits(row: EstimateRow) -> tuple[str, str, str, str]:
    """Print an estimate, its standard error and its interval."""
    error = row.standard_error
    value, shown, low, high = (round_to_error(x, error) for x in (row.epsilon, error, row.low, row.high))
    return value, shown, low, high
