"""Audits of the scores that a finished training's random canaries have, by attack and by null."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy import stats

from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.answer.run_audit import audit
from canaryproof.verify.audit.answer.shape import GoodnessOfFit
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.lower_bound import BoundKind, LowerBound, cosine_null, prepare
from canaryproof.verify.audit.canaries.participation import Participation
from canaryproof.verify.audit.canaries.scores import Score, Scores
from canaryproof.verify.papers.records.training_record import (
    DATA_KNOWN,
    DATA_UNKNOWN,
    AuditRecord,
    BoundRecord,
    Density,
    EstimateRecord,
    FitRecord,
    KnownRoundsRecord,
    MethodValue,
)

if TYPE_CHECKING:
    from canaryproof.verify.papers.training.trainer import Trainer

# Attacks by what the attacker sees. With ``all`` rounds a canary's score is Algorithm 3's largest cosine with any
# round's delta. Algorithm 2's is the cosine with the final model, as printed, or with the model's change, as the
# initial model is public.
ALL, FINAL, CHANGE = ATTACKS = ("all", "final", "change")
# Where the scores of a canary that did not take part come from.
UNOBSERVED, EXACT = "unobserved", "exact"
_POINTS = 97
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


def measured_noise(
    trainer: "Trainer", confidence: float, epsilon: Callable[[float], float]
) -> dict[str, KnownRoundsRecord]:
    """Compose the noise that canaries at known rounds measure, by whether the attacker knows the clients' data.

    ``epsilon`` is that of the training's rounds at a noise multiplier. Orthonormal canaries measure with known data.
    """
    assert trainer.canary_clients is not None
    records = {}
    for knowledge, traces in ((DATA_UNKNOWN, trainer.canary_clients.traces), (DATA_KNOWN, trainer.known_data)):
        if traces is not None:
            noise = traces.noise_multiplier(confidence)
            ends = (epsilon(each) for each in (noise.value, noise.high, noise.low))
            records[knowledge] = KnownRoundsRecord(noise.value, noise.low, noise.high, MethodValue(*ends))
    return records


def known_rounds(
    trainer: "Trainer", delta: float, confidence: float, epsilon: Callable[[float], float]
) -> dict[str, KnownRoundsRecord]:
    """Return the same with the lower bound from the scores of known rounds."""
    records = measured_noise(trainer, confidence, epsilon)
    if DATA_UNKNOWN in records and trainer.canary_clients is not None:
        scores = trainer.canary_clients.scores(Score.KNOWN_ROUNDS)
        bound = audit(scores, delta, confidence, force=True).bound
        assert bound is not None
        assert scores.record is not None
        carry_over = scores.record.carry_over
        records[DATA_UNKNOWN] = replace(records[DATA_UNKNOWN], bound=bound.low, carry_over=carry_over)
    return records


def audits(
    scores: CanaryScores, dim: int, delta: float, confidence: float, inclusion: str
) -> dict[str, dict[str, AuditRecord]]:
    """Audit a run's scores with every estimator and every bound that serves them, by attack and by null.

    Algorithm 3 has unobserved canaries for its null. Algorithm 2 has the cosine's exact law, and unobserved canaries
    here as well: they show whether that law holds, and some bounds need them.
    """
    by_attack: dict[str, dict[str, AuditRecord]] = {}
    for attack in ATTACKS:
        observed, unobserved = scores.observed[attack], scores.unobserved[attack]
        nulls: dict[str, Array | None] = {UNOBSERVED: unobserved}
        if attack != ALL:
            nulls = {EXACT: None, **nulls}
        by_attack[attack] = {
            name: _audit(observed, null, dim if attack != ALL else None, delta, confidence, inclusion)
            for name, null in nulls.items()
        }
    return by_attack


def _audit(
    observed: Array, unobserved: Array | None, dim: int | None, delta: float, confidence: float, inclusion: str
) -> AuditRecord:
    null = cosine_null(dim) if unobserved is None and dim is not None else None
    prepared = prepare(observed, unobserved, null, inclusion=inclusion)
    serving = tuple(name for name, method in METHODS.items() if method.can_use(prepared))
    return _record(Scores(observed, unobserved, dim, inclusion), delta, confidence, serving)


def without_absent(
    scores: CanaryScores, participation: Participation, delta: float, confidence: float
) -> AuditRecord | None:
    """Return Algorithm 3's estimates from the observed canaries that ever took part; None if all of them did."""
    there = np.zeros(len(participation.included), np.bool_)
    for number in range(participation.rounds):
        there[participation.canaries(number)] = True
    seen = there[participation.included]
    if seen.all():
        return None
    return _record(Scores(scores.observed[ALL][seen], scores.unobserved[ALL], None, "fixed"), delta, confidence, ())


def _record(scores: Scores, delta: float, confidence: float, bounds: Sequence[str]) -> AuditRecord:
    # Forced, as a training is of interest whatever its scores look like.
    result = audit(scores, delta, confidence, bounds=bounds, force=True)
    return AuditRecord(
        observed=result.count,
        unobserved=result.null_count,
        distance=result.standardised_mean,
        distance_error=result.mean_error,
        ratio=result.deviation_ratio,
        ratio_error=result.ratio_error,
        variance_p_value=result.variance_p_value,
        normality=_fit(result.normality),
        null_law=_fit(result.null_law),
        estimates={
            row.name: EstimateRecord(row.epsilon, row.standard_error, row.low, row.high, row.enclosure)
            for row in result.estimates
        },
        bounds={
            row.name: BoundRecord(
                row.low, row.high if row.kind == BoundKind.POSTERIOR else None, row.kind, row.coverage, row.cap
            )
            for row in result.bounds
        },
    )


def bound_record(bound: LowerBound) -> BoundRecord:
    """Return the record of a lower bound."""
    return BoundRecord(bound.value, bound.upper, str(bound.kind), str(bound.coverage), bound.cap)


def _fit(fit: GoodnessOfFit | None) -> FitRecord | None:
    return None if fit is None else FitRecord(fit.statistic, fit.p_value)


def densities(scores: CanaryScores, dim: int) -> dict[str, Density]:
    """Estimate the density of observed canaries' scores by attack, as in Figures 1 and 3 of the final version.

    Scores are in units of the null's deviation, from the null's mean on: √d times a cosine, or for all rounds by the
    mean and deviation of unobserved canaries.
    """
    by_attack = {}
    for attack in ATTACKS:
        observed, unobserved = scores.observed[attack], scores.unobserved[attack]
        centre, scale = (unobserved.mean(), unobserved.std()) if attack == ALL else (0.0, 1.0 / np.sqrt(dim))
        values = (observed - centre) / scale
        kernel = stats.gaussian_kde(values)
        margin = 3.0 * float(np.sqrt(kernel.covariance[0, 0]))
        x = np.linspace(values.min() - margin, values.max() + margin, _POINTS)
        low, high = _short(x[[0, -1]])
        by_attack[attack] = Density(low, high, _short(kernel(x)))
    return by_attack


def _short(values: Array) -> tuple[float, ...]:
    """Keep the digits that a picture can show."""
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values)
