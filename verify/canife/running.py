"""CANIFE alongside training, without rounds of its own: a new canary and one score a round (Appendix F)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


class RunningMeasurement:
    """Scores of canaries that are never really inserted: one in each round, while the model changes.

    The adversary has a round's released sum, adds the round's canary by a fair coin, and keeps the score. Training does
    not notice. Scores of different rounds are scores of different canaries, all of length C where designs are healthy.

    Parameters
    ----------
    rng
        Source of the coins.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._scores: list[float] = []
        self._inserted: list[bool] = []

    def add(self, aggregate: ArrayLike, canary: ArrayLike) -> None:
        """Score a round.

        Parameters
        ----------
        aggregate
            Noisy sum of the clients' clipped updates, shape (dim,); not their mean.
        canary
            The canary's clipped update for the round's model, shape (dim,).
        """
        update, total = np.asarray(canary, dtype=np.float64), np.asarray(aggregate, dtype=np.float64)
        inserted = bool(self._rng.random() < 0.5)
        self._scores.append(float(update @ total + inserted * (update @ update)))
        self._inserted.append(inserted)

    def scores(self, first: int = 0, end: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return scores with the canary and without, of the rounds from ``first`` to before ``end``, counted from 0."""
        values, inserted = np.array(self._scores[first:end]), np.array(self._inserted[first:end], dtype=np.bool_)
        return values[inserted], values[~inserted]
