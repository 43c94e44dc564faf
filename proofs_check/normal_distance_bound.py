"""Proof that the cosine's law is within 0.138/(d − 1) of N(0, 1/d) in Kolmogorov distance, and 0.396/(d − 1) in TV.

In the notation of ``normal_distance`` (t = τ√d, s = t², r = f̂_d/φ, Δ = F_d − Φ), u = 1/d and He₃, He₄ Hermite's
polynomials. The statements hold for all whole d ≥ 2; the steps are judged one by one.

1. ``gamma_bounds``. With x = (d − 1)/2, r(0)² = (2/d)·(Γ(x + 1/2)/Γ(x))². h(x) = Γ(x + 1/2)²/(Γ(x)²(x − 1/4)) falls
   from x to x + 1, and it tends to 1, because log Γ is convex and therefore x²/(x + 1/2) ≤ Γ(x + 1/2)²/Γ(x)² ≤ x. So
   h > 1, that is, 1 − 3u/2 < r(0)² ≤ 1 − u.
2. ``crossings``. The derivative of log r in s, which with r(0) < 1 and the masses 1 gives the crossings t₁ and t₂.
3. ``log_ratio_bounds``. −log r = −log r(0) − g(s), g(s) = s/2 + ((d − 3)/2)·log(1 − su). From the first step,
   −log r(0) ≤ −½·log(1 − 3u/2) ≤ 3u/4 + u²c, c = (9/16)/(1 − 3u/2). From the series of the logarithm, whose terms
   from the third on sum to at most (su)³/(3(1 − su)),

       −log r ≤ u·He₄(t)/4 + u²(c − 3s²/4 + q·s³/6),

   with q = 1 where 0 ≤ s ≤ 3, and q = 2 where 3 ≤ s ≤ d/2 (3 ≤ d).
4. ``analytic_range``, d ≥ 450. As 1 − r ≤ −log r, and φ·He₄ is the derivative of −φ·He₃,

       −Δ(t₁) = ∫₀^t₁ φ(1 − r) ≤ −u·φHe₃(t₁)/4 + u²c/2,

   s²(s/6 − 3/4) being negative there. Likewise for Δ(t₂) = ∫ φ(1 − r) over t > t₂, where what lies beyond s = d/2 is at
   most 1 − Φ(√(d/2)) ≤ ½e^(−d/4) ≤ 192u³ (e^(−y) ≤ 6/y³), and the rest, where there is one, at most u·φHe₃(t₂)/4
   (He₃ is positive at the upper end) plus u²·∫₀^∞ φ(c + s³/3) = u²(c/2 + 5/2). The largest
   values of ∓φHe₃/4 for t below and above √3 are M₁ and M₂, where He₄ = 0, that is, at t² = 3 ∓ √6. Therefore

       (d − 1)·(−Δ(t₁)) ≤ (1 − u)(M₁ + u·c/2),
       (d − 1)·Δ(t₂) ≤ (1 − u)(M₂ + u(c/2 + 5/2) + 192u²),

   which balls for u that cover [0, 1/450] show to be below the constants.
5. ``certified_range``, 2 ≤ d < 450: enclosures one by one.
"""

import operator
from fractions import Fraction
from functools import cache

import sympy
from flint import arb, fmpq
from sympy import Rational, Symbol

from canaryproof.kernels.certified import at_precision
from canaryproof.proofs_check.lines import Judgement, Kind, held
from canaryproof.proofs_check.normal_distance import extremes
from canaryproof.proofs_check.spelling import text

KOLMOGOROV = Fraction(69, 500)
TOTAL_VARIATION = Fraction(99, 250)
# From here on the analytic bounds are below the constants; smaller dimensions are certified one by one.
ANALYTIC_FROM = 450
_PIECES = 64
_BITS = 128

_S, _U, _X = Symbol("s", nonnegative=True), Symbol("u", positive=True), Symbol("x", positive=True)
# −He₃(t)·exp(−t²/2) at t = √s.
_MINUS_HE_3 = sympy.sqrt(_S) * (3 - _S) * sympy.exp(-_S / 2)


def _bound(constant: Fraction, dim: int) -> Fraction:
    if operator.index(dim) < 2:
        raise ValueError("dim must be at least 2")
    return constant / (operator.index(dim) - 1)


def kolmogorov_bound(dim: int) -> Fraction:
    """Proven upper bound 0.138/(d − 1) on sup |P(τ√d ≤ t) − Φ(t)|.

    Parameters
    ----------
    dim
        Dimension d, whole, at least 2 and however large.

    Returns
    -------
    69/(500(d − 1)), exactly. For large d it is 0.26 % above the distance, whose expansion begins with 0.137647/d.

    Raises
    ------
    ValueError
        If the dimension is below 2.

    Notes
    -----
    The proof is in the module's docstring. It makes Theorem 3.2 of Andrew et al. (arXiv 2302.03098) quantitative.
    """
    return _bound(KOLMOGOROV, dim)


