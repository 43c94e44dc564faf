"""Answers of other people's auditing tools, and of this package's, on mechanisms whose ε is known.

All methods get the same scores, and each canary takes part by a fair coin of its own. In the suite ``auditors`` each
score is independent of the others, as most methods' proofs need it. In ``dependence`` the scores of a run depend on
each other, and methods whose proofs do not rest on the coins get canaries that all take part, and draws from the null's
known law. What a method's documentation calls its number decides what is judged: a lower bound is held to its
confidence; an estimate is measured, and no more.

One method, or one cell of it::

    python -m other_tools.auditors TOOL METHOD [MECHANISM EPSILON COUNT] [quick|full]

What it answers to missing, infinite and very few scores::

    python -m other_tools.auditors TOOL METHOD inputs
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from canaryproof.kernels import binomial
from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.results import Check, Context, Design, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.suites import bounds, bounds_dependence
from other_tools.process import LIMIT, EndedToolError, MissingToolError, ask, today

ALPHA, DELTA = 0.05, 1e-5
# δ of the worst case, which shows its δ in audits of this size.
_WORST_DELTA = 1e-2
# Unusual inputs that counts cannot show.
_OF_SCORES = ("one NaN", "one infinite")
# How far above ε a value may lie without being counted: tools solve to tolerances of their own.
SLACK = 0.01
_POWER = 0.99
# For all cells of a method: what is rarer does not refute its promise, and does not confirm it either.
_DOUBTFUL = 0.01


@dataclass(frozen=True)
class AuditedMechanism:
    """A mechanism whose ε is known."""

    name: str
    nominal: float  # ε that it is made for
    delta: float  # δ that is asked about
    epsilon: float  # ε at that δ
    # Draw the scores of an audit by which canaries take part.
    draw: Callable[[np.random.Generator, NDArray[np.bool_]], Array]
    # A threshold that is chosen in advance, for methods that take counts: halfway between the laws' medians; of
    # scores that depend on each other, half of the mean trace.
    threshold: float
    is_gaussian: bool = False  # whether its trade-off curve is Gaussian
    has_coins: bool = True  # else all take part, and the law of a score without its canary, N(0, 1), is known


_Law = Callable[[np.random.Generator, tuple[int, ...]], Array]


def _independent(inside_law: _Law, outside_law: _Law) -> Callable[[np.random.Generator, NDArray[np.bool_]], Array]:
    """Return what draws each score by itself, from the law of those that take part or of the others."""
    return lambda rng, inside: np.where(inside, inside_law(rng, inside.shape), outside_law(rng, inside.shape))


def _of_bounds(made: bounds.ScoredMechanism, threshold: float) -> AuditedMechanism:
    scores = _independent(made.draw, made.draw_null)
    return AuditedMechanism(made.name, made.nominal, DELTA, made.epsilon(DELTA), scores, threshold)


def _gaussian(nominal: float) -> AuditedMechanism:
    made = bounds.gaussian(nominal)
    return _of_bounds(made, 0.5 * bounds.shift(nominal))


def _rounded(nominal: float) -> AuditedMechanism:
    return _of_bounds(bounds.rounded_gaussian(nominal), 0.5 * bounds.shift(nominal))


def _worst_case(nominal: float) -> AuditedMechanism:
    """Return the mechanism that is (ε, δ)-private and no better at any ε or δ (Kairouz, Oh and Viswanath 2015).

    With probability δ the score is one that nothing but the truth gives; else it is randomised response.
    """
    right = (1.0 - _WORST_DELTA) * float(special.expit(nominal))
    law = np.array([0.0, 1.0 - _WORST_DELTA - right, right, _WORST_DELTA])

    def draw_scores(probabilities: Array, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.choice(4, size=shape, p=probabilities).astype(np.float64)

    scores = _independent(partial(draw_scores, law), partial(draw_scores, law[::-1]))
    return AuditedMechanism("worst case", nominal, _WORST_DELTA, nominal, scores, 1.5)


def cauchy_epsilon(shift: float, delta: float) -> float:
    """Return ε at δ of Cauchy noise around ``shift`` and around 0.

    The loss is above e between two roots of a quadratic.
    """

    def excess(epsilon: float) -> float:
        # p₁/p₀ = (1 + x²)/(1 + (x − s)²) > e^ε.
        up = math.exp(epsilon)
        roots = np.roots([1.0 - up, 2.0 * up * shift, 1.0 - up * (1.0 + shift**2)])
        if np.iscomplexobj(roots) or epsilon <= 0.0:
            return -delta
        low, high = sorted(roots)
        shifted, other = (stats.cauchy.cdf(high, at) - stats.cauchy.cdf(low, at) for at in (shift, 0.0))
        return float(shifted - up * other) - delta

    largest = 2.0 * math.asinh(0.5 * shift)
    if excess(1e-9) <= 0.0:
        return 0.0
    return float(optimize.brentq(excess, 1e-9, largest, xtol=1e-12))


def _cauchy(nominal: float) -> AuditedMechanism:
    # Without δ the largest loss is 2·arsinh(s/2).
    shift = 2.0 * math.sinh(0.5 * nominal)
    return AuditedMechanism(
        "Cauchy",
        nominal,
        DELTA,
        cauchy_epsilon(shift, DELTA),
        _independent(
            lambda rng, shape: shift + rng.standard_cauchy(shape), lambda rng, shape: rng.standard_cauchy(shape)
        ),
        0.5 * shift,
    )


def _identical(_: float) -> AuditedMechanism:
    return AuditedMechanism("identical scores", 0.0, DELTA, 0.0, lambda _, inside: np.zeros(inside.shape), 0.5)


def _dependent(made: bounds_dependence.DependentScores, words: str, _: float) -> AuditedMechanism:
    epsilon = made.epsilon(DELTA, 2 * _COUNT)
    return AuditedMechanism(
        made.name + words,
        round(epsilon, 3),
        DELTA,
        epsilon,
        made.draw_audit,
        0.5 * made.mean_trace,
        is_gaussian=not made.is_conditional,
        has_coins=not words,
    )


ALL_IN = ", all in"
_EPSILONS, _OTHER_EPSILONS = (0.0, 0.5, 1.0, 3.0, 10.0), (1.0, 3.0)
_OTHERS: dict[str, Callable[[float], AuditedMechanism]] = {
    "Laplace": lambda nominal: _of_bounds(bounds.laplace(nominal), 0.5 * nominal),
    "randomised response": lambda nominal: _of_bounds(bounds.randomised_response(nominal), 0.5),
    "worst case": _worst_case,
    "rounded Gaussian": _rounded,
    "Cauchy": _cauchy,
}
_MAKERS: dict[str, Callable[[float], AuditedMechanism]] = {
    "Gaussian": _gaussian,
    **_OTHERS,
    "identical scores": _identical,
    **{
        made.name + words: partial(_dependent, made, words)
        for made in bounds_dependence.MECHANISMS
        for words in ("", ALL_IN)
    },
}
# Numbers of canaries on average on either side, and the most audits of each; with other mechanisms than the Gaussian
# one there are 100 canaries.
_RUNS = {
    Effort.QUICK: {20: 100, 100: 100, 1000: 20},
    Effort.FULL: {20: 400, 100: 400, 1000: 100, 10_000: 10},
}
_COUNT = 100
# CPU seconds for all audits of a method: a call's declared seconds then say how many there are.
BUDGET = {Effort.QUICK: 10.0, Effort.FULL: 100.0}
# The fewest audits of a cell that decide anything. A cell takes a minute at most, as six calls take up to ``LIMIT``.
LEAST = 6
# Seconds of a call from which on there are fewer cells, and the fewest.
_SLOW, _SLOWEST = 0.1, 3.0
_SLOW_EPSILONS = {Effort.QUICK: (0.0, 3.0), Effort.FULL: (0.0, 1.0, 3.0)}


@dataclass(frozen=True)
class ToolAuditor:
    """A function of a tool, and what its documentation says of its number."""

    tool: str
    name: str  # function, and options where they are not the default
    called: str  # what its documentation calls the number, in its words between “ and ”
    source: str  # where it says so
    # Probability with which the number may be above ε, as documented; None if it promises none.
    alpha: float | None = ALPHA
    gaussian_only: bool = False  # whether it assumes a Gaussian trade-off curve
    any_dependence: bool = False  # whether its proof rests on coins, and covers scores that depend on each other
    counts: bool = False  # whether it takes counts, and no scores
    # CPU seconds of a call at k = 100 in its slowest cell, as measured before the run.
    seconds: float = 0.002

    @property
    def id(self) -> str:
        """Its part of the ids of checks."""
        words = "".join(letter if letter.isalnum() else " " for letter in f"{self.tool} {self.name}".lower()).split()
        return "-".join(words)


_JAX = "jax_privacy/auditing.py, CanaryScoreAuditor"
_OPAKE = "opake/api/auditing/one_run"
_GUARD = "privacy_guard/analysis/mia"
_MICROSOFT = "privacy_estimates/__init__.py, compute_eps_lo"
_EPS_LO = "“Returns eps_lo such that eps_lo <= eps with confidence 100*(1 - alpha)%”"
_CATALOGUE = "verify/audit/bounds/catalogue.py"
METHODS = (
    *(
        ToolAuditor(
            "jax-privacy",
            f"epsilon_clopper_pearson{option}",
            "“Finds epsilon lower bound from scores of held-in/held-out canaries”",
            f"{_JAX}.epsilon_clopper_pearson",
            seconds=seconds,
        )
        for option, seconds in (("", 0.0005), (", Explicit", 0.0005), (", Split", 0.001), (", MultiSplit", 0.06))
    ),
    ToolAuditor(
        "jax-privacy",
        "epsilon_one_run",
        "“Computes lower bound on epsilon for a single round of auditing”",
        f"{_JAX}.epsilon_one_run",
        any_dependence=True,
    ),
    ToolAuditor(
        "jax-privacy",
        "epsilon_one_run_fdp",
        "“Computes lower bound on epsilon for a single round of auditing”",
        f"{_JAX}.epsilon_one_run_fdp",
        gaussian_only=True,
        seconds=0.06,
        any_dependence=True,
    ),
    ToolAuditor(
        "jax-privacy",
        "epsilon_from_gdp",
        "“Calculates the an estimate for epsilon with GDP”, “significance: Allowed probability of failure (one minus "
        "confidence)”",
        f"{_JAX}.epsilon_from_gdp",
        gaussian_only=True,
    ),
    ToolAuditor(
        "jax-privacy",
        "epsilon_raw_counts",
        "“Estimates epsilon from raw count statistics of seen/unseen canaries”",
        f"{_JAX}.epsilon_raw_counts",
        alpha=None,
    ),
    ToolAuditor(
        "opake-auditing",
        "eps_delta",
        "“Epsilon lower bound at the given (δ, significance)”, “Mechanism-agnostic”",
        f"{_OPAKE}/_eps_delta.py, EpsDeltaMethod.epsilon_at; _estimate.py, OneRunEstimate.eps_delta",
        any_dependence=True,
    ),
    ToolAuditor(
        "opake-auditing",
        "gdp",
        "“Epsilon lower bound at the given (δ, significance)”",
        f"{_OPAKE}/_gdp.py, GdpMethod.epsilon_at",
        gaussian_only=True,
        seconds=1.1,
        any_dependence=True,
    ),
    ToolAuditor(
        "privacyguard-platform",
        "FDPAnalysisNode",
        "“Empirical epsilon”, “threshold: Probability threshold value for auditing”",
        f"{_GUARD}/fdp_analysis_node.py, FDPAnalysisNodeOutput and FDPAnalysisNode.__init__",
        alpha=None,
        gaussian_only=True,
        counts=True,
        seconds=2.0,
    ),
    ToolAuditor(
        "privacyguard-platform",
        "AnalysisNode, eps",
        "“Epsilon value at the TPR=1% UB or LB threshold depending on attack settings”",
        f"{_GUARD}/analysis_node.py, AnalysisNodeOutput",
        alpha=None,
        seconds=1.6,
    ),
    ToolAuditor(
        "privacyguard-platform",
        "AnalysisNode, eps_lb",
        "“Lower bound of epsilon”, “get CI bounds with 95% confidence”",
        f"{_GUARD}/analysis_node.py, AnalysisNodeOutput and AnalysisNode.run_analysis",
        alpha=0.025,
        seconds=1.6,
    ),
    ToolAuditor(
        "privacyguard-platform",
        "AnalysisNode, eps_cp",
        "“Empirical epsilon computed using the Clopper-Pearson CI method”",
        f"{_GUARD}/analysis_node.py, AnalysisNodeOutput",
        alpha=None,
        seconds=0.02,
    ),
    *(
        ToolAuditor("privacy-estimates", name, _EPS_LO, _MICROSOFT, counts=True, seconds=seconds)
        for name, seconds in (
            ("beta", 0.0005), ("jeffreys", 0.0005), ("joint-beta", 9.0), ("joint-dirichlet", 0.0001),
        )
    ),
    ToolAuditor(
        "Andrew et al.",
        "andrew",
        "lower bound with confidence 1 − α (arXiv 2302.03098, Section 5.1), as reproduced here",
        _CATALOGUE,
    ),
    *(
        ToolAuditor(
            "CANIFE", name, f"lower end of a 95% interval (arXiv 2210.02912, {section}), as reproduced here",
            _CATALOGUE, alpha=0.025,
        )
        for name, section in (("canife", "Appendix C.1"), ("canife-code", "public code"))
    ),
    *(
        ToolAuditor(
            "canaryproof", name, "lower bound with confidence 1 − α", _CATALOGUE,
            gaussian_only=name in ("one-run-gaussian", "gaussian-dp"), any_dependence=name.startswith("one-run"),
            seconds=seconds,
        )
        for name, seconds in (
            ("fixed-sequence", 0.03),
            ("bonferroni", 0.001),
            ("one-run", 0.001),
            ("one-run-gaussian", 0.001),
            ("gaussian-dp", 0.003),
        )
    ),
)  # fmt: skip


@dataclass(frozen=True)
class AuditorCell:
    """Audits of one mechanism."""

    mechanism: AuditedMechanism
    count: int  # canaries that take part, on average, of twice as many
    runs: int


def _settings(method: ToolAuditor, level: Effort) -> Iterator[tuple[str, float, int]]:
    """Yield mechanism, its ε and number of canaries of the cells of a method: those whose assumptions it states."""
    slow = method.seconds > _SLOW
    # Three cells alone.
    few = method.seconds > _SLOWEST or (slow and level is Effort.QUICK)
    for count in _RUNS[level]:
        if not (slow and (count > _COUNT or (few and count < _COUNT))):
            for nominal in _SLOW_EPSILONS[Effort.QUICK if few else level] if slow else _EPSILONS:
                yield "Gaussian", nominal, count
    if not (method.gaussian_only or few):
        for name in _OTHERS:
            for nominal in _OTHER_EPSILONS[1:] if slow else _OTHER_EPSILONS:
                yield name, nominal, _COUNT
    yield "identical scores", 0.0, _COUNT


def cells(method: ToolAuditor, level: Effort) -> list[AuditorCell]:
    """Return the cells that a method is judged on, with as many audits as its budget allows."""
    settings = [(mechanism(name, nominal), count) for name, nominal, count in _settings(method, level)]
    return _fit_budget(method, level, settings)


def dependent_cells(method: ToolAuditor, level: Effort) -> list[AuditorCell]:
    """Return the cells whose scores depend on each other; of a method for Gaussian curves, those that have one."""
    words = "" if method.any_dependence else ALL_IN
    made = [mechanism(each.name + words, 0.0) for each in bounds_dependence.MECHANISMS]
    return _fit_budget(method, level, [(each, _COUNT) for each in made if each.is_gaussian or not method.gaussian_only])


def _fit_budget(method: ToolAuditor, level: Effort, settings: list[tuple[AuditedMechanism, int]]) -> list[AuditorCell]:
    share = min(1.0, BUDGET[level] / (len(settings) * method.seconds * _RUNS[level][_COUNT]))
    return [AuditorCell(made, count, max(LEAST, math.ceil(share * _RUNS[level][count]))) for made, count in settings]


@cache
def mechanism(name: str, nominal: float) -> AuditedMechanism:
    """Return a mechanism by its name and ε."""
    return _MAKERS[name](nominal)


def draw(context: Context, cell: AuditorCell) -> tuple[Array, NDArray[np.bool_]]:
    """Draw all audits of a cell: scores, and whether each canary took part, shape (runs, 2·count).

    A method that takes fewer audits gets the first of those that the others get.
    """
    made = cell.mechanism
    key = context.key(f"auditors/{made.name}/{made.nominal}/{cell.count}")
    scores, inside = [], []
    for rng in (np.random.default_rng(seed) for seed in key.spawn(cell.runs)):
        coins = rng.random(2 * cell.count) < 0.5
        if made.has_coins:
            inside.append(coins)
            scores.append(made.draw(rng, coins))
        else:
            every = np.ones_like(coins)
            inside.append(np.concatenate([every, ~every]))
            scores.append(np.concatenate([made.draw(rng, every), rng.standard_normal(every.size)]))
    return np.array(scores), np.array(inside)


def measure(context: Context, method: ToolAuditor, chosen: list[AuditorCell]) -> tuple[str, list[dict[str, Any]]]:
    """Let a method audit cells; return the tool's version and a row for each cell.

    ``MissingToolError`` says that the tool is not there.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for i, cell in enumerate(chosen):
        arrays[f"scores_{i}"], arrays[f"inside_{i}"] = draw(context, cell)
    asked = [{"delta": cell.mechanism.delta, "threshold": cell.mechanism.threshold} for cell in chosen]
    answer = ask("auditors", method.tool, method.name, asked, arrays, alpha=ALPHA)
    ends = np.cumsum([cell.runs for cell in chosen])
    calls = [answer.calls[end - cell.runs : end] for cell, end in zip(chosen, ends, strict=True)]
    return answer.version, [_row(cell, of) for cell, of in zip(chosen, calls, strict=True)]


