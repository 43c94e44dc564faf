"""Parts of pages that are made when the site is built.

The directive ``made`` has the name of one of ``PARTS`` for its argument. ``published`` has a published page and a
heading on it, below which the first table is taken. ``results`` has an identifier of the published run on each line.
"""

import ast
import inspect
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from canaryproof.verify.check.results import Verdict
from canaryproof.verify.training import configuration

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "reports" / "published"
DOCUMENTS = {
    "final": "Andrew et al., final version",
    "v1": "Andrew et al., first version",
    "submission": "Andrew et al., anonymous submission",
    "review": "Reviews of Andrew et al. and the authors' answers",
    "canife": "Maddock et al., CANIFE",
}


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _comments(table: type) -> dict[str, str]:
    """Return the comment at each field of a dataclass, on its line or above it."""
    lines = inspect.getsource(table).splitlines()
    found = {}
    for node in ast.parse("\n".join(lines)).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = lines[(node.end_lineno or node.lineno) - 1]
            above = []
            for line in reversed(lines[: node.lineno - 1]):
                if not line.strip().startswith("#"):
                    break
                above.insert(0, line.strip().removeprefix("#").strip())
            here = last.partition("#")[2].strip() if not above else " ".join(above)
            found[node.target.id] = here.replace("``", "`")
    return found


def _rule(annotation: Any) -> str:
    """Return what a field must be, in the words of its own error."""
    for part in (annotation, *get_args(annotation)):
        for check in getattr(part, "__metadata__", ()):
            try:
                check(object())
            except ValueError as error:
                return str(error).removeprefix("must be ").rpartition(", not ")[0]
    return {bool: "true or false"}[annotation]


def _tables() -> Iterator[tuple[str, type]]:
    yield "above the tables", configuration.Heading
    for name, table in inspect.get_annotations(configuration.Settings).items():
        yield f"`[{name}]`", getattr(table, "__args__", [table])[0]


def experiment_fields() -> str:
    """Return a table for each table of an experiment's file."""
    lines = []
    for name, table in _tables():
        comments, annotations = _comments(table), get_type_hints(table, include_extras=True)
        lines += [f"## Fields {name}", "", (inspect.getdoc(table) or "").replace("``", "`"), ""]
        columns = 4 if any(comments.values()) else 3
        lines += [_row(*("field", "rule", "default", "meaning")[:columns]), "|---" * columns + "|"]
        for entry in fields(table):
            default = {MISSING: "required", None: "none", "": "empty"}.get(entry.default, f"`{entry.default}`")
            cells = f"`{entry.name}`", _rule(annotations[entry.name]), default, comments[entry.name]
            lines.append(_row(*cells[:columns]))
        lines.append("")
    return "\n".join(lines)


def _allowed(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_allowed(one) for one in schema["anyOf"])
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    return f"array of {_allowed(schema['items'])}" if kind == "array" and "items" in schema else str(kind)


def results_fields() -> str:
    """Return a table for each kind of object in ``results.json``."""
    schema = json.loads((ROOT / "reports/schema.json").read_text(encoding="utf-8"))
    lines = []
    for name, part in {"the document": schema, **schema["$defs"]}.items():
        if "properties" not in part:
            continue
        lines += [f"## {name.capitalize()}", "", part.get("description", ""), ""]
        lines += [_row("field", "value", "meaning"), "|---|---|---|"]
        for entry, rule in part["properties"].items():
            lines.append(_row(f"`{entry}`", _allowed(rule), rule.get("description", "")))
        lines.append("")
    return "\n".join(lines)


def _run() -> dict[str, Any]:
    """Return the published run."""
    run: dict[str, Any] = json.loads((PUBLISHED / "results.json").read_text(encoding="utf-8"))
    return run


def results(names: Sequence[str]) -> str:
    """Return a table of some results of the published run: what each states, its verdict, and what was found."""
    found = {result["id"]: result for result in _run()["results"]}
    lines = [_row("statement", "verdict", "what was found"), "|---|---|---|"]
    for name in names:
        result = found[name]
        document = DOCUMENTS[name.partition(".")[0]] if result["subject"] == "document" else "this package"
        lines.append(_row(f"{document}: {result['statement']}", result["verdict"], result["finding"]))
    return "\n".join(lines)


def verdicts() -> str:
    """Return the counts of verdicts by document, of the published run."""
    run = _run()
    counts = Counter(
        (result["id"].partition(".")[0], result["verdict"])
        for result in run["results"]
        if result["subject"] == "document"
    )
    names = [str(verdict) for verdict in Verdict]
    lines = [f"The published run is of the {run['level']} level, seed {run['seed']}.", ""]
    lines += [_row("document", *names), "|---|" + "--:|" * len(names)]
    for document, title in DOCUMENTS.items():
        cells = (str(counts.pop((document, name), 0)) for name in names)
        lines.append(_row(f"[{title}](../reports/published/claims-{document}.md)", *cells))
    if counts:
        raise AssertionError(f"documents without a row: {sorted(counts)}")
    return "\n".join(lines)


def published(page: str, heading: str) -> str:
    """Return the first table below a heading of a published page."""
    text = (PUBLISHED / f"{page}.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = section.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    return "\n".join(itertools.takewhile(lambda line: line.startswith("|"), lines[first:]))


PARTS: dict[str, Callable[[], str]] = {
    "experiment-fields": experiment_fields,
    "results-fields": results_fields,
    "verdicts": verdicts,
}


class _Made(SphinxDirective):
    """``{made} PART``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(PARTS[self.arguments[0]](), allow_section_headings=True)


class _Published(SphinxDirective):
    """``{published} PAGE: HEADING``."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        page, _, heading = self.arguments[0].partition(": ")
        return self.parse_text_to_nodes(published(page, heading))


class _Results(SphinxDirective):
    """``{results}``, with an identifier on each line below."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(results(self.content))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Add the directives."""
    app.add_directive("published", _Published)
    app.add_directive("made", _Made)
    app.add_directive("results", _Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
