import math
import warnings
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from canaryproof.reports import convergence
from canaryproof.reports.convergence import picture_name
from canaryproof.reports.pages import render
from canaryproof.verify.audit.markup.figures import BLUE, GREY, ORANGE
from canaryproof.verify.papers.check.results import Effort, Result, Run, Subject, Verdict
from canaryproof.verify.papers.records.evidence import ConvergenceMeasured, records

SERIES = {
    "title": "Distance of the law from its limit",
    "axis": "d",
    "quantity": "total variation",
    "x": [100, 10**4, 3162277, 10**12],
    "exact": [1.23456789e-2, 1.2e-4, 0.0, 1e-12],
    "bound": [0.02, 2e-4, 2e-8, 2e-12],
    "bound_label": "2/d",
    "simulated": [0.01251234, 0.000127, -3e-8, 5e-10],
    "standard_error": [0.00034, 0.00002, 1e-8, 4e-10],
    "fitted_slope": -0.99987654,
    "slope_interval": [-1.00012, -0.99962],
    "slope_of": "exact",
    "confidence": 0.95,
    "proven_slope": -1.0,
    "note": "Beyond, rounding rules.",
}


def result(*series, name="theorem-3.1.rate"):
    evidence = {"convergence": list(series)}
    return Result(
        name, "convergence", Subject.IMPLEMENTATION, "Theorem 3.1", "falls as 1/d", Verdict.CONFIRMED, "yes", evidence
    )


def series_of(one):
    measured = records(Run("0", Effort.QUICK, 0, (one,)), ConvergenceMeasured)
    return measured[one.id].convergence


def rendered(*series):
    return {name: text.decode() for name, text in render(Run("0", Effort.QUICK, 0, (result(*series),))).items()}


def test_a_chapter_holds_verdict_picture_numbers_and_slope():
    page = rendered(SERIES)["convergence.md"]
    assert "## Falls as 1/d\n\n![" in page
    assert "**confirmed**: yes (`theorem-3.1.rate`; Theorem 3.1)" in page
    assert "d from 100 to 1e+12 (exact, proven bound, simulated)](convergence-theorem-3-1-rate.svg)" in page
    assert "| d | exact | 2/d | simulated |" in page
    assert "| 100 | 0.0123457 | 0.02 | 0.01251 ± 0.00034 |" in page
    assert "| 3,162,277 | 0 | 2e-08 | -3.0e-08 ± 1.0e-08 |" in page
    assert "Fitted slope (exact) -0.99988 [-1.00012, -0.99962] (95%), proven in the limit -1.\n" in page
    assert "as a logarithmic axis has no 0: 1 exact, 1 simulated." in page
    assert "\n\nBeyond, rounding rules.\n\n## How to read this page" in page


def test_what_is_not_exact_is_not_called_so():
    page = rendered(SERIES | {"exact_label": "leading term"})["convergence.md"]
    assert "(leading term, proven bound, simulated)]" in page
    assert "| d | leading term | 2/d | simulated |" in page
    assert "Fitted slope (leading term) -0.99988" in page
    assert "as a logarithmic axis has no 0: 1 leading term, 1 simulated." in page


def test_columns_without_values_are_left_out():
    missing = dict.fromkeys(("exact", "bound", "standard_error"))
    page = rendered(SERIES | missing | {"slope_of": "simulated", "slope_interval": [-1.0, -1.0]})["convergence.md"]
    assert "| d | simulated |" in page
    assert "| 100 | 0.0125123 |" in page
    assert "Fitted slope (simulated) -0.999877 [-1, -1]" in page
    assert "Fitted slope (2/d) -0.99988" in rendered(SERIES | {"slope_of": "bound"})["convergence.md"]


NOTHING = SERIES | {"exact": [0.0] * 4, "bound": None, "simulated": [-1.0] * 4}


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    "series",
    [
        [SERIES],
        [SERIES, SERIES | {"axis": "k", "exact": None, "standard_error": None}, NOTHING],
        [NOTHING],
        # Flat; and at a single place.
        [SERIES | {"exact": [1.0] * 4, "bound": None, "simulated": None, "standard_error": None}],
        [SERIES | {"x": [7], "exact": [1e-100], "bound": [math.inf], "simulated": [1e100], "standard_error": [1e99]}],
    ],
)
def test_every_picture_is_svg(series):
    with warnings.catch_warnings(action="error"):
        picture = rendered(*series)["convergence-theorem-3-1-rate.svg"]
    assert ElementTree.fromstring(picture.encode()).tag.endswith("svg")


