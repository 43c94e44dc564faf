"""Theorem 3.3: mean and variance of the cosines, line by line.

In the notation of ``release_moments``: √d·μ̂ = B/√A. The proof shows A → σ² and B → 1 in probability by means and
variances. Its variances add up inner products over ordered pairs (i, j) and (j, i) as if these were uncorrelated, so
that every term between two canaries, or between a canary and the noise, comes out at half its size. What is concluded
from the lines stands.

d·σ̂² = (T − B²)/A. The proof shows T → 1 + σ². The mean of T lacks the squares of k − 1 other canaries, (k − 1)/d in
all. Its variance is taken as a sum of variances: the cross terms between different i, and the four-fold (not two-fold)
weight of the terms between ⟨cᵢ, cⱼ⟩ and the noise, are lost, which is an error in the leading order. The bounds of the
terms that are printed hold, and so does what is concluded.
"""

from collections.abc import Callable
from functools import partial

import sympy
from sympy import Expr, Symbol, sqrt

from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.displayed_lines import Kind, held, judged, line
from canaryproof.proofs_check.formula_text import shortened, text
from canaryproof.proofs_check.limits import bounded, equation, limit, settled, vanishes
from canaryproof.proofs_check.sphere_moments import (
    SIGMA,
    D,
    Edge,
    K,
    S,
    Z,
    dot,
    expectation,
    mean,
    release,
    scaled,
    sum_of_variances,
    times,
    vector,
)
from canaryproof.proofs_check.theorem_3_1 import even_moment
from canaryproof.verify.papers.check.results import Check, Outcome, Verdict

_PROOF = "Appendix A, proof of Theorem 3.3"
_ID = "final.theorem-3.3"

DISPLAYS = {
    "mean of the cosines": 2,
    "mean of ‖ρ‖²/d": 4,
    "variance of ‖ρ‖²/d": 3,
    "mean of (1/k)Σ⟨cᵢ, ρ⟩": 1,
    "variance of (1/k)Σ⟨cᵢ, ρ⟩": 3,
    "d·σ̂²": 2,
    "mean of (1/k)Σ⟨cᵢ, ρ⟩²": 4,
    "variance of (1/k)Σ⟨cᵢ, ρ⟩²": 1,
    "variance of ⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩, j ≠ ℓ": 4,
    "variance of ⟨cᵢ, cⱼ⟩²": 5,
    "sum over canaries": 1,
    "variance of ⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩": 3,
    "sum over canaries and noise": 1,
    "sum over noise": 1,
}


def _line(topic: str, statement: str, judge: Callable[[], Outcome], display: str = "", row: int = 0) -> Check:
    """Return a line of the final version's proof of Theorem 3.3."""
    return line(f"{_ID}.{topic}", _PROOF, statement, judge, display, row)


def chain(topic: str, display: str, *rows: tuple[str, Callable[[], Outcome]]) -> tuple[Check, ...]:
    """Return the lines of a displayed formula of several rows, each a statement and its judge."""
    return tuple(_line(f"{topic}.{row}", *both, display, row) for row, both in enumerate(rows, 1))


def order(name: str, index: int, printed: str, claim: Callable[[Expr], bool]) -> Outcome:
    """Judge a printed order of magnitude of a mean (index 0) or variance (index 1), of A, B, T or W."""
    exact = release_moments.moments(name)[index]
    return held(claim(exact), f"{printed} holds for {shortened(exact)}", exact=text(exact), printed=printed)


def variance(*edges: Edge) -> Expr:
    """Variance of a product of inner products of fixed, different vectors."""
    return sympy.cancel(expectation(*edges, *edges) - expectation(*edges) ** 2)


def _definition(share: Expr) -> Outcome:
    """μ̂ is the mean of gᵢ = ⟨cᵢ, ρ⟩/‖ρ‖: the display's first row writes it out, here for k = 3."""
    inner, norm = sympy.symbols("x1:4", real=True), Symbol("norm", positive=True)
    written = sqrt(D) * share.subs(K, 3) * sum(x / norm for x in inner)
    return held(sympy.simplify(written - sqrt(D) * sum(inner) / (3 * norm)) == 0, "by definition of μ̂")


