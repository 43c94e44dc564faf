"""From the theorems to ε̂ → ε, and how fast.

Algorithm 1 ends in ε̂ = ε(m̂, r̂), m̂ = √d·μ̂, r̂ = √d·σ̂, the ε at δ of N(0, 1) and N(m̂, r̂²). Theorem 3.3 says that
(m̂, r̂) → (m, 1), m = 1/σ. What is left is that the mapping is continuous there. In either direction δ(ε; m, r) is
continuously differentiable near r = 1 with ∂δ/∂ε = −e^ε P₂(event) < 0, so that each direction's ε is; the two agree at
r = 1, where the larger of them has a kink. With z = −(ε/m + m/2) and a = φ(z)/Φ(z) the slopes at r = 1 are

    ∂ε/∂m = a in both directions,  ∂ε/∂r = −(ε/m + m/2)a forward,  (ε/m − m/2)a in reverse.

As √k(m̂ − m_{d,k}) → U ~ N(0, 1) and √k(r̂ − 1) → V ~ N(0, 1/2), independent, with m_{d,k} = 1/√(σ² + k/d), for k → ∞
and k = o(d) (``corrected_proof.md``, 6), √k(ε̂ − ε(m_{d,k}, 1)) tends to aU for ``pinned`` and to
aU + max(−(ε/m + m/2)aV, (ε/m − m/2)aV) for ``fitted``, whose mean is (ε/m)a/√π: a bias of (ε/m)a/√(πk). Centring at ε
itself needs √k(m_{d,k} − m) → 0, that is, k³ = o(d²).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import sympy
from scipy import special
from sympy import Expr, Symbol, sqrt

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.certified import two_gaussians as certified
from canaryproof.kernels.certified.two_gaussians import Direction
from canaryproof.proofs_check.lines import Judgement, Line, held
from canaryproof.proofs_check.regime import limit, text
from canaryproof.proofs_check.release_moments import moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K

DISPLAYS: dict[str, int] = {}


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

    def fitted_deviation(self, count: int) -> float:
        """Leading term of the standard deviation of ``fitted``: that of aU + max(b₁V, b₂V)."""
        # E max(b₁V, b₂V)² = (b₁² + b₂²)/2·E V² with E V² = 1/2.
        square = self.mean**2 + 0.25 * (self.forward**2 + self.reverse**2)
        return math.sqrt((square - self.fitted_bias(1) ** 2) / count)


def slopes(delta: float, distance: float) -> Slopes:
    """Slopes of ε(m, r) at r = 1.

    Parameters
    ----------
    delta
        δ, so small that ε > 0.
    distance
        m = 1/σ > 0.

    Returns
    -------
    The slopes, in nats per unit of m and of r.

    Raises
    ------
    ValueError
        If ε is 0 at these arguments.
    """
    epsilon = float(gaussian_mechanism.epsilon(delta, 1.0 / distance))
    if not epsilon > 0.0:
        raise ValueError("delta: must be so small that epsilon is positive")
    z = -(epsilon / distance + 0.5 * distance)
    a = math.exp(-0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - float(special.log_ndtr(z)))
    return Slopes(epsilon, a, z * a, (epsilon / distance - 0.5 * distance) * a)


def shift(dim: int, count: int, noise_multiplier: float) -> float:
    """Return m_{d,k} − 1/σ = 1/√(σ² + k/d) − 1/σ, by which finite k/d displaces the mean of √d·gᵢ.

    Parameters
    ----------
    dim, count, noise_multiplier
        d, k and σ.

    Returns
    -------
    The shift, negative, without cancellation.
    """
    share = count / (dim * noise_multiplier**2)
    return math.expm1(-0.5 * math.log1p(share)) / noise_multiplier


def best_count(dim: int, noise_multiplier: float) -> float:
    """Number of canaries at which the root mean square error of ``pinned`` is least, to leading order.

    a²/k + (a·k/(2dσ³))² is least at k³ = 2d²σ⁶: more canaries than that dilute the release more than they inform.

    Parameters
    ----------
    dim, noise_multiplier
        d and σ.

    Returns
    -------
    k.
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


