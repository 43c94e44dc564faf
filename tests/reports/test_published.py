"""What the repository shows is what the current code finds: the table of expected verdicts is the measure.

What follows from printed numbers alone is the same at every level and seed. Published pages are what the code makes of
the published numbers. After a change of either that is meant: ``make published``, as ``tests/publishing.py`` says.
"""

import json
import math
import re
from datetime import date

import numpy as np
import pytest

from canaryproof.reports import canife, pages, training
from canaryproof.verify.audit.markup.markdown import without_tags
from canaryproof.verify.papers.check.results import Context, Effort, Subject, perform
from canaryproof.verify.papers.check.verdicts import is_fixed
from canaryproof.verify.papers.claims.clipping_range import written_direction
from canaryproof.verify.papers.claims.final_bounds import largest_cosine
from canaryproof.verify.papers.claims.needs_data import NeedsData
from canaryproof.verify.papers.records.benchmark_record import BenchmarkRecord
from canaryproof.verify.papers.records.report_input import read_record
from canaryproof.verify.papers.records.training_record import ExperimentRecord
from canaryproof.verify.papers.runs import expected
from canaryproof.verify.papers.suites.catalogue import SUITES
from tests.published import PUBLISHED, ROOT, published_rows, published_run

DOCUMENTS = {name: str(verdict) for (_, name), verdict in expected.read().items()}
OURS = {check.id for suite in SUITES for check in SUITES[suite] if check.subject is Subject.IMPLEMENTATION}
SUMMARY = (PUBLISHED / "summary.md").read_text(encoding="utf-8")
MAKE = '`make published` judges what is new; CHECKS="..." names more: ids, suites'


def test_published_verdicts_are_the_expected_ones():
    verdicts = {name: row["verdict"] for name, row in published_rows().items() if row["subject"] == "document"}
    assert verdicts == DOCUMENTS, MAKE


def test_published_findings_are_the_expected_ones():
    findings = expected.read_findings()
    assert {name: published_rows()[name]["finding"] for name in findings} == findings, MAKE


def test_effects_that_tests_notice_are_positive():
    designs = [row["design"]["alternative"] for row in published_rows().values() if row["design"]]
    effects = [float(size) for size in re.findall(r"(-?[\d.]+) (?:standard )?deviations", "\n".join(designs))]
    assert len(effects) > 30
    assert min(effects) > 0.0


def test_published_checks_are_those_of_the_code():
    assert {name for name, row in published_rows().items() if row["subject"] == "implementation"} == OURS, MAKE


