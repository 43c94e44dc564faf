"""The canary stream's quantile, proven for every word: its error, its symmetry and the law of a coordinate.

A word stands for p = a 2⁻³² with an odd integer a, and the kernel makes −x(a) of it, where q(a) = −Φ⁻¹(p) is exact. The
sweep tries all 2³² words: those of equal a and those of the other tail must give x(a) and −x(a) to the bit, and each
x(a) is compared with q(a).

q is known by some 300 polynomials. Each is the Taylor polynomial of q on a cell of words, its coefficients and its
remainder enclosed by balls. By y′ = g and g′ = y·g² for y = q(p), the coefficients follow one from the other. They
are taken at the cell's centre for the polynomial, and over the whole cell for the remainder. Near p = 1/2, where q is
0, the polynomial has odd powers alone. Floats evaluate the polynomials. What that and the remainder may amount to is
added to every bound.

The law of a coordinate follows: moments from exact squares and their products in pairs of floats, and the Kolmogorov
distance to the normal law from the sorted values. Sorting is local, as words whose quantiles differ by more than the
error have values in the same order.
"""

import json
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from canaryproof.kernels import _canary_stream as stream
from canaryproof.kernels import _double_double as dd
from canaryproof.kernels._compiled import njit
from canaryproof.kernels.certified._ball import at_precision

CERTIFICATE = "canary_quantile.json"
# The kernel and ``discretised_canaries`` state this bound.
STATED_ERROR = 4.6e-7

_BITS = 32
_HALF = 2 ** (_BITS - 1)
_WORDS = _HALF // 2  # odd a below 2³¹
_PRECISION = 256
_DEGREE = 12
# A cell is this part of its first word wide.
_WIDTH = 16
# From this distance of 2³¹ on, one cell of odd powers.
_CENTRAL = 2**26
_CHUNK, _LANES = 2**18, 1024
# Words on either side of a chunk that may come between its values.
_MARGIN = 2**13
_UNIT = 2.0**-53
_ORDERS = (2, 4, 6, 8)


class QuantileCell(NamedTuple):
    """A polynomial for q at the odd words first, …, last, and a bound on its relative error as floats evaluate it."""

    first: int
    last: int
    # q ≈ Σ coefficients[n] zⁿ, z = (a − centre)·scale.
    centre: float
    scale: float
    coefficients: NDArray[np.float64]
    error: float


def exact(a: int) -> arb:
    """Ball of q(a), at the precision in force."""
    return arb(2).sqrt() * (arb(fmpq(a, _HALF))).erfcinv()


def _taylor(y0: arb, terms: int) -> list[arb]:
    """Taylor coefficients of y(p) with y = y0 at the start and y′ = −√(2π)·exp(y²/2)."""
    y = [y0]
    g = [-(2 * arb.pi()).sqrt() * (y0 * y0 / 2).exp()]
    for k in range(terms - 1):
        square = [sum((g[i] * g[n - i] for i in range(n + 1)), arb(0)) for n in range(k + 1)]
        y.append(g[k] / (k + 1))
        g.append(sum((y[i] * square[k - i] for i in range(k + 1)), arb(0)) / (k + 1))
    return y


def _cell(first: int, last: int, centre: fmpq, reach: fmpq) -> QuantileCell:
    """Make the cell of the words first, …, last."""
    unit = fmpq(1, 2**_BITS)
    step = arb(reach * unit)
    middle = arb(0) if centre == _HALF else exact(int(centre))
    whole = exact(first).union(middle if centre == _HALF else exact(last))
    terms = _DEGREE + 4 if centre == _HALF else _DEGREE + 1
    balls = [ball * step**n for n, ball in enumerate(_taylor(middle, terms))]
    remainder = abs(_taylor(whole, terms + 1)[terms]) * step**terms
    coefficients = np.array([float(ball.mid()) for ball in balls])
    # Rounded coefficients, Horner's scheme, and an argument that is off by two units.
    rounding = (4 * terms + 8) * _UNIT * sum((abs(ball) for ball in balls), arb(0))
    # Near p = 1/2 all terms and the remainder have a factor z, and q is at least the first term.
    smallest = balls[1] if centre == _HALF else exact(last)
    error = float(((remainder + rounding) / abs(smallest)).upper()) * (1.0 + 1e-9)
    scale = 1.0 / float(reach) if reach > 0 else 0.0
    return QuantileCell(first, last, float(int(centre)), scale, coefficients, error)


