"""A limit of the noise, from canaries that took part in unequal numbers of rounds.

Somebody who knows the n rounds of a canary sees √n times as much of it as of one with a single round. So each canary is
tested against the claim at its own number of rounds: its p-value p under the exact null becomes q = 1 − f_n(p), with
the claim's trade-off function f_n. This is a p-value again, whatever data, schedule and shape of the scores are. A
claim is rejected if too many q are at most 1/2 for fair coins. Inverted over the noise multiplier, that is an order
statistic of the ratios z/√n (``proofs_check/lower_bounds.md``, section 5a).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from canaryproof.kernels.arrays import Array, Ints
from canaryproof.verify.audit.bounds.guesses import binomial_law, convolve
from canaryproof.verify.audit.levels import POWER


def least_count(total: int, level: float) -> int:
    """Return the smallest number of heads that fair coins reach with probability at most the level.

    It is above the total if there is none.
    """
    # The tail of Bin(n, 1/2) from c on is the incomplete beta function at (c, n − c + 1).
    low, high = 0, total + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if special.betainc(middle, total - middle + 1, 0.5) <= level else (middle, high)
    return high


def largest_noise(log_tails: Array, participations: Ints, level: float) -> float:
    """Return the upper limit of the noise multiplier.

    Parameters
    ----------
    log_tails
        Logarithms of the p-values of the observed scores under their exact null, shape (k,).
    participations
        Number of rounds of each canary, at least 1, shape (k,).
    level
        Probability, in (0, 1), with which the limit may lie below the noise multiplier.

    Returns
    -------
    The limit, in units of a canary's norm; infinite if no multiplier is rejected.
    """
    least = least_count(len(log_tails), level)
    if least > len(log_tails):
        return math.inf
    ratios = -special.ndtri_exp(np.minimum(log_tails, 0.0)) / np.sqrt(participations)
    # As many canaries as reject it have a ratio of at least 1 divided by the noise multiplier.
    ratio = float(np.partition(ratios, len(ratios) - least)[len(ratios) - least])
    return 1.0 / ratio if ratio > 0.0 else math.inf


@dataclass(frozen=True)
class Crowd:
    """Canaries of a training, by the number of their rounds.

    Attributes
    ----------
    groups
        Numbers of rounds, at least 1, each with the number of canaries that took part so often.
    shared
        Mean number of canaries in a round.
    """

    groups: tuple[tuple[int, int], ...]
    shared: float

    @classmethod
    def of(cls, participations: Ints, rounds: int) -> "Crowd":
        """Return the participations of canaries with these numbers of rounds, in a training of a given length."""
        groups = zip(*np.unique(participations, return_counts=True), strict=True)
        return cls(tuple((int(n), int(count)) for n, count in groups), float(participations.sum()) / rounds)

    def power(self, trace: float, claimed: float, level: float) -> float:
        """Return the probability that the upper limit on the noise multiplier is below the claimed one.

        ``trace`` is the mean of √d times the cosine of a canary with the release of one of its rounds.
        """
        total, law = 0, (0, np.ones(1))
        for number, count in self.groups:
            rate = float(special.ndtr(math.sqrt(number) * (trace - 1.0 / claimed)))
            total, law = total + count, convolve(law, binomial_law(count, rate))
        first, probabilities = law
        return float(probabilities[max(least_count(total, level) - first, 0) :].sum())

    def noticed_share(self, claimed: float, dim: int, level: float) -> float:
        """Return the largest share of the claimed noise that is noticed with probability 90%; 0 if none is."""

        def excess(share: float) -> float:
            # Canaries that share a round lengthen its release.
            return self.power(1.0 / math.hypot(share * claimed, math.sqrt(self.shared / dim)), claimed, level) - POWER

        return float(optimize.brentq(excess, 1e-6, 1.0, xtol=1e-6)) if excess(1e-6) > 0.0 else 0.0
