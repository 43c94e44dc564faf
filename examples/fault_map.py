"""Map which instrument notices which fault of a training: ``python examples/fault_map.py``.

Rows are the faults of three lists: the atlas of blind spots, the broken trainings of the frameworks' examples, and the
pitfalls that jax_privacy's documentation names. Each is simulated as in ``canaryproof verify blindspots``: 1,000
members, Poisson sampling at rate 1/8, noise multiplier 1 and 2,048 coordinates. A cell has the number of rounds after
which a column notices the fault in nine of ten trainings, "step" where one replayed step does, and a dash where it does
not. Faults of the suite have the cells of the published run, of 20 trainings and up to 32 rounds. Others are simulated
here, ten times and up to 16 rounds. A fault that nothing can notice has its reason instead.
"""

import json
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from canaryproof import replay
from canaryproof.verify.suites.instruments import (
    DIM,
    EXPECTED,
    HONEST,
    NAMES,
    NOISE_MULTIPLIER,
    audited,
    inspected,
    replayed,
)

ROUNDS, SEEDS, LEVEL = (1, 2, 4, 8, 16), range(58, 68), 1e-6
AUDITS = {"audit, 100 canaries": 100, "audit, 10 canaries": 10}
COLUMNS = (*NAMES, *AUDITS)
PUBLISHED = Path(__file__).parents[1] / "reports" / "published" / "results.json"


