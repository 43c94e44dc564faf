import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.verify.audit.bounds import bayesian, fixed_sequence, gaussian, one_run, thresholds
from canaryproof.verify.audit.bounds.catalogue import DEFAULT, METHODS, lower_bounds
from canaryproof.verify.audit.bounds.lower_bound import BoundKind, Coverage, normal_null, prepare

SEEN, UNSEEN = np.random.default_rng(0).normal([[1.5], [0.0]], 1.0, (2, 300))
NULL = normal_null()
VALID = [name for name, method in METHODS.items() if not method.printed and method.kind is BoundKind.LOWER_BOUND]


def either(name):
    """Scores that a method serves, of each kind."""
    method = METHODS[name]
    both = (prepare(SEEN, UNSEEN), prepare(SEEN, null=NULL))
    return [scores for scores in both if method.serves(scores)]


@pytest.mark.parametrize("name", METHODS)
def test_every_bound_says_what_it_is(name):
    for scores in either(name):
        bound = METHODS[name].bound(scores, 1e-5, 0.1)
        assert (bound.method, bound.confidence) == (name, 0.9)
        assert 0.0 <= bound.value <= bound.cap
        assert bound.assumptions
        assert bound.coverage in Coverage
        assert (bound.upper is not None) is (bound.kind is BoundKind.POSTERIOR)
        assert bound.threshold is None or math.isfinite(bound.threshold)
        if scores.null is not None:
            assert math.isinf(bound.cap)
        else:
            assert math.isfinite(bound.cap)


@pytest.mark.parametrize("name", METHODS)
def test_the_cap_is_reached_at_perfect_separation(name):
    if METHODS[name].needs == "null":
        return
    bound = METHODS[name].bound(prepare(SEEN + 1e3, UNSEEN), 1e-5, 0.05)
    assert bound.value == bound.cap > 1.0


# The functions whose values at level α the modules' own tests compare with other ways to compute them. Those of the
# printed bounds go through the catalogue.
FUNCTIONS = {
    "fixed-sequence": fixed_sequence.fixed_sequence,
    "band": thresholds.simultaneous,
    "fixed-threshold": thresholds.fixed,
    "bonferroni": thresholds.bonferroni,
    "normal-scores": gaussian.normal_scores,
    "gaussian-dp": gaussian.gaussian_dp,
    "one-run": one_run.steinke,
    "one-run-gaussian": one_run.mahloujifar,
}


def test_every_bound_is_its_modules_at_the_level_that_was_asked_for():
    assert {name for name, method in METHODS.items() if not method.printed} == {*FUNCTIONS, "bayesian"}
    for name, function in FUNCTIONS.items():
        for scores in either(name):
            for delta, alpha in ((1e-5, 0.05), (1e-3, 0.2)):
                expected = float(function(scores, delta, alpha)[0][0])
                assert METHODS[name].bound(scores, delta, alpha).value == expected > 0.0


def test_the_posterior_interval_leaves_half_of_alpha_at_either_end():
    tiled = np.tile(SEEN[:30], 10)  # so that the largest score is in both halves
    for scores, alpha in product((prepare(SEEN, UNSEEN), prepare(tiled, null=NULL)), (0.05, 0.2)):
        bound = METHODS["bayesian"].bound(scores, 1e-5, alpha)
        counts = thresholds.split_counts(scores, 1e-5, bayesian._CHOICE)
        hits, count = int(counts.hits[0]), counts.half.count
        fnr = bayesian.Rate(count - hits, hits)
        assert 0.0 < bound.value < bound.upper
        for end, above in ((bound.value, 1.0 - 0.5 * alpha), (bound.upper, 0.5 * alpha)):
            if scores.null is None:
                alarms, null_count = int(counts.alarms[0]), counts.half.null_count
                probability = bayesian.exceedance(fnr, bayesian.Rate(alarms, null_count - alarms), end, 1e-5)
            else:
                probability = bayesian.exceedance_known(fnr, math.exp(counts.log_tails[0]), end, 1e-5)
            assert probability == pytest.approx(above, abs=1e-8)


@pytest.mark.deep(every=3)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("delta", [0.0, 0.3, 0.999999])
def test_any_delta_and_any_sizes(name, delta):
    for count, null_count in ((1, 1), (1, 5), (5, 1), (2, 3), (40, 7)):
        seen, unseen = np.linspace(2.0, 4.0, count), np.linspace(-1.0, 2.5, null_count)
        for scores in (prepare(seen, unseen), prepare(seen, null=NULL)):
            if METHODS[name].serves(scores):
                bound = METHODS[name].bound(scores, delta, 0.05)
                assert 0.0 <= bound.value <= bound.cap
                assert not math.isnan(bound.value)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("alpha", [1e-9, 0.999999999])
def test_any_confidence_that_audit_takes(name, alpha):
    for scores in either(name):
        assert METHODS[name].bound(scores, 1e-5, alpha).value >= 0.0


