import numpy as np
import pytest

from canaryproof.verify.papers.convergence import series


def test_slopes_and_their_intervals():
    x = np.array([1.0, 10.0, 100.0])
    slope, (low, high) = series._slope(x, 3.0 * x**-0.5, 0.01 * x**-0.5)
    assert slope == pytest.approx(-0.5)
    assert low < -0.5 < high
    # From known errors of 1/300 each, and from none but the scatter.
    assert high - low == pytest.approx(2 * 1.96 * (1 / 300) / (np.log(10.0) * np.sqrt(2.0)), rel=1e-3)
    scattered, _ = series._slope(x, [3.0, 1.0, 0.3], None)
    assert scattered == pytest.approx(-0.5, abs=1e-6)
