import json
import math
import pkgutil
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.engine.executors import EngineError, Lost
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.records.training_record import Analytical
from canaryproof.verify.papers.training import configuration, experiment, jobs
from canaryproof.verify.papers.training.experiment import Experiment
from canaryproof.verify.papers.training.noise import Independent

TINY = (Path(__file__).parents[2] / "tiny.toml").read_text()
TEXT = f"""
seed = 5
{TINY.replace("epochs = 4", "epochs = 2")}
without_canaries = true

[[sweep]]
canaries.runs = [1, 2]
"""


@pytest.fixture
def configured(tmp_path):
    def make(text=TEXT):
        path = tmp_path / "tiny.toml"
        path.write_text(text)
        return configuration.read(str(path), "quick")

    return make


def run(configured, folder, advance=lambda *_: None):
    folder.mkdir(exist_ok=True)
    record, timings = Experiment(configured, None).run(folder, advance)
    document = to_document(record)
    return json.dumps(document), document, timings


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.toml").write_text(TEXT)
    return folder, *run(configuration.read(str(folder / "tiny.toml"), "quick"), folder)


def test_each_cell_has_its_audits_and_facts(finished):
    _, _, document, timings = finished
    one, two = document["cells"]
    assert [cell["swept"] for cell in (one, two)] == [{"canaries.runs": 1}, {"canaries.runs": 2}]
    assert (one["clients"], one["rounds"], one["dim"], one["test_examples"]) == (150, 6, 310, 297)
    assert one["analytical"]["epsilon"] == pytest.approx(30.0)
    for cell, runs in ((one, 1), (two, 2)):
        (result,) = cell["results"]
        assert {attack: set(audits) for attack, audits in result["audits"].items()} == {
            "all": {"unobserved"},
            "final": {"exact", "unobserved"},
            "change": {"exact", "unobserved"},
        }
        audit = result["audits"]["final"]["unobserved"]
        assert (audit["observed"], audit["unobserved"]) == (20 * runs, 20 * runs)
        assert len(result["runs"]) == runs
        assert len({facts["canary_seed"] for facts in result["runs"]}) == runs
        for facts in result["runs"]:
            assert set(facts["known_rounds"]) == {"data unknown", "data known"}
            for known in facts["known_rounds"].values():
                # The intervals of ε and of the noise are one, and ε is that of the accounting at this noise.
                assert known["low"] < known["noise_multiplier"] < known["high"]
                assert known["epsilon"]["low"] < known["epsilon"]["epsilon"] < known["epsilon"]["high"]
                more = known["noise_multiplier"] > cell["noise_multiplier"]
                assert (known["epsilon"]["epsilon"] < cell["analytical"]["epsilon"]) == more
            # The true noise is within 5 standard errors.
            assert (
                abs(known["noise_multiplier"] - cell["noise_multiplier"]) < 5.0 * (known["high"] - known["low"]) / 3.9
            )
            assert facts["known_rounds"]["data unknown"]["bound"] >= 0.0
            # An honest training's lies beyond 5.4 with a probability of 1e-6.
            assert abs(facts["known_rounds"]["data unknown"]["carry_over"]) < 5.4
            assert 0.0 < facts["accuracy"] < 1.0
            assert 0.0 < facts["accuracy_without"] < 1.0
    # With canaries and without.
    assert [row.cell for row in timings] == [0, 0, 1, 1, 1, 1]
    assert all(row.training > 0.0 for row in timings)
    assert "seconds" not in json.dumps(document)


