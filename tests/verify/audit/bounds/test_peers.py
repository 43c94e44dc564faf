"""Expected values of others' tests, where they are of functions of ours.

They are of google-research/federated, ``one_shot_epe/empirical_privacy_estimation_test.py`` at fbb2230e (Andrew et al.,
arXiv 2302.03098), and of jax_privacy 2.0.0, ``tests/auditing_test.py``. Numbers alone are taken over. Left out is what
has no counterpart here: ROC curves, accuracies, raw counts, the bootstrap, and the value 2.375326 of a threshold
between the exact null in 200 dimensions and a Gaussian.
"""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from canaryproof.kernels import binomial, gaussian_mechanism, two_gaussians
from canaryproof.verify.audit.bounds.catalogue import MEASURED
from canaryproof.verify.audit.bounds.gaussian import epsilon_of_mu
from canaryproof.verify.audit.bounds.lower_bound import cosine_null, normal_null, prepare
from canaryproof.verify.audit.bounds.one_run import gaussian_bound, p_value, steinke_bound

# Of both projects' tests.
SEED = 0xBAD5EED


# Andrew et al.: relative tolerance 1e-6, as that of assertAllClose there.


def test_andrew_s_bound_from_unobserved_scores() -> None:
    # test_optimal_epsilon_lower_bound_regression
    rng = np.random.default_rng(SEED)
    seen, unseen = rng.normal(1.0, 1.0, 100), rng.normal(0.0, 1.0, 100)
    assert MEASURED["andrew"].bound(prepare(seen, unseen), 1e-2, 1e-2).value == pytest.approx(0.6839449, rel=1e-6)


@pytest.mark.parametrize(("dim", "expected"), [(200, 1.394838), (2000, 1.3880321)])
def test_andrew_s_bound_from_the_null(dim: int, expected: float) -> None:
    # test_lower_bound_closed_form_null_regression
    deviation = dim**-0.5
    seen = np.random.default_rng(SEED).normal(deviation, deviation, 100)
    exact, normal = (
        MEASURED["andrew"].bound(prepare(seen, null=null), 1e-2, 1e-2).value
        for null in (cosine_null(dim), normal_null(deviation))
    )
    if dim < 1000:
        assert exact == pytest.approx(expected, rel=1e-6)
    else:
        # From 1,000 dimensions on their null is N(0, 1/d); ours is exact everywhere, which they miss by 5e-4.
        assert normal == pytest.approx(expected, rel=1e-6)
        assert exact == pytest.approx(1.3886971, rel=1e-7)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-2])
@pytest.mark.parametrize("sensitivity", [1e-2, 1.0, 10.0])
@pytest.mark.parametrize("difference", [-1e-12, 0.0, 1e-12])
def test_two_gaussians_at_calibrated_noise(epsilon: float, delta: float, sensitivity: float, difference: float) -> None:
    # test_epsilon_two_gaussians_stds_close
    deviation = sensitivity * float(gaussian_mechanism.noise_multiplier(epsilon, delta))
    found = two_gaussians.epsilon(delta, 0.0, deviation, sensitivity, deviation + difference)
    assert float(found) == pytest.approx(epsilon, rel=1e-6)


def test_two_gaussians_of_one_deviation() -> None:
    # test_closed_form_null_gaussian_alt_regression, 2,000 dimensions: N(0, 1/d) against N(1/√d, 1/d)
    assert float(two_gaussians.epsilon(1e-2, 0.0, 1.0, 1.0, 1.0)) == pytest.approx(2.317789, rel=1e-6)


# jax_privacy.


@pytest.mark.parametrize("count", [10, 100, 1000])
@pytest.mark.parametrize("share", [0.3, 0.4, 0.5, 0.8, 0.9])
@pytest.mark.parametrize("alpha", [0.1, 0.03, 0.01])
def test_clopper_pearson(count: int, share: float, alpha: float) -> None:
    # test_clopper_pearson_upper, which draws; here the law itself
    right = round(share * count)
    limit = float(binomial.upper(right, count, 1.0 - alpha))
    assert stats.binom.cdf(right, count, limit) == pytest.approx(alpha, rel=1e-9)


