"""Theorem 3.1: density of the cosine τ between a uniform direction in R^d and any fixed one, line by line.

The truth to compare with is derived here for every d ≥ 2, by lines of our own: measures of the unit sphere and its
caps; density, Beta laws, moments and certified kernels of τ.

Write a point of the sphere as (cos θ, u sin θ), u on the unit sphere of R^(d−1). With w, w′ tangent at u, the inner
products of the derivatives along θ, w, w′ are

    ⟨∂θ, ∂θ⟩ = 1,   ⟨∂θ, ∂w⟩ = 0,   ⟨∂w, ∂w′⟩ = sin²θ ⟨w, w′⟩,

so that the volume element is sin^(d−2)θ dθ times that of u. What remains is W(n) = ∫₀^π sin^n θ dθ, which is π for
n = 0, 2 for n = 1, and obeys n W(n) = (n − 1) W(n − 2), since −cos θ sin^(n−1)θ is an antiderivative of
n sin^n θ − (n − 1) sin^(n−2)θ.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, TypeAlias

import sympy
from flint import arb, fmpq
from sympy import Expr, Rational, Symbol, acos, beta, cos, gamma, pi, sin, sqrt

from canaryproof.kernels.certified import Enclosure, at_precision, null_cosine
from canaryproof.proofs_check.displayed_lines import Kind, held, judged, line
from canaryproof.proofs_check.formula_text import text
from canaryproof.proofs_check.sphere_moments import D, expectation
from canaryproof.verify.papers.check.results import Check, Outcome, Verdict

Formula: TypeAlias = Callable[[Any], Any]

THETA = Symbol("theta", positive=True)
_POWER = Symbol("n", positive=True)
_UNIT = sympy.Integer(1)
# Formulas as printed, of the lines whose judges have them as defaults.
_CIRCLE = 2 * pi * sin(THETA)
_RADIUS = sin(THETA)
_CAP_3 = 2 * pi * (1 - cos(THETA))
_RADIAL = 1 / cos(THETA)
_HALF = Rational(1, 2)

_SOURCES = {
    "final": "Section 3.1 and Appendix A, Theorem 3.1 and its proof",
    "v1": "Section 4",
    "review": "authors' answers on the proof of Theorem 3.1 (their formulas are lost in our copy)",
    "ours": "ours, on Theorem 3.1",
}
_REVIEWER = "reviewer, on the proof of Theorem 3.1"


def _line(
    name: str, statement: str, judge: Callable[[], Outcome], display: str = "", row: int = 0, source: str = ""
) -> Check:
    """Return a line on Theorem 3.1, of the document with which its name begins."""
    document, topic = name.split(".", 1)
    source = source or _SOURCES[document]
    return line(f"{document}.theorem-3.1.{topic}", source, statement, judge, display, row, own=document == "ours")


def same(first: Any, second: Any, variable: Symbol, point: Any = 0) -> bool:
    """Tell whether two positive functions are equal: same logarithmic derivative, and same value at one point.

    An ArithmeticError if neither equality nor a difference could be shown.
    """
    if first == 0 or second == 0:
        return bool(first == second)
    logs = [sympy.expand_log(sympy.log(expression), force=True) for expression in (first, second)]
    slope = sympy.simplify(sympy.diff(logs[0] - logs[1], variable))
    quotient = first / second
    if slope == 0 and _is_one(quotient.subs(variable, point)):
        return True
    if abs(sympy.N(quotient.subs({D: 7, variable: Rational(2, 5)}), 40) - 1) < Rational(1, 10**30):
        raise ArithmeticError("an equality could be neither proven nor disproven")
    return False


def _is_one(quotient: Any) -> bool:
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
    point = [sympy.prod([sin(a) for a in angles[:i]]) * cos(angle) for i, angle in enumerate(angles)]
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
        expected = sympy.prod([sin(angle) ** (2 * (dim - 2 - i)) for i, angle in enumerate(angles)])
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
        "S_1 = 2": printed(_UNIT) == 2,
        "S_d = S_{d−1} W(d − 2)": _is_one(printed(D) / (printed(D - 1) * sine_integral(D - 2))),
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
        "its integral over (0, π) is S_d": _is_one(area(D - 1) * sine_integral(D - 2) / area(D)),
        **volume_element(),
        **sine_integrals(),
    }
    finding = (
        "At (cos θ, u sin θ) the sphere's metric is dθ² + sin²θ times the metric of u, so that no factor but "
        "sin^(d−2)θ arises, and S_d = S_{d−1} ∫₀^π sin^(d−2)θ dθ follows."
    )
    return _from_two(held(facts, f"Exact: {finding}"), finding, printed)


def _from_two(exact: Outcome, finding: str, printed: Formula = boundary) -> Outcome:
    """Say of what is exact for d ≥ 2, as the text is about large d, that it is not at d = 1."""
    mass = sympy.integrate(printed(_UNIT), (THETA, 0, pi))
    if exact.verdict is not Verdict.CONFIRMED or mass == area(_UNIT):
        return exact
    only = (
        "Exact for d ≥ 2, and the answers speak of large d: at d = 1 alone, where the integral of M_d is "
        f"{text(mass)} and the sphere's measure 2, it is not."
    )
    return judged(Kind.EXACT, f"{only} {finding}", {**exact.evidence, "integral at d = 1": text(mass)})


def _judge_rate(printed_factor: Any = _UNIT) -> Outcome:
    density = _exact_boundary(D) / (area(D - 1) * sine_integral(D - 2))
    facts = {
        "the factor does not depend on θ": sympy.diff(printed_factor, THETA) == 0,
        "the factor is right": printed_factor == sqrt(_metric()[0, 0]),
        "M_d over its integral is the angle's density": same(density, exact_angle(D), THETA, pi / 2),
    }
    finding = "The factor is 1, as the angle runs at unit speed; M_d alone then gives the density."
    return _from_two(held(facts, f"Exact: {finding}"), finding)


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


# The law of the cosine.

TAU = Symbol("tau", real=True)
_POINTS = tuple(fmpq(*ratio) for ratio in ((0, 1), (1, 1000), (-1, 7), (1, 3), (-3, 5), (9, 10), (999, 1000)))
_DIMS = (*range(2, 31), 100, 101, 1000, 1001)


def exact_density(dim: Any) -> Any:
    """Density of the cosine in R^d, d ≥ 2, normalised by W(d − 2): an expression in ``TAU``."""
    return (1 - TAU**2) ** ((dim - 3) / 2) / sine_integral(dim - 2)


def even_moment(pairs: int) -> Expr:
    """E[τ²ᵖ] = 1·3⋯(2p − 1) / (d(d + 2)⋯(d + 2p − 2)); proven by the line ``ours.theorem-3.1.even-moments``."""
    moment: Expr = sympy.prod([(2 * step + 1) / (D + 2 * step) for step in range(pairs)])
    return moment


def moment_by_pairings(power: int) -> Expr:
    """E[⟨c, v⟩^power] for uniform c and any unit vector v, as a sum over pairings."""
    return expectation(*([("c", "v")] * power))


@cache
def moments_by_parts() -> bool:
    """Whether (2p + 1) E τ²ᵖ = (d + 2p) E τ²ᵖ⁺² follows from the density for all p and d > 1."""
    p = Symbol("p", positive=True)
    # τ^(2p+1) (1 − τ²)^((d−1)/2) is 0 at ±1; its derivative over τ^(2p) (1 − τ²)^((d−3)/2):
    log_product = (2 * p + 1) * sympy.log(TAU) + (D - 1) / 2 * sympy.log(1 - TAU**2)
    quotient = sympy.simplify(TAU * (1 - TAU**2) * sympy.diff(log_product, TAU))
    weight = (1 - TAU**2) ** ((D - 3) / 2)
    return bool(
        sympy.expand(quotient - (2 * p + 1) + (D + 2 * p) * TAU**2) == 0
        and sympy.simplify(sympy.diff(exact_density(D) / weight, TAU)) == 0
    )


def judge_even_moments(moment: Callable[[int], Any] = even_moment) -> Outcome:
    """Judge a formula for E τ²ᵖ, given p."""
    steps = ((2 * p + 1) * moment(p) - (D + 2 * p) * moment(p + 1) for p in range(12))
    facts = {
        "(2p + 1) E τ²ᵖ = (d + 2p) E τ²ᵖ⁺², by parts": moments_by_parts(),
        "the product obeys it, from 1": moment(0) == 1 and all(sympy.cancel(step) == 0 for step in steps),
        "the sums over pairings agree for p ≤ 4": all(
            sympy.cancel(moment(p) - moment_by_pairings(2 * p)) == 0 for p in range(5)
        ),
    }
    return held(facts, "Exact for all d ≥ 2 and p, by integration by parts.")


def judge_odd_moments(density: Formula = exact_density) -> Outcome:
    """Judge that a density, given d, has no odd moments."""
    facts = {
        "the density is even": sympy.simplify(density(D) - density(D).subs(TAU, -TAU)) == 0,
        "the sums over pairings are 0": all(moment_by_pairings(power) == 0 for power in (1, 3, 5)),
    }
    return held(facts, "Exact: the density is even, and τ bounded.")


def _judge_normalisation(density: Formula = exact_density) -> Outcome:
    facts = {
        "f_d = (1 − τ²)^((d−3)/2)/W(d − 2)": same(density(D), exact_density(D), TAU),
        "∫ (1 − τ²)^((d−3)/2) dτ for d = 2, 3, 5, 7, 9": all(
            sympy.simplify(sympy.integrate(density(sympy.Integer(d)), (TAU, -1, 1))) == 1 for d in (2, 3, 5, 7, 9)
        ),
        **sine_integrals(),
    }
    return held(facts, "Exact for d ≥ 2, by the recurrence n W(n) = (n − 1) W(n − 2) from W(0) = π and W(1) = 2.")


def _is_beta(first: Any, density: Callable[[Symbol], Any]) -> bool:
    """Whether a density on (0, 1) is that of Beta(first, (d − 1)/2)."""
    x, second = Symbol("x", positive=True), (D - 1) / 2
    law = x ** (first - 1) * (1 - x) ** (second - 1) / beta(first, second).rewrite(gamma)
    return same(density(x), law, x, Rational(1, 2))


def _judge_beta(density: Formula = exact_density) -> Outcome:
    holds = _is_beta((D - 1) / 2, lambda x: 2 * density(D).subs(TAU, 2 * x - 1))
    return held(holds, "Exact for symbolic d > 1: 2 f_d(2x − 1) is the Beta density.")


def _judge_beta_square(density: Formula = exact_density) -> Outcome:
    holds = _is_beta(Rational(1, 2), lambda y: density(D).subs(TAU, sqrt(y)) / sqrt(y))
    return held(holds, "Exact for symbolic d > 1: both of ±√y add f_d(√y)/(2√y), together the Beta density.")


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


def _judge_kernel(index: int, kernel: Callable[[Fraction, int], Enclosure]) -> Outcome:
    def compare() -> tuple[list[str], int]:
        outside, widest = [], 0
        for dim in _DIMS:
            for x in _POINTS:
                value = _closed_form(x, dim)[index]
                enclosure = kernel(Fraction(int(x.p), int(x.q)), dim)
                lo, hi = (fmpq(*end.as_integer_ratio()) for end in (enclosure.lo, enclosure.hi))
                # For a ball: certainly so.
                if not (lo <= value and value <= hi):
                    outside.append(f"x = {x}, d = {dim}")
                widest = max(widest, enclosure.width_in_ulps)
        return outside, widest

    outside, widest = at_precision(8192, compare)
    facts = {"the closed form lies inside all enclosures": not outside, "they are at most 2 ulps wide": widest <= 2}
    count = len(_DIMS) * len(_POINTS)
    finding = f"At {count} pairs (x, d), d from {_DIMS[0]} to {_DIMS[-1]}, the closed form lies in the enclosure."
    return held(facts, finding, outside=outside[:5], pairs=count, widest_in_ulps=widest)


# The theorem and its proof.

_N = Symbol("n", positive=True)
# As printed.
_HYPERGEOMETRIC = (Rational(1, 2), (3 - D) / 2, Rational(3, 2))


def _constant(dim: Any) -> Any:
    return gamma(dim / 2) / (gamma((dim - 1) / 2) * sqrt(pi))


def _judge_row(
    rows: Sequence[Formula], row: int, exact: Formula, before: Formula | None, variable: Symbol, ends: Sequence[Any]
) -> Outcome:
    """Judge a row of a chain for the density: d > 1 against the truth, d = 1 against what the row is said to equal."""
    printed = rows[row - 1]
    middle = (ends[0] + ends[1]) / 2

    def right(formula: Formula) -> bool:
        return same(formula(D), exact(D), variable, middle)

    proven = all({**volume_element(), **sine_integrals()}.values())
    evidence = {"printed": text(printed(D)), "exact": text(exact(D)), "exact density proven": proven}
    if not (right(printed) and proven):
        quotient = sympy.simplify((printed(sympy.Integer(5)) / exact(sympy.Integer(5))).subs(variable, middle))
        kind = Kind.WRONG_TERM if row < len(rows) and right(rows[-1]) else Kind.FALSE
        finding = (
            f"The density is {text(exact(D))}; for d = 5 in the middle, the printed one is {text(quotient)} times that."
        )
        return judged(kind, finding, evidence)
    earlier = rows[row - 2] if row > 1 else before
    if earlier is None:
        mass = sympy.integrate(printed(_UNIT), (variable, *ends))
        unbounded = "" if variable == THETA else " (at d = 2 the density is unbounded at ±1)"
        finding = (
            f"Exact for every d ≥ 2{unbounded}, which is to be assumed: at d = 1 the formula, with 1/Γ(0) = 0, has the "
            f"mass {text(mass)}, whereas the law has an atom of mass 1/2 at either end."
        )
        kind = Kind.EXACT if mass == 1 else Kind.HYPOTHESIS
        return judged(kind, finding, {**evidence, "mass at d = 1": text(mass)})
    at_one = same(printed(_UNIT), earlier(_UNIT), variable, middle)
    finding = (
        "Exact for every d ≥ 2 (the ends of the range, a null set, aside); at d = 1, where 1/Γ(0) = 0 and the law has "
        f"no density, both sides {'are equal too' if at_one else 'differ'}."
    )
    return judged(Kind.EXACT if at_one else Kind.HYPOTHESIS, finding, {**evidence, "equal at d = 1": at_one})


_ANGLE_ROWS: tuple[Formula, ...] = (
    lambda d: sympy.diff(sympy.Integral(boundary(d), (THETA, 0, THETA)), THETA) / area(d),
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


def _theorem(rows: Sequence[Formula] = _THEOREM) -> Outcome:
    return _judge_row(rows, 1, exact_density, None, TAU, (-_UNIT, _UNIT))


def _angle(row: int, rows: Sequence[Formula] = _ANGLE_ROWS) -> Outcome:
    return _judge_row(rows, row, exact_angle, None, THETA, (sympy.Integer(0), pi))


def _cosine(row: int, rows: Sequence[Formula] = _COSINE_ROWS) -> Outcome:
    return _judge_row(rows, row, exact_density, _from_angle, TAU, (-_UNIT, _UNIT))


def _judge_constant_vector() -> Outcome:
    # Reflection along w = v − e₁, in coordinates by e₁ and v: x ↦ x − 2w⟨w, x⟩/‖w‖², for a unit vector v ≠ e₁.
    first = Symbol("v1", real=True)
    gram = sympy.Matrix([[1, first], [first, 1]])
    w = sympy.Matrix([-1, 1])
    reflection = sympy.simplify(sympy.eye(2) - 2 * w * (w.T * gram) / (w.T * gram * w)[0])
    facts = {
        "a reflection maps v/‖v‖ to e₁": reflection * sympy.Matrix([0, 1]) == sympy.Matrix([1, 0]),
        "it keeps all inner products": sympy.simplify(reflection.T * gram * reflection - gram) == sympy.zeros(2),
    }
    finding = (
        "Exact: given v ≠ 0, a reflection maps v/‖v‖ to e₁ and keeps the uniform law, so that τ has one law for all v; "
        "with v = S instead of an independent v, τ would be 1."
    )
    return held(facts, finding)


def _judge_hypergeometric(parameters: tuple[Any, Any, Any] = _HYPERGEOMETRIC) -> Outcome:
    first, second, third = parameters
    # The integral of term n of the binomial series (1 − x²)^((d−3)/2) has the factor 1/(2n + 1).
    n = _N
    binomial = ((3 - D) / 2 + n) / (n + 1) * (2 * n + 1) / (2 * n + 3)
    series = (first + n) * (second + n) / ((third + n) * (n + 1))
    facts = {"ratios of successive coefficients agree": sympy.cancel(binomial - series) == 0}
    finding = "Exact: ∫₀ˣ f_d = f_d(0)·x·₂F₁(1/2, (3 − d)/2; 3/2; x²) for |x| < 1, as the series agree term by term."
    return held(facts, finding)


def _cancellation(x: Fraction, dim: int) -> float:
    """Sum of the sizes of the series' terms over the size of their sum, for the alternating series and odd d."""
    half = (dim - 3) // 2
    power, total, size = x, x, x
    for n in range(half):
        power *= -x * x * (half - n) / (n + 1)
        total += power / (2 * n + 3)
        size += abs(power) / (2 * n + 3)
    return float(size / total)


