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

from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.cosine_law import even_moment
from canaryproof.proofs_check.lines import Judgement, Kind, Line, held
from canaryproof.proofs_check.regime import bounded, equation, limit, settled, vanishes
from canaryproof.proofs_check.spelling import shortened, text
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


def order(name: str, place: int, printed: str, claim: Callable[[Expr], bool]) -> Judgement:
    """Judge a printed order of magnitude of a mean (place 0) or variance (place 1), of A, B, T or W."""
    exact = release_moments.moments(name)[place]
    return held(claim(exact), f"{printed} holds for {shortened(exact)}", exact=text(exact), printed=printed)


def variance(*edges: Edge) -> Expr:
    """Variance of a product of inner products of fixed, different vectors."""
    return sympy.cancel(expectation(*edges, *edges) - expectation(*edges) ** 2)


def _definition(share: Expr) -> Judgement:
    """μ̂ is the mean of gᵢ = ⟨cᵢ, ρ⟩/‖ρ‖: the display's first row writes it out, here for k = 3."""
    inner, norm = sympy.symbols("x1:4", real=True), Symbol("norm", positive=True)
    written = sqrt(D) * share.subs(K, 3) * sum(x / norm for x in inner)
    return held(sympy.simplify(written - sqrt(D) * sum(inner) / (3 * norm)) == 0, "by definition of μ̂")


def _rewriting(power: int) -> Judgement:
    """√d·(1/k)Σ⟨cᵢ, ρ⟩/‖ρ‖ = (‖ρ‖/√d)^power·(1/k)Σ⟨cᵢ, ρ⟩, with the sum as a symbol."""
    total, norm = Symbol("total", real=True), Symbol("norm", positive=True)
    difference = sqrt(D) * (total / norm) / K - (norm / sqrt(D)) ** power * (total / K)
    return held(sympy.simplify(difference) == 0, "an identity")


def _first_of_mean(in_expectation: bool) -> Judgement:
    """The first row equates the mean of ‖ρ‖²/d with ‖ρ‖²/d itself, or (``in_expectation``) with its mean."""
    exact, spread = release_moments.moments("A")
    left_over = sympy.Integer(0) if in_expectation else spread
    evidence = {"exact": text(exact), "variance_of_right_side": text(left_over)}
    if left_over == 0:
        return Judgement(Kind.EXACT, "both sides are one number", evidence)
    return Judgement(
        Kind.HYPOTHESIS,
        "holds with an expectation sign on the right side, which is dropped here and stands in the next row: a "
        f"misprint; as printed, that side is random, with variance {text(left_over)}",
        evidence,
    )


def _chi_squared(centre: Expr, spread: Expr) -> Judgement:
    """Raw moments of the chi-squared law: d(d + 2) ⋯ (d + 2p − 2)."""
    found = [expectation(*([(Z, Z)] * p)) for p in range(1, 5)]
    same = all(sympy.expand(m - 2**p * sympy.rf(D / 2, p).expand(func=True)) == 0 for p, m in enumerate(found, 1))
    holds = same and found[0] == centre and variance((Z, Z)) == spread
    return held(holds, f"the first four moments agree; mean {text(found[0])}, variance {text(variance((Z, Z)))}")


def _inner_product(centre: Expr, spread: Expr) -> Judgement:
    """Given cᵢ, ⟨cᵢ, cⱼ⟩ is the cosine of Theorem 3.1: its even moments, and odd ones that vanish."""
    pair = ("i", "j")
    even = [expectation(*([pair] * (2 * p))) for p in range(1, 5)]
    same = all(sympy.cancel(m - even_moment(p)) == 0 for p, m in enumerate(even, 1))
    holds = same and expectation(pair) == centre and variance(pair) == spread
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


def _uncorrelated(ordered: bool) -> Judgement:
    """Covariances of inner products of Z and four canaries; where ``ordered``, ⟨cⱼ, cᵢ⟩ counts beside ⟨cᵢ, cⱼ⟩."""
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
    if same == 0 or not ordered:
        return Judgement(Kind.EXACT, "all covariances are 0", evidence)
    return Judgement(
        Kind.HYPOTHESIS,
        f"holds for unordered pairs; the text says all i, j, and the covariance of ⟨cᵢ, cⱼ⟩ with ⟨cⱼ, cᵢ⟩ is "
        f"{text(same)}: the sums over ordered pairs that follow count each variance twice instead of four times",
        evidence,
    )


def converges(name: str, printed: Expr) -> Judgement:
    """Judge convergence in probability of A, B, T or W to a constant, by Chebyshev from the exact moments."""
    centre, spread = release_moments.moments(name)
    holds = limit(centre) == printed and vanishes(spread)
    return held(holds, f"mean {text(centre)} → {text(limit(centre))}; variance → {text(limit(spread))}")


