"""Theorem 3.1: density of the cosine between a uniform direction in R^d and any fixed one.

The truth to compare with is derived here for every d ≥ 2. Write a point of the unit sphere as (cos θ, u sin θ), u on
the unit sphere of R^(d−1). With w, w′ tangent at u, the inner products of the derivatives along θ, w, w′ are

    ⟨∂θ, ∂θ⟩ = 1,   ⟨∂θ, ∂w⟩ = 0,   ⟨∂w, ∂w′⟩ = sin²θ ⟨w, w′⟩,

so that the volume element is sin^(d−2)θ dθ times that of u. What remains is W(n) = ∫₀^π sin^n θ dθ, which is π for
n = 0, 2 for n = 1, and obeys n W(n) = (n − 1) W(n − 2), since −cos θ sin^(n−1)θ is an antiderivative of
n sin^n θ − (n − 1) sin^(n−2)θ. The moments stand in ``lemma_a_1``.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, TypeAlias

import sympy
from flint import arb, fmpq
from sympy import Rational, Symbol, acos, beta, cos, gamma, pi, sin, sqrt

from canaryproof.kernels.certified import Enclosure, at_precision, null_cosine
from canaryproof.proofs_check.lines import Judgement, Kind, Line
from canaryproof.proofs_check.sphere_moments import D

Formula: TypeAlias = Callable[[Any], Any]

TAU = Symbol("tau", real=True)
THETA = Symbol("theta", positive=True)
_POWER = Symbol("n", positive=True)
_ONE = sympy.Integer(1)
_HALF = Rational(1, 2)
# Formulas as printed, of the lines whose judges have them as defaults.
_CIRCLE = 2 * pi * sin(THETA)
_RADIUS = sin(THETA)
_CAP_3 = 2 * pi * (1 - cos(THETA))
_RADIAL = 1 / cos(THETA)
_HYPERGEOMETRIC = (_HALF, (3 - D) / 2, Rational(3, 2))
_POINTS = tuple(fmpq(*ratio) for ratio in ((0, 1), (1, 1000), (-1, 7), (1, 3), (-3, 5), (9, 10), (999, 1000)))
_DIMS = (*range(2, 31), 100, 101, 1000, 1001)


def same(first: Any, second: Any, variable: Symbol = TAU, point: Any = 0) -> bool:
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
    if slope == 0 and sympy.gammasimp(sympy.powsimp(quotient.subs(variable, point))) == 1:
        return True
    if abs(sympy.N(quotient.subs({D: 7, variable: Rational(2, 5)}), 40) - 1) < Rational(1, 10**30):
        raise ArithmeticError("an equality could be neither proven nor disproven")
    return False


def judged(checks: Mapping[str, bool], finding: str, otherwise: Kind = Kind.FALSE, **evidence: Any) -> Judgement:
    """Judge a line that is exact if and only if all its checks hold.

    Parameters
    ----------
    checks
        Whether each of the facts that the line rests on holds.
    finding
        What is found if they do.
    otherwise
        How the line fares if one of them fails.
    **evidence
        What else is behind it, ready for JSON.

    Returns
    -------
    The judgement; its finding names the checks that failed, if any.
    """
    failed = [name for name, holds in checks.items() if not holds]
    text = f"Fails: {'; '.join(failed)}." if failed else finding
    return Judgement(otherwise if failed else Kind.EXACT, text, {**checks, **evidence})


def area(dim: Any) -> Any:
    """Measure of the unit sphere.

    Parameters
    ----------
    dim
        Dimension d of the space.

    Returns
    -------
    S_d = 2π^(d/2)/Γ(d/2); proven by the line ``final.theorem-3.1.area``.
    """
    return 2 * pi ** (dim / 2) / gamma(dim / 2)


def _boundary(dim: Any) -> Any:
    return area(dim - 1) * sin(THETA) ** (dim - 2)


def _constant(dim: Any) -> Any:
    return gamma(dim / 2) / (gamma((dim - 1) / 2) * sqrt(pi))


def _sine_integral(power: Any) -> Any:
    """W(n) in closed form."""
    return sqrt(pi) * gamma((power + 1) / 2) / gamma(power / 2 + 1)


def _exact_angle(dim: Any) -> Any:
    return sin(THETA) ** (dim - 2) / _sine_integral(dim - 2)


def exact_density(dim: Any) -> Any:
    """Density of the cosine, normalised by W(d − 2).

    Parameters
    ----------
    dim
        Dimension d ≥ 2 of the space.

    Returns
    -------
    Expression in ``TAU``; derived as the module says.
    """
    return (1 - TAU**2) ** ((dim - 3) / 2) / _sine_integral(dim - 2)


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
def _volume_element() -> Mapping[str, bool]:
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
def _sine_integrals() -> Mapping[str, bool]:
    slope = sympy.diff(-cos(THETA) * sin(THETA) ** (_POWER - 1), THETA)
    rest = slope - _POWER * sin(THETA) ** _POWER + (_POWER - 1) * sin(THETA) ** (_POWER - 2)
    ratio = _sine_integral(_POWER) / _sine_integral(_POWER - 2)
    return {
        "the antiderivative gives the recurrence": sympy.simplify(
            sympy.expand(rest / sin(THETA) ** (_POWER - 2)).subs(cos(THETA) ** 2, 1 - sin(THETA) ** 2)
        )
        == 0,
        "the closed form obeys the recurrence": sympy.gammasimp(ratio * _POWER / (_POWER - 1)) == 1,
        "the closed form agrees with symbolic integration for d = 2, …, 8": all(
            sympy.integrate(sin(THETA) ** n, (THETA, 0, pi)) == _sine_integral(sympy.Integer(n)) for n in range(7)
        ),
    }


def _judge_row(
    rows: Sequence[Formula], row: int, exact: Formula, before: Formula | None, variable: Symbol, ends: Sequence[Any]
) -> Judgement:
    """Judge a row of a chain for the density: d > 1 against the truth, d = 1 against what the row is said to equal."""
    printed = rows[row - 1]
    middle = (ends[0] + ends[1]) / 2

    def right(formula: Formula) -> bool:
        return same(formula(D), exact(D), variable, middle)

    proven = all({**_volume_element(), **_sine_integrals()}.values())
    evidence = {"printed": str(printed(D)), "exact": str(exact(D)), "exact density proven": proven}
    if not (right(printed) and proven):
        quotient = sympy.simplify((printed(sympy.Integer(5)) / exact(sympy.Integer(5))).subs(variable, middle))
        kind = Kind.WRONG_TERM if row < len(rows) and right(rows[-1]) else Kind.FALSE
        text = f"The density is {exact(D)}; for d = 5 in the middle, the printed one is {quotient} times that."
        return Judgement(kind, text, evidence)
    earlier = rows[row - 2] if row > 1 else before
    if earlier is None:
        mass = sympy.integrate(printed(_ONE), (variable, *ends))
        text = (
            "Exact for every d ≥ 2 (at d = 2 the cosine's density is unbounded at ±1), which is to be assumed: at d = "
            f"1 the formula, with 1/Γ(0) = 0, has the mass {mass}, whereas the law has half an atom at either end."
        )
        kind = Kind.EXACT if mass == 1 else Kind.HYPOTHESIS
        return Judgement(kind, text, {**evidence, "mass at d = 1": str(mass)})
    at_one = same(printed(_ONE), earlier(_ONE), variable, middle)
    text = "Equal to the exact density for symbolic d (the ends of the range, a null set, aside), and at d = 1, where "
    text += "1/Γ(0) = 0, to what stands before it."
    return Judgement(Kind.EXACT if at_one else Kind.HYPOTHESIS, text, {**evidence, "equal at d = 1": at_one})


_ANGLE_ROWS: tuple[Formula, ...] = (
    lambda d: sympy.diff(sympy.Integral(_boundary(d), (THETA, 0, THETA)), THETA) / area(d),
    lambda d: (
        1 / (2 * pi ** (d / 2) / gamma(d / 2)) * (2 * pi ** ((d - 1) / 2) / gamma((d - 1) / 2)) * sin(THETA) ** (d - 2)
    ),
    lambda d: _constant(d) * sin(THETA) ** (d - 2),
)


def _from_angle(dim: Any) -> Any:
    # sqrt(x²) is |x|.
    return _ANGLE_ROWS[-1](dim).subs(THETA, acos(TAU)) * sqrt(sympy.diff(acos(TAU), TAU) ** 2)


_COSINE_ROWS: tuple[Formula, ...] = (
    _from_angle,
    lambda d: _constant(d) * sin(acos(TAU)) ** (d - 2) * sqrt((-1 / sqrt(1 - TAU**2)) ** 2),
    lambda d: _constant(d) * sqrt(1 - TAU**2) ** (d - 2) / sqrt(1 - TAU**2),
    lambda d: _constant(d) * (1 - TAU**2) ** ((d - 3) / 2),
)
_THEOREM: tuple[Formula, ...] = (
    lambda d: gamma(d / 2) / (gamma((d - 1) / 2) * sqrt(pi)) * (1 - TAU**2) ** ((d - 3) / 2),
)

DISPLAYS: dict[str, int] = {
    "Theorem 3.1": len(_THEOREM),
    "angle density": len(_ANGLE_ROWS),
    "cosine density": len(_COSINE_ROWS),
}


def _theorem(rows: Sequence[Formula] = _THEOREM) -> Judgement:
    return _judge_row(rows, 1, exact_density, None, TAU, (-_ONE, _ONE))


def _angle(row: int, rows: Sequence[Formula] = _ANGLE_ROWS) -> Judgement:
    return _judge_row(rows, row, _exact_angle, None, THETA, (sympy.Integer(0), pi))


def _cosine(row: int, rows: Sequence[Formula] = _COSINE_ROWS) -> Judgement:
    return _judge_row(rows, row, exact_density, _from_angle, TAU, (-_ONE, _ONE))


def _judge_area(printed: Formula = area) -> Judgement:
    radius = Symbol("r", positive=True)
    gaussian = sympy.integrate(radius ** (D - 1) * sympy.exp(-(radius**2)), (radius, 0, sympy.oo))
    checks = {
        "S_1 = 2": printed(_ONE) == 2,
        "S_d = S_{d−1} W(d − 2)": sympy.gammasimp(sympy.powsimp(printed(D) / (printed(D - 1) * _sine_integral(D - 2))))
        == 1,
        "S_d ∫ r^(d−1) exp(−r²) dr = π^(d/2)": sympy.simplify(printed(D) * gaussian / pi ** (D / 2)) == 1,
        **_sine_integrals(),
    }
    values = {str(d): str(printed(sympy.Integer(d))) for d in range(1, 6)}
    text = (
        "Exact for the unit sphere of R^d, d ≥ 1: by the recurrence from two points at d = 1, and by ∫ exp(−‖y‖²) dy."
    )
    return judged(checks, text, Kind.WRONG_TERM, values=values)


def _judge_boundary(printed: Formula = _boundary) -> Judgement:
    checks = {"M_d = S_{d−1} sin^(d−2)θ": same(printed(D), _exact_boundary(D), THETA, pi / 2), **_volume_element()}
    text = "Exact for d ≥ 2 (two points at d = 2); at d = 1 the boundary is empty, and the formula 0 with 1/Γ(0) = 0."
    return judged(checks, text, Kind.WRONG_TERM)


def _judge_circle(printed: Any = _CIRCLE) -> Judgement:
    checks = {"M_3 = 2π sin θ": same(printed, _exact_boundary(sympy.Integer(3)), THETA, pi / 2)}
    text = "Exact: S_2 sin θ = 2π sin θ; a d-sphere is the text's name for the unit sphere of R^d."
    return judged(checks, text, Kind.WRONG_TERM)


def _judge_constant_vector() -> Judgement:
    # Reflection along w = v − e₁, in coordinates by e₁ and v: x ↦ x − 2w⟨w, x⟩/‖w‖², for a unit vector v ≠ e₁.
    first = Symbol("v1", real=True)
    gram = sympy.Matrix([[1, first], [first, 1]])
    w = sympy.Matrix([-1, 1])
    reflection = sympy.simplify(sympy.eye(2) - 2 * w * (w.T * gram) / (w.T * gram * w)[0])
    checks = {
        "a reflection maps v/‖v‖ to e₁": reflection * sympy.Matrix([0, 1]) == sympy.Matrix([1, 0]),
        "it keeps all inner products": sympy.simplify(reflection.T * gram * reflection - gram) == sympy.zeros(2),
    }
    text = (
        "Exact: given v ≠ 0, a reflection maps v/‖v‖ to e₁ and keeps the uniform law, so that τ has one law for all v; "
        "with v = S instead of an independent v, τ would be 1."
    )
    return judged(checks, text)


def _judge_hypergeometric(parameters: tuple[Any, Any, Any] = _HYPERGEOMETRIC) -> Judgement:
    first, second, third = parameters
    # The integral of term n of the binomial series (1 − x²)^((d−3)/2) has the factor 1/(2n + 1).
    n = _POWER
    binomial = ((3 - D) / 2 + n) / (n + 1) * (2 * n + 1) / (2 * n + 3)
    series = (first + n) * (second + n) / ((third + n) * (n + 1))
    checks = {"ratios of successive coefficients agree": sympy.cancel(binomial - series) == 0}
    text = "Exact: ∫₀ˣ f_d = f_d(0)·x·₂F₁(1/2, (3 − d)/2; 3/2; x²) for |x| < 1, as the series agree term by term."
    return judged(checks, text)


def _cancellation(x: Fraction, dim: int) -> float:
    """Sum of the sizes of the series' terms over the size of their sum, for the alternating series and odd d."""
    half = (dim - 3) // 2
    power, total, size = x, x, x
    for n in range(half):
        power *= -x * x * (half - n) / (n + 1)
        total += power / (2 * n + 3)
        size += abs(power) / (2 * n + 3)
    return float(size / total)


