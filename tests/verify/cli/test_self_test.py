import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from canaryproof.verify.cli.command_line import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "self_test_loop.py"
CLAIM = (
    *("--members", "1000", "--dim", "4736", "--noise-multiplier", "1", "--clip-norm", "1"),
    *("--rate", "0.125"),
)


def run(*words):
    return CliRunner().invoke(main, ["self-test", *words])


def test_the_example_passes_and_its_fault_is_seen():
    honest = run(f"{EXAMPLE}:training", *CLAIM)
    assert honest.exit_code == 0, honest.output
    assert honest.output.startswith("None of 16 tests refutes the claim (10 rounds, 10 canaries).")
    broken = run(f"{EXAMPLE}:broken", *CLAIM, "--json")
    assert broken.exit_code == 1
    found = json.loads(broken.output)
    assert found["failed"]
    assert found["rounds"] == 10
    assert found["replays"][0]["failed"]
    assert all(len(line) <= 80 for line in honest.output.splitlines())


@pytest.mark.parametrize(
    ("code", "name", "error"),
    [
        ("", "training.py", "training.py: must be FILE.py:FUNCTION"),
        ("", "training.txt:f", "must be FILE.py:FUNCTION"),
        ("", "missing.py:f", "missing.py: there is no such file"),
        ("f = 3", "training.py:f", "training.py: has no function f"),
        ("1 / 0", "training.py:f", "training.py: raised ZeroDivisionError: division by zero"),
        ("def f(x):\n    1 / 0", "training.py:f", "raised ZeroDivisionError (training.py, line 2): division by zero"),
        (
            "def f(x):\n    pass",
            "training.py:f",
            "must add at least one round by inspection.add(release, drawn, known)",
        ),
    ],
)
def test_a_wrong_training_is_one_line(tmp_path, monkeypatch, code, name, error):
    monkeypatch.chdir(tmp_path)
    Path("training.py").write_text(code)
    result = run(name, *CLAIM)
    assert result.exit_code == 2
    assert error in result.output
    assert len(result.output.splitlines()) == 1


def test_a_claim_out_of_range_is_one_line():
    result = run(f"{EXAMPLE}:training", *CLAIM, "--rate", "2")
    assert result.exit_code == 2
    assert result.output == "Error: --rate: must lie strictly between 0 and 1, not 2.0\n"
