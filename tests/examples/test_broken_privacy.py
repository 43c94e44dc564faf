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
import broken_privacy  # noqa: E402

EXAMPLES = {"opacus": "opacus_training", "jax_privacy": "jax_privacy_training", "flower": "flower_app"}
MODULES = {"opacus": "opacus", "jax_privacy": "jax_privacy", "flower": "flwr"}
TITLES = {"opacus": "Opacus", "jax_privacy": "jax_privacy", "flower": "Flower"}
INSPECTED = ("jax_privacy", "flower")
# The finding by which a watch says that a fault of Opacus' example is not passed.
FINDINGS = {
    "noise-per-microbatch": "noise",
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
    "accounted-steps": "accounting",
    "accounted-delta": "accounting",
}


def faults(name):
    tree = ast.parse((ROOT / "examples" / f"{EXAMPLES[name]}.py").read_text(encoding="utf-8"))
    (value,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FAULTS"
    ]
    return ast.literal_eval(value)


def rows_of_page(name):
    page = (ROOT / "docs/frameworks.md").read_text(encoding="utf-8")
    table = re.search(rf"^### {TITLES[name]}\n\n(\| fault .*?)\n\n", page, re.M | re.S)[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_page_has_the_expected_finding_on_every_fault_of_opacus():
    rows = rows_of_page("opacus")
    assert rows[0] == ["none", "–", "–", "PASSED"]
    assert [row[:2] for row in rows[1:]] == [[title, FINDINGS[fault]] for fault, title in faults("opacus").items()]


@pytest.mark.skipif(find_spec("opacus") is None, reason="needs opacus")
def test_a_watch_passes_honest_trainings_and_fails_each_fault_of_opacus_by_the_expected_finding():
    found = answer("""
import json
import broken_privacy, opacus_training
cells = {str(fault): broken_privacy.by_watch(opacus_training, fault) for fault in (None, *opacus_training.FAULTS)}
print(json.dumps({fault: str(first) if first != "–" else last for fault, (first, _, last) in cells.items()}))
""")
    assert found == {"None": "PASSED", **FINDINGS}


@pytest.mark.parametrize("name", INSPECTED)
def test_the_page_has_every_fault_and_an_instrument_notices_each(name):
    rows = rows_of_page(name)
    assert rows[0] == ["none", *["–"] * 4]
    assert [row[0] for row in rows[1:]] == list(faults(name).values())
    assert all(row[1].isdigit() or row[3] != "–" or row[4] != "–" for row in rows[1:])


@pytest.mark.parametrize("name", INSPECTED)
def test_the_page_has_a_power_of_at_least_99_percent_for_every_fault(name):
    page = (ROOT / "docs/frameworks.md").read_text(encoding="utf-8")
    section = page.partition(f"\n### {TITLES[name]}\n")[2].partition("\n### ")[0]
    table = section[section.index("| fault | noticed by |") :].strip()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == list(faults(name).values())
    assert all(float(row[3].removeprefix("at least ")) >= 0.99 for row in rows)


def test_batches_of_one_size_and_without_returns_are_noticed_after_the_steps_of_the_page():
    assert broken_privacy.record_steps("returns", 1510, 8) == 2
    assert broken_privacy.record_steps("spread of batch sizes", 1510, 8) == 5


@pytest.mark.deep
@pytest.mark.parametrize(("dim", "bits"), [(4810, 8), (8836, 11)])
def test_repeated_values_show_coarse_noise_with_the_power_of_the_page(dim, bits):
    assert 0.992 <= broken_privacy.coarse_power(dim, bits) < 0.993


def answer(program):
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", INSPECTED)
def test_instruments_notice_each_fault_and_no_honest_training(name):
    if find_spec(MODULES[name]) is None:
        pytest.skip(f"needs {MODULES[name]}")
    noticed = answer(f"""
import json
from importlib import import_module
import broken_privacy as example
module, train, make_step, claim = example.INSPECTED["{name}"]
module = import_module(module)
def noticed(fault):
    looks = (
        lambda: example.inspected(train, module, fault, 0) is not None,
        lambda: example.replayed(*make_step(module, fault)).has_failed,
        lambda: bool(example.understated(module, fault, claim)),
    )
    return any(look() for look in looks)
print(json.dumps([noticed(fault) for fault in (None, *module.FAULTS)]))
""")
    assert noticed == [False, *[True] * len(faults(name))]
