"""The exact law of a coordinate, and how near to it the kernel's values are.

With words of b bits there are 2^(b − 2) values q_i = −Φ⁻¹((2i + 1) 2^(−b)) > 0, and as many below zero, all equally
likely: each is the quantile at the centre of a cell of probability 2^(1 − b). The kernel has b = 32, and its values x_i
lie within ``QUANTILE_ERROR`` of q_i, relative, which ``scan`` measures over as many of the words as one likes.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import special, stats

from canaryproof.verify.streams import source

BITS = 32
# What ``kernels.canaries`` states.
QUANTILE_ERROR = 4.6e-7
_ONE_BY_ONE = 2**16
_AT_ONCE = 2**20


@cache
def moment(order: int, bits: int = BITS) -> float:
    """Moment E q^order of the discretised normal.

    Parameters
    ----------
    order
        An even number, at least 0.
    bits
        Bits b of a word, from 2 on.

    Returns
    -------
    The moment, to a relative 1e-12 or so: values of the outermost cells one by one, the others by the integral over
    their cells and the midpoint rule's first correction (Euler and Maclaurin).
    """
    half, width = 2 ** (bits - 2), math.ldexp(1.0, 1 - bits)
    one_by_one = min(half, _ONE_BY_ONE)
    total = float(np.sum(special.ndtri((np.arange(one_by_one) + 0.5) * width) ** order)) / half
    if one_by_one < half:
        edge = -float(special.ndtri(one_by_one * width))
        absolute = math.exp(0.5 * order * math.log(2.0) + math.lgamma(0.5 * (order + 1))) / math.sqrt(math.pi)
        total += absolute * float(special.gammainc(0.5 * (order + 1), 0.5 * edge**2))
        # The derivative of q^order by the probability, at the edge; at the centre it is 0.
        total -= 2.0 * width**2 / 24.0 * order * edge ** (order - 1) / float(stats.norm.pdf(edge))
    return float(total)


def largest(bits: int = BITS) -> float:
    """Largest value of the discretised normal."""
    return -float(special.ndtri(math.ldexp(1.0, -bits)))


def tail(threshold: float, bits: int = BITS) -> float:
    """Probability that the discretised normal exceeds a threshold ≥ 0: an exact count of its values."""
    # Values beyond t have (2i + 1) 2^(-b) < P(X > t).
    beyond = math.ceil(math.ldexp(float(special.ndtr(-threshold)), bits - 1) - 0.5)
    return math.ldexp(min(2 ** (bits - 2), max(0, beyond)), 1 - bits)


@dataclass(frozen=True)
class Scan:
    """What was found of the kernel's values.

    Attributes
    ----------
    words
        How many words of one tail were tried.
    largest_error
        Largest |x/q − 1|.
    square_error
        Mean of (x − q)².
    moments
        Means of x², x⁴, x⁶ and x⁸, the kernel's own moments where all words were tried.
    symmetric
        Whether each complement has the same value with the other sign, and the lowest bit is without effect.
    """

    words: int
    largest_error: float
    square_error: float
    moments: tuple[float, ...]
    symmetric: bool


def scan(stride: int = 1) -> Scan:
    """Compare the kernel's values with scipy's quantiles.

    Parameters
    ----------
    stride
        1 for all values, otherwise every stride-th one from the outermost on.

    Returns
    -------
    What was found.
    """
    count = -(-(2 ** (BITS - 2)) // stride)
    worst, squares, symmetric = 0.0, [], True
    sums: list[list[float]] = [[], [], [], []]
    for start in range(0, count, _AT_ONCE):
        chosen = (2 * stride * np.arange(start, min(start + _AT_ONCE, count)) + 1).astype(np.uint32)
        found = source.quantiles(chosen)
        symmetric &= np.array_equal(source.quantiles(~chosen), -found)
        symmetric &= np.array_equal(source.quantiles(chosen - np.uint32(1)), found)
        exact, values = special.ndtri(chosen * 2.0**-BITS), found.astype(np.float64)
        errors = values - exact
        worst = max(worst, float(np.abs(errors / exact).max()))
        squares.append(float(errors @ errors))
        power = values**2
        for order in range(4):
            sums[order].append(float(np.sum(power ** (order + 1))))
    return Scan(count, worst, math.fsum(squares) / count, tuple(math.fsum(part) / count for part in sums), symmetric)
