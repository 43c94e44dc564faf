"""What trainings with canaries show: findings of the final version, and our own promises.

The trainings are those of ``training_runs``, which need JAX; it is loaded when a check runs. A finding that several
tests must show is confirmed if all of them do, each at the full level: where one of their nulls holds, all reject with
no more than its probability.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from canaryproof.verify.error_control import POWER
from canaryproof.verify.federated.outcome import ALL, ATTACKS, CHANGE, FINAL
from canaryproof.verify.results import Check, Context, Design, Level, Outcome, Subject, Verdict
from canaryproof.verify.suites.training_bounds import bounds
from canaryproof.verify.suites.training_definition import accounting, algorithms
from canaryproof.verify.suites.training_several import one_or_several
from canaryproof.verify.suites.training_tests import LEVEL, least_share, less, visible

# One-round ε of the noise: those of Tables 3 and 4, or the ends of them.
_ALL_NOISE = (math.inf, 300.0, 100.0, 30.0)
_PRESENTATIONS = (1, 2, 4, 8)


def _verdict(for_it: Sequence[float], against_it: Sequence[float]) -> Verdict:
    """Judge by p-values: of the tests that must all reject, and of those that refute if one does."""
    if max(for_it) <= 0.5 * LEVEL:
        return Verdict.CONFIRMED
    return Verdict.REFUTED if min(against_it) <= 0.5 * LEVEL / len(against_it) else Verdict.INCONCLUSIVE


def _noise(epsilon: float) -> str:
    return "no noise" if math.isinf(epsilon) else f"one-round ε = {epsilon:g}"


def final_below_all(context: Context) -> Outcome:
    """Judge that the final model gives away less than all rounds do, by a sign test at each noise."""
    from canaryproof.verify.suites import training_runs

    runs = context.pick(23, 40)
    for_it: list[float] = []
    against_it: list[float] = []
    rows: list[dict[str, Any]] = []
    for noise in _ALL_NOISE if context.level is Level.FULL else (_ALL_NOISE[0], _ALL_NOISE[-1]):
        chosen = training_runs.settings(training={"one_round_epsilon": noise})
        found = training_runs.sample(context, f"training/final/{noise}", chosen, runs)
        for attack in (FINAL, CHANGE):
            below = int(np.sum(found.epsilon[attack] < found.epsilon[ALL]))
            for_it.append(float(stats.binom.sf(below - 1, runs, 0.5)))
            against_it.append(float(stats.binom.cdf(below, runs, 0.5)))
        rows.append({"one_round_epsilon": noise, **{attack: found.epsilon[attack].tolist() for attack in ATTACKS}})
    means = "; ".join(
        f"{_noise(row['one_round_epsilon'])}: " + ", ".join(f"{np.mean(row[attack]):.3g}" for attack in ATTACKS)
        for row in rows
    )
    fewest = int(stats.binom.isf(0.5 * LEVEL, runs, 0.5)) + 1
    share = least_share(lambda p: float(stats.binom.sf(fewest - 1, runs, p)), 1.0 - (1.0 - POWER) / len(for_it))
    design = Design(
        "at some noise, ε̂ of the final model is below that of all rounds in at most half of trainings",
        LEVEL,
        f"it is below in {share:.2%} of trainings at each noise",
        POWER,
        runs,
    )
    finding = (
        f"mean ε̂ of all rounds, of the final model and of its change: {means}; the largest of {len(for_it)} p-values "
        f"is {max(for_it):.1g}"
    )
    evidence = {"runs": runs, "cells": rows, "p_values": for_it}
    return Outcome(_verdict(for_it, against_it), finding, evidence, design)


def presentations(context: Context) -> Outcome:
    """Judge that canaries are the easier to tell, the more often they took part, by Welch's test of neighbours."""
    from canaryproof.verify.suites import training_runs

    runs = context.pick(14, 30)
    for_it: list[float] = []
    against_it: list[float] = []
    rows: list[dict[str, Any]] = []
    noises = _ALL_NOISE if context.level is Level.FULL else _ALL_NOISE[-1:]
    for noise in noises:
        found = []
        for number in _PRESENTATIONS:
            chosen = training_runs.settings(training={"one_round_epsilon": noise}, canaries={"presentations": number})
            found.append(training_runs.sample(context, f"training/presentations/{noise}/{number}", chosen, runs))
        for attack in (FINAL, CHANGE):
            for fewer, more in pairwise(found):
                for_it.append(less(fewer.distance[attack], more.distance[attack]))
                against_it.append(less(more.distance[attack], fewer.distance[attack]))
        rows += [
            {
                "one_round_epsilon": noise,
                "presentations": number,
                "distance": {attack: one.distance[attack].tolist() for attack in ATTACKS},
                "mean estimate": {attack: float(one.epsilon[attack].mean()) for attack in ATTACKS},
            }
            for number, one in zip(_PRESENTATIONS, found, strict=True)
        ]
    means = "; ".join(
        f"{_noise(noise)}: "
        + ", ".join(f"{np.mean(row['distance'][FINAL]):.2f}" for row in rows if row["one_round_epsilon"] == noise)
        for noise in noises
    )
    moved = visible(runs, len(for_it))
    design = Design(
        "at some noise, twice as many presentations do not move the mean cosine with the final model up",
        LEVEL,
        f"each time it moves by {moved:.2g} standard deviations of a training's mean cosine",
        POWER,
        runs,
    )
    finding = (
        f"mean cosine with the final model after {', '.join(map(str, _PRESENTATIONS))} presentations, in the null's "
        f"deviations: {means}; the largest of {len(for_it)} p-values is {max(for_it):.1g}"
    )
    evidence = {"runs": runs, "cells": rows, "p_values": for_it}
    return Outcome(_verdict(for_it, against_it), finding, evidence, design)


