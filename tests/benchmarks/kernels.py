"""What the canaries cost beside others, on this machine, in one run: the document that pages are made of."""

import math
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_info

from canaryproof.kernels._canary_stream import CANARY, fill
from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries, _apply, _apply_transpose
from canaryproof.verify.audit.engine.provenance import _processor
from canaryproof.verify.audit.estimators import algorithm_1
from tests.benchmarks import processes
from tests.benchmarks.arithmetic import Arithmetic, arithmetic
from tests.benchmarks.rivals import jax_algorithm_1, numpy_algorithm_1, numpy_round_cosines
from tests.benchmarks.targets import Target, targets
from tests.benchmarks.timing import Contestant, Skipped, Timing, limited, race

_SEED, _NOISE_MULTIPLIER = 0, 1.0
MADE = "canaries made, no product"
_GENERATORS = {"PCG64": np.random.PCG64, "SFC64": np.random.SFC64}


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes
    ----------
    name
        ``full`` or ``small``.
    repetitions
        Of each timing.
    dim, count
        Algorithm 1.
    stored
        Canaries of that dimension that are stored, to read them at the speed of the memory.
    rival
        Canaries that others make; their times are scaled to all.
    rounds_dim, rounds_count, blocks
        Algorithm 3, with canaries that can be stored.
    square
        Order of the matrices whose product is the BLAS's best.
    scaling
        Dimensions and numbers of canaries that show how the cost grows.
    counted
        Canaries of dimension 2¹⁶ whose instructions are counted.
    orthonormal
        Numbers of orthonormal canaries in Algorithm 1.
    """

    name: str
    repetitions: int
    dim: int
    count: int
    stored: int
    rival: int
    rounds_dim: int
    rounds_count: int
    blocks: tuple[int, ...]
    square: int
    scaling: tuple[tuple[int, int], ...]
    counted: int
    orthonormal: tuple[int, ...]


_SIZES = (
    Size(
        name="full",
        repetitions=7,
        dim=2**20,
        count=1000,
        stored=256,
        rival=50,
        rounds_dim=2**18,
        rounds_count=1000,
        blocks=(32, 64),
        square=2048,
        # At least ten canaries, lest noise and memory of one vector's length outweigh them.
        scaling=(
            *((10**5, 1000), (10**5, 10000), (10**6, 100), (10**6, 1000)),
            *((10**7, 20), (10**7, 100), (10**8, 10), (10**8, 20)),
        ),
        counted=200,
        orthonormal=(10**3, 10**4, 10**5),
    ),
    Size(
        name="small",
        repetitions=2,
        dim=2**14,
        count=50,
        stored=50,
        rival=5,
        rounds_dim=2**13,
        rounds_count=50,
        blocks=(32, 64),
        square=256,
        scaling=((10**4, 20), (10**4, 100), (10**5, 2), (10**5, 10)),
        counted=0,
        orthonormal=(50, 500, 5000),
    ),
)
SIZES = {size.name: size for size in _SIZES}


@dataclass(frozen=True)
class Rounds:
    """Algorithm 3's cosines of a block of rounds, each way, and how far the fast one is from the exact one in 1/√d."""

    rounds: int
    timings: tuple[Timing, ...]
    largest_difference: float


@dataclass(frozen=True)
class Scaling:
    """Algorithm 1 at several sizes, and the slope of the logarithm of its time against that of k·d."""

    cells: tuple[tuple[int, int], ...]
    timings: tuple[Timing, ...]
    slope: float
    slope_error: float


@dataclass(frozen=True)
class Orthonormal:
    """Algorithm 1 with orthonormal and with independent canaries, and Algorithm 3; the transforms alone beside both.

    Timings of Algorithm 1 come in threes, one for each number of canaries: orthonormal, independent, transforms.
    """

    algorithm_1: tuple[Timing, ...]
    rounds: tuple[Timing, ...]


@dataclass(frozen=True)
class Benchmark:
    """All that one run measured. Times are in seconds, memory in bytes."""

    environment: dict[str, str]
    size: Size
    threads: int
    algorithm_1: tuple[Timing | Skipped, ...]
    stored: Timing
    rounds: tuple[Rounds, ...]
    square: Timing
    scaling: Scaling
    orthonormal: Orthonormal
    memory: tuple[processes.Memory | Skipped, ...]
    bits: tuple[processes.Bits, ...]
    instructions: tuple[processes.Instructions | Skipped, ...]
    arithmetic: Arithmetic | Skipped
    targets: tuple[Target, ...]


