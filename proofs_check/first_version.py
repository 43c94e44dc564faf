"""The first version's own argument for its estimator, line by line.

It lets d and k grow, "for example" with k = √d, and then says of steps that they hold as d grows. These hold for a
fixed k and for k = o(d). What needs many canaries holds where k grows as o(d), as in the text's example, and fails for
k in proportion to d. R is the release, C the sum of the canaries, and Z here has the standard deviation σ.
"""

from collections.abc import Callable
from functools import partial

import sympy
from sympy import Expr, sqrt

from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.displayed_lines import Kind, held, judged, line
from canaryproof.proofs_check.formula_text import text
from canaryproof.proofs_check.joint_law import X, gaussian_divergence, limit_law, remainder
from canaryproof.proofs_check.limits import in_proportion, limit, vanishes
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, Z, expectation
from canaryproof.verify.papers.check.results import Check, Outcome, Verdict

_SOURCE = "Section 3"

DISPLAYS = {"v1: inner products": 2}


def _few_canaries(holds: bool, fails: bool, finding: str, beyond: str) -> Outcome:
    """Judge a limit of large d and k that holds for k = o(d), and fails for k in proportion to d."""
    if holds and fails:
        where = "holds if k grows as o(d), as in the text's example k = √d; that it must is not said"
        return judged(Kind.HYPOTHESIS, f"{where}: {finding}; {beyond}", {})
    return held(holds, finding)


def _as_dimension_grows(holds: bool, finding: str, beyond: str) -> Outcome:
    """Judge a limit that is said to hold as d grows: with k as it is, or as o(d)."""
    return held(holds, f"holds as d grows, with k as it is or k = o(d): {finding}; {beyond}")


def _normal_moments(variance: Expr) -> list[Expr]:
    """Even moments of N(0, variance), up to the eighth."""
    return [sympy.factorial2(2 * p - 1) * variance**p for p in range(1, 5)]


def _coordinates(variance: Expr) -> Outcome:
    """A canary of d coordinates against N(0, variance·I): its length tells them apart, a few coordinates do not."""
    length = sympy.cancel(expectation((Z, Z), (Z, Z)) / D**2 - 1)
    limits = [sympy.limit(expectation(*([("i", "e")] * (2 * p))) * D**p, D, sympy.oo) for p in range(1, 5)]
    few = limits == [sympy.simplify(moment) for moment in _normal_moments(D * variance)]
    finding = (
        "only a fixed number of coordinates tends to independent normals (even moments of √d·x → "
        f"{', '.join(map(text, limits))}); all d together do not: ‖Z‖²/d has variance {text(length)}, a canary's "
        "length none, and the total variation is 1 for every d"
    )
    kind = Kind.FALSE if not few else Kind.EXACT if length == 0 else Kind.HYPOTHESIS
    return judged(kind, finding, {"variance_of_length": text(length)})


def _with_sum(centre: Expr, variance: Expr) -> Outcome:
    """⟨cⱼ, C⟩ for C = Σcᵢ: mean, variance and fourth moment against N(centre, variance)."""
    others, pair = K - 1, ("i", "j")
    middle, spread = expectation(("i", "i")) + others * expectation(pair), others * expectation(pair, pair)
    # Given cⱼ the k − 1 products are independent and alike.
    fourth = others * expectation(*([pair] * 4)) + 3 * others * (others - 1) * expectation(pair, pair) ** 2
    excess = sympy.factor(sympy.cancel(fourth / spread**2 - 3))
    right = sympy.cancel(spread - variance) == 0 and middle == centre
    return judged(
        Kind.EXACT if right and limit(excess) == 0 else Kind.FALSE,
        f"mean {text(middle)} and variance {text(spread)}, printed {text(centre)} and {text(variance)}; the excess "
        f"kurtosis, {text(excess)}, vanishes for large d",
        {"excess_kurtosis": text(excess)},
    )


def _with_noise(variance: Expr) -> Outcome:
    even_moments = [SIGMA ** (2 * p) * expectation(*([("i", Z)] * (2 * p))) for p in range(1, 5)]
    return held(
        even_moments == _normal_moments(variance), f"even moments {', '.join(map(text, even_moments))}, for all d"
    )


def _dot_product_limit(centre: Expr, variance: Expr) -> Outcome:
    rest = remainder(centre, sqrt(variance))
    return _as_dimension_grows(
        vanishes(rest),
        f"⟨cⱼ, R⟩ − 1 − ⟨cⱼ, Z⟩ has mean square {text(rest)} and ⟨cⱼ, Z⟩ ~ N(0, σ²)",
        f"for k = κd the mean square tends to {text(in_proportion(rest))}",
    )


def _lengths(noise_length: Expr, canaries_length: Expr) -> Outcome:
    """Means and relative variances of ‖Z‖² and ‖C‖²."""
    noise = sympy.cancel(expectation((Z, Z), (Z, Z)) / expectation((Z, Z)) ** 2 - 1)
    square, spread = (part.subs(SIGMA, 0) for part in release_moments.moments("A"))
    canaries = sympy.cancel(spread / square**2)
    facts = {
        "mean of ‖Z‖²": sympy.cancel(SIGMA**2 * expectation((Z, Z)) - noise_length**2) == 0,
        "mean of ‖C‖²": sympy.cancel(D * square - canaries_length**2) == 0,
        "relative variances": sympy.limit(noise, D, sympy.oo) == 0 and vanishes(canaries),
    }
    shown = f"{text(noise)} and {text(canaries)}"
    return held(facts, f"‖Z‖² has mean σ²d, ‖C‖² has mean k; the squared lengths' relative variances are {shown}")


