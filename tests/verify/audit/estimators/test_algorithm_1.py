import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from canaryproof.kernels import _code_folder
from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.verify.audit.estimators import algorithm_1


def test_release_is_the_printed_sum():
    canaries = np.stack([Canaries(5, 7, 300).vector(j) for j in range(7)]).astype(float)
    data = np.eye(300)[:3]
    expected = canaries.sum(axis=0) + data.sum(axis=0) + 0.25 * noise(5, 300)
    # ``vector`` rounds to float32.
    assert algorithm_1.release(7, 300, 0.25, 5, data) == pytest.approx(expected, abs=1e-6)


def test_cosines_are_those_of_the_release():
    release = algorithm_1.release(7, 300, 0.25, 5)
    canaries = np.stack([Canaries(5, 7, 300).vector(j) for j in range(7)]).astype(float)
    expected = canaries @ release / np.linalg.norm(release) / np.linalg.norm(canaries, axis=1)
    assert algorithm_1.cosines(7, 300, 0.25, 5) == pytest.approx(expected, abs=1e-7)


# test_canaries.py has the memory of fewer, and the suites the moments.
@pytest.mark.deep
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no process file system to read the peak from")
def test_printed_size_fits_in_memory_and_gives_the_theorems_moments(tmp_path):
    # d = 1e6: the canaries themselves would take 4 MB each.
    canaries = 1000
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from canaryproof.verify.audit.estimators import algorithm_1\n"
        "from canaryproof.verify.audit.estimators.moments import from_dimension\n"
        "m = from_dimension(algorithm_1.cosines(int(sys.argv[1]), 10**6, 1.54, 1), 10**6)\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(float(m.distance), float(m.ratio), status.split('VmHWM:')[1].split()[0])\n"
    )
    # Compiling takes memory of its own. The first run compiles what is still missing, in a copy of the cache: no other
    # process writes there, so that the second run compiles nothing.
    kept = _code_folder.folder()
    shutil.copytree(kept, tmp_path / kept.name, ignore=shutil.ignore_patterns("*.tmp.*"))
    surroundings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for count in ("20", str(canaries)):
        command = [sys.executable, "-c", script, count]
        output = subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings).stdout
    distance, ratio, peak = map(float, output.split())
    # Standard errors 1/√k and 1/√(2k): six of them.
    assert abs(distance - 1 / 1.54) < 6 / np.sqrt(canaries)
    assert abs(ratio - 1.0) < 6 / np.sqrt(2 * canaries)
    # The kernel's high-water mark in kB; getrusage would count what this process had before it forked.
    assert peak * 1024 < 300e6
