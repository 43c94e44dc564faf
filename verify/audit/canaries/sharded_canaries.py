"""Canaries spread over processes: each generates its slice of coordinates, and their group adds up the sums."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arrays import Array, on_host
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import check_type, refusals_of
from canaryproof.kernels.slices import PartialProducts, checked_part, checked_slice
from canaryproof.verify.audit.canaries.grouped_canaries import GroupedCanaries


@set_module("canaryproof")
class ShardedCanaries:
    """The coordinates of canaries that a process holds, for ``CanaryClients`` in each of several processes.

    Parameters
    ----------
    whole
        The canaries, with all coordinates.
    shards
        Slices of the coordinates that this process holds, in the order in which its vectors have them. Each coordinate
        is in one slice of one process.
    add_up
        Adds up an array of float64, of equal shape in every process, over the processes, such as an all-reduce. Every
        process calls it equally often, and gets the same sums.

    Attributes
    ----------
    whole, shards
        As given.
    seed, count, dim
        Those of the whole canaries.
    held
        Number of coordinates that this process holds.

    Raises
    ------
    ValueError
        If a slice has no coordinate, or the slices of all processes have not as many coordinates as the canaries.

    Notes
    -----
    Each process has the scores of all coordinates, equal to those of a single process up to rounding. No process keeps
    more of a canary or of a vector than its slices. Rounds are scored one by one: waiting deltas would take
    memory, which is why models are spread.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> canaries = cp.Canaries(seed=7, count=4, dim=1000)
    >>> slices = [slice(600, 1000), slice(0, 600)]
    >>> one_process = cp.ShardedCanaries(canaries, slices, add_up=lambda array: array)
    >>> bool(np.allclose(one_process.sum()[400:], canaries.sum()[:600]))
    True
    """

    def __init__(
        self, whole: Canaries | GroupedCanaries, shards: Sequence[slice], add_up: Callable[[Array], Array]
    ) -> None:
        check_type("whole", whole, (Canaries, GroupedCanaries), "Canaries or GroupedCanaries")
        check_type("add_up", add_up, Callable, "a function")
        check_type("shards", shards, (list, tuple), "a list of slices")
        for shard in shards:
            check_type("shards", shard, slice, "a list of slices")
        self.whole, self.add_up = whole, add_up
        self.shards = tuple(checked_slice(shard, whole.dim) for shard in shards)
        self.seed, self.count, self.dim = whole.seed, whole.count, whole.dim
        self.held = sum(shard.stop - shard.start for shard in self.shards)
        total = int(add_up(np.array([float(self.held)]))[0])
        if total != self.dim:
            raise ValueError(f"shards: must have {self.dim} coordinates in all processes together, not {total}")
        groups = whole.parts if isinstance(whole, GroupedCanaries) else ((1.0, whole),)
        # Pieces of a group: their slices in the group and among the coordinates that are held.
        self._groups: list[tuple[float, Canaries, list[tuple[slice, slice]]]] = []
        end = 0
        for weight, group in groups:
            start, end = end, end + group.dim
            self._groups.append((float(weight), group, list(self._pieces(start, end))))
        squares = np.zeros((len(self._groups), self.count))
        for row, (_, group, pieces) in zip(squares, self._groups, strict=True):
            for inside, _ in pieces:
                row += group.squared_norms(inside)
        self._squares = add_up(squares)

    def sum(self, indices: ArrayLike | None = None) -> Array:
        """Return the held coordinates of a sum of canaries.

        Parameters
        ----------
        indices
            Canaries to add, shape (n,), repetitions allowed; all if None.

        Returns
        -------
        The coordinates, shape (held,).

        Raises
        ------
        ValueError
            If an index is out of range.
        """
        total = np.zeros(self.held)
        for squares, (weight, group, pieces) in zip(self._squares, self._groups, strict=True):
            for inside, own in pieces:
                total[own] = weight * group.sum(indices, coordinates=inside, squared_norms=squares)
        return total

    def products(self, vector: ArrayLike) -> PartialProducts:
        """Return the inner products of all canaries with a vector, over all coordinates; every process must call it.

        Parameters
        ----------
        vector
            The vector's coordinates that this process holds, shape (held,).

        Returns
        -------
        Inner products with canaries of norm 1, and the vector's squared norm, added up over the processes.

        Raises
        ------
        ValueError
            If the vector is of another shape or type, here, or not finite, in any process.
        """
        part = checked_part(vector, 0, self.held)
        if len(part) != self.held:
            raise ValueError(f"vector must be of shape ({self.held},), as many as this process holds, not {part.shape}")
        products = np.zeros(self.count)
        for squares, (weight, group, pieces) in zip(self._squares, self._groups, strict=True):
            for inside, own in pieces:
                if part[own].any() and np.isfinite(part[own]).all():
                    raw = group.partial_products(part[own], inside.start).products
                    products += weight * raw / np.sqrt(squares)
        # A vector that is not finite is noticed by its sum, in every process.
        sums = self.add_up(np.append(products, np.square(part.astype(np.float64)).sum()))
        return PartialProducts(sums[:-1], None, float(sums[-1]))

    def cosines(self, vectors: ArrayLike) -> Array:
        """Return cosines of all canaries with a vector of held coordinates, or with a block of them, shape (n, held).

        Every process must call it; errors are those of ``products``, and a vector must not be zero.
        """
        with refusals_of("vectors"):
            block = on_host(vectors)
        if block.ndim < 2:
            return self.products(block).cosines()
        return np.array([self.products(row).cosines() for row in block])

    def inner(self, first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
        """Return the inner product of two vectors over all coordinates; every process must call it with its own."""
        return float(self.add_up(np.array([(first.astype(np.float64) * second).sum()]))[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShardedCanaries) and (self.whole, self.shards) == (other.whole, other.shards)

    __hash__ = None  # type: ignore[assignment]

    def _pieces(self, start: int, end: int) -> "list[tuple[slice, slice]]":
        """Return this process's slices of a group's coordinates: in the group, and among those held."""
        pieces, held = [], 0
        for shard in self.shards:
            low, high = max(shard.start, start), min(shard.stop, end)
            if low < high:
                own = held + low - shard.start
                pieces.append((slice(low - start, high - start), slice(own, own + high - low)))
            held += shard.stop - shard.start
        return pieces