def _release_length(length: Expr) -> Outcome:
    square, spread = release_moments.moments("A")
    return _as_dimension_grows(
        limit(square) == sympy.cancel(length**2 / D) and vanishes(spread),
        f"‖R‖²/d has mean {text(square)} and a variance that vanishes",
        f"for k = κd it tends to {text(in_proportion(square))}",
    )


def _cosine_limit(centre: Expr, variance: Expr) -> Outcome:
    law, square = limit_law(centre, variance), release_moments.moments("A")[0]
    return _as_dimension_grows(
        law.verdict is Verdict.CONFIRMED,
        f"each √d·gⱼ → N(1/σ, 1): {law.finding}",
        f"for k = κd, ‖R‖²/d → {text(in_proportion(square))}",
    )


def _independence(noise: Expr) -> Outcome:
    """Total correlation of the cosines of canaries N(0, I/d), for this standard deviation of the noise."""
    share, bound = gaussian_divergence(noise)
    holds = vanishes(share) and sympy.limit(bound, X, 0, "+") == 0
    finding = (
        f"only for Gaussian canaries N(0, I/d), which those of the text, of unit length, are not, and k = o(d): "
        f"the total correlation of their cosines is at most {text(bound)}, x = {text(share)} (for k = κd, x → "
        f"{text(in_proportion(share))}). For unit canaries it is proven only that the cosines' joint law tends to that "
        "of independent Gaussians in total variation, if k³ = o(d²)"
    )
    return judged(Kind.HYPOTHESIS if holds else Kind.FALSE, finding, {"x": text(share), "bound": text(bound)})


def _estimator(noise: Expr) -> Outcome:
    """1/(μ̂√d) = √A/B, with E B = 1."""
    square, spread = release_moments.moments("A")
    centre, product_spread = release_moments.moments("B")
    beyond = in_proportion(square)
    return _few_canaries(
        limit(square) == noise**2 and centre == 1 and vanishes(spread) and vanishes(product_spread),
        beyond != limit(square),
        f"μ̂√d → 1/σ; at finite d and k it is near 1/√({text(square)})",
        f"for k = κd, 1/(μ̂√d) → √({text(beyond)})",
    )


def _length_alone(noise: Expr) -> Outcome:
    """Without canaries the release is noise alone."""
    square, spread = (part.subs(K, 0) for part in release_moments.moments("A"))
    facts = {"mean": sympy.cancel(square - noise**2) == 0, "variance": sympy.limit(spread, D, sympy.oo) == 0}
    return held(
        facts, f"without canaries ‖R‖²/d has mean {text(square)} and variance {text(spread)}; with them, σ² + k/d"
    )


def _line(topic: str, statement: str, judge: Callable[[], Outcome], row: int = 0) -> Check:
    display = "v1: inner products" if row else ""
    return line(f"v1.section-3.{topic}", _SOURCE, statement, judge, display, row)


LINES = (
    _line(
        "consistency",
        "In the limit as d and k both become large, for example k = √d, ε̂ converges to the mechanism's ε",
        partial(_estimator, SIGMA),
    ),
    _line("canary-law", "For large d the canary law tends to N(0, I/d)", partial(_coordinates, 1 / D)),
    _line(
        "inner-sum",
        "For large d the product with the canaries' sum is ⟨cⱼ, C⟩ ~ N(1, (k − 1)/d)",
        partial(_with_sum, sympy.Integer(1), (K - 1) / D),
        1,
    ),
    _line("inner-noise", "The product with the noise is ⟨cⱼ, Z⟩ ~ N(0, σ²)", partial(_with_noise, SIGMA**2), 2),
    _line(
        "inner-limit",
        "As d grows, the product with the release, ⟨cⱼ, R⟩, tends to N(1, σ²) in distribution",
        partial(_dot_product_limit, sympy.Integer(1), SIGMA**2),
    ),
    _line(
        "lengths",
        "The length ‖Z‖ concentrates around σ√d and ‖C‖ around √k",
        partial(_lengths, SIGMA * sqrt(D), sqrt(K)),
    ),
    _line(
        "release-length",
        "In the limit of high d the noise Z dominates the release R, whose length concentrates around σ√d",
        partial(_release_length, SIGMA * sqrt(D)),
    ),
    _line(
        "cosine-limit",
        "In the limit of high d the cosines gⱼ tend to N(1/(σ√d), 1/d)",
        partial(_cosine_limit, 1 / (SIGMA * sqrt(D)), 1 / D),
    ),
    _line("independence", "The mutual information of the gⱼ tends to 0 as d grows", partial(_independence, SIGMA)),
    _line("estimator", "The estimate 1/(μ̂√d) tends to σ", partial(_estimator, SIGMA)),
    line(
        "v1.footnote-2",
        "footnote 2",
        "Without canaries, ‖R‖/√d would estimate σ",
        partial(_length_alone, SIGMA),
    ),
)
