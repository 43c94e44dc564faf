import json
import math
from dataclasses import astuple
from types import SimpleNamespace

import numpy as np
import pytest

from canaryproof.verify.audit.engine.executors import EngineError, Lost
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims.canife.rules import with_printed
from canaryproof.verify.papers.comparison import canife
from canaryproof.verify.papers.comparison.canife import DIGITS, POISSON, PRINTED, BenchmarkRun, on_cluster, read, train
from canaryproof.verify.papers.records.benchmark_record import BenchmarkRecord
from canaryproof.verify.papers.records.training_record import BoundRecord


def test_the_record_goes_through_json_and_has_all_parts(record):
    document = json.loads(json.dumps(to_document(record), allow_nan=False))
    assert to_document(json_records.read(BenchmarkRecord, document)) == document
    assert [scenario.name for scenario in record.scenarios] == ["Poisson samples"]
    for scenario in record.scenarios:
        assert len(scenario.runs) == len(scenario.accuracies) == record.repeat == 2
        assert list(scenario.canife) == list(scenario.seconds.canife) == ["as printed", "redesigned"]
        assert {canaries.audits for canaries in scenario.canife.values()} == {2}
        assert {row.source for row in scenario.audits} == {
            "Algorithm 3",
            "Algorithm 2, final model",
            "Algorithm 2, change",
            "a round of CANIFE as printed",
            "a round of CANIFE redesigned",
        }


def test_means_and_deviations_are_those_of_the_runs(record):
    scenario = record.scenarios[0]
    values = [run.oneshot["all"]["unobserved"].estimates["fitted"].epsilon for run in scenario.runs]
    row = scenario.methods[0]
    assert row.name == "Algorithm 3, all rounds"
    assert row.epsilon.mean == pytest.approx(np.mean(values))
    assert row.epsilon.deviation == pytest.approx(np.std(values, ddof=1))
    bound = next(row for row in scenario.audits if row.name == "one-run" and row.source == "Algorithm 3")
    expected = [run.oneshot["all"]["unobserved"].bounds["one-run"].value for run in scenario.runs]
    assert bound.epsilon.mean == pytest.approx(np.mean(expected))


def test_more_scores_raise_the_cap(record):
    for design in record.designs:
        _check_counts(*design.counts)
        assert design.unlimited.composed.mean > 0.0
    assert [(design.name, design.kind) for design in record.designs] == [
        ("as printed", "printed"), ("redesigned", "redesign"),
    ]  # fmt: skip


def _check_counts(few, many):
    assert (few.scores, many.scores) == (20, 60)
    assert few.round_cap == pytest.approx(math.log(0.95 * 10))
    assert few.at_delta.cap < many.at_delta.cap
    for row in (few, many):
        assert row.separated <= row.capped <= row.audits == 2
        for composed in (row.at_delta, row.at_reciprocal):
            assert composed.epsilon.mean <= composed.cap * (1.0 + 1e-12)


def test_the_sweep_has_its_rates(record):
    assert [one.rate for one in record.sweep] == [0.1]
    assert 0.0 <= record.sweep[0].accuracies[0] <= 1.0


def test_a_bound_is_of_the_exact_null_where_it_has_one():
    def nulls(training):
        rows = {"both": (1.0, 3.0), "unobserved alone": (2.0,), "exact alone": (math.nan, 4.0)}
        found = {"unobserved": {}, "exact": {}}
        for name, values in rows.items():
            for null, value in zip(found, values, strict=False):
                if not math.isnan(value):
                    found[null][name] = BoundRecord(training + value, None, "lower bound", "exact", math.inf)
        return {null: SimpleNamespace(bounds=bounds, estimates={}) for null, bounds in found.items()}

    trainings = [
        SimpleNamespace(
            oneshot={attack: nulls(run) for attack in ("all", "final", "change")},
            canife={design.name: [SimpleNamespace(bounds={})] for design in canife.BOTH},
        )
        for run in (0.0, 10.0)
    ]
    shown = {(row.source, row.name): row.epsilon.mean for row in canife._audits(trainings)}
    assert shown == {
        ("Algorithm 3", "both"): 6.0,
        ("Algorithm 3", "unobserved alone"): 7.0,
        **{
            (f"Algorithm 2, {of}", name): mean
            for of in ("final model", "change")
            for name, mean in (("both", 8.0), ("unobserved alone", 7.0), ("exact alone", 9.0))
        },
    }


def test_digits_serve_who_has_no_data(tmp_path):
    federation, setting, fashion = read(None)
    assert (federation.name, federation.clients, setting, fashion) == ("digits", 1500, DIGITS, False)
    assert len(federation.test_labels) > setting.pool
    # As many canaries a round, and as many audits, as on MNIST.
    small, large = -(-1500 // DIGITS.batch), -(-60_000 // PRINTED.batch)
    assert DIGITS.canaries / small == pytest.approx(PRINTED.canaries / large, rel=0.01)
    assert small // DIGITS.every == large // PRINTED.every
    with pytest.raises(InputError, match="must hold a file"):
        read(tmp_path)


def comparable(found):
    """Drop measured times, and ε of the accountant, in whose place the fixture has another and a worker has not."""
    if isinstance(found, dict):
        dropped = ("seconds", "compilation", "analytical")
        return {name: comparable(part) for name, part in found.items() if name not in dropped}
    return [comparable(part) for part in found] if isinstance(found, list) else found


@pytest.mark.deep
def test_a_cluster_finds_the_same(measured, record, cluster):
    pytest.importorskip("distributed", reason="needs canaryproof[distributed]")
    from canaryproof.verify.audit.engine.cluster import Cluster

    cluster.worker()
    parts = []
    found = measured(parts.append, cluster=Cluster(cluster.address, 1, None))
    assert comparable(to_document(found)) == comparable(to_document(record))
    assert parts[-1] == "3 of 3 trainings done"


def test_a_training_that_is_given_up_is_named(bench):
    class Elsewhere:
        def results(self, _, tasks):
            yield next(iter(tasks))[0], Lost("a reason")

    with pytest.raises(EngineError) as error:
        on_cluster(Elsewhere(), None, bench, 8, [BenchmarkRun(0, POISSON)], lambda _: None)
    assert str(error.value) == "Poisson samples, repetition 1: a reason"


def test_other_data_on_a_worker_is_refused(bench):
    with pytest.raises(InputError, match=r"^digits: holds other data than where the command runs$"):
        train(None, "other", astuple(bench.plan), 8, 0, "", False, None, None)


def test_nothing_is_decided_on_other_data(record):
    rows = record.printed.claims
    assert not record.printed.fashion
    assert {row.verdict for row in rows} == {row.reading for row in rows} == {Verdict.NEEDS_DATA}
    assert {row.finding for row in rows} == {""}


def test_fashion_mnist_is_decided(record):
    found = with_printed(record, fashion=True).printed
    assert found.fashion
    assert [row.id for row in found.claims] == [row.id for row in record.printed.claims]
    verdicts = set(Verdict) - {Verdict.NEEDS_DATA}
    assert all(row.verdict in verdicts and row.reading in verdicts and row.finding for row in found.claims)
