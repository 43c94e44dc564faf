"""Audits of the scores that a finished training's random canaries have, by attack and by null."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy import stats

from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.audit import audit
from canaryproof.verify.audit.findings import GoodnessOfFit, Scores
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.lower_bound import BoundKind, LowerBound, cosine_null, prepare
from canaryproof.verify.files.training_record import AuditRecord, BoundRecord, Density, EstimateRecord, FitRecord

if TYPE_CHECKING:
    from canaryproof.verify.training.trainer import Trainer

# What the attacker sees, and what a canary's score is then: Algorithm 3's largest cosine with any round's delta;
# Algorithm 2's cosine with the final model as printed; the same with its change, as the initial model is public.
ALL, FINAL, CHANGE = ATTACKS = ("all", "final", "change")
# Where the scores of a canary that did not take part come from.
UNOBSERVED, EXACT = "unobserved", "exact"
_PLACES = 97
_DIGITS = 6


@dataclass(frozen=True)
class CanaryScores:
    """Scores of canaries that took part, and of such that did not, each by attack."""

    observed: Mapping[str, Array]
    unobserved: Mapping[str, Array]

    @classmethod
    def of(cls, trainer: "Trainer", attacks: Sequence[str] = ATTACKS) -> Self:
        """Score the canaries of a finished training; without ``ALL`` among the attacks, its rounds are not scored."""
        canary_clients = trainer.canary_clients
        assert canary_clients is not None
        # Both in one pass over the canaries.
        finals = canary_clients.final(np.stack([trainer.theta, trainer.theta - trainer.initial]))
        kinds: tuple[dict[str, Array], ...] = tuple({FINAL: final, CHANGE: change} for final, change in finals)
        if ALL in attacks:
            for kind, scores in zip(kinds, canary_clients.all_rounds(), strict=True):
                kind[ALL] = scores
        return cls(*kinds)

    @classmethod
    def pooled(cls, runs: Sequence[Self]) -> Self:
        """Put the scores of several runs together."""
        return cls(
            *(
                {
                    attack: np.concatenate([getattr(run, kind)[attack] for run in runs])
                    for attack in getattr(runs[0], kind)
                }
                for kind in ("observed", "unobserved")
            )
        )


def audits(
    scores: CanaryScores, dim: int, delta: float, confidence: float, inclusion: str
) -> dict[str, dict[str, AuditRecord]]:
    """Audit a run's scores with every estimator and every bound that serves them, by attack and by null.

    Algorithm 3 has unobserved canaries for its null. Algorithm 2 has the cosine's exact law, and unobserved canaries
    here as well: they show whether that law holds, and some bounds need them.
    """
    found: dict[str, dict[str, AuditRecord]] = {}
    for attack in ATTACKS:
        observed, unobserved = scores.observed[attack], scores.unobserved[attack]
        nulls: dict[str, Array | None] = {UNOBSERVED: unobserved}
        if attack != ALL:
            nulls = {EXACT: None, **nulls}
        found[attack] = {
            name: _audit(observed, null, dim if attack != ALL else None, delta, confidence, inclusion)
            for name, null in nulls.items()
        }
    return found


def _audit(
    observed: Array, unobserved: Array | None, dim: int | None, delta: float, confidence: float, inclusion: str
) -> AuditRecord:
    null = cosine_null(dim) if unobserved is None and dim is not None else None
    prepared = prepare(observed, unobserved, null, inclusion=inclusion)
    serving = tuple(name for name, method in METHODS.items() if method.serves(prepared))
    # Forced, as a training is of interest whatever its scores look like.
    scores = Scores(observed, unobserved, dim, inclusion)
    found = audit(scores, delta, confidence, bounds=serving, force=True)
    return AuditRecord(
        observed=found.count,
        unobserved=found.null_count,
        distance=found.standardised_mean,
        distance_error=found.mean_error,
        ratio=found.deviation_ratio,
        ratio_error=found.ratio_error,
        variance_p_value=found.variance_p_value,
        normality=_fit(found.normality),
        null_law=_fit(found.null_law),
        estimates={
            one.name: EstimateRecord(one.epsilon, one.standard_error, one.low, one.high, one.certified)
            for one in found.estimates
        },
        bounds={
            one.name: BoundRecord(
                one.low, one.high if one.kind == BoundKind.POSTERIOR else None, one.kind, one.coverage, one.cap
            )
            for one in found.bounds
        },
    )


def bound_record(bound: LowerBound) -> BoundRecord:
    """Return what a record keeps of a lower bound."""
    return BoundRecord(bound.value, bound.upper, str(bound.kind), str(bound.coverage), bound.cap)


def _fit(found: GoodnessOfFit | None) -> FitRecord | None:
    return None if found is None else FitRecord(found.statistic, found.p_value)


def densities(scores: CanaryScores, dim: int) -> dict[str, Density]:
    """Estimate the density of observed canaries' scores by attack, as in Figures 1 and 3 of the final version.

    Scores are in units of the null's deviation, from the null's mean on: √d times a cosine, or for all rounds by the
    mean and deviation of unobserved canaries.
    """
    found = {}
    for attack in ATTACKS:
        observed, unobserved = scores.observed[attack], scores.unobserved[attack]
        place, scale = (unobserved.mean(), unobserved.std()) if attack == ALL else (0.0, 1.0 / np.sqrt(dim))
        values = (observed - place) / scale
        kernel = stats.gaussian_kde(values)
        margin = 3.0 * float(np.sqrt(kernel.covariance[0, 0]))
        x = np.linspace(values.min() - margin, values.max() + margin, _PLACES)
        found[attack] = Density(_short(x), _short(kernel(x)))
    return found


def _short(values: Array) -> tuple[float, ...]:
    """Keep the digits that a picture can show."""
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values)
