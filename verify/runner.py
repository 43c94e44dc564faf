"""Judging the checks of a plan by an engine, and keeping what it finds."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from importlib.metadata import version
from typing import Protocol

from canaryproof.verify.engines import EngineError, cluster
from canaryproof.verify.judging import Answer, Plan
from canaryproof.verify.processes import Local
from canaryproof.verify.results import Result, Run
from canaryproof.verify.run_file import RunFile
from canaryproof.verify.simulation import threads


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
