"""The adapters of this package are sound: each is checked as anybody's."""

from types import SimpleNamespace

import numpy as np
import pytest

import canaryproof as cp
from canaryproof.testing import check_adapter

pytestmark = [pytest.mark.deep, pytest.mark.filterwarnings("ignore")]

MEMBERS, RATE, STEPS, DELTA, COHORT = 800, 0.1, 32, 1e-5, 10
FAULTS_OF_OPACUS = {"half of the noise": "noise", "no clipping": "clipping", "shuffled": "sampling"}
FAULTS_OF_JAX = {
    "half of the noise": "noise",
    "each layer clipped": "clipping",
    "mean subtracted": "clipping",
    "loss of pairs": "clipping",
    "fixed batches": "sampling",
}
FAULTS_OF_FLOWER = {"half of the noise": "noise", "no clipping": "clipping", "twice as often": "sampling"}
CLAIM = cp.accounting.poisson(1.0, rate=RATE, rounds=STEPS)


class OpacusTraining:
    steps, claim = STEPS, CLAIM
    faults = FAULTS_OF_OPACUS
    left_open = exchanged = ()

    def start(self, fault):
        torch = pytest.importorskip("torch", reason="needs torch")
        opacus = pytest.importorskip("opacus", reason="needs opacus")
        torch.manual_seed(0)
        data = torch.utils.data.TensorDataset(3.0 * torch.randn(MEMBERS, 20), torch.randint(3, (MEMBERS,)))
        model = torch.nn.Sequential(torch.nn.Linear(20, 20), torch.nn.ReLU(), torch.nn.Linear(20, 3))
        training = SimpleNamespace(engine=opacus.PrivacyEngine(), fault=fault)
        training.model, training.optimizer, training.loader = training.engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
            data_loader=torch.utils.data.DataLoader(data, batch_size=int(RATE * MEMBERS), shuffle=True),
            noise_multiplier=1.0,
            max_grad_norm=0.5,
            poisson_sampling=fault != "shuffled",
        )
        optimizer = training.optimizer
        if fault == "no clipping":
            optimizer.clip_and_accumulate = lambda: [
                setattr(p, "summed_grad", p.grad_sample.sum(dim=0)) for p in optimizer.params
            ]
        if fault == "half of the noise":
            add_noise = optimizer.add_noise

            def add_half():
                optimizer.noise_multiplier = 0.5
                add_noise()
                optimizer.noise_multiplier = 1.0

            optimizer.add_noise = add_half
        return training

    def watch(self, training, claim):
        return cp.watch(
            training.optimizer, training.loader, delta=DELTA, claim=claim, module=training.model, engine=training.engine
        )

    def run(self, training):
        import torch

        while True:
            for x, y in training.loader:
                training.optimizer.zero_grad()
                torch.nn.functional.cross_entropy(training.model(x), y).backward()
                training.optimizer.step()
                yield

    def state(self, training):
        return list(training.model.parameters())


