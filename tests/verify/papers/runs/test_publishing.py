import csv
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import pytest
from click.testing import CliRunner

from canaryproof.verify.papers.check.results import (
    Check,
    Context,
    Design,
    Effort,
    Origin,
    Outcome,
    Run,
    Subject,
    Verdict,
    perform,
)
from canaryproof.verify.papers.check.verdicts import fixed
from canaryproof.verify.papers.claims.final_noise import CHECKS
from canaryproof.verify.papers.records.report_input import read_run
from canaryproof.verify.papers.records.tables import in_tables
from tests import publishing
from tests.publishing import chosen, merged, new, outdated, reasons, rounded, source

NUMBER = publishing.version("canaryproof")


def found(*_):
    return Outcome(Verdict.CONFIRMED, "found", {})


def check(name, judge=found, statement="a statement", subject=Subject.DOCUMENT):
    return Check(name, subject, "a source", statement, judge)


def row(of, **changes):
    """The row of a check, as of this version and its code."""
    origin = Origin(NUMBER, "2026-11-26", Effort.FULL, 0, source(of))
    result = perform("claims", of, Context(Effort.FULL, 0))
    return replace(result, origin=replace(origin, **changes))


@dataclass(frozen=True)
class Judge:
    """A judge with a rule and a number."""

    rule: object
    number: object

    def __call__(self, _):
        return found()


# Functions of the package, whose code has a digest.
FIRST, SECOND = (each.judge for each in CHECKS[:2])


def test_the_source_is_of_the_functions_and_their_arguments():
    alike = [Judge(FIRST, 1.0), Judge(SECOND, 1.0), Judge(FIRST, 2.0), Judge(FIRST, "1.0"), partial(FIRST, 3.0), FIRST]
    assert len({source(check("a", judge)) for judge in alike}) == len(alike)
    # Neither an id nor an object's place in memory is part of it.
    assert source(check("a", Judge(FIRST, Fraction(1, 3)))) == source(check("b", Judge(FIRST, Fraction(1, 3))))
    assert source(check("a", Judge(FIRST, object()))) == source(check("a", Judge(FIRST, object())))


def test_the_source_is_of_the_package_s_checks_and_nearly_all_differ():
    suites = publishing.load(publishing.SUITES)
    sources = {each.id: source(each) for each in suites["claims"]}
    assert len(set(sources.values())) > 0.8 * len(sources)


def test_what_has_no_row_or_other_words_is_new():
    first = check("a")
    assert new(first, None) == "no row"
    assert new(first, row(first)) == ""
    assert new(replace(first, statement="another"), row(first)) == "other words"
    assert new(replace(first, source="another"), row(first)) == "other words"


def test_other_code_makes_new_what_no_chance_decides():
    drawn, exact = check("a", Judge(FIRST, 1.0)), check("a", fixed(found, 1.0))
    old = {"source": "another"}
    assert new(drawn, row(drawn, **old)) == ""
    assert new(exact, row(exact, **old)) == "other code, and no chance"
    assert outdated(drawn, row(drawn, **old)) == "other code"
    assert outdated(exact, row(exact)) == outdated(drawn, row(drawn)) == ""


@pytest.mark.parametrize(
    ("number", "why"), [("0.9.1", "of version 0.9"), ("1.2", "of version 1.2"), (f"{NUMBER.rpartition('.')[0]}.77", "")]
)
def test_a_row_of_another_minor_version_is_outdated_and_not_new(number, why):
    first = check("a")
    assert outdated(first, row(first, version=number)) == why
    assert new(first, row(first, version=number)) == ""


def test_a_row_that_does_not_say_of_when_it_is_cannot_be_released():
    first = check("a")
    assert outdated(first, replace(row(first), origin=None)) == "no origin"


SUITES = {"claims": [check("a"), check("b"), check("c")], "bounds": [check("d"), check("e")]}
RUN = Run(
    "0.1.0",
    Effort.FULL,
    0,
    (
        row(SUITES["claims"][0]),
        row(SUITES["claims"][1], version="0.0.9"),
        *map(row, SUITES["bounds"]),
        row(check("gone")),
    ),
)


@pytest.mark.parametrize(
    ("names", "ids"),
    [((), "c"), (("bounds",), "de"), (("a", "bounds"), "ade"), (("outdated",), "bc"), (("outdated", "e"), "bce")],
)
def test_names_ask_for_ids_suites_or_what_is_outdated(names, ids):
    assert chosen(names, RUN, SUITES) == set(ids)


def test_an_unknown_name_is_refused():
    with pytest.raises(publishing.click.BadParameter, match="no check and no suite 'x'"):
        chosen(["x"], RUN, SUITES)


def test_reasons_stand_by_the_ids():
    assert reasons(RUN, SUITES, outdated) == {"b": "of version 0.0", "c": "no row"}


def test_results_take_the_place_of_their_rows_and_what_is_gone_goes():
    result = replace(perform("claims", SUITES["claims"][2], Context(Effort.FULL, 0)), finding="anew")
    run = merged(RUN, [result], SUITES)
    assert [each.id for each in run.results] == ["a", "b", "c", "d", "e"]
    assert run.version == NUMBER
    assert run.results[2].finding == "anew"
    origin = run.results[2].origin
    assert (origin.version, origin.level, origin.seed) == (NUMBER, Effort.FULL, 0)
    assert origin.source == source(SUITES["claims"][2])
    assert run.results[1] == RUN.results[1]


