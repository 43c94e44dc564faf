"""Show what is seen of a training whose privacy is broken: ``python examples/broken_privacy.py opacus``.

The other names are ``jax_privacy`` and ``flower``. Markdown tables have each fault of that example, and who notices it
in three seeds.

A training by Opacus is watched for 16 steps. The first table has the finding that fails in all three seeds, after how
many steps, and what the watch says of the first seed.

Trainings by the others are inspected. An inspection has what each step releases, who was drawn, and the others'
updates. Ten canaries are members of the training, with updates of ten clip norms. The first table says after how many
of 16 steps all three trainings are refuted, and by which tests. A replay runs one step twice. Accounting compares the
claimed ε with ``canaryproof.accounting``. The second table has for each fault an instrument that is sure of it, after
how many steps, and with which power. Where nothing that the instrument looks at is left to chance, the power is 1.

Attackers have canaries. Trainings without data have more and more of them. The last table has the first number of
canaries with which all three audits notice the fault. An audit of cosines does if all of its interval is above the
claimed ε, or if it refuses to estimate. At known rounds it does if the claim is exceeded or refuted. Evidence does by
its alarm; the cell has the last round of the three. ``plan_rounds`` predicts how many canaries are needed at known
rounds.

``honest`` as a second word trains 24 times without a fault, and counts the trainings in which anything is noticed.
"""

import math
import sys
import time
from importlib import import_module
from types import SimpleNamespace

import numpy as np
from scipy import stats

from canaryproof import (
    FlowerInspection,
    Inspection,
    JaxInspection,
    ResidualTests,
    SamplingTests,
    accounting,
    audit,
    flatten,
    plan,
    plan_rounds,
    replay,
    shuffled_epochs,
    watch,
)

