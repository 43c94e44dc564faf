"""Trainings for the suite ``training``: those of the experiment ``presentations``, repeated with seeds of its own."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.canaries import participation
from canaryproof.verify.audit.canaries.participation import Insertion, Presentations, Schedule
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import from_dimension, from_two_groups
from canaryproof.verify.papers.accounting.training import analytical_epsilon
from canaryproof.verify.papers.check.results import Context
from canaryproof.verify.papers.training import assembly, networks
from canaryproof.verify.papers.training.assembly import Seeds
from canaryproof.verify.papers.training.canary_scores import ALL, ATTACKS, CanaryScores
from canaryproof.verify.papers.training.clipping import FixedClip
from canaryproof.verify.papers.training.configuration import Data, Network, Settings, read
from canaryproof.verify.papers.training.data.federation import FederatedData
from canaryproof.verify.papers.training.networks import Model
from canaryproof.verify.papers.training.noise import Independent
from canaryproof.verify.papers.training.trainer import Trainer

_CLIP = FixedClip(1.0)


@dataclass(frozen=True)
class TrainingSample:
    """Repetitions of a training, and what each attack sees of them."""

    # distance, ratio: standardised mean and deviation of the canaries' scores by attack, shape (repetitions,).
    distance: Mapping[str, Array]
    ratio: Mapping[str, Array]
    epsilon: Mapping[str, Array]  # The paper's estimate, ``fitted``, alike


def settings(**changes: Mapping[str, Any]) -> Settings:
    """Return settings of the experiment ``presentations`` with other values in some fields of its tables."""
    base = read("presentations", "quick").cells[0].settings
    return replace(base, **{name: replace(getattr(base, name), **values) for name, values in changes.items()})


def sample(
    context: Context, purpose: str, chosen: Settings, repetitions: int, attacks: Sequence[str] = ATTACKS
) -> TrainingSample:
    """Repeat a training with independent seeds; scores of several ``canaries.runs`` are pooled."""
    dim, runs = _model(chosen.model, chosen.data).dim, chosen.random_canaries.runs
    roots = context.key(purpose).spawn(repetitions * runs)
    distances, ratios = [], []
    for i in range(repetitions):
        pooled = CanaryScores.pooled([trained(chosen, root, attacks) for root in roots[i * runs : (i + 1) * runs]])
        moments_by_attack = [
            from_two_groups(pooled.observed[attack], pooled.unobserved[attack])
            if attack == ALL
            else from_dimension(pooled.observed[attack], dim)
            for attack in attacks
        ]
        distances.append([float(moments.distance) for moments in moments_by_attack])
        ratios.append([float(moments.ratio) for moments in moments_by_attack])
    distance, ratio = (dict(zip(attacks, np.array(rows).T, strict=True)) for rows in (distances, ratios))
    delta = chosen.audit.delta
    epsilon = {attack: epsilon_estimators.both_directions(delta, distance[attack], ratio[attack]) for attack in attacks}
    return TrainingSample(distance, ratio, epsilon)


def trained(chosen: Settings, root: np.random.SeedSequence, attacks: Sequence[str] = ATTACKS) -> CanaryScores:
    """Train once and score the canaries."""
    trainer = made(chosen, root)
    trainer.run()
    return CanaryScores.of(trainer, attacks)


def stopped(chosen: Settings, root: np.random.SeedSequence, rounds: int) -> CanaryScores:
    """Train as ``trained`` does, but stop after some rounds and go on in another trainer, from a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = made(chosen, root)
        trainer.run(until=rounds)
        trainer.save(folder)
        trainer = made(chosen, root)
        trainer.load(folder)
    trainer.run()
    return CanaryScores.of(trainer)


def noise_alone(chosen: Settings, rounds: int, noise_multiplier: float, root: np.random.SeedSequence) -> CanaryScores:
    """Score canaries that take part in every round of a training without clients: the Gaussian mechanism, composed.

    The settings of data, model and canaries count, and those of the training do not.
    """
    seeds, plan = Seeds.of(root), chosen.random_canaries
    federation, model = _federation(chosen.data), _model(chosen.model, chosen.data)
    schedule = _every_round(2 * plan.count, rounds, plan.count if plan.inclusion == "fixed" else None, root)
    trainer = assembly.sgd_trainer(federation, model, schedule, seeds, noise_multiplier)
    trainer.run()
    return CanaryScores.of(trainer)


def noise_alone_epsilon(rounds: int, noise_multiplier: float, delta: float) -> float:
    """Return the analytical ε of ``noise_alone`` at δ."""
    noise = Independent(noise_multiplier, 0)
    accounting = analytical_epsilon(noise, delta, _every_round(2, rounds, 1, np.random.SeedSequence(0)), _CLIP)
    assert accounting.epsilon is not None
    return accounting.epsilon


def _every_round(count: int, rounds: int, observed: int | None, root: np.random.SeedSequence) -> Schedule:
    return participation.uniform(0, 0, rounds, root, Insertion(count, observed, Presentations(rounds)))


def dimension(chosen: Settings) -> int:
    """Return the dimension d of a model."""
    return _model(chosen.model, chosen.data).dim


def same(scores: CanaryScores, other: CanaryScores) -> bool:
    """Whether two trainings' scores have the same bits."""
    pairs: Sequence[tuple[Mapping[str, Array], Mapping[str, Array]]] = (
        (scores.observed, other.observed),
        (scores.unobserved, other.unobserved),
    )
    return all(left[attack].tobytes() == right[attack].tobytes() for left, right in pairs for attack in ATTACKS)


def made(chosen: Settings, root: np.random.SeedSequence) -> Trainer:
    """Make the trainer of a training with canaries."""
    federation, model = _federation(chosen.data), _model(chosen.model, chosen.data)
    return assembly.trainer(chosen, federation, model, Seeds.of(root))


@cache
def _federation(data: Data) -> FederatedData:
    return assembly.federation(data, None, 0)


@cache
def _model(network: Network, data: Data) -> Model:
    # Equal settings have one model, so that nothing is compiled twice.
    return networks.model(network.name, _federation(data), network.hidden)
