"""Our own sentences stand where the table says, and what shows that they hold exists."""

import ast
import re
from collections import Counter
from functools import cache

import pytest

from canaryproof.verify.papers.check.results import Subject, Verdict
from canaryproof.verify.papers.records.report_input import read_run
from canaryproof.verify.papers.runs import expected, own_sentences
from canaryproof.verify.papers.runs.own_sentences import Reason, ReasonKind
from tests import own_sentences as finder

PUBLISHED = finder.ROOT / "reports" / "published"
ROWS = own_sentences.read()


@cache
def functions(path):
    tree = ast.parse((finder.ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@cache
def theorems():
    proofs = "\n".join(path.read_text(encoding="utf-8") for path in (finder.ROOT / "proofs_check/rocq").glob("*.v"))
    return set(re.findall(r"^(?:Theorem|Lemma|Corollary) (\w+)", proofs, re.MULTILINE))


@cache
def own_checks():
    """Suite and id of each own check. The published run has all of them, and is read sooner than suites are loaded."""
    return {
        (result.suite, result.id) for result in read_run(PUBLISHED).results if result.subject is Subject.IMPLEMENTATION
    }


def exists(evidence: Reason) -> bool:
    if evidence.kind is ReasonKind.TEST:
        path, _, name = evidence.text.partition("::")
        return (finder.ROOT / path).is_file() and name in functions(path)
    if evidence.kind is ReasonKind.THEOREM:
        return evidence.text in theorems()
    if evidence.kind is ReasonKind.PUBLISHED:
        return (PUBLISHED / evidence.text.split()[0]).is_file()
    if evidence.check_id is None:
        return True
    # A check of the package holds, or the run fails; of a document its verdict is reported.
    if evidence.kind is ReasonKind.CHECK:
        return evidence.check_id in own_checks()
    return expected.read().get(evidence.check_id) is evidence.verdict


def test_ids_are_unique_and_begin_with_the_document():
    assert [name for name, count in Counter(row.id for row in ROWS).items() if count > 1] == []
    assert [row.id for row in ROWS if not re.fullmatch(r"own(\.[a-z0-9-]+)+", row.id)] == []


def test_each_quote_stands_in_its_place():
    lost = [(row.id, row.page, finder.proposed(row)) for row in ROWS if not finder.stands(row)]
    assert lost == [], "python -m tests.own_sentences --mend takes the rows along"


def test_what_shows_a_sentence_exists():
    assert [(row.id, str(each)) for row in ROWS for each in row.evidence if not exists(each)] == []
    assert {row.verdict for row in ROWS} == {Verdict.CONFIRMED}


def test_each_checkable_sentence_has_a_row():
    """If it fails, give the new sentence its row, or say what is measured."""
    assert finder.without_a_row(ROWS) == [], "python -m tests.own_sentences lists them"


def test_a_statement_with_another_verdict_than_reported_is_refuted():
    table = "id,page,quote,evidence\nown.a,README.md,it is refuted,statement {}\n"
    suite, name = next(key for key, verdict in expected.read().items() if verdict is Verdict.REFUTED)
    for said, verdict in ((" refuted", Verdict.CONFIRMED), ("", Verdict.REFUTED)):
        (row,) = own_sentences.read(table.format(f"{suite}/{name}{said}"))
        assert row.verdict is verdict
    assert str(row) == f"statement {suite}/{name}"


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ("id,page\n", "the columns must be id, page, quote, evidence"),
        ("id,page,quote,evidence\nown.a,README.md,it holds,hope\n", "own.a: evidence must begin with check"),
        ("id,page,quote,evidence\nown.a,README.md,it holds,\n", "own.a: evidence must begin with check"),
    ],
)
def test_a_damaged_table_is_refused(table, rule):
    with pytest.raises(ValueError, match=rule):
        own_sentences.read(table)


def row(place, quote):
    return own_sentences.OwnSentence("own.a", place, quote, (Reason(ReasonKind.ARGUMENT, "a reason"),))


def test_a_row_serves_the_sentence_that_it_quotes_in_part(monkeypatch):
    monkeypatch.setattr(finder, "texts", lambda: {"a.md": "It never `f`ails. [All](x) of\nit holds. A word.\n"})
    assert finder.without_a_row(()) == [("a.md", "It never `f`ails."), ("a.md", "All of it holds.")]
    assert finder.without_a_row((row("a.md", "never `f`ails"), row("b.md", "All of it"))) == [
        ("a.md", "All of it holds.")
    ]


def test_a_term_of_a_glossary_asserts_nothing_and_what_is_said_of_it_does(monkeypatch):
    page = finder.page_text("exact null\n: It is always known.\n\nall\n: A word. Every word.\n\nAll of it holds.\n")
    monkeypatch.setattr(finder, "texts", lambda: {"a.md": page})
    assert [sentence for _, sentence in finder.without_a_row(())] == [
        ": It is always known.",
        "Every word.",
        "All of it holds.",
    ]


def test_what_is_reworded_or_moved_is_proposed(monkeypatch):
    monkeypatch.setattr(finder, "texts", lambda: {"a.md": "An audit never passes with a bug.", "b.md": "It moved."})
    finder.text_of.cache_clear()
    assert finder.proposed(row("a.md", "It moved.")) == ("b.md", "It moved.")
    assert finder.proposed(row("a.md", "An audit never passes a bug.")) == ("a.md", "An audit never passes with a bug.")
    assert finder.proposed(row("a.md", "Something else is said.")) is None
    finder.text_of.cache_clear()
