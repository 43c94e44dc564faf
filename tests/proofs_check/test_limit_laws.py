import pytest
import sympy
from sympy import Rational, sqrt

from canaryproof.proofs_check import consistency, release_moments
from canaryproof.proofs_check.lines import Kind
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K


@pytest.mark.parametrize(
    "judge",
    [
        lambda: consistency._mean_law(2),
        lambda: consistency._spread_law(Rational(1)),
        lambda: consistency._centring(K / D),
        lambda: consistency._centring(K**2 / D),
    ],
)
def test_an_altered_statement_is_found(judge):
    assert judge().kind is Kind.FALSE


@pytest.mark.parametrize("statistic", ["A", "B", "W", "Y"])
def test_a_variance_that_does_not_fall_as_it_should_is_found(statistic, monkeypatch):
    right = release_moments.moments
    monkeypatch.setattr(
        release_moments, "moments", lambda name: (right(name)[0], right(name)[1] + int(name == statistic) / K)
    )
    judge = (
        (lambda: consistency._mean_law(1)) if statistic in "AB" else (lambda: consistency._spread_law(Rational(1, 2)))
    )
    assert judge().kind is Kind.FALSE


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