def test_files_of_a_training_give_the_same_audits(finished):
    folder, _, document, _ = finished
    result = document["cells"][0]["results"][0]
    place = folder / "000-000-000"

    def audit(file, *options):
        call = CliRunner().invoke(main, ["audit", str(place / file), "--delta", "1e-3", "--json", *options])
        assert call.exit_code == 0, call.output
        return json.loads(call.stdout)["standardised_mean"]

    assert audit("rounds.npz") == pytest.approx(result["audits"]["all"]["unobserved"]["distance"])
    # An audit of the release takes the other canaries out of each score, which the paper's does not.
    release = np.load(place / "final.npy")
    cosines = Canaries(result["runs"][0]["canary_seed"], 20, len(release)).cosines(release)
    change = math.sqrt(len(release)) * float(cosines.mean())
    # A file has float32.
    assert change == pytest.approx(result["audits"]["change"]["exact"]["distance"], rel=1e-4)
    for attack in ("final", "change"):
        found = audit(f"{attack}.npz")
        assert found == pytest.approx(result["audits"][attack]["unobserved"]["distance"])


def test_a_training_that_was_stopped_goes_on_to_the_same_bits(configured, finished, tmp_path, monkeypatch):
    folder, expected, _, _ = finished
    monkeypatch.setattr(jobs, "_SAVE_EVERY", 0.0)
    stops = iter((2, 8, 31))
    stop = next(stops)

    def advance(_, done, total):
        nonlocal stop
        assert total == 36
        if done == stop:
            stop = next(stops, None)
            raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            run(configured(), tmp_path / "run", advance)
    assert run(configured(), tmp_path / "run", advance)[0] == expected
    for name in ("rounds.npz", "final.npz", "change.npz", "final.npy"):
        for training in ("000-000-000", "001-000-001"):
            assert (tmp_path / "run" / training / name).read_bytes() == (folder / training / name).read_bytes()
    assert not list(tmp_path.rglob("checkpoint"))


def test_a_finished_training_is_not_done_again(configured, finished, tmp_path, monkeypatch):
    folder, expected, _, _ = finished
    shutil.copytree(folder, tmp_path / "run")
    monkeypatch.setattr(experiment.assembly, "trainer", None)
    assert run(configured(), tmp_path / "run")[0] == expected
    file = tmp_path / "run" / "001-000-000" / "run.json"
    file.write_text("{")
    with pytest.raises(InputError) as error:
        run(configured(), tmp_path / "run")
    assert error.value.message.startswith(f"{file}: line 1, column 2: truncated or damaged")


@pytest.mark.deep
def test_a_cluster_finds_the_same_though_a_worker_dies(configured, finished, cluster, tmp_path):
    pytest.importorskip("distributed", reason="needs canaryproof[distributed]")
    from canaryproof.verify.audit.engine.cluster import Cluster

    workers = [cluster.worker() for _ in range(2)]
    engine = Cluster(cluster.address, 2, None)

    def advance(_, done, total):
        assert total == 36
        # Of six trainings, one is done, and each worker has another.
        if done == 6:
            cluster.end(workers[0])

    (tmp_path / "run").mkdir()
    document, timings = Experiment(configured(), None).run(tmp_path / "run", advance, engine)
    assert json.dumps(to_document(document)) == finished[1]
    # What the lost worker was at, and perhaps what it had done and nobody had fetched, was given out again.
    assert max(engine.attempts.values()) == 2
    assert len(timings) == 6
    for file in finished[0].rglob("*.np[yz]"):
        assert (tmp_path / "run" / file.relative_to(finished[0])).read_bytes() == file.read_bytes()


class Elsewhere:
    """A cluster of which tasks are lost."""

    def __init__(self, *lost):
        self.lost, self.attempts = lost, []

    def results(self, function, tasks):
        for i, arguments in tasks:
            self.attempts.append(i)
            yield i, Lost("a reason") if i in self.lost else pkgutil.resolve_name(function)(*arguments)


