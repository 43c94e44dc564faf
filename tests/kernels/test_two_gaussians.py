import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import integrate, special

from canaryproof.kernels import gaussian_mechanism, two_gaussians
from canaryproof.kernels.reference import two_gaussians as reference
from tests.rows import chequered

# The module's own: log δ of the larger of itself and 1; ε of itself or the absolute figure.
BUDGET = 1e-13
ABSOLUTE = 1e-14
LARGEST_EPSILON = 1e5

DIRECTIONS = ["forward", "reverse", "both"]
SWAPPED = {"forward": "reverse", "reverse": "forward", "both": "both"}
# The twin is fast here, and the domain has five dimensions.
MANY = settings(max_examples=5 * settings().max_examples)
SIGNS = st.sampled_from([-1.0, 1.0])

RATIOS = st.one_of(
    st.floats(-3, 3).map(lambda t: 10**t),
    st.tuples(st.floats(-16.5, -0.31), SIGNS).map(lambda t: 1 + t[1] * 10 ** t[0]),
    st.sampled_from([1.0, math.nextafter(1.0, 2), math.nextafter(1.0, 0), 1e-3, 1e3]),
)
DISTANCES = st.one_of(st.just(0.0), st.floats(-20, 3).map(lambda t: 10**t), st.floats(0.01, 10))


@st.composite
def pairs(draw):
    """Means and deviations whose standardised form is spread over the domain."""
    scale = draw(st.sampled_from([1.0, 1.0, 3e-7, 1e150]))
    shift = draw(st.sampled_from([0.0, 0.0, 1.25, -300.0])) * scale
    return shift + draw(SIGNS) * draw(DISTANCES) * scale, draw(RATIOS) * scale, shift, scale


@st.composite
def dyadic_pairs(draw):
    """Pairs that survive shifts and scalings by whole numbers and powers of two without rounding."""
    mu1, mu2 = (draw(st.integers(-4000, 4000)) / 64 for _ in range(2))
    sigma1, sigma2 = (draw(st.integers(1, 4000)) / 64 for _ in range(2))
    return mu1, sigma1, mu2, sigma2


EPSILONS = st.one_of(st.just(0.0), st.floats(-10, 5).map(lambda t: 10**t), st.floats(0, 20))
DELTAS = st.one_of(st.floats(-300, math.log10(0.5)).map(lambda t: min(10**t, 0.5)), st.floats(0.01, 0.5))


def largest_loss(mu1, sigma1, mu2, sigma2):
    """Maximum of the privacy loss of a narrower first Gaussian: beyond it δ is 0."""
    with mp.workdps(60):
        mu1, sigma1, mu2, sigma2 = map(mpf, (mu1, sigma1, mu2, sigma2))
        return float((mu1 - mu2) ** 2 / (2 * (sigma2 - sigma1) * (sigma2 + sigma1)) - mp.log(sigma1 / sigma2))


def log_delta_is_right(epsilon, pair, direction):
    value = float(two_gaussians.log_delta(epsilon, *pair, direction))
    expected = reference.log_delta(epsilon, *pair, direction, digits=20)
    if mp.isinf(expected):
        return value == -math.inf
    return abs(mpf(value) - expected) <= BUDGET * max(1, abs(expected))


def epsilon_is_right(delta, pair, direction):
    value = float(two_gaussians.epsilon(delta, *pair, direction))
    expected = reference.epsilon(delta, *pair, direction, digits=20)
    return abs(mpf(value) - expected) <= max(BUDGET * expected, ABSOLUTE)


def holds_epsilon(value, delta, pair, direction, slack=1):
    """Whether the true ε lies within the budget of ``value``: log δ decides, without a root finder."""
    reach = slack * max(BUDGET * value, ABSOLUTE)
    with mp.workdps(40):
        target, low, high = mp.log(mpf(delta)), mpf(value) - reach, mpf(value) + reach
    enough = reference.log_delta(high, *pair, direction, digits=30) <= target
    return enough and (low <= 0 or reference.log_delta(low, *pair, direction, digits=30) >= target)


