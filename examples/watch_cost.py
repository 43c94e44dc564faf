"""Measure what a watch costs: ``python examples/watch_cost.py``.

It trains the convolutional network of ``opacus_training.py``, of 26,506 parameters, on 6,000 random images for three
epochs of 30 steps, on one thread. Trainings with and without the watch take turns, nine times. The table has the
processor's seconds of the steps. The ratio is that of the pairs. The answer comes once, however long a training is, so
its seconds stand apart: most of them go into ε, by Opacus' accountant and by this package.
"""

import functools
import sys
import time

import numpy as np
import opacus_training as example
import torch

from canaryproof import accounting, watch

PAIRS, EPOCHS, BATCHES = 9, 3, 30


def forget():
    """Let every ε be computed anew."""
    for name, module in list(sys.modules.items()):
        for each in vars(module).values() if name.startswith("canaryproof.") else ():
            if isinstance(each, functools._lru_cache_wrapper):
                each.cache_clear()


def seconds(seed, *, is_watched):
    """Train, and return the processor's seconds of the steps and those of the answer."""
    torch.manual_seed(seed)
    images, labels = torch.randn(6000, 1, 28, 28), torch.randint(10, (6000,))
    data = torch.utils.data.TensorDataset(images, labels)
    engine, model, optimizer, loader = example.private(example.convolutional(), data, BATCHES, 1.0)
    forget()
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
    end = time.process_time()
    if watched is not None:
        watched.close()
    return end - start, time.process_time() - end


def main():
    """Print the table."""
    torch.set_num_threads(1)
    # The first one loads what all need.
    seconds(0, is_watched=True)
    pairs = np.array([[seconds(seed, is_watched=each) for each in (False, True)] for seed in range(PAIRS)])
    steps, answers = pairs[:, :, 0], pairs[:, 1, 1]
    print("| trained | median of the seconds of all steps |\n|---|---|")
    for name, median in zip(("alone", "with a watch"), np.median(steps, axis=0), strict=True):
        print(f"| {name} | {median:.2f} |")
    # The second and the eighth of nine have the median of all trainings between them with 96%.
    for name, ratios in (("Ratio", steps[:, 1]), ("With the answer", steps[:, 1] + answers)):
        ordered = np.sort(ratios / steps[:, 0])
        print(f"\n{name}: {np.median(ordered):.3f} ({ordered[1]:.3f} to {ordered[-2]:.3f})")
    print(f"\nThe answer takes {np.median(answers):.2f} seconds, once.")


if __name__ == "__main__":
    main()
