"""A shadow member: one row more in a run of the training's own clipping, together with a few gradients of the batch.

There is no noise in it, so that what is left of two runs is the member: exact, but for rounding. A sum of clipped rows
changes by at most the clip norm if a row is added, and by twice that if one is replaced. The members are chosen for the
ways in which a clipping is wrong: a random direction, one that is even over the parameters (a norm may forget the small
ones), one against the sum, one far beyond the clip norm, a duplicate, and zero; in front, in the middle and at the end.

A member is as long as all parameters together, and no copy of one is made: each is written, slice by slice, into the
rows that the clipping is run with.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels.arrays import Array, slices, two_norm
from canaryproof.verify.audit.watch.watch_record import ShadowTrial

# Most rows of the batch that join a shadow member, and the share of all its rows' bytes that a run may take. So many
# bytes are always free, and so is one row, as a clipping may not take none.
_ROWS, _SHARE, _FREE = 8, 0.1, 2**24
# A sum of clipped rows may be off by so much of the clip norm, and its format's rounding besides.
_TOLERANCE = 1e-3
# A norm's squares are added in the format, in so many lanes or more: of ten million numbers it was off by 0.2%.
_LANES = 64
_FAR = 1e6
# The clipping of a matrix of rows: their clipped sum.
ClippedSum = Callable[[Array], Array]
# The gradients of some examples, or their sum: an array for each parameter, here flattened.
Parts = Sequence[NDArray[Any]]
# The clipping: from the parts of rows, shape (n, size), to those of their clipped sum, shape (size,).
ClippedParts = Callable[[Parts], Parts]


def row_count(rows: int, dim: int, size: int) -> int:
    """Return how many rows of a batch may join the shadow member in a run, of so many bytes a number."""
    fits = max(_SHARE * rows * dim * size, _FREE) / (dim * size)
    return max(1, min(_ROWS, rows, int(fits) - 1)) if rows else 0


def shadow_trials(
    clipped_sum: ClippedParts,
    rows: Parts,
    clip_norm: float,
    step: int,
    *,
    precision: float,
    largest: float,
    is_replaced: bool,
) -> Iterator[ShadowTrial]:
    """Run a clipping with and without each shadow member.

    Parameters
    ----------
    clipped_sum
        The clipping. It may write into the rows that it is given.
    rows
        Gradients of the batch, for each parameter an array of the shape (n, size).
    clip_norm
        Claimed most that a row enters with.
    step
        Number of the step, of which members in a random direction depend.
    precision, largest
        Relative spacing and largest number of the format of the gradients.
    is_replaced
        Whether a row is replaced, by the neighbours of the claim, and not added.

    Returns
    -------
    The trials.

    Raises
    ------
    ValueError
        If a member changes the sum by too much, and two runs of the same rows differ too.
    """

    def sum_of_rows() -> Parts:
        return clipped_sum(_copies(rows))

    without = sum_of_rows()
    members = _Rows(rows, clip_norm, step, largest)
    for name, changed in members.batches(is_replaced=is_replaced):
        with np.errstate(all="ignore"):
            with_it = clipped_sum(changed)
        if any(map(np.may_share_memory, without, with_it)):
            # The clipping returns the same memory each time.
            with_it, without = _copies(with_it), _copies(sum_of_rows())
        trial = ShadowTrial(
            name, step, *_change_and_limit(without, with_it, clip_norm, precision, is_replaced=is_replaced)
        )
        del changed, with_it
        if trial.is_excessive and not all(
            np.array_equal(first, second, equal_nan=True) for first, second in zip(without, sum_of_rows(), strict=True)
        ):
            raise ValueError("two runs of the clipping with the same gradients differ")
        yield trial


def change_and_limit(
    without: Array, with_it: Array, clip_norm: float, precision: float, *, is_replaced: bool
) -> tuple[float, float]:
    """Return by how much two sums differ and by how much they may, in clip norms; infinite if one is not finite."""
    return _change_and_limit([without], [with_it], clip_norm, precision, is_replaced=is_replaced)


def _change_and_limit(
    without: Parts, with_it: Parts, clip_norm: float, precision: float, *, is_replaced: bool
) -> tuple[float, float]:
    squares = 0.0
    with np.errstate(all="ignore"):
        for first, second in zip(without, with_it, strict=True):
            for part in slices(len(first)):
                squares += float(np.square(np.subtract(second[part], first[part], dtype=np.float64)).sum())
        lengths = [math.hypot(*map(two_norm, parts)) for parts in (with_it, without)]
        rounding = precision * (1.0 + sum(lengths) / clip_norm)
    change = math.sqrt(squares) / clip_norm
    change = change if math.isfinite(change) else math.inf
    dim = sum(map(len, without))
    limit = (2.0 if is_replaced else 1.0) * (1.0 + _TOLERANCE + precision * dim / _LANES)
    return change, limit + (rounding if math.isfinite(rounding) else 0.0)


def _in_one_piece(shapes: Sequence[tuple[int, ...]], like: Parts) -> Parts:
    """Return arrays of these shapes; a system that gets one piece of memory back has more use of it."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    whole = np.empty(int(ends[-1]), np.result_type(*like))
    return [part.reshape(shape) for part, shape in zip(np.split(whole, ends[:-1]), shapes, strict=True)]


