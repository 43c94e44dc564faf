"""The laws of CANIFE's score with DP noise (its Section 3.2), with and without the canary: every line judged.

Three dimensions stand for all, as only the span of the canary and the updates' sum counts.
"""

from collections.abc import Callable
from typing import Any

import sympy
from sympy import Expr, Matrix, Rational, Symbol

from canaryproof.proofs_check.canife_setting import NOISE, K, vanishes, vector
from canaryproof.proofs_check.lines import Judgement, Kind, Line, held
from canaryproof.proofs_check.spelling import text

DISPLAYS: dict[str, int] = {"score without the canary": 1}


def _score(canary: Any, sum_of_others: Any, noise: Expr, taking_part: Expr | int) -> tuple[Expr, Expr]:
    """Mean and variance of ⟨Σuᵢ + taking_part·u_c + N(0, noise²·I), u_c⟩, a Gaussian as it is linear in one."""
    z = vector("z", canary.rows)
    linear = sympy.Poly(sympy.expand((sum_of_others + taking_part * canary + noise * z).dot(canary)), *z)
    coefficients = [linear.coeff_monomial(variable) for variable in z]
    return linear.coeff_monomial(1), sum((c**2 for c in coefficients), sympy.S.Zero)


def _orthogonal_to(g: Any) -> Any:
    """Any vector of three dimensions that is orthogonal to g."""
    return g.cross(vector("a", 3))


def score_without(variance: Expr = NOISE**2) -> Judgement:
    """Judge ⟨ũ, g⟩ = N(0, variance·‖g‖²) without the canary, all updates being orthogonal to g."""
    g = vector("g", 3)
    mean, exact = _score(g, _orthogonal_to(g), NOISE, 0)
    holds = mean == 0 and vanishes(exact - variance * g.dot(g))
    return held(
        holds,
        "with ⟨uᵢ, g⟩ = 0 for the round's updates, as the text requires, the score's mean is 0 and its variance σ²‖g‖²",
    )


def score_with(factor: Expr = sympy.S.One) -> Judgement:
    """Judge N(factor·‖u_c‖², σ_c²) with the canary, σ_c² being the variance without it; printed is factor 1."""
    g = vector("g", 3)
    canary = Symbol("alpha", positive=True) * g
    means, variances = zip(*(_score(canary, _orthogonal_to(g), NOISE, part) for part in (0, 1)), strict=True)
    holds = means[0] == 0 and vanishes(means[1] - factor * canary.dot(canary)) and vanishes(variances[0] - variances[1])
    return held(
        holds,
        "for u_c = αg the centres are 0 and ‖u_c‖² and both variances σ_c² = α²σ²‖g‖² = σ²‖u_c‖²: N(0, 1) and "
        "N(‖u_c‖/σ, 1) up to scale",
    )


def by_design() -> Judgement:
    """Judge that a canary of loss 0 is orthogonal to the round's updates."""
    g, bound = Matrix([0, 1, 0]), 1
    held_out, of_the_round = Matrix([1, 0, 0]), Matrix([0, Rational(1, 2), Rational(1, 2)])
    shortfall = sympy.Max(bound - g.norm(), 0)
    loss = held_out.dot(g) ** 2 + shortfall**2
    mean, _ = _score(g, of_the_round, NOISE, 0)
    mean_in_span, _ = _score(g, Symbol("t", real=True) * held_out, NOISE, 0)
    kind = (Kind.HYPOTHESIS if mean != 0 else Kind.EXACT) if loss == 0 and mean_in_span == 0 else Kind.FALSE
    return Judgement(
        kind,
        "holds if the round's updates lie in the span of those held out, and the loss is 0; the loss knows only these: "
        f"with u = (1, 0, 0) held out, g = (0, 1, 0) has loss {text(loss)}, and the round's update (0, 1/2, 1/2) gives "
        f"the score the mean {text(mean)}. Σ⟨uᵢ, u_c⟩ moves both centres alike, but the attacker does not know it",
        {"loss": text(loss), "mean": text(mean)},
    )


def weighted(noise_scales: bool = False) -> Judgement:
    """Judge that weighting the updates only scales the score, the noise being scaled with them or not."""
    weight, g = Symbol("w", positive=True), vector("g", 3)
    plain = _score(g, _orthogonal_to(g), NOISE, 1)

    def scales(noise: Expr) -> bool:
        mean, variance = _score(g, weight * _orthogonal_to(g), noise, weight)
        return vanishes(mean - weight * plain[0]) and vanishes(variance - weight**2 * plain[1])

    as_printed, with_hypothesis = scales(weight * NOISE if noise_scales else NOISE), scales(weight * NOISE)
    kind = Kind.EXACT if as_printed else Kind.HYPOTHESIS if with_hypothesis else Kind.FALSE
    return Judgement(
        kind,
        "holds if the noise is multiplied by the canary's weight w too; with the same noise only the centre moves to "
        "w‖u_c‖², the variance stays, and the separation is w‖u_c‖/σ instead of ‖u_c‖/σ",
        {"same_noise": as_printed, "noise_scaled": with_hypothesis},
    )


def noisy() -> Judgement:
    """Judge, along an eigenvector of Σ of eigenvalue λ, what DP noise does to gᵀQg."""
    variance = Symbol("lambda", positive=True)
    noise = NOISE**2
    inverse = 1 / (K * variance + noise)
    facts = {
        "same_form": sympy.simplify(1 / (K * (variance + noise / K)) - inverse) == 0,
        "smaller": sympy.factor(1 / (K * variance) - inverse).is_positive,
        "bounded": sympy.factor(1 / noise - inverse).is_positive,
    }
    return held(
        facts,
        "kΣ + σ²I = k(Σ + (σ²/k)I): the appendix stands with Σ + (σ²/k)I for Σ; the separation is smaller than without "
        "noise, at most ‖g‖²/σ², and finite for a singular Σ",
    )


def _line(topic: str, statement: str, judge: Callable[[], Judgement], display: str = "", row: int = 0) -> Line:
    return Line(f"canife.section-3.2.{topic}", "canife, Section 3.2", statement, judge, display, row)


LINES: tuple[Line, ...] = (
    _line(
        "score-without.1",
        "Without the canary ⟨ũ, u_c⟩ ∝ Σ⟨uᵢ, g⟩ + ⟨N(0, σ²I), g⟩ = N(0, σ²‖g‖²).",
        score_without,
        "score without the canary",
        1,
    ),
    _line("by-design", "⟨uᵢ, g⟩ = 0 for the round's updates by design.", by_design),
    _line("score-with", "With the canary the score is N(‖u_c‖², σ_c²), σ_c² being that without.", score_with),
    _line("weighted", "Weights on the updates change the result by a fixed scaling factor only.", weighted),
    Line(
        "ours.canife.noise",
        "canife, Appendix A",
        "With DP noise the covariance is kΣ + σ²I, and the separation is smaller and bounded.",
        noisy,
        ours=True,
    ),
)
