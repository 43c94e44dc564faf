import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from canaryproof.reports import summary
from canaryproof.reports.html import tables
from canaryproof.reports.page import provenance
from canaryproof.reports.pages import FILES, chapters, figures_of, pictures_of, render
from canaryproof.verify.audit.markup.figures import description
from canaryproof.verify.papers.check.results import (
    SUITE_NAMES,
    Context,
    Design,
    Effort,
    Origin,
    Result,
    Run,
    Subject,
    Verdict,
    perform,
)
from canaryproof.verify.papers.claims import simulated_tables
from canaryproof.verify.papers.records.output_files import write_files
from canaryproof.verify.papers.records.report_input import Material
from canaryproof.verify.papers.suites import estimators
from tests.published import published_run
from tests.reports.made_up import claim, page_of


@pytest.fixture(scope="module")
def run():
    context = Context(Effort.QUICK, 0)
    small = [check for check in simulated_tables.CHECKS if ".d10k." in check.id]
    cheap = [c for c in estimators.CHECKS if c.id.endswith(("default-estimator", "fitted-bias", "count-sweep"))]
    suites = {"algorithm1": small, "estimators": cheap}
    results = (perform(suite, check, context) for suite, checks in suites.items() for check in checks)
    return Run("0", Effort.QUICK, 0, tuple(results))


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
    write_files(render(Run("0", Effort.QUICK, 0, (result,))), tmp_path)
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


def summarised(*results):
    return summary.text(Run("1.2", Effort.FULL, 7, results), {"a.md": "what a has"}, {"a.svg": "what a shows"})


def test_a_summary_counts_ours_and_theirs_apart():
    held, failed = (claim(f"ours.{verdict}", verdict, "audit") for verdict in (Verdict.CONFIRMED, Verdict.REFUTED))
    shown = claim("final.a", Verdict.REFUTED), claim("final.b"), claim("v1.a"), claim("elsewhere.a", Verdict.QUALIFIED)
    page = summarised(held, failed, *shown)
    assert page.startswith(
        "# Verification results\n\ncanaryproof 1.2, `canaryproof verify audit claims --level full --seed 7`.\n\n"
        "1 of 2 of this package's own checks hold. Statements of the documents: 2 confirmed, 1 qualified, 1 refuted."
        "\n\n"
        "- [a.md](a.md): what a has\n\n"
    )
    assert "\n\n![what a shows](a.svg)\n" in page
    assert [rows for _, rows in tables(page)] == [
        (
            ("Andrew et al., final version", "1", "0", "1", "0", "0", "2"),
            ("Andrew et al., first version", "1", "0", "0", "0", "0", "1"),
            ("elsewhere", "0", "1", "0", "0", "0", "1"),
            ("different statements, each once", "2", "1", "1", "0", "0", "4"),
        ),
        tuple(
            (f'<a id="{one.id}"></a>{one.id}', one.statement.replace("`", ""), str(one.verdict), one.finding)
            for one in (held, failed)
        ),
    ]
    # Neither tests nor documents where there are none.
    assert summarised(held).count("## ") == 2
    assert "depend on chance" not in summarised(held)


def test_tests_stand_under_their_suite_with_all_that_they_declare():
    designs = [
        Design(f"null {i}", level, f"alternative {i}", power, runs)
        for i, (level, power, runs) in enumerate(((3e-7, 0.98765, 1234), (1e-7, 0.9, 500), (2e-7, 1.0, 20)))
    ]
    suites = "audit", "bounds", "audit"
    tested = [claim(f"ours.{i}", suite=suites[i], design=design) for i, design in enumerate(designs)]
    page = summarised(*tested, claim("ours.sure"))
    assert "3 verdicts depend on chance; the probability that it changes one of them is at most 6e-07" in page
    audit, bounds = (rows for header, rows in tables(page) if "power" in header)
    assert audit == (
        ("ours.0", "null 0", "3e-07", "alternative 0", "0.988", "1,234"),
        ("ours.2", "null 2", "2e-07", "alternative 2", "1", "20"),
    )
    assert bounds == (("ours.1", "null 1", "1e-07", "alternative 1", "0.9", "500"),)


