"""The cost of an experiment before it starts: hours and memory, estimated from pieces of it that are measured here.

The pieces are a chunk of clients, a few canaries' updates and scores, a round's noise, the accuracy on a few examples
and some steps of CANIFE's design. Each is measured after its compilation and multiplied by how often it will be done.
Compilation, reading data, and the audits of a repetition's scores, which take seconds, are left out.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import mul
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.papers.records.training_record import Job
from canaryproof.verify.papers.training import assembly
from canaryproof.verify.papers.training.canife_audits import Auditor, Designing, audited_rounds, compiled, pool
from canaryproof.verify.papers.training.clients import Clients, between, chunk_of
from canaryproof.verify.papers.training.configuration import CanaryPlan, Data, Network, Settings
from canaryproof.verify.papers.training.jobs import Trainings, shown

# Work on fewer coordinates takes less than a minute or so, and is not measured.
_SMALL = 10**10
# Sizes of the measured pieces.
_DELTAS, _EXAMPLES, _STEPS, _POOL, _SCORES = 32, 64, 10, 16, 20
# Coordinates of the canaries that are measured, of which there are some for each processor.
_CANARIES = 2 * 10**7


@dataclass(frozen=True)
class Cost:
    """The cost of an experiment."""

    trainings: int
    rounds: int  # this and the next three are the largest numbers of a training
    clients: int
    canaries: int
    dim: int
    seconds: float | None  # of all trainings one after the other; None if not measured
    longest: float | None  # seconds of the longest training
    memory: float  # bytes of the arrays that a training holds
    spent: float  # seconds of measuring

    def lines(self) -> tuple[str, str]:
        """Say it in two lines."""
        canaries = f" and {self.canaries:,} canaries" if self.canaries else ""
        first = (
            f"{self.trainings:,} training{'s' if self.trainings != 1 else ''} of {self.rounds:,} rounds with "
            f"{self.clients:,} clients{canaries}, {self.dim:,} parameters; arrays of {_bytes(self.memory)}"
        )
        if self.seconds is None or self.longest is None:
            return first, "not measured, as it takes a minute or so"
        cores = _cores()
        second = (
            f"about {_span(self.seconds)} on {cores} core{'s' if cores != 1 else ''} ({jax.default_backend()}), from "
            f"pieces measured in {self.spent:.0f} s; --engine dask does trainings side by side, the longest in "
            f"{_span(self.longest)}"
        )
        return first, second


def estimate(trainings: Trainings, jobs: Sequence[Job]) -> Cost:
    """Estimate what some trainings of an experiment cost."""
    began = time.perf_counter()
    pieces = _Pieces(trainings)
    # Trainings of a cell cost the same.
    counts = Counter((job.cell, job.with_canaries) for job in jobs)
    plans = [_Plan.of(trainings, Job(cell, 0, 0, with_canaries)) for cell, with_canaries in counts]
    seconds: list[float] | None = None
    if sum(plan.coordinates * count for plan, count in zip(plans, counts.values(), strict=True)) > _SMALL:
        seconds = [pieces.seconds(plan) for plan in plans]
    return Cost(
        len(jobs),
        max(plan.rounds for plan in plans),
        max(plan.settings.training.cohort for plan in plans),
        max(plan.canaries for plan in plans),
        max(plan.dim for plan in plans),
        None if seconds is None else sum(map(mul, seconds, counts.values())),
        None if seconds is None else max(seconds),
        max(pieces.memory(plan) for plan in plans),
        time.perf_counter() - began,
    )


@dataclass(frozen=True)
class _Plan:
    """Counts of the work in a training."""

    job: Job
    settings: Settings
    dim: int
    rounds: int
    canaries: int
    participations: int

    @classmethod
    def of(cls, trainings: Trainings, job: Job) -> "_Plan":
        settings = trainings.settings(job)
        schedule, _ = trainings.prepared(job)
        model = trainings.model(settings.model, settings.data)
        inserted = settings.canaries is not None and job.with_canaries
        count = assembly.canaries(settings.random_canaries, 0, model.dim).count if inserted else 0
        taking_part = sum(len(schedule.canaries(t)) for t in range(schedule.rounds))
        return cls(job, settings, model.dim, schedule.rounds, count, taking_part)

    @property
    def attacks(self) -> int:
        """CANIFE's attacks in all of the training."""
        plan = self.settings.canife
        return 0 if plan is None else plan.audits * len(audited_rounds(plan, self.rounds))

    @property
    def coordinates(self) -> float:
        """Coordinates that are touched, roughly."""
        steps = 0 if self.settings.canife is None else self.settings.canife.steps
        examples = self.settings.data.examples_per_client * self.settings.training.local_epochs
        clients = self.rounds * self.settings.training.cohort * examples
        return float(self.dim) * (clients + self.rounds * self.canaries + self.attacks * steps)


