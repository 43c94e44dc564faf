import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.blindspots import alarms as prediction
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, Claim
from canaryproof.verify.estimators import estimators
from canaryproof.verify.estimators.estimators import Moments

CLAIM = Claim(1.3905934566745368, 1e-5, 10**6)
COUNT = 1000
LEVEL = 1e-6


def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize(("value", "rate"), [(1.0, 0.05), (0.9, 0.81)])
def test_alarms_are_those_of_drawn_moments(value, rate):
    """By the laws of a normal sample's moments: no t-test here, and no canary."""
    runs, draws = 4000, np.random.default_rng(3)
    residual = MECHANISMS["less-noise"].residual(value, CLAIM, runs, draws)
    shift = math.sqrt(CLAIM.dim) / np.sqrt(residual.gram[:, 0, 0] + COUNT)
    mean = shift + draws.standard_normal(runs) / math.sqrt(COUNT)
    moments = Moments(mean, np.sqrt(draws.chisquare(COUNT - 1, runs) / COUNT), COUNT)
    alarms = int((estimators.pinned(moments, CLAIM.delta, 0.9).low > CLAIM.epsilon).sum())
    found = prediction.foretell(MECHANISMS["less-noise"], value, CLAIM, COUNT, rng()).alarm
    assert found == pytest.approx(rate, abs=0.01)
    assert stats.binomtest(alarms, runs, found).pvalue > LEVEL
    assert found == prediction.alarm(MECHANISMS["less-noise"], value, CLAIM, COUNT, rng())


@pytest.mark.parametrize("value", [1.0, 0.5, 0.25])
def test_unlimited_canaries_tell_the_truth_of_pure_noise(value):
    mechanism = MECHANISMS["less-noise"]
    found = prediction.foretell(mechanism, value, CLAIM, COUNT, rng())
    assert found.epsilon == pytest.approx(mechanism.truth(value, CLAIM).low, rel=1e-3)
    assert found.epsilon < found.highest < 1.01 * found.epsilon


def test_unobserved_canaries_cost_power():
    mechanism = MECHANISMS["less-noise"]
    closed, fitted = (prediction.alarm(mechanism, 0.9, CLAIM, COUNT, rng(), null) for null in (None, COUNT))
    assert fitted < closed


def test_what_is_the_same_in_all_releases_is_as_little_seen_as_honest_noise():
    found = prediction.foretell(MECHANISMS["reused-noise"], 10.0, CLAIM, COUNT, rng())
    assert found.alarm < 0.1
    assert found.epsilon == pytest.approx(CLAIM.epsilon, rel=0.03)


def test_no_noise_at_all_is_told_with_certainty():
    found = prediction.foretell(MECHANISMS["no-noise-on-a-share"], 1.0, CLAIM, 10, rng())
    assert found.alarm == pytest.approx(1.0)
    assert found.epsilon > 1e5
