import numpy as np
import pytest

from canaryproof.verify.results import Verdict
from canaryproof.verify.suites import inference


@pytest.mark.parametrize("check", inference.CHECKS, ids=lambda check: check.id)
def test_the_estimators_pass(check, quick_run):
    result = quick_run.results[check.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding


def test_a_frequency_is_told_from_another_probability() -> None:
    events = np.arange(1000) < 300
    assert inference._frequency(events, 0.3) > 0.9
    assert inference._frequency(events, 0.2) < 1e-10 > inference._frequency(events, 0.4)
    assert inference._frequency(events, 0.25, margin=0.05) > 0.9
