"""The trainings of an experiment, one by one: which there are, and what each leaves."""

import contextlib
import io
import json
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from canaryproof.verify.accounting.training import Accounting, analytical_epsilon
from canaryproof.verify.canaries.participation import Members, Schedule
from canaryproof.verify.engine.executors import EngineError, Lost
from canaryproof.verify.files.reading import InputError, read_scores
from canaryproof.verify.files.writing import own_folder, replaced
from canaryproof.verify.training import assembly, canife, networks, outcome
from canaryproof.verify.training.canife import Auditor, Designing, Road
from canaryproof.verify.training.configuration import Cell, Configuration, Data, Network, Settings
from canaryproof.verify.training.cost import Cost, estimate
from canaryproof.verify.training.data.federation import FederatedData, check_same
from canaryproof.verify.training.networks import Model
from canaryproof.verify.training.outcome import ALL, ATTACKS, CHANGE, FINAL, CanaryScores, audits, densities
from canaryproof.verify.training.training import Course, Round, Training

if TYPE_CHECKING:
    from canaryproof.verify.engine.cluster import Cluster


# What a finished training says of itself: its file is the last to be written.
DONE = "run.json"
_SAVE_EVERY = 30.0  # seconds
# Files of scores by attack.
CANIFE = "canife.npz"
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


class Trainings:
    """The trainings of an experiment.

    Parameters
    ----------
    configuration
        What is to be trained.
    data
        Folder of the data; None where none is needed.

    Attributes
    ----------
    jobs
        All of them.
    federation, model
        Give the clients of a cell's data, and its model: equal settings give one object, so that nothing is read or
        compiled twice.
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
        def road(designing: Designing) -> Road:
            data, network = designing.data, designing.network
            return canife.road(designing, federation(data), model(network, data))

        self.federation, self.model, self._road = federation, model, road

    @contextlib.contextmanager
    def named(self, cell: Cell) -> Iterator[None]:
        """Name the experiment and the cell in whatever goes wrong."""
        try:
            yield
        except ValueError as error:
            place = ", ".join(f"{name} = {value}" for name, value in cell.swept.items())
            raise InputError(f"{self._configuration.name}{f' ({place})' if place else ''}: {error}") from error

    def settings(self, job: Job) -> Settings:
        """Return the settings of a training."""
        return self._configuration.cells[job.cell].settings

    def seeds(self, job: Job) -> assembly.Seeds:
        """Return the seeds of a training."""
        swept = self._configuration.cells[job.cell].swept
        return assembly.seeds(self._configuration.heading.seed, swept, job.repetition, job.run)

    def prepared(self, job: Job) -> tuple[Schedule, Training]:
        """Decide who takes part in a training when, and make its options."""
        settings = self.settings(job)
        clients = self.federation(settings.data).clients
        return assembly.prepared(settings, clients, self.seeds(job), with_canaries=job.with_canaries)

    def auditor(self, job: Job) -> Auditor | None:
        """Return what audits a training by CANIFE; None if it is not to be."""
        settings = self.settings(job)
        # Of a pair with and without random canaries, the one with them.
        if settings.canife is None or (settings.canaries is not None and not job.with_canaries):
            return None
        federation, model = self.federation(settings.data), self.model(settings.model, settings.data)
        training = self.prepared(job)[1]
        return Auditor(
            self._road(Designing.of(settings)), settings, federation, model, training, self.seeds(job).training
        )

    def train(
        self, job: Job, place: Path | None = None, on_round: Callable[[int], object] | None = None
    ) -> dict[str, bytes]:
        """Do a training.

        Parameters
        ----------
        job
            Which.
        place
            Folder for its checkpoints, from the last of which it goes on; None for none.
        on_round
            Told after each round how many are done.

        Returns
        -------
        Its files, ``DONE`` last.

        Raises
        ------
        InputError
            If it diverges, or a checkpoint is damaged.
        """
        # A BLAS of one thread, as elsewhere: its bits depend on how many it has.
        with self.named(self._configuration.cells[job.cell]), threadpool_limits(1, user_api="blas"):
            return self._train(job, place, on_round)

    def _train(self, job: Job, place: Path | None, on_round: Callable[[int], object] | None) -> dict[str, bytes]:
        settings = self.settings(job)
        federation, model = self.federation(settings.data), self.model(settings.model, settings.data)
        training, canary_clients = assembly.trainer(
            settings, federation, model, self.seeds(job), with_canaries=job.with_canaries
        )
        if place is not None:
            own_folder(place)
            with contextlib.suppress(FileNotFoundError):
                training.load(place)
        saved = time.monotonic()

        def after(done: Round) -> None:
            nonlocal saved
            if on_round is not None:
                on_round(done.number + 1)
            if place is not None and time.monotonic() - saved > _SAVE_EVERY:
                training.save(place)
                saved = time.monotonic()

        auditor = self.auditor(job)
        rounds = self.prepared(job)[0].rounds
        course = Course(training, rounds, settings, federation, model, auditor, place)
        course.run(after)
        files: dict[str, bytes] = {}
        found: dict[str, Any] = {
            "accuracy": float(model.accuracy(training.params, federation.test_inputs, federation.test_labels)),
            "seconds": training.seconds,
            "warnings": [],
        }
        if settings.training.until_accuracy is not None:
            found["rounds"] = training.rounds
            if not course.reached:
                found["warnings"].append(
                    f"an accuracy of {settings.training.until_accuracy:g} on {settings.training.accuracy_on} examples "
                    f"was not reached in {rounds} rounds"
                )
        if auditor is not None:
            files[CANIFE] = _bytes(np.savez, **outcome.arrays(course.audits))
            found["seconds"] |= outcome.seconds(course.audits)
        if canary_clients is not None:
            scores = CanaryScores.of(training, canary_clients)
            for attack in ATTACKS:
                observed, unobserved = scores.observed[attack], scores.unobserved[attack]
                files[_SCORES[attack]] = _bytes(np.savez, observed=observed, unobserved=unobserved)
            found["warnings"] += canary_clients.warnings()
            # ``canaryproof audit`` takes the first canaries for the observed ones, which they are not by coins.
            if settings.canaries is not None and settings.canaries.inclusion == "fixed":
                change = self._in_canary_norms(job, training.theta - training.initial)
                files["final.npy"] = _bytes(np.save, change)
        files[DONE] = json.dumps(found).encode()
        return files

    def _in_canary_norms(self, job: Job, change: NDArray[np.float32]) -> NDArray[np.float32]:
        """Divide by a canary's norm in the model, that of the first round: ``norm`` alone depends on it."""
        schedule, training = self.prepared(job)
        participants = len(schedule.clients(0)) + len(schedule.canaries(0))
        return change * np.float32(max(1, participants) / (training.server_rate * training.clip.initial))


