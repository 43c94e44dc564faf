"""Faults of federated training with canaries, of its accounting and of its checkpoints."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from tests.faults.fault import Fault, Function

_TRAINING = "canaryproof.verify.training"


def _fault(name: str, description: str, target: str, make: Callable[[Function], Function], check: str) -> Fault:
    return Fault(f"training.{name}", description, target, make, (f"training.{check}",))


def _algorithm(name: str, description: str, target: str, make: Callable[[Function], Function]) -> Fault:
    return _fault(name, description, f"canaryproof.verify.{target}", make, "algorithms")


def _account(name: str, description: str, target: str, make: Callable[[Function], Function]) -> Fault:
    return _fault(name, description, f"canaryproof.verify.{target}", make, "accounting")


def _twice(schedule: object) -> object:
    """Let the first client of each round take part in the place of the second, too."""
    rounds = tuple(np.concatenate([members[:1], members[:1], members[2:]]) for members in schedule.client_rounds)  # type: ignore[attr-defined]
    return dataclasses.replace(schedule, client_rounds=rounds)  # type: ignore[type-var]


FAULTS = (
    _algorithm(
        "projection",
        "canaries are not projected to the clip norm",
        "canaries.canary_clients:CanaryClients.total",
        lambda f: lambda self, number, clip_norm: f(self, number, 1.0),
    ),
    _algorithm(
        "sign",
        "the gradient for the delta is scored",
        "canaries.canary_clients:CanaryClients.add",
        lambda f: lambda self, delta, **turn: f(self, -np.asarray(delta), **turn),
    ),
    _algorithm(
        "round",
        "the canaries of the round before are sent",
        "canaries.canary_clients:CanaryClients._sum_of",
        lambda f: lambda self, number: f(self, max(0, number - 1)),
    ),
    _algorithm(
        "unobserved",
        "an unobserved canary takes part",
        "canaries.canary_clients:CanaryClients.participants",
        lambda f: lambda self, number: np.append(f(self, number), self.canaries.count - 1),
    ),
    _algorithm(
        "change",
        "the final model is scored in the place of its change",
        "training.outcome:CanaryScores.of",
        lambda f: (
            lambda cls, trainer, canary_clients: (
                lambda s: cls(*({**kind, "change": kind["final"]} for kind in (s.observed, s.unobserved)))
            )(f(cls, trainer, canary_clients))
        ),
    ),
    _algorithm(
        "noise",
        "noise of clip norm 1, whatever the clip norm",
        "training.noise:Independent.sample",
        lambda f: lambda self, number, dim, clip_norm: f(self, number, dim, 1.0),
    ),
    _algorithm(
        "quantile",
        "clipped updates are counted for unclipped ones",
        "training.clipping:AdaptiveClip.following",
        lambda f: lambda self, clip_norm, unclipped, number, t: f(self, clip_norm, number - unclipped, number, t),
    ),
    _algorithm(
        "one-layer",
        "the norm of an update is that of its first layer",
        "training.clients:_norms",
        lambda f: lambda updates: f(next(iter(updates.values()))),
    ),
    _algorithm(
        "one-per-cent",
        "norms of updates 1% too large",
        "training.clients:_norms",
        lambda f: lambda updates: 1.01 * f(updates),
    ),
    _algorithm(
        "repeated-client",
        "a client takes part twice in a round of a sample without replacement",
        "canaries.participation:uniform",
        lambda f: lambda *arguments: _twice(f(*arguments)),
    ),
    _account(
        "split",
        "the updates' noise is not raised for the counts",
        "accounting.training:noise_without_counts",
        lambda f: lambda noise_multiplier, count_noise: noise_multiplier,
    ),
    _account(
        "sampling-rate",
        "half of the sampling rate",
        "accounting.analytical:pld",
        lambda f: lambda sigma, delta, rounds=1, sampling=1.0: f(sigma, delta, rounds, 0.5 * sampling),
    ),
    _account(
        "replacement",
        "a replaced update moves a sum by one clip norm",
        "accounting.analytical:without_replacement",
        lambda f: lambda sigma, *rest: f(2.0 * sigma, *rest),
    ),
    _account(
        "correlated",
        "correlated noise accounted for as if it were independent",
        "training.noise:Correlated.sensitivity",
        lambda f: lambda self, rounds: math.sqrt(len(rounds)),
    ),
    _fault(
        "momentum",
        "a resumed training has lost its momentum",
        f"{_TRAINING}.training:Server.restore",
        lambda f: (
            lambda self, arrays: f(
                self, {name: array if name == "theta" else 0 * array for name, array in arrays.items()}
            )
        ),
        "bits",
    ),
    _fault(
        "little-noise",
        "a third of the noise that is accounted for",
        f"{_TRAINING}.noise:_white",
        lambda f: lambda *arguments: f(*arguments) / 3.0,
        "bounds",
    ),
)
