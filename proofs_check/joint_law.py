"""The joint law of the cosines, which the reviews leave open.

With xᵢ = ⟨cᵢ, ρ⟩ and zᵢ = ⟨cᵢ, Z⟩, √d·gᵢ = xᵢ/√A. The theorems proven here and in ``corrected_proof.md`` (7, 8):

* any fixed number of the √d·gᵢ tends to independent N(1/σ, 1) if k = o(d);
* all k of them together are close, in total variation, to k independent N(1/σ, 1) if and only if k³ = o(d²).

The exact pieces that the two proofs rest on are lines here; limit theorems and inequalities are by hand. For canaries
N(0, I/d), not normalised, the law is exactly normal, given the release's length.
"""

from collections.abc import Callable
from functools import partial

import sympy
from sympy import Expr, Rational, Symbol, log, sqrt

from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.consistency import SHIFT_ORDER, is_order_of_shift, shift_over
from canaryproof.proofs_check.displayed_lines import Kind, held, judged, line
from canaryproof.proofs_check.formula_text import text
from canaryproof.proofs_check.limits import limit, settled, vanishes
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, S, Z, dot, expectation, mean, release, times, vector
from canaryproof.verify.papers.check.results import Check, Outcome, Verdict

X = Symbol("x", positive=True)
_REVIEW = "authors' answers on Theorem 3.3"

DISPLAYS: dict[str, int] = {}


def gaussian_divergence(noise: Expr) -> tuple[Expr, Expr]:
    """Bound the divergence of the cosines of canaries N(0, I/d) from k independent N(1/√(σ² + k/d), 1).

    Returns x, a rational function of d and k, and the bound as a function of ``X`` in its place. Coordinate by
    coordinate the canaries nᵢ and ρ are normal, with Var nᵢ = Cov(nᵢ, ρ) = 1/d. So given ‖ρ‖ the
    √d·gᵢ = √d·⟨nᵢ, ρ⟩/‖ρ‖ are normal, of covariance I − c·11ᵀ. That the mean divergence given ‖ρ‖ bounds the
    divergence is convexity.
    """
    own, whole = 1 / D, noise**2 + K / D
    lost = D * own**2 / whole
    # (n, σZ) ↦ (n, ρ) has determinant 1, and so det Cov(n, ρ) = d⁻ᵏσ²: divided by Var ρ, that of n given ρ.
    trace, determinant = K * (1 - lost), noise**2 / whole
    # Their common mean √d·(Cov/Var ρ)·‖ρ‖ is q/√whole with q² = ‖ρ‖²/(d·whole), chi-squared over d: E(q² − 1)² = 2/d,
    # and (q − 1)² ≤ (q² − 1)² for q ≥ 0.
    moved = (sqrt(D) * own / whole) ** 2 * D * whole * (expectation((Z, Z), (Z, Z)) / D**2 - 1)
    bound = (trace - K - log(determinant) + K * moved) / 2
    share = sympy.cancel(K * lost)
    by_share = sympy.simplify(bound.subs(K, sympy.solve(share - X, K)[0]))
    return share, by_share


def _by_matrices(noise: Expr, count: int) -> bool:
    """Whether a Schur complement has the trace k − x and the determinant 1 − x that ``gaussian_divergence`` takes."""
    own, whole = 1 / D, noise**2 + count / D
    share = count * own / whole
    given = D * (own * sympy.eye(count) - sympy.ones(count) * own**2 / whole)
    return all(sympy.cancel(left) == 0 for left in (given.trace() - (count - share), given.det() - (1 - share)))


