"""A wheel of the package: made here for tests, and used as its users do, without the checkout.

``python -m tests.wheel`` makes what is released, in the folder ``dist``: the source with its documents and tests, and
the wheel of that source. It installs the wheel alone, with what it requires and no extra, on each Python that the
project names and that can be found here, or on those given, and prints the digests of both files and of what they
install, which reports name.
"""

import argparse
import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

from canaryproof.verify.audit.engine.provenance import digest_of_files

ROOT = Path(__file__).parents[1]
SCRIPTS = {
    "release.py": """
import numpy as np
canaries = np.load("canaries.npy")
np.save("release.npy", canaries.sum(axis=0) + np.random.default_rng(1).normal(0, 2, canaries.shape[1]))
""",
    "api.py": """
import numpy as np
import canaryproof as cp
found = cp.audit_release(np.load("release.npy"), cp.Canaries(seed=7, count=100, dim=5000), delta=1e-6)
print(found.to_frame())
""",
}
# What a user does: canaries, a release, an audit, a plan, the ledger, a run and its report.
COMMANDS = """
canaryproof --version
canaryproof canaries --seed 7 --count 100 --dim 5000 --out canaries.npy
python release.py
canaryproof audit release.npy --canaries 100 --canary-seed 7 --delta 1e-6 --details --plot audit.svg --report audit.json
canaryproof check-report audit.json --release release.npy
python api.py
canaryproof plan --dim 5000 --noise-multiplier 2
canaryproof claims
canaryproof verify orthonormal --out run
canaryproof report run --format html
"""


def build(folder: Path) -> Path:
    """Make the wheel in a folder, and return its path."""
    source = folder / "source"
    # A build leaves files where it stands.
    source.mkdir()
    for name in ("kernels", "proofs_check", "verify", "reports"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "published"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    wheel = wheel_of(source, folder)
    shutil.rmtree(source)
    return wheel


def wheel_of(source: Path, folder: Path) -> Path:
    """Make the wheel of a source in a folder, without any network, and return its path."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", folder, source], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


SDIST = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"


def release(folder: Path) -> tuple[Path, Path]:
    """Make the source and the wheel of the last commit in a folder, and check what they have."""
    with tempfile.TemporaryDirectory() as name:
        commit, unpacked = Path(name) / "commit", Path(name) / "unpacked"
        commit.mkdir()
        packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(commit, filter="data")
        made = subprocess.run(
            [sys.executable, "-c", SDIST, folder], cwd=commit, check=True, capture_output=True, text=True
        )
        sdist = folder / made.stdout.splitlines()[-1]
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        (source,) = unpacked.iterdir()
        whole = [
            path.relative_to(commit) for path in commit.rglob("*") if path.is_file() and "egg-info" not in str(path)
        ]
        missing = [path for path in whole if not (source / path).is_file()]
        if missing:
            raise SystemExit(f"{sdist.name} lacks {len(missing)} files of the commit: {missing[0]}")
        wheel = wheel_of(source, folder)
    check_record(wheel)
    return sdist, wheel


def check_record(wheel: Path) -> None:
    """Check that a wheel has the files that its record names, each with its digest, and no others."""
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
        if sorted(row[0] for row in rows) != sorted(archive.namelist()):
            raise SystemExit(f"{wheel.name}: its record names other files than it has")
        for name, digest, _ in rows:
            there = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).decode().rstrip("=")
            if name != record and digest != f"sha256={there}":
                raise SystemExit(f"{wheel.name}: {name} has another digest than its record says")


def installed_digest(wheel: Path) -> str:
    """Return the digest of the files that a wheel installs, which reports name."""
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(wheel) as archive:
        archive.extractall(name)
        return digest_of_files(Path(name) / "canaryproof")


def pythons() -> dict[str, Path | None]:
    """Return the Python of each version that the project names, None where there is none: on the path, or pyenv's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return {
        version: next(
            (
                path
                for path in [*filter(None, [shutil.which(f"python{version}")]), *pyenv.glob(f"{version}.*/bin/python")]
                # pyenv has a name on the path for each version, also where it runs none of them.
                if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
            ),
            None,
        )
        for version in versions
    }


def try_out(python: str | Path, wheel: Path) -> None:
    """Install a wheel alone and run the commands; the first error ends it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
        binaries = folder / "venv" / "bin"
        install = [binaries / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel]
        subprocess.run(install, check=True)
        for script, text in SCRIPTS.items():
            (folder / script).write_text(text)
        for line in COMMANDS.strip().splitlines():
            _say(f"$ {line}")
            program, *arguments = line.split()
            subprocess.run([binaries / program, *arguments], check=True, cwd=folder)
        report = (folder / "audit.json").read_text()
        digest = installed_digest(wheel)
        if f'"files": "{digest}"' not in report:
            raise SystemExit(f"a report does not name the installed files by {digest}")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def main(chosen: list[str]) -> None:
    """Make, check and try out a release, and print its digests."""
    folder = ROOT / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    made = release(folder)
    tried = {python: python for python in chosen} or pythons()
    for python in filter(None, tried.values()):
        try_out(python, made[1])
    for version, python in tried.items():
        _say(f"Python {version}: {'skipped, as there is none here' if python is None else 'installed alone, works'}")
    for path in made:
        _say(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")
    _say(f"{installed_digest(made[1])}  the installed files, in reports")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", nargs="*")
    main(parser.parse_args().python)
