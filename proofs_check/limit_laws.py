"""The limit law of the cosines' mean and variance, ``corrected_proof.md`` (6): the moments that it rests on.

With m_(d,k) = 1/√(σ² + k/d), √k(√d·μ̂ − m_(d,k)) → N(0, 1) and √k(√d·σ̂ − 1) → N(0, 1/2) for k → ∞, k = o(d). The
limit theorems that lead from the moments to the laws are by hand.
"""

from collections.abc import Callable
from functools import partial

import sympy
from sympy import Expr, Rational, Symbol, sqrt

from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.lines import Judgement, Line, held
from canaryproof.proofs_check.regime import bounded, limit, settled, vanishes
from canaryproof.proofs_check.spelling import text
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K

# The order of √k(m_(d,k) − 1/σ), the standard errors by which the cosines' mean is off 1/σ.
SHIFT_ORDER = K ** Rational(3, 2) / D


def _shift() -> Expr:
    return sqrt(K) * (1 / sqrt(release_moments.moments("A")[0]) - 1 / SIGMA)


def shift_over(order: Expr) -> Expr:
    """Limit of √k(1/√(σ² + k/d) − 1/σ)/order where k/d → 0.

    Parameters
    ----------
    order
        Function of d and k.

    Returns
    -------
    The limit, however k and d grow, as with k = xd the quotient depends on x alone; not a number if it does not.
    """
    x = Symbol("x", positive=True)
    quotient = sympy.simplify((_shift() / order).subs(K, x * D))
    return sympy.nan if quotient.has(D) else sympy.limit(quotient, x, 0, "+")


def is_order_of_shift(order: Expr) -> bool:
    """Whether √k(1/√(σ² + k/d) − 1/σ) vanishes, for k = o(d), if and only if ``order`` does."""
    share = shift_over(order)
    return bool(share.is_finite) and share != 0


def _mean_law(variance: Expr) -> Judgement:
    """√k(B − 1) is σ/√k·Σzᵢ but for a part that vanishes, and √k(A − E A) vanishes."""
    square, (centre, spread) = settled(release_moments.moments("A")[0]), release_moments.moments("B")
    rest, length = sympy.cancel(K * (spread - SIGMA**2 / K)), sympy.cancel(K * release_moments.moments("A")[1])
    facts = {
        "mean": centre == 1,
        "rest": vanishes(rest),
        "length": vanishes(length),
        "variance": sympy.cancel(settled(K * spread) / square - variance) == 0,
    }
    return held(
        facts,
        f"k·Var[B] − σ² = {text(rest)} → 0 and k·Var[A] = {text(length)} → 0 for all k = o(d); "
        "the limit theorem is by hand (corrected_proof.md, 6)",
    )


def _spread_law(variance: Expr) -> Judgement:
    """√k(W − E W) is the noise's own sample variance but for a part that vanishes; the root halves the deviation."""
    rest, spread = limit(K * release_moments.moments("Y")[1]), settled(K * release_moments.moments("W")[1])
    centre = sympy.cancel(release_moments.moments("W")[0] / release_moments.moments("A")[0])
    facts = {
        "rest": rest == 0,
        "variance": sympy.cancel(spread / (4 * settled(release_moments.moments("A")[0]) ** 2) - variance) == 0,
        "centre": bounded(K * (centre - 1)),
    }
    return held(
        facts,
        f"k·Var[W] → {text(spread)}; k·Var[W − σ²·Var̂(z)] → {text(rest)}; E W/E A − 1 = O(1/k); the limit "
        "theorem is by hand (corrected_proof.md, 6)",
    )


def _centring(order: Expr) -> Judgement:
    at = float(_shift().subs({D: 10**6, K: 1000, SIGMA: sympy.Rational(541, 1000)}))
    return held(
        is_order_of_shift(order),
        f"√k(m_(d,k) − 1/σ) is {text(shift_over(order))}·{text(order)} to leading order, and vanishes if and only if "
        f"that does; at Table 2's last row it is {at:.3f} standard errors",
    )


def _ours(topic: str, statement: str, judge: Callable[[], Judgement]) -> Line:
    return Line(f"ours.consistency.{topic}", "proofs_check.limit_laws", statement, judge, ours=True)


LINES = (
    _ours("mean-law", "√k(√d·μ̂ − m_(d,k)) → N(0, 1) for k → ∞, k = o(d)", partial(_mean_law, 1)),
    _ours("spread-law", "√k(√d·σ̂ − 1) → N(0, 1/2) for k → ∞, k = o(d)", partial(_spread_law, Rational(1, 2))),
    _ours("centring", "centring at 1/σ, and so at ε, needs k³ = o(d²)", partial(_centring, SHIFT_ORDER)),
)
