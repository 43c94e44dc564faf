import pytest
from mpmath import mp, mpf

from canaryproof.kernels.reference import gaussian_mechanism, two_gaussians
from tests.rows import chequered

UP = 1 + 2**-52
PAIRS = [
    (1, 1, 0, 1),
    (-0.25, 1, 0.5, 0.875),
    (0.5, 0.75, 0, 2),
    (0, 3, 0, 1),
    (0.5, 1e-3, 0.25, 1),
    (0.5, 1, 0.25, 1e-3),
    (1e-8, 1, 0, 1 + 1e-8),
    (1, UP, 0, 1),
    (1, 1, 0, UP),
    (0, UP, 0, 1),
    (60, 1, 0, 1.001),
]


@pytest.fixture(autouse=True)
def work_at_100_digits():
    with mp.workdps(100):
        yield


def agree(value, expected, digits):
    return abs(value - expected) <= abs(expected) * mpf(10) ** -digits


def density(x, mu, sigma):
    return mp.exp(-(((x - mu) / sigma) ** 2) / 2) / (sigma * mp.sqrt(2 * mp.pi))


def panels(start, stop, mu, sigma):
    """Steps to the right on the scale at which the density of N(μ, σ²) falls, until it has fallen by 35 digits."""
    points, reach = [start], density(max(start, mu) if stop > mu else stop, mu, sigma) * mpf(10) ** -35
    while points[-1] < stop and (points[-1] < mu or density(points[-1], mu, sigma) > reach):
        points.append(min(stop, points[-1] + 8 * sigma / (2 + abs(points[-1] - mu) / sigma)))
    return points


def by_quadrature(epsilon, mu1, sigma1, mu2, sigma2):
    """Integral of max(p1 − e^ε p2, 0) between the points where it changes sign."""
    # Where the Gaussians nearly coincide, so do p1 and p2.
    with mp.workdps(35 if abs(sigma1 - sigma2) > 1e-6 else 52):
        epsilon, mu1, sigma1, mu2, sigma2 = map(mpf, (epsilon, mu1, sigma1, mu2, sigma2))

        def integral(sign, low, high):
            points = panels(low, high, sign * mu1, sigma1)
            # The tolerance of mp.quad is absolute.
            peak = max(density(x, sign * mu1, sigma1) for x in points)

            def excess(x):
                return (density(x, sign * mu1, sigma1) - mp.exp(epsilon) * density(x, sign * mu2, sigma2)) / peak

            return peak * mp.quad(excess, points) if len(points) > 1 else 0

        with mp.workdps(120):
            a = 1 / (2 * sigma2**2) - 1 / (2 * sigma1**2)
            b = mu1 / sigma1**2 - mu2 / sigma2**2
            c = (mu2 / sigma2) ** 2 / 2 - (mu1 / sigma1) ** 2 / 2 + mp.log(sigma2 / sigma1) - epsilon
            ends = sorted((-b + s * mp.sqrt(b * b - 4 * a * c)) / (2 * a) for s in (-1, 1)) if a else [-c / b]
        if a > 0:
            return integral(1, ends[1], mp.inf) + integral(-1, -ends[0], mp.inf)
        if a == 0:
            return integral(1, ends[0], mp.inf) if b > 0 else integral(-1, -ends[0], mp.inf)
        near = abs(ends[0] - mu1) < abs(ends[1] - mu1)
        return integral(1, *ends) if near else integral(-1, -ends[1], -ends[0])


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize(("pair", "epsilon"), chequered(PAIRS, [0, 30]))
def test_divergence_is_an_integral(epsilon, pair):
    mu1, sigma1, mu2, sigma2 = pair
    for direction, ends in (("forward", pair), ("reverse", (mu2, sigma2, mu1, sigma1))):
        value = two_gaussians.log_delta(epsilon, *pair, direction)
        if value == -mp.inf:
            assert ends[1] < ends[3]
            assert epsilon > mp.log(mpf(ends[3]) / ends[1])
        elif value > -(10**5):
            # Near δ = 0 and 1 the quadrature is right to an absolute, log δ to a relative error.
            assert agree(mp.exp(value), by_quadrature(epsilon, *ends), 30)


