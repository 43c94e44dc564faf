"""Error budgets in practice that are proven: bounds of the primitives, composed over cells of each function's domain.

A relative error e is at most e/u ulps, u = 2⁻⁵³, and a last rounding adds half an ulp. The C library's exp, expm1, log
and log1p are taken to err by at most one ulp, as glibc documents.

For the Gaussian mechanism cells are rectangles in (u, ε), with u = εσ − 1/(2σ), m = 1/σ and u + m = √(u² + 2ε) = w.
Mills ratios M fall, and M(w)/M(u) = r rises with u and falls with ε, so corners bound a cell. With X standard normal,
δ = P(X > u)(1 − r): that selects the cells that practice reaches.

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

from canaryproof.kernels.certified._ball import at_precision
from canaryproof.proofs_check.rounding import primitives

TABLE = "budgets.csv"
BUDGET = 8.0
_PRECISION = 192
# What the kernels accept as a last step: of u, in units of its scale, and of log m, times √(1 + w).
EPSILON_STEP, NOISE_STEP = 1e-9, 4e-9


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
    return {bound.name: bound.proven for bound in primitives.read()[1]}


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


# The Gaussian mechanism, 0.1 ≤ ε ≤ 50 and δ ≥ 1e-12.


def _mills(x: arb) -> arb:
    return (arb.pi() / 2).sqrt() * (x * x / 2).exp() * (x / arb(2).sqrt()).erfc()


def _tail(x: arb) -> arb:
    return (x / arb(2).sqrt()).erfc() / 2


@dataclass(frozen=True)
class _Cell:
    """What corners say of a rectangle a ≤ u ≤ b, c ≤ ε ≤ d; pairs are least and largest values."""

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
    found, steps, factor = [], 157, fmpq(11, 10)
    width = (_MOST_U - _LEAST_U) / steps
    epsilon = fmpq(99, 1000)
    while epsilon < fmpq(501, 10):
        for i in range(steps):
            a = _LEAST_U + i * width
            cell = _cell(a - fmpq(1, 10**6), a + width + fmpq(1, 10**6), epsilon, epsilon * factor)
            if cell.delta[1] >= 1e-12:
                found.append(cell)
        epsilon *= factor
    return tuple(found)


def _relative_errors(cell: _Cell) -> tuple[arb, arb]:
    """Relative errors of excess and of total, before they are rounded to one float, φ(u) included."""
    mills, add = _of("Mills ratio, x > -37"), primitives.of_pairs("add")
    times, over = primitives.of_pairs("multiply"), primitives.of_pairs("divide")
    # u and u + m err by roundings of their terms, of at most w and m; −(log M)′ ≤ 0.8 + |u|.
    argument = (2 * add + 2 * over) * (cell.w[1] + cell.m[1])
    size = max(abs(float(cell.u[0])), abs(float(cell.u[1])))
    one = mills + argument * (arb(size) + 1)
    density = _of("exponential, |a| < 1e9") + 3 * times + times * 50 + arb(size) * argument
    # second/first is compared with 0.999 before they are subtracted; a little above r, what is compared errs too.
    if not cell.ratio[1] < 0.9989:
        raise RuntimeError("a cell of practice is reached by quadrature")
    return 2 * one / (1 - cell.ratio[1]) + add + density, 2 * one + add + density


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
    # What 1 + step leaves of its exponential is half a square more.
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


def rows() -> tuple[ProvenRow, ...]:
    """Prove all rows of the table."""
    return at_precision(_PRECISION, lambda: (*_cosine_rows(), *_certain_rows(), *_mechanism_rows()))


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
    found: dict[str, float] = {}
    for row in read():
        found[row.function] = max(found.get(row.function, 0.0), row.ulps)
    return {name: ulps for name, ulps in found.items() if ulps <= BUDGET}
