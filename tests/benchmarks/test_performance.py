import copy
import math
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from hypothesis import given

from canaryproof.verify.audit.markup.figures import svg
from tests.benchmarks import performance
from tests.benchmarks.performance import digits, render
from tests.reports.damage import FEW, damaged, reported_or_refused


def timing(label, seconds, error=1e-4, threads=2, share=1.0, coordinates=2 * 10**9):
    return {
        "label": label,
        "coordinates": coordinates,
        "threads": threads,
        "share": share,
        "seconds": seconds,
        "error": error,
        "repetitions": 7,
    }


def block(rounds):
    rows = [
        timing("block_cosines", 0.2),
        timing("canaries made, no product", 0.12),
        timing("stored, V Cᵀ", 0.15),
        timing("stored, C Vᵀ", 0.1),
        timing("numpy, PCG64", 40.0, share=0.01),
    ]
    return {"rounds": rounds, "timings": rows, "largest_difference": 1.234e-6}


DOCUMENT = {
    "environment": {"processor": "A Processor", "numpy": "2.4"},
    "size": {
        "name": "full",
        "repetitions": 7,
        "dim": 2**20,
        "count": 1000,
        "rounds_dim": 2**18,
        "rounds_count": 1000,
        "blocks": [32, 64],
        "orthonormal": [1000, 10000],
    },
    "threads": 2,
    "algorithm_1": [
        timing("canaryproof", 1.6, threads=1),
        timing("canaryproof", 0.8123),
        timing("numpy, PCG64", 12.345, error=0.9, share=0.05),
        {"label": "JAX, threefry", "skipped": "jax is not installed"},
    ],
    "stored": timing("stored canaries", 0.1, coordinates=10**9),
    "rounds": [block(32), block(64)],
    "square": timing("square product", 0.05),
    "scaling": {
        "cells": [[10**5, 1000], [10**5, 10000], [10**8, 10]],
        "timings": [timing("canaryproof", s, coordinates=w) for s, w in ((0.1, 10**8), (1.0, 10**9), (1.1, 10**9))],
        "slope": 1.0123,
        "slope_error": 0.02,
    },
    "orthonormal": {
        "algorithm_1": [
            *(timing("orthonormal", 0.1), timing("independent", 1.6), timing("the transforms alone", 0.08)),
            *(timing("orthonormal", 0.125), timing("independent", 16.0, share=0.1), timing("transforms", 0.08)),
        ],
        "rounds": [timing("orthonormal", 0.2), timing("independent", 0.4), timing("transforms", 0.16)],
    },
    "memory": [
        {"label": "Algorithm 1", "dim": 2**20, "count": 1000, "vectors": 8388608, "extra": 33558528},
        {"label": "RoundScores", "skipped": "this platform has no such file"},
    ],
    "bits": [{"label": "coordinates", "threads_agree": True, "runs_agree": False}],
    "instructions": [{"label": "canaryproof", "tool": "perf", "instructions": 15.6789}],
    "arithmetic": {"instructions": 4.78125, "lanes": 16},
    "targets": [
        {"statement": "times faster", "sense": "≥", "bound": 12.0, "measured": 15.1976, "error": 1.1, "met": True},
        {"statement": "ns", "sense": "≤", "bound": 0.4, "measured": 0.40615, "error": 0.0005, "met": False},
        {"statement": "MB", "sense": "≤", "bound": 64.0, "measured": None, "error": None, "met": None},
    ],
}


@pytest.fixture(scope="module")
def page():
    return render(DOCUMENT)["performance.md"]


def test_aims_stand_beside_what_was_measured(page):
    assert "| times faster | ≥ 12 | 15 | met |" in page
    assert "| ns | ≤ 0.4 | 0.406 | not met |" in page
    assert "| MB | ≤ 64 | — | not measured |" in page


def test_orthonormal_canaries_stand_beside_independent_ones_and_their_transforms(page):
    assert "| Algorithm 1, k = 10,000 | 0.125 | 16.0 | 130 | 2.10 | 0.0800 | 128 | 1.56 |" in page
    assert "| a block of 32 rounds, k = 1,000 | 0.200 | 0.400 | 40.0 | 0.100 | 0.160 | 2.00 | 1.25 |" in page


@pytest.mark.parametrize(
    ("sense", "measured", "error", "text"),
    [
        ("≥", 11.7, 1.0, "11.7 | not met"),
        ("≥", 11.9996, 1.0, "11.9996 | not met"),
        ("≥", 12.3, 1.0, "12 | met"),
        ("≥", 12.0, 1.0, "12 | met"),
        ("≤", 12.3, 1.0, "12.3 | not met"),
        ("≤", 11.7, 1.0, "12 | met"),
        ("≤", math.nextafter(12.0, 13.0), 1.0, "12.000000000000002 | not met"),
    ],
)
def test_what_was_measured_is_on_the_side_of_the_aim_that_it_is_said_to_be(sense, measured, error, text):
    met = measured >= 12.0 if sense == "≥" else measured <= 12.0
    target = {"statement": "x", "sense": sense, "bound": 12.0, "measured": measured, "error": error, "met": met}
    (row,) = performance.sections({**DOCUMENT, "targets": [target]})[0].rows
    assert row == ("x", f"{sense} 12", *text.split(" | "))


