"""What every bound of the catalogue must do: a new one is held to this list without another line.

A bound that rightly breaks a property stands in ``EXCEPT`` with the reason.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from canaryproof.verify.audit.bounds.catalogue import MEASURED
from canaryproof.verify.audit.bounds.lower_bound import (
    TABLES,
    BoundKind,
    Coverage,
    Method,
    discrete_null,
    normal_null,
    prepare,
)

pytestmark = pytest.mark.usefixtures("few_draws")

SEEN, UNSEEN = np.random.default_rng(0).normal([[1.5], [0.0]], 1.0, (2, 300))
NULL = normal_null()

_HALF = "the threshold is chosen on one half of the scores, and may count fewer of the other half"
_LARGEST = "the threshold is that of the largest finite estimate, whose limits may be worse"
_DISTINCT = "equal scores count as distinct, as in print"
_PURE = "it says nothing of δ > 0"
EXCEPT = {
    "positive": {"pure-dp": _PURE},
    "cap": {"pure-dp": _PURE},
    "order": {"bayesian": _HALF, "pure-dp": _PURE},
    "scores": {"bayesian": _HALF, "canife": _LARGEST, "canife-code": _LARGEST},
    # Which estimate is the largest depends on δ.
    "delta": {"bayesian": _HALF, "canife": _LARGEST},
    "ties": {"andrew": _DISTINCT, "jagielski": _DISTINCT},
}


def every_bound(prop: str = "", **needed: object) -> pytest.MarkDecorator:
    """Parametrise over the catalogue, but for the exceptions to a property and methods without an attribute's value."""
    methods = [
        method
        for name, method in MEASURED.items()
        if name not in EXCEPT.get(prop, {}) and all(getattr(method, field) == value for field, value in needed.items())
    ]
    return pytest.mark.parametrize("method", methods, ids=lambda method: method.name)


def served(method: Method, seen: object, unseen: object, null: object = NULL) -> list:
    """Samples of these scores, with unobserved ones and with an exact null, as far as a method takes them."""
    return [scores for scores in (prepare(seen, unseen), prepare(seen, null=null)) if method.can_use(scores)]


def value(method, scores, delta=1e-5, alpha=0.05):
    return method.values(scores, delta, alpha)[0][0]


# What it says of itself.


@every_bound("positive")
def test_it_says_what_it_is(method):
    for scores in served(method, SEEN, UNSEEN):
        bound = method.bound(scores, 1e-5, 0.1)
        assert (bound.method, bound.confidence, bound.assumptions) == (method.name, 0.9, method.assumptions)
        assert bound.value == method.compute(scores, 1e-5, 0.1)[0][0] > 0.0
        assert bound.assumptions
        assert (bound.upper is not None) is (bound.kind is BoundKind.POSTERIOR)
        assert bound.upper is None or bound.value < bound.upper
        assert bound.threshold is None or math.isfinite(bound.threshold)
        assert math.isfinite(bound.cap) is (scores.null is None)


@every_bound()
def test_what_is_known_of_its_coverage_depends_on_the_scores(method):
    def coverage(**options):
        return method.coverage(prepare(SEEN, **(needs | options)))

    needs = {"null": NULL} if method.needs == "null" else {"unobserved": UNSEEN}
    proven, asymptotic, heuristic = Coverage.PROVEN, Coverage.ASYMPTOTIC, Coverage.HEURISTIC
    known = {(asymptotic, proven, asymptotic), (heuristic, heuristic, proven)} | {
        (each,) * 3 for each in (proven, heuristic)
    }
    assert (coverage(), coverage(independent=True), coverage(inclusion="coin")) in known


# Where it is zero, and where it is largest.


@pytest.mark.deep(every=3)
@every_bound()
@pytest.mark.parametrize("delta", [0.0, 0.3, 0.999999, math.nextafter(1.0, 0.0)])
def test_it_lies_between_zero_and_its_cap(method, delta):
    for count, null_count in ((1, 1), (1, 5), (5, 1), (2, 3), (40, 7)):
        for scores in served(method, np.linspace(2.0, 4.0, count), np.linspace(-1.0, 2.5, null_count)):
            bound = method.bound(scores, delta, 0.05)
            assert 0.0 <= bound.value <= bound.cap
            assert bound.upper is None or bound.value <= bound.upper


