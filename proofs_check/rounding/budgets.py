"""Error budgets in practice that are proven: bounds of the primitives, composed over cells of each function's domain.

A relative error e is at most e/u ulps, u = 2⁻⁵³, and a last rounding adds half an ulp. The C library's exp, expm1, log
and log1p are taken to err by at most one ulp, as glibc documents.

For the Gaussian mechanism cells are rectangles in (u, ε), with u = εσ − 1/(2σ), m = 1/σ and u + m = √(u² + 2ε) = w.
Mills ratios M fall, and M(w)/M(u) = r rises with u and falls with ε, so corners bound a cell. With X standard normal,
δ = P(X > u)(1 − r): that selects the cells that practice reaches.

For tails of the null cosine a recursion bounds every step of the continued fraction at once, in all dimensions.

For two Gaussians inequalities serve in place of cells: the digits of pairs leave room for factors of a hundred.

For roots the last step has a bound of its own: Newton's step from a point whose δ is known with its error leaves
half the step's square times the second derivative over the first. The kernels return NaN where no step is accepted, so
that every number that they return is within the bound; that there always is one is searched and not proven.
"""

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise

from flint import arb, fmpq

from canaryproof.kernels import _tails, null_cosine, two_gaussians
from canaryproof.kernels.certified._ball import at_precision
from canaryproof.proofs_check.rounding import primitives

TABLE = "budgets.csv"
BUDGET = 8.0
_PRECISION = 192
# The last steps that the kernels accept: of u, in units of its scale, and of log m, times √(1 + w).
EPSILON_STEP, NOISE_STEP = two_gaussians._LAST_STEP, 4e-9


@dataclass(frozen=True)
class ProvenRow:
    """A proven bound of a function's error in a cell of its domain."""

    function: str
    cell: str
    ulps: float


def _u() -> arb:
    return primitives.unit()


@cache
def _table() -> dict[str, float]:
    return {bound.name: bound.proven for bound in primitives.read()}


def _of(name: str) -> arb:
    """Bound of a primitive, as its own proof has it."""
    return arb(_table()[name])


def _rounded_up(ball: arb) -> float:
    """Four digits, upwards."""
    value = float(ball.upper()) * (1.0 + 1e-12)
    return math.ceil(value * 1e4) / 1e4


# The density of the null cosine, d ≥ 100.


def _exponent_error(size: arb) -> arb:
    """Absolute error of ((d − 3)/2)·log(1 − x²) up to ``size``, with d ≤ 1e12: 1 − x² errs as a product."""
    log = _of("logarithm")
    times = primitives.of_pairs("multiply")
    return arb(5e11) * times * arb("1.001") + size * (log + 2 * times)


def _cosine_rows() -> Iterator[ProvenRow]:
    scale = _of("density at 0, d >= 100")
    times, add = primitives.of_pairs("multiply"), primitives.of_pairs("add")
    # A normal result has an exponent above −709 − log f_d(0), and f_d(0) < √d.
    relative = scale + times + _of("exponential, |a| < 1e9") + _exponent_error(arb(725))
    yield ProvenRow("null-cosine.pdf", "d >= 100, all x", _rounded_up(relative / _u() + fmpq(1, 2)))
    # At least 0.1 in size, or an absolute error that is far below 1e-15.
    log = _of("logarithm")
    absolute = scale + arb(15) * log + _exponent_error(arb(1)) + 15 * add
    growing = (log + 2 * times + add) / _u()
    yield ProvenRow(
        "null-cosine.logpdf", "d >= 100, all x", _rounded_up(absolute / (arb("0.1") * _u()) + growing + fmpq(1, 2))
    )


# Tails and quantiles of the null cosine, d ≥ 100: the power series for x²(d + 2) < 2, else the continued fraction.
#
# The fraction is d − 1 times v₁ = 1 + a₁/(1 + a₂/(…)) with aₖ = r·k(k + D)/((2k + D)² − 1), r = 1/x² − 1, D = d − 2.
# aₖ grows and is log-concave. By induction R(aₖ₋₁) ≤ vₖ ≤ R(aₖ), where R(a) = 1/2 + √(1/4 + a) is the fixed point of
# v = 1 + a/v: the kernel starts from R(aₙ), and R(aₖ₊₁)/R(aₖ₋₁) ≤ √(aₖ₊₁/aₖ₋₁) ≤ aₖ/aₖ₋₁. An error of vₖ₊₁ arrives at
# vₖ times 1 − 1/R(aₖ) at most. From the seam on aₖ < k/2, and aₖ ≤ k/t with t = D/r ≥ 2D/d.
#
# f is the density, C the probability of (0, x), T = 1/2 − C the tail. √(d/2 − 3/4) < f(0)√π < √(d/2 − 1/2).

