"""Show what is seen of a training whose privacy is broken: ``python examples/broken_privacy.py opacus``.

The other names are ``jax_privacy``, ``flower`` and ``ddp``, which is Opacus in two processes. Markdown tables have each
fault of that example, and who notices it in three seeds.

A training is watched for 16 steps. The first table has the finding that fails in all three seeds, after how many steps,
and what the watch says of the first seed.

Attackers have canaries, but for ``ddp``. Trainings without data have more and more of them. The last table has the
first number of canaries with which all three audits notice the fault. An audit of cosines does if all of its interval
is above the claimed ε, or if it refuses to estimate. At known rounds it does if the claim is exceeded or refuted.
Evidence does by its alarm; the cell has the last round of the three. ``plan_rounds`` predicts how many canaries are
needed at known rounds.

``honest`` as a second word trains 24 times without a fault, and counts the trainings in which anything is noticed.
"""

import math
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import import_module
from types import SimpleNamespace

import numpy as np

from canaryproof import (
    accounting,
    audit,
    plan,
    plan_rounds,
    shuffled_epochs,
    watch,
)

COUNTS, SEEDS, HONEST_SEEDS, STEPS = (10, 100), range(3), range(100, 124), 16
# Probability with which an honest training is ever stopped by its evidence, and the confidence in 24 honest ones.
LEVEL, CONFIDENCE = 1e-3, 0.9999
NOISE_MULTIPLIER, BATCHES = 1.0, 8
# Poisson sampling at rate 1/8 for 64 steps; Flower's rounds are fixed.
SETTING = {"noise_multiplier": NOISE_MULTIPLIER, "batches": BATCHES, "epochs": 8}
# A fault makes the noise's deviation in what is released less by this factor.
SHARES = {
    "noise-per-microbatch": lambda batch: 0.5,  # noqa: ARG005
    "noise-per-client": lambda batch: batch**-0.5,
    "dropped-clients": lambda batch: 0.8**0.5,  # noqa: ARG005
    "batch-twice": lambda batch: 1 / batch,
    "sensitivity-apart": lambda batch: 4.8e-5,  # noqa: ARG005
}


def opacus(example, fault, seed):
    """Train with Opacus under a watch, which is told the ε that the accountant states, or the mechanism."""
    import torch

    torch.manual_seed(seed)
    _, model, optimizer, loader = example.private(
        example.perceptron(), example.digits()[0], BATCHES, NOISE_MULTIPLIER, fault
    )
    claim = accounting.poisson(NOISE_MULTIPLIER, rate=1 / BATCHES, rounds=STEPS)
    if fault in ("accounted-steps", "accounted-delta"):
        stating = example.PrivacyEngine(accountant="prv")
        stating.accountant.history = [(NOISE_MULTIPLIER, 1 / BATCHES, STEPS)]
        claim = example.accounted(stating, fault)
    watched = watch(optimizer, loader, delta=example.DELTA, claim=claim, module=model)
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
    if fault in ("accounted-steps", "accounted-delta"):
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


# The training of each framework with a watch.
WATCHED = {
    "opacus": ("opacus_training", opacus),
    "jax_privacy": ("jax_privacy_training", jax_privacy),
    "flower": ("flower_app", flower),
    "ddp": ("distributed_training", ddp),
}
# Examples of a training without data.
FEW = 400


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
    print(fault, steps, [answer.decision.outcome for answer in answers], file=sys.stderr, flush=True)
    failed = [[finding for finding in answer.findings if finding.status == "failed"] for answer in answers]
    common = [
        first for first in failed[0] if all(first.question in [each.question for each in other] for other in failed)
    ]
    return (common[0].question, max(steps), common[0].because) if common else ("–", "–", answers[0].decision.outcome)


def trained(example, count, **options):
    """Train without data."""
    return example.no_data(count, **options, **({} if example.__name__ == "flower_app" else SETTING))


def above(audited):
    """Tell whether an audit of cosines notices something: its interval is above the claim, or it estimates nothing."""
    return not audited.estimates or bool(audited.estimates[0].low > audited.claim)


def alarms(training, level=LEVEL):
    """Return whether each attacker notices something; for evidence the round of its alarm, from 1 on."""
    known = training.known_rounds
    evidence = known.mechanism.traces.log_evidence(training.noise) > -math.log(level)
    noticed = known.decision.rule in ("failed", "wrong-input")
    rounds = int(np.argmax(evidence)) + 1 if evidence.any() else 0
    return above(training.final), above(training.largest), noticed, rounds


