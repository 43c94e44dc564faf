import pytest

from canaryproof.proofs_check import consistency, finite_bounds
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import convergence

CONTEXT = Context(Effort.QUICK, 5)
JUDGES = {check.id.rpartition(".")[2]: check.judge for check in convergence.CHECKS}


@pytest.mark.parametrize("topic", JUDGES)
def test_simulated_points_are_where_they_should_be(topic, quick_run):
    result = quick_run.results[f"theorems.convergence.{topic}"]
    assert result.verdict is Verdict.CONFIRMED
    for series in result.evidence["convergence"]:
        low, high = series["slope_interval"]
        assert low <= series["fitted_slope"] <= high
        assert series["x"] == sorted(series["x"])
        columns = [series[key] for key in ("exact", "bound", "simulated", "standard_error") if series[key] is not None]
        assert all(len(column) == len(series["x"]) for column in columns)
        if series["exact"] and series["bound"]:
            assert all(e <= b for e, b in zip(series["exact"], series["bound"], strict=True))


@pytest.fixture
def a_quarter_of_the_runs(monkeypatch):
    """What so few runs tell, all tell the more."""
    right = convergence._runs
    monkeypatch.setattr(convergence, "_runs", lambda *arguments: right(*arguments) // 4)


@pytest.mark.deep
def test_a_wrong_shift_is_found(monkeypatch):
    right = consistency.shift
    monkeypatch.setattr(consistency, "shift", lambda *arguments: 1.2 * right(*arguments))
    assert JUDGES["too-many-canaries"](CONTEXT).verdict is Verdict.REFUTED


@pytest.mark.deep
@pytest.mark.usefixtures("a_quarter_of_the_runs")
def test_a_bound_that_is_too_small_is_found(monkeypatch):
    right = finite_bounds.variance_deviates
    monkeypatch.setattr(finite_bounds, "variance_deviates", lambda *arguments: right(*arguments) / 100)
    assert JUDGES["release"](CONTEXT).verdict is Verdict.REFUTED


def test_a_law_of_another_dimension_is_found(monkeypatch):
    right = convergence._unseen
    monkeypatch.setattr(convergence, "_unseen", lambda rng, dim, size: right(rng, dim + 1, size))
    assert JUDGES["null-moments"](CONTEXT).verdict is Verdict.REFUTED
    assert JUDGES["normal-law"](CONTEXT).verdict is Verdict.REFUTED