# More than the seam's own rounding, and than squares of errors.
_MORE = arb("1.0001")
_SEAM, _QUANTILE_STEP = 2, null_cosine._LAST_STEP


def _damping(a: arb) -> arb:
    """1 − 1/R(a)."""
    return 1 - 1 / (arb(fmpq(1, 2)) + (a + fmpq(1, 4)).sqrt())


def _fraction_rounding() -> arb:
    """Bound the relative error that rounding makes in the fraction."""
    # r is rounded once; its effect is an alternating sum of falling terms, less than the first.
    total, factor = _damping(_MORE / _SEAM), arb(1)
    # Fewer than 24 + 800/1.96 steps.
    for k in range(1, 440):
        damping = _damping(_MORE * k / _SEAM)
        # A sum; the summand 2k − 1 + D, with weight 1/vₖ; and of the other one a sum, two products and a quotient.
        total += factor * (2 + 3 * damping)
        factor *= damping
    return total * _MORE * _u()


def _fraction_start(low: fmpq, high: fmpq | None) -> arb:
    """Bound the relative error that the fraction's start leaves, for low ≤ t ≤ high."""
    # The number of steps is 24 and min(800/(dx²), 80/x) ≥ 784/t, which is rounded.
    count = 23 + (math.floor(784 / high) if high else 0)
    product = arb(1)
    for k in range(1, count + 1):
        product *= _damping(arb(k) / low)
    # The start and what it stands for are both between R(aₙ) and R(aₙ₊₁), and aₙ₊₁ ≤ aₙ(n + 1)/n.
    return product * (1 + 1 / arb(count)).log() / 2


@cache
def _fraction_cells() -> tuple[tuple[fmpq, fmpq | None], ...]:
    ends = [fmpq(195, 100)]
    while ends[-1] < 100:
        ends.append(ends[-1] * fmpq(21, 20))
    return (*pairwise(ends), (ends[-1], None))


def _series_error() -> arb:
    """Bound the relative error of C in the power series, a pair."""
    times, add, over = (primitives.of_pairs(name) for name in ("multiply", "add", "divide"))
    # Terms fall by (d + n)x²/(n + 3) at least, d ≥ 100, n = 0, 2, …; those left out are at most twice the last one.
    count, term = 0, arb(1)
    while not term < 1e-21:
        term *= arb(100 + 2 * count) / 102 * _SEAM / (2 * count + 3) * _MORE
        count += 1
    series = 2 * arb(1e-20) + (count + 1) * (2 * times + over + add)
    return (
        series + _of("density at 0, d >= 100") + 3 * times + _of("exponential, |a| < 1e9") + _exponent_error(arb(2))
    ) * _MORE


def _most_central(square: arb) -> arb:
    """Bound C from above at x²(d + 2) = ``square``, d ≥ 100, from log(1 − y²) ≤ −y²."""
    bend = arb(fmpq(97, 102))
    return (bend * square / 2).sqrt().erf() / (2 * bend.sqrt())


def _least_slope(square: arb) -> arb:
    """Bound x·f(x) from below at x²(d + 2) = ``square``, d ≥ 100, from log(1 − t) ≥ −t/(1 − t)."""
    return (square * fmpq(985, 1020) / (2 * arb.pi())).sqrt() * (-square / 2 / (1 - square / 102)).exp()


def _tail_factor() -> arb:
    """Bound f(0)/((d − 1)x), and with it T/(1 − x²)^((d − 1)/2), from the seam on, d ≥ 100."""
    return (arb(fmpq(102, 99)) / (4 * arb.pi())).sqrt() * _MORE


