"""Parts of pages that are written by what they show, so that a page is whole where no site is made of it.

A part stands between two comments: ``<!-- written: KIND ARGUMENT -->`` and ``<!-- end -->``. The kinds are:

- ``verdicts``, ``counts``, ``experiment-fields`` and ``results-fields``, without an argument.
- ``published``, with a published page and a heading on it: the first table below that.
- ``results``, with identifiers of the published run.
- ``fault-map``, with ``noticed``, ``unnoticed`` or ``pitfalls``: a table of the package's map of faults.
- ``elements``, with a document: its algorithms, theorems, equations, tables, figures and appendices in the ledger.
- ``assumptions``: what faults do to CANIFE's number and to random canaries'.
- ``source``, with a file, and perhaps a function in it.
"""

import ast
import inspect
import itertools
import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, get_args, get_type_hints

from canaryproof.reports.page import provenance
from canaryproof.verify.audit.blindspots.fault_map import COLUMNS, fault_map
from canaryproof.verify.papers.check.documents import Voice, distinct, document_of, voice
from canaryproof.verify.papers.check.results import Check, Result, Subject, Verdict
from canaryproof.verify.papers.suites.catalogue import SUITES
from canaryproof.verify.papers.training import configuration
from tests.published import PUBLISHED, ROOT, published_rows, published_run

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


def results(argument: str) -> str:
    """Return a table of some results of the published run: what each states, its verdict, and what was found."""
    lines = [_row("statement", "verdict", "what was found"), "|---|---|---|"]
    for name in argument.split():
        result = published_rows()[name]
        document = DOCUMENTS[name.partition(".")[0]] if result["subject"] == "document" else "this package"
        lines.append(_row(f"{document}: {result['statement']}", result["verdict"], result["finding"]))
    return "\n".join(lines)


def verdicts() -> str:
    """Return the counts of verdicts by document, of the published run."""
    read = published_run().results
    stated = [result for result in read if result.subject is Subject.DOCUMENT and voice(result) is Voice.DOCUMENT]
    numbers = Counter((result.id.partition(".")[0], str(result.verdict)) for result in stated)
    once = Counter(str(places[0].verdict) for places in distinct(read).values())
    names = [str(verdict) for verdict in Verdict]
    lines = [f"The table counts the published results: {provenance(published_run())}.", ""]
    lines += [_row("document", *names), "|---|" + "--:|" * len(names)]
    for document, title in DOCUMENTS.items():
        cells = (str(numbers.pop((document, name), 0)) for name in names)
        lines.append(_row(f"[{title}](../reports/published/claims-{document}.md)", *cells))
    if numbers:
        raise AssertionError(f"documents without a row: {sorted(numbers)}")
    lines.append(_row("different statements, each once", *(str(once[name]) for name in names)))
    others = Counter(voice(result) for result in read if result.subject is Subject.DOCUMENT)
    lines += [
        "",
        f"The reviews also hold {others[Voice.PROMISE]} promises of the authors and {others[Voice.REVIEWER]} remarks "
        f"of reviewers, no statements of a paper, and {others[Voice.ANALOGUE]} statements of CANIFE were tried on "
        "digits in place of its data. They stand in lists of their own.",
    ]
    return "\n".join(lines)


def counts() -> str:
    """Return how many own checks hold and how many statements have which verdict, of the published run."""
    run = published_run()
    own = sum(result.subject is Subject.IMPLEMENTATION for result in run.results)
    statements = distinct(run.results)
    found = Counter(places[0].verdict for places in statements.values())
    text = (
        f"{own - len(run.failures)} of {own} of this package's own checks hold. Of {len(statements)} statements in "
        f"the papers' versions and reviews {found[Verdict.CONFIRMED]} are confirmed, "
        f"{found[Verdict.QUALIFIED]} hold only under an unstated reading, condition or approximation, "
        f"{found[Verdict.REFUTED]} are refuted, {found[Verdict.INCONCLUSIVE]} are undecided, and "
        f"{found[Verdict.NEEDS_DATA]} need data, three of them judged on "
        "[Fashion-MNIST](docs/findings.md#canife-and-algorithm-3-on-fashion-mnist)."
    )
    return textwrap.fill(text, 120, break_on_hyphens=False)


