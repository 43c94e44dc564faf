import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from damage import FEW, damaged, reported_or_refused
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.reports import canife
from canaryproof.reports.canife import render, sections, spread, three_digits, values
from canaryproof.reports.html import html
from canaryproof.reports.pages import chapters
from canaryproof.verify.audit.files.json_records import read, to_document
from canaryproof.verify.audit.markup.figures import GREY, svg
from canaryproof.verify.papers.check.results import Effort, Run
from canaryproof.verify.papers.records.benchmark_record import BenchmarkRecord, ScenarioRecord, SpreadRecord
from canaryproof.verify.papers.records.report_input import Material

NEEDS = {"participation": "nothing", "noise": "nothing", "models": "the last"}


def summary(mean, deviation=0.1, infinite=0):
    return {"mean": mean, "deviation": deviation, "infinite": infinite}


def method(name, values, cap="inf", family="oneshot", kind="estimate"):
    mean = sum(map(float, values)) / len(values)
    infinite = sum(value == "inf" for value in values)
    return {
        "name": name,
        "kind": kind,
        "needs": NEEDS,
        "family": family,
        "epsilon": summary("inf" if math.isinf(mean) else mean, "inf" if math.isinf(mean) else 0.25, infinite),
        "values": [{"epsilon": value, "low": 0.5, "high": "inf"} for value in values],
        "cap": cap,
    }


DESIGNS = {"as printed": "printed", "as printed, but": "change", "redesigned": "redesign"}


def canaries():
    names = ("separation", "deviation", "norm", "noise", "clients", "cosine", "accuracy")
    return {**{name: summary(1.0) for name in names}, "unhealthy": 1, "audits": 8}


def design(name, kind):
    count = {"epsilon": summary(0.5), "cap": 0.75}
    return {
        "name": name,
        "kind": kind,
        "rate": 1.0,
        "norm_constant": 1.0,
        "start": "uniform",
        "label": "soft",
        "restarts": 0,
        "counts": [
            {
                "scores": 50,
                "round": summary(3.0),
                "round_cap": 3.2,
                "separated": 5,
                "capped": 6,
                "audits": 8,
                "at_delta": count,
                "at_reciprocal": count,
            },
        ],
        "unlimited": {"round": summary(30.0), "composed": summary(70.5)},
    }


def scenario(name, shift=0.0):
    audits = [
        {
            "source": "Algorithm 3",
            "name": "band",
            "epsilon": summary(1.5),
            "cap": 3.25,
            "kind": "lower bound",
            "coverage": "asymptotic",
        }
    ]
    return {
        "name": name,
        "analytical": {"epsilon": 34.5, "relation": "", "rule": "a rule"},
        "accuracies": [0.9, 0.8],
        "rate": 1.0,
        "methods": [
            method("Algorithm 3", [6.0 + shift, 7.0 + shift]),
            method("CANIFE as printed", [0.5, 0.5], 0.75, "as printed"),
            method("infinite", ["inf", "inf"]),
            method("Known rounds, data known", [34.0 + shift, 35.0 + shift], kind="composed estimate"),
        ],
        "seconds": {"training": 20.0, "oneshot": 3.0, "canife": dict.fromkeys(DESIGNS, 4.0)},
        "canife": {name: canaries() for name in DESIGNS},
        "audits": audits,
    }


@pytest.fixture
def document():
    """The benchmark's document, as its file has it."""
    return {
        "level": "quick",
        "repeat": 2,
        "seed": 0,
        "data": {"name": "images", "clients": 1000, "held_out": 100},
        "setting": {
            "batch": 10,
            "canaries": 20,
            "every": 5,
            "pool": 30,
            "steps": 40,
            "scores": [50],
            "audited": [5, 10],
            "noise_multiplier": 0.2,
            "clip_norm": 1.0,
            "delta": 1e-5,
            "rate": 1.0,
            "rounds": 12,
            "sampling": 0.1,
            "dim": 5000,
        },
        "compilation": 2.0,
        "memory": {"oneshot": 13_000_000, "canife": 2_000_000},
        "rdp": 78.5,
        "printed": {
            "fashion": False,
            "level": 1e-6,
            "claims": [
                {
                    "id": "final.section5.4.ours",
                    "statement": "6.76 ± 1.06",
                    "training": "a shuffled epoch",
                    "method": "Algorithm 3",
                    "epsilon": summary(6.5, 0.25),
                    "reading": "refuted",
                    "verdict": "inconclusive",
                    "finding": "",
                }
            ],
        },
        "scenarios": [scenario("Poisson samples"), scenario("shuffled epoch", 2.0)],
        "designs": [design(*names) for names in DESIGNS.items()],
        "sweep": [
            {
                **scenario("Poisson samples"),
                "rate": 0.5,
                "accuracies": [0.7],
                "methods": [method("Algorithm 3", [6.0])],
            }
        ],
        "environment": {"python": "3"},
    }