def total_variation_bound(dim: int) -> Fraction:
    """Proven upper bound 0.396/(d − 1) on the total variation distance; argument and errors as ``kolmogorov_bound``.

    Returns
    -------
    99/(250(d − 1)), exactly. (d − 1)·distance is largest at d = 3, 0.39536, and tends to 0.350075.
    """
    return _bound(TOTAL_VARIATION, dim)


def gamma_bounds(shift: Fraction = Fraction(1, 4)) -> Judgement:
    """Judge 1 − 3/(2d) < (2/d)(Γ(d/2)/Γ((d − 1)/2))² ≤ 1 − 1/d, from Γ(x + 1/2)² > Γ(x)²(x − shift).

    Parameters
    ----------
    shift
        The bound's; 1/4 is the only one that gives 1 − 3/(2d).

    Returns
    -------
    The verdict: h(x + 1)/h(x) < 1, the squeeze of its limit, and what follows for d.
    """
    half, lower = Rational(1, 2), _X - Rational(shift)
    steps = sympy.expand((_X + half) ** 2 * lower - _X**2 * (lower + 1))
    squeeze = [sympy.limit(end / lower, _X, sympy.oo) for end in (_X**2 / (_X + half), _X)]
    at_dim = [sympy.simplify(2 * _U * end.subs(_X, (1 / _U - 1) / 2)) for end in (lower, _X)]
    follows = sympy.expand(at_dim[0] - (1 - Rational(3, 2) * _U)) == 0 and sympy.expand(at_dim[1] - (1 - _U)) == 0
    return held(
        bool(steps.is_negative) and squeeze == [1, 1] and follows,
        f"numerator minus denominator of h(x + 1)/h(x) is {text(steps)}; h tends to 1, so that h > 1, "
        "which at x = (d − 1)/2 is the lower bound; the upper one is log-convexity",
    )


def crossings() -> Judgement:
    """Judge that f̂_d and φ cross once on each side of √3 (d ≤ 3: once).

    Returns
    -------
    The verdict: the derivative of log r in s, r(0) < 1, and the mass of f̂_d.
    """
    d = Symbol("d", positive=True)
    log_ratio = _S / 2 + (d - 3) / 2 * sympy.log(1 - _S / d)
    derivative = sympy.factor(sympy.diff(log_ratio, _S))
    right = sympy.simplify(derivative - (3 - _S) / (2 * (d - _S))) == 0
    # With z = t²/d, the mass without the constant is √d·B(1/2, a).
    a = (d - 1) / 2
    constant = sympy.gamma(d / 2) / (sympy.gamma(a) * sympy.sqrt(sympy.pi * d))
    mass = sympy.simplify(constant * sympy.sqrt(d) * sympy.beta(Rational(1, 2), a).rewrite(sympy.gamma))
    return held(
        bool(right and mass == 1) and gamma_bounds().kind is Kind.EXACT,
        f"d log r/ds = {text(derivative)}, positive for s < min(3, d) and negative for 3 < s < d; r(0)² ≤ 1 − 1/d < 1; "
        "f̂_d and φ have mass 1",
    )


def log_ratio_bounds() -> Judgement:
    """Judge −log r ≤ u·He₄/4 + u²(c − 3s²/4 + q·s³/6) for s ≤ 3 (q = 1) and for 3 ≤ s ≤ d/2 (q = 2).

    Returns
    -------
    The verdict: identities in s and u, and the signs on which the inequalities rest.
    """
    u, s = _U, _S
    factor = (1 - 3 * u) / (2 * u)
    kept = s * u + (s * u) ** 2 / 2
    # g = s/2 + factor·log(1 − su), and −log(1 − su) ≤ kept + (su)³/(3(1 − su)): the coefficients 1/n fall.
    remainder = factor * (s * u) ** 3 / (3 * (1 - s * u))
    c = Rational(9, 16) / (1 - 3 * u / 2)
    at_zero = 3 * u / 4 + u**2 * c
    main = u * (s**2 - 6 * s + 3) / 4
    polynomial = sympy.simplify(at_zero - (s / 2 - factor * kept) - main - u**2 * (c - 3 * s**2 / 4))
    share = sympy.simplify(remainder / (u**2 * s**3 / 6))
    y = 3 * u / 2
    tail_of_log = sympy.simplify((at_zero - y / 2) - y**2 / (4 * (1 - y)))
    # share ≤ q, multiplied by 1 − su > 0.
    up_to_3 = sympy.simplify((1 - share) * (1 - s * u) - u * (3 - s))
    up_to_half = sympy.simplify((2 - share) * (1 - s * u) - (1 - 2 * s * u) - 3 * u)
    # d(−φHe₃) = φHe₄ dt, with dt = ds/(2t), t = √s.
    hermite = sympy.simplify(2 * sympy.sqrt(s) * sympy.diff(_MINUS_HE_3, s) * sympy.exp(s / 2) - 4 * main / u)
    rest = {"polynomial": polynomial, "log": tail_of_log, "s ≤ 3": up_to_3, "s ≤ d/2": up_to_half, "He": hermite}
    return held(
        {name: value == 0 for name, value in rest.items()},
        f"the cubic term is (s³u²/6)·{text(share)}, and 1 − su − (1 − 3u) = u(3 − s), "
        "2(1 − su) − (1 − 3u) = 1 − 2su + 3u",
    )