@MANY
@given(epsilon=EPSILONS, pair=pairs(), direction=st.sampled_from(DIRECTIONS))
def test_budget_of_log_delta(epsilon, pair, direction):
    assert log_delta_is_right(epsilon, pair, direction)


@MANY
@given(closeness=st.floats(-16, 0), pair=pairs())
def test_budget_of_log_delta_below_the_largest_loss(closeness, pair):
    # δ falls to 0 like a power of the distance to that maximum, which is a difference of two close numbers.
    mu1, sigma1, mu2, sigma2 = pair
    narrow = (mu1, sigma1, mu2, sigma2) if sigma1 < sigma2 else (mu2, sigma2, mu1, sigma1)
    assume(sigma1 != sigma2)
    epsilon = largest_loss(*narrow) * (1 - 10**closeness)
    assume(0 <= epsilon <= LARGEST_EPSILON)
    assert log_delta_is_right(epsilon, narrow, "forward")


@MANY
@given(delta=DELTAS, pair=pairs(), direction=st.sampled_from(DIRECTIONS))
def test_budget_of_epsilon(delta, pair, direction):
    assume(reference.log_delta(LARGEST_EPSILON, *pair, direction, digits=5) < math.log(delta))
    assert holds_epsilon(float(two_gaussians.epsilon(delta, *pair, direction)), delta, pair, direction)


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    ("direction", "ratio", "point"),
    chequered(
        DIRECTIONS,
        [1e-3, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 2.0, 30.0],
        [(0.0, 1e-5), (1e-3, 1e-12), (1.0, 0.5), (7.0, 1e-5), (300.0, 1e-300)],
    ),
)
def test_epsilon_agrees_with_the_twin(point, ratio, direction):
    distance, delta = point
    assert epsilon_is_right(delta, (distance, ratio, 0, 1), direction)


@pytest.mark.deep(every=3)
@pytest.mark.parametrize(
    ("gap", "sign"), chequered([2.0**-52, 1e-15, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4], [-1, 1])
)
def test_nearly_equal_deviations_keep_the_digits_of_epsilon(gap, sign):
    # Implementations that solve the quadratic by the school formula lose all digits between "equal" and "clearly
    # unequal" deviations.
    for distance, delta in ((0.0, 1e-18), (1e-4, 1e-9), (0.5, 1e-5), (3.0, 0.4), (50.0, 1e-10)):
        assert epsilon_is_right(delta, (distance, 1 + sign * gap, 0, 1), "forward")


