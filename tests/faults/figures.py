"""Faults of printed figures and commands, of shared levels, and of pages: tests notice them, no suite does."""

import dataclasses
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.p_values import mean_limits
from canaryproof.verify.papers.check.results import Subject, Verdict
from canaryproof.verify.papers.suites.canife.ratios import Ratio
from tests.faults.fault import Fault, Function


def _fault(name: str, description: str, target: str, make: Callable[[Function], Function], test: str) -> Fault:
    return Fault(name, description, f"canaryproof.{target}", make, (f"tests.{test}",))


def _with_message(change: Callable[..., str]) -> Callable[[Function], Function]:
    """Change the message of each warning, by the arguments of the function that gives them."""

    def make(function: Function) -> Function:
        def faulty(*arguments: Any) -> Iterator[Any]:
            for warning in function(*arguments):
                yield dataclasses.replace(warning, message=change(warning.message, *arguments))

        return faulty

    return make


def _share_left(function: Function) -> Function:
    def faulty(*arguments: Any) -> Any:
        warning = function(*arguments)
        message = re.sub(r"[\d.]+%", lambda share: f"{100.0 - float(share[0][:-1]):.2g}%", warning.message)
        return dataclasses.replace(warning, message=message)

    return faulty


def _one_sided(function: Function) -> Function:
    def faulty(*arguments: Any) -> Iterator[Any]:
        for warning in function(*arguments):
            yield dataclasses.replace(warning, p_value=0.5 * warning.p_value)

    return faulty


def _mean_for_ratio(function: Function) -> Function:
    def faulty(result: Any) -> Iterator[tuple[str, str]]:
        mean, ratio, *others = function(result)
        yield from (mean, (ratio[0], mean[1]), *others)

    return faulty


def _each_at_the_level(function: Function) -> Function:
    def faulty(p_values: dict[str, float], *arguments: Any) -> Any:
        return function(dict([min(p_values.items(), key=lambda item: item[1])]), *arguments)

    return faulty


def _limits_at_the_level(_: Function) -> Function:
    def faulty(without: Any, with_fault: Any) -> Ratio:
        (low, high), (faulty_low, faulty_high) = (mean_limits(values, LEVEL) for values in (without, with_fault))
        return Ratio(float(with_fault.mean() / without.mean()), faulty_low / high, faulty_high / low)

    return faulty


def _limit_of_canife(function: Function) -> Function:
    def faulty(evidence: dict[str, Any], method: str) -> Any:
        cells = [{**cell, "unlimited": [cell["canife"]] * 2} for cell in evidence["cells"]]
        return function({**evidence, "cells": cells}, method)

    return faulty


def _own(result: Any) -> Any:
    if result.subject is not Subject.TOOL:
        return result
    return dataclasses.replace(result, subject=Subject.IMPLEMENTATION, verdict=Verdict.CONFIRMED)


_DOUBTFUL = (Verdict.INCONCLUSIVE, Verdict.REFUTED, Verdict.QUALIFIED, Verdict.CONFIRMED)