@pytest.mark.deep
def test_a_training_that_is_given_up_keeps_no_other_from_being_done(configured, finished, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copytree(finished[0] / "000-000-000", folder / "000-000-000")
    elsewhere = Elsewhere(2)
    with pytest.raises(EngineError) as error:
        Experiment(configured(), None).run(folder, lambda *_: None, elsewhere)
    assert str(error.value) == "training 001-000-000: a reason"
    assert elsewhere.attempts == [1, 2, 3, 4, 5]
    assert run(configured(), folder)[0] == finished[1]


def test_other_data_on_a_worker_is_refused(configured):
    with pytest.raises(InputError, match=r"^folder: holds other data than where the command runs$"):
        jobs.train(configured(), Path("folder"), "other", 0)


def test_damaged_scores_are_refused(finished, configured, tmp_path):
    shutil.copytree(finished[0], tmp_path / "run")
    file = tmp_path / "run" / "000-000-000" / "final.npz"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"final\.npz: ") as error:
        run(configured(), tmp_path / "run")
    assert "\n" not in error.value.message


def test_scores_that_cannot_be_audited_name_the_cell(finished, configured, tmp_path, monkeypatch):
    def refuse(*_):
        raise ValueError("observed: a run needs at least two cosines")

    shutil.copytree(finished[0], tmp_path / "run")
    monkeypatch.setattr(experiment, "audits", refuse)
    with pytest.raises(InputError, match=r"^tiny\.toml \(canaries\.runs = 1\): observed: a run needs"):
        run(configured(), tmp_path / "run")


def test_a_damaged_checkpoint_is_refused(configured, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "_SAVE_EVERY", 0.0)

    def stop(_, done, __):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(configured(), tmp_path / "run", stop)
    (file,) = tmp_path.rglob("training.npz")
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"training\.npz: is not a checkpoint") as error:
        run(configured(), tmp_path / "run")
    assert "\n" not in error.value.message


def test_cells_do_not_depend_on_each_other(configured, finished, tmp_path):
    alone = configured(TEXT.replace("[1, 2]", "[1]"))
    document = json.loads(run(alone, tmp_path / "run")[0])
    assert document["cells"] == [json.loads(finished[1])["cells"][0]]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "count = 20",
            "count = 20\npresentations = 7",
            "tiny.toml (canaries.runs = 1): number must be an integer from 1",
        ),
        (
            "cohort = 50",
            "cohort = 151",
            "tiny.toml (canaries.runs = 1): cohort must be an integer from 1 to 150, not 151",
        ),
        (
            "two_layer",
            "char_lstm",
            "tiny.toml (canaries.runs = 1): model char_lstm takes text, and digits is of images",
        ),
        ("examples_per_client = 10", "examples_per_client = 2000", "digits: examples_per_client must be between 1 and"),
        ('"digits"', '"idx"', "--data: must be given, the folder with the files of data.format idx"),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_anything_is_trained(configured, before, after, message):
    with pytest.raises(InputError) as error:
        Experiment(configured(TEXT.replace(before, after)), None)
    assert error.value.message.startswith(message)


def test_a_training_that_diverges_says_where(configured, tmp_path, monkeypatch):
    monkeypatch.setattr(Independent, "sample", lambda _, t, dim, __: np.full(dim, np.nan if t == 2 else 0.1))
    with pytest.raises(InputError) as error:
        run(configured(), tmp_path / "run")
    assert error.value.message.startswith("tiny.toml (canaries.runs = 1): the model diverged in round 2: ")
    assert "\n" not in error.value.message


def test_correlated_noise_adaptive_clipping_and_coins_come_together(configured, tmp_path):
    text = TEXT.replace("without_canaries = true", "").replace("[1, 2]", "[1]")
    text = text.replace("cohort = 50", 'cohort = 50\nnoise = "square_root"\nclip_quantile = 0.5\nmomentum = 0.5')
    text = text.replace("count = 20", 'count = 20\ninclusion = "coin"')
    text = text.replace("one_round_epsilon = 30", "noise_multiplier = 0.2")
    _, document, _ = run(configured(text), tmp_path / "run")
    (cell,) = document["cells"]
    (result,) = cell["results"]
    bounds = result["audits"]["all"]["unobserved"]["bounds"]
    assert bounds["one-run"]["coverage"] == "proven"
    assert "correlated noise" in cell["analytical"]["rule"]
    with np.load(tmp_path / "run" / "000-000-000" / "rounds.npz") as archive:
        assert len(archive["observed"]) + len(archive["unobserved"]) == 40
    # An audit of the vector would take the wrong canaries for the observed ones.
    assert not (tmp_path / "run" / "000-000-000" / "final.npy").exists()