def _gaussian_canaries(noise: Expr, printed: Expr) -> Outcome:
    share, bound = gaussian_divergence(noise)
    facts = {
        "bound": sympy.simplify(bound - printed) == 0,
        "trace and determinant for k = 1, 2, 3, 4": all(_by_matrices(noise, k) for k in range(1, 5)),
        "it vanishes": sympy.limit(bound, X, 0, "+") == 0 and vanishes(share),
    }
    return held(
        facts,
        "given ‖ρ‖, √d·g ~ N(√d·‖ρ‖/(dσ² + k)·1, I − 11ᵀ/(dσ² + k)); with the common mean, which ‖ρ‖ moves, the "
        f"divergence from independent N(1/√(σ² + k/d), 1) is at most {text(bound)}, x = {text(share)} → 0",
    )


def remainder(centre: Expr, weight: Expr) -> Expr:
    """Mean square of xᵢ − centre − weight·zᵢ: of all but its own canary and its noise, for 1 and σ."""
    # Sums over i, of k equal terms; E zᵢ = 0 and E zᵢ² = 1.
    product = dot(vector("i"), release("j"))
    first = mean(product).subs(S, 0) / K
    square = mean(times(product, dot(vector("i"), release("l")))).subs(S, 0) / K
    cross = mean(times(product, dot(vector("i"), vector(Z)))).subs(S, 0) / K
    return sympy.cancel(square - 2 * centre * first - 2 * weight * cross + centre**2 + weight**2)


def limit_law(centre: Expr, variance: Expr) -> Outcome:
    """Judge that any fixed number of cosines is asymptotically independent N(centre, variance), after scaling by √d.

    The pieces are exact; Slutsky's lemma puts them together (``corrected_proof.md``, 7).
    """
    square, spread = release_moments.moments("A")
    length = sqrt(D * settled(square))
    # gᵢ = xᵢ/‖ρ‖, and ‖ρ‖ is about that length.
    at, weight = sympy.simplify(centre * length), sympy.simplify(sqrt(variance) * length)
    rest, gram = remainder(at, weight), expectation(("i", "j"), ("i", "j"))
    facts = {
        "remainder": vanishes(rest),
        "normal given the canaries": [expectation(*([("i", Z)] * (2 * p))) for p in range(1, 4)] == [1, 3, 15],
        "orthogonal in the limit": sympy.limit(gram, D, sympy.oo) == 0,
        "length": vanishes(spread),
    }
    return held(
        facts,
        f"E(⟨cᵢ, ρ⟩ − {text(at)} − {text(weight)}·⟨cᵢ, Z⟩)² = {text(rest)} → {text(limit(rest))}, the ⟨cᵢ, Z⟩ are "
        f"independent in the limit, and ‖ρ‖²/d → {text(settled(square))} (corrected_proof.md, 7)",
    )


_printed_law = partial(limit_law, 1 / (SIGMA * sqrt(D)), 1 / D)


def _makes_shift_vanish(small: Expr) -> bool:
    """Whether the shift vanishes for all k ≥ 1 and d for which small = kᵃ/dᵇ does."""
    power = -sympy.simplify(D * sympy.diff(log(small), D))
    # After the b-th root a power of k is left over, which is bounded if it does not rise.
    left = sympy.simplify(K * sympy.diff(log(SHIFT_ORDER / small ** (1 / power)), K))
    return bool(left <= 0)


def _joint_law(small: Expr) -> Outcome:
    """All cosines together where the text lets k and d grow so that ``small`` → 0."""
    fixed, share = _printed_law(), shift_over(SHIFT_ORDER)
    facts = {
        "any fixed number": fixed.verdict is Verdict.CONFIRMED,
        "order of the shift": is_order_of_shift(SHIFT_ORDER),
    }
    finding = (
        "only for any fixed number of cosines. For all k together, with independent Gaussians of mean 1/σ, it holds if "
        f"and only if k³ = o(d²): their mean is {text(share)}·{text(SHIFT_ORDER)} standard errors off 1/σ"
    )
    judgement = held(facts, finding, shift_over_order=text(share))
    if judgement.verdict is Verdict.CONFIRMED and not _makes_shift_vanish(small):
        return judged(Kind.HYPOTHESIS, finding, judgement.evidence)
    return judgement


