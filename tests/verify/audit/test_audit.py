import dataclasses
import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from canaryproof.kernels import exact_law, null_cosine
from canaryproof.kernels.canaries import Canaries
from canaryproof.verify import audit
from canaryproof.verify.audit import Audit, audit_release, audit_scores
from canaryproof.verify.bounds.catalogue import lower_bounds
from canaryproof.verify.bounds.lower_bound import cosine_null, normal_null, prepare
from canaryproof.verify.estimators import algorithm_1, estimators
from canaryproof.verify.estimators.estimators import from_dimension, from_unobserved

DIM = 10**6
DELTA = 1e-6


def run(count: int = 1000, seed: int = 0) -> np.ndarray:
    return exact_law.cosines(count, DIM, 4.22, np.random.default_rng(seed))


def nulls(count: int = 500, seed: int = 1, dim: int = DIM) -> np.ndarray:
    return null_cosine.ppf(np.random.default_rng(seed).random(count), dim)


def numbers(found: Audit) -> list[float]:
    estimates = [x for e in found.estimates for x in (e.epsilon, e.standard_error, e.low, e.high)]
    checks = [x for c in (found.normality, found.null_law) if c for x in (c.statistic, c.p_value)]
    return [*estimates, *checks, found.standardised_mean, found.deviation_ratio, found.variance_p_value]


@pytest.mark.parametrize("unobserved", [None, nulls()])
def test_estimates_are_the_estimators_own(unobserved: np.ndarray | None) -> None:
    observed = run()
    found = audit_scores(observed, unobserved, DIM, DELTA, 0.9)
    moments = from_dimension(observed, DIM) if unobserved is None else from_unobserved(observed, unobserved)
    assert [estimate.name for estimate in found.estimates] == ["adaptive", "pinned", "fitted", "threshold"]
    for estimate in found.estimates:
        direct = getattr(estimators, estimate.name)(moments, DELTA, 0.9)
        shown = estimate.epsilon, estimate.standard_error, estimate.low, estimate.high
        assert shown == (direct.epsilon, direct.standard_error, direct.low, direct.high)
        low, high = estimate.certified
        assert 0.0 <= high - low <= 4e-16 * high
        assert estimate.epsilon == pytest.approx(low, rel=1e-14)
    assert found.standardised_mean == moments.distance
    assert found.deviation_ratio == moments.ratio
    assert found.variance_p_value == estimators.variance_p_value(moments)
    assert (found.count, found.null_count) == (1000, None if unobserved is None else 500)
    assert (found.dim, found.delta, found.confidence) == (DIM, DELTA, 0.9)


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_adaptive_follows_the_comparison_of_variances(factor: float) -> None:
    found = audit_scores(factor * run(), None, DIM, DELTA)
    adaptive, pinned, fitted, _ = found.estimates
    assert found.equal_variances is (factor == 1.0)
    assert adaptive.epsilon == (pinned if found.equal_variances else fitted).epsilon


def test_the_dimension_may_be_unknown_beside_unobserved_cosines() -> None:
    known, unknown = (audit_scores(run(), nulls(), dim, DELTA) for dim in (DIM, None))
    assert unknown == dataclasses.replace(known, dim=None, null_law=None, blind_spots=None)
    with pytest.raises(ValueError, match="dimension"):
        audit_scores(run(), None, None, DELTA)


def test_the_null_law_check_sees_a_wrong_dimension() -> None:
    for dim in (2, 3, 50, DIM):
        right = audit_scores(run(), nulls(dim=dim), dim, DELTA).null_law
        assert right is not None
        assert right.p_value > 0.001
    wrong = audit_scores(run(), nulls(), 2 * DIM, DELTA).null_law
    assert wrong is not None
    assert wrong.p_value < 1e-3
    assert wrong.statistic == stats.kstest(nulls(), lambda x: null_cosine.cdf(x, 2 * DIM)).statistic


