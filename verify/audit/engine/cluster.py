"""The executor of many machines: a cluster of dask.distributed, on this machine or another.

The scheduler gives each task, a check or a training, to a worker, and to another one when the worker is lost, a few
times. Workers do one task at a time with one thread, and write nothing: the driver, which is the process of the
command, keeps the results. Whatever joins the cluster must have the same code and the same kind of machine, as results
would have other bits otherwise.

Who can speak to a scheduler can run code as the user who started it. A cluster on this machine speaks TLS, with keys
that exist in the memory of its processes alone, as other users can reach its ports.
"""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.metadata import version
from itertools import islice
from multiprocessing import resource_tracker
from pickle import dumps, loads
from threading import Lock
from typing import Any
from uuid import uuid4

import numba
from dask import config
from distributed import CancelledError, Client, KilledWorker, LocalCluster, SchedulerPlugin, as_completed
from distributed.comm.core import CommClosedError, connect
from distributed.core import send_recv
from distributed.security import Security
from threadpoolctl import threadpool_limits

from canaryproof.verify.audit.engine.executors import (
    ONE_THREAD,
    EngineError,
    Kind,
    Lost,
    Task,
    call,
    settings_for_children,
)
from canaryproof.verify.audit.engine.provenance import code_and_machine
from canaryproof.verify.audit.files.errors import InputError

