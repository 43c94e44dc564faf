"""A watch over a training by Opacus in several processes, of which the first one answers for all.

Each process looks at its own examples. With each step they exchange who was drawn, what was found and whether there was
noise, so that nothing waits for another process when an answer is asked for. The first process makes the tests.

Nothing here imports torch or Opacus.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels.arrays import Array, Ints
from canaryproof.verify.audit.answer.findings import Question, Status
from canaryproof.verify.audit.watch.opacus_watch import OpacusWatch, flat
from canaryproof.verify.audit.watch.watch_record import (
    AttackerEstimate,
    ClippingRecord,
    Observation,
    WatchRecord,
)

# The gradients that processes train by are compared in every so many steps, by so many products with random signs.
_EVERY, _PRODUCTS = 10, 8
# They are another vector's multiple if the cosine of these products is so far from 1: formats of 16 bits round less.
_APART = 1e-3


@dataclass(frozen=True)
class _StepPart:
    """A step, as one process has it."""

    members: Ints | None
    # Whether something was added to the clipped sum; None if that was not seen.
    has_noise: bool | None
    clipping: ClippingRecord
    observations: Mapping[tuple[Question, str], Observation]
    # Products of random signs with this process's gradient, and with that of all processes, if they were compared.
    products: tuple[Array, Array] | None
    has_failed: bool


class DistributedWatch(OpacusWatch):
    """A watch over a training by Opacus in several processes (``DPDDP``), made in each of them with equal arguments.

    That of the first process has the answer.
    """

    is_in_one_process = False

    def _patch(self) -> None:
        self._rank, self._processes = int(self._optimizer.rank), int(self._optimizer.world_size)
        self._products: tuple[Array, Array] | None = None
        self._stops = False
        super()._patch()
        sampler = self._batches.sampler
        # Opacus' and torch's own samplers know of all processes.
        if not hasattr(sampler, "total_size") and not hasattr(getattr(sampler, "sampler", None), "num_replicas"):
            because = "each process draws by a sampler that does not know of the others"
            do = "Train with the loader that make_private returns."
            self._observe(Question.SAMPLING, Status.CANNOT_SAY, "apart", because, do)
        self._reduce = self.patch(self._optimizer, "reduce_gradients", self._reduce_and_look)

    def _reduce_and_look(self) -> None:
        """Replace the optimizer's ``reduce_gradients``, which adds the gradients of all processes up in each step."""
        before = self._signed_sums() if (self.steps - 1) % _EVERY == 0 else None
        self._reduce()
        self._products = None if before is None else (before, self._signed_sums())

    def _signed_sums(self) -> Array:
        """Return products of the gradient with random signs, which are the same in all processes."""
        torch, gradient = sys.modules["torch"], flat([p.grad for p in self._params]).cpu()
        generator, sums = torch.Generator().manual_seed(self.steps), []
        for _ in range(_PRODUCTS):
            signs = torch.randint(0, 2, gradient.shape, generator=generator, dtype=torch.int8)
            sums.append(float((gradient * (2 * signs - 1)).sum(dtype=torch.float64)))
        return np.array(sums)

    def _take_noise_and_members(
        self, residual: tuple[NDArray[Any], float] | None, sigma: float, drawn: Ints | None
    ) -> None:
        """Exchange with the other processes what there is of a step, and take it in the first one."""
        distributed = sys.modules["torch"].distributed
        has_noise = None if residual is None else bool(np.any(residual[0]))
        failed = super().has_failed if self._rank == 0 else False
        mine = _StepPart(drawn, has_noise, self._clipping, self._observations, self._products, failed)
        self._products = None
        parts: list[Any] = [None] * self._processes
        distributed.all_gather_object(parts, mine)
        self._stops = any(part.has_failed or _has_failed(part.observations) for part in parts)
        noises = [part.has_noise for part in parts]
        if residual is not None and None not in noises and any(noises[1:]):
            residual = self._total(residual[0]), residual[1] * self._processes
        if self._rank:
            # The first process has them from now on.
            self._clipping, self._observations = ClippingRecord(), {}
            self._count_step(sigma, None, None)
            return
        for number, part in enumerate(parts[1:], 1):
            self._take_part(number, part)
        self._compare_gradients([part.products for part in parts])
        members = [part.members for part in parts]
        joint = None if any(each is None for each in members) else np.concatenate(members)
        super()._take_noise_and_members(None if None in noises else residual, sigma, joint)

    def _total(self, residual: NDArray[Any]) -> NDArray[Any]:
        """Return what all processes together have added to a step's clipped sums."""
        torch = sys.modules["torch"]
        whole = torch.from_numpy(residual).to(self._params[0].device)
        torch.distributed.all_reduce(whole)
        return np.asarray(whole.cpu().numpy())

    def _take_part(self, number: int, part: _StepPart) -> None:
        """Take what another process has found."""
        for key, seen in part.observations.items():
            self._observations.setdefault(key, replace(seen, because=f"in process {number}, {seen.because}"))
        if part.has_noise:
            because = f"process {number} adds something to its clipped sum, and not the first one alone"
            do = "Let the first process add the noise, as Opacus does, or show that it does not depend on data."
            self._observe(Question.NOISE, Status.CANNOT_SAY, "elsewhere", because, do)
        mine, other, worst = self._clipping, part.clipping, part.clipping.worst
        self._clipping = replace(
            mine,
            gradients=mine.gradients + other.gradients,
            long=mine.long + other.long,
            longest=max(mine.longest, other.longest),
            sums=max(mine.sums, other.sums),
            apart=max(mine.apart, other.apart),
            alone=mine.alone + other.alone,
            trials=mine.trials + other.trials - (worst is not None),
        )
        if worst is not None:
            self._note_trials([replace(worst, member=f"{worst.member}, in process {number}")])

    def _compare_gradients(self, products: list[tuple[Array, Array] | None]) -> None:
        """Check that each process trains by the sum over all of them, or a multiple of it."""
        seen = [each for each in products if each is not None]
        if len(seen) < len(products):
            return
        whole = sum(before for before, _ in seen)
        for number, (_, after) in enumerate(seen):
            lengths = float(np.linalg.norm(whole) * np.linalg.norm(after))
            if not abs(float(whole @ after)) >= (1.0 - _APART) * lengths:
                because = (
                    f"process {number} trains by another gradient than the sum over all processes, of which the "
                    f"first one's noise is a part (step {self.steps})"
                )
                do = "Train by Opacus' DistributedDPOptimizer, which adds the gradients up."
                self._observe(Question.NOISE, Status.FAILED, "reduced", because, do)

    @property
    def has_failed(self) -> bool:
        """Whether a check has failed, as all processes knew in the last step, so that they can stop together."""
        return self._stops

    def _attackers(self) -> tuple[AttackerEstimate, ...]:
        return () if self._rank else super()._attackers()

    def _record(self) -> WatchRecord:
        """Return what was recorded; of another process than the first one, that it is elsewhere."""
        record = super()._record()
        if not self._rank:
            return record
        because, do = "the first process answers for all", "Ask its watch."
        elsewhere = (Observation(question, Status.CANNOT_SAY, self.steps, because, do) for question in _QUESTIONS)
        return replace(record, observations=tuple(elsewhere))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file of ``Watch.save`` in the first process, and nothing in another.

        Parameters
        ----------
        path
            As for ``Watch.save``.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        if not self._rank:
            super().save(path)

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Go on from what ``save`` wrote, in each process.

        Parameters
        ----------
        path
            The file of a watch with the same claim, taken before the first step.

        Raises
        ------
        InputError
            If it cannot be read, or is of another claim or release.
        ValueError
            If a step was taken already.
        """
        super().resume(path)
        if self._rank:
            self._clipping, self._observations = ClippingRecord(), {}


class ShardedWatch(OpacusWatch):
    """A watch over FSDP, which inserts canaries and looks at nothing else: a process has a shard of each sum."""

    is_in_one_process = False

    def _patch(self) -> None:
        for question in (Question.NOISE, Question.CLIPPING, Question.SAMPLING):
            because = f"by {type(self._optimizer).__name__} a process has a shard of what a step releases"
            do = "Watch the same training in one process for some steps; canaries do not show this."
            if question is Question.NOISE:
                do = "Watch the same training in one process, or insert canaries."
            self._observe(question, Status.CANNOT_SAY, "sharded", because, do)
        self._add_noise = self.patch(self._optimizer, "add_noise", self._insert_and_add_noise)
        self._patch_hook(self._count_step_of_a_shard)
        self._batches.restore()

    def _count_step_of_a_shard(self, optimizer: Any) -> None:
        if self._hook is not None:
            self._hook(optimizer)
        self._count_step(float(optimizer.noise_multiplier), None, None)


_QUESTIONS = (Question.NOISE, Question.CLIPPING, Question.SAMPLING, Question.ACCOUNTING, Question.LEAK)
_KINDS: dict[str, Callable[..., OpacusWatch]] = {
    "DistributedDPOptimizer": DistributedWatch,
    "SimpleDistributedPerLayerOptimizer": DistributedWatch,
    "DistributedDPOptimizerFastGradientClipping": DistributedWatch,
    "FSDPOptimizerFastGradientClipping": ShardedWatch,
}


def watch_of_optimizer(optimizer: Any, loader: Any, **options: Any) -> OpacusWatch:
    """Return the watch over an optimizer of Opacus, in one process or in one of several."""
    return _KINDS.get(type(optimizer).__name__, OpacusWatch)(optimizer, loader, **options)


def _has_failed(observations: Mapping[Any, Observation]) -> bool:
    return any(seen.status is Status.FAILED for seen in observations.values())
