import json
import math

import pytest

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.papers.check.results import Context, Effort, Subject, Verdict, perform
from other_tools import accountants, process, worker
from other_tools.accountants import METHODS, Accountant, EnclosedAnswer, questions

CONTEXT = Context(Effort.QUICK, 0)
OWN = next(method for method in METHODS if (method.tool, method.name) == ("canaryproof", "gaussian_mechanism"))


@pytest.fixture(autouse=True)
def no_distributions(monkeypatch):
    """Spare the seconds that privacy loss distributions take."""
    monkeypatch.setattr(accountants, "_SAMPLED", ())
    questions.cache_clear()
    yield
    questions.cache_clear()


def test_the_worker_has_exactly_the_methods_that_are_measured():
    found = {(tool, name) for tool, of in worker.ACCOUNTANTS.items() for name in of}
    assert found == {(method.tool, method.name) for method in METHODS}


def test_enclosures_hold_the_kernels_values():
    for case in questions(Effort.FULL):
        asked = case.asked
        if asked["kind"] == "noise":
            value = gaussian_mechanism.noise_multiplier(asked["epsilon"], asked["delta"])
        else:
            value = gaussian_mechanism.epsilon(asked["delta"], asked["sigma"] / math.sqrt(asked["steps"]))
        assert case.low <= case.high
        assert case.proven
        # Both are a few ulps wide.
        assert float(value) == pytest.approx(case.low, rel=1e-13)


@pytest.mark.parametrize(
    ("value", "error"), [(1.0, -0.5), (2.0, 0.0), (1.9, -0.05), (3.0, 0.5), (None, None), (math.inf, None)]
)
def test_errors_have_a_side(value, error):
    case = EnclosedAnswer({"of": "epsilon", "sigma": 1.0, "delta": 1e-5}, 2.0, 2.0)
    found = accountants._row(case, value, "", 0.0)["error"]
    assert found == (None if error is None else pytest.approx(error))


def answers(monkeypatch, value):
    def ask(_kind, _tool, _method, asked):
        return process.Answer("9", tuple((value, "", 0.0) for _ in asked))

    monkeypatch.setattr(accountants, "ask", ask)


@pytest.mark.parametrize(
    ("value", "safe", "verdict"),
    [
        (1e-9, True, Verdict.REFUTED),
        (1e9, True, Verdict.CONFIRMED),
        (1e-9, False, Verdict.CONFIRMED),
        (1e9, False, Verdict.INCONCLUSIVE),
        (None, True, Verdict.INCONCLUSIVE),
    ],
)
def test_only_the_unsafe_side_refutes(monkeypatch, value, safe, verdict):
    answers(monkeypatch, value)
    method = Accountant("a-tool", "f", ("epsilon", "noise"), "exact", "there", safe=safe)
    result = perform("accountants", accountants._check(method), CONTEXT)
    assert (result.verdict, result.subject) == (verdict, Subject.TOOL)
    assert json.dumps(result.to_json(), allow_nan=False)


def test_ours_is_held_to_the_same():
    result = perform("accountants", accountants._check(OWN), CONTEXT)
    assert (result.verdict, result.subject) == (Verdict.CONFIRMED, Subject.IMPLEMENTATION)
    assert max(abs(row["error"]) for row in result.evidence["rows"]) < 1e-13


def test_a_tool_that_is_not_there_is_skipped_with_a_word(monkeypatch):
    def ask(*_):
        raise process.MissingToolError("opacus is not installed: `make auditors` installs it")

    monkeypatch.setattr(accountants, "ask", ask)
    result = perform("accountants", accountants._check(METHODS[3]), CONTEXT)
    assert (result.verdict, result.evidence["missing"]) == (Verdict.NEEDS_DATA, result.finding)


@pytest.mark.deep
def test_one_method_is_asked_by_a_command():
    assert "ε of one round, σ = 1, δ = 1e-05: 4.37" in accountants.main("canaryproof", "gaussian_mechanism")
    some = accountants.main("canaryproof", "gaussian_mechanism", "noise", "1e-12", "quick").splitlines()[1:]
    assert len(some) == 3
    assert all(line.startswith("noise multiplier") and "δ = 1e-12" in line for line in some)
    with pytest.raises(SystemExit, match="there is no method 'x' of 'y'"):
        accountants.main("y", "x")


def test_opacus_s_upper_bound_is_above_the_truth():
    method = next(found for found in METHODS if (found.tool, found.name) == ("opacus", "prv"))
    try:
        _, rows = accountants.measure(method, questions(Effort.QUICK))
    except process.MissingToolError as reason:
        pytest.skip(str(reason))
    assert all(row["error"] is None or row["error"] >= 0.0 for row in rows)
