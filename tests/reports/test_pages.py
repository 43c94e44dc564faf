import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from canaryproof.reports.figures import description
from canaryproof.reports.pages import FILES, figures_of, render
from canaryproof.verify.check.results import Context, Level, Result, Run, Subject, Verdict, perform
from canaryproof.verify.claims import simulated_tables
from canaryproof.verify.files.writing import write_files
from canaryproof.verify.suites import estimators


@pytest.fixture(scope="module")
def run():
    context = Context(Level.QUICK, 0)
    small = [check for check in simulated_tables.CHECKS if ".d10k." in check.id]
    cheap = [c for c in estimators.CHECKS if c.id.endswith(("default-estimator", "fitted-bias", "count-sweep"))]
    suites = {"algorithm1": small, "estimators": cheap}
    results = (perform(suite, check, context) for suite, checks in suites.items() for check in checks)
    return Run("0", Level.QUICK, 0, tuple(results))


@pytest.fixture(scope="module")
def rendered(run):
    return render(run)


@pytest.fixture(scope="module")
def folder(rendered, tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    write_files(rendered, path)
    return path


def test_results_are_the_run(run, folder):
    assert json.loads((folder / "results.json").read_text()) == json.loads(json.dumps(run.to_json()))


def test_a_run_that_was_read_back_leaves_the_same_bytes(rendered, folder):
    assert render(Run.from_json(json.loads((folder / "results.json").read_text()))) == rendered


def test_numbers_print_the_same_whatever_type_they_came_in(run, rendered):
    first = run.results[0]
    floats = {**first.evidence, "delta": np.float64(first.evidence["delta"])}
    assert render(replace(run, results=(replace(first, evidence=floats), *run.results[1:]))) == rendered


@pytest.mark.deep
def test_a_suites_pictures_need_no_other_suite(quick_run):
    # A run draws them as soon as the suite is judged.
    def drawn(run):
        return {
            name: (description(figure), [axis.dataLim.bounds for axis in figure.axes])
            for name, figure in figures_of(run).items()
        }

    run, alone = quick_run.run, {}
    for suite in {result.suite for result in run.results}:
        alone |= drawn(replace(run, results=tuple(result for result in run.results if result.suite == suite)))
    assert len(alone) > 20
    assert alone == drawn(run)


@pytest.mark.parametrize("name", ["dimension-sweep.svg", "estimator-errors.svg"])
def test_pictures_are_svg_and_shown_in_the_summary(folder, name):
    assert ElementTree.parse(folder / name).getroot().tag.endswith("svg")
    assert f"({name})" in (folder / "summary.md").read_text()


def test_printed_values_stand_beside_ours(folder):
    page = (folder / "summary.md").read_text()
    assert "| 0.98 ± 0.41 |" in page
    assert page.count("| `review.sweep.d10k.epsilon1` |") == 3  # cells, enclosures, tests


def test_every_table_row_has_as_many_cells_as_its_header(folder):
    header = 0
    for line in (folder / "summary.md").read_text().splitlines():
        cells = line.replace("\\|", "").count("|")
        header = 0 if not cells else header or cells
        assert cells == header


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_a_run_without_numbers_leaves_no_pictures(tmp_path):
    result = Result("a", "s", Subject.DOCUMENT, "place", "a | b", Verdict.REFUTED, "none", {})
    write_files(render(Run("0", Level.QUICK, 0, (result,))), tmp_path)
    assert names(tmp_path) == ["claims-a.md", "results.json", "summary.md"]
    assert r"a \| b" in (tmp_path / "claims-a.md").read_text()


def test_pages_that_the_next_run_lacks_are_removed(run, tmp_path):
    write_files(render(run), tmp_path)
    for name in ("notes.md", "claims-mine.md"):
        (tmp_path / name).write_text("somebody's")
    write_files(render(replace(run, results=())), tmp_path, FILES)
    assert names(tmp_path) == ["claims-mine.md", "notes.md", "results.json", "summary.md"]


def test_a_folder_without_a_run_is_left_as_it_is(run, tmp_path):
    (tmp_path / "proofs.md").write_text("somebody's")
    write_files(render(replace(run, results=())), tmp_path, FILES)
    assert (tmp_path / "proofs.md").read_text() == "somebody's"


def test_the_summary_lists_tests_and_sums_their_levels(folder, run):
    page = (folder / "summary.md").read_text()
    assert f"{len(run.designs)} verdicts depend on chance" in page
    for result in run.results:
        if result.design is not None:
            assert f"| `{result.id}` | {result.design.null} | {result.design.level:.1g} |" in page
