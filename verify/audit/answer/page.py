"""An audit as pages: its report in Markdown and HTML, and what a notebook shows."""

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from canaryproof.verify.audit.answer import picture, text
from canaryproof.verify.audit.answer.findings import RULES, Decision, Finding, GateOutcome
from canaryproof.verify.audit.answer.result import ESTIMATE, AuditResult, AuditRow, EstimateRow
from canaryproof.verify.audit.answer.trade_off import trade_off_curve
from canaryproof.verify.audit.blindspots.fault_map import detector_of, summary
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS
from canaryproof.verify.audit.estimators.noise_multiplier import Evidence
from canaryproof.verify.audit.levels import POWER
from canaryproof.verify.audit.markup.digits import number, percent, round_down
from canaryproof.verify.audit.markup.figures import inline
from canaryproof.verify.audit.markup.markdown import literal, table

# Faults of a mechanism that no random canaries see, whatever their number.
_UNSEEN = ("unclipped", "memorised", "released-outright", "few-states")


@dataclass(frozen=True)
class ReportSection:
    """A section of a report: text, a table and shell commands, each optional."""

    title: str
    words: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """A picture of a report, with its caption."""

    svg: Markup
    caption: str


def html(result: AuditResult, document: dict[str, Any]) -> str:
    """Return an audit's report as an HTML page."""
    return html_page("audit", result.decision, document, tuple(_sections(result, document)), tuple(_pictures(result)))


def markdown(result: AuditResult, document: dict[str, Any]) -> str:
    """Return an audit's report as Markdown, with tables in place of pictures."""
    return markdown_page("audit", result.decision, document, tuple(_sections(result, document)))


def html_page(
    subject: str,
    decision: Decision | None,
    document: dict[str, Any],
    sections: Sequence[ReportSection],
    pictures: Sequence[Picture] = (),
) -> str:
    """Return a report as an HTML page, which needs no script and no network."""
    environment = Environment(
        loader=PackageLoader("canaryproof.verify.audit.answer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template("report.html.jinja").render(
        document=document,
        tone=_tone(decision),
        title=_title(subject, decision),
        heading=_heading_lines(document),
        pictures=pictures,
        sections=sections,
    )


def markdown_page(
    subject: str, decision: Decision | None, document: dict[str, Any], sections: Sequence[ReportSection]
) -> str:
    """Return a report as Markdown."""
    parts = [f"# {_title(subject, decision)}", *map(literal, _heading_lines(document)), literal(document["answer"])]
    for section in sections:
        parts.append(f"## {section.title}")
        parts += map(literal, section.words)
        if section.rows:
            parts.append(table(section.header, [list(map(literal, row)) for row in section.rows]))
        if section.lines:
            parts.append("\n".join(["```sh", *section.lines, "```"]))
    return "\n\n".join(parts) + "\n"


def fragment(result: AuditResult) -> str:
    """Return the HTML that a notebook shows: answer, warnings, rows and picture, without a style sheet."""
    parts = [f"<p><strong>{escape(text.answer(result))}</strong></p>"]
    findings = [(each.question, each.status, each.because) for each in result.findings]
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in findings]
    parts.append(f"<table><tbody>{''.join(f'<tr>{row}</tr>' for row in cells)}</tbody></table>")
    parts += [f"<p>⚠ {escape(f'{warning.message} {warning.what_to_do}')}</p>" for warning in text.notes(result)]
    rows = [*_rows(result.estimates), *_rows(result.bounds)]
    if rows:
        cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
        head = "".join(f"<th>{heading}</th>" for heading in _HEADINGS)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    image = base64.b64encode(picture.data(result, "svg")).decode("ascii")
    parts.append(f'<img alt="{escape(text.answer(result))}" src="data:image/svg+xml;base64,{image}"/>')
    return f'<div class="canaryproof-audit">{"".join(parts)}</div>'


def _title(subject: str, decision: Decision | None) -> str:
    """Return the decision as a title; ``answer`` says what it rests on."""
    return f"Privacy {subject}: {'nothing claimed' if decision is None else decision.outcome.lower()}"


def _heading_lines(document: dict[str, Any]) -> list[str]:
    """Return what the report's author says of it, a line each."""
    return [f"{name.capitalize()}: {words}" for name, words in document["heading"].items() if name != "name" and words]


def _tone(decision: Decision | None) -> str:
    """Return the tone of the answer."""
    if decision is None or decision.outcome is GateOutcome.CANNOT_SAY:
        return "unsure"
    return "good" if decision.outcome is GateOutcome.PASSED else "bad"


_HEADINGS = ("name", "version", "kind", "ε", "low", "high", "coverage", "cap", "assumes")


