"""Show what is seen of trainings whose privacy is broken: ``python examples/broken_privacy.py opacus flower``.

The names are ``opacus``, ``jax_privacy``, ``flower`` and ``ddp``, which is Opacus in two processes. Without one, all
four train. Each training is watched for 16 steps, with three seeds. The first Markdown table has a row a fault and a
column a framework: the finding that fails in the trainings of all seeds, and after how many steps. A table a framework
has what the watch says of the first seed.

The last column is about attackers who see less than a watch. In trainings by Opacus, 200 canaries are inserted. Whoever
has the final model, or the largest cosine of each canary, notices a fault if all of the interval of ε̂ is above the
claimed ε, or if no estimate can be made. A wrong ε is no fault of a training, so that none of them can.

``honest`` before the names trains 24 times without a fault, and counts the trainings that are passed or not.
"""

import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import import_module
from itertools import islice
from types import SimpleNamespace

import numpy as np

from canaryproof import Scores, accounting, audit, shuffled_epochs, watch

SEEDS, HONEST_SEEDS, STEPS, CANARIES = range(3), range(100, 124), 16, 200
# Poisson sampling at rate 1/8; Flower's rounds are fixed.
NOISE_MULTIPLIER, BATCHES = 1.0, 8
# Faults of what is claimed. The training itself is honest.
WRONG_CLAIMS = ("accounted-steps", "accounted-delta")


def opacus(example, fault, seed, insert=None):
    """Train with Opacus under a watch, which is told the ε that the accountant states, or the mechanism."""
    import torch

    torch.manual_seed(seed)
    _, model, optimizer, loader = example.private(
        example.perceptron(), example.digits()[0], BATCHES, NOISE_MULTIPLIER, fault
    )
    claim = accounting.poisson(NOISE_MULTIPLIER, rate=1 / BATCHES, rounds=STEPS)
    if fault in WRONG_CLAIMS:
        stating = example.PrivacyEngine(accountant="prv")
        stating.accountant.history = [(NOISE_MULTIPLIER, 1 / BATCHES, STEPS)]
        claim = example.accounted(stating, fault)
    watched = watch(optimizer, loader, delta=example.DELTA, claim=claim, module=model, insert=insert, seed=seed)
    while True:
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            yield watched


def jax_privacy(example, fault, seed):
    """Train with jax_privacy under a watch, as with Opacus."""
    import jax
    from jax_privacy import batch_selection

    x, y = example.digits()[0]
    params, batch = example.first_parameters(jax.random.key(seed)), -(-len(x) // BATCHES)
    claim = accounting.poisson(NOISE_MULTIPLIER, rate=batch / len(x), rounds=STEPS)
    if fault in WRONG_CLAIMS:
        claim, _ = example.analytical(NOISE_MULTIPLIER, STEPS, len(x), batch, False, fault)
    watched = watch(delta=example.DELTA, claim=claim, members=len(x), rate=batch / len(x))
    summed = watched.gradients(example.gradients(fault), example.CLIP_NORM)
    privatizer, _ = example.noise(NOISE_MULTIPLIER, batch, STEPS, False, fault, seed)
    privatizer = watched.noise(privatizer, noise_multiplier=NOISE_MULTIPLIER)
    state = privatizer.init(params)
    for indices in watched.batches(example.drawn(fault, len(x), BATCHES, STEPS, seed)):
        padded = batch_selection.pad_to_multiple_of(indices, 64)
        noisy, state = privatizer.update(
            summed(params, x[padded], y[padded], is_padding_example=(padded < 0) & (fault != "padding")),
            privatizer.init(params) if fault == "reused-noise" else state,
        )
        number = max(1, len(indices)) if fault == "normalised-after-noise" else batch
        params = jax.tree.map(lambda p, g, number=number: p - example.RATE / number * g, params, noisy)
        yield watched


def flower(example, fault, seed):
    """Train with Flower's strategy under a watch: each round's cohort is a part of all nodes, each in one round."""
    participation = shuffled_epochs(example.ROUNDS * example.CLIENTS, example.CLIENTS, 1, seed)
    model = example.first_model(np.random.default_rng(seed))
    strategy = example.PrivateFedAvg(participation, NOISE_MULTIPLIER, seed, fault or "")
    # No attacker's canaries join the sum.
    strategy.canaries = SimpleNamespace(total=lambda *_: 0.0, add=lambda *_, **__: None)
    claim = accounting.gaussian(NOISE_MULTIPLIER)
    if fault == "accounted-delta":
        claim = example.accounted(NOISE_MULTIPLIER, fault)
    divisor = example.CLIENTS / example.SERVER_RATE
    watched = watch(strategy, delta=example.DELTA, claim=claim, clip_norm=example.CLIP_NORM, divisor=divisor)
    arrays, config = example.to_arrays(model), example.ConfigRecord({"client-rate": 0.1})
    grid = example.GridInProcess(example.ROUNDS * example.CLIENTS)
    for number in range(1, STEPS + 1):
        replies = grid.send_and_receive(strategy.configure_train(number, arrays, config, grid))
        arrays, _ = strategy.aggregate_train(number, replies)
        yield watched


def train_process(rank, processes, folder, fault, seed):
    """Train in one of some processes with Opacus, and return what its watch says."""
    import distributed_training as example
    import torch

    model, criterion, optimizer, loader = example.private(rank, processes, folder, fault, seed=seed)
    claim = example.claimed(NOISE_MULTIPLIER, BATCHES, STEPS, processes, fault)
    watched = watch(optimizer, loader, delta=example.DELTA, claim=claim, module=model)
    has_failed = []
    while len(has_failed) < STEPS:
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            has_failed.append(watched.has_failed)
    torch.distributed.destroy_process_group()
    return has_failed, watched.close()


@cache
def two_processes():
    """Return two processes, which load their libraries once for all trainings."""
    return ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))


