import json
import math
from dataclasses import astuple

import numpy as np
import pytest

from canaryproof.verify.check.results import Verdict
from canaryproof.verify.claims.measured_canife import claims
from canaryproof.verify.comparison.canife import DIGITS, POISSON, PRINTED, AuditedRun, on_cluster, read, train
from canaryproof.verify.comparison.canife_methods import TrainingFacts
from canaryproof.verify.engine.executors import EngineError, Lost
from canaryproof.verify.files.reading import InputError


def test_the_document_is_json_and_has_all_parts(document):
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert [scenario["name"] for scenario in document["scenarios"]] == ["Poisson samples"]
    for scenario in document["scenarios"]:
        assert len(scenario["runs"]) == len(scenario["accuracies"]) == document["repeat"] == 2
        assert scenario["canife"]["audits"] == 2
        assert {row["scores"] for row in scenario["audits"]} == {
            "Algorithm 3",
            "Algorithm 2, final model",
            "Algorithm 2, change",
            "a round of CANIFE",
        }


def test_means_and_deviations_are_those_of_the_runs(document):
    scenario = document["scenarios"][0]
    values = [run["oneshot"]["all"]["unobserved"]["estimates"]["fitted"]["epsilon"] for run in scenario["runs"]]
    row = scenario["methods"][0]
    assert row["name"] == "Algorithm 3, all rounds"
    assert row["epsilon"]["mean"] == pytest.approx(np.mean(values))
    assert row["epsilon"]["deviation"] == pytest.approx(np.std(values, ddof=1))
    bound = next(row for row in scenario["audits"] if row["name"] == "one-run" and row["scores"] == "Algorithm 3")
    expected = [run["oneshot"]["all"]["unobserved"]["bounds"]["one-run"]["value"] for run in scenario["runs"]]
    assert bound["epsilon"]["mean"] == pytest.approx(np.mean(expected))


def test_more_scores_raise_the_cap(document):
    few, many, unlimited = document["counts"]
    assert (few["trials"], many["trials"], unlimited["trials"]) == (20, 60, None)
    assert few["round cap"] == pytest.approx(math.log(0.95 * 10))
    assert few["printed"]["cap"] < many["printed"]["cap"]
    for row in (few, many):
        for name in ("printed", "at 1/n"):
            assert row[name]["epsilon"]["mean"] <= row[name]["cap"] * (1.0 + 1e-12)
    assert unlimited["exact"]["mean"] > 0.0


def test_the_sweep_has_its_rates(document):
    assert [one["rate"] for one in document["sweep"]] == [0.1]
    assert 0.0 <= document["sweep"][0]["accuracy"] <= 1.0


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


def test_a_cluster_finds_the_same(measured, document, cluster):
    pytest.importorskip("distributed", reason="needs canaryproof[distributed]")
    from canaryproof.verify.engine.cluster import Cluster

    cluster.worker()
    parts = []
    found = measured(parts.append, cluster=Cluster(cluster.address, 1, None))
    assert json.dumps(comparable(found)) == json.dumps(comparable(document))
    assert parts[-1] == "3 of 3 trainings done"


def test_a_training_that_is_given_up_is_named(bench):
    class Elsewhere:
        def results(self, _, tasks):
            yield next(iter(tasks))[0], Lost("a reason")

    with pytest.raises(EngineError) as error:
        on_cluster(Elsewhere(), None, bench, 8, [AuditedRun(0, POISSON)], lambda _: None)
    assert str(error.value) == "Poisson samples, repetition 1: a reason"


def test_other_data_on_a_worker_is_refused(bench):
    with pytest.raises(InputError, match=r"^digits: holds other data than where the command runs$"):
        train(None, "other", astuple(bench.setting), 8, 0, "", False, None, None)


def test_nothing_is_decided_on_other_data(document):
    rows = document["printed"]["claims"]
    assert not document["printed"]["fashion"]
    assert {row["verdict"] for row in rows} == {row["reading"] for row in rows} == {"needs-data"}
    assert {row["finding"] for row in rows} == {""}


def test_fashion_mnist_is_decided(document):
    setting = document["setting"]
    plan = TrainingFacts(
        tuple(setting["audited"]),
        *(setting[name] for name in ("rounds", "sampling", "noise_multiplier", "delta", "dim", "canaries")),
    )
    found = claims(document["scenarios"][0]["runs"], plan, fashion=True)
    assert [row["id"] for row in found] == [row["id"] for row in document["printed"]["claims"]]
    verdicts = {verdict.value for verdict in Verdict} - {"needs-data"}
    assert all(row["verdict"] in verdicts and row["reading"] in verdicts and row["finding"] for row in found)
