"""A cell's settings made into what is trained: seeds, data, schedule, clip norm, noise, canaries and the trainer."""

import json
import math
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.canaries import participation as schedules
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, LastRounds, Presentations, Schedule
from canaryproof.verify.audit.canaries.round_scores import BLOCK, AnyCanaries, layers_of
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.accounting.sampled_gaussian import poisson_noise_multiplier
from canaryproof.verify.papers.accounting.training import noise_without_counts
from canaryproof.verify.papers.training.clipping import AdaptiveClip, Clip, FixedClip
from canaryproof.verify.papers.training.configuration import CanaryPlan, Data, Settings
from canaryproof.verify.papers.training.data import cifar10, digits, idx, leaf, plays, tff
from canaryproof.verify.papers.training.data.federation import FederatedData
from canaryproof.verify.papers.training.faults import Fault
from canaryproof.verify.papers.training.networks import Model
from canaryproof.verify.papers.training.noise import Correlated, Independent, Noise, SquareRoot, Tree
from canaryproof.verify.papers.training.trainer import Trainer, Training

_MOST = 2 * 10**7


@dataclass(frozen=True)
class Seeds:
    """Seeds of one training: of the canaries, of the initial parameters, and of participation and noise."""

    canaries: int
    model: int
    training: np.random.SeedSequence

    @classmethod
    def of(cls, root: np.random.SeedSequence) -> Self:
        """Draw them from a root of their own."""
        of_canaries, of_model = root.generate_state(2, np.uint64).tolist()
        return cls(of_canaries, of_model, root)


def seeds_of(seed: int, swept: Mapping[str, Any], repetition: int, run: int) -> Seeds:
    """Return the seeds of a training: those of other cells, repetitions and runs are independent of them.

    A cell's seeds depend on its swept values and not on which other cells there are. Cells whose canaries differ in
    their directions alone are compared pair by pair: they have the same seeds.
    """
    distinct = {name: value for name, value in swept.items() if name != "canaries.directions"}
    cell = zlib.crc32(json.dumps(distinct, sort_keys=True).encode())
    return Seeds.of(np.random.SeedSequence(seed, spawn_key=(cell, repetition, run)))


def federation(data: Data, folder: Path | None, seed: int) -> FederatedData:
    """Read the data; ``seed`` decides which client gets which examples, where the data doesn't."""
    if data.format == "digits":
        return digits.load(data.examples_per_client, seed)
    if folder is None:
        raise InputError(f"--data: must be given, the folder with the files of data.format {data.format}")
    if data.format == "idx":
        return idx.load(folder, data.examples_per_client, seed)
    if data.format == "leaf":
        return leaf.load(folder, data.length, data.side)
    if data.format == "cifar10":
        return cifar10.load(folder, data.examples_per_client, seed)
    if data.format == "tff":
        return tff.load(folder, data.length, data.words)
    return plays.load(folder, data.length)


def noise_multiplier(settings: Settings, clients: int) -> float:
    """Return the noise multiplier z of so many clients' training.

    Where the clip norm adapts, updates and counts together are worth it.
    """
    training = settings.training
    if training.epsilon is not None:
        assert training.rounds is not None
        sampling = training.cohort / clients
        return poisson_noise_multiplier(training.epsilon, settings.audit.delta, training.rounds, sampling)
    if training.one_round_epsilon is None:
        return training.noise_multiplier or 0.0
    if math.isinf(training.one_round_epsilon):
        return 0.0
    return float(gaussian_mechanism.noise_multiplier(training.one_round_epsilon, settings.audit.delta))


def clip_and_noise(settings: Settings, clients: int, rounds: int, seed: np.random.SeedSequence) -> tuple[Clip, Noise]:
    """Make the clip norm function S and the noise generator Z.

    A ``ValueError`` says that the noise on the counts is too little for the noise multiplier.
    """
    training, multiplier = settings.training, noise_multiplier(settings, clients)
    clip: Clip = FixedClip(training.clip_norm)
    if training.clip_quantile is not None:
        count_noise = training.cohort / 20.0
        clip = AdaptiveClip(training.clip_norm, training.clip_quantile, training.clip_rate, count_noise, seed)
        multiplier = noise_without_counts(multiplier, count_noise)
    if training.noise == "independent":
        return clip, Independent(multiplier, seed)
    factor = Tree(rounds) if training.noise == "tree" else SquareRoot(rounds)
    return clip, Correlated(factor, multiplier, seed)


