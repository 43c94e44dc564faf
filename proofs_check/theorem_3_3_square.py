"""Theorem 3.3: the variance of the cosines, line by line.

In the notation of ``release_moments``: d·σ̂² = (T − B²)/A. The proof shows T → 1 + σ². The mean of T lacks the squares
of k − 1 other canaries, (k − 1)/d in all. Its variance is taken as a sum of variances: the cross terms between
different i, and the four-fold (not two-fold) weight of the terms between ⟨cᵢ, cⱼ⟩ and the noise, are lost, which is an
error in the leading order. The bounds of the terms that are printed hold, and so does what is concluded.
"""

from collections.abc import Callable
from functools import partial

import sympy
from sympy import Expr, Symbol

from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.lines import Judgement, Kind, held
from canaryproof.proofs_check.regime import bounded, equation, limit, settled, vanishes
from canaryproof.proofs_check.spelling import text
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
    sum_of_variances,
    times,
    vector,
)
from canaryproof.proofs_check.theorem_3_3 import chain, converges, line, order, variance

DISPLAYS = {
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

_NORM = Symbol("norm", positive=True)
# The three products of the variance's sum, as inner products.
_IJ, _IL, _JI, _IZ = ("i", "j"), ("i", "l"), ("j", "i"), ("i", Z)


def nonnegative(expression: Expr, least_dim: int, least_count: int) -> bool:
    """Whether an expression is proven to be ≥ 0 for all d and k from these on, as a polynomial in the excesses."""
    u, v = Symbol("u", nonnegative=True), Symbol("v", nonnegative=True)
    shifted = sympy.cancel(expression.subs({D: least_dim + u, K: least_count + v}))
    parts = (sympy.Poly(sympy.expand(part), u, v) for part in sympy.fraction(shifted))
    return all(coefficient >= 0 for part in parts for coefficient in part.coeffs())


def _definition(weight: Expr) -> Judgement:
    """(1/k)Σgᵢ² − weight·(Σgᵢ)² is the mean squared deviation: for three symbols, and so for all k by its form."""
    g = sympy.symbols("g1:4", real=True)
    centre = sympy.Add(*g) / 3
    printed = sum(x**2 for x in g) / 3 - weight.subs(K, 3) * sympy.Add(*g) ** 2
    difference = sum((x - centre) ** 2 for x in g) / 3 - printed
    return held(sympy.expand(difference) == 0, "by definition: the mean of squares less the squared mean")


def _rewriting(factor: Expr) -> Judgement:
    x = sympy.symbols("x1:4", real=True)
    g = [item / _NORM for item in x]
    left = D * (sum(item**2 for item in g) / 3 - (sum(g) / 3) ** 2)
    right = factor * (sum(item**2 for item in x) / 3 - (sum(x) / 3) ** 2)
    return held(sympy.simplify(left - right) == 0, "‖ρ‖² comes out of both terms")


def _sufficient(target: Expr) -> Judgement:
    """(T − B²)/A, a continuous function of the three at σ > 0, is to tend to 1 if T tends to the target."""
    product, norm = (settled(release_moments.moments(name)[0]) for name in "BA")
    value = sympy.cancel((target - product**2) / norm)
    return held(value == 1, f"({text(target)} − {text(product)}²)/({text(norm)}) = {text(value)}")


def _same_mean(written: Expr) -> Judgement:
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


def _variance_of_square(written: Callable[[], Expr]) -> Judgement:
    printed, exact = written(), release_moments.moments("T")[1]
    judged = equation(printed, exact, vanishes)
    if judged.kind is Kind.EXACT:
        return judged
    ratio = limit(sympy.cancel(printed / exact))
    evidence = {
        **judged.evidence,
        "leading_printed": text(limit(K * printed)),
        "leading_exact": text(limit(K * exact)),
        "limit_of_ratio": text(ratio),
    }
    shown = judged.evidence["ratio_at_d1e6_k1e3_sigma1"]
    finding = (
        f"k times the printed variance tends to {text(limit(K * printed))}, k times the exact one to "
        f"{text(limit(K * exact))}; printed/exact = {shown:.6g} at d = 1e6, k = 1e3, σ = 1; the exact one is in the "
        f"evidence; o(1) {'stands' if vanishes(exact) else 'falls'}"
    )
    return Judgement(judged.kind, finding, evidence)


# The two cases of the display: j = i (or ℓ = i), and i, j, ℓ all different.
_CASES: dict[str, tuple[tuple[Edge, Edge], Expr]] = {
    "j = i": ((("i", "i"), _IL), 1 / D),
    "j ≠ i ≠ ℓ": ((_IJ, _IL), 1 / D**2),
}


def _by_case(value: Callable[[Edge, Edge], Expr] | None = None) -> Judgement:
    """Judge a row of the display for j ≠ ℓ in both cases: by default the one that prints their values."""
    found = {name: (value(*edges) if value else row, variance(*edges)) for name, (edges, row) in _CASES.items()}
    said = "" if value else "printed "
    finding = "; ".join(f"{name}: {said}{text(row)}, exact {text(exact)}" for name, (row, exact) in found.items())
    return held(all(sympy.cancel(row - exact) == 0 for row, exact in found.values()), finding)


def _conditioned(first: Edge, second: Edge) -> Expr:
    """E[E[a²|cᵢ]·E[b²|cᵢ]]: given cᵢ, each factor is a constant, its own expectation."""
    return expectation(first, first) * expectation(second, second)


def _at_most(left: Expr, right: Expr) -> Judgement:
    return held(nonnegative(right - left, 2, 2), f"{text(left)} ≤ {text(right)} for all d ≥ 2, k ≥ 2")


def _together(bound: Expr) -> Judgement:
    total = sympy.cancel(sum_of_variances(_IJ, _IL) / K**2)
    facts = {"bound": nonnegative(bound - total, 2, 2), "O(1/d)": bounded(D * bound)}
    shown = text(limit(D * bound))
    return held(facts, f"the sum is {text(total)}, the bound {text(bound)}; d times it tends to {shown}")


def _mixed_sum(printed: Expr) -> Judgement:
    total = sympy.cancel(2 * SIGMA**2 * sum_of_variances(_IJ, _IZ) / K**2)
    facts = {"equal": sympy.cancel(total - printed) == 0, "o(1)": vanishes(printed)}
    return held(facts, f"the sum is {text(total)}, printed {text(printed)}, limit {text(limit(printed))}")


def _noise_sum(printed: Expr) -> Judgement:
    total = sympy.cancel(SIGMA**4 * sum_of_variances(_IZ, _IZ) / K**2)
    facts = {"equal": sympy.cancel(total - printed) == 0, "o(1)": vanishes(printed)}
    return held(facts, f"the sum is {text(total)}, limit {text(limit(printed))}")


def _chi_squared(spread: Expr) -> Judgement:
    """Moments of ⟨cᵢ, Z⟩: those of N(0, 1), which has no others' moments."""
    found = [expectation(*([_IZ] * (2 * p))) for p in range(1, 5)]
    facts = {"moments": found == [1, 3, 15, 105], "variance": SIGMA**4 * variance(_IZ, _IZ) == spread}
    return held(facts, f"even moments of ⟨cᵢ, Z⟩ {', '.join(map(text, found))}, as N(0, 1) has; Var⟨cᵢ, Z⟩² = 2")


LINES = (
    *chain(
        "deviation",
        "d·σ̂²",
        ("d·σ̂² = d((1/k)Σgᵢ² − ((1/k)Σgᵢ)²)", partial(_definition, 1 / K**2)),
        ("= (d/‖ρ‖²)((1/k)Σ⟨cᵢ, ρ⟩² − ((1/k)Σ⟨cᵢ, ρ⟩)²)", partial(_rewriting, D / _NORM**2)),
    ),
    line("sufficient", "it suffices to show (1/k)Σ⟨cᵢ, ρ⟩² → 1 + σ²", partial(_sufficient, 1 + SIGMA**2)),
    line("target-square", "(1/k)Σ⟨cᵢ, ρ⟩² → 1 + σ² in probability", partial(converges, "T", 1 + SIGMA**2)),
    *chain(
        "square-mean",
        "mean of (1/k)Σ⟨cᵢ, ρ⟩²",
        ("E[(1/k)Σ⟨cᵢ, ρ⟩²] = (1/k)Σᵢ E[(Σⱼ⟨cᵢ, cⱼ⟩ + ⟨cᵢ, σZ⟩)²]", lambda: _same_mean(_square())),
        ("= (1/k)Σᵢ(Σⱼₗ E[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] + 2Σⱼ E[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩] + E⟨cᵢ, σZ⟩²)", lambda: _same_mean(_expanded())),
        ("= (1/k)Σᵢ(Σⱼₗ 𝕀{j = i, ℓ = i} + 0 + σ²)", lambda: _same_mean((K + K * SIGMA**2) / K)),
        ("= 1 + σ²", lambda: _same_mean(1 + SIGMA**2)),
    ),
    line(
        "square-variance",
        "Var[(1/k)Σ⟨cᵢ, ρ⟩²] = (1/k²)Σᵢ(Σⱼₗ Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] + 2Σⱼ Var[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩] + Var⟨cᵢ, σZ⟩²)",
        partial(_variance_of_square, _printed_variance),
        "variance of (1/k)Σ⟨cᵢ, ρ⟩²",
        1,
    ),
    line(
        "square-variance.small",
        "that variance is o(1)",
        partial(order, "T", 1, "o(1)", vanishes),
    ),
    line(
        "triple.equal",
        "Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] = 0 for i = j = ℓ",
        lambda: equation(sympy.Integer(0), variance(("i", "i"), ("i", "i"))),
    ),
    *chain(
        "triple",
        "variance of ⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩, j ≠ ℓ",
        (
            "Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] = E[⟨cᵢ, cⱼ⟩²⟨cᵢ, cₗ⟩²] − E[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩]²",
            lambda: _by_case(lambda a, b: expectation(a, b, a, b) - expectation(a, b) ** 2),
        ),
        ("= E[E[⟨cᵢ, cⱼ⟩²⟨cᵢ, cₗ⟩² | cᵢ]]", lambda: _by_case(lambda a, b: expectation(a, b, a, b))),
        ("= E[E[⟨cᵢ, cⱼ⟩² | cᵢ]·E[⟨cᵢ, cₗ⟩² | cᵢ]]", lambda: _by_case(_conditioned)),
        ("= 1/d if j = i or ℓ = i, and 1/d² otherwise", _by_case),
    ),
    *chain(
        "fourth",
        "variance of ⟨cᵢ, cⱼ⟩²",
        (
            "for j = ℓ ≠ i: Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] = Var⟨cᵢ, cⱼ⟩²",
            lambda: equation(variance(_IJ, _IJ), variance(_IJ, _JI)),
        ),
        (
            "= E⟨cᵢ, cⱼ⟩⁴ − (E⟨cᵢ, cⱼ⟩²)²",
            lambda: equation(expectation(_IJ, _IJ, _IJ, _IJ) - expectation(_IJ, _IJ) ** 2, variance(_IJ, _IJ)),
        ),
        ("≤ E⟨cᵢ, cⱼ⟩⁴", lambda: _at_most(variance(_IJ, _IJ), expectation(_IJ, _IJ, _IJ, _IJ))),
        ("≤ E⟨cᵢ, cⱼ⟩²", lambda: _at_most(expectation(_IJ, _IJ, _IJ, _IJ), expectation(_IJ, _IJ))),
        ("= 1/d", lambda: equation(1 / D, expectation(_IJ, _IJ))),
    ),
    line(
        "together",
        "(1/k²)Σᵢⱼₗ Var[⟨cᵢ, cⱼ⟩⟨cᵢ, cₗ⟩] ≤ (2k(k − 1)/d + k(k − 1)(k − 2)/d² + k(k − 1)/d)/k² = O(1/d)",
        partial(_together, (2 * K * (K - 1) / D + K * (K - 1) * (K - 2) / D**2 + K * (K - 1) / D) / K**2),
        "sum over canaries",
        1,
    ),
    line(
        "noise.equal",
        "Var[⟨cᵢ, cᵢ⟩⟨cᵢ, σZ⟩] = σ²",
        lambda: equation(SIGMA**2, SIGMA**2 * variance(("i", "i"), _IZ)),
    ),
    *chain(
        "noise",
        "variance of ⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩",
        (
            "for i ≠ j: Var[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩] = E[⟨cᵢ, cⱼ⟩²⟨cᵢ, σZ⟩²] − E[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩]²",
            lambda: equation(
                SIGMA**2 * expectation(_IJ, _IJ, _IZ, _IZ) - SIGMA**2 * expectation(_IJ, _IZ) ** 2,
                SIGMA**2 * variance(_IJ, _IZ),
            ),
        ),
        (
            "= E[E[⟨cᵢ, cⱼ⟩² | cᵢ]·E[⟨cᵢ, σZ⟩² | cᵢ]]",
            lambda: equation(SIGMA**2 * _conditioned(_IJ, _IZ), SIGMA**2 * variance(_IJ, _IZ)),
        ),
        ("= σ²/d", lambda: equation(SIGMA**2 / D, SIGMA**2 * variance(_IJ, _IZ))),
    ),
    line(
        "noise.sum",
        "(2/k²)Σᵢⱼ Var[⟨cᵢ, cⱼ⟩⟨cᵢ, σZ⟩] = (2/k²)(kσ² + k(k − 1)σ²/d) = o(1)",
        partial(_mixed_sum, 2 * (K * SIGMA**2 + K * (K - 1) * SIGMA**2 / D) / K**2),
        "sum over canaries and noise",
        1,
    ),
    line(
        "noise-square",
        "⟨cᵢ, Z⟩² is chi-squared with one degree of freedom, and Var⟨cᵢ, σZ⟩² = 2σ⁴",
        partial(_chi_squared, 2 * SIGMA**4),
    ),
    line(
        "noise-square.sum",
        "(1/k²)Σᵢ Var⟨cᵢ, σZ⟩² = 2σ⁴/k = o(1)",
        partial(_noise_sum, 2 * SIGMA**4 / K),
        "sum over noise",
        1,
    ),
)
