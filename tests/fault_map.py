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

from canaryproof import SamplingTests, accounting, replay, seed_tests
from canaryproof.verify.audit.blindspots.fault_map import COLUMNS, WATCH
from canaryproof.verify.papers.check.results import Context, Effort
from canaryproof.verify.papers.suites.instruments import (
    DELTA,
    DIM,
    EXPECTED,
    FAULTS,
    HONEST,
    LAYERS,
    MEMBERS,
    NOISE_MULTIPLIER,
    RATE,
    SEEN,
    replayed,
    round_of_failure,
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


def drawn_twice(number, seed):
    """Draw members with replacement."""
    return np.random.default_rng([seed, number, 1]).integers(MEMBERS, size=round(EXPECTED))


def coupled(examples):
    """Clip gradients of a loss that compares each example with the mean of its batch."""
    outputs = np.array([np.tanh(each) for each in examples]).reshape(-1, DIM)
    return clipped(outputs + outputs.mean(axis=0)) if len(outputs) else np.zeros(DIM)


def padded_texts(texts):
    """Clip gradients of texts' means over the length of the longest one in the batch."""
    longest = max(map(len, texts), default=0)
    rows = [np.bincount(text, minlength=DIM) / longest for text in texts]
    return clipped(4.0 * np.array(rows)) if rows else np.zeros(DIM)


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
    "drawn-twice": replace(HONEST, drawn=drawn_twice),
}
# Wrong claims of honest trainings, which a watch alone holds against what it recorded.
CLAIMS = {
    "accounted-steps": replace(
        HONEST, claim=lambda rounds: accounting.poisson(NOISE_MULTIPLIER, rate=RATE, rounds=-(-rounds // 2))
    ),
    "accounted-delta": replace(HONEST, claim=lambda rounds: HONEST.claim(rounds).epsilon(100.0 * DELTA)),
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


def of_examples(name):
    """Tell whether a replay sees a loss that couples examples, whose gradients are clipped one by one."""
    rng = np.random.default_rng(0)
    if name == "coupled-loss":
        return replay(coupled, list(rng.normal(size=(20, DIM))), 1.0, extremes={"far": np.full(DIM, 9.0)}).has_failed
    texts = [rng.integers(DIM, size=8) for _ in range(20)]
    return replay(padded_texts, texts, 1.0, extremes={"long": rng.integers(DIM, size=4096)}).has_failed


def of_two_seeds(training):
    """Tell whether two trainings, a round each with another seed, see a part without noise or the same members."""
    batch, records = np.random.default_rng(0).normal(size=(20, DIM)) / DIM**0.5, []
    for seed in range(2):
        records.append(SamplingTests(RATE, MEMBERS))
        records[-1].add(training.drawn(0, seed))
    releases = [training.release(batch, training.noise(0, seed)) for seed in range(2)]
    parts = [dict(enumerate(np.split(each, np.cumsum(LAYERS)[:-1]))) for each in releases]
    before = {name: np.zeros(len(each)) for name, each in parts[0].items()}
    return any(test.has_failed for test in (*seed_tests(before, *parts), records[0].compare(records[1])))


def of_watch(training):
    """Return the number of rounds after which a watch notices a fault in nine of ten trainings; None without one."""
    each = [round_of_failure(training, 32, seed) for seed in range(20)]
    for rounds in (1, 2, 4, 8, 16, 32):
        if sum(number is not None and number <= rounds for number in each) >= SEEN * len(each):
            return rounds
    return None


# Faults that two trainings see, and those of examples.
PAIRS = {
    "moved-without-noise": replace(HONEST, noise=lambda number, seed: noise(number, seed) * (np.arange(DIM) < 1920)),
    "unseeded": replace(HONEST, drawn=lambda number, _: HONEST.drawn(number, 0)),
}
EXAMPLES = ("coupled-loss", "long-texts")


def cells(name):
    """Return the cells of a row; nothing if it has no simulation."""
    if name in STEPS:
        return {"replay": 1} if of_step(name) else {}
    if name in EXAMPLES:
        return {"replay": 1} if of_examples(name) else {}
    training = FAULTS.get(name) or MORE.get(name) or PAIRS.get(name) or CLAIMS.get(name)
    if training is None:
        return None
    first = {"two seeds": 1} if of_two_seeds(training) else {}
    if name in (*PAIRS, *CLAIMS):
        return first | ({WATCH: rounds} if (rounds := of_watch(training)) else {})
    for column, each in sights(name, training, CONTEXT).items():
        noticed = [sight.rounds for sight in each if sight.noticed >= SEEN * sight.runs]
        first |= {column: noticed[0]} if noticed else {}
    return first


def main(*names):
    """Write the table, and print the time that a watch and a replay take."""
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
    for look in (lambda: round_of_failure(HONEST, 16, 0), lambda: replayed(HONEST, 0)):
        look()
        start = time.process_time()
        look()
        seconds.append(time.process_time() - start)
    print("Sixteen rounds of a watch take {:.2g} s of processor time, and a replay {:.2g} s.".format(*seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
