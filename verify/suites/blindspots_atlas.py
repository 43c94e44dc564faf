"""The atlas: what every method says of every mechanism, and whether that is what the residual alone foretells."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.blindspots import diagnosed, methods, power, prediction
from canaryproof.verify.blindspots.catalogue import MECHANISMS
from canaryproof.verify.blindspots.diagnostics import confined
from canaryproof.verify.blindspots.mechanism import Claim, Mechanism
from canaryproof.verify.blindspots.power import Size
from canaryproof.verify.error_control import POWER, visible_mean
from canaryproof.verify.results import Check, Context, Design, Outcome, Subject, Verdict

# The one setting of the atlas: what is claimed.
EPSILON, DELTA, DIM = 3.0, 1e-5, 10**6
# Of each check, half for either part, all its cells together.
LEVEL = 1e-6
# A prediction may err by so much: a hundredth for the test of variances, as much for what is not of leading order.
TOLERANCE = 0.02
# Up to so much more than the claimed ε, as an estimate of unlimited canaries, is no more than honest noise gives.
MARGIN = 1.02
_QUICK = (Size(100, 400, 8, 2, True), Size(1000, 400, 10, 2, False), Size(10_000, 100, 0, 0, False))
_FULL = (Size(100, 2000, 100, 8, True), Size(1000, 100, 60, 8, True), Size(10_000, 1000, 12, 4, False))
# Scores that are no single cosine cost so many times more.
_SEVERAL = 10
# Canaries of one part, as many as in the picture of the others.
_CONFINED = 1000


@cache
def claimed() -> Claim:
    """Return what every mechanism of the atlas claims."""
    return Claim(float(gaussian_mechanism.noise_multiplier(EPSILON, DELTA)), DELTA, DIM)


def sizes(mechanism: Mechanism, context: Context) -> tuple[Size, ...]:
    """Return how much is drawn of a mechanism, at each k."""
    chosen = _QUICK if context.pick(0, 1) == 0 else _FULL
    if mechanism.scores is None and max(mechanism.weights(value).shape[1] for value in mechanism.values) == 1:
        return chosen
    return tuple(
        Size(size.count, max(size.few, size.runs // _SEVERAL), size.few, size.coins, size.exact) for size in chosen
    )


@cache
def cells(name: str, context: Context) -> tuple[dict[str, Any], ...]:
    """Measure a mechanism at all its values and all k; values of one k share their randomness."""
    mechanism = MECHANISMS[name]
    return tuple(
        power.measure(mechanism, value, claimed(), size, context.key(f"blindspots/{name}/{size.count}"))
        for size in sizes(mechanism, context)
        for value in mechanism.values
    )


def diagnoses(name: str, context: Context) -> list[dict[str, Any]]:
    """Measure the diagnostics beside the cosines, and foretell alarms of 1,000 canaries confined to the first part."""
    mechanism, setting = MECHANISMS[name], claimed()
    if mechanism.draw is None:
        return []
    found = []
    for value in mechanism.values:
        key = context.key(f"blindspots/{name}/diagnosed")
        tests = diagnosed.measure(mechanism, value, setting, context.pick(400, 2000), key)
        dims = mechanism.residual(value, setting, 1, np.random.default_rng(key)).dims
        row: dict[str, Any] = {"value": value, "tests": tests, "confined": None}
        if len(dims) > 1:
            part = replace(setting, dim=dims[0])
            row["confined"] = prediction.foretell(
                confined(mechanism, setting), value, part, _CONFINED, np.random.default_rng(key)
            ).alarm
        found.append(row)
    return found


def wrong_rates(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return cells whose rate of alarms is significantly farther from the predicted one than the tolerance."""
    allowed = 0.5 * LEVEL / (2 * len(rows))
    found = []
    for row in rows:
        runs, alarms = row["runs"], round(row["rate"][0] * row["runs"])
        above = stats.binom.sf(alarms - 1, runs, min(1.0, row["predicted"] + TOLERANCE))
        below = stats.binom.cdf(alarms, runs, max(0.0, row["predicted"] - TOLERANCE))
        if min(above, below) < allowed:
            found.append(row)
    return found


def unseen(row: dict[str, Any]) -> bool:
    """Whether no number of canaries would tell a cell from a mechanism that is what it claims."""
    return bool(row["unlimited"][1] <= MARGIN * EPSILON)


def wrong_bounds(rows: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """Return cells that nothing can be seen of, with bounds that raise alarms significantly too often."""
    pairs = [(row, name) for row in rows if unseen(row) for name in (*methods.BOUNDS, *methods.COIN_BOUNDS)]
    shown = [(row, name, row["methods"][name]) for row, name in pairs if name in row["methods"]]
    allowed = 0.5 * LEVEL / max(1, len(shown))
    return [
        (row, name)
        for row, name, found in shown
        if stats.binom.sf(found["alarms"] - 1, found["runs"], methods.ALPHA) < allowed
    ]


def judge(context: Context, name: str) -> Outcome:
    """Judge a mechanism's row of the atlas."""
    mechanism = MECHANISMS[name]
    rows = cells(name, context)
    rates, bounds = wrong_rates(rows), wrong_bounds(rows)
    farthest = max(rows, key=lambda row: abs(row["rate"][0] - row["predicted"]))
    least = min(row["runs"] for row in rows)
    finding = (
        f"{len(rates)} of {len(rows)} rates differ from those predicted by more than {TOLERANCE:g}, and "
        f"{len(bounds)} bounds raise alarms too often where there is nothing to see; farthest off is "
        f"{farthest['rate'][0]:.3f} for {farthest['predicted']:.3f} predicted, of {farthest['runs']:,} audits "
        f"(k = {farthest['count']:,}, {mechanism.parameter} {farthest['value']:g})"
    )
    visible = TOLERANCE + 0.5 * visible_mean(least, 0.5 * LEVEL / len(rows))
    evidence = {
        "title": mechanism.title,
        "parameter": mechanism.parameter,
        "claimed": {"epsilon": EPSILON, "delta": DELTA, "noise_multiplier": claimed().noise_multiplier},
        "dim": claimed().dim,
        "reason": mechanism.truth(_broken(mechanism), claimed()).reason,
        "leading_order": sorted({row["count"] for row in rows if not row["exact"]}),
        "margin": MARGIN,
        "cells": list(rows),
        "diagnosed": diagnoses(name, context),
    }
    return Outcome(
        Verdict.REFUTED if rates or bounds else Verdict.CONFIRMED,
        finding,
        evidence,
        Design(
            "the rate of alarms of adaptive is the predicted one, and that of bounds at most 5% where nothing is seen",
            LEVEL,
            f"a rate is {visible:.2g} off in the smallest cell",
            POWER,
            least,
        ),
    )


def _broken(mechanism: Mechanism) -> float:
    """Return the value of the largest ε, the last of several."""
    return max(reversed(mechanism.values), key=lambda value: mechanism.truth(value, claimed()).low)


def _statement(mechanism: Mechanism) -> str:
    return (
        f"{mechanism.title}: the default estimator raises an alarm as often as the residual alone foretells, within "
        f"{TOLERANCE:g}, and no valid bound in more than {methods.ALPHA:.0%} of audits where unlimited canaries would "
        "see nothing"
    )


CHECKS = tuple(
    Check(
        f"blindspots.atlas.{name}",
        Subject.IMPLEMENTATION,
        "verify.blindspots",
        _statement(mechanism),
        partial(judge, name=name),
    )
    for name, mechanism in MECHANISMS.items()
)
