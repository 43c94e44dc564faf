import dataclasses
import json
import math
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.stats.diagnostic import normal_ad

from canaryproof.kernels import exact_law, gaussian_mechanism, null_cosine
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.accounting.accountant import Neighbours
from canaryproof.verify.audit.answer import inputs, misuse, release_sums, report, shape
from canaryproof.verify.audit.answer.inputs import epsilon_at
from canaryproof.verify.audit.answer.judgement import DOUBTFUL_INPUT, NOISE_WARNINGS, NOTES, WRONG_INPUT
from canaryproof.verify.audit.answer.misuse import MisuseWarning, Withheld, products_with_rest
from canaryproof.verify.audit.answer.report import scores_digest
from canaryproof.verify.audit.answer.result import AuditRow
from canaryproof.verify.audit.answer.run_audit import Audit, audit, audit_release, finish
from canaryproof.verify.audit.answer.shape import GoodnessOfFit
from canaryproof.verify.audit.answer.text import answer, checks, details, no_estimate
from canaryproof.verify.audit.bounds import participations
from canaryproof.verify.audit.bounds.catalogue import METHODS, lower_bounds
from canaryproof.verify.audit.bounds.lower_bound import LowerBound, cosine_null, normal_null, prepare
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli, shuffled_epochs
from canaryproof.verify.audit.canaries.scores import RoundsRecord, Score, Scores
from canaryproof.verify.audit.estimators import algorithm_1, epsilon_estimators
from canaryproof.verify.audit.estimators.moments import from_dimension, from_two_groups
from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces
from canaryproof.verify.audit.markup.digits import number
from tests.statuses import has_failed, has_passed, ruling

DIM = 10**6
DELTA = 1e-6


def run(count: int = 1000, seed: int = 0) -> np.ndarray:
    return exact_law.cosines(count, DIM, 4.22, np.random.default_rng(seed))


def nulls(count: int = 500, seed: int = 1, dim: int = DIM) -> np.ndarray:
    return null_cosine.ppf(np.random.default_rng(seed).random(count), dim)


def of(
    observed: np.ndarray,
    unobserved: np.ndarray | None = None,
    dim: int | None = DIM,
    confidence: float = 0.95,
    bounds: tuple[str, ...] = (),
    inclusion: str = "fixed",
) -> Audit:
    """Audit scores whatever they look like: what is a misuse is another module's concern."""
    return audit(Scores(observed, unobserved, dim, inclusion), DELTA, confidence, bounds=bounds, force=True)


def shown(bounds: tuple[LowerBound, ...]) -> list[tuple[object, ...]]:
    return [(b.method, b.kind, b.value, math.inf if b.upper is None else b.upper, b.coverage, b.cap) for b in bounds]


def rows(found: Audit) -> list[tuple[object, ...]]:
    return [(row.name, row.kind, row.low, row.high, row.coverage, row.cap) for row in found.bounds]


def numbers(found: Audit) -> list[float]:
    estimates = [x for e in found.estimates for x in (e.epsilon, e.standard_error, e.low, e.high)]
    checks = [x for c in (found.normality, found.null_law) if c for x in (c.statistic, c.p_value)]
    return [*estimates, *checks, found.standardised_mean, found.deviation_ratio, found.variance_p_value]


@pytest.mark.parametrize("alone", [True, False])
def test_estimates_are_the_estimators_own(alone: bool) -> None:
    observed, unobserved = run(), None if alone else nulls()
    found = of(observed, unobserved, confidence=0.9)
    moments = from_dimension(observed, DIM) if unobserved is None else from_two_groups(observed, unobserved)
    assert [estimate.name for estimate in found.estimates] == ["adaptive", "pinned", "fitted", "threshold"]
    for estimate in found.estimates:
        direct = getattr(epsilon_estimators, f"{estimate.name}_estimate")(moments, DELTA, 0.9)
        shown = estimate.epsilon, estimate.standard_error, estimate.low, estimate.high
        assert shown == (direct.epsilon, direct.standard_error, direct.low, direct.high)
        low, high = estimate.enclosure
        assert 0.0 <= high - low <= 4e-16 * high
        assert estimate.epsilon == pytest.approx(low, rel=1e-14)
    assert found.standardised_mean == moments.distance
    assert found.deviation_ratio == moments.ratio
    assert found.variance_p_value == epsilon_estimators.variance_p_value(moments)
    assert (found.count, found.null_count) == (1000, None if unobserved is None else 500)
    assert (found.dim, found.delta, found.confidence) == (DIM, DELTA, 0.9)


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_adaptive_follows_the_comparison_of_variances(factor: float) -> None:
    found = of(factor * run())
    adaptive, pinned, fitted, _ = found.estimates
    assert found.has_equal_variances is (factor == 1.0)
    assert adaptive.epsilon == (pinned if found.has_equal_variances else fitted).epsilon


def test_the_dimension_may_be_unknown_beside_unobserved_cosines() -> None:
    known, unknown = (of(run(), nulls(), dim) for dim in (DIM, None))
    assert unknown == dataclasses.replace(known, null_law=None)
    assert (unknown.dim, unknown.blind_spots) == (None, None)
    assert known.blind_spots is not None
    # The atlas begins at 1,000 dimensions.
    few, many = (
        audit(Scores(exact_law.cosines(1000, dim, 4.22, np.random.default_rng(2)), dim=dim), DELTA, claim=50.0)
        for dim in (999, 1000)
    )
    assert few.blind_spots is None
    assert many.blind_spots is not None
    for result in (known, unknown, few, many):
        assert result.has_blind_spots is (result.blind_spots is not None)


def test_the_null_law_check_sees_a_wrong_dimension() -> None:
    for dim in (2, 3, 50, DIM):
        right = of(run(), nulls(dim=dim), dim).null_law
        assert right is not None
        assert right.p_value > 0.001
    wrong = of(run(), nulls(), 2 * DIM).null_law
    assert wrong is not None
    assert wrong.p_value < 1e-3
    assert wrong.statistic == stats.kstest(nulls(), lambda x: null_cosine.cdf(x, 2 * DIM)).statistic


def test_normality_is_tested_from_eight_values_on() -> None:
    assert of(run(7)).normality is None
    normal = of(run(8)).normality
    assert normal is not None
    assert normal.p_value > 0.001
    skewed = of(np.exp(1000.0 * run(1000)) / 1000.0).normality
    assert skewed is not None
    assert skewed.p_value < 1e-6


# One for each piece of the p-value's formula.
@pytest.mark.parametrize(
    ("count", "key", "power"), [(8, 0, 1.0), (100, 3, 1.0), (300, 1, 1.0), (300, 3, 1.2), (3000, 4, 1.5)]
)
def test_normality_is_that_of_statsmodels(monkeypatch: pytest.MonkeyPatch, count: int, key: int, power: float) -> None:
    # In several pieces, the last one not full.
    monkeypatch.setattr(shape, "_PIECE", 64)
    scores = np.random.default_rng(key).normal(size=count)
    scores = np.sign(scores) * np.abs(scores) ** power / 1e6
    statistic, p_value = normal_ad(scores)
    assert shape.normality(scores) == GoodnessOfFit(float(statistic), float(p_value))


def test_an_outlier_beyond_all_floats_has_an_infinite_statistic() -> None:
    normality = of(np.append(run(5000), 1.0)).normality
    assert normality == GoodnessOfFit(math.inf, 0.0)


def test_standard_errors_of_mean_and_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    # Estimates and bounds take longer, and have no part in it.
    monkeypatch.setattr(inputs, "_ESTIMATORS", ())
    monkeypatch.setattr(inputs, "lower_bounds", lambda *_: ())
    many = [of(run(100, seed), nulls(50, 10**6 + seed), None) for seed in range(200)]
    for value, error in (("standardised_mean", "mean_error"), ("deviation_ratio", "ratio_error")):
        spread = np.std([getattr(found, value) for found in many])
        # The spread of 200 draws errs by 5 %, the formula for 50 unobserved cosines by a few more.
        assert np.mean([getattr(found, error) for found in many]) == pytest.approx(spread, rel=0.2)


def test_the_error_of_the_mean_is_that_of_the_scores() -> None:
    scores = run(9)
    assert of(scores).mean_error == pytest.approx(math.sqrt(DIM) * stats.sem(scores, ddof=0), rel=1e-12)


def alone(release: Array, canaries: Canaries) -> Array:
    """Cosines of canaries with the release without all others, from their vectors."""
    vectors = np.array([canaries.vector(j) for j in range(canaries.count)], np.float64)
    scored = release - vectors.sum(axis=0) + vectors
    return np.asarray((vectors * scored).sum(axis=1) / np.linalg.norm(scored, axis=1))


def test_a_release_is_audited_through_its_canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    release = algorithm_1.release(300, 5000, 4.22, seed=7)
    rest = release - Canaries(7, 300, 5000).sum()
    cosines = alone(release, Canaries(7, 300, 5000))
    scores = audit(Scores(cosines, dim=5000, inserted=1), DELTA, 0.9)
    steps: list[int] = []
    monkeypatch.setattr(release_sums, "_COORDINATES_AT_ONCE", 5000 * 32)
    found = audit_release(release, Canaries(7, 300, 5000), DELTA, 0.9, advance=steps.append)
    # A release says the shape of its cosines, which is tested where scores alone are given.
    assert found.shape.reason == ""
    np.testing.assert_allclose(found.scores.observed, cosines, rtol=0.0, atol=1e-7)
    assert found.release_norm == pytest.approx(np.linalg.norm(release), rel=1e-14)
    assert found.residual_norm == pytest.approx(np.linalg.norm(rest), rel=1e-12)
    for row, other in zip(found.estimates[:-1], scores.estimates, strict=True):
        assert (row.epsilon, row.low, row.high) == pytest.approx((other.epsilon, other.low, other.high), rel=1e-2)
    assert sum(steps) == 300
    assert len(steps) == 10
    norm = found.estimates[-1]
    direct = epsilon_estimators.norm_estimate(rest, DELTA, 0.9)
    assert norm.name == "norm"
    expected = direct.epsilon, direct.low, direct.high
    assert (norm.epsilon, norm.low, norm.high) == pytest.approx(expected, rel=1e-3)
    other = audit_release(release, Canaries(8, 300, 5000), DELTA, force=True)
    assert abs(other.standardised_mean) < 5.0 * other.mean_error
    assert found.standardised_mean > 3.0 * found.mean_error