@pytest.mark.parametrize("gap", [2.0**-52, 1e-15, 1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("sign", [-1, 1])
def test_nearly_equal_deviations_keep_the_digits_of_log_delta(gap, sign):
    for distance, epsilon in ((0.0, 0.0), (0.0, 0.5 * gap), (1e-4, 1e-5), (0.5, 3.0), (50.0, 2000.0)):
        assert log_delta_is_right(epsilon, (distance, 1 + sign * gap, 0, 1), "forward")


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("mu", "sigma"), [(0.0, 1.0), (0.1, 0.3), (-1e8, 1e-8), (3, 1e150)])
def test_identical_gaussians_leak_nothing(mu, sigma, direction):
    for delta in (2.3e-308, 1e-300, 1e-5, 0.5, 1 - 1e-16):
        assert two_gaussians.epsilon(delta, mu, sigma, mu, sigma, direction) == 0
    for epsilon in (0, 1e-300, 1, 1e5):
        assert two_gaussians.log_delta(epsilon, mu, sigma, mu, sigma, direction) == -math.inf


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("ratio", [1e-3, 0.9, math.nextafter(1.0, 0), 1.0, math.nextafter(1.0, 2), 1.1, 1e3])
def test_probabilities_that_round_to_zero_leave_finite_epsilons(ratio, direction):
    # P₁(Z > ε) and P₂(Z > ε) underflow where their quotient and log δ do not.
    distances = np.array([0, 1e-20, 1e-10, 1e-3, 1, 30, 1e3])
    epsilon = two_gaussians.epsilon(1e-300, distances, ratio, 0, 1, direction)
    assert np.all(np.isfinite(epsilon) & (epsilon >= 0))
    log_delta = two_gaussians.log_delta(np.array([[0], [1], [1e5]]), distances, ratio, 0, 1, direction)
    assert np.all(log_delta <= 0)


@pytest.mark.parametrize("steps", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("ratio", [0.999, 1.0, 1.001, 3.0])
def test_seam_thirty_deviations_inside(ratio, steps):
    # At u = −30 log δ passes from the tail beyond the root to its complement.
    u, m = -30, 300.0
    epsilon = (ratio * ratio - 1) / 2 * u * u + m * ratio * u + m * m / 2 - math.log(ratio)
    assert log_delta_is_right(epsilon * (1 + steps * 1e-14), (m, ratio, 0, 1), "forward")


def test_seam_where_subtraction_hands_over_to_quadrature():
    # At u = 0 the halves of δ differ by a thousandth near m = 0.00125.
    for m in np.linspace(0.0011, 0.0014, 17):
        assert log_delta_is_right(m * m / 2, (float(m), 1, 0, 1), "forward")
        assert log_delta_is_right(m * m / 2, (float(m), 1.0 + 0.5 * float(m), 0, 1), "forward")


@pytest.mark.parametrize("length", [0.999, 1 - 1e-15, 1.0, 1 + 1e-15, 1.001, 1.5, 3.0])
def test_seam_where_the_interval_is_of_length_one(length):
    ratio = 0.5
    alpha = (ratio * ratio - 1) / 2
    q = -alpha * length
    for m in (0.5, 1.0, 6.0):
        epsilon = (m * m - q * q) / (-4 * alpha) - math.log(ratio)
        assert log_delta_is_right(epsilon, (m, ratio, 0, 1), "forward")


@pytest.mark.parametrize("delta", [0.4999999, math.nextafter(0.5, 0), 0.5, math.nextafter(0.5, 1), 0.5000001])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.0])
def test_seam_at_delta_one_half(delta, ratio):
    pair = (5.0, ratio, 0, 1)
    assert epsilon_is_right(delta, pair, "forward")
    assert log_delta_is_right(float(two_gaussians.epsilon(delta, *pair, "forward")), pair, "forward")


@pytest.mark.parametrize("ratio", [1e-3, 0.5, 0.999, 1 - 1e-10])
@pytest.mark.parametrize("m", [0.0, 1e-3, 1.0])
def test_no_divergence_beyond_the_largest_loss(ratio, m):
    ceiling = largest_loss(m, ratio, 0, 1)
    for epsilon in (ceiling * (1 - 1e-15), math.nextafter(ceiling, 0), math.nextafter(ceiling, math.inf), 2 * ceiling):
        assert log_delta_is_right(epsilon, (m, ratio, 0, 1), "forward")
    assert two_gaussians.epsilon(1e-300, m, ratio, 0, 1, "forward") <= ceiling * (1 + BUDGET)


@pytest.mark.parametrize("ratio", [0.02, 1.0, 40.0])
@pytest.mark.parametrize("m", [3.0, 12.0])
def test_budget_of_epsilon_where_delta_is_large(ratio, m):
    # Above 1/2 the module promises an absolute error only, and no figure for it.
    for delta in (0.6, 0.9, 0.95):
        expected = float(reference.epsilon(delta, m, ratio, 0, 1, "forward", digits=20))
        assert two_gaussians.epsilon(delta, m, ratio, 0, 1, "forward") == pytest.approx(expected, abs=1e-13, rel=1e-13)


