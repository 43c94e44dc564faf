"""Tests of one ε after another, which end at the first ε that is not rejected.

The order is fixed, so that each test may use all of α (Maurer, Hothorn and Lehmacher 1995; proof in
``proofs_check/lower_bounds.md``). A test's statistic is declared for blocks of ε.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from canaryproof.kernels.arrays import Array, Bools, Ints
from canaryproof.verify.audit.bounds.precedence import EPSILONS

# Shares of α for the declared ranks and for the sharper test. With 70% and 30%, bounds from few scores fall below 90%
# of those by ranks alone in the suite's grid. The default's mean share of the best bound is then smaller, too.
NESTED, SHARP = 0.8, 0.2
# The sharper test's statistic is declared for a block of this many values of ε, by the largest, and for this level.
BLOCK, DESIGN_ALPHA = 8, 0.05 * SHARP


def designs(size: int, delta: float) -> list[tuple[float, float]]:
    """Return the values of δ that tests are designed for, and the values at which the tests are made.

    A design serves half a decade on either side, the first one all smaller values. All tests have to reject. So a
    larger δ never gives a larger bound, although it has designs of its own.
    """
    smallest = math.ceil(math.log10(size)) + 1
    ends = [10.0 ** (0.5 - i) for i in range(smallest, 1, -1)]
    used = 1 + sum(delta > end for end in ends)
    return [(10.0 ** -(smallest - i), min([delta, *ends[i : i + 1]])) for i in range(used)]


@dataclass(frozen=True)
class BlockTest:
    """A test whose statistic is declared for a block of ε; within the block, it rejects all ε below a rejected one."""

    evidence: Callable[[Ints, float], Ints]  # The statistic of audits, for a block's largest ε
    are_rejected: Callable[[float, float, Ints], Bools]  # Whether values of it reject, for that and an ε of the block


def last_before(tests: Sequence[BlockTest], values: Array) -> Array:
    """Return the last ε before the first that not all tests reject.

    Tests begin at the first ε that is not below ``values``, as smaller ones have been rejected already.
    """
    start, values = np.searchsorted(EPSILONS, values, side="left"), values.copy()
    left = np.flatnonzero(start < len(EPSILONS))
    block = int(start[left].min()) // BLOCK if len(left) else 0
    for first in range(block * BLOCK, len(EPSILONS), BLOCK):
        if not len(left):
            break
        last = min(first + BLOCK, len(EPSILONS))
        reached = np.full(len(left), last - 1)
        begun = start[left] < last
        at = np.flatnonzero(begun)
        declared = float(EPSILONS[last - 1])
        for test in tests:
            statistic = test.evidence(left[at], declared)
            begin = np.maximum(start[left[at]], first)
            reached[at] = _last_rejected_index(test, declared, statistic, begin, reached[at])
        rejected = begun & (reached >= np.maximum(start[left], first))
        values[left[rejected]] = np.maximum(values[left[rejected]], EPSILONS[reached[rejected]])
        left = left[~begun | (reached == last - 1)]
    return values


def _last_rejected_index(test: BlockTest, declared: float, statistic: Ints, first: Ints, last: Ints) -> Ints:
    """Return for each audit the last index from ``first`` to ``last`` whose ε is rejected, ``first`` − 1 if none is."""
    low, high, probe = first - 1, last + 1, last
    while (searched := high - low > 1).any():
        # A critical value serves all audits that ask for it at once.
        for index in np.unique(probe[searched]):
            at = np.flatnonzero(searched & (probe == index))
            rejected = test.are_rejected(declared, float(EPSILONS[index]), statistic[at])
            low[at[rejected]] = high[at[~rejected]] = index
        probe = (low + high) // 2
    return low
