import math
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.kernels import _canary_stream as stream
from canaryproof.kernels import canaries as module
from canaryproof.kernels import slices
from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.kernels.reference import orthonormal_canaries as reference
from tests.memory import RESET

TILE = 4096
KINDS = (Canaries, OrthonormalCanaries)
# Some twenty dimensions of a block of two tiles: one block, several, at their ends, and with a long last one.
BLOCK = 2 * TILE
DIMS = (2, TILE + 1, BLOCK - 1, 2 * BLOCK - 1, 2 * BLOCK, 3 * BLOCK + 17)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "BLOCK", BLOCK)
    # Canaries that are held whole are shorter than a block.
    monkeypatch.setattr(module, "_HELD", BLOCK)


@given(st.integers(1, 10**6))
def test_blocks_cover_a_vector(dim: int) -> None:
    blocks = slices.blocks(dim)
    assert [block.start for block in blocks] == [BLOCK * i for i in range(len(blocks))]
    assert [block.stop for block in blocks] == [*(block.start for block in blocks[1:]), dim]
    assert all(block.stop - block.start == BLOCK for block in blocks[:-1])
    assert len(blocks) == 1 or BLOCK <= dim - blocks[-1].start < 2 * BLOCK


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("kind", KINDS)
def test_products_of_blocks_add_up_to_the_bits_of_all(kind: type, dim: int) -> None:
    canaries, vector = kind(7, min(5, dim), dim), noise(7, dim)
    first, *others = [kind(7, min(5, dim), dim).partial_products(vector[b], b.start) for b in slices.blocks(dim)]
    total = sum(others, start=first)
    np.testing.assert_array_equal(total.cosines(), canaries.cosines(vector))
    np.testing.assert_array_equal(canaries.partial_products(vector).cosines(), canaries.cosines(vector))
    if kind is OrthonormalCanaries:
        np.testing.assert_array_equal(total.scores(), canaries.scores(vector))
    else:
        np.testing.assert_array_equal(np.sqrt(total.squares), canaries.norms())


@pytest.mark.parametrize("cuts", [(1,), (TILE, 2 * TILE + 1), (BLOCK - 1, BLOCK, BLOCK + 1), (5, 6, 3 * BLOCK)])
@pytest.mark.parametrize("kind", KINDS)
def test_products_of_any_slices_add_up_to_rounding(kind: type, cuts: tuple[int, ...]) -> None:
    dim = 3 * BLOCK + 17
    canaries, vector = kind(8, 6, dim), noise(9, dim).astype(np.float64)
    ends = [0, *cuts, dim]
    parts = [canaries.partial_products(vector[start:end], start, [5, 0]) for start, end in pairwise(ends)]
    total = sum(parts[1:], start=parts[0])
    np.testing.assert_allclose(total.cosines(), canaries.cosines(vector, [5, 0]), rtol=0, atol=1e-13)
    # Each slice is the product with the canaries' own coordinates there.
    units = np.array([canaries.sum([j]) for j in (5, 0)])
    for part, start, end in zip(parts, ends, ends[1:], strict=False):
        norms = 1.0 if total.squares is None else np.sqrt(total.squares)
        expected = units[:, start:end] @ vector[start:end]
        np.testing.assert_allclose(part.products / norms, expected, rtol=0, atol=1e-12)
        assert math.isclose(part.square, float(vector[start:end] @ vector[start:end]), rel_tol=1e-12)


@pytest.mark.parametrize("dim", DIMS[1:])
@pytest.mark.parametrize("kind", KINDS)
def test_a_slice_of_a_sum_is_the_sum_there(kind: type, dim: int) -> None:
    canaries = kind(3, 4, dim)
    whole = canaries.sum(weights=[1.0, -2.0, 0.5, 3.0])
    for part in (slice(0, dim), slice(None, 5), slice(TILE - 1, TILE + 1), slice(dim - 1, None), slice(-7, None)):
        scored = kind(3, 4, dim).sum(weights=[1.0, -2.0, 0.5, 3.0], coordinates=part)
        np.testing.assert_array_equal(scored, whole[part])


