"""Sums over the blocks of a released vector, which are all that an audit takes from it.

A block of coordinates (``kernels.slices``) is read, scored and forgotten, so that memory does not grow with d. Blocks
may be scored in any processes, on any machines: the sums are added in the order of the blocks, so that the bits are
those of one process.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import check_type, checked_integer, refusals_of
from canaryproof.kernels.slices import PartialProducts, blocks
from canaryproof.verify.audit.estimators.epsilon_estimators import squared_norm
from canaryproof.verify.audit.files import checkpoint
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import floats
from canaryproof.verify.audit.files.stored_release import StoredRelease

if TYPE_CHECKING:
    from canaryproof.verify.audit.canaries.round_scores import ReleaseCanaries

# Coordinates of canaries between two reports of progress; they take about a tenth of a second.
_COORDINATES_AT_ONCE = 10**8
_PIECE = 2**20
# Coordinates of which the sum of all canaries is in memory, 8 MB. Where these are all, the sum has the canaries' exact
# norms: a canary is then held whole, and is made no more often for it.
_SUMMED_AT_ONCE = 2**20
# Other directions of orthonormal canaries that are scored at most, unless there are more canaries. With so many, the
# null's moments err by less than a thousandth of a deviation.
_MOST_UNOBSERVED = 2**20
FEWEST_UNOBSERVED = 2

# The function that scores a block, its number and arguments; how calls of it are made, and what they return.
Task = tuple[int, tuple[Any, ...]]
SCORED = f"{__name__}:block_sums"


class ReadableRelease(Protocol):
    """A released vector that is read in pieces."""

    @property
    def dim(self) -> int:
        """Number d of coordinates."""

    @property
    def canary_norm(self) -> float:
        """Norm of a canary in the vector's unit."""

    def read(self, start: int, stop: int) -> NDArray[np.float32] | NDArray[np.float64]:
        """Read a slice of the coordinates, into memory that is the caller's."""


