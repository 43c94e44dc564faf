import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.verify.bounds import few_scores as tested
from canaryproof.verify.bounds.few_scores import Ladder, are_few, chance, few_scores, rungs
from canaryproof.verify.bounds.fixed_sequence import fixed_sequence
from canaryproof.verify.bounds.guesses import count_wrong, pooled_order
from canaryproof.verify.bounds.lower_bound import prepare
from canaryproof.verify.bounds.precedence import EPSILONS, counts_beyond
from tests.rows import chequered
from tests.verify.bounds.test_guesses import orders
from tests.verify.bounds.test_precedence import worst_scores


@pytest.fixture
def forgetful():
    rungs.cache_clear()
    yield
    rungs.cache_clear()


def reached(ladder, scores):
    """The largest rung that one audit reaches: by plain comparisons."""
    counts, most = rungs(ladder)
    beyond = np.concatenate(counts_beyond(scores), axis=1)[0]
    wrong = count_wrong(pooled_order(scores.observed, scores.unobserved)[1], ladder.null_count, ladder.guesses)[0]
    return max(
        (
            rung
            for rung in range(len(most))
            if wrong <= most[rung] or any(n >= c[rung] for n, c in zip(beyond, counts, strict=True))
        ),
        default=-1,
    )


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize(
    ("design", "delta"),
    chequered(
        [(3, 3, (3, 3)), (4, 3, (2, 2)), (2, 6, (1, 4)), (5, 5, (3, 3)), (5, 5, (7, 2)), (6, 2, (0, 3))],
        [Fraction(0), Fraction(1, 50), Fraction(1, 4)],
    ),
)
def test_chances_by_enumeration_of_all_orders(monkeypatch, design, delta):
    """Exact at δ = 0, and never below the exact value otherwise."""
    count, null_count, guesses = design
    monkeypatch.setattr(tested, "declared_guesses", lambda *_: guesses)
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


@pytest.mark.parametrize(
    ("count", "null_count", "epsilon", "delta"),
    [
        (60, 90, 0.1, 0.0),
        pytest.param(60, 90, 1.0, 0.0, marks=pytest.mark.deep),
        pytest.param(100, 100, 0.4, 0.0, marks=pytest.mark.deep),
        (40, 60, 0.5, 2e-3),
        pytest.param(50, 500, 0.7, 1e-4, marks=pytest.mark.deep),
    ],
)
def test_the_worst_case_is_rejected_as_often_as_allowed(count, null_count, epsilon, delta):
    """The bound is above ε in at most α of audits of the worst mechanism, and in not much fewer."""
    runs, alpha = 10_000, 0.2
    rng = np.random.default_rng(4)
    seen = worst_scores(rng, (runs, count), epsilon, delta)
    values = few_scores(prepare(-seen, -rng.random((runs, null_count))), 3e-3, delta, alpha)
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
    assert chance(ladder, rung, declared, 0.0) <= tested._LEVELS[rung] * (1.0 + 1e-6) + 1e-11


@pytest.mark.parametrize("shift", [0.5, 2.0])
def test_the_bound_is_the_last_before_the_first_that_is_not_rejected(shift):
    """From ε = 0 on, one after another."""
    rng = np.random.default_rng(3)
    scores = prepare(shift + rng.standard_normal(45), rng.standard_normal(55))
    expected = 0.0
    for index, epsilon in enumerate(EPSILONS):
        ladder = Ladder(45, 55, 1e-3, float(EPSILONS[index // 8 * 8 + 7]))
        rung = reached(ladder, scores)
        if rung < 0 or chance(ladder, rung, float(epsilon), 1e-5) > 0.05 * (1.0 - 2e-6):
            break
        expected = epsilon
    assert few_scores(scores, 1e-3, 1e-5, 0.05)[0] == expected > 0.0


def test_no_level_is_too_small_or_too_large():
    scores = prepare(np.ones(30), np.zeros(30))
    values = [few_scores(scores, 1e-3, 1e-5, alpha)[0] for alpha in (1e-15, 1e-9, 0.05, 0.5, 0.99)]
    assert values[0] == 0.0
    assert values == sorted(values)


def test_few_are_those_whose_walk_takes_little_time():
    assert are_few(prepare(np.zeros(100), np.zeros(1000)))
    assert not are_few(prepare(np.zeros(1000), np.zeros(101)))


def test_beyond_the_first_design_both_tests_must_reject():
    """A larger δ never has a larger bound, although few scores have another test for small ones."""
    rng = np.random.default_rng(5)
    scores = prepare(1.5 + rng.standard_normal((20, 60)), rng.standard_normal((20, 60)))
    values = [fixed_sequence(scores, delta, 0.05)[0] for delta in (1e-4, 3.1e-3, 3.2e-3, 1e-2, 0.1)]
    for one, other in itertools.pairwise(values):
        assert np.all(one >= other)
    assert np.any(values[2] < values[1])
