"""Search for the inputs at which a kernel errs most: how far a float is from an enclosed value, and where to look."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from flint import arb

from canaryproof.kernels.certified import Enclosure, at_precision
from canaryproof.verify.papers.suites.worst_case.targets import Arguments, Target

# Below this size a result with an absolute budget is measured against that instead of its own ulp.
SMALL = 0.1
ABSOLUTE_BUDGET = 1e-15


def error_bound(value: float, enclosure: Enclosure) -> float:
    """Return a proven upper bound on a float's distance from an enclosed value, rounded upwards.

    It is 0 where both are the same infinity, inf where the float is NaN or only one is infinite.
    """
    if enclosure.lo == enclosure.hi and value == enclosure.lo:
        return 0.0
    if not math.isfinite(value) or not enclosure.ball.is_finite():
        return math.inf
    distance = at_precision(128, lambda: abs(arb(value) - enclosure.ball).upper())
    return math.nextafter(float(distance), math.inf)


def in_ulps(error: float, enclosure: Enclosure, least: float = 0.0) -> float:
    """Express an error in ulps of the enclosed value (of the smaller end, where the ends differ in that).

    Values smaller than ``least`` are taken to be of this size.
    """
    return error / math.ulp(max(min(abs(enclosure.lo), abs(enclosure.hi)), least))


def share_of_budget(error: float, enclosure: Enclosure, ulps: float, *, absolute: bool) -> float:
    """Return an error's share of the budget allowed to it, at most 1 where that is kept.

    If ``absolute``, 1e-15 is allowed instead where the exact value is below 0.1 in size.
    """
    if error == 0.0 or math.isinf(error):
        return error
    share = in_ulps(error, enclosure) / ulps
    if absolute and max(abs(enclosure.lo), abs(enclosure.hi)) < SMALL:
        share = min(share, error / ABSOLUTE_BUDGET)
    return share


# Random search, then local ascent.


# The smallest normal float: results below have fewer digits, and no budget in ulps is claimed for them.
_SMALLEST_NORMAL = 2.0**-1022
# Inputs from which to climb at the same time.
_CLIMBERS = 4


class Domain(StrEnum):
    """The domain on which an error budget is claimed."""

    PRACTICE = "practice"
    WHOLE = "whole"


# In ulps of the exact result.
BUDGETS = {Domain.PRACTICE: 8.0, Domain.WHOLE: 64.0}


@dataclass(frozen=True)
class Case:
    """A kernel's error at one input."""

    arguments: Arguments  # The input
    value: float  # The kernel's result
    enclosure: Enclosure  # The exact result's.
    # Proven upper bound on the error in ulps: of the exact result, or of 0.1 where that is larger and an absolute error
    # is allowed.
    ulps: float
    # The error's share of its budget; inf where the enclosure is wider than 2 ulps, which it should never be.
    share: float


def measure(target: Target, domain: Domain, arguments: Arguments) -> Case | None:
    """Measure a kernel's error at one input.

    None if the input lies outside the domain, or its result is no normal float and no logarithm.
    """
    if not target.inside(*arguments):
        return None
    enclosure = target.certified(*arguments)
    if domain is Domain.PRACTICE and not target.practice(arguments, enclosure):
        return None
    size = max(abs(enclosure.lo), abs(enclosure.hi))
    if not target.absolute and 0.0 < size < _SMALLEST_NORMAL:
        return None
    value = float(target.kernel(*arguments))
    error = error_bound(value, enclosure)
    share = share_of_budget(error, enclosure, BUDGETS[domain], absolute=target.absolute)
    ulps = in_ulps(error, enclosure, SMALL if target.absolute else 0.0)
    return Case(arguments, value, enclosure, ulps, share if enclosure.is_tight else math.inf)


def _moved(x: float, size: float, rng: np.random.Generator) -> float:
    if x == math.floor(x) and abs(x) > 1.0 and rng.random() < 0.7:
        return x + round(rng.normal() * (1.0 + size * abs(x)))
    if rng.random() < 0.15:
        return math.nextafter(x, rng.choice([-math.inf, math.inf]))
    if 0.5 < x < 1.0 and rng.random() < 0.5:
        return 1.0 - (1.0 - x) * math.exp(rng.normal() * size)
    return x * math.exp(rng.normal() * size)


def _neighbour(arguments: Arguments, rng: np.random.Generator) -> Arguments:
    """Arguments of which some are moved, by relative amounts from 1e-14 to 1/3."""
    size = 10.0 ** rng.uniform(-14.0, -0.5)
    return tuple(_moved(x, size, rng) if rng.random() < 0.4 else x for x in arguments)


def search(
    target: Target,
    domain: Domain,
    effort: int,
    rng: np.random.Generator,
    known: Iterable[Arguments] = (),
) -> tuple[Case, int]:
    """Search for the input at which a kernel errs most; return that and the number of inputs judged.

    ``effort`` is the number of random inputs to draw, and more until one is in the domain, and again of steps to climb
    from the worst four; ``known`` inputs are tried first.
    """
    cases = [case for start in (*known, *target.seams) if (case := measure(target, domain, start))]
    draws = (measure(target, domain, target.draw(rng)) for _ in itertools.count())
    cases.extend(case for case in itertools.islice(draws, effort) if case)
    if not cases:
        cases.append(next(filter(None, draws)))
    best = sorted(cases, key=lambda case: -case.share)[:_CLIMBERS]
    judged = len(cases)
    for i in range(effort):
        climber = i % len(best)
        case = measure(target, domain, _neighbour(best[climber].arguments, rng))
        if case:
            judged += 1
            if case.share >= best[climber].share:
                best[climber] = case
    return max(best, key=lambda case: case.share), judged
