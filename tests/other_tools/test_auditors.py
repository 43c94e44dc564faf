import json
import math
import re
import signal
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from canaryproof.verify.audit.bounds.catalogue import MEASURED as BOUNDS
from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.papers.check.results import Context, Effort, Subject, Verdict, perform
from canaryproof.verify.papers.suites.catalogue import SUITES
from other_tools import __main__ as main
from other_tools import auditors, process, worker
from other_tools.auditors import METHODS, AuditorCell, ToolAuditor, cells, draw, mechanism

CONTEXT = Context(Effort.QUICK, 3)
OWN = ToolAuditor("canaryproof", "bonferroni", "a bound", "here")
ESTIMATE = ToolAuditor("canaryproof", "bonferroni", "an estimate", "here", alpha=None)


def test_the_suites_run_from_a_checkout_alone():
    for name, checks in main.SUITES.items():
        assert name not in SUITES
        assert checks


def test_the_worker_has_exactly_the_methods_that_are_measured():
    assert {(tool, name) for tool, of in worker.AUDITORS.items() for name in of} == {(m.tool, m.name) for m in METHODS}


def test_each_tool_is_pinned():
    for environment, tools in process.ENVIRONMENTS.items():
        names = {name.lower().replace("_", "-") for name in process.pinned(environment)}
        assert {*tools, "numpy"} <= names


def excess(epsilon, shift):
    """Cauchy noise's δ at ε, by quadrature of what is above."""
    law, other = stats.cauchy(shift), stats.cauchy(0.0)
    up = math.exp(epsilon)
    roots = np.roots([1.0 - up, 2.0 * up * shift, 1.0 - up * (1.0 + shift**2)])
    return integrate.quad(
        lambda x: max(0.0, law.pdf(x) - up * other.pdf(x)), min(roots.real) - 9.0, max(roots.real) + 9.0, limit=500
    )[0]


@pytest.mark.parametrize("shift", [0.5, 1.0, 4.0])
def test_cauchy_noise_has_its_epsilon(shift):
    epsilon = auditors.cauchy_epsilon(shift, 1e-3)
    assert 0.0 < epsilon < 2.0 * math.asinh(0.5 * shift)
    assert excess(epsilon, shift) == pytest.approx(1e-3, rel=1e-3)


def test_the_worst_case_has_its_epsilon_and_delta():
    made = mechanism("worst case", 1.0)
    one, other = (np.bincount(made.draw(np.random.default_rng(1), np.full(200_000, inside)).astype(int), minlength=4)
                  / 200_000 for inside in (True, False))  # fmt: skip
    # At its ε, δ is what it was made with; four standard errors.
    assert np.maximum(one - math.e * other, 0.0).sum() == pytest.approx(made.delta, abs=0.006)
    assert one[0] == 0.0 == other[3]


@pytest.mark.parametrize("name", ["Gaussian", "Laplace", "rounded Gaussian", "Cauchy"])
def test_the_threshold_is_between_the_laws(name):
    made, rng = mechanism(name, 3.0), np.random.default_rng(2)
    one, other = (float(np.median(made.draw(rng, np.full(4001, inside)))) for inside in (True, False))
    assert other < made.threshold < one


def test_who_takes_fewer_audits_gets_the_first_of_the_same():
    few, many = (draw(CONTEXT, AuditorCell(mechanism("Laplace", 1.0), 20, runs)) for runs in (2, 5))
    for part, whole in zip(few, many, strict=True):
        assert np.array_equal(part, whole[:2])
    assert many[0].shape == (5, 40)
    assert not np.array_equal(many[1][0], many[1][1])


def test_methods_get_the_cells_that_their_assumptions_allow():
    for method in METHODS:
        names = {cell.mechanism.name for cell in cells(method, Effort.FULL)}
        assert names >= {"Gaussian", "identical scores"}
        # The slowest ones have these cells for another reason.
        assert (method.gaussian_only or method.seconds > 3.0) == (names == {"Gaussian", "identical scores"})


