"""From the theorems to ε̂ → ε, and how fast.

Algorithm 1 ends in ε̂ = ε(m̂, r̂), m̂ = √d·μ̂, r̂ = √d·σ̂, the ε at δ of N(0, 1) and N(m̂, r̂²). Theorem 3.3 says
that (m̂, r̂) → (m, 1), m = 1/σ. What is left is that the mapping is continuous there. In either direction δ(ε; m,
r) is continuously differentiable near r = 1 with ∂δ/∂ε = −e^ε P₂(event) < 0, so that each direction's ε is; the two
agree at r = 1, where the larger of them has a kink. With z = −(ε/m + m/2) and a = φ(z)/Φ(z) the slopes at r = 1 are

    ∂ε/∂m = a in both directions,  ∂ε/∂r = −(ε/m + m/2)a forward,  (ε/m − m/2)a in reverse.

As √k(m̂ − m_{d,k}) → U ~ N(0, 1) and √k(r̂ − 1) → V ~ N(0, 1/2), independent, with m_{d,k} = 1/√(σ² + k/d), for k →
∞ and k = o(d) (``corrected_proof.md``, 6), √k(ε̂ − ε(m_{d,k}, 1)) tends to aU for ``pinned``. For ``fitted`` it tends to
aU + max(−(ε/m + m/2)aV, (ε/m − m/2)aV), whose mean is (ε/m)a/√π: a bias of (ε/m)a/√(πk). Centring at ε itself needs
√k(m_{d,k} − m) → 0, that is, k³ = o(d²).

The moments that the limit laws of the cosines' mean and variance rest on are lines here; the limit theorems that lead
from the moments to the laws are by hand.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import sympy
from scipy import special
from sympy import Expr, Rational, Symbol, sqrt

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.certified import two_gaussians as certified
from canaryproof.kernels.certified.two_gaussians import Direction
from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.displayed_lines import held, line
from canaryproof.proofs_check.formula_text import text
from canaryproof.proofs_check.limits import bounded, limit, settled, vanishes
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K
from canaryproof.verify.papers.check.results import Check, Outcome

DISPLAYS: dict[str, int] = {}
# The order of √k(m_(d,k) − 1/σ), the standard errors by which the cosines' mean is off 1/σ.
SHIFT_ORDER = K ** Rational(3, 2) / D


def _shift() -> Expr:
    return sqrt(K) * (1 / sqrt(release_moments.moments("A")[0]) - 1 / SIGMA)


def shift_over(order: Expr) -> Expr:
    """Limit of √k(1/√(σ² + k/d) − 1/σ)/order where k/d → 0, however d and k grow; not a number if there is none.

    With k = xd the quotient depends on x alone.
    """
    x = Symbol("x", positive=True)
    quotient = sympy.simplify((_shift() / order).subs(K, x * D))
    return sympy.nan if quotient.has(D) else sympy.limit(quotient, x, 0, "+")


def is_order_of_shift(order: Expr) -> bool:
    """Whether √k(1/√(σ² + k/d) − 1/σ) vanishes, for k = o(d), if and only if ``order`` does."""
    share = shift_over(order)
    return bool(share.is_finite) and share != 0


def _mean_law(variance: Expr) -> Outcome:
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


def _spread_law(variance: Expr) -> Outcome:
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


def _centring(order: Expr) -> Outcome:
    at = float(_shift().subs({D: 10**6, K: 1000, SIGMA: sympy.Rational(541, 1000)}))
    return held(
        is_order_of_shift(order),
        f"√k(m_(d,k) − 1/σ) is {text(shift_over(order))}·{text(order)} to leading order, and vanishes if and only if "
        f"that does; at Table 2's last row it is {at:.3f} standard errors",
    )


@dataclass(frozen=True)
class Slopes:
    """First derivatives of ε(m, r) at equal variances.

    Attributes
    ----------
    epsilon
        ε(m, 1), in nats.
    mean
        ∂ε/∂m, the same in both directions.
    forward, reverse
        ∂ε/∂r of N(0, 1) from N(m, r²), and of the reverse.
    """

    epsilon: float
    mean: float
    forward: float
    reverse: float

    def fitted_bias(self, count: int) -> float:
        """Leading term, in 1/√k, of the bias of ``fitted``: half the kink times E|r̂ − 1| = 1/√(πk)."""
        return 0.5 * (self.reverse - self.forward) / math.sqrt(math.pi * count)

    def pinned_deviation(self, count: int) -> float:
        """Leading term of the standard deviation of ``pinned``."""
        return self.mean / math.sqrt(count)


def slopes(delta: float, distance: float) -> Slopes:
    """Slopes of ε(m, r) at r = 1, m = 1/σ > 0, in nats per unit of m and of r; a ValueError where ε is 0."""
    epsilon = float(gaussian_mechanism.epsilon(delta, 1.0 / distance))
    if not epsilon > 0.0:
        raise ValueError("delta: must be so small that epsilon is positive")
    z = -(epsilon / distance + 0.5 * distance)
    a = math.exp(-0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - float(special.log_ndtr(z)))
    return Slopes(epsilon, a, z * a, (epsilon / distance - 0.5 * distance) * a)


def shift(dim: int, count: int, noise_multiplier: float) -> float:
    """Return 1/√(σ² + k/d) − 1/σ, by which finite k/d displaces the mean of √d·gᵢ, without cancellation."""
    share = count / (dim * noise_multiplier**2)
    return math.expm1(-0.5 * math.log1p(share)) / noise_multiplier


def best_count(dim: int, noise_multiplier: float) -> float:
    """Number of canaries k at which the root mean square error of ``pinned`` is least, to leading order.

    a²/k + (a·k/(2dσ³))² is least at k³ = 2d²σ⁶: more canaries than that dilute the release more than they inform.
    """
    return float((2.0 * dim**2 * noise_multiplier**6) ** (1.0 / 3.0))


_M, _E, _R = Symbol("m", positive=True), Symbol("epsilon", positive=True), Symbol("r", positive=True)


def _normal(x: Expr) -> Expr:
    return (1 + sympy.erf(x / sqrt(2))) / 2


def _density(x: Expr) -> Expr:
    return sympy.exp(-(x**2) / 2) / sqrt(2 * sympy.pi)


def _implicit_slopes() -> tuple[Expr, Expr, Expr]:
    """Slopes of ε from δ's derivatives at r = 1, event by event: where p₁/p₂ = e^ε, moving the event costs nothing."""
    edge = _M / 2 - _E / _M
    by_epsilon = -sympy.exp(_E) * _normal(edge - _M)
    # Forward: δ = P₁(E) − e^ε P₂(E), E = {x < edge}, P₂ = N(m, r²); only P₂ depends on m and r.
    forward = -sympy.exp(_E) * _normal((edge - _M) / _R)
    by_ratio = sympy.diff(forward, _R).subs(_R, 1)
    by_mean = sympy.diff(-sympy.exp(_E) * _normal(edge - Symbol("n")), Symbol("n")).subs(Symbol("n"), _M)
    # Reverse: δ = P₂(E′) − e^ε P₁(E′), E′ = {x > m − edge}.
    reverse = _normal(-((_M - edge) - _M) / _R)
    by_ratio_reverse = sympy.diff(reverse, _R).subs(_R, 1)
    return tuple(sympy.simplify(-part / by_epsilon) for part in (by_mean, by_ratio, by_ratio_reverse))


