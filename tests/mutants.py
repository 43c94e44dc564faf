"""Change one operator or number of a module after another, and run its tests and its room's: ``make mutants``.

A random sample of the changes that cosmic-ray knows, of each room as many. No file is touched: each mutant is what a
process of its own imports, forked where the libraries are loaded already. Quick tests come first, and the first that
fails ends it. A survivor is a change that no test noticed; somebody must judge whether it makes a difference.

Survivors were judged once: 50 of each room, key 0. Noticed, with 95% limits, were 34 of the kernels (53% to 80%), 37
of the bounds (60% to 85%), 34 of the estimators (53% to 80%) and 45 of accounting (78% to 97%). Other or slower tests
notice 3 more, and 21 have tests since. One was not run, a limit of seconds. The other 25 change no result: the steps
of a search or a quadrature, where thresholds are put, ties, scratch memory, and arguments that no path reads. Of 106
more (keys 3 and 11) 85 were noticed. Of the other 21, eight have tests since, and the rest are of those kinds.
Drawn again from the code of 2026-11-27, key 0: 44, 32, 37 and 42. Of estimators' 13 survivors five have tests since.
Of bounds' 18 other tests notice four; what was looked at else chooses designs, or makes a bound no larger.
``kernels/_canary_stream.py`` is not drawn from, as Python cannot run it; its words are recorded in a test.
"""

import difflib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import CodeType
from typing import Any

import click
import numba
import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels._compiled import CompiledFunction

ROOMS = ("kernels", "verify/audit/bounds", "verify/audit/estimators", "verify/audit/accounting")
# Those that make sense of most code: neighbours of a comparison, and the opposite of an operation.
_OPERATORS = (
    "NumberReplacer",
    "AddNot",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceUnaryOperator_Delete_Not",
    "ZeroIterationForLoop",
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "Pow_Mul")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Eq_NotEq")),
)
# CPU seconds of a mutant, as a multiple of those without: a change may keep a loop from ending.
_PATIENCE, _LEAST = 3.0, 10.0
# CPU seconds of a test, beyond which it is stopped: Python runs the loops of some without an end in sight.
_LONGEST = 3.0
_NJIT = "from canaryproof.kernels._compiled import njit"
# Python cannot call what tells the compiler how wide vectors may be.
_HINT = "_wide_vectors()"
_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mutant:
    """A module with one change."""

    path: Path  # in the checkout
    operator: str
    occurrence: int

    @cached_property
    def source(self) -> str:
        """All of the changed module."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        text = (_ROOT / self.path).read_text()
        return str(mutate_code(text, get_operator(f"core/{self.operator}")(), self.occurrence))

    @property
    def change(self) -> str:
        """The changed lines."""
        lines = difflib.unified_diff((_ROOT / self.path).read_text().splitlines(), self.source.splitlines(), n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++")))


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a module, but those of decorators and type hints."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    text = (_ROOT / path).read_text()
    # Python cannot run these, and a mutant would take a minute of compilation.
    if "intrinsic" in text:
        return []
    lines, nodes, found = text.splitlines(), list(ast_nodes(get_ast(text))), []
    for name in _OPERATORS:
        operator = get_operator(f"core/{name}")()
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        for occurrence, ((row, _), _) in enumerate(places):
            if not lines[row - 1].lstrip().startswith(("@", "def ")):
                found.append(Mutant(path, name, occurrence))
    return found


class _Finder(importlib.abc.MetaPathFinder):
    """Imports one module from other source."""

    def __init__(self, name: str, source: str) -> None:
        self._name, self._source = name, source

    def find_spec(self, fullname: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        path = str(_ROOT / Path(*fullname.split(".")[1:]).with_suffix(".py"))
        loader = _Loader(fullname, path)
        loader.source = self._source
        return importlib.util.spec_from_file_location(fullname, path, loader=loader)


class _Loader(importlib.machinery.SourceFileLoader):
    source = ""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.get_filename(fullname), "exec")


def _module(path: Path) -> str:
    return ".".join(("canaryproof", *path.with_suffix("").parts))


def _own_tests(path: Path) -> Path:
    name = "canaries" if path.stem.startswith("_canary") else path.stem.removeprefix("_")
    return _ROOT / "tests" / path.parent / f"test_{name}.py"


def _shared_tests(room: Path) -> tuple[Path, ...]:
    """Return the lists of what all of a room has in common."""
    tests = _ROOT / "tests" / room
    return (*sorted(tests.glob("test_every_*.py")), *tests.glob("test_refusals.py"))


@dataclass
class _Plugin:
    """Runs the tests that are known to pass, the quickest first, and notes the CPU seconds of those that do."""

    known: dict[str, float] | None  # Seconds of those that pass; None if all are to be tried
    seconds: dict[str, float] = field(default_factory=dict)
    _start: float = 0.0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.known is not None:
            items[:] = sorted((item for item in items if item.nodeid in self.known), key=self._cost)

    def _cost(self, item: pytest.Item) -> float:
        return (self.known or {})[item.nodeid]

    def pytest_runtest_logstart(self) -> None:
        self._start = time.process_time()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = time.process_time() - self._start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        signal.setitimer(signal.ITIMER_PROF, _LONGEST if self.known is None else 2.0 * _LONGEST)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)


class _TooLong(BaseException):
    """No ``Exception``, which hypothesis would try to get again from smaller examples."""


def _stop(*_: Any) -> None:
    raise _TooLong


def _run(
    path: Path, source: str, tests: Iterable[Path], known: dict[str, float] | None
) -> tuple[int, dict[str, float]]:
    """Run tests beside a module's source, in a process of its own; return its status and the passing tests' seconds."""
    with tempfile.TemporaryDirectory() as folder:
        passed = Path(folder) / "passed"
        if not (child := os.fork()):
            status = 70
            try:
                if known is not None:
                    seconds = int(_LEAST + _PATIENCE * sum(known.values()))
                    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
                with open(os.devnull, "w") as nowhere:  # noqa: PTH123
                    os.dup2(nowhere.fileno(), 1)
                    os.dup2(nowhere.fileno(), 2)
                # What a compiled function calls is copied into it: of kernels Python runs the code itself. Elsewhere
                # it runs that of the module's own functions.
                if path.parts[0] == "kernels" and "canary" not in path.stem and "@njit(" in source:
                    numba.config.DISABLE_JIT = 1
                    # Else it would run the code of the file.
                    CompiledFunction.is_quick_in_python = lambda *_: False
                    # CompiledFunction code wraps around in silence.
                    np.seterr(over="ignore")
                source = source.replace(_NJIT, "njit = lambda **_: lambda function: function").replace(_HINT, "pass")
                sys.meta_path.insert(0, _Finder(_module(path), source))
                signal.signal(signal.SIGPROF, _stop)
                plugin = _Plugin(known)
                options = ["-q", "-n0", "-p", "no:cacheprovider", *(["-x"] if known is not None else [])]
                status = pytest.main([*options, *map(str, tests)], [plugin])
                passed.write_text(json.dumps(plugin.seconds))
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        return status, json.loads(passed.read_text()) if passed.exists() else {}


@cache
def _passing(path: Path, tests: tuple[Path, ...]) -> dict[str, float]:
    """Return the tests that pass beside a module without a change, with their CPU seconds."""
    # Some need what is compiled. What fails without a change would kill every mutant.
    _, known = _run(path, (_ROOT / path).read_text(), tests, None)
    if not known:
        raise click.ClickException(f"{path}: its tests do not run")
    click.echo(f"{path}: {len(known)} tests of {sum(known.values()):.0f} CPU seconds", err=True)
    return known


def ending(mutant: Mutant) -> str:
    """Run the tests of a mutant's module and those that its room shares, and say how that ended."""
    own, shared = _own_tests(mutant.path), _shared_tests(mutant.path.parent)
    known = _passing(mutant.path, (own,))
    if shared:
        # They take as long beside each module of the room whose functions are not compiled.
        known |= _passing(mutant.path if _NJIT in mutant.source else mutant.path.with_name("__init__.py"), shared)
    status, _ = _run(mutant.path, mutant.source, (own, *shared), known)
    endless = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
    return "no end" if endless else "killed" if status else "SURVIVED"


