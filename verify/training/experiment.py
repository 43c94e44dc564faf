"""Running an experiment: every cell, repetition and run of it, in a folder from which a stopped one goes on.

Each training has a folder of its own: a checkpoint while it lasts; then its canaries' scores and the change of the
model, which ``canaryproof audit`` takes; last of all ``run.json``, which says that it is done.
"""

import shutil
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from canaryproof.verify.accounting.training import Accounting, Members, analytical_epsilon
from canaryproof.verify.engine.executors import EngineError, Lost
from canaryproof.verify.files.writing import own_folder, replaced
from canaryproof.verify.training import assembly, canife, outcome
from canaryproof.verify.training.configuration import Configuration, Settings
from canaryproof.verify.training.cost import Cost, estimate
from canaryproof.verify.training.outcome import CanaryScores, audits, densities

if TYPE_CHECKING:
    from canaryproof.verify.engine.cluster import Cluster
from canaryproof.verify.training.trainings import CANIFE, DONE, Job, Trainings, read_canary_scores, read_facts

# Told what is being done, how many rounds of all trainings are done, and how many there are.
Advance = Callable[[str, int, int], None]

_CHECKPOINT = "checkpoint"


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
        self._configuration, self._data = configuration, data
        self._trainings = trainings = Trainings(configuration, data)
        self._rounds = []
        for i, cell in enumerate(configuration.cells):
            with trainings.named(cell):
                job = Job(i, 0, 0, with_canaries=cell.settings.canaries is not None)
                rounds = trainings.prepared(job)[0].rounds
                self._accounting(job)
                trainings.model(cell.settings.model, cell.settings.data)
                trainings.auditor(job)
                if not canife.audited_rounds(cell.settings.canife, rounds) and cell.settings.canife is not None:
                    raise ValueError(f"canife.every: must be at most the number of rounds, {rounds}")
            self._rounds.append(rounds)

    @property
    def names(self) -> list[str]:
        """Names of the trainings."""
        return [job.name for job in self._trainings.jobs]

    def cost(self, folder: Path) -> Cost | None:
        """Estimate what remains to be done of the experiment in a folder; None if nothing does."""
        left = [job for job in self._trainings.jobs if not (folder / job.name / DONE).exists()]
        return estimate(self._trainings, left) if left else None

    def examples(self) -> list[str]:
        """Return texts that only equal data has."""
        cells = self._configuration.cells
        return [self._trainings.federation(data).digest for data in dict.fromkeys(c.settings.data for c in cells)]

    def run(
        self, folder: Path, advance: Advance, cluster: "Cluster | None" = None
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Do all trainings that are not done, and audit them.

        Parameters
        ----------
        folder
            Where the trainings' folders are; must exist.
        advance
            Told how far it is.
        cluster
            Where to train, if not here.

        Returns
        -------
        What was found, equal for equal experiments, and the seconds of each training.

        Raises
        ------
        InputError
            If a training diverges, a checkpoint is damaged, or the cluster cannot be used.
        EngineError
            If a training is given up, or the scheduler is lost.
        """
        jobs = self._trainings.jobs
        left = [i for i, job in enumerate(jobs) if not (folder / job.name / DONE).exists()]
        total = sum(self._rounds[job.cell] for job in jobs)
        done = total - sum(self._rounds[jobs[i].cell] for i in left)

        def tell(i: int, rounds: int) -> None:
            advance(f"training {jobs[i].name}", done + rounds, total)

        with closing(self._here(left, folder, tell) if cluster is None else self._on(cluster, left)) as trainings:
            for i, files in trainings:
                _keep(files, folder / jobs[i].name)
                done += self._rounds[jobs[i].cell]
                tell(i, 0)
        timings = []
        for job in jobs:
            with self._trainings.named(self._configuration.cells[job.cell]):
                timings.append({**asdict(job), **read_facts(folder / job.name)["seconds"]})
        advance("audits", done, total)
        cells = []
        for i, cell in enumerate(self._configuration.cells):
            with self._trainings.named(cell):
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

    def _here(
        self, numbers: Iterable[int], folder: Path, tell: Callable[[int, int], None]
    ) -> Generator[tuple[int, dict[str, bytes]], None, None]:
        for i in numbers:
            place = folder / self.names[i]
            own_folder(place)
            yield i, self._trainings.train(self._trainings.jobs[i], place / _CHECKPOINT, partial(tell, i))

    def _on(self, cluster: "Cluster", numbers: Iterable[int]) -> Generator[tuple[int, dict[str, bytes]], None, None]:
        trainings, data = self._trainings, self._data and self._data.absolute()
        federations = [trainings.federation(trainings.settings(job).data) for job in trainings.jobs]
        tasks = ((i, (self._configuration, data, federations[i].digest, i)) for i in numbers)
        lost = []
        with closing(cluster.results("canaryproof.verify.training.trainings:train", tasks)) as results:
            for i, found in results:
                if isinstance(found, Lost):
                    lost.append(f"training {self.names[i]}: {found.reason}")
                else:
                    yield i, found
        if lost:
            raise EngineError(lost[0])

    def _outcome(self, number: int, folder: Path) -> dict[str, Any]:
        """Audit a cell."""
        cell = self._configuration.cells[number]
        settings, trainings, plan = cell.settings, self._trainings, cell.settings.canaries
        federation, model = trainings.federation(settings.data), trainings.model(settings.model, settings.data)
        results: list[dict[str, Any]] = []
        accountings = []
        for repetition in range(self._configuration.heading.repetitions):
            runs = range(1 if plan is None else plan.runs)
            jobs = [Job(number, repetition, run, with_canaries=plan is not None) for run in runs]
            accountings += [self._accounting(job) for job in jobs]
            result: dict[str, Any] = {"runs": [self._facts(job, folder) for job in jobs]}
            if plan is not None:
                scores = CanaryScores.pooled([read_canary_scores(folder / job.name) for job in jobs])
                audit = settings.audit
                result["audits"] = audits(scores, model.dim, audit.delta, audit.confidence, plan.inclusion)
                if repetition == 0:
                    result["densities"] = densities(scores, model.dim)
            results.append(result)
        # Under correlated noise it depends on the rounds that were drawn: the largest holds for all trainings.
        accounting = max(accountings, key=lambda found: found.epsilon or 0.0)
        sigma = assembly.noise_multiplier(settings, federation.clients)
        theory = {}
        if settings.canife is not None:
            theory["canife"] = outcome.theory(settings, sigma, self._rounds[number], self._sampling(settings))
        return {
            "swept": dict(cell.swept),
            "settings": asdict(settings),
            "federation": federation.name,
            "clients": federation.clients,
            "test_examples": len(federation.test_labels),
            "dim": model.dim,
            "rounds": self._rounds[number],
            "noise_multiplier": sigma,
            "analytical": asdict(accounting),
            **theory,
            "results": results,
        }

    def _accounting(self, job: Job) -> Accounting:
        """Account for a training: for its random canaries, or where there are none, for its clients."""
        schedule, training = self._trainings.prepared(job)
        delta = self._trainings.settings(job).audit.delta
        members: Members = "canaries" if job.with_canaries else "clients"
        return analytical_epsilon(training.noise, delta, schedule, training.clip, members)

    def _sampling(self, settings: Settings) -> float | None:
        if settings.training.participation != "bernoulli":
            return None
        return settings.training.cohort / self._trainings.federation(settings.data).clients

    def _facts(self, job: Job, folder: Path) -> dict[str, Any]:
        """Return what a run leaves beside its scores, but its times."""
        found, settings = read_facts(folder / job.name), self._trainings.settings(job)
        without = None
        if settings.audit.without_canaries:
            twin = Job(job.cell, job.repetition, job.run, with_canaries=False)
            without = read_facts(folder / twin.name)["accuracy"]
        facts = {
            "canary_seed": self._trainings.seeds(job).canaries,
            "accuracy": found["accuracy"],
            "accuracy_without": without,
            "warnings": found["warnings"],
        }
        if settings.canife is not None:
            rounds = found.get("rounds", self._rounds[job.cell])
            scores = outcome.read(folder / job.name / CANIFE)
            facts["canife"] = outcome.outcome(scores, settings, rounds, self._sampling(settings))
        return facts


def _keep(files: Mapping[str, bytes], place: Path) -> None:
    """Write the files of a training, which needs its checkpoint no more."""
    own_folder(place)
    for name, content in files.items():
        with replaced(place / name) as file:
            file.write(content)
    shutil.rmtree(place / _CHECKPOINT, ignore_errors=True)
