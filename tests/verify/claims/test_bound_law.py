"""The tails of lower bounds by simulation."""

from functools import cache

import numpy as np
import pytest
from scipy import special

from canaryproof.verify.claims import final_bounds, laws

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
    (laws.KnownNull(DELTA), known, 0.1),
    (laws.KnownNull(DELTA), known, 0.9),
    (laws.SampledNull(ROUNDS, DELTA), sampled, 2.0),
    (laws.SampledNull(ROUNDS, DELTA), sampled, 3.0),
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


@pytest.mark.parametrize(("law", "draw", "distance"), CASES)
def test_another_distance_is_noticed_as_often_as_said(law, draw, distance):
    factor = laws.noticed(law, distance, 0.01)
    found = max(
        np.mean([laws.p_value(law, bound, distance) < 0.01 for bound in draw(other, 300)])
        for other in (distance * factor, distance / factor)
    )
    assert found >= 0.9 - 5.0 * np.sqrt(0.09 / 300)


def test_a_bound_far_from_its_distance_is_rejected_and_the_design_tells_by_how_much():
    law = laws.KnownNull(DELTA)
    p_value, design = laws.fit(law, [(0.5, 0.9), (0.3, 0.1)])
    assert p_value < design.level
    assert laws.fit(law, [(3.0, 0.9), (0.3, 0.1)])[0] == 1.0