def _largest() -> tuple[arb, arb]:
    """M₁ and M₂: ∓φHe₃/4 at t² = 3 ∓ √6, where |He₃| = √6·t."""
    root = arb(6).sqrt()
    squares = (3 - root, 3 + root)
    lower, upper = ((-s / 2).exp() / (2 * arb.pi()).sqrt() * s.sqrt() * root / 4 for s in squares)
    return lower, upper


def _analytic(start: int) -> tuple[arb, arb]:
    """Upper bounds, for all d ≥ start, of (d − 1)·sup |Δ| and (d − 1)·total variation."""
    lower_main, upper_main = _largest()
    distance, variation = arb(0), arb(0)
    for piece in range(_PIECES):
        ends = (arb(fmpq(piece + end, start * _PIECES)) for end in (0, 1))
        u = next(ends).union(next(ends))
        half_c = fmpq(9, 32) / (1 - 3 * u / 2)
        lower = (1 - u) * (lower_main + u * half_c)
        upper = (1 - u) * (upper_main + u * (half_c + fmpq(5, 2)) + 192 * u * u)
        distance = distance.max(lower.max(upper))
        variation = variation.max(2 * (lower + upper))
    return distance, variation


def ball(value: Fraction) -> arb:
    """Ball of a rational number, at the precision in force."""
    return arb(fmpq(value.numerator, value.denominator))


def analytic_range(
    distance: Fraction = KOLMOGOROV, variation: Fraction = TOTAL_VARIATION, start: int = ANALYTIC_FROM
) -> Judgement:
    """Judge both bounds for all d ≥ start, from the bounds on log r.

    Parameters
    ----------
    distance, variation
        Constants over d − 1.
    start
        First dimension, at least 6, so that √3 lies below √(d/2).

    Returns
    -------
    The verdict, by balls for u = 1/d that cover [0, 1/start].
    """
    most = at_precision(_BITS, lambda: _analytic(start))
    holds = at_precision(_BITS, lambda: bool(most[0] < ball(distance) and most[1] < ball(variation)))
    shown = [float(value.upper()) for value in most]
    return held(
        holds and start >= 6,
        f"for all d ≥ {start}, (d − 1)·K(d) ≤ {shown[0]:.6f} and (d − 1)·TV(d) ≤ {shown[1]:.6f}",
        start=start,
        kolmogorov_at_most=shown[0],
        total_variation_at_most=shown[1],
    )


@cache
def _scaled(dim: int) -> tuple[arb, arb]:
    """(d − 1)·K(d) and (d − 1)·TV(d)."""

    def value() -> tuple[arb, arb]:
        lower, upper = extremes(dim)
        return (dim - 1) * lower.max(upper), (dim - 1) * 2 * (lower + upper)

    return at_precision(_BITS, value)


def certified_range(
    distance: Fraction = KOLMOGOROV, variation: Fraction = TOTAL_VARIATION, stop: int = ANALYTIC_FROM
) -> Judgement:
    """Judge both bounds for 2 ≤ d < stop, each dimension by its own enclosures.

    Parameters
    ----------
    distance, variation
        Constants over d − 1.
    stop
        First dimension that is left to ``analytic_range``.

    Returns
    -------
    The verdict, with the dimensions where (d − 1)·distance is largest.
    """
    balls = {dim: _scaled(dim) for dim in range(2, stop)}
    limits = at_precision(_BITS, lambda: (ball(distance), ball(variation)))
    holds = all(values[0] < limits[0] and values[1] < limits[1] for values in balls.values())
    worst = [max(balls, key=lambda dim: float(balls[dim][which].upper())) for which in (0, 1)]
    shown = [float(balls[dim][which].upper()) for which, dim in enumerate(worst)]
    return held(
        holds,
        f"for 2 ≤ d < {stop}, (d − 1)·K(d) is at most {shown[0]:.6f} (d = {worst[0]}), "
        f"(d − 1)·TV(d) at most {shown[1]:.6f} (d = {worst[1]})",
        stop=stop,
        kolmogorov_at_most=shown[0],
        total_variation_at_most=shown[1],
        worst_dims=worst,
    )