def _tail_rows() -> Iterator[ProvenRow]:
    u, pairs, half = _u(), _of("density at 0, d >= 100") + _of("exponential, |a| < 1e9"), arb(fmpq(1, 2))
    pairs += _exponent_error(arb(725)) + 3 * (primitives.of_pairs("multiply") + primitives.of_pairs("divide"))
    start = max((_fraction_start(*cell) for cell in _fraction_cells()), key=lambda ball: float(ball.upper()))
    fraction = _fraction_rounding() + start + pairs
    # At the seam the logarithm of d/(d + 2) is at most −2/(d + 2).
    least, most = half - _most_central(arb(_SEAM) * _MORE), _tail_factor() * arb(fmpq(-99, 102)).exp()
    # 1/2 ∓ C in two roundings.
    central = 2 * u * _MORE + _series_error() / least
    beyond = (fraction + u) * _MORE
    # The relative error of log(1 − T) has the factor T/((1 − T)·(−log(1 − T))), which grows with T.
    inner, outer = ((t / (1 - t) / -(1 - t).log()) for t in (half, most))
    # Far out the logarithm is a sum with one of at most 16 in size, below −600.
    far = (fraction + 3 * u + 16 * 2 * u + 17 * u + _exponent_error(arb(600))) / 600
    cells = f"{len(_fraction_cells())} cells"
    for first, second, sign in (("sf", "logsf", ""), ("cdf", "logcdf", "-")):
        yield from (
            ProvenRow(f"null-cosine.{name}", f"d >= 100, {where}", _rounded_up(ulps))
            for name, where, ulps in (
                (first, "x^2 (d + 2) < 2", central / u),
                (first, f"{sign}x >= sqrt(2/(d + 2)), {cells}", fraction / u + half),
                (first, f"{sign}x <= -sqrt(2/(d + 2)), {cells}", beyond * most / (1 - most) / u + half),
                (second, "x^2 (d + 2) < 2", central * inner / u + 1),
                (second, f"{sign}x >= sqrt(2/(d + 2)), {cells}", (beyond / -most.log() / u + 1).max(far / u + half)),
                (second, f"{sign}x <= -sqrt(2/(d + 2)), {cells}", beyond * outer / u + 1),
            )
        )
    yield from _cosine_quantile_rows(central, beyond, most)


def _cosine_quantile_rows(central: arb, beyond: arb, most: arb) -> Iterator[ProvenRow]:
    """Bound quantiles, of errors of T up to the seam and beyond, where T is at most ``most``."""
    u, half, step = _u(), arb(fmpq(1, 2)), arb(_QUANTILE_STEP) * _MORE
    # Newton's step leaves half its square times |f′/f| = (d − 3)x/(1 − x²), which up to the seam is below 2/x.
    if not most < 0.17:
        raise RuntimeError("a quantile of 0.17 lies beyond the seam")
    slope = (_most_central(arb(_SEAM)) / _least_slope(arb(_SEAM))) * _MORE
    # 1/2 − p is rounded; C/(xf) grows with x.
    inner = (u + _series_error()) * slope + step**2 + 6 * u * step
    # T/(xf) falls with x. At x²(d + 2) = 0.8 the tail is above 0.17, and beyond the seam it is at most r/(d − 1).
    near = arb("0.8")
    if not half - _most_central(near) > 0.17:
        raise RuntimeError("a quantile of 0.17 lies too near to 0")
    error = (central * half / _least_slope(near)).max(beyond * fmpq(50, 99)) * _MORE
    # T ≥ 1e-12 bounds −(d − 1)·log(1 − x²), and (d − 1)(e^(c/(d − 1)) − 1) falls with d.
    reach = 99 * ((2 * (_tail_factor() * arb(10) ** 12).log() / 99).exp() - 1) * _MORE
    # No quantile of practice has log(1 − x²) below −1/2. Below −1, where the kernel leaves the last step out, a step of
    # its iteration is at least a third of log(1 − x²), and so never the last one.
    if not reach < 99 * (arb(1).exp() - 1) / 2:
        raise RuntimeError("a quantile of practice lies too far out")
    outer = error + reach / 2 * step**2 + 6 * u * step
    for name in ("isf", "ppf"):
        yield from (
            ProvenRow(f"null-cosine.{name}", f"d >= 100, {where}", _rounded_up(bound / u + half))
            for where, bound in (("0.17 < min(q, 1 - q)", inner), ("1e-12 <= min(q, 1 - q) <= 0.17", outer))
        )


# The Gaussian mechanism, 0.1 ≤ ε ≤ 50 and δ ≥ 1e-12.


def _mills(x: arb) -> arb:
    return (arb.pi() / 2).sqrt() * (x * x / 2).exp() * (x / arb(2).sqrt()).erfc()


def _tail(x: arb) -> arb:
    return (x / arb(2).sqrt()).erfc() / 2


@dataclass(frozen=True)
class _Cell:
    """Bounds on a rectangle a ≤ u ≤ b, c ≤ ε ≤ d, by its corners; pairs are least and largest values."""

    u: tuple[fmpq, fmpq]
    epsilon: tuple[fmpq, fmpq]
    m: tuple[arb, arb]
    w: tuple[arb, arb]
    ratio: tuple[arb, arb]
    excess: tuple[arb, arb]
    total: tuple[arb, arb]
    delta: tuple[arb, arb]


