import math
from fractions import Fraction

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from canaryproof.kernels.certified import gaussian_mechanism, two_gaussians
from canaryproof.kernels.certified._ball import Enclosure
from canaryproof.kernels.reference import gaussian_mechanism as reference

MANY = settings(max_examples=2 * settings().max_examples)
NOISES = st.one_of(st.floats(-3, 20).map(lambda t: 10**t), st.floats(0.05, 20))
EPSILONS = st.one_of(st.just(0.0), st.floats(-10, 5).map(lambda t: 10**t), st.floats(0, 20))
DELTAS = st.one_of(st.floats(-300, -1).map(lambda t: 10**t), st.floats(0.01, 0.99))


@MANY
@given(EPSILONS, NOISES)
def test_log_delta_holds_its_twin(holds, epsilon, noise):
    enclosure = gaussian_mechanism.log_delta(epsilon, noise)
    assert enclosure.is_tight
    assert holds(enclosure, reference.log_delta(epsilon, noise, digits=60))


@given(EPSILONS, NOISES)
def test_delta_holds_its_twin(holds, epsilon, noise):
    enclosure = gaussian_mechanism.delta(epsilon, noise)
    assert enclosure.is_tight
    assert holds(enclosure, reference.delta(epsilon, noise, digits=60))


def above(epsilon, noise, delta):
    """Whether the twin's δ is above the target."""
    with mp.workdps(60):
        target = mp.log(mpf(delta))
    return reference.log_delta(epsilon, noise, digits=40) > target


@MANY
@given(DELTAS, NOISES)
def test_epsilon_brackets_the_passage(delta, noise):
    enclosure = gaussian_mechanism.epsilon(delta, noise)
    assert enclosure.is_tight
    assert not above(enclosure.hi, noise, delta)
    assert enclosure.hi == 0.0 or above(enclosure.lo, noise, delta)


@MANY
@given(EPSILONS, DELTAS)
def test_noise_multiplier_brackets_the_passage(epsilon, delta):
    enclosure = gaussian_mechanism.noise_multiplier(epsilon, delta)
    assert enclosure.is_tight
    assert above(epsilon, enclosure.lo, delta)
    assert not above(epsilon, enclosure.hi, delta)


@pytest.mark.parametrize("delta", [1e-6, 0.2, 1e-300])
@pytest.mark.parametrize("other", [0.05, 1.0, 8.0])
def test_inverses_hold_their_twins(holds, delta, other):
    assert holds(gaussian_mechanism.epsilon(delta, other), reference.epsilon(delta, other, digits=60))
    assert holds(gaussian_mechanism.noise_multiplier(other, delta), reference.noise_multiplier(other, delta, digits=60))


@pytest.mark.parametrize("noise", [1e-50, 1e-20, 1.0, 1e50])
@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e20, 1e50])
def test_the_far_corners_are_tight(noise, epsilon):
    assert gaussian_mechanism.delta(epsilon, noise).is_tight
    assert gaussian_mechanism.log_delta(epsilon, noise).is_tight


@pytest.mark.parametrize("delta", [1e-300, 5e-324, 1 - 2**-53, Fraction(1, 3)])
def test_far_corners_of_the_inverses_are_tight(delta):
    for value in (0.0, 5e-324, 1e20, 1e50):
        assert gaussian_mechanism.noise_multiplier(value, delta).is_tight
    for value in (1e-50, 1e-20, 1.0, 1e50):
        assert gaussian_mechanism.epsilon(delta, value).is_tight


@given(EPSILONS, st.integers(-20, 20).map(lambda n: 2.0**n))
def test_two_gaussians_one_apart(epsilon, noise):
    assert gaussian_mechanism.log_delta(epsilon, noise) == two_gaussians.log_delta(epsilon, 1, noise, 0, noise)
    assert gaussian_mechanism.delta(epsilon, noise) == two_gaussians.delta(epsilon, 0, 1, 1 / noise, 1)


@given(st.floats(0.01, 100.0))
def test_no_epsilon_is_an_error_function(noise):
    """δ(0) = erf(1/(√8·σ))."""
    with mp.workdps(60):
        expected = mp.erf(1 / (mp.sqrt(8) * mpf(noise)))
    enclosure = gaussian_mechanism.delta(0, noise)
    assert mpf(enclosure.lo) <= expected <= mpf(enclosure.hi)


def test_much_noise_needs_no_epsilon():
    assert gaussian_mechanism.epsilon(1e-6, 1e7) == Enclosure(0.0, 0.0, None)


def test_precision_left_behind_does_not_matter():
    expected = gaussian_mechanism.epsilon(1e-6, 0.7), gaussian_mechanism.noise_multiplier(0.5, 1e-6)
    for prec in (2, 53, 5000):
        with flint.ctx.workprec(prec):
            assert (gaussian_mechanism.epsilon(1e-6, 0.7), gaussian_mechanism.noise_multiplier(0.5, 1e-6)) == expected


@pytest.mark.parametrize("name", ["delta", "log_delta", "epsilon", "noise_multiplier"])
def test_result_types(name):
    enclosure = getattr(gaussian_mechanism, name)(Fraction(1, 3), 0.5)
    assert type(enclosure.lo) is float
    assert type(enclosure.hi) is float
    assert isinstance(enclosure.ball, flint.arb)


BAD_EPSILONS = [math.nan, -1e-300, 1e51]
BAD_DELTAS = [math.nan, 0.0, 1, -0.5]
BAD_NOISES = [math.nan, 0.0, 1e51, 1e-51, -1]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        *((name, (bad, 1.0), "epsilon") for name in ("delta", "log_delta") for bad in BAD_EPSILONS),
        *((name, (1.0, bad), "noise_multiplier") for name in ("delta", "log_delta") for bad in BAD_NOISES),
        *(("epsilon", (bad, 1.0), "delta") for bad in BAD_DELTAS),
        *(("epsilon", (0.5, bad), "noise_multiplier") for bad in BAD_NOISES),
        *(("noise_multiplier", (bad, 0.5), "epsilon") for bad in BAD_EPSILONS),
        *(("noise_multiplier", (1.0, bad), "delta") for bad in BAD_DELTAS),
    ],
)
def test_arguments_outside_the_domain(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(gaussian_mechanism, name)(*arguments)
