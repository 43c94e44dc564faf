"""Theorem 3.3 with data vectors, and beyond k = o(d): where it holds, and what the limits are where it does not.

Data vectors x₁, …, xₙ enter only through s = ‖Σxᵢ‖ (``sphere_moments``). If s²/d → β, k → ∞ and k = o(d), then
√d·μ̂ → 1/√(σ² + β) and d·σ̂² → 1. The theorem's conclusion therefore holds if and only if s² = o(d). As s ≤ n for vectors
of norm at most 1, n = o(√d) suffices whatever the data are; n = o(d), as the footnote has it, suffices for orthogonal
or independent directions (s² ≈ n), and not for aligned ones (s = n).
"""

import sympy
from sympy import Expr, Rational, Symbol, sqrt

from canaryproof.proofs_check.lines import Judgement, Kind, Line, held
from canaryproof.proofs_check.regime import KAPPA, in_proportion, limit, settled, text
from canaryproof.proofs_check.release_moments import moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, S, expectation, mean

_BETA = Symbol("beta", nonnegative=True)


def limits_with_data(share: Expr | int) -> tuple[Expr, Expr, bool]:
    """Find the limits of √d·μ̂ and d·σ̂² where s² = share·d and 1 ≪ k ≪ d.

    Parameters
    ----------
    share
        Limit of s²/d.

    Returns
    -------
    Both limits, functions of σ and of what ``share`` depends on, and whether A, B and W concentrate.
    """
    (alpha, var_a), (centre, var_b), (omega, var_w) = (
        tuple(part.subs(S, sqrt(share * D)) for part in moments(name, data=True)) for name in "ABW"
    )
    concentrate = all(limit(part) == 0 for part in (var_a, var_b, var_w))
    at_alpha, at_centre, at_omega = (settled(part) for part in (alpha, centre, omega))
    return at_centre / sqrt(at_alpha), sympy.cancel(at_omega / at_alpha), concentrate


def _limit_law() -> Judgement:
    mean_limit, variance_limit, concentrate = limits_with_data(_BETA)
    holds = concentrate and sympy.simplify(mean_limit - 1 / sqrt(SIGMA**2 + _BETA)) == 0 and variance_limit == 1
    finding = f"√d·μ̂ → {text(mean_limit)}, d·σ̂² → {text(variance_limit)}; equal to 1/σ and 1 if and only if β = 0"
    return held(holds, finding, concentrates=concentrate)


def _footnote() -> Judgement:
    """Take n = √d equal unit vectors: n = o(d), and s² = n² = d."""
    aligned, _, concentrate = limits_with_data(1)
    # n orthogonal unit vectors have s² = n: with n = o(d), s²/d → 0.
    spread, _, _ = limits_with_data(0)
    fails = concentrate and sympy.simplify(aligned - 1 / SIGMA) != 0
    holds_orthogonal = sympy.simplify(spread - 1 / SIGMA) == 0
    at_one = text(aligned.subs(SIGMA, 1))
    finding = (
        f"n = √d equal unit vectors have s² = n² = d, and √d·μ̂ → {text(aligned)} ({at_one} at σ = 1); needed is "
        f"‖Σxᵢ‖² = o(d), as for orthogonal data with n = o(d), or for any data with n = o(√d)"
    )
    if fails:
        return Judgement(Kind.FALSE, finding, {"limit": text(aligned), "holds_for_orthogonal_data": holds_orthogonal})
    return Judgement(Kind.EXACT, "the limit is 1/σ for aligned data too", {"limit": text(aligned)})


def _independent_data() -> Judgement:
    """E‖Σxᵢ‖² over independent uniform directions is n (the same sum as that of the canaries)."""
    square = mean(((1, (("i", "j"),)),)).subs(K, Symbol("n", positive=True))
    holds = square == Symbol("n", positive=True)
    return held(holds, f"E‖Σxᵢ‖² = {text(square)}", square=text(square))


def _proportional() -> Judgement:
    (alpha, var_a), (centre, var_b), (omega, var_w) = (
        tuple(in_proportion(part) for part in moments(name)) for name in "ABW"
    )
    concentrate = all(part == 0 for part in (var_a, var_b, var_w))
    holds = concentrate and centre == 1 and alpha == SIGMA**2 + KAPPA and sympy.cancel(omega / alpha) == 1
    finding = f"k = κd: √d·μ̂ → 1/√({text(alpha)}), not 1/σ; d·σ̂² → 1 all the same"
    return held(holds, finding, concentrates=concentrate)