def _cell(a: fmpq, b: fmpq, c: fmpq, d: fmpq) -> _Cell:
    def m(u: fmpq, epsilon: fmpq) -> arb:
        root = (arb(u) ** 2 + 2 * arb(epsilon)).sqrt()
        return 2 * arb(epsilon) / (root + u) if u > 0 else root - u

    smallest = fmpq(0) if a <= 0 <= b else min(abs(a), abs(b))
    w = (arb(smallest) ** 2 + 2 * arb(c)).sqrt(), (arb(max(abs(a), abs(b))) ** 2 + 2 * arb(d)).sqrt()
    ratio = (_mills(arb(a) + m(a, d)) / _mills(arb(a)), _mills(arb(b) + m(b, c)) / _mills(arb(b)))
    return _Cell(
        (a, b), (c, d), (m(b, c), m(a, d)), w, ratio,
        (_mills(arb(b)) * (1 - ratio[1]), _mills(arb(a)) * (1 - ratio[0])),
        (_mills(arb(-a)) + _mills(w[1]), _mills(arb(-b)) + _mills(w[0])),
        (_tail(arb(b)) * (1 - ratio[1]), _tail(arb(a)) * (1 - ratio[0])),
    )  # fmt: skip


_LEAST_U, _MOST_U = fmpq(-17, 2), fmpq(36, 5)


@cache
def _cells() -> tuple[_Cell, ...]:
    """Return the cells that practice reaches, widened so that the last point before a root lies in one too."""
    if not (_tail(arb(_MOST_U)) < 1e-12 and _tail(arb(-_LEAST_U)) < fmpq(1, 2**54)):
        raise RuntimeError("the cells do not hold all of practice")
    cells, steps, factor = [], 157, fmpq(11, 10)
    width = (_MOST_U - _LEAST_U) / steps
    epsilon = fmpq(99, 1000)
    while epsilon < fmpq(501, 10):
        for i in range(steps):
            a = _LEAST_U + i * width
            cell = _cell(a - fmpq(1, 10**6), a + width + fmpq(1, 10**6), epsilon, epsilon * factor)
            if cell.delta[1] >= 1e-12:
                cells.append(cell)
        epsilon *= factor
    return tuple(cells)


def _relative_errors(cell: _Cell) -> tuple[arb, arb]:
    """Relative errors of excess and of total, before they are rounded to one float, φ(u) included."""
    mills, add = _of("Mills ratio, x > -37"), primitives.of_pairs("add")
    times, over = primitives.of_pairs("multiply"), primitives.of_pairs("divide")
    # u and u + m err by roundings of their terms, of at most w and m; −(log M)′ ≤ 0.8 + |u|.
    argument = (2 * add + 2 * over) * (cell.w[1] + cell.m[1])
    size = max(abs(float(cell.u[0])), abs(float(cell.u[1])))
    single = mills + argument * (arb(size) + 1)
    density = _of("exponential, |a| < 1e9") + 3 * times + times * 50 + arb(size) * argument
    # second/first is compared with 0.999 before they are subtracted; a little above r, what is compared errs too.
    if not cell.ratio[1] < 0.9989:
        raise RuntimeError("a cell of practice is reached by quadrature")
    return 2 * single / (1 - cell.ratio[1]) + add + density, 2 * single + add + density


def _delta_ulps(cell: _Cell) -> arb:
    excess, total = _relative_errors(cell)
    # δ ≤ 1/2 is rounded once; else 1 − δ is, and the difference once more.
    return (excess / _u()).max(total / _u() + fmpq(1, 2)) + fmpq(1, 2)


def _log_delta_ulps(cell: _Cell) -> arb:
    excess, total = _relative_errors(cell)
    u = _u()
    worst = arb(0)
    if cell.u[1] >= 1:
        # All below 0: −u²/2, −log(2π)/2 and the logarithm of an excess that is rounded; three sums and its own ulp.
        least = -(_tail(arb(max(cell.u[0], fmpq(99, 100))))).log()
        worst = worst.max(5 * u * arb(1) + (excess + 3 * u) / least)
    if cell.u[0] < 1:
        # log δ, δ ≤ 1/2; or log1p(−c) with c < 1/2, which no relative error of c moves by more than 3/2 of it.
        worst = worst.max((excess + u) / arb(2).log() + 2 * u).max(fmpq(3, 2) * (total + 2 * u) + 2 * u)
    return worst / u


