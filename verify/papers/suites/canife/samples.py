"""Trainings, designs and attacks for the suite ``canife``, on digits: they need JAX, and load when a check runs."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.bounds.catalogue import MEASURED as METHODS
from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.audit.canaries import participation as schedules
from canaryproof.verify.audit.canaries.participation import NO_CANARIES, Insertion
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import from_dimension, from_two_groups
from canaryproof.verify.papers.accounting.sampled_gaussian import composed_epsilon
from canaryproof.verify.papers.canife.attack import ScoreLaw, TrialRound, accuracy, attack, coins, halves, score_law
from canaryproof.verify.papers.canife.design import Starts, noise, pool_samples
from canaryproof.verify.papers.canife.measure import Deltas, round_epsilon, rounds_served, training_epsilon
from canaryproof.verify.papers.canife.options import REDESIGNED, CanaryOptions
from canaryproof.verify.papers.check.results import Context
from canaryproof.verify.papers.comparison import canife
from canaryproof.verify.papers.comparison.canife_designs import BOTH
from canaryproof.verify.papers.comparison.canife_methods import largest_round
from canaryproof.verify.papers.comparison.canife_training import SEED, AuditedTrainer, Bench, Scenario
from canaryproof.verify.papers.records.benchmark_record import RoundAuditRecord, ScoreLawRecord
from canaryproof.verify.papers.training import networks
from canaryproof.verify.papers.training.assembly import Seeds, sgd_trainer
from canaryproof.verify.papers.training.canary_scores import ALL, CHANGE, FINAL, CanaryScores
from canaryproof.verify.papers.training.data import digits
from canaryproof.verify.papers.training.data.federation import Federation
from canaryproof.verify.papers.training.dense_audits import DenseAuditor
from canaryproof.verify.papers.training.faults import Fault
from canaryproof.verify.papers.training.networks import Model, Params, model
from canaryproof.verify.papers.training.trainer import Trainer

# CANIFE and random canaries in the same trainings, with and without faults.


# Digits in rounds of 50, so that a training is short; the rate has grown with the batch. Audits are as many as pilots
# asked for, in which canaries differed much in how they avoid coordinates that have noise.
SETTING = replace(canife.PRINTED, batch=50, canaries=200, every=5, pool=256, scores=(100,), rate=3.0)
SCENARIOS = {
    "poisson": canife.POISSON,
    "shuffled": Scenario("shuffled epoch", shuffled=True),
    "reused": Scenario("the first round's noise in all", fault=Fault.NOISE),
    "halved": Scenario("no noise on half of the coordinates", fault=Fault.COORDINATES),
    "unclipped": Scenario("one client in a hundred not clipped", fault=Fault.CLIPPING),
}
_ALPHA = 0.05


@dataclass(frozen=True)
class Numbers:
    """Numbers of each method in repeated trainings; CANIFE's canaries are the redesign's."""

    values: Mapping[str, Array]  # Numbers by method, shape (trainings,)
    rounds: Array  # ε̂ of CANIFE's audits as shares of its cap, shape (trainings, audits)
    cosines: Array  # Root mean square of cosines of CANIFE's canaries with updates of the training's clients, alike
    deviations: Array  # Deviation of CANIFE's scores, cohorts and noise together, as a multiple of the noise's, alike


def pairs(context: Context, scenario: str, runs: int) -> tuple[Numbers, Numbers]:
    """Return the numbers of trainings without a fault, and of trainings of a scenario with the same seeds."""
    return _numbers(context, "poisson", runs), _numbers(context, scenario, runs)


@cache
def _numbers(context: Context, scenario: str, runs: int) -> Numbers:
    roots = context.key("canife-comparison").spawn(runs)
    # Canaries as printed fail so often that faults could not be distinguished from that.
    redesigned = BOTH[1]
    trainings = [_bench().train(root, SCENARIOS[scenario], designs=(redesigned,), with_bounds=False) for root in roots]
    audits = [finished.audits[redesigned.name] for finished in trainings]
    values = [_values_by_method(finished) for finished in trainings]
    cap = largest_round(SETTING.scores[0])
    return Numbers(
        {name: np.array([row[name] for row in values]) for name in values[0]},
        np.array([[min(1.0, _round(audit) / cap) for audit in each] for each in audits]),
        np.array([[_cosine(audit) for audit in each] for each in audits]),
        np.array([[_deviation(audit.law) for audit in each] for each in audits]),
    )


def _round(audit: RoundAuditRecord) -> float:
    return audit.attacks[0].epsilon.capped.epsilon


def _cosine(audit: RoundAuditRecord) -> float:
    assert audit.cosines is not None
    return audit.cosines.root_mean_square


def _deviation(law: ScoreLawRecord) -> float:
    return law.deviation / law.noise if law.noise else math.inf


@cache
def _bench() -> Bench:
    images = digits.load(1, SEED)
    return Bench(images, networks.model("two_layer", images, None), SETTING)


def dimension() -> int:
    """Return the dimension d of the model."""
    return _bench().model.dim


def rounds() -> int:
    """Return the number of rounds of a training."""
    return _bench().sizes.rounds


def _values_by_method(done: AuditedTrainer) -> dict[str, float]:
    scores, delta, dim = CanaryScores.of(done.trainer), SETTING.delta, dimension()
    all_rounds = from_two_groups(scores.observed[ALL], scores.unobserved[ALL])
    values: dict[str, Any] = {
        "algorithm-3": epsilon_estimators.both_directions(delta, all_rounds.distance, all_rounds.ratio),
        "algorithm-3-pinned": epsilon_estimators.pinned_estimate(all_rounds, delta).epsilon,
        "bound": METHODS["fixed-threshold"]
        .bound(prepare(scores.observed[ALL], scores.unobserved[ALL], inclusion="fixed"), delta, _ALPHA)
        .value,
    }
    for seen in (FINAL, CHANGE):
        moments = from_dimension(scores.observed[seen], dim)
        values[seen] = epsilon_estimators.pinned_estimate(moments, delta).epsilon
        values[f"{seen}-fitted"] = epsilon_estimators.both_directions(delta, moments.distance, moments.ratio)
    # The mean over rounds is geometric, so that one canary that happens to avoid the noise does not decide it.
    values["canife-law"] = np.exp(np.mean([np.log(audit.law.epsilon) for audit in done.audits[BOTH[1].name]]))
    return {name: float(value) for name, value in values.items()}


# Designs and attacks for the suite ``canife``: small networks on digits, repeated with seeds of their own.
#
# A client has one example, and a network of 32 hidden units is trained without privacy, to some 70% of held-out
# images unless a study says otherwise. Plans of a purpose share models, pools and starts, repetition by repetition,
# so that they can be compared in pairs.


# Mock clients of the largest pool; 297 images are held out.
POOL = 256
# Scores of an attack, half of them with the canary (Section 4.1).
TRIALS = 100
# Plain descent: examples of a step, its rate, and steps to 71% of held-out images on average.
_BATCH, _RATE, _STEPS = 64, 0.5, 20
# The setting of Section 4.1 without noise: 64 clients a round.
QUIET = TrialRound(64, 0.0)
DEFAULT = REDESIGNED
# Fewer steps than the redesign, so that hundreds of designs take seconds, and no other start than that of the pair.
BASE = CanaryOptions(steps=1000, restarts=0)
# The same for attacks, in which a poor canary is designed anew.
AUDIT = CanaryOptions(steps=1000)


@dataclass(frozen=True)
class DesignPlan:
    """How canaries are designed and what they attack."""

    settings: CanaryOptions
    # Designs begin with random pixels of one law or the other, or with a sample of the pool.
    start: Literal["normal", "uniform", "pool"] = "normal"
    pool: int = POOL  # Mock clients, at most ``POOL``
    training: int = _STEPS  # Steps of the network's training
    rounds: tuple[TrialRound, ...] = (QUIET,)  # Rounds to attack


@dataclass(frozen=True)
class DesignSample:
    """Numbers of a plan's repetitions, shape (repetitions,) or (repetitions, rounds)."""

    # healthy, health, attempts, label: of the canaries' designs; the last is the sum of the soft label's probabilities.
    healthy: NDArray[np.bool_]
    health: Array
    attempts: NDArray[np.int64]
    label: Array
    # separation, deviation, accuracy: of scores: distance of the means with the canary and without, mean of both
    # deviations, and the attack's accuracy at the best threshold.
    separation: Array
    deviation: Array
    accuracy: Array
    # shift, law: ‖u_c‖² and the scores' deviation over cohorts and noise, by calculation.
    shift: Array
    law: Array


