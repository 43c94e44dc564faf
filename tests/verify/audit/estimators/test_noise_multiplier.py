import math
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.verify.audit.estimators.noise_multiplier import (
    Evidence,
    NoiseMultiplier,
    RoundTraces,
    log_likelihood,
    log_tails,
    noticed_share,
    power,
)
from tests.rows import chequered


def drawn(noise, lengths, dim, rng, data_norm=0.0):
    """Draw the traces of a training from their law; data of a norm are orthogonal to the canaries."""
    lengths = np.asarray(lengths, float)
    along = lengths + noise * rng.standard_normal(lengths.shape)
    side = data_norm + noise * rng.standard_normal(lengths.shape)
    rest = noise * np.sqrt(rng.chisquare(dim - 2, lengths.shape))
    return RoundTraces(along / np.sqrt(along**2 + side**2 + rest**2), lengths, dim, True, len(lengths))


def tails_by_quadrature(cosine, shift, dim):
    """Integrate over the chi law in 30 digits."""
    with mp.workdps(30):
        freedom = mp.mpf(dim - 1)
        t = mp.mpf(cosine) / mp.sqrt(1 - mp.mpf(cosine) ** 2) * mp.sqrt(freedom)
        ends = mp.linspace(-60 / mp.sqrt(2 * freedom), 40 / mp.sqrt(2 * freedom), 61)

        def weight(x):
            return mp.e ** (freedom * (x - mp.expm1(2 * x) / 2))

        def integral(function):
            return mp.quad(function, ends, method="gauss-legendre", maxdegree=4)

        whole = integral(weight)
        return tuple(
            float(mp.log(integral(lambda x, s=s: mp.ncdf(s * (t * mp.e**x - shift)) * weight(x)) / whole))
            for s in (1, -1)
        )


@pytest.mark.deep(beyond=4)
@pytest.mark.parametrize(
    ("dim", "tail"), chequered([10, 1000, 10**6, 10**12], [(0.0, -8.0), (0.5, 0.0), (5.0, 8.0), (50.0, -3.0)])
)
def test_tails_are_those_of_the_noncentral_t(dim, tail):
    shift, z = tail
    t = shift + z * math.sqrt(1.0 + 0.5 * shift**2 / (dim - 1))
    cosine = t / math.sqrt(dim - 1 + t * t)
    # A cosine near 1 loses digits of 1 − c².
    assert log_tails(cosine, shift, dim) == pytest.approx(tails_by_quadrature(cosine, shift, dim), rel=1e-8, abs=1e-9)


@pytest.mark.deep(beyond=4)
@pytest.mark.parametrize(
    ("dim", "place"),
    chequered([10, 3, 6], [(10.0, -0.72), (1.0, 0.97), (5.01, 0.95), (30.0, -0.95), (0.0, -0.3), (8.0, 0.97)]),
)
def test_tails_in_few_dimensions(dim, place):
    shift, cosine = place
    expected = tails_by_quadrature(cosine, shift, dim)
    assert log_tails(cosine, shift, dim) == pytest.approx(expected, rel=1e-12, abs=1e-7 if dim < 6 else 1e-9)


@given(st.integers(3, 10**6), st.floats(0.0, 200.0), st.floats(-6.0, 6.0))
def test_tails_agree_with_another_library(dim, shift, z):
    t = shift + z * math.sqrt(1.0 + 0.5 * shift**2 / (dim - 1))
    below, above = np.exp(log_tails(t / math.hypot(math.sqrt(dim - 1), t), shift, dim))
    assert below + above == pytest.approx(1.0, abs=1e-7)
    # SciPy has no answer far out in few dimensions.
    library = stats.nct.cdf(t, dim - 1, shift)
    assume(not math.isnan(library))
    assert below == pytest.approx(library, abs=1e-7)


