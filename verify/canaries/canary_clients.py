"""Canary clients in anybody's training: which canaries now, their updates, and the round's delta back.

These three calls in each round are all that Algorithms 2 and 3 of Andrew et al. (arXiv 2302.03098) ask of a training
loop, whatever its framework::

    canary_clients = CanaryClients(canaries, participation)             # before the loop
    for t in range(participation.rounds):
        ...                                                             # the sum of the clients' clipped updates
        total += canary_clients.total(t, clip_norm)                     # or .updates(t, clip_norm), one by one
        number = len(participation.clients(t)) + len(canary_clients.participants(t))
        delta = (total + noise) / number
        canary_clients.add(delta, round=t)
        ...                                                             # the server's step
    observed, unobserved = canary_clients.all_rounds()                  # Algorithm 3
    observed, unobserved = canary_clients.final(theta - initial)        # Algorithm 2

The delta is what was added to the model, or would be by plain averaging: a negative gradient and not the gradient.
"""

import math
import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.canaries.participation import (
    Participation,
    checked_canaries,
    checked_inclusion,
    checked_integer,
)
from canaryproof.verify.canaries.round_scores import BLOCK, AnyCanaries, RoundScores, layers_of
from canaryproof.verify.files import checkpoint

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


class CanaryClients:
    """Canary clients and their scores.

    Parameters
    ----------
    canaries
        All canaries, observed and unobserved; ``Canaries`` or ``OrthonormalCanaries``.
    participation
        Who takes part in which round.
    block
        Rounds to score at once, as for ``RoundScores``.

    Attributes
    ----------
    canaries, participation
        As given.
    rounds
        Number of rounds added so far.
    skipped
        Number of these whose delta was zero: nobody took part, and there was no noise. A zero vector has no direction,
        so that the round tells an attacker nothing.

    Raises
    ------
    ValueError
        If the participation does not say of each canary whether it is included, or block is out of range.
    """

    def __init__(self, canaries: AnyCanaries, participation: Participation, block: int = BLOCK) -> None:
        self.canaries = canaries
        self.participation = participation
        self.rounds = self.skipped = 0
        self._included = checked_inclusion(participation, canaries.count)
        self._scores = RoundScores(canaries, block)
        # Sum over rounds of ⟨Σ c_j over the participants, delta/‖delta‖⟩, and the last sum of canaries with its round.
        self._product = 0.0
        self._sum: tuple[int, NDArray[np.float64]] | None = None
        self._final: float | None = None

    def participants(self, round: int) -> NDArray[np.int64]:  # noqa: A002
        """Return the canaries who take part in a round.

        Parameters
        ----------
        round
            Number of the round, from 0 on.

        Returns
        -------
        Their indices, shape (n,).

        Raises
        ------
        ValueError
            If there is no such round, or one takes part twice or may not.
        """
        checked_integer("round", round, 0, self.participation.rounds - 1)
        return checked_canaries(self.participation, round)

    def updates(self, round: int, clip_norm: float) -> NDArray[np.float32]:  # noqa: A002
        """Return what the canaries of a round send in place of an update: Proj(c_j; S) of Algorithms 2 and 3.

        Parameters
        ----------
        round
            Number of the round.
        clip_norm
            Clip norm S of the round, positive.

        Returns
        -------
        Vectors of norm S, in the order of ``participants``, shape (n, dim).

        Raises
        ------
        ValueError
            If an argument is out of its range.
        """
        scale = _checked_clip_norm(clip_norm)
        updates = np.empty((len(members := self.participants(round)), self.canaries.dim), np.float32)
        for row, j in zip(updates, members.tolist(), strict=True):
            np.multiply(self.canaries.vector(j), scale, out=row, dtype=np.float64, casting="same_kind")
        return updates

    def total(self, round: int, clip_norm: float) -> NDArray[np.float64]:  # noqa: A002
        """Return the sum of the updates of a round, shape (dim,); arguments and errors as for ``updates``."""
        return _checked_clip_norm(clip_norm) * self._sum_of(round)

    def add(self, delta: ArrayLike, round: int | None = None) -> None:  # noqa: A002
        """Take the model delta ρ̄ of the next round, lines 10 to 12 of Algorithm 3.

        Parameters
        ----------
        delta
            What the round adds to the model, in any unit, shape (dim,), the coordinates in the canaries' order.
        round
            Number of the round, to make sure that none is missed or counted twice.

        Raises
        ------
        ValueError
            If the delta is not finite or of another shape or type, or it is not this round's turn. Nothing has changed
            then.
        """
        if round is not None and round != self.rounds:
            raise ValueError(f"round: it is the turn of round {self.rounds}, not of {round!r}")
        vector = np.asarray(delta)
        _check_finite(vector, f"the model diverged in round {self.rounds}: its delta")
        if vector.shape == (self.canaries.dim,) and not vector.any():
            self.skipped += 1
        else:
            total = self._sum_of(self.rounds)
            self._scores.add(vector)
            self._product += product(total, vector)
        self.rounds += 1

    def all_rounds(self) -> Pair:
        """Return each canary's largest cosine with any round's delta: lines 14 to 16 of Algorithm 3.

        Returns
        -------
        Those of observed and of unobserved canaries.

        Raises
        ------
        ValueError
            If no delta other than zero was added.
        """
        if self._scores.rounds == 0:
            raise ValueError(f"all_rounds: none of {self.rounds} rounds had a delta other than zero")
        return self._pair(self._scores.maxima)

    def final(self, vector: ArrayLike) -> Pair:
        """Return each canary's cosine with the released model: lines 10 and 11 of Algorithm 2.

        Parameters
        ----------
        vector
            θ_T as printed, or θ_T − θ₀, since the attacker may well know the initial model; float32 or float64, shape
            (dim,). Or a block of vectors, shape (n, dim), for which each canary is made once; a warning is of the last.

        Returns
        -------
        Cosines of observed and of unobserved canaries, shape (k,) each, or (n, k) of a block.

        Raises
        ------
        ValueError
            If the vector is zero, not finite, or of another shape or type.
        """
        array = np.asarray(vector)
        _check_finite(array, "the model diverged: its final vector")
        if not array.any(axis=-1).all():
            raise ValueError(
                "zero update: the final vector has no direction, nothing was learnt and there was no noise"
            )
        observed, unobserved = self._pair(self.canaries.cosines(array))
        self._final = float(np.atleast_2d(observed)[-1].sum())
        return observed, unobserved

    def warnings(self) -> tuple[str, ...]:
        """Say in a sentence each what looks wrong: rounds without a delta, and negated signs.

        Whoever hands over gradients, or θ₀ − θ_T, gets negated cosines, and scores that look as if nobody took part.
        The comment at ``FALSE_ALARM`` says how this is found, at which level and with what power.
        """
        sentences = []
        if self.skipped:
            sentences.append(f"{self.skipped} of {self.rounds} rounds had a zero delta and were not scored")
        counts = np.zeros(self.canaries.count)
        for t in range(self.rounds):
            counts[checked_canaries(self.participation, t)] += 1.0
        if away(self._product, counts, self.canaries.dim):
            sentences.append("the rounds' deltas point away from their canaries: they look like gradients, not updates")
        if self._final is not None and away(self._final, self._included.astype(float), self.canaries.dim):
            sentences.append("the final vector points away from the observed canaries: its sign looks wrong")
        return tuple(sentences)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to two files, the larger one of at most a little more than the deltas that wait.

        A crash, even of the machine, leaves the old state or the new one, whole.

        Parameters
        ----------
        path
            File to write or replace. The scores stand beside it, under its name and the number of the round.

        Raises
        ------
        OSError
            If they cannot be written.
        """
        target = Path(path)
        current = _scores_file(target, self.rounds)
        self._scores.save(current)
        checkpoint.write(target, self._description(), self._state())
        # From here on the new state counts.
        for old in target.parent.iterdir():
            name, _, rounds = old.name.rpartition(".")
            if name == target.name and rounds.isdigit() and old != current:
                old.unlink()

    def load(self, path: str | os.PathLike[str]) -> None:
        """Take over the state that ``save`` wrote; going on from it gives the same bits.

        Parameters
        ----------
        path
            File to read. Nothing in it is unpickled.

        Raises
        ------
        OSError
            If a file cannot be opened.
        ValueError
            If one is damaged, or of other canaries: the file, the field and the rule are named.
        """
        target = Path(path)
        state = checkpoint.read(target, self._description(), self._state())
        rounds, skipped = int(state["rounds"]), int(state["skipped"])
        scores = RoundScores.load(_scores_file(target, rounds))
        if scores.canaries != self.canaries or scores.rounds + skipped != rounds:
            raise ValueError(f"{_scores_file(target, rounds)}: its canaries and rounds must be those of {target}")
        self.rounds, self.skipped, self._product, self._scores = rounds, skipped, float(state["product"]), scores
        self._sum = self._final = None

    def _description(self) -> dict[str, int | str]:
        rounds = (self.participants(t) for t in range(self.participation.rounds))
        participation = checkpoint.digest(self._included, *rounds)
        made = self.canaries
        return {"seed": made.seed, "dim": made.dim, "layers": layers_of(made), "participation": participation}

    def _state(self) -> dict[str, NDArray[np.generic]]:
        state = {"rounds": self.rounds, "skipped": self.skipped, "product": self._product}
        return {name: np.asarray(value) for name, value in state.items()}

    def _sum_of(self, number: int) -> NDArray[np.float64]:
        """Σ c_j over the participants of a round, kept from ``total`` to ``add``."""
        if self._sum is None or self._sum[0] != number:
            self._sum = number, self.canaries.sum(self.participants(number))
        return self._sum[1]

    def _pair(self, scores: NDArray[np.float64]) -> Pair:
        return scores[..., self._included], scores[..., ~self._included]


def _scores_file(path: Path, rounds: int) -> Path:
    return path.with_name(f"{path.name}.{rounds}")


def _check_finite(vector: NDArray[np.generic], name: str) -> None:
    if vector.dtype.kind == "f" and not np.isfinite(vector).all():
        raise ValueError(f"{name} is not finite")


def _checked_clip_norm(clip_norm: float) -> float:
    if not 0.0 < clip_norm < math.inf:
        raise ValueError(f"clip_norm must be positive and finite, not {clip_norm!r}")
    return float(clip_norm)


# Vectors that point away from the canaries in them: gradients handed over for updates, or θ₀ − θ_T for θ_T − θ₀.
#
# The evidence is A = Σ_t ⟨Σ_j c_j, δ_t⟩ over rounds t and their participants j, where δ_t is the delta's direction. If
# the deltas do not depend on the canaries, A = Σ_j ⟨c_j, v_j⟩ with independent uniform directions c_j and ‖v_j‖ ≤ r_j,
# the number of rounds in which j takes part. A coordinate of a uniform direction in R^d has a moment generating
# function of at most exp(s²/2d), so that P(√d·A ≤ −x·√Σr_j²) ≤ exp(−x²/2), and x = 5.26 makes it 1e-6. Canaries with
# the right sign make A larger, so that a false alarm is rarer still.
#
# With the wrong sign √d·A/√Σr_j² has the mean −√k/s for k canaries that take part once, in deltas of norm s·√d clip
# norms before they are divided. Its deviation is about 1. So the power is Φ(√k/s − 5.26), 0.99 for k = 1,000 and s = 4.
# Maxima over many rounds would hardly show it, since a canary then only misses one round of all.

# Probability that clients who leave the vectors alone are accused.
FALSE_ALARM = 1e-6
LIMIT = math.sqrt(-2.0 * math.log(FALSE_ALARM))


def product(total: NDArray[np.float64], delta: NDArray[np.floating]) -> float:
    """Return ⟨total, δ⟩ for the direction δ of a vector that is not zero, without overflow."""
    scaled = delta / np.abs(delta).max().astype(np.float64)
    # numpy's own sums: a BLAS wakes threads that then wait busily for as long as the product takes.
    return float((total * scaled).sum() / math.sqrt(np.square(scaled).sum()))


def away(evidence: float, counts: NDArray[np.float64], dim: int) -> bool:
    """Tell by A whether the vectors point away from their canaries, who take part in ``counts`` rounds each."""
    return math.sqrt(dim) * evidence < -LIMIT * float(np.linalg.norm(counts))
