import math

import numpy as np
import pytest
from scipy import special

from canaryproof.kernels import null_cosine
from canaryproof.verify.canaries import canary_clients


@pytest.mark.parametrize("dim", [2, 3, 10, 30, 100, 1000, 10**5, 10**9])
def test_one_canary_in_one_round_keeps_the_level_exactly(dim):
    limit = canary_clients.LIMIT / math.sqrt(dim)
    assert limit >= 1.0 or null_cosine.logcdf(-limit, dim) < math.log(canary_clients.LEVEL)


@pytest.mark.parametrize("dim", [2, 3, 10, 1000])
@pytest.mark.parametrize("s", [0.1, 1.0, 3.0, 10.0])
def test_the_moment_generating_function_is_bounded_as_said(dim, s):
    # E exp(s·u) = Γ(d/2)·(2/s)^(d/2 − 1)·I_{d/2−1}(s) = ₀F₁(d/2; s²/4).
    assert special.hyp0f1(dim / 2, s * s / 4.0) <= math.exp(s * s / (2.0 * dim)) * (1.0 + 1e-12)


def test_the_limit_scales_with_the_counts():
    counts = np.array([3.0, 4.0, 0.0])
    edge = -canary_clients.LIMIT * 5.0 / math.sqrt(400)
    assert canary_clients.away(1.001 * edge, counts, 400)
    assert not canary_clients.away(0.999 * edge, counts, 400)
    assert not canary_clients.away(-1.001 * edge, counts, 400)
    # Nobody took part.
    assert not canary_clients.away(0.0, np.zeros(3), 400)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e300])
def test_products_do_not_overflow(scale):
    total, delta = np.array([1.0, 2.0, -2.0]), np.array([3.0, 0.0, 4.0])
    assert canary_clients.product(total, scale * delta) == pytest.approx(-1.0, rel=1e-12)


def test_the_power_is_the_one_stated():
    power = special.ndtr(math.sqrt(1000.0) / 4.0 - canary_clients.LIMIT)
    assert power == pytest.approx(0.99, abs=0.01)
