"""Measure what an audit of adapters costs: ``python examples/adapter_cost.py``.

It trains as ``transformer_training.py`` does, its watch included, and without the lines of the watch. Each training
has a process of its own, and the two kinds take turns. A Markdown table has the medians of three trainings.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

REPEATS = 3
# Seconds of all cores, peak memory in MB, and the loss on windows held out.
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


def measured(lines):
    """Run an example's lines, and return what is measured."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "transformer_training.py").write_text("\n".join(lines), encoding="utf-8")
        command = [sys.executable, "-W", "ignore", "-c", MEASURED]
        run = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def main():
    """Print the table."""
    lines = Path(__file__).with_name("transformer_training.py").read_text(encoding="utf-8").splitlines()
    without = [line for line in lines if not line.endswith("# audit")]
    runs = {"none": [], "a watch": []}
    for _ in range(REPEATS):
        for kind, source in zip(runs, (without, lines), strict=True):
            runs[kind].append(measured(source))
            print(kind, *runs[kind][-1], file=sys.stderr, flush=True)
    print("| looked at by | processor's seconds | ratio | peak memory, MB | loss, held out |\n|---|---|---|---|---|")
    medians = {kind: np.median(rows, axis=0) for kind, rows in runs.items()}
    for kind, (seconds, memory, loss) in medians.items():
        print(f"| {kind} | {seconds:.1f} | {seconds / medians['none'][0]:.2f} | {memory:.0f} | {loss:.3f} |")


if __name__ == "__main__":
    main()
