import json
import subprocess
import sys

import numpy as np
import pytest

from canaryproof.verify.benchmark import fresh

DIM = 2**18


@pytest.mark.skipif(not fresh.RESET.exists(), reason="peak memory cannot be set back here")
def test_memory_is_seen(monkeypatch):
    held = []

    def prepare(dim, _count, _block):
        return lambda: held.append(np.ones(2 * dim))

    monkeypatch.setitem(fresh.OPERATIONS, "hold", (prepare, lambda dim, _: 8 * dim))
    found = fresh.memory("hold", str(DIM), "1", "1")
    assert found["vectors"] == 8 * DIM
    # Half of what it holds is called a vector; the rest of this process adds little.
    assert 7 * DIM < found["extra"] < 16 * DIM


def test_operations_do_what_they_are_called():
    assert fresh.OPERATIONS["Algorithm 1"][0](300, 4, 2)().shape == (4,)
    assert fresh.OPERATIONS["Canaries.sum"][0](300, 4, 2)().shape == (300,)
    assert fresh.OPERATIONS["Canaries.cosines"][0](300, 4, 2)().shape == (4,)
    assert fresh.OPERATIONS["RoundScores"][0](300, 4, 2)() is None


def test_digests_notice_a_changed_bit(monkeypatch):
    before = fresh.bits("300", "4")
    assert fresh.bits("300", "4") == before
    noise = fresh.noise

    def changed(seed, dim):
        vector = noise(seed, dim)
        vector[-1] = np.nextafter(vector[-1], np.float32(9.0))
        return vector

    monkeypatch.setattr(fresh, "noise", changed)
    after = fresh.bits("300", "4")
    assert {name for name in before if before[name] != after[name]} >= {"noise", "cosines of a block"}
    assert before["sum"] == after["sum"]


def test_it_runs_by_itself():
    command = [sys.executable, "-m", "canaryproof.verify.benchmark.fresh", "work", "nothing", "300", "2"]
    assert json.loads(subprocess.run(command, capture_output=True, check=True).stdout) == {"done": "nothing"}
