"""One training that CANIFE and Algorithms 2 and 3 of Andrew et al. (arXiv 2302.03098) audit side by side.

Its server may have a fault, which the trial rounds of CANIFE then have too.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum, auto
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.accounting.training import analytical_epsilon
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.lower_bound import prepare
from canaryproof.verify.canaries import participation as schedules
from canaryproof.verify.canaries.canary_clients import CanaryClients
from canaryproof.verify.canaries.participation import Participation
from canaryproof.verify.canaries.seeds import Purpose
from canaryproof.verify.canife.attack import TrialRound, attack, halves, score_law
from canaryproof.verify.canife.descent import DenseDesigner
from canaryproof.verify.canife.design import Canary, DesignOptions, noise
from canaryproof.verify.canife.factored import FactoredState, FactoredUpdates
from canaryproof.verify.canife.general import GeneralUpdates
from canaryproof.verify.canife.measure import round_epsilon
from canaryproof.verify.files.benchmark_record import (
    AuditedTraining,
    CosinesRecord,
    DesignRecord,
    MemoryRecord,
    RoundAuditRecord,
    ScoreLawRecord,
    SecondsRecord,
    TrialsRecord,
    ZeroCountsRecord,
)
from canaryproof.verify.files.training_record import Analytical, BoundRecord, RoundEpsilonRecord
from canaryproof.verify.training.assembly import Seeds
from canaryproof.verify.training.clients import CohortSum, CohortSums
from canaryproof.verify.training.clipping import FixedClip
from canaryproof.verify.training.data.federation import Federation
from canaryproof.verify.training.networks import Model, Params
from canaryproof.verify.training.noise import Independent, Noise
from canaryproof.verify.training.outcome import CanaryScores, audits, bound_record
from canaryproof.verify.training.trainer import Trainer, Training

# Of so many clients one is not clipped.
EVERY = 100
# Clips nothing.
_FAR = 1e30
_FREE = FactoredUpdates(_FAR)


class Fault(Enum):
    """A fault of the server."""

    NOISE = auto()  # the first round's noise in all rounds
    COORDINATES = auto()  # no noise on every second coordinate
    CLIPPING = auto()  # no clipping of one client in a hundred


@dataclass(frozen=True)
class Repeated:
    """Noise of the first round in all rounds: the difference of two deltas has none."""

    noise: Independent

    @property
    def noise_multiplier(self) -> float:
        """Noise multiplier of a round."""
        return self.noise.noise_multiplier

    def sample(self, round: int, dim: int, clip_norm: float) -> NDArray[np.floating]:  # noqa: A002, ARG002
        """Return the noise of a round, as ``Independent`` does for the first."""
        return self.noise.sample(0, dim, clip_norm)

    def sensitivity(self, rounds: Sequence[int]) -> float:  # noqa: ARG002
        """Return what nothing hides."""
        return np.inf


@dataclass(frozen=True)
class Halved:
    """Noise on the even coordinates alone: half of each update is released as it is."""

    noise: Independent

    @property
    def noise_multiplier(self) -> float:
        """Noise multiplier of a round, where there is noise."""
        return self.noise.noise_multiplier

    def sample(self, round: int, dim: int, clip_norm: float) -> NDArray[np.floating]:  # noqa: A002
        """Return the noise of a round, as ``Independent`` does on the even coordinates."""
        noise = self.noise.sample(round, dim, clip_norm)
        noise[1::2] = 0.0
        return noise

    def sensitivity(self, rounds: Sequence[int]) -> float:  # noqa: ARG002
        """Return what nothing hides."""
        return np.inf


def trial_noise(fault: Fault, noise_multiplier: float, canary: NDArray[np.floating]) -> float:
    """Return the noise multiplier that a canary's scores have in trial rounds of a server with a fault."""
    if fault is Fault.NOISE:
        # All trials have the same noise. It moves all scores alike, and no threshold's errors.
        return 0.0
    if fault is Fault.COORDINATES:
        return noise_multiplier * float(np.linalg.norm(canary[::2]) / np.linalg.norm(canary))
    return noise_multiplier


