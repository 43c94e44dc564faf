"""How often an audit of adapters has ε, and what it costs: ``python examples/adapter_coverage.py``.

It trains the adapters of ``transformer_training.py`` for 32 steps, with ten seeds and all of the noise, and with ten
seeds and half of it. A Markdown table says how many composed intervals have the ε that is claimed, and how many
trainings with half of the noise are stopped by an alarm. It also has what the canaries add to a training's time.

``cost`` as an argument compares the training with the same one without the lines of the audit.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from transformer_training import train, written

from canaryproof import OpacusCanaries

SEEDS = 10


def timed(function, seconds):
    """Return a function that adds what it takes to a list."""

    def call(*args):
        start = time.perf_counter()
        result = function(*args)
        seconds.append(time.perf_counter() - start)
        return result

    return call


def trained(seed, fault=None):
    """Train, and return the canaries, and the shares of steps and of audits in the time of a training without them."""
    insertions, noises = [], []
    inner = OpacusCanaries._add_canaries_and_noise

    def add(inserted):
        if not noises:
            inserted._add_noise = timed(inserted._add_noise, noises)
        inner(inserted)

    OpacusCanaries._add_canaries_and_noise = timed(add, insertions)
    try:
        with tempfile.TemporaryDirectory() as folder:
            training = train(written(), folder, epochs=4, seed=seed, fault=fault)
    finally:
        OpacusCanaries._add_canaries_and_noise = inner
    canaries = sum(insertions) - sum(noises)
    return training.training_audit, canaries, training.seconds - canaries


# In a process of its own: seconds of all processor's cores, peak memory in MB, and the loss on windows held out.
MEASURED = """
import json, resource, tempfile, time
from transformer_training import *
with tempfile.TemporaryDirectory() as folder:
    start = time.process_time()
    training = train(written(), folder)
    seconds = time.process_time() - start
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([seconds, memory, loss(training.model, Windows(written(), HELD_OUT))]))
"""


def cost(repeats=3):
    """Print what 100 canaries cost, by the same training without the lines of the audit."""
    print("| audit | processor's seconds | ratio | peak memory, MB | loss, held out |\n|---|---|---|---|---|")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(__file__).with_name("transformer_training.py").read_text(encoding="utf-8").splitlines()
        for name, source in (
            ("none", [line for line in lines if not line.endswith("# audit")]),
            ("100 canaries", lines),
        ):
            Path(folder, "transformer_training.py").write_text("\n".join(source), encoding="utf-8")
            command = [sys.executable, "-W", "ignore", "-c", MEASURED]
            runs = [subprocess.run(command, cwd=folder, capture_output=True, check=True) for _ in range(repeats)]
            rows.append(np.median([json.loads(run.stdout.splitlines()[-1]) for run in runs], axis=0))
            seconds, memory, loss = rows[-1]
            print(f"| {name} | {seconds:.1f} | {seconds / rows[0][0]:.2f} | {memory:.0f} | {loss:.3f} |", flush=True)


def main():
    """Print the table."""
    if sys.argv[1:] == ["cost"]:
        cost()
        return
    holding = alarms = 0
    shares = []
    for seed in range(SEEDS):
        training_audit, canaries, rest = trained(seed)
        result = training_audit.result()
        estimate = result.estimate
        holding += bool(estimate.low <= result.claim <= estimate.high)
        shares.append(canaries / rest)
        broken, _, _ = trained(SEEDS + seed, fault="noise-halved")
        alarm = broken.alarm()
        alarms += alarm is not None
        row = seed, result.claim, estimate.low, estimate.high, shares[-1], alarm
        print(*row, file=sys.stderr, flush=True)
    print("| ε | intervals with ε | half of the noise: alarms | time of the canaries in the rest |\n|---|---|---|---|")
    print(f"| {result.claim:.2f} | {holding} of {SEEDS} | {alarms} of {SEEDS} | {100 * np.median(shares):.1f}% |")


if __name__ == "__main__":
    main()
