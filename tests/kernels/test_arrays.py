"""Vectors of any library and number format, by one rule."""

from importlib.util import find_spec

import ml_dtypes
import numpy as np
import pytest

from canaryproof.kernels.arrays import floating, precision
from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.answer.instruments import ResidualTests
from canaryproof.verify.audit.answer.run_audit import audit_release
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.canaries.round_scores import RoundScores
from canaryproof.verify.audit.watch.loop_watch import LoopWatch

CANARIES = Canaries(3, 6, 64)
# bfloat16 and float16 hold these numbers exactly.
VALUES = np.round(np.random.default_rng(0).normal(size=64) * 8) / 8
FORMATS = ["float16", ml_dtypes.bfloat16, "float32", ">f4", "float64"]


def takers(vector):
    """Everything that takes a vector takes this one; these are the scores."""
    clients = CanaryClients(CANARIES, bernoulli(0, 1.0, 1, 0, Insertion(6, 3)))
    clients.add(vector, 0, known=vector / 2)
    rounds = RoundScores(CANARIES)
    rounds.add(vector)
    watch = LoopWatch(delta=1e-5)
    watch.step(release=vector, total=vector / 2, noise_multiplier=1.0, clip_norm=1.0)
    residuals = ResidualTests(1.0, 64)
    residuals.add(vector)
    return np.concatenate([
        CANARIES.cosines(vector),
        CANARIES.block_cosines(vector.reshape(1, -1))[0],
        rounds.maxima,
        *clients.scores("known rounds").observed[np.newaxis],
        *clients.final(vector),
        audit_release(vector, CANARIES, 1e-5).scores.observed,
        [residuals.measured_deviation, watch.close().finding("noise").numbers[0].value],
    ])  # fmt: skip


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_every_taker_of_a_vector_takes_every_format(dtype):
    held = VALUES.astype(dtype)
    assert np.array_equal(floating(held), VALUES)
    assert floating(held).dtype == (np.float64 if dtype == "float64" else np.float32)
    assert takers(held) == pytest.approx(takers(VALUES), abs=1e-6)


def test_the_precision_is_that_of_the_format():
    spacings = [precision(VALUES.astype(dtype)) for dtype in FORMATS]
    assert spacings == [2.0**-10, 2.0**-7, 2.0**-23, 2.0**-23, 2.0**-52]


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch, which the extra 'opacus' brings")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_every_taker_of_a_vector_takes_torchs_tensors(name):
    import torch

    held = torch.tensor(VALUES, dtype=getattr(torch, name), requires_grad=True)
    assert takers(held) == pytest.approx(takers(VALUES), abs=1e-6)
    assert precision(held) == torch.finfo(held.dtype).eps


@pytest.mark.parametrize("wrong", [np.ones(64, np.int32), np.ones(64, complex), np.ones(64, np.longdouble)], ids=str)
def test_what_is_no_vector_of_floating_point_numbers_is_refused_everywhere_by_one_rule(wrong):
    clients = CanaryClients(CANARIES, bernoulli(0, 1.0, 1, 0, Insertion(6, 3)))
    watch = LoopWatch(delta=1e-5)
    for call in (
        CANARIES.cosines,
        clients.add,
        lambda vector: clients.add(VALUES, 0, known=vector),
        clients.final,
        RoundScores(CANARIES).add,
        lambda vector: watch.step(release=VALUES, total=vector, noise_multiplier=1.0, clip_norm=1.0),
        ResidualTests(1.0, 64).add,
    ):
        with pytest.raises(ValueError, match=f"must be floating-point numbers, not {wrong.dtype}"):
            call(wrong)
