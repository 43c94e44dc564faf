"""One training that CANIFE and Algorithms 2 and 3 of Andrew et al. (arXiv 2302.03098) audit side by side.

The same random canaries also measure the noise at known rounds. That is CANIFE's fair rival: both audit rounds, and
compose them. The server may have a fault, which the trial rounds of CANIFE then have too.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.audit.accounting.accountant import gaussian, poisson
from canaryproof.verify.audit.answer.inputs import epsilon_at
from canaryproof.verify.audit.bounds.catalogue import MEASURED as METHODS
from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.audit.canaries import participation as schedules
from canaryproof.verify.audit.canaries.round_scores import BLOCK
from canaryproof.verify.audit.canaries.seeds import Purpose
from canaryproof.verify.papers.accounting.training import analytical_epsilon
from canaryproof.verify.papers.canife.attack import TrialRound, accuracy, attack, coins, halves, score_law
from canaryproof.verify.papers.canife.design import Canary, Starts, noise, pool_samples
from canaryproof.verify.papers.canife.factored import FactoredState
from canaryproof.verify.papers.canife.general import GeneralUpdates
from canaryproof.verify.papers.canife.measure import by_zero_counts
from canaryproof.verify.papers.comparison.canife_designs import BOTH, DESIGNS, CompetingDesign
from canaryproof.verify.papers.records.benchmark_record import (
    AttackRecord,
    AuditedTraining,
    BenchmarkPlan,
    CosinesRecord,
    MemoryRecord,
    RoundAuditRecord,
    ScoreLawRecord,
    SecondsRecord,
)
from canaryproof.verify.papers.records.training_record import BoundRecord, DesignRecord, KnownRoundsRecord
from canaryproof.verify.papers.training.assembly import Seeds, sgd_trainer
from canaryproof.verify.papers.training.canary_scores import (
    CanaryScores,
    audits,
    bound_record,
    measured_noise,
    without_absent,
)
from canaryproof.verify.papers.training.clipping import FixedClip
from canaryproof.verify.papers.training.data.federation import Federation
from canaryproof.verify.papers.training.dense_audits import DenseAuditor
from canaryproof.verify.papers.training.faults import FREE, Fault, trial_noise
from canaryproof.verify.papers.training.networks import Model, Params
from canaryproof.verify.papers.training.noise import Independent
from canaryproof.verify.papers.training.trainer import Trainer

SEED = 0


@dataclass(frozen=True)
class Scenario:
    """A way in which a training differs from CANIFE's assumptions."""

    name: str
    shuffled: bool = False  # each client takes part once, in a shuffled order; else rounds are Poisson samples
    fault: Fault | None = None  # of the server


CONFIDENCE = 0.95
_INSERTION = {"halves": halves, "coins": coins}


@dataclass(frozen=True)
class _FrozenRound:
    """The round of this number, which is next: the model, and the updates that all clients would make of it."""

    number: int
    params: Params
    clients: FactoredState
    scenario: Scenario


@dataclass(frozen=True)
class AuditedTrainer:
    """The trainer of a finished training, and CANIFE's audits on the way, by the design of canaries."""

    trainer: Trainer
    audits: Mapping[str, tuple[RoundAuditRecord, ...]]


