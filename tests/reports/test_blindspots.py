import dataclasses
import itertools
import math
from xml.etree import ElementTree

import pytest
from matplotlib.colors import to_hex, to_rgb

from canaryproof.reports import blindspots
from canaryproof.reports.blindspots import Visibility, atlas, sight, sight_of_test
from canaryproof.reports.html import tables
from canaryproof.reports.pages import render
from canaryproof.verify.audit.blindspots.fault_map import COLUMNS, fault_map
from canaryproof.verify.audit.markup.figures import BLACK, BLUE, GREEN, GREY, ORANGE
from canaryproof.verify.papers.check.results import Effort, Run
from tests.reports import made_up


def said(epsilon, alarms=0):
    return {
        "epsilon": [0.9 * epsilon, epsilon, 1.1 * epsilon],
        "alarms": alarms,
        "runs": 10,
        "low": 0.0,
    }


def cell(value, truth, unlimited, rate, count=1000, canife=3.0):
    names = {"adaptive": unlimited, "fixed-sequence": 0.5 * unlimited, "normal-scores": unlimited, "canife": 2.6}
    return {
        "value": value,
        "count": count,
        "exact": count == 100,
        "truth": [truth, truth],
        "distance": 1.0,
        "runs": 400,
        "rate": [rate, 0.0, 1.0],
        "predicted": rate,
        "unlimited": [unlimited, unlimited],
        "canife": canife,
        "methods": {name: said(epsilon) for name, epsilon in names.items()},
    }


def mechanism(name, *rows, diagnosed=()):
    evidence = {
        "title": f"a fault, {name}",
        "parameter": f"how much of {name}",
        "claimed": {"epsilon": 3.0, "delta": 1e-5, "noise_multiplier": 1.39},
        "dim": 10**6,
        "reason": "a reason",
        "leading_order": [1000],
        "margin": 1.02,
        "cells": [
            dict(zip(("value", "truth", "unlimited", "rate", "count"), (*row, count), strict=True))
            for row in rows
            for count in (100, 1000)
        ],
        "diagnosed": list(diagnosed),
    }
    evidence["cells"] = [cell(**row) for row in evidence["cells"]]
    return dataclasses.replace(
        made_up.claim(f"ours.{name}", suite="blindspots", **evidence), id=f"blindspots.atlas.{name}"
    )


DIAGNOSED = [
    {"value": 1.0, "tests": {"norm": {"p_value": 0.5, "alarms": 1, "rate": [0.05, 0.0, 0.1]}}, "confined": None},
    {"value": 0.5, "tests": {"norm": {"p_value": 0.0, "alarms": 20, "rate": [1.0, 0.9, 1.0]}}, "confined": 1.0},
]
RUN = Run(
    "0",
    Effort.QUICK,
    0,
    (
        mechanism("seen", (1.0, 3.0, 3.0, 0.05), (0.5, 6.7, 6.7, 1.0), diagnosed=DIAGNOSED),
        mechanism("missed", (0.0, 3.0, 3.0, 0.05), (0.1, math.inf, 3.2, 0.3)),
        mechanism("hidden", (0.0, 3.0, 3.0, 0.05), (1.0, math.inf, 3.0, 0.05), (math.inf, math.inf, 0.0, 0.0)),
        mechanism("honest", (1.0, 3.0, 3.0, 0.05), (2.0, 3.0, 6.7, 1.0)),
    ),
)


def test_verdicts_follow_the_numbers():
    found = atlas(RUN)
    assert {name: sight(one, "adaptive").verdict for name, one in found.items()} == {
        "seen": Visibility.SEES,
        "missed": Visibility.MISSES,
        "hidden": Visibility.CANNOT,
        "honest": Visibility.NOTHING,
    }
    assert sight(found["honest"], "adaptive").rate == 1.0
    assert sight(found["seen"], "fixed-sequence").verdict is Visibility.MISSES
    assert sight(found["seen"], "canife").verdict is Visibility.CANNOT
    assert sight(found["seen"], "one-run") is None
    assert (
        sight_of_test(found["seen"], "norm").verdict
        is sight_of_test(found["seen"], "confined").verdict
        is Visibility.SEES
    )
    assert sight_of_test(found["missed"], "norm") is None