@every_bound()
@pytest.mark.parametrize("alpha", [1e-9, 0.999999999])
def test_it_takes_any_confidence_that_an_audit_takes(method, alpha):
    for scores in served(method, SEEN, UNSEEN):
        bound = method.bound(scores, 1e-5, alpha)
        assert 0.0 <= bound.value <= bound.cap


@every_bound("cap")
def test_perfect_separation_reaches_its_cap(method):
    for scores in served(method, SEEN + 1e3, UNSEEN):
        bound = method.bound(scores, 1e-5, 0.05)
        assert bound.cap > 1.0
        assert bound.value == bound.cap or scores.null is not None


@every_bound("ties")
@pytest.mark.parametrize("tied", [np.ones(300), np.repeat([0.0, 1.0], 150), np.repeat([0.0, 1.0, 2.0], 100)])
def test_equal_scores_of_both_kinds_show_nothing(method, tied):
    atoms, counts = np.unique(tied, return_counts=True)
    for scores in served(method, tied, tied, discrete_null(atoms, counts / len(tied))):
        assert value(method, scores, 0.0) == 0.0


@every_bound()
def test_scores_below_all_others_are_no_evidence(method):
    for scores in served(method, SEEN - 50.0, UNSEEN):
        assert value(method, scores) == 0.0


@every_bound(printed=False, kind=BoundKind.LOWER_BOUND)
@pytest.mark.parametrize("count", [1, 2, 17, 300])
def test_scores_that_lie_where_those_of_the_null_do_show_nothing(method, count):
    places = special.ndtri((np.arange(count) + 0.5) / count)
    for scores in served(method, places, places):
        assert [value(method, scores, delta) for delta in (0.0, 1e-6, 0.5, 0.999)] == [0.0] * 4


@every_bound()
@pytest.mark.parametrize("delta", [0.0, 1e-5, math.nextafter(1.0, 0.0)])
def test_it_takes_scores_that_the_null_never_has(method, delta):
    for masses in ([0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]):
        scores = prepare([0.0, 1.0, 1.0, 1.0, 2.0, 2.0], null=discrete_null([0.0, 1.0, 2.0], masses))
        if method.can_use(scores):
            # Such a score proves that the canary took part.
            found = value(method, scores, delta)
            assert found >= 0.0
            assert delta < 1e-3 or found < math.inf


# What changes it, and what does not.


@every_bound("order")
def test_the_order_of_the_scores_does_not_matter(method):
    for one, other in zip(served(method, SEEN, UNSEEN), served(method, SEEN[::-1], np.roll(UNSEEN, 7)), strict=True):
        assert value(method, one) == value(method, other) > 0.0


@every_bound()
def test_beside_unobserved_scores_it_goes_by_ranks_alone(method):
    seen, unseen = np.rint(4.0 * SEEN), np.rint(4.0 * UNSEEN)
    ranks = np.unique(np.concatenate([seen, unseen]), return_inverse=True)[1].astype(float)
    scores, ranked = prepare(seen, unseen), prepare(ranks[: len(seen)], ranks[len(seen) :])
    assert not method.can_use(scores) or value(method, scores) == value(method, ranked) > 0.0


@every_bound()
def test_the_unit_of_the_scores_does_not_matter(method):
    # Powers of two change no digit.
    scores, scaled = prepare(SEEN, null=NULL), prepare(0.25 * SEEN, null=normal_null(0.25))
    assert not method.can_use(scores) or value(method, scores) == value(method, scaled)


@every_bound()
def test_audits_at_once_are_audits_one_by_one(method):
    rng = np.random.default_rng(4)
    seen, unseen = 1.0 + rng.normal(size=(5, 80)), rng.normal(size=(5, 60))
    for at_once, *alone in zip(
        served(method, seen, unseen), *(served(method, seen[a], unseen[a]) for a in range(5)), strict=True
    ):
        one_by_one = [method.values(scores, 1e-4, 0.1) for scores in alone]
        np.testing.assert_array_equal(method.values(at_once, 1e-4, 0.1), np.concatenate(one_by_one, axis=1))
        with pytest.raises(ValueError, match="one audit, not 5"):
            method.bound(at_once, 1e-4, 0.1)


