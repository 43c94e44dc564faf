"""The ledger's pages: what a document states and what holds of it; which findings come first; evidence as tables."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from canaryproof.reports.page import provenance
from canaryproof.verify.audit.markup.digits import interval
from canaryproof.verify.audit.markup.markdown import literal, table
from canaryproof.verify.papers.check.documents import DOCUMENTS, FINAL, Voice, distinct, voice
from canaryproof.verify.papers.check.results import Result, Run, Subject, Verdict
from canaryproof.verify.papers.check.verdicts import MEANINGS, rule
from canaryproof.verify.papers.records.evidence import SimulatedCell, records
from canaryproof.verify.papers.records.text_tables import table_rows

# Titles of the documents' pages, in their order.
TITLES = {document.id: document.title for document in DOCUMENTS}
# Failures come first, as people look for them.
ORDER = (Verdict.REFUTED, Verdict.QUALIFIED, Verdict.INCONCLUSIVE, Verdict.CONFIRMED, Verdict.NEEDS_DATA)


def statements(run: Run, document: str) -> list[Result]:
    """Results on a document's statements, lines of proofs included."""
    return [r for r in run.results if r.subject is Subject.DOCUMENT and r.id.partition(".")[0] == document]


def documents(run: Run) -> list[str]:
    """Documents that a run has statements of."""
    names = dict.fromkeys(r.id.partition(".")[0] for r in run.results if r.subject is Subject.DOCUMENT)
    return sorted(names, key=lambda name: [*TITLES, name].index(name))


def page_name(document: str) -> str:
    """Name the page of a document."""
    # Results may be read from a file, and none may lead out of the folder.
    return "claims-" + "".join(c if c.isalnum() else "-" for c in document) + ".md"


# The letters in the lines of proofs.
_SYMBOLS = (
    "Canaries are cᵢ, Z ~ N(0, I), and ρ = Σcᵢ + σZ is the release, R in the first version. Between P₁ = N(μ₁, σ₁²) "
    "and P₂ = N(μ₂, σ₂²), Z₁ is the loss f(X₁) = log(p₁(X₁)/p₂(X₁)) of X₁ ~ P₁, and Z₂ that of P₂ against P₁ at "
    "X₂ ~ P₂. The gradient of CANIFE's canary is g or G(z)."
)


def text(run: Run, document: str) -> str:
    """Render the page of a document, which the first part of its statements' ids names."""
    results = statements(run, document)
    stated = [result for result in results if voice(result) is Voice.DOCUMENT]
    counts = Counter(result.verdict for result in stated)
    parts = [
        f"# {TITLES.get(document, document)}: what it states and what holds",
        f"{provenance(replace(run, results=tuple(results)))}. `canaryproof claims ID` shows a claim with all its "
        "evidence. An estimate is `fitted` where Algorithm 1 takes the deviation of the cosines from the sample, and "
        "`pinned` where it is held at that of the null, 1/√d. What is simulated is drawn "
        "anew for each claim, so two claims on the same cell of a table may show numbers that differ by chance.",
        _SYMBOLS,
        table(
            ("verdict", "claims", "means"),
            [(f"{verdict}", f"{counts[verdict]}", meaning) for verdict, meaning in MEANINGS.items() if counts[verdict]],
        ),
    ]
    if document == FINAL.id and (compared := table_2(run)) is not None:
        header = tuple(name.replace("(", "(`").replace(")", "`)") for name in compared.rows[0])
        parts += ["## Table 2 three ways", table(header, compared.rows[1:]), compared.note]
    for verdict in ORDER:
        shown = [r for r in stated if r.verdict is verdict and not (r.is_line and verdict is Verdict.CONFIRMED)]
        if shown:
            rows = [(f"`{r.id}`", r.source, r.statement, _finding(r)) for r in shown]
            header = ("claim", "place", "what it says", "finding")
            parts += [f"## {str(verdict).capitalize()}", table(header, rows, [r.id for r in shown])]
    lists = {
        "Tried on other data than the document's": Voice.ANALOGUE,
        "What the authors promised": Voice.PROMISE,
        "What reviewers say": Voice.REVIEWER,
    }
    for title, kind in lists.items():
        others = [result for result in results if voice(result) is kind]
        if others:
            lines = [(f"`{r.id}`", r.source, r.statement, f"{r.verdict}", _finding(r)) for r in others]
            columns = ("claim", "place", "what it says", "verdict", "finding")
            parts += [f"## {title}", table(columns, lines, [r.id for r in others])]
    held = sum(result.is_line and result.verdict is Verdict.CONFIRMED for result in results)
    if held:
        parts.append(f"{held} lines of proofs more are confirmed; they stand in [proofs.md](proofs.md).")
    return "\n\n".join(parts) + "\n"