_Z = -(_E / _M + _M / 2)
_A = _density(_Z) / _normal(_Z)
# The slopes of ε at r = 1, in m and, forward and in reverse, in r.
CLAIMED = (_A, _Z * _A, (_E / _M - _M / 2) * _A)


def _slopes(claimed: tuple[Expr, ...]) -> Outcome:
    pairs = list(zip(_implicit_slopes(), claimed, strict=True))
    holds = all(sympy.simplify(exact - printed) == 0 for exact, printed in pairs)
    return held(holds, "∂ε/∂m = a, ∂ε/∂r = −(ε/m + m/2)a and (ε/m − m/2)a, from ∂δ/∂ε = −e^ε Φ(z)")


def _quotients(claimed: Callable[[float, float], Slopes]) -> Outcome:
    """One-sided difference quotients of certified ε against the closed forms."""
    step = Fraction(1, 2**20)
    delta, distance = 1e-6, Fraction(65, 100)
    closed = claimed(delta, float(distance))

    def epsilon(mean: Fraction, ratio: Fraction, direction: Direction) -> Fraction:
        enclosure = certified.epsilon(delta, 0, 1, mean, ratio, direction)
        return (Fraction(enclosure.lo) + Fraction(enclosure.hi)) / 2

    worst = 0.0
    sides: tuple[tuple[Direction, float], ...] = (("forward", closed.forward), ("reverse", closed.reverse))
    for direction, ratio_slope in sides:
        here = epsilon(distance, Fraction(1), direction)
        for sign in (1, -1):
            by_ratio = (epsilon(distance, 1 + sign * step, direction) - here) / (sign * step)
            by_mean = (epsilon(distance + sign * step, Fraction(1), direction) - here) / (sign * step)
            worst = max(worst, abs(float(by_ratio) - ratio_slope), abs(float(by_mean) - closed.mean))
    # A second derivative of at most 2¹⁰ leaves half of 2⁻¹⁰.
    return held(worst < 2.0**-11, f"largest difference {worst:.1e} at step 2⁻²⁰, m = 0.65, δ = 1e-6", worst=worst)


