"""The audit with a training's checkpoints, with a stand-in for Opacus' optimizer and for Trainer's events."""

from types import SimpleNamespace

import numpy as np
import pytest

import canaryproof as cp
from canaryproof.verify.audit.answer import training_audit as module
from canaryproof.verify.audit.files.errors import InputError

STEPS, COUNT, DIM, DELTA = 12, 60, 200, 1e-5
# Every canary is in every step: the ε of a claim with sampling takes seconds.
CLAIM = cp.accounting.gaussian(1.0, participations=STEPS)
SAMPLED = cp.accounting.poisson(1.0, rate=0.5, rounds=STEPS)


class Parameter(np.ndarray):
    """An array that can have gradients."""


class DPOptimizer:
    """The parts of Opacus' optimizer that canaries touch, for one parameter."""

    __module__ = "opacus.optimizers.optimizer"
    accumulated_iterations, max_grad_norm = 1, 1.0

    def __init__(self, noise):
        self.params = [np.zeros(DIM, np.float32).view(Parameter)]
        self.noise_multiplier, self.steps = noise, 0

    def add_noise(self):
        (p,) = self.params
        noise = np.random.default_rng([3, self.steps]).normal(size=DIM)
        p.grad = np.asarray(p.summed_grad + self.noise_multiplier * noise, np.float32)
        self.steps += 1

    def step(self):
        self.params[0].summed_grad = np.full(DIM, 0.25, np.float32)
        self.add_noise()


class Trainer:
    """The events of transformers' Trainer that a callback has."""

    def __init__(self, folder, noise=1.0, claim=CLAIM):
        self.optimizer = DPOptimizer(noise)
        schedule = cp.bernoulli(0, claim.rate or 1.0, STEPS, 5, cp.Insertion(2 * COUNT, COUNT))
        self.canaries = cp.OpacusCanaries(self.optimizer, schedule, 7)
        self.audit = cp.TrainingAudit(self.canaries, claim, DELTA)
        self.args, self.state = SimpleNamespace(output_dir=folder), SimpleNamespace(global_step=0)
        self.control = SimpleNamespace(should_training_stop=False)

    def call(self, event):
        getattr(self.audit, event)(self.args, self.state, self.control, model=None)

    def train(self, until=STEPS, save=(), resume=0):
        self.state.global_step = self.optimizer.steps = resume
        self.call("on_train_begin")
        while self.state.global_step < until and not self.control.should_training_stop:
            self.call("on_step_begin")
            self.optimizer.step()
            self.state.global_step += 1
            self.call("on_step_end")
            if self.state.global_step in save:
                self.call("on_save")
        self.call("on_train_end")
        return self


def read(folder):
    return (folder / "audit.txt").read_text(encoding="utf-8")


def test_a_checkpoint_has_the_audit_of_its_steps_and_the_end_that_of_all(tmp_path):
    trained = Trainer(tmp_path).train(save=[6, STEPS])
    assert f"{STEPS} rounds" in read(tmp_path)
    assert read(tmp_path / f"checkpoint-{STEPS}") == read(tmp_path)
    assert "6 rounds" in read(tmp_path / "checkpoint-6")
    result = trained.audit.result()
    assert (result.decision.outcome, trained.audit.alarm()) == ("PASSED", None)
    # The command line reads the same scores.
    again = cp.Scores.load(tmp_path / "scores.json")
    assert np.array_equal(again.observed, result.scores.observed)


@pytest.mark.deep
def test_with_sampling_a_checkpoint_is_held_against_the_claim_on_so_many_steps(tmp_path):
    trained = Trainer(tmp_path, claim=SAMPLED).train(until=6)
    claimed = cp.accounting.poisson(1.0, rate=0.5, rounds=6).epsilon(DELTA)
    assert f"the claimed ε = {claimed:.3g}" in read(tmp_path).replace("\n", " ")
    assert trained.audit.result().claim == pytest.approx(claimed)
    assert cp.Scores.load(tmp_path / "scores.json").record.missing == 0
    assert trained.canaries.scores("likelihood").record.missing == 6


@pytest.mark.parametrize(
    ("claim", "score", "rounds"),
    [
        (CLAIM, "known rounds", STEPS),
        # The claim on the planned steps is held against those that were taken, of which none is missing.
        (SAMPLED, "likelihood", 6),
        # One on other steps than the planned ones is taken as it is.
        (cp.accounting.poisson(1.0, rate=0.5, rounds=STEPS + 1), "likelihood", STEPS + 1),
    ],
)
def test_a_claim_is_held_against_the_scores_of_its_attacker_in_the_steps_so_far(claim, score, rounds, monkeypatch):
    asked, trainer = [], Trainer(None, claim=claim)
    monkeypatch.setattr(module, "audit", lambda scores, delta, claim: asked.append((scores, delta, claim)))
    for _ in range(6):
        trainer.optimizer.step()
    trainer.audit.result()
    ((scores, delta, held),) = asked
    assert (scores.record.score, delta, held.rounds) == (score, DELTA, rounds if claim.rate else claim.rounds)
    assert scores.record.missing == (0 if rounds == 6 else STEPS - 6)
    # The audit of a step is made once.
    trainer.audit.result()
    trainer.optimizer.step()
    trainer.audit.result()
    assert len(asked) == 2


def test_a_training_that_resumes_ends_with_the_same_bits(tmp_path):
    whole = Trainer(tmp_path / "whole").train(save=[5])
    Trainer(tmp_path / "parts").train(until=5, save=[5])
    parts = Trainer(tmp_path / "parts").train(resume=5)
    assert read(tmp_path / "parts") == read(tmp_path / "whole")
    scores = [each.canaries.scores("known rounds").observed for each in (whole, parts)]
    assert np.array_equal(*scores)


def test_less_noise_stops_the_training_with_an_alarm(tmp_path):
    trained = Trainer(tmp_path, noise=0.1).train()
    assert trained.control.should_training_stop
    assert trained.state.global_step < STEPS
    assert read(tmp_path).startswith(f"Alarm at step {trained.audit.alarm() + 1}: there is less noise than claimed.")


def test_accelerates_hooks_write_and_read_the_same_files(tmp_path):
    trained = Trainer(tmp_path / "trainer").train(save=[STEPS])
    trained.audit.save_hook([], [], str(tmp_path / "loop"))
    files = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in
             ("loop", f"trainer/checkpoint-{STEPS}")]  # fmt: skip
    assert files[0].keys() == files[1].keys()
    assert len(files[0]) == 4
    resumed = Trainer(tmp_path)
    resumed.audit.load_hook([], str(tmp_path / "loop"))
    assert resumed.canaries.canary_clients.rounds == STEPS


def test_an_audit_that_is_not_possible_yet_is_no_error(tmp_path):
    Trainer(tmp_path).train(until=0)
    assert read(tmp_path).startswith("There is no audit yet: ")
    assert not (tmp_path / "scores.json").exists()


def test_what_cannot_be_audited_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"checkpoint-3: the canaries cannot resume: "):
        Trainer(tmp_path).train(resume=3)
    trainer = Trainer(tmp_path)
    trainer.state.global_step = 1
    with pytest.raises(ValueError, match=r"^canaries: have seen 0 steps, and the training 1$"):
        trainer.call("on_step_end")
    with pytest.raises(ValueError, match=r"^claim: must have a noise multiplier"):
        cp.TrainingAudit(trainer.canaries, cp.accounting.epsilon_delta(3.0, DELTA), DELTA)
    with pytest.raises(AttributeError, match="no attribute 'of_anything'"):
        _ = trainer.audit.of_anything
