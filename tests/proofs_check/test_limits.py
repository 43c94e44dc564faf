import pytest
import sympy

from canaryproof.proofs_check.displayed_lines import Kind, kind_of
from canaryproof.proofs_check.limits import bounded, equation, limit, vanishes
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (K / D, 0),
        (1 / K, 0),
        (SIGMA**2 + K / D + 3 / (K + 1), SIGMA**2),
        ((D + K) / (D - K), 1),
        (K**2 / D, None),
        (D / K, None),
        (sympy.Integer(7), 7),
    ],
)
def test_limit(expression, expected):
    assert limit(sympy.sympify(expression)) == expected


def test_orders():
    assert vanishes(K / D)
    assert not vanishes(K**2 / D)
    assert bounded(3 + K / D)
    assert not bounded(K)


def test_limits_agree_with_growth_along_powers():
    w = sympy.Symbol("w", positive=True)
    expression = (2 * K * (K - 1) / D + K * SIGMA**2 + 5) / (K + 3)
    for power in (1, 4, 7):
        along = sympy.limit(expression.subs({D: w**8, K: w**power}), w, sympy.oo)
        assert sympy.simplify(along - limit(expression)) == 0


@pytest.mark.parametrize(
    ("printed", "exact", "kind"),
    [
        (K / D + 1, (K + D) / D, Kind.EXACT),
        (1 + SIGMA**2, 1 + SIGMA**2 + K / D, Kind.LEADING_ORDER),
        (1 + K / D, 1 + 2 * K / D, Kind.LEADING_ORDER),
        (2 + K / D, 1 + K / D, Kind.FALSE),
        (1 + K / D, 2 + K / D, Kind.FALSE),
        (sympy.Integer(1), sympy.Integer(0), Kind.FALSE),
    ],
)
def test_kinds(printed, exact, kind):
    assert kind_of(equation(printed, exact)) is kind


def test_conclusions_decide_between_a_wrong_term_and_a_false_line():
    printed, exact = 1 / K, 2 / K
    assert kind_of(equation(printed, exact, vanishes)) is Kind.WRONG_TERM
    assert kind_of(equation(printed, exact, lambda expression: bounded(D * expression))) is Kind.FALSE
