"""The estimates of ε as proven enclosures, for the parameters that were fitted: floats, taken as the numbers they are.

What the fit itself is worth is another matter, and that of the statistical intervals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from flint import arb, fmpq

from canaryproof.kernels.certified import Enclosure, Enclosures, at_precision, two_gaussians
from canaryproof.kernels.certified.two_gaussians import Direction

# Bits for the threshold's search, which looks at differences of the size of the last digits' squares.
_PRECISION = 160
# Where ε is near 0, the threshold's enclosure is as wide as this.
_CLOSE = 1e-18
# About two seconds.
_MOST_CELLS = 5000
# At nine deviations below the mean all but 1e-19 lies above.
_LOWEST = fmpq(-9)


def pinned_epsilon(delta: float, distance: float) -> Enclosure:
    """Enclose ε of the Gaussian mechanism with noise multiplier 1/distance, 0 where the distance is not positive.

    Parameters
    ----------
    delta
        δ in (0, 1).
    distance
        √d·μ̂.

    Returns
    -------
    Enclosure of ``estimators.pinned_epsilon``, at most 2 ulps wide.
    """
    return two_gaussians.epsilon(delta, max(distance, 0.0), 1, 0, 1)


def fitted_epsilon(delta: float, distance: float, ratio: float, direction: Direction = "both") -> Enclosure:
    """Enclose ε of N(0, 1) against N(distance, ratio²), to 2 ulps.

    Parameters
    ----------
    delta
        δ in (0, 1).
    distance, ratio
        Mean and standard deviation of the observed cosines in the null's units.
    direction
        ``both`` is Algorithm 1's; ``forward`` is the null's divergence from the fit, ``reverse`` the other way.

    Returns
    -------
    Enclosure of ``estimators.both_directions``.
    """
    return two_gaussians.epsilon(delta, 0, 1, distance, ratio, direction)


class _Threshold(NamedTuple):
    """A threshold a = m + sz, with P(X > a) − δ and Q(X > a)."""

    z: fmpq
    hits: arb
    misses: arb

    @property
    def gain(self) -> arb:
        return self.hits.log() - self.misses.log() if self.hits > 0 else arb.neg_inf()


@dataclass(frozen=True)
class _Attack:
    """The gain log((P(X > a) − δ)/Q(X > a)), a = m + sz, of guessing P = N(m, s²) and not Q = N(0, 1) above a."""

    delta: fmpq
    m: fmpq
    s: fmpq

    def at(self, z: fmpq) -> _Threshold:
        return _Threshold(z, _upper(arb(z)) - self.delta, _upper(arb(self.m + self.s * z)))

    def limit(self) -> float:
        """Bound the gain of all z < −9, where nearly all are hit."""
        return _above(arb(1 - self.delta).log() - self.at(_LOWEST).misses.log())

    def bound(self, left: _Threshold, right: _Threshold) -> tuple[float, _Threshold]:
        """Bound the gain between two thresholds from above; return the one in the middle, too."""
        # Both terms fall: the first is largest on the left, the second on the right.
        # A comparison of balls holds only where it is proven: hits that may be positive count.
        bound = -math.inf if left.hits <= 0 else _above(left.hits.upper().log() - right.misses.log())
        # By its slope, the gain is hardly larger than in the middle.
        middle, half = self.at((left.z + right.z) / 2), (right.z - left.z) / 2
        cell = arb(middle.z, arb(half).upper())
        hits, misses = right.hits.union(left.hits), right.misses.union(left.misses)
        slope = self.s * _density(self.m + self.s * cell) / misses - _density(cell) / hits
        flat = middle.gain + abs(slope) * half
        return min(bound, _above(flat)) if flat.is_finite() else bound, middle


def threshold_epsilon(delta: float, distance: float, ratio: float) -> Enclosure:
    """Enclose the largest ε of an attacker with one threshold; arguments as for ``fitted_epsilon``.

    Returns
    -------
    Enclosure of ``threshold_attack.threshold_epsilon``, 3 ulps wide, or 1e-18 where that is more; still wider where
    5,000 cells don't suffice, next to the null and beyond the kernels' domain.

    Notes
    -----
    Branch and bound: of all cells of thresholds the one that may hold the largest gain is halved, until none may hold
    more than 2 ulps, or 1e-18, above a gain that is proven.
    """
    exact_delta, m, s = (fmpq(*x.as_integer_ratio()) for x in (delta, abs(distance), ratio))
    # Guessing "observed" above the threshold, and "unobserved" below it; the second after a reflection.
    attacks = (_Attack(exact_delta, m, s), _Attack(exact_delta, m / s, 1 / s))
    # Beyond, no hits: P(X > z) < exp(−z²/2).
    highest = fmpq(*(math.sqrt(-2.0 * math.log(delta)) + 1.0).as_integer_ratio())
    # No attacker does better than both directions' exact ε.
    ceiling = fitted_epsilon(delta, distance, ratio).hi
    low, high = at_precision(_PRECISION, lambda: _largest_gain(attacks, highest, ceiling))
    return Enclosure(low, high, at_precision(_PRECISION, lambda: arb(low).union(arb(high))))


def _largest_gain(attacks: Sequence[_Attack], highest: fmpq, ceiling: float) -> tuple[float, float]:
    """Return floats on either side of the largest gain, or of 0 if that is larger."""
    low = 0.0
    limit = max(0.0, *(attack.limit() for attack in attacks))
    high = ceiling
    cells: list[tuple[float, int, _Threshold, _Threshold, _Threshold]] = []

    def add(i: int, left: _Threshold, right: _Threshold) -> None:
        bound, middle = attacks[i].bound(left, right)
        heappush(cells, (-bound, i, left, middle, right))

    for i, attack in enumerate(attacks):
        add(i, attack.at(_LOWEST), attack.at(highest))
    for _ in range(_MOST_CELLS):
        bound, i, left, middle, right = heappop(cells)
        high = min(max(low, limit, -bound), ceiling)
        if high <= low + max(2.0 * math.ulp(low), _CLOSE) or -bound <= max(low, limit):
            break
        gain = float(middle.gain.lower())
        low = max(low, math.nextafter(gain, -math.inf)) if math.isfinite(gain) else low
        add(i, left, middle)
        add(i, middle, right)
    return low, high


def _upper(x: arb) -> arb:
    """P(X > x) of a standard normal X, for a ball that is all but a point: of others flint's erfc is far too wide."""
    return (x / arb(2).sqrt()).erfc() / 2


def _density(x: arb) -> arb:
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def _above(ball: arb) -> float:
    """Return a float above all of a ball; inf where too few bits tell nothing of it."""
    upper = float(ball.upper())
    return math.inf if math.isnan(upper) else math.nextafter(upper, math.inf)


def mean(enclosures: Enclosures) -> tuple[float, float]:
    """Return floats on either side of the mean of enclosed values."""
    # The sum is rounded once, the quotient once: two floats farther out is outside.
    low, high = (math.fsum(ends) / ends.size for ends in (enclosures.lo, enclosures.hi))
    return low - 2.0 * math.ulp(low), high + 2.0 * math.ulp(high)
