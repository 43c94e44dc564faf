"""Private training in PyTorch with Opacus, audited by canaries: ``python examples/opacus_training.py``.

It trains a small network on scikit-learn's digits, or with ``--data FOLDER`` a small convolutional network on MNIST's
IDX files in that folder. The lines that end in ``# audit`` are all that the audit adds to a private training. Options:

- ``--lora``: the network is frozen, and only adapters of low rank and the last layer are trained;
- ``--clipping``: each parameter is clipped to a norm of its own, or all of them to a norm that adapts;
- ``--no-data``: gradients of the data are zero, and every canary takes part in every step. The final model then holds
  all that any attacker may see, and each ε̂ must agree with the analytical ε;
- ``--break FAULT``: breaks the privacy on purpose; ``broken_privacy.py`` makes a table of which fault is seen.
"""

import argparse
import gzip
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.accountants import create_accountant
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

import canaryproof as cp
from canaryproof import Scores, audit, watch  # audit

CLIP_NORM, DELTA = 1.0, 1e-5
HELD_OUT = 297
# Examples of a training without data, whose gradients are zero.
FEW = 400
# Options of make_private. The network for digits has four parameters, whose norms have CLIP_NORM in all.
CLIPPINGS = {
    "flat": {"max_grad_norm": CLIP_NORM},
    "per_layer": {"max_grad_norm": [CLIP_NORM / 2] * 4},
    "adaptive": {
        "max_grad_norm": CLIP_NORM, "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2,
        "max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 10.0,
    },
}  # fmt: skip
FAULTS = {
    "noise-per-microbatch": "each of four micro-batches adds a quarter of the standard deviation, in all half of it",
    "batch-twice": "the noise is divided by the batch size twice: before it is added, and with the gradients",
    "clip-after-average": "the mean gradient is clipped, and not each example's",
    "fixed-batches": "batches are shuffled, where the accountant assumes Poisson sampling",
    "normalised-after-noise": "the noised sum is divided by the number of examples that were drawn",
    "reused-noise": "the noise generator gets the same seed in every step",
    "sensitivity-apart": "the noise is scaled by a sensitivity that is not the clip norm",
    "fixed-size": "batches of one size are drawn, where the accountant assumes Poisson sampling",
    "padding": "a batch is padded with copies of an example, which are summed like the others",
    "per-layer": "each layer is clipped to the whole clip norm, and the noise is that for one clip norm",
    "coarse-noise": "the noise has the precision of bfloat16",
    "accounted-steps": "the accountant counts half of the steps",
    "accounted-delta": "the accountant computes ε at a hundred times the claimed δ",
}


def digits(number=None):
    """Return scikit-learn's digits, 1,500 or a smaller number for training and the others for testing."""
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 16.0, dtype=torch.float32), torch.tensor(y)
    return TensorDataset(x[HELD_OUT:][:number], y[HELD_OUT:][:number]), TensorDataset(x[:HELD_OUT], y[:HELD_OUT])


def mnist(folder):
    """Return MNIST from its four IDX files, gzipped or not."""

    def read(name, header):
        (path,) = sorted(Path(folder).glob(f"{name}-ubyte*"))[:1]
        content = (gzip.open if path.suffix == ".gz" else open)(path, "rb").read()
        return torch.tensor(np.frombuffer(content, np.uint8, offset=header))

    def part(name):
        images = read(f"{name}-images-idx3", 16).reshape(-1, 1, 28, 28) / 255.0
        return TensorDataset(images, read(f"{name}-labels-idx1", 8).long())

    return part("train"), part("t10k")