def _epsilon_ulps(cell: _Cell) -> arb:
    u, worst = _u(), arb(0)
    excess, total = _relative_errors(cell)
    inverse_rest = 1 / _mills(cell.w[1])
    size = max(abs(float(cell.u[0])), abs(float(cell.u[1])))
    # The loss at the point is a product of pairs; the correction has four roundings, and is below the step times m.
    pairs = (primitives.of_pairs("add") + primitives.of_pairs("divide")) * 8 * (cell.w[1] + cell.m[1]) * cell.m[1]
    if cell.delta[0] <= 0.5:
        over = (1 - cell.ratio[0]) / cell.ratio[0]
        move = cell.m[1] * EPSILON_STEP * (1 + arb(size)) * arb("1.001")
        second = 1 + cell.ratio[1] / (1 - cell.ratio[1]) + inverse_rest / cell.m[0]
        worst = worst.max(move**2 / 2 * second * arb("1.01") + excess * over + 12 * u * move)
    if cell.delta[1] >= 0.5:
        scale = cell.total[1].min(1 + arb(size))
        move = cell.m[1] * EPSILON_STEP * scale * arb("1.001")
        second = 2 + inverse_rest / cell.m[0]
        worst = worst.max(move**2 / 2 * second * arb("1.01") + total * cell.total[1] * inverse_rest + 12 * u * move)
    return (worst + pairs) / (arb(cell.epsilon[0]) * u) + fmpq(1, 2)


def _noise_ulps(cell: _Cell) -> arb:
    u, worst = _u(), arb(0)
    excess, total = _relative_errors(cell)
    size = max(abs(float(cell.u[0])), abs(float(cell.u[1])))
    # 1 + step differs from its exponential by little more than half the step's square.
    square = arb(NOISE_STEP) ** 2 / (1 + cell.w[0]) * arb("1.001") / 2
    if cell.delta[0] <= 0.5:
        second = 2 + size * cell.w[1] + cell.m[1] / cell.excess[0]
        worst = worst.max(square * second * arb("1.01") + excess * cell.excess[1] / cell.m[0])
    if cell.delta[1] >= 0.5:
        second = 2 + size * cell.w[1] + cell.m[1] / cell.total[0]
        worst = worst.max(square * second * arb("1.01") + total * cell.total[1] / cell.m[0])
    # 1 + step, its product with m, and the quotient; the step's own roundings are nothing.
    return (worst + 3 * u + arb(1e-22)) / u


_MECHANISM = {
    "gaussian-mechanism.delta": _delta_ulps,
    "gaussian-mechanism.log-delta": _log_delta_ulps,
    "gaussian-mechanism.epsilon": _epsilon_ulps,
    "gaussian-mechanism.noise-multiplier": _noise_ulps,
}
# Cells of the table, by u: some hundred small ones each.
_BANDS = (-8.5, -4.0, -1.0, 0.0, 1.0, 2.0, 4.0, 6.0, 7.2)


def _mechanism_rows() -> Iterator[ProvenRow]:
    for name, ulps in _MECHANISM.items():
        for low, high in pairwise(_BANDS):
            inside = [cell for cell in _cells() if float(cell.u[1]) > low and float(cell.u[0]) < high]
            bound = max(float(ulps(cell).upper()) for cell in inside)
            yield ProvenRow(name, f"{low:g} <= u <= {high:g}, {len(inside)} cells", _rounded_up(arb(bound)))


def _certain_rows() -> Iterator[ProvenRow]:
    # Below the cells 1 − δ ≤ 2·P(X > 8.5), which is half an ulp of 1 at most: whatever is computed of it rounds to 1 or
    # its neighbour, and log δ is off by less than 1e-15.
    rest = 2 * _tail(arb(-_LEAST_U))
    yield ProvenRow("gaussian-mechanism.delta", "u < -8.5", _rounded_up(2 * rest / _u() + fmpq(1, 2)))
    yield ProvenRow("gaussian-mechanism.log-delta", "u < -8.5", _rounded_up(2 * rest / (arb("0.1") * _u())))


# Two Gaussians, 1/2 ≤ s ≤ 2, 0.1 ≤ ε ≤ 50 and δ ≥ 1e-12.
#
# At v from the near root u the loss exceeds ε by w = v(q + αv). There q = sx − u for P₂'s coordinate x = m + su, and
# x² = u² + 2T with T = ε + log s. With g = exp(−uv − v²/2), δ = φ(u)·excess for excess = ∫ g(1 − e^(−w)), and R =
# e^ε·P₂(Z > ε) = φ(u)·rest for rest = ∫ g·e^(−w). For α < 0 integrals end at v = L = q/|α|, and m ≥ 0 says u ≥ −L/2.
# For α > 0 a far tail is added, no larger than the near one. r = rest/(excess + rest), and δ = (1 − r)·P₁(Z > ε). Where
# r ≤ 0.999 pairs are subtracted, else a rule sums the integrand.
#
# A direction with δ < 1e-13 is not the larger one: whatever its error is, it stays below 1e-12.

