"""Run with ``pytest tests/benchmarks --benchmark-enable``; elsewhere each runs once, untimed."""

import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.verify.audit.estimators import algorithm_1
from tests.benchmarks.rivals import numpy_algorithm_1

COUNT, DIM, ROUNDS = 20, 2**14, 8


@pytest.fixture
def canaries():
    made = Canaries(0, COUNT, DIM)
    made.norms()
    return made


def test_sum(benchmark, canaries):
    assert benchmark(canaries.sum).shape == (DIM,)


def test_cosines(benchmark, canaries):
    assert benchmark(canaries.cosines, noise(1, DIM)).shape == (COUNT,)


def test_block_cosines(benchmark, canaries):
    deltas = np.stack([noise(seed, DIM) for seed in range(ROUNDS)])
    assert benchmark(canaries.block_cosines, deltas).shape == (ROUNDS, COUNT)


def test_algorithm_1(benchmark):
    assert benchmark(algorithm_1.cosines, COUNT, DIM, 1.0, 0).shape == (COUNT,)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.SFC64])
def test_numpy_streaming(benchmark, bits):
    assert benchmark(numpy_algorithm_1, bits, COUNT, DIM, 1.0, 0).shape == (COUNT,)
