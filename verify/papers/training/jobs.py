"""The trainings of an experiment, one by one: their rounds with CANIFE's audits, and what each leaves."""

import contextlib
import io
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import gaussian
from canaryproof.verify.audit.canaries.participation import Schedule
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.audit.files.reading import read_scores
from canaryproof.verify.audit.files.writing import own_folder, replace_file
from canaryproof.verify.papers.accounting.training import analytical_epsilon, patterns
from canaryproof.verify.papers.records.report_input import read_record
from canaryproof.verify.papers.records.training_record import (
    CanifeScores,
    Finished,
    Job,
    KnownRoundsRecord,
    PartSeconds,
)
from canaryproof.verify.papers.training import assembly, canife_audits, canife_record, networks
from canaryproof.verify.papers.training.canary_scores import ALL, ATTACKS, CHANGE, FINAL, CanaryScores, known_rounds
from canaryproof.verify.papers.training.canife_audits import Auditor, Compiled, Designing, audited_rounds
from canaryproof.verify.papers.training.configuration import Cell, Configuration, Data, Network, Settings
from canaryproof.verify.papers.training.data.federation import FederatedData, check_same
from canaryproof.verify.papers.training.networks import Model, Params
from canaryproof.verify.papers.training.noise import Independent
from canaryproof.verify.papers.training.trainer import Round, Trainer, Training

# File of a finished training's facts, the last to be written.
DONE = "run.json"
_SAVE_EVERY = 30.0  # seconds
# Files of scores by attack.
CANIFE = "canife.npz"
_SCORES = {ALL: "rounds.npz", FINAL: "final.npz", CHANGE: "change.npz"}


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
            with replace_file(file) as writing:
                writing.write(json.dumps(to_document(audit)).encode())
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


class Trainings:
    """The trainings of an experiment.

    ``federation`` and ``model`` give the clients of a cell's data, and its model: equal settings give one object, so
    that nothing is read or compiled twice.
    """

    def __init__(self, configuration: Configuration, data: Path | None) -> None:
        self._configuration = configuration
        self.jobs = tuple(_jobs(configuration))

        @cache
        def federation(settings: Data) -> FederatedData:
            return assembly.federation(settings, data, configuration.heading.seed)

        @cache
        def model(network: Network, settings: Data) -> Model:
            return networks.model(network.name, federation(settings), network.hidden)

        @cache
        def compiled(designing: Designing) -> Compiled:
            data, network = designing.data, designing.network
            return canife_audits.compiled(designing, federation(data), model(network, data))

        self.federation, self.model, self._compiled = federation, model, compiled

    @contextlib.contextmanager
    def named(self, cell: Cell) -> Iterator[None]:
        """Name the experiment and the cell in whatever goes wrong."""
        try:
            yield
        except InputError:
            raise
        except ValueError as error:
            swept = ", ".join(f"{name} = {value}" for name, value in cell.swept.items())
            raise InputError(f"{self._configuration.name}{f' ({swept})' if swept else ''}: {error}") from error

    def settings(self, job: Job) -> Settings:
        """Return the settings of a training."""
        return self._configuration.cells[job.cell].settings

    def seeds(self, job: Job) -> assembly.Seeds:
        """Return the seeds of a training."""
        swept = self._configuration.cells[job.cell].swept
        return assembly.seeds_of(self._configuration.heading.seed, swept, job.repetition, job.run)

    def prepared(self, job: Job) -> tuple[Schedule, Training]:
        """Decide who takes part in a training when, and make its options."""
        settings = self.settings(job)
        clients = self.federation(settings.data).clients
        return assembly.prepared(settings, clients, self.seeds(job), with_canaries=job.with_canaries)

    def auditor(self, job: Job) -> Auditor | None:
        """Return the auditor of a training by CANIFE; None if it is not to be audited."""
        settings = self.settings(job)
        # In a pair with and without random canaries, the one with them is audited.
        if settings.canife is None or (settings.canaries is not None and not job.with_canaries):
            return None
        federation, model = self.federation(settings.data), self.model(settings.model, settings.data)
        training = self.prepared(job)[1]
        return Auditor(
            self._compiled(Designing.of(settings)), settings, federation, model, training, self.seeds(job).training
        )

    def train(
        self, job: Job, folder: Path | None = None, on_round: Callable[[int], object] | None = None
    ) -> dict[str, bytes]:
        """Do a training.

        ``folder`` is that of its checkpoints, from the last of which it goes on. The file ``DONE`` comes last. An
        InputError says that it diverges, or that a checkpoint is damaged.
        """
        # A BLAS of one thread, as elsewhere: its bits depend on how many it has.
        with self.named(self._configuration.cells[job.cell]), threadpool_limits(1, user_api="blas"):
            return self._train(job, folder, on_round)

    def _train(self, job: Job, folder: Path | None, on_round: Callable[[int], object] | None) -> dict[str, bytes]:
        settings = self.settings(job)
        federation, model = self.federation(settings.data), self.model(settings.model, settings.data)
        trainer = assembly.trainer(settings, federation, model, self.seeds(job), with_canaries=job.with_canaries)
        if folder is not None:
            own_folder(folder)
            if trainer.has_saved(folder):
                trainer.load(folder)
        saved = time.monotonic()

        def after(done: Round) -> None:
            nonlocal saved
            if on_round is not None:
                on_round(done.number + 1)
            if folder is not None and time.monotonic() - saved > _SAVE_EVERY:
                trainer.save(folder)
                saved = time.monotonic()

        auditor = self.auditor(job)
        run = AuditedRun(trainer, settings, federation, model, auditor, folder)
        run.run(after)
        files: dict[str, bytes] = {}
        seconds, warnings, reached = dict(trainer.seconds), [], None
        known: dict[str, KnownRoundsRecord] | None = None
        if settings.training.until_accuracy is not None:
            reached = trainer.rounds
            if not run.reached:
                warnings.append(
                    f"an accuracy of {settings.training.until_accuracy:g} on {settings.training.accuracy_on} examples "
                    f"was not reached in {trainer.participation.rounds} rounds"
                )
        if auditor is not None:
            files[CANIFE] = _bytes(np.savez, **canife_record.arrays(run.audits))
            seconds |= canife_record.seconds(run.audits)
        if trainer.canary_clients is not None:
            scores = CanaryScores.of(trainer)
            for attack in ATTACKS:
                observed, unobserved = scores.observed[attack], scores.unobserved[attack]
                files[_SCORES[attack]] = _bytes(np.savez, observed=observed, unobserved=unobserved)
            if settings.training.noise == "independent":
                options = settings.audit.delta, settings.audit.confidence, self._epsilon(job)
                known = known_rounds(trainer, *options) or None
            warnings += trainer.canary_clients.warnings()
            # ``canaryproof audit`` takes the first canaries for the observed ones, which they are not by coins.
            if settings.canaries is not None and settings.canaries.inclusion == "fixed":
                change = self._in_canary_norms(job, trainer.theta - trainer.initial)
                files["final.npy"] = _bytes(np.save, change)
        test_accuracy = float(model.accuracy(trainer.params, federation.test_inputs, federation.test_labels))
        files[DONE] = json.dumps(
            to_document(Finished(test_accuracy, PartSeconds(**seconds), tuple(warnings), reached, known))
        ).encode()
        return files

    def _epsilon(self, job: Job) -> Callable[[float], float]:
        """Return the function that gives ε of a training's rounds at another noise multiplier."""
        schedule, training = self.prepared(job)
        assert isinstance(training.noise, Independent)
        noise, taken = training.noise, max(map(len, patterns(schedule, "canaries")), default=0)

        def epsilon(noise_multiplier: float) -> float:
            at = replace(noise, noise_multiplier=min(noise_multiplier, rules.NOISE_MULTIPLIER.high))
            if at.noise_multiplier < rules.NOISE_MULTIPLIER.low:
                return math.inf
            known = analytical_epsilon(at, self.settings(job).audit.delta, schedule, training.clip).epsilon
            if known is None:
                return gaussian(at.noise_multiplier, participations=taken).epsilon(self.settings(job).audit.delta)
            return known

        return epsilon

    def _in_canary_norms(self, job: Job, change: NDArray[np.float32]) -> NDArray[np.float32]:
        """Divide by a canary's norm in the model, that of the first round: ``norm`` alone depends on it."""
        schedule, training = self.prepared(job)
        participants = len(schedule.clients(0)) + len(schedule.canaries(0))
        return change * np.float32(max(1, participants) / (training.server_rate * training.clip.initial))


