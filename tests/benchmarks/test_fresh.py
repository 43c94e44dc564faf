import json
import subprocess
import sys

import numpy as np
import pytest

from tests.benchmarks import fresh
from tests.memory import RESET

DIM = 2**18


# In a process of its own: this one may have memory to spare.
HOLD = f"""
import json, numpy as np
from tests.benchmarks import fresh
held = []
fresh.OPERATIONS["hold"] = (lambda dim, *_: lambda: held.append(np.ones(2 * dim)), lambda dim, _: 8 * dim)
print(json.dumps(fresh.memory("hold", "{DIM}", "1", "1")))
"""


@pytest.mark.deep
@pytest.mark.skipif(not RESET.exists(), reason="peak memory cannot be set back here")
def test_memory_is_seen():
    found = json.loads(subprocess.run([sys.executable, "-c", HOLD], capture_output=True, check=True).stdout)
    assert found["vectors"] == 8 * DIM
    # Half of what it holds is called a vector; the rest of the process adds little.
    assert 7 * DIM < found["extra"] < 16 * DIM


def test_operations_do_what_they_are_called():
    assert fresh.OPERATIONS["Algorithm 1"][0](300, 4, 2)().shape == (4,)
    assert fresh.OPERATIONS["Canaries.sum"][0](300, 4, 2)().shape == (300,)
    assert fresh.OPERATIONS["Canaries.cosines"][0](300, 4, 2)().shape == (4,)
    assert fresh.OPERATIONS["RoundScores"][0](300, 4, 2)() is None


@pytest.mark.skipif(not RESET.exists(), reason="peak memory cannot be set back here")
def test_a_release_in_a_file_is_scored_and_audited(tmp_path):
    assert fresh.released(str(tmp_path), "9000", "2000") == {"bytes": 18_000}
    assert min(fresh.reading(str(tmp_path)).values()) > 0.0
    assert all(fresh.scored(str(tmp_path), kind, "10")["seconds"] > 0.0 for kind in ("independent", "orthonormal"))
    audit = fresh.audited(str(tmp_path), "2000")
    assert audit["decision"] == "PASSED"
    assert audit["low"] < audit["claim"] < audit["high"]


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


@pytest.mark.deep
def test_it_runs_by_itself():
    command = [sys.executable, "-m", "tests.benchmarks.fresh", "work", "nothing", "300", "2"]
    assert json.loads(subprocess.run(command, capture_output=True, check=True).stdout) == {"done": "nothing"}
