"""CANIFE's measures by a second road from the same scores: plain counting, a search on dp-accounting, integration."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

from canaryproof.verify.canife.attack import Mechanism, Response, attack, coins
from canaryproof.verify.canife.measure import (
    OPACUS_ORDERS,
    Deltas,
    RoundEpsilon,
    noise_of_round,
    round_epsilon,
    rounds_served,
    training_epsilon,
)
from canaryproof.verify.results import Check, Context, Outcome, Subject, Verdict

Array = NDArray[np.float64]

_TOLERANCE = 1e-6
_TRIALS, _DELTA = 100, 1e-5
# An epoch of MNIST at batch 128, audited every 100 rounds.
_ROUNDS, _EVERY, _SAMPLING = 469, 100, 128 / 60_000


def measures(context: Context) -> Outcome:
    """Compare ε̂ of rounds with its limits, their noise, and ε̂ of trainings with a second road."""
    rng = np.random.default_rng(context.key("canife/measures"))
    audited = range(_EVERY, _ROUNDS + 1, _EVERY)
    deltas = Deltas.as_printed(_TRIALS, _DELTA)
    worst = dict.fromkeys(("ε̂ of a round", "its limits", "σ̂ of a round", "ε̂ of a training"), 0.0)
    runs = context.pick(5, 40)
    for sigma in np.geomspace(0.3, 1.5, runs):
        response = Response(rng.normal(scale=0.01, size=(1, 500)), np.ones((1, 1)))
        scores = [
            attack(response, coins(_TRIALS, 1, rng), Mechanism(64, float(sigma)), rng).of() for _ in range(len(audited))
        ]
        found = [round_epsilon(*pair, deltas.scores, zero_counts="capped") for pair in scores]
        for one, pair in zip(found, scores, strict=True):
            _note(worst, "ε̂ of a round", one.epsilon, _by_counting(*pair, deltas.scores))
            for end, expected in zip((one.lower, one.upper), _limits(one, deltas.scores), strict=True):
                _note(worst, "its limits", end, expected)
            _note(worst, "σ̂ of a round", noise_of_round(one.epsilon, _DELTA), _by_search(one.epsilon))
        epsilons = [one.epsilon for one in found]
        total = training_epsilon(epsilons, rounds_served(audited, _ROUNDS), _SAMPLING, deltas)
        _note(worst, "ε̂ of a training", total, _by_rounds(audited, [_by_search(value) for value in epsilons]))
    listed = ", ".join(f"{name} {value:.1g}" for name, value in worst.items())
    finding = f"largest relative errors in {runs} trainings of {len(audited)} audits: {listed}"
    verdict = Verdict.CONFIRMED if max(worst.values()) <= _TOLERANCE else Verdict.REFUTED
    return Outcome(verdict, finding, {"runs": runs, "errors": worst})


def _note(worst: dict[str, float], name: str, found: float, expected: float) -> None:
    error = 0.0 if found == expected else abs(found - expected) / max(abs(expected), 1e-3)
    # What is no number, such as ∞ − ∞, is as wrong as can be.
    worst[name] = max(worst[name], error if math.isfinite(error) else math.inf)


def _by_counting(observed: Array, unobserved: Array, delta: float) -> float:
    """ε̂ at the best threshold, each counted by itself, in whole numbers; the largest finite one without an error."""
    best = -math.inf
    for threshold in [*observed, *unobserved]:
        false = Fraction(int(sum(score >= threshold for score in unobserved)), len(unobserved))
        missed = Fraction(int(sum(score < threshold for score in observed)), len(observed))
        if false == missed == 0:
            return math.log((1.0 - delta) * max(len(observed), len(unobserved)))
        terms = [(1 - Fraction(delta) - one, other) for one, other in ((false, missed), (missed, false))]
        best = max([best, *(math.log(rest / other) for rest, other in terms if rest > 0 and other > 0)])
    return best


def _limits(one: RoundEpsilon, delta: float) -> tuple[float, float]:
    """Limits of ε̂ by scipy's intervals of both rates."""
    rates = [
        stats.binomtest(wrong, size).proportion_ci(0.95, "exact")
        for wrong, size in ((one.false_alarms, one.null_count), (one.missed, one.count))
    ]
    ends = []
    for end in ("high", "low"):
        false, missed = (float(getattr(rate, end)) for rate in rates)
        terms = [
            math.inf if other == 0.0 else math.log(rest / other)
            for rest, other in ((1.0 - delta - false, missed), (1.0 - delta - missed, false))
            if rest > 0.0
        ]
        ends.append(max(terms, default=-math.inf))
    return ends[0], ends[1]


def _by_search(epsilon: float) -> float:
    """σ̂ of a round by a search on dp-accounting with Opacus's orders."""
    from dp_accounting import GaussianDpEvent, rdp

    def excess(log_sigma: float) -> float:
        accountant = rdp.RdpAccountant(OPACUS_ORDERS)
        accountant.compose(GaussianDpEvent(math.exp(log_sigma)))
        return float(accountant.get_epsilon(_DELTA)) - epsilon

    return math.exp(optimize.brentq(excess, -4.0, 4.0, xtol=1e-12))


def _by_rounds(audited: Sequence[int], sigmas: Sequence[float]) -> float:
    """ε̂ of a training, round by round, each with the noise of the last audit before it or else of the first."""
    counts = dict.fromkeys(range(len(sigmas)), 0)
    for number in range(1, _ROUNDS + 1):
        counts[max((i for i, place in enumerate(audited) if place <= number), default=0)] += 1
    best = math.inf
    for order in OPACUS_ORDERS:
        # ε at an order is convex in it, or nearly: beyond the least value there is no need to integrate.
        divergence = sum(counts[i] * _log_moment(order, sigma) for i, sigma in enumerate(sigmas)) / (order - 1.0)
        value = divergence + math.log1p(-1.0 / order) - math.log(_DELTA * order) / (order - 1.0)
        if value > best + 1.0:
            break
        best = min(best, value)
    return best


def _log_moment(order: float, sigma: float) -> float:
    """Return log E(1 − q + q·e^((2x − 1)/(2σ²)))^α over N(0, σ²): Mironov et al. (arXiv 1908.10530), Section 3.1."""

    def log_value(x: float | Array) -> Array:
        ratio = np.logaddexp(np.log1p(-_SAMPLING), np.log(_SAMPLING) + (2.0 * x - 1.0) / (2.0 * sigma**2))
        return np.asarray(order * ratio - 0.5 * (x / sigma) ** 2)

    low, high = -12.0 * sigma, order + 12.0 * sigma
    grid = np.linspace(low, high, 2001)
    peaks = log_value(grid)
    top, place = float(peaks.max()), float(grid[peaks.argmax()])
    total = integrate.quad(
        lambda x: math.exp(float(log_value(x)) - top),
        low,
        high,
        epsabs=0.0,
        epsrel=1e-10,
        limit=500,
        points=[0.0, place],
    )[0]
    return top + math.log(total / (sigma * math.sqrt(2.0 * math.pi)))


CHECKS = (
    Check(
        "canife.measures",
        Subject.IMPLEMENTATION,
        "verify.canife.measure",
        "ε̂ of a round with its limits, σ̂ and ε̂ of a training agree with a second road from the same scores to 1e-6",
        measures,
    ),
)
