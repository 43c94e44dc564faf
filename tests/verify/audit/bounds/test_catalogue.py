import numpy as np
import pytest

from canaryproof.verify.audit.bounds import any_dependence, fixed_sequence, gaussian, one_run, thresholds
from canaryproof.verify.audit.bounds.catalogue import DEFAULT, MEASURED, METHODS, lower_bounds
from canaryproof.verify.audit.bounds.lower_bound import normal_null, prepare

SEEN, UNSEEN = np.random.default_rng(0).normal([[1.5], [0.0]], 1.0, (2, 300))
NULL = normal_null()

# The functions whose values the modules' own tests compare with other ways to compute them.
FUNCTIONS = {
    "fixed-sequence": fixed_sequence.fixed_sequence,
    "band": thresholds.simultaneous,
    "fixed-threshold": thresholds.fixed_threshold,
    "bonferroni": thresholds.bonferroni,
    "largest-score": any_dependence.largest_score,
    "pure-dp": any_dependence.pure_dp,
    "normal-scores": gaussian.normal_scores,
    "gaussian-dp": gaussian.gaussian_dp,
    "one-run": one_run.steinke,
    "one-run-gaussian": one_run.mahloujifar,
}


def test_a_name_stands_for_its_modules_function():
    assert {name: MEASURED[name].compute for name in FUNCTIONS} == FUNCTIONS


def test_a_bound_that_left_is_refused_with_its_successor():
    left = MEASURED.keys() - METHODS.keys()
    assert left == {"fixed-threshold", "bonferroni"}
    for name in left:
        with pytest.raises(ValueError, match=rf"^names: {name} has left .* in 0\.3: use fixed-sequence, the default$"):
            lower_bounds(prepare(SEEN, null=NULL), 1e-5, 0.95, (name,))


@pytest.mark.deep
def test_the_default_is_monotone_on_a_hundred_thousand_random_audits():
    rng, audits, checked = np.random.default_rng(100_000), 2500, 0
    compute = METHODS[DEFAULT].values
    while checked < 100_000:
        count, null_count = rng.integers(1, 100, 2)
        small, large = np.sort(10.0 ** rng.uniform(-7.0, -0.2, 2))
        strict, loose = np.sort(10.0 ** rng.uniform(-6.0, -0.05, 2))
        shift, scale = 4.0 * rng.random((audits, 1)), rng.choice([0.4, 0.8, 1.0, 1.3, 2.5], (audits, 1))
        seen = shift + scale * rng.standard_t(rng.choice([2.0, 5.0, 100.0]), (audits, count))
        unseen = rng.standard_normal((audits, null_count))
        if rng.random() < 0.3:
            seen, unseen = np.rint(2.0 * seen), np.rint(2.0 * unseen)
        share = rng.choice([0.02, 0.3, 1.0])
        raised = seen + rng.exponential(1.0, seen.shape) * (rng.random(seen.shape) < share)
        lowered = unseen - rng.exponential(1.0, unseen.shape) * (rng.random(unseen.shape) < share)
        for before, after in (
            (prepare(seen, null=NULL), prepare(raised, null=NULL)),
            (prepare(seen, unseen), prepare(raised, lowered)),
        ):
            found = compute(before, small, loose)[0]
            assert np.all(found <= compute(after, small, loose)[0])
            assert np.all(found >= compute(before, small, strict)[0])
            assert np.all(found >= compute(before, large, loose)[0])
            checked += audits


@pytest.mark.parametrize(("count", "delta", "cap"), [(1, 1e-5, np.inf), (1, 0.04, 0.0), (5, 0.04, np.inf)])
def test_an_exact_null_leaves_the_default_no_cap_unless_delta_explains_all_scores(count, delta, cap):
    assert METHODS[DEFAULT].bound(prepare(SEEN[:count], null=NULL), delta, 0.05).cap == cap


def test_bounds_with_coins_are_proven_for_coins_alone():
    scores = [prepare(SEEN, UNSEEN, inclusion=inclusion) for inclusion in ("fixed", "independent", "coin")]
    for name in ("one-run", "one-run-gaussian"):
        assert [METHODS[name].coverage(each) for each in scores] == ["heuristic", "heuristic", "proven"]


def test_proven_bounds_come_first():
    names = ("andrew", "fixed-sequence", "one-run", "bayesian")
    fixed = lower_bounds(prepare(SEEN, UNSEEN), 1e-5, 0.95, names)
    coin = lower_bounds(prepare(SEEN, UNSEEN, inclusion="coin"), 1e-5, 0.95, (*names, "andrew"))
    assert [bound.method for bound in fixed] == ["fixed-sequence", "andrew", "one-run", "bayesian"]
    assert [bound.method for bound in coin] == ["one-run", "fixed-sequence", "andrew", "bayesian"]


def test_a_few_are_shown_by_default_and_none_as_printed():
    sampled = lower_bounds(prepare(SEEN, UNSEEN), 1e-5)
    exact = lower_bounds(prepare(SEEN, null=NULL), 1e-5)
    assert [bound.method for bound in sampled] == [DEFAULT, "one-run", "one-run-gaussian"]
    pure = lower_bounds(prepare(SEEN, null=NULL), 0.0)
    # What is proven for any dependence stands beside the default, and decides only where it is asked for.
    assert [bound.method for bound in exact] == [DEFAULT, "normal-scores", "largest-score"]
    assert [bound.method for bound in pure] == [DEFAULT, "normal-scores", "largest-score", "pure-dp"]
    asked = lower_bounds(prepare(SEEN, null=NULL), 1e-5, 0.95, (DEFAULT, "largest-score"))
    assert [bound.method for bound in asked] == ["largest-score", DEFAULT]
    assert not any(METHODS[bound.method].printed for bound in (*sampled, *exact))
