"""The code, the versions and the machine that results depend on: where they are equal, so are the bytes."""

import hashlib
import platform
import re
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from threadpoolctl import threadpool_info


def code_and_machine() -> dict[str, str]:
    """Return, by name, everything that results depend on: this package's code, library versions, and the machine."""
    return {
        "source code": _digest_of_code(),
        **python_and_platform(),
        "processor": _processor(),
        "cpu target": _cpu_target(),
        "linear algebra": _linear_algebra(),
        **library_versions("federated"),
    }


def python_and_platform() -> dict[str, str]:
    """Return the version of Python, and the system that it runs on."""
    return {
        "python": platform.python_version(),
        "platform": " ".join([platform.system(), platform.machine(), *platform.libc_ver()]).strip(),
    }


@cache
def digest_of_files(root: Path = Path(__file__).parents[3]) -> str:
    """Return the SHA-256 of all files of the rooms, as a checkout or a wheel has them: ``make dist`` prints it."""
    digest = hashlib.sha256()
    for room in ("kernels", "proofs_check", "reports", "verify"):
        for path in sorted((root / room).rglob("*")):
            name = path.relative_to(root).as_posix()
            # A wheel has the public names outside of their room, and no published pages.
            left_out = name.startswith(("verify/api/", "reports/published/")) or "__pycache__" in path.parts
            if path.is_file() and not left_out:
                digest.update(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n".encode())
    return digest.hexdigest()


def _digest_of_code() -> str:
    """Digest of all that computes results, so that changed code does not go on with another's run."""
    root = Path(__file__).parents[3]
    digest = hashlib.sha256()
    for room in ("kernels", "proofs_check", "verify"):
        # The table that checks start from has its hash in a file; the expected verdicts change no result.
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in (".py", ".sha256") or not path.is_file():
                continue
            digest.update(f"{path.relative_to(root)} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def library_versions(*extras: str) -> dict[str, str]:
    """Return the versions of the installed packages that compute: what this one needs, also for some extras."""
    serving = {f'"{extra}"' for extra in extras}
    lines = (line for line in requires("canaryproof") or () if "extra ==" not in line or serving & set(line.split()))
    versions = {"llvmlite": version("llvmlite")}
    for match in filter(None, (re.match(r"[\w.-]+", line) for line in lines)):
        with suppress(PackageNotFoundError):
            versions[match[0]] = version(match[0])
    return versions


def _processor() -> str:
    """Name of the processor."""
    try:
        match = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1] if match else platform.processor()


def _cpu_target() -> str:
    """Name of the processor that numba compiles for, and a digest of its abilities: other code has other bits."""
    # numba takes a third of a second to import.
    from numba.core.registry import cpu_target

    _, name, abilities = cpu_target.target_context.codegen().magic_tuple()
    return f"{name} {hashlib.sha256(abilities.encode()).hexdigest()[:8]}"


def _linear_algebra() -> str:
    """Name the BLAS of numpy and that of scipy, and the processor that each has code for: other code has other bits."""
    # A library is listed once it is loaded, and this one takes a tenth of a second.
    import scipy.linalg  # noqa: F401

    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    names = (
        " ".join([library["internal_api"], str(library["version"]), library.get("architecture", "")]).strip()
        for library in libraries
    )
    return ", ".join(sorted(names)) or "unknown"