@pytest.mark.parametrize("page", ["README.md", "reports/published/summary.md"])
def test_numbers_of_own_checks_are_those_of_the_code(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    quoted = re.findall(r"(\d+) of (\d+)\s+(?:of this package's\s+)?own checks", text)
    assert quoted, "the page quotes no number of own checks"
    assert set(quoted) == {(str(len(OURS)), str(len(OURS)))}


def test_every_row_says_when_and_how_it_was_judged():
    origins = [row["origin"] for row in published_rows().values()]
    assert {(row["level"], row["seed"]) for row in origins} == {(str(published_run().level), published_run().seed)}
    dates = [date.fromisoformat(row["date"]) for row in origins]
    assert f"of {min(dates)} (" in SUMMARY or f"`, {min(dates)}." in SUMMARY


def test_the_record_takes_at_most_five_megabytes():
    assert sum(path.stat().st_size for path in PUBLISHED.rglob("*") if path.is_file()) < 5e6


def test_published_pages_name_the_version_and_the_code():
    environment = json.loads((PUBLISHED / "environment.json").read_text(encoding="utf-8"))
    assert {"version", "source code", "command"} <= environment.keys()


def test_results_that_pages_show_are_published():
    text = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    shown = [name for block in re.findall(r"<!-- written: results (.*?) -->", text) for name in block.split()]
    assert shown
    assert set(shown) <= published_rows().keys()


def test_quoted_numbers_of_the_benchmark_are_published():
    """Each mean with its deviation is one of the page, in fewer digits."""
    text = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    table = text[text.index("| claim | printed |") : text.index("None of these trainings")]
    page = (PUBLISHED / "canife.md").read_text(encoding="utf-8")
    pair = re.compile(r"([\d.]+) ± ([\d.]+)")
    published = [tuple(map(float, found)) for found in pair.findall(page)]
    quoted = pair.findall(table)
    assert len(quoted) > 8
    for numbers in quoted:
        digits = [len(number.partition(".")[2]) for number in numbers]
        rounded = {tuple(round(n, d) for n, d in zip(found, digits, strict=True)) for found in published}
        assert tuple(map(float, numbers)) in rounded, numbers


def test_one_direction_of_algorithm_3_gives_the_quoted_numbers():
    record = read_record(BenchmarkRecord, PUBLISHED / "canife.json")
    runs, delta = record.scenarios[0].runs, record.setting.delta
    quoted = []
    for audits in ([run.oneshot["all"]["unobserved"] for run in runs], [run.seen for run in runs]):
        alone = [written_direction(delta, np.array(audit.distance), np.array(audit.ratio)) for audit in audits]
        quoted.append(f"{np.mean(alone):.2f} ± {np.std(alone, ddof=1):.2f}")
    # In a shuffled epoch each canary has one round.
    (unseen, scale, _), (seen, width, _) = (largest_cosine(record.setting.rounds, at) for at in (0.0, 5.0))
    limit = written_direction(delta, np.array((seen - unseen) / scale), np.array(width / scale))
    assert [*quoted, f"{limit:.2f}"] == ["1.90 ± 0.02", "4.10 ± 0.14", "3.43"]


def test_published_statements_are_those_of_the_code():
    said = {check.id: (check.statement, check.source) for suite in SUITES.values() for check in suite}
    assert said == {name: (row["statement"], row["source"]) for name, row in published_rows().items()}, MAKE


def test_what_needs_data_is_published_with_its_commands(quick_run):
    names = [check.id for check in SUITES["claims"] if isinstance(check.judge, NeedsData)]
    assert len(names) > 50
    assert {name: quick_run.results[name].finding for name in names} == {
        name: published_rows()[name]["finding"] for name in names
    }


@pytest.mark.parametrize("name", ["canife.section1.gap", "canife.section3.4.conservative", "review.users.languages"])
def test_what_draws_nothing_that_it_tells_finds_what_is_published(name):
    (judge,) = (check.judge for check in SUITES["claims"] if check.id == name)
    assert judge(Context(Effort.QUICK, 0)).finding == published_rows()[name]["finding"]


# Judges that get nothing of the run.
_FIXED = {check.id: (suite, check) for suite, checks in SUITES.items() for check in checks if is_fixed(check.judge)}


def _near(found, there):
    """Whether evidence is the same, but for the last digits of numbers, in which processors may differ."""
    if isinstance(found, float) and isinstance(there, float):
        return math.isclose(found, there, rel_tol=1e-6, abs_tol=1e-12)
    if isinstance(found, dict) and isinstance(there, dict):
        return found.keys() == there.keys() and all(_near(found[key], there[key]) for key in found)
    if isinstance(found, list) and isinstance(there, list):
        return len(found) == len(there) and all(map(_near, found, there))
    return found == there


def _differs(result):
    found, there = json.loads(json.dumps(result.to_json())), published_rows()[result.id]
    same = found["finding"] == there["finding"]
    return not same or not all(_near(found[key], there[key]) for key in ("evidence", "design"))


def test_findings_from_printed_numbers_are_the_published_ones(quick_run):
    assert len(_FIXED) > 250
    assert not [name for name in _FIXED if _differs(quick_run.results[name])]


# Rows of which one is judged below, as all take seconds.
_LIKE_OTHERS = re.compile(
    r"v1\.table2\.row[245]\.epsilon|submission\.table3\.row[3-6]\.epsilon|findings\.estimates\.quantiles\.row[234]"
)
# A judge that documents share is the same for all of them.
_QUICK = {each[1].judge: name for name, each in _FIXED.items() if not _LIKE_OTHERS.fullmatch(name)}.values()


def test_the_code_finds_what_is_published_of_printed_numbers():
    """The same without the run that other tests share, so that it is seen in seconds."""
    assert [name for name in _QUICK if _differs(perform(*_FIXED[name], Context(Effort.QUICK, 0)))] == []


def _made():
    """Markdown pages of the published run, benchmarks and trainings, by path."""
    # Pictures are another library's, and take long: a page has their names and captions alone.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "svg", lambda _: "")
        made = pages.markdown_of(published_run(), "", {path.name: None for path in PUBLISHED.glob("*.svg")})
    texts = {name: page.decode() for name, page in made.items() if name.endswith(".md")}
    for folder in ("", *sorted(f"{path.name}/" for path in PUBLISHED.iterdir() if path.is_dir())):
        for source, kind, module, page in (
            ("canife.json", BenchmarkRecord, canife, "canife.md"),
            ("results.json", ExperimentRecord, training, "results.md"),
        ):
            path = PUBLISHED / folder / source
            if path.exists() and (folder or kind is BenchmarkRecord):
                texts[f"{folder}{page}"] = without_tags(module.text(read_record(kind, path)))
    return texts


# These are made by programs of their own, which measure other tools, this machine and audits.
_MEASURED = {"auditors.md", "auditors-dependence.md", "coverage.md", "performance.md", "releases.md"}
_PAGES = sorted({str(path.relative_to(PUBLISHED)) for path in PUBLISHED.rglob("*.md")} - _MEASURED)


@pytest.fixture(scope="module")
def made():
    return _made()


def test_all_pages_are_published(made):
    assert sorted(made) == _PAGES


@pytest.mark.parametrize("name", _PAGES)
def test_published_pages_show_the_published_numbers(made, name):
    assert made[name] == (PUBLISHED / name).read_text(encoding="utf-8")
