import itertools
import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import stats

from canaryproof.kernels import binomial
from canaryproof.kernels.reference import binomial as reference

# The module's own, of a limit and of its distance from 1 (as far as a float next to 1 can tell).
BUDGET = 1e-12
METHODS = ["clopper-pearson", "jeffreys"]
CONFIDENCES = [0.5, 0.95, 0.999999]


def is_close(value, expected):
    error = abs(mpf(float(value)) - expected)
    # Floats just below 1 are 2⁻⁵³ apart.
    return error <= BUDGET * expected and error <= BUDGET * (1 - expected) + 2 * 2.0**-53


@pytest.mark.deep(beyond=3)
@pytest.mark.parametrize(
    ("successes", "trials", "confidence", "method"),
    [
        (1, 1, 0.95, "jeffreys"),
        (3, 10, 0.5, "clopper-pearson"),
        (49, 50, 0.95, "jeffreys"),
        (17, 1000, 0.999999, "clopper-pearson"),
        (500_000, 10**6, 0.95, "clopper-pearson"),
        (10**6 - 1, 10**6, 0.5, "jeffreys"),
        *(
            pytest.param(*row, marks=pytest.mark.deep)
            for row in (
                (0, 3, 0.95, "jeffreys"),
                (3, 10, 0.999999, "jeffreys"),
                (1, 10**6, 0.95, "jeffreys"),
                (2, 10**6, 0.95, "clopper-pearson"),
                (123_456, 10**6, 0.999999, "jeffreys"),
            )
        ),
    ],
)
def test_limits_agree_with_the_twin(successes, trials, confidence, method):
    for name in ("lower", "upper"):
        expected = getattr(reference, name)(successes, trials, confidence, method, digits=15)
        assert is_close(getattr(binomial, name)(successes, trials, confidence, method), expected), name


@pytest.mark.parametrize(
    ("successes", "trials", "confidence"), [(2, 985_023, 0.34045095581492013), (186_256_754, 186_257_753, 0.5)]
)
def test_inputs_at_which_scipy_is_known_to_err(successes, trials, confidence):
    # scipy 1.17: by 2e-11 and 2e-6.
    expected = reference.lower(successes, trials, confidence, digits=15)
    assert is_close(binomial.lower(successes, trials, confidence), expected)


def miss(confidence):
    return 1 - mpf(confidence)


@pytest.mark.parametrize("trials", [1, 2, 10, 1000, 10**6, 10**9])
@pytest.mark.parametrize("confidence", [0.01, *CONFIDENCES])
def test_clopper_pearson_in_closed_form(trials, confidence):
    with mp.workdps(40):
        rare, common = miss(confidence) ** (mpf(1) / trials), mpf(confidence) ** (mpf(1) / trials)
        assert is_close(binomial.lower(trials, trials, confidence), rare)
        assert is_close(binomial.upper(0, trials, confidence), 1 - rare)
        assert is_close(binomial.lower(1, trials, confidence), 1 - common)
        assert is_close(binomial.upper(trials - 1, trials, confidence), common)


@pytest.mark.deep(beyond=3)
@pytest.mark.parametrize("method", METHODS)
def test_small_confidence_keeps_its_digits(method):
    # 1 − confidence has lost half of them here.
    assert is_close(binomial.upper(0, 10, 1e-8, method), reference.upper(0, 10, 1e-8, method, digits=15))


def test_sample_of_a_trillion_is_served_or_refused():
    # The incomplete beta functions of scipy 1.17 lose digits near the median of a beta variable from 1e11 on.
    try:
        value = binomial.upper(489_247_417_261, 978_494_834_523, 0.4985674599849167)
    except ValueError:
        return
    assert value == pytest.approx(0.49999999818495094, rel=BUDGET)