def cells() -> list[QuantileCell]:
    """Cut the odd words below 2³¹ into cells."""

    def make() -> list[QuantileCell]:
        cut, first, end = [], 1, _HALF - _CENTRAL
        while first < end:
            last = min(first + 2 * (first // (2 * _WIDTH)), end - 1)
            centre = (first + last) // 2
            reach = fmpq(max(centre - first, last - centre))
            cut.append(_cell(first, last, fmpq(centre), reach))
            first = last + 2
        cut.append(_cell(first, _HALF - 1, fmpq(_HALF), fmpq(_CENTRAL)))
        return cut

    return at_precision(_PRECISION, make)


class Polynomials(NamedTuple):
    """The cells as arrays, for compiled code."""

    first: NDArray[np.int64]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    error: NDArray[np.float64]


def polynomials() -> Polynomials:
    """Return all cells' polynomials, filled with zeros to one length."""
    quantile_cells = cells()
    longest = max(len(cell.coefficients) for cell in quantile_cells)
    table = np.zeros((len(quantile_cells), longest))
    for row, cell in zip(table, quantile_cells, strict=True):
        row[: len(cell.coefficients)] = cell.coefficients
    return Polynomials(
        np.array([cell.first for cell in quantile_cells], np.int64),
        np.array([cell.centre for cell in quantile_cells]),
        np.array([cell.scale for cell in quantile_cells]),
        table,
        np.array([cell.error for cell in quantile_cells]),
    )


@njit(error_model="numpy", nogil=True)
def _exact_quantiles(first: Any, table: Any, q: Any, errors: Any) -> None:
    """Fill in q of consecutive odd words, and bounds on what that errs by, relative."""
    cell = np.searchsorted(table.first, first, side="right") - 1
    i = 0
    while i < len(q):
        end = len(q)
        if cell + 1 < len(table.first):
            end = min(end, (table.first[cell + 1] - first) // 2)
        c = table.coefficients[cell]
        centre, scale, error = table.centre[cell], table.scale[cell], table.error[cell]
        for k in range(i, end):
            z = (np.float64(first + 2 * k) - centre) * scale
            value = c[-1]
            for n in range(len(c) - 2, -1, -1):
                value = c[n] + z * value
            q[k] = value
            errors[k] = error
        i, cell = end, cell + 1


@njit(error_model="numpy", nogil=True)
def _values(first: Any, x: Any) -> bool:
    """Fill in the kernel's values of consecutive odd words; whether all words of each give the same."""
    same = True
    for k in range(len(x)):
        # Words below 2³¹ have the values below 0.
        word = np.uint32(first + 2 * k)
        value = -stream._normal(word, stream._depth(word))
        even, other, last = np.uint32(word ^ np.uint32(1)), np.uint32(~word), np.uint32(~word ^ np.uint32(1))
        same &= stream._normal(even, stream._depth(even)) == -value
        same &= stream._normal(other, stream._depth(other)) == value
        same &= stream._normal(last, stream._depth(last)) == value
        x[k] = value
    return same


@njit(error_model="numpy", nogil=True)
def _power_sums(x: Any, high: Any, low: Any) -> None:
    """Add up the 2nd, 4th, 6th and 8th powers in pairs of floats, shape (4, lanes); the first lane gets the sum."""
    lanes = high.shape[1]
    for start in range(0, len(x), lanes):
        part = x[start : start + lanes]
        for i in range(len(part)):
            # A float32's square is a float64, and the square of that is a pair.
            square = np.float64(part[i]) * np.float64(part[i])
            high[0, i], low[0, i] = dd.add(high[0, i], low[0, i], square, 0.0)
            fourth = dd.two_product(square, square)
            high[1, i], low[1, i] = dd.add(high[1, i], low[1, i], fourth[0], fourth[1])
            sixth = dd.multiply(fourth[0], fourth[1], square, 0.0)
            high[2, i], low[2, i] = dd.add(high[2, i], low[2, i], sixth[0], sixth[1])
            eighth = dd.multiply(fourth[0], fourth[1], fourth[0], fourth[1])
            high[3, i], low[3, i] = dd.add(high[3, i], low[3, i], eighth[0], eighth[1])
    half = lanes // 2
    while half > 0:
        for n in range(4):
            for i in range(half):
                high[n, i], low[n, i] = dd.add(high[n, i], low[n, i], high[n, i + half], low[n, i + half])
        half //= 2


@njit(error_model="numpy", nogil=True)
def _largest_errors(x: Any, q: Any, errors: Any) -> Any:
    """Largest x/q − 1 and 1 − x/q, and at which word each."""
    above, below, at_above, at_below = -1.0, -1.0, 0, 0
    for k in range(len(x)):
        excess = np.float64(x[k]) / q[k] - 1.0
        # The quotient's rounding, and that of q.
        slack = errors[k] * (1.0 + 1e-6) + 2.0**-52
        if excess + slack > above:
            above, at_above = excess + slack, k
        if slack - excess > below:
            below, at_below = slack - excess, k
    return above, at_above, below, at_below


@njit(error_model="numpy", nogil=True)
def _largest_distance(descending: Any, q: Any, errors: Any) -> float:
    """Largest |P(X > x) − p| over values in order, x the one at a word's place and p that word's probability."""
    largest = 0.0
    for k in range(len(q)):
        difference = np.float64(descending[k]) - q[k]
        density = 0.3989422804014327 * math.exp(-0.5 * q[k] * q[k])
        # Third order: |φ″| ≤ 0.4. The density is off by less than 1e-12, relative.
        distance = abs(density * difference * (1.0 - 0.5 * q[k] * difference))
        slack = density * q[k] * (errors[k] + 2.0**-52) + abs(difference) ** 3 + 1e-12 * distance
        largest = max(largest, distance + slack)
    return largest


@dataclass(frozen=True)
class Chunk:
    """Extreme errors and sums over a chunk of words."""

    above: tuple[float, int]  # largest x/q − 1, and its word
    below: tuple[float, int]  # largest 1 − x/q, and its word
    distance: float
    sums: tuple[Fraction, ...]
    ordered: bool  # whether values and words of other chunks are in order, and a word's four forms agree
    value_range: tuple[float, float]


def _part(start: int, table: Polynomials, length: int) -> Chunk:
    """Try the odd words number ``start``, …, ``start + length − 1``."""
    before, after = min(_MARGIN, start), min(_MARGIN, _WORDS - start - length)
    q, errors = np.empty(before + length + after), np.empty(before + length + after)
    x = np.empty(len(q), np.float32)
    first = 2 * (start - before) + 1
    same = _values(first, x)
    _exact_quantiles(first, table, q, errors)
    own = slice(before, before + length)
    above, i, below, j = _largest_errors(x[own], q[own], errors[own])
    high, low = np.zeros((4, _LANES)), np.zeros((4, _LANES))
    _power_sums(x[own], high, low)
    descending = np.sort(x)[::-1]
    distance = _largest_distance(descending[own], q[own], errors[own])
    # Words beyond the window have values beyond these ends, where the error is as stated.
    ordered = same
    if before:
        ordered &= float(descending[own][0]) <= q[0] * (1.0 - 2.0 * STATED_ERROR)
    if after:
        ordered &= float(descending[own][-1]) >= q[-1] * (1.0 + 2.0 * STATED_ERROR)
    sums = tuple(Fraction(h) + Fraction(k) for h, k in zip(high[:, 0].tolist(), low[:, 0].tolist(), strict=True))
    words = (2 * (start + i) + 1, 2 * (start + j) + 1)
    ends = float(x[own].min()), float(x[own].max())
    return Chunk((above, words[0]), (below, words[1]), distance, sums, bool(ordered), ends)


def _parts(table: Polynomials) -> Iterator[Chunk]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda start: _part(start, table, _CHUNK), range(0, _WORDS, _CHUNK))


@dataclass(frozen=True)
class Certificate:
    """Proven properties of the quantile at all words; numbers are bounds unless stated otherwise."""

    words: int  # Number of words tried
    cells: int  # Number of enclosed polynomials that they were compared with
    symmetric: bool  # Whether x is odd to the bit, and the lowest bit of a word counts for nothing
    largest_above: float  # of x/q − 1
    word_above: int  # where it is found
    largest_below: float  # of 1 − x/q
    word_below: int
    smallest_value: float  # Smallest and largest |x|
    largest_value: float
    # Ends of the even moments' enclosures, by order; odd moments are 0.
    moments: dict[str, tuple[float, float]]
    kolmogorov: float  # Distance of a coordinate's law to the standard normal one

    @property
    def error(self) -> float:
        """Largest relative error of a value."""
        return max(self.largest_above, self.largest_below)


def prove() -> Certificate:
    """Try all words; a RuntimeError where the argument does not reach."""
    table = polynomials()
    parts = list(_parts(table))
    if not all(part.ordered for part in parts):
        raise RuntimeError("the stream's quantile is not odd, or its values are out of order")
    above, below = max(part.above for part in parts), max(part.below for part in parts)
    if max(above[0], below[0]) > STATED_ERROR:
        raise RuntimeError("the stream's quantile errs by more than is stated")
    moments = {}
    for n, order in enumerate(_ORDERS):
        mean = sum((part.sums[n] for part in parts), Fraction(0)) / _WORDS
        # Products and sums are in pairs: each term's relative error is below (chunk/lanes + 13)·4e-32.
        slack = mean * Fraction(1, 10**28)
        low, high = (float(end) for end in (mean - slack, mean + slack))
        moments[str(order)] = (math.nextafter(low, 0.0), math.nextafter(high, math.inf))
    return Certificate(
        words=4 * _WORDS,
        cells=len(table.first),
        symmetric=True,
        largest_above=above[0],
        word_above=above[1],
        largest_below=below[0],
        word_below=below[1],
        smallest_value=min(part.value_range[0] for part in parts),
        largest_value=max(part.value_range[1] for part in parts),
        moments=moments,
        # The law jumps by 2⁻³¹ at a value.
        kolmogorov=max(part.distance for part in parts) + 2.0**-_BITS,
    )


def written(certificate: Certificate) -> str:
    """Return a certificate as JSON."""
    return json.dumps(asdict(certificate), indent=2) + "\n"


def read() -> Certificate:
    """Read the certificate that comes with the package."""
    fields = json.loads((files(__package__) / CERTIFICATE).read_text())
    fields["moments"] = {order: tuple(ends) for order, ends in fields["moments"].items()}
    return Certificate(**fields)
