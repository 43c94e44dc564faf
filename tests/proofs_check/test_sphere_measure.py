import pytest
import sympy
from sympy import Rational, cos, pi, sin

from canaryproof.proofs_check import sphere_measure
from canaryproof.proofs_check.lines import Kind, kind_of
from canaryproof.proofs_check.sphere_measure import THETA, area, boundary, same


@pytest.mark.parametrize(
    ("kind", "judge"),
    [
        (Kind.WRONG_TERM, lambda: sphere_measure._judge_area(lambda d: 2 * pi ** (d / 2) / sympy.gamma((d + 1) / 2))),
        (Kind.WRONG_TERM, lambda: sphere_measure._judge_boundary(lambda d: area(d - 1) * sin(THETA) ** (d - 1))),
        (Kind.WRONG_TERM, lambda: sphere_measure._judge_circle(pi * sin(THETA))),
        (Kind.FALSE, lambda: sphere_measure._judge_shell(1 - cos(THETA))),
        (Kind.FALSE, lambda: sphere_measure._judge_volume_element(lambda d: area(d) * sin(THETA) ** (d - 2))),
        (Kind.FALSE, lambda: sphere_measure._judge_cap_integral(lambda d: boundary(d) * sin(THETA) ** 2)),
        (Kind.FALSE, lambda: sphere_measure._judge_rate(1 / cos(THETA))),
        (Kind.FALSE, lambda: sphere_measure._judge_revolution(pi * sin(THETA) ** 2)),
        (Kind.FALSE, lambda: sphere_measure._judge_radius(sympy.Integer(1))),
        (Kind.FALSE, lambda: sphere_measure._judge_cap_measure(Rational(3, 2))),
    ],
)
def test_seeded_fault_is_found(kind, judge):
    assert kind_of(judge()) is kind


def test_undecided_equality_is_an_error():
    x = sympy.Symbol("x", positive=True)
    assert same(x**2 + 2 * x + 1, (1 + x) ** 2, x, 1)
    assert not same(x**2 + 1, (1 + x) ** 2, x, 1)
    with pytest.raises(ArithmeticError):
        same(x, x * (1 + Rational(1, 10**40)), x, 1)
