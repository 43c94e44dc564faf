import copy
from xml.etree import ElementTree

import numpy as np
from damage import FEW, damaged, reported_or_refused
from hypothesis import given

from canaryproof.reports import training
from canaryproof.reports.chapters import chapters
from canaryproof.reports.html import html
from canaryproof.reports.material import Material, Training
from canaryproof.reports.training import render
from canaryproof.verify.check.results import Level, Run

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
    density = {"x": np.linspace(-3.0, 5.0, 9).tolist(), "y": [0.1] * 9}
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
    {"cell": i, "repetition": 0, "run": 0, "with_canaries": True, "training": 3.0, "scoring": 1.0, "noise": 0.1}
    for i in range(6)
]


def section(document, title, timings=TIMINGS):
    return next(one for one in training.sections(document, timings) if one.title == title)


def test_the_page_has_all_tables_and_pictures():
    files = render(DOCUMENT, TIMINGS)
    assert sorted(files) == ["densities.svg", "estimates.svg", "results.md"]
    page = files["results.md"]
    assert page.startswith("# A title\n\n`canaryproof train tiny --size quick`, seed 3, repetitions: 1. Analogue of a ")
    assert "digits, 750 clients; two_layer with d = 19,210 parameters; 20 rounds." in page
    for name in ("estimates.svg", "densities.svg"):
        assert f"]({name})" in page
        ElementTree.fromstring(files[name])
    assert "None" not in page
    assert "nan" not in page
    assert files == render(copy.deepcopy(DOCUMENT), TIMINGS)


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
        ElementTree.fromstring(render(document, TIMINGS)[picture])
    titles = [one.title for one in training.sections(DOCUMENT, TIMINGS)]
    assert "Quantiles" not in titles
    assert "Utility" not in titles


def test_utility_has_the_difference_with_its_error():
    pairs = [result(1.0, without=accuracy) for accuracy in (0.86, 0.88, 0.87)]
    document = {**DOCUMENT, "repetitions": 3, "axes": [], "cells": [cell({}, 30.0, pairs, without=True)]}
    assert section(document, "Utility").rows == (("85.00%", "87.00%", "-2.00 ± 0.58"),)


def test_times_are_summed_over_a_cells_trainings():
    rows = section(DOCUMENT, "Time", [*TIMINGS, {**TIMINGS[0], "run": 1}]).rows
    assert rows[0][2:] == ("2", "6", "2", "25%")
    assert rows[1][2:] == ("1", "3", "1", "25%")


def test_warnings_stand_first():
    document = copy.deepcopy(DOCUMENT)
    document["cells"][1]["results"][0] = result(1.0, warnings=["the sign looks wrong"])
    expected = "one round epsilon ∞, presentations 2, repetition 0, run 0: the sign looks wrong"
    assert training.warnings(document) == [expected]
    page = render(document, TIMINGS)["results.md"]
    assert page.index(f"**Warning:** {expected}") < page.index("## ")
    assert training.warnings(DOCUMENT) == []


def test_a_training_beside_a_run_is_a_chapter_with_its_pictures():
    material = Material(Run("0", Level.QUICK, 0, ()), trainings={"my <run>": Training(DOCUMENT, TIMINGS)})
    (chapter,) = chapters(material, {})
    assert chapter.name == "training-my-run-"
    assert list(chapter.figures) == ["my-run--densities.svg", "my-run--estimates.svg"]
    page = html(material, [chapter])
    assert 'id="picture-my-run--estimates"' in page
    assert page.count('role="img"') == 2


@FEW
@given(document=damaged({"results": DOCUMENT, "timings": {"trainings": TIMINGS}}))
def test_a_damaged_document_is_reported_or_refused(tmp_path, document):
    given = {f"tiny/{name}": part for name, part in document.items()}
    reported_or_refused(tmp_path, **{"tiny/experiment": {}, **given})
