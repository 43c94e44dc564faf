"""Measures of the unit sphere of R^d and of its caps: the geometry behind Theorem 3.1, derived for every d ≥ 2.

Write a point of the sphere as (cos θ, u sin θ), u on the unit sphere of R^(d−1). With w, w′ tangent at u, the inner
products of the derivatives along θ, w, w′ are

    ⟨∂θ, ∂θ⟩ = 1,   ⟨∂θ, ∂w⟩ = 0,   ⟨∂w, ∂w′⟩ = sin²θ ⟨w, w′⟩,

so that the volume element is sin^(d−2)θ dθ times that of u. What remains is W(n) = ∫₀^π sin^n θ dθ, which is π for
n = 0, 2 for n = 1, and obeys n W(n) = (n − 1) W(n − 2), since −cos θ sin^(n−1)θ is an antiderivative of
n sin^n θ − (n − 1) sin^(n−2)θ.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

import sympy
from sympy import Rational, Symbol, beta, cos, gamma, pi, sin, sqrt

from canaryproof.proofs_check.lines import Kind, held, judged, line
from canaryproof.proofs_check.spelling import text
from canaryproof.proofs_check.sphere_moments import D
from canaryproof.verify.check.results import Check, Outcome, Verdict

Formula: TypeAlias = Callable[[Any], Any]

THETA = Symbol("theta", positive=True)
_POWER = Symbol("n", positive=True)
_ONE = sympy.Integer(1)
# Formulas as printed, of the lines whose judges have them as defaults.
_CIRCLE = 2 * pi * sin(THETA)
_RADIUS = sin(THETA)
_CAP_3 = 2 * pi * (1 - cos(THETA))
_RADIAL = 1 / cos(THETA)
_HALF = Rational(1, 2)

_SOURCES = {
    "final": "final, Section 3.1 and Appendix A, Theorem 3.1 and its proof",
    "v1": "v1, Section 4",
    "review": "reviews, exchange on the proof of Theorem 3.1 (its formulas are lost in our copy)",
    "ours": "ours, on Theorem 3.1",
}


def _line(name: str, statement: str, judge: Callable[[], Outcome], display: str = "", row: int = 0) -> Check:
    """Return a line on Theorem 3.1, of the document with which its name begins."""
    document, topic = name.split(".", 1)
    return line(
        f"{document}.theorem-3.1.{topic}", _SOURCES[document], statement, judge, display, row, ours=document == "ours"
    )


def same(first: Any, second: Any, variable: Symbol, point: Any = 0) -> bool:
    """Tell whether two positive functions are equal: same logarithmic derivative, and same value at one point.

    Parameters
    ----------
    first, second
        Expressions in ``variable`` and possibly d.
    variable
        What they are functions of.
    point
        Where their values are compared.

    Returns
    -------
    Whether they are the same for all values of the variable and d.

    Raises
    ------
    ArithmeticError
        If neither equality nor a difference could be shown.
    """
    if first == 0 or second == 0:
        return bool(first == second)
    logs = [sympy.expand_log(sympy.log(expression), force=True) for expression in (first, second)]
    slope = sympy.simplify(sympy.diff(logs[0] - logs[1], variable))
    quotient = first / second
    if slope == 0 and _one(quotient.subs(variable, point)):
        return True
    if abs(sympy.N(quotient.subs({D: 7, variable: Rational(2, 5)}), 40) - 1) < Rational(1, 10**30):
        raise ArithmeticError("an equality could be neither proven nor disproven")
    return False


def _one(quotient: Any) -> bool:
    return bool(sympy.gammasimp(sympy.powsimp(quotient)) == 1)


def area(dim: Any) -> Any:
    """Measure S_d = 2π^(d/2)/Γ(d/2) of the unit sphere of R^d; proven by the line ``final.theorem-3.1.area``."""
    return 2 * pi ** (dim / 2) / gamma(dim / 2)


def boundary(dim: Any) -> Any:
    """Measure of the boundary of a cap of angle θ, as printed."""
    return area(dim - 1) * sin(THETA) ** (dim - 2)


def sine_integral(power: Any) -> Any:
    """W(n) in closed form; proven by ``sine_integrals``."""
    return sqrt(pi) * gamma((power + 1) / 2) / gamma(power / 2 + 1)


def exact_angle(dim: Any) -> Any:
    """Density of the angle θ between a uniform direction and a fixed one, normalised by W(d − 2)."""
    return sin(THETA) ** (dim - 2) / sine_integral(dim - 2)


@cache
def _metric() -> sympy.ImmutableMatrix:
    """Inner products of the derivatives along θ, w, w′, and after them those of w and w′, as one block matrix."""
    round_metric = sympy.Matrix(2, 2, sympy.symbols("g11 g12 g12 g22"))
    # In terms of e₁, u, w, w′: u is a unit vector, and orthogonal to e₁, w and w′.
    basis = sympy.diag(1, 1, round_metric)
    derivatives = sympy.Matrix([[-sin(THETA), cos(THETA), 0, 0], [0, 0, sin(THETA), 0], [0, 0, 0, sin(THETA)]])
    return sympy.ImmutableMatrix(sympy.diag(sympy.simplify(derivatives * basis * derivatives.T), round_metric))


def _polar_volume(dim: int) -> tuple[Any, list[Symbol]]:
    """Squared volume element of the unit sphere of R^d in polar angles, and these, the first being θ."""
    angles = [THETA, *sympy.symbols(f"a2:{dim}", positive=True)]
    point = [sympy.prod([sin(a) for a in angles[:place]]) * cos(angle) for place, angle in enumerate(angles)]
    jacobian = sympy.Matrix([*point, sympy.prod([sin(a) for a in angles])]).jacobian(angles)
    return sympy.simplify(sympy.simplify(jacobian.T * jacobian).det()), angles


def _exact_boundary(dim: Any) -> Any:
    """Measure of sin θ times the unit sphere of R^(d−1), whose dimension is d − 2."""
    # sin θ ≥ 0.
    scale = sqrt(_metric()[1, 1] / _metric()[3, 3]).subs(sympy.Abs(sin(THETA)), sin(THETA))
    return area(dim - 1) * scale ** (dim - 2)


@cache
def volume_element() -> Mapping[str, bool]:
    """Facts on which the volume element rests, and whether they hold."""
    metric = _metric()
    explicit = []
    for dim in (2, 3, 4):
        volume, angles = _polar_volume(dim)
        expected = sympy.prod([sin(angle) ** (2 * (dim - 2 - place)) for place, angle in enumerate(angles)])
        explicit.append(sympy.simplify(volume - expected) == 0)
    return {
        "the angle runs at unit speed": metric[0, 0] == 1,
        "the angle is orthogonal to the other directions": metric[0, 1] == 0 and metric[0, 2] == 0,
        "the other lengths are multiplied by sin θ": metric[1:3, 1:3] == sin(THETA) ** 2 * metric[3:5, 3:5],
        "polar angles give the same for d = 2, 3, 4": all(explicit),
    }


@cache
def sine_integrals() -> Mapping[str, bool]:
    """Facts on which the closed form of W(n) rests, and whether they hold."""
    slope = sympy.diff(-cos(THETA) * sin(THETA) ** (_POWER - 1), THETA)
    rest = (slope - _POWER * sin(THETA) ** _POWER) / sin(THETA) ** (_POWER - 2) + _POWER - 1
    ratio = sine_integral(_POWER) / sine_integral(_POWER - 2)
    small = [sympy.integrate(sin(THETA) ** n, (THETA, 0, pi)) - sine_integral(sympy.Integer(n)) for n in range(7)]
    return {
        "the antiderivative gives the recurrence": sympy.simplify(sympy.expand(rest)) == 0,
        "the closed form obeys the recurrence": sympy.gammasimp(ratio * _POWER / (_POWER - 1)) == 1,
        "the closed form agrees with symbolic integration for d = 2, …, 8": not any(small),
    }


def _judge_area(printed: Formula = area) -> Outcome:
    radius = Symbol("r", positive=True)
    gaussian = sympy.integrate(radius ** (D - 1) * sympy.exp(-(radius**2)), (radius, 0, sympy.oo))
    facts = {
        "S_1 = 2": printed(_ONE) == 2,
        "S_d = S_{d−1} W(d − 2)": _one(printed(D) / (printed(D - 1) * sine_integral(D - 2))),
        "S_d ∫ r^(d−1) exp(−r²) dr = π^(d/2)": sympy.simplify(printed(D) * gaussian / pi ** (D / 2)) == 1,
        **sine_integrals(),
    }
    values = {str(d): text(printed(sympy.Integer(d))) for d in range(1, 6)}
    finding = (
        "Exact for the unit sphere of R^d, d ≥ 1: by the recurrence from two points at d = 1, and by ∫ exp(−‖y‖²) dy."
    )
    return held(facts, finding, Kind.WRONG_TERM, values=values)


def _judge_boundary(printed: Formula = boundary) -> Outcome:
    facts = {"M_d = S_{d−1} sin^(d−2)θ": same(printed(D), _exact_boundary(D), THETA, pi / 2), **volume_element()}
    finding = (
        "Exact for d ≥ 2 (two points at d = 2); at d = 1 the boundary is empty, and the formula 0 with 1/Γ(0) = 0."
    )
    return held(facts, finding, Kind.WRONG_TERM)


def _judge_circle(printed: Any = _CIRCLE) -> Outcome:
    holds = same(printed, _exact_boundary(sympy.Integer(3)), THETA, pi / 2)
    finding = "Exact: S_2 sin θ = 2π sin θ; a d-sphere is the text's name for the unit sphere of R^d."
    return held(holds, finding, Kind.WRONG_TERM)


def _judge_shell(radius: Any = _RADIUS) -> Outcome:
    # ‖x − cos θ e₁‖² = ‖x‖² − 2x₁ cos θ + cos²θ, where ‖x‖ = 1 and x₁ = cos θ.
    distance = 1 - 2 * cos(THETA) ** 2 + cos(THETA) ** 2
    facts = {
        "its points have that distance from the centre": sympy.simplify(distance - radius**2) == 0,
        "all points at that distance are among them": sympy.simplify(cos(THETA) ** 2 + radius**2) == 1,
    }
    return held(facts, "Exact in every dimension, and conversely every point of that sphere is in the boundary.")


def _judge_volume_element(printed: Formula = boundary) -> Outcome:
    facts = {
        "the element is the boundary's measure": same(printed(D), _exact_boundary(D), THETA, pi / 2),
        "its integral over (0, π) is S_d": _one(area(D - 1) * sine_integral(D - 2) / area(D)),
        **volume_element(),
        **sine_integrals(),
    }
    finding = (
        "Exact for all d ≥ 2: at (cos θ, u sin θ) the sphere's metric is dθ² + sin²θ times the metric of u, so that no "
        "factor but sin^(d−2)θ arises, and S_d = S_{d−1} ∫₀^π sin^(d−2)θ dθ follows."
    )
    return held(facts, finding)


def _judge_cap_integral(printed: Formula = boundary) -> Outcome:
    element = _judge_volume_element(printed)
    mass = sympy.integrate(printed(_ONE), (THETA, 0, pi))
    if element.verdict is not Verdict.CONFIRMED or mass == area(_ONE):
        return element
    finding = (
        f"Exact for d ≥ 2, which is to be assumed: at d = 1 the integral over (0, π) is {text(mass)}, and the measure "
        "2."
    )
    return judged(Kind.HYPOTHESIS, finding, {**element.evidence, "integral at d = 1": text(mass)})


def _judge_rate(printed_factor: Any = _ONE) -> Outcome:
    density = _exact_boundary(D) / (area(D - 1) * sine_integral(D - 2))
    facts = {
        "the factor does not depend on θ": sympy.diff(printed_factor, THETA) == 0,
        "the factor is right": printed_factor == sqrt(_metric()[0, 0]),
        "M_d over its integral is the angle's density": same(density, exact_angle(D), THETA, pi / 2),
    }
    return held(facts, "Exact, with the factor 1, as the angle runs at unit speed; M_d alone then gives the density.")


def _judge_revolution(printed: Any = _CAP_3) -> Outcome:
    exact = sympy.integrate(_exact_boundary(sympy.Integer(3)), (THETA, 0, THETA))
    holds = sympy.simplify(printed - exact) == 0
    return held(holds, "Exact for d = 3: A_3 = 2π(1 − cos θ), of derivative 2π sin θ.")


def _judge_radius(printed_factor: Any = _RADIAL) -> Outcome:
    holds = sympy.simplify(printed_factor - 1 / sympy.diff(sin(THETA), THETA)) == 0
    return held(
        holds, "Exact, as dA_d/dθ = M_d: the derivative is the boundary's measure in the angle, not the radius."
    )


def _judge_cap_measure(second: Any = _HALF) -> Outcome:
    # Derivative of ½S_d·I_y(a, b) at y = sin²θ, where cos θ > 0: y^(a−1) (1 − y)^(b−1) dy/dθ over B(a, b).
    a = (D - 1) / 2
    slope = 2 * sin(THETA) ** (2 * a - 1) * cos(THETA) ** (2 * second - 1)
    derivative = area(D) / 2 * slope / beta(a, second).rewrite(gamma)
    small = {d: sympy.integrate(_exact_boundary(sympy.Integer(d)), (THETA, 0, THETA)) for d in range(2, 6)}
    facts = {
        "the derivative is M_d": same(derivative, _exact_boundary(D), THETA, pi / 4),
        "the half sphere has S_d/2": all(
            sympy.simplify(cap.subs(THETA, pi / 2) - area(sympy.Integer(d)) / 2) == 0 for d, cap in small.items()
        ),
    }
    values = {str(d): text(cap) for d, cap in small.items()}
    return held(
        facts, "Exact for d ≥ 2 and θ ≤ π/2; beyond, A_d(θ) = S_d − A_d(π − θ).", Kind.FALSE, small_dimensions=values
    )


LINES: tuple[Check, ...] = (
    _line("final.area", "The unit sphere of R^d has the measure S_d = 2π^(d/2)/Γ(d/2).", _judge_area),
    _line("final.boundary", "The cap's boundary has the measure M_d(θ) = S_{d−1} sin^(d−2)θ.", _judge_boundary),
    _line("final.circle", "For d = 3 the cap's boundary is a circle of length 2π sin θ.", _judge_circle),
    _line(
        "review.cap-boundary",
        "The cap's boundary is a sphere of radius sin θ about (cos θ, 0, …, 0) in the other d − 1 coordinates.",
        _judge_shell,
    ),
    _line(
        "review.rate-of-change",
        "The cap's measure grows in θ in proportion to its boundary's measure, which is all that the proof needs.",
        _judge_rate,
    ),
    _line("review.cap-integral", "The cap's measure is the integral of M_d over the angle.", _judge_cap_integral),
    _line(
        "review.volume-element",
        "In every dimension, the cap's volume element at angle θ and width dθ is M_d(θ) dθ.",
        _judge_volume_element,
    ),
    _line("review.revolution", "For d = 3 the same follows for a surface of revolution.", _judge_revolution),
    _line(
        "ours.radius",
        "In terms of its boundary's radius, the cap's measure has the derivative M_d/cos θ (θ < π/2).",
        _judge_radius,
    ),
    _line("ours.cap-measure", "A_d(θ) = (S_d/2) I_{sin²θ}((d − 1)/2, 1/2) for θ ≤ π/2.", _judge_cap_measure),
)
