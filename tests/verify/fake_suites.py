"""Suites for the tests of the runner: a module, because the runner's processes import them by name.

``FAKE_LOG`` names a file that gets a line when a check begins: the process that runs the checks, its own, and the id.
"""

import os
import signal
import time
from pathlib import Path

from canaryproof.verify.papers.check.results import Check, Outcome, Subject, Verdict

OURS, THEIRS = Subject.IMPLEMENTATION, Subject.DOCUMENT
# More than all killed runs get done in a test: two of them, or fifty in the deep profile.
MANY = 400 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 60


def check(name, subject=OURS, verdict=Verdict.CONFIRMED, act=None):
    def judge(context):
        if "FAKE_LOG" in os.environ:
            with Path(os.environ["FAKE_LOG"]).open("a") as log:
                log.write(f"{os.getppid()} {os.getpid()} {name}\n")
        seen = act() if act else None
        draw = int(context.key(name).generate_state(1)[0])
        return Outcome(
            verdict, f"[found] {context.level}", {"draw": draw, "third": 1 / 3, "inf": float("inf"), **(seen or {})}
        )

    return Check(name, subject, "a source", "a statement", judge)


def nap(seconds):
    return lambda: time.sleep(seconds)


def threads():
    import numba

    return {"numba": numba.get_num_threads(), "blas": os.environ["OPENBLAS_NUM_THREADS"], "process": os.getpid()}


def fail_once():
    flag = Path(os.environ["FAKE_FLAG"])
    if not flag.exists():
        flag.touch()
        raise ValueError("no luck\nat first")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_once():
    flag = Path(os.environ["FAKE_FLAG"])
    if not flag.exists():
        flag.touch()
        die()


def eat():
    """Take memory until a worker's nanny ends it, not faster than it looks."""
    held = []
    while True:
        held.append(b"x" * 20_000_000)
        time.sleep(0.02)


def kernel():
    from canaryproof.kernels import null_cosine

    # Half the chord at d = 3: the cosine is uniform.
    if abs(float(null_cosine.pdf(0.25, 3.0)) - 0.5) > 1e-15:
        raise ValueError("the density is wrong")


SUITES = {
    "good": (check("own"), check("theirs", THEIRS, Verdict.REFUTED)),
    "bad": (check("broken", OURS, Verdict.REFUTED),),
    # The first to begin are the last to end.
    "naps": tuple(check(f"nap{i}", act=nap(0.2 - 0.04 * i)) for i in range(5)),
    "many": tuple(check(f"many{i}", act=nap(0.05)) for i in range(MANY)),
    "brisk": tuple(check(f"brisk{i}", act=nap(0.1)) for i in range(60)),
    "slow": tuple(check(f"slow{i}", act=nap(0.0 if i < 2 else 60.0)) for i in range(4)),
    "threads": tuple(check(f"threads{i}", act=threads) for i in range(2)),
    "luckless": (check("before"), check("luckless", THEIRS, act=fail_once), check("after")),
    "killed": (check("alive"), check("killed", act=lambda: (time.sleep(0.5), os.kill(os.getpid(), signal.SIGKILL)))),
    "mortal": (check("before"), check("mortal", act=die_once), *(check(f"calm{i}", act=nap(0.1)) for i in range(6))),
    "faulty": (
        check("deadly", act=die),
        check("hanging", act=nap(3600.0)),
        check("raising", act=lambda: 1 / 0),
        *(check(f"sound{i}", act=nap(0.1)) for i in range(6)),
    ),
    "hungry": (check("hungry", act=eat), check("modest")),
    "kernel": (check("density", act=kernel),),
    "unspeakable": (check("set", act=lambda: {"a set": {1}}),),
}
EXPECTED = {("good", "theirs"): Verdict.REFUTED, ("luckless", "luckless"): Verdict.CONFIRMED}
