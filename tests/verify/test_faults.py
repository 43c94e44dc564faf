import dataclasses
import math
from fnmatch import fnmatchcase

import numpy as np
import pytest
from click.testing import CliRunner

from canaryproof.kernels import gaussian_mechanism, null_cosine
from canaryproof.proofs_check import release_moments
from canaryproof.verify import simulation
from canaryproof.verify.faults import FAULTS, Fault, seeded
from canaryproof.verify.faults.__main__ import main
from canaryproof.verify.faults.trial import Trials, alarms, stochastic
from canaryproof.verify.oneshot import estimators
from canaryproof.verify.results import Check, Context, Level, Outcome, Subject, Verdict
from canaryproof.verify.suites import estimation
from canaryproof.verify.suites.catalogue import SUITES
from canaryproof.verify.worst_case.targets import TARGETS

CHECKS = {check.id: check for suite in SUITES.values() for check in suite}
CONTEXT = Context(Level.QUICK, 0)

# A few that take no time, of each topic.
CAUGHT = {
    "null-cosine.gamma": "numerics.null-cosine.pdf",
    "null-cosine.exponent": "numerics.null-cosine.pdf",
    "null-cosine.two-sided": "numerics.comparison.null-cosine.sf",
    "gaussian-mechanism.sign": "numerics.comparison.gaussian-mechanism.delta",
    "gaussian-mechanism.delta-for-log": "numerics.gaussian-mechanism.log-delta",
    "certified.gaussian-mechanism.sign": "numerics.enclosures.gaussian-mechanism",
    "twin.gaussian-mechanism.variance": "numerics.enclosures.gaussian-mechanism",
    "canaries.noise-truncated": "gaussian.streams.coordinates",
    "algorithm-1.variance": "gaussian.streams.release",
    "canaries.noise-stream": "gaussian.streams.coordinates",
    "estimators.one-tail": "gaussian.inference.choices",
    "estimators.norm-tails": "gaussian.inference.norm",
    "audit.last-canary": "gaussian.audit.release",
    "input.swapped": "gaussian.audit.files",
    "finite-bounds.one-tail": "theorems.bounds.plain",
}


def test_the_catalogue_has_forty_faults_over_all_topics() -> None:
    assert len(FAULTS) >= 40
    modules = {fault.target.partition(":")[0].split(".")[1] for fault in FAULTS.values()}
    assert modules == {"kernels", "verify", "proofs_check"}
    assert all(fault.name == name and fault.description for name, fault in FAULTS.items())


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_every_fault_has_checks_and_can_be_seeded(fault: Fault) -> None:
    assert any(fnmatchcase(name, pattern) for pattern in fault.checks for name in CHECKS)
    with seeded(fault):
        pass


def _doubled(target: str) -> Fault:
    return Fault("doubled", "", target, lambda original: lambda *a, **o: 2 * original(*a, **o), ())


def test_a_fault_is_wherever_the_function_is_kept() -> None:
    target = next(target for target in TARGETS if target.name == "null-cosine.pdf")
    right = float(null_cosine.pdf(0.1, 10))
    with seeded(_doubled("canaryproof.kernels.null_cosine:pdf")):
        assert float(null_cosine.pdf(0.1, 10)) == float(target.kernel(0.1, 10.0)) == 2.0 * right
    assert float(null_cosine.pdf(0.1, 10)) == float(target.kernel(0.1, 10.0)) == right


def test_a_fault_is_where_the_function_was_imported_by_name() -> None:
    fault = Fault("none", "", "canaryproof.verify.simulation:simulate", lambda _: lambda *_a, **_o: "drawn wrongly", ())
    with seeded(fault):
        assert estimation.simulate(1, 2, 3, 1.0, np.random.SeedSequence(0)) == "drawn wrongly"  # type: ignore[comparison-overlap]
    assert len(simulation.simulate(1, 2, 3, 1.0, np.random.SeedSequence(0)).distance) == 1


def test_defaults_and_keywords_reach_the_original_and_come_back() -> None:
    function = estimators.pinned
    kept = function.__code__, function.__defaults__, function.__kwdefaults__
    fault = Fault("same", "", "canaryproof.verify.oneshot.estimators:pinned", lambda original: original, ())
    moments = estimators.Moments(np.asarray(1.0), np.asarray(1.0), 10)
    right = estimators.pinned(moments, 1e-6)
    with seeded(fault):
        assert estimators.pinned(moments, delta=1e-6) == right
    assert (function.__code__, function.__defaults__, function.__kwdefaults__) == kept