def test_large_tables_of_what_was_drawn_have_fewer_digits():
    design = Design("null", 1e-7, "alternative", 0.9, 100)
    few, many = {"mean": [1 / 3]}, {"means": [1 / 3] * 1000}
    result = perform("claims", SUITES["claims"][0], Context(Effort.FULL, 0))
    for evidence, test, cut in ((few, design, False), (many, None, False), (many, design, True)):
        (changed, *_) = merged(RUN, [replace(result, evidence=evidence, design=test)], SUITES).results
        assert changed.evidence == (rounded(evidence) if cut else evidence)
    assert rounded(many) == {"means": [0.333333] * 1000}


@pytest.mark.parametrize(
    ("value", "cut"),
    [
        (1234567.0, 1234567.0),
        (1234567, 1234567),
        (0.12345678, 0.123457),
        (float("inf"), float("inf")),
        # An enclosure is not made a point.
        ([2.0000000001, 2.0000000002], [2.0000000001, 2.0000000002]),
        ([0.12345678, {"a": (1.23456789, True, None, "x")}], [0.123457, {"a": [1.23457, True, None, "x"]}]),
    ],
)
def test_digits_are_cut_where_numbers_stay_apart(value, cut):
    assert rounded(value) == cut


@pytest.fixture
def checkout(tmp_path, monkeypatch, fake_suites):
    """A checkout with a published record of two made-up checks, of which one has no row, and one that fails."""
    place, folder, tables = "fake_suites:SUITES", tmp_path / "reports/published", tmp_path / "tables"
    for path in (folder, tables, tmp_path / "docs"):
        path.mkdir(parents=True)
    (tmp_path / "README.md").write_text("Read me.\n")
    suites = {name: fake_suites.SUITES[name] for name in ("good", "bad")}
    own, broken = suites["good"][0], suites["bad"][0]
    origin = Origin("0.0.1", "2026-01-01", Effort.FULL, 0, "another")
    before = (perform("good", own, Context(Effort.FULL, 0)), replace(row(broken), suite="bad"))
    run = Run("0.0.1", Effort.FULL, 0, tuple(replace(result, origin=origin) for result in before))
    (folder / "results.json").write_text(in_tables(run.to_json()), encoding="utf-8")
    (folder / "claims-old.md").write_text("a page that is made no more")
    for name, value in (("ROOT", tmp_path), ("PUBLISHED", folder), ("EXPECTED", tables), ("SUITES", place)):
        monkeypatch.setattr(publishing, name, value)
    monkeypatch.setattr(publishing, "load", lambda _: suites)
    monkeypatch.setattr(publishing.expected, "read", lambda: {("good", "gone"): Verdict.REFUTED})
    monkeypatch.setattr(publishing.expected, "read_findings", dict)
    return tmp_path


def test_one_command_publishes_what_is_new(checkout):
    done = CliRunner().invoke(publishing.main, [])
    assert done.exit_code == 0, done.output
    assert "theirs: refuted: [found] full\n" in done.output
    run = read_run(checkout / "reports/published")
    assert [result.id for result in run.results] == ["own", "theirs", "broken"]
    assert [result.origin.version for result in run.results] == ["0.0.1", NUMBER, "0.0.1"]
    summary = (checkout / "reports/published/summary.md").read_text(encoding="utf-8")
    assert f"canaryproof 0.0.1 and {NUMBER}, `canaryproof verify --level full --seed 0`, in several runs: " in summary
    assert "the oldest result is of 2026-01-01 (0.0.1)" in summary
    assert not (checkout / "reports/published/claims-old.md").exists()
    rows = list(csv.reader((checkout / "tables/expected_verdicts.csv").read_text().splitlines()))
    assert [line[:2] for line in rows[1:]] == [["good", "theirs"]]
    # A second time nothing is left to do, and nothing changes.
    files = [path for path in (checkout / "reports").rglob("*") if path.is_file()]
    before = [path.read_bytes() for path in files]
    assert CliRunner().invoke(publishing.main, []).output == ""
    assert [path.read_bytes() for path in files] == before


def test_the_release_check_names_what_is_outdated(checkout):
    done = CliRunner().invoke(publishing.main, ["--check"])
    assert done.exit_code == 1
    assert done.output == "of version 0.0: 2: own broken\nno row: 1: theirs\n"
    assert CliRunner().invoke(publishing.main, ["good"]).exit_code == 0
    assert CliRunner().invoke(publishing.main, ["--check"]).output == "of version 0.0: 1: broken\n"
    assert not (checkout / "reports/published/environment.json").exists()


def test_what_fails_or_raises_is_named_and_not_published(checkout):
    record = checkout / "reports/published/results.json"
    done = CliRunner().invoke(publishing.main, ["outdated"])
    assert done.exit_code == 1
    assert "broken: FAILED: refuted: [found] full\n" in done.output
    assert done.output.endswith("not published: broken\n")
    assert [result.origin.version for result in read_run(record.parent).results] == [NUMBER, NUMBER, "0.0.1"]
