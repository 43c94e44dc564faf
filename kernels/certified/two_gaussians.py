"""Privacy curve of a pair of Gaussians as proven enclosures: Andrew et al. (arXiv 2302.03098), Section 3.2.

With s = σ₁/σ₂ and m = ``|μ₁ − μ₂|``/σ₂, exact rational numbers here, P₂ = N(0, 1) and P₁ = N(m, s²) after a shift, a
scaling and a reflection. At x = m + su the privacy loss is Z = log(p₁/p₂) = αu² + msu + m²/2 − log s with
α = (s² − 1)/2. Z = ε at u = (±q − ms)/(2α), q² = m² + 4α(ε + log s). Hence δ(ε) = P₁(Z > ε) − e^ε·P₂(Z > ε) is a
sum of at most four error functions, and 1 − δ is one of positive probabilities. The formula is taken as it stands, and
the precision rises until cancellation does no harm. Nothing is truncated, so that containment rests on flint's erfc,
exp and log alone.

Which case holds is decided exactly: equal deviations and equal means by the rational arguments, the sign of q² by
balls. (q² is never 0 for σ₁ < σ₂, because log s is irrational for a rational s ≠ 1 and m² + 4αε is rational. That only
says that a precision exists that tells the sign; where the ladder ends before it, δ is enclosed by [0, 1].)

Domain: σ₁/σ₂ from 1e-50 to 1e50, ``|μ₁ − μ₂|`` ≤ 1e50 deviations, 0 ≤ ε ≤ 1e50, 0 < δ < 1. All
enclosures are tight (at most 2 ulps) for floats. Fractions may be chosen so close to each other, or to a maximum of the
loss, that 8192 bits don't tell them apart: then ``is_tight`` is False.

Arrays are enclosed by balls of pairs of floats (``_pair_balls``), more than 10⁴ a second where these decide, and by the
balls above where they don't. Containment rests there on the error bounds that ``make prove`` proves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, overload

from flint import arb, fmpq
from numpy.typing import ArrayLike

from canaryproof.kernels import two_gaussians as fast
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.certified import _pair_balls
from canaryproof.kernels.certified._ball import (
    Enclosure,
    Enclosures,
    Number,
    bracket,
    enclose,
    enclose_arrays,
    exact,
    guess,
    has_arrays,
    sign,
    strictly_within_unit,
    within,
)

Direction = Literal["forward", "reverse", "both"]

_LARGEST = 1e50
_FAR = 100


class Pair(NamedTuple):
    """P₁ = N(distance, ratio²) from P₂ = N(0, 1), distance ≥ 0."""

    distance: fmpq
    ratio: fmpq


class Divergence(NamedTuple):
    """Balls of δ and of 1 − δ, neither of which is made from the other; exact where δ = 0."""

    delta: arb
    complement: arb


_NONE = Divergence(arb(0), arb(1))


def _above(u: arb) -> arb:
    """P(X > u) of a standard normal X."""
    x = u / arb(2).sqrt()
    # Far out, flint's erfc of an inexact ball is far wider than it need be. It decreases, so two exact points do.
    return (x.lower().erfc().union(x.upper().erfc()) if x > _FAR else x.erfc()) / 2


def shift_divergence(epsilon: fmpq, distance: fmpq) -> Divergence:
    """Divergence of N(distance, 1) from N(0, 1) for distance ≥ 0, at the precision in force."""
    if distance == 0:
        return _NONE
    u = arb(epsilon / distance - distance / 2)
    second = arb(epsilon).exp() * _above(arb(epsilon / distance + distance / 2))
    return Divergence(_above(u) - second, _above(-u) + second)


def _forward(epsilon: fmpq, pair: Pair) -> Divergence:
    m, s = pair
    if s == 1:
        return shift_divergence(epsilon, m)
    alpha = (s * s - 1) / 2
    excess = arb(epsilon) + arb(s - 1).log1p()
    square = arb(m * m) + 4 * alpha * excess
    if square <= 0:
        return _NONE
    if not square > 0:
        # Too low a precision to tell; every δ lies in the unit interval.
        unit = arb(0).union(arb(1))
        return Divergence(unit, unit)
    q = square.sqrt()
    # The school formula would cancel in the root that lies nearer to P₁'s centre.
    near = 2 * (excess - m * m / 2) / (m * s + q)
    far = -(m * s + q) / (2 * alpha)
    if alpha > 0:
        # Z > ε outside the roots: beyond the near one and before the far one.
        first = _above(near) + _above(-far)
        outside = _above(-near) - _above(-far)
        second = _above(m + s * near) + _above(-m - s * far)
    else:
        # Z > ε between the roots, whose middle isn't below 0 in either measure: upper tails are the small ones.
        first = _above(near) - _above(far)
        outside = _above(-near) + _above(far)
        second = _above(m + s * near) - _above(m + s * far)
    second *= arb(epsilon).exp()
    return Divergence(first - second, outside + second)


def _divergence(epsilon: fmpq, pairs: list[Pair]) -> Divergence:
    """Return the largest of the pairs' divergences."""
    delta, complement = _forward(epsilon, pairs[0])
    for pair in pairs[1:]:
        other = _forward(epsilon, pair)
        delta, complement = delta.max(other.delta), complement.min(other.complement)
    return Divergence(delta, complement)


