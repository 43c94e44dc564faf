"""Trainings for ``canife_comparison``: CANIFE and random canaries in the same ones, with and without faults."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.benchmark import canife
from canaryproof.verify.benchmark.canife_faults import Fault
from canaryproof.verify.benchmark.canife_methods import largest_round
from canaryproof.verify.benchmark.canife_run import Bench, Trained
from canaryproof.verify.benchmark.canife_setting import SEED, Scenario, Setting
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.scores import prepare
from canaryproof.verify.federated import models
from canaryproof.verify.federated.data import digits
from canaryproof.verify.federated.outcome import ALL, CHANGE, FINAL, CanaryScores
from canaryproof.verify.oneshot import estimators
from canaryproof.verify.oneshot.moments import from_dimension, from_unobserved
from canaryproof.verify.results import Context

Array = NDArray[np.float64]

# Digits in rounds of 50, so that a training is short; the rate has grown with the batch. Audits are as many as pilots
# asked for, in which canaries differed much in how they avoid coordinates that have noise.
SETTING = Setting(batch=50, canaries=200, every=5, pool=256, trials=(100,), rate=3.0)
SCENARIOS = {
    "poisson": canife.POISSON,
    "shuffled": Scenario("shuffled epoch", shuffled=True),
    "reused": Scenario("the first round's noise in all", fault=Fault.NOISE),
    "halved": Scenario("no noise on half of the coordinates", fault=Fault.COORDINATES),
    "unclipped": Scenario("one client in a hundred not clipped", fault=Fault.CLIPPING),
}
_ALPHA = 0.05


@dataclass(frozen=True)
class Numbers:
    """What each method says of repeated trainings.

    Attributes
    ----------
    values
        Numbers by method, shape (trainings,).
    rounds
        ε̂ of CANIFE's audits as shares of its cap, shape (trainings, audits).
    cosines
        Root mean square of cosines of CANIFE's canaries with updates of the training's clients, alike.
    deviations
        Deviation of CANIFE's scores, cohorts and noise together, as a multiple of the noise's, alike.
    """

    values: Mapping[str, Array]
    rounds: Array
    cosines: Array
    deviations: Array


def pairs(context: Context, scenario: str, runs: int) -> tuple[Numbers, Numbers]:
    """Return the numbers of trainings without a fault, and of trainings of a scenario with the same seeds."""
    return _numbers(context, "poisson", runs), _numbers(context, scenario, runs)


@cache
def _numbers(context: Context, scenario: str, runs: int) -> Numbers:
    roots = context.key("canife-comparison").spawn(runs)
    done = [_bench().train(root, SCENARIOS[scenario]) for root in roots]
    found = [_said(one) for one in done]
    cap = largest_round(SETTING.trials[0])
    return Numbers(
        {name: np.array([one[name] for one in found]) for name in found[0]},
        np.array([[min(1.0, _round(audit) / cap) for audit in one.audits] for one in done]),
        np.array([[audit["cosines"]["root mean square"] for audit in one.audits] for one in done]),
        np.array([[_deviation(audit["law"]) for audit in one.audits] for one in done]),
    )


def _round(audit: Mapping[str, Any]) -> float:
    return float(audit["scores"][0]["epsilon"]["capped"]["epsilon"])


def _deviation(law: Mapping[str, float]) -> float:
    return law["deviation"] / law["noise"] if law["noise"] else math.inf


@cache
def _bench() -> Bench:
    federation = digits.load(1, SEED)
    return Bench(federation, models.model("two_layer", federation, None), SETTING)


def dimension() -> int:
    """Return the dimension d of the model."""
    return _bench().model.dim


def rounds() -> int:
    """Return the number of rounds of a training."""
    return _bench().rounds


def _said(done: Trained) -> dict[str, float]:
    scores, delta, dim = CanaryScores.of(done.trainer, done.canary_clients), SETTING.delta, dimension()
    all_rounds = from_unobserved(scores.observed[ALL], scores.unobserved[ALL])
    found: dict[str, Any] = {
        "algorithm-3": estimators.both_directions(delta, all_rounds.distance, all_rounds.ratio),
        "algorithm-3-pinned": estimators.pinned(all_rounds, delta).epsilon,
        "bound": METHODS["fixed-threshold"]
        .bound(prepare(scores.observed[ALL], scores.unobserved[ALL], inclusion="fixed"), delta, _ALPHA)
        .value,
    }
    for attack in (FINAL, CHANGE):
        moments = from_dimension(scores.observed[attack], dim)
        found[attack] = estimators.pinned(moments, delta).epsilon
        found[f"{attack}-fitted"] = estimators.both_directions(delta, moments.distance, moments.ratio)
    # Of the rounds, whose mean is geometric: one canary that happens to avoid the noise decides no other.
    found["canife-law"] = np.exp(np.mean([np.log(audit["law"]["epsilon"]) for audit in done.audits]))
    return {name: float(value) for name, value in found.items()}