def section(document, title):
    return next(one for one in sections(read(BenchmarkRecord, document)) if one.title == title)


def titles(document):
    return [one.title for one in sections(read(BenchmarkRecord, document))]


def test_the_page_has_all_tables_and_its_picture(document):
    record = read(BenchmarkRecord, document)
    files = render(record)
    assert set(files) == {"canife.md", "canife.svg"}
    page = files["canife.md"]
    for title in titles(document):
        assert f"## {title}" in page
    assert "](canife.svg)" in page
    assert "The analytical ε is 34.5: random canaries at known rounds, with known data, give 34.50 ± 0.25, and" in page
    assert (
        "and CANIFE as printed gives 0.50 ± 0.10, 66.7% of the 0.750 that is the largest finite value from 50 scores a "
        "round, half of them with the canary. With unlimited scores its canaries would give 70.50 ± 0.10; redesigned "
        "it gives 0.50 ± 0.10, and 70.50 ± 0.10 with unlimited scores."
    ) in page
    assert "2 trainings of each scenario" in page
    assert "learning rate 1, which" in page
    ElementTree.fromstring(files["canife.svg"])
    assert render(read(BenchmarkRecord, to_document(record))) == files


def test_a_method_has_number_interval_kind_cap_needs_and_costs(document):
    first, second, third, _ = section(document, "Every method on the same trainings").rows
    costs = "3 s, 13 MB, no round"
    assert first == ("Algorithm 3", "6.50 ± 0.25", "0.500 – ∞", "estimate", "none", *NEEDS.values(), costs)
    assert second[1:5] == ("0.50 ± 0.25", "0.500 – ∞", "estimate", "0.750")
    assert second[-1] == "4 s, 2 MB, 100 trial rounds"
    assert third[1] == "∞ in 2"


def test_the_gap_is_computed(document):
    note = section(document, "How much of CANIFE's gap is its cap").note
    for name in ("as printed", "redesigned"):
        assert f"CANIFE {name} has with 50 scores 66.7% of its cap." in note
    # (0.75 − 0.5)/(70.5 − 0.5)
    assert "the cap makes all but 0.4% of the gap to that" in note


def test_designs_stand_side_by_side(document):
    found = section(document, "CANIFE as printed, and what each change gains")
    assert [row[0] for row in found.rows] == list(DESIGNS)
    assert found.rows[1] == (
        "as printed, but", "1 of 8", "1.00 ± 0.10", "3.00 ± 0.10", "6 of 8", "0.50 ± 0.10", "70.50 ± 0.10", "4 s"
    )  # fmt: skip
    assert "all: rate 1, a hinge at 1 C, uniform pixels, a soft label and up to 0 restarts." in found.note


def test_numbers_are_decided_on_fashion_mnist_alone(document):
    row = (
        *("final.section5.4.ours", "6.76 ± 1.06", "a shuffled epoch", "Algorithm 3", "6.50 ± 0.25"),
        *("refuted", "inconclusive", ""),
    )
    assert section(document, "The printed numbers").rows == (row,)
    assert "images is not it" in section(document, "The printed numbers").note
    document["printed"]["fashion"] = True
    assert "These are its files" in section(document, "The printed numbers").note
    del document["printed"]
    assert "The printed numbers" not in titles(document)


def test_scenarios_are_compared_training_by_training(document):
    found = section(document, "Where an assumption fails").rows
    assert found[2] == ("Algorithm 3", "6.50 ± 0.25", "8.50 ± 0.25 (2 ± 0)")
    assert found[4] == ("infinite", "∞ in 2", "∞ in 2")
    del document["scenarios"][1]
    assert "Where an assumption fails" not in titles(document)