@pytest.mark.parametrize(("epsilon", "shift"), [(0, 1e-12), (0, 1), (1, 1), (30, 0.5), (1e5, 450), (1e5, 400), (3, 90)])
def test_equal_sigmas_are_the_gaussian_mechanism(epsilon, shift):
    expected = gaussian_mechanism.log_delta(epsilon, 1 / mpf(shift), digits=90)
    for direction in ("forward", "reverse", "both"):
        assert agree(two_gaussians.log_delta(epsilon, shift, 1, 0, 1, direction), expected, 49)


@pytest.mark.parametrize(("wide", "epsilon"), [(2, 0), (1e3, 1), (1e3, 1e5), (UP, 1e-14), (1 + 1e-9, 1e-6)])
def test_equal_means(wide, epsilon):
    wide, epsilon = mpf(wide), mpf(epsilon)
    x = wide * mp.sqrt(2 * (epsilon + mp.log(wide)) / (wide**2 - 1))
    expected = mp.erfc(x / wide / mp.sqrt(2)) - mp.exp(epsilon) * mp.erfc(x / mp.sqrt(2))
    assert agree(two_gaussians.log_delta(epsilon, 0, wide, 0, 1, "forward"), mp.log(expected), 49)


@pytest.mark.parametrize("pair", [(0.5, 0.75, 0, 2), (0.5, 1e-3, 0.25, 1), (0.5, 1, 0.5, 1 + 2**-20)])
def test_narrow_gaussian_near_its_largest_loss(pair):
    with mp.workdps(200):
        mu1, sigma1, mu2, sigma2 = map(mpf, pair)
        r = sigma2**2 - sigma1**2
        ceiling = mp.log(sigma2 / sigma1) + (mu1 - mu2) ** 2 / (2 * r)
        vertex = mu1 + sigma1**2 * (mu1 - mu2) / r
        gap = mpf(10) ** -70
        width = sigma1 * sigma2 * mp.sqrt(2 * gap / r)
        # p1 − e^ε p2 is a parabola to the leading order in the gap.
        leading = mp.log(density(vertex, mu1, sigma1) * 4 / 3 * gap * width)
        assert agree(two_gaussians.log_delta(ceiling - gap, *pair, "forward"), leading, 49)
        assert two_gaussians.log_delta(ceiling + gap, *pair, "forward") == -mp.inf


def test_identical_gaussians():
    assert two_gaussians.log_delta(0, 3, 2, 3, 2) == -mp.inf
    assert two_gaussians.epsilon(1e-300, 3, 2, 3, 2) == 0


@pytest.mark.parametrize("epsilon", [0, 1, 1e5])
def test_divergence_near_one_keeps_the_digits_of_its_log(epsilon):
    value = two_gaussians.log_delta(epsilon, 1000, 1, 0, 2, "forward")
    assert -(mpf(10) ** -1000) < value < 0
    assert agree(value, two_gaussians.log_delta(epsilon, 1000, 1, 0, 2, "forward", digits=90), 49)


def test_neighbouring_sigmas_give_neighbouring_divergences():
    equal = two_gaussians.log_delta(1, 1, 1, 0, 1)
    for sigmas in ((UP, 1), (1, UP)):
        value = two_gaussians.log_delta(1, 1, sigmas[0], 0, sigmas[1])
        assert 1e-17 < abs(value - equal) < 1e-14


@pytest.mark.parametrize("pair", PAIRS)
def test_directions(pair):
    mu1, sigma1, mu2, sigma2 = pair
    forward = two_gaussians.log_delta(0.5, *pair, "forward")
    reverse = two_gaussians.log_delta(0.5, *pair, "reverse")
    assert reverse == two_gaussians.log_delta(0.5, mu2, sigma2, mu1, sigma1, "forward")
    assert two_gaussians.log_delta(0.5, *pair) == max(forward, reverse)
    # Powers of 2 keep the change of scale exact.
    assert forward == two_gaussians.log_delta(0.5, -4 * mu1, 4 * sigma1, -4 * mu2, 4 * sigma2, "forward")