def test_beside_orthonormal_canaries_all_other_directions_are_unobserved() -> None:
    canaries = OrthonormalCanaries(7, 3000, 8000)
    release = canaries.sum() + 1.54 * np.random.default_rng(0).standard_normal(8000)
    found = audit_release(release, canaries, DELTA, noise_multiplier=1.54)
    assert (found.count, found.null_count, found.claim) == (3000, 5000, pytest.approx(3.01, abs=0.01))
    every = OrthonormalCanaries(7, 8000, 8000).cosines(release)
    np.testing.assert_array_equal(found.scores.observed, every[:3000])
    np.testing.assert_array_equal(found.scores.unobserved, every[3000:])
    # The closed-form null would take the canaries for noise; what is fitted to the others does not.
    estimate = found.estimates[0]
    assert abs(estimate.epsilon - 3.01) < 5.5 * estimate.standard_error
    # No number of independent canaries sees less than 0.28 in so few dimensions.
    (share,) = (part for part in found.blind_spots.noticed if part.mechanism == "no-noise-on-a-share")
    assert share.low < 0.2
    with pytest.raises(ValueError, match="canaries: must leave 2 of 8,000 directions to compare with, not 1"):
        audit_release(release, OrthonormalCanaries(7, 7999, 8000), DELTA)
    with pytest.raises(ValueError, match="normal-scores needs an exact null"):
        audit_release(release, canaries, DELTA, bounds=("normal-scores",))


def test_a_release_of_one_canary_is_refused() -> None:
    canaries = Canaries(7, 1, 500)
    with pytest.raises(ValueError, match="canaries: an audit needs at least 2"):
        audit_release(canaries.vector(0) + 1.0, canaries, DELTA)


