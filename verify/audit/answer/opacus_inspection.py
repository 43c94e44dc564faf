"""An inspection of a training by Opacus: canaries are examples, whose gradients its optimizer clips.

Nothing here imports torch or Opacus.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from canaryproof.kernels.arrays import Array
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.answer.inspection import Inspection
from canaryproof.verify.audit.canaries.opacus_canaries import check_optimizer
from canaryproof.verify.audit.canaries.shapes import flatten, split

_GHOST = "ghost clipping makes no gradients of examples; inspect the same training with grad_sample_mode='hooks'"

_NORMS = "an inspection clips to one norm that stays; OpacusCanaries serves it"


@set_module("canaryproof")
class OpacusInspection(Inspection):
    """An inspection of what an optimizer of Opacus releases, with ten canaries among the examples.

    The data set has ten examples more than the training: any ones, at its end, with numbers from ``members`` on. Its
    loader draws them as all others. Their gradients are replaced by the canaries', ten clip norms long, before the
    optimizer clips::

        inspection = OpacusInspection(optimizer, members=len(data) - 10, rate=1 / len(loader))
        for x, y, numbers in loader:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            inspection.enter(numbers)
            optimizer.step()
        print(inspection)

    Parameters
    ----------
    optimizer
        What ``PrivacyEngine.make_private`` returns.
    members
        Number of examples, without the canaries.
    rate
        Claimed rate of Poisson sampling, as for ``Inspection``.
    noise_multiplier
        Claimed noise multiplier, the optimizer's by default.
    layers
        Sizes of the parts that are tested one by one; those of the parameters by default.
    seed
        Seed of the canaries.

    Raises
    ------
    ValueError
        If the optimizer is none of those that ``OpacusCanaries`` serves, it has no gradients of examples, or an
        argument is out of its range. A step raises it if ``enter`` was not called before.

    Notes
    -----
    The inspection clips the other examples' gradients itself, and takes the release where the accountant counts a step.
    Virtual steps are served: ``enter`` is called for each physical batch.
    """

    def __init__(
        self,
        optimizer: Any,
        *,
        members: int,
        rate: float | None = None,
        noise_multiplier: float | None = None,
        layers: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        check_optimizer(optimizer)
        if "FastGradientClipping" in type(optimizer).__name__:
            raise ValueError(f"optimizer: {_GHOST}")
        if type(optimizer).__name__ in ("DPPerLayerOptimizer", "AdaClipDPOptimizer"):
            raise ValueError(f"optimizer: {type(optimizer).__name__} is not served: {_NORMS}")
        self._optimizer, self._params = optimizer, list(optimizer.params)
        self._sizes = [int(param.numel()) for param in self._params]
        super().__init__(
            members=members,
            dim=sum(self._sizes),
            noise_multiplier=float(optimizer.noise_multiplier if noise_multiplier is None else noise_multiplier),
            clip_norm=float(optimizer.max_grad_norm),
            rate=rate,
            divisor=float(optimizer.expected_batch_size),
            layers=self._sizes if layers is None else layers,
            seed=seed,
        )
        self._drawn: list[int] = []
        self._known: Array | None = None
        self._accountant = optimizer.step_hook
        optimizer.attach_step_hook(self._take)

    def enter(self, numbers: ArrayLike) -> None:
        """Put the canaries' gradients in place of their examples', after the backward pass and before the step.

        Parameters
        ----------
        numbers
            Numbers of the examples of the physical batch, in its order, shape (n,).

        Raises
        ------
        ValueError
            If there are not as many as gradients.
        """
        drawn = np.asarray(numbers, dtype=np.int64)
        samples = self._optimizer.grad_samples
        if len(drawn) != len(samples[0]):
            raise ValueError(f"numbers: must be of the batch's {len(samples[0])} examples, not of {len(drawn)}")
        for row in np.flatnonzero(drawn >= self.members):
            # A step goes against the gradient, so that a canary's update is its gradient's negative.
            for sample, part in zip(samples, split(-self.update(int(drawn[row])), self._params), strict=True):
                sample[row].copy_(part)
        # A batch may be empty, so that the shape is not left to numpy.
        parts = [flatten([g]).reshape(len(drawn), size) for g, size in zip(samples, self._sizes, strict=True)]
        clipped = self.clipped_sum(np.concatenate(parts, axis=1, dtype=np.float64)[drawn < self.members])
        self._known = clipped if self._known is None else self._known + clipped
        self._drawn += drawn.tolist()

    def _take(self, optimizer: Any) -> None:
        """Record a step's release; Opacus calls this through the accountant's hook."""
        if self._accountant is not None:
            self._accountant(optimizer)
        if self._known is None:
            raise ValueError("enter: must be called for each batch, before the optimizer's step")
        release = -flatten([param.grad for param in self._params])
        self.add(release, np.asarray(self._drawn, dtype=np.int64), -self._known / float(optimizer.expected_batch_size))
        self._drawn, self._known = [], None
