"""What an inspection takes of a round of Flower, by stand-ins that do not need it."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from canaryproof import FlowerInspection
from canaryproof.kernels.arrays import precision

MEMBERS, CLIP_NORM, DIVISOR = 5, 0.5, 4.0
SHAPES = ((3, 2), (4,))
DIM = 10


def recorded(inspection, monkeypatch):
    """Record what is added to an inspection."""
    taken = []
    monkeypatch.setattr(inspection, "add", lambda *given: taken.append([np.asarray(each) for each in given]))
    return taken


def clipped(rows):
    return sum(row * min(1.0, CLIP_NORM / np.linalg.norm(row)) for row in np.asarray(rows, np.float64))


class Arrays:
    """A record of a model's arrays, as Flower has it."""

    def __init__(self, arrays):
        self.arrays = [np.asarray(array, np.float32) for array in arrays]

    def values(self):
        return self.arrays

    def to_numpy_ndarrays(self):
        return self.arrays


def message(node, arrays=None, failed=False):
    """A message to a node, or its reply."""
    content = SimpleNamespace(array_records=SimpleNamespace(values=lambda: [Arrays(arrays or [])]))
    metadata = SimpleNamespace(dst_node_id=node, src_node_id=node)
    return SimpleNamespace(metadata=metadata, content=content, has_error=lambda: failed)


def test_a_round_of_flower_is_taken_with_the_answers_of_clients_and_canaries(monkeypatch):
    rng, nodes = np.random.default_rng(0), [40, 10, 30, 20, 50]
    before, after = ([scale * rng.normal(size=shape) for shape in SHAPES] for scale in (20.0, 10.0))
    # The strategy draws two clients, of which one fails, and canaries 1 and 8, whose nodes follow the others.
    drawn, canaries, seen = [30, 10], [52, 59], []

    def configure(_round, _arrays, _config, grid):
        seen.append(grid.get_node_ids())
        return [message(node) for node in itertools.chain(drawn, canaries)]

    def aggregate(_round, replies):
        seen.append([reply.metadata.src_node_id for reply in replies])
        return Arrays(after), None

    strategy = SimpleNamespace(configure_train=configure, aggregate_train=aggregate)
    claim = {"members": MEMBERS, "noise_multiplier": 1.0, "clip_norm": CLIP_NORM, "divisor": DIVISOR}
    inspection = FlowerInspection(strategy, Arrays(before), **claim)
    assert (inspection._residuals.dim, inspection._residuals._sizes.tolist()) == (DIM, [6, 4])
    other = FlowerInspection(SimpleNamespace(**vars(strategy)), Arrays(before), **claim, layers=[7, 3])
    assert other._residuals._sizes.tolist() == [7, 3]
    taken = recorded(inspection, monkeypatch)
    updates = []
    monkeypatch.setattr(
        inspection,
        "_answer",
        lambda sent, _: (
            updates.append(inspection._numbers[sent.metadata.dst_node_id]) or message(sent.metadata.dst_node_id)
        ),
    )
    grid = SimpleNamespace(get_node_ids=lambda: nodes)
    sent = strategy.configure_train(1, Arrays(before), None, grid)
    assert [each.metadata.dst_node_id for each in sent] == drawn
    assert seen.pop() == [*nodes, *range(51, 61)]
    update = [0.3 * rng.normal(size=shape) for shape in SHAPES]
    answer = message(30, [old + new for old, new in zip(before, update, strict=True)])
    strategy.aggregate_train(1, [answer, message(10, failed=True)])
    assert seen.pop() == [30, 10, 52, 59]
    # Canaries have the numbers after the members, which are in the order of their nodes.
    assert updates == [MEMBERS + 1, MEMBERS + 8]
    ((release, numbers, known, rounding),) = taken
    first, last = (np.concatenate([np.float32(array).ravel() for array in arrays]) for arrays in (before, after))
    assert release == pytest.approx(last - first)
    assert numbers.tolist() == [2, MEMBERS + 1, MEMBERS + 8]
    row = np.concatenate([array.ravel() for array in update])
    assert known == pytest.approx(clipped([row]) / DIVISOR, abs=1e-5)
    # A difference of two models in single precision has the rounding of both.
    assert rounding == pytest.approx(precision(last) * (np.abs(first).max() + np.abs(last).max()))
    with pytest.raises(ValueError, match="replies: must have a client's besides the canaries' in round 2"):
        strategy.aggregate_train(2, [message(30, failed=True)])
    with pytest.raises(ValueError, match="members: must be the number of the grid's nodes, 4, not 5"):
        strategy.configure_train(3, Arrays(before), None, SimpleNamespace(get_node_ids=lambda: nodes[1:]))