_AT_ONCE = 4096  # tasks known to the scheduler, to which each costs memory
_PACKAGE = "canaryproof"
_ANSWER = 15.0  # seconds that a scheduler has to answer
_JOIN = 30.0  # seconds to wait for the first worker
_OWN = {
    # A worker that is lost is held against all tasks that it was given, so that it gets one at a time.
    "distributed.scheduler.worker-saturation": 1.0,
    # Each process has a server of HTTP, which asks for no key: it has no pages.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
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
        self.attempts: Counter[int] = Counter()

    def results(
        self,
        function: str,
        tasks: Iterable[Task],
        kinds: Sequence[Kind] | None = None,  # noqa: ARG002
    ) -> Generator[tuple[int, Any], None, None]:
        """Call a function as an ``Executor`` does; the scheduler knows no kinds.

        Arguments must be importable without any extra, as a worker reads them before it is asked what it has. An
        ``InputError`` says that there is no scheduler or no worker, or that a worker is of another kind.
        """
        made_by, expected = code_and_machine(), version(_PACKAGE)
        with _quiet(), self._client() as client:
            run = uuid4().hex  # other runs may be at the same scheduler
            client.register_plugin(_Begun(run))
            client.subscribe_topic(run, lambda event: self.attempts.update([event[1]]))
            waiting = iter(tasks)

            def submit(number: int) -> dict[Any, int]:
                return {
                    client.submit(
                        _run_on_worker, expected, made_by, function, dumps(arguments), key=(run, i), pure=False
                    ): i
                    for i, arguments in islice(waiting, number)
                }

            futures = submit(_AT_ONCE)
            completed = as_completed(futures)
            try:
                for future in completed:
                    i = futures.pop(future)
                    answer = self._result(future)
                    # A lost worker's finished task is repeated as long as its future is held.
                    future.release()
                    more = submit(1)
                    futures |= more
                    completed.update(more)
                    yield i, answer
                client.unregister_scheduler_plugin(run)
            finally:
                client.cancel(list(futures))

    def _result(self, future: Any) -> Any:
        try:
            worker, reason, answer = future.result()
        except KilledWorker as error:
            slow = "" if self.limit is None else " or over the time limit"
            number = error.allowed_failures + 1
            return Lost(f"{number} workers that had it were lost: killed, perhaps for want of memory{slow}")
        except (CancelledError, CommClosedError) as error:
            raise EngineError("the scheduler is lost") from error
        if reason:
            raise InputError(f"--engine: worker {worker} has {reason}")
        return answer

    @contextmanager
    def _client(self) -> Iterator[Client]:
        with ExitStack() as stack:
            cluster: Any = self._address
            if self._address:
                _check(self._address)
            else:
                # Its start would make the threads that start workers hear the terminal's interrupts again. Windows has
                # no such process.
                if sys.platform != "win32":
                    resource_tracker.ensure_running()
                with settings_for_children(), config.set(_OWN):
                    cluster = stack.enter_context(
                        LocalCluster(
                            n_workers=self._workers,
                            threads_per_worker=1,
                            dashboard_address=None,
                            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                            security=Security.temporary(),
                            silence_logs=logging.CRITICAL,
                            env=ONE_THREAD,
                        )
                    )
            try:
                client = stack.enter_context(Client(cluster, timeout=_ANSWER))
            except (OSError, ValueError) as error:
                raise InputError(f"--engine: no scheduler answers at {self._address}") from error
            try:
                client.wait_for_workers(1, timeout=_JOIN)
            except TimeoutError as error:
                raise InputError(f"--engine: no worker has joined the scheduler at {self._address}") from error
            yield client


def _check(address: str) -> None:
    """Refuse an address where nothing answers as a scheduler with the package; a client would wait without an end."""
    try:
        connection = Security().get_connection_args("client")
    except OSError as error:
        raise InputError(f"--engine: {error.filename or 'TLS'}: {error.strerror or error}") from error
    if address.startswith("tls://") and connection.get("ssl_context") is None:
        raise InputError("--engine: tls:// needs certificates: dask's setting distributed.comm.tls names their files")

    async def answer() -> tuple[Any, Any]:
        comm = await connect(address, **connection)
        try:
            identity = await send_recv(comm, op="identity", reply=True)
            return identity["type"], await send_recv(comm, op="versions", packages=[_PACKAGE], reply=True)
        finally:
            comm.abort()

    try:
        kind, versions = asyncio.run(asyncio.wait_for(answer(), _ANSWER))
        installed = versions["packages"][_PACKAGE] or "not installed"
    except Exception as error:
        # Another protocol's bytes may be read as a message of any length and form.
        raise InputError(f"--engine: no scheduler answers at {address}") from error
    if kind != "Scheduler":
        raise InputError(f"--engine: at {address} is no scheduler but a {kind}")
    if installed != version(_PACKAGE):
        raise InputError(f"--engine: the scheduler at {address} has {_PACKAGE} {installed}, not {version(_PACKAGE)}")


class _Begun(SchedulerPlugin):
    """Tells the driver whenever the scheduler gives one of its tasks to a worker, who may not live to tell."""

    def __init__(self, run: str) -> None:
        self.name = self._run = run

    async def start(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:  # noqa: ARG002
        if finish == "processing" and isinstance(key, tuple) and key[0] == self._run:
            self._scheduler.log_event(self._run, key[1])


def _run_on_worker(expected: str, made_by: Mapping[str, str], function: str, arguments: bytes) -> tuple[str, str, Any]:
    """Do a task on a worker; return the worker's address, and what it has that the driver has not, or the result."""
    # All is imported here: this goes to the worker as code, because one without the package ends at its name.
    from importlib.metadata import PackageNotFoundError, version

    from distributed import get_worker

    address = get_worker().address
    try:
        installed = version("canaryproof")
    except PackageNotFoundError:
        installed = "not installed"
    if installed != expected:
        return address, f"canaryproof {installed}, not {expected}", None
    from canaryproof.verify.audit.engine.cluster import _run_task

    return address, *_run_task(address, made_by, function, arguments)


# Pickle then sends the function's code and not its name.
_run_on_worker.__module__ = "__main__"


def _run_task(address: str, made_by: Mapping[str, str], function: str, arguments: bytes) -> tuple[str, Any]:
    """Do a task on a worker; return what it has that the driver has not, or the result."""
    mine = _code_and_machine_here()
    for name, theirs in made_by.items():
        if mine.get(name) != theirs:
            return f"{name} {mine.get(name, 'not installed')}, not {theirs}", None
    with _one_at_a_time, threadpool_limits(1):
        numba.set_num_threads(1)
        try:
            return "", call(function, loads(arguments))
        except InputError as error:
            raise InputError(f"--engine: worker {address}: {error.message}") from error


@cache
def _code_and_machine_here() -> dict[str, str]:
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
