"""The core of a watch, by trainings in numpy: honest ones never fail, and faults fail the expected question."""

import json
import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, stats

import canaryproof as cp
from canaryproof.verify.audit.answer.findings import Question, Status
from canaryproof.verify.audit.answer.instruments import noticed_share
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.watch.loop_watch import LoopWatch
from canaryproof.verify.audit.watch.watch_answer import NEVER, answer_of
from canaryproof.verify.audit.watch.watch_record import WatchRecord

MEMBERS, DIM, RATE, STEPS = 1000, 80, 0.2, 48
CLAIM = cp.accounting.poisson(1.0, rate=RATE, rounds=STEPS)


def clipped_sum(rows, norm=1.0):
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True) / norm, 1.0)).sum(axis=0)


def train(
    seed=0,
    steps=STEPS,
    members=MEMBERS,
    dim=DIM,
    claim=CLAIM,
    drawn_rate=RATE,
    noise=1.0,
    counted=1.0,
    clip=clipped_sum,
    wraps=True,
    draw=None,
    divisor=1.0,
    **options,
):
    """Train for some steps, and return the watch; ``noise`` is added, and the accountant counts ``counted``."""
    rng = np.random.default_rng(seed)
    watch = cp.watch(delta=1e-5, claim=claim, members=members, divisor=divisor, **options)
    data = rng.normal(size=(members, dim)) * rng.lognormal(sigma=1.0, size=(members, 1)) / math.sqrt(dim)
    clipping = watch.clipping(clip, 1.0) if wraps else clip
    for t in range(steps):
        drawn = np.flatnonzero(rng.random(members) < drawn_rate) if draw is None else draw(rng, t)
        total = clipping(data[drawn])
        scale = noise(t) if callable(noise) else noise
        release = (total + scale * rng.normal(size=dim)) / divisor
        known = counted(t) if callable(counted) else counted
        watch.step(
            release=release, total=total, gradients=data[drawn], drawn=drawn, noise_multiplier=known, clip_norm=1.0
        )
    return watch


def failed(answer):
    return [finding.question for finding in answer.findings if finding.status is Status.FAILED]


def test_an_honest_training_passes_with_five_answers():
    watch = train()
    answer = watch.close()
    assert (answer.decision.outcome, answer.decision.status) == ("PASSED", 0)
    assert [finding.question for finding in answer.findings] == list(Question)[1:6]
    assert {finding.status for finding in answer.findings} == {Status.AS_CLAIMED}
    text = str(answer)
    assert text.startswith("PASSED: nothing contradicts the claimed ε = ")
    assert max(map(len, text.splitlines())) <= 80
    assert "No watch looks at" in text
    assert json.loads(answer.to_json())["decision"]["outcome"] == "PASSED"
    # Looks after 1, 2, 4, …, 32 steps and at the end; each test that was made counts.
    assert answer.looks == 7
    assert answer.decision.level == pytest.approx(answer.tests * 1e-6)
    assert answer.tests < 7 * 16


# Clippings by which one member changes a sum by more than the clip norm, and their largest changes.
UNSOUND = {
    "none": lambda rows: rows.sum(axis=0),
    "the mean, no example": lambda rows: clipped_sum(rows.mean(axis=0, keepdims=True)) * len(rows),
    "to 1.1 clip norms": lambda rows: clipped_sum(rows, 1.1),
    "each coordinate": lambda rows: np.clip(rows, -1.0, 1.0).sum(axis=0),
    "all scaled by the longest": lambda rows: (rows / max(1.0, np.linalg.norm(rows, axis=1).min(initial=1.0))).sum(
        axis=0
    ),
    "not the first": lambda rows: rows[:1].sum(axis=0) + clipped_sum(rows[1:]),
    "each half": lambda rows: np.concatenate([clipped_sum(each) for each in np.split(rows, 2, axis=1)]),
    "a norm without some coordinates": lambda rows: (
        rows / np.maximum(np.linalg.norm(rows[:, :40], axis=1, keepdims=True), 1.0)
    ).sum(axis=0),
    "forgets what is far": lambda rows: (
        rows
        / np.where(np.linalg.norm(rows, axis=1) > 1000.0, 1.0, np.maximum(np.linalg.norm(rows, axis=1), 1.0))[:, None]
    ).sum(axis=0),
    "pairs": lambda rows: clipped_sum(
        np.add.reduceat(rows, range(0, len(rows), 2), axis=0) if len(rows) else rows, 2.0
    ),
    "not a number": lambda rows: (rows / np.linalg.norm(rows, axis=1, keepdims=True)).sum(axis=0),
}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", UNSOUND)
def test_unsound_clippings_fail_the_clipping_by_a_shadow_member(name):
    # Without a claim, an ε takes no time.
    watch = train(steps=8, clip=UNSOUND[name], claim=None)
    answer = watch.close()
    assert Question.CLIPPING in failed(answer)
    assert watch._record().clipping.worst.is_excessive
    assert "one member more" in answer.finding("clipping").because


