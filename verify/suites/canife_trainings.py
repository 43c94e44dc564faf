"""Private trainings for the suite ``canife``: those that it monitors, and those with random canaries too."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.scores import prepare
from canaryproof.verify.canife.attack import Mechanism, ScoreLaw, attack, coins, halves, score_law
from canaryproof.verify.canife.design import noise
from canaryproof.verify.canife.measure import Deltas, composed_epsilon, round_epsilon, rounds_served, training_epsilon
from canaryproof.verify.federated import schedules
from canaryproof.verify.federated.assembly import Seeds
from canaryproof.verify.federated.canary_clients import CanaryClients
from canaryproof.verify.federated.clipping import FixedClip
from canaryproof.verify.federated.noise import Independent
from canaryproof.verify.federated.options import Training
from canaryproof.verify.federated.schedules import NO_CANARIES, Insertion
from canaryproof.verify.federated.training import Trainer
from canaryproof.verify.oneshot import estimators
from canaryproof.verify.oneshot.moments import from_unobserved
from canaryproof.verify.results import Context
from canaryproof.verify.suites import canife_studies as studies

Array = NDArray[np.float64]

# Three epochs of ten rounds, in which a client takes part with this probability.
COHORT, EPOCH, ROUNDS = 150, 10, 30
SAMPLING = COHORT / 1500
# Audited rounds: two in each epoch.
AUDITED = (1, 6, 11, 16, 21, 30)
DELTA = 1e-5


@dataclass(frozen=True)
class Monitored:
    """What CANIFE finds along trainings.

    Attributes
    ----------
    rounds, limited, health
        ε̂ of each audit, ε of unlimited scores at the same δ, and the canary's health, shape (trainings, audits).
    training
        ε̂ of each training, shape (trainings,).
    accuracy
        Of each final model on held-out images, alike.
    """

    rounds: Array
    limited: Array
    health: Array
    training: Array
    accuracy: Array


class Beside(NamedTuple):
    """A training that both audit: its analytical ε, and what is found.

    Attributes
    ----------
    analytical
        ε by the paper's accounting.
    bound, fitted, pinned
        95% lower bound, and estimates, from random canaries in all rounds.
    round
        The largest such bound on a round's ε from CANIFE's scores.
    """

    analytical: float
    bound: float
    fitted: float
    pinned: float
    round: float


@cache
def noise_multiplier(epsilon: float) -> float:
    """Return the noise multiplier at which the accounting of the paper gives a training this ε."""
    return math.exp(
        optimize.brentq(
            lambda log: composed_epsilon([math.exp(log)], [ROUNDS], SAMPLING, DELTA) - epsilon, -2.0, 1.0, xtol=1e-6
        )
    )


def monitored(context: Context, purpose: str, epsilon: float, repetitions: int) -> Monitored:
    """Train, and audit on the way as the paper does: canaries that coins insert, 100 scores, δ as printed.

    Parameters
    ----------
    context
        Level and seed.
    purpose
        Name of the randomness.
    epsilon
        Analytical ε of the trainings.
    repetitions
        How many there are.
    """
    root = context.key(purpose)
    assert isinstance(root.entropy, int)
    return _monitored(root.entropy, tuple(root.spawn_key), epsilon, repetitions)


@lru_cache(maxsize=4)
def _monitored(entropy: int, spawn_key: tuple[int, ...], epsilon: float, repetitions: int) -> Monitored:
    sigma = noise_multiplier(epsilon)
    roots = np.random.SeedSequence(entropy, spawn_key=spawn_key).spawn(repetitions)
    found = [_along(root, sigma) for root in roots]
    served = rounds_served(AUDITED, ROUNDS)
    deltas = Deltas.as_printed(studies.TRIALS, DELTA)
    rows = np.array([audits for audits, _ in found])
    composed = [training_epsilon(audits[:, 0].tolist(), served, SAMPLING, deltas) for audits in rows]
    accuracies = [accuracy for _, accuracy in found]
    rounds, limited, health = np.moveaxis(rows, 2, 0)
    return Monitored(rounds, limited, health, np.array(composed), np.array(accuracies))


def _along(root: np.random.SeedSequence, sigma: float) -> tuple[list[tuple[float, float, float]], float]:
    images, rng = studies.federation(), np.random.default_rng(root.spawn(1)[0])
    training, _ = trainer(root, sigma)
    audits = []
    for number in AUDITED:
        training.run(until=number - 1)
        audits.append(_audit(training, sigma, rng))
    training.run()
    test = images.test_inputs, images.test_labels
    return audits, float(studies.network().accuracy(training.params, *test))


def trainer(
    root: np.random.SeedSequence, sigma: float, rounds: int = ROUNDS, inserted: Insertion = NO_CANARIES
) -> tuple[Trainer, CanaryClients | None]:
    """Return a training at a noise multiplier, and its random canaries if there are any."""
    seeds, images, network = Seeds.of(root), studies.federation(), studies.network()
    participation = schedules.bernoulli(images.clients, SAMPLING, rounds, seeds.training, inserted)
    training = Training(
        clip=FixedClip(1.0),
        noise=Independent(sigma, seeds.training),
        client_rate=1.0,
        batch_size=1,
        examples_per_client=1,
        seed=seeds.model,
    )
    canaries = None
    if inserted is not NO_CANARIES:
        canaries = CanaryClients(Canaries(seeds.canaries, inserted.count, network.dim), participation)
    return Trainer(images, network, participation, training, canaries), canaries


def _audit(training: Trainer, sigma: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return ε̂ of the round that is next, ε of unlimited scores, and the canary's health."""
    observed, unobserved, law, health = _audited(training, sigma, rng, coins)
    delta = 1.0 / studies.TRIALS
    return round_epsilon(observed, unobserved, delta, zero_counts="capped").epsilon, law.epsilon(delta), health