def _judge_instability() -> Judgement:
    # At d = 289, below what the text names, and above it.
    near, far = ({root**2: _cancellation(Fraction(t, root), root**2) for root in (17, 23, 31)} for t in (3, 10))
    lost = all(far[dim] > 2**53 for dim in (529, 961))
    kept = all(near[dim] < 2**10 for dim in (529, 961))
    # x(1 − x²)^((d−1)/2)·Σ cₙx²ⁿ has the derivative (1 − x²)^((d−3)/2) if c₀ = 1 and (2n + 3)cₙ₊₁ = (2n + d)cₙ.
    n = _POWER
    positive = sympy.cancel((2 * n + 3) * (D / 2 + n) / (Rational(3, 2) + n) - (2 * n + D)) == 0
    kind = (Kind.HYPOTHESIS if kept and positive else Kind.EXACT) if lost else Kind.FALSE
    text = (
        "True of the alternating series ₂F₁(1/2, (3 − d)/2; 3/2; τ²) far from 0 only: its terms add up to "
        f"{near[529]:.0f} times their sum at τ√d = 3 and {far[529]:.0e} times at τ√d = 10, d = 529, and much the same "
        f"at d = 289 ({near[289]:.0f}, {far[289]:.0e}); the terms of (1 − τ²)^((d−1)/2)·₂F₁(1, d/2; 3/2; τ²), the same "
        "function, are all positive, so that nothing cancels at any d."
    )
    evidence = {name: {str(d): f"{v:.3g}" for d, v in sizes.items()} for name, sizes in (("3", near), ("10", far))}
    return Judgement(kind, text, {"cancellation at τ√d": evidence, "the other series is the same function": positive})


