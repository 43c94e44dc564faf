"""Other people's processes and threads: canaries have the same numbers in all of them, and none ends or hangs."""

import subprocess
import sys

import pytest

# For hangs alone.
LONGEST = 600
PROGRAM = """
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
import numpy as np
from canaryproof import null_cosine
from canaryproof.kernels.canaries import Canaries, noise

def numbers(seed):
    canaries = Canaries(seed=seed, count=9, dim=20_000)
    release = canaries.sum()
    block = np.stack([release] * 4).astype(np.float32)
    arrays = (
        release, canaries.vector(3), canaries.cosines(release), canaries.block_cosines(block), noise(seed, 9000),
        null_cosine.logsf(canaries.cosines(release), 20_000),
    )
    return [array.tobytes() for array in arrays]

def put(queue, seed):
    queue.put(numbers(seed))

def process(context):
    queue = context.Queue()
    child = context.Process(target=put, args=(queue, 0))
    child.start()
    found = queue.get()
    child.join()
    assert child.exitcode == 0
    return [found]

def pool(context):
    with context.Pool(2) as workers:
        return workers.map(numbers, range(3))

def executor(context):
    with ProcessPoolExecutor(2, context) as workers:
        return list(workers.map(numbers, range(3)))

def child_of_a_child(context):
    with ProcessPoolExecutor(1, context) as workers:
        return workers.submit(pool, context).result()

def threads(context):
    with ThreadPoolExecutor(4) as workers:
        return list(workers.map(numbers, range(3)))

if __name__ == "__main__":
    expected = [numbers(seed) for seed in range(3)]
    for name in sys.argv[2:]:
        found = globals()[name](multiprocessing.get_context(sys.argv[1]))
        assert found == expected[: len(found)], name
"""
LOADER = """
import torch
from canaryproof import Canaries

class Vectors(torch.utils.data.Dataset):
    canaries = Canaries(seed=3, count=6, dim=5000)
    def __len__(self):
        return 6
    def __getitem__(self, j):
        canary = self.canaries.vector(j)
        return torch.from_numpy(canary), torch.from_numpy(self.canaries.cosines(canary))

expected = list(torch.utils.data.DataLoader(Vectors(), batch_size=2))
found = list(torch.utils.data.DataLoader(Vectors(), batch_size=2, num_workers=2))
assert all(torch.equal(a, b) for one, other in zip(expected, found, strict=True) for a, b in zip(one, other))
"""


@pytest.mark.parametrize(
    ("method", "ways"),
    [
        ("fork", ("threads", "process", "pool", "executor", "child_of_a_child")),
        ("spawn", ("process",)),
        pytest.param("spawn", ("pool", "executor"), marks=pytest.mark.deep),
        pytest.param("forkserver", ("process", "pool", "executor"), marks=pytest.mark.deep),
    ],
)
def test_processes_have_the_same_numbers_as_their_parent(tmp_path, method, ways):
    (tmp_path / "program.py").write_text(PROGRAM)
    subprocess.run([sys.executable, tmp_path / "program.py", method, *ways], check=True, timeout=LONGEST)


def test_a_data_loader_with_workers_has_the_same_numbers():
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-c", LOADER], check=True, timeout=LONGEST)
