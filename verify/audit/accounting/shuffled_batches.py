"""The ε that an attacker reaches against shuffled epochs: a lower bound without any chance in it.

In each epoch the records are shuffled anew and cut into B batches. The worst gradients that are known (Chua et al.
2024, arXiv 2403.17673) lie on one line: the record that differs has 1, and all others have −1. Less what the others
add, the B sums of an epoch are N(2e, σ²I) if the record is there, and N(e, σ²I) if its gradient is zero, where e is 1
in the batch that was drawn and 0 in the others. Replaced by −1, the record leaves N(0, σ²I).

Any function of the sums tells at most as much as they do. Two are taken, and the better one counts:

- the largest sum of each epoch, which has the distribution functions Φ((c − 2)/σ)·Φ(c/σ)^(B−1) and
  Φ((c − 1)/σ)·Φ(c/σ)^(B−1), or Φ(c/σ)^B. It decides where the noise is low.
- the sum of all, one Gaussian mechanism of the noise multiplier σ·√B. It decides where the noise is high.

Epochs are composed as in ``loss_distribution``, but each approximation falls to the other side:

- *Grid.* Outputs whose losses are within half a step of a grid point are one output. Their common loss is never
  below the point less a shift, which is of second order in the step, or else goes to the next point below.
- *Tails.* Outputs with a probability below e^−700 are left out.
- *Window and rounding.* What a transform brings in from outside, by Chernoff's inequality, and Higham's bound of its
  rounding are subtracted from δ.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import fft, special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.arrays import Array, two_norm
from canaryproof.verify.audit.accounting.loss_distribution import power_of_spectrum

_ULP = 2.0**-53
# Cells of the largest sum around each of its usual values, and deviations of noise that they cover.
_CELLS, _REACH = 100_000, 38.0
# Logarithm of the mass of cells that are left out.
_RAREST = -700.0
# Relative error of a cell's mass, which is a difference of two distribution functions.
_CELL_ERROR = 1e-8
_MOST_POINTS, _LARGEST_TRANSFORM = 2**15, 2**19
# A tilted sum lies above the window, or below it, with a probability of e^−34 at most.
_OUTSIDE = 34.0
# Relative error of δ from sums and exponents in double precision, far above them.
_ROUNDING = 1e-8


def attained_epsilon(noise: float, batches: int, epochs: int, replaced: bool, delta: float) -> float:
    """Return ε that an attacker reaches at δ; noise is in clip norms."""
    together = noise * math.sqrt(batches / epochs) / (2.0 if replaced else 1.0)
    largest = float(gaussian_mechanism.epsilon(delta, together))
    if batches > 1:
        masses = _log_masses(noise, batches, 0.0 if replaced else 1.0)
        for upper, lower in (masses, masses[::-1]):
            largest = max(largest, _epsilon_of_epochs(upper, lower, epochs, math.log(delta)))
    return largest


def _log_masses(noise: float, batches: int, mean: float) -> tuple[Array, Array]:
    """Return log masses of cells of an epoch's largest sum, if the record is there and if it is not."""
    t = np.linspace(-1.0, 1.0, _CELLS + 1)
    # The largest of all others is about here.
    usual = noise * math.sqrt(2.0 * math.log(batches))
    ends = np.unique(np.concatenate([centre + noise * (_REACH * t**3 + t) for centre in (0.0, 1.0, 2.0, usual)]))

    def of_mean(record: float) -> Array:
        log = special.log_ndtr((ends - record) / noise) + (batches - 1) * special.log_ndtr(ends / noise)
        with np.errstate(divide="ignore"):
            tail = np.log(-np.expm1(log))
        far = np.logaddexp(
            special.log_ndtr((record - ends) / noise), math.log(batches - 1) + special.log_ndtr(-ends / noise)
        )
        # Where both are so rare, they do not come together.
        tail = np.where(far < -30.0, far, tail)
        is_low = log[1:] < -math.log(2.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            low = log[1:] + np.log(-np.expm1(log[:-1] - log[1:]))
            high = tail[:-1] + np.log(-np.expm1(tail[1:] - tail[:-1]))
        masses: Array = np.where(is_low, low, high).astype(np.float64)
        masses[np.isnan(masses)] = -math.inf
        return masses

    return of_mean(2.0), of_mean(mean)


@dataclass(frozen=True)
class _LossGrid:
    """Masses of outputs that the grid point nearest to their loss stands for, and how far their loss lies below it."""

    interval: float
    first: int
    masses: Array
    below: Array

    @property
    def points(self) -> Array:
        """The grid's losses."""
        return self.interval * (self.first + np.arange(len(self.masses), dtype=np.float64))

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """Return K, its first and its second derivative."""
        with np.errstate(divide="ignore"):
            exponents = np.log(self.masses) + tilt * self.points
        largest = float(exponents.max())
        weights = np.exp(exponents - largest)
        total = float(weights.sum())
        mean = float(weights @ self.points) / total
        return largest + math.log(total), mean, float(weights @ (self.points - mean) ** 2) / total

    def with_shift(self, tilt: float) -> tuple["_LossGrid", float]:
        """Return the grid with what a common shift does not lower enough one point down, and the best such shift."""
        log, _, _ = self.moments(tilt)
        with np.errstate(divide="ignore"):
            weights = np.exp(np.log(self.masses) + tilt * self.points - log)
        order = np.argsort(self.below)
        costs = self.below[order] + self.interval * (1.0 - np.cumsum(weights[order]))
        shift = max(0.0, float(self.below[order][np.argmin(costs)]))
        down = self.below > shift
        masses = np.append(0.0, np.where(down, 0.0, self.masses))
        masses[:-1] += np.where(down, self.masses, 0.0)
        return _LossGrid(self.interval, self.first - 1, masses, np.zeros_like(masses)), shift


def _grid(upper: Array, lower: Array, least: float) -> _LossGrid:
    """Put outputs on a grid whose points are at least so far apart."""
    there = (upper > _RAREST) & (lower > -math.inf)
    upper, losses = upper[there], (upper - lower)[there]
    interval = max(float(np.ptp(losses)) / _MOST_POINTS, least, 1e-12)
    index = np.rint(losses / interval).astype(np.int64)
    first = int(index.min())
    masses: Array = np.bincount(index - first, np.exp(upper)).astype(np.float64)
    # The other law has e^−L times the mass.
    others = np.bincount(index - first, np.exp(upper + interval * index - losses))
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.where(masses > 0.0, np.log(others) - np.log(masses), 0.0) + 4.0 * _CELL_ERROR
    return _LossGrid(interval, first, masses * (1.0 - _CELL_ERROR), below.astype(np.float64))


def _tilt(grid: _LossGrid, epochs: int, log_delta: float) -> float:
    """Return the tilt whose mean loss is an ε of about this δ."""

    def excess(tilt: float) -> float:
        log, mean, variance = grid.moments(tilt)
        factor = (1.0 + tilt) * (1.0 + 2.5 * tilt * math.sqrt(epochs * variance))
        return epochs * (log - tilt * mean) - math.log(factor) - log_delta

    low, high = 0.0, 1.0
    if excess(low) <= 0.0:
        return low
    while excess(high) > 0.0 and high < 1e6:
        low, high = high, 4.0 * high
    while high - low > 1e-2 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return high


def _window(grid: _LossGrid, epochs: int, tilt: float) -> tuple[float, float]:
    """Return the ends between which tilted sums lie, by Chernoff's inequality."""
    log, mean, variance = grid.moments(tilt)
    bottom, top = epochs * grid.points[0], epochs * grid.points[-1]
    for step in np.geomspace(1.0 / 16.0, 64.0, 11) / max(math.sqrt(epochs * variance), 1e-9 * (1.0 + abs(mean))):
        bottom = max(bottom, (epochs * (log - grid.moments(tilt - step)[0]) - _OUTSIDE) / step)
        top = min(top, (epochs * (grid.moments(tilt + step)[0] - log) + _OUTSIDE) / step)
    return float(bottom), float(top)


def _epsilon_of_epochs(upper: Array, lower: Array, epochs: int, log_delta: float) -> float:
    """Return ε that epochs of a pair reach, never above the truth."""
    grid = _grid(upper, lower, 0.0)
    tilt = _tilt(grid, epochs, log_delta)
    bottom, top = _window(grid, epochs, tilt)
    least = (top - bottom) / (_LARGEST_TRANSFORM - 4)
    if least > grid.interval:
        grid = _grid(upper, lower, least)
    grid, shift = grid.with_shift(tilt)
    bottom, top = _window(grid, epochs, tilt)
    length = 2 ** math.ceil(math.log2((top - bottom) / grid.interval + 4))
    start = math.floor(bottom / grid.interval)
    log, mean, variance = grid.moments(tilt)
    with np.errstate(divide="ignore"):
        weights = np.exp(np.log(grid.masses) + tilt * grid.points - log)
    index = grid.first + np.arange(len(weights))
    weights = np.bincount(index % length, weights, length)
    sums = np.roll(fft.irfft(power_of_spectrum(fft.rfft(weights), epochs), length), -start)
    # Errors in the 2-norm: of the epoch's transform, of its power and of the transform back.
    ulps = 14.0 * _ULP * math.log2(length)
    spread = epochs * ulps * two_norm(weights)
    spread *= math.exp(min(700.0, spread * math.sqrt(length) + 2.0 * _ULP * epochs))
    spread += (2.0 * math.sqrt(5.0) * _ULP * epochs + ulps) * (two_norm(sums) + spread)
    losses = grid.interval * (start + np.arange(length)) - epochs * shift

    def is_attained(epsilon: float) -> bool:
        # Losses beyond e^−45 of the most are left out, too.
        first, last = np.searchsorted(losses, [epsilon, epsilon + 45.0 / max(tilt, 1e-300)])
        above = losses[first:last] - epsilon
        shares = np.exp(-tilt * above) * -np.expm1(-above)
        value = float(sums[first:last] @ shares) * (1.0 - _ROUNDING)
        value -= spread * two_norm(shares) + 2.0 * math.exp(-_OUTSIDE)
        exponent = epochs * (log - tilt * shift) - tilt * epsilon
        return value > 0.0 and exponent + math.log(value) - _ROUNDING * (1.0 + abs(exponent)) >= log_delta

    # The bound is sharp near the mean of tilted sums, and says nothing far from it.
    step = 0.25 * math.sqrt(epochs * variance)
    low, high = epochs * (mean - shift), float(losses[-1])
    # Sixteen deviations below it, nothing is left of them.
    end = max(0.0, low - 64.0 * step)
    while low > end and not is_attained(low):
        low, high = low - step, low
    low = max(low, end)
    if not is_attained(low):
        return 0.0
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_attained(middle) else (low, middle)
    return low