def test_what_nobody_can_see_goes_by_the_limit_of_the_method():
    # CANIFE has a limit of its own; of the others it is that of many canaries. The margin is 2% above ε = 3.
    claimed, row = (1.0, 3.0, 3.0, 0.05), (0.5, 6.7, 6.7, 0.3)
    for canife, unlimited, expected in (
        (3.05, 3.07, {"adaptive": Visibility.MISSES, "canife": Visibility.CANNOT}),
        (3.07, 3.05, {"adaptive": Visibility.CANNOT, "canife": Visibility.MISSES}),
    ):
        result = mechanism("some", claimed, row)
        result.evidence["cells"][-1] |= {"canife": canife, "unlimited": [9.0, unlimited]}
        (measured,) = atlas(Run("0", Effort.QUICK, 0, (result,))).values()
        assert {name: sight(measured, name).verdict for name in expected} == expected


@pytest.mark.parametrize(
    ("rate", "expected", "without_more_to_see"),
    [(0.9, Visibility.SEES, Visibility.SEES), (0.8975, Visibility.MISSES, Visibility.CANNOT)],
)
def test_nine_audits_of_ten_see_a_fault(rate, expected, without_more_to_see):
    result = mechanism("some", (1.0, 3.0, 3.0, 0.05), (0.5, 6.7, 6.7, rate))
    result.evidence["diagnosed"] = [
        DIAGNOSED[0],
        {"value": 0.5, "tests": {"norm": {"p_value": 0.0, "alarms": 9, "rate": [rate, 0.0, 1.0]}}, "confined": rate},
    ]
    (measured,) = atlas(Run("0", Effort.QUICK, 0, (result,))).values()
    sights = sight(measured, "adaptive"), *(sight_of_test(measured, test) for test in ("norm", "confined"))
    assert {each.verdict for each in sights} == {expected}
    # What hardly exceeds the claim, by 2%, no number of canaries shows.
    result.evidence["cells"][-1]["unlimited"] = [9.0, 1.02 * 3.0]
    (measured,) = atlas(Run("0", Effort.QUICK, 0, (result,))).values()
    assert sight(measured, "adaptive").verdict is without_more_to_see


def test_rates_and_medians_are_those_of_the_method_at_the_worst_row():
    result = mechanism("some", (0.0, 3.0, 3.0, 0.05), (0.1, math.inf, 3.2, 0.3))
    row = result.evidence["cells"][-1]
    row["methods"]["normal-scores"] |= {"alarms": 37, "runs": 100, "epsilon": [1.0, 2.75, 4.0]}
    # The default has a rate of its own, of more audits.
    row["methods"]["adaptive"] |= {"alarms": 9}
    (measured,) = atlas(Run("0", Effort.QUICK, 0, (result,))).values()
    assert sight(measured, "normal-scores") == blindspots.Sight(Visibility.MISSES, 0.37, 2.75)
    assert sight(measured, "adaptive").rate == row["rate"][0] == 0.3


def test_the_folder_has_the_page_and_a_picture_of_each_mechanism():
    files = render(RUN)
    names = [f"blindspots-{name}.svg" for name in ("matrix", *atlas(RUN))]
    page = files["blindspots.md"].decode()
    assert "so many audits or more: 400 by `adaptive`; 10 by `fixed-sequence`, `normal-scores`, `canife`." in page
    for name in names:
        assert ElementTree.fromstring(files[name]).tag.endswith("svg")
        assert f"]({name})" in page
    assert "[blindspots.md](blindspots.md)" in files["summary.md"].decode()
    assert "| `missed` | ∞ | ○ 30%; 3.2 |" in page
    assert "where k is 100, and the leading order of it where k is 1,000" in page