def _rewriting(power: int) -> Outcome:
    """√d·(1/k)Σ⟨cᵢ, ρ⟩/‖ρ‖ = (‖ρ‖/√d)^power·(1/k)Σ⟨cᵢ, ρ⟩, with the sum as a symbol."""
    total, norm = Symbol("total", real=True), Symbol("norm", positive=True)
    difference = sqrt(D) * (total / norm) / K - (norm / sqrt(D)) ** power * (total / K)
    return held(sympy.simplify(difference) == 0, "an identity")


def _first_of_mean(in_expectation: bool) -> Outcome:
    """The first row equates the mean of ‖ρ‖²/d with ‖ρ‖²/d itself, or (``in_expectation``) with its mean."""
    exact, spread = release_moments.moments("A")
    left_over = sympy.Integer(0) if in_expectation else spread
    evidence = {"exact": text(exact), "variance_of_right_side": text(left_over)}
    if left_over == 0:
        return judged(Kind.EXACT, "both sides are one number", evidence)
    return judged(
        Kind.HYPOTHESIS,
        "holds with an expectation sign on the right side, which is dropped here and stands in the next row: a "
        f"misprint; as printed, that side is random, with variance {text(left_over)}",
        evidence,
    )


def _chi_squared(centre: Expr, spread: Expr) -> Outcome:
    """Raw moments of the chi-squared law: d(d + 2) ⋯ (d + 2p − 2)."""
    raw_moments = [expectation(*([(Z, Z)] * p)) for p in range(1, 5)]
    same = all(sympy.expand(m - 2**p * sympy.rf(D / 2, p).expand(func=True)) == 0 for p, m in enumerate(raw_moments, 1))
    holds = same and raw_moments[0] == centre and variance((Z, Z)) == spread
    return held(holds, f"the first four moments agree; mean {text(raw_moments[0])}, variance {text(variance((Z, Z)))}")


def _inner_product(centre: Expr, spread: Expr) -> Outcome:
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


def _uncorrelated(ordered: bool) -> Outcome:
    """Covariances of inner products of Z and four canaries; where ``ordered``, ⟨cⱼ, cᵢ⟩ counts as well as ⟨cᵢ, cⱼ⟩."""
    names = (Z, "a", "b", "c", "d")
    products = [(u, v) for i, u in enumerate(names) for v in names[i:] if u != v or u == Z]
    correlated = [
        f"{p} and {q}"
        for i, p in enumerate(products)
        for q in products[i + 1 :]
        if sympy.cancel(expectation(p, q) - expectation(p) * expectation(q)) != 0
    ]
    same = sympy.cancel(expectation(("a", "b"), ("b", "a")))
    evidence = {"unordered_pairs_that_correlate": correlated, "covariance_of_ij_with_ji": text(same)}
    if correlated:
        return judged(Kind.FALSE, f"correlated: {correlated[0]}", evidence)
    if same == 0 or not ordered:
        return judged(Kind.EXACT, "all covariances are 0", evidence)
    return judged(
        Kind.HYPOTHESIS,
        f"holds for unordered pairs; the text says all i, j, and the covariance of ⟨cᵢ, cⱼ⟩ with ⟨cⱼ, cᵢ⟩ is "
        f"{text(same)}: the sums over ordered pairs that follow count each variance twice instead of four times",
        evidence,
    )


def converges(name: str, printed: Expr) -> Outcome:
    """Judge convergence in probability of A, B, T or W to a constant, by Chebyshev from the exact moments."""
    centre, spread = release_moments.moments(name)
    holds = limit(centre) == printed and vanishes(spread)
    return held(holds, f"mean {text(centre)} → {text(limit(centre))}; variance → {text(limit(spread))}")


def _norm_converges(root: Expr) -> Outcome:
    square = converges("A", root**2)
    return Outcome(square.verdict, f"‖ρ‖²/d: {square.finding}; the root is continuous at σ² > 0", square.evidence)


def _theorem(mean_limit: Expr, variance_limit: Expr) -> Outcome:
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


