import math

import numpy as np
import pytest

from canaryproof.verify.estimators.estimators import from_dimension, from_unobserved


def test_moments_against_the_closed_form_are_the_scaled_mean_and_deviation():
    cosines = np.array([0.01, 0.02, -0.01, 0.04])
    moments = from_dimension(cosines, 400)
    assert moments.distance == pytest.approx(20 * 0.015, rel=1e-14)
    assert moments.ratio == pytest.approx(20 * math.sqrt(np.mean((cosines - 0.015) ** 2)), rel=1e-14)
    assert moments.count == 4
    assert moments.null_count == math.inf


def test_moments_against_unobserved_do_not_depend_on_place_and_scale():
    rng = np.random.default_rng(3)
    seen, unseen = rng.normal(1.0, 1.2, 50), rng.normal(0.0, 1.0, 70)
    one, other = from_unobserved(seen, unseen), from_unobserved(5 + 3 * seen, 5 + 3 * unseen)
    assert one.distance == pytest.approx(other.distance, rel=1e-12)
    assert one.ratio == pytest.approx(other.ratio, rel=1e-12)
    assert one.null_count == 70


def test_many_runs_are_reduced_one_by_one():
    runs = np.random.default_rng(4).normal(size=(3, 2, 20))
    moments = from_dimension(runs, 10)
    assert moments.distance.shape == (3, 2)
    assert moments.distance[2, 1] == from_dimension(runs[2, 1], 10).distance


@pytest.mark.parametrize("cosines", [[], [0.1], 0.1, [[0.1], [0.2]]])
def test_fewer_than_two_cosines_are_refused(cosines):
    with pytest.raises(ValueError, match="at least two"):
        from_dimension(cosines, 10)


def test_equal_scores_are_refused_by_name():
    with pytest.raises(ValueError, match=r"unobserved: .* must not all be equal"):
        from_unobserved([0.1, 0.2], [0.3, 0.3])
    with pytest.raises(ValueError, match=r"^observed: .* must not all be equal"):
        from_dimension([[0.1, 0.2], [0.3, 0.3]], 10)
