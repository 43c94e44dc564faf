"""The quality of the canary stream: its words and coordinates as the kernel makes them, counted and tested.

It is the one place that names the kernel's inner parts.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from canaryproof.kernels import _canary_stream as stream
from canaryproof.kernels._compiled import njit
from canaryproof.kernels._threads import in_threads
from canaryproof.verify.audit.levels import LEVEL

TILE, RUN = stream.TILE, stream.RUN
# Tiles of the largest dimension.
TILES = 2**28

_U32, _U64 = np.uint32, np.uint64
_LOW, _SHIFT = _U64(2**32 - 1), _U64(32)


@njit(cache=True, nogil=True)
def _fill(chosen: Any, words: Any, coordinates: Any, begin: int, end: int) -> None:
    per_row = words.shape[1] // TILE
    for k in range(begin, end):
        row, start = k // per_row, k % per_row * TILE
        seed, index, purpose = chosen[row, 0], chosen[row, 1], chosen[row, 2]
        tile = chosen[row, 3] + _U64(k % per_row)
        # Counters of a tile share their high half.
        first, part = tile * _U64(RUN), words[row, start : start + TILE]
        for r in range(RUN):
            w0, w1, w2, w3 = stream._philox(
                (first & _LOW) + _U64(r), first >> _SHIFT, index, purpose, seed & _LOW, seed >> _SHIFT
            )
            part[r], part[RUN + r], part[2 * RUN + r], part[3 * RUN + r] = _U32(w0), _U32(w1), _U32(w2), _U32(w3)
        bits = coordinates[row, start : start + TILE].view(np.uint32)
        stream.make_tile(seed, index, purpose, np.int64(tile), stream.MAX_DIM, bits)


@njit(cache=True, nogil=True)
def _quantiles(words: Any, out: Any, begin: int, end: int) -> None:
    for k in range(begin, end):
        for i in range(k * TILE, min((k + 1) * TILE, len(words))):
            out[i] = stream._normal(words[i], stream._depth(words[i]))


def streams(chosen: NDArray[np.uint64], length: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Make words and coordinates of some streams, shape (n, length), each from the first coordinate of a tile on.

    ``chosen`` has seed, canary, purpose and first tile of each, shape (n, 4); the length is a multiple of ``TILE``.
    Words are as the kernel's documentation numbers them, by its Philox.
    """
    words, coordinates = np.empty((len(chosen), length), np.uint32), np.empty((len(chosen), length), np.float32)
    in_threads(_fill, words.size // TILE, words.size, chosen, words, coordinates)
    return words, coordinates


def quantiles(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Coordinates that the kernel makes of words, shape (n,)."""
    out = np.empty(len(words), np.float32)
    in_threads(_quantiles, -(-len(words) // TILE), len(words), words, out)
    return out


# The exact law of a coordinate, and how near to it the kernel's values are.
#
# Words of b bits give 2^(b − 2) values q_i = −Φ⁻¹((2i + 1) 2^(−b)) > 0, and as many below zero. All are equally
# likely: each is the quantile at the centre of a cell of probability 2^(1 − b). The kernel has b = 32. Its values x_i
# are within ``QUANTILE_ERROR`` of q_i, relative; ``scan`` measures this over a chosen share of the words.


BITS = 32
# The bound that ``kernels.canaries`` states.
QUANTILE_ERROR = 4.6e-7
_ONE_BY_ONE = 2**16
_AT_ONCE = 2**20


@cache
def moment(order: int, bits: int = BITS) -> float:
    """Moment E q^order of the discretised normal for an even order, to a relative 1e-12 or so.

    Values of the outermost cells count one by one, the others by the integral over their cells and the midpoint rule's
    first correction (Euler and Maclaurin).
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


def largest_value(bits: int = BITS) -> float:
    """Largest value of the discretised normal."""
    return -float(special.ndtri(math.ldexp(1.0, -bits)))


def tail(threshold: float, bits: int = BITS) -> float:
    """Probability that the discretised normal exceeds a threshold ≥ 0: an exact count of its values."""
    # Values beyond t have (2i + 1) 2^(-b) < P(X > t).
    beyond = math.ceil(math.ldexp(float(special.ndtr(-threshold)), bits - 1) - 0.5)
    return math.ldexp(min(2 ** (bits - 2), max(0, beyond)), 1 - bits)


@dataclass(frozen=True)
class Scan:
    """Errors and moments of the kernel's values."""

    words: int  # Number of words of one tail that were tried
    largest_error: float  # Largest |x/q − 1|
    square_error: float  # Mean of (x − q)²
    # Means of x², x⁴, x⁶ and x⁸: the kernel's own moments where all words were tried.
    moments: tuple[float, ...]
    # Whether each complement has the same value with the other sign, and the lowest bit is without effect.
    symmetric: bool


def scan(stride: int = 1) -> Scan:
    """Compare every ``stride``-th of the kernel's values, from the outermost on, with scipy's quantiles."""
    count = -(-(2 ** (BITS - 2)) // stride)
    worst, squares, symmetric = 0.0, [], True
    sums: list[list[float]] = [[], [], [], []]
    for start in range(0, count, _AT_ONCE):
        chosen = (2 * stride * np.arange(start, min(start + _AT_ONCE, count)) + 1).astype(np.uint32)
        computed = quantiles(chosen)
        symmetric &= np.array_equal(quantiles(~chosen), -computed)
        symmetric &= np.array_equal(quantiles(chosen - np.uint32(1)), computed)
        exact, values = special.ndtri(chosen * 2.0**-BITS), computed.astype(np.float64)
        errors = values - exact
        worst = max(worst, float(np.abs(errors / exact).max()))
        squares.append(float(errors @ errors))
        power = values**2
        for order in range(4):
            sums[order].append(float(np.sum(power ** (order + 1))))
    return Scan(count, worst, math.fsum(squares) / count, tuple(math.fsum(part) / count for part in sums), symmetric)


# Counts of a stretch of the stream: sums of powers, tails, bins, bits, and pairs at fixed lags.


# Coordinates a stretch. It is cut into slabs, so that sums don't depend on the number of threads.
LENGTH = 2**20
_SLAB = 2**16
_PART = 4096
# Lags in the order in which a stretch is read. Those of 1024, 2048 and 3072 meet the four words of one counter.
LAGS = (1, 2, 1024, 2048, 3072, 4096)
ORDERS = 8
BINS = 4096
# Outer probabilities 1/2, 1/4, … 2^-29 of either side, and where they begin.
THRESHOLDS = np.array([-special.ndtri(2.0**-k) for k in range(1, 30)]).astype(np.float32)
_CENTRE = moment(2)


# Sums may be reordered for speed within a slab: nothing depends on their last bits.
@njit(fastmath={"reassoc"}, cache=True)
def _add_powers(x: Any, out: Any) -> None:
    s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = 0.0
    for i in range(len(x)):
        a = np.float64(x[i])
        b = a * a
        c, d = a * b, b * b
        s1, s2, s3, s4 = s1 + a, s2 + b, s3 + c, s4 + d
        s5, s6, s7, s8 = s5 + a * d, s6 + b * d, s7 + c * d, s8 + d * d
    out += np.array([s1, s2, s3, s4, s5, s6, s7, s8])


@njit(fastmath={"reassoc"}, cache=True)
def _add_products(x: Any, y: Any, centre: float, out: Any) -> None:
    product = squares = 0.0
    for i in range(len(x)):
        a, b = np.float64(x[i]), np.float64(y[i])
        product += a * b
        squares += (a * a - centre) * (b * b - centre)
    out[0] += product
    out[1] += squares


@njit(cache=True)
def _add_bits(words: Any, out: Any) -> None:
    # Two bits at a time, each in half a word: fewer than 2¹⁶ words do not overflow it.
    for bit in range(16):
        total = np.uint32(0)
        for i in range(len(words)):
            total += (words[i] >> np.uint32(bit)) & np.uint32(0x10001)
        out[bit] += total & np.uint32(0xFFFF)
        out[bit + 16] += total >> np.uint32(16)


@njit(cache=True)
def _add_tails(x: Any, thresholds: Any, out: Any) -> None:
    for k in range(len(thresholds)):
        above = below = np.uint32(0)
        for i in range(len(x)):
            above += np.uint32(x[i] > thresholds[k])
            below += np.uint32(x[i] < -thresholds[k])
        out[0, k] += above
        out[1, k] += below


@njit(cache=True)
def _add_pairs(words: Any, x: Any, lag: int, offset: int, centre: float, products: Any, cells: Any, bits: Any) -> int:
    """Count disjoint pairs at a lag, so that all of them are independent; return how many there were."""
    word, other = np.empty(_PART, np.uint32), np.empty(_PART, np.uint32)
    a, b = np.empty(_PART, np.float32), np.empty(_PART, np.float32)
    pairs = (len(x) - offset) // (2 * lag) * lag
    i, since = offset, 0
    for start in range(0, pairs, _PART):
        n = min(_PART, pairs - start)
        for k in range(n):
            word[k], other[k], a[k], b[k] = words[i], words[i + lag], x[i], x[i + lag]
            i, since = i + 1, since + 1
            if since == lag:
                i, since = i + lag, 0
        _add_products(a[:n], b[:n], centre, products)
        for k in range(n):
            cells[(word[k] >> np.uint32(26)) << np.uint32(6) | (other[k] >> np.uint32(26))] += 1
            word[k] ^= other[k]
        _add_bits(word[:n], bits)
    return pairs


@njit(cache=True, nogil=True)
def _count(
    words: Any, x: Any, thresholds: Any, lags: Any, centre: float, powers: Any, tails: Any, bins: Any, bits: Any,
    pairs: Any, products: Any, cells: Any, differing: Any, begin: int, end: int,
) -> None:  # fmt: skip
    for slab in range(begin, end):
        part, of = words[slab * _SLAB : (slab + 1) * _SLAB], x[slab * _SLAB : (slab + 1) * _SLAB]
        _add_powers(of, powers[slab])
        _add_tails(of, thresholds, tails[slab])
        for i in range(len(part)):
            bins[slab, 0, part[i] >> np.uint32(20)] += 1
            bins[slab, 1, part[i] & np.uint32(4095)] += 1
        for start in range(0, _SLAB, _PART):
            _add_bits(part[start : start + _PART], bits[slab])
        for k in range(len(lags)):
            for late in range(2):
                pairs[slab, k, late] += _add_pairs(
                    part, of, lags[k], late * lags[k], centre, products[slab, k, late], cells[slab, k, late],
                    differing[slab, k, late],
                )  # fmt: skip


def _zeros(*shape: int) -> NDArray[np.int64]:
    return np.zeros(shape, np.int64)


@dataclass
class Counts:
    """Everything that is counted, over any number of stretches."""

    coordinates: int = 0  # Their number
    # Sums of their powers 1 to 8, shape (8,).
    powers: NDArray[np.float64] = field(default_factory=lambda: np.zeros(ORDERS))
    # Numbers of coordinates above each threshold, and below its negative, shape (2, 29).
    tails: NDArray[np.int64] = field(default_factory=lambda: _zeros(2, len(THRESHOLDS)))
    # Numbers of words with each value of their 12 highest and 12 lowest bits, shape (2, 4096).
    bins: NDArray[np.int64] = field(default_factory=lambda: _zeros(2, BINS))
    bits: NDArray[np.int64] = field(default_factory=lambda: _zeros(32))  # Words with each bit set, shape (32,).
    # Numbers of disjoint pairs at each lag, from the first word on and from the lag on, shape (6, 2).
    pairs: NDArray[np.int64] = field(default_factory=lambda: _zeros(len(LAGS), 2))
    # Sums over pairs of xy and of (x² − m)(y² − m), m = E q², shape (6, 2, 2).
    products: NDArray[np.float64] = field(default_factory=lambda: np.zeros((len(LAGS), 2, 2)))
    # Numbers of pairs with each value of the six highest bits of both words, shape (6, 2, 4096).
    cells: NDArray[np.int64] = field(default_factory=lambda: _zeros(len(LAGS), 2, BINS))
    # Numbers of pairs that differ in each bit, shape (6, 2, 32).
    differing: NDArray[np.int64] = field(default_factory=lambda: _zeros(len(LAGS), 2, 32))

    def add(self, words: NDArray[np.uint32], coordinates: NDArray[np.float32]) -> None:
        """Count a stretch: words and their coordinates, shape (LENGTH,), in the order in which they are to be read."""
        slabs = LENGTH // _SLAB
        totals = (self.powers, self.tails, self.bins, self.bits, self.pairs, self.products, self.cells, self.differing)
        slabwise = [np.zeros((slabs, *array.shape), array.dtype) for array in totals]
        in_threads(_count, slabs, LENGTH, words, coordinates, THRESHOLDS, np.array(LAGS), _CENTRE, *slabwise)
        for array, of_slabs in zip(totals, slabwise, strict=True):
            array += of_slabs.sum(axis=0)
        self.coordinates += LENGTH

    def __iadd__(self, other: Self) -> Self:
        self.coordinates += other.coordinates
        for name in ("powers", "tails", "bins", "bits", "pairs", "products", "cells", "differing"):
            array = getattr(self, name)
            array += getattr(other, name)
        return self


# Orders in which the stream is read: along a canary, and across canaries, seeds and purposes, interleaved.
#
# An interleaving takes coordinate i of stream 0, of stream 1, and so on, and then coordinates i + 1. Distant
# coordinates become neighbours, and the same counts test another independence.


# Streams that are interleaved: each gives one tile of a stretch.
_STREAMS = LENGTH // TILE
_BITS = (64, 32, 1, 28)  # of a seed, a canary, a purpose and a tile


@dataclass(frozen=True)
class Interleaving:
    """Streams that are interleaved."""

    count: int  # Number of streams.
    # Stream n has the first one's seed, canary, purpose and tile, each plus n times its step, modulo 2⁶⁴.
    steps: tuple[int, int, int, int]


INTERLEAVINGS = {
    "one canary": Interleaving(1, (0, 0, 0, 0)),
    "canaries": Interleaving(_STREAMS, (0, 1, 0, 0)),
    "seeds": Interleaving(_STREAMS, (1, 0, 0, 0)),
    "high bits of seeds": Interleaving(_STREAMS, (2**56, 0, 0, 0)),
    "canary and noise": Interleaving(2, (0, 0, 1, 0)),
}


def start_of_stretch(number: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """Choose seed, canary, purpose and tile at which stretch ``number`` begins.

    They are as plain as those of users, where a weak generator shows. No two stretches have a seed in
    common. Of canaries and tiles every order of magnitude is as likely.
    """
    index, tile = (int(2.0 ** rng.uniform(0.0, bits)) - 1 for bits in (_BITS[1], _BITS[3]))
    return _STREAMS * number, min(index, 2**32 - _STREAMS), 0, min(tile, TILES - _STREAMS)


def read_stretch(name: str, first: tuple[int, int, int, int]) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Read a stretch: words and coordinates, shape (LENGTH,).

    ``first`` has seed, canary, purpose and tile of the first stream.
    """
    interleaving = INTERLEAVINGS[name]
    numbers = np.arange(interleaving.count, dtype=np.uint64)[:, np.newaxis]
    chosen = np.array(first, np.uint64) + numbers * np.array(interleaving.steps, np.uint64)
    words, coordinates = streams(chosen, LENGTH // interleaving.count)
    return words.T.ravel(), coordinates.T.ravel()


def neighbours() -> NDArray[np.uint64]:
    """One stream, and all those whose seed, canary, purpose or first tile differs from its in one bit, shape (n, 4)."""
    rows = [[0, 0, 0, 0]]
    for argument, bits in enumerate(_BITS):
        rows += [[2**bit if k == argument else 0 for k in range(4)] for bit in range(bits)]
    return np.array(rows, np.uint64)


# Tests of the stream: every statistic has a null law that is exact or bounded, and all of them share one level.
#
# The null hypothesis is that words are independent and uniform, and that coordinates lie within
# ``QUANTILE_ERROR`` of their words' quantiles. Counts of words, and of coordinates beyond a threshold, are
# binomial, and their p-values exact (for tails: at the worst threshold that the quantiles' error allows). Sums of
# powers and products are bounded by Bennett's inequality (1962, "Probability inequalities for the sum of independent
# random variables"). It needs only the largest term and its variance. These p-values are upper bounds at any size.
# Bins alone have a limit law, chi-square; they are filled by thousands.


POWER = 0.99
_ERROR = QUANTILE_ERROR


def _log_bennett(excess: float, count: float, variance: float, largest: float) -> float:
    """Bound log P(|sum of ``count`` independent centred terms| ≥ excess)."""
    u = largest * excess / (count * variance)
    return math.log(2.0) - count * variance / largest**2 * ((1.0 + u) * math.log1p(u) - u)


def _bennett(excess: float, count: float, variance: float, largest: float) -> float:
    return min(1.0, math.exp(_log_bennett(excess, count, variance, largest)))


def _binomial(counts: NDArray[np.int64], count: int, low: float, high: float) -> float:
    """Smallest of the p-values of binomial counts whose probability lies in [low, high], times their number."""
    above, below = stats.binom.sf(counts - 1, count, high), stats.binom.cdf(counts, count, low)
    return min(1.0, 2.0 * len(counts) * float(min(above.min(), below.min())))


def _bins(counts: NDArray[np.int64]) -> float:
    expected = counts.sum() / BINS
    statistic = float(np.sum((counts - expected) ** 2) / expected)
    return 2.0 * float(min(stats.chi2.sf(statistic, BINS - 1), stats.chi2.cdf(statistic, BINS - 1)))


def _power_terms(order: int) -> tuple[float, float, float, float]:
    """Mean of x^order, how far the quantiles' error may move it, variance, and largest distance from the mean."""
    mean = moment(order) if order % 2 == 0 else 0.0
    stretch = (1.0 + _ERROR) ** order
    variance = moment(2 * order) * stretch**2 - mean**2 / stretch**2
    return mean, mean * (stretch - 1.0), variance, largest_value() ** order * stretch


def _marginals(counts: Counts) -> Iterator[tuple[str, float]]:
    n = counts.coordinates
    for order in range(1, ORDERS + 1):
        mean, slack, variance, largest = _power_terms(order)
        excess = max(0.0, abs(float(counts.powers[order - 1]) - n * mean) - n * slack)
        yield f"moment {order}", _bennett(excess, n, variance, largest)
    for k, threshold in enumerate(THRESHOLDS):
        low, high = (tail(float(threshold) * (1.0 + way * _ERROR)) for way in (2, -2))
        yield f"tails 2^-{k + 1}", _binomial(counts.tails[:, k], n, low, high)
    yield "12 highest bits", _bins(counts.bins[0])
    yield "12 lowest bits", _bins(counts.bins[1])
    yield "balance of bits", _binomial(counts.bits, n, 0.5, 0.5)


def _pairs(counts: Counts) -> Iterator[tuple[str, float]]:
    square = moment(2)
    largest = (largest_value() * (1.0 + _ERROR)) ** 2
    drift = (square * ((1.0 + _ERROR) ** 2 - 1.0)) ** 2
    variances = (
        square**2 * (1.0 + _ERROR) ** 4,
        (moment(4) * (1.0 + _ERROR) ** 4 - square**2 * (1.0 - _ERROR) ** 4) ** 2,
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
    words = streams(neighbours(), TILE)[0]
    pairs = words[:, :RUN].astype(np.uint64) << np.uint64(32) | words[:, RUN : 2 * RUN]
    repeated = pairs.size - len(np.unique(pairs))
    # The expected number bounds the probability of one or more.
    return "repeated counters", 0.5 * pairs.size**2 * 2.0**-64 if repeated else 1.0


def visible_moment(order: int, count: int, tests: int) -> float:
    """Smallest relative deviation of an even moment that is seen with probability 0.99, where tests share ``LEVEL``.

    By the normal approximation of the sum beyond Bennett's threshold.
    """
    mean, slack, variance, largest = _power_terms(order)
    deviation = math.sqrt(count * variance)
    share = math.log(LEVEL / tests)
    sigmas = optimize.brentq(lambda z: _log_bennett(z * deviation, count, variance, largest) - share, 0.0, 1e6)
    return ((sigmas + float(stats.norm.ppf(POWER))) * deviation / count + slack) / mean


@dataclass(frozen=True)
class Quality:
    """The p-values of a judged stream."""

    coordinates: int  # Number of coordinates that all interleavings took.
    # Of each test; those of pairs by interleaving.
    p_values: dict[str, float]
    linked: bool  # Whether every coordinate is what the kernel makes of its word, bit for bit

    @property
    def smallest(self) -> tuple[str, float]:
        """The test that says most, and its p-value."""
        return min(self.p_values.items(), key=lambda item: item[1])

    @property
    def passed(self) -> bool:
        """Whether coordinates belong to their words, and no p-value is below its share of ``LEVEL``."""
        return self.linked and self.smallest[1] >= LEVEL / len(self.p_values)


def judge(count: int, seed: int | np.random.SeedSequence, done: Callable[[int], object] = lambda _: None) -> Quality:
    """Read at least so many coordinates of the stream in all ways and test it; the seed chooses where.

    Each interleaving takes as many whole stretches of 2²⁰. ``done`` is called with the number read, after each stretch.
    """
    rng = np.random.default_rng(seed)
    first = int(rng.integers(0, 2**30))
    by_interleaving = {name: Counts() for name in INTERLEAVINGS}
    stretches = max(1, -(-count // (LENGTH * len(by_interleaving))))
    read, linked = 0, True
    for number in range(stretches):
        for offset, (name, counts) in enumerate(by_interleaving.items()):
            where = start_of_stretch(first + number * len(by_interleaving) + offset, rng)
            words, coordinates = read_stretch(name, where)
            linked &= np.array_equal(quantiles(words), coordinates)
            counts.add(words, coordinates)
            read += LENGTH
            done(read)
    together = Counts()
    for counts in by_interleaving.values():
        together += counts
    p_values = {f"all: {test}": p for test, p in (*_marginals(together), _repeats())}
    for name, counts in by_interleaving.items():
        p_values |= {f"{name}: {test}": p for test, p in _pairs(counts)}
    return Quality(read, p_values, linked)