def test_a_run_without_the_atlas_has_no_page():
    empty = dataclasses.replace(RUN, results=())
    assert blindspots.text(empty) == ""
    assert blindspots.figures(empty) == {}
    assert "blindspots.md" not in render(empty)


def test_the_chapter_is_in_the_report():
    page = made_up.page_of(*RUN.results)
    assert 'id="blindspots"' in page
    assert page.count('id="picture-blindspots-') >= len(RUN.results) + 1
    assert "Matrix of 4 mechanisms" in page


@pytest.mark.parametrize("name", list(atlas(RUN)))
def test_pictures_have_labelled_axes_and_one_shape(name):
    figure = blindspots.figures(RUN)[blindspots.picture_name(name)]
    (axis,) = figure.axes
    assert axis.get_xlabel() == f"how much of {name}"
    assert axis.get_ylabel()
    assert axis.get_ylim() == (0.1, 200.0)
    assert tuple(figure.get_size_inches()) == (7.2, 2.9)


def named(figure, method):
    """Points of the line that a mechanism's picture has for a method."""
    colour, marker = blindspots._DRAWN[method]
    (axis,) = figure.axes
    (line,) = (one for one in axis.get_lines() if (one.get_color(), one.get_marker()) == (colour, marker))
    return line.get_xydata().tolist()


def test_a_mechanisms_picture_has_medians_bands_truth_and_claim():
    # At the second value the truth is beyond the picture; the default's ε̂ is below it at the third one.
    result = mechanism(
        "some", (0.5, 4.0, 4.5, 0.1), (1.0, 500.0, 6.0, 0.5), (2.0, math.inf, 0.02, 0.5), (3, 200.0, 7, 1.0)
    )
    (measured,) = atlas(Run("0", Effort.QUICK, 0, (result,))).values()
    figure = blindspots.mechanism(measured)
    (axis,) = figure.axes
    assert named(figure, "adaptive") == [[0, 4.5], [1, 6.0], [2, 0.1], [3, 7.0]]
    assert named(figure, "fixed-sequence") == [[0, 2.25], [1, 3.0], [2, 0.1], [3, 3.5]]
    assert named(figure, "normal-scores") == named(figure, "adaptive")
    assert named(figure, "canife") == [[i, 2.6] for i in range(4)]
    lines = [(line.get_color(), line.get_linestyle(), line.get_xydata().tolist()) for line in axis.get_lines()]
    assert (GREY, "--", [[-0.45, 3.0], [3.0, 3.0]]) in lines
    assert (BLACK, "-", [[0.0, 4.0], [1.0, 200.0], [2.0, 200.0], [3.0, 200.0]]) in lines
    # From the lower to the upper quartile, 0.9 and 1.1 of the median.
    bands = {tuple(map(tuple, band.get_facecolor()[:, :3])): band for band in axis.collections}
    assert len(bands) == len(axis.collections) == 4
    band = bands[(to_rgb(BLUE),)].get_paths()[0].vertices
    for position, median in ((0, 4.5), (1, 6.0)):
        assert {y for x, y in band if x == position} == {0.9 * median, 1.1 * median}
    shown = {text.get_text(): text for text in axis.texts}
    # The truth is written where an arrow leaves the picture, and there alone; others have a dash.
    dashes = [line.get_xydata().tolist() for line in axis.get_lines() if line.get_marker() == "_"]
    assert dashes == [[[0, 4.0]], [[3, 200.0]]]
    assert [shown[words].xy for words in ("500", "∞")] == [(1, 200.0), (2, 200.0)]
    assert "4" not in shown
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0.5", "1", "2", "3"]
    assert axis.get_xlim() == (-0.45, pytest.approx(3.6))
    assert axis.get_yscale() == "log"
    assert [label.get_text() for label in axis.get_yticklabels()] == ["≤ 0.1", "1", "10", "100"]