def _judge_proportional(printed: Any = (1 - TAU**2) ** ((D - 3) / 2)) -> Judgement:
    constant = 1 / _sine_integral(D - 2)
    if not same(constant * printed, exact_density(D)):
        return Judgement(Kind.FALSE, f"The density is proportional to {exact_density(D) / constant}.", {})
    # ∫ (1 − τ²)^e dτ over (−1, 1) is finite for e > −1 only.
    exponent = -sympy.limit(TAU * sympy.diff(sympy.log(printed.subs({D: 1, TAU: 1 - TAU})), TAU), TAU, 0)
    kind = Kind.HYPOTHESIS if exponent >= 1 else Kind.EXACT
    text = f"Exact for d ≥ 2, which is to be assumed: at d = 1 the function grows as (1 − |α|)^(−{exponent}) at ±1."
    return Judgement(kind, text, {"normalising constant": str(constant), "exponent at d = 1": str(-exponent)})


def _judge_shell(radius: Any = _RADIUS) -> Judgement:
    # ‖x − cos θ e₁‖² = ‖x‖² − 2x₁ cos θ + cos²θ, where ‖x‖ = 1 and x₁ = cos θ.
    distance = 1 - 2 * cos(THETA) ** 2 + cos(THETA) ** 2
    checks = {
        "its points have that distance from the centre": sympy.simplify(distance - radius**2) == 0,
        "all points at that distance are among them": sympy.simplify(cos(THETA) ** 2 + radius**2) == 1,
    }
    return judged(checks, "Exact in every dimension, and conversely every point of that sphere is in the boundary.")


