"""Work for a process of its own, ``python -m tests.benchmarks.fresh JOB …``: prints one JSON document."""

import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.kernels.slices import blocks
from canaryproof.verify.audit.answer.release_sums import all_sums
from canaryproof.verify.audit.answer.result import AuditResult
from canaryproof.verify.audit.answer.run_audit import audit_release
from canaryproof.verify.audit.canaries.round_scores import RoundScores
from canaryproof.verify.audit.estimators import algorithm_1
from canaryproof.verify.audit.files.stored_release import open_release
from tests.benchmarks.rivals import numpy_algorithm_1
from tests.memory import held, peak

RELEASE = "release.safetensors"


def memory(operation: str, dim: str, count: str, block: str) -> dict[str, int]:
    """Measure the peak memory of an operation, beyond what was there before.

    Parameters
    ----------
    operation
        Name in ``OPERATIONS``.
    dim, count
        Dimension and number of canaries, in decimal.
    block
        Number of rounds at once.

    Returns
    -------
    Bytes of the vectors that the operation itself makes and hands back or keeps, and of the rest.
    """
    run, vectors = OPERATIONS[operation]
    run(2 * 4096, 3, 2)()
    prepared = run(int(dim), int(count), int(block))
    before = held()
    prepared()
    own = vectors(int(dim), int(block))
    return {"vectors": own, "extra": max(0, peak() - before - own)}


def _algorithm_1(dim: int, count: int, _block: int) -> Callable[[], object]:
    return lambda: algorithm_1.cosines(count, dim, 1.0, 0)


def _sum(dim: int, count: int, _block: int) -> Callable[[], object]:
    return Canaries(0, count, dim).sum


def _cosines(dim: int, count: int, _block: int) -> Callable[[], object]:
    vector = noise(0, dim)
    return lambda: Canaries(0, count, dim).cosines(vector)


def _round_scores(dim: int, count: int, block: int) -> Callable[[], object]:
    delta, scores = noise(0, dim), RoundScores(Canaries(0, count, dim), block)

    def add() -> None:
        for _ in range(block):
            scores.add(delta)

    return add


# How each is prepared, and how many bytes of vectors it makes that are its purpose.
OPERATIONS: dict[str, tuple[Callable[[int, int, int], Callable[[], object]], Callable[[int, int], int]]] = {
    "Algorithm 1": (_algorithm_1, lambda dim, _: 8 * dim),
    "Canaries.sum": (_sum, lambda dim, _: 8 * dim),
    "Canaries.cosines": (_cosines, lambda _dim, _block: 0),
    "RoundScores": (_round_scores, lambda dim, block: 4 * dim * block),
}


def bits(dim: str, count: str) -> dict[str, str]:
    """Digest results of the kernels, with as many threads as the environment says."""
    d, k = int(dim), int(count)
    canaries = Canaries(1, k, d)
    block = np.stack([noise(seed, d) for seed in range(2)])
    results: dict[str, NDArray[np.floating]] = {
        "coordinates": np.stack([canaries.vector(j) for j in range(min(k, 8))]),
        "noise": noise(1, d),
        "sum": Canaries(1, k, d).sum(),
        "cosines": algorithm_1.cosines(k, d, 1.0, 1),
        "cosines of a block": Canaries(1, k, d).cosines(block),
        "block_cosines": Canaries(1, k, d).block_cosines(block),
    }
    return {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in results.items()}


def work(what: str, dim: str, count: str) -> dict[str, str]:
    """Do Algorithm 1 in one way or not at all, for somebody who counts instructions."""
    jobs: dict[str, Callable[[int, int], object]] = {
        "canaryproof": lambda d, k: algorithm_1.cosines(k, d, 1.0, 0),
        "numpy": lambda d, k: numpy_algorithm_1(np.random.PCG64, k, d, 1.0, 0),
    }
    # Whatever is counted of loading and compiling is then the same for all.
    for job in jobs.values():
        job(2 * 4096, 2)
    if what in jobs:
        jobs[what](int(dim), int(count))
    return {"done": what}


def released(folder: str, dim: str, count: str) -> dict[str, int]:
    """Write a release in bfloat16 as .safetensors: noise of multiplier 1, with orthonormal canaries in it."""
    d = int(dim)
    canaries = OrthonormalCanaries(0, int(count), d)
    header = json.dumps({"noise": {"dtype": "BF16", "shape": [d], "data_offsets": [0, 2 * d]}}).encode()
    with Path(folder, RELEASE).open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for number, part in enumerate(blocks(d)):
            values = noise(number, part.stop - part.start)
            values += canaries.sum(coordinates=part)
            words = values.view(np.uint32)
            # To the nearest, of two the even one: cutting digits off would take noise away.
            words += 0x7FFF + (words >> 16 & 1)
            file.write((words >> 16).astype("<u2").data)
    return {"bytes": 2 * d}


def reading(folder: str) -> dict[str, float]:
    """Time the reading of a release in a file, and numpy's sum of it."""
    stored = open_release(Path(folder, RELEASE))
    seconds = {"reading": 0.0, "summing": 0.0}
    for part in blocks(stored.dim):
        begun = time.perf_counter()
        values = stored.read(part.start, part.stop)
        read = time.perf_counter()
        values.sum()
        seconds["reading"] += read - begun
        seconds["summing"] += time.perf_counter() - read
    return seconds


def scored(folder: str, kind: str, count: str) -> dict[str, float]:
    """Time the scores of a release in a file, and measure the peak memory.

    Parameters
    ----------
    folder
        Where ``released`` wrote it.
    kind
        ``independent`` or ``orthonormal``.
    count
        Number of canaries, in decimal.

    Returns
    -------
    Seconds, and bytes beyond what the process held before.
    """
    stored = open_release(Path(folder, RELEASE))
    make = Canaries if kind == "independent" else OrthonormalCanaries
    make(0, 3, 2 * 4096).partial_products(noise(0, 2 * 4096))
    return _measured(lambda: all_sums(stored, make(0, int(count), stored.dim)))


def audited(folder: str, count: str) -> dict[str, Any]:
    """Audit a release in a file through the orthonormal canaries that are in it, in time and memory."""
    stored = open_release(Path(folder, RELEASE))
    canaries = OrthonormalCanaries(0, int(count), stored.dim)
    audits: list[AuditResult] = []
    cost = _measured(lambda: audits.append(audit_release(stored, canaries, delta=1e-6, noise_multiplier=1.0)))
    estimate, decision = audits[0].estimates[0], audits[0].decision
    assert decision is not None  # The noise is claimed.
    return {
        **cost,
        "decision": str(decision.outcome),
        "claim": audits[0].claim,
        **{name: getattr(estimate, name) for name in ("epsilon", "low", "high")},
    }


def _measured(run: Callable[[], object]) -> dict[str, float]:
    """Measure seconds, and peak memory beyond what the process holds."""
    before, begun = held(), time.perf_counter()
    run()
    return {"seconds": time.perf_counter() - begun, "peak": max(0, peak() - before)}


_JOBS: dict[str, Callable[..., Any]] = {
    "memory": memory,
    "bits": bits,
    "work": work,
    "released": released,
    "reading": reading,
    "scored": scored,
    "audited": audited,
}

if __name__ == "__main__":
    print(json.dumps(_JOBS[sys.argv[1]](*sys.argv[2:])))  # noqa: T201
