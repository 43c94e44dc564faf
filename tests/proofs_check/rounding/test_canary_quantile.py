import json
from fractions import Fraction
from itertools import pairwise
from types import FunctionType

import numpy as np
import pytest
from numba import njit

from canaryproof.kernels import _canary_stream as stream
from canaryproof.kernels.certified._ball import at_precision
from canaryproof.proofs_check.rounding import canary_quantile as proof
from canaryproof.verify.papers.suites.stream_quality import quality

CERTIFICATE = proof.read()
TABLE = proof.polynomials()


def exact(word):
    return at_precision(200, lambda: Fraction(float(proof.exact(word).mid())))


def values(words):
    return [-Fraction(float(x)) for x in quality.quantiles(np.array(words, np.uint32))]


def test_the_certificate_is_of_all_words():
    assert CERTIFICATE.words == 2**32
    assert CERTIFICATE.symmetric


def test_extreme_words_err_as_certified():
    words = [CERTIFICATE.word_above, CERTIFICATE.word_below]
    above, below = (float(x / exact(word) - 1) for x, word in zip(values(words), words, strict=True))
    assert above == pytest.approx(CERTIFICATE.largest_above, abs=1e-13)
    assert below == pytest.approx(-CERTIFICATE.largest_below, abs=1e-13)
    assert CERTIFICATE.error <= proof.STATED_ERROR
    largest, smallest = values([1, 2**31 - 1])
    assert (smallest, largest) == (CERTIFICATE.smallest_value, CERTIFICATE.largest_value)


@pytest.mark.parametrize(
    "first", [1, 31, 33, 2**12 + 1, 673, 480307, 2**30 - 41, 2**31 - 2**26 - 999, 2**31 - 2**12 + 1]
)
def test_polynomials_are_within_their_bounds(first):
    q, errors = np.empty(1000), np.empty(1000)
    proof._exact_quantiles(first, TABLE, q, errors)
    for k in (0, 1, 7, 500, 999):
        distance = abs(Fraction(q[k]) / exact(first + 2 * k) - 1)
        assert distance <= errors[k] + 2.0**-53
    assert errors.max() < 1e-13


def test_cells_hold_every_word_once():
    cells = proof.cells()
    assert cells[0].first == 1
    assert cells[-1].last == 2**31 - 1
    assert all(cell.last + 2 == after.first for cell, after in pairwise(cells))


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("start", [0, pytest.param(2**18 * 1000, marks=pytest.mark.deep), proof._WORDS - 2**14])
def test_a_part_is_what_plain_arithmetic_finds(start):
    length = 2**14
    part = proof._part(start, TABLE, length)
    words = range(2 * start + 1, 2 * (start + length), 2)
    x = values(words)
    assert part.ordered
    assert part.value_range == (min(x), max(x))
    for n in (0, 3):
        assert float(part.sums[n] / sum(value ** (2 * n + 2) for value in x) - 1) == pytest.approx(0, abs=1e-28)
    worst = float(values([part.above[1]])[0] / exact(part.above[1]) - 1)
    assert worst == pytest.approx(part.above[0], abs=1e-13)
    assert part.above[0] <= CERTIFICATE.largest_above
    assert part.distance <= CERTIFICATE.kolmogorov


def test_a_wrong_coefficient_is_out_of_bounds(monkeypatch):
    names = stream.__dict__ | {"_NUMERATOR": stream._NUMERATOR[:1] + tuple(1.001 * c for c in stream._NUMERATOR[1:])}
    normal = njit(error_model="numpy")(FunctionType(stream._normal.py_func.__code__, names))

    def wrong(first, x):
        words = np.arange(first, first + 2 * len(x), 2, dtype=np.uint32)
        x[:] = [-normal(word, stream._depth(word)) for word in words]
        return True

    monkeypatch.setattr(proof, "_values", wrong)
    assert max(proof._part(2**18 * 1000, TABLE, 2**12).above[0], 0.0) > proof.STATED_ERROR


def test_moments_are_those_of_the_discretised_normal():
    for order, (low, high) in CERTIFICATE.moments.items():
        assert low < high < low * (1 + 1e-15)
        # Values are off by 4.6e-7, relative, at most.
        assert low == pytest.approx(quality.moment(int(order)), rel=int(order) * proof.STATED_ERROR)


def test_the_law_is_near_the_normal_one():
    # Half a jump is the least that a law of 2³¹ values can do, and the error of a value moves it by less than this.
    assert 2.0**-32 < CERTIFICATE.kolmogorov < 2.0**-32 + 0.242 * proof.STATED_ERROR


def test_the_file_is_the_certificate():
    assert json.loads(proof.written(CERTIFICATE)) == json.loads(
        (proof.files(proof.__package__) / proof.CERTIFICATE).read_text()
    )