def test_chapters_have_names_labels_and_the_pictures_that_they_show(run):
    material, figures = Material(run), figures_of(run)
    found = {chapter.name: chapter for chapter in chapters(material, {**figures, "other.svg": None})}
    assert list(found) == ["estimators"]
    assert (found["estimators"].label, found["estimators"].title) == (
        "Estimators", "Estimators: error, bias, deviation"
    )  # fmt: skip
    assert list(found["estimators"].figures) == list(figures) == ["dimension-sweep.svg", "estimator-errors.svg"]
    assert pictures_of(run.results[0]) == ["dimension-sweep.svg"]


def test_chapters_come_in_the_order_in_which_they_are_read():
    made = chapters(Material(published_run()), {})
    assert [(chapter.name, chapter.label) for chapter in made] == [
        ("convergence", "Convergence"),
        ("estimators", "Estimators"),
        ("bounds", "Bounds"),
        ("bounds-grid", "Shapes of scores"),
        ("blindspots", "Blind spots"),
        ("instruments", "Instruments"),
        ("accuracy", "Accuracy"),
        ("proofs", "Proofs"),
    ]
    assert all(chapter.text.startswith(f"# {chapter.title}\n") for chapter in made[3:])


def published(*dates):
    """Results of two suites, published at dates by versions."""
    origins = [Origin(number, date, Effort.FULL, 0, "a digest") for date, number in dates]
    suites = ("numerics", "bounds")
    results = [replace(claim(f"final.{i}", suite=suites[i % 2]), origin=one) for i, one in enumerate(origins)]
    return Run("0.3.0", Effort.FULL, 0, tuple(results))


def test_a_page_says_of_when_its_results_are():
    command = "`canaryproof verify --level full --seed 0`"
    # What a run of some suites did is not what the command does by default.
    plain = replace(published(), results=(claim("final.a"), claim("b", suite="bounds"), claim("c", suite="bounds")))
    some = "`canaryproof verify claims bounds --level full --seed 0`"
    assert provenance(plain) == f"canaryproof 0.3.0, {some}"
    whole = replace(plain, results=tuple(claim("a", suite=suite) for suite in SUITE_NAMES))
    assert provenance(whole) == f"canaryproof 0.3.0, {command}"
    alone = published(("2026-11-26", "0.2.0"), ("2026-11-26", "0.2.0"))
    assert provenance(alone) == f"canaryproof 0.2.0, {command}, 2026-11-26"
    several = published(("2026-12-01", "0.3.0"), ("2026-11-26", "0.2.0"), ("2026-11-30", "0.2.0"))
    assert provenance(several) == (
        f"canaryproof 0.2.0 and 0.3.0, {command}, in several runs: "
        "the oldest result is of 2026-11-26 (0.2.0), the newest of 2026-12-01 (0.3.0)"
    )
    command = "`canaryproof verify bounds --level full --seed 0`"
    assert provenance(several, "bounds") == f"canaryproof 0.2.0, {command}, 2026-11-26"


def test_each_page_has_the_dates_of_its_own_results():
    pages = render(published(("2026-11-26", "0.2.0"), ("2026-11-30", "0.2.0")))
    for name in ("summary.md", "claims-final.md"):
        assert "oldest result is of 2026-11-26 (0.2.0), the newest of 2026-11-30 (0.2.0)." in pages[name].decode()
    run = published(("2026-11-26", "0.2.0"), ("2026-11-30", "0.2.0"))
    assert "seed 0 · results of 2026-11-26 to 2026-11-30</p>" in page_of(*run.results)
    assert "seed 0 · results of 2026-11-26</p>" in page_of(run.results[0])
    assert "seed 0</p>" in page_of(claim("final.a"))
