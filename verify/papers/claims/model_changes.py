"""Cosines with a model's changes, of noise and canaries alone, held against what Tables 3 and 4 print of all rounds.

Algorithm 3 takes a canary's cosine with a round's delta. Section 4.1's text says "the model delta at that round", and a
server with momentum changes the model by the deltas of earlier rounds, too: by the sum of μ^(t − s) times round s's.
Such a change shows a canary at √(1 − μ²) of its distance in its own round, and less in later ones.

Section 5.2.1 prints μ = 0.9 for EMNIST, and nothing is said of a momentum on StackOverflow and Fashion-MNIST.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from canaryproof.kernels.arrays import Array
from canaryproof.kernels.threshold_attack import threshold_epsilon
from canaryproof.verify.audit.estimators.epsilon_estimators import both_directions
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.check.results import Context, Design, Outcome
from canaryproof.verify.papers.check.verdicts import conclude, holds
from canaryproof.verify.papers.claims.final_bounds import algorithm_3, sampled_bounds
from canaryproof.verify.papers.claims.transcripts import Final, Row

MOMENTUM = float(Final.EMNIST["momentum"])
_OBSERVED = np.arange(Final.CANARIES)


def largest_cosines(
    rounds: int, noise: float, momentum: float, rng: np.random.Generator, shown: int = 1
) -> tuple[Array, Array]:
    """Draw largest cosines of unobserved and observed canaries with a model's changes, in null deviations.

    There are noise and canaries alone, and each observed canary is in one round of each of ``shown`` epochs.
    """
    cosines = rng.standard_normal((rounds, 2 * Final.CANARIES))
    starts = np.arange(shown)[:, np.newaxis] * rounds // shown
    cosines[starts + rng.integers(rounds // shown, size=(shown, Final.CANARIES)), _OBSERVED] += 1.0 / noise
    # The model starts at rest, so that its first changes are of few rounds.
    deviations = np.sqrt(np.cumsum(momentum ** (2.0 * np.arange(rounds))))
    # ``signal.lfilter`` takes two to four times as long.
    change, largest = np.zeros(2 * Final.CANARIES), np.full(2 * Final.CANARIES, -math.inf)
    for round_cosines, deviation in zip(cosines, deviations.tolist(), strict=True):
        change = momentum * change + round_cosines
        np.maximum(largest, change / deviation, out=largest)
    return largest[Final.CANARIES :], largest[: Final.CANARIES]


def estimate(unobserved: Array, observed: Array, delta: float) -> float:
    """Return Algorithm 3's ε̂ of largest cosines."""
    distance, ratio = (observed.mean() - unobserved.mean()) / unobserved.std(), observed.std() / unobserved.std()
    return float(both_directions(delta, np.asarray(distance), np.asarray(ratio)))


def estimates_and_bounds(
    rounds: int,
    noise: float,
    delta: float,
    runs: int,
    rng: np.random.Generator,
    momentum: float = MOMENTUM,
    shown: int = 1,
) -> tuple[Array, Array]:
    """Return Algorithm 3's estimates and Section 5.1's lower bounds of trainings of noise and canaries alone."""
    trainings = [largest_cosines(rounds, noise, momentum, rng, shown) for _ in range(runs)]
    estimates = np.array([estimate(*training, delta) for training in trainings])
    return estimates, np.array([float(sampled_bounds(*training, delta)) for training in trainings])


def surprise(printed: float, values: Array) -> float:
    """Return the p-value of a printed estimate among drawn ones, whose logarithms are taken for normal."""
    logs = np.log(values)
    error = float(logs.std(ddof=1)) * math.sqrt(1.0 + 1.0 / len(logs))
    return float(2.0 * stats.t.sf(abs(math.log(printed) - float(logs.mean())) / error, len(logs) - 1))