def _row(cell: AuditorCell, calls: tuple[tuple[float | None, str, float], ...]) -> dict[str, Any]:
    made = cell.mechanism
    values = np.array([math.nan if value is None else value for value, _, _ in calls])
    finite = values[np.isfinite(values)]
    # An infinite bound is above every ε, and what is no number is not above anything.
    above = int(np.sum(values > made.epsilon + SLACK))
    low, high = binomial.interval(above, cell.runs, 0.95)
    raised = sorted({reason for _, reason, _ in calls if reason})
    return {
        "mechanism": made.name,
        "nominal": made.nominal,
        "count": cell.count,
        "delta": made.delta,
        "truth": made.epsilon,
        "runs": cell.runs,
        "above": above,
        "rate": above / cell.runs,
        "interval": (float(low), float(high)),
        "mean": float(finite.mean()) if finite.size else None,
        "median": float(np.median(finite)) if finite.size else None,
        "least": float(finite.min()) if finite.size else None,
        "raised": sum(bool(reason) for _, reason, _ in calls),
        "not_numbers": sum(value is not None and math.isnan(value) for value, _, _ in calls),
        "infinite": int(np.isinf(values).sum()),
        "reasons": raised[:3],
        # The first call of a process may load or compile what the others use.
        "seconds": float(np.mean([seconds for _, _, seconds in calls[1:] or calls])),
    }


