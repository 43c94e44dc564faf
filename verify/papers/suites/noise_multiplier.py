"""The noise multiplier that canaries measure: levels, power and evidence of its test, in simulated trainings."""

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, shuffled_epochs
from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces, noticed_share
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.check.power import least_share, visible_distance
from canaryproof.verify.papers.check.results import Check, Context, Design, Outcome, Subject, Verdict

# Level of the tests that are judged.
_ALPHA = 0.05
# Dimension, ‖S‖ of each round, and noise multiplier of a training.
_Training = tuple[int, tuple[float, ...], float]
_TRAININGS: tuple[_Training, ...] = (
    (1000, (3.0,) * 20, 1.0),
    (8000, (7.0,) * 10, 0.3),
    (10**6, (1.0, 30.0, 5.0), 2.0),
    (10**9, (31.6,), 1.54),
)


def _traces(
    dim: int,
    lengths: tuple[float, ...],
    noise: float,
    rng: np.random.Generator,
    data: float = 0.0,
) -> RoundTraces:
    """Draw a training from its law.

    A round's data are orthogonal to its canaries. Their norm, in units of σ√d, grows with earlier rounds' cosines.
    """
    cosines = np.zeros(len(lengths))
    for t, length in enumerate(lengths):
        along, other = rng.standard_normal(2) * noise
        rest = noise**2 * rng.chisquare(dim - 2)
        side = data * noise * math.sqrt(dim) * (1.0 + np.abs(cosines[:t]).sum())
        cosines[t] = (length + along) / math.sqrt((length + along) ** 2 + (side + other) ** 2 + rest)
    return RoundTraces(cosines, np.array(lengths), dim, residual=False, rounds=len(lengths))


def _uniform(context: Context) -> Outcome:
    runs = context.pick(100, 2500)
    p_values = [
        _traces(dim, lengths, noise, rng).p_value(noise)
        for (dim, lengths, noise), rng in _generators(context, "uniform")
        for _ in range(runs)
    ]
    smallest = float(stats.kstest(p_values, "uniform").pvalue)
    visible = visible_distance(len(p_values), LEVEL)
    return Outcome(
        Verdict.CONFIRMED if smallest >= LEVEL else Verdict.REFUTED,
        f"of {len(p_values):,} p-values of the claimed noise alone, p = {smallest:.2g} for uniform ones",
        {"runs": len(p_values), "p_value": smallest},
        Design(
            "p-values of the claimed noise are uniform",
            LEVEL,
            f"their distribution function is {visible:.2g} away",
            POWER,
            len(p_values),
        ),
    )


def _generators(
    context: Context, purpose: str
) -> list[tuple[tuple[int, tuple[float, ...], float], np.random.Generator]]:
    keys = context.key(f"noise-multiplier/{purpose}").spawn(len(_TRAININGS))
    return [(training, np.random.default_rng(key)) for training, key in zip(_TRAININGS, keys, strict=True)]


def _at_most(count: int, runs: int, rate: float, event: str) -> Outcome:
    """Judge that an event has at most its stated probability."""
    allowed = int(stats.binom.isf(LEVEL, runs, rate))
    share = least_share(lambda p: float(stats.binom.sf(allowed, runs, p)), POWER)
    return Outcome(
        Verdict.CONFIRMED if count <= allowed else Verdict.REFUTED,
        f"{count:,} of {runs:,} honest trainings {event}; {rate:g} of them may",
        {"runs": runs, "count": count, "allowed": allowed, "rate": rate},
        Design(
            f"an honest training {event} with probability {rate:g} at most",
            LEVEL,
            f"it does with probability {share:.2g} or more",
            POWER,
            runs,
        ),
    )


def _with_data(context: Context) -> Outcome:
    """Count rejections of honest trainings with data, also such that answer what was released before."""
    runs, rejected = context.pick(60, 1500), 0
    for (dim, lengths, noise), rng in _generators(context, "data"):
        for data in (0.3, 3.0):
            traces = (_traces(dim, lengths, noise, rng, data) for _ in range(runs))
            rejected += sum(each.p_value(noise) < _ALPHA for each in traces)
    return _at_most(rejected, 2 * runs * len(_TRAININGS), _ALPHA, "with data are refuted")