def log_of(divergence: Divergence) -> arb:
    """Log δ, from whichever of δ and 1 − δ keeps its digits."""
    delta, complement = divergence
    if delta.is_zero():
        return arb.neg_inf()
    return (-complement).log1p() if complement < 0.5 else delta.log()


def _pairs(mu1: Number, sigma1: Number, mu2: Number, sigma2: Number, direction: str) -> list[Pair]:
    shift = abs(exact("mu1", mu1) - exact("mu2", mu2))
    first, second = exact("sigma1", sigma1), exact("sigma2", sigma2)
    for name, sigma in (("sigma1", first), ("sigma2", second)):
        if sigma <= 0:
            raise ValueError(f"{name} must be positive")
    largest = exact("ratio", _LARGEST)
    if not (first <= largest * second and second <= largest * first):
        raise ValueError(f"sigma1 / sigma2 must lie between {1 / _LARGEST:g} and {_LARGEST:g}")
    if not shift <= largest * min(first, second):
        raise ValueError(f"|mu1 − mu2| must be at most {_LARGEST:g} standard deviations")
    forward, reverse = Pair(shift / second, first / second), Pair(shift / first, second / first)
    both = [forward] if first == second else [forward, reverse]
    choices = {"forward": [forward], "reverse": [reverse], "both": both}
    if direction not in choices:
        raise ValueError("direction must be 'forward', 'reverse' or 'both'")
    return choices[direction]


def _orient(first: Any, mu1: Any, sigma1: Any, mu2: Any, sigma2: Any, direction: str) -> tuple[Any, ...]:
    """Return arguments whose forward direction, or larger one, is that which is asked for."""
    return (first, mu2, sigma2, mu1, sigma1) if direction == "reverse" else (first, mu1, sigma1, mu2, sigma2)


def _deltas(
    slow: Callable[..., Enclosure],
    epsilon: Any,
    mu1: Any,
    sigma1: Any,
    mu2: Any,
    sigma2: Any,
    direction: Direction,
    *,
    log: bool,
) -> Enclosures:
    both = direction == "both"

    def fill(eps: Array, m1: Array, s1: Array, m2: Array, s2: Array, low: Array, high: Array) -> None:
        fast.check_arguments(m1, s1, m2, s2, direction)
        _pair_balls.deltas(eps, m1, s1, m2, s2, both, log, low, high)

    return enclose_arrays(
        None,
        fill,
        partial(slow, direction="both" if both else "forward"),
        *_orient(epsilon, mu1, sigma1, mu2, sigma2, direction),
    )


def _epsilons(
    delta: ArrayLike, mu1: ArrayLike, sigma1: ArrayLike, mu2: ArrayLike, sigma2: ArrayLike, direction: Direction
) -> Enclosures:
    both = direction == "both"
    way: Direction = "both" if both else "forward"

    def fill(start: Array, d: Array, m1: Array, s1: Array, m2: Array, s2: Array, low: Array, high: Array) -> None:
        _pair_balls.epsilons(start, d, m1, s1, m2, s2, both, low, high)

    return enclose_arrays(
        partial(fast.epsilon, direction=way),
        fill,
        partial(epsilon, direction=way),
        *_orient(delta, mu1, sigma1, mu2, sigma2, direction),
    )


