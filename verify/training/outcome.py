"""What audits by CANIFE say of a training: the attacks' scores, kept in a file, made into ε̂ of rounds and of all."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.verify.accounting.sampled_gaussian import composed_epsilon
from canaryproof.verify.audit.audit import Audit, audit_scores
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.lower_bound import Scores, cosine_null, prepare
from canaryproof.verify.canife.attack import accuracy
from canaryproof.verify.canife.measure import Deltas, ZeroCounts, round_epsilon, rounds_served, training_epsilon
from canaryproof.verify.training.configuration import Settings

if TYPE_CHECKING:
    from canaryproof.verify.canaries.canary_clients import CanaryClients
    from canaryproof.verify.training.training import Trainer


Arrays = Mapping[str, NDArray[Any]]

# What no error of a kind makes of ε̂ of a round: as Appendix C.5 describes it, and finite.
RULES: tuple[ZeroCounts, ...] = ("separated", "capped")
# Of an audit, of its attacks, and of their trials.
_BY_AUDIT, _BY_ATTACK = ("round", "accuracy"), ("loss", "initial_loss", "norm", "attempts", "healthy")
_BY_TRIAL = ("scores", "inserted")


def arrays(audits: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Put audits together as they are kept.

    Parameters
    ----------
    audits
        What ``canife_audits.Auditor.audit`` returned.

    Returns
    -------
    By field, arrays of shape (audits,), (audits, attacks) or (audits, attacks, trials).
    """
    return {name: np.array([audit[name] for audit in audits]) for name in (*_BY_AUDIT, *_BY_ATTACK, *_BY_TRIAL)}


def seconds(audits: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Add up the seconds that designs and attacks took."""
    return {name: float(sum(audit["seconds"][name] for audit in audits)) for name in ("design", "attack")}


def read(file: Path) -> dict[str, NDArray[Any]]:
    """Read the audits of a finished training.

    Parameters
    ----------
    file
        What was kept of ``arrays``.

    Raises
    ------
    ValueError
        If it is damaged.
    """
    try:
        with np.load(file, allow_pickle=False) as archive:
            found = {name: archive[name] for name in (*_BY_AUDIT, *_BY_ATTACK, *_BY_TRIAL)}
    # zipfile and numpy have no closed list of what they raise over a damaged file.
    except Exception as error:
        reason = str(error).partition("\n")[0][:200]
        raise ValueError(f"{file}: is damaged ({reason})") from error
    return found


def outcome(found: Arrays, settings: Settings, rounds: int, sampling: float | None) -> dict[str, Any]:
    """Measure a training by its audits.

    Parameters
    ----------
    found
        What ``read`` returned.
    settings
        Settings of the training.
    rounds
        Rounds done.
    sampling
        Probability that a client takes part in a round; None if that is not decided by a coin of its own.

    Returns
    -------
    As JSON's own types: ``audits``, one after the other, each with the ε̂ of all rounds until then, and ``composed``,
    that of the training; for each rule by each attack of an audit. None where participation is no Poisson sampling.
    """
    audits = [_audit(found, i, settings) for i in range(len(found["round"]))]
    deltas = Deltas.as_printed(found["scores"].shape[-1], settings.audit.delta)

    def composed(count: int, rounds: int) -> dict[str, list[float] | None]:
        if sampling is None or not count:
            return dict.fromkeys(RULES)
        served = rounds_served([audit["round"] for audit in audits[:count]], rounds)
        return {
            rule: [
                training_epsilon(
                    [audit["attacks"][j][rule]["epsilon"] for audit in audits[:count]], served, sampling, deltas
                )
                for j in range(found["loss"].shape[1])
            ]
            for rule in RULES
        }

    for i, audit in enumerate(audits, start=1):
        audit["composed"] = composed(i, audit["round"])
    return {"rounds": rounds, "audits": audits, "composed": composed(len(audits), rounds)}


def theory(settings: Settings, noise_multiplier: float, rounds: int, sampling: float | None) -> dict[str, float | None]:
    """Account for a training as the paper does.

    Parameters
    ----------
    settings
        Settings.
    noise_multiplier
        σ.
    rounds, sampling
        As for ``outcome``.

    Returns
    -------
    ε_r of one round in which a client takes part, and ε of the training, None if participation is no Poisson sampling.
    """
    delta = settings.audit.delta
    return {
        "round": composed_epsilon([noise_multiplier], [1], 1.0, delta),
        "training": None if sampling is None else composed_epsilon([noise_multiplier], [rounds], sampling, delta),
    }


def _audit(found: Arrays, number: int, settings: Settings) -> dict[str, Any]:
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
        measured: dict[str, Any] = {
            rule: asdict(round_epsilon(observed, unobserved, delta, alpha=alpha, zero_counts=rule)) for rule in RULES
        }
        attacks.append(
            measured
            | {
                "loss": float(loss),
                "norm": float(found["norm"][number, attack]),
                "health": health,
                "attempts": int(found["attempts"][number, attack]),
                "healthy": bool(found["healthy"][number, attack]),
                "accuracy": accuracy(observed, unobserved),
                "deviations": [float(observed.std(ddof=1)), float(unobserved.std(ddof=1))],
            }
        )
    return {
        "round": int(found["round"][number]),
        "model_accuracy": float(found["accuracy"][number]),
        "attacks": attacks,
    }


# What a training run says of its privacy: the audits of its canaries' scores under each threat model.


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
            name: _audit_outcome(observed, null, dim if attack != ALL else None, delta, confidence, inclusion)
            for name, null in nulls.items()
        }
    return found


def _audit_outcome(
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