def test_algorithm_1_is_compared(page):
    assert "| canaryproof | 2 | 0.812 | 0.406 | 1.00 |" in page
    assert "| numpy, PCG64 |  | 12 | 6.2 | 15 |" in page
    assert "| JAX, threefry |  | skipped: jax is not installed |  |  |" in page
    assert "those of 5% of the work" in page
    # 0.1 ns to read a coordinate, 0.406 to make it; 4 GB in 0.1 s.
    assert "of 4.00 GB in memory, at 40.0 GB/s" in page
    assert "at 25% of the speed of one that is read" in page
    # 2·10⁹ multiply-adds in 0.05 s, 16 at a time: 2.5 a nanosecond. Ours takes 0.40615 ns.
    assert "takes 4.78 vector instructions of 16 lanes" in page
    assert "comes to 2.50 multiply-adds of as many lanes" in page
    assert "the instructions alone take 1.91 ns, 471% of a pass" in page


def test_what_making_canaries_takes_limits_both_algorithms(page):
    # 6.17 ns against 0.06 ns a coordinate, and 0.12 s more than the 0.1 s of the BLAS.
    assert "did nothing with them would be 100 times faster than numpy's" in page
    assert "takes 2.2 times a BLAS with stored canaries with 32 rounds, and 2.2 times a BLAS with stored" in page


def test_instructions_that_were_not_counted_are_not_spoken_of():
    other = DOCUMENT | {"arithmetic": {"label": "arithmetic", "skipped": "none found"}}
    assert "vector instructions" not in render(other)["performance.md"]


def test_more_canaries_of_a_dimension_are_priced(page):
    # 0.9 s for 9·10⁸ more; of d = 10⁸ there is one number only.
    assert "each k·d more takes 1.00 ns at d = 100,000. Beyond" in page


def test_algorithm_3_is_compared(page):
    assert "|  | seconds, 32 rounds | times ours | seconds, 64 rounds | times ours |" in page
    assert "| stored, C Vᵀ | 0.100 | 0.500 | 0.100 | 0.500 |" in page
    assert "with 32 rounds block_cosines reaches 50% of the flops" in page
    assert "and 25% of those of its product of square matrices (80.0 Gflop/s)" in page
    assert "at most 1.2e-06/√d" in page


def test_the_rest_is_there(page):
    assert "| 100,000,000 | 10 | 1.10 | 1.10 |" in page
    assert "1.01 ± 0.02 (1 is linear)" in page
    assert "| Algorithm 1 | 1,048,576 | 1,000 | 8.4 | 33.6 |" in page
    assert "| RoundScores |  |  |  | skipped: this platform has no such file |" in page
    assert "| coordinates | the same bits | differ |" in page
    assert "| canaryproof | perf | 15.7 |" in page
    assert "A Processor" in page


def test_numbers_follow_the_document():
    other = copy.deepcopy(DOCUMENT)
    other["algorithm_1"][1]["seconds"] = 0.9
    assert "| canaryproof | 2 | 0.900 | 0.450 | 1.00 |" in render(other)["performance.md"]


def test_pictures_are_there_and_have_alternatives(page):
    files = render(DOCUMENT)
    pictures = [name for name in files if name.endswith(".svg")]
    assert len(pictures) == 3
    for name in pictures:
        ElementTree.fromstring(files[name])
        assert f"]({name})" in page
    assert "![]" not in page
    assert files == render(DOCUMENT)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (152.34, 0.1, "152"),
        (152.34, 10.0, "150"),
        (0.15, 0.0, "0.150"),
        (0.40615, 0.1, "0.41"),
        (12.0, 0.0, "12.0"),
        (1234567.0, 0.0, "1.23e+06"),
        (1.2345e-5, 1e-5, "1.2e-05"),
    ],
)
def test_digits_are_what_repetitions_earn(value, error, text):
    assert digits(value, error) == text


def test_sections_serve_the_terminal_too():
    for section in performance.sections(DOCUMENT):
        assert all(len(row) == len(section.header) for row in section.rows)


@FEW
@given(document=damaged(DOCUMENT))
def test_a_damaged_document_is_reported_or_refused(tmp_path, document):
    reported_or_refused(tmp_path, performance=document)


ROW = {"label": "canaryproof", "threads": 1, "seconds": 1.0, "coordinates": 10**9}


@pytest.fixture(autouse=True)
def text(monkeypatch):
    """Write letters, not their outlines."""
    monkeypatch.setitem(performance.STYLE, "svg.fonttype", "none")


def test_bars_are_named_and_have_their_values():
    numpy = {**ROW, "label": "numpy, PCG64", "seconds": 6.7}
    skipped = {"label": "JAX, threefry", "skipped": "jax is not installed"}
    drawn = svg(performance.coordinates({"algorithm_1": [ROW, numpy, skipped], "stored": {**ROW, "seconds": 0.125}}))
    for words in ("canaryproof, 1 thread", "numpy, PCG64", "memory, stored canaries", ">6.7<", ">0.12<"):
        assert words in drawn
    assert "JAX" not in drawn


def test_each_block_of_rounds_has_a_panel():
    rows = [{**ROW, "label": label} for label in ("block_cosines", "cosines, float64", "stored, V Cᵀ")]
    drawn = svg(performance.rounds({"rounds": [{"rounds": n, "timings": rows} for n in (32, 64)]}))
    assert "32 rounds at once" in drawn
    assert "64 rounds at once" in drawn


def test_points_are_told_apart_by_dimension():
    cells = [[10**5, 10], [10**5, 100], [10**6, 10]]
    timings = [{"coordinates": d * k, "seconds": 1e-9 * d * k} for d, k in cells]
    drawn = svg(performance.scaling({"scaling": {"cells": cells, "timings": timings}}))
    assert "d = 100,000" in drawn
    assert "d = 1,000,000" in drawn
    assert "slope 1" in drawn


def test_the_style_of_others_is_left_alone():
    before = dict(mpl.rcParams)
    performance.coordinates({"algorithm_1": [ROW], "stored": ROW})
    assert dict(mpl.rcParams) == before
