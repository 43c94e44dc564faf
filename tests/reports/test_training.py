import copy
import math
from dataclasses import replace
from statistics import NormalDist
from xml.etree import ElementTree

import numpy as np
import pytest
from damage import FEW, damaged, reported_or_refused
from hypothesis import given

from canaryproof.reports import training
from canaryproof.reports.html import html
from canaryproof.reports.pages import chapters
from canaryproof.reports.training import densities, estimates, label, render, spoken, value
from canaryproof.verify.audit.files.json_records import plain, read, to_document
from canaryproof.verify.audit.markup.figures import BLACK, description, svg
from canaryproof.verify.papers.check.results import Effort, Run
from canaryproof.verify.papers.records.report_input import Material, TrainingFolder
from canaryproof.verify.papers.records.training_record import (
    ExperimentRecord,
    RepetitionRecord,
    Timings,
    TrainingSeconds,
)

BOUNDS = ("fixed-sequence", "normal-scores", "one-run", "andrew")
COVERAGES = ("asymptotic", "asymptotic", "proven", "heuristic")


def audit(epsilon, bound, null):
    estimates = ("adaptive", "pinned", "fitted", "threshold")
    return {
        "observed": 200,
        "unobserved": None if null == "exact" else 200,
        "distance": 1.234,
        "distance_error": 0.0712,
        "ratio": 0.987,
        "ratio_error": 0.05,
        "variance_p_value": 0.5,
        "normality": {"statistic": 0.4321, "p_value": 0.31},
        "null_law": None if null == "exact" else {"statistic": 0.03, "p_value": 0.625},
        "estimates": {
            name: {"epsilon": epsilon + i, "standard_error": 0.25, "low": 0.0, "high": 9.0, "certified": [0.0, 9.0]}
            for i, name in enumerate(estimates)
        },
        "bounds": {
            name: {"value": bound, "upper": None, "kind": "lower bound", "coverage": coverage, "cap": 9.0}
            for name, coverage in zip(BOUNDS, COVERAGES, strict=True)
        },
    }


def result(epsilon, *, warnings=(), without=None):
    density = {"low": -3.0, "high": 5.0, "y": [0.1] * 9}
    nulls = {"all": ("unobserved",), "final": ("exact", "unobserved"), "change": ("exact", "unobserved")}
    return {
        "runs": [{"canary_seed": 1, "accuracy": 0.85, "accuracy_without": without, "warnings": list(warnings)}],
        "audits": {
            attack: {null: audit(epsilon * scale, 0.56789 * scale, null) for null in nulls[attack]}
            for scale, attack in ((10, "all"), (1, "final"), (2, "change"))
        },
        "densities": dict.fromkeys(nulls, density),
    }


def cell(swept, epsilon, results, *, without=False):
    return {
        "swept": swept,
        "settings": {
            "audit": {"delta": 1e-3, "confidence": 0.95, "without_canaries": without},
            "model": {"name": "two_layer"},
        },
        "federation": "digits",
        "clients": 750,
        "test_examples": 297,
        "dim": 19210,
        "rounds": 20,
        "noise_multiplier": 0.18715,
        "analytical": {"epsilon": epsilon, "relation": "one member", "rule": "a rule"},
        "results": results,
    }


DOCUMENT = {
    "name": "tiny",
    "size": "quick",
    "title": "A title",
    "source": "a paper, Table 9",
    "seed": 3,
    "repetitions": 1,
    "axes": [["training.one_round_epsilon"], ["canaries.presentations"]],
    "cells": [
        cell({"training.one_round_epsilon": noise, "canaries.presentations": number}, epsilon, [result(number / 2)])
        for noise, epsilon in (("inf", "inf"), (30.0, 30.0))
        for number in (1, 2, 4)
    ],
}
TIMINGS = [
    TrainingSeconds(cell=i, repetition=0, run=0, with_canaries=True, training=3.0, scoring=1.0, noise=0.1)
    for i in range(6)
]


def recorded(document):
    return read(ExperimentRecord, plain(document))


def section(document, title, timings=TIMINGS):
    return next(one for one in training.sections(recorded(document), timings) if one.title == title)


def test_the_page_has_all_tables_and_pictures():
    files = render(recorded(DOCUMENT))
    assert sorted(files) == ["densities.svg", "estimates.svg", "results.md"]
    page = files["results.md"]
    # What was found comes first: the smallest and the largest of the cells' numbers.
    assert page.startswith(
        "# A title\n\nFor an attacker who sees all rounds ε̂ is 7 to 22, the 95% lower bound is 5.67,"
    )
    assert "\n\n`canaryproof train tiny --size quick --out RESULTS`, seed 3, repetitions: 1. Analogue of a " in page
    assert "digits, 750 clients; two\\_layer with d = 19,210 parameters; 20 rounds." in page
    for name in ("estimates.svg", "densities.svg"):
        assert f"]({name})" in page
        ElementTree.fromstring(files[name])
    assert "None" not in page
    assert "nan" not in page
    assert files == render(recorded(copy.deepcopy(DOCUMENT)))


