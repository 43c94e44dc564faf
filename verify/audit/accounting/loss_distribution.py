"""Privacy losses of sampled Gaussian rounds, composed by a tilted Fourier transform: an upper bound of ε at every δ.

A round has the losses L of a dominating pair (Zhu, Dong and Wang 2022), and δ(ε) = E[(1 − e^(ε − ΣL))₊].
A transform as it stands rounds to 1e-16 of the whole, so that it has nothing to say of δ = 1e-20. Here each loss is
first weighted by e^(λL), with λ near the saddle point, which moves the weighted sum to where ε is:
δ(ε) = exp(ΣK − λε) · E_λ[f(ΣL − ε)], with f(s) = e^(−λs)·(1 − e^−s)₊ and K the log of a round's weight.

Why the result is never below the truth:

- *Grid.* A loss between two grid points goes to both, such that its mass under both laws of the pair stays (connect the
  dots, Doroshenko et al. 2022). The pair on the grid dominates, and so does its composition. What this adds to ε is of
  second order, (λ + 1)·h²/12 a round, from which the grid's distance h follows.
- *Masses* are Gauss–Legendre sums over panels on which no loss crosses a grid point. Their nodes' relative errors, from
  the rounding of exponents, are given away, and losses are rounded up.
- *Tails.* What lies above the largest loss is given away as δ. Losses below the smallest are raised to it.
- *Window.* A transform is periodic: sums from outside come back into it, and only add. Those above its top, where f
  would be too small for them, are bounded by Chernoff's inequality and added.
- *Rounding* of both transforms has Higham's bound in the 2-norm (Accuracy and Stability, theorem 24.2), taken twice,
  powers by squaring have √5 ulps a factor, and Cauchy's inequality with ‖f‖₂ turns these into a bound on δ, which is
  added.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import fft, optimize, special

from canaryproof.kernels.arrays import Array, Complexes, two_norm

Pair = Literal["remove", "add", "replace", "mirrored"]

_ULP = 2.0**-53
# Relative distance to the solution in ε, of which rounding may add some, and the least number.
_CLOSE, _TINY = 1e-11, 5e-324
# Probability that any round's loss lies below the smallest of the grid, to which it is raised.
_RAISED = 1e-12
# Share of δ that tails and the window's top may take.
_SHARE = 1e-4
_SHORT_TRANSFORM, _LARGEST_TRANSFORM = 2**17, 2**22
_MOST_CELLS = 2**22
# Errors of ε that the grid may make, of itself and in nats; the first where a short transform does, else the second.
_FINE, _COARSE = (3e-6, 3e-6), (3e-4, 2e-4)
# Below, rounding of a panel's ends would show.
_LEAST_INTERVAL = 1e-8
# A tilted sum lies below or above the window with a probability of e^−30 at most.
_OUTSIDE = 30.0
# Largest tilt: beyond, ε is below what is aimed at.
_STEEPEST = 1e5
# A tilted density that rises again by e^3 beyond its bulk has jumps, of which at most so many are separated.
_VALLEY, _MOST_JUMPS = 3.0, 4
# Largest change of a weight's exponent from one grid point to the next.
_LARGEST_EXPONENT = 50.0
_SQRT_FIVE = math.sqrt(5.0)
_BLOCK = 2**16
# Nodes of a panel. A density's relative error on panels of deviation/20 is below 1e-17 at 38 deviations, with 8 nodes;
# so it is with 4 on panels twenty times as narrow.
_WIDE, _NARROW = special.roots_legendre(8), special.roots_legendre(4)


@dataclass(frozen=True)
class Rounds:
    """Equal rounds of one dominating pair of Gaussian noise, sampled at a rate.

    ``remove`` is (1 − q)N(0) + qN(1) against N(0), ``add`` N(0) against that, and ``replace`` (1 − q)N(0) + qN(1)
    against (1 − q)N(0) + qN(−1). ``mirrored`` has the profile of ``remove`` where the loss is positive, and its mirror
    below.
    """

    pair: Pair
    noise: float
    rate: float
    count: int

    @property
    def largest_sum(self) -> float:
        """Return what the sum of all rounds' losses never exceeds: with ``add`` a loss is at most −log(1 − q)."""
        if self.pair != "add" or self.rate == 1.0:
            return math.inf
        return -self.count * math.log1p(-self.rate) * (1.0 + 8.0 * _ULP)

    def log_ratio(self, x: Array) -> tuple[Array, Array]:
        """Return log(1 − q + q·N(1)/N(0)) at x, and more than its rounding error."""
        t = (x - 0.5) / self.noise**2
        if self.rate == 1.0:
            return t, 8.0 * _ULP * np.abs(t)
        low = np.log1p(self.rate * np.expm1(np.minimum(t, 40.0)))
        high = t + math.log(self.rate) + np.log1p((1.0 - self.rate) / self.rate * np.exp(-np.maximum(t, 40.0)))
        return np.where(t < 40.0, low, high), 8.0 * _ULP * (np.abs(low) + np.maximum(t, 0.0))

    def log_ratio_is(self, loss: Array) -> Array:
        """Return x at which ``log_ratio`` has a value; −∞ where it is below all."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log = loss + np.log(-np.expm1(np.log1p(-self.rate) - loss)) - math.log(self.rate)
        return np.asarray(np.where(np.isnan(log), -math.inf, 0.5 + self.noise**2 * log))

    def difference_is(self, loss: Array) -> Array:
        """Return x at which ``log_ratio`` at x less that at −x has a value."""
        odds = math.log1p(-self.rate) - math.log(self.rate) + 0.5 / self.noise**2
        half = np.maximum(0.5 * np.abs(loss), 1e-300)
        # asinh of e^odds · sinh(half), also where that overflows.
        log = odds + half + np.log(-0.5 * np.expm1(-2.0 * half))
        root = np.where(log < 300.0, np.arcsinh(np.exp(np.minimum(log, 300.0))), log + math.log(2.0))
        return np.asarray(np.sign(loss) * self.noise**2 * (half + root))

    def log_tail(self, x: float) -> float:
        """Return the log of the mass of (1 − q)N(0) + qN(1) above x."""
        with np.errstate(divide="ignore"):
            outside = np.log1p(-self.rate) + special.log_ndtr(-x / self.noise)
        return float(np.logaddexp(outside, math.log(self.rate) + special.log_ndtr((1.0 - x) / self.noise)))


@dataclass(frozen=True)
class _Segment:
    """Outputs of a round between two ends, with their losses; the log mass of a tail is raised to the smallest loss."""

    rounds: Rounds
    low: float
    high: float
    kind: Literal["ratio", "inverse", "difference"]
    tail: float

    def losses(self, x: Array) -> tuple[Array, Array]:
        """Return losses, and the log of the density under the first law of the pair."""
        density = -0.5 * (x / self.rounds.noise) ** 2 - math.log(self.rounds.noise * math.sqrt(2.0 * math.pi))
        ratio, error = self.rounds.log_ratio(x)
        match self.kind:
            case "ratio":
                return ratio + error, density + ratio
            case "inverse":
                return error - ratio, density
            case "difference":
                other, error_of_other = self.rounds.log_ratio(-x)
                return ratio - other + error + error_of_other, density + ratio

    @cached_property
    def span(self) -> tuple[float, float]:
        """Smallest and largest loss."""
        ends, _ = self.losses(np.array([self.low, self.high]))
        return float(ends.min()), float(ends.max())

    def edges(self, width: float, interval: float | None = None) -> Array:
        """Return the ends of panels at most so wide, which no grid point of the losses lies in."""
        panels = max(1, math.ceil((self.high - self.low) / width))
        if panels > _MOST_CELLS:
            raise OverflowError("the noise is too low for a grid")
        mesh = np.linspace(self.low, self.high, 1 + panels)
        if interval is None:
            return mesh
        least, most = self.span
        grid = interval * np.arange(math.ceil(least / interval), math.floor(most / interval) + 1, dtype=np.float64)
        match self.kind:
            case "ratio":
                points = self.rounds.log_ratio_is(grid)
            case "inverse":
                points = self.rounds.log_ratio_is(-grid)
            case "difference":
                points = self.rounds.difference_is(grid)
        return np.union1d(mesh, points[(points > self.low) & (points < self.high)])


@dataclass(frozen=True)
class _Part:
    """Losses of equal rounds: segments, of which the first has the largest, and the mass of loss 0 besides them."""

    segments: tuple[_Segment, ...]
    at_zero: float
    count: int
    log_mass: float = 0.0

    @cached_property
    def outline(self) -> tuple[Array, Array]:
        """Losses and log masses on few nodes, which plan a transform and prove nothing."""
        losses, logs = [np.zeros(1)], [np.log(np.array([max(self.at_zero, 1e-300)]))]
        for segment in self.segments:
            noise = segment.rounds.noise
            x, weights = _nodes(segment.edges(min(0.5 * noise, 2.0 * noise**2)), *_WIDE)
            loss, log = segment.losses(x)
            losses.append(loss)
            logs.append(log + np.log(weights))
        return np.concatenate(losses), np.concatenate(logs)

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """Return K, its first and its second derivative, of all rounds."""
        losses, logs = self.outline
        logs = logs + tilt * losses
        largest = logs.max()
        weights = np.exp(logs - largest)
        total = weights.sum()
        mean = float(weights @ losses / total)
        variance = float(weights @ (losses - mean) ** 2 / total)
        return self.count * (float(largest) + math.log(total)), self.count * mean, self.count * variance

    def split(self, tilt: float) -> tuple["_Part", "_Part | None"]:
        """Return the bulk and what lies beyond the valley of the tilted density, if it rises again there."""
        first = self.segments[0]
        if first.kind == "inverse":
            return self, None
        x = first.edges(min(0.25 * first.rounds.noise, first.rounds.noise**2))
        loss, log = first.losses(x)
        tilted = log + tilt * loss
        peak = int(np.argmax(log))
        rise = tilted[peak:] - np.minimum.accumulate(tilted[peak:])
        if rise.max() < _VALLEY:
            return self, None
        valley = peak + int(np.argmin(tilted[peak : peak + int(np.argmax(rise)) + 1]))
        bulk, jump = replace(first, high=float(x[valley])), replace(first, low=float(x[valley]), tail=-math.inf)
        return replace(self, segments=(bulk, *self.segments[1:])), _Part(
            (jump,), 0.0, 1, first.rounds.log_tail(jump.low)
        )


def _parts(rounds: Rounds, log_share: float) -> tuple[_Part, float]:
    """Return the losses of rounds, and the log of a round's mass that is given away above them."""
    sigma, rate = rounds.noise, rounds.rate
    left = -sigma * float(special.ndtri(_RAISED / rounds.count))
    if rounds.pair == "add":
        low = sigma * float(special.ndtri_exp(log_share))
        high = max(low, 0.0) + left
        tail = float(special.log_ndtr(-high / sigma))
        return _Part((_Segment(rounds, low, high, "inverse", tail),), 0.0, rounds.count), float(
            special.log_ndtr(low / sigma)
        )
    far = 1.0 - sigma * float(special.ndtri_exp(log_share))
    least = 0.5 if rounds.pair == "mirrored" else -left
    high = far
    if rounds.log_tail(least) > log_share:
        high = optimize.brentq(lambda x: rounds.log_tail(x) - log_share, least, far, xtol=1e-6 * sigma)
    high = max(high, least + sigma)
    away = rounds.log_tail(high)
    if rounds.pair != "mirrored":
        # All of the mixture's mass below is at most that of N(0).
        tail = float(special.log_ndtr(least / sigma))
        kind: Literal["ratio", "difference"] = "ratio" if rounds.pair == "remove" else "difference"
        return _Part((_Segment(rounds, least, high, kind, tail),), 0.0, rounds.count), away
    end = max(0.5 + sigma, left)
    below = _Segment(rounds, 0.5, end, "inverse", float(special.log_ndtr(-end / sigma)))
    above = _Segment(rounds, 0.5, high, "ratio", -math.inf)
    at_zero = (1.0 - rate) * float(special.erf(0.5 / sigma / math.sqrt(2.0)))
    return _Part((above, below), at_zero, rounds.count), away


