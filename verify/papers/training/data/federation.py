"""Clients and their examples."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.audit.files import checkpoint
from canaryproof.verify.audit.files.errors import InputError

# Inputs and labels of one client.
Examples = tuple[NDArray[Any], NDArray[np.int32]]
# One in 10 of a client's examples is held out.
_HELD_OUT = 10


class ExampleForm(Protocol):
    """The form of examples, on which a network depends; attributes are those of ``Federation``."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def classes(self) -> int: ...  # noqa: D102
    @property
    def vocabulary(self) -> int | None: ...  # noqa: D102
    @property
    def unscored(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def vectors(self) -> NDArray[np.float32] | None: ...  # noqa: D102

    @property
    def template(self) -> Examples:
        """One example's inputs and labels, of which shape and type alone count."""


class FederatedData(ExampleForm, Protocol):
    """The data of a training, in memory or read from files cohort by cohort.

    Attributes are those of ``Federation``; held-out examples are always in memory.
    """

    @property
    def test_inputs(self) -> NDArray[np.float32] | NDArray[np.int32]: ...  # noqa: D102
    @property
    def test_labels(self) -> NDArray[np.int32]: ...  # noqa: D102
    @property
    def test_starts(self) -> NDArray[np.int64] | None: ...  # noqa: D102

    @property
    def clients(self) -> int:
        """Number of clients."""

    @property
    def digest(self) -> str:
        """A text that only equal data has."""

    def cohort(
        self, clients: ArrayLike, examples: int
    ) -> tuple[NDArray[np.float32] | NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """Return the same number of examples of each of some clients, as ``Federation.cohort``."""


def check_same(data: FederatedData, digest: str, folder: Path | None) -> None:
    """Refuse a folder on a worker of a cluster, by an ``InputError``, unless it holds the data of this digest."""
    if data.digest != digest:
        raise InputError(f"{folder or data.name}: holds other data than where the command runs")


@dataclass(frozen=True)
class Federation:
    """Examples of many clients, and others held out for testing."""

    name: str
    # The clients' examples, one client's after another's: images in float32 with values in [0, 1], shape (examples,
    # height, width, channels), or text as tokens in int32, shape (examples, length).
    inputs: NDArray[np.float32] | NDArray[np.int32]
    # Classes in int32, shape (examples,), or for text whose every next token is to be predicted, tokens of shape
    # (examples, length); −1 where nothing is to be predicted.
    labels: NDArray[np.int32]
    starts: NDArray[np.int64]  # client i has the examples ``starts[i]`` to ``starts[i + 1] − 1``, at least one
    test_inputs: NDArray[np.float32] | NDArray[np.int32]
    test_labels: NDArray[np.int32]
    classes: int  # labels are below it
    vocabulary: int | None = None  # number of tokens, which inputs are below; None for images
    test_starts: NDArray[np.int64] | None = None  # of held-out clients; None where nobody knows whose they are
    unscored: tuple[int, ...] = ()  # labels that are trained on and not counted in an accuracy
    vectors: NDArray[np.float32] | None = None  # given embeddings, shape (vocabulary, dimensions), not trained

    @classmethod
    def of(
        cls,
        name: str,
        clients: Iterable[Examples],
        test: Iterable[Examples],
        classes: int,
        vocabulary: int | None = None,
    ) -> Self:
        """Make a federation of the inputs and labels of each client, and of those that each client holds out."""
        inputs, labels = zip(*clients, strict=True)
        test_inputs, test_labels = zip(*test, strict=True)
        starts = np.cumsum([0, *map(len, labels)])
        return cls(
            name,
            np.concatenate(inputs),
            np.concatenate(labels),
            starts,
            np.concatenate(test_inputs),
            np.concatenate(test_labels),
            classes,
            vocabulary,
            np.cumsum([0, *map(len, test_labels)]),
        )

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.starts) - 1

    @cached_property
    def digest(self) -> str:
        """A text that only equal data has."""
        arrays = [self.inputs, self.labels, self.starts, self.test_inputs, self.test_labels]
        return checkpoint.digest(*arrays, *([] if self.vectors is None else [self.vectors]))

    @property
    def template(self) -> Examples:
        """One example's inputs and labels, of which shape and type alone count."""
        return self.inputs[:1], self.labels[:1]

    def cohort(
        self, clients: ArrayLike, examples: int
    ) -> tuple[NDArray[np.float32] | NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """Return inputs and labels of the first examples of m clients, shape (m, examples, ...), and a mask.

        The mask, shape (m, examples), is 1 for an example of the client's, 0 where its last one is repeated because it
        has no more.
        """
        chosen, there = first_examples(self.starts, clients, examples)
        return self.inputs[chosen], self.labels[chosen], there


def first_examples(
    starts: NDArray[np.int64], clients: ArrayLike, examples: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return where the first examples of clients stand, shape (m, examples), and the mask of ``Federation.cohort``."""
    indices = np.asarray(clients, dtype=np.int64)
    first, end = starts[indices][:, np.newaxis], starts[indices + 1][:, np.newaxis]
    chosen = first + np.arange(examples)
    return np.minimum(chosen, end - 1), (chosen < end).astype(np.float32)


def equal_lots(count: int, examples_per_client: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Deal examples out to clients, independently of what they are: the examples' order, and ``Federation.starts``.

    What remains of ``count`` belongs to nobody.
    """
    if not 1 <= examples_per_client <= count:
        raise ValueError(f"examples_per_client must be between 1 and {count}, not {examples_per_client}")
    dealt = count - count % examples_per_client
    order = np.random.default_rng(seed).permutation(count)[:dealt]
    return order, np.arange(0, dealt + 1, examples_per_client)


def held_out(clients: Iterable[tuple[Sequence[Any], ...]]) -> tuple[list[Any], list[Any]]:
    """Split off the last tenth of each client's examples, rounded down, of clients that have one.

    ``clients`` has sequences of each client's, all of the length of its examples: inputs and labels, for instance.
    """
    training, held = [], []
    for sequences in clients:
        count = len(sequences[0])
        first = count - count // _HELD_OUT
        training.append(tuple(sequence[:first] for sequence in sequences))
        if first < count:
            held.append(tuple(sequence[first:] for sequence in sequences))
    return training, held


_Handle = TypeVar("_Handle")


class ExampleSource(Protocol):
    """Where the examples of clients come from."""

    @property
    def clients(self) -> int:
        """Number of clients."""

    @property
    def digest(self) -> str:
        """A text that only equal examples have."""

    def read(self, client: int, most: int) -> Examples:
        """Return a client's first examples: all it has, if these are at most so many."""


class PerProcess(Generic[_Handle]):
    """A file that every process opens for itself, when it first reads from it.

    What is forked or sent to a worker must not share a file's position or an open database. ``opening`` is a function
    of a module, so that it can be sent to a worker.
    """

    def __init__(self, opening: Callable[[Path], _Handle], path: Path) -> None:
        self._opening, self._path = opening, path
        self._held: tuple[int, _Handle] | None = None

    def get(self) -> _Handle:
        """Return the open file of this process."""
        if self._held is None or self._held[0] != os.getpid():
            self._held = os.getpid(), self._opening(self._path)
        return self._held[1]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open file."""
        return self.__dict__ | {"_held": None}


@dataclass(frozen=True)
class StreamedFederation:
    """Examples of many clients, read when a cohort asks for them, and others held out for testing, in memory.

    Attributes are those of ``Federation``, but for the ``source`` of the clients' examples.
    """

    name: str
    source: ExampleSource
    template: Examples
    test_inputs: NDArray[np.float32] | NDArray[np.int32]
    test_labels: NDArray[np.int32]
    classes: int
    vocabulary: int | None = None
    test_starts: NDArray[np.int64] | None = None
    unscored: tuple[int, ...] = ()
    vectors: NDArray[np.float32] | None = None

    @property
    def clients(self) -> int:
        """Number of clients."""
        return self.source.clients

    @cached_property
    def digest(self) -> str:
        """A text that only equal data has."""
        return f"{self.source.digest} {checkpoint.digest(self.test_inputs, self.test_labels)}"

    def cohort(
        self, clients: ArrayLike, examples: int
    ) -> tuple[NDArray[np.float32] | NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """Read the same number of examples of each of some clients, as ``Federation.cohort`` returns them."""
        # A cohort is filled up with clients that it has already.
        indices, positions = np.unique(np.asarray(clients, dtype=np.int64), return_inverse=True)
        inputs, labels = (np.empty((len(indices), examples, *array.shape[1:]), array.dtype) for array in self.template)
        mask = np.zeros((len(indices), examples), np.float32)
        for i, client in enumerate(indices.tolist()):
            some = self.source.read(client, examples)
            count = len(some[1])
            for rows, read in zip((inputs, labels), some, strict=True):
                rows[i, :count], rows[i, count:] = read, read[-1]
            mask[i, :count] = 1.0
        return inputs[positions], labels[positions], mask[positions]
