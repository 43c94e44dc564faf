import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.reference import gaussian_mechanism as reference
from tests.rows import chequered

# The module's own.
BUDGET = 1e-13
ABSOLUTE = 1e-14
LARGEST_EPSILON = 1e5
LOG_SMALLEST_DELTA = math.log(1e-300)

MANY = settings(max_examples=5 * settings().max_examples)
EPSILONS = st.one_of(st.just(0.0), st.floats(-20, 5).map(lambda t: 10**t), st.floats(0, 20))
DELTAS = st.one_of(st.floats(-300, math.log10(0.5)).map(lambda t: min(10**t, 0.5)), st.floats(0.01, 0.5))
NOISES = st.one_of(st.floats(-3, 20).map(lambda t: 10**t), st.floats(0.05, 20))


@st.composite
def losses_and_noises(draw):
    """(ε, σ) whose δ is mostly within reach: u = εσ − 1/(2σ) between −30 and 40."""
    noise = draw(NOISES)
    u = draw(st.floats(-30, 40))
    return min(max(u / noise + 0.5 / noise**2, 0.0), LARGEST_EPSILON), noise


def next_to(x, steps):
    return math.nextafter(x, math.inf if steps > 0 else -math.inf) if steps else x


@MANY
@given(point=st.one_of(losses_and_noises(), st.tuples(EPSILONS, NOISES)))
def test_budget_of_log_delta(point):
    expected = reference.log_delta(*point, digits=20)
    assert abs(mpf(float(gaussian_mechanism.log_delta(*point))) - expected) <= BUDGET * max(1, abs(expected))


@MANY
@given(point=losses_and_noises())
def test_budget_of_delta(point):
    log_delta = reference.log_delta(*point, digits=25)
    assume(LOG_SMALLEST_DELTA <= log_delta <= math.log(0.5))
    with mp.workdps(30):
        expected = mp.exp(log_delta)
    assert abs(mpf(float(gaussian_mechanism.delta(*point))) - expected) <= BUDGET * expected


def holds_epsilon(value, delta, noise):
    """Whether the true ε lies within the budget of ``value``: log δ decides, without a root finder."""
    reach = max(BUDGET * value, ABSOLUTE)
    with mp.workdps(40):
        target, low, high = mp.log(mpf(delta)), mpf(value) - reach, mpf(value) + reach
    enough = reference.log_delta(high, noise, digits=30) <= target
    return enough and (low <= 0 or reference.log_delta(low, noise, digits=30) >= target)


@MANY
@given(delta=DELTAS, noise=NOISES)
def test_budget_of_epsilon(delta, noise):
    assume(reference.log_delta(LARGEST_EPSILON, noise, digits=5) < math.log(delta))
    assert holds_epsilon(float(gaussian_mechanism.epsilon(delta, noise)), delta, noise)


@MANY
@given(epsilon=EPSILONS, delta=DELTAS)
def test_budget_of_noise_multiplier(epsilon, delta):
    value = mpf(float(gaussian_mechanism.noise_multiplier(epsilon, delta)))
    with mp.workdps(40):
        target, low, high = mp.log(mpf(delta)), value * (1 - mpf(BUDGET)), value * (1 + mpf(BUDGET))
    # δ falls in σ.
    assert reference.log_delta(epsilon, low, digits=30) >= target >= reference.log_delta(epsilon, high, digits=30)


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-5, 0.1, next_to(0.5, -1), 0.5])
@pytest.mark.parametrize("noise", [2.3e-3, 0.1, 1.0, 30.0, 1e10])
def test_epsilon_agrees_with_the_twin(delta, noise):
    expected = reference.epsilon(delta, noise, digits=18)
    error = abs(mpf(float(gaussian_mechanism.epsilon(delta, noise))) - expected)
    assert error <= max(BUDGET * expected, ABSOLUTE)


@pytest.mark.parametrize(
    ("epsilon", "delta"), chequered([1e-20, 0.0, 1e-6, 1.0, 50.0, 1e5], [1e-300, 1e-100, 1e-5, 0.1, 0.5])
)
def test_noise_multiplier_agrees_with_the_twin(epsilon, delta):
    expected = reference.noise_multiplier(epsilon, delta, digits=18)
    assert abs(mpf(float(gaussian_mechanism.noise_multiplier(epsilon, delta))) - expected) <= BUDGET * expected


@pytest.mark.parametrize("m", [61.0, 100.0, 440.0])
@pytest.mark.parametrize("steps", [-1, 0, 1])
def test_seam_thirty_deviations_inside(m, steps):
    # At u = ε/m − m/2 = −30 log δ passes from the tail beyond the root to its complement.
    epsilon = next_to(m * (m / 2 - 30), steps)
    expected = reference.log_delta(epsilon, 1 / m, digits=20)
    assert abs(mpf(float(gaussian_mechanism.log_delta(epsilon, 1 / m))) - expected) <= BUDGET * max(1, abs(expected))