def test_a_sound_clipping_of_another_kind_is_not_accused():
    def normalised(rows):
        return (rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 0.01)).sum(axis=0)

    watch = train(clip=normalised)
    answer = watch.close()
    assert (answer.decision.outcome, failed(answer)) == ("CANNOT SAY", [])
    assert answer.finding("clipping").status is Status.CANNOT_SAY
    assert "not that of gradients whose longer ones are scaled" in answer.finding("clipping").because
    assert "; one member more changes it by at most 0.999 clip norms in " in answer.finding("clipping").because
    # Shadow members run in each step after one that is apart.
    assert watch._record().clipping.trials > 7 * STEPS / 2


@pytest.mark.parametrize("length", [0.0, 0.1])
def test_shadow_members_that_are_never_clipped_do_not_show_the_clipping(length):
    def finding(length):
        watch = cp.watch(delta=1e-5)
        watch.take_shadow("a member", np.zeros(4), np.full(4, length / 2), 1.0)
        watch.step(total=np.zeros(4), noise_multiplier=1.0, clip_norm=1.0)
        return watch.close().finding("clipping")

    assert finding(length).status is Status.CANNOT_SAY
    assert finding(length).because.endswith("clip norms in 1 runs of the clipping: no member had to be clipped")
    assert finding(1.0).status is Status.AS_CLAIMED


class Trainer:
    def step(self):
        return "step"

    def __iter__(self):
        return iter(())


class Fixed:
    """It has no attributes of its own."""

    __slots__ = ()

    def step(self):
        return "step"


def test_patches_of_two_watches_pass_through_and_go_whichever_is_closed_first():
    inner = {}
    for first in (0, 1):
        trainer, watches = Trainer(), [cp.watch(delta=1e-5) for _ in range(2)]
        for number, watch in enumerate(watches):
            inner[number] = watch.patch(trainer, "step", lambda number=number: f"{number} {inner[number]()}")
        held = trainer.step
        assert held() == "1 0 step"
        watches[first].close()
        assert held() == trainer.step() == f"{1 - first} step"
        watches[1 - first].close()
        assert (held(), vars(trainer)) == ("step", {})