def train(configuration: Configuration, data: Path | None, digest: str, number: int) -> dict[str, bytes]:
    """Do a training on a worker of a cluster, without checkpoints.

    ``number`` is its index in ``Trainings.jobs``, ``digest`` that of the data where the command runs. An InputError
    says that the data here is another, or that the training diverges.
    """
    trainings = _trainings(configuration, data)
    job = trainings.jobs[number]
    check_same(trainings.federation(trainings.settings(job).data), digest, data)
    return trainings.train(job)


# Tasks of one run come one after another.
_trainings = lru_cache(maxsize=1)(Trainings)


def read_facts(folder: Path) -> Finished:
    """Read the facts of a finished training in a folder."""
    return read_record(Finished, folder / DONE)


def read_canary_scores(folder: Path) -> CanaryScores:
    """Read the scores of a finished training in a folder."""
    observed, unobserved = {}, {}
    for attack in ATTACKS:
        scores = read_scores(folder / _SCORES[attack])
        if scores.unobserved is None:
            raise InputError(f"{folder / _SCORES[attack]}: must have an array named unobserved")
        observed[attack], unobserved[attack] = scores.observed, scores.unobserved
    return CanaryScores(observed, unobserved)


def _jobs(configuration: Configuration) -> Iterator[Job]:
    for i, cell in enumerate(configuration.cells):
        for repetition in range(configuration.heading.repetitions):
            if cell.settings.canaries is None:
                yield Job(i, repetition, 0, with_canaries=False)
                continue
            for run in range(cell.settings.canaries.runs):
                yield Job(i, repetition, run, with_canaries=True)
                if cell.settings.audit.without_canaries:
                    yield Job(i, repetition, run, with_canaries=False)


def _bytes(save: Callable[..., object], *arrays: NDArray[Any], **named: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    save(file, *arrays, **named)
    return file.getvalue()
