"""Section 3.2, the privacy curve of two Gaussians: every line judged.

Identities of the privacy loss f = log(p₁/p₂) are decided symbolically. log p₁ − log(e^ε·p₂) = f − ε: p₁ − e^ε·p₂ is
positive exactly on S = {f > ε}. So no event E has a larger P₁(E) − e^ε·P₂(E) than S, and that of S is not negative.
What is said of numbers is decided in ball arithmetic, by the section's own recipe on a grid of rational pairs;
``kernels.certified.two_gaussians`` goes another way, and the two are compared there.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, TypeVar

import sympy
from flint import arb, fmpq
from sympy import Expr, Rational, Symbol, erfc, exp, log, pi, sqrt

from canaryproof.kernels.certified import at_precision, gaussian_mechanism, two_gaussians
from canaryproof.proofs_check.displayed_lines import Kind, held, judged, line
from canaryproof.proofs_check.formula_text import text
from canaryproof.verify.papers.check.results import Check, Outcome, Verdict

X, MU1, MU2, SHIFT = sympy.symbols("x mu_1 mu_2 t", real=True)
SIGMA, SIGMA1, SIGMA2, DIM, SCALE = sympy.symbols("sigma sigma_1 sigma_2 d s", positive=True)
EPSILON = Symbol("epsilon", nonnegative=True)


class Gaussian(NamedTuple):
    """Mean and standard deviation: expressions or fractions."""

    mean: Any
    deviation: Any


FIRST, SECOND = Gaussian(MU1, SIGMA1), Gaussian(MU2, SIGMA2)


def log_density(law: Gaussian, at: Expr = X) -> Expr:
    """Log density of a Gaussian."""
    density: Expr = -(((at - law.mean) / law.deviation) ** 2) / 2 - log(law.deviation) - log(2 * pi) / 2
    return density


def loss(first: Gaussian, second: Gaussian, at: Expr = X) -> Expr:
    """Privacy loss f = log(p₁/p₂) of a point."""
    return log_density(first, at) - log_density(second, at)


def upper(law: Gaussian, threshold: Expr) -> Expr:
    """Pr[X > threshold]."""
    tail: Expr = erfc((threshold - law.mean) / (law.deviation * sqrt(2))) / 2
    return tail


def vanishes(expression: Expr | int) -> bool:
    """Whether an expression is shown to be 0 identically."""
    return bool(sympy.simplify(sympy.expand(sympy.expand_log(sympy.sympify(expression)))) == 0)


def is_best_event(first: Gaussian, second: Gaussian, weight: Expr, z: Expr, minus_other: Expr) -> bool:
    """Whether z > ε and minus_other > ε are one event, on which exactly the first density exceeds weight·second."""
    excess = log_density(first) - log(weight) - log_density(second)
    return vanishes(z - minus_other) and vanishes(excess - (z - EPSILON))


def implication(first: Gaussian, second: Gaussian, weight: Expr) -> Outcome:
    """Judge Pr[Z > ε] − weight·Pr[−Z′ > ε] ≤ δ, Z the loss of the first law against the second, Z′ the other."""
    z, other = loss(first, second), loss(second, first)
    return held(
        is_best_event(first, second, weight, z, -other),
        "Both probabilities are of one event S, that the loss exceeds ε. This is the definition of (ε, δ)-DP at S, and "
        "no other event asks for a larger δ",
        event=f"{text(z)} > ε",
        weight=text(weight),
    )


def reduction() -> Outcome:
    """Judge that N(x̄, σ²I) and N(x̄ + x, σ²I), ‖x‖ ≤ 1, come down to N(0, σ²) and N(1, σ²)."""
    length, projection = Symbol("r", positive=True), Symbol("y", real=True)
    point, centre, added = sympy.symbols("u xbar x_i", real=True)
    # A coordinate's share of f, which adds up to (⟨x, u − x̄⟩ − ‖x‖²/2)/σ² in every dimension.
    share = loss(Gaussian(centre + added, SIGMA), Gaussian(centre, SIGMA), point)
    pair = Gaussian(length, SIGMA), Gaussian(0, SIGMA)
    root = EPSILON * SIGMA**2 / length + length / 2
    curve = upper(pair[0], root) - exp(EPSILON) * upper(pair[1], root)
    slope = exp(log_density(pair[0], root))
    facts = {
        "coordinates": vanishes(share - (added * (point - centre) - added**2 / 2) / SIGMA**2),
        # With y = ⟨x, u − x̄⟩/‖x‖, which is N(0, σ²) or N(‖x‖, σ²).
        "projection": vanishes(loss(*pair, projection) - (length * projection - length**2 / 2) / SIGMA**2),
        "both_directions_equal": vanishes(loss(*pair[::-1], length - X) - loss(*pair, X)),
        "increasing": vanishes(loss(*pair, root) - EPSILON) and vanishes(sympy.diff(curve, length) - slope),
    }
    return held(
        facts,
        "The loss depends on y = ⟨x, u − x̄⟩/‖x‖ alone, which is N(0, σ²) or N(‖x‖, σ²). As ∂δ/∂‖x‖ > 0, ‖x‖ = 1 is "
        "worst. Both directions have one curve",
    )


def scaling(before: tuple[Gaussian, Gaussian], factor: Expr, after: tuple[Gaussian, Gaussian]) -> Outcome:
    """Judge that the second pair is the first one scaled, and that f and so ε stay the same."""
    images = [Gaussian(factor * law.mean, factor * law.deviation) for law in before]
    first, second = (Gaussian(SCALE * law.mean + SHIFT, SCALE * law.deviation) for law in (FIRST, SECOND))
    facts = {
        "images_equal": all(
            vanishes(a - b) for law, image in zip(after, images, strict=True) for a, b in zip(law, image, strict=True)
        ),
        "loss_invariant": vanishes(loss(first, second, SCALE * X + SHIFT) - loss(FIRST, SECOND)),
    }
    return held(
        facts,
        f"x ↦ x·{text(factor)} takes the one pair to the other, and f(s·x + t) of the images under x ↦ s·x + t is "
        "f(x): the losses have the same laws, in both directions",
    )


def derivative() -> Outcome:
    """Judge δ′(ε) = −e^ε·Pr[−Z₂ > ε]."""
    root, slope = sympy.Function("r")(EPSILON), Symbol("r_prime", real=True)
    # Every event is put together of tails that end at roots, where f = ε.
    tail = upper(FIRST, root) - exp(EPSILON) * upper(SECOND, root)
    rest = sympy.diff(tail, EPSILON) + exp(EPSILON) * upper(SECOND, root)
    rest = rest.subs(sympy.Derivative(root, EPSILON), slope).subs(root, X).subs(EPSILON, loss(FIRST, SECOND))
    return held(
        sympy.simplify(rest) == 0,
        "the roots' motion adds nothing, because p₁ = e^ε·p₂ there; so δ falls strictly where it is positive, and "
        "−1 ≤ −Pr[Z₁ > ε] ≤ δ′ ≤ 0",
    )


def converse() -> Outcome:
    """Judge that the two inequalities suffice for the pair to be (ε, δ)-DP."""
    pairs = (FIRST, SECOND), (SECOND, FIRST)
    return held(
        all(is_best_event(*pair, exp(EPSILON), loss(*pair), -loss(*pair[::-1])) for pair in pairs),
        "for every event E, P₁(E) − e^ε·P₂(E) ≤ P₁(S) − e^ε·P₂(S), because the integrand is positive on S and not "
        "outside; the same holds the other way: the least ε that meets both inequalities is optimal for the pair",
    )


_UNIT_PAIR = Gaussian(0, SIGMA), Gaussian(1, SIGMA)
_COSINES = Gaussian(0, 1 / sqrt(DIM)), Gaussian(1 / (SIGMA * sqrt(DIM)), 1 / sqrt(DIM))
_SCALED_FIT = Gaussian(0, 1), Gaussian(sqrt(DIM) * MU2, sqrt(DIM) * SIGMA2)


# The section's recipe: a, b, c, the roots and the cases, in ball arithmetic.

T = TypeVar("T")
_PRECISION = 256


def _rational(number: Fraction | int) -> fmpq:
    return fmpq(number.numerator, number.denominator)


def balls(compute: Callable[[], T]) -> T:
    """Compute at the precision of this module."""
    return at_precision(_PRECISION, compute)


def probabilities(epsilon: Fraction, first: Gaussian, second: Gaussian) -> tuple[arb, arb, str]:
    """Pr[Z₁ > ε] and Pr[−Z₂ > ε], ε ≥ 0, as the section computes them, and the name of the case that holds.

    Balls at the precision in force; an ArithmeticError if that does not tell the sign of the discriminant.
    """
    m1, s1, m2, s2 = (_rational(number) for number in (*first, *second))
    a, b = (1 / s2**2 - 1 / s1**2) / 2, m1 / s1**2 - m2 / s2**2
    rest = arb(((m2 / s2) ** 2 - (m1 / s1) ** 2) / 2) + arb(s2 / s1).log() - _rational(epsilon)
    # The event's probability is a constant plus signed lower tails of the roots.
    constant, case, tails = 0, "never", []
    if a == 0 and b > 0:
        constant, case, tails = 1, "above the root", [(-1, -rest / b)]
    elif a == 0 and b < 0:
        case, tails = "below the root", [(1, -rest / b)]
    elif a != 0:
        discriminant = b * b - 4 * a * rest
        if discriminant > 0:
            vertex, half = -b / (2 * a), discriminant.sqrt() / (2 * abs(a))
            outside = 1 if a > 0 else -1
            constant, case = (1, "outside the roots") if a > 0 else (0, "between the roots")
            tails = [(outside, vertex - half), (-outside, vertex + half)]
        # For a > 0 and ε ≥ 0 it is positive, as ``section_3_2.cases`` shows.
        elif not discriminant < 0:
            raise ArithmeticError("the sign of the discriminant is not told")

    def probability(mean: fmpq, deviation: fmpq) -> arb:
        return sum((sign * ((mean - root) / (deviation * arb(2).sqrt())).erfc() / 2 for sign, root in tails), arb(0))

    return constant + probability(m1, s1), constant + probability(m2, s2), case


def difference(epsilon: Fraction, first: Gaussian, second: Gaussian, multiple: int = 1) -> arb:
    """Pr[Z₁ > ε] − e^(multiple·ε)·Pr[−Z₂ > ε]."""

    def compute() -> arb:
        above1, above2, _ = probabilities(epsilon, first, second)
        return above1 - (multiple * arb(_rational(epsilon))).exp() * above2

    return balls(compute)


def grid() -> Iterator[tuple[Fraction, Gaussian, Gaussian]]:
    """ε from 0 and pairs with smaller, equal and larger deviations, in both directions."""
    distances = (Fraction(0), Fraction(1, 3), Fraction(-2), Fraction(5))
    deviations = (Fraction(1, 2), Fraction(9, 10), Fraction(1), Fraction(11, 10), Fraction(2))
    epsilons = (Fraction(0), Fraction(1, 10), Fraction(1), Fraction(4))
    for distance, deviation, epsilon in itertools.product(distances, deviations, epsilons):
        first, second = Gaussian(distance + 1, deviation), Gaussian(1, 1)
        yield epsilon, first, second
        yield epsilon, second, first


def recipe() -> Outcome:
    """Judge the section's recipe in balls against the certified enclosures, which come from another normal form."""
    count, apart, narrowest = 0, 0, math.inf
    for epsilon, first, second in grid():
        ball = difference(epsilon, first, second)
        count += 1
        apart += not ball.overlaps(two_gaussians.delta(epsilon, *first, *second, direction="forward").ball)
        narrowest = min(narrowest, math.inf if ball.is_zero() else ball.rel_accuracy_bits())
    return held(
        apart == 0 and narrowest > _PRECISION // 4,
        f"the recipe's balls of δ(ε), {narrowest} bits or better, overlap the enclosures for all {count} of a grid",
        compared=count,
        apart=apart,
        least_bits=narrowest,
    )


