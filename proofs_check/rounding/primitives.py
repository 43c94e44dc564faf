"""Error bounds of the kernels' primitives: pairs of floats, exponential, logarithm, Mills ratio, rule, Stirling series.

Rounding: a float's operation errs by at most u = 2⁻⁵³, relative. ``two_sum`` and ``two_product`` are exact (Knuth;
Dekker), so that an operation on pairs is straight-line code. The scripts that ``gappa`` writes bound those, and their
bounds are the constants below. Where a result is composed of such steps, the bounds are added up here, in balls.

Approximation: the remainder of a polynomial or a series is enclosed over whole intervals. A Taylor polynomial of the
difference at the centre of a cell, with balls for coefficients, and a bound on the next derivative over the cell do
that.

All constants come from the kernels' own modules. Nothing underflows or overflows: the kernels' domains see to that.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

import flint
from flint import arb, fmpq

from canaryproof.kernels import _double_double as dd
from canaryproof.kernels import _tails, binomial, null_cosine
from canaryproof.kernels.certified import _pair_balls
from canaryproof.kernels.certified._ball import at_precision

TABLE = "primitives.json"
_PRECISION = 700
# Bounds that Gappa proves, in units of u²; of a sum relative to the larger operand.
UNITS = {"add": 6, "multiply": 9, "divide": 52, "square_root": 19}


@dataclass(frozen=True)
class Bound:
    """An error that is proven, and what the code states of it."""

    name: str
    proven: float
    stated: float

    @property
    def holds(self) -> bool:
        """Whether what is proven is what is stated, or less."""
        return self.proven <= self.stated


def unit() -> arb:
    """u, the largest relative error of a float's rounding."""
    return arb((1, -53))


def of_pairs(operation: str) -> arb:
    """Bound on the relative error of an operation on pairs."""
    return UNITS[operation] * unit() ** 2


def _number(high: float, low: float = 0.0) -> arb:
    return arb(high) + arb(low)


def _largest(values: Sequence[arb]) -> arb:
    largest = arb(0)
    for value in values:
        largest = largest.max(abs(value))
    return largest.upper()


def _inverses(length: int, at: arb) -> list[arb]:
    """Taylor coefficients of 1/(at + h)."""
    # A power of a wide ball is far wider than the power of its inverse.
    inverse = 1 / at
    return [(-1) ** k * inverse ** (k + 1) for k in range(length)]


def _product(a: Sequence[arb], b: Sequence[arb]) -> list[arb]:
    return [sum((a[i] * b[k - i] for i in range(k + 1)), arb(0)) for k in range(len(a))]


# The logarithm.


