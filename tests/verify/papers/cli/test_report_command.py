import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from canaryproof.reports.formats import report
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.check.results import Check, Context, Effort, Outcome, Run, Subject, Verdict, perform
from canaryproof.verify.papers.cli import report_command as report_command
from canaryproof.verify.papers.records.output_files import write_files
from canaryproof.verify.papers.records.report_input import Material, document_of, read_run
from canaryproof.verify.papers.runs import run_folder
from canaryproof.verify.papers.suites import estimators

SERIES = {
    "title": "t",
    "axis": "k",
    "quantity": "q",
    "x": [10, 100],
    "exact": [0.5, 0.05],
    "bound": [float("inf"), 1.0],
    "bound_label": "b",
    "simulated": [0.4, -0.1],
    "standard_error": [0.1, 0.1],
    "fitted_slope": -1.0,
    "slope_interval": [-1.1, -0.9],
    "slope_of": "exact",
    "confidence": 0.95,
    "proven_slope": -1.0,
}


def check(name, subject, verdict, evidence):
    return Check(name, subject, "a source", "a statement", lambda _: Outcome(verdict, "a finding", evidence))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What ``canaryproof verify --out`` writes of a few checks, with all kinds of pages but the accuracy's."""
    path = tmp_path_factory.mktemp("run")
    suites = {
        "theorems": (
            check("final.line", Subject.DOCUMENT, Verdict.REFUTED, {"kind": "false", "display": "a", "row": 1}),
        ),
        "convergence": (check("rate", Subject.IMPLEMENTATION, Verdict.CONFIRMED, {"convergence": [SERIES]}),),
        "estimators": tuple(c for c in estimators.CHECKS if c.id.endswith("default-estimator")),
    }
    context = Context(Effort.QUICK, 0)
    results = (perform(suite, check, context) for suite, checks in suites.items() for check in checks)
    run = Run("0", context.level, context.seed, tuple(results))
    write_files(report(Material(run, unjudged=run_folder.unjudged(run))).files, path)
    return path


