import errno
import json
import math
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.accounting import accountant as accounting
from canaryproof.verify.audit.answer.plan import plan
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS, AtlasClaim
from canaryproof.verify.audit.canaries.round_scores import RoundScores
from canaryproof.verify.audit.files import writing
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.command_line import main

WORKFLOW = Path(__file__).parents[4] / "examples/privacy.yml"


def no_space(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def run(*words):
    return CliRunner().invoke(main, ["plan", *words])


def test_the_plan_is_printed():
    result = run("--noise-multiplier", "1.0", "--rounds", "500", "--dim", "1e6", "--claim", "3")
    assert result.exit_code == 0
    assert "canaryproof audit release.npy --canaries" in result.output
    assert "What no number of canaries sees; which instrument of a self-test does (where):" in result.output


def test_json_has_the_same():
    found = json.loads(run("--noise-multiplier", "1.54", "--dim", "1e5", "--json").stdout)
    assert found["dim"] == 100_000
    assert found["count"] == max(found["present"], found["seeing"])
    assert any(fault["epsilon"] is None for fault in found["faults"])
    assert found["commands"][-1].startswith("canaryproof audit release.npy")


def test_all_rounds_are_planned_for():
    words = ("--noise-multiplier", "1.54", "--rounds", "4", "--dim", "1e5", "--claim", "3.1", "--all-rounds")
    assert "canaryproof audit rounds.npz --inclusion coin --dim 100000" in run(*words).output
    found = json.loads(run(*words, "--json").stdout)
    assert found["all_rounds"]
    assert len(found["commands"]) == 9


def test_the_change_of_a_model_is_planned_by_its_rounds():
    words = ("--noise-multiplier", "1.54", "--rounds", "4", "--dim", "1e5")
    assert "If it is the change of a model, plan it with --difference or cp.plan_rounds." in run(*words).output
    found = json.loads(run(*words, "--difference", "--json").stdout)
    assert found == json.loads(run(*words, "--participations", "1", "--json").stdout)
    drawn = json.loads(run(*words, "--difference", "--rate", "0.5", "--json").stdout)
    assert drawn == json.loads(run(*words, "--rate", "0.5", "--json").stdout)


def test_neighbours_are_those_of_python():
    words = ("--noise-multiplier", "1.54", "--dim", "1e5", "--neighbours", "replace")
    assert "neighbours: replace" in run(*words).output
    found = json.loads(run(*words, "--json").stdout)
    assert found["neighbours"] == "replace"
    assert found["claim"] == plan(1.54, 1e5, neighbours="replace").claim
    assert found["commands"][-1].endswith("--neighbours replace")
    rounds = json.loads(run(*words, "--participations", "1", "--rounds", "3", "--json").stdout)
    assert rounds["claim"] == accounting.gaussian(1.54, neighbours="replace").epsilon(1e-6)
    assert 'neighbours="replace"' in rounds["commands"][-1]


def faulty(fault, planned, rng):
    """A release with a fault, without its canaries: a vector of the fault's length."""
    mechanism = MECHANISMS[fault["name"]]
    claimed = AtlasClaim(planned["release_noise"], planned["delta"], planned["dim"])
    square = float(mechanism.residual(fault["value"], claimed, 1, rng).gram[0, 0, 0])
    direction = rng.standard_normal(planned["dim"])
    return math.sqrt(square) / np.linalg.norm(direction) * direction, float(mechanism.weights(fault["value"])[0, 0])


def audited(planned, count, folder, residual, weight, seed):
    """Carry out the plan's own lines of the shell with so many canaries; return the audit's answers and warnings."""
    *made, audit = planned["commands"]
    made, audit = (line.replace(f" {planned['count']} ", f" {count} ") for line in (made[0], audit))
    made, audit = (line.replace("seed 7", f"seed {seed}") for line in (made, audit))
    made = made.replace("canaries.npy", str(folder / "canaries.npy"))
    audit = audit.replace("release.npy", str(folder / "release.npy"))
    (folder / "canaries.npy").unlink(missing_ok=True)
    assert CliRunner().invoke(main, made.split()[1:]).exit_code == 0
    np.save(folder / "release.npy", residual + weight * np.load(folder / "canaries.npy").sum(axis=0))
    result = CliRunner().invoke(main, [*audit.split()[1:], "--json"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    statuses = {finding["question"]: finding["status"] for finding in answer["findings"]}
    return statuses, [warning["kind"] for warning in answer["warnings"]]


def noticed(statuses):
    """Tell whether missing noise was noticed, in a release whose canaries are there."""
    return statuses["input"] != "failed" and "failed" in (statuses["noise"], statuses["leak"])


def rows_of(planned, most):
    return [fault for fault in planned["faults"] if fault["count"] is not None and fault["count"] <= most]


# Plans of one release, with and without a claim of their own, and for both kinds of neighbours.
PLANS = (
    ("--noise-multiplier", "1.54", "--dim", "2048"),
    ("--noise-multiplier", "0.6", "--dim", "3000", "--delta", "1e-4", "--claim", "12"),
    ("--noise-multiplier", "2", "--dim", "2048", "--neighbours", "replace"),
)


@pytest.mark.deep
@pytest.mark.parametrize("words", [PLANS[0], *(pytest.param(words, marks=pytest.mark.deep) for words in PLANS[1:])])
def test_a_fault_is_noticed_by_the_plans_own_lines(words, tmp_path):
    """At most 1 of 8 is noticed with probability 7e-7 if each is with 90%, and with 99% if each is with 2%."""
    planned, rng = json.loads(run(*words, "--json").stdout), np.random.default_rng(5)
    fault = min(rows_of(planned, 100), key=lambda row: row["count"])
    answers = [audited(planned, fault["count"], tmp_path, *faulty(fault, planned, rng), seed)[0] for seed in range(8)]
    assert sum(map(noticed, answers)) >= 2


@pytest.mark.deep
@pytest.mark.timeout(2 * 3600)
@pytest.mark.parametrize("words", PLANS)
def test_every_row_of_a_plan_is_noticed_with_the_stated_probability(words, tmp_path):
    planned, rng, runs = json.loads(run(*words, "--json").stdout), np.random.default_rng(6), 60
    for fault in rows_of(planned, 2000):
        answers = [
            audited(planned, fault["count"], tmp_path, *faulty(fault, planned, rng), seed)[0] for seed in range(runs)
        ]
        assert stats.binom.cdf(sum(map(noticed, answers)), runs, POWER) > LEVEL, fault
    absent = present = 0
    for seed in range(runs):
        noise = planned["release_noise"] * rng.standard_normal(planned["dim"])
        absent += "absent" in audited(planned, planned["present"], tmp_path, noise, 0.0, seed)[1]
        statuses = audited(planned, planned["count"], tmp_path, noise, 1.0, seed)[0]
        present += statuses["input"] == "as claimed" and "failed" not in statuses.values()
    assert stats.binom.cdf(absent, runs, POWER) > LEVEL
    # An honest release is refuted with 5% at most.
    assert stats.binom.cdf(present, runs, POWER) > LEVEL


LINES = {
    "release": (),
    "release of rounds": ("--rounds", "4"),
    "own claim": ("--claim", "5"),
    "gate": ("--confidence", "0.999", "--notice", "0.8"),
    "replace": ("--neighbours", "replace"),
    "all rounds": ("--rounds", "4", "--all-rounds"),
    "all rounds, own claim": ("--rounds", "4", "--all-rounds", "--claim", "5", "--confidence", "0.9"),
}


@pytest.mark.parametrize("name", LINES)
def test_the_audit_line_of_a_plan_works_as_printed_and_says_what_is_claimed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("--noise-multiplier", "1.54", "--dim", "2000", *LINES[name])
    planned, printed = json.loads(run(*words, "--json").stdout), run(*words).output
    # As a shell joins lines.
    (line,) = (each.strip() for each in printed.replace("\\\n", " ").splitlines() if "canaryproof audit" in each)
    # A claim never stands without the noise that it is of.
    assert "--noise-multiplier" in line
    assert ("--claim" in line) == ("own claim" in name or planned["all_rounds"])
    rng = np.random.default_rng(3)
    if planned["all_rounds"]:
        np.savez("rounds.npz", **dict(zip(("observed", "unobserved"), cosines(planned, rng), strict=True)))
    else:
        made = Canaries if planned["directions"] == "independent" else OrthonormalCanaries
        canaries = made(7, planned["count"], 2000).sum(np.arange(planned["count"]))
        np.save("release.npy", canaries + rng.normal(0.0, planned["release_noise"], 2000))
    result = CliRunner().invoke(main, [*shlex.split(line)[1:], "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["claim"], found["confidence"]) == (pytest.approx(planned["claim"], rel=1e-5), planned["confidence"])
    assert found["decision"]["notice"] == planned["notice"]
    accounting = next(finding for finding in found["findings"] if finding["question"] == "accounting")
    assert accounting["status"] == "as claimed"
    assert f"noise multiplier {planned['release_noise']:.4g}" in accounting["because"]


def cosines(planned, rng):
    """Largest cosines over rounds of canaries that coins choose, each in one of them."""
    scores = RoundScores(canaries := OrthonormalCanaries(7, planned["total"], 2000))
    coins, rounds = rng.integers(2, size=planned["total"]) == 1, planned["rounds"]
    for t in range(rounds):
        total = canaries.sum(t + rounds * np.flatnonzero(coins[t::rounds]))
        scores.add(total + rng.normal(0.0, planned["noise_multiplier"], 2000), round=t)
    return scores.maxima[coins], scores.maxima[~coins]


def test_an_audit_of_all_rounds_takes_its_options_from_the_plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("--noise-multiplier", "1.54", "--dim", "2000", "--rounds", "4", "--all-rounds")
    printed = run(*words, "--out", "plan.json", "--canary-seed", "7").output
    planned = json.loads(Path("plan.json").read_text())["plan"]
    np.savez(
        "rounds.npz", **dict(zip(("observed", "unobserved"), cosines(planned, np.random.default_rng(3)), strict=True))
    )
    assert "canaryproof audit rounds.npz --plan plan.json --report audit.html" in printed
    result = CliRunner().invoke(main, ["audit", "rounds.npz", "--plan", "plan.json", "--json"])
    found = json.loads(result.stdout)
    assert {finding["question"]: finding["status"] for finding in found["findings"]}["plan"] == "as claimed"
    assert found["claim"] == pytest.approx(planned["claim"])


def test_a_job_plans_trains_gates_reports_and_checks_and_runs_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def step(line):
        return CliRunner().invoke(main, line.split()[1:])

    # The lines of the workflow to copy, of a smaller model.
    planned, gate, check = re.findall(
        "canaryproof (?:plan|audit|check-report) .*", WORKFLOW.read_text().replace("\\\n", "")
    )
    made = step(f"{planned.replace('1e6', '2000')} --canary-seed 11")
    assert made.exit_code == 0
    assert "11" not in made.output.partition("Lines that carry it out")[2]
    count = json.loads(Path("plan.json").read_text())["decided"]["count"]
    canaries = Canaries(11, count, 2000).sum(np.arange(count))
    assert "canaryproof audit release.npy --plan plan.json --report audit.html" in " ".join(made.output.split())
    for seed in (1, 2):
        np.save("release.npy", canaries + np.random.default_rng(seed).normal(0.0, 1.54, 2000))
        passed = step(gate)
        assert (passed.exit_code, passed.stderr) == (0, "")
        assert "plan        as claimed" in passed.stdout
        assert step(check).exit_code == 0
    # An option that differs from the plan's is a departure, and never one in silence.
    assert step(f"{gate} --confidence 0.99").exit_code == 3
    np.save("release.npy", canaries + np.random.default_rng(3).normal(0.0, 0.5, 2000))
    assert step(gate).exit_code == 1
    # A disk that is full keeps the decision, and loses the files.
    with monkeypatch.context() as full:
        full.setattr(writing.os, "fsync", no_space)
        failed = step(gate)
    assert failed.exit_code == 1
    assert failed.stdout.startswith("NOT PASSED")
    assert "No space left on device" in failed.stderr
    # The report of the gate that failed is of another release than this.
    np.save("release.npy", canaries)
    assert step(check).exit_code == 1
    Path("plan.secret.json").rename("elsewhere.json")
    lost = step(gate)
    assert (lost.exit_code, lost.stderr) == (2, "Error: plan.secret.json: No such file or directory\n")
    assert "plan.secret.json" in Path("audit.xml").read_text()
    Path("elsewhere.json").rename("plan.secret.json")
    older = json.loads(Path("plan.json").read_text()) | {"version": "0.1.0"}
    Path("plan.json").write_text(json.dumps(older))
    # Another version's plan gives no options.
    refused = step(gate)
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "Missing option '--delta'. plan.json gives none, as another version of canaryproof made it" in refused.stderr


GATE = "audit release.npy --plan plan.json --fail-above-claim --report audit.json --overwrite"
CHECK = "check-report audit.json --release release.npy --plan plan.json"


def step(line):
    return CliRunner().invoke(main, line.split())


@pytest.fixture(scope="module")
def carried_out(tmp_path_factory):
    """The files of a job that passed: a plan with its secret, what was released, and the report."""
    folder = tmp_path_factory.mktemp("job")
    with pytest.MonkeyPatch.context() as inside:
        inside.chdir(folder)
        assert (
            run("--noise-multiplier", "1.54", "--dim", "2000", "--out", "plan.json", "--canary-seed", "11").exit_code
            == 0
        )
        count = json.loads(Path("plan.json").read_text())["decided"]["count"]
        noise = np.random.default_rng(1).normal(0.0, 1.54, 2000)
        np.save("release.npy", Canaries(11, count, 2000).sum(np.arange(count)) + noise)
        assert [step(line).exit_code for line in (GATE, CHECK)] == [0, 0]
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def half(content):
    return content[: len(content) // 2]


def other_release(_):
    noise = np.random.default_rng(2).normal(0.0, 1.54, 2000)
    np.save("release.npy", noise)
    return Path("release.npy").read_bytes()


def other_secret(content):
    return json.dumps(json.loads(content) | {"seed": 12}).encode()


def other_plan(content):
    return content.replace(b'"delta": 1e-06', b'"delta": 1e-05')


def other_report(content):
    return content.replace(b"PASSED", b"passed", 1)


NO_FILE, DAMAGED = "No such file or directory", "truncated or damaged"
# What becomes of a step whose input is missing, damaged or another one: the exit status, and what the line says.
STEPS = [
    (GATE, "plan.json", None, 2, NO_FILE),
    (GATE, "plan.json", half, 2, DAMAGED),
    (GATE, "plan.json", other_plan, 3, "Plan: claimed ε: 3.00836 planned"),
    (GATE, "plan.secret.json", half, 2, DAMAGED),
    (GATE, "plan.secret.json", other_secret, 2, "plan.secret.json: must be the secret of plan.json"),
    (GATE, "release.npy", None, 2, NO_FILE),
    (GATE, "release.npy", half, 2, DAMAGED),
    (GATE, "release.npy", other_release, 4, "CANNOT SAY: the input looks wrong"),
    (CHECK, "audit.json", None, 2, NO_FILE),
    (CHECK, "audit.json", half, 2, DAMAGED),
    (CHECK, "audit.json", other_report, 1, "audit.json is not true."),
    (CHECK, "release.npy", None, 2, NO_FILE),
    (CHECK, "release.npy", half, 1, "release.npy is not the audited file"),
    (CHECK, "release.npy", other_release, 1, "release.npy is not the audited file"),
    (CHECK, "plan.json", None, 2, NO_FILE),
    (CHECK, "plan.json", half, 1, "plan.json is not the plan that the audit was held against"),
    (CHECK, "plan.json", other_plan, 1, "plan.json is not the plan that the audit was held against"),
    # A third party has no secret: the report has published it.
    (CHECK, "plan.secret.json", None, 0, "PASSED"),
]


@pytest.mark.parametrize(("line", "name", "change", "status", "said"), STEPS)
def test_a_step_of_the_job_without_its_input_fails_as_it_should(
    line, name, change, status, said, carried_out, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for each, content in carried_out.items():
        if each != name:
            Path(each).write_bytes(content)
        elif change is not None:
            Path(each).write_bytes(change(content))
    result = step(line)
    assert (result.exit_code, said in result.output) == (status, True), result.output
    # Bad input has no answer, and a report of a former run stays.
    assert status != 2 or (result.stdout, result.stderr.count("\n")) == ("", 1)
    if status == 2 and name != "audit.json":
        assert Path("audit.json").read_bytes() == carried_out["audit.json"]
