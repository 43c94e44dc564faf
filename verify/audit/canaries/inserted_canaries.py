"""Canaries in a training by Opacus, between its clipping and its noise.

``DPOptimizer`` clips each example's gradient, adds the clipped gradients up over the physical batches of a step, and
then adds noise to the sum. A canary stands for an example: its gradient is a random direction of the clip norm. It
joins the sum once a step, just before the noise. So it is not clipped, and not counted twice where a step has several
physical batches (``BatchMemoryManager``). Its rounds are those of a ``Participation``, drawn apart from the data.

The sum before the canaries join it is all that other data add to a step. Differential privacy's adversary knows it, so
that it is taken out of what is scored.

Nothing here imports torch or Opacus.
"""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels.arrays import on_host
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients, Pair
from canaryproof.verify.audit.canaries.grouped_canaries import GroupedCanaries
from canaryproof.verify.audit.canaries.participation import Participation
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.canaries.shapes import flatten, split
from canaryproof.verify.audit.canaries.sharded_canaries import ShardedCanaries
from canaryproof.verify.audit.estimators.noise_multiplier import Evidence

_FSDP = "FSDPOptimizerFastGradientClipping"
# Ghost clipping has its clipped sum in the same place, and adds its noise in the same way.
_SERVED = (
    "DPOptimizer",
    "DPOptimizerFastGradientClipping",
    "DPPerLayerOptimizer",
    "AdaClipDPOptimizer",
    # Each process has the sum of its examples, and the first one adds the noise.
    "DistributedDPOptimizer",
    "DistributedDPOptimizerFastGradientClipping",
    "SimpleDistributedPerLayerOptimizer",
    # Each process has a shard of the sum over all examples, and adds that shard's noise.
    _FSDP,
)