def surely(example, training):
    """Audit a training's scores again, at a confidence at which 24 honest ones raise no alarm."""
    for audited, claim in (
        ("final", {"claim": training.final.claim}),
        ("largest", {"claim": training.largest.claim}),
        ("known_rounds", {"noise_multiplier": training.noise}),
    ):
        setattr(training, audited, audit(getattr(training, audited).scores, example.DELTA, CONFIDENCE, **claim))
    return alarms(training, 1.0 - CONFIDENCE)


def first(raised):
    """Name the first number of canaries with which all trainings raise an alarm, and the last round of evidence."""
    for count, each in raised.items():
        if all(each):
            return str(count) if isinstance(each[0], bool) else f"{count}, by round {max(each)}"
    return "none"


def predicted(example, fault, batch):
    """Say how many canaries plans ask for, by the nearest row that is no worse: final parameters, known rounds."""
    if fault not in SHARES:
        return "none"
    clean, share = trained(example, 10), SHARES[fault](batch)
    final = plan(clean.sigma, clean.dim, delta=example.DELTA, claim=clean.epsilon * (1 + 1e-3))
    rows = [row for row in final.faults if row.name == "less-noise" and row.value >= share]
    rate = clean.claim.rate
    law = {"rate": rate} if rate else {"participations": clean.claim.participations}
    rounds = clean.known_rounds.mechanism.traces.rounds
    known = plan_rounds(clean.noise, clean.dim, rounds, delta=example.DELTA, **law)
    planned = [row for row in known.shares if row.share >= share]
    return f"{rows[-1].count}; {planned[-1].count_of_known} (at {rows[-1].value:g})"


def by_attackers(example, fault):
    """Return the first number of canaries with which each attacker notices a fault."""
    raised = {}
    for count in COUNTS:
        trainings = [trained(example, count, fault=fault, seed=seed) for seed in SEEDS]
        raised[count] = [*zip(*map(alarms, trainings), strict=True)]
        print(f"  {fault}: {count} canaries, {raised[count]}", file=sys.stderr, flush=True)
        if fault and all(map(all, raised[count])):
            break
    return [first({count: each[i] for count, each in raised.items()}) for i in range(4)]


def honest(example, train):
    """Print in how many honest trainings something is noticed."""
    count = len(HONEST_SEEDS)
    outcomes = [str(watched(train, example, None, seed)[1].decision.outcome) for seed in HONEST_SEEDS]
    print(f"Of {count} honest trainings, {outcomes.count('PASSED')} are PASSED,", end=" ")
    print(f"and {outcomes.count('NOT PASSED')} NOT PASSED.", flush=True)
    if not hasattr(example, "no_data"):
        return
    trainings = [trained(example, COUNTS[-1], seed=seed) for seed in HONEST_SEEDS]
    names = ("final parameters", "all rounds", "known rounds", "evidence")
    for attacker, each in zip(
        names, zip(*(surely(example, training) for training in trainings), strict=True), strict=True
    ):
        print(f"Audits of {attacker} with {COUNTS[-1]} canaries raise {sum(map(bool, each))} alarms.")


def batch_of(name, example):
    """Return the number of examples or clients of a step."""
    return example.CLIENTS if name == "flower" else FEW // BATCHES


def tables(name, example, train):
    """Print what the watch notices, and then what attackers do."""
    faults, watched_by = {None: "none"} | example.FAULTS, {}
    print("| fault | finding | steps | what the watch says |\n|---|---|---|---|")
    for fault, title in faults.items():
        finding, step, words = by_watch(train, example, fault)
        watched_by[fault] = "none" if finding == "–" else f"{finding}, step {step}"
        print(f"| {title} | {finding} | {step} | {words} |", flush=True)
    if not hasattr(example, "no_data"):
        return
    columns = ("plan", "final parameters", "all rounds", "known rounds", "evidence", "watch")
    print("\n| fault |", " | ".join(columns), "|\n|---" + "|---" * len(columns) + "|")
    for fault, title in faults.items():
        planned = predicted(example, fault, batch_of(name, example)) if fault else "none"
        print("|", " | ".join([title, planned, *by_attackers(example, fault), watched_by[fault]]), "|", flush=True)


def main(name, second=""):
    """Print the tables of an example, or how many honest trainings are not passed."""
    module, train = WATCHED[name]
    example, start = import_module(module), time.monotonic()
    if second == "honest":
        honest(example, train)
    else:
        tables(name, example, train)
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
