"""The figures that warnings print, from the scores by formulas of their own, and the levels that they rest on."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.answer.misuse import (
    EACH_LEVEL,
    Withheld,
    _Facts,
    _resolution,
    below_p_value,
    misuse,
    products_with_rest,
)
from canaryproof.verify.audit.answer.shape import shape, valley
from canaryproof.verify.audit.canaries.scores import RoundsRecord, Score
from canaryproof.verify.audit.levels import LEVEL
from tests.printed import numbers

COUNT, DIM, SIGMA = 500, 40_000, 1.54
ROOT = math.sqrt(DIM)
# The norm of a release of noise alone, to which canaries are added.
NORM = SIGMA * ROOT


def cosines(trace=0.0, deviation=1.0, count=COUNT, seed=0):
    """Cosines with exactly this mean and deviation, in the null's deviations."""
    z = np.random.default_rng(seed).standard_normal(count)
    return (trace + deviation * (z - z.mean()) / z.std()) / ROOT


def in_release(z, norm=NORM):
    """Cosines of canaries with a rest of this norm and themselves, by their products with that in its deviations."""
    products = norm * z
    return products / np.sqrt(norm**2 + 2.0 * products - 1.0)


def released(norm=NORM):
    """The norms of a release with and without orthogonal canaries."""
    return {"release_norm": math.hypot(norm, math.sqrt(COUNT)), "residual_norm": norm, "inserted": 1}


def warning(name, *scores, **known):
    (found,) = (one for one in misuse(*scores, **known) if one.kind == name)
    return found


def figures(name, *scores, **known):
    return numbers(warning(name, *scores, **known).message)


def test_figures_of_repeated_scores():
    scores = cosines()
    assert figures("repeated", np.tile(scores, 2), None, DIM) == ["500", "1000"]
    assert figures("shared", scores, np.concatenate([cosines(seed=1), scores[:40]]), DIM) == ["40", "500"]
    values, copies = np.unique(scores.round(2), return_counts=True)
    assert len(values) < 10
    assert numbers(shape(scores.round(2)).reason) == [str(copies[copies > 1].sum()), "500"]


def test_figures_of_scores_below_the_null():
    # The mean is −0.5 deviations, of which √500 are 11.2.
    assert figures("sign", cosines(-0.5), None, DIM) == ["11.2", "0"]
    # Of an unknown dimension, Student's statistic.
    mean, error = -0.5, 2.0 / math.sqrt(COUNT - 1)
    assert figures("sign", cosines(-0.5, 2.0), cosines(seed=1)) == [f"{-mean / error:.1f}", "0"]


def test_figures_of_scores_of_another_law():
    assert figures("null-law", cosines(0.6), cosines(0.0, 1.3, seed=1), DIM)[:1] == ["40000"]
    message = warning("null-law", cosines(0.6), cosines(0.25, 1.3, seed=1), DIM).message
    assert message.endswith("their mean is 0.25 and their deviation 1.3.")
    assert figures("narrow", cosines(0.6, 0.61), None, DIM) == ["0.61"]
    assert figures("wide", in_release(cosines(0.05, 1.62)), None, DIM, **released()) == ["1.6"]
    # Scores alone may be of canaries that took part unequally.
    assert numbers(shape(cosines(0.6, 1.62), scale=1.0 / ROOT).reason) == ["1.6"]
    # Against unobserved scores, whose deviation is not theirs about their own mean but about 0.
    both = cosines(0.05, 1.62), cosines(0.0, 0.9, seed=1)
    assert figures("wide", *both, release_norm=NORM) == ["1.8"]


def standardised(values):
    """Cosines with exactly the mean 0 and the deviation 1 of the null, of another shape."""
    return (values - values.mean()) / values.std() / ROOT


# Unobserved scores, of each of which another of the four tests has the smallest p-value.
NOT_THE_NULL = {
    "mean": cosines(-0.35, 1.05, seed=1),
    "deviation": cosines(0.25, 1.3, seed=1),
    "second moment": cosines(0.01, 0.75, seed=1),
    "law": standardised(np.random.default_rng(2).standard_exponential(COUNT)),
}


