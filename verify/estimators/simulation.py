"""Many runs of Algorithm 1 at once, reduced to what the estimators need."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from canaryproof.kernels import exact_law
from canaryproof.verify.estimators import estimators
from canaryproof.verify.estimators.estimators import Moments


def threads() -> int:
    """Return how many threads to use: as many as numba does, which NUMBA_NUM_THREADS bounds."""
    return int(numba.get_num_threads())


def simulate(
    runs: int,
    count: int,
    dim: int,
    noise_multiplier: float,
    key: np.random.SeedSequence,
    data_norm: float = 0.0,
) -> Moments:
    """Draw runs of Algorithm 1 from their exact law.

    Parameters
    ----------
    runs
        Number of independent runs.
    count, dim, noise_multiplier, data_norm
        k, d, σ and ‖Σxᵢ‖, as for ``exact_law.cosines``.
    key
        Root of the randomness; every run has a child of its own, so that the result does not depend on threads.

    Returns
    -------
    Moments of shape (runs,).
    """

    def one(child: np.random.SeedSequence) -> Moments:
        rng = np.random.Generator(np.random.SFC64(child))
        return estimators.from_dimension(exact_law.cosines(count, dim, noise_multiplier, rng, data_norm), dim)

    with ThreadPoolExecutor(threads()) as pool:
        return estimators.joined(list(pool.map(one, key.spawn(runs))))
