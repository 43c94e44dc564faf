"""Ties between observed and unobserved scores are broken by a coin that knows nothing of labels or order."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.lower_bound import ScoreSample, prepare, tie_seed

BY_ORDER = ("fixed-sequence", "band", "fixed-threshold", "bonferroni", "gaussian-dp", "one-run", "one-run-gaussian")
WORST = property(lambda scores: (scores.observed, scores.unobserved))
whole = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)


def labels(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    return (rng.random(shape) < 0.9).astype(float), (rng.random(shape) < 0.7).astype(float)


def rounded(unit: float):
    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        return tuple(unit * np.rint((mean + rng.standard_normal(shape)) / unit) for mean in (1.0, 0.0))

    return draw


KINDS = {"labels": labels, "whole numbers": rounded(1.0), "halves": rounded(0.5)}


def test_scores_without_ties_of_both_kinds_stay_as_they_are():
    scores = prepare([3.0, 1.0, 1.0], [0.0, 0.0, 2.0])
    assert all(a is b for a, b in zip(scores.untied, (scores.observed, scores.unobserved), strict=True))
    assert tie_seed(scores.observed[0], scores.unobserved[0]) is None


@given(whole, whole)
def test_unequal_scores_keep_their_order_and_equal_ones_are_told_apart(seen, unseen):
    scores = prepare(seen, unseen)
    pooled = np.concatenate([scores.observed[0], scores.unobserved[0]])
    ranks = np.concatenate([each[0] for each in scores.untied])
    if tie_seed(*(each[0] for each in (scores.observed, scores.unobserved))) is None:
        assert not set(seen) & set(unseen)
    else:
        assert sorted(ranks) == list(range(len(pooled)))
    assert np.all(np.diff(pooled[np.argsort(ranks, kind="stable")]) >= 0.0)


@given(whole, whole, st.randoms(use_true_random=False))
def test_the_coin_knows_neither_labels_nor_order_nor_scale(seen, unseen, random):
    seed = tie_seed(np.array(seen), np.array(unseen))
    shuffled = random.sample(seen, len(seen)), random.sample(unseen, len(unseen))
    assert tie_seed(*map(np.array, shuffled)) == seed
    assert tie_seed(np.exp(seen), np.exp(unseen)) == seed
    # Whoever took part: the same scores with the labels exchanged, or dealt out anew.
    assert tie_seed(np.array(unseen), np.array(seen)) == seed
    pooled = random.sample(seen + unseen, len(seen + unseen))
    dealt = tie_seed(np.array(pooled[: len(seen)]), np.array(pooled[len(seen) :]))
    assert seed is None or dealt in (seed, None)


@pytest.mark.parametrize("name", BY_ORDER)
def test_a_bound_depends_on_neither_the_order_of_the_input_nor_a_rising_transform(name):
    rng = np.random.default_rng(11)
    for draw in KINDS.values():
        seen, unseen = (each[0] for each in draw(rng, (1, 60)))
        expected = METHODS[name].values(prepare(seen, unseen, inclusion="coin"), 1e-5, 0.05)[0]
        for transform in (np.copy, np.exp, lambda x: 1e-200 * x):
            again = prepare(transform(rng.permutation(seen)), transform(rng.permutation(unseen)), inclusion="coin")
            assert METHODS[name].values(again, 1e-5, 0.05)[0] == expected


def test_every_order_of_equal_scores_is_equally_likely():
    """Groups of 2 + 2 equal scores, told apart by the sizes of the others: chi-squared at 1e-6, 2,500 orders."""
    orders = Counter()
    for more in range(50):
        for most in range(50):
            seen = np.concatenate([np.zeros(2), np.ones(1 + more), np.full(1 + most, 2.0)])
            scores = prepare(seen, [0.0, 0.0, 2.0])
            orders[tuple(scores.untied[0][0, :2])] += 1
    assert len(orders) == 6
    # With this many, probabilities of 1/6 ± 0.03 are noticed with a power above 99%.
    assert stats.chisquare(list(orders.values())).pvalue > 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_the_coin_gains_over_the_worst_order(kind, monkeypatch):
    draws = prepare(*KINDS[kind](np.random.default_rng(12), (40, 100)), inclusion="coin")
    names = ("fixed-sequence", "band", "one-run")
    gained = {name: METHODS[name].values(draws, 1e-5, 0.05)[0].mean() for name in names}
    monkeypatch.setattr(ScoreSample, "untied", WORST)
    for name in names:
        assert gained[name] > 1.15 * METHODS[name].values(draws, 1e-5, 0.05)[0].mean()


# Level 1e-6 each. A bound that is above the truth in 15% of audits is noticed with a power above 99%.
@pytest.mark.parametrize("name", ["fixed-sequence", "one-run"])
@pytest.mark.parametrize(("p", "q"), [(0.9, 0.7), (0.5, 0.5), (0.75, 0.5)])
def test_coverage_of_labels_alone(name, p, q):
    """The labels' ε at δ = 0 is the largest log ratio of probabilities."""
    truth = max(np.log(p / q), np.log((1.0 - q) / (1.0 - p)))
    rng, audits = np.random.default_rng(13), 600
    seen, unseen = ((rng.random((audits, 40)) < rate).astype(float) for rate in (p, q))
    values = METHODS[name].values(prepare(seen, unseen, inclusion="coin"), 0.0, 0.05)[0]
    above = int(np.sum(values > truth + 1e-9))
    assert stats.binom.sf(above - 1, audits, 0.05) > 1e-6