def _fixed_count() -> Judgement:
    """With k fixed, Var B → σ²/k as d → ∞, while A → σ²: the mean does not settle."""
    spread = sympy.limit(moments("B")[1], D, sympy.oo)
    holds = sympy.cancel(spread - SIGMA**2 / K) == 0
    finding = f"k fixed: Var[(1/k)Σ⟨cᵢ, ρ⟩] → {text(spread)} and not 0"
    return held(holds, finding, limit=text(spread))


def _no_matter_how_many() -> Judgement:
    """Expected squared length of the other canaries' components along one canary: Σ_{j≠i} E⟨cᵢ, cⱼ⟩²."""
    along = sympy.cancel((K - 1) * expectation(("i", "j"), ("i", "j")))
    at_dim = sympy.cancel(along.subs(K, D + 1))
    each = expectation(("i", "j"), ("i", "j"))
    # More than d vectors: the Gram matrix has trace k and rank at most d, so that its squares sum to k²/d or more.
    coherence = sympy.cancel((K**2 / D - K) / (K * (K - 1)))
    grows = at_dim == 1 and sympy.cancel(coherence - (K - D) / (D * (K - 1))) == 0
    finding = (
        f"a pair has mean square {text(each)}, but one canary has {text(along)} with all others together, which is "
        f"{text(at_dim)} at k = d + 1; and some pair's square is at least (k − d)/(d(k − 1)) (Welch), "
        f"so that more than d vectors cannot be orthogonal: k = o(d) is needed, and is what the theorem assumes"
    )
    return Judgement(Kind.FALSE if grows else Kind.EXACT, finding, {"along_one": text(along), "pair": text(each)})


def _ratio() -> Judgement:
    """The ratio of k to n enters none of the moments; k/d and s²/d do, and s² ≤ n² is all that n tells."""
    footnote = _footnote()
    finding = (
        "the ratio does not enter: only k/d and ‖Σxᵢ‖²/d do; but both must be small, and n = o(d) does not make the "
        f"second small: {footnote.finding}"
    )
    return Judgement(Kind.HYPOTHESIS if footnote.kind is Kind.FALSE else Kind.EXACT, finding, footnote.evidence)


def _at_table_2() -> Judgement:
    """10⁵ aligned data vectors at d = 10⁶: the factor by which every cosine shrinks."""
    share = Rational(10**5) ** 2 / 10**6
    shrunk, _, _ = limits_with_data(share)
    value = sympy.sqrt(SIGMA**2 + share)
    holds = sympy.simplify(shrunk - 1 / value) == 0
    at = float((1 / value).subs(SIGMA, Rational(541, 1000)))
    finding = (
        f"s²/d = {share}: √d·μ̂ → 1/√(σ² + {share}), {at:.4g} at σ = 0.541 where 1/σ = {1 / 0.541:.4g}: n = o(d) data "
        f"vectors hide what the canaries should show"
    )
    return held(holds, finding, share=float(share))


LINES = (
    Line(
        "final.footnote-2",
        "Andrew et al., arXiv 2302.03098, footnote 2 (the same in the submission)",
        "Theorem 3.3 extends to data vectors if n = o(d)",
        _footnote,
    ),
    Line(
        "review.ratio-of-clients",
        "Reviews, authors' answer on the ratio of canaries to clients",
        "as long as d dominates n and k, their ratio does not matter",
        _ratio,
    ),
    Line(
        "review.orthogonal-however-many",
        "Reviews, authors' answer on the ratio of canaries to clients",
        "in high dimension canaries are orthogonal to the data and to each other however many there are",
        _no_matter_how_many,
    ),
    Line(
        "ours.data.limits",
        "proofs_check.data_vectors",
        "if ‖Σxᵢ‖²/d → β, then √d·μ̂ → 1/√(σ² + β) and d·σ̂² → 1; Theorem 3.3 holds if and only if β = 0",
        _limit_law,
        ours=True,
    ),
    Line(
        "ours.data.independent",
        "proofs_check.data_vectors",
        "independent uniform data directions have E‖Σxᵢ‖² = n: n = o(d) suffices for them",
        _independent_data,
        ours=True,
    ),
    Line(
        "ours.data.dilution",
        "proofs_check.data_vectors",
        "at d = 10⁶, 10⁵ equal unit vectors shrink all cosines by √(1 + 10⁴/σ²)",
        _at_table_2,
        ours=True,
    ),
    Line(
        "ours.count.proportional",
        "proofs_check.data_vectors",
        "for k = κd, √d·μ̂ → 1/√(σ² + κ) and d·σ̂² → 1: Theorem 3.3 needs k = o(d)",
        _proportional,
        ours=True,
    ),
    Line(
        "ours.count.fixed",
        "proofs_check.data_vectors",
        "for fixed k the mean of the cosines does not concentrate: Theorem 3.3 needs k → ∞",
        _fixed_count,
        ours=True,
    ),
)
DISPLAYS: dict[str, int] = {}