def judge_alone(rows: Sequence[Row], rounds: int, delta: float, purpose: str, epochs: int, context: Context) -> Outcome:
    """Judge that estimates from all rounds are such as noise and canaries alone give to a model's changes.

    Canaries are shown once. If clients take part in several epochs, the finding has the estimates of canaries that do
    so, too.
    """
    runs, rng = context.pick(10, 100), np.random.default_rng(context.key(f"claims/{purpose}"))
    rng_epochs = np.random.default_rng(context.key(f"claims/{purpose}/epochs"))
    listed: list[str] = []
    details: list[dict[str, Any]] = []
    for row in rows:
        estimates, bounds = estimates_and_bounds(rounds, float(row.noise), delta, runs, rng)
        words = f"estimates {_mean_sd(estimates)} at noise {row.noise} ({row.estimate_all} printed"
        if row.lower_all:
            words += f"; bounds {_mean_sd(bounds)}, {row.lower_all} printed"
        if epochs > 1:
            as_clients, _ = estimates_and_bounds(rounds, float(row.noise), delta, runs, rng_epochs, shown=epochs)
            words += f"; of canaries shown once in each of {epochs} epochs {_mean_sd(as_clients)}"
        limit = algorithm_3(rounds, 1.0 / float(row.noise), delta)
        listed.append(f"{words}; estimates without momentum tend to {limit:.4g})")
        details.append(
            {
                "noise": row.noise,
                "estimates": estimates.tolist(),
                "bounds": bounds.tolist(),
                "p": surprise(float(row.estimate_all), estimates),
            }
        )
    joint = min(1.0, len(rows) * min(detail["p"] for detail in details))
    seen = stats.t.isf(0.5 * LEVEL / len(rows), runs - 1) + stats.t.isf(1.0 - POWER, runs - 1)
    design = Design(
        "each printed estimate is one more of those drawn, whose logarithms are normal",
        LEVEL,
        f"in one row its logarithm is {float(seen) * math.sqrt(1.0 + 1.0 / runs):.2g} deviations from the mean",
        POWER,
        runs,
    )
    finding = f"{', '.join(listed)}: joint p = {joint:.2g}"
    return conclude(holds(joint >= LEVEL), finding, design, rows=details, p_value=joint, level=LEVEL)


def judge_not_alone(rows: Sequence[Row], rounds: int, delta: float, purpose: str, context: Context) -> Outcome:
    """Judge that the first version's estimates, by its estimator, are not such as noise and canaries alone give."""
    # With half as many, 9 degrees of freedom, the level would ask for 14 deviations, and not for 8.
    runs, rng = 20, np.random.default_rng(context.key(f"claims/{purpose}"))
    listed, p_values = [], []
    for row in rows:
        pairs = [largest_cosines(rounds, float(row.noise), MOMENTUM, rng) for _ in range(runs)]
        distances, ratios = np.transpose(
            [((seen.mean() - unseen.mean()) / unseen.std(), seen.std() / unseen.std()) for unseen, seen in pairs]
        )
        estimates = threshold_epsilon(delta, distances, ratios)
        p_values.append(surprise(float(row.estimate_all), estimates))
        listed.append(f"{_mean_sd(estimates)} at noise {row.noise} ({row.estimate_all} printed)")
    joint = min(1.0, len(rows) * min(p_values))
    seen = float(stats.t.isf(0.5 * LEVEL / len(rows), runs - 1) + stats.t.isf(1.0 - POWER, runs - 1))
    design = Design(
        "each printed estimate is one more of those drawn, whose logarithms are normal",
        LEVEL,
        f"in one row its logarithm is {seen * math.sqrt(1.0 + 1.0 / runs):.2g} deviations from the mean",
        POWER,
        runs,
    )
    finding = f"{', '.join(listed)}: joint p = {joint:.2g}"
    return conclude(holds(joint < LEVEL), finding, design, p_values=p_values, level=LEVEL)


def _mean_sd(values: Array) -> str:
    return f"{values.mean():.3g} ± {values.std(ddof=1):.2g}"
