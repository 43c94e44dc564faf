"""What a finished training tells of its privacy: audits by CANIFE, and audits of random canaries' scores."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels.arrays import Array
from canaryproof.verify.accounting.sampled_gaussian import composed_epsilon
from canaryproof.verify.audit.audit import audit
from canaryproof.verify.audit.result import GoodnessOfFit
from canaryproof.verify.audit.scores import Scores
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.lower_bound import BoundKind, LowerBound, cosine_null, prepare
from canaryproof.verify.canife.attack import accuracy
from canaryproof.verify.canife.measure import Deltas, ZeroCounts, round_epsilon, rounds_served, training_epsilon
from canaryproof.verify.files import checkpoint
from canaryproof.verify.files.reading import opened
from canaryproof.verify.files.training_record import (
    AuditRecord,
    BoundRecord,
    CanifeAttackRecord,
    CanifeAuditRecord,
    CanifeRecord,
    CanifeTheory,
    Density,
    EstimateRecord,
    FitRecord,
    RoundEpsilonRecord,
)
from canaryproof.verify.training.configuration import CanifePlan, Settings

if TYPE_CHECKING:
    from canaryproof.verify.canaries.canary_clients import CanaryClients
    from canaryproof.verify.training.trainer import Trainer


Arrays = Mapping[str, NDArray[Any]]

# What no error of a kind makes of ε̂ of a round: as Appendix C.5 describes it, and finite.
RULES: tuple[ZeroCounts, ...] = ("separated", "capped")
# Of an audit, of its attacks, and of their trials.
_BY_AUDIT, _BY_ATTACK = ("round", "accuracy"), ("loss", "initial_loss", "norm", "attempts", "healthy")
_BY_TRIAL = ("scores", "inserted")


def arrays(audits: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Put what ``Auditor.audit`` returned into arrays by field: (audits,), (audits, attacks) or also by trial."""
    return {name: np.array([audit[name] for audit in audits]) for name in (*_BY_AUDIT, *_BY_ATTACK, *_BY_TRIAL)}


def seconds(audits: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Add up the seconds that designs and attacks took."""
    return {name: float(sum(audit["seconds"][name] for audit in audits)) for name in ("design", "attack")}


def read(file: Path, plan: CanifePlan) -> dict[str, NDArray[Any]]:
    """Read the ``arrays`` of a finished training; an InputError says that the file is damaged."""
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_BY_AUDIT, ()) | dict.fromkeys(_BY_ATTACK, (plan.audits,))
    shapes |= dict.fromkeys(_BY_TRIAL, (plan.audits, plan.scores))
    with opened(file) as content:
        found = checkpoint.stored(content, tuple(shapes))
        audits = len(found["round"]) if found["round"].ndim else 0
        for name, array in found.items():
            kinds = {"round": "iu", "attempts": "iu", "healthy": "b", "inserted": "b"}.get(name, "f")
            expected = (audits, *shapes[name])
            # Where a training ended before its first audit there is nothing to tell shapes and types by.
            if array.shape != expected if audits else array.size:
                raise ValueError(f"{name}: must have the shape {expected}, not {array.shape}")
            if audits and array.dtype.kind not in kinds:
                raise ValueError(f"{name}: is {array.dtype}, of another kind than was written")
    return found


def canife_record(found: Arrays, settings: Settings, rounds: int, sampling: float | None) -> CanifeRecord:
    """Measure a training of so many rounds by its audits, of which ``read`` returned the arrays.

    There is no ε̂ of several rounds where participation is no Poisson sampling, and ``sampling`` is None.
    """
    attacks = [_attacks(found, i, settings) for i in range(len(found["round"]))]
    audited = [int(number) for number in found["round"]]
    deltas = Deltas.as_printed(found["scores"].shape[-1], settings.audit.delta)

    def composed(count: int, rounds: int) -> dict[str, tuple[float, ...] | None]:
        if sampling is None or not count:
            return dict.fromkeys(RULES)
        served = rounds_served(audited[:count], rounds)
        return {
            rule: tuple(
                training_epsilon([getattr(one, rule).epsilon for one in each], served, sampling, deltas)
                for each in zip(*attacks[:count], strict=True)
            )
            for rule in RULES
        }

    audits = tuple(
        CanifeAuditRecord(audited[i], float(found["accuracy"][i]), attacks[i], composed(i + 1, audited[i]))
        for i in range(len(audited))
    )
    return CanifeRecord(rounds, audits, composed(len(audits), rounds))


def theory(settings: Settings, noise_multiplier: float, rounds: int, sampling: float | None) -> CanifeTheory:
    """Account for a training as CANIFE's paper does."""
    delta = settings.audit.delta
    return CanifeTheory(
        composed_epsilon([noise_multiplier], [1], 1.0, delta),
        None if sampling is None else composed_epsilon([noise_multiplier], [rounds], sampling, delta),
    )


def _attacks(found: Arrays, number: int, settings: Settings) -> tuple[CanifeAttackRecord, ...]:
    attacks = []
    for attack in range(found["loss"].shape[1]):
        scores, inserted = found["scores"][number, attack], found["inserted"][number, attack]
        observed, unobserved = scores[inserted], scores[~inserted]
        loss, initial_loss = (np.float64(found[name][number, attack]) for name in ("loss", "initial_loss"))
        # Designs may overflow.
        with np.errstate(all="ignore"):
            health = float(1.0 - loss / initial_loss)
        # δ = 1/n, as Section 3.4 has it.
        delta, alpha = 1.0 / len(scores), 1.0 - settings.audit.confidence
        separated, capped = (
            RoundEpsilonRecord(**asdict(round_epsilon(observed, unobserved, delta, alpha=alpha, zero_counts=rule)))
            for rule in RULES
        )
        attacks.append(
            CanifeAttackRecord(
                separated=separated,
                capped=capped,
                loss=float(loss),
                norm=float(found["norm"][number, attack]),
                health=health,
                attempts=int(found["attempts"][number, attack]),
                healthy=bool(found["healthy"][number, attack]),
                accuracy=accuracy(observed, unobserved),
                deviations=(float(observed.std(ddof=1)), float(unobserved.std(ddof=1))),
            )
        )
    return tuple(attacks)


# Audits of random canaries' scores.


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
    def of(cls, trainer: "Trainer", canary_clients: "CanaryClients", attacks: Sequence[str] = ATTACKS) -> Self:
        """Score the canaries of a finished training; without ``ALL`` among the attacks, its rounds are not scored."""
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
