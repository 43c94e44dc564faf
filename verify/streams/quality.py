"""Tests of the stream: every statistic has a null law that is exact or bounded, and all of them share one level.

The null hypothesis is that words are independent and uniform, and that coordinates lie within ``law.QUANTILE_ERROR`` of
their words' quantiles. Counts of words, and of coordinates beyond a threshold, are binomial, and their p-values exact
(for tails: at the worst threshold that the quantiles' error allows). Sums of powers and products are bounded by
Bennett's inequality (1962, "Probability inequalities for the sum of independent random variables"), which needs only
the largest term and its variance: these p-values are upper bounds at any size. Bins alone have a limit law, chi-square;
they are filled by thousands.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from canaryproof.verify.streams import law, readings, source
from canaryproof.verify.streams.counts import BINS, LAGS, LENGTH, ORDERS, THRESHOLDS, Counts

# Of all tests together.
LEVEL = 1e-6
POWER = 0.99
_ERROR = law.QUANTILE_ERROR


def _log_bennett(excess: float, count: float, variance: float, largest: float) -> float:
    """Bound log P(|sum of ``count`` independent centred terms| ≥ excess)."""
    u = largest * excess / (count * variance)
    return math.log(2.0) - count * variance / largest**2 * ((1.0 + u) * math.log1p(u) - u)


def _bennett(excess: float, count: float, variance: float, largest: float) -> float:
    return min(1.0, math.exp(_log_bennett(excess, count, variance, largest)))


def _binomial(found: NDArray[np.int64], count: int, low: float, high: float) -> float:
    """Smallest of the p-values of binomial counts whose probability lies in [low, high], times their number."""
    above, below = stats.binom.sf(found - 1, count, high), stats.binom.cdf(found, count, low)
    return min(1.0, 2.0 * len(found) * float(min(above.min(), below.min())))


def _bins(found: NDArray[np.int64]) -> float:
    expected = found.sum() / BINS
    statistic = float(np.sum((found - expected) ** 2) / expected)
    return 2.0 * float(min(stats.chi2.sf(statistic, BINS - 1), stats.chi2.cdf(statistic, BINS - 1)))


def _power_terms(order: int) -> tuple[float, float, float, float]:
    """Mean of x^order, how far the quantiles' error may move it, variance, and largest distance from the mean."""
    mean = law.moment(order) if order % 2 == 0 else 0.0
    stretch = (1.0 + _ERROR) ** order
    variance = law.moment(2 * order) * stretch**2 - mean**2 / stretch**2
    return mean, mean * (stretch - 1.0), variance, law.largest() ** order * stretch


def _marginals(counts: Counts) -> Iterator[tuple[str, float]]:
    n = counts.coordinates
    for order in range(1, ORDERS + 1):
        mean, slack, variance, largest = _power_terms(order)
        excess = max(0.0, abs(float(counts.powers[order - 1]) - n * mean) - n * slack)
        yield f"moment {order}", _bennett(excess, n, variance, largest)
    for k, threshold in enumerate(THRESHOLDS):
        low, high = (law.tail(float(threshold) * (1.0 + way * _ERROR)) for way in (2, -2))
        yield f"tails 2^-{k + 1}", _binomial(counts.tails[:, k], n, low, high)
    yield "12 highest bits", _bins(counts.bins[0])
    yield "12 lowest bits", _bins(counts.bins[1])
    yield "balance of bits", _binomial(counts.bits, n, 0.5, 0.5)


