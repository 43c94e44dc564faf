"""Statements about the mathematics that need no second computation, of the fast kernels and the enclosures alike.

Every value is a ball here: an enclosure's own, which is proven, or a float with as many ulps as the kernels promise.
"""

import math
from fractions import Fraction

import flint
import pytest
from flint import arb
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.kernels import gaussian_mechanism, null_cosine, two_gaussians
from canaryproof.kernels.certified import gaussian_mechanism as certified_mechanism
from canaryproof.kernels.certified import null_cosine as certified_cosine
from canaryproof.kernels.certified import two_gaussians as certified_gaussians

KERNELS = {
    "fast": {"mechanism": gaussian_mechanism, "gaussians": two_gaussians, "cosine": null_cosine},
    "certified": {"mechanism": certified_mechanism, "gaussians": certified_gaussians, "cosine": certified_cosine},
}
both_kinds = pytest.mark.parametrize("kind", KERNELS)
# The errors of the fast kernels: in practice, and anywhere.
PRACTICE, ANYWHERE = 8, 64
BITS = 300


def ends(kind, law, name, *arguments, ulps):
    """Floats between which the exact value lies."""
    value = getattr(KERNELS[kind][law], name)(*arguments)
    if kind == "certified":
        return value.lo, value.hi
    reach = ulps * math.ulp(value)
    return float(value) - reach, float(value) + reach


def ball(kind, law, name, *arguments, ulps):
    """A ball that contains the exact value."""
    if kind == "certified":
        return getattr(KERNELS[kind][law], name)(*arguments).ball
    low, high = ends(kind, law, name, *arguments, ulps=ulps)
    return arb(low).union(arb(high))


def is_positive(kind, difference):
    """Proven by enclosures; by the fast kernels' errors it can only be refuted."""
    return difference > 0 if kind == "certified" else not difference < 0


def is_in_order(kind, lower, upper):
    """Whether the ends of two values allow for the first to be at most the second."""
    if kind == "certified":
        # Neighbouring floats on either side of the value cannot be out of order.
        return lower[0] <= upper[0] and lower[1] <= upper[1]
    return lower[0] <= upper[1]


def float_ends(a_ball):
    """Floats on either side of a positive ball."""
    return math.nextafter(float(a_ball.lower()), 0.0), math.nextafter(float(a_ball.upper()), math.inf)


@st.composite
def curves(draw):
    """One privacy curve: which law, what comes after its first argument, and the error in ulps that it may have."""
    practice = draw(st.booleans())
    ulps = PRACTICE if practice else ANYWHERE
    noise = draw(st.floats(0.2, 10) if practice else st.floats(-2, 3).map(lambda t: 10**t))
    if draw(st.booleans()):
        return "mechanism", (noise,), ulps
    ratio = draw(
        st.one_of(st.floats(0.5, 2), st.tuples(st.floats(-12, -2), st.sampled_from([-1, 1])).map(near_one))
        if practice
        else st.floats(-3, 3).map(lambda t: 10**t)
    )
    return "gaussians", (1 / noise, ratio, 0.0, 1.0, draw(st.sampled_from(["forward", "reverse", "both"]))), ulps


def near_one(drawn):
    exponent, sign = drawn
    return 1 + sign * 10**exponent


EPSILONS = st.one_of(st.floats(0.1, 20), st.floats(-1, math.log10(50)).map(lambda t: 10**t))
DELTAS = st.floats(-12, -0.31).map(lambda t: 10**t)
GAPS = st.floats(-9, 0).map(lambda t: 10**t)


def curve_is_alive(curve, epsilon):
    """Whether 1e-12 ≤ δ(ε) ≤ 1/2, so that the errors stated hold, and no largest loss is near."""
    law, rest, _ = curve
    return math.log(1e-12) <= KERNELS["fast"][law].log_delta(epsilon, *rest) <= math.log(0.5)


@both_kinds
@given(curves(), EPSILONS, GAPS)
def test_delta_falls_strictly_in_epsilon(kind, curve, epsilon, gap):
    law, rest, ulps = curve
    assume(curve_is_alive(curve, epsilon))
    near = ball(kind, law, "log_delta", epsilon, *rest, ulps=ulps)
    far = ball(kind, law, "log_delta", epsilon * (1 + gap), *rest, ulps=ulps)
    assert is_positive(kind, near - far)


