"""The methods that ``benchmark canife`` compares: what their numbers are, and what they take for granted."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from canaryproof.verify.audit.estimators.epsilon_estimators import pinned_epsilon
from canaryproof.verify.papers.accounting.sampled_gaussian import composed_epsilon
from canaryproof.verify.papers.canife import measure
from canaryproof.verify.papers.canife.measure import Deltas
from canaryproof.verify.papers.records.benchmark_record import (
    AuditedTraining,
    BenchmarkSizes,
    NeedsRecord,
    SpreadRecord,
)
from canaryproof.verify.papers.records.training_record import DATA_KNOWN, DATA_UNKNOWN, MethodValue


def spread(values: Sequence[float]) -> SpreadRecord:
    """Return mean and deviation of one number a training; infinite if one is, and then how many are."""
    array = np.array(values)
    if not np.isfinite(array).all():
        return SpreadRecord(math.inf, math.inf, int(np.isinf(array).sum()))
    deviation = float(array.std(ddof=1)) if len(array) > 1 else math.nan
    return SpreadRecord(float(array.mean()), deviation, 0)


NOTHING = "nothing"
_CANIFE = NeedsRecord(
    "Poisson samples, their rate", "Gaussian, isotropic, independent over rounds", "the audited rounds', for trials"
)


@dataclass(frozen=True)
class ComparedMethod:
    """A row of the table."""

    name: str
    kind: str  # what kind of number it gives
    needs: NeedsRecord  # what it must know
    family: str  # ``oneshot`` or ``canife``: whose time and memory it takes
    value: Callable[[AuditedTraining, BenchmarkSizes], MethodValue]  # its number, from what a run found
    cap: Callable[[AuditedTraining, BenchmarkSizes], float]  # the largest that it can say, whatever leaks


@lru_cache(maxsize=1000)
def composed(epsilons: tuple[float, ...], plan: BenchmarkSizes, conversion: float) -> float:
    """Compose ε̂ of audits into CANIFE's ε̂ of the training, with a δ for the conversion of its own."""
    served = measure.rounds_served(plan.audited, plan.rounds)
    return measure.training_epsilon(epsilons, served, plan.sampling, Deltas(conversion, conversion, plan.delta))