@pytest.mark.parametrize("name", NOT_THE_NULL)
def test_unobserved_scores_are_held_against_each_property_of_the_null(name):
    z = NOT_THE_NULL[name] * ROOT
    p_values = {
        "mean": stats.norm.cdf(z.mean() * math.sqrt(COUNT)),
        "deviation": stats.chi2.sf(COUNT * z.var(), COUNT - 1),
        "second moment": stats.chi2.cdf((z**2).sum(), COUNT),
        "law": stats.kstest(z, "norm", alternative="greater").pvalue,
    }
    assert min(p_values, key=p_values.get) == name
    found = warning("null-law", cosines(0.6), NOT_THE_NULL[name], DIM)
    assert found.p_value == pytest.approx(p_values[name], rel=0.01, abs=0.0)


# Those that may be the largest of some cosines, but for one property of what their law makes normal.
NOT_THE_LARGEST = {
    "narrow": cosines(1.0, 0.5, seed=1),
    "wide": cosines(0.91, 0.98, seed=1),
    "law": standardised(-np.random.default_rng(2).standard_exponential(COUNT)) + 0.5 / ROOT,
}


@pytest.mark.parametrize("name", NOT_THE_LARGEST)
def test_unobserved_scores_are_held_against_each_property_of_the_largest(name):
    below = stats.norm.cdf(NOT_THE_LARGEST[name] * ROOT)
    # F^T of the scores is uniform; T is the likeliest one.
    z = stats.norm.ppf(below ** max(1.0, -COUNT / np.log(below).sum()))
    p_values = {
        "narrow": stats.chi2.cdf(COUNT * z.var(), COUNT - 1),
        "wide": stats.chi2.sf(COUNT * z.var(), COUNT - 1),
        "law": stats.kstest(z - z.mean(), "norm").pvalue,
    }
    assert min(p_values, key=p_values.get) == name
    found = warning("null-law", cosines(2.0), NOT_THE_LARGEST[name], DIM)
    assert found.withholds is Withheld.NOTHING
    assert found.p_value == pytest.approx(p_values[name], rel=0.01, abs=0.0)


@pytest.mark.parametrize("mean", [30.0, 100.0])
def test_unobserved_scores_above_all_cosines_are_no_largest_ones_either(mean):
    # Their law F rounds to 1, and at 100 deviations what is left of it is below the smallest number.
    scores = cosines(mean, count=60, seed=1)
    above = [mpmath.betainc((DIM - 1) / 2, 0.5, 0, 1 - mpmath.mpf(score) ** 2) for score in scores]
    total = sum(above)
    law = [float(mpmath.exp(-60 * one / total)) for one in above]
    z = stats.norm.ppf(np.clip(law, 1e-300, 1.0 - 1e-16))
    found = warning("null-law", scores + 6.0 / ROOT, scores, DIM)
    assert found.withholds is Withheld.NOTHING
    p_values = stats.chi2.sf(60 * z.var(), 59), stats.kstest(z - z.mean(), "norm").pvalue
    assert found.p_value == pytest.approx(min(p_values), rel=0.01, abs=0.0)


def test_figures_of_an_unobserved_law_that_is_nearly_that_of_cosines():
    # The largest of some cosines with this mean have a smaller deviation.
    message = warning("null-law", cosines(0.6), cosines(0.91, 0.98, seed=1), DIM).message
    assert message.startswith("The unobserved scores are neither single cosines in 40,000 dimensions nor")
    assert message.endswith("their mean is 0.91 and their deviation 0.98.")


def test_figures_of_coordinates_without_noise():
    found = warning("zeros", cosines(ROOT / NORM), None, DIM, release_norm=NORM, zeros=1234, release_dim=45_678)
    assert numbers(found.message) == ["1234", "45678"]


def test_figures_of_scores_that_are_not_normal():
    found = shape(cosines() ** 2)
    assert numbers(found.reason) == [f"{found.p_value:.1g}"]