def _kink(gap: Expr) -> Outcome:
    a, forward, reverse = CLAIMED
    difference = sympy.simplify((reverse - forward) / a)
    return held(
        sympy.simplify(difference - gap) == 0, f"the slopes in r differ by ({text(difference)})·a, not 0 for ε > 0"
    )


def _continuity(mean_limit: Expr) -> Outcome:
    """Both directions' ε at r = 1 solve the mechanism's equation, and ∂δ/∂ε < 0: the larger of them is continuous."""
    edge = _M / 2 - _E / _M
    forward = _normal(edge) - sympy.exp(_E) * _normal(edge - _M)
    reverse = 1 - _normal((_M - edge) - _M) - sympy.exp(_E) * (1 - _normal(_M - edge))
    # The pair is N(0, σ²) and N(1, σ²), and the event lies above 1/2 + εσ² (Balle and Wang).
    mechanism = _normal(1 / (2 * SIGMA) - _E * SIGMA) - sympy.exp(_E) * _normal(-1 / (2 * SIGMA) - _E * SIGMA)
    facts = {
        "directions_agree_at_equal_variances": sympy.simplify((forward - reverse).rewrite(sympy.erfc)) == 0,
        "decreasing": sympy.simplify(sympy.diff(forward, _E) + sympy.exp(_E) * _normal(edge - _M)) == 0,
        "the mechanism's at the limit": sympy.simplify(forward.subs(_M, mean_limit) - mechanism) == 0,
    }
    return held(
        facts,
        "holds for k → ∞, k = o(d); the step left out is that ε(m, r) is continuous at (1/σ, 1): each direction's ε is "
        "continuously differentiable there, ∂δ/∂ε = −e^ε P₂(event) < 0, and the two agree at r = 1",
    )


def _fitted_moment(power: int) -> Expr:
    """E max(b₁V, b₂V)^power for V ~ N(0, 1/2) and the claimed slopes b₁ < b₂ in r."""
    _, forward, reverse = CLAIMED
    v = Symbol("v", positive=True)
    half = sympy.integrate(v**power * sympy.exp(-(v**2)) / sqrt(sympy.pi), (v, 0, sympy.oo))
    # The maximum is b₂V where V > 0, and b₁V where V < 0.
    return half * (reverse**power + (-forward) ** power)


def _bias(printed: Expr) -> Outcome:
    excess = sympy.simplify(_fitted_moment(1) / sqrt(K) - printed)
    numbers = {f"ε = {e:g}": _bias_at(e) for e in (1.0, 3.0, 10.0)}
    shown = ", ".join(f"{bias:.4f} at {name}" for name, bias in numbers.items())
    return held(excess == 0, f"E max(b₁V, b₂V) = (b₂ − b₁)/(2√π); at δ = 1e-6, k = 1000: {shown}", bias=numbers)


