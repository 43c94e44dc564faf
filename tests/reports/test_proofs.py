import pytest

from canaryproof.reports import proofs
from canaryproof.reports.html import tables
from canaryproof.reports.pages import chapters, render
from canaryproof.verify.papers.check.results import Effort, Result, Run, Subject, Verdict
from canaryproof.verify.papers.records.report_input import Material


def line(name, kind, subject=Subject.DOCUMENT, source="final version, Theorem 3.3", **evidence):
    verdict = Verdict.CONFIRMED if kind == "exact" else Verdict.REFUTED
    evidence = {"kind": kind, **evidence}
    return Result(name, "theorems", subject, source, f"says {name}", verdict, f"found {name}", evidence)


LINES = (
    line("final.a.1", "exact", display="a", row=1),
    line("v1.b", "wrong term", source="v1, Theorem 1"),
    line("final.a.2", "false", display="a", row=2),
    line("final.prose", "exact", display="", row=0),
    line("ours.good", "exact", Subject.IMPLEMENTATION, "this package"),
    line("ours.bad", "wrong term", Subject.IMPLEMENTATION, "this package"),
    # About no line.
    Result("ours.all", "theorems", Subject.IMPLEMENTATION, "this package", "says", Verdict.CONFIRMED, "found", {}),
)


@pytest.fixture(scope="module")
def pages():
    files = render(Run("0", Effort.QUICK, 0, LINES))
    return {name: text.decode() for name, text in files.items()}


def test_every_line_stands_under_its_source(pages):
    head, *chapters = pages["proofs.md"].split("\n## ")
    assert [chapter.partition("\n")[0] for chapter in chapters] == [
        "final version, Theorem 3.3",
        "v1, Theorem 1",
        "this package",
    ]
    assert [chapter.count("\n| <a id=") for chapter in chapters] == [3, 1, 2]
    assert "`v1.b` | wrong term | says v1.b | found v1.b |" in chapters[1]
    assert "6 lines" in head


def test_kinds_and_displayed_lines_are_counted(pages):
    page = pages["proofs.md"]
    assert "| exact | holds as printed | 2 | 1 |" in page
    assert "stands | 1 | 1 |" in page
    assert "right to leading order" not in page
    # Ours are none of the documents'.
    assert (
        "Of 4 lines of the documents' proofs, 2 hold as printed and 0 to leading order; 1 have a wrong term, 0 need a "
        "further hypothesis, and 1 are false."
    ) in page
    assert "of which 2 are printed lines of displayed formulas" in page


def test_the_summary_lists_only_what_does_not_hold(pages):
    page = pages["summary.md"]
    shown = [name for name in (result.id for result in LINES) if f"`{name}` |" in page]
    assert shown == ["ours.bad", "ours.all"]
    assert "1 more are lines of proofs" in page
    assert "- [proofs.md](proofs.md): " in page
    assert "2 of 3 of this package's own checks hold. Statements of the documents: 2 confirmed, 2 refuted." in page


def test_a_run_of_other_suites_has_no_such_page():
    other = Result("a", "algorithm1", Subject.DOCUMENT, "place", "says", Verdict.CONFIRMED, "found", {"kind": "exact"})
    files = render(Run("0", Effort.QUICK, 0, (other,)))
    assert sorted(files) == ["claims-a.md", "results.json", "summary.md"]


def test_kinds_stand_in_their_order_and_the_chapter_is_the_head_alone():
    kinds = ("exact", "right to leading order", "wrong term", "needs a hypothesis", "false", "new")
    # Of each kind one line more than of the one before.
    lines = [line(f"final.{kind}.{i}", kind) for n, kind in enumerate(kinds) for i in range(n + 1)]
    ours = [line(f"ours.{i}", "new", Subject.IMPLEMENTATION) for i in range(7)]
    run = Run("0", Effort.QUICK, 0, (*ours, *lines))
    (_, rows), *_ = tables(proofs.text(run))
    assert [(kind, *counts) for kind, _, *counts in rows] == [
        *((kind, f"{n}", "0") for n, kind in enumerate(kinds[:-1], start=1)),
        ("new", "6", "7"),
    ]
    chapter = proofs.PAGE.shortened(run)
    assert proofs.text(run).startswith(chapter)
    assert "## " not in chapter
    assert (
        "Of 21 lines of the documents' proofs, 1 hold as printed and 2 to leading order; 3 have a wrong term, 4 need a "
        "further hypothesis, and 5 are false."
    ) in chapter
    assert "28 lines, of which 0 are printed lines of displayed formulas." in chapter
    assert [one.text for one in chapters(Material(run), {})] == [chapter]
