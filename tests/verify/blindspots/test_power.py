import numpy as np

from canaryproof.verify.blindspots import alarms
from canaryproof.verify.blindspots.alarms import Size
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, Claim
from canaryproof.verify.estimators import estimators

CLAIM = Claim(1.3905934566745368, 1e-5, 10**6)
SIZE = Size(100, 20, 3, 2, True)


def key():
    return np.random.SeedSequence(5)


def test_all_methods_are_measured_and_equal_keys_give_equal_numbers():
    found = alarms.measure(MECHANISMS["less-noise"], 0.25, CLAIM, SIZE, key())
    assert found == alarms.measure(MECHANISMS["less-noise"], 0.25, CLAIM, SIZE, key())
    expected = {*alarms.ESTIMATORS, *alarms.BOUNDS, *alarms.COIN_BOUNDS, alarms.CANIFE}
    assert set(found["methods"]) == expected
    assert found["rate"][0] == found["methods"]["adaptive"]["rate"][0] == 1.0
    assert found["methods"]["adaptive"]["runs"] == 3
    assert found["methods"]["one-run"]["runs"] == 2
    assert found["truth"][0] <= found["truth"][1]
    assert found["canife"] == alarms._of_deviation(0.25 * CLAIM.noise_multiplier, CLAIM)


def test_several_releases_have_unobserved_scores_and_no_bound_that_needs_an_exact_null():
    found = alarms.measure(MECHANISMS["reused-noise"], 2.0, CLAIM, SIZE, key())
    assert {name for name in alarms.BOUNDS if alarms.BOUNDS[name].needs == "null"}.isdisjoint(found["methods"])
    assert "fixed-sequence" in found["methods"]


def test_scores_that_are_no_cosines_are_measured():
    found = alarms.measure(MECHANISMS["laplace-spread"], 1.0, CLAIM, SIZE, key())
    assert found["rate"][0] > 0.5
    assert found["canife"] is None


def test_the_default_estimators_lower_end_is_its_own():
    rng = np.random.default_rng(0)
    # Of some runs the variances differ.
    scores = rng.standard_normal((40, 200)) * rng.choice([1.0, 1.4], (40, 1)) + 0.7
    found = estimators.from_dimension(scores / 1000.0, 10**6)
    adaptive = alarms.ESTIMATORS["adaptive"](found, 1e-5, 1.0 - 2.0 * alarms.ALPHA)
    np.testing.assert_array_equal(alarms.default_low(found, 1e-5), adaptive.low)
