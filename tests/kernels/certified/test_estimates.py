import mpmath as mp
import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.kernels.certified import Enclosures, at_precision, estimates
from canaryproof.kernels.threshold_attack import threshold_epsilon
from canaryproof.verify.audit.estimators import epsilon_estimators

DELTAS = st.sampled_from([1e-12, 1e-6, 1e-2])
DISTANCES = st.floats(0.05, 5.0)
RATIOS = st.one_of(st.floats(0.5, 0.98), st.floats(1.02, 2.0), st.just(1.0))
# The estimators' own error, beside that of their enclosures.
NEAR = 1e-13


@given(DELTAS, st.floats(-1.0, 5.0))
def test_pinned_encloses_the_estimate(delta, distance):
    enclosure = estimates.pinned_epsilon(delta, distance)
    assert enclosure.is_tight
    assert float(epsilon_estimators.pinned_epsilon(delta, np.asarray(distance))) == pytest.approx(
        enclosure.lo, NEAR, 1e-14
    )


@given(DELTAS, DISTANCES, RATIOS)
def test_fitted_encloses_the_estimate(delta, distance, ratio):
    enclosure = estimates.fitted_epsilon(delta, distance, ratio)
    assert enclosure.is_tight
    estimate = epsilon_estimators.both_directions(delta, np.asarray(distance), np.asarray(ratio))
    assert float(estimate) == pytest.approx(enclosure.lo, NEAR, 1e-14)
    directions = [estimates.fitted_epsilon(delta, distance, ratio, way) for way in ("forward", "reverse")]
    assert enclosure == max(directions, key=lambda e: e.hi)


@given(DELTAS, DISTANCES, RATIOS)
def test_threshold_encloses_the_estimate(delta, distance, ratio):
    enclosure = estimates.threshold_epsilon(delta, distance, ratio)
    assert enclosure.width_in_ulps <= 3 or enclosure.hi - enclosure.lo <= 1e-17
    assert float(threshold_epsilon(delta, distance, ratio)) == pytest.approx(enclosure.lo, 1e-12, 1e-14)
    assert enclosure.lo <= estimates.fitted_epsilon(delta, distance, ratio).hi


def gain(a, delta, distance, ratio):
    """The first version's ε of one threshold, 40 digits."""
    with mp.workdps(40):
        first, second = mp.ncdf(a), mp.ncdf((a - distance) / mp.mpf(ratio))
        return max(
            mp.log(numerator / denominator) if numerator > 0 else -mp.inf
            for numerator, denominator in (
                (first - delta, second), (1 - second - delta, 1 - first), (1 - first - delta, 1 - second),
                (second - delta, first),
            )
        )  # fmt: skip


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.3])
def test_no_threshold_exceeds_the_enclosure(ratio):
    delta, distance = 1e-6, 0.7
    enclosure = estimates.threshold_epsilon(delta, distance, ratio)
    gains = [gain(mp.mpf(a), delta, distance, ratio) for a in np.linspace(-12.0, 12.0, 2401)]
    assert max(gains) <= enclosure.hi
    # The best of so fine a grid is nearly the best of all.
    assert max(gains) > 0.999 * enclosure.lo


def test_equal_gaussians_leave_nothing_to_guess():
    for enclosure in (estimates.threshold_epsilon(1e-6, 0.0, 1.0), estimates.pinned_epsilon(1e-6, -0.3)):
        assert (enclosure.lo, enclosure.hi) == (0.0, 0.0)


def test_mean_lies_between_the_means_of_the_ends():
    values = np.array([0.1, 0.2, 0.7])
    thirds = Enclosures(values, np.nextafter(values, 9.0))
    low, high = estimates.mean(thirds)
    with mp.workdps(50):
        assert low <= mp.fsum(map(mp.mpf, thirds.lo)) / 3
        assert high >= mp.fsum(map(mp.mpf, thirds.hi)) / 3
    assert high - low < 1e-15


@pytest.mark.parametrize(
    ("distance", "ratio"), [(1e30, 1.0), pytest.param(3.0, 1e25, marks=pytest.mark.deep), (1e7, 1e-6)]
)
def test_too_few_bits_only_widen(distance, ratio):
    enclosure = estimates.threshold_epsilon(1e-6, distance, ratio)
    assert enclosure.lo <= estimates.fitted_epsilon(1e-6, distance, ratio).hi <= 4.0 * enclosure.hi


@pytest.mark.deep
def test_next_to_the_null_the_search_ends():
    enclosure = estimates.threshold_epsilon(1e-20, 0.0, 1.0 + 1e-9)
    assert 0.0 <= enclosure.lo <= enclosure.hi <= estimates.fitted_epsilon(1e-20, 0.0, 1.0 + 1e-9).hi


def test_hits_that_may_be_positive_are_not_ruled_out():
    # δ = P(X > 0): at 0, too few bits tell whether the attack hits more often than δ allows.
    attack = estimates._Attack(fmpq(1, 2), fmpq(60), fmpq(1))

    def bound():
        left = attack.at(fmpq(0))
        left = left._replace(hits=left.hits + arb(0, 1e-15))
        assert not left.hits > 0
        assert not left.hits <= 0
        return attack.bound(left, attack.at(fmpq(1, 8)))[0]

    # log(1e-15) and 1,800 nats of misses: far from nothing.
    assert at_precision(64, bound) > 1000.0
