"""What importing and using the package leaves behind in a process: nothing of others' is changed."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

import canaryproof as cp

USE = """
import decimal, json, locale, logging, os, pickle, random, signal, sys, warnings
from collections import defaultdict
from pathlib import Path

# What the package builds on is there before, with what it changes itself.
import absl.logging, dp_accounting.pld, dp_accounting.rdp, flint, hypothesis, matplotlib.figure, mpmath, numba
import numpy as np, pandas, rich.console, scipy.optimize, scipy.stats, statsmodels.api, sympy, threadpoolctl

logging.getLogger("absl").setLevel(logging.INFO)
logging.getLogger("users.own").setLevel(logging.DEBUG)
LOGGERS = [logging.root, *(logging.getLogger(name) for name in sorted(logging.root.manager.loggerDict))]

def state():
    text = lambda values: {name: str(value) for name, value in values.items()}
    return {
        "loggers": [
            (logger.name, logger.level, logger.propagate, logger.disabled, len(logger.handlers), len(logger.filters))
            for logger in LOGGERS
        ],
        "disabled": logging.root.manager.disable,
        "warnings": list(map(str, warnings.filters)),
        "environment": dict(os.environ),
        "path": list(sys.path),
        "hooks": [str(sys.excepthook), str(sys.unraisablehook)],
        "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "recursion": sys.getrecursionlimit(),
        "random": [str(random.getstate()), str(np.random.get_state())],
        "numpy": [np.geterr(), text(np.get_printoptions())],
        "matplotlib": text(matplotlib.rcParams),
        "locale": locale.setlocale(locale.LC_ALL),
        "precision": [flint.ctx.prec, mpmath.mp.prec, decimal.getcontext().prec],
        "threads": numba.get_num_threads(),
    }

before = state()
# The package is loaded by a pickle.
with open("audit.pickle", "rb") as file:
    again = pickle.load(file)
import canaryproof as cp

for name in cp.__all__:
    getattr(cp, name)
canaries = cp.Canaries(seed=7, count=300, dim=10_000)
release = canaries.sum(np.arange(300)) + np.random.default_rng(1).normal(0, 1.54, 10_000)
found = cp.audit_release(release, canaries, delta=1e-6, noise_multiplier=1.54)
found.report("report.html")
found.plot().savefig("audit.svg")
found.to_frame(), found.estimate.enclosure, str(found), found.details(), found.curve(), cp.model_card(found)
# dp-accounting has no series for some orders.
cp.accounting.poisson(1.0, rate=1 / 8, rounds=64).epsilon(1e-100)
cp.replay(lambda members: np.clip(members, -1.0, 1.0).sum(axis=0), np.ones((3, 2)), sensitivity=2.0)
after = state()

from canaryproof.verify import command_line
for name in command_line.COMMANDS:
    command_line.main.get_command(None, name)
named = defaultdict(set)
for name, module in list(sys.modules.items()):
    if getattr(module, "__file__", None) and name.startswith("canaryproof"):
        named[str(Path(module.__file__).resolve())].add(name)
changed = [name for name in before if before[name] != after[name]]
print(json.dumps({"changed": changed, "names": sorted(map(sorted, named.values())), "again": str(again)}))
"""


@pytest.fixture(scope="module")
def audit():
    return cp.audit(cp.Scores(np.random.default_rng(0).normal(0.002, 0.001, 300), dim=10**6), 1e-6, claim=3.0)


@pytest.fixture(scope="module")
def left(tmp_path_factory, audit):
    folder = tmp_path_factory.mktemp("use")
    (folder / "audit.pickle").write_bytes(pickle.dumps(audit))
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_a_pickle_of_another_process_is_read(left, audit):
    assert left["again"] == str(audit)


def test_the_users_process_stays_as_it_was(left):
    assert left["changed"] == []


def test_no_file_is_loaded_under_two_names(left):
    assert len(left["names"]) > 100
    assert [names for names in left["names"] if len(names) > 1] == []


def test_random_numbers_stay_as_they_were_though_nothing_else_was_loaded():
    """Members that a training draws by ``random`` are those that it would draw without a watch."""
    code = """
import random
random.seed(0)
before = random.getstate()
import canaryproof as cp
for name in cp.__all__:
    getattr(cp, name)
watch = cp.watch(delta=1e-5, members=20, rate=0.5)
watch.step(drawn=[1, 2])
watch.close()
print(random.getstate() == before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
