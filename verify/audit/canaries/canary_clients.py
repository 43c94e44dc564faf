"""Canary clients in anybody's training: which canaries now, their updates, and the round's delta back.

These calls in each round are all that an audit asks of a training loop, whatever its framework::

    canary_clients = CanaryClients(canaries, participation)             # before the loop
    for t in range(participation.rounds):
        ...                                                             # the sum of the clients' clipped updates
        total += canary_clients.total(t, clip_norm)                     # or .updates(t, clip_norm), one by one
        number = len(participation.clients(t)) + len(canary_clients.participants(t))
        delta = (total + noise) / number
        canary_clients.add(delta, round=t)
        ...                                                             # the server's step
    scores = canary_clients.scores("known rounds")                      # or "largest", "likelihood"
    observed, unobserved = canary_clients.all_rounds()                  # Algorithm 3 of Andrew et al.
    observed, unobserved = canary_clients.final(theta - initial)        # their Algorithm 2 (arXiv 2302.03098)

The delta is what was added to the model, or would be by plain averaging: a negative gradient and not the gradient. An
attacker who also knows all other clients' updates subtracts them. ``add(delta, t, known=...)`` takes the part of the
delta that is theirs. All scores and traces are then of what remains.
"""

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arrays import Array, Ints, floating
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import checked_integer, checked_path, refusals_of
from canaryproof.kernels.slices import PartialProducts
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.sampling import SCHEDULED
from canaryproof.verify.audit.canaries.grouped_canaries import GroupedCanaries
from canaryproof.verify.audit.canaries.participation import (
    Participation,
    checked_canaries,
    checked_inclusion,
    checked_members,
)
from canaryproof.verify.audit.canaries.round_scores import (
    BLOCK,
    AnyCanaries,
    RoundScores,
    SampledTrace,
    check_canaries,
    layers_of,
)
from canaryproof.verify.audit.canaries.scores import RoundsRecord, Score, Scores
from canaryproof.verify.audit.canaries.sharded_canaries import ShardedCanaries
from canaryproof.verify.audit.estimators.noise_multiplier import Evidence, RoundTraces, log_mean_ratio
from canaryproof.verify.audit.files import checkpoint
from canaryproof.verify.audit.files.errors import InputError

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


