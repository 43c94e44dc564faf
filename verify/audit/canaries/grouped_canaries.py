"""Canaries for clipping with several norms: a canary's part in each group of coordinates has that group's norm."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arguments import checked_indices, checked_vectors
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import check_type, checked_integer
from canaryproof.verify.audit import rules


@set_module("canaryproof")
@dataclass(frozen=True)
class GroupedCanaries:
    """Unit vectors with an independent uniform direction in each group of coordinates, and fixed norms there.

    They are for clippings that have a norm for each group: times √(Σ norms²), a canary is as long in each group as an
    example may be.

    Parameters
    ----------
    seed
        Seed of the canaries, 0 ≤ seed < 2⁶⁴.
    count
        Number of canaries.
    sizes
        Numbers of coordinates of the groups, in their order, at least 2 each.
    norms
        Clip norms of the groups, positive. Canaries have unit norm, and their parts these proportions.

    Raises
    ------
    ValueError
        If a number is out of its range, or there are not as many norms as groups.

    Notes
    -----
    The direction of a whole canary is not uniform. Its cosines have no law of their own without a trace, so that
    unobserved canaries are the null. If the data are known, the noise is measured as exactly as with ``Canaries``.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> canaries = cp.GroupedCanaries(seed=7, count=10, sizes=(300, 100), norms=(3.0, 4.0))
    >>> vector = canaries.vector(0).astype(float)
    >>> parts = vector[:300], vector[300:]
    >>> print([round(float(np.linalg.norm(part)), 3) for part in parts])
    [0.6, 0.8]
    """

    seed: int
    count: int
    sizes: tuple[int, ...]
    norms: tuple[float, ...]

    def __post_init__(self) -> None:
        for name, values in (("sizes", self.sizes), ("norms", self.norms)):
            check_type(f"{name}:", values, (tuple, list), "a tuple of numbers")
        if len(self.sizes) != len(self.norms) or not self.sizes:
            raise ValueError(f"norms: must be one for each of {len(self.sizes)} groups, not {len(self.norms)}")
        for size in self.sizes:
            checked_integer("sizes:", size, 2, rule="of at least 2 each, since one coordinate has no random direction")
        for norm in self.norms:
            rules.POSITIVE.number("norms", norm)
        # They refuse seeds and counts for all groups.
        _ = Canaries(self.seed, self.count, self.dim), self.parts

    @property
    def dim(self) -> int:
        """Number of all coordinates."""
        return sum(self.sizes)

    @cached_property
    def parts(self) -> tuple[tuple[float, Canaries], ...]:
        """Weight and independent canaries of each group: a canary's part is theirs times the weight."""
        groups = np.random.SeedSequence(self.seed).spawn(len(self.sizes))
        seeds = (int(group.generate_state(1, np.uint64)[0]) for group in groups)
        weights = (np.asarray(self.norms) / np.linalg.norm(self.norms)).tolist()
        made = (Canaries(seed, self.count, size) for seed, size in zip(seeds, self.sizes, strict=True))
        return tuple(zip(weights, made, strict=True))

    def vector(self, j: int) -> NDArray[np.float32]:
        """Return canary j, shape (dim,); errors as for ``Canaries.vector``."""
        return np.concatenate([np.float32(weight) * part.vector(j) for weight, part in self.parts])

    def sum(self, indices: ArrayLike | None = None, weights: ArrayLike | None = None) -> Array:
        """Return a weighted sum of canaries, shape (dim,); arguments and errors as for ``Canaries.sum``."""
        return np.concatenate([weight * part.sum(indices, weights) for weight, part in self.parts])

    def cosines(self, vectors: ArrayLike, indices: ArrayLike | None = None) -> Array:
        """Return cosines with one vector or a block; arguments and errors as for ``Canaries.cosines``."""
        chosen = checked_indices(indices, self.count)
        cosines = self._sum_over_groups(vectors, len(chosen), lambda part, rows: part.cosines(rows, chosen))
        return cosines if np.ndim(vectors) == 2 else cosines[0]

    def block_cosines(self, vectors: ArrayLike) -> Array:
        """Return cosines with a block of vectors, as ``Canaries.block_cosines`` makes them."""
        return self._sum_over_groups(vectors, self.count, Canaries.block_cosines)

    def _sum_over_groups(
        self, vectors: ArrayLike, count: int, cosines: Callable[[Canaries, NDArray[np.floating]], Array]
    ) -> Array:
        """Add up the groups' inner products with vectors, and divide by the vectors' norms."""
        block, scales = checked_vectors(vectors, self.dim)
        pieces = np.split(block, np.cumsum(self.sizes)[:-1], axis=1)
        squares = [np.einsum("i,ij,i,ij->i", scales, piece, scales, piece, dtype=np.float64) for piece in pieces]
        shares = np.sqrt(squares / np.sum(squares, axis=0))
        products = np.zeros((len(block), count))
        for (weight, part), piece, share in zip(self.parts, pieces, shares, strict=True):
            # A vector may be zero in one group, where it has no direction.
            some = share > 0.0
            if some.any():
                products[some] += weight * share[some, np.newaxis] * cosines(part, piece[some])
        return np.clip(products, -1.0, 1.0)