def sample(context: Context, purpose: str, plan: DesignPlan, repetitions: int) -> DesignSample:
    """Design a canary for each of many networks, and attack; ``purpose`` names the randomness."""
    root = context.key(purpose)
    assert isinstance(root.entropy, int)
    attacked = [_attacked(root.entropy, (*root.spawn_key, i), plan) for i in range(repetitions)]
    canaries, attacks = zip(*attacked, strict=True)
    designs = (np.array(column) for column in zip(*canaries, strict=True))
    return DesignSample(*designs, *np.moveaxis(np.array(attacks), 2, 0))


# A repetition is the same whatever their number, so that checks share those they have in common.
@cache
def _attacked(
    entropy: int, spawn_key: tuple[int, ...], plan: DesignPlan
) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
    _, pool, design, scores = (np.random.default_rng(seed) for seed in _seeds(entropy, spawn_key))
    params = _network(entropy, spawn_key, plan.training)
    images = federation()
    chosen = pool.permutation(len(images.test_labels))[: plan.pool]
    audit = auditor(plan.settings).audit(params, chosen, design, starts=_starts(plan.start, chosen))
    canary, response = audit.canary, audit.response
    attacks = []
    for mechanism in plan.rounds:
        observed, unobserved = attack(response, halves(TRIALS, 1, scores), mechanism, scores).of()
        law = score_law(response, mechanism)
        spread = 0.5 * (observed.std(ddof=1) + unobserved.std(ddof=1))
        separation = observed.mean() - unobserved.mean()
        attacks.append((separation, spread, accuracy(observed, unobserved), law.shift, law.deviation))
    return (canary.healthy, canary.health, canary.attempts, float(canary.label.sum(dtype=np.float64))), attacks