@given(st.integers(3, 10**6), st.floats(0.0, 100.0), st.floats(-4.0, 4.0))
def test_the_likelihood_is_a_ratio_of_densities(dim, shift, z):
    t = shift + z
    ratio = stats.nct.logpdf(t, dim - 1, shift) - stats.t.logpdf(t, dim - 1)
    cosine = t / math.hypot(math.sqrt(dim - 1), t)
    assert log_likelihood(cosine, shift, dim) == pytest.approx(ratio, rel=1e-6, abs=1e-6)


@given(st.integers(3, 10**9), st.floats(0.01, 50.0), st.floats(1.01, 5.0))
def test_the_ratio_of_two_likelihoods_rises_with_the_cosine(dim, shift, factor):
    cosines = np.linspace(-0.999, 0.999, 41)
    ratio = log_likelihood(cosines, factor * shift, dim) - log_likelihood(cosines, shift, dim)
    assert (np.diff(ratio) > 0.0).all()


RUNS = 300


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("dim", "lengths"),
    [pytest.param(300, [12.0] * 3, marks=pytest.mark.deep), (20_000, [1.0, 2.0, 7.0, 30.0])],
)
def test_levels_and_intervals_are_exact_for_noise_alone(dim, lengths):
    rng, noise = np.random.default_rng(5), 0.7
    traces = [drawn(noise, lengths, dim, rng) for _ in range(RUNS)]
    p_values = [each.p_value(noise) for each in traces]
    # Kolmogorov and Smirnov's test at level 1e-6; it notices a distance of .19 with more than 90%.
    assert stats.kstest(p_values, "uniform").pvalue > 1e-6
    # An interval of 95% covers where the p-value lies between 2.5% and 97.5%.
    for each, p_value in zip(traces[:50], p_values, strict=False):
        measured = each.noise_multiplier(0.95)
        if measured.spread_p_value > 0.01:
            assert (measured.low <= noise <= measured.high) == (0.025 <= p_value <= 0.975)
            assert measured.low < measured.value < measured.high


def test_data_and_more_noise_make_rejections_rarer():
    rng, lengths = np.random.default_rng(6), [7.0] * 10
    at_claim = stats.binom.isf(1e-6, RUNS, 0.05)
    for noise, data in ((1.0, 40.0), (1.3, 0.0), (1.0, 4.0)):
        rejected = sum(drawn(noise, lengths, 2000, rng, data).p_value(1.0) < 0.05 for _ in range(RUNS))
        assert rejected <= at_claim


def test_independent_rounds_have_uniform_p_values():
    rng = np.random.default_rng(8)
    p_values = [drawn(1.0, [7.0] * 12, 2000, rng).independence_p_value(1.0) for _ in range(RUNS)]
    assert stats.kstest(p_values, "uniform").pvalue >= 1e-6


def test_rounds_that_share_their_noise_are_dependent():
    single = drawn(1.0, [7.0] * 40, 10**5, np.random.default_rng(9))
    twice = RoundTraces(np.repeat(single.cosines, 2), np.repeat(single.lengths, 2), 10**5, True, 80)
    assert twice.independence_p_value(1.0) < 1e-6
    assert RoundTraces(single.cosines[:7], single.lengths[:7], 10**5, True, 7).independence_p_value(1.0) is None


def test_the_power_is_as_computed():
    rng = np.random.default_rng(7)
    for dim, lengths, data in ((1000, [30.0], 0.0), (10**5, [3.0] * 8, 0.0), (2000, [10.0] * 4, 20.0)):
        share = noticed_share(1.0, lengths, dim, 0.025, data)
        rejected = sum(drawn(share, lengths, dim, rng, data).p_value(1.0) < 0.025 for _ in range(RUNS))
        # The computed power is right to 1%.
        assert abs(rejected / RUNS - 0.9) < 4.9 * math.sqrt(0.09 / RUNS) + 0.01
    assert noticed_share(1.0, [3.0], 10**6, 0.025, 1e6) == 0.0


