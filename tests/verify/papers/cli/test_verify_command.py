import contextlib
import json
import os
import sqlite3
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from canaryproof.verify.audit.engine import provenance
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.check.results import SUITE_NAMES, Effort, Run, Verdict
from canaryproof.verify.papers.claims import experiment_results
from canaryproof.verify.papers.claims.experiment_results import FinishedMeasurements
from canaryproof.verify.papers.cli import verify_command
from canaryproof.verify.papers.runs import expected
from canaryproof.verify.papers.runs.plan import load


@pytest.fixture
def log(tmp_path_factory):
    """Where the fake checks say that they were judged."""
    return tmp_path_factory.mktemp("log") / "log"


@pytest.fixture
def run(fake_suites, monkeypatch, log):
    monkeypatch.setenv("FAKE_LOG", str(log))
    monkeypatch.setattr(verify_command, "SUITES", "fake_suites:SUITES")
    monkeypatch.setattr(expected, "read", lambda: fake_suites.EXPECTED)
    # Results do not depend on it, as test_plan.py has it, and each process takes half a second to start.
    monkeypatch.setattr(verify_command, "threads", lambda: 1)
    return lambda *arguments: CliRunner().invoke(main, ["verify", *map(str, arguments)])


def judged(log):
    return sorted(line.split()[2] for line in log.read_text().splitlines()) if log.exists() else []


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "run.sqlite"}


def test_a_refuted_document_is_a_finding_and_not_a_failure(run):
    result = run("good")
    assert result.exit_code == 0
    assert "refuted" in result.output
    # What a check found is not markup.
    assert "[found] quick" in result.output
    assert "1 of 1 own checks hold; documents: 1 refuted" in result.output


def test_a_terminal_gets_a_line_a_suite_and_a_pipe_one_a_check_too(run, monkeypatch):
    def lines(*arguments):
        # Without the seconds, in which the last words of a suite's line differ.
        return [
            line.rstrip("0123456789 ") if line[:4] in ("good", "bad ") else line
            for line in run(*arguments).stdout.splitlines()
        ]

    piped = lines("good", "bad")
    assert [line.split()[:2] for line in piped[:3]] == [
        ["own", "confirmed"],
        ["theirs", "refuted"],
        ["broken", "refuted"],
    ]
    monkeypatch.setattr(verify_command.screen, "is_terminal", lambda: True)
    shown = lines("good", "bad")
    assert shown == piped[4:]
    table = [line.split()[:5] for line in run("good", "bad").stdout.splitlines()[1:3]]
    assert table == [["good", "1", "1", "1", "1"], ["bad", "1", "0", "0", "0"]]
    assert lines("good", "bad", "--all") == piped


@pytest.mark.parametrize(
    ("name", "said"), [("god", "near it: good"), ("convergence", "canaryproof convergence"), ("qqq", "there are good")]
)
def test_a_wrong_suite_is_answered_with_what_is_near(run, name, said):
    result = run(name)
    assert result.exit_code == 2
    assert said in result.stderr


def test_measurements_reach_the_checks_and_decide_which_run_goes_on(run, tmp_path, monkeypatch):
    digests = iter(("one", "one", "two"))
    monkeypatch.setattr(experiment_results, "read", lambda _: FinishedMeasurements({}, None, next(digests)))
    assert run("good", "--data", tmp_path, "--out", tmp_path / "out").exit_code == 0
    assert json.loads((tmp_path / "out" / "environment.json").read_text())["measurements"] == "one"
    assert run("good", "--data", tmp_path, "--out", tmp_path / "out", "--resume").exit_code == 0
    result = run("good", "--data", tmp_path, "--out", tmp_path / "out", "--resume")
    assert result.exit_code == 2
    assert "was begun with measurements one, not two" in result.stderr
    result = run("good", "--out", tmp_path / "out", "--resume")
    assert "was begun with measurements one, not None" in result.stderr


