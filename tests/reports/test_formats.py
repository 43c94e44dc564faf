import json
from pathlib import Path

import jsonschema
import pytest
from made_up import page_of

from canaryproof.reports import pdf as printing
from canaryproof.reports.formats import Format, report
from canaryproof.reports.material import Material
from canaryproof.verify.check.results import Level, Run, Subject
from canaryproof.verify.engine import expected

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"


@pytest.fixture(scope="module")
def material(results):
    return Material(Run("0", Level.QUICK, 0, results))


@pytest.fixture(scope="module")
def schema(material):
    found = json.loads(report(material, Format.JSON).files["results.schema.json"])
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


def test_results_keep_the_schema(material, schema):
    document = json.loads(report(material, Format.JSON).files["results.json"])
    schema.validate(document)
    assert Run.from_json(document) == material.run


def test_the_published_run_keeps_the_schema(schema):
    schema.validate(json.loads((PUBLISHED / "results.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "change",
    [
        {"level": "medium"},
        {"seed": -1},
        {"extra": 1},
        {"results": [{}]},
        {"results": [{"verdict": "maybe"}]},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(material, schema, change):
    document = material.run.to_json()
    rows = [{**document["results"][0], **row} if row else row for row in change.get("results", [])]
    changed = {**document, **change, **({"results": rows} if rows else {})}
    assert not schema.is_valid(changed)
    with pytest.raises(ValueError, match=r"\w"):
        Run.from_json(changed)


def test_the_default_is_markdown_and_the_page(material):
    both = report(material)
    assert both.main == "report.html"
    assert set(both.files) == {*report(material, Format.MD).files, "report.html"}
    assert both.files["report.html"] == report(material, Format.HTML).files["report.html"]


def test_equal_runs_have_equal_bytes(material):
    for form in (Format.HTML, Format.MD):
        assert report(material, form).files == report(material, form).files


def test_benchmarks_beside_the_run_become_chapters(material):
    measured = json.loads((PUBLISHED / "performance.json").read_text(encoding="utf-8"))
    found = Material(material.run, performance=measured)
    assert '<h2 id="cost-title">Cost against d and k</h2>' in report(found, Format.HTML).files["report.html"].decode()
    assert report(found, Format.MD).files["performance.md"] == (PUBLISHED / "performance.md").read_bytes()


def test_the_published_run_makes_a_small_page():
    run = Run.from_json(json.loads((PUBLISHED / "results.json").read_text(encoding="utf-8")))
    page = page_of(*run.results)
    assert len(page.encode()) <= 2_000_000
    assert page.count("<li data-document") == len(run.results)


def test_pages_for_code_hosts_are_markdown():
    assert not list(PUBLISHED.rglob("*.html"))
    assert {"summary.md", "convergence.md", "performance.md"} <= {path.name for path in PUBLISHED.iterdir()}


def test_published_verdicts_are_the_expected_ones_of_statements_that_are_still_judged():
    # The published run may be older than the ledger: what only one of them has says nothing.
    known = expected.read((Path(expected.__file__).with_name("expected_verdicts.csv")).read_text(encoding="utf-8"))
    run = Run.from_json(json.loads((PUBLISHED / "results.json").read_text(encoding="utf-8")))
    both = {
        (r.suite, r.id): r.verdict for r in run.results if r.subject is Subject.DOCUMENT and (r.suite, r.id) in known
    }
    assert len(both) > 500
    assert both == {key: known[key] for key in both}


def test_the_page_is_printed_by_a_browser(material):
    if not any(map(printing.shutil.which, printing.BROWSERS)):
        pytest.skip(f"none of {', '.join(printing.BROWSERS)} is installed")
    made = report(material, Format.PDF)
    assert made.files["report.pdf"].startswith(b"%PDF")


def test_without_a_browser_there_is_no_pdf(material, monkeypatch):
    monkeypatch.setattr(printing.shutil, "which", lambda _: None)
    with pytest.raises(OSError, match="none of chromium, chromium-browser, google-chrome is installed"):
        report(material, Format.PDF)


def test_a_run_in_which_nothing_could_be_judged_has_a_report():
    document = json.loads((PUBLISHED / "results.json").read_text(encoding="utf-8"))
    for result in document["results"]:
        result |= {"verdict": "inconclusive", "finding": "could not be judged: E: e", "evidence": {}, "design": None}
    made = report(Material(Run.from_json(document))).files
    assert "could not be judged" in made["summary.md"].decode()