def balle_wang(numerator: int = 1) -> Outcome:
    """Judge δ = Φ(−εσ + numerator/(2σ)) − e^ε·Φ(−εσ − numerator/(2σ)) for N(1, σ²) from N(0, σ²)."""
    pair = Gaussian(1, SIGMA), Gaussian(0, SIGMA)
    a, b, c = (sympy.expand(loss(*pair)).coeff(X, power) for power in (2, 1, 0))
    root = (EPSILON - c) / b
    curve = upper(pair[0], root) - exp(EPSILON) * upper(pair[1], root)
    halves = [(-EPSILON * SIGMA + sign * Rational(numerator, 2) / SIGMA) / sqrt(2) for sign in (1, -1)]
    printed = erfc(-halves[0]) / 2 - exp(EPSILON) * erfc(-halves[1]) / 2
    derived = a == 0 and bool(b.is_positive) and vanishes(curve - printed)
    overlaps = []
    sigmas = (Fraction(1, 5), Fraction(541, 1000), Fraction(1), Fraction(422, 100))
    for sigma, epsilon in itertools.product(sigmas, (Fraction(0), Fraction(1, 10), Fraction(1), Fraction(3))):
        # The two kernels share the case of equal deviations; the recipe's ball shares nothing with them.
        enclosures = (
            difference(epsilon, Gaussian(1, sigma), Gaussian(0, sigma)),
            two_gaussians.delta(epsilon, 1, sigma, 0, sigma).ball,
            gaussian_mechanism.delta(epsilon, sigma).ball,
        )
        overlaps.append(all(first.overlaps(second) for first, second in itertools.combinations(enclosures, 2)))
    return held(
        derived and all(overlaps),
        f"a = 0 and b = 1/σ² > 0 give S = (εσ² + 1/2, ∞) and Balle and Wang's Theorem 8; the recipe's ball and the "
        f"enclosures of both kernels overlap for {sum(overlaps)} of {len(overlaps)} pairs of σ and ε",
        derived=derived,
        overlapping=sum(overlaps),
        compared=len(overlaps),
    )


