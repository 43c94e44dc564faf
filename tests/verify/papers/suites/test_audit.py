import pytest

from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.suites import audit


@pytest.mark.parametrize("check", audit.CHECKS, ids=lambda check: check.id)
def test_it_is_confirmed(check, quick_run):
    result = quick_run.results[check.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding
