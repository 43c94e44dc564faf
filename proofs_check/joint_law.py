"""The joint law of the cosines, which the reviews leave open.

With xᵢ = ⟨cᵢ, ρ⟩ and zᵢ = ⟨cᵢ, Z⟩, √d·gᵢ = xᵢ/√A. The theorems proven here and in ``corrected_proof.md`` (7, 8):

* any fixed number of the √d·gᵢ tends to independent N(1/σ, 1) if k = o(d);
* all k of them together are close, in total variation, to k independent N(1/σ, 1) if and only if k³ = o(d²).

The exact pieces that the two proofs rest on are lines here.
"""

from collections.abc import Callable

import sympy
from sympy import Expr, Rational, Symbol, sqrt

from canaryproof.proofs_check.lines import Judgement, Kind, Line, held
from canaryproof.proofs_check.regime import limit, text, vanishes
from canaryproof.proofs_check.release_moments import moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, S, Z, dot, expectation, mean, release, times, vector

_REVIEW = "Reviews of Andrew et al., discussion of Theorem 3.3"

DISPLAYS: dict[str, int] = {}


def remainder() -> Expr:
    """Mean square of xᵢ − 1 − σzᵢ, what an inner product has beside its own canary and its noise.

    Returns
    -------
    Rational function of d and k.
    """
    one = vector("h")
    # Σᵢ E xᵢ²/k, with E[xᵢ·1] = 1 and E[xᵢσzᵢ] = σ².
    square = mean(times(dot(vector("i"), release("j")), dot(vector("i"), release("l")))).subs(S, 0) / K
    cross = mean(times(dot(vector("i"), release("j")), dot(vector("i"), vector(Z)))).subs(S, 0) / K
    first = mean(dot(one, release("j"))).subs(S, 0) / K
    return sympy.cancel(square - 2 * first - 2 * SIGMA * cross + 1 + SIGMA**2)


def fixed_number() -> tuple[bool, str]:
    """Whether the exact pieces of the law of a fixed number of cosines hold, and what they are."""
    rest, gram = remainder(), expectation(("i", "j"), ("i", "j"))
    gaussian = [expectation(*([("i", Z)] * (2 * p))) for p in range(1, 4)] == [1, 3, 15]
    square, spread = moments("A")
    holds = vanishes(rest) and sympy.limit(gram, D, sympy.oo) == 0 and gaussian
    holds = holds and limit(square) == SIGMA**2 and vanishes(spread)
    return holds, (
        f"E(⟨cᵢ, ρ⟩ − 1 − σ⟨cᵢ, Z⟩)² = {text(rest)} → 0; given the canaries the ⟨cᵢ, Z⟩ are normal with covariances "
        f"⟨cᵢ, cⱼ⟩, of mean square {text(gram)} → 0; ‖ρ‖²/d → σ²"
    )


def _shift_of_mean(power: Rational) -> Expr:
    """Limit of √k(1/√(σ² + k/d) − 1/σ) for k = d^power."""
    w = Symbol("w", positive=True)
    count = w ** (60 * power)
    return sympy.limit(sqrt(count) * (1 / sqrt(SIGMA**2 + count / w**60) - 1 / SIGMA), w, sympy.oo)


def _all_together() -> tuple[bool, dict[str, str]]:
    shifts = {str(power): _shift_of_mean(power) for power in (Rational(1, 2), Rational(2, 3), Rational(4, 5))}
    half, third, fifth = shifts.values()
    holds = half == 0 and sympy.cancel(third + 1 / (2 * SIGMA**3)) == 0 and fifth == -sympy.oo
    return holds, {f"k = d^{power}": text(shift) for power, shift in shifts.items()}


