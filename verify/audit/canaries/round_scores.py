"""Scores of canaries over rounds, kept while somebody else's training loop runs.

By Algorithm 3 of Andrew et al. (arXiv 2302.03098), a canary's score is its largest cosine with any round's model delta:
lines 10 to 12 and 14 to 16. An attacker who knows a canary's rounds adds up the cosines of these rounds instead. An
attacker who knows the rate at which rounds were drawn adds up log likelihood ratios over all rounds. The loop hands
over each delta once; canaries are generated again for a block of rounds at a time, and never stored::

    scores = RoundScores(Canaries(seed, count, dim))   # before the loop
    scores.add(delta)                                  # in each round
    np.savez("rounds.npz", observed=scores.maxima[:k], unobserved=scores.maxima[k:])

Here the first k canaries take part. ``canaryproof audit rounds.npz --delta 1e-6`` takes such a file; its estimate
``fitted`` is line 19. A loop that saves its own state saves the scores with it, ``scores.save(path)``, and goes on from
``RoundScores.load(path)``.
"""

import math
import os
import zipfile
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arrays import floating
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import check_flag, check_type, checked_integer, checked_path, refusals_of
from canaryproof.kernels.slices import PartialProducts
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.canaries.grouped_canaries import GroupedCanaries
from canaryproof.verify.audit.canaries.participation import checked_members
from canaryproof.verify.audit.files.checkpoint import read_array, short_reason
from canaryproof.verify.audit.files.errors import InputError, RuleError
from canaryproof.verify.audit.files.reading import regular, require
from canaryproof.verify.audit.files.writing import replace_file

# Canaries of one release, and also those of several clip norms, whose training's record decides.
ReleaseCanaries = Canaries | OrthonormalCanaries
AnyCanaries = ReleaseCanaries | GroupedCanaries

_FORMAT = 4
# Stands for canaries of groups where other files have a number of layers.
_GROUPED = 2**32
_NUMBERS = ("format", "seed", "count", "dim", "layers", "block", "rounds")
_SETTINGS = ("rate", "noise_multiplier")
_SCORES = ("maxima", "sums", "counts", "likelihoods", "carried", "spreads")
_FIELDS = (*_NUMBERS, *_SETTINGS, *_SCORES, "members", "buffer")
# A field more where the table was asked for.
_TABLE = "table"
_LARGEST_BLOCK = 2**16
_MEMORY = rules.NumberRange("be a number of bytes", 0.0, math.inf)
# A canary takes part in a round, or would have, being unobserved; 0 stands for neither.
_TAKES_PART, _WOULD_HAVE = 1, 2
# Rounds that are scored at once unless another number is asked for.
BLOCK = 32


def check_canaries(canaries: object, *, sharded: bool = False) -> None:
    """Refuse what are no canaries of this package."""
    from canaryproof.verify.audit.canaries.sharded_canaries import ShardedCanaries

    kinds = (Canaries, OrthonormalCanaries, GroupedCanaries) + (ShardedCanaries,) * sharded
    check_type("canaries", canaries, kinds, "canaries, such as canaryproof.Canaries")


def layers_of(canaries: AnyCanaries) -> int:
    """Return the layers of orthonormal canaries, 0 of independent ones, and a number for groups that no layers have."""
    if isinstance(canaries, GroupedCanaries):
        return _GROUPED
    return canaries.layers if isinstance(canaries, OrthonormalCanaries) else 0


def directions_of(canaries: ReleaseCanaries) -> str:
    """Return ``independent`` or ``orthonormal``, as the command line has them."""
    return "orthonormal" if layers_of(canaries) else "independent"