_TABLE_2 = "final.table2."


@dataclass(frozen=True)
class ComparedTable:
    """A printed table with the true numbers.

    Attributes
    ----------
    rows
        Its rows, the header first.
    note
        What the numbers are of.
    ids
        The statements that it shows.
    """

    rows: list[tuple[str, ...]]
    note: str
    ids: list[str]


def table_2(run: Run) -> ComparedTable | None:
    """Compare the simulated Table 2 of the final version with Algorithm 1 and with the first version's estimator."""
    by_name = records(run, SimulatedCell, _TABLE_2)
    if not by_name:
        return None

    printed = {result.id: result.statement for result in run.results}
    cells = list(by_name.values())
    rows = [
        (
            f"{cell.epsilon:g}",
            # The statement has the printed digits, whatever its words.
            "".join(re.findall(r"[\d.]+ ± [\d.]+", printed[f"{_TABLE_2}{name}"])),
            *(
                f"{estimate.mean:.3f} ± {estimate.deviation:.3f}"
                for estimate in (cell.readings["fitted, both directions"], cell.readings["pinned"])
            ),
        )
        for name, cell in by_name.items()
    ]
    first = cells[0]
    note = (
        f"ε̂ at d = {first.dim:,}, k = {first.count:,} and δ = {first.delta:g}: mean ± standard deviation, "
        f"printed of {first.printed.runs} simulations, ours of {first.runs:,} draws of the exact law."
    )
    header = ("ε", "printed", "Algorithm 1, both ways (fitted)", "first version (pinned)")
    return ComparedTable([header, *rows], note, [f"{_TABLE_2}{name}" for name in by_name])


def _finding(result: Result) -> str:
    """Return the finding, with the rule of a printed number; the other rules are those of the page's head."""
    return f"{result.finding}. Rule: {rule(result)}" if "rule" in result.evidence else result.finding


# Which findings come first: a rule, so that nobody chooses them.
RULE = (
    "Of the documents' statements, refuted ones come before qualified ones; what a proof only says on its way to a "
    "conclusion that stands comes last; statements of ε, of privacy, of confidence or of a theorem come before others; "
    "then the order of the documents, final version first, and of their statements. Each suite gives its first one, as "
    "suites ask different questions, before any gives a second."
)
_MATTERS = ("ε", "privacy", "confidence", "theorem")


def in_passing(result: Result) -> bool:
    """Whether this is a line of a proof whose conclusion stands all the same."""
    return bool(result.evidence.get("kind") == "wrong term")


def findings(run: Run, count: int = 3) -> list[Result]:
    """Choose the findings to show first, by ``RULE``; fewer where fewer statements are refuted or qualified."""
    known = list(TITLES)

    def rank(result: Result) -> tuple[int, bool, bool, int]:
        document = result.id.partition(".")[0]
        return (
            ORDER.index(result.verdict),
            in_passing(result),
            not any(word in result.statement.lower() for word in _MATTERS),
            known.index(document) if document in known else len(known),
        )

    # A statement of several versions counts once.
    once = [group[0] for group in distinct(run.results).values()]
    ranked = sorted((r for r in once if r.verdict in ORDER[:2]), key=rank)
    counts: dict[str, int] = {}
    turns = []
    for result in ranked:
        turns.append(counts.setdefault(result.suite, 0))
        counts[result.suite] += 1
    chosen = sorted(zip(turns, ranked, strict=True), key=lambda pair: (rank(pair[1])[:2], pair[0]))
    return [result for _, result in chosen[:count]]