def _pairs(counts: Counts) -> Iterator[tuple[str, float]]:
    square = law.moment(2)
    largest = (law.largest() * (1.0 + _ERROR)) ** 2
    drift = (square * ((1.0 + _ERROR) ** 2 - 1.0)) ** 2
    variances = (
        square**2 * (1.0 + _ERROR) ** 4,
        (law.moment(4) * (1.0 + _ERROR) ** 4 - square**2 * (1.0 - _ERROR) ** 4) ** 2,
    )
    for i, lag in enumerate(LAGS):
        for late in range(2):
            n, name = int(counts.pairs[i, late]), f"lag {lag}{' from the lag on' if late else ''}"
            product, squares = np.abs(counts.products[i, late])
            yield f"{name}, products", _bennett(float(product), n, variances[0], largest)
            yield (
                f"{name}, squares",
                _bennett(max(0.0, float(squares) - n * drift), n, variances[1], (largest - square) ** 2),
            )
            yield f"{name}, highest bits", _bins(counts.cells[i, late])
            yield f"{name}, equal bits", _binomial(counts.differing[i, late], n, 0.5, 0.5)


def _repeats() -> tuple[str, float]:
    """Look for a pair of words that two counters have in common, among streams whose arguments differ in one bit."""
    words = source.streams(readings.neighbours(), source.TILE)[0]
    pairs = words[:, : source.RUN].astype(np.uint64) << np.uint64(32) | words[:, source.RUN : 2 * source.RUN]
    repeated = pairs.size - len(np.unique(pairs))
    # The expected number bounds the probability of one or more.
    return "repeated counters", 0.5 * pairs.size**2 * 2.0**-64 if repeated else 1.0


def visible_moment(order: int, count: int, tests: int) -> float:
    """Smallest relative deviation of an even moment that is seen with probability 0.99.

    Parameters
    ----------
    order
        2, 4, 6 or 8.
    count
        Number of coordinates.
    tests
        Number of tests that share ``LEVEL``.

    Returns
    -------
    The deviation, by the normal approximation of the sum beyond Bennett's threshold.
    """
    mean, slack, variance, largest = _power_terms(order)
    deviation = math.sqrt(count * variance)
    share = math.log(LEVEL / tests)
    found = optimize.brentq(lambda z: _log_bennett(z * deviation, count, variance, largest) - share, 0.0, 1e6)
    return ((found + float(stats.norm.ppf(POWER))) * deviation / count + slack) / mean


@dataclass(frozen=True)
class Quality:
    """What the tests found.

    Attributes
    ----------
    coordinates
        How many were read, in all readings.
    p_values
        Of each test: by reading where it is one of pairs.
    linked
        Whether every coordinate is what the kernel makes of its word, bit for bit.
    """

    coordinates: int
    p_values: dict[str, float]
    linked: bool

    @property
    def smallest(self) -> tuple[str, float]:
        """The test that says most, and its p-value."""
        return min(self.p_values.items(), key=lambda item: item[1])

    @property
    def passed(self) -> bool:
        """Whether coordinates belong to their words, and no p-value is below its share of ``LEVEL``."""
        return self.linked and self.smallest[1] >= LEVEL / len(self.p_values)


def judge(count: int, seed: int | np.random.SeedSequence, done: Callable[[int], object] = lambda _: None) -> Quality:
    """Read the stream in all ways and test it.

    Parameters
    ----------
    count
        How many coordinates to read, at least; each reading takes whole stretches of 2²⁰, all the same number of them.
    seed
        Where to read; see ``readings.place``.
    done
        Called with the number of coordinates read, after each stretch.

    Returns
    -------
    The p-values.
    """
    rng = np.random.default_rng(seed)
    first = int(rng.integers(0, 2**30))
    of_reading = {name: Counts() for name in readings.READINGS}
    stretches = max(1, -(-count // (LENGTH * len(of_reading))))
    read, linked = 0, True
    for number in range(stretches):
        for offset, (name, counts) in enumerate(of_reading.items()):
            where = readings.place(first + number * len(of_reading) + offset, rng)
            words, coordinates = readings.read(name, where)
            linked &= np.array_equal(source.quantiles(words), coordinates)
            counts.add(words, coordinates)
            read += LENGTH
            done(read)
    together = Counts()
    for counts in of_reading.values():
        together += counts
    p_values = {f"all: {test}": p for test, p in (*_marginals(together), _repeats())}
    for name, counts in of_reading.items():
        p_values |= {f"{name}: {test}": p for test, p in _pairs(counts)}
    return Quality(read, p_values, linked)
