"""Theorem 3.3 with data vectors, and beyond k = o(d): where it holds, and what the limits are where it does not.

Data vectors x₁, …, xₙ enter only through s = ‖Σxᵢ‖ (``sphere_moments``). If s²/d → β, k → ∞ and k = o(d), then
√d·μ̂ → 1/√(σ² + β) and d·σ̂² → 1. The theorem's conclusion therefore holds if and only if s² = o(d). As s ≤ n for vectors
of norm at most 1, n = o(√d) suffices whatever the data are; n = o(d), as the footnote has it, suffices for orthogonal
or independent directions (s² ≈ n), and not for aligned ones (s = n).
"""

from functools import partial

import sympy
from sympy import Expr, Rational, Symbol, sqrt

from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.displayed_lines import Kind, held, judged, kind_of, line
from canaryproof.proofs_check.formula_text import text
from canaryproof.proofs_check.limits import KAPPA, in_proportion, limit, settled
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, S, expectation, mean
from canaryproof.verify.papers.check.results import Outcome

_BETA, _DATA = Symbol("beta", nonnegative=True), Symbol("n", positive=True)


def limits_with_data(share: Expr | int) -> tuple[Expr, Expr, bool]:
    """Find the limits of √d·μ̂ and d·σ̂² where s² = share·d and 1 ≪ k ≪ d, and whether A, B and W concentrate."""
    (alpha, var_a), (centre, var_b), (omega, var_w) = (
        tuple(part.subs(S, sqrt(share * D)) for part in release_moments.moments(name, data=True)) for name in "ABW"
    )
    concentrate = all(limit(part) == 0 for part in (var_a, var_b, var_w))
    at_alpha, at_centre, at_omega = (settled(part) for part in (alpha, centre, omega))
    return at_centre / sqrt(at_alpha), sympy.cancel(at_omega / at_alpha), concentrate


def _limit_law(mean_printed: Expr, variance_printed: Expr) -> Outcome:
    mean_limit, variance_limit, concentrate = limits_with_data(_BETA)
    facts = {
        "concentrates": concentrate,
        "mean": sympy.simplify(mean_limit - mean_printed) == 0,
        "variance": variance_limit == variance_printed,
        "the theorem's limits only without data": sympy.solve(mean_limit - 1 / SIGMA, _BETA) == [0],
    }
    finding = f"√d·μ̂ → {text(mean_limit)}, d·σ̂² → {text(variance_limit)}; equal to 1/σ and 1 if and only if β = 0"
    return held(facts, finding)


def _footnote(most: Expr) -> Outcome:
    """Judge n = o(most) data vectors: √d equal unit vectors, if they are as few as that, have s² = n² = d.

    The text does not say what data are meant.
    """
    admitted = sympy.limit(sqrt(D) / most, D, sympy.oo) == 0
    aligned, _, concentrate = limits_with_data(1)
    # n orthogonal unit vectors have s² = n: with n = o(d), and no more, s²/d → 0.
    spread, _, _ = limits_with_data(0)
    fails = concentrate and sympy.simplify(aligned - 1 / SIGMA) != 0
    holds_orthogonal = sympy.limit(most / D, D, sympy.oo).is_finite and sympy.simplify(spread - 1 / SIGMA) == 0
    evidence = {"limit": text(aligned), "holds_for_orthogonal_data": holds_orthogonal}
    if admitted and fails:
        finding = (
            "Only if ‖Σxᵢ‖² = o(d), as for orthogonal data with n = o(d) and for any data with n = o(√d): for n = √d "
            f"equal unit vectors √d·μ̂ → {text(aligned)} instead of 1/σ"
        )
        return judged(Kind.HYPOTHESIS if holds_orthogonal else Kind.FALSE, finding, evidence)
    return held(holds_orthogonal, f"n = o({text(most)}): s² ≤ n² = o(d) whatever the data are", **evidence)


def _independent_data(printed: Expr) -> Outcome:
    """E‖Σxᵢ‖² over independent uniform directions: the same sum as that of the canaries."""
    square = mean(((1, (("i", "j"),)),)).subs(K, _DATA)
    return held(square == printed, f"E‖Σxᵢ‖² = {text(square)}", square=text(square))


def _proportional(mean_printed: Expr, variance_printed: Expr) -> Outcome:
    (alpha, var_a), (centre, var_b), (omega, var_w) = (
        tuple(in_proportion(part) for part in release_moments.moments(name)) for name in "ABW"
    )
    mean_limit, variance_limit = sympy.sympify(centre) / sqrt(alpha), sympy.cancel(sympy.sympify(omega) / alpha)
    facts = {
        "concentrates": all(part == 0 for part in (var_a, var_b, var_w)),
        "mean": sympy.simplify(mean_limit - mean_printed) == 0,
        "variance": variance_limit == variance_printed,
    }
    finding = f"k = κd: √d·μ̂ → {text(mean_limit)}, not 1/σ; d·σ̂² → {text(variance_limit)} all the same"
    return held(facts, finding)