@dataclass(frozen=True)
class SampledTrace:
    """The law of a canary's trace for an attacker who does not know its rounds, but how they were drawn.

    Attributes
    ----------
    rate
        Probability q in (0, 1] to take part in a round, independently of other rounds.
    noise_multiplier
        Claimed noise multiplier σ, positive: a round with the canary moves √d times its cosine by 1/σ.

    Raises
    ------
    ValueError
        If a number lies outside its range.
    """

    rate: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        if not 0.0 < self.rate <= 1.0:
            raise ValueError(f"rate must lie in (0, 1], not {self.rate!r}")
        if not 0.0 < self.noise_multiplier < math.inf:
            raise ValueError(f"noise_multiplier must be positive and finite, not {self.noise_multiplier!r}")

    def log_ratios(self, cosines: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
        """Return the log likelihood ratio of taking part at the rate, of each round and canary."""
        trace = 1.0 / self.noise_multiplier
        with_canary = trace * (math.sqrt(dim) * cosines - 0.5 * trace)
        if self.rate == 1.0:
            return with_canary
        return np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + with_canary)


@set_module("canaryproof")
class RoundScores:
    """Running scores over rounds of the cosines between canaries and model deltas.

    Deltas wait in a buffer until a block of rounds is full, since making the canaries costs more than the products. The
    block decides speed and memory; results differ by what ``Canaries.block_cosines`` rounds, of noise some 2e-6
    of 1/√dim. Memory is 4·block·dim + 9·block·count + 96·count bytes; ``memory`` sets the block to what fits, without a
    table, which takes 4·rounds·count bytes.

    Parameters
    ----------
    canaries
        All canaries to score, observed and unobserved; ``Canaries`` or ``OrthonormalCanaries``.
    block
        Rounds to score at once, 1 ≤ block ≤ 2¹⁶. A larger block saves time and takes memory: on the published
        performance page a round of 1,000 canaries of dimension 262,144 takes 8 ms in a block of 32, and 5 ms in one
        of 64.
    sampling
        How a canary's rounds are drawn, for ``likelihoods``; None if they are not asked for.
    memory
        Bytes that the deltas that wait and the scores may take: the block is as large as fits, and at most ``block``.
    keep_table
        Whether every cosine is kept, for ``table``.

    Attributes
    ----------
    canaries, block, sampling, keep_table
        As given; the block as it fits.
    rounds
        Number of rounds added so far.

    Raises
    ------
    ValueError
        If block is not an integer in its range, or a single delta does not fit in the memory.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> canaries = cp.Canaries(seed=7, count=4, dim=1000)
    >>> scores = cp.RoundScores(canaries)
    >>> for t in range(3):
    ...     scores.add(canaries.sum(np.array([t])), round=t)
    >>> np.round(scores.maxima, 1)
    array([1., 1., 1., 0.])
    """

    def __init__(
        self,
        canaries: AnyCanaries,
        block: int = BLOCK,
        sampling: SampledTrace | None = None,
        memory: float | None = None,
        *,
        keep_table: bool = False,
    ) -> None:
        check_canaries(canaries)
        if sampling is not None:
            check_type("sampling", sampling, SampledTrace, "a SampledTrace")
        self.block = checked_integer("block", block, 1, _LARGEST_BLOCK)
        if memory is not None:
            memory = _MEMORY.number("memory", memory)
            each, always = 4 * canaries.dim + 9 * canaries.count, 16 * len(_SCORES) * canaries.count
            if not memory >= always + each:
                raise ValueError(f"memory must be at least {always + each} bytes, for one delta, not {memory:g}")
            self.block = int(min(self.block, (memory - always) // each))
        self.canaries = canaries
        self.sampling = sampling
        check_flag("keep_table", keep_table)
        self.keep_table = keep_table
        self.rounds = 0
        # No cosine is less than −1, so that this is the maximum over no round.
        self._scores = {name: np.full(canaries.count, -1.0 if name == "maxima" else 0.0) for name in _SCORES}
        # Rows of the table, a block each.
        self._blocks: list[NDArray[np.float32]] = []
        self._members = np.zeros((self.block, canaries.count), np.int8)
        self._buffer = np.empty((self.block, canaries.dim), np.float32)

    def add(
        self,
        delta: "ArrayLike | PartialProducts",
        round: int | None = None,  # noqa: A002
        members: ArrayLike | None = None,
        unobserved: ArrayLike | None = None,
    ) -> None:
        """Take the model delta of the next round.

        Parameters
        ----------
        delta
            What the round added to the model, in any unit: floating-point numbers of any library, shape (dim,), the
            coordinates in the order in which the canaries were inserted. It is kept in float32. Where processes hold
            slices of it, the sum of their ``canaries.partial_products``, of all canaries; it is scored at once, with a
            block of 1.
        round
            Number of the round, from 0 on, to make sure that none is missed or counted twice.
        members, unobserved
            Canaries whose round it is, for ``known_rounds``: indices of those that take part, and of unobserved ones
            that would have. None by default.

        Raises
        ------
        ValueError
            If the delta is zero, not finite or of another shape or type, it is not this round's turn, or a member is
            no canary. The scores are then what they were.
        """
        if round is not None and round != self.rounds:
            raise ValueError(f"round: it is the turn of round {self.rounds}, not of {round!r}")
        rounds_of = np.zeros(self.canaries.count, np.int8)
        for name, given, value in (("members", members, _TAKES_PART), ("unobserved", unobserved, _WOULD_HAVE)):
            if given is not None:
                rounds_of[checked_members(name, given, self.canaries.count)] = value
        if isinstance(delta, PartialProducts):
            if self.block != 1 or len(delta.products) != self.canaries.count:
                raise ValueError("delta: products of slices need a block of 1, and must be of all canaries")
            self._members[0] = rounds_of
            self._take(delta.cosines()[np.newaxis])
            self.rounds += 1
            return
        with refusals_of(f"delta of round {self.rounds}"):
            vector = floating(delta)
        if vector.shape != (self.canaries.dim,):
            raise ValueError(
                f"delta of round {self.rounds} must be of shape ({self.canaries.dim},), not {vector.shape}"
            )
        largest = np.maximum(vector.max(), -vector.min())
        if not 0.0 < largest < np.inf:
            raise ValueError(f"delta of round {self.rounds} must be finite and not zero")
        # A power of two brings the largest coordinate to [1/2, 1], or less if it is subnormal: no cosine changes,
        # and no float64 gets out of float32's range.
        scale = np.ldexp(1.0, min(1000, -int(np.frexp(largest)[1])))
        row = self.rounds % self.block
        np.multiply(vector, scale, out=self._buffer[row], dtype=np.float64, casting="same_kind")
        self._members[row] = rounds_of
        if row == self.block - 1:
            self._take(self.canaries.block_cosines(self._buffer))
        # Last, so that a round whose scoring was interrupted can be added again.
        self.rounds += 1

    @property
    def maxima(self) -> NDArray[np.float64]:
        """Largest cosine of each canary over the rounds so far, shape (count,).

        Raises
        ------
        ValueError
            If no round was added.
        """
        return self._current("maxima")["maxima"]

    @property
    def known_rounds(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Sum of each canary's cosines over its n rounds, divided by √n, and n, shape (count,) each.

        With one round this is the cosine with that round's delta. A canary without a round has the score 0.

        Raises
        ------
        ValueError
            If no round was added.
        """
        scores = self._current("known_rounds")
        counts = scores["counts"].astype(np.int64)
        return scores["sums"] / np.sqrt(np.maximum(counts, 1)), counts

    @property
    def likelihoods(self) -> NDArray[np.float64]:
        """Log likelihood ratio of each canary over the rounds so far, for the law ``sampling``, shape (count,).

        Raises
        ------
        ValueError
            If no round was added, or no law was given.
        """
        if self.sampling is None:
            raise ValueError("likelihoods: need sampling, the law by which rounds are drawn")
        return self._current("likelihoods")["likelihoods"]

    @property
    def carryover(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Traces of canaries that are left after their first round, and their spreads, shape (count,) each.

        The first adds up a canary's cosines with later deltas in which it takes no part. Where it takes part again, its
        cosine counts against those of canaries that do so for the first time. Its mean is 0 unless later deltas depend
        on the canary. The second is the same about the mean of a round's canaries, for the error: see "Later rounds" in
        ``proofs_check/noise_multiplier.md``.

        Raises
        ------
        ValueError
            If no round was added.
        """
        scores = self._current("carried")
        return scores["carried"], scores["spreads"]

    @property
    def table(self) -> NDArray[np.float32]:
        """Cosine of each canary with the delta of each round so far, shape (rounds, count).

        Raises
        ------
        ValueError
            If it was not asked for by ``keep_table``.
        """
        if not self.keep_table:
            raise ValueError("table: was not kept; ask for it by keep_table=True before the first round")
        waiting = self._buffer[: self.rounds % self.block]
        last = [self.canaries.block_cosines(waiting).astype(np.float32)] if len(waiting) else []
        return np.concatenate([np.zeros((0, self.canaries.count), np.float32), *self._blocks, *last])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, of at most a little more than the buffer's size, and the table's if it is kept.

        A crash, even of the machine, leaves the old file or the new one, whole.

        Parameters
        ----------
        path
            File to write or replace. It has the seed, and only the user may read it.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        made = self.canaries
        numbers = (_FORMAT, made.seed, made.count, made.dim, layers_of(made), self.block, self.rounds)
        state: dict[str, Any] = {name: np.uint64(x) for name, x in zip(_NUMBERS, numbers, strict=True)}
        state |= {name: np.float64(getattr(self.sampling, name, 0.0)) for name in _SETTINGS} | self._scores
        waiting = self.rounds % self.block
        if self.keep_table:
            state[_TABLE] = self.table[: self.rounds - waiting]
        with replace_file(checked_path("path", path), private=True) as file:
            np.savez(file, **state, members=self._members[:waiting], buffer=self._buffer[:waiting])

    @classmethod
    def load(cls, path: str | os.PathLike[str], canaries: AnyCanaries | None = None) -> Self:
        """Read the state that ``save`` wrote; going on from it gives the same bits as before.

        Parameters
        ----------
        path
            File to read. Nothing in it is unpickled.
        canaries
            Canaries of the file, needed where they are ``GroupedCanaries``.

        Returns
        -------
        The scores as they were.

        Raises
        ------
        OSError
            If the file cannot be opened.
        InputError
            If it is damaged or something else: the file, the field and the rule are named.
        """
        with regular(checked_path("path", path)) as file:
            try:
                with zipfile.ZipFile(file) as archive:
                    return cls._read(archive, canaries)
            except MemoryError as error:
                raise InputError(f"{path}: does not fit in memory") from error
            # zipfile and numpy's header parser have no closed list of what they raise over a damaged file.
            except Exception as error:
                reason = (
                    error if isinstance(error, RuleError) else f"is not a readable .npz file ({short_reason(error)})"
                )
                raise InputError(f"{path}: {reason}") from error

    @classmethod
    def _read(cls, archive: zipfile.ZipFile, canaries: AnyCanaries | None) -> Self:
        names = {name.removesuffix(".npy") for name in archive.namelist()}
        require(names - {_TABLE} == set(_FIELDS), f"its fields must be {', '.join(_FIELDS)}")
        numbers = {name: int(read_array(archive, name, np.uint64, ())) for name in _NUMBERS}
        require(numbers["format"] == _FORMAT, f"format: must be {_FORMAT}, not {numbers['format']}")
        rate, multiplier = (float(read_array(archive, name, np.float64, ())) for name in _SETTINGS)
        stored = {name: read_array(archive, name, np.float64, (numbers["count"],)) for name in _SCORES}
        require(bool((np.abs(stored["maxima"]) <= 1.0).all()), "maxima: a cosine must lie in [-1, 1]")
        counts = stored["counts"]
        require(
            bool(((counts >= 0.0) & (counts <= numbers["rounds"]) & (counts == np.floor(counts))).all()),
            "counts: must be numbers of rounds",
        )
        require(bool((np.abs(stored["sums"]) <= counts).all()), "sums: must be sums of so many cosines")
        for name in ("likelihoods", "carried", "spreads"):
            require(bool(np.isfinite(stored[name]).all()), f"{name}: must be finite")
        try:
            sampling = SampledTrace(rate, multiplier) if rate or multiplier else None
            made = numbers["seed"], numbers["count"], numbers["dim"]
            layers = numbers["layers"]
            if layers == _GROUPED:
                require(isinstance(canaries, GroupedCanaries), "canaries: must be given, since they have groups")
            else:
                canaries = OrthonormalCanaries(*made, layers) if layers else Canaries(*made)
            scores = cls(canaries, numbers["block"], sampling, keep_table=_TABLE in names)  # type: ignore[arg-type]
            require((scores.canaries.seed, scores.canaries.count, scores.canaries.dim) == made, "canaries: are others")
        except ValueError as error:
            raise RuleError(str(error)) from error
        scores.rounds, scores._scores = numbers["rounds"], stored
        waiting = scores._buffer[: scores.rounds % scores.block]
        if scores.keep_table:
            shape = scores.rounds - len(waiting), scores.canaries.count
            scores._blocks = [read_array(archive, _TABLE, np.float32, shape)]
            require(bool((np.abs(scores._blocks[0]) <= 1.0).all()), "table: a cosine must lie in [-1, 1]")
        members = scores._members[: len(waiting)]
        read_array(archive, "members", np.int8, members.shape, members)
        require(bool(np.isin(members, (0, _TAKES_PART, _WOULD_HAVE)).all()), "members: must be 0, 1 or 2")
        read_array(archive, "buffer", np.float32, waiting.shape, waiting)
        largest = np.maximum(waiting.max(axis=1), -waiting.min(axis=1))
        require(
            bool(((largest > 0.0) & (largest <= 1.0)).all()), "buffer: a delta must be scaled to a maximum in (0, 1]"
        )
        return scores

    def _current(self, name: str) -> dict[str, NDArray[np.float64]]:
        if self.rounds == 0:
            raise ValueError(f"{name}: no round was added")
        # The buffer stays as it is: blocks end at the same rounds, whenever somebody looks or saves.
        return self._scores_with(self.rounds % self.block)

    def _scores_with(self, waiting: int) -> dict[str, NDArray[np.float64]]:
        """Return the scores with those of the first deltas that wait."""
        if waiting == 0:
            return {name: values.copy() for name, values in self._scores.items()}
        return self._merge(self.canaries.block_cosines(self._buffer[:waiting]), self._members[:waiting])

    def _take(self, cosines: NDArray[np.float64]) -> None:
        """Add the cosines of a whole block to the scores, and to the table if it is kept."""
        self._scores = self._merge(cosines, self._members)
        if self.keep_table:
            self._blocks.append(cosines.astype(np.float32))

    def _merge(self, cosines: NDArray[np.float64], members: NDArray[np.int8]) -> dict[str, NDArray[np.float64]]:
        """Return the scores with those of more rounds."""
        scores = {name: values.copy() for name, values in self._scores.items()}
        np.maximum(scores["maxima"], cosines.max(axis=0), out=scores["maxima"])
        seen = scores["counts"] > 0.0
        for row, rounds_of in zip(cosines, members, strict=True):
            _carry(scores, row, rounds_of, seen)
            seen |= rounds_of > 0
        scores["sums"] += (cosines * (members > 0)).sum(axis=0)
        scores["counts"] += (members > 0).sum(axis=0)
        if self.sampling is not None:
            scores["likelihoods"] += self.sampling.log_ratios(cosines, self.canaries.dim).sum(axis=0)
        return scores


def _carry(
    scores: dict[str, NDArray[np.float64]],
    cosines: NDArray[np.float64],
    rounds_of: NDArray[np.int8],
    seen: NDArray[np.bool],
) -> None:
    """Add a round's evidence on canaries that took part in an earlier round."""
    if not seen.any():
        return
    takes = rounds_of == _TAKES_PART
    first, again, absent = takes & ~seen, takes & seen, seen & (rounds_of == 0)
    # The difference of both groups' means, weighted by the number of canaries that it is worth.
    total = max(2, int(takes.sum()))
    weights = (int(first.sum()) * again - int(again.sum()) * first) / total + absent
    around = np.where(takes, math.sqrt(total / (total - 1)) * (cosines - cosines[takes].sum() / total), cosines)
    scores["carried"] += weights * cosines
    scores["spreads"] += weights * around