@pytest.mark.parametrize("rounds", [1, 8])
def test_the_largest_cosines_over_rounds_have_no_estimate_though_so_few_look_normal(rounds: int) -> None:
    clients = CanaryClients(Canaries(6, 80, 500), shuffled_epochs(40, 40 // rounds, 1, 6, Insertion(80, observed=40)))
    rng = np.random.default_rng(6)
    for t in range(rounds):
        clients.add(clients.total(t, 1.0) + rng.normal(size=500), t)
    found = audit(clients.scores("largest"), 1e-5, claim=4.4)
    assert found.shape.reason == ""
    assert (found.estimate is None) == (rounds > 1)
    assert ("Algorithm 3" in no_estimate(found)) == (rounds > 1)
    # The details have it.
    assert found.estimates


@pytest.mark.parametrize("scale", [1.1e-12, 0.9e15])
def test_a_release_of_nearly_absurd_size_is_audited(scale: float) -> None:
    assert np.isfinite(
        numbers(audit_release(np.array([0.1 * scale, -scale, 0.0]), Canaries(0, 5, 3), DELTA, force=True))
    ).all()


def test_a_mean_that_is_rounding_is_no_signal() -> None:
    found = of(np.array([0.001, -0.001, 1e-70]))
    assert 0.0 < found.standardised_mean < 1e-60
    assert found.estimates[1].epsilon == 0.0


COSINES = st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=12)
FRACTIONS = st.floats(0.0, 1.0, exclude_min=True, exclude_max=True)


@settings(deadline=None)
@given(COSINES, st.none() | COSINES, st.integers(2, 10**12), FRACTIONS, st.floats(1e-9, 1.0 - 1e-9))
@example([1.0, -1.0], None, 10**12, 5e-324, 1.0 - 1e-9)
@example([1.0, 1.0 - 1e-6], None, 2, 0.5, 1.0 - 1e-9)
@example([1.0, 0.0], [1e-7, 0.0], 2, 1e-300, 1.0 - 1e-9)
@example([0.0, 1.0], [0.9375, 1.0], 34, 0.5, 0.5)
@example([0.0] * 4 + [1.0] * 4, None, 2, 0.5, 0.5)
def test_any_cosines_are_audited_or_refused(
    observed: list[float], unobserved: list[float] | None, dim: int, delta: float, confidence: float
) -> None:
    assume(min(observed) < max(observed))
    assume(unobserved is None or min(unobserved) < max(unobserved))
    null = None if unobserved is None else np.array(unobserved)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = audit(Scores(observed, null, dim), delta, confidence, force=True)
        except ValueError as error:
            refusal = str(error)
        else:
            refusal = None
    if refusal is None:
        assert np.isfinite(numbers(found)).all()
    else:
        assert refusal.startswith("observed: " if delta >= sys.float_info.min else "delta: ")


@pytest.mark.parametrize("inclusion", ["fixed", "coin"])
def test_bounds_stand_beside_the_estimates_proven_ones_first(inclusion: str) -> None:
    # Fair coins give equal numbers, nearly.
    unobserved = nulls(1000)
    found = of(run(), unobserved, confidence=0.9, inclusion=inclusion)
    direct = lower_bounds(prepare(run(), unobserved, inclusion=inclusion), DELTA, 0.9)
    assert rows(found) == shown(direct)
    assert found.bounds[0].coverage == ("proven" if inclusion == "coin" else "asymptotic")
    assert found.bound == found.bounds[0]


def test_the_bounds_null_is_the_exact_law_of_cosines() -> None:
    dim = 50
    observed = 0.2 + 0.1 * np.random.default_rng(1).normal(size=60)
    names = ("fixed-sequence", "band", "andrew")
    found = of(observed, dim=dim, bounds=names)
    assert [row.name for row in found.bounds] == list(names)
    exact = lower_bounds(prepare(observed, null=cosine_null(dim)), DELTA, 0.95, names)
    normal = lower_bounds(prepare(observed, null=normal_null(dim**-0.5)), DELTA, 0.95, names)
    assert rows(found) == shown(exact)
    assert exact[2].value != normal[2].value


def test_a_release_has_the_bounds_of_its_cosines() -> None:
    release = algorithm_1.release(40, 1000, 1.0, 5)
    found = audit_release(release, Canaries(5, 40, 1000), DELTA, bounds=("band",))
    cosines = found.scores.observed
    np.testing.assert_allclose(cosines, alone(release, Canaries(5, 40, 1000)), rtol=0.0, atol=1e-3)
    assert rows(found) == shown(lower_bounds(prepare(cosines, null=cosine_null(1000)), DELTA, 0.95, ("band",)))


def test_a_claim_of_a_smaller_delta_holds_at_a_larger_one() -> None:
    assert audit(Scores(run(), dim=DIM), 1e-5, claim=accountant.epsilon_delta(3.0, 1e-6)).claim == 3.0


def test_the_dilution_of_a_release_is_told_where_the_noise_is_given() -> None:
    dim, count, sigma = 4000, 40, 1.5
    rng = np.random.default_rng(5)
    noise = rng.normal(0.0, sigma, dim)
    data = np.zeros(dim)
    data[0] = 2.0 * sigma * math.sqrt(dim)
    canaries = Canaries(3, count, dim)
    release = canaries.sum(np.arange(count)) + noise
    for extra, expected in ((0.0, 0.0), (1.0, 4.0)):
        found = audit_release(release + extra * data, canaries, DELTA, noise_multiplier=sigma, force=True)
        assert found.dilution == pytest.approx(expected, abs=0.4)
        square = float((noise + extra * data) @ (noise + extra * data))
        assert found.dilution == pytest.approx(square / (sigma**2 * dim) - 1.0, rel=1e-3, abs=1e-4)
        assert found.blind_spots is not None
        assert found.blind_spots.noise_multiplier == sigma
        assert found.blind_spots.given
    unknown = audit_release(release, canaries, DELTA)
    assert unknown.dilution is None
    assert unknown.blind_spots is not None
    assert not unknown.blind_spots.given
    # Where none is claimed, the lists are for ε = 3, and for the noise that has it.
    assert unknown.blind_spots.epsilon == 3.0
    assert float(gaussian_mechanism.epsilon(DELTA, unknown.blind_spots.noise_multiplier)) == pytest.approx(3.0)


def hidden(noise: float, data: float, seed: int = 0, notice: float = 0.5) -> Audit:
    """Audit a release whose noise is claimed to be 1, with data of a norm of so many √d."""
    dim, rng = 2000, np.random.default_rng(seed)
    canaries, others = Canaries(seed, 300, dim), rng.normal(size=dim)
    release = canaries.sum() + noise * rng.normal(size=dim) + data * math.sqrt(dim) * others / np.linalg.norm(others)
    return audit_release(release, canaries, DELTA, noise_multiplier=1.0, notice=notice)


def test_no_gate_passes_where_data_hide_that_there_is_no_noise() -> None:
    for noise in (0.0, 1.0):
        found = hidden(noise, 4.0)
        assert (ruling(found), found.noticed_share) == ("CANNOT SAY: leak", None)
        assert not has_passed(hidden(noise, 4.0, notice=0.01))
        words = " ".join(f"{found} {found.details()}".split())
        assert "more than the claimed noise is seen, which would have hidden missing noise" in words
        assert "canaries would notice" not in words
        assert "Take others' data out" in words
        assert found.blind_spots is not None
        assert all(part.mechanism != "less-noise" for part in found.blind_spots.noticed)


def test_data_cannot_hide_what_is_not_there() -> None:
    """An honest release without data is taken for a longer one with probability 1e-4."""
    assert not any(hidden(1.0, 0.0, seed).is_masked for seed in range(30))


def test_the_share_that_is_noticed_beside_data_is_noticed_in_most_releases() -> None:
    """At most 15 of 30 are noticed with probability 4e-8 if each is with 90%; more than 15 with 1e-8 if with 10%."""
    found = hidden(1.0, 0.6)
    assert found.noticed_share is not None
    assert 0.36 < found.masking_variance < 0.6
    noticed = [has_failed(hidden(found.noticed_share, 0.6, seed), "noise", "leak") for seed in range(30)]
    assert sum(noticed) > 15
    bare = hidden(1.0, 0.0).noticed_share
    assert bare is not None
    assert sum(has_failed(hidden(bare, 0.6, seed), "noise", "leak") for seed in range(30)) <= 15


@pytest.mark.parametrize(("neighbours", "sigma"), [("add-or-remove", 1.0), ("replace", 2.0)])
def test_no_gate_passes_a_claim_that_its_own_noise_contradicts(neighbours: Neighbours, sigma: float) -> None:
    dim, rng = 2000, np.random.default_rng(3)
    canaries = Canaries(3, 300, dim)
    release = canaries.sum() + sigma * rng.normal(size=dim)
    # Replacing moves a sum twice as far, so that both have the ε of noise 1.
    least = float(gaussian_mechanism.epsilon(DELTA, 1.0))
    # Accountants differ by up to 1%, and an ε is printed with three digits.
    for claim, passes in ((least, True), (least / 1.0099, True), (least / 1.0101, False), (0.9 * least, False)):
        found = audit_release(
            release, canaries, DELTA, claim=claim, noise_multiplier=sigma, neighbours=neighbours, confidence=0.99
        )
        assert ruling(found) == ("PASSED" if passes else "NOT PASSED: accounting")
        assert (f"ε = {number(least)} follows from noise multiplier {sigma:g}" in answer(found)) != passes
    # Nor does a claim of more noise than is said to be in the release, which is then its own.
    found = audit_release(release, canaries, DELTA, claim=accountant.gaussian(1.1 * sigma), noise_multiplier=sigma)
    assert has_failed(found, "accounting")
    found = audit_release(release, canaries, DELTA, claim=accountant.gaussian(sigma), noise_multiplier=sigma)
    assert not has_failed(found, "accounting", "noise")


def test_rounds_whose_noise_is_measured_too_large_notice_less() -> None:
    traces = RoundTraces(np.full(10, 0.5), np.full(10, 10.0), 2000, residual=False, rounds=10)
    scores = Scores(run(), dim=2000, record=RoundsRecord(Score.KNOWN_ROUNDS, 1, 0, 10, 0, 0, traces))
    known = RoundsRecord(Score.KNOWN_ROUNDS, 1, 0, 10, 0, 0, dataclasses.replace(traces, residual=True))
    found = audit(scores, DELTA, noise_multiplier=0.1)
    assert found.mechanism is not None
    # The most that others' data may be is exceeded by the measured variance with probability 10%.
    most = math.sqrt(found.masking_variance + 1.0) * 0.1
    assert stats.norm.sf(found.mechanism.traces.statistic(most)) == pytest.approx(0.1, rel=1e-6)
    assert most > found.mechanism.measured.value
    # Where these are known, it is not their length but something wrong that lengthens the noise: seen at level 1e-4.
    of_known = Scores(run(), dim=2000, record=known)
    assert audit(of_known, DELTA, noise_multiplier=0.1).masking_variance == found.masking_variance
    for score, is_masked in ((-3.6, False), (-3.8, True)):
        claim = optimize.brentq(lambda noise, score=score: traces.statistic(noise) - score, 0.1, 1.0)
        audited = audit(of_known, DELTA, noise_multiplier=claim)
        assert (audited.is_masked, audited.masking_variance > 0.0) == (is_masked, is_masked)


@cache
def claimed() -> Audit:
    return audit(Scores(run(), dim=DIM), DELTA, claim=1.0, notice=0.1)


def made(low: float, bound: float | None = 0.5, coverage: str = "asymptotic") -> Audit:
    """Replace the estimate's lower end and the bounds of some audit with a claim of 1."""
    found = claimed()
    (first, *rest) = found.estimates
    given = (
        ()
        if bound is None
        else (AuditRow("fixed-sequence", 1, "lower bound", bound, bound, math.inf, coverage, math.inf, "nothing"),)
    )
    return finish(
        dataclasses.replace(found, estimates=(dataclasses.replace(first, low=low, high=9.0), *rest), bounds=given)
    )


@pytest.mark.parametrize(
    ("numbers", "status"),
    [
        ((0.9,), "as claimed"),
        ((1.0,), "as claimed"),
        ((1.1,), "cannot say"),
        ((1.1, None), "cannot say"),
        ((1.1, 1.0), "cannot say"),
        ((1.1, 1.01), "failed"),
        ((1.1, 1.01, "proven"), "failed"),
        ((1.1, 1.01, "heuristic"), "cannot say"),
    ],
)
def test_a_claim_is_compared_with_the_estimate_and_the_best_bound(numbers: tuple[Any, ...], status: str) -> None:
    assert made(*numbers).finding("leak").status == status


@pytest.mark.parametrize("alone", [True, False])
def test_a_trace_is_seen_by_the_bound_the_noise_or_the_mean(alone: bool) -> None:
    unobserved = None if alone else nulls()
    found = of(run(), unobserved)
    others = 0.0 if unobserved is None else 1.0 / len(unobserved)
    error = math.sqrt(found.deviation_ratio**2 / 1000 + others)
    for bounds, mechanism in ((made(0.0, 0.0).bounds, None), ((), None), (made(0.0, 0.5, "heuristic").bounds, None)):
        for mean, seen in ((3.001 * error, True), (2.999 * error, False), (-9.0, False)):
            case = dataclasses.replace(found, bounds=bounds, mechanism=mechanism, standardised_mean=mean)
            assert case.has_trace == seen
    # A bound above 0 is enough. The measured noise has a trace of its own, which decides before the mean.
    assert dataclasses.replace(found, bounds=made(0.0, 0.01).bounds, standardised_mean=-9.0).has_trace
    for p_value, seen in ((0.0013, True), (0.0014, False)):
        mechanism: Any = SimpleNamespace(traces=SimpleNamespace(trace_p_value=p_value), claimed=None)
        assert dataclasses.replace(found, bounds=(), mechanism=mechanism, standardised_mean=9.0).has_trace == seen


def test_a_claim_beyond_all_bounds_is_at_its_cap() -> None:
    rng = np.random.default_rng(0)
    apart = audit(Scores(rng.normal(50.0, 1.0, 1000), rng.normal(size=1000), kind="any"), DELTA, claim=8.0)
    assert ruling(apart) == "CANNOT SAY: leak"
    assert apart.noticed_share is None
    assert "this bound cannot be above 6.48" in str(apart)
    exceeded = audit(apart.scores, DELTA, claim=3.0)
    # Losses of one model whose members were fixed have a heuristic bound, which proves nothing.
    assert ruling(exceeded) == "CANNOT SAY: leak"
    coins = Scores(apart.scores.observed, apart.scores.unobserved, kind="any", inclusion="coin")
    assert ruling(audit(coins, DELTA, claim=3.0)) == "NOT PASSED: leak"


def test_scores_beyond_all_moments_are_audited_by_their_ranks() -> None:
    observed, unobserved = np.random.default_rng(0).normal([[1.5], [0.0]], 1.0, (2, 300))
    highest = np.argmax(observed)
    assert observed[highest] > unobserved.max()
    far = observed.copy()
    far[highest] = 1e300
    ranked, plain = (audit(Scores(each, unobserved, kind="any"), DELTA, claim=1.0) for each in (far, observed))
    assert (ranked.scores.ranked, plain.scores.ranked) == (True, False)
    assert "by their ranks" in str(ranked)
    assert ranked.bound == plain.bound


def test_without_recorded_deltas_no_noise_is_measured_or_composed() -> None:
    record = RoundsRecord(Score.KNOWN_ROUNDS, 1, 0, 10, 0, 0, None)
    result = audit(Scores(run(), dim=DIM, record=record), 1e-5, noise_multiplier=1.0)
    assert result.mechanism is None
    assert "composed" not in [row.name for row in (*result.estimates, *result.bounds)]
    assert "composed-bound" not in [row.name for row in result.bounds]
    assert result.level == pytest.approx(0.05)


def test_without_a_trace_nothing_is_seen() -> None:
    rng = np.random.default_rng(0)
    equal = audit(Scores(rng.normal(size=1000), rng.normal(size=1000), kind="any"), DELTA, claim=3.0)
    assert ruling(equal) == "CANNOT SAY: leak"
    assert "no trace is seen" in " ".join(str(equal).split())


def test_a_rising_transform_changes_no_headline() -> None:
    rng = np.random.default_rng(0)
    observed, unobserved = rng.normal(1.5, 1.0, 800), rng.normal(size=800)
    one, other = (
        audit(Scores(f(observed), f(unobserved), kind="any", inclusion="coin"), DELTA, claim=3.0, notice=0.3)
        for f in (np.array, np.exp)
    )
    assert str(one).split("\n\n")[0] == str(other).split("\n\n")[0]
    assert one.findings == other.findings
    assert ruling(one) == ruling(other) == "PASSED"
    assert one.noticed_share == other.noticed_share


def trained(noise: float, seed: int, rounds: int = 10, **sampled: Any) -> CanaryClients:
    """Train on nothing but noise and 200 canaries."""
    dim, rng = 3000, np.random.default_rng(seed)
    insertion = Insertion(400, observed=200)
    if sampled:
        participation = bernoulli(0, sampled["rate"], rounds, seed, insertion)
    else:
        participation = shuffled_epochs(rounds, 1, 1, seed, insertion)
    clients = CanaryClients(Canaries(seed, 400, dim), participation, noise_multiplier=noise if sampled else None)
    for t in range(rounds):
        clients.add(clients.total(t, 1.0) + noise * rng.normal(size=dim), t)
    return clients


def of_rounds(deltas: Callable[[int, Array], Array], seed: int = 0, epochs: int = 1, noises: Any = 1.0) -> Audit:
    """Audit 400 canaries in 20 rounds an epoch, whose noisy sums a server changes."""
    dim, rng = 2000, np.random.default_rng(seed)
    participation = shuffled_epochs(400, 20, epochs, seed, Insertion(800, observed=400))
    clients = CanaryClients(Canaries(seed, 800, dim), participation)
    for t, noise in enumerate(np.broadcast_to(noises, participation.rounds).tolist()):
        clients.add(deltas(t, clients.total(t, 1.0) + noise * rng.normal(size=dim)), t)
    return audit(clients.scores("known rounds"), 1e-5, claim=accountant.gaussian(1.0, participations=epochs))


def as_released(_: int, total: Array) -> Array:
    return total


def test_noise_that_is_missing_where_canaries_come_back_leaves_the_claim_undecided() -> None:
    """A tenth of the noise in the second epoch, which no canary enters for the first time."""
    honest = of_rounds(as_released, epochs=2)
    assert not any(finding.status == "failed" for finding in honest.findings)
    assert honest.estimate is not None
    found = of_rounds(as_released, epochs=2, noises=[1.0] * 20 + [0.1] * 20)
    assert ruling(found) == "CANNOT SAY: leak"
    assert (found.estimate, found.noticed_share) == (None, None)
    for question in ("noise", "leak"):
        assert "rounds in which canaries come back show less noise than claimed" in found.finding(question).because
    assert "known=" in found.finding("leak").do


def test_noise_that_falls_from_round_to_round_is_composed_of_no_one_multiplier() -> None:
    """The trend is off by some 5.4 standard errors, which is doubted with probability 96%."""
    found = of_rounds(as_released, noises=np.linspace(2.0, 0.7, 20))
    assert ruling(found) == "CANNOT SAY: leak"
    assert found.estimate is None
    assert "rounds differ in their noise" in found.finding("leak").because
    assert "rounds differ in their noise" in no_estimate(found)
    # One multiplier in all rounds is what this bound assumes, and what the others don't.
    coverage = {row.name: row.coverage for row in found.bounds}
    assert coverage.pop("composed-bound") == "heuristic"
    assert "heuristic" not in coverage.values()


def test_shorter_canaries_lower_the_share_even_where_others_updates_are_known() -> None:
    """At half the clip norm the noise looks doubled, and three quarters of it as 1.5 times the claimed noise."""

    def trained(weight: float, noise: float = 1.0) -> Audit:
        drawn = bernoulli(0, 0.5, rounds=20, seed=1, canaries=Insertion(70, observed=60))
        clients, rng = CanaryClients(Canaries(1, 70, 500), drawn, noise_multiplier=1.0), np.random.default_rng(1)
        for t in range(20):
            clients.add(weight * clients.total(t, 1.0) + noise * rng.normal(size=500), t, known=np.zeros(500))
        return audit(clients.scores("likelihood"), 1e-5, claim=accountant.poisson(1.0, rate=0.5, rounds=20))

    assert has_passed(trained(1.0))
    for noise in (1.0, 0.75):
        found = trained(0.5, noise)
        assert ruling(found) == "CANNOT SAY: leak"
        assert found.noticed_share is None
        assert "canaries are shorter than the clip norm" in found.finding("noise").because
        assert "more than the claimed noise is seen" in found.finding("leak").because
        assert found.finding("noise").do == found.finding("leak").do
    # A little more noise leaves a share, which is that of data of as much variance.
    longer = trained(1.0, 1.25)
    assert longer.mechanism is not None
    alone, share = longer.mechanism.noticed_share(longer.noise_level), longer.noticed_share or 0.0
    assert share == pytest.approx(math.sqrt(alone**2 - longer.mechanism.all_traces.largest_noise(0.1) ** 2 + 1.0))


def test_noise_that_a_claim_gives_each_round_is_held_against_no_one_multiplier() -> None:
    """The claim needs more noise than the least, and a loop that says the least would pass with it in all rounds."""
    import dp_accounting as dp

    rounds = [dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(noise)) for noise in np.linspace(0.91, 0.7, 20)]
    claim = accountant.from_event(dp.ComposedDpEvent(rounds))
    drawn = bernoulli(0, 0.1, rounds=20, seed=1, canaries=Insertion(60, observed=50))
    clients = CanaryClients(Canaries(1, 60, 500), drawn, noise_multiplier=0.7)
    rng = np.random.default_rng(1)
    for t in range(20):
        clients.add(clients.total(t, 1.0) + 0.7 * rng.normal(size=500), t, known=np.zeros(500))
    scores = clients.scores("likelihood")
    found = audit(scores, 1e-5, claim=claim)
    assert ruling(found) == "CANNOT SAY: leak"
    assert found.estimate is None
    assert "the claimed rounds have no Gaussian noise of one multiplier" in no_estimate(found)
    assert found.finding("noise").because.startswith("the claimed rounds have no noise of one multiplier")
    assert found.finding("noise").do == "Claim the least noise for all rounds."
    # The bound and the test of the sampling share the level.
    assert found.sampling_test is not None
    assert found.level + found.side_level < 0.05
    with pytest.raises(
        ValueError, match="noise_multiplier: must not be given with a claim whose rounds have no common"
    ):
        audit(scores, 1e-5, claim=claim, noise_multiplier=0.7)


