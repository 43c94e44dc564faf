"""What the commands of an auditor refuse: in one line, with status 2."""

import contextlib
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from canaryproof.kernels import exact_law
from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.command_line import main, one_line
from tests.refusals import refusals

COSINES = exact_law.cosines(200, 10**6, 4.22, np.random.default_rng(3))
OTHERS = np.random.default_rng(4).normal(size=100) / 1000.0
LOSSES = -np.random.default_rng(5).exponential(size=(2, 100)) * 10.0 + [[20.0], [0.0]]
MEMBERS = [f"{score!r},{member}" for member, own in ((1, LOSSES[0]), (0, LOSSES[1])) for score in own.tolist()]
ARRAYS = {
    "c.npy": COSINES,
    "release.npy": np.array([3.0, 4.0, 5.0]),
    "nan.npy": np.array([0.1, np.nan]),
    "close.npy": np.array([0.5, 0.5 + 1e-12]),
    "zero.npy": np.zeros(5),
    "tiny.npy": np.array([1e-30, 0.0]),
}
ARCHIVES = {
    "both.npz": {"observed": COSINES, "unobserved": OTHERS},
    "alone.npz": {"observed": COSINES},
    "losses.npz": {"observed": LOSSES[0], "unobserved": LOSSES[1]},
}
TRAINING = """import numpy as np
import canaryproof as cp
def f():
    watch = cp.watch(delta=1e-5, claim=cp.accounting.gaussian(1.0))
    watch.step(release=np.ones(40), total=np.zeros(40), clip_norm=1.0)
    return watch
"""
TEXTS = {
    "equal.csv": "0.1\n0.1\n",
    "losses.csv": "-3.5\n-4\n",
    "other.csv": "score,member\n1.2,1\n0.2,0\n",
    "t.csv": "\n".join(["loss,in", *MEMBERS]),
    "t.py": TRAINING,
    "t.txt": TRAINING,
    "nothing.py": "",
    "three.py": "f = 3",
    "exits.py": "raise SystemExit(3)",
    "fails.py": "1 / 0",
    "fails_later.py": "def f():\n    1 / 0",
    "idle.py": "def f():\n    pass",
    "stepless.py": "import canaryproof as cp\ndef f():\n    return cp.watch(delta=1e-5)",
    "inspected.py": "def f(inspection):\n    inspection.add(1)",
}


def invoke(name: str, options: dict[str, object]) -> tuple[int, str, str, bytes]:
    """Run a command beside all files; return its status, output, errors and the report that it wrote."""
    words = [str(options["file"])] if options.get("file") is not None else []
    for option, value in options.items():
        if option != "file" and value is not None:
            words += [f"--{option.replace('_', '-')}", *([] if value is True else [str(value)])]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for file, array in ARRAYS.items():
            np.save(file, array)
        for file, arrays in ARCHIVES.items():
            np.savez(file, **arrays)
        for file, text in TEXTS.items():
            Path(file).write_text(text)
        Path("rounds.json").write_bytes(rounds())
        if name == "check-report":
            Path("report.json").write_bytes(report())
        result = CliRunner().invoke(main, [name, *words], prog_name="canaryproof")
        written = Path("written.json")
        return result.exit_code, result.stdout, result.stderr, written.read_bytes() if written.exists() else b""


@cache
def rounds() -> bytes:
    """Scores with a record of rounds: of 20 canaries in noise alone, each in half of the rounds."""
    drawn, rng = bernoulli(0, 0.5, 9, 3, Insertion(40, observed=20)), np.random.default_rng(3)
    clients = CanaryClients(Canaries(3, 40, 300), drawn, noise_multiplier=1.0)
    for t in range(9):
        clients.add(clients.total(t, 1.0) + rng.normal(size=300), t)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rounds.json"
        clients.scores("likelihood").save(path)
        return path.read_bytes()


@cache
def report() -> bytes:
    return invoke("audit", LOSSES_AUDIT | {"claim": 1, "report": "written.json"})[-1]