class Bench:
    """Trainings of a dense network on one federation of clients with one example; all share what is compiled."""

    def __init__(self, federation: Federation, model: Model, plan: BenchmarkPlan) -> None:
        self.federation, self.model, self.plan = federation, model, plan
        self.sizes = plan.sizes(federation.clients, model.dim)
        self._whole = GeneralUpdates(model.loss, plan.clip_norm)
        self._auditors = {
            design.name: DenseAuditor(federation, replace(design.options, steps=plan.steps), plan.clip_norm)
            for design in DESIGNS
        }

    def compile(self) -> float:
        """Design a canary, and return the processor's seconds: before the first, something has to be compiled."""
        began = time.process_time()
        rng = np.random.default_rng(0)
        self._auditors[BOTH[0].name].design(self.model.init(0), self._pool(rng), rng)
        return time.process_time() - began

    def run(
        self,
        root: np.random.SeedSequence,
        scenario: Scenario,
        rate: float | None = None,
        designs: Sequence[CompetingDesign] = BOTH,
    ) -> AuditedTraining:
        """Train once and audit by all methods; arguments as for ``train``."""
        finished = self.train(root, scenario, rate, designs)
        trainer, plan = finished.trainer, self.plan
        assert trainer.canary_clients is not None
        test = self.federation.test_inputs, self.federation.test_labels
        # The operator accounts for a training without the fault.
        believed = Independent(plan.noise_multiplier, root), plan.delta, trainer.participation
        scores = CanaryScores.of(trainer)
        return AuditedTraining(
            analytical_epsilon(*believed, FixedClip(plan.clip_norm)),
            float(self.model.accuracy(trainer.params, *test)),
            audits(scores, self.model.dim, plan.delta, CONFIDENCE, "fixed"),
            finished.audits,
            SecondsRecord(
                training=trainer.seconds["training"] + trainer.seconds["noise"],
                oneshot=trainer.seconds["scoring"],
                canife={name: sum(audit.seconds for audit in each) for name, each in finished.audits.items()},
            ),
            tuple(trainer.canary_clients.warnings()),
            self._known_rounds(finished, scenario),
            without_absent(scores, trainer.participation, plan.delta, CONFIDENCE),
        )

    def train(
        self,
        root: np.random.SeedSequence,
        scenario: Scenario,
        rate: float | None = None,
        designs: Sequence[CompetingDesign] = BOTH,
        *,
        with_bounds: bool = True,
    ) -> AuditedTrainer:
        """Train once, with CANIFE's audits on the way; ``rate`` is another learning rate than the setting's.

        ``root`` decides all that is random; scenarios that share it can be compared run by run, and designs audit by
        audit. Lower bounds from CANIFE's scores take a quarter of an audit's time: the two main designs have them, if
        they are wanted.
        """

        def stream(*key: int) -> np.random.Generator:
            spawn_key = (*root.spawn_key, int(Purpose.CANIFE), *key)
            return np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=spawn_key))

        trainer = self._trainer(Seeds.of(root), scenario, rate or self.plan.rate)
        pool = self._pool(stream())
        records: dict[str, tuple[RoundAuditRecord, ...]] = {design.name: () for design in designs}
        for done in trainer.pauses(number - 1 for number in self.sizes.audited):
            frozen = self._next_round(done + 1, trainer.params, scenario)
            for design in designs:
                bounds = with_bounds and design in BOTH
                records[design.name] += (self._audit(frozen, pool, stream(done + 1), design, with_bounds=bounds),)
        return AuditedTrainer(trainer, records)

    def _known_rounds(self, finished: AuditedTrainer, scenario: Scenario) -> dict[str, KnownRoundsRecord]:
        """Compose the noise that canaries at known rounds measure, by whether the attacker knows the clients' data."""
        plan, sizes = self.plan, self.sizes
        claim = poisson(plan.noise_multiplier, rate=sizes.sampling, rounds=sizes.rounds)
        if scenario.shuffled:
            claim = gaussian(plan.noise_multiplier)
        epsilon = partial(epsilon_at, claim=claim, delta=plan.delta)
        return measured_noise(finished.trainer, CONFIDENCE, epsilon)

    def memory(self) -> MemoryRecord:
        """Return the bytes of the arrays that each method holds: what it computes from, not what a library takes."""
        state = self._auditors[BOTH[0].name].pool_state(self.model.init(0), self._pool(np.random.default_rng(0)))
        held = sum(np.asarray(part).nbytes for part in jax.tree.leaves(state.clients))
        return MemoryRecord(oneshot=BLOCK * (4 * self.model.dim + 16 * self.plan.canaries), canife=held)

    def _trainer(self, seeds: Seeds, scenario: Scenario, rate: float) -> Trainer:
        plan, sizes, clients = self.plan, self.sizes, self.federation.clients
        inserted = schedules.Insertion(2 * plan.canaries, plan.canaries)
        if scenario.shuffled:
            participation = schedules.shuffled_epochs(clients, plan.batch, 1, seeds.training, inserted)
        else:
            participation = schedules.bernoulli(clients, sizes.sampling, sizes.rounds, seeds.training, inserted)
        return sgd_trainer(
            self.federation,
            self.model,
            participation,
            seeds,
            plan.noise_multiplier,
            clip_norm=plan.clip_norm,
            rate=rate,
            fault=scenario.fault,
        )

    def _pool(self, rng: np.random.Generator) -> NDArray[np.int64]:
        return rng.choice(len(self.federation.test_labels), self.plan.pool, replace=False)

    def _next_round(self, number: int, params: Params, scenario: Scenario) -> _FrozenRound:
        clients = self._auditors[BOTH[0].name].clients(params, scenario.fault)
        return _FrozenRound(number, params, clients, scenario)

    def _starts(self, design: CompetingDesign, pool: NDArray[np.int64]) -> Starts:
        data = self.federation
        if design.start == "sample":
            return pool_samples(data.test_inputs[pool][:, None], data.test_labels[pool][:, None], data.classes)
        return noise(data.inputs.shape[1:], data.classes, design.start)

    def _audit(
        self,
        frozen: _FrozenRound,
        pool: NDArray[np.int64],
        rng: np.random.Generator,
        design: CompetingDesign,
        *,
        with_bounds: bool,
    ) -> RoundAuditRecord:
        """Audit a round by CANIFE: trial rounds are the server's, of clients that take part as in the training."""
        plan, params, fault = self.plan, frozen.params, frozen.scenario.fault
        auditor, began = self._auditors[design.name], time.process_time()
        canary = auditor.design(params, pool, rng, self._starts(design, pool))
        designed = time.process_time()
        noise_multiplier = plan.noise_multiplier
        if fault is not None:
            # Trial rounds have the server's fault.
            update = self._whole.canary_updates(params, [canary])[0]
            noise_multiplier = trial_noise(fault, noise_multiplier, update)
        response = auditor.response(frozen.clients, canary)
        poisson_samples = not frozen.scenario.shuffled
        mechanism = TrialRound(plan.batch, noise_multiplier, plan.clip_norm, poisson_samples)
        attacks: list[AttackRecord] = []
        attacked, insertion = time.process_time(), _INSERTION[design.inclusion]
        for trials in plan.scores:
            observed, unobserved = attack(response, insertion(trials, 1, rng), mechanism, rng).of()
            if not attacks:
                # CANIFE's own cost ends with its own number of scores. Clients' updates are the trial rounds' cost.
                seconds = designed - began + time.process_time() - attacked
                bounds = self._bounds(observed, unobserved) if with_bounds else {}
                share = accuracy(observed, unobserved)
            attacks.append(
                AttackRecord(
                    trials,
                    separation=float(observed.mean() - unobserved.mean()),
                    deviation=float(np.sqrt(0.5 * (observed.var(ddof=1) + unobserved.var(ddof=1)))),
                    epsilon=by_zero_counts(observed, unobserved),
                )
            )
        law = score_law(response, mechanism)
        return RoundAuditRecord(
            frozen.number,
            seconds,
            self._cosines(params, canary, rng),
            DesignRecord(canary.loss, canary.norm, canary.health, canary.attempts, canary.healthy),
            ScoreLawRecord(**asdict(law), deviation=law.deviation, epsilon=law.epsilon(plan.delta)),
            share,
            tuple(attacks),
            bounds,
        )

    def _cosines(self, params: Params, canary: Canary, rng: np.random.Generator) -> CosinesRecord | None:
        """Tell how far a canary's update is from orthogonal to those of clients of the training: as many as a batch."""
        chosen = rng.choice(self.federation.clients, self.plan.batch, replace=False)
        examples = self.federation.inputs[chosen][:, None], self.federation.labels[chosen][:, None]
        state = FREE.prepare(params, *examples, np.ones((len(chosen), 1), np.float32))
        response = FREE.response(state, [canary])
        squares = np.sum(
            [(1.0 + _squares(factors.inputs)) * _squares(factors.outputs) for factors in state.clients], axis=0
        )
        norms = np.sqrt(squares * response.gram[0, 0])
        # A client whose loss is 0 in float32 has no update and no direction, and a canary may have none.
        cosines = response.products[0][norms > 0.0] / norms[norms > 0.0]
        if not cosines.size:
            return None
        return CosinesRecord(root_mean_square=float(np.sqrt(np.mean(cosines**2))), largest=float(np.abs(cosines).max()))

    def _bounds(self, observed: NDArray[np.float64], unobserved: NDArray[np.float64]) -> dict[str, BoundRecord]:
        """Return all lower bounds from CANIFE's own number of scores of a round."""
        prepared = prepare(observed, unobserved, independent=True)
        return {
            name: bound_record(method.bound(prepared, self.plan.delta, 1.0 - CONFIDENCE))
            for name, method in METHODS.items()
            if method.can_use(prepared)
        }


def _squares(vectors: ArrayLike) -> NDArray[np.float64]:
    """Squared norms of vectors of clients that have one example, shape (clients, 1, dimension)."""
    return np.asarray(np.square(np.asarray(vectors, np.float64)[:, 0]).sum(axis=1))
