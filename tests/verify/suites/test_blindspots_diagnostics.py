import pytest

from canaryproof.verify.blindspots import diagnostics
from canaryproof.verify.check.results import Context, Level, Verdict
from canaryproof.verify.suites import blindspots

CONTEXT = Context(Level.QUICK, 7)


@pytest.mark.parametrize("check", blindspots.CHECKS, ids=lambda check: check.id)
def test_the_diagnostics_keep_their_word(check, quick_run):
    result = quick_run.results[check.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding


def test_data_that_the_test_is_not_told_of_are_found(monkeypatch):
    right = diagnostics.rounds_p_value
    monkeypatch.setattr(diagnostics, "rounds_p_value", lambda gram, sigma, dim, _data_norm: right(gram, sigma, dim))
    assert blindspots._with_data(CONTEXT).verdict is Verdict.REFUTED