def unusual() -> dict[str, tuple[Array, NDArray[np.bool_]]]:
    """Return inputs that nothing, or next to nothing, follows from: scores, and whether each canary took part."""
    rng = np.random.default_rng(0)
    inside = np.repeat((True, False), 20)
    scores = rng.standard_normal(40) + inside
    missing, infinite = scores.copy(), scores.copy()
    missing[0], infinite[0] = math.nan, math.inf
    return {
        "one NaN": (missing, inside),
        "one infinite": (infinite, inside),
        "no scores": (scores[:0], inside[:0]),
        "none unobserved": (scores[:20], inside[:20]),
        "one of each": (np.array([1.0, 0.0]), np.array([True, False])),
    }


def answers(method: ToolAuditor) -> dict[str, str]:
    """Return in words what a method answers to unusual inputs; a process of its own, as one may end it."""
    given = {name: pair for name, pair in unusual().items() if not (method.counts and name in _OF_SCORES)}
    made = mechanism("Gaussian", 1.0)
    arrays: dict[str, NDArray[Any]] = {}
    for i, (scores, inside) in enumerate(given.values()):
        arrays[f"scores_{i}"], arrays[f"inside_{i}"] = scores[np.newaxis], inside[np.newaxis]
    asked = [{"delta": made.delta, "threshold": made.threshold}] * len(given)
    try:
        calls = ask("auditors", method.tool, method.name, asked, arrays, alpha=ALPHA).calls
    except EndedToolError as reason:
        return dict.fromkeys(given, str(reason))
    texts = dict.fromkeys(_OF_SCORES, "takes counts") if method.counts else {}
    return texts | {name: raised or _in_words(value) for name, (value, raised, _) in zip(given, calls, strict=True)}