@every_bound()
def test_it_leaves_the_scores_alone_and_gives_the_same_again(method):
    seen, unseen = SEEN.copy(), UNSEEN.copy()
    for array in (seen, unseen):
        array.flags.writeable = False
    for scores in served(method, seen, unseen):
        for array in (scores.observed, scores.unobserved):
            if array is not None:
                array.flags.writeable = False
        first = method.bound(scores, 1e-5, 0.05)
        TABLES.clear()
        assert method.bound(scores, 1e-5, 0.05) == first


# Half as many sizes as examples: the tables of a size take most of the time, and all properties share them.
SIZES = np.random.default_rng(1).integers(1, 80, (settings.default.max_examples // 2, 2))


def drawn(rng):
    """Audits of any shape and size, each with one that has higher observed scores and lower unobserved ones."""
    count, null_count = rng.choice(SIZES)
    shift, scale = 3.0 * rng.random(), rng.choice([0.5, 1.0, 2.0])
    seen, unseen = shift + scale * rng.standard_t(rng.choice([2.0, 30.0]), count), rng.normal(size=null_count)
    if rng.random() < 0.3:
        seen, unseen = np.rint(2.0 * seen), np.rint(2.0 * unseen)
    raised = seen + rng.exponential(1.0, count) * (rng.random(count) < 0.3)
    lowered = unseen - rng.exponential(1.0, null_count) * (rng.random(null_count) < 0.3)
    return (seen, unseen), (raised, lowered)


@every_bound("scores")
@given(st.integers(0, 2**32 - 1))
def test_higher_observed_and_lower_unobserved_scores_never_lower_it(method, seed):
    rng = np.random.default_rng(seed)
    delta, alpha = 10.0 ** rng.uniform(-7.0, -0.3), rng.choice([1e-4, 0.05, 0.6])
    before, after = drawn(rng)
    for one, other in zip(served(method, *before), served(method, *after), strict=True):
        assert value(method, one, delta, alpha) <= value(method, other, delta, alpha)


@every_bound()
@given(st.integers(0, 2**32 - 1))
def test_more_confidence_never_raises_it(method, seed):
    rng = np.random.default_rng(seed)
    delta, alphas = 10.0 ** rng.uniform(-7.0, -0.3), np.sort(10.0 ** rng.uniform(-7.0, -0.1, 3))
    for scores in served(method, *drawn(rng)[0]):
        found = [value(method, scores, delta, alpha) for alpha in alphas]
        assert found == sorted(found)
        if method.upper is not None:
            upper = [method.upper(scores, delta, alpha)[0][0] for alpha in alphas]
            assert upper == sorted(upper, reverse=True)


@every_bound("delta")
@given(st.integers(0, 2**32 - 1))
def test_a_larger_delta_never_raises_it(method, seed):
    rng = np.random.default_rng(seed)
    deltas, alpha = np.sort(10.0 ** rng.uniform(-7.0, -0.1, 3)), rng.choice([1e-4, 0.05, 0.6])
    for scores in served(method, *drawn(rng)[0]):
        found = [value(method, scores, delta, alpha) for delta in deltas]
        assert found == sorted(found, reverse=True)


# What it refuses.


@every_bound()
def test_it_refuses_levels_outside_their_domain(method):
    (scores, *_) = served(method, SEEN, UNSEEN)
    for delta, alpha, field in (
        (1.0, 0.05, "delta"),
        (-0.1, 0.05, "delta"),
        (math.nan, 0.05, "delta"),
        (0.1, 0.0, "alpha"),
        (0.1, 1.0, "alpha"),
        (0.1, math.nan, "alpha"),
    ):
        with pytest.raises(ValueError, match=f"^{field} must lie"):
            method.values(scores, delta, alpha)


@every_bound()
def test_it_refuses_scores_that_it_does_not_serve(method):
    for scores in (prepare(SEEN, UNSEEN), prepare(SEEN, null=NULL)):
        if not method.can_use(scores):
            with pytest.raises(ValueError, match=rf"^{method.name} needs (an exact null|unobserved scores)$"):
                method.values(scores, 1e-5, 0.05)
