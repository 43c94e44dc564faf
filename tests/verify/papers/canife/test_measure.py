import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.audit.bounds import printed
from canaryproof.verify.papers.accounting.sampled_gaussian import composed_epsilon, noise_of_round
from canaryproof.verify.papers.canife.measure import (
    Deltas,
    by_zero_counts,
    round_epsilon,
    rounds_served,
    training_epsilon,
)
from canaryproof.verify.papers.records.training_record import largest_finite


def by_counting(observed, unobserved, delta, zero_counts):
    """ε̂ by the plain definition, in rational numbers until the logarithm."""
    found = []
    for threshold in [*observed, *unobserved]:
        fp = Fraction(int(sum(score >= threshold for score in unobserved)), len(unobserved))
        fn = Fraction(int(sum(score < threshold for score in observed)), len(observed))
        if fp == fn == 0 and zero_counts != "infinite":
            top = math.log((1 - delta) * max(len(observed), len(unobserved)))
            found.append(math.inf if zero_counts == "separated" else top)
            continue
        for one, other in ((fp, fn), (fn, fp)):
            rest = 1 - Fraction(delta) - one
            if rest > 0 and other > 0:
                found.append(math.log(rest / other))
            elif rest > 0 and zero_counts == "infinite":
                found.append(math.inf)
    return max(found)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(11)
    drawn = [
        (rng.normal(shift, 1.0, size), rng.normal(0.0, 1.0, other))
        for shift in (0.0, 0.5, 2.0)
        for size, other in ((50, 50), (44, 56), (3, 4))
    ]
    # Ties, and perfect separation.
    rounded = [(observed.round(), unobserved.round()) for observed, unobserved in drawn]
    return [*drawn, *rounded, (np.arange(5.0) + 10.0, np.arange(7.0))]


@pytest.mark.parametrize("zero_counts", ["infinite", "separated", "capped"])
def test_the_estimate_is_that_of_plain_counting(samples, zero_counts):
    for observed, unobserved in samples:
        for delta in (0.0, 1e-5, 0.01):
            found = round_epsilon(observed, unobserved, delta, zero_counts=zero_counts)
            expected = by_counting(observed, unobserved, delta, zero_counts)
            assert found.epsilon == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_limits_are_the_formula_at_the_limits_of_both_rates(samples):
    for observed, unobserved in samples:
        found = round_epsilon(observed, unobserved, 0.01)
        assert found.false_alarms == np.count_nonzero(unobserved >= found.threshold)
        assert found.missed == np.count_nonzero(observed < found.threshold)
        counts = found.false_alarms, found.missed, found.null_count, found.count
        assert found.lower == pytest.approx(printed.at_counts(*counts, 0.01), rel=1e-12)
        low = [
            stats.binomtest(wrong, size).proportion_ci(0.95, "exact").low
            for wrong, size in ((found.false_alarms, found.null_count), (found.missed, found.count))
        ]
        with np.errstate(divide="ignore"):
            upper = max(np.log((0.99 - np.array(low)) / np.array(low[::-1])))
        assert found.upper == pytest.approx(upper, rel=1e-9)
        assert found.lower <= found.epsilon <= found.upper


def test_perfect_separation():
    observed, unobserved = np.arange(50) + 100.0, np.arange(50.0)
    assert round_epsilon(observed, unobserved, 0.01).epsilon == math.inf
    capped = round_epsilon(observed, unobserved, 0.01, zero_counts="capped")
    assert capped.epsilon == largest_finite(50, 50, 0.01) == pytest.approx(math.log(49.5), rel=1e-15)
    assert capped.false_alarms == capped.missed == 0
    assert capped.upper == math.inf


@pytest.mark.parametrize("shift", [0.0, 2.0, 9.0])
@pytest.mark.parametrize(("count", "null_count"), [(5, 5), (20, 30), (50, 50)])
def test_what_is_capped_follows_from_what_is_not(shift, count, null_count):
    rng = np.random.default_rng(11)
    for _ in range(20):
        seen, unseen = shift + rng.standard_normal(count), rng.standard_normal(null_count)
        delta = 1.0 / (count + null_count)
        assert by_zero_counts(seen, unseen).capped == round_epsilon(seen, unseen, delta, zero_counts="capped")


def test_the_formula_as_printed_is_infinite_for_a_canary_that_does_nothing():
    rng = np.random.default_rng(5)
    infinite = sum(
        round_epsilon(*rng.normal(size=(2, 50)), 0.01, zero_counts="infinite").epsilon == math.inf for _ in range(400)
    )
    # 1 − 25/99, as the claim on Appendix C.5 finds by counting orders; level 1e-6.
    assert stats.binomtest(infinite, 400, 1 - 25 / 99).pvalue > 1e-6


@pytest.mark.parametrize(
    ("observed", "unobserved", "delta", "alpha"),
    [([], [1.0], 0.1, 0.05), ([math.nan], [1.0], 0.1, 0.05), ([1.0], [0.0], 1.0, 0.05), ([1.0], [0.0], 0.1, 0.0)],
)
def test_what_is_refused(observed, unobserved, delta, alpha):
    with pytest.raises(ValueError, match="must"):
        round_epsilon(observed, unobserved, delta, alpha=alpha)


def test_rounds_served():
    # CelebA: the public code audits round 1 and then every 40th; Algorithm 2 begins with round 40.
    assert rounds_served([1, 41, 81], 100) == [40, 40, 20]
    assert rounds_served([40, 80], 100) == [79, 21]
    for audited in ([], [2, 1], [0], [101], [3, 3]):
        with pytest.raises(ValueError, match="must rise"):
            rounds_served(audited, 100)


def test_the_three_deltas_matter():
    epsilons, rounds = [1.9, 1.7, 2.0, 1.8, 1.9], [99, 100, 100, 100, 70]
    as_printed = Deltas.as_printed(100, 1e-5)
    assert as_printed == Deltas(0.01, 1e-5, 1e-5)
    found = training_epsilon(epsilons, rounds, 128 / 60_000, as_printed)
    converted = training_epsilon(epsilons, rounds, 128 / 60_000, Deltas(0.01, 0.01, 1e-5))
    noise = [noise_of_round(epsilon, 1e-5) for epsilon in epsilons]
    assert found == composed_epsilon(noise, rounds, 128 / 60_000, 1e-5)
    assert converted > 2.0 * found


def test_measuring_needs_no_jax():
    code = "import sys; from canaryproof.verify.papers.canife import attack, measure; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_largest_finite_epsilon_is_one_error_of_the_rarer_kind():
    assert largest_finite(10, 40, 0.1) == largest_finite(40, 10, 0.1) == pytest.approx(math.log(36.0))