def test_a_fault_is_taken_out_after_an_error() -> None:
    right = float(gaussian_mechanism.delta(1.0, 1.0))
    with pytest.raises(KeyError), seeded(_doubled("canaryproof.kernels.gaussian_mechanism:delta")):
        raise KeyError
    assert float(gaussian_mechanism.delta(1.0, 1.0)) == right


def test_what_functions_remember_is_forgotten() -> None:
    right = release_moments.raw_moment("B", 1)
    with seeded(_doubled("canaryproof.proofs_check.release_moments:raw_moment")):
        assert release_moments.raw_moment("B", 1) == 2 * right
    assert release_moments.raw_moment("B", 1) == right


@pytest.mark.parametrize(
    "target", ["canaryproof.kernels.null_cosine:_density", "canaryproof.kernels.null_cosine:LARGEST_DIM"]
)
def test_what_is_no_python_function_is_refused(target: str) -> None:
    with pytest.raises(TypeError, match="must be a function"), seeded(_doubled(target)):
        pass


@pytest.mark.parametrize(("name", "check"), CAUGHT.items())
def test_a_fault_is_caught(name: str, check: str) -> None:
    assert any(fnmatchcase(check, pattern) for pattern in FAULTS[name].checks)
    trial = Trials(CHECKS, CONTEXT).run(dataclasses.replace(FAULTS[name], checks=(check,)))
    # By its verdict: a fault that breaks down tells nothing of the check.
    assert trial.caught_by == {check: Verdict.REFUTED}


def test_no_fault_is_not_caught() -> None:
    checks = ("numerics.comparison.null-cosine.sf", "final.table2.row1")
    same = Fault("same", "", "canaryproof.kernels.null_cosine:sf", lambda original: original, checks)
    trial = Trials(CHECKS, CONTEXT).run(same)
    assert trial.caught_by == {}
    assert trial.silent == checks


def _check(judge: object, subject: Subject = Subject.IMPLEMENTATION) -> Check:
    return Check("one", subject, "", "", judge)  # type: ignore[arg-type]


def _verdict(value: bool) -> Outcome:
    return Outcome(Verdict.CONFIRMED if value else Verdict.REFUTED, "", {})


@pytest.mark.parametrize("subject", Subject)
def test_an_error_is_caught_and_a_changed_verdict_too(subject: Subject) -> None:
    fault = Fault("nan", "", "canaryproof.kernels.null_cosine:pdf", lambda _: lambda *_: math.nan, ("one",))
    error = _check(lambda _: _verdict(1 / math.floor(null_cosine.pdf(0.0, 3) + 1.0) > 0.0), subject)
    assert Trials({"one": error}, CONTEXT).run(fault).caught_by == {"one": "ValueError"}
    changed = _check(lambda _: _verdict(bool(null_cosine.pdf(0.0, 3) == 0.5)), subject)
    assert Trials({"one": changed}, CONTEXT).run(fault).caught_by == {"one": "refuted"}


def test_a_document_s_refuted_claim_that_stays_refuted_has_not_noticed() -> None:
    fault = Fault("nan", "", "canaryproof.kernels.null_cosine:pdf", lambda _: lambda *_: math.nan, ("one",))
    check = _check(lambda _: _verdict(False), Subject.DOCUMENT)
    assert Trials({"one": check}, CONTEXT).run(fault).silent == ("one",)


def test_alarms_are_counted() -> None:
    rare = _check(lambda context: _verdict(context.key("x").generate_state(1)[0] % 10 != 3))
    steady = _check(lambda _: _verdict(True))
    assert stochastic([rare, steady], Level.QUICK, 1.0) == [rare]
    found = alarms(rare, Level.QUICK, range(100))
    assert 2 <= len(found) <= 25
    assert {alarm.said for alarm in found} == {"refuted"}


def test_the_command_prints_what_caught_a_fault_and_exits_with_0() -> None:
    result = CliRunner().invoke(main, ["null-cosine.exponent", "finite-bounds.one-tail"])
    assert result.exit_code == 0, result.output
    assert "2 of 2 faults caught" in result.output


def test_the_command_exits_with_1_where_a_fault_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    same = Fault("same", "nothing", "canaryproof.kernels.null_cosine:sf", lambda f: f, ("numerics.null-cosine.sf",))
    monkeypatch.setitem(FAULTS, "same", same)
    result = CliRunner().invoke(main, ["same"])
    assert result.exit_code == 1
    assert "missed same: nothing" in result.output


def test_the_command_names_an_unknown_fault() -> None:
    result = CliRunner().invoke(main, ["nonsense"])
    assert result.exit_code == 2
    assert "there is no fault 'nonsense'" in result.output
