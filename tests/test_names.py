"""Names by which a reader tells things apart."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
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
# Rooms whose functions all have names of their kind: a predicate's, a command's or a noun.
SETTLED = ("kernels", "verify/api", "verify/audit")
# How many functions of the other rooms are still named by a past participle. Each renaming lowers it.
UNSETTLED = 257
# A claim is named by its mechanism, as ``gaussian`` and ``poisson`` are.
CLAIMS = ("shuffled",)
PREDICATE = ("is", "has", "can", "are")
IRREGULAR = """
    begun born bought brought broken built burnt caught chosen dealt done drawn driven eaten fallen fed felt
    fought found frozen given gone grown heard held hidden hung kept known laid lain led left lent lit lost made
    meant met mown paid proven risen said seen sent shown sold sought spent spoken spun stolen stood stuck struck
    swept sworn taken taught thought thrown told torn understood won worn woven written
"""
PREFIX = re.compile("^(?:un|re|over|with|fore|mis|out|under)")
NO_PARTICIPLES = {"embed", "exceed", "feed", "hundred", "indeed", "need", "proceed", "seed", "speed"}
# A participle before one of these words is no adjective of a noun.
PARTICLES = """
    a again all anew apart as at away by down for from here in into none not of off on out over so than the there
    to under up with without
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(path: Path) -> ast.Module:
    """Parse a file once for all tests; none of them changes the tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path in FILES:
        for statement in parsed(path).body:
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


def empty_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each name that says nothing of what it names, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef | ast.arg | ast.Name) and name(node).strip("_").lower() in EMPTY:
            yield node.lineno, name(node)


@pytest.mark.parametrize("wrong", [empty_names, hidden])
def test_a_name_says_what_it_names_and_hides_none_of_its_module(wrong):
    places = [(str(path.relative_to(ROOT)), *place) for path in FILES for place in wrong(parsed(path))]
    assert places == []


def is_participle(word: str) -> bool:
    if {word, PREFIX.sub("", word, count=1)} & set(IRREGULAR.split()):
        return True
    return len(word) > 3 and word.endswith("ed") and word not in NO_PARTICIPLES


def ends_in_a_participle(function: str) -> bool:
    """``drawn``, ``is_drawn`` and ``drawn_rows``: the first says neither a predicate nor a command nor a value."""
    words = function.strip("_").split("_")
    if function.startswith("__") or words[0] in PREDICATE or function in CLAIMS:
        return False
    return any(is_participle(word) and after in PARTICLES.split() for word, after in pairwise([*words, "a"]))


def functions(*rooms: str) -> Iterator[tuple[str, Function]]:
    """Yield the functions of rooms with their places. A property of a protocol declares a field."""
    for path in FILES:
        place = path.relative_to(ROOT)
        if not any(place.is_relative_to(room) for room in rooms):
            continue
        tree = parsed(path)
        protocols = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base).startswith("Protocol") for base in node.bases)
        ]
        fields = {id(each) for node in protocols for each in node.body if getattr(each, "decorator_list", None)}
        for node in ast.walk(tree):
            if isinstance(node, Function) and id(node) not in fields:
                yield f"{place}:{node.lineno} {node.name}", node


def test_no_function_is_named_by_a_participle():
    assert [place for place, node in functions(*SETTLED) if ends_in_a_participle(node.name)] == []
    rooms = ("kernels", "proofs_check", "verify", "reports", "other_tools")
    assert len([place for place, node in functions(*rooms) if ends_in_a_participle(node.name)]) <= UNSETTLED


def test_a_predicate_begins_with_is_has_can_or_are():
    """A function that tries something, and says whether it could, is a command."""
    for place, node in functions(*SETTLED):
        if node.returns is not None and ast.unparse(node.returns) in ("bool", "Bools"):
            assert node.name.strip("_").split("_")[0] in (*PREDICATE, "try") or node.name.startswith("__"), place


def test_participles_are_seen():
    named = ["drawn", "_checked", "left_out", "noticed_by", "canaries_needed", "_unseen", "made_here", "withheld"]
    assert all(map(ends_in_a_participle, named))
    others = [
        "drawn_rows",
        "is_drawn",
        "_seed",
        "checked_int",
        "draw",
        "has_changed",
        "__getitem__",
        "speed_up",
        "noise",
    ]
    assert not any(map(ends_in_a_participle, others))


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
