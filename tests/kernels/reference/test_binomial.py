import pytest
from mpmath import mp, mpf
from scipy import stats

from canaryproof.kernels.reference import binomial


@pytest.fixture(autouse=True)
def work_at_100_digits():
    with mp.workdps(100):
        yield


def agree(value, expected, digits):
    return abs(value - expected) <= abs(expected) * mpf(10) ** -digits


def at_least(successes, trials, p):
    """Probability of so many successes or more, summed until nothing is left."""
    with mp.workdps(70):
        p = mpf(p)
        term = mp.binomial(trials, successes) * p**successes * (1 - p) ** (trials - successes)
        total = mpf(0)
        for k in range(successes, trials + 1):
            total += term
            term *= p / (1 - p) * (trials - k) / (k + 1)
            if term < total * mpf(10) ** -65:
                break
        return total


@pytest.mark.parametrize(
    ("trials", "confidence"),
    [
        (1, 0.95),
        pytest.param(10, 0.5, marks=pytest.mark.deep),
        pytest.param(10**6, 1 - 1e-12, marks=pytest.mark.deep),
        (10**12, 0.95),
    ],
)
def test_no_successes(trials, confidence):
    expected = -mp.expm1(mp.log(1 - mpf(confidence)) / trials)
    assert agree(binomial.upper(0, trials, confidence, digits=30), expected, 30)
    assert binomial.lower(0, trials, confidence) == 0


@pytest.mark.parametrize("trials", [10, pytest.param(10**10, marks=pytest.mark.deep), 10**12])
def test_one_failure(trials):
    """The limit is as near to 1 as its first digits tell it from 1."""
    expected = mp.exp(mp.log(mpf(0.95)) / trials)
    assert agree(binomial.upper(trials - 1, trials, 0.95, digits=30), expected, 30)


@pytest.mark.parametrize("trials", [2, 10**6])
def test_successes_only(trials):
    assert agree(binomial.lower(trials, trials), (1 - mpf(0.95)) ** (mpf(1) / trials), 49)
    assert binomial.upper(trials, trials) == 1


def test_no_certainty_from_none_or_all():
    for method in ("clopper-pearson", "jeffreys"):
        assert binomial.interval(0, 7, method=method, digits=15)[0] == 0
        assert binomial.interval(7, 7, method=method, digits=15)[1] == 1


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize(
    ("successes", "trials", "confidence"),
    [
        pytest.param(3, 10, 0.2, marks=pytest.mark.deep),
        (50, 100, 1 - 1e-16),
        (20, 10**6, 0.95),
        pytest.param(500000, 10**6, 0.95, marks=pytest.mark.deep),
    ],
)
def test_clopper_pearson_has_the_probability_of_its_tails(successes, trials, confidence):
    tail = 1 - mpf(confidence)
    lower = binomial.lower(successes, trials, confidence, digits=35)
    assert agree(at_least(successes, trials, lower), tail, 24)
    upper = binomial.upper(successes, trials, confidence, digits=30)
    # By symmetry: so many failures or more, of probability 1 − upper each.
    assert agree(at_least(trials - successes, trials, 1 - upper), tail, 24)


@pytest.mark.parametrize(
    ("successes", "trials"),
    [(1, 2), pytest.param(10, 10, marks=pytest.mark.deep), pytest.param(150, 200, marks=pytest.mark.deep)],
)
def test_jeffreys_is_a_quantile_of_the_beta_law(successes, trials):
    a, b = successes + mpf(0.5), trials - successes + mpf(0.5)
    lower = binomial.lower(successes, trials, 0.9, "jeffreys", digits=30)
    assert agree(mp.betainc(a, b, 0, lower, regularized=True), 1 - mpf(0.9), 27)
    upper = binomial.upper(trials - successes, trials, 0.9, "jeffreys", digits=30)
    assert agree(upper, 1 - lower, 28)


@pytest.mark.parametrize(
    ("successes", "trials"),
    [
        (1, 10**6),
        pytest.param(500000, 10**6, marks=pytest.mark.deep),
        pytest.param(10**6, 10**6, marks=pytest.mark.deep),
        (3 * 10**11, 10**12),
    ],
)
def test_jeffreys_in_large_samples(successes, trials):
    lower = binomial.lower(successes, trials, method="jeffreys", digits=15)
    expected = stats.beta.ppf(1 - 0.95, successes + 0.5, trials - successes + 0.5)
    assert float(lower) == pytest.approx(expected, rel=1e-12)


def test_intervals_of_the_literature():
    """3 of 10 at 95 %, as in many textbooks."""
    assert [mp.nstr(x, 4) for x in binomial.interval(3, 10, "0.95", digits=15)] == ["0.06674", "0.6525"]
    assert [mp.nstr(x, 4) for x in binomial.interval(3, 10, "0.95", "jeffreys", digits=15)] == ["0.09269", "0.6058"]


def test_interval_has_equal_tails():
    low, high = binomial.interval(4, 17, 0.75, "jeffreys", digits=15)
    assert low == binomial.lower(4, 17, 0.875, "jeffreys", digits=15)
    assert high == binomial.upper(4, 17, 0.875, "jeffreys", digits=15)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("successes", "trials", "method"),
    [(2, 7, "clopper-pearson"), (123456, 10**6, "jeffreys")],
)
def test_precision(successes, trials, method):
    reference = binomial.upper(successes, trials, method=method, digits=60)
    with mp.workdps(5):
        shorter = binomial.upper(successes, trials, method=method, digits=30)
        assert mp.dps == 5
    assert agree(shorter, reference, 30)


def test_confidence_is_exact():
    assert agree(binomial.lower(1, 1, "0.95", digits=30), mpf("0.05"), 30)
    assert agree(binomial.lower(1, 1, 0.95, digits=30), 1 - mpf(0.95), 30)