def perceptron():
    """Return the network for digits."""
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def convolutional():
    """Return the network for MNIST."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 16, 5, 2), nn.ReLU(), nn.Flatten(),
        nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


class Adapted(nn.Module):
    """A frozen layer with an adapter of low rank beside it, which is trained."""

    def __init__(self, layer, rank=4):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        """Return the layer's output with the adapter's."""
        return self.layer(x) + self.up(self.down(x))


def with_adapters():
    """Return the network for digits with a frozen layer."""
    network = perceptron()
    return nn.Sequential(Adapted(network[0]), network[1], network[2])


def break_privacy(optimizer, fault):
    """Break an optimizer's privacy; the accountant reads the noise multiplier that is claimed, as before."""
    claimed, add_noise, params = optimizer.noise_multiplier, optimizer.add_noise, optimizer.params
    clip = optimizer.clip_and_accumulate
    share = {"batch-twice": 1 / optimizer.expected_batch_size, "sensitivity-apart": 4.8e-5}.get(fault, 1.0)

    def add_less_noise():
        optimizer.noise_multiplier = share * claimed
        add_noise()
        optimizer.noise_multiplier = claimed

    def add_noise_in_parts():
        add_noise()
        for p in params:
            parts = torch.randn(4, *p.shape) * claimed * optimizer.max_grad_norm / 4
            p.grad = p.summed_grad + parts.sum(dim=0)

    def add_coarse_noise():
        add_noise()
        for p in params:
            p.grad = p.summed_grad + (claimed * CLIP_NORM * torch.randn(p.shape)).bfloat16()

    def add_same_noise():
        optimizer.generator = torch.Generator().manual_seed(0)
        add_noise()

    def clip_mean():
        total = [g.sum(dim=0) for g in optimizer.grad_samples]
        norm = torch.cat([g.flatten() for g in total]).norm() / optimizer.expected_batch_size
        for p, g in zip(params, total, strict=True):
            p.summed_grad = g * (CLIP_NORM / norm).clamp(max=1.0)

    def clip_layers():
        for p, g in zip(params, optimizer.grad_samples, strict=True):
            norms = g.flatten(1).norm(dim=1).clamp(min=CLIP_NORM)
            p.summed_grad = torch.einsum("n,n...->...", CLIP_NORM / norms, g)

    def clip_padded():
        for p, g in zip(params, optimizer.grad_samples, strict=True):
            missing = max(0, 2 * optimizer.expected_batch_size - len(g))
            p.grad_sample = torch.cat([g, *[g[:1]] * missing])
        clip()

    def divide_by_drawn():
        drawn = max(1, len(optimizer.grad_samples[0]))
        for p in params:
            p.grad /= drawn

    noises = {
        "noise-per-microbatch": add_noise_in_parts,
        "reused-noise": add_same_noise,
        "coarse-noise": add_coarse_noise,
    }
    clippings = {"clip-after-average": clip_mean, "per-layer": clip_layers, "padding": clip_padded}
    optimizer.add_noise = noises.get(fault, add_noise if share == 1.0 else add_less_noise)
    optimizer.clip_and_accumulate = clippings.get(fault, clip)
    if fault == "normalised-after-noise":
        optimizer.scale_grad = divide_by_drawn


