"""Faults of federated training with canaries, of its accounting and of its checkpoints."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import dataclasses
import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from tests.faults.fault import Fault, Function

_TRAINING = "canaryproof.verify.papers.training"


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


def _adam(rate: float) -> object:
    """Make an optimiser as ``_optimiser`` does, with the usual constants of Adam."""
    # Loads JAX.
    import jax.numpy as jnp
    import optax

    optimiser = optax.adam(rate, 0.9, 0.999, 1e-3)

    def step(theta: object, state: object, delta: object) -> tuple[object, object]:
        change, state = optimiser.update(-jnp.asarray(delta), state, theta)  # type: ignore[arg-type]
        return optax.apply_updates(theta, change), state  # type: ignore[arg-type]

    return optimiser.init, step


def _low_orders(sigma: float, delta: float, rounds: int) -> float:
    orders = np.arange(11, 110) / 10.0
    conversion = np.log1p(-1.0 / orders) - np.log(delta * orders) / (orders - 1.0)
    return float(np.min(rounds * orders / (2.0 * sigma**2) + conversion))


FAULTS = (
    _algorithm(
        "projection",
        "canaries are not projected to the clip norm",
        "audit.canaries.canary_clients:CanaryClients.total",
        lambda f: lambda self, number, clip_norm: f(self, number, 1.0),
    ),
    _algorithm(
        "sign",
        "the gradient for the delta is scored",
        "audit.canaries.canary_clients:CanaryClients.add",
        lambda f: lambda self, delta, **turn: f(self, -np.asarray(delta), **turn),
    ),
    _algorithm(
        "round",
        "the canaries of the round before are sent",
        "audit.canaries.canary_clients:CanaryClients._sum_of",
        lambda f: lambda self, number: f(self, max(0, number - 1)),
    ),
    _algorithm(
        "unobserved",
        "an unobserved canary takes part",
        "audit.canaries.canary_clients:CanaryClients.participants",
        lambda f: lambda self, number: np.append(f(self, number), self.canaries.count - 1),
    ),
    _algorithm(
        "change",
        "the final model is scored in the place of its change",
        "papers.training.canary_scores:CanaryScores.of",
        lambda f: (
            lambda cls, trainer: (
                lambda s: cls(*({**kind, "change": kind["final"]} for kind in (s.observed, s.unobserved)))
            )(f(cls, trainer))
        ),
    ),
    _algorithm(
        "noise",
        "noise of clip norm 1, whatever the clip norm",
        "papers.training.noise:Independent.sample",
        lambda f: lambda self, number, dim, clip_norm: f(self, number, dim, 1.0),
    ),
    _algorithm(
        "quantile",
        "clipped updates are counted for unclipped ones",
        "papers.training.clipping:AdaptiveClip.following",
        lambda f: lambda self, clip_norm, unclipped, number, t: f(self, clip_norm, number - unclipped, number, t),
    ),
    _algorithm(
        "one-layer",
        "the norm of an update is that of its first layer",
        "papers.training.clients:_norms",
        lambda f: lambda updates: f(next(iter(updates.values()))),
    ),
    _algorithm(
        "one-per-cent",
        "norms of updates 1% too large",
        "papers.training.clients:_norms",
        lambda f: lambda updates: 1.01 * f(updates),
    ),
    _algorithm(
        "repeated-client",
        "a client takes part twice in a round of a sample without replacement",
        "audit.canaries.participation:uniform",
        lambda f: lambda *arguments: _twice(f(*arguments)),
    ),
    _algorithm(
        "decay",
        "Adam's second decay 0.999 for 0.99",
        "papers.training.trainer:_optimiser",
        lambda f: lambda name, rate, momentum: _adam(rate) if name == "adam" else f(name, rate, momentum),
    ),
    _algorithm(
        "batches",
        "examples are cut into batches from the last one on",
        "papers.training.data.federation:Federation.cohort",
        lambda f: lambda self, clients, examples: tuple(part[:, ::-1].copy() for part in f(self, clients, examples)),
    ),
    _algorithm(
        "maxima",
        "the largest cosine of all rounds is at least 0",
        "audit.canaries.canary_clients:CanaryClients.all_rounds",
        lambda f: lambda self: tuple(np.maximum(part, 0.0) for part in f(self)),
    ),
    _fault(
        "fewer",
        "a Poisson sample's size is of one member less",
        "canaryproof.verify.audit.canaries.participation:_toss_coins",
        lambda f: lambda members, rate, rounds, rng: f(members[:-1], rate, rounds, rng),
        "participation",
    ),
    _fault(
        "pairs",
        "rounds come in pairs of the same Poisson sample",
        "canaryproof.verify.audit.canaries.participation:_toss_coins",
        lambda f: lambda members, rate, rounds, rng: [one for one in f(members, rate, rounds // 2, rng) for _ in "12"],
        "participation",
    ),
    _fault(
        "places",
        "every epoch is the first one again",
        "canaryproof.verify.audit.canaries.participation:shuffled_epochs",
        lambda f: (
            lambda clients, cohort, epochs, *rest: (
                lambda s: dataclasses.replace(s, client_rounds=s.client_rounds[: s.rounds // epochs] * epochs)
            )(f(clients, cohort, epochs, *rest))
        ),
        "participation",
    ),
    _fault(
        "root",
        "a coefficient of the square root is 1.25 times too large",
        f"{_TRAINING}.noise:SquareRoot.row",
        lambda f: lambda self, number: (lambda p, v: (p, np.where(p == number - 1, 1.25 * v, v)))(*f(self, number)),
        "noise",
    ),
    _fault(
        "node",
        "a node of the tree keeps one of the sums that it replaces",
        f"{_TRAINING}.noise:Tree.row",
        lambda f: lambda self, number: tuple(part[: max(1, len(part) - 1)] for part in f(self, number)),
        "noise",
    ),
    _account(
        "orders",
        "Rényi orders up to 10.9 alone",
        "papers.accounting.sampled_gaussian:rdp",
        lambda f: lambda sigma, delta, rounds=1, sampling=1.0: _low_orders(sigma, delta, rounds),
    ),
    _account(
        "split",
        "the updates' noise is not raised for the counts",
        "papers.accounting.training:noise_without_counts",
        lambda f: lambda noise_multiplier, count_noise: noise_multiplier,
    ),
    _account(
        "whole-count",
        "a count's sensitivity is 1 for ½",
        "papers.accounting.training:_scheduled",
        lambda f: (
            lambda noise, delta, taken, clip: f(
                noise, delta, taken, SimpleNamespace(count_noise=0.5 * clip.count_noise)
            )
        ),
    ),
    _account(
        "sampling-rate",
        "half of the sampling rate",
        "audit.accounting.accountant:_removal",
        lambda f: lambda pair, kind, noise, rate, count: f(pair, kind, noise, 0.5 * rate, count),
    ),
    _account(
        "replacement",
        "a replaced update moves a sum by one clip norm",
        "papers.accounting.analytical:without_replacement",
        lambda f: lambda sigma, *rest: f(2.0 * sigma, *rest),
    ),
    _account(
        "correlated",
        "correlated noise accounted for as if it were independent",
        "papers.training.noise:Correlated.sensitivity",
        lambda f: lambda self, rounds: math.sqrt(len(rounds)),
    ),
    _fault(
        "momentum",
        "a resumed training has lost its momentum",
        f"{_TRAINING}.trainer:Server.restore",
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
