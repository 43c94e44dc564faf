import json

import pytest
from click.testing import CliRunner

from canaryproof.verify.command_line import main
from canaryproof.verify.papers.check.documents import DOCUMENTS
from canaryproof.verify.papers.check.results import Design, Result, Subject, Verdict
from canaryproof.verify.papers.cli import claims_command as module
from canaryproof.verify.papers.runs import own_sentences


def run(*arguments):
    return CliRunner().invoke(main, ["claims", *arguments])


def test_list_by_document_and_verdict():
    rows = json.loads(run("--json").stdout)
    assert {row["id"].partition(".")[0] for row in rows} == {document.id for document in DOCUMENTS}
    chosen = json.loads(run("--json", "--document", "final", "--verdict", "refuted").stdout)
    assert chosen == [r for r in rows if r["id"].startswith("final.") and r["verdict"] == "refuted"]
    assert "final.section5.tight" in [row["id"] for row in chosen]


@pytest.mark.parametrize("document", [document.id for document in DOCUMENTS])
def test_every_document_can_be_listed_and_its_statements_complete(document):
    rows = json.loads(run("--json", "--document", document).stdout)
    assert rows
    assert {row["id"] for row in rows} <= set(module._identifiers(None, None, f"{document}."))


@pytest.fixture
def terminal(monkeypatch):
    """Print as a terminal of 80 columns gets it."""
    monkeypatch.setattr(module.screen, "is_terminal", lambda: True)

    def printed(*arguments):
        lines = run(*arguments).stdout.splitlines()
        assert len(lines) <= 40
        assert max(map(len, lines)) <= 80
        return lines

    return printed


@pytest.mark.parametrize("option", [(), ("--all",)])
def test_a_pipe_gets_a_line_for_each_statement(option):
    rows = json.loads(run("--json", "--document", "final").stdout)
    lines = run("--document", "final", *option).stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [[row["id"], row["verdict"]] for row in rows]
    assert all(line.endswith(row["statement"]) for line, row in zip(lines, rows, strict=True))


def test_a_terminal_gets_counts_and_what_is_refuted(terminal):
    rows = json.loads(run("--json").stdout)
    lines = terminal()
    numbers = {line.split()[0]: list(map(int, line.split()[1:])) for line in lines[3:9]}
    assert sum(map(sum, numbers.values())) == len(rows)
    assert numbers["own"] == [len(own_sentences.read()), 0, 0, 0, 0]
    assert numbers["final"][2] == sum(r["verdict"] == "refuted" for r in rows if r["id"].startswith("final."))
    named = {line.strip() for line in lines}
    assert len(named & {row["id"] for row in rows if row["verdict"] == "refuted"}) >= 5
    # No word of the five that stands in each list's end is a statement's.
    assert terminal("--verdict", "confirmed")[-1].endswith(" confirmed")
    assert terminal("final") == terminal("--document", "final")
    assert terminal("--document", "own", "--verdict", "refuted") == ["No statement is like that."]


def test_a_table_is_printed_beside_what_is_true(terminal):
    lines = terminal("final.table2")
    assert lines[0].split("  ")[0] == "ε"
    assert lines[2].split()[:4] == ["3", "3.04", "±", "0.137"]
    # Algorithm 1 as printed does not give the printed number, the first version does.
    assert abs(float(lines[2].split()[4]) - 3.04) > 0.2 > abs(float(lines[2].split()[7]) - 3.04)
    assert [line.split()[0] for line in lines if line.startswith("final.")] == [
        f"final.table2.row{i}{end}" for i in (1, 2, 3) for end in ("", ".sigma")
    ]


def test_one_statement_is_judged_and_shown_with_its_evidence():
    document = json.loads(run("final.table2.row1.sigma", "--json").stdout)
    assert document["verdict"] == "confirmed"
    assert document["evidence"]["printed"] == 4.22
    lines = run("final.table2.row1.sigma").output.splitlines()
    assert lines[:2] == ["final.table2.row1.sigma", "verdict    confirmed"]
    assert [line.split()[1] for line in lines if line.startswith("printed")] == ["4.22"]


def test_a_sentence_of_our_own_is_shown_with_what_it_rests_on():
    # A statement that follows from printed numbers: one that a simulation decides takes seconds to judge anew.
    row = next(row for row in own_sentences.read() if str(row.evidence[0]).startswith("statement claims/"))
    document = json.loads(run(row.id, "--json").stdout)
    assert document == {
        "id": row.id, "page": row.page, "verdict": "confirmed", "statement": row.quote, "evidence": str(row)
    }  # fmt: skip
    lines = run(row.id).stdout.splitlines()
    assert lines[:2] == [row.id, f"page       {row.page}"]
    # The statement of a document that it reports is judged anew.
    assert any(line.startswith(f"judged now {row.evidence[0].verdict}: ") for line in lines)
    several = json.loads(run(row.id.rpartition(".")[0], "--json").stdout)
    assert document in several


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("final.table2.row1.sigma", ["final.table2.row1.sigma"]),
        ("final.Table2.row1.sigma", ["final.table2.row1.sigma"]),
        ("final.theorem3.3.a", ["final.theorem-3.3.a"]),
        ("final.theorem-3.3", ["final.theorem-3.3.a", "final.theorem-3.3.b"]),
        ("final.table2.*", ["final.table2.row1.sigma", "final.table2.row1"]),
    ],
)
def test_an_id_may_end_early_or_lack_its_hyphens(asked, found):
    known = ["final.table2.row1.sigma", "final.table2.row1", "final.theorem-3.3.a", "final.theorem-3.3.b"]
    assert module._choose(asked, known) == found


@pytest.mark.parametrize(
    ("suite", "design", "first"),
    [
        ("algorithm1", True, "cosines by the exact law"),
        ("claims", True, "scores by their laws"),
        ("claims", False, "none"),
        ("canife", True, "canary vectors"),
    ],
)
def test_it_is_said_what_was_drawn(suite, design, first):
    test = Design("null", 1e-6, "alternative", 0.9, 100) if design else None
    result = Result("final.a", suite, Subject.DOCUMENT, "", "", Verdict.CONFIRMED, "", {}, test)
    assert module._draws(result).startswith(first)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["final.table2.row1.sigmo"], "final.table2.row1.sigma"),
        (["final.tabel2"], "final.table2"),
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