def test_epsilon_is_that_of_the_least_protected_of_all_trainings(configured, tmp_path, monkeypatch):
    found = iter([Analytical(epsilon, "", "") for epsilon in (1.0, 3.0, 2.0)])
    monkeypatch.setattr(experiment, "analytical_epsilon", lambda *_: next(found))
    text = TEXT.replace("without_canaries = true", "").replace("[1, 2]", "[2]")
    _, document, _ = run(configured(text), tmp_path / "run")
    assert document["cells"][0]["analytical"]["epsilon"] == 3.0


# At the ends of what the rules of single fields let pass.
ENDS = {
    "data.examples_per_client": [1, 100, 10**5],
    "model.name": ['"two_layer"', '"small_cnn"', '"resnet18"', '"char_lstm"'],
    "model.hidden": [1, 1000],
    "training.participation": ['"uniform"', '"bernoulli"'],
    "training.cohort": [1, 150, 10**6],
    "training.epochs": [1, 10**6],
    "training.rounds": [1, 1000, 10**6],
    "training.batch_size": [1, 10**5],
    "training.server": ['"sgd"', '"adam"'],
    "training.momentum": [0.999],
    "training.clip_norm": [1e-6, 1e6],
    "training.clip_quantile": [0, 0.5, 1],
    "training.noise": ['"tree"', '"square_root"'],
    "training.noise_multiplier": [0, 1e-300, 1e-6, 1e6],
    "training.one_round_epsilon": [1e-3, 1e5, "inf"],
    "training.epsilon": [1e-3, 1e5, "inf"],
    "canaries.count": [20, 10**4],
    "canaries.inclusion": ['"fixed"', '"coin"'],
    "canaries.participation": ['"clients"', '"last_rounds"'],
    "canaries.presentations": [3, 10**6],
    "canaries.last_rounds": [5, 10**6],
    "canaries.mean": [0.01, 1e6],
    "audit.delta": [1e-100, 0.5],
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=10_000)
@given(st.lists(st.sampled_from([(f, v) for f in ENDS for v in ENDS[f]]), max_size=4, unique_by=lambda pair: pair[0]))
@example([("training.epochs", 10**6)])
@example([("training.noise_multiplier", 1e-300)])
@example([("training.participation", '"bernoulli"'), ("training.rounds", 1), ("training.epsilon", 1e5)])
@example([("training.participation", '"bernoulli"'), ("training.rounds", 1), ("training.epsilon", 1e-3)])
@example([("training.participation", '"uniform"'), ("training.rounds", 10**6)])
@example([("training.participation", '"bernoulli"'), ("training.rounds", 1000), ("training.noise_multiplier", 1e-300)])
def test_settings_at_their_ends_are_taken_or_refused_in_a_line(configured, changes):
    lines = TINY.splitlines()
    for place, value in changes:
        table, _, name = place.partition(".")
        # One of each is needed, and not both.
        others = {"rounds": "epochs", "noise_multiplier": "one_round_epsilon", "epsilon": "one_round_epsilon"}.get(
            name, name
        )
        lines = [line for line in lines if not line.startswith((f"{name} =", f"{others} ="))]
        lines.insert(lines.index(f"[{table}]") + 1, f"{name} = {value}")
    message = ""
    try:
        Experiment(configured("\n".join(lines)), None)
    except InputError as error:
        message = error.message
    assert "\n" not in message
