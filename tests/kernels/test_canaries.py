"""Besides pytest, run as a script: prints the hash of the stream (for another processor's code)."""

import hashlib
import math
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import mpmath
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels import _canary_stream as stream
from canaryproof.kernels import canaries
from canaryproof.kernels.canaries import Canaries, noise
from tests.memory import RESET

TILE = 4096
# Each statistical test may fail with this probability for a right generator and a random seed; the seeds are fixed.
LEVEL = 1e-6
WORDS = st.integers(0, 2**32 - 1)
SEEDS = st.integers(0, 2**64 - 1)

# Seed, canary, purpose, first tile, length. The last tiles lie beyond 2³² counters.
PIECES = [
    (0, 0, 0, 0, TILE),
    (0, 0, 1, 0, TILE + 100),
    (1, 2**32 - 1, 0, 3, 2 * TILE),
    (2**64 - 1, 7, 0, 2**22 - 1, 2 * TILE),
    (0x0123456789ABCDEF, 12345, 0, 2**22, 2),
    (0xFEDCBA9876543210, 1, 1, 2**28 - 1, TILE),
]
STREAM_SHA256 = "5db187d1dfef133042afb28b589e698c78946c3ec905b21d66beee556115ba86"


def coordinates(seed: int, j: int, dim: int, purpose: int = 0, first_tile: int = 0) -> NDArray[np.float32]:
    out = np.empty(dim, np.float32)
    stream.fill(np.uint64(seed), np.uint64(j), np.uint64(purpose), first_tile, out)
    return out


def stream_sha256() -> str:
    digest = hashlib.sha256()
    for seed, j, purpose, first_tile, length in PIECES:
        digest.update(coordinates(seed, j, length, purpose, first_tile).astype("<f4").tobytes())
    return digest.hexdigest()


