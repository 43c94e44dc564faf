"""What instruments see of the examples' faults: the page's tables, and trainings where a framework is installed."""

import ast
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = {"opacus": "opacus_training", "jax_privacy": "jax_privacy_training", "flower": "flower_app"}
MODULES = {"opacus": "opacus", "jax_privacy": "jax_privacy", "flower": "flwr"}


def faults(name):
    tree = ast.parse((ROOT / "examples" / f"{EXAMPLES[name]}.py").read_text(encoding="utf-8"))
    (value,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FAULTS"
    ]
    return ast.literal_eval(value)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_has_every_fault_and_each_is_refuted(name):
    page = (ROOT / "docs/how/self_test.md").read_text(encoding="utf-8")
    title = {"opacus": "Opacus", "jax_privacy": "jax_privacy", "flower": "Flower"}[name]
    table = re.search(rf"^{title}:\n\n(\| fault .*?)\n\n", page, re.M | re.S)[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert rows[0] == ["none", "none", "none"]
    assert [row[0] for row in rows[1:]] == list(faults(name).values())
    assert all(row[1].isdigit() and row[2] != "none" for row in rows[1:])


@pytest.mark.parametrize("name", EXAMPLES)
def test_trainings_are_refuted_where_they_have_a_fault(name):
    if find_spec(MODULES[name]) is None:
        pytest.skip(f"needs {MODULES[name]}")
    program = f"""
import json
import inspected_privacy as example
faults = [None, *{list(faults(name))!r}]
print(json.dumps([example.first_alarm(example.{name}, fault, 0) is not None for fault in faults]))
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [False, *[True] * len(faults(name))]
