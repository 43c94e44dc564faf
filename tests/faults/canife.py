"""Faults of CANIFE: its design, its attack and its measures."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import copy
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.faults.fault import Fault, Function

_CANIFE = "canaryproof.verify.papers.canife"


def _fault(name: str, description: str, target: str, make: Callable[[Function], Function], *checks: str) -> Fault:
    return Fault(f"canife.{name}", description, f"{_CANIFE}.{target}", make, tuple(f"canife.{c}" for c in checks))


def _no_hinge(compiled: Function) -> Function:
    def faulty(designer: Any, *arguments: object) -> object:
        other = copy.copy(designer)
        other.settings = dataclasses.replace(designer.settings, norm_constant=0.0)
        return compiled(other, *arguments)

    return faulty


FAULTS = (
    _fault(
        "finite-pool",
        "the divisor n for n − 1 in the deviation of a sample without replacement",
        "attack:score_law",
        lambda f: (
            lambda response, *rest: (
                lambda law, n: dataclasses.replace(law, clients=law.clients * math.sqrt(1.0 - 1.0 / n))
            )(f(response, *rest), response.products.shape[1])
        ),
        "cohorts",
    ),
    _fault(
        "limits",
        "the lower limit of ε̂ for the upper one",
        "measure:round_epsilon",
        lambda f: lambda *a, **o: (lambda e: dataclasses.replace(e, lower=e.upper, upper=e.lower))(f(*a, **o)),
        "measures",
    ),
    _fault(
        "conversion",
        "σ̂ at 1/n for δ",
        "measure:noise_of_round",
        lambda f: lambda epsilon, delta, *rest: f(epsilon, 0.01, *rest),
        "measures",
    ),
    _fault(
        "rounds",
        "the last audit stands for a round too many",
        "measure:rounds_served",
        lambda f: lambda *a: (lambda served: [*served[:-1], served[-1] + 1])(f(*a)),
        "measures",
    ),
    _fault(
        "always-in",
        "the canary is inserted with probability 1",
        "attack:coins",
        lambda _: lambda trials, canaries, rng: np.ones((trials, canaries), dtype=np.bool_),
        "measures",
    ),
    _fault(
        "noise-squared",
        "noise of variance σ for σ²",
        "attack:attack",
        lambda f: (
            lambda response, inserted, mechanism, rng: f(
                response,
                inserted,
                dataclasses.replace(mechanism, noise_multiplier=mechanism.noise_multiplier**0.5),
                rng,
            )
        ),
        "scores",
    ),
    _fault(
        "others",
        "a canary's score is raised by no other canary that takes part",
        "attack:scored",
        lambda f: lambda clients, gram, *rest: f(clients, np.diag(np.diag(gram)), *rest),
        "cohorts",
    ),
    _fault(
        "largest",
        "the number of scores with the canary for the larger of both numbers",
        "measure:largest_finite",
        lambda f: lambda count, null_count, delta: f(count, count, delta),
        "measures",
    ),
    _fault(
        "label",
        "a soft label that is not normalised",
        "descent:soft_label",
        lambda _: lambda logits: np.exp(logits),
        "design",
    ),
    _fault("hinge", "the hinge asks for no length", "descent:DenseDesigner._compiled", _no_hinge, "scores"),
    _fault(
        "deltas",
        "the composition's δ for that of the conversion into noise",
        "measure:training_epsilon",
        lambda f: (
            lambda epsilons, rounds, sampling, deltas: f(
                epsilons, rounds, sampling, dataclasses.replace(deltas, conversion=deltas.scores)
            )
        ),
        "measures",
    ),
    _fault(
        "one-client",
        "the mean of the clients' part is that of one client",
        "attack:score_law",
        lambda f: (
            lambda response, mechanism, *rest: (lambda law: dataclasses.replace(law, mean=law.mean / mechanism.cohort))(
                f(response, mechanism, *rest)
            )
        ),
        "cohorts",
    ),
)
