"""Loops in several threads: each part is done once, whatever fails, and whether or not there are threads."""

import threading

import numba
import numpy as np
import pytest

from canaryproof.kernels import _threads

# More than enough for several threads.
MANY = 2**30


@pytest.fixture(autouse=True)
def _all_threads():
    before = numba.get_num_threads()
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    yield
    numba.set_num_threads(before)


@pytest.mark.parametrize("number", [1, 2, 3, 31, 1000])
@pytest.mark.parametrize("coordinates", [0, 2**16, 2**20, MANY])
def test_each_part_is_done_once(number, coordinates):
    done = np.zeros(number, int)

    def loop(step, begin, end):
        for i in range(begin, end):
            done[i] += step

    _threads.in_threads(loop, number, coordinates, 7)
    assert done.tolist() == [7] * number


@pytest.mark.parametrize("failing", [0, 50, 99])
def test_an_error_in_any_thread_is_raised_when_all_is_done(failing):
    done = np.zeros(100, bool)

    def loop(begin, end):
        done[begin:end] = True
        if begin <= failing < end:
            raise ZeroDivisionError(failing)

    with pytest.raises(ZeroDivisionError, match=str(failing)):
        _threads.in_threads(loop, 100, MANY)
    assert done.all()


def test_a_loop_within_a_loop_ends():
    done = np.zeros((40, 50), int)

    def inner(i, begin, end):
        done[i, begin:end] += 1

    def outer(begin, end):
        for i in range(begin, end):
            _threads.in_threads(inner, 50, MANY, i)

    _threads.in_threads(outer, 40, MANY)
    assert (done == 1).all()


def test_without_a_thread_the_caller_does_all(monkeypatch):
    class NoThread(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_threads, "Thread", NoThread)
    # As in a process that was forked just now.
    monkeypatch.setattr(_threads.os, "getpid", lambda: -1)
    done = np.zeros(100, int)

    def loop(begin, end):
        done[begin:end] = threading.get_ident()

    _threads.in_threads(loop, 100, MANY)
    assert (done == threading.get_ident()).all()
    _threads._tasks.cache_clear()
