"""Options of a training."""

import math
from dataclasses import dataclass

from canaryproof.verify.federated import server
from canaryproof.verify.federated.clipping import Clip
from canaryproof.verify.federated.noise import Noise


@dataclass(frozen=True, kw_only=True)
class Training:
    """Options of a training.

    Attributes
    ----------
    clip
        Clip norm function S.
    noise
        Noise generator Z.
    client_rate, local_epochs, batch_size, examples_per_client
        Each client's own training, as for ``clients.Clients``.
    server, server_rate, momentum
        Server's optimiser, as for ``server.Server``.
    seed
        Seed of the initial parameters.

    Raises
    ------
    ValueError
        If a number is out of its range.
    """

    clip: Clip
    noise: Noise
    client_rate: float
    batch_size: int
    examples_per_client: int
    local_epochs: int = 1
    server: str = "sgd"
    server_rate: float = 1.0
    momentum: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("client_rate", "server_rate"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be finite and not negative, not {getattr(self, name)!r}")
        for name in ("batch_size", "examples_per_client", "local_epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        if self.server not in server.NAMES:
            raise ValueError(f"server must be {' or '.join(server.NAMES)}, not {self.server!r}")
        if not 0.0 <= self.momentum < 1.0:
            raise ValueError(f"momentum must lie in [0, 1), not {self.momentum!r}")