def _in_words(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "not a number"
    return f"{value:.3g}" if math.isfinite(value) else "infinite"


def _failed(row: Mapping[str, Any]) -> int:
    """Return how many audits gave no finite number."""
    return int(row["raised"] + row["not_numbers"] + row["infinite"])


def label(row: Mapping[str, Any]) -> str:
    """Name a cell."""
    return f"{row['mechanism']}, ε = {row['truth']:.3g}, k = {row['count']:,}"


def _judge(context: Context, method: ToolAuditor, dependent: bool) -> Outcome:
    chosen = (dependent_cells if dependent else cells)(method, context.level)
    is_promise = method.alpha is not None and (method.any_dependence or not dependent)
    evidence: dict[str, Any] = {
        "tool": method.tool,
        "method": method.name,
        "called": method.called,
        "source": method.source,
        "promise": method.alpha,
        "gaussian_only": method.gaussian_only,
        "any_dependence": method.any_dependence,
    }
    try:
        version, rows = measure(context, method, chosen)
    except MissingToolError as reason:
        return Outcome(Verdict.NEEDS_DATA, str(reason), {**evidence, "missing": str(reason)})
    except EndedToolError as reason:
        return Outcome(Verdict.INCONCLUSIVE, str(reason), {**evidence, "missing": str(reason)})
    alpha = ALPHA if method.alpha is None else method.alpha
    level = LEVEL / len(rows)
    tails = [float(stats.binom.sf(row["above"] - 1, row["runs"], alpha)) for row in rows]
    wrong = [row for row, tail in zip(rows, tails, strict=True) if tail < level]
    worst = rows[min(range(len(rows)), key=lambda i: (tails[i], -rows[i]["rate"]))]
    low, high = worst["interval"]
    failed = sum(map(_failed, rows))
    calls = sum(row["runs"] for row in rows)
    finding = (
        f"version {version}: significantly above ε in more than {alpha:.1%} of audits in {len(wrong)} of {len(rows)} "
        f"cells; most so {worst['above']} of {worst['runs']} [{low:.0%}, {high:.0%}] ({label(worst)}); "
        f"{failed} of {calls:,} calls gave no finite number"
    )
    # Where even a cell in which all audits fail would not show it, nothing is decided.
    if failed == calls or alpha ** max(row["runs"] for row in rows) >= level:
        verdict = Verdict.INCONCLUSIVE
    elif not is_promise:
        verdict = Verdict.CONFIRMED if wrong else Verdict.INCONCLUSIVE
    elif wrong:
        verdict = Verdict.REFUTED
    else:
        # A cell that few would call an accident is no confirmation, however few audits it has.
        verdict = Verdict.INCONCLUSIVE if min(tails) < _DOUBTFUL / len(rows) else Verdict.CONFIRMED
    runs = min(row["runs"] for row in rows)
    critical = int(stats.binom.isf(level, runs, alpha)) + 1
    visible = float(stats.beta.ppf(_POWER, critical, runs - critical + 1)) if critical <= runs else 1.0
    design = Design(
        f"values are above ε in {alpha:.3g} of audits", LEVEL, f"in the smallest cell in {visible:.2g}", _POWER, runs
    )
    return Outcome(
        verdict,
        finding,
        {
            **evidence,
            "version": version,
            "date": today(),
            "alpha": alpha,
            "level": LEVEL,
            "slack": SLACK,
            "limit": LIMIT,
            "budget": BUDGET[context.level],
            "least": LEAST,
            "declared": method.seconds,
            "cells": rows,
            **({} if dependent else {"inputs": answers(method)}),
        },
        design,
    )


def _check(method: ToolAuditor, *, dependent: bool = False) -> Check:
    at_most = f"is above ε by more than {SLACK:g} in at most {method.alpha or ALPHA:.1%} of audits"
    if dependent:
        statement = f"{at_most}, however the scores of a run depend on each other"
        if method.alpha is None or not method.any_dependence:
            statement = (
                f"needs scores that do not depend on each other: where they do, it is above ε by more than {SLACK:g} "
                f"in more than {method.alpha or ALPHA:.1%} of some audits"
            )
    elif method.alpha is None:
        statement = (
            f"is an estimate, to be read as such: as a 95% lower bound it fails in more than {ALPHA:.0%} of audits"
        )
    else:
        statement = at_most
    own = method.tool == "canaryproof"
    subject = Subject.IMPLEMENTATION if own else Subject.TOOL
    source = "verify.audit.bounds" if own else f"{method.tool}: {method.source}"
    suite = "dependence" if dependent else "auditors"
    judge = partial(_judge, method=method, dependent=dependent)
    return Check(f"{suite}.{method.id}", subject, source, f"{method.name} {statement}", judge)


CHECKS = tuple(_check(method) for method in METHODS)
DEPENDENCE_CHECKS = tuple(_check(method, dependent=True) for method in METHODS)


def main(tool: str, name: str, *rest: str) -> str:
    """Let one method audit its cells, or one of them, at seed 0; return the rows as text."""
    method = next((candidate for candidate in METHODS if (candidate.tool, candidate.name) == (tool, name)), None)
    if method is None:
        known = "; ".join(f"{candidate.tool!r} {candidate.name!r}" for candidate in METHODS)
        raise SystemExit(f"there is no method {name!r} of {tool!r}; there are {known}")
    if rest[:1] == ("inputs",):
        try:
            return "\n".join(f"{name}: {answer}" for name, answer in answers(method).items())
        except (MissingToolError, EndedToolError) as reason:
            raise SystemExit(str(reason)) from None
    level = Effort(rest[-1]) if rest and rest[-1] in BUDGET else Effort.QUICK
    chosen = [*cells(method, level), *dependent_cells(method, level)]
    if len(rest) >= 3:
        where = (rest[0], float(rest[1]), int(rest[2]))
        chosen = [cell for cell in chosen if (cell.mechanism.name, cell.mechanism.nominal, cell.count) == where]
    try:
        candidate, rows = measure(Context(level, 0), method, chosen)
    except (MissingToolError, EndedToolError) as reason:
        raise SystemExit(str(reason)) from None
    lines = [
        f"{label(row)}: above in {row['above']} of {row['runs']}, mean {_in_words(row['mean'])}, "
        f"{': '.join([f'{_failed(row)} without a finite number', *row['reasons']])}"
        for row in rows
    ]
    return "\n".join([f"{tool} {candidate}, {name}", *lines])


if __name__ == "__main__":
    sys.stdout.write(main(*sys.argv[1:]) + "\n")
