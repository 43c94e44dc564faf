"""``canaryproof audit watch.json``: a watch's record is answered again, as a gate."""

import hashlib
import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

import canaryproof as cp
from canaryproof.verify.audit.answer.report import SEAL
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.command_line import main

MEMBERS, STEPS = 1000, 30


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Return the record of an honest training, and of one with half of the noise."""
    folder = tmp_path_factory.mktemp("watches")
    for name, noise in (("honest", 1.0), ("half", 0.5)):
        claim = cp.accounting.poisson(1.0, rate=0.1, rounds=STEPS)
        watch, rng = cp.watch(delta=1e-5, claim=claim, members=MEMBERS), np.random.default_rng(0)
        for _ in range(STEPS):
            drawn = np.flatnonzero(rng.random(MEMBERS) < 0.1)
            rows = rng.normal(size=(len(drawn), 100))
            total = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).sum(axis=0)
            release = total + noise * rng.normal(size=100)
            watch.step(release=release, total=total, gradients=rows, drawn=drawn, clip_norm=1.0)
        watch.close()
        watch.save(folder / f"{name}.json")
    return folder


def run(*arguments):
    return CliRunner().invoke(main, ["audit", *map(str, arguments)])


def test_a_record_is_a_gate_with_its_own_claim(records, tmp_path):
    passed = run(records / "honest.json")
    assert (passed.exit_code, passed.output.split(":")[0]) == (0, "PASSED")
    assert max(map(len, passed.output.splitlines())) <= 80
    wrong = run(records / "half.json", "--junit", tmp_path / "watch.xml", "--json")
    assert wrong.exit_code == 1
    assert json.loads(wrong.output)["decision"]["outcome"] == "NOT PASSED"
    cases = {case.get("name"): case for case in ET.parse(tmp_path / "watch.xml").iter("testcase")}
    assert len(cases) == 5
    assert "the noise has 0.49" in cases["the claimed noise is there"].find("failure").get("message")
    assert cases["every record was clipped"].find("failure") is None


def test_a_pinned_claim_is_held_against_the_record_whatever_that_claims(records, tmp_path):
    honest = records / "honest.json"
    epsilon = cp.accounting.poisson(1.0, rate=0.1, rounds=STEPS).epsilon(1e-5)
    passed = run(honest, "--claim", "4.567", "--delta", "1e-5")
    assert passed.exit_code == 0
    assert "the claimed ε = 4.57 (δ = 1e-05)" in " ".join(passed.output.split())
    # The record's own claim is larger.
    report = tmp_path / "pinned.html"
    wrong = run(honest, "--claim", 0.5 * epsilon, "--delta", "1e-5", "--report", report, "--junit", tmp_path / "a.xml")
    assert wrong.exit_code == 1
    assert f"{0.5 * epsilon:.4g} claimed; {epsilon:.4g} claimed by the record" in " ".join(wrong.output.split())
    checked = check(report, "--watch", honest)
    assert (checked.exit_code, "NOT PASSED" in checked.output) == (0, True), checked.output
    failures = [
        case.get("name") for case in ET.parse(tmp_path / "a.xml").iter("testcase") if case.find("failure") is not None
    ]
    assert failures == [
        "the recorded mechanism has the claimed epsilon",
        "nothing contradicts the claim, and missing noise would be noticed",
    ]
    other = run(honest, "--claim", "3", "--delta", "1e-3")
    assert (other.exit_code, "--delta: must be 1e-05, that of" in other.output) == (2, True)
    # A pinned claim does not replace that of the record.
    half = run(records / "half.json", "--claim", "100", "--delta", "1e-5")
    assert half.exit_code == 1


def test_options_of_scores_are_refused(records):
    for option in (("--delta", "1e-5"), ("--claim", "3")):
        refused = run(records / "honest.json", *option)
        assert (refused.exit_code, "--claim, --delta: must be given together" in refused.output) == (2, True)
    for option in (("--rate", "0.1"), ("--plot", "a.svg"), ("--details",)):
        refused = run(records / "honest.json", *option)
        assert refused.exit_code == 2, option
        assert f"{option[0]}: must not be given with" in refused.output
    np.save(records / "other.npy", np.zeros(3))
    assert "Missing option '--delta'." in run(records / "other.npy").output


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"version": "9.9.9"}, 3, "was made by canaryproof 9.9.9"),
        ({"schema": "canaryproof watch 7"}, 2, "schema: must be"),
        ({"steps": -1}, 2, "steps"),
        ({"steps": "many"}, 2, "steps"),
        ({"phases": [{"noise_multiplier": "nan", "rate": 0.1, "steps": STEPS}]}, 2, "finite noise multipliers"),
        ({"noise": {"steps": 1, "dim": 0, "share": 1.0, "high": 1.0, "noticed": 0.95}}, 2, "noise.dim"),
        ({"clipping": None}, 2, "clipping"),
    ],
)
def test_damaged_records_are_refused_in_one_line(records, tmp_path, change, status, words):
    document = json_records.seal(json.loads((records / "honest.json").read_text()) | change)
    (tmp_path / "watch.json").write_text(json.dumps(document))
    result = run(tmp_path / "watch.json")
    assert (result.exit_code, words in result.output) == (status, True), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if status == 2:
        assert len([line for line in result.output.splitlines() if line.startswith("Error")]) == 1


def check(*arguments):
    return CliRunner().invoke(main, ["check-report", *map(str, arguments)])


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_a_report_of_a_record_is_checked_by_its_file(records, tmp_path, form):
    report = tmp_path / f"watch.{form}"
    made = run(records / "half.json", "--report", report, "--title", "A watch", "--date", "1 May")
    assert made.exit_code == 1
    assert "NOT PASSED" in report.read_text()
    true = check(report, "--watch", records / "half.json")
    assert true.exit_code == 0, true.output
    assert "its title 'A watch'; its date '1 May'" in true.output
    assert "NOT PASSED: the claimed ε" in true.output
    plain = tmp_path / f"plain.{form}"
    assert run(records / "honest.json", "--report", plain).exit_code == 0
    assert "plain" in check(plain, "--watch", records / "honest.json").output.splitlines()[1]
    # The report of another watch.
    other = check(plain, "--watch", records / "half.json")
    assert (other.exit_code, "is not the watch that was answered" in other.output) == (1, True)
    refused = check(plain, "--release", records / "honest.json")
    assert (refused.exit_code, "schema: must begin with 'canaryproof audit report '" in refused.output) == (2, True)
    refused = check(plain, "--watch", records / "honest.json", "--plan", records / "honest.json")
    assert (refused.exit_code, "--plan: must not be given with --watch" in refused.output) == (2, True)


def leaves(value, path=()):
    """Yield the places of all numbers, words and truth values."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, (*path, key))
    else:
        yield path