def test_norms_of_slices_add_up_and_spare_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    dim = 2 * BLOCK + 3
    parts = [slice(0, 100), slice(100, BLOCK), slice(BLOCK, dim)]
    squares = sum(Canaries(3, 4, dim).squared_norms(part) for part in parts)
    np.testing.assert_allclose(np.sqrt(squares), Canaries(3, 4, dim).norms(), rtol=1e-14)
    of_blocks = sum(Canaries(3, 4, dim).squared_norms(part) for part in slices.blocks(dim))
    np.testing.assert_array_equal(np.sqrt(of_blocks), Canaries(3, 4, dim).norms())
    whole = Canaries(3, 4, dim).sum()
    monkeypatch.setattr(Canaries, "_squares", None)
    scored = Canaries(3, 4, dim).sum(coordinates=slice(50, 60), squared_norms=of_blocks)
    np.testing.assert_array_equal(scored, whole[50:60])


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_change_the_order_of_sums_alone(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    dim = 3 * BLOCK + 17
    vectors = np.stack([noise(1, dim), noise(2, dim)])
    canaries = kind(5, 3, dim)
    rows = np.array([canaries.sum([j]) for j in range(3)])
    np.testing.assert_allclose(rows @ rows.T, np.eye(3), rtol=0, atol=1e-14 if kind is OrthonormalCanaries else 0.05)
    products = vectors.astype(np.float64) @ rows.T
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    np.testing.assert_allclose(canaries.cosines(vectors), products / norms, rtol=0, atol=1e-8)
    np.testing.assert_allclose(canaries.block_cosines(vectors), products / norms, rtol=0, atol=1e-8)
    np.testing.assert_allclose(canaries.cosines(vectors.astype(np.float64)), products / norms, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(canaries.vector(1), rows[1].astype(np.float32))
    if kind is Canaries:
        # Blocks or not, independent canaries are the same vectors.
        monkeypatch.setattr(slices, "BLOCK", 2**26)
        np.testing.assert_allclose(Canaries(5, 3, dim).sum(), rows.sum(axis=0), rtol=1e-13, atol=1e-18)
        np.testing.assert_allclose(
            Canaries(5, 3, dim).block_cosines(vectors), canaries.block_cosines(vectors), rtol=0, atol=1e-15
        )


def test_orthonormal_canaries_of_blocks_are_those_of_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "BLOCK", 4)
    canaries = OrthonormalCanaries(2**63 + 9, 4, 13)
    assert [block.stop - block.start for block in slices.blocks(13)] == [4, 4, 5]
    with mpmath.workdps(30):
        for j in range(4):
            exact = []
            for number, size in enumerate((4, 4, 5)):
                row = reference.rows(2**63 + 9, 4, size, number)[j]
                weight = mpmath.sqrt(mpmath.mpf(size) / 13)
                exact += [weight * x for x in reference.vector(2**63 + 9, size, 2, row, number)]
            np.testing.assert_allclose(canaries.sum([j]), np.array(exact, dtype=np.float64), rtol=0, atol=1e-14)
    rows = np.array([canaries.sum([j]) for j in range(4)])
    np.testing.assert_allclose(rows @ rows.T, np.eye(4), rtol=0, atol=1e-14)


@pytest.mark.parametrize(("count", "dim"), [(1, 64), (3, 257), (100, 6400), (1000, 100_003)])
def test_few_rows_are_those_of_all(count: int, dim: int) -> None:
    for block in (0, 3):
        rows, few = np.arange(dim, dtype=np.int32), np.empty(count, np.int32)
        stream.shuffle(np.uint64(5), np.uint64(block), count, rows)
        stream.shuffle_few(np.uint64(5), np.uint64(block), dim, few)
        np.testing.assert_array_equal(few, rows[:count])


def test_few_rows_are_right_where_draws_meet() -> None:
    # Rows that have moved are drawn again and again where all are drawn.
    for dim in range(1, 40):
        rows, few = np.arange(dim, dtype=np.int32), np.empty(dim, np.int32)
        stream.shuffle(np.uint64(dim), np.uint64(0), dim, rows)
        stream.shuffle_few(np.uint64(dim), np.uint64(0), dim, few)
        np.testing.assert_array_equal(few, rows)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_is_read_as_it_is(kind: type, dtype: type, tmp_path: Path) -> None:
    dim = 2 * BLOCK + 5
    vectors = np.stack([noise(1, dim), noise(2, dim)]).astype(dtype)
    single = vectors.astype(np.float32)
    canaries = kind(5, 7, dim)
    np.testing.assert_array_equal(canaries.cosines(vectors), canaries.cosines(single))
    np.testing.assert_array_equal(canaries.block_cosines(vectors), canaries.block_cosines(single))
    scored = canaries.partial_products(vectors[0, 9:], 9)
    np.testing.assert_array_equal(scored.products, canaries.partial_products(single[0, 9:], 9).products)
    mapped = np.memmap(tmp_path / "vector", dtype, "w+", shape=dim)
    mapped[:] = vectors[0]
    np.testing.assert_array_equal(canaries.cosines(mapped), canaries.cosines(single[0]))


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_vectors_have_the_same_bits_or_are_refused(kind: type) -> None:
    canaries, vector = kind(5, 7, 300), noise(3, 300).astype(np.float64)
    cosines = canaries.partial_products(vector).cosines()
    for exponent in (-400, 400):
        np.testing.assert_array_equal(canaries.partial_products(np.ldexp(vector, exponent)).cosines(), cosines)
    with pytest.raises(ValueError, match="vector must not be zero"):
        canaries.partial_products(np.zeros(300)).cosines()
    for wrong in (1e300, np.nan, np.inf):
        with pytest.raises(ValueError, match="must be finite"):
            canaries.partial_products(np.full(300, wrong))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.sum(coordinates=slice(5, 5)), "coordinates must be a slice of step 1"),
        (lambda c: c.sum(coordinates=slice(0, 5, 2)), "coordinates must be a slice of step 1"),
        (lambda c: c.sum(coordinates=3), "coordinates must be a slice of step 1"),
        (lambda c: c.partial_products(np.ones(3), 8), r"vector must be of shape \(n,\), n from 1 to 2, not \(3,\)"),
        (lambda c: c.partial_products(np.ones(0)), "vector must be of shape"),
        (lambda c: c.partial_products(np.ones(3, int)), "vector must be floating-point numbers, not int64"),
        (lambda c: c.partial_products(np.ones(3), 10), "start must be an integer with 0 ≤ start < 10, not 10"),
        (lambda c: c.partial_products(np.ones(3), 0, [4]), "indices must lie in"),
    ],
)
def test_slices_that_are_wrong_are_refused(kind: type, call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(kind(0, 4, 10))


@pytest.mark.parametrize("squares", [np.ones(3), np.zeros(4), np.full(4, np.nan)])
def test_norms_that_are_wrong_are_refused(squares: np.ndarray) -> None:
    with pytest.raises(ValueError, match="squared_norms must be 4 positive numbers"):
        Canaries(0, 4, 10).sum(squared_norms=squares)


def test_canaries_are_addressed_to_the_last_of_2_40_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    dim = 2**40
    monkeypatch.setattr(slices, "BLOCK", 2**26)
    last = slices.blocks(dim)[-1]
    assert last == slice(dim - 2**26, dim)
    independent = Canaries(5, 3, dim).partial_products(noise(1, 3 * TILE), dim - 3 * TILE)
    far = np.empty(3 * TILE, np.float32)
    stream.fill(np.uint64(5), np.uint64(2), np.uint64(0), dim // TILE - 3, far)
    expected = math.fsum(far.astype(np.float64) * noise(1, 3 * TILE))
    assert math.isclose(independent.products[2], expected, rel_tol=1e-12)
    coordinates = Canaries(5, 3, dim).sum([2], coordinates=slice(dim - 5, dim), squared_norms=np.full(3, 2.0**40))
    np.testing.assert_allclose(coordinates, far[-5:] / 2.0**20, rtol=1e-15)


@pytest.mark.deep
@pytest.mark.parametrize("number", [0, 7919, 2**14 - 1])
def test_a_block_of_orthonormal_canaries_of_2_40_coordinates_is_right(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "BLOCK", 2**26)
    canaries = OrthonormalCanaries(5, 1000, 2**40)
    block = slices.blocks(2**40)[number]
    # On each of 2¹⁴ blocks they are orthogonal, and have the same share of their energy.
    part = canaries.sum([3, 998], [1.0, -2.0], coordinates=block)
    assert math.isclose(float(np.square(part).sum()), 5.0 / 2**14, rel_tol=1e-12)
    expected = np.zeros(1000)
    expected[[3, 998]] = 1.0 / 2**14, -2.0 / 2**14
    products = canaries.partial_products(part, block.start).products
    np.testing.assert_allclose(products, expected, rtol=0, atol=1e-16)
    assert not np.array_equal(part, canaries.sum([3, 998], [1.0, -2.0], coordinates=slices.blocks(2**40)[1]))


@pytest.mark.deep
@pytest.mark.skipif(not RESET.exists(), reason="peak memory cannot be set back here")
def test_scores_of_a_mapped_file_take_no_copy_of_it(tmp_path: Path) -> None:
    script = """
        import sys
        import numpy as np
        from tests.memory import held, peak
        from canaryproof.kernels.canaries import Canaries
        from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries

        kind = {"independent": Canaries, "orthonormal": OrthonormalCanaries}[sys.argv[1]]
        kind(1, 3, 70_000).cosines(np.ones(70_000, np.float32))
        before = held()
        dim = int(sys.argv[2])
        read = np.memmap(sys.argv[3], np.float16, "r", shape=dim)
        kind(1, 3, dim).cosines(read)
        print(peak() - before)
    """
    dim = 2**23
    vector = np.memmap(tmp_path / "vector", np.float16, "w+", shape=dim)
    vector[:] = 1.0
    vector.flush()
    for kind, allowed in (("independent", 0), ("orthonormal", 1.25 * 4 * dim)):
        command = [sys.executable, "-c", textwrap.dedent(script), kind, str(dim), str(tmp_path / "vector")]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        # Pages of the file that is mapped count too, and some MB of the allocator's.
        assert int(run.stdout) <= allowed + 2 * dim + 8e6, kind


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_vector_that_may_be_overwritten_has_the_same_products(dtype: type) -> None:
    canaries, vector = OrthonormalCanaries(3, 10, 2 * BLOCK + 5), noise(1, 2 * BLOCK + 5).astype(dtype)
    kept = vector.copy()
    expected = canaries.partial_products(vector)
    np.testing.assert_array_equal(vector, kept)
    own = canaries.partial_products(vector, overwrite=True)
    np.testing.assert_array_equal(own.products, expected.products)
    assert own.square == expected.square
    assert np.array_equal(vector, kept) == (dtype is np.float16)
    part = canaries.partial_products(kept[7:20], 7, overwrite=True).products
    np.testing.assert_array_equal(
        part, canaries.partial_products(noise(1, 2 * BLOCK + 5).astype(dtype)[7:20], 7).products
    )