# The section's lines.

# Pr[Z₁ > ε] and Pr[−Z₂ > ε] where the event is not empty.
ABOVE1, ABOVE2 = sympy.symbols("q_1 q_2", positive=True)
_LOSS, _REVERSE_LOSS = loss(FIRST, SECOND), loss(SECOND, FIRST)
_SQUARE1, _SQUARE2 = (X - MU1) ** 2 / SIGMA1**2, (X - MU2) ** 2 / SIGMA2**2
_DENSITY1, _DENSITY2 = (
    exp(-square / 2) / (deviation * sqrt(2 * pi)) for square, deviation in ((_SQUARE1, SIGMA1), (_SQUARE2, SIGMA2))
)

# The section prints these.
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
# The four lines as they stand on the page: spelled from the formulas the first two would hardly differ.
_LOG_RATIO_WORDS = (
    "The loss is f(x) = log(p₁(x)/p₂(x)), with the densities of N(μ₁, σ₁²) and N(μ₂, σ₂²) put in.",
    "The loss is f(x) = log((σ₂/σ₁)·exp(−½·[(x − μ₁)²/σ₁² − (x − μ₂)²/σ₂²])).",
    "The loss is f(x) = log σ₂ − log σ₁ + (x − μ₂)²/(2σ₂²) − (x − μ₁)²/(2σ₁²).",
    "The loss is f(x) = ax² + bx + c.",
)
LOG_DELTA = log(ABOVE1) + log(1 - exp(EPSILON + log(ABOVE2) - log(ABOVE1)))
DISPLAYS: dict[str, int] = {"(ε, δ) implies": 2, "log ratio": 4, "a, b, c": 3, "Pr[−Z₂ > ε]": 1, "log δ": 2}


