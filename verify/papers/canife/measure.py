"""CANIFE's measures of privacy: per-round ε̂, its equivalent noise σ̂, and their composition (Appendix C).

The same scores make quite different ε̂ of a training, depending on three values of δ that the paper writes as one or
does not print. They are that of a round's ε̂, that of its conversion into noise, and that of the composition.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from canaryproof.kernels import binomial
from canaryproof.kernels.arrays import Array
from canaryproof.verify.papers.accounting.sampled_gaussian import composed_epsilon, noise_of_round
from canaryproof.verify.papers.records.training_record import RoundEpsilon, ZeroCountsRecord, largest_finite

ZeroCounts = Literal["infinite", "separated", "capped"]
# Rules that make ε̂ infinite only where there is no error of either kind, as Appendix C.5 describes it, or never.
RULES: tuple[ZeroCounts, ...] = ("separated", "capped")


@dataclass(frozen=True)
class Deltas:
    """The three δ."""

    scores: float  # of a round's ε̂ from its scores
    conversion: float  # at which σ̂ has this ε̂ in one round
    composition: float  # of the ε̂ of a training

    @classmethod
    def as_printed(cls, trials: int, delta: float) -> "Deltas":
        """Return 1/n for n scores (Section 3.4), and the training's δ for both others (Algorithm 2).

        The paper does not print the training's δ; the authors' public code has 1e-5.
        """
        return cls(1.0 / trials, delta, delta)


def round_epsilon(
    observed: ArrayLike,
    unobserved: ArrayLike,
    delta: float,
    *,
    alpha: float = 0.05,
    zero_counts: ZeroCounts = "separated",
) -> RoundEpsilon:
    """Return ε̂ of a round at the best of all scores as thresholds: Section 3.4 and Appendix C.1.

    1 − α is the confidence of the limits, two-sided for both rates. ``zero_counts`` is the rule for a term that
    divides by zero, as there is no error of its kind. With ``infinite`` it is infinite, as the formula is printed;
    almost any scores then reach infinity at some threshold. With ``separated`` it does not count unless there is no
    error of either kind, as Appendix C.5 describes it. ``capped`` is the same with the largest finite value in place of
    infinity. Of thresholds with the same ε̂ the result has the one with the fewest errors.
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


def by_zero_counts(observed: ArrayLike, unobserved: ArrayLike, alpha: float = 0.05) -> ZeroCountsRecord:
    """Return ε̂ of a round by both rules that count errors, at δ = 1/n for n scores, as Section 3.4 has it."""
    delta = 1.0 / (np.size(observed) + np.size(unobserved))
    return ZeroCountsRecord(round_epsilon(observed, unobserved, delta, alpha=alpha))


def _formula(false_positive: ArrayLike, false_negative: ArrayLike, delta: float, zero: float) -> Array:
    """Largest defined term of the formula, with ``zero`` for what is divided by zero; −∞ if none is defined."""
    rates = np.stack(np.broadcast_arrays(false_positive, false_negative)).astype(np.float64)
    rest = 1.0 - delta - rates
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(rates[::-1] == 0.0, zero, np.log(rest / rates[::-1]))
    return np.asarray(np.where(rest > 0.0, terms, -math.inf).max(axis=0))


def rounds_served(audited: Sequence[int], rounds: int) -> list[int]:
    """Return how many rounds each audit stands for: its own and those until the next; the first also those before it.

    Audited rounds rise and count from 1. Maddock et al. (arXiv 2210.02912), Algorithm 2, audits every s rounds from
    round s on and leaves the s − 1 rounds before without an estimate.
    """
    starts = [1, *audited[1:], rounds + 1]
    if not audited or sorted(set(audited)) != list(audited) or not 1 <= audited[0] <= audited[-1] <= rounds:
        raise ValueError(f"audited rounds must rise, from 1 to {rounds}")
    return [after - before for before, after in pairwise(starts)]


def training_epsilon(epsilons: Sequence[float], rounds: Sequence[int], sampling: float, deltas: Deltas) -> float:
    """Return CANIFE's ε̂ of a training from the ε̂ of its audits and the rounds that each serves (``rounds_served``)."""
    noise = [noise_of_round(epsilon, deltas.conversion) for epsilon in epsilons]
    return composed_epsilon(noise, rounds, sampling, deltas.composition)
