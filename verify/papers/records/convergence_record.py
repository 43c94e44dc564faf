"""Records of ``canaryproof convergence``: its findings at a d, a k and an ε."""

import math
from dataclasses import dataclass

from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.files.json_records import Count, NonEmpty, OmittedIfNone
from canaryproof.verify.papers.records.evidence import EstimatorMeasures, Interval


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class NormalDistances:
    """How far √d times the cosine of a canary that took no part is from N(0, 1).

    Attributes
    ----------
    dim
        Dimension d.
    total_variation, kolmogorov
        Enclosures of the distances.
    total_variation_bound, kolmogorov_bound
        What is proven for all d.
    """

    dim: Count
    total_variation: Interval
    total_variation_bound: float
    kolmogorov: Interval
    kolmogorov_bound: float


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class EstimatorErrors(EstimatorMeasures):
    """Errors of an estimator over many runs, and how often its 95% interval covers ε or is above it.

    Attributes
    ----------
    runs, bias, deviation, root_mean_square_error, coverage, below, width
        Of ε̂ and its interval; ``below`` is the share of runs whose interval is above ε.
    estimator
        Its name.
    within
        Share of ε by which 95 of 100 runs are off at most.
    constant
        √k times the root mean square error.
    limit_constant
        What that tends to by Theorem 3.3, for k → ∞ and k³ = o(d²).
    """

    estimator: str
    within: float
    constant: float
    limit_constant: float

    @property
    def bias_error(self) -> float:
        """Standard error of the bias."""
        return self.deviation / math.sqrt(self.runs)


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class NeededSize:
    """The least k, and the d from which on, 95 of 100 runs are off by at most a share of ε; None where there is none.

    Attributes
    ----------
    accuracy
        That share.
    canaries
        Number of canaries in as many dimensions as asked.
    dim
        Dimension from which on as many canaries as asked are enough.
    orthonormal
        Number of canaries where they are orthonormal, or the others are taken out of each score, by ``pinned`` and to
        leading order.
    """

    accuracy: float
    canaries: int | None
    dim: int | None
    orthonormal: int | None


@set_module("canaryproof.typing")
@dataclass(frozen=True, kw_only=True)
class ConvergenceSetting:
    """One d, k and ε, and how near to ε a run of Algorithm 1 comes there.

    Attributes
    ----------
    dim, count, epsilon, noise_multiplier
        d, k, and ε at the report's δ with its noise multiplier σ.
    threshold
        Score, in null deviations, at which the privacy loss is ε: the tail beyond it decides δ.
    tail_error
        Enclosure of the null's tail beyond there over the normal one, less 1; None beyond 40 deviations.
    correlation
        That of two canaries' inner products with the release.
    displaced_epsilon
        ε of the noise √(σ² + k/d), to which ε̂ tends, as canaries lengthen the release.
    best_count
        Number of canaries from which on more of them make the estimate worse, to leading order.
    independent_error, orthonormal_error
        Leading root mean square errors of ``pinned`` by independent and by orthonormal canaries; the latter None
        where there are not as many.
    estimators
        Measured errors.
    needed
        Sizes that the first estimator needs.
    by_count, by_dim
        The share of ε by which 95 of 100 runs are off, by the limit law of a run's moments: pairs with k, and with d.
    printed
        Mean and deviation of ε̂ that Table 2 of the paper prints for the setting.
    """

    dim: Count
    count: Count
    epsilon: float
    noise_multiplier: float
    threshold: float
    tail_error: Interval | None
    correlation: float
    displaced_epsilon: float
    best_count: float
    independent_error: float
    orthonormal_error: float | None
    estimators: NonEmpty[EstimatorErrors]
    needed: tuple[NeededSize, ...]
    by_count: tuple[tuple[float, float], ...]
    by_dim: tuple[tuple[float, float], ...]
    printed: OmittedIfNone[tuple[float, float]] = None

    @property
    def displacement(self) -> float:
        """Share of ε by which finite d moves ε̂."""
        return self.displaced_epsilon / self.epsilon - 1.0
