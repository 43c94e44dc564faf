"""The methods that ``benchmark canife`` compares: what their numbers are, and what they take for granted."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from canaryproof.verify.accounting.sampled_gaussian import composed_epsilon
from canaryproof.verify.canife import measure
from canaryproof.verify.canife.measure import Deltas
from canaryproof.verify.estimators.estimators import pinned_epsilon


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return mean and deviation of one number a training; infinite if one is, and then how many are."""
    array = np.array(values)
    if not np.isfinite(array).all():
        return {"mean": math.inf, "deviation": math.inf, "infinite": int(np.isinf(array).sum())}
    deviation = float(array.std(ddof=1)) if len(array) > 1 else math.nan
    return {"mean": float(array.mean()), "deviation": deviation, "infinite": 0}


class Needs(NamedTuple):
    """What an audit must know of a training, or be able to see."""

    participation: str
    noise: str
    models: str


NOTHING = "nothing"
_CANIFE = Needs(
    "Poisson samples, their rate", "Gaussian, isotropic, independent over rounds", "the audited rounds', for trials"
)


@dataclass(frozen=True)
class Value:
    """A method's number in one run, and its interval."""

    epsilon: float
    low: float
    high: float


@dataclass(frozen=True)
class TrainingFacts:
    """What CANIFE's composition is told of a training."""

    audited: tuple[int, ...]
    rounds: int
    sampling: float
    noise_multiplier: float
    delta: float
    dim: int
    canaries: int


@dataclass(frozen=True)
class ComparedMethod:
    """A row of the table."""

    name: str
    kind: str  # what kind of number it gives
    needs: Needs  # what it must know
    family: str  # ``oneshot`` or ``canife``: whose time and memory it takes
    value: Callable[[Mapping[str, Any], TrainingFacts], Value]  # its number, from what a run found
    cap: Callable[[Mapping[str, Any], TrainingFacts], float]  # the largest that it can say, whatever leaks


@lru_cache(maxsize=1000)
def composed(epsilons: tuple[float, ...], plan: TrainingFacts, conversion: float) -> float:
    """Compose ε̂ of audits into CANIFE's ε̂ of the training, with a δ for the conversion of its own."""
    served = measure.rounds_served(plan.audited, plan.rounds)
    return measure.training_epsilon(epsilons, served, plan.sampling, Deltas(conversion, conversion, plan.delta))


