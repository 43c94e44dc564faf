import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from canaryproof.verify import verify_command as module
from canaryproof.verify.results import Check, Outcome, Subject, Verdict

SEEN = []


def check(name, subject, verdict):
    def judge(context):
        SEEN.append((name, context.level, context.seed))
        return Outcome(verdict, "a finding", {"draw": int(context.key(name).generate_state(1)[0])})

    return Check(name, subject, "a source", "a statement", judge)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(
        module,
        "SUITES",
        {
            "good": (
                check("own", Subject.IMPLEMENTATION, Verdict.CONFIRMED),
                check("theirs", Subject.DOCUMENT, Verdict.REFUTED),
            ),
            "bad": (check("broken", Subject.IMPLEMENTATION, Verdict.REFUTED),),
        },
    )
    SEEN.clear()
    return lambda *arguments: CliRunner().invoke(module.verify_command, arguments)


def test_a_refuted_document_is_a_finding_and_not_a_failure(run):
    result = run("good")
    assert result.exit_code == 0
    assert "refuted" in result.output


def test_a_refuted_statement_of_ours_fails_and_is_named(run):
    result = run("good", "bad")
    assert result.exit_code == 1
    assert "broken" in result.output


def test_all_suites_run_by_default_with_level_and_seed(run):
    run("--level", "full", "--seed", "9")
    assert [(name, "full", 9) for name in ("own", "theirs", "broken")] == SEEN


def test_json_is_one_document_and_equal_runs_print_equal_bytes(run):
    one, other = run("good", "--json", "--seed", "3"), run("good", "--json", "--seed", "3")
    assert one.stdout_bytes == other.stdout_bytes
    assert [result["id"] for result in json.loads(one.stdout)["results"]] == ["own", "theirs"]
    assert json.loads(run("good", "--json", "--seed", "4").stdout) != json.loads(one.stdout)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(["nosuch"], "nosuch"), (["--seed", "-1"], "--seed"), (["--level", "medium"], "--level")],
)
def test_bad_input_exits_with_2_and_runs_nothing(run, arguments, named):
    result = run(*arguments)
    assert result.exit_code == 2
    assert named in result.stderr
    assert SEEN == []


def test_a_file_in_place_of_the_folder_is_refused_before_the_work(run, tmp_path):
    (tmp_path / "file").write_text("precious")
    assert run("good", "--out", str(tmp_path / "file" / "sub")).exit_code == 2
    assert (tmp_path / "file").read_text() == "precious"
    assert SEEN == []


def test_the_folder_gets_results_and_summary(run, tmp_path):
    run("good", "--out", str(tmp_path / "a" / "b"))
    assert json.loads((tmp_path / "a" / "b" / "results.json").read_text())["seed"] == 0
    assert "a statement" in (tmp_path / "a" / "b" / "summary.md").read_text()


def test_the_quick_run_of_everything_holds():
    # What ``make verify`` does, from the outside.
    command = [Path(sys.executable).with_name("canaryproof"), "verify", "--json", "--seed", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert {row["suite"] for row in json.loads(result.stdout)["results"]} == {"numerics", "gaussian", "theorems"}
