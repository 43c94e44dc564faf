"""From how many canaries a misuse is noticed, and how many the most powerful test of the same level needs.

That test is Neyman and Pearson's, of the scores' law in some honest audit against their law where the mistake is made.
No test of the level has more power, as it has to hold for that audit too.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from canaryproof.verify.audit.answer.misuse import DIRECTION_LEVEL, misuse
from canaryproof.verify.audit.answer.shape import shape
from canaryproof.verify.audit.levels import LEVEL, POWER
from tests.rows import chequered

PAGE = Path(__file__).parents[4] / "docs" / "sharp_edges.md"
DIM, SIGMA = 10**6, 1.54
TRACE, ROOT = 1.0 / SIGMA, math.sqrt(DIM)

# Log densities of a score in the null's deviations, on a grid, and steps of their log ratio.
GRID, STEP, LENGTH = np.arange(-12.0, 16.0, 0.002), 0.01, 2**16


def normal(mean, deviation=1.0):
    return stats.norm.logpdf(GRID, mean, deviation)


def mixed(share, one, other):
    return np.logaddexp(math.log(share) + one, math.log1p(-share) + other)


def largest(rounds, trace=0.0):
    """The largest of so many cosines, one of which has a trace."""
    own = stats.norm.logpdf(GRID, trace) + (rounds - 1) * special.log_ndtr(GRID)
    if rounds == 1:
        return own
    others = special.log_ndtr(GRID - trace) + stats.norm.logpdf(GRID) + (rounds - 2) * special.log_ndtr(GRID)
    return np.logaddexp(own, math.log(rounds - 1) + others)


def largest_of_two(likeness):
    """The largest of two cosines with releases of this correlation."""
    slope = math.sqrt((1.0 - likeness) / (1.0 + likeness))
    return math.log(2.0) + stats.norm.logpdf(GRID) + special.log_ndtr(slope * GRID)


def power(pairs, count, level=LEVEL):
    """Power of the most powerful test of independent scores: pairs of an honest and a wrong law, and their share."""
    spectra = [1.0, 1.0]
    for honest, wrong, share in pairs:
        places = np.rint((wrong - honest) / STEP).astype(int) % LENGTH
        for i, law in enumerate((honest, wrong)):
            masses = np.bincount(places, np.exp(law) / np.exp(law).sum(), LENGTH)
            spectra[i] = spectra[i] * np.fft.rfft(masses) ** round(share * count)
    above = [np.roll(np.fft.irfft(one, LENGTH), LENGTH // 2)[::-1].cumsum() for one in spectra]
    return above[1][np.searchsorted(above[0], level, side="right")]


def least(pairs, level):
    """Number of canaries from which on the most powerful test notices with probability ``POWER``."""
    few, many = 1, 2
    while power(pairs, many, level) < POWER:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if power(pairs, middle, level) >= POWER else (middle, many)
    return many


def cosines(z):
    return z / ROOT


def absent(rng, k):
    return (cosines(rng.standard_normal(k)), None, DIM), {"release_norm": math.hypot(SIGMA * ROOT, math.sqrt(k))}


def absent_from_scores(rng, k):
    return (*(cosines(rng.standard_normal(k)) for _ in range(2)), DIM), {"noise_multiplier": SIGMA}


def fewer(rng, k):
    z = rng.standard_normal(k) + TRACE * (rng.random(k) < 0.4)
    return (cosines(z), None, DIM), {"release_norm": math.hypot(SIGMA * ROOT, math.sqrt(0.4 * k))}


def fewer_beside_little_noise(rng, k):
    z = rng.standard_normal(k) + (rng.random(k) < 0.5) / 0.3
    return (cosines(z), None, DIM), {"release_norm": math.hypot(0.3 * ROOT, math.sqrt(0.5 * k))}


def flipped(rng, k):
    return (cosines(rng.standard_normal(k) - TRACE), None, DIM), {}


def flipped_both(rng, k):
    return (cosines(rng.standard_normal(k) - TRACE), cosines(rng.standard_normal(k))), {}


def swapped(rng, k):
    return (cosines(rng.standard_normal(k)), cosines(rng.standard_normal(k) + TRACE), DIM), {}


def losses(rng, k):
    return (rng.standard_normal(k) - TRACE, rng.standard_normal(k)), {"kind": "any"}


def larger(rng, k):
    return (1.6 * cosines(rng.standard_normal(k) + TRACE), 1.6 * cosines(rng.standard_normal(k)), DIM), {}


def other_dimension(rng, k):
    return (cosines(rng.standard_normal(k) + TRACE), None, DIM // 3), {}


def several_rounds(rng, k):
    z = rng.standard_normal((k, 5))
    z[:, 0] += TRACE
    return (cosines(z.max(axis=1)), None, DIM), {}


def wider_null(rng, k):
    return (cosines(rng.standard_normal(k) + TRACE), cosines(1.3 * rng.standard_normal(k)), DIM), {}


def unobserved_took_part(rng, k):
    return (cosines(rng.standard_normal(k) + TRACE), cosines(rng.standard_normal(2 * k) + TRACE), DIM), {}


@dataclass(frozen=True)
class Mistake:
    """A row of the page: the scores, and their law against that of an honest audit that is hard to tell from it."""

    words: str
    draw: Callable
    pairs: tuple
    level: float = LEVEL


SQUEEZED, LIKE = math.sqrt(1 / 3), 0.75
MISTAKES = (
    Mistake("canaries not in the release", absent, ((normal(TRACE), normal(0.0), 1.0),)),
    Mistake("the same, from scores", absent_from_scores, ((normal(TRACE), normal(0.0), 1.0),)),
    Mistake("40% of the canaries", fewer, ((normal(TRACE), mixed(0.4, normal(TRACE), normal(0.0)), 1.0),)),
    Mistake(
        "50% of the canaries",
        fewer_beside_little_noise,
        ((normal(1 / 0.3), mixed(0.5, normal(1 / 0.3), normal(0.0)), 1.0),),
    ),
    Mistake("a flipped sign", flipped, ((normal(0.0), normal(-TRACE), 1.0),)),
    Mistake("a flipped sign, the dimension not given", flipped_both, ((normal(0.0), normal(-TRACE), 1.0),)),
    Mistake(
        "observed and unobserved swapped",
        swapped,
        ((largest_of_two(LIKE), normal(0.0), 1.0), (largest_of_two(LIKE), normal(TRACE), 1.0)),
    ),
    Mistake(
        "losses that are not negated",
        losses,
        ((normal(-0.5 * TRACE), normal(-TRACE), 1.0), (normal(-0.5 * TRACE), normal(0.0), 1.0)),
        DIRECTION_LEVEL,
    ),
    Mistake("scores 1.6 times as large", larger, ((normal(0.0), normal(0.0, 1.6), 1.0),)),
    Mistake("a third of the dimension", other_dimension, ((normal(0.4), normal(SQUEEZED * TRACE, SQUEEZED), 1.0),)),
    Mistake("largest cosines of 5 rounds", several_rounds, ((normal(1.4), largest(5, TRACE), 1.0),)),
    Mistake("unobserved scores 1.3 times", wider_null, ((normal(0.0), normal(0.0, 1.3), 1.0),)),
    Mistake("2k unobserved canaries that took part", unobserved_took_part, ((largest(2), normal(TRACE), 2.0),)),
)
# It is no misuse, and has a remark.
OF_TWO_RELEASES = Mistake(
    "scores of two releases",
    lambda rng, k: rng.standard_normal(k) + np.where(rng.random(k) < 0.5, TRACE, 1 / 0.2),
    ((normal(2.8), mixed(0.5, normal(TRACE), normal(1 / 0.2)), 1.0),),
)


def shown(words):
    """Both numbers of a row of the page."""
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| {words}"))
    return tuple(int(number) for number in re.findall(r"\| (\d+) ", row))


@pytest.mark.deep(beyond=4)
@pytest.mark.parametrize("mistake", [*MISTAKES, OF_TWO_RELEASES], ids=lambda mistake: mistake.words)
def test_the_page_has_what_the_most_powerful_test_needs(mistake):
    assert shown(mistake.words)[0] == least(mistake.pairs, mistake.level)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("mistake", chequered(MISTAKES), ids=lambda mistake: mistake.words)
def test_so_many_canaries_show_a_misuse(mistake):
    audits, count = 150, shown(mistake.words)[1]
    noticed = 0
    for i in range(audits):
        scores, known = mistake.draw(np.random.default_rng([i, count]), count)
        kinds = {warning.kind for warning in misuse(*scores, **known)}
        noticed += bool(kinds - {"too-few", "large-delta"})
    # A binomial test that the power is not less.
    assert stats.binom.cdf(noticed, audits, POWER) > LEVEL


def test_so_many_scores_of_two_releases_have_a_remark():
    audits, count = 500, shown(OF_TWO_RELEASES.words)[1]
    draws = (OF_TWO_RELEASES.draw(np.random.default_rng([i, count]), count) for i in range(audits))
    noticed = sum(bool(shape(scores, scale=1.0).reason) for scores in draws)
    assert stats.binom.cdf(noticed, audits, POWER) > LEVEL


def test_the_most_powerful_test_of_a_mean_is_known():
    for count in (50, 87, 120):
        expected = special.ndtr(TRACE * math.sqrt(count) + special.ndtri(LEVEL))
        assert power(((normal(TRACE), normal(0.0), 1.0),), count) == pytest.approx(expected, abs=0.005)
