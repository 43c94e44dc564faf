"""CANIFE's measures of privacy: per-round ε̂, its equivalent noise σ̂, and their composition (Appendix C).

The same scores make quite different ε̂ of a training, depending on three values of δ that the paper writes as one or
does not print: that of a round's ε̂, that of its conversion into noise, and that of the composition.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels import binomial
from canaryproof.verify.accounting.sampled_gaussian import log_moment

Array = NDArray[np.float64]
ZeroCounts = Literal["infinite", "separated", "capped"]

# The orders that Opacus, CANIFE's library, tries unless it is told others.
OPACUS_ORDERS = tuple(1.0 + tenths / 10.0 for tenths in range(1, 100)) + tuple(float(order) for order in range(12, 64))


@dataclass(frozen=True)
class Deltas:
    """The three δ.

    Attributes
    ----------
    scores
        Of a round's ε̂ from its scores.
    conversion
        At which σ̂ has this ε̂ in one round.
    composition
        Of the ε̂ of a training.
    """

    scores: float
    conversion: float
    composition: float

    @classmethod
    def as_printed(cls, trials: int, delta: float) -> "Deltas":
        """Return 1/n for the scores (Section 3.4), and the training's δ for both others (Algorithm 2).

        Parameters
        ----------
        trials
            Number n of scores.
        delta
            δ of the training, which the paper does not print; the authors' public code has 1e-5.
        """
        return cls(1.0 / trials, delta, delta)


@dataclass(frozen=True)
class RoundEpsilon:
    """ε̂ of a round.

    Attributes
    ----------
    epsilon
        ε̂ at the threshold that makes it largest.
    lower, upper
        Its limits: those of a threshold fixed in advance, and so not of this one. −∞ where the formula has no value.
    threshold
        The threshold; a score that reaches it is taken for one with the canary.
    false_alarms, missed
        Errors there.
    null_count, count
        Scores without the canary, and with it.
    """

    epsilon: float
    lower: float
    upper: float
    threshold: float
    false_alarms: int
    missed: int
    null_count: int
    count: int


def round_epsilon(
    observed: ArrayLike,
    unobserved: ArrayLike,
    delta: float,
    *,
    alpha: float = 0.05,
    zero_counts: ZeroCounts = "separated",
) -> RoundEpsilon:
    """Return ε̂ of a round from its scores, at the best of all scores as thresholds.

    Parameters
    ----------
    observed, unobserved
        Scores with the canary, and without.
    delta
        δ of the formula.
    alpha
        1 − α is the confidence of the limits, two-sided for both rates.
    zero_counts
        What no error of a kind makes of a term that divides by it: ``infinite``, as the formula is printed, which
        almost any scores then reach at some threshold; ``separated``, nothing unless there is no error of either kind,
        as Appendix C.5 describes it; ``capped``, the same with the largest finite value in place of infinity.

    Returns
    -------
    The measure. Of thresholds with the same ε̂ it is that with the fewest errors.

    Raises
    ------
    ValueError
        If there is no score of a kind, one is not finite, or δ or α is out of range.

    Notes
    -----
    Maddock et al. (arXiv 2210.02912), Section 3.4 and Appendix C.1.
    """
    seen, unseen = (np.sort(np.asarray(scores, dtype=np.float64)) for scores in (observed, unobserved))
    if min(seen.size, unseen.size) == 0 or not (np.isfinite(seen).all() and np.isfinite(unseen).all()):
        raise ValueError("there must be scores with the canary and without, all of them finite")
    literal = zero_counts == "infinite"
    if not (0.0 <= delta < 1.0 and 0.0 < alpha < 1.0):
        raise ValueError(f"delta must lie in [0, 1) and alpha in (0, 1), not {delta!r} and {alpha!r}")
    thresholds = np.unique(np.concatenate([seen, unseen]))
    missed = np.searchsorted(seen, thresholds)
    false = len(unseen) - np.searchsorted(unseen, thresholds)
    values = _formula(false / len(unseen), missed / len(seen), delta, zero=math.inf if literal else -math.inf)
    if not literal:
        top = largest_finite(len(seen), len(unseen), delta) if zero_counts == "capped" else math.inf
        values = np.where(false + missed == 0, top, values)
    best = int(np.lexsort((false + missed, -values))[0])
    fp_low, fp_high = binomial.interval(int(false[best]), len(unseen), 1.0 - alpha)
    fn_low, fn_high = binomial.interval(int(missed[best]), len(seen), 1.0 - alpha)
    return RoundEpsilon(
        epsilon=float(values[best]),
        lower=float(_formula(fp_high, fn_high, delta, zero=math.inf)),
        upper=float(_formula(fp_low, fn_low, delta, zero=math.inf)),
        threshold=float(thresholds[best]),
        false_alarms=int(false[best]),
        missed=int(missed[best]),
        null_count=len(unseen),
        count=len(seen),
    )


def _formula(false_positive: ArrayLike, false_negative: ArrayLike, delta: float, zero: float) -> Array:
    """Largest defined term of the formula, with ``zero`` for what is divided by zero; −∞ if none is defined."""
    rates = np.stack(np.broadcast_arrays(false_positive, false_negative)).astype(np.float64)
    rest = 1.0 - delta - rates
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(rates[::-1] == 0.0, zero, np.log(rest / rates[::-1]))
    return np.asarray(np.where(rest > 0.0, terms, -math.inf).max(axis=0))


def largest_finite(count: int, null_count: int, delta: float) -> float:
    """Return the largest finite ε̂: one error of one kind, and none of the other.

    Parameters
    ----------
    count, null_count
        Scores with the canary, and without.
    delta
        δ of the formula.
    """
    return math.log((1.0 - delta) * max(count, null_count))


def noise_of_round(epsilon: float, delta: float, orders: Sequence[float] = OPACUS_ORDERS) -> float:
    """Return σ̂, the least noise multiplier at which Rényi accounting of one round without sampling gives ε̂.

    Parameters
    ----------
    epsilon
        ε̂ of the round.
    delta
        δ of the conversion.
    orders
        Orders to try.

    Returns
    -------
    σ̂; 0 for an infinite ε̂, and infinite for one that no noise makes so small: with finitely many orders the
    accounting ends above 0, at 0.103 with Opacus's and δ = 1e-5.

    Notes
    -----
    Maddock et al. (arXiv 2210.02912), Algorithm 2, line 7, whose "GetNoise" in Opacus searches until ε is right to
    0.01; this is where that search tends. The accounting's ε is the least over orders α of α/(2σ²) + c(α), so that it
    is at most ε̂ where σ² is at least α/(2(ε̂ − c(α))) for some order.
    """
    if math.isnan(epsilon):
        raise ValueError("epsilon must be a number")
    alphas = np.asarray(orders, dtype=np.float64)
    left = epsilon - _conversion(alphas, delta)
    return float(np.min(np.sqrt(0.5 * alphas[left > 0.0] / left[left > 0.0]), initial=math.inf))


def composed_epsilon(
    noise_multipliers: Sequence[float],
    rounds: Sequence[int],
    sampling: float,
    delta: float,
    orders: Sequence[float] = OPACUS_ORDERS,
) -> float:
    """Compose rounds of several noise multipliers by Rényi accounting under Poisson sampling.

    Parameters
    ----------
    noise_multipliers
        σ̂ of each audit.
    rounds
        Rounds that each of them stands for.
    sampling
        Probability that a client takes part in a round.
    delta
        δ of the composition.
    orders
        Orders to try.

    Returns
    -------
    ε̂ of the training; infinite if a σ̂ is 0.

    Notes
    -----
    Maddock et al. (arXiv 2210.02912), Algorithm 2, line 11, by the series of Mironov et al. (arXiv 1908.10530) with its
    signs, as Opacus sums it. dp-accounting's bound is equal at whole orders. At others it adds absolute values, and is
    above by 0.02% at σ = 0.4, 469 rounds and a sampling rate of 128/60000, by 7% at σ = 0.5, 510 rounds and 60/1016.
    """
    if not 0.0 < sampling <= 1.0:
        raise ValueError(f"sampling must lie in (0, 1], not {sampling!r}")
    alphas = np.asarray(orders, dtype=np.float64)
    total = np.zeros(len(alphas))
    for sigma, count in zip(noise_multipliers, rounds, strict=True):
        if sigma == 0.0 and count:
            return math.inf
        if sigma < math.inf:
            total += count * _divergences(sigma, sampling, alphas)
    # Without any leak ε is 0, whatever the orders.
    return max(0.0, float(np.min(total + _conversion(alphas, delta)))) if total.any() else 0.0


def _divergences(sigma: float, sampling: float, alphas: Array) -> Array:
    if sampling == 1.0:
        return np.asarray(alphas / (2.0 * sigma**2))
    moments = np.array([log_moment(float(alpha), sigma, sampling) for alpha in alphas])
    return np.asarray(np.maximum(moments, 0.0) / (alphas - 1.0))


def _conversion(alphas: Array, delta: float) -> Array:
    """Return what Balle et al. (2020) add to a Rényi divergence of order α for ε at δ."""
    return np.asarray(np.log1p(-1.0 / alphas) - (math.log(delta) + np.log(alphas)) / (alphas - 1.0))


def rounds_served(audited: Sequence[int], rounds: int) -> list[int]:
    """Return how many rounds each audit stands for: its own and those until the next; the first also those before it.

    Parameters
    ----------
    audited
        Audited rounds, rising, counted from 1.
    rounds
        Rounds of the training.

    Notes
    -----
    Maddock et al. (arXiv 2210.02912), Algorithm 2, audits every s rounds from round s on and leaves the s − 1 rounds
    before without an estimate.
    """
    starts = [1, *audited[1:], rounds + 1]
    if not audited or sorted(set(audited)) != list(audited) or not 1 <= audited[0] <= audited[-1] <= rounds:
        raise ValueError(f"audited rounds must rise, from 1 to {rounds}")
    return [after - before for before, after in pairwise(starts)]


def training_epsilon(epsilons: Sequence[float], rounds: Sequence[int], sampling: float, deltas: Deltas) -> float:
    """Return CANIFE's ε̂ of a training from the ε̂ of its audited rounds.

    Parameters
    ----------
    epsilons
        ε̂ of each audit, or one of its limits.
    rounds
        Rounds that each of them stands for (``rounds_served``).
    sampling
        Probability that a client takes part in a round.
    deltas
        δ of the conversion and of the composition.
    """
    noise = [noise_of_round(epsilon, deltas.conversion) for epsilon in epsilons]
    return composed_epsilon(noise, rounds, sampling, deltas.composition)