def largest_round(trials: int) -> float:
    """Return the largest finite ε̂ of a round with so many scores, half of them with the canary, at δ = 1/n."""
    return measure.largest_finite(trials // 2, trials - trials // 2, 1.0 / trials)


def capped(found: Mapping[str, Any], plan: TrainingFacts, place: int, conversion: float) -> Value:
    """Compose the ε̂ and their limits that audits have at one number of scores, at the cap where there is no error."""
    ends = [
        tuple(float(audit["scores"][place]["epsilon"]["capped"][end]) for audit in found["canife"])
        for end in ("epsilon", "lower", "upper")
    ]
    return Value(*(composed(values, plan, conversion) for values in ends))


def exact(found: Mapping[str, Any], plan: TrainingFacts) -> float:
    """Compose rounds with the noise that unlimited scores would show: no ε̂, and so no conversion."""
    noise = [audit["law"]["deviation"] / audit["law"]["shift"] for audit in found["canife"]]
    served = measure.rounds_served(plan.audited, plan.rounds)
    return composed_epsilon(noise, served, plan.sampling, plan.delta)


def _estimate(attack: str, null: str, estimator: str = "fitted") -> Callable[[Mapping[str, Any], TrainingFacts], Value]:
    def value(found: Mapping[str, Any], _: TrainingFacts) -> Value:
        estimate = found["oneshot"][attack][null]["estimates"][estimator]
        return Value(estimate["epsilon"], estimate["low"], estimate["high"])

    return value


def _bound(attack: str, null: str, name: str) -> tuple[Callable[..., Value], Callable[..., float]]:
    def value(found: Mapping[str, Any], _: TrainingFacts) -> Value:
        bound = found["oneshot"][attack][null]["bounds"][name]
        upper = math.inf if bound["upper"] is None else bound["upper"]
        return Value(bound["value"], bound["value"], upper)

    return value, lambda found, _: float(found["oneshot"][attack][null]["bounds"][name]["cap"])


def _no_cap(_: Mapping[str, Any], __: TrainingFacts) -> float:
    return math.inf


def _crowd_cap(_: Mapping[str, Any], plan: TrainingFacts) -> float:
    """ε̂ where the release is the sum of all observed canaries and nothing else, so that cosines are about 1/√k.

    By Cauchy and Schwarz the mean cosine of k orthonormal canaries cannot be larger; random ones are nearly so.
    """
    return float(pinned_epsilon(plan.delta, np.array(math.sqrt(plan.dim / plan.canaries))))


def _capped(
    place: int, conversion: Callable[[int, TrainingFacts], float]
) -> tuple[Callable[..., Value], Callable[..., float]]:
    def value(found: Mapping[str, Any], plan: TrainingFacts) -> Value:
        trials = found["canife"][0]["scores"][place]["trials"]
        return capped(found, plan, place, conversion(trials, plan))

    def cap(found: Mapping[str, Any], plan: TrainingFacts) -> float:
        trials = found["canife"][0]["scores"][place]["trials"]
        largest = largest_round(trials)
        return composed((largest,) * len(plan.audited), plan, conversion(trials, plan))

    return value, cap


def _separated(found: Mapping[str, Any], plan: TrainingFacts) -> Value:
    ends = [
        tuple(float(audit["scores"][0]["epsilon"]["separated"][end]) for audit in found["canife"])
        for end in ("epsilon", "lower", "upper")
    ]
    return Value(*(composed(values, plan, plan.delta) for values in ends))


def _exact(found: Mapping[str, Any], plan: TrainingFacts) -> Value:
    value = exact(found, plan)
    return Value(value, value, value)


def _methods() -> Sequence[ComparedMethod]:
    rounds = Needs(NOTHING, NOTHING, "every round's delta")
    attacks = (
        ("all", "unobserved", "Algorithm 3, all rounds", rounds, _no_cap),
        ("final", "exact", "Algorithm 2, final model", Needs(NOTHING, NOTHING, "the last"), _crowd_cap),
        (
            "change",
            "exact",
            "Algorithm 2, change of the model",
            Needs(NOTHING, NOTHING, "the first and the last"),
            _crowd_cap,
        ),
    )
    found = [
        ComparedMethod(name, "estimate", needs, "oneshot", _estimate(attack, null), cap)
        for attack, null, name, needs, cap in attacks
    ]
    # Of the first version, for equal variances, which maxima of those who took part and those who did not do not have.
    pinned = _estimate("all", "unobserved", "pinned")
    found.append(ComparedMethod("Algorithm 3, all rounds: pinned", "estimate", rounds, "oneshot", pinned, _no_cap))
    for attack, null, name, needs, _ in attacks:
        value, cap = _bound(attack, null, "fixed-sequence")
        found.append(ComparedMethod(f"{name}: fixed-sequence", "lower bound", needs, "oneshot", value, cap))
    value, cap = _bound("all", "unobserved", "bayesian")
    found.append(
        ComparedMethod("Algorithm 3, all rounds: bayesian", "posterior interval", rounds, "oneshot", value, cap)
    )
    needs = _CANIFE
    value, cap = _capped(0, lambda _, plan: plan.delta)
    found.append(ComparedMethod("CANIFE as printed", "composed estimate", needs, "canife", value, cap))
    value, cap = _capped(0, lambda trials, _: 1.0 / trials)
    found.append(ComparedMethod("CANIFE, conversion at 1/n", "composed estimate", needs, "canife", value, cap))
    found.append(ComparedMethod("CANIFE, no errors are ∞", "composed estimate", needs, "canife", _separated, _no_cap))
    known = needs._replace(noise=f"{needs.noise}, and σ")
    found.append(ComparedMethod("CANIFE, law of its scores", "composed estimate", known, "canife", _exact, _no_cap))
    return found


METHODS = tuple(_methods())
