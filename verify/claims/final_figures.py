"""Figures 1 and 3 of the final version for a canary presented once, whose cosines Tables 3 and 4 summarise."""

import math
from collections.abc import Sequence
from itertools import pairwise

from scipy import special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.claims.final_printed import CANARIES, RESULTS, Row
from canaryproof.verify.claims.final_text import DOCUMENT
from canaryproof.verify.claims.judging import claim, found, holds
from canaryproof.verify.results import Outcome, Verdict


def distance(row: Row, delta: float) -> float:
    """Mean of the observed cosines, in the null's standard deviation and theirs, that has a row's estimate as its ε."""
    return 1.0 / float(gaussian_mechanism.noise_multiplier(float(row.estimate_final), delta))


def accuracy(shift: float) -> float:
    """Share of right guesses of the best attack on one canary, observed or not with probability 1/2 each."""
    return float(special.ndtr(0.5 * shift))


def judge_separable(row: Row, delta: float) -> Outcome:
    """Judge that observed cosines are easily told from the null distribution."""
    shift = distance(row, delta)
    right, errors = accuracy(shift), shift * math.sqrt(CANARIES)
    # One cosine: hardly an error. A thousand: farther from 0 than chance explains.
    verdict = Verdict.CONFIRMED if right > 0.99 else Verdict.QUALIFIED if errors > 5.0 else Verdict.REFUTED
    finding = (
        f"an estimate of {row.estimate_final} is that of cosines {shift:.2f} standard deviations above the null's: the "
        f"mean of {CANARIES:,} is {errors:.0f} standard errors from 0, while the best attack on one canary is right in "
        f"{right:.0%}"
    )
    if verdict is Verdict.QUALIFIED:
        finding = f"only as distributions, not canary by canary: {finding}"
    return found(verdict, finding, distance=shift, accuracy=right)


def judge_less_separable(rows: Sequence[Row], delta: float) -> Outcome:
    """Judge that observed cosines come closer to the null distribution as the noise grows."""
    shifts = [distance(row, delta) for row in rows]
    falling = all(one > other for one, other in pairwise(shifts))
    finding = (
        f"from noise {rows[0].noise} to {rows[-1].noise} they are {', '.join(f'{shift:.2f}' for shift in shifts)} "
        f"standard deviations above it, and the best attack on one canary is right in "
        f"{', '.join(f'{accuracy(shift):.0%}' for shift in shifts)}"
    )
    return found(holds(falling), finding, distances=shifts)


# Figures by the table that they are drawn beside.
_FIGURES = ((1, 3), (3, 4))

CHECKS = tuple(
    claim(
        f"final.figure{figure}.{name}", f"{DOCUMENT}, Section 5.2, Figure {figure} and Table {table}", statement, judge
    )
    for figure, table in _FIGURES
    for rows, _, delta in (RESULTS[table],)
    for name, statement, judge in (
        (
            "separable",
            "without noise the cosines of observed canaries are easily separable from the null distribution",
            lambda _, row=rows[0], delta=delta: judge_separable(row, delta),
        ),
        (
            "noise",
            "as the noise grows, the cosines of observed canaries approach the null distribution",
            lambda _, rows=rows, delta=delta: judge_less_separable(rows, delta),
        ),
    )
)
