import pytest

from canaryproof.proofs_check import data_vectors
from canaryproof.proofs_check.lines import Kind

NOT_EXACT = {
    "final.footnote-2": Kind.FALSE,
    "review.ratio-of-clients": Kind.HYPOTHESIS,
    "review.orthogonal-however-many": Kind.FALSE,
}


@pytest.mark.parametrize("line", data_vectors.LINES, ids=lambda line: line.id)
def test_kind(line):
    assert line.judge().kind is NOT_EXACT.get(line.id, Kind.EXACT)


def test_limit_without_data_is_the_theorems():
    mean, variance, concentrate = data_vectors.limits_with_data(0)
    assert concentrate
    assert str(mean) == "1/sigma"
    assert variance == 1
