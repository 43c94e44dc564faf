import math
from types import SimpleNamespace

import numpy as np
import pytest

from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims import prediction
from canaryproof.verify.papers.claims.experiment_results import FinishedExperiment

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


@pytest.mark.parametrize(
    ("printed", "values", "interval", "verdict", "text"),
    [
        ("1.97", [1.9], (1.5, 2.4), CONFIRMED, "ε 1.97, measured 1.9 (1.5 to 2.4)"),
        # The median is 2, and three are halfway to 4.
        ("3.0", [1.9, 2.0, 2.5], (1.5, 2.4), QUALIFIED, "ε 3.0, measured 1.9, 2, 2.5 (1.5 to 2.4), a factor of 1.5"),
        ("4.0", [2.0], (1.5, 2.4), QUALIFIED, "ε 4.0, measured 2 (1.5 to 2.4), a factor of 2"),
        ("4.1", [2.0], (1.5, 2.4), REFUTED, "ε 4.1, measured 2 (1.5 to 2.4), a factor of 2"),
        ("1.0", [2.0], (1.5, 2.4), QUALIFIED, "ε 1.0, measured 2 (1.5 to 2.4), a factor of 0.5"),
        ("0.9", [2.0], (1.5, 2.4), REFUTED, "ε 0.9, measured 2 (1.5 to 2.4), a factor of 0.45"),
        # What prints so reaches the interval, on either side.
        ("1.4", [2.0], (1.449, 2.4), CONFIRMED, "ε 1.4, measured 2 (1.45 to 2.4)"),
        ("2.5", [2.0], (1.449, 2.451), CONFIRMED, "ε 2.5, measured 2 (1.45 to 2.45)"),
        ("2.0", [2.0], (1.0, 3.9), INCONCLUSIVE, "ε 2.0, measured 2 (1 to 3.9), too wide"),
        ("2.0", [2.0], (1.1, 4.0), INCONCLUSIVE, "ε 2.0, measured 2 (1.1 to 4), too wide"),
        ("2.0", [2.0], (1.1, 3.9), CONFIRMED, "ε 2.0, measured 2 (1.1 to 3.9)"),
        ("2.0", [-1.0], (-3.0, 1.0), REFUTED, "ε 2.0, measured -1 (-3 to 1), a factor of inf"),
        ("2.0", [2.0], None, INCONCLUSIVE, "ε 2.0, measured 2, which decides nothing"),
        ("inf", [3.0], (2.0, 4.0), REFUTED, "ε inf, measured 3"),
        # A mean of 2.5, and a sum of squares of 5 on 3 degrees of freedom.
        ("2.5", [1.0, 2.0, 3.0, 4.0], (2.0, 3.0), CONFIRMED, "ε 2.5, measured 2.5 ± 1.3 in 4 (2 to 3)"),
    ],
)
def test_what_is_said_of_a_printed_number(printed, values, interval, verdict, text):
    assert prediction.number("ε", printed, values, interval) == prediction.Part(verdict, text)


def test_a_number_that_tells_little_is_let_pass():
    wide = prediction.number("ε", "2.0", [2.0], (0.5, 9.0), telling=False)
    assert wide == prediction.Part(CONFIRMED, "ε 2.0, measured 2 (0.5 to 9)")


def test_what_is_said_of_an_order():
    def said(*heights):
        return prediction.order("it", [(f"step {i}", height, 1.0) for i, height in enumerate(heights)], 0.01).text

    assert said(9.0, 9.0) == "it rises in all 2"
    assert said(9.0, 0.0, -9.0, -9.0) == "it falls at step 2, step 3"
    assert said(9.0, 0.0, -1.0) == "it rises in 1 of 3; not seen: step 1, step 2"


def experiment(*settings, unstated=()):
    return FinishedExperiment("x", "full", "place", unstated, tuple(SimpleNamespace(settings=one) for one in settings))


def test_what_is_said_of_readings():
    part = prediction.Part
    made = experiment(
        {"a.rate": 0.1, "a.name": "x"}, {"a.rate": 0.1, "a.name": "y"}, unstated=("a.rate", "a.name", "a.none")
    )
    ours = "not stated, and ours: a.rate 0.1; a.name 'x', 'y'; a.none None"
    judged = {
        "as printed": [part(CONFIRMED, "one"), part(REFUTED, "two")],
        "second": [part(QUALIFIED, "three")],
        "third": [part(CONFIRMED, "four"), part(CONFIRMED, "five")],
        "fourth": [part(CONFIRMED, "six")],
    }
    found = prediction.readings(judged, made, more=7)
    assert (found.verdict, found.finding) == (
        QUALIFIED,
        f"only third (four: confirmed; five: confirmed); as printed: one; two; {ours}",
    )
    assert found.evidence == {
        "readings": {"as printed": "refuted", "second": "qualified", "third": "confirmed", "fourth": "confirmed"},
        "folder": "place",
        "more": 7,
    }
    for first in Verdict:
        if first is not NEEDS_DATA:
            judged = {"as printed": [part(first, "one")], "second": [part(QUALIFIED, "two")]}
            found = prediction.readings(judged, made)
            assert (found.verdict, found.finding) == (first, f"one: {first}; {ours}")
    first = {"as printed": [part(CONFIRMED, "one")], "second": [part(CONFIRMED, "two")]}
    assert prediction.readings(first, made).verdict is CONFIRMED


def test_cells_are_those_of_the_settings_as_printed():
    made = experiment(
        {"a.noise": 0.0986, "a.runs": 1},
        {"a.noise": 0.0987, "a.runs": 1},
        {"a.noise": 0.0986, "a.runs": 10, "b.name": "change"},
    )
    first, second, third = made.cells
    assert prediction.cells(made, a__noise="0.0986") == [first, third]
    assert prediction.cells(made, a__noise="0.0987", a__runs=1) == [second]
    assert prediction.cells(made, b__name="change") == [third]
    assert prediction.cells(made) == [first, second, third]
    assert prediction.only_cell(made, a__noise="0.0986") is None
    assert prediction.only_cell(made, a__noise="0.0985") is None
    assert prediction.only_cell(made, a__noise="0.0986", a__runs=10) is third