@pytest.mark.parametrize("name", METHODS)
def test_levels_outside_their_domain_are_refused(name):
    for delta, alpha in ((1.0, 0.05), (-0.1, 0.05), (0.1, 0.0), (0.1, 1.0)):
        with pytest.raises(ValueError, match="must lie"):
            METHODS[name].values(either(name)[0], delta, alpha)


def test_several_audits_are_not_one():
    with pytest.raises(ValueError, match="one audit, not 2"):
        METHODS[DEFAULT].bound(prepare(np.zeros((2, 3)), null=NULL), 0.1, 0.1)


@pytest.mark.parametrize("name", [name for name in VALID if METHODS[name].needs != "null"])
def test_equal_scores_of_both_kinds_have_no_bound(name):
    for tied in (np.ones(300), np.repeat([0.0, 1.0], 150)):
        assert METHODS[name].bound(prepare(tied, tied, inclusion="coin"), 0.0, 0.05).value == 0.0


# What is not monotone, and why.
_HALF = "the threshold is chosen on one half of the scores, and may count fewer of the other half"
_LARGEST = "the threshold is that of the largest finite estimate, whose limits may be worse"
NOT_MONOTONE = {
    ("bayesian", "scores"): _HALF,
    ("bayesian", "delta"): _HALF,
    ("canife", "scores"): _LARGEST,
    # Which estimate is the largest depends on δ.
    ("canife", "delta"): _LARGEST,
    ("canife-code", "scores"): _LARGEST,
}


def drawn(rng):
    """Audits of any shape and size, each with one that has higher observed scores and lower unobserved ones."""
    count, null_count = rng.integers(1, 80, 2)
    shift, scale = 3.0 * rng.random(), rng.choice([0.5, 1.0, 2.0])
    seen, unseen = shift + scale * rng.standard_t(rng.choice([2.0, 30.0]), count), rng.normal(size=null_count)
    if rng.random() < 0.3:
        seen, unseen = np.rint(2.0 * seen), np.rint(2.0 * unseen)
    raised = seen + rng.exponential(1.0, count) * (rng.random(count) < 0.3)
    lowered = unseen - rng.exponential(1.0, null_count) * (rng.random(null_count) < 0.3)
    return [(prepare(seen, null=NULL), prepare(raised, null=NULL)), (prepare(seen, unseen), prepare(raised, lowered))]


def value(name, scores, delta, alpha):
    return METHODS[name].values(scores, delta, alpha)[0][0]


def monotone(argument):
    return [name for name in METHODS if (name, argument) not in NOT_MONOTONE]


@pytest.mark.parametrize("name", monotone("scores"))
@given(st.integers(0, 2**32 - 1))
def test_higher_observed_and_lower_unobserved_scores_never_lower_the_bound(name, seed):
    rng = np.random.default_rng(seed)
    delta, alpha = 10.0 ** rng.uniform(-7.0, -0.3), rng.choice([1e-4, 0.05, 0.6])
    for before, after in drawn(rng):
        if METHODS[name].serves(before):
            assert value(name, before, delta, alpha) <= value(name, after, delta, alpha)


@pytest.mark.parametrize("name", monotone("confidence"))
@given(st.integers(0, 2**32 - 1))
def test_more_confidence_never_raises_the_bound(name, seed):
    rng = np.random.default_rng(seed)
    delta, alphas = 10.0 ** rng.uniform(-7.0, -0.3), np.sort(10.0 ** rng.uniform(-7.0, -0.1, 3))
    for scores, _ in drawn(rng):
        if METHODS[name].serves(scores):
            found = [value(name, scores, delta, alpha) for alpha in alphas]
            assert found == sorted(found)


@pytest.mark.parametrize("name", monotone("delta"))
@given(st.integers(0, 2**32 - 1))
def test_a_larger_delta_never_raises_the_bound(name, seed):
    rng = np.random.default_rng(seed)
    deltas, alpha = np.sort(10.0 ** rng.uniform(-7.0, -0.1, 3)), rng.choice([1e-4, 0.05, 0.6])
    for scores, _ in drawn(rng):
        if METHODS[name].serves(scores):
            found = [value(name, scores, delta, alpha) for delta in deltas]
            assert found == sorted(found, reverse=True)


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


@pytest.mark.parametrize("name", METHODS)
def test_what_is_known_of_coverage_depends_on_the_scores(name):
    needs_null = METHODS[name].needs == "null"

    def coverage(**options):
        scores = prepare(SEEN, null=NULL, **options) if needs_null else prepare(SEEN, UNSEEN, **options)
        return METHODS[name].coverage(scores)

    found = coverage(), coverage(independent=True), coverage(inclusion="coin")
    proven, asymptotic, heuristic = Coverage.PROVEN, Coverage.ASYMPTOTIC, Coverage.HEURISTIC
    if name.startswith("one-run"):
        assert found == (heuristic, heuristic, proven)
    elif name in VALID:
        assert found == (asymptotic, proven, asymptotic)
    else:
        assert found == (heuristic, heuristic, heuristic)


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
    assert [bound.method for bound in exact] == [DEFAULT, "normal-scores"]
    assert not any(METHODS[bound.method].printed for bound in (*sampled, *exact))
