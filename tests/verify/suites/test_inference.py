import numpy as np
import pytest

from canaryproof.verify.check.results import Verdict
from canaryproof.verify.suites import estimation


@pytest.mark.parametrize("check", estimation.CHECKS, ids=lambda check: check.id)
def test_the_estimators_pass(check, quick_run):
    result = quick_run.results[check.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding


def test_a_frequency_is_told_from_another_probability() -> None:
    events = np.arange(1000) < 300
    assert estimation._frequency(events, 0.3) > 0.9
    assert estimation._frequency(events, 0.2) < 1e-10 > estimation._frequency(events, 0.4)
    assert estimation._frequency(events, 0.25, margin=0.05) > 0.9
