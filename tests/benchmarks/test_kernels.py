import json
from dataclasses import asdict, replace

import numba
import pytest

from tests.benchmarks import kernels, processes
from tests.benchmarks.kernels import SIZES, Size, measure
from tests.benchmarks.processes import Bits
from tests.benchmarks.timing import Skipped

TINY = Size("tiny", 1, 5000, 4, 3, 2, 4096, 4, (32, 64), 16, ((1000, 2), (1000, 8), (4000, 2), (4000, 8)), 0, (2, 40))


@pytest.fixture(scope="module")
def found():
    parts, jax = [], []
    with pytest.MonkeyPatch.context() as patch:
        # JAX itself has a process of its own in its tests: its threads and later forks do not go together.
        patch.setattr(kernels, "find_spec", lambda name: name)
        patch.setattr(kernels, "jax_algorithm_1", lambda *arguments: jax.append(arguments))
        patch.setattr(processes, "memory", lambda *_: (Skipped("memory", "no reason"),))
        patch.setattr(processes, "bits", lambda *_: (Bits("coordinates", True, True),))
        result = measure(TINY, parts.append)
    assert len(parts) == len(set(parts)) == 7
    assert set(jax) == {(2, 5000, 1.0, 0)}
    return result


@pytest.mark.deep
def test_all_that_is_compared_is_there(found):
    labels = [row.label for row in found.algorithm_1]
    assert labels.count("canaryproof") == len({1, min(2, found.threads), found.threads})
    assert {"numpy, PCG64", "numpy, SFC64", "JAX, threefry"} < set(labels)
    assert found.stored.coordinates == 3 * 5000
    assert [block.rounds for block in found.rounds] == [32, 64]
    assert len(found.targets) == 10


def test_work_is_that_of_the_whole(found):
    for row in found.algorithm_1:
        if row.label == "canaryproof":
            assert (row.coordinates, row.share) == (2 * 4 * 5000, 1.0)
        elif not isinstance(row, Skipped):
            assert (row.coordinates, row.share) == (2 * 4 * 5000, 0.5)
    for block in found.rounds:
        numpy = next(row for row in block.timings if row.label == "numpy, PCG64")
        # Two canaries in one round, of four in all.
        assert (numpy.coordinates, numpy.share) == (4096 * 4 * block.rounds, 2 / (4 * block.rounds))


def test_orthonormal_canaries_are_timed_for_each_number_of_them(found):
    # Two of them, and forty, where four independent ones stand for all.
    first, second = found.orthonormal.algorithm_1[1::3]
    assert (first.coordinates, first.share) == (2 * 2 * 5000, 1.0)
    assert (second.coordinates, second.share) == (2 * 40 * 5000, 4 / 40)
    assert [row.label for row in found.orthonormal.rounds] == ["orthonormal", "independent", "the transforms alone"]


def test_both_ways_to_score_rounds_are_compared(found):
    for block in found.rounds:
        # No error is what a comparison with itself would give; 2e-6 is what block_cosines promises.
        assert 0.0 < block.largest_difference < 2e-6


def test_the_document_is_json(found):
    assert json.loads(json.dumps(asdict(found), allow_nan=False))["size"]["name"] == "tiny"


def test_jax_is_skipped_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(kernels, "find_spec", lambda _: None)
    first, _ = kernels._algorithm_1(replace(TINY, dim=300), 1)
    assert first[-1] == Skipped("JAX, threefry", "jax is not installed")


def test_versions_that_are_not_there_are_called_so():
    assert kernels._version("no-such-distribution") == "not installed"
    assert kernels.environment()["numba"] == numba.__version__


def test_sizes_are_what_the_aims_are_about():
    full = SIZES["full"]
    assert (full.dim, full.count, full.blocks) == (2**20, 1000, (32, 64))
    assert max(dim for dim, _ in full.scaling) == 10**8
