import json

import pytest
from click.testing import CliRunner

from canaryproof.verify.command_line import main
from canaryproof.verify.papers.check.documents import DOCUMENTS
from canaryproof.verify.papers.check.results import Design, Result, Subject, Verdict
from canaryproof.verify.papers.cli import claims_command as module


def run(*arguments):
    return CliRunner().invoke(main, ["claims", *arguments])


def test_list_by_document_and_verdict():
    rows = json.loads(run("--json").stdout)
    assert {row["id"].partition(".")[0] for row in rows} == {document.id for document in DOCUMENTS}
    chosen = json.loads(run("--json", "--document", "final", "--verdict", "refuted").stdout)
    assert chosen == [r for r in rows if r["id"].startswith("final.") and r["verdict"] == "refuted"]
    assert "final.section-3.1.inference" in [row["id"] for row in chosen]


@pytest.mark.parametrize("document", [document.id for document in DOCUMENTS])
def test_every_document_can_be_listed_and_its_statements_complete(document):
    rows = json.loads(run("--json", "--document", document).stdout)
    assert rows
    assert {row["id"] for row in rows} <= set(module._identifiers(None, None, f"{document}."))


def test_the_list_ends_with_counts():
    assert "statements: " in run("--document", "review").output.splitlines()[-1]


def test_one_statement_is_judged_and_shown_with_its_evidence():
    document = json.loads(run("final.table2.row1.sigma", "--json").stdout)
    assert document["verdict"] == "confirmed"
    assert document["evidence"]["printed"] == 4.22
    text = run("final.table2.row1.sigma").output
    assert text.startswith("draws      none: ")
    assert "4.22" in text
    assert "evidence" in text


@pytest.mark.parametrize(
    ("suite", "design", "first"),
    [
        ("algorithm1", True, "cosines by the exact law"),
        ("claims", True, "scores by their laws"),
        ("claims", False, "none"),
        ("canife", True, "canary vectors"),
    ],
)
def test_the_first_line_says_what_was_drawn(suite, design, first):
    test = Design("null", 1e-6, "alternative", 0.9, 100) if design else None
    result = Result("final.a", suite, Subject.DOCUMENT, "", "", Verdict.CONFIRMED, "", {}, test)
    assert module._draws(result).startswith(first)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["final.table2.row1.sigmo"], "final.table2.row1.sigma"),
        (["qqq"], "canaryproof claims lists all"),
        (["--document", "other"], "--document"),
        (["final.table2.row1.sigma", "--verdict", "refuted"], "--verdict"),
    ],
)
def test_bad_input(arguments, named):
    result = run(*arguments)
    assert result.exit_code == 2
    assert named in result.stderr


def test_a_statement_that_needs_an_extra_says_so(monkeypatch):
    monkeypatch.setattr(module, "lacking", lambda suite: f"needs more than {suite}")
    result = run("final.footnote-2")
    assert result.exit_code == 2
    assert "ID: final.footnote-2 needs more than theorems" in result.stderr