def _nodes(edges: Array, points: Array, weights: Array) -> tuple[Array, Array]:
    """Return nodes of all panels between neighbouring edges, and their weights."""
    half = 0.5 * np.diff(edges)
    x = (edges[:-1] + half)[:, None] + half[:, None] * points
    return x.ravel(), (half[:, None] * weights).ravel()


class _Outlines:
    """All rounds on few nodes."""

    def __init__(self, parts: Sequence[_Part], log_factor: float = 0.0) -> None:
        self._parts, self._log_factor = parts, log_factor
        # Searches for several δ try the same tilts, which takes most of the time.
        self._known: dict[float, tuple[float, float, float]] = {}

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """Return K, its first and its second derivative, of all rounds."""
        if tilt not in self._known:
            log, mean, variance = np.sum([part.moments(tilt) for part in self._parts], axis=0)
            self._known[tilt] = float(log) + self._log_factor, float(mean), float(variance)
        return self._known[tilt]

    def tilt_at(self, log_delta: float, chernoff: bool = False) -> float:
        """Return the tilt whose mean loss is an ε of about this δ, or one that Chernoff's inequality gives this δ."""

        def excess(tilt: float) -> float:
            log, mean, variance = self.moments(tilt)
            factor = 1.0 if chernoff else (1.0 + tilt) * (1.0 + 2.5 * tilt * math.sqrt(variance))
            return log - tilt * mean - math.log(factor) - log_delta

        if excess(0.0) <= 0.0:
            return 0.0
        high = 1.0
        while excess(high) > 0.0:
            high *= 4.0
            if high >= _STEEPEST:
                return _STEEPEST
        low = 0.0
        while high - low > 1e-3 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
        return high


