import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.audit.answer.misuse import misuse, visible_trace
from canaryproof.verify.audit.answer.shape import valley
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.suites.misuse_tests import misuse_tests
from tests.printed import numbers


def test_levels_of_all_tests_sum_to_the_level_of_an_audit():
    assert sum(test.level for test in misuse_tests(300, 300, 10**6)) == pytest.approx(LEVEL)
    assert sum(test.level for test in misuse_tests(300, 0, 10**6)) < LEVEL


COUNT, DIM = 400, 10**6
ALTERNATIVES = {test.kinds: test.alternative for test in misuse_tests(COUNT, COUNT, DIM)}


def first_number(*kinds):
    """Read the first number of an alternative."""
    return next(float(word) for word in ALTERNATIVES[kinds].split() if word.replace(".", "").isdigit())


def ranks_below(rng):
    shift = first_number("sign", "swapped", "order")
    return (rng.standard_normal(COUNT) - shift, rng.standard_normal(COUNT)), {"kind": "any"}


def narrower(rng):
    ratio = first_number("narrow", "wide", "missing", "clusters")
    return (ratio * rng.standard_normal(COUNT) / math.sqrt(DIM), None, DIM), {}


def two_modes(rng):
    apart = first_number("clusters", "missing")
    scores = rng.standard_normal(COUNT) + apart * rng.integers(0, 2, COUNT)
    return (scores / math.sqrt(DIM), None, DIM), {"release_norm": 3.0 * math.sqrt(DIM)}


def other_trace(rng):
    norm = 3.0 * math.sqrt(DIM)
    trace = 1.0 / 3.0 + visible_trace(COUNT)
    return ((rng.standard_normal(COUNT) + trace) / math.sqrt(DIM), None, DIM), {"release_norm": norm}


def wider_null(rng):
    ratio = first_number("null-law")
    cosines = rng.standard_normal((2, COUNT)) / math.sqrt(DIM)
    return (cosines[0], ratio * cosines[1], DIM), {}


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize("draw", [ranks_below, narrower, two_modes, other_trace, wider_null])
def test_power_is_what_is_misuse_tests(draw):
    rng, audits = np.random.default_rng(5), 150
    noticed = 0
    for _ in range(audits):
        scores, known = draw(rng)
        noticed += bool(misuse(*scores, **known))
    # A binomial test that the power is not less.
    assert stats.binom.cdf(noticed, audits, POWER) > LEVEL


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(("kind", "place"), [("less-noise", 0), ("dilution", 1)])
@pytest.mark.parametrize("dim", [1000, DIM])
def test_power_of_the_norm_is_what_is_misuse_tests(kind, place, dim):
    alternative = next(test.alternative for test in misuse_tests(COUNT, 0, dim) if kind in test.kinds)
    ratio = [float(word) for word in alternative.split() if word.replace(".", "").isdigit()][place]
    rng, audits, noticed = np.random.default_rng(6), 150, 0
    for _ in range(audits):
        release_norm = 3.0 * ratio * math.sqrt(rng.chisquare(dim))
        cosines = (rng.standard_normal(COUNT) + 1.0 / (3.0 * ratio)) / math.sqrt(dim)
        found = misuse(cosines, None, dim, release_norm=release_norm, noise_multiplier=3.0)
        noticed += kind in {warning.kind for warning in found}
    assert stats.binom.cdf(noticed, audits, POWER) > LEVEL


def test_levels_of_the_trace_and_of_all_other_tests_are_a_half_each():
    tests = misuse_tests(COUNT, COUNT, DIM)
    trace = sum(test.level for test in tests if "no-trace" in test.kinds)
    assert trace == pytest.approx(0.5 * LEVEL)
    assert sum(test.level for test in tests) - trace == pytest.approx(0.5 * LEVEL)


def test_declared_alternatives_are_those_of_textbook_power():
    count, null_count, dim = 400, 300, 10**6
    shown = {test.kinds: numbers(test.alternative) for test in misuse_tests(count, null_count, dim)}
    each, trace = LEVEL / 40.0, 0.5 * LEVEL
    both = stats.norm.isf(each) + stats.norm.ppf(POWER)
    assert shown["sign", "swapped", "order"] == [f"{both * math.sqrt(math.pi / 3 * (1 / count + 1 / null_count)):.2g}"]
    alone = {test.kinds: numbers(test.alternative) for test in misuse_tests(count, 0, dim)}
    assert alone["sign", "swapped", "order"] == [f"{both / math.sqrt(count):.2g}"]
    off = (stats.norm.isf(0.5 * trace) + stats.norm.ppf(POWER)) / math.sqrt(count)
    assert shown["absent", "missing", "units", "no-trace", "weak-trace"] == [f"{off:.2g}"]
    coins = (stats.norm.isf(0.5 * each) + stats.norm.ppf(POWER)) * math.sqrt(0.25 / (count + null_count))
    assert shown["coin",] == [f"{coins:.2g}"]
    lengths = [float(number) for number in shown["less-noise", "dilution", "carry-over"]]
    # Both are rounded away from the claim, to three digits.
    short, long = 0.98 - both / math.sqrt(2.0 * dim), 1.1 + both / math.sqrt(2.0 * dim)
    assert short - 1e-3 < lengths[0] <= short < long <= lengths[1] < long + 1e-3
    # A deviation in units of the null's, which its test rejects with the stated power.
    narrow, wide = (float(number) for number in shown["narrow", "wide", "missing", "clusters"])
    null_wide, null_narrow = (float(number) for number in shown["null-law",][:2])
    for freedom, low, high in ((count - 1, narrow, wide), (null_count - 1, null_narrow, null_wide)):
        law = stats.chi2(freedom)
        assert law.cdf(law.ppf(each) / low**2) == pytest.approx(POWER, abs=0.02)
        assert law.sf(law.isf(each) / high**2) == pytest.approx(POWER, abs=0.02)


@pytest.mark.parametrize(("kinds", "others"), [(("repeated",), 200), (("shared",), 300)])
def test_declared_repetitions_are_more_than_single_precision_makes(kinds, others):
    """Two of these scores agree in single precision with their spacing times a density, below 1 a quartile range."""
    alternative = next(test.alternative for test in misuse_tests(400, 300, 10**6) if test.kinds == kinds)
    spacing = np.spacing(np.abs(np.random.default_rng(0).standard_normal(400)).astype(np.float32)).astype(float)
    quartiles = 2.0 * stats.norm.ppf(0.75)
    fewest = stats.poisson.isf(LEVEL / 40.0, spacing.sum() * others / quartiles) + 1
    assert numbers(alternative)[0] == f"{fewest:.0f}"
    assert kinds == ("shared",) or numbers(alternative)[1] == "400"


def test_declared_clusters_are_noticed_and_closer_ones_are_not():
    """Of 60 samples, at most 39 are noticed with 3e-8 if each is with 90%, and 40 with 5e-15 if each is with 20%."""
    count, runs, rng = 400, 60, np.random.default_rng(2)
    tests = misuse_tests(count, 300, 10**6)
    apart = float(numbers(next(test.alternative for test in tests if test.kinds == ("clusters", "missing")))[0])

    def noticed(apart):
        samples = np.sort(rng.standard_normal((runs, count)) + apart * rng.integers(0, 2, (runs, count)))
        return sum(valley(scores)[0] < LEVEL / 40.0 for scores in samples)

    assert noticed(apart) > 39 > noticed(0.75 * apart)
