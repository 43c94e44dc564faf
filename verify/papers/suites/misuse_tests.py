"""The tests of misuse, declared: null hypotheses, levels, and alternatives that are noticed with the stated power."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import special, stats

from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.answer.misuse import (
    EACH_LEVEL,
    LONG,
    QUARTILES,
    SHORT,
    TRACE_LEVEL,
    coincidences,
    visible_trace,
)
from canaryproof.verify.audit.answer.shape import valley_p_values
from canaryproof.verify.audit.levels import POWER


@dataclass(frozen=True)
class MisuseTest:
    """Tests of misuse with one null hypothesis.

    Attributes
    ----------
    kinds
        The warnings that they give.
    tests
        Their number.
    level
        The sum of their levels.
    null
        The null hypothesis, which holds in every honest audit.
    alternative
        An alternative that they notice with probability ``POWER``, for the given numbers of scores.
    """

    kinds: tuple[str, ...]
    tests: int
    level: float
    null: str
    alternative: str


def _misuse_test(kinds: tuple[str, ...], tests: int, null: str, alternative: str) -> MisuseTest:
    return MisuseTest(kinds, tests, tests * EACH_LEVEL, null, alternative)


def misuse_tests(count: int, null_count: int, dim: int) -> tuple[MisuseTest, ...]:
    """List the tests of an audit by its numbers of observed and unobserved scores, the latter 0 if there are none.

    Deviations in the alternatives are those of normal scores, in units of the null's deviation.
    """
    once = float(special.ndtri(POWER))
    trace = (once - float(special.ndtri(EACH_LEVEL))) / math.sqrt(count)
    narrow, wide = _visible_ratio(count, tail=0), _visible_ratio(count, tail=1)
    norm = (float(-special.ndtri(EACH_LEVEL)) + once) / math.sqrt(2.0 * dim)
    # Both are rounded away from the claim, as they lie close to the least that is warned of.
    short, long = math.floor(1e3 * (SHORT - norm)) / 1e3, math.ceil(1e3 * (LONG + norm)) / 1e3
    repetitions = _visible_repetitions(count, 0.5 * count)
    tests = [
        _misuse_test(
            ("repeated",),
            2 if null_count else 1,
            "scores are independent, rounded to the digits that they have; a cosine's density is at most the null's",
            f"{repetitions} repetitions of {count:,} observed cosines, in single precision",
        ),
        _misuse_test(
            ("sign", "swapped", "order"),
            2 if null_count else 1,
            "observed scores are not below the null, and cosines not below 0 on average",
            f"a mean of {_visible_order(count, null_count) if null_count else trace:.2g} deviations below the null",
        ),
        _misuse_test(
            ("narrow", "wide", "missing", "clusters"),
            3,
            "observed cosines have no less than the null's variance; in a release they are normal, with that variance",
            f"a deviation in a release less than {narrow:.3g} or more than {wide:.3g} times the null's",
        ),
        _misuse_test(
            ("clusters", "missing"),
            2 if null_count else 1,
            "cosines with a release have one mode",
            f"two equal clusters {_visible_clusters(count):.2g} deviations apart",
        ),
        MisuseTest(
            ("absent", "missing", "units", "no-trace", "weak-trace"),
            1,
            TRACE_LEVEL,
            "the trace is what the release's norm says, or not less than what the claimed noise leaves",
            f"a trace that is off by {visible_trace(count):.2g} deviations",
        ),
        _misuse_test(
            ("less-noise", "dilution", "carry-over"),
            2,
            "the release is the claimed noise with the canaries; later rounds do not depend on earlier ones' canaries",
            f"a norm less than {short:g} or more than {long:g} times the claimed",
        ),
    ]
    if null_count:
        narrow, wide = (_visible_ratio(null_count, tail) for tail in (0, 1))
        tests += [
            _misuse_test(
                ("shared",),
                1,
                "no canary's score is in both groups",
                f"{_visible_repetitions(count, null_count)} cosines that are in both, in single precision",
            ),
            _misuse_test(
                ("null-law",),
                7,
                "unobserved cosines are those of uniform directions with one release, or the largest over rounds",
                f"a deviation more than {wide:.3g} times the null's, or less than {narrow:.3g} times with a mean of 0",
            ),
            _misuse_test(
                ("coin",),
                1,
                "each canary's inclusion was decided by a fair coin",
                f"a share of observed scores that is off by {_visible_share(count + null_count):.2g}",
            ),
        ]
    return tuple(tests)


def _visible_ratio(count: int, tail: int) -> float:
    """Return the ratio of deviations that is noticed, below or above 1."""
    critical = special.chdtri(count - 1, 1.0 - EACH_LEVEL if tail == 0 else EACH_LEVEL)
    return math.sqrt(critical / special.chdtri(count - 1, 1.0 - POWER if tail == 0 else POWER))


def _visible_order(count: int, null_count: int) -> float:
    """Return the shift of a normal mean that the rank test notices, by its asymptotic efficiency 3/π."""
    reach = float(-special.ndtri(EACH_LEVEL) + special.ndtri(POWER))
    return reach * math.sqrt(math.pi / 3.0 * (1.0 / count + 1.0 / null_count))


def _visible_repetitions(count: int, others: float) -> int:
    normal = special.ndtri((np.arange(count) + 0.5) / count)
    return int(stats.poisson.isf(EACH_LEVEL, coincidences(normal, others, QUARTILES))) + 1


def _visible_clusters(count: int) -> float:
    """Return the distance of two equal normal clusters between which a valley is noticed."""
    for apart in np.arange(2.0, 20.0, 0.05):
        centres, widths = np.linspace(-0.5, 0.5, 9), np.linspace(0.2, 1.0, 17)[:, np.newaxis] * apart
        edges = [0.5 * count * _both(centres + offset * widths, apart) for offset in (-1.5, -0.5, 0.5, 1.5)]
        left, middle, right = (after - before for before, after in pairwise(edges))
        # Each count is taken to be a deviation or two worse than expected.
        z = math.sqrt(2.0) * float(special.ndtri(POWER))
        worse = middle + z * np.sqrt(middle), *(np.maximum(0.0, x - z * np.sqrt(x)) for x in (left, right))
        p_values = valley_p_values(*(np.floor(x).astype(np.int64) for x in (worse[1], worse[0], worse[2])))
        if p_values.min() < EACH_LEVEL:
            return float(apart)
    return math.inf


def _both(x: Array, apart: float) -> Array:
    return np.asarray(special.ndtr(x - 0.5 * apart) + special.ndtr(x + 0.5 * apart))


def _visible_share(count: int) -> float:
    return 0.5 * float(-special.ndtri(0.5 * EACH_LEVEL) + special.ndtri(POWER)) / math.sqrt(count)