def _claimed_slopes() -> tuple[Expr, Expr, Expr]:
    z = -(_E / _M + _M / 2)
    a = _density(z) / _normal(z)
    return a, z * a, (_E / _M - _M / 2) * a


def _slopes() -> Judgement:
    pairs = list(zip(_implicit_slopes(), _claimed_slopes(), strict=True))
    holds = all(sympy.simplify(found - claimed) == 0 for found, claimed in pairs)
    return held(holds, "∂ε/∂m = a, ∂ε/∂r = −(ε/m + m/2)a and (ε/m − m/2)a, from ∂δ/∂ε = −e^ε Φ(z)")


def _quotients() -> Judgement:
    """One-sided difference quotients of certified ε against the closed forms."""
    step = Fraction(1, 2**20)
    delta, distance = 1e-6, Fraction(65, 100)
    closed = slopes(delta, float(distance))

    def epsilon(mean: Fraction, ratio: Fraction, direction: Direction) -> Fraction:
        found = certified.epsilon(delta, 0, 1, mean, ratio, direction)
        return (Fraction(found.lo) + Fraction(found.hi)) / 2

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


def _kink() -> Judgement:
    a, forward, reverse = _claimed_slopes()
    gap = sympy.simplify((reverse - forward) / a)
    return held(sympy.simplify(gap - 2 * _E / _M) == 0, f"the slopes in r differ by {gap}·a, not 0 for ε > 0")


def _continuity() -> Judgement:
    """Both directions' ε at r = 1 solve the same equation, and ∂δ/∂ε < 0: the larger of them is continuous."""
    edge = _M / 2 - _E / _M
    forward = _normal(edge) - sympy.exp(_E) * _normal(edge - _M)
    reverse = 1 - _normal((_M - edge) - _M) - sympy.exp(_E) * (1 - _normal(_M - edge))
    same = sympy.simplify((forward - reverse).rewrite(sympy.erfc)) == 0
    decreasing = sympy.simplify(sympy.diff(forward, _E) + sympy.exp(_E) * _normal(edge - _M)) == 0
    return held(
        {"directions_agree_at_equal_variances": same, "decreasing": decreasing},
        "holds for k → ∞, k = o(d); the step left out is that ε(m, r) is continuous at (1/σ, 1): each direction's ε is "
        "continuously differentiable there, ∂δ/∂ε = −e^ε P₂(event) < 0, and the two agree at r = 1",
    )


def _bias() -> Judgement:
    """E max(b₁V, b₂V) for V ~ N(0, 1/2)."""
    v, b1, b2 = Symbol("v", positive=True), Symbol("b1", real=True), Symbol("b2", real=True)
    law = sympy.exp(-(v**2)) / sqrt(sympy.pi)
    half = sympy.integrate(v * law, (v, 0, sympy.oo))
    # For b₂ ≥ b₁ the maximum is b₂V where V > 0, and b₁V where V < 0.
    expected = sympy.simplify(b2 * half - b1 * half)
    holds = sympy.simplify(expected - (b2 - b1) / (2 * sqrt(sympy.pi))) == 0
    numbers = {f"ε = {e:g}": _bias_at(e) for e in (1.0, 3.0, 10.0)}
    shown = ", ".join(f"{bias:.4f} at {name}" for name, bias in numbers.items())
    return held(holds, f"E max(b₁V, b₂V) = (b₂ − b₁)/(2√π); at δ = 1e-6, k = 1000: {shown}", bias=numbers)


def _bias_at(epsilon: float) -> float:
    sigma = float(gaussian_mechanism.noise_multiplier(epsilon, 1e-6))
    return slopes(1e-6, 1.0 / sigma).fitted_bias(1000)


def _mean_law() -> Judgement:
    """√k(B − 1) is σ/√k·Σzᵢ but for a part that vanishes, and √k(A − E A) vanishes."""
    rest = sympy.cancel(K * (moments("B")[1] - SIGMA**2 / K))
    length = sympy.cancel(K * moments("A")[1])
    holds = limit(rest) == 0 and limit(length) == 0
    return held(holds, f"k·Var[B] − σ² = {text(rest)} → 0 and k·Var[A] = {text(length)} → 0 for all k = o(d)")


