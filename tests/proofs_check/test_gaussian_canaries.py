import numpy as np
import pytest
from scipy import integrate, stats
from sympy import log, sqrt

from canaryproof.proofs_check import joint_law
from canaryproof.proofs_check.joint_law import X, gaussian_divergence
from canaryproof.proofs_check.lines import Kind
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K


@pytest.mark.parametrize("printed", [(X - log(1 - X)) / 4, (-log(1 - X) - X) / 2, X - log(1 - X) / 2])
def test_an_altered_bound_is_found(printed):
    assert joint_law._gaussian_canaries(SIGMA, printed).kind is Kind.FALSE


def test_the_share_of_the_canaries_does_not_vanish_where_the_noise_does_not_grow():
    share, bound = gaussian_divergence(SIGMA / sqrt(D))
    assert share == K / (K + SIGMA**2)
    assert joint_law._gaussian_canaries(SIGMA / sqrt(D), bound).kind is Kind.FALSE


@pytest.mark.parametrize(("dim", "count", "sigma"), [(5, 2, 1.0), (12, 4, 0.5)])
def test_the_bound_is_above_the_mean_divergence_by_matrices(dim, count, sigma):
    """Given ‖ρ‖, normal laws' divergence by their matrices, averaged over ‖ρ‖² ~ (σ² + k/d)·χ²_d by quadrature."""
    whole = sigma**2 + count / dim
    given = np.eye(count) - np.ones((count, count)) / (dim * whole)

    def divergence(square):
        mean = np.full(count, np.sqrt(square * whole) / (np.sqrt(dim) * whole))
        off = mean - 1 / np.sqrt(whole)
        value = (np.trace(given) - count - np.linalg.slogdet(given)[1] + off @ off) / 2
        return value * stats.chi2.pdf(square, dim)

    exact = integrate.quad(divergence, 0, np.inf)[0]
    share, bound = gaussian_divergence(SIGMA)
    x = share.subs({D: dim, K: count, SIGMA: sigma})
    # (q − 1)² ≤ (q² − 1)² gives away a factor of about 4 in the part that the length moves.
    assert 0 < exact < float(bound.subs(X, x)) < 4 * exact