@set_module("canaryproof.typing")
class InsertedCanaries:
    """Canaries that a watch inserts into a training by Opacus, with their scores: ``watch(…, insert=200).canaries``.

    Each step of the optimizer has canaries in its sum of clipped gradients, a canary for an example. What is scored is
    that sum with its noise, before it is scaled: what a step releases. It does not depend on the learning rate, on
    momentum or on anything else that the step makes of it. Served are ``DPOptimizer``,
    ``DPOptimizerFastGradientClipping`` (ghost clipping), ``DPPerLayerOptimizer``, ``AdaClipDPOptimizer``, virtual
    steps, secure mode, and schedulers of the noise and of the clip norm.

    With per-layer clipping, a canary's part in each layer has that layer's clip norm. With adaptive clipping, a canary
    counts as a clipped example, and scores are of the gradients: their claim is ``noise_multiplier``'s.

    Of several processes (``DPDDP``, or FSDP with ghost clipping), each inserts with the same arguments, and in each
    step makes only its slice of the canaries' coordinates. Canaries enter once. Inner products are added up over the
    processes, and all of them have the scores.

    Parameters
    ----------
    optimizer
        What ``PrivacyEngine.make_private`` returns.
    participation
        Which canaries take part in which step, a round for each step.
    seed
        Seed of the canaries.

    Attributes
    ----------
    canary_clients
        The canaries with their scores for an attacker who knows all other data, as the adversary of differential
        privacy does: the sum of the clipped gradients is taken out of what a step releases.
    unknown_data
        The same for an attacker who knows nothing of the data, which hide the canaries.
    dim
        Number of parameters that are trained, those with ``requires_grad``: the dimension of what is released, in all
        processes together.

    Raises
    ------
    ValueError
        If the optimizer trains no parameters. A step raises it if gradients are accumulated over several backward
        passes, or if the parameters that are trained have changed.

    Notes
    -----
    Coordinates stand in the order of ``optimizer.params``. Steps beyond the participation have no canaries.
    """

    def __init__(self, optimizer: Any, participation: Participation, seed: int) -> None:
        self._optimizer = optimizer
        self._fsdp = type(optimizer).__name__ == _FSDP
        self._params = list(optimizer.params)
        if not self._params:
            raise ValueError("optimizer: trains no parameters, so that nothing is released")
        count = len(np.asarray(participation.included))
        # With per-layer clipping, each parameter has a clip norm.
        self._clip_norms = tuple(map(float, getattr(optimizer, "max_grad_norms", ())))
        sizes = tuple(math.prod(param.shape) for param in self._params)
        self.dim = sum(sizes)
        canaries: Any = (
            GroupedCanaries(seed, count, sizes, self._clip_norms)
            if self._clip_norms
            else Canaries(seed, count, self.dim)
        )
        # Coordinates that this process scores, of those of its vectors.
        self._scored = slice(0, self.dim)
        if self._fsdp:
            canaries = ShardedCanaries(canaries, _shards(self._params, sizes), self._add_up)
            self._scored = slice(0, canaries.held)
        elif hasattr(optimizer, "world_size"):
            ends = [i * self.dim // optimizer.world_size for i in (optimizer.rank, optimizer.rank + 1)]
            self._scored = slice(*ends)
            canaries = ShardedCanaries(canaries, [self._scored], self._add_up)
        self._initial = self._parameters()
        self._noise = self.noise_multiplier or None
        self.canary_clients = CanaryClients(canaries, participation, noise_multiplier=self._noise)
        self.unknown_data = CanaryClients(canaries, participation, noise_multiplier=self._noise)
        # The sum of others' clipped gradients in the step that is being taken; None if it has no canaries.
        self._others: NDArray[np.floating] | None = None

    @property
    def noise_multiplier(self) -> float:
        """Noise multiplier of the sum of gradients.

        With adaptive clipping it is larger than the accountant's σ, since the noised count of unclipped examples is
        released too. With the count's deviation s it is (σ⁻² − (2s)⁻²)^(−½) (Andrew et al., arXiv 1905.03871,
        Theorem 1).
        """
        sigma = float(self._optimizer.noise_multiplier)
        if type(self._optimizer).__name__ != "AdaClipDPOptimizer" or not sigma:
            return sigma
        return float((sigma**-2 - (2.0 * float(self._optimizer.unclipped_num_std)) ** -2) ** -0.5)

    def scores(self, score: str, *, known: bool = True) -> Scores:
        """Return the canaries' scores for an attacker, with the traces that measure the noise.

        Parameters
        ----------
        score
            As for ``CanaryClients.scores``. ``"likelihood"`` serves steps that are drawn by Poisson sampling, with the
            optimizer's noise multiplier at the start.
        known
            Whether the attacker knows all other data. Without it, ``"largest"`` is Algorithm 3 of Andrew et al.
            (arXiv 2302.03098).

        Returns
        -------
        The scores, for ``audit``.

        Raises
        ------
        ValueError
            As ``CanaryClients.scores`` does.
        """
        return (self.canary_clients if known else self.unknown_data).scores(score)

    def evidence(self, noise_multiplier: float) -> Evidence:
        """Return the evidence against a claimed noise multiplier after each step so far.

        Parameters
        ----------
        noise_multiplier
            Claimed standard deviation of a step's noise, in clip norms, positive.

        Returns
        -------
        The evidence. Its alarm is valid after every step, as ``CanaryClients.evidence`` says.

        Raises
        ------
        ValueError
            If the multiplier is out of its range.
        """
        return self.canary_clients.evidence(noise_multiplier)

    def final(self) -> Pair:
        """Return each canary's cosine with what training has added to the parameters: lines 10 and 11 of Algorithm 2.

        Returns
        -------
        Cosines of observed and of unobserved canaries.

        Raises
        ------
        ValueError
            If the parameters have not changed, or are not finite.
        """
        return self.canary_clients.final(self._parameters().astype(np.float64) - self._initial)

    def warnings(self) -> tuple[str, ...]:
        """Say in a sentence each what looks wrong: steps that are missing, and what ``CanaryClients.warnings`` says."""
        rounds, planned = self.canary_clients.rounds, self.canary_clients.participation.rounds
        missing = (f"{rounds} of {planned} rounds were taken, so that canaries took part less often than planned",)
        return (*(missing if rounds < planned else ()), *self.canary_clients.warnings())

    def save(self, path: Path) -> None:
        """Write the state of all scores, next to a watch's file."""
        self.canary_clients.save(path.with_suffix(".canaries"))
        self.unknown_data.save(path.with_suffix(".others"))

    def load(self, path: Path) -> None:
        """Go on from what ``save`` wrote."""
        self.canary_clients.load(path.with_suffix(".canaries"))
        self.unknown_data.load(path.with_suffix(".others"))

    def enter(self) -> None:
        """Add the canaries of a step to the sum of its clipped gradients, before the noise."""
        now = self.canary_clients.rounds
        self._others = None
        if now >= self.canary_clients.participation.rounds:
            return
        self._check_step()
        # A step goes against the gradient, so that an update is a gradient's negative.
        sums = self._sums()
        self._others = -self._vector(sums)
        total = -self.canary_clients.total(now, float(self._optimizer.max_grad_norm))
        if self._fsdp:
            # FSDP divides the sum over all examples by the number of processes, and Opacus its noise.
            total /= self._optimizer.world_size
        whole = total
        if len(total) < (length := sum(math.prod(part.shape) for part in sums)):
            # Each of the processes, whose sums are added up later, has its slice of the canaries in its sum.
            whole = np.zeros(length)
            whole[self._scored] = total
        for part, canaries in zip(sums, split(whole, sums), strict=True):
            # In place, since Opacus marks a sum as used by an attribute of it.
            part += canaries
        if hasattr(self._optimizer, "sample_size"):
            # A canary counts like an example, one that was clipped, in the share that moves an adaptive clip norm.
            self._optimizer.sample_size += len(self.canary_clients.participants(now))

    def take(self) -> None:
        """Score what a step releases, after the noise."""
        if self._others is None:
            return
        if (self.noise_multiplier or None) != self._noise:
            # A scheduler changes the noise, which the record of all rounds does not have then.
            self.canary_clients.noise_multiplier = self.unknown_data.noise_multiplier = None
        now, released = self.canary_clients.rounds, -self._vector([_local(param.grad) for param in self._params])
        self.canary_clients.add(released, now, self._others)
        self.unknown_data.add(released, now)

    def _sums(self) -> list[Any]:
        """Return the sums of clipped gradients that this process holds, a part for each parameter."""
        if self._fsdp:
            return [_local(self._optimizer.grad_state[param]["summed_grad"]) for param in self._params]
        return [param.summed_grad for param in self._params]

    def _vector(self, gradients: list[Any]) -> NDArray[np.floating]:
        """Return the coordinates of a sum over all processes that this one scores."""
        vector = flatten(gradients)
        if hasattr(self._optimizer, "world_size") and not self._fsdp:
            vector = self._add_up(vector)
        return vector[self._scored]

    def _parameters(self) -> NDArray[np.floating]:
        """Return the parameters' coordinates that this process scores."""
        return flatten([_local(param) for param in self._params])[self._scored]

    def _add_up(self, array: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return an array added up over the processes of a distributed optimizer."""
        torch = sys.modules["torch"]
        # A process group of GPUs takes tensors that are there.
        held = torch.as_tensor(array.astype(np.float64), device=_local(self._params[0]).device)
        torch.distributed.all_reduce(held)
        return np.asarray(on_host(held), np.float64)

    def _check_step(self) -> None:
        if [id(param) for param in self._optimizer.params] != [id(param) for param in self._params]:
            raise ValueError("optimizer: trains other parameters than at the start, whose number the canaries have")
        if self._optimizer.accumulated_iterations > 1:
            raise ValueError(
                "optimizer: gradients of several batches in one step are not served, as an example may be in several; "
                "use BatchMemoryManager"
            )
        if hasattr(self._optimizer, "_adjusted_noise_multiplier"):
            raise ValueError(
                "optimizer: adaptive clipping with ghost clipping is not served: a step's clip norm follows a count of "
                "the same step, which is taken before canaries enter; use grad_sample_mode='hooks'"
            )
        if tuple(map(float, getattr(self._optimizer, "max_grad_norms", ()))) != self._clip_norms:
            raise ValueError("optimizer: the layers' clip norms have changed, and canaries have those of the start")


def check_optimizer(optimizer: Any) -> None:
    """Raise a ``ValueError`` that names an unsupported optimizer."""
    kind = type(optimizer)
    if not kind.__module__.startswith("opacus."):
        ancestry = [base.__name__ for base in kind.__mro__ if base.__module__.startswith("opacus.")]
        rule = f"a subclass of {ancestry[0]} may clip or add noise in another way" if ancestry else "it is none"
        raise ValueError(
            f"optimizer: must be Opacus' DPOptimizer, as make_private returns it, not {kind.__name__}: {rule}"
        )
    if kind.__name__ not in _SERVED:
        raise ValueError(f"optimizer: {kind.__name__} is not served: it is not known")


def _local(tensor: Any) -> Any:
    """Return the part of a tensor that this process holds, which is all of it but with FSDP."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _shards(params: list[Any], sizes: tuple[int, ...]) -> list[slice]:
    """Return the slices of all coordinates that this process holds of parameters that FSDP has cut."""
    shards, start = [], 0
    for param, size in zip(params, sizes, strict=True):
        if not hasattr(param, "to_local") or len(param.placements) != 1 or not param.placements[0].is_shard(0):
            raise ValueError("optimizer: must train parameters that FSDP cuts along their first axis, by fully_shard")
        # As torch.chunk cuts: the last processes may have fewer rows, or none.
        row, rows = size // param.shape[0], -(-param.shape[0] // param.device_mesh.size())
        first = min(rows * param.device_mesh.get_local_rank(), param.shape[0]) * row
        held = math.prod(_local(param).shape)
        if held:
            shards.append(slice(start + first, start + first + held))
        start += size
    return shards
