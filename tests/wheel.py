"""A wheel of the package: made here for tests, and used as its users do, without the checkout.

``python -m tests.wheel PYTHON`` installs it with what it requires, and no extra, in an environment of that Python.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

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
canaryproof audit release.npy --canaries 100 --canary-seed 7 --delta 1e-6 --details --plot audit.svg
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
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", folder, source], check=True, capture_output=True)
    shutil.rmtree(source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def main(python: str) -> None:
    """Install the wheel and run the commands; the first error ends it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
        binaries = folder / "venv" / "bin"
        install = [binaries / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel]
        subprocess.run(install, check=True)
        for script, text in SCRIPTS.items():
            (folder / script).write_text(text)
        for line in COMMANDS.strip().splitlines():
            print(f"$ {line}", flush=True)  # noqa: T201
            program, *arguments = line.split()
            subprocess.run([binaries / program, *arguments], check=True, cwd=folder)


if __name__ == "__main__":
    main(sys.argv[1])