def _audited(
    training: Trainer, sigma: float, rng: np.random.Generator, insert: Callable[..., NDArray[np.bool_]]
) -> tuple[Array, Array, ScoreLaw, float]:
    images = studies.federation()
    chosen = rng.permutation(len(images.test_labels))[: studies.POOL]
    state = studies.mock_clients(training.params, images.test_inputs[chosen], images.test_labels[chosen])
    starts = noise(images.inputs.shape[1:], images.classes)
    canary = studies.designer(studies.AUDIT).design(state, starts, rng)
    present = studies.mock_clients(training.params, images.inputs, images.labels)
    response, mechanism = studies.updates().response(present, [canary]), Mechanism(COHORT, sigma)
    scores = attack(response, insert(studies.TRIALS, 1, rng), mechanism, rng)
    return *scores.of(), score_law(response, mechanism), canary.health


def undisturbed(root: np.random.SeedSequence) -> bool:
    """Whether a training that is audited ends with the same bits as one that is not."""
    sigma, rng = noise_multiplier(50.0), np.random.default_rng(root.spawn(1)[0])
    (audited, _), (alone, _) = trainer(root, sigma), trainer(root, sigma)
    for number in AUDITED:
        audited.run(until=number - 1)
        _audit(audited, sigma, rng)
    audited.run()
    alone.run()
    return audited.theta.tobytes() == alone.theta.tobytes()


def side_by_side(context: Context, purpose: str, repetitions: int) -> list[Beside]:
    """Audit an epoch of training by CANIFE and by 100 random canaries, at the noise of the papers' comparison.

    Parameters
    ----------
    context, purpose, repetitions
        As for ``monitored``.
    """
    return [_beside(root) for root in context.key(purpose).spawn(repetitions)]


def _beside(root: np.random.SeedSequence) -> Beside:
    rng, count, sigma = np.random.default_rng(root.spawn(1)[0]), studies.TRIALS, 0.2
    training, canaries = trainer(root, sigma, EPOCH, schedules.Insertion(2 * count, count))
    assert canaries is not None
    rounds = []
    for number in (1, EPOCH // 2, EPOCH):
        training.run(until=number - 1)
        # Of equal sizes, as a bound takes long for each size that is new.
        observed, unobserved, _, _ = _audited(training, sigma, rng, halves)
        rounds.append(_bound(observed, unobserved))
    training.run()
    observed, unobserved = canaries.all_rounds()
    moments = from_unobserved(observed, unobserved)
    return Beside(
        composed_epsilon([sigma], [EPOCH], SAMPLING, DELTA),
        _bound(observed, unobserved),
        float(estimators.both_directions(DELTA, moments.distance, moments.ratio)),
        float(estimators.pinned_epsilon(DELTA, moments.distance)),
        max(rounds),
    )


def _bound(observed: Array, unobserved: Array) -> float:
    """Return a lower bound on ε whose coverage is proven, from 100 scores of each kind or 50."""
    return float(METHODS["fixed-sequence"].bound(prepare(observed, unobserved), DELTA, 0.05).value)