def test_the_picture_shows_the_numbers_and_marks_the_rest():
    drawn = convergence.picture(series_of(result(SERIES, SERIES, SERIES)))
    axes = drawn.axes
    assert [axis.get_visible() for axis in axes] == [True, True, True, False]
    exact, bound, simulated = (line.get_xydata().tolist() for line in axes[0].get_lines()[:3])
    assert exact == [[100, 1.23456789e-2], [1e4, 1.2e-4], [1e12, 1e-12]]
    assert bound == [[x, y] for x, y in zip(SERIES["x"], SERIES["bound"], strict=True)]
    assert simulated == [[100, 0.01251234], [1e4, 0.000127], [1e12, 5e-10]]
    (bars,) = axes[0].collections
    ends = [path.vertices[:, 1] for path in bars.get_paths()]
    assert [high for _, high in ends] == pytest.approx([0.01251234 + 0.00068, 0.000167, 1.3e-9])
    # The last one reaches zero, and so beyond the picture's edge.
    assert [low for low, _ in ends[:2]] == pytest.approx([0.01251234 - 0.00068, 0.000087])
    assert 0.0 < ends[2][0] < axes[0].get_ylim()[0]
    assert axes[0].get_xscale() == axes[0].get_yscale() == "log"
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == [
        "exact",
        "proven bound",
        "simulated ± 2 standard errors",
        "0 or below, at the edge",
    ]


def test_numbered_ticks_are_few_and_at_least_two():
    for low, high in ((1.05, 1.06), (3.0, 8.0), (0.02, 1.9), (1e-12, 1.0), (1e-100, 1e100)):
        wide = SERIES | {"x": [low, high, low, high], "exact": [high, low, high, low]}
        drawn = convergence.picture(series_of(result(wide | {"bound": None, "simulated": None})))
        for axis in (drawn.axes[0].xaxis, drawn.axes[0].yaxis):
            least, most = axis.get_view_interval()
            shown = [place for place in axis.get_majorticklocs() if least <= place <= most]
            assert 2 <= len(shown) <= 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": [1, 2]}, r"convergence\[1\]: exact: must have as many numbers as x, 2, not 4"),
        *(
            ({name: [1.0] * count}, rf"convergence\[1\]: {name}: must have as many numbers as x, 4, not {count}")
            for name in ("exact", "bound", "simulated", "standard_error")
            for count in (3, 5)
        ),
        ({"x": [0, 1, 2, 3]}, r"x\[0\]: must be a positive number, not 0"),
        ({"bound": [1, 2, 3, "4"]}, r"bound\[3\]: must be a number, not '4'"),
        ({"axis": "n"}, "axis: must be one of d, k, not 'n'"),
        ({"slope_interval": [1.0]}, "slope_interval: must be 2 values, not 1"),
        ({"confidence": 95}, "confidence: must be a number from 0 to 1, not 95"),
        ({"proven_slope": True}, "proven_slope: must be a number, not True"),
    ],
)
def test_a_field_that_breaks_a_rule_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        series_of(result(SERIES, SERIES | change))


def test_a_missing_field_is_named_and_the_note_may_be_missing():
    without = {name: value for name, value in SERIES.items() if name != "note"}
    assert series_of(result(without))[0].note == ""
    del without["title"]
    with pytest.raises(ValueError, match=r"^theorem-3.1.rate: convergence\[0\].title: is missing"):
        series_of(result(without))


def test_no_name_leads_out_of_the_folder():
    assert picture_name("../../etc/a.b") == "convergence--etc-a-b.svg"


def test_evidence_of_another_kind_has_no_series():
    assert records(Run("0", Effort.QUICK, 0, (replace(result(), evidence={"level": 1e-7}),)), ConvergenceMeasured) == {}


def panel(**change):
    (axis,) = convergence.picture(series_of(result(SERIES | change))).axes
    return axis


def labels(axis):
    return {line.get_label(): line.get_xydata().tolist() for line in axis.get_lines() if line.get_label()[0] != "_"}


def test_a_panel_says_what_it_is_and_what_its_lines_are():
    axis = panel()
    assert axis.get_title(loc="left") == "Distance of the law from its limit\nbound: 2/d"
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("dimension d", "total variation")
    assert panel(axis="k").get_xlabel() == "number k of canaries"
    assert panel(bound=None).get_title(loc="left") == panel(bound_label="").get_title(loc="left")
    assert "bound" not in panel(bound=None).get_title(loc="left")
    # Long ones go on in another line.
    long = panel(title="word " * 20, quantity="word " * 10, bound_label="word " * 20)
    lines = long.get_title(loc="left").splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["word", "word", "bound:", "word", "word"]
    assert max(map(len, lines)) <= 52
    assert max(map(len, long.get_ylabel().splitlines())) <= 28


def test_points_without_errors_have_no_bars_and_another_name():
    def name(axis):
        return [bars.get_label() for bars in axis.containers]

    assert name(panel()) == ["simulated ± 2 standard errors"]
    bare = panel(standard_error=None)
    assert name(bare) == ["simulated"]
    (bars,) = bare.collections
    assert all(low == high for low, high in (path.vertices[:, 1] for path in bars.get_paths()))