def test_estimates_and_bounds_stand_beside_the_analytical_epsilon():
    found = section(DOCUMENT, "Estimates and bounds")
    assert found.header == (
        "one round epsilon",
        "presentations",
        "noise multiplier",
        "analytical ε",
        "all rounds",
        "final model",
        "change of the model",
    )
    # Bounds are rounded down.
    assert found.rows[0] == (
        *("∞", "1", "0.1872", "∞"),
        *("7.00 ± 0.25; ≥ 5.67", "2.50 ± 0.25; ≥ 0.567", "3.00 ± 0.25; ≥ 1.13"),
    )
    assert found.rows[-1][:4] == ("30", "4", "0.1872", "30")


def knowing(carry_over, bound=1.2345):
    """Return the document with what two attackers find in each training."""
    known = copy.deepcopy(DOCUMENT)
    noise = {"noise_multiplier": 0.25, "low": 0.225, "high": 0.275, "epsilon": [20.5, 18.25, 24.0]}
    epsilon = dict(zip(("epsilon", "low", "high"), noise.pop("epsilon"), strict=True))
    for number, cell in enumerate(known["cells"]):
        for one in (run for result in cell["results"] for run in result["runs"]):
            unknown = {**noise, "epsilon": epsilon, "bound": bound, "carry_over": carry_over * (-0.5) ** number}
            others = {**noise, "noise_multiplier": 0.24, "epsilon": {**epsilon, "epsilon": 22.0}}
            one["known_rounds"] = {"data unknown": unknown, "data known": others}
    return known


@pytest.mark.parametrize(
    ("carried", "said"), [(3.26, "3.3 standard errors above 0"), (-7.04, "7.0 standard errors below 0")]
)
def test_attackers_stand_in_the_order_of_what_they_know(carried, said):
    found = section(knowing(carried), "What attackers know")
    assert [name.partition(":")[0] for name in found.header[-5:]] == ["ε̂", "noise", "ε̂", "noise", "ε̂"]
    single = found.rows[0]
    assert single[-4:] == (
        "0.25 (0.225 to 0.275)",
        "20.5 (18.2 to 24); ≥ 1.23",
        "0.24 (0.225 to 0.275)",
        "22 (18.2 to 24)",
    )
    assert f"cosines are {said} at most: beyond 6" in found.note


def test_an_epsilon_that_is_not_known_is_said_to_be():
    document = copy.deepcopy(DOCUMENT)
    document["cells"][1]["analytical"]["epsilon"] = None
    assert section(document, "Estimates and bounds").rows[1][3] == "none known"
    assert section(document, "Analytical ε").rows[1][2:] == ("none known", "one member", "a rule")


def test_each_attack_shows_its_estimators_and_normality():
    found = section(DOCUMENT, "Attack: final model")
    assert found.header[-3:] == ("normal: A²", "p", "null law: p")
    assert found.rows[0][2:] == (
        *("0.50 ± 0.25", "1.50 ± 0.25", "2.50 ± 0.25", "3.50 ± 0.25"),
        *("1.234 ± 0.071", "0.987 ± 0.050", "0.432", "0.31", "0.62"),
    )
    assert section(DOCUMENT, "Attack: all rounds").header[-1] == "p"


def test_bounds_are_ordered_by_what_is_known_of_them():
    found = section(DOCUMENT, "Lower bounds, change of the model")
    assert found.header[2:] == ("one-run", "fixed-sequence", "normal-scores", "andrew")
    assert "proven: `one-run`; asymptotic: `fixed-sequence`, `normal-scores`; heuristic: `andrew`" in found.note


def test_repetitions_are_averaged_and_have_quantiles():
    epsilons = [1.0, 2.0, 3.0, 4.0, 10.0]
    document = {**DOCUMENT, "repetitions": 5, "axes": [], "cells": [cell({}, 30.0, [result(e) for e in epsilons])]}
    found = section(document, "Estimates and bounds")
    assert found.rows[0][3] == "6.0 ± 3.5; ≥ 0.567"
    quantiles = section(document, "Quantiles")
    assert quantiles.header == ("attack", "0.1", "0.3", "0.5", "0.7", "0.9")
    assert quantiles.rows[1] == ("final model", "3.4", "4.2", "5", "5.8", "9.6")
    for picture in ("densities.svg", "estimates.svg"):
        ElementTree.fromstring(render(recorded(document))[picture])
    titles = [one.title for one in training.sections(recorded(DOCUMENT), TIMINGS)]
    assert "Quantiles" not in titles
    assert "Utility" not in titles


def test_utility_has_the_difference_with_its_error():
    pairs = [result(1.0, without=accuracy) for accuracy in (0.86, 0.88, 0.87)]
    document = {**DOCUMENT, "repetitions": 3, "axes": [], "cells": [cell({}, 30.0, pairs, without=True)]}
    assert section(document, "Utility").rows == (("85.00%", "87.00%", "-2.00 ± 0.58"),)


def test_times_are_summed_over_a_cells_trainings():
    rows = section(DOCUMENT, "Time", [*TIMINGS, replace(TIMINGS[0], run=1)]).rows
    assert rows[0][2:] == ("2", "6", "2", "25%")
    assert rows[1][2:] == ("1", "3", "1", "25%")


