"""The Rocq sources of this folder: their order, their theorems, and their check by ``coqc``."""

import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

# Each file needs those before it alone.
NAMES = ("probability", "binomial", "private_pair", "one_run", "fixed_sequence", "default")
# Debian's and Ubuntu's packages that have what the files need.
PACKAGES = ("coq", "libcoq-mathcomp")
NO_AXIOM = "Closed under the global context"
# Words that leave something unproven; comments may have them.
_GAPS = re.compile(
    r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|Abort|bypass_check|give_up)\b|Unset\s+\w+ Checking"
)
_COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
_THEOREM = re.compile(r"^(?:Theorem|Corollary) (\w+)", re.MULTILINE)
# The library's own notations and coercions overlap; no warning is about this folder's files.
_OPTIONS = ("-q", "-w", "-notation-overridden,-ambiguous-paths")


class NotProvenError(Exception):
    """A file that the kernel does not accept, or that rests on an axiom."""


def read(name: str) -> str:
    """Return a file's text."""
    return (files(__package__) / f"{name}.v").read_text(encoding="utf-8")


def theorems(text: str) -> list[str]:
    """Return the names of a file's theorems in their order."""
    return _THEOREM.findall(_COMMENT.sub("", text))


def gaps(text: str) -> list[str]:
    """Return what a file, comments aside, leaves unproven."""
    return [gap[0] for gap in _GAPS.finditer(_COMMENT.sub("", text))]


def installed() -> bool:
    """Whether Rocq is on the path."""
    return shutil.which("coqc") is not None


def check(name: str, text: str, folder: Path) -> list[str]:
    """Check a file, compiled into ``folder``, and return its theorems, which rest on no axiom.

    Raises
    ------
    NotProvenError
        If it has an error or a gap, or a theorem rests on an axiom; the text says which.
    """
    if left := gaps(text):
        raise NotProvenError(f"{name}.v has {left[0]}")
    names = theorems(text)
    asked = "".join(f"\nPrint Assumptions {theorem}." for theorem in names)
    path = folder / f"{name}.v"
    path.write_text(text + asked + "\n", encoding="utf-8")
    run = subprocess.run(
        ["coqc", *_OPTIONS, "-R", str(folder), "canaryproof", str(path)], capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise NotProvenError(f"{name}.v: {run.stderr.strip()}")
    if run.stdout.split("\n") != [NO_AXIOM] * len(names) + [""]:
        raise NotProvenError(f"{name}.v rests on axioms:\n{run.stdout}")
    return names
