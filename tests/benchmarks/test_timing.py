import numba
import pytest

from tests.benchmarks import timing
from tests.benchmarks.timing import Contestant, Timing, limited, race


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is set forward."""
    now = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    return now


def test_contestants_take_turns_and_the_best_counts(clock):
    order = []

    def work(name, times):
        lasts = iter(times)

        def run():
            order.append(name)
            clock[0] += next(lasts)

        return run

    found = race(
        [
            Contestant("a", work("a", [9.0, 3.0, 2.0, 2.5]), 10, 1),
            Contestant("b", work("b", [0.5, 4.0, 6.0, 8.0]), 20, 1, share=0.25),
        ],
        3,
    )
    assert order == ["a", "b"] * 4
    # What was done before does not count.
    assert found[0] == Timing("a", 10, 1, 1.0, 2.0, 0.5, 3)
    assert found[1] == Timing("b", 20, 1, 0.25, 16.0, 8.0, 3)


def test_one_repetition_tells_nothing_of_its_error(clock):
    def run():
        clock[0] += 2.0

    (found,) = race([Contestant("a", run, 1, 1)], 1)
    assert (found.seconds, found.error) == (2.0, 2.0)


def test_threads_are_limited_and_set_back():
    before = numba.get_num_threads()
    seen = []
    race([Contestant("a", lambda: seen.append(numba.get_num_threads()), 1, 1)], 1)
    assert seen == [1, 1]
    assert numba.get_num_threads() == before
    with pytest.raises(KeyError), limited(1):
        raise KeyError
    assert numba.get_num_threads() == before
