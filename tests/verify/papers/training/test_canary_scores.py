import json

import numpy as np
import pytest

from canaryproof.verify.audit.answer.run_audit import audit as audited
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import from_dimension
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.papers.training.canary_scores import ATTACKS, CanaryScores, audits, densities

DIM, DELTA = 1000, 1e-3


def made(count=40, seed=0):
    rng = np.random.default_rng(seed)
    scale = DIM**-0.5
    return CanaryScores(
        {attack: (2.0 + rng.standard_normal(count)) * scale for attack in ATTACKS},
        {attack: rng.standard_normal(count) * scale for attack in ATTACKS},
    )


@pytest.fixture(scope="module")
def found():
    return audits(made(), DIM, DELTA, 0.9, "fixed")


def test_every_attack_has_the_nulls_that_there_are_for_it(found):
    assert {attack: list(nulls) for attack, nulls in found.items()} == {
        "all": ["unobserved"],
        "final": ["exact", "unobserved"],
        "change": ["exact", "unobserved"],
    }
    assert found["all"]["unobserved"].null_law is None
    assert found["final"]["exact"].null_law is None
    assert found["final"]["unobserved"].null_law.p_value > 1e-6


def test_numbers_are_those_of_the_audit(found):
    scores = made()
    audit = found["final"]["exact"]
    moments = from_dimension(scores.observed["final"], DIM)
    assert audit.distance == float(moments.distance)
    assert audit.estimates["fitted"].epsilon == float(epsilon_estimators.fitted_estimate(moments, DELTA).epsilon)
    direct, record = (
        audited(Scores(scores.observed["change"], scores.unobserved["change"], DIM), DELTA, 0.9),
        found["change"]["unobserved"],
    )
    assert (record.observed, record.unobserved) == (direct.count, direct.null_count)
    assert (record.distance, record.distance_error) == (direct.standardised_mean, direct.mean_error)
    assert (record.ratio, record.ratio_error) == (direct.deviation_ratio, direct.ratio_error)
    assert record.variance_p_value == direct.variance_p_value
    for fit, own in ((direct.normality, record.normality), (direct.null_law, record.null_law)):
        assert (fit.statistic, fit.p_value) == (own.statistic, own.p_value)
    assert list(record.estimates) == [row.name for row in direct.estimates]
    for row in direct.estimates:
        own = record.estimates[row.name]
        assert (own.epsilon, own.standard_error) == (row.epsilon, row.standard_error)
        assert (own.low, own.high, own.certified) == (row.low, row.high, row.enclosure)
    for row in direct.bounds:
        own = record.bounds[row.name]
        assert (own.value, own.kind, own.coverage, own.cap) == (row.low, row.kind, row.coverage, row.cap)
        assert own.upper is None
    # Posterior intervals alone have an upper end.
    assert [name for name, own in record.bounds.items() if own.upper is not None] == [
        name for name, own in record.bounds.items() if own.kind == "posterior interval"
    ]
    # Not told the dimension, as maxima have another law.
    assert (found["all"]["unobserved"].observed, found["all"]["unobserved"].unobserved) == (40, 40)


def test_every_bound_that_serves_is_there(found):
    exact, unobserved = found["final"]["exact"].bounds, found["final"]["unobserved"].bounds
    assert set(exact) == {name for name, method in METHODS.items() if method.needs != "unobserved"}
    assert set(unobserved) == {name for name, method in METHODS.items() if method.needs != "null"}
    assert unobserved["one-run"].coverage == "heuristic"
    coins = audits(made(), DIM, DELTA, 0.9, "coin")["all"]["unobserved"].bounds
    assert coins["one-run"].coverage == "proven"


def test_an_outcome_is_json_and_the_same_again(found):
    again = audits(made(), DIM, DELTA, 0.9, "fixed")
    for attack, nulls in found.items():
        for null, audit in nulls.items():
            assert json.dumps(to_document(again[attack][null])) == json.dumps(to_document(audit))


def test_runs_are_pooled_in_order():
    runs = [made(3, 1), made(2, 2)]
    pooled = CanaryScores.pooled(runs)
    for kind in ("observed", "unobserved"):
        for attack in ATTACKS:
            parts = [getattr(run, kind)[attack] for run in runs]
            assert getattr(pooled, kind)[attack].tolist() == [*parts[0], *parts[1]]


def test_densities_are_in_the_nulls_units_and_have_area_one():
    scores = made(400)
    for attack, density in densities(scores, DIM).items():
        x, y = np.linspace(density.low, density.high, len(density.y)), np.array(density.y)
        assert np.trapezoid(y, x) == pytest.approx(1.0, abs=0.01)
        mean = np.trapezoid(x * y, x)
        unit = scores.unobserved["all"].std() if attack == "all" else DIM**-0.5
        shift = scores.unobserved["all"].mean() if attack == "all" else 0.0
        assert mean == pytest.approx((scores.observed[attack].mean() - shift) / unit, abs=0.02)