def _fixed_count(variance: Expr) -> Outcome:
    """With k fixed, Var B → variance as d → ∞, while A → σ²: the mean does not settle."""
    spread = sympy.limit(release_moments.moments("B")[1], D, sympy.oo)
    facts = {"variance": sympy.cancel(spread - variance) == 0, "not 0": spread != 0}
    return held(facts, f"k fixed: Var[(1/k)Σ⟨cᵢ, ρ⟩] → {text(spread)} and not 0", limit=text(spread))


def _no_matter_how_many(count: Expr, within: Expr) -> Outcome:
    """Expected squared length of the other canaries' components along one canary: Σ_{j≠i} E⟨cᵢ, cⱼ⟩².

    For a number of canaries that d does not dominate, and for one ``within`` the condition that d does.
    """
    each = expectation(("i", "j"), ("i", "j"))
    along = sympy.cancel((K - 1) * each)
    left, inside = (sympy.limit(along.subs(K, number), D, sympy.oo) for number in (count, within))
    # More than d vectors: the Gram matrix has trace k and rank at most d, so that its squares sum to k²/d or more.
    welch = sympy.cancel((K**2 / D - K) / (K * (K - 1)) - (K - D) / (D * (K - 1))) == 0
    finding = (
        "the sentence before has the condition that d dominates the number k of canaries: a pair has mean square "
        f"{text(each)}, and one canary {text(along)} with all others together, which tends to {text(inside)} for k = "
        f"{text(within)}. Without it, as for k = {text(count)}, pairs do so, but one canary has {text(left)} with all "
        "others: more than d vectors cannot be orthogonal (Welch)"
    )
    evidence = {"along_one": text(along), "pair": text(each), "welch": welch}
    return judged(Kind.EXACT if inside == 0 else Kind.FALSE, finding, evidence)


def _ratio(most: Expr) -> Outcome:
    """The ratio of k to n enters none of the moments; k/d and s²/d do, and s² ≤ n² is all that n tells."""
    footnote = _footnote(most)
    finding = (
        "Only if ‖Σxᵢ‖² = o(d), which n = o(d) does not give: with the same k, n = √d equal unit vectors have the "
        f"limit {footnote.evidence.get('limit')} of √d·μ̂, and n = 1 has 1/σ"
    )
    kind = kind_of(footnote)
    return footnote if kind is Kind.EXACT else judged(kind, finding, footnote.evidence)


def _dilution(count: int, dim: int, factor: Expr) -> Outcome:
    """The factor by which this many equal unit vectors shrink every cosine in this dimension."""
    share = Rational(count) ** 2 / dim
    shrunk, _, _ = limits_with_data(share)
    at = float(shrunk.subs(SIGMA, Rational(541, 1000)))
    finding = (
        f"s²/d = {share}: √d·μ̂ → {text(shrunk)}, {at:.4g} at σ = 0.541 where 1/σ = {1 / 0.541:.4g}: n = o(d) data "
        f"vectors hide what the canaries should show"
    )
    return held(sympy.simplify(1 / SIGMA / shrunk - factor) == 0, finding, share=float(share))


LINES = (
    line(
        "final.footnote-2",
        "footnote 2",
        "Theorem 3.3 extends to data vectors if n = o(d)",
        partial(_footnote, D),
    ),
    line(
        "review.ratio-of-clients",
        "authors' answer on the ratio of canaries to clients",
        "As long as d asymptotically dominates n and k, the ratio of canaries to clients should not matter",
        partial(_ratio, D),
    ),
    line(
        "review.orthogonal-however-many",
        "authors' answer on the ratio of canaries to clients",
        "So long as d dominates n and k, canaries become in high dimensions orthogonal to the data and to each other, "
        "no matter how many there are",
        partial(_no_matter_how_many, D + 1, sqrt(D)),
    ),
    line(
        "ours.data.limits",
        "proofs_check.data_vectors",
        "if ‖Σxᵢ‖²/d → β, then √d·μ̂ → 1/√(σ² + β) and d·σ̂² → 1; Theorem 3.3 holds if and only if β = 0",
        partial(_limit_law, 1 / sqrt(SIGMA**2 + _BETA), sympy.Integer(1)),
        own=True,
    ),
    line(
        "ours.data.independent",
        "proofs_check.data_vectors",
        "independent uniform data directions have E‖Σxᵢ‖² = n: n = o(d) suffices for them",
        partial(_independent_data, _DATA),
        own=True,
    ),
    line(
        "ours.data.dilution",
        "proofs_check.data_vectors",
        "at d = 10⁶, 10⁵ equal unit vectors shrink all cosines by √(1 + 10⁴/σ²)",
        partial(_dilution, 10**5, 10**6, sqrt(1 + 10**4 / SIGMA**2)),
        own=True,
    ),
    line(
        "ours.count.proportional",
        "proofs_check.data_vectors",
        "for k = κd, √d·μ̂ → 1/√(σ² + κ) and d·σ̂² → 1: Theorem 3.3 needs k = o(d)",
        partial(_proportional, 1 / sqrt(SIGMA**2 + KAPPA), sympy.Integer(1)),
        own=True,
    ),
    line(
        "ours.count.fixed",
        "proofs_check.data_vectors",
        "for fixed k the mean of the cosines does not concentrate: Theorem 3.3 needs k → ∞",
        partial(_fixed_count, SIGMA**2 / K),
        own=True,
    ),
)
DISPLAYS: dict[str, int] = {}