def _rows(rows: Sequence[AuditRow]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        numbers = [_end(row, row.epsilon), _end(row, row.low), number(row.high)]
        if isinstance(row, EstimateRow):
            value, _, low, high = text.estimate_digits(row)
            numbers = [value, low, high]
        yield (row.name, str(row.version), row.kind, *numbers, row.basis, _end(row, row.cap), row.assumes)


def _end(row: AuditRow, value: float) -> str:
    return number(value) if row.kind == ESTIMATE else round_down(value)


# The sections.


def _sections(result: AuditResult, document: dict[str, Any]) -> Iterator[ReportSection]:
    if (plan := document["plan"]) is not None:
        differences = [(each["name"], each["planned"], each["audited"]) for each in plan["differences"]]
        yield ReportSection("Held against the plan", (plan["answer"],), ("what", "planned", "audited"), differences)
    yield findings_section(result.findings, result.decision)
    yield from _claim(document)
    yield ReportSection("What the attacker knows", (document["attacker"],))
    if result.estimates or result.bounds:
        remarks = tuple(text.remarks(result))
        rows = [*_rows(result.estimates), *_rows(result.bounds)]
        interval, bound = percent(result.confidence), percent(1.0 - result.level)
        confidence = f"Intervals of estimates have {interval} confidence, and bounds {bound}."
        yield ReportSection("Estimates and bounds", (confidence, *remarks), _HEADINGS, rows)
    if document["curve"] is not None:
        yield _curve(result, document["curve"])
    if (evidence := document["evidence"]) is not None:
        yield _evidence(evidence)
    warnings = [(warning.kind, f"{warning.message} {warning.what_to_do}") for warning in result.warnings]
    level = f"{result.input_level:g}{result.input_condition}"
    honest = f"No sign of misuse: an honest audit is warned by chance with a probability of at most {level}."
    none = () if warnings else (honest,)
    yield ReportSection("Signs of misuse", none, ("sign", "what is wrong, and what to do"), warnings)
    yield ReportSection("Tests of what the numbers assume", (), ("test", "result"), _checks(result))
    if not result.withheld:
        yield from _notice_sections(result)
    unseen = "; ".join(f"{MECHANISMS[name].title} (noticed by {detector_of(name)})" for name in _UNSEEN)
    yield ReportSection(
        "What no audit by random canaries sees",
        (
            f"However many canaries there are, they do not see: {unseen}.",
            f"A low ε̂ or bound is no evidence against these. {summary()}",
        ),
    )
    yield from _origin(document)
    yield ReportSection("To report", (document["to_report"],))


def findings_section(findings: Sequence[Finding], decision: Decision | None) -> ReportSection:
    """Return the section of what was found, and of the rule by which that decides."""
    rows = [
        (each.question.value, each.status.value, each.because, each.noticed or "–", each.do or "–") for each in findings
    ]
    words = []
    if decision is not None:
        rule = next(rule for rule in RULES if rule.name == decision.rule)
        words.append(f"{decision.outcome}, as {rule.applies}. Asked: {', '.join(decision.asked)}.")
        words.append(
            f"All tests together have the level {decision.level:.4g}: an honest run is {GateOutcome.NOT_PASSED} with a "
            f"probability of at most that. {percent(decision.notice)} of the claimed noise must be noticed with "
            f"probability {POWER:.0%}."
        )
    header = ("question", "answer", "because", "noticed nine times out of ten", "what to do")
    return ReportSection("What was found", tuple(words), header, rows)


def _claim(document: dict[str, Any]) -> Iterator[ReportSection]:
    claimed = document["claimed"]
    if claimed is None:
        yield ReportSection("What was claimed", ("Nothing was claimed, so that nothing is decided.",))
        return
    rows = (
        ("ε", f"{claimed['epsilon']:.6g} at δ = {claimed['delta']:g}"),
        ("neighbours", claimed["neighbours"]),
        ("mechanism", claimed["mechanism"]),
        ("accounting of ε", claimed["basis"]),
        ("holds against", _AGAINST[claimed["attacker"]]),
    )
    yield ReportSection("What was claimed", (), ("claim", "value"), rows)


def _checks(result: AuditResult) -> tuple[tuple[str, str], ...]:
    return tuple((name, outcome) for name, outcome in text.checks(result) if outcome)


_AGAINST = {
    "known rounds": "an attacker who knows in which rounds a record took part",
    "sampling": "an attacker who knows how rounds were drawn, and not which",
    "unstated": "an attacker who is not stated",
}


def _curve(result: AuditResult, curve: dict[str, Any]) -> ReportSection:
    rows = [
        (f"true positive rate at a false positive rate of {each['false_positive_rate']:.2g}", *_pair(each))
        for each in curve["true_positive_rates"]
    ]
    rows.append(("advantage", *_pair(curve["advantage"])))
    rows += [(f"ε at δ = {each['delta']:g}", "", round_down(float(each["low"]))) for each in curve["epsilon"]]
    words = (
        f"All lower limits hold at once with {percent(result.confidence)} confidence, if scores are independent. "
        "So they are mostly lower than a bound for one δ alone.",
    )
    return ReportSection("Trade-off curve", words, ("of the attack by these scores", "estimate", "lower limit"), rows)


def _pair(each: dict[str, Any]) -> tuple[str, str]:
    return f"{each['estimate']:.3g}", round_down(float(each["low"]))


def _evidence(evidence: dict[str, Any]) -> ReportSection:
    level, alarm = evidence["alarm_level"], evidence["alarm_round"]
    largest = _power_of_ten(float(evidence["largest_log"]))
    answer = (
        f"No alarm in {evidence['measured_rounds']:,} measured rounds."
        if alarm is None
        else f"Alarm after measured round {alarm:,} of {evidence['measured_rounds']:,}."
    )
    words = (
        f"{answer} The evidence against the claimed noise reaches {largest}; an alarm is at {1.0 / level:,.0f}.",
        f"However often somebody looks, a training with the claimed noise raises an alarm with probability at most "
        f"{level:g}.",
    )
    return ReportSection("Evidence over rounds", words)


def _power_of_ten(log: float) -> str:
    value = log / math.log(10.0)
    return f"{math.exp(log):.3g}" if abs(value) < 6.0 else f"1e{value:.1f}"


def _notice_sections(result: AuditResult) -> Iterator[ReportSection]:
    words = []
    if result.noticed_share is not None:
        share = math.floor(100.0 * result.noticed_share)
        words.append(f"{share}% of the claimed noise or less would have been noticed with probability {POWER:.0%}.")
    spots = result.blind_spots
    if spots is None:
        words.append(text.UNKNOWN_FAULTS)
        yield ReportSection("What this audit would have noticed", tuple(words))
        return
    words.append(f"By the tests that decide, with probability {POWER:.0%}, beside {text.claim_of_faults(spots)}:")
    yield ReportSection("What this audit would have noticed", tuple(words), _FAULTS, text.noticed_rows(spots))
    missed = (*_FAULTS, "noticed in a self-test by (at)")
    yield ReportSection("What this audit would not have noticed", (), missed, text.unnoticed_rows(spots))


_FAULTS = ("fault", "where")


def _origin(document: dict[str, Any]) -> Iterator[ReportSection]:
    given, asked = document["input"], document["request"]
    subject = "release's coordinates" if given["subject"] == "release" else "scores"
    rows = [(f"SHA-256 of the {subject}", given["sha256"])]
    if (file := given["file"]) is not None:
        rows += [("file", file["name"]), ("its size", f"{file['bytes']:,} bytes"), ("its SHA-256", file["sha256"])]
    if (canaries := asked["canaries"]) is not None:
        made = f"{canaries['count']:,} {canaries['directions']} in {canaries['dim']:,} dimensions"
        rows += [("canaries", made), ("their seed", str(canaries["seed"]))]
    if (rounds := document["rounds"]) is not None:
        rows += [("score", rounds["score"]), ("rounds", f"{rounds['rounds']:,}; {rounds['missing']:,} missing")]
        rows.append(("participations of a canary", f"at most {rounds['participations']:,}"))
    if (plan := document["plan"]) is not None:
        rows += [("SHA-256 of the plan's file", plan["sha256"]), ("nonce of its seed", plan["secret"]["nonce"])]
    yield ReportSection("What was audited", (), ("input", "value"), rows)
    words = ["The last line derives the numbers of this report anew, and says which differ."]
    if file is None:
        saved = "numpy.save writes the release" if given["subject"] == "release" else "Scores.save writes the scores"
        words.append(f"This audit was of no file: {saved}.")
    yield ReportSection("Repeat it", tuple(words), lines=tuple(document["repeat"]))
    yield ReportSection("Versions", (), ("package", "version"), list(document["versions"].items()))


# The pictures.


def _pictures(result: AuditResult) -> Iterator[Picture]:
    claimed = " with the claim" if result.claim is not None else ""
    yield _picture(picture.draw(result, titled=False), "scores", f"Scores against the null; below, ε{claimed}.")
    mechanism = result.mechanism
    if result.scores.record is not None and mechanism is not None and mechanism.claimed is not None:
        values = mechanism.traces.log_evidence(mechanism.claimed)
        figure = Evidence(np.arange(len(values)), values).plot()
        yield _picture(figure, "evidence", "Evidence against the claimed noise after each measured round.")
    if not result.withheld:
        left = ", and the errors that the claim leaves" if claimed else ""
        caption = f"Trade-off curve: errors of an attacker with a threshold{left}."
        yield _picture(trade_off_curve(result).plot(), "curve", caption)


def _picture(figure: Figure, name: str, caption: str) -> Picture:
    return Picture(inline(figure, name, caption), caption)