class Server:
    """A server that hands over its velocity, or a sum that is divided by a running scale."""

    def __init__(self, kind: str) -> None:
        self.kind, self.velocity, self.scale = kind, np.zeros(2000), np.zeros(2000)

    def __call__(self, _: int, total: Array) -> Array:
        self.velocity = 0.9 * self.velocity + total
        self.scale = 0.99 * self.scale + 0.01 * total**2
        return self.velocity.copy() if self.kind == "momentum" else total / np.sqrt(self.scale)


@pytest.mark.parametrize(("correlation", "warned"), [(0.22, False), (0.23, True), (-0.22, False), (-0.23, True)])
def test_deltas_are_correlated_where_one_shows_more_than_a_twentieth_of_the_next(
    correlation: float, warned: bool
) -> None:
    scores = trained(1.0, 3).scores("known rounds")
    record = dataclasses.replace(scores.record, correlation=correlation, pairs=9)  # type: ignore[type-var]
    found = audit(Scores(scores.observed, scores.unobserved, dim=scores.dim, record=record), 1e-5)
    assert ("correlated-rounds" in [warning.kind for warning in found.warnings]) == warned
    assert (found.estimate is None) == warned
    assert warned == (correlation**2 > 0.05)


@pytest.mark.parametrize(("server", "kind"), [("momentum", "correlated-rounds"), ("RMSProp", "even-coordinates")])
def test_deltas_that_are_no_plain_sums_have_no_estimate(server: str, kind: str) -> None:
    found = of_rounds(Server(server))
    assert kind in [warning.kind for warning in found.warnings]
    assert found.estimate is None
    assert "no estimate, as" in found.finding("leak").because
    assert not of_rounds(as_released).warnings


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 4), marks=pytest.mark.deep)], ids=str)
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("left", [2, 5, 20, 60])
def test_few_directions_without_a_canary_never_hide_what_is_missing(left: int, weight: float, seeds: range) -> None:
    """Where canaries of norm 1/2 might look like those of norm 1, the input is not as claimed."""
    canaries = OrthonormalCanaries(3, 1000 - left, 1000)
    for seed in seeds:
        release = weight * canaries.sum() + np.random.default_rng(seed).normal(size=1000)
        found = audit_release(release, canaries, 1e-5, noise_multiplier=1.0)
        assert found.null_count == left
        assert found.trace_test is not None
        # A deviation of the norm as large as this has the p-value 1e-4, by Student's law of so many directions.
        _, error, _ = found.trace_test
        assert 2.0 * stats.t.sf(found.unseen_norm / error, left) == pytest.approx(1e-4, rel=1e-6)
        status = found.finding("input").status
        if weight < 1.0:
            assert status in ("failed", "cannot say")
        elif found.unseen_norm >= 0.4:
            assert left < 60
            assert status == "cannot say"
            assert f"only {left} directions without a canary" in found.finding("input").because
        else:
            assert status == "as claimed"


def test_no_estimate_stands_below_a_lower_bound() -> None:
    found = made(2.0, bound=9.5)
    assert found.estimate is None
    assert found.is_contradicted
    assert "the lower bound is above the interval of the estimate" in no_estimate(found)
    assert made(2.0, bound=0.5).estimate is not None


def test_coins_that_the_numbers_refute_prove_nothing() -> None:
    rng = np.random.default_rng(0)
    observed, unobserved = rng.normal(1.0, 1.0, 500), rng.normal(size=5000)
    result = audit(Scores(observed, unobserved, kind="any", inclusion="coin"), 1e-5, claim=0.5)
    assert [warning.kind for warning in result.warnings] == ["coin"]
    assert all(row.coverage != "proven" for row in result.bounds)


@pytest.mark.parametrize("unobserved", [None, np.random.default_rng(1).normal(size=2000)])
def test_what_is_noticed_is_what_the_bound_without_coins_notices(unobserved: Any) -> None:
    # An exact null needs no coins, and the unequal numbers refute them.
    observed, dim = np.random.default_rng(0).normal(0.5, 1.0, 1000), 10_000
    scores = observed / 100.0, None if unobserved is None else unobserved / 100.0, dim
    coin, fixed = (audit(Scores(*scores, inclusion=name), DELTA, claim=3.0) for name in ("coin", "fixed"))
    assert fixed.noticed_share is not None
    assert coin.noticed_share == fixed.noticed_share
    assert coin.blind_spots == fixed.blind_spots
    assert answer(coin) == answer(fixed)


@pytest.mark.parametrize(("rate", "steps", "noise"), [(1 / 8, 64, 0.5), (1 / 20, 20, 0.3)])
def test_unequal_participation_takes_no_bound(rate: float, steps: int, noise: float) -> None:
    rng, dim, count = np.random.default_rng(1), 10**6, 1000
    taken = rng.binomial(steps, rate, count)
    observed = (taken / (noise * math.sqrt(steps)) + rng.normal(size=count)) / math.sqrt(dim)
    result = audit(Scores(observed, rng.normal(size=count) / math.sqrt(dim), dim), 1e-5, claim=30.0)
    assert not result.withheld
    assert result.bound is not None
    assert result.bound.low > 0.5
    assert result.estimate is None or not result.warnings


@pytest.mark.parametrize("bits", [8, 11])
@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e90])
def test_short_floats_are_no_repetitions(bits: int, scale: float) -> None:
    mantissa, exponent = np.frexp(exact_law.cosines(1000, 10**6, 1.54, np.random.default_rng(0)))
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
    rng = np.random.default_rng(1)
    scores = Scores(np.ldexp(rounded, round(math.log2(scale))), scale * rng.normal(size=1000), kind="any")
    result = audit(scores, DELTA)
    assert not result.withheld
    assert {warning.kind for warning in result.warnings} <= {"ties"}


