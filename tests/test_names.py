"""Names by which a reader tells things apart."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("kernels", "proofs_check", "verify", "reports")


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path in (path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ClassDef):
                places[statement.name].append(f"{path.relative_to(ROOT)}:{statement.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
    assert len(places) > 100