def two_atanh(largest: arb, argument: arb) -> arb:
    """Bound the relative error of ``_two_atanh``, |f| ≤ ``largest``; f's own relative error is ``argument``."""
    u, add, times = unit(), of_pairs("add"), of_pairs("multiply")
    square = largest**2
    worst = arb(0)
    for half, s in ((dd._ODD_HIGH.size // 4, arb("0.001").min(square)), (dd._ODD_HIGH.size // 2, square)):
        # One float: a product and a sum a step, and s instead of its pair.
        tail = s**half / (2 * half + 1) / (1 - s) * (3 * half + 2) * u
        left_out = s ** (2 * half) / (4 * half + 1) / (1 - s)
        # Steps in pairs: a product, a sum and a constant each, later ones damped by s.
        constants = _largest(
            [1 - _number(dd._ODD_HIGH[n], dd._ODD_LOW[n]) * (2 * n + 1) for n in range(dd._ODD_HIGH.size)]
        )
        steps = (add + times + constants) / (1 - s)
        # s errs by that of its factors; the sum's relative derivative in s is below 1/3·1/(1 − s).
        worst = worst.max(tail + left_out + steps + s / 3 / (1 - s) * times)
    return ((worst + times) + argument / (1 - square)).upper() * arb("1.000001")


def log_bounds() -> tuple[arb, arb]:
    """Bound the relative errors of ``log`` and ``log1p``."""
    add, times, over = (of_pairs(name) for name in ("add", "multiply", "divide"))
    # The mantissa less 1 is exact (Sterbenz); the mantissa plus 1 is a sum.
    reach = (arb(2).sqrt() - 1) / (arb(2).sqrt() + 1) * arb("1.0000001")
    series = two_atanh(reach, over + add)
    log2 = _number(dd._LN2_HIGH, dd._LN2_LOW)
    constant = abs(log2 / arb(2).log() - 1)
    # Where the exponent is not 0, the result is at least log(2)/2: half of its larger part.
    whole = series.max(2 * (times + constant + add) + series)
    # |a| < 1/4: f = a/(2 + a) < 1/7. Else 1 + a is exact or a sum of at least 1/2, whose logarithm is at least 1/5.
    small = two_atanh(fmpq(1, 7) * arb("1.0000001"), over + add)
    return whole, small.max(whole + 5 * 2 * add)


# The exponential.


def exp_bound(largest: arb) -> arb:
    """Bound the relative error of ``exp_parts`` for |a| up to ``largest``."""
    u, add, times = unit(), of_pairs("add"), of_pairs("multiply")
    log2 = arb(2).log()
    constant = abs(_number(dd._LN2_HIGH, dd._LN2_LOW) / log2 - 1)
    # The rest of a after n·log 2, at most half of it and what rounding the quotient adds.
    rest = largest * (1 + u) * (times + constant + add)
    r = (log2 / 2 * (1 + largest * 4 * u)) / 32
    # Terms from the third on, in one float: two roundings a step, damped by r/3; three products; r³ of the high part.
    third = r**3 / 6 * r.exp()
    tail = third * ((2 + r) * u + 3 * u + 3 * u) * arb("1.01")
    left_out = r**9 / 362880 * r.exp()
    first = r * add * 3 + r**2 * times
    # Each squaring doubles the relative error of 1 + e, and adds a product and a sum.
    squarings = 64 * (add + times)
    return (rest + 32 * (tail + left_out + first) * (2 * r).exp() + squarings + 2 * add).upper()


# The Mills ratio.


def _clenshaw(t: Sequence[arb]) -> list[arb]:
    """Taylor coefficients of Σ cₙTₙ(t), t given by its own; cₙ as the kernel has them."""
    length = len(t)
    zero = [arb(0)] * length
    b1, b2 = zero, zero
    low = _tails.CHEBYSHEV_LOW
    for n in range(_tails.CHEBYSHEV.size - 1, 0, -1):
        c = _number(_tails.CHEBYSHEV[n], low[n] if n < low.size else 0.0)
        following = [2 * x - y for x, y in zip(_product(t, b1), b2, strict=True)]
        following[0] += c
        b1, b2 = following, b1
    total = [x - y for x, y in zip(_product(t, b1), b2, strict=True)]
    total[0] += _number(_tails.CHEBYSHEV[0], low[0])
    return total


def _mills_series(x: arb, length: int) -> list[arb]:
    """Taylor coefficients of M at x, from M′ = xM − 1."""
    value = (arb.pi() / 2).sqrt() * (x * x / 2).exp() * (x / arb(2).sqrt()).erfc()
    coefficients = [value, x * value - 1]
    for k in range(1, length - 1):
        coefficients.append((x * coefficients[k] + coefficients[k - 1]) / (k + 1))
    return coefficients[:length]


_TERMS = 40
_FAR = 1024


def _on_cell(start: fmpq, width: fmpq) -> tuple[arb, arb]:
    """Bound |Σ cₙTₙ − (x + 5/4)M| on start ≤ x ≤ start + width, and the least (x + 5/4)M there."""
    centre, half = start + width / 2, arb(width / 2)

    def of_t(x: arb, length: int) -> list[arb]:
        t = [-8 * c for c in _inverses(length, x + 4)]
        t[0] += 1
        return t

    def target(m: Sequence[arb], x: arb) -> list[arb]:
        weight = x + fmpq(5, 4)
        return [weight * m[k] + (m[k - 1] if k else 0) for k in range(len(m))]

    exact = target(_mills_series(arb(centre), _TERMS), arb(centre))
    difference = [a - b for a, b in zip(_clenshaw(of_t(arb(centre), _TERMS)), exact, strict=True)]
    bound = sum((abs(c) * half**k for k, c in enumerate(difference)), arb(0))
    whole = arb(start).union(arb(start + width))
    # Every derivative of M is largest, in size, at the left end: ∫ vⁿ e^(−xv − v²/2) dv falls.
    left = _mills_series(arb(start), _TERMS + 1)
    next_exact = (arb(start + width) + fmpq(5, 4)) * abs(left[_TERMS]) + abs(left[_TERMS - 1])
    bound += (abs(_clenshaw(of_t(whole, _TERMS + 1))[_TERMS]) + next_exact) * half**_TERMS
    value = _mills_series(arb(start + width), 1)[0] * (arb(start) + fmpq(5, 4))
    return bound.upper(), value.lower()


def _beyond() -> arb:
    """Bound |Σ cₙTₙ − (x + 5/4)M| for x ≥ 1024, in y = 1/x: M's asymptotic series encloses it."""
    end = arb(fmpq(1, _FAR))

    def of_t(y: arb, length: int) -> list[arb]:
        # t = 2/(1 + 4y) − 1.
        t = [2 * c * fmpq(4) ** k for k, c in enumerate(_inverses(length, 1 + 4 * y))]
        t[0] -= 1
        return t

    series, factor = [arb(0)] * _TERMS, arb(1)
    for k in range(_TERMS // 2):
        series[2 * k] += factor
        series[2 * k + 1] += factor * fmpq(5, 4)
        factor *= -(2 * k + 1)
    difference = [a - b for a, b in zip(_clenshaw(of_t(arb(0), _TERMS)), series, strict=True)]
    bound = sum((abs(c) * end**k for k, c in enumerate(difference)), arb(0))
    bound += abs(_clenshaw(of_t(arb(0).union(end), _TERMS + 1))[_TERMS]) * end**_TERMS
    return (bound + abs(factor) * end**_TERMS * (1 + 2 * end)).upper()


def chebyshev_bound() -> arb:
    """Bound the relative error of the Mills ratio's series over all x ≥ 0, as the coefficients stand."""
    start, worst, least = fmpq(0), arb(0), arb(1)
    while start < _FAR:
        width = (start + 4) / 16
        bound, value = _on_cell(start, width)
        worst, least, start = worst.max(bound), least.min(value), start + width
    if not least > arb("0.9"):
        raise RuntimeError("(x + 5/4)·M(x) is below 0.9 somewhere")
    # Beyond, M(x) ≥ x/(1 + x²).
    return (worst.max(_beyond()) / arb("0.9")).upper()


def mills_bound() -> arb:
    """Bound the relative error of ``mills_ratio``."""
    u, add, times, over = unit(), *(of_pairs(name) for name in ("add", "multiply", "divide"))
    coefficients = [abs(arb(float(c))) for c in _tails.CHEBYSHEV]
    pairs = _tails.CHEBYSHEV_LOW.size
    # |b_n| ≤ Σ (m − n + 1)|c_m|. An error at step n is one of c_n, which the result sees as it is: |T_n| ≤ 1.
    most = [
        sum(((m - n + 1) * c for m, c in enumerate(coefficients) if m >= n), arb(0)) for n in range(len(coefficients))
    ]
    most += [arb(0), arb(0)]
    # Errors of t: a difference of at most 4 from y, a sum and a quotient, relative to a denominator of at least 4.
    t = 3 * add + over
    rounding = arb(0)
    for n in range(len(coefficients)):
        operation = 2 * most[n + 1] + most[n + 2]
        if n >= pairs:
            # A product, a difference and a sum of floats; and of t its high part alone.
            rounding += u * (2 * most[n + 1] + operation + most[n] + 2 * most[n + 1]) * arb("1.01")
        else:
            rounding += (times * 2 * most[n + 1] + add * 2 * (operation + most[n]) + 2 * t * most[n + 1]) * arb("1.01")
    # (x + 5/4)M ≥ 0.9 on the right, as the cells show.
    right = chebyshev_bound() + rounding / arb("0.9") + over + add
    # On the left M(x) = √(2π)e^(x²/2) − M(−x), at least half of its first term, and x²/2 ≤ 690.
    root = abs(_number(*_tails._SQRT_TWO_PI) / (2 * arb.pi()).sqrt() - 1)
    whole = root + times + exp_bound(arb(690)) + 690 * times * 2
    return right.max(2 * whole + right + 2 * add).upper()


# The rule of Gauss and Legendre.


def rule_bound() -> arb:
    """Bound the relative distance of nodes and weights from those of the rule."""
    count = _tails.NODES.size
    worst = []
    for i in range(count):
        root, weight = arb.legendre_p_root(count, count - 1 - i, weight=True)
        worst += [_number(_tails.NODES[i]) / ((root + 1) / 2) - 1, _number(_tails.WEIGHTS[i]) / (weight / 2) - 1]
    return _largest(worst)


# Stirling's series: errors of logarithms, absolute.


def _bernoulli(k: int) -> fmpq:
    number = flint.fmpq.bernoulli(2 * k)
    return number / (2 * k * (2 * k - 1))


def log_gamma_bound() -> arb:
    """Bound the absolute error of the series of ``_log_gamma`` from its second term on, at z ≥ 20."""
    u, z = unit(), arb(20)
    exact = [arb(_bernoulli(k)) for k in range(2, 8)]
    used = [*map(arb, binomial.STIRLING), 1 / arb(binomial.LAST_DIVISOR)]
    # Signs alternate: the next term bounds what is left out. A step of Horner's scheme rounds twice, v and v/z thrice.
    left_out = abs(arb(_bernoulli(8))) / z**15
    wrong = sum((abs(a - b) / z ** (2 * k + 3) for k, (a, b) in enumerate(zip(used, exact, strict=True))), arb(0))
    rounding = sum((abs(a) / z ** (2 * k + 3) * (4 * k + 8) * u for k, a in enumerate(used)), arb(0))
    constant = abs(_number(*binomial._HALF_LOG_TWO_PI) - (2 * arb.pi()).log() / 2)
    return (left_out + wrong + rounding + constant).upper()


_GAMMA_TERMS = 14


def density_series_bound(least: fmpq) -> arb:
    """Bound |c − log(Γ(w + 3/4)/(Γ(w + 1/4)√w))| for w ≥ ``least``, c the series of ``_density_scale``."""
    length = 24
    end = 1 / arb(least)

    def series(h: arb, length: int) -> list[arb]:
        """Taylor coefficients of the difference at 1/w = h, Stirling's remainder left out."""

        def log_over(c: fmpq) -> list[arb]:
            # log(1 + ch)/h from its power series, whose rest alternates.
            coefficients = []
            for k in range(length):
                total = arb(0)
                for j in range(k, k + 60):
                    total += arb((-1) ** j * c ** (j + 1) / (j + 1)) * math.comb(j, k) * h ** (j - k)
                # From there on terms alternate, each less than half of the one before.
                rest = arb(c) ** (k + 61) * math.comb(k + 60, k) * abs(h) ** 60 * 2
                coefficients.append(total + arb(0, rest.upper()))
            return coefficients

        def log_of(c: fmpq) -> list[arb]:
            constant = [(1 + c * h).log()]
            return constant + [arb((-1) ** (k + 1)) / k * (arb(c) / (1 + c * h)) ** k for k in range(1, length)]

        def inverse_power(c: fmpq, power: int) -> list[arb]:
            # (h/(1 + ch))^power.
            base = [arb(0)] * length
            inverse = [c**k * ball for k, ball in enumerate(_inverses(length, 1 + c * h))]
            for k in range(length):
                base[k] = h * inverse[k] + (inverse[k - 1] if k else 0)
            result = [arb(1)] + [arb(0)] * (length - 1)
            for _ in range(power):
                result = _product(result, base)
            return result

        total = [arb(0)] * length
        total[0] -= fmpq(1, 2)
        parts = [
            (fmpq(1), log_over(fmpq(3, 4))), (fmpq(1, 4), log_of(fmpq(3, 4))),
            (fmpq(-1), log_over(fmpq(1, 4))), (fmpq(1, 4), log_of(fmpq(1, 4))),
        ]  # fmt: skip
        for k in range(1, _GAMMA_TERMS):
            parts.append((_bernoulli(k), inverse_power(fmpq(3, 4), 2 * k - 1)))
            parts.append((-_bernoulli(k), inverse_power(fmpq(1, 4), 2 * k - 1)))
        for factor, part in parts:
            total = [a + factor * b for a, b in zip(total, part, strict=True)]
        for n, coefficient in enumerate(map(arb, null_cosine.DENSITY_SERIES)):
            power = 2 * n + 2
            for k in range(min(length, power + 1)):
                total[k] -= coefficient * math.comb(power, k) * h ** (power - k)
        return total

    bound = sum((abs(c) * end**k for k, c in enumerate(series(arb(0), length))), arb(0))
    bound += abs(series(arb(0).union(end), length + 1)[length]) * end**length
    # Either logarithm's rest is at most the next term, at z ≥ w.
    return (bound + 2 * abs(arb(_bernoulli(_GAMMA_TERMS))) * end ** (2 * _GAMMA_TERMS - 1)).upper()


def density_scale_bound(least: fmpq) -> arb:
    """Bound the relative error of ``_density_scale`` for (d − 1)/2 − 1/4 ≥ ``least``, where its loops are empty."""
    u, times, root = unit(), of_pairs("multiply"), of_pairs("square_root")
    v = 1 / arb(least) ** 2
    # v has two roundings, each step of Horner's scheme two, and expm1 of the C library two units at most.
    size = sum((abs(arb(s)) * v ** (k + 1) for k, s in enumerate(null_cosine.DENSITY_SERIES)), arb(0))
    series = density_series_bound(least) + size * 14 * u + 2 * size * 2 * u
    constant = abs(_number(*null_cosine._INVERSE_SQRT_PI) * arb.pi().sqrt() - 1)
    return (series * arb("1.001") + constant + root + 3 * times + of_pairs("divide")).upper()


def bounds() -> tuple[Bound, ...]:
    """Prove all bounds, and return each with the one that the code states."""

    def upper(prove: Callable[[], arb]) -> float:
        ball = at_precision(_PRECISION, prove)
        return math.nextafter(float(ball.upper()), math.inf)

    log, log1p = at_precision(_PRECISION, log_bounds)
    stated = _pair_balls
    return (
        *(Bound(f"{name} of pairs", upper(partial(of_pairs, name)), getattr(stated, name.upper())) for name in UNITS),
        Bound("logarithm", upper(lambda: log), stated.LOGARITHM),
        Bound("logarithm of 1 + a", upper(lambda: log1p), stated.LOGARITHM),
        Bound("exponential, |a| < 1e9", upper(lambda: exp_bound(arb(10**9))), stated.EXPONENTIAL),
        Bound("Mills ratio, series", upper(chebyshev_bound), stated.MILLS),
        Bound("Mills ratio, x > -37", upper(mills_bound), stated.MILLS),
        Bound("Gauss-Legendre nodes and weights", upper(rule_bound), 2.0**-53),
        Bound("log-gamma series, z >= 20, absolute", upper(log_gamma_bound), 1e-19),
        Bound("density series, w >= 20, absolute", upper(lambda: density_series_bound(fmpq(20))), 2e-18),
        Bound("density at 0, d >= 100", upper(lambda: density_scale_bound(fmpq(197, 4))), 1e-19),
    )


def written() -> str:
    """Prove all bounds and return their table: what is proven and stated, by name."""
    return json.dumps({b.name: {"proven": b.proven, "stated": b.stated} for b in bounds()}, indent=2) + "\n"


def read() -> tuple[Bound, ...]:
    """Read the table that comes with the package."""
    table = json.loads((files(__package__) / TABLE).read_text())
    return tuple(Bound(name, **row) for name, row in table.items())
