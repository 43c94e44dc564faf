import pytest
from mpmath import mp, mpf

from canaryproof.kernels.reference import gaussian_mechanism, two_gaussians
from tests.rows import chequered

GRID = [(0, 1e-5), (0, 1), (0, 1e5), (1, 4.22), (10, 0.5), (100, 0.125), (1e5, 0.002), (1e5, 0.003), (3, 1e3)]


@pytest.fixture(autouse=True)
def work_at_100_digits():
    with mp.workdps(100):
        yield


def agree(value, expected, digits):
    return abs(value - expected) <= abs(expected) * mpf(10) ** -digits


@pytest.mark.parametrize(("epsilon", "printed"), [(1, "4.22"), (3, "1.54"), (10, "0.541")])
def test_noise_of_table_2(epsilon, printed):
    """Andrew et al. (arXiv 2302.03098), Table 2, at δ = 1e-6."""
    assert mp.nstr(gaussian_mechanism.noise_multiplier(epsilon, "1e-6"), 3) == printed


@pytest.mark.parametrize("sigma", [1e-2, 0.5, 1, 30, 1e6])
def test_at_epsilon_zero_the_divergence_is_the_total_variation(sigma):
    assert agree(gaussian_mechanism.delta(0, sigma), mp.erf(1 / (2 * mp.sqrt(2) * mpf(sigma))), 49)


@pytest.mark.parametrize(
    ("epsilon", "sigma"),
    [
        (0.5, 2),
        pytest.param(1, 4.22, marks=pytest.mark.deep),
        (10, 0.5),
        pytest.param(3, 20, marks=pytest.mark.deep),
        pytest.param(40, 1, marks=pytest.mark.deep),
        (100, 0.125),
    ],
)
def test_divergence_is_an_integral(epsilon, sigma):
    epsilon, sigma = mpf(epsilon), mpf(sigma)
    start = epsilon * sigma**2 + 0.5
    with mp.workdps(50):
        peak = mp.npdf(start, 1, sigma)  # the tolerance of mp.quad is absolute
        expected = peak * mp.quad(
            lambda x: (mp.npdf(x, 1, sigma) - mp.exp(epsilon) * mp.npdf(x, 0, sigma)) / peak,
            [start + 8 * k * sigma / (2 + abs(start - 1) / sigma) for k in range(16)],
        )
    assert agree(gaussian_mechanism.delta(epsilon, sigma), expected, 40)


@pytest.mark.parametrize(("epsilon", "sigma"), GRID)
def test_agrees_with_two_gaussians(epsilon, sigma):
    expected = two_gaussians.log_delta(epsilon, 1, sigma, 0, sigma, digits=60)
    assert agree(gaussian_mechanism.log_delta(epsilon, sigma), expected, 49)
    assert agree(gaussian_mechanism.delta(epsilon, sigma), mp.exp(expected), 45)


def test_log_of_a_divergence_beyond_floats():
    # log δ ≈ −z² / 2 with z = εσ − 1/(2σ), up to the log of a polynomial in z.
    for epsilon, sigma in ((3, 1e10), (1e5, 0.01), (1000, 10)):
        z = mpf(epsilon) * mpf(sigma) - 1 / (2 * mpf(sigma))
        assert -(z**2) / 2 - 5 * mp.log(z) - 5 < gaussian_mechanism.log_delta(epsilon, sigma) < -(z**2) / 2


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(("delta", "sigma"), chequered([1e-300, 1e-6, 0.3, 1 - 1e-16], [0.1, 0.002, 1, 4.22, 1e3]))
def test_epsilon_inverts_the_divergence(delta, sigma):
    epsilon = gaussian_mechanism.epsilon(delta, sigma, digits=70)
    if epsilon > 0:
        assert agree(gaussian_mechanism.log_delta(epsilon, sigma), mp.log(delta), 49)
    else:
        assert gaussian_mechanism.delta(0, sigma) <= delta


@pytest.mark.parametrize(("delta", "epsilon"), chequered([1e-6, 1e-300, 0.5, 0.99], [0, 1e-8, 1, 1e5]))
def test_noise_inverts_the_divergence(delta, epsilon):
    sigma = gaussian_mechanism.noise_multiplier(epsilon, delta, digits=70)
    assert agree(gaussian_mechanism.delta(epsilon, sigma), mpf(delta), 49)


def test_epsilon_next_to_zero():
    at_zero = gaussian_mechanism.delta(0, 2, digits=90)
    epsilon = gaussian_mechanism.epsilon(at_zero * (1 - mpf(10) ** -25), 2)
    assert 0 < epsilon < mpf(10) ** -24
    assert agree(1 - gaussian_mechanism.delta(epsilon, 2, digits=90) / at_zero, mpf(10) ** -25, 48)
    assert gaussian_mechanism.epsilon(at_zero * (1 + mpf(10) ** -25), 2) == 0


@pytest.mark.parametrize(("epsilon", "sigma"), GRID)
def test_precision_of_the_divergence(epsilon, sigma):
    for f in (gaussian_mechanism.delta, gaussian_mechanism.log_delta):
        reference = f(epsilon, sigma, digits=60)
        with mp.workdps(5):
            shorter = f(epsilon, sigma, digits=30)
            assert mp.dps == 5
        assert agree(shorter, reference, 30)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [("epsilon", (1e-6, 4.22)), ("epsilon", (1e-300, 1e3)), ("noise_multiplier", (1, 1e-6))],
)
def test_precision_of_the_inverses(function, arguments):
    f = getattr(gaussian_mechanism, function)
    reference = f(*arguments, digits=60)
    with mp.workdps(5):
        shorter = f(*arguments, digits=30)
        assert mp.dps == 5
    assert agree(shorter, reference, 30)


def test_arguments_are_exact():
    assert gaussian_mechanism.delta("0.1", 1) != gaussian_mechanism.delta(0.1, 1)
    assert gaussian_mechanism.delta("0.5", 1) == gaussian_mechanism.delta(0.5, mpf(1))