def _judge_volume_element(printed: Formula = _boundary) -> Judgement:
    checks = {
        "the element is the boundary's measure": same(printed(D), _exact_boundary(D), THETA, pi / 2),
        "its integral over (0, π) is S_d": sympy.gammasimp(sympy.powsimp(area(D - 1) * _sine_integral(D - 2) / area(D)))
        == 1,
        **_volume_element(),
        **_sine_integrals(),
    }
    text = (
        "Exact for all d ≥ 2: at (cos θ, u sin θ) the sphere's metric is dθ² + sin²θ times the metric of u, so that no "
        "factor but sin^(d−2)θ arises, and S_d = S_{d−1} ∫₀^π sin^(d−2)θ dθ follows."
    )
    return judged(checks, text)


def _judge_cap_integral(printed: Formula = _boundary) -> Judgement:
    element = _judge_volume_element(printed)
    mass = sympy.integrate(printed(_ONE), (THETA, 0, pi))
    if element.kind is not Kind.EXACT or mass == area(_ONE):
        return element
    text = f"Exact for d ≥ 2, which is to be assumed: at d = 1 the integral over (0, π) is {mass}, and the measure 2."
    return Judgement(Kind.HYPOTHESIS, text, {**element.evidence, "integral at d = 1": str(mass)})


