"""Theorem 3.3: the mean of the cosines, line by line; ``theorem_3_3_square`` has the rest of the proof.

In the notation of ``release_moments``: √d·μ̂ = B/√A. The proof shows A → σ² and B → 1 in probability by means and
variances. Its variances add up inner products over ordered pairs (i, j) and (j, i) as if these were uncorrelated, so
that every term between two canaries, or between a canary and the noise, comes out at half its size. What is concluded
from the lines stands.
"""

from collections.abc import Callable
from functools import partial

import sympy
from sympy import Expr, Symbol, sqrt

from canaryproof.proofs_check.cosine_law import even_moment
from canaryproof.proofs_check.lines import Judgement, Kind, Line, held
from canaryproof.proofs_check.regime import bounded, equation, limit, settled, shortened, text, vanishes
from canaryproof.proofs_check.release_moments import moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, Edge, K, Z, expectation, mean, scaled, sum_of_variances

_PROOF = "Andrew et al., arXiv 2302.03098, Appendix A, proof of Theorem 3.3"
_ID = "final.theorem-3.3"

DISPLAYS = {
    "mean of the cosines": 2,
    "mean of ‖ρ‖²/d": 4,
    "variance of ‖ρ‖²/d": 3,
    "mean of (1/k)Σ⟨cᵢ, ρ⟩": 1,
    "variance of (1/k)Σ⟨cᵢ, ρ⟩": 3,
}


def line(topic: str, statement: str, judge: Callable[[], Judgement], display: str = "", row: int = 0) -> Line:
    """Return a line of the final version's proof of Theorem 3.3."""
    return Line(f"{_ID}.{topic}", _PROOF, statement, judge, display, row)


def chain(topic: str, display: str, *rows: tuple[str, Callable[[], Judgement]]) -> tuple[Line, ...]:
    """Return the lines of a displayed formula of several rows, each a statement and its judge."""
    return tuple(line(f"{topic}.{row}", *both, display, row) for row, both in enumerate(rows, 1))


def order(expression: Expr, printed: str, holds: bool) -> Judgement:
    """Judge a printed order of magnitude of an expression whose exact form is known."""
    return held(holds, f"{printed} holds for {shortened(expression)}", exact=text(expression), printed=printed)


def variance(*edges: Edge) -> Expr:
    """Variance of a product of inner products of fixed, different vectors."""
    return sympy.cancel(expectation(*edges, *edges) - expectation(*edges) ** 2)


def _rewriting() -> Judgement:
    """√d·(1/k)Σ⟨cᵢ, ρ⟩/‖ρ‖ = (‖ρ‖/√d)⁻¹·(1/k)Σ⟨cᵢ, ρ⟩, with the sum as a symbol."""
    total, norm = Symbol("total", real=True), Symbol("norm", positive=True)
    difference = sqrt(D) * (total / norm) / K - (norm / sqrt(D)) ** -1 * (total / K)
    return held(sympy.simplify(difference) == 0, "an identity")


def _definition() -> Judgement:
    """μ̂ is the mean of gᵢ = ⟨cᵢ, ρ⟩/‖ρ‖: the display's first row writes it out."""
    inner, norm = sympy.symbols("x1:4", real=True), Symbol("norm", positive=True)
    written = sqrt(D) * sum(x / norm for x in inner) / 3
    return held(sympy.simplify(written - sqrt(D) * sum(inner) / (3 * norm)) == 0, "by definition of μ̂")


def _missing_expectation() -> Judgement:
    """The first row equates the mean of ‖ρ‖²/d with ‖ρ‖²/d itself."""
    exact, spread = moments("A")
    evidence = {"exact": text(exact), "variance_of_right_side": text(spread)}
    if spread == 0:
        return Judgement(Kind.EXACT, "both sides are one number", evidence)
    return Judgement(
        Kind.WRONG_TERM,
        f"the right side lacks its expectation: it is random, with variance {text(spread)}; with it the row is exact",
        evidence,
    )


def _chi_squared() -> Judgement:
    """Raw moments of the chi-squared law: d(d + 2) ⋯ (d + 2p − 2)."""
    found = [expectation(*([(Z, Z)] * p)) for p in range(1, 5)]
    same = all(sympy.expand(m - 2**p * sympy.rf(D / 2, p).expand(func=True)) == 0 for p, m in enumerate(found, 1))
    holds = same and found[0] == D and variance((Z, Z)) == 2 * D
    return held(holds, f"the first four moments agree; mean {text(found[0])}, variance {text(variance((Z, Z)))}")


