"""The course of a training: its rounds, CANIFE's audits on the way, and the accuracy at which it ends."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from canaryproof.verify.federated.canife_audits import Audit, Auditor
from canaryproof.verify.federated.data.federation import FederatedData
from canaryproof.verify.federated.models import Model, Params
from canaryproof.verify.federated.settings import Settings
from canaryproof.verify.federated.training import Round, Trainer
from canaryproof.verify.output_files import replaced

# Clients whose examples show the accuracy on training data; ours, as the paper does not say on which it is.
_SHOWN = 1000


class Course:
    """The course of a training.

    Parameters
    ----------
    trainer
        The training, perhaps from a checkpoint on.
    rounds
        Its rounds, at most.
    settings
        Settings.
    data, model
        Clients and what they train.
    auditor
        Its audits; None if there are none.
    place
        Folder for audits that are done, to which a stopped training returns; None for none.

    Attributes
    ----------
    audits
        Audits done.
    reached
        Whether the accuracy was reached at which the training was to end.
    """

    def __init__(
        self,
        trainer: Trainer,
        rounds: int,
        settings: Settings,
        data: FederatedData,
        model: Model,
        auditor: Auditor | None,
        place: Path | None,
    ) -> None:
        self._trainer, self._rounds, self._training = trainer, rounds, settings.training
        self._auditor, self._place, self._model = auditor, place, model
        self._every = None if settings.canife is None else settings.canife.every
        self.audits: list[Audit] = []
        self.reached = False
        if self._training.until_accuracy is not None:
            self._shown = shown(data, self._training.accuracy_on, settings.data.examples_per_client)

    def run(self, on_round: Callable[[Round], object]) -> None:
        """Do the rounds that remain, with all audits.

        Parameters
        ----------
        on_round
            Called after each round.

        Raises
        ------
        DivergenceError
            As for ``Trainer.round``.
        ValueError
            If an audit that was done before cannot be read.
        """
        trainer, checked = self._trainer, self._training.accuracy_every
        every = self._every if self._auditor is not None else None
        if every is not None:
            # Those of before a stop.
            self.audits = [self._read(number) for number in range(every, trainer.rounds, every)]
        ends = self._training.until_accuracy is not None
        while True:
            done = trainer.rounds
            if every is not None and done and done % every == 0:
                self._audit(done)
            if ends and done and (done % checked == 0 or done == self._rounds) and self._is_reached():
                self.reached = True
                break
            if done == self._rounds:
                break
            steps = [step for step in (every, checked if ends else None) if step is not None]
            stops = [done - done % step + step for step in steps]
            trainer.run(until=min([self._rounds, *stops]), on_round=on_round)
        if self._auditor is not None and every is None:
            self._audit(trainer.rounds)

    def _is_reached(self) -> bool:
        assert self._training.until_accuracy is not None
        return accuracy(self._model, self._trainer.params, self._shown) >= self._training.until_accuracy

    def _audit(self, rounds: int) -> None:
        assert self._auditor is not None
        file = self._file(rounds)
        if file is None or not file.exists():
            found = self._auditor.audit(self._trainer.params, rounds)
            if file is not None:
                with replaced(file) as writing:
                    writing.write(json.dumps(found).encode())
        else:
            found = self._read(rounds)
        self.audits.append(found)

    def _file(self, rounds: int) -> Path | None:
        return None if self._place is None else self._place / f"canife-{rounds}.json"

    def _read(self, rounds: int) -> Audit:
        file = self._file(rounds)
        assert file is not None
        try:
            found: Audit = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise ValueError(f"{file}: is missing or damaged ({error})") from error
        return found


def shown(data: FederatedData, accuracy_on: str, examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the examples on which an accuracy is looked at.

    Parameters
    ----------
    data
        Whose examples.
    accuracy_on
        ``test``: all that are held out; ``train``: those of up to a thousand clients, evenly spaced.
    examples
        Examples that a client trains on at most.
    """
    if accuracy_on == "test":
        return data.test_inputs, data.test_labels
    clients = np.unique(np.linspace(0, data.clients - 1, min(_SHOWN, data.clients)).astype(np.int64))
    inputs, labels, mask = data.cohort(clients, examples)
    return inputs[mask > 0.0], labels[mask > 0.0]


def accuracy(model: Model, params: Params, examples: tuple[np.ndarray, np.ndarray]) -> float:
    """Return a model's accuracy on examples."""
    return float(model.accuracy(params, *examples))
