"""Running an experiment: every cell, repetition and run of it, in a folder from which a stopped one goes on.

Each training has a folder of its own, with a checkpoint while it lasts. At its end come its canaries' scores and the
change of the model, which ``canaryproof audit`` takes. Last comes ``run.json``, which says that it is done.
"""

import shutil
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from canaryproof.verify.audit.accounting.sampling import Members
from canaryproof.verify.audit.engine.executors import EngineError, Lost
from canaryproof.verify.audit.files.writing import own_folder, replace_file
from canaryproof.verify.papers.accounting.training import analytical_epsilon
from canaryproof.verify.papers.records.training_record import (
    Analytical,
    CellRecord,
    ExperimentRecord,
    Job,
    RepetitionRecord,
    TrainingRecord,
    TrainingSeconds,
)
from canaryproof.verify.papers.training import assembly, canife_audits, canife_record
from canaryproof.verify.papers.training.canary_scores import CanaryScores, audits, densities
from canaryproof.verify.papers.training.configuration import Configuration, Settings
from canaryproof.verify.papers.training.cost import Cost, estimate
from canaryproof.verify.papers.training.jobs import CANIFE, DONE, Trainings, read_canary_scores, read_facts

if TYPE_CHECKING:
    from canaryproof.verify.audit.engine.cluster import Cluster

# Called with what is being done, how many rounds of all trainings are done, and how many there are.
Advance = Callable[[str, int, int], None]

_CHECKPOINT = "checkpoint"


class Experiment:
    """An experiment with its data, from a folder where it needs one.

    An InputError says that the data cannot be read, or that settings do not fit it or each other.
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
                model = trainings.model(cell.settings.model, cell.settings.data)
                if cell.settings.canaries is not None:
                    assembly.canaries(cell.settings.canaries, 0, model.dim)
                trainings.auditor(job)
                if not canife_audits.audited_rounds(cell.settings.canife, rounds) and cell.settings.canife is not None:
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
    ) -> tuple[ExperimentRecord, list[TrainingSeconds]]:
        """Do all trainings that are not done in their folders in ``folder``, and audit them.

        Returns what was found, equal for equal experiments, and the seconds of each training; ``advance`` is called
        with how far it is. An InputError says that a training diverges, a checkpoint is damaged or the cluster cannot
        be used, an EngineError that a training is given up or the scheduler is lost.
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
                timings.append(TrainingSeconds(**asdict(job), **asdict(read_facts(folder / job.name).seconds)))
        advance("audits", done, total)
        cells = []
        for i, cell in enumerate(self._configuration.cells):
            with self._trainings.named(cell):
                cells.append(self._outcome(i, folder))
        configuration = self._configuration
        record = ExperimentRecord(
            name=configuration.name,
            size=configuration.size,
            **asdict(configuration.heading),
            axes=configuration.axes,
            cells=tuple(cells),
        )
        return record, timings

    def _here(
        self, numbers: Iterable[int], folder: Path, tell: Callable[[int, int], None]
    ) -> Generator[tuple[int, dict[str, bytes]], None, None]:
        for i in numbers:
            training_folder = folder / self.names[i]
            own_folder(training_folder)
            yield i, self._trainings.train(self._trainings.jobs[i], training_folder / _CHECKPOINT, partial(tell, i))

    def _on(self, cluster: "Cluster", numbers: Iterable[int]) -> Generator[tuple[int, dict[str, bytes]], None, None]:
        trainings, data = self._trainings, self._data and self._data.absolute()
        federations = [trainings.federation(trainings.settings(job).data) for job in trainings.jobs]
        tasks = ((i, (self._configuration, data, federations[i].digest, i)) for i in numbers)
        lost = []
        with closing(cluster.results("canaryproof.verify.papers.training.jobs:train", tasks)) as results:
            for i, files in results:
                if isinstance(files, Lost):
                    lost.append(f"training {self.names[i]}: {files.reason}")
                else:
                    yield i, files
        if lost:
            raise EngineError(lost[0])

    def _outcome(self, number: int, folder: Path) -> CellRecord:
        """Audit a cell."""
        cell = self._configuration.cells[number]
        settings, trainings, plan = cell.settings, self._trainings, cell.settings.canaries
        federation, model = trainings.federation(settings.data), trainings.model(settings.model, settings.data)
        results: list[RepetitionRecord] = []
        accountings = []
        for repetition in range(self._configuration.heading.repetitions):
            runs = range(1 if plan is None else plan.runs)
            jobs = [Job(number, repetition, run, with_canaries=plan is not None) for run in runs]
            accountings += [self._accounting(job) for job in jobs]
            records = tuple(self._record(job, folder) for job in jobs)
            if plan is None:
                results.append(RepetitionRecord(records))
                continue
            scores = CanaryScores.pooled([read_canary_scores(folder / job.name) for job in jobs])
            audited = audits(scores, model.dim, settings.audit.delta, settings.audit.confidence, plan.inclusion)
            results.append(RepetitionRecord(records, audited, None if repetition else densities(scores, model.dim)))
        # Under correlated noise it depends on the rounds that were drawn: the largest holds for all trainings.
        accounting = max(accountings, key=lambda each: each.epsilon or 0.0)
        sigma, rounds = assembly.noise_multiplier(settings, federation.clients), self._rounds[number]
        return CellRecord(
            swept=dict(cell.swept),
            settings=asdict(settings),
            federation=federation.name,
            clients=federation.clients,
            test_examples=len(federation.test_labels),
            dim=model.dim,
            rounds=rounds,
            noise_multiplier=sigma,
            analytical=accounting,
            canife=None
            if settings.canife is None
            else canife_record.theory(settings, sigma, rounds, self._sampling(settings)),
            results=tuple(results),
        )

    def _accounting(self, job: Job) -> Analytical:
        """Account for a training: for its random canaries, or where there are none, for its clients."""
        schedule, training = self._trainings.prepared(job)
        delta = self._trainings.settings(job).audit.delta
        members: Members = "canaries" if job.with_canaries else "clients"
        return analytical_epsilon(training.noise, delta, schedule, training.clip, members)

    def _sampling(self, settings: Settings) -> float | None:
        if settings.training.participation != "bernoulli":
            return None
        return settings.training.cohort / self._trainings.federation(settings.data).clients

    def _record(self, job: Job, folder: Path) -> TrainingRecord:
        """Return the record of a training, without its scores and times."""
        facts, settings = read_facts(folder / job.name), self._trainings.settings(job)
        without = audited = None
        if settings.audit.without_canaries:
            twin = Job(job.cell, job.repetition, job.run, with_canaries=False)
            without = read_facts(folder / twin.name).accuracy
        if settings.canife is not None:
            rounds = self._rounds[job.cell] if facts.rounds is None else facts.rounds
            scores = canife_record.read(folder / job.name / CANIFE, settings.canife)
            audited = canife_record.canife_record(scores, settings, rounds, self._sampling(settings))
        seed = self._trainings.seeds(job).canaries
        return TrainingRecord(seed, facts.accuracy, without, facts.warnings, audited, facts.known_rounds)


def _keep(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a training, which needs its checkpoint no more."""
    own_folder(folder)
    for name, content in files.items():
        with replace_file(folder / name) as file:
            file.write(content)
    shutil.rmtree(folder / _CHECKPOINT, ignore_errors=True)
