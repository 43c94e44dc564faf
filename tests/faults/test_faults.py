import dataclasses
import math
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import Any, ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

from canaryproof.kernels import gaussian_mechanism, null_cosine
from canaryproof.proofs_check import release_moments
from canaryproof.verify.audit.engine.executors import Local, Task, call
from canaryproof.verify.audit.estimators import epsilon_estimators, simulation
from canaryproof.verify.audit.estimators.moments import Moments
from canaryproof.verify.papers.check.results import Check, Context, Design, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.suites.worst_case.targets import TARGETS
from tests.faults import FAULTS, Fault, seeded, trial
from tests.faults import __main__ as command
from tests.faults.trial import CHECKS, alarms, answer, trials

# A few that take no time, of each topic.
CAUGHT = {
    "null-cosine.gamma": "numerics.null-cosine.pdf",
    "null-cosine.exponent": "numerics.null-cosine.pdf",
    "null-cosine.two-sided": "numerics.comparison.null-cosine.sf",
    "gaussian-mechanism.sign": "numerics.comparison.gaussian-mechanism.delta",
    "gaussian-mechanism.delta-for-log": "numerics.gaussian-mechanism.log-delta",
    "certified.gaussian-mechanism.sign": "numerics.enclosures.gaussian-mechanism",
    "twin.gaussian-mechanism.variance": "numerics.enclosures.gaussian-mechanism",
    "canaries.noise-truncated": "algorithm1.streams.coordinates",
    "algorithm-1.variance": "algorithm1.streams.release",
    "canaries.noise-stream": "algorithm1.streams.coordinates",
    "estimators.one-tail": "estimators.inference.choices",
    "estimators.norm-tails": "estimators.inference.norm",
    "audit.last-canary": "audit.release",
    "input.swapped": "audit.files",
    "blindspots.known-subspace": "blindspots.truth.low-rank",
    "blindspots.no-data": "blindspots.diagnostics.data",
    "finite-bounds.one-tail": "theorems.bounds.plain",
    "training.sign": "training.algorithms",
    "training.split": "training.accounting",
}

# Checks of all topics that take no time: half of all pairs of faults and checks are theirs.
CHEAP = (
    "numerics.comparison.binomial.upper",
    "numerics.comparison.gaussian-mechanism.delta",
    "numerics.comparison.gaussian-mechanism.epsilon",
    "numerics.comparison.gaussian-mechanism.noise-multiplier",
    "numerics.comparison.null-cosine.logpdf",
    "numerics.comparison.null-cosine.sf",
    "numerics.comparison.two-gaussians.epsilon",
    "numerics.enclosures.gaussian-mechanism",
    "numerics.paths.two-gaussians.epsilon.reverse",
    "numerics.paths.two-gaussians.log-delta.both",
    "audit.files",
    "audit.release",
    "audit.scores",
    "estimators.inference.choices",
    "estimators.inference.norm",
    "estimators.inference.standard-errors",
    "estimators.inference.unobserved",
    "algorithm1.streams.coordinates",
    "algorithm1.streams.independence",
    "algorithm1.streams.release",
    "algorithm1.streams.sums",
    "estimators.threshold-is-exact",
    "ours.consistency.difference-quotients",
    "theorems.best-count.plain",
    "theorems.bounds.plain",
    "theorems.limits.known",
    "theorems.moments.known",
    "training.accounting",
    "final.theorem-3.3.target-norm",
)


def test_the_catalogue_has_forty_faults_over_all_topics() -> None:
    assert len(FAULTS) >= 40
    modules = {fault.target.partition(":")[0].split(".")[1] for fault in FAULTS.values()}
    assert modules == {"kernels", "verify", "proofs_check", "reports"}
    assert all(fault.name == name and fault.description for name, fault in FAULTS.items())


def test_every_fault_has_checks_and_can_be_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [fault.name for fault in FAULTS.values() if not trial.checks_of(fault)] == []
    # Nothing is called meanwhile that could be remembered.
    monkeypatch.setattr("tests.faults.fault.forget", lambda: None)
    for fault in FAULTS.values():
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
    imported: Any = simulation.simulate
    fault = Fault(
        "none",
        "",
        "canaryproof.verify.audit.estimators.simulation:simulate",
        lambda _: lambda *_a, **_o: "drawn wrongly",
        (),
    )
    with seeded(fault):
        assert imported(1, 2, 3, 1.0, np.random.SeedSequence(0)) == "drawn wrongly"
    assert len(simulation.simulate(1, 2, 3, 1.0, np.random.SeedSequence(0)).distance) == 1