# Scores at the mid-quantiles of N(shift, 1) and N(0, 1), 10,000 each. How many thresholds their Bonferroni correction
# counts, and guesses and right ones at the best threshold, are what their code has.
ONE_RUN = [(386, 3376, 2807, 1.13346), (374, 4666, 4499, 2.311945), (140, 8233, 8223, 4.395568)]
ONE_RUN_GAUSSIAN = [(386, 406, 379, 2.164749), (374, 938, 934, 4.7218075), (140, 5436, 5436, 9.133752)]


@pytest.mark.parametrize(("thresholds", "number", "right", "expected"), ONE_RUN)
def test_one_run(thresholds: int, number: int, right: int, expected: float) -> None:
    # test_epsilon_one_run_close: Steinke et al.'s Theorem 5.2 at δ = 1e-6
    total, delta, alpha = 20_000, 1e-6, 0.05 / thresholds
    i = np.arange(1, right + 1)

    def printed(epsilon: float) -> float:
        law = stats.binom(number, special.expit(epsilon))
        beta = law.sf(right - 1)
        return float(beta + 2.0 * total * delta * np.max((law.sf(right - i - 1) - beta) / i)) - alpha

    assert optimize.brentq(printed, 0.0, 9.0, xtol=1e-9) == pytest.approx(expected, rel=1e-5)
    # Ours has δ's exact cost, which some mechanism reaches (proofs_check/lower_bounds.md): it is smaller here, and the
    # bound larger. Without δ both are Clopper and Pearson's.
    ours, without = (steinke_bound(total, number, right, some, alpha) for some in (delta, 0.0))
    assert 1.2 * expected < ours < without < 1.35 * expected


@pytest.mark.parametrize(("thresholds", "number", "right", "expected"), ONE_RUN_GAUSSIAN)
def test_one_run_gaussian(thresholds: int, number: int, right: int, expected: float) -> None:
    # test_epsilon_one_run_close, fdp
    mu = gaussian_bound(20_000, number, right, 0.05 / thresholds)
    assert float(epsilon_of_mu(np.array(mu), 1e-6)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("total", "number"), [(10, 1), (10, 10), (100, 100), (1000, 100)])
@pytest.mark.parametrize("wrong", [0, 1, 10, 100])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_one_run_p_values_without_delta(total: int, number: int, wrong: int, epsilon: float) -> None:
    # test_one_run_p_value; those at δ > 0 are of the theorem above
    if wrong <= number:
        expected = stats.binom.sf(number - wrong - 1, number, special.expit(epsilon))
        assert p_value(total, number, number - wrong, epsilon, 0.0) == pytest.approx(expected, rel=1e-12)


def scores_of(shift: float, count: int) -> np.ndarray:
    """Mid-quantiles of N(shift, 1)."""
    return shift + special.ndtri((np.arange(count) + 0.5) / count)


@pytest.mark.parametrize("name", [pytest.param("bonferroni", marks=pytest.mark.deep), "band"])
@pytest.mark.parametrize(
    ("shift", "ratio"),
    [
        pytest.param(shift, ratio, marks=pytest.mark.deep if (shift, ratio) != (1.0, 0.5) else ())
        for shift in (0.7, 1.0, 1.5)
        for ratio in (0.5, 1.0, 1.5)
    ],
)
def test_bounds_are_below_the_truth_and_near_it(name: str, ratio: float, shift: float) -> None:
    # test_epsilon_clopper_pearson_tight_multi_split: δ = 0.1, α = 0.1, 100,000 scores, within 20%
    scores = prepare(scores_of(shift, 100_000), scores_of(0.0, int(ratio * 100_000)))
    truth = float(gaussian_mechanism.epsilon(0.1, 1.0 / shift))
    assert 0.8 * truth < MEASURED[name].bound(scores, 0.1, 0.1).value < truth


@pytest.mark.parametrize("shift", [0.1, 0.3, 1.0, 3.0])
def test_gaussian_dp_is_near_the_truth(shift: float) -> None:
    # test_epsilon_from_gdp_tight: δ = 0.05, α = 0.1, 500,000 scores of either kind, within 5%
    rng = np.random.default_rng(SEED)
    scores = prepare(rng.normal(shift, 1.0, 500_000), rng.normal(0.0, 1.0, 500_000))
    truth = float(gaussian_mechanism.epsilon(0.05, 1.0 / shift))
    assert MEASURED["gaussian-dp"].bound(scores, 0.05, 0.1).value == pytest.approx(truth, rel=0.05)
    assert math.isfinite(truth)