@MANY
@given(miss=st.floats(-15.9, math.log10(0.5)).map(lambda t: 10**t), pair=pairs(), direction=st.sampled_from(DIRECTIONS))
def test_epsilon_keeps_most_digits_where_delta_is_large(miss, pair, direction):
    delta = 1 - miss
    assume(reference.log_delta(LARGEST_EPSILON, *pair, direction, digits=5) < math.log(delta))
    # The module names no figure for its absolute error above 1/2; this is ten times the one below.
    assert holds_epsilon(float(two_gaussians.epsilon(delta, *pair, direction)), delta, pair, direction, slack=10)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_epsilon_is_a_number_where_delta_is_large(direction):
    rng = np.random.default_rng(4)
    ratio, m = 10 ** rng.uniform(-3, 3, 20_000), 10 ** rng.uniform(-3, 3, 20_000)
    # On the way to the root P₂(Z > ε) may underflow.
    for delta in (rng.uniform(0.5, 1, m.size), 1 - 10 ** rng.uniform(-15.9, -0.31, m.size)):
        epsilon = two_gaussians.epsilon(delta, m, ratio, 0, 1, direction)
        assert np.count_nonzero(~((epsilon >= 0) & np.isfinite(epsilon))) == 0


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(("ratio", "miss"), chequered([0.0024, 0.1, 1.0, 3.0], [1e-4, 1e-8, 1e-12, 1.2e-16]))
def test_epsilon_is_right_or_refused_where_delta_is_nearly_one(ratio, miss):
    # A rounding of log δ, one part in 1e16 of 1, is a visible part of 1 − δ here; ε = 0 for 177 was once the answer.
    pair = (20.0, ratio, 0, 1)
    expected = float(reference.epsilon(1 - miss, *pair, "forward", digits=20))
    try:
        value = float(two_gaussians.epsilon(1 - miss, *pair, "forward"))
    except ValueError:
        return
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


def spread(count, seed):
    """Random pairs over the domain, for checks that need no twin."""
    rng = np.random.default_rng(seed)
    close = 1 + rng.choice([-1, 1], count) * 10 ** rng.uniform(-16.3, -0.31, count)
    ratio = np.where(rng.random(count) < 0.5, 10 ** rng.uniform(-3, 3, count), close)
    return rng, 10 ** rng.uniform(-10, 2.6, count) * rng.choice([0, 1, 1, 1], count), ratio


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_epsilon_inverts_log_delta(direction):
    rng, m, ratio = spread(3000, 1)
    delta = 10 ** rng.uniform(-300, math.log10(0.5), m.size)
    epsilon = two_gaussians.epsilon(delta, m, ratio, 0, 1, direction)
    reach = np.maximum(2 * BUDGET * epsilon, 2 * ABSOLUTE)
    slack = BUDGET * np.maximum(1, -np.log(delta))
    assert np.all(two_gaussians.log_delta(epsilon + reach, m, ratio, 0, 1, direction) <= np.log(delta) + slack)
    inside = epsilon > reach
    below = two_gaussians.log_delta(np.where(inside, epsilon - reach, 0), m, ratio, 0, 1, direction)
    assert np.all((below >= np.log(delta) - slack) | ~inside)


@given(epsilons=st.tuples(EPSILONS, EPSILONS), pair=pairs(), direction=st.sampled_from(DIRECTIONS))
def test_delta_falls_in_epsilon(epsilons, pair, direction):
    first, second = (float(two_gaussians.log_delta(e, *pair, direction)) for e in sorted(epsilons))
    assert first == second or second - first <= 2 * BUDGET * max(1, abs(second))


@given(deltas=st.tuples(DELTAS, DELTAS), pair=pairs(), direction=st.sampled_from(DIRECTIONS))
def test_epsilon_falls_in_delta(deltas, pair, direction):
    first, second = (float(two_gaussians.epsilon(d, *pair, direction)) for d in sorted(deltas))
    assert second - first <= max(2 * BUDGET * second, 2 * ABSOLUTE)