class Unclipped:
    """Clients of which one in a hundred is not clipped, in the place of ``Clients``."""

    def __init__(self, clients: CohortSums) -> None:
        self._clients = clients

    def sum(self, theta: jax.Array | NDArray[np.float32], clients: NDArray[np.int64], clip_norm: float) -> CohortSum:
        """Train the clients of a round and add their updates, as ``Clients.sum`` does."""
        faulty = clients % EVERY == 0
        parts = [
            self._clients.sum(theta, clients[chosen], norm) for chosen, norm in ((~faulty, clip_norm), (faulty, _FAR))
        ]
        norms = np.empty(len(clients), np.float32)
        norms[~faulty], norms[faulty] = (part.norms for part in parts)
        return CohortSum(parts[0].total + parts[1].total, norms)


def with_unclipped(
    state: FactoredState, params: Any, inputs: ArrayLike, labels: ArrayLike, mask: ArrayLike
) -> FactoredState:
    """Return what ``FactoredUpdates.prepare`` made of these clients, but with one in a hundred not clipped."""
    free = _FREE.prepare(params, inputs, labels, mask)

    def mixed(clipped: ArrayLike, unclipped: ArrayLike) -> NDArray[np.floating]:
        parts = np.array(clipped)
        parts[::EVERY] = np.asarray(unclipped)[::EVERY]
        return parts

    return state._replace(clients=jax.tree.map(mixed, state.clients, free.clients))


SEED = 0


@dataclass(frozen=True)
class Sizes:
    """Sizes of a training and of its audits."""

    batch: int  # examples in a round on average, one of each client that takes part
    canaries: int  # observed random canaries; as many are unobserved
    every: int  # CANIFE audits each round whose number, from 1 on, is a multiple of this
    pool: int  # mock clients, whose examples are held-out ones
    steps: int = 2500  # of a canary's design
    trials: tuple[int, ...] = (100, 1000, 10_000)  # numbers of scores of an audit; the first is CANIFE's own
    noise_multiplier: float = 0.2
    clip_norm: float = 1.0
    delta: float = 1e-5
    rate: float = 1.0  # learning rate of DP-SGD


@dataclass(frozen=True)
class Scenario:
    """What a training does otherwise than CANIFE takes for granted."""

    name: str
    shuffled: bool = False  # each client takes part once, in a shuffled order; else rounds are Poisson samples
    fault: Fault | None = None  # of the server


CONFIDENCE = 0.95
# Rounds that Algorithm 3 scores at once: deltas of so many wait, 13 MB on MNIST, and a canary is made once for all.
BLOCK = 32
_NOISES: dict[Fault | None, type[Repeated] | type[Halved]] = {Fault.NOISE: Repeated, Fault.COORDINATES: Halved}


@dataclass(frozen=True)
class Trained:
    """A finished training, and what CANIFE found in it, audit by audit."""

    trainer: Trainer
    canary_clients: CanaryClients
    participation: Participation
    audits: tuple[RoundAuditRecord, ...]