def test_defaults_and_keywords_reach_the_original_and_come_back() -> None:
    function = epsilon_estimators.pinned_estimate
    kept = function.__code__, function.__defaults__, function.__kwdefaults__
    fault = Fault(
        "same",
        "",
        "canaryproof.verify.audit.estimators.epsilon_estimators:pinned_estimate",
        lambda original: original,
        (),
    )
    moments = Moments(np.asarray(1.0), np.asarray(1.0), 10)
    right = epsilon_estimators.pinned_estimate(moments, 1e-6)
    with seeded(fault):
        assert epsilon_estimators.pinned_estimate(moments, delta=1e-6) == right
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


def _trial(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> trial.Trial:
    monkeypatch.setitem(FAULTS, fault.name, fault)
    trial.usual.cache_clear()
    return trial.trial(fault.name, Effort.QUICK, 0)


@pytest.mark.deep(every=4)
@pytest.mark.parametrize(("name", "check"), CAUGHT.items())
def test_a_fault_is_caught(name: str, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(fnmatchcase(check, pattern) for pattern in FAULTS[name].checks)
    found = _trial(dataclasses.replace(FAULTS[name], checks=(check,)), monkeypatch)
    # By its verdict: a fault that breaks down tells nothing of the check.
    assert (found.caught_by, found.said) == (check, Verdict.REFUTED)


@pytest.mark.deep(every=4)
@pytest.mark.parametrize("check", [*CHEAP, "algorithm1.samplers.d100"])
def test_a_check_that_a_fault_lists_calls_its_function(check: str) -> None:
    listing = [fault for fault in FAULTS.values() if any(fnmatchcase(check, pattern) for pattern in fault.checks)]
    assert listing
    with ExitStack() as stack:
        calls = {
            target: stack.enter_context(seeded(Fault("same", "", target, lambda original: original, ())))
            for target in {fault.target for fault in listing}
        }
        assert CHECKS[check].judge(Context(Effort.QUICK, 0)).verdict
        assert [fault.name for fault in listing if not calls[fault.target].count] == []


def test_no_fault_is_not_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = ("numerics.comparison.null-cosine.sf", "final.table2.row1.sigma")
    same = Fault("same", "", "canaryproof.kernels.null_cosine:sf", lambda original: original, checks)
    found = _trial(same, monkeypatch)
    assert (found.caught_by, found.silent, found.untouched) == ("", checks[:1], checks[1:])


def _register(monkeypatch: pytest.MonkeyPatch, judge: object, subject: Subject = Subject.IMPLEMENTATION) -> None:
    monkeypatch.setitem(CHECKS, "one", Check("one", subject, "", "", judge))  # type: ignore[arg-type]


def _verdict(value: bool, design: Design | None = None) -> Outcome:
    return Outcome(Verdict.CONFIRMED if value else Verdict.REFUTED, "", {}, design)


NAN = Fault("nan", "", "canaryproof.kernels.null_cosine:pdf", lambda _: lambda *_: math.nan, ("one",))


@pytest.mark.parametrize("subject", Subject)
def test_an_error_is_caught_and_a_changed_verdict_too(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch, lambda _: _verdict(1 / math.floor(null_cosine.pdf(0.0, 3) + 1.0) > 0.0), subject)
    assert _trial(NAN, monkeypatch).said == "ValueError"
    _register(monkeypatch, lambda _: _verdict(bool(null_cosine.pdf(0.0, 3) == 0.5)), subject)
    assert _trial(NAN, monkeypatch).said == "refuted"


def test_a_document_s_refuted_claim_that_stays_refuted_has_not_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch, lambda _: _verdict(bool(null_cosine.pdf(0.0, 3) > 9.0)), Subject.DOCUMENT)
    assert _trial(NAN, monkeypatch).silent == ("one",)


def test_a_verdict_that_changed_without_a_call_is_not_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = iter((True, False))
    _register(monkeypatch, lambda _: _verdict(next(verdicts)))
    found = _trial(NAN, monkeypatch)
    assert (found.caught_by, found.untouched) == ("", ("one",))


def test_a_check_that_a_fault_keeps_from_ending_has_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_SHORTEST", 0.5)
    # The first call takes long.
    null_cosine.pdf(0.0, 3)
    _register(monkeypatch, lambda _: _verdict(not time.sleep(600.0 * math.isnan(null_cosine.pdf(0.0, 3)))))
    assert _trial(NAN, monkeypatch).said == "TimeoutError"


def test_a_check_that_is_as_slow_without_a_fault_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_SHORTEST", 0.1)
    _register(monkeypatch, lambda _: _verdict(not time.sleep(0.3) and bool(null_cosine.pdf(0.0, 3) != 9.0)))
    assert _trial(NAN, monkeypatch).silent == ("one",)


DESIGN = Design("nothing", 0.1, "something", 0.9, 1)


@pytest.mark.parametrize("design", [None, DESIGN])
def test_alarms_are_counted(design: Design | None, monkeypatch: pytest.MonkeyPatch) -> None:
    judges = {
        "rare": lambda context: _verdict(context.key("x").generate_state(1)[0] % 10 != 3, design),
        "steady": lambda _: _verdict(True),
    }
    checks = {name: Check(name, Subject.IMPLEMENTATION, "", "", judge) for name, judge in judges.items()}
    monkeypatch.setattr(trial, "CHECKS", checks)
    tried, found = alarms(Effort.QUICK, 100, Here())
    assert tried == {"rare": design}
    assert 2 <= len(found) <= 25
    assert {(alarm.id, alarm.said, alarm.design) for alarm in found} == {("rare", "refuted", design)}
    assert len({alarm.seed for alarm in found}) == len(found)


class Here:
    """Executor of this process, as starting others takes seconds."""

    limit = None
    attempts: ClassVar[dict[int, int]] = {}

    def results(self, function: str, tasks: Iterable[Task]) -> Generator[tuple[int, Any], None, None]:
        for i, arguments in tasks:
            yield i, call(function, arguments)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "Local", lambda _: Here())


