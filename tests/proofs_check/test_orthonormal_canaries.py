from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.proofs_check import orthonormal_canaries as proof
from canaryproof.proofs_check.displayed_lines import Kind, kind_of
from canaryproof.verify.papers.check.results import Context, Effort

CONTEXT = Context(Effort.QUICK, 0)


@pytest.mark.parametrize("line", proof.LINES, ids=lambda line: line.id)
def test_every_line_is_exact(line):
    assert kind_of(line.judge(CONTEXT)) is Kind.EXACT


@pytest.mark.parametrize(
    "judge",
    [
        lambda: proof._orthonormal(2 * proof._R / proof._D),
        lambda: proof._rounding(4),
        lambda: proof._second_moment(lambda dim: 1 - proof.share(dim)),
        lambda: proof._white(lambda matrix: 2 * matrix),
        lambda: proof._moments(lambda data, layers: proof.fourth_moment(data, layers) + Fraction(1, len(data))),
        lambda: proof._two_layers(38, 67),
        lambda: proof._two_layers(39, 66),
    ],
)
def test_wrong_lines_are_not(judge):
    assert kind_of(judge()) is Kind.FALSE


def windows(dim, layers):
    """The matrices of a product without their signs, and the coordinates that have some before each; first to last."""
    order, rest = proof._split(dim)

    def window(start):
        matrix = np.eye(dim)
        matrix[start : start + order, start : start + order] = proof.walsh(order) / np.sqrt(order)
        return matrix, range(start, start + order)

    if rest == 0:
        return [window(0)] * layers
    return [window(rest), window(0)] * layers + [(np.array(proof._rotation(dim), float), ()), window(0)]


def moment(data, layers, power):
    """E V² or E V⁴ of each row over all signs, exactly but for rounding: signs leave what has even powers of each."""
    tensor = data
    for _ in range(power - 1):
        tensor = np.multiply.outer(tensor, data)
    places = np.indices(tensor.shape)
    for matrix, signed in windows(len(data), layers):
        for i in signed:
            tensor = np.where((places == i).sum(axis=0) % 2 == 1, 0.0, tensor)
        for axis in range(power):
            tensor = np.moveaxis(np.tensordot(matrix, tensor, (1, axis)), 0, axis)
    return np.array([tensor[(row,) * power] for row in range(len(data))])


def vectors(dim):
    """Unit vectors: axes, pairs of them, a flat vector, and random ones."""
    axes, rng = np.eye(dim), np.random.default_rng(dim)
    pairs = [(axes[0] + axes[i]) / np.sqrt(2.0) for i in range(1, dim)]
    others = rng.standard_normal((3, dim)) * rng.integers(0, 2, (3, dim)) + 1e-9
    return [*axes, *pairs, np.ones(dim) / np.sqrt(dim), *(one / np.linalg.norm(one) for one in others)]


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("dim", [2, 3, 5, 8, 11, 16])
def test_the_mean_square_is_that_of_a_uniform_direction_for_every_row_and_vector(dim, layers):
    for data in vectors(dim):
        assert moment(data, layers, 2) == pytest.approx(1.0 / dim, rel=1e-12)


@given(st.sampled_from([2, 4, 8]), st.integers(1, 2), st.data())
def test_fourth_moments_of_powers_of_two(dim, layers, data):
    given = data.draw(st.lists(st.integers(-3, 3), min_size=dim, max_size=dim))
    exact = moment(np.array(given, float), layers, 4)
    assert dim * exact.sum() == pytest.approx(float(proof.fourth_moment(tuple(given), layers)), abs=1e-9)


@pytest.mark.deep(every=3)
@pytest.mark.parametrize("dim", [2, 3, 4, 5, 6, 7, 8, 9, 12, 15])
def test_two_layers_are_within_the_bounds_whatever_the_data(dim):
    for data in vectors(dim):
        kurtosis = dim * moment(data, 2, 4).sum()
        if dim in (2, 4, 8):
            assert 3.0 - 6.0 / dim - 1e-12 <= kurtosis <= 3.0 - 2.0 / dim + 1e-12
        else:
            # As far as it goes in truth; 39 and 67 are proven.
            assert -9.0 <= dim * (kurtosis - 3.0) <= 0.0
