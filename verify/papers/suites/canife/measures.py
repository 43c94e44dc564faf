"""CANIFE's measures computed again from the same scores: by plain counting, a search on dp-accounting, integration."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np
from scipy import integrate, optimize, stats

from canaryproof.kernels.arrays import Array
from canaryproof.verify.papers.accounting.sampled_gaussian import OPACUS_ORDERS, noise_of_round
from canaryproof.verify.papers.canife.attack import Response, TrialRound, attack, coins, score_law
from canaryproof.verify.papers.canife.measure import Deltas, round_epsilon, rounds_served, training_epsilon
from canaryproof.verify.papers.check.results import Check, Context, Outcome, Subject, Verdict
from canaryproof.verify.papers.records.training_record import RoundEpsilon

_TOLERANCE = 1e-6
_TRIALS, _DELTA = 100, 1e-5
# An epoch of MNIST at batch 128, audited every 100 rounds.
_ROUNDS, _EVERY, _SAMPLING = 469, 100, 128 / 60_000


def measures(context: Context) -> Outcome:
    """Compare ε̂ of rounds with its limits, their noise, and ε̂ of trainings with a second computation."""
    rng = np.random.default_rng(context.key("canife/measures"))
    audited = range(_EVERY, _ROUNDS + 1, _EVERY)
    deltas = Deltas.as_printed(_TRIALS, _DELTA)
    worst = dict.fromkeys(("ε̂ of a round", "its limits", "σ̂ of a round", "ε̂ of a training"), 0.0)
    runs = context.pick(5, 40)
    # Scores without an error, of either kind the more; they are tied, so that no threshold has a single one.
    for pair in (np.ones(3), np.zeros(7)), (np.ones(7), np.zeros(3)):
        capped = round_epsilon(*pair, deltas.scores, zero_counts="capped")
        _note(worst, "ε̂ of a round", capped.epsilon, _by_counting(*pair, deltas.scores))
    for sigma in np.geomspace(0.3, 1.5, runs):
        response = Response(rng.normal(scale=0.01, size=(1, 500)), np.ones((1, 1)))
        scores = [
            attack(response, coins(_TRIALS, 1, rng), TrialRound(64, float(sigma)), rng).of()
            for _ in range(len(audited))
        ]
        audits = [round_epsilon(*pair, deltas.scores, zero_counts="capped") for pair in scores]
        for audit, pair in zip(audits, scores, strict=True):
            _note(worst, "ε̂ of a round", audit.epsilon, _by_counting(*pair, deltas.scores))
            for end, expected in zip((audit.lower, audit.upper), _limits(audit, deltas.scores), strict=True):
                _note(worst, "its limits", end, expected)
            _note(worst, "σ̂ of a round", noise_of_round(audit.epsilon, _DELTA), _by_search(audit.epsilon))
        epsilons = [audit.epsilon for audit in audits]
        total = training_epsilon(epsilons, rounds_served(audited, _ROUNDS), _SAMPLING, deltas)
        _note(worst, "ε̂ of a training", total, _by_rounds(audited, [_by_search(value) for value in epsilons]))
    listed = ", ".join(f"{name} {value:.1g}" for name, value in worst.items())
    finding = f"largest relative errors in {runs} trainings of {len(audited)} audits: {listed}"
    verdict = Verdict.CONFIRMED if max(worst.values()) <= _TOLERANCE else Verdict.REFUTED
    return Outcome(verdict, finding, {"runs": runs, "errors": worst})


def _cohorts(context: Context) -> Outcome:
    """Judge the law of a canary's scores by all cohorts of a small pool of clients."""
    rng = np.random.default_rng(context.key("cohorts"))
    clients, worst = 7, {"mean": 0.0, "deviation": 0.0, "score": 0.0}
    for cohort in range(1, clients + 1):
        products = rng.normal(size=(1, clients))
        law = score_law(Response(products, np.array([[0.8]])), TrialRound(cohort, 0.5, 1.5))
        sums = [math.fsum(some) for some in combinations(products[0].tolist(), cohort)]
        # The noise has deviation σC‖u_c‖, and is drawn apart.
        expected = math.hypot(float(np.std(sums)), 0.5 * 1.5 * math.sqrt(0.8))
        _note(worst, "mean", law.mean, float(np.mean(sums)))
        _note(worst, "deviation", law.deviation, expected)
    # Two canaries in trials of all clients without noise, whose scores leave nothing to chance.
    updates, canaries = rng.normal(size=(clients, 3)), rng.normal(size=(2, 3))
    inserted = np.array(list(product((False, True), repeat=2)))
    scores = attack(Response(canaries @ updates.T, canaries @ canaries.T), inserted, TrialRound(clients, 0.0), rng)
    for i, j in np.ndindex(inserted.shape):
        taking_part = [*updates, *canaries[inserted[i]]]
        _note(
            worst, "score", float(scores.values[i, j]), math.fsum(float(canaries[j] @ update) for update in taking_part)
        )
    finding = f"{clients} sizes of cohort; largest relative error {max(worst.values()):.1g}"
    return Outcome(
        Verdict.CONFIRMED if max(worst.values()) <= _TOLERANCE else Verdict.REFUTED, finding, {"errors": worst}
    )