def measure(size: Size, part: Callable[[str], object] = lambda _: None) -> Benchmark:
    """Measure everything.

    Parameters
    ----------
    size
        How much.
    part
        Is told the name of each part before it begins.

    Returns
    -------
    What was measured.
    """
    threads = numba.get_num_threads()
    part("Algorithm 1")
    first, stored = _algorithm_1(size, threads)
    part("Algorithm 3")
    rounds, square = _rounds(size, threads)
    part("cost against k·d")
    scaling = _scaling(size, threads)
    part("orthonormal canaries")
    orthonormal = _orthonormal(size, threads)
    part("memory")
    far = max(size.scaling)
    operations = (
        ("Algorithm 1", size.dim, size.count),
        ("Canaries.sum", far[0], 2),
        ("Canaries.cosines", far[0], 2),
        ("RoundScores", size.rounds_dim, size.rounds_count),
    )
    memory = processes.memory(operations, size.blocks[0])
    part("bits")
    bits = processes.bits(size.dim + 1, min(size.count, 50))
    part("instructions")
    return Benchmark(
        environment=environment(),
        size=size,
        threads=threads,
        algorithm_1=first,
        stored=stored,
        rounds=rounds,
        square=square,
        scaling=scaling,
        orthonormal=orthonormal,
        memory=memory,
        bits=bits,
        instructions=processes.instructions(2**16, size.counted),
        arithmetic=arithmetic(),
        targets=targets(
            first, {block.rounds: block.timings for block in rounds}, memory, orthonormal.algorithm_1, threads
        ),
    )


def _algorithm_1(size: Size, threads: int) -> tuple[tuple[Timing | Skipped, ...], Timing]:
    dim, count = size.dim, size.count
    work, share = 2 * dim * count, size.rival / count

    def ours() -> object:
        return algorithm_1.cosines(count, dim, _NOISE_MULTIPLIER, _SEED)

    contestants = [Contestant("canaryproof", ours, work, n) for n in sorted({1, min(2, threads), threads})]
    for name, bits in _GENERATORS.items():

        def streaming(bits: type[np.random.BitGenerator] = bits) -> object:
            return numpy_algorithm_1(bits, size.rival, dim, _NOISE_MULTIPLIER, _SEED)

        contestants.append(Contestant(f"numpy, {name}", streaming, work, threads, share))
    skipped: list[Skipped] = []
    if find_spec("jax") is None:
        skipped.append(Skipped("JAX, threefry", "jax is not installed"))
    else:

        def jax() -> object:
            return jax_algorithm_1(size.rival, dim, _NOISE_MULTIPLIER, _SEED)

        contestants.append(Contestant("JAX, threefry", jax, work, threads, share))
    canaries, vector = _stored(size.stored, dim), noise(_SEED, dim)
    memory = Contestant("stored canaries", lambda: canaries @ vector, size.stored * dim, threads)
    *timings, stored = race([*contestants, memory], size.repetitions)
    return (*timings, *skipped), stored


def _stored(count: int, dim: int) -> NDArray[np.float32]:
    canaries, stored = Canaries(_SEED, count, dim), np.empty((count, dim), np.float32)
    for j in range(count):
        stored[j] = canaries.vector(j)
    return stored