_CLOSE, _PAIR_STEP = _tails._CLOSE, two_gaussians._LAST_STEP
_LEAST_EPSILON = arb("0.0999")
# These bound u, for δ ≥ 1e-13, and T.
_FARTHEST, _MOST_LOSS = arb("7.46"), arb("50.7")


def _half_line_error() -> arb:
    """Bound the relative error of excess for α ≥ 0: Mills ratios, of which r stays away from 1."""
    if not 2 * _tail(_FARTHEST) < 1e-13:
        raise RuntimeError("practice reaches farther")
    # u ≤ 0 makes q ≥ m ≥ √(2T). Else q ≥ m, and qu ≥ T − m²/2: so q is at least what solves q·u = T − q²/2.
    least = (_FARTHEST**2 + 2 * _LEAST_EPSILON).sqrt() - _FARTHEST
    # w ≥ qv, and M(u + q)/M(u) grows with u.
    apart = 1 - _mills(_FARTHEST + least) / _mills(_FARTHEST)
    if not apart > 1.1 * (1 - _CLOSE):
        raise RuntimeError("the half line of practice is reached by quadrature")
    # A far tail that the rule sums lies beyond 12.
    far = 1 - _mills(12 + least) / _mills(arb(12))
    if not (far > 1 - _CLOSE and _tail(arb(12)) < 1e-32):
        raise RuntimeError("a far tail that matters is reached by quadrature")
    return 4 * _of("Mills ratio, x > -37") / apart * _MORE


def _truncated_error() -> arb:
    """Bound the relative error of an integral of exp(−yv − v²/2) over 0 < v < l: M(y) − e^(−h)M(y + l)."""
    # h ≥ 0 or l, exchanged ends included. h > 1 leaves 1 − 1/e of M(y); else l > 1 and y ≥ −l/2, of which l = 1 is the
    # worst. The power series serves l ≤ 1 and |h| ≤ 1; its 40 terms are at most those of exp(3t/2 + t²/2).
    half = arb(fmpq(1, 2))
    near = half - _tail(half)
    left = (2 * near / (half + near)).min(1 - arb(-1).exp())
    terms = [arb(1), arb(fmpq(3, 2))]
    while len(terms) < 100:
        terms.append((terms[-1] * fmpq(3, 2) + terms[-2]) / len(terms))
    series = arb(1).exp() * sum((c / (n + 1) for n, c in enumerate(terms[40:], 40)), arb(1e-40)) + arb(1e-28)
    single = _of("Mills ratio, x > -37") + _of("exponential, |a| < 1e9")
    return ((2 / left - 1) * single + _of("exponential, |a| < 1e9")).max(series) * _MORE


def _data_error() -> arb:
    """Bound what the roundings of m, α, log s, q and u do to excess for α < 0, relative."""
    # δ ≤ φ(0)|α|L³/6 bounds L from below, and q/(ms) = L/(2u + L). q² is a difference of terms below 3m². A relative
    # error of q comes to excess with a factor below 10; that of u is smaller by q/(ms + q).
    least = (arb(6e-13) * (2 * arb.pi()).sqrt() / fmpq(3, 8)) ** fmpq(1, 3)
    ratio = 4 * ((2 * _FARTHEST + least) / least) ** 2
    steps = 3 * _of("logarithm of 1 + a") + 8 * (primitives.of_pairs("divide") + primitives.of_pairs("multiply"))
    return 10 * ratio * steps


def _least_mean() -> arb:
    """Bound the mean of t in (0, 1) of weight exp(−pt − ht²), p + h ≤ 46, from below: it falls with p and with h."""
    means = []
    for low in range(46):
        p, h = arb(low + 1), arb(46 - low)
        end = (2 * h).sqrt()
        whole = _mills(p / end) - (-p - h).exp() * _mills(p / end + end)
        means.append((1 - (-p - h).exp() - p / end * whole) / (end * whole))
    return min(means, key=lambda ball: float(ball.lower()))


