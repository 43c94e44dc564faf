import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from canaryproof.verify.audit.markup.figures import svg
from canaryproof.verify.papers.check.results import Effort, Result, Run, Subject, Verdict
from other_tools import __main__ as command
from other_tools import accountants, page
from other_tools import auditors as suite
from other_tools.page import FAULTS, render

SCRIPTS = Path(__file__).parents[2] / "examples" / "auditors"


def cell(mechanism, above, **more):
    row = {"mechanism": mechanism, "nominal": 3.0, "count": 100, "delta": 1e-5, "truth": 3.0, "runs": 100}
    row |= {"above": above, "rate": above / 100, "interval": [above / 200, min(1.0, above / 100 + 0.1)]}
    row |= {"least": 0.0, "mean": 2.5, "median": 2.25, "raised": 0, "not_numbers": 0, "infinite": 0, "reasons": []}
    return {**row, "seconds": 0.0123, **more}


def question(of, error, **more):
    row = {"label": f"a question of {of}", "of": of, "delta": 1e-5, "enclosure": [2.0, 2.0], "proven": True}
    return {**row, "value": 2.0, "error": error, "raised": "", "seconds": 0.5, **more}


def result(suite, method, **evidence):
    found = {"tool": "a-tool", "method": method, "called": "a bound", "source": "there.py", **evidence}
    return Result(f"{suite}.{method}", suite, Subject.TOOL, "there", "s", Verdict.REFUTED, "f", found)


@pytest.fixture
def run():
    seen = {"version": "1.2", "date": "2026-11-23"}
    of = {"slack": 0.01, "limit": 10.0, "budget": 10.0, "least": 6, "gaussian_only": False, "alpha": 0.05}
    of["inputs"] = {"one NaN": "0.25", "no scores": "ValueError: a | b"}
    failing = cell("Laplace", 1, raised=3, infinite=1, reasons=["ValueError: a | b"])
    rows = [question("epsilon", -0.25), question("epsilon", 0.125), question("noise", None, value=None, raised="E: e")]
    return Run(
        "0.1", Effort.QUICK, 5,
        (
            result("auditors", "bound f", **seen, **of, promise=0.05, cells=[cell("Gaussian", 80), failing]),
            result("auditors", "estimate", **seen, **of, promise=None, cells=[cell("Gaussian", 0)]),
            result("auditors", "gone", missing="a-tool is not installed"),
            result("accountants", "exact", **seen, tolerance=1e-6, limit=10.0, rows=rows),
        ),
    )  # fmt: skip


def test_scores_that_depend_on_each_other_have_a_page_of_their_own():
    of = {"version": "1.2", "date": "2026-11-23", "slack": 0.01}
    every = [cell("two states", 80, truth=1.0), cell("comonotone, trace 0", 100, raised=100, truth=0.0)]
    rows = (
        result("dependence", "for all", **of, any_dependence=False, cells=every),
        result("dependence", "for Gaussians", **of, any_dependence=True, cells=every[1:]),
        result("dependence", "gone", missing="a-tool is not installed"),
    )
    made = render(Run("0.1", Effort.QUICK, 5, rows))
    assert list(made) == [page.DEPENDENCE]
    lines = made[page.DEPENDENCE].splitlines()
    assert "| tool | method | covered | two states | comonotone, trace 0 |" in lines
    assert "| ε |  |  | 1 | 0 |" in lines
    assert "| a-tool 1.2 | for all | no | 80 of 100 [40%, 90%] | no number |" in lines
    assert "| a-tool 1.2 | for Gaussians | yes |  | no number |" in lines
    assert "| `a-tool` | a-tool is not installed |" in lines


def test_the_scoreboard_has_a_row_for_each_method(run):
    made = page.text(run)
    assert "quick --seed 5`, 2026-11-23." in made
    row = next(line for line in made.splitlines() if line.startswith("| a-tool 1.2 | [bound f](#a-tool-bound-f) |"))
    assert "at most 5.0% above | 80 of 100 [40%, 90%] | Gaussian, ε = 3, k = 100 | 2.50 | 4 of 200 |" in row
    assert "[estimate](#a-tool-estimate)" in made
    assert "| none |" in made


def test_errors_stand_by_their_side(run):
    made = page.text(run)
    assert "| 0.25 | a question of epsilon | 0.12 | a question of epsilon | 0 of 2 |" in made
    assert "| – | – | – | – | 1 of 1 |" in made


