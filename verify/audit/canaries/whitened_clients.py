"""Canary clients where noise is correlated over rounds by a known matrix: DP-FTRL and matrix factorisation.

With a strategy matrix C, round t releases the increment y_t = g_t + (C⁻¹Z)_t, with independent noise Z. An attacker who
knows C takes u_t = Σ_s C_ts y_s, whose noise Z_t is independent: he whitens it. In u_t a canary that takes part in the
rounds R has the weight w_t = Σ_{s∈R} C_ts. No score has more of it for its noise than Σ_t w_t u_t along the canary
(Choquette-Choo et al., arXiv 2211.06530, Section 2).
"""

import os
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arguments import checked_reals
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients, float_vector
from canaryproof.verify.audit.canaries.participation import Participation
from canaryproof.verify.audit.canaries.round_scores import AnyCanaries
from canaryproof.verify.audit.canaries.scores import RoundsRecord, Score, Scores
from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces


@set_module("canaryproof")
class WhitenedClients(CanaryClients):
    """Canary clients in a training whose noise a known matrix correlates over rounds.

    Parameters
    ----------
    canaries, participation
        As for ``CanaryClients``. The participation must say in which rounds unobserved canaries would take part.
    strategy
        Strategy matrix C of the mechanism, shape (rounds, rounds), lower triangular with no zero on its diagonal: the
        noise of the rounds is C⁻¹Z. Only with it are correlated releases scored; ``CanaryClients`` takes their noise
        for independent, and measures too much.

    Attributes
    ----------
    sensitivity
        How far a canary moves CX, in clip norms: max √Σ|⟨C_s, C_t⟩| over pairs of a canary's rounds. Noise is measured
        in these units. Where Z has the noise multiplier σ in clip norms, the claim is ``accounting.gaussian(σ /
        sensitivity)``.

    Raises
    ------
    ValueError
        If the matrix has another shape or no inverse, or no included canary takes part.

    Notes
    -----
    It keeps all increments: 4·rounds·dim bytes, or 8 where ``delta`` or ``known`` has double precision. ``"known
    rounds"`` is the only score.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> rounds, dim = 4, 2000
    >>> # noise Z_t − Z_{t−1}: running sums have independent noise
    >>> strategy = np.tril(np.ones((rounds, rounds)))
    >>> participation = cp.shuffled_epochs(rounds, 1, 1, 0, cp.Insertion(400, 200))
    >>> clients = cp.WhitenedClients(cp.Canaries(7, 400, dim), participation, strategy)
    >>> independent = 2.0 * np.random.default_rng(0).normal(size=(rounds, dim))
    >>> noise = np.linalg.solve(strategy, independent)
    >>> for t in range(rounds):
    ...     clients.add(clients.total(t, clip_norm=1.0) + noise[t], t, known=np.zeros(dim))
    >>> claim = cp.accounting.gaussian(2.0 / clients.sensitivity)
    >>> scores = clients.scores("known rounds")
    >>> print(cp.audit(scores, delta=1e-5, claim=claim).decision.outcome)
    PASSED
    """

    def __init__(self, canaries: AnyCanaries, participation: Participation, strategy: ArrayLike) -> None:
        super().__init__(canaries, participation)
        rounds = participation.rounds
        matrix = checked_reals("strategy:", strategy)
        if matrix.shape != (rounds, rounds):
            raise ValueError(f"strategy: must have shape ({rounds}, {rounds}), not {matrix.shape}")
        if not np.isfinite(matrix).all() or np.triu(matrix, 1).any() or not np.diagonal(matrix).all():
            raise ValueError("strategy: must be finite, lower triangular and not zero on its diagonal")
        members = np.zeros((rounds, canaries.count))
        for t in range(rounds):
            members[t, self.participants(t)] = members[t, self._unobserved_members(t)] = 1.0
        products = np.abs(matrix.T @ matrix)
        squares = np.einsum("tj,tj->j", members, products @ members)[self._included]
        if not squares.any():
            raise ValueError("participation: no included canary takes part")
        self.sensitivity = float(np.sqrt(squares.max()))
        self._strategy, self._weights = matrix, matrix @ members
        self._increments: list[NDArray[np.floating]] = []
        self._sums = np.zeros(canaries.count)

    def add(self, delta: ArrayLike, round: int | None = None, known: ArrayLike | None = None) -> None:  # noqa: A002
        """Take the increment of the next round.

        Parameters
        ----------
        delta, round
            As for ``CanaryClients.add``; of all rounds in one unit.
        known
            Part of the increment that the other members' clipped updates make up. It must be given: what is whitened
            are sums over rounds, which have others' data of all of them.

        Raises
        ------
        ValueError
            As ``CanaryClients.add`` does, and if ``known`` is missing.
        """
        if known is None:
            raise ValueError("known: must be given, since whitening adds up the data of several rounds")
        self._members_of_turn(round)
        vector, others = float_vector(f"delta of round {self.rounds}", delta), float_vector("known:", known)
        if not vector.shape == others.shape == (self.canaries.dim,):
            shapes = f"{vector.shape} and {others.shape}"
            raise ValueError(f"delta, known: must have the shape ({self.canaries.dim},), not {shapes}")
        row = self._strategy[self.rounds]
        increment = vector - others
        white = row[self.rounds] * increment.astype(np.float64)
        for weight, earlier in zip(row, self._increments, strict=False):
            white += weight * earlier
        number = self.rounds
        super().add(white, number, known=np.zeros(len(white)))
        # Last, so that a round that was refused can be added again.
        self._increments.append(increment)
        if white.any():
            self._sums += self._weights[number] * self.canaries.cosines(white)

    def scores(self, score: str, gram: ArrayLike | None = None) -> Scores:
        """Return the canaries' scores for an attacker who knows their rounds and the strategy matrix.

        Parameters
        ----------
        score
            ``"known rounds"``.
        gram
            Must be None.

        Returns
        -------
        The scores; unobserved canaries are the null.

        Raises
        ------
        ValueError
            If the score is another one, or no round was added.
        """
        if score != Score.KNOWN_ROUNDS or gram is not None:
            raise ValueError(f"score: must be known rounds where noise is correlated, without gram, not {score!r}")
        if not self._increments:
            raise ValueError("scores: no round was added")
        lengths = np.linalg.norm(self._weights, axis=0)
        taking = lengths > 0.0
        values = self._sums / np.where(taking, lengths, 1.0)
        observed, unobserved = (values[part & taking] for part in (self._included, ~self._included))
        missing = self.participation.rounds - self.rounds
        left_out = int((self._included & ~taking).sum())
        record = RoundsRecord(Score.KNOWN_ROUNDS, 1, left_out, self.rounds, missing, self.skipped_rounds, self.traces)
        return Scores(observed, unobserved, inclusion=self.participation.inclusion, kind="any", record=record)

    @property
    def traces(self) -> RoundTraces | None:
        """Traces of the canaries in the whitened rounds so far, which measure the noise in units of the sensitivity."""
        traces = super().traces
        if traces is None:
            return None
        lengths = traces.lengths / self.sensitivity
        return RoundTraces(traces.cosines, lengths, traces.dim, traces.residual, traces.rounds)

    def save(self, path: str | os.PathLike[str]) -> NoReturn:  # noqa: ARG002
        """Refuse by ``ValueError``: the increments of all rounds are not written."""
        raise ValueError("save: is not served where noise is correlated, as all increments would be in the file")

    def _canary_sum(self, number: int) -> Array:
        """Return the sum of the observed canaries in a whitened round."""
        return self.canaries.sum(weights=np.where(self._included, self._weights[number], 0.0))

    def _counts(self) -> Array:
        """Return an upper bound on how often each canary occurs in the whitened rounds so far."""
        return np.where(self._included, np.abs(self._weights[: self.rounds]).sum(axis=0), 0.0)
