import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.papers.training import configuration, jobs
from canaryproof.verify.papers.training.canife_record import read
from canaryproof.verify.papers.training.experiment import Experiment

TINY = (Path(__file__).parents[2] / "tiny.toml").read_text()
RANDOM = '[canaries]\ncount = 20\nparticipation = "periods"\n'
TEXT = TINY.replace("epochs = 4", 'rounds = 5\nparticipation = "bernoulli"').replace("one_round_epsilon", "epsilon")
TEXT = TEXT.replace(RANDOM, "[canife]\nevery = 2\nsteps = 20\nscores = 40\npool = 50\n")

PLAN = configuration.CanifePlan(scores=40)


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """Compile once for all experiments here on the same data."""
    monkeypatch.setattr(jobs.networks, "model", _model)
    monkeypatch.setattr(jobs.canife_audits, "compiled", _compiled)


MADE, COMPILED = {}, {}
MODEL, COMPILE = jobs.networks.model, jobs.canife_audits.compiled


def _model(name, data, hidden):
    key = (name, getattr(data, "digest", None), data.vocabulary, hidden)
    return MADE[key] if key in MADE else MADE.setdefault(key, MODEL(name, data, hidden))


def _compiled(designing, data, model):
    key = (designing, model)
    return COMPILED[key] if key in COMPILED else COMPILED.setdefault(key, COMPILE(designing, data, model))


@pytest.fixture
def configured(tmp_path):
    def make(text=TEXT):
        path = tmp_path / "tiny.toml"
        path.write_text(text)
        return configuration.read(str(path), "quick")

    return make


def run(configured, folder, advance=lambda *_: None, *, data=None, cluster=None):
    folder.mkdir(exist_ok=True)
    record, timings = Experiment(configured, data).run(folder, advance, cluster)
    document = to_document(record)
    return json.dumps(document), document, timings


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.toml").write_text(TEXT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs.networks, "model", _model)
        patch.setattr(jobs.canife_audits, "compiled", _compiled)
        return folder, *run(configuration.read(str(folder / "tiny.toml"), "quick"), folder)


def test_a_training_without_random_canaries_has_audits_by_canife_alone(finished):
    folder, _, document, timings = finished
    (cell,) = document["cells"]
    (result,) = cell["results"]
    assert result.keys() == {"runs"}
    (facts,) = result["runs"]
    assert cell["canife"]["training"] == pytest.approx(30.0)
    assert 0.0 < cell["canife"]["round"] < 30.0
    assert 0.0 < cell["analytical"]["epsilon"] < 30.0
    found = facts["canife"]
    assert (found["rounds"], [audit["round"] for audit in found["audits"]]) == (5, [2, 4])
    for audit in found["audits"]:
        (attack,) = audit["attacks"]
        assert attack["epsilon"]["separated"]["count"] == attack["epsilon"]["separated"]["null_count"] == 20
        assert 0.5 <= attack["accuracy"] <= 1.0
        assert len(attack["deviations"]) == 2
    # The fifth round counts as the second audit has it.
    assert found["audits"][1]["composed"]["capped"][0] < found["composed"]["capped"][0]
    assert "seconds" not in json.dumps(document)
    (times,) = timings
    assert times.design > 0.0 < times.attack
    kept = read(folder / "000-000-000-without" / "canife.npz", PLAN)
    assert kept["scores"].shape == kept["inserted"].shape == (2, 1, 40)
    scores, inserted = kept["scores"][0, 0], kept["inserted"][0, 0]
    expected = [scores[inserted].std(ddof=1), scores[~inserted].std(ddof=1)]
    assert found["audits"][0]["attacks"][0]["deviations"] == pytest.approx(expected)


def test_a_training_that_was_stopped_goes_on_to_the_same_bits(configured, finished, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "_SAVE_EVERY", 0.0)
    stops = iter((1, 2, 3))
    stop = next(stops)
    audit, done = jobs.Auditor.audit, []

    def counted(self, params, rounds):
        done.append(rounds)
        found = audit(self, params, rounds)
        # The second time it is stopped before it is kept.
        if done == [2, 4]:
            raise KeyboardInterrupt
        return found

    def advance(_, rounds, __):
        nonlocal stop
        if rounds == stop:
            stop = next(stops, None)
            raise KeyboardInterrupt

    monkeypatch.setattr(jobs.Auditor, "audit", counted)
    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            run(configured(), tmp_path / "run", advance)
    assert run(configured(), tmp_path / "run", advance)[0] == finished[1]
    # What was kept was not done again.
    assert done == [2, 4, 4]
    kept, expected = (
        read(folder / "000-000-000-without" / "canife.npz", PLAN) for folder in (tmp_path / "run", finished[0])
    )
    assert kept.keys() == expected.keys()
    assert all((kept[field] == expected[field]).all() for field in kept)
    assert not list(tmp_path.rglob("checkpoint"))


def test_a_damaged_audit_of_a_stopped_training_is_refused(configured, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "_SAVE_EVERY", 0.0)

    def stop(_, done, __):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(configured(), tmp_path / "run", stop)
    (file,) = tmp_path.rglob("canife-2.json")
    file.write_text("{")
    with pytest.raises(InputError, match=r"canife-2.json: line 1, column 2: truncated or damaged") as error:
        run(configured(), tmp_path / "run")
    assert "\n" not in error.value.message


