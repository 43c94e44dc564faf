"""The examples of federated servers: Flower's own wrappers, pfl-research and NVFlare, each where it is installed.

``make test-frameworks`` has Flower, ``make test-pfl`` and ``make test-nvflare`` the others. Seeds are fixed, nominal
levels are 1e-7; a watch's tests have 1e-6 each.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = {"flower_wrappers": "flwr", "pfl_training": "pfl", "nvflare_app": "nvflare"}
# With a mod, the server has nothing to clip; both kinds of adaptive clipping draw too little noise, see below.
TRAININGS = [
    ("flower_wrappers", "server-fixed", None),
    ("flower_wrappers", "client-fixed", None),
    ("flower_wrappers", "local", None),
    ("flower_wrappers", "server-adaptive", None),
    ("flower_wrappers", "client-adaptive", None),
    ("flower_wrappers", "server-fixed", "weighted"),
    ("flower_wrappers", "server-fixed", "sampled-apart"),
    ("flower_wrappers", "client-fixed", "no-mod"),
    ("flower_wrappers", "local", "sensitivity"),
    ("pfl_training", "", None),
    ("pfl_training", "", "noise-scale"),
    ("pfl_training", "", "clip-apart"),
    ("nvflare_app", "", None),
    ("nvflare_app", "", "weighted"),
    ("nvflare_app", "", "share-twice"),
    ("nvflare_app", "", "no-clipping"),
]
PROGRAM = """
import json
from functools import partial
from {name} import *
from federated_clients import CLIENTS, Audited, Watched
wrapper, fault = {wrapper!r}, {fault!r}
training = partial(train, fault=fault, **({{"wrapper": wrapper}} if wrapper else {{}}))
noise = local_noise if wrapper == "local" else (lambda number: NOISE_MULTIPLIER)
watched, audited = Watched(0, noise(CLIENTS + Watched.count)), Audited(0, noise(CLIENTS + 5))
training(watched)
training(audited)
measured = audited.result().scores.record.traces.noise_multiplier(1 - 1e-7)
seen = [finding.question for finding in watched.watch.close().findings if finding.status == "failed"]
failed = [finding.question for finding in audited.result().findings if finding.status == "failed"]
print(json.dumps([seen, audited.stopped(), failed, measured.low, noise(CLIENTS + 5), measured.high]))
"""


def run(program):
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("name", "wrapper", "fault"), TRAININGS)
def test_an_honest_server_is_left_alone_and_a_setting_that_breaks_its_claim_is_refuted(name, wrapper, fault):
    if find_spec(MODULES[name]) is None:
        pytest.skip(f"needs {MODULES[name]}")
    seen, stopped, failed, low, noise, high = run(PROGRAM.format(name=name, wrapper=wrapper, fault=fault))
    if fault is None:
        # Flower moves an adaptive norm before it draws the noise, so that the noise is the next norm's.
        assert seen == (["noise", "leak"] if "adaptive" in wrapper else [])
        assert low < noise < high
        assert (stopped, failed) == (False, [])
    else:
        assert "noise" in seen
        assert {"noise", "leak"} & set(failed)


@pytest.mark.skipif(find_spec("nvflare") is None, reason="needs nvflare")
def test_the_sparse_vector_filter_costs_more_than_its_epsilon():
    program = "import json\nfrom nvflare_app import *\nresult, ledger = sparse_vectors()\n"
    shown = "print(json.dumps([result.finding('leak').status, float(result.bound.low), ledger]))"
    status, low, ledger = run(program + shown)
    assert status == "failed"
    assert 0.1 < low < ledger


@pytest.mark.skipif(find_spec("nvflare") is None, reason="needs nvflare")
@pytest.mark.parametrize("arguments", [[], ["--break", "noise-halved"]])
def test_nvflares_own_processes_train_with_canaries(arguments):
    command = [sys.executable, "-W", "ignore", "nvflare_simulator.py", *arguments]
    done = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the claimed ε = 10 " in done.stdout
    assert ("\nNOT PASSED: " in done.stdout) == bool(arguments)