def test_without_a_sweep_there_is_no_table_of_rates(document):
    assert section(document, "Learning rates").rows == (("accuracy", "70.0%"), ("Algorithm 3", "6.00"))
    document["sweep"] = []
    assert "Learning rates" not in titles(document)


def test_numbers_are_rendered():
    shown = {math.inf: "∞", -math.inf: "−∞", 1.0: "1.00", 12.0: "12.0", 1.23456: "1.23", 1234.5: "1.23e+03"}
    assert {value: three_digits(value) for value in shown} == shown
    assert three_digits(math.nan) == "—"
    assert spread(SpreadRecord(1.0, math.nan, 0)) == "1.00"
    assert spread(SpreadRecord(2.3648, 1e-16, 0)) == "2.36"
    assert spread(SpreadRecord(2.3648, 0.012, 0)) == "2.365 ± 0.012"


def test_about_names_the_setting(document):
    assert "12 rounds of 10 images on average" in canife.about(read(BenchmarkRecord, document))


def test_a_benchmark_beside_a_run_is_a_chapter_with_its_picture(document):
    material = Material(Run("0", Effort.QUICK, 0, ()), canife=read(BenchmarkRecord, document))
    (chapter,) = chapters(material, {})
    assert (chapter.name, chapter.label, chapter.title) == ("canife", "CANIFE", canife.TITLE)
    assert chapter.text.startswith(f"# {canife.TITLE}\n")
    page = html(material, [chapter])
    assert '<section class="chapter" id="canife"' in page
    assert 'id="picture-canife"' in page
    assert "Every method on the same trainings" in page


@FEW
@given(st.data())
def test_a_damaged_document_is_reported_or_refused(document, tmp_path, data):
    reported_or_refused(tmp_path, canife=data.draw(damaged(document)))


def drawn_scenario(name, epsilons):
    methods = [
        method(f"method {i}", found, cap) for i, (found, cap) in enumerate(zip(epsilons, (2.0, "inf"), strict=True))
    ]
    return read(ScenarioRecord, {**scenario(name), "methods": methods})


def test_values_are_drawn():
    first = drawn_scenario("first", ([0.0, 1.0], [3.0, "inf"]))
    one, two = [first], [first, drawn_scenario("second", ([1.0], [4.0]))]
    texts = [svg(values(scenarios)) for scenarios in (one, two)]
    for text in texts:
        ElementTree.fromstring(text)
    assert texts[0] == svg(values(one))
    assert texts[0].count("<use") < texts[1].count("<use")


def test_there_are_marks_for_all_scenarios_of_the_benchmark():
    from canaryproof.verify.papers.comparison.canife import SCENARIOS

    figure = values([drawn_scenario(one.name, ([1.0], ["inf"])) for one in SCENARIOS])
    drawn = {line.get_label(): (line.get_marker(), line.get_color()) for line in figure.axes[0].get_lines()}
    marks = [drawn[one.name] for one in SCENARIOS]
    assert len(set(marks)) == len(marks)


def test_each_trainings_value_stands_in_its_methods_row():
    scenarios = [drawn_scenario("first", ([0.0, 1.0], [3.0, "inf"])), drawn_scenario("second", ([1.5], [4.0]))]
    figure = values(scenarios)
    (axis,) = figure.axes
    lines = {line.get_label(): line for line in axis.get_lines()}
    # Of the two scenarios one is above the middle of its method's row and one below; ordinates grow downwards.
    shifts = -0.175, 0.175
    assert lines["first"].get_xydata().tolist() == [
        pytest.approx(place) for place in ([0.03, shifts[0]], [1.0, shifts[0]], [3.0, 1 + shifts[0]])
    ]
    assert lines["second"].get_xydata().tolist() == [
        pytest.approx(place) for place in ([1.5, shifts[1]], [4.0, 1 + shifts[1]])
    ]
    (cap,) = (line for line in axis.get_lines() if line.get_color() == "black")
    assert cap.get_xydata().tolist() == [[2.0, -0.35], [2.0, 0.35]]
    (analytical,) = (line for line in axis.get_lines() if line.get_color() == GREY)
    assert analytical.get_xdata() == [34.5, 34.5]
    texts = {text.get_text(): text for text in axis.texts}
    assert texts.keys() == {"∞", "analytical ε 34.5"}
    # Beyond the right edge, in the row of its value.
    x, y = texts["∞"].get_position()
    assert (1.0 < x < 1.05, y) == (True, pytest.approx(1 + shifts[0]))
    assert texts["∞"].get_color() == lines["first"].get_color() != lines["second"].get_color()
    assert texts["analytical ε 34.5"].xy == (34.5, 1.0)
    assert [label.get_text() for label in axis.get_yticklabels()] == ["method 0", "method 1"]
    low, high = axis.get_ylim()
    assert low > high
    assert axis.get_xscale() == "log"
    assert axis.get_xlim()[0] == pytest.approx(0.02)
    assert axis.get_xticklabels()[0].get_text() == "≤ 0.03"


