"""A JUnit file shows the questions of an audit, and fails where the command does."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import canaryproof as cp
from canaryproof.verify.audit.cli import junit
from canaryproof.verify.command_line import main
from tests.junit import shape
from tests.printed import numbers

DIM = 20_000
CANARIES = ["--canaries", "1000", "--canary-seed", "7", "--delta", "1e-6"]


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("releases")
    canaries = cp.Canaries(seed=7, count=1000, dim=DIM)
    noise = np.random.default_rng(1).normal(0.0, 1.0, DIM)
    for name, total, deviation in (("honest", 1.0, 1.54), ("little noise", 1.0, 0.2), ("no canaries", 0.0, 1.54)):
        np.save(folder / f"{name}.npy", total * canaries.sum(np.arange(1000)) + deviation * noise)
    return folder


@pytest.mark.parametrize(
    ("name", "status", "failing"),
    [
        ("honest", 0, set()),
        ("little noise", 1, {"nothing contradicts the claim", "the input has no sign of misuse"}),
        ("no canaries", 4, {"the audit decides", "the input has no sign of misuse"}),
    ],
)
def test_an_audit_fails_where_its_gate_does(releases, tmp_path, name, status, failing):
    path = tmp_path / "audit.xml"
    arguments = ["audit", str(releases / f"{name}.npy"), *CANARIES, "--noise-multiplier", "1.54", "--fail-above-claim"]
    shown = CliRunner().invoke(main, [*arguments, "--junit", str(path)])
    names, failed, skipped = shape(path)
    assert len(names) == 4
    assert not skipped
    assert shown.exit_code == status
    assert failed == failing


def test_figures_of_the_noise_that_would_be_noticed():
    observed = np.random.default_rng(0).normal(0.9, 1.0, 400) / 100.0
    result = cp.audit(cp.Scores(observed, dim=10**4), 1e-5, claim=4.0)
    case = junit.of_audit(result, 0.123)["audit"][-1]
    share = math.floor(1000.0 * result.noticed_share) / 1000.0
    assert numbers(case.text) == [f"{share:g}", "90", "0.123"]
    # What is asked for is never printed as what would be noticed, if that is less.
    result.__dict__["noticed_share"] = 0.74999
    case = junit.of_audit(result, 0.75)["audit"][-1]
    assert case.failure == case.text
    assert numbers(case.text) == ["0.749", "90", "0.75"]


def test_an_audit_without_a_claim_is_skipped(tmp_path):
    observed = np.random.default_rng(0).normal(0.02, 0.01, 300)
    np.save(tmp_path / "cosines.npy", observed)
    path = tmp_path / "audit.xml"
    CliRunner().invoke(
        main, ["audit", str(tmp_path / "cosines.npy"), "--dim", "1e4", "--delta", "1e-5", "--junit", str(path)]
    )
    assert shape(path)[2] == {"the audit"}


def test_characters_that_xml_does_not_have_are_replaced(tmp_path):
    junit.write(tmp_path / "a.xml", {"suite": [junit.JUnitCase("name\x1b", json.loads('"\\ud800 \\u0000"'), "a\x00b")]})
    assert shape(tmp_path / "a.xml")[0] == {"name\ufffd"}


def test_an_audit_that_is_not_as_planned_fails_there(releases, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planned = ["plan", "--noise-multiplier", "1.54", "--dim", "20000", "--delta", "1e-6", "--canary-seed", "8"]
    assert CliRunner().invoke(main, [*planned, "--out", "plan.json"]).exit_code == 0
    arguments = ["audit", str(releases / "honest.npy"), *CANARIES, "--noise-multiplier", "1.54", "--fail-above-claim"]
    shown = CliRunner().invoke(main, [*arguments, "--plan", "plan.json", "--junit", "audit.xml"])
    assert shown.exit_code == 3
    assert shape(tmp_path / "audit.xml")[1] == {"the audit is as planned"}
