import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.verify.audit.bounds import ladders as tested
from canaryproof.verify.audit.bounds.fixed_sequence import fixed_sequence
from canaryproof.verify.audit.bounds.guesses import count_wrong, pooled_order, rates_of_labels
from canaryproof.verify.audit.bounds.ladders import Ladder, chance, ladder_bound, largest_deltas, rungs
from canaryproof.verify.audit.bounds.lower_bound import normal_null, prepare
from canaryproof.verify.audit.bounds.precedence import EPSILONS, counts_beyond
from tests.rows import chequered
from tests.verify.audit.bounds.test_guesses import orders
from tests.verify.audit.bounds.test_precedence import worst_scores


@pytest.fixture
def forgetful():
    rungs.cache_clear()
    yield
    rungs.cache_clear()


def reached(ladder, scores):
    """The largest rung that one audit reaches: by plain comparisons."""
    counts, guesses, rounded, most = rungs(ladder)
    beyond = np.concatenate(counts_beyond(scores), axis=1)[0]
    wrong = count_wrong(pooled_order(scores.observed, scores.unobserved)[1], ladder.null_count, guesses, rounded)[0]
    return max(
        (
            rung
            for rung in range(len(most))
            if wrong <= most[rung] or any(n >= c[rung] for n, c in zip(beyond, counts, strict=True))
        ),
        default=-1,
    )


@pytest.mark.deep(beyond=2)
@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize(
    ("design", "every", "delta"),
    chequered(
        [(3, 3, (3, 3)), (4, 3, (2, 2)), (2, 6, (1, 4)), (5, 5, (3, 3)), (5, 5, (7, 2)), (6, 2, (0, 3))],
        [1, 6],
        [Fraction(0), Fraction(1, 50), Fraction(1, 4)],
    ),
)
def test_chances_by_enumeration_of_all_orders(monkeypatch, design, every, delta):
    """Exact at δ = 0, and never below the exact value otherwise; with wrong guesses rounded to few numbers, too."""
    count, null_count, guesses = design
    monkeypatch.setattr(tested, "declared_guesses", lambda *_: guesses)
    monkeypatch.setattr(tested, "_ROUNDED", tested._ROUNDED[::every])
    factor, total = Fraction(5, 2), count + null_count
    ladder = Ladder(count, null_count, 1e-3, math.log(factor) + 0.1)
    law = {}
    for labels, probability in orders(count, null_count, factor, delta).items():
        places = [[total - i for i, label in enumerate(labels) if label == kind] for kind in (1, 0)]
        rung = reached(ladder, prepare(*places))
        law[rung] = law.get(rung, Fraction(0)) + probability
    seen = set()
    for rung in range(0, 80, 4):
        exact = float(sum(probability for one, probability in law.items() if one >= rung))
        found = chance(ladder, rung, math.log(factor), float(delta))
        assert found >= exact - 1e-12
        assert delta > 0 or found <= exact + 1e-12
        seen.add(exact)
    # At a rung some orders reach it and others do not.
    assert any(0.0 < exact < 1.0 for exact in seen)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("count", "null_count", "epsilon", "delta"),
    [
        (60, 90, 0.1, 0.0),
        pytest.param(60, 90, 1.0, 0.0, marks=pytest.mark.deep),
        pytest.param(100, 100, 0.4, 0.0, marks=pytest.mark.deep),
        (20, 30, 0.5, 2e-3),
        pytest.param(40, 60, 0.5, 2e-3, marks=pytest.mark.deep),
        pytest.param(50, 500, 0.7, 1e-4, marks=pytest.mark.deep),
    ],
)
def test_the_worst_case_is_rejected_as_often_as_allowed(count, null_count, epsilon, delta):
    """The bound is above ε in at most α of audits of the worst mechanism, and in not much fewer."""
    runs, alpha = 10_000, 0.2
    rng = np.random.default_rng(4)
    seen = worst_scores(rng, (runs, count), epsilon, delta)
    values = ladder_bound(prepare(-seen, -rng.random((runs, null_count))), 3e-3, delta, alpha, math.inf)
    above = int(np.sum(values > epsilon))
    assert stats.binom.sf(above - 1, runs, alpha) > 1e-6
    # An ε that is tested, just above, is rejected somewhat less often; what is shown counts as a little more.
    assert above > 0.8 * alpha * runs


@given(st.integers(0, 2**32 - 1))
def test_chances_rise_with_epsilon_and_delta_and_fall_with_the_rung(seed):
    rng = np.random.default_rng(seed)
    count, null_count = (int(n) for n in rng.integers(1, 40, 2))
    declared, rung, delta = float(rng.exponential(1.5)), int(rng.integers(0, 120)), 10.0 ** rng.uniform(-6.0, -2.0)
    ladder = Ladder(count, null_count, 0.01, declared)
    base = chance(ladder, rung, 0.9 * declared, delta)
    assert base <= chance(ladder, rung, declared, delta) + 1e-12
    assert base <= chance(ladder, rung, 0.9 * declared, 2.0 * delta) + 1e-12
    assert base >= chance(ladder, rung + 3, 0.9 * declared, delta) - 1e-12
    # Bonferroni's inequality is enough for the level; where canaries are shown, the walk counts a few more.
    assert chance(ladder, rung, declared, 0.0) <= tested.LEVELS[rung] * (1.0 + 1e-6) + 1e-11