def _judge_rate(printed_factor: Any = _ONE) -> Judgement:
    factor = sympy.sqrt(_metric()[0, 0])
    density = _exact_boundary(D) / (area(D - 1) * _sine_integral(D - 2))
    checks = {
        "the factor does not depend on θ": sympy.diff(printed_factor, THETA) == 0,
        "the factor is right": printed_factor == factor,
        "M_d over its integral is the angle's density": same(density, _exact_angle(D), THETA, pi / 2),
    }
    return judged(
        checks, "Exact, with the factor 1, as the angle runs at unit speed; M_d alone then gives the density."
    )


def _judge_revolution(printed: Any = _CAP_3) -> Judgement:
    exact = sympy.integrate(_exact_boundary(sympy.Integer(3)), (THETA, 0, THETA))
    checks = {"A_3 = ∫ 2π sin θ dθ": sympy.simplify(printed - exact) == 0}
    return judged(checks, "Exact for d = 3: A_3 = 2π(1 − cos θ), of derivative 2π sin θ.")


def _judge_radius(printed_factor: Any = _RADIAL) -> Judgement:
    exact = 1 / sympy.diff(sin(THETA), THETA)
    checks = {"dθ/d(sin θ)": sympy.simplify(printed_factor - exact) == 0}
    return judged(
        checks, "Exact, as dA_d/dθ = M_d: the derivative is the boundary's measure in the angle, not the radius."
    )


