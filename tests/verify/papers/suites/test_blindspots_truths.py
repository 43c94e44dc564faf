import dataclasses
import math

import numpy as np
import pytest

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.blindspots.mechanisms import gaussian_truth
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import atlas, blindspots_truths
from canaryproof.verify.papers.suites.blindspots_truths import MECHANISMS

CONTEXT = Context(Effort.QUICK, 7)


def checks_of(topic):
    return [check for check in blindspots_truths.CHECKS if check.id.startswith(f"blindspots.{topic}.")]


@pytest.mark.parametrize("check", checks_of("truth"), ids=lambda check: check.id)
def test_the_truths_agree(check, quick_run):
    result = quick_run.results[check.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding


@pytest.mark.parametrize(
    "name", ["less-noise", "low-rank", "reused-noise", "released-outright", "few-states", "laplace"]
)
def test_a_truth_that_is_a_little_wrong_is_found(name, monkeypatch):
    wrong = dataclasses.replace(MECHANISMS[name], truth=lambda _value, claim: gaussian_truth(claim, 1.000001))
    monkeypatch.setitem(MECHANISMS, name, wrong)
    assert blindspots_truths._judge(name, CONTEXT).verdict is Verdict.REFUTED


@pytest.mark.parametrize("distance", [0.1, 1.0, 30.0])
def test_the_integral_is_the_gaussian_mechanisms_curve(distance):
    delta = blindspots_truths._normals(distance)
    for epsilon in (0.0, 0.5 * distance, 0.5 * distance**2):
        expected = float(gaussian_mechanism.delta(epsilon, 1.0 / distance))
        assert delta(epsilon) == pytest.approx(expected, rel=1e-11, abs=1e-16)


def test_the_worst_client_is_where_there_is_least_noise():
    noise = np.diag([2.0, 0.5, 1.0])
    assert blindspots_truths._worst(noise, [np.eye(3)]) == pytest.approx(2.0)
    assert blindspots_truths._worst(noise, [np.eye(3)[:, [0]]]) == pytest.approx(0.5)
    assert blindspots_truths._worst(noise[:, :2], [np.eye(3)]) == math.inf


@pytest.mark.parametrize("check", checks_of("scores"), ids=lambda check: check.id)
def test_the_laws_agree(check, quick_run):
    result = quick_run.results[check.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding


def test_scores_beside_too_long_a_residual_are_found(monkeypatch):
    right = atlas.exact
    monkeypatch.setattr(
        atlas, "exact", lambda residual, *rest: right(type(residual)(residual.dims, 1.5 * residual.grams), *rest)
    )
    assert blindspots_truths._single(100, 10, 12.0, CONTEXT).verdict is Verdict.REFUTED
