"""The noise multiplier of a training, measured from its canaries, one number a round.

In a round, canaries with the sum S join the clipped updates, and noise of standard deviation σ in each coordinate is
added, all in units of the clip norm. S is independent of the noise. If nothing else is in the release, the law of the
cosine c between S and the release depends on σ alone. Then t = c·√((d − 1)/(1 − c²)) is noncentral t with d − 1 degrees
of freedom and noncentrality ‖S‖/σ. Canaries that share a release need not be independent, and no unit is needed.

Others' data make the cosine stochastically smaller, whatever they are, if the direction of S is independent of them.
So c measures √(σ² + ‖data‖²/d), the noise and others' data together, and a test against too little noise keeps its
level. Others' updates depend on a canary once it has taken part. Hence S is the sum of those that take part for the
first time. Where others' updates are taken out of the release, S is the sum of all, and c measures the noise alone.

Rounds are combined by Stouffer's method with the weights ‖S‖. Each round's z-score is standard normal given the past
if the noise is as claimed, and stochastically smaller if there is more (``proofs_check/noise_multiplier.md``).
"""

import contextlib
import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from canaryproof.kernels.arrays import Array, Ints
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.levels import POWER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Values of a normal variable for the same rule where the integrand is the product of a normal and a chi law.
_NORMALS = np.arange(-38.0, 38.25, 0.25)
# Noise multipliers among which the measured one is searched.
_LEAST, _MOST = 1e-6, 1e9
# Logarithm of the factor around a first guess, within which the noise multiplier mostly lies.
_NEAR = 0.05
# Shares of the claimed noise that the evidence against a claim is spread over: their traces are larger than the claimed
# one by 2% to 4 times.
_SHARES = 1.0 / (1.0 + np.geomspace(0.02, 4.0, 20))


def log_tails(cosines: ArrayLike, noncentrality: ArrayLike, dim: int) -> tuple[Array, Array]:
    """Return log P(C ≤ c) and log P(C > c) of the cosine C between a fixed vector S and S + σZ.

    Parameters
    ----------
    cosines
        Values c in (−1, 1), any shape.
    noncentrality
        ‖S‖/σ, at least 0, of a shape that broadcasts with it.
    dim
        Dimension d ≥ 2 of the normal vector Z.

    Returns
    -------
    Both logarithms. Probabilities have a relative error of 1e-9 for 6 ≤ d ≤ 1e12, and of 1e-7 from d = 3 on; where c is
    above 1/√2, they are at least 1e-300.
    """
    cosine, shift = np.broadcast_arrays(np.asarray(cosines, np.float64), np.asarray(noncentrality, np.float64))
    slope = cosine / np.sqrt((1.0 - cosine) * (1.0 + cosine))
    freedom = dim - 1.0
    low, high = np.empty(slope.shape), np.empty(slope.shape)
    # By the chi variable, a steep slope makes a step of Φ. By the normal one, the chi law's tails have a kink, which is
    # far out where the shift is large.
    steep = (slope > 1.0) & (shift > 5.0)
    t = math.sqrt(freedom) * slope
    low[~steep], high[~steep] = (
        _log_mean_below(sign * t[~steep], sign * shift[~steep], freedom) for sign in (1.0, -1.0)
    )
    low[steep], high[steep] = _log_tails_steep(slope[steep], shift[steep], freedom)
    return low, high


def _log_mean_below(t: Array, shift: Array, freedom: float) -> Array:
    """Return log E[Φ(t·V/√ν − shift)] for a chi variable V of ν degrees of freedom, by the logarithm x of V/√ν."""
    mode = np.zeros(t.shape)
    # The integrand's logarithm is concave.
    for _ in range(100):
        inside, reach = t * np.exp(mode) - shift, t * np.exp(mode)
        ratio = math.sqrt(2.0 / math.pi) / special.erfcx(-math.sqrt(0.5) * inside)
        gradient = -freedom * np.expm1(2.0 * mode) + reach * ratio
        curvature = 2.0 * freedom * np.exp(2.0 * mode) - reach * ratio * (1.0 - reach * (ratio + inside))
        step = np.clip(gradient / np.maximum(curvature, 1e-3 * np.abs(gradient)), -1.0, 1.0)
        mode = mode + step
        if (np.abs(step) < 1e-6 / math.sqrt(freedom)).all():
            break
    width = 1.0 / np.sqrt(curvature)
    steps = _steps(freedom)
    x = mode[..., np.newaxis] + width[..., np.newaxis] * steps
    inside = t[..., np.newaxis] * np.exp(x) - shift[..., np.newaxis]
    terms = _log_sum(_log_chi(x, freedom) + special.log_ndtr(inside))
    return np.asarray(np.minimum(terms + np.log(width) - _log_whole(freedom), 0.0))


