import json
import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from canaryproof.verify.command_line import main

EXAMPLE = Path(__file__).parents[4] / "examples" / "self_test_loop.py"


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    """The command looks for modules in the training's folder."""
    monkeypatch.setattr(sys, "path", list(sys.path))


def run(*words):
    return CliRunner().invoke(main, ["self-test", *words])


def test_the_example_passes_and_its_fault_is_seen():
    honest = run(f"{EXAMPLE}:training")
    assert honest.exit_code == 0, honest.output
    assert honest.output.startswith("PASSED: nothing contradicts the claimed")
    assert all(len(line) <= 80 for line in honest.output.splitlines())
    broken = run(f"{EXAMPLE}:broken", "--json")
    assert broken.exit_code == 1
    found = json.loads(broken.output)
    assert found["decision"]["outcome"] == "NOT PASSED"
    assert [each["status"] for each in found["findings"] if each["question"] == "noise"] == ["failed"]


def test_a_training_finds_its_neighbours_and_its_prints_are_no_answer(tmp_path):
    (tmp_path / "steps_of_mine.py").write_text("import numpy as np\nNUMBER = 2\n")
    code = """
    from __future__ import annotations
    from dataclasses import dataclass
    import numpy as np
    import canaryproof as cp
    from steps_of_mine import NUMBER
    @dataclass
    class Setting:
        rounds: int = NUMBER
    def run():
        watch = cp.watch(delta=1e-5, claim=cp.accounting.gaussian(1.0, participations=2))
        for t in range(Setting().rounds):
            print("round", t)
            noise = np.random.default_rng(t).normal(size=40)
            watch.step(release=noise, total=np.zeros(40), clip_norm=1.0)
        return watch
    """
    (tmp_path / "training_of_mine.py").write_text(textwrap.dedent(code))
    result = run(f"{tmp_path / 'training_of_mine.py'}:run", "--json")
    # Neither the clipping nor the sampling was handed over.
    assert result.exit_code == 3
    assert json.loads(result.stdout)["steps"] == 2
    assert "round 1" in result.stderr


def test_a_function_of_an_inspection_has_the_new_spelling_in_a_line(tmp_path):
    (tmp_path / "old.py").write_text("def run(inspection):\n    inspection.add(1, 2, 3)\n")
    result = run(f"{tmp_path / 'old.py'}:run")
    assert result.exit_code == 2
    assert "must take no argument and return its watch" in result.stderr
    for old, new in (("add", "watch.step("), ("update and replay", "watch.clipping(")):
        assert old in result.stderr
        assert new in result.stderr
    assert result.stderr.strip().count("\n") == 0
    left = run(f"{EXAMPLE}:training", "--members", "1000")
    assert left.exit_code == 2
    assert "--members has left canaryproof self-test in 0.3" in left.stderr
