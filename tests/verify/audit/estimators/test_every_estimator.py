"""What every estimator of ε must do, that is every function of ``epsilon_estimators`` that returns an ``Estimate``."""

import math
from inspect import isfunction, signature

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.epsilon_estimators import Estimate
from canaryproof.verify.audit.estimators.moments import Moments, from_dimension, from_two_groups

DELTA = 1e-6
FIELDS = ("epsilon", "low", "high", "standard_error")
RUNS, SCORES = 3, 100
SEEN, UNSEEN = np.random.default_rng(17).standard_t(5.0, (2, RUNS, SCORES)) * [[[1.2]], [[1.0]]] + [[[1.0]], [[0.0]]]

ESTIMATORS = [
    function
    for name, function in vars(epsilon_estimators).items()
    if isfunction(function) and not name.startswith("_") and signature(function).return_annotation is Estimate
]
# What an estimator takes of scores and unobserved scores, by the name of its first argument.
TAKEN = {
    "moments": lambda seen, unseen: [from_dimension(seen, 2.0), from_two_groups(seen, unseen)],
    "release": lambda seen, unseen: [seen, unseen.astype(np.float32)],
    "distance": lambda seen, _: [1.0 + np.abs(seen.mean(axis=-1))],
}


def kind(estimator):
    return next(iter(signature(estimator).parameters))


def estimates(estimator, seen=SEEN, unseen=UNSEEN, delta=DELTA, **options):
    """Estimates of one or several runs, for each way in which the scores can be taken."""
    options |= {"dim": SCORES} if kind(estimator) == "distance" else {}
    return [estimator(taken, delta=delta, **options) for taken in TAKEN[kind(estimator)](seen, unseen)]


every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
every_estimator_of_moments = pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if kind(e) == "moments"])


def test_estimators_are_found():
    assert len(ESTIMATORS) >= 6


@every_estimator
def test_it_is_positive_and_finite_for_each_run(estimator):
    for estimate in estimates(estimator):
        for field in FIELDS:
            values = getattr(estimate, field)
            assert values.shape == (RUNS,)
            assert np.isfinite(values).all()
            assert (values > 0.0).all()


@every_estimator
def test_many_runs_give_what_each_gives_alone(estimator):
    for together, *alone in zip(
        estimates(estimator), *(estimates(estimator, SEEN[i], UNSEEN[i]) for i in range(RUNS)), strict=True
    ):
        for field in FIELDS:
            one_by_one = [float(getattr(each, field)) for each in alone]
            assert getattr(together, field) == pytest.approx(one_by_one, rel=1e-9)


@every_estimator
def test_it_leaves_the_scores_alone_and_gives_the_same_again(estimator):
    seen, unseen = SEEN.copy(), UNSEEN.copy()
    seen.flags.writeable = unseen.flags.writeable = False
    for first, second in zip(*(estimates(estimator, seen, unseen) for _ in range(2)), strict=True):
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(first, field), getattr(second, field))


@every_estimator
def test_the_order_of_the_scores_does_not_matter(estimator):
    for one, other in zip(estimates(estimator), estimates(estimator, SEEN[:, ::-1], UNSEEN[:, ::-1]), strict=True):
        for field in FIELDS:
            assert getattr(one, field) == pytest.approx(getattr(other, field), rel=1e-6)


@every_estimator
def test_a_higher_confidence_gives_a_wider_interval_and_the_same_estimate(estimator):
    confidences = (1e-9, 0.5, 0.8, 0.95, 0.99, 1.0 - 1e-9)
    for each in zip(*(estimates(estimator, confidence=confidence) for confidence in confidences), strict=True):
        assert (np.diff([estimate.low for estimate in each], axis=0) <= 0.0).all()
        assert (np.diff([estimate.high for estimate in each], axis=0) >= 0.0).all()
        assert np.ptp([estimate.epsilon for estimate in each], axis=0).max() == 0.0


@every_estimator
def test_a_larger_delta_never_raises_it(estimator):
    for each in zip(*(estimates(estimator, delta=delta) for delta in (1e-300, 1e-12, 1e-6, 1e-2, 0.9)), strict=True):
        for field in ("epsilon", "low", "high"):
            assert (np.diff([getattr(estimate, field) for estimate in each], axis=0) <= 0.0).all()


@every_estimator_of_moments
@given(
    distance=st.floats(-5, 30),
    ratio=st.floats(0.5, 2),
    count=st.sampled_from([2, 10, 1000]),
    null_count=st.sampled_from([math.inf, 10.0, 1000.0]),
    delta=st.sampled_from([1e-12, 1e-6, 1e-2]),
)
def test_its_interval_holds_it(estimator, distance, ratio, count, null_count, delta):
    estimate = estimator(Moments(np.asarray(distance), np.asarray(ratio), count, null_count), delta)
    assert 0.0 <= estimate.low <= estimate.epsilon * (1 + 1e-12)
    assert estimate.epsilon <= estimate.high * (1 + 1e-12)
    assert estimate.standard_error >= 0.0


@every_estimator_of_moments
@pytest.mark.parametrize("ratio", [0.8, 1.0, 1.03, 1.3])
def test_scores_farther_from_the_null_never_lower_it(estimator, ratio):
    distances = np.concatenate([[0.0], np.geomspace(1e-6, 30.0, 40)])
    for null_count in (math.inf, 400.0):
        estimate = estimator(Moments(distances, np.full(41, ratio), 1000, null_count), DELTA)
        assert (np.diff(estimate.epsilon) >= -1e-9).all()


@every_estimator_of_moments
def test_heavy_tails_widen_its_interval_and_leave_it(estimator):
    heavy = from_two_groups(SEEN, UNSEEN)
    by_shape, by_law = estimator(heavy, DELTA), estimator(heavy.as_normal, DELTA)
    np.testing.assert_array_equal(by_shape.epsilon, by_law.epsilon)
    assert (by_shape.low <= by_law.low).all()
    assert (by_shape.high >= by_law.high).all()
    assert (by_shape.high > by_law.high).any()