def test_labels_at_the_lines_ends_are_apart_and_in_their_order():
    for truth, unlimited in ((4.0, 4.5), (500.0, 190.0), (2.6, 0.01), (3.0, 3.0), (100.0, 20.0)):
        result = mechanism("some", (0.5, 3.0, 3.0, 0.1), (1.0, truth, unlimited, 0.1))
        (measured,) = atlas(Run("0", Effort.QUICK, 0, (result,))).values()
        (axis,) = blindspots.mechanism(measured).axes
        ends = {"truth": truth, "claimed: 3": 3.0, "adaptive": unlimited, "normal-scores": unlimited, "canife": 2.6}
        ends["fixed-sequence"] = 0.5 * unlimited
        heights = {}
        for text in axis.texts:
            if (value := ends.get(text.get_text())) is not None:
                value = min(max(value, 0.1), 200.0)
                # A line leads from the end to its label, which is right of it.
                assert text.xy == (1, value)
                assert text.xyann[0] == pytest.approx(1.12)
                heights[text.get_text()] = (value, text.xyann[1])
        assert heights.keys() == ends.keys()
        ordered = sorted(heights.values())
        for (value, height), (above, next_height) in itertools.pairwise(ordered):
            assert next_height >= 1.75 * height * (1.0 - 1e-9), (value, above)
        assert ordered[-1][1] <= 200.0 * (1.0 + 1e-9)
    # The last ones, 2.6 and 3 below 10, 20, 20 and 100: who has room stays at its own height.
    assert heights["canife"] == (2.6, 2.6)
    assert heights["truth"] == (100.0, 100.0)


def test_the_matrix_shows_verdict_and_rate_of_each_cell():
    names = ["seen", "missed"]
    cells = {
        ("seen", "adaptive"): blindspots.Sight(Visibility.SEES, 0.95, 4.0),
        ("seen", "norm"): None,
        ("missed", "adaptive"): blindspots.Sight(Visibility.MISSES, 0.25, 4.0),
        ("missed", "norm"): blindspots.Sight(Visibility.NOTHING, 0.05, None),
        ("seen", "canife"): blindspots.Sight(Visibility.CANNOT, 0.0, 4.0),
        ("missed", "canife"): blindspots.Sight(Visibility.SEES, 1.0, 4.0),
    }
    figure = blindspots.matrix(names, ["adaptive", "canife", "norm"], cells)
    (axis,) = figure.axes
    assert {text.get_position(): text.get_text() for text in axis.texts} == {
        (0, 0): "● 95%", (1, 0): "× 0%", (2, 0): "–", (0, 1): "○ 25%", (1, 1): "● 100%", (2, 1): "5%",
    }  # fmt: skip
    boxes = {(box.get_x() + 0.47, box.get_y() + 0.44): box for box in axis.patches}
    colours = {place: to_hex(box.get_facecolor()) for place, box in boxes.items()}
    assert colours == {
        place: colour.lower() for place, colour in (((0, 0), GREEN), ((1, 0), GREY), ((0, 1), ORANGE), ((1, 1), GREEN))
    }
    # Nearly all of its cell, of width and height 1, and no part of another.
    assert {(box.get_width(), box.get_height()) for box in axis.patches} == {(0.94, 0.88)}
    # The line is between methods and tests; the first row is at the top.
    (line,) = axis.get_lines()
    assert list(line.get_xdata()) == [1.5, 1.5]
    assert (axis.get_xlim(), axis.get_ylim()) == ((-0.5, 2.5), (1.5, -0.5))
    assert [label.get_text() for label in axis.get_xticklabels()] == ["adaptive", "canife", "norm"]
    assert [label.get_text() for label in axis.get_yticklabels()] == names
    entries = made_up.legend_of(figure)
    assert list(entries) == [
        *("● sees it", "○ misses it", "× cannot see it in principle"),
        *("nothing is wrong: false alarms", "does not apply"),
    ]
    for words, colour in zip(entries, (GREEN, ORANGE, GREY), strict=False):
        assert to_hex(entries[words].get_facecolor()) == colour.lower()
    alone = blindspots.matrix(["seen"], ["adaptive"], cells)
    assert list(made_up.legend_of(alone)) == ["● sees it", "does not apply"]


