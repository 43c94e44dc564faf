"""How far the cosine of a uniform direction, scaled, is from normal: proven enclosures and the expansion in 1/d.

t = τ√d, with τ the cosine between a uniform direction in R^d and a fixed one, has density

    f̂_d(t) = Γ(d/2)/(Γ((d − 1)/2)√(πd))·(1 − t²/d)^((d − 3)/2) for |t| < √d, and 0 elsewhere.

Let φ and Φ be density and distribution function of N(0, 1), F_d that of t, Δ = F_d − Φ (odd in t), r = f̂_d/φ and
s = t². As

    d log r/ds = (3 − s)/(2(d − s)),

r rises up to s = 3 (d ≤ 3: up to √d, where the density ends) and falls after. It starts below 1 (``gamma_bounds`` of
``normal_distance_bound``) and exceeds 1 somewhere, because f̂_d and φ have the same mass. So f̂_d passes φ upwards at one
t₁ > 0, and back at one t₂ (d ≤ 3: t₂ = √d), and on (0, ∞) Δ falls, rises and falls, from 0 to 0:

    sup |Δ| = max(−Δ(t₁), Δ(t₂)),    ½∫|f̂_d − φ| = 2(−Δ(t₁) + Δ(t₂)).

t₁ and t₂ are enclosed by an interval Newton step for log r in s, and F_d is the regularised incomplete beta function:
τ² has the law Beta(1/2, (d − 1)/2). All arithmetic, and that function, are flint's.
"""

import operator
from fractions import Fraction
from functools import cache

import sympy
from flint import arb, fmpq
from sympy import Expr, Poly, Rational, Symbol

from canaryproof.kernels.certified import Enclosure, Number
from canaryproof.kernels.certified._ball import enclose, exact, within

T = Symbol("t", real=True)
_LARGEST_DIM = 10**12
_LARGEST_THRESHOLD = 40.0
_HALF = fmpq(1, 2)
# Newton's method doubles the correct digits; the first steps only search.
_STEPS = 100


def _dimension(dim: int) -> int:
    number = operator.index(dim)
    within("dim", number, 2.0, float(_LARGEST_DIM))
    return number


def _log_ratio(s: arb, dim: int) -> arb:
    """Log of r at t² = s < d."""
    at_zero = arb(fmpq(dim, 2)).lgamma() - arb(fmpq(dim - 1, 2)).lgamma() - (arb(dim) / 2).log() / 2
    return at_zero + s / 2 + fmpq(dim - 3, 2) * (-s / dim).log1p()


def _normal_density(s: arb) -> arb:
    return (-s / 2).exp() / (2 * arb.pi()).sqrt()


def _excess(s: fmpq, dim: int) -> arb:
    """Δ(√s), 0 < s < d."""
    central = arb(s / dim).beta_lower(arb(_HALF), arb(fmpq(dim - 1, 2)), 1)
    return (central - (arb(s) / 2).sqrt().erf()) / 2


def _exactly(ball: arb) -> fmpq:
    """Midpoint of a ball."""
    mantissa, exponent = map(int, ball.mid().man_exp())
    return fmpq(mantissa << exponent) if exponent >= 0 else fmpq(mantissa, 1 << -exponent)


def _crossing(dim: int, low: int, high: int, start: fmpq) -> tuple[fmpq, arb]:
    """Return a point near the only zero of log r between two values of s, and a ball that contains both.

    The ball is not a number where the precision in force is too low.
    """
    point = start
    for _ in range(_STEPS):
        step = _log_ratio(arb(point), dim) * 2 * (dim - point) / (3 - point)
        if not abs(step) > 0:
            break
        # Never out of the interval, at whose ends the derivative vanishes or log r has a pole.
        proposed = _exactly(point - step)
        point = min(max(proposed, (point + low) / 2), (point + high) / 2)
        point = _exactly(arb(point))
    around = arb(point, 4 * step.abs_upper())
    image = point - _log_ratio(arb(point), dim) * 2 * (dim - around) / (3 - around)
    proven = around > low and around < high and around.contains_interior(image)
    return point, image.union(arb(point)) if proven else arb.nan()