def test_a_folder_without_experiments_is_refused_before_any_work(run, log, tmp_path):
    result = run("good", "--data", tmp_path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "must hold folders that canaryproof train left" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not log.exists()


def test_a_refuted_statement_of_ours_fails_and_is_named(run):
    result = run("good", "bad")
    assert result.exit_code == 1
    assert "failed broken: [found] quick" in result.output


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_verdict_that_changes_fails_and_is_named_with_its_reason(run, monkeypatch, form):
    monkeypatch.setattr(expected, "read", lambda: {("good", "theirs"): Verdict.CONFIRMED})
    result = run("good", *form)
    assert result.exit_code == 1
    shown = result.stderr if form else result.stdout
    assert "changed theirs: expected confirmed, found refuted: [found] quick" in shown
    if form:
        assert json.loads(result.stdout)["seed"] == 0


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_levels_that_add_up_to_more_than_the_budget_fail(run, monkeypatch, form):
    monkeypatch.setattr(Run, "false_alarm_probability", 2e-3)
    result = run("good", *form)
    assert result.exit_code == 1
    shown = result.stderr if form else result.stdout
    said = "failed the levels of 0 tests add up to 0.002, more than the 0.001 that a run may have"
    assert said in " ".join(shown.split())


def test_level_and_seed_reach_the_checks(run):
    document = json.loads(run("good", "--level", "full", "--seed", "9", "--json").stdout)
    assert (document["level"], document["seed"]) == ("full", 9)
    assert document["results"][0]["finding"] == "[found] full"


def test_all_suites_run_by_default_and_a_repeated_one_once(run, fake_suites, monkeypatch):
    monkeypatch.setattr(fake_suites, "SUITES", {name: fake_suites.SUITES[name] for name in ("good", "bad")})
    plans = []
    nothing = Run("0", Effort.QUICK, 0, ())
    monkeypatch.setattr(verify_command, "_run", lambda plan, *_: plans.append(plan) or (nothing, {}))
    # Nothing that is expected is judged.
    monkeypatch.setattr(expected, "changes", lambda *_, **__: [])
    for arguments in ((), ("bad", "good", "bad")):
        assert run(*arguments).exit_code == 0
    assert [plan.suites for plan in plans] == [("good", "bad"), ("bad", "good")]


def test_a_suite_that_lacks_an_extra_is_skipped_or_refused(run, log, fake_suites, monkeypatch):
    # The processes that judge import the whole module.
    suites = {name: fake_suites.SUITES[name] for name in ("good", "bad")}
    monkeypatch.setattr(verify_command, "load", lambda _: suites)
    monkeypatch.setattr(verify_command, "lacking", lambda name: "needs more" if name == "bad" else "")
    refused = run("good", "bad")
    assert refused.exit_code == 2
    assert "SUITE: bad needs more" in refused.stderr
    assert judged(log) == []
    result = run()
    assert result.exit_code == 0
    assert result.stderr == "skipped: suite bad needs more\n"
    assert judged(log) == ["own", "theirs"]


def test_json_is_one_document_and_equal_runs_print_equal_bytes(run, tmp_path):
    one, other = run("good", "--json", "--seed", "3"), run("good", "--json", "--seed", "3", "--out", tmp_path)
    assert one.stdout_bytes == other.stdout_bytes == (tmp_path / "results.json").read_bytes()
    assert [result["id"] for result in json.loads(one.stdout)["results"]] == ["own", "theirs"]
    assert json.loads(run("good", "--json", "--seed", "4").stdout) != json.loads(one.stdout)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nosuch"], "nosuch"),
        (["--seed", "-1"], "--seed"),
        (["--level", "medium"], "--level"),
        (["--resume"], "--out"),
        *((["--time-limit", x], "--time-limit") for x in ("0", "nan", "inf", "1e10", "x")),
    ],
)
def test_bad_input_exits_with_2_and_runs_nothing(run, log, arguments, named):
    result = run(*arguments)
    assert result.exit_code == 2
    assert named in result.stderr
    assert judged(log) == []


def test_a_file_in_place_of_the_folder_is_refused_before_the_work(run, log, tmp_path):
    (tmp_path / "file").write_text("precious")
    assert run("good", "--out", tmp_path / "file" / "sub").exit_code == 2
    assert (tmp_path / "file").read_text() == "precious"
    assert judged(log) == []


def test_what_is_somebody_elses_is_found_before_the_work_and_stays(run, log, tmp_path):
    (tmp_path / "summary.md").write_text("precious")
    result = run("good", "--out", tmp_path)
    assert result.exit_code == 2
    assert f"{tmp_path}/summary.md: was not written by canaryproof, and is not replaced" in result.output
    assert (tmp_path / "summary.md").read_text() == "precious"
    assert judged(log) == []
    (tmp_path / "run.sqlite").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "summary.md").unlink()
    assert "run.sqlite: must be a regular file" in run("good", "--out", tmp_path).output
    assert not (tmp_path / "elsewhere").exists()


