"""What an audit sees of a training whose privacy is broken: ``python examples/broken_privacy.py opacus``.

Or ``jax_privacy`` or ``flower``. Each fault of that example is trained without data, with more and more canaries, and
with three seeds. A Markdown table says from how many canaries on all three audits notice it, and how many ``plan``
predicted. An audit notices a fault if all of its interval is above the claimed ε, or if it refuses to estimate.
"""

import sys
from importlib import import_module

from canaryproof import plan

COUNTS = (10, 100)
SEEDS = 3
# Poisson sampling at rate 1/8 for 64 steps; Flower's rounds are fixed.
SETTING = {"noise_multiplier": 1.0, "batches": 8, "epochs": 8}
# What the fault makes of the noise's deviation in what is released, where it makes it less.
SHARES = {
    "noise-per-microbatch": lambda batch: 0.5,  # noqa: ARG005
    "noise-per-client": lambda batch: batch**-0.5,
    "batch-twice": lambda batch: 1 / batch,
    "cohort-twice": lambda batch: 1 / batch,
}


def alarm(audited):
    """Tell whether an audit notices something: its interval is above the claimed ε, or it refuses to estimate."""
    return audited.withheld or bool(audited.estimates[0].low > audited.claim)


def trained(example, count, **options):
    """Train without data."""
    return example.no_data(count, **options, **({} if example.__name__ == "flower_app" else SETTING))


def rates(example, fault, count):
    """Return how many of the trainings raise an alarm: by the final parameters, and by all rounds."""
    found = [trained(example, count, fault=fault, seed=seed) for seed in range(SEEDS)]
    return sum(alarm(one.final) for one in found), sum(alarm(one.rounds) for one in found)


def first(seen):
    """Name the first number of canaries with which all trainings raise an alarm."""
    return next((str(count) for count, times in seen.items() if times == SEEDS), "none")


def predicted(example, fault, batch):
    """Return how many canaries the plan says are needed, by the atlas's nearest row that is no worse."""
    if fault not in SHARES:
        return "none"
    clean = trained(example, 10)
    found = plan(clean.sigma, clean.dim, delta=example.DELTA, claim=clean.epsilon * (1 + 1e-3))
    share = SHARES[fault](batch)
    rows = [one for one in found.faults if one.name == "less-noise" and one.value >= share]
    return f"{rows[-1].count} (at {rows[-1].value:g})"


def main(name):
    """Print the table of an example."""
    example = import_module({"flower": "flower_app"}.get(name, f"{name}_training"))
    batch = example.CLIENTS if name == "flower" else 1500 // 8
    print("| fault | plan | final parameters | all rounds |\n|---|---|---|---|")
    for fault in (None, *example.FAULTS):
        found = {}
        for count in COUNTS:
            found[count] = rates(example, fault, count)
            if fault and min(found[count]) == SEEDS:
                break
        finals, rounds = ({count: pair[i] for count, pair in found.items()} for i in (0, 1))
        foretold = predicted(example, fault, batch) if fault else "none"
        print(f"| {example.FAULTS[fault] if fault else 'none'} | {foretold} | {first(finals)} | {first(rounds)} |")
        print(f"  {fault}: alarms of {SEEDS}, final {finals}, rounds {rounds}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
