"""What every kind of canaries must do: a new kind needs a line in ``KINDS``, which says how to make some."""

import math
import pickle
from inspect import signature
from typing import get_args

import numba
import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.canaries.grouped_canaries import GroupedCanaries
from canaryproof.verify.audit.canaries.round_scores import AnyCanaries
from canaryproof.verify.audit.canaries.sharded_canaries import ShardedCanaries

COUNT, DIM = 6, 4500
# With one process, what it adds up over all processes is its own.
KINDS = {
    Canaries: lambda seed, count: Canaries(seed, count, DIM),
    OrthonormalCanaries: lambda seed, count: OrthonormalCanaries(seed, count, DIM),
    GroupedCanaries: lambda seed, count: GroupedCanaries(seed, count, (1000, 1500, DIM - 2500), (0.5, 2.0, 1.0)),
    ShardedCanaries: lambda seed, count: ShardedCanaries(
        Canaries(seed, count, DIM), [slice(0, 1000), slice(1000, DIM)], lambda own: own
    ),
}
MADE = {kind: make(3, COUNT) for kind, make in KINDS.items()}
BLOCK = np.random.default_rng(0).normal(size=(3, DIM))


def every_kind(method="sum", *arguments):
    """Parametrise over the kinds that have a method with these arguments."""
    kinds = [kind for kind in KINDS if set(arguments) <= signature(getattr(kind, method, every_kind)).parameters.keys()]
    return pytest.mark.parametrize(
        "kind", [kind for kind in kinds if hasattr(kind, method)], ids=lambda kind: kind.__name__
    )


def vectors(canaries):
    return np.array([canaries.sum([j]) for j in range(canaries.count)])


def measured(canaries):
    """All that canaries compute, as one array, to compare its bits."""
    parts = [canaries.sum(), canaries.sum([4, 1, 1]), *canaries.cosines(BLOCK)]
    parts += [*canaries.block_cosines(BLOCK)] if hasattr(canaries, "block_cosines") else []
    return np.concatenate(parts)


def test_every_kind_is_in_the_list():
    assert KINDS.keys() == {*get_args(AnyCanaries), ShardedCanaries}


# Canaries themselves.


@every_kind()
def test_they_have_unit_norm_and_differ(kind):
    made = vectors(MADE[kind])
    assert made.shape == (COUNT, DIM)
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(COUNT), rel=1e-6)
    # Of independent directions a cosine is above 0.09 with probability 1e-9 each.
    assert np.abs(made @ made.T - np.eye(COUNT)).max() < 0.1


@every_kind()
def test_equal_seeds_give_equal_bits_and_other_seeds_others(kind):
    make = KINDS[kind]
    assert make(3, COUNT) == MADE[kind] != make(4, COUNT)
    np.testing.assert_array_equal(measured(make(3, COUNT)), measured(MADE[kind]))
    assert not np.isin(make(4, COUNT).sum(), MADE[kind].sum()).any()


@every_kind()
def test_a_canary_does_not_depend_on_the_count(kind):
    np.testing.assert_array_equal(vectors(KINDS[kind](3, COUNT - 2)), vectors(MADE[kind])[:-2])


@every_kind("vector")
def test_a_vector_is_a_sum_of_one_in_single_precision(kind):
    for j, expected in enumerate(vectors(MADE[kind])):
        vector = MADE[kind].vector(j)
        assert (vector.dtype, vector.shape) == (np.float32, (DIM,))
        np.testing.assert_allclose(vector, expected, rtol=1e-6)


@every_kind("vector")
def test_another_process_gets_the_same_canaries(kind):
    received = pickle.loads(pickle.dumps(MADE[kind]))
    assert received == MADE[kind]
    assert hash(received) == hash(MADE[kind])
    np.testing.assert_array_equal(measured(received), measured(MADE[kind]))


# Sums.


@every_kind()
def test_a_sum_is_the_vectors_added_up(kind):
    made = vectors(MADE[kind])
    np.testing.assert_allclose(MADE[kind].sum(), made.sum(axis=0), atol=1e-14)
    # Repetitions count.
    np.testing.assert_allclose(MADE[kind].sum([4, 1, 1]), made[4] + 2.0 * made[1], atol=1e-14)
    np.testing.assert_array_equal(MADE[kind].sum([]), np.zeros(DIM))


@every_kind("sum", "weights")
def test_a_sum_is_linear_in_its_weights(kind):
    canaries, indices = MADE[kind], [5, 0, 2]
    first, second = np.array([[0.5, -2.0, 3.0], [1e3, 0.0, -1e-3]])
    expected = canaries.sum(indices, first) - 3.0 * canaries.sum(indices, second)
    np.testing.assert_allclose(canaries.sum(indices, first - 3.0 * second), expected, atol=1e-10)


# Cosines.


@every_kind()
def test_cosines_are_those_of_the_vectors(kind):
    rows = BLOCK.copy()
    rows[1, :1000] = 0.0
    expected = rows @ vectors(MADE[kind]).T / np.linalg.norm(rows, axis=1, keepdims=True)
    assert MADE[kind].cosines(rows) == pytest.approx(expected, abs=1e-12)
    for row, cosines in zip(rows, expected, strict=True):
        assert MADE[kind].cosines(row) == pytest.approx(cosines, abs=1e-12)


