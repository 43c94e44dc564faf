"""Faults of a server that break what audits or accountants take for granted, to see which audit notices."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.canife.factored import FactoredUpdates, State
from canaryproof.verify.federated.clients import CohortSum, CohortSums
from canaryproof.verify.federated.noise import Independent

# Of so many clients one is not clipped.
EVERY = 100
# Clips nothing; one object, so that it is compiled once.
_FAR = 1e30
_FREE = FactoredUpdates(_FAR)


class Fault(Enum):
    """A fault of the server."""

    NOISE = auto()  # the first round's noise in all rounds
    COORDINATES = auto()  # no noise on every second coordinate
    CLIPPING = auto()  # no clipping of one client in a hundred


@dataclass(frozen=True)
class Repeated:
    """Noise of the first round in all rounds: the difference of two deltas has none.

    Attributes
    ----------
    noise
        The noise as it should be.
    """

    noise: Independent

    @property
    def noise_multiplier(self) -> float:
        """Noise multiplier of a round."""
        return self.noise.noise_multiplier

    def sample(self, round: int, dim: int, clip_norm: float) -> NDArray[np.floating]:  # noqa: A002, ARG002
        """Return the noise of a round, as ``Independent`` does for the first."""
        return self.noise.sample(0, dim, clip_norm)

    def sensitivity(self, rounds: Sequence[int]) -> float:  # noqa: ARG002
        """Return what nothing hides."""
        return np.inf


@dataclass(frozen=True)
class Halved:
    """Noise on the even coordinates alone: half of each update is released as it is.

    Attributes
    ----------
    noise
        The noise as it should be.
    """

    noise: Independent

    @property
    def noise_multiplier(self) -> float:
        """Noise multiplier of a round, where there is noise."""
        return self.noise.noise_multiplier

    def sample(self, round: int, dim: int, clip_norm: float) -> NDArray[np.floating]:  # noqa: A002
        """Return the noise of a round, as ``Independent`` does on the even coordinates."""
        noise = self.noise.sample(round, dim, clip_norm)
        noise[1::2] = 0.0
        return noise

    def sensitivity(self, rounds: Sequence[int]) -> float:  # noqa: ARG002
        """Return what nothing hides."""
        return np.inf


def trial_noise(fault: Fault, noise_multiplier: float, canary: NDArray[np.floating]) -> float:
    """Return the noise multiplier that a canary's scores have in trial rounds of a server with a fault.

    Parameters
    ----------
    fault
        The fault.
    noise_multiplier
        Noise multiplier as it should be.
    canary
        The canary's update, all coordinates.
    """
    if fault is Fault.NOISE:
        # All trials have the same noise. It moves all scores alike, and no threshold's errors.
        return 0.0
    if fault is Fault.COORDINATES:
        return noise_multiplier * float(np.linalg.norm(canary[::2]) / np.linalg.norm(canary))
    return noise_multiplier


class Unclipped:
    """Clients of which one in a hundred is not clipped, in the place of ``Clients``.

    Parameters
    ----------
    clients
        The clients as they should be.
    """

    def __init__(self, clients: CohortSums) -> None:
        self._clients = clients

    def sum(self, theta: jax.Array | NDArray[np.float32], clients: NDArray[np.int64], clip_norm: float) -> CohortSum:
        """Train the clients of a round and add their updates, as ``Clients.sum`` does."""
        faulty = clients % EVERY == 0
        parts = [
            self._clients.sum(theta, clients[chosen], norm) for chosen, norm in ((~faulty, clip_norm), (faulty, _FAR))
        ]
        norms = np.empty(len(clients), np.float32)
        norms[~faulty], norms[faulty] = (part.norms for part in parts)
        return CohortSum(parts[0].total + parts[1].total, norms)


def with_unclipped(state: State, params: Any, inputs: ArrayLike, labels: ArrayLike, mask: ArrayLike) -> State:
    """Return a state of CANIFE's mock clients in which one in a hundred is not clipped.

    Parameters
    ----------
    state
        What ``FactoredUpdates.prepare`` made of the other arguments.
    params, inputs, labels, mask
        As there.
    """
    free = _FREE.prepare(params, inputs, labels, mask)

    def mixed(clipped: ArrayLike, unclipped: ArrayLike) -> NDArray[np.floating]:
        parts = np.array(clipped)
        parts[::EVERY] = np.asarray(unclipped)[::EVERY]
        return parts

    return state._replace(clients=jax.tree.map(mixed, state.clients, free.clients))