def noise(number, seed):
    """Draw a round's honest noise."""
    return HONEST.noise(number, seed)


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
    "half-noise-on-half": replace(HONEST, noise=half_on_half),
    "low-rank": replace(HONEST, noise=low_rank(DIM // 10)),
    "low-rank-rounds": replace(HONEST, noise=low_rank(3)),
    "laplace": replace(HONEST, noise=laplace),
    "mostly-clipped": replace(HONEST, total=mostly_clipped),
    "counts-four-times": replace(HONEST, total=one_counts_four_times),
    "centred": replace(HONEST, total=centred),
    "slightly-long": replace(HONEST, total=slightly_long),
}
# Faults that show where a step has such a member or none, and so in a replay alone.
STEPS = {
    "not-finite": replace(HONEST, total=not_finite),
    "empty-batch": replace(HONEST, weight=lambda size: float(size > 0)),
    "replace": HONEST,
}
# A row is a fault in the words of its list, and either the name of what simulates it or the reason why nothing sees it.
LISTS = {
    "The atlas of blind spots": (
        ("`less-noise`: 80% of the claimed deviation", "less-noise"),
        ("`dilution`: half of the noise, beside data that point the same way", "noise-per-microbatch"),
        ("`no-noise-on-a-share`: the last layer", "bare-layer"),
        ("`half-noise-on-a-share`: half of the coordinates", "half-noise-on-half"),
        ("`low-rank`: noise in a tenth of the dimensions", "low-rank"),
        ("`unclipped`: every eighth client", "mostly-clipped"),
        ("`memorised`: one member counts four times", "counts-four-times"),
        (
            "`released-outright`: with probability 1/1000",
            "– A round shows it when it happens, and few rounds are seen.",
        ),
        ("`normalised-after-noise`", "divided-by-drawn"),
        ("`reused-noise`", "same-seed"),
        ("`correlated-noise`", "correlated-noise"),
        ("`low-rank-rounds`: all rounds' noise in three dimensions", "low-rank-rounds"),
        ("`fixed-batches`: shuffled once an epoch", "shuffled"),
        ("`few-states`: a generator of 2³² states", "– Its numbers have the claimed law."),
        ("`coarse-noise`: bfloat16", "coarse-noise"),
        ("`coarse-noise`: uniforms of 24 bits", "– 2²⁴ values are more than a training shows."),
        ("Laplace noise, where normal noise is claimed", "laplace"),
    ),
    "Broken trainings of the examples": (
        ("noise for each micro-batch", "noise-per-microbatch"),
        ("noise divided by the batch size twice", "noise-divided-twice"),
        ("a sensitivity that is not the clip norm", "sensitivity-apart"),
        ("clients that add shares of the noise drop out", "dropped-clients"),
        ("noise of lower precision", "coarse-noise"),
        ("the same seed in each step", "same-seed"),
        ("the mean clipped", "mean-clipped"),
        ("each layer clipped to the whole norm", "per-layer-clipping"),
        ("padding that counts", "padding"),
        ("division by the number drawn, after the noise", "divided-by-drawn"),
        ("shuffled batches, Poisson claimed", "shuffled"),
        ("batches of one size, Poisson claimed", "fixed-size"),
        ("an accountant with other steps or another δ", "– Compare ε with `canaryproof.accounting`."),
    ),
    "The pitfalls that jax_privacy lists": (
        ("division by batch size: the noised sum by the number drawn", "divided-by-drawn"),
        ("division by batch size: noise for a mean, added to a sum", "noise-divided-twice"),
        ("sensitivity alignment: layers clipped one by one", "per-layer-clipping"),
        ("accounting and batch selection mismatch", "shuffled"),
        ("public and private metadata", "– The release is looked at, and no file beside it."),
        ("neighbouring relation: noise for add-or-remove, a claim for replace", "replace"),
        ("zero-sized batches: a step without an example is left out", "empty-batch"),
        ("non-finite gradients: they reach the sum", "not-finite"),
        ("gradient accumulation: each part has its share of the noise", "noise-per-microbatch"),
        ("cross-example operations: the batch's mean is taken out", "centred"),
        ("auxiliary information", "– Losses and norms that are printed are no part of the release."),
        ("randomness: a generator that can be predicted", "– Its numbers have the claimed law."),
        ("floating point: the noise's last bits tell the sum", "– Values below the rounding are not compared."),
        ("finite precision: clipped to 0.2% more than the clip norm", "slightly-long"),
    ),
}


def of_step(name):
    """Tell whether a replay of one step sees a fault that needs an extreme member, an empty batch or a replacement."""
    drawn, batch = STEPS[name].noise(0, SEEDS[0]), np.random.default_rng(0).normal(size=(20, DIM)) / DIM**0.5
    return replay(
        lambda updates: STEPS[name].release(updates, drawn),
        batch,
        1.0 / EXPECTED,
        extremes={"not a number": np.full(DIM, np.nan)} if name == "not-finite" else {"long": -1e6 * batch[0]},
        neighbours="replace" if name == "replace" else "add-or-remove",
    ).failed


@cache
def published():
    """Return the sights of each fault of the suite in the published run."""
    results = json.loads(PUBLISHED.read_text(encoding="utf-8"))["results"]
    (power,) = [result for result in results if result["id"] == "blindspots.instruments.power"]
    return {name: fault["sights"] for name, fault in power["evidence"]["faults"].items()}


def first(shares):
    """Return the first number of rounds at which a share is at least nine tenths, or a dash."""
    return next((str(rounds) for rounds, share in shares if share >= 0.9), "–")


@cache
def cells(name):
    """Return the cells of a row."""
    if name in STEPS:
        return ["step" if column == "replay" and of_step(name) else "–" for column in COLUMNS]
    if name not in MORE:
        sights = published()[name]
        shown = {c: first((s["rounds"], s["noticed"] / s["runs"]) for s in sights.get(c, ())) for c in COLUMNS}
        shown["replay"] = "–" if shown["replay"] == "–" else "step"
        return [shown[column] for column in COLUMNS]
    p_values = {column: [] for column in COLUMNS}
    for seed in SEEDS:
        looks = inspected(MORE[name], ROUNDS, seed)
        for column in NAMES[:-1]:
            p_values[column].append([looks[t][column] for t in ROUNDS])
        for column, count in AUDITS.items():
            p_values[column].append([*audited(MORE[name], count, ROUNDS, seed).values()])
    shares = {column: np.mean(np.array(each) <= LEVEL, axis=0) for column, each in p_values.items() if each}
    step = "step" if replayed(MORE[name], SEEDS[0]) else "–"
    return [step if c == "replay" else first(zip(ROUNDS, shares[c], strict=True)) for c in COLUMNS]


def main():
    """Print the tables."""
    for title, rows in LISTS.items():
        print(f"## {title}\n\n| fault | {' | '.join(COLUMNS)} |\n|---{'|---' * len(COLUMNS)}|")
        for fault, name in rows:
            if not name.startswith("–"):
                print(f"| {fault} | {' | '.join(cells(name))} |", flush=True)
        print("\n| nothing notices | why |\n|---|---|")
        for fault, reason in rows:
            if reason.startswith("–"):
                print(f"| {fault} | {reason[2:]} |", flush=True)
        print()
    seconds = []
    for look in (lambda: inspected(HONEST, (16,), SEEDS[0]), lambda: replayed(HONEST, SEEDS[0])):
        start = time.process_time()
        look()
        seconds.append(time.process_time() - start)
    print("Sixteen rounds of an inspection take {:.2g} s of processor time, and a replay {:.2g} s.".format(*seconds))


if __name__ == "__main__":
    main()