@both_kinds
@given(curves(), DELTAS, GAPS)
def test_epsilon_falls_in_delta(kind, curve, delta, gap):
    law, rest, ulps = curve
    loose, strict = (ends(kind, law, "epsilon", d, *rest, ulps=ulps) for d in (delta * (1 + gap), delta))
    assert is_in_order(kind, loose, strict)


@both_kinds
@given(EPSILONS, DELTAS, GAPS)
def test_noise_multiplier_falls_in_epsilon_and_delta(kind, epsilon, delta, gap):
    strict = ends(kind, "mechanism", "noise_multiplier", epsilon, delta, ulps=PRACTICE)
    for weaker in ((epsilon * (1 + gap), delta), (epsilon, delta * (1 + gap))):
        assert is_in_order(kind, ends(kind, "mechanism", "noise_multiplier", *weaker, ulps=PRACTICE), strict)


@both_kinds
@given(curves(), DELTAS)
def test_epsilon_is_where_the_curve_passes_delta(kind, curve, delta):
    law, rest, ulps = curve
    low, high = ends(kind, law, "epsilon", delta, *rest, ulps=ulps)
    with flint.ctx.workprec(BITS):
        target = arb(delta).log()
        if low > 0:
            assert is_positive(kind, ball(kind, law, "log_delta", low, *rest, ulps=ulps) - target)
        assert is_positive(kind, target - ball(kind, law, "log_delta", high, *rest, ulps=ulps))


@both_kinds
@given(curves(), EPSILONS)
def test_epsilon_inverts_delta(kind, curve, epsilon):
    law, rest, ulps = curve
    assume(curve_is_alive(curve, epsilon))
    with flint.ctx.workprec(BITS):
        low, high = float_ends(ball(kind, law, "log_delta", epsilon, *rest, ulps=ulps).exp())
    # From the ends of δ's own enclosure: as wide as the condition of ε(δ) makes it, and no wider.
    least, _ = ends(kind, law, "epsilon", high, *rest, ulps=ulps)
    _, greatest = ends(kind, law, "epsilon", low, *rest, ulps=ulps)
    assert least <= epsilon <= greatest


@both_kinds
@given(EPSILONS, DELTAS)
def test_noise_multiplier_is_where_delta_is_reached(kind, epsilon, delta):
    low, high = ends(kind, "mechanism", "noise_multiplier", epsilon, delta, ulps=PRACTICE)
    with flint.ctx.workprec(BITS):
        target = arb(delta)
        assert is_positive(kind, ball(kind, "mechanism", "delta", epsilon, low, ulps=PRACTICE) - target)
        assert is_positive(kind, target - ball(kind, "mechanism", "delta", epsilon, high, ulps=PRACTICE))


@both_kinds
@given(st.floats(0.2, 5), DELTAS)
def test_noise_multiplier_inverts_epsilon(kind, noise, delta):
    low, high = ends(kind, "mechanism", "epsilon", delta, noise, ulps=PRACTICE)
    assume(low > 0.1)
    least, _ = ends(kind, "mechanism", "noise_multiplier", high, delta, ulps=PRACTICE)
    _, greatest = ends(kind, "mechanism", "noise_multiplier", low, delta, ulps=PRACTICE)
    assert least <= noise <= greatest


@both_kinds
@given(curves(), EPSILONS, GAPS, GAPS)
def test_delta_is_convex_in_the_exponential_of_epsilon(kind, curve, epsilon, first, second):
    # The largest of P₁(A) − e^ε·P₂(A) over all events A, each a straight line. A jump at a seam would show.
    law, rest, ulps = curve
    last = epsilon * (1 + first) * (1 + second)
    assume(curve_is_alive(curve, epsilon) and curve_is_alive(curve, last))
    points = (epsilon, epsilon * (1 + first), last)
    with flint.ctx.workprec(BITS):
        x, y, z = (arb(e).exp() for e in points)
        left, middle, right = (ball(kind, law, "log_delta", e, *rest, ulps=ulps).exp() for e in points)
        assert is_positive(kind, left * (z - y) + right * (y - x) - middle * (z - x))


