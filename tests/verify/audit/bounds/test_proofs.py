"""Every bound names its proof, and the proof knows the code that it is of.

Where a bound's code or its proof has changed, read the sections of ``proofs_check/lower_bounds.md`` that it names, and
mend them. Then ``python -m tests.verify.audit.bounds.test_proofs`` records that they belong together.
"""

import ast
import hashlib
import importlib
import inspect
import json
import re
from functools import cache
from pathlib import Path

import pytest

from canaryproof.proofs_check.code_digest import code_digest
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.lower_bound import never

PROOFS = Path(__file__).parents[4] / "proofs_check/lower_bounds.md"
RECORD = Path(__file__).parent / "proofs.json"
ROOM = "canaryproof.verify.audit.bounds"
NOT_PROVEN = "7"
# Module and sections of each bound. That by participations is of a record, and not in the catalogue.
BOUNDS = {name: (method.compute.__module__, method.proof) for name, method in METHODS.items()}
BOUNDS["participations"] = (f"{ROOM}.participations", ("5a",))


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## (\w+)\. ", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@cache
def modules(name: str) -> set[str]:
    """A module of the bounds and all that it imports from there."""
    reached, left = set(), [name]
    while left:
        reached.add(module := left.pop())
        for node in ast.walk(ast.parse(inspect.getsource(importlib.import_module(module)))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{ROOM}."):
                left += [node.module] if node.module not in reached else []
    return reached


@cache
def digest(source: str) -> str:
    return code_digest([source])


def records(text: str) -> dict[str, dict[str, str]]:
    of_section, rows = sections(text), {}
    for name, (module, numbers) in BOUNDS.items():
        loaded = [importlib.import_module(each) for each in sorted(modules(module))]
        code = "".join(digest(inspect.getsource(each)) for each in loaded)
        proof = " ".join("".join(of_section[number] for number in numbers).split())
        rows[name] = {
            "code": hashlib.sha256(code.encode()).hexdigest(),
            "proof": hashlib.sha256(proof.encode()).hexdigest(),
        }
    return rows


@pytest.fixture(scope="module")
def recorded():
    return json.loads(RECORD.read_text(encoding="utf-8"))


def test_every_bound_names_its_sections():
    known = sections(PROOFS.read_text(encoding="utf-8"))
    for name, method in METHODS.items():
        assert set(method.proof) <= set(known), name
        # A bound without a proof names the section that says so, and no other one.
        assert (method.proof == (NOT_PROVEN,)) is (method.coverage is never), name
        assert method.proof, name


@pytest.mark.parametrize("name", BOUNDS)
def test_the_proof_is_of_this_code(name, recorded):
    assert records(PROOFS.read_text(encoding="utf-8"))[name] == recorded[name], __doc__


def test_changed_code_or_a_changed_proof_is_noticed(monkeypatch, recorded):
    text = PROOFS.read_text(encoding="utf-8")
    changed = records(text.replace("P(W ≥ v) ≤ β + (1 − β)", "P(W ≥ v) ≤ β + (1 + β)"))
    assert {name for name in BOUNDS if changed[name] != recorded[name]} == {"one-run", "one-run-gaussian"}
    source = inspect.getsource
    monkeypatch.setattr(
        inspect, "getsource", lambda module: source(module).replace("1.0 - np.exp(-epsilon)", "1.0 - 1")
    )
    assert records(text)["fixed-sequence"]["code"] != recorded["fixed-sequence"]["code"]


if __name__ == "__main__":
    RECORD.write_text(json.dumps(records(PROOFS.read_text(encoding="utf-8")), indent=2) + "\n", encoding="utf-8")