@overload
def delta(
    epsilon: Number, mu1: Number, sigma1: Number, mu2: Number, sigma2: Number, direction: Direction = ...
) -> Enclosure: ...
@overload
def delta(
    epsilon: ArrayLike, mu1: ArrayLike, sigma1: ArrayLike, mu2: ArrayLike, sigma2: ArrayLike, direction: Direction = ...
) -> Enclosures: ...
def delta(
    epsilon: Any, mu1: Any, sigma1: Any, mu2: Any, sigma2: Any, direction: Direction = "both"
) -> Enclosure | Enclosures:
    """Enclose the hockey-stick divergence δ(ε) between two Gaussians.

    Parameters
    ----------
    epsilon
        Privacy loss in nats, 0 ≤ ε ≤ 1e50. Any argument may be an array; they are broadcast.
    mu1, sigma1
        Mean and standard deviation of the first Gaussian.
    mu2, sigma2
        Mean and standard deviation of the second.
    direction
        ``forward``: divergence of the first from the second; ``reverse``: the other way; ``both``: the larger.

    Returns
    -------
    Enclosure of δ, exactly 0 where the privacy loss never exceeds ε; ``Enclosures`` of arrays.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Section 3.2.
    """
    if has_arrays(epsilon, mu1, sigma1, mu2, sigma2):
        return _deltas(delta, epsilon, mu1, sigma1, mu2, sigma2, direction, log=False)
    pairs = _pairs(mu1, sigma1, mu2, sigma2, direction)
    eps = within("epsilon", epsilon, 0.0, _LARGEST)
    return enclose(lambda: _divergence(eps, pairs).delta, least=0.0, greatest=1.0)


@overload
def log_delta(
    epsilon: Number, mu1: Number, sigma1: Number, mu2: Number, sigma2: Number, direction: Direction = ...
) -> Enclosure: ...
@overload
def log_delta(
    epsilon: ArrayLike, mu1: ArrayLike, sigma1: ArrayLike, mu2: ArrayLike, sigma2: ArrayLike, direction: Direction = ...
) -> Enclosures: ...
def log_delta(
    epsilon: Any, mu1: Any, sigma1: Any, mu2: Any, sigma2: Any, direction: Direction = "both"
) -> Enclosure | Enclosures:
    """Enclose the natural log of ``delta``, −inf where that is 0; arguments and errors as there."""
    if has_arrays(epsilon, mu1, sigma1, mu2, sigma2):
        return _deltas(log_delta, epsilon, mu1, sigma1, mu2, sigma2, direction, log=True)
    pairs = _pairs(mu1, sigma1, mu2, sigma2, direction)
    eps = within("epsilon", epsilon, 0.0, _LARGEST)
    return enclose(lambda: log_of(_divergence(eps, pairs)), greatest=0.0)


@overload
def epsilon(
    delta: Number, mu1: Number, sigma1: Number, mu2: Number, sigma2: Number, direction: Direction = ...
) -> Enclosure: ...
@overload
def epsilon(
    delta: ArrayLike, mu1: ArrayLike, sigma1: ArrayLike, mu2: ArrayLike, sigma2: ArrayLike, direction: Direction = ...
) -> Enclosures: ...
def epsilon(
    delta: Any, mu1: Any, sigma1: Any, mu2: Any, sigma2: Any, direction: Direction = "both"
) -> Enclosure | Enclosures:
    """Enclose the least ε ≥ 0 at which the hockey-stick divergence between two Gaussians is at most δ.

    Parameters
    ----------
    delta
        δ in (0, 1). Any argument may be an array; they are broadcast.
    mu1, sigma1
        Mean and standard deviation of the first Gaussian.
    mu2, sigma2
        Mean and standard deviation of the second.
    direction
        As for ``delta``.

    Returns
    -------
    Floats with δ(lo) > delta ≥ δ(hi), both proven by enclosures of δ; lo = hi = 0 where δ(0) ≤ delta is proven. Arrays
    of them if an argument is an array.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Section 3.2. That δ(ε) does not increase is the only analysis used: it is the
    largest of P₁(A) − e^ε·P₂(A) over all events A. The fast kernel says where the search starts.
    """
    if has_arrays(delta, mu1, sigma1, mu2, sigma2):
        return _epsilons(delta, mu1, sigma1, mu2, sigma2, direction)
    pairs = _pairs(mu1, sigma1, mu2, sigma2, direction)
    target = strictly_within_unit("delta", delta)

    def excess(eps: fmpq) -> arb:
        return _divergence(eps, pairs).delta - arb(target)

    if sign(partial(excess, fmpq(0)))[0] < 0:
        return Enclosure(0.0, 0.0, arb(0))
    return bracket(excess, guess(fast.epsilon, delta, mu1, sigma1, mu2, sigma2, direction=direction))