@pytest.mark.parametrize("level", auditors.BUDGET)
def test_audits_cost_what_their_budget_allows(level):
    least = 0.0
    for method in METHODS:
        chosen = cells(method, level)
        assert min(cell.runs for cell in chosen) >= auditors.LEAST
        # Beyond the budget there are only the fewest audits, and those that rounding up adds.
        beyond = [cell for cell in chosen if cell.count <= 100 and cell.runs > auditors.LEAST]
        assert sum((cell.runs - 1) * method.seconds for cell in beyond) <= auditors.BUDGET[level]
        least += sum(cell.runs * method.seconds for cell in chosen)
    # Minutes: of both levels together with what the accountants take, less than half an hour.
    assert least <= {Effort.QUICK: 6.0, Effort.FULL: 20.0}[level] * 60.0


def test_all_methods_get_dependent_scores_of_a_curve_that_they_assume():
    for method in METHODS:
        chosen = auditors.dependent_cells(method, Effort.FULL)
        names = {cell.mechanism.name.removesuffix(auditors.ALL_IN) for cell in chosen}
        assert names >= {"equicorrelated, trace 0", "equicorrelated, trace 1", "comonotone, trace 0"}
        assert method.gaussian_only == ("two states" not in names)
        assert {cell.mechanism.has_coins for cell in chosen} == {method.any_dependence}
        assert auditors.LEVEL / len(names) > auditors.ALPHA**auditors.LEAST


def test_scores_of_a_run_depend_on_each_other():
    for name, size in (("comonotone, trace 0", 40), ("comonotone, trace 0, all in", 80)):
        made = mechanism(name, 0.0)
        scores, inside = draw(CONTEXT, AuditorCell(made, 20, 2))
        assert made.epsilon == 0.0
        assert scores.shape == (2, size)
        # All that takes part is the same in a run, and other in the next one.
        assert [len(set(s[i])) for s, i in zip(scores, inside, strict=True)] == [1, 1]
        assert scores[0][inside[0]][0] != scores[1][inside[1]][0]
        assert (inside.sum(axis=1) == 40).all() == (not made.has_coins)


def test_the_fewest_audits_can_decide():
    level = auditors.LEVEL / max(len(cells(method, Effort.FULL)) for method in METHODS)
    assert level > auditors.ALPHA**auditors.LEAST


@pytest.mark.deep
def test_our_methods_go_the_same_way():
    cell = AuditorCell(mechanism("Gaussian", 3.0), 20, 3)
    version, (row,) = auditors.measure(CONTEXT, OWN, [cell])
    scores, inside = draw(CONTEXT, cell)
    values = [
        BOUNDS["bonferroni"].values(prepare(s[i], s[~i], inclusion="coin", independent=True), 1e-5, 0.05)[0][0]
        for s, i in zip(scores, inside, strict=True)
    ]
    assert (row["mean"], row["median"], row["runs"]) == (pytest.approx(np.mean(values)), np.median(values), 3)
    assert row["raised"] == row["not_numbers"] == row["infinite"] == 0
    assert version == process.version("canaryproof")


FAKE = """
import hashlib, json, sys
import numpy as np
request, scores, answer = sys.argv[1:]
arrays = np.load(scores)
digest = hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest()
calls = {calls}
rows = [[calls[j % len(calls)] for j in range(len(arrays[name]))] for name in sorted(arrays) if "scores" in name]
open(answer, "w").write(json.dumps({{"version": "9", "digest": digest + {wrong!r}, "answers": rows}}))
"""


@pytest.fixture
def standing_in(monkeypatch, tmp_path):
    """Let a script answer in a worker's place."""

    def stand_in(*calls, text=None, wrong=""):
        script = tmp_path / "worker.py"
        said = (
            json.dumps(calls).replace("null", "None").replace("Infinity", "float('inf')").replace("NaN", "float('nan')")
        )
        script.write_text(FAKE.format(calls=said, wrong=wrong) if text is None else text)
        monkeypatch.setattr(process, "WORKER", script)

    return stand_in