def command(name: str, **good: object) -> Callable[..., None]:
    """Return a call of a command with good options, of which some are changed, or left out if None."""

    def call(**changes: object) -> None:
        status, output, errors, _ = invoke(name, good | changes)
        if status == 2:
            assert output == ""
            (message,) = re.findall(r"\AError: (.*)\n\Z", errors)
            assert message.isprintable()
            assert len(message) < 250
            raise InputError(message)
        assert (status in (0, 1, 3, 4), errors) == (True, "")

    call.__name__ = name
    return call


COSINES_AUDIT = {"file": "c.npy", "delta": "1e-6", "dim": "1000000"}
LOSSES_AUDIT = {"file": "losses.npz", "delta": "0.01", "kind": "any"}
RELEASE_AUDIT = {"file": "release.npy", "delta": "0.1", "canaries": 2, "canary_seed": 1}
CANARIES = {"seed": 1, "count": 3, "out": "o.npy"}
PLAN = {"noise_multiplier": 1.54, "dim": 100_000}
ROUNDS = {"noise_multiplier": 1, "dim": 2000, "rounds": 10}
ROUNDS_AUDIT = {"file": "rounds.json", "delta": "1e-5", "noise_multiplier": 1, "rate": 0.5, "claim": 9}
MECHANISM = ("rate", "rounds", "participations")
OF_RECORDS = (
    "must have a record of rounds, as Scores.save of Python writes it, "
    "because --rate, --rounds and --participations are of rounds"
)
WITH_CANARIES = "must be given with --canaries and --canary-seed alone"
TOGETHER = "--canaries and --canary-seed: must be given together"
SUBJECT = "--release, --scores or --watch: must be given, and one of them alone"

