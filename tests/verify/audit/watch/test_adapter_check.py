"""The check of adapters: that of a loop in numpy is sound, and each with a seeded fault of its own is not."""

from functools import wraps
from types import SimpleNamespace

import numpy as np
import pytest

import canaryproof as cp
from canaryproof.testing import check_adapter
from canaryproof.verify.audit.watch import adapter_check

MEMBERS, DIM, RATE, STEPS = 1000, 1000, 0.2, 32

FAULTS = {"half of the noise": "noise", "no clipping": "clipping", "fixed batches": "sampling"}


def clipped_sum(rows, norm=1.0):
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True) / norm, 1.0)).sum(axis=0)


class Trainer:
    """A trainer of somebody else's, which knows nothing of a watch: its methods are called once a step."""

    def __init__(self, fault):
        self.fault, self.model, self.done = fault, np.zeros(DIM), 0
        self.rng = np.random.default_rng(3)
        self.data = np.random.default_rng(4).normal(size=(MEMBERS, DIM)) / 10.0
        self.noise_multiplier, self.clip_norm = 1.0, 1.0

    def draw(self):
        if self.fault == "fixed batches":
            return np.arange(MEMBERS // 5) + MEMBERS // 5 * (self.done % 5)
        return np.flatnonzero(self.rng.random(MEMBERS) < RATE)

    def gradients(self, drawn):
        return self.model - self.data[drawn]

    def clip(self, gradients):
        return gradients.sum(axis=0) if self.fault == "no clipping" else clipped_sum(gradients, self.clip_norm)

    def add_noise(self, total):
        share = 0.5 if self.fault == "half of the noise" else 1.0
        return total + share * self.noise_multiplier * self.clip_norm * self.rng.normal(size=DIM)

    def step(self):
        drawn = self.draw()
        noised = self.add_noise(self.clip(self.gradients(drawn)))
        self.model = self.model - 0.5 * noised / (RATE * MEMBERS)
        self.done += 1


class Adapter:
    """An adapter, which hands a trainer's steps to a watch. Subclasses have a fault each."""

    def __init__(self, trainer, claim, members=MEMBERS):
        self.trainer, self.seen = trainer, SimpleNamespace()
        self.watch = cp.watch(delta=1e-5, claim=claim, members=members)
        for name in ("draw", "gradients", "clip", "add_noise"):
            setattr(self, f"inner_{name}", self.watch.patch(trainer, name, getattr(self, name)))

    def draw(self):
        self.seen.drawn = self.inner_draw()
        return self.seen.drawn

    def gradients(self, drawn):
        self.seen.gradients = self.inner_gradients(drawn)
        return self.seen.gradients

    def clip(self, gradients):
        self.seen.total = self.watch.clipping(self.inner_clip, 1.0)(gradients)
        return self.seen.total

    def add_noise(self, total):
        self.seen.release = self.inner_add_noise(total)
        self.hand_over(**vars(self.seen))
        return self.seen.release

    def hand_over(self, **step):
        self.watch.step(**step, noise_multiplier=self.trainer.noise_multiplier, clip_norm=1.0)


class NumpyTraining:
    steps = STEPS
    claim = cp.accounting.poisson(1.0, rate=RATE, rounds=STEPS)
    faults = FAULTS
    left_open = exchanged = ()

    def __init__(self, adapter=Adapter):
        self.adapter = adapter

    def start(self, fault):
        return Trainer(fault)

    def watch(self, training, claim):
        return self.adapter(training, claim).watch

    def run(self, training):
        while True:
            training.step()
            yield

    def state(self, training):
        return training.model, training.rng


@pytest.mark.deep
def test_an_adapter_of_a_numpy_loop_is_sound():
    check_adapter(NumpyTraining())


class HidesAStep(Adapter):
    def hand_over(self, **step):
        if self.trainer.done != 5:
            super().hand_over(**step)


class CountsTwice(Adapter):
    def hand_over(self, **step):
        super().hand_over(**step)
        super().hand_over(**step)


class LeavesAPatch(Adapter):
    def __init__(self, trainer, claim):
        super().__init__(trainer, claim)
        trainer.step = trainer.step


class ChangesAGenerator(Adapter):
    def clip(self, gradients):
        if self.watch.is_shadow_due:
            self.trainer.rng.normal()
        return super().clip(gradients)


class SeedsAGenerator(Adapter):
    def clip(self, gradients):
        np.random.seed(7)  # noqa: NPY002
        return super().clip(gradients)


class RoundsTheSum(Adapter):
    def clip(self, gradients):
        return super().clip(gradients).astype(np.float32)


class CopiesAllGradients(Adapter):
    def gradients(self, drawn):
        return super().gradients(drawn).copy()


class KeepsAllGradients(Adapter):
    def __init__(self, trainer, claim):
        self.kept = []
        super().__init__(trainer, claim)
        self.watch.kept = self.kept

    def hand_over(self, **step):
        super().hand_over(**step)
        self.kept.append(step["gradients"])


class KeepsAVector(Adapter):
    def __init__(self, trainer, claim):
        super().__init__(trainer, claim)
        self.watch.kept = []

    def hand_over(self, **step):
        super().hand_over(**step)
        self.watch.kept.append(np.float32(step["release"]))


class StopsAfterForty(Adapter):
    def hand_over(self, **step):
        if self.watch.steps < 40:
            super().hand_over(**step)


class PatchesTheClass(Adapter):
    def __init__(self, trainer, claim):
        super().__init__(trainer, claim)
        inner = Trainer.step
        Trainer.step = wraps(inner)(lambda self: inner(self))


class PatchesNumpy(Adapter):
    def __init__(self, trainer, claim):
        super().__init__(trainer, claim)
        inner = np.flatnonzero
        np.flatnonzero = lambda given: inner(given)


class FailsLater(Adapter):
    """It knows nothing of a watch that is closed."""

    def __init__(self, trainer, claim):
        super().__init__(trainer, claim)
        inner = trainer.step
        trainer.step = lambda: (self.watch.is_shadow_due or self.watch.steps < STEPS or {}["due"], inner())


class ShadowsByItself(Adapter):
    def clip(self, gradients):
        self.watch.clipping(clipped_sum, 1.0)(gradients)
        self.seen.total = self.inner_clip(gradients)
        return self.seen.total


class GoesOverAllSteps(Adapter):
    def __init__(self, trainer, claim):
        self.norms = []
        super().__init__(trainer, claim)

    def hand_over(self, **step):
        super().hand_over(**step)
        self.norms.append(float(step["total"][0]))
        [abs(norm) for norm in self.norms]


class ClipsItself(Adapter):
    """It hands over the gradients as they enter, and the sum that it expects."""

    def clip(self, gradients):
        self.watch.clipping(clipped_sum, 1.0)(gradients)
        self.seen.total = self.inner_clip(gradients)
        self.seen.gradients = self.seen.gradients / np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), 1.0)
        return self.seen.total

    def hand_over(self, **step):
        super().hand_over(**step | {"total": step["gradients"].sum(axis=0)})