def test_confidence_of_nearly_nothing_is_served_or_refused():
    # I_x(370, 34) = 1e-280 by its hypergeometric series; scipy's inverse starts to fail there.
    try:
        value = binomial.upper(369, 403, 1e-280)
    except ValueError:
        return
    with mp.workdps(40):
        p = mpf(float(value))
        tail = p**370 / 370 * mp.hyp2f1(370, -33, 371, p) / mp.beta(370, 34)
        # The tail is as steep as p³⁷⁰.
        assert abs(tail / mpf(1e-280) - 1) <= 370 * BUDGET


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("trials", [1, 2, 3, 10, 50])
def test_clopper_pearson_limits_solve_their_equation(trials, confidence):
    # P(S ≥ s) at the lower limit is the miss; its slope in p turns the remainder into an error of the limit.
    for successes in range(1, trials + 1):
        p = mpf(float(binomial.lower(successes, trials, confidence)))
        with mp.workdps(60):
            tail = mp.fsum(
                mp.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1)
            )
            slope = successes * mp.binomial(trials, successes) * p ** (successes - 1) * (1 - p) ** (trials - successes)
            assert abs(tail - miss(confidence)) <= BUDGET * p * slope


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_conventions_at_the_ends(method, confidence):
    trials = np.array([1, 2, 50, 10**6])
    np.testing.assert_array_equal(binomial.lower(0, trials, confidence, method), 0)
    np.testing.assert_array_equal(binomial.upper(trials, trials, confidence, method), 1)
    low, high = binomial.interval([0, trials[2]], trials[2], confidence, method)
    assert (low[0], high[1]) == (0, 1)
    assert 0 < high[0] < 1
    assert 0 < low[1] < 1


@pytest.mark.parametrize("confidence", [0.1, *CONFIDENCES])
@pytest.mark.parametrize("trials", [1, 2, 3, 7, 20, 50])
def test_clopper_pearson_never_covers_less_than_its_level(trials, confidence):
    s = np.arange(trials + 1)
    lower, upper = (f(s, trials, confidence) for f in (binomial.lower, binomial.upper))
    low, high = binomial.interval(s, trials, confidence)
    # The coverage is least beside the limits themselves, where it jumps down to the level.
    limits = np.concatenate([lower, upper, low, high])
    p = np.concatenate([np.linspace(0, 1, 101), limits, np.nextafter(limits, 0), np.nextafter(limits, 1)])[
        :, np.newaxis
    ]
    mass = stats.binom.pmf(s, trials, p)
    for covered in (lower <= p, p <= upper, (low <= p) & (p <= high)):
        assert np.min(np.sum(mass * covered, axis=1)) >= confidence - 1e-11


@pytest.mark.parametrize("trials", [5, 30])
def test_jeffreys_covers_its_level_on_average(trials):
    # Averaged over its own prior, a posterior quantile covers exactly its level; the conventions at the ends add what
    # they cut off: at s = 0 all p below the quantile.
    s = np.arange(trials + 1)
    lower = binomial.lower(s, trials, 0.9, "jeffreys")
    prior_of_outcome = stats.betabinom.pmf(s, trials, 0.5, 0.5)
    coverage = np.sum(prior_of_outcome * stats.beta.sf(lower, s + 0.5, trials - s + 0.5))
    assert coverage == pytest.approx(0.9 + 0.1 * prior_of_outcome[0], abs=1e-12)


COUNTS = st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
LEVELS = st.floats(0.6, 1 - 1e-9)


@given(counts=COUNTS, level=LEVELS, method=st.sampled_from(METHODS))
def test_failures_mirror_successes(counts, level, method):
    s, n = counts
    mirrored = 1 - binomial.lower(n - s, n, level, method)
    assert binomial.upper(s, n, level, method) == pytest.approx(mirrored, rel=BUDGET, abs=BUDGET)


@given(counts=COUNTS, level=LEVELS, method=st.sampled_from(METHODS))
def test_limits_embrace_the_proportion(counts, level, method):
    s, n = counts
    assert 0 <= binomial.lower(s, n, level, method) <= s / n <= binomial.upper(s, n, level, method) <= 1


@given(counts=COUNTS, levels=st.tuples(LEVELS, LEVELS), method=st.sampled_from(METHODS))
def test_more_confidence_widens(counts, levels, method):
    less, more = sorted(levels)
    assert binomial.lower(*counts, more, method) <= binomial.lower(*counts, less, method) * (1 + 1e-10)
    assert binomial.upper(*counts, more, method) >= binomial.upper(*counts, less, method) * (1 - 1e-10)