@dataclass(frozen=True)
class ArrayRelease:
    """A released vector in memory, or mapped into it, in units of the canary norm."""

    values: NDArray[Any]
    canary_norm: float = 1.0

    @property
    def dim(self) -> int:
        """Number d of coordinates."""
        return len(self.values)

    def read(self, start: int, stop: int) -> NDArray[np.float32] | NDArray[np.float64]:
        """Read a slice of the coordinates, into memory that is the caller's."""
        part = self.values[start:stop]
        # A long double beyond the range becomes infinite, which a rule refuses.
        with np.errstate(over="ignore"):
            read: NDArray[Any] = part.astype(np.float32 if part.dtype.itemsize <= 4 else np.float64)
        return read


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class ReleaseSums:
    """Sums over some of a release's coordinates. Those of disjoint slices add up, in the order of the coordinates.

    Attributes
    ----------
    products
        Inner products with canaries; of independent ones with the release less all of them. Beside orthonormal
        canaries, other directions follow them. Beyond 2²⁰ coordinates X_j/√d is subtracted for X_j/‖X_j‖.
    square
        Squared norm, in the release's unit.
    along, canaries_square
        Inner product with the sum of all independent canaries that is subtracted, and its squared norm; 0 for
        orthonormal ones.
    zeros
        Number of coordinates that are exactly zero.
    smallest
        Smallest absolute value of the others, the step if they lie on a grid; infinite if there are none.
    near
        Number of coordinates whose absolute value is at most 1.5 times that: one step above or below zero.
    largest
        Largest absolute value.
    canary_norm
        Norm of a canary in the release's unit.
    slices
        Number of coordinates of each slice that was added.
    digests
        SHA-256 of the coordinates of each of these, little-endian, in hexadecimal.
    """

    products: PartialProducts
    square: float
    along: float
    canaries_square: float
    zeros: int
    smallest: float
    near: int
    largest: float
    canary_norm: float
    slices: tuple[int, ...]
    digests: tuple[str, ...]

    def __add__(self, other: Self) -> "ReleaseSums":
        return ReleaseSums(
            self.products + other.products,
            self.square + other.square,
            self.along + other.along,
            self.canaries_square + other.canaries_square,
            self.zeros + other.zeros,
            min(self.smallest, other.smallest),
            sum(each.near for each in (self, other) if each.smallest <= _NEAR * min(self.smallest, other.smallest)),
            max(self.largest, other.largest),
            self.canary_norm,
            self.slices + other.slices,
            self.digests + other.digests,
        )

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return sum(self.slices)

    @property
    def digest(self) -> str:
        """SHA-256 of the coordinates, little-endian; of several slices, of their digests in hexadecimal."""
        if len(self.digests) == 1:
            return self.digests[0]
        return hashlib.sha256("".join(self.digests).encode()).hexdigest()

    @property
    def norm(self) -> float:
        """Norm of the release, in canary norms."""
        return math.sqrt(self.square) / self.canary_norm

    def residual_norm(self, count: int) -> float:
        """Norm of the release less all its ``count`` canaries, in canary norms."""
        squares = self.products.squares
        if squares is not None:
            return math.sqrt(self.products.square) / self.canary_norm
        along = float(self.products.products[:count].sum()) / self.canary_norm
        return math.sqrt(max(self.norm**2 - 2.0 * along + count, 0.0))

    @property
    def _lengths(self) -> NDArray[np.float64]:
        """Length with which each independent canary was subtracted, in canary norms."""
        squares = self.products.squares
        assert squares is not None
        return np.ones(len(squares)) if self.dim <= _SUMMED_AT_ONCE else np.sqrt(squares / self.dim)

    def cosines(self) -> NDArray[np.float64]:
        """Cosines of the canaries, shape (k,): of independent ones with the release less all others.

        Given all others, a canary that is not in the release has exactly the cosine of Theorem 3.1.
        """
        squares = self.products.squares
        if squares is None:
            return self.products.cosines()
        along, own = self.products.products / np.sqrt(squares), self.canary_norm * self._lengths
        return np.clip((along + own) / np.sqrt(self.products.square + own * (2.0 * along + own)), -1.0, 1.0)

    def crowd(self, count: int) -> float:
        """Share of its ``count`` canaries in the variance of the release without them, which their √d leaves there."""
        if self.products.squares is None or self.dim <= _SUMMED_AT_ONCE:
            return 0.0
        return count / (2.0 * self.dim * self.residual_norm(count) ** 2)

    def trace(self, count: int) -> tuple[float, float]:
        """Return the cosine of the release with the sum of its ``count`` canaries, and that sum's length.

        Where independent canaries' X_j/√d are subtracted, the sum is theirs, and the length that which the true sum has
        along it, with an error of √(k/2)/d: what data along a direction that does not depend on them would add to the
        noise.
        """
        if self.products.squares is None:
            length = math.sqrt(count)
            along = float(self.products.products[:count].sum()) / length
        else:
            norm, lengths = math.sqrt(self.canaries_square), self._lengths
            length = norm + float((lengths - np.square(lengths)).sum()) / norm
            along = self.along / norm
        return min(max(along / math.sqrt(self.square), -1.0), 1.0), length


def as_source(release: ArrayLike | StoredRelease | ArrayRelease) -> ReadableRelease:
    """Return a release as it is read; a ``ValueError`` says that it is no vector of floating-point numbers."""
    return release if isinstance(release, StoredRelease | ArrayRelease) else ArrayRelease(floats(release))


def scored_directions(canaries: "ReleaseCanaries") -> "ReleaseCanaries":
    """Return the canaries, and with orthonormal ones the other directions that are scored too."""
    if isinstance(canaries, Canaries):
        return canaries
    others = max(_MOST_UNOBSERVED, canaries.count)
    left = canaries.largest_count - canaries.count
    if left < FEWEST_UNOBSERVED:
        raise ValueError(
            f"canaries: must leave {FEWEST_UNOBSERVED} of {canaries.largest_count:,} directions to compare with, "
            f"not {left}"
        )
    return replace(canaries, count=canaries.count + min(others, left))