def test_no_text_of_an_experiment_opens_a_tag_or_a_link():
    hostile = "<script>alert(1)</script> ![x](http://y/z.png)"
    document = copy.deepcopy(DOCUMENT) | {"title": hostile, "source": hostile, "name": f"a`{hostile}"}
    for cell in document["cells"]:
        cell["federation"] = hostile
        cell["results"][0]["runs"][0]["warnings"] = [hostile]
    page = render(recorded(document))["results.md"]
    assert page.startswith(r"# \<script\>alert(1)\</script\> !\[x\](http://y/z.png)" + "\n")
    assert page.count("script\\>") == page.count(r"\<script\>") + page.count(r"\</script\>") > 0
    assert page.count("script>") == page.count(r"\<script>") + page.count(r"\</script>")
    assert page.count("![x]") == page.count("`canaryproof train 'a'") > 0


def test_warnings_stand_first():
    document = copy.deepcopy(DOCUMENT)
    document["cells"][1]["results"][0] = result(1.0, warnings=["the sign looks wrong"])
    expected = "one round epsilon ∞, presentations 2, repetition 0, run 0: the sign looks wrong"
    assert training.warnings(recorded(document)) == [expected]
    page = render(recorded(document))["results.md"]
    assert page.index(f"**Warning:** {expected}") < page.index("## ")
    assert training.warnings(recorded(DOCUMENT)) == []


def test_a_training_beside_a_run_is_a_chapter_with_its_pictures():
    material = Material(
        Run("0", Effort.QUICK, 0, ()), trainings={"my <run>": TrainingFolder(recorded(DOCUMENT), TIMINGS)}
    )
    (chapter,) = chapters(material, {})
    assert (chapter.name, chapter.label, chapter.title) == ("training-my-run-", "Training: tiny", "Training: A title")
    assert all(chapter.text.count(f"]({name})") == 1 for name in chapter.figures)
    assert list(chapter.figures) == ["my-run--densities.svg", "my-run--estimates.svg"]
    page = html(material, [chapter])
    assert 'id="picture-my-run--estimates"' in page
    assert page.count('role="img"') == 2


@FEW
@given(document=damaged({"results": DOCUMENT, "timings": to_document(Timings(tuple(TIMINGS)))}))
def test_a_damaged_document_is_reported_or_refused(tmp_path, document):
    given = {f"tiny/{name}": part for name, part in document.items()}
    reported_or_refused(tmp_path, **{"tiny/experiment": {}, **given})


SETTINGS = {
    "audit": {"delta": 1e-5, "confidence": 0.95, "without_canaries": False},
    "model": {"name": "two_layer"},
    "canife": {"scores": 100},
}


def measured(epsilon, upper=9.0):
    return {
        "epsilon": epsilon,
        "lower": 0.5,
        "upper": upper,
        "threshold": 0.1,
        "false_alarms": 1,
        "missed": 2,
        "null_count": 50,
        "count": 50,
    }


def attack(epsilon, *, accuracy=0.9, upper=9.0, healthy=True):
    return {
        "epsilon": {"separated": measured(epsilon, upper)},
        "canary": {"loss": 0.25, "norm": 1.5, "health": 0.99, "attempts": 1, "healthy": healthy},
        "accuracy": accuracy,
        "deviations": [0.2, 0.4],
    }


def canife_audit(number, *attacks):
    composed = {"separated": [1.0 * number], "capped": [0.5 * number]}
    return {"round": number, "model_accuracy": 0.6, "attacks": list(attacks), "composed": composed}


def run(*audits, composed=2.0):
    rules = {"separated": None, "capped": None} if composed is None else {"separated": [composed], "capped": [2.0]}
    return {
        "canary_seed": 1,
        "accuracy": 0.85,
        "accuracy_without": None,
        "warnings": [],
        "canife": {"rounds": 40, "audits": list(audits), "composed": rules},
    }


def document(axes, *cells):
    return {
        "name": "tiny",
        "size": "quick",
        "title": "A title",
        "source": "",
        "seed": 3,
        "repetitions": 1,
        "axes": axes,
        "cells": [
            {
                "swept": swept,
                "settings": SETTINGS,
                "federation": "digits",
                "clients": 750,
                "test_examples": 297,
                "dim": 19210,
                "rounds": 40,
                "noise_multiplier": 0.18715,
                "analytical": {"epsilon": 30.0, "relation": "one member", "rule": "a rule"},
                "canife": {"round": 12.5, "training": theory},
                "results": [{"runs": runs}],
            }
            for swept, theory, runs in cells
        ],
    }


ALONG = document(
    [["training.epsilon"]],
    (
        {"training.epsilon": 30.0},
        30.0,
        [run(canife_audit(10, attack(2.0)), canife_audit(20, attack("inf", upper="inf")))],
    ),
    (
        {"training.epsilon": "inf"},
        "inf",
        [run(canife_audit(10, attack(2.5)), canife_audit(20, attack(3.5)), composed="inf")],
    ),
)
AT_END = document(
    [["training.cohort"], ["canife.pool"]],
    *(
        (
            {"training.cohort": cohort, "canife.pool": size},
            None,
            [run(canife_audit(40, *attacks), composed=None)],
        )
        for cohort in (32, 64)
        for size, attacks in ((128, [attack(2.0), attack(3.0, accuracy=0.7, healthy=False)]), (256, [attack(1.0)]))
    ),
)
CANIFE_TIMINGS = [replace(one, with_canaries=False, scoring=0.0, design=5.0, attack=7.0) for one in TIMINGS[:4]]


@pytest.fixture(autouse=True)
def letters(monkeypatch):
    """Write letters, not their outlines."""
    monkeypatch.setitem(training.STYLE, "svg.fonttype", "none")


