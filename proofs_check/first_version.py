"""The first version's own argument for its estimator, line by line.

It lets d and k grow, "for example" with k = √d. Its steps hold for k = o(d), which it does not say, and some of them
fail for k in proportion to d. R is the release, C the sum of the canaries, and Z here has the standard deviation σ.
"""

from collections.abc import Callable

import sympy

from canaryproof.proofs_check.joint_law import fixed_number, remainder
from canaryproof.proofs_check.lines import Judgement, Kind, Line, held
from canaryproof.proofs_check.regime import in_proportion, limit, text, vanishes
from canaryproof.proofs_check.release_moments import moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, Z, expectation

_SOURCE = "Andrew et al., arXiv 2302.03098v1, Section 3"

DISPLAYS = {"v1: inner products": 2}


def _few_canaries(holds: bool, fails: bool, finding: str, beyond: str) -> Judgement:
    """Judge a limit that holds for k = o(d), and fails for k in proportion to d."""
    if holds and fails:
        return Judgement(Kind.HYPOTHESIS, f"holds for k = o(d), which the text does not ask: {finding}; {beyond}", {})
    return held(holds, finding)


def _coordinates() -> Judgement:
    """A canary of d coordinates against N(0, I/d): the length tells them apart, a fixed number of coordinates not."""
    length = sympy.cancel(expectation((Z, Z), (Z, Z)) / D**2 - 1)
    fixed = sympy.limit(expectation(("i", "e"), ("i", "e"), ("i", "e"), ("i", "e")) * D**2, D, sympy.oo)
    same = length == 0
    finding = (
        f"a fixed number of coordinates tends to independent normals (d²E x⁴ → {text(fixed)}); all d together do not: "
        f"‖Z‖²/d has variance {text(length)}, a canary's length none, and the total variation is 1 for every d"
    )
    return Judgement(Kind.EXACT if same else Kind.HYPOTHESIS, finding, {"variance_of_length": text(length)})


def _with_sum() -> Judgement:
    """⟨cⱼ, C⟩ for C = Σcᵢ: mean, variance and fourth moment against N(1, (k − 1)/d)."""
    others = K - 1
    spread = sympy.cancel(others * expectation(("i", "j"), ("i", "j")))
    fourth_each = expectation(*([("i", "j")] * 4))
    # Given cⱼ the k − 1 products are independent and alike.
    fourth = others * fourth_each + 3 * others * (others - 1) * expectation(("i", "j"), ("i", "j")) ** 2
    excess = sympy.factor(sympy.cancel(fourth / spread**2 - 3))
    exact = sympy.cancel(spread - (K - 1) / D) == 0 and excess == 0
    finding = f"mean 1 and variance {text(spread)} as printed; the excess kurtosis is {text(excess)} and not 0"
    if exact:
        return Judgement(Kind.EXACT, finding, {})
    fine = sympy.cancel(spread - (K - 1) / D) == 0 and limit(excess) == 0
    return Judgement(Kind.LEADING_ORDER if fine else Kind.FALSE, finding, {"excess_kurtosis": text(excess)})


def _with_noise() -> Judgement:
    found = [expectation(*([("i", Z)] * (2 * p))) for p in range(1, 5)]
    shown = ", ".join(map(text, found))
    return held(found == [1, 3, 15, 105], f"even moments in units of σ: {shown}: N(0, σ²) for all d")


def _dot_product_limit() -> Judgement:
    rest = remainder()
    return _few_canaries(
        vanishes(rest),
        in_proportion(rest) != 0,
        f"⟨cⱼ, R⟩ − 1 − ⟨cⱼ, Z⟩ has mean square {text(rest)} and ⟨cⱼ, Z⟩ ~ N(0, σ²)",
        f"for k = κd the mean square tends to {text(in_proportion(rest))}",
    )


def _lengths() -> Judgement:
    """Relative variances of ‖Z‖² and ‖C‖²."""
    noise = sympy.cancel(expectation((Z, Z), (Z, Z)) / expectation((Z, Z)) ** 2 - 1)
    square, spread = (part.subs(SIGMA, 0) for part in moments("A"))
    canaries = sympy.cancel(spread / square**2)
    holds = sympy.limit(noise, D, sympy.oo) == 0 and vanishes(canaries) and sympy.cancel(D * square - K) == 0
    shown = f"{text(noise)} and {text(canaries)}"
    return held(holds, f"‖C‖² has mean k; the squared lengths' relative variances are {shown}")