@dataclass(frozen=True)
class _Grid:
    """Weights e^(λL − shift) of a round's losses on a grid, from ``first`` on, and the relative error of each."""

    weights: Array
    first: int
    shift: float
    error: float


def _grid(part: _Part, tilt: float, interval: float) -> _Grid:
    shift = part.moments(tilt)[0] / part.count
    for segment in part.segments:
        # Where the tilt is steep, the outline's nodes miss the peak.
        loss, log = segment.losses(segment.edges(segment.rounds.noise / 20.0))
        shift = max(shift, float((log + tilt * loss).max()) - 50.0)
    spans = [segment.span for segment in part.segments]
    first = min(math.floor(low / interval) for low, _ in spans) - 1
    last = max(math.ceil(high / interval) for _, high in spans) + 2
    if part.at_zero:
        first, last = min(first, 0), max(last, 1)
    weights, largest = np.zeros(last - first + 1), 0.0
    if part.at_zero:
        weights[-first] += part.at_zero * math.exp(-shift)
    for segment in part.segments:
        if segment.tail > -math.inf:
            raised = math.ceil(segment.span[0] / interval)
            weights[raised - first] += math.exp(segment.tail + tilt * raised * interval - shift)
        noise = segment.rounds.noise
        edges = segment.edges(min(noise / 20.0, noise**2), interval)
        widths = np.diff(edges)
        is_narrow = widths <= min(noise / 400.0, noise**2 / 20.0)
        for chosen, rule in ((is_narrow, _NARROW), (~is_narrow, _WIDE)):
            starts, half = edges[:-1][chosen], 0.5 * widths[chosen]
            for block in range(0, len(starts), _BLOCK):
                rows = slice(block, block + _BLOCK)
                x = ((starts[rows] + half[rows])[:, None] + half[rows, None] * rule[0]).ravel()
                loss, log = segment.losses(x)
                cells = np.floor(loss / interval)
                share = np.expm1(cells * interval - loss) / math.expm1(-interval) + 8.0 * _ULP
                # λ times the grid's losses, not the node's, as both points get their own weight.
                exponents = log + tilt * cells * interval - shift
                there = exponents > -745.0
                largest = max(largest, float(np.abs(log[there]).max(initial=0.0)))
                mass = np.exp(exponents) * (half[rows, None] * rule[1]).ravel()
                index = cells.astype(np.int64) - first
                weights += np.bincount(index, mass * (1.0 - share), len(weights))
                more = np.exp(exponents + tilt * interval) * (half[rows, None] * rule[1]).ravel()
                weights += np.bincount(index + 1, more * share, len(weights))
    reach = abs(tilt) * interval * max(abs(first), abs(last))
    return _Grid(weights, first, shift, _ULP * (8.0 * (largest + reach + abs(shift)) + 128.0))


