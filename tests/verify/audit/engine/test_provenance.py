import hashlib
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from llvmlite.binding import get_host_cpu_name

from canaryproof.verify.audit.engine import provenance as module
from canaryproof.verify.audit.engine.provenance import code_and_machine


def test_it_names_the_code_the_versions_and_the_machine():
    found = code_and_machine()
    assert found["numpy"] == version("numpy")
    assert {"numba", "sympy", "python-flint", "python", "platform"} <= found.keys()
    # Trainings need more, where that is installed.
    assert ("jax" in found) == (find_spec("jax") is not None)
    assert "pytest" not in found
    assert all(found.values())
    assert found == code_and_machine()


def test_it_names_the_machine(monkeypatch):
    found = code_and_machine()
    assert found["platform"].split() == list(
        filter(None, (platform.system(), platform.machine(), *platform.libc_ver()))
    )
    name, abilities = found["cpu target"].split()
    assert name == get_host_cpu_name()
    assert re.fullmatch("[0-9a-f]{8}", abilities)
    assert found["llvmlite"] == version("llvmlite")
    # What Linux says of the first processor.
    monkeypatch.setattr(Path, "read_text", lambda _: "model name\t: A 1 @ 2 GHz\nflags\t: a\nmodel name\t: B\n")
    assert module._processor() == "A 1 @ 2 GHz"
    monkeypatch.setattr(Path, "read_text", lambda _: "Processor\t: C\n")
    assert module._processor() == platform.processor()


def test_it_names_the_code_of_every_blas(monkeypatch):
    def library(api, version, **more):
        return {"user_api": api, "internal_api": "openblas", "version": version, **more}

    shown = {}
    for libraries in (
        [library("blas", "0.3.31", architecture="Haswell"), library("openmp", None), library("blas", "0.3.30")],
        [library("blas", "0.3.31", architecture="SkylakeX"), library("blas", "0.3.30")],
        [],
    ):
        monkeypatch.setattr(module, "threadpool_info", lambda libraries=libraries: libraries)
        shown[code_and_machine()["linear algebra"]] = libraries
    assert list(shown) == [
        "openblas 0.3.30, openblas 0.3.31 Haswell",
        "openblas 0.3.30, openblas 0.3.31 SkylakeX",
        "unknown",
    ]


@pytest.mark.deep
def test_an_openblas_that_is_told_to_be_another_is_another_origin():
    program = "from canaryproof.verify.audit.engine import provenance; print(provenance._linear_algebra())"
    shown = {
        core: subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "OPENBLAS_CORETYPE": core},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for core in ("", "Prescott")
    }
    if "openblas" not in shown[""] or platform.machine() != "x86_64":
        pytest.skip("needs OpenBLAS on x86")
    assert shown[""] != shown["Prescott"]


@pytest.fixture
def code(tmp_path, monkeypatch):
    for room in ("kernels", "proofs_check", "verify", "reports"):
        (tmp_path / room / "part").mkdir(parents=True)
        (tmp_path / room / "part" / "a.py").write_text("a")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "verify" / "audit" / "engine" / "origin.py"))
    return tmp_path


def test_the_digest_is_of_names_and_contents_in_their_order(code):
    (code / "verify" / "table.sha256").write_text("c")
    whole = hashlib.sha256()
    for room, name, content in (
        ("kernels", "part/a.py", b"a"),
        ("proofs_check", "part/a.py", b"a"),
        ("verify", "part/a.py", b"a"),
        ("verify", "table.sha256", b"c"),
    ):
        whole.update(f"{room}/{name} ".encode() + hashlib.sha256(content).digest())
    assert module._digest_of_code() == whole.hexdigest()[:16]


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (lambda root: (root / "kernels" / "part" / "a.py").write_text("b"), True),
        (lambda root: (root / "verify" / "part" / "a.py").rename(root / "verify" / "part" / "b.py"), True),
        (lambda root: (root / "proofs_check" / "new.py").touch(), True),
        (lambda root: (root / "reports" / "part" / "a.py").write_text("b"), False),
        (lambda root: (root / "verify" / "expected_verdicts.csv").touch(), False),
        (lambda root: (root / "verify" / "gone.py").symlink_to("nowhere"), False),
    ],
)
def test_changed_code_is_another_origin(code, change, counts):
    before = module._digest_of_code()
    change(code)
    assert (module._digest_of_code() != before) is counts