def test_scores_of_known_rounds_decide_by_the_measured_noise() -> None:
    honest, faulty = (trained(noise, 3).scores("known rounds") for noise in (1.0, 0.6))
    claim = accountant.gaussian(1.0)
    result = audit(honest, 1e-5, claim=claim)
    assert ruling(result) == "PASSED"
    assert result.noticed_share is not None
    assert 0.7 < result.noticed_share < 0.95
    assert result.claim == claim.epsilon(1e-5)
    assert result.estimate is not None
    assert result.estimate.name == "composed"
    assert result.estimate.low <= result.claim <= result.estimate.high
    # Each of the two tests has half of what the confidence leaves.
    assert result.level == pytest.approx(0.025)
    assert "97.5% confidence" in " ".join(str(result).split())
    refuted = audit(faulty, 1e-5, claim=claim)
    assert ruling(refuted) == "NOT PASSED: noise"
    # The record measures the noise whatever the score is.
    assert ruling(audit(trained(0.6, 3).scores("largest"), 1e-5, claim=claim)) == "NOT PASSED: noise"
    assert refuted.mechanism is not None
    assert refuted.mechanism.measured.high < 1.0
    # The same noise as an argument is the same claim.
    again = audit(honest, 1e-5, noise_multiplier=1.0)
    assert (again.claim, again.estimates, again.bounds, ruling(again)) == (
        *(result.claim, result.estimates, result.bounds),
        "PASSED",
    )


def test_a_claim_that_counts_on_sampling_does_not_hold_against_known_rounds() -> None:
    clients = trained(0.8, 4, rate=0.25)
    claim = accountant.poisson(0.8, rate=0.25, rounds=10)
    taken = clients.scores("known rounds").record.participations  # type: ignore[union-attr]
    with pytest.raises(
        ValueError, match=rf"^claim: counts on rounds .*: claim\.with_known_rounds\({taken}\), whose ε is "
    ):
        audit(clients.scores("known rounds"), 1e-5, claim=claim)
    once = audit(clients.scores("known rounds"), 1e-5, claim=claim.with_known_rounds(1))
    assert has_failed(once, "sampling")
    assert has_failed(once, "accounting")
    result = audit(clients.scores("likelihood"), 1e-5, claim=claim)
    assert result.claim == claim.epsilon(1e-5)
    assert result.estimate is not None
    assert result.estimate.name == "composed"
    known = audit(clients.scores("known rounds"), 1e-5, claim=claim.with_known_rounds(taken))
    assert not any(finding.status == "failed" for finding in known.findings)


def test_a_claim_of_events_is_composed_with_the_measured_noise() -> None:
    scores = trained(0.5, 4, rate=0.25).scores("likelihood")
    claim = accountant.fixed_batches(1.0, batch=250, records=1000, rounds=10, neighbours="add-or-remove")
    result = audit(scores, 1e-5, claim=claim)
    assert result.mechanism is not None
    row = next(row for row in result.estimates if row.name == "composed")
    measured = result.mechanism.measured.value
    assert measured < 0.7
    assert row.epsilon == claim.with_noise_multiplier(measured).epsilon(1e-5)
    assert row.epsilon > 1.5 * claim.epsilon(1e-5)
    bound = next(row for row in result.bounds if row.name == "composed-bound")
    limit = result.mechanism.traces.largest_noise(result.level)
    assert bound.low == claim.with_noise_multiplier(limit).attained_epsilon(1e-5)
    assert bound.low < row.low


def by_own_rounds(noise: float, seed: int, rate: float = 0.25) -> Scores:
    """Scores of 300 canaries with the deltas' Gram matrix."""
    dim, rounds, rng = 3000, 12, np.random.default_rng(seed)
    clients = CanaryClients(Canaries(seed, 304, dim), bernoulli(0, rate, rounds, seed, Insertion(304, observed=300)))
    deltas = noise * rng.normal(size=(rounds, dim))
    for t in range(rounds):
        deltas[t] += clients.total(t, 1.0)
        clients.add(deltas[t], t)
    return clients.scores("known rounds", gram=deltas @ deltas.T)


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize("taken", [1, 3])
def test_each_figure_of_the_composed_estimate_is_that_of_the_measured_noise(neighbours: Neighbours, taken: int) -> None:
    result = audit(
        trained(1.0, 3).scores("known rounds"),
        1e-5,
        claim=accountant.gaussian(1.0, participations=taken, neighbours=neighbours),
    )
    assert result.mechanism is not None
    measured, row = result.mechanism.measured, result.estimates[0]

    def epsilon(noise: float) -> float:
        """ε of the one round that was recorded, however many are claimed; replacing moves a sum twice as far."""
        distance = 2.0 if neighbours == "replace" else 1.0
        return float(gaussian_mechanism.epsilon(1e-5, noise / distance))

    shown = (row.epsilon, row.low, row.high)
    assert shown == pytest.approx([epsilon(each) for each in (measured.value, measured.high, measured.low)], rel=1e-9)
    above, below = (epsilon(measured.value + sign * measured.standard_error) for sign in (-1, 1))
    assert row.standard_error == pytest.approx(0.5 * (above - below), rel=1e-9)
    low, high = row.enclosure
    assert low <= row.epsilon * (1.0 + 1e-9)
    assert row.epsilon * (1.0 - 1e-9) <= high
    assert high - low < 1e-9 * row.epsilon


def test_each_canary_is_held_against_the_claim_at_its_own_number_of_rounds(tmp_path: Path) -> None:
    honest, faulty = by_own_rounds(1.0, 5), by_own_rounds(0.8, 5)
    record = honest.record
    assert record is not None
    assert record.counts is not None
    assert len(record.counts) == len(honest.observed) == 300 - record.left_out
    assert record.counts.max() == record.participations
    claim = accountant.gaussian(1.0, participations=record.participations)
    result, exceeded = audit(honest, 1e-5, claim=claim), audit(faulty, 1e-5, claim=claim)
    assert [row.name for row in result.bounds] == [
        "participations",
        "fixed-sequence",
        "normal-scores",
        "largest-score",
        "composed-bound",
    ]
    assert ruling(result) == "PASSED"
    assert has_failed(exceeded, "leak")
    # The default bound does not see it, as most canaries have fewer rounds than the claim is for.
    assert exceeded.bounds[1].low < result.claim < exceeded.bounds[0].low  # type: ignore[operator]
    assert result.noticed_share is not None
    # The test of the noise notices 90%; the most that others' data may be leaves less of it.
    assert 0.6 < result.noticed_share < 0.9
    spots = result.blind_spots
    assert spots is not None
    assert max(part.high for part in spots.noticed if part.mechanism == "less-noise") == pytest.approx(
        result.noticed_share, rel=0.02
    )
    assert "unequal numbers of rounds" in details(result)
    honest.save(tmp_path / "scores.json")
    assert audit(Scores.load(tmp_path / "scores.json"), 1e-5, claim=claim).to_json() == result.to_json()
    others = dataclasses.replace(record, counts=record.counts + 1)
    assert scores_digest(Scores(honest.observed, dim=honest.dim, record=others)) != scores_digest(honest)


@pytest.mark.parametrize("more", [None, 0, 5])
def test_noise_is_composed_over_recorded_rounds_and_canaries_are_held_against_claimed_ones(
    more: int | None,
) -> None:
    scores = by_own_rounds(1.0, 5)
    assert scores.record is not None
    assert scores.record.counts is not None
    taken = scores.record.participations + (more or 0)
    result = audit(scores, 1e-5, claim=None if more is None else accountant.gaussian(1.0, participations=taken))
    assert result.mechanism is not None
    limit = participations.largest_noise(
        cosine_null(3000).log_tail(scores.observed), scores.record.counts, result.level
    )
    traces = result.mechanism.traces
    noises = {
        # Canaries that come back measure it too.
        "composed": scores.record.all_traces.noise_multiplier(0.95).value,  # type: ignore[union-attr]
        "participations": limit,
        "composed-bound": traces.largest_noise(result.level),
    }
    shown = {row.name: row.epsilon for row in (*result.estimates, *result.bounds)}
    for name, noise in noises.items():
        rounds = taken if name == "participations" else scores.record.participations
        epsilon = float(gaussian_mechanism.epsilon(1e-5, noise / math.sqrt(rounds)))
        assert shown[name] == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("claimed", [None, 1.2])
def test_canaries_of_either_sign_notice_what_half_of_the_noise_with_added_ones_does(claimed: float | None) -> None:
    rng = np.random.default_rng(0)
    observed, unobserved = rng.normal(1.5, 1.0, 60) / 1e3, rng.normal(0.0, 1.0, 60) / 1e3
    either = Scores(observed, unobserved - 1.5e-3, neighbours="replace")
    found = audit(either, 1e-5, claim=3.0, noise_multiplier=claimed)
    # They move a sum from one sign to the other: twice as far.
    half = float(gaussian_mechanism.noise_multiplier(3.0, 1e-5)) if claimed is None else 0.5 * claimed
    added = audit(Scores(observed, unobserved), 1e-5, claim=3.0, noise_multiplier=half)
    assert found.claimed_noise(3.0) == pytest.approx(half, rel=1e-12)
    assert added.claimed_noise(3.0) == pytest.approx(half, rel=1e-12)
    assert found.noticed_share is not None
    assert found.noticed_share == pytest.approx(added.noticed_share, rel=1e-9)


def test_the_noise_of_a_training_is_claimed_for_the_rounds_of_the_canary_that_has_most() -> None:
    scores = by_own_rounds(1.0, 5)
    assert scores.record is not None
    assert scores.record.participations > 1
    distance = math.sqrt(scores.record.participations)
    claim = audit(scores, 1e-5, noise_multiplier=1.5).claim
    assert claim == pytest.approx(float(gaussian_mechanism.epsilon(1e-5, 1.5 / distance)), rel=1e-9)


