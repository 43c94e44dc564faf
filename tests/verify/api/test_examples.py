"""Every public name has an example, and each example gives what it shows by public names alone."""

import ast
import doctest
import inspect
import re
from pathlib import Path

import pytest

import canaryproof as cp

_ROOT = Path(__file__).parents[3]
_NAMES = [name for name in cp.__all__ if name != "__version__"]
# Frameworks are large, so that their trainings are in examples/ or on a page, and are tested there.
_OF_FRAMEWORKS = {
    "omitted_tensors": "examples/transformer_training.py",
}


@pytest.mark.parametrize("name", [name for name in _NAMES if name not in _OF_FRAMEWORKS])
def test_examples_give_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(getattr(cp, name)) or ""
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert examples.examples, "no example"
    assert doctest.DocTestRunner().run(examples).failed == 0
    # A line of 88 columns is not cut on the site.
    code = [f">>> {line}" for example in examples.examples for line in example.source.splitlines()]
    assert [line for line in code if len(line) > 88] == []


@pytest.mark.parametrize("name", _OF_FRAMEWORKS)
def test_what_needs_a_framework_has_a_training(name):
    assert name in (_ROOT / _OF_FRAMEWORKS[name]).read_text(encoding="utf-8")


def shown(path):
    """What a file shows of Python: of a page, that of its blocks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    blocks = re.findall(r"^```(?:python|\{code-cell\}.*)\n(.*?)^```", text, re.M | re.S)
    # Cells may have options.
    return "\n".join(line for block in blocks for line in block.splitlines() if not line.startswith(":"))


# What makes the site is no example.
_FILES = {_ROOT / "README.md", *(_ROOT / "docs").rglob("*.md"), *(_ROOT / "examples").rglob("*.py")}
_SHOWING = sorted(path for path in _FILES if "canaryproof" in shown(path))


@pytest.mark.parametrize("path", _SHOWING, ids=lambda path: str(path.relative_to(_ROOT)))
def test_what_users_read_uses_public_names_alone(path):
    used, modules = set(), set()
    for node in ast.walk(ast.parse(shown(path))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names if alias.name.partition(".")[0] == "canaryproof"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "canaryproof":
            modules.add(node.module)
            used |= {alias.name for alias in node.names if node.module == "canaryproof"}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cp":
            used.add(node.attr)
    assert modules <= {"canaryproof", "canaryproof.testing", "canaryproof.typing"}
    assert used <= set(cp.__all__)


def test_pages_name_no_private_module():
    """But for a module's own text, which the reference takes over."""
    for path in _FILES:
        if path.suffix == ".md":
            text = re.sub(r"^```\{eval-rst\}\n.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
            assert not re.search(r"canaryproof\.(?:kernels|proofs_check|reports|verify)\b", text), path
