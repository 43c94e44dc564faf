import pytest
from mpmath import mp, mpf

from canaryproof.kernels.reference import null_cosine
from tests.rows import chequered

COSINES = [-1, -0.3, 0, 1e-300, 1e-12, 0.2, 0.7, 0.999999, 1]
GRID = [(0.3, 2), (0.999, 2.25), (-0.4, 3.5), (1e-7, 10**12), (6e-6, 10**12), (0.9, 10**6)]


@pytest.fixture(autouse=True)
def work_at_100_digits():
    with mp.workdps(100):
        yield


def agree(value, expected, digits):
    return abs(value - expected) <= abs(expected) * mpf(10) ** -digits


def densities(x):
    return {
        2: 1 / (mp.pi * mp.sqrt(1 - x * x)) if abs(x) < 1 else mp.inf,
        3: mpf(0.5),
        4: 2 / mp.pi * mp.sqrt(1 - x * x),
        5: 3 * (1 - x * x) / 4,
    }


def tails(x):
    return {
        2: mp.acos(x) / mp.pi,
        3: (1 - x) / 2,
        4: (mp.acos(x) - x * mp.sqrt(1 - x * x)) / mp.pi,
        5: (1 - x) ** 2 * (2 + x) / 4,
    }


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(("x", "dim"), chequered(COSINES, [2, 3, 4, 5]))
def test_closed_forms(x, dim):
    x = mpf(x)
    density, tail = densities(x)[dim], tails(x)[dim]
    assert null_cosine.pdf(x, dim) == density or agree(null_cosine.pdf(x, dim), density, 49)
    assert null_cosine.logpdf(x, dim) == mp.log(density) or agree(null_cosine.logpdf(x, dim), mp.log(density), 49)
    assert agree(null_cosine.sf(x, dim), tail, 49)
    log_tail = null_cosine.logsf(x, dim)
    assert log_tail == mp.log(tail) or agree(log_tail, mp.log(tail), 49)


@pytest.mark.parametrize(("x", "dim"), [(0.3, 2.25), (0.01, 7), (0.97, 10.5), (0.1, 100), (0.4, 99.75), (0.2, 1000)])
def test_tail_is_half_an_incomplete_beta_function(x, dim):
    beta = mp.betainc((mpf(dim) - 1) / 2, 0.5, 0, 1 - mpf(x) ** 2, regularized=True)
    assert agree(null_cosine.sf(x, dim, digits=30), beta / 2, 29)
    assert agree(null_cosine.sf(-x, dim, digits=30), 1 - beta / 2, 29)


@pytest.mark.parametrize(
    ("x", "dim"), [(0.7, 2), (0.9, 3.5), (0.03, 1000), (1e-12, 10**12), (9e-7, 10**12), (2e-6, 10**12), (9e-6, 10**12)]
)
def test_tail_is_one_half_less_a_series(x, dim):
    x, dim = mpf(x), mpf(dim)
    peak = mp.gammaprod([dim / 2], [(dim - 1) / 2, 0.5])
    assert agree(null_cosine.sf(x, dim), 0.5 - x * peak * mp.hyp2f1(0.5, (3 - dim) / 2, 1.5, x * x), 49)


@pytest.mark.parametrize(
    ("x", "dim"),
    [
        (0.04, 1000),
        pytest.param(0.9, 10**6, marks=pytest.mark.deep),
        pytest.param(2e-6, 10**12, marks=pytest.mark.deep),
        (4e-5, 10**12),
        (0.5, 10**12),
    ],
)
def test_tail_is_the_integral_of_the_density(x, dim):
    with mp.workdps(60):
        x, dim = mpf(x), mpf(dim)
        scale = min(1 / mp.sqrt(dim), (1 - x * x) / (dim * x))

        def ratio(t):
            return mp.exp((dim - 3) / 2 * (mp.log1p(-t * t) - mp.log1p(-x * x)))

        panels = [x + 8 * k * scale for k in range(17) if x + 8 * k * scale < 1]
        log_tail = null_cosine.logpdf(x, dim, digits=60) + mp.log(mp.quad(ratio, panels))
        assert ratio(panels[-1]) < mpf(10) ** -45
    assert agree(null_cosine.logsf(x, dim), log_tail, 40)


@pytest.mark.parametrize(
    ("x", "dim"),
    [
        pytest.param(0.9, 10**6, marks=pytest.mark.deep),
        (0.9, 10**12),
        pytest.param(0.036, 10**6, marks=pytest.mark.deep),
        (1 - 2**-53, 50),
    ],
)
def test_far_tails_obey_the_bounds_of_mills(x, dim):
    x, dim = mpf(x), mpf(dim)
    upper = null_cosine.logpdf(x, dim, digits=80) + mp.log((1 - x * x) / ((dim - 1) * x))
    tail = null_cosine.logsf(x, dim, digits=80)
    assert upper + mp.log1p(-(1 - x * x) / ((dim - 1) * x * x)) < tail < upper


