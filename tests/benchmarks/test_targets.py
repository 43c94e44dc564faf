import pytest

from tests.benchmarks.processes import Memory
from tests.benchmarks.targets import targets
from tests.benchmarks.timing import Skipped, Timing


def timing(label, seconds, threads=2, error=0.0):
    return Timing(label, 10**9, threads, 1.0, seconds, error, 3)


FIRST = [
    timing("canaryproof", 2.0, 1),
    timing("canaryproof", 1.0, 2, error=0.01),
    timing("numpy, PCG64", 16.0),
    timing("numpy, SFC64", 13.0, error=0.26),
    Skipped("JAX, threefry", "jax is not installed"),
]
BLOCK = [
    timing("block_cosines", 0.18),
    timing("block_cosines, first block", 0.1),
    timing("stored, V Cᵀ", 0.2),
    timing("stored, C Vᵀ", 0.1),
    timing("numpy, PCG64", 40.0),
    timing("numpy, SFC64", 17.0),
]
MEMORY = [Memory("a", 1, 1, 0, 3 * 10**6), Memory("b", 1, 1, 0, 65 * 10**6), Skipped("c", "no reason")]
ORTHONORMAL = [
    *(
        timing("orthonormal, k = 1,000", 0.02),
        timing("independent, k = 1,000", 1.8),
        timing("the transforms alone", 0.016),
    ),
    *(timing("orthonormal, k = 10", 0.03), timing("independent, k = 10", 18.0), timing("the transforms alone", 0.01)),
]


def found(first=FIRST, memory=MEMORY, threads=2):
    return targets(first, {32: BLOCK, 64: BLOCK}, memory, ORTHONORMAL, threads)


def test_each_aim_is_compared_with_what_was_measured():
    numpy, again, at_32, at_64, memory, threads, few, many, transforms = found()
    # The faster of numpy's generators, on two threads of ours.
    assert (numpy.measured, numpy.met) == (13.0, True)
    assert numpy.error == pytest.approx(13.0 * (0.02 + 0.01))
    # The later blocks' time counts, and the faster product.
    assert (again.measured, again.met) == (pytest.approx(17.0 / 0.18), False)
    assert (at_32.measured, at_32.met) == (pytest.approx(1.8), True)
    assert (at_64.measured, at_64.met) == (pytest.approx(1.8), False)
    assert (memory.measured, memory.met) == (65.0, False)
    assert (threads.measured, threads.met) == (2.0, True)
    # Of the fewest canaries and of the most; the transforms where they are least of it.
    assert (few.measured, few.met) == (pytest.approx(90.0), True)
    assert (many.measured, many.met) == (pytest.approx(600.0), False)
    assert (transforms.measured, transforms.met) == (pytest.approx(3.0), False)


def test_what_cannot_be_measured_is_neither_met_nor_missed():
    memory, threads = found([FIRST[0], *FIRST[2:]], MEMORY[2:], threads=1)[4:6]
    for target in (memory, threads):
        assert (target.measured, target.error, target.met) == (None, None, None)
