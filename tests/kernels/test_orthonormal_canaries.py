import hashlib
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, stats

from canaryproof.kernels import _canary_stream as stream
from canaryproof.kernels import _hadamard as hadamard
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.kernels.reference import orthonormal_canaries as reference

LEVEL = 1e-6
SEEDS = st.integers(0, 2**64 - 1)
# Of the signs and rows of seed 2⁶³ + 5: integers, the same on every machine.
SIGNS_SHA256 = "3afde52d28736fdf868f7cfbae83f943969b2fc9df43a8145786948f2cb604f4"
# Of a sum, scores and cosines: the same bits on every machine.
FLOATS_SHA256 = "9240ddd243225c58406f345b982e923552aae064ad51aae8023f2cd048bf96c9"
ROWS_SHA256 = "f6d003d36a97a7cd1fc1f60f956c6016725d7e57d5c313401a09c47572d42196"


def unpacked(words: np.ndarray, length: int) -> np.ndarray:
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")[:length]
    return np.float32(1.0) - np.float32(2.0) * bits.astype(np.float32)


def drawn_signs(seed: int, window: int, length: int) -> np.ndarray:
    words = np.empty(-(-length // 32), np.uint32)
    stream.fill_signs(np.uint64(seed), np.uint64(window), words)
    return unpacked(words, length)


def extended(vector: np.ndarray, canaries: OrthonormalCanaries) -> np.ndarray:
    """Multiply by M in extended precision, level by level in numpy."""
    dim, last = len(vector), len(canaries._signs) - 1
    order = 2 ** (dim.bit_length() - 1)
    rest, found = dim - order, vector.astype(np.longdouble)
    for window, words in enumerate(canaries._signs):
        if window == last:
            cosine, sine = np.sqrt(np.longdouble(rest) / dim), np.sqrt(np.longdouble(order) / dim)
            a, b = found[:rest].copy(), found[order:].copy()
            found[:rest], found[order:] = cosine * a - sine * b, sine * a + cosine * b
        start = rest if window % 2 == 0 and window < last else 0
        part, step = found[start : start + order] * unpacked(words, order), 1
        while step < order:
            pairs = part.reshape(-1, 2, step)
            part = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
            step *= 2
        found[start : start + order] = part / np.sqrt(np.longdouble(order))
    return found


def matrix(canaries: OrthonormalCanaries) -> np.ndarray:
    return np.array([canaries.sum([j]) for j in range(canaries.count)])


@given(SEEDS, st.integers(2, 40), st.integers(1, 4))
def test_canaries_are_those_of_the_twin(seed: int, dim: int, layers: int) -> None:
    canaries = OrthonormalCanaries(seed, dim, dim, layers)
    rows = reference.rows(seed, dim, dim)
    assert canaries._rows.tolist() == rows
    with mpmath.workdps(30):
        exact = np.array(reference.vector(seed, dim, layers, rows[0]), dtype=np.float64)
    np.testing.assert_allclose(canaries.sum([0]), exact, rtol=0, atol=1e-15 * layers * math.log2(2 * dim))


def test_signs_and_rows_are_the_same_integers_everywhere() -> None:
    signs = drawn_signs(2**63 + 5, 3, 100_003)
    rows = np.arange(100_003, dtype=np.int32)
    stream.shuffle(np.uint64(2**63 + 5), np.uint64(0), 5000, rows)
    assert hashlib.sha256(signs.astype("<f4").tobytes()).hexdigest() == SIGNS_SHA256
    assert hashlib.sha256(rows.astype("<i4").tobytes()).hexdigest() == ROWS_SHA256


@pytest.mark.parametrize("dim", [127, 128, 129, 4096 + 40])
def test_signs_at_the_ends_of_words_and_counters_are_those_of_the_twin(dim: int) -> None:
    assert drawn_signs(11, 2, dim).tolist() == [reference.sign(11, 2, i) for i in range(dim)]


@given(SEEDS, st.integers(2, 300), st.integers(1, 3), st.data())
def test_canaries_are_orthonormal(seed: int, dim: int, layers: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, dim))
    rows = matrix(OrthonormalCanaries(seed, count, dim, layers))
    np.testing.assert_allclose(rows @ rows.T, np.eye(count), rtol=0, atol=1e-14)


@given(SEEDS, st.integers(2, 200), st.data())
def test_scores_cosines_and_sums_are_those_of_the_vectors(seed: int, dim: int, data: st.DataObject) -> None:
    canaries = OrthonormalCanaries(seed, data.draw(st.integers(1, dim)), dim)
    rng = np.random.default_rng(seed % 2**32)
    rows, vectors = matrix(canaries), rng.standard_normal((3, dim))
    indices = rng.integers(0, canaries.count, 7)
    weights = rng.standard_normal(7)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(canaries.scores(vectors), vectors @ rows.T, rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        canaries.cosines(vectors, indices), vectors @ rows[indices].T / norms, rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(canaries.cosines(vectors[1]), vectors[1] @ rows.T / norms[1], rtol=0, atol=1e-13)
    np.testing.assert_allclose(canaries.block_cosines(vectors), vectors @ rows.T / norms, rtol=0, atol=2e-6)
    np.testing.assert_allclose(canaries.sum(indices, weights), weights @ rows[indices], rtol=0, atol=1e-13)
    np.testing.assert_array_equal(canaries.vector(0), rows[0].astype(np.float32))
    np.testing.assert_array_equal(canaries.scores(vectors[0]), canaries.scores(vectors)[0])


@given(SEEDS, st.integers(2, 500), st.data())
def test_a_canary_is_the_same_whatever_the_count(seed: int, dim: int, data: st.DataObject) -> None:
    few, many = sorted(data.draw(st.integers(1, dim)) for _ in range(2))
    j = data.draw(st.integers(0, few - 1))
    np.testing.assert_array_equal(
        OrthonormalCanaries(seed, few, dim).vector(j), OrthonormalCanaries(seed, many, dim).vector(j)
    )


@pytest.mark.parametrize("exponent", [-1000, -140, 0, 126, 900])
def test_scale_changes_no_cosine_and_scales_scores(exponent: int) -> None:
    canaries = OrthonormalCanaries(3, 50, 100)
    vector = np.random.default_rng(1).standard_normal(100)
    scaled = np.ldexp(vector, exponent)
    np.testing.assert_array_equal(canaries.cosines(scaled), canaries.cosines(vector))
    np.testing.assert_array_equal(canaries.scores(scaled), np.ldexp(canaries.scores(vector), exponent))


def test_the_order_of_rows_is_uniform() -> None:
    # All 24 orders of four rows, over independent seeds.
    orders = [tuple(reference.rows(seed, 4, 4)) for seed in range(4800)]
    rows = [tuple(OrthonormalCanaries(seed, 4, 4)._rows.tolist()) for seed in range(4800)]
    assert rows == orders
    counts = np.unique(np.array(rows), axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue >= LEVEL


def test_windows_have_signs_of_their_own() -> None:
    dim = 3 * 2**13
    windows = [unpacked(words, 2**14) for words in OrthonormalCanaries(5, 1, dim)._signs]
    other = unpacked(OrthonormalCanaries(6, 1, dim)._signs[0], 2**14)
    assert len(windows) == 5
    # Products of independent signs have mean 0; level 1e-6 each.
    products = [windows[i] * windows[j] for i in range(5) for j in range(i)]
    for product in (*products, windows[0] * other, *windows):
        assert abs(float(product.sum())) <= stats.norm.isf(LEVEL / 2) * 128


@given(SEEDS, st.integers(0, 10), st.booleans())
def test_a_window_is_a_walsh_hadamard_matrix_and_signs(seed: int, exponent: int, transposed: bool) -> None:
    order, rng = 2**exponent, np.random.default_rng(seed)
    words = rng.integers(0, 2**32, -(-order // 32), dtype=np.uint32)
    signs, given = unpacked(words, order), rng.standard_normal(order)
    walsh = linalg.hadamard(order) / math.sqrt(order)
    exact = signs * (walsh @ given) if transposed else walsh @ (signs * given)
    for dtype, unit in ((np.float32, 2.0**-24), (np.float64, 2.0**-53)):
        found = given.astype(dtype)
        hadamard.transform(found, words, transposed)
        error = np.linalg.norm(found - exact) / np.linalg.norm(given)
        # The vector is rounded to its type first, and the product with the matrix rounds too.
        assert error <= (exponent + 3 + 2 * order**0.5) * unit


@pytest.mark.parametrize("exponent", [11, 12, 13, 15, 16, 17, 18, 19])
def test_a_window_of_many_blocks_is_one_level_after_another(exponent: int) -> None:
    order = 2**exponent
    given, signs = np.random.default_rng(exponent).integers(-3, 4, order), np.random.default_rng(1)
    words = signs.integers(0, 2**32, order // 32, dtype=np.uint32)
    levels, step = given * unpacked(words, order).astype(np.int64), 1
    while step < order:
        pairs = levels.reshape(-1, 2, step)
        levels = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
        step *= 2
    back = given.astype(np.float64)
    hadamard.transform(back, words, False)
    allowed = (exponent + 2) * 2.0**-53 * np.linalg.norm(given)
    assert np.linalg.norm(back - levels / math.sqrt(order)) <= allowed
    hadamard.transform(back, words, True)
    assert np.linalg.norm(back - given) <= 2.0 * allowed


def test_floats_are_the_same_bits_everywhere() -> None:
    digest = hashlib.sha256()
    for dim in (4096, 100_003):
        canaries = OrthonormalCanaries(2**63 + 5, 2000, dim)
        vector = (np.arange(dim) % 1009 - 504) / 512.0
        found = (canaries.sum(), canaries.scores(vector), canaries.cosines(vector.astype(np.float32)))
        digest.update(b"".join(one.astype("<f8").tobytes() for one in found))
    assert digest.hexdigest() == FLOATS_SHA256


@pytest.mark.deep(every=3)
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("dim", [2, 3, 97, 1000, 4096, 65_537, 2**18])
def test_rounding_stays_within_what_is_proven_and_what_was_found(dim: int, layers: int) -> None:
    canaries = OrthonormalCanaries(dim, dim, dim, layers)
    levels = (dim.bit_length() - 1) + 2
    proven = 1.01 * (layers * levels if dim & (dim - 1) == 0 else (2 * layers + 1) * levels + 5)
    gaussian = np.random.default_rng(dim).standard_normal(dim)
    own = canaries.vector(0)
    single, double = ((gaussian.astype(np.float32), own), (gaussian, np.eye(1, dim)[0], own.astype(np.float64)))
    for vector, unit in [*((each, 2.0**-24) for each in single), *((each, 2.0**-53) for each in double)]:
        error = canaries.scores(vector) - extended(vector, canaries)[canaries._rows]
        size = unit * np.linalg.norm(vector.astype(np.float64))
        assert np.linalg.norm(error) <= proven * size
        # All of a canary's products with itself may err alike.
        share = 2.0 if vector is own or vector is double[-1] else 20.0 / math.sqrt(dim)
        assert np.abs(error).max() <= share * layers * size


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((-1, 1, 2), "seed"),
        ((2**64, 1, 2), "seed"),
        ((0, 3, 2), "count"),
        ((0, 0, 2), "count"),
        ((0, 1, 1), "dim"),
        ((0, 1, 2**40 + 1), "dim"),
        ((0, 2**26 + 1, 2**40), "count"),
        ((0, 1, 2.5), "dim"),
        ((0, 1, 2, 0), "layers"),
        ((0, 1, 2, 17), "layers"),
    ],
)
def test_parameters_out_of_range_are_named(arguments: tuple[int, ...], field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field} "):
        OrthonormalCanaries(*arguments)


@pytest.mark.parametrize(
    "vectors", [np.zeros(8), np.full(8, np.nan), np.ones(7), np.ones(8, int), np.ones((1, 1, 8)), [1.0, math.inf] * 4]
)
def test_vectors_that_have_no_direction_are_refused(vectors: np.ndarray) -> None:
    canaries = OrthonormalCanaries(0, 4, 8)
    for method in (canaries.scores, canaries.cosines):
        with pytest.raises(ValueError, match="vectors must be"):
            method(vectors)
    with pytest.raises(ValueError, match="vectors must"):
        canaries.block_cosines(vectors)
    with pytest.raises(ValueError, match="indices must lie in"):
        canaries.sum([4])