def _necessity(order: Expr) -> Outcome:
    return held(
        is_order_of_shift(order),
        f"over {text(order)} it tends to {text(shift_over(order))}, whatever way k/d → 0; that all k cosines are close "
        "to independent N(1/σ, 1) only where it vanishes is by hand (corrected_proof.md, 8, by the limit law of 6)",
    )


def _not_sufficient(correlation: int) -> Outcome:
    """Three cosines of this correlation: every margin is N(0, 1), and the expected sample variance misleads."""
    common, *own = variables = sympy.symbols("g h1:4", real=True)
    cosines = [sqrt(correlation) * common + sqrt(1 - correlation) * each for each in own]

    def expected(quadratic: Expr) -> Expr:
        polynomial = sympy.Poly(sympy.expand(quadratic), *variables)
        return sympy.Add(*(polynomial.coeff_monomial(variable**2) for variable in variables))

    spread = expected(sum(x**2 for x in cosines) / 3 - (sum(cosines) / 3) ** 2)
    facts = {
        "margin": expected(cosines[0] ** 2) == 1,
        "sample variance": spread != expected(own[0] ** 2) * (1 - Rational(1, 3)),
    }
    return held(
        facts,
        f"three normal cosines of correlation {correlation} have the mean sample variance {text(spread)}; independent "
        "ones, 2/3",
    )


def _inference(concluded: int) -> Outcome:
    """Equal chances of ±1 have mean and variance of N(0, 1): compare the moments up to the last one concluded."""
    powers = range(1, concluded + 1)
    two_values = [1 - power % 2 for power in powers]
    normal = [0 if power % 2 else sympy.factorial2(power - 1) for power in powers]
    if two_values == normal:
        return held(True, f"equal chances of ±1 and N(0, 1) have the same {concluded} moments")
    law = _printed_law()
    stands = law.verdict is Verdict.CONFIRMED
    return judged(
        Kind.HYPOTHESIS if stands else Kind.FALSE,
        "Only of the Gaussian that Algorithm 1 fits to the cosines, whose limit it is. Of the cosines themselves it "
        f"does not follow: ±1 with equal chances have mean 0 and variance 1 too, but moment {concluded} is "
        f"{two_values[-1]}, not {normal[-1]}. Every fixed number of cosines has the limit law all the same, by "
        "another argument: √d·gᵢ is 1/σ and a normal variable but for terms that vanish",
        {"conclusion_survives": stands},
    )


def _split(along: Callable[[Expr, Expr], Expr]) -> Outcome:
    """‖re − Σcᵢ‖² with cᵢ = gᵢe + √(1 − gᵢ²)uᵢ, uᵢ ⟂ e, for two canaries; ``along`` is e's share, of r and Σgᵢ."""
    r, g1, g2, c = sympy.symbols("r g1 g2 c", real=True)
    y1, y2 = sqrt(1 - g1**2), sqrt(1 - g2**2)
    # u₁ = (1, 0), u₂ = (c, √(1 − c²)) in coordinates orthogonal to e.
    point = (r - g1 - g2, -y1 - c * y2, -sqrt(1 - c**2) * y2)
    left = sympy.expand(sum(x**2 for x in point))
    right = sympy.expand(along(r, g1 + g2) + (1 - g1**2) + (1 - g2**2) + 2 * y1 * y2 * c)
    return held(sympy.simplify(left - right) == 0, "(r − Σgᵢ)² and the squared length orthogonal to ρ")


def _log_concave(least: Expr) -> Outcome:
    """−(log f_d)″ ≥ least on (−1, 1), hence Var ≤ 1/least under every exponential tilt (Brascamp–Lieb)."""
    x = Symbol("x", real=True)
    excess = sympy.factor(-sympy.diff((D - 3) / 2 * log(1 - x**2), x, 2) - least)
    # x² = v/(1 + v), v ≥ 0, and d = 3 + u, u ≥ 0: no coefficient is negative.
    u, v = sympy.symbols("u v", nonnegative=True)
    shifted = sympy.cancel(excess.subs(x, sqrt(v / (1 + v))).subs(D, 3 + u))
    parts = (sympy.Poly(part, u, v) for part in sympy.fraction(shifted))
    holds = all(coefficient >= 0 for part in parts for coefficient in part.coeffs())
    return held(holds, f"the excess over {text(least)} is {text(excess)} ≥ 0")