def test_a_row_of_values_has_room_for_its_scenarios():
    def height(scenarios, methods):
        one = drawn_scenario("first", ([1.0], [4.0]))
        many = replace(one, methods=one.methods[:1] * methods)
        return values([many] * scenarios).get_size_inches()[1]

    # In inches: rows grow with what stands in them.
    for scenarios, least, most in ((1, 0.25, 0.5), (5, 0.5, 1.0)):
        assert least < (height(scenarios, 12) - height(scenarios, 2)) / 10.0 < most


def test_differences_come_with_their_standard_error(document):
    # 2, 3 and 7 more than before: 4 on average, with deviation √7.
    for one, found in zip(document["scenarios"], ([6.0, 7.0, 8.0], [8.0, 10.0, 15.0]), strict=True):
        one["methods"][0] = method("Algorithm 3", found)
    # Of one training there is no error, and of ∞ no difference.
    for one, found in zip(document["scenarios"], ([0.5], [0.75]), strict=True):
        one["methods"][1] = method("CANIFE as printed", found)
    rows = section(document, "Where an assumption fails").rows
    error = math.sqrt(((2 - 4) ** 2 + (3 - 4) ** 2 + (7 - 4) ** 2) / 2 / 3)
    assert rows[2][2] == f"11.00 ± 0.25 (4.0 ± {error:.1f})"
    assert rows[3][2] == "0.75 ± 0.25"
    assert rows[4][2] == "∞ in 2"