# Evidence has free form; what is nested deeper, longer or wider is cut.
_MOST_COLUMNS, _MOST_ITEMS, _LONGEST_CELL = 9, 8, 160
# An enclosure is a pair of neighbours: narrower than this relative width all its digits are shown.
_NARROW = 1e-6
# These are shown elsewhere: in a chapter with pictures, and in a line of its own.
_ELSEWHERE = {"convergence", "rule"}


def described(evidence: Mapping[str, Any], path: str, room: int) -> str:
    """Render evidence as Markdown of about ``room`` characters, lists as tables; ``path`` says where all of it is."""
    single: dict[str, str] = {}
    grids: dict[str, Sequence[Mapping[str, Any]]] = {}
    for key, value in evidence.items():
        if key in _ELSEWHERE:
            continue
        if (rows := table_rows(value)) is not None:
            grids[key] = rows
        else:
            single |= dict(_flat(key, value))
    parts, left = [], 0
    if single:
        shown = _fitting([(_named(key), value) for key, value in single.items()], room)
        if shown:
            parts.append("; ".join(f"{key}: {value}" for key, value in shown))
        left += len(single) - len(shown)
        room -= sum(len("".join(row)) for row in shown)
    for key, rows in grids.items():
        flat = [dict(cell for name, value in row.items() for cell in _flat(name, value)) for row in rows]
        header = list(dict.fromkeys(name for row in flat for name in row))
        cells = [[row.get(name, "") for name in header] for row in flat]
        # A part of a table says little.
        if len(header) > _MOST_COLUMNS or len(_fitting([header, *cells], room)) <= len(cells):
            left += 1
            continue
        parts += [f"**{_named(key)}**", table(list(map(_named, header)), cells)]
        room -= sum(len("".join(row)) for row in (header, *cells))
    if left:
        parts.append(f"All evidence: `{path}` in `results.json`.")
    return "\n\n".join(parts)


def scalar(value: Any) -> str:
    """Render a value of JSON's with the digits that it may deserve: six, where nothing is known of its error."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return ("∞" if value > 0 else "−∞") if math.isinf(value) else f"{value:.6g}"
    return _escaped(str(value))


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Name the parts of an object by their paths."""
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from _flat(f"{name} · {key}" if name else str(key), part)
    else:
        yield name, _cell(value)


def _cell(value: Any) -> str:
    if isinstance(value, list | tuple):
        if len(value) == 2 and all(isinstance(end, float) for end in value) and value[0] <= value[1]:
            low, high = value
            if math.isfinite(high - low) and high - low <= _NARROW * max(abs(low), abs(high)):
                return _escaped(interval((low, high)))
            return _escaped(f"[{scalar(low)}, {scalar(high)}]")
        shown = ", ".join(map(_cell, value[:_MOST_ITEMS]))
        return _cut(shown + (f", … ({len(value):,})" if len(value) > _MOST_ITEMS else ""))
    if isinstance(value, Mapping):
        return _cut(
            ", ".join(f"{_escaped(str(key))}: {_cell(part)}" for key, part in list(value.items())[:_MOST_ITEMS])
        )
    return _cut(scalar(value))


def _cut(shown: str) -> str:
    # A backslash at the cut would hide what follows.
    return shown if len(shown) <= _LONGEST_CELL else shown[:_LONGEST_CELL].rstrip("\\") + "…"


def _named(key: str) -> str:
    # A line may break at a blank only.
    return _escaped(key.replace("_", " "))


def _escaped(words: str) -> str:
    """Take from text what has a meaning in Markdown."""
    return literal(words if len(words) <= _LONGEST_CELL else words[:_LONGEST_CELL] + "…")


def _fitting(rows: Sequence[Sequence[str]], room: int) -> list[Sequence[str]]:
    """Return the first rows for which there is room."""
    shown: list[Sequence[str]] = []
    for row in rows:
        room -= sum(map(len, row)) + 4 * len(row)
        if room < 0:
            break
        shown.append(row)
    return shown