class Bench:
    """Trainings of a dense network on one federation of clients with one example; all share what is compiled."""

    def __init__(self, federation: Federation, model: Model, setting: Sizes) -> None:
        self.federation, self.model, self.setting = federation, model, setting
        self.rounds = -(-federation.clients // setting.batch)
        self.sampling = setting.batch / federation.clients
        self.audited = list(range(setting.every, self.rounds + 1, setting.every))
        # In DP-SGD updates are negative gradients; the learning rate is the server's.
        self._updates = FactoredUpdates(setting.clip_norm, rate=1.0)
        self._whole = GeneralUpdates(model.loss, setting.clip_norm)
        self._designer = DenseDesigner(self._updates, DesignOptions(steps=setting.steps))

    def compile(self) -> float:
        """Design a canary for a new model, and return the seconds: before the first, something has to be compiled."""
        began = time.perf_counter()
        rng = np.random.default_rng(0)
        self._design(self._state(self.model.init(0), self._pool(rng), None), rng)
        return time.perf_counter() - began

    def run(self, root: np.random.SeedSequence, scenario: Scenario, rate: float | None = None) -> AuditedTraining:
        """Train once and audit by all methods; arguments as for ``train``."""
        done = self.train(root, scenario, rate)
        trainer, canary_clients, setting = done.trainer, done.canary_clients, self.setting
        scores = CanaryScores.of(trainer, canary_clients)
        test = self.federation.test_inputs, self.federation.test_labels
        # What the operator believes: the accounting of a training without the fault.
        believed = Independent(setting.noise_multiplier, root), setting.delta, done.participation
        return AuditedTraining(
            Analytical(**asdict(analytical_epsilon(*believed, FixedClip(setting.clip_norm)))),
            float(self.model.accuracy(trainer.params, *test)),
            audits(scores, self.model.dim, setting.delta, CONFIDENCE, "fixed"),
            done.audits,
            SecondsRecord(
                training=trainer.seconds["training"] + trainer.seconds["noise"],
                oneshot=trainer.seconds["scoring"],
                canife=sum(audit.seconds for audit in done.audits),
            ),
            tuple(canary_clients.warnings()),
        )

    def train(
        self, root: np.random.SeedSequence, scenario: Scenario, rate: float | None = None, *, with_bounds: bool = True
    ) -> Trained:
        """Train once, with CANIFE's audits on the way; ``rate`` is another learning rate than the setting's.

        ``root`` decides all that is random; scenarios that share it can be compared run by run. Lower bounds from
        CANIFE's scores take a quarter of an audit's time, and are left out unless they are wanted.
        """
        rng = np.random.default_rng(
            np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, int(Purpose.CANIFE)))
        )
        trainer, canary_clients, participation = self._prepared(Seeds.of(root), scenario, rate or self.setting.rate)
        pool = self._pool(rng)
        found = []
        for number in self.audited:
            trainer.run(until=number - 1)
            found.append(self._audit(number, trainer.params, pool, scenario.fault, rng, with_bounds))
        trainer.run()
        return Trained(trainer, canary_clients, participation, tuple(found))

    def memory(self) -> MemoryRecord:
        """Return the bytes of the arrays that each method holds: what it computes from, not what a library takes."""
        state = self._state(self.model.init(0), self._pool(np.random.default_rng(0)), None)
        held = sum(np.asarray(part).nbytes for part in jax.tree.leaves(state.clients))
        return MemoryRecord(oneshot=BLOCK * (4 * self.model.dim + 16 * self.setting.canaries), canife=held)

    def _prepared(self, seeds: Seeds, scenario: Scenario, rate: float) -> tuple[Trainer, CanaryClients, Participation]:
        setting, clients = self.setting, self.federation.clients
        inserted = schedules.Insertion(2 * setting.canaries, setting.canaries)
        participation: Participation
        if scenario.shuffled:
            participation = schedules.shuffled_epochs(clients, setting.batch, 1, seeds.training, inserted)
        else:
            participation = schedules.bernoulli(clients, self.sampling, self.rounds, seeds.training, inserted)
        independent = Independent(setting.noise_multiplier, seeds.training)
        server_noise: Noise = independent
        if scenario.fault in _NOISES:
            server_noise = _NOISES[scenario.fault](independent)
        training = Training(
            clip=FixedClip(setting.clip_norm),
            noise=server_noise,
            client_rate=1.0,
            batch_size=1,
            examples_per_client=1,
            server_rate=rate,
            seed=seeds.model,
        )
        canary_clients = CanaryClients(
            Canaries(seeds.canaries, 2 * setting.canaries, self.model.dim), participation, BLOCK
        )
        trainer = Trainer(self.federation, self.model, participation, training, canary_clients)
        if scenario.fault is Fault.CLIPPING:
            trainer.clients = Unclipped(trainer.clients)
        return trainer, canary_clients, participation

    def _pool(self, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        chosen = rng.choice(len(self.federation.test_labels), self.setting.pool, replace=False)
        return self.federation.test_inputs[chosen][:, None], self.federation.test_labels[chosen][:, None]

    def _state(self, params: Params, pool: tuple[NDArray[Any], NDArray[Any]], fault: Fault | None) -> FactoredState:
        mask = np.ones((self.setting.pool, 1), np.float32)
        state = self._updates.prepare(params, *pool, mask)
        return with_unclipped(state, params, *pool, mask) if fault is Fault.CLIPPING else state

    def _design(self, state: FactoredState, rng: np.random.Generator) -> Any:
        shape = self.federation.inputs.shape[1:]
        return self._designer.design(state, noise(shape, self.federation.classes), rng)

    def _audit(
        self,
        number: int,
        params: Params,
        pool: tuple[NDArray[Any], NDArray[Any]],
        fault: Fault | None,
        rng: np.random.Generator,
        with_bounds: bool,
    ) -> RoundAuditRecord:
        """Audit the round of this number, which is next, by CANIFE."""
        setting = self.setting
        began = time.perf_counter()
        state = self._state(params, pool, fault)
        canary = self._design(state, rng)
        response = self._updates.response(state, [canary])
        noise_multiplier = setting.noise_multiplier
        if fault is not None:
            # Trial rounds are the server's, and have its fault.
            update = self._whole.canary_updates(params, [canary])[0]
            noise_multiplier = trial_noise(fault, noise_multiplier, update)
        mechanism = TrialRound(setting.batch, noise_multiplier, setting.clip_norm)
        scores: list[TrialsRecord] = []
        for trials in setting.trials:
            observed, unobserved = attack(response, halves(trials, 1, rng), mechanism, rng).of()
            if not scores:
                # What CANIFE itself costs ends with its own number of scores.
                seconds = time.perf_counter() - began
                bounds = self._bounds(observed, unobserved) if with_bounds else {}
            scores.append(_measured(observed, unobserved))
        law = score_law(response, mechanism)
        return RoundAuditRecord(
            number,
            seconds,
            self._cosines(params, canary, rng),
            DesignRecord(canary.loss, canary.norm, canary.health, canary.healthy, canary.attempts),
            ScoreLawRecord(**asdict(law), deviation=law.deviation, epsilon=law.epsilon(setting.delta)),
            tuple(scores),
            bounds,
        )

    def _cosines(self, params: Params, canary: Canary, rng: np.random.Generator) -> CosinesRecord:
        """Tell how far a canary's update is from orthogonal to those of clients of the training: as many as a batch."""
        chosen = rng.choice(self.federation.clients, self.setting.batch, replace=False)
        examples = self.federation.inputs[chosen][:, None], self.federation.labels[chosen][:, None]
        state = _FREE.prepare(params, *examples, np.ones((len(chosen), 1), np.float32))
        response = _FREE.response(state, [canary])
        squares = np.sum(
            [(1.0 + _squares(factors.inputs)) * _squares(factors.outputs) for factors in state.clients], axis=0
        )
        norms = np.sqrt(squares * response.gram[0, 0])
        # A client whose loss is 0 in float32 has no update and no direction.
        cosines = response.products[0][norms > 0.0] / norms[norms > 0.0]
        return CosinesRecord(root_mean_square=float(np.sqrt(np.mean(cosines**2))), largest=float(np.abs(cosines).max()))

    def _bounds(self, observed: NDArray[np.float64], unobserved: NDArray[np.float64]) -> dict[str, BoundRecord]:
        """Return all lower bounds from CANIFE's own number of scores of a round."""
        prepared = prepare(observed, unobserved, independent=True)
        return {
            name: bound_record(method.bound(prepared, self.setting.delta, 1.0 - CONFIDENCE))
            for name, method in METHODS.items()
            if method.serves(prepared)
        }


def _squares(vectors: ArrayLike) -> NDArray[np.float64]:
    """Squared norms of vectors of clients that have one example, shape (clients, 1, dimension)."""
    return np.asarray(np.square(np.asarray(vectors, np.float64)[:, 0]).sum(axis=1))


def _measured(observed: NDArray[np.float64], unobserved: NDArray[np.float64]) -> TrialsRecord:
    # δ = 1/n, as printed.
    trials = len(observed) + len(unobserved)
    capped, separated = (
        RoundEpsilonRecord(**asdict(round_epsilon(observed, unobserved, 1.0 / trials, zero_counts=rule)))
        for rule in ("capped", "separated")
    )
    return TrialsRecord(
        trials,
        separation=float(observed.mean() - unobserved.mean()),
        deviation=float(np.sqrt(0.5 * (observed.var(ddof=1) + unobserved.var(ddof=1)))),
        epsilon=ZeroCountsRecord(capped, separated),
    )
