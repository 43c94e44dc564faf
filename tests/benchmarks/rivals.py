"""The same work as others do it without storage: with numpy's generators, and with JAX's."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray


def _normals(bits: type[np.random.BitGenerator], seed: int, j: int, out: NDArray[np.float32]) -> NDArray[np.float32]:
    """Make canary j before normalising, from a generator of its own."""
    np.random.Generator(bits(np.random.SeedSequence([seed, j]))).standard_normal(dtype=np.float32, out=out)
    return out


def numpy_algorithm_1(
    bits: type[np.random.BitGenerator], count: int, dim: int, noise_multiplier: float, seed: int
) -> NDArray[np.float32]:
    """Algorithm 1 with numpy in float32: each canary is made twice, once for the sum and once for its cosine.

    Parameters
    ----------
    bits
        Bit generator, such as ``numpy.random.PCG64``.
    count, dim, noise_multiplier, seed
        As for ``verify.audit.estimators.algorithm_1.cosines``.

    Returns
    -------
    g_1, …, g_k, shape (k,).
    """
    canary, release, norms = np.empty(dim, np.float32), np.zeros(dim, np.float32), np.empty(count, np.float32)
    for j in range(count):
        _normals(bits, seed, j, canary)
        norms[j] = math.sqrt(np.dot(canary, canary))
        canary /= norms[j]
        release += canary
    _normals(bits, seed, count, canary)
    canary *= noise_multiplier
    release += canary
    products = np.array([np.dot(_normals(bits, seed, j, canary), release) for j in range(count)], np.float32)
    cosines: NDArray[np.float32] = products / norms / np.linalg.norm(release)
    return cosines


def numpy_round_cosines(
    bits: type[np.random.BitGenerator], deltas: NDArray[np.float32], norms: NDArray[np.float32], seed: int
) -> NDArray[np.float32]:
    """Cosines of Algorithm 3 with numpy in float32: each canary is made again in each round.

    Parameters
    ----------
    bits
        Bit generator, such as ``numpy.random.PCG64``.
    deltas
        A vector a round, shape (rounds, dim).
    norms
        Norms of the canaries before normalising, shape (count,).
    seed
        Seed of the canaries.

    Returns
    -------
    Cosines, shape (rounds, count).
    """
    canary, cosines = np.empty(deltas.shape[1], np.float32), np.empty((len(deltas), len(norms)), np.float32)
    for row, delta in zip(cosines, deltas, strict=True):
        row[:] = [np.dot(_normals(bits, seed, j, canary), delta) for j in range(len(norms))]
        row /= norms * np.linalg.norm(delta)
    return cosines


def jax_algorithm_1(count: int, dim: int, noise_multiplier: float, seed: int) -> NDArray[np.float32]:
    """Algorithm 1 with JAX's ``random.normal`` (threefry, compiled, on the CPU); otherwise as ``numpy_algorithm_1``."""
    import jax
    import jax.numpy as jnp

    with jax.default_device(jax.devices("cpu")[0]):
        key = jax.random.key(seed, impl="threefry2x32")
        normals, add, score = _jax_steps(dim)
        release, norms = jnp.zeros(dim, jnp.float32), []
        for j in range(count):
            release, norm = add(release, key, j)
            norms.append(norm)
        release = release + noise_multiplier * normals(key, count)
        products = jnp.stack([score(release, key, j) for j in range(count)])
        return np.asarray(products / jnp.stack(norms) / jnp.linalg.norm(release))


@cache
def _jax_steps(dim: int) -> tuple[Callable[..., Any], ...]:
    """Compile once a dimension what JAX does for each canary."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def normals(key: Any, j: Any) -> Any:
        return jax.random.normal(jax.random.fold_in(key, j), (dim,), jnp.float32)

    @jax.jit
    def add(total: Any, key: Any, j: Any) -> Any:
        canary = normals(key, j)
        norm = jnp.linalg.norm(canary)
        return total + canary / norm, norm

    @jax.jit
    def score(release: Any, key: Any, j: Any) -> Any:
        return jnp.dot(normals(key, j), release)

    return normals, add, score