def train(configuration: Configuration, data: Path | None, digest: str, number: int) -> dict[str, bytes]:
    """Do a training on a worker of a cluster, without checkpoints.

    Parameters
    ----------
    configuration, data
        As for ``Trainings``.
    digest
        That of its data where the command runs.
    number
        Place of the training in ``Trainings.jobs``.

    Returns
    -------
    Its files.

    Raises
    ------
    InputError
        If the data is not here or is not the same, or the training diverges.
    """
    trainings = _trainings(configuration, data)
    job = trainings.jobs[number]
    check_same(trainings.federation(trainings.settings(job).data), digest, data)
    return trainings.train(job)


# Tasks of one run come one after another.
_trainings = lru_cache(maxsize=1)(Trainings)


def read_facts(place: Path) -> dict[str, Any]:
    """Read what a finished training in a folder says of itself."""
    try:
        found: dict[str, Any] = json.loads((place / DONE).read_text())
    except ValueError as error:
        raise ValueError(f"{place / DONE}: is damaged ({error})") from error
    return found


def read_canary_scores(place: Path) -> CanaryScores:
    """Read the scores of a finished training in a folder."""
    found = {attack: read_scores(place / _SCORES[attack]) for attack in ATTACKS}
    return CanaryScores(
        {attack: scores.observed for attack, scores in found.items()},
        {attack: scores.unobserved for attack, scores in found.items() if scores.unobserved is not None},
    )


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


# Running an experiment: every cell, repetition and run of it, in a folder from which a stopped one goes on.
#
# Each training has a folder of its own: a checkpoint while it lasts; then its canaries' scores and the change of the
# model, which ``canaryproof audit`` takes; last of all ``run.json``, which says that it is done.


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
        with closing(cluster.results("canaryproof.verify.training.experiment:train", tasks)) as results:
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