def test_a_row_and_a_column_of_the_matrix_have_their_room():
    sizes = {}
    for rows, columns in ((1, 1), (21, 1), (1, 21)):
        names, methods = [[f"{i}" for i in range(count)] for count in (rows, columns)]
        cells = dict.fromkeys((name, method) for name in names for method in methods)
        sizes[rows, columns] = blindspots.matrix(names, methods, cells).get_size_inches()
    width, height = sizes[1, 1]
    # In inches.
    assert 0.2 < (sizes[21, 1][1] - height) / 20.0 < 0.4
    assert 0.4 < (sizes[1, 21][0] - width) / 20.0 < 0.8
    assert sizes[21, 1][0] == width
    assert sizes[1, 21][1] == height


def one_of(*rows, diagnosed=(), **changes):
    result = mechanism("some", *rows, diagnosed=diagnosed)
    result.evidence.update(changes)
    (measured,) = atlas(Run("0", Effort.QUICK, 0, (result,))).values()
    return measured


def diagnosis(value, confined, **rates):
    tests = {name: {"p_value": 0.5, "alarms": 1, "rate": [rate, 0.0, 1.0]} for name, rate in rates.items()}
    return {"value": value, "tests": tests, "confined": confined}


def test_tests_are_judged_at_the_worst_value_and_where_it_lacks_one_not_at_all():
    rows = (1.0, 3.0, 3.0, 0.05), (0.5, 6.7, 6.7, 0.1), (0.25, 5.0, 5.0, 0.1)
    diagnosed = [diagnosis(1.0, 0.25, rounds=0.3), diagnosis(0.5, None, norm=0.5), diagnosis(0.25, 0.75, norm=0.95)]
    measured = one_of(*rows, diagnosed=diagnosed)
    assert sight_of_test(measured, "norm") == blindspots.Sight(Visibility.MISSES, 0.5, None)
    assert sight_of_test(measured, "rounds") is None
    # Of confined canaries the last value known stands for it.
    assert sight_of_test(measured, "confined") == blindspots.Sight(Visibility.MISSES, 0.75, None)
    # Nothing is wrong: the largest rate of any value.
    measured = one_of(*((value, 3.0, 3.0, 0.05) for value, *_ in rows), diagnosed=diagnosed)
    assert sight_of_test(measured, "norm") == blindspots.Sight(Visibility.NOTHING, 0.95, None)
    assert sight_of_test(measured, "confined") == blindspots.Sight(Visibility.NOTHING, 0.75, None)
    # Where the worst value is beyond those that were diagnosed.
    assert sight_of_test(one_of(*rows, diagnosed=diagnosed[:1]), "norm") is None


def test_the_worst_of_equal_rows_is_the_last_and_harmless_is_what_exceeds_nothing():
    rows = (1.0, 6.0, 3.0, 0.1), (2.0, 6.0, 4.0, 0.2), (3.0, 5.0, 5.0, 0.3)
    measured = one_of(*rows)
    assert blindspots.worst(blindspots.rows_at(measured)) == 1
    assert sight(measured, "adaptive").rate == 0.2
    # Of a range its lower end counts.
    ranges = dataclasses.replace(
        measured, cells=[dataclasses.replace(row, truth=(row.truth[0], 99.0 / row.value)) for row in measured.cells]
    )
    assert blindspots.worst(blindspots.rows_at(ranges)) == 1
    assert [row.count for row in blindspots.rows_at(measured, 100)] == [100] * 3
    assert not blindspots.harmless(measured)
    # To a few roundings.
    assert blindspots.harmless(one_of((1.0, 3.0 * (1.0 + 9e-10), 3.0, 0.1)))
    assert not blindspots.harmless(one_of((1.0, 3.0, 3.0, 0.1), (2.0, 3.0 * (1.0 + 2e-9), 3.0, 0.1)))