def _note(worst: dict[str, float], name: str, value: float, expected: float) -> None:
    error = 0.0 if value == expected else abs(value - expected) / max(abs(expected), 1e-3)
    # A NaN, such as ∞ − ∞, is as wrong as can be.
    worst[name] = max(worst[name], error if math.isfinite(error) else math.inf)


def _by_counting(observed: Array, unobserved: Array, delta: float) -> float:
    """ε̂ at the best threshold, each counted by itself, in whole numbers; the largest finite one without an error."""
    best = -math.inf
    for threshold in [*observed, *unobserved]:
        false = Fraction(int(sum(score >= threshold for score in unobserved)), len(unobserved))
        missed = Fraction(int(sum(score < threshold for score in observed)), len(observed))
        if false == missed == 0:
            return math.log((1.0 - delta) * max(len(observed), len(unobserved)))
        terms = [(1 - Fraction(delta) - error, opposite) for error, opposite in ((false, missed), (missed, false))]
        best = max([best, *(math.log(rest / opposite) for rest, opposite in terms if rest > 0 and opposite > 0)])
    return best


def _limits(audit: RoundEpsilon, delta: float) -> tuple[float, float]:
    """Limits of ε̂ by scipy's intervals of both rates."""
    rates = [
        stats.binomtest(wrong, size).proportion_ci(0.95, "exact")
        for wrong, size in ((audit.false_alarms, audit.null_count), (audit.missed, audit.count))
    ]
    ends = []
    for end in ("high", "low"):
        false, missed = (float(getattr(rate, end)) for rate in rates)
        terms = [
            math.inf if opposite == 0.0 else math.log(rest / opposite)
            for rest, opposite in ((1.0 - delta - false, missed), (1.0 - delta - missed, false))
            if rest > 0.0
        ]
        ends.append(max(terms, default=-math.inf))
    return ends[0], ends[1]


def _by_search(epsilon: float) -> float:
    """σ̂ of a round by a search on dp-accounting with Opacus's orders."""
    # dp-accounting takes a second to import.
    from dp_accounting import GaussianDpEvent
    from dp_accounting.rdp import RdpAccountant

    def excess(log_sigma: float) -> float:
        accountant = RdpAccountant(OPACUS_ORDERS)
        accountant.compose(GaussianDpEvent(math.exp(log_sigma)))
        return float(accountant.get_epsilon(_DELTA)) - epsilon

    return math.exp(optimize.brentq(excess, -4.0, 4.0, xtol=1e-12))


def _by_rounds(audited: Sequence[int], sigmas: Sequence[float]) -> float:
    """ε̂ of a training, round by round, each with the noise of the last audit before it or else of the first."""
    counts = dict.fromkeys(range(len(sigmas)), 0)
    for number in range(1, _ROUNDS + 1):
        counts[max((i for i, audit_round in enumerate(audited) if audit_round <= number), default=0)] += 1
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
    top, peak = float(peaks.max()), float(grid[peaks.argmax()])
    total = integrate.quad(
        lambda x: math.exp(float(log_value(x)) - top),
        low,
        high,
        epsabs=0.0,
        epsrel=1e-10,
        limit=500,
        points=[0.0, peak],
    )[0]
    return top + math.log(total / (sigma * math.sqrt(2.0 * math.pi)))


CHECKS: tuple[Check, ...] = (
    Check(
        "canife.cohorts",
        Subject.IMPLEMENTATION,
        "verify.papers.canife.attack",
        f"a score's mean and deviation are those over all cohorts of a small pool and the noise, and a score is raised "
        f"by all canaries that take part, to {_TOLERANCE:g}",
        _cohorts,
    ),
    Check(
        "canife.measures",
        Subject.IMPLEMENTATION,
        "verify.papers.canife.measure",
        "ε̂ of a round with its limits, σ̂ and ε̂ of a training agree with a second road from the same scores to 1e-6",
        measures,
    ),
)
