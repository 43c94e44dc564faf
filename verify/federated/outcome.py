"""What a training run says of its privacy: the audits of its canaries' scores under each threat model."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.verify.audit import Audit, audit_scores
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.scores import Scores, cosine_null, prepare

if TYPE_CHECKING:
    from canaryproof.verify.federated.canary_clients import CanaryClients
    from canaryproof.verify.federated.training import Trainer

Array = NDArray[np.float64]

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
    def of(cls, trainer: "Trainer", canary_clients: "CanaryClients") -> Self:
        """Score the canaries of a finished training."""
        pairs = {
            ALL: canary_clients.all_rounds(),
            FINAL: canary_clients.final(trainer.theta),
            CHANGE: canary_clients.final(trainer.theta - trainer.initial),
        }
        return cls(*({attack: pair[kind] for attack, pair in pairs.items()} for kind in (0, 1)))

    @classmethod
    def pooled(cls, runs: Sequence[Self]) -> Self:
        """Put the scores of several runs together."""
        return cls(
            *(
                {attack: np.concatenate([getattr(run, kind)[attack] for run in runs]) for attack in ATTACKS}
                for kind in ("observed", "unobserved")
            )
        )


def audits(
    scores: CanaryScores, dim: int, delta: float, confidence: float, inclusion: str
) -> dict[str, dict[str, dict[str, Any]]]:
    """Audit a run's scores with every estimator and every bound that serves them.

    Parameters
    ----------
    scores
        The scores.
    dim
        Dimension d of the model.
    delta, confidence, inclusion
        As for ``audit.audit_scores``.

    Returns
    -------
    For each attack, and each null hypothesis that there is for it, the audit as JSON's own types. Algorithm 3 has
    unobserved canaries for its null; Algorithm 2 has the cosine's exact law, and unobserved canaries here as well: they
    show whether that law holds, and some bounds need them.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
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
) -> dict[str, Any]:
    null = cosine_null(dim) if unobserved is None and dim is not None else None
    serving = _serving(prepare(observed, unobserved, null, inclusion=inclusion))
    found = audit_scores(observed, unobserved, dim, delta, confidence, inclusion, serving)
    return {
        "observed": found.count,
        "unobserved": found.null_count,
        "distance": found.standardised_mean,
        "distance_error": found.mean_error,
        "ratio": found.deviation_ratio,
        "ratio_error": found.ratio_error,
        "variance_p_value": found.variance_p_value,
        "normality": found.normality and asdict(found.normality),
        "null_law": found.null_law and asdict(found.null_law),
        "estimates": {
            estimate.name: {
                name: getattr(estimate, name) for name in ("epsilon", "standard_error", "low", "high", "certified")
            }
            for estimate in found.estimates
        },
        "bounds": _bounds(found),
    }


def _serving(scores: Scores) -> tuple[str, ...]:
    return tuple(name for name, method in METHODS.items() if method.serves(scores))


def _bounds(found: Audit) -> dict[str, dict[str, Any]]:
    return {
        bound.method: {
            "value": bound.value,
            "upper": bound.upper,
            "kind": str(bound.kind),
            "coverage": str(bound.coverage),
            "cap": bound.cap,
        }
        for bound in found.bounds
    }


def densities(scores: CanaryScores, dim: int) -> dict[str, dict[str, Any]]:
    """Estimate the density of the observed canaries' scores, as in Figures 1 and 3 of the final version.

    Parameters
    ----------
    scores
        The scores.
    dim
        Dimension d of the model.

    Returns
    -------
    For each attack the ``x`` and ``y`` of a Gaussian kernel estimate. Scores are in units of the null's deviation, from
    the null's mean on: √d times a cosine, or for all rounds by the mean and deviation of unobserved canaries.
    """
    found = {}
    for attack in ATTACKS:
        observed, unobserved = scores.observed[attack], scores.unobserved[attack]
        place, scale = (unobserved.mean(), unobserved.std()) if attack == ALL else (0.0, 1.0 / np.sqrt(dim))
        values = (observed - place) / scale
        kernel = stats.gaussian_kde(values)
        margin = 3.0 * float(np.sqrt(kernel.covariance[0, 0]))
        x = np.linspace(values.min() - margin, values.max() + margin, _PLACES)
        found[attack] = {"x": _short(x), "y": _short(kernel(x))}
    return found


def _short(values: Array) -> list[float]:
    """Keep the digits that a picture can show."""
    return [float(f"{value:.{_DIGITS}g}") for value in values]
