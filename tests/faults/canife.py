"""Faults of CANIFE: its design, its attack and its measures."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import dataclasses
from collections.abc import Callable

import numpy as np

from tests.faults.fault import Fault, Function

_CANIFE = "canaryproof.verify.canife"


def _fault(name: str, description: str, target: str, make: Callable[[Function], Function], *checks: str) -> Fault:
    return Fault(f"canife.{name}", description, f"{_CANIFE}.{target}", make, tuple(f"canife.{c}" for c in checks))


# JAX is an extra, and only the faulty functions need it.
def _raw_label(sample: Function) -> Function:
    def faulty(self: object, variables: object, label: object, draw: object) -> object:
        import jax.numpy as jnp

        right = sample(self, variables, label, draw)
        return right if variables.logits is None else right._replace(label=jnp.exp(variables.logits))  # type: ignore[attr-defined]

    return faulty


def _hinge_turned(loss: Function) -> Function:
    def faulty(self: object, state: object, sample: object, excluded: object = -1) -> object:
        import jax.numpy as jnp

        found, norm = loss(self, state, sample, excluded)
        least = self._least_norm  # type: ignore[attr-defined]
        return found - jnp.maximum(least - norm, 0.0) ** 2 + jnp.maximum(norm - least, 0.0) ** 2, norm

    return faulty


FAULTS = (
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
    _fault("label", "a soft label that is not normalised", "design:Designer._sample", _raw_label, "design"),
    _fault("hinge", "the hinge asks for short updates", "design:Designer.loss", _hinge_turned, "scores"),
)
