"""Tests for an auditor who looks at everything: the noise itself, and who was drawn.

An attacker has scores. An auditor of one's own training also has the sum of the clipped updates. What a round releases
less that sum is the noise in all coordinates (``ResidualTests``). The auditor also has the record of who took part
(``SamplingTests``). Whoever can train twice sees what was moved without noise (``seed_tests``). Every test here holds
its level of 1e-6 exactly or by a bound, at any dimension and number of rounds.

Signs. Given their absolute values, the coordinates of normal noise have independent fair signs. Along the coordinates
i, i + L, i + 2L, … the products of two neighbours have independent fair signs too. So Hoeffding's inequality bounds a
sum of such products, divided by the root of the sum of their squares: its tail beyond x is at most 2·exp(−x²/2).

Counts. A normal vector divided by its own length is uniform on the sphere, whatever the noise's deviation is. Its
squared coordinates have a Dirichlet law and are negatively associated (Joag-Dev and Proschan, Ann. Statist. 11, 1983).
So Chernoff's bound exp(−n·KL) holds for the number of those above a limit (Dubhashi and Ranjan, 1998).

Repeated values. If no value has a probability above p, the i-th coordinate repeats an earlier one with probability at
most i·p, whatever came before. The number of repetitions is then below a sum of independent indicators. Its tail is at
most the binomial's of the same mean (Hoeffding 1956).
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, optimize, special, stats

from canaryproof.kernels.arguments import checked_integers
from canaryproof.kernels.arrays import SLICE, Array, Complexes, Ints, floating, on_host, precision, slices
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import check_type, short_repr
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.blindspots.diagnostics import norm_p_value, rounds_p_value
from canaryproof.verify.audit.markup.digits import round_down

LEVEL = 1e-6
# A smallest fault is one that is noticed with this probability.
_POWER = 0.9
# Coordinates of a round that stay for the comparison of rounds, and those in which its coordinates are compared.
_SAMPLE, _COMPARED = 2**13, 2**22
# Values of a round that are sorted, in search of repetitions.
_VALUES = 2**16
# Rounds whose span is tested: the cost grows with their fourth power.
_SPANNED = 64
# Layers of one coordinate leave a sign alone: of fewer such layers two rounds are parallel too often.
_FEWEST_COORDINATES = 32
# Lags at which batches are compared, and rounds: each round with the first ones and with the last ones.
_LAGS = 64
# Limits on the absolute value of a coordinate, in standard deviations.
_LIMITS = np.arange(16) / 4.0
# Coordinates that are compared with the limits at a time, so that they stay in the processor's cache.
_BLOCK = 2**14
# A generator of honest noise takes at least so many values: jax's normal numbers of 32 bits take some 2²³.
_LEAST_STATES = 2**20
# Slices of distances at which coordinates are compared at a time, as each slice's transform is used for all of these.
_TOGETHER = 4
# Noise leaves a number at the value that it has with another seed with this probability at most.
_SAME = 1.0 / 16.0
# Probability that two honest records are equal, up to which draws that are keyed by a record are as good as any.
_EQUAL_RECORDS = 1e-4
_TOLERANCE = rules.NumberRange("lie between 0 and 0.5", 0.0, 0.5)
_RATE = rules.NumberRange("lie strictly between 0 and 1", 0.0, 1.0, open=True)
MEMBERS = rules.NumberRange("be a whole number from 1 to 1e9", 1, 10**9, whole=True)


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class InstrumentTest:
    """One test of an auditor's record.

    Attributes
    ----------
    name
        Its name, for example ``noise by round``.
    observed
        What was seen, in a sentence.
    p_value
        The probability of something as extreme if the claim holds; None where there was nothing to look at.
    notices
        The smallest fault that is noticed with a probability of 90%; empty where none is computed.
    """

    name: str
    observed: str
    p_value: float | None
    notices: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether the claim is refuted at the level 1e-6."""
        return self.p_value is not None and self.p_value <= LEVEL