def test_damaged_scores_are_refused(configured, finished, tmp_path):
    shutil.copytree(finished[0], tmp_path / "run")
    file = tmp_path / "run" / "000-000-000-without" / "canife.npz"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"canife.npz: is not a readable .npz file") as error:
        run(configured(), tmp_path / "run")
    assert "\n" not in error.value.message


@pytest.mark.deep
def test_a_cluster_finds_the_same(configured, finished, cluster, tmp_path):
    pytest.importorskip("distributed", reason="needs canaryproof[distributed]")
    from canaryproof.verify.audit.engine.cluster import Cluster

    cluster.worker()
    assert run(configured(), tmp_path / "run", cluster=Cluster(cluster.address, 1, None))[0] == finished[1]


def test_audits_beside_random_canaries_leave_their_training_alone(configured):
    plan = "[canife]\nsteps = 20\nscores = 40\npool = 50\naudits = 2\n"
    text = TINY.replace("epochs = 4", "epochs = 1") + "without_canaries = true\n"
    alone, both = (jobs.Trainings(configured(content), None) for content in (text, text + plan))
    assert both.jobs == alone.jobs
    files, expected = both.train(both.jobs[0]), alone.train(alone.jobs[0])
    assert files.keys() - expected.keys() == {"canife.npz"}
    assert files["rounds.npz"] == expected["rounds.npz"]
    # The twin, which shows what random canaries cost, is not audited.
    assert both.auditor(both.jobs[1]) is None


@pytest.mark.parametrize(
    ("on", "examples", "accuracies", "end"),
    [
        ("test", 297, (0.1, 0.4, 0.5, 0.7), 6),
        ("train", 1500, (0.1, 0.4, 0.5, 0.7), 6),
        # Looked at after the last round too.
        ("test", 297, (0.1, 0.2, 0.3, 0.4, 0.5), 9),
    ],
)
def test_a_training_ends_at_an_accuracy(configured, tmp_path, monkeypatch, on, examples, accuracies, end):
    seen = []

    def accuracy(_, __, shown):
        seen.append(len(shown[1]))
        return accuracies[len(seen) - 1]

    monkeypatch.setattr(jobs, "accuracy", accuracy)
    ends = f'rounds = 9\nuntil_accuracy = 0.5\naccuracy_every = 2\naccuracy_on = "{on}"'
    _, document, _ = run(configured(TEXT.replace("rounds = 5", ends)), tmp_path / on)
    (facts,) = document["cells"][0]["results"][0]["runs"]
    assert seen == [examples] * (accuracies.index(0.5) + 1)
    assert facts["warnings"] == []
    assert facts["canife"]["rounds"] == end
    assert facts["canife"]["audits"][-1]["round"] == end - end % 2


def test_a_training_that_does_not_reach_its_accuracy_says_so(configured, tmp_path):
    text = TEXT.replace("rounds = 5", "rounds = 5\nuntil_accuracy = 1.0")
    _, document, _ = run(configured(text), tmp_path / "run")
    (facts,) = document["cells"][0]["results"][0]["runs"]
    assert facts["warnings"] == ["an accuracy of 1 on test examples was not reached in 5 rounds"]
    assert facts["canife"]["rounds"] == 5


# Of texts that CANIFE designs there is tests/verify/papers/canife/test_text.py; compiling the training takes long.
@pytest.mark.deep
def test_texts_are_audited(tmp_path, configured):
    rng = random.Random(1)
    speeches = [f"ROLE {i}:\n{''.join(rng.choices('abcde ', k=300))}\n" for i in range(4)]
    (tmp_path / "plays").mkdir()
    (tmp_path / "plays" / "one.txt").write_text("\n".join(speeches))
    text = TEXT.replace('"digits"', '"plays"\nlength = 6').replace('"two_layer"\nhidden = 4', '"char_lstm"\nhidden = 2')
    text = text.replace("cohort = 50", "cohort = 2").replace("rounds = 5", "rounds = 1").replace("every = 2\n", "")
    text = text.replace("pool = 50", 'pool = 8\nstart = "sample"')
    _, document, _ = run(configured(text), tmp_path / "run", data=tmp_path / "plays")
    (audit,) = document["cells"][0]["results"][0]["runs"][0]["canife"]["audits"]
    (attack,) = audit["attacks"]
    assert attack["canary"]["norm"] > 0.0
    assert np.isfinite(attack["canary"]["loss"])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("every = 2", "every = 6", "tiny.toml: canife.every: must be at most the number of rounds, 5"),
        (
            "pool = 50",
            "pool = 500",
            "tiny.toml: canife.pool: must be at most 290, as mock clients have no more examples",
        ),
        ("epsilon = 30", "epsilon = 0.01", "tiny.toml: training.epsilon: must be at least 0.0"),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_anything_is_trained(configured, before, after, message):
    with pytest.raises(InputError) as error:
        Experiment(configured(TEXT.replace(before, after)), None)
    assert error.value.message.startswith(message)
    assert jobs.CANIFE == "canife.npz"
