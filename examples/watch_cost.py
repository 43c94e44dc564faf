"""Measure what a watch costs: ``python examples/watch_cost.py``.

It trains the convolutional network of ``opacus_training.py``, of 26,506 parameters, on 6,000 random images for three
epochs of 30 steps, on one thread. Trainings with and without the watch take turns, nine times. The table has the
processor's seconds, and the ratio of each pair.
"""

import time

import numpy as np
import opacus_training as example
import torch

from canaryproof import accounting, watch

PAIRS, EPOCHS, BATCHES = 9, 3, 30


def seconds(seed, *, is_watched):
    """Train, and return the processor's seconds of the loop and of what the watch adds to it."""
    torch.manual_seed(seed)
    images, labels = torch.randn(6000, 1, 28, 28), torch.randint(10, (6000,))
    data = torch.utils.data.TensorDataset(images, labels)
    engine, model, optimizer, loader = example.private(example.convolutional(), data, BATCHES, 1.0)
    start = time.process_time()
    watched = None
    if is_watched:
        claim = accounting.poisson(1.0, rate=1 / BATCHES, rounds=EPOCHS * BATCHES)
        watched = watch(optimizer, loader, delta=example.DELTA, claim=claim, module=model, engine=engine)
    for _ in range(EPOCHS):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    if watched is not None:
        watched.close()
    return time.process_time() - start


def main():
    """Print the table."""
    torch.set_num_threads(1)
    # The first one loads what all need.
    seconds(0, is_watched=True)
    pairs = np.array([[seconds(seed, is_watched=each) for each in (False, True)] for seed in range(PAIRS)])
    ratios = np.sort(pairs[:, 1] / pairs[:, 0])
    print("| trained | median of the seconds |\n|---|---|")
    for name, median in zip(("alone", "with a watch"), np.median(pairs, axis=0), strict=True):
        print(f"| {name} | {median:.2f} |")
    # The second and the eighth of nine have the median of all trainings between them with 96%.
    print(f"\nRatio: {np.median(ratios):.3f} ({ratios[1]:.3f} to {ratios[-2]:.3f})")


if __name__ == "__main__":
    main()
