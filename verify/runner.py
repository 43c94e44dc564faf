"""Judging checks in parallel processes: what a run is, its processes, and how they end.

Each process judges one check at a time with one thread, so that cores are not oversubscribed and sums of BLAS, which
depend on its number of threads, are the same everywhere. A check is found by its suite and id, as functions cannot be
sent. A check that raises is a failure of the run; it is not kept, so that a resumed run tries it again.
"""

import json
import os
import pkgutil
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread

import click

from canaryproof.verify.results import Check, Context, Result, Run, Subject, Verdict, perform
from canaryproof.verify.run_file import RunFile

_ONE_THREAD = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


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
        suites = load(self.source)
        return tuple((suite, check.id) for suite in self.suites for check in suites[suite])


def load(source: str) -> Mapping[str, Sequence[Check]]:
    """Return the suites that stand at a place, such as ``canaryproof.verify.suites.catalogue:SUITES``."""
    suites: Mapping[str, Sequence[Check]] = pkgutil.resolve_name(source)
    return suites


def run_plan(plan: Plan, file: RunFile, workers: int, advance: Callable[[int, int, str], None]) -> Run:
    """Judge the checks of a plan that a file has no results of.

    Parameters
    ----------
    plan
        What is to be judged.
    file
        Where results are kept; each is committed as soon as it is known.
    workers
        Number of processes, at least 1; results do not depend on it.
    advance
        Told how many checks are done, of how many, and the first one that is not.

    Returns
    -------
    The run, with results in the order of the plan, those of checks that raised included.

    Raises
    ------
    InputError
        If the file cannot be written.
    ClickException
        If a process is killed.
    """
    checks = plan.checks
    results = file.results()
    pending = [i for i in range(len(checks)) if i not in results]
    advance(len(results), len(checks), checks[pending[0]][1] if pending else "")
    with processes_of_a_run(min(workers, len(pending)) or 1, plan.fault) as pool:
        with inherited():
            futures = {pool.submit(_judge, plan.source, *checks[i], plan.context): i for i in pending}
        try:
            for future in as_completed(futures):
                i = futures[future]
                results[i], raised = future.result()
                if not raised:
                    file.add(i, results[i])
                advance(len(results), len(checks), next((checks[j][1] for j in pending if j not in results), ""))
        except BrokenProcessPool as error:
            message = (
                "a process of the run was killed, perhaps for want of memory; --resume goes on with a run in --out"
            )
            raise click.ClickException(message) from error
    context = plan.context
    found = (Result.from_json(json.loads(results[i])) for i in range(len(checks)))
    return Run(version("canaryproof"), context.level, context.seed, tuple(found))


@contextmanager
def processes_of_a_run(workers: int, fault: str) -> Iterator[ProcessPoolExecutor]:
    """Give processes that end when this block does, or this process, whatever ends it."""
    processes = get_context("spawn")
    reader, writer = processes.Pipe(duplex=False)
    with reader, writer, ProcessPoolExecutor(workers, processes, _begin, (reader, fault)) as pool:
        try:
            yield pool
        except BaseException:
            # An interrupt does not wait for the checks that are being judged.
            writer.close()
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def inherited() -> Iterator[None]:
    """Start processes with one thread, deaf to the terminal's interrupts: theirs come from the process that has them.

    Both must hold before a process imports anything, so that it is too late when it gets its first call.
    """
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


# What a process holds until it ends.
_held = ExitStack()


def _begin(lifeline: Connection, fault: str) -> None:
    _live_with(lifeline)
    if fault:
        from canaryproof.verify.faults import FAULTS, seeded

        _held.enter_context(seeded(FAULTS[fault]))


def _live_with(lifeline: Connection) -> None:
    """End this process when the other end of a pipe closes, as it does even if the process that has it is killed."""

    def wait() -> None:
        try:
            lifeline.recv_bytes()
        except (EOFError, OSError):
            os._exit(1)

    Thread(target=wait, daemon=True).start()


@cache
def _checks(source: str) -> dict[tuple[str, str], Check]:
    return {(suite, check.id): check for suite, checks in load(source).items() for check in checks}


def _judge(source: str, suite: str, name: str, context: Context) -> tuple[str, bool]:
    """Return the JSON of a check's result, and whether the check raised."""
    check = _checks(source)[suite, name]
    try:
        return _json(perform(suite, check, context)), False
    except (Exception, SystemExit) as error:
        return _json(_raised(suite, check, error)), True


def _json(result: Result) -> str:
    return json.dumps(result.to_json(), ensure_ascii=False, allow_nan=False)


def _raised(suite: str, check: Check, error: BaseException) -> Result:
    """Return the result of a check that raised: a failure of ours, whoever's statement it is about."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return Result(
        check.id,
        suite,
        Subject.IMPLEMENTATION,
        check.source,
        check.statement,
        Verdict.INCONCLUSIVE,
        f"could not be judged: {reason} ({Path(place.filename).name}, line {place.lineno})",
        {},
    )