def _joint_law() -> Judgement:
    fixed, pieces = fixed_number()
    boundary, shifts = _all_together()
    if not (fixed and boundary):
        return Judgement(Kind.FALSE, f"a piece fails: {pieces}", shifts)
    shown = ", ".join(f"{shift} for {count}" for count, shift in shifts.items())
    return Judgement(
        Kind.HYPOTHESIS,
        f"proven for any fixed number of cosines ({pieces}), so that the sentence that the authors take back in the "
        f"reviews is right; for all k together it holds if and only if k³ = o(d²) (by hand: corrected_proof.md, 8): "
        f"the standard deviations by which their mean is off 1/σ tend to {shown}",
        {"shift_of_mean": shifts},
    )


def _limit_law() -> Judgement:
    holds, pieces = fixed_number()
    return held(holds, f"for each cosine, after scaling by √d: {pieces}")


def _not_sufficient() -> Judgement:
    """Cosines that are all equal to one normal variable have normal margins and sample variance 0."""
    g = Symbol("g", real=True)
    spread = sympy.expand(sum(x**2 for x in (g, g, g)) / 3 - (sum((g, g, g)) / 3) ** 2)
    return held(spread == 0, f"equal cosines have sample variance {spread} whatever their margin")


def _inference() -> Judgement:
    """Mean and variance that converge leave the law open: values ±1 have both as N(0, 1) has them."""
    two_values = [(-1) ** power / sympy.Integer(2) + sympy.Rational(1, 2) for power in range(5)]
    normal = [1, 0, 1, 0, 3]
    same = two_values[:3] == normal[:3]
    follows = two_values == normal
    law = _limit_law()
    finding = (
        f"does not follow: equal chances of ±1 have mean 0 and variance 1 too, and fourth moment {two_values[4]}, not "
        f"{normal[4]}; the conclusion holds for every fixed number of cosines by another argument: {law.finding}"
    )
    stands = law.kind is Kind.EXACT
    if same and not follows:
        return Judgement(Kind.WRONG_TERM if stands else Kind.FALSE, finding, {"conclusion_survives": stands})
    return held(follows, finding)


def _split() -> Judgement:
    """‖re − Σcᵢ‖² with cᵢ = gᵢe + √(1 − gᵢ²)uᵢ, uᵢ ⟂ e, for two canaries in the plane of u₁, u₂."""
    r, g1, g2, c = sympy.symbols("r g1 g2 c", real=True)
    y1, y2 = sqrt(1 - g1**2), sqrt(1 - g2**2)
    # u₁ = (1, 0), u₂ = (c, √(1 − c²)) in coordinates orthogonal to e.
    point = (r - g1 - g2, -y1 - c * y2, -sqrt(1 - c**2) * y2)
    left = sympy.expand(sum(x**2 for x in point))
    right = sympy.expand((r - (g1 + g2)) ** 2 + (1 - g1**2) + (1 - g2**2) + 2 * y1 * y2 * c)
    return held(sympy.simplify(left - right) == 0, "(r − Σgᵢ)² and the squared length orthogonal to ρ")


def _log_concave() -> Judgement:
    """−(log f_d)″ ≥ d − 3 on (−1, 1), hence Var ≤ 1/(d − 3) under every exponential tilt (Brascamp–Lieb)."""
    x = Symbol("x", real=True)
    curvature = sympy.factor(-sympy.diff((D - 3) / 2 * sympy.log(1 - x**2), x, 2))
    excess = sympy.factor(curvature - (D - 3))
    numerator, denominator = sympy.fraction(excess)
    y = Symbol("y", nonnegative=True)
    # x²(3 − x²) over (1 − x²)², times d − 3.
    shape = sympy.cancel(numerator / denominator / (D - 3)).subs(x, sqrt(y))
    holds = sympy.cancel(shape - y * (3 - y) / (1 - y) ** 2) == 0
    return held(holds, "the excess over d − 3 is (d − 3)x²(3 − x²)/(1 − x²)² ≥ 0")


def _fourth_moment() -> Judgement:
    """E⟨cᵢ, ρ⟩⁴ is bounded: the largest cosine and the sum of fourth powers are under control."""
    factors = [dot(vector("i"), release(name)) for name in ("a", "b", "c", "e")]
    fourth = sympy.factor(mean(times(*factors)).subs(S, 0) / K)
    normal = sympy.expand(1 + 6 * SIGMA**2 + 3 * SIGMA**4)
    holds = limit(fourth) is not None and sympy.expand(limit(fourth) - normal) == 0
    return held(holds, f"E⟨cᵢ, ρ⟩⁴ → {text(limit(fourth))}, as for N(1, σ²)", exact=text(fourth))


