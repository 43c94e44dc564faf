"""Law of the cosine between a uniform direction in R^d and any fixed one, as proven enclosures.

Density f(x) = Γ(d/2) / (Γ((d − 1)/2) √π) · (1 − x²)^((d − 3)/2) on (−1, 1): Andrew et al. (arXiv 2302.03098),
Theorem 3.1. With a = (d − 1)/2, its integrals are, for 0 < x < 1,

* ∫₀ˣ f = f(0)·x·(1 − x²)^a·₂F₁(1, d/2; 3/2; x²) (DLMF 8.17.8): a power series of positive terms, whose remainder a
  geometric series bounds;
* ∫ₓ¹ f = f(0)·(1 − x²)^a/(2ax)·₂F₁(1, 1/2; a + 1; −w), w = (1 − x²)/x² (DLMF 8.17.7 and 15.8.1). This function is
  Gauss's continued fraction 1/(1 + e₁w/(1 + e₂w/(1 + …))) (DLMF 15.7.1 with b = 0), a Stieltjes fraction: all eₙ > 0.
  Its value is exactly the n-th convergent with a tail added to the last denominator. The tail is positive, because
  it is a ratio of ₂F₁'s that Euler's integral (DLMF 15.6.1) shows to be positive. A fraction of positive elements is
  monotone in its tail. So the value lies between the convergents with tail 0 and tail ∞, which are the n-th and the
  one before: they lie above and below it in turn. The hull of two neighbours, balls themselves, encloses it.

Proven are the two remainders, as above, and all arithmetic, by flint; the identities are cited.

Domain: 2 ≤ d ≤ 1e12 and any x, floats, ints or Fractions, taken as the exact numbers that they are. All enclosures are
tight (at most 2 ulps) for floats. Fractions may be chosen so close to a zero of ``logpdf`` or ``logcdf``, or to a
quantile, that 8192 bits don't tell: then ``is_tight`` may be False.
"""

import flint
from flint import arb, fmpq

from canaryproof.kernels import null_cosine as fast
from canaryproof.kernels.certified._ball import (
    PRECISIONS,
    Disturbed,
    Enclosure,
    Number,
    at_precision,
    bracket,
    enclose,
    exact,
    guess,
    within,
)
from canaryproof.kernels.certified._series import GUARD, hypergeometric

_LARGEST_DIM = 1e12
_HALF = fmpq(1, 2)


def _log_peak(dim: fmpq) -> arb:
    """Log f(0)."""
    return arb(dim / 2).lgamma() - arb((dim - 1) / 2).lgamma() - arb.pi().log() / 2


def _log_power(x: fmpq, power: fmpq) -> arb:
    """Log of (1 − x²)^power for |x| < 1."""
    return power * arb(1 - x * x).log()


def tail_fraction(x: fmpq, dim: fmpq) -> arb:
    """₂F₁(1, 1/2; (d + 1)/2; −w), w = (1 − x²)/x²."""
    # With d = p/q, an equivalence transformation by rₙ = p + (2n − 1)q frees the elements of fractions: the n-th step
    # is aₙw/(rₙ + …), aₙ = rₙ·rₙ₋₁·eₙ.
    p, q = int(dim.p), int(dim.q)
    w = arb((1 - x * x) / (x * x))
    prec = flint.ctx.prec
    resolution = arb((1, GUARD - prec))
    # Denominators and numerators of the last two convergents: 1, and then 1/(1 + e₁w).
    below_before, above_before = arb(1), arb(1)
    below, above = (p + q) + q * w, arb(p + q)
    n = 1
    while flint.ctx.prec == prec:
        for _ in range(8):
            n += 1
            m = n // 2
            if n % 2:
                coefficient = q * (2 * m + 1) * (p + q + 2 * q * (m - 1)) * w
            else:
                coefficient = 2 * q * m * (p + 2 * q * (m - 1)) * w
            r = p + (2 * n - 1) * q
            below, below_before = r * below + coefficient * below_before, below
            above, above_before = r * above + coefficient * above_before, above
        last, before = above / below, above_before / below_before
        if abs(last - before) < resolution * last:
            return last.union(before)
    raise Disturbed


def _is_series_shorter(x: fmpq, dim: fmpq) -> bool:
    """Whether to take the series rather than the fraction; either is right anywhere.

    At prec bits the fraction needs about (0.35·prec/z)² terms, z = x√d, and the series about prec + z² (where
    x² < 1/2), but 0.7·z² bits then cancel in 1/2 − P(0 < cosine < x).
    """
    square = x * x
    return 2 * square < 1 and 8 * dim * square < flint.ctx.prec


def _central(x: fmpq, dim: fmpq) -> arb:
    """P(0 < cosine < x) for 0 < x < 1."""
    return arb(x) * hypergeometric(dim / 2, fmpq(3, 2), x * x) * (_log_peak(dim) + _log_power(x, (dim - 1) / 2)).exp()


def _log_tail(x: fmpq, dim: fmpq) -> arb:
    """Log of P(cosine > x) for 0 < x < 1, by the continued fraction."""
    scale = tail_fraction(x, dim) / ((dim - 1) * x)
    return _log_peak(dim) + _log_power(x, (dim - 1) / 2) + scale.log()


def _upper(x: fmpq, dim: fmpq) -> arb:
    """P(cosine > x) for x ≥ 0."""
    if x >= 1:
        return arb(0)
    if x == 0:
        return arb(_HALF)
    if dim == 3:
        return arb((1 - x) / 2)
    return _HALF - _central(x, dim) if _is_series_shorter(x, dim) else _log_tail(x, dim).exp()


