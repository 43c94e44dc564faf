"""The joint law of the cosines for canaries N(0, I/d), not normalised: exactly normal, given the release's length."""

from functools import partial

import sympy
from sympy import Expr, Symbol, log, sqrt

from canaryproof.proofs_check.lines import Judgement, Line, held
from canaryproof.proofs_check.regime import vanishes
from canaryproof.proofs_check.spelling import text
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, Z, expectation

X = Symbol("x", positive=True)


def gaussian_divergence(noise: Expr) -> tuple[Expr, Expr]:
    """Bound the divergence of the cosines of canaries N(0, I/d) from k independent N(1/√(σ² + k/d), 1).

    Parameters
    ----------
    noise
        The noise's standard deviation σ, in each coordinate.

    Returns
    -------
    x, a rational function of d and k, and the bound as a function of ``X`` in its place.

    Notes
    -----
    Coordinate by coordinate the canaries nᵢ and ρ are normal, with Var nᵢ = Cov(nᵢ, ρ) = 1/d. So given ‖ρ‖ the
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


def _gaussian_canaries(noise: Expr, printed: Expr) -> Judgement:
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


LINES = (
    Line(
        "ours.joint-law.gaussian-canaries",
        "proofs_check.gaussian_canaries",
        "for canaries N(0, I/d) the divergence of the cosines from k independent N(1/√(σ² + k/d), 1) is at most "
        "(x − log(1 − x))/2 with x = k/(dσ² + k), and vanishes for all k = o(d)",
        partial(_gaussian_canaries, SIGMA, (X - log(1 - X)) / 2),
        ours=True,
    ),
)
