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

DIM, COUNT = 5000, 300
CANARIES = ["--canaries", str(COUNT), "--canary-seed", "7", "--delta", "1e-6"]


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("releases")
    canaries = cp.Canaries(seed=7, count=COUNT, dim=DIM)
    noise = np.random.default_rng(1).normal(0.0, 1.0, DIM)
    for name, total, deviation in (("honest", 1.0, 1.54), ("little noise", 1.0, 0.2), ("no canaries", 0.0, 1.54)):
        np.save(folder / f"{name}.npy", total * canaries.sum(np.arange(COUNT)) + deviation * noise)
    return folder


QUESTIONS = {
    "input": "the input is what it is said to be",
    "noise": "the claimed noise is there",
    "clipping": "every record was clipped",
    "sampling": "rounds were drawn as claimed",
    "accounting": "the recorded mechanism has the claimed epsilon",
    "leak": "nothing contradicts the claim, and missing noise would be noticed",
    "plan": "the audit is as planned",
}
OF_RELEASES = [name for question, name in QUESTIONS.items() if question != "plan"]


@pytest.mark.parametrize(
    ("name", "status", "failing", "skipped"),
    [
        ("honest", 0, set(), {"noise", "clipping", "sampling"}),
        ("little noise", 1, {"noise", "leak"}, {"clipping", "sampling"}),
        # Where the input is wrong, nothing else is judged.
        ("no canaries", 4, {"input"}, {"noise", "clipping", "sampling", "accounting", "leak"}),
    ],
)
def test_an_audit_fails_where_its_gate_does(releases, tmp_path, name, status, failing, skipped):
    path = tmp_path / "audit.xml"
    arguments = ["audit", str(releases / f"{name}.npy"), *CANARIES, "--noise-multiplier", "1.54", "--fail-above-claim"]
    shown = CliRunner().invoke(main, [*arguments, "--junit", str(path)])
    assert shown.exit_code == status
    assert shape(path) == [set(OF_RELEASES), *({QUESTIONS[each] for each in part} for part in (failing, skipped))]


def test_a_question_that_is_asked_for_fails_where_it_is_open(releases, tmp_path):
    path = tmp_path / "audit.xml"
    arguments = ["audit", str(releases / "honest.npy"), *CANARIES, "--noise-multiplier", "1.54", "--fail-above-claim"]
    shown = CliRunner().invoke(main, [*arguments, "--junit", str(path), "--ask", "noise", "--ask", "sampling"])
    assert shown.exit_code == 3
    assert shape(path)[1] == {QUESTIONS["noise"], QUESTIONS["sampling"]}


def test_a_case_has_the_answer_the_reason_and_what_would_have_been_noticed():
    observed = np.random.default_rng(0).normal(0.9, 1.0, 400) / 100.0
    for notice, failure in ((0.5, False), (0.99, True)):
        result = cp.audit(cp.Scores(observed, dim=10**4), 1e-5, claim=4.0, notice=notice)
        case = junit.of_audit(result)["audit"][5]
        finding = result.finding("leak")
        assert case.name == QUESTIONS["leak"]
        first, noticed, *rest = case.text.splitlines()
        assert first == f"{finding.status}: {finding.because}"
        # What is asked for is never printed as what would be noticed, if that is less.
        assert numbers(noticed) == [str(math.floor(100.0 * result.noticed_share))]
        assert finding.do in (*rest, "")
        assert case.failure == (first if failure else "")


def test_an_audit_without_a_claim_is_skipped(tmp_path):
    observed = np.random.default_rng(0).normal(0.02, 0.01, 300)
    np.save(tmp_path / "cosines.npy", observed)
    path = tmp_path / "audit.xml"
    CliRunner().invoke(
        main, ["audit", str(tmp_path / "cosines.npy"), "--dim", "1e4", "--delta", "1e-5", "--junit", str(path)]
    )
    assert shape(path) == [set(OF_RELEASES), set(), set(OF_RELEASES)]


def test_an_audit_without_a_claim_fails_where_its_input_is_wrong(releases, tmp_path):
    path = tmp_path / "audit.xml"
    CliRunner().invoke(main, ["audit", str(releases / "no canaries.npy"), *CANARIES, "--junit", str(path)])
    assert shape(path)[1] == {QUESTIONS["input"]}


def test_characters_that_xml_does_not_have_are_replaced(tmp_path):
    junit.write(tmp_path / "a.xml", {"suite": [junit.JUnitCase("name\x1b", json.loads('"\\ud800 \\u0000"'), "a\x00b")]})
    assert shape(tmp_path / "a.xml")[0] == {"name\ufffd"}


def test_an_audit_that_is_not_as_planned_fails_there(releases, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planned = ["plan", "--noise-multiplier", "1.54", "--dim", str(DIM), "--delta", "1e-6", "--canary-seed", "8"]
    assert CliRunner().invoke(main, [*planned, "--out", "plan.json"]).exit_code == 0
    arguments = ["audit", str(releases / "honest.npy"), *CANARIES, "--noise-multiplier", "1.54", "--fail-above-claim"]
    shown = CliRunner().invoke(main, [*arguments, "--plan", "plan.json", "--junit", "audit.xml"])
    assert shown.exit_code == 3
    assert shape(tmp_path / "audit.xml")[1] == {QUESTIONS["plan"]}