def test_noise_beyond_the_range_of_an_accounting_has_the_epsilon_of_its_end() -> None:
    # A training without noise: no multiplier is too small.
    result = audit(trained(0.0, 3).scores("known rounds"), 1e-5, force=True)
    row = next(row for row in result.bounds if row.name == "composed-bound")
    assert row.low == pytest.approx(float(gaussian_mechanism.epsilon(1e-5, 0.01)), rel=1e-9)
    composed = next(row for row in result.estimates if row.name == "composed")
    assert (composed.epsilon, composed.standard_error) == (math.inf, math.inf)
    claim = accountant.gaussian(1.0)
    assert [epsilon_at(noise, claim, 1e-5) for noise in (0.0099, 1.01e6)] == [math.inf, 0.0]
    for noise in (0.01, 0.7, 1e6):
        exact = float(gaussian_mechanism.epsilon(1e-5, noise))
        assert epsilon_at(noise, claim, 1e-5) == pytest.approx(exact, rel=1e-9)


def test_where_participations_decide_nothing_other_bounds_do() -> None:
    scores, equal = by_own_rounds(1.0, 5), by_own_rounds(1.0, 5, rate=1.0)
    for result in (
        audit(scores, 1e-5, claim=40.0),
        audit(scores, 1e-5, bounds=["band"]),
        audit(equal, 1e-5, claim=accountant.gaussian(1.0, participations=12)),
    ):
        assert "participations" not in [row.name for row in result.bounds]
    assert audit(scores, 1e-5).bounds[0].name == "participations"


def test_the_composed_bound_is_above_the_claim_where_the_noise_is_refuted() -> None:
    scores = trained(0.9, 3).scores("known rounds")
    result = audit(scores, 1e-5)
    assert result.bound is not None
    row = next(row for row in result.bounds if row.name == "composed-bound")
    assert result.bound.name != row.name
    assert (row.kind, row.coverage) == ("lower bound", "proven")
    assert "one multiplier in all rounds" in row.assumes
    assert result.mechanism is not None
    limit = result.mechanism.traces.largest_noise(result.level)
    assert row.low == accountant.gaussian(limit).epsilon(1e-5)
    assert result.mechanism.traces.p_value(limit) == pytest.approx(result.level, rel=1e-6)


def test_a_training_that_stopped_is_reported() -> None:
    dim = 2000
    clients = CanaryClients(Canaries(0, 40, dim), shuffled_epochs(8, 1, 1, 0, Insertion(40, observed=20)))
    for t in range(4):
        clients.add(clients.total(t, 1.0) + 0.1 * np.random.default_rng(t).normal(size=dim), t)
    result = audit(clients.scores("known rounds"), 1e-5)
    assert [warning.kind for warning in result.warnings if warning.withholds is Withheld.NOTHING] == ["missing-rounds"]
    assert "4 of 8 planned rounds were taken" in str(result)


def test_a_release_is_judged_by_the_sum_of_its_canaries() -> None:
    canaries, rng = Canaries(1, 300, 20_000), np.random.default_rng(1)
    for kind in (canaries, OrthonormalCanaries(1, 300, 20_000)):
        total = kind.sum(np.arange(300))
        honest = audit_release(total + rng.normal(0.0, 1.5, 20_000), kind, DELTA, noise_multiplier=1.5)
        faulty = audit_release(total + rng.normal(0.0, 0.9, 20_000), kind, DELTA, noise_multiplier=1.5)
        assert ruling(honest) == "PASSED"
        assert ruling(faulty) == "NOT PASSED: noise"
        assert honest.mechanism is not None
        assert honest.mechanism.measured.low <= 1.5 <= honest.mechanism.measured.high


def test_canaries_that_crowd_a_release_notice_less() -> None:
    canaries = Canaries(3, 300, 4096)
    release = canaries.sum() + np.random.default_rng(3).normal(0.0, 1.54, 4096)
    result = audit_release(release, canaries, 1e-3, claim=3.0)
    crowded, spots = result.noticed_share, result.blind_spots
    assert crowded is not None
    assert spots is not None
    listed = max(part.high for part in spots.noticed if part.mechanism == "less-noise")
    assert crowded == pytest.approx(listed, rel=0.02)


@pytest.mark.parametrize(
    ("dim", "inserted", "is_estimated"), [(1500, None, False), (1500, 100, True), (3000, None, True)]
)
def test_cosines_of_crowded_canaries_have_an_estimate_where_their_number_is_given(
    dim: int, inserted: int | None, is_estimated: bool
) -> None:
    # The 99 others have 7% or 3% of the noise's variance.
    cosines = np.random.default_rng(0).normal(1.0, 1.0, 100) / math.sqrt(dim)
    assert bool(audit(Scores(cosines, dim=dim, inserted=inserted), DELTA).estimates) == is_estimated


def test_a_posterior_interval_and_a_heuristic_bound_are_not_the_best_bound() -> None:
    found = of(run(), nulls(), bounds=("bayesian", "andrew"))
    assert len(found.bounds) == 2
    assert found.bound is None
    assert of(run(), nulls(), bounds=("bayesian", "band", "andrew")).bound.name == "band"  # type: ignore[union-attr]


def test_the_noise_of_one_release_is_a_claim() -> None:
    epsilon = float(gaussian_mechanism.epsilon(DELTA, 4.22))
    assert audit(Scores(run(), dim=DIM), DELTA, noise_multiplier=4.22).claim == epsilon
    assert audit(Scores(run(), dim=DIM), DELTA, claim=2.0, noise_multiplier=4.22).claim == 2.0
    # Maxima over rounds have another ε.
    assert audit(Scores(run(), nulls(), DIM), DELTA, noise_multiplier=4.22).claim is None
    assert audit(Scores(run(), dim=DIM), DELTA).decision is None


def test_a_claim_stands_for_its_noise_in_the_blind_spots() -> None:
    spots = audit(Scores(run(), dim=DIM), DELTA, claim=1.0).blind_spots
    assert spots is not None
    assert spots.given
    assert spots.epsilon == pytest.approx(1.0, rel=1e-9)


def test_no_method_has_a_proven_bound_of_one_models_losses() -> None:
    served = [name for name, method in METHODS.items() if method.needs != "null"]
    observed, unobserved = np.random.default_rng(0).normal([[1.0], [0.0]], 1.0, (2, 100))
    found = audit(Scores(observed, unobserved, kind="any"), DELTA, bounds=served)
    assert {row.name for row in found.bounds} == set(served)
    assert {row.coverage for row in found.bounds} == {"heuristic"}


@pytest.mark.deep
def test_near_duplicates_break_bounds_for_independent_scores_and_are_rarely_seen() -> None:
    """Families of four of which nothing leaks: a bound is above 0 in some 58%, and the order warns of some 3%."""
    rng, runs, level = np.random.default_rng(0), 2000, 1e-6
    observed, unobserved = (
        np.repeat(rng.normal(size=(runs, 125)), 4, axis=1) + 1e-3 * rng.normal(size=(runs, 500)) for _ in range(2)
    )
    lows, _ = METHODS["fixed-sequence"].values(prepare(observed, unobserved), 1e-5, 0.05)
    assert stats.binom.sf(int((lows > 0.0).sum()) - 1, runs, 0.5) < level
    warned = [misuse.misuse(*groups, kind="any") for groups in zip(observed, unobserved, strict=True)]
    assert {each.kind for found in warned for each in found} == {"order"}
    seen = sum(map(bool, warned))
    assert stats.binom.sf(seen - 1, runs, 0.01) < level
    assert stats.binom.cdf(seen, runs, 0.1) < level


@pytest.mark.parametrize(("count", "null_count", "few"), [(50, 1000, True), (100, 100, False), (200, 99, True)])
def test_few_scores_can_hide_a_tail(count: int, null_count: int, few: bool) -> None:
    rng = np.random.default_rng(0)
    found = audit(Scores(rng.normal(1.0, 1.0, count), rng.normal(size=null_count), kind="any"), DELTA)
    assert found.can_hide_a_tail is few
    assert not audit(Scores(run()[:50], dim=DIM), DELTA).can_hide_a_tail


def test_a_misuse_withholds_the_estimate_unless_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings = (MisuseWarning("sign", "Signs are flipped.", "Negate them.", 1e-9, Withheld.ALL),)
    monkeypatch.setattr(inputs, "misuse", lambda *_, **__: warnings)
    withheld = audit(Scores(run(), dim=DIM), DELTA, claim=1.0)
    forced = audit(Scores(run(), dim=DIM), DELTA, claim=1.0, force=True)
    assert withheld.withheld
    assert (withheld.estimates, withheld.bounds, withheld.estimate, withheld.bound) == ((), (), None, None)
    assert ruling(withheld) == ruling(forced) == "CANNOT SAY: input"
    assert not forced.withheld
    assert forced.estimates
    assert withheld.warnings == forced.warnings == warnings


def test_any_scores_are_audited_beside_unobserved_ones_in_any_unit() -> None:
    rng = np.random.default_rng(0)
    observed, unobserved = 1.0 + rng.normal(size=500), rng.normal(size=500)
    one = audit(Scores(observed, unobserved, kind="any"), DELTA)
    # Powers of two change no digit.
    other = audit(Scores(1024.0 * observed, 1024.0 * unobserved, kind="any"), DELTA)
    assert one == other
    # The estimate would be another one in another scale, and is no headline.
    assert one.estimate is None
    assert one.estimates[0].low < gaussian_mechanism.epsilon(DELTA, 1.0) < one.estimates[0].high
    assert (one.null_law, one.blind_spots, one.dilution) == (None, None, None)
    cosines = audit(Scores(0.01 * observed, 0.01 * unobserved), DELTA)
    assert cosines.estimate is not None
    assert one.estimates[0].epsilon == pytest.approx(cosines.estimate.epsilon, rel=1e-9)


def test_a_table_and_a_document_have_the_same_rows() -> None:
    found = audit(Scores(run(), nulls(), DIM), DELTA, claim=1.0, bounds=("band", "bayesian"))
    frame, document = found.to_frame(), json.loads(found.to_json())
    assert list(frame.columns) == ["name", "version", "kind", "epsilon", "low", "high", "coverage", "cap", "assumes"]
    assert list(frame.name) == ["adaptive", "pinned", "fitted", "threshold", "band", "bayesian"]
    assert list(frame.kind) == ["estimate"] * 4 + ["lower bound", "posterior interval"]
    for row, (_, line) in zip(document["estimates"] + document["bounds"], frame.iterrows(), strict=True):
        finite = {name: None if value == math.inf else value for name, value in line.items()}
        assert {name: row[name] for name in frame.columns} == finite
    assert document["decision"]["outcome"] == found.decision.outcome  # type: ignore[union-attr]
    assert document["answer"] in repr(found)
    assert "\n" not in repr(found)