def test_seam_where_subtraction_hands_over_to_quadrature():
    # At u = 0 the halves of δ differ by a thousandth near m = 0.00125.
    for m in np.linspace(0.0011, 0.0014, 33):
        expected = reference.delta(m * m / 2, 1 / m, digits=20)
        assert abs(mpf(float(gaussian_mechanism.delta(m * m / 2, 1 / m))) - expected) <= BUDGET * expected


@pytest.mark.parametrize("noise", [0.01, 0.5, 0.7412, 1.0, 1e6])
def test_no_privacy_loss_leaves_the_total_variation(noise):
    with mp.workdps(30):
        expected = mp.erf(1 / (2 * mp.sqrt(2) * mpf(noise)))
    assert abs(mpf(float(gaussian_mechanism.delta(0, noise))) - expected) <= BUDGET * expected


@pytest.mark.parametrize(("epsilon", "noise"), [(1.0, 1e10), (0.3, 2e10), (9e4, 1e5), (1e5, 1e50), (1e-5, 1e20)])
def test_delta_that_rounds_to_zero_is_zero(epsilon, noise):
    # exp(−u²/2) underflows long before its own rounding correction overflows, at u = 4e9.
    assert gaussian_mechanism.delta(epsilon, noise) == 0
    assert gaussian_mechanism.log_delta(epsilon, noise) < -1e9


@pytest.mark.parametrize("noise", [1e-3, 0.3, 1.0, 1e3, 1e20, 1e50])
def test_probabilities_that_round_to_zero_leave_finite_epsilons(noise):
    epsilon = gaussian_mechanism.epsilon([2.3e-308, 1e-300], noise)
    assert np.all(np.isfinite(epsilon) & (epsilon >= 0))


def test_epsilon_is_a_number_where_delta_is_large():
    rng = np.random.default_rng(2)
    delta, noise = 1 - 10 ** rng.uniform(-15.9, -0.31, 20_000), 10 ** rng.uniform(-14, 5, 20_000)
    epsilon = gaussian_mechanism.epsilon(delta, noise)
    assert np.count_nonzero(~((epsilon >= 0) & np.isfinite(epsilon))) == 0


@pytest.mark.deep(every=3)
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("miss", [0.1, 1e-4, 1e-8, 1e-12, 1.2e-16])
def test_noise_multiplier_is_right_or_refused_where_delta_is_nearly_one(epsilon, miss):
    # A rounding of log δ is a visible part of 1 − δ here.
    expected = float(reference.noise_multiplier(epsilon, 1 - miss, digits=18))
    try:
        value = float(gaussian_mechanism.noise_multiplier(epsilon, 1 - miss))
    except ValueError:
        return
    assert value == pytest.approx(expected, rel=1e-9)


@pytest.mark.deep(beyond=3)
@pytest.mark.parametrize(("epsilon", "delta"), chequered([1.0, 0.0, 2000.0, 1e5], [2e-313, 5e-324, 1e-308]))
def test_subnormal_deltas_are_served_or_refused(epsilon, delta):
    expected = float(reference.noise_multiplier(epsilon, delta, digits=18))
    try:
        value = float(gaussian_mechanism.noise_multiplier(epsilon, delta))
    except ValueError:
        return
    assert value == (math.inf if math.isinf(expected) else pytest.approx(expected, rel=1e-12))


def test_the_whole_stated_domain_gives_numbers():
    # No error is promised out here; a NaN is wrong nevertheless.
    rng = np.random.default_rng(1)
    epsilon, noise = 10 ** rng.uniform(-50, 28, 20_000), 10 ** rng.uniform(-14, 50, 20_000)
    delta = 10 ** rng.uniform(-307, math.log10(0.5), epsilon.size)
    probability = gaussian_mechanism.delta(epsilon, noise)
    assert np.count_nonzero(~((probability >= 0) & (probability <= 1))) == 0
    assert np.count_nonzero(~(gaussian_mechanism.log_delta(epsilon, noise) <= 0)) == 0
    assert np.count_nonzero(~(gaussian_mechanism.epsilon(delta, noise) >= 0)) == 0
    assert np.count_nonzero(~(gaussian_mechanism.noise_multiplier(epsilon, delta) > 0)) == 0


def test_balle_and_wang_where_their_formula_does_not_cancel():
    epsilon, noise = np.meshgrid(np.linspace(0, 3, 13), np.linspace(0.2, 2, 19))
    first, second = 0.5 / noise - epsilon * noise, -0.5 / noise - epsilon * noise
    naive = special.ndtr(first) - np.exp(epsilon) * special.ndtr(second)
    np.testing.assert_allclose(gaussian_mechanism.delta(epsilon, noise), naive, atol=1e-15, rtol=1e-13)