def test_a_page_without_random_canaries_has_the_audits_by_canife():
    files = training.render(recorded(ALONG))
    assert sorted(files) == ["canife.svg", "results.md"]
    titles = [section.title for section in training.sections(recorded(ALONG), CANIFE_TIMINGS)]
    assert titles == ["CANIFE: ε̂ of rounds and trainings", "CANIFE: attacks", "Analytical ε", "Time"]
    assert "](canife.svg)" in files["results.md"]
    assert "least protected client" in files["results.md"]
    assert training.sections(recorded(ALONG), CANIFE_TIMINGS)[-1].rows[0] == (
        "30",
        "1",
        "3",
        "0",
        "0%",
        "5",
        "7",
    )
    assert files == training.render(recorded(copy.deepcopy(ALONG)))


def test_epsilons_of_rounds_and_trainings_stand_beside_the_theory():
    found, _ = training.canife_sections(recorded(ALONG))
    assert found.header[0] == "epsilon"
    assert found.rows[0] == ("30", "0.1872", "12.5", "∞ in 1 of 2", "2.95 ± 1.3", "30", "2", "2")
    assert found.rows[1] == ("∞", "0.1872", "12.5", "3 ± 0.71", "3 ± 0.71", "∞", "∞ in 1 of 1", "2")
    found, _ = training.canife_sections(recorded(AT_END))
    assert found.rows[0][-3:] == ("none known", "none known", "none known")


def test_attacks_are_summed_up():
    _, found = training.canife_sections(recorded(AT_END))
    assert found.rows[0] == (*("32", "128", "40", "2", "0.6", "0.8 ± 0.14", "0.3 ± 0", "0.99 ± 0", "0.25 ± 0", "1"),)
    broken = copy.deepcopy(AT_END)
    broken["cells"][0]["results"][0]["runs"][0]["canife"]["audits"][0]["attacks"][0]["canary"]["health"] = "-inf"
    assert training.canife_sections(recorded(broken))[1].rows[0][7] == "not finite in 1 of 2"


def test_audits_on_the_way_are_drawn_against_rounds():
    drawn = svg(training.picture(recorded(ALONG)))
    ElementTree.fromstring(drawn)
    for words in ("epsilon 30", "epsilon ∞", "round", "ε̂ of a round", "theory", "health"):
        assert words in drawn
    figure = training.picture(recorded(ALONG))
    axes = figure.get_axes()
    assert len(axes) == 8
    heights = [line.get_ydata()[0] for line in axes[0].get_lines()]
    assert 12.5 in heights
    assert 2.0 in heights
    # ∞ stands at the upper edge, and no interval where it has no upper end.
    assert sum(len(line.get_ydata()) == 2 and line.get_linestyle() == "-" for line in axes[0].get_lines()) == 1


def test_audits_at_the_end_are_drawn_against_what_is_swept():
    drawn = svg(training.picture(recorded(AT_END)))
    ElementTree.fromstring(drawn)
    for words in ("cohort 32", "cohort 64", "pool", "128", "256", "accuracy of the attack", "deviation of scores"):
        assert words in drawn
    assert all(axis.get_ylim()[0] == 0.0 for axis in training.picture(recorded(AT_END)).get_axes()[2:])


def test_trainings_without_an_audit_are_drawn_too():
    empty = document([], ({}, 30.0, [run(composed=None)]))
    page = training.render(recorded(empty))
    ElementTree.fromstring(page["canife.svg"])
    assert training.canife_sections(recorded(empty))[1].rows[0][1:3] == ("0", "none")


@pytest.mark.parametrize(
    ("swept", "shown"), [(1, "1"), (0.25, "0.25"), (300.0, "300"), (math.inf, "∞"), ("inf", "∞"), ("coin", "coin")]
)
def test_values_are_shown_as_they_were_written(swept, shown):
    assert value(swept) == shown


def test_fields_are_named_in_words():
    assert spoken("training.one_round_epsilon") == "one round epsilon"
    assert label({"training.one_round_epsilon": "inf", "canaries.count": 20}) == "one round epsilon ∞, count 20"
    assert label({}) == ""


def test_algorithm_3_has_unobserved_canaries_for_its_null_and_algorithm_2_the_exact_law():
    nulls = {"unobserved": "u", "exact": "e"}
    result = RepetitionRecord((), dict.fromkeys(("all", "final", "change"), nulls))
    assert [result.audit(attack) for attack in ("all", "final", "change")] == ["u", "e", "e"]


DENSITY = {"low": -1.0, "high": 9.0, "y": [0.1, 0.4, 0.1]}
RESULT = {**result(2.5), "densities": dict.fromkeys(("all", "final", "change"), DENSITY)}
DRAWN = {
    **DOCUMENT,
    "cells": [
        cell({"training.one_round_epsilon": noise, "canaries.presentations": number}, 30.0, [RESULT])
        for noise in ("inf", 30.0)
        for number in (1, 2, 4)
    ],
}


@pytest.fixture(autouse=True)
def text(monkeypatch):
    """Write letters, not their outlines."""
    monkeypatch.setitem(training.STYLE, "svg.fonttype", "none")