@pytest.mark.deep
def test_faults_are_tried_in_another_process() -> None:
    # One, as each takes seconds to start.
    found = {one.fault: one for one in trials(["regime.always", "input.swapped"], Effort.QUICK, 0, Local(1))}
    assert {name: one.caught_by for name, one in found.items()} == {
        "regime.always": "theorems.limits.known",
        "input.swapped": "audit.files",
    }


@pytest.mark.usefixtures("here")
def test_the_command_prints_what_caught_a_fault_and_exits_with_0() -> None:
    result = CliRunner().invoke(command.main, ["input.swapped", "consistency.growth"])
    assert result.exit_code == 0, result.output
    assert "2 of 2 faults caught" in result.output


@pytest.mark.usefixtures("here")
def test_the_command_exits_with_1_where_a_fault_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = ("numerics.null-cosine.sf", "final.table2.row1.sigma")
    monkeypatch.setitem(
        FAULTS, "same", Fault("same", "nothing", "canaryproof.kernels.null_cosine:sf", lambda f: f, checks)
    )
    result = CliRunner().invoke(command.main, ["same"])
    assert result.exit_code == 1
    assert "same: MISSED; numerics.null-cosine.sf does not; final.table2.row1.sigma is not touched" in result.output
    assert result.output.endswith("missed same: nothing\n")


@pytest.mark.usefixtures("here")
def test_the_command_counts_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    never = Check("never", Subject.IMPLEMENTATION, "", "", lambda c: _verdict(c.seed < 2 and bool(c.key("x")), DESIGN))
    monkeypatch.setattr(trial, "CHECKS", {"never": never})
    result = CliRunner().invoke(command.main, ["--alarms", "4"])
    assert result.exit_code == 0, result.output
    assert "alarm never: refuted at seed 2" in result.output
    assert "4 seeds: 2 alarms of 1 tests, of whose levels the sum is 0.1; 0 exceptions" in result.output


def test_the_command_names_an_unknown_fault() -> None:
    result = CliRunner().invoke(command.main, ["nonsense"])
    assert result.exit_code == 2
    assert "there is no fault 'nonsense'" in result.output


def _times(factor: float) -> Callable[[Any], Any]:
    return lambda function: lambda *arguments, **options: function(*arguments, **options) * factor


def _shifted(function: Any) -> Any:
    def faulty(*arguments: Any) -> Any:
        found = function(*arguments)
        return dataclasses.replace(found, lo=found.lo * 1.01, hi=found.hi * 1.01, ball=found.ball * 1.01)

    return faulty


def _swapped(function: Any) -> Any:
    return lambda observed, unobserved: function(unobserved, observed)


