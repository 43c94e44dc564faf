import numpy as np
import pytest

from canaryproof.verify.benchmark import canife_run
from canaryproof.verify.benchmark.canife_faults import Fault
from canaryproof.verify.benchmark.canife_run import CONFIDENCE, Scenario
from canaryproof.verify.claims import accounting as accountants
from canaryproof.verify.federated.assembly import Seeds
from canaryproof.verify.federated.outcome import CanaryScores, audits

SHUFFLED, FAULTY = Scenario("shuffled", shuffled=True), Scenario("faulty", fault=Fault.CLIPPING)


@pytest.fixture(scope="module")
def found(bench):
    return bench.run(5, 0, SHUFFLED)


def test_the_sizes_are_those_of_one_epoch(bench):
    assert (bench.rounds, bench.sampling, bench.audited) == (12, 125 / 1500, [8])
    assert bench.memory() == {"oneshot": 32 * (4 * bench.model.dim + 8 * 40), "canife": 4 * 150 * (64 + 8 + 8 + 10)}


def test_audits_leave_the_training_alone(bench, found):
    seeds = Seeds.of(np.random.SeedSequence(5, spawn_key=(0,)))
    trainer, canary_clients, _ = bench._prepared(seeds, SHUFFLED, bench.setting.rate)
    trainer.run()
    scores = CanaryScores.of(trainer, canary_clients)
    assert found["oneshot"] == audits(scores, bench.model.dim, bench.setting.delta, CONFIDENCE, "fixed")
    assert len(scores.observed["all"]) == len(scores.unobserved["all"]) == 20


def test_equal_arguments_give_equal_numbers_and_audits_are_of_the_model_before_their_round(bench, found, monkeypatch):
    seen = []
    real = canife_run.Trainer

    class Watched(real):
        @property
        def params(self):
            seen.append(self.rounds + 1)
            return super().params

    monkeypatch.setattr(canife_run, "Trainer", Watched)
    again = bench.run(5, 0, SHUFFLED)
    assert seen[:1] == [8] == [audit["round"] for audit in again["canife"]]
    assert _timeless(again) == _timeless(found)


def test_scores_have_their_law(bench, found):
    noise = bench.setting.noise_multiplier
    for audit in found["canife"]:
        law, (few, many) = audit["law"], audit["scores"]
        assert (few["trials"], many["trials"]) == (20, 60)
        assert law["noise"] == pytest.approx(noise * np.sqrt(law["shift"]))
        assert law["deviation"] == pytest.approx(np.hypot(law["noise"], law["clients"]))
        # A difference of means of 30 scores each, six standard deviations.
        assert abs(many["separation"] - law["shift"]) < 6.0 * law["deviation"] * np.sqrt(2.0 / 30.0)
        for scores in audit["scores"]:
            largest = np.log((1.0 - 1.0 / scores["trials"]) * scores["trials"] / 2)
            assert scores["epsilon"]["capped"]["epsilon"] <= largest * (1.0 + 1e-12)
            assert "one-run" in scores["bounds"]
            assert "normal-scores" not in scores["bounds"]


def test_a_scenario_changes_schedule_and_server(bench, found, monkeypatch):
    # Seconds of work that its own tests do.
    monkeypatch.setattr(accountants, "pld", lambda *_: 2.5)
    poisson = bench.run(5, 0, FAULTY)
    assert poisson["canife"][0]["law"] != found["canife"][0]["law"]
    assert set(poisson["seconds"]) == {"training", "oneshot", "canife"}
    assert "Poisson sampling" in poisson["analytical"]["rule"]
    assert "known to the attacker" in found["analytical"]["rule"]


def _timeless(value):
    if isinstance(value, dict):
        return {name: _timeless(part) for name, part in value.items() if name != "seconds"}
    return [_timeless(part) for part in value] if isinstance(value, list) else value
