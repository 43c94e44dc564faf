"""The tails of lower bounds by simulation."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import optimize, special, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.papers.claims import distributions, final_bounds

DELTA, ROUNDS = 8.2e-7, 500
PROBABILITIES = (0.001, 0.01, 0.1, 0.9, 0.99, 0.999)


@cache
def known(distance: float, runs: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(8)
    return final_bounds.lower_bounds(distance + rng.standard_normal((runs, 1000)), DELTA)


@cache
def sampled(distance: float, runs: int = 3000) -> np.ndarray:
    rng = np.random.default_rng(9)
    null, others = (special.ndtri(rng.random((runs, 1000)) ** (1.0 / n)) for n in (ROUNDS, ROUNDS - 1))
    seen = np.maximum(others, distance + rng.standard_normal((runs, 1000)))
    return final_bounds.sampled_bounds(null, seen, DELTA)


CASES = [
    (distributions.SampledNull(ROUNDS, DELTA), sampled, 2.0),
    (distributions.KnownNull(DELTA), known, 0.9),
    pytest.param(distributions.KnownNull(DELTA), known, 0.1, marks=pytest.mark.deep),
    pytest.param(distributions.SampledNull(ROUNDS, DELTA), sampled, 3.0, marks=pytest.mark.deep),
]


@pytest.mark.parametrize(("law", "draw", "distance"), CASES)
def test_no_tail_is_too_small(law, draw, distance):
    sample = draw(distance)
    for bound in np.quantile(sample, PROBABILITIES):
        for limit, events in (
            (law.at_least(bound, distance), sample >= bound),
            (law.below(bound, distance), sample < bound),
        ):
            assert events.mean() <= limit + 5.0 * np.sqrt(min(limit, 1.0) / sample.size)


@pytest.mark.parametrize(("law", "draw", "distance"), CASES)
def test_both_tails_fall_to_nothing(law, draw, distance):
    median = float(np.median(draw(distance)))
    assert law.at_least(4.0 * median + 30.0, distance) < 1e-9
    above = [law.at_least(bound, distance) for bound in np.linspace(median, 20.0, 30)]
    below = [law.below(bound, distance) for bound in np.linspace(median, 20.0, 30)]
    assert above == sorted(above, reverse=True)
    assert below == sorted(below)
    # Limits are on the safe side, and tell far from near all the same.
    low, high = np.quantile(draw(distance), (0.01, 0.99))
    assert law.below(low, distance) < law.below(high, distance)
    assert law.at_least(high, distance) < 0.1 * law.at_least(low, distance)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(("law", "draw", "distance"), CASES)
def test_another_distance_is_noticed_as_often_as_said(law, draw, distance):
    factor = distributions.noticed_factor(law, distance, 0.01)
    found = max(
        np.mean([distributions.p_value(law, bound, distance) < 0.01 for bound in draw(other, 300)])
        for other in (distance * factor, distance / factor)
    )
    assert found >= 0.9 - 5.0 * np.sqrt(0.09 / 300)


def test_a_bound_far_from_its_distance_is_rejected_and_the_design_tells_by_how_much():
    law = distributions.KnownNull(DELTA)
    p_value, design = distributions.fit(law, [(0.5, 0.9), (0.3, 0.1)])
    assert p_value < design.level
    assert distributions.fit(law, [(3.0, 0.9), (0.3, 0.1)])[0] == 1.0


# The laws of estimates by simulation, by normal cosines drawn one by one.


ESTIMATE_DELTA = 8.2e-7


@pytest.mark.parametrize("mean", [0.0, 0.15, 0.9])
@pytest.mark.parametrize("name", ["fitted", "pinned"])
def test_laws_by_simulation(name: str, mean: float) -> None:
    cosines = mean + np.random.default_rng(6).standard_normal((4000, 1000))
    means, ratios = cosines.mean(axis=1), cosines.std(axis=1)
    fitted = name == "fitted"
    sample = (
        epsilon_estimators.both_directions(ESTIMATE_DELTA, means, ratios)
        if fitted
        else epsilon_estimators.pinned_epsilon(ESTIMATE_DELTA, means)
    )
    values = np.quantile(sample[sample > 0.0], (0.05, 0.3, 0.5, 0.7, 0.95))
    law = (distributions.fitted if fitted else distributions.pinned)(values, mean, ESTIMATE_DELTA)[0]
    for value, probability in zip(values, law, strict=True):
        share = float((sample <= value).mean())
        assert share == pytest.approx(probability, abs=5.0 * math.sqrt(probability * (1.0 - probability) / sample.size))


def test_the_pinned_law_at_its_median() -> None:
    mean = 1.0 / float(gaussian_mechanism.noise_multiplier(3.0, ESTIMATE_DELTA))
    assert distributions.pinned(3.0, mean, ESTIMATE_DELTA)[0, 0] == pytest.approx(0.5, abs=1e-9)


def test_quantiles_and_means_invert_the_law() -> None:
    value = distributions.quantile(distributions.fitted, 1.0 - 1e-7, 0.3, ESTIMATE_DELTA)
    assert 1.0 - distributions.fitted(value, 0.3, ESTIMATE_DELTA)[0, 0] == pytest.approx(1e-7, rel=1e-2)
    assert distributions.mean_at(distributions.fitted, value, 1.0 - 1e-7, ESTIMATE_DELTA) == pytest.approx(
        0.3, abs=1e-4
    )


def test_what_is_noticed_is_noticed_as_often_as_said() -> None:
    # At a level at which a simulation sees it: two-sided, 0.02.
    far = distributions.noticed_mean(0.3, ESTIMATE_DELTA, 0.02)
    rng = np.random.default_rng(7)
    ratios = np.sqrt(rng.chisquare(999, 4000) / 1000)
    sample = epsilon_estimators.both_directions(
        ESTIMATE_DELTA, far + rng.standard_normal(4000) / math.sqrt(1000), ratios
    )
    p_values = distributions.two_sided(distributions.fitted(sample, 0.3, ESTIMATE_DELTA)[0])
    assert (p_values < 0.02).mean() == pytest.approx(0.9, abs=5.0 * math.sqrt(0.09 / 4000))


def test_two_estimates_of_one_mean_and_of_two() -> None:
    assert distributions.same_mean(3.0, 3.0, ESTIMATE_DELTA) == 1.0
    assert distributions.same_mean(1.0, 9.0, ESTIMATE_DELTA) < 1e-9
    far = distributions.noticed_beside(3.0, ESTIMATE_DELTA, 1e-6)
    assert distributions.same_mean(3.0, far, ESTIMATE_DELTA) < 1e-6


def test_bounds_share_the_level_of_their_fit():
    law, row = distributions.KnownNull(1e-6), (0.5, 0.5)
    single = distributions.p_value(law, *row)
    assert 0.0 < single < 0.2
    for count in (1, 3, 5):
        assert distributions.fit(law, [row] * count)[0] == pytest.approx(count * single)


def test_each_of_two_estimates_leaves_every_mean_between_as_often_as_said() -> None:
    # Both together miss a tenth, each half of it. The level is one that a simulation of either sees.
    level, epsilon, rng = 1e-4, 3.0, np.random.default_rng(14)
    far = distributions.noticed_beside(epsilon, ESTIMATE_DELTA, level)
    noises = gaussian_mechanism.noise_multiplier([epsilon, far], ESTIMATE_DELTA)
    samples = [
        epsilon_estimators.both_directions(
            ESTIMATE_DELTA,
            1.0 / noise + rng.standard_normal(4000) / math.sqrt(1000),
            np.sqrt(rng.chisquare(999, 4000) / 1000),
        )
        for noise in noises
    ]
    means = np.linspace(*(1.0 / noises), 150)[50:-50]
    seen = [
        (distributions.two_sided(distributions.fitted(sample, means, ESTIMATE_DELTA)) < 0.5 * level).mean(axis=1)
        for sample in samples
    ]
    # At the mean at which they are seen alike, by 150 steps of the distance.
    assert np.minimum(*seen).max() == pytest.approx(0.95, abs=5.0 * math.sqrt(0.95 * 0.05 / 4000) + 0.01)


@pytest.mark.parametrize("rows", [1, 100])
def test_a_distance_that_is_noticed_is_by_the_level_of_one_bound(rows: int) -> None:
    class Normal:
        """Bounds with the law N(2, 1) at a distance of 1; none is too small to be chance."""

        def at_least(self, bound: float, distance: float) -> float:
            return float(stats.norm.sf(bound - 2.0 * distance))

        def below(self, bound: float, distance: float) -> float:
            return float(stats.norm.cdf(bound - 2.0 * distance))

    joint, design = distributions.fit(Normal(), [(6.0, 1.0)] * rows)
    assert joint == pytest.approx(min(1.0, rows * 2.0 * float(stats.norm.sf(4.0))))
    noticed = 1.0 + 0.5 * (stats.norm.isf(0.5e-6 / rows) + stats.norm.isf(0.1))
    listed = design.alternative.removeprefix("in one row the distance is off by a factor of ").split(", ")
    # Factors are upper limits, a few steps of the search above, and have two digits.
    assert len(listed) == rows
    assert noticed - 0.05 <= float(listed[0]) <= 1.02 * noticed + 0.05


@pytest.mark.parametrize("level", [1e-6, 1e-2])
@pytest.mark.parametrize("larger", [True, False])
def test_a_distance_is_noticed_at_half_the_level_on_either_side(level: float, larger: bool) -> None:
    class OneSided:
        """Bounds with the law N(8, 1) at a distance of 1, and moved by 8 times the distance to one side alone."""

        def at_least(self, bound: float, distance: float) -> float:
            return float(stats.norm.sf(bound - 8.0 * distance))

        def below(self, bound: float, distance: float) -> float:
            return 1.0 if distance > 1.0 and not larger else float(stats.norm.cdf(bound - 8.0 * distance))

    # The upper tenth, or the lower one, is where the tail of the null has half the level. From above it is nearer.
    reach = (stats.norm.isf(0.5 * level) + stats.norm.isf(0.1)) / 8.0
    noticed = 1.0 + reach if larger else 1.0 / (1.0 - reach)
    found = distributions.noticed_factor(OneSided(), 1.0, level)
    # The answer is an upper limit, a step or two of its search above.
    assert noticed * 0.999 <= found <= noticed * math.exp(0.021)


def test_two_estimates_are_of_one_mean_by_the_tails_of_the_mean_between() -> None:
    def tails(mean: float) -> tuple[float, float]:
        low, high = distributions.fitted([1.0, 1.6], mean, ESTIMATE_DELTA)[0]
        return float(low), 1.0 - float(high)

    mean = optimize.brentq(lambda m: tails(m)[0] - tails(m)[1], 0.05, 0.6)
    # Each is two-sided, and there are two.
    assert distributions.same_mean(1.0, 1.6, ESTIMATE_DELTA) == pytest.approx(4.0 * tails(mean)[0], rel=0.01)
