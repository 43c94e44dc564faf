"""Where a command computes: the option ``--engine``, and what it names."""

import json
import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import TYPE_CHECKING, ClassVar, Protocol

from canaryproof.verify.check.results import Result, Run
from canaryproof.verify.engine.plan import Answer, Plan, judge
from canaryproof.verify.engine.run_file import RunFile
from canaryproof.verify.estimators.simulation import threads

if TYPE_CHECKING:
    from canaryproof.verify.engine.cluster import Cluster


_DASK = "dask"


class EngineError(Exception):
    """An engine that cannot go on."""


@dataclass(frozen=True)
class Lost:
    """In place of the result of a task that was given up.

    Attributes
    ----------
    reason
        Why.
    """

    reason: str


def cluster(name: str, limit: float | None = None) -> "Cluster | None":
    """Return the cluster that an engine's name stands for.

    Parameters
    ----------
    name
        ``local``; ``dask`` for a cluster on this machine; ``dask://host:port`` for the one whose scheduler is there.
    limit
        Seconds that a check may take; None for no limit.

    Returns
    -------
    The cluster; None for ``local``.

    Raises
    ------
    ValueError
        If there is no such engine, or what it needs is not installed.
    """
    if name == "local":
        return None
    if name != _DASK and not name.startswith(f"{_DASK}://"):
        raise ValueError(f"--engine: must be local, dask or dask://HOST:PORT, not {name!r}")
    if find_spec("distributed") is None:
        raise ValueError("--engine: dask needs pip install canaryproof[distributed]")
    from canaryproof.verify.engine.cluster import Cluster
    from canaryproof.verify.estimators.simulation import threads

    address = name.removeprefix(_DASK).removeprefix("://")
    return Cluster(address if "://" in address or not address else f"tcp://{address}", threads(), limit)


# The local engine: parallel processes of this machine, and how they end.
#
# Each process judges one check at a time with one thread, so that cores are not oversubscribed and sums of BLAS,
# which depend on its number of threads, are the same everywhere.


ONE_THREAD = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Local:
    """Engine that judges checks in processes of this machine.

    Attributes
    ----------
    workers
        Number of processes, at least 1.
    limit
        Seconds that a check may take; None for no limit.
    """

    workers: int
    limit: float | None = None
    begun: ClassVar[Mapping[int, int]] = {}  # a process that is lost ends the run

    def answers(self, plan: Plan, positions: Sequence[int]) -> Generator[tuple[int, Answer], None, None]:
        """Judge checks of a plan, and give each answer as soon as it is known, with the check's position.

        Raises
        ------
        EngineError
            If a process is killed, also by the time limit.
        """
        with processes_of_a_run(min(self.workers, len(positions)) or 1) as pool:
            with inherited():
                futures = {pool.submit(judge, plan, i, self.limit): i for i in positions}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BrokenProcessPool as error:
                slow = "" if self.limit is None else f"; or a check took longer than {self.limit:g} s"
                raise EngineError(f"a process of the run was killed, perhaps for want of memory{slow}") from error


@contextmanager
def processes_of_a_run(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Give processes that end when this block does, or this process, whatever ends it."""
    processes = get_context("spawn")
    reader, writer = processes.Pipe(duplex=False)
    with reader, writer, ProcessPoolExecutor(workers, processes, _live_with, (reader,)) as pool:
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
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _live_with(lifeline: Connection) -> None:
    """End this process when the other end of a pipe closes, as it does even if the process that has it is killed."""

    def wait() -> None:
        try:
            lifeline.recv_bytes()
        except (EOFError, OSError):
            os._exit(1)

    Thread(target=wait, daemon=True).start()


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
    ValueError
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
        raise EngineError(f"{error}; --resume goes on with a run in --out") from error
    context = plan.context
    found = (Result.from_json(json.loads(results[i])) for i in range(len(checks)))
    return Run(version("canaryproof"), context.level, context.seed, tuple(found))