class JaxTraining:
    """A training by jax_privacy, whose functions are compiled."""

    steps, claim = STEPS, CLAIM
    faults = FAULTS_OF_JAX
    left_open, exchanged = (), ("grad", "privatizer", "batches")

    def start(self, fault):
        jax = pytest.importorskip("jax", reason="needs jax")
        jax_privacy = pytest.importorskip("jax_privacy", reason="needs jax_privacy")
        jnp = jax.numpy
        rng = np.random.default_rng(0)
        training = SimpleNamespace(fault=fault, rng=rng)
        training.x = np.float32(rng.normal(size=(MEMBERS, 20)))
        training.y = np.int32(rng.integers(3, size=MEMBERS))
        training.params = {"w": jnp.asarray(np.float32(rng.normal(size=(20, 30)) / 4.0)), "b": jnp.zeros(30)}

        def loss(params, x, y):
            hidden = x @ params["w"] + params["b"]
            return -jnp.take_along_axis(jax.nn.log_softmax(hidden), y[:, None], axis=1).mean()

        clip = jax_privacy.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2))
        if fault in ("mean subtracted", "loss of pairs", "each layer clipped"):
            clip = self.broken(jax, loss, fault)
        deviation = 0.5 if fault == "half of the noise" else 1.0
        training.grad = jax.jit(clip)
        training.privatizer = jax_privacy.noise_addition.gaussian_privatizer(stddev=deviation, prng_key=1)
        training.state = training.privatizer.init(training.params)
        training.batches = iter(self.drawn(training))
        return training

    def broken(self, jax, loss, fault):
        jnp = jax.numpy

        def total(params, x, y, *, is_padding_example):
            real = ~is_padding_example
            if fault == "mean subtracted":
                x = x - jnp.where(real[:, None], x, 0.0).sum(axis=0) / jnp.maximum(real.sum(), 1)
            rows = jax.vmap(lambda a, b: jax.grad(loss)(params, a[None], b[None]))(x, y)
            if fault == "loss of pairs":
                rows = jax.tree.map(lambda leaf: leaf + jnp.roll(leaf, 1, axis=0), rows)
            squares = [jnp.square(leaf.reshape(len(leaf), -1)).sum(axis=1) for leaf in jax.tree.leaves(rows)]
            norms = [jnp.sqrt(each) for each in (squares if fault == "each layer clipped" else [sum(squares)] * 2)]
            leaves, structure = jax.tree.flatten(rows)
            factors = [jnp.where(real, 1.0 / jnp.maximum(norm, 1.0), 0.0) for norm in norms]
            sums = [jnp.tensordot(factor, leaf, 1) for factor, leaf in zip(factors, leaves, strict=True)]
            return jax.tree.unflatten(structure, sums)

        return total

    def drawn(self, training):
        size, step = int(RATE * MEMBERS), 0
        while True:
            if training.fault == "fixed batches":
                yield np.arange(size) + size * (step % int(1 / RATE))
            else:
                yield np.flatnonzero(training.rng.random(MEMBERS) < RATE)
            step += 1

    def watch(self, training, claim):
        watch = cp.watch(delta=DELTA, claim=claim, members=MEMBERS)
        training.grad = watch.gradients(training.grad, clip_norm=1.0)
        training.privatizer = watch.noise(training.privatizer)
        training.batches = watch.batches(training.batches)
        return watch

    def run(self, training):
        import jax

        for drawn in training.batches:
            padded = np.append(drawn, np.full(-len(drawn) % 64 or 64, -1))
            total = training.grad(
                training.params, training.x[padded], training.y[padded], is_padding_example=padded < 0
            )
            noised, training.state = training.privatizer.update(total, training.state)
            training.params = jax.tree.map(lambda p, g: p - 0.5 / (RATE * MEMBERS) * g, training.params, noised)
            yield

    def state(self, training):
        import jax

        return jax.tree.leaves(training.params), jax.tree.leaves(training.state), training.rng


class FlowerTraining:
    """A training by Flower's own wrapper, in which each client takes part in every fourth round."""

    steps, claim = STEPS, cp.accounting.gaussian(1.0, participations=STEPS // 4)
    faults = FAULTS_OF_FLOWER
    left_open = exchanged = ()

    def start(self, fault):
        app = pytest.importorskip("flwr.app", reason="needs flwr")
        from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

        training = SimpleNamespace(app=app, rng=np.random.default_rng(0), nodes=[*range(10, 50)])
        training.parts = 2 if fault == "twice as often" else 4
        # The wrapper's deviation is that of the mean: the clip norm times the multiplier, by the number of clients.
        noise, clip_norm = (
            (1e-4, 1e3) if fault == "no clipping" else (0.5 if fault == "half of the noise" else 1.0, 0.1)
        )
        training.strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(), noise, clip_norm, COHORT)
        training.arrays = app.ArrayRecord([np.zeros((40, 25), np.float32), np.zeros(40, np.float32)])
        return training

    def watch(self, training, claim):
        return cp.watch(training.strategy, delta=DELTA, claim=claim, clip_norm=0.1)

    def run(self, training):
        app, number = training.app, 0
        grid = SimpleNamespace(get_node_ids=lambda: training.nodes)
        # The wrapped strategy draws clients by chance, where the claim counts on a schedule.
        training.strategy.strategy.configure_train = lambda *_: []
        while True:
            list(training.strategy.configure_train(number, training.arrays, app.ConfigRecord(), grid))
            first = COHORT * (number % training.parts)
            replies = [self.reply(training, node) for node in training.nodes[first : first + COHORT]]
            training.arrays, _ = training.strategy.aggregate_train(number, replies)
            number += 1
            yield

    def reply(self, training, node):
        app = training.app
        arrays = [
            each + np.float32(training.rng.normal(size=each.shape)) for each in training.arrays.to_numpy_ndarrays()
        ]
        content = app.RecordDict({"arrays": app.ArrayRecord(arrays), "metrics": app.MetricRecord({"num-examples": 1})})
        # A message of Flower's own needs a run of its engine.
        return SimpleNamespace(content=content, metadata=SimpleNamespace(src_node_id=node), has_error=lambda: False)

    def state(self, training):
        return training.arrays.to_numpy_ndarrays(), training.rng


@pytest.mark.parametrize("training", [OpacusTraining, JaxTraining, FlowerTraining], ids=lambda each: each.__name__)
def test_an_adapter_is_sound(training):
    check_adapter(training())