def _exact_of(name: str, index: int, printed: Callable[[], Expr] | Expr, concludes: Callable[[Expr], bool]) -> Outcome:
    return equation(printed() if callable(printed) else printed, release_moments.moments(name)[index], concludes)


def _goes_on(printed: Expr, before: Callable[[], Expr]) -> Outcome:
    """Judge a row by the row before it, which it is said to equal; that one is judged by the exact value."""
    earlier = before()
    finding = (
        f"printed {shortened(printed)}; the row before, which is judged by the exact value, is {shortened(earlier)}"
    )
    return held(sympy.cancel(printed - earlier) == 0, finding, printed=text(printed), before=text(earlier))


def _first_order(expression: Expr) -> bool:
    return bounded(D * expression)


def _both_equalities(value: int) -> Outcome:
    exact = release_moments.moments("B")[0]
    written = _mean_products_printed()
    return held(written == exact == value, f"the sum is {text(written)}, the mean {text(exact)}")


# The variance of the cosines.

_NORM = Symbol("norm", positive=True)
# The three products of the variance's sum, as inner products.
_IJ, _IL, _JI, _IZ = ("i", "j"), ("i", "l"), ("j", "i"), ("i", Z)


def nonnegative(expression: Expr, least_dim: int, least_count: int) -> bool:
    """Whether an expression is proven to be ≥ 0 for all d and k from these on, as a polynomial in the excesses."""
    u, v = Symbol("u", nonnegative=True), Symbol("v", nonnegative=True)
    shifted = sympy.cancel(expression.subs({D: least_dim + u, K: least_count + v}))
    parts = (sympy.Poly(sympy.expand(part), u, v) for part in sympy.fraction(shifted))
    return all(coefficient >= 0 for part in parts for coefficient in part.coeffs())


def _deviation(weight: Expr) -> Outcome:
    """(1/k)Σgᵢ² − weight·(Σgᵢ)² is the mean squared deviation: for three symbols, and so for all k by its form."""
    g = sympy.symbols("g1:4", real=True)
    centre = sympy.Add(*g) / 3
    printed = sum(x**2 for x in g) / 3 - weight.subs(K, 3) * sympy.Add(*g) ** 2
    difference = sum((x - centre) ** 2 for x in g) / 3 - printed
    return held(sympy.expand(difference) == 0, "by definition: the mean of squares less the squared mean")


def _scaled_deviation(factor: Expr) -> Outcome:
    x = sympy.symbols("x1:4", real=True)
    g = [item / _NORM for item in x]
    left = D * (sum(item**2 for item in g) / 3 - (sum(g) / 3) ** 2)
    right = factor * (sum(item**2 for item in x) / 3 - (sum(x) / 3) ** 2)
    return held(sympy.simplify(left - right) == 0, "‖ρ‖² comes out of both terms")


def _sufficient(target: Expr) -> Outcome:
    """(T − B²)/A, a continuous function of the three at σ > 0, is to tend to 1 if T tends to the target."""
    product, norm = (settled(release_moments.moments(name)[0]) for name in "BA")
    value = sympy.cancel((target - product**2) / norm)
    return held(value == 1, f"({text(target)} − {text(product)}²)/({text(norm)}) = {text(value)}")


def _same_mean(written: Expr) -> Outcome:
    return equation(written.subs(S, 0), release_moments.moments("T")[0], lambda e: limit(e) == 1 + SIGMA**2)


def _square() -> Expr:
    """(1/k) Σᵢ E⟨cᵢ, Σⱼ cⱼ + σZ⟩²."""
    return mean(times(dot(vector("i"), release("j")), dot(vector("i"), release("l")))) / K


def _expanded() -> Expr:
    """The square multiplied out; the middle term stands for two equal ones."""
    canaries = mean(((1, (_IJ, _IL)),))
    cross = mean(((1, (_IJ, _IZ)),))
    noise = mean(((1, (_IZ, _IZ)),))
    return (canaries + 2 * SIGMA * cross + SIGMA**2 * noise) / K


def _printed_variance() -> Expr:
    canaries = sum_of_variances(_IJ, _IL)
    cross = SIGMA**2 * sum_of_variances(_IJ, _IZ)
    noise = SIGMA**4 * sum_of_variances(_IZ, _IZ)
    return sympy.cancel((canaries + 2 * cross + noise) / K**2)