def test_answers_are_counted(standing_in):
    standing_in([0.5, "", 1.0], [math.inf, "", 2.0], [math.nan, "", 3.0], [None, "ValueError: no", 4.0], [7.0, "", 5.0])
    cell = AuditorCell(mechanism("Gaussian", 1.0), 20, 5)
    _, (row,) = auditors.measure(CONTEXT, OWN, [cell])
    assert (row["above"], row["infinite"], row["not_numbers"], row["raised"]) == (2, 1, 1, 1)
    # The first call does not count as time.
    assert (row["least"], row["mean"], row["seconds"]) == (0.5, 3.75, 3.5)
    assert row["reasons"] == ["ValueError: no"]
    low, high = row["interval"]
    assert stats.binom.sf(1, 5, low) == pytest.approx(0.025)
    assert stats.binom.cdf(2, 5, high) == pytest.approx(0.025)


def test_unusual_inputs_are_answered_in_words(standing_in):
    for value, said in ((0.0, "0"), (math.inf, "infinite"), (math.nan, "not a number")):
        standing_in([value, "", 0.0])
        assert auditors.answers(OWN) == dict.fromkeys(auditors.unusual(), said)
    counting = replace(OWN, counts=True)
    assert auditors.answers(counting)["one NaN"] == "takes counts"
    standing_in([None, "ValueError: no", 0.0])
    assert auditors.main("canaryproof", "bonferroni", "inputs").splitlines()[0] == "one NaN: ValueError: no"


def test_a_tool_that_ends_on_an_unusual_input_is_shown(standing_in):
    standing_in(text="raise SystemExit('out of luck')")
    said = "canaryproof, bonferroni: ended without an answer (out of luck)"
    assert auditors.answers(OWN) == dict.fromkeys(auditors.unusual(), said)


# Each method takes a process; what its bound does of itself is tested with the bounds.
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(method, marks=() if i == 0 else pytest.mark.deep)
        for i, method in enumerate(m for m in METHODS if m.tool == "canaryproof")
    ],
)
def test_our_bounds_say_nothing_where_nothing_follows(method):
    """Each is 0, or is refused in words: no score is missing or infinite, and there is some score of each kind."""
    for given, said in auditors.answers(method).items():
        if given in ("one NaN", "one infinite", "no scores", "none unobserved"):
            assert said.startswith("ValueError: "), given
        else:
            assert float(said) <= 0.1, given


def test_other_scores_are_noticed(standing_in):
    standing_in([0.0, "", 0.0], wrong="x")
    with pytest.raises(ValueError, match="was given other scores"):
        auditors.measure(CONTEXT, OWN, [AuditorCell(mechanism("Gaussian", 1.0), 20, 1)])


def test_a_worker_that_ends_without_an_answer_is_named(standing_in):
    standing_in(text="raise SystemExit('out of luck')")
    said = "canaryproof, bonferroni: ended without an answer (out of luck)"
    with pytest.raises(process.EndedToolError, match=re.escape(said)):
        auditors.measure(CONTEXT, OWN, [AuditorCell(mechanism("Gaussian", 1.0), 20, 1)])
    result = judged(OWN)
    assert (result.verdict, result.finding, result.evidence["missing"]) == (Verdict.INCONCLUSIVE, said, said)


def judged(method):
    return perform("auditors", auditors._check(method), CONTEXT)


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    ("value", "method", "verdict"),
    [
        (100.0, OWN, Verdict.REFUTED),
        (100.0, ESTIMATE, Verdict.CONFIRMED),
        (-1.0, OWN, Verdict.CONFIRMED),
        (-1.0, ESTIMATE, Verdict.INCONCLUSIVE),
        (None, OWN, Verdict.INCONCLUSIVE),
    ],
)
def test_a_promise_is_judged_and_an_estimate_is_not_blamed(standing_in, value, method, verdict):
    standing_in([value, "" if value else "E: e", 0.0])
    result = judged(method)
    assert result.verdict is verdict
    assert json.dumps(result.to_json(), allow_nan=False)
    assert result.design.level == 1e-6