@pytest.mark.parametrize("draw", [densities, estimates])
def test_there_is_a_row_for_each_attack_and_a_panel_for_each_noise(draw):
    drawn = svg(draw(recorded(DRAWN)))
    ElementTree.fromstring(drawn)
    for words in ("final model", "change of the model", "one round epsilon ∞", "one round epsilon 30", "presentations"):
        assert words in drawn
    assert drawn.count(">final model<") == 2


def test_densities_have_the_null_where_it_is_known():
    assert svg(densities(recorded(DRAWN))).count(">null<") == 1


@pytest.mark.parametrize("draw", [densities, estimates])
def test_an_experiment_without_a_sweep_has_one_panel(draw):
    drawn = svg(draw(recorded({**DOCUMENT, "axes": [], "cells": [cell({}, 30.0, [RESULT])]})))
    assert drawn.count(">final model<") == 1


def test_repetitions_have_bars_of_error():
    document = copy.deepcopy(DRAWN)
    document["cells"][0]["results"] = [RESULT, RESULT]
    assert svg(estimates(recorded(document))) != svg(estimates(recorded(DRAWN)))


@pytest.mark.parametrize("draw", [densities, estimates])
def test_the_last_axis_alone_is_told_in_a_panel(draw):
    axes = [["training.one_round_epsilon", "canaries.presentations"]]
    drawn = svg(draw(recorded({**DRAWN, "axes": axes})))
    assert drawn.count(">final model<") == 1
    assert "∞, 4" in drawn


def points(line):
    return [tuple(place) for place in line.get_xydata().tolist()]


def test_each_panel_draws_its_own_densities_and_the_null_is_normal():
    document = copy.deepcopy(DRAWN)
    # The last curve is not the widest one, and those of the first panel are within four deviations.
    widths = 0.0, 1.0, 0.5, 5.0, 4.0, 3.0
    for width, one in zip(widths, document["cells"], strict=True):
        curves = {
            attack: {"low": -1.0 - width, "high": 3.0 + width / 2.0, "y": [0.1, 0.1 * width, 0.25]}
            for attack in training.ATTACKS
        }
        one["results"] = [{**RESULT, "densities": curves}]
    figure = densities(recorded(document))
    rows = [figure.axes[:2], figure.axes[2:4], figure.axes[4:]]
    for number, row in enumerate(rows):
        for axis, shown, limits in zip(row, (widths[:3], widths[3:]), ((-4.0, 4.0), (-6.0, 5.5)), strict=True):
            curves, null = axis.get_lines()[:3], axis.get_lines()[3:]
            assert [curve.get_label() for curve in curves] == ["1", "2", "4"]
            assert len({curve.get_color() for curve in curves}) == 3
            for curve, width in zip(curves, shown, strict=True):
                places = [(-1.0 - width, 0.1), (1.0 - width / 4.0, 0.1 * width), (3.0 + width / 2.0, 0.25)]
                assert points(curve) == places
            assert axis.get_xlim() == limits
            # Largest cosines, of all rounds, have no known law.
            assert len(null) == (number > 0)
            for line in null:
                xs, ys = line.get_data()
                assert (xs[0], xs[-1], max(np.diff(xs)) <= 0.1) == (-4.0, 4.0, True)
                assert ys == pytest.approx([NormalDist().pdf(x) for x in xs])
                assert line.get_color() == BLACK
    titles = [
        f"{attack} one round epsilon {noise}"
        for attack in ("all rounds", "final model", "change of the model")
        for noise in ("∞", "30")
    ]
    below = "score in the null's standard deviations, from its mean on; presentations"
    assert description(figure) == (
        f"6 panels. {'; '.join(titles)}. Axes of all: {below}, density. Drawn: 1, 2, 4, null."
    )


def test_bars_are_means_with_their_deviations_and_ticks_are_mean_bounds():
    cells = [
        cell({"canaries.presentations": number}, 30.0, [result(epsilon) for epsilon in epsilons])
        for number, epsilons in ((1, [1.0, 4.0]), (2, [3.0]))
    ]
    cells[0]["results"][1]["audits"]["all"]["unobserved"]["bounds"]["fixed-sequence"]["value"] = 1.0
    document = {**DOCUMENT, "repetitions": 2, "axes": [["canaries.presentations"]], "cells": cells}
    figure = estimates(recorded(document))
    # ε̂ by ``fitted`` is larger by 2 than the scaled value.
    expected = (
        ([12.0, 42.0], [32.0], (5.6789 + 1.0) / 2.0, 5.6789),
        ([3.0, 6.0], [5.0], 0.56789, 0.56789),
        ([4.0, 10.0], [8.0], 1.13578, 1.13578),
    )
    for axis, (two, (one,), *bounds) in zip(figure.axes, expected, strict=True):
        middle, half = sum(two) / 2.0, (two[1] - two[0]) / math.sqrt(2.0)
        assert [(bar.get_x() + bar.get_width() / 2.0, bar.get_height()) for bar in axis.patches] == [
            pytest.approx(place) for place in ((0.0, middle), (1.0, one))
        ]
        (error,) = (segment for bars in axis.collections for segment in bars.get_segments())
        assert error.tolist() == [pytest.approx([0.0, middle - half]), pytest.approx([0.0, middle + half])]
        ticks = [line.get_xydata() for line in axis.get_lines() if len(line.get_xdata()) == 2]
        for position, (tick, bound) in enumerate(zip(ticks[-2:], bounds, strict=True)):
            assert tick.tolist() == [pytest.approx([position + side, bound]) for side in (-0.38, 0.38)]
        assert [text.get_text() for text in axis.get_xticklabels()] == ["1", "2"]
        assert axis.get_ylim()[0] == 0.0
    assert description(figure) == (
        "3 panels. all rounds; final model; change of the model. Axes of all: presentations, ε̂ (bars, with standard "
        "deviations), lower bound (ticks)."
    )