def _judge_instability() -> Outcome:
    # At d = 289, below what the text names, and above it.
    near, far = ({root**2: _cancellation(Fraction(t, root), root**2) for root in (17, 23, 31)} for t in (3, 10))
    lost = all(far[dim] > 2**53 for dim in (529, 961))
    stable = all(near[dim] < 2**10 for dim in (529, 961))
    # x(1 − x²)^((d−1)/2)·Σ cₙx²ⁿ has the derivative (1 − x²)^((d−3)/2) if c₀ = 1 and (2n + 3)cₙ₊₁ = (2n + d)cₙ.
    n = _N
    positive = sympy.cancel((2 * n + 3) * (D / 2 + n) / (Rational(3, 2) + n) - (2 * n + D)) == 0
    kind = (Kind.HYPOTHESIS if stable and positive else Kind.EXACT) if lost else Kind.FALSE
    finding = (
        "True only of the alternating series ₂F₁(1/2, (3 − d)/2; 3/2; τ²) far from 0: at d = 529 its terms add up to "
        f"{near[529]:.0f} times their sum at τ√d = 3 and to {far[529]:.0e} times at τ√d = 10. The same function has a "
        "series of positive terms, (1 − τ²)^((d−1)/2)·₂F₁(1, d/2; 3/2; τ²)."
    )
    evidence = {name: {str(d): f"{v:.3g}" for d, v in sizes.items()} for name, sizes in (("3", near), ("10", far))}
    return judged(kind, finding, {"cancellation at τ√d": evidence, "the other series is the same function": positive})


