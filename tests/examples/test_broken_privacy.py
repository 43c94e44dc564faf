"""What is seen of the examples' faults: the page's tables, and trainings where a framework is installed."""

import ast
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))

EXAMPLES = {
    "opacus": "opacus_training",
    "jax_privacy": "jax_privacy_training",
    "flower": "flower_app",
    "ddp": "distributed_training",
}
MODULES = {"opacus": "opacus", "jax_privacy": "jax_privacy", "flower": "flwr", "ddp": "opacus"}
TITLES = {"opacus": "Opacus", "jax_privacy": "jax_privacy", "flower": "Flower", "ddp": "Opacus in two processes"}
# The finding by which a watch says that a fault of these examples is not passed.
FINDINGS = {
    "noise-per-microbatch": "noise",
    "noise-per-client": "noise",
    "dropped-clients": "noise",
    "batch-twice": "noise",
    "clip-after-average": "clipping",
    "fixed-batches": "sampling",
    "normalised-after-noise": "clipping",
    "reused-noise": "noise",
    "sensitivity-apart": "noise",
    "fixed-size": "sampling",
    "padding": "clipping",
    "per-layer": "clipping",
    "coarse-noise": "noise",
    "noise-halved": "noise",
    "noise-divided": "noise",
    "sum-left-out": "noise",
    "clipped-in-one": "clipping",
    "drawn-from-all": "sampling",
    "accounted-rate": "sampling",
    "accounted-steps": "accounting",
    "accounted-delta": "accounting",
}
# A bare ε does not say how Flower's clients are drawn, by which it could be so small.
OPEN = {("flower", "accounted-delta"): "CANNOT SAY"}


def faults(name):
    tree = ast.parse((ROOT / "examples" / f"{EXAMPLES[name]}.py").read_text(encoding="utf-8"))
    (value,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FAULTS"
    ]
    return ast.literal_eval(value)


def expected(name, fault):
    return OPEN.get((name, fault), FINDINGS[fault])


def rows_of_page():
    page = (ROOT / "docs/frameworks.md").read_text(encoding="utf-8")
    table = re.search(r"^## Faults and frameworks\n.*?\n\n(\| fault .*?)\n\n", page, re.M | re.S)[1]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_has_the_expected_finding_on_every_fault(name):
    cells = {row["fault"]: row[TITLES[name]].partition(",")[0] for row in rows_of_page() if row[TITLES[name]]}
    # A fault has the title that it has in the first example with it.
    titles = {}
    for each in EXAMPLES:
        for fault, title in faults(each).items():
            titles.setdefault(fault, title)
    assert cells == {"none": "PASSED", **{titles[fault]: expected(name, fault) for fault in faults(name)}}


def test_attackers_who_see_less_notice_nothing_but_missing_noise():
    noticed = {row["fault"] for row in rows_of_page() if row["attackers"] not in ("", "none")}
    noise = {title for fault, title in faults("opacus").items() if FINDINGS[fault] == "noise"}
    assert noticed < noise


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_watch_passes_honest_trainings_and_fails_each_fault_by_the_expected_finding(name):
    if find_spec(MODULES[name]) is None:
        pytest.skip(f"needs {MODULES[name]}")
    found = answer(f"""
import json
from importlib import import_module
import broken_privacy
module, train = broken_privacy.WATCHED["{name}"]
example = import_module(module)
cells = {{str(fault): broken_privacy.by_watch(train, example, fault) for fault in (None, *example.FAULTS)}}
print(json.dumps({{fault: str(first) if first != "–" else last for fault, (first, _, last) in cells.items()}}))
""")
    assert found == {"None": "PASSED", **{fault: expected(name, fault) for fault in faults(name)}}


def answer(program):
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