@pytest.mark.parametrize(
    ("above", "verdict"), [(2, Verdict.CONFIRMED), (4, Verdict.INCONCLUSIVE), (6, Verdict.REFUTED)]
)
def test_few_audits_that_look_wrong_are_no_confirmation(standing_in, monkeypatch, above, verdict):
    monkeypatch.setattr(auditors, "cells", lambda *_: [AuditorCell(mechanism("Gaussian", 1.0), 20, 6)])
    standing_in(*[[100.0, "", 0.0]] * above, *[[0.0, "", 0.0]] * (6 - above))
    assert judged(OWN).verdict is verdict


def test_too_few_audits_decide_nothing(standing_in, monkeypatch):
    monkeypatch.setattr(auditors, "BUDGET", {Effort.QUICK: 0.0})
    monkeypatch.setattr(auditors, "LEAST", 1)
    standing_in([100.0, "", 0.0])
    assert judged(OWN).verdict is Verdict.INCONCLUSIVE


def test_a_tool_that_is_not_there_is_skipped_with_a_word(monkeypatch, tmp_path):
    monkeypatch.setenv("CANARYPROOF_AUDITORS", str(tmp_path))
    monkeypatch.setattr(process, "ENVIRONMENTS", {"plain": ("no-such-tool",)})
    result = judged(ToolAuditor("no-such-tool", "f", "a bound", "there"))
    assert (result.verdict, result.subject, result.failed) == (Verdict.NEEDS_DATA, Subject.TOOL, False)
    assert result.finding == "no-such-tool is not installed: `make auditors` installs it"


def test_a_tool_that_cannot_be_imported_is_skipped_with_a_word(standing_in):
    standing_in(text="import sys; open(sys.argv[3], 'w').write('{\"missing\": \"ImportError: no\"}')")
    assert judged(OWN).finding == "canaryproof cannot be imported: ImportError: no"


def test_a_call_that_takes_too_long_is_a_failure():
    def call(_):
        while True:
            pass

    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, worker._late)
    value, raised, _ = worker._attempt(call, None, 0.05, 60.0)
    assert (value, raised) == (None, "no answer in 0.05 CPU seconds")
    value, raised, _ = worker._attempt(time.sleep, 60.0, 60.0, 0.05)
    assert (value, raised) == (None, "no answer in 0.05 seconds")


def test_a_call_that_takes_no_signal_ends_its_process(standing_in):
    standing_in(
        text=f"""
import faulthandler, signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGALRM, signal.SIGPROF}})
sys.path.insert(0, {str(process.WORKER.parent)!r})
import worker
worker._attempt(time.sleep, 60.0, 60.0, 0.05)
"""
    )
    with pytest.raises(process.EndedToolError, match=r"ended without an answer \(Timeout \(0:00:00\.100000\)!\)"):
        auditors.measure(CONTEXT, OWN, [AuditorCell(mechanism("Gaussian", 1.0), 20, 1)])


@pytest.mark.deep
def test_one_cell_is_measured_by_a_command():
    text = auditors.main("canaryproof", "bonferroni", "Gaussian", "3", "20")
    assert text.splitlines()[1].startswith("Gaussian, ε = 3, k = 20: above in ")
    assert len(text.splitlines()) == 2
    with pytest.raises(SystemExit, match="there is no method 'x' of 'y'"):
        auditors.main("y", "x")


@pytest.mark.parametrize(
    ("tool", "name", "epsilon", "least"),
    [
        # Above 0 in nearly all audits of equal laws.
        ("jax-privacy", "epsilon_from_gdp", 0.0, 0.9),
        ("privacyguard-platform", "FDPAnalysisNode", 0.0, 1.0),
        ("jax-privacy", "epsilon_clopper_pearson", 0.0, 0.0),
    ],
)
def test_tools_that_are_installed_answer(tool, name, epsilon, least):
    method = next(found for found in METHODS if (found.tool, found.name) == (tool, name))
    try:
        _, (row,) = auditors.measure(CONTEXT, method, [AuditorCell(mechanism("Gaussian", epsilon), 100, 3)])
    except process.MissingToolError as reason:
        pytest.skip(str(reason))
    assert row["raised"] == 0
    assert row["rate"] >= least


def test_the_command_runs_beside_the_package():
    assert process._interpreter("canaryproof") == sys.executable
