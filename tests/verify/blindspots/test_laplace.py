import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.verify.blindspots import mechanisms
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, Claim


@given(sigma=st.floats(0.3, 5.0), delta=st.floats(1e-8, 1e-2))
def test_the_claimed_scale_has_the_claimed_epsilon(sigma, delta):
    claim = Claim(sigma, delta, 100)
    truth = MECHANISMS["laplace"].truth(1.0, claim)
    assert truth.high == pytest.approx(claim.epsilon, rel=1e-9, abs=1e-12)
    # δ(ε) = 1 − exp((ε − 1/b)/2).
    assert 1.0 - math.exp(0.5 * (truth.high - 1.0 / mechanisms.claimed_scale(claim))) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("spread", [1, 10, 100, 101, 1000])
def test_a_canary_stands_out_by_the_root_of_its_spread(spread):
    observed, unobserved = mechanisms.scores(spread, 0.1, 10**6, 50, 400, np.random.default_rng(5))
    error = 0.1 * math.sqrt(2.0 / 20_000.0)
    assert abs(unobserved.mean()) <= 6.0 * error
    assert observed.mean() == pytest.approx(math.sqrt(2.0 / (spread + 1)), rel=0.02, abs=6.0 * error)
    assert unobserved.std() == pytest.approx(0.1 * math.sqrt(2.0), rel=0.06)


def test_other_canaries_are_noise():
    _, few = mechanisms.scores(1000, 1e-9, 1000, 1, 2000, np.random.default_rng(6))
    _, many = mechanisms.scores(1000, 1e-9, 1000, 500, 4, np.random.default_rng(6))
    assert few.std() < 1e-8
    assert many.std() == pytest.approx(math.sqrt(499 * 2.0 / (1001 * 1000)), rel=0.1)
