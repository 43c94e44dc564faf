from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from canaryproof.kernels import two_gaussians
from canaryproof.verify.audit.estimators.epsilon_estimators import both_directions
from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims import clipping_range, submission_experiments
from canaryproof.verify.papers.claims.clipping_range import EMNIST, STACKOVERFLOW, PrintedTraining, judge
from canaryproof.verify.papers.claims.model_changes import MOMENTUM
from canaryproof.verify.papers.claims.transcripts import Final, Submission

SMALL = PrintedTraining(dim=2_000, rounds=40, members=10, presentations=1, delta=1e-5)
NOISE, COUNT = 0.5, 20_000


def moments(sums, rng, momentum=0.0):
    """Mean and deviation of largest cosines in null deviations, with the canary in one round and without."""
    # Given the releases, a random canary's cosines have their Gram matrix; noises of rounds are orthogonal.
    rows = np.concatenate([sums, np.sqrt(SMALL.dim) * NOISE * np.eye(SMALL.rounds)], axis=1)
    # A change of the model is a sum over the rounds so far.
    ages = np.subtract.outer(np.arange(SMALL.rounds), np.arange(SMALL.rounds))
    weights = np.where(ages >= 0, momentum ** np.maximum(ages, 0.0), 0.0)
    rows = weights @ rows
    lengths = np.linalg.norm(rows, axis=1)
    rows /= lengths[:, None]
    found = []
    for shown in (False, True):
        cosines = rng.standard_normal((COUNT, rows.shape[1])) @ rows.T
        if shown:
            own = rng.integers(SMALL.rounds, size=COUNT)
            cosines += np.sqrt(SMALL.dim) * weights[:, own].T / lengths
        largest = cosines.max(axis=1)
        found.append((largest.mean(), largest.std()))
    return found


def directions(kind, rng):
    """Clipped sums of all rounds in 60 dimensions that data may have: of full length, or of none."""
    sums = np.zeros((SMALL.rounds, 60))
    if kind == "one direction":
        sums[:, 0] = SMALL.members
    elif kind == "opposite":
        sums[:, 0] = SMALL.members * (-1.0) ** np.arange(SMALL.rounds)
    elif kind == "orthogonal":
        sums[np.arange(SMALL.rounds), np.arange(SMALL.rounds)] = SMALL.members
    elif kind == "random":
        sums = rng.normal(size=sums.shape)
        sums *= SMALL.members * rng.random((SMALL.rounds, 1)) / np.linalg.norm(sums, axis=1, keepdims=True)
    return sums


# Sums in one direction hide canaries most.
_KINDS = ("one direction", "nothing", "opposite", "orthogonal", "random")


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(("momentum", "kind"), [*product((0.9, 0.0), _KINDS)])
def test_no_data_leave_the_range(kind, momentum):
    rng = np.random.default_rng(3)
    (mean_0, deviation_0), (mean_1, deviation_1) = moments(directions(kind, rng), rng, momentum)
    distance, ratio = (mean_1 - mean_0) / deviation_0, deviation_1 / deviation_0
    ends = clipping_range.clipping_range(NOISE, SMALL, momentum)
    assert ends.distance[0] < distance < ends.distance[1]
    assert ends.ratio[0] < ratio < ends.ratio[1]
    for estimator in (both_directions, clipping_range.written_direction):
        ends = clipping_range.clipping_range(NOISE, replace(SMALL, estimator=estimator), momentum)
        assert ends.low < estimator(SMALL.delta, np.array(distance), np.array(ratio)) < ends.high


def test_the_written_direction_is_one_of_both():
    distance, ratio = np.array([0.0, 0.4, 3.0]), np.array([1.0, 3.0, 0.5])
    alone = clipping_range.written_direction(1e-5, distance, ratio)
    other = two_gaussians.epsilon(1e-5, 0.0, 1.0, distance, ratio, "reverse")
    np.testing.assert_allclose(np.maximum(alone, other), both_directions(1e-5, distance, ratio), rtol=1e-12)


def test_quantiles_between_two_laws_bound_mean_and_deviation():
    rng = np.random.default_rng(4)
    low = np.sort(rng.normal(size=500))
    high = low + np.sort(rng.random(500))
    (least, most), (narrow, wide) = clipping_range._moments(low, high)
    for share in (0.0, 0.3, 1.0, rng.random(500)):
        between = np.sort(low + share * (high - low))
        assert least - 1e-12 <= between.mean() <= most + 1e-12
        assert narrow <= between.std() * (1.0 + 1e-3)
        assert between.std() <= wide


@pytest.mark.deep
def test_equal_laws_in_the_box_leave_no_estimate():
    # A grid that misses them has 5.31 for the least.
    ends = clipping_range.clipping_range(float(Final.TABLE_3[3].noise), STACKOVERFLOW, MOMENTUM)
    assert ends.distance[0] < 0.0 < ends.distance[1]
    assert ends.ratio[0] < 1.0 < ends.ratio[1]
    assert ends.low == 0.0


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize(
    ("row", "training", "outside"),
    [
        (Final.TABLE_3[3], STACKOVERFLOW, True),
        (Final.TABLE_3[0], STACKOVERFLOW, False),
        (Final.TABLE_4[3], EMNIST, False),
        (Submission.TABLE_3[1], submission_experiments.EMNIST_TRAINING, True),
    ],
)
def test_what_both_directions_cannot_give_other_readings_can(row, training, outside):
    found = judge(row, training)
    assert found.verdict is Verdict.NEEDS_DATA
    other_readings = ("range of changes", "range in the written direction")
    assert all((name in found.evidence) is outside for name in other_readings)
    if outside:
        for name, inside in (("range", False), *((name, True) for name in other_readings)):
            low, high = found.evidence[name]
            assert (low <= float(row.estimate_all) <= high) is inside


def test_a_number_outside_both_ranges_needs_no_data():
    found = judge(replace(Final.TABLE_3[3], estimate_all="1e12"), STACKOVERFLOW)
    assert found.verdict is Verdict.REFUTED