def _rule_error() -> arb:
    """Bound the relative error of excess by the rule of Gauss and Legendre: α < 0 and r > 0.999.

    Then u ≥ 0, or L ≤ 1. For u < 0 and L > 1 a third of the weight has v(L − v) > 3/16, so that r bounds |α| by 0.02.
    Then T ≥ 0.079, and u < 0 makes m² ≥ 2T and q ≥ 0.39, so that r is far below 0.999.
    """
    u, nodes = _u(), _of("Gauss-Legendre nodes and weights")
    # The weight g·e^(−w) falls, or is within 1.17 of one that does: that bounds ∫ vq over ∫ w (Chebyshev) by 3.
    ratio = 3 * arb("1.17")
    # F = g(1 − e^(−w)). In the mean |vF′/F| is below 2 + ratio and uv + v² below 2, as ∫ (vF)′ = 0. What errs: nodes
    # and their product with the end; the exponent, three times; exp and its product; weights; expm1; w, of three
    # numbers with two roundings; and three products at last.
    rounding = (nodes + u) * (2 + ratio) + 6 * u + 3 * u + nodes + 2 * u + 3 * ratio * u + 3 * u
    # On (0, E), E the smaller of L and of where g = e^(−46), qE is below 0.2: else r would be smaller.
    if not fmpq(9, 10) * fmpq(2, 10) / 3 * _least_mean() > 1.1 * (1 - _CLOSE):
        raise RuntimeError("w is large somewhere")
    # Trefethen, Approximation Theory and Approximation Practice, Theorem 19.3, with an ellipse about (0, E).
    rho = arb("3.5")
    over, beside = ((rho + 1 / rho) / 2 - 1) / 2, (rho - 1 / rho) / 4
    largest = (46 * over.max(beside**2) + 1 + fmpq(2, 10) * (1 + over) ** 2).exp() * (1 + over) ** 2
    least = (-arb(fmpq(2, 10))).exp() / 3 / 46**2 * fmpq(99, 100)
    left_out = fmpq(64, 15) / 2 * largest * rho**-62 / (1 - rho**-2) / least
    beyond = arb(-46).exp() / least
    return (rounding + left_out + beyond) * _MORE


def _pair_log_delta_rows() -> Iterator[tuple[str, arb]]:
    u, density = _u(), _of("exponential, |a| < 1e9") * 2
    subtracted = _half_line_error().max(2 * _truncated_error() / (1 - _CLOSE) * fmpq(101, 100)) + _data_error()
    rule, total = _rule_error() + _data_error(), _truncated_error() * 2 + _data_error()
    # The least −log δ with u ≥ 1, and by the rule, with its ulp in u.
    least, close = -(2 * _tail(arb(1))).log(), -arb(1 - _CLOSE).log()
    if not (least > 1 and close > 4):
        raise RuntimeError("logarithms are smaller")
    # Half an ulp of the sum, one of the logarithm of excess, half a one each of their partial sum and of log(2π)/2.
    sums = fmpq(5, 2)
    yield "u >= 1, pairs", sums + (subtracted + u) / (2 * u)
    yield "u >= 1, rule", sums + (rule + u) / (8 * u)
    # An ulp of the logarithm, twice what it is where the other direction's is just above a power of two.
    yield "u < 1, delta <= 1/2, pairs", 2 + (subtracted + density + u) / arb(2).log() / u
    yield "u < 1, delta <= 1/2, rule", 2 + (rule + density + u) / close / u
    yield "u < 1, delta > 1/2", 2 + (total + density + 2 * u) / arb(2).log() / u


def _pair_step_square() -> arb:
    """Bound what half the square of a last step of 1 leaves of ε.

    That is scale²·(q²(1 + R/δ) + qF′)/2, R = φ(u)·rest, for δ > 1/2 without R/δ, where φ(u)F′/q is the density of Z:
    F′ ≤ 2/rest. The scale is at most 1 + |u|.
    """
    far, x = 1 + _FARTHEST, (_FARTHEST**2 + 2 * _MOST_LOSS).sqrt()
    # α ≥ 0: rest ≥ M(x)/s, 1/M(x) ≤ x + 0.8, and qR/δ ≤ 2qM(y)/(M(u) − M(y)) ≤ 2(y + 1.42) for y = u + q = sx. With
    # δ ≤ 1/2 u is at least −0.68, as P(|X| < |u|) ≤ δ for u < 0.
    q = 2 * x
    squares = [far**2 * (q**2 + 2 * q * (2 * x + arb("1.42")) + 4 * q * (x + arb("0.8")))]
    # α < 0, s < 1: 1/rest ≤ 1.6(y + 1) or 1.6/L, |α| ≤ 3/8. With V the smaller of L/2 and 1/(1 + u), excess is at least
    # 0.035qV² or 0.043V, and rest at most 1.32V for V < L/2. Otherwise the scale is at most L/2 ≤ 1.
    q, inverse = x, arb("1.6") * (x + 1)
    squares.append(far**2 * (q**2 + (38 * q * far).max(31 * q**2) + 2 * q * inverse))
    squares.append(q**2 + 43 + 47 * q**2 + 2 * q * inverse)
    # u < 0 and δ ≤ 1/2 make u ≥ −3, else w is above 2 on (−1, 1). Half a unit of v near P₁'s mean has w ≥ q/8.
    x = (9 + 2 * _MOST_LOSS).sqrt()
    q = x + 3
    squares.append(16 * (q**2 + arb("8.3") * q * (q + 8) + 2 * q * arb("1.6") * (x + 1)))
    # δ > 1/2: δ is a float, so that −9 ≤ u ≤ 0.68.
    x = (81 + 2 * _MOST_LOSS).sqrt()
    q = 2 * x + 9
    squares.append(100 * (q**2 + 4 * q * (x + arb("0.8"))))
    return max(squares, key=lambda ball: float(ball.upper())) / 2 * _MORE


