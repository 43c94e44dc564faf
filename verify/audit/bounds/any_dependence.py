"""Bounds that are proven however scores depend on each other, for an exact null and canaries that all took part.

One run's scores may depend on each other in any way, and the run may draw whatever it likes. What these bounds need is
the law of a canary's score without that canary, among all others. Independent directions have it.
"""

import math

import numpy as np
from scipy import special

from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.bounds.block_tests import NESTED, SHARP, designs, last_before
from canaryproof.verify.audit.bounds.fixed_sequence import sum_test
from canaryproof.verify.audit.bounds.lower_bound import Coverage, Method, ScoreSample
from canaryproof.verify.audit.bounds.thresholds import simultaneous


def largest_score(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return log((α/k − δ)/u), u being the null's tail at the largest score.

    By Markov, n of k scores have tails of at most u with a probability of at most k(e^ε·u + δ)/n. Where kδ is not small
    against α, n is the least with nα/k ≥ 2δ. A larger δ also has the ranks of smaller ones, so that its bound is never
    larger; nor is that of a higher confidence.
    """
    assert scores.null is not None
    each, rank = alpha / scores.count, max(math.ceil(2.0 * delta * scores.count / alpha), 1)
    if rank > scores.count:
        return np.zeros(len(scores.observed)), np.full(len(scores.observed), math.nan)
    ranks = np.arange(1, rank + 1)
    shares = np.append(0.5 * each * ranks[:-1], each * rank - delta)
    at = scores.observed[:, scores.count - ranks]
    by_rank = np.log(shares) - scores.null.log_tail(at)
    least = np.argmin(by_rank, axis=1)[:, np.newaxis]
    values = np.maximum(np.take_along_axis(by_rank, least, axis=1)[:, 0], 0.0)
    return values, np.where(values > 0.0, np.take_along_axis(at, least, axis=1)[:, 0], math.nan)


def posterior_tail(epsilon: float, log_tail: Array) -> Array:
    """Return the largest probability, given the output, of what had the tail's before, rounded up.

    The likelihoods of a canary's directions differ by a factor of e^ε at most.
    """
    with np.errstate(divide="ignore"):
        logit = log_tail - np.log(-np.expm1(log_tail))
    return np.asarray(np.minimum(special.expit(epsilon + logit) * (1.0 + 1e-14), 1.0))


def pure_dp(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return half of the ε up to which the default's tests reject that directions are so alike; 0 for δ > 0.

    If adding or removing a canary is (ε, 0)-private, replacing its direction is (2ε, 0)-private.
    """
    values = np.zeros(len(scores.observed))
    if delta == 0.0:
        nested = simultaneous(scores, 0.0, NESTED * alpha)[0]
        tests = [
            sum_test(scores, design, at, SHARP * alpha, lambda epsilon, log_tail, _: posterior_tail(epsilon, log_tail))
            for design, at in designs(scores.count, 0.0)
        ]
        values = 0.5 * last_before(tests, nested)
    return values, np.full(len(values), math.nan)


def if_exact(_: ScoreSample) -> Coverage:
    """Return the coverage of a bound that is proven for every exact null."""
    return Coverage.PROVEN


def if_conditional(scores: ScoreSample) -> Coverage:
    """Return the coverage of a bound that needs the null given all else, which independent directions have."""
    conditional = scores.null is not None and scores.null.is_conditional
    return Coverage.PROVEN if conditional or scores.independent else Coverage.ASYMPTOTIC


METHODS = (
    Method(
        "largest-score",
        "Markov's inequality at the largest score, or at a rank that δ asks for (canaryproof)",
        largest_score,
        ("the null law of a canary's score among all other canaries",),
        if_exact,
        ("6a",),
        needs="null",
    ),
    Method(
        "pure-dp",
        "the default's tests against directions' law given the output of a pure mechanism, for δ = 0 (canaryproof)",
        pure_dp,
        ("the null law of a canary's score given all else",),
        if_conditional,
        ("2", "3", "4", "6a"),
        needs="null",
    ),
)
