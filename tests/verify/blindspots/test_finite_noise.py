import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from canaryproof.verify.blindspots import mechanisms
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, Claim


@given(
    vector=hnp.arrays(np.float64, 5, elements=st.floats(-50.0, 50.0)),
    bits=st.integers(1, 24),
    sigma=st.floats(0.05, 20.0),
    seed=st.integers(0, 2**32),
)
def test_the_attack_accuses_nobody_who_was_there(vector, bits, sigma, seed):
    releases = mechanisms.release(vector, bits, sigma, np.random.default_rng(seed), 20)
    assert releases.dtype == np.float32
    assert mechanisms.possible(releases, vector, bits, sigma).all()


@pytest.mark.parametrize("bits", [4, 12, 16])
def test_all_values_of_the_noise_are_possible_and_the_next_number_is_not(bits):
    values = (np.float32(0.8) * mechanisms.quantiles(bits).astype(np.float32))[:, np.newaxis]
    assert mechanisms.possible(values, np.zeros(1), bits, 0.8).all()
    next_one = np.nextafter(values, np.float32(np.inf))
    apart = ~np.isin(next_one, values)
    assert apart.any()
    assert (mechanisms.possible(next_one, np.zeros(1), bits, 0.8) == ~apart).all()


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_the_attack_wins_at_the_granularity_of_single_precision(sigma):
    rng = np.random.default_rng(4)
    client = np.array([1.0])
    told = mechanisms.accuses(mechanisms.release(client, 24, sigma, rng, 20_000), np.zeros(1), 24, sigma)
    # The claim allows δ = 1e-5 where nobody is accused wrongly.
    assert told.mean() > 0.75
    spread, others = np.full(1000, 1.0 / math.sqrt(1000.0)), rng.standard_normal(1000)
    assert mechanisms.accuses(mechanisms.release(spread + others, 24, sigma, rng, 50), others, 24, sigma).all()
    assert not mechanisms.accuses(mechanisms.release(others, 24, sigma, rng, 50), others, 24, sigma).any()


def test_coarse_noise_has_the_drawn_norms():
    claim = Claim(0.7, 1e-5, 300)
    drawn = MECHANISMS["coarse-noise"].residual(4.0, claim, 4000, np.random.default_rng(1)).gram.ravel()
    real = (mechanisms.release(np.zeros(300), 4, 0.7, np.random.default_rng(2), 4000).astype(float) ** 2).sum(axis=1)
    error = math.hypot(drawn.std(), real.std()) / math.sqrt(4000)
    assert abs(drawn.mean() - real.mean()) <= 6.0 * error
    assert drawn.std() == pytest.approx(real.std(), rel=0.08)


def test_fine_uniforms_give_the_normal_laws_moments():
    mean, variance = mechanisms._square_moments(16)
    assert mean == pytest.approx(1.0, abs=1e-4)
    assert variance == pytest.approx(2.0, abs=5e-3)
    assert mechanisms._square_moments(1) == pytest.approx((0.6744897501960817**2, 0.0))
