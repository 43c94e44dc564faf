"""Designs and attacks for the suite ``canife``: small networks on digits, repeated with seeds of their own.

A client has one example, and a network of 32 hidden units is trained without privacy, to some 70% of held-out images
unless a study says otherwise. Plans of a purpose share models, pools and starts, repetition by repetition, so that they
can be compared in pairs.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.canife.attack import Mechanism, accuracy, attack, halves, score_law
from canaryproof.verify.canife.design import Designer, Settings, Starts, noise, pool_samples
from canaryproof.verify.canife.factored import FactoredUpdates, State
from canaryproof.verify.federated.data import digits
from canaryproof.verify.federated.data.federation import Federation
from canaryproof.verify.federated.models import Model, Params, model
from canaryproof.verify.results import Context

Array = NDArray[np.float64]

# Mock clients of the largest pool; 297 images are held out.
POOL = 256
# Scores of an attack, half of them with the canary (Section 4.1).
TRIALS = 100
# Plain descent: examples of a step, its rate, and steps to 71% of held-out images on average.
_BATCH, _RATE, _STEPS = 64, 0.5, 20
# The setting of Section 4.1 without noise: 64 clients a round.
QUIET = Mechanism(64, 0.0)
DEFAULT = Settings()
# Fewer steps than the default, so that hundreds of designs take seconds, and no other start than that of the pair.
BASE = Settings(steps=1000, restarts=0)
# The same for attacks, in which a poor canary is designed anew.
AUDIT = Settings(steps=1000)


@dataclass(frozen=True)
class Plan:
    """How canaries are designed and what they attack.

    Attributes
    ----------
    settings
        Of the design.
    start
        Random pixels of one law or the other, or a sample of the pool.
    pool
        Mock clients; a power of two, at most ``POOL``.
    training
        Steps of the network's training.
    rounds
        Rounds to attack.
    """

    settings: Settings
    start: Literal["normal", "uniform", "pool"] = "normal"
    pool: int = POOL
    training: int = _STEPS
    rounds: tuple[Mechanism, ...] = (QUIET,)


@dataclass(frozen=True)
class Sample:
    """What repetitions of a plan found, shape (repetitions,) or (repetitions, rounds).

    Attributes
    ----------
    healthy, health, attempts, label
        Of the canaries' designs; the last is the sum of the soft label's probabilities.
    separation, deviation, accuracy
        Of scores: distance of the means with the canary and without, mean of both deviations, and the attack's
        accuracy at the best threshold.
    shift, law
        ‖u_c‖² and the scores' deviation over cohorts and noise, by calculation.
    """

    healthy: NDArray[np.bool_]
    health: Array
    attempts: NDArray[np.int64]
    label: Array
    separation: Array
    deviation: Array
    accuracy: Array
    shift: Array
    law: Array


def sample(context: Context, purpose: str, plan: Plan, repetitions: int) -> Sample:
    """Design a canary for each of many networks, and attack.

    Parameters
    ----------
    context
        Level and seed.
    purpose
        Name of the randomness.
    plan
        What is done.
    repetitions
        How often.
    """
    root = context.key(purpose)
    assert isinstance(root.entropy, int)
    return _sampled(root.entropy, tuple(root.spawn_key), plan, repetitions)


@lru_cache(maxsize=16)
def _sampled(entropy: int, spawn_key: tuple[int, ...], plan: Plan, repetitions: int) -> Sample:
    canaries, attacks = [], []
    for root in np.random.SeedSequence(entropy, spawn_key=spawn_key).spawn(repetitions):
        network, pool, design, scores = (np.random.default_rng(seed) for seed in root.spawn(4))
        params = trained(plan.training, network)
        images = federation()
        chosen = pool.permutation(len(images.test_labels))[: plan.pool]
        state = _pool(params, chosen, plan.settings.loss)
        canary = designer(plan.settings).design(state, _starts(plan.start, chosen), design)
        response = updates().response(mock_clients(params, images.inputs, images.labels), [canary])
        canaries.append((canary.healthy, canary.health, canary.attempts, canary.label.sum(dtype=np.float64)))
        found = []
        for mechanism in plan.rounds:
            observed, unobserved = attack(response, halves(TRIALS, 1, scores), mechanism, scores).of()
            law = score_law(response, mechanism)
            spread = 0.5 * (observed.std(ddof=1) + unobserved.std(ddof=1))
            separation = observed.mean() - unobserved.mean()
            found.append((separation, spread, accuracy(observed, unobserved), law.shift, law.deviation))
        attacks.append(found)
    designs = (np.array(column) for column in zip(*canaries, strict=True))
    return Sample(*designs, *np.moveaxis(np.array(attacks), 2, 0))


@cache
def federation() -> Federation:
    """Return the digits, one for each client."""
    return digits.load(1, 0)


@cache
def network() -> Model:
    """Return the network."""
    return model("two_layer", federation(), 32)


@cache
def updates() -> FactoredUpdates:
    """Return the clients' updates at clip norm 1."""
    return FactoredUpdates()


@cache
def designer(settings: Settings) -> Designer:
    """Return a designer that is compiled once."""
    return Designer(updates(), settings)


def trained(steps: int, rng: np.random.Generator) -> Params:
    """Return parameters after steps of plain gradient descent from a random start."""
    params = network().init(int(rng.integers(2**32)))
    batches = rng.integers(len(federation().labels), size=(steps, _BATCH))
    return _descent()(params, batches) if steps else params


@cache
def _descent() -> Any:
    inputs, labels = jnp.asarray(federation().inputs), jnp.asarray(federation().labels)

    def step(params: Params, batch: jax.Array) -> tuple[Params, None]:
        slope = jax.grad(network().loss)(params, inputs[batch], labels[batch], jnp.ones(_BATCH))
        return jax.tree.map(lambda p, s: p - _RATE * s, params, slope), None

    return jax.jit(lambda params, batches: jax.lax.scan(step, params, batches)[0])


def mock_clients(params: Params, inputs: NDArray[Any], labels: NDArray[Any]) -> State:
    """Return the updates of clients that have one example each."""
    return updates().prepare(params, inputs[:, None], labels[:, None], np.ones((len(labels), 1), np.float32))


def _pool(params: Params, chosen: NDArray[np.int64], loss: str) -> State:
    """Return a pool of the largest size, whatever its own, so that nothing is compiled anew for it."""
    images, missing = federation(), POOL - len(chosen)
    if loss == "mean":
        # A pool twice has the same mean.
        chosen, missing = np.resize(chosen, POOL), 0
    state = mock_clients(params, images.test_inputs[chosen], images.test_labels[chosen])
    # Clients whose updates are 0 add nothing to a sum of squares.
    return updates().padded(state, missing) if missing else state


def _starts(start: str, chosen: NDArray[np.int64]) -> Starts:
    images = federation()
    if start == "pool":
        return pool_samples(images.test_inputs[chosen][:, None], images.test_labels[chosen][:, None], images.classes)
    return noise(images.inputs.shape[1:], images.classes, "uniform" if start == "uniform" else "normal")
