import json

from click.testing import CliRunner

from canaryproof.verify.cli.command_line import main


def run(*words):
    return CliRunner().invoke(main, ["plan", *words])


def test_the_plan_is_printed():
    result = run("--noise-multiplier", "1.0", "--rounds", "500", "--dim", "1e6", "--claim", "3")
    assert result.exit_code == 0
    assert "canaryproof audit release.npy --canaries" in result.output
    assert "What no number of canaries sees:" in result.output


def test_json_has_the_same():
    found = json.loads(run("--noise-multiplier", "1.54", "--dim", "1e5", "--json").output)
    assert found["dim"] == 100_000
    assert found["count"] == max(found["present"], found["seeing"])
    assert any(fault["epsilon"] is None for fault in found["faults"])
    assert found["commands"][-1].startswith("canaryproof audit release.npy")


def test_all_rounds_are_planned_for():
    words = ("--noise-multiplier", "1.54", "--rounds", "4", "--dim", "1e5", "--claim", "3.1", "--all-rounds")
    assert "canaryproof audit rounds.npz --dim 100000" in run(*words).output
    found = json.loads(run(*words, "--json").output)
    assert found["all_rounds"]
    assert len(found["commands"]) == 7


def test_a_value_out_of_range_is_one_line():
    result = run("--noise-multiplier", "nan", "--dim", "1e5")
    assert result.exit_code == 2
    assert result.output == "Error: --noise-multiplier: must lie between 0.01 and 1e+06, not nan\n"
