"""Measure what a watch costs: ``python examples/watch_cost.py``.

It trains the convolutional network of ``opacus_training.py``, of 26,506 parameters, on 6,000 random images for three
epochs of 30 steps, on one thread. Trainings with and without the watch take turns, nine times. The table has the
processor's seconds of the steps. The ratio is that of the pairs. The answer comes once, however long a training is, so
its seconds stand apart: most of them go into ε, by Opacus' accountant and by this package.

``python examples/watch_cost.py transformer`` does the same with the language model of ``transformer_training.py`` and a
loop, and ``python examples/watch_cost.py memory`` prints the most memory that a process holds which trains ten million
parameters for three steps of 16 examples, in two layers or in ten.
"""

import functools
import itertools
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from canaryproof import accounting, watch

PAIRS, DELTA = 9, 1e-5
# Epochs, steps of each, and members.
LENGTHS = {"cnn": (3, 30, 6000), "transformer": (4, 8, 256), "memory": (1, 3, 48)}
STATUS = Path("/proc/self/status")
# Widths of a network's layers, of ten million parameters.
WIDTHS = {"two": [2000, 2500, 2000], "ten": [1000] * 11}


def forget():
    """Let every ε be computed anew."""
    for name, module in list(sys.modules.items()):
        for each in vars(module).values() if name.startswith("canaryproof.") else ():
            if isinstance(each, functools._lru_cache_wrapper):
                each.cache_clear()


def convolutional():
    """Return the network of the example for Opacus, its data, and its loss of a batch."""
    import opacus_training as example

    images, labels = torch.randn(6000, 1, 28, 28), torch.randint(10, (6000,))
    data = torch.utils.data.TensorDataset(images, labels)
    return example.convolutional(), data, None, loss_of_classes


def llama():
    """Return the language model of the example for transformers, its data, and its loss of a batch."""
    import transformer_training as example

    data = example.Windows(example.written(), LENGTHS["transformer"][2])
    return example.adapted_llama(), data, example.collate, lambda model, batch: model(**batch).loss


def perceptron(widths):
    """Return a network with layers of these widths, its data, and its loss of a batch."""
    linear = [torch.nn.Linear(*sizes) for sizes in itertools.pairwise(widths)]
    count = LENGTHS["memory"][2]
    data = torch.utils.data.TensorDataset(torch.randn(count, widths[0]), torch.randint(widths[-1], (count,)))
    return torch.nn.Sequential(*linear), data, None, loss_of_classes


def loss_of_classes(model, batch):
    """Return the loss of a batch of examples and their classes."""
    x, y = batch
    return torch.nn.functional.cross_entropy(model(x), y)


def seconds(made, lengths, *, is_watched):
    """Train, and return the processor's seconds of the steps and those of the answer."""
    from opacus import PrivacyEngine

    model, data, collate, loss = made
    epochs, steps, members = lengths
    engine = PrivacyEngine(accountant="prv")
    _, optimizer, loader = engine.make_private(
        module=model.train(),
        optimizer=torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=members // steps, collate_fn=collate),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        wrap_model=False,
    )
    forget()
    start = time.process_time()
    watched = None
    if is_watched:
        claim = accounting.poisson(1.0, rate=1 / steps, rounds=epochs * steps)
        watched = watch(optimizer, loader, delta=DELTA, claim=claim, module=model, engine=engine)
    for _ in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()
    end = time.process_time()
    if watched is not None:
        watched.close()
    return end - start, time.process_time() - end


def by_time(kind):
    """Print the seconds of trainings with and without a watch."""
    make = {"cnn": convolutional, "transformer": llama}[kind]

    def trained(seed, is_watched):
        torch.manual_seed(seed)
        return seconds(make(), LENGTHS[kind], is_watched=is_watched)

    # The first one loads what all need.
    trained(0, True)
    pairs = np.array([[trained(seed, each) for each in (False, True)] for seed in range(PAIRS)])
    steps, answers = pairs[:, :, 0], pairs[:, 1, 1]
    print("| trained | median of the seconds of all steps |\n|---|---|")
    for name, median in zip(("alone", "with a watch"), np.median(steps, axis=0), strict=True):
        print(f"| {name} | {median:.2f} |")
    # The second and the eighth of nine have the median of all trainings between them with 96%.
    for name, ratios in (("Ratio", steps[:, 1]), ("With the answer", steps[:, 1] + answers)):
        ordered = np.sort(ratios / steps[:, 0])
        print(f"\n{name}: {np.median(ordered):.3f} ({ordered[1]:.3f} to {ordered[-2]:.3f})")
    print(f"\nThe answer takes {np.median(answers):.2f} seconds, once.")


def by_memory():
    """Print the most memory that trainings of ten million parameters hold, each in a process of its own."""
    print("| layers | alone | with a watch | ratio |\n|---|---|---|---|")
    for layers in WIDTHS:
        peaks = [
            int(subprocess.check_output([sys.executable, __file__, "memory", layers, which]))
            for which in ("alone", "watched")
        ]
        print(f"| {layers} | {peaks[0]:,} MB | {peaks[1]:,} MB | {peaks[1] / peaks[0]:.3f} |", flush=True)


def peak(layers, which):
    """Train, and print the most memory that this process has held, in megabytes."""
    # Both load the same libraries, those too that an answer needs.
    seconds(perceptron([8, 8]), LENGTHS["memory"], is_watched=True)
    torch.manual_seed(0)
    seconds(perceptron(WIDTHS[layers]), LENGTHS["memory"], is_watched=which == "watched")
    print(int(STATUS.read_text().partition("VmHWM:")[2].split()[0]) // 1024)


def main(kind="cnn", *which):
    """Print the table."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if which:
        peak(*which)
    elif kind == "memory":
        by_memory()
    else:
        by_time(kind)


if __name__ == "__main__":
    main(*sys.argv[1:])