def test_figures_of_canaries_that_are_missing():
    # Of 60% with a trace of 8 the mean is 4.8, and the variance 1 + 0.6 · 0.4 · 64.
    mixed = cosines(8.0 * (np.arange(COUNT) < 300))
    assert figures("missing", in_release(mixed), None, DIM, **released()) == ["60"]
    assert numbers(shape(mixed, cosines(seed=1)).reason) == ["60"]


@pytest.mark.parametrize("dim", [DIM, None])
@pytest.mark.parametrize(("trace", "kind"), [(0.05, "no-trace"), (0.2, "weak-trace")])
def test_figures_of_a_trace_below_the_claimed(dim, trace, kind):
    # The null's deviation is known by the dimension, or estimated from as many scores, about 0.
    error = math.sqrt((1.0 + (0.5 * trace**2 if dim is None else 0.0)) / COUNT)
    found = warning(kind, cosines(trace), cosines(seed=1), dim, noise_multiplier=SIGMA)
    assert f"{trace:.3f} ± {error:.3f} deviations" in found.message
    expected = 1.0 / math.sqrt(SIGMA**2 + COUNT / DIM)
    assert numbers(found.message)[2] == f"{expected:.3g}"
    assert found.p_value == pytest.approx(stats.norm.cdf((trace - expected) / error), rel=1e-6, abs=0.0)


def test_figures_of_a_trace_that_its_release_contradicts():
    expected = ROOT / NORM
    error = math.sqrt(1.0 / COUNT)
    found = warning("absent", in_release(cosines(0.05)), None, DIM, **released())
    assert numbers(found.message) == ["0.050", f"{1.0 / math.sqrt(COUNT):.3f}", f"{expected:.3g}"]
    assert found.p_value == pytest.approx(2.0 * stats.norm.cdf((0.05 - expected) / error), rel=1e-6, abs=0.0)
    # Canaries of norm 2, whose trace is twice what a release of this norm has.
    found = warning("units", in_release(cosines(2.0 * expected)), None, DIM, **released())
    assert numbers(found.message) == ["2.000", f"{1.0 / (math.sqrt(COUNT) * expected):.2g}", "1"]
    assert numbers(found.what_to_do)[0] == "2"
    assert found.p_value == pytest.approx(2.0 * stats.norm.sf(expected / error), rel=1e-6, abs=0.0)
    # The same of a release of twice the claimed length.
    twice = {"release_norm": 2.0 * math.hypot(NORM, math.sqrt(COUNT)), "residual_norm": 2.0 * NORM}
    seen = in_release(cosines(expected), 2.0 * NORM)
    found = warning("units", seen, None, DIM, **twice, noise_multiplier=SIGMA)
    assert numbers(found.message) == ["2.00", f"{2.0 / (math.sqrt(COUNT) * expected):.2g}", "1", "2"]
    seen = in_release(cosines(0.5 * expected))
    found = warning("missing", seen, None, DIM, **released(), noise_multiplier=SIGMA)
    assert numbers(found.message)[0] == "0.500"
    assert numbers(found.message)[-1] == "50"


# A trace that is half or twice what a release has in which it is ``expected``, the scores' variance, and what is known.
# A mixture of canaries with and without a trace has the variance 1 + w(1 − w)·expected².
HALF = [
    # 8 standard errors of a variance: canaries that are missing would show.
    ("missing", 0.5, 1.42, 1.28, {}, "It is as if 50% of the canaries were there."),
    ("units", 0.5, 1.42, 1.22, {}, ""),
    # 5.4 of them: they might not.
    ("missing", 0.5, 1.17, 1.0, {}, "Either canaries are missing, or the release is in other units."),
    ("missing", 0.5, 1.17, 1.0, {"noise_multiplier": 1 / 1.17}, "It is as if 50% of the canaries were there."),
    # A release twice as long as claimed, too, by no such factor as the trace.
    (
        *("missing", 0.5, 1.17, 1.0, {"noise_multiplier": 0.5 / 1.17}),
        "Either canaries are missing, or the release is in other units.",
    ),
    ("units", 2.0, 1.42, 1.28, {}, ""),
]