def _extreme(dim: int, low: int, high: int, start: fmpq) -> arb:
    """Δ where f̂_d and φ cross."""
    point, around = _crossing(dim, low, high, start)
    slope = _normal_density(around) * _log_ratio(around, dim).expm1()
    # Mean value theorem: next to nothing is lost, because the slope of Δ vanishes at the crossing.
    return _excess(point, dim) + slope * (around.sqrt() - arb(point).sqrt())


def extremes(dim: int) -> tuple[arb, arb]:
    """−Δ(t₁) and Δ(t₂), as balls at the precision in force.

    Parameters
    ----------
    dim
        Dimension d, whole, 2 ≤ d ≤ 1e12.

    Returns
    -------
    Both of them positive; balls that are not numbers where the precision is too low.

    Raises
    ------
    ValueError
        If the dimension lies outside the domain.
    """
    dim = _dimension(dim)
    lower = -_extreme(dim, 0, min(dim, 3), fmpq(1, 2))
    if dim <= 3:
        return lower, (arb(dim) / 2).sqrt().erfc() / 2
    # (3 + √6) is where the zero goes as d grows; it lies left of that.
    return lower, _extreme(dim, 3, dim, min(fmpq(11, 2), fmpq(dim + 3, 2)))


def kolmogorov(dim: int) -> Enclosure:
    """Enclose sup |P(τ√d ≤ t) − Φ(t)|, the Kolmogorov distance from N(0, 1).

    Parameters
    ----------
    dim
        Dimension d, whole, 2 ≤ d ≤ 1e12.

    Returns
    -------
    Enclosure of the distance, which is also that of τ from N(0, 1/d).

    Raises
    ------
    ValueError
        If the dimension lies outside the domain.

    Notes
    -----
    The law is that of Andrew et al. (arXiv 2302.03098), Theorem 3.1, and the distance is what their Theorem 3.2 says
    vanishes as d grows. See the module for the method.
    """

    def value() -> arb:
        lower, upper = extremes(dim)
        return lower.max(upper)

    return enclose(value, least=0.0, greatest=1.0)


def total_variation(dim: int) -> Enclosure:
    """Enclose ½∫|f̂_d − φ|, the total variation distance of τ√d from N(0, 1); arguments and errors as ``kolmogorov``.

    Returns
    -------
    Enclosure of the distance: the largest difference between the two probabilities of any event.
    """

    def value() -> arb:
        lower, upper = extremes(dim)
        return 2 * (lower + upper)

    return enclose(value, least=0.0, greatest=1.0)


def difference(t: Number, dim: int) -> Enclosure:
    """Enclose Δ(t) = P(τ√d ≤ t) − Φ(t).

    Parameters
    ----------
    t
        Point, 0 < t < √d.
    dim
        Dimension d, whole, 2 ≤ d ≤ 1e12.

    Returns
    -------
    Enclosure of the difference.

    Raises
    ------
    ValueError
        If an argument lies outside its domain.
    """
    dim = _dimension(dim)
    point = exact("t", t)
    if not (point > 0 and point * point < dim):
        raise ValueError("t must lie strictly between 0 and √d")
    return enclose(lambda: _excess(point * point, dim))


