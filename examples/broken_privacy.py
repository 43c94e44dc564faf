"""What an audit sees of a training whose privacy is broken: ``python examples/broken_privacy.py opacus``.

Or ``jax_privacy`` or ``flower``. Each fault of that example is trained without data, with more and more canaries, and
with three seeds. A Markdown table says from how many canaries on all three audits notice it, by what the attacker
knows. An audit of cosines notices a fault if all of its interval is above the claimed ε, or if it refuses to estimate.
At known rounds it does if the claim is exceeded or refuted. Evidence does by its alarm; the table has the last round of
the three. ``plan_rounds`` predicts how many canaries are needed at known rounds.
"""

import math
import sys
from importlib import import_module

import numpy as np

from canaryproof import plan, plan_rounds

COUNTS = (10, 100)
SEEDS = 3
# Probability with which an honest training is ever stopped by its evidence.
LEVEL = 1e-3
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
    """Tell whether an audit of cosines notices something: its interval is above the claim, or it estimates nothing."""
    return audited.withheld or bool(audited.estimates[0].low > audited.claim)


def trained(example, count, **options):
    """Train without data."""
    return example.no_data(count, **options, **({} if example.__name__ == "flower_app" else SETTING))


def alarms(training):
    """Return whether each attacker notices something; for evidence the round of its alarm, from 1 on."""
    known = training.known_rounds
    above = known.mechanism.traces.log_evidence(training.noise) > -math.log(LEVEL)
    noticed = known.verdict in ("exceeded", "refuted", "withheld")
    return alarm(training.final), alarm(training.largest), noticed, int(np.argmax(above)) + 1 if above.any() else 0


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


def main(name):
    """Print the table of an example."""
    example = import_module({"flower": "flower_app"}.get(name, f"{name}_training"))
    batch = example.CLIENTS if name == "flower" else example.FEW // SETTING["batches"]
    print("| fault | plan | final parameters | all rounds | known rounds | evidence |\n|---|---|---|---|---|---|")
    for fault in (None, *example.FAULTS):
        raised = {}
        for count in COUNTS:
            trainings = (trained(example, count, fault=fault, seed=seed) for seed in range(SEEDS))
            raised[count] = [*zip(*map(alarms, trainings), strict=True)]
            print(f"  {fault}: {count} canaries, {raised[count]}", file=sys.stderr, flush=True)
            if fault and all(map(all, raised[count])):
                break
        cells = [first({count: each[i] for count, each in raised.items()}) for i in range(4)]
        planned = predicted(example, fault, batch) if fault else "none"
        print("|", example.FAULTS[fault] if fault else "none", "|", planned, "|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
