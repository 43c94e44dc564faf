"""What is installed with the package: what it imports is declared, and it runs from a wheel that cannot be written."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pytest

from canaryproof.verify.audit.engine.provenance import digest_of_files
from tests.wheel import build, check_record, release

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOBODY = "65534"


def plain(name: str) -> str:
    """Return a distribution's name as all its spellings are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(path: Path) -> Iterator[str]:
    """Give the first parts of the names that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_each_library_that_is_imported_is_declared() -> None:
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    declared = {plain(re.match(r"[\w.-]+", line)[0]) for line in lines}  # type: ignore[index]
    homes = packages_distributions()
    for room in ("kernels", "proofs_check", "verify", "reports"):
        for path in (ROOT / room).rglob("*.py"):
            for name in imported(path):
                if name not in sys.stdlib_module_names and name != "canaryproof":
                    assert declared & {plain(home) for home in homes.get(name, [name])}, (path, name)


def test_the_newest_release_has_one_version_and_one_date() -> None:
    changes = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    citation = dict(re.findall(r"^([\w-]+): (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE))
    assert changes[:2] == ["Unreleased", f"{citation['version']} ({citation['date-released']})"]
    # Between releases the version is that of the next one, which says that methods and words may have changed.
    ours, _, development = PROJECT["version"].partition(".dev")
    assert (ours == citation["version"]) != bool(development)
    assert tuple(map(int, ours.split("."))) >= tuple(map(int, citation["version"].split(".")))
    pages = (path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))
    named = re.findall(r"canaryproof (\d+\.\d+\.\d+)", "\n".join(pages))
    assert named
    assert set(named) == {citation["version"]}
    # Newest first, and none twice.
    released = [tuple(map(int, change.partition(" ")[0].split("."))) for change in changes[1:]]
    assert released == sorted(set(released), reverse=True)


def test_the_versions_are_listed_once_each() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    names = [plain(line.partition("==")[0]) for line in lines if not line.startswith("#")]
    assert sorted(set(names)) == sorted(names)


def test_the_lowest_versions_are_those_that_the_project_requires() -> None:
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    for requirement in PROJECT["dependencies"]:
        name, lowest = re.match(r"([\w.-]+)>=([\d.]+)", requirement).groups()  # type: ignore[union-attr]
        assert re.fullmatch(rf"{re.escape(lowest)}(\.0)*", pinned[name]), requirement


AUDIT = "import canaryproof as cp, numpy as np; cp.audit(cp.Scores(np.array([0.1, -0.2, 0.3]), dim=100), delta=1e-6)"
BOUND = "from canaryproof.kernels import binomial; binomial.interval(3, 10, 0.95)"


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("file", "function", "program"),
    [("verify/audit/answer/run_audit.py", "audit", AUDIT), ("kernels/binomial.py", "_beta_quantiles", BOUND)],
)
def test_a_breakpoint_in_the_checkout_stops_the_debugger(
    file: str, function: str, program: str, tmp_path: Path
) -> None:
    path = ROOT / file
    body = next(node.body for node in ast.parse(path.read_text()).body if getattr(node, "name", "") == function)
    # The statement after the docstring, where there is one.
    line = body[-1].lineno if len(body) == 1 else body[1].lineno
    script = tmp_path / "script.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "pdb", script],
        input=f"break {path}:{line}\ncontinue\nquit\n",
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert f"> {path}({line}){function}()" in done.stdout, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that everybody may read; pytest's own ones are for the user alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def installed(folder: Path) -> Path:
    """The wheel's contents."""
    target = folder / "installed"
    with zipfile.ZipFile(build(folder)) as archive:
        archive.extractall(target)
    return target


def test_the_wheel_has_every_file_of_the_rooms(installed: Path) -> None:
    """A folder that pyproject.toml does not list is there in an editable install, and missing in a wheel."""
    package = installed / "canaryproof"
    rooms = [
        path.relative_to(ROOT)
        for room in ("kernels", "proofs_check", "verify", "reports")
        for path in (ROOT / room).rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    ]
    # The public names are the package itself.
    rooms = [path.relative_to("verify/api") if path.is_relative_to("verify/api") else path for path in rooms]
    assert {path for path in rooms if not (package / path).exists()} == set()
    assert len(rooms) > 200


def test_a_wheel_and_the_checkout_have_files_of_one_digest(installed: Path) -> None:
    """Reports name it, so that it may depend on nothing but the files."""
    assert digest_of_files(installed / "canaryproof") == digest_of_files()
    copy = installed.parent / "copy"
    shutil.copytree(installed / "canaryproof" / "kernels", copy / "kernels")
    before = digest_of_files(copy)
    digest_of_files.cache_clear()
    with (copy / "kernels" / "canaries.py").open("a") as file:
        file.write("\n")
    assert digest_of_files(copy) != before
    digest_of_files.cache_clear()


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("canaryproof/kernels/canaries.py", b"x", "has another digest than its record says"),
        ("canaryproof/kernels/more.py", b"", "its record names other files than it has"),
    ],
)
def test_a_wheel_that_is_not_as_its_record_says_is_refused(
    folder: Path, tmp_path: Path, name: str, text: bytes, rule: str
) -> None:
    (wheel,) = folder.glob("*.whl")
    check_record(wheel)
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(tmp_path / "other.whl", "w") as after:
        for each in {*before.namelist(), name}:
            after.writestr(each, text if each == name else before.read(each))
    with pytest.raises(SystemExit, match=rule):
        check_record(tmp_path / "other.whl")


@pytest.mark.deep
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="what is released is a commit")
def test_a_release_has_all_files_of_the_commit(tmp_path: Path) -> None:
    sdist, wheel = release(tmp_path)
    assert sdist.name == f"canaryproof-{PROJECT['version']}.tar.gz"
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CHANGELOG.md", "CITATION.cff", "LICENSE", "Makefile", "docs/start.md", "tests/README.md"} <= names
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.startswith(("tests", "docs"))]


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "--help"],
        # Compiles in memory, as test_compiled.py has it of a small function.
        pytest.param(
            ["audit", "release.npy", "--canaries", "100", "--canary-seed", "1", "--delta", "1e-6"],
            marks=pytest.mark.deep,
        ),
    ],
)
def test_a_user_without_a_home_runs_a_wheel_that_he_cannot_write(
    installed: Path, folder: Path, arguments: list[str]
) -> None:
    np.save(folder / "release.npy", np.random.default_rng(0).normal(size=5000).astype(np.float32))
    # Where root's own Python stands, others may read nothing without this right; it is none to write.
    right = "+dac_read_search"
    user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    user += ["--inh-caps", right, "--ambient-caps", right]
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "NUMBA_CACHE_DIR")}
    program = "from canaryproof.verify.command_line import main; main(prog_name='canaryproof')"
    done = subprocess.run(
        [*user, sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={name: value for name, value in kept.items() if not name.startswith("XDG_")}
        | {"PYTHONPATH": str(installed)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    compiled = arguments[0] == "audit"
    assert done.stderr.count("canaryproof: cannot keep compiled code") == compiled
    assert done.stderr.count("\n") == compiled
    assert not list(installed.rglob("*.nbi"))