def _judge_proportional(printed: Any = (1 - TAU**2) ** ((D - 3) / 2)) -> Outcome:
    constant = 1 / sine_integral(D - 2)
    if not same(constant * printed, exact_density(D), TAU):
        return judged(Kind.FALSE, f"The density is proportional to {text(exact_density(D) / constant)}.", {})
    # ∫ (1 − τ²)^e dτ over (−1, 1) is finite for e > −1 only.
    exponent = -sympy.limit(TAU * sympy.diff(sympy.log(printed.subs({D: 1, TAU: 1 - TAU})), TAU), TAU, 0)
    finding = (
        "Exact for d ≥ 2, and the text is about high-dimensional models: at d = 1 alone, where the function grows as "
        f"(1 − |α|)^(−{text(exponent)}) at ±1, it is not."
    )
    return judged(Kind.EXACT, finding, {"normalising constant": text(constant), "exponent at d = 1": text(-exponent)})


LINES: tuple[Check, ...] = (
    _line(
        "final.density",
        "The cosine between a uniform direction in R^d and an independent v ≠ 0 has the density "
        "Γ(d/2)/(Γ((d − 1)/2)√π)·(1 − τ²)^((d−3)/2).",
        _theorem,
        "Theorem 3.1",
        1,
    ),
    _line("final.constant-vector", "The vector v may be taken as constant.", _judge_constant_vector),
    *(
        _line(f"final.angle-density.{n}", statement, partial(_angle, n), "angle density", n)
        for n, statement in enumerate(
            (
                "The angle's density is A_d′(θ)/S_d.",
                "A_d′(θ)/S_d equals (2π^(d/2)/Γ(d/2))⁻¹ (2π^((d−1)/2)/Γ((d − 1)/2)) sin^(d−2)θ.",
                "The density (2π^(d/2)/Γ(d/2))⁻¹ (2π^((d−1)/2)/Γ((d − 1)/2)) sin^(d−2)θ equals "
                "Γ(d/2)/(Γ((d − 1)/2)√π)·sin^(d−2)θ.",
            ),
            1,
        )
    ),
    *(
        _line(f"final.cosine-density.{n}", statement, partial(_cosine, n), "cosine density", n)
        for n, statement in enumerate(
            (
                "The cosine's density is φ_d(arccos τ)·|d arccos τ/dτ|, where φ_d is that of the angle.",
                "The density φ_d(arccos τ)·|d arccos τ/dτ| equals "
                "Γ(d/2)/(Γ((d − 1)/2)√π)·sin(arccos τ)^(d−2)·|−1/√(1 − τ²)|.",
                "The factor sin(arccos τ)^(d−2)·|−1/√(1 − τ²)| equals √(1 − τ²)^(d−2)/√(1 − τ²).",
                "The factor √(1 − τ²)^(d−2)/√(1 − τ²) equals (1 − τ²)^((d−3)/2).",
            ),
            1,
        )
    ),
    _line(
        "final.hypergeometric",
        "The density's indefinite integral can be expressed by the hypergeometric function.",
        _judge_hypergeometric,
    ),
    _line("v1.proportional", "The cosine's density is proportional to (1 − α²)^((d−3)/2).", _judge_proportional),
    _line(
        "v1.unstable",
        "The density's hypergeometric integral is numerically unstable for d above 500 or so.",
        _judge_instability,
    ),
    # Measures of the sphere and its caps.
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
    _line("review.cap-integral", "The cap's measure is the integral of M_d over the angle.", _judge_volume_element),
    _line(
        "review.volume-element",
        "The cap's volume element at angle θ and width dθ is M_d(θ) dθ.",
        _judge_volume_element,
    ),
    _line(
        "review.revolution",
        "For d = 3 the cap's measure follows as that of a surface of revolution.",
        _judge_revolution,
        source=_REVIEWER,
    ),
    _line(
        "ours.radius",
        "In terms of its boundary's radius, the cap's measure has the derivative M_d/cos θ (θ < π/2).",
        _judge_radius,
    ),
    _line("ours.cap-measure", "A_d(θ) = (S_d/2) I_{sin²θ}((d − 1)/2, 1/2) for θ ≤ π/2.", _judge_cap_measure),
    # The cosine's law.
    _line("ours.normalisation", "f_d has the integral 1.", _judge_normalisation),
    _line("ours.beta", "(1 + τ)/2 ~ Beta((d − 1)/2, (d − 1)/2).", _judge_beta),
    _line("ours.beta-of-square", "τ² ~ Beta(1/2, (d − 1)/2).", _judge_beta_square),
    _line("ours.even-moments", "E τ²ᵖ = 1·3⋯(2p − 1)/(d(d + 2)⋯(d + 2p − 2)).", judge_even_moments),
    _line("ours.odd-moments", "All odd moments of τ are 0.", judge_odd_moments),
    _line("ours.kernel-pdf", "Our certified density encloses f_d.", partial(_judge_kernel, 0, null_cosine.pdf)),
    _line(
        "ours.kernel-cdf", "Our certified cdf encloses the integral of f_d.", partial(_judge_kernel, 1, null_cosine.cdf)
    ),
)
