"""After ``canaryproof warm-up`` an audit compiles nothing."""

import os
import subprocess
import sys

import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries

COUNT, DIM = 50, 400


def run(folder, *arguments, **environment):
    program = "import sys; from canaryproof.verify.command_line import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, *arguments]
    environment = os.environ | environment
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.deep
def test_after_it_no_command_of_an_auditor_compiles(tmp_path):
    cache = tmp_path / "cache"
    place = {"NUMBA_CACHE_DIR": str(cache)}
    done = run(tmp_path, "warm-up", **place)
    own, kept = next(cache.iterdir()), set(cache.rglob("*.nb?"))
    functions, size = sum(path.suffix == ".nbi" for path in kept), sum(path.stat().st_size for path in kept)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"Compiled code of {functions} functions ({size / 1e6:.0f} MB) is in\n{own}\n"
    generator = np.random.default_rng(0)
    np.save(tmp_path / "release.npy", Canaries(7, COUNT, DIM).sum(np.arange(COUNT)) + generator.normal(size=DIM))
    members, others = generator.normal([[1.0], [0.0]], 1, (2, 20_000)).tolist()
    pairs = [f"{one!r},{other!r}" for one, other in zip(members, others, strict=True)]
    (tmp_path / "pairs.csv").write_text("\n".join(["observed,unobserved", *pairs]))
    labelled = [f"{score!r},{member}" for member, scores in ((1, members), (0, others)) for score in scores]
    (tmp_path / "labelled.csv").write_text("\n".join(["score,member", *labelled]))
    of_release = f"audit release.npy --canaries {COUNT} --canary-seed 7 --delta 1e-5 --noise-multiplier 1"
    for arguments in (
        of_release,
        f"{of_release} --directions orthonormal",
        "audit pairs.csv --kind any --inclusion coin --delta 1e-5 --claim 1",
        "review labelled.csv --delta 1e-5 --epsilon 1",
        "plan --noise-multiplier 1 --dim 1e6",
    ):
        done = run(tmp_path, *arguments.split(), **place)
        assert done.returncode in {0, 1, 3, 4}, done.stderr
        assert "compiling" not in done.stderr, arguments
    assert set(cache.rglob("*.nb?")) == kept


def test_where_no_code_can_be_kept_it_says_so(tmp_path):
    (tmp_path / "file").touch()
    done = run(tmp_path, "warm-up", NUMBA_CACHE_DIR=str(tmp_path / "file"))
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: {tmp_path / 'file'}/compiled-")
    assert done.stderr.endswith(": cannot be written, so that no compiled code can be kept there\n")