@given(counts=COUNTS, level=LEVELS, method=st.sampled_from(METHODS))
def test_more_successes_raise(counts, level, method):
    s, n = counts
    assert binomial.lower(min(s + 1, n), n, level, method) >= binomial.lower(s, n, level, method)
    assert binomial.upper(min(s + 1, n), n, level, method) >= binomial.upper(s, n, level, method)


@given(counts=COUNTS, level=LEVELS, method=st.sampled_from(METHODS))
def test_two_sides_are_one_side_twice(counts, level, method):
    low, high = binomial.interval(*counts, level, method)
    one_sided = 1 - (1 - level) / 2
    # 1 − confidence keeps no more digits than this.
    assert low == pytest.approx(binomial.lower(*counts, one_sided, method), rel=1e-6)
    assert high == pytest.approx(binomial.upper(*counts, one_sided, method), rel=1e-6)


def test_clopper_pearson_contains_jeffreys():
    s = np.arange(41)
    assert np.all(binomial.lower(s, 40) <= binomial.lower(s, 40, method="jeffreys"))
    assert np.all(binomial.upper(s, 40) >= binomial.upper(s, 40, method="jeffreys"))


def test_arguments_broadcast_as_scipys_do():
    for f in (binomial.lower, binomial.upper):
        table = f([[3], [7]], [10, 20, 30], 0.9)
        assert table.shape == (2, 3)
        assert table[1, 2] == f(7, 30, 0.9)
        assert isinstance(f(3, 10), float)
        assert f(np.int8(3), np.uint32(10)) == f(3.0, 10.0)
        assert f([], 10).shape == (0,)
        assert f(3, 10, [0.5, 0.9])[1] == f(3, 10, 0.9)
    low, high = binomial.interval(3, 10)
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert [a.shape for a in binomial.interval([[3], [7]], [10, 20, 30])] == [(2, 3), (2, 3)]


FUNCTIONS = [binomial.lower, binomial.upper, binomial.interval]


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("trials", [0, -1, 2.5, float("nan"), float("inf"), [3, 0]])
def test_trials_outside_the_domain_are_refused(f, trials):
    with pytest.raises(ValueError, match="trials"):
        f(0, trials)


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("successes", [-1, 4, 0.5, float("nan"), float("inf"), [3, 4]])
def test_successes_outside_the_domain_are_refused(f, successes):
    with pytest.raises(ValueError, match="successes"):
        f(successes, 3)


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("confidence", [0, 1, -0.1, 1.5, float("nan"), [0.5, 1]])
def test_confidences_outside_the_domain_are_refused(f, confidence):
    with pytest.raises(ValueError, match="confidence"):
        f(1, 3, confidence)


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("method", ["wald", "Jeffreys", "", None])
def test_unknown_methods_are_refused(f, method):
    with pytest.raises(ValueError, match="method"):
        f(1, 3, 0.9, method)


@pytest.mark.parametrize(
    ("a", "b", "largest", "total", "moved"),
    [
        (50.0, 51.0, 0.755, 1.36, 0.126),
        (5e3, 5e3 + 1.0, 0.975, 7.52, 0.0125),
        (5e5, 5e5 + 1.0, 0.9975, 35.7, 0.00125),
        (1.0, 1e6, 0.141, 0.143, 1.72),
    ],
)
def test_how_the_fraction_damps_rounding_errors(a, b, largest, total, moved):
    """The numbers of the module's text: damping factors at the mean, their products, and how far the limit moves."""
    x, count = a / (a + b), 500
    alphas, betas = zip(
        *(binomial._element.py_func(float(n), x, 1.0 - x, 0.0, a, b) for n in range(count)), strict=True
    )
    values = list(betas)
    for n in range(count - 2, -1, -1):
        values[n] = betas[n] + alphas[n + 1] / values[n + 1]
    factors = [abs(alphas[n + 1] / values[n + 1] / values[n]) for n in range(min(count - 1, int(b)))]
    assert max(factors) == pytest.approx(largest, rel=5e-3)
    assert math.fsum(itertools.accumulate(factors, operator.mul)) == pytest.approx(total, rel=5e-3)
    # The limit's relative change over the tail's: the tail is x^a (1 − x)^b / B(a, b) over the fraction.
    assert (1.0 - x) / values[0] == pytest.approx(moved, rel=5e-3)