def bits(context: Context) -> Outcome:
    """Judge that equal trainings have equal bits, also if one was stopped and goes on from a checkpoint."""
    from canaryproof.verify.suites import training_runs

    wrong = []
    cases: dict[str, Mapping[str, Any]] = {
        "independent noise": {"training": {"one_round_epsilon": 100.0}},
        "correlated noise, adaptive clipping, momentum, coins": {
            "training": {
                "one_round_epsilon": None,
                "noise_multiplier": 0.1,
                "noise": "tree",
                "clip_quantile": 0.5,
                "momentum": 0.9,
            },
            "canaries": {"inclusion": "coin"},
        },
        "FedAdam": {"training": {"one_round_epsilon": 100.0, "server": "adam", "server_rate": 0.01}},
    }
    for name, changes in cases.items():
        chosen, root = training_runs.settings(**changes), context.key(f"training/bits/{name}")
        first = training_runs.trained(chosen, root)
        for kind, again in (
            ("again", training_runs.trained(chosen, root)),
            ("stopped", training_runs.stopped(chosen, root, 7)),
        ):
            wrong += [] if training_runs.same(first, again) else [f"{name}, {kind}"]
    total = 2 * len(cases)
    finding = f"{total - len(wrong)} of {total} trainings, again or stopped and resumed, have the same bits"
    if wrong:
        finding += f"; not {', '.join(wrong)}"
    return Outcome(Verdict.REFUTED if wrong else Verdict.CONFIRMED, finding, {"cases": list(cases), "wrong": wrong})


_DOCUMENT = "final version (arXiv 2302.03098)"
CHECKS = (
    Check(
        "final.training.final-below-all",
        Subject.DOCUMENT,
        f"{_DOCUMENT}, Sections 5.1 and 5.2.1, Tables 3 and 4",
        "a canary that takes part once has a far lower ε̂ where only the final model is seen than where all rounds are",
        final_below_all,
    ),
    Check(
        "final.training.presentations",
        Subject.DOCUMENT,
        f"{_DOCUMENT}, Section 5.2, Figures 1 to 4",
        "the more often a canary takes part, the farther its cosine with the final model is from the null's, at every "
        "noise",
        presentations,
    ),
    Check(
        "final.training.one-or-several",
        Subject.DOCUMENT,
        f"{_DOCUMENT}, Section 5.3, Table 5",
        "one run with many canaries has estimates very close to those of several runs with fewer",
        one_or_several,
    ),
    Check(
        "training.algorithms",
        Subject.IMPLEMENTATION,
        "verify.federated",
        "deltas, model and scores of a training are those of Algorithms 2 and 3 in plain numpy",
        algorithms,
    ),
    Check(
        "training.accounting",
        Subject.IMPLEMENTATION,
        "verify.federated.accounting",
        "the analytical ε is never below the truth, and beside it where it is exact",
        accounting,
    ),
    Check(
        "training.bounds",
        Subject.IMPLEMENTATION,
        "verify.federated, verify.bounds",
        "95% lower bounds whose coverage is proven, for independent scores at least, lie above the analytical ε in at "
        "most 5% of trainings",
        bounds,
    ),
    Check(
        "training.bits",
        Subject.IMPLEMENTATION,
        "verify.federated.training",
        "a training gives the same bits again, also if it was stopped and went on from a checkpoint",
        bits,
    ),
)