@pytest.mark.parametrize("dim", [1e3, 1e6, 1e12])
@pytest.mark.parametrize("count", [10, 1000])
def test_the_power_of_the_mechanisms_test_is_that_of_noncentral_t(dim, count):
    exact = partial(stats.nct.sf, df=dim - 1)
    critical = stats.nct.isf(0.025, dim - 1, math.sqrt(count) / 1.54)
    for share in (0.95, 0.8, 0.5):
        rejected = power(1.0 / (share * 1.54), 1.54, math.sqrt(count), dim, 0.025)
        assert rejected == pytest.approx(exact(critical, nc=math.sqrt(count) / (share * 1.54)), abs=40.0 / dim)
    assert power(1.0 / 1.54, 1.54, math.sqrt(count), dim, 0.025) == pytest.approx(0.025, abs=1e-12)
    assert power(1.0, 1.54, [0.0, 0.0], dim, 0.025) == pytest.approx(0.025, abs=1e-12)


def test_data_hide_less_noise_from_the_mechanisms_test():
    hidden = math.sqrt(0.75 * 1e6) * 1.54
    assert noticed_share(1.54, math.sqrt(1000.0), 10**6, 0.025, hidden) == 0.0
    assert noticed_share(1.54, math.sqrt(1000.0), 10**6, 0.025) > 0.5


def test_evidence_is_an_e_process():
    rng, lengths, runs = np.random.default_rng(8), [7.0] * 12, RUNS
    highest = [drawn(1.0, lengths, 2000, rng).log_evidence(1.0).max() for _ in range(runs)]
    for level in (0.5, 0.1, 0.05):
        alarms = sum(each >= -math.log(level) for each in highest)
        assert alarms <= stats.binom.isf(1e-6 / 3, runs, level)
    # Half of the noise is seen at once.
    seen = [drawn(0.5, lengths, 2000, rng).log_evidence(1.0)[0] > math.log(20.0) for _ in range(200)]
    assert np.mean(seen) > 0.9


def test_the_alarm_is_at_the_first_round_above_it_and_the_picture_counts_rounds_from_one():
    evidence = Evidence(np.array([2, 5, 9]), np.log([1.0, 999.0, 1001.0]))
    assert [evidence.alarm(level) for level in (2e-3, 1e-3, 1e-4)] == [5, 9, None]
    assert evidence.alarm() == 9
    (axes,) = evidence.plot(0.01).axes
    drawn, alarm, start = ([np.asarray(part) for part in line.get_data()] for line in axes.lines)
    np.testing.assert_allclose(drawn, ([3, 6, 10], [1.0, 999.0, 1001.0]))
    assert (set(alarm[1]), set(start[1])) == ({100.0}, {1.0})


def test_evidence_is_of_noise_from_a_fifth_to_98_percent_of_the_claimed():
    traces = RoundTraces(np.array([0.3]), np.array([5.0]), 1000, True, 1)
    (ratios,) = traces.log_ratios(2.0)
    for ratio, share in zip(ratios[[0, -1]], (1.0 / 1.02, 0.2), strict=True):
        held = (log_likelihood(np.array([0.3]), np.array([5.0 / noise]), 1000)[0] for noise in (share * 2.0, 2.0))
        assert ratio == pytest.approx(next(held) - next(held))


def test_one_round_has_no_spread_and_three_dimensions_suffice():
    for dim in (3, 10_000):
        assert RoundTraces(np.array([0.5]), np.array([30.0]), dim, True, 1).noise_multiplier().spread_p_value is None


def test_evidence_goes_on_as_it_began():
    traces = drawn(0.9, [7.0] * 9, 2000, np.random.default_rng(9))
    first = RoundTraces(traces.cosines[:5], traces.lengths[:5], traces.dim, True, 5)
    assert first.log_evidence(1.0) == pytest.approx(traces.log_evidence(1.0)[:5])