def _pair_epsilon_rows() -> Iterator[tuple[str, arb]]:
    # An error e of log δ moves ε by e(1 − r)/r, one of log(1 − δ) by e(1 + P₁(Z ≤ ε)/R). r is at least 1/200. Else
    # P(|X| < |u|) ≤ P₁(Z > ε) ≤ δ·200/199 for u < 0, so that u ≥ −0.68 and excess ≤ 2M(−0.68); rest is as above.
    x = (_FARTHEST**2 + 2 * _MOST_LOSS).sqrt()
    inverse = (2 * (x + arb("0.8"))).max(arb("1.6") * (x + 1))
    least = 1 / (1 + (2 * _mills(arb(0)) * inverse).max(2 * _mills(arb("-0.68")) * 2 * (arb("10.1") + arb("0.8"))))
    if not least > fmpq(1, 200):
        raise RuntimeError("r is smaller somewhere")
    u, half, single = _u(), arb(fmpq(1, 2)), _truncated_error() + _of("exponential, |a| < 1e9")
    step = _pair_step_square() * arb(_PAIR_STEP) ** 2
    # The sum of the loss and of the step, which has some roundings of its own, is rounded once. Pairs: 1e-26.
    other = step + arb(1e-24) + 100 * u * arb(_PAIR_STEP)
    rule = _rule_error() * (1 - _CLOSE) * _MORE
    yield "delta <= 1/2, pairs", (201 * single + other) / _LEAST_EPSILON / u + half
    yield "delta <= 1/2, rule", (rule + other) / _LEAST_EPSILON / u + half
    # P₁(Z ≤ ε) is φ(u) times 2.5 at most for |u| < 0.68, or two Mills ratios of |u|.
    x = (81 + 2 * _MOST_LOSS).sqrt()
    yield "delta > 1/2", ((1 + 3 * 2 * (x + 1)) * 2 * single + other) / _LEAST_EPSILON / u + half


def _pair_rows() -> Iterator[ProvenRow]:
    for name, prove in (("log-delta", _pair_log_delta_rows), ("epsilon", _pair_epsilon_rows)):
        cell_bounds = [(cell, _rounded_up(ulps)) for cell, ulps in prove()]
        for direction in ("forward", "reverse", "both"):
            yield from (ProvenRow(f"two-gaussians.{name}.{direction}", cell, ulps) for cell, ulps in cell_bounds)


def rows() -> tuple[ProvenRow, ...]:
    """Prove all rows of the table."""
    proofs = (_cosine_rows, _tail_rows, _certain_rows, _mechanism_rows, _pair_rows)
    return at_precision(_PRECISION, lambda: tuple(row for prove in proofs for row in prove()))


def written() -> str:
    """Prove all rows, and return the table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("function", "cell", "ulps"))
    writer.writerows((row.function, row.cell, row.ulps) for row in rows())
    return text.getvalue()


def read() -> tuple[ProvenRow, ...]:
    """Read the table that comes with the package."""
    text = (files(__package__) / TABLE).read_text()
    return tuple(
        ProvenRow(row["function"], row["cell"], float(row["ulps"])) for row in csv.DictReader(text.splitlines())
    )


def proven() -> dict[str, float]:
    """Bound in ulps, in practice, of each function whose budget there is proven."""
    largest: dict[str, float] = {}
    for row in read():
        largest[row.function] = max(largest.get(row.function, 0.0), row.ulps)
    return {name: ulps for name, ulps in largest.items() if ulps <= BUDGET}