class _TiltedSum:
    """The sum of the losses of given numbers of parts, weighted, and an upper bound of its share of δ(ε)."""

    def __init__(self, parts: Sequence[_Part], log_factor: float, least: float, most: float, floor: float) -> None:
        """Compose parts, with a factor, for log δ from ``least`` to ``most`` and ε from ``floor`` on."""
        total = sum(part.count for part in parts)
        outline = _Outlines(parts, log_factor)
        tilt, steepest = outline.tilt_at(0.5 * (least + most)), outline.tilt_at(least)
        far = outline.tilt_at(least + math.log(_SHARE), chernoff=True)
        least_epsilon = max(0.0, outline.moments(outline.tilt_at(most))[1])
        log, mean, variance = outline.moments(tilt)
        # By Chernoff's inequality at other tilts, tilted sums lie outside with a probability of 1e-13 at most.
        steps = np.geomspace(1.0 / 16.0, 64.0, 11) / max(math.sqrt(variance), 1e-9 * (1.0 + abs(mean)))
        bottom = max((log - outline.moments(tilt - step)[0] - _OUTSIDE) / step for step in steps)
        top = min((outline.moments(tilt + step)[0] - log + _OUTSIDE) / step for step in steps)
        if far > 0.0:
            top = max(top, (outline.moments(far)[0] - least - math.log(_SHARE)) / far)
        bottom = min(bottom, least_epsilon, floor)
        fine, coarse = (
            math.sqrt(12.0 * max(relative * least_epsilon, absolute) / ((1.0 + steepest) * total))
            for relative, absolute in (_FINE, _COARSE)
        )
        interval = min(coarse, max(fine, (top - bottom) / (_SHORT_TRANSFORM - 4)))
        spans = [segment.span for part in parts for segment in part.segments]
        widest = max(high for _, high in spans) - min(low for low, _ in spans)
        interval = max(interval, (top - bottom) / (_LARGEST_TRANSFORM - 4), widest / _MOST_CELLS, _LEAST_INTERVAL)
        if interval * tilt > _LARGEST_EXPONENT or not math.isfinite(top - bottom):
            raise OverflowError("the losses are too large for a grid")
        largest = sum(part.count * max(each.span[1] for each in part.segments) for part in parts)
        if interval * far > _LARGEST_EXPONENT or far >= _STEEPEST:
            # Chernoff's inequality holds at any tilt. Where a steep one is needed, nothing lies above the largest sum.
            far, top = min(far, _LARGEST_EXPONENT / interval), max(top, largest + interval * (total + 2))
            if top - bottom > _LARGEST_TRANSFORM * interval:
                raise OverflowError("the losses are too large for a grid")
        length = 2 ** math.ceil(math.log2((top - bottom) / interval + 4))
        start = math.floor(bottom / interval)
        top = (start + length - 1) * interval
        self._tilt, self._interval, self._start, self.bottom, self.top = tilt, interval, start, start * interval, top
        self.grid_error: float = (1.0 + steepest) * total * interval**2 / 12.0

        ulps = 14.0 * _ULP * math.log2(length)
        spectrum = np.ones(length // 2 + 1, dtype=np.complex128)
        log, log_far, error, spread, far_error = log_factor, log_factor, 0.0, 0.0, 0.0
        for part in parts:
            grid = _grid(part, tilt, interval)
            sum_of_weights = float(grid.weights.sum())
            with np.errstate(divide="ignore"):
                logs = np.log(grid.weights)
            index = grid.first + np.arange(len(grid.weights))
            weights = np.bincount(index % length, grid.weights, length) / sum_of_weights
            steps = (far - tilt) * interval * index
            log += part.count * (grid.shift + math.log(sum_of_weights))
            log_far += part.count * (grid.shift + float(special.logsumexp(steps + logs)))
            error += part.count * (grid.error + _ULP * abs(grid.shift))
            far_error += part.count * 8.0 * _ULP * float(np.abs(steps).max())
            spread += part.count * ulps * two_norm(weights)
            spectrum *= power_of_spectrum(fft.rfft(weights), part.count)
        self._weights = np.roll(fft.irfft(spectrum, length), -start)
        size = two_norm(self._weights)
        # Errors in the 2-norm: of the parts' transforms, of powers and products, and of the transform back.
        spread *= math.exp(min(700.0, spread * math.sqrt(length) + 2.0 * _ULP * total))
        multiplied = 2.0 * _SQRT_FIVE * _ULP * (total + len(parts)) + ulps
        self._error = (spread + multiplied * (size + spread)) * self._norm_of_loss()
        self._log, self._relative = log, error
        self._log_mass = log_factor + sum(part.count * part.log_mass for part in parts) + 1e-6
        rounding = 8.0 * _ULP * (abs(log_far) + far * abs(top))
        is_whole = top > largest + interval * (total + 1)
        self._log_above = -math.inf if is_whole else log_far - far * top + error + far_error + rounding

    def _norm_of_loss(self) -> float:
        """Return more than the 2-norm of f on the grid."""
        tilt = self._tilt
        norm = float(len(self._weights))
        if tilt > 0.0:
            norm = min(norm, 1.0 + 1.0 / (2.0 * tilt * (2.0 * tilt + 1.0) * (tilt + 1.0) * self._interval))
        return math.sqrt(norm)

    def log_delta(self, epsilon: float) -> float:
        """Return an upper bound of log δ at ε."""
        if epsilon < self.bottom:
            return float(self._log_mass)
        if epsilon > self.top:
            return float(self._log_above)
        first = max(0, math.ceil(epsilon / self._interval) - self._start)
        # Beyond, f is below 1e-18 of its largest value, e^−1/(1 + λ) at least.
        reach = (45.0 + math.log1p(self._tilt)) / (max(self._tilt, 1e-300) * self._interval)
        last = first + int(min(reach, len(self._weights))) + 2
        weights = self._weights[first:last]
        distance = np.maximum(self._interval * (self._start + first + np.arange(len(weights))) - epsilon, 0.0)
        value = float(weights @ (np.exp(-self._tilt * distance) * -np.expm1(-distance)))
        exponent = self._log - self._tilt * epsilon
        rounding = self._relative + _ULP * 8.0 * (abs(self._log) + self._tilt * abs(epsilon))
        bound = max(value, 0.0) * (1.0 + 1e-9) + self._error + 1e-18
        return float(np.logaddexp(exponent + rounding + math.log(bound), self._log_above))


def saddle_epsilon(rounds: Sequence[Rounds], delta: float) -> float:
    """Return about the ε of rounds at δ, by the saddle point on few nodes. It proves nothing."""
    log_share = math.log(delta) + math.log(_SHARE / sum(each.count for each in rounds))
    outline = _Outlines([_parts(each, log_share)[0] for each in rounds])
    return max(0.0, outline.moments(outline.tilt_at(math.log(delta)))[1])


class LossDistribution:
    """The sum of all rounds' losses, and an upper bound δ(ε) that is sharp where δ lies in a range."""

    def __init__(self, rounds: Sequence[Rounds], least: float, most: float) -> None:
        """Compose rounds for δ from ``least`` to ``most``. An OverflowError says that their losses are too large."""
        total = sum(each.count for each in rounds)
        log_least, log_most = math.log(least), math.log(most)
        parts, away = zip(*(_parts(each, log_least + math.log(_SHARE / total)) for each in rounds), strict=True)
        logs = [math.log(each.count) + each_away for each, each_away in zip(rounds, away, strict=True)]
        sums = [(list(parts), 0.0)]
        if len(parts) == 1:
            bulk, jump = parts[0].split(_Outlines(parts).tilt_at(0.5 * (log_least + log_most)))
            if jump is not None:
                log_jumps = math.log(total) + jump.log_mass + 1e-6
                for most_jumps in range(_MOST_JUMPS + 1):
                    more = (most_jumps + 1) * log_jumps - math.lgamma(most_jumps + 2)
                    if more <= log_least + math.log(_SHARE):
                        sums = [_with_jumps(bulk, jump, count) for count in range(min(most_jumps, total) + 1)]
                        logs.append(more)
                        break
        self._sums: list[_TiltedSum] = []
        for each, log_factor in sums:
            # ε is above the bottom of what has no jumps.
            floor = self._sums[0].bottom if self._sums else math.inf
            self._sums.append(_TiltedSum(each, log_factor, log_least, log_most, floor))
        self._log_rest = float(special.logsumexp(logs)) + 1e-9
        self.low: float = max(0.0, self._sums[0].bottom)
        self._high: float = max(each.top for each in self._sums)

    def log_delta(self, epsilon: float) -> float:
        """Return an upper bound of log δ at ε."""
        return float(special.logsumexp([each.log_delta(epsilon) for each in self._sums] + [self._log_rest]))

    def is_close(self, epsilon: float) -> bool:
        """Tell whether an ε that ``epsilon`` returned is above the truth by 1% or 0.001 at most, the larger of them."""
        if not self.low < epsilon < math.inf:
            return epsilon == 0.0
        return bool(max(each.grid_error for each in self._sums) <= max(5e-3 * epsilon, 5e-4))

    def epsilon(self, delta: float) -> float:
        """Return the least ε, to about 1e-10, at which δ is known to be at most the given one; ∞ if there is none."""
        log, low, high = math.log(delta), self.low, self._high
        if high <= low or self.log_delta(low) <= log:
            return low
        if self.log_delta(high) > log:
            return math.inf

        def excess(epsilon: float) -> float:
            # It may be −∞ at the end.
            return max(self.log_delta(epsilon), -1e9) - log

        # As close to 0 as the solution may lie.
        root = optimize.brentq(excess, low, high, xtol=_TINY, rtol=_CLOSE, maxiter=10_000)
        # That is off to either side, by so much unless rounding adds to it.
        step = _CLOSE * root + _TINY
        while self.log_delta(solution := min(root + step, high)) > log:
            step *= 2.0
        return solution


def _with_jumps(bulk: _Part, jump: _Part, jumps: int) -> tuple[list[_Part], float]:
    """Return the parts of a training in which so many rounds jump, and the log of the number of ways."""
    total = bulk.count
    ways = math.lgamma(total + 1) - math.lgamma(jumps + 1) - math.lgamma(total - jumps + 1)
    parts = [replace(bulk, count=total - jumps), replace(jump, count=jumps)]
    # The difference of large logarithms loses digits.
    return [part for part in parts if part.count], (ways + 1e-6) if jumps else 0.0


def power_of_spectrum(spectrum: Complexes, count: int) -> Complexes:
    """Return a power by squaring, whose rounding error is bounded."""
    result = np.ones_like(spectrum)
    while count:
        if count & 1:
            result *= spectrum
        count >>= 1
        if count:
            spectrum = spectrum * spectrum
    return result
