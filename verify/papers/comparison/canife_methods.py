"""The methods that ``benchmark canife`` compares: what their numbers are, and what they take for granted."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from canaryproof.verify.audit.estimators.epsilon_estimators import pinned_epsilon
from canaryproof.verify.papers.accounting.sampled_gaussian import composed_epsilon, poisson_noise_multiplier
from canaryproof.verify.papers.canife import measure
from canaryproof.verify.papers.canife.measure import Deltas
from canaryproof.verify.papers.comparison.canife_designs import BOTH
from canaryproof.verify.papers.records.benchmark_record import (
    AuditedTraining,
    BenchmarkSizes,
    NeedsRecord,
    RoundAuditRecord,
    SpreadRecord,
)
from canaryproof.verify.papers.records.training_record import DATA_KNOWN, DATA_UNKNOWN, MethodValue, largest_finite

# Ways to sample an epoch without a fault of the server: the names of these scenarios.
POISSON_SAMPLES, SHUFFLED_EPOCH = SAMPLINGS = ("Poisson samples", "shuffled epoch")


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
    family: str  # ``oneshot``, or the name of a design of CANIFE's canaries: whose time it takes
    value: Callable[[AuditedTraining, BenchmarkSizes], MethodValue]  # its number, from what a run found
    cap: Callable[[AuditedTraining, BenchmarkSizes], float]  # the largest finite value, whatever leaks


@lru_cache(maxsize=1000)
def composed(epsilons: tuple[float, ...], plan: BenchmarkSizes, conversion: float) -> float:
    """Compose ε̂ of audits into CANIFE's ε̂ of the training, with a δ for the conversion of its own."""
    served = measure.rounds_served(plan.audited, plan.rounds)
    return measure.training_epsilon(epsilons, served, plan.sampling, Deltas(conversion, conversion, plan.delta))


def code_epsilon(epsilons: tuple[float, ...], plan: BenchmarkSizes) -> float:
    """Compose ε̂ of audits as CANIFE's public code does: σ̂ is that of which ``every`` sampled rounds cost ε̂."""
    noise = [_code_noise(epsilon, plan) for epsilon in epsilons]
    return composed_epsilon(noise, measure.rounds_served(plan.audited, plan.rounds), plan.sampling, plan.delta)


@lru_cache(maxsize=1000)
def _code_noise(epsilon: float, plan: BenchmarkSizes) -> float:
    try:
        return poisson_noise_multiplier(epsilon, plan.delta, plan.every, plan.sampling)
    except ValueError:
        # No noise gives so small an ε.
        return math.inf


def largest_round(trials: int, inclusion: str = "halves") -> float:
    """Return the largest finite ε̂ of a round with so many scores at δ = 1/n, half with the canary or by coins."""
    # Coins may leave a single score on one side.
    fewest = trials // 2 if inclusion == "halves" else 1
    return largest_finite(fewest, trials - fewest, 1.0 / trials)


Audits = Sequence[RoundAuditRecord]


def capped(audits: Audits, plan: BenchmarkSizes, index: int, conversion: float) -> MethodValue:
    """Compose the ε̂ and their limits that audits have at one number of scores, at the cap where there is no error."""
    ends = [
        tuple(getattr(audit.attacks[index].epsilon.capped, end) for audit in audits)
        for end in ("epsilon", "lower", "upper")
    ]
    return MethodValue(*(composed(values, plan, conversion) for values in ends))


def exact(audits: Audits, plan: BenchmarkSizes) -> float:
    """Compose rounds with the noise that unlimited scores would show: no ε̂, and so no conversion."""
    # A canary without an update never shows, whatever the noise.
    noise = [audit.law.deviation / audit.law.shift if audit.law.shift else math.inf for audit in audits]
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


def _with_cap(
    design: str, conversion: Callable[[int, BenchmarkSizes], float]
) -> tuple[Callable[..., MethodValue], Callable[..., float]]:
    def value(training: AuditedTraining, plan: BenchmarkSizes) -> MethodValue:
        audits = training.canife[design]
        return capped(audits, plan, 0, conversion(audits[0].attacks[0].scores, plan))

    def cap(training: AuditedTraining, plan: BenchmarkSizes) -> float:
        trials = training.canife[design][0].attacks[0].scores
        largest = largest_round(trials)
        return composed((largest,) * len(plan.audited), plan, conversion(trials, plan))

    return value, cap


def _separated(design: str, training: AuditedTraining, plan: BenchmarkSizes) -> MethodValue:
    ends = [
        tuple(getattr(audit.attacks[0].epsilon.separated, end) for audit in training.canife[design])
        for end in ("epsilon", "lower", "upper")
    ]
    return MethodValue(*(composed(values, plan, plan.delta) for values in ends))


def _exact(design: str, training: AuditedTraining, plan: BenchmarkSizes) -> MethodValue:
    value = exact(training.canife[design], plan)
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
    known = replace(_CANIFE, noise=f"{_CANIFE.noise}, and σ")
    for design in BOTH:
        name = f"CANIFE {design.name}"
        values = (
            (name, _CANIFE, *_with_cap(design.name, lambda _, plan: plan.delta)),
            (f"{name}, conversion at 1/n", _CANIFE, *_with_cap(design.name, lambda trials, _: 1.0 / trials)),
            (f"{name}, no errors are ∞", _CANIFE, partial(_separated, design.name), _no_cap),
            (f"{name}, law of its scores", known, partial(_exact, design.name), _no_cap),
        )
        methods += [ComparedMethod(row, "composed estimate", needs, design.name, *of) for row, needs, *of in values]
    return methods


METHODS = tuple(_methods())
