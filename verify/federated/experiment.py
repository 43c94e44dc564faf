"""Running an experiment: every cell, repetition and run of it, in a folder from which a stopped one goes on.

Each training has a folder of its own: a checkpoint while it lasts; then its canaries' scores and the change of the
model, which ``canaryproof audit`` takes; last of all ``run.json``, which says that it is done.
"""

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.federated import assembly, checkpoint, models
from canaryproof.verify.federated.accounting import analytical_epsilon
from canaryproof.verify.federated.configuration import Cell, Configuration
from canaryproof.verify.federated.data.federation import Federation
from canaryproof.verify.federated.models import Model
from canaryproof.verify.federated.options import Training
from canaryproof.verify.federated.outcome import ALL, ATTACKS, CHANGE, FINAL, CanaryScores, audits, densities
from canaryproof.verify.federated.schedules import Schedule
from canaryproof.verify.federated.settings import Data, Network, Settings
from canaryproof.verify.federated.training import Round
from canaryproof.verify.input_files import InputError, read_scores
from canaryproof.verify.output_files import own_folder, replaced

# Told what is being done, how many rounds of all trainings are done, and how many there are.
Advance = Callable[[str, int, int], None]

_SAVE_EVERY = 30.0  # seconds
_DONE, _CHECKPOINT = "run.json", "checkpoint"
# Files of scores by attack.
_SCORES = {ALL: "rounds.npz", FINAL: "final.npz", CHANGE: "change.npz"}


@dataclass(frozen=True)
class Job:
    """One training of an experiment.

    Attributes
    ----------
    cell, repetition, run
        Numbers of the cell, of its repetition and of the run in it.
    with_canaries
        Whether there are canaries in it.
    """

    cell: int
    repetition: int
    run: int
    with_canaries: bool

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"{self.cell:03}-{self.repetition:03}-{self.run:03}{'' if self.with_canaries else '-without'}"


