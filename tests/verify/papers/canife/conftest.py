import os
from pathlib import Path

import jax
import numpy as np
import pytest

from canaryproof.verify.papers.training.data import digits, idx
from canaryproof.verify.papers.training.networks import model


def trained(network, federation, steps, seed):
    """Parameters after some steps of plain gradient descent on batches of 128."""
    rng = np.random.default_rng(seed)
    mask = np.ones(128, np.float32)
    step = jax.jit(
        lambda params, *batch: jax.tree.map(
            lambda p, g: p - 0.5 * g, params, jax.grad(network.loss)(params, *batch, mask)
        )
    )
    params = network.init(seed)
    for _ in range(steps):
        chosen = rng.integers(0, len(federation.labels), 128)
        params = step(params, federation.inputs[chosen], federation.labels[chosen])
    return params


@pytest.fixture(scope="session")
def handwriting():
    """A small trained network for the digits of scikit-learn: federation of one example a client, model, parameters."""
    federation = digits.load(1, 0)
    network = model("two_layer", federation, hidden=16)
    return federation, network, trained(network, federation, 200, 1)


@pytest.fixture(scope="session")
def mnist():
    """CANIFE's two-layer network, trained on MNIST."""
    folder = os.environ.get("CANARYPROOF_DATA")
    if folder is None or not (Path(folder) / "mnist").is_dir():
        pytest.skip("CANARYPROOF_DATA names no folder with mnist/")
    federation = idx.load(Path(folder) / "mnist", 1, 0)
    network = model("two_layer", federation)
    return federation, network, trained(network, federation, 300, 1)
