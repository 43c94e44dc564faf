"""Privacy of the Gaussian mechanism at sensitivity 1, to any precision (Balle and Wang 2018, arXiv 1805.06530)."""

from mpmath import mp, mpf

from canaryproof.kernels.reference._precision import Number, converged_value, exact, positive_root


def _log_delta(epsilon: mpf, sigma: mpf) -> mpf:
    """Theorem 8 at the precision in force; NaN where that precision is too low to tell."""
    first, second = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
    # 1 − δ is a sum of positive terms: where δ is near 1 it keeps the digits of log δ.
    complement = mp.ncdf(-first) + mp.exp(epsilon) * mp.ncdf(second)
    if complement < 0.5:
        return mp.log1p(-complement)
    delta = mp.ncdf(first) - mp.exp(epsilon) * mp.ncdf(second)
    return mp.log(delta) if delta > 0 else mp.nan


def delta(epsilon: Number, noise_multiplier: Number, *, digits: int = 50) -> mpf:
    """Least δ for which the mechanism is (ε, δ)-private.

    Parameters
    ----------
    epsilon
        ε ≥ 0.
    noise_multiplier
        Standard deviation σ > 0 of the noise, per unit of sensitivity.
    digits
        Significant digits of the result.

    Returns
    -------
    Φ(1/(2σ) − εσ) − e^ε Φ(−1/(2σ) − εσ).

    Notes
    -----
    Balle and Wang (2018), Theorem 8.
    """
    e, sigma = exact(epsilon), exact(noise_multiplier)
    return converged_value(lambda: mp.exp(_log_delta(e, sigma)), digits)


def log_delta(epsilon: Number, noise_multiplier: Number, *, digits: int = 50) -> mpf:
    """Log of `delta`.

    Parameters
    ----------
    epsilon, noise_multiplier, digits
        As in `delta`.

    Returns
    -------
    Natural log of δ.
    """
    e, sigma = exact(epsilon), exact(noise_multiplier)
    return converged_value(lambda: _log_delta(e, sigma), digits)


def epsilon(delta: Number, noise_multiplier: Number, *, digits: int = 50) -> mpf:
    """Least ε ≥ 0 for which the mechanism is (ε, δ)-private.

    Parameters
    ----------
    delta
        δ, above 0 and below 1.
    noise_multiplier, digits
        As in `delta`.

    Returns
    -------
    The ε at which `delta` is δ; 0 where it is below δ already at ε = 0.
    """
    target, sigma = exact(delta), exact(noise_multiplier)

    def excess(e: mpf) -> mpf:
        return log_delta(e, sigma, digits=mp.dps) - mp.log(target)

    # A zero is a rounding accident.
    if converged_value(lambda: excess(mpf(0)) or mp.nan, 5) < 0:
        return mpf(0)
    e = positive_root(excess, digits)
    with mp.workdps(digits):
        return +e


def noise_multiplier(epsilon: Number, delta: Number, *, digits: int = 50) -> mpf:
    """Least noise for which the mechanism is (ε, δ)-private.

    Parameters
    ----------
    epsilon
        ε ≥ 0.
    delta
        δ, above 0 and below 1.
    digits
        Significant digits of the result.

    Returns
    -------
    The σ at which `delta` is δ.
    """
    e, target = exact(epsilon), exact(delta)
    sigma = positive_root(lambda s: log_delta(e, s, digits=mp.dps) - mp.log(target), digits)
    with mp.workdps(digits):
        return +sigma