@given(delta=DELTAS, noise=st.floats(-2.3, 10).map(lambda t: 10**t))
def test_noise_multiplier_inverts_epsilon(delta, noise):
    epsilon = float(gaussian_mechanism.epsilon(delta, noise))
    assume(epsilon > 0)
    # Near ε = 0 the noise follows from δ alone, and ε's absolute error moves it by as much.
    assert gaussian_mechanism.noise_multiplier(epsilon, delta) == pytest.approx(noise, rel=1e-12 + 4e-14 * noise)


@given(epsilon=st.floats(-2, 5).map(lambda t: 10**t), delta=DELTAS)
def test_epsilon_inverts_noise_multiplier(epsilon, delta):
    noise = float(gaussian_mechanism.noise_multiplier(epsilon, delta))
    # ε = m²/2 + mu with m = 1/σ: an error of σ moves it by up to m² + m|u| in proportion.
    size = 1 / noise**2 + 40 / noise
    assert gaussian_mechanism.epsilon(delta, noise) == pytest.approx(epsilon, abs=2 * BUDGET * size + 2 * ABSOLUTE)


@given(epsilons=st.tuples(EPSILONS, EPSILONS), noise=NOISES)
def test_delta_falls_in_epsilon(epsilons, noise):
    first, second = (float(gaussian_mechanism.log_delta(e, noise)) for e in sorted(epsilons))
    assert second - first <= 2 * BUDGET * max(1, abs(second))


@given(epsilon=EPSILONS, noises=st.tuples(NOISES, NOISES))
def test_delta_falls_in_noise(epsilon, noises):
    first, second = (float(gaussian_mechanism.log_delta(epsilon, noise)) for noise in sorted(noises))
    assert second - first <= 2 * BUDGET * max(1, abs(second))


@given(deltas=st.tuples(DELTAS, DELTAS), noise=NOISES)
def test_epsilon_falls_in_delta(deltas, noise):
    first, second = (float(gaussian_mechanism.epsilon(d, noise)) for d in sorted(deltas))
    assert second - first <= max(2 * BUDGET * second, 2 * ABSOLUTE)


@given(epsilons=st.tuples(EPSILONS, EPSILONS), deltas=st.tuples(DELTAS, DELTAS))
def test_noise_multiplier_falls_in_epsilon_and_delta(epsilons, deltas):
    (loose, strict), (small, large) = sorted(epsilons), sorted(deltas)
    most = gaussian_mechanism.noise_multiplier(loose, small) * (1 + 2 * BUDGET)
    assert gaussian_mechanism.noise_multiplier(strict, small) <= most
    assert gaussian_mechanism.noise_multiplier(loose, large) <= most


@given(point=losses_and_noises())
def test_log_delta_is_the_logarithm_of_delta(point):
    delta = float(gaussian_mechanism.delta(*point))
    assume(delta > 1e-300)
    assert math.log(delta) == pytest.approx(float(gaussian_mechanism.log_delta(*point)), rel=3e-13, abs=3e-13)


@pytest.mark.parametrize("name", ["delta", "log_delta", "epsilon", "noise_multiplier"])
def test_arguments_broadcast_as_scipys_do(name):
    f = getattr(gaussian_mechanism, name)
    first, second = (0.25, 0.5) if name in ("epsilon", "noise_multiplier") else (0.25, 1.0)
    table = f([[0.125], [first]], [second, 0.75, 0.875])
    assert table.shape == (2, 3)
    assert table[1, 0] == f(first, second)
    assert isinstance(f(first, second), float)
    assert f([], second).shape == (0,)
    assert f(np.zeros((0, 1)), [second] * 3).shape == (0, 3)
    assert f(np.float32(first), np.array([second], dtype=np.float32))[0] == f(first, second)


def test_integers_are_numbers():
    assert gaussian_mechanism.delta(1, np.int8(2)) == gaussian_mechanism.delta(1.0, 2.0)
    assert gaussian_mechanism.noise_multiplier(1, 0.1) == gaussian_mechanism.noise_multiplier(1.0, 0.1)


@pytest.mark.parametrize("epsilon", [-1e-300, 1.1e28, math.inf, math.nan, [1, -1]])
def test_epsilons_outside_the_domain_are_refused(epsilon):
    for f, other in (
        (gaussian_mechanism.delta, 1.0),
        (gaussian_mechanism.log_delta, 1.0),
        (gaussian_mechanism.noise_multiplier, 0.1),
    ):
        with pytest.raises(ValueError, match="epsilon"):
            f(epsilon, other)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2, math.nan, math.inf, [0.5, 0]])
def test_deltas_outside_the_domain_are_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        gaussian_mechanism.epsilon(delta, 1)
    with pytest.raises(ValueError, match="delta"):
        gaussian_mechanism.noise_multiplier(1, delta)


@pytest.mark.parametrize("noise", [0, -1, 0.9e-14, 1.1e50, math.nan, math.inf, [1, 0]])
def test_noises_outside_the_domain_are_refused(noise):
    for f in (gaussian_mechanism.delta, gaussian_mechanism.log_delta, gaussian_mechanism.epsilon):
        with pytest.raises(ValueError, match="noise_multiplier"):
            f(0.5, noise)
