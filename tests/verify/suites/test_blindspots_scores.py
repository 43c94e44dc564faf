import pytest

from canaryproof.verify.blindspots import alarms
from canaryproof.verify.check.results import Context, Level, Verdict
from canaryproof.verify.suites import blindspots_truths

CONTEXT = Context(Level.QUICK, 7)


@pytest.mark.parametrize("check", blindspots_truths.CHECKS, ids=lambda check: check.id)
def test_the_laws_agree(check, quick_run):
    result = quick_run.results[check.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding


def test_scores_beside_too_long_a_residual_are_found(monkeypatch):
    right = alarms.exact
    monkeypatch.setattr(
        alarms, "exact", lambda residual, *rest: right(type(residual)(residual.dims, 1.5 * residual.grams), *rest)
    )
    assert blindspots_truths._single(100, 10, 12.0, CONTEXT).verdict is Verdict.REFUTED
