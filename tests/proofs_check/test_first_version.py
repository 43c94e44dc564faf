import pytest

from canaryproof.proofs_check import first_version
from canaryproof.proofs_check.lines import Kind
from canaryproof.proofs_check.regime import in_proportion, limit
from canaryproof.proofs_check.release_moments import moments

EXACT = {"v1.section-3.inner-noise", "v1.section-3.lengths", "v1.footnote-2"}
LEADING_ORDER = {"v1.section-3.inner-sum"}


@pytest.mark.parametrize("line", first_version.LINES, ids=lambda line: line.id)
def test_kind(line):
    kinds = dict.fromkeys(EXACT, Kind.EXACT) | dict.fromkeys(LEADING_ORDER, Kind.LEADING_ORDER)
    assert line.judge().kind is kinds.get(line.id, Kind.HYPOTHESIS)


def test_the_limits_differ_where_the_hypothesis_is_needed():
    square = moments("A")[0]
    assert str(limit(square)) == "sigma**2"
    assert str(in_proportion(square)) == "kappa + sigma**2"
