"""Names by which a reader tells things apart."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    path
    for room in ("kernels", "proofs_check", "verify", "reports", "other_tools")
    for path in sorted((ROOT / room).rglob("*.py"))
]
# Names that say nothing of what they name.
EMPTY = {"found", "kept", "one", "ours", "place", "places", "said", "told", "what"}
# Quantities that modules compute and their functions also take: the field has one name for both.
QUANTITIES = {"delta", "epsilon", "log_delta", "noise_multiplier"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path in FILES:
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ClassDef):
                places[statement.name].append(f"{path.relative_to(ROOT)}:{statement.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
    assert len(places) > 100


COMPREHENSION = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def bound(
    statements: list[ast.stmt], without: Any = ast.Lambda
) -> Iterator[ast.Name | ast.arg | Function | ast.ClassDef]:
    """Yield what statements give a name to in their own scope."""
    for statement in statements:
        if isinstance(statement, Function | ast.ClassDef):
            yield statement
            continue
        inner = list(ast.iter_child_nodes(statement))
        while inner:
            node = inner.pop()
            if isinstance(node, Function | ast.ClassDef):
                yield node
            elif not isinstance(node, without):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node
                inner += ast.iter_child_nodes(node)


def parameters(function: Function) -> list[ast.arg]:
    every = function.args
    single = [argument for argument in (every.vararg, every.kwarg) if argument is not None]
    return [*every.posonlyargs, *every.args, *every.kwonlyargs, *single]


def name(node: ast.AST) -> str:
    return next(getattr(node, field) for field in ("id", "arg", "name") if hasattr(node, field))


def module_names(tree: ast.Module) -> set[str]:
    imports = (node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    imported = {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}
    return imported | {name(node) for node in bound(tree.body, ast.Lambda | COMPREHENSION)}


def hidden(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each name of a function's own scope that hides one of its module, with its line."""
    outer = module_names(tree)
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        shared = {each for node in function.body if isinstance(node, ast.Global) for each in node.names}
        for node in (*parameters(function), *bound(function.body)):
            if name(node) in outer - shared - QUANTITIES:
                yield node.lineno, name(node)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_name_says_what_it_names_and_hides_none_of_its_module(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    every = (node for node in ast.walk(tree) if isinstance(node, Function | ast.ClassDef | ast.arg | ast.Name))
    empty = [(node.lineno, name(node)) for node in every if name(node).strip("_").lower() in EMPTY]
    assert empty == []
    assert list(hidden(tree)) == []


def test_hidden_names_are_seen():
    code = """
import a.b
def f(a):
    def g(): c = 1
    for d in [lambda f: f]: pass
c = d = 0
def h():
    global c
    c = 2
"""
    assert sorted(hidden(ast.parse(code))) == [(3, "a"), (4, "c"), (5, "d")]