def _judge_cap_measure(second: Any = _HALF) -> Judgement:
    # Derivative of ½S_d·I_y(a, b) at y = sin²θ, where cos θ > 0: y^(a−1) (1 − y)^(b−1) dy/dθ over B(a, b).
    a = (D - 1) / 2
    slope = 2 * sin(THETA) ** (2 * a - 1) * cos(THETA) ** (2 * second - 1)
    derivative = area(D) / 2 * slope / beta(a, second).rewrite(gamma)
    small = [sympy.integrate(_exact_boundary(sympy.Integer(d)), (THETA, 0, THETA)) for d in range(2, 6)]
    checks = {
        "the derivative is M_d": same(derivative, _exact_boundary(D), THETA, pi / 4),
        "the half sphere has S_d/2": all(
            sympy.simplify(cap.subs(THETA, pi / 2) - area(sympy.Integer(d)) / 2) == 0 for d, cap in enumerate(small, 2)
        ),
    }
    values = {str(d): str(cap) for d, cap in enumerate(small, 2)}
    return judged(checks, "Exact for d ≥ 2 and θ ≤ π/2; beyond, A_d(θ) = S_d − A_d(π − θ).", small_dimensions=values)


def _judge_normalisation(density: Formula = exact_density) -> Judgement:
    checks = {
        "f_d = (1 − τ²)^((d−3)/2)/W(d − 2)": same(density(D), exact_density(D)),
        "∫ (1 − τ²)^((d−3)/2) dτ for d = 2, 3, 5, 7, 9": all(
            sympy.simplify(sympy.integrate(density(sympy.Integer(d)), (TAU, -1, 1))) == 1 for d in (2, 3, 5, 7, 9)
        ),
        **_sine_integrals(),
    }
    return judged(checks, "Exact for d ≥ 2, by the recurrence n W(n) = (n − 1) W(n − 2) from W(0) = π and W(1) = 2.")


def _judge_beta(density: Formula = exact_density) -> Judgement:
    x, a = Symbol("x", positive=True), (D - 1) / 2
    law = x ** (a - 1) * (1 - x) ** (a - 1) / beta(a, a).rewrite(gamma)
    checks = {"densities agree": same(2 * density(D).subs(TAU, 2 * x - 1), law, x, Rational(1, 2))}
    return judged(checks, "Exact for symbolic d > 1: 2 f_d(2x − 1) is the Beta density.")


def _judge_beta_square(density: Formula = exact_density) -> Judgement:
    y, a = Symbol("y", positive=True), (D - 1) / 2
    law = y ** Rational(-1, 2) * (1 - y) ** (a - 1) / beta(Rational(1, 2), a).rewrite(gamma)
    checks = {"densities agree": same(density(D).subs(TAU, sqrt(y)) / sqrt(y), law, y, Rational(1, 2))}
    return judged(checks, "Exact for symbolic d > 1: both of ±√y add f_d(√y)/(2√y), together the Beta density.")


def _closed_form(x: fmpq, dim: int) -> tuple[fmpq | arb, fmpq | arb]:
    """Density and distribution function by reduction in d: rational numbers for odd d, and balls for even d."""
    square = 1 - x * x
    odd = dim % 2
    weight = fmpq(1) if odd else 1 / arb(square).sqrt()
    integral = x if odd else arb(x).asin()
    total = fmpq(2) if odd else arb.pi()
    for n in range(2 + odd, dim - 1, 2):
        weight *= square
        integral = (x * weight + (n - 1) * integral) / n
        total = total * (n - 1) / n
    return weight / total, fmpq(1, 2) + integral / total


def _judge_kernel(place: int, kernel: Callable[[Fraction, int], Enclosure]) -> Judgement:
    def compare() -> tuple[int, list[str], int]:
        outside, widest = [], 0
        for dim in _DIMS:
            for x in _POINTS:
                value = _closed_form(x, dim)[place]
                enclosure = kernel(Fraction(int(x.p), int(x.q)), dim)
                lo, hi = (fmpq(*end.as_integer_ratio()) for end in (enclosure.lo, enclosure.hi))
                # For a ball: certainly so.
                if not (lo <= value and value <= hi):
                    outside.append(f"x = {x}, d = {dim}")
                widest = max(widest, enclosure.width_in_ulps)
        return len(_DIMS) * len(_POINTS), outside, widest

    count, outside, widest = at_precision(8192, compare)
    checks = {"the closed form lies inside all enclosures": not outside, "they are at most 2 ulps wide": widest <= 2}
    text = f"At {count} pairs (x, d), d from {_DIMS[0]} to {_DIMS[-1]}, the closed form lies in the enclosure."
    return judged(checks, text, outside=outside[:5], pairs=count, widest_in_ulps=widest)


