import pytest

from canaryproof.proofs_check import data_vectors
from canaryproof.proofs_check.lines import Kind

FALSE = {"final.footnote-2", "review.ratio-of-clients", "review.orthogonal-however-many"}


@pytest.mark.parametrize("line", data_vectors.LINES, ids=lambda line: line.id)
def test_kind(line):
    assert line.judge().kind is (Kind.FALSE if line.id in FALSE else Kind.EXACT)


def test_limit_without_data_is_the_theorems():
    mean, variance, concentrate = data_vectors.limits_with_data(0)
    assert concentrate
    assert str(mean) == "1/sigma"
    assert variance == 1
