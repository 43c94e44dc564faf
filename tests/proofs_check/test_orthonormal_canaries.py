from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from scipy import fft

from canaryproof.proofs_check import orthonormal_canaries as proof
from canaryproof.proofs_check.lines import Kind, kind_of
from canaryproof.verify.check.results import Context, Level

CONTEXT = Context(Level.QUICK, 0)


@pytest.mark.parametrize("line", proof.LINES, ids=lambda line: line.id)
def test_every_line_is_exact(line):
    assert kind_of(line.judge(CONTEXT)) is Kind.EXACT


@pytest.mark.parametrize(
    "judge",
    [
        lambda: proof._orthonormal(sympy.sin((2 * proof._I + 1) * proof._A)),
        lambda: proof._white(lambda matrix: 2 * matrix),
        lambda: proof._moments(lambda data: proof.fourth_moment(data) + Fraction(1, len(data))),
        lambda: proof._two_layers(14),
    ],
)
def test_wrong_lines_are_not(judge):
    assert kind_of(judge()) is Kind.FALSE


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=7))
def test_fourth_moment_by_all_signs_and_rows(data):
    dim = len(data)
    vectors = np.array(list(product((-1.0, 1.0), repeat=dim))) * data
    scores = fft.dct(vectors, norm="ortho", axis=1)
    assert float(proof.fourth_moment(tuple(data))) == pytest.approx(float(dim**2 * (scores**4).mean()), abs=1e-9)


def test_fourth_moment_of_two_layers_by_all_signs_and_rows():
    for dim in (2, 3, 4, 5):
        signs = np.array(list(product((-1.0, 1.0), repeat=dim)))
        for axis in range(dim):
            # The first layer's signs turn an axis over, and no more.
            scores = fft.dct(signs * fft.dct(np.eye(dim)[axis], norm="ortho"), norm="ortho", axis=1)
            exact = float(proof.two_layer_axis(dim, axis).evalf(20))
            assert exact == pytest.approx(float(dim**2 * (scores**4).mean()), rel=1e-12)


def test_two_layers_are_within_the_bound_for_random_data():
    rng = np.random.default_rng(1)
    for dim in (2, 3, 4, 5, 6):
        signs = np.array(list(product((-1.0, 1.0), repeat=dim)))
        for _ in range(5):
            data = rng.standard_normal(dim) * rng.integers(0, 2, dim)
            data /= max(1e-9, np.linalg.norm(data))
            first = fft.dct(signs * data, norm="ortho", axis=1)
            scores = fft.dct(signs[np.newaxis] * first[:, np.newaxis], norm="ortho", axis=2)
            assert abs(float(dim**2 * (scores**4).mean()) - 3.0 * np.linalg.norm(data) ** 4) < 15.0 / dim