@pytest.mark.deep(every=3)
@pytest.mark.parametrize(("pair", "delta"), chequered(PAIRS, [1e-300, 1e-5, 0.5]))
def test_epsilon_inverts_the_divergence(pair, delta):
    for direction in ("forward", "reverse"):
        epsilon = two_gaussians.epsilon(delta, *pair, direction, digits=40)
        step = epsilon * mpf(10) ** -39
        if epsilon > 0:
            assert two_gaussians.log_delta(epsilon - step, *pair, direction) > mp.log(delta)
        assert two_gaussians.log_delta(epsilon + step, *pair, direction) <= mp.log(delta)


@pytest.mark.parametrize("delta", [pytest.param(0.9, marks=pytest.mark.deep), 1 - 1e-16])
def test_epsilon_of_a_delta_near_one(delta):
    for pair in ((30, 1, 0, 1.25), (30, 1.25, 0, 1)):
        epsilon = two_gaussians.epsilon(delta, *pair, "forward", digits=70)
        assert agree(two_gaussians.log_delta(epsilon, *pair, "forward"), mp.log(mpf(delta)), 49)


def test_epsilon_next_to_the_largest_loss():
    assert agree(two_gaussians.epsilon(1e-300, 0, 1e-3, 0, 1, "forward"), -mp.log(mpf(1e-3)), 49)


@pytest.mark.parametrize(("distance", "digits"), chequered([1e-10, 3e-57, 1e-30, 1e-200], [52, 15, 60]))
def test_epsilon_at_every_distance_from_the_largest_loss(distance, digits):
    pair = 0.5, 0.75, 0, 2
    with mp.workdps(300):
        ceiling = mp.log(mpf(2) / 0.75) + mpf(0.25) / (2 * (4 - mpf(0.75) ** 2))
        epsilon = ceiling * (1 - mpf(distance))
        delta = mp.exp(two_gaussians.log_delta(epsilon, *pair, "forward", digits=100))
    assert agree(two_gaussians.epsilon(delta, *pair, "forward", digits=digits), epsilon, digits)


@pytest.mark.parametrize("pair", [(1, 1, 0, 1), (1, 0.5, 0, 1), (1, 1, 0, 0.5)])
def test_epsilon_next_to_zero(pair):
    at_zero = mp.exp(two_gaussians.log_delta(0, *pair, "forward", digits=99))
    delta = at_zero * (1 - mpf(10) ** -25)
    epsilon = two_gaussians.epsilon(delta, *pair, "forward")
    assert 0 < epsilon < mpf(10) ** -24
    assert agree(at_zero - mp.exp(two_gaussians.log_delta(epsilon, *pair, "forward", digits=99)), at_zero - delta, 48)
    assert two_gaussians.epsilon(at_zero * (1 + mpf(10) ** -25), *pair, "forward") == 0


@pytest.mark.deep(every=2)
@pytest.mark.parametrize("pair", chequered(PAIRS))
def test_precision(pair):
    log_delta, epsilon = two_gaussians.log_delta(0.25, *pair, digits=60), two_gaussians.epsilon(1e-30, *pair, digits=60)
    with mp.workdps(5):
        shorter = two_gaussians.log_delta(0.25, *pair, digits=30), two_gaussians.epsilon(1e-30, *pair, digits=30)
        assert mp.dps == 5
    assert agree(shorter[0], log_delta, 30)
    assert agree(shorter[1], epsilon, 30)


def test_arguments_are_exact():
    tenths = two_gaussians.log_delta("0.3", "0.1", "0.2", 0, "0.4")
    assert agree(tenths, two_gaussians.log_delta("0.3", 1, 2, 0, 4), 49)
    assert not agree(two_gaussians.log_delta(0.3, 0.1, 0.2, 0, 0.4), tenths, 20)