@click.command("mutants")
@click.argument("modules", nargs=-1, type=click.Path(path_type=Path))
@click.option("--count", type=click.IntRange(min=1), default=50, show_default=True, help="Mutants of each room.")
@click.option("--key", type=int, default=0, show_default=True, help="Key of the sample.")
def main(modules: tuple[Path, ...], count: int, key: int) -> None:
    """Change a random sample of MODULES, by default all of kernels, bounds, estimators and accounting."""
    for name in ("scipy.signal", "scipy.optimize", "mpmath", "pandas", "flint", "statsmodels.stats.power"):
        importlib.import_module(name)
    for room in ROOMS:
        paths = (
            [path for path in modules if str(path.parent) == room] if modules else sorted((_ROOT / room).glob("*.py"))
        )
        found = [path.relative_to(_ROOT) if path.is_absolute() else path for path in paths]
        known = [mutant for path in found if _own_tests(path).exists() for mutant in mutants(path)]
        sample = random.Random(key).sample(known, min(count, len(known)))
        survivors = 0
        for mutant in sample:
            end = ending(mutant)
            survivors += end == "SURVIVED"
            change = f"\n{mutant.change}" if end == "SURVIVED" else ""
            click.echo(f"{end} {mutant.path} {mutant.operator} {mutant.occurrence}{change}")
        if sample:
            limits = stats.binomtest(len(sample) - survivors, len(sample)).proportion_ci(method="exact")
            click.echo(
                f"{room}: {len(sample) - survivors} of {len(sample)} killed, drawn from {len(known):,}; "
                f"95% limits {limits.low:.0%} to {limits.high:.0%}"
            )


if __name__ == "__main__":
    main()
