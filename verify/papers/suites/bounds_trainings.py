"""Trainings of the suite ``bounds``: every score of an attacker, where a training is not the plainest one.

A training has 100 canaries that take part, 100 that do not, and noise of one clip norm in each coordinate. Others' data
repeat the model, so that they answer canaries. In half of the trainings the attacker knows these data.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from canaryproof.kernels.arrays import Array
from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.bounds import participations
from canaryproof.verify.audit.bounds.lower_bound import ScoreSample, cosine_null, prepare
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import (
    Insertion,
    Schedule,
    bernoulli,
    fixed_schedule,
    shuffled_epochs,
)
from canaryproof.verify.audit.canaries.scores import Score, Scores
from canaryproof.verify.audit.canaries.whitened_clients import WhitenedClients
from canaryproof.verify.papers.check.results import Context

COUNT, ROUNDS, DIM = 100, 4, 400
RATE = 0.25
# Norm of others' data, as a share of the noise's norm.
_DATA = 0.5
_MOMENTUM = 0.9
# Share of the canaries that drop out of their round, without a record of it.
_DROPPED = 0.2
# Running sums have independent noise: a round takes back the last round's.
_STRATEGY = np.tril(np.ones((ROUNDS, ROUNDS)))


@dataclass(frozen=True)
class TrainingKind:
    """A training, and the claim that holds for it."""

    name: str
    schedule: Callable[[int], Schedule]
    claim: Claim
    # step: factor of a round's update; momentum, dropped: shares of the last update, and of canaries that drop out.
    step: Callable[[int], float] = lambda _: 1.0
    momentum: float = 0.0
    dropped: float = 0.0
    adaptive: bool = False  # Whether the clip norm follows the releases
    strategy: Array | None = None  # Matrix by which the noise is correlated


@dataclass(frozen=True)
class TrainingAudits:
    """Audits of one score of many trainings."""

    training: TrainingKind
    score: str
    scores: ScoreSample
    null: str  # "exact", or "unobserved"
    noise_limits: Mapping[str, Array]  # Upper limits of the noise multiplier, by the name of their bound


def _epochs(number: int, seed: int) -> Schedule:
    return shuffled_epochs(ROUNDS // number, 1, number, seed, Insertion(2 * COUNT, COUNT))


def _unequal(seed: int) -> Schedule:
    """Give canaries 1 to 3 rounds each."""
    order = np.random.default_rng(seed).random((ROUNDS, 2 * COUNT)).argsort(axis=0)
    return fixed_schedule(order <= np.arange(2 * COUNT) % 3, np.arange(2 * COUNT) < COUNT)


TRAININGS = (
    TrainingKind("unequal rounds", _unequal, accountant.gaussian(1.0, participations=3)),
    TrainingKind(
        "Poisson sampling",
        lambda seed: bernoulli(0, RATE, ROUNDS, seed, Insertion(2 * COUNT, COUNT)),
        accountant.poisson(1.0, rate=RATE, rounds=ROUNDS),
    ),
    TrainingKind(
        "learning-rate decay", partial(_epochs, 1), accountant.gaussian(1.0), step=lambda number: 1.0 / (1.0 + number)
    ),
    TrainingKind("momentum", partial(_epochs, 2), accountant.gaussian(1.0, participations=2), momentum=_MOMENTUM),
    TrainingKind("adaptive clipping", partial(_epochs, 1), accountant.gaussian(1.0), adaptive=True),
    TrainingKind("DP-FTRL noise", partial(_epochs, 1), accountant.gaussian(1.0), strategy=_STRATEGY),
    TrainingKind("clients that drop out", partial(_epochs, 1), accountant.gaussian(1.0), dropped=_DROPPED),
)


def audits(context: Context, runs: int, alpha: float) -> Iterator[TrainingAudits]:
    """Train and score; noise is limited from above at level α."""
    for training in TRAININGS:
        seeds = context.key(f"bounds/trainings/{training.name}").generate_state(runs, np.uint64).tolist()
        taken = [_scored(training, seed, known=bool(number % 2)) for number, seed in enumerate(seeds)]
        for score in taken[0]:
            yield _audits(training, score, [each[score] for each in taken], alpha)


def _audits(training: TrainingKind, score: str, taken: Sequence[Scores], alpha: float) -> TrainingAudits:
    observed = np.array([each.observed for each in taken])
    unobserved = None if taken[0].unobserved is None else np.array([each.unobserved for each in taken])
    scores = prepare(observed, unobserved, cosine_null(DIM) if unobserved is None else None)
    limits: dict[str, list[float]] = {}
    for each in taken:
        record = each.record
        if record is None or record.score is not Score.KNOWN_ROUNDS:
            continue
        if record.traces is not None:
            limits.setdefault("composed-bound", []).append(record.traces.largest_noise(alpha))
        if unobserved is None and record.counts is not None and len(set(record.counts.tolist())) > 1:
            tails = cosine_null(DIM).log_tail(each.observed)
            limits.setdefault("participations", []).append(participations.largest_noise(tails, record.counts, alpha))
    null = "exact" if unobserved is None else "unobserved"
    return TrainingAudits(training, score, scores, null, {name: np.array(values) for name, values in limits.items()})


def _scored(training: TrainingKind, seed: int, *, known: bool) -> dict[str, Scores]:
    """Train with canaries, and take all scores; ``known`` says whether the attacker knows others' data."""
    rng = np.random.default_rng(seed)
    canaries, schedule = Canaries(seed, 2 * COUNT, DIM), training.schedule(seed)
    noises: Array = rng.standard_normal((ROUNDS, DIM))
    if training.strategy is None:
        noise_multiplier = None if training.claim.rate is None else 1.0
        clients = CanaryClients(canaries, schedule, noise_multiplier=noise_multiplier)
    else:
        clients = WhitenedClients(canaries, schedule, training.strategy)
        noises, known = np.asarray(np.linalg.solve(training.strategy, clients.sensitivity * noises), np.float64), True
    clip, deltas = 1.0, np.zeros((ROUNDS, DIM))
    model, velocity = np.zeros((2, DIM))
    for number, noise in enumerate(noises):
        data = _DATA * math.sqrt(DIM) * clip * model / max(float(np.linalg.norm(model)), 1e-9)
        members = schedule.canaries(number)
        staying = members[rng.random(len(members)) >= training.dropped]
        update = clip * (canaries.sum(staying) + noise) + data
        # Who knows the others' data knows the last release, too.
        others = training.step(number) * (training.momentum * velocity + data)
        velocity = training.momentum * velocity + update
        delta = training.step(number) * velocity
        clients.add(delta, number, known=others if known else None)
        deltas[number] = delta - others if known else delta
        model = model + delta
        if training.adaptive:
            clip *= 1.2 if float(update @ model) > 0.0 else 0.8
    scores = {"final model": Scores(clients.final(model)[0], dim=DIM)}
    if training.strategy is not None:
        return scores | {"known rounds": clients.scores(Score.KNOWN_ROUNDS)}
    scores["all rounds"] = clients.scores(Score.LARGEST)
    if training.claim.rate is not None:
        return scores | {"sampling": clients.scores(Score.LIKELIHOOD)}
    return scores | {"known rounds": clients.scores(Score.KNOWN_ROUNDS, gram=deltas @ deltas.T)}
