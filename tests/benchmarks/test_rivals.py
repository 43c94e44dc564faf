import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from tests.benchmarks import rivals

COUNT, DIM, SIGMA, SEED = 6, 5000, 0.5, 3


def numpy_vector(bits, j):
    return np.random.Generator(bits(np.random.SeedSequence([SEED, j]))).standard_normal(DIM, np.float32).astype(float)


def plain_cosines(vectors, noise):
    """Algorithm 1, lines 2 to 8, with all canaries stored."""
    canaries = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    release = canaries.sum(axis=0) + SIGMA * noise
    return canaries @ release / np.linalg.norm(release)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.SFC64])
def test_numpy_does_all_of_algorithm_1(bits):
    vectors = np.stack([numpy_vector(bits, j) for j in range(COUNT)])
    expected = plain_cosines(vectors, numpy_vector(bits, COUNT))
    assert rivals.numpy_algorithm_1(bits, COUNT, DIM, SIGMA, SEED) == pytest.approx(expected, abs=1e-5)


# JAX's threads would warn every later test of this process that forks.
JAX = f"""
import json, jax, numpy as np
from tests.benchmarks.rivals import jax_algorithm_1
key = jax.random.key({SEED}, impl="threefry2x32")
drawn = [jax.random.normal(jax.random.fold_in(key, j), ({DIM},)) for j in range({COUNT} + 1)]
found = jax_algorithm_1({COUNT}, {DIM}, {SIGMA}, {SEED})
print(json.dumps([np.asarray(drawn, float).tolist(), found.tolist()]))
"""


@pytest.mark.deep
@pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
def test_jax_does_all_of_algorithm_1():
    done = subprocess.run([sys.executable, "-c", JAX], capture_output=True, check=True)
    drawn, found = json.loads(done.stdout)
    *vectors, noise = np.array(drawn)
    assert found == pytest.approx(plain_cosines(np.stack(vectors), noise), abs=1e-5)


def test_numpy_scores_rounds():
    vectors = np.stack([numpy_vector(np.random.PCG64, j) for j in range(COUNT)])
    norms = np.linalg.norm(vectors, axis=1)
    deltas = np.random.default_rng(1).standard_normal((3, DIM), np.float32)
    expected = (deltas / np.linalg.norm(deltas, axis=1, keepdims=True)) @ (vectors / norms[:, np.newaxis]).T
    found = rivals.numpy_round_cosines(np.random.PCG64, deltas, norms.astype(np.float32), SEED)
    assert found == pytest.approx(expected, abs=1e-5)
