"""The report as one HTML file, which needs no network and no script.

Markdown becomes HTML, of which nothing is trusted; a view holds all that the page says; a template renders it.
"""

import base64
import hashlib
import itertools
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from canaryproof.reports.claims import ORDER, RULE, TITLES, described, findings, in_passing
from canaryproof.reports.page import ages
from canaryproof.reports.pages import Chapter, pictures_of
from canaryproof.verify.audit.markup.figures import inline
from canaryproof.verify.papers.check.results import FALSE_ALARM_BUDGET, Result, Run, Subject, Verdict
from canaryproof.verify.papers.check.verdicts import MEANINGS, rule
from canaryproof.verify.papers.records.report_input import Material

# Besides its colour each verdict has a sign, so that colour never speaks alone.
SIGNS = {
    Verdict.CONFIRMED: "✓",
    Verdict.QUALIFIED: "≈",
    Verdict.REFUTED: "✗",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NEEDS_DATA: "○",
}
# A symbol with its accents and powers, or a word in capitals.
_SYMBOL = re.compile("(?<![A-Za-zÀ-ÿΑ-ω])(?:[A-Z]{3}|[A-Za-zΑ-ω][\u0302²]?)(?![A-Za-zÀ-ÿΑ-ω\u0302²])")
# Longer tables are folded.
_LONGEST_OPEN = 16
_NUMBER = re.compile(r"[≥≤~]?\s*[\[(]?[+−-]?[\d∞][^A-Za-z]*(?:e[+-]?\d+[^A-Za-z]*)*|[–—]?")


class _Renderer(RendererHTML):
    """Tables that scroll in a box of their own and have headers for screen readers, and pictures in the page."""

    def table_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:  # noqa: ARG002
        rows = sum(token.type == "tr_open" for token in _until(tokens, idx, "table_close")) - 1
        name = escape(env.get("name", "table"))
        box = f'<div class="scroll" role="region" aria-label="{name}, table" tabindex="0"><table>'
        if rows <= _LONGEST_OPEN:
            return box
        return f'<details class="rows"><summary>Table of {rows:,} rows</summary>{box}'

    def table_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:  # noqa: ARG002
        rows = 0
        while tokens[idx].type != "table_open":
            rows += tokens[idx].type == "tr_open"
            idx -= 1
        return "</table></div>\n" + ("</details>\n" if rows - 1 > _LONGEST_OPEN else "")

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:  # noqa: ARG002
        # Only pictures of this report are shown; any other address would be fetched.
        name = str(tokens[idx].attrs.get("src", ""))
        draw: Callable[[str, str], str] | None = env.get("draw")
        return draw(name, tokens[idx].content) if draw else str(escape(tokens[idx].content))

    def strong_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        # A verdict has its sign and colour wherever it stands.
        sign = SIGNS.get(tokens[idx + 1].content)  # type: ignore[call-overload]
        if sign is None:
            return str(self.renderToken(tokens, idx, options, env))
        return f'<strong class="chip {tokens[idx + 1].content}"><span aria-hidden="true">{sign}</span> '

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        token = tokens[idx]
        address = str(token.attrs.get("href", ""))
        links: Mapping[str, str] = env.get("links", {})
        # Addresses in other files of the project are shown and not linked.
        if address in links:
            token.attrs["href"] = links[address]
        elif not address.startswith(("https://", "http://")):
            del token.attrs["href"]
        return str(self.renderToken(tokens, idx, options, env))


_PAGES = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")
_CODE = re.compile("`([^`]+)`")


