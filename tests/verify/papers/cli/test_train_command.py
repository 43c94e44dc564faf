import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from canaryproof.verify.audit.engine.executors import EngineError
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.cli import train_command as train_command
from canaryproof.verify.papers.training import configuration, cost, experiment

# One small training, so that most of the time is that of JAX and of the audit.
TEXT = (Path(__file__).parents[2] / "tiny.toml").read_text()
# Saves after every round, and is slow enough to be killed between two.
DRIVER = """
import time
from canaryproof.verify.papers.training import jobs, trainer
jobs._SAVE_EVERY = 0.0
run = trainer.Trainer.round
def slow(self):
    time.sleep(0.3)
    return run(self)
trainer.Trainer.round = slow
from canaryproof.verify.command_line import main
main(prog_name="canaryproof")
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "tiny.toml").write_text(TEXT)
    return tmp_path / "tiny.toml"


def train(*arguments):
    return CliRunner().invoke(main, ["train", *map(str, arguments)], prog_name="canaryproof")


def refused(result, message):
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: {message}\n"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("done")
    (folder / "tiny.toml").write_text(TEXT)
    return train(folder / "tiny.toml", "--out", folder / "out"), folder / "out"


def test_a_folder_gets_results_pages_and_pictures(done):
    result, out = done
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Estimates and bounds" in result.stdout
    assert result.stdout.endswith(f"\nResults: {out}\n")
    assert sorted(path.name for path in out.iterdir()) == [
        ".canaryproof",
        ".lock",
        "000-000-000",
        "densities.svg",
        "estimates.svg",
        "experiment.json",
        "results.json",
        "results.md",
        "timings.json",
    ]
    assert (out / "results.md").read_text().startswith("# Tiny\n")
    document = json.loads((out / "results.json").read_text())
    assert (document["name"], document["size"], document["seed"]) == (str(out.parent / "tiny.toml"), "quick", 0)
    command = f"canaryproof train {shlex.quote(document['name'])} --size quick --out RESULTS"
    assert command in (out / "results.md").read_text()
    made_by = json.loads((out / "experiment.json").read_text())
    assert made_by["configuration"]["name"] == "tiny.toml"
    assert {"source code", "jax"} <= made_by["made by"].keys()


def may_mount():
    """Whether a process of ours may have mounts of its own, as root may outside of most containers."""
    try:
        return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def same(out, done):
    # All but the seconds that it took, which run.json has too. Results name the experiment's file beside them.
    others = {"timings.json", "run.json", ".lock"}
    for path in (path for path in done[1].rglob("*") if path.is_file() and path.name not in others):
        expected = path.read_bytes().replace(os.fsencode(done[1].parent), os.fsencode(out.parent))
        assert (out / path.relative_to(done[1])).read_bytes() == expected
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in done[1].iterdir())


@pytest.mark.deep
def test_a_killed_experiment_resumes_to_the_same_bits(config, done, tmp_path):
    out = tmp_path / "out"
    # Killed after a round, or also when it has begun and before the audits; meanwhile no other is let in.
    names = ("experiment.json", "000-000-000/checkpoint/training.npz", "000-000-000/run.json")
    for name in names if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else names[1:2]:
        command = [sys.executable, "-c", DRIVER, "train", config, "--out", out, "--resume"]
        with subprocess.Popen(command, start_new_session=True) as process:
            while not (out / name).exists():
                assert process.poll() is None
                time.sleep(0.02)
            refused(train(config, "--out", out, "--resume"), f"{out}: another run is writing to it")
            os.killpg(process.pid, signal.SIGKILL)
        assert not (out / "results.json").exists()
    assert train(config, "--out", out, "--resume").exit_code == 0
    same(out, done)


@pytest.mark.parametrize(
    ("largest", "name"),
    [
        pytest.param(1000, "experiment.json", marks=pytest.mark.deep),
        (20_000, "results.json"),
        pytest.param(40_000, "densities.svg", marks=pytest.mark.deep),
    ],
)
def test_a_write_that_fails_is_told_in_a_line_and_what_is_done_is_kept(config, done, tmp_path, largest, name):
    out = tmp_path / "out"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limits[1]))
    try:
        result = train(config, "--out", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (result.exit_code, result.stderr.count("\n")) == (74, 1)
    # Before the first file stands, nothing is done. The answer comes before the files that it is written to.
    assert result.stdout.partition("\n")[0] == ("" if name == "experiment.json" else "Estimates and bounds")
    kept = "" if name == "experiment.json" else "; what is done is kept, and --resume goes on"
    assert result.stderr.endswith(f"{name}: File too large{kept}\n")
    assert train(config, "--out", out, "--resume").exit_code == 0
    same(out, done)


@pytest.mark.deep
@pytest.mark.skipif(not may_mount(), reason="needs the right to mount a small disk")
def test_a_full_disk_harms_nothing(config, done, tmp_path):
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    # In a mount namespace of its own, which ends with the shell.
    script = """
        mount -t tmpfs -o size=40k none "$1" || exit 9
        "$2" -c "$3" train "$4" --out "$1/out"; echo "status $?"
        mount -o remount,size=9m "$1"
        "$2" -c "$3" train "$4" --out "$1/out" --resume; echo "status $?"
        cp -r "$1/out" "$5"
    """
    command = ["unshare", "--mount", "sh", "-c", script, "sh", disk, sys.executable, DRIVER, config, kept]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line for line in result.stdout.splitlines() if line.startswith("status")] == ["status 2", "status 0"]
    assert result.stderr.count("\n") == 1
    assert "No space left on device; what is done is kept, and --resume goes on" in result.stderr
    same(kept, done)


@pytest.mark.deep
def test_a_clock_that_jumps_by_days_changes_nothing(config, done, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "jumping_clock")}
    command = [sys.executable, "-c", DRIVER, "train", config, "--out", tmp_path / "out"]
    subprocess.run(command, env=environment, capture_output=True, check=True)
    same(tmp_path / "out", done)


def test_a_folder_of_a_training_that_leads_elsewhere_is_refused(config, done, tmp_path):
    out, theirs = tmp_path / "out", tmp_path / "theirs"
    for path in (out, theirs):
        path.mkdir()
    (out / "000-000-000").symlink_to(theirs)
    result = train(config, "--out", out, "--resume")
    assert result.exit_code == 2
    assert "must be the folder of an experiment" in result.stderr
    # Of an experiment that has begun.
    shutil.copy(done[1] / "experiment.json", out)
    result = train(config, "--out", out, "--resume")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert f"{out}/000-000-000: must be a folder, not a symbolic link" in result.stderr
    assert list(theirs.iterdir()) == []


def test_an_interrupt_says_how_to_go_on(config, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment.Experiment, "run", interrupted)
    result = train(config, "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert result.stderr == "Interrupted; the same command with --resume goes on.\n"


def test_a_cluster_that_is_lost_says_how_to_go_on(config, tmp_path, monkeypatch):
    def lost(*_):
        raise EngineError("the scheduler is lost")

    monkeypatch.setattr(experiment.Experiment, "run", lost)
    result = train(config, "--out", tmp_path / "out")
    assert result.exit_code == 69
    assert result.stderr == "Error: the scheduler is lost; what is done is kept, and --resume goes on\n"


NESTED = "[" * 900 + "]" * 900
FACTS = {"accuracy": 0.5, "seconds": {"training": 1.0, "scoring": 1.0, "noise": 1.0}, "warnings": []}


def facts(**changed):
    return json.dumps(FACTS | changed)


@pytest.mark.deep(every=3)
@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("experiment.json", NESTED, "{out}: --resume: was begun with another "),
        ("experiment.json", "[]", "{out}: --resume: was begun with another "),
        ("experiment.json", "null", "{out}: --resume: was begun with another "),
        ("experiment.json", "{}", "{out}: --resume: was begun with another "),
        ("experiment.json", "{", "{file}: line 1, column 2: truncated or damaged"),
        ("run.json", NESTED, "{file}: the document: must be an object, not [[["),
        ("run.json", "[]", "{file}: the document: must be an object, not []"),
        ("run.json", "null", "{file}: the document: must be an object, not None"),
        ("run.json", "{}", "{file}: accuracy: is missing"),
        ("run.json", facts(accuracy="0.5"), "{file}: accuracy: must be a number, not '0.5'"),
        ("run.json", facts(accuracy=json.loads(NESTED)), "{file}: accuracy: must be a number, not [[["),
        ("run.json", facts(seconds=[1.0]), "{file}: seconds: must be an object, not [1.0]"),
        ("run.json", facts(seconds={"training": "1"}), "{file}: seconds.training: must be a number, not '1'"),
        ("run.json", facts(warnings=[1]), "{file}: warnings[0]: must be text, not 1"),
        ("final.npz", b"PK", "{file}: is not a readable .npz file"),
    ],
)
def test_what_a_resumed_training_left_is_believed_no_more_than_other_files(config, done, tmp_path, name, content, rule):
    out = tmp_path / "out"
    shutil.copytree(done[1], out)
    (file,) = out.rglob(name)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = train(config, "--out", out, "--resume")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith(f"Error: {rule.format(out=out, file=file)}")


@pytest.mark.parametrize("name", ["experiment.json", "run.json", "final.npz"])
@pytest.mark.parametrize("kind", ["pipe", "/dev/zero"])
def test_a_resumed_training_reads_no_pipe_and_no_device(config, done, tmp_path, name, kind):
    out = tmp_path / "out"
    shutil.copytree(done[1], out)
    (file,) = out.rglob(name)
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to(kind)
    refused(train(config, "--out", out, "--resume"), f"{file}: must be a regular file")


@pytest.mark.parametrize("name", ["rounds.npz", "final.npz", "change.npz"])
def test_scores_that_lack_an_array_are_refused(config, done, tmp_path, name):
    out = tmp_path / "out"
    shutil.copytree(done[1], out)
    (file,) = out.rglob(name)
    arrays = dict(np.load(file))
    np.savez(file, observed=arrays["observed"])
    refused(train(config, "--out", out, "--resume"), f"{file}: must have an array named unobserved")
    np.savez(file, unobserved=arrays["unobserved"])
    refused(train(config, "--out", out, "--resume"), f"{file}: must have an array named observed")


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero"])
def test_a_checkpoint_is_a_regular_file(config, done, tmp_path, kind):
    out = tmp_path / "out"
    shutil.copytree(done[1], out)
    (out / "000-000-000" / "run.json").unlink()
    file = out / "000-000-000" / "checkpoint" / "training.npz"
    file.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to(kind)
    result = train(config, "--out", out, "--resume")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith(f"Error: {file}: must be a regular file")


@pytest.mark.deep
def test_the_command_gives_its_cluster_the_trainings(config, tmp_path, monkeypatch):
    told = []
    workers = SimpleNamespace(attempts={0: 2})
    monkeypatch.setattr(train_command, "cluster", lambda name: told.append(name) or workers)
    real = experiment.Experiment.run
    monkeypatch.setattr(experiment.Experiment, "run", lambda *given: told.append(given[-1]) or real(*given[:-1]))
    result = train(config, "--out", tmp_path / "out", "--engine", "dask://somewhere:1")
    assert (result.exit_code, told) == (0, ["dask://somewhere:1", workers])
    assert result.stderr == "given to 2 workers, as some were lost: 000-000-000\n"


def test_a_folder_that_is_there_is_refused(config, tmp_path):
    out = tmp_path / "precious"
    out.mkdir()
    message = f"{out}: must not exist already; --resume goes on with the experiment in it"
    refused(train(config, "--out", out), message)
    (out / "file").write_text("precious")
    refused(
        train(config, "--out", out, "--resume"),
        f"{out}: must be the folder of an experiment, with experiment.json in it",
    )
    refused(train(config, "--out", out / "file", "--resume"), f"{out / 'file'}: Not a directory")
    assert [path.name for path in out.iterdir()] == ["file"]


def test_another_experiment_does_not_go_on(config, done):
    before = (done[1] / "results.json").read_bytes()
    config.write_text(TEXT.replace("[data]", "seed = 1\n[data]").replace("epochs = 4", "epochs = 3"))
    message = f"{done[1]}: --resume: was begun with another heading, cells, data"
    refused(train(config, "--out", done[1], "--resume"), message)
    assert (done[1] / "results.json").read_bytes() == before


def test_an_experiment_does_not_go_on_with_other_data(config, done, monkeypatch):
    before = experiment.Experiment.examples
    monkeypatch.setattr(experiment.Experiment, "examples", lambda self: [text[::-1] for text in before(self)])
    refused(train(config, "--out", done[1], "--resume"), f"{done[1]}: --resume: was begun with another data")


def test_bad_input_gets_a_line(config, tmp_path):
    config.write_text(TEXT.replace("cohort", "cohorts"))
    result = train(config, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f"Error: {config}: training.cohorts: there is no such field; there are participation"
    )
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
    names = ", ".join(configuration.names())
    message = f"none: must be a file whose name ends in .toml, or an experiment that comes with the package: {names}"
    refused(train("none", "--out", tmp_path / "out"), message)


def test_data_that_is_needed_must_be_given(tmp_path):
    message = "--data: must be given, the folder with the files of data.format idx"
    refused(train("mnist_canife", "--out", tmp_path / "out"), message)
    refused(
        train("mnist_canife", "--out", tmp_path / "out", "--data", tmp_path / "none"),
        f"{tmp_path}/none: must be a folder",
    )
    assert not (tmp_path / "out").exists()


def test_what_is_not_installed_is_named_with_the_extra(config, tmp_path, monkeypatch):
    monkeypatch.setattr(train_command, "find_spec", lambda name: None if name in ("jax", "optax") else object())
    refused(
        train(config, "--out", tmp_path / "out"),
        "train: needs jax, optax: pip install '.[federated]' in canaryproof's folder",
    )


def test_an_estimate_trains_nothing(config, tmp_path):
    result = train(config, "--estimate")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(
        "1 training of 12 rounds with 50 clients and 40 canaries, 310 parameters; arrays of "
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.toml"]
    result = train(config)
    assert result.exit_code == 2
    assert "Missing option '--out'." in result.stderr


def test_a_long_experiment_says_what_it_costs_before_it_starts(config, tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "_SMALL", 0)
    result = train(config, "--out", tmp_path / "out")
    assert result.exit_code == 0
    first, second = result.stderr.splitlines()
    assert first.startswith("1 training of 12 rounds")
    assert second.startswith("about ")


def test_help_names_the_experiments():
    result = train("--help")
    assert result.exit_code == 0
    for name in configuration.names():
        assert name in result.stdout


def test_help_does_not_wait_for_what_computes():
    code = (
        "import sys; from canaryproof.verify.command_line import main; "
        "main(['train', '--help'], standalone_mode=False); "
        "assert not {'jax', 'numba', 'scipy', 'matplotlib'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