COUNTS, SEEDS, HONEST_SEEDS, STEPS = (10, 100), range(3), range(100, 124), 16
# Probability with which an honest training is ever stopped by its evidence, and the confidence in 24 honest ones.
LEVEL, CONFIDENCE = 1e-3, 0.9999
NOISE_MULTIPLIER, BATCHES = 1.0, 8
# Poisson sampling at rate 1/8 for 64 steps; Flower's rounds are fixed.
SETTING = {"noise_multiplier": NOISE_MULTIPLIER, "batches": BATCHES, "epochs": 8}
TRAINED = 64
# A fault makes the noise's deviation in what is released less by this factor.
SHARES = {
    "noise-per-microbatch": lambda batch: 0.5,  # noqa: ARG005
    "noise-per-client": lambda batch: batch**-0.5,
    "dropped-clients": lambda batch: 0.8**0.5,  # noqa: ARG005
    "batch-twice": lambda batch: 1 / batch,
    "sensitivity-apart": lambda batch: 4.8e-5,  # noqa: ARG005
}
# Tests of who was drawn that depend on nothing but the sizes of batches with these faults.
RECORDS = {"fixed-batches": "returns", "fixed-size": "spread of batch sizes"}
# Rounds of coarse noise that are simulated, and the confidence of the power's lower limit.
DRAWN, SURE = 400, 0.95


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
    """Train with jax_privacy: a canary is an example whose loss is linear, so that its gradient is the canary."""
    import jax
    from jax_privacy import batch_selection

    x, y = (np.concatenate([values, values[: Inspection.canaries]]) for values in example.digits()[0])
    params = example.first_parameters(jax.random.key(seed))
    batch = -(-len(x) // BATCHES)
    inspection = JaxInspection(
        example.loss,
        params,
        members=len(x) - Inspection.canaries,
        noise_multiplier=NOISE_MULTIPLIER,
        clip_norm=example.CLIP_NORM,
        rate=batch / len(x),
        seed=seed,
    )
    summed = example.gradients(fault, inspection.loss, (1, 2, 3))
    privatizer, _ = example.noise(NOISE_MULTIPLIER, batch, STEPS, False, fault, seed)
    state = privatizer.init(params)
    for indices in example.drawn(fault, len(x), BATCHES, STEPS, seed):
        padded = batch_selection.pad_to_multiple_of(indices, 64)
        members, padding = (x[padded], y[padded], padded), (padded < 0) & (fault != "padding")
        noisy, state = privatizer.update(
            summed(params, *members, is_padding_example=padding),
            privatizer.init(params) if fault == "reused-noise" else state,
        )
        number = max(1, len(indices)) if fault == "normalised-after-noise" else batch
        released = jax.tree.map(lambda g, number=number: g / number, noisy)
        inspection.take(released, params, *members)
        params = jax.tree.map(lambda p, g: p - example.RATE * g, params, released)
        yield inspection


def jax_privacy_step(example, fault):
    """Return a step of jax_privacy as a function of gradients of examples, its dimension and its divisor."""
    import jax
    from jax.flatten_util import ravel_pytree

    params, batch = example.first_parameters(jax.random.key(0)), FEW // BATCHES
    dim = ravel_pytree(params)[0].size
    summed = example.gradients(fault, lambda p, rows: (rows @ ravel_pytree(p)[0]).sum(), (1,))
    privatizer, _ = example.noise(NOISE_MULTIPLIER, batch, STEPS, False, fault, 0)

    def step(gradients):
        # A batch may be empty.
        padded = np.append(np.arange(len(gradients)), np.full(64 - len(gradients) % 64, -1))
        rows = np.float32(gradients if len(gradients) else np.zeros((1, dim)))[padded]
        total = summed(params, rows, is_padding_example=(padded < 0) & (fault != "padding"))
        number = max(1, len(gradients)) if fault == "normalised-after-noise" else batch
        return np.asarray(ravel_pytree(privatizer.update(total, privatizer.init(params))[0])[0]) / number

    return step, dim, batch


def jax_privacy_claim(example, fault):
    """Return ε by jax_privacy's accountant, and the claim on the same training."""
    return example.analytical(NOISE_MULTIPLIER, TRAINED, FEW, FEW // BATCHES, False, fault)


def flower(example, fault, seed):
    """Train with Flower's strategy: canaries are nodes, and each round's cohort is a part of all nodes."""
    members = example.ROUNDS * example.CLIENTS - Inspection.canaries
    participation = shuffled_epochs(example.ROUNDS * example.CLIENTS, example.CLIENTS, 1, seed)
    model = example.first_model(np.random.default_rng(seed))
    strategy = example.PrivateFedAvg(participation, NOISE_MULTIPLIER, seed, fault or "")
    # No attacker's canaries join the sum.
    strategy.canaries = SimpleNamespace(total=lambda *_: 0.0, add=lambda *_, **__: None)
    arrays, config = example.to_arrays(model), example.ConfigRecord({"client-rate": 0.1})
    inspection = FlowerInspection(
        strategy,
        arrays,
        members=members,
        noise_multiplier=NOISE_MULTIPLIER,
        clip_norm=example.CLIP_NORM,
        divisor=example.CLIENTS / example.SERVER_RATE,
        seed=seed,
    )
    grid = example.GridInProcess(members)
    for number in range(1, STEPS + 1):
        replies = grid.send_and_receive(strategy.configure_train(number, arrays, config, grid))
        arrays, _ = strategy.aggregate_train(number, replies)
        yield inspection


def flower_step(example, fault):
    """Return a round of Flower's strategy as a function of updates of clients, its dimension and its divisor."""
    strategy = example.PrivateFedAvg(None, NOISE_MULTIPLIER, 0, fault or "")
    strategy.model = example.first_model(np.random.default_rng(0))
    dim = len(flatten(strategy.model))

    def step(updates):
        total = strategy.clipped(updates) if len(updates) else 0.0
        return (total + strategy.noise(0, dim)) / example.CLIENTS

    return step, dim, example.CLIENTS


def flower_claim(example, fault):
    """Return ε of the final parameters, and the claim on them."""
    sigma = NOISE_MULTIPLIER * example.ROUNDS**0.5
    return example.accounted(sigma, fault), accounting.gaussian(sigma)


# A framework has a training with an inspection, one step of it, and its accounting.
INSPECTED = {
    "jax_privacy": ("jax_privacy_training", jax_privacy, jax_privacy_step, jax_privacy_claim),
    "flower": ("flower_app", flower, flower_step, flower_claim),
}
# Examples of a training without data.
FEW = 400


def watched(example, fault, seed):
    """Return the step after which the watch says that a training is not passed, None without one, and its answer."""
    stopped = None
    for step, watching in zip(range(1, STEPS + 1), opacus(example, fault, seed), strict=False):
        if stopped is None and watching.has_failed:
            stopped = step
    answer = watching.close()
    return (stopped or STEPS) if answer.decision.outcome == "NOT PASSED" else None, answer


def by_watch(example, fault):
    """Return the cells of a watch: the first finding that fails in all seeds, after how many steps, and its words."""
    steps, answers = zip(*(watched(example, fault, seed) for seed in SEEDS), strict=True)
    print(fault, steps, [answer.decision.outcome for answer in answers], file=sys.stderr, flush=True)
    failed = [[finding for finding in answer.findings if finding.status == "failed"] for answer in answers]
    common = [
        first for first in failed[0] if all(first.question in [each.question for each in other] for other in failed)
    ]
    return (common[0].question, max(steps), common[0].because) if common else ("–", "–", answers[0].decision.outcome)


def inspected(train, example, fault, seed):
    """Return the step after which a training is refuted, and the tests that do it; nothing after the last."""
    for step, inspection in zip(range(1, STEPS + 1), train(example, fault, seed), strict=False):
        if inspection.has_failed:
            return step, [test.name for test in inspection.tests() if test.has_failed]
    return None


def replayed(step, dim, divisor):
    """Run a step of forty updates twice, with a member more that is long, a duplicate, or against the sum."""
    updates = np.random.default_rng(0).normal(size=(40, dim)) / dim**0.5
    extremes = {
        "10⁶ clip norms": 1e6 * updates[0],
        "a duplicate": updates[0],
        "against the sum": -1e6 * updates.sum(axis=0),
    }
    return replay(step, updates, 1.0 / divisor, extremes=extremes)


def trained(example, count, **options):
    """Train without data."""
    return example.no_data(count, **options, **({} if example.__name__ == "flower_app" else SETTING))


def understated(example, fault, claim):
    """Return the claimed ε and that of ``canaryproof.accounting``, if the claim is less by more than 1%."""
    claimed, right = claim(example, fault)
    epsilon = right.epsilon(example.DELTA)
    return f"{claimed:.3g} for {epsilon:.3g}" if claimed < 0.99 * epsilon else ""


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


def by_instruments(example, train, make_step, claim, fault):
    """Return the cells of the instruments: steps after which all seeds are refuted, tests, replay and accounting."""
    each = [inspected(train, example, fault, seed) for seed in SEEDS]
    steps = tests = "–"
    if all(each):
        tests = ", ".join(test for test in each[0][1] if all(test in case[1] for case in each)) or "several"
        steps = f"{max(case[0] for case in each)}"
    answer = replayed(*make_step(example, fault))
    worst = max(case.distance for case in answer.cases) / answer.sensitivity
    return steps, tests, f"{worst:.3g}" if answer.has_failed else "–", understated(example, fault, claim) or "–"


def record_steps(test, population, batches):
    """Return after how many steps a test of who was drawn refutes batches of one size, an epoch without returns."""
    record, parts = SamplingTests(1 / batches, population), np.array_split(np.arange(population), batches)
    for step in range(STEPS):
        record.add(parts[step % batches])
        if any(each.has_failed for each in record.tests() if each.name == test):
            return step + 1
    return None


def coarse_power(dim, bits):
    """Return a lower limit of the power with which repeated values show noise of few bits in one round."""
    rng, noticed = np.random.default_rng(0), 0
    for _ in range(DRAWN):
        mantissa, exponent = np.frexp(rng.normal(size=dim))
        # The sum of clipped updates is added in single precision, and taken out again.
        total = rng.normal(size=dim).astype(np.float32)
        coarse = np.ldexp(np.round(mantissa * 2.0**bits), exponent - bits).astype(np.float32)
        tests = ResidualTests(NOISE_MULTIPLIER, dim)
        tests.add((coarse + total) - total, resolution=float(np.spacing(np.abs(coarse + total).max())))
        noticed += any(test.has_failed for test in tests.tests() if test.name == "values")
    return float(stats.beta.ppf(1 - SURE, noticed, DRAWN - noticed + 1))


def power(example, fault, inspection, cells, dim, batch):
    """Return an instrument that is sure of a fault, after how many steps, its power, and how that is known."""
    _, _, answer, accounted = cells
    if accounted != "–":
        return "accounting", "–", "1", "nothing is drawn"
    if answer != "–":
        return "replay", "1", "1", "nothing is drawn: members and noise are given"
    if fault in RECORDS:
        steps = record_steps(RECORDS[fault], inspection.population, BATCHES)
        return RECORDS[fault], f"{steps}", "1", "it depends on the batches' sizes alone"
    if fault == "reused-noise":
        return "span", "2", "1", "the second step's noise is that of the first"
    if fault == "coarse-noise":
        limit = coarse_power(dim, 11 if "float16" in example.FAULTS[fault].split() else 8)
        least = math.floor(1000 * limit) / 1000
        return "values", "1", f"at least {least}", f"{DRAWN} simulated rounds, {SURE:.0%} confidence"
    critical = (1.0 - ResidualTests(1.0, dim).tolerance) ** 2 * stats.chi2.ppf(1e-6, dim)
    missed = stats.chi2.sf(critical / SHARES[fault](batch) ** 2, dim)
    return "noise", "1", "1" if missed < 1e-15 else f"1 − {missed:.1g}", f"χ² of {dim:,} degrees of freedom"


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


def honest(example, *instruments):
    """Print in how many honest trainings something is noticed."""
    count = len(HONEST_SEEDS)
    if instruments:
        train, make_step, claim = instruments
        refuted = sum(inspected(train, example, None, seed) is not None for seed in HONEST_SEEDS)
        print(f"Of {count} honest trainings, inspections refute {refuted}.")
        print(f"A replay refutes {int(replayed(*make_step(example, None)).has_failed)} of 1 honest steps.", flush=True)
        print(f"Accounting refutes {int(bool(understated(example, None, claim)))} of 1 claim.")
    else:
        outcomes = [str(watched(example, None, seed)[1].decision.outcome) for seed in HONEST_SEEDS]
        print(f"Of {count} honest trainings, {outcomes.count('PASSED')} are PASSED,", end=" ")
        print(f"and {outcomes.count('NOT PASSED')} NOT PASSED.", flush=True)
    trainings = [trained(example, COUNTS[-1], seed=seed) for seed in HONEST_SEEDS]
    names = ("final parameters", "all rounds", "known rounds", "evidence")
    for attacker, each in zip(
        names, zip(*(surely(example, training) for training in trainings), strict=True), strict=True
    ):
        print(f"Audits of {attacker} with {COUNTS[-1]} canaries raise {sum(map(bool, each))} alarms.")


def tables_of_instruments(name, example, *instruments):
    """Print what an inspection, a replay and accounting notice, and with which power."""
    print("| fault | steps | refuted by | replay | accounting |\n|---|---|---|---|---|")
    seen = {}
    for fault, title in {None: "none", **example.FAULTS}.items():
        seen[fault] = by_instruments(example, *instruments, fault)
        print("|", " | ".join([title, *seen[fault]]), "|", flush=True)
    train, make_step, _ = instruments
    inspection, (_, dim, _) = next(train(example, None, SEEDS[0])), make_step(example, None)
    print("\n| fault | noticed by | steps | power | computed from |\n|---|---|---|---|---|")
    for fault, title in example.FAULTS.items():
        cells = power(example, fault, inspection, seen[fault], dim, batch_of(name, example))
        print("|", " | ".join([title, *cells]), "|", flush=True)


def batch_of(name, example):
    """Return the number of examples or clients of a step."""
    return example.CLIENTS if name == "flower" else FEW // BATCHES


def tables(name, example, *instruments):
    """Print what the watch or instruments notice, and then what attackers do."""
    faults, watched_by = {None: "none"} | example.FAULTS, {}
    if instruments:
        tables_of_instruments(name, example, *instruments)
    else:
        print("| fault | finding | steps | what the watch says |\n|---|---|---|---|")
        for fault, title in faults.items():
            finding, step, words = by_watch(example, fault)
            watched_by[fault] = ["none" if finding == "–" else f"{finding}, step {step}"]
            print(f"| {title} | {finding} | {step} | {words} |", flush=True)
    columns = ["plan", "final parameters", "all rounds", "known rounds", "evidence", *(["watch"] if watched_by else [])]
    print("\n| fault |", " | ".join(columns), "|\n|---" + "|---" * len(columns) + "|")
    for fault, title in faults.items():
        planned = predicted(example, fault, batch_of(name, example)) if fault else "none"
        cells = [title, planned, *by_attackers(example, fault), *watched_by.get(fault, [])]
        print("|", " | ".join(cells), "|", flush=True)


def main(name, second=""):
    """Print the tables of an example, or how many honest trainings are refuted."""
    module, *instruments = INSPECTED.get(name, ("opacus_training",))
    example, start = import_module(module), time.monotonic()
    if second == "honest":
        honest(example, *instruments)
    else:
        tables(name, example, *instruments)
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
