"""Audits by CANIFE of a dense network whose clients have one example each, with held-out examples for mock clients."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.papers.canife.attack import Response
from canaryproof.verify.papers.canife.descent import DenseDesigner
from canaryproof.verify.papers.canife.design import Canary, Starts, noise
from canaryproof.verify.papers.canife.factored import FactoredState, FactoredUpdates
from canaryproof.verify.papers.canife.options import CanaryOptions
from canaryproof.verify.papers.training.data.federation import Federation
from canaryproof.verify.papers.training.faults import Fault, with_unclipped
from canaryproof.verify.papers.training.networks import Params


@dataclass(frozen=True)
class DenseAudit:
    """A canary that was designed for a frozen model, and its inner products with the clients of trial rounds."""

    canary: Canary
    response: Response


class DenseAuditor:
    """Auditor of the models of one federation; compiled at the first design.

    In DP-SGD updates are negative gradients, so that clients make one step at rate 1.
    """

    def __init__(self, federation: Federation, options: CanaryOptions, clip_norm: float = 1.0) -> None:
        self._federation = federation
        self._updates = FactoredUpdates(clip_norm)
        self._designer = DenseDesigner(self._updates, options)

    def audit(
        self,
        params: Params,
        pool: NDArray[np.int64],
        rng: np.random.Generator,
        *,
        starts: Starts | None = None,
    ) -> DenseAudit:
        """Design a canary, and compute its inner products with the training's clients."""
        canary = self.design(params, pool, rng, starts)
        return DenseAudit(canary, self.response(self.clients(params), canary))

    def design(
        self, params: Params, pool: NDArray[np.int64], rng: np.random.Generator, starts: Starts | None = None
    ) -> Canary:
        """Design a canary with a pool of held-out examples, from normal pixels unless ``starts`` says otherwise."""
        starts = starts or noise(self._federation.inputs.shape[1:], self._federation.classes)
        return self._designer.design(self.pool_state(params, pool), starts, rng)

    def response(self, clients: FactoredState, canary: Canary) -> Response:
        """Compute a canary's inner products with clients of trial rounds."""
        return self._updates.response(clients, [canary])

    def pool_state(self, params: Params, pool: NDArray[np.int64]) -> FactoredState:
        """Return the updates of mock clients, a held-out example each."""
        examples = self._examples(self._federation.test_inputs[pool], self._federation.test_labels[pool])
        return self._updates.prepare(params, *examples)

    def clients(self, params: Params, fault: Fault | None = None) -> FactoredState:
        """Return the updates of the training's clients, as a server with a fault takes them."""
        examples = self._examples(self._federation.inputs, self._federation.labels)
        state = self._updates.prepare(params, *examples)
        return with_unclipped(state, params, *examples) if fault is Fault.CLIPPING else state

    @staticmethod
    def _examples(inputs: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]:
        return inputs[:, None], labels[:, None], np.ones((len(labels), 1), np.float32)
