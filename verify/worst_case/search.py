"""Random search for the worst error of a kernel, then local ascent."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from canaryproof.kernels.certified import Enclosure
from canaryproof.verify.worst_case.errors import error_bound, in_ulps, share_of_budget
from canaryproof.verify.worst_case.targets import PRACTICE_BUDGET, WHOLE_BUDGET, Arguments, Target

_CLIMBERS = 4


@dataclass(frozen=True)
class Found:
    """An input and the error there."""

    domain: str
    arguments: Arguments
    value: float
    enclosure: Enclosure
    error: float
    ulps: float
    share: float


def measure(target: Target, arguments: Arguments, domain: str) -> Found | None:
    if not target.inside(*arguments):
        return None
    enclosure = target.certified(*arguments)
    if domain == "practice" and not target.practice(arguments, enclosure):
        return None
    if not enclosure.tight:
        return None
    value = float(target.kernel(*arguments))
    # Results too small for a normal float
    if abs(enclosure.hi) < 2.0**-1021 and abs(enclosure.lo) < 2.0**-1021 and abs(value) < 2.0**-1021:
        return None
    error = error_bound(value, enclosure)
    budget = PRACTICE_BUDGET if domain == "practice" else WHOLE_BUDGET
    return Found(domain, arguments, value, enclosure, error, in_ulps(error, enclosure),
                 share_of_budget(error, enclosure, budget, absolute=target.absolute))


def _neighbour(arguments: Arguments, size: float, rng: np.random.Generator) -> Arguments:
    moved = list(arguments)
    for i in range(len(moved)):
        if rng.random() < 0.6:
            continue
        x = moved[i]
        if x == round(x) and abs(x) > 1 and rng.random() < 0.7:
            moved[i] = x + round(rng.normal() * (1 + size * abs(x)))
        elif rng.random() < 0.15:
            moved[i] = math.nextafter(x, rng.choice([-math.inf, math.inf]))
        elif x == 0.0:
            moved[i] = float(rng.normal() * size) if rng.random() < 0.2 else 0.0
        elif 0.5 < x < 1.0 and rng.random() < 0.5:
            moved[i] = 1.0 - (1.0 - x) * math.exp(rng.normal() * size)
        else:
            moved[i] = x * math.exp(rng.normal() * size)
    return tuple(float(m) for m in moved)


def search(target: Target, domain: str, draws: int, climbs: int, rng: np.random.Generator, known: Iterable[Arguments] = ()) -> tuple[Found, int]:
    found = [m for a in (*known, *target.seams) if (m := measure(target, a, domain))]
    tries = 0
    made = 0
    while made < draws and tries < 40 * draws:
        tries += 1
        m = measure(target, target.draw(rng), domain)
        if m:
            made += 1
            found.append(m)
    found.sort(key=lambda f: -f.share)
    best = found[:_CLIMBERS]
    for i in range(climbs):
        k = i % len(best)
        size = 10.0 ** rng.uniform(-14, -0.5)
        m = measure(target, _neighbour(best[k].arguments, size, rng), domain)
        if m and m.share >= best[k].share:
            best[k] = m
    return max(best, key=lambda f: f.share), made