@set_module("canaryproof")
def release_sums(
    release: ArrayLike | StoredRelease | ArrayRelease, canaries: "ReleaseCanaries", start: int = 0
) -> ReleaseSums:
    """Compute, from this process's slice of a released vector, the sums that an audit needs.

    Parameters
    ----------
    release
        The coordinates from ``start`` on, finite floating-point numbers in units of the canary norm, shape (n,).
    canaries
        The canaries, all of which took part, of all dimensions of the release.
    start
        First coordinate.

    Returns
    -------
    The sums. Add those of all processes up in the order of the coordinates, and give them to ``audit_release``. To the
    bits of one process add up those of single blocks (``canaryproof.kernels.slices.blocks``), to rounding any others.

    Raises
    ------
    ValueError
        If a coordinate is not finite, or the slice does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> canaries = cp.Canaries(seed=7, count=300, dim=10_000)
    >>> noise = np.random.default_rng(1).normal(0, 1.54, 10_000)
    >>> release = canaries.sum(np.arange(300)) + noise
    >>> first = cp.release_sums(release[:5000], canaries, 0)
    >>> second = cp.release_sums(release[5000:], canaries, 5000)
    >>> found = cp.audit_release(first + second, canaries, delta=1e-6)
    >>> whole = cp.audit_release(release, canaries, delta=1e-6)
    >>> bool(np.isclose(found.estimate.epsilon, whole.estimate.epsilon, rtol=1e-9))
    True
    """
    check_type("canaries", canaries, (Canaries, OrthonormalCanaries), "Canaries or OrthonormalCanaries")
    checked_integer("start", start, 0, canaries.dim - 1)
    with refusals_of("release:"):
        source = as_source(release)
        if not 1 <= source.dim <= canaries.dim - start:
            raise ValueError(f"must have 1 to {canaries.dim - start:,} coordinates from start on, not {source.dim:,}")
    return _sums(source.read(0, source.dim), scored_directions(canaries), start, source.canary_norm, lambda _: None)


def block_sums(
    source: ReadableRelease, canaries: "ReleaseCanaries", block: int, advance: Callable[[int], None] = lambda _: None
) -> ReleaseSums:
    """Sum up a block of a release; ``advance`` gets the number of canaries scored."""
    part = blocks(source.dim)[block]
    return _sums(source.read(part.start, part.stop), canaries, part.start, source.canary_norm, advance)


def _sums(
    values: NDArray[np.floating],
    canaries: "ReleaseCanaries",
    start: int,
    canary_norm: float,
    advance: Callable[[int], None],
) -> ReleaseSums:
    largest = float(np.maximum(values.max(), -values.min()))
    if not math.isfinite(largest):
        wrong = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"release[{start + wrong}]: must be finite, not {float(values[wrong])!r}")
    square, zeros = float(squared_norm(values)), len(values) - int(np.count_nonzero(values))
    smallest, near = _next_to_zero(values)
    digest = _digest(values)
    along = canaries_square = 0.0
    if isinstance(canaries, OrthonormalCanaries):
        # Last, as the transforms are made in the memory of the values.
        products = canaries.partial_products(values, start, overwrite=True)
        advance(canaries.count)
    else:
        products, along, canaries_square = _products_of_rest(values, canaries, start, canary_norm, advance)
    facts = zeros, smallest, near, largest, canary_norm
    return ReleaseSums(products, square, along, canaries_square, *facts, (len(values),), (digest,))


# A step of a grid, at most, as rounding may change it.
_NEAR = 1.5


def _next_to_zero(values: NDArray[np.floating]) -> tuple[float, int]:
    """Return the smallest absolute value that is not zero, and how many are as small."""
    smallest, near = math.inf, 0
    # In pieces, as a copy of a block is large.
    for first in range(0, len(values), _PIECE):
        sizes = np.abs(values[first : first + _PIECE])
        least = float(sizes.min(where=sizes > 0.0, initial=math.inf))
        if least < smallest:
            near *= smallest <= _NEAR * least
            smallest = least
        near += int(np.count_nonzero(sizes <= _NEAR * smallest)) - int(np.count_nonzero(sizes == 0.0))
    return smallest, near if math.isfinite(smallest) else 0


def _digest(values: NDArray[np.floating]) -> str:
    """SHA-256 of coordinates, little-endian."""
    return hashlib.sha256(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).data).hexdigest()