def call(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def refusal(*arguments):
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr[len("Error: ") : -1]


def contents(folder):
    """The visible files."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("[!.]*") if path.is_file()}


@pytest.mark.deep
def test_both_commands_write_the_same_bytes(folder, tmp_path):
    out = tmp_path / "a" / "b"
    result = call(folder, "--out", out)
    assert (result.exit_code, result.stderr) == (0, "")
    assert contents(out) == contents(folder)
    assert {"proofs.md", "convergence.md", "convergence-rate.svg", "estimator-errors.svg"} < set(contents(out))
    assert sorted(result.stdout.splitlines()) == sorted(str(out / name) for name in contents(out))


def test_reports_are_written_into_the_runs_own_folder(folder, tmp_path):
    shutil.copy(folder / "results.json", tmp_path)
    assert call(tmp_path).exit_code == 0
    assert contents(tmp_path) == contents(folder)


def test_nothing_is_computed_again(folder, tmp_path):
    text = (folder / "results.json").read_text().replace("a finding", "another finding")
    (tmp_path / "results.json").write_text(text)
    assert call(tmp_path).exit_code == 0
    assert "another finding" in (tmp_path / "summary.md").read_text()


def test_the_published_run_reads_back_as_it_is():
    published = Path(__file__).parents[4] / "reports" / "published"
    assert read_run(published).to_json() == document_of((published / "results.json").read_bytes())


def damage(document, path, value):
    """Set a field, or delete it if the value is ``...``."""
    *outer, last = path
    for key in outer:
        document = document[key]
    if value is ...:
        del document[last]
    else:
        document[last] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("seed",), "0", "seed: must be a whole number, not '0'"),
        (("level",), "medium", "level: must be one of smoke, quick, full, not 'medium'"),
        (("results",), ..., "results: is missing"),
        (("results", 0, "finding"), ..., "results[0].finding: is missing"),
        (
            ("results", 1, "verdict"),
            "maybe",
            "results[1].verdict: must be one of confirmed, qualified, refuted, inconclusive, needs-data, not 'maybe'",
        ),
        (("seed",), 10**400, f"seed: must be a whole number of at most 2^64, not 1{'0' * 59}..."),
        (
            ("results", 1, "evidence", "x"),
            10**400,
            f"results[1].evidence.x: must be a whole number of at most 2^64, not 1{'0' * 59}...",
        ),
        (
            ("results", 1, "evidence", "x"),
            json.loads("[" * 900 + "]" * 900),
            "results[1].evidence.x: is nested too deeply",
        ),
        (("results",), [{}] * 10_001, "results: must have at most 10000, not 10001"),
        (("results", 1, "evidence"), [], "results[1].evidence: must be an object, not []"),
        (
            ("results", 1, "evidence", "convergence", 0, "x"),
            None,
            "results[1].evidence: is not of the form that the reports read: rate: convergence[0].x: must be a list, "
            "not None",
        ),
        (
            ("results", 2, "evidence", "cells", 0, "ratio"),
            ...,
            "results[2].evidence: is not of the form that the reports read: estimators.default-estimator: "
            "cells[0].ratio: is missing",
        ),
    ],
)
def test_a_damaged_field_is_named_with_its_rule(folder, tmp_path, path, value, message):
    document = json.loads((folder / "results.json").read_text())
    damage(document, path, value)
    (tmp_path / "results.json").write_text(json.dumps(document))
    assert refusal(tmp_path, "--out", tmp_path / "out") == f"{tmp_path}/results.json: {message}"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "the file is empty"),
        (b"}", "line 1, column 1: truncated or damaged, as it is not JSON (Expecting value)"),
        (b"[]", "the document: must be an object, not []"),
        (b"[" + b"[]," * 2_000_000 + b"[]]", "must have at most 4000000 values"),
        (b'{"seed": 0' + b" " * 2**22 + b"}", "must have other things than blanks in at least a quarter of it"),
        (b'{"seed": NaN}', "is not JSON, which has no number NaN"),
        (b"\xff\xfe", "must be text in UTF-8"),
        (b"[" * 100_000, "is nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused(tmp_path, text, message):
    (tmp_path / "results.json").write_bytes(text)
    assert refusal(tmp_path) == f"{tmp_path}/results.json: {message}"


def test_places_that_hold_no_run_are_refused(folder, tmp_path):
    assert refusal(tmp_path / "none").startswith(f"{tmp_path}/none: must be a folder")
    assert refusal(tmp_path).startswith(f"{tmp_path}: has no results.json, ")
    assert refusal(folder / "results.json").startswith(f"{folder}/results.json: must be a folder")
    # As of a folder that may not be searched, the system says nothing of what is in it.
    assert refusal("x" * 300) == f"{'x' * 300}/environment.json: File name too long"
    os.mkfifo(tmp_path / "results.json")
    assert refusal(tmp_path) == f"{tmp_path}/results.json: must be a regular file"
    (tmp_path / "file").write_text("precious")
    assert refusal(folder, "--out", tmp_path / "file") == f"{tmp_path}/file: File exists"
    assert (tmp_path / "file").read_text() == "precious"


def _places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*path, key))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_no_damage_leaves_a_traceback(folder, tmp_path, data):
    document = json.loads((folder / "results.json").read_text())
    # Pictures take their time.
    del document["results"][2]
    path = data.draw(st.sampled_from(list(_places(document))[1:]))
    value = data.draw(
        st.sampled_from([..., None, True, -1, 1e308, 10**400, "", "\ud800", "inf", [], [None], {}, {"": 0}])
    )
    damage(document, path, value)
    (tmp_path / "results.json").write_text(json.dumps(document))
    result = call(tmp_path, "--out", tmp_path / "out")
    assert result.exit_code == 0 or (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output


def test_each_format_writes_its_files_opens_one_and_leaves_the_others_alone(folder, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(report_command.click, "launch", opened.append)
    for form, main_file, name in (
        ("md", "summary.md", "summary.md"),
        ("json", "results.json", "results.schema.json"),
        ("html", "report.html", "tables/ledger.tex"),
    ):
        before = contents(tmp_path)
        assert call(folder, "--format", form, "--out", tmp_path, "--open").exit_code == 0
        assert opened.pop() == str(tmp_path / main_file)
        after = contents(tmp_path)
        assert before.items() <= after.items()
        assert name in after.keys() - before.keys()
    assert "pictures/estimator-errors.png" in contents(tmp_path)
    shutil.copy(folder / "results.json", tmp_path)
    (tmp_path / "tables" / "another-01.csv").write_text("somebody's")
    assert call(tmp_path, "--format", "html").exit_code == 0
    assert contents(tmp_path) == {**after, "tables/another-01.csv": b"somebody's"}


def test_without_a_browser_pdf_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = "needs a browser that prints, and none of chromium, chromium-browser, google-chrome is installed"
    assert refusal(folder, "--format", "pdf", "--out", tmp_path / "out") == f"--format pdf: {reason}"


def test_a_damaged_companion_is_named(folder, tmp_path):
    shutil.copy(folder / "results.json", tmp_path)
    (tmp_path / "canife.json").write_text("{}")
    assert refusal(tmp_path).startswith(f"{tmp_path}/canife.json: level: is missing")


def test_help_is_plain_and_loads_no_reports():
    result = call("--help")
    assert result.exit_code == 0
    assert result.stdout.isascii()
    assert "results.json" in result.stdout