def test_scores_that_are_not_normal_are_remarked_upon() -> None:
    rng = np.random.default_rng(6)
    for observed, remarked in ((rng.standard_t(3.0, 400), True), (rng.standard_normal(400), False)):
        found = audit(Scores(observed, rng.standard_normal(400), kind="any"), DELTA, bounds=("band",), force=True)
        assert ("The scores are not normal" in " ".join(details(found).split())) is remarked


def released(name: str, canaries: Canaries | OrthonormalCanaries, noise: np.ndarray) -> np.ndarray:
    honest = canaries.sum() + noise
    match name:
        case "half of the norm beside half of the noise":
            return 0.5 * honest
        case "half of the noise":
            return honest - 0.5 * noise
        case "twice the norm":
            return 2.0 * honest - noise
        case "in other units":
            return honest / 1000.0
        case "half of the canaries":
            return canaries.sum(np.arange(250)) + noise
        case "no noise on a share":
            return honest * (np.arange(20_000) >= 6000)
        case "another seed":
            return dataclasses.replace(canaries, seed=8).sum() + noise
        case "reversed":
            return honest[::-1].copy()
    return honest


@pytest.mark.deep(every=2)
@pytest.mark.parametrize("kind", [Canaries, OrthonormalCanaries])
@pytest.mark.parametrize(
    ("name", "kinds", "says"),
    [
        ("honest", (), "PASSED"),
        ("half of the norm beside half of the noise", ("units",), "CANNOT SAY: input"),
        ("half of the noise", ("less-noise",), "NOT PASSED: noise"),
        ("twice the norm", ("units",), "CANNOT SAY: input"),
        ("in other units", ("units",), "CANNOT SAY: input"),
        ("half of the canaries", ("missing",), "CANNOT SAY: input"),
        ("no noise on a share", ("zeros",), "NOT PASSED: noise"),
        ("another seed", ("absent",), "CANNOT SAY: input"),
        ("reversed", ("absent",), "CANNOT SAY: input"),
    ],
)
def test_each_misuse_of_a_release_is_seen_by_canaries_of_each_kind(
    name: str, kinds: tuple[str, ...], says: str, kind: type
) -> None:
    if name == "in other units" and kind is Canaries:
        # Other canaries are taken out of a score in units of their norm, so that nothing is left of it in another unit.
        kinds = ("absent",)
    canaries, noise = kind(7, 500, 20_000), 1.54 * np.random.default_rng(1).normal(size=20_000)
    release = released(name, canaries, noise)
    result = audit_release(release, canaries, DELTA, noise_multiplier=1.54)
    assert {warning.kind for warning in result.warnings} >= set(kinds)
    assert bool(result.warnings) == bool(kinds)
    # A gate passes the honest release alone. With half of the noise the bound may be above the claim, too.
    assert ruling(result) in {says, f"{says}, leak" if "noise" in says else says}
    # A claim without the noise multiplier needs no unit to say that canaries are absent.
    stated = audit_release(release, canaries, DELTA, claim=3.0)
    assert (kinds == ("absent",)) <= stated.withheld


def test_at_delta_zero_bounds_answer_alone() -> None:
    rng = np.random.default_rng(0)
    scores = Scores(rng.laplace(1.0, 1.0, 1000), rng.laplace(0.0, 1.0, 1000), kind="any", inclusion="coin")
    exceeded, consistent, beyond = (audit(scores, 0.0, claim=claim) for claim in (0.3, 1.0, 20.0))
    assert ruling(exceeded) == "NOT PASSED: leak"
    # Which noise would have been noticed is not known without δ.
    assert ruling(consistent) == ruling(beyond) == "CANNOT SAY: leak"
    # Scores with Laplace noise have ε = 1.
    assert exceeded.bound is not None
    assert 0.5 < exceeded.bound.low < 1.0
    for result in (exceeded, consistent, beyond):
        assert (result.estimates, result.noticed_share, result.blind_spots) == ((), None, None)
        assert no_estimate(result) == "two Gaussians have no finite ε at δ = 0"
        details(result)


def test_neighbours_of_replacement_have_twice_the_distance() -> None:
    rng, dim, sigma = np.random.default_rng(0), 10**6, 3.0
    noise = rng.normal(size=(2, 1000))
    observed, unobserved = (1.0 / sigma + noise[0]) / 1e3, (-1.0 / sigma + noise[1]) / 1e3
    replaced = audit(Scores(observed, unobserved, dim, neighbours="replace"), DELTA, claim=3.0)
    assert replaced.neighbours == "replace"
    assert replaced.null_law is None
    assert replaced.warnings == ()
    assert replaced.standardised_mean == pytest.approx(2.0 / sigma, abs=0.2)
    assert "neighbours: replace" in str(replaced)
    # Canaries that are only added bound such an ε from below, and notice less.
    stated = accountant.epsilon_delta(3.0, DELTA, neighbours="replace")
    added = audit(Scores(observed, noise[1] / 1e3, dim), DELTA, claim=stated)
    assert "moves a sum half as far" in " ".join(details(added).split())
    assert added.noticed_share is not None
    assert replaced.noticed_share is not None
    assert added.noticed_share == pytest.approx(0.5 * replaced.noticed_share, rel=0.01)
    canaries = Canaries(7, 300, 20_000)
    release = canaries.sum() + 3.0 * rng.normal(size=20_000)
    both = [
        audit_release(release, canaries, DELTA, noise_multiplier=3.0, neighbours=name)
        for name in ("add-or-remove", "replace")
    ]
    assert both[0].claim == gaussian_mechanism.epsilon(DELTA, 3.0)
    assert both[1].claim == pytest.approx(float(gaussian_mechanism.epsilon(DELTA, 1.5)))


@pytest.mark.parametrize("kind", [Canaries, OrthonormalCanaries])
def test_a_release_without_half_of_its_canaries_does_not_pass(kind: type[Canaries]) -> None:
    """No warning has the level for it: of 24 seeds of 200 canaries each, 16 do not pass, and 6 are warned of."""
    canaries, noise = kind(0, 200, 8192), np.random.default_rng(0).normal(0.0, 1.54, 8192)
    whole, half = (
        audit_release(canaries.sum(np.arange(count)) + noise, canaries, DELTA, noise_multiplier=1.54)
        for count in (200, 100)
    )
    assert has_passed(whole)
    assert whole.trace_test is not None
    assert half.trace_test is not None
    assert half.warnings == ()
    assert ruling(half) == "CANNOT SAY: input"
    # The norm is that of the canaries that are there, as all are weighed alike.
    assert whole.trace_test[0] - half.trace_test[0] == pytest.approx(0.5, abs=0.02)
    norm, error, p_value = (f"{value:.2g}" for value in half.trace_test)
    doubt = f"the trace in this release is that of canaries of norm {norm} ± {error}, not 1 (p = {p_value})"
    assert half.finding("input").because == doubt
    assert dict(checks(half))["norm of the canaries, by their trace in the release"] == (
        f"{norm} ± {error}, p = {p_value}"
    )


def of_a_release(kind: type = Canaries) -> Audit:
    canaries = kind(3, 200, 2000)
    release = canaries.sum() + 1.5 * np.random.default_rng(3).normal(size=2000)
    return audit_release(release, canaries, DELTA, noise_multiplier=1.5)


@pytest.mark.parametrize(("seed", "force", "scored"), [(7, False, 20_001), (8, False, 1_000), (8, True, 20_001)])
def test_a_wrong_seed_of_many_canaries_is_seen_by_the_first_thousand(seed: int, force: bool, scored: int) -> None:
    canaries = Canaries(7, 20_001, 2_000)
    release = canaries.sum() + 2.0 * np.random.default_rng(1).standard_normal(2_000)
    found = audit_release(release, Canaries(seed, 20_001, 2_000), 1e-6, noise_multiplier=2.0, force=force)
    assert found.request.canaries is not None
    assert found.request.canaries.count == len(found.scores.observed) == scored
    assert ("absent" in {warning.kind for warning in found.warnings}) == (seed != 7)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_a_bound_has_half_of_the_level_where_the_noise_is_tested_too(confidence: float) -> None:
    canaries, scores = Canaries(3, 200, 2000), by_own_rounds(1.0, 5)
    release = canaries.sum() + 1.5 * np.random.default_rng(3).normal(size=2000)
    for found, tested in (
        (audit(scores, DELTA, confidence=confidence, claim=accountant.gaussian(1.0, participations=7)), True),
        (audit_release(release, canaries, DELTA, confidence=confidence, noise_multiplier=1.5), True),
        (audit_release(release, canaries, DELTA, confidence=confidence, claim=3.0), False),
        (audit_release(release, canaries, DELTA, confidence=confidence), False),
    ):
        left = 1.0 - (1.0 - confidence) / (2.0 if tested else 1.0)
        # Scores alone have no noise that could be tested.
        alone = audit(Scores(found.scores.observed, found.scores.unobserved, dim=found.dim), DELTA, confidence=left)
        assert alone.bounds[0] in found.bounds


@pytest.mark.parametrize("kind", [Canaries, OrthonormalCanaries])
def test_the_norm_of_canaries_by_their_trace_has_the_law_of_their_mean(kind: type) -> None:
    found = of_a_release(kind)
    for norm in (50.0, 90.0):
        result = dataclasses.replace(found, release_norm=norm, residual_norm=norm)
        observed, unobserved = result.scores.observed, result.scores.unobserved
        # Independent canaries have the law of their dimension; orthonormal ones have 1,800 others beside them.
        products = norm * observed if unobserved is not None else products_with_rest(observed, norm)
        square = 1.0 / 2000 if unobserved is None else np.square(unobserved).mean()
        error, trace = norm * math.sqrt(square / 200), products.mean()
        law = stats.norm if unobserved is None else stats.t(1800)
        p_value = 2.0 * law.sf(abs(trace - 1.0) / error)
        assert result.trace_test == pytest.approx((trace, error, p_value), rel=1e-9)
        assert result.has_other_trace == (p_value < 1e-4)
    assert dataclasses.replace(found, release_norm=None).trace_test is None


