import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import canaryproof.kernels
from canaryproof.kernels import _compiled, two_gaussians
from canaryproof.verify.suites.worst_case.table import read
from canaryproof.verify.suites.worst_case.targets import TARGETS

ROOT = Path(canaryproof.kernels.__file__).parents[1]
COMPILED = [path for path in sorted(ROOT.rglob("*.py")) if "from numba import" in path.read_text(encoding="utf-8")]
HELPER = "from numba import njit\n@njit\ndef helper(x):\n    return x + {}\n"
CALLER = """from numba import njit
from canaryproof.kernels.helper import helper
@njit(cache=True)
def caller(x):
    return 2 * helper(x)
"""
PROGRAM = "from canaryproof.kernels import caller as c; print(c.caller(1), sum(c.caller.stats.cache_hits.values()))"


@pytest.mark.parametrize("cache", ["in the tree", "of the user's"])
def test_compiled_code_of_another_version_is_not_used(tmp_path, cache):
    """A helper changes in its length's and date's room, as in another version of a package with equal dates."""
    room = tmp_path / "canaryproof" / "kernels"
    room.mkdir(parents=True)
    # A package, so that it is not taken for a part of the installed one.
    (room.parent / "__init__.py").touch()
    for name in ("__init__.py", "_compiled.py"):
        shutil.copy(ROOT / "kernels" / name, room)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": ""}
    if cache != "in the tree":
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")

    def said(constant):
        for name, text in (("helper", HELPER.format(constant)), ("caller", CALLER)):
            (room / f"{name}.py").write_text(text)
            os.utime(room / f"{name}.py", (1e9, 1e9))
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    assert said(1) == ["4", "0"]
    assert said(1) == ["4", "1"]
    assert said(5) == ["12", "0"]


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.stem)
def test_every_compiled_function_is_kept_by_the_contents_of_all(path):
    # The room is imported before the first function is compiled: by the file, or by the package that it is in.
    texts = [path.read_text(encoding="utf-8"), path.with_name("__init__.py").read_text(encoding="utf-8")]
    assert any("from canaryproof.kernels" in text for text in texts)


def inputs():
    """Inputs at random, and the worst ones known."""
    rng = np.random.default_rng(0)
    found = []
    for target in TARGETS:
        drawn = [target.draw(rng) for _ in range(40)]
        known = [row.arguments for row in read() if row.function == target.name][:40]
        found.append(pytest.param(target, [each for each in (*drawn, *known) if target.inside(*each)], id=target.name))
    return found


@pytest.mark.parametrize(("target", "arguments"), inputs())
def test_python_and_the_compiled_loop_give_the_same_bits(target, arguments, monkeypatch):
    loops = set()

    def noted(loop, *_):
        loops.add(loop)
        return False

    monkeypatch.setattr(_compiled, "_interprets", noted)
    compiled = [float(target.kernel(*each)) for each in arguments]
    monkeypatch.undo()
    assert loops
    interpreted = []

    def interprets(loop, flat, result):
        try:
            _compiled._interpret(loop, flat, result)
        except (ArithmeticError, ValueError):
            return False
        interpreted.append(loop)
        return True

    monkeypatch.setattr(_compiled, "_interprets", interprets)
    assert np.array_equal([float(target.kernel(*each)) for each in arguments], compiled)
    assert len(interpreted) > len(arguments) / 2


def test_few_numbers_are_interpreted_and_many_compiled(monkeypatch):
    loop = two_gaussians._larger_epsilons
    monkeypatch.setattr(_compiled, "_is_compiled", lambda _: False)
    for counter in (_compiled._numbers, _compiled._seconds):
        monkeypatch.delitem(counter, loop, raising=False)
    few, many = ([np.full(size, value) for value in (1e-6, 0.3, 1.0, 0.0, 1.1)] for size in (3, 10**7))
    assert _compiled._interprets(loop, few, np.empty(3))
    assert not _compiled._interprets(loop, many, np.empty(10**7))


def test_other_peoples_functions_are_kept_as_ever(tmp_path):
    class Locator:
        _py_file = str(tmp_path / "own.py")

    (tmp_path / "own.py").touch()
    assert _compiled._stamped(Locator()) == _compiled._numbas(Locator())
