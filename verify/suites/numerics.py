"""Suite ``numerics``: the fast kernels against their multiprecision twins, at random and at awkward inputs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

from canaryproof.kernels import binomial, gaussian_mechanism, null_cosine, two_gaussians
from canaryproof.kernels.reference import binomial as binomial_twin
from canaryproof.kernels.reference import gaussian_mechanism as gaussian_mechanism_twin
from canaryproof.kernels.reference import null_cosine as null_cosine_twin
from canaryproof.kernels.reference import two_gaussians as two_gaussians_twin
from canaryproof.verify.results import Check, Context, Outcome, Subject, Verdict

Inputs = Sequence[tuple[float, ...]]
# Twins are evaluated to this many digits, twice as many as a float holds.
_DIGITS = 32


@dataclass(frozen=True)
class Comparison:
    """A kernel, its twin, and the error that its docstring allows.

    Attributes
    ----------
    id
        Name of the check.
    kernel, twin
        Functions of the same arguments.
    draw
        Makes random inputs over the domain.
    awkward
        Fixed inputs: seams, ends and near-cancellations.
    budget
        Largest error allowed, relative to the larger of the exact result and ``floor``.
    floor
        Size below which the budget is an absolute one.
    share
        Random inputs per ten: for twins that take longer.
    """

    id: str
    kernel: Callable[..., Any]
    twin: Callable[..., mp.mpf]
    draw: Callable[[np.random.Generator], tuple[float, ...]]
    awkward: Inputs
    budget: float = 1e-13
    floor: float = 0.0
    share: int = 10


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def _cosine_and_dim(rng: np.random.Generator) -> tuple[float, ...]:
    dim = round(_log_uniform(rng, 2, 1e12))
    deviations = rng.choice([rng.uniform(0.0, 4.0), rng.uniform(0.0, 36.0), _log_uniform(rng, 1e-9, 1.0)])
    cosine = float(min(deviations / math.sqrt(dim), rng.uniform(0.9, 1.0)))
    return (cosine if rng.random() < 0.5 else -cosine), float(dim)


def _probability_and_dim(rng: np.random.Generator) -> tuple[float, ...]:
    probability = rng.choice([_log_uniform(rng, 1e-300, 0.5), rng.uniform(), 0.5 + _log_uniform(rng, 1e-16, 0.4)])
    return float(probability), float(round(_log_uniform(rng, 2, 1e12)))


def _pair(rng: np.random.Generator) -> tuple[float, ...]:
    """Means and deviations: wide, near-equal or equal deviations, at any scale and place."""
    gap = rng.choice([_log_uniform(rng, 1e-3, 1e3), 1.0 + rng.choice([-1, 1]) * _log_uniform(rng, 1e-16, 0.1), 1.0])
    distance = rng.choice([_log_uniform(rng, 1e-3, 300.0), 0.0], p=[0.9, 0.1])
    scale, place = _log_uniform(rng, 1e-6, 1e6), rng.normal()
    return float(scale * (place + distance)), float(scale * gap), float(scale * place), scale


def _delta(rng: np.random.Generator) -> float:
    return _log_uniform(rng, 1e-300, 0.5) if rng.random() < 0.5 else _log_uniform(rng, 1e-12, 0.5)


_COSINES: Inputs = [
    (sign * x, dim)
    for sign in (1.0, -1.0)
    for x, dim in (
        (0.0, 2.0), (0.5, 2.0), (1.0 - 2.0**-53, 2.0), (0.3, 3.0), (0.999, 4.0), (0.25, 1000.0),
        (1.0 / math.sqrt(1000.0), 1000.0), (8.0 / math.sqrt(1000.0), 1000.0), (0.7, 1000.0), (1e-9, 1e12),
        (1e-6, 1e12), (3.7e-5, 1e12),
    )
]  # fmt: skip
_PROBABILITIES: Inputs = [
    (q, dim)
    for q in (1e-300, 0.169999, 0.170001, math.nextafter(0.5, 0.0), math.nextafter(0.5, 1.0))
    for dim in (2.0, 1000.0, 1e12)
]
_NEAR_EQUAL: Inputs = [(1.3, 1.0 + gap, 1.0, 1.0) for gap in (2.0**-52, 1e-14, -1e-12, 1e-9, -1e-6, 1e-4)]

COMPARISONS = (
    *(
        Comparison(f"null-cosine.{name}", getattr(null_cosine, name), getattr(null_cosine_twin, name),
                   _cosine_and_dim, _COSINES, floor=floor)
        for name, floor in (("pdf", 0.0), ("logpdf", 0.01), ("cdf", 0.0), ("logcdf", 0.01), ("sf", 0.0),
                            ("logsf", 0.01))
    ),
    Comparison("null-cosine.ppf", null_cosine.ppf, null_cosine_twin.ppf, _probability_and_dim, _PROBABILITIES, share=3),
    Comparison("null-cosine.isf", null_cosine.isf, null_cosine_twin.isf, _probability_and_dim, _PROBABILITIES, share=3),
    Comparison(
        "two-gaussians.log-delta", two_gaussians.log_delta, two_gaussians_twin.log_delta,
        lambda rng: (rng.choice([_log_uniform(rng, 1e-3, 1e5), rng.uniform(0.0, 20.0)]), *_pair(rng)),
        [(epsilon, *pair) for epsilon in (0.0, 0.05, 3.0) for pair in _NEAR_EQUAL] + [(1.0, 0.2, 3.0, 0.2, 3.0)],
        floor=1.0,
    ),
    Comparison(
        "two-gaussians.epsilon", two_gaussians.epsilon, two_gaussians_twin.epsilon,
        lambda rng: (_delta(rng), *_pair(rng)),
        [(delta, *pair) for delta in (1e-6, 1e-300) for pair in _NEAR_EQUAL] + [(1e-6, 0.2, 3.0, 0.2, 3.0)],
        floor=0.1, share=3,
    ),
    Comparison(
        "gaussian-mechanism.delta", gaussian_mechanism.delta, gaussian_mechanism_twin.delta,
        lambda rng: (_log_uniform(rng, 1e-3, 10.0), _log_uniform(rng, 0.05, 3.0)),
        [(0.0, 1.0), (0.0, 1e9), (1e5, 0.0023), (1.0, 4.22)],
    ),
    Comparison(
        "gaussian-mechanism.log-delta", gaussian_mechanism.log_delta, gaussian_mechanism_twin.log_delta,
        lambda rng: (_log_uniform(rng, 1e-3, 1e5), _log_uniform(rng, 1e-3, 1e3)),
        [(0.0, 1.0), (0.0, 1e9), (1e5, 0.0023), (1.0, 4.22)], floor=1.0,
    ),
    Comparison(
        "gaussian-mechanism.epsilon", gaussian_mechanism.epsilon, gaussian_mechanism_twin.epsilon,
        lambda rng: (_delta(rng), _log_uniform(rng, 1e-2, 1e3)),
        [(1e-6, 4.22), (1e-6, 1.54), (1e-6, 0.541), (0.5, 1.0)], floor=0.1, share=3,
    ),
    Comparison(
        "gaussian-mechanism.noise-multiplier", gaussian_mechanism.noise_multiplier,
        gaussian_mechanism_twin.noise_multiplier, lambda rng: (_log_uniform(rng, 1e-6, 1e5), _delta(rng)),
        [(1.0, 1e-6), (0.0, 1e-6), (0.0, 1e-300), (1e5, 0.5)], share=3,
    ),
)  # fmt: skip


def _judge(comparison: Comparison, context: Context) -> Outcome:
    rng = np.random.default_rng(context.key(f"numerics/{comparison.id}"))
    draws = context.pick(2, 40) * comparison.share
    inputs = [*comparison.awkward, *(tuple(map(float, comparison.draw(rng))) for _ in range(draws))]
    worst, at, compared = 0.0, inputs[0], 0
    for arguments in inputs:
        fast = float(comparison.kernel(*arguments))
        exact = comparison.twin(*arguments, digits=_DIGITS)
        if mp.isinf(exact) or exact == 0 or abs(exact) < 1e-300:
            # Infinite, zero or beyond the normal floats: there is no relative error, only right and wrong.
            error = 0.0 if fast == float(exact) or abs(fast) < 1.1e-300 else math.inf
        else:
            compared += 1
            error = float(abs(mp.mpf(fast) - exact) / max(abs(exact), mp.mpf(comparison.floor)))
        if not error <= worst:
            worst, at = error, arguments
    holds = worst <= comparison.budget
    return Outcome(
        Verdict.CONFIRMED if holds else Verdict.REFUTED,
        f"worst error {worst:.1e} of {compared} at {_show(at)}; budget {comparison.budget:g}",
        {"compared": compared, "worst": worst, "at": list(at), "budget": comparison.budget, "floor": comparison.floor},
    )


def _show(arguments: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{a:.6g}" for a in arguments) + ")"


def _check(comparison: Comparison) -> Check:
    size = f" (of {comparison.floor:g} where the result is smaller)" if comparison.floor else ""
    kernel = comparison.kernel
    return Check(
        f"numerics.{comparison.id}",
        Subject.IMPLEMENTATION,
        f"{kernel.__module__.removeprefix('canaryproof.')}.{kernel.__name__}",
        f"relative error at most {comparison.budget:g}{size} against the multiprecision twin",
        lambda context: _judge(comparison, context),
    )


def _binomial(context: Context) -> Outcome:
    rng = np.random.default_rng(context.key("numerics/binomial"))
    worst, at, compared = 0.0, "", 0
    for _ in range(context.pick(5, 60)):
        trials = round(_log_uniform(rng, 2, context.pick(1000, 100_000)))
        successes = int(rng.integers(0, trials + 1))
        confidence = 1.0 - _log_uniform(rng, 1e-9, 0.5)
        for method in ("clopper-pearson", "jeffreys"):
            for name in ("lower", "upper"):
                fast = float(getattr(binomial, name)(successes, trials, confidence, method))
                exact = getattr(binomial_twin, name)(successes, trials, confidence, method, digits=_DIGITS)
                error = float(abs(mp.mpf(fast) - exact) / exact) if exact else abs(fast)
                compared += 1
                if not error <= worst:
                    worst, at = error, f"{method} {name} {successes} of {trials} at {confidence:.10g}"
    return Outcome(
        Verdict.CONFIRMED if worst <= 1e-12 else Verdict.REFUTED,
        f"worst error {worst:.1e} of {compared} ({at}); budget 1e-12",
        {"compared": compared, "worst": worst, "at": at, "budget": 1e-12},
    )


CHECKS = (
    *(_check(comparison) for comparison in COMPARISONS),
    Check(
        "numerics.binomial",
        Subject.IMPLEMENTATION,
        "kernels.binomial",
        "Clopper–Pearson and Jeffreys limits: relative error at most 1e-12 against the multiprecision twin",
        _binomial,
    ),
)