def _less_confident(function: Any) -> Any:
    return lambda given, delta, confidence=0.95: function(given, delta, 0.9 * confidence)


def _first_left_out(function: Any) -> Any:
    return lambda path: (lambda scores: dataclasses.replace(scores, observed=scores.observed[1:]))(function(path))


def _mean_too_large(function: Any) -> Any:
    return lambda cosines, dim: (lambda found: dataclasses.replace(found, distance=1.01 * found.distance))(
        function(cosines, dim)
    )


def _second_moment(function: Any) -> Any:
    return lambda name, order: release_moments.raw_moment(name, order) if order == 2 else function(name, order)


def _next_seed(function: Any) -> Any:
    return lambda release, canaries, *rest, **options: function(
        release, dataclasses.replace(canaries, seed=canaries.seed + 1), *rest, **options
    )


# What anybody may do who wants to try the suites: a function that does what another does.
REPLACED = (
    ("kernels.null_cosine:sf", _times(1.01), "numerics.comparison.null-cosine.sf"),
    ("kernels.two_gaussians:epsilon", _times(1.01), "numerics.comparison.two-gaussians.epsilon"),
    ("kernels.gaussian_mechanism:delta", _times(1.01), "numerics.comparison.gaussian-mechanism.delta"),
    ("kernels.binomial:upper", _times(0.99), "numerics.comparison.binomial.upper"),
    ("kernels.canaries:Canaries.sum", _times(1.01), "algorithm1.streams.sums"),
    ("kernels.canaries:Canaries.cosines", _times(0.99), "algorithm1.streams.sums"),
    ("kernels.canaries:noise", _times(np.float32(1.01)), "algorithm1.streams.coordinates"),
    ("kernels.exact_law:cosines", _times(1.2), "algorithm1.samplers.d100"),
    ("kernels.certified.null_cosine:sf", _shifted, "numerics.comparison.null-cosine.sf"),
    ("kernels.certified.two_gaussians:log_of", _times(1.01), "numerics.enclosures.gaussian-mechanism"),
    ("kernels.certified.two_gaussians:epsilon", _shifted, "numerics.comparison.two-gaussians.epsilon"),
    ("kernels.reference.gaussian_mechanism:log_delta", _times(1.01), "numerics.enclosures.gaussian-mechanism"),
    ("verify.audit.estimators.epsilon_estimators:norm_estimate", _less_confident, "estimators.inference.norm"),
    ("verify.audit.estimators.epsilon_estimators:pinned_estimate", _less_confident, "estimators.inference.unobserved"),
    ("verify.audit.estimators.epsilon_estimators:fitted", _less_confident, "estimators.inference.ranges"),
    ("verify.audit.estimators.moments:from_dimension", _mean_too_large, "audit.release"),
    ("verify.audit.estimators.moments:from_two_groups", _swapped, "estimators.inference.unobserved"),
    ("verify.audit.estimators.moments:from_two_groups", _swapped, "audit.scores"),
    ("kernels.threshold_attack:threshold_epsilon", _times(1.01), "estimators.threshold-is-exact"),
    ("verify.audit.estimators.algorithm_1:release", _times(1.01), "algorithm1.streams.release"),
    ("verify.audit.estimators.algorithm_1:cosines", _times(0.99), "algorithm1.streams.release"),
    ("verify.audit.answer.run_audit:audit_release", _next_seed, "audit.release"),
    ("verify.audit.files.reading:read_scores", _first_left_out, "audit.files"),
    ("proofs_check.release_moments:central_moment", _second_moment, "final.theorem-3.3.norm-converges"),
    ("proofs_check.release_moments:moments", lambda f: lambda name: f(name)[::-1], "ours.moments.table"),
    ("proofs_check.finite_bounds:mean_deviates", _times(0.5), "theorems.bounds.plain"),
    ("proofs_check.consistency:best_count", _times(1.01), "theorems.best-count.plain"),
    ("proofs_check.limits:limit", lambda f: lambda expression: f(expression) or 0, "theorems.limits.known"),
)


@pytest.mark.deep(every=4)
@pytest.mark.parametrize(
    ("place", "make", "check"), REPLACED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_replaced_function_is_noticed(place: str, make: Callable[[Any], Any], check: str, quick_run: Any) -> None:
    with seeded(Fault("replaced", "", f"canaryproof.{place}", make, (check,))):
        assert answer(check, quick_run.run.level, quick_run.run.seed).said != quick_run.results[check].verdict
