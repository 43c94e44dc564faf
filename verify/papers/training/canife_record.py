"""CANIFE's part of a training's record, made of the audits that its trainer paused for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.audit.files import checkpoint
from canaryproof.verify.audit.files.reading import open_file
from canaryproof.verify.papers.accounting.sampled_gaussian import composed_epsilon
from canaryproof.verify.papers.canife.attack import accuracy
from canaryproof.verify.papers.canife.measure import RULES, Deltas, by_zero_counts, rounds_served, training_epsilon
from canaryproof.verify.papers.records.training_record import (
    CanifeAttackRecord,
    CanifeAuditRecord,
    CanifeRecord,
    CanifeScores,
    CanifeTheory,
    DesignRecord,
)
from canaryproof.verify.papers.training.configuration import CanifePlan, Settings

Arrays = Mapping[str, NDArray[Any]]

# Fields of an audit, of its attacks, and of their trials.
_BY_AUDIT, _BY_ATTACK = ("round", "accuracy"), ("loss", "initial_loss", "norm", "attempts", "healthy")
_BY_TRIAL = ("scores", "inserted")


def arrays(audits: Sequence[CanifeScores]) -> dict[str, NDArray[Any]]:
    """Put the audits of a training into arrays by field: (audits,), (audits, attacks) or also by trial."""
    names = (*_BY_AUDIT, *_BY_ATTACK, *_BY_TRIAL)
    return {name: np.array([getattr(audit, name) for audit in audits]) for name in names}


def seconds(audits: Sequence[CanifeScores]) -> dict[str, float]:
    """Add up the seconds that designs and attacks took."""
    return {name: float(sum(audit.seconds[name] for audit in audits)) for name in ("design", "attack")}


def read(file: Path, plan: CanifePlan) -> dict[str, NDArray[Any]]:
    """Read the ``arrays`` of a finished training; an InputError says that the file is damaged."""
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_BY_AUDIT, ()) | dict.fromkeys(_BY_ATTACK, (plan.audits,))
    shapes |= dict.fromkeys(_BY_TRIAL, (plan.audits, plan.scores))
    with open_file(file) as content:
        stored = checkpoint.read_arrays(content, tuple(shapes))
        audits = len(stored["round"]) if stored["round"].ndim else 0
        for name, array in stored.items():
            kinds = {"round": "iu", "attempts": "iu", "healthy": "b", "inserted": "b"}.get(name, "f")
            expected = (audits, *shapes[name])
            # Where a training ended before its first audit there is nothing to tell shapes and types by.
            if array.shape != expected if audits else array.size:
                raise ValueError(f"{name}: must have the shape {expected}, not {array.shape}")
            if audits and array.dtype.kind not in kinds:
                raise ValueError(f"{name}: is {array.dtype}, of another kind than was written")
    return stored


def canife_record(stored: Arrays, settings: Settings, rounds_done: int, sampling: float | None) -> CanifeRecord:
    """Measure a training of so many rounds by its audits, of which ``read`` returned the arrays.

    There is no ε̂ of several rounds where participation is no Poisson sampling, and ``sampling`` is None.
    """
    attacks = [_attacks(stored, i, settings) for i in range(len(stored["round"]))]
    audited = [int(number) for number in stored["round"]]
    deltas = Deltas.as_printed(stored["scores"].shape[-1], settings.audit.delta)

    def composed(count: int, rounds_done: int) -> dict[str, tuple[float, ...] | None]:
        if sampling is None or not count:
            return dict.fromkeys(RULES)
        served = rounds_served(audited[:count], rounds_done)
        return {
            rule: tuple(
                training_epsilon([getattr(attack.epsilon, rule).epsilon for attack in each], served, sampling, deltas)
                for each in zip(*attacks[:count], strict=True)
            )
            for rule in RULES
        }

    audits = tuple(
        CanifeAuditRecord(audited[i], float(stored["accuracy"][i]), attacks[i], composed(i + 1, audited[i]))
        for i in range(len(audited))
    )
    return CanifeRecord(rounds_done, audits, composed(len(audits), rounds_done))


def theory(settings: Settings, noise_multiplier: float, rounds: int, sampling: float | None) -> CanifeTheory:
    """Account for a training as CANIFE's paper does."""
    delta = settings.audit.delta
    return CanifeTheory(
        composed_epsilon([noise_multiplier], [1], 1.0, delta),
        None if sampling is None else composed_epsilon([noise_multiplier], [rounds], sampling, delta),
    )


def _attacks(stored: Arrays, number: int, settings: Settings) -> tuple[CanifeAttackRecord, ...]:
    attacks = []
    for attack in range(stored["loss"].shape[1]):
        scores, inserted = stored["scores"][number, attack], stored["inserted"][number, attack]
        observed, unobserved = scores[inserted], scores[~inserted]
        loss, initial_loss = (np.float64(stored[name][number, attack]) for name in ("loss", "initial_loss"))
        # Designs may overflow.
        with np.errstate(all="ignore"):
            health = float(1.0 - loss / initial_loss)
        norm, attempts, healthy = (stored[name][number, attack].item() for name in ("norm", "attempts", "healthy"))
        attacks.append(
            CanifeAttackRecord(
                by_zero_counts(observed, unobserved, 1.0 - settings.audit.confidence),
                DesignRecord(float(loss), norm, health, attempts, healthy),
                accuracy=accuracy(observed, unobserved),
                deviations=(float(observed.std(ddof=1)), float(unobserved.std(ddof=1))),
            )
        )
    return tuple(attacks)