def test_normality_is_tested_from_eight_values_on() -> None:
    assert audit_scores(run(7), None, DIM, DELTA).normality is None
    normal = audit_scores(run(8), None, DIM, DELTA).normality
    assert normal is not None
    assert normal.p_value > 0.001
    skewed = audit_scores(np.exp(1000.0 * run(1000)) / 1000.0, None, DIM, DELTA).normality
    assert skewed is not None
    assert skewed.p_value < 1e-6


def test_an_outlier_beyond_all_floats_has_an_infinite_statistic() -> None:
    normality = audit_scores(np.append(run(5000), 1.0), None, DIM, DELTA).normality
    assert normality == audit.GoodnessOfFit(math.inf, 0.0)


def test_standard_errors_of_mean_and_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    # Estimates and bounds take longer, and have no part in it.
    monkeypatch.setattr(audit, "_ESTIMATORS", ())
    monkeypatch.setattr(audit, "lower_bounds", lambda *_: ())
    many = [audit_scores(run(100, seed), nulls(50, 10**6 + seed), None, DELTA) for seed in range(200)]
    for value, error in (("standardised_mean", "mean_error"), ("deviation_ratio", "ratio_error")):
        spread = np.std([getattr(found, value) for found in many])
        # The spread of 200 draws errs by 5 %, the formula for 50 unobserved cosines by a few more.
        assert np.mean([getattr(found, error) for found in many]) == pytest.approx(spread, rel=0.2)


def test_a_release_is_audited_through_its_canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    release = algorithm_1.release(300, 5000, 4.22, seed=7)
    scores = audit_scores(Canaries(7, 300, 5000).cosines(release), None, 5000, DELTA, 0.9)
    steps: list[int] = []
    monkeypatch.setattr(audit, "_COORDINATES_AT_ONCE", 5000 * 32)
    found = audit_release(release, 300, 7, DELTA, 0.9, steps.append)
    assert found == dataclasses.replace(scores, estimates=found.estimates)
    assert found.estimates[:-1] == scores.estimates
    assert sum(steps) == 300
    assert len(steps) == 10
    norm = found.estimates[-1]
    direct = estimators.norm(release, DELTA, 0.9)
    assert (norm.name, norm.epsilon, norm.low, norm.high) == ("norm", direct.epsilon, direct.low, direct.high)
    other = audit_release(release, 300, 8, DELTA)
    assert abs(other.standardised_mean) < 5.0 * other.mean_error
    assert found.standardised_mean > 3.0 * found.mean_error


@pytest.mark.parametrize("scale", [1e-13, 1e16])
def test_a_release_of_absurd_size_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="largest coordinate must lie between"):
        audit_release(np.array([0.1 * scale, -scale]), 2, 0, DELTA)


@pytest.mark.parametrize("scale", [1.1e-12, 0.9e15])
def test_a_release_of_nearly_absurd_size_is_audited(scale: float) -> None:
    assert np.isfinite(numbers(audit_release(np.array([0.1 * scale, -scale, 0.0]), 5, 0, DELTA))).all()


def test_moments_beyond_any_run_are_refused() -> None:
    with pytest.raises(ValueError, match=r"observed: the standard deviation must be 1e-06 to 1e\+07 times the null's"):
        audit_scores(np.array([0.5, 0.5 + 1e-12]), None, DIM, DELTA)
    with pytest.raises(ValueError, match="observed: the standard deviation must be"):
        audit_scores(np.array([0.5, -0.5]), np.array([0.0, 5e-324]), DIM, DELTA)
    with pytest.raises(ValueError, match="observed: the mean must lie within"):
        audit_scores(np.array([0.5, 0.5 + 1e-9]), np.array([0.0, 1e-9]), DIM, DELTA)


def test_a_mean_that_is_rounding_is_no_signal() -> None:
    found = audit_scores(np.array([0.001, -0.001, 1e-70]), None, DIM, DELTA)
    assert 0.0 < found.standardised_mean < 1e-60
    assert found.estimates[1].epsilon == 0.0


COSINES = st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=12)
FRACTIONS = st.floats(0.0, 1.0, exclude_min=True, exclude_max=True)