def _inner_product() -> Judgement:
    """Given cᵢ, ⟨cᵢ, cⱼ⟩ is the cosine of Theorem 3.1: its even moments, and odd ones that vanish."""
    pair = ("i", "j")
    even = [expectation(*([pair] * (2 * p))) for p in range(1, 5)]
    same = all(sympy.cancel(m - even_moment(p)) == 0 for p, m in enumerate(even, 1))
    holds = same and expectation(pair) == 0 and variance(pair) == 1 / D
    return held(
        holds, f"the first eight moments agree; mean {text(expectation(pair))}, variance {text(variance(pair))}"
    )


def _norm_mean_terms() -> Expr:
    pairs = mean(_term("i", "j"))
    cross = mean(_term(Z, "i"))
    return (pairs + 2 * SIGMA * cross + SIGMA**2 * expectation((Z, Z))) / D


def _term(a: str, b: str) -> tuple[tuple[object, tuple[Edge, ...]], ...]:
    return scaled(1, ((1, ((a, b),)),))


def _norm_variance_printed() -> Expr:
    between = sum_of_variances(("i", "j"))
    noise = sum_of_variances((Z, "i"))
    return sympy.cancel((between + 2 * SIGMA**2 * noise + SIGMA**4 * variance((Z, Z))) / D**2)


def _uncorrelated() -> Judgement:
    """Covariances of all pairs of different inner products among Z and four canaries."""
    names = (Z, "a", "b", "c", "d")
    products = [(u, v) for place, u in enumerate(names) for v in names[place:] if u != v or u == Z]
    correlated = [
        f"{p} and {q}"
        for place, p in enumerate(products)
        for q in products[place + 1 :]
        if sympy.cancel(expectation(p, q) - expectation(p) * expectation(q)) != 0
    ]
    same = sympy.cancel(expectation(("a", "b"), ("b", "a")))
    evidence = {"unordered_pairs_that_correlate": correlated, "covariance_of_ij_with_ji": text(same)}
    if correlated:
        return Judgement(Kind.FALSE, f"correlated: {correlated[0]}", evidence)
    if same == 0:
        return Judgement(Kind.EXACT, "all covariances are 0", evidence)
    return Judgement(
        Kind.HYPOTHESIS,
        f"holds for unordered pairs; the text says all i, j, and the covariance of ⟨cᵢ, cⱼ⟩ with ⟨cⱼ, cᵢ⟩ is "
        f"{text(same)}: the sums over ordered pairs that follow count each variance twice instead of four times",
        evidence,
    )


def converges(name: str, printed: Expr) -> Judgement:
    """Judge convergence in probability of A, B, T or W to a constant, by Chebyshev from the exact moments."""
    centre, spread = moments(name)
    holds = limit(centre) == printed and vanishes(spread)
    return held(holds, f"mean {text(centre)} → {text(limit(centre))}; variance → {text(limit(spread))}")


def _norm_converges() -> Judgement:
    square = converges("A", SIGMA**2)
    return Judgement(square.kind, f"‖ρ‖²/d: {square.finding}; the root is continuous at σ² > 0", square.evidence)


def _theorem() -> Judgement:
    """The theorem itself, from the exact limits of A, B and W alone."""
    square, product, spread = (moments(name) for name in "ABW")
    limits = [settled(part) for part in (square[0], product[0], spread[0])]
    holds = all(vanishes(part[1]) for part in (square, product, spread))
    holds = holds and limits[1] / sqrt(limits[0]) == 1 / SIGMA and sympy.cancel(limits[2] / limits[0]) == 1
    return held(holds, "the variances of A, B and W vanish; B/√A → 1/σ and W/A → 1 (corrected_proof.md, 5)")


def _mean_products_printed() -> Expr:
    return sympy.cancel((K + _off_diagonal_mean() + SIGMA * mean(_term(Z, "i"))) / K)


def _off_diagonal_mean() -> Expr:
    """Σ over i ≠ j of E⟨cᵢ, cⱼ⟩: all pairs but the k with i = j."""
    return sympy.cancel(mean(_term("i", "j")) - K)


def _product_variance_printed() -> Expr:
    return sympy.cancel((sum_of_variances(("i", "j")) + SIGMA**2 * sum_of_variances((Z, "i"))) / K**2)


def _exact_of(
    name: str, place: int, printed: Callable[[], Expr] | Expr, concludes: Callable[[Expr], bool]
) -> Judgement:
    return equation(printed() if callable(printed) else printed, moments(name)[place], concludes)


def _first_order(expression: Expr) -> bool:
    return bounded(D * expression)


def _both_equalities() -> Judgement:
    exact = moments("B")[0]
    written = _mean_products_printed()
    return held(written == exact == 1, f"the sum is {text(written)}, the mean {text(exact)}")