class ScalesTheNoise(Adapter):
    """It measures the noise, and calls that the unit."""

    def hand_over(self, **step):
        noise = step["release"] - step["total"]
        super().hand_over(**step | {"release": step["total"] + noise / noise.std()})


class DrawsMembersItself(Adapter):
    def hand_over(self, **step):
        drawn = np.flatnonzero(np.random.default_rng(self.trainer.done).random(MEMBERS) < RATE)
        super().hand_over(release=step["release"], total=step["total"], drawn=drawn)


class StopsAtTheClaim(Adapter):
    def hand_over(self, **step):
        if self.trainer.done < STEPS:
            super().hand_over(**step)


class ForgetsMembers(Adapter):
    def __init__(self, trainer, claim):
        super().__init__(trainer, claim, members=None)


class AnswersByItself(Adapter):
    def __init__(self, trainer, claim):
        super().__init__(trainer, claim)
        answer = self.watch.answer
        self.watch.answer = lambda: SimpleNamespace(**vars(answer()), to_json=lambda: "", cause="")


class LooksWhenAsked(Adapter):
    """It draws for an answer."""

    def __init__(self, trainer, claim):
        super().__init__(trainer, claim)
        answer = self.watch.answer

        def draw_and_answer():
            trainer.rng.normal()
            return answer()

        self.watch.answer = draw_and_answer


