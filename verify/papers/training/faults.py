"""Faults of a server, by which audits are compared: two of its noise, and one of its clipping."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.papers.canife.factored import FactoredState, FactoredUpdates
from canaryproof.verify.papers.training.clients import CohortSum, CohortSums
from canaryproof.verify.papers.training.noise import Noise

# One client in this many is not clipped.
EVERY = 100
# A clip norm that clips nothing.
_FAR = 1e30
FREE = FactoredUpdates(_FAR)


class Fault(Enum):
    """A fault of the server."""

    NOISE = auto()  # the first round's noise in all rounds
    COORDINATES = auto()  # no noise on every second coordinate
    CLIPPING = auto()  # no clipping of one client in a hundred


@dataclass(frozen=True)
class Repeated:
    """Noise of the first round in all rounds: the difference of two deltas has none."""

    noise: Noise

    @property
    def noise_multiplier(self) -> float:
        """Noise multiplier of a round."""
        return self.noise.noise_multiplier

    def sample(self, round: int, dim: int, clip_norm: float) -> NDArray[np.floating]:  # noqa: A002, ARG002
        """Return the noise of the first round, whatever the round."""
        return self.noise.sample(0, dim, clip_norm)

    def sensitivity(self, rounds: Sequence[int]) -> float:  # noqa: ARG002
        """Return infinity, as no noise hides the difference of two deltas."""
        return np.inf


@dataclass(frozen=True)
class Halved:
    """Noise on the even coordinates alone: half of each update is released as it is."""

    noise: Noise

    @property
    def noise_multiplier(self) -> float:
        """Noise multiplier of a round, where there is noise."""
        return self.noise.noise_multiplier

    def sample(self, round: int, dim: int, clip_norm: float) -> NDArray[np.floating]:  # noqa: A002
        """Return the noise of a round, without its odd coordinates."""
        noise = self.noise.sample(round, dim, clip_norm)
        noise[1::2] = 0.0
        return noise

    def sensitivity(self, rounds: Sequence[int]) -> float:  # noqa: ARG002
        """Return infinity, as no noise hides the odd coordinates."""
        return np.inf


def faulty_noise(noise: Noise, fault: Fault | None) -> Noise:
    """Return the noise that a server with a fault adds."""
    if fault is Fault.NOISE:
        return Repeated(noise)
    return Halved(noise) if fault is Fault.COORDINATES else noise


def trial_noise(fault: Fault | None, noise_multiplier: float, canary: NDArray[np.floating]) -> float:
    """Return the noise multiplier that a canary's scores have in trial rounds of a server with a fault."""
    if fault is Fault.NOISE:
        # All trials have the same noise. It moves all scores alike, and no threshold's errors.
        return 0.0
    if fault is Fault.COORDINATES and canary.any():
        return noise_multiplier * float(np.linalg.norm(canary[::2]) / np.linalg.norm(canary))
    return noise_multiplier


class Unclipped:
    """Clients of which one in a hundred is not clipped, in the place of ``Clients``."""

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


def with_unclipped(
    state: FactoredState, params: Any, inputs: ArrayLike, labels: ArrayLike, mask: ArrayLike
) -> FactoredState:
    """Return what ``FactoredUpdates.prepare`` made of these clients, but with one in a hundred not clipped."""
    free = FREE.prepare(params, inputs, labels, mask)

    def mixed(clipped: ArrayLike, unclipped: ArrayLike) -> NDArray[np.floating]:
        parts = np.array(clipped)
        parts[::EVERY] = np.asarray(unclipped)[::EVERY]
        return parts

    return state._replace(clients=jax.tree.map(mixed, state.clients, free.clients))
