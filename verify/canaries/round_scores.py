"""The scores of Algorithm 3 of Andrew et al. (arXiv 2302.03098), kept while somebody else's training loop runs.

A canary's score is the largest cosine over all rounds between it and the round's model delta: lines 10 to 12 and 14 to
16. The loop hands over each delta once; canaries are made anew for a block of rounds at a time, and never stored::

    scores = RoundScores(Canaries(seed, count, dim))   # before the loop
    scores.add(delta)                                  # in each round
    np.savez("rounds.npz", observed=scores.maxima[:k], unobserved=scores.maxima[k:])

Here the first k canaries take part. ``canaryproof audit rounds.npz --delta 1e-6`` takes such a file; its estimate
``fitted`` is line 19. A loop that saves its own state saves the scores with it, ``scores.save(path)``, and goes on from
``RoundScores.load(path)``.
"""

import operator
import os
import zipfile
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.files.errors import RuleError
from canaryproof.verify.files.reading import regular, require
from canaryproof.verify.files.writing import replaced

AnyCanaries = Canaries | OrthonormalCanaries

_FORMAT = 2
_NUMBERS = ("format", "seed", "count", "dim", "layers", "block", "rounds")
_FIELDS = (*_NUMBERS, "maxima", "buffer")
_LARGEST_BLOCK = 2**16
_BYTES_AT_ONCE = 2**20
# Rounds that are scored at once unless another number is asked for.
BLOCK = 32


def layers_of(canaries: AnyCanaries) -> int:
    """Return the layers of orthonormal canaries, 0 of others."""
    return canaries.layers if isinstance(canaries, OrthonormalCanaries) else 0