def test_what_hides_the_claimed_noise_is_longer_than_it_at_one_in_ten_thousand() -> None:
    found, dim = of_a_release(), 2000
    # Of the noise of 1.5 the squared length without canaries has this multiple of χ².
    honest = 1.5**2
    critical = honest * stats.chi2.isf(1e-4, dim)
    for square, hidden in ((0.9999 * critical, False), (1.0001 * critical, True), (4.0 * critical, True)):
        longer = dataclasses.replace(found, residual_norm=math.sqrt(square))
        assert longer.is_masked == hidden
        # Noise and data of this variance leave a length this short with probability 10%.
        variance = (1.0 + longer.masking_variance) * honest
        assert stats.chi2.cdf(square / variance, dim) == pytest.approx(0.1, rel=1e-9)
    assert found.mechanism is not None
    unclaimed = dataclasses.replace(found.mechanism, claimed=None)
    bare = dataclasses.replace(found, residual_norm=900.0, mechanism=unclaimed)
    assert bare.masking_variance == 0.0
    assert not bare.is_masked


@pytest.mark.parametrize("kind", [None, *sorted(WRONG_INPUT | DOUBTFUL_INPUT | NOISE_WARNINGS | NOTES)])
def test_each_warning_has_its_place_in_the_decision(kind: str | None) -> None:
    warned = () if kind is None else (MisuseWarning(kind, "Odd.", "Look.", None, Withheld.NOTHING),)
    result = dataclasses.replace(made(0.9), warnings=warned)
    vars(result)["noticed_share"] = 0.9
    says = "PASSED"
    if kind in WRONG_INPUT | DOUBTFUL_INPUT:
        says = "CANNOT SAY: input"
    judged = finish(result)
    assert ruling(judged) == says
    assert judged.decision is not None
    assert judged.decision.status == (4 if kind in WRONG_INPUT else 3 if kind in DOUBTFUL_INPUT else 0)


def test_a_shorter_release_fails_at_the_level_of_the_gate() -> None:
    canaries = Canaries(3, 100, 2000)
    # A length whose p-value lies between both levels, 3e-10.
    release = canaries.sum() + 0.91 * np.random.default_rng(3).normal(size=2000)
    for confidence, fails in ((0.95, True), (1.0 - 1e-9, False)):
        found = audit_release(release, canaries, DELTA, confidence, noise_multiplier=1.0)
        (warning,) = (each for each in found.warnings if each.kind == "less-noise")
        assert warning.p_value is not None
        assert (warning.p_value < found.side_level) == fails
        assert has_failed(found, "noise") == fails


def test_every_kind_of_warning_has_a_place() -> None:
    placed = [WRONG_INPUT, DOUBTFUL_INPUT, NOISE_WARNINGS, NOTES]
    source = Path(misuse.__file__).read_text()
    made_there = set(re.findall(r'(?:MisuseWarning|yield MisuseWarning|return MisuseWarning)\(\s*"([\w-]+)"', source))
    assert len(made_there) > 20
    assert made_there == set.union(*map(set, placed))
    assert sum(map(len, placed)) == len(made_there)


@pytest.mark.parametrize(
    ("noticed", "notice", "passes"), [(0.5, 0.5, True), (0.49, 0.5, False), (0.8, 0.81, False), (0.2, 0.1, True)]
)
def test_so_much_noise_must_be_noticed_as_is_asked_for(noticed: float, notice: float, passes: bool) -> None:
    result = made(0.9)
    result = dataclasses.replace(result, request=dataclasses.replace(result.request, notice=notice))
    vars(result)["noticed_share"] = noticed
    assert has_passed(finish(result)) == passes


def test_a_claim_that_knows_no_rounds_is_refused_with_the_one_that_does() -> None:
    claim = accountant.poisson(0.8, rate=0.25, rounds=10)
    for taken in (4, 12):
        record = RoundsRecord(Score.KNOWN_ROUNDS, taken, 0, 12, 0, 0, None)
        with pytest.raises(ValueError, match=r"^claim: counts on rounds") as caught:
            audit(Scores(run(), dim=DIM, record=record), 1e-5, claim=claim)
        # The claim has 10 rounds.
        epsilon = float(gaussian_mechanism.epsilon(1e-5, 0.8 / math.sqrt(min(taken, 10))))
        instead = f"claim.with_known_rounds({taken}), whose ε is {epsilon:.4g}, does; or take the score 'likelihood'"
        assert str(caught.value).endswith(instead)


def test_a_number_is_claimed_for_stated_neighbours() -> None:
    assert "neighbours: add or remove" in " ".join(str(audit(Scores(run(), dim=DIM), DELTA, claim=2.0)).split())
    assert "neighbours" not in str(audit(Scores(run(), dim=DIM), DELTA, noise_multiplier=4.22))


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_groups_that_were_standardised_alone_are_named_where_nothing_is_seen(unit: float) -> None:
    observed, unobserved = np.random.default_rng(0).normal([[0.6], [0.0]], 1.0, (2, 300))
    alone = [unit * (scores - scores.mean()) / scores.std() for scores in (observed, unobserved)]
    halves = (unobserved[::2], unobserved[1::2])
    pooled = [unit * (scores - unobserved.mean()) / unobserved.std() for scores in halves]
    named = [
        "each group was standardised alone" in " ".join(str(result).split())
        for result in (audit(Scores(*groups, kind="any"), DELTA, claim=3.0) for groups in (alone, pooled))
    ]
    assert named == [True, False]


def test_scores_of_trainings_of_their_own_have_a_proven_bound() -> None:
    rng = np.random.default_rng(0)
    observed, unobserved = rng.normal(1.5, 1.0, 300), rng.normal(size=300)
    own, one = (
        audit(Scores(observed, unobserved, kind="any", inclusion=name), DELTA) for name in ("independent", "fixed")
    )
    assert own.bound is not None
    assert one.bound is not None
    assert (own.bound.coverage, one.bound.coverage) == ("proven", "heuristic")
    assert own.bound.low == one.bound.low
    assert "(95% confidence)" in str(own)
    assert "(heuristic: " in str(one)
    assert "dimension" not in details(one).partition("For these scores")[0]


def test_the_error_of_a_trace_is_that_of_drawn_canaries() -> None:
    # Sixty canaries in 200 dimensions would crowd each other: the error would be a third larger.
    count, dim, sigma, runs = 60, 200, 0.3, 400
    canaries, rng = Canaries(3, count, dim), np.random.default_rng(3)
    release = canaries.sum() + sigma * rng.standard_normal(dim)
    result = audit_release(release, canaries, 1e-3, noise_multiplier=sigma, force=True)
    assert result.trace_test is not None
    drawn = rng.standard_normal((runs, count, dim))
    sums = (drawn / np.linalg.norm(drawn, axis=2, keepdims=True)).sum(axis=1)
    norms = 1.0 + (sums * sigma * rng.standard_normal((runs, dim))).sum(axis=1) / count
    least, most = (norms.std() * math.sqrt(runs / stats.chi2.ppf(level, runs - 1)) for level in (1 - 5e-7, 5e-7))
    assert least < result.trace_test[1] < most


@pytest.mark.parametrize(
    ("observed", "unobserved", "least"),
    [
        # Partial extraction, and a model that is right on all of its training data.
        ([1.0] * 150 + [0.0] * 350, [0.0] * 500, 3.34),
        ([1.0] * 500, [1.0] * 400 + [0.0] * 100, 2.93),
        ([1.0] * 500, [0.0] * 500, 5.79),
        ([0.0] * 500, [0.0] * 500, 0.0),
        ([math.inf] * 500, [-math.inf] * 500, 5.79),
        ([7.5] * 500, np.arange(500.0) / 500.0, 5.79),
    ],
)
def test_bounds_need_no_variance(observed: list[float], unobserved: list[float], least: float, tmp_path: Path) -> None:
    result = audit(Scores(observed, unobserved, kind="any", inclusion="independent"), delta=1e-5)
    assert result.bound is not None
    assert result.bound.low >= least
    assert result.estimates == ()
    assert "all of one kind are equal" in no_estimate(result)
    record = json.loads(result.to_json())
    assert (record["standardised_mean"], record["variance_p_value"]) == (None, None)
    for suffix in ("html", "md", "json"):
        result.report(tmp_path / f"report.{suffix}")
        assert (tmp_path / f"report.{suffix}").stat().st_size


def test_the_law_of_cosines_needs_a_variance() -> None:
    with pytest.raises(ValueError, match="their variance must not be zero"):
        Scores([0.1] * 10, dim=100)


def test_scores_of_any_kind_that_do_not_look_normal_have_no_estimate() -> None:
    rng = np.random.default_rng(12)
    scores = Scores(rng.standard_t(3, 400) + 1.0, rng.standard_t(3, 400), kind="any")
    found = audit(scores, delta=1e-5)
    assert found.estimates == ()
    assert "The estimators take scores for normal, and their intervals miss" in " ".join(details(found).split())
    assert audit(scores, delta=1e-5, force=True).estimates
    assert audit(Scores(rng.normal(1.0, 1.0, 400), rng.normal(size=400), kind="any"), delta=1e-5).estimates


def test_who_tried_several_scores_pays_for_each():
    rng = np.random.default_rng(5)
    coins = Scores(rng.normal(2.0, 1.0, 300), rng.normal(size=300), kind="any", inclusion="coin")
    for scores in (coins, Scores(exact_law.cosines(300, 1000, 1.0, rng), dim=1000)):
        one, best = (audit(scores, 1e-5, claim=1.0, tried=tried) for tried in (1, 6))
        assert best.level == pytest.approx(one.level / 6.0)
        alone = audit(scores, 1e-5, 1.0 - 0.05 / 6.0, claim=1.0)
        assert one.bound.low > best.bound.low == pytest.approx(alone.bound.low, rel=1e-9)
        for mine, other in zip(best.estimates, alone.estimates, strict=True):
            assert (mine.low, mine.high) == pytest.approx((other.low, other.high))
        said = "At most 5% of honest runs are NOT PASSED by chance, by the bound, which pays for 6 that were tried"
        assert said in " ".join(best.details().split())
        assert "that were tried" not in one.details()
        assert report._request(best).tried == 6
        assert report._request(one).tried is None