@pytest.mark.parametrize("count", [1, 3, 5])
def test_bars_stand_in_the_middle_with_room_for_three(count):
    cells = [cell({"canaries.presentations": number}, 30.0, [RESULT]) for number in range(count)]
    figure = estimates(recorded({**DOCUMENT, "axes": [["canaries.presentations"]], "cells": cells}))
    for axis in figure.axes:
        low, high = axis.get_xlim()
        assert low + high == pytest.approx(count - 1)
        assert high - low == pytest.approx(max(count, 3) + 0.2)


@pytest.mark.parametrize("draw", [densities, estimates])
def test_six_panels_at_most_are_drawn_and_each_has_its_room(draw):
    def drawn(panels):
        swept = [{"training.one_round_epsilon": float(i), "canaries.presentations": 1} for i in range(panels)]
        return draw(recorded({**DOCUMENT, "cells": [cell(one, 30.0, [RESULT]) for one in swept]}))

    sizes = {}
    for panels in (1, 6, 8):
        figure = drawn(panels)
        assert len(figure.axes) == 3 * min(panels, 6)
        sizes[panels] = tuple(figure.get_size_inches())
    assert sizes[6] == sizes[8]
    assert len({height for _, height in sizes.values()}) == 1
    for panels in (1, 6):
        assert 2.0 < sizes[panels][0] / panels < 8.0
    assert 2.0 < sizes[6][1] / 3.0 < 3.0


def test_the_first_trainings_audits_are_drawn_by_their_rounds():
    document = copy.deepcopy(ALONG)
    first = document["cells"][0]["results"][0]["runs"]
    first[0]["canife"]["audits"][0] = canife_audit(10, attack(2.0, accuracy=0.8), attack(4.0, upper=6.5))
    first[0]["canife"]["audits"][0] |= {"model_accuracy": 0.35, "composed": {"separated": [1.0], "capped": [2.0, 5.0]}}
    first[0]["canife"]["audits"][0]["attacks"][1]["epsilon"]["separated"]["lower"] = -1.0
    first.append(run(canife_audit(10, attack(7.0)), canife_audit(20, attack(8.0))))
    figure = training.picture(recorded(document))
    (epsilons, other), (composed, beside), (shares, _), (pairs, _) = (figure.axes[i : i + 2] for i in (0, 2, 4, 6))
    lines = {}
    for line in epsilons.get_lines():
        lines.setdefault(line.get_label(), []).append(points(line))
    theory = [place[1] for place in lines["theory"][0]]
    assert theory == [12.5, 12.5]
    # Intervals begin at 0 at least, and there is none without an upper end. The triangle of ∞ is at the panel's edge.
    assert lines["interval"] == [[(10, 0.5), (10, 9.0)], [(10, 0.0), (10, 6.5)]]
    assert lines["ε̂ of an attack"] == [[(10, 2.0)], [(10, 4.0)]]
    assert lines["ε̂ = ∞"] == [[(20, 0.97)]]
    level, measured_line = composed.get_lines()
    assert [y for _, y in points(level)] == [30.0, 30.0]
    assert points(measured_line) == [(10, 3.5), (20, 10.0)]
    # An infinite ε is no line.
    assert [points(line) for line in beside.get_lines()] == [[(10, 5.0), (20, 10.0)]]
    assert {line.get_label(): points(line) for line in shares.get_lines()} == {
        "attack's accuracy": [(10, pytest.approx(0.85)), (20, 0.9)],
        "canary's health": [(10, 0.99), (20, 0.99)],
        "model's accuracy": [(10, 0.35), (20, 0.6)],
    }
    assert shares.get_ylim()[0] == epsilons.get_ylim()[0] == composed.get_ylim()[0] == 0.0
    assert 1.0 < shares.get_ylim()[1] < 1.1
    # Finite ones of all trainings.
    assert [points(line) for line in pairs.get_lines()] == [[(0.8, 2.0), (0.9, 4.0), (0.9, 7.0), (0.9, 8.0)]]
    assert other.get_title(loc="left") == "epsilon ∞"
    width, height = figure.get_size_inches()
    assert 2.5 < width / 2.0 < 4.0
    assert 2.0 < height / 4.0 < 3.0


def test_where_no_epsilon_is_known_none_is_drawn():
    runs = ALONG["cells"][0]["results"][0]["runs"]
    unknown = document([["training.epsilon"]], ({"training.epsilon": 30.0}, None, runs))
    known, composed, shares, _ = training.picture(recorded(unknown)).axes
    assert len(known.get_lines()) > 0
    assert not composed.get_lines()
    assert len(shares.get_lines()) == 3


