"""Compiled loops in Python's threads: the interpreter's lock is released while they run.

Unlike OpenMP's threads, these wait for work without a busy loop, so that they take nothing from a training that runs
meanwhile, and a forked process has its own.
"""

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from itertools import count, pairwise
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import numba

# In fewer coordinates a thread takes longer to wake than it saves.
_FEW = 2**16
# Where others use the machine, too, threads are not equally fast, hence more parts than threads. But between two parts
# a thread may have to wait for the interpreter's lock, about as long as it takes to make 2¹⁶ coordinates.
_PART, _PARTS = 2**18, 16


def _serve(tasks: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        tasks.get()()


@cache
def _tasks(process: int) -> SimpleQueue[Callable[[], None]]:
    """Return what the threads of a process take their work from. A forked process does not have its parent's."""
    tasks = SimpleQueue[Callable[[], None]]()
    # numba's types don't have its settings.
    config: Any = numba.config
    # No thread can be had from a system that has no more: callers do all themselves, then.
    with suppress(RuntimeError):
        for _ in range(config.NUMBA_NUM_THREADS - 1):
            Thread(target=_serve, args=(tasks,), name=f"canaryproof-{process}", daemon=True).start()
    return tasks


def in_threads(loop: Callable[..., None], number: int, coordinates: int, *arguments: Any) -> None:
    """Run ``loop(*arguments, begin, end)`` over 0, …, number − 1, cut into parts for as many threads as numba may use.

    The loop is compiled with ``nogil=True``. It must not matter how it is cut, nor in which order its parts run.
    ``coordinates`` says how many numbers it makes or reads in all.
    """
    threads = min(numba.get_num_threads(), number) if coordinates >= _FEW else 1
    if threads <= 1:
        loop(*arguments, 0, number)
        return
    # Compiled here, and not by each thread.
    loop(*arguments, 0, 0)
    parts = min(number, max(threads, min(threads * _PARTS, coordinates // _PART)))
    left = deque(pairwise([number * i // parts for i in range(parts + 1)]))
    ends = count(1)
    failures = list[BaseException]()
    unfinished = Lock()
    unfinished.acquire()

    def work(take: Callable[[], tuple[int, int]]) -> None:
        with suppress(IndexError):
            while True:
                begin, end = take()
                try:
                    loop(*arguments, begin, end)
                except BaseException as failure:
                    failures.append(failure)
                if next(ends) == parts:
                    unfinished.release()

    tasks = _tasks(os.getpid())
    for _ in range(threads - 1):
        tasks.put(partial(work, left.pop))
    # From the other end, so that what a thread has written is in its own cache when the next loop reads it.
    work(left.popleft)
    unfinished.acquire()
    if failures:
        raise failures[0]