class GoesOn(Adapter):
    """It takes no patch away."""

    def __init__(self, trainer, claim):
        super().__init__(trainer, claim)
        self.watch._undone_at_close.clear()

    def clip(self, gradients):
        self.seen.total = self.inner_clip(gradients)
        return self.seen.total

    def hand_over(self, **step):
        if not self.watch._closed:
            super().hand_over(**step)


class RunsNoShadow(Adapter):
    def clip(self, gradients):
        if self.watch.is_shadow_due:
            self.watch.take_shadow("nobody", np.zeros(DIM), np.zeros(DIM), 1.0)
        self.seen.total = self.inner_clip(gradients)
        return self.seen.total


class ExchangesMembers(Adapter):
    def clip(self, gradients):
        if self.watch.is_shadow_due:
            sums = (self.inner_clip(np.vstack([gradients, sign * gradients[:1]])) for sign in (-1.0, 1.0))
            self.watch.take_shadow("the opposite of the first", *sums, 1.0)
        self.seen.total = self.inner_clip(gradients)
        return self.seen.total


UNSOUND = {
    ShadowsByItself: "no fault of the clipping is seen by a shadow member",
    KeepsAVector: "arrays as large as a vector of 1,000 numbers",
    StopsAfterForty: "after step 256 the watch has counted 40",
    PatchesTheClass: "attributes of the training differ at the class Trainer: step = ",
    PatchesNumpy: "after the watch was closed, numpy.flatnonzero is another function than before",
    FailsLater: "step 1 after the watch was closed raised KeyError: 'due'",
    RunsNoShadow: "the honest training is CANNOT SAY: Clipping: one member more changes the clipped sum by at most 0",
    HidesAStep: "after step 6 the watch has counted 5",
    CountsTwice: "after step 1 the watch has counted 2",
    LeavesAPatch: "attributes of the training differ at training: step, step = Trainer.step",
    ChangesAGenerator: "the training's state is not that without a watch",
    SeedsAGenerator: "the global generator of numpy is not in the state",
    RoundsTheSum: "the training's state is not that without a watch",
    CopiesAllGradients: "as if it copied all gradients",
    KeepsAllGradients: "bytes more, which is above a vector",
    GoesOverAllSteps: "a step makes more and more calls",
    ClipsItself: "the fault 'no clipping' must fail clipping",
    ScalesTheNoise: "the fault 'half of the noise' must fail noise",
    DrawsMembersItself: "the fault 'fixed batches' must fail sampling",
    StopsAtTheClaim: "twice as many steps as claimed must fail accounting",
    ForgetsMembers: "the honest training is CANNOT SAY: Sampling",
    AnswersByItself: "the file has another answer than the watch",
    LooksWhenAsked: "the training's state is not that without a watch",
    GoesOn: "attributes of the training differ at training: add_noise",
}


@pytest.mark.deep
@pytest.mark.parametrize("adapter", UNSOUND, ids=lambda each: each.__name__)
def test_an_adapter_with_a_fault_of_its_own_is_not_sound(adapter, monkeypatch):
    for owner, name in ((Trainer, "step"), (np, "flatnonzero")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    with pytest.raises(AssertionError) as raised:
        check_adapter(NumpyTraining(adapter))
    assert UNSOUND[adapter] in str(raised.value)


def test_an_adapter_that_exchanges_members_whatever_is_claimed_accuses_an_honest_training():
    training = NumpyTraining(ExchangesMembers)
    training.claim = cp.accounting.gaussian(1.0, participations=STEPS, neighbours="replace")
    assert adapter_check._failures(adapter_check._watch_of(training, None, 4, training.claim).close()) == []
    words = "the honest training must not fail where {} is claimed: clipping failed"
    assert [*adapter_check._other_claims(training, 1e-5)] == [words.format("an ε alone"), words.format("nothing")]
    assert [*adapter_check._other_claims(NumpyTraining(), 1e-5)] == []


def test_members_that_are_handed_over_need_a_fault_of_the_sampling():
    training = NumpyTraining()
    training.left_open, training.faults = ("sampling",), {"half of the noise": "noise", "no clipping": "clipping"}
    with pytest.raises(AssertionError, match="members are handed over, and faults has none that fails sampling"):
        check_adapter(training)
