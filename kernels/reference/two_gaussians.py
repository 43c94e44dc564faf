"""Hockey-stick divergence between two Gaussians on the line, to any precision."""

from mpmath import mp, mpf

from canaryproof.kernels.reference._precision import Number, converged_value, exact, positive_root


def _inside(low: mpf, high: mpf) -> mpf:
    """Probability that a standard normal lies between ``low`` and ``high``."""
    # The interval or its mirror image, whichever is further left, loses no digit on 1 − tiny.
    return mp.ncdf(high) - mp.ncdf(low) if low + high < 0 else mp.ncdf(-low) - mp.ncdf(-high)


def _outside(low: mpf, high: mpf) -> mpf:
    return mp.ncdf(low) + mp.ncdf(-high)


def _extreme(mu1: mpf, sigma1: mpf, mu2: mpf, sigma2: mpf) -> mpf:
    """Value of the parabola Z at its vertex: its maximum if σ1 < σ2, its minimum if σ1 > σ2."""
    return mp.log(sigma2 / sigma1) + (mu1 - mu2) ** 2 / (2 * (sigma2 - sigma1) * (sigma2 + sigma1))


def _log_delta(epsilon: mpf, mu1: mpf, sigma1: mpf, mu2: mpf, sigma2: mpf) -> mpf:
    """Log of P1(Z > ε) − e^ε P2(Z > ε) at the precision in force; NaN where that precision is too low to tell.

    With r = σ2² − σ1² and D = μ1 − μ2, the vertex of Z(x) lies at μ1 + σ1² D / r = μ2 + σ2² D / r. Z = ε at a distance
    of σ1 σ2 √(2 (extreme − ε) / r) from it.
    """
    shift = mu1 - mu2
    if sigma1 == sigma2:
        mu = abs(shift) / sigma1
        above1, below1 = mp.ncdf(mu / 2 - epsilon / mu), mp.ncdf(epsilon / mu - mu / 2)
        above2 = mp.ncdf(-mu / 2 - epsilon / mu)
    else:
        r = (sigma2 - sigma1) * (sigma2 + sigma1)
        square = 2 * (_extreme(mu1, sigma1, mu2, sigma2) - epsilon) / r
        if square <= 0:
            return mp.nan
        centre1, width1 = sigma1 * shift / r, sigma2 * mp.sqrt(square)
        centre2, width2 = sigma2 * shift / r, sigma1 * mp.sqrt(square)
        above, below = (_inside, _outside) if sigma1 < sigma2 else (_outside, _inside)
        above1, below1 = above(centre1 - width1, centre1 + width1), below(centre1 - width1, centre1 + width1)
        above2 = above(centre2 - width2, centre2 + width2)
    # 1 − δ is a sum of positive terms: where δ is near 1 it keeps the digits of log δ.
    complement = below1 + mp.exp(epsilon) * above2
    if 0 < complement < 0.5:
        return mp.log1p(-complement)
    delta = above1 - mp.exp(epsilon) * above2
    return mp.log(delta) if 0 < delta < 1 else mp.nan


def _forward_log_delta(epsilon: mpf, pair: tuple[mpf, ...], digits: int) -> mpf:
    mu1, sigma1, mu2, sigma2 = pair
    if mu1 == mu2 and sigma1 == sigma2:
        return -mp.inf
    # The extreme is irrational and ε rational, so some precision shows which is larger.
    if sigma1 < sigma2 and converged_value(lambda: _extreme(*pair) - epsilon, 5) < 0:
        return -mp.inf
    return converged_value(lambda: _log_delta(epsilon, *pair), digits)


def _forward_epsilon(delta: mpf, pair: tuple[mpf, ...], digits: int) -> mpf:
    _, sigma1, _, sigma2 = pair
    bounded = sigma1 < sigma2
    ceiling = converged_value(lambda: _extreme(*pair), 3 * digits + 30) if bounded else mp.inf

    # The root is often next to the ceiling, or tiny in comparison: y = −log(1 − ε / ceiling) resolves both ends.
    def loss(y: mpf) -> mpf:
        with mp.workdps(2 * mp.dps):
            return -ceiling * mp.expm1(-y) if bounded else y

    def excess(y: mpf) -> mpf:
        return _forward_log_delta(loss(y), pair, mp.dps) - mp.log(delta)

    # A zero is a rounding accident.
    if converged_value(lambda: excess(mpf(0)) or mp.nan, 5) < 0:
        return mpf(0)
    with mp.workdps(digits):
        if bounded and excess((digits + 5) * mp.log(10)) > 0:
            return +ceiling
    y = positive_root(excess, digits)
    with mp.workdps(digits):
        return +loss(y)


def _directions(direction: str, *pair: Number) -> list[tuple[mpf, ...]]:
    mu1, sigma1, mu2, sigma2 = map(exact, pair)
    forward, reverse = (mu1, sigma1, mu2, sigma2), (mu2, sigma2, mu1, sigma1)
    return {"forward": [forward], "reverse": [reverse], "both": [forward, reverse]}[direction]


def log_delta(
    epsilon: Number,
    mu1: Number,
    sigma1: Number,
    mu2: Number,
    sigma2: Number,
    direction: str = "both",
    *,
    digits: int = 50,
) -> mpf:
    """Log of the hockey-stick divergence δ(ε) between N(μ1, σ1²) and N(μ2, σ2²).

    Parameters
    ----------
    epsilon
        ε ≥ 0.
    mu1, sigma1, mu2, sigma2
        Means and standard deviations.
    direction
        "forward" for the first Gaussian from the second, "reverse" for the second from the first, "both" for the
        larger.
    digits
        Significant digits of the result.

    Returns
    -------
    log(P1(Z > ε) − e^ε P2(Z > ε)) with Z = log(p1 / p2); −inf where the divergence is 0.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Section 3.2.
    """
    pairs = _directions(direction, mu1, sigma1, mu2, sigma2)
    return max(_forward_log_delta(exact(epsilon), pair, digits) for pair in pairs)


def epsilon(
    delta: Number,
    mu1: Number,
    sigma1: Number,
    mu2: Number,
    sigma2: Number,
    direction: str = "both",
    *,
    digits: int = 50,
) -> mpf:
    """Least ε ≥ 0 at which the hockey-stick divergence of two Gaussians is at most δ.

    Parameters
    ----------
    delta
        δ, above 0 and below 1.
    mu1, sigma1, mu2, sigma2, direction
        As in `log_delta`.
    digits
        Significant digits of the result.

    Returns
    -------
    The ε at which the divergence is δ; 0 where it is below δ already at ε = 0.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Section 3.2.
    """
    pairs = _directions(direction, mu1, sigma1, mu2, sigma2)
    return max(_forward_epsilon(exact(delta), pair, digits) for pair in pairs)
