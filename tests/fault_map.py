"""Measure the map of faults, ``verify/audit/blindspots/fault_map.csv``: ``python -m tests.fault_map [NAME]...``.

Each fault is simulated as in ``canaryproof verify blindspots --level full``. There are 20 trainings of up to 32 rounds
with 1,000 members, Poisson sampling at rate 1/8, noise multiplier 1 and 2,048 coordinates. A cell has the number of
rounds after which a column notices the fault in nine of ten trainings. A replay takes one step. Names measure these
rows alone; each row has seeds of its own. Rows without a simulation have a reason instead, and stay as they are.
"""

import csv
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from canaryproof import replay
from canaryproof.verify.audit.blindspots.fault_map import COLUMNS
from canaryproof.verify.papers.check.results import Context, Effort
from canaryproof.verify.papers.suites.instruments import (
    DIM,
    EXPECTED,
    FAULTS,
    HONEST,
    NOISE_MULTIPLIER,
    SEEN,
    inspected,
    replayed,
    sights,
)

TABLE = Path(__file__).parents[1] / "verify" / "audit" / "blindspots" / "fault_map.csv"
CONTEXT = Context(Effort.FULL, 0)


def noise(number, seed):
    """Draw a round's honest noise."""
    return HONEST.noise(number, seed)


def less(share):
    """Draw noise of a share of its deviation."""
    return lambda number, seed: share * noise(number, seed)


def clipped(updates):
    """Add up updates, each clipped."""
    return HONEST.total(updates)


def half_on_half(number, seed):
    """Draw noise that has half of its deviation on half of the coordinates."""
    return noise(number, seed) * np.where(np.arange(DIM) < DIM // 2, 0.5, 1.0)


@cache
def subspace(rank):
    """Return an orthonormal basis of a subspace."""
    return np.linalg.qr(np.random.default_rng(rank).normal(size=(DIM, rank)))[0]


def low_rank(rank):
    """Draw noise of the claimed mean variance in a subspace."""
    return lambda number, seed: (DIM / rank) ** 0.5 * subspace(rank) @ (subspace(rank).T @ noise(number, seed))


def laplace(number, seed):
    """Draw Laplace noise of the claimed deviation."""
    return np.random.default_rng([seed, number, 3]).laplace(size=DIM) * NOISE_MULTIPLIER / 2**0.5


def mostly_clipped(updates):
    """Clip all updates but every eighth."""
    return clipped(updates) + (updates[::8].sum(axis=0) - clipped(updates[::8]))


def one_counts_four_times(updates):
    """Count the first update four times."""
    return clipped(updates) + 3.0 * clipped(updates[:1])


def centred(updates):
    """Take the batch's mean out of each update before it is clipped, as batch normalisation would."""
    return clipped(updates - updates.mean(axis=0))


def slightly_long(updates):
    """Clip to 0.2% more than the clip norm."""
    return 1.002 * clipped(updates / 1.002)


def not_finite(updates):
    """Let what is not finite through."""
    finite = np.isfinite(updates).all(axis=1)
    return clipped(updates[finite]) + updates[~finite].sum(axis=0)


MORE = {
    "dilution": replace(HONEST, noise=less(0.5)),
    "noise-per-client": replace(HONEST, noise=less(EXPECTED**-0.5)),
    "half-noise-on-a-share": replace(HONEST, noise=half_on_half),
    "low-rank": replace(HONEST, noise=low_rank(DIM // 10)),
    "low-rank-rounds": replace(HONEST, noise=low_rank(3)),
    "laplace-for-normal": replace(HONEST, noise=laplace),
    "unclipped": replace(HONEST, total=mostly_clipped),
    "memorised": replace(HONEST, total=one_counts_four_times),
    "centred": replace(HONEST, total=centred),
    "slightly-long": replace(HONEST, total=slightly_long),
}
# Faults that show where a step has such a member or none, and so in a replay alone.
STEPS = {
    "not-finite": replace(HONEST, total=not_finite),
    "empty-batch": replace(HONEST, weight=lambda size: float(size > 0)),
    "replace": HONEST,
}


def of_step(name):
    """Tell whether a replay of one step sees a fault that needs an extreme member, an empty batch or a replacement."""
    drawn, batch = STEPS[name].noise(0, 0), np.random.default_rng(0).normal(size=(20, DIM)) / DIM**0.5
    return replay(
        lambda updates: STEPS[name].release(updates, drawn),
        batch,
        1.0 / EXPECTED,
        extremes={"not a number": np.full(DIM, np.nan)} if name == "not-finite" else {"long": -1e6 * batch[0]},
        neighbours="replace" if name == "replace" else "add-or-remove",
    ).has_failed


def cells(name):
    """Return the cells of a row; nothing if it has no simulation."""
    if name in STEPS:
        return {"replay": 1} if of_step(name) else {}
    training = FAULTS.get(name) or MORE.get(name)
    if training is None:
        return None
    first = {}
    for column, each in sights(name, training, CONTEXT).items():
        noticed = [sight.rounds for sight in each if sight.noticed >= SEEN * sight.runs]
        first |= {column: noticed[0]} if noticed else {}
    return first


def main(*names):
    """Write the table, and print the time that an inspection and a replay take."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    for row in rows:
        measured = cells(row["name"]) if not names or row["name"] in names else None
        if measured is not None:
            row |= {column: measured.get(column, "") for column in COLUMNS}
            print(row["name"], measured, flush=True)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, reader.fieldnames, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    seconds = []
    for look in (lambda: inspected(HONEST, (16,), 0), lambda: replayed(HONEST, 0)):
        start = time.process_time()
        look()
        seconds.append(time.process_time() - start)
    print("Sixteen rounds of an inspection take {:.2g} s of processor time, and a replay {:.2g} s.".format(*seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
