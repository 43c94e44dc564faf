"""ε of a few sampled Gaussian rounds by another road: closed forms of one round, and an integral for each one more.

δ of k + 1 rounds is E[δ_k(ε − L)], with L the loss of one round. δ of one round has a closed form, and log δ_k is a
cubic spline of a fine mesh, so that there is no grid of losses and no transform.
"""

import numpy as np
from scipy import interpolate, special

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def _log_gaussian(epsilon, noise):
    """log δ of the Gaussian mechanism at any real ε, by the difference of two Mills ratios."""
    a, b = 0.5 / noise - epsilon * noise, -0.5 / noise - epsilon * noise
    far = np.minimum(a, 0.0)
    small = (
        -0.5 * far**2
        + np.log(np.maximum(special.erfcx(-far / 2**0.5) - special.erfcx(-b / 2**0.5), 1e-300))
        - np.log(2)
    )
    plain = np.log(np.maximum(special.ndtr(a) - np.exp(np.minimum(epsilon, 700.0)) * special.ndtr(b), 1e-300))
    return np.where(a < 0.0, small, plain)


def log_delta_of_one(pair, noise, rate, epsilon):
    """log δ of one round; ``remove``, ``add`` or ``mirrored``."""
    epsilon = np.asarray(epsilon, dtype=np.float64)
    with np.errstate(all="ignore"):
        if pair == "mirrored":
            below = np.log(-np.expm1(epsilon) + np.exp(epsilon + log_delta_of_one("remove", noise, rate, -epsilon)))
            return np.where(epsilon >= 0.0, log_delta_of_one("remove", noise, rate, np.maximum(epsilon, 0.0)), below)
        whole = np.log(-np.expm1(epsilon))
        if pair == "remove":
            inner = np.where(epsilon < 30, np.log1p(np.expm1(epsilon) / rate), epsilon - np.log(rate))
            return np.where(epsilon > np.log1p(-rate), np.log(rate) + _log_gaussian(inner, noise), whole)
        share = -np.expm1(epsilon + np.log1p(-rate))
        inner = epsilon + np.log(rate) - np.log(share)
        return np.where(share > 0.0, np.log(share) + _log_gaussian(inner, noise), -np.inf)


def _losses(pair, noise, rate, kink, width):
    """Losses of a round and their log masses, on panels that narrow towards the output of some loss."""
    ends = np.linspace(-38 * noise, 1 + 38 * noise, 2 + int((1 + 76 * noise) / (width * min(noise, 2 * noise**2))))
    ratio = kink if pair == "remove" else -kink
    if ratio > np.log1p(-rate):
        away = np.log1p(np.expm1(ratio) / rate) if ratio < 30 else ratio - np.log(rate)
        centre = 0.5 + noise**2 * away
        steps = np.geomspace(1e-12, 1 + 76 * noise, 60)
        ends = np.union1d(ends, np.clip(np.concatenate([centre - steps, centre + steps]), ends[0], ends[-1]))
    half = np.diff(ends)[:, None] / 2
    x = (ends[:-1, None] + half + half * _POINTS).ravel()
    null = -(x**2) / (2 * noise**2) - np.log(noise * np.sqrt(2 * np.pi)) + np.log((half * _WEIGHTS).ravel())
    t = (x - 0.5) / noise**2
    low = np.log1p(rate * np.expm1(np.minimum(t, 40.0)))
    ratio = np.where(t < 40.0, low, t + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.maximum(t, 40.0))))
    losses, logs = (ratio, null + ratio) if pair == "remove" else (-ratio, null)
    return losses[logs > -760], logs[logs > -760]


def log_delta(pair, noise, rate, rounds, top, width=0.5, points=1500):
    """log δ of so many rounds, ``remove`` or ``add``, as a function of an ε from 0 to ``top``."""
    ends = np.array([-38 * noise, 1 + 38 * noise])
    t = (ends - 0.5) / noise**2
    least, most = np.sort(np.where(t < 40, np.log1p(rate * np.expm1(np.minimum(t, 40))), t + np.log(rate)))
    least, most = (least, most) if pair == "remove" else (-most, -least)

    def with_one_more(known):
        def log(epsilon):
            losses, logs = _losses(pair, noise, rate, epsilon, width)
            terms = logs + known(epsilon - losses)
            largest = terms.max()
            return largest + np.log(np.exp(terms - largest).sum()) if largest > -np.inf else -np.inf

        return log

    def interpolated(log, low, high):
        # The mesh is as fine about 0 as losses of a round without the record are.
        steps = np.sinh(np.linspace(0.0, np.arcsinh(max(-low, high) / (1e-2 * rate)), points)) * 1e-2 * rate
        mesh = np.union1d(-steps[steps <= -low * 1.01], steps[steps <= high * 1.01])
        values = np.array([log(epsilon) for epsilon in mesh])
        good = np.isfinite(values)
        if np.count_nonzero(good) < 8:
            # Nothing is added beyond −log(1 − q) a round.
            return lambda epsilon: np.full(np.shape(epsilon), -np.inf)
        spline, edge = interpolate.CubicSpline(mesh[good], values[good]), mesh[good][-1]
        return lambda epsilon: np.where(epsilon > edge, -np.inf, spline(np.minimum(epsilon, edge)))

    def log_of_one(epsilon):
        return log_delta_of_one(pair, noise, rate, epsilon)

    log = log_of_one if rounds == 1 else with_one_more(log_of_one)
    for left in range(rounds - 2, 0, -1):
        # The losses of the rounds that are left move ε by as much.
        log = with_one_more(interpolated(log, -left * most, top - left * least))
    return log
