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
        trials_of_pool: bool = False,
        fault: Fault | None = None,
    ) -> DenseAudit:
        """Design a canary for a model with a pool of held-out examples.

        Trial rounds are of the training's clients, or of the pool's. Designs begin with normal pixels unless ``starts``
        says otherwise.
        """
        federation = self._federation
        state = self.pool_state(params, pool, fault)
        starts = starts or noise(federation.inputs.shape[1:], federation.classes)
        canary = self._designer.design(state, starts, rng)
        clients = state if trials_of_pool else self._state(params, federation.inputs, federation.labels)
        return DenseAudit(canary, self._updates.response(clients, [canary]))

    def pool_state(self, params: Params, pool: NDArray[np.int64], fault: Fault | None = None) -> FactoredState:
        """Return the updates of mock clients, a held-out example each."""
        examples = self._federation.test_inputs[pool], self._federation.test_labels[pool]
        return self._state(params, *examples, fault)

    def _state(
        self, params: Params, inputs: NDArray[Any], labels: NDArray[Any], fault: Fault | None = None
    ) -> FactoredState:
        examples = inputs[:, None], labels[:, None], np.ones((len(labels), 1), np.float32)
        state = self._updates.prepare(params, *examples)
        return with_unclipped(state, params, *examples) if fault is Fault.CLIPPING else state