def published(argument: str) -> str:
    """Return the first table below a heading of a published page: ``PAGE: HEADING``."""
    page, _, heading = argument.partition(": ")
    text = (PUBLISHED / f"{page}.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = section.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    return "\n".join(itertools.takewhile(lambda line: line.startswith("|"), lines[first:]))


def mapped(argument: str) -> str:
    """Return the faults that something notices, those that nothing does, or the pitfalls with their faults."""
    faults = fault_map().values()
    if argument == "pitfalls":
        pitfalls: dict[str, list[str]] = {}
        for fault in faults:
            if fault.pitfall:
                pitfalls.setdefault(fault.pitfall, []).append(f"`{fault.name}`")
        return "\n".join([_row("pitfall", "rows"), "|---|---|", *(_row(p, ", ".join(f)) for p, f in pitfalls.items())])
    if argument == "unnoticed":
        rows = [_row(f"`{fault.name}`: {fault.title}", fault.reason) for fault in faults if fault.reason]
        return "\n".join([_row("fault", "why nothing notices it"), "|---|---|", *rows])
    rows = [
        _row(f"`{fault.name}`: {fault.title}", *(str(fault.rounds.get(column, "–")) for column in COLUMNS))
        for fault in faults
        if not fault.reason
    ]
    return "\n".join([_row("fault", *COLUMNS), "|---" * (1 + len(COLUMNS)) + "|", *rows])


# Faults and methods of the comparison of CANIFE with random canaries, as its evidence names them.
_FAULTS = {
    "shuffled": "a shuffled epoch, no Poisson samples",
    "reused": "the first round's noise in all rounds",
    "halved": "no noise on every second coordinate",
    "unclipped": "one client in a hundred not clipped",
}
_METHODS = {
    "CANIFE redesigned, 100 scores": ("canife",),
    "CANIFE redesigned, unlimited scores": ("canife-law",),
    "Algorithm 3: `fitted`, `pinned`, `fixed-threshold`": ("algorithm-3", "algorithm-3-pinned", "bound"),
    "Algorithm 2 on the change: `fitted`, `pinned`": ("change-fitted", "change"),
    "Algorithm 2 on the final model: `fitted`, `pinned`": ("final-fitted", "final"),
}


def assumptions() -> str:
    """Return by which factor each fault moves each method's number, of the published run."""
    of_run = {result.id: result for result in published_run().results}
    rows = [_row("fault", *_METHODS), "|---" * (1 + len(_METHODS)) + "|"]
    for fault, title in _FAULTS.items():
        result = next(of_run[name] for name in of_run if name.startswith(f"comparison.{fault}."))
        assert result.evidence["runs"] == 60, result.id
        found = result.evidence["methods"]
        rows.append(
            _row(title, *(", ".join(f"{found[name]['factor']:.3g}" for name in names) for names in _METHODS.values()))
        )
    return "\n".join(rows)


_ELEMENTS = ("Definition", "Algorithm", "Theorem", "Lemma", "Equation", "Table", "Figure", "Appendix")
# All elements of the documents with a number or a letter, in the order of the kinds.
NUMBERED = {
    "final": {
        "Definition": "2.1", "Algorithm": "1 2 3", "Theorem": "3.1 3.2 3.3", "Lemma": "A.1", "Equation": "1",
        "Table": "1 2 3 4 5 6", "Figure": "1 2 3 4", "Appendix": "A B",
    },
    "v1": {"Definition": "2.1", "Algorithm": "1 2", "Table": "1 2 3 4", "Figure": "1 2"},
    "submission": {
        "Definition": "2.1", "Algorithm": "1 2 3", "Theorem": "3.1 3.2 3.3", "Lemma": "A.1", "Equation": "1",
        "Table": "1 2 3 4 5 6", "Figure": "1 2 3", "Appendix": "A B C D E F G H I J",
    },
    "canife": {
        "Definition": "1", "Algorithm": "1 2", "Equation": "1", "Table": "1", "Figure": "1 2 3 4 5 6 7 8 9",
        "Appendix": "A B C C.1 C.2 C.3 C.4 C.5 D E F",
    },
}  # fmt: skip
# Those of which the ledger has no statement: what they are, the command that does the like, and its file.
_ALGORITHMS = "verify/papers/training/trainer.py"
_FINAL_MODEL = "the audit of the final model", "canaryproof train noise", _ALGORITHMS
_ONE_RELEASE = (
    "the audit of one release; its numbers are the first table's of simulations",
    "canaryproof audit",
    "verify/audit/estimators/epsilon_estimators.py",
)
_PRIVACY = "no statement: what (ε, δ) means", "canaryproof plan", "verify/audit/accounting/accountant.py"
WITHOUT_STATEMENT = {
    "final": {("Definition", "2.1"): _PRIVACY, ("Algorithm", "1"): _ONE_RELEASE, ("Algorithm", "2"): _FINAL_MODEL},
    "v1": {
        ("Definition", "2.1"): _PRIVACY,
        ("Algorithm", "1"): _FINAL_MODEL,
        ("Algorithm", "2"): ("the audit of all rounds", "canaryproof train noise", _ALGORITHMS),
    },
    "submission": {
        ("Definition", "2.1"): _PRIVACY,
        ("Algorithm", "1"): _ONE_RELEASE,
        ("Algorithm", "2"): _FINAL_MODEL,
        ("Appendix", "C"): ("Algorithms 2 and 3 once more", "canaryproof train noise", _ALGORITHMS),
    },
    "canife": {
        ("Definition", "1"): _PRIVACY,
        ("Table", "1"): (
            "three texts that were designed; their alphabet decides about Appendix B's classes",
            "canaryproof claims canife.appendixB.shakespeare.classes",
            "verify/papers/canife/text.py",
        ),
        ("Figure", "2"): (
            "a drawing of the attack", "canaryproof train canife_digits", "verify/papers/training/canife_audits.py"
        ),
        ("Appendix", "C"): (
            "its parts are below", "canaryproof claims canife.appendixC1", "verify/papers/canife/measure.py"
        ),
        ("Appendix", "E"): (
            "Table 1", "canaryproof claims canife.appendixB.shakespeare.classes", "verify/papers/canife/text.py"
        ),
    },
}  # fmt: skip
# CANIFE's figures as curves, on digits.
CURVES = {
    "canife_digits": "1 4 6 7",
    "canife_digits_clients": "3 8",
    "canife_digits_pool": "5 8",
    "canife_digits_steps": "5",
    "canife_digits_norm": "9",
}
# "Tables 2 and 3" are two, "Table 2's caption" is of Table 2, and "Figure 5a" a part of Figure 5.
_ELEMENT = re.compile(
    rf"({'|'.join(_ELEMENTS[:-1])}|Appendi)(?:s|x|ces)? \(?([A-Z]?\d*\.\d+|[A-Z]\b|\d+)", re.IGNORECASE
)
_SECOND = re.compile(r"(Table|Figure)s (\w+) and (\w+)")


def elements_of(place: str) -> set[tuple[str, str]]:
    """Return the algorithms, equations, tables and the like that a place in a document names: kind and number."""
    place = _SECOND.sub(r"\1 \2 and \1 \3", place)
    names = {name.lower(): name for name in _ELEMENTS} | {"appendi": "Appendix"}
    return {(names[kind.lower()], number.upper()) for kind, number in _ELEMENT.findall(place)}


@cache
def _rooms() -> dict[str, str]:
    """Return the file that has each statement's row, by its id."""
    shortest: dict[str, tuple[int, str]] = {}
    for name in [name for name in sys.modules if name.startswith(("canaryproof.verify.papers", "canaryproof.proofs"))]:
        for part in vars(sys.modules[name]).values():
            if isinstance(part, tuple | list) and part and isinstance(part[0], Check):
                for check in part:
                    found = len(part), name.removeprefix("canaryproof.").replace(".", "/") + ".py"
                    shortest[check.id] = min(found, shortest.get(check.id, found))
    return {name: path for name, (_, path) in shortest.items()}


@cache
def _published_places() -> dict[str, str]:
    """Return the published page that has each result, with its anchor; those of proofs may have one of their own."""
    return {
        name: f"{page.name}#{name}"
        for page in sorted((ROOT / "reports" / "published").glob("*.md"), reverse=True)
        for name in re.findall('<a id="(.+?)">', page.read_text(encoding="utf-8"))
    }


def _beginning(names: list[str]) -> str:
    """Return the parts with which all of some ids begin."""
    parts = zip(*(name.split(".") for name in names), strict=False)
    return ".".join(same[0] for same in itertools.takewhile(lambda each: len(set(each)) == 1, parts))


def elements(document: str) -> str:
    """Return what the ledger has of each algorithm, theorem, equation, table, figure and appendix of a document."""
    rows: dict[tuple[str, str], list[Result]] = {}
    sources = {check.id: check.source for checks in SUITES.values() for check in checks}
    for result in published_run().results:
        if result.subject is Subject.DOCUMENT and result.id.partition(".")[0] == document:
            for element in elements_of(sources[result.id].removeprefix(document_of(result.id).name)):
                rows.setdefault(element, []).append(result)
    lines = [_row("element", "verdicts", "statements", "command", "file"), "|---|---|---|---|---|"]
    numbered = [(kind, number) for kind, numbers in NUMBERED.get(document, {}).items() for number in numbers.split()]
    without = WITHOUT_STATEMENT.get(document, {})
    assert set(rows) | set(without) == set(numbered), set(rows) ^ set(numbered) ^ set(without)
    for element in numbered:
        if element not in rows:
            meaning, command, path = without[element]
            lines.append(_row(" ".join(element), "–", meaning, f"`{command}`", f"`{path}`"))
            continue
        found = rows[element]
        counts = Counter(
            f"{result.verdict}{' on digits' if voice(result) is Voice.ANALOGUE else ''}" for result in found
        )
        first: dict[str, str] = {}
        for _, group in itertools.groupby(sorted(result.id for result in found), lambda name: name.split(".")[:2]):
            names = list(group)
            first[_beginning(names)] = next(result.id for result in found if result.id in names)
        published_pages = "../../reports/published"
        curves = [
            name
            for name, figures in CURVES.items()
            if document == "canife" and element in {("Figure", figure) for figure in figures.split()}
        ]
        lines.append(
            _row(
                " ".join(element),
                ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()),
                ", ".join(
                    [f"[{stem}]({published_pages}/{_published_places()[name]})" for stem, name in first.items()]
                    + [f"[curves on digits]({published_pages}/{name}/results.md)" for name in curves]
                ),
                "; ".join(
                    [f"`canaryproof claims {stem}`" for stem in list(first)[:3]]
                    + [f"`canaryproof train {name} --size full --out DIR`" for name in curves]
                ),
                ", ".join(sorted({f"`{_rooms()[result.id]}`" for result in found})),
            )
        )
    return "\n".join(lines)


