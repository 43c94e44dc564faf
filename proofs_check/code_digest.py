"""A digest of code, by which a proof knows the code that it is of."""

import ast
import hashlib
from collections.abc import Iterable


def code_digest(sources: Iterable[str]) -> str:
    """Digest of modules: their code, without comments, docstrings and imports."""
    hashed = hashlib.sha256()
    for source in sources:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                body[:] = [line for line in body if not _says_nothing(line)]
        hashed.update(ast.dump(tree).encode())
    return hashed.hexdigest()


def _says_nothing(line: ast.stmt) -> bool:
    """Whether a statement is an import or a docstring."""
    if isinstance(line, ast.Expr):
        return isinstance(line.value, ast.Constant)
    return isinstance(line, ast.Import | ast.ImportFrom)