def test_attacks_at_the_end_are_drawn_with_their_mean_and_deviation():
    figure = training.picture(recorded(AT_END))
    accuracies, deviations, healths = (figure.axes[i : i + 2] for i in (0, 2, 4))
    for axis in accuracies:
        clouds = [points(line) for line in axis.get_lines() if line.get_label() == "an attack"]
        assert clouds == [[(0, 0.9), (0, 0.7)], [(1, 0.9)]]
        means = [points(line) for line in axis.get_lines() if line.get_marker() == "o"]
        assert means == [[(0.12, pytest.approx(0.8))], [(1.12, 0.9)]]
        (bar,) = (segment for bars in axis.collections for segment in bars.get_segments())
        # The deviation of 0.9 and 0.7.
        assert bar.tolist() == [pytest.approx([0.12, 0.8 + side * 0.1 * math.sqrt(2.0)]) for side in (-1, 1)]
        low, high = axis.get_xlim()
        assert low + high == pytest.approx(1.0)
        assert 2.0 < high - low < 2.5
    for axis in deviations:
        # The mean of 0.2 and 0.4.
        values = {y for line in axis.get_lines() if line.get_label() == "an attack" for _, y in points(line)}
        assert values == {(0.2 + 0.4) / 2.0}
    for axis in healths:
        assert axis.get_ylim() == (0.0, 1.03)
        assert [line for line in axis.get_lines() if line.get_label() == "an attack"]
    assert [text.get_text() for text in healths[0].get_xticklabels()] == ["128", "256"]
    assert description(figure) == (
        "6 panels. cohort 32: accuracy of the attack; cohort 64; deviation of scores; a panel; health of the canary; a "
        "panel. Axes of all: pool. Drawn: an attack, mean ± standard deviation."
    )
    width, height = figure.get_size_inches()
    assert 2.5 < width / 2.0 < 4.0
    assert 2.0 < height / 3.0 < 3.0


def test_the_mean_of_bounds_is_rounded_down():
    assert [training._down(bounds) for bounds in ([5.6789, 1.0], [0.0, 2.5], [math.inf, 1.0])] == ["3.33", "1.25", "∞"]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([], "none"),
        ([1.2345], "1.23"),
        ([1.0, 3.0], f"2 ± {math.sqrt(2.0):.2g}"),
        ([math.inf, 1.0, math.inf], "∞ in 2 of 3"),
        ([math.inf, -math.inf], "not finite in 2 of 2"),
        ([math.nan, 1.0], "not finite in 1 of 2"),
    ],
)
def test_means_come_with_deviations_and_say_how_many_are_infinite(values, shown):
    assert training._spread(values) == shown


def test_what_differs_between_cells_is_a_range():
    document = copy.deepcopy(DOCUMENT)
    for number, one in enumerate(document["cells"]):
        one |= {
            "clients": 750 + 1000 * number,
            "dim": 19210,
            "rounds": 20 - number,
            "analytical": {**one["analytical"]},
        }
        one["analytical"]["epsilon"] = None if number == 3 else 2.34567 + number
    page = render(recorded(document))["results.md"]
    assert "digits, 750 to 5,750 clients; two\\_layer with d = 19,210 parameters; 15 to 20 rounds." in page
    # ε̂ by ``fitted`` of 5 to 20, larger by 2; bounds are all alike.
    assert (
        "For an attacker who sees all rounds ε̂ is 7 to 22, the 95% lower bound is 5.67, and the analytical ε is "
        "2.35 to 7.35."
    ) in page
    document["cells"][2]["results"] = [result(0.5)]
    document["cells"][2]["results"][0]["audits"]["all"]["unobserved"]["bounds"]["fixed-sequence"]["value"] = 9.0
    for one in document["cells"]:
        one["analytical"]["epsilon"] = None
    page = render(recorded(document))["results.md"]
    assert "ε̂ is 7 to 22, the 95% lower bound is 5.67 to 9.00, and no analytical ε is known." in page


def test_one_who_knows_the_rounds_is_named_where_he_was_measured():
    page = render(recorded(knowing(1.0)))["results.md"]
    # All cells have the same ε̂ with data unknown, and another with data known.
    assert " For one who also knows a canary's rounds ε̂ is 20.5.\n" in page
    assert "For one who also knows" not in render(recorded(DOCUMENT))["results.md"]


def test_the_headline_of_audits_by_canife_alone():
    page = training.render(recorded(ALONG))["results.md"]
    # The means of 2 and log(49.5), which stands for ∞, and of 2.5 and 3.5; ε is 30 and ∞.
    words = "CANIFE's mean ε̂ of a round is 2.95 to 3, and the analytical ε is 30 of the training."
    assert page.startswith(f"# A title\n\n{words}\n")
    unaudited = document([], ({}, None, [run(composed=None)]))
    unaudited["cells"][0]["analytical"]["epsilon"] = None
    page = training.render(recorded(unaudited))["results.md"]
    assert "CANIFE's mean ε̂ of a round is none, and no analytical ε is known of the training." in page


def test_composed_values_of_all_trainings_and_attacks_are_averaged():
    document = copy.deepcopy(ALONG)
    runs = document["cells"][0]["results"][0]["runs"]
    runs.append(run(canife_audit(10, attack(2.0))))
    runs[0]["canife"]["composed"] = {"separated": [1.0, 3.0], "capped": [0.5, 0.5]}
    runs[1]["canife"] |= {"rounds": 44, "composed": {"separated": [5.0], "capped": [3.5]}}
    epsilons, attacks = training.canife_sections(recorded(document))
    # Of 1, 3 and 5 the deviation is 2; of 0.5, 0.5 and 3.5 √3.
    assert epsilons.rows[0][-2:] == ("3 ± 2", "1.5 ± 1.7")
    # 40 and 44 rounds: √8.
    assert attacks.rows[0][1:3] == ("42 ± 2.8", "3")
    assert "at δ = 1e-05, of a round" in epsilons.note
    assert attacks.note.startswith("Attacks of 100 trials in the first cell.")


