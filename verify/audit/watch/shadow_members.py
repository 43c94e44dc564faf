"""A shadow member: one row more in a run of the training's own clipping, together with a few gradients of the batch.

There is no noise in it, so that what is left of two runs is the member: exact, but for rounding. A sum of clipped rows
changes by at most the clip norm if a row is added, and by twice that if one is replaced. The members are chosen for the
ways in which a clipping is wrong: a random direction, one that is even over the parameters (a norm may forget the small
ones), one against the sum, one far beyond the clip norm, a duplicate, and zero; in front, in the middle and at the end.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from canaryproof.kernels.arrays import Array, Ints, two_norm
from canaryproof.verify.audit.watch.watch_record import ShadowTrial

# Most rows of the batch that join a shadow member, and the share of all its rows' bytes that a run may take. So
# many bytes are always free.
_ROWS, _SHARE, _FREE = 8, 0.1, 2**24
# A sum of clipped rows may be off by so much of the clip norm, and its format's rounding besides.
_TOLERANCE = 1e-3
# A norm's squares are added in the format, in so many lanes or more: of ten million numbers it was off by 0.2%.
_LANES = 64
_FAR = 1e6
# The clipping of a matrix of rows: their clipped sum.
ClippedSum = Callable[[Array], Array]


def row_count(rows: int, dim: int, size: int) -> int:
    """Return how many rows of a batch may join the shadow member in a run, of so many bytes a number."""
    fits = max(_SHARE * rows * dim * size, _FREE) / (dim * size)
    return max(1, min(_ROWS, rows, int(fits) - 1)) if rows else 0


def shadow_trials(
    clipped_sum: ClippedSum,
    rows: Array,
    clip_norm: float,
    sizes: Ints,
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
        The clipping: the sum of rows, shape (dim,), of a matrix of them.
    rows
        Gradients of the batch, shape (n, dim).
    clip_norm
        Claimed most that a row enters with.
    sizes
        Sizes of the parameters, which sum to dim.
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
    without = clipped_sum(rows)
    for name, changed in _batches(rows, clip_norm, sizes, step, largest, is_replaced=is_replaced):
        with np.errstate(all="ignore"):
            with_it = clipped_sum(changed.astype(rows.dtype, copy=False))
        trial = ShadowTrial(
            name, step, *change_and_limit(without, with_it, clip_norm, precision, is_replaced=is_replaced)
        )
        if trial.is_excessive and not np.array_equal(without, clipped_sum(rows), equal_nan=True):
            raise ValueError("two runs of the clipping with the same gradients differ")
        yield trial


def change_and_limit(
    without: Array, with_it: Array, clip_norm: float, precision: float, *, is_replaced: bool
) -> tuple[float, float]:
    """Return by how much two sums differ and by how much they may, in clip norms; infinite if one is not finite."""
    with np.errstate(all="ignore"):
        change = two_norm((with_it - without).astype(np.float64)) / clip_norm
        rounding = precision * (1.0 + sum(map(two_norm, (with_it, without))) / clip_norm)
    change = change if math.isfinite(change) else math.inf
    limit = (2.0 if is_replaced else 1.0) * (1.0 + _TOLERANCE + precision * len(without) / _LANES)
    return change, limit + (rounding if math.isfinite(rounding) else 0.0)


def _batches(
    rows: Array, clip_norm: float, sizes: Ints, step: int, largest: float, *, is_replaced: bool
) -> Iterator[tuple[str, Array]]:
    """Yield the batch with each shadow member in it, and what that is."""
    dim = int(sizes.sum())
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(87, step)))
    # A number that is squared in the format must not be infinite there.
    far = min(_FAR * clip_norm, max(0.1 * math.sqrt(largest), 2.0 * clip_norm))
    near = min(10.0 * clip_norm, far)
    direction = _unit(rng.normal(size=dim))
    # Each parameter has the same length in it, however small it is.
    even = _unit(rng.choice([-1.0, 1.0], size=dim) / np.sqrt(np.repeat(sizes, sizes)))
    against = -_unit(rows.sum(axis=0, dtype=np.float64)) if len(rows) else direction
    lengths = {each: f"{each / clip_norm:,.0f} clip norms" for each in (near, far)}
    members = [
        (f"{lengths[near]} in a random direction", "last in the batch", near * direction),
        (f"{lengths[far]}, even over the parameters", "first in the batch", far * even),
        (f"{lengths[far]}, against the sum", "amid the batch", far * against),
        ("half a clip norm in a random direction", "first in the batch", 0.5 * clip_norm * direction),
        ("zero", "last in the batch", np.zeros(dim)),
    ]
    longest = int(np.argmax(np.square(rows, dtype=np.float64).sum(axis=1))) if len(rows) else None
    if longest is not None:
        members.append(("a duplicate of the longest gradient", "last in the batch", rows[longest]))
    for name, where, row in members:
        at = {"first in the batch": 0, "amid the batch": len(rows) // 2, "last in the batch": len(rows)}[where]
        if is_replaced and len(rows):
            changed = rows.copy()
            changed[min(at, len(rows) - 1)] = row
        else:
            changed = np.insert(rows, at, row, axis=0)
        yield f"{name}, {where}", changed
    if longest is not None and len(rows) > 1 and not is_replaced:
        yield "the longest gradient, left out", np.delete(rows, longest, axis=0)


def _unit(vector: Array) -> Array:
    length = two_norm(vector)
    return np.asarray(vector / length if length else np.full(len(vector), len(vector) ** -0.5))
