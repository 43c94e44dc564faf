"""A digest of functions and of all that they reach, by which a proof or a result knows the code that it is of.

What a function reaches is read from the source: what it names of its module or imports from another one, what that
names in turn, and so on within the modules that are given. Constants count as much as functions. A class is reached as
a whole by whoever names it, be it in an annotation, because the source does not tell which of its methods is called.
"""

import ast
import hashlib
import inspect
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module

# A module, and a name that it defines; of a lambda outside of functions, "<lambda>" and its line.
Definition = tuple[str, str]


def code_digest(roots: Iterable[Definition], modules: Collection[str]) -> str:
    """Digest of what ``roots`` reach within ``modules``, whatever the order and the files in which it is defined.

    Comments, docstrings and imports don't count.
    """
    return hashlib.sha256("\n".join(sorted(reachable(roots, modules).values())).encode()).hexdigest()


def reachable(roots: Iterable[Definition], modules: Collection[str]) -> dict[Definition, str]:
    """Return each definition that ``roots`` reach within ``modules``, themselves included, with its code.

    Raises
    ------
    KeyError
        If there is no such root.
    """
    sources = {module: _parse(inspect.getsource(import_module(module))) for module in modules}
    code: dict[Definition, str] = {}
    left = list(roots)
    while left:
        definition = left.pop()
        if definition not in code:
            module, name = definition
            code[definition] = sources[module].code[name]
            for used, attribute in sources[module].names[name]:
                left += _definitions(module, used, attribute, sources)
    return code


def _definitions(module: str, name: str, attribute: str, sources: Mapping[str, "_Module"]) -> list[Definition]:
    """Return where a name is defined that a module uses, perhaps with an attribute; nowhere if outside ``sources``."""
    if name in sources[module].code:
        return [(module, name)]
    origin, original = sources[module].imported.get(name, ("", ""))
    if whole := sources.get(f"{origin}.{original}"):
        # Any definition of a module that is passed on may be used.
        return [(f"{origin}.{original}", each) for each in ([attribute] if attribute in whole.code else whole.code)]
    return _definitions(origin, original, attribute, sources) if origin in sources else []


@dataclass(frozen=True)
class _Module:
    code: Mapping[str, str]  # of each definition
    names: Mapping[str, set[tuple[str, str]]]  # that each definition uses, with an attribute or ""
    imported: Mapping[str, Definition]


@lru_cache(maxsize=512)
def _parse(source: str) -> _Module:
    tree = ast.parse(source)
    imported = {
        alias.asname or alias.name: (line.module or "", alias.name)
        for line in ast.walk(tree)
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    code: dict[str, list[str]] = defaultdict(list)
    names: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for line in _without_words(tree).body:
        used = set(_uses(line))
        # A lambda of a table is found by its line.
        for node in ast.walk(line) if not isinstance(line, _FUNCTIONS) else ():
            if isinstance(node, ast.Lambda):
                code[f"<lambda> {node.lineno}"].append(_spelling(node))
                names[f"<lambda> {node.lineno}"] |= set(_uses(node))
        # A line that defines nothing may change whatever it names.
        for name in _bindings([line]) or {name for name, _ in used}:
            code[name].append(_spelling(line))
            names[name] |= used
    return _Module({name: "\n".join(lines) for name, lines in code.items()}, names, imported)


def _without_words(tree: ast.Module) -> ast.Module:
    """Take docstrings and imports out of a tree."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [line for line in body if not _is_without_effect(line)]
    return tree


def _is_without_effect(line: ast.stmt) -> bool:
    if isinstance(line, ast.Expr):
        return isinstance(line.value, ast.Constant)
    return isinstance(line, ast.Import | ast.ImportFrom)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _bindings(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that code binds in its own scope."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif not isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
            names |= _bindings(ast.iter_child_nodes(node))
    return names


def _local(node: ast.AST) -> set[str]:
    """Return the names that are a function's or a comprehension's own."""
    if isinstance(node, _COMPREHENSIONS):
        return _bindings(part.target for part in node.generators)
    if not isinstance(node, _FUNCTIONS):
        return set()
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    shared = {name for line in ast.walk(node) if isinstance(line, ast.Global) for name in line.names}
    return {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)} | (_bindings(body) - shared)


def _uses(node: ast.AST, local: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
    """Yield the names of the module that code uses, each with the attribute that is taken of it, or ""."""
    if isinstance(node, ast.Name):
        if node.id not in local:
            yield node.id, ""
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.value.id not in local:
            yield node.value.id, node.attr
    else:
        own = local | _local(node)
        for field, value in ast.iter_fields(node):
            # A function's decorators, defaults and annotations are outside its scope.
            inside = field == "body" or isinstance(node, _COMPREHENSIONS)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _uses(child, own if inside else local)


def _spelling(node: object) -> str:
    """Write a tree out; ``ast.dump`` does it otherwise in each version of Python."""
    if isinstance(node, list):
        return f"[{' '.join(map(_spelling, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = (f"{name}={_spelling(value)}" for name, value in ast.iter_fields(node) if value not in (None, []))
    return f"{type(node).__name__}({' '.join(fields)})"