TABLE = {
    command("audit", **COSINES_AUDIT): [
        *(
            (option, value, f"Invalid value for '--{option.replace('_', '-')}': must ")
            for option, values in {
                "delta": ("1", "-0.1", "nan", "inf", "", "x"),
                "confidence": ("0", "1", "95", "1.0", "nan", "0.9999999999999999", "1e-300"),
                "dim": ("1", "0", "-2", "1000000000001", "1e13", "2.5", "nan", "inf", "x", "1e999999999", ""),
                "noise_multiplier": ("0", "-1", "0.009", "1e7", "nan", "inf", "x", ""),
            }.items()
            for value in values
        ),
        *(
            ("dim", value, "Invalid value for '--dim': must ")
            for value in ("9" * 10_000, "1e-999999999", "sNaN", "0x10", "2" + "\x1b[31m" * 9)
        ),
        ("file", None, "Missing argument 'FILE'."),
        ("delta", None, "Missing option '--delta'. (see 'canaryproof audit --help')"),
        ("dim", None, "c.npy: cosines need --dim; a released vector needs --canaries and --canary-seed"),
        ("dimension", 5, "--dimension"),
        ("canaries", 5, TOGETHER),
        ("canary_seed", 5, TOGETHER),
        *(
            (option, value, f"--{option.replace('_', '-')}: {WITH_CANARIES}")
            for option, value in {
                "canary_norm": 2,
                "only": "a",
                "skip": "a",
                "base": "c.npy",
                "state": "s.npz",
                "directions": "orthonormal",
                "engine": "dask",
                "data_norm": 3,
                "difference": True,
            }.items()
        ),
        *((option, 0.5 if option == "rate" else 3, f"c.npy: {OF_RECORDS}") for option in MECHANISM),
        *(
            (option, value, f"Invalid value for '--{option.replace('_', '-')}': must ")
            for option, values in {
                "notice": ("0", "1", "-0.1", "nan", "x"),
                "rate": ("-0.1", "1.1", "nan", "x"),
                "rounds": ("0", "-1", "2.5", "1e10", "x"),
                "participations": ("0", "-1", "2.5", "1e10", "x"),
                "data_norm": ("-1", "nan", "inf", "1e16", "x"),
            }.items()
            for value in values
        ),
        ("ask", "leaks", "Invalid value for '--ask': 'leaks' is not one of 'input', 'noise', "),
        ("ask", "plan", "Invalid value for '--ask': 'plan' is not one of "),
        ("ask", "", "Invalid value for '--ask': '' is not one of "),
        ("bound", "bonferroni", "--bound: bonferroni has left canaryproof.bounds.METHODS in 0.3: use fixed-sequence"),
        ("bound", "nope", "--bound: there is no bound 'nope'; there are fixed-sequence, band"),
        ("bound", "one-run", "c.npy: one-run needs unobserved scores"),
        ("inclusion", "dice", "'dice' is not one of 'fixed', 'coin', 'independent'"),
        ("fail_above_claim", True, "--fail-above-claim: needs --claim"),
        ("plot", "a.pdf", "a.pdf: the file's name must end in .svg or .png"),
        ("plot", "none/a.svg", "none/a.svg: No such file or directory"),
        ("junit", "a.txt", "a.txt: the file's name must end in .xml"),
        ("file", "nan.npy", "nan.npy: observed[1]: must be finite, not nan"),
        ("file", "equal.csv", "equal.csv: observed: all 2 values are equal"),
        ("file", "close.npy", "close.npy: observed: the standard deviation must be"),
        ("file", ".", ".: the file's name must end in .npy or .npz or .csv or .parquet or .json"),
        *(
            ("file", name, f"{one_line(name)}: No such file or directory")
            for name in (
                "missing.csv",
                "two\nlines.npy",
                "\x1b[31mred.npy",
                "\udcff.npy",
                "\u202egnp.npy",
                "ε.csv",
                "[b].npy",
            )
        ),
    ],
    command("audit", file="alone.npz", delta="0.1", dim=10**6): [
        ("dim", None, "alone.npz: dim: is needed, as there are no unobserved cosines"),
    ],
    command("audit", file="both.npz", delta="1e-6", noise_multiplier=4): [
        ("fail_above_claim", True, "--fail-above-claim: needs --claim"),
    ],
    command("audit", **LOSSES_AUDIT): [
        ("kind", None, "losses.npz: observed[1]: a cosine must lie in [-1, 1], not 12"),
        ("dim", 10, "losses.npz: dim: is for cosines"),
        ("noise_multiplier", 1, "losses.npz: noise_multiplier: is for cosines"),
        ("file", "losses.csv", "losses.csv: unobserved: is needed for scores of any kind"),
        ("file", "losses.parquet", "losses.parquet: No such file or directory"),
        ("file", "other.csv", "other.csv: observed: must have at least 2 values, not 1"),
    ],
    command("audit", **LOSSES_AUDIT | {"file": "t.csv", "score": "loss", "member": "in"}): [
        ("member", None, "--score: must be given with member, and member with score"),
        ("score", "x", "t.csv: must have one column 'x'; its columns"),
    ],
    command("audit", **RELEASE_AUDIT): [
        *(
            (option, value, f"Invalid value for '--{option.replace('_', '-')}': must ")
            for option, values in {
                "canaries": ("1", "0", "10000001", "3.5"),
                "canary_seed": ("-1", "18446744073709551616", "0.5", "seed"),
            }.items()
            for value in values
        ),
        ("engine", "slurm", "--engine: must be local, dask or dask://HOST:PORT, not 'slurm'"),
        ("engine", "dask://", "--engine: must be local, dask or dask://HOST:PORT, not 'dask://'"),
        ("dim", 3, "--dim: must not be given with --canaries, as a released vector has its own length"),
        ("kind", "any", "--kind: must not be given with --canaries"),
        ("inclusion", "coin", "--inclusion: must not be given with --canaries, as all of them are in the release"),
        ("inserted", 5, "--inserted: must not be given with --canaries, as others are taken out of each score"),
        ("unobserved", "c.npy", "--unobserved: must not be given with --canaries"),
        ("id", "a", "--id: must not be given with --canaries, as a released vector has no columns"),
        *(
            (option, 0.5 if option == "rate" else 3, f"--{option}: is for scores with a record of rounds")
            for option in MECHANISM
        ),
        ("file", "zero.npy", "zero.npy: the release must not be the zero vector"),
        ("file", "tiny.npy", "tiny.npy: the release's largest coordinate must lie"),
        (
            "file",
            "alone.npz",
            "alone.npz: the file's name must end in .npy or .safetensors or .safetensors.index.json",
        ),
    ],
    command("audit", **ROUNDS_AUDIT): [
        ("participations", 3, "rounds.json: participations: must not be given with rate, at which rounds are drawn"),
        ("noise_multiplier", None, "rounds.json: rate: needs noise_multiplier"),
        ("dim", 300, "--dim: must not be given with rounds.json, which says it"),
        ("data_norm", 3, f"--data-norm: {WITH_CANARIES}"),
    ],
    command("audit", **ROUNDS_AUDIT | {"rounds": 9}): [
        ("rate", None, "rounds.json: rounds: needs rate, at which they are drawn"),
    ],
    command("audit", **ROUNDS_AUDIT | {"rate": None, "participations": 5}): [
        ("noise_multiplier", None, "rounds.json: participations: needs noise_multiplier"),
    ],
    command("canaries", **CANARIES, dim=5): [
        ("dim", None, "--dim: must be given, or --add"),
        ("skip", "a", "--skip: must be given with --add alone"),
        ("canary_norm", 2, "--canary-norm: must be given with --add alone"),
        ("out", "c.txt", "c.txt: the file's name must end in .npy"),
        ("out", "none/c.npy", "none/c.npy: No such file or directory"),
        ("out", "c.npy/c.npy", "c.npy/c.npy: Not a directory"),
    ],
    command("canaries", **CANARIES, dim=5, directions="orthonormal"): [
        ("count", 6, "--count: must be at most --dim, as no more than 5 directions are orthogonal"),
    ],
    command("canaries", **CANARIES, add="c.npy"): [
        ("dim", 5, "--dim: must not be given with --add, as the file says it"),
        ("out", "o.safetensors", "o.safetensors: the file's name must end in .npy"),
        ("out", "c.npy", "c.npy: must not exist already, unless with --overwrite"),
    ],
    command("canaries", **CANARIES, add="c.npy", directions="orthonormal"): [
        ("count", 10**5, "--count: must be at most 200, as no more directions are orthogonal"),
    ],
    command("plan", **PLAN): [
        ("noise_multiplier", "nan", "--noise-multiplier: must lie between 0.01 and 1e+06, not nan"),
    ],
    command("plan", **PLAN | {"dim": 1000}, rounds=4, claim=20, all_rounds=True): [
        ("neighbours", "replace", "--neighbours: must be add-or-remove for all rounds, not replace"),
    ],
    command("plan", **ROUNDS): [
        ("data_norm", 3, "--data-norm: must be given with --rate, --participations or --difference"),
    ],
    command("plan", **ROUNDS, rate=1): [
        ("all_rounds", True, "--all-rounds: must not be given with --rate, --participations or --difference"),
        ("rate", 2, "--rate: must lie above 0 and be at most 1, not 2.0"),
    ],
    command("self-test", file="t.py:f"): [
        ("rate", 2, "--rate has left canaryproof self-test in 0.3: use the function's own watch"),
        ("file", "t.py", "t.py: must be FILE.py:FUNCTION"),
        ("file", "t.txt:f", "must be FILE.py:FUNCTION"),
        ("file", "missing.py:f", "missing.py: there is no such file"),
        ("file", "three.py:f", "three.py: has no function f"),
        ("file", "exits.py:f", "exits.py: raised SystemExit: 3"),
        ("file", "fails.py:f", "fails.py: raised ZeroDivisionError: division by zero"),
        ("file", "fails_later.py:f", "raised ZeroDivisionError (fails_later.py, line 2): division by zero"),
        ("file", "idle.py:f", "must return its watch, which canaryproof.watch makes"),
        ("file", "stepless.py:f", "its watch saw no step"),
        ("file", "inspected.py:f", "must take no argument and return its watch. In place of an inspection's add"),
    ],
    command("check-report", file="report.json", scores="losses.npz"): [
        ("scores", None, SUBJECT),
        ("release", "release.npy", SUBJECT),
        ("scores", "none.npz", "none.npz: No such file or directory"),
        ("plan", "plan.json", "--plan: must not be given, as the report is of an audit"),
    ],
}


@refusals(TABLE)
def test_refusals(row):
    row.check()
