"""The range that clipping leaves to Algorithm 3's estimate over all data: a printed number outside it needs none.

A canary's cosines with T releases are normal with deviation 1/√d, given the releases. A release is noise of norm σ√d,
in clip norms, and a sum of m clipped updates, of norm m at most. So cosines with two releases are correlated by at
most a = m²/(m² + dσ²), and a canary's own release shows it by √d/‖release‖, from √(1 − a)/σ to 1/σ null deviations.

Largest cosines then lie between two laws, whatever the data. By Slepian's inequality they are stochastically at least
those of cosines that are all correlated by a; by the union bound at most those with the tails' sum for a tail. So each
quantile has two ends, and with them mean and variance: the variance of a law between two others is at most that of the
farther end from any centre, and at least that of the nearer one from the best. The estimate is searched over the box of
all such moments, widened by the errors of as many canaries as are printed: in both directions, as Section 3.2 bounds
both, and in the one alone that Algorithm 3 writes.

Section 4.1's text has cosines with the model's changes, which a server's momentum μ makes of all rounds so far: each is
the sum of μ^(t − s) times round s's release. Its noise is at most σ√(d/(1 − μ²)) long and its data m/(1 − μ), noises of
two changes are correlated by μ at most, and k rounds after its own a canary is seen at μ^k/σ at most.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy import special

from canaryproof.kernels import two_gaussians
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.threshold_attack import threshold_epsilon
from canaryproof.verify.audit.estimators.epsilon_estimators import both_directions
from canaryproof.verify.papers.check.results import Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import conclude
from canaryproof.verify.papers.claims.model_changes import MOMENTUM
from canaryproof.verify.papers.claims.transcripts import Final, FirstVersion, Row, Submission

# Correlations of the noises of two releases, in thousands of dimensions and more, and other canaries in a round.
_MARGIN, _CANARIES_A_ROUND = 0.005, 10
# Standard errors by which moments of a sample may be off, and the largest kurtosis for that of a deviation.
_ERRORS, _KURTOSIS = 5.0, 5.0
_QUANTILES, _NODES, _GRID = 4000, 200, 60
# Distances up to here, in null deviations, are taken for this one.
_UNSEEN = 1e-3


@dataclass(frozen=True)
class PrintedTraining:
    """The printed sizes of a training by which clipping limits an estimate."""

    dim: int
    rounds: int
    members: int  # clients of a round
    presentations: int  # most rounds of a canary
    delta: float
    estimator: Callable[[float, Array, Array], Array] = both_directions  # ε̂ of δ, distances and ratios


@dataclass(frozen=True)
class EstimateRange:
    """Ends of Algorithm 3's estimate over all data, and of the moments that it is of."""

    low: float
    high: float
    distance: tuple[float, float]  # of the means, in deviations of unobserved canaries
    ratio: tuple[float, float]  # of both deviations


STACKOVERFLOW = PrintedTraining(
    Final.PARAMETERS["StackOverflow"],
    Final.STACKOVERFLOW_ROUNDS,
    Final.STACKOVERFLOW_COHORT,
    1,
    Final.STACKOVERFLOW_DELTA,
)
FIRST_STACKOVERFLOW = replace(STACKOVERFLOW, estimator=threshold_epsilon)
EMNIST = PrintedTraining(
    Final.PARAMETERS["EMNIST"], Final.EMNIST_ROUNDS, Final.EMNIST_COHORT, Final.EMNIST_EPOCHS, Final.EMNIST_DELTA
)


def written_direction(delta: float, distance: Array, ratio: Array) -> Array:
    """ε̂ in the direction alone that Algorithm 3 writes, from unobserved to observed canaries."""
    least = two_gaussians.SMALLEST_DISTANCE * np.maximum(ratio, 1.0)
    seen = np.where(np.abs(distance) < least, 0.0, distance)
    return two_gaussians.epsilon(delta, 0.0, 1.0, seen, ratio, "forward")


@cache
def clipping_range(noise: float, training: PrintedTraining, momentum: float = 0.0) -> EstimateRange:
    """Return the ends of Algorithm 3's estimate at a noise multiplier, over all data, or of changes by a momentum."""
    data = ((training.members + _CANARIES_A_ROUND) / (1.0 - momentum)) ** 2
    share = data / (data + training.dim * noise**2 / (1.0 - momentum**2))
    correlation = min(momentum * (1.0 - share) + share + _MARGIN, 0.999)
    weakest = math.sqrt((1.0 - share) * (1.0 - momentum**2)) / noise
    strongest = [1.0 / noise]
    while momentum * strongest[-1] > _UNSEEN:
        strongest.append(momentum * strongest[-1])
    unobserved = _moments(*_between(correlation, training.rounds, 0, 0.0, ()))
    observed = _moments(*_between(correlation, training.rounds, training.presentations, weakest, strongest))
    (means_0, deviations_0), (means_1, deviations_1) = unobserved, observed
    if min(deviations_0[0], deviations_1[0]) == 0.0:
        # Where laws so far apart have room for a constant between them, nothing is excluded.
        return EstimateRange(0.0, math.inf, (-math.inf, math.inf), (0.0, math.inf))
    error = _ERRORS * math.hypot(deviations_0[1], deviations_1[1]) / math.sqrt(Final.CANARIES)
    relative = math.exp(_ERRORS * math.sqrt(0.25 * (_KURTOSIS - 1.0) / Final.CANARIES))
    apart = means_1[0] - means_0[1] - error, means_1[1] - means_0[0] + error
    least, most = deviations_0[0] / relative, deviations_0[1] * relative
    distance = min(apart[0] / least, apart[0] / most), max(apart[1] / least, apart[1] / most)
    ratio = deviations_1[0] / (deviations_0[1] * relative**2), deviations_1[1] * relative**2 / deviations_0[0]
    # Equal means and equal deviations, if the box has them, tell least.
    distances, ratios = np.linspace(*distance, _GRID), np.geomspace(*ratio, _GRID)
    grid = np.meshgrid(np.append(distances, np.clip(0.0, *distance)), np.append(ratios, np.clip(1.0, *ratio)))
    epsilons = training.estimator(training.delta, *grid)
    return EstimateRange(float(epsilons.min()), float(epsilons.max()), distance, ratio)


