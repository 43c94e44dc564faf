"""Faults of canaries, noise, Algorithm 1 and the draws from its exact law."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from canaryproof.kernels.canaries import Canaries
from tests.faults.fault import Fault, Function

_STREAMS = (
    "algorithm1.streams.coordinates",
    "algorithm1.streams.sums",
    "algorithm1.streams.release",
    "algorithm1.streams.independence",
    "algorithm1.samplers.d100",
)
# Checks that call each function of the canaries.
_LITERAL = {
    "Canaries.sum": ("algorithm1.streams.sums", "algorithm1.streams.release", "algorithm1.samplers.d100"),
    "Canaries._norms": _STREAMS,
    "checked_indices": _STREAMS,
    "Canaries.cosines": (
        "algorithm1.streams.sums",
        "algorithm1.streams.independence",
        "algorithm1.streams.release",
        "algorithm1.samplers.d100",
    ),
    "Canaries.vector": ("algorithm1.streams.coordinates", "algorithm1.streams.independence", "audit.release"),
    "noise": (
        "algorithm1.streams.coordinates",
        "algorithm1.streams.independence",
        "algorithm1.streams.release",
        "algorithm1.samplers.d100",
    ),
}
_WITNESSES = ("theorems.witness.d12", "theorems.witness.d50")
_LAW = {
    "_draw": (*_WITNESSES, "algorithm1.samplers.d100"),
    "cosines": ("algorithm1.samplers.d100", "estimators.count-sweep"),
    "inner_products": _WITNESSES,
}
_RUNS = ("estimators.data-sweep", "estimators.count-sweep", "final.table2.row?")


def _canaries(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    target = f"canaryproof.kernels.canaries:{function}"
    return Fault(f"canaries.{name}", description, target, make, _LITERAL[function])


def _release(name: str, description: str, make: Callable[[Function], Function]) -> Fault:
    target = "canaryproof.verify.audit.estimators.algorithm_1:release"
    return Fault(
        f"algorithm-1.{name}", description, target, make, ("algorithm1.streams.release", "algorithm1.samplers.d100")
    )


def _law(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    return Fault(f"exact-law.{name}", description, f"canaryproof.kernels.exact_law:{function}", make, _LAW[function])


def _simulation(name: str, description: str, make: Callable[[Function], Function]) -> Fault:
    return Fault(
        f"simulation.{name}", description, "canaryproof.verify.audit.estimators.simulation:simulate", make, _RUNS
    )


def _with_first_twice(total: Function) -> Function:
    def faulty(canaries: Canaries, indices: Any = None, weights: Any = None) -> Any:
        chosen = np.arange(canaries.count) if indices is None else np.asarray(indices)
        factors = np.ones(len(chosen)) if weights is None else np.asarray(weights)
        return total(canaries, np.append(chosen, chosen[:1]), np.append(factors, factors[:1]))

    return faulty


def _with_an_unobserved_one(draw: Function) -> Function:
    def faulty(count: int, dim: int, sigma: Any, rng: Any, data: Any, runs: Any, *, in_norms: bool) -> Any:
        products, norm = draw(count - 1, dim, sigma, rng, data, runs, in_norms=in_norms)
        first = rng.standard_normal(norm.shape)
        cosine = first / np.sqrt(first**2 + rng.chisquare(dim - 1, norm.shape))
        last = cosine if in_norms else cosine * norm
        return np.concatenate([products, last[..., np.newaxis]], axis=-1), norm

    return faulty


def _same_child(simulate: Function) -> Function:
    class _Stuck(np.random.SeedSequence):
        def spawn(self, n_children: int) -> Any:
            return super().spawn(1) * n_children

    return lambda runs, count, dim, sigma, key, *rest: simulate(
        runs, count, dim, sigma, _Stuck(key.entropy, spawn_key=key.spawn_key), *rest
    )


FAULTS = (
    _canaries(
        "not-normalised",
        "canaries added without being normalised",
        "Canaries.sum",
        lambda f: (
            lambda c, indices=None, weights=None: f(
                c,
                indices,
                (1.0 if weights is None else np.asarray(weights))
                * (c.norms() if indices is None else c.norms()[np.asarray(indices)]),
            )
        ),
    ),
    _canaries(
        "norm-of-dimension",
        "√d for the norm: normalised on average only",
        "Canaries._norms",
        lambda f: lambda c, chosen: np.full(len(chosen), math.sqrt(c.dim)),
    ),
    _canaries(
        "streams",
        "canaries 2j and 2j + 1 have one stream in sums and cosines",
        "checked_indices",
        lambda f: lambda indices, count: f(indices, count) // np.uint64(2),
    ),
    _canaries("twice", "the first canary added twice", "Canaries.sum", _with_first_twice),
    _canaries(
        "last-left-out",
        "the last canary not added",
        "Canaries.sum",
        lambda f: (
            lambda c, indices=None, weights=None: f(c, np.arange(c.count - 1) if indices is None else indices, weights)
        ),
    ),
    _canaries(
        "float32",
        "the sum rounded to float32",
        "Canaries.sum",
        lambda f: lambda c, *rest: f(c, *rest).astype(np.float32).astype(np.float64),
    ),
    _canaries(
        "weights", "weights ignored", "Canaries.sum", lambda f: lambda c, indices=None, weights=None: f(c, indices)
    ),
    _canaries(
        "inner-products",
        "inner products for cosines",
        "Canaries.cosines",
        lambda f: lambda c, vectors, *rest: f(c, vectors, *rest) * np.linalg.norm(vectors, axis=-1)[..., np.newaxis],
    ),
    _canaries(
        "vector",
        "a canary that is not normalised",
        "Canaries.vector",
        lambda f: lambda c, j: f(c, j) * np.float32(c.norms()[j]),
    ),
    _canaries(
        "other-seed",
        "cosines of other canaries than were added",
        "Canaries.cosines",
        lambda f: lambda c, *rest: f(Canaries(c.seed ^ 1, c.count, c.dim), *rest),
    ),
    _canaries(
        "noise-stream",
        "the noise is made of the first canary's stream",
        "noise",
        lambda _: lambda seed, dim: np.float32(Canaries(seed, 1, dim).norms()[0]) * Canaries(seed, 1, dim).vector(0),
    ),
    _canaries(
        "noise-truncated",
        "noise cut at 2.5 deviations",
        "noise",
        lambda f: lambda seed, dim: np.clip(f(seed, dim), -2.5, 2.5),
    ),
    _canaries(
        "noise-uniform",
        "uniform noise of the right variance",
        "noise",
        lambda f: (
            lambda seed, dim: (
                np.float32(math.sqrt(12.0)) * (np.random.default_rng(seed).random(dim, np.float32) - np.float32(0.5))
            )
        ),
    ),
    _release(
        "variance", "noise scaled by σ²", lambda f: lambda count, dim, sigma, *rest: f(count, dim, sigma**2, *rest)
    ),
    _release(
        "no-data",
        "data vectors left out",
        lambda f: lambda count, dim, sigma, seed, data=None: f(count, dim, sigma, seed),
    ),
    _release(
        "mean",
        "the mean of canaries and data over k for their sum",
        lambda f: lambda count, dim, sigma, *rest: f(count, dim, sigma * count, *rest) / count,
    ),
    _release(
        "noise-twice", "noise added twice", lambda f: lambda count, dim, sigma, *rest: f(count, dim, 2.0 * sigma, *rest)
    ),
    _law(
        "degrees",
        "one degree of freedom too few",
        "_draw",
        lambda f: lambda count, dim, *rest, **o: f(count, dim - 1, *rest, **o),
    ),
    _law(
        "variance",
        "noise scaled by σ²",
        "_draw",
        lambda f: lambda count, dim, sigma, *rest, **o: f(count, dim, sigma**2, *rest, **o),
    ),
    _law(
        "norm-squared", "‖ρ‖² for ‖ρ‖", "inner_products", lambda f: lambda *a, **o: (f(*a, **o)[0], f(*a, **o)[1] ** 2)
    ),
    _law(
        "data-squared",
        "‖Σxᵢ‖² for ‖Σxᵢ‖",
        "_draw",
        lambda f: (
            lambda count, dim, sigma, rng, data, *rest, **o: f(count, dim, sigma, rng, np.square(data), *rest, **o)
        ),
    ),
    _law(
        "one-canary-less",
        "a canary less in the release than is scored",
        "_draw",
        _with_an_unobserved_one,
    ),
    _law("sign", "cosines of the opposite sign", "cosines", lambda f: lambda *a, **o: -f(*a, **o)),
    _simulation("one-stream", "all runs draw from one stream", _same_child),
    _simulation(
        "no-data",
        "‖Σxᵢ‖ ignored",
        lambda f: lambda runs, count, dim, sigma, key, data_norm=0.0: f(runs, count, dim, sigma, key),
    ),
    _simulation(
        "variance", "σ² for σ", lambda f: lambda runs, count, dim, sigma, *rest: f(runs, count, dim, sigma**2, *rest)
    ),
    _simulation(
        "dimension",
        "runs in R^(d/2) for R^d",
        lambda f: lambda runs, count, dim, *rest: f(runs, count, dim // 2, *rest),
    ),
)
