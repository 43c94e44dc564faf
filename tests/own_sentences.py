"""Finds our own sentences that assert something checkable, and tells which of them have no row in the table.

``python -m tests.own_sentences`` lists those without a row, ``python -m tests.own_sentences PAGE…`` those of some
places. ``--mend`` first takes along what was reworded or moved: a quote that no longer stands in its place is replaced
by the sentence that is most like it. Read the diff: whether the evidence shows the new sentence, nobody else will see.
"""

import ast
import csv
import difflib
import inspect
import io
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import click

import canaryproof
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.runs import own_sentences
from tests.plain_words import sentences

ROOT = Path(__file__).parents[1]
# A sentence asserts something checkable if it has one of these words, or a probability.
STRONG = re.compile(
    r"\b(?:never|always|any|every|whatever|all|exact(?:ly)?|proven|at most|at least|the same|no matter|impossible)\b"
    r"|\d%|\bprobability\b",
    re.IGNORECASE,
)
# Pages for those who change the code assert nothing that a decision on a training rests on.
_PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "contributing" not in page.parts),
]
_WRITTEN = re.compile(r"<!-- written: .*?<!-- end -->", re.DOTALL)
# A glossary's term asserts nothing; what is said of it does.
_TERM = re.compile(r"^\S.*\n(?=: )", re.MULTILINE)
# What an answer says is put together here.
_PRINTING = ("verify/audit/answer", "verify/audit/watch")
# numpydoc's lists of parameters, returns and errors are no prose.
_SECTION = re.compile(r"\n([A-Z][A-Za-z ]+)\n-{3,}\n")
# A sentence that is at least as like a lost quote as this is taken for the same one, reworded.
_ALIKE = 0.8


def _commands(command: click.Command, name: str = "canaryproof") -> Iterator[tuple[str, str]]:
    if isinstance(command, click.Group):
        for each in command.list_commands(click.Context(command)):
            if (inner := command.get_command(click.Context(command), each)) is not None:
                yield from _commands(inner, f"{name} {each}")
        return
    options = [option.help for option in command.params if isinstance(option, click.Option)]
    text = "\n\n".join(filter(None, [command.help, *options, command.epilog]))
    yield f"{name} --help", text.replace("\b", "")


def page_text(page: str) -> str:
    """Return what a page itself says: nothing that is written from elsewhere, and no terms of a glossary."""
    return _TERM.sub("", _WRITTEN.sub("", page))


@cache
def texts() -> Mapping[str, str]:
    """Return what users read, by its place.

    These are pages, what is not released yet of the changelog, the help of commands, the docstrings of public names,
    and the sentences that answers are made of.
    """
    found = {str(page.relative_to(ROOT)): page_text(page.read_text(encoding="utf-8")) for page in _PAGES}
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found["CHANGELOG.md"] = changes.partition("\n## Unreleased\n")[2].partition("\n## ")[0]
    found |= dict(_commands(main))
    for path in sorted(path for folder in _PRINTING for path in (ROOT / folder).glob("*.py")):
        parts = _strings(path.read_text(encoding="utf-8"), printed=True).split("\n\n")
        found[str(path.relative_to(ROOT))] = "\n\n".join(part for part in parts if part.endswith("."))
    for name in sorted(canaryproof.__all__):
        if (text := inspect.getdoc(getattr(canaryproof, name))) and name != "__version__":
            head, *rest = _SECTION.split(text)
            sections = dict(zip(rest[::2], rest[1::2], strict=True))
            found[f"canaryproof.{name}"] = f"{head}\n\n{sections.get('Notes', '')}"
    return found


def plain(text: str) -> str:
    """Return a text as quotes are compared: links are their words, and all white space is one blank."""
    return " ".join(re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("\\", "").split())


def _unprinted(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield a module's docstrings, and its errors with all their parts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            yield from ast.walk(node)
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            yield from ast.walk(node.body[0])


def _strings(code: str, *, printed: bool = False) -> str:
    """Return the texts of a module, or what it prints alone; what a format puts in stands as an ellipsis."""
    parts = []
    tree = ast.parse(code)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    inside |= {id(part) for part in _unprinted(tree)} if printed else set()
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            parts.append("".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts.append(node.value)
    return "\n\n".join(parts)


@cache
def text_of(place: str) -> str:
    """Return what stands in a place, which may also be a module, by what it prints, or the changelog."""
    path = ROOT / place
    if place in texts() and path.suffix != ".py" and place != "CHANGELOG.md":
        return plain(texts()[place])
    if not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8")
    return plain(_strings(text) if path.suffix == ".py" else text)


def stands(row: own_sentences.OwnSentence) -> bool:
    """Tell whether a quote stands in its place."""
    return plain(row.quote) in text_of(row.page)


def without_a_row(rows: tuple[own_sentences.OwnSentence, ...]) -> list[tuple[str, str]]:
    """Return place and words of each checkable sentence that no row quotes, in whole or in part."""
    quotes: dict[str, list[str]] = {}
    for row in rows:
        quotes.setdefault(row.page, []).append(plain(row.quote))
    return [
        (place, sentence)
        for place, text in texts().items()
        for sentence in map(plain, sentences(text, names=True))
        if STRONG.search(sentence) and not any(q in sentence or sentence in q for q in quotes.get(place, []))
    ]


def proposed(row: own_sentences.OwnSentence) -> tuple[str, str] | None:
    """Return where a lost quote stands now, or the most similar sentence of its place."""
    moved = [place for place in texts() if plain(row.quote) in text_of(place)]
    if moved:
        return moved[0], row.quote
    here = [plain(sentence) for sentence in sentences(texts().get(row.page, ""), names=True)]
    near = difflib.get_close_matches(plain(row.quote), here, n=1, cutoff=_ALIKE)
    return (row.page, near[0]) if near else None


def _mend(rows: tuple[own_sentences.OwnSentence, ...]) -> None:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(own_sentences.FIELDS)
    for row in rows:
        place, quote = row.page, row.quote
        if not stands(row):
            found = proposed(row)
            click.echo(f"{row.id}: {quote}\n  now {': '.join(found) if found else 'lost: mend or remove the row'}")
            place, quote = found or (place, quote)
        writer.writerow([row.id, place, quote, str(row)])
    path = ROOT / "verify" / "papers" / "runs" / own_sentences.TABLE
    path.write_text(table.getvalue(), encoding="utf-8")


if __name__ == "__main__":
    asked = sys.argv[1:]
    if "--mend" in asked:
        _mend(own_sentences.read())
    chosen = [place for place in asked if place != "--mend"]
    for place, sentence in without_a_row(own_sentences.read()):
        if not chosen or place in chosen:
            click.echo(f"{place}: {sentence}")
