"""The engine of many machines: a cluster of dask.distributed, on this machine or another.

The scheduler gives each check to a worker, and gives it to another one when the worker is lost, a few times. Workers
judge as the processes of the local engine do, one check at a time with one thread, and write nothing: the driver, which
is the process of the command, keeps the results. Whatever joins the cluster must have the same code and the same kind
of machine, as answers would have other bits otherwise.
"""

import logging
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import islice
from multiprocessing import resource_tracker
from threading import Lock
from typing import Any
from uuid import uuid4

import click
import numba
from dask import config
from distributed import CancelledError, Client, KilledWorker, LocalCluster, SchedulerPlugin, as_completed, get_worker
from threadpoolctl import threadpool_limits

from canaryproof.verify.input_files import InputError
from canaryproof.verify.judging import Answer, Plan, judge, unjudged
from canaryproof.verify.origin import code_and_machine
from canaryproof.verify.processes import ONE_THREAD, inherited

_AT_ONCE = 4096  # checks known to the scheduler, to which each costs memory
_JOIN = 30.0  # seconds to wait for the first worker
# A worker that is lost is held against all checks that it was given, so that it gets one at a time.
_ONE_CHECK = {"distributed.scheduler.worker-saturation": 1.0}
# Numba's threads and the time limit are of a process, which may have many of dask's threads.
_one_at_a_time = Lock()


class WrongWorkerError(Exception):
    """A worker whose code or machine is not that of the driver."""


class Cluster:
    """Engine that judges checks on a cluster of dask.distributed.

    Parameters
    ----------
    address
        Where its scheduler is, such as ``tcp://host:8786``; empty for a cluster on this machine that ends with the run.
    workers
        Number of workers of a cluster on this machine.
    limit
        Seconds that a check may take on a worker, which is given up then; None for no limit.

    Attributes
    ----------
    begun
        How often the checks at these positions of the plan were given to a worker: more than once if one was lost.
    """

    def __init__(self, address: str, workers: int, limit: float | None) -> None:
        self._address, self._workers, self._limit = address, workers, limit
        self.begun: Counter[int] = Counter()

    def answers(self, plan: Plan, positions: Sequence[int]) -> Generator[tuple[int, Answer], None, None]:
        """Judge checks of a plan, and give each answer as soon as it is known, with the check's position.

        Raises
        ------
        InputError
            If there is no scheduler or no worker, or a worker is of another kind.
        ClickException
            If the scheduler is lost.
        """
        made_by = code_and_machine()
        with _quiet(), self._client() as client:
            run = uuid4().hex  # other runs may be at the same scheduler
            client.register_plugin(_Begun(run))
            client.subscribe_topic(run, lambda event: self.begun.update([event[1]]))
            waiting = iter(positions)

            def submitted(number: int) -> dict[Any, int]:
                return {
                    client.submit(_judged, plan, i, self._limit, made_by, key=(run, i), pure=False): i
                    for i in islice(waiting, number)
                }

            futures = submitted(_AT_ONCE)
            completed = as_completed(futures)
            try:
                for future in completed:
                    position = futures.pop(future)
                    answer = _answer(plan, position, future)
                    # What is held by a worker is judged again if that is lost.
                    future.release()
                    more = submitted(1)
                    futures |= more
                    completed.update(more)
                    yield position, answer
                client.unregister_scheduler_plugin(run)
            finally:
                client.cancel(list(futures))

    @contextmanager
    def _client(self) -> Iterator[Client]:
        with ExitStack() as stack:
            address: Any = self._address
            if not address:
                # Its start would make the threads that start workers hear the terminal's interrupts again.
                resource_tracker.ensure_running()
                with inherited(), config.set(_ONE_CHECK):
                    address = stack.enter_context(
                        LocalCluster(
                            self._workers,
                            threads_per_worker=1,
                            dashboard_address=None,
                            silence_logs=logging.CRITICAL,
                            env=ONE_THREAD,
                        )
                    )
            try:
                client = stack.enter_context(Client(address))
            except (OSError, ValueError) as error:
                raise InputError(f"--engine: no scheduler answers at {self._address}") from error
            try:
                client.wait_for_workers(1, timeout=_JOIN)
            except TimeoutError as error:
                raise InputError(f"--engine: no worker has joined the scheduler at {self._address}") from error
            yield client


class _Begun(SchedulerPlugin):
    """Tells the driver whenever the scheduler gives one of its checks to a worker, who may not live to tell."""

    def __init__(self, run: str) -> None:
        self.name = self._run = run

    async def start(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:  # noqa: ARG002
        if finish == "processing" and isinstance(key, tuple) and key[0] == self._run:
            self._scheduler.log_event(self._run, key[1])


def _answer(plan: Plan, position: int, future: Any) -> Answer:
    try:
        answer: Answer = future.result()
    except KilledWorker as error:
        reason = (
            f"{error.allowed_failures + 1} workers that had it were lost: killed, out of memory, or over the time limit"
        )
        return unjudged(plan, position, reason), False
    except CancelledError as error:
        raise click.ClickException("the scheduler is lost; --resume goes on with a run in --out") from error
    except WrongWorkerError as error:
        raise InputError(f"--engine: {error}") from error
    return answer


def _judged(plan: Plan, position: int, limit: float | None, made_by: Mapping[str, str]) -> Answer:
    """Judge a check on a worker."""
    worker = get_worker()
    for name, mine in _made_here().items():
        if made_by.get(name) != mine:
            raise WrongWorkerError(f"worker {worker.address} has {name} {mine}, not {made_by.get(name)}")
    with _one_at_a_time, threadpool_limits(1):
        numba.set_num_threads(1)
        return judge(plan, position, limit)


@cache
def _made_here() -> dict[str, str]:
    return code_and_machine()


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what dask says of lost workers, with tracebacks: the run says it in its own words."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