def largest_round(trials: int) -> float:
    """Return the largest finite ε̂ of a round with so many scores, half of them with the canary, at δ = 1/n."""
    return measure.largest_finite(trials // 2, trials - trials // 2, 1.0 / trials)


def capped(training: AuditedTraining, plan: BenchmarkSizes, index: int, conversion: float) -> MethodValue:
    """Compose the ε̂ and their limits that audits have at one number of scores, at the cap where there is no error."""
    ends = [
        tuple(getattr(audit.attacks[index].epsilon.capped, end) for audit in training.canife)
        for end in ("epsilon", "lower", "upper")
    ]
    return MethodValue(*(composed(values, plan, conversion) for values in ends))


def exact(training: AuditedTraining, plan: BenchmarkSizes) -> float:
    """Compose rounds with the noise that unlimited scores would show: no ε̂, and so no conversion."""
    noise = [audit.law.deviation / audit.law.shift for audit in training.canife]
    served = measure.rounds_served(plan.audited, plan.rounds)
    return composed_epsilon(noise, served, plan.sampling, plan.delta)


def _estimate(
    attack: str, null: str, estimator: str = "fitted"
) -> Callable[[AuditedTraining, BenchmarkSizes], MethodValue]:
    def value(training: AuditedTraining, _: BenchmarkSizes) -> MethodValue:
        estimate = training.oneshot[attack][null].estimates[estimator]
        return MethodValue(estimate.epsilon, estimate.low, estimate.high)

    return value


def _bound(attack: str, null: str, name: str) -> tuple[Callable[..., MethodValue], Callable[..., float]]:
    def value(training: AuditedTraining, _: BenchmarkSizes) -> MethodValue:
        bound = training.oneshot[attack][null].bounds[name]
        upper = math.inf if bound.upper is None else bound.upper
        return MethodValue(bound.value, bound.value, upper)

    return value, lambda training, _: training.oneshot[attack][null].bounds[name].cap


def _known_rounds(knowledge: str) -> Callable[[AuditedTraining, BenchmarkSizes], MethodValue]:
    def value(training: AuditedTraining, _: BenchmarkSizes) -> MethodValue:
        assert training.known_rounds is not None
        return training.known_rounds[knowledge].epsilon

    return value


def _no_cap(_: AuditedTraining, __: BenchmarkSizes) -> float:
    return math.inf


def _crowd_cap(_: AuditedTraining, plan: BenchmarkSizes) -> float:
    """ε̂ where the release is the sum of all observed canaries and nothing else, so that cosines are about 1/√k.

    By Cauchy and Schwarz the mean cosine of k orthonormal canaries cannot be larger; random ones are nearly so.
    """
    return float(pinned_epsilon(plan.delta, np.array(math.sqrt(plan.dim / plan.canaries))))


def _capped(
    index: int, conversion: Callable[[int, BenchmarkSizes], float]
) -> tuple[Callable[..., MethodValue], Callable[..., float]]:
    def value(training: AuditedTraining, plan: BenchmarkSizes) -> MethodValue:
        trials = training.canife[0].attacks[index].scores
        return capped(training, plan, index, conversion(trials, plan))

    def cap(training: AuditedTraining, plan: BenchmarkSizes) -> float:
        trials = training.canife[0].attacks[index].scores
        largest = largest_round(trials)
        return composed((largest,) * len(plan.audited), plan, conversion(trials, plan))

    return value, cap


def _separated(training: AuditedTraining, plan: BenchmarkSizes) -> MethodValue:
    ends = [
        tuple(getattr(audit.attacks[0].epsilon.separated, end) for audit in training.canife)
        for end in ("epsilon", "lower", "upper")
    ]
    return MethodValue(*(composed(values, plan, plan.delta) for values in ends))


def _exact(training: AuditedTraining, plan: BenchmarkSizes) -> MethodValue:
    value = exact(training, plan)
    return MethodValue(value, value, value)


def _methods() -> Sequence[ComparedMethod]:
    rounds = NeedsRecord(NOTHING, NOTHING, "every round's delta")
    attacks = (
        ("all", "unobserved", "Algorithm 3, all rounds", rounds, _no_cap),
        ("final", "exact", "Algorithm 2, final model", NeedsRecord(NOTHING, NOTHING, "the last"), _crowd_cap),
        (
            "change",
            "exact",
            "Algorithm 2, change of the model",
            NeedsRecord(NOTHING, NOTHING, "the first and the last"),
            _crowd_cap,
        ),
    )
    methods = [
        ComparedMethod(name, "estimate", needs, "oneshot", _estimate(attack, null), cap)
        for attack, null, name, needs, cap in attacks
    ]
    # The estimator of the first version is for equal variances, which maxima of both kinds of canaries do not have.
    pinned = _estimate("all", "unobserved", "pinned")
    methods.append(ComparedMethod("Algorithm 3, all rounds: pinned", "estimate", rounds, "oneshot", pinned, _no_cap))
    for attack, null, name, needs, _ in attacks:
        value, cap = _bound(attack, null, "fixed-sequence")
        methods.append(ComparedMethod(f"{name}: fixed-sequence", "lower bound", needs, "oneshot", value, cap))
    value, cap = _bound("all", "unobserved", "bayesian")
    methods.append(
        ComparedMethod("Algorithm 3, all rounds: bayesian", "posterior interval", rounds, "oneshot", value, cap)
    )
    needs = NeedsRecord("a canary's rounds, and how they were drawn", _CANIFE.noise, "every round's delta")
    for knowledge, needed in (
        (DATA_UNKNOWN, needs),
        (DATA_KNOWN, replace(needs, models=f"{needs.models}, and all clients' updates")),
    ):
        value, name = _known_rounds(knowledge), f"Known rounds, {knowledge}"
        methods.append(ComparedMethod(name, "composed estimate", needed, "oneshot", value, _no_cap))
    needs = _CANIFE
    value, cap = _capped(0, lambda _, plan: plan.delta)
    methods.append(ComparedMethod("CANIFE as printed", "composed estimate", needs, "canife", value, cap))
    value, cap = _capped(0, lambda trials, _: 1.0 / trials)
    methods.append(ComparedMethod("CANIFE, conversion at 1/n", "composed estimate", needs, "canife", value, cap))
    methods.append(ComparedMethod("CANIFE, no errors are ∞", "composed estimate", needs, "canife", _separated, _no_cap))
    known = replace(needs, noise=f"{needs.noise}, and σ")
    methods.append(ComparedMethod("CANIFE, law of its scores", "composed estimate", known, "canife", _exact, _no_cap))
    return methods


METHODS = tuple(_methods())
