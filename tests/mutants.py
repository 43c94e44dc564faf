"""Change one operator or number of a module after another, and run that module's own tests: ``make mutants``.

A random sample of the changes that cosmic-ray knows. No file is touched: each mutant is what a process of its own
imports. A survivor is a change that no test noticed; somebody must judge whether it makes a difference.
"""

import difflib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

import click
import numba
import pytest

ROOMS = ("kernels", "verify/bounds", "verify/estimators", "verify/accounting")
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
_PATIENCE, _LEAST = 5.0, 60.0
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


def _tests(path: Path) -> Path:
    return _ROOT / "tests" / path.parent / f"test_{path.stem.removeprefix('_')}.py"


class _Failures:
    def __init__(self) -> None:
        self.ids: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.ids.append(report.nodeid)


def _run(path: Path, source: str, seconds: float, skipped: Sequence[str]) -> tuple[int, float, list[str]]:
    """Run a module's tests in a process of its own; return its status, its CPU seconds and what failed."""
    with tempfile.TemporaryDirectory() as folder:
        failed = Path(folder) / "failed"
        if not (child := os.fork()):
            status = 70
            try:
                resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
                with open(os.devnull, "w") as nowhere:  # noqa: PTH123
                    os.dup2(nowhere.fileno(), 1)
                    os.dup2(nowhere.fileno(), 2)
                # What a compiled function calls is copied into it: of kernels Python runs the code itself. Elsewhere
                # the module's own functions are compiled anew, in a folder with links to all others.
                if path.parts[0] == "kernels":
                    numba.config.DISABLE_JIT = 1
                elif "njit(" in source:
                    numba.config.CACHE_DIR = folder
                sys.meta_path.insert(0, _Finder(_module(path), source))
                failures = _Failures()
                options = ["-q", "-n0", "-p", "no:cacheprovider", *(f"--deselect={name}" for name in skipped)]
                options += ["-x"] if skipped or seconds < 1e4 else []
                status = pytest.main([*options, str(_tests(path))], [failures])
                failed.write_text("\n".join(failures.ids))
            finally:
                os._exit(status)
        _, status, usage = os.wait4(child, 0)
        ids = failed.read_text().split("\n") if failed.exists() else []
        return status, usage.ru_utime + usage.ru_stime, [name for name in ids if name]


def trial(path: Path, chosen: Sequence[Mutant]) -> Iterator[tuple[Mutant, str]]:
    """Run a module's mutants, and say of each how it ended."""
    status, seconds, skipped = _run(path, (_ROOT / path).read_text(), 1e5, ())
    # Some need what is compiled. Whatever else fails without a change would kill every mutant.
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise click.ClickException(f"{path}: its tests do not run")
    click.echo(f"{path}: {seconds:.0f} CPU seconds, without {len(skipped)} tests that fail unchanged", err=True)
    for mutant in chosen:
        status, _, _ = _run(path, mutant.source, max(_LEAST, _PATIENCE * seconds), skipped)
        endless = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        yield mutant, "no end" if endless else "killed" if status else "SURVIVED"


@click.command("mutants")
@click.argument("modules", nargs=-1, type=click.Path(path_type=Path))
@click.option("--count", type=click.IntRange(min=1), default=300, show_default=True, help="Mutants of the sample.")
@click.option("--key", type=int, default=0, show_default=True, help="Key of the sample.")
def main(modules: tuple[Path, ...], count: int, key: int) -> None:
    """Change a random sample of MODULES, by default all of kernels, bounds, estimators and accounting with tests."""
    paths = modules or [path.relative_to(_ROOT) for room in ROOMS for path in sorted((_ROOT / room).glob("*.py"))]
    known = [mutant for path in paths if _tests(path).exists() for mutant in mutants(path)]
    sample = random.Random(key).sample(known, min(count, len(known)))
    # Forked with all that takes long to load.
    for name in ("scipy.stats", "scipy.signal", "scipy.optimize", "mpmath", "pandas", "flint"):
        importlib.import_module(name)
    ended: dict[str, int] = {}
    for path in dict.fromkeys(mutant.path for mutant in sample):
        for mutant, end in trial(path, [each for each in sample if each.path == path]):
            ended[end] = ended.get(end, 0) + 1
            click.echo(f"{end} {mutant.path} {mutant.operator}" + (f"\n{mutant.change}" if end == "SURVIVED" else ""))
    click.echo(f"{len(sample)} of {len(known)} mutants: {', '.join(f'{n} {end}' for end, n in sorted(ended.items()))}")


if __name__ == "__main__":
    main()
