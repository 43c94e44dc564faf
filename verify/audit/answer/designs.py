"""Who takes part where unobserved canaries are the null: a fair coin for each canary, or k in and k out.

With coins the default lower bound is proven, however the scores depend on each other, and it is no smaller. So plans
draw coins.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.bounds.catalogue import DEFAULT, DEFAULT_WITH_COINS, METHODS
from canaryproof.verify.audit.bounds.lower_bound import Inclusion, prepare
from canaryproof.verify.audit.markup.digits import number

# How it is decided which canaries take part, after their number.
COINS = ", each in by a fair coin"
# With this probability coins let at least as many canaries take part as were planned.
_ENOUGH = 0.99
# Simulated audits, at most, and observed scores in all that are enough.
_AUDITS, _SCORES = 99, 50_000
# Points of the scores' distribution function, and what they reach beyond both means.
_GRID, _REACH = 20_001, 12.0


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class DesignBounds:
    """The default lower bound of each design, in the median of audits of scores that leak as much as is claimed.

    Attributes
    ----------
    coins
        With a fair coin for each canary, that of ``one-run``.
    halves
        With as many canaries in as out, chosen in advance, that of ``fixed-sequence``: heuristic for one training.
    """

    coins: float
    halves: float

    def __str__(self) -> str:
        coins, halves = number(self.coins, 2), number(self.halves, 2)
        return f"Bound at the claimed ε: {coins} by coins, proven; k in, k out: {halves}, heuristic."


def coins_for(count: int) -> int:
    """Return the least number of fair coins that let so many canaries take part with probability 99%."""
    return bisect_left(
        range(4 * count + 20), _ENOUGH, lo=count, key=lambda total: 1.0 - float(special.bdtr(count - 1, total, 0.5))
    )


@lru_cache(maxsize=64)
def design_bounds(count: int, claim: float, delta: float, confidence: float, rounds: int = 1) -> DesignBounds:
    """Return the median bounds of simulated audits of normal scores, so many of each kind, with the claimed ε.

    With several rounds a score is the largest of so many, one of which has the trace.
    """
    trace = 1.0 / float(gaussian_mechanism.noise_multiplier(claim, delta))
    uniforms = np.random.default_rng(0).random((2, min(_AUDITS, 2 * (_SCORES // count) + 1), count))
    grid = np.linspace(-_REACH, trace + _REACH, _GRID)
    below = np.exp((rounds - 1.0) * special.log_ndtr(grid))
    observed = np.interp(uniforms[0], special.ndtr(grid - trace) * below, grid)
    unobserved = np.interp(uniforms[1], special.ndtr(grid) * below, grid)

    def median(name: str, inclusion: Inclusion) -> float:
        scores = prepare(observed, unobserved, inclusion=inclusion)
        return float(np.median(METHODS[name].values(scores, delta, 1.0 - confidence)[0]))

    return DesignBounds(median(DEFAULT_WITH_COINS, Inclusion.COIN), median(DEFAULT, Inclusion.FIXED))