def test_bounds_are_by_the_exact_null_where_there_is_one():
    document = copy.deepcopy(DOCUMENT)
    document["cells"][0]["results"] = [result(0.5), result(1.5)]
    first, second = document["cells"][0]["results"]
    for number, one in enumerate((first, second)):
        exact, unobserved = (one["audits"]["final"][null]["bounds"] for null in ("exact", "unobserved"))
        exact["fixed-sequence"]["value"], unobserved["fixed-sequence"]["value"] = 1.25 + number, 7.0
        # A bound that needs unobserved scores.
        del exact["one-run"]
        unobserved["one-run"]["value"] = 3.5
    found = section({**document, "repetitions": 2}, "Lower bounds, final model")
    values = dict(zip(found.header[2:], found.rows[0][2:], strict=True))
    assert values == {"one-run": "3.50", "fixed-sequence": "1.75", "normal-scores": "0.567", "andrew": "0.567"}
    assert found.note.startswith("At 95%; coverage is proven: `one-run`; asymptotic: ")


def test_five_repetitions_have_quantiles_and_four_none():
    for count in (4, 5):
        cells = [cell({}, 30.0, [result(float(i)) for i in range(count)])]
        document = {**DOCUMENT, "repetitions": count, "axes": [], "cells": cells}
        titles = [one.title for one in training.sections(recorded(document))]
        assert ("Quantiles" in titles) == (count == 5)
        # Times are given or not.
        assert "Time" not in titles


def test_repetitions_are_told_in_notes_and_averaged_with_their_deviation():
    document = {**DOCUMENT, "repetitions": 2, "axes": [], "cells": [cell({}, 30.0, [result(1.0), result(3.0)])]}
    document["cells"][0]["results"][1]["audits"]["final"]["exact"] |= {"distance": 1.734, "ratio": 0.687}
    found = section(document, "Attack: final model")
    # 0.5/√2 and 0.3/√2.
    assert found.rows[0][4:6] == ("1.48 ± 0.35", "0.84 ± 0.21")
    assert found.note.endswith("as in Table 6, of the first repetition.")
    assert section(DOCUMENT, "Attack: final model").note.endswith("as in Table 6.")
    assert "Over repetitions: mean ± standard deviation; mean bound." in section(document, "Estimates and bounds").note
    assert "Over repetitions" not in section(DOCUMENT, "Estimates and bounds").note


def test_accuracies_are_compared_where_every_training_has_its_pair():
    some = [
        cell({"canaries.count": count}, 30.0, [result(1.0, without=accuracy) for accuracy in without], without=True)
        for count, without in ((1, (0.84,)), (2, (0.86, None)), (3, (0.87, 0.85, 0.83, 0.81)))
    ]
    found = section({**DOCUMENT, "axes": [["canaries.count"]], "cells": some}, "Utility")
    # 0.85 with canaries. The differences of the last one, in points: −2, 0, 2 and 4.
    error = math.sqrt((9 + 1 + 1 + 9) / 3 / 4)
    assert found.rows == (("1", "85.00%", "84.00%", "+1.00"), ("3", "85.00%", "84.00%", f"+1.00 ± {error:.2g}"))
    assert "Share of the 297 held-out examples" in found.note


def test_times_of_nothing_are_no_share():
    rows = section(DOCUMENT, "Time", [replace(TIMINGS[0], training=0.0, scoring=0.0)]).rows
    assert rows[0][2:] == ("1", "0", "0", "0%")
    assert rows[1][2:] == ("0", "0", "0", "0%")


def test_the_rounds_are_measured_with_intervals_and_several_with_deviations():
    document = knowing(2.0)
    first = document["cells"][0]["results"]
    first.append(copy.deepcopy(first[0]))
    known = first[1]["runs"][0]["known_rounds"]
    known["data unknown"] |= {"noise_multiplier": 0.35, "bound": 2.0}
    known["data unknown"]["epsilon"] = {"epsilon": 22.5, "low": 1.0, "high": 30.0}
    found = section(document, "What attackers know")
    # The deviations are 0.1/√2 and 2/√2; the mean bound is (1.2345 + 2)/2.
    assert found.rows[0][-4:] == ("0.3 ± 0.071", "21.5 ± 1.4; ≥ 1.61", "0.24 ± 0", "22 ± 0")
    for cell_ in document["cells"]:
        for one in (run for each in cell_["results"] for run in each["runs"]):
            del one["known_rounds"]["data unknown"]
    found = section(document, "What attackers know")
    assert found.rows[0][-4:-2] == ("not measured", "not measured")
    assert "standard errors" not in found.note


@pytest.mark.parametrize(("missing", "named"), [("densities", "'all'"), ("audits", "'audits'")])
def test_what_a_later_cell_lacks_is_named(missing, named):
    document = copy.deepcopy(DOCUMENT)
    del document["cells"][1]["results"][0][missing]
    # The command says so in a line.
    with pytest.raises(KeyError, match=named):
        training.render(recorded(document))