def test_depth_of_far_tails():
    assert mp.nstr(null_cosine.logsf(0.9, 10**6), 8) == "-830372.49"
    assert null_cosine.sf(0.9, 10**6) > 0
    assert null_cosine.logcdf(0.9, 10**6) == -null_cosine.sf(0.9, 10**6)


@pytest.mark.parametrize("z", [-3, 0.5, 5])
def test_high_dimension_is_normal(z):
    assert agree(null_cosine.sf(z * mpf(10) ** -6, 10**12), mp.ncdf(-z), 9)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("x", "dim"), [pytest.param(*row, marks=pytest.mark.deep if i % 2 else ()) for i, row in enumerate(GRID)]
)
def test_symmetry(x, dim):
    assert null_cosine.pdf(x, dim) == null_cosine.pdf(-x, dim)
    assert null_cosine.cdf(x, dim, digits=30) == null_cosine.sf(-x, dim, digits=30)
    assert null_cosine.logcdf(x, dim, digits=30) == null_cosine.logsf(-x, dim, digits=30)
    assert agree(null_cosine.cdf(x, dim, digits=40) + null_cosine.sf(x, dim, digits=40), 1, 39)


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize(
    "q",
    [
        1e-3,
        pytest.param(0.2, marks=pytest.mark.deep),
        0.25,
        pytest.param(0.4, marks=pytest.mark.deep),
        0.5 - 1e-16,
        0.5 + 1e-16,
        pytest.param(0.9, marks=pytest.mark.deep),
        1 - 1e-16,
    ],
)
def test_quantiles_in_closed_form(q):
    q = mpf(q)
    # cos(πq) loses to the rounding of π what sin keeps near q = 1/2.
    assert agree(null_cosine.isf(q, 2, digits=30), mp.sin(mp.pi * (0.5 - q)), 29)
    assert agree(null_cosine.ppf(q, 3, digits=30), 2 * (q - 0.5), 29)


def test_ends_of_the_quantiles():
    for dim in (2, 3, 7.5, 10**12):
        assert [null_cosine.ppf(q, dim) for q in (0, 0.5, 1)] == [-1, 0, 1]
    assert null_cosine.isf(5e-324, 2) == 1
    assert agree(1 - null_cosine.isf(mpf(10) ** -40, 3, digits=60), 2 * mpf(10) ** -40, 18)


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    ("q", "dim"),
    [
        pytest.param(5e-324, 1000, marks=pytest.mark.deep),
        (5e-324, 10**12),
        pytest.param(1e-10, 1000, marks=pytest.mark.deep),
        (0.03, 2.25),
        pytest.param(0.2499, 10**6, marks=pytest.mark.deep),
        (0.2501, 10**6),
        (0.75, 40),
    ],
)
def test_quantiles_invert_the_tail(q, dim):
    x = null_cosine.isf(q, dim, digits=30)
    assert agree(null_cosine.sf(x, dim, digits=30), mpf(q), 24)
    assert null_cosine.ppf(q, dim, digits=30) == -x


@pytest.mark.parametrize("dim", [2.25, 1000, 10**12])
def test_quantiles_near_the_middle_keep_their_digits(dim):
    p = mpf(2) ** -53
    x = null_cosine.ppf(0.5 + p, dim)
    assert agree(x * null_cosine.pdf(0, dim), p, 30 if dim < 10**6 else 17)
    assert agree(null_cosine.cdf(x, dim, digits=80) - 0.5, p, 48)


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(("function", "point"), chequered(["logpdf", "logsf", "sf"], [*GRID, (5.0850e-06, 10**12)]))
def test_precision(function, point):
    f = getattr(null_cosine, function)
    reference = f(*point, digits=60)
    with mp.workdps(5):
        shorter = f(*point, digits=30)
        assert mp.dps == 5
    assert agree(shorter, reference, 30)


@pytest.mark.parametrize(
    ("q", "dim"), [pytest.param(1e-9, 10**12, marks=pytest.mark.deep), (0.45, 3.25), (1 - 1e-16, 2.5)]
)
def test_precision_of_quantiles(q, dim):
    reference = null_cosine.ppf(q, dim, digits=60)
    with mp.workdps(5):
        shorter = null_cosine.ppf(q, dim, digits=30)
        assert mp.dps == 5
    assert agree(shorter, reference, 30)


def test_arguments_are_exact():
    assert agree(null_cosine.cdf("0.1", 3), mpf("0.55"), 49)
    assert agree(null_cosine.cdf(0.1, 3), (1 + mpf(0.1)) / 2, 49)
    assert agree(null_cosine.ppf("0.5000000000000000000000000000000000000001", 3), mpf("2e-40"), 49)
