"""The privacy loss f = log(p₁/p₂) of two Gaussians, in symbols, and the reductions that lead to Section 3.2.

log p₁ − log(e^ε·p₂) = f − ε: p₁ − e^ε·p₂ is positive exactly on S = {f > ε}. So no event E has a larger
P₁(E) − e^ε·P₂(E) than S, and that of S is not negative.
"""

from functools import partial
from typing import Any, NamedTuple

import sympy
from sympy import Expr, Symbol, erfc, exp, log, pi, sqrt

from canaryproof.proofs_check.lines import Judgement, Line, held
from canaryproof.proofs_check.spelling import text

X, MU1, MU2, SHIFT = sympy.symbols("x mu_1 mu_2 t", real=True)
SIGMA, SIGMA1, SIGMA2, DIM, SCALE = sympy.symbols("sigma sigma_1 sigma_2 d s", positive=True)
EPSILON = Symbol("epsilon", nonnegative=True)


class Gaussian(NamedTuple):
    """Mean and standard deviation: expressions or fractions."""

    mean: Any
    deviation: Any


FIRST, SECOND = Gaussian(MU1, SIGMA1), Gaussian(MU2, SIGMA2)


def log_density(law: Gaussian, at: Expr = X) -> Expr:
    """Log density of a Gaussian."""
    density: Expr = -(((at - law.mean) / law.deviation) ** 2) / 2 - log(law.deviation) - log(2 * pi) / 2
    return density


def loss(first: Gaussian, second: Gaussian, at: Expr = X) -> Expr:
    """Privacy loss f = log(p₁/p₂) of a point."""
    return log_density(first, at) - log_density(second, at)


def upper(law: Gaussian, threshold: Expr) -> Expr:
    """Pr[X > threshold]."""
    tail: Expr = erfc((threshold - law.mean) / (law.deviation * sqrt(2))) / 2
    return tail


def vanishes(expression: Expr | int) -> bool:
    """Whether an expression is shown to be 0 identically."""
    return bool(sympy.simplify(sympy.expand(sympy.expand_log(sympy.sympify(expression)))) == 0)


def is_best_event(first: Gaussian, second: Gaussian, weight: Expr, z: Expr, minus_other: Expr) -> bool:
    """Whether z > ε and minus_other > ε are one event, on which exactly the first density exceeds weight·second."""
    excess = log_density(first) - log(weight) - log_density(second)
    return vanishes(z - minus_other) and vanishes(excess - (z - EPSILON))


def implication(first: Gaussian, second: Gaussian, weight: Expr) -> Judgement:
    """Judge Pr[Z > ε] − weight·Pr[−Z′ > ε] ≤ δ, Z the loss of the first law against the second, Z′ the other."""
    z, other = loss(first, second), loss(second, first)
    return held(
        is_best_event(first, second, weight, z, -other),
        "both probabilities are of one event S, the loss above ε (row 1: f > ε; row 2: −f > ε), so that it is the "
        "definition of (ε, δ)-DP at S; as "
        "log p − log(e^ε·p′) = f − ε, no other event asks for a larger δ",
        event=f"{text(z)} > ε",
        weight=text(weight),
    )


def reduction() -> Judgement:
    """Judge that N(x̄, σ²I) and N(x̄ + x, σ²I), ‖x‖ ≤ 1, come down to N(0, σ²) and N(1, σ²)."""
    length, projection = Symbol("r", positive=True), Symbol("y", real=True)
    point, centre, added = sympy.symbols("u xbar x_i", real=True)
    # A coordinate's share of f, which adds up to (⟨x, u − x̄⟩ − ‖x‖²/2)/σ² in every dimension.
    share = loss(Gaussian(centre + added, SIGMA), Gaussian(centre, SIGMA), point)
    pair = Gaussian(length, SIGMA), Gaussian(0, SIGMA)
    root = EPSILON * SIGMA**2 / length + length / 2
    curve = upper(pair[0], root) - exp(EPSILON) * upper(pair[1], root)
    slope = exp(log_density(pair[0], root))
    facts = {
        "coordinates": vanishes(share - (added * (point - centre) - added**2 / 2) / SIGMA**2),
        # With y = ⟨x, u − x̄⟩/‖x‖, which is N(0, σ²) or N(‖x‖, σ²).
        "projection": vanishes(loss(*pair, projection) - (length * projection - length**2 / 2) / SIGMA**2),
        "both_directions_equal": vanishes(loss(*pair[::-1], length - X) - loss(*pair, X)),
        "increasing": vanishes(loss(*pair, root) - EPSILON) and vanishes(sympy.diff(curve, length) - slope),
    }
    return held(
        facts,
        "f = (⟨x, u − x̄⟩ − ‖x‖²/2)/σ² depends on y = ⟨x, u − x̄⟩/‖x‖ alone, N(0, σ²) or N(‖x‖, σ²); ∂δ/∂‖x‖ is the "
        "second density at the root, positive, so that ‖x‖ = 1 is worst (symmetry alone does not say this); and both "
        "directions have one curve",
    )


