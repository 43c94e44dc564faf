"""What audits by CANIFE say of a training: the attacks' scores, kept in a file, made into ε̂ of rounds and of all."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.canife.attack import accuracy
from canaryproof.verify.canife.measure import (
    Deltas,
    ZeroCounts,
    composed_epsilon,
    round_epsilon,
    rounds_served,
    training_epsilon,
)
from canaryproof.verify.federated.settings import Settings

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