@every_kind("cosines", "indices")
def test_cosines_of_some_are_those_of_all(kind):
    every = MADE[kind].cosines(BLOCK)
    assert MADE[kind].cosines(BLOCK, [5, 0, 5]) == pytest.approx(every[:, [5, 0, 5]], abs=1e-15)


@every_kind("block_cosines")
def test_cosines_of_blocks_differ_by_rounding_in_single_precision(kind):
    # Two transforms in float32: 20 units a layer each, of 2⁻²⁴/√d.
    error = 4.8e-6 / math.sqrt(DIM)
    assert MADE[kind].block_cosines(BLOCK) == pytest.approx(MADE[kind].cosines(BLOCK), abs=error)


@every_kind()
def test_a_canary_is_parallel_to_itself(kind):
    own = MADE[kind].cosines(vectors(MADE[kind]))
    assert np.diagonal(own) == pytest.approx(np.ones(COUNT), abs=1e-12)
    assert np.abs(own).max() <= 1.0


@every_kind()
def test_the_unit_of_a_vector_does_not_matter(kind):
    expected = MADE[kind].cosines(BLOCK)
    # Processes add up squares, which must stay in the range of float64.
    largest = 450 if kind is ShardedCanaries else 900
    for power in (-largest, -3, largest):
        np.testing.assert_array_equal(MADE[kind].cosines(np.ldexp(BLOCK, power)), expected)
    np.testing.assert_array_equal(MADE[kind].cosines(-BLOCK), -expected)


@every_kind()
def test_type_and_layout_of_a_vector_do_not_matter(kind):
    rows = np.rint(64.0 * BLOCK)
    expected = MADE[kind].cosines(rows)
    spread = np.zeros((len(rows), 2 * DIM))
    spread[:, ::2] = rows
    for given in (rows.astype(">f8"), np.asfortranarray(rows), spread[:, ::2], rows.tolist()):
        np.testing.assert_array_equal(MADE[kind].cosines(given), expected)
    for given in (rows.astype(np.float32), rows.astype(np.float16)):
        assert MADE[kind].cosines(given) == pytest.approx(expected, abs=4.8e-6 / math.sqrt(DIM))


@every_kind()
def test_arguments_are_left_alone(kind):
    rows, indices, weights = BLOCK.copy(), np.array([2, 0]), np.array([1.0, 2.0])
    for array in (rows, indices, weights):
        array.flags.writeable = False
    MADE[kind].cosines(rows)
    MADE[kind].sum(indices)
    for method, arguments in (("sum", (indices, weights)), ("cosines", (rows, indices)), ("block_cosines", (rows,))):
        if kind is not ShardedCanaries:
            getattr(MADE[kind], method)(*arguments)
    np.testing.assert_array_equal(rows, BLOCK)


@every_kind()
def test_the_number_of_threads_changes_no_bit(kind):
    threads = numba.get_num_threads()
    expected = measured(KINDS[kind](3, COUNT))
    try:
        for number in range(1, threads):
            numba.set_num_threads(number)
            np.testing.assert_array_equal(measured(KINDS[kind](3, COUNT)), expected)
    finally:
        numba.set_num_threads(threads)


# What they refuse.


@every_kind()
@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(DIM),
        np.append(np.ones(DIM - 1), np.nan),
        np.append(np.ones(DIM - 1), -np.inf),
        np.ones(DIM + 1),
        np.ones((1, 1, DIM)),
        np.ones(DIM, int),
        np.ones(DIM, complex),
        "vector",
    ],
    ids=["zero", "nan", "infinite", "long", "deep", "whole", "complex", "text"],
)
def test_vectors_without_a_direction_are_refused(kind, vector):
    for method in ("cosines", "block_cosines"):
        if hasattr(kind, method):
            given = np.asarray(vector)[np.newaxis] if method == "block_cosines" else vector
            with pytest.raises(ValueError, match=r"^vectors? must [^\n]*$"):
                getattr(MADE[kind], method)(given)


@every_kind()
@pytest.mark.parametrize("indices", [[COUNT], [-1], [0.5], [[0]], ["a"]])
def test_indices_of_no_canary_are_refused(kind, indices):
    with pytest.raises(ValueError, match=r"^indices [^\n]*$"):
        MADE[kind].sum(indices)


@every_kind("sum", "weights")
@pytest.mark.parametrize("weights", [[1.0], [1.0, np.nan], [1.0, np.inf], [[1.0, 2.0]]])
def test_weights_that_are_not_finite_or_not_as_many_are_refused(kind, weights):
    with pytest.raises(ValueError, match=r"^weights [^\n]*$"):
        MADE[kind].sum([0, 1], weights)


@every_kind("vector")
@pytest.mark.parametrize("j", [COUNT, -1, 0.5, None])
def test_a_vector_of_no_canary_is_refused(kind, j):
    with pytest.raises(ValueError, match=r"^j must be an integer"):
        MADE[kind].vector(j)


@every_kind()
def test_numbers_outside_their_ranges_are_refused(kind):
    for seed, count, field in ((-1, COUNT, "seed"), (2**64, COUNT, "seed"), (0.5, COUNT, "seed"), (3, 0, "count")):
        with pytest.raises(ValueError, match=f"^{field} must be an integer"):
            KINDS[kind](seed, count)
