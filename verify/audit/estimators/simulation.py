"""Many runs of Algorithm 1 at once, reduced to what the estimators need."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from numpy.typing import ArrayLike

from canaryproof.kernels import exact_law
from canaryproof.verify.audit.estimators.moments import Moments, concatenate, from_dimension

# Cosines that are reduced together.
_AT_ONCE = 200_000


def simulate(
    runs: int,
    count: int,
    dim: int,
    noise_multiplier: ArrayLike,
    key: np.random.SeedSequence,
    data_norm: ArrayLike = 0.0,
) -> Moments:
    """Draw runs of Algorithm 1 from their exact law.

    Parameters
    ----------
    runs
        Number of independent runs.
    count, dim, noise_multiplier, data_norm
        k, d, σ and ‖Σxᵢ‖, as for ``exact_law.cosines``. Of arrays, each element is a setting with noise of its own;
        settings share the canaries of each run.
    key
        Root of the randomness; every run has a child of its own, so that the result does not depend on threads.

    Returns
    -------
    Moments of shape (runs, ...).
    """

    def some(children: list[np.random.SeedSequence]) -> Moments:
        generators = (np.random.Generator(np.random.SFC64(child)) for child in children)
        drawn = [exact_law.cosines(count, dim, noise_multiplier, rng, data_norm) for rng in generators]
        return from_dimension(np.array(drawn), dim)

    children = key.spawn(runs)
    size = 1 + _AT_ONCE // count
    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        return concatenate(list(pool.map(some, (children[at : at + size] for at in range(0, runs, size)))))