def ddp(_, fault, seed):
    """Train with Opacus in two processes under a watch in each, of which the first one answers."""
    with tempfile.TemporaryDirectory() as folder:
        parts = [two_processes().submit(train_process, rank, 2, folder, fault, seed) for rank in (0, 1)]
        (has_failed, answer), _ = [part.result() for part in parts]
    for each in has_failed:
        yield SimpleNamespace(has_failed=each, close=lambda: answer)


# The training of each framework with a watch, and the framework's name.
WATCHED = {
    "opacus": ("opacus_training", opacus),
    "jax_privacy": ("jax_privacy_training", jax_privacy),
    "flower": ("flower_app", flower),
    "ddp": ("distributed_training", ddp),
}
TITLES = {"opacus": "Opacus", "jax_privacy": "jax_privacy", "flower": "Flower", "ddp": "Opacus in two processes"}


def watched(train, example, fault, seed):
    """Return the step after which the watch says that a training is not passed, None without one, and its answer."""
    stopped = None
    for step, watching in zip(range(1, STEPS + 1), train(example, fault, seed), strict=False):
        if stopped is None and watching.has_failed:
            stopped = step
    answer = watching.close()
    return (stopped or STEPS) if answer.decision.outcome == "NOT PASSED" else None, answer


def by_watch(train, example, fault):
    """Return the cells of a watch: the first finding that fails in all seeds, after how many steps, and its words."""
    steps, answers = zip(*(watched(train, example, fault, seed) for seed in SEEDS), strict=True)
    print(fault, steps, [str(answer.decision.outcome) for answer in answers], file=sys.stderr, flush=True)
    failed = [[finding for finding in answer.findings if finding.status == "failed"] for answer in answers]
    common = [
        first for first in failed[0] if all(first.question in [each.question for each in other] for other in failed)
    ]
    return (common[0].question, max(steps), common[0].because) if common else ("–", "–", answers[0].decision.outcome)


def by_attackers(example, fault):
    """Name the attackers who notice a fault of a training by Opacus, and in how many trainings if not in all."""
    claimed = accounting.poisson(NOISE_MULTIPLIER, rate=1 / BATCHES, rounds=STEPS).epsilon(example.DELTA)
    noticed = Counter()
    for seed in () if fault in WRONG_CLAIMS else SEEDS:
        *_, watching = islice(opacus(example, fault, seed, CANARIES), STEPS)
        watching.close()
        canaries, largest = watching.canaries, watching.canaries.scores("largest", known=False)
        final = Scores(canaries.final()[0], dim=canaries.dim)
        largest = Scores(largest.observed, largest.unobserved, inclusion=largest.inclusion)
        for name, scores in (("final model", final), ("largest cosine", largest)):
            estimates = audit(scores, example.DELTA).estimates
            noticed[name] += not estimates or bool(estimates[0].low > claimed)
    shares = ("" if count == len(SEEDS) else f" ({count} of {len(SEEDS)})" for count in noticed.values())
    return ", ".join(f"{name}{share}" for (name, count), share in zip(noticed.items(), shares, strict=True) if count)


def tables(names):
    """Print which finding fails for each fault in each framework, and what the watches say."""
    titles, cells, seen = {}, {}, {}
    for name in names:
        module, train = WATCHED[name]
        example = import_module(module)
        for fault, title in ({None: "none"} | example.FAULTS).items():
            titles.setdefault(fault, title)
            cells[fault, name] = (title, *by_watch(train, example, fault))
            if name == "opacus":
                seen[fault] = by_attackers(example, fault) or "none"
    print(
        "| fault |", " | ".join(TITLES[name] for name in names), "| attackers |\n|---" + "|---" * len(names) + "|---|"
    )
    for fault, title in titles.items():
        row = [cells.get((fault, name), ("", "", "", "")) for name in names]
        shown = (f"{finding}, step {step}" if finding not in ("", "–") else words for _, finding, step, words in row)
        print("|", " | ".join([title, *shown, seen.get(fault, "")]), "|")
    for name in names:
        print(f"\n### {TITLES[name]}\n\n| fault | what the watch says |\n|---|---|")
        for (_, of_name), (title, _, _, words) in cells.items():
            if of_name == name:
                print(f"| {title} | {words} |")


def honest(names):
    """Print how many honest trainings of each framework are passed or not."""
    for name in names:
        module, train = WATCHED[name]
        example = import_module(module)
        outcomes = [str(watched(train, example, None, seed)[1].decision.outcome) for seed in HONEST_SEEDS]
        passed, failed = outcomes.count("PASSED"), outcomes.count("NOT PASSED")
        print(f"{TITLES[name]}: of {len(outcomes)} honest trainings, {passed} are PASSED, and {failed} NOT PASSED.")


def main(*names):
    """Print the tables of some frameworks, or how many of their honest trainings are passed."""
    start = time.monotonic()
    if names[:1] == ("honest",):
        honest(names[1:] or tuple(WATCHED))
    else:
        tables(names or tuple(WATCHED))
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