def identity(printed: Expr, exact: Expr) -> Outcome:
    """Judge that a printed expression equals the exact one identically."""
    exact = sympy.sympify(exact)
    holds = vanishes(printed - exact)
    return held(holds, f"identical to {text(exact)}", printed=text(printed), exact=text(exact))


def two_tails(printed: frozenset[str]) -> Outcome:
    """Judge on which of the regions ``below``, ``between`` and ``above`` the roots R is positive, for a > 0."""
    a, gap, step = sympy.symbols("a g h", positive=True)
    b, rest, low = sympy.symbols("b c r_1", real=True)
    root = (-b - sqrt(b**2 - 4 * a * rest)) / (2 * a)
    factors = vanishes(a * (X - root) * (X - (-b / a - root)) - (a * X**2 + b * X + rest))
    points = {"below": low - step, "between": low + gap * step / (1 + step), "above": low + gap + step}
    signs = {name: sympy.factor(a * (point - low) * (point - low - gap)).is_positive for name, point in points.items()}
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


def cases(equal_deviations: bool = False) -> Outcome:
    """Judge whether the signs of a and of the discriminant tell the shape of {R > 0}.

    The section is on different deviations, so that a = 0 does not occur; ``equal_deviations`` admits it.
    """
    shapes: dict[tuple[int, ...], set[tuple[int, int, int]]] = {}
    for a, b, rest in itertools.product(range(-2, 3), repeat=3):
        # R = const occurs only as −ε, that of a law against itself.
        if a or (b and equal_deviations):
            key = map(_sign, (a, b * b - 4 * a * rest))
            shapes.setdefault(tuple(key), set()).add(_pattern(a, b, rest))
    unclear = [key for key, patterns in shapes.items() if len(patterns) > 1]
    discriminant = _B**2 - 4 * _A * (_C - EPSILON)
    terms = (MU1 - MU2) ** 2 / (SIGMA1 * SIGMA2) ** 2 + 4 * _A * (EPSILON + log(SIGMA1) - log(SIGMA2))
    split = vanishes(discriminant - terms)
    named = Counter(balls(partial(probabilities, *point))[2] for point in grid())
    evidence = {"undecided_signs": [list(key) for key in unclear], "grid": dict(named), "discriminant_splits": split}
    return judged(
        (Kind.HYPOTHESIS if unclear else Kind.EXACT) if split and not any(key[0] for key in unclear) else Kind.FALSE,
        "The two signs decide for σ₁ ≠ σ₂, which the section supposes. For σ₁ = σ₂ it would be the sign of b, or for "
        "b = 0 the empty event. The discriminant is (μ₁ − μ₂)²/(σ₁σ₂)² + 4a(ε + log(σ₁/σ₂)), never negative for a > 0 "
        "and ε ≥ 0",
        evidence,
    )