def both_functions(epsilon, delta, pair, direction):
    return (
        float(two_gaussians.log_delta(epsilon, *pair, direction)),
        float(two_gaussians.epsilon(delta, *pair, direction)),
    )


@given(EPSILONS, DELTAS, dyadic_pairs(), st.sampled_from(DIRECTIONS), st.integers(-(2**30), 2**30))
def test_a_common_shift_changes_nothing(epsilon, delta, pair, direction, shift):
    mu1, sigma1, mu2, sigma2 = pair
    moved = (mu1 + shift, sigma1, mu2 + shift, sigma2)
    assert both_functions(epsilon, delta, moved, direction) == both_functions(epsilon, delta, pair, direction)


@given(EPSILONS, DELTAS, dyadic_pairs(), st.sampled_from(DIRECTIONS), st.integers(-900, 900))
def test_a_common_scale_changes_nothing(epsilon, delta, pair, direction, exponent):
    scaled = tuple(math.ldexp(a, exponent) for a in pair)
    assert both_functions(epsilon, delta, scaled, direction) == both_functions(epsilon, delta, pair, direction)


@given(EPSILONS, DELTAS, pairs(), st.sampled_from(DIRECTIONS), st.floats(0.3, 3))
def test_a_common_scale_that_rounds_changes_little(epsilon, delta, pair, direction, scale):
    # Only where no near-coincidence magnifies the rounding of the scaled arguments.
    mu1, sigma1, mu2, sigma2 = pair
    assume(abs(sigma1 / sigma2 - 1) > 0.1)
    pair = (mu1 - mu2, sigma1, 0.0, sigma2)
    first, second = (two_gaussians.epsilon(delta, *(k * a for a in pair), direction) for k in (1.0, scale))
    # ε is a sum of terms of up to (m + 40·s)², s or 1/s, whose relative errors are a few ulps.
    size = (abs(pair[0]) / min(sigma1, sigma2) + 40 * max(sigma1 / sigma2, sigma2 / sigma1)) ** 2
    assert second == pytest.approx(first, abs=1e-15 * size)
    assert not math.isnan(two_gaussians.log_delta(epsilon, *(scale * a for a in pair), direction))


@given(EPSILONS, DELTAS, pairs(), st.sampled_from(DIRECTIONS))
def test_a_reflection_changes_nothing(epsilon, delta, pair, direction):
    mu1, sigma1, mu2, sigma2 = pair
    mirrored = (-mu1, sigma1, -mu2, sigma2)
    assert both_functions(epsilon, delta, mirrored, direction) == both_functions(epsilon, delta, pair, direction)


@given(EPSILONS, DELTAS, pairs(), st.sampled_from(DIRECTIONS))
def test_exchanging_the_gaussians_exchanges_the_directions(epsilon, delta, pair, direction):
    mu1, sigma1, mu2, sigma2 = pair
    swapped = both_functions(epsilon, delta, (mu2, sigma2, mu1, sigma1), SWAPPED[direction])
    assert swapped == both_functions(epsilon, delta, pair, direction)


@given(EPSILONS, DELTAS, pairs())
def test_both_is_the_larger_direction(epsilon, delta, pair):
    forward, reverse, both = (both_functions(epsilon, delta, pair, direction) for direction in DIRECTIONS)
    assert both[0] == max(forward[0], reverse[0])
    assert both[1] == pytest.approx(max(forward[1], reverse[1]), rel=2 * BUDGET, abs=2 * ABSOLUTE)


@given(epsilon=EPSILONS, delta=DELTAS, log_noise=st.floats(-2.5, 15))
def test_equal_deviations_are_the_gaussian_mechanism(epsilon, delta, log_noise):
    noise = 10**log_noise
    for direction in DIRECTIONS:
        log_delta, eps = both_functions(epsilon, delta, (1.0, noise, 0.0, noise), direction)
        assert log_delta == pytest.approx(float(gaussian_mechanism.log_delta(epsilon, noise)), rel=2e-13, abs=2e-13)
        assert eps == pytest.approx(float(gaussian_mechanism.epsilon(delta, noise)), rel=2e-13, abs=2e-14)