def source(argument: str) -> str:
    """Return a file, or a function of it, as a block of code."""
    path, _, name = argument.partition(" ")
    text = (ROOT / path).read_text(encoding="utf-8").rstrip()
    if name:
        tree = ast.parse(text)
        function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
        text = ast.get_source_segment(text, function) or ""
    return _code(text, {"py": "python", "bib": "bibtex"}.get(path.rpartition(".")[2], "yaml"))


def _code(text: str, language: str) -> str:
    block = f"<!-- not run: shown from its file -->\n```{language}\n{text}\n```"
    # It is formatted where it stands.
    return f"<!-- fmt: off -->\n{block}\n<!-- fmt: on -->" if language == "python" else block


KINDS: dict[str, Callable[[str], str]] = {
    "verdicts": lambda _: verdicts(),
    "counts": lambda _: counts(),
    "experiment-fields": lambda _: experiment_fields(),
    "results-fields": lambda _: results_fields(),
    "published": published,
    "results": results,
    "fault-map": mapped,
    "elements": elements,
    "assumptions": lambda _: assumptions(),
    "source": source,
}
_PART = re.compile(r"(<!-- written: ([\w-]+)(?: ([^\n]*))? -->\n)(.*?)(<!-- end -->)", re.S)


def written(page: str) -> str:
    """Return a page with its parts written anew."""
    return _PART.sub(lambda part: f"{part[1]}\n{KINDS[part[2]](part[3] or '').strip()}\n\n{part[5]}", page)