def test_every_number_of_the_page_has_its_place(document):
    """Fields whose values differ, so that no column can stand for another."""
    first = document["scenarios"][0]
    first["accuracies"] = [0.5, 0.75]
    first["seconds"] = {"training": 21.0, "oneshot": 3.5, "canife": dict.fromkeys(DESIGNS, 4.5)}
    document["memory"] = {"oneshot": 1_234_567, "canife": 123_456}
    first["methods"][0]["values"] = [
        {"epsilon": 6.0, "low": 1.0, "high": 8.0},
        {"epsilon": 7.0, "low": 2.0, "high": 9.0},
    ]
    # An interval without width is none.
    first["methods"][1]["values"] = [{"epsilon": 0.5, "low": 0.5, "high": 0.5}] * 2
    names = ("separation", "deviation", "noise", "clients", "cosine")
    first["canife"]["as printed"] |= {name: summary(i + 1.0, 0.25) for i, name in enumerate(names)} | {"unhealthy": 3}
    estimate = {**first["audits"][0], "name": "fitted", "kind": "estimate", "coverage": "none"}
    first["audits"] += [estimate, {**first["audits"][0], "name": "unbounded", "cap": "inf"}]
    document["designs"] = document["designs"][:1]
    printed = document["designs"][0]["counts"]
    few, many = printed[0], {**printed[0], "scores": 1000}
    few |= {
        "at_delta": {"epsilon": summary(1.5), "cap": 2.0},
        "at_reciprocal": {"epsilon": summary(1.25), "cap": 1.75},
    }
    many["at_delta"] = {"epsilon": summary(36.5), "cap": 40.0}
    printed.append(many)

    found = section(document, "Every method on the same trainings")
    assert found.rows[0][2] == "1.50 – 8.50"
    assert found.rows[1][2] == "—"
    assert [row[-1] for row in found.rows[:2]] == ["3.5 s, 1 MB, no round", "4.5 s, 0.12 MB, 100 trial rounds"]
    assert "The analytical ε is 34.5 (a rule); CANIFE's own accountant gives 78.5 for the true noise." in found.note
    assert "(the training itself took 21 s, and 2 s of compilation once)" in found.note
    assert "mean ± deviation over 2 trainings" in found.note

    assert section(document, "CANIFE's canaries").rows[0] == (
        "Poisson samples", "as printed", *(f"{i}.00 ± 0.25" for i in (1, 2, 3, 4, 5)), "3 of 8"
    )  # fmt: skip
    # The inverse root of 5,000.
    assert "0.0141 = 1/√d for a random canary" in section(document, "CANIFE's canaries").note
    assert section(document, "All estimates and bounds").rows == (
        ("Algorithm 3", "band", "1.50 ± 0.10", "3.25", "lower bound", "asymptotic"),
        ("Algorithm 3", "fitted", "1.50 ± 0.10", "–", "estimate", "none"),
        ("Algorithm 3", "unbounded", "1.50 ± 0.10", "none", "lower bound", "asymptotic"),
    )
    assert section(document, "Where an assumption fails").rows[:2] == (
        ("analytical ε without the fault", "34.5", "34.5"),
        ("accuracy", "62.5%", "85.0%"),
    )
    counts = section(document, "How much of CANIFE's gap is its cap")
    assert counts.rows == (
        ("as printed", "50", "3.00 ± 0.10", "3.20", "5 of 8", "1.50 ± 0.10", "2.00", "1.25 ± 0.10", "1.75"),
        ("as printed", "1,000", "3.00 ± 0.10", "3.20", "5 of 8", "36.50 ± 0.10", "40.0", "0.50 ± 0.10", "0.750"),
        ("as printed", "unlimited", "30.00 ± 0.10", "none", "", "70.50 ± 0.10", "none", "", ""),
    )
    # From 1.5 to the cap 2, to 36.5 and to 70.5.
    gap = 70.5 - 1.5
    assert counts.note.startswith(
        "CANIFE as printed has with 50 scores 75.0% of its cap. Unlimited scores of the same canaries, whose law is "
        f"known exactly, compose to 70.5: the cap makes all but {100 * 0.5 / gap:.1g}% of the gap to that, and 1,000 "
        f"scores close {100 * 35 / gap:.2g}% of it."
    )
    assert canife.about(read(BenchmarkRecord, document)) == (
        "`canaryproof benchmark canife --data FOLDER --level quick --repeat 2 --out RESULTS`, seed 0: 2 trainings of "
        "each scenario, of the two-layer network (d = 5,000) on images (1,000 clients of one image each), as in "
        "Section 5.4 of Andrew et al. (arXiv 2302.03098, final version): one epoch of DP-SGD, 12 rounds of 10 images "
        "on average, clip norm 1, noise "
        "multiplier 0.2, δ = 1e-05 and learning rate 1, which the paper does not print. CANIFE audits 2 rounds, one "
        "in 5, with 30 held-out images as mock clients, 40 steps of design and 50 scores a round, "
        "from trial rounds of the training's own clients, with canaries designed as printed and with those of this "
        "package's redesign; Algorithms 2 and 3 have "
        "20 observed and 20 unobserved canaries in the same trainings. Of the observed ones, those of each round "
        "also measure its noise."
    )


def test_a_value_beyond_its_cap_leaves_no_gap(document):
    document["designs"][0]["counts"][0]["at_delta"] = {"epsilon": summary(2.0), "cap": 1.75}
    note = section(document, "How much of CANIFE's gap is its cap").note
    assert "114.3% of its cap" in note
    assert "the cap makes all but 0% of the gap" in note
    # Canaries that show less than the cap with unlimited scores have no gap that a cap could make.
    document["designs"][0]["unlimited"]["composed"] = summary(1.5)
    note = section(document, "How much of CANIFE's gap is its cap").note
    assert "compose to 1.50. CANIFE redesigned" in note


@pytest.mark.parametrize(("capped", "told"), [(7, False), (8, True)])
def test_only_what_is_at_its_cap_in_every_audit_tells_little_of_the_training(document, capped, told):
    document["designs"][0]["counts"][0]["capped"] = capped
    note = section(document, "How much of CANIFE's gap is its cap").note
    assert ("and of the training only that each audit" in note) == told