def log_bound(weight: Expr) -> Outcome:
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


def log_domain(printed: Expr) -> Outcome:
    """Judge the second line of log δ, with and without a positive Pr[Z₁ > ε]."""
    holds = vanishes(exp(printed) / (ABOVE1 - exp(EPSILON) * ABOVE2) - 1)
    pair = Gaussian(Fraction(0), Fraction(1)), Gaussian(Fraction(0), Fraction(2))
    empty = all(ball.is_zero() for ball in balls(partial(probabilities, Fraction(1), *pair))[:2])
    undefined = printed.subs({ABOVE1: 0, ABOVE2: 0}) is sympy.nan
    kind = (Kind.HYPOTHESIS if empty and undefined else Kind.EXACT) if holds else Kind.FALSE
    return judged(
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


def invalid_bound(multiple: int) -> Outcome:
    """Judge that Pr[Z₁ > ε] < e^(multiple·ε)·Pr[−Z₂ > ε] can happen; printed is multiple 1.

    The paragraph is on numerical stability, but does not say that it speaks of computed probabilities.
    """
    never = is_best_event(FIRST, SECOND, exp(multiple * EPSILON), _LOSS, -_REVERSE_LOSS)
    differences = [difference(*point, multiple) for point in grid()]
    negative, empty = sum(ball < 0 for ball in differences), sum(ball.is_zero() for ball in differences)
    rounded = _naive(3.0, 1e8 + 1, 1e8)
    exact = float(difference(Fraction(3), Gaussian(10**8 + 1, 1), Gaussian(10**8, 1)))
    kind = Kind.HYPOTHESIS if rounded < 0 else Kind.FALSE
    return judged(
        kind if never and not negative else Kind.EXACT,
        "Only of computed probabilities: rounding makes the difference "
        f"{rounded:.6f} for N(10⁸ + 1, 1) from N(10⁸, 1) at ε = 3, where it is {exact:.6f}. The exact difference is "
        "never negative: it is the integral of p₁ − e^ε·p₂ where that is positive"
        if never
        else f"it does for {negative} of {len(differences)} pairs of a grid",
        {"pairs": len(differences), "negative": negative, "zero": empty, "float": rounded, "exact": exact},
    )


def line_search() -> Outcome:
    """Judge that some ε ≥ 0 matches the bound, for targets at most δ(0) and for others."""
    unit, target = Gaussian(0, 1), Fraction(1, 10**6)
    solved, largest = [], []
    for first in (Gaussian(1, 1), Gaussian(1, 2), Gaussian(Fraction(1, 2), Fraction(4, 5))):
        largest.append(two_gaussians.delta(0, *first, *unit))
        solved.append(largest[-1].lo > target and two_gaussians.epsilon(target, *first, *unit).lo > 0)
    falls = derivative().verdict is Verdict.CONFIRMED
    unmatched = largest[0].hi < 0.5
    return judged(
        (Kind.HYPOTHESIS if unmatched else Kind.EXACT) if falls and all(solved) else Kind.FALSE,
        "δ(ε) is continuous and decreasing, so exactly one ε ≥ 0 matches if 0 < δ ≤ δ(0). For δ > δ(0) none does, as "
        f"for N(1, 1) from N(0, 1) and δ = 1/2 > {largest[0].hi:.6f}, and the answer is ε = 0",
        {"solved_at_1e-6": solved, "delta_at_0": [ball.hi for ball in largest], "strictly_decreasing": falls},
    )


_EXACT_COEFFICIENTS = sympy.Poly(sympy.expand(_LOSS), X).all_coeffs()


def _line(topic: str, statement: str, judge: Callable[[], Outcome], display: str = "", row: int = 0) -> Check:
    name = f"final.section-3.2.{topic}" + (f".{row}" if row else "")
    return line(name, "Section 3.2", statement, judge, display, row)


LINES: tuple[Check, ...] = (
    _line(
        "loss",
        "The privacy loss of P₁ against P₂ is f = log(p₁/p₂): p₁ = e^f·p₂.",
        partial(identity, exp(_LOSS) * _DENSITY2 / _DENSITY1, 1),
    ),
    _line(
        "dp-implies",
        "With the losses Z₁ under P₁ and Z₂ under P₂, (ε, δ)-DP implies Pr[Z₁ > ε] − e^ε·Pr[−Z₂ > ε] ≤ δ.",
        partial(implication, FIRST, SECOND, exp(EPSILON)),
        "(ε, δ) implies",
        1,
    ),
    _line(
        "dp-implies",
        "With the losses Z₁ under P₁ and Z₂ under P₂, (ε, δ)-DP implies Pr[Z₂ > ε] − e^ε·Pr[−Z₁ > ε] ≤ δ.",
        partial(implication, SECOND, FIRST, exp(EPSILON)),
        "(ε, δ) implies",
        2,
    ),
    *(
        _line("log-ratio", words, partial(identity, printed, _LOSS), "log ratio", row)
        for row, (words, printed) in enumerate(zip(_LOG_RATIO_WORDS, LOG_RATIO, strict=True), 1)
    ),
    *(
        _line(
            "coefficients",
            f"The loss ax² + bx + c has {name} = {text(printed)}.",
            partial(identity, printed, exact),
            "a, b, c",
            row,
        )
        for row, (name, printed, exact) in enumerate(zip("abc", COEFFICIENTS, _EXACT_COEFFICIENTS, strict=True), 1)
    ),
    _line(
        "two-tails",
        "With roots r₁ < r₂ of R(x) = ax² + bx + (c − ε) and a > 0, Pr[Z₁ > ε] = Pr[X₁ < r₁] + Pr[X₁ > r₂].",
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
    _line(
        "log-delta",
        "The bound in the log domain is log δ ≥ log(Pr[Z₁ > ε] − e^ε·Pr[−Z₂ > ε]).",
        partial(log_bound, exp(EPSILON)),
        "log δ",
        1,
    ),
    _line(
        "log-delta",
        "The right side of the bound on log δ is log Pr[Z₁ > ε] + log(1 − exp(ε + log Pr[−Z₂ > ε] − log Pr[Z₁ > ε])).",
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
    _line(
        "line-search", "For a given target δ, a line search over ε finds the value that matches the bound.", line_search
    ),
    line(
        "final.section-3.reduction",
        "Section 3, first paragraph",
        "The Gaussian vector sum with ‖x‖ ≤ 1 has the privacy of N(0, σ²) against N(1, σ²).",
        reduction,
    ),
    line(
        "final.section-3.1.scaling",
        "Section 3.1, before Theorem 3.1",
        "N(0, 1/d) and N(1/(σ√d), 1/d) are N(0, σ²) and N(1, σ²) scaled by 1/(σ√d), and have the same ε.",
        partial(scaling, _UNIT_PAIR, 1 / (SIGMA * sqrt(DIM)), _COSINES),
    ),
    line(
        "review.mann-wald.scaling",
        "authors' answer on the Mann–Wald theorem (its symbols are lost in the text)",
        "Scaling leaves ε(N(0, 1/d) || N(μ̂, σ̂²); δ) = ε(N(0, 1) || N(√d·μ̂, d·σ̂²); δ).",
        partial(scaling, (_COSINES[0], SECOND), sqrt(DIM), _SCALED_FIT),
    ),
    line(
        "ours.section-3.2.converse",
        "final, Section 3.2",
        "The two inequalities suffice: the pair is (ε, δ)-DP if and only if both hold.",
        converse,
        own=True,
    ),
    line(
        "ours.section-3.2.derivative",
        "final, Section 3.2",
        "δ′(ε) = −e^ε·Pr[−Z₂ > ε] where δ is positive.",
        derivative,
        own=True,
    ),
    line(
        "ours.section-3.2.recipe",
        "final, Section 3.2",
        "The section's recipe gives the certified δ(ε) in every case.",
        recipe,
        own=True,
    ),
    line(
        "ours.section-3.2.balle-wang",
        "final, Section 3.2",
        "At equal variances δ = Φ(1/(2σ) − εσ) − e^ε·Φ(−1/(2σ) − εσ), Balle and Wang's.",
        balle_wang,
        own=True,
    ),
)