class FixedSize(Sampler):
    """Batches of one size, each drawn anew."""

    def __init__(self, number, batches):
        self.number, self.batches = number, batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            yield torch.randperm(self.number)[: -(-self.number // self.batches)].tolist()


def private(model, data, batches, noise_multiplier, fault=None, clipping="flat"):
    """Return what a private training needs: an engine, and the model, the optimizer and the loader that it makes."""
    engine = PrivacyEngine(accountant="prv")
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5),
        data_loader=DataLoader(data, batch_size=-(-len(data) // batches), shuffle=True),
        noise_multiplier=noise_multiplier,
        clipping=clipping,
        **CLIPPINGS[clipping],
        poisson_sampling=fault not in ("fixed-batches", "fixed-size"),
    )
    if fault == "fixed-size":
        loader = DataLoader(data, batch_sampler=FixedSize(len(data), batches))
    break_privacy(optimizer, fault)
    return engine, model, optimizer, loader


def gradients_noise(optimizer):
    """Return the noise multiplier of the gradients, which is larger where a noised count is released with them."""
    noise, count = optimizer.noise_multiplier, getattr(optimizer, "unclipped_num_std", math.inf)
    return (noise**-2 - (2 * count) ** -2) ** -0.5


def accounted(engine, fault):
    """Return ε of Opacus' accountant; or break it, so that it counts fewer steps, or has another δ."""
    if fault == "accounted-steps":
        engine.accountant.history = [(noise, rate, steps // 2) for noise, rate, steps in engine.accountant.history]
    return engine.get_epsilon(100 * DELTA if fault == "accounted-delta" else DELTA)


def train(
    model,
    data,
    *,
    noise_multiplier=2.0,
    batches=8,
    epochs=20,
    canaries=1000,
    no_data=False,
    fault=None,
    clipping="flat",
    seed=0,
):
    """Train, and return the model with the analytical ε and the canaries."""
    torch.manual_seed(seed)
    engine, model, optimizer, loader = private(model, data, batches, noise_multiplier, fault, clipping)
    steps = epochs * len(loader)
    claim = cp.accounting.poisson(gradients_noise(optimizer), rate=1 / len(loader), rounds=steps)
    watched = watch(optimizer, loader, delta=DELTA, claim=claim, insert=canaries, seed=seed)  # audit
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            (0.0 * loss if no_data else loss).backward()
            optimizer.step()
    found = SimpleNamespace(model=model, steps=steps, noise=gradients_noise(optimizer), claim=claim)
    found.history, found.epsilon = engine.accountant.history, accounted(engine, fault)
    # Who knows how steps were drawn is the attacker of a claim that counts on it.
    found.score = "likelihood" if found.claim.attacker == "sampling" else "known rounds"
    found.canaries = watched.canaries  # audit
    return found


def audit_claim(found):
    """Audit what the attacker finds whom the claim holds against."""
    return audit(found.canaries.scores(found.score), DELTA, claim=found.claim)  # audit


def audit_known_rounds(found):
    """Audit what an attacker finds who knows a canary's steps, against the claim for him."""
    return audit(found.canaries.scores("known rounds"), DELTA, noise_multiplier=found.noise)


def audit_largest(found):
    """Audit what an attacker finds who knows nothing of a canary's steps."""
    scores = found.canaries.scores("largest")
    return audit(Scores(scores.observed, scores.unobserved, inclusion=scores.inclusion), DELTA, claim=found.epsilon)


def audit_final(found):
    """Audit the final parameters: Algorithm 2."""
    return audit(Scores(found.canaries.final()[0], dim=found.canaries.dim), DELTA, claim=found.epsilon)


def no_data(canaries=200, **options):
    """Train without data, every canary in every step; noise such that the canaries are little beside it."""
    setting = {"noise_multiplier": 3.0, "batches": 1, "epochs": 10, "no_data": True} | options
    found = train(perceptron(), digits(FEW)[0], canaries=canaries, **setting)
    found.known_rounds, found.largest, found.final = audit_known_rounds(found), audit_largest(found), audit_final(found)
    found.dim = found.canaries.dim
    # The final parameters hold the noise of all steps, and a canary as often as it takes part.
    found.sigma = found.noise / (found.claim.rate or 1.0) / found.steps**0.5
    return found


def small():
    """Train for two epochs."""
    return train(perceptron(), digits()[0], epochs=2, canaries=20)


def accuracy(model, data):
    """Return the share of test examples that a model gets right."""
    x, y = data.tensors
    model.eval()
    with torch.no_grad():
        return float((model(x).argmax(dim=1) == y).float().mean())


def report(found, test):
    """Print the analytical ε of Opacus' accountants and of ours, and the audits."""
    rdp = create_accountant("rdp")
    rdp.history = found.history
    trained = sum(p.numel() for p in found.model.parameters() if p.requires_grad)
    print(f"{found.claim}")
    print(f"{trained:,} trained parameters, accuracy {accuracy(found.model, test):.3f}")
    print(f"analytical ε at δ = {DELTA:g}: Opacus {found.epsilon:.3f} (PRV), {rdp.get_epsilon(DELTA):.3f} (RDP);")
    print(f"  canaryproof {found.claim.epsilon(DELTA):.3f}, {found.claim.basis(DELTA)}")
    alarm = found.canaries.evidence(found.noise).alarm()
    print("\nEvidence against the claimed noise:", "no alarm" if alarm is None else f"an alarm at step {alarm + 1}")
    print(f"\nFrom the noise of every step, by the score '{found.score}':", audit_claim(found), sep="\n")
    if found.score != "known rounds":
        print("\nFor an attacker who knows a canary's steps:", audit_known_rounds(found), sep="\n")
    print("\nAlgorithm 2, from the final parameters less the initial ones:", audit_final(found), sep="\n")


def main():
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of MNIST's IDX files")
    parser.add_argument("--lora", action="store_true", help="train adapters and the last layer alone")
    parser.add_argument("--clipping", choices=CLIPPINGS, default="flat", help="one clip norm, or several, for digits")
    parser.add_argument("--no-data", action="store_true", help="zero gradients, every canary in every step")
    parser.add_argument("--break", dest="fault", choices=FAULTS, help="break the privacy on purpose")
    options = parser.parse_args()
    if options.no_data:
        report(no_data(fault=options.fault), digits()[1])
    elif options.data:
        data, test = mnist(options.data)
        report(train(convolutional(), data, batches=100, epochs=2, fault=options.fault), test)
    else:
        model, canaries = (with_adapters(), 200) if options.lora else (perceptron(), 1000)
        data, test = digits()
        report(train(model, data, canaries=canaries, fault=options.fault, clipping=options.clipping), test)


if __name__ == "__main__":
    main()