def rich_line(text: str) -> Markup:
    """Render a line, in which nothing but `code` has a meaning."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def rich_text(
    text: str,
    draw: Callable[[str, str], str] | None = None,
    links: Mapping[str, str] | None = None,
    depth: int = 1,
    name: str = "",
    plain: bool = False,
) -> Markup:
    """Render Markdown without its title; HTML in it is shown as text.

    ``draw`` makes a picture's HTML from its file and alternative text. ``links`` says where addresses lead instead:
    what is not there and leads to no other site becomes plain text. Headings go down by ``depth`` levels. ``name`` is
    for tables without a heading. The first cells of the rows of ``plain`` tables are cells like others.
    """
    env: dict[str, Any] = {"draw": draw, "links": links or {}, "name": name}
    tokens = list(_prepared(_PAGES.parse(text, env), depth, plain))
    parts = []
    # A table is named after the heading before it.
    for piece, heading in _pieces(tokens):
        env["name"] = heading or name
        parts.append(_PAGES.renderer.render(piece, _PAGES.options, env))
    # Between tags of a table blanks say nothing, and there are thousands.
    return Markup(re.sub(r"(?<=[a-z\"]>)\n(?=</?t)", "", "".join(parts)))


def tables(text: str) -> Iterator[tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]]:
    """Read the tables of a page: the header and the rows of each, their cells as plain text."""
    rows: list[list[str]] = []
    tokens = _PAGES.parse(text)
    for token, following in zip(tokens, [*tokens, None][1:], strict=True):
        if token.type == "table_open":
            rows = []
        elif token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open") and following is not None:
            rows[-1].append(_plain(following))
        elif token.type == "table_close":
            header, *body = map(tuple, rows)
            yield header, tuple(body)


def _plain(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def _until(tokens: Sequence[Token], start: int, kind: str) -> Iterator[Token]:
    for token in tokens[start:]:
        yield token
        if token.type == kind:
            return


def _prepared(tokens: Sequence[Token], depth: int, plain: bool) -> Iterator[Token]:
    """Drop the title, lower headings, and mark headers of rows and columns, and numbers."""
    inside_title, first, body = False, False, False
    for token, following in zip(tokens, [*tokens, None][1:], strict=True):
        if token.type in ("heading_open", "heading_close"):
            if token.tag == "h1":
                inside_title = token.type == "heading_open"
                continue
            token.tag = f"h{min(6, int(token.tag[1:]) + depth)}"
        elif inside_title:
            continue
        elif token.type == "th_open":
            token.attrSet("scope", "col")
        elif token.type in ("tbody_open", "tbody_close"):
            body = token.type == "tbody_open"
        elif token.type == "tr_open":
            first = body and not plain
        elif token.type == "td_open" and first:
            token.tag = "th"
            token.attrSet("scope", "row")
        elif token.type == "td_open" and following is not None and _NUMBER.fullmatch(following.content):
            # A number with its error stays on one line.
            for part in following.children or ():
                part.content = part.content.replace(" ", "\N{NO-BREAK SPACE}")
        elif token.type == "td_close" and first:
            token.tag, first = "th", False
        yield token


def _pieces(tokens: Sequence[Token]) -> Iterator[tuple[Sequence[Token], str]]:
    """Cut before headings; each piece comes with its heading's text."""
    piece: list[Token] = []
    heading = ""
    for i, token in enumerate(tokens):
        if token.type == "heading_open":
            yield piece, heading
            piece, heading = [], _plain(tokens[i + 1])
        piece.append(token)
    yield piece, heading


_OWN = "ours"
# Characters of evidence on the whole page and of one claim: the page of a quick run is to stay below 1.5 MB.
_ALL_ROOM, _MOST_ROOM = 200_000, 1_200
# Meanings of the letters that the first screen may show.
_SYMBOLS = {
    "ε": "privacy loss of the mechanism; ε̂ is an estimate of it",
    "δ": "the probability that (ε, δ)-differential privacy allows for a larger loss",
    "d": "dimension of the model: its number of parameters",
    "k": "number of canaries",
    "n": "number of clients",
    "σ": "deviation of the noise, in units of the clip norm",
    "Σ": "a covariance matrix, or a sum",
    "μ̂": "mean of the canaries' cosines",
    "σ̂": "standard deviation of the canaries' cosines",
    "μ": "mean of a normal law",
    "ρ": "the released vector: data, canaries and noise",
    "τ": "a cosine, or a threshold of cosines",
    "t": "a cosine times √d",
    "θ": "parameters of the model",
    "α": "1 − confidence",
    "A²": "the Anderson–Darling statistic",
    "FPR": "false positive rate of the attack",
    "FNR": "false negative rate of the attack",
}


