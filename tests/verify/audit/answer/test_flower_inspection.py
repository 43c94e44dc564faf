import logging
import sys
from pathlib import Path

import numpy as np
import pytest

from canaryproof import FlowerInspection

flwr = pytest.importorskip("flwr", reason="needs the extra 'flower'")

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict  # noqa: E402
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[4] / "examples"))
from flower_app import GridInProcess  # noqa: E402

MEMBERS, COHORT, CLIP_NORM, NOISE = 30, 10, 0.5, 1.5
SHAPES = ((40, 20), (20,))


class Grid(GridInProcess):
    """Clients who return updates of about two clip norms."""

    def send_and_receive(self, messages, *, timeout=None):  # noqa: ARG002
        return [self.answer(message) for message in messages]

    def answer(self, message):
        rng = np.random.default_rng(message.metadata.dst_node_id)
        arrays = message.content["arrays"].to_numpy_ndarrays()
        trained = [array + rng.normal(size=array.shape).astype(np.float32) / 28.0 for array in arrays]
        content = RecordDict({"arrays": ArrayRecord(trained), "metrics": MetricRecord({"num-examples": 5})})
        return Message(content, reply_to=message)


def inspected(noise=NOISE, clip_norm=CLIP_NORM, rounds=12, members=MEMBERS, clients=MEMBERS):
    logging.getLogger("flwr").setLevel(logging.ERROR)
    np.random.seed(0)  # noqa: NPY002 - Flower draws its noise and its cohorts so.
    fedavg = FedAvg(fraction_train=COHORT / (MEMBERS + 10), fraction_evaluate=0.0)
    strategy = DifferentialPrivacyServerSideFixedClipping(fedavg, noise, clip_norm, COHORT)
    arrays = ArrayRecord([np.full(shape, 0.1, np.float32) for shape in SHAPES])
    inspection = FlowerInspection(
        strategy, arrays, members=members, noise_multiplier=NOISE, clip_norm=CLIP_NORM, divisor=COHORT
    )
    strategy.start(Grid(clients), arrays, rounds, train_config=ConfigRecord({}))
    return inspection


def test_flowers_own_wrapper_is_not_refuted_and_clips_canaries():
    inspection = inspected()
    assert inspection.rounds == 12
    assert not inspection.has_failed
    clipping = next(test.observed for test in inspection.tests() if test.name == "clipping")
    assert float(clipping.split()[-3]) == pytest.approx(1.0, abs=0.9)


def test_less_noise_and_no_clipping_are_seen():
    assert {"noise"} <= {test.name for test in inspected(noise=1.0).tests() if test.has_failed}
    # The wrapper's noise is its multiplier times the clip norm, here with a hundred times the clip norm.
    # After 72 rounds the divisor is off by 11.2 ± 1.0 standard errors, of which its test needs 4.9.
    unclipped = inspected(noise=NOISE / 100.0, clip_norm=100 * CLIP_NORM, rounds=72)
    refuted = {test.name for test in unclipped.tests() if test.has_failed}
    assert {"clipping", "divisor"} <= refuted


def test_another_number_of_clients_is_refused():
    with pytest.raises(ValueError, match="members: must be the number of the grid's nodes, 30, not 29"):
        inspected(members=29, rounds=1)
