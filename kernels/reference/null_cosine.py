"""The cosine between a uniform direction in R^d and any fixed one, to any precision.

Its density is f(x) = Γ(d/2) / (Γ((d−1)/2) √π) · (1 − x²)^((d−3)/2) on (−1, 1): Andrew et al. (arXiv 2302.03098),
Theorem 3.1. The dimension d may be any real number from 2 on.
"""

from mpmath import mp, mpf

from canaryproof.kernels.reference._precision import Number, converged_value, exact, root


def _log_peak(dim: mpf) -> mpf:
    """Log f(0)."""
    return mp.loggamma(dim / 2) - mp.loggamma((dim - 1) / 2) - mp.log(mp.pi) / 2


def _logpdf(x: mpf, dim: mpf) -> mpf:
    # At d = 3, x = ±1 the power is 0⁰.
    return _log_peak(dim) + ((dim - 3) / 2 * mp.log((1 - x) * (1 + x)) if dim != 3 else 0)


def _central(x: mpf, dim: mpf) -> mpf:
    """Probability between 0 and x, as the integral of the density."""
    # The tolerance of mp.quad is absolute: here and below the variable of integration runs from 0 to 1.
    integral = mp.quad(lambda t: mp.exp((dim - 3) / 2 * mp.log1p(-((x * t) ** 2))), [0, 1])
    return x * mp.exp(_log_peak(dim)) * integral


def _log_tail(u: mpf, dim: mpf) -> mpf:
    """Log of the probability beyond x = √(1 − e^−u).

    Let a = (d−1)/2. The substitution 1 − t² = e^(−u − s/a) turns the integral of the density from x to 1 into
    f(0) e^(−au) / (2a) · ∫ e^−s / √(1 − e^(−u − s/a)) ds from 0 to ∞. It is smooth in every dimension and tail.
    """
    a = (dim - 1) / 2
    start, end = mp.exp(-u), (mp.dps + 5) * mp.log(10)  # beyond the end, e^−s is below the precision in force
    integral = mp.quad(lambda t: mp.exp(-end * t) / mp.sqrt(1 - start * mp.exp(-end * t / a)), [0, 1])
    return _log_peak(dim) - a * u + mp.log(end * integral / (2 * a))


def _log_half(u: mpf, dim: mpf) -> mpf:
    """Log of the probability beyond x = √(1 − e^−u) ≥ 0."""
    # The tail's integrand is singular at s = −a u, too near where it starts if u is small.
    if (dim - 1) * u < 1:
        return mp.log(0.5 - _central(mp.sqrt(-mp.expm1(-u)), dim))
    return _log_tail(u, dim)


def _logsf(x: mpf, dim: mpf) -> mpf:
    if x < 0:
        return mp.log1p(-mp.exp(_logsf(-x, dim)))
    return _log_half(-mp.log((1 - x) * (1 + x)), dim)


def _half_quantile(q: mpf, dim: mpf, digits: int) -> mpf:
    """Cosine beyond which the probability is q, for 0 < q < 1/2."""
    with mp.workdps(digits + 30):
        if q < 0.25:
            # The probability beyond x is at most (1 − x²)^((d−1)/2) / 2, which is where the bracket ends.
            end = -2 * mp.log(2 * q) / (dim - 1)
            u = root(lambda u: _log_half(u, dim) - mp.log(q), mpf(0), end, digits)
            return mp.sqrt(-mp.expm1(-u))
        # Were the density flat, x would be this; it is between 0.90 (d = 2) and 1.08 (d = ∞) times as much.
        flat = (0.5 - q) / mp.exp(_log_peak(dim))
        return root(lambda x: _central(x, dim) / (0.5 - q) - 1, 0.8 * flat, 1.2 * flat, digits)


def pdf(x: Number, dim: Number, *, digits: int = 50) -> mpf:
    """Density at x.

    Parameters
    ----------
    x
        Cosine from −1 to 1.
    dim
        Dimension d of the space, real, at least 2.
    digits
        Significant digits of the result.

    Returns
    -------
    f(x).
    """
    x, dim = exact(x), exact(dim)
    return converged_value(lambda: mp.exp(_logpdf(x, dim)), digits)


def logpdf(x: Number, dim: Number, *, digits: int = 50) -> mpf:
    """Log of the density at x.

    Parameters
    ----------
    x, dim, digits
        As in `pdf`.

    Returns
    -------
    Natural log of f(x).
    """
    x, dim = exact(x), exact(dim)
    return converged_value(lambda: _logpdf(x, dim), digits)


def cdf(x: Number, dim: Number, *, digits: int = 50) -> mpf:
    """Probability of a cosine up to x.

    Parameters
    ----------
    x, dim, digits
        As in `pdf`.

    Returns
    -------
    Integral of f from −1 to x.
    """
    x, dim = exact(x), exact(dim)
    return converged_value(lambda: mp.exp(_logsf(-x, dim)), digits)


def logcdf(x: Number, dim: Number, *, digits: int = 50) -> mpf:
    """Log of the probability of a cosine up to x.

    Parameters
    ----------
    x, dim, digits
        As in `pdf`.

    Returns
    -------
    Natural log of `cdf`.
    """
    x, dim = exact(x), exact(dim)
    return converged_value(lambda: _logsf(-x, dim), digits)


def sf(x: Number, dim: Number, *, digits: int = 50) -> mpf:
    """Probability of a cosine beyond x.

    Parameters
    ----------
    x, dim, digits
        As in `pdf`.

    Returns
    -------
    Integral of f from x to 1.
    """
    x, dim = exact(x), exact(dim)
    return converged_value(lambda: mp.exp(_logsf(x, dim)), digits)


def logsf(x: Number, dim: Number, *, digits: int = 50) -> mpf:
    """Log of the probability of a cosine beyond x.

    Parameters
    ----------
    x, dim, digits
        As in `pdf`.

    Returns
    -------
    Natural log of `sf`.
    """
    x, dim = exact(x), exact(dim)
    return converged_value(lambda: _logsf(x, dim), digits)


def ppf(q: Number, dim: Number, *, digits: int = 50) -> mpf:
    """Cosine up to which the probability is q.

    Parameters
    ----------
    q
        Probability from 0 to 1.
    dim, digits
        As in `pdf`.

    Returns
    -------
    x with cdf(x) = q.
    """
    x = isf(q, dim, digits=digits)
    with mp.workdps(digits):
        return -x


def isf(q: Number, dim: Number, *, digits: int = 50) -> mpf:
    """Cosine beyond which the probability is q.

    Parameters
    ----------
    q
        Probability from 0 to 1.
    dim, digits
        As in `pdf`.

    Returns
    -------
    x with sf(x) = q.
    """
    q, dim = exact(q), exact(dim)
    with mp.workdps(1000):
        tail = min(q, 1 - q)
    x = 1 - 2 * tail if tail in (0, 0.5) else _half_quantile(tail, dim, digits)
    with mp.workdps(digits):
        return +x if q == tail else -x
