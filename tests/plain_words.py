"""Sentences of Markdown pages, docstrings and comments."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

_FENCE = re.compile(r"^(```+|:::+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
# A full stop and the like before a capital, a number or code; not after an abbreviation.
_END = re.compile(r"(?<=[.!?])(?<!\bal\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)[*_)”’\"]*\s+(?=[^a-zα-ω\s])")

# A section of a docstring ends its prose; numpydoc's tables of parameters are no sentences.
_SECTION = re.compile(r"\n[A-Z][a-z]+\n-{3,}\n")
_DIRECTIVE = re.compile(r"(?:noqa|type|ruff|fmt|mypy|pragma)\b")
# Words that mean something in this project alone.
PRIVATE = re.compile(r"\b(?:beside|course|foretold|late|ours|roads?|told)\b", re.IGNORECASE)
# A sentence that opens so has no subject, or no verb.
FRAGMENT = re.compile(r"(?:What|Of|So|Such|How (?:much|many))\b")


def sentences(text: str, *, names: bool = False) -> list[str]:
    """Return the sentences of a page: no code, no tables, no headings; a list's entry ends a sentence too.

    What stands in backticks is one word, ``Code``, unless ``names`` keeps it.
    """
    text = _FENCE.sub("\n\n", _FRONT.sub("", text))
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    if not names:
        text = re.sub(r"`[^`]*`", "Code", text)
    paragraphs = [
        " ".join(lines.split())
        for lines in re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |: |\|))|(?<=\|)\n", text)
        if not lines.lstrip().startswith(("#", "|", "    "))
    ]
    found = (sentence.strip(" -*") for paragraph in paragraphs for sentence in _END.split(paragraph))
    return [sentence for sentence in found if len(sentence.split()) > 1]


def docstrings(code: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the prose of every docstring of a module."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, _SECTION.split(text)[0]


def comments(code: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of every comment; lines that follow one another are one comment."""
    lines: list[str] = []
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string.lstrip("# ")):
            continue
        if not lines or token.start[0] != first + len(lines) or not token.line.lstrip().startswith("#"):
            if lines:
                yield first, " ".join(lines)
            lines, first = [], token.start[0]
        lines.append(token.string.lstrip("# "))
    if lines:
        yield first, " ".join(lines)
