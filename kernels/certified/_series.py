"""Hypergeometric series of positive terms, with proven remainders."""

import flint
from flint import arb, fmpq

from canaryproof.kernels.certified._ball import Disturbed

# Bits of the precision in force that may go to the rounding of some thousands of steps.
GUARD = 40


def hypergeometric(b: fmpq, c: fmpq, z: fmpq) -> arb:
    """₂F₁(1, b; c; z) for b, c > 0 and 0 < z < 1, from its power series.

    The ratio of a term to the one before is (b + n)/(c + n)·z, which moves towards z monotonically. No ratio to come is
    therefore larger than the next one and z are, and a geometric series bounds the remainder.
    """
    common = int(b.q) * int(c.q)
    numerator, denominator = int((b * common).p), int((c * common).p)
    factor = arb(z)
    prec = flint.ctx.prec
    resolution = arb((1, GUARD - prec))
    term = total = arb(1)
    while flint.ctx.prec == prec:
        for _ in range(8):
            term = term * numerator / denominator * factor
            total += term
            numerator += common
            denominator += common
        ratio = max(fmpq(numerator, denominator), fmpq(1)) * factor
        if ratio < 1:
            rest = term * ratio / (1 - ratio)
            if rest < total * resolution:
                return total + arb(0).union(rest)
    raise Disturbed