@set_module("canaryproof")
class CanaryClients:
    """Canary clients and their scores.

    Parameters
    ----------
    canaries
        All canaries, observed and unobserved; ``Canaries``, ``OrthonormalCanaries`` or, where clipping has several
        norms, ``GroupedCanaries``. With ``ShardedCanaries``, vectors are the coordinates that this process holds.
    participation
        Who takes part in which round.
    block
        Rounds to score at once, as for ``RoundScores``.
    noise_multiplier
        Claimed noise multiplier of a round, which the score ``likelihood`` needs, and which the record of the scores
        keeps, so that an audit holds a claimed ε against it; None if it is not known.
    keep_table
        Whether every cosine is kept, for ``table``: 4·rounds·count bytes.

    Attributes
    ----------
    canaries, participation, noise_multiplier
        As given; of ``ShardedCanaries`` the whole canaries. The noise multiplier is that of all rounds: set it to None
        where rounds differ in it.
    rounds
        Number of rounds added so far.

    Raises
    ------
    ValueError
        If the participation does not say of each canary whether it is included, or a number is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> canaries = cp.Canaries(seed=7, count=400, dim=2000)
    >>> inserted = cp.Insertion(400, observed=200)
    >>> participation = cp.bernoulli(0, 0.5, rounds=8, seed=1, canaries=inserted)
    >>> clients = cp.CanaryClients(canaries, participation, noise_multiplier=1.0)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(8):
    ...     clients.add(clients.total(t, clip_norm=1.0) + rng.normal(size=2000), round=t)
    >>> claim = cp.accounting.poisson(1.0, rate=0.5, rounds=8)
    >>> scores = clients.scores("likelihood")
    >>> print(cp.audit(scores, delta=1e-5, claim=claim).decision.outcome)
    PASSED
    """

    def __init__(
        self,
        canaries: AnyCanaries | ShardedCanaries,
        participation: Participation,
        block: int = BLOCK,
        noise_multiplier: float | None = None,
        *,
        keep_table: bool = False,
    ) -> None:
        check_canaries(canaries, sharded=True)
        self.canaries = canaries.whole if isinstance(canaries, ShardedCanaries) else canaries
        self.participation = participation
        self.rounds = 0
        self._included = checked_inclusion(participation, canaries.count)
        if noise_multiplier is not None:
            noise_multiplier = rules.NOISE_MULTIPLIER.number("noise_multiplier", noise_multiplier)
        self.noise_multiplier = noise_multiplier
        rate = float(getattr(participation, "canary_sampling", SCHEDULED).rate or 0.0)
        # Clients who are drawn without replacement leak more than the canaries, each of which has a coin of its own.
        is_poisson = getattr(participation, "client_sampling", SCHEDULED).kind == "poisson"
        self._rate = rate if rate and is_poisson else None
        sampling = SampledTrace(rate, noise_multiplier) if rate and noise_multiplier is not None else None
        self._held, self._sharded = canaries, canaries if isinstance(canaries, ShardedCanaries) else None
        block = block if self._sharded is None else 1
        self._scores = RoundScores(self.canaries, block, sampling, keep_table=keep_table)
        self._seen = np.zeros(canaries.count, bool)
        self._zero = np.zeros(participation.rounds, bool)
        # For each round the trace's cosine and ‖S‖, 0 where none was measured; the same of all canaries in it; and
        # whether others' updates are known.
        self._cosines, self._lengths = np.zeros((2, participation.rounds))
        self._whole = np.zeros((2, participation.rounds))
        self._residual: bool | None = None
        # The last delta's direction without its canaries; the sum of its cosines with the one before and their number,
        # and the least kurtosis of its coordinates.
        self._rest = np.zeros(canaries.dim if self._sharded is None else self._sharded.held, np.float32)
        self._likeness = np.array([0.0, 0.0, math.inf])
        # Sum over rounds of ⟨Σ c_j over the participants, delta/‖delta‖⟩, and the last sum of canaries with its round.
        self._product = 0.0
        self._sum: tuple[int, NDArray[np.float64]] | None = None
        self._final: float | None = None
        # Noise multiplier of the last evidence, sums of its log likelihood ratios, and its values.
        self._evidence: tuple[float, Array, Array] | None = None

    @property
    def skipped_rounds(self) -> int:
        """Number of rounds whose delta was zero: nobody took part, and there was no noise.

        A zero vector has no direction, so that the round tells an attacker nothing.
        """
        return int(self._zero.sum())

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
        if self._sharded is not None:
            raise ValueError("updates: are whole, and this process holds slices of them; total(...) has those of a sum")
        updates = np.empty((len(members := self.participants(round)), self.canaries.dim), np.float32)
        for row, j in zip(updates, members.tolist(), strict=True):
            np.multiply(self.canaries.vector(j), scale, out=row, dtype=np.float64, casting="same_kind")
        return updates

    def total(self, round: int, clip_norm: float) -> NDArray[np.float64]:  # noqa: A002
        """Return the sum of the updates of a round, shape (dim,); arguments and errors as for ``updates``."""
        return _checked_clip_norm(clip_norm) * self._sum_of(round)

    def add(
        self,
        delta: ArrayLike,
        round: int | None = None,  # noqa: A002
        known: ArrayLike | None = None,
    ) -> None:
        """Take the model delta ρ̄ of the next round, lines 10 to 12 of Algorithm 3.

        Parameters
        ----------
        delta
            What the round adds to the model, in any unit, shape (dim,), the coordinates in the canaries' order:
            floating-point numbers of any library and format. ``flatten(sums, scale=...)`` makes them of the integers
            of a secure aggregation.
        round
            Number of the round, to make sure that none is missed or counted twice.
        known
            Part of the delta that the other members' clipped updates make up, of the same shape and unit, for the
            attacker who knows all other data; in every round or in none. Canaries stay in the rest.

        Raises
        ------
        ValueError
            If the delta is not finite or of another shape or type, it is not this round's turn, or ``known`` is given
            in some rounds only. Nothing has changed then.
        """
        members = self._members_of_turn(round)
        if self._residual is not None and self._residual != (known is not None):
            raise ValueError("known: must be given in every round or in none")
        vector = float_vector(f"delta of round {self.rounds}", delta)
        if known is not None:
            others = float_vector("known:", known)
            if others.shape != vector.shape:
                raise ValueError(f"known: must have the delta's shape {vector.shape}, not {others.shape}")
            vector = vector.astype(np.float64) - others
        scored: NDArray[np.floating] | PartialProducts = vector
        if self._sharded is None:
            _check_finite(vector, f"the model diverged in round {self.rounds}: its delta")
            nothing = vector.shape == (self.canaries.dim,) and not vector.any()
        else:
            # The processes decide by their sums, so that none goes on alone.
            scored = self._sharded.products(vector)
            nothing = scored.square == 0.0
        if nothing:
            self._zero[self.rounds] = True
        else:
            total = self._canary_sum(self.rounds)
            would_be = self._unobserved_members(self.rounds)
            self._scores.add(scored, members=members, unobserved=would_be)
            along = self._along(total, vector)
            self._product += along
            self._measure(members, total, vector, along, residual=known is not None)
            self._compare(total, vector, along)
        self._residual = known is not None
        self._seen[members] = True
        self.rounds += 1

    def scores(self, score: str, gram: ArrayLike | None = None) -> Scores:
        """Return the canaries' scores for an attacker, with the traces that measure the noise.

        Parameters
        ----------
        score
            ``"known rounds"``: who knows a canary's rounds adds up the cosines with their deltas. ``"likelihood"``: who
            knows the rate at which rounds are drawn adds up log likelihood ratios. ``"largest"``: who knows neither
            takes the largest cosine (Algorithm 3).
        gram
            For known rounds: inner products of the rounds' deltas, less ``known``, with each other, shape (rounds,
            rounds), from a loop that keeps its deltas. A canary's score is then the cosine with the sum of the
            directions of its rounds.

        Returns
        -------
        The scores, for ``audit``. Where each canary has at most one round or ``gram`` is given, and directions are
        independent, those of known rounds are cosines whose law without a trace is Theorem 3.1's; else unobserved
        canaries are the null. Canaries without a round have no score of known rounds, and are left out of it.

        Raises
        ------
        ValueError
            If the score is none of these, no round was added, the score needs a noise multiplier that was not given,
            or known rounds need unobserved canaries whose rounds the participation does not say. If ``gram`` is for
            another score, for canaries whose directions are not independent, or is no such matrix.
        """
        if score not in tuple(Score):
            raise ValueError(f"score: must be one of {', '.join(Score)}, not {score!r}")
        independent = isinstance(self.canaries, Canaries)
        if gram is not None and not (score == Score.KNOWN_ROUNDS and independent):
            raise ValueError("gram: is for known rounds of independent canaries")
        counts = self._counts()[self._included]
        record = RoundsRecord(
            Score(score),
            participations=int(counts.max(initial=0)),
            left_out=int((counts == 0).sum()) if score == Score.KNOWN_ROUNDS else 0,
            rounds=self.rounds,
            missing=self.participation.rounds - self.rounds,
            skipped=self.skipped_rounds,
            traces=self.traces,
            carry_over=self._carry_over(),
            members=len(counts),
            taken=int(counts.sum()),
            all_traces=self.all_traces,
            correlation=self._correlation,
            pairs=int(self._likeness[1]) or None,
            kurtosis=self._kurtosis,
            noise_multiplier=self.noise_multiplier,
            rate=self._rate,
        )
        inclusion = self.participation.inclusion
        if score == Score.LARGEST:
            return Scores(*self.all_rounds(), inclusion=inclusion, record=record)
        if score == Score.LIKELIHOOD:
            return Scores(*self._pair(self._scores.likelihoods), inclusion=inclusion, kind="any", record=record)
        values, rounds = self._scores.known_rounds
        record = replace(record, counts=counts[rounds[self._included] > 0].astype(np.int64))
        if gram is not None:
            values = np.clip(values * np.sqrt(rounds) / self._lengths_of_sums(gram), -1.0, 1.0)
        observed, unobserved = (values[part & (rounds > 0)] for part in (self._included, ~self._included))
        if gram is not None or (rounds.max() <= 1 and independent):
            # The mean number of canaries in the rounds of one.
            sizes = np.array([len(self.participants(t)) for t in range(self.rounds)])
            inserted = max(1, round(float(np.square(sizes).sum() / sizes.sum())))
            return Scores(observed, dim=self.canaries.dim, inclusion=inclusion, record=record, inserted=inserted)
        if len(unobserved) < 2:
            raise ValueError(
                "known rounds: where a canary has several rounds or directions are orthonormal, the participation must "
                "say in which rounds unobserved canaries would have taken part"
            )
        return Scores(observed, unobserved, inclusion=inclusion, kind="any", record=record)

    @property
    def table(self) -> NDArray[np.float32]:
        """Cosine of each canary with the delta of each round so far, less ``known``, shape (rounds, canaries).

        It is 0 in rounds whose delta was zero. The table is in the file that ``save`` writes.

        Raises
        ------
        ValueError
            If it was not asked for by ``keep_table``.
        """
        table = np.zeros((self.rounds, self.canaries.count), np.float32)
        table[~self._zero[: self.rounds]] = self._scores.table
        return table

    @property
    def traces(self) -> RoundTraces | None:
        """Traces of the canaries in the rounds so far, which measure the noise; None before a canary took part.

        A round is measured by the canaries that take part for the first time, or, where others' updates are known, by
        all. Orthonormal canaries measure where others' updates are known: their directions are not uniform.
        """
        measured = self._lengths > 0.0
        if not measured.any():
            return None
        cosines, lengths = self._cosines[measured], self._lengths[measured]
        return RoundTraces(cosines, lengths, self.canaries.dim, bool(self._residual), self.rounds)

    @property
    def all_traces(self) -> RoundTraces | None:
        """Traces of all canaries in the rounds so far; None where ``traces`` are these, or directions not uniform.

        Canaries that come back are among them, so that more rounds are measured. Others' updates may depend on those.
        """
        cosines, lengths = self._whole
        measured = lengths > 0.0
        if self._residual or not measured.any() or np.array_equal(lengths, self._lengths):
            return None
        return RoundTraces(cosines[measured], lengths[measured], self.canaries.dim, False, self.rounds)

    def evidence(self, noise_multiplier: float) -> Evidence:
        """Return the evidence against a claimed noise multiplier after each round so far.

        Parameters
        ----------
        noise_multiplier
            Claimed standard deviation of a round's noise, in clip norms, positive.

        Returns
        -------
        The evidence; it has no rounds before a canary took part.

        Raises
        ------
        ValueError
            If the multiplier is out of its range.

        Notes
        -----
        An honest training raises an alarm with a probability of at most the level if its clip norm and its canaries
        are fixed before each release. Without knowledge of others' updates it takes each canary's first round alone, in
        the space orthogonal to the sum of the canaries that come back.
        """
        sigma = rules.NOISE_MULTIPLIER.number("noise_multiplier", noise_multiplier)
        traces = self.traces
        if traces is None:
            return Evidence(np.arange(0), np.zeros(0))
        noise, sums, values = self._evidence or (sigma, np.zeros(1), np.zeros(0))
        if noise != sigma:
            sums, values = np.zeros(1), np.zeros(0)
        # Whoever asks after each round has the rounds before already.
        if len(values) < len(traces.cosines):
            later = replace(traces, cosines=traces.cosines[len(values) :], lengths=traces.lengths[len(values) :])
            ratios = later.log_ratios(sigma)
            ratios[0] += sums
            added = np.cumsum(ratios, axis=0)
            values = np.append(values, log_mean_ratio(added))
            self._evidence = sigma, added[-1], values
        return Evidence(np.flatnonzero(self._lengths > 0.0), values)

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
            θ_T as printed, or θ_T − θ₀, since the attacker may well know the initial model; shape (dim,). Or a block of
            vectors, shape (n, dim), for which each canary is made once; a warning is of the last. Floating-point
            numbers of any library.

        Returns
        -------
        Cosines of observed and of unobserved canaries, shape (k,) each, or (n, k) of a block.

        Raises
        ------
        ValueError
            If the vector is zero, not finite, or of another shape or type.
        """
        array = float_vector("final vector", vector)
        if self._sharded is None:
            _check_finite(array, "the model diverged: its final vector")
        if self._sharded is None and not array.any(axis=-1).all():
            raise ValueError(
                "zero update: the final vector has no direction, nothing was learnt and there was no noise"
            )
        observed, unobserved = self._pair(self._held.cosines(array))
        self._final = float(np.atleast_2d(observed)[-1].sum())
        return observed, unobserved

    def warnings(self) -> tuple[str, ...]:
        """Say in a sentence each what looks wrong: rounds without a delta, and negated signs.

        Whoever hands over gradients, or θ₀ − θ_T, gets negated cosines, and scores that look as if nobody took part.
        The comment at ``FALSE_ALARM`` says how this is found, at which level and with what power.
        """
        sentences = []
        if self.skipped_rounds:
            sentences.append(f"{self.skipped_rounds} of {self.rounds} rounds had a zero delta and were not scored")
        if is_pointing_away(self._product, self._counts(), self.canaries.dim):
            sentences.append("the rounds' deltas point away from their canaries: they look like gradients, not updates")
        if self._final is not None and is_pointing_away(self._final, self._included.astype(float), self.canaries.dim):
            sentences.append("the final vector points away from the observed canaries: its sign looks wrong")
        return tuple(sentences)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to two files, the larger one of a little more than the deltas that wait and the table.

        A crash, even of the machine, leaves the old state or the new one, whole.

        Parameters
        ----------
        path
            File to write or replace. The scores stand beside it, under its name with ``.canaryproof-`` and the number
            of the round. Both have the seed, and only the user may read them.

        Raises
        ------
        OSError
            If they cannot be written.
        """
        target = checked_path("path", path)
        current = _scores_file(target, self.rounds)
        self._scores.save(current)
        checkpoint.write(target, self._description(), self._state())
        # From here on the new state counts.
        for old in target.parent.iterdir():
            name, _, rounds = old.name.rpartition(_SCORES)
            if name == target.name and rounds.isdigit() and old != current:
                # Another process may have written the same state.
                old.unlink(missing_ok=True)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Take over the state that ``save`` wrote; going on from it gives the same bits.

        Parameters
        ----------
        path
            File to read. Nothing in it is unpickled.

        Raises
        ------
        OSError
            If the file cannot be opened.
        InputError
            If the one beside it is missing, or one is damaged or of other canaries: the file, the field and the rule
            are named.
        """
        target = checked_path("path", path)
        state = checkpoint.read(target, self._description(), self._state())
        rounds, zero = int(state["rounds"]), state["zero"]
        beside = _scores_file(target, rounds)
        try:
            scores = RoundScores.load(beside, self.canaries)
        except FileNotFoundError as error:
            raise InputError(f"{beside}: must be there, as {target} is one of two files of a state") from error
        if scores.canaries != self.canaries or scores.rounds + int(zero.sum()) != rounds:
            raise InputError(f"{beside}: its canaries and rounds must be those of {target}")
        if scores.keep_table != self._scores.keep_table:
            raise InputError(f"{beside}: must have a table if keep_table is True, else none")
        if int(state["residual"]) not in _RESIDUALS:
            raise InputError(f"{target}: residual: must be one of {', '.join(map(str, _RESIDUALS))}")
        self.rounds, self._zero, self._product, self._scores = rounds, zero, float(state["product"]), scores
        # Likelihood ratios go on with the noise that they were begun with, and so does the record.
        self.noise_multiplier = self.noise_multiplier if scores.sampling is None else scores.sampling.noise_multiplier
        self._sum = self._final = self._evidence = None
        self._cosines, self._lengths, self._whole = state["cosines"], state["lengths"], state["whole"]
        self._rest, self._likeness = state["rest"], state["likeness"]
        self._likeness[2] = self._likeness[2] or math.inf
        self._residual = _RESIDUALS[int(state["residual"])]
        self._seen = self._counts() > 0

    def _description(self) -> dict[str, int | str]:
        rounds = (self.participants(t) for t in range(self.participation.rounds))
        made = self.canaries
        groups = [np.asarray(made.sizes), np.asarray(made.norms)] if isinstance(made, GroupedCanaries) else []
        participation = checkpoint.digest(self._included, *rounds, *groups)
        return {"seed": made.seed, "dim": made.dim, "layers": layers_of(made), "participation": participation}

    def _state(self) -> dict[str, NDArray[np.generic]]:
        residual = -1 if self._residual is None else int(self._residual)
        numbers = {"rounds": self.rounds, "product": self._product, "residual": residual}
        state = {name: np.asarray(value) for name, value in numbers.items()}
        state |= {"zero": self._zero, "cosines": self._cosines, "lengths": self._lengths, "whole": self._whole}
        # A file holds finite numbers, and no kurtosis is 0.
        likeness = np.where(np.isfinite(self._likeness), self._likeness, 0.0)
        return state | {"rest": self._rest, "likeness": likeness}

    def _carry_over(self) -> float:
        """Return in standard errors, at most, how far canaries' cosines are off after their first round."""
        if self._scores.rounds == 0:
            return 0.0
        carried, spreads = (values[self._included] for values in self._scores.carryover)
        error = math.sqrt(2.0) * float(np.linalg.norm(spreads))
        return float(carried.sum()) / error if error else 0.0

    def _counts(self) -> Array:
        """Return in how many of the rounds so far each canary took part."""
        counts = np.zeros(self.canaries.count)
        for t in range(self.rounds):
            counts[checked_canaries(self.participation, t)] += 1.0
        return counts

    def _members_of_turn(self, given: int | None) -> Ints:
        """Return the canaries of the next round, which must be the given one and one of the planned."""
        if given is not None and given != self.rounds:
            raise ValueError(f"round: it is the turn of round {self.rounds}, not of {given!r}")
        return self.participants(self.rounds)

    def _measure(
        self, members: Ints, total: Array, delta: NDArray[np.floating], along: float, *, residual: bool
    ) -> None:
        """Keep the cosine between a round's delta and the sum of the canaries that measure its noise, and of all."""
        if not len(members) or not (residual or isinstance(self.canaries, Canaries)):
            return
        square = self._inner(total, total)
        self._whole[:, self.rounds] = min(max(along / math.sqrt(square), -1.0), 1.0), math.sqrt(square)
        measuring = members if residual else members[~self._seen[members]]
        if not len(measuring):
            return
        whole, part = len(measuring) == len(members), 1.0
        if not whole:
            measured = self._held.sum(measuring)
            square, along = self._inner(measured, measured), self._along(measured, delta)
            # Canaries that come back are known: what is measured is the part of the delta orthogonal to their sum.
            back = total - measured
            back /= math.sqrt(self._inner(back, back))
            own, given = self._inner(measured, back), self._along(back, delta)
            square, along, part = square - own**2, along - own * given, 1.0 - given**2
        length = math.sqrt(square)
        cosine = min(max(along / (length * math.sqrt(part)), -1.0), 1.0) if part > 0.0 else 0.0
        self._cosines[self.rounds] = cosine if whole else _in_one_dimension_more(cosine, self.canaries.dim)
        self._lengths[self.rounds] = length

    def _compare(self, total: Array, delta: NDArray[np.floating], along: float) -> None:
        """Compare a delta without its canaries with the one before, and its coordinates with normal ones."""
        # Where each process holds a slice, its largest coordinate is not the vector's.
        rest = delta / (np.abs(delta).max().astype(np.float64) if self._sharded is None else 1.0)
        rest /= math.sqrt(self._inner(rest, rest))
        square = self._inner(total, total)
        if square:
            rest -= (along / square) * total
        length = math.sqrt(self._inner(rest, rest))
        if length < _NOTHING:
            # Rounding is left of canaries alone.
            return
        rest /= length
        if math.isfinite(self._likeness[2]):
            self._likeness[:2] += self._inner(rest, self._rest.astype(np.float64)), 1.0
        squares = rest * rest
        self._likeness[2] = min(self._likeness[2], self.canaries.dim * self._inner(squares, squares))
        self._rest = rest.astype(np.float32)

    @property
    def _correlation(self) -> float | None:
        """Mean cosine of successive deltas without their canaries."""
        return float(self._likeness[0] / self._likeness[1]) if self._likeness[1] else None

    @property
    def _kurtosis(self) -> float | None:
        """Least kurtosis of a delta's coordinates without its canaries."""
        return float(self._likeness[2]) if math.isfinite(self._likeness[2]) else None

    def _inner(self, first: Array, second: Array) -> float:
        """Return an inner product over the coordinates of all processes."""
        # numpy's own sums, as below.
        return float((first * second).sum()) if self._sharded is None else self._sharded.inner(first, second)

    def _along(self, total: Array, delta: NDArray[np.floating]) -> float:
        """Return ⟨total, δ⟩ for the direction δ of a round's delta, over the coordinates of all processes."""
        if self._sharded is None:
            return product(total, delta)
        return self._sharded.inner(total, delta) / math.sqrt(self._sharded.inner(delta, delta))

    def _lengths_of_sums(self, gram: ArrayLike) -> Array:
        """Return the length of the sum of the directions of each canary's rounds, ∞ for none."""
        products = np.asarray(gram, np.float64)
        if products.shape != (self.rounds, self.rounds):
            raise ValueError(f"gram: must have shape ({self.rounds}, {self.rounds}), not {products.shape}")
        squares = np.diagonal(products)
        if not (np.isfinite(products).all() and (squares >= 0.0).all()):
            raise ValueError("gram: must be finite, and not negative on its diagonal")
        if np.count_nonzero(squares) != self._scores.rounds:
            raise ValueError("gram: must be positive on its diagonal where a round's delta is not zero")
        norms = np.sqrt(np.where(squares > 0.0, squares, np.inf))
        cosines = products / norms / norms[:, np.newaxis]
        if not (np.allclose(cosines, cosines.T, atol=1e-6) and (np.abs(cosines) <= 1.0 + 1e-6).all()):
            raise ValueError("gram: must be symmetric, and hold inner products of vectors with each other")
        members = np.zeros((self.rounds, self.canaries.count))
        for t in np.flatnonzero(squares).tolist():
            members[t, self.participants(t)] = members[t, self._unobserved_members(t)] = 1.0
        lengths = np.where(members.any(axis=0), np.einsum("tj,tj->j", cosines @ members, members), np.inf)
        if (lengths <= 1e-6).any():
            raise ValueError(f"gram: the directions of the rounds of canary {lengths.argmin()} cancel each other")
        return np.sqrt(lengths)

    def _unobserved_members(self, number: int) -> Ints:
        """Return the unobserved canaries that would have taken part in a round, if the participation says so."""
        answer = getattr(self.participation, "unobserved_members", None)
        if answer is None:
            return np.zeros(0, np.int64)
        would_be = checked_members(f"participation: unobserved_members({number})", answer(number), self.canaries.count)
        if self._included[would_be].any():
            raise ValueError(f"participation: unobserved_members({number}): an included canary is among them")
        return would_be

    def _sum_of(self, number: int) -> NDArray[np.float64]:
        """Σ c_j over the participants of a round, kept from ``total`` to ``add``."""
        if self._sum is None or self._sum[0] != number:
            self._sum = number, self._held.sum(self.participants(number))
        return self._sum[1]

    def _canary_sum(self, number: int) -> Array:
        """Return the sum of the observed canaries in the scored part of a round."""
        return self._sum_of(number)

    def _pair(self, scores: NDArray[np.float64]) -> Pair:
        return scores[..., self._included], scores[..., ~self._included]