def _variance_of_square(written: Callable[[], Expr]) -> Outcome:
    printed, exact = written(), release_moments.moments("T")[1]
    compared = equation(printed, exact, vanishes)
    if compared.verdict is Verdict.CONFIRMED:
        return compared
    ratio = limit(sympy.cancel(printed / exact))
    evidence = {
        **compared.evidence,
        "leading_printed": text(limit(K * printed)),
        "leading_exact": text(limit(K * exact)),
        "limit_of_ratio": text(ratio),
    }
    shown = compared.evidence["ratio_at_d1e6_k1e3_sigma1"]
    finding = (
        f"k times the printed variance tends to {text(limit(K * printed))}, k times the exact one to "
        f"{text(limit(K * exact))}; printed/exact = {shown:.6g} at d = 1e6, k = 1e3, σ = 1; o(1) "
        f"{'stands' if vanishes(exact) else 'falls'}"
    )
    return Outcome(compared.verdict, finding, evidence)


# The two cases of the display: j = i (or ℓ = i), and i, j, ℓ all different.
_CASES: dict[str, tuple[tuple[Edge, Edge], Expr]] = {
    "j = i": ((("i", "i"), _IL), 1 / D),
    "j ≠ i ≠ ℓ": ((_IJ, _IL), 1 / D**2),
}


def _by_case(value: Callable[[Edge, Edge], Expr] | None = None) -> Outcome:
    """Judge a row of the display for j ≠ ℓ in both cases: by default the one that prints their values."""
    by_case = {name: (value(*edges) if value else row, variance(*edges)) for name, (edges, row) in _CASES.items()}
    prefix = "" if value else "printed "
    finding = "; ".join(f"{name}: {prefix}{text(row)}, exact {text(exact)}" for name, (row, exact) in by_case.items())
    return held(all(sympy.cancel(row - exact) == 0 for row, exact in by_case.values()), finding)


def _conditioned(first: Edge, second: Edge) -> Expr:
    """E[E[a²|cᵢ]·E[b²|cᵢ]]: given cᵢ, each factor is a constant, its own expectation."""
    return expectation(first, first) * expectation(second, second)


def _at_most(left: Expr, right: Expr) -> Outcome:
    return held(nonnegative(right - left, 2, 2), f"{text(left)} ≤ {text(right)} for all d ≥ 2, k ≥ 2")


def _together(bound: Expr) -> Outcome:
    total = sympy.cancel(sum_of_variances(_IJ, _IL) / K**2)
    facts = {"bound": nonnegative(bound - total, 2, 2), "O(1/d)": bounded(D * bound)}
    shown = text(limit(D * bound))
    return held(facts, f"the sum is {text(total)}, the bound {text(bound)}; d times it tends to {shown}")


def _mixed_sum(printed: Expr) -> Outcome:
    total = sympy.cancel(2 * SIGMA**2 * sum_of_variances(_IJ, _IZ) / K**2)
    facts = {"equal": sympy.cancel(total - printed) == 0, "o(1)": vanishes(printed)}
    return held(facts, f"the sum is {text(total)}, printed {text(printed)}, limit {text(limit(printed))}")


def _noise_sum(printed: Expr) -> Outcome:
    total = sympy.cancel(SIGMA**4 * sum_of_variances(_IZ, _IZ) / K**2)
    facts = {"equal": sympy.cancel(total - printed) == 0, "o(1)": vanishes(printed)}
    return held(facts, f"the sum is {text(total)}, limit {text(limit(printed))}")


def _squared_product(spread: Expr) -> Outcome:
    """Moments of ⟨cᵢ, Z⟩: those of N(0, 1), which has no others' moments."""
    moments = [expectation(*([_IZ] * (2 * p))) for p in range(1, 5)]
    facts = {"moments": moments == [1, 3, 15, 105], "variance": SIGMA**4 * variance(_IZ, _IZ) == spread}
    return held(facts, f"even moments of ⟨cᵢ, Z⟩ {', '.join(map(text, moments))}, as N(0, 1) has; Var⟨cᵢ, Z⟩² = 2")