FAULTS = (
    _fault(
        "plan.noise",
        "σ for σ√T in the command",
        "verify.audit.answer.plan:AuditPlan.commands",
        lambda f: lambda plan: f(dataclasses.replace(plan, release_noise=plan.noise_multiplier)),
        "verify.audit.answer.test_plan:test_the_commands_have_the_figures_of_the_plan",
    ),
    _fault(
        "plan.rounds",
        "every k-th of T canaries inserted, for every T-th of k",
        "verify.audit.answer.plan:AuditPlan.commands",
        lambda f: lambda plan: tuple(re.sub(r"(\d+), (\d+)\)\)", r"\2, \1))", line) for line in f(plan)),
        "verify.audit.answer.test_plan:test_the_commands_insert_each_canary_in_one_round",
    ),
    _fault(
        "warnings.less-noise",
        "the release's norm for its noise multiplier",
        "verify.audit.answer.misuse:_length",
        _with_message(
            lambda message, _, dim, norm: message.replace(f"most {norm / math.sqrt(dim):.3g}", f"most {norm:.3g}")
        ),
        "verify.audit.answer.test_misuse_figures:test_figures_of_a_release_of_another_length",
    ),
    _fault(
        "warnings.dilution",
        "the length for the share that it leaves of the trace",
        "verify.audit.answer.misuse:_length",
        _with_message(
            lambda message, *_: re.sub(
                r"trace is ([\d.]+)", lambda share: f"trace is {1.0 / float(share[1]):.2g}", message
            )
        ),
        "verify.audit.answer.test_misuse_figures:test_figures_of_a_release_of_another_length",
    ),
    _fault(
        "warnings.missing",
        "the share of canaries that are missing for the share that is there",
        "verify.audit.answer.misuse:_fewer",
        _share_left,
        "verify.audit.answer.test_misuse_figures:test_figures_of_canaries_that_are_missing",
    ),
    _fault(
        "warnings.trace-variance",
        "the variance of a trace as if the null's deviation were known",
        "verify.audit.answer.misuse:_Facts.trace_variance",
        lambda _: lambda facts: 1.0 / facts.count,
        "verify.audit.answer.test_misuse_figures:test_no_honest_audit_is_warned_of_its_trace",
    ),
    _fault(
        "warnings.one-sided",
        "a p-value of one side for both",
        "verify.audit.answer.misuse:_release",
        _one_sided,
        "verify.audit.answer.test_misuse_figures:test_figures_of_a_trace_that_its_release_contradicts",
    ),
    _fault(
        "details.ratio",
        "the mean for the ratio of deviations",
        "verify.audit.answer.text:checks",
        _mean_for_ratio,
        "verify.audit.answer.test_details:test_mean_and_ratio_and_their_errors_stand_under_their_names",
    ),
    _fault(
        "bayesian.level",
        "1 − α for 1 − α/2",
        "verify.audit.bounds.bayesian:_quantile",
        lambda f: lambda scores, delta, above: f(scores, delta, 2.0 * above - 1.0 if above > 0.5 else 2.0 * above),
        "verify.audit.bounds.test_bayesian:test_the_posterior_interval_leaves_half_of_alpha_at_either_end",
    ),
    _fault(
        "levels.p-values",
        "each test that may refute at the level of all",
        "verify.papers.check.verdicts:from_p_values",
        lambda f: lambda for_it, against_it, *level: f(for_it, [min(against_it)], *level),
        "verify.papers.check.test_verdicts:test_p_values_of_tests_that_share_a_level",
    ),
    _fault(
        "levels.shares",
        "each test of a share at the level of all",
        "verify.papers.check.verdicts:shares_hold",
        _each_at_the_level,
        "verify.papers.check.test_verdicts:test_tests_of_shares_share_a_level",
    ),
    _fault(
        "levels.limits",
        "each of four limits at the level of all",
        "verify.papers.suites.canife.ratios:capped_ratio",
        _limits_at_the_level,
        "verify.papers.check.test_levels_and_power:test_four_limits_of_a_factor_share_its_level",
    ),
    _fault(
        "levels.order",
        "each step of an order at the level of all",
        "verify.papers.claims.prediction:order",
        lambda f: lambda name, steps, alpha: f(name, steps, alpha * len(steps)),
        "verify.papers.claims.test_prediction:test_steps_of_an_order_share_its_level",
    ),
    _fault(
        "prediction.worst",
        "inconclusive for worse than refuted",
        "verify.papers.claims.prediction:worst",
        lambda _: lambda parts: min((part.verdict for part in parts), key=_DOUBTFUL.index),
        "verify.papers.claims.test_prediction:test_the_worst_part_decides",
    ),
    _fault(
        "alarms.unobserved",
        "alarms beside unobserved canaries as if their mean were known",
        "verify.audit.blindspots.ranges:power",
        lambda f: lambda law, claimed: f(dataclasses.replace(law, null_count=math.inf), claimed),
        "verify.audit.blindspots.test_ranges:test_alarms_beside_unobserved_canaries_are_those_of_drawn_scores",
    ),
    _fault(
        "pages.limit",
        "CANIFE's limit for every method's",
        "reports.blindspots:sight",
        _limit_of_canife,
        "reports.test_blindspots:test_what_nobody_can_see_goes_by_the_limit_of_the_method",
    ),
    _fault(
        "pages.badge",
        "statements of other tools counted as checks",
        "reports.formats:badge",
        lambda f: lambda run: f(dataclasses.replace(run, results=tuple(map(_own, run.results)))),
        "reports.test_formats:test_the_badge_counts_no_statements_of_other_tools",
    ),
)