def _release_length() -> Judgement:
    square, spread = moments("A")
    return _few_canaries(
        limit(square) == SIGMA**2 and vanishes(spread),
        in_proportion(square) != SIGMA**2,
        f"‖R‖²/d has mean {text(square)} and a variance that vanishes",
        f"for k = κd it tends to {text(in_proportion(square))}",
    )


def _cosine_limit() -> Judgement:
    holds, pieces = fixed_number()
    beyond = in_proportion(moments("A")[0])
    return _few_canaries(
        holds, beyond != SIGMA**2, f"each √d·gⱼ → N(1/σ, 1): {pieces}", f"for k = κd, ‖R‖²/d → {text(beyond)}"
    )


def _independence() -> Judgement:
    """Dependence, which a shift of the common mean is not."""
    # Given ‖ρ‖ = r, canaries N(0, I/d) have normal cosines; x = k/(dσ² + k) is all that ties them together.
    tie = K / (D * SIGMA**2 + K)
    holds = fixed_number()[0] and vanishes(tie)
    finding = (
        "the text says it of the mutual information. For canaries N(0, I/d) it is proven for k = o(d): the total "
        "correlation is at most (−log(1 − x) − x)/2 + (k/2)·E(√d·r/(dσ² + k) − m)², x = k/(dσ² + k), and vanishes; for "
        "unit canaries we prove closeness to independence in total variation, for k³ = o(d²) (corrected_proof.md, 8), "
        "which the text's k = √d satisfies"
    )
    return Judgement(Kind.HYPOTHESIS if holds else Kind.FALSE, finding, {"x": text(tie)})


def _estimator() -> Judgement:
    square, spread = moments("A")
    beyond = in_proportion(square)
    return _few_canaries(
        limit(square) == SIGMA**2 and vanishes(spread) and vanishes(moments("B")[1]),
        beyond != SIGMA**2,
        f"μ̂√d = B/√A → 1/σ; at finite d and k its centre is 1/√({text(square)})",
        f"for k = κd, 1/(μ̂√d) → √({text(beyond)})",
    )


def _length_alone() -> Judgement:
    """Without canaries the release is noise alone."""
    square, spread = (part.subs(K, 0) for part in moments("A"))
    holds = sympy.cancel(square - SIGMA**2) == 0 and sympy.limit(spread, D, sympy.oo) == 0
    return held(
        holds, f"without canaries ‖R‖²/d has mean {text(square)} and variance {text(spread)}; with them, σ² + k/d"
    )


def _line(topic: str, statement: str, judge: Callable[[], Judgement], row: int = 0) -> Line:
    display = "v1: inner products" if row else ""
    return Line(f"v1.section-3.{topic}", _SOURCE, statement, judge, display, row)


LINES = (
    _line("consistency", "as d and k become large, ε̂ converges to the mechanism's ε", _estimator),
    _line("canary-law", "for large d the canary law tends to N(0, I/d)", _coordinates),
    _line("inner-sum", "⟨cⱼ, C⟩ ~ N(1, (k − 1)/d)", _with_sum, 1),
    _line("inner-noise", "⟨cⱼ, Z⟩ ~ N(0, σ²)", _with_noise, 2),
    _line("inner-limit", "⟨cⱼ, R⟩ tends to N(1, σ²) in distribution", _dot_product_limit),
    _line("lengths", "‖Z‖ concentrates around σ√d and ‖C‖ around √k", _lengths),
    _line("release-length", "Z dominates R, whose length concentrates around σ√d", _release_length),
    _line("cosine-limit", "the gⱼ tend to N(1/(σ√d), 1/d)", _cosine_limit),
    _line("independence", "the mutual information of the gⱼ tends to 0 as d grows", _independence),
    _line("estimator", "1/(μ̂√d) tends to σ", _estimator),
    Line(
        "v1.footnote-2",
        "Andrew et al., arXiv 2302.03098v1, footnote 2",
        "without canaries, ‖R‖/√d would estimate σ",
        _length_alone,
    ),
)