def edited(document, path, value):
    document = json.loads(json.dumps(document))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value(place[path[-1]])
    return document


def other(value):
    if isinstance(value, bool) or value is None:
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}x"


@pytest.mark.deep(every=8)
@pytest.mark.parametrize("part", range(8))
def test_a_forged_report_is_never_true(records, tmp_path, part):
    """Each leaf of the record is changed and its seal computed anew: words and names are counted, all else differs."""
    report, forged = tmp_path / "watch.json", tmp_path / "forged.json"
    run(records / "half.json", "--report", report)
    document = json.loads(report.read_text())
    words = {("heading", name) for name in ("name", "title", "subject", "date")}
    places = list(leaves({name: each for name, each in document.items() if name != "sha256"}))
    for path in places[part::8]:
        forged.write_text(json_records.dump(json_records.seal(edited(document, path, other))) + "\n")
        checked = check(forged, "--watch", records / "half.json")
        trusted = path in words or path[0] == "versions"
        assert checked.exit_code in ((0, 1, 2, 3) if trusted else (1, 2)), (path, checked.output)
        assert not trusted or "is true: all" not in checked.output


def test_a_forged_page_is_never_true(records, tmp_path):
    report, forged = tmp_path / "watch.html", tmp_path / "forged.html"
    run(records / "half.json", "--report", report)
    page = report.read_text()
    body = page[: page.rindex(SEAL)]
    for old, new in (
        ("NOT PASSED", "PASSED"),
        ("<h2", "<p>All is well.</p><h2"),
        ("</style>", "p{display:none}</style>"),
    ):
        changed = body.replace(old, new, 1)
        assert changed != body
        forged.write_text(f"{changed}{SEAL}{hashlib.sha256(changed.encode()).hexdigest()} -->\n")
        checked = check(forged, "--watch", records / "half.json")
        assert (checked.exit_code, "is not true" in checked.output) == (1, True), checked.output


