"""Faults of the lower bounds."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from canaryproof.verify.audit.bounds import bayesian
from canaryproof.verify.audit.bounds.bayesian import Rate
from tests.faults.fault import Fault, Function

_BOUNDS = "canaryproof.verify.audit.bounds"


def _fault(name: str, description: str, target: str, make: Callable[[Function], Function], *checks: str) -> Fault:
    return Fault(f"bounds.{name}", description, f"{_BOUNDS}.{target}", make, tuple(f"bounds.{c}" for c in checks))


FAULTS = (
    _fault(
        "ties",
        "equal scores are counted as if they could be told apart",
        "precedence:counts_beyond",
        lambda f: lambda scores: f(replace(scores, observed=np.nextafter(scores.observed, math.inf))),
        "coverage.band",
    ),
    _fault(
        "precedence-level",
        "every declared rank has ten times its share of α",
        "precedence:critical_count",
        lambda f: (
            lambda rank, declared, counted, delta, level, index: f(rank, declared, counted, delta, 10.0 * level, index)
        ),
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
        "walk",
        "a rung counts as reached a fifth as often as it may be",
        "ladders:chance",
        lambda f: lambda *arguments: 0.2 * f(*arguments),
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
        "bayesian:_below_kink",
        lambda f: lambda one, other, epsilon, delta, corner: f(one, other, epsilon, delta, False),
        "posterior",
    ),
    _fault(
        "guesses-among-equals",
        "guesses among equal scores count as right",
        "one_run:count_wrong",
        lambda f: lambda before, null_count, guesses: np.maximum(f(before, null_count, guesses) - sum(guesses) // 4, 0),
        "coverage.one-run",
    ),
    _fault(
        "halves",
        "half of its share of α for each rate of error",
        "thresholds:alpha_share",
        lambda f: lambda alpha, exact: 0.5 * f(alpha, exact),
        "values",
    ),
    _fault(
        "not-halved",
        "all of its share of α for each rate of error",
        "thresholds:alpha_share",
        lambda f: lambda alpha, exact: alpha,
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
    _fault(
        "rest",
        "δ not taken from what the false alarm rate leaves",
        "thresholds:_log_rest",
        lambda f: lambda log_rate, delta: f(log_rate, 0.0),
        "values",
    ),
    _fault(
        "each-place",
        "all of α for each of several thresholds",
        "thresholds:best_of_thresholds",
        lambda f: lambda scores, tails, delta, alpha: f(scores, tails, delta, min(len(tails) * alpha, 0.9)),
        "values",
    ),
    _fault(
        "each-mu",
        "all of α for each of four thresholds",
        "gaussian:gaussian_dp",
        lambda f: lambda scores, delta, alpha: f(scores, delta, min(4.0 * alpha, 0.9)),
        "values",
    ),
    _fault(
        "each-number",
        "four times α for each number of guesses",
        "one_run:bound_of_guesses",
        lambda f: (
            lambda total, guesses, wrong, block, delta, alpha: f(
                total, guesses, wrong, block, delta, min(4.0 * alpha, 0.9)
            )
        ),
        "values",
        "coverage.one-run",
    ),
    _fault(
        "cost-of-delta",
        "δ's cost shared by all guesses, and not by the right ones",
        "one_run:p_value",
        lambda f: lambda total, number, right, epsilon, delta: f(total, number, right, epsilon, delta * right / number),
        "values",
        "coverage.one-run",
    ),
    _fault(
        "cost-of-weights",
        "no cost of δ where guesses have weights",
        "weights:p_value",
        lambda f: lambda total, sizes, wrong, epsilon, block, delta: f(total, sizes, wrong, epsilon, block, 0.0),
        "values",
        "coverage.one-run",
    ),
    _fault(
        "both-kinds",
        "precedence tests of either kind of score at all of α",
        "precedence:precedence",
        lambda f: lambda scores, delta, alpha: f(scores, delta, min(2.0 * alpha, 0.9)),
        "values",
        "coverage.band",
    ),
    _fault(
        "one-side",
        "rates of error beyond the region's far side do not count",
        "bayesian:exceedance",
        lambda _: (
            lambda fnr, fpr, epsilon, delta: (
                bayesian._below_kink(fnr, fpr, epsilon, delta, True)
                + bayesian._below_kink(fpr, fnr, epsilon, delta, False)
            )
        ),
        "posterior",
    ),
)