@pytest.mark.parametrize(("kind", "weight", "expected", "variance", "known", "reason"), HALF)
def test_a_trace_that_the_release_contradicts_has_its_reason(kind, weight, expected, variance, known, reason):
    scores = in_release(cosines(weight * expected, math.sqrt(variance)), ROOT / expected)
    found = warning(kind, scores, None, DIM, **released(ROOT / expected), **known)
    error = 1.0 / (math.sqrt(COUNT) * expected)
    trace = f"The canaries' trace in this release is that of vectors of norm {weight:.3f} ± {error:.2g}, not 1."
    assert found.message == f"{trace} {reason}".rstrip()


def test_figures_of_a_release_of_another_length():
    found = warning("less-noise", in_release(cosines(ROOT / NORM)), None, DIM, **released(), noise_multiplier=2.0)
    # So short a release has more noise than this with a probability of the test's level alone.
    most = NORM / math.sqrt(stats.chi2.ppf(EACH_LEVEL, DIM))
    # It is an upper limit, and so rounded up.
    assert numbers(found.message) == [f"{NORM / (2.0 * ROOT):.3g}", f"{math.ceil(100.0 * most) / 100.0:.3g}", "2"]
    assert found.p_value == pytest.approx(stats.chi2.cdf(NORM**2 / 4.0, DIM), rel=1e-6, abs=0.0)
    long = 1.3 * NORM
    seen = in_release(cosines(ROOT / long), long)
    found = warning("dilution", seen, None, DIM, **released(long), noise_multiplier=SIGMA)
    assert numbers(found.message) == ["1.3", f"{1.0 / 1.3:.2g}"]
    assert found.p_value == pytest.approx(stats.chi2.sf(long**2 / SIGMA**2, DIM), rel=1e-6, abs=0.0)


def test_figures_of_numbers_of_scores():
    scores, others = cosines(0.6), cosines(count=300, seed=1)
    assert figures("coin", scores, others, DIM, inclusion="coin") == ["500", "300"]
    assert figures("large-delta", scores, others, DIM, delta=0.25) == ["0.25", "1", "500", "0"]
    record = RoundsRecord(Score.LARGEST, 1, 0, rounds=70, missing=30, skipped=4, traces=None)
    assert figures("missing-rounds", scores, others, DIM, record=record) == ["70", "100"]
    assert figures("skipped-rounds", scores, others, DIM, record=record) == ["4", "70"]
    for carried, word in ((7.26, "above"), (-7.26, "below")):
        record = RoundsRecord(Score.LARGEST, 1, 0, 70, 0, 0, None, carry_over=carried)
        found = warning("carry-over", scores, others, DIM, record=record)
        assert f"7.3 standard errors {word} those" in found.message
        assert found.p_value == pytest.approx(2.0 * math.exp(-0.5 * 7.26**2))


def test_so_many_scores_as_it_asks_for_are_enough():
    few = cosines(0.6, count=20)
    found = warning("too-few", few, None, DIM, confidence=0.999)
    assert numbers(found.message) == ["99.9", "3", "0"]
    enough = int(numbers(found.what_to_do)[0])
    for count, kinds in ((enough, set()), (enough - 1, {"too-few"})):
        assert {one.kind for one in misuse(cosines(0.6, count=count), None, DIM, confidence=0.999)} == kinds