@pytest.mark.parametrize("shift", [0.8, pytest.param(2.0, marks=pytest.mark.deep)])
def test_the_bound_is_the_last_before_the_first_that_is_not_rejected(shift):
    """From ε = 0 on, one after another."""
    rng = np.random.default_rng(3)
    scores = prepare(shift + rng.standard_normal(45), rng.standard_normal(55))
    expected = 0.0
    for index, epsilon in enumerate(EPSILONS):
        ladder = Ladder(45, 55, 1e-3, float(EPSILONS[index // 8 * 8 + 7]))
        rung = reached(ladder, scores)
        allowed = 0.05 * (1.0 - 2e-6)
        if rung < 0 or chance(ladder, rung, float(epsilon), 1e-5, allowed) > allowed:
            break
        expected = epsilon
    assert ladder_bound(scores, 1e-3, 1e-5, 0.05, math.inf)[0] == expected > 0.0


def test_no_level_is_too_small_or_too_large():
    scores = prepare(np.ones(30), np.zeros(30))
    values = [ladder_bound(scores, 1e-3, 1e-5, alpha, math.inf)[0] for alpha in (1e-15, 1e-9, 0.05, 0.5, 0.99)]
    assert values[0] == 0.0
    assert values == sorted(values)


def plain_chance(ladder, rung, epsilon):
    """Label by label at δ = 0: the number of unobserved ones so far by that among the first guesses."""
    counts, (top, bottom), rounded, most = rungs(ladder)
    k, k0 = ladder.count, ladder.null_count
    total, (side, (high, low)) = k + k0, rates_of_labels(k, k0, epsilon)
    ranks = 2 ** np.arange(11)
    least = np.zeros(total + 1, dtype=int)
    for rank, count in zip([r for r in ranks if r <= max(k0 // 2, 1)], counts, strict=False):
        if rank + count[rung] - 1 <= total:
            least[rank + count[rung] - 1] = max(least[rank + count[rung] - 1], rank)
    for rank, count in zip([r for r in ranks if r <= max(k // 2, 1)][::-1], counts[::-1], strict=False):
        last = rank + count[rung] - 1
        if last <= total:
            least[total - last] = max(least[total - last], rank + k0 - last)
    sizes = stats.binom.pmf(np.arange(total + 1), total, side)
    state = np.zeros((k0 + 1, k0 + 1, 2))
    state[0, 0] = 1.0, sizes[0]
    begun = np.arange(k0 + 1)[:, np.newaxis, np.newaxis]
    for place in range(1, total + 1):
        unseen = np.zeros_like(state)
        unseen[:, 1:] = state[:, :-1] * [high, 1.0 - low]
        state = state * [1.0 - high, low] + unseen
        state[..., 1] += sizes[place] * state[..., 0]
        state[:, : least[place]] = 0.0
        if place == top:
            state = np.where(begun == np.arange(k0 + 1)[:, np.newaxis], state.sum(axis=0), 0.0)
        if place == total - bottom:
            wrong = rounded[np.searchsorted(rounded, np.minimum(begun, top))] + k - place
            wrong = wrong + np.arange(k0 + 1)[:, np.newaxis]
            state = np.where(wrong > most[rung], state, 0.0)
    return 1.0 - state[:, k0, 1].sum() / stats.binom.pmf(k, total, k / total)


@pytest.mark.parametrize(
    ("count", "null_count", "epsilon"),
    [
        (130, 170, 0.3),
        pytest.param(130, 170, 1.5, marks=pytest.mark.deep),
        (200, 150, 3.0),
        pytest.param(30, 320, 1.0, marks=pytest.mark.deep),
    ],
)
def test_chances_are_those_of_a_walk_label_by_label(count, null_count, epsilon):
    """Of hundreds of scores, by steps over many labels at once."""
    ladder = Ladder(count, null_count, 1e-4, epsilon + 0.05)
    found = [chance(ladder, rung, epsilon, 0.0) for rung in (40, 80)]
    assert found == pytest.approx([plain_chance(ladder, rung, epsilon) for rung in (40, 80)], abs=1e-12)
    assert found[0] > 2.0 * found[1] > 1e-3


def test_ladders_serve_up_to_so_many_scores_and_a_delta_that_shows_one():
    assert largest_deltas(prepare(np.zeros(100), np.zeros(1000))) == [1e-4, 1e-3]
    assert largest_deltas(prepare(np.zeros(200), np.zeros(100))) == [1e-4, 1e-3]
    assert largest_deltas(prepare(np.zeros(1), np.zeros(1))) == [0.01, 0.1]
    assert largest_deltas(prepare(np.zeros(31_000), np.zeros(33_000))) == []
    assert largest_deltas(prepare(np.zeros(100), null=normal_null())) == []


def test_beyond_a_ladder_another_test_must_reject_too():
    """A larger δ never has a larger bound, although it has another ladder, or none."""
    rng = np.random.default_rng(5)
    scores = prepare(1.5 + rng.standard_normal((10, 60)), rng.standard_normal((10, 60)))
    values = [fixed_sequence(scores, delta, 0.05)[0] for delta in (1e-4, 1e-3, 1.1e-3, 1e-2, 1.1e-2, 0.1)]
    for one, other in itertools.pairwise(values):
        assert np.all(one >= other)
    assert np.any(values[2] < values[1])
    assert np.any(values[4] < values[3])