@lru_cache(maxsize=2048)
def _network(entropy: int, spawn_key: tuple[int, ...], steps: int) -> Params:
    """Train the network of a repetition, which its plans share."""
    return trained(steps, np.random.default_rng(_seeds(entropy, spawn_key)[0]))


def _seeds(entropy: int, spawn_key: tuple[int, ...]) -> list[np.random.SeedSequence]:
    """Seeds of a repetition: network, pool, design, scores."""
    return np.random.SeedSequence(entropy, spawn_key=spawn_key).spawn(4)


@cache
def federation() -> Federation:
    """Return the digits, one for each client."""
    return digits.load(1, 0)


@cache
def two_layer() -> Model:
    """Return the network."""
    return model("two_layer", federation(), 32)


@cache
def auditor(settings: CanaryOptions) -> DenseAuditor:
    """Return an auditor by designs of these options, at clip norm 1."""
    return DenseAuditor(federation(), settings)


def trained(steps: int, rng: np.random.Generator) -> Params:
    """Return parameters after steps of plain gradient descent from a random start."""
    params = two_layer().init(int(rng.integers(2**32)))
    batches = rng.integers(len(federation().labels), size=(steps, _BATCH))
    return _descent()(params, batches) if steps else params


@cache
def _descent() -> Any:
    inputs, labels = jnp.asarray(federation().inputs), jnp.asarray(federation().labels)

    def step(params: Params, batch: jax.Array) -> tuple[Params, None]:
        slope = jax.grad(two_layer().loss)(params, inputs[batch], labels[batch], jnp.ones(_BATCH))
        return jax.tree.map(lambda p, s: p - _RATE * s, params, slope), None

    return jax.jit(lambda params, batches: jax.lax.scan(step, params, batches)[0])


def _starts(start: str, chosen: NDArray[np.int64]) -> Starts:
    images = federation()
    if start == "pool":
        return pool_samples(images.test_inputs[chosen][:, None], images.test_labels[chosen][:, None], images.classes)
    return noise(images.inputs.shape[1:], images.classes, "uniform" if start == "uniform" else "normal")


# Private trainings for the suite ``canife``: those that it monitors, and those with random canaries too.


# Three epochs of ten rounds, in which a client takes part with this probability.
COHORT, EPOCH, ROUNDS = 150, 10, 30
SAMPLING = COHORT / 1500
# Audited rounds: two in each epoch.
AUDITED = (1, 6, 11, 16, 21, 30)
DELTA = 1e-5


@dataclass(frozen=True)
class Monitored:
    """CANIFE's numbers along trainings."""

    # rounds, limited, health: ε̂ of each audit, ε of unlimited scores at the same δ, and the canary's health, shape
    # (trainings, audits).
    rounds: Array
    limited: Array
    health: Array
    training: Array  # ε̂ of each training, shape (trainings,)
    accuracy: Array  # Accuracy of each final model on held-out images, alike


class SideBySide(NamedTuple):
    """Analytical ε of a training that both audit, and their numbers."""

    analytical: float  # ε by the paper's accounting
    # bound, fitted, pinned: 95% lower bound, and estimates, from random canaries in all rounds.
    bound: float
    fitted: float
    pinned: float
    round: float  # The largest such bound on a round's ε from CANIFE's scores


@cache
def noise_multiplier(epsilon: float) -> float:
    """Return the noise multiplier at which the accounting of the paper gives a training this ε."""
    return math.exp(
        optimize.brentq(
            lambda log: composed_epsilon([math.exp(log)], [ROUNDS], SAMPLING, DELTA) - epsilon, -2.0, 1.0, xtol=1e-6
        )
    )


def monitored(context: Context, purpose: str, epsilon: float, repetitions: int) -> Monitored:
    """Train, and audit on the way as the paper does: canaries that coins insert, 100 scores, δ as printed."""
    root = context.key(purpose)
    assert isinstance(root.entropy, int)
    return _monitored(root.entropy, tuple(root.spawn_key), epsilon, repetitions)