def scaling(before: tuple[Gaussian, Gaussian], factor: Expr, after: tuple[Gaussian, Gaussian]) -> Judgement:
    """Judge that the second pair is the first one scaled, and that f and so ε stay the same."""
    images = [Gaussian(factor * law.mean, factor * law.deviation) for law in before]
    first, second = (Gaussian(SCALE * law.mean + SHIFT, SCALE * law.deviation) for law in (FIRST, SECOND))
    facts = {
        "images_equal": all(
            vanishes(a - b) for law, image in zip(after, images, strict=True) for a, b in zip(law, image, strict=True)
        ),
        "loss_invariant": vanishes(loss(first, second, SCALE * X + SHIFT) - loss(FIRST, SECOND)),
    }
    return held(
        facts,
        f"x ↦ x·{text(factor)} takes the one pair to the other, and f(s·x + t) of the images under x ↦ s·x + t is "
        "f(x): the losses have the same laws, in both directions",
    )


def derivative() -> Judgement:
    """Judge δ′(ε) = −e^ε·Pr[−Z₂ > ε]."""
    root, slope = sympy.Function("r")(EPSILON), Symbol("r_prime", real=True)
    # Every event is put together of tails that end at roots, where f = ε.
    tail = upper(FIRST, root) - exp(EPSILON) * upper(SECOND, root)
    rest = sympy.diff(tail, EPSILON) + exp(EPSILON) * upper(SECOND, root)
    rest = rest.subs(sympy.Derivative(root, EPSILON), slope).subs(root, X).subs(EPSILON, loss(FIRST, SECOND))
    return held(
        sympy.simplify(rest) == 0,
        "the roots' motion adds nothing, because p₁ = e^ε·p₂ there; so δ falls strictly where it is positive, and "
        "−1 ≤ −Pr[Z₁ > ε] ≤ δ′ ≤ 0",
    )


def converse() -> Judgement:
    """Judge that the two inequalities suffice for the pair to be (ε, δ)-DP."""
    pairs = (FIRST, SECOND), (SECOND, FIRST)
    return held(
        all(is_best_event(*pair, exp(EPSILON), loss(*pair), -loss(*pair[::-1])) for pair in pairs),
        "for every event E, P₁(E) − e^ε·P₂(E) ≤ P₁(S) − e^ε·P₂(S), because the integrand is positive on S and not "
        "outside; the same holds the other way: the least ε that meets both inequalities is optimal for the pair",
    )


_UNIT_PAIR = Gaussian(0, SIGMA), Gaussian(1, SIGMA)
_COSINES = Gaussian(0, 1 / sqrt(DIM)), Gaussian(1 / (SIGMA * sqrt(DIM)), 1 / sqrt(DIM))
_SCALED_FIT = Gaussian(0, 1), Gaussian(sqrt(DIM) * MU2, sqrt(DIM) * SIGMA2)

LINES: tuple[Line, ...] = (
    Line(
        "final.section-3.reduction",
        "final, Section 3, first paragraph",
        "The Gaussian vector sum with ‖x‖ ≤ 1 has the privacy of N(0, σ²) against N(1, σ²).",
        reduction,
    ),
    Line(
        "final.section-3.1.scaling",
        "final, Section 3.1, before Theorem 3.1",
        "N(0, 1/d) and N(1/(σ√d), 1/d) are N(0, σ²) and N(1, σ²) scaled by 1/(σ√d), and have the same ε.",
        partial(scaling, _UNIT_PAIR, 1 / (SIGMA * sqrt(DIM)), _COSINES),
    ),
    Line(
        "review.mann-wald.scaling",
        "review, the authors' answer on the Mann–Wald theorem (its symbols are lost in the text)",
        "ε(N(0, 1/d) || N(μ̂, σ̂²); δ) = ε(N(0, 1) || N(√d·μ̂, d·σ̂²); δ).",
        partial(scaling, (_COSINES[0], SECOND), sqrt(DIM), _SCALED_FIT),
    ),
    Line(
        "ours.section-3.2.converse",
        "final, Section 3.2",
        "The two inequalities suffice: the pair is (ε, δ)-DP if and only if both hold.",
        converse,
        ours=True,
    ),
    Line(
        "ours.section-3.2.derivative",
        "final, Section 3.2",
        "δ′(ε) = −e^ε·Pr[−Z₂ > ε] where δ is positive.",
        derivative,
        ours=True,
    ),
)
