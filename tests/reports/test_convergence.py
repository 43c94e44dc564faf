import math
import warnings
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from canaryproof.reports import convergence
from canaryproof.reports.convergence import picture_name
from canaryproof.reports.pages import render
from canaryproof.verify.check.evidence import ConvergenceMeasured, records
from canaryproof.verify.check.results import Level, Result, Run, Subject, Verdict

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
    measured = records(Run("0", Level.QUICK, 0, (one,)), ConvergenceMeasured)
    return measured[one.id].convergence


def rendered(*series):
    return {name: text.decode() for name, text in render(Run("0", Level.QUICK, 0, (result(*series),))).items()}


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
    assert records(Run("0", Level.QUICK, 0, (replace(result(), evidence={"level": 1e-7}),)), ConvergenceMeasured) == {}
