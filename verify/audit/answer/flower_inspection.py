"""An inspection of a training by Flower: canaries are nodes that return them.

Nothing here imports Flower before a strategy runs.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from canaryproof.kernels.arrays import Array, precision
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.answer.inspection import Inspection
from canaryproof.verify.audit.canaries.shapes import flatten, split


@set_module("canaryproof")
class FlowerInspection(Inspection):
    """An inspection of what a strategy of Flower releases, with ten canary nodes among the clients.

    From here on the strategy sees ten nodes more than there are, and draws them as all others. What is sent to them is
    answered here: the model, with an update of ten clip norms. The strategy's own clipping is to clip it::

        inspection = FlowerInspection(strategy, arrays, members=100, noise_multiplier=0.5, clip_norm=1.0, divisor=50)
        strategy.start(grid, arrays, num_rounds)
        print(inspection)

    Parameters
    ----------
    strategy
        A strategy with ``configure_train`` and ``aggregate_train``, such as one of Flower's wrappers for differential
        privacy.
    arrays
        The model's ``ArrayRecord``.
    members
        Number of clients, without the canaries: that of the grid's nodes.
    noise_multiplier, clip_norm, rate, divisor
        What is claimed, as for ``Inspection``. A server's learning rate divides the divisor.
    layers
        Sizes of the parts that are tested one by one; those of the arrays by default.
    seed
        Seed of the canaries.

    Raises
    ------
    ValueError
        If an argument is out of its range. A round raises it if the grid has another number of nodes, or no client but
        canaries answers.

    Notes
    -----
    A canary's answer has the metrics of another client's. What a round releases is the difference of the models before
    and after it.
    """

    def __init__(
        self,
        strategy: Any,
        arrays: Any,
        *,
        members: int,
        noise_multiplier: float,
        clip_norm: float,
        rate: float | None = None,
        divisor: float | None = None,
        layers: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        sizes = [math.prod(array.shape) for array in arrays.values()]
        super().__init__(
            members=members,
            dim=sum(sizes),
            noise_multiplier=noise_multiplier,
            clip_norm=clip_norm,
            rate=rate,
            divisor=divisor,
            layers=sizes if layers is None else layers,
            seed=seed,
        )
        # Numbers of members by node, canaries among them, once a grid was seen.
        self._numbers: dict[int, int] = {}
        self._before: list[Any] = []
        self._messages: list[Any] = []
        self._inner_configure, self._inner_aggregate = strategy.configure_train, strategy.aggregate_train
        strategy.configure_train, strategy.aggregate_train = self._configure, self._aggregate

    def _configure(self, server_round: int, arrays: Any, config: Any, grid: Any) -> list[Any]:
        """Let the strategy draw among clients and canaries, and hold back what it sends to canaries."""
        nodes = sorted(grid.get_node_ids())
        if len(nodes) != self.members:
            raise ValueError(f"members: must be the number of the grid's nodes, {len(nodes)}, not {self.members}")
        canaries = [nodes[-1] + 1 + j for j in range(self.canaries)]
        self._numbers = {node: number for number, node in enumerate([*nodes, *canaries])}
        self._before = arrays.to_numpy_ndarrays()
        sent = list(self._inner_configure(server_round, arrays, config, _Joined(grid, canaries)))
        self._messages = [message for message in sent if message.metadata.dst_node_id in canaries]
        return [message for message in sent if message.metadata.dst_node_id not in canaries]

    def _aggregate(self, server_round: int, replies: Iterable[Any]) -> Any:
        """Let the strategy take the canaries' answers with the others, and add the round."""
        received = list(replies)
        answered = [reply for reply in received if not reply.has_error()]
        if not answered:
            raise ValueError(f"replies: must have a client's besides the canaries' in round {server_round}")
        joined = [self._answer(message, answered[0].content) for message in self._messages]
        drawn = [self._numbers[reply.metadata.src_node_id] for reply in [*answered, *joined]]
        before = flatten(self._before)
        # A strategy may clip the answers where they stand.
        known = self.clipped_sum([self._vector(reply.content) - before for reply in answered]) / self.divisor
        aggregated = self._inner_aggregate(server_round, [*received, *joined])
        if aggregated[0] is None:
            raise ValueError(f"strategy: must return arrays, and returned none in round {server_round}")
        after = flatten(aggregated[0].to_numpy_ndarrays())
        # Each model's own rounding is in the difference.
        rounding = precision(after) * float(np.abs(before).max() + np.abs(after).max())
        self.add(after - before, np.array(drawn), known, rounding)
        return aggregated

    def _vector(self, content: Any) -> Array:
        (record,) = content.array_records.values()
        return flatten(record.to_numpy_ndarrays()).astype(np.float64)

    def _answer(self, message: Any, other: Any) -> Any:
        """Answer for a canary as another client does."""
        # Flower is an optional library.
        from flwr.app import Array as FlowerArray
        from flwr.app import ArrayRecord, Message, RecordDict

        update = self.update(self._numbers[message.metadata.dst_node_id])
        arrays = [old + new for old, new in zip(self._before, split(update, self._before), strict=True)]
        records = dict(other.items())
        (name,) = other.array_records
        records[name] = ArrayRecord(dict(zip(records[name], map(FlowerArray, arrays), strict=True)))
        return Message(RecordDict(records), reply_to=message)


class _Joined:
    """A grid with further nodes."""

    def __init__(self, grid: Any, nodes: Sequence[int]) -> None:
        self._grid, self._nodes = grid, nodes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)

    def get_node_ids(self) -> list[int]:
        return [*self._grid.get_node_ids(), *self._nodes]