REFUSED = {
    "no method": (Trainer(), "stop", print, "in a method's place, as Trainer.stop is to be; not None"),
    "no function": (Trainer(), "step", 3, "in a method's place, as Trainer.step is to be; not 3"),
    "of the class": (Trainer(), "__iter__", print, "Python takes __iter__ from the class; patch Trainer, or exchange"),
    "slots": (Fixed(), "step", print, "Fixed does not let step be exchanged; hand out a changed copy"),
    "a tuple": (stats.norm.interval(0.5), "count", print, "tuple does not let count be exchanged; hand out"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_patch_that_cannot_be_is_refused_in_a_line(name):
    *given, words = REFUSED[name]
    with pytest.raises(ValueError, match=f"^patch: .*{words}"):
        cp.watch(delta=1e-5).patch(*given)


def test_a_closed_watch_puts_nothing_in_and_what_fails_to_undo_stops_nothing_else():
    watch, trainer = train(steps=2, claim=None), Trainer()
    watch.patch(trainer, "step", lambda: "patched")
    watch.at_close(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        watch.close()
    assert vars(trainer) == {}
    assert watch.close() == watch.answer()
    assert watch.answer().steps == 2
    for call in (lambda: watch.patch(trainer, "step", print), lambda: watch.at_close(print)):
        with pytest.raises(ValueError, match=r"(patch|at_close): the watch was closed"):
            call()


def test_shadow_sums_are_as_long_as_a_release():
    watch = cp.watch(delta=1e-5)
    watch.take_shadow("a member", np.zeros(4), np.zeros(4), 1.0)
    for call in (
        lambda: watch.take_shadow("a member", np.zeros(5), np.zeros(5), 1.0),
        lambda: watch.step(release=np.zeros(5), total=np.zeros(5), clip_norm=1.0),
    ):
        with pytest.raises(ValueError, match=r"\[4, 5\]"):
            call()


def test_a_sum_that_is_too_long_fails_without_any_gradient():
    watch = cp.watch(delta=1e-5)
    watch.step(total=np.full(4, 2.0), drawn=[0, 1], noise_multiplier=1.0, clip_norm=1.0)
    assert failed(watch.answer()) == [Question.CLIPPING]
    assert "is 2 times as long as 2 clipped gradients can be" in watch.answer().finding("clipping").because
    watch = cp.watch(delta=1e-5)
    watch.step(total=np.full(4, 1.0), drawn=[0, 1], noise_multiplier=1.0, clip_norm=1.0)
    watch.step(total=np.zeros(4), drawn=[], noise_multiplier=1.0, clip_norm=1.0)
    assert failed(watch.answer()) == []


def fixed_batches(_, t):
    return np.arange(MEMBERS // 5) + MEMBERS // 5 * (t % 5)


FAULTS = {
    "half of the noise": ({"noise": 0.5}, [Question.NOISE, Question.LEAK]),
    "nine tenths of the noise": ({"noise": 0.9}, [Question.NOISE, Question.LEAK]),
    "less noise in some steps": ({"noise": lambda t: 0.6 if t % 8 == 3 else 1.0}, [Question.NOISE]),
    "noise that was not counted": ({"noise": 0.0}, [Question.NOISE, Question.LEAK]),
    "a smaller multiplier": ({"noise": 0.8, "counted": 0.8}, [Question.ACCOUNTING, Question.LEAK]),
    "a schedule": (
        {"noise": lambda t: 0.7 ** (t // 24), "counted": lambda t: 0.7 ** (t // 24)},
        [Question.ACCOUNTING, Question.LEAK],
    ),
    "more steps": ({"steps": STEPS + 10}, [Question.ACCOUNTING]),
    "a wrong rate": ({"drawn_rate": 0.25}, [Question.SAMPLING, Question.ACCOUNTING]),
    "fixed batches": ({"draw": fixed_batches}, [Question.SAMPLING]),
    "a fixed size": ({"draw": lambda rng, _: rng.choice(MEMBERS, MEMBERS // 5, replace=False)}, [Question.SAMPLING]),
    "twice": ({"draw": lambda rng, _: rng.integers(MEMBERS, size=MEMBERS // 5)}, [Question.SAMPLING]),
    "a claim that is too small": (
        {"claim": 0.5 * CLAIM.epsilon(1e-5), "rate": RATE},
        [Question.ACCOUNTING, Question.LEAK],
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_fails_the_expected_question(name):
    options, expected = FAULTS[name]
    answer = train(**options).close()
    assert set(expected) <= set(failed(answer))
    assert failed(answer)[0] is expected[0]
    assert answer.decision.outcome == "NOT PASSED"
    assert str(answer).startswith("NOT PASSED: the claimed ε = ")


def test_a_leak_is_judged_at_the_upper_limit_of_the_noise():
    """At the lower limit, or at the estimate of half of all honest trainings, an exact claim is exceeded."""
    leaks = [train(seed=seed, steps=8, claim=cp.accounting.poisson(1.0, rate=RATE, rounds=8)) for seed in range(6)]
    assert {watch.close().finding("leak").status for watch in leaks} == {Status.AS_CLAIMED}
    measured = [watch._record().noise for watch in leaks]
    assert min(noise.share for noise in measured) < 1.0
    freedom = 8 * DIM
    ratio = measured[0].high / measured[0].share
    # By the normal approximation of Wilson and Hilferty.
    least = (1 - 2 / (9 * freedom) - 4.753424 * math.sqrt(2 / (9 * freedom))) ** 3
    assert ratio == pytest.approx(least**-0.5, rel=1e-3)


def test_what_is_not_given_is_not_looked_at():
    watch = cp.watch(delta=1e-5, claim=CLAIM)
    for _ in range(3):
        watch.step()
    answer = watch.close()
    statuses = {finding.question: finding.status for finding in answer.findings}
    assert statuses.pop(Question.ACCOUNTING) is Status.AS_CLAIMED
    assert set(statuses.values()) == {Status.NOT_LOOKED_AT}
    assert answer.decision.outcome == "CANNOT SAY"
    assert "(48 claimed)" in answer.finding("accounting").because
    empty = cp.watch(delta=1e-5).close()
    assert (empty.decision.outcome, empty.looks) == ("CANNOT SAY", 0)
    assert "no step was taken" in str(empty)
    for each in (answer, empty):
        assert f"Never No watch looks at: {'; '.join(NEVER)}." in " ".join(str(each).split())


@pytest.mark.parametrize(
    ("options", "question", "words"),
    [
        ({"steps": 1, "claim": None, "rate": RATE}, "sampling", "a rate that is wrong by 20% would not be noticed"),
        ({"steps": 1, "claim": None, "rate": RATE}, "noise", "noise of 90% of it would not be noticed"),
        ({"claim": None}, "sampling", "no rate is claimed"),
        ({"noise": lambda t: np.inf if t == 3 else 1.0}, "noise", "step 4 released numbers that are not finite"),
        ({"claim": None, "counted": None, "rate": RATE}, "noise", "no noise multiplier is claimed"),
        ({"dim": 1}, "noise", "a release of one number"),
        (
            {"clip": lambda rows: clipped_sum(rows) + np.random.default_rng().normal()},
            "clipping",
            "two runs of the clip",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_cannot_be_decided_is_said_with_its_reason(options, question, words):
    answer = train(**options).close()
    assert answer.decision.outcome == "CANNOT SAY"
    assert answer.finding(question).status is Status.CANNOT_SAY
    assert words in answer.finding(question).because


# What a loop hands over in some steps alone; in the others it has a fault.
HIDDEN = {
    "a tenth of the noise": ({"noise": lambda t: 1.0 if t < 24 else 0.1}, "release", "noise", "24 of 48 steps alone"),
    "no clipped sum": ({}, "total", "noise", "24 of 48 steps alone"),
    "half of the members": ({}, "drawn", "sampling", "24 of 48 steps alone"),
    "no clipping": ({"wraps": False}, "gradients", "clipping", "handed over at 5 of 6 looks"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_steps_that_are_not_handed_over_leave_their_question_open(name, monkeypatch):
    options, hidden, question, words = HIDDEN[name]
    step = LoopWatch.step
    monkeypatch.setattr(
        LoopWatch, "step", lambda self, **given: step(self, **given | ({hidden: None} if self.steps >= 24 else {}))
    )
    answer = train(**options).close()
    assert (answer.decision.outcome, failed(answer)) == ("CANNOT SAY", [])
    finding = answer.finding(question)
    assert finding.status is Status.CANNOT_SAY
    assert words in finding.because


def test_gradients_of_a_step_between_looks_may_be_left_out(monkeypatch):
    step = LoopWatch.step
    monkeypatch.setattr(
        LoopWatch, "step", lambda self, **given: step(self, **given | ({"gradients": None} if self.steps == 2 else {}))
    )
    assert train(wraps=False).close().finding("clipping").status is Status.AS_CLAIMED


def test_a_step_of_nobody_needs_no_clipping():
    watch, rng = cp.watch(delta=1e-5, claim=CLAIM, members=MEMBERS), np.random.default_rng(0)
    clipping = watch.clipping(clipped_sum, 1.0)
    for t in range(8):
        drawn = np.arange(100 if t % 2 else 0)
        total = clipping(rng.normal(size=(100, DIM))) if len(drawn) else np.zeros(DIM)
        watch.step(release=total + rng.normal(size=DIM), total=total, drawn=drawn, clip_norm=1.0)
    assert watch.answer().finding("clipping").status is Status.AS_CLAIMED


def test_functions_are_wrapped_in_jax_alone(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    for wrap in (lambda watch: watch.gradients(clipped_sum, 1.0), lambda watch: watch.noise(SimpleNamespace())):
        with pytest.raises(ValueError, match="wraps functions of JAX, which is not imported; hand each step over"):
            wrap(cp.watch(delta=1e-5))


def test_a_clipping_is_run_with_arrays_of_its_own_library():
    """Neither function takes an array of numpy."""

    def by_torch(rows):
        return (rows / rows.norm(dim=1, keepdim=True).clamp(min=1.0)).sum(dim=0)

    def by_jax(rows):
        jnp = sys.modules["jax"].numpy
        return rows.at[:].divide(jnp.maximum(jnp.linalg.norm(rows, axis=1, keepdims=True), 1.0)).sum(axis=0)

    for clip, library in ((by_jax, "jax"), (by_torch, "torch")):
        made = pytest.importorskip(library, reason=f"needs {library}")
        watch, rows = cp.watch(delta=1e-5), getattr(made, "numpy", made).ones((3, 50))
        assert np.linalg.norm(watch.clipping(clip, 1.0)(rows)) == pytest.approx(3.0)
        assert watch._record().clipping.trials > 5


def test_a_part_of_a_question_that_is_not_looked_at_is_said():
    answer = train().close()
    assert answer.decision.outcome == "PASSED"
    assert "; not looked at: whether a model or a loss mixes examples" in answer.finding("clipping").because
    assert "; not looked at: what moves the parameters besides the releases" in answer.finding("leak").because
    assert "try cp.replay" in " ".join(str(answer).split())
    # Without a shadow member, gradients that did not come are not looked at.
    watch = train(wraps=False, clip=UNSOUND["forgets what is far"])
    assert "not looked at: gradients unlike those that came, whether" in watch.close().finding("clipping").because
    assert "Hand the clipping over (watch.clipping)." in " ".join(str(watch.answer()).split())
    # A finding that fails says nothing else.
    assert "not looked at" not in train(steps=8, claim=None, clip=UNSOUND["none"]).close().finding("clipping").because


def test_fewer_steps_than_claimed_pass_and_are_said():
    answer = train(steps=STEPS - 10).close()
    assert answer.decision.outcome == "PASSED"
    assert "and 38 steps (48 claimed)" in answer.finding("accounting").because


def test_nothing_is_claimed_but_what_is_configured():
    answer = train(claim=None, rate=RATE).close()
    assert answer.decision.outcome == "PASSED"
    assert "nothing contradicts what was configured" in answer.headline
    assert "as configured" in answer.finding("accounting").because
    # Every member in every step: nothing is counted on.
    whole = train(claim=None, rate=1.0, drawn_rate=1.0, steps=16, members=20).close()
    assert whole.finding("sampling").status is Status.AS_CLAIMED
    known = train(claim=cp.accounting.gaussian(1.0, participations=30), steps=40).close()
    assert known.finding("sampling").status is Status.AS_CLAIMED
    often = train(claim=cp.accounting.gaussian(1.0, participations=3), steps=40).close()
    assert Question.SAMPLING in failed(often)


def epochs(batches):
    """Return how members are drawn in shuffled epochs of so many batches."""
    order = np.arange(MEMBERS)

    def draw(rng, t):
        nonlocal order
        if t % batches == 0:
            order = rng.permutation(MEMBERS)
        return np.split(order, batches)[t % batches]

    return draw


# Claims of batches of a shuffle, and the decision after the last step.
SHUFFLED = {
    "participations": (cp.accounting.gaussian(1.0, participations=6, rounds=STEPS), "PASSED"),
    "shuffled, add-or-remove": (
        cp.accounting.shuffled(1.0, batches=8, epochs=6, neighbours="add-or-remove"),
        "PASSED",
    ),
    "shuffled, replace": (cp.accounting.shuffled(1.0, batches=8, epochs=6, neighbours="replace"), "PASSED"),
    "fixed batches": (
        cp.accounting.fixed_batches(1.0, batch=125, records=MEMBERS, rounds=STEPS, neighbours="add-or-remove"),
        "CANNOT SAY",
    ),
    "an ε, without a rate": (0.1, "CANNOT SAY"),
    "an ε that holds for any rate": (40.0, "CANNOT SAY"),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_batches_of_a_shuffle_are_never_failed_at_any_step_nor_without_a_record_of_members(name):
    claim, outcome = SHUFFLED[name]
    for steps in (3, 11, 20):
        assert failed(train(claim=claim, draw=epochs(8), steps=steps).answer()) == []
    answer = train(claim=claim, draw=epochs(8)).close()
    assert failed(answer) == []
    assert answer.decision.outcome == outcome, str(answer)
    # Without a rate ε is at most that of members who are not drawn by chance.
    accounted = Status.CANNOT_SAY if name == "an ε, without a rate" else Status.AS_CLAIMED
    assert answer.finding("accounting").status is accounted
    watch = cp.watch(delta=1e-5, claim=claim)
    rng = np.random.default_rng(3)
    for _ in range(STEPS):
        watch.step(release=rng.normal(size=50), total=np.zeros(50), noise_multiplier=1.0, clip_norm=1.0)
    assert failed(watch.close()) == []


def test_batches_that_a_claim_of_a_shuffle_does_not_allow_fail_the_sampling():
    claim = cp.accounting.shuffled(1.0, batches=8, epochs=6, neighbours="add-or-remove")
    # A member takes part twice in the first epoch.
    answer = train(claim=claim, draw=lambda _, t: np.arange(125) + (125 * t if t < 7 else 0), steps=8).close()
    assert Question.SAMPLING in failed(answer)
    assert "a member took part in 2 steps, claimed 1 at most" in answer.finding("sampling").because
    fixed = cp.accounting.fixed_batches(1.0, batch=100, records=MEMBERS, rounds=STEPS, neighbours="replace")
    answer = train(claim=fixed, draw=epochs(8)).close()
    assert Question.SAMPLING in failed(answer)
    assert "a step has 125 members, claimed 100" in answer.finding("sampling").because


def test_a_batch_of_fixed_size_has_another_member_in_anothers_place():
    claim = cp.accounting.fixed_batches(1.0, batch=125, records=MEMBERS, rounds=8, neighbours="add-or-remove")
    watch = train(claim=claim, draw=epochs(8), steps=8)
    assert "another member changes the clipped sum by at most" in watch.close().finding("clipping").because
    assert 1.2 < watch._record().clipping.worst.change <= 2.001


def test_a_claimed_schedule_of_noise_has_its_rate_and_passes():
    dp_accounting = pytest.importorskip("dp_accounting")
    parts = [
        dp_accounting.SelfComposedDpEvent(
            dp_accounting.PoissonSampledDpEvent(RATE, dp_accounting.GaussianDpEvent(sigma)), STEPS // 2
        )
        for sigma in (1.0, 1.5)
    ]
    claim = cp.accounting.from_event(dp_accounting.ComposedDpEvent(parts))
    half = {"noise": lambda t: 1.0 if t < STEPS // 2 else 1.5}
    answer = train(claim=claim, counted=half["noise"], **half).close()
    assert answer.decision.outcome == "PASSED", str(answer)


def test_no_level_is_printed_where_no_statistical_test_was_made():
    watch = cp.watch(delta=1e-5, claim=CLAIM)
    watch.step()
    assert "No statistical test was made, and no exact check fails by chance." in str(watch.close())


def test_replaced_members_may_change_a_sum_by_two_clip_norms():
    claim = cp.accounting.poisson(1.0, rate=RATE, rounds=STEPS, neighbours="replace")
    watch = train(claim=claim)
    assert watch.close().decision.outcome == "PASSED"
    assert 1.5 < watch._record().clipping.worst.change <= 2.001
    # Means of batches: the divisor is the number that is there.
    assert Question.CLIPPING not in failed(train(claim=claim, clip=lambda rows: 0.5 * clipped_sum(rows, 2.0)).close())


def test_a_record_is_a_file_that_answers_again(tmp_path):
    watch = train(divisor=200.0)
    answer = watch.close()
    watch.save(tmp_path / "watch.json")
    written = (tmp_path / "watch.json").read_text()
    record = json_records.read(WatchRecord, json.loads(written))
    assert record == watch._record()
    assert str(answer_of(record)) == str(answer)
    # Counts and sums: no list is as long as the steps or the members are many.
    assert len(written) < 8_000


def test_a_watch_goes_on_from_its_file(tmp_path):
    first = train(steps=32, dim=200)
    first.save(tmp_path / "watch.json")
    second = cp.watch(delta=1e-5, claim=CLAIM, members=MEMBERS)
    second.resume(tmp_path / "watch.json")
    assert second.answer() == first.answer()
    rng = np.random.default_rng(9)
    clip = second.clipping(clipped_sum, 1.0)
    for _ in range(STEPS - 32):
        drawn = np.flatnonzero(rng.random(MEMBERS) < RATE)
        rows = rng.normal(size=(len(drawn), 200))
        total = clip(rows)
        second.step(release=total + rng.normal(size=200), total=total, gradients=rows, drawn=drawn, clip_norm=1.0)
    answer = second.close()
    assert (answer.decision.outcome, answer.steps) == ("PASSED", STEPS)
    assert answer.looks == first._looks + 1
    assert answer.tests > first._tests
    # All squares are one sum.
    noise, parts = second._record().noise, (first._record().noise, second._residuals)
    square = parts[0].steps * parts[0].share ** 2 + parts[1].rounds * parts[1].measured_deviation ** 2
    assert noise.steps == STEPS
    assert noise.share == pytest.approx(math.sqrt(square / noise.steps))
    with pytest.raises(ValueError, match="resume: must be called before the first step"):
        second.resume(tmp_path / "watch.json")
    other = cp.watch(delta=1e-6, claim=CLAIM)
    with pytest.raises(cp.InputError, match=r"watch.json: is of another claim than this watch has"):
        other.resume(tmp_path / "watch.json")
    with pytest.raises(cp.InputError, match="No such file"):
        other.resume(tmp_path / "none.json")


def test_a_failure_before_a_resume_stays(tmp_path):
    # All before the look at step 16 is honest, so that saving has to look at the four steps after it.
    half = train(steps=20, dim=200, noise=lambda t: 1.0 if t < 16 else 0.5)
    half.save(tmp_path / "watch.json")
    watch = cp.watch(delta=1e-5, claim=CLAIM, members=MEMBERS)
    watch.resume(tmp_path / "watch.json")
    assert watch.has_failed
    assert watch._record().noise.steps == 20
    assert Question.NOISE in failed(watch.close())


def test_trainer_stops_at_a_failure_and_writes_the_record(tmp_path):
    args, state, control = (SimpleNamespace() for _ in range(3))
    args.output_dir, state.global_step, control.should_training_stop = tmp_path, 20, False
    watch = train(steps=20)
    watch.on_step_end(args, state, control)
    watch.on_log(args, state, control)
    assert not control.should_training_stop
    (tmp_path / "checkpoint-20").mkdir()
    watch.on_save(args, state, control)
    again = cp.watch(delta=1e-5, claim=CLAIM, members=MEMBERS)
    again.on_train_begin(args, state, control)
    assert again.steps == 20
    watch.on_train_end(args, state, control)
    assert (tmp_path / "watch.json").is_file()
    train(steps=4, noise=0.2).on_step_end(args, state, control)
    assert control.should_training_stop
    with pytest.raises(AttributeError, match="'LoopWatch' object has no attribute 'steps_taken'"):
        _ = watch.steps_taken


def test_whoever_asks_after_each_step_changes_nothing_and_can_stop(monkeypatch):
    asked, step = [], LoopWatch.step

    def step_and_ask(self, **given):
        step(self, **given)
        asked.append(self.has_failed)

    without = train(noise=0.9).close().to_json()
    monkeypatch.setattr(LoopWatch, "step", step_and_ask)
    assert train(noise=0.9).close().to_json() == without
    # It stays failed from a look on.
    stop = asked.index(True) + 1
    assert stop in (4, 8, 16, 32)
    assert asked == [number >= stop for number in range(1, STEPS + 1)]
    asked.clear()
    train(steps=16)
    assert not any(asked)


def test_an_alarm_stays_whatever_later_steps_show(tmp_path):
    # Noise whose upper limit is 0.99 of the claim: ε is 2% too large by then, and no test of the noise fails.
    options, dim = {"delta": 1e-5, "members": MEMBERS, "rate": RATE}, 20_000
    rng = np.random.default_rng(0)

    def trained(asks):
        watch = cp.watch(**options)
        for share in (0.9685, 0.99):
            noise = rng.normal(size=dim)
            noise *= 0.3 * share * math.sqrt(dim) / np.linalg.norm(noise)
            watch.step(release=noise, total=np.zeros(dim), noise_multiplier=0.3, clip_norm=1.0)
            if asks:
                assert watch.has_failed
        return watch

    assert not failed(trained(asks=False).close())
    watch = trained(asks=True)
    for answer in (watch.answer(), watch.close()):
        assert failed(answer) == [Question.LEAK]
        assert answer.finding("leak").because.endswith("(at the look after 1 step, where it had failed)")
    assert watch.has_failed
    watch.save(tmp_path / "watch.json")
    again = cp.watch(**options)
    again.resume(tmp_path / "watch.json")
    assert again.has_failed
    assert failed(again.close()) == [Question.LEAK]


def test_a_file_of_an_earlier_version_is_not_told_that_the_clipping_was_missing():
    record = train()._record()
    old = replace(record, clipping=replace(record.clipping, looks=None))
    finding = answer_of(old).finding("clipping")
    assert finding.status is Status.CANNOT_SAY
    assert finding.because.startswith("the file is of an earlier version, and does not say at which looks")
    document = json_records.to_document(record)
    del document["clipping"]["looks"], document["alarms"]
    assert json_records.read(WatchRecord, document) == old


def test_looks_cost_at_most_two_and_a_half_times_the_steps_of_any_rule_of_their_level():
    """No rule notices too little noise more often than the most powerful test of all steps so far, at its level."""

    def fewest(share, level):
        """Return the numbers of noise from which the test of their squares notices with 90%."""

        def excess(numbers):
            return stats.chi2.cdf(stats.chi2.ppf(level, numbers) / share**2, numbers) - 0.9

        return optimize.brentq(excess, 2.0, 1e6)

    looks = 14  # of 2^14 steps
    ratios = [fewest(share, 1e-6) / fewest(share, looks * 1e-6) for share in (0.3, 0.5, 0.7, 0.9, 0.95, 0.98)]
    # A look comes at most so late, and by a factor of 1/ln 2 in the mean over the logarithm of the steps.
    assert 2.4 < 2.0 * max(ratios) <= 2.5
    assert 1.75 < max(ratios) / math.log(2.0) < 1.81
    assert noticed_share(2200) > 0.9 > noticed_share(2000)


def test_an_answer_between_looks_shows_the_last_look():
    watch = train(steps=40)
    between = watch.answer()
    assert (between.steps, between.looked) == (40, 32)
    assert watch.answer() == between
    assert watch.close().looked == 40
    assert watch.close().looks == 7
    with pytest.raises(ValueError, match="step: the watch was closed"):
        watch.step()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda _: cp.watch(delta=2.0), "delta: must"),
        (
            lambda _: cp.watch([1.0], delta=1e-5),
            "as make_private returns it, or a strategy of Flower, not list; a loop of",
        ),
        (lambda _: cp.watch(delta=1e-5, claim=-1.0), "claim: must"),
        (lambda _: cp.watch(delta=1e-5, members=0), "members: must be a whole number"),
        (lambda _: cp.watch(delta=1e-5, rate=0.0), "rate: must lie in"),
        (lambda _: cp.watch(delta=1e-5, divisor=0), "divisor: must be positive"),
        (lambda watch: watch.step(noise_multiplier=-1.0), "noise_multiplier: must be finite and not negative"),
        (lambda watch: watch.step(clip_norm=0.0), "clip_norm: must be positive"),
        (lambda watch: watch.step(release=[1, 2]), "release: must be floating-point numbers"),
        (lambda watch: watch.step(total=[[1.0, 2.0]]), "total: must be a vector"),
        (lambda watch: watch.step(gradients=[1.0, 2.0]), r"gradients: must be of the shape \(n, dim\)"),
        (lambda watch: watch.step(release=[1.0, 2.0], total=[1.0]), "must have one number of coordinates"),
        (lambda watch: watch.step(drawn=[0.5]), "drawn: must be a list of members' numbers"),
        (lambda watch: watch.step(drawn=[-1]), "drawn: must be at least 0"),
        (lambda watch: watch.step(drawn=[7]), "drawn: must be at least 0 and at most 4"),
        (lambda watch: watch.clipping(clipped_sum, -1.0), "clip_norm: must be positive"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line_and_change_nothing(call, words):
    watch = cp.watch(delta=1e-5, members=5)
    with pytest.raises(ValueError, match=words):
        call(watch)
    assert watch.steps == 0
    assert not watch._observations


@pytest.mark.deep
@pytest.mark.parametrize("part", range(20))
def test_of_two_thousand_honest_trainings_none_fails(part):
    """Each part has a hundred of them, as a test has a time limit."""
    rng = np.random.default_rng([1, part])
    for seed in range(100 * part, 100 * (part + 1)):
        steps, members = int(rng.integers(3, 101)), int(rng.integers(50, 1000))
        claim = cp.accounting.poisson(1.0, rate=0.1, rounds=steps) if seed % 2 else None
        options = {"steps": steps, "members": members, "dim": int(rng.integers(2, 60)), "claim": claim}
        answer = train(seed=seed, drawn_rate=0.1, rate=0.1, **options).close()
        assert failed(answer) == [], (seed, options)


@pytest.mark.deep
def test_ten_thousand_steps_of_a_million_numbers_are_watched_at_a_steady_cost():
    claim = cp.accounting.poisson(1.0, rate=0.01, rounds=10_000)
    watch, rng = cp.watch(delta=1e-5, claim=claim, members=10_000), np.random.default_rng(2)
    total = np.zeros(10**6, np.float32)
    for _ in range(10_000):
        release = rng.standard_normal(10**6, np.float32)
        watch.step(release=release, total=total, drawn=np.flatnonzero(rng.random(10_000) < 0.01), clip_norm=1.0)
    answer = watch.close()
    assert failed(answer) == []
    assert {answer.finding(question).status for question in ("noise", "sampling", "leak")} == {Status.AS_CLAIMED}