def test_the_folder_gets_results_summary_and_the_run_file(run, tmp_path):
    out = tmp_path / "a" / "b"
    run("good", "--out", out)
    assert json.loads((out / "results.json").read_text())["seed"] == 0
    assert "a statement" in (out / "summary.md").read_text()
    with sqlite3.connect(out / "run.sqlite") as database:
        meta = dict(database.execute("SELECT * FROM meta"))
    assert (meta["state"], meta["level"], meta["seed"], meta["suites"]) == ("finished", "quick", "0", "good")
    assert {"numpy", "numba", "python", "processor", "source code", "command"} < meta.keys()


def test_a_finished_run_is_done_anew_or_only_written_again(run, log, tmp_path):
    run("good", "--out", tmp_path)
    first = contents(tmp_path)
    refused = run("good", "--out", tmp_path)
    assert refused.exit_code == 2
    assert "holds a finished run with 2 results: write its pages again with --resume" in refused.stderr
    assert run("good", "--out", tmp_path, "--overwrite").exit_code == 0
    assert judged(log) == ["own", "own", "theirs", "theirs"]
    (tmp_path / "results.json").unlink()
    assert run("good", "--out", tmp_path, "--resume").exit_code == 0
    assert judged(log) == ["own", "own", "theirs", "theirs"]
    assert contents(tmp_path) == first


def test_another_run_is_not_resumed(run, tmp_path):
    run("good", "--out", tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for change in (("--seed", "1"), ("--level", "full"), ("bad",)):
        result = run("good", "--out", tmp_path, "--resume", *change)
        assert result.exit_code == 2
        assert "was begun with" in result.output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("function", "name"), [("_digest_of_code", "source code"), ("_linear_algebra", "linear algebra")]
)
def test_a_run_of_other_code_is_not_resumed(run, tmp_path, monkeypatch, function, name):
    run("good", "--out", tmp_path)
    monkeypatch.setattr(provenance, function, lambda: "other")
    result = run("good", "--out", tmp_path, "--resume")
    assert result.exit_code == 2
    assert f"was begun with {name}" in result.output


def test_results_outlast_pages_that_cannot_be_written(run, log, tmp_path):
    (tmp_path / "claims-theirs.md").mkdir()
    result = run("good", "--out", tmp_path)
    assert result.exit_code == 74
    assert "--resume writes them" in result.stderr
    assert "1 of 1 own checks hold" in result.stdout
    assert not list(tmp_path.glob(".*"))
    assert "holds an unfinished run with 2 results" in run("good", "--out", tmp_path).output
    (tmp_path / "claims-theirs.md").rmdir()
    assert run("good", "--out", tmp_path, "--resume").exit_code == 0
    assert judged(log) == ["own", "theirs"]


def test_a_second_run_in_the_same_folder_is_refused(start, tmp_path):
    first = start("slow", "--out", tmp_path / "run")
    while not (tmp_path / "run" / "run.sqlite").exists():
        assert first.poll() is None
        time.sleep(0.05)
    second = start("slow", "--out", tmp_path / "run", "--resume")
    _, error = second.communicate()
    assert second.returncode == 2
    assert "another run is writing to it" in error
    assert error.count("\n") == 1
    assert first.poll() is None


@pytest.mark.deep
def test_a_clock_that_jumps_by_days_changes_nothing(start, run):
    judging = start("good", "naps", "--json", "--time-limit", "60", path=[Path(__file__).parents[2] / "jumping_clock"])
    printed, _ = judging.communicate()
    assert printed == run("good", "naps", "--json").stdout


@pytest.mark.deep
@pytest.mark.skipif(sys.platform == "win32", reason="has no such terminals")
def test_a_terminal_shows_how_far_it_is(start):
    ours, theirs = os.openpty()
    run = start("brisk", stderr=theirs)
    os.close(theirs)
    shown = b""
    # When the other side is closed, Linux reports an error and others an end.
    with contextlib.suppress(OSError):
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    assert run.wait() == 0
    assert b" 60 of 60 " in shown
    # Checks are unequal, so that nobody knows what is left.
    assert b" left" not in shown


def test_the_quick_run_of_everything_holds(quick_run):
    # All own checks are confirmed, and all other verdicts are as expected.
    assert quick_run.status == 0, quick_run.printed
    suites = load(verify_command.SUITES)
    assert tuple(suites) == SUITE_NAMES
    judged_by_suite = [(result.suite, result.id) for result in quick_run.run.results]
    assert judged_by_suite == [(name, check.id) for name, checks in suites.items() for check in checks]
