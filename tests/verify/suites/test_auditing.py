import pytest

from canaryproof.verify.results import Check, Context, Level, Verdict
from canaryproof.verify.suites import auditing


@pytest.mark.parametrize("check", auditing.CHECKS, ids=lambda check: check.id)
def test_it_is_confirmed(check: Check) -> None:
    outcome = check.judge(Context(Level.QUICK, 3))
    assert outcome.verdict is Verdict.CONFIRMED, outcome.finding