@pytest.mark.parametrize("name", ["delta", "epsilon"])
@given(
    st.tuples(*(st.integers(-400, 400) for _ in range(2)), *(st.integers(1, 400) for _ in range(2))),
    st.one_of(DELTAS, st.floats(0.01, 0.99)),
    st.integers(-(2**30), 2**30),
    st.integers(-900, 900),
)
def test_enclosures_know_neither_place_nor_unit_nor_order(name, dyadic, argument, shift, exponent):
    mu1, mu2, sigma1, sigma2 = (a / 64 for a in dyadic)
    function = getattr(certified_gaussians, name)
    expected = function(argument, mu1, sigma1, mu2, sigma2, "forward")
    for pair, direction in (
        ((mu1 + shift, sigma1, mu2 + shift, sigma2), "forward"),
        (tuple(math.ldexp(a, exponent) for a in (mu1, sigma1, mu2, sigma2)), "forward"),
        ((-mu1, sigma1, -mu2, sigma2), "forward"),
        ((mu2, sigma2, mu1, sigma1), "reverse"),
    ):
        assert function(argument, *pair, direction) == expected


DIMS = st.one_of(
    st.floats(2, 12).map(lambda t: 10**t), st.floats(2.01, 2.99), st.floats(3.01, 100), st.integers(4, 60).map(float)
)


def ulps_at(dim):
    return PRACTICE if dim >= 100 else ANYWHERE


def at_deviations(z, dim):
    """The cosine z standard deviations out, nearly, and never 1."""
    return math.tanh(z / math.sqrt(dim))


@both_kinds
@given(st.floats(-7, 7), GAPS, DIMS)
def test_tail_falls_strictly(kind, z, gap, dim):
    x = at_deviations(z, dim)
    y = x + gap * (1 - abs(x))
    assume(x < y)
    near, far = (ball(kind, "cosine", "logsf", a, dim, ulps=ulps_at(dim)) for a in (x, y))
    assert is_positive(kind, near - far)


@both_kinds
@pytest.mark.parametrize(("quantile", "tail", "side"), [("isf", "sf", 1), ("ppf", "cdf", -1)])
@given(q=st.one_of(DELTAS, st.floats(0.01, 0.49), st.floats(0.51, 0.99)), dim=DIMS)
def test_quantile_is_where_the_tail_passes(kind, quantile, tail, side, q, dim):
    ulps = ulps_at(dim)
    low, high = sorted(side * x for x in ends(kind, "cosine", quantile, q, dim, ulps=ulps))
    with flint.ctx.workprec(BITS):
        assert is_positive(kind, ball(kind, "cosine", tail, side * low, dim, ulps=ulps) - arb(q))
        assert is_positive(kind, arb(q) - ball(kind, "cosine", tail, side * high, dim, ulps=ulps))


@both_kinds
@pytest.mark.parametrize(("quantile", "tail", "side"), [("isf", "sf", 1), ("ppf", "cdf", -1)])
@given(z=st.floats(-6, 7), dim=DIMS)
def test_quantile_inverts_the_tail(kind, quantile, tail, side, z, dim):
    x, ulps = at_deviations(z, dim), ulps_at(dim)
    low, high = ends(kind, "cosine", tail, side * x, dim, ulps=ulps)
    assume(low > 0 and high < 1)
    found = [side * e for q in (low, high) for e in ends(kind, "cosine", quantile, q, dim, ulps=ulps)]
    assert min(found) <= x <= max(found)


@given(st.floats(-1.2, 1.2), DIMS)
def test_large_cdf_and_sf_add_up_to_one_within_an_ulp(z, dim):
    x = at_deviations(z, dim)
    total = Fraction(float(null_cosine.cdf(x, dim))) + Fraction(float(null_cosine.sf(x, dim)))
    assert abs(total - 1) <= Fraction(2) ** -52


RULE = 16


@both_kinds
@given(z=st.floats(-6, 6), dim=st.one_of(st.floats(0.6, 12).map(lambda t: 10**t), st.floats(2.01, 2.99)))
def test_density_integrates_to_the_probability_between(kind, z, dim):
    # Over half a deviation, where a rule of few nodes errs by less than 1e-16 of the integral.
    a, b = (at_deviations(e, dim) for e in (z, z + 0.5))
    ulps = ulps_at(dim)
    with flint.ctx.workprec(BITS):
        middle, half = (arb(a) + arb(b)) / 2, (arb(b) - arb(a)) / 2
        total = arb(0)
        for node in range(RULE):
            place, weight = arb.legendre_p_root(RULE, node, weight=True)
            x = float(middle + half * place)
            # A node that is rounded to a float moves along the density's slope.
            move = (middle + half * place - arb(x)) * -(dim - 3) * x / ((1 - x) * (1 + x))
            total += weight * ball(kind, "cosine", "pdf", x, dim, ulps=ulps) * (1 + move)
        name, (near, far) = ("sf", (a, b)) if z > -0.25 else ("cdf", (b, a))
        between = ball(kind, "cosine", name, near, dim, ulps=ulps) - ball(kind, "cosine", name, far, dim, ulps=ulps)
        assert (total * half / between).overlaps(arb(1, 1e-16))


