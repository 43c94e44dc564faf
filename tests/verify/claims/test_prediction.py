import math

import numpy as np
import pytest

from canaryproof.verify.check.results import Verdict
from canaryproof.verify.claims import prediction

CONFIRMED, QUALIFIED, REFUTED, INCONCLUSIVE, NEEDS_DATA = Verdict


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("logarithmic", [False, True])
def test_students_interval_misses_a_further_draw_as_often_as_it_says(logarithmic):
    rng = np.random.default_rng(11)
    draws = rng.normal(3.0, 0.2, (4000, 5))
    draws = np.exp(draws) if logarithmic else draws
    missed = 0
    for row in draws:
        low, high = prediction.student(row[:4].tolist(), 0.05, logarithmic=logarithmic)
        missed += not low <= row[4] <= high
    # 200 are expected; 5 standard deviations.
    assert abs(missed - 200) < 5 * math.sqrt(190)


@pytest.mark.parametrize(
    ("printed", "values", "interval", "verdict"),
    [
        ("1.97", [1.9], (1.5, 2.4), CONFIRMED),
        ("2.44", [1.9], (1.5, 2.436), CONFIRMED),
        ("3.0", [1.9], (1.5, 2.4), QUALIFIED),
        ("5.0", [1.9], (1.5, 2.4), REFUTED),
        ("0.3", [0.5], (0.2, 0.9), INCONCLUSIVE),
        ("0.9", [0.5], (0.3, 1.1), INCONCLUSIVE),
        ("9.9", [0.5], (-0.1, 0.9), REFUTED),
        ("inf", [math.inf, math.inf], None, CONFIRMED),
        ("inf", [math.inf, 3.0], None, REFUTED),
        ("3.0", [math.inf], None, REFUTED),
        ("3.0", [math.nan], None, INCONCLUSIVE),
    ],
)
def test_a_printed_number(printed, values, interval, verdict):
    assert prediction.number("ε", printed, values, interval).verdict is verdict


@pytest.mark.parametrize(
    ("heights", "verdict"),
    [((5.0, 6.0), CONFIRMED), ((5.0, 0.1), INCONCLUSIVE), ((5.0, -6.0), REFUTED)],
)
def test_an_order(heights, verdict):
    steps = [(str(i), height, 1.0) for i, height in enumerate(heights)]
    assert prediction.order("it", steps, 0.01).verdict is verdict


def test_steps_of_an_order_share_its_level():
    def verdict(*heights):
        return prediction.order("it", [(str(i), 3.0 * height, 3.0) for i, height in enumerate(heights)], 0.01).verdict

    # One step is seen at 1% from 2.33 errors on, each of four from 2.81 on.
    assert (verdict(2.5), verdict(2.3)) == (CONFIRMED, INCONCLUSIVE)
    assert (verdict(2.85, 9.0, 9.0, 9.0), verdict(2.5, 9.0, 9.0, 9.0)) == (CONFIRMED, INCONCLUSIVE)
    assert (verdict(9.0, 9.0, 9.0, -2.85), verdict(9.0, 9.0, 9.0, -2.5)) == (REFUTED, INCONCLUSIVE)


def test_the_worst_part_decides():
    order = (REFUTED, INCONCLUSIVE, QUALIFIED, CONFIRMED)
    for i, first in enumerate(order):
        for second in order[i:]:
            parts = [prediction.Part(second, ""), prediction.Part(first, "")]
            assert prediction.worst(parts) is prediction.worst(parts[::-1]) is first
