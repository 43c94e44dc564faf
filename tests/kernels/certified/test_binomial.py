import math
from fractions import Fraction

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from canaryproof.kernels.certified import binomial
from canaryproof.kernels.certified._ball import Enclosure, at_precision
from canaryproof.kernels.reference import binomial as reference
from tests.rows import chequered

# The twin takes long.
FEW = settings(max_examples=settings().max_examples // 4)
METHODS = st.sampled_from(["clopper-pearson", "jeffreys"])
CONFIDENCES = st.one_of(
    st.floats(0.001, 0.999), st.sampled_from([0.5, 0.9, 0.95, 0.99, 1 - 2**-53, 1 - 2**-30, Fraction(19, 20)])
)


@st.composite
def samples(draw, most=10**6):
    n = min(int(10 ** draw(st.floats(0, math.log10(most)))), most)
    s = draw(st.one_of(st.integers(0, n), st.integers(0, min(n, 5)), st.integers(0, min(n, 5)).map(lambda f: n - f)))
    return s, n


def twin(name, sample, confidence, method):
    if isinstance(confidence, Fraction):
        with mp.workdps(1000):
            confidence = mpf(confidence.numerator) / confidence.denominator
    return getattr(reference, name)(*sample, confidence, method, digits=22)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("name", ["lower", "upper"])
@FEW
@given(sample=samples(10**4), confidence=CONFIDENCES, method=METHODS)
def test_limits_hold_their_twins(holds, name, sample, confidence, method):
    enclosure = getattr(binomial, name)(*sample, confidence, method)
    assert enclosure.is_tight
    assert holds(enclosure, twin(name, sample, confidence, method), 19)


@given(samples(10**5), st.one_of(CONFIDENCES, st.just(1e-300)), METHODS)
def test_an_interval_is_two_limits_at_half_the_miss(sample, confidence, method):
    one_sided = (1 + Fraction(confidence)) / 2
    assert binomial.interval(*sample, confidence, method) == (
        binomial.lower(*sample, one_sided, method),
        binomial.upper(*sample, one_sided, method),
    )


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize(
    ("successes", "method"), chequered([0, 1, 5 * 10**5, 10**6 - 1], ["clopper-pearson", "jeffreys"])
)
def test_a_million_trials(holds, successes, method):
    for name in ("lower", "upper"):
        enclosure = getattr(binomial, name)(successes, 10**6, 0.95, method)
        assert enclosure.is_tight
        assert holds(enclosure, twin(name, (successes, 10**6), 0.95, method), 19)


@given(st.integers(1, 10**6), st.floats(1e-6, 1 - 1e-6))
def test_no_success_and_no_failure(trials, confidence):
    """Clopper–Pearson: the upper limit is 1 − α^(1/n), the lower one α^(1/n)."""
    miss = 1 - Fraction(confidence)
    root = at_precision(400, lambda: flint.arb(flint.fmpq(miss.numerator, miss.denominator)).root(trials))
    none, every = binomial.upper(0, trials, confidence), binomial.lower(trials, trials, confidence)
    assert none.is_tight
    assert every.is_tight
    assert at_precision(400, lambda: none.lo <= 1 - root <= none.hi)
    assert at_precision(400, lambda: every.lo <= root <= every.hi)


@pytest.mark.parametrize("method", ["clopper-pearson", "jeffreys"])
def test_conventions_at_the_ends(method):
    assert binomial.lower(0, 7, 0.9, method) == Enclosure(0.0, 0.0, None)
    assert binomial.upper(7, 7, 0.9, method) == Enclosure(1.0, 1.0, None)


@pytest.mark.parametrize("confidence", [0.3, 0.95, Fraction(999, 1000)])
def test_arc_sine(confidence):
    """Jeffreys with one trial, no success: Beta(1/2, 3/2), I_x = (2/π)·(asin √x + √(x(1 − x)))."""
    found = binomial.upper(0, 1, confidence, "jeffreys")
    for end, side in ((found.lo, -1), (found.hi, 1)):
        with mp.workdps(60):
            x = mpf(end)
            probability = 2 / mp.pi * (mp.asin(mp.sqrt(x)) + mp.sqrt(x * (1 - x)))
            level = Fraction(confidence)
            assert side * (probability - mpf(level.numerator) / level.denominator) > 0


@given(samples(10**4), st.fractions(0.01, 0.99), METHODS)
def test_successes_and_failures_mirror_each_other(sample, confidence, method):
    s, n = sample
    low, high = binomial.lower(s, n, confidence, method), binomial.upper(n - s, n, confidence, method)
    assert Fraction(low.lo) <= 1 - Fraction(high.lo)
    assert 1 - Fraction(high.hi) <= Fraction(low.hi)


def test_a_limit_that_is_a_float():
    """Two successes of two: √α, 1/2 at α = 1/4, which no precision tells from a value nearby."""
    assert binomial.lower(2, 2, 0.75) == Enclosure(math.nextafter(0.5, 0), math.nextafter(0.5, 1), None)


@pytest.mark.parametrize(
    "confidence", [pytest.param(1 - Fraction(1, 10**300), marks=pytest.mark.deep), Fraction(1, 10**300)]
)
def test_extreme_confidence(confidence):
    for sample in ((1, 10**5), (10**5 - 1, 10**5), (300, 1000)):
        for method in ("clopper-pearson", "jeffreys"):
            assert all(limit.is_tight for limit in binomial.interval(*sample, confidence, method))


@given(samples(10**4), st.fractions(0.001, 0.999), st.integers(60, 300), st.integers(60, 300))
def test_two_precisions_overlap(sample, x, one, other):
    s, n = sample
    a, b, x = flint.fmpq(2 * s + 1, 2), flint.fmpq(n - s + 1), flint.fmpq(x.numerator, x.denominator)
    first, second = (at_precision(p, lambda: binomial._beta_cdf(x, a, b)) for p in (one, other))
    assert first.overlaps(second)


def test_precision_left_behind_does_not_matter():
    expected = binomial.interval(7, 100)
    for prec in (2, 53, 5000):
        with flint.ctx.workprec(prec):
            assert binomial.interval(7, 100) == expected


@pytest.mark.parametrize("enclosure", [binomial.lower(0, 5), binomial.upper(3, 5), *binomial.interval(5.0, 5)])
def test_result_types(enclosure):
    assert type(enclosure.lo) is float
    assert type(enclosure.hi) is float
    assert isinstance(enclosure.ball, flint.arb)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 0), "trials"),
        ((1, 2.5), "trials"),
        ((1, math.nan), "trials"),
        ((1, 10**6 + 1), "trials"),
        ((-1, 5), "successes"),
        ((6, 5), "successes"),
        ((Fraction(1, 2), 5), "successes"),
        ((math.nan, 5), "successes"),
        ((1, 5, 0.0), "confidence"),
        ((1, 5, 1), "confidence"),
        ((1, 5, math.nan), "confidence"),
        ((1, 5, 0.9, "wald"), "method"),
    ],
)
@pytest.mark.parametrize("function", [binomial.lower, binomial.upper, binomial.interval])
def test_arguments_outside_the_domain(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)