def _gaussian_canaries() -> Judgement:
    """Canaries N(0, I/d) in place of unit vectors: the joint law given ‖ρ‖ is exactly normal."""
    # Coordinate by coordinate (n₁, …, n_k, ρ) is normal: Cov(nᵢ, ρ) = 1/d, Var ρ = σ² + k/d.
    spread = SIGMA**2 + K / D
    slope = sympy.cancel(1 / D / spread)
    common = sympy.cancel(1 / D * 1 / D / spread)
    ratio = sympy.cancel(K * common * D)
    holds = sympy.cancel(slope - 1 / (D * SIGMA**2 + K)) == 0 and sympy.cancel(ratio - K / (D * SIGMA**2 + K)) == 0
    x = Symbol("x", positive=True)
    divergence = sympy.series((-sympy.log(1 - x) - x) / 2, x, 0, 3).removeO()
    holds = holds and sympy.expand(divergence - x**2 / 4) == 0 and vanishes(ratio)
    return held(
        holds,
        f"given ‖ρ‖, √d·g ~ N(√d‖ρ‖/(dσ² + k)·1, I − 11ᵀ/(dσ² + k)), whose divergence from independence is "
        f"(−log(1 − x) − x)/2 with x = {text(ratio)}, that is x²/4 to leading order: it vanishes for all k = o(d)",
    )


def _ours(topic: str, statement: str, judge: Callable[[], Judgement]) -> Line:
    return Line(f"ours.joint-law.{topic}", "proofs_check.joint_law", statement, judge, ours=True)


def _necessity() -> Judgement:
    holds, shifts = _all_together()
    return held(holds, f"limits of √k(1/√(σ² + k/d) − 1/σ): {', '.join(f'{s} for {c}' for c, s in shifts.items())}")


LINES = (
    Line(
        "final.section-3.1.limit-law",
        "Andrew et al., arXiv 2302.03098, Section 3.1, first paragraph",
        "the test statistic on D is N(1/(σ√d), 1/d) asymptotically",
        _limit_law,
    ),
    Line(
        "final.section-3.1.inference",
        "Andrew et al., arXiv 2302.03098, Section 3.1, first paragraph",
        "that law follows from √d·μ̂ → 1/σ and d·σ̂² → 1",
        _inference,
    ),
    Line(
        "review.joint-law",
        _REVIEW,
        "the joint law of the cosines tends to that of independent Gaussians (surmised, not proven)",
        _joint_law,
    ),
    Line("review.marginal-law", _REVIEW, "each cosine is asymptotically Gaussian", _limit_law),
    Line(
        "review.marginals-insufficient",
        _REVIEW,
        "Gaussian margins alone would not make the method right: the cosines of a run could all be equal",
        _not_sufficient,
    ),
    _ours(
        "fixed-number",
        "any fixed number of √d·gᵢ tends to independent N(1/σ, 1) if k = o(d)",
        lambda: held(*fixed_number()),
    ),
    _ours("necessary", "all k cosines are close to independent N(1/σ, 1) only if k³ = o(d²)", _necessity),
    _ours("split", "‖ρ − Σcᵢ‖² = (‖ρ‖ − Σgᵢ)² + ‖Σ√(1 − gᵢ²)uᵢ‖²", _split),
    _ours("log-concave", "−(log f_d)″ ≥ d − 3 for d > 3", _log_concave),
    _ours("fourth-moment", "E⟨cᵢ, ρ⟩⁴ is bounded where k = o(d)", _fourth_moment),
    _ours(
        "gaussian-canaries",
        "for canaries N(0, I/d) the cosines are independent in the limit, about 1/√(σ² + k/d), for all k = o(d)",
        _gaussian_canaries,
    ),
)