@numba.njit
def normals(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    out = np.empty(len(words), np.float32)
    for i in range(len(words)):
        out[i] = stream._normal(words[i], stream._depth(words[i]))
    return out


# The plain transcription of the module's description: integers of Python, then float32 arrays step by step.


def plain_philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 2**32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


def plain_word(seed: int, j: int, purpose: int, i: int) -> int:
    tile, r = divmod(i, TILE)
    run, column = divmod(r, 1024)
    c = 1024 * tile + column
    return plain_philox((c % 2**32, c // 2**32, j, purpose), (seed % 2**32, seed // 2**32))[run]


def plain_normals(words: NDArray[np.int64]) -> NDArray[np.float32]:
    f32 = np.float32
    v = np.where(words < 2**31, words, 2**32 - 1 - words) | 1
    a, t = v.astype(f32), (2**31 - v).astype(f32)
    fraction, exponent = np.frexp(a * (f32(2**32) - a))
    m, exponent = f32(2) * fraction, exponent - 1
    s = (m - f32(math.sqrt(2))) / (m + f32(math.sqrt(2)))
    log = plain_polynomial((2.8853905, 0.9615889, 0.59575963), s * s)
    w = (62 - exponent).astype(f32) - (f32(0.5) + s * log)
    numerator = plain_polynomial(
        (1.0246016e-3, 2.5396835e-4, 3.5768782e-5, 3.404905e-6, 2.1362143e-7, 7.50162e-9, 1.6215662e-11), w
    )
    denominator = plain_polynomial((1.7555975e6, 116580.086, 29140.533, 1356.2157, 98.66093, 1.0), w)
    size = t * numerator / denominator
    assert size.dtype == f32
    return np.where(words < 2**31, -size, size)


def plain_polynomial(coefficients: tuple[float, ...], x: NDArray[np.float32]) -> NDArray[np.float32]:
    result = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = np.float32(coefficient) + x * result
    return result


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers_of_random123(
    counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert tuple(int(word) % 2**32 for word in stream._philox(*map(np.uint64, counter + key))) == expected
    assert plain_philox(counter, key) == expected


def test_stream_equals_plain_transcription() -> None:
    for seed, j, purpose, first_tile, length in PIECES:
        start = first_tile * TILE
        words = np.array([plain_word(seed, j, purpose, i) for i in range(start, start + length)])
        assert np.array_equal(coordinates(seed, j, length, purpose, first_tile), plain_normals(words))


def test_stream_is_the_recorded_one() -> None:
    assert stream_sha256() == STREAM_SHA256


@pytest.mark.deep
def test_stream_is_the_same_without_this_processors_instructions(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == STREAM_SHA256


@given(st.lists(WORDS, min_size=1, max_size=20))
@settings(deadline=None)
def test_normals_are_symmetric_and_equal_plain_transcription(words: list[int]) -> None:
    given_words = np.array(words, np.uint32)
    assert np.array_equal(normals(given_words), -normals(~given_words))
    assert np.array_equal(normals(given_words), plain_normals(np.array(words)))


def test_normals_are_near_the_exact_quantile() -> None:
    """The worst words found by a search over all of them are among those tried."""
    dense = np.linspace(0, 2**31 - 1, 4001).astype(np.int64)
    powers = np.array([2**k + step for k in range(1, 31) for step in (-1, 0, 1)])
    words = np.unique(np.concatenate([dense, powers, [0, 1, 673, 480307, 2**31 - 1]])).astype(np.uint32)
    with mpmath.workdps(30):
        tails = [mpmath.mpf(int(word) | 1) / 2**32 for word in words]
        exact = np.array([float(-mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * p)) for p in tails])
    assert np.max(np.abs(normals(words) / exact - 1)) < 4.6e-7
    assert np.max(np.abs(normals(words) - exact)) < 2.2e-6
    assert np.max(np.abs(normals(~words) / exact + 1)) < 4.6e-7


def test_coefficients_are_the_described_interpolants() -> None:
    def points(n: int, end: mpmath.mpf) -> list[mpmath.mpf]:
        return [end * (1 - mpmath.cos((2 * i + 1) * mpmath.pi / (2 * n))) / 2 for i in range(n)]

    def log_factor(z: mpmath.mpf) -> mpmath.mpf:
        s = mpmath.sqrt(z)
        return mpmath.log((1 + s) / (1 - s), 2) / s

    def quantile_factor(w: mpmath.mpf) -> mpmath.mpf:
        distance = mpmath.sqrt(1 - mpmath.mpf(2) ** -w)
        return mpmath.sqrt(2) * mpmath.erfinv(distance) / (2**31 * distance)

    def rounded(values: list[mpmath.mpf]) -> tuple[np.float32, ...]:
        return tuple(np.float32(float(value)) for value in values)

    with mpmath.workdps(50):
        zs = points(3, (3 - 2 * mpmath.sqrt(2)) ** 2)
        log = mpmath.lu_solve([[z**k for k in range(3)] for z in zs], [log_factor(z) for z in zs])
        ws = [4 * mpmath.expm1(z) for z in points(12, mpmath.log(1 + mpmath.mpf(30) / 4))]
        gs = [quantile_factor(w) for w in ws]
        rows = [[w**k for k in range(7)] + [-g * w**k for k in range(5)] for w, g in zip(ws, gs, strict=True)]
        ratio = list(mpmath.lu_solve(rows, [g * w**5 for w, g in zip(ws, gs, strict=True)]))
    assert rounded(list(log)) == stream._LOG
    assert rounded(ratio[:7]) == stream._NUMERATOR
    assert rounded(ratio[7:]) == stream._DENOMINATOR


@given(SEEDS, WORDS, st.integers(2, 20_000), st.integers(2, 20_000))
@settings(deadline=None)
def test_coordinates_do_not_depend_on_the_dimension(seed: int, j: int, dim: int, other: int) -> None:
    n = min(dim, other)
    assert np.array_equal(coordinates(seed, j, dim)[:n], coordinates(seed, j, other)[:n])
    assert np.array_equal(noise(seed, dim)[:n], noise(seed, other)[:n])
    assert np.array_equal(noise(seed, dim), coordinates(seed, 0, dim, purpose=1))


def test_results_do_not_depend_on_the_count() -> None:
    few, many = Canaries(3, 4, 5000), Canaries(3, 9, 5000)
    released = noise(3, 5000)
    assert np.array_equal(few.vector(3), many.vector(3))
    assert np.array_equal(few.norms(), many.norms()[:4])
    assert np.array_equal(few.sum(), many.sum([0, 1, 2, 3]))
    assert np.array_equal(few.cosines(released), many.cosines(released)[:4])


@given(SEEDS, WORDS, st.integers(2, 10_000))
@settings(deadline=None)
def test_vectors_are_the_normalised_coordinates(seed: int, j: int, dim: int) -> None:
    x = coordinates(seed, j, dim).astype(np.float64)
    vector = Canaries(seed, 2**32, dim).vector(j)
    assert vector.dtype == np.float32
    assert np.allclose(vector, x / math.sqrt(math.fsum(x * x)), rtol=1e-7, atol=0)
    assert abs(np.linalg.norm(vector.astype(np.float64)) - 1) < 6e-8


@given(st.data())
@settings(deadline=None)
def test_sums_and_cosines_equal_plain_numpy(data: st.DataObject) -> None:
    seed, count, dim = data.draw(SEEDS), data.draw(st.integers(1, 6)), data.draw(st.integers(2, 9000))
    indices = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=8))
    weights = [data.draw(st.integers(-99, 99)) / 7 for _ in indices]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    vectors = rng.standard_normal((data.draw(st.integers(1, 3)), dim)) + rng.normal()
    x = np.array([coordinates(seed, j, dim) for j in range(count)], np.float64)
    units = x / np.sqrt(np.array([math.fsum(row * row) for row in x]))[:, np.newaxis]
    expected = np.einsum("j,ji->i", weights, units[indices])
    absolute = np.einsum("j,ji->i", np.abs(weights), np.abs(units[indices]))
    kernel = Canaries(seed, count, dim)
    assert np.all(np.abs(kernel.sum(indices, weights) - expected) <= 1e-14 * absolute)
    assert np.allclose(kernel.sum(), units.sum(axis=0), rtol=0, atol=1e-14 * count)
    exact = np.array([[math.fsum(unit * v) / math.sqrt(math.fsum(v * v)) for unit in units[indices]] for v in vectors])
    assert np.max(np.abs(kernel.cosines(vectors, indices) - exact)) <= (dim / 2048 + 40) * 2**-53
    assert np.max(np.abs(kernel.cosines(vectors, indices) - exact)) <= 1e-12 / math.sqrt(dim)


def test_cosines_at_a_large_dimension_equal_plain_numpy() -> None:
    dim = 300_001
    x = np.array([coordinates(8, j, dim) for j in range(3)], np.float64)
    released = noise(8, dim).astype(np.float64)
    expected = x @ released / (np.linalg.norm(x, axis=1) * np.linalg.norm(released))
    assert np.max(np.abs(Canaries(8, 3, dim).cosines(released) - expected)) < 1e-12 / math.sqrt(dim)


def test_layout_and_type_of_the_input_do_not_matter() -> None:
    kernel = Canaries(5, 7, 10_000)
    block = np.random.default_rng(5).standard_normal((3, 10_000)).astype(np.float32)
    cosines = kernel.cosines(block)
    assert cosines.shape == (3, 7)
    assert kernel.cosines(block[1]).shape == (7,)
    assert np.array_equal(kernel.cosines(block[1]), cosines[1])
    assert np.array_equal(kernel.cosines(np.asfortranarray(block)), cosines)
    assert np.array_equal(kernel.cosines(block[::-1]), cosines[::-1])
    assert np.array_equal(kernel.cosines(np.repeat(block, 2, axis=1)[:, ::2]), cosines)
    assert np.array_equal(kernel.cosines(block.astype(np.float64)), cosines)
    assert np.array_equal(kernel.cosines(block, [6, 0, 6]), cosines[:, [6, 0, 6]])
    assert kernel.cosines(block[:0]).shape == (0, 7)
    assert kernel.cosines(block, []).shape == (3, 0)


@pytest.mark.parametrize("power", [-1022, -600, 600, 1020])
def test_scale_of_the_input_does_not_matter(power: int) -> None:
    kernel = Canaries(5, 7, 5000)
    released = np.round(noise(5, 5000).astype(np.float64), 3)
    scaled = np.ldexp(released, power)
    # Near the end of the range the scaled vector itself has lost bits.
    assert np.allclose(kernel.cosines(scaled), kernel.cosines(released), rtol=0, atol=1e-13 if power < -1000 else 0)


def test_parallel_vectors_have_cosine_one() -> None:
    kernel = Canaries(9, 20, 3000)
    cosines = kernel.cosines(np.array([coordinates(9, j, 3000) for j in range(20)]))
    assert np.all(np.abs(np.diag(cosines) - 1) < 1e-14)
    assert np.all(np.abs(cosines) <= 1)


def test_empty_sum_is_zero() -> None:
    assert np.array_equal(Canaries(0, 2, 5000).sum([]), np.zeros(5000))


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = numba.get_num_threads()
    yield numba.set_num_threads
    numba.set_num_threads(before)


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only")
def test_results_do_not_depend_on_threads(threads: Callable[[int], None]) -> None:
    dim, results = 50_000, []
    for n in (1, 2):
        threads(n)
        kernel = Canaries(11, 5, dim)
        released = noise(11, dim)
        results.append((released, kernel.norms(), kernel.vector(4), kernel.sum(), kernel.cosines(released)))
    assert all(np.array_equal(one, two) for one, two in zip(*results, strict=True))


def test_cosines_do_not_depend_on_how_the_work_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, released = Canaries(12, 3, 10 * TILE + 17), noise(12, 10 * TILE + 17)
    whole = kernel.cosines(released)
    monkeypatch.setattr(canaries, "_TILES_AT_ONCE", 3)
    assert np.array_equal(kernel.cosines(released), whole)


@pytest.mark.parametrize("held", [1, 3 * 2 * TILE])
def test_sums_do_not_depend_on_what_is_held(monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    dim, weights = TILE + 17, [0.5, -2.0, 3.0, 1.0, 1.0, 7.0, -1.0]
    whole = Canaries(12, 7, dim)
    expected = whole.sum(weights=weights)
    monkeypatch.setattr(canaries, "_HELD", held)
    monkeypatch.setattr(canaries, "_HELD_TOGETHER", held)
    kernel = Canaries(12, 7, dim)
    assert np.array_equal(kernel.sum(weights=weights), expected)
    assert np.array_equal(kernel.norms(), whole.norms())
    # Known norms spare a pass and change nothing.
    assert np.array_equal(kernel.sum(weights=weights), expected)


def test_known_norms_change_no_cosine() -> None:
    released = noise(5, TILE + 1)
    fresh, known = Canaries(3, 4, TILE + 1), Canaries(3, 4, TILE + 1)
    known.norms()
    assert np.array_equal(fresh.cosines(released), known.cosines(released))
    assert np.array_equal(fresh.norms(), known.norms())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("count", "rows", "dim"), [(1, 1, 2), (300, 3, TILE - 1), (130, 40, 30 * TILE + 5)])
def test_block_cosines_are_the_cosines_to_their_bound(dtype: type, count: int, rows: int, dim: int) -> None:
    vectors = np.random.default_rng(rows).standard_normal((rows, dim)).astype(dtype)
    # Scales are taken out, and a sparse vector has all its weight in few products.
    vectors[0] *= dtype(1e30)
    vectors[-1, 7:] = 0.0
    kernel = Canaries(44, count, dim)
    found = kernel.block_cosines(vectors)
    assert found.shape == (rows, count)
    assert np.abs(found - kernel.cosines(vectors)).max() * math.sqrt(dim) <= 2e-6
    # Norms are known by now, and were not before.
    assert np.array_equal(found, kernel.block_cosines(vectors))


def test_block_cosines_read_files_in_pieces(tmp_path: Path) -> None:
    vectors = np.random.default_rng(1).standard_normal((3, 2 * TILE)).astype(np.float32)
    np.save(tmp_path / "deltas.npy", vectors)
    kernel = Canaries(45, 6, 2 * TILE)
    assert np.array_equal(
        kernel.block_cosines(np.load(tmp_path / "deltas.npy", mmap_mode="r")), kernel.block_cosines(vectors)
    )


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only")
@pytest.mark.parametrize("count", [20, 301])
def test_block_cosines_do_not_depend_on_threads(count: int, threads: Callable[[int], None]) -> None:
    vectors = np.random.default_rng(2).standard_normal((32, 3 * TILE))
    found = []
    for number in (1, 2):
        threads(number)
        found.append(Canaries(46, count, 3 * TILE).block_cosines(vectors))
    assert np.array_equal(*found)


@pytest.mark.deep
@pytest.mark.skipif(not RESET.exists(), reason="peak memory cannot be set back here")
def test_memory_does_not_grow_with_the_count() -> None:
    script = """
        from tests.memory import held, peak
        from canaryproof.kernels.canaries import Canaries, noise

        def use(count, dim):
            before = held()
            kernel = Canaries(1, count, dim)
            kernel.cosines(kernel.sum() + noise(1, dim))
            kernel.vector(0)
            return peak() - before

        use(2, 5000)
        print(use(30, 10**6))
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    # Storing the canaries would take 120 MB.
    assert int(run.stdout) < 60e6


def test_noise_has_the_moments_and_law_of_a_normal() -> None:
    n = 2**22
    x = noise(2023, n).astype(np.float64)
    bound = stats.norm.isf(LEVEL / 2)
    assert abs(x.mean()) * math.sqrt(n) < bound
    assert abs(np.mean(x**2) - 1) * math.sqrt(n / 2) < bound
    assert abs(np.mean(x**3)) * math.sqrt(n / 15) < bound
    assert abs(np.mean(x**4) - 3) * math.sqrt(n / 96) < bound
    assert stats.kstest(x[: 2**20], stats.norm.cdf).pvalue > LEVEL
    assert stats.binomtest(int(np.sum(np.abs(x) > 4)), n, 2 * stats.norm.sf(4)).pvalue > LEVEL


@pytest.mark.parametrize("lag", [1, 2, 4, 1024, 2048, TILE])
def test_neighbouring_coordinates_are_uncorrelated(lag: int) -> None:
    x = coordinates(2024, 1, 2**21).astype(np.float64)
    products = x[lag:] * x[:-lag]
    squares = (x[lag:] ** 2 - 1) * (x[:-lag] ** 2 - 1) / 2
    bound = stats.norm.isf(LEVEL / 4)
    assert abs(products.mean()) * math.sqrt(len(products)) < bound
    assert abs(squares.mean()) * math.sqrt(len(squares)) < bound


def test_streams_are_uncorrelated() -> None:
    """Neighbouring canaries, neighbouring seeds of either half, and the noise of the same seed."""
    n = 2**16
    x = np.array([coordinates(77, j, n) for j in range(64)], np.float64)
    others = [coordinates(78, 0, n), coordinates(77 + 2**32, 0, n), noise(77, n)]
    bound = stats.norm.isf(LEVEL / 8)
    assert abs(np.sum(x[1:] * x[:-1])) / math.sqrt(63 * n) < bound
    assert all(abs(x[0] @ other) / math.sqrt(n) < bound for other in others)


def test_cosines_follow_the_null_law() -> None:
    dim = 30
    cosines = Canaries(79, 5000, dim).cosines(noise(80, dim))
    assert stats.kstest((1 + cosines) / 2, stats.beta((dim - 1) / 2, (dim - 1) / 2).cdf).pvalue > LEVEL


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Canaries(-1, 1, 2), "seed must be an integer with 0 ≤ seed < 2^64, not -1"),
        (lambda: Canaries(2**64, 1, 2), "seed must be"),
        (lambda: Canaries(0.5, 1, 2), "seed must be"),  # type: ignore[arg-type]
        (lambda: Canaries(0, 0, 2), "count must be an integer with 1 ≤ count ≤ 2^32, not 0"),
        (lambda: Canaries(0, 2**32 + 1, 2), "count must be"),
        (lambda: Canaries(0, 1, 1), "dim must be an integer with 2 ≤ dim ≤ 2^40, not 1"),
        (lambda: Canaries(0, 1, 2**40 + 1), "dim must be"),
        (lambda: noise(2**64, 2), "seed must be"),
        (lambda: noise(0, 1), "dim must be"),
        (lambda: Canaries(0, 3, 2).vector(3), "j must be an integer with 0 ≤ j < 3, not 3"),
        (lambda: Canaries(0, 3, 2).vector(-1), "j must be"),
        (lambda: Canaries(0, 3, 2).sum([0, 3]), r"indices must lie in \[0, 3\), not \[0, 3\]"),
        (lambda: Canaries(0, 3, 2).sum([-1]), "indices must lie"),
        (lambda: Canaries(0, 3, 2).sum([0.5]), "indices must be a one-dimensional array of integers"),
        (lambda: Canaries(0, 3, 2).sum([True, False, True]), "indices must be a one-dimensional array of integers"),
        (lambda: Canaries(0, 3, 2).sum([[0]]), "indices must be a one-dimensional array of integers"),
        (lambda: Canaries(0, 3, 2).sum([0, 1], [1.0]), "weights must be 2 finite numbers"),
        (lambda: Canaries(0, 3, 2).sum(weights=[1.0, math.nan, 1.0]), "weights must be 3 finite numbers"),
        (lambda: Canaries(0, 3, 2).cosines([1.0, 0.0, 0.0]), "vectors must be of shape"),
        (lambda: Canaries(0, 3, 2).cosines([1, 0]), "vectors must be floating-point numbers, not int64"),
        (lambda: Canaries(0, 3, 2).cosines(np.ones((1, 1, 2))), "vectors must be of shape"),
        (lambda: Canaries(0, 3, 2).cosines([0.0, 0.0]), "vectors must be finite and not zero"),
        (lambda: Canaries(0, 3, 2).cosines([[1.0, 1.0], [0.0, 0.0]]), "vectors must be finite and not zero"),
        (lambda: Canaries(0, 3, 2).cosines([1.0, math.nan]), "vectors must be finite and not zero"),
        (lambda: Canaries(0, 3, 2).cosines([1.0, -math.inf]), "vectors must be finite and not zero"),
        (lambda: Canaries(0, 3, 2).cosines([1.0, 0.0], [3]), "indices must lie"),
        (lambda: Canaries(0, 3, 2).block_cosines([1.0, 0.0]), r"vectors must have the shape \(n, 2\), not \(2,\)"),
        (lambda: Canaries(0, 3, 2).block_cosines([[1.0, math.nan]]), "vectors must be finite and not zero"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("^", r"\^")):
        call()


if __name__ == "__main__":
    print(stream_sha256())  # noqa: T201
