"""The audit of a training as it goes on: an alarm after a step, and an audit with each checkpoint.

transformers' ``Trainer`` takes it as a callback, a loop by accelerate by its two hooks, and any other loop by the calls
that these make. Nothing here imports torch, transformers or accelerate.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.answer.run_audit import Audit, audit
from canaryproof.verify.audit.canaries.opacus_canaries import OpacusCanaries
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.writing import replace_file

_STATE, _SCORES, _TEXT = "canaries.state", "scores.json", "audit.txt"


@set_module("canaryproof")
class TrainingAudit:
    """Canaries in a training, with their alarm and the audit that goes with each checkpoint.

    With transformers, ``Trainer(..., callbacks=[TrainingAudit(canaries, claim, delta)])`` is all. The training stops at
    an alarm. Each checkpoint has ``audit.txt``, ``scores.json`` for ``canaryproof audit`` and the canaries' state, and
    a training that resumes from it takes that state up. The output folder has the audit at the end.

    With accelerate, two hooks write and read the same files::

        training_audit = TrainingAudit(canaries, claim, delta)
        accelerator.register_save_state_pre_hook(training_audit.save_hook)
        accelerator.register_load_state_pre_hook(training_audit.load_hook)

    and the loop looks at ``training_audit.alarm()`` after each step.

    Parameters
    ----------
    canaries
        Canaries in the training's optimizer.
    claim
        Claim on the whole training, with its noise multiplier.
    delta
        δ of the audit.

    Raises
    ------
    ValueError
        If the claim has no noise multiplier, or δ is out of its range.
    """

    def __init__(self, canaries: OpacusCanaries, claim: Claim, delta: float) -> None:
        if claim.noise_multiplier is None:
            raise ValueError("claim: must have a noise multiplier, as accounting.poisson and accounting.gaussian give")
        claim.epsilon(delta)
        self._canaries, self._claim, self._delta = canaries, claim, delta
        self._noise_multiplier = claim.noise_multiplier
        # The last audit, with its number of steps: an ε takes seconds, and the last checkpoint has the final audit.
        self._audit: tuple[int, Audit] | None = None

    def alarm(self) -> int | None:
        """Return the number of the step with the first alarm against the claimed noise, from 0 on; None without one."""
        return self._canaries.evidence(self._noise_multiplier).alarm()

    def result(self) -> Audit:
        """Audit the steps taken so far, against the claim for that number of steps.

        Returns
        -------
        The audit, for the attacker whom the claim holds against.

        Raises
        ------
        ValueError
            If no step was taken, or the scores are too few.
        """
        rounds, planned = self._canaries.canary_clients.rounds, self._canaries.canary_clients.participation.rounds
        if self._audit is not None and self._audit[0] == rounds:
            return self._audit[1]
        claim = self._claim
        scores = self._canaries.scores("likelihood" if claim.attacker == "sampling" else "known rounds")
        if claim.rate is not None and claim.rounds == planned and scores.record is not None:
            # The claim on the steps so far expects none of the others.
            claim = replace(claim, rounds=rounds)
            vars(scores).update(record=replace(scores.record, missing=0))
        self._audit = rounds, audit(scores, self._delta, claim=claim)
        return self._audit[1]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the canaries' state, the scores and the audit of the steps so far.

        Parameters
        ----------
        folder
            Folder of a checkpoint; it is made if it is not there.

        Raises
        ------
        OSError
            If a file cannot be written.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        self._canaries.canary_clients.save(target / _STATE)
        alarm = self.alarm()
        lines = [] if alarm is None else [f"Alarm at step {alarm + 1}: there is less noise than claimed.", ""]
        try:
            result = self.result()
        except ValueError as error:
            lines.append(f"There is no audit yet: {error}.")
        else:
            result.scores.save(target / _SCORES)
            lines += [str(result), *(f"- {sentence}" for sentence in self._canaries.canary_clients.warnings())]
        with replace_file(target / _TEXT) as file:
            file.write(("\n".join(lines) + "\n").encode())

    def load(self, folder: str | os.PathLike[str]) -> None:
        """Take up the canaries' state that ``save`` wrote.

        Parameters
        ----------
        folder
            Folder of a checkpoint.

        Raises
        ------
        InputError
            If it has no state, or that of other canaries.
        """
        try:
            self._canaries.canary_clients.load(Path(folder) / _STATE)
        except (OSError, ValueError) as error:
            raise InputError(f"{folder}: the canaries cannot resume: {error}") from error

    def save_hook(self, models: Any, weights: Any, folder: str) -> None:  # noqa: ARG002
        """Save next to the checkpoint that ``accelerator.save_state`` writes."""
        self.save(folder)

    def load_hook(self, models: Any, folder: str) -> None:  # noqa: ARG002
        """Load the canaries' state from the folder that ``accelerator.load_state`` reads."""
        self.load(folder)

    def on_train_begin(self, args: Any, state: Any, control: Any, **options: Any) -> None:  # noqa: ARG002
        """Take up the state of the checkpoint from which a training resumes."""
        if state.global_step:
            self.load(_checkpoint(args, state))
        self._check_step(state)

    def on_step_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:  # noqa: ARG002
        """Stop the training at an alarm."""
        self._check_step(state)
        if self.alarm() is not None:
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **options: Any) -> None:  # noqa: ARG002
        """Write the audit next to a checkpoint."""
        self.save(_checkpoint(args, state))

    def on_train_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:  # noqa: ARG002
        """Write the audit into the folder of the training."""
        self.save(args.output_dir)

    def _check_step(self, state: Any) -> None:
        """Refuse a training that does not step through the optimizer that has the canaries."""
        if (steps := self._canaries.canary_clients.rounds) != state.global_step:
            raise ValueError(f"canaries: have seen {steps} steps, and the training {state.global_step}")

    def __getattr__(self, name: str) -> Callable[..., None]:
        # A callback of Trainer has a method for each event, and newer versions have more events.
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing at an event that does not matter here."""


def _checkpoint(args: Any, state: Any) -> Path:
    """Return the folder in which Trainer keeps the checkpoint of a step."""
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"