def _spread_law() -> Judgement:
    """√k(W − E W) is the noise's own sample variance but for a part that vanishes."""
    rest = moments("Y")[1]
    holds = limit(K * rest) == 0 and limit(K * moments("W")[1]) == 2 * SIGMA**4
    centre = sympy.cancel(moments("W")[0] / moments("A")[0])
    holds = holds and limit(K * (centre - 1)) is not None
    return held(
        holds,
        f"k·Var[W] → {text(limit(K * moments('W')[1]))}; k·Var[W − σ²·Var̂(z)] → {text(limit(K * rest))}; "
        f"E W/E A − 1 = O(1/k)",
    )


def _centring() -> Judgement:
    """√k(1/√(σ² + k/d) − 1/σ) against −k^{3/2}/(2dσ³)."""
    x = Symbol("x", positive=True)
    leading = sympy.series(1 / sqrt(SIGMA**2 + x), x, 0, 2).removeO() - 1 / SIGMA
    holds = sympy.simplify(leading + x / (2 * SIGMA**3)) == 0
    at = math.sqrt(1000) * shift(10**6, 1000, 0.541)
    return held(
        holds,
        f"m_(d,k) − 1/σ = −k/(2dσ³) + O(k²/d²): √k times it vanishes if and only if k³ = o(d²); at Table 2's last row "
        f"it is {at:.3f} standard errors",
    )


def _growth() -> Judgement:
    """The minimum of a²/k + a²k²/(4d²σ⁶)."""
    k = Symbol("k", positive=True)
    error = 1 / k + k**2 / (4 * D**2 * SIGMA**6)
    stationary = sympy.simplify(sympy.diff(error, k).subs(k, (2 * D**2 * SIGMA**6) ** sympy.Rational(1, 3)))
    counts = {e: best_count(10**6, float(gaussian_mechanism.noise_multiplier(e, 1e-6))) for e in (1.0, 3.0, 10.0)}
    shown = ", ".join(f"{count:.1e} at ε = {e:g}" for e, count in counts.items())
    return held(
        stationary == 0,
        f"to leading order an error e of pinned needs k = (a/e)² canaries and k³ ≪ d²; the error is least at "
        f"k³ = 2d²σ⁶: at d = 1e6, δ = 1e-6, k = {shown}",
    )


def _ours(topic: str, statement: str, judge: Callable[[], Judgement]) -> Line:
    return Line(f"ours.consistency.{topic}", "proofs_check.consistency", statement, judge, ours=True)


LINES = (
    Line(
        "final.section-3.1.consistency",
        "Andrew et al., arXiv 2302.03098, Section 3.1, first paragraph",
        "as √d·μ̂ → 1/σ and d·σ̂² → 1, ε̂ tends to the mechanism's ε",
        _continuity,
    ),
    Line(
        "review.mann-wald",
        "Reviews, authors' answer on the correctness of Algorithm 1",
        "by the continuous mapping theorem ε̂ converges in probability to ε(N(0, 1) ‖ N(1/σ, 1); δ)",
        _continuity,
    ),
    _ours("slopes", "slopes of ε(m, r) at r = 1 in both directions", _slopes),
    _ours("difference-quotients", "certified ε has these slopes", _quotients),
    _ours("kink", "ε(m, r), the larger of both directions, has a kink at r = 1", _kink),
    _ours("fitted-bias", "the bias of fitted is (ε/m)a/√(πk) to leading order", _bias),
    _ours("mean-law", "√k(√d·μ̂ − m_(d,k)) → N(0, 1) for k → ∞, k = o(d)", _mean_law),
    _ours("spread-law", "√k(√d·σ̂ − 1) → N(0, 1/2) for k → ∞, k = o(d)", _spread_law),
    _ours("centring", "centring at 1/σ, and so at ε, needs k³ = o(d²)", _centring),
    _ours("growth", "how k must grow for a given error, and no farther", _growth),
)
