"""``canaryproof audit watch.json``: a watch's record is answered again, as a gate."""

import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

import canaryproof as cp
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


def test_options_of_scores_are_refused(records):
    for option in (("--delta", "1e-5"), ("--claim", "3"), ("--report", "a.md"), ("--details",)):
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
        ({"phases": [{"noise_multiplier": "nan", "rate": 0.1, "steps": STEPS}]}, 1, "NOT PASSED"),
        ({"phases": [{"noise_multiplier": 1.0, "rate": 7.0, "steps": STEPS}]}, 2, "rate"),
        ({"noise": {"steps": 1, "dim": 0, "share": 1.0, "high": 1.0, "noticed": 0.95}}, 2, "division by zero"),
        ({"delta": 3.0}, 2, "delta"),
        ({"clipping": None}, 2, "clipping"),
    ],
)
def test_damaged_records_are_refused_in_one_line(records, tmp_path, change, status, words):
    document = json.loads((records / "honest.json").read_text()) | change
    (tmp_path / "watch.json").write_text(json.dumps(document))
    result = run(tmp_path / "watch.json")
    assert (result.exit_code, words in result.output) == (status, True), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if status == 2:
        assert len([line for line in result.output.splitlines() if line.startswith("Error")]) == 1