def test_each_cell_says_how_to_repeat_it(run):
    made = page.text(run)
    assert "`python -m other_tools.auditors 'a-tool' 'bound f' 'Gaussian' 3 100 quick`" in made
    assert "`python -m other_tools.accountants 'a-tool' 'exact' epsilon 1e-05 quick`" in made
    assert r"3 raised, 1 infinite ValueError: a \| b" in made
    for found in ("bound-f", "estimate", "exact"):
        assert f"### a-tool {found.replace('-', ' ')}" in made


def test_unusual_inputs_have_their_answers(run):
    made = page.text(run)
    assert "| a-tool 1.2 | [bound f](#a-tool-bound-f) | 0.25 | raises ValueError |" in made
    assert r"| no scores | ValueError: a \| b |" in made
    assert "`python -m other_tools.auditors 'a-tool' 'bound f' inputs`" in made


def test_what_is_not_installed_is_said(run):
    assert "| `a-tool` | a-tool is not installed |" in page.text(run)


def test_pictures_are_svg(run):
    for figure in page.figures(run).values():
        assert ElementTree.fromstring(svg(figure)).tag.endswith("svg")
    assert [text.get_text() for text in page.errors(run).axes[0].texts] == ["1 failed"]


def test_the_page_comes_with_its_measurement(run):
    files = render(run)
    assert {"auditors.md", page.COVERAGE, page.ERRORS} <= files.keys()
    assert "auditors.md" not in render(Run("0", Effort.QUICK, 0, run.results[2:3]))


def test_the_command_leaves_the_page_with_its_numbers(run, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "run_plan", lambda *_: run)
    done = CliRunner().invoke(command.main, ["accountants", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert {name: (tmp_path / name).read_text() for name in render(run)} == render(run)
    assert Run.from_json(json.loads((tmp_path / "results.json").read_text())).results[0].id == run.results[0].id
    assert "accountants.exact: refuted: f" in done.output


def test_faults_are_those_of_the_measured_version(run):
    assert "## Faults found" not in page.text(run)
    fault = FAULTS[0]
    evidence = {**run.results[0].evidence, "tool": fault.tool, "method": fault.measured[1], "version": fault.version}
    first = Result("auditors.x", "auditors", Subject.TOOL, "", "s", Verdict.REFUTED, "f", evidence)
    made = page.text(Run("0", Effort.QUICK, 0, (first,)))
    assert f"[{fault.script}](../../examples/auditors/{fault.script})" in made
    assert FAULTS[1].script not in made


def test_faults_have_what_the_run_measured_of_them(run):
    bound, exact = run.results[0].evidence, run.results[3].evidence
    where = [("Gaussian", 3.0, 100)]
    assert page._seen(bound, where) == "Gaussian, ε = 3, k = 100: above in 80 of 100, median 2.25"
    asked = {**exact, "rows": [question("epsilon", -0.25), question("noise", None)]}
    assert page._seen(asked, [row["label"] for row in asked["rows"]]) == ("a question of epsilon: relative error -0.25")
    failing = {"cells": [cell("Gaussian", 0, median=None, raised=100)]}
    assert page._seen(failing, where) == "Gaussian, ε = 3, k = 100: 100 of 100 calls fail"


def test_what_faults_point_at_is_measured(monkeypatch):
    # Spare the seconds that privacy loss distributions take.
    monkeypatch.setattr(accountants, "_SAMPLED", ())
    monkeypatch.setattr(accountants, "questions", accountants.questions.__wrapped__)
    for fault in FAULTS:
        audited = next((m for m in suite.METHODS if (m.tool, m.name) == fault.measured), None)
        if audited is None:
            assert any((m.tool, m.name) == fault.measured for m in accountants.METHODS)
            assert {*fault.seen} <= {case.label for case in accountants.questions(Effort.FULL)}
        else:
            known = {(c.mechanism.name, c.mechanism.nominal, c.count) for c in suite.cells(audited, Effort.FULL)}
            assert {*fault.seen} <= known


def test_each_fault_has_its_script():
    assert sorted(path.name for path in SCRIPTS.glob("*.py")) == sorted(fault.script for fault in FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.script)
def test_scripts_are_short_and_name_the_version(fault):
    text = (SCRIPTS / fault.script).read_text(encoding="utf-8")
    assert text.startswith(f"# {fault.tool} {fault.version}: ")
    # Ten of code, beside what it says of itself.
    assert sum(bool(line) and not line.startswith("#") for line in text.splitlines()) <= 10
    compile(text, fault.script, "exec")