def test_values_that_no_logarithm_has_stand_at_the_edge_in_their_colour():
    axis = panel(bound=[0.0, 1.0, -1.0, math.inf], simulated=[1.0, 1.0, 1.0, 0.0])
    edge = axis.get_ylim()[0]
    marks = {line.get_color(): line.get_xydata().tolist() for line in axis.get_lines() if line.get_marker() == "v"}
    x = SERIES["x"]
    assert marks == {
        BLUE: [[x[2], edge]],
        GREY: [[x[0], edge], [x[2], edge]],
        ORANGE: [[x[3], edge]],
    }
    # What is infinite is not drawn at all.
    assert labels(axis)["proven bound"] == [[x[1], 1.0]]
    page = rendered(SERIES | {"bound": [0.0, 1.0, -1.0, math.inf], "simulated": [1.0, math.nan, 1.0, 0.0]})
    assert (
        "At the picture's lower edge, as a logarithmic axis has no 0: 1 exact, 2 bound, 1 simulated. Not in the "
        "picture, as not finite: 1 bound, 1 simulated."
    ) in page["convergence.md"]


def test_limits_leave_a_margin_around_all_that_is_drawn():
    alone = {"exact": None, "bound": None, "simulated": None, "standard_error": None}
    # A sixteenth of 12 decades on either side, but for rounding; around a single place a factor of √5.
    for x, exact, margin in (([1.0, 1e12], [1.0, 10.0], 1e12**0.06), ([4.0, 4.0], [1.0, 10.0], math.sqrt(5.0))):
        axis = panel(**alone | {"x": x, "exact": exact})
        assert axis.get_xlim() == pytest.approx((x[0] / margin, x[1] * margin))
        # Of ten, more than 10^0.06.
        assert axis.get_ylim() == pytest.approx((1.0 / 10**0.06, 10.0 * 10**0.06))
    # Ends of bars count too: two errors above and below.
    axis = panel(**alone | {"x": [1.0, 10.0], "simulated": [1.0, 10.0], "standard_error": [0.25, 45.0]})
    margin = (100.0 / 0.5) ** 0.06
    assert axis.get_ylim() == pytest.approx((0.5 / margin, 100.0 * margin))
    # A bound or a value beyond all numbers does not.
    axis = panel(**alone | {"x": [1.0, 10.0], "exact": [1.0, 10.0], "bound": [math.inf, 0.0]})
    assert axis.get_ylim() == pytest.approx((1.0 / 10**0.06, 10.0 * 10**0.06))


def test_a_panel_has_its_room_however_many_there_are():
    sizes = [convergence.picture(series_of(result(*[SERIES] * count))).get_size_inches() for count in (1, 2, 3, 5)]
    (one, *_), *_ = sizes
    assert 3.5 < one < 6.0
    assert [size[0] - one for size in sizes[1:]] == pytest.approx([sizes[1][0] - one] * 3)
    assert 3.5 < sizes[1][0] - one < 5.0
    heights = [size[1] for size in sizes]
    assert heights[0] == heights[1]
    assert heights[3] - heights[2] == pytest.approx(heights[2] - heights[1])
    assert 2.0 < heights[2] - heights[1] < 4.0


def test_small_panels_number_more_ticks_and_large_ones_decades():
    def numbered(low, high):
        axis = panel(x=[low, low, high, high], bound=None, simulated=None, standard_error=None)
        low, high = axis.get_xlim()
        return [place for place in axis.get_xticks() if low <= place <= high]

    assert numbered(1.0, 10.0) == pytest.approx([1.0, 2.0, 5.0, 10.0])
    assert numbered(1.0, 1e4) == pytest.approx([1.0, 10.0, 100.0, 1e3, 1e4])


def test_a_value_that_six_digits_do_not_tell_is_written_out():
    shown = [convergence._at(x) for x in (100.0, 1e12, 0.25, 3162277.0, 1234567.5)]
    assert shown == ["100", "1e+12", "0.25", "3,162,277", "1,234,567.5"]


@pytest.mark.parametrize(
    ("change", "header", "fitted_to"),
    [
        ({"slope_of": "bound"}, "| d | exact | 2/d | simulated |", "2/d"),
        ({"slope_of": "bound", "bound_label": ""}, "| d | exact | bound | simulated |", "bound"),
        ({"slope_of": "simulated", "axis": "k"}, "| k | exact | 2/d | simulated |", "simulated"),
    ],
)
def test_a_slope_says_what_it_was_fitted_to(change, header, fitted_to):
    page = rendered(SERIES | change | {"slope_interval": [-1.2, -0.4], "confidence": 0.999})["convergence.md"]
    assert header in page
    # Two digits of a quarter of the interval's width, 0.2.
    assert f"Fitted slope ({fitted_to}) -1.00 [-1.20, -0.40] (99.9%), proven in the limit -1.\n" in page


def test_confirmed_checks_and_quantities_are_counted():
    refuted = replace(result(SERIES, name="b.a"), verdict=Verdict.REFUTED)
    three = result(SERIES, name="a.a"), refuted, result(SERIES, SERIES, name="c.a")
    page = convergence.text(Run("0", Effort.QUICK, 0, three))
    assert "\n\n2 of 3 checks of convergence in d and k are confirmed, over 4 quantities.\n\n" in page
    # A chapter each, in their order, with its own picture.
    places = [page.index(f"](convergence-{name}-a.svg)") for name in "abc"]
    assert places == sorted(places)
    assert [convergence.PAGE.picture_of(one) for one in (*three, result())][:3] == [
        f"convergence-{name}-a.svg" for name in "abc"
    ]