def _products_of_rest(
    values: NDArray[np.floating], canaries: Canaries, start: int, canary_norm: float, advance: Callable[[int], None]
) -> tuple[PartialProducts, float, float]:
    """Return products with a slice less all canaries, that of their sum with the slice, and its square."""
    products = []
    along = canaries_square = 0.0
    step = max(16, _COORDINATES_AT_ONCE // min(len(values), _SUMMED_AT_ONCE))
    for first in range(0, len(values), _SUMMED_AT_ONCE):
        part = values[first : first + _SUMMED_AT_ONCE]
        made = slice(start + first, start + first + len(part))
        if canaries.dim <= _SUMMED_AT_ONCE:
            total = canaries.sum(coordinates=made)
        else:
            total = canaries.gaussian_sum(made) / math.sqrt(canaries.dim)
        along += float((total * part).sum())
        canaries_square += float(np.square(total).sum())
        rest, done = part - canary_norm * total, 0
        pieces = []
        for low in range(0, canaries.count, step):
            indices = np.arange(low, min(low + step, canaries.count))
            pieces.append(canaries.partial_products(rest, start + first, indices))
            # In all, each canary counts once.
            scored = canaries.count * first + (low + len(indices)) * len(part)
            advance(scored // len(values) - canaries.count * first // len(values) - done)
            done = scored // len(values) - canaries.count * first // len(values)
        squares = np.concatenate([piece.squares for piece in pieces if piece.squares is not None])
        products.append(
            PartialProducts(np.concatenate([piece.products for piece in pieces]), squares, pieces[0].square)
        )
    return sum(products[1:], start=products[0]), along, canaries_square


class Scoring(Protocol):
    """How blocks are scored: a function ``module:name`` is called with each task's arguments, in any order."""

    def __call__(self, function: str, tasks: Iterable[Task], /) -> Iterable[tuple[int, Any]]: ...  # noqa: D102


def all_sums(
    source: ReadableRelease,
    canaries: "ReleaseCanaries",
    advance: Callable[[int], None] = lambda _: None,
    scoring: Scoring | None = None,
    state: Path | None = None,
) -> ReleaseSums:
    """Sum up a whole release.

    ``scoring`` sends blocks elsewhere. ``state`` is a file that keeps the sums after each block; a call that finds it
    goes on from there. An ``InputError`` says that it is of another release or of other canaries. What others have
    summed up is believed of the very coordinates that this process reads: names and times of files are no evidence.
    """
    number, every = len(blocks(source.dim)), scored_directions(canaries)
    total, done = (None, 0) if state is None else _read(state, source, every)
    for _ in range(done):
        advance(canaries.count)
    answers: Iterator[ReleaseSums]
    if scoring is None:
        answers = _here(source, every, canaries.count, range(done, number), advance)
    else:
        tasks = ((block, (source, every, block)) for block in range(done, number))
        answers = _in_order(scoring(SCORED, tasks), done, lambda: advance(canaries.count))
    for block, answer in enumerate(answers, done):
        if scoring is not None and not _is_of(source, block, answer.digests[0]):
            raise ValueError(f"the worker that scored block {block} has read other values than the file has here")
        total = answer if total is None else total + answer
        if state is not None:
            _write(state, source, every, total, block + 1)
    assert total is not None
    return total


def _is_of(source: ReadableRelease, block: int, digest: str) -> bool:
    """Whether a block of a release has a digest."""
    part = blocks(source.dim)[block]
    return _digest(source.read(part.start, part.stop)) == digest


def _here(
    source: ReadableRelease, every: "ReleaseCanaries", count: int, numbers: range, advance: Callable[[int], None]
) -> Iterator[ReleaseSums]:
    """Score blocks in this process: independent canaries take all threads for one block, transforms one thread each."""
    if isinstance(every, Canaries):
        for block in numbers:
            yield block_sums(source, every, block, advance)
        return
    with ThreadPoolExecutor(min(numba.get_num_threads(), max(1, len(numbers)))) as pool:
        for answer in pool.map(lambda block: block_sums(source, every, block), numbers):
            advance(count)
            yield answer


def _in_order(answers: Iterable[tuple[int, Any]], first: int, advance: Callable[[], None]) -> Iterator[Any]:
    waiting = {}
    for number, answer in answers:
        waiting[number] = answer
        advance()
        while first in waiting:
            yield waiting.pop(first)
            first += 1


def _description(source: ReadableRelease, canaries: "ReleaseCanaries") -> dict[str, Any]:
    """Describe the canaries and the files that sums are computed from."""
    if not isinstance(source, StoredRelease):
        raise ValueError("state: needs a release in files")
    return {
        "canaries": type(canaries).__name__,
        **{field.name: getattr(canaries, field.name) for field in fields(canaries) if field.init},
        "canary_norm": source.canary_norm,
        "tensors": [[tensor.name, list(tensor.shape), tensor.dtype] for tensor in source.tensors],
    }


def _like(source: ReadableRelease, canaries: "ReleaseCanaries") -> dict[str, NDArray[Any]]:
    sums = np.zeros(canaries.count)
    squares = sums if isinstance(canaries, Canaries) else np.zeros(0)
    digests = np.zeros((len(blocks(source.dim)), 32), np.uint8)
    numbers, counts = np.zeros(6), np.zeros(4, np.int64)
    return {"products": sums, "squares": squares, "numbers": numbers, "counts": counts, "digests": digests}


def _read(path: Path, source: ReadableRelease, canaries: "ReleaseCanaries") -> tuple[ReleaseSums | None, int]:
    """Return the sums that a file has, and how many blocks they are of."""
    description = _description(source, canaries)
    if not path.exists():
        return None, 0
    try:
        arrays = checkpoint.read(path, description, _like(source, canaries))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    square, own, along, canaries_square, smallest, largest = arrays["numbers"].tolist()
    zeros, near, dim, done = arrays["counts"].tolist()
    every = blocks(source.dim)
    if not 1 <= done <= len(every) or dim != every[done - 1].stop or not 0 <= zeros <= dim:
        raise InputError(f"{path}: counts: must be of some of the {len(every)} blocks")
    squares = arrays["squares"] if isinstance(canaries, Canaries) else None
    products = PartialProducts(arrays["products"], squares, own)
    digests = tuple(bytes(digest).hex() for digest in arrays["digests"][:done])
    for block, digest in enumerate(digests):
        if not _is_of(source, block, digest):
            raise InputError(f"{path}: is of another release, or of another base: block {block} has other values")
    slices = tuple(part.stop - part.start for part in every[:done])
    facts = zeros, smallest or math.inf, near, largest, source.canary_norm
    sums = ReleaseSums(products, square, along, canaries_square, *facts, slices, digests)
    if not _can_be(sums):
        raise InputError(f"{path}: its sums cannot be those of a release")
    return sums, done


# Rounding of float32 transforms may add so much to a sum, relative, at most.
_ROUNDING = 1e-4


def _can_be(sums: ReleaseSums) -> bool:
    """Tell whether sums of a file, which anybody can seal, can be of some release: signs, and Cauchy and Schwarz."""
    own, squares = sums.products.square, sums.products.squares
    with np.errstate(over="ignore", invalid="ignore"):
        most = own if squares is None else own * squares
        products = np.square(sums.products.products) <= most * (1.0 + _ROUNDING)
        scale, number = np.square(sums.largest), sums.dim - sums.zeros
        within = scale <= sums.square * (1.0 + _ROUNDING) and sums.square <= number * scale * (1.0 + _ROUNDING)
        along = np.square(sums.along) <= sums.square * sums.canaries_square * (1.0 + _ROUNDING)
    is_positive = own >= 0.0 and sums.largest >= 0.0 and (squares is None or bool((squares > 0.0).all()))
    return bool(is_positive and products.all() and within and along)


def _write(path: Path, source: ReadableRelease, canaries: "ReleaseCanaries", sums: ReleaseSums, done: int) -> None:
    squares = np.zeros(0) if sums.products.squares is None else sums.products.squares
    digests = np.zeros((len(blocks(source.dim)), 32), np.uint8)
    for number, digest in enumerate(sums.digests):
        digests[number] = np.frombuffer(bytes.fromhex(digest), np.uint8)
    arrays = {
        "products": sums.products.products,
        "squares": squares,
        # All numbers of a checkpoint are finite: of a block of zeros, the smallest is not.
        "numbers": np.array(
            [
                *(sums.square, sums.products.square, sums.along, sums.canaries_square),
                *(sums.smallest if sums.near else 0.0, sums.largest),
            ]
        ),
        "counts": np.array([sums.zeros, sums.near, sums.dim, done]),
        "digests": digests,
    }
    try:
        checkpoint.write(path, _description(source, canaries), arrays)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