def _rounds(size: Size, threads: int) -> tuple[tuple[Rounds, ...], Timing]:
    dim, count = size.rounds_dim, size.rounds_count
    canaries, stored = Canaries(_SEED, count, dim), _stored(count, dim)
    norms = canaries.norms().astype(np.float32)[: size.rival]
    deltas = np.stack([noise(_SEED + r, dim) for r in range(max(size.blocks))])

    row = np.empty(dim, np.float32)

    def make() -> None:
        for j in range(count):
            fill(np.uint64(_SEED), np.uint64(j), CANARY, 0, row)

    def contestants(rounds: int) -> list[Contestant]:
        block, work, share = deltas[:rounds], dim * count * rounds, size.rival / (count * rounds)

        def again(bits: type[np.random.BitGenerator]) -> Callable[[], object]:
            return lambda: numpy_round_cosines(bits, block[:1], norms, _SEED)

        return [
            Contestant("block_cosines", lambda: canaries.block_cosines(block), work, threads),
            Contestant(
                "block_cosines, first block", lambda: Canaries(_SEED, count, dim).block_cosines(block), work, threads
            ),
            Contestant(MADE, make, dim * count, threads),
            Contestant("stored, V Cᵀ", lambda: block @ stored.T, work, threads),
            Contestant("stored, C Vᵀ", lambda: stored @ block.T, work, threads),
            Contestant("cosines, float64", lambda: canaries.cosines(block), work, threads),
            *(Contestant(f"numpy, {name}", again(bits), work, threads, share) for name, bits in _GENERATORS.items()),
        ]

    matrix = noise(_SEED, size.square**2).reshape(size.square, -1)
    square = Contestant("square product", lambda: matrix @ matrix, size.square**3, threads)
    cast = [contestants(rounds) for rounds in size.blocks]
    *timings, best = race([*(c for block in cast for c in block), square], size.repetitions)
    found = []
    for rounds in size.blocks:
        own, timings = timings[: len(cast[0])], timings[len(cast[0]) :]
        block = deltas[:rounds]
        with limited(threads):
            difference = np.abs(canaries.block_cosines(block) - canaries.cosines(block)).max() * math.sqrt(dim)
        found.append(Rounds(rounds, tuple(own), float(difference)))
    return tuple(found), best


def _scaling(size: Size, threads: int) -> Scaling:
    def contestant(dim: int, count: int) -> Contestant:
        def ours() -> object:
            return algorithm_1.cosines(count, dim, _NOISE_MULTIPLIER, _SEED)

        return Contestant("canaryproof", ours, dim * count, threads)

    # Sizes differ so much that one repetition more or less of the largest would double the time of all.
    timings = race([contestant(*cell) for cell in size.scaling], min(size.repetitions, 3))
    fit = stats.linregress(np.log([t.coordinates for t in timings]), np.log([t.seconds for t in timings]))
    return Scaling(size.scaling, timings, float(fit.slope), float(fit.stderr))


def _orthonormal(size: Size, threads: int) -> Orthonormal:
    dim, most = size.dim, size.count

    def ours(count: int) -> object:
        # All is made anew, as for the independent ones: signs and rows too.
        canaries = OrthonormalCanaries(_SEED, count, dim)
        released = canaries.sum()
        released += _NOISE_MULTIPLIER * noise(_SEED, dim)
        return canaries.scores(released)

    vector, signs = noise(_SEED, dim).astype(np.float64), OrthonormalCanaries(_SEED, 1, dim)._signs

    def transforms() -> None:
        _apply_transpose(vector, signs)
        _apply(vector, signs)

    cast = []
    for count in size.orthonormal:
        measured = min(count, most)

        def independent(measured: int = measured) -> object:
            return algorithm_1.cosines(measured, dim, _NOISE_MULTIPLIER, _SEED)

        cast += [
            Contestant(f"orthonormal, k = {count:,}", lambda count=count: ours(count), 2 * dim * count, threads),  # type: ignore[misc]
            Contestant(f"independent, k = {count:,}", independent, 2 * dim * count, threads, measured / count),
            Contestant("the transforms alone", transforms, 2 * dim * count, threads),
        ]
    rows, number = size.rounds_dim, max(size.blocks[:1])
    deltas = np.stack([noise(_SEED + r, rows) for r in range(number)])
    several = OrthonormalCanaries(_SEED, size.rounds_count, rows)
    known = Canaries(_SEED, size.rounds_count, rows)
    known.norms()
    work, turned = rows * size.rounds_count * number, deltas.copy()

    def float32_transforms() -> None:
        for delta in turned:
            _apply(delta, several._signs)

    blocks = [
        Contestant("orthonormal", lambda: several.block_cosines(deltas), work, threads),
        Contestant("independent", lambda: known.block_cosines(deltas), work, threads),
        Contestant("the transforms alone", float32_transforms, work, threads),
    ]
    timings = race([*cast, *blocks], min(size.repetitions, 3))
    return Orthonormal(tuple(timings[: len(cast)]), tuple(timings[len(cast) :]))


def environment() -> dict[str, str]:
    """Describe what a page was measured on."""
    blas = ", ".join(
        f"{library['internal_api']} {library['version']} ({library.get('architecture', 'unknown')})"
        for library in threadpool_info()
        if library["user_api"] == "blas" and "numpy" in library["filepath"]
    )
    return {
        "processor": _processor(),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: _version(name) for name in ("canaryproof", "numpy", "numba", "llvmlite", "jax")},
        "BLAS of numpy": blas or "unknown",
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