class Experiment:
    """An experiment with its data.

    Parameters
    ----------
    configuration
        What is to be trained.
    data
        Folder of the data; None where none is needed.

    Raises
    ------
    InputError
        If the data cannot be read, or settings do not fit it or each other.
    """

    def __init__(self, configuration: Configuration, data: Path | None) -> None:
        self._configuration = configuration

        # Equal settings give one object, so that nothing is read or compiled twice.
        @cache
        def federation(settings: Data) -> Federation:
            return assembly.federation(settings, data, configuration.heading.seed)

        @cache
        def model(network: Network, settings: Data) -> Model:
            return models.model(network.name, federation(settings), network.hidden)

        self._federation, self._model = federation, model
        self._rounds = []
        for i, cell in enumerate(configuration.cells):
            with self._named(cell):
                schedule, training = self._prepared(Job(i, 0, 0, with_canaries=True))
                analytical_epsilon(training.noise, cell.settings.audit.delta, schedule, training.clip)
                self._model(cell.settings.model, cell.settings.data)
            self._rounds.append(schedule.rounds)

    def examples(self) -> list[str]:
        """Return texts that only equal data has."""
        found = (self._federation(data) for data in dict.fromkeys(c.settings.data for c in self._configuration.cells))
        return [checkpoint.digest(d.inputs, d.labels, d.starts, d.test_inputs, d.test_labels) for d in found]

    def run(self, folder: Path, advance: Advance) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Do all trainings that are not done, and audit them.

        Parameters
        ----------
        folder
            Where the trainings' folders are; must exist.
        advance
            Told how far it is.

        Returns
        -------
        What was found, equal for equal experiments, and the seconds of each training.

        Raises
        ------
        InputError
            If a training diverges, or a checkpoint is damaged.
        """
        jobs = list(self._jobs())
        total, done = sum(self._rounds[job.cell] for job in jobs), 0
        timings = []
        for job in jobs:
            words = f"training {job.name}"

            def on_round(rounds: int, before: int = done, words: str = words) -> None:
                advance(words, before + rounds, total)

            with self._named(self._configuration.cells[job.cell]):
                found = self._trained(job, folder / job.name, on_round)
            done += self._rounds[job.cell]
            timings.append({**asdict(job), **found["seconds"]})
        advance("audits", done, total)
        cells = []
        for i, cell in enumerate(self._configuration.cells):
            with self._named(cell):
                cells.append(self._outcome(i, folder))
        heading = self._configuration.heading
        document = {
            "name": self._configuration.name,
            "size": self._configuration.size,
            **asdict(heading),
            "axes": self._configuration.axes,
            "cells": cells,
        }
        return document, timings

    def _jobs(self) -> Iterator[Job]:
        for i, cell in enumerate(self._configuration.cells):
            for repetition in range(self._configuration.heading.repetitions):
                for run in range(cell.settings.canaries.runs):
                    yield Job(i, repetition, run, with_canaries=True)
                    if cell.settings.audit.without_canaries:
                        yield Job(i, repetition, run, with_canaries=False)

    @contextlib.contextmanager
    def _named(self, cell: Cell) -> Iterator[None]:
        """Name the experiment and the cell in whatever goes wrong."""
        try:
            yield
        except ValueError as error:
            place = ", ".join(f"{name} = {value}" for name, value in cell.swept.items())
            raise InputError(f"{self._configuration.name}{f' ({place})' if place else ''}: {error}") from error

    def _settings(self, job: Job) -> Settings:
        return self._configuration.cells[job.cell].settings

    def _prepared(self, job: Job) -> tuple[Schedule, Training]:
        settings = self._settings(job)
        clients = self._federation(settings.data).clients
        return assembly.prepared(settings, clients, self._seeds(job), with_canaries=job.with_canaries)

    def _seeds(self, job: Job) -> assembly.Seeds:
        swept = self._configuration.cells[job.cell].swept
        return assembly.seeds(self._configuration.heading.seed, swept, job.repetition, job.run)

    def _trained(self, job: Job, place: Path, on_round: Callable[[int], None]) -> dict[str, Any]:
        """Train unless that is done, and return what ``run.json`` says."""
        if (place / _DONE).exists():
            return _read_facts(place)
        settings = self._settings(job)
        federation, model = self._federation(settings.data), self._model(settings.model, settings.data)
        training, canary_clients = assembly.trainer(
            settings, federation, model, self._seeds(job), with_canaries=job.with_canaries
        )
        own_folder(place)
        own_folder(place / _CHECKPOINT)
        with contextlib.suppress(FileNotFoundError):
            training.load(place / _CHECKPOINT)
        saved = time.monotonic()

        def after(done: Round) -> None:
            nonlocal saved
            on_round(done.number + 1)
            if time.monotonic() - saved > _SAVE_EVERY:
                training.save(place / _CHECKPOINT)
                saved = time.monotonic()

        training.run(on_round=after)
        found: dict[str, Any] = {
            "accuracy": float(model.accuracy(training.params, federation.test_inputs, federation.test_labels)),
            "seconds": training.seconds,
        }
        if canary_clients is not None:
            _write_scores(CanaryScores.of(training, canary_clients), place)
            found["warnings"] = canary_clients.warnings()
            # ``canaryproof audit`` takes the first canaries for the observed ones, which they are not by coins.
            if settings.canaries.inclusion == "fixed":
                with replaced(place / "final.npy") as file:
                    np.save(file, self._in_canary_norms(job, training.theta - training.initial))
        with replaced(place / _DONE) as file:
            file.write(json.dumps(found).encode())
        shutil.rmtree(place / _CHECKPOINT, ignore_errors=True)
        return found

    def _in_canary_norms(self, job: Job, change: NDArray[np.float32]) -> NDArray[np.float32]:
        """Divide by a canary's norm in the model, that of the first round: ``norm`` alone depends on it."""
        schedule, training = self._prepared(job)
        participants = len(schedule.clients(0)) + len(schedule.canaries(0))
        return change * np.float32(max(1, participants) / (training.server_rate * training.clip.initial))

    def _outcome(self, number: int, folder: Path) -> dict[str, Any]:
        """Audit a cell."""
        cell = self._configuration.cells[number]
        settings = cell.settings
        federation, model = self._federation(settings.data), self._model(settings.model, settings.data)
        results: list[dict[str, Any]] = []
        accountings = []
        for repetition in range(self._configuration.heading.repetitions):
            jobs = [Job(number, repetition, run, with_canaries=True) for run in range(settings.canaries.runs)]
            scores = CanaryScores.pooled([_read_scores(folder / job.name) for job in jobs])
            plan = settings.audit
            for schedule, training in map(self._prepared, jobs):
                accountings.append(analytical_epsilon(training.noise, plan.delta, schedule, training.clip))
            result: dict[str, Any] = {
                "runs": [self._facts(job, folder) for job in jobs],
                "audits": audits(scores, model.dim, plan.delta, plan.confidence, settings.canaries.inclusion),
            }
            if repetition == 0:
                result["densities"] = densities(scores, model.dim)
            results.append(result)
        # Under correlated noise it depends on the rounds that were drawn: the largest holds for all trainings.
        accounting = max(accountings, key=lambda found: found.epsilon or 0.0)
        return {
            "swept": dict(cell.swept),
            "settings": asdict(settings),
            "federation": federation.name,
            "clients": federation.clients,
            "test_examples": len(federation.test_labels),
            "dim": model.dim,
            "rounds": self._rounds[number],
            "noise_multiplier": assembly.noise_multiplier(settings),
            "analytical": asdict(accounting),
            "results": results,
        }

    def _facts(self, job: Job, folder: Path) -> dict[str, Any]:
        """Return what a run leaves beside its scores, but its times."""
        found = _read_facts(folder / job.name)
        without = None
        if self._settings(job).audit.without_canaries:
            twin = Job(job.cell, job.repetition, job.run, with_canaries=False)
            without = _read_facts(folder / twin.name)["accuracy"]
        return {
            "canary_seed": self._seeds(job).canaries,
            "accuracy": found["accuracy"],
            "accuracy_without": without,
            "warnings": found["warnings"],
        }


def _read_facts(place: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((place / _DONE).read_text())
    except ValueError as error:
        raise ValueError(f"{place / _DONE}: is damaged ({error})") from error
    return found


def _write_scores(scores: CanaryScores, place: Path) -> None:
    for attack in ATTACKS:
        with replaced(place / _SCORES[attack]) as file:
            np.savez(file, observed=scores.observed[attack], unobserved=scores.unobserved[attack])


def _read_scores(place: Path) -> CanaryScores:
    found = {attack: read_scores(place / _SCORES[attack]) for attack in ATTACKS}
    return CanaryScores(
        {attack: scores.observed for attack, scores in found.items()},
        {attack: scores.unobserved for attack, scores in found.items() if scores.unobserved is not None},
    )
