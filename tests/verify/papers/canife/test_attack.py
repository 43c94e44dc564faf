import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.papers.canife import attack as module
from canaryproof.verify.papers.canife.attack import (
    Response,
    TrialRound,
    TrialScores,
    accuracy,
    attack,
    coins,
    halves,
    score_law,
)

LEVEL = 1e-6


def attack_literally(updates, canaries, inserted, mechanism, rng):
    """The scores of trials line by line as Algorithm 1 has them, from aggregates of all coordinates."""
    cohorts, noise = rng.spawn(2)
    chosen = module._cohorts(len(updates), mechanism.cohort, len(inserted), cohorts)
    values = np.empty(inserted.shape)
    for trial, (clients, present) in enumerate(zip(chosen, inserted, strict=True)):
        aggregate = updates[clients].sum(axis=0) + present @ canaries
        aggregate += mechanism.noise_multiplier * mechanism.clip_norm * noise.normal(size=updates.shape[1])
        values[trial] = canaries @ aggregate
    return TrialScores(values, inserted)


@pytest.fixture(scope="module")
def updates():
    """Twenty clients, and two canaries that are not orthogonal to anything."""
    rng = np.random.default_rng(3)
    clients, canaries = rng.normal(size=(20, 7)) / 4.0, rng.normal(size=(2, 7)) / 3.0
    return clients, canaries, Response(canaries @ clients.T, canaries @ canaries.T)


def test_scores_without_noise_are_the_literal_ones(updates):
    clients, canaries, response = updates
    inserted = coins(30, 2, np.random.default_rng(1))
    for cohort in (0, 6, 20):
        mechanism = TrialRound(cohort, 0.0)
        found = attack(response, inserted, mechanism, np.random.default_rng(2))
        literal = attack_literally(clients, canaries, inserted, mechanism, np.random.default_rng(2))
        np.testing.assert_allclose(found.values, literal.values, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("way", ["exact law", "literal"])
def test_scores_have_the_noise_of_the_mechanism(updates, way):
    clients, canaries, response = updates
    # All clients in every trial, and no canary: what varies is noise.
    trials, mechanism, rng = 4000, TrialRound(20, 0.7, 1.5), np.random.default_rng(4)
    inserted = np.zeros((trials, 2), dtype=bool)
    if way == "literal":
        values = attack_literally(clients, canaries, inserted, mechanism, rng).values
    else:
        values = attack(response, inserted, mechanism, rng).values
    # Standardised by the law, they are independent standard normals.
    root = np.linalg.cholesky((0.7 * 1.5) ** 2 * response.gram)
    standard = np.linalg.solve(root, (values - response.products.sum(axis=1)).T)
    assert stats.kstest(standard.ravel(), "norm").pvalue > LEVEL
    assert abs(np.corrcoef(standard)[0, 1]) < -stats.norm.ppf(LEVEL / 2) / math.sqrt(trials)


def test_all_cohorts_are_as_likely():
    # Without noise a score says who took part.
    clients, trials = 6, 30_000
    response = Response(2.0 ** np.arange(clients)[None], np.ones((1, 1)))
    drawn = attack(response, np.zeros((trials, 1), bool), TrialRound(3, 0.0), np.random.default_rng(11)).values
    sets, counts = np.unique(drawn, return_counts=True)
    assert [bin(int(each)).count("1") for each in sets] == [3] * math.comb(clients, 3)
    assert stats.chisquare(counts).pvalue > LEVEL


def test_a_poisson_sample_has_each_client_by_a_coin_of_its_own():
    clients, trials, rate = 5, 30_000, 0.4
    response = Response(2.0 ** np.arange(clients)[None], np.ones((1, 1)))
    mechanism = TrialRound(2, 0.0, poisson=True)
    drawn = attack(response, np.zeros((trials, 1), bool), mechanism, np.random.default_rng(12)).values[:, 0]
    sizes = np.array([bin(each).count("1") for each in range(2**clients)])
    expected = trials * rate**sizes * (1.0 - rate) ** (clients - sizes)
    assert stats.chisquare(np.bincount(drawn.astype(int), minlength=2**clients), expected).pvalue > LEVEL
    law = score_law(response, mechanism)
    assert law.mean == pytest.approx(rate * 31.0)
    assert law.clients == pytest.approx(math.sqrt(rate * (1.0 - rate) * sum(4.0**i for i in range(clients))))


@pytest.mark.parametrize("poisson", [False, True])
def test_moments_over_cohorts_and_noise(updates, poisson):
    _, _, response = updates
    mechanism, trials = TrialRound(5, 0.2, poisson=poisson), 20_000
    rng = np.random.default_rng(6)
    observed, unobserved = attack(response, halves(trials, 2, rng)[:, :1] & [True, False], mechanism, rng).of()
    law = score_law(response, mechanism)
    assert law.shift == response.gram[0, 0]
    error = -stats.norm.ppf(LEVEL / 2) * law.deviation / math.sqrt(trials / 2)
    assert abs(unobserved.mean() - law.mean) < error
    assert abs(observed.mean() - law.mean - law.shift) < error
    # The fourth moment is not far from a Gaussian's: a generous bound.
    assert unobserved.std() == pytest.approx(law.deviation, rel=2.0 * error / law.deviation)
    assert law.epsilon(1e-5) == gaussian_mechanism.epsilon(1e-5, law.deviation / law.shift)


def test_the_law_without_chance(updates):
    _, _, response = updates
    law = score_law(response, TrialRound(20, 0.0))
    assert law.deviation == 0.0
    assert law.mean == pytest.approx(response.products[0].sum(), rel=1e-12)
    assert law.epsilon(1e-5) == math.inf


def test_insertions():
    rng = np.random.default_rng(8)
    assert np.all(halves(101, 3, rng).sum(axis=0) == 50)
    assert np.any(halves(101, 2, rng)[:, 0] != halves(101, 2, rng)[:, 1])
    drawn = coins(10_000, 2, rng)
    assert all(stats.binomtest(int(count), 10_000).pvalue > LEVEL for count in drawn.sum(axis=0))


def test_a_cohort_larger_than_the_pool_is_refused(updates):
    with pytest.raises(ValueError, match="from 0 to the number of mock clients, 20, not 21"):
        attack(updates[2], np.zeros((1, 2), dtype=bool), TrialRound(21, 0.1), np.random.default_rng(1))


def test_accuracy_is_that_of_the_best_threshold():
    rng = np.random.default_rng(9)
    assert accuracy(np.array([1.0, 2.0]), np.array([0.0, 0.5, 0.9])) == 1.0
    assert accuracy(np.array([0.0, 1.0]), np.array([0.0, 1.0])) == 0.5
    # Below all canaries nothing is better than to say always, or never.
    assert accuracy(np.array([0.0]), np.array([1.0, 2.0, 3.0])) == 0.75
    observed, unobserved = rng.normal(1.0, 1.0, 30), rng.normal(0.0, 1.0, 20)
    right = [sum(observed >= x) + sum(unobserved < x) for x in [*observed, *unobserved]]
    assert accuracy(observed, unobserved) == max(right) / 50
