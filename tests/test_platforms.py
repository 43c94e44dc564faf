"""Systems and versions of Python: what can be tried of them on this machine."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.windows import LIBRARIES, PROCESSES, as_on_windows

ROOT = Path(__file__).parents[1]
ROOMS = ("kernels", "proofs_check", "reports", "verify")
COMMAND = "from canaryproof.verify.command_line import main; main(prog_name='canaryproof')"
FILES_AND_PROCESSES = """
import types
from pathlib import Path
from canaryproof.verify.audit.engine import executors
from canaryproof.verify.audit.files.writing import lock_folder, replace_file
# Nothing stops a second run from writing there.
with lock_folder(Path()), lock_folder(Path()), replace_file(Path("file")) as file:
    file.write(b"text")
# Processes are started as this machine does it.
sys.platform, executors.sys = "linux", types.SimpleNamespace(platform="win32")
print(sorted(executors.Local(2).results("math:sqrt", [(0, (4.0,)), (1, (9.0,))])), *os.listdir())
"""


def output(program: str, *arguments: str, folder: Path) -> tuple[str, str]:
    """Return what a program prints in a fresh interpreter, and its errors."""
    command = [sys.executable, "-X", "warn_default_encoding", "-W", "ignore::EncodingWarning", "-c", program]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_files_and_processes_do_without_what_windows_lacks(tmp_path: Path) -> None:
    program = as_on_windows(FILES_AND_PROCESSES, PROCESSES)
    assert output(program, folder=tmp_path) == ("[(0, 2.0), (1, 3.0)] file\n", "")


@pytest.mark.deep
def test_an_audit_says_the_same_where_windows_is_as_on_windows(tmp_path: Path) -> None:
    np.save(tmp_path / "release.npy", np.random.default_rng(0).normal(size=5000))
    options = "--canaries 100 --canary-seed 1 --delta 1e-6 --noise-multiplier 1 --details --plot a.svg --report a.html"
    arguments = ["audit", "release.npy", *options.split()]
    here, _ = output(COMMAND, *arguments, folder=tmp_path)
    for name in ("a.svg", "a.html"):
        (tmp_path / name).unlink()
    there, errors = output(as_on_windows(COMMAND, LIBRARIES), *arguments, folder=tmp_path)
    assert there == here
    assert errors.count("(Windows does not say who can write there): compiling each time, in memory") == 1


@pytest.mark.deep
@pytest.mark.skipif(find_spec("mypy") is None, reason="needs mypy")
@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_nothing_is_used_that_another_system_lacks(platform: str, tmp_path: Path) -> None:
    # The package as one folder, as the linters see it.
    package = tmp_path / "canaryproof"
    package.mkdir()
    for path in (*(ROOT / "verify/api").glob("*.py*"), *map(ROOT.joinpath, ROOMS)):
        (package / path.name).symlink_to(path)
    # What follows a refusal or a way without is unreachable there.
    options = ["--platform", platform, "--no-warn-unreachable", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "-p", "canaryproof"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_versions_of_python_are_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    prefix = "Programming Language :: Python :: 3."
    minors = [int(line.removeprefix(prefix)) for line in project["project"]["classifiers"] if line.startswith(prefix)]
    lowest, highest = minors[0], minors[-1]
    assert minors == list(range(lowest, highest + 1))
    assert project["project"]["requires-python"] == f">=3.{lowest}"
    assert project["tool"]["ruff"]["target-version"] == f"py3{lowest}"
    assert project["tool"]["mypy"]["python_version"] == f"3.{lowest}"
    for name in ("README.md", "docs/start.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert re.findall(r"Python (3\.\d+) to (3\.\d+)", text) == [(f"3.{lowest}", f"3.{highest}")], name
