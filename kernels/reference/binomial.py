"""Confidence limits for the probability of success of a binomial law, to any precision."""

from mpmath import mp, mpf

from canaryproof.kernels.reference._precision import Number, exact, root


def _log_lower_tail(a: mpf, b: mpf, p: mpf, q: mpf) -> mpf:
    """Log of the regularised incomplete beta function I_p(a, b) for p up to about a / (a + b), where q = 1 − p.

    With t = p e^(−s/a), the integral of t^(a−1) (1 − t)^(b−1) from 0 to p becomes that of
    p^a q^(b−1) / a · e^−s ((1 − t) / q)^(b−1) from s = 0 to ∞. It is smooth in every size of sample.
    """

    def log_integrand(s: mpf) -> mpf:
        return -s + (b - 1) * mp.log((1 - p * mp.exp(-s / a)) / q)

    # The integrand falls from 1, ever faster.
    end = mpf(1)
    while log_integrand(end) > -(mp.dps + 5) * mp.log(10):
        end *= 2
    # The tolerance of mp.quad is absolute: the variable of integration runs from 0 to 1.
    integral = mp.quad(lambda t: mp.exp(log_integrand(end * t)), [0, 1])
    log_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    return a * mp.log(p) + (b - 1) * mp.log(q) - mp.log(a) - log_beta + mp.log(end * integral)


def _log_beta_cdf(a: mpf, b: mpf, p: mpf, q: mpf) -> mpf:
    """Log of I_p(a, b), from the integral of the smaller tail."""
    if p * (a + b) <= a:
        return _log_lower_tail(a, b, p, q)
    return mp.log1p(-mp.exp(_log_lower_tail(b, a, q, p)))


def _tail(confidence: Number, sides: int) -> mpf:
    with mp.workdps(1000):
        return (1 - exact(confidence)) / sides


def _limit(successes: Number, trials: Number, tail: mpf, method: str, digits: int, is_upper: bool) -> mpf:
    """Solution x of I_x(a, b) = tail, or for an upper limit of I_(1−x)(a, b) = tail with failures for successes."""
    with mp.workdps(1000):
        s, f = exact(successes), exact(trials) - exact(successes)
        s, f = (f, s) if is_upper else (s, f)
        a, b = {"clopper-pearson": (s, f + 1), "jeffreys": (s + 0.5, f + 0.5)}[method]
    if s == 0:
        return mpf(1 if is_upper else 0)

    def excess(x: mpf) -> mpf:
        p, q = (1 - x, x) if is_upper else (x, 1 - x)
        return _log_beta_cdf(a, b, p, q) - mp.log(tail)

    def at(z: float) -> mpf:
        # The log-odds of a beta variable are about normal.
        odds = a / b * mp.exp(z * mp.sqrt(1 / a + 1 / b))
        return 1 / (1 + odds) if is_upper else odds / (1 + odds)

    # `root` proves its result.
    with mp.workdps(20):
        low, high = -1.0, 1.0
        while excess(at(low)) > 0:
            low *= 2
        while excess(at(high)) < 0:
            high *= 2
        ends = sorted((at(low), at(high)))
    x = root(excess, ends[0], ends[1], digits)
    with mp.workdps(digits):
        return +x


def lower(
    successes: Number, trials: Number, confidence: Number = 0.95, method: str = "clopper-pearson", *, digits: int = 50
) -> mpf:
    """One-sided lower limit of the probability of success.

    Parameters
    ----------
    successes, trials
        Counts of successes and of all trials.
    confidence
        Between 0 and 1.
    method
        "clopper-pearson", the p for which so many successes or more have probability 1 − confidence; or "jeffreys", the
        quantile of the Beta(successes + 1/2, failures + 1/2) law, but 0 where there is no success.
    digits
        Significant digits of the result.

    Returns
    -------
    The limit.

    Notes
    -----
    Clopper and Pearson (1934); Brown, Cai and DasGupta (2001), "Interval estimation for a binomial proportion".
    """
    return _limit(successes, trials, _tail(confidence, 1), method, digits, is_upper=False)


def upper(
    successes: Number, trials: Number, confidence: Number = 0.95, method: str = "clopper-pearson", *, digits: int = 50
) -> mpf:
    """One-sided upper limit of the probability of success.

    Parameters
    ----------
    successes, trials, confidence, method, digits
        As in `lower`; what `lower` gives for the failures, subtracted from 1.

    Returns
    -------
    The limit.
    """
    return _limit(successes, trials, _tail(confidence, 1), method, digits, is_upper=True)


def interval(
    successes: Number, trials: Number, confidence: Number = 0.95, method: str = "clopper-pearson", *, digits: int = 50
) -> tuple[mpf, mpf]:
    """Two-sided limits of the probability of success, with equal tails.

    Parameters
    ----------
    successes, trials, confidence, method, digits
        As in `lower`.

    Returns
    -------
    The lower and the upper limit.
    """
    tail = _tail(confidence, 2)
    low, high = (_limit(successes, trials, tail, method, digits, is_upper) for is_upper in (False, True))
    return low, high
