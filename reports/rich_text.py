"""Markdown as HTML for the report: the pages' own text, and single lines of claims, of which nothing is believed."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from canaryproof.verify.check.results import Verdict

# Besides its colour each verdict has a sign, so that colour never speaks alone.
SIGNS = {
    Verdict.CONFIRMED: "✓",
    Verdict.QUALIFIED: "≈",
    Verdict.REFUTED: "✗",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NEEDS_DATA: "○",
}
# Longer tables are folded.
_LONGEST_OPEN = 16
_NUMBER = re.compile(r"[≥≤~]?\s*[\[(]?[+−-]?[\d∞][^A-Za-z]*(?:e[+-]?\d+[^A-Za-z]*)*|[–—]?")


@dataclass(frozen=True)
class Table:
    """A table of a page: the headings above it, and its cells as plain text."""

    headings: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


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
        # What stands in other files of the project is named, and not linked.
        if address in links:
            token.attrs["href"] = links[address]
        elif not address.startswith(("https://", "http://")):
            del token.attrs["href"]
        return str(self.renderToken(tokens, idx, options, env))


_PAGES = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")
_CODE = re.compile("`([^`]+)`")


def line(text: str) -> Markup:
    """Render a line, in which nothing but `code` has a meaning."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def html(
    text: str,
    draw: Callable[[str, str], str] | None = None,
    links: Mapping[str, str] | None = None,
    depth: int = 1,
    name: str = "",
) -> Markup:
    """Render a page or a part of it.

    Parameters
    ----------
    text
        Markdown; HTML in it is shown as text.
    draw
        Makes the HTML of a picture from its file name and alternative text.
    links
        Where to lead instead, by address; what is not there and leads to no other site becomes plain text.
    depth
        Number of levels that headings go down.
    name
        Of tables that have no heading.

    Returns
    -------
    HTML, without the page's own title.
    """
    env: dict[str, Any] = {"draw": draw, "links": links or {}, "name": name}
    tokens = list(_prepared(_PAGES.parse(text, env), depth))
    parts = []
    # A table is named after the heading before it.
    for piece, heading in _pieces(tokens):
        env["name"] = heading or name
        parts.append(_PAGES.renderer.render(piece, _PAGES.options, env))
    # Between tags of a table blanks say nothing, and there are thousands.
    return Markup(re.sub(r"(?<=[a-z\"]>)\n(?=</?t)", "", "".join(parts)))


def tables(text: str) -> Iterator[Table]:
    """Read the tables of a page."""
    headings: list[str] = []
    rows: list[list[str]] = []
    tokens = _PAGES.parse(text)
    for token, following in zip(tokens, [*tokens, None][1:], strict=True):
        if token.type == "heading_open" and following is not None:
            level = int(token.tag[1:])
            headings = [*headings[: level - 1], _plain(following)]
        elif token.type == "table_open":
            rows = []
        elif token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open") and following is not None:
            rows[-1].append(_plain(following))
        elif token.type == "table_close":
            header, *body = map(tuple, rows)
            yield Table(tuple(headings), header, tuple(body))


def _plain(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def _until(tokens: Sequence[Token], start: int, kind: str) -> Iterator[Token]:
    for token in tokens[start:]:
        yield token
        if token.type == kind:
            return


def _prepared(tokens: Sequence[Token], depth: int) -> Iterator[Token]:
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
            first = body
        elif token.type == "td_open" and first:
            token.tag = "th"
            token.attrSet("scope", "row")
        elif token.type == "td_open" and following is not None and _NUMBER.fullmatch(following.content):
            token.attrSet("class", "number")
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
