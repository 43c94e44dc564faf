"""Section 3.2, the privacy curve of two Gaussians: every line judged.

Identities are decided symbolically (``two_gaussians_loss``); what is said of numbers is decided in ball arithmetic, by
the section's own recipe on a grid of rational pairs (``two_gaussians_recipe``).
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import sympy
from sympy import Expr, exp, log, pi, sqrt

from canaryproof.kernels.certified import two_gaussians
from canaryproof.proofs_check import two_gaussians_loss, two_gaussians_recipe
from canaryproof.proofs_check.lines import Judgement, Kind, Line, held
from canaryproof.proofs_check.spelling import text
from canaryproof.proofs_check.two_gaussians_loss import (
    EPSILON,
    FIRST,
    MU1,
    MU2,
    SECOND,
    SHIFT,
    SIGMA,
    SIGMA1,
    SIGMA2,
    Gaussian,
    X,
    derivative,
    implication,
    is_best_event,
    loss,
    upper,
    vanishes,
)
from canaryproof.proofs_check.two_gaussians_recipe import balls, difference, grid, probabilities

# Pr[Z₁ > ε] and Pr[−Z₂ > ε] where the event is not empty.
ABOVE1, ABOVE2 = sympy.symbols("q_1 q_2", positive=True)
_LOSS, _REVERSE_LOSS = loss(FIRST, SECOND), loss(SECOND, FIRST)
_SQUARE1, _SQUARE2 = (X - MU1) ** 2 / SIGMA1**2, (X - MU2) ** 2 / SIGMA2**2
_DENSITY1, _DENSITY2 = (
    exp(-square / 2) / (deviation * sqrt(2 * pi)) for square, deviation in ((_SQUARE1, SIGMA1), (_SQUARE2, SIGMA2))
)

# What the section prints.
COEFFICIENTS = (
    (1 / SIGMA2**2 - 1 / SIGMA1**2) / 2,
    MU1 / SIGMA1**2 - MU2 / SIGMA2**2,
    ((MU2 / SIGMA2) ** 2 - (MU1 / SIGMA1) ** 2) / 2 + log(SIGMA2) - log(SIGMA1),
)
_A, _B, _C = COEFFICIENTS
LOG_RATIO = (
    log(_DENSITY1 / _DENSITY2),
    log(SIGMA2 / SIGMA1 * exp(-(_SQUARE1 - _SQUARE2) / 2)),
    log(SIGMA2) - log(SIGMA1) + _SQUARE2 / 2 - _SQUARE1 / 2,
    _A * X**2 + _B * X + _C,
)
LOG_DELTA = log(ABOVE1) + log(1 - exp(EPSILON + log(ABOVE2) - log(ABOVE1)))
DISPLAYS: dict[str, int] = {"(ε, δ) implies": 2, "log ratio": 4, "a, b, c": 3, "Pr[−Z₂ > ε]": 1, "log δ": 2}


def identity(printed: Expr, exact: Expr) -> Judgement:
    """Judge that a printed expression equals the exact one identically."""
    exact = sympy.sympify(exact)
    holds = vanishes(printed - exact)
    return held(holds, f"identical to {text(exact)}", printed=text(printed), exact=text(exact))


def two_tails(printed: frozenset[str]) -> Judgement:
    """Judge on which of the regions ``below``, ``between`` and ``above`` the roots R is positive, for a > 0."""
    a, gap, step = sympy.symbols("a g h", positive=True)
    b, rest, low = sympy.symbols("b c r_1", real=True)
    root = (-b - sqrt(b**2 - 4 * a * rest)) / (2 * a)
    factors = vanishes(a * (X - root) * (X - (-b / a - root)) - (a * X**2 + b * X + rest))
    places = {"below": low - step, "between": low + gap * step / (1 + step), "above": low + gap + step}
    signs = {name: sympy.factor(a * (place - low) * (place - low - gap)).is_positive for name, place in places.items()}
    positive = {name for name, sign in signs.items() if sign}
    return held(
        factors and None not in signs.values() and positive == printed,
        "R = a(x − r₁)(x − r₂) is positive before r₁ and after r₂ and negative between",
        positive=sorted(positive),
        factors=factors,
    )


def _sign(number: Fraction | int) -> int:
    return int(number > 0) - int(number < 0)


def _pattern(a: int, b: int, rest: int) -> tuple[int, int, int]:
    """Signs of R far to the left, at its vertex (0 without one) and far to the right."""
    far = 1 + abs(b) + abs(rest)
    values = [a * x * x + b * x + rest for x in (-far, Fraction(-b, 2 * a) if a else Fraction(0), far)]
    left, middle, right = map(_sign, values)
    return left, (middle if a else 0), right


def cases(by_sign_of_b: bool = False) -> Judgement:
    """Judge whether the signs of a and of the discriminant (and of b, if asked) tell the shape of {R > 0}."""
    shapes: dict[tuple[int, ...], set[tuple[int, int, int]]] = {}
    for a, b, rest in itertools.product(range(-2, 3), repeat=3):
        # R = const occurs only as −ε, that of a law against itself.
        if a or b:
            key = map(_sign, (a, b * b - 4 * a * rest, b if by_sign_of_b and not a else 0))
            shapes.setdefault(tuple(key), set()).add(_pattern(a, b, rest))
    unclear = [key for key, found in shapes.items() if len(found) > 1]
    discriminant = _B**2 - 4 * _A * (_C - EPSILON)
    terms = (MU1 - MU2) ** 2 / (SIGMA1 * SIGMA2) ** 2 + 4 * _A * (EPSILON + log(SIGMA1) - log(SIGMA2))
    split = vanishes(discriminant - terms)
    named = Counter(balls(partial(probabilities, *point))[2] for point in grid())
    evidence = {"undecided_signs": [list(key) for key in unclear], "grid": dict(named), "discriminant_splits": split}
    return Judgement(
        (Kind.HYPOTHESIS if unclear else Kind.EXACT) if split and not any(key[0] for key in unclear) else Kind.FALSE,
        "the two signs decide if σ₁ ≠ σ₂; for σ₁ = σ₂, a = 0 and the sign of b decides between x > (ε − c)/b and "
        "x < (ε − c)/b (and b = 0 is the empty event). The discriminant (printed: determinant) is "
        "(μ₁ − μ₂)²/(σ₁σ₂)² + 4a(ε + log(σ₁/σ₂)), where a·log(σ₁/σ₂) ≥ 0: never negative for a > 0 and ε ≥ 0",
        evidence,
    )


def log_bound(weight: Expr) -> Judgement:
    """Judge log δ ≥ log(Pr[Z₁ > ε] − weight·Pr[−Z₂ > ε])."""
    narrow, wide = (Gaussian(Fraction(0), Fraction(s)) for s in (1, 2))
    values = [float(difference(Fraction(1, 2), *pair)) for pair in ((narrow, wide), (wide, narrow))]
    return held(
        is_best_event(FIRST, SECOND, weight, _LOSS, -_REVERSE_LOSS),
        "the logarithm of the first inequality, whose left side is never negative (log 0 = −∞). It is one of two: "
        f"N(0, 1) from N(0, 4) at ε = 1/2 needs δ ≥ {values[0]:.6f}, and the other direction δ ≥ {values[1]:.6f}",
        forward=values[0],
        reverse=values[1],
    )


def log_domain(printed: Expr) -> Judgement:
    """Judge the second line of log δ, with and without a positive Pr[Z₁ > ε]."""
    holds = vanishes(exp(printed) / (ABOVE1 - exp(EPSILON) * ABOVE2) - 1)
    pair = Gaussian(Fraction(0), Fraction(1)), Gaussian(Fraction(0), Fraction(2))
    empty = all(ball.is_zero() for ball in balls(partial(probabilities, Fraction(1), *pair))[:2])
    undefined = printed.subs({ABOVE1: 0, ABOVE2: 0}) is sympy.nan
    kind = (Kind.HYPOTHESIS if empty and undefined else Kind.EXACT) if holds else Kind.FALSE
    return Judgement(
        kind,
        "holds if the loss exceeds ε somewhere; where it does not, as for N(0, 1) from N(0, 4) at ε = 1, both "
        "probabilities are 0, log 0 − log 0 is undefined, and δ = 0"
        if holds
        else f"{text(printed)} is not log(q₁ − e^ε·q₂)",
        {"identity": holds, "empty_event": empty, "undefined_there": undefined},
    )


def _naive(epsilon: float, mu1: float, mu2: float) -> float:
    """Pr[Z₁ > ε] − e^ε·Pr[−Z₂ > ε] for unit variances in floats, by a, b and c as printed."""
    root = (epsilon - 0.5 * (mu2 * mu2 - mu1 * mu1)) / (mu1 - mu2)
    first, second = (0.5 * math.erfc((root - mu) / math.sqrt(2)) for mu in (mu1, mu2))
    return first - math.exp(epsilon) * second


def invalid_bound(multiple: int) -> Judgement:
    """Judge that Pr[Z₁ > ε] < e^(multiple·ε)·Pr[−Z₂ > ε] can happen; printed is multiple 1."""
    never = is_best_event(FIRST, SECOND, exp(multiple * EPSILON), _LOSS, -_REVERSE_LOSS)
    found = [difference(*point, multiple) for point in grid()]
    negative, empty = sum(ball < 0 for ball in found), sum(ball.is_zero() for ball in found)
    rounded = _naive(3.0, 1e8 + 1, 1e8)
    exact = float(difference(Fraction(3), Gaussian(10**8 + 1, 1), Gaussian(10**8, 1)))
    return Judgement(
        Kind.FALSE if never and not negative else Kind.EXACT,
        "never: the difference is the integral of p₁ − e^ε·p₂ over the event where that is positive, and 0 only where "
        f"the event is empty ({empty} of {len(found)} pairs of a grid). Only rounding makes it negative: in floats "
        f"{rounded:.6f} for N(10⁸ + 1, 1) from N(10⁸, 1) at ε = 3, where it is {exact:.6f}"
        if never
        else f"it does for {negative} of {len(found)} pairs of a grid",
        {"pairs": len(found), "negative": negative, "zero": empty, "float": rounded, "exact": exact},
    )


def line_search() -> Judgement:
    """Judge that some ε ≥ 0 matches the bound, for targets at most δ(0) and for others."""
    unit, target = Gaussian(0, 1), Fraction(1, 10**6)
    solved, largest = [], []
    for first in (Gaussian(1, 1), Gaussian(1, 2), Gaussian(Fraction(1, 2), Fraction(4, 5))):
        largest.append(two_gaussians.delta(0, *first, *unit))
        solved.append(largest[-1].lo > target and two_gaussians.epsilon(target, *first, *unit).lo > 0)
    falls = derivative().kind is Kind.EXACT
    unmatched = largest[0].hi < 0.5
    return Judgement(
        (Kind.HYPOTHESIS if unmatched else Kind.EXACT) if falls and all(solved) else Kind.FALSE,
        "δ(ε) is continuous and strictly decreasing where positive, so that exactly one ε ≥ 0 matches if 0 < δ ≤ δ(0); "
        f"for δ > δ(0) none does, as for N(1, 1) from N(0, 1) and δ = 1/2 > δ(0) = {largest[0].hi:.6f}, and the "
        "answer is ε = 0",
        {"solved_at_1e-6": solved, "delta_at_0": [ball.hi for ball in largest], "strictly_decreasing": falls},
    )


_EXACT_COEFFICIENTS = sympy.Poly(sympy.expand(_LOSS), X).all_coeffs()


def _line(topic: str, statement: str, judge: Callable[[], Judgement], display: str = "", row: int = 0) -> Line:
    name = f"final.section-3.2.{topic}" + (f".{row}" if row else "")
    return Line(name, "final, Section 3.2", statement, judge, display, row)


LINES: tuple[Line, ...] = (
    _line(
        "loss",
        "f = log(p₁/p₂) is the privacy loss: p₁ = e^f·p₂.",
        partial(identity, exp(_LOSS) * _DENSITY2 / _DENSITY1, 1),
    ),
    _line(
        "dp-implies",
        "(ε, δ)-DP implies Pr[Z₁ > ε] − e^ε·Pr[−Z₂ > ε] ≤ δ.",
        partial(implication, FIRST, SECOND, exp(EPSILON)),
        "(ε, δ) implies",
        1,
    ),
    _line(
        "dp-implies",
        "(ε, δ)-DP implies Pr[Z₂ > ε] − e^ε·Pr[−Z₁ > ε] ≤ δ.",
        partial(implication, SECOND, FIRST, exp(EPSILON)),
        "(ε, δ) implies",
        2,
    ),
    *(
        _line("log-ratio", f"f(x) = {text(printed)}.", partial(identity, printed, _LOSS), "log ratio", row)
        for row, printed in enumerate(LOG_RATIO, 1)
    ),
    *(
        _line("coefficients", f"{name} = {text(printed)}.", partial(identity, printed, exact), "a, b, c", row)
        for row, (name, printed, exact) in enumerate(zip("abc", COEFFICIENTS, _EXACT_COEFFICIENTS, strict=True), 1)
    ),
    _line(
        "two-tails",
        "With roots r₁ < r₂ of R and a > 0, Pr[Z₁ > ε] = Pr[X₁ < r₁] + Pr[X₁ > r₂].",
        partial(two_tails, frozenset({"below", "above"})),
    ),
    _line("cases", "Which case holds depends on the signs of a and of b² − 4a(c − ε).", cases),
    _line("reverse-loss", "The loss of P₂ against P₁ is −f.", partial(identity, _REVERSE_LOSS, -_LOSS)),
    _line(
        "second-event",
        "Pr[−Z₂ > ε] = Pr[−f₂₁(X₂) > ε] = Pr[aX₂² + bX₂ + (c − ε) > 0].",
        partial(identity, LOG_RATIO[3] - EPSILON, -_REVERSE_LOSS - EPSILON),
        "Pr[−Z₂ > ε]",
        1,
    ),
    _line(
        "same-event",
        "Z₁ > ε and −Z₂ > ε are one event, under P₁ and under P₂.",
        partial(identity, _LOSS - EPSILON, -_REVERSE_LOSS - EPSILON),
    ),
    _line("log-delta", "log δ ≥ log(Pr[Z₁ > ε] − e^ε·Pr[−Z₂ > ε]).", partial(log_bound, exp(EPSILON)), "log δ", 1),
    _line(
        "log-delta",
        "… = log Pr[Z₁ > ε] + log(1 − exp(ε + log Pr[−Z₂ > ε] − log Pr[Z₁ > ε])).",
        partial(log_domain, LOG_DELTA),
        "log δ",
        2,
    ),
    _line("invalid-bound", "Pr[Z₁ > ε] < e^ε·Pr[−Z₂ > ε] can happen.", partial(invalid_bound, 1)),
    _line(
        "reflection",
        "Pr(X > t; μ, σ²) = Pr(X < μ; t, σ²).",
        partial(identity, 1 - upper(Gaussian(SHIFT, SIGMA), MU1), upper(Gaussian(MU1, SIGMA), SHIFT)),
    ),
    _line("line-search", "A line search over ε finds the value that matches the target δ.", line_search),
    *two_gaussians_loss.LINES,
    *two_gaussians_recipe.LINES,
)
