"""The executor of many machines: a cluster of dask.distributed, on this machine or another.

The scheduler gives each task, a check or a training, to a worker, and to another one when the worker is lost, a few
times. Workers do one task at a time with one thread, and write nothing: the driver, which is the process of the
command, keeps the results. Whatever joins the cluster must have the same code and the same kind of machine, as results
would have other bits otherwise.
"""

import logging
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import islice
from multiprocessing import resource_tracker
from threading import Lock
from typing import Any
from uuid import uuid4

import numba
from dask import config
from distributed import CancelledError, Client, KilledWorker, LocalCluster, SchedulerPlugin, as_completed, get_worker
from distributed.comm.core import CommClosedError
from threadpoolctl import threadpool_limits

from canaryproof.verify.engine.executors import ONE_THREAD, EngineError, Lost, Task, call, inherited
from canaryproof.verify.engine.origin import code_and_machine
from canaryproof.verify.files.reading import InputError

_AT_ONCE = 4096  # tasks known to the scheduler, to which each costs memory
_JOIN = 30.0  # seconds to wait for the first worker
# A worker that is lost is held against all tasks that it was given, so that it gets one at a time.
_ONE_TASK = {"distributed.scheduler.worker-saturation": 1.0}
# Numba's threads and the time limit are of a process, which may have many of dask's threads.
_one_at_a_time = Lock()


class Cluster:
    """Executor of a cluster of dask.distributed.

    Parameters
    ----------
    address
        Where its scheduler is, such as ``tcp://host:8786``; empty for a cluster on this machine that ends with the run.
    workers
        Number of workers of a cluster on this machine.
    limit
        Seconds that a check may take on a worker, which is given up then; None for no limit.
    """

    def __init__(self, address: str, workers: int, limit: float | None) -> None:
        self._address, self._workers, self.limit = address, workers, limit
        self.begun: Counter[int] = Counter()

    def results(
        self,
        function: str,
        tasks: Iterable[Task],
        kinds: Sequence[str] | None = None,  # noqa: ARG002
    ) -> Generator[tuple[int, Any], None, None]:
        """Call a function as an ``Executor`` does; the scheduler knows no kinds.

        Arguments must be importable without any extra, as a worker reads them before it is asked what it has. An
        ``InputError`` says that there is no scheduler or no worker, or that a worker is of another kind.
        """
        made_by = code_and_machine()
        with _quiet(), self._client() as client:
            run = uuid4().hex  # other runs may be at the same scheduler
            client.register_plugin(_Begun(run))
            client.subscribe_topic(run, lambda event: self.begun.update([event[1]]))
            waiting = iter(tasks)

            def submitted(number: int) -> dict[Any, int]:
                return {
                    client.submit(_done, function, arguments, made_by, key=(run, i), pure=False): i
                    for i, arguments in islice(waiting, number)
                }

            futures = submitted(_AT_ONCE)
            completed = as_completed(futures)
            try:
                for future in completed:
                    i = futures.pop(future)
                    found = self._result(future)
                    # What is held by a worker is done again if that is lost.
                    future.release()
                    more = submitted(1)
                    futures |= more
                    completed.update(more)
                    yield i, found
                client.unregister_scheduler_plugin(run)
            finally:
                client.cancel(list(futures))

    def _result(self, future: Any) -> Any:
        try:
            return future.result()
        except KilledWorker as error:
            slow = "" if self.limit is None else " or over the time limit"
            number = error.allowed_failures + 1
            return Lost(f"{number} workers that had it were lost: killed, perhaps for want of memory{slow}")
        except (CancelledError, CommClosedError) as error:
            raise EngineError("the scheduler is lost") from error

    @contextmanager
    def _client(self) -> Iterator[Client]:
        with ExitStack() as stack:
            address: Any = self._address
            if not address:
                # Its start would make the threads that start workers hear the terminal's interrupts again.
                resource_tracker.ensure_running()
                with inherited(), config.set(_ONE_TASK):
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
    """Tells the driver whenever the scheduler gives one of its tasks to a worker, who may not live to tell."""

    def __init__(self, run: str) -> None:
        self.name = self._run = run

    async def start(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:  # noqa: ARG002
        if finish == "processing" and isinstance(key, tuple) and key[0] == self._run:
            self._scheduler.log_event(self._run, key[1])


def _done(function: str, arguments: tuple[Any, ...], made_by: Mapping[str, str]) -> Any:
    """Do a task on a worker."""
    address, mine = get_worker().address, _made_here()
    for name, theirs in made_by.items():
        if mine.get(name) != theirs:
            raise InputError(f"--engine: worker {address} has {name} {mine.get(name, 'not installed')}, not {theirs}")
    with _one_at_a_time, threadpool_limits(1):
        numba.set_num_threads(1)
        try:
            return call(function, arguments)
        except InputError as error:
            raise InputError(f"--engine: worker {address}: {error.message}") from error


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
