"""ε of sampled Gaussian rounds by another road: an integral along a vertical line, without any grid of losses.

δ(ε) = (1/2π)∫ E[e^(zL)]^T · e^(−zε) / (z(1 + z)) dt with z = λ + it. A sum over equidistant t is δ(ε) and what δ is a
period and more away, times e^(−λ·period), so that the period decides its error. Expectations are Gauss–Legendre sums
in long doubles. Where a few rounds among many decide, the integrand falls slowly, and the sum is off by up to 1% of δ.
"""

import numpy as np

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def _log_ratio(t, rate):
    middle = np.log1p(rate * np.expm1(np.minimum(t, 40)))
    return np.where(t < 40, middle, t + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.maximum(t, 40))))


def losses_of_round(pair, noise, rate, width=1.0):
    """Losses and log masses of one round; noise is per distance of neighbours."""
    low, high = -38 * noise, 1 + 38 * noise
    panels = int(np.ceil((high - low) / (width * min(noise / 2, 2 * noise**2))))
    ends = np.linspace(low, high, panels + 1)
    half = (ends[1:] - ends[:-1])[:, None] / 2
    x = (ends[:-1, None] + half + half * _POINTS).ravel().astype(np.longdouble)
    weights = (half * _WEIGHTS).ravel().astype(np.longdouble)
    noise, rate = np.longdouble(noise), np.longdouble(rate)
    null = -(x**2) / (2 * noise**2) - np.log(noise * np.sqrt(2 * np.longdouble(np.pi))) + np.log(weights)
    t = (x - np.longdouble(0.5)) / noise**2
    ratio = _log_ratio(t, rate)
    if pair == "remove":
        return ratio, null + ratio
    if pair == "add":
        return -ratio, null
    if pair == "replace":
        return ratio - _log_ratio((-x - np.longdouble(0.5)) / noise**2, rate), null + ratio
    # The larger law's losses above 0, the smaller one's below, and the rest at 0.
    above = t > 0
    logs = np.concatenate([(null + ratio)[above], null[above]])
    losses = np.concatenate([ratio[above], -ratio[above]])
    return np.append(losses, np.longdouble(0)), np.append(logs, np.log(1 - np.exp(logs).sum()))


def _without_tail(losses, logs, mass):
    order = np.argsort(-losses)
    tail = np.cumsum(np.exp(logs[order]))
    there = order[np.searchsorted(tail, mass) :]
    return losses[there], logs[there]


def _tilt(losses, logs, rounds, epsilon):
    low, high = 1e-7, 1e7
    while high > low * 1.001:
        middle = np.sqrt(low * high)
        exponents = logs + middle * losses
        weights = np.exp(exponents - exponents.max())
        low, high = (middle, high) if rounds * (weights @ losses) < epsilon * weights.sum() else (low, middle)
    return high


def log_delta(losses, logs, rounds, epsilon):
    tilt = _tilt(losses, logs, rounds, epsilon)
    exponents = logs + tilt * losses
    weights = np.exp(exponents - exponents.max())
    log = np.log(weights.sum()) + exponents.max()
    weights /= weights.sum()
    mean = weights @ losses
    deviation = float(np.sqrt(rounds * (weights @ (losses - mean) ** 2)))
    there = weights > 1e-22 * weights.max() / rounds
    weights, centred = weights[there], losses[there] - mean
    step = 2 * np.pi / (40 * deviation + 60 / tilt)
    total, small, k = 0.0, 0, 0
    while small < 30:
        z = tilt + 1j * np.longdouble(k * step)
        phase = centred * (k * step)
        characteristic = np.clongdouble((weights @ np.cos(phase)) + 1j * (weights @ np.sin(phase)))
        term = np.exp(rounds * np.log(characteristic) + 1j * k * step * (rounds * mean - epsilon)) / (z * (1 + z))
        total += term.real if k else term.real / 2
        small, k = (small + 1 if abs(term) < 1e-11 * abs(total) else 0), k + 1
    return float(rounds * log - tilt * epsilon + np.log(total * step / np.pi))


def epsilon(pair, noise, rate, rounds, delta, width=1.0):
    """ε to 1e-7 of itself, without the losses beyond a probability of 1e-6 · δ."""
    losses, logs = _without_tail(*losses_of_round(pair, noise, rate, width), 1e-6 * delta / rounds)
    low, high = 0.0, 1e-3
    while log_delta(losses, logs, rounds, high) > np.log(delta):
        low, high = high, 4 * high
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(losses, logs, rounds, middle) > np.log(delta) else (low, middle)
    return high
