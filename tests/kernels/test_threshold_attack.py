import numpy as np
import pytest
from scipy import optimize, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.threshold_attack import threshold_epsilon


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_one_threshold_is_optimal_at_equal_variances(delta):
    distance = np.geomspace(0.1, 50, 30)
    exact = gaussian_mechanism.epsilon(delta, 1 / distance)
    assert threshold_epsilon(delta, distance, np.ones(30)) == pytest.approx(exact, rel=1e-12, abs=1e-13)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("distance", "ratio"),
    [
        pytest.param(0.5, 1.2, marks=pytest.mark.deep),
        (1.0, 0.8),
        pytest.param(3.0, 1.5, marks=pytest.mark.deep),
        (0.0, 2.0),
    ],
)
def test_it_is_the_maximum_of_the_printed_formula(distance, ratio):
    # v1, Section 4, as printed and on a fine grid, polished by a library's optimiser.
    delta = 1e-5
    fit, null = stats.norm(distance, ratio), stats.norm()

    def printed(a):
        below, above = null.cdf(a) - delta, fit.sf(a) - delta
        values = [
            np.log(below / fit.cdf(a)) if below > 0 else -np.inf,
            np.log(above / null.sf(a)) if above > 0 else 0.0,
        ]
        return max(values)

    grid = np.linspace(-6, 12, 4001)
    start = grid[np.argmax([printed(a) for a in grid])]
    best = optimize.minimize_scalar(lambda a: -printed(a), bounds=(start - 0.01, start + 0.01), method="bounded")
    assert float(threshold_epsilon(delta, distance, ratio)) == pytest.approx(-best.fun, rel=1e-7)


def test_sign_of_the_distance_does_not_matter():
    assert threshold_epsilon(1e-6, -1.0, 1.1) == threshold_epsilon(1e-6, 1.0, 1.1)


def test_identical_gaussians_leak_nothing():
    assert threshold_epsilon(1e-6, 0.0, 1.0) == 0.0