def _between(
    correlation: float, rounds: int, shown: int, weakest: float, strongest: Sequence[float]
) -> tuple[Array, Array]:
    """Return quantiles of the least and of the largest law of a canary's largest cosine, in null deviations.

    A canary is shown in so many rounds, at the weakest distance or more in each, and at the strongest at most in each
    and in those after it.
    """
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    nodes, weights = special.roots_hermitenorm(_NODES)
    root, rest = math.sqrt(correlation), math.sqrt(1.0 - correlation)

    def least(points: Array) -> Array:
        inner = (points[:, None] - root * nodes) / rest
        logs = (rounds - min(shown, 1)) * special.log_ndtr(inner)
        if shown:
            # At least one round shows the canary, and more can only raise its largest cosine.
            logs += special.log_ndtr((points[:, None] - weakest - root * nodes) / rest)
        return np.asarray(np.exp(logs) @ weights / weights.sum())

    def most(points: Array) -> Array:
        # After the strongest distances come those that are taken for none, or for the largest of them.
        rest_of_it = _UNSEEN if len(strongest) > 1 else 0.0
        tails = max(0, rounds - shown * len(strongest)) * special.ndtr(rest_of_it - points)
        tails += shown * sum(special.ndtr(distance - points) for distance in strongest)
        return np.asarray(1.0 - np.minimum(1.0, tails))

    points = np.linspace(-6.0, max(strongest, default=0.0) + 12.0, 40_000)
    first = np.concatenate([least(part) for part in np.array_split(points, 40)])
    # Where a law is flat its quantile is the last point at or below the level.
    low, high = (np.interp(levels, np.maximum.accumulate(law), points) for law in (first, most(points)))
    return np.minimum(low, high), np.maximum(low, high)


def _moments(low: Array, high: Array) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ends of mean and deviation of all laws whose quantiles lie between two laws'."""
    centres = np.linspace(float(low.mean()) - 1.0, float(high.mean()) + 1.0, 400)
    farther = [float(np.mean(np.maximum(np.abs(low - c), np.abs(high - c)) ** 2)) for c in centres]
    nearer = [float(np.mean((np.clip(c, low, high) - c) ** 2)) for c in centres]
    return (float(low.mean()), float(high.mean())), (math.sqrt(min(nearer)), math.sqrt(min(farther)))


def judge(row: Row, training: PrintedTraining) -> Outcome:
    """Judge a row's estimate from all rounds by what clipping leaves, in either reading; data decide inside."""
    noise, printed = float(row.noise), float(row.estimate_all)
    if noise == 0.0:
        return Outcome(Verdict.NEEDS_DATA, "", {})
    ends = clipping_range(noise, training)
    evidence: dict[str, Any] = {
        "range": [ends.low, ends.high],
        "distance": list(ends.distance),
        "ratio": list(ends.ratio),
    }
    both = training.estimator is both_directions
    words = f"whatever the data, clipping leaves the largest cosines with rounds' sums an estimate of {_words(ends)}"
    words += " in both directions" if both else ""
    if ends.low <= printed <= ends.high:
        return conclude(Verdict.NEEDS_DATA, f"{words}; within that it ", **evidence)
    words = f"{words}, and not {row.estimate_all}{_elsewhere(row)}"
    others = {"range of changes": clipping_range(noise, training, MOMENTUM)}
    changes = f"those with a model's changes by a server's momentum of {MOMENTUM:g} have {_words(*others.values())}"
    if both:
        alone = others["range in the written direction"] = clipping_range(
            noise, replace(training, estimator=written_direction)
        )
        words += f"; in the direction alone that Algorithm 3 writes, {_words(alone)}"
    words = f"{words}; {changes}"
    evidence |= {name: [other.low, other.high] for name, other in others.items()}
    if any(other.low <= printed <= other.high for other in others.values()):
        return conclude(Verdict.NEEDS_DATA, f"{words}, and within these it ", **evidence)
    return conclude(Verdict.REFUTED, words, **evidence)


def _words(ends: EstimateRange) -> str:
    high = "any number" if math.isinf(ends.high) else f"{ends.high:.3g}"
    return f"{ends.low:.3g} to {high}"


def _elsewhere(row: Row) -> str:
    """Name another version's number of the same training, where its noise is nearly the same."""
    if row not in (*Final.TABLE_3, *Submission.TABLE_2):
        return ""
    near = [
        (float(noise[0]), other.estimate_all)
        for noise, other in zip(FirstVersion.TABLE_2, FirstVersion.TABLE_3, strict=True)
        if float(noise[0]) and abs(float(noise[0]) / float(row.noise) - 1.0) < 0.02
    ]
    return "".join(
        f"; the first version prints {estimate} at noise {noise:g} of the same training" for noise, estimate in near
    )