def test_each_column_of_a_mechanisms_table_has_its_own_number():
    result = mechanism("some", (0.5, 3.0, 3.0, 0.05), (1234567.0, 1500.0, 6.0, 0.5))
    small, large = result.evidence["cells"][2:]
    ends = {"truth": [1000.0, 1500.0], "unlimited": [5.5, 6.5]}
    small |= ends | {"rate": [0.21, 0.11, 0.31], "predicted": 0.41}
    large |= ends | {"rate": [0.52, 0.42, 0.62], "predicted": 0.72}
    large["methods"]["adaptive"]["epsilon"] = [1.0, 2.25, 4.0]
    large["methods"]["one-run-gaussian"] = said(0.125)
    page = blindspots.text(Run("0", Effort.QUICK, 0, (result,)))
    matrix, own = (found for header, *found in tables(page) if header[0] != "fault")
    header = next(header for header, _ in tables(page) if header[0] == "how much of some")
    names = ["adaptive", "fixed-sequence", "normal-scores", "one-run-gaussian", "canife"]
    columns = [f"alarms, k = {count}; predicted" for count in ("100", "1,000")]
    assert header == ("how much of some", "true ε", *names, "unlimited canaries", *columns)
    ((first, second),) = own
    assert first[:2] == ("0.5", "3")
    assert second == (
        *("1.23457e+06", "1,500", "2.25", "3", "6", "0.125", "2.6", "5.5"),
        *("21% [11%, 31%]; 41%", "52% [42%, 62%]; 72%"),
    )
    # Its largest ε is at least 1,000, and half of the audits do not see it.
    assert matrix[0][0][:3] == ("some", "1,000", "○ 52%; 2.25")
    assert "where the true ε is 1,000, adaptive misses it with ε̂ 2.25 and alarms in 52%" in page


def test_numbers_are_short():
    assert [blindspots.label(x) for x in (0.5, 1234.5, math.inf)] == ["0.5", "1,234.5", "∞"]
    assert [blindspots.share(x) for x in (0.0, 0.126, 1.0)] == ["0%", "13%", "100%"]


def test_the_page_says_how_many_faults_each_way_are_seen(monkeypatch):
    page = blindspots.text(RUN)
    assert (
        "With 1,000 canaries the default estimator sees 1 of 3 faults, misses 1 and cannot see 1 in principle. "
        "An auditor's instruments notice 0 of 0 in the map of faults."
    ) in page
    # The default and two tests see the first fault. Two methods without an alarm miss it, and all three the second
    # one. Nobody can see the third, and CANIFE, whose own limit is the claim, none of them.
    assert (
        "Matrix of 4 mechanisms and 8 methods: of the cells, 3 see what is wrong, 5 miss it and 6 cannot see it in "
        "principle; adaptive sees 1 of 3 faults"
    ) in page
    # In the map: a fault that an instrument notices, and one that none does.
    known = fault_map()
    noticed = next(fault for fault in known.values() if fault.instrument)
    hidden = next(fault for fault in known.values() if not fault.instrument)
    monkeypatch.setattr(blindspots, "fault_map", lambda: {"seen": noticed, "hidden": hidden})
    page = blindspots.text(RUN)
    assert "An auditor's instruments notice 1 of 2 in the map of faults." in page
    ((header, rows),) = (found for found in tables(page) if found[0][0] == "fault")
    assert header == ("fault", *COLUMNS, "why nothing does")
    for fault, row in zip((noticed, hidden), rows, strict=True):
        assert row[1:-1] == tuple(str(fault.rounds.get(column, "–")) for column in COLUMNS)
        assert row[0].startswith(f"{fault.name}: ")


def test_exact_laws_and_their_leading_order_are_told_apart():
    def said_of(leading):
        return blindspots._leading(one_of((1.0, 3.0, 3.0, 0.1), leading_order=leading))

    assert said_of([]) == ""
    where = "and the leading order of it where k is"
    assert said_of([1000]) == f"Scores have exactly their joint law where k is 100, {where} 1,000."
    assert said_of([100, 1000]) == f"Scores have exactly their joint law, {where} 100 or 1,000."