def _steps(freedom: float) -> Array:
    """Return the steps of the trapezoidal rule in widths of the integrand, which decays like e^νx to the left."""
    return np.arange(-max(16.0, math.ceil(32.0 / math.sqrt(0.5 * freedom))), 10.25, 0.25)


def _log_chi(x: Array, freedom: float) -> Array:
    """Return the logarithm of the density of log(V/√ν), up to a constant."""
    return np.asarray(freedom * (x - 0.5 * np.expm1(2.0 * x)))


@lru_cache(maxsize=64)
def _log_whole(freedom: float) -> float:
    """Return the log of the integral of that density by the same rule, as its formula cancels where ν is large."""
    width = 1.0 / math.sqrt(2.0 * freedom)
    return float(_log_sum(_log_chi(width * _steps(freedom), freedom))) + math.log(width)


def _log_sum(logs: Array) -> Array:
    """Return the log of the sum of the last axis, from logs: scipy's ``logsumexp`` takes ten times as long."""
    # Where all are 0, so is the sum.
    most = np.maximum(logs.max(axis=-1, keepdims=True), -np.finfo(np.float64).max)
    with np.errstate(divide="ignore"):
        return np.asarray(most[..., 0] + np.log(np.exp(logs - most).sum(axis=-1)))


def _log_tails_steep(slope: Array, shift: Array, freedom: float) -> tuple[Array, Array]:
    """Return log P(Z + shift ≤ slope·V) and the log of the rest by the chi law's tails, at least 1e-300."""
    reach = np.maximum(_NORMALS + shift[..., np.newaxis], 0.0) / slope[..., np.newaxis]
    weights = np.exp(-0.5 * _NORMALS**2) * (_NORMALS[1] - _NORMALS[0]) / math.sqrt(2.0 * math.pi)
    half = 0.5 * freedom, 0.5 * reach**2
    below, above = ((tail(*half) * weights).sum(axis=-1) for tail in (special.gammaincc, special.gammainc))
    return np.log(np.clip(below, 1e-300, 1.0)), np.log(np.clip(above, 1e-300, 1.0))


def log_likelihood(cosines: ArrayLike, noncentrality: ArrayLike, dim: int) -> Array:
    """Return the log density of the cosine between S and S + σZ, less that of the cosine between S and Z.

    It is log E[exp(c·‖S‖/σ·U)] − ‖S‖²/(2σ²) for a chi variable U of d degrees of freedom. Arguments are those of
    ``log_tails``. The ratio of two noncentralities rises with c.
    """
    cosine, shift = np.broadcast_arrays(np.asarray(cosines, np.float64), np.asarray(noncentrality, np.float64))
    freedom = float(dim)
    # By the logarithm x of U/√d, whose mode solves d·(1 − e^2x) + a·√d·e^x = 0.
    slope = math.sqrt(freedom) * cosine * shift
    mode = np.arcsinh(0.5 * slope / freedom)
    width = 1.0 / np.sqrt(2.0 * freedom * np.exp(2.0 * mode) - slope * np.exp(mode))
    steps = _steps(freedom)
    x = mode[..., np.newaxis] + width[..., np.newaxis] * steps
    terms = _log_sum(_log_chi(x, freedom) + slope[..., np.newaxis] * np.exp(x))
    return np.asarray(terms + np.log(width) - _log_whole(freedom) - 0.5 * shift**2)


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class NoiseMultiplier:
    """A measured noise multiplier, in units of the canaries' norm.

    Attributes
    ----------
    value
        Median-unbiased estimate; infinite if the canaries leave no trace.
    low, high
        Ends of the interval, which is exact where rounds have equal noise and no data. Where canaries come back and
        others' updates are not known, it also holds that of new canaries alone, whom no update can answer yet.
    standard_error
        Standard error of ``value``, with the spread between rounds where that is more than chance.
    spread_p_value
        P-value of equal noise in all rounds, by their spread, their trend and the round with the least noise; None for
        one round, or without noise.
    """

    value: float
    low: float
    high: float
    standard_error: float
    spread_p_value: float | None

    def spanning(self, other: "NoiseMultiplier") -> "NoiseMultiplier":
        """Return this estimate with the interval, and the standard error, that has those of both."""
        return replace(
            self,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            standard_error=max(self.standard_error, other.standard_error),
        )