def _norm_converges(root: Expr) -> Judgement:
    square = converges("A", root**2)
    return Judgement(square.kind, f"‖ρ‖²/d: {square.finding}; the root is continuous at σ² > 0", square.evidence)


def _theorem(mean_limit: Expr, variance_limit: Expr) -> Judgement:
    """The theorem itself, from the exact limits of A, B and W alone."""
    square, product, spread = (release_moments.moments(name) for name in "ABW")
    limits = [settled(part) for part in (square[0], product[0], spread[0])]
    facts = {
        "the variances of A, B and W vanish": all(vanishes(part[1]) for part in (square, product, spread)),
        "B/√A": sympy.simplify(limits[1] / sqrt(limits[0]) - mean_limit) == 0,
        "W/A": sympy.cancel(limits[2] / limits[0] - variance_limit) == 0,
    }
    return held(facts, "the variances of A, B and W vanish; B/√A → 1/σ and W/A → 1 (corrected_proof.md, 5)")


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
    return equation(printed() if callable(printed) else printed, release_moments.moments(name)[place], concludes)


def _first_order(expression: Expr) -> bool:
    return bounded(D * expression)


def _both_equalities(value: int) -> Judgement:
    exact = release_moments.moments("B")[0]
    written = _mean_products_printed()
    return held(written == exact == value, f"the sum is {text(written)}, the mean {text(exact)}")


LINES = (
    Line(
        _ID,
        "Andrew et al., arXiv 2302.03098, Theorem 3.3",
        "√d·μ̂ → 1/σ and d·σ̂² → 1 in probability for k → ∞, k = o(d), n = 0",
        partial(_theorem, 1 / SIGMA, sympy.Integer(1)),
    ),
    *chain(
        "mean-cosine",
        "mean of the cosines",
        ("√d·μ̂ = √d·(1/k)Σ⟨cᵢ, ρ⟩/‖ρ‖", partial(_definition, 1 / K)),
        ("= (‖ρ‖/√d)⁻¹·(1/k)Σ⟨cᵢ, ρ⟩", partial(_rewriting, -1)),
    ),
    line("target-norm", "‖ρ‖²/d → σ² in probability", partial(converges, "A", SIGMA**2)),
    line("target-product", "(1/k)Σ⟨cᵢ, ρ⟩ → 1 in probability", partial(converges, "B", sympy.Integer(1))),
    line(
        "chi-squared",
        "‖Z‖² is chi-squared with d degrees of freedom: mean d, variance 2d",
        partial(_chi_squared, D, 2 * D),
    ),
    line(
        "inner-product",
        "⟨cᵢ, cⱼ⟩, i ≠ j, has the cosine's law: mean 0, variance 1/d",
        partial(_inner_product, 0, 1 / D),
    ),
    *chain(
        "norm-mean",
        "mean of ‖ρ‖²/d",
        ("E[‖ρ‖²/d] = ⟨Σcᵢ + σZ, Σcᵢ + σZ⟩/d", partial(_first_of_mean, False)),
        (
            "= (Σᵢⱼ E⟨cᵢ, cⱼ⟩ + 2σΣᵢ E⟨Z, cᵢ⟩ + σ²E‖Z‖²)/d",
            partial(_exact_of, "A", 0, _norm_mean_terms, lambda e: limit(e) == SIGMA**2),
        ),
        ("= (k + σ²d)/d", partial(_exact_of, "A", 0, (K + SIGMA**2 * D) / D, lambda e: limit(e) == SIGMA**2)),
        ("= σ² + o(1)", partial(order, "A", 0, "σ² + o(1)", lambda e: vanishes(e - SIGMA**2))),
    ),
    line(
        "uncorrelated",
        "⟨Z, Z⟩, ⟨Z, cᵢ⟩ and ⟨cᵢ, cⱼ⟩, for all i, j, are pairwise uncorrelated",
        partial(_uncorrelated, True),
    ),
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
        ("= O(1/d)", partial(order, "A", 1, "O(1/d)", _first_order)),
    ),
    line("norm-converges", "together these imply ‖ρ‖/√d → σ in probability", partial(_norm_converges, SIGMA)),
    line(
        "product-mean",
        "E[(1/k)Σ⟨cᵢ, ρ⟩] = (k + Σᵢ≠ⱼ E⟨cᵢ, cⱼ⟩ + σΣᵢ E⟨Z, cᵢ⟩)/k = 1",
        partial(_both_equalities, 1),
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
        ("= o(1)", partial(order, "B", 1, "o(1)", vanishes)),
    ),
    line("product-converges", "together these imply (1/k)Σ⟨cᵢ, ρ⟩ → 1", partial(converges, "B", sympy.Integer(1))),
)