@pytest.mark.parametrize("ratio", [0.4, 0.8, 1.3, 3.0])
@pytest.mark.parametrize("m", [0.0, 0.7, 2.5])
def test_school_formula_where_it_does_not_cancel(m, ratio):
    # Roots of the parabola by the textbook, probabilities subtracted: right while δ is not small.
    for epsilon in (0.0, 0.1, 0.5):
        a, b, c = (1 - ratio**-2) / 2, m / ratio**2, -(m * m) / (2 * ratio**2) - math.log(ratio) - epsilon
        root = math.sqrt(max(b * b - 4 * a * c, 0.0))
        low, high = sorted(((-b - root) / (2 * a), (-b + root) / (2 * a)))

        def inside(mu, sigma, low=low, high=high):
            return special.ndtr((high - mu) / sigma) - special.ndtr((low - mu) / sigma)

        first, second = inside(m, ratio), inside(0, 1)
        if a > 0:
            first, second = 1 - first, 1 - second
        delta = math.exp(two_gaussians.log_delta(epsilon, m, ratio, 0, 1, "forward"))
        assert delta == pytest.approx(first - math.exp(epsilon) * second, abs=1e-14)


@pytest.mark.parametrize(
    ("m", "ratio", "epsilon"), [(0.0, 2.0, 0.3), (1.0, 0.5, 0.2), (2.0, 1.0, 1.0), (1.0, 4.0, 2.0)]
)
def test_delta_is_the_integral_of_the_excess_density(m, ratio, epsilon):
    def excess(x):
        first = math.exp(-0.5 * ((x - m) / ratio) ** 2) / ratio
        return max(first - math.exp(epsilon - 0.5 * x * x), 0.0) / math.sqrt(2 * math.pi)

    area, error = integrate.quad(excess, -40, 40, limit=500, epsabs=1e-12, points=[-3, 0, 3])
    delta = math.exp(two_gaussians.log_delta(epsilon, m, ratio, 0, 1, "forward"))
    assert delta == pytest.approx(area, abs=max(error, 1e-9))


def whole_domain(seed):
    rng = np.random.default_rng(seed)
    ratio = 10 ** rng.uniform(-10, 10, 10_000)
    m = np.minimum(10 ** rng.uniform(-60, 14, ratio.size), 0.99e14 * np.minimum(ratio, 1))
    return rng, m, ratio


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_log_delta_is_a_logarithm_of_a_probability_over_the_whole_stated_domain(direction):
    # No error is promised out here; a NaN or a δ above 1 is wrong nevertheless.
    rng, m, ratio = whole_domain(2)
    log_delta = two_gaussians.log_delta(10 ** rng.uniform(-60, 28, m.size), m, ratio, 0, 1, direction)
    assert np.count_nonzero(~(log_delta <= 0)) == 0


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_epsilon_is_a_number_over_the_whole_stated_domain(direction):
    rng, m, ratio = whole_domain(3)
    delta = np.minimum(10 ** rng.uniform(-307, 0, m.size), 0.5)
    epsilon = two_gaussians.epsilon(delta, m, ratio, 0, 1, direction)
    assert np.count_nonzero(~((epsilon >= 0) & np.isfinite(epsilon))) == 0


@pytest.mark.parametrize("exponent", [-310, -300, 300, 301, 307])
def test_extreme_scales_are_served_or_refused(exponent):
    # The domain speaks of ratios only.
    scale = 10.0**exponent
    pair = (0.5 * scale, 1.25 * scale, 0.0, scale)
    expected = float(reference.epsilon(1e-5, *pair, digits=20))
    try:
        value = float(two_gaussians.epsilon(1e-5, *pair))
    except ValueError:
        return
    assert value == pytest.approx(expected, rel=BUDGET)


