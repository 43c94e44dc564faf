"""Every command, given anything for its options: no traceback, one line of error, status 0, 1, 2 or 74."""

import json
import os
import shutil
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.check.results import Effort, Run
from canaryproof.verify.papers.cli import verify_command
from canaryproof.verify.papers.comparison import canife, canife_laws
from canaryproof.verify.papers.convergence import report
from canaryproof.verify.papers.training.experiment import Experiment
from tests.benchmarks import kernels

TINY = Path(__file__).with_name("tiny.toml").read_text()
NUMBERS = [
    *("", "-1", "0", "-0", "1", "2", "20", "0.5", "1e-6", "1e-400", "nan", "-nan", "inf", "-inf", "1e999999999", "0x1"),
    *("9" * 5000, "1_0", "٣", " 2", "True", "None", "18446744073709551616", "1e308"),
]  # fmt: skip
WORDS = [
    *("", "-", "--", "---x", "-x", "--=", "=", "ε", "[red]", "{}", "%s", "a\nb", "\x1b[31m", "\udcff", "\u202e"),
    *("x" * 5000, "../..", "quick", "local", "good", "dask:", "dusk://x"),
]  # fmt: skip
PATHS = [
    *("c.npy", "both.npz", "r.npy", "run", "tiny.toml", "theirs", "theirs/results.json", "pipe", "link", "loop"),
    *("link.npy", "run/run.sqlite", "none/none", "/dev/null", "/dev/full/x", ".", "..", "run/../out", "x" * 300),
    *(f"out/{name}" for name in ("a.npy", "ε.npy", "a\nb.npy", "\udcff.npy", "\x1b[31m")),
    *WORDS[:16],
]  # fmt: skip
FILES = ["c.npy", "both.npz", "r.npy"]
NEW = ["out", "out/a.npy"]
PLAUSIBLE = {
    "delta": ["1e-6"], "dim": ["1e6"], "confidence": ["0.9"], "bounds": ["andrew", "band"], "engine_name": ["local"],
    "suites": ["good"], "identifier": ["final.theorem", "good"], "fault": ["none"],
}  # fmt: skip
COMMANDS = (
    *("audit", "canaries", "check-report", "claims", "model-card", "plan", "report", "review", "train", "verify"),
    *("benchmark canife", "convergence"),
)


def command(name):
    found, context = main, click.Context(main)
    for word in name.split():
        found = found.get_command(context, word)
    return found


def values(parameter):
    """Something plausible three times of four, so that not every call ends at its first option."""
    if isinstance(parameter.type, click.Choice):
        plausible, hostile = parameter.type.choices, WORDS
    elif isinstance(parameter.type, click.Path) or parameter.name == "config":
        plausible, hostile = {"config": ["tiny.toml"], "run": ["run"], "file": FILES}.get(parameter.name, NEW), PATHS
    else:
        plausible, hostile = PLAUSIBLE.get(parameter.name, ["2", "20"]), [*NUMBERS, *WORDS]
    anything = st.sampled_from(hostile) | st.text(st.characters(exclude_characters="\0/"), max_size=9)
    return st.integers(0, 3).flatmap(lambda i: st.sampled_from(plausible) if i else anything)


@st.composite
def arguments(draw, name):
    """Some of what a command declares, in any order, and perhaps something that it does not."""
    words = []
    for parameter in command(name).params:
        for _ in range(draw(st.sampled_from([1, 1, 1, 0, 2]))):
            given = [] if getattr(parameter, "is_flag", False) else [draw(values(parameter))]
            option = isinstance(parameter, click.Option) and draw(st.sampled_from(parameter.opts))
            words.append([option, *given] if option else given)
    if draw(st.integers(0, 9)) == 0:
        words.append([draw(st.sampled_from(WORDS))])
    return [word for pair in draw(st.permutations(words)) for word in pair]


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A folder with files of all kinds, and a canary that nothing may touch."""
    place = tmp_path_factory.mktemp("before")
    cosines = np.linspace(-0.1, 0.2, 30)
    np.save(place / "c.npy", cosines)
    np.savez(place / "both.npz", observed=cosines, unobserved=cosines[::2])
    np.save(place / "r.npy", np.array([3.0, 4.0, 5.0]))
    for folder in ("run", "theirs", "theirs/tables"):
        (place / folder).mkdir()
    (place / "run" / "results.json").write_text(json.dumps(Run("0", Effort.QUICK, 0, ()).to_json()))
    for name in ("results.json", "summary.md", "tables/ledger.csv", "performance.json", "canife.json", "run.sqlite"):
        (place / "theirs" / name).write_text("precious")
    (place / "tiny.toml").write_text(TINY)
    return place


@pytest.fixture
def stubs(fake_suites, monkeypatch):  # noqa: ARG001
    """What takes long does nothing."""

    def stopped(*_, **__):
        raise InputError("would begin")

    monkeypatch.setattr(verify_command, "SUITES", "fake_suites:SUITES")
    monkeypatch.setattr(verify_command, "_run", stopped)
    monkeypatch.setattr(kernels, "measure", stopped)
    monkeypatch.setattr(canife, "measure", stopped)
    monkeypatch.setattr(canife_laws, "noise_of", lambda *_: 1.0)
    monkeypatch.setattr(canife_laws, "compare", stopped)
    monkeypatch.setattr(report, "make_report", stopped)
    monkeypatch.setattr(Experiment, "run", stopped)
    monkeypatch.setattr(click, "launch", stopped)


def fresh(before, place):
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(before, place)
    (place / "out").mkdir()
    os.mkfifo(place / "pipe")
    for link, target in (("link", "theirs"), ("link.npy", "theirs/results.json"), ("loop", "loop")):
        (place / link).symlink_to(target)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.deep(beyond=6)
@pytest.mark.usefixtures("stubs")
@pytest.mark.parametrize("name", COMMANDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=10_000)
@given(data=st.data())
def test_no_options_leave_a_traceback_or_touch_what_is_somebody_elses(
    before,
    tmp_path,
    monkeypatch,
    name,
    data,
):
    monkeypatch.chdir(tmp_path)
    fresh(before, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    theirs = contents(Path("theirs"))
    given = [*name.split(), *data.draw(arguments(name))]
    result = CliRunner().invoke(main, given, prog_name="canaryproof")
    assert result.exception is None or isinstance(result.exception, SystemExit), (given, result.exc_info)
    assert result.exit_code in (0, 1, 2, 74), given
    if result.exit_code in (2, 74):
        assert result.stderr.startswith("Error: "), given
        assert result.stderr.count("\n") == 1, given
        assert len(result.stderr) < 12_000, given
        assert result.stderr[:-1].isprintable(), given
    assert {name: Path("theirs", name).read_bytes() for name in theirs if Path("theirs", name).is_file()} | {
        "ledger.csv": Path("theirs/tables/ledger.csv").read_bytes()
    } == theirs, given
