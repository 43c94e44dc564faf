"""The Rocq sources of this folder: their order, their theorems, and their check by ``coqc``."""

import re
import shutil
import subprocess
from functools import cache
from importlib.resources import files
from pathlib import Path

from canaryproof.proofs_check.rocq import gappa_terms, quantile_cells
from canaryproof.proofs_check.rounding import gappa

# Each file stands after those that it needs. The statistics need Mathematical Components alone.
STATISTICS = (
    *("probability", "binomial", "private_pair", "any_dependence", "band", "precedence", "thresholds", "sides"),
    *("pooled_order", "ladders", "one_run", "weighted", "fixed_sequence", "claimed_curve", "default", "monotone"),
)
# Rounding rests on the terms that Gappa writes, limits on real analysis, single numbers on arithmetic with intervals.
_OTHERS = {
    "double_double": ("gappa", "libcoq-gappa"),
    "theorem_3_2": ("libcoq-coquelicot",),
    "one_sum": ("libcoq-coquelicot",),
    "normal_distance": ("libcoq-interval",),
    "canary_quantile": ("libcoq-interval",),
}
NAMES = (*STATISTICS, *_OTHERS)
# Modules that are written for a file.
_WRITTEN = {"double_double": gappa_terms.modules, "canary_quantile": quantile_cells.modules}
# Axioms of Rocq's own real numbers, and the modules with those of the machine's integers, which intervals are made of.
REAL_NUMBERS = {"sig_not_dec", "sig_forall_dec", "functional_extensionality_dep", "classic"}
MACHINE_INTEGERS = {"PrimInt63", "Uint63"}

# Words that leave something unproven; comments may have them.
_GAPS = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjecture|Abort|bypass_check)\b|Unset\s+\w+ Checking"
)
_COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
_THEOREM = re.compile(r"^(?:Theorem|Corollary) (\w+)", re.MULTILINE)
_ANSWER = re.compile(r"^(?:Closed under the global context|Axioms:)$", re.MULTILINE)
_AXIOM = re.compile(r"^[\w.]+", re.MULTILINE)
# The libraries' own notations and coercions overlap; no warning is about this folder's files.
_OPTIONS = ("-q", "-w", "-notation-overridden,-ambiguous-paths")


class NotProvenError(Exception):
    """A file that the kernel does not accept, or that rests on an axiom of its own."""


def read(name: str) -> str:
    """Return a file's text."""
    return (files(__package__) / f"{name}.v").read_text(encoding="utf-8")


def theorems(text: str) -> list[str]:
    """Return the names of a file's theorems in their order."""
    return _THEOREM.findall(_COMMENT.sub("", text))


def gaps(text: str) -> list[str]:
    """Return what a file, comments aside, leaves unproven."""
    return [gap[0] for gap in _GAPS.finditer(_COMMENT.sub("", text))]


@cache
def _libraries() -> frozenset[str]:
    """Return the libraries that Rocq has, nothing if it is not on the path."""
    if shutil.which("coqc") is None:
        return frozenset()
    where = subprocess.run(["coqc", "-where"], capture_output=True, text=True, check=True).stdout.strip()
    return frozenset({"", *(path.name for path in Path(where, "user-contrib").iterdir())})


def missing(name: str) -> list[str]:
    """Return Debian's packages, also Ubuntu's, that a file needs and this machine lacks."""
    libraries = _libraries()
    present = {
        "coq": "" in libraries,
        "gappa": gappa.installed(),
        "libcoq-gappa": "Gappa" in libraries,
        "libcoq-coquelicot": "Coquelicot" in libraries,
        "libcoq-interval": "Interval" in libraries,
        "libcoq-mathcomp": "mathcomp" in libraries,
    }
    return [package for package in ("coq", *_OTHERS.get(name, ("libcoq-mathcomp",))) if not present[package]]


def machine_integer(axiom: str) -> bool:
    """Whether an axiom is one of the machine's integers."""
    return axiom.split(".")[0] in MACHINE_INTEGERS


def check(name: str, text: str, folder: Path) -> dict[str, list[str]]:
    """Check a file, compiled into ``folder``, and return its theorems with their axioms.

    Raises
    ------
    NotProvenError
        If it has an error or a gap, or a theorem rests on an axiom that is not Rocq's own.
    """
    if left := gaps(text):
        raise NotProvenError(f"{name}.v has {left[0]}")
    for module, terms in _WRITTEN.get(name, dict)().items():
        _compile(module, terms, folder)
    names = theorems(text)
    answers = _compile(name, text + "".join(f"\nPrint Assumptions {theorem}." for theorem in names) + "\n", folder)
    axioms = [_AXIOM.findall(answer) for answer in _ANSWER.split(answers)[1:]]
    for theorem, resting in zip(names, axioms, strict=True):
        others = [axiom for axiom in resting if not (machine_integer(axiom) or axiom.split(".")[-1] in REAL_NUMBERS)]
        if others:
            raise NotProvenError(f"{name}.v: {theorem} rests on {', '.join(others)}")
    return dict(zip(names, axioms, strict=True))


def _compile(name: str, text: str, folder: Path) -> str:
    """Compile a module into a folder, and return what it prints."""
    path = folder / f"{name}.v"
    path.write_text(text, encoding="utf-8")
    command = ["coqc", *_OPTIONS, "-R", str(folder), "canaryproof", str(path)]
    # Some tactics write a cache into the current folder.
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if run.returncode:
        raise NotProvenError(f"{name}.v: {run.stderr.strip()}")
    return run.stdout
