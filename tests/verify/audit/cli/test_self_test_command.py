import json
import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from canaryproof.verify.command_line import main

EXAMPLE = Path(__file__).parents[4] / "examples" / "self_test_loop.py"
CLAIM = (
    *("--members", "1000", "--dim", "4736", "--noise-multiplier", "1", "--clip-norm", "1"),
    *("--rate", "0.125"),
)


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    """The command looks for modules in the training's folder."""
    monkeypatch.setattr(sys, "path", list(sys.path))


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


def test_a_training_finds_its_neighbours_and_its_prints_are_no_answer(tmp_path):
    (tmp_path / "steps_of_mine.py").write_text("import numpy as np\nNUMBER = 2\n")
    code = """
    from __future__ import annotations
    from dataclasses import dataclass
    import numpy as np
    from steps_of_mine import NUMBER
    @dataclass
    class Setting:
        rounds: int = NUMBER
    def run(inspection):
        for t in range(Setting().rounds):
            print("round", t)
            inspection.add(np.random.default_rng(t).normal(size=40), [], np.zeros(40))
    """
    (tmp_path / "training_of_mine.py").write_text(textwrap.dedent(code))
    claim = ("--members", 10, "--dim", 40, "--noise-multiplier", 1, "--clip-norm", 1, "--divisor", 1)
    result = run(f"{tmp_path / 'training_of_mine.py'}:run", *map(str, claim), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["rounds"] == 2
    assert "round 1" in result.stderr
