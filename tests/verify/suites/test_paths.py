import pytest

from canaryproof.verify.check.results import Check, Context, Level, Verdict
from canaryproof.verify.suites import numerics


@pytest.mark.parametrize("check", numerics.CHECKS[:4], ids=lambda check: check.id)
def test_it_is_confirmed(check: Check) -> None:
    outcome = check.judge(Context(Level.QUICK, 3))
    assert outcome.verdict is Verdict.CONFIRMED, outcome.finding


def test_no_path_is_a_target_of_the_search() -> None:
    searched = {check.id for check in numerics.CHECKS}
    assert not {f"numerics.{target.name}" for target in numerics.PATHS} & searched