def tail_relative_error(threshold: Fraction | float, dim: int) -> Enclosure:
    """Enclose P(τ√d > t)/(1 − Φ(t)) − 1: by how much N(0, 1/d) misjudges a tail of the null.

    Parameters
    ----------
    threshold
        t, from 0 to 40.
    dim
        Dimension d, whole, 2 ≤ d ≤ 1e12.

    Returns
    -------
    Enclosure of the relative error; −1 for t ≥ √d, where the exact tail is empty.

    Raises
    ------
    ValueError
        If an argument lies outside its domain.
    """
    dim = _dimension(dim)
    t = within("threshold", threshold, 0.0, _LARGEST_THRESHOLD)
    s = t * t

    def value() -> arb:
        if s >= dim:
            return arb(-1)
        tail = arb(1 - s / dim).beta_lower(arb(fmpq(dim - 1, 2)), arb(_HALF), 1)
        return tail / (arb(t) / arb(2).sqrt()).erfc() - 1

    return enclose(value, least=-1.0)


def _normal_mean(polynomial: Expr) -> Expr:
    """Return the expectation of a polynomial in t under N(0, 1)."""
    moments = {n: sympy.factorial2(n - 1) if n % 2 == 0 else 0 for (n,), _ in Poly(polynomial, T).terms()}
    mean: Expr = sympy.Add(*(c * moments[n] for (n,), c in Poly(polynomial, T).terms()))
    return mean


def _integral(polynomial: Expr) -> Expr:
    """P with (φP)′ = φ·polynomial, for a polynomial of mean 0 under N(0, 1)."""
    rest, integral = Poly(polynomial, T), Poly(0, T)
    while not rest.is_zero:
        term = Poly(-rest.LC() * T ** (rest.degree() - 1), T)
        integral += term
        rest -= term.diff(T) - Poly(T, T) * term
    result: Expr = sympy.factor(integral.as_expr())
    return result


@cache
def expansion(order: int) -> tuple[Expr, ...]:
    """Polynomials P₁, …, P_n in t of F_d(t) = Φ(t) + φ(t)(P₁(t)/d + … + P_n(t)/dⁿ) + O(1/dⁿ⁺¹).

    Parameters
    ----------
    order
        n ≥ 1.

    Returns
    -------
    The polynomials, in ``T``; P₁ = He₃/4.

    Notes
    -----
    (1 − s/d)^((d − 3)/2)·e^(s/2) is expanded in u = 1/d, its normalising constant follows from the mass 1, and the
    densities' difference is integrated term by term.
    """
    u, s = Symbol("u", positive=True), T**2
    logarithm = -sympy.Add(*((s * u) ** n / n for n in range(1, order + 2)))
    log_shape = sympy.expand(s / 2 + (1 / (2 * u) - Rational(3, 2)) * logarithm)
    log_shape = sympy.Add(*(log_shape.coeff(u, n) * u**n for n in range(1, order + 1)))
    shape = sympy.expand(sympy.Add(*(log_shape**n / sympy.factorial(n) for n in range(order + 1))))
    terms = [shape.coeff(u, n) for n in range(order + 1)]
    masses = [_normal_mean(term) for term in terms]
    densities: list[Expr] = [sympy.Integer(1)]
    for n in range(1, order + 1):
        carried = sympy.Add(*(masses[j] * densities[n - j] for j in range(1, n + 1)))
        densities.append(sympy.expand(terms[n] - carried))
    return tuple(_integral(density) for density in densities[1:])


def leading_extremes(dim: int) -> tuple[float, float]:
    """First two terms of the expansions of −Δ(t₁) and Δ(t₂) in 1/d.

    Parameters
    ----------
    dim
        Dimension d.

    Returns
    -------
    Approximations of Δ's extremes, of relative error O(1/d²).

    Notes
    -----
    Up to 1/d² the terms may be taken where φ·P₁ has its extremes, t² = 3 ∓ √6: to move an extreme by O(1/d) changes its
    value by O(1/d²) times 1/d.
    """
    series = sympy.Add(*(p / sympy.Integer(dim) ** n for n, p in enumerate(expansion(2), 1)))
    density = sympy.exp(-(T**2) / 2) / sympy.sqrt(2 * sympy.pi)
    lower, upper = (float((density * series).subs(T, sympy.sqrt(3 + way * sympy.sqrt(6))).evalf(30)) for way in (-1, 1))
    return -lower, upper
