"""Show what instruments cost: ``python examples/instrument_cost.py FOLDER``, with MNIST's IDX files in that folder.

It trains the convolutional network of ``opacus_training.py`` for one epoch with five seeds: without instruments, with
an attacker's hundred canaries, and with an inspection, whose ten canaries are examples. The noise and the batches of
the first two have the same random numbers. The inspection's sampler has ten examples more to draw, so its numbers
differ.
"""

import statistics
import sys
import time

import numpy as np
import opacus_training as example
import torch
from torch.utils.data import TensorDataset

from canaryproof import Insertion, OpacusCanaries, OpacusInspection, bernoulli

SEEDS, BATCHES, NOISE_MULTIPLIER = range(5), 100, 1.0
KINDS = ("none", "100 canaries of an attacker", "an inspection with 10 canaries")


def train(data, test, kind, seed):
    """Train for an epoch, and return the accuracy and the seconds of processor time."""
    start = time.process_time()
    torch.manual_seed(seed)
    images, labels = data.tensors
    if kind == KINDS[2]:
        images, labels = torch.cat([images, images[:10]]), torch.cat([labels, labels[:10]])
    numbered = TensorDataset(images, labels, torch.arange(len(labels)))
    _, model, optimizer, loader = example.private(example.convolutional(), numbered, BATCHES, NOISE_MULTIPLIER)
    inspection = None
    if kind == KINDS[1]:
        OpacusCanaries(optimizer, bernoulli(0, 1 / BATCHES, BATCHES, seed, Insertion(200, 100)), seed=seed)
    elif kind == KINDS[2]:
        inspection = OpacusInspection(optimizer, members=len(labels) - 10, rate=1 / BATCHES, seed=seed)
    for x, y, numbers in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        if inspection is not None:
            inspection.enter(numbers)
        optimizer.step()
    return example.accuracy(model, test), time.process_time() - start


def main(folder):
    """Print a table of the accuracies."""
    data, test = example.mnist(folder)
    first = None
    print("| instrument | test accuracy: mean, deviation over seeds | less that of none | processor time |")
    print("|---|---|---|---|")
    for kind in KINDS:
        accuracies, seconds = np.array([train(data, test, kind, seed) for seed in SEEDS]).T
        first = accuracies if first is None else first
        change = accuracies - first
        error = statistics.stdev(change) / len(change) ** 0.5
        shown = f"{change.mean():+.2%} ± {error:.2%}" if kind != KINDS[0] else "–"
        spread = f"{accuracies.mean():.2%}, {statistics.stdev(accuracies):.2%}"
        print(f"| {kind} | {spread} | {shown} | {seconds.mean():.0f} s |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