@dataclass(frozen=True)
class Entry:
    """A line of the ledger and what it opens to."""

    result: Result
    anchor: str
    document: str
    sign: str
    statement: Markup
    finding: Markup
    # Why a printed number has its verdict; "" for a sentence, which has that of its verdict's meaning.
    rule: str
    command: str
    picture: str
    evidence: Markup
    in_passing: bool


@dataclass(frozen=True)
class Group:
    """The claims of a document by verdict, what fails first."""

    key: str
    title: str
    verdicts: tuple[tuple[str, str, tuple[Entry, ...]], ...]

    @property
    def total(self) -> int:
        """Number of claims."""
        return sum(len(claims) for _, _, claims in self.verdicts)


@dataclass(frozen=True)
class Count:
    """Number of statements with a verdict."""

    verdict: str
    sign: str
    number: int
    meaning: str


def _view(material: Material, made: Sequence[Chapter]) -> dict[str, Any]:
    """Return all that the page says, ready for its template."""
    run = material.run
    anchors = _anchors(run.results)
    pictures = {name.removesuffix(".svg") for chapter in made for name in chapter.figures}
    room = min(_MOST_ROOM, _ALL_ROOM // max(1, len(run.results)))
    claims = [_entry(run, i, anchor, pictures, room) for i, anchor in enumerate(anchors)]
    by_result = dict(zip(map(id, run.results), claims, strict=True))
    documents = [result for result in run.results if result.subject is Subject.DOCUMENT]
    counts = Counter(result.verdict for result in documents)
    links = {f"claims-{key}.md": "#ledger" for key in TITLES} | {f"{name}.md": f"#{name}" for name in ("proofs",)}
    styles: dict[str, str] = {}
    numbers = itertools.count()
    chosen = tuple(by_result[id(result)] for result in findings(run))
    return {
        "version": run.version,
        "level": str(run.level),
        "seed": run.seed,
        "dates": tuple(dict.fromkeys(date for age in (ages(run)[:1], ages(run)[-1:]) for date, _ in age)),
        "unfinished": material.unfinished,
        "total": len(documents),
        "counts": tuple(Count(str(v), SIGNS[v], counts[v], MEANINGS[v]) for v in Verdict),
        "findings": chosen,
        "symbols": _symbols(str(words) for claim in chosen for words in (claim.statement, claim.finding)),
        "rule": RULE,
        "own": sum(result.subject is Subject.IMPLEMENTATION for result in run.results),
        "failures": tuple(by_result[id(result)] for result in run.failures),
        "groups": tuple(_groups(claims)),
        "suites": tuple(dict.fromkeys(result.suite for result in run.results)),
        "chapters": tuple(
            (part.name, part.label, part.title, chapter_body(part, links, styles, numbers)) for part in made
        ),
        "styles": styles,
        "tests": len(run.designs),
        "levels": _levels(run),
        "false_alarm": f"{run.false_alarm_probability:.1g}",
        "budget": f"{FALSE_ALARM_BUDGET:g}",
        "environment": material.environment,
        "needs": _needs(run),
        "unjudged": tuple(material.unjudged.items()),
    }


def _anchors(results: Sequence[Result]) -> list[str]:
    """Name a place in the page for each result: its id, which no two may share and no blank may be in."""
    used: set[str] = set()
    anchors = []
    for result in results:
        name = "-".join(result.id.split()) or "claim"
        # The page's own places have no dot in them, and ids of claims all do.
        name = name if "." in name else f"claim.{name}"
        while name in used:
            name += "-again"
        used.add(name)
        anchors.append(name)
    return anchors


def _entry(run: Run, position: int, anchor: str, pictures: set[str], room: int) -> Entry:
    result = run.results[position]
    named = (name.removesuffix(".svg") for name in pictures_of(result))
    of_document = result.subject is Subject.DOCUMENT
    suite = ["verify", result.suite, "--level", str(run.level), "--seed", str(run.seed)]
    again = ["claims", result.id] if of_document else suite
    path = f"results[{position}].evidence"
    evidence = rich_text(described(result.evidence, path, room), name="Evidence", plain=True)
    return Entry(
        result=result,
        anchor=anchor,
        document=result.id.partition(".")[0] if of_document else _OWN,
        sign=SIGNS[result.verdict],
        statement=rich_line(result.statement),
        finding=rich_line(result.finding),
        rule=rule(result) if "rule" in result.evidence else "",
        command=shlex.join(["canaryproof", *again]),
        picture=next((name for name in named if name in pictures), ""),
        evidence=evidence,
        in_passing=in_passing(result),
    )


def _symbols(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Explain the symbols that stand in some texts."""
    words = {word for text in texts for word in _SYMBOL.findall(re.sub(r"<[^>]*>", " ", text))}
    return tuple((symbol, meaning) for symbol, meaning in _SYMBOLS.items() if symbol in words)


def _groups(claims: Sequence[Entry]) -> list[Group]:
    keys = dict.fromkeys(claim.document for claim in claims)
    known = [*TITLES, *(key for key in keys if key not in TITLES and key != _OWN), _OWN]
    titles = {**TITLES, _OWN: "This package's own checks"}

    def of(key: str, verdict: Verdict) -> tuple[Entry, ...]:
        selected = [claim for claim in claims if (claim.document, claim.result.verdict) == (key, verdict)]
        return tuple(sorted(selected, key=lambda claim: claim.in_passing))

    return [
        Group(key, titles.get(key, key), tuple((str(v), SIGNS[v], entries) for v in ORDER if (entries := of(key, v))))
        for key in known
        if key in keys
    ]


_CUT = "The picture is wider than this screen: scroll it sideways."


def chapter_body(chapter: Chapter, links: Mapping[str, str], styles: dict[str, str], numbers: Iterator[int]) -> Markup:
    """Render a chapter with its pictures, which ``numbers`` tell apart and whose styles are added to the page's."""

    def draw(file: str, alternative: str) -> str:
        if file not in chapter.figures:
            return str(Markup("<em>{}</em>").format(alternative))
        picture = inline(chapter.figures[file], f"p{next(numbers)}", alternative, styles)
        name = f"picture-{file.removesuffix('.svg')}"
        width = 72.0 * chapter.figures[file].get_figwidth()
        box = (
            '<span class="picture" id="{}" style="--width:{:.0f}"><span class="pan" role="group" tabindex="0" '
            f'aria-label="Picture">{{}}</span><span class="cut">{_CUT}</span></span>'
        )
        # The picture's own title says the same to those who do not see it.
        caption = '<span class="caption" aria-hidden="true">{}</span>'
        return str(Markup(box + caption).format(name, width, picture, alternative))

    return rich_text(chapter.text, draw, links, name=chapter.title)


def _levels(run: Run) -> tuple[tuple[str, int, str], ...]:
    """Split the sum of the tests' levels over the suites."""
    levels_of: dict[str, list[float]] = {}
    for result in run.results:
        if result.design is not None:
            levels_of.setdefault(result.suite, []).append(result.design.level)
    return tuple((suite, len(levels), f"{sum(levels):.1g}") for suite, levels in levels_of.items())


def _needs(run: Run) -> tuple[tuple[str, int], ...]:
    """Count the statements that only a data set decides, by data set."""
    # A tool that is not installed waits for no data.
    documents = [result for result in run.results if result.subject is Subject.DOCUMENT]
    waiting = [result for result in documents if result.verdict is Verdict.NEEDS_DATA]
    return tuple(Counter(str(result.evidence.get("data", "not named")) for result in waiting).most_common())


@cache
def environment() -> Environment:
    """Return where templates are read; whatever they insert is escaped."""
    loader = PackageLoader("canaryproof.reports", "templates")
    return Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined,
        keep_trailing_newline=True,
    )  # fmt: skip


def html(material: Material, made: Sequence[Chapter]) -> str:
    """Render the report; its policy lets no script but its own run, and nothing be fetched."""
    templates = environment()
    script = templates.get_template("report.js").render()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return templates.get_template("report.html.jinja").render(
        v=_view(material, made), script=Markup(script), script_hash=f"sha256-{digest}"
    )
