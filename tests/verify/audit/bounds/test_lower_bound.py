import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.lower_bound import cosine_null, discrete_null, normal_null, prepare


def test_each_audit_is_sorted_and_the_shuffled_order_does_not_depend_on_the_scores():
    first, second = np.random.default_rng(1).normal(size=(2, 3, 50))
    scores = prepare(first, second)
    assert np.array_equal(scores.observed, np.sort(first, axis=1))
    assert np.array_equal(scores.unobserved, np.sort(second, axis=1))
    order = prepare(np.arange(50.0)[np.newaxis], null=normal_null()).shuffled()[0][0].astype(int)
    assert sorted(order) == list(range(50))
    # A first half that is not the file's own.
    assert 5 <= np.sum(order[:25] < 25) <= 20
    assert np.array_equal(scores.shuffled()[0], first[:, order])


@pytest.mark.parametrize(
    ("null", "law"),
    [
        (normal_null(0.3), stats.norm(scale=0.3)),
        (cosine_null(200), stats.beta(99.5, 99.5, loc=-1.0, scale=2.0)),
    ],
)
def test_tails_are_those_of_the_law_and_places_lie_where_they_are_asked(null, law):
    x = np.linspace(-0.4, 0.4, 31)
    assert null.log_tail(x) == pytest.approx(law.logsf(x), rel=1e-9)
    logs = np.log([0.9, 0.5, 1e-3])
    assert null.log_tail(null.quantile(logs)) == pytest.approx(logs, rel=0.05)


@pytest.mark.parametrize("dim", [20, 1000, 1e6])
def test_cosine_places_have_about_the_tail_that_is_asked_for(dim):
    # Of the upper tail, where scores of a mechanism that leaks lie.
    null, wanted = cosine_null(dim), np.array([-1.0, -10.0, -300.0])
    assert null.log_tail(null.quantile(wanted)) == pytest.approx(wanted, rel=0.1)


def test_cosine_places_stay_inside():
    null = cosine_null(1e6)
    thresholds = null.quantile(np.array([-1.0, -1e3, -1e6, -1e9]))
    assert np.all(np.diff(thresholds) > 0.0)
    assert thresholds[-1] < 1.0


def test_discrete_tails_include_their_place():
    null = discrete_null([0.0, 1.0, 4.0], [0.5, 0.25, 0.25])
    tails = np.exp(null.log_tail(np.array([-1.0, 0.0, 0.5, 1.0, 4.0, 4.1])))
    assert tails == pytest.approx([1.0, 1.0, 0.5, 0.5, 0.25, 0.0])
    # Nearest in the logarithm; never the lowest atom, which says nothing.
    assert null.quantile(np.log([0.99, 0.4, 1e-9])).tolist() == [1.0, 1.0, 4.0]


def test_separated_scores_are_told_apart():
    scores = prepare(np.zeros((3, 7)), np.zeros((3, 4))).perfect_separation
    assert scores.observed.min() > scores.unobserved.max()
    assert (scores.count, scores.null_count) == (7, 4)
    assert np.all(np.diff(scores.unobserved) > 0.0)
    null = prepare([0.0, 0.0], null=normal_null()).perfect_separation.null
    assert np.all(np.isneginf(null.log_tail(np.array([-5.0, 1.0]))))


@pytest.mark.parametrize("name", [pytest.param("fixed-sequence", marks=pytest.mark.deep), "band", "normal-scores"])
def test_cosines_rounded_to_one_exclude_no_finite_epsilon(name):
    """Each canary in a run of its own, with so little noise that most cosines round to 1: ε is large but finite."""
    dim, runs = 50, 60
    kernels = [Canaries(seed, 1, dim) for seed in range(runs)]
    observed = np.array([kernel.cosines(kernel.sum() + 1e-10 * noise(kernel.seed, dim))[0] for kernel in kernels])
    assert np.mean(observed == 1.0) > 0.5
    scores = prepare(observed, null=cosine_null(dim), independent=True)
    value = METHODS[name].values(scores, 1e-6, 0.05)[0][0]
    assert 100.0 < value < math.inf


def test_the_null_is_evaluated_at_the_scores_once_for_all_bounds():
    law, sizes = normal_null(), []

    def log_tail(x):
        sizes.append(np.size(x))
        return law.log_tail(x)

    scores = prepare(np.linspace(-1.0, 3.0, 997), null=dataclasses.replace(law, log_tail=log_tail))
    for name in ("fixed-sequence", "normal-scores", "band"):
        METHODS[name].bound(scores, 1e-6, 0.05)
    assert sizes.count(997) == 1
