"""How often an audit's interval has ε: ``python examples/interval_coverage.py start`` (or ``opacus``, ``jax_privacy``).

It trains with 20 seeds without data, and with 20 others with data. A Markdown table says how many intervals of the
composed ε̂ have the ε that is claimed, and how wide they are, beside those of the largest cosine. The last row is of an
attacker who does not know the data. He measures noise and data together, and their ε is the one to have.
"""

import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import canaryproof as cp

SEEDS = 20
DELTA = 1e-5
# Poisson sampling at rate 1/8 for 64 steps.
SETTING = {"noise_multiplier": 1.0, "batches": 8, "epochs": 8, "canaries": 100}
START = Path(__file__).parents[1] / "docs" / "start.md"


class TwoAttackers(cp.CanaryClients):
    """Canary clients of one training for two attackers: one knows all other data, and one does not."""

    def __init__(self, canaries, participation, **options):
        super().__init__(canaries, participation, **options)
        self.ignorant = cp.CanaryClients(canaries, participation, **options)
        # Squared norm of the others' part of a release in clip norms, for the attacker who does not know the data.
        self.others = []

    def add(self, delta, round=None, known=None):  # noqa: A002
        """Take a release, in clip norms."""
        total, seen = self._sum_of(self.rounds), self._seen.copy()
        members = self.participants(self.rounds)
        first = self.canaries.sum(members[~seen[members]])
        self.others.append(np.square(known + total - first).sum())
        super().add(delta, round, known)
        self.ignorant.add(delta, round)

    def noise_and_data(self, noise_multiplier):
        """Return the noise multiplier that noise and data have together, in the rounds that measure it."""
        traces, others = self.ignorant.traces, np.array(self.others)
        each = np.sqrt(noise_multiplier**2 + others[self.ignorant.evidence(1.0).rounds] / traces.dim)
        # A round's trace is ‖S‖ over the noise, and ‖S‖ is its weight.
        return np.square(traces.lengths).sum() / (np.square(traces.lengths) / each).sum()


def watch_two_attackers(*args, **options):
    """Watch a training by Opacus, with canaries for two attackers."""
    watched = cp.watch(*args, **options)
    canaries = watched.canaries
    drawn, noise = canaries.canary_clients.participation, canaries.noise_multiplier
    canaries.canary_clients = TwoAttackers(canaries.canary_clients.canaries, drawn, noise_multiplier=noise)
    return watched


@cache
def start_page():
    """Run the start page's data and gradients, as they stand there."""
    cells = re.findall(r"^```python\n(.*?)^```", START.read_text(encoding="utf-8"), re.M | re.S)
    (cell,) = (cell for cell in cells if "def gradients" in cell)
    names = {}
    exec(cell, names)
    return SimpleNamespace(**names)


def trained_as_on_the_start_page(seed, *, no_data):
    """Train as the start page does, with another seed of canaries, schedule and noise."""
    page = start_page()
    rng, model = np.random.default_rng([seed, 1]), np.zeros(7840)
    # 1,000 that take part, and as many that do not for the largest cosines: no estimate's interval rests on coins.
    insertion = cp.Insertion(2000, observed=1000)
    schedule = cp.shuffled_epochs(clients=1000, cohort=page.BATCH, epochs=1, seed=seed, canaries=insertion)
    canaries = TwoAttackers(cp.Canaries(seed, 2000, len(model)), schedule)
    for t in range(page.STEPS):
        batch = slice(t * page.BATCH, (t + 1) * page.BATCH)
        others = -page.gradients(model, page.images[batch], page.labels[batch]).sum(axis=0) * (not no_data)
        total = others + canaries.total(t, page.CLIP_NORM) + page.CLIP_NORM * rng.normal(size=len(model))
        canaries.add(total, t, known=others)
        model = model + page.RATE * total / (page.BATCH + 50)
    return canaries, "known rounds", cp.accounting.gaussian(1.0)


def trained_by(name, seed, *, no_data):
    """Train an example, and return its canaries with the score that its claim is for."""
    if name == "start":
        return trained_as_on_the_start_page(seed, no_data=no_data)
    # They load what the start page does not need.
    if name == "opacus":
        import opacus_training as example

        example.watch = watch_two_attackers
        data, _ = example.digits(example.FEW)
        training = example.train(example.perceptron(), data, seed=seed, no_data=no_data, **SETTING)
        return training.canaries.canary_clients, training.score, training.claim
    import jax_privacy_training as example

    example.CanaryClients = TwoAttackers
    training = example.train(example.digits(example.FEW)[0], seed=seed, no_data=no_data, **SETTING)
    return training.canaries, training.score, training.claim


def width(measured, claim):
    """Return the width of the composed interval, whose ends have the ε of the measured noise's."""
    high, low = (replace(claim, noise_multiplier=noise).epsilon(DELTA) for noise in (measured.low, measured.high))
    return high - low


def main(name):
    """Print the table of a training."""
    rows = {"none": [], "known": [], "not known": []}
    for seed in range(2 * SEEDS):
        no_data = seed < SEEDS
        canaries, score, claim = trained_by(name, seed, no_data=no_data)
        measured, truth = canaries.scores(score).record.traces.noise_multiplier(), claim.noise_multiplier
        largest = cp.audit(cp.Scores(*canaries.all_rounds()), DELTA).estimates[0]
        row = measured.low, truth, measured.high, width(measured, claim), largest.high - largest.low
        rows["none" if no_data else "known"].append(row)
        if not no_data:
            measured = canaries.ignorant.traces.noise_multiplier()
            rows["not known"].append((measured.low, canaries.noise_and_data(truth), measured.high))
        print(seed, row, file=sys.stderr, flush=True)
    print("| data | ε | intervals with ε | median width | by the largest cosine | ratio |\n|---|---|---|---|---|---|")
    for data, numbers in rows.items():
        low, truth, high, *widths = np.array(numbers).T
        # ε falls with the noise, so that its interval has ε where that of the noise has the noise.
        holding = f"{((low <= truth) & (truth <= high)).sum()} of {SEEDS}"
        epsilon = replace(claim, noise_multiplier=float(np.median(truth))).epsilon(DELTA)
        composed, other = np.median(widths, axis=1) if widths else (np.nan, np.nan)
        cells = f"{composed:.2f} | {other:.2f} | {composed / other:.3f}" if widths else "– | – | –"
        print(f"| {data} | {epsilon:.2f} | {holding} | {cells} |")


if __name__ == "__main__":
    main(sys.argv[1])