class _Pieces:
    """Seconds of the pieces of trainings, each measured once for all that share it."""

    def __init__(self, trainings: Trainings) -> None:
        self._trainings = trainings
        self._client, self._canary = cache(self._measured_client), cache(_measured_canary)
        self._example = cache(self._measured_example)
        self._steps: dict[tuple[Settings, int], float] = {}

    def seconds(self, plan: _Plan) -> float:
        """Add up a training."""
        settings, training = plan.settings, plan.settings.training
        data = self._trainings.federation(settings.data)
        client = self._client(_client_settings(settings))
        scoring, update, noise = self._canary(plan.dim, settings.canaries)
        looked_at = len(data.test_labels)
        if training.until_accuracy is not None:
            every = -(-plan.rounds // training.accuracy_every)
            looked_at += every * len(shown(data, training.accuracy_on, settings.data.examples_per_client)[1])
        total = plan.rounds * (training.cohort * client + noise + plan.canaries * scoring)
        total += plan.participations * update + looked_at * self._example(settings.model, settings.data)
        if plan.attacks and settings.canife is not None and (auditor := self._trainings.auditor(plan.job)) is not None:
            mock = _mock_clients(auditor)
            missing = (1.0 - training.cohort / data.clients) ** settings.canife.scores
            # Clients that several trials draw are trained once an audit.
            trials = data.clients * (1.0 - missing)
            key = _client_settings(settings), mock
            if key not in self._steps:
                self._steps[key] = self._measured_step(auditor, mock)
            design = settings.canife.steps * self._steps[key] + mock * client
            total += plan.attacks * (design + trials * client)
            audits = plan.attacks // settings.canife.audits
            total += audits * len(data.test_labels) * self._example(settings.model, settings.data)
        return total

    def memory(self, plan: _Plan) -> float:
        """Add up arrays: parameters, a chunk of clients' updates and gradients, deltas that wait, scores, and data."""
        settings = plan.settings
        data, model = self._trainings.federation(settings.data), self._trainings.model(settings.model, settings.data)
        batch = min(settings.training.batch_size, settings.data.examples_per_client)
        chunk = chunk_of(model, data, settings.training.cohort, batch)
        held = plan.dim * (4.0 * (6 + 4 * chunk) + (4.0 * _DELTAS + 8.0 if plan.canaries else 0.0))
        # As much again for gradients.
        held += 16.0 * plan.canaries + 8.0 * chunk * between(model, data, batch)
        if plan.attacks and (auditor := self._trainings.auditor(plan.job)) is not None:
            mock = _mock_clients(auditor) if auditor.compiled.designer.updates is auditor.compiled.whole else 0
            held += 4.0 * plan.dim * mock
        names = ("inputs", "labels", "test_inputs", "test_labels")
        return held + sum(getattr(getattr(data, name, None), "nbytes", 0) for name in names)

    def _measured_client(self, settings: Settings) -> float:
        data, model = self._trainings.federation(settings.data), self._trainings.model(settings.model, settings.data)
        training = settings.training
        clients = Clients(
            data,
            model,
            rate=training.client_rate,
            epochs=training.local_epochs,
            batch_size=training.batch_size,
            examples=settings.data.examples_per_client,
            cohort=training.cohort,
        )
        some = np.arange(min(clients.chunk, data.clients))
        theta = np.asarray(ravel_pytree(model.init(0))[0])
        return _timed(lambda: clients.sum(theta, some, training.clip_norm)) / len(some)

    def _measured_example(self, network: Network, settings: Data) -> float:
        data, model = self._trainings.federation(settings), self._trainings.model(network, settings)
        some = data.test_inputs[:_EXAMPLES], data.test_labels[:_EXAMPLES]
        params = model.init(0)
        # Accuracies are in batches that are filled.
        return _timed(lambda: float(model.accuracy(params, *some))) / max(len(some[1]), _EXAMPLES)

    def _measured_step(self, auditor: Auditor, mock: int) -> float:
        """Seconds of a step of CANIFE's design with so many mock clients."""
        assert auditor.settings.canife is not None
        small = replace(auditor.settings.canife, steps=_STEPS, audits=1, scores=_SCORES, pool=_POOL)
        settings = replace(auditor.settings, canife=small)
        few = replace(
            auditor, settings=settings, compiled=compiled(Designing.of(settings), auditor.data, auditor.model)
        )
        params = few.model.init(0)
        few.audit(params, 1)
        designed = float(few.audit(params, 2).seconds["design"])
        there = _mock_clients(few)
        client = self._client(_client_settings(auditor.settings))
        step = max(0.0, designed - there * client) / _STEPS
        if few.compiled.designer.updates is few.compiled.whole:
            # Products with all mock clients' updates, there and back, which are read from memory.
            updates, vector = np.ones((there, few.model.dim), np.float32), np.ones(few.model.dim, np.float32)
            step += 2.0 * max(0, mock - there) / there * _timed(lambda: updates @ vector)
        return step


def _client_settings(settings: Settings) -> Settings:
    """Return settings that are equal where clients take as long."""
    training = replace(
        settings.training,
        noise_multiplier=None,
        one_round_epsilon=None,
        epsilon=None,
        rounds=None,
        epochs=None,
        until_accuracy=None,
    )
    return replace(settings, training=training, canaries=None, canife=None, audit=replace(settings.audit, delta=0.5))


def _mock_clients(auditor: Auditor) -> int:
    plan = auditor.settings.canife
    assert plan is not None
    examples = pool(auditor.data, plan.pool, auditor.training.examples_per_client, np.random.default_rng(0))
    return len(examples[2])


def _measured_canary(dim: int, plan: CanaryPlan | None) -> tuple[float, float, float]:
    """Seconds of scoring a canary in a round, of its update, and of a round's noise."""
    rng = np.random.default_rng(0)
    noise = _timed(lambda: rng.standard_normal(dim))
    if plan is not None and plan.directions == "orthonormal":
        # A sum and all scores take transforms, however many take part.
        every, vector = assembly.canaries(plan, 0, dim), np.ones((1, dim), np.float32)
        return (_timed(lambda: every.block_cosines(vector)) + _timed(every.sum)) / every.count, 0.0, noise
    count = min(1000, max(4 * _cores(), _CANARIES // dim))
    canaries, deltas = Canaries(0, count, dim), np.ones((_DELTAS, dim), np.float32)
    scoring = _timed(lambda: canaries.block_cosines(deltas)) / (count * _DELTAS)
    return scoring, _timed(lambda: canaries.sum(np.arange(count))) / count, noise


def _cores() -> int:
    """Count the processors that this process may use; all of the machine's where the system does not tell."""
    cores = os.cpu_count() or 1
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    return cores


def _timed(call: Callable[[], Any]) -> float:
    """Seconds of a call, compiled before."""
    call()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _span(seconds: float) -> str:
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * length:
            return f"{_short(seconds / length)} {unit}"
    return f"{_short(seconds)} seconds"


def _short(value: float) -> str:
    """Return a number of two digits, or all digits before the point."""
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.2g}"


def _bytes(count: float) -> str:
    return f"{_short(count / 1e9)} GB" if count >= 1e9 else f"{_short(count / 1e6)} MB"
