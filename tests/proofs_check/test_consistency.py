import math

import numpy as np
import pytest
import sympy
from scipy import integrate
from sympy import Rational, sqrt

from canaryproof.kernels import gaussian_mechanism, two_gaussians
from canaryproof.proofs_check import consistency, release_moments
from canaryproof.proofs_check.consistency import CLAIMED, Slopes, best_count, shift, slopes
from canaryproof.proofs_check.displayed_lines import Kind, kind_of
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K


@pytest.mark.parametrize("line", consistency.LINES, ids=lambda line: line.id)
def test_lines_hold(line, quick_run):
    assert quick_run.results[line.id].evidence["kind"] == Kind.EXACT


TIMES = 1 + (consistency._E**2 * SIGMA**2 + 1 / (4 * SIGMA**2)) / 2
LEAST = (2 * D**2 * SIGMA**6) ** sympy.Rational(1, 3)
A, FORWARD, REVERSE = CLAIMED


def one_percent_off(delta, distance):
    found = slopes(delta, distance)
    return Slopes(found.epsilon, found.mean, 1.01 * found.forward, found.reverse)


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize(
    "judge",
    [
        lambda: consistency._continuity(2 / SIGMA),
        lambda: consistency._slopes((A, REVERSE, FORWARD)),
        lambda: consistency._slopes((2 * A, FORWARD, REVERSE)),
        lambda: consistency._quotients(one_percent_off),
        lambda: consistency._kink(sympy.Integer(0)),
        lambda: consistency._bias(A * consistency._E / consistency._M / sympy.sqrt(K)),
        lambda: consistency._growth(sympy.Integer(1), LEAST),
        lambda: consistency._growth(TIMES, 2 * LEAST),
    ],
)
def test_an_altered_statement_is_found(judge):
    assert kind_of(judge()) is Kind.FALSE


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_slopes_are_the_kernels_difference_quotients(delta, epsilon):
    distance = 1.0 / float(gaussian_mechanism.noise_multiplier(epsilon, delta))
    found, h = slopes(delta, distance), 1e-6
    assert found.epsilon == pytest.approx(epsilon)

    def quotient(mean, ratio, direction):
        up, down = ((distance + s * h * mean, 1.0 + s * h * ratio) for s in (1, -1))
        return (
            two_gaussians.epsilon(delta, 0.0, 1.0, *up, direction)
            - two_gaussians.epsilon(delta, 0.0, 1.0, *down, direction)
        ) / (2.0 * h)

    for direction, expected in (("forward", found.forward), ("reverse", found.reverse)):
        assert quotient(1.0, 0.0, direction) == pytest.approx(found.mean, rel=1e-5)
        assert quotient(0.0, 1.0, direction) == pytest.approx(expected, rel=1e-4)


def test_moments_of_the_limit_law_of_fitted():
    found = slopes(1e-6, 0.65)

    def moment(power):
        def integrand(v, u):
            value = found.mean * u + max(found.forward * v, found.reverse * v)
            # Of a standard normal u, and of a v with variance 1/2.
            return value**power * math.exp(-u * u / 2 - v * v) / (math.sqrt(2.0) * math.pi)

        return (
            integrate.dblquad(integrand, -9.0, 9.0, 0.0, 7.0)[0] + integrate.dblquad(integrand, -9.0, 9.0, -7.0, 0.0)[0]
        )

    assert found.fitted_bias(1) == pytest.approx(moment(1), rel=1e-6)
    # What the line on growth says of the mean square.
    assert moment(2) / found.mean**2 == pytest.approx(1 + ((found.epsilon / 0.65) ** 2 + 0.65**2 / 4) / 2, rel=1e-6)
    assert found.fitted_bias(100) == pytest.approx(found.fitted_bias(1) / 10.0)


def test_bad_delta():
    with pytest.raises(ValueError, match="delta"):
        slopes(0.9, 0.1)


def test_shift_without_cancellation():
    assert shift(10**12, 2, 1.0) == pytest.approx(-1e-12, rel=1e-9)
    assert shift(100, 300, 1.0) == pytest.approx(-0.5)


def test_best_count_minimises_the_error():
    dim, sigma = 10**6, 0.5
    a = slopes(1e-6, 1.0 / sigma).mean
    counts = np.arange(1000, 6000)
    error = a**2 / counts + (a * counts / (2.0 * dim * sigma**3)) ** 2
    assert abs(counts[error.argmin()] - best_count(dim, sigma)) <= 1.0


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("statistic", ["A", "B", "W", "Y"])
def test_a_variance_that_does_not_fall_as_it_should_is_found(statistic, monkeypatch):
    right = release_moments.moments
    monkeypatch.setattr(
        release_moments, "moments", lambda name: (right(name)[0], right(name)[1] + int(name == statistic) / K)
    )
    judge = (
        (lambda: consistency._mean_law(1)) if statistic in "AB" else (lambda: consistency._spread_law(Rational(1, 2)))
    )
    assert kind_of(judge()) is Kind.FALSE


@pytest.mark.parametrize("power", [Rational(1, 2), Rational(2, 3), Rational(4, 5)])
def test_shift_along_powers(power):
    # k = dᵖ: the shift is −1/(2σ³) times k^(3/2)/d.
    w = sympy.Symbol("w", positive=True)
    shift = consistency._shift().subs({D: w**30, K: w ** (30 * power)})
    order = consistency.SHIFT_ORDER.subs({D: w**30, K: w ** (30 * power)})
    found = sympy.limit(sympy.simplify(shift / order), w, sympy.oo)
    assert sympy.simplify(found - consistency.shift_over(consistency.SHIFT_ORDER)) == 0
    assert found == -1 / (2 * SIGMA**3)


def test_only_the_order_of_the_shift_is_one():
    assert consistency.is_order_of_shift(7 * K ** Rational(3, 2) / D)
    assert not consistency.is_order_of_shift(sqrt(K) / D)
    assert not consistency.is_order_of_shift(K**2 / D)
    assert not consistency.is_order_of_shift(sqrt(K) * (K / D) ** 2)