def _log_upper(x: fmpq, dim: fmpq) -> arb:
    if x >= 1:
        return arb.neg_inf()
    if x == 0 or dim == 3 or _is_series_shorter(x, dim):
        return _upper(x, dim).log()
    return _log_tail(x, dim)


def _sf(x: fmpq, dim: fmpq) -> Enclosure:
    return enclose(lambda: _upper(x, dim) if x >= 0 else 1 - _upper(-x, dim), least=0.0, greatest=1.0)


def _logsf(x: fmpq, dim: fmpq) -> Enclosure:
    return enclose(lambda: _log_upper(x, dim) if x >= 0 else (-_upper(-x, dim)).log1p(), greatest=0.0)


def _log_density(x: fmpq, dim: fmpq) -> arb:
    if dim == 3:
        return arb(_HALF).log() if abs(x) <= 1 else arb.neg_inf()
    if abs(x) >= 1:
        return arb.pos_inf() if abs(x) == 1 and dim < 3 else arb.neg_inf()
    return _log_peak(dim) + _log_power(x, (dim - 3) / 2)


def _density(x: fmpq, dim: fmpq) -> arb:
    if dim == 3 and abs(x) <= 1:
        return arb(_HALF)
    if abs(x) >= 1:
        return arb.pos_inf() if abs(x) == 1 and dim < 3 else arb(0)
    return _log_density(x, dim).exp()


def _quantile(q: fmpq, dim: fmpq, start: float) -> Enclosure:
    """Enclose the x ≥ 0 with P(cosine > x) = q, for 0 ≤ q ≤ 1/2."""
    if q in (0, _HALF) or dim == 3:
        return enclose(lambda: arb(1 - 2 * q))
    # Positive at 0, where P is 1/2; not positive at 1, where P is 0.
    return bracket(lambda x: _upper(x, dim) - arb(q), start, 1.0)


def _mirror(enclosure: Enclosure) -> Enclosure:
    # 0.0 − x: no negative zero. Flint rounds a ball that it negates.
    ball = at_precision(PRECISIONS[-1], lambda: -enclosure.ball)
    return Enclosure(0.0 - enclosure.hi, 0.0 - enclosure.lo, ball)


def _arguments(x: Number, dim: Number) -> tuple[fmpq, fmpq]:
    return exact("x", x), within("dim", dim, 2.0, _LARGEST_DIM)


def pdf(x: Number, dim: Number) -> Enclosure:
    """Enclose the density of the cosine.

    Parameters
    ----------
    x
        Cosine; the density is 0 outside [−1, 1], and at −1 and 1 its limit.
    dim
        Dimension d of the space, 2 ≤ d ≤ 1e12, not necessarily whole.

    Returns
    -------
    Enclosure of the density per unit of cosine.

    Raises
    ------
    ValueError
        If the dimension lies outside the domain, or the cosine is not finite.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Theorem 3.1.
    """
    number, d = _arguments(x, dim)
    return enclose(lambda: _density(number, d), least=0.0)


def logpdf(x: Number, dim: Number) -> Enclosure:
    """Enclose the natural log of ``pdf``, which doesn't underflow; arguments and errors as there."""
    number, d = _arguments(x, dim)
    return enclose(lambda: _log_density(number, d))


def cdf(x: Number, dim: Number) -> Enclosure:
    """Enclose the probability that the cosine is at most x.

    Parameters
    ----------
    x
        Cosine.
    dim
        Dimension d of the space, 2 ≤ d ≤ 1e12, not necessarily whole.

    Returns
    -------
    Enclosure of the probability.

    Raises
    ------
    ValueError
        If the dimension lies outside the domain, or the cosine is not finite.

    Notes
    -----
    See the module.
    """
    number, d = _arguments(x, dim)
    return _sf(-number, d)


def logcdf(x: Number, dim: Number) -> Enclosure:
    """Enclose the natural log of ``cdf``, which doesn't underflow; arguments and errors as there."""
    number, d = _arguments(x, dim)
    return _logsf(-number, d)


def sf(x: Number, dim: Number) -> Enclosure:
    """Enclose the probability that the cosine exceeds x; arguments and errors as for ``cdf``."""
    return _sf(*_arguments(x, dim))


def logsf(x: Number, dim: Number) -> Enclosure:
    """Enclose the natural log of ``sf``, which doesn't underflow; arguments and errors as for ``cdf``."""
    return _logsf(*_arguments(x, dim))


def ppf(q: Number, dim: Number) -> Enclosure:
    """Enclose the cosine below which the probability is q; arguments and errors as for ``isf``."""
    return _mirror(isf(q, dim))


def isf(q: Number, dim: Number) -> Enclosure:
    """Enclose the cosine above which the probability is q.

    Parameters
    ----------
    q
        Probability in [0, 1].
    dim
        Dimension d of the space, 2 ≤ d ≤ 1e12, not necessarily whole.

    Returns
    -------
    Floats with sf(lo) ≥ q ≥ sf(hi), both proven by enclosures of sf, and equal where the cosine is a float that the
    closed forms (q = 0, 1/2, 1; d = 3) give. Where it is another float, they are the floats on either side of that.

    Raises
    ------
    ValueError
        If the dimension lies outside the domain, or the probability outside [0, 1].

    Notes
    -----
    See the module. The fast kernel says where the search starts.
    """
    probability, d = within("q", q, 0.0, 1.0), within("dim", dim, 2.0, _LARGEST_DIM)
    start = guess(fast.isf, q, dim)
    if probability > _HALF:
        return _mirror(_quantile(1 - probability, d, -start))
    return _quantile(probability, d, start)