# Fewer rounds are not tested for independence.
_FEWEST = 8
# At this level of the test of equal rounds, their spread enters the standard error and the interval.
_UNEQUAL = 0.01


def log_mean_ratio(sums: Array) -> Array:
    """Return the log of the mean of ratios over shares of noise, whose logs have been added up over rounds."""
    return _log_sum(sums) - math.log(len(_SHARES))


@set_module("canaryproof.typing")
@dataclass(frozen=True, eq=False)
class RoundTraces:
    """The traces of canaries in the rounds of a training: a cosine a round, with its law.

    Attributes
    ----------
    cosines
        Cosine of each release with the sum S of the canaries that it measures, shape (n,).
    lengths
        ‖S‖ in units of a canary's norm, shape (n,), positive.
    dim
        Dimension d of the releases, at least 3.
    residual
        Whether others' updates were taken out of the releases, so that the noise alone is measured.
    rounds
        Number of rounds that were released; in some of them no canary may have been measured.

    Raises
    ------
    ValueError
        If the arrays are empty, of different shape, or hold anything else.
    """

    cosines: Array
    lengths: Array
    dim: int
    residual: bool
    rounds: int

    def __post_init__(self) -> None:
        if self.cosines.shape != self.lengths.shape or self.cosines.ndim != 1 or not len(self.cosines):
            raise ValueError("cosines: must be one for each length, and at least one")
        if not ((np.abs(self.cosines) <= 1.0).all() and (self.lengths > 0.0).all() and np.isfinite(self.lengths).all()):
            raise ValueError("cosines: must lie in [-1, 1], and lengths be positive and finite")
        if self.dim < 3:
            raise ValueError(f"dim: must be at least 3, not {self.dim}")

    @property
    def noise_source(self) -> str:
        """Content of a measured noise multiplier: the noise alone, or other people's data too."""
        return "the noise" if self.residual else "noise and others' data together"

    def z_scores(self, noise_multiplier: float) -> Array:
        """Return a z-score a round, large where there is less noise than of this multiplier, shape (n,).

        They are standard normal if the noise has this multiplier and nothing else is in the releases.
        """
        below, above = log_tails(self._inside, self.lengths / noise_multiplier, self.dim)
        # Each half of the law has its own tail, which keeps its digits.
        return np.where(below < above, special.ndtri_exp(below), -special.ndtri_exp(above))

    def statistic(self, noise_multiplier: float) -> float:
        """Return the z-score of all rounds together, weighted by the lengths."""
        return float((self.z_scores(noise_multiplier) * self.lengths).sum()) / math.sqrt(np.square(self.lengths).sum())

    def p_value(self, noise_multiplier: float) -> float:
        """Return the p-value of noise of at least this multiplier in every round, whatever others' data are.

        It is exact for this multiplier and no data, and conservative for more noise or any data.
        """
        return float(special.ndtr(-self.statistic(noise_multiplier)))

    @property
    def trace_p_value(self) -> float:
        """P-value of the hypothesis that the canaries are not in the releases."""
        return self.p_value(math.inf)

    def noise_multiplier(self, confidence: float = 0.95) -> NoiseMultiplier:
        """Estimate the noise multiplier; see ``noise_source`` for what it is of.

        Parameters
        ----------
        confidence
            Confidence of the interval, in (0, 1).

        Returns
        -------
        The estimate.
        """
        value = self._solution(0.0)
        spread_p_value, inflation = None, 1.0
        if 0.0 < value < math.inf and len(self.cosines) > 1:
            scores = self.z_scores(value)
            spread, freedom = float(np.square(scores - scores.mean()).sum()), len(scores) - 1
            # A round's z-score is off by ‖S‖ times what the inverse of its noise is off.
            order = np.arange(len(scores)) - np.average(np.arange(len(scores)), weights=self.lengths**2)
            weights = self.lengths * order
            trend = abs(float(weights @ scores)) / float(np.linalg.norm(weights))
            p_values = (
                special.chdtrc(freedom, spread),
                2.0 * special.ndtr(-trend),
                len(scores) * special.ndtr(-scores.max()),
            )
            spread_p_value = min(1.0, 3.0 * float(min(p_values)))
            if spread_p_value < _UNEQUAL:
                inflation = math.sqrt(max(spread / freedom, 1.0))
        reach = inflation * float(-special.ndtri(0.5 - 0.5 * confidence))
        low, high = self._solution(-reach), self._solution(reach)
        step = self._solution(inflation) - self._solution(-inflation)
        return NoiseMultiplier(value, low, high, 0.5 * step if math.isfinite(step) else math.inf, spread_p_value)

    def independence_p_value(self, noise_multiplier: float) -> float | None:
        """Return the p-value of independent rounds, by the correlation of neighbours' z-scores; None below 8 rounds.

        Pairs of neighbours have no round in common, so that Student's law of the correlation is exact for normal ones.
        """
        if len(self.cosines) < _FEWEST:
            return None
        # It takes as long to import as an audit, and few have so many rounds.
        from scipy import stats

        z = self.z_scores(noise_multiplier)
        return float(stats.pearsonr(z[: len(z) // 2 * 2 : 2], z[1::2]).pvalue)

    def largest_noise(self, level: float) -> float:
        """Return the upper limit of the noise multiplier, which is below the noise of all rounds at most at a level."""
        return self._solution(float(-special.ndtri(level)))

    def log_evidence(self, noise_multiplier: float) -> Array:
        """Return the log of the evidence against noise of at least this multiplier after each measured round.

        It is an e-process. If every round's noise has at least this multiplier given the past, it ever exceeds log 1/α
        with a probability of at most α, whenever somebody looks (Ville's inequality). It is the mean of likelihood
        ratios over shares of the claimed noise from 20% to 98%, shape (n,).
        """
        return log_mean_ratio(np.cumsum(self.log_ratios(noise_multiplier), axis=0))

    def log_ratios(self, noise_multiplier: float) -> Array:
        """Return each round's log likelihood ratios of shares of this noise to all of it, shape (n, shares)."""
        claimed = self.lengths / noise_multiplier
        pieces = []
        # A round takes some 50 kB meanwhile.
        for part in np.array_split(np.arange(len(claimed)), math.ceil(len(claimed) / 2000)):
            cosines = self._inside[part]
            ratios = log_likelihood(cosines[:, np.newaxis], claimed[part, np.newaxis] / _SHARES, self.dim)
            pieces.append(ratios - log_likelihood(cosines, claimed[part], self.dim)[:, np.newaxis])
        return np.concatenate(pieces)

    @cached_property
    def _inside(self) -> Array:
        # A cosine that rounds to 1 has no finite t.
        return np.clip(self.cosines, -1.0 + 1e-15, 1.0 - 1e-15)

    def _solution(self, level: float) -> float:
        """Return the noise multiplier at which the statistic, which rises with it, reaches a level."""

        def excess(log: float) -> float:
            return self.statistic(math.exp(log)) - level

        # A noncentral t is nearly normal around ‖S‖ divided by the noise, which gives a first guess.
        t = self._inside * np.sqrt((self.dim - 1.0) / (1.0 - self._inside**2))
        length = float(np.linalg.norm(self.lengths))
        guess = float(self.lengths @ t) / length - level
        if guess > 0.0 and _LEAST < length / guess < _MOST:
            near = math.log(length / guess)
            # It raises ValueError where the solution is not between these ends.
            with contextlib.suppress(ValueError):
                return math.exp(float(optimize.brentq(excess, near - _NEAR, near + _NEAR, xtol=1e-10)))
        if self.statistic(_MOST) <= level:
            return math.inf
        if self.statistic(_LEAST) >= level:
            return 0.0
        return math.exp(float(optimize.brentq(excess, math.log(_LEAST), math.log(_MOST), xtol=1e-10)))


@set_module("canaryproof.typing")
@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence against a claimed noise multiplier while a training runs, an e-process.

    If every round's noise has at least that multiplier given the past, the evidence ever exceeds 1/α with a probability
    of at most α, whenever somebody looks (Ville's inequality).

    Attributes
    ----------
    rounds
        Numbers of the rounds that were measured, shape (n,).
    log_values
        Natural logarithm of the evidence after each of them, shape (n,).
    """

    rounds: Ints
    log_values: Array

    def alarm(self, level: float = 1e-3) -> int | None:
        """Return the first round after which the evidence is above 1/level; None if there is none.

        Parameters
        ----------
        level
            Probability, in (0, 1), with which an honest training is ever stopped.

        Returns
        -------
        The number of the round, or None.

        Raises
        ------
        ValueError
            If the level is outside.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level: must lie strictly between 0 and 1, not {level!r}")
        above = np.flatnonzero(self.log_values > -math.log(level))
        return int(self.rounds[above[0]]) if len(above) else None

    def plot(self, level: float = 1e-3) -> "Figure":
        """Draw the evidence against rounds, with the alarm.

        Parameters
        ----------
        level
            As for ``alarm``.

        Returns
        -------
        A matplotlib figure.
        """
        # Matplotlib takes half a second to load.
        from matplotlib.figure import Figure

        from canaryproof.verify.audit.markup.figures import BLUE, GREY, ORANGE

        figure = Figure(figsize=(7.0, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.step(self.rounds + 1, np.exp(np.clip(self.log_values, -700.0, 700.0)), where="post", color=BLUE)
        axes.axhline(1.0 / level, color=ORANGE, linestyle="--", label=f"alarm: 1/{level:g}")
        axes.axhline(1.0, color=GREY, linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xlabel("rounds")
        axes.set_ylabel("evidence against the claim")
        axes.legend(frameon=False)
        return figure


def power(traces: ArrayLike, noise_multiplier: float, lengths: ArrayLike, dim: float, level: float) -> Array:
    """Return the probability that the test of the claimed noise rejects.

    Parameters
    ----------
    traces
        Trace of a canary in every release, 1/√(σ² + ‖data‖²/d) for the noise σ and the data that are there, any shape.
    noise_multiplier
        Claimed multiplier.
    lengths
        ‖S‖ of each measured round, in units of a canary's norm, shape (n,).
    dim
        Dimension d of the releases.
    level
        Level of the test, in (0, 1).

    Returns
    -------
    The power at each trace. √(2d)·asinh(t/√(2d)) is taken as normal with variance 1, as the variance of a noncentral t
    is about 1 + t²/(2d): right to 0.012 for d = 1,000 and to 2e-5 for d = 10⁶.
    """
    length = np.atleast_1d(np.asarray(lengths, np.float64))

    def stabilise(trace: Array) -> Array:
        # The mean of noncentral t is larger than its noncentrality by this factor.
        mean = length * trace[..., np.newaxis] * (1.0 + 0.75 / (dim - 1.0))
        return np.asarray(math.sqrt(2.0 * dim) * np.arcsinh(mean / math.sqrt(2.0 * dim)))

    excess = stabilise(np.asarray(traces, np.float64)) - stabilise(np.asarray(1.0 / noise_multiplier))
    # Where nothing is measured, the level is left.
    shift = excess @ length / (np.linalg.norm(length) or 1.0)
    return np.asarray(special.ndtr(shift + special.ndtri(level)))


def noticed_share(
    noise_multiplier: float,
    lengths: ArrayLike,
    dim: int,
    level: float,
    data_norm: float = 0.0,
    probability: float = POWER,
) -> float:
    """Return the largest share of the claimed noise that the test rejects with a probability; 0 if it sees none.

    ``data_norm`` is the norm of others' updates in each release, in units of a canary's norm; the other arguments are
    those of ``power``.
    """

    def excess(share: float) -> float:
        trace = 1.0 / math.hypot(share * noise_multiplier, data_norm / math.sqrt(dim))
        return float(power(trace, noise_multiplier, lengths, dim, level)) - probability

    return float(optimize.brentq(excess, 1e-9, 1.0, xtol=1e-9)) if excess(1e-9) > 0.0 else 0.0
