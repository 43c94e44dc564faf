"""What is to be judged, and judging one check of it, in whatever process.

A check is found by its suite and id, as functions cannot be sent. A check that raises is a failure of the run.
"""

import faulthandler
import json
import os
import pkgutil
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from canaryproof.verify.check.results import Check, Context, Result, Run, Subject, Verdict, perform
from canaryproof.verify.engine.executors import EngineError, Local, cluster
from canaryproof.verify.engine.run_file import RunFile
from canaryproof.verify.estimators.simulation import threads

# The JSON of a check's result, and whether it is to be kept: one that could not be judged is tried again.
Answer = tuple[str, bool]


@dataclass(frozen=True)
class Plan:
    """What is to be judged.

    Attributes
    ----------
    source
        Where the suites are, as ``module:name`` of a mapping from names to sequences of checks.
    suites
        Names of suites, each once.
    context
        Level and seed.
    fault
        Name of a fault that all processes have, none if empty.
    """

    source: str
    suites: tuple[str, ...]
    context: Context
    fault: str = ""

    @property
    def checks(self) -> tuple[tuple[str, str], ...]:
        """Suite and id of each check, in order."""
        return _order(self.source, self.suites)


@cache
def _order(source: str, suites: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    known = load(source)
    return tuple((suite, check.id) for suite in suites for check in known[suite])


def load(source: str) -> Mapping[str, Sequence[Check]]:
    """Return the suites that stand at a place, such as ``canaryproof.verify.suites.catalogue:SUITES``."""
    suites: Mapping[str, Sequence[Check]] = pkgutil.resolve_name(source)
    return suites


@cache
def _checks(source: str, suite: str) -> dict[str, Check]:
    return {check.id: check for check in load(source)[suite]}


def judge(plan: Plan, position: int, limit: float | None) -> Answer:
    """Judge a check of a plan.

    Parameters
    ----------
    plan, position
        The plan, and the place of the check in it.
    limit
        Seconds after which this process ends at once, whatever it does; None for no limit.

    Returns
    -------
    Its answer.
    """
    suite, name = plan.checks[position]
    check = _checks(plan.source, suite)[name]
    try:
        with _time_limit(limit):
            return _json(perform(suite, check, plan.context)), True
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return unjudged(plan, position, f"{said} ({Path(place.filename).name}, line {place.lineno})"), False


def unjudged(plan: Plan, position: int, reason: str) -> str:
    """Return the JSON of the result of a check that has none: a failure of ours, whoever's statement it is about."""
    suite, name = plan.checks[position]
    check = _checks(plan.source, suite)[name]
    result = Result(
        check.id,
        suite,
        Subject.IMPLEMENTATION,
        check.source,
        check.statement,
        Verdict.INCONCLUSIVE,
        f"could not be judged: {reason}",
        {},
    )
    return _json(result)


@contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    # A thread of its own ends the process, also where compiled code does not let go of it.
    with Path(os.devnull).open("w") as nowhere:
        faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def _json(result: Result) -> str:
    return json.dumps(result.to_json(), ensure_ascii=False, allow_nan=False)


# Judging the checks of a plan by an engine, and keeping what it finds.


class Engine(Protocol):
    """What judges checks: ``processes.Local`` or ``cluster.Cluster``. Answers do not depend on which.

    Attributes
    ----------
    begun
        How often the checks at some positions of the plan were given to a worker, where that may be lost.
    """

    @property
    def begun(self) -> Mapping[int, int]: ...  # noqa: D102

    def answers(self, plan: Plan, positions: Sequence[int]) -> Generator[tuple[int, Answer], None, None]:
        """Judge checks of a plan, and give each answer as soon as it is known, with the check's position."""
        ...


def engine(name: str, limit: float | None) -> Engine:
    """Return the engine of a name.

    Parameters
    ----------
    name, limit
        As for ``engines.cluster``.

    Raises
    ------
    UsageError
        If there is no such engine, or what it needs is not installed.
    """
    return cluster(name, limit) or Local(threads(), limit)


def run_plan(plan: Plan, file: RunFile, engine: Engine, advance: Callable[[int, int, str], None]) -> Run:
    """Judge the checks of a plan that a file has no results of.

    Parameters
    ----------
    plan
        What is to be judged.
    file
        Where results are kept; each is committed as soon as it is known, by this process alone.
    engine
        What judges.
    advance
        Told how many checks are done, of how many, and the first one that is not.

    Returns
    -------
    The run, with results in the order of the plan, those of checks that could not be judged included.

    Raises
    ------
    InputError
        If the file cannot be written, or the engine cannot be used.
    EngineError
        If the engine cannot go on.
    """
    checks = plan.checks
    results = file.results()
    pending = [i for i in range(len(checks)) if i not in results]
    # The first check without a result; all before it have one.
    first = 0

    def tell() -> None:
        nonlocal first
        while first in results:
            first += 1
        advance(len(results), len(checks), checks[first][1] if first < len(checks) else "")

    tell()
    try:
        # Whatever stops this loop stops the engine.
        with closing(engine.answers(plan, pending)) as answers:
            for i, (result, to_keep) in answers:
                results[i] = result
                if to_keep:
                    file.add(i, result)
                tell()
    except EngineError as error:
        raise EngineError(f"{error.message}; --resume goes on with a run in --out") from error
    context = plan.context
    found = (Result.from_json(json.loads(results[i])) for i in range(len(checks)))
    return Run(version("canaryproof"), context.level, context.seed, tuple(found))