LINES = (
    Line(
        _ID,
        "Andrew et al., arXiv 2302.03098, Theorem 3.3",
        "√d·μ̂ → 1/σ and d·σ̂² → 1 in probability for k → ∞, k = o(d), n = 0",
        _theorem,
    ),
    *chain(
        "mean-cosine",
        "mean of the cosines",
        ("√d·μ̂ = √d·(1/k)Σ⟨cᵢ, ρ⟩/‖ρ‖", _definition),
        ("= (‖ρ‖/√d)⁻¹·(1/k)Σ⟨cᵢ, ρ⟩", _rewriting),
    ),
    line("target-norm", "‖ρ‖²/d → σ² in probability", partial(converges, "A", SIGMA**2)),
    line("target-product", "(1/k)Σ⟨cᵢ, ρ⟩ → 1 in probability", partial(converges, "B", sympy.Integer(1))),
    line("chi-squared", "‖Z‖² is chi-squared with d degrees of freedom: mean d, variance 2d", _chi_squared),
    line("inner-product", "⟨cᵢ, cⱼ⟩, i ≠ j, has the cosine's law: mean 0, variance 1/d", _inner_product),
    *chain(
        "norm-mean",
        "mean of ‖ρ‖²/d",
        ("E[‖ρ‖²/d] = ⟨Σcᵢ + σZ, Σcᵢ + σZ⟩/d", _missing_expectation),
        (
            "= (Σᵢⱼ E⟨cᵢ, cⱼ⟩ + 2σΣᵢ E⟨Z, cᵢ⟩ + σ²E‖Z‖²)/d",
            partial(_exact_of, "A", 0, _norm_mean_terms, lambda e: limit(e) == SIGMA**2),
        ),
        ("= (k + σ²d)/d", partial(_exact_of, "A", 0, (K + SIGMA**2 * D) / D, lambda e: limit(e) == SIGMA**2)),
        ("= σ² + o(1)", lambda: order(moments("A")[0], "σ² + o(1)", vanishes(moments("A")[0] - SIGMA**2))),
    ),
    line("uncorrelated", "⟨Z, Z⟩, ⟨Z, cᵢ⟩ and ⟨cᵢ, cⱼ⟩, for all i, j, are pairwise uncorrelated", _uncorrelated),
    *chain(
        "norm-variance",
        "variance of ‖ρ‖²/d",
        (
            "Var[‖ρ‖²/d] = (Σᵢⱼ Var⟨cᵢ, cⱼ⟩ + 2σ²Σᵢ Var⟨Z, cᵢ⟩ + σ⁴Var‖Z‖²)/d²",
            partial(_exact_of, "A", 1, _norm_variance_printed, _first_order),
        ),
        (
            "= (k(k − 1)/d + 2kσ² + 2σ⁴d)/d²",
            partial(_exact_of, "A", 1, (K * (K - 1) / D + 2 * K * SIGMA**2 + 2 * SIGMA**4 * D) / D**2, _first_order),
        ),
        ("= O(1/d)", lambda: order(moments("A")[1], "O(1/d)", _first_order(moments("A")[1]))),
    ),
    line("norm-converges", "together these imply ‖ρ‖/√d → σ in probability", _norm_converges),
    line(
        "product-mean",
        "E[(1/k)Σ⟨cᵢ, ρ⟩] = (k + Σᵢ≠ⱼ E⟨cᵢ, cⱼ⟩ + σΣᵢ E⟨Z, cᵢ⟩)/k = 1",
        _both_equalities,
        "mean of (1/k)Σ⟨cᵢ, ρ⟩",
        1,
    ),
    *chain(
        "product-variance",
        "variance of (1/k)Σ⟨cᵢ, ρ⟩",
        (
            "Var[(1/k)Σ⟨cᵢ, ρ⟩] = (Σᵢ≠ⱼ Var⟨cᵢ, cⱼ⟩ + σ²Σᵢ Var⟨Z, cᵢ⟩)/k²",
            partial(_exact_of, "B", 1, _product_variance_printed, vanishes),
        ),
        ("= (k(k − 1)/d + kσ²)/k²", partial(_exact_of, "B", 1, (K * (K - 1) / D + K * SIGMA**2) / K**2, vanishes)),
        ("= o(1)", lambda: order(moments("B")[1], "o(1)", vanishes(moments("B")[1]))),
    ),
    line("product-converges", "together these imply (1/k)Σ⟨cᵢ, ρ⟩ → 1", partial(converges, "B", sympy.Integer(1))),
)