@both_kinds
@given(z=st.floats(0.01, 7), dim=DIMS)
def test_square_of_the_cosine_is_beta_distributed(kind, z, dim):
    x = at_deviations(z, dim)
    low, high = ends(kind, "cosine", "sf", x, dim, ulps=ulps_at(dim))
    # scipy's own error: up to 1.5e-14, found against the enclosures, and what rounding x² does to the tail.
    error = 3e-14 + 2.0**-52 * dim * x * x / ((1 - x) * (1 + x))
    assert low * (1 - error) <= stats.beta.sf(x * x, 0.5, 0.5 * (dim - 1)) / 2 <= high * (1 + error)


@both_kinds
@given(q=DELTAS, dim=DIMS)
def test_square_of_the_quantile_is_a_beta_quantile(kind, q, dim):
    low, high = ends(kind, "cosine", "isf", q, dim, ulps=ulps_at(dim))
    # scipy's own error: up to 4e-15, found against the enclosures.
    assert low * (1 - 2e-14) <= math.sqrt(stats.beta.isf(2 * q, 0.5, 0.5 * (dim - 1))) <= high * (1 + 2e-14)


@both_kinds
@given(z=st.floats(-7, 7), dim=st.floats(0.4, 6).map(lambda t: 10**t))
def test_density_is_that_of_a_symmetric_beta_law(kind, z, dim):
    x = at_deviations(z, dim)
    low, high = ends(kind, "cosine", "pdf", x, dim, ulps=ulps_at(dim))
    shape = 0.5 * (dim - 1)
    # scipy loses half the digits that d has, and rounding (1 − x)/2 moves the density.
    error = 1e-14 + 2e-15 * math.sqrt(dim) + 2.0**-52 * abs((dim - 3) * x) / ((1 - x) * (1 + x))
    assert low * (1 - error) <= stats.beta.pdf((1 - x) / 2, shape, shape) / 2 <= high * (1 + error)


def subtraction_error(epsilon, noise):
    """What Φ(1/(2σ) − εσ) − e^ε·Φ(−1/(2σ) − εσ) loses in floats, by each term, its argument and underflow."""
    u, size = epsilon * noise - 0.5 / noise, epsilon * noise + 0.5 / noise
    slope = math.exp(-0.5 * u * u) * size / math.sqrt(2 * math.pi)
    return 2.0**-52 * (stats.norm.sf(u) * (1 + epsilon + 0.5 * size * size) + slope) + 1e-300


@both_kinds
@given(st.floats(0, 20), st.floats(0.2, 100))
def test_delta_of_the_mechanism_is_a_difference_of_normal_tails(kind, epsilon, noise):
    low, high = ends(kind, "mechanism", "delta", epsilon, noise, ulps=ANYWHERE)
    naive = stats.norm.sf(epsilon * noise - 0.5 / noise) - math.exp(
        epsilon + stats.norm.logsf(epsilon * noise + 0.5 / noise)
    )
    error = 4 * subtraction_error(epsilon, noise)
    assert low - error <= naive <= high + error


@both_kinds
@given(st.floats(0, 20), st.floats(0.2, 100))
def test_delta_of_the_mechanism_is_that_of_dp_accounting(kind, epsilon, noise):
    from dp_accounting.pld import privacy_loss_mechanism as mechanisms

    low, high = ends(kind, "mechanism", "delta", epsilon, noise, ulps=ANYWHERE)
    # It subtracts two tails in floats, and is as good as that.
    error = 4 * subtraction_error(epsilon, noise)
    other = mechanisms.GaussianPrivacyLoss(noise).get_delta_for_epsilon(epsilon)
    assert low - error <= other <= high + error