LINES = (
    line(
        _ID,
        "Section 3.1, Theorem 3.3",
        "Without data, √d·μ̂ → 1/σ and d·σ̂² → 1 in probability for k → ∞, k = o(d)",
        partial(_theorem, 1 / SIGMA, sympy.Integer(1)),
    ),
    *chain(
        "mean-cosine",
        "mean of the cosines",
        ("By definition, √d·μ̂ = √d·(1/k)Σ⟨cᵢ, ρ⟩/‖ρ‖", partial(_definition, 1 / K)),
        ("Rewritten, √d·μ̂ = (‖ρ‖/√d)⁻¹·(1/k)Σ⟨cᵢ, ρ⟩", partial(_rewriting, -1)),
    ),
    _line("target-norm", "The squared length has ‖ρ‖²/d → σ² in probability", partial(converges, "A", SIGMA**2)),
    _line(
        "target-product",
        "The mean product has (1/k)Σ⟨cᵢ, ρ⟩ → 1 in probability",
        partial(converges, "B", sympy.Integer(1)),
    ),
    _line(
        "chi-squared",
        "The squared length ‖Z‖² is chi-squared with d degrees of freedom: mean d, variance 2d",
        partial(_chi_squared, D, 2 * D),
    ),
    _line(
        "inner-product",
        "For i ≠ j, ⟨cᵢ, cⱼ⟩ has the cosine's law: mean 0, variance 1/d",
        partial(_inner_product, 0, 1 / D),
    ),
    *chain(
        "norm-mean",
        "mean of ‖ρ‖²/d",
        ("The mean is E[‖ρ‖²/d] = ⟨Σcᵢ + σZ, Σcᵢ + σZ⟩/d", partial(_first_of_mean, False)),
        (
            "The mean is E[‖ρ‖²/d] = (Σᵢⱼ E⟨cᵢ, cⱼ⟩ + 2σΣᵢ E⟨Z, cᵢ⟩ + σ²E‖Z‖²)/d",
            partial(_exact_of, "A", 0, _norm_mean_terms, lambda e: limit(e) == SIGMA**2),
        ),
        (
            "The mean is E[‖ρ‖²/d] = (k + σ²d)/d",
            partial(_exact_of, "A", 0, (K + SIGMA**2 * D) / D, lambda e: limit(e) == SIGMA**2),
        ),
        ("The mean is E[‖ρ‖²/d] = σ² + o(1)", partial(order, "A", 0, "σ² + o(1)", lambda e: vanishes(e - SIGMA**2))),
    ),
    _line(
        "uncorrelated",
        "The products ⟨Z, Z⟩, ⟨Z, cᵢ⟩ and ⟨cᵢ, cⱼ⟩, for all i, j, are pairwise uncorrelated",
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
            "The sum (Σᵢⱼ Var⟨cᵢ, cⱼ⟩ + 2σ²Σᵢ Var⟨Z, cᵢ⟩ + σ⁴Var‖Z‖²)/d² is (k(k − 1)/d + 2kσ² + 2σ⁴d)/d²",
            partial(_goes_on, (K * (K - 1) / D + 2 * K * SIGMA**2 + 2 * SIGMA**4 * D) / D**2, _norm_variance_printed),
        ),
        ("Var[‖ρ‖²/d] = O(1/d)", partial(order, "A", 1, "O(1/d)", _first_order)),
    ),
    _line(
        "norm-converges", "Mean and variance of ‖ρ‖²/d imply ‖ρ‖/√d → σ in probability", partial(_norm_converges, SIGMA)
    ),
    _line(
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
        (
            "The sum (Σᵢ≠ⱼ Var⟨cᵢ, cⱼ⟩ + σ²Σᵢ Var⟨Z, cᵢ⟩)/k² is (k(k − 1)/d + kσ²)/k²",
            partial(_goes_on, (K * (K - 1) / D + K * SIGMA**2) / K**2, _product_variance_printed),
        ),
        ("Var[(1/k)Σ⟨cᵢ, ρ⟩] = o(1)", partial(order, "B", 1, "o(1)", vanishes)),
    ),
    _line(
        "product-converges",
        "Mean and variance of (1/k)Σ⟨cᵢ, ρ⟩ imply (1/k)Σ⟨cᵢ, ρ⟩ → 1",
        partial(converges, "B", sympy.Integer(1)),
    ),
    *chain(
        "deviation",
        "d·σ̂²",
        ("By definition, d·σ̂² = d((1/k)Σgᵢ² − ((1/k)Σgᵢ)²)", partial(_deviation, 1 / K**2)),
        ("Rewritten, d·σ̂² = (d/‖ρ‖²)((1/k)Σ⟨cᵢ, ρ⟩² − ((1/k)Σ⟨cᵢ, ρ⟩)²)", partial(_scaled_deviation, D / _NORM**2)),
    ),
    _line("sufficient", "For d·σ̂² → 1, showing (1/k)Σ⟨cᵢ, ρ⟩² → 1 + σ² suffices", partial(_sufficient, 1 + SIGMA**2)),
    _line(
        "target-square",
        "The mean square has (1/k)Σ⟨cᵢ, ρ⟩² → 1 + σ² in probability",
        partial(converges, "T", 1 + SIGMA**2),
    ),
    *chain(
        "square-mean",
        "mean of (1/k)Σ⟨cᵢ, ρ⟩²",
        ("E[(1/k)Σ⟨cᵢ, ρ⟩²] = (1/k)Σᵢ E[(Σⱼ⟨cᵢ, cⱼ⟩ + ⟨cᵢ, σZ⟩)²]", lambda: _same_mean(_square())),
        (
            "E[(1/k)Σ⟨cᵢ, ρ⟩²] = (1/k)Σᵢ(Σⱼₗ E[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] + 2Σⱼ E[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩] + E⟨cᵢ, σZ⟩²)",
            lambda: _same_mean(_expanded()),
        ),
        ("E[(1/k)Σ⟨cᵢ, ρ⟩²] = (1/k)Σᵢ(Σⱼₗ 𝕀{j = i, ℓ = i} + 0 + σ²)", lambda: _same_mean((K + K * SIGMA**2) / K)),
        (
            "The sum (1/k)Σᵢ(Σⱼₗ 𝕀{j = i, ℓ = i} + 0 + σ²) is 1 + σ²",
            partial(_goes_on, 1 + SIGMA**2, lambda: (K + K * SIGMA**2) / K),
        ),
    ),
    _line(
        "square-variance",
        "Var[(1/k)Σ⟨cᵢ, ρ⟩²] = (1/k²)Σᵢ(Σⱼₗ Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] + 2Σⱼ Var[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩] + Var[⟨cᵢ, σZ⟩²])",
        partial(_variance_of_square, _printed_variance),
        "variance of (1/k)Σ⟨cᵢ, ρ⟩²",
        1,
    ),
    _line(
        "square-variance.small",
        "The variance Var[(1/k)Σ⟨cᵢ, ρ⟩²] is o(1)",
        partial(order, "T", 1, "o(1)", vanishes),
    ),
    _line(
        "triple.equal",
        "Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] = 0 if i = j = ℓ",
        lambda: equation(sympy.Integer(0), variance(("i", "i"), ("i", "i"))),
    ),
    *chain(
        "triple",
        "variance of ⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩, j ≠ ℓ",
        (
            "If j ≠ ℓ, Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] = E[⟨cᵢ, cⱼ⟩²⟨cᵢ, cₗ⟩²] − E[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩]²",
            lambda: _by_case(lambda a, b: expectation(a, b, a, b) - expectation(a, b) ** 2),
        ),
        (
            "If j ≠ ℓ, Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] = E[E[⟨cᵢ, cⱼ⟩²⟨cᵢ, cₗ⟩² | cᵢ]]",
            lambda: _by_case(lambda a, b: expectation(a, b, a, b)),
        ),
        ("If j ≠ ℓ, Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] = E[E[⟨cᵢ, cⱼ⟩² | cᵢ]·E[⟨cᵢ, cₗ⟩² | cᵢ]]", lambda: _by_case(_conditioned)),
        ("If j ≠ ℓ, Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] = 1/d where j = i or ℓ = i, and 1/d² otherwise", _by_case),
    ),
    *chain(
        "fourth",
        "variance of ⟨cᵢ, cⱼ⟩²",
        (
            "If j = ℓ ≠ i, Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] = Var[⟨cᵢ, cⱼ⟩²]",
            lambda: equation(variance(_IJ, _IJ), variance(_IJ, _JI)),
        ),
        (
            "If j ≠ i, Var[⟨cᵢ, cⱼ⟩²] = E⟨cᵢ, cⱼ⟩⁴ − (E⟨cᵢ, cⱼ⟩²)²",
            lambda: equation(expectation(_IJ, _IJ, _IJ, _IJ) - expectation(_IJ, _IJ) ** 2, variance(_IJ, _IJ)),
        ),
        (
            "If j ≠ i, Var[⟨cᵢ, cⱼ⟩²] ≤ E⟨cᵢ, cⱼ⟩⁴",
            lambda: _at_most(variance(_IJ, _IJ), expectation(_IJ, _IJ, _IJ, _IJ)),
        ),
        ("If j ≠ i, E⟨cᵢ, cⱼ⟩⁴ ≤ E⟨cᵢ, cⱼ⟩²", lambda: _at_most(expectation(_IJ, _IJ, _IJ, _IJ), expectation(_IJ, _IJ))),
        ("If j ≠ i, E⟨cᵢ, cⱼ⟩² = 1/d", lambda: equation(1 / D, expectation(_IJ, _IJ))),
    ),
    _line(
        "together",
        "Together, (1/k²)Σᵢⱼₗ Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] ≤ (2k(k − 1)/d + k(k − 1)(k − 2)/d² + k(k − 1)/d)/k² = O(1/d)",
        partial(_together, (2 * K * (K - 1) / D + K * (K - 1) * (K - 2) / D**2 + K * (K - 1) / D) / K**2),
        "sum over canaries",
        1,
    ),
    _line(
        "noise.equal",
        "Var[⟨cᵢ, cᵢ⟩⟨cᵢ, σZ⟩] = σ²",
        lambda: equation(SIGMA**2, SIGMA**2 * variance(("i", "i"), _IZ)),
    ),
    *chain(
        "noise",
        "variance of ⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩",
        (
            "If i ≠ j, Var[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩] = E[⟨cᵢ, cⱼ⟩²⟨cᵢ, σZ⟩²] − E[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩]²",
            lambda: equation(
                SIGMA**2 * expectation(_IJ, _IJ, _IZ, _IZ) - SIGMA**2 * expectation(_IJ, _IZ) ** 2,
                SIGMA**2 * variance(_IJ, _IZ),
            ),
        ),
        (
            "If i ≠ j, Var[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩] = E[E[⟨cᵢ, cⱼ⟩² | cᵢ]·E[⟨cᵢ, σZ⟩² | cᵢ]]",
            lambda: equation(SIGMA**2 * _conditioned(_IJ, _IZ), SIGMA**2 * variance(_IJ, _IZ)),
        ),
        ("If i ≠ j, Var[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩] = σ²/d", lambda: equation(SIGMA**2 / D, SIGMA**2 * variance(_IJ, _IZ))),
    ),
    _line(
        "noise.sum",
        "Together, (2/k²)Σᵢⱼ Var[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩] = (2/k²)(kσ² + k(k − 1)σ²/d) = o(1)",
        partial(_mixed_sum, 2 * (K * SIGMA**2 + K * (K - 1) * SIGMA**2 / D) / K**2),
        "sum over canaries and noise",
        1,
    ),
    _line(
        "noise-square",
        "The square ⟨cᵢ, Z⟩² is chi-squared with one degree of freedom, and Var[⟨cᵢ, σZ⟩²] = 2σ⁴",
        partial(_squared_product, 2 * SIGMA**4),
    ),
    _line(
        "noise-square.sum",
        "Together, (1/k²)Σᵢ Var[⟨cᵢ, σZ⟩²] = 2σ⁴/k = o(1)",
        partial(_noise_sum, 2 * SIGMA**4 / K),
        "sum over noise",
        1,
    ),
)
