import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.bounds import fixed_sequence as guesses
from canaryproof.verify.bounds import fixed_sequence as known_null
from canaryproof.verify.bounds.fixed_sequence import epsilon_sequence, fixed_sequence
from canaryproof.verify.bounds.lower_bound import discrete_null, normal_null, prepare

NULL = normal_null()


def test_tested_values_start_at_zero_and_are_close():
    values = np.concatenate(epsilon_sequence())
    assert values[0] == 0.0
    assert values[-1] >= 1e4
    steps = np.diff(values)
    assert np.all(steps > 0.0)
    assert np.all(steps <= np.maximum(0.01, 0.015 * values[:-1]) * (1.0 + 1e-9))


def reference(seen, unseen, delta):
    """The last ε of the sequence before the first whose test, by plain counting, does not reject."""
    expected = 0.0
    for epsilons in epsilon_sequence():
        if unseen is None:
            places, critical = known_null._critical_values_known_null(len(seen), NULL, delta, 0.05, epsilons)
            rejects = [sum(np.sum(seen >= t) for t in row) >= c for row, c in zip(places, critical, strict=True)]
        else:
            tops, bottoms, most = guesses._critical_values(len(seen), len(unseen), delta, 0.05, epsilons)
            falling = [x for _, x in sorted([(-v, 1) for v in seen] + [(-v, 0) for v in unseen])]
            wrong = [
                top - sum(falling[:top]) + sum(falling[len(falling) - n :])
                for top, n in zip(tops, bottoms, strict=True)
            ]
            rejects = [w <= m for w, m in zip(wrong, most, strict=True)]
        for epsilon, rejected in zip(epsilons, rejects, strict=True):
            if not rejected:
                return expected
            expected = epsilon
    return expected


def test_the_bound_is_the_last_rejected_value():
    rng = np.random.default_rng(1)
    seen, unseen = 2.0 + rng.normal(size=150), rng.normal(size=120)
    value, threshold = fixed_sequence(prepare(seen, null=NULL), 1e-5, 0.05)
    assert value[0] == reference(seen, None, 1e-5) > 0.5
    assert math.isnan(threshold[0])
    value, threshold = fixed_sequence(prepare(seen, unseen), 1e-5, 0.05)
    assert value[0] == reference(seen, unseen, 1e-5) > 0.5
    assert threshold[0] in {*seen, *unseen}


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5, 0.999])
@pytest.mark.parametrize("count", [1, 2, 17])
def test_few_scores_and_any_delta(count, delta):
    seen = np.linspace(-1.0, 0.5, count)
    assert fixed_sequence(prepare(seen, null=NULL), delta, 0.05)[0][0] == 0.0
    assert fixed_sequence(prepare(seen, seen), delta, 0.05)[0][0] == 0.0


def test_equal_scores_of_both_kinds_have_no_bound():
    tied = np.ones(500)
    assert fixed_sequence(prepare(tied, tied), 1e-6, 0.05)[0][0] == 0.0


def test_a_discrete_null_is_used_at_its_own_places():
    right = math.exp(3.0) / (1.0 + math.exp(3.0))
    seen = (np.random.default_rng(2).random(1000) < right).astype(float)
    value, _ = fixed_sequence(prepare(seen, null=discrete_null([0.0, 1.0], [right, 1.0 - right])), 1e-6, 0.05)
    # One place only: as good as Clopper and Pearson's limit there, less a step.
    limit = stats.beta.ppf(0.05, seen.sum(), 1001 - seen.sum())
    best = max(math.log(limit / (1.0 - right)), math.log(right / (1.0 - limit)))
    assert best - 0.05 <= value[0] <= best


@pytest.mark.parametrize(("count", "places"), [(30_000, 4), (150_000, 1)])
def test_many_scores_have_few_thresholds(count, places):
    rng = np.random.default_rng(3)
    value, _ = fixed_sequence(prepare(0.5 + rng.normal(size=count), null=NULL), 1e-6, 0.05)
    assert known_null._critical_values_known_null(count, NULL, 1e-6, 0.05, epsilon_sequence()[0])[0].shape[1] == places
    assert 1.2 < value[0] < 2.4


def test_perfect_separation():
    assert fixed_sequence(prepare([1.0], null=NULL).separated, 1e-6, 0.05)[0][0] == math.inf
    # One score that the null cannot reach says nothing at δ = α or more.
    assert fixed_sequence(prepare([1.0], null=NULL).separated, 0.05, 0.05)[0][0] == 0.0
    # From unobserved scores: all 1,000 above the largest of 1,000.
    cap = fixed_sequence(prepare(np.ones(1000), np.zeros(1000)), 1e-6, 0.05)[0][0]
    # Perfect separation of 1,000 and 1,000 has probability 0.05 at (1,000/2.996)/ε-odds twice over: e^ε is about 667.
    assert cap == pytest.approx(math.log(2000 / -math.log(0.05)), abs=0.1)


def test_mirrored_scores_have_no_bound():
    # The attack is one-sided: lower scores of canaries that took part are no evidence to it.
    assert fixed_sequence(prepare(np.full(300, -4.0), null=NULL), 1e-6, 0.05)[0][0] == 0.0


def test_nothing_counts_after_the_first_test_that_does_not_reject(monkeypatch):
    # Of three audits the first does not reject the third value, the second not the first, the third one of block two.
    def tests(_scores, _delta, _alpha):
        def reject(audits, epsilons):
            found = np.ones((3, len(epsilons)), dtype=bool)
            found[0, 2] = found[1, 0] = False
            found[2, 5] = epsilons[0] == 0.0
            return found[audits], np.full((len(audits), len(epsilons)), math.nan)

        return reject

    monkeypatch.setattr(known_null, "tests_known_null", tests)
    values = fixed_sequence(prepare(np.zeros((3, 4)), null=NULL), 1e-5, 0.05)[0]
    sequence = np.concatenate(epsilon_sequence())
    assert values.tolist() == [sequence[1], 0.0, sequence[len(epsilon_sequence()[0]) + 4]]