@lru_cache(maxsize=4)
def _monitored(entropy: int, spawn_key: tuple[int, ...], epsilon: float, repetitions: int) -> Monitored:
    sigma = noise_multiplier(epsilon)
    roots = np.random.SeedSequence(entropy, spawn_key=spawn_key).spawn(repetitions)
    trainings = [_along(root, sigma) for root in roots]
    served = rounds_served(AUDITED, ROUNDS)
    deltas = Deltas.as_printed(TRIALS, DELTA)
    rows = np.array([audits for audits, _ in trainings])
    composed = [training_epsilon(audits[:, 0].tolist(), served, SAMPLING, deltas) for audits in rows]
    accuracies = [share for _, share in trainings]
    measured, limited, health = np.moveaxis(rows, 2, 0)
    return Monitored(measured, limited, health, np.array(composed), np.array(accuracies))


def _along(root: np.random.SeedSequence, sigma: float) -> tuple[list[tuple[float, float, float]], float]:
    rng = np.random.default_rng(root.spawn(1)[0])
    trainer = private_trainer(root, sigma)
    audits = [_measured(trainer, sigma, rng) for _ in trainer.pauses(number - 1 for number in AUDITED)]
    test = federation().test_inputs, federation().test_labels
    return audits, float(two_layer().accuracy(trainer.params, *test))


def private_trainer(
    root: np.random.SeedSequence, sigma: float, count: int = ROUNDS, inserted: Insertion = NO_CANARIES
) -> Trainer:
    """Return the trainer of a training at a noise multiplier, with random canaries or none."""
    seeds, images = Seeds.of(root), federation()
    participation = schedules.bernoulli(images.clients, SAMPLING, count, seeds.training, inserted)
    return sgd_trainer(images, two_layer(), participation, seeds, sigma)


def _measured(trainer: Trainer, sigma: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return ε̂ of the round that is next, ε of unlimited scores, and the canary's health."""
    observed, unobserved, law, health = _audited(trainer, sigma, rng, coins)
    delta = 1.0 / TRIALS
    return round_epsilon(observed, unobserved, delta, zero_counts="capped").epsilon, law.epsilon(delta), health


def _audited(
    trainer: Trainer, sigma: float, rng: np.random.Generator, insert: Callable[..., NDArray[np.bool_]]
) -> tuple[Array, Array, ScoreLaw, float]:
    chosen = rng.permutation(len(federation().test_labels))[:POOL]
    audit = auditor(AUDIT).audit(trainer.params, chosen, rng)
    mechanism = TrialRound(COHORT, sigma)
    scores = attack(audit.response, insert(TRIALS, 1, rng), mechanism, rng)
    return *scores.of(), score_law(audit.response, mechanism), audit.canary.health


def undisturbed(root: np.random.SeedSequence) -> bool:
    """Whether a training that is audited ends with the same bits as one that is not."""
    sigma, rng = noise_multiplier(50.0), np.random.default_rng(root.spawn(1)[0])
    audited, alone = private_trainer(root, sigma), private_trainer(root, sigma)
    for _ in audited.pauses(number - 1 for number in AUDITED):
        _measured(audited, sigma, rng)
    alone.run()
    return audited.theta.tobytes() == alone.theta.tobytes()


def side_by_side(context: Context, purpose: str, repetitions: int) -> list[SideBySide]:
    """Audit an epoch of training by CANIFE and by 100 random canaries, at the noise of the papers' comparison."""
    return [_side_by_side(root) for root in context.key(purpose).spawn(repetitions)]


def _side_by_side(root: np.random.SeedSequence) -> SideBySide:
    rng, count, sigma = np.random.default_rng(root.spawn(1)[0]), TRIALS, 0.2
    trainer = private_trainer(root, sigma, EPOCH, schedules.Insertion(2 * count, count))
    assert trainer.canary_clients is not None
    # Both kinds have equal sizes, as a bound takes long for each new size.
    bounds = [
        lower_bound(*_audited(trainer, sigma, rng, halves)[:2]) for _ in trainer.pauses((0, EPOCH // 2 - 1, EPOCH - 1))
    ]
    observed, unobserved = trainer.canary_clients.all_rounds()
    moments = from_two_groups(observed, unobserved)
    return SideBySide(
        composed_epsilon([sigma], [EPOCH], SAMPLING, DELTA),
        lower_bound(observed, unobserved),
        float(epsilon_estimators.both_directions(DELTA, moments.distance, moments.ratio)),
        float(epsilon_estimators.pinned_epsilon(DELTA, moments.distance)),
        max(bounds),
    )


def lower_bound(observed: Array, unobserved: Array) -> float:
    """Return a lower bound on ε whose coverage is proven, from 100 scores of each kind or 50."""
    return float(METHODS["fixed-sequence"].bound(prepare(observed, unobserved), DELTA, 0.05).value)