class RoundScores:
    """Running maxima over rounds of the cosines between canaries and model deltas.

    Deltas wait in a buffer until a block of rounds is full, since making the canaries costs more than the products.
    The block decides speed and memory; results differ by what ``Canaries.block_cosines`` rounds, 2e-6 of 1/√dim. Memory
    is 4·block·dim + 8·block·count bytes.

    Parameters
    ----------
    canaries
        All canaries to score, observed and unobserved; ``Canaries`` or ``OrthonormalCanaries``.
    block
        Rounds to score at once, 1 ≤ block ≤ 2¹⁶. At 32 most is saved of what any block can save, and few deltas wait:
        on the published performance page a round of 1,000 canaries of dimension 262,144 takes 9 ms, of some 30 ms
        alone and 5.5 ms in a block of 64.

    Attributes
    ----------
    canaries, block
        As given.
    rounds
        Number of rounds added so far.

    Raises
    ------
    ValueError
        If block is not an integer in its range.
    """

    def __init__(self, canaries: AnyCanaries, block: int = BLOCK) -> None:
        try:
            self.block = operator.index(block)
        except TypeError:
            self.block = 0
        if not 1 <= self.block <= _LARGEST_BLOCK:
            raise ValueError(f"block must be an integer from 1 to {_LARGEST_BLOCK}, not {block!r}")
        self.canaries = canaries
        self.rounds = 0
        # No cosine is less, so that this is the maximum over no round.
        self._maxima = np.full(canaries.count, -1.0)
        self._buffer = np.empty((self.block, canaries.dim), np.float32)

    def add(self, delta: ArrayLike, round: int | None = None) -> None:  # noqa: A002
        """Take the model delta of the next round.

        Parameters
        ----------
        delta
            What the round added to the model, in any unit: float32 or float64, shape (dim,), the coordinates in the
            order in which the canaries were inserted. It is kept in float32.
        round
            Number of the round, from 0 on, to make sure that none is missed or counted twice.

        Raises
        ------
        ValueError
            If the delta is zero, not finite or of another shape or type, or it is not this round's turn. The scores
            are then what they were.
        """
        if round is not None and round != self.rounds:
            raise ValueError(f"round: it is the turn of round {self.rounds}, not of {round!r}")
        vector = np.asarray(delta)
        if vector.dtype not in (np.float32, np.float64) or vector.shape != (self.canaries.dim,):
            raise ValueError(
                f"delta of round {self.rounds} must be float32 or float64 of shape ({self.canaries.dim},), not "
                f"{vector.dtype} of shape {vector.shape}"
            )
        largest = np.maximum(vector.max(), -vector.min())
        if not 0.0 < largest < np.inf:
            raise ValueError(f"delta of round {self.rounds} must be finite and not zero")
        # A power of two brings the largest coordinate to [1/2, 1], or less if it is subnormal: no cosine changes,
        # and no float64 gets out of float32's range.
        scale = np.ldexp(1.0, min(1000, -int(np.frexp(largest)[1])))
        row = self.rounds % self.block
        np.multiply(vector, scale, out=self._buffer[row], dtype=np.float64, casting="same_kind")
        if row == self.block - 1:
            self._maxima = self._maxima_with(self._buffer)
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
        if self.rounds == 0:
            raise ValueError("maxima: no round was added")
        # The buffer stays as it is: blocks end at the same rounds, whenever somebody looks or saves.
        return self._maxima_with(self._buffer[: self.rounds % self.block])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, of at most a little more than the buffer's size.

        A crash, even of the machine, leaves the old file or the new one, whole.

        Parameters
        ----------
        path
            File to write or replace.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        made = self.canaries
        numbers = (_FORMAT, made.seed, made.count, made.dim, layers_of(made), self.block, self.rounds)
        state: dict[str, Any] = {name: np.uint64(x) for name, x in zip(_NUMBERS, numbers, strict=True)}
        with replaced(Path(path)) as file:
            np.savez(file, **state, maxima=self._maxima, buffer=self._buffer[: self.rounds % self.block])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read the state that ``save`` wrote; going on from it gives the same bits as before.

        Parameters
        ----------
        path
            File to read. Nothing in it is unpickled.

        Returns
        -------
        The scores as they were.

        Raises
        ------
        OSError
            If the file cannot be opened.
        ValueError
            If it is damaged or something else: the file, the field and the rule are named.
        """
        with regular(Path(path)) as file:
            try:
                with zipfile.ZipFile(file) as archive:
                    return cls._read(archive)
            except MemoryError as error:
                raise ValueError(f"{path}: does not fit in memory") from error
            # zipfile and numpy's header parser have no closed list of what they raise over a damaged file.
            except Exception as error:
                reason = error if isinstance(error, RuleError) else f"is not a readable .npz file ({error})"
                raise ValueError(f"{path}: {reason}") from error

    @classmethod
    def _read(cls, archive: zipfile.ZipFile) -> Self:
        names = {name.removesuffix(".npy") for name in archive.namelist()}
        require(names == set(_FIELDS), f"its fields must be {', '.join(_FIELDS)}")
        numbers = {name: int(_read_field(archive, name, np.uint64, ())) for name in _NUMBERS}
        require(numbers["format"] == _FORMAT, f"format: must be {_FORMAT}, not {numbers['format']}")
        maxima = _read_field(archive, "maxima", np.float64, (numbers["count"],))
        require(bool((np.abs(maxima) <= 1.0).all()), "maxima: a cosine must lie in [-1, 1]")
        try:
            made = numbers["seed"], numbers["count"], numbers["dim"]
            layers = numbers["layers"]
            scores = cls(OrthonormalCanaries(*made, layers) if layers else Canaries(*made), numbers["block"])
        except ValueError as error:
            raise RuleError(str(error)) from error
        scores.rounds, scores._maxima = numbers["rounds"], maxima
        waiting = scores._buffer[: scores.rounds % scores.block]
        _read_field(archive, "buffer", np.float32, waiting.shape, waiting)
        largest = np.maximum(waiting.max(axis=1), -waiting.min(axis=1))
        require(
            bool(((largest > 0.0) & (largest <= 1.0)).all()), "buffer: a delta must be scaled to a maximum in (0, 1]"
        )
        return scores

    def _maxima_with(self, deltas: NDArray[np.float32]) -> NDArray[np.float64]:
        if len(deltas) == 0:
            return self._maxima.copy()
        maxima: NDArray[np.float64] = np.maximum(self._maxima, self.canaries.block_cosines(deltas).max(axis=0))
        return maxima


def _read_field(
    archive: zipfile.ZipFile, name: str, dtype: type[np.generic], shape: tuple[int, ...], out: Any = None
) -> NDArray[Any]:
    """Read an array of known type and shape, and allocate nothing before the file is known to hold as much."""
    member = archive.getinfo(f"{name}.npy")
    try:
        with archive.open(member) as file:
            version = np.lib.format.read_magic(file)
            require(version == (1, 0), f"{name}: must be an array of .npy format 1.0")
            header = np.lib.format.read_array_header_1_0(file)
            expected = shape, False, np.dtype(dtype)
            require(
                header == expected, f"{name}: must be {expected[2]} of shape {shape}, not {header[2]} of {header[0]}"
            )
            size = int(np.prod(shape, dtype=object)) * expected[2].itemsize
            require(member.file_size - file.tell() == size, f"{name}: must have {size} bytes")
            array: NDArray[Any] = np.empty(shape, dtype) if out is None else out
            raw, done = array.reshape(-1).view(np.uint8), 0
            # Reading to the end makes zipfile compare the checksum.
            while chunk := file.read(_BYTES_AT_ONCE):
                raw[done : done + len(chunk)] = np.frombuffer(chunk, np.uint8)
                done += len(chunk)
    except (RuleError, MemoryError):
        raise
    except Exception as error:
        raise RuleError(f"{name}: is damaged ({error})") from error
    require(done == size, f"{name}: must have {size} bytes, not {done}")
    return array
