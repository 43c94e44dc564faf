"""Clients whose examples stay in files until a cohort asks for them."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.federated import checkpoint
from canaryproof.verify.federated.data.federation import Examples

_Handle = TypeVar("_Handle")


class Source(Protocol):
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

    What is forked or sent to a worker must not share a file's position or an open database.

    Parameters
    ----------
    opening
        Opens it; a function of a module, so that it can be sent to a worker.
    path
        The file.
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

    Attributes
    ----------
    source
        The clients' examples.
    template
        One example's inputs and labels, of which shape and type alone count.
    name, test_inputs, test_labels, classes, vocabulary, test_starts, unscored, vectors
        As in ``Federation``.
    """

    name: str
    source: Source
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
        """Read the same number of examples of each of some clients, as ``Federation.cohort`` returns them.

        Raises
        ------
        InputError
            If a file of theirs cannot be read or breaks a rule.
        """
        # A cohort is filled up with clients that it has already.
        indices, place = np.unique(np.asarray(clients, dtype=np.int64), return_inverse=True)
        inputs, labels = (np.empty((len(indices), examples, *one.shape[1:]), one.dtype) for one in self.template)
        mask = np.zeros((len(indices), examples), np.float32)
        for i, client in enumerate(indices.tolist()):
            some = self.source.read(client, examples)
            count = len(some[1])
            for rows, read in zip((inputs, labels), some, strict=True):
                rows[i, :count], rows[i, count:] = read, read[-1]
            mask[i, :count] = 1.0
        return inputs[place], labels[place], mask[place]
