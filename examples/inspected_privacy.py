"""What instruments see of a training whose privacy is broken: ``python examples/inspected_privacy.py opacus``.

Or ``jax_privacy`` or ``flower``. Each fault of that example is trained with ten canaries that go the whole way: they
are members of the training, with updates of ten clip norms. An inspection has what each step releases, who was drawn,
and the others' updates, which it clips itself. A Markdown table says after how many of 16 steps all of three seeds are
refuted, and by which tests. ``honest`` as a second word trains 24 times without a fault, and counts refuted trainings.
"""

import sys
from collections import Counter

import numpy as np

from canaryproof import Inspection, OpacusInspection

SEEDS, HONEST_SEEDS, STEPS = 3, range(100, 124), 16
CLIP_NORM, NOISE_MULTIPLIER, BATCHES = 1.0, 1.0, 8


def clipped_sum(updates):
    """Return the sum of updates, shape (n, dim), each clipped to the clip norm."""
    lengths = np.linalg.norm(updates, axis=1, keepdims=True)
    return (updates * np.minimum(1.0, CLIP_NORM / np.maximum(lengths, 1e-12))).sum(axis=0)


def opacus(fault, seed):
    """Train with Opacus: canaries are examples whose gradients are put in before the optimizer clips them."""
    import opacus_training as example
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(seed)
    x, y = example.digits()[0].tensors
    members, spare, model = len(x), Inspection.canaries, example.perceptron()
    data = TensorDataset(torch.cat([x, x[:spare]]), torch.cat([y, y[:spare]]), torch.arange(members + spare))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=DataLoader(data, batch_size=len(data) // BATCHES, shuffle=True),
        noise_multiplier=NOISE_MULTIPLIER,
        max_grad_norm=CLIP_NORM,
        poisson_sampling=fault != "fixed-batches",
    )
    example.break_privacy(optimizer, fault)
    inspection = OpacusInspection(optimizer, members=members, rate=1 / len(loader), seed=seed)
    while True:
        for images, labels, numbers in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            inspection.enter(numbers)
            optimizer.step()
            yield inspection


def jax_privacy(fault, seed):
    """Train with jax_privacy: a canary is an example whose loss is linear, so that its gradient is the canary."""
    import jax
    import jax.numpy as jnp
    import jax_privacy_training as example
    from jax.flatten_util import ravel_pytree
    from jax_privacy import batch_selection

    x, y = example.digits()[0]
    members, rng = len(x), np.random.default_rng(seed)
    params = example.first_parameters(jax.random.key(seed))
    dim = ravel_pytree(params)[0].size
    population = members + Inspection.canaries
    batch = population / BATCHES
    inspection = Inspection(
        members=members, dim=dim, noise_multiplier=NOISE_MULTIPLIER, clip_norm=CLIP_NORM, rate=1 / BATCHES, seed=seed,
    )  # fmt: skip
    directions = np.array([inspection.update(members + j) for j in range(inspection.canaries)])

    def loss(params, x, y):
        images, canaries = x
        of_canary = -(canaries @ ravel_pytree(params)[0]).mean()
        return jnp.where((canaries != 0.0).any(), of_canary, example.loss(params, images, y))

    each = jax.jit(jax.vmap(jax.grad(lambda p, a, b: example.loss(p, a[None], b[None])), in_axes=(None, 0, 0)))
    summed = example.gradients(fault, loss)
    privatizer, _ = example.noise(NOISE_MULTIPLIER, batch, STEPS, False, fault, seed)
    state = privatizer.init(params)
    batches = batch_selection.CyclicPoissonSampling(1 / BATCHES, STEPS).batch_iterator(population, rng=seed)
    if fault == "fixed-batches":
        batches = (part for _ in range(STEPS) for part in np.array_split(rng.permutation(population), BATCHES))
    images, labels = np.concatenate([x, x[: len(directions)]]), np.concatenate([y, y[: len(directions)]])
    made = np.concatenate([np.zeros((members, dim), np.float32), directions])
    for indices in batches:
        padded = batch_selection.pad_to_multiple_of(indices, 64)
        grads = summed(params, (images[padded], made[padded]), labels[padded], is_padding_example=padded < 0)
        noisy, state = privatizer.update(grads, privatizer.init(params) if fault == "reseeded" else state)
        others = indices[indices < members]
        rows = -np.asarray(jax.vmap(lambda tree: ravel_pytree(tree)[0])(each(params, x[others], y[others])))
        number = max(1, len(indices)) if fault == "normalised-after-noise" else batch
        change = jax.tree.map(lambda g, number=number: -g / number, noisy)
        inspection.add(np.asarray(ravel_pytree(change)[0]), indices, clipped_sum(rows.astype(float)) / batch)
        params = jax.tree.map(lambda p, change: p + example.RATE * change, params, change)
        yield inspection


def flower(fault, seed):
    """Train with Flower's strategy: each round's cohort is a part of the clients, and canaries are clients of it."""
    import flower_app as example
    from numpy_loop import client_update, first_model, made_data

    from canaryproof import flatten, split

    model = first_model(np.random.default_rng(seed))
    dim, members = len(flatten(model)), example.CLIENTS * STEPS
    inspection = Inspection(
        members=members,
        dim=dim,
        noise_multiplier=NOISE_MULTIPLIER,
        clip_norm=CLIP_NORM,
        divisor=example.CLIENTS,
        seed=seed,
    )
    strategy = example.PrivateFedAvg(None, NOISE_MULTIPLIER, seed, fault or "")
    x, y = made_data(np.random.default_rng([seed, 3]), members)
    for t in range(STEPS):
        drawn = np.append(np.arange(t * example.CLIENTS, (t + 1) * example.CLIENTS), members + t % inspection.canaries)
        updates = [client_update(model, x[i], y[i], 0.1) for i in drawn[:-1]]
        total = strategy.clipped([*updates, inspection.update(drawn[-1])]) + strategy.noise(t, dim)
        delta = total / example.CLIENTS
        inspection.add(delta, drawn, clipped_sum(np.array(updates)) / example.CLIENTS)
        model = {name: model[name] + change for name, change in split(delta, model).items()}
        yield inspection


def first_alarm(train, fault, seed):
    """Return the first step after which a training is refuted, and the tests that do it; nothing after the last."""
    for step, inspection in zip(range(1, STEPS + 1), train(fault, seed), strict=False):
        if inspection.failed:
            return step, [test.name for test in inspection.tests() if test.failed]
    return None


def main(name, honest=False):
    """Print the table of an example, or how many honest trainings are refuted."""
    train = {"opacus": opacus, "jax_privacy": jax_privacy, "flower": flower}[name]
    if honest:
        alarms = sum(first_alarm(train, None, seed) is not None for seed in HONEST_SEEDS)
        print(f"{alarms} of {len(HONEST_SEEDS)} honest trainings are refuted")
        return
    example = __import__({"flower": "flower_app"}.get(name, f"{name}_training"))
    print("| fault | steps | refuted by |\n|---|---|---|")
    for fault in (None, *example.FAULTS):
        alarms = [first_alarm(train, fault, seed) for seed in range(SEEDS)]
        steps = max(step for step, _ in alarms) if all(alarms) else "none"
        tests = Counter(test for alarm in alarms if alarm for test in alarm[1])
        named = ", ".join(test for test, number in tests.items() if number == SEEDS) or ", ".join(tests) or "none"
        print(f"| {example.FAULTS[fault] if fault else 'none'} | {steps} | {named} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