def _copies(parts: Parts) -> Parts:
    copies = _in_one_piece([part.shape for part in parts], parts)
    for each, part in zip(copies, parts, strict=True):
        each[...] = part
    return copies


@dataclass(frozen=True)
class _Rows:
    """Rows of a batch, and the shadow members that join them: each as slices of one parameter after the other."""

    rows: Parts
    clip_norm: float
    step: int
    largest: float

    def batches(self, *, is_replaced: bool) -> Iterator[tuple[str, Parts]]:
        """Yield the batch with each shadow member in it, and what that is."""
        clip_norm, count = self.clip_norm, len(self.rows[0])
        # A number that is squared in the format must not be infinite there.
        far = min(_FAR * clip_norm, max(0.1 * math.sqrt(self.largest), 2.0 * clip_norm))
        near = min(10.0 * clip_norm, far)
        against = self._against if count else self._direction
        lengths = {each: f"{each / clip_norm:,.0f} clip norms" for each in (near, far)}
        members = [
            (f"{lengths[near]} in a random direction", "last in the batch", near, self._direction),
            (f"{lengths[far]}, even over the parameters", "first in the batch", far, self._even),
            (f"{lengths[far]}, against the sum", "amid the batch", far, against),
            ("half a clip norm in a random direction", "first in the batch", 0.5 * clip_norm, self._direction),
            ("zero", "last in the batch", 0.0, self._zero),
        ]
        if count:
            members.append(("a duplicate of the longest gradient", "last in the batch", 1.0, self._longest_row))
        for name, where, length, row in members:
            at = {"first in the batch": 0, "amid the batch": count // 2, "last in the batch": count}[where]
            replaced = int(is_replaced and count > 0)
            yield f"{name}, {where}", self._with_row(min(at, count - replaced), replaced, length, row())
        if count > 1 and not is_replaced:
            yield "the longest gradient, left out", [np.delete(part, self._longest, axis=0) for part in self.rows]

    def _with_row(self, at: int, replaced: int, length: float, row: Iterator[Array]) -> Parts:
        """Return the rows with such a one amid them, in the place of so many of them."""
        changed = _in_one_piece([(len(part) + 1 - replaced, part.shape[1]) for part in self.rows], self.rows)
        for part, rows in zip(changed, self.rows, strict=True):
            part[:at], part[at + 1 :] = rows[:at], rows[at + replaced :]
            for columns in slices(part.shape[1]):
                part[at, columns] = length * next(row)
        return changed

    def _columns(self) -> Iterator[NDArray[Any]]:
        """Yield a few columns at a time of the rows."""
        for part in self.rows:
            for columns in slices(part.shape[1]):
                yield part[:, columns]

    def _unit(self, vector: Callable[[], Iterator[Array]]) -> Iterator[Array]:
        """Yield a vector over its length; where that is 0, one whose coordinates are equal."""
        length = math.hypot(*(two_norm(each) for each in vector()))
        dim = sum(part.shape[1] for part in self.rows)
        for each in vector():
            yield each / length if length else np.full(len(each), dim**-0.5)

    def _direction(self) -> Iterator[Array]:
        # Two members have it, and its numbers take a while to draw.
        return (each / self._normal_length for each in self._normal())

    @cached_property
    def _normal_length(self) -> float:
        return math.hypot(*map(two_norm, self._normal()))

    def _zero(self) -> Iterator[Array]:
        return (np.zeros(int(each.shape[1])) for each in self._columns())

    def _normal(self) -> Iterator[Array]:
        rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(87, self.step)))
        return (rng.normal(size=int(each.shape[1])) for each in self._columns())

    def _even(self) -> Iterator[Array]:
        """Yield random signs that have the same length in each parameter, however small it is."""
        rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(87, self.step, 1)))
        for part in self.rows:
            size = (len(self.rows) * part.shape[1]) ** -0.5
            for columns in slices(part.shape[1]):
                yield size * rng.choice([-1.0, 1.0], size=columns.stop - columns.start)

    def _against(self) -> Iterator[Array]:
        return self._unit(lambda: (-each.sum(axis=0, dtype=np.float64) for each in self._columns()))

    @cached_property
    def _longest(self) -> int:
        squares = np.zeros(len(self.rows[0]))
        for each in self._columns():
            squares += np.square(each, dtype=np.float64).sum(axis=1)
        return int(np.argmax(squares))

    def _longest_row(self) -> Iterator[Array]:
        return (each[self._longest] for each in self._columns())