@pytest.mark.parametrize(("sigma", "signal"), [(None, None), (2.0, None), (0.5, 2.0)])
@pytest.mark.parametrize("both", [False, True])
def test_so_many_scores_tell_the_claimed_noise_or_an_epsilon_of_3_from_none(sigma, signal, both):
    """A mean of so many deviations is significantly above 0, or above that of as many unobserved scores."""
    signal = signal or 1.0 / float(gaussian_mechanism.noise_multiplier(3.0, 1e-6))
    others = cosines(count=4, seed=1) if both else None
    found = warning("too-few", cosines(0.6, count=4), others, DIM, confidence=0.999, noise_multiplier=sigma)
    enough = int(numbers(found.what_to_do)[0])
    assert ("of either kind" in found.what_to_do) == both

    def reach(count):
        return stats.t.isf(0.001, count - 1) * math.sqrt(1.0 / (count - 1) + (1.0 / count if both else 0.0))

    # From 100 on the number is searched in steps of 2%.
    assert reach(enough) <= signal < reach(enough - max(1, enough // 50))


@pytest.mark.parametrize(("dim", "few"), [(900, 2), (1000, 2), (40_000, 80)])
def test_a_few_coordinates_may_be_zero(dim, few):
    for zeros, kinds in ((few, set()), (few + 1, {"zeros"})):
        known = {**released(), "zeros": zeros, "release_dim": dim}
        assert {one.kind for one in misuse(in_release(cosines(ROOT / NORM)), None, DIM, **known)} == kinds


def test_a_delta_of_one_in_the_number_of_canaries_is_not_large():
    for delta, kinds in ((1.0 / COUNT, set()), (1.01 / COUNT, {"large-delta"})):
        assert {one.kind for one in misuse(cosines(0.6), None, DIM, delta=delta)} == kinds


@pytest.mark.parametrize(
    ("scores", "steps"),
    [
        ([0.123, 0.4, -2.0], [1e-3] * 3),
        ([1.23e-5, -4.5e-2, 7.0], [1e-7, 1e-4, 1e-2]),
        ([301.0, 20.0], [1.0] * 2),
        # Half and single precision have 11 and 24 bits.
        (np.float16([0.3, 0.7, 1.1]).astype(float), [2.0**-12, 2.0**-11, 2.0**-10]),
        (np.float32([0.3, 0.7, 1.1]).astype(float), [2.0**-25, 2.0**-24, 2.0**-23]),
        # Of 17 digits, none is the last one that was printed.
        ([1.0 / 3.0, 2.0 / 3.0, 4.0 / 3.0], [2.0**-25, 2.0**-24, 2.0**-23]),
    ],
)
def test_the_resolution_of_scores_is_that_of_their_digits_or_of_their_floats(scores, steps):
    assert _resolution(np.array(scores)) == pytest.approx(steps, rel=1e-12)


PLAIN, UNSEEN = cosines(0.3), cosines(count=300, seed=1)
WIDER, NARROW = cosines(0.05, 1.62), cosines(0.3, 0.6)
# Unobserved scores with a deviation about 0 that is not the null's.
SCALED = cosines(0.0, 0.9, count=300, seed=1)
FREEDOM = COUNT - 1
P_VALUES = [
    ("sign", (cosines(-0.5), None, DIM), {}, stats.norm.cdf(-0.5 * math.sqrt(COUNT))),
    ("sign", (cosines(-0.5, 1.5), UNSEEN), {}, stats.t.cdf(-0.5 / 1.5 * math.sqrt(FREEDOM), FREEDOM)),
    *(
        (kind, (seen, unseen), known, stats.mannwhitneyu(seen, unseen, alternative="less", method="asymptotic").pvalue)
        for kind, seen, unseen, known in (
            ("swapped", cosines(0.02), cosines(0.7, count=300, seed=1), {}),
            ("order", cosines(0.0), cosines(0.7, count=300, seed=1), {"kind": "any"}),
        )
    ),
    ("narrow", (NARROW, None, DIM), {}, stats.chi2.cdf(COUNT * 0.36, FREEDOM)),
    ("narrow", (NARROW, UNSEEN), {}, stats.f.cdf(COUNT / FREEDOM * 0.36, FREEDOM, 300)),
    ("narrow", (NARROW, SCALED), {}, stats.f.cdf(COUNT / FREEDOM * 0.36 / 0.81, FREEDOM, 300)),
    ("wide", (in_release(WIDER), None, DIM), released(), stats.chi2.sf(COUNT * 1.62**2, FREEDOM)),
    ("wide", (WIDER, SCALED), {"release_norm": NORM}, stats.f.sf(COUNT / FREEDOM * 1.8**2, FREEDOM, 300)),
]


@pytest.mark.parametrize(("kind", "scores", "known", "p_value"), P_VALUES)
def test_the_p_value_of_a_warning_is_that_of_its_textbook_test(kind, scores, known, p_value):
    assert 0.0 < p_value < LEVEL / 40.0
    # Rounding to single precision may have made scores narrower.
    assert warning(kind, *scores, **known).p_value == pytest.approx(p_value, rel=1e-4, abs=0.0)


@pytest.mark.parametrize(("seen", "unseen", "kind"), [(-0.24, 0.23, "sign"), (-0.23, 0.24, "swapped")])
def test_cosines_below_the_unobserved_ones_are_flipped_or_swapped_by_whose_mean_is_farther_from_0(seen, unseen, kind):
    scores = cosines(seen), cosines(unseen, count=300, seed=1)
    (found,) = misuse(*scores, DIM)
    assert found.kind == kind
    p_value = stats.mannwhitneyu(*scores, alternative="less", method="asymptotic").pvalue
    assert found.p_value == pytest.approx(p_value, rel=1e-9, abs=0.0)


@pytest.mark.parametrize(
    ("seen", "unseen", "ones"), [(20, 2000, 3), (2000, 20, 3), (1000, 100, 5), (100, 1000, 40), (500, 500, 270)]
)
def test_labels_look_turned_over_as_rarely_as_promised(seen, unseen, ones):
    """Given how many labels are 1, their number among observed ones is hypergeometric."""
    counts = np.arange(max(0, ones - unseen), min(seen, ones) + 1)
    labels = [(np.arange(seen) < count, np.arange(unseen) < ones - count) for count in counts]
    p_values = np.array([below_p_value(*map(np.float64, pair)) for pair in labels])
    chances = stats.hypergeom.pmf(counts, seen + unseen, ones, seen)
    assert all(chances[p_values <= level].sum() <= level for level in p_values * (1.0 + 1e-9))


def test_clusters_of_both_kinds_of_scores_are_named():
    """Orthonormal canaries have unobserved directions, whose deviation about 0 is the scale."""
    groups = [cosines(5.0 * np.sign(np.arange(COUNT) % 2 - 0.5), seed=seed) for seed in (0, 1)]
    known = {"release_norm": ROOT / 1e-3, "release_dim": DIM}
    found = misuse(*groups, **known)
    assert [one.message for one in found[:2]] == [
        f"The {name} scores form two clusters." for name in ("observed", "unobserved")
    ]
    assert [one.p_value for one in found[:2]] == [valley(np.sort(scores))[0] for scores in groups]


def test_a_null_of_one_value_has_the_quartiles_of_its_law_or_of_all_scores():
    seen, one = cosines(0.6), np.full(10, 1e-3)
    known = _Facts(seen, one, True, DIM, "fixed", None, None, None, 0, DIM)
    assert known.quartiles == pytest.approx(2.0 * stats.norm.ppf(0.75) / ROOT, rel=1e-6)
    unknown = _Facts(seen, one, True, None, "fixed", None, None, None, 0, DIM)
    assert unknown.quartiles == pytest.approx(stats.iqr(np.r_[seen, one]))


def spacing(scores):
    return np.spacing(np.abs(scores).astype(np.float32)).astype(float).sum()


@pytest.mark.parametrize(("unseen", "quartiles"), [(None, 2.0 * stats.norm.ppf(0.75) / ROOT), (UNSEEN, None)])
def test_the_p_value_of_repetitions_is_poissons_with_the_density_of_the_null(unseen, quartiles):
    quartiles = quartiles or float(np.subtract(*np.quantile(UNSEEN, [0.75, 0.25])))
    # Of 500 scores 4 are repeated, and 5 of them stand among the unobserved, in single precision.
    repeated = np.r_[PLAIN[:496], PLAIN[:4]]
    found = warning("repeated", repeated, unseen, DIM)
    expected = spacing(repeated) * 0.5 * COUNT / quartiles
    assert found.p_value == pytest.approx(stats.poisson.sf(3, expected), rel=1e-6, abs=0.0)
    if unseen is not None:
        found = warning("shared", PLAIN, np.r_[UNSEEN[:295], PLAIN[:5]], DIM)
        shared = np.r_[UNSEEN[:295], PLAIN[:5]]
        quartiles = float(np.subtract(*np.quantile(shared, [0.75, 0.25])))
        assert found.p_value == pytest.approx(stats.poisson.sf(4, spacing(PLAIN) * 300 / quartiles), rel=1e-6, abs=0.0)


@pytest.mark.parametrize(("kind", "factor", "total"), [("repeated", 1.5, 280), ("shared", 4.0, 800)])
def test_the_p_value_of_pairs_is_the_level_at_which_they_are_too_many(kind, factor, total):
    if kind == "repeated":
        # Of 280 scores of any law 120 values come twice, 40 once and none thrice.
        scores, pairs, others = (np.r_[PLAIN[:160], PLAIN[:120]], UNSEEN), 120, (40, 0)
    else:
        # 150 values come once in each group, none twice in one.
        scores, pairs, others = (PLAIN, np.r_[UNSEEN[:150], PLAIN[:150]]), 150, (0, 0)
    p_value = warning(kind, *scores, kind="any").p_value
    given = (1.1 * math.sqrt(2.0 * math.pi * total)) ** (2 if kind == "shared" else 1)
    share = p_value / (3.0 * given)
    limits = [stats.gamma.isf(share, number + 1.0) for number in others]
    assert stats.poisson.sf(pairs - 1, math.sqrt(factor * math.prod(limits))) == pytest.approx(share, rel=1e-3, abs=0.0)


@pytest.mark.parametrize("dim", [DIM, None])
def test_unobserved_cosines_are_of_one_release_unless_they_may_be_the_largest_of_two(dim):
    """The mean of the larger of two is 1/√π, in the null's deviations, or 1/√(π − 1) in their own."""
    of_two = 1.0 / math.sqrt(math.pi) if dim else 1.0 / math.sqrt(math.pi - 1.0)
    for errors, single in ((stats.norm.isf(2.5e-8) + 0.01, True), (stats.norm.isf(2.5e-8) - 0.01, False)):
        unobserved = cosines(of_two - errors / math.sqrt(COUNT), 1.0 if dim else 2.0, seed=1)
        if dim is None:
            unobserved += (of_two - errors / math.sqrt(COUNT)) / ROOT
        facts = _Facts(cosines(0.6), unobserved, True, dim, "fixed", None, None, None, 0, DIM)
        assert facts.is_single_release == single
        # The scale of one release is the deviation about 0.
        scale = 1.0 / ROOT if dim else math.sqrt(np.square(unobserved).mean()) if single else None
        assert facts.scale == (None if scale is None else pytest.approx(scale))
    assert not _Facts(cosines(), None, False, DIM, "fixed", None, None, None, 0, DIM).is_single_release
    assert _Facts(cosines(), None, True, DIM, "fixed", None, None, None, 0, DIM).is_single_release


def test_no_honest_audit_is_warned_of_its_trace():
    """A trace of 10 deviations, in units of a deviation that 300 scores estimate: 2.4% of itself."""
    rng, sigma, count = np.random.default_rng(1), 0.1, 300
    for _ in range(40):
        observed, unobserved = rng.standard_normal((2, count)) / ROOT
        observed += 1.0 / math.sqrt(sigma**2 + count / DIM) / ROOT
        assert misuse(observed, unobserved, noise_multiplier=sigma) == ()


def test_the_trace_of_a_release_varies_by_its_noise_alone():
    """Where noise is short, other canaries would be half of the variance if they were not taken out."""
    count, dim, sigma, runs, rng = 200, 1000, 0.3, 200, np.random.default_rng(0)
    square = 0.0
    for _ in range(runs):
        canaries = rng.standard_normal((count, dim))
        canaries /= np.linalg.norm(canaries, axis=1, keepdims=True)
        rest = sigma * rng.standard_normal(dim)
        along, norm = canaries @ rest, float(np.linalg.norm(rest))
        products = products_with_rest((1.0 + along) / np.sqrt(norm**2 + 2.0 * along + 1.0), norm)
        assert products == pytest.approx(1.0 + along, rel=1e-9, abs=1e-9)
        square += (products.mean() - 1.0) ** 2 * dim / norm**2 * count
    assert 1e-6 < stats.chi2.sf(square, runs) < 1.0 - 1e-6
