"""Faults of the lower bounds."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import math
from collections.abc import Callable

import numpy as np

from canaryproof.verify.bounds.bayesian import Rate
from tests.faults.fault import Fault, Function

_BOUNDS = "canaryproof.verify.bounds"


def _fault(name: str, description: str, target: str, make: Callable[[Function], Function], *checks: str) -> Fault:
    return Fault(f"bounds.{name}", description, f"{_BOUNDS}.{target}", make, tuple(f"bounds.{c}" for c in checks))


FAULTS = (
    _fault(
        "ties",
        "equal scores are counted as if they could be told apart",
        "thresholds:sweep",
        lambda f: lambda scores, miss, alarm, delta, *, by_value=True: f(scores, miss, alarm, delta, by_value=False),
        "coverage.band",
    ),
    _fault(
        "precedence-level",
        "every declared rank has ten times its share of α",
        "precedence:_critical_counts",
        lambda f: lambda declared, counted, delta, level, index: f(declared, counted, delta, 10.0 * level, index),
        "coverage.band",
        "nominal",
    ),
    _fault(
        "worst-tail",
        "e^ε is e^(ε/2) in the tail that privacy allows",
        "fixed_sequence:worst_tail",
        lambda f: lambda epsilon, log_tail, delta: f(0.5 * epsilon, log_tail, delta),
        "coverage.fixed-sequence",
    ),
    _fault(
        "upper-limit",
        "the mean of the normal scores is not lowered by its error",
        "gaussian:epsilon_of_mu",
        lambda f: lambda mu, delta: f(np.asarray(mu) + 1.645 / math.sqrt(100.0), delta),
        "coverage.normal-scores",
        "nominal",
    ),
    _fault(
        "uniform-prior",
        "a uniform prior on the rates of error for Jeffreys'",
        "bayesian:quantile",
        lambda f: lambda fnr, fpr, *rest: f(*(Rate(x.wrong + 0.5, x.right + 0.5) for x in (fnr, fpr)), *rest),
        "posterior",
    ),
    _fault(
        "few-pieces",
        "the region's boundary without its part beside the kink",
        "bayesian:_beside",
        lambda f: lambda one, other, epsilon, delta, corner: f(one, other, epsilon, delta, False),
        "posterior",
    ),
    _fault(
        "guesses-among-equals",
        "guesses among equal scores count as right",
        "one_run:correct",
        lambda f: lambda scores, number: np.minimum(f(scores, number) + number // 4, number),
        "coverage.one-run",
    ),
    _fault(
        "halves",
        "half of its share of α for each rate of error",
        "thresholds:shared",
        lambda f: lambda alpha, exact: 0.5 * f(alpha, exact),
        "values",
    ),
    _fault(
        "rank",
        "a threshold one rank too far out",
        "thresholds:null_ranks",
        lambda f: lambda tails, null_count: np.maximum(f(tails, null_count) - 1, 1),
        "values",
    ),
    _fault(
        "one-less",
        "the probability of so many right guesses less one",
        "one_run:p_value",
        lambda f: lambda total, number, right, *rest: f(total, number, max(right - 1, 0), *rest),
        "values",
    ),
    _fault(
        "local-level",
        "the band's local level is Bonferroni's",
        "thresholds:local_level",
        lambda f: lambda count, alpha: alpha / count,
        "values",
    ),
)
