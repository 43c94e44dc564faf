"""Tables that audits share take memory by their size and not by their number."""

import numpy as np
import pytest

from canaryproof.verify.audit.bounds import lower_bound
from canaryproof.verify.audit.bounds.lower_bound import TABLES, cached_table
from canaryproof.verify.audit.bounds.thresholds import alarms, misses


@pytest.fixture(autouse=True)
def _no_tables():
    TABLES.clear()
    yield
    TABLES.clear()


def test_a_table_is_made_once() -> None:
    assert misses(100, 1e-5, 0.05) is misses(100, 1e-5, 0.05)
    assert misses(100, 1e-5, 0.05) is not alarms(100, 1e-5, 0.05)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("count", [1_000, 100_000])
def test_a_size_counts_the_arrays(count: int) -> None:
    table = misses(count, 1e-5, 0.05)
    arrays = table.log_rate.nbytes + table.log_rest.nbytes
    assert arrays <= TABLES.currsize <= arrays + 8 * lower_bound._OVERHEAD


def test_all_tables_together_stay_within_the_limit() -> None:
    @cached_table
    def zeros(count: int) -> list[np.ndarray]:
        return [np.zeros(count), np.zeros(count)]

    for count in range(1_000_000, 1_000_020):
        zeros(count)
        assert TABLES.currsize <= TABLES.maxsize
    # Four of these have a place, and what came last is there.
    assert len(TABLES) == 4
    assert zeros(1_000_019) is zeros(1_000_019)


def test_a_table_beyond_the_limit_is_made_anew() -> None:
    @cached_table
    def zeros(count: int) -> np.ndarray:
        return np.zeros(count)

    assert zeros(2**23) is not zeros(2**23)
    assert len(TABLES) == 0