def _evidence(context: Context) -> Outcome:
    runs, alarms = context.pick(50, 2500), 0
    for (dim, lengths, noise), rng in _generators(context, "evidence"):
        # Little data that answer: more would hide a wrong level.
        highest = (_traces(dim, lengths, noise, rng, 0.03).log_evidence(noise).max() for _ in range(runs))
        alarms += sum(bool(each >= -math.log(_ALPHA)) for each in highest)
    return _at_most(alarms, runs * len(_TRAININGS), _ALPHA, "are stopped at some round")


def _power(context: Context) -> Outcome:
    """Count rejections where the noise is the share of the claimed that is noticed with 90%."""
    runs, rejected = context.pick(100, 2500), 0
    for (dim, lengths, noise), rng in _generators(context, "power"):
        share = noticed_share(noise, lengths, dim, _ALPHA)
        rejected += sum(_traces(dim, lengths, share * noise, rng).p_value(noise) < _ALPHA for _ in range(runs))
    total = runs * len(_TRAININGS)
    # The power is computed to 0.012.
    least, most = (
        float(stats.binom.ppf(q, total, p)) for q, p in ((LEVEL / 2, POWER - 0.012), (1 - LEVEL / 2, POWER + 0.012))
    )
    share = 1.0 - least_share(lambda p: float(stats.binom.cdf(least - 1, total, 1.0 - p)), POWER)
    return Outcome(
        Verdict.CONFIRMED if least <= rejected <= most else Verdict.REFUTED,
        f"{rejected / total:.1%} of {total:,} trainings are refuted at the share of the noise that is noticed with 90%",
        {"runs": total, "rejected": rejected, "least": least, "most": most},
        Design(
            "that share is noticed with probability 0.9 ± 0.012",
            LEVEL,
            f"it is noticed with probability {share:.2g} or less",
            POWER,
            total,
        ),
    )


def _known_rounds(context: Context) -> Outcome:
    """Compare scores of known rounds of canaries that did not take part with Theorem 3.1's law."""
    count, dim, rounds = context.pick(2000, 20_000), 300, 5
    rng = np.random.default_rng(context.key("noise-multiplier/known-rounds"))
    seed = int(rng.integers(2**63))
    clients = CanaryClients(Canaries(seed, count, dim), shuffled_epochs(rounds, 1, 1, seed, Insertion(count, count)))
    model = rng.standard_normal(dim)
    for t in range(rounds):
        # Canaries are left out, so that releases are data with a momentum, and noise, in units that change.
        model = 0.9 * model + rng.standard_normal(dim) ** 3
        clients.add((model + 0.1 * rng.standard_normal(dim)) * 10.0**t, t)
    scores = clients.scores("known rounds").observed
    law = stats.beta(0.5 * (dim - 1), 0.5 * (dim - 1))
    p_value = float(stats.kstest(law.cdf(0.5 + 0.5 * scores), "uniform").pvalue)
    return Outcome(
        Verdict.CONFIRMED if p_value >= LEVEL else Verdict.REFUTED,
        f"{len(scores):,} cosines with the release of a canary's round follow Theorem 3.1's law, p = {p_value:.2g}",
        {"count": len(scores), "p_value": p_value},
        Design(
            "without a trace they follow the law of Theorem 3.1, whatever is released",
            LEVEL,
            f"their distribution function is {visible_distance(len(scores), LEVEL):.2g} away",
            POWER,
            len(scores),
        ),
    )


_SOURCE = "verify.audit.estimators.noise_multiplier"


def _check(topic: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:
    return Check(f"audit.noise.{topic}", Subject.IMPLEMENTATION, _SOURCE, statement, judge)


CHECKS = (
    _check("level", "the test of the claimed noise has uniform p-values where noise alone is released", _uniform),
    _check("data", "others' data refute no honest training, also such that answer what was released", _with_data),
    _check("evidence", "evidence that is looked at after every round stops honest trainings at its level", _evidence),
    _check("power", "the share of the noise that is said to be noticed with probability 90% is", _power),
    _check("known-rounds", "a canary that takes no part scores by Theorem 3.1's law in a known round", _known_rounds),
)
