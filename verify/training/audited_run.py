"""The rounds of a training with CANIFE's audits on the way or at the end, until it reaches an accuracy or its last."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from canaryproof.verify.check.json_records import written
from canaryproof.verify.files.report_input import read_record
from canaryproof.verify.files.training_record import CanifeScores
from canaryproof.verify.files.writing import replaced
from canaryproof.verify.training.canife_audits import Auditor, audited_rounds
from canaryproof.verify.training.configuration import Settings
from canaryproof.verify.training.data.federation import FederatedData
from canaryproof.verify.training.networks import Model, Params
from canaryproof.verify.training.trainer import Round, Trainer

# Clients whose examples show the accuracy on training data. The number is our choice: the paper does not say on which
# examples its accuracy is.
_SHOWN = 1000


class AuditedRun:
    """A run of a trainer, audited by CANIFE if there is an auditor.

    ``audits`` are those that are done, with files in ``folder`` to which a stopped training returns; ``reached`` says
    whether the accuracy was reached at which it was to end.
    """

    def __init__(
        self,
        trainer: Trainer,
        settings: Settings,
        data: FederatedData,
        model: Model,
        auditor: Auditor | None,
        folder: Path | None,
    ) -> None:
        self._trainer, self._options, self._model = trainer, settings.training, model
        self._auditor, self._folder = auditor, folder
        self._plan = None if auditor is None else settings.canife
        self.audits: list[CanifeScores] = []
        self.reached = False
        if self._options.until_accuracy is not None:
            self._shown = shown(data, self._options.accuracy_on, settings.data.examples_per_client)

    def run(self, on_round: Callable[[Round], object]) -> None:
        """Do the rounds that remain, with all audits.

        A DivergenceError is that of ``Trainer.round``; a ValueError says that an earlier audit cannot be read.
        """
        trainer, rounds = self._trainer, self._trainer.participation.rounds
        at_end = self._plan is not None and self._plan.every is None
        audited = set() if at_end else set(audited_rounds(self._plan, rounds))
        checked: set[int] = set()
        if self._options.until_accuracy is not None:
            checked = {*range(self._options.accuracy_every, rounds, self._options.accuracy_every), rounds}
        self.audits = [self._read(number) for number in sorted(audited) if number < trainer.rounds]
        for done in trainer.pauses(sorted(audited | checked), on_round):
            if done in audited:
                self._audit(done)
            if done in checked and self._is_reached():
                self.reached = True
                break
        if at_end:
            self._audit(trainer.rounds)

    def _is_reached(self) -> bool:
        assert self._options.until_accuracy is not None
        return accuracy(self._model, self._trainer.params, self._shown) >= self._options.until_accuracy

    def _audit(self, rounds: int) -> None:
        assert self._auditor is not None
        file = self._file(rounds)
        if file is not None and file.exists():
            self.audits.append(self._read(rounds))
            return
        audit = self._auditor.audit(self._trainer.params, rounds)
        if file is not None:
            with replaced(file) as writing:
                writing.write(json.dumps(written(audit)).encode())
        self.audits.append(audit)

    def _file(self, rounds: int) -> Path | None:
        return None if self._folder is None else self._folder / f"canife-{rounds}.json"

    def _read(self, rounds: int) -> CanifeScores:
        file = self._file(rounds)
        assert file is not None
        return read_record(CanifeScores, file)


def shown(data: FederatedData, accuracy_on: str, examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the examples on which an accuracy is looked at.

    ``test``: all that are held out; ``train``: those of up to a thousand clients, evenly spaced.
    """
    if accuracy_on == "test":
        return data.test_inputs, data.test_labels
    clients = np.unique(np.linspace(0, data.clients - 1, min(_SHOWN, data.clients)).astype(np.int64))
    inputs, labels, mask = data.cohort(clients, examples)
    return inputs[mask > 0.0], labels[mask > 0.0]


def accuracy(model: Model, params: Params, examples: tuple[np.ndarray, np.ndarray]) -> float:
    """Return a model's accuracy on examples."""
    return float(model.accuracy(params, *examples))