@settings(deadline=None)
@given(COSINES, st.none() | COSINES, st.integers(2, 10**12), FRACTIONS, st.floats(1e-9, 1.0 - 1e-9))
@example([1.0, -1.0], None, 10**12, 5e-324, 1.0 - 1e-9)
@example([1.0, 1.0 - 1e-6], None, 2, 0.5, 1.0 - 1e-9)
@example([1.0, 0.0], [1e-7, 0.0], 2, 1e-300, 1.0 - 1e-9)
def test_any_cosines_are_audited_or_refused(
    observed: list[float], unobserved: list[float] | None, dim: int, delta: float, confidence: float
) -> None:
    assume(min(observed) < max(observed))
    assume(unobserved is None or min(unobserved) < max(unobserved))
    null = None if unobserved is None else np.array(unobserved)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = audit_scores(np.array(observed), null, dim, delta, confidence)
        except ValueError as error:
            refusal = str(error)
        else:
            refusal = None
    if refusal is None:
        assert np.isfinite(numbers(found)).all()
    else:
        assert refusal.startswith("observed: ")


@pytest.mark.parametrize("inclusion", ["fixed", "coin"])
def test_bounds_stand_beside_the_estimates_proven_ones_first(inclusion: str) -> None:
    found = audit_scores(run(), nulls(), DIM, DELTA, 0.9, inclusion)
    direct = lower_bounds(prepare(run(), nulls(), inclusion=inclusion), DELTA, 0.9)
    assert found.bounds == direct
    assert found.inclusion == inclusion
    assert found.bounds[0].coverage == ("proven" if inclusion == "coin" else "asymptotic")
    assert {bound.confidence for bound in found.bounds} == {0.9}


def test_the_bounds_null_is_the_exact_law_of_cosines() -> None:
    dim = 50
    observed = 0.2 + 0.1 * np.random.default_rng(1).normal(size=60)
    names = ("fixed-sequence", "band", "andrew")
    found = audit_scores(observed, None, dim, DELTA, bounds=names)
    assert [bound.method for bound in found.bounds] == list(names)
    exact = lower_bounds(prepare(observed, null=cosine_null(dim)), DELTA, 0.95, names)
    normal = lower_bounds(prepare(observed, null=normal_null(dim**-0.5)), DELTA, 0.95, names)
    assert found.bounds == exact
    assert exact[2].value != normal[2].value


def test_a_release_has_the_bounds_of_its_cosines() -> None:
    release = algorithm_1.release(40, 1000, 1.0, 5)
    found = audit_release(release, 40, 5, DELTA, bounds=("bonferroni",))
    cosines = Canaries(5, 40, 1000).cosines(release)
    assert found.bounds == lower_bounds(prepare(cosines, null=cosine_null(1000)), DELTA, 0.95, ("bonferroni",))


def test_a_bound_that_does_not_serve_is_refused() -> None:
    with pytest.raises(ValueError, match="one-run needs unobserved scores"):
        audit_scores(run(), None, DIM, DELTA, bounds=("one-run",))


def test_the_dilution_of_a_release_is_told_where_the_noise_is_given() -> None:
    dim, count, sigma = 4000, 40, 1.5
    rng = np.random.default_rng(5)
    noise = rng.normal(0.0, sigma, dim)
    data = np.zeros(dim)
    data[0] = 2.0 * sigma * math.sqrt(dim)
    release = Canaries(3, count, dim).sum(np.arange(count)) + noise
    for extra, expected in ((0.0, 0.0), (1.0, 4.0)):
        found = audit_release(release + extra * data, count, 3, DELTA, noise_multiplier=sigma).blind_spots
        assert found is not None
        assert found.dilution == pytest.approx(expected, abs=0.4)
        square = float((release + extra * data) @ (release + extra * data))
        assert found.dilution == pytest.approx(square / (sigma**2 * dim) - 1.0, rel=1e-9)
        assert found.noise_multiplier == sigma
        assert found.given
    unknown = audit_release(release, count, 3, DELTA).blind_spots
    assert unknown is not None
    assert unknown.dilution is None
    assert not unknown.given