_SOURCES = {
    "final": "final, Section 3.1 and Appendix A, Theorem 3.1 and its proof",
    "v1": "v1, Section 4",
    "review": "reviews, exchange on the proof of Theorem 3.1 (its formulas are lost in our copy)",
    "ours": "ours, on Theorem 3.1",
}


def _line(name: str, statement: str, judge: Callable[[], Judgement], display: str = "", row: int = 0) -> Line:
    document, topic = name.split(".", 1)
    identity = f"{document}.theorem-3.1.{topic}"
    return Line(identity, _SOURCES[document], statement, judge, display, row, ours=document == "ours")


LINES: tuple[Line, ...] = (
    _line(
        "final.density",
        "The cosine between a uniform direction in R^d and an independent v ≠ 0 has the density "
        "Γ(d/2)/(Γ((d − 1)/2)√π)·(1 − τ²)^((d−3)/2).",
        _theorem,
        "Theorem 3.1",
        1,
    ),
    _line("final.constant-vector", "v may be taken as constant.", _judge_constant_vector),
    _line("final.area", "The unit sphere of R^d has the measure S_d = 2π^(d/2)/Γ(d/2).", _judge_area),
    _line("final.boundary", "The cap's boundary has the measure M_d(θ) = S_{d−1} sin^(d−2)θ.", _judge_boundary),
    _line("final.circle", "For d = 3 the cap's boundary is a circle of length 2π sin θ.", _judge_circle),
    *(
        _line(f"final.angle-density.{n}", f"The angle's density is {text}.", partial(_angle, n), "angle density", n)
        for n, text in enumerate(
            (
                "A_d′(θ)/S_d",
                "(2π^(d/2)/Γ(d/2))⁻¹ (2π^((d−1)/2)/Γ((d − 1)/2)) sin^(d−2)θ",
                "Γ(d/2)/(Γ((d − 1)/2)√π)·sin^(d−2)θ",
            ),
            1,
        )
    ),
    *(
        _line(f"final.cosine-density.{n}", f"The cosine's density is {text}.", partial(_cosine, n), "cosine density", n)
        for n, text in enumerate(
            (
                "φ_d(arccos τ)·|d arccos τ/dτ|",
                "Γ(d/2)/(Γ((d − 1)/2)√π)·sin(arccos τ)^(d−2)·|−1/√(1 − τ²)|",
                "Γ(d/2)/(Γ((d − 1)/2)√π)·√(1 − τ²)^(d−2)/√(1 − τ²)",
                "Γ(d/2)/(Γ((d − 1)/2)√π)·(1 − τ²)^((d−3)/2)",
            ),
            1,
        )
    ),
    _line(
        "final.hypergeometric",
        "The density's integral is a hypergeometric function (so too v1).",
        _judge_hypergeometric,
    ),
    _line("v1.proportional", "The cosine's density is proportional to (1 − α²)^((d−3)/2).", _judge_proportional),
    _line(
        "v1.unstable", "Its hypergeometric integral is numerically unstable for d above 500 or so.", _judge_instability
    ),
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
    _line("ours.normalisation", "f_d has the integral 1.", _judge_normalisation),
    _line("ours.beta", "(1 + τ)/2 ~ Beta((d − 1)/2, (d − 1)/2).", _judge_beta),
    _line("ours.beta-of-square", "τ² ~ Beta(1/2, (d − 1)/2).", _judge_beta_square),
    _line("ours.kernel-pdf", "Our certified density encloses f_d.", partial(_judge_kernel, 0, null_cosine.pdf)),
    _line(
        "ours.kernel-cdf", "Our certified cdf encloses the integral of f_d.", partial(_judge_kernel, 1, null_cosine.cdf)
    ),
)