@set_module("canaryproof")
class ResidualTests:
    """Tests of the released noise, for an auditor who knows everything that was summed.

    Parameters
    ----------
    noise_multiplier
        Claimed standard deviation of a round's noise on each coordinate, in clip norms.
    dim
        Number of coordinates d.
    layers
        Sizes of the parts that are tested one by one, such as layers, in the order of the coordinates; they sum to d.
        By default the whole is one part.
    tolerance
        Share by which the noise may fall short of the claim, in [0, 0.5]: 64 rounds of a million coordinates show that
        a deviation was rounded to three digits.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The null hypothesis is normal noise of at least (1 − ``tolerance``) times the claim, independent between coordinates
    and rounds. The tests ``normal law`` and ``span`` need one deviation within each part and round too, and ``equal
    rounds`` needs one for all rounds. ``span`` needs 32 coordinates. The test ``values`` takes a generator for
    honest that has 2²⁰ values or more.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> tests = cp.ResidualTests(noise_multiplier=1.0, dim=10_000)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(4):
    ...     tests.add(0.9 * rng.normal(size=10_000))
    >>> [test.name for test in tests.tests() if test.has_failed]
    ['noise', 'noise by round']
    """

    def __init__(
        self, noise_multiplier: float, dim: int, layers: Sequence[int] | None = None, tolerance: float = 0.01
    ) -> None:
        sigma = rules.NOISE_MULTIPLIER.number("noise_multiplier", noise_multiplier)
        self.dim = int(rules.DIM.number("dim", dim))
        parts = [self.dim] if layers is None else checked_integers("layers:", layers).tolist()
        sizes = [rules.DIM.number("layers", size) if size != 1 else 1 for size in parts]
        if sum(sizes) != self.dim:
            raise ValueError(f"layers: must sum to dim = {self.dim}, not to {int(sum(sizes))}")
        self.noise_multiplier = sigma
        self.tolerance = _TOLERANCE.number("tolerance", tolerance)
        self._sizes = np.asarray(sizes, dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)[:-1]])
        self._squares: list[Array] = []
        self._sums: list[Array] = []
        # Coordinates of the first rounds and of the last ones, the round t at t modulo their number, and their squares.
        # Strongest correlation of two rounds, and how many pairs were compared. Sums of products and of their squares
        # at each lag.
        self._compared = min(-(-self.dim // max(1, self.dim // _SAMPLE)), _SAMPLE)
        self._first, self._last = np.empty((2, 2, _LAGS, self._compared), np.float32)
        # Coordinates of the rounds whose span is tested, and inner products of these.
        self._spanned, self._gram = np.empty((_SPANNED, self._compared)), np.zeros((_SPANNED, _SPANNED))
        self._strongest, self._pairs = 0.0, 0
        self._products, self._product_squares = np.zeros((2, _LAGS))
        # Coordinates above each limit, the positive ones of these, and the least and the most that are expected.
        self._above, self._positive, self._least, self._most = np.zeros((4, len(_LIMITS)))
        self._expected: dict[float, list[Array]] = {}
        self._lag, self._lags = 0.0, 0
        # Repetitions, how many are expected at most, and among how many coordinates.
        self._repeated, self._repeats, self._drawn = 0, 0.0, 0

    @property
    def rounds(self) -> int:
        """Number of rounds added so far."""
        return len(self._squares)

    @property
    def measured_deviation(self) -> float:
        """Standard deviation of the residuals so far, in clip norms; nan before the first."""
        squares = np.asarray(self._squares).sum()
        return math.sqrt(squares / (self.rounds * self.dim)) if self.rounds else math.nan

    @property
    def noticed_share(self) -> float:
        """Largest share of the claimed noise that is noticed with probability 90%; nan before the first round."""
        return noticed_share(self.rounds * self.dim, self.tolerance) if self.rounds else math.nan

    def add(self, residual: ArrayLike, resolution: float | None = None) -> None:
        """Add a round's residual: the release minus everything that was summed.

        Parameters
        ----------
        residual
            In clip norms, shape (dim,).
        resolution
            Rounding error of a coordinate, in clip norms, not negative. By default that of the array's own format. A
            release that was rounded before the sum was taken out has a larger one.

        Raises
        ------
        ValueError
            If the residual is not finite or of another shape, or the resolution is out of its range.
        """
        try:
            given = floating(residual)
        except ValueError as error:
            raise ValueError(f"residual: {error}") from error
        if given.shape != (self.dim,):
            raise ValueError(f"residual: must be numbers of shape ({self.dim},), not {given.shape}")
        largest, (squares, sums) = 0.0, np.zeros((2, len(self._sizes)))
        for part in slices(self.dim):
            values = given[part].astype(np.float64)
            if not np.isfinite(values).all():
                raise ValueError("residual: must be finite")
            largest = max(largest, float(np.abs(values).max()))
            layers, starts = self._layers_of(part)
            squares[layers] += np.add.reduceat(values * values, starts)
            sums[layers] += np.add.reduceat(values, starts)
        if resolution is None:
            resolution = precision(residual) * largest
        if not 0.0 <= resolution < math.inf:
            raise ValueError(f"resolution: must be finite and not negative, not {resolution!r}")
        self._squares.append(squares)
        self._sums.append(sums)
        deviations = np.sqrt(np.maximum(squares / self._sizes, np.finfo(float).tiny))
        chosen = np.arange(0, self.dim, max(1, self.dim // _SAMPLE))[:_SAMPLE]
        sample = given[chosen] / deviations[np.searchsorted(self._starts, chosen, side="right") - 1]
        self._compare_rounds(sample)
        self._keep_products(sample)
        for part in slices(self.dim):
            self._count(self._in_deviations(given, part, deviations))
        self._expect(resolution / deviations.min())
        # A transform a round would be most of the cost. Noise that repeats itself does so in the rounds 1, 2, 4, … too.
        if largest and self.rounds & (self.rounds - 1) == 0:
            self._compare(lambda part: self._in_deviations(given, part, deviations))
        self._repeat(given, resolution)

    def _layers_of(self, part: slice) -> tuple[slice, Ints]:
        """Return which layers a slice has coordinates of, and where in it they start."""
        first = int(np.searchsorted(self._starts, part.start, side="right")) - 1
        last = int(np.searchsorted(self._starts, part.stop, side="left"))
        return slice(first, last), np.maximum(self._starts[first:last] - part.start, 0)

    def _in_deviations(self, given: NDArray[Any], part: slice, deviations: Array) -> Array:
        """Return a slice's coordinates over the deviations of their layers."""
        layers, starts = self._layers_of(part)
        sizes = np.diff(starts, append=part.stop - part.start)
        return np.asarray(given[part] / np.repeat(deviations[layers], sizes))

    def tests(self) -> tuple[InstrumentTest, ...]:
        """Return the tests of the rounds so far; none before the first.

        Returns
        -------
        The tests, each at level 1e-6.
        """
        return tuple(self._tests()) if self.rounds else ()

    def _tests(self) -> Iterator[InstrumentTest]:
        squares, rounds = np.asarray(self._squares), self.rounds
        least = (1.0 - self.tolerance) * self.noise_multiplier
        together = rounds * self.dim
        total = f"The noise has {self.measured_deviation / self.noise_multiplier:.5g} of the claimed deviation"
        yield InstrumentTest(
            "noise", f"{total}.", float(norm_p_value(squares.sum(), least, together)), self._shorter(together, 1)
        )
        if rounds > 1:
            yield self._least_of("round", squares.sum(axis=1), np.full(rounds, self.dim))
            yield self._equal(squares.sum(axis=1))
        if len(self._sizes) > 1:
            yield self._least_of("layer", squares.sum(axis=0), rounds * self._sizes)
        yield self._mean(squares)
        yield self._law()
        compared = min(self.dim, _COMPARED)
        yield _signs("repeats within a round", "two coordinates at one distance", self._lag, self._lags, compared)
        if rounds > 1:
            yield self._between()
            yield self._span()
        yield self._values()

    def _shorter(self, dim: int, parts: int) -> str:
        share = noticed_share(dim, self.tolerance, LEVEL / parts)
        return f"noise of at most {_down(share, 4)} of the claim"

    def _least_of(self, part: str, squares: Array, dims: Ints) -> InstrumentTest:
        """Test each of several parts, and share the level among them."""
        least = (1.0 - self.tolerance) * self.noise_multiplier
        each = norm_p_value(squares, least, dims)
        worst = int(np.argmin(each))
        share = math.sqrt(squares[worst] / dims[worst]) / self.noise_multiplier
        return InstrumentTest(
            f"noise by {part}",
            f"The noise of {part} {worst} has {share:.4g} of the claimed deviation.",
            min(1.0, len(dims) * float(each[worst])),
            f"{self._shorter(int(dims.min()), len(dims))} in one {part}",
        )

    def _equal(self, squares: Array) -> InstrumentTest:
        """Test whether rounds differ in their deviation: each one's ratio to those before it is an independent F."""
        before = np.cumsum(squares)[:-1]
        earlier = self.dim * np.arange(1.0, len(squares))
        with np.errstate(over="ignore"):
            ratios = squares[1:] / self.dim / np.maximum(before / earlier, np.finfo(float).tiny)
        below, above = special.fdtr(self.dim, earlier, ratios), special.fdtrc(self.dim, earlier, ratios)
        tails = np.maximum(np.minimum(below, above), np.finfo(float).tiny)
        shares = np.sqrt(squares / self.dim) / self.noise_multiplier
        most = stats.chi2.isf(LEVEL, len(ratios)) / stats.chi2.ppf(1.0 - _POWER, len(ratios))
        deviation = math.sqrt((most - 1.0) / (2.0 * self.dim))
        return InstrumentTest(
            "equal rounds",
            f"Rounds have from {shares.min():.4g} to {shares.max():.4g} of the claimed deviation.",
            float(special.chdtrc(len(ratios), np.square(special.ndtri(tails)).sum())),
            f"rounds' noise with a deviation of {_two_digits_up(deviation)} of its mean",
        )

    def _mean(self, squares: Array) -> InstrumentTest:
        sums = np.asarray(self._sums)
        roots = np.sqrt(np.maximum(np.append(squares.sum(axis=0), squares.sum()), np.finfo(float).tiny))
        strongest = float(np.abs(np.append(sums.sum(axis=0), sums.sum()) / roots).max())
        mean = sums.sum() / (self.rounds * self.dim) / self.noise_multiplier
        return InstrumentTest(
            "mean",
            f"The noise has a mean of {mean:.2g} of the claimed deviation.",
            _hoeffding(strongest, len(roots)),
            f"a mean of {_two_digits_up(_beyond(len(roots)) / math.sqrt(self.rounds * self.dim))} deviations",
        )

    def _count(self, scaled: Array) -> None:
        """Count coordinates above each limit."""
        for start in range(0, len(scaled), _BLOCK):
            block = scaled[start : start + _BLOCK]
            # A value lies beyond as many limits as there are quarters in it, or parts of one.
            quarters = np.minimum(np.ceil(np.abs(4.0 * block)), len(_LIMITS)).astype(np.int64)
            beyond = np.bincount(2 * quarters + (block > 0.0), minlength=2 * len(_LIMITS) + 2).reshape(-1, 2)
            above = beyond[::-1].cumsum(axis=0)[-2::-1]
            self._positive += above[:, 1]
            self._above += above.sum(axis=1)

    def _expect(self, resolution: float) -> None:
        """Add how many coordinates of a round are expected above each limit, which a rounding error may move."""
        # Rounded up by 19% at most, so that few of them differ: with more of an error no limit is refuted sooner.
        rounded = 2.0 ** (math.ceil(4.0 * math.log2(resolution)) / 4.0) if resolution else 0.0
        if rounded not in self._expected:
            self._expected[rounded] = [self._beyond_limits(each) for each in (rounded, -rounded)]
        least, most = self._expected[rounded]
        self._least += least
        self._most += most

    def _beyond_limits(self, moved: float) -> Array:
        """Return how many coordinates of a round are expected above each limit, where all of these are moved."""
        sizes, ways = np.unique(self._sizes, return_counts=True)
        limits = np.maximum(_LIMITS + moved, 0.0)
        shares = np.minimum(limits**2 / sizes[:, np.newaxis], 1.0)
        return np.asarray(
            (ways * sizes) @ special.betaincc(0.5, 0.5 * np.maximum(sizes - 1, 1e-300)[:, np.newaxis], shares)
        )

    def _law(self) -> InstrumentTest:
        number = self.rounds * self.dim
        logs = np.minimum(
            _chernoff(self._above, self._most, number, above=True),
            _chernoff(self._above, self._least, number, above=False),
        )
        fewer = np.minimum(self._positive, self._above - self._positive)
        signs = np.log(np.maximum(stats.binom.cdf(fewer, self._above, 0.5), 1e-300)) + math.log(2.0)
        smallest = float(min(logs.min(), signs.min()))
        worst = int(np.argmin(np.minimum(logs, signs)))
        expected = 0.5 * (self._least + self._most)[worst] / number
        off = self._wrong_share(number)
        return InstrumentTest(
            "normal law",
            f"{self._above[worst] / number:.4%} of the coordinates are beyond {_LIMITS[worst]:g} deviations, where a "
            f"normal law has {expected:.4%}.",
            min(1.0, 3 * len(_LIMITS) * math.exp(smallest)),
            ""
            if off is None
            else f"a share of coordinates beyond 2 measured deviations that is off by {_two_digits_up(off)}",
        )

    def _wrong_share(self, number: int) -> float | None:
        """Return by how much the share beyond two deviations is off where it is noticed with 90%; None if none is.

        It is noticed upwards, and downwards where a share of 0 is.
        """
        least, most = float(self._least[8]), float(self._most[8])
        share = 0.5 * (least + most) / number
        high = _critical_count(most, number, above=True)
        low = _critical_count(least, number, above=False)
        if high is None:
            return None
        # Shares at which a binomial count is so large, or so small, with a probability of 90%.
        above = float(special.betaincinv(high, number - high + 1.0, _POWER)) - share
        if low is None:
            return above
        return max(above, share - float(special.betaincinv(low + 1.0, number - low, 1.0 - _POWER)))

    def _compare(self, scaled: Callable[[slice], Array]) -> None:
        """Compare the coordinates of a round at every distance."""
        count = min(self.dim, _COMPARED)
        # The sum of squares of few products is lost in the rounding of the transform.
        rounding = 1e-12 * sum(float((scaled(part) ** 4).sum()) for part in slices(count))
        # In double precision, the roots of four million coordinates would be a third of the memory that this takes.
        squares = _products_by_distance(lambda part: scaled(part) ** 2, count)
        roots = [np.sqrt(np.abs(each) + rounding).astype(np.float32) for each in squares]
        for products, root in zip(_products_by_distance(scaled, count), roots, strict=True):
            self._lag = max(self._lag, float((np.abs(products) / root).max(initial=0.0)))
        self._lags += count - 1

    def _compare_rounds(self, sample: Array) -> None:
        """Compare a round with the first rounds and with the last ones, so that each costs the same."""
        now, single = self.rounds - 1, sample.astype(np.float32)
        both = np.array([single, single**2])
        lags = min(now, _LAGS)
        for others in (self._first[:, : now - lags], self._last[:, :lags]):
            if not others.shape[1]:
                continue
            # BLAS would wait in a loop on each of its threads, for longer than this takes.
            products, squares = np.einsum("kri,ki->kr", others, both).astype(np.float64)
            ratios = np.abs(products) / np.sqrt(np.maximum(squares, np.finfo(float).tiny))
            self._strongest, self._pairs = max(self._strongest, float(ratios.max())), self._pairs + len(ratios)
        if lags:
            # The round before has lag 1. The last products are those with the last rounds.
            order = (now - 1 - np.arange(lags)) % _LAGS
            self._products[:lags] += products[order]
            self._product_squares[:lags] += squares[order]
        if now < _LAGS:
            self._first[:, now] = both
        self._last[:, now % _LAGS] = both

    def _keep_products(self, sample: Array) -> None:
        """Keep the inner products of a round with those before, of the rounds whose span is tested."""
        now = self.rounds - 1
        if now < _SPANNED:
            self._spanned[now] = sample
            products = np.einsum("ri,i->r", self._spanned[: now + 1], sample)
            self._gram[now, : now + 1] = self._gram[: now + 1, now] = products

    def _between(self) -> InstrumentTest:
        lags = min(_LAGS, self.rounds - 1)
        roots = np.sqrt(np.maximum(self._product_squares[:lags], np.finfo(float).tiny))
        strongest = max(self._strongest, float((np.abs(self._products[:lags]) / roots).max()))
        tests = self._pairs + lags
        return _signs("repeats between rounds", "two rounds", strongest, tests, self._compared)

    def _span(self) -> InstrumentTest:
        if self._compared < _FEWEST_COORDINATES:
            return InstrumentTest("span", "There are too few coordinates for a test of the rounds' span.", None)
        count = min(self.rounds, _SPANNED, self._compared - 1)
        p_value = float(rounds_p_value(self._gram[:count, :count], 1.0, self._compared))
        observed = f"The noise of the first {count} rounds is compared with the span of those before."
        return InstrumentTest("span", observed, p_value, "noise in a space of few dimensions")

    def _repeat(self, vector: NDArray[Any], resolution: float) -> None:
        """Count coordinates that repeat an earlier one, in a sample so small that honest noise has few repeats."""
        step = 4.0 * resolution
        least = (1.0 - self.tolerance) * self.noise_multiplier
        most = 1.0 / _LEAST_STATES + step / (math.sqrt(2.0 * math.pi) * least)
        count = min(self.dim, int(0.5 / most), _VALUES)
        chosen = vector[:: max(1, self.dim // max(1, count))][:count].astype(np.float64)
        values = np.floor(chosen / step) if step > 0.0 else chosen
        self._repeated += len(chosen) - len(np.unique(values))
        self._repeats += 0.5 * len(chosen) * max(0, len(chosen) - 1) * most
        self._drawn += len(chosen)

    def _values(self) -> InstrumentTest:
        observed = f"{self._repeated} of {self._drawn} values repeat another of their round."
        if self._drawn < 100 * self.rounds:
            return InstrumentTest("values", "The number format is too coarse for a count of values.", None)
        p_value = 1.0
        if self._repeated > self._repeats + 1.0:
            p_value = float(stats.binom.sf(self._repeated - 1, self._drawn, self._repeats / self._drawn))
        return InstrumentTest(
            "values", observed, p_value, f"noise of at most {_down(self._few_values(), 2)} values in a round"
        )

    def _few_values(self) -> float:
        """Return the number of equally likely values that repeat often enough."""
        least = float(stats.binom.isf(LEVEL, self._drawn, self._repeats / self._drawn)) + 1.0
        # The mean of a Poisson number that is at least so large with a probability of 90%.
        return 0.5 * self._drawn**2 / self.rounds / float(stats.gamma.ppf(_POWER, least))


def each_once(numbers: Ints) -> Ints:
    """Return numbers from 0 on in their order, each once; ``np.unique`` hashes them, which takes longer."""
    ordered = np.sort(numbers)
    return np.asarray(ordered[np.diff(ordered, prepend=-1) > 0])


def noticed_share(freedom: int, tolerance: float = 0.01, level: float = LEVEL) -> float:
    """Return the largest share of claimed noise that a test of so many numbers notices with probability 90%."""
    # Halves of quantiles of χ²; scipy.stats checks its arguments for longer than these take.
    low, high = special.gammaincinv(0.5 * freedom, [level, _POWER])
    return float((1.0 - tolerance) * math.sqrt(low / high))


def upper_limit(share: float, freedom: int) -> float:
    """Return the upper limit of a deviation at the level 1e-6, by the law of a sum of squares."""
    return share * math.sqrt(freedom / float(special.chdtri(freedom, 1.0 - LEVEL)))


@set_module("canaryproof")
def seed_tests(
    before: Mapping[str, ArrayLike], first: Mapping[str, ArrayLike], second: Mapping[str, ArrayLike]
) -> tuple[InstrumentTest, ...]:
    """Test whether everything that a training moves is noised, by two trainings with other seeds of their noise.

    Take one step twice, from equal parameters and with one batch, and set the generator of the noise to another seed in
    between. What the step moves and both leave at the very same numbers has no noise in it, such as a layer
    that a second optimizer trains, or a statistic that a normalisation keeps. After more steps it would differ too, as
    its gradients depend on what was noised.

    Parameters
    ----------
    before
        All that the training releases, by name, before the step: parameters and buffers, of any shapes.
    first, second
        The same after it, with one seed and another.

    Returns
    -------
    A test of each name, in the order of ``before``, at level 1e-6. Where nothing moved, there is no p-value.

    Raises
    ------
    ValueError
        If the names or the shapes differ.

    Notes
    -----
    The null hypothesis is independent noise that leaves a number at the same value with both seeds with a chance of
    1/16 or less. Normal noise does so if its deviation is five times the spacing of the number format or more. Where
    numbers of 16 bits are trained, take those of 32 bits that the optimizer keeps.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> def step(seed):
    ...     rng = np.random.default_rng(seed)
    ...     # the head's step has no noise
    ...     return {"body": rng.normal(size=100), "head": np.full(10, 0.3)}
    >>> before = {"body": np.zeros(100), "head": np.zeros(10)}
    >>> [test.name for test in cp.seed_tests(before, step(0), step(1)) if test.has_failed]
    ['head']
    """
    tests = []
    for argument, values in (("before", before), ("first", first), ("second", second)):
        check_type(f"{argument}:", values, Mapping, "a mapping from names to arrays")
        if values.keys() != before.keys():
            raise ValueError(f"{argument}: must have the names of before, {short_repr([*before])}")
    for name in before:
        start, moved_to, again = (np.atleast_1d(on_host(values[name])) for values in (before, first, second))
        if not start.shape == moved_to.shape == again.shape:
            raise ValueError(
                f"{name}: must have one shape in all three, not {start.shape}, {moved_to.shape} and {again.shape}"
            )
        moved = (moved_to != start) | (again != start)
        count, same = int(np.count_nonzero(moved)), int(np.count_nonzero(moved & (moved_to == again)))
        fewest = int(stats.binom.isf(LEVEL, count, _SAME)) + 1
        tests.append(
            InstrumentTest(
                name,
                f"{same:,} of {count:,} numbers that moved are the same with another seed of the noise.",
                float(stats.binom.sf(same - 1, count, _SAME)) if count else None,
                f"{fewest:,} numbers that moved without noise" if fewest <= count else "",
            )
        )
    return tuple(tests)


@set_module("canaryproof")
class SamplingTests:
    """Tests of who was drawn, against Poisson sampling: everybody in each round by a coin of their own.

    Parameters
    ----------
    rate
        Claimed probability with which a member takes part in a round, strictly between 0 and 1.
    members
        Number of members n who may be drawn.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Each number that is binomial under the claim becomes a normal one, by its distribution function with a uniform draw
    within its jump. Sums of such numbers are normal, and sums of their squares have a χ² law. The key of those draws is
    the digest of who was drawn, so that equal records give equal p-values. Where two honest records are equal with a
    probability of more than 1e-4, as those of two members in three rounds, a p-value is 1 unless the test fails.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> tests = cp.SamplingTests(rate=0.1, members=1000)
    >>> for t in range(20):
    ...     # a shuffle, and no Poisson sampling
    ...     tests.add(np.arange(100 * (t % 10), 100 * (t % 10) + 100))
    >>> [test.name for test in tests.tests() if test.has_failed]
    ['spread of batch sizes', 'participations', 'returns']
    """

    def __init__(self, rate: float, members: int) -> None:
        self.rate = _RATE.number("rate", rate)
        self.members = int(MEMBERS.number("members", members))
        self._sizes: list[int] = []
        self._counts = np.zeros(self.members, np.int64)
        # Bit L − 1 of a member: whether it was in the round that was L rounds before its last one.
        self._history = np.zeros(self.members, np.uint64)
        self._last = np.full(self.members, -1, np.int64)
        # For each round, at the lags 1, 2, …: how many members of the earlier round are in it too.
        self._returned: list[Ints] = []
        # Rounds in which a member was drawn more than once, and how often that happened.
        self._twice: list[tuple[int, int]] = []
        # Digests of the record so far, and of each round by itself.
        self._digest = hashlib.sha256()
        self._digests: list[bytes] = []

    @property
    def rounds(self) -> int:
        """Number of rounds added so far."""
        return len(self._sizes)

    def add(self, drawn: ArrayLike) -> None:
        """Take the members of a round.

        Parameters
        ----------
        drawn
            Their numbers, from 0 to n − 1, shape (size,); an empty round too.

        Raises
        ------
        ValueError
            If one is out of its range.

        Notes
        -----
        Poisson sampling draws nobody twice: where a member is, the test ``drawn once`` fails.
        """
        numbers = checked_integers("drawn:", drawn).astype(np.int64)
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < self.members):
            raise ValueError(f"drawn: must lie between 0 and {self.members - 1}")
        once = each_once(numbers)
        if len(once) < len(numbers):
            self._twice.append((self.rounds, len(numbers) - len(once)))
        numbers = once
        now, last = self.rounds, self._last[numbers]
        since = (now - last).astype(np.uint64)
        # The last round of a member joins those before it; what lies further back than all lags leaves.
        history = (self._history[numbers] << np.uint64(1)) | np.uint64(1)
        history = np.where(since <= _LAGS, history << (np.minimum(since, _LAGS) - np.uint64(1)), np.uint64(0))
        history[last < 0] = 0
        # Little-endian, so that the first bit is the lag 1.
        bits = np.unpackbits(history.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        self._returned.append(bits.sum(axis=0, dtype=np.int64)[: min(_LAGS, now)])
        self._history[numbers], self._last[numbers] = history, now
        self._counts[numbers] += 1
        self._sizes.append(len(numbers))
        record = numbers.astype("<i8").tobytes()
        self._digest.update(record + b"round")
        self._digests.append(hashlib.sha256(record).digest())

    def tests(self, *, notices: bool = True) -> tuple[InstrumentTest, ...]:
        """Return the tests of the rounds so far; none before the first.

        Parameters
        ----------
        notices
            Whether the tests say which faults they notice, which takes most of the time.

        Returns
        -------
        The tests, each at level 1e-6.
        """
        tests = tuple(self._tests(notices=notices)) if self.rounds else ()
        if self._equal_rounds**self.rounds <= _EQUAL_RECORDS:
            return tests
        # A record has one draw: that of a likely one would be the p-value of many trainings.
        return tuple(test if test.has_failed else replace(test, p_value=1.0) for test in tests)

    def compare(self, other: "SamplingTests") -> InstrumentTest:
        """Compare this record with that of another training, round by round.

        Independent draws of many members are hardly ever equal. Equal ones are of a generator that each training sets
        to one state: whoever knows it knows who takes part.

        Parameters
        ----------
        other
            The record of another training, with the same rate and members.

        Returns
        -------
        The test of the rounds that both have.

        Raises
        ------
        ValueError
            If the other has another rate or number of members.

        Examples
        --------
        >>> import numpy as np
        >>> import canaryproof as cp
        >>> records = [cp.SamplingTests(rate=0.1, members=1000) for _ in range(2)]
        >>> for record in records:
        ...     rng = np.random.default_rng(0)  # each training begins with this seed
        ...     for t in range(20):
        ...         record.add(np.flatnonzero(rng.random(1000) < 0.1))
        >>> records[0].compare(records[1]).observed
        'The same round of both trainings drew the same members in 20 of 20 rounds.'
        """
        if (other.rate, other.members) != (self.rate, self.members):
            raise ValueError(
                f"other: must have the rate {self.rate:g} and {self.members:,} members, not {other.rate:g} and "
                f"{other.members:,}"
            )
        pairs = list(zip(self._digests, other._digests, strict=False))
        same = sum(first == second for first, second in pairs)
        return InstrumentTest(
            "equal records",
            f"The same round of both trainings drew the same members in {same} of {len(pairs)} rounds.",
            float(stats.binom.sf(same - 1, len(pairs), self._equal_rounds)) if pairs else None,
        )

    def _tests(self, *, notices: bool) -> Iterator[InstrumentTest]:
        if self._twice:
            # No claim of Poisson sampling has such a round.
            many = sum(count for _, count in self._twice)
            yield InstrumentTest(
                "drawn once",
                f"Members were drawn twice in a round {many} time{'s' if many > 1 else ''}, for the first time in "
                f"round {self._twice[0][0]}.",
                0.0,
            )
        rng = np.random.default_rng(int.from_bytes(self._digest.digest(), "big"))
        sizes = np.asarray(self._sizes)
        normal = _normal(sizes, self.members, self.rate, rng)
        yield InstrumentTest(
            "batch size",
            f"A round has {sizes.mean():.5g} members in the mean, where the claim has {self.members * self.rate:.5g}.",
            _two_sided_p_value(float(normal.sum()) / math.sqrt(len(normal))),
            self._wrong_rate() if notices else "",
        )
        yield _spread(
            "spread of batch sizes",
            f"The sizes of rounds have a deviation of {sizes.std():.4g}, where the claim has {self._deviation:.4g}.",
            normal,
            self._fixed_sizes() if notices else "",
        )
        yield _spread(
            "participations",
            f"A member takes part from {self._counts.min()} to {self._counts.max()} times in {self.rounds} rounds.",
            _normal(self._counts, self.rounds, self.rate, rng),
            self._wrong_rates() if notices else "",
        )
        if self.rounds > 1:
            yield self._again(rng, notices=notices)

    @property
    def _equal_rounds(self) -> float:
        """Probability that each member is drawn in two rounds, or in neither."""
        return math.exp(self.members * math.log1p(-2.0 * self.rate * (1.0 - self.rate)))

    @property
    def _deviation(self) -> float:
        return math.sqrt(self.members * self.rate * (1.0 - self.rate))

    def _fixed_sizes(self) -> str:
        """Name the number of rounds after which batches of the expected size, rounded either way, are noticed."""
        rounds = _rounds_of_fixed_sizes(self.members, self.rate)
        return "" if rounds is None else f"one fixed size, in {rounds} rounds"

    def _wrong_rate(self) -> str:
        """Name the error of the rate that is noticed, in either direction."""
        share = least_wrong_rate(self.members, self.rate, self.rounds, LEVEL)
        return "" if share is None else f"a rate that is wrong by {_two_digits_up(share)} of itself"

    def _wrong_rates(self) -> str:
        """Name the deviation of members' rates at which their counts spread too much."""
        share = _least_wrong_rates(self.rounds, self.rate, self.members)
        return "" if share is None else f"rates of members with a deviation of {_two_digits_up(share)} of their mean"

    @property
    def _overlaps(self) -> tuple[Ints, Ints, Ints]:
        """Each lag of each round, the number of members of the earlier round, and how many are in the later one too."""
        counts = [len(each) for each in self._returned]
        lags = np.concatenate([np.arange(1, count + 1) for count in counts])
        earlier = np.asarray(self._sizes)[np.repeat(np.arange(self.rounds), counts) - lags]
        return lags, earlier, np.concatenate(self._returned)

    def _again(self, rng: np.random.Generator, *, notices: bool) -> InstrumentTest:
        lags, earlier, both = self._overlaps
        normal = _normal(both, earlier, self.rate, rng)
        sums = np.bincount(lags, normal)[1:] / np.sqrt(np.bincount(lags)[1:])
        strongest = int(np.argmax(np.abs(sums))) + 1
        share = both[lags == strongest].sum() / max(1, earlier[lags == strongest].sum())
        return InstrumentTest(
            "returns",
            f"{share:.2%} of a round's members are drawn again {_later(strongest)}, where the claim has "
            f"{self.rate:.2%}.",
            min(1.0, len(sums) * _two_sided_p_value(float(sums[strongest - 1]))),
            self._wrong_return(lags, earlier) if notices else "",
        )

    def _wrong_return(self, lags: Ints, earlier: Ints) -> str:
        next_round = earlier[lags == 1]
        share = least_wrong_rate(round(next_round.mean()), self.rate, len(next_round), LEVEL / int(lags.max()))
        return "" if share is None else f"a share at the next round that is off by {_two_digits_up(share * self.rate)}"


# Deviation of a count from which on it is normal enough for a power.
_NORMAL = 256.0
# Nodes and weights in the unit interval, for the mean over a draw within a count's jump.
_NODES, _WEIGHTS = (0.5 * part for part in np.polynomial.legendre.leggauss(24))
_NODES += 0.5
# Quantiles of members' rates, where these have a lognormal law.
_QUANTILES = special.ndtri((np.arange(64) + 0.5) / 64)


def _moments(size: int, rate: float, true: Array) -> Array:
    """Return the mean, mean square and mean fourth power of a count's normal number at other rates, shape (3, n)."""
    if size * rate * (1.0 - rate) > _NORMAL**2:
        mean = size * (true - rate) / math.sqrt(size * rate * (1.0 - rate))
        variance = true * (1.0 - true) / (rate * (1.0 - rate))
        return np.array([mean, mean**2 + variance, mean**4 + 6.0 * mean**2 * variance + 3.0 * variance**2])
    low, high = stats.binom.ppf(1e-12, size, true.min()), stats.binom.isf(1e-12, size, true.max())
    counts = np.arange(max(low, 0.0), high + 1.0)
    numbers = _normal(counts[:, np.newaxis], size, rate, np.tile(_NODES, (len(counts), 1)))
    chances = stats.binom.pmf(counts[:, np.newaxis], size, true)
    return np.array([(numbers**power @ _WEIGHTS) @ chances for power in (1, 2, 4)])


@lru_cache(maxsize=64)
def least_wrong_rate(size: int, rate: float, count: int, level: float) -> float | None:
    """Return the share by which the rate of counts is off, that a test of their sum notices with 90%; None if none.

    It is noticed upwards, and downwards where a rate of 0 is.
    """
    critical = float(-special.ndtri(0.5 * level))

    def power(share: float) -> float:
        first, second, _ = _moments(size, rate, np.array([rate * (1.0 + share)]))[:, 0]
        deviation = math.sqrt(max(second - first**2, 1e-300))
        return float(special.ndtr((math.sqrt(count) * abs(first) - critical) / deviation))

    if not size:
        return None
    above = _least_share(power, 1.0 / rate - 1.0)
    below = _least_share(lambda share: power(-share), 1.0)
    shares = [share for share in (above, below) if share is not None]
    return max(shares) if shares else None


@lru_cache(maxsize=64)
def _rounds_of_fixed_sizes(members: int, rate: float) -> int | None:
    """Return the rounds after which the squares of one size's numbers are too few with 90%; None if 999 do not do."""
    expected = round(members * rate, 6)
    sizes = np.array([[max(1.0, math.floor(expected))], [math.ceil(expected)]])
    squares = _normal(sizes, members, rate, np.tile(_NODES, (2, 1))) ** 2
    mean = squares @ _WEIGHTS
    variance = squares**2 @ _WEIGHTS - mean**2
    rounds = np.arange(1.0, 1000.0)
    # Their sum is next to a gamma number with its mean and variance, which has the longer tail.
    most = special.gammaincinv(np.outer(mean**2 / variance, rounds), _POWER) * (variance / mean)[:, np.newaxis]
    noticed = (most <= 2.0 * special.gammaincinv(0.5 * rounds, 0.5 * LEVEL)).all(axis=0)
    return int(rounds[np.argmax(noticed)]) if noticed.any() else None


@lru_cache(maxsize=64)
def _least_wrong_rates(size: int, rate: float, count: int) -> float | None:
    """Return the deviation of rates, as a share of their mean, at which the squares of counts' numbers are too many.

    Rates are above and below the mean by their deviation, or have a lognormal law: the larger of both.
    """
    critical = float(stats.chi2.isf(0.5 * LEVEL, count))

    def power(rates: Array) -> float:
        _, second, fourth = _moments(size, rate, np.minimum(rate * rates, 1.0)).mean(axis=1)
        # Which member has which rate is drawn, too.
        deviation = math.sqrt(count * (fourth - second**2))
        return float(special.ndtr((count * second - critical) / deviation))

    def lognormal(share: float) -> Array:
        deviation = math.sqrt(math.log1p(share**2))
        rates = np.exp(deviation * _QUANTILES)
        return np.asarray(rates / rates.mean())

    halves = _least_share(lambda share: power(np.array([1.0 - share, 1.0 + share])), min(1.0, 1.0 / rate - 1.0))
    spread = _least_share(lambda share: power(lognormal(share)), 1.0 / rate - 1.0)
    return None if halves is None or spread is None else max(halves, spread)


def _least_share(power: Callable[[float], float], most: float) -> float | None:
    """Return the least share that is noticed with 90%; None if the largest is not."""
    low, high = 1e-9, min(1e-3, most)
    if power(low) >= _POWER:
        return 0.0
    while power(high) < _POWER:
        if high >= most:
            return None
        low, high = high, min(4.0 * high, most)
    return float(optimize.brentq(lambda share: power(share) - _POWER, low, high, rtol=1e-3))


def _down(value: float, digits: int) -> str:
    return f"{float(round_down(value, digits)):.{digits}g}"


def _two_digits_up(value: float) -> str:
    step = 10.0 ** (math.floor(math.log10(max(value, 1e-300))) - 1)
    return f"{math.ceil(value / step) * step:.2g}"


def _two_sided_p_value(z: float) -> float:
    return float(2.0 * special.ndtr(-abs(z)))


def _spread(name: str, observed: str, normal: Array, notices: str) -> InstrumentTest:
    square = float(np.square(normal).sum())
    p_value = 2.0 * min(special.chdtr(len(normal), square), special.chdtrc(len(normal), square))
    return InstrumentTest(name, observed, min(1.0, float(p_value)), notices)


def _normal(
    counts: ArrayLike, sizes: ArrayLike, rate: float, draws: "np.random.Generator | NDArray[np.float64]"
) -> Array:
    """Return exactly normal numbers for binomial counts; the nearer tail is computed, so that none is infinite."""
    count, size = np.broadcast_arrays(np.asarray(counts, np.float64), np.asarray(sizes, np.float64))
    uniform = draws if isinstance(draws, np.ndarray) else draws.random(count.shape)
    # Many of them are equal.
    pairs, which = np.unique(count + 1j * size, return_inverse=True)
    k, n = pairs.real, pairs.imag
    laws = (stats.binom.pmf(k, n, rate), stats.binom.cdf(k - 1.0, n, rate), stats.binom.sf(k, n, rate))
    jump, less, more = (np.asarray(law)[which.reshape(count.shape)] for law in laws)
    below, above = less + uniform * jump, more + (1.0 - uniform) * jump
    tail = np.maximum(np.minimum(below, above), np.finfo(float).tiny)
    return np.asarray(np.where(below < above, 1.0, -1.0) * special.ndtri(tail))


def _hoeffding(ratio: float, tests: int) -> float:
    """Return the bound of the largest of several sums with independent fair signs, over the root of their squares."""
    return min(1.0, 2.0 * tests * math.exp(-0.5 * ratio * ratio))


def _beyond(tests: int) -> float:
    """Return the mean of such a ratio at which the test rejects with a probability of 90%."""
    return math.sqrt(2.0 * math.log(2.0 * tests / LEVEL)) + float(special.ndtri(_POWER))


def _signs(name: str, compared: str, ratio: float, tests: int, count: int) -> InstrumentTest:
    least = _least_correlation(tests, count)
    correlation = "" if least is None else f"a correlation of {_two_digits_up(least)} of {compared}"
    observed = f"The strongest correlation of {compared} is {ratio:.3g} standard errors."
    return InstrumentTest(name, observed, _hoeffding(ratio, tests), correlation)


def _least_correlation(tests: int, count: int) -> float | None:
    """Return the correlation of so many pairs of normal numbers that is noticed with 90%; None if none is.

    The ratio is √n A/√B, of the means A of products and B of their squares, whose moments at a correlation are known.
    """
    critical = math.sqrt(2.0 * math.log(2.0 * max(tests, 1) / LEVEL))

    def power(c: float) -> float:
        square = 1.0 + 2.0 * c * c
        variance = (1.0 + c * c) / square - c * c * (8.0 + 4.0 * c * c) / square**2
        variance += c * c * (2.0 + 17.0 * c * c + 5.0 * c**4) / square**3
        return float(special.ndtr((math.sqrt(count / square) * c - critical) / math.sqrt(variance)))

    return _least_share(power, 1.0)


def _products_by_distance(values: Callable[[slice], Array], count: int) -> Iterator[Array]:
    """Yield the sums of the products of two of so many numbers, for a slice of distances at a time, the longest first.

    A transform of all numbers would take several copies of them. Two slices in a row have the transform of the first
    plus that of the second with alternating signs, where all are padded to twice their length.
    """
    parts = list(slices(count))
    length = min(count, SLICE)
    size = fft.next_fast_len(2 * length, real=True)
    spectrum = lru_cache(_TOGETHER + 2)(lambda number: fft.rfft(values(parts[number]), size))
    signs = np.where(np.arange(size // 2 + 1) % 2, -1.0, 1.0)
    following = np.zeros(len(signs), np.complex128)
    for longest in range(len(parts) - 1, -1, -_TOGETHER):
        distances = range(longest, max(longest - _TOGETHER, -1), -1)
        sums = np.zeros((len(distances), len(signs)), np.complex128)
        for first in range(len(parts) - distances[-1]):
            for now, apart in zip(sums, distances, strict=True):
                if first + apart < len(parts):
                    _add_product(now, spectrum(first), spectrum(first + apart))
        for now, apart in zip(sums, distances, strict=True):
            following *= signs
            following += now
            products = fft.irfft(following, size, overwrite_x=True)
            following[...] = now
            # A number is at no distance from itself.
            yield products[0 if apart else 1 : min(length, count - apart * length)]


def _add_product(total: Complexes, first: Complexes, second: Complexes) -> None:
    """Add to a sum the product of the first one's conjugate and the second, block by block, which makes no copy."""
    for start in range(0, len(total), _BLOCK):
        part = slice(start, start + _BLOCK)
        total[part] += first[part].conj() * second[part]


def _chernoff(counts: Array, expected: Array, number: int, *, above: bool) -> Array:
    """Return Chernoff's log bound −n·KL for counts on the tested side of the expected one; else 0."""
    share, mean = counts / number, np.clip(expected / number, 0.0, 1.0)
    divergence = special.rel_entr(share, mean) + special.rel_entr(1.0 - share, 1.0 - mean)
    outside = share > mean if above else share < mean
    return np.asarray(np.where(outside, -number * divergence, 0.0))


def _critical_count(expected: float, number: int, *, above: bool) -> int | None:
    """Return the count nearest to the expected one, on a side, at which a limit rejects; None if none does."""

    def is_rejected(count: int) -> bool:
        log = _chernoff(np.asarray(count), np.asarray(expected), number, above=above)
        return 3 * len(_LIMITS) * math.exp(log) <= LEVEL

    near, far = (math.floor(expected), number) if above else (math.ceil(expected), 0)
    if not is_rejected(far):
        return None
    while abs(far - near) > 1:
        middle = (near + far) // 2
        near, far = (near, middle) if is_rejected(middle) else (middle, far)
    return far


def _later(rounds: int) -> str:
    return "in the next round" if rounds == 1 else f"{rounds} rounds later"