def _fourth_moment(centre: Expr, deviation: Expr) -> Outcome:
    """E⟨cᵢ, ρ⟩⁴ is bounded: the largest cosine and the sum of fourth powers are under control."""
    factors = [dot(vector("i"), release(name)) for name in ("a", "b", "c", "e")]
    fourth = sympy.factor(mean(times(*factors)).subs(S, 0) / K)
    fourth_limit, normal = limit(fourth), sympy.expand(centre**4 + 6 * centre**2 * deviation**2 + 3 * deviation**4)
    holds = fourth_limit is not None and sympy.expand(fourth_limit - normal) == 0
    return held(holds, f"E⟨cᵢ, ρ⟩⁴ → {text(fourth_limit)}, as for N(1, σ²)", exact=text(fourth))


def _own_line(topic: str, statement: str, judge: Callable[[], Outcome]) -> Check:
    return line(f"ours.joint-law.{topic}", "proofs_check.joint_law", statement, judge, own=True)


LINES = (
    line(
        "final.section-3.1.limit-law",
        "Section 3.1, first paragraph",
        "The test statistic on D is N(1/(σ√d), 1/d) asymptotically",
        _printed_law,
    ),
    line(
        "final.section-3.1.inference",
        "Section 3.1, first paragraph",
        "The limit law N(1/(σ√d), 1/d) of the cosines follows from √d·μ̂ → 1/σ and d·σ̂² → 1",
        partial(_inference, 4),
    ),
    line(
        "review.joint-law",
        _REVIEW,
        "For example, the cosines' joint law approaches the product of independent Gaussians, for Theorem 3.3's k = "
        "o(d) (surmised, not proven)",
        partial(_joint_law, K / D),
    ),
    line("review.marginal-law", _REVIEW, "Each cosine is asymptotically Gaussian", _printed_law),
    line(
        "review.marginals-insufficient",
        _REVIEW,
        "Gaussian margins alone would not make the method right: the cosines of a run could all be equal",
        partial(_not_sufficient, 1),
    ),
    _own_line("fixed-number", "any fixed number of √d·gᵢ tends to independent N(1/σ, 1) if k = o(d)", _printed_law),
    _own_line(
        "necessary",
        "for k = o(d), √k(1/√(σ² + k/d) − 1/σ), the standard errors by which the cosines' mean is off 1/σ, vanishes if "
        "and only if k³ = o(d²)",
        partial(_necessity, SHIFT_ORDER),
    ),
    _own_line(
        "split",
        "‖ρ − Σcᵢ‖² = (‖ρ‖ − Σgᵢ)² + ‖Σ√(1 − gᵢ²)uᵢ‖²",
        partial(_split, lambda length, total: (length - total) ** 2),
    ),
    _own_line("log-concave", "−(log f_d)″ ≥ d − 3 for d > 3", partial(_log_concave, D - 3)),
    _own_line(
        "fourth-moment",
        "E⟨cᵢ, ρ⟩⁴ is bounded where k = o(d), and tends to that of N(1, σ²)",
        partial(_fourth_moment, sympy.Integer(1), SIGMA),
    ),
    line(
        "ours.joint-law.gaussian-canaries",
        "proofs_check.joint_law",
        "for canaries N(0, I/d) the divergence of the cosines from k independent N(1/√(σ² + k/d), 1) is at most "
        "(x − log(1 − x))/2 with x = k/(dσ² + k), and vanishes for all k = o(d)",
        partial(_gaussian_canaries, SIGMA, (X - log(1 - X)) / 2),
        own=True,
    ),
)