@pytest.mark.parametrize("m", [1e-50, 1e-140, 1e-155, 1e-170, 1e-290])
def test_minute_distances_leave_a_divergence(m):
    # The square of the distance underflows where δ(0) = m/√(2π) does not.
    expected = math.log(m) - 0.5 * math.log(2 * math.pi)
    assert two_gaussians.log_delta(0, m, 1, 0, 1) == pytest.approx(expected, rel=BUDGET)


def test_distance_that_overflows_is_refused():
    with pytest.raises(ValueError, match="mu1"):
        two_gaussians.log_delta(1, 1e308, 1e300, -1e308, 1e300)


def test_arguments_broadcast_as_scipys_do():
    for f, first in ((two_gaussians.log_delta, [0, 1]), (two_gaussians.epsilon, [0.1, 0.2])):
        for direction in DIRECTIONS:
            table = f(first, [[0], [1], [2]], 1, 0, np.full((4, 1, 1), 2), direction)
            assert table.shape == (4, 3, 2)
            assert table[3, 2, 1] == f(first[1], 2, 1, 0, 2, direction)
            assert isinstance(f(first[1], 1, 1, 0, 1, direction), float)
            assert f([], 1, 1, 0, 1, direction).shape == (0,)
            assert f(first, np.zeros((0, 1)), 1, 0, 1, direction).shape == (0, 2)
            assert f(np.float32(0.5), np.int8(1), np.uint8(1), 0, 2, direction) == f(0.5, 1.0, 1.0, 0.0, 2.0, direction)


def test_both_is_the_default():
    assert two_gaussians.log_delta(1, 1, 2, 0, 1) == two_gaussians.log_delta(1, 1, 2, 0, 1, "both")
    assert two_gaussians.epsilon(0.1, 1, 2, 0, 1) == two_gaussians.epsilon(0.1, 1, 2, 0, 1, "both")


@pytest.mark.parametrize("epsilon", [-1e-300, 1.1e28, math.inf, math.nan, [1, -1]])
def test_epsilons_outside_the_domain_are_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        two_gaussians.log_delta(epsilon, 0, 1, 1, 1)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2, math.nan, math.inf, [0.5, 0]])
def test_deltas_outside_the_domain_are_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        two_gaussians.epsilon(delta, 0, 1, 1, 1)


@pytest.mark.parametrize(
    ("pair", "name"),
    [
        ((math.nan, 1, 0, 1), "mu1"),
        ((0, 1, math.inf, 1), "mu2"),
        ((0, 0, 0, 1), "sigma1 and sigma2 must be positive and finite"),
        ((0, -1, 0, 1), "sigma1 and sigma2 must be positive and finite"),
        ((0, math.nan, 0, 1), "sigma1 and sigma2 must be positive and finite"),
        ((0, 1, 0, 0), "sigma1 and sigma2 must be positive and finite"),
        ((0, 1, 0, math.inf), "sigma1 and sigma2 must be positive and finite"),
        ((0, 1, 0, [1, -1]), "sigma1 and sigma2 must be positive and finite"),
        ((0, 1.1e10, 0, 1), "sigma1"),
        ((0, 1, 0, 1.1e10), "sigma2"),
        ((1.1e14, 1, 0, 1), "mu1"),
        ((0, 1e-3, 1.1e11, 1), "mu2"),
    ],
)
def test_pairs_outside_the_domain_are_refused(pair, name):
    with pytest.raises(ValueError, match=name):
        two_gaussians.log_delta(1, *pair)
    with pytest.raises(ValueError, match=name):
        two_gaussians.epsilon(0.1, *pair)


@pytest.mark.parametrize("direction", ["Forward", "", "backward", None])
def test_unknown_directions_are_refused(direction):
    with pytest.raises(ValueError, match="direction"):
        two_gaussians.log_delta(1, 0, 1, 1, 1, direction)
    with pytest.raises(ValueError, match="direction"):
        two_gaussians.epsilon(0.1, 0, 1, 1, 1, direction)