def _in_one_dimension_more(cosine: float, dim: int) -> float:
    """Return the cosine in R^d with the t-statistic of one in R^(d − 1); their laws differ by O(1/d²)."""
    t = cosine * math.sqrt((dim - 2.0) / max(1.0 - cosine**2, 1e-300))
    return t / math.sqrt(t**2 + dim - 1.0)


# Share of a delta's length below which what is left without its canaries is not compared.
_NOTHING = 1e-6
# Whether the residual of each round is known, as a state's number says it; None before the first round.
_RESIDUALS = {0: False, 1: True, -1: None}
# A file of scores is named after its state, this part and the round. Files of such names are removed, so no other file
# may have one.
_SCORES = ".canaryproof-"


def _scores_file(path: Path, rounds: int) -> Path:
    return path.with_name(f"{path.name}{_SCORES}{rounds}")


def float_vector(name: str, values: ArrayLike) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return floating-point numbers of any library; a ``ValueError`` begins with their name."""
    with refusals_of(name):
        return floating(values)


def _check_finite(vector: NDArray[np.floating], name: str) -> None:
    if not np.isfinite(vector).all():
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


def is_pointing_away(evidence: float, counts: NDArray[np.float64], dim: int) -> bool:
    """Tell by A whether the vectors point away from their canaries, who take part in ``counts`` rounds each."""
    return math.sqrt(dim) * evidence < -LIMIT * float(np.linalg.norm(counts))
