"""Suite ``canife``: CANIFE's studies at small size, our promises on its measures, and CANIFE beside random canaries.

Checks train and design with JAX: what loads it is imported when one runs, as a ledger is listed without it. The
statements on the paper's own data sets are in ``verify.claims.canife_experiments``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import integrate, optimize, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.arrays import Array
from canaryproof.verify.accounting import analytical
from canaryproof.verify.accounting.sampled_gaussian import OPACUS_ORDERS, composed_epsilon, noise_of_round, rdp
from canaryproof.verify.canife.attack import Response, TrialRound, attack, coins, score_law
from canaryproof.verify.canife.measure import Deltas, RoundEpsilon, round_epsilon, rounds_served, training_epsilon
from canaryproof.verify.check.documents import REVIEWS
from canaryproof.verify.check.levels import LEVEL, POWER
from canaryproof.verify.check.p_values import above, below, mean_limits
from canaryproof.verify.check.power import visible_factor, visible_shift
from canaryproof.verify.check.results import Check, Context, Design, Outcome, Subject, Verdict
from canaryproof.verify.check.verdicts import from_p_values
from canaryproof.verify.claims.review import TO_ZYJW
from canaryproof.verify.claims.transcripts import Canife
from canaryproof.verify.comparison.canife_methods import TrainingFacts, composed, largest_round
from canaryproof.verify.suites import canife_ablations
from canaryproof.verify.suites.canife_ratios import (
    FACTOR,
    FALLS,
    RISES,
    UNMOVED,
    Ratio,
    capped_ratio,
    mean_sd,
    ratio,
)

if TYPE_CHECKING:
    from canaryproof.verify.suites.canife_trainings import Numbers


# CANIFE's canaries in themselves: what the number of scores caps, and how near to orthogonal they are to clients.


# Training images of MNIST and of Fashion-MNIST.
_EXAMPLES = 60_000
# Of the gap, what the cap makes; and the most that cohorts may make of the deviation of scores.
_SHARE, _LITTLE = 0.95, 1.05


@cache
def share_of_cap(context: Context) -> Outcome:
    """Judge how much of CANIFE's gap its cap makes where its canaries are perfect, at several numbers of scores."""
    from canaryproof.verify.comparison.canife import PRINTED

    rounds = -(-_EXAMPLES // PRINTED.batch)
    audited = tuple(range(PRINTED.every, rounds + 1, PRINTED.every))
    sigma, delta = PRINTED.noise_multiplier, PRINTED.delta
    # No part of CANIFE's composition depends on the last two.
    plan = TrainingFacts(audited, rounds, PRINTED.batch / _EXAMPLES, sigma, delta, dim=1, canaries=1)
    limit = composed_epsilon([sigma], [rounds], plan.sampling, delta)
    repetitions = context.pick(24, 200)

    def training(trials: int, rng: np.random.Generator) -> float:
        half, found = trials // 2, []
        for _ in audited:
            observed, unobserved = 1.0 + sigma * rng.standard_normal(half), sigma * rng.standard_normal(trials - half)
            found.append(round_epsilon(observed, unobserved, 1.0 / trials, zero_counts="capped").epsilon)
        return composed(tuple(found), plan, delta)

    rows: list[dict[str, Any]] = []
    for trials in PRINTED.trials:
        rng = np.random.default_rng(context.key(f"canife-comparison/cap/{trials}"))
        cap = composed((largest_round(trials),) * len(audited), plan, delta)
        values = np.array([training(trials, rng) for _ in range(repetitions)])
        # Equal numbers differ by rounding at most.
        limits = mean_limits(np.minimum(values / cap, 1.0), 0.5 * LEVEL / len(PRINTED.trials))
        mean = float(values.mean())
        share, *between = ((limit - cap) / (limit - value) for value in (mean, *(cap * end for end in limits)))
        rows.append({"trials": trials, "cap": cap, "mean": mean, "share": share, "limits": between})
    least = min(row["limits"][0] for row in rows)
    verdict = _verdict(least > _SHARE, min(row["limits"][1] for row in rows) < _SHARE)
    text = "; ".join(
        f"{row['trials']:,} scores: {row['mean']:.4g} (cap {row['cap']:.4g}), {row['share']:.3%}" for row in rows
    )
    closed = (rows[-1]["mean"] - rows[0]["mean"]) / (limit - rows[0]["mean"])
    finding = (
        f"ε̂ is {limit:.4g} with unlimited scores. The cap's share of the gap: {text}; at least {least:.2%}. "
        f"{rows[-1]['trials']:,} scores close {closed:.1%} of it"
    )
    design = Design(
        f"at some number of scores, less than {_SHARE:.0%} of the mean gap is the cap's",
        LEVEL,
        "every audit's ε̂ is its cap",
        1.0,
        repetitions,
    )
    return Outcome(verdict, finding, {"unlimited": limit, "rows": rows}, design)


def cause(context: Context) -> Outcome:
    """Judge whether CANIFE's gap comes from canaries that are orthogonal to a small auxiliary set only."""
    found = share_of_cap(context)
    least = min(row["limits"][0] for row in found.evidence["rows"])
    decided = found.verdict is Verdict.CONFIRMED
    finding = (
        f"for {1.0 - least:.2%} of the gap at most: perfect canaries leave the rest, which the cap makes; "
        f"{found.finding}"
    )
    finding = f"only {finding}" if decided else f"{finding}; more scores an audit would decide"
    return replace(found, verdict=Verdict.QUALIFIED if decided else Verdict.INCONCLUSIVE, finding=finding)


def orthogonality(context: Context) -> Outcome:
    """Judge whose canaries are nearer to orthogonal to the updates of the training's clients."""
    from canaryproof.verify.suites import canife_trainings as canife_scenarios

    runs = context.pick(24, 60)
    numbers, _ = canife_scenarios.pairs(context, "poisson", runs)
    random = canife_scenarios.dimension() ** -0.5
    crafted = np.sqrt((numbers.cosines**2).mean(axis=1))
    found = ratio(np.full(runs, random), crafted)
    verdict = _verdict(found.high < 1.0, found.low > 1.0)
    finding = (
        f"root mean square of the cosine with a client's update: {np.exp(np.log(crafted).mean()):.4g} of crafted "
        f"canaries, {random:.4g} = 1/√d of random ones, a factor of {found.value:.3g}, within [{found.low:.3g}, "
        f"{found.high:.3g}]"
    )
    design = Design(
        "crafted and random canaries have the same root mean square",
        LEVEL,
        f"its logarithm differs by {visible_factor(runs, POWER):.2g} deviations of a training's",
        POWER,
        runs,
    )
    return Outcome(verdict, finding, {"runs": runs, "crafted": crafted.tolist(), "random": random}, design)


def disturbance(context: Context) -> Outcome:
    """Judge that what a cohort's updates add to the deviation of CANIFE's scores is little beside the noise."""
    from canaryproof.verify.suites import canife_trainings as canife_scenarios

    runs = context.pick(24, 60)
    numbers, _ = canife_scenarios.pairs(context, "poisson", runs)
    deviations = numbers.deviations.mean(axis=1)
    found = ratio(np.ones(runs), deviations)
    verdict = _verdict(found.high < _LITTLE, found.low > _LITTLE)
    finding = (
        f"deviation of scores over cohorts and noise, in that of the noise: {found.value:.4f}, within "
        f"[{found.low:.4f}, {found.high:.4f}]"
    )
    design = Design(
        f"the deviation is {_LITTLE:g} or more of the noise's",
        LEVEL,
        f"it is the noise's, and a training's deviates by {math.log(_LITTLE) / visible_factor(runs, POWER):.2g} in "
        "logarithm",
        POWER,
        runs,
    )
    return Outcome(verdict, finding, {"runs": runs, "deviations": deviations.tolist()}, design)


def _verdict(holds: bool, fails: bool) -> Verdict:
    return Verdict.CONFIRMED if holds else Verdict.REFUTED if fails else Verdict.INCONCLUSIVE


# CANIFE beside random canaries in the same trainings: who notices a broken assumption.
#
# A method notices a fault if its number rises by more than a quarter over that of trainings with the same seeds and
# without the fault; it is blind to it if the number rises or falls by less. In between nothing is claimed. Statements
# of ours were written after pilots with other seeds: pairs of fault and method that these left open, or showed with
# too little power to be seen with any seed, have none, and stand in the evidence.


# Of the methods, the one whose numbers have a limit that they hardly leave.
_CAPPED = "canife"

# What each fault does, and who could see it at all.
_PRINCIPLES = {
    "shuffled": "A round's scores do not depend on how its cohort was drawn",
    "reused": "Each delta has its noise, but the difference of two has none",
    "halved": "A random canary's cosine has 1/√2 of the noise",
    "unclipped": "Canaries are clipped whatever happens to other clients",
}


def _ratios(without: "Numbers", with_fault: "Numbers") -> dict[str, Ratio]:
    found = {name: ratio(values, with_fault.values[name]) for name, values in without.values.items()}
    return {**found, _CAPPED: capped_ratio(without.rounds.ravel(), with_fault.rounds.ravel())}


def _design(method: str, expected: str, runs: int, audits: int) -> Design:
    if method == _CAPPED:
        # Limits of a mean that is the cap itself, on both sides.
        least = (0.25 * LEVEL) ** (1.0 / audits)
        assert least > 1.0 / FACTOR
        null = f"ε̂ of a round is on average below {1.0 / FACTOR:.0%} of its cap, with the fault or without"
        return Design(null, LEVEL, "every audit's ε̂ is its cap", 1.0, audits)
    # Of an unmoved number two limits must be right of it and left of it.
    power = 1.0 - 0.5 * (1.0 - POWER) if expected == UNMOVED else POWER
    effect = visible_factor(runs, power)
    if expected == UNMOVED:
        null = f"its geometric mean changes by a factor of {FACTOR:g} or more"
        alternative = f"it does not change, and a pair's ratio deviates by {math.log(FACTOR) / effect:.2g} in logarithm"
        return Design(null, LEVEL, alternative, POWER, runs)
    null = f"its geometric mean {'rises' if expected == RISES else 'falls'} by a factor of less than {FACTOR:g}"
    return Design(null, LEVEL, f"the factor's logarithm is {effect:.2g} deviations of a pair's beyond", POWER, runs)


def _judge(fault: str, method: str, expected: str, verdicts: Mapping[str, Verdict], context: Context) -> Outcome:
    """Judge what a fault does to a method's number."""
    from canaryproof.verify.suites import canife_trainings as canife_scenarios

    runs = context.pick(24, 60)
    without, with_fault = canife_scenarios.pairs(context, fault, runs)
    ratios = _ratios(without, with_fault)
    found = ratios[method]
    verdict = verdicts.get(found.moves, Verdict.INCONCLUSIVE)
    means = {name: (_mean(without, name), _mean(with_fault, name)) for name in ratios}
    before, after = means[method]
    share = " as a share of its cap" if method == _CAPPED else ""
    finding = (
        f"ε̂{share} is {before:.4g} without the fault and {after:.4g} with it, by a factor of {found.value:.3g} "
        f"(limits {found.low:.3g} to {found.high:.3g}). {_PRINCIPLES[fault]}"
    )
    evidence = {
        "runs": runs,
        "moves": found.moves,
        "methods": {
            name: {"means": list(means[name]), "factor": one.value, "limits": [one.low, one.high]}
            for name, one in ratios.items()
        },
    }
    return Outcome(verdict, finding, evidence, _design(method, expected, runs, without.rounds.size))


def _not_followed(fault: str, context: Context) -> Outcome:
    """Judge that CANIFE's number stays where it was though the ε that it estimates does not."""
    from canaryproof.verify.suites.canife_trainings import SETTING, rounds

    sigma, delta, cap = SETTING.noise_multiplier, SETTING.delta, largest_round(SETTING.trials[0])
    before = analytical.pld(sigma, delta, rounds(), 1.0 / rounds())
    # Of one round that is known to the attacker; the other faults leave something without noise.
    after = float(gaussian_mechanism.epsilon(delta, sigma)) if fault == "shuffled" else math.inf
    found = _judge(fault, _CAPPED, UNMOVED, _decided(UNMOVED), context)
    moves = max(before / after, after / before) > FACTOR
    verdict = found.verdict if moves else Verdict.REFUTED
    deltas = Deltas.as_printed(SETTING.trials[0], delta)
    # Of a round's mean ε̂ in all rounds.
    composed = [
        training_epsilon([share * cap], [rounds()], 1.0 / rounds(), deltas)
        for share in found.evidence["methods"][_CAPPED]["means"]
    ]
    said = (
        f"Composed, ε̂ is {composed[0]:.4g} and {composed[1]:.4g}, where the analytical ε is "
        f"{before:.4g} and {after:.4g}. Of a round, "
    )
    return replace(found, verdict=verdict, finding=said + found.finding)


def _mean(numbers: "Numbers", method: str) -> float:
    return float((numbers.rounds if method == _CAPPED else numbers.values[method]).mean())


def _decided(expected: str) -> dict[str, Verdict]:
    """Verdicts by what is certain of a number; where nothing is, there is none."""
    return {moves: Verdict.CONFIRMED if moves == expected else Verdict.REFUTED for moves in (RISES, FALLS, UNMOVED)}


_FINAL, _ANSWERS = "final version (arXiv 2302.03098)", "reviews, answers of the authors"
_NAMES = {
    "canife": "CANIFE as printed, with 100 scores a round",
    "canife-law": "CANIFE with unlimited scores",
    "algorithm-3": "Algorithm 3 (`fitted`, all rounds)",
    "algorithm-3-pinned": "Algorithm 3 (`pinned`, all rounds)",
    "final": "Algorithm 2 (`pinned`, final model)",
    "change": "Algorithm 2 (`pinned`, the model's change)",
    "change-fitted": "Algorithm 2 (`fitted`, the model's change)",
    "bound": "the lower bound `fixed-threshold` from all rounds",
}
_FAULTS = {
    "shuffled": "cohorts are a shuffled epoch instead of Poisson samples",
    "reused": "all rounds have the noise of the first",
    "halved": "every second coordinate has no noise",
    "unclipped": "one client in a hundred is not clipped",
}
_SAYS = {
    RISES: "rises by more than a quarter where {}",
    FALLS: "falls by more than a fifth where {}",
    UNMOVED: "rises by less than a quarter and falls by less than a fifth where {}",
}
_OURS = (
    ("shuffled", "algorithm-3-pinned", RISES),
    ("shuffled", "change", UNMOVED),
    ("shuffled", "canife-law", UNMOVED),
    ("reused", "algorithm-3", FALLS),
    ("reused", "bound", UNMOVED),
    ("reused", "canife-law", RISES),
    ("halved", "algorithm-3", RISES),
    ("halved", "bound", UNMOVED),
    ("halved", "canife-law", RISES),
    # Section 5.4 promises a higher ε̂ of faults that bring the final model nearer to canaries; these do not. Where
    # canaries leave hardly a trace, `pinned` is 0 now and then and has no logarithm.
    ("shuffled", "final", UNMOVED),
    ("reused", "change-fitted", FALLS),
    ("halved", "final", UNMOVED),
    *(("unclipped", method, UNMOVED) for method in _NAMES),
)


# CANIFE's measures by a second road from the same scores: plain counting, a search on dp-accounting, integration.


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
        _note(worst, "score", float(scores.values[i, j]), math.fsum(float(canaries[j] @ one) for one in taking_part))
    finding = f"{clients} sizes of cohort; largest relative error {max(worst.values()):.1g}"
    return Outcome(
        Verdict.CONFIRMED if max(worst.values()) <= _TOLERANCE else Verdict.REFUTED, finding, {"errors": worst}
    )


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


# CANIFE along trainings (Sections 1, 3.4 and 4.2), and what reviewers of the one-shot paper asked for.


# Analytical ε of the trainings of Figure 1; Figure 4 and the health are of the last.
_EPSILONS = (10.0, 30.0, 50.0)
_EQUAL = math.log(1.25)
# Below this a theoretical ε is not far above.
_GAP = 1.5
# The share of the initial loss that designs take away after two epochs.
_HEALTH = 0.99


def _monitored(context: Context, *epsilons: float) -> tuple[dict[float, Any], int]:
    from canaryproof.verify.suites import canife_trainings as trainings

    runs = context.pick(10, 30)
    return {
        epsilon: trainings.monitored(context, f"canife/monitored/{epsilon:g}", epsilon, runs) for epsilon in epsilons
    }, runs


def level(context: Context) -> Outcome:
    """Judge that ε̂ of rounds keeps to a level after the first epoch, by the last and the first audits after it."""
    found, _ = _monitored(context, _EPSILONS[-1])
    values = np.concatenate(
        [np.log(_audits_mean(one.rounds, -2, None) / _audits_mean(one.rounds, 2, 4)) for one in found.values()]
    )
    for_it = [below(values, _EQUAL), above(values, -_EQUAL)]
    against_it = [above(values, _EQUAL), below(values, -_EQUAL)]
    finding = (
        f"ε̂ of the last two audits is {math.exp(values.mean()):.3f} times that of the first two after the first epoch, "
        f"in {len(values)} trainings; mean ε̂ by audit {_by_audit(found)}"
    )
    design = Design(
        "the level rises or falls by a quarter or more from the second epoch to the third",
        LEVEL,
        f"it does not, and the margin is {visible_shift(len(values), 2):.2g} standard deviations of a "
        "training's logarithm",
        POWER,
        len(values),
    )
    return Outcome(from_p_values(for_it, against_it), finding, _evidence(found, [*for_it, *against_it]), design)


def rise(context: Context) -> Outcome:
    """Judge that ε̂ of the first round is not much lower than that of rounds after the first epoch."""
    found, _ = _monitored(context, _EPSILONS[-1])
    values = np.concatenate([np.log(_audits_mean(one.rounds, 2, None) / one.rounds[:, 0]) for one in found.values()])
    for_it, against_it = [below(values, _EQUAL)], [above(values, _EQUAL)]
    finding = (
        f"after the first epoch ε̂ is {math.exp(values.mean()):.3f} times that of the first round, where the canary "
        f"attacks a random network (p = {for_it[0]:.1g} for a rise of a quarter or more)"
    )
    design = Design(
        "ε̂ after the first epoch is a quarter or more above the first round's",
        LEVEL,
        f"the mean logarithm is {visible_shift(len(values), 1):.2g} standard deviations below that",
        POWER,
        len(values),
    )
    return Outcome(from_p_values(for_it, against_it), finding, _evidence(found, [*for_it, *against_it]), design)


def gap(context: Context) -> Outcome:
    """Judge that the theoretical ε of a round and of a training is more than half as large again as CANIFE's."""
    from canaryproof.verify.suites import canife_trainings as trainings

    found, runs = _monitored(context, *_EPSILONS)
    for_it, against_it, parts = [], [], []
    for epsilon, one in found.items():
        theory = rdp(trainings.noise_multiplier(epsilon), trainings.DELTA)
        of_round, of_training = np.log(theory / one.rounds.mean(axis=1)), np.log(epsilon / one.training)
        for_it += [above(of_round, math.log(_GAP)), above(of_training, math.log(_GAP))]
        against_it += [below(of_round, math.log(_GAP)), below(of_training, math.log(_GAP))]
        parts.append(
            f"ε = {epsilon:g}: {one.rounds.mean():.2f} of {theory:.1f} ({one.limited.mean():.1f} with unlimited "
            f"scores), training {mean_sd(one.training)}"
        )
    design = Design(
        f"at some ε the theoretical ε of a round or of the training is at most {_GAP:g} times CANIFE's",
        LEVEL,
        f"each is larger by {visible_shift(runs, len(for_it)):.2g} standard deviations of a training's logarithm",
        POWER,
        runs,
    )
    finding = f"ε̂ of a round: {'; '.join(parts)}"
    return Outcome(from_p_values(for_it, against_it), finding, _evidence(found, [*for_it, *against_it]), design)


def health(context: Context) -> Outcome:
    """Judge that after two epochs canaries' loss is reduced by the printed share or more."""
    found, _ = _monitored(context, _EPSILONS[-1])
    first, late = (np.concatenate([part(one.health) for one in found.values()]) for part in (_first, _late))
    for_it, against_it = [above(late, _HEALTH)], [below(late, _HEALTH)]
    finding = (
        f"health {mean_sd(late)} after two epochs in {len(late)} trainings, {mean_sd(first)} before the first round"
    )
    design = Design(
        f"mean health after two epochs is at most {_HEALTH:.0%}",
        LEVEL,
        f"it is above by {visible_shift(len(late), 1):.2g} standard deviations of a training's",
        POWER,
        len(late),
    )
    return Outcome(from_p_values(for_it, against_it), finding, _evidence(found, [*for_it, *against_it]), design)


def undisturbed(context: Context) -> Outcome:
    """Judge that audits leave the training as it is, to the bit."""
    from canaryproof.verify.suites import canife_trainings as trainings

    runs = context.pick(2, 10)
    same = sum(trainings.undisturbed(root) for root in context.key("canife/undisturbed").spawn(runs))
    finding = f"{same} of {runs} trainings end with the same bits, audited or not"
    return Outcome(Verdict.CONFIRMED if same == runs else Verdict.REFUTED, finding, {"runs": runs, "same": same})


def plausible(context: Context) -> Outcome:
    """Judge that estimates lie between a lower bound from the same canaries and the analytical ε."""
    rows, runs = _beside(context)
    lower, upper = rows["bound"], rows["analytical"]
    verdicts, tests = {}, {}
    for name in ("pinned", "fitted"):
        over, under = np.log(rows[name] / lower), np.log(upper / rows[name])
        tests[name] = [above(over), above(under), below(over), below(under)]
        verdicts[name] = from_p_values(tests[name][:2], tests[name][2:], 0.5 * LEVEL)
    valid = above(np.log(upper / lower))
    finding = (
        f"95% lower bound from 100 observed and 100 unobserved random canaries {mean_sd(lower)}, analytical ε "
        f"{upper[0]:.1f} (p = {valid:.1g} that the bound is not below); estimates pinned {mean_sd(rows['pinned'])} "
        f"({verdicts['pinned']}), fitted {mean_sd(rows['fitted'])} ({verdicts['fitted']})"
    )
    design = Design(
        "an estimate is not above the bound, or not below the analytical ε",
        LEVEL,
        f"both logarithms differ by {visible_shift(runs, 2, 0.5 * LEVEL):.2g} standard deviations of a training's",
        POWER,
        runs,
    )
    # The answers do not say which estimator they mean.
    agree = set(verdicts.values())
    verdict = agree.pop() if len(agree) == 1 else Verdict.QUALIFIED if Verdict.CONFIRMED in agree else Verdict.REFUTED
    if Verdict.INCONCLUSIVE in verdicts.values():
        verdict = Verdict.INCONCLUSIVE
    return Outcome(verdict, finding, {**{k: v.tolist() for k, v in rows.items()}, "p": tests}, design)


def stronger(context: Context) -> Outcome:
    """Judge that random canaries attack better than designed ones, by valid bounds from as many scores.

    Random canaries take part in a round that the attacker does not know, and designed ones in a known one: a higher
    bound of theirs would be a stronger attack all the same, and a lower one is none that is weaker.
    """
    rows, runs = _beside(context)
    p_value = above(np.log(rows["bound"] / rows["round"]))
    finding = (
        f"95% lower bounds are {mean_sd(rows['bound'])} from 100 observed and 100 unobserved random canaries in all "
        "rounds and "
        f"{mean_sd(rows['round'])} from 100 scores of CANIFE's canary in one known round; scores of both kinds in one "
        "known round would decide"
    )
    design = Design(
        "the bound from random canaries is not above that from CANIFE's scores",
        LEVEL,
        f"the mean logarithm of their ratio is {visible_shift(runs, 1):.2g} standard deviations above 0",
        POWER,
        runs,
    )
    verdict = Verdict.CONFIRMED if p_value <= 0.5 * LEVEL else Verdict.INCONCLUSIVE
    return Outcome(verdict, finding, {**{k: v.tolist() for k, v in rows.items()}, "p": p_value}, design)


def _beside(context: Context) -> tuple[dict[str, Array], int]:
    from canaryproof.verify.suites import canife_trainings as trainings

    runs = context.pick(16, 40)
    found = trainings.side_by_side(context, "canife/side-by-side", runs)
    return {name: np.array([getattr(one, name) for one in found]) for name in trainings.Beside._fields}, runs


def _audits_mean(values: Array, first: int, end: int | None) -> Array:
    return np.asarray(values[:, first:end].mean(axis=1))


def _first(values: Array) -> Array:
    return values[:, 0]


def _late(values: Array) -> Array:
    # Audits after two epochs.
    return _audits_mean(values, -2, None)


def _by_audit(found: dict[float, Any]) -> str:
    return "; ".join(
        f"ε = {epsilon:g}: " + ", ".join(f"{value:.2f}" for value in one.rounds.mean(axis=0))
        for epsilon, one in found.items()
    )


def _evidence(found: dict[float, Any], tests: list[float]) -> dict[str, Any]:
    rows = {
        f"{epsilon:g}": {
            "rounds": one.rounds.tolist(),
            "unlimited": one.limited.tolist(),
            "health": one.health.tolist(),
            "training": one.training.tolist(),
            "accuracy": one.accuracy.tolist(),
        }
        for epsilon, one in found.items()
    }
    return {"trainings": rows, "p": tests}


CHECKS: tuple[Check, ...] = (
    *canife_ablations.CHECKS,
    canife_ablations.study(
        "level",
        "Section 4.2, Figure 4",
        "from the second epoch on ε̂ of a round keeps to an almost constant level",
        level,
    ),
    canife_ablations.study(
        "rise",
        "Section 4.2, Figure 4a",
        "ε̂ of a round does not grow by a quarter after the first epoch",
        rise,
    ),
    canife_ablations.study(
        "gap",
        "Section 4.2, Figures 1 and 4",
        "at ε = 10, 30 and 50 CANIFE's ε̂ of a round and of a training are far below the theoretical ones",
        gap,
    ),
    canife_ablations.study(
        "health",
        "Section 4.2",
        f"after two epochs designs take {_HEALTH:.0%} of the initial loss away, or more",
        health,
    ),
    Check(
        "canife.study.undisturbed",
        Subject.DOCUMENT,
        Canife.STUDIES + "Section 3.4",
        "audits in rounds with the model frozen leave the final model's accuracy as it is",
        undisturbed,
    ),
    Check(
        "comparison.plausible",
        Subject.IMPLEMENTATION,
        "verify.comparison.canife_training",
        "estimates from random canaries lie between a 95% lower bound from the same canaries and the analytical ε",
        plausible,
    ),
    Check(
        "review.canife.stronger",
        Subject.DOCUMENT,
        REVIEWS.at(TO_ZYJW + " and zCeQ"),
        "random canaries are a stronger attack than CANIFE's designed ones",
        stronger,
    ),
    Check(
        "canife.cohorts",
        Subject.IMPLEMENTATION,
        "verify.canife.attack",
        f"a score's mean and deviation are those over all cohorts of a small pool and the noise, and a score is raised "
        f"by all canaries that take part, to {_TOLERANCE:g}",
        _cohorts,
    ),
    Check(
        "canife.measures",
        Subject.IMPLEMENTATION,
        "verify.canife.measure",
        "ε̂ of a round with its limits, σ̂ and ε̂ of a training agree with a second road from the same scores to 1e-6",
        measures,
    ),
    *(
        Check(
            f"final.section5.4.canife.{fault}",
            Subject.DOCUMENT,
            f"{_FINAL}, Section 5.4",
            f"CANIFE's estimate is inaccurate where {condition}; our instance: {_FAULTS[fault]}",
            partial(_not_followed, fault),
        )
        for fault, condition in (
            ("shuffled", "clients are not sampled uniformly and independently"),
            ("reused", "noise is not independent across rounds"),
            ("halved", "noise is not isotropic Gaussian"),
        )
    ),
    Check(
        "review.canife.auxiliary",
        Subject.DOCUMENT,
        f"{_ANSWERS} to zCeQ",
        "CANIFE's estimate is lower because its canaries are nearly orthogonal to a small auxiliary set only",
        cause,
    ),
    Check(
        "comparison.orthogonal",
        Subject.IMPLEMENTATION,
        "verify.comparison.canife_training",
        "CANIFE's crafted canaries are nearer to orthogonal to the updates of clients than random ones",
        orthogonality,
    ),
    *(
        Check(
            f"comparison.{fault}.{method}",
            Subject.IMPLEMENTATION,
            "verify.comparison.canife_training",
            f"ε̂ of {_NAMES[method]} {_SAYS[expected].format(_FAULTS[fault])}",
            partial(_judge, fault, method, expected, _decided(expected)),
        )
        for fault, method, expected in _OURS
    ),
    Check(
        "comparison.cap",
        Subject.IMPLEMENTATION,
        "verify.canife.measure",
        "with perfect canaries, the cap makes over 95% of the gap between CANIFE's ε̂ and that of unlimited scores, at "
        "100, 1,000 and 10,000 scores a round",
        share_of_cap,
    ),
    Check(
        "comparison.cohorts",
        Subject.IMPLEMENTATION,
        "verify.canife.attack",
        "cohorts raise the deviation of scores of CANIFE's canaries by less than 5% of the noise's",
        disturbance,
    ),
)