def _bias_at(epsilon: float) -> float:
    sigma = float(gaussian_mechanism.noise_multiplier(epsilon, 1e-6))
    return slopes(1e-6, 1.0 / sigma).fitted_bias(1000)


def _growth(times_as_many: Expr, least: Expr) -> Outcome:
    """Mean square errors: pinned's a²/k and the square of a times its shift; fitted's in the limit law."""
    a = CLAIMED[0]
    fitted = sympy.simplify((a**2 + _fitted_moment(2)) / a**2).subs(_M, 1 / SIGMA)
    displaced = shift_over(SHIFT_ORDER) * SHIFT_ORDER / sqrt(K)
    error = 1 / K + displaced**2
    facts = {
        "fitted over pinned": sympy.simplify(fitted - times_as_many) == 0,
        "stationary": sympy.simplify(sympy.diff(error, K).subs(K, least)) == 0,
        "convex": sympy.diff(error, K, 2).is_positive,
    }
    counts = {e: best_count(10**6, float(gaussian_mechanism.noise_multiplier(e, 1e-6))) for e in (1.0, 3.0, 10.0)}
    shown = ", ".join(f"{count:.1e} at ε = {e:g}" for e, count in counts.items())
    return held(
        facts,
        f"the mean squares are a²/k and {text(fitted)} times that in the limit laws; with the shift, pinned's is a² "
        f"times {text(error)}, convex in k and least at {text(least)}: at d = 1e6, δ = 1e-6, k = {shown}",
    )


def _own_line(topic: str, statement: str, judge: Callable[[], Outcome]) -> Check:
    return line(f"ours.consistency.{topic}", "proofs_check.consistency", statement, judge, own=True)


LINES = (
    line(
        "final.section-3.1.consistency",
        "Section 3.1, first paragraph",
        "As √d·μ̂ → 1/σ and d·σ̂² → 1, ε̂ tends to the mechanism's ε",
        partial(_continuity, 1 / SIGMA),
    ),
    line(
        "review.mann-wald",
        "authors' answer on the correctness of Algorithm 1 (its symbols are lost in the text)",
        "By the continuous mapping theorem ε̂ converges in probability to ε(N(0, 1) ‖ N(1/σ, 1); δ)",
        partial(_continuity, 1 / SIGMA),
    ),
    _own_line("slopes", "slopes of ε(m, r) at r = 1 in both directions", partial(_slopes, CLAIMED)),
    _own_line("difference-quotients", "certified ε has these slopes", partial(_quotients, slopes)),
    _own_line(
        "kink",
        "ε(m, r), the larger of both directions, has a kink at r = 1, where their slopes in r differ by (2ε/m)a",
        partial(_kink, 2 * _E / _M),
    ),
    _own_line(
        "fitted-bias",
        "the mean of fitted's limit law, its bias to leading order, is (ε/m)a/√(πk)",
        partial(_bias, _E / _M * _A / sqrt(sympy.pi * K)),
    ),
    _own_line("mean-law", "√k(√d·μ̂ − m_(d,k)) → N(0, 1) for k → ∞, k = o(d)", partial(_mean_law, 1)),
    _own_line("spread-law", "√k(√d·σ̂ − 1) → N(0, 1/2) for k → ∞, k = o(d)", partial(_spread_law, Rational(1, 2))),
    _own_line("centring", "centring at 1/σ, and so at ε, needs k³ = o(d²)", partial(_centring, SHIFT_ORDER)),
    _own_line(
        "growth",
        "in the limit laws (k³ = o(d²)) the mean square error of pinned is a²/k, and that of fitted "
        "1 + (ε²σ² + 1/(4σ²))/2 times as large; at fixed d, pinned's with its shift is least at k³ = 2d²σ⁶",
        partial(
            _growth,
            1 + (_E**2 * SIGMA**2 + 1 / (4 * SIGMA**2)) / 2,
            (2 * D**2 * SIGMA**6) ** sympy.Rational(1, 3),
        ),
    ),
)
