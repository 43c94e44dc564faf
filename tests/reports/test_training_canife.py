import copy
from xml.etree import ElementTree

import pytest
from damage import FEW, damaged, reported_or_refused
from hypothesis import given

from canaryproof.reports import training
from canaryproof.reports.figures import svg

SETTINGS = {
    "audit": {"delta": 1e-5, "confidence": 0.95, "without_canaries": False},
    "model": {"name": "two_layer"},
    "canife": {"scores": 100},
}


def measured(epsilon, upper=9.0):
    return {"epsilon": epsilon, "lower": 0.5, "upper": upper, "threshold": 0.1, "false_alarms": 1, "missed": 2}


def attack(epsilon, *, accuracy=0.9, upper=9.0, healthy=True):
    return {
        "loss": 0.25,
        "norm": 1.5,
        "health": 0.99,
        "attempts": 1,
        "healthy": healthy,
        "accuracy": accuracy,
        "deviations": [0.2, 0.4],
        "separated": measured(epsilon, upper),
        "capped": measured(3.5 if epsilon == "inf" else epsilon),
    }


def audit(number, *attacks):
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
    ({"training.epsilon": 30.0}, 30.0, [run(audit(10, attack(2.0)), audit(20, attack("inf", upper="inf")))]),
    ({"training.epsilon": "inf"}, "inf", [run(audit(10, attack(2.5)), audit(20, attack(3.5)), composed="inf")]),
)
AT_END = document(
    [["training.cohort"], ["canife.pool"]],
    *(
        ({"training.cohort": cohort, "canife.pool": size}, None, [run(audit(40, *attacks), composed=None)])
        for cohort in (32, 64)
        for size, attacks in ((128, [attack(2.0), attack(3.0, accuracy=0.7, healthy=False)]), (256, [attack(1.0)]))
    ),
)
TIMINGS = [
    {"cell": i, "repetition": 0, "run": 0, "training": 3.0, "scoring": 0.0, "noise": 0.1, "design": 5.0, "attack": 7.0}
    for i in range(4)
]


@pytest.fixture(autouse=True)
def letters(monkeypatch):
    """Write letters, not their outlines."""
    monkeypatch.setitem(training.STYLE, "svg.fonttype", "none")


def test_a_page_without_random_canaries_has_the_audits_by_canife():
    files = training.render(ALONG, TIMINGS)
    assert sorted(files) == ["canife.svg", "results.md"]
    titles = [section.title for section in training.sections(ALONG, TIMINGS)]
    assert titles == ["CANIFE: ε̂ of rounds and trainings", "CANIFE: attacks", "Analytical ε", "Time"]
    assert "](canife.svg)" in files["results.md"]
    assert "least protected client" in files["results.md"]
    assert training.sections(ALONG, TIMINGS)[-1].rows[0] == ("30", "1", "3", "0", "0%", "5", "7")
    assert files == training.render(copy.deepcopy(ALONG), TIMINGS)


def test_epsilons_of_rounds_and_trainings_stand_beside_the_theory():
    found, _ = training.canife_sections(ALONG)
    assert found.header[0] == "epsilon"
    assert found.rows[0] == ("30", "0.1872", "12.5", "∞ in 1 of 2", "2.75 ± 1.1", "30", "2", "2")
    assert found.rows[1] == ("∞", "0.1872", "12.5", "3 ± 0.71", "3 ± 0.71", "∞", "∞ in 1 of 1", "2")
    found, _ = training.canife_sections(AT_END)
    assert found.rows[0][-3:] == ("none known", "none known", "none known")


def test_attacks_are_summed_up():
    _, found = training.canife_sections(AT_END)
    assert found.rows[0] == (*("32", "128", "40", "2", "0.6", "0.8 ± 0.14", "0.3 ± 0", "0.99 ± 0", "0.25 ± 0", "1"),)
    broken = copy.deepcopy(AT_END)
    broken["cells"][0]["results"][0]["runs"][0]["canife"]["audits"][0]["attacks"][0]["health"] = "-inf"
    assert training.canife_sections(broken)[1].rows[0][7] == "not finite in 1 of 2"


def test_audits_on_the_way_are_drawn_against_rounds():
    drawn = svg(training.picture(ALONG))
    ElementTree.fromstring(drawn)
    for words in ("epsilon 30", "epsilon ∞", "round", "ε̂ of a round", "theory", "health"):
        assert words in drawn
    figure = training.picture(ALONG)
    axes = figure.get_axes()
    assert len(axes) == 6
    heights = [line.get_ydata()[0] for line in axes[0].get_lines()]
    assert 12.5 in heights
    assert 2.0 in heights
    # ∞ stands at the upper edge, and no interval where it has no upper end.
    assert sum(len(line.get_ydata()) == 2 and line.get_linestyle() == "-" for line in axes[0].get_lines()) == 1


def test_audits_at_the_end_are_drawn_against_what_is_swept():
    drawn = svg(training.picture(AT_END))
    ElementTree.fromstring(drawn)
    for words in ("cohort 32", "cohort 64", "pool", "128", "256", "accuracy of the attack", "deviation of scores"):
        assert words in drawn
    assert all(axis.get_ylim()[0] == 0.0 for axis in training.picture(AT_END).get_axes()[2:])


def test_trainings_without_an_audit_are_drawn_too():
    empty = document([], ({}, 30.0, [run(composed=None)]))
    page = training.render(empty, TIMINGS[:1])
    ElementTree.fromstring(page["canife.svg"])
    assert training.canife_sections(empty)[1].rows[0][1:3] == ("0", "none")


@FEW
@given(document=damaged({"results": ALONG, "timings": {"trainings": TIMINGS}}))
def test_a_damaged_document_is_reported_or_refused(tmp_path, document):
    given = {f"tiny/{name}": part for name, part in document.items()}
    reported_or_refused(tmp_path, **{"tiny/experiment": {}, **given})