FORGED = {
    ("delta",): (1.5, "delta"),
    ("looks",): (2, "looks: must be at least 5"),
    ("looked",): (400, "looked: must be at most the steps"),
    ("tests",): (3, "tests: must be from"),
    ("phases", 0, "noise_multiplier"): (-1.0, "phases: must have finite noise multipliers"),
    ("phases", 0, "rate"): (7.0, "phases: must have rates"),
    ("phases", 0, "steps"): (4000, "phases: must have no more steps"),
    ("results", 0, "name"): ("luck", "results: must be of tests that a watch makes"),
    ("results", 0, "p_value"): (1.5, "results: must have p-values"),
    ("results", 0, "step"): (900, "results: must be of steps that were looked at"),
    ("results", 0, "observed"): ("fine\x1b[2J", "texts: must be printable lines"),
    ("noise", "share"): (1.0, "noise.high: must be"),
    ("noise", "high"): (1.2, "noise.high: must be"),
    ("noise", "noticed"): (0.999, "noise.noticed: must be at most"),
    ("noise", "steps"): (0, "noise.steps: must be from 1"),
    ("noise", "dim"): (0, "noise.dim"),
    ("clipping", "longest"): (0.5, "clipping.longest: must be above 1"),
    ("clipping", "long"): (10**9, "clipping.long: must be at most the gradients"),
    ("clipping", "trials"): (3, "clipping.worst: must be there"),
    ("sampling", "mean"): (50.0, "sampling.mean: must be that of the claimed rate"),
    ("sampling", "wrong_rate"): (0.0001, "sampling.wrong_rate: must be at least"),
    ("sampling", "most"): (1000, "sampling.most: must be at most the steps"),
}


@pytest.mark.parametrize("path", FORGED, ids=lambda path: ".".join(map(str, path)))
def test_records_that_no_watch_writes_are_refused_in_one_line(records, tmp_path, path):
    value, words = FORGED[path]
    document = edited(json.loads((records / "honest.json").read_text()), path, lambda _: value)
    # Whoever changes a file and no more is found by its seal.
    for sealed, reason in ((False, "was changed after it was written"), (True, words)):
        made = json_records.seal(document) if sealed else document
        (tmp_path / "watch.json").write_text(json_records.dump(made))
        result = run(tmp_path / "watch.json")
        assert (result.exit_code, reason in result.output) == (2, True), result.output
        assert len([line for line in result.output.splitlines() if line.startswith("Error")]) == 1


def test_a_failed_test_that_was_taken_out_of_a_record_fails_by_its_numbers(records, tmp_path):
    document = json.loads((records / "half.json").read_text())
    results = [each for each in document["results"] if each["question"] != "noise"]
    (tmp_path / "watch.json").write_text(json_records.dump(json_records.seal(document | {"results": results})))
    result = run(tmp_path / "watch.json")
    assert result.exit_code == 1
    assert "Noise: 0.49" in result.output
