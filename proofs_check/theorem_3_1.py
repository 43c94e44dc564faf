"""Theorem 3.1: density of the cosine between a uniform direction in R^d and any fixed one, line by line.

The truth to compare with is derived in ``sphere_measure`` and ``cosine_law``, whose lines are the statement's too.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import sympy
from sympy import Rational, Symbol, acos, gamma, pi, sin, sqrt

from canaryproof.proofs_check import cosine_law, sphere_measure
from canaryproof.proofs_check.cosine_law import TAU, exact_density
from canaryproof.proofs_check.lines import Kind, held, judged
from canaryproof.proofs_check.spelling import text
from canaryproof.proofs_check.sphere_measure import (
    THETA,
    Formula,
    _line,
    area,
    boundary,
    exact_angle,
    same,
    sine_integral,
    sine_integrals,
    volume_element,
)
from canaryproof.proofs_check.sphere_moments import D
from canaryproof.verify.check.results import Check, Outcome

_N = Symbol("n", positive=True)
_ONE = sympy.Integer(1)
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
        mass = sympy.integrate(printed(_ONE), (variable, *ends))
        unbounded = "" if variable == THETA else " (at d = 2 the density is unbounded at ±1)"
        finding = (
            f"Exact for every d ≥ 2{unbounded}, which is to be assumed: at d = 1 the formula, with 1/Γ(0) = 0, has the "
            f"mass {text(mass)}, whereas the law has half an atom at either end."
        )
        kind = Kind.EXACT if mass == 1 else Kind.HYPOTHESIS
        return judged(kind, finding, {**evidence, "mass at d = 1": text(mass)})
    at_one = same(printed(_ONE), earlier(_ONE), variable, middle)
    finding = (
        "Equal to the exact density for symbolic d (the ends of the range, a null set, aside), and at d = 1, where "
    )
    finding += "1/Γ(0) = 0, to what stands before it."
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
    return _judge_row(rows, 1, exact_density, None, TAU, (-_ONE, _ONE))


def _angle(row: int, rows: Sequence[Formula] = _ANGLE_ROWS) -> Outcome:
    return _judge_row(rows, row, exact_angle, None, THETA, (sympy.Integer(0), pi))


def _cosine(row: int, rows: Sequence[Formula] = _COSINE_ROWS) -> Outcome:
    return _judge_row(rows, row, exact_density, _from_angle, TAU, (-_ONE, _ONE))


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
    kept = all(near[dim] < 2**10 for dim in (529, 961))
    # x(1 − x²)^((d−1)/2)·Σ cₙx²ⁿ has the derivative (1 − x²)^((d−3)/2) if c₀ = 1 and (2n + 3)cₙ₊₁ = (2n + d)cₙ.
    n = _N
    positive = sympy.cancel((2 * n + 3) * (D / 2 + n) / (Rational(3, 2) + n) - (2 * n + D)) == 0
    kind = (Kind.HYPOTHESIS if kept and positive else Kind.EXACT) if lost else Kind.FALSE
    finding = (
        "True of the alternating series ₂F₁(1/2, (3 − d)/2; 3/2; τ²) far from 0 only: its terms add up to "
        f"{near[529]:.0f} times their sum at τ√d = 3 and {far[529]:.0e} times at τ√d = 10, d = 529, and much the same "
        f"at d = 289 ({near[289]:.0f}, {far[289]:.0e}); the terms of (1 − τ²)^((d−1)/2)·₂F₁(1, d/2; 3/2; τ²), the same "
        "function, are all positive, so that nothing cancels at any d."
    )
    evidence = {name: {str(d): f"{v:.3g}" for d, v in sizes.items()} for name, sizes in (("3", near), ("10", far))}
    return judged(kind, finding, {"cancellation at τ√d": evidence, "the other series is the same function": positive})


def _judge_proportional(printed: Any = (1 - TAU**2) ** ((D - 3) / 2)) -> Outcome:
    constant = 1 / sine_integral(D - 2)
    if not same(constant * printed, exact_density(D), TAU):
        return judged(Kind.FALSE, f"The density is proportional to {text(exact_density(D) / constant)}.", {})
    # ∫ (1 − τ²)^e dτ over (−1, 1) is finite for e > −1 only.
    exponent = -sympy.limit(TAU * sympy.diff(sympy.log(printed.subs({D: 1, TAU: 1 - TAU})), TAU), TAU, 0)
    kind = Kind.HYPOTHESIS if exponent >= 1 else Kind.EXACT
    finding = (
        f"Exact for d ≥ 2, which is to be assumed: at d = 1 the function grows as (1 − |α|)^(−{text(exponent)}) at ±1."
    )
    return judged(kind, finding, {"normalising constant": text(constant), "exponent at d = 1": text(-exponent)})


LINES: tuple[Check, ...] = (
    _line(
        "final.density",
        "The cosine between a uniform direction in R^d and an independent v ≠ 0 has the density "
        "Γ(d/2)/(Γ((d − 1)/2)√π)·(1 − τ²)^((d−3)/2).",
        _theorem,
        "Theorem 3.1",
        1,
    ),
    _line("final.constant-vector", "v may be taken as constant.", _judge_constant_vector),
    *(
        _line(f"final.angle-density.{n}", f"The angle's density is {printed}.", partial(_angle, n), "angle density", n)
        for n, printed in enumerate(
            (
                "A_d′(θ)/S_d",
                "(2π^(d/2)/Γ(d/2))⁻¹ (2π^((d−1)/2)/Γ((d − 1)/2)) sin^(d−2)θ",
                "Γ(d/2)/(Γ((d − 1)/2)√π)·sin^(d−2)θ",
            ),
            1,
        )
    ),
    *(
        _line(
            f"final.cosine-density.{n}", f"The cosine's density is {printed}.", partial(_cosine, n), "cosine density", n
        )
        for n, printed in enumerate(
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
    *sphere_measure.LINES,
    *cosine_law.LINES,
)