def test_rounds_of_unequal_noise_widen_the_interval_by_the_deviation_of_their_scores():
    # In many dimensions √d times a cosine is normal, with the mean ‖S‖/σ and variance 1.
    dim, length, sigma, off = 10**12, 300.0, 2.0, np.array([-7.0, 7.0, -7.0, 7.0])
    shifts = length / sigma + off
    measured = RoundTraces(shifts / np.sqrt(shifts**2 + dim), np.full(4, length), dim, False, 4).noise_multiplier(0.9)
    widened = math.sqrt(4.0 * 7.0**2 / 3.0) / (math.sqrt(4.0) * length)
    assert measured.value == pytest.approx(sigma, rel=1e-9)
    reach = stats.norm.isf(0.05) * widened
    assert (1.0 / measured.high, 1.0 / measured.low) == pytest.approx((1.0 / sigma - reach, 1.0 / sigma + reach))
    error = 0.5 * (1.0 / (1.0 / sigma - widened) - 1.0 / (1.0 / sigma + widened))
    assert measured.standard_error == pytest.approx(error)
    # The least of three tests: the spread is by far the most unlikely here.
    assert math.log(measured.spread_p_value) == pytest.approx(stats.chi2.logsf(4.0 * 7.0**2, 3) + math.log(3.0))


@pytest.mark.parametrize("kind", ["trend", "one round"])
def test_unequal_rounds_are_seen_by_their_trend_or_by_the_one_with_the_least_noise(kind):
    dim, rounds, sigma = 10**12, 40, 2.0
    lengths = 100.0 + 10.0 * np.arange(rounds) % 70.0
    # What a round's z-score is off, in a direction that the weighted sum of all does not see.
    order = np.arange(rounds) - (lengths**2 @ np.arange(rounds)) / (lengths**2).sum()
    trend = lengths * order / np.linalg.norm(lengths * order)
    off = 6.0 * trend if kind == "trend" else 7.0 * np.eye(rounds)[3]
    shifts = lengths / sigma + off
    measured = RoundTraces(shifts / np.sqrt(shifts**2 + dim), lengths, dim, False, rounds).noise_multiplier()
    if kind == "trend":
        assert measured.value == pytest.approx(sigma, rel=1e-6)
        assert measured.spread_p_value == pytest.approx(3.0 * 2.0 * stats.norm.sf(6.0), rel=1e-3)
    else:
        # The round has 7 less what the common value takes of it.
        left = 7.0 - 7.0 * lengths[3] ** 2 / (lengths**2).sum()
        assert measured.spread_p_value == pytest.approx(3.0 * rounds * stats.norm.sf(left), rel=1e-2)


def test_p_values_of_equal_rounds_are_at_most_uniform():
    rng = np.random.default_rng(31)
    p_values = [drawn(1.0, [5.0] * 12, 2000, rng).noise_multiplier().spread_p_value for _ in range(200)]
    # At most 10% are below .1, by three tests; 35 of 200 and more have a probability of 1e-3 to 1e-6 of that.
    assert sum(p_value < 0.1 for p_value in p_values) <= stats.binom.isf(1e-6, 200, 0.1)


def test_no_trace_is_an_infinite_noise_multiplier():
    traces = RoundTraces(np.array([-0.05]), np.array([30.0]), 10_000, False, 1)
    measured = traces.noise_multiplier()
    assert measured.value == measured.high == math.inf
    assert traces.trace_p_value > 0.99
    assert traces.noise_source == "noise and others' data together"


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_release_of_canaries_alone_has_no_noise(rounds):
    traces = RoundTraces(np.ones(rounds), np.linspace(20.0, 30.0, rounds), 10_000, True, rounds)
    assert traces.noise_multiplier() == NoiseMultiplier(0.0, 0.0, 0.0, 0.0, None)
    assert traces.p_value(1.0) < 1e-300