def schedule(settings: Settings, clients: int, seed: np.random.SeedSequence, *, with_canaries: bool) -> Schedule:
    """Draw who takes part when; clients take part in the same rounds with canaries and without."""
    training, inserted = settings.training, schedules.NO_CANARIES
    if with_canaries:
        inserted = _insertion(settings.random_canaries)
    # All of it is drawn before the training, as accounting needs it.
    name, often = ("epochs", clients) if training.participation == "shuffled" else ("rounds", training.cohort)
    if often * (getattr(training, name) or 0) > _MOST:
        raise ValueError(f"training.{name}: must be fewer, as clients may take part at most {_MOST:,} times in all")
    if training.participation == "shuffled":
        assert training.epochs is not None
        return schedules.shuffled_epochs(clients, training.cohort, training.epochs, seed, inserted)
    assert training.rounds is not None
    if training.participation == "uniform":
        return schedules.uniform(clients, training.cohort, training.rounds, seed, inserted)
    return schedules.bernoulli(clients, training.cohort / clients, training.rounds, seed, inserted)


def _insertion(plan: CanaryPlan) -> Insertion:
    pattern = {
        "clients": None,
        "periods": Presentations(plan.presentations),
        "last_rounds": LastRounds(plan.last_rounds, plan.mean),
    }[plan.participation]
    return Insertion(2 * plan.count, plan.count if plan.inclusion == "fixed" else None, pattern)


def canaries(plan: CanaryPlan, seed: int, dim: int) -> AnyCanaries:
    """Return observed and unobserved canaries as planned; a ``ValueError`` says if there are too many.

    There are as many unobserved canaries as observed ones. Of orthonormal canaries of fixed inclusion all other
    directions are unobserved: they are scored anyway.
    """
    if plan.directions == "independent":
        return Canaries(seed, 2 * plan.count, dim)
    if 2 * plan.count > dim:
        raise ValueError(f"canaries.count: must be at most {dim // 2}: no more than {dim:,} directions are orthogonal")
    return OrthonormalCanaries(seed, dim if plan.inclusion == "fixed" else 2 * plan.count, dim)


def prepared(settings: Settings, clients: int, seeds: Seeds, *, with_canaries: bool) -> tuple[Schedule, Training]:
    """Decide who takes part when, and make the options of a training."""
    participation = schedule(settings, clients, seeds.training, with_canaries=with_canaries)
    clip, noise = clip_and_noise(settings, clients, participation.rounds, seeds.training)
    options = settings.training
    training = Training(
        clip=clip,
        noise=noise,
        client_rate=options.client_rate,
        batch_size=options.batch_size,
        examples_per_client=settings.data.examples_per_client,
        local_epochs=options.local_epochs,
        server=options.server,
        server_rate=options.server_rate,
        momentum=options.momentum,
        seed=seeds.model,
    )
    return participation, training


def trainer(
    settings: Settings, data: FederatedData, model: Model, seeds: Seeds, *, with_canaries: bool = True
) -> Trainer:
    """Make the trainer of a training with its canaries; arguments and errors as for ``prepared``."""
    participation, training = prepared(settings, data.clients, seeds, with_canaries=with_canaries)
    if not with_canaries:
        return Trainer(data, model, participation, training)
    planned = canaries(settings.random_canaries, seeds.canaries, model.dim)
    further = np.zeros(planned.count - len(participation.included), bool)
    participation = replace(participation, included=np.concatenate([participation.included, further]))
    # Orthonormal canaries are made anew for each round, whatever the block.
    canary_clients = CanaryClients(planned, participation, 1 if layers_of(planned) else BLOCK)
    return Trainer(data, model, participation, training, canary_clients)


def sgd_trainer(
    data: FederatedData,
    model: Model,
    participation: Schedule,
    seeds: Seeds,
    noise_multiplier: float,
    *,
    clip_norm: float = 1.0,
    rate: float = 1.0,
    fault: Fault | None = None,
) -> Trainer:
    """Make a trainer of DP-SGD, with the canaries that the participation has, on clients of one example each.

    Updates are negative gradients, and the learning rate is the server's. Its seconds are the processor's.
    """
    training = Training(
        clip=FixedClip(clip_norm),
        noise=Independent(noise_multiplier, seeds.training),
        client_rate=1.0,
        batch_size=1,
        examples_per_client=1,
        server_rate=rate,
        seed=seeds.model,
    )
    count = len(participation.included)
    canary_clients = CanaryClients(Canaries(seeds.canaries, count, model.dim), participation) if count else None
    return Trainer(data, model, participation, training, canary_clients, fault, time.process_time)
