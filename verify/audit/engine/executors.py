"""Executors of tasks: the processes of this machine.

Each process does one task at a time with one thread. Cores are then not oversubscribed. Sums of BLAS, which depend on
its number of threads, are the same everywhere.
"""

import os
import pkgutil
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from threading import Thread
from typing import Any, ClassVar, Protocol

ONE_THREAD = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)

# Number of a task, and the arguments of the function that does it.
Task = tuple[int, tuple[Any, ...]]
# A task's topic, and the key of an expensive computation that it shares with others of its topic, or an empty string.
Kind = tuple[str, str]


def threads() -> int:
    """Return how many processes or threads to use: as many as numba does, which NUMBA_NUM_THREADS bounds."""
    # Loads LLVM, which a process whose tasks call no kernel does not need.
    import numba

    return int(numba.get_num_threads())


class EngineError(Exception):
    """An executor cannot go on."""


@dataclass(frozen=True)
class Lost:
    """In place of the result of a task that was given up, and why."""

    reason: str


class Executor(Protocol):
    """An executor of tasks, ``Local`` or ``cluster.Cluster``; results do not depend on which."""

    @property
    def limit(self) -> float | None:
        """Seconds that a check may take; None for no limit."""

    @property
    def attempts(self) -> Mapping[int, int]:
        """How often the tasks of these numbers were given to a worker, where that may be lost."""

    def results(
        self, function: str, tasks: Iterable[Task], kinds: Sequence[Kind] | None = None
    ) -> Generator[tuple[int, Any], None, None]:
        """Call a function, ``module:name``, with each task's arguments; give what it returns, or ``Lost``, when known.

        Tasks of a kind share what they load, where one process does them, and those that share more are done by one;
        ``kinds`` has those of all numbers. What a call raises is raised here, and ``EngineError`` where the executor
        cannot go on.
        """


@dataclass(frozen=True)
class Local:
    """Executor of processes of this machine, at least 1; one that is lost ends the run."""

    workers: int
    limit: float | None = None
    attempts: ClassVar[Mapping[int, int]] = {}

    def results(
        self, function: str, tasks: Iterable[Task], kinds: Sequence[Kind] | None = None
    ) -> Generator[tuple[int, Any], None, None]:
        """Call a function as an ``Executor`` does."""
        waiting = Waiting(tasks, kinds)
        with ExitStack() as stack:
            pools = [stack.enter_context(processes_of_a_run(1)) for _ in range(min(self.workers, waiting.count))]
            running: dict[Future[Any], tuple[int, int]] = {}

            def begin(process: int) -> None:
                if (task := waiting.take(process)) is not None:
                    number, arguments = task
                    with settings_for_children():
                        running[pools[process].submit(call, function, arguments)] = number, process

            for process in range(len(pools)):
                begin(process)
            try:
                while running:
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        number, process = running.pop(future)
                        answer = future.result()
                        begin(process)
                        yield number, answer
            except BrokenProcessPool as error:
                slow = "" if self.limit is None else f"; or a check took longer than {self.limit:g} s"
                raise EngineError(f"a process of the run was killed, perhaps for want of memory{slow}") from error


class Waiting:
    """Tasks that wait for a process, which keeps to the tasks of a kind as long as there are any.

    A shared queue, as ``ProcessPoolExecutor`` has it, would make each process import every suite, compile the same
    models for JAX, and repeat what the checks of a suite remember. Of a quick run's 220 CPU seconds, the suites
    ``training`` and ``canife`` alone would take 157 for 133.

    Then it takes a kind that no process has had: every second process the first one, the others the last one. Where
    there is none it helps with the kind of which most are left, from its end on. Tasks that share something are done by
    one process. Tasks of no kind are taken in their order.
    """

    def __init__(self, tasks: Iterable[Task], kinds: Sequence[Kind] | None = None) -> None:
        # By kind: groups of tasks that share something. Most groups have one task.
        self._left: dict[str, deque[deque[Task]]] = {}
        groups: dict[Kind, deque[Task]] = {}
        for task in tasks:
            kind, shared = ("", "") if kinds is None else kinds[task[0]]
            group = groups.setdefault((kind, shared or str(task[0])), deque())
            if not group:
                self._left.setdefault(kind, deque()).append(group)
            group.append(task)
        self.count = sum(map(len, groups.values()))
        self._new = deque(self._left)
        self._kinds: dict[int, str] = {}  # what each process is at
        self._helping: set[int] = set()  # who is at what another process has begun
        self._groups: dict[int, deque[Task]] = {}  # what is left of the group that it is at

    def take(self, process: int) -> Task | None:
        """Return the next task of a process, or None if there is none."""
        if not self._groups.get(process):
            if process not in self._kinds or not self._left[self._kinds[process]]:
                if self._new:
                    self._kinds[process] = self._new.popleft() if process % 2 == 0 else self._new.pop()
                else:
                    self._kinds[process] = max(self._left, key=lambda kind: len(self._left[kind]))
                    self._helping.add(process)
            left = self._left[self._kinds[process]]
            take = left.pop if process in self._helping and self._kinds[process] else left.popleft
            self._groups[process] = take() if left else deque()
        return self._groups[process].popleft() if self._groups[process] else None


def call(function: str, arguments: tuple[Any, ...]) -> Any:
    """Call the function named ``module:name``."""
    return pkgutil.resolve_name(function)(*arguments)


@contextmanager
def processes_of_a_run(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Give processes that end when this block does, or this process, whatever ends it."""
    processes = get_context("spawn")
    reader, writer = processes.Pipe(duplex=False)
    with reader, writer, ProcessPoolExecutor(workers, processes, _live_with, (reader.recv_bytes,)) as pool:
        try:
            yield pool
        except BaseException:
            # An interrupt does not wait for the checks that are being judged.
            writer.close()
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def settings_for_children() -> Iterator[None]:
    """Start processes with one thread, deaf to the terminal's interrupts: their parent passes those on.

    Both must hold before a process imports anything: its first call would come after that. On Windows, where nothing is
    inherited like that, an interrupt reaches them too.
    """
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    if sys.platform != "win32":
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _live_with(receive: Callable[[], object]) -> None:
    """End this process when the other end of a pipe closes, as it does even if the process that has it is killed."""

    def end_with_parent() -> None:
        try:
            receive()
        except (EOFError, OSError):
            os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
