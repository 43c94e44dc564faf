"""Section 3.2's own recipe for δ(ε) of two Gaussians: a, b, c, the roots and the cases, in ball arithmetic.

``kernels.certified.two_gaussians`` goes another way; the two are compared on a grid of rational pairs.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeVar

import sympy
from flint import arb, fmpq
from sympy import Rational, erfc, exp, sqrt

from canaryproof.kernels.certified import at_precision, gaussian_mechanism, two_gaussians
from canaryproof.proofs_check.lines import Judgement, Line, held
from canaryproof.proofs_check.two_gaussians_loss import EPSILON, SIGMA, Gaussian, X, loss, upper, vanishes

T = TypeVar("T")
_PRECISION = 256


def _rational(number: Fraction | int) -> fmpq:
    return fmpq(number.numerator, number.denominator)


def balls(compute: Callable[[], T]) -> T:
    """Compute at the precision of this module."""
    return at_precision(_PRECISION, compute)


def probabilities(epsilon: Fraction, first: Gaussian, second: Gaussian) -> tuple[arb, arb, str]:
    """Pr[Z₁ > ε] and Pr[−Z₂ > ε] as the section computes them, in balls at the precision in force.

    Parameters
    ----------
    epsilon
        ε ≥ 0.
    first, second
        P₁ and P₂, with rational means and deviations.

    Returns
    -------
    The two probabilities, and the name of the case that holds.

    Raises
    ------
    ArithmeticError
        If the precision does not tell the sign of the discriminant.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Section 3.2.
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


def recipe() -> Judgement:
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


def balle_wang(numerator: int = 1) -> Judgement:
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
        found = (
            difference(epsilon, Gaussian(1, sigma), Gaussian(0, sigma)),
            two_gaussians.delta(epsilon, 1, sigma, 0, sigma).ball,
            gaussian_mechanism.delta(epsilon, sigma).ball,
        )
        overlaps.append(all(first.overlaps(second) for first, second in itertools.combinations(found, 2)))
    return held(
        derived and all(overlaps),
        f"a = 0 and b = 1/σ² > 0 give S = (εσ² + 1/2, ∞) and Balle and Wang's Theorem 8; the recipe's ball and the "
        f"enclosures of both kernels overlap for {sum(overlaps)} of {len(overlaps)} pairs of σ and ε",
        derived=derived,
        overlapping=sum(overlaps),
        compared=len(overlaps),
    )


LINES: tuple[Line, ...] = (
    Line(
        "ours.section-3.2.recipe",
        "final, Section 3.2",
        "The section's recipe gives the certified δ(ε) in every case.",
        recipe,
        ours=True,
    ),
    Line(
        "ours.section-3.2.balle-wang",
        "final, Section 3.2",
        "At equal variances δ = Φ(1/(2σ) − εσ) − e^ε·Φ(−1/(2σ) − εσ), Balle and Wang's.",
        balle_wang,
        ours=True,
    ),
)
