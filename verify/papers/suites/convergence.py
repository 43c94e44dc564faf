"""Convergence in d and k: exact quantities, proven bounds and simulated points, for each theorem."""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.arrays import Array
from canaryproof.proofs_check import consistency, finite_bounds, normal_distance, release_moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K
from canaryproof.verify.audit.estimators import epsilon_estimators, simulation
from canaryproof.verify.audit.estimators.moments import Moments
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.audit.levels import LEVEL, PART_LEVEL, POWER
from canaryproof.verify.papers.check.p_values import mean_p_value
from canaryproof.verify.papers.check.power import visible_mean
from canaryproof.verify.papers.check.results import Check, Context, Design, Outcome, Subject, Verdict
from canaryproof.verify.papers.convergence.law import releases
from canaryproof.verify.papers.convergence.series import curve
from canaryproof.verify.papers.records.evidence import Series

DELTA = 1e-6


def _outcome(
    series: list[Series], p_values: Sequence[float], null: str, runs: int, noises: int = 1, **evidence: Any
) -> Outcome:
    """Confirm if no simulated point is farther from the exact value than chance allows."""
    smallest = min(p_values)
    visible = visible_mean(runs, PART_LEVEL / len(p_values))
    summands = f", each a mean over {noises} noises" if noises > 1 else ""
    alternative = f"a point is off by {visible:.2g} deviations of its summands{summands}"
    design = Design(null, LEVEL, alternative, POWER, runs)
    return Outcome(
        Verdict.CONFIRMED if smallest >= PART_LEVEL / len(p_values) else Verdict.REFUTED,
        f"smallest of {len(p_values)} p-values {smallest:.2g}, {len(series)} quantities",
        {"level": PART_LEVEL, "p_values": list(p_values), "runs": runs, "noises": noises}
        | {"convergence": list(map(to_document, series))}
        | evidence,
        design,
    )


def _beyond(value: float, expected: float, margin: float, error: float, runs: int) -> float:
    """p-value, by Student's law, of an estimate of what differs from the expected value by the margin at most."""
    return 2.0 * float(stats.t.sf(max(0.0, abs(value - expected) - margin) / error, runs - 1))


def _runs(context: Context, quick: int, full: int, count: int) -> int:
    """Return how many runs of so many canaries to draw: more where they are few, cheap, and farther from normal."""
    return context.pick(quick, full) * min(20, max(1, 1000 // count))


def _unseen(rng: np.random.Generator, dim: int, size: int) -> Array:
    """Draw cosines of unseen canaries times √d: coordinates of uniform directions."""
    first = rng.standard_normal(size)
    return math.sqrt(dim) * first / np.sqrt(first**2 + rng.chisquare(dim - 1, size))


# Drawing canaries costs k², and noise k: so many noises with the canaries of a run are worth nearly as many runs.
_NOISES = 10


def _simulated(
    context: Context, name: str, sizes: Sequence[int], counts: Sequence[int], dim: int, sigma: float
) -> Iterator[Moments]:
    """Simulate runs at each k, with some noises for the canaries of each: moments of shape (runs, noises)."""
    for runs, count in zip(sizes, counts, strict=True):
        key = context.key(f"convergence/{name}/{count}")
        yield simulation.simulate(runs, count, dim, np.full(_NOISES, sigma), key)


def _over_noises(values: Array) -> tuple[float, float]:
    """Mean and standard error from runs, which are independent, though noises of one are not."""
    return _mean_and_error(values.mean(axis=1))


def _mean_and_error(values: Array) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def _null_moments(context: Context) -> Outcome:
    size = context.pick(400_000, 10_000_000)
    dims = (2, 3, 5, 10, 20, 50, 100)
    squares, fourths = [], []
    p_values = []
    for dim in dims:
        values = _unseen(np.random.default_rng(context.key(f"convergence/null/{dim}")), dim, size)
        squares.append(_mean_and_error(values**2 / dim))
        fourths.append(_mean_and_error(3.0 - values**4))
        p_values += [mean_p_value(values**2 / dim, 1.0 / dim), mean_p_value(values**4, 3.0 - 6.0 / (dim + 2.0))]
    exact_square, exact_fourth = [1.0 / dim for dim in dims], [6.0 / (dim + 2.0) for dim in dims]
    series = [
        curve(
            "Lemma A.1: variance of the cosine",
            "d",
            "Var τ",
            dims,
            -1.0,
            exact=exact_square,
            simulated=[value for value, _ in squares],
            standard_error=[error for _, error in squares],
        ),
        curve(
            "Theorem 3.1: fourth moment",
            "d",
            "3 − E(√d τ)⁴",
            dims,
            -1.0,
            exact=exact_fourth,
            bound=[6.0 / dim for dim in dims],
            bound_label="6/d",
            fitted_to=(20, math.inf),
            simulated=[value for value, _ in fourths],
            standard_error=[error for _, error in fourths],
        ),
    ]
    return _outcome(series, p_values, "the cosine has its exact moments", size)


# Where F − Φ is largest in size as d grows: √(3 − √6).
_FARTHEST = 0.7419637843027259


def _normal_law(context: Context) -> Outcome:
    size = context.pick(400_000, 20_000_000)
    table = normal_distance.distance_table()
    dims = [row["dim"] for row in table]
    simulated, errors, p_values = [], [], []
    for dim in dims:
        values = _unseen(np.random.default_rng(context.key(f"convergence/normal/{dim}")), dim, size)
        within = int((np.abs(values) < _FARTHEST).sum())
        inside = within / size
        normal = 1.0 - 2.0 * stats.norm.sf(_FARTHEST)
        exact = normal_distance.difference(_FARTHEST, dim).lo
        simulated.append(0.5 * (normal - inside))
        errors.append(0.5 * math.sqrt(inside * (1.0 - inside) / size))
        p_values.append(float(stats.binomtest(within, size, normal + 2.0 * exact).pvalue))
    series = [
        curve(
            f"Theorem 3.2: {name} distance to N(0, 1)",
            "d",
            quantity,
            dims,
            -1.0,
            exact=[0.5 * sum(row[key]) for row in table],
            bound=[row[f"{key}_bound"] for row in table],
            bound_label=label,
            simulated=simulated if key == "kolmogorov" else None,
            standard_error=errors if key == "kolmogorov" else None,
            slope_of="exact",
            fitted_to=(100, math.inf),
            note=note,
        )
        for name, key, quantity, label, note in (
            (
                "Kolmogorov",
                "kolmogorov",
                "sup |F − Φ|",
                "0.138/(d − 1), proven",
                f"Exact values are certified; simulated is Φ − F at √(3 − √6), where the distance is attained as d "
                f"grows. {size:,} draws cannot see distances much below {errors[-1]:.0e}.",
            ),
            (
                "total variation",
                "total_variation",
                "½ ∫ |f − φ|",
                "0.396/(d − 1), proven",
                "Exact values are certified.",
            ),
        )
    ]
    return _outcome(series, p_values, "P(√d·|τ| < √(3 − √6)) is as certified", size)


def _finite_theorem(context: Context) -> Outcome:
    counts, sigma, distance = (10, 30, 100, 300, 1000), Fraction(1), Fraction(1, 4)
    sizes = {count: _runs(context, 400, 4000, count) for count in counts}
    spreads: dict[str, list[tuple[float, float, float]]] = {"A": [], "B": [], "W": []}
    outside: dict[str, list[int]] = {"mean": [], "variance": []}
    p_values = []
    for count in counts:
        dim = count**2
        drawn = releases(sizes[count], count, dim, float(sigma), context.key(f"convergence/release/{count}"))
        for name, values in drawn.items():
            centre, exact = (float(part.subs({D: dim, K: count, SIGMA: 1})) for part in release_moments.moments(name))
            square, error = _mean_and_error((values - centre) ** 2)
            spreads[name].append((exact, square, error))
            p_values.append(mean_p_value((values - centre) ** 2, exact))
        mean, variance = drawn["B"] / np.sqrt(drawn["A"]), drawn["W"] / drawn["A"]
        outside["mean"].append(int((np.abs(mean - 1.0 / float(sigma)) > float(distance)).sum()))
        outside["variance"].append(int((np.abs(variance - 1.0) > float(distance)).sum()))
    names = {"A": "‖ρ‖²/d", "B": "(1/k)Σ⟨cᵢ, ρ⟩", "W": "sample variance of ⟨cᵢ, ρ⟩"}
    series = [
        curve(
            f"Theorem 3.3: variance of {names[name]}, d = k²",
            "k",
            "variance",
            counts,
            -2.0 if name == "A" else -1.0,
            exact=[row[0] for row in rows],
            fitted_to=(100, math.inf),
            simulated=[row[1] for row in rows],
            standard_error=[row[2] for row in rows],
        )
        for name, rows in spreads.items()
    ]
    bounds = {
        "mean": [float(finite_bounds.mean_deviates(k**2, k, sigma, distance)) for k in counts],
        "variance": [float(finite_bounds.variance_deviates(k**2, k, sigma, distance)) for k in counts],
    }
    labels = {"mean": "P(|√d·μ̂ − 1/σ| > 1/4)", "variance": "P(|d·σ̂² − 1| > 1/4)"}
    for name, bound in bounds.items():
        drawn_runs = list(sizes.values())
        seen = [count / runs for count, runs in zip(outside[name], drawn_runs, strict=True)]
        # More than the bound allows, by the binomial law.
        p_values += [
            float(stats.binom.sf(count - 1, runs, b))
            for count, runs, b in zip(outside[name], drawn_runs, bound, strict=True)
            if b < 1.0
        ]
        series.append(
            curve(
                f"Theorem 3.3: {labels[name]}, d = k², σ = 1",
                "k",
                "probability",
                counts,
                -1.0,
                bound=bound,
                bound_label="Chebyshev, from exact moments",
                simulated=seen,
                standard_error=[math.sqrt(f * (1.0 - f) / runs) for f, runs in zip(seen, drawn_runs, strict=True)],
                slope_of="bound",
                fitted_to=(100, math.inf),
                note=f"Frequencies in {drawn_runs[-1]:,} to {drawn_runs[0]:,} runs: 0 of {drawn_runs[-1]:,} means less "
                f"than {1.0 - 0.05 ** (1.0 / drawn_runs[-1]):.1g}, with 95% confidence; none are in the picture.",
            )
        )
    null = "the release has its exact moments, and Chebyshev's bounds hold"
    return _outcome(series, p_values, null, min(sizes.values()))


def _estimators(context: Context) -> Outcome:
    dim, epsilon = 10**9, 3.0
    sigma = float(gaussian_mechanism.noise_multiplier(epsilon, DELTA))
    slopes = consistency.slopes(DELTA, 1.0 / sigma)
    counts = (10, 30, 100, 300, 1000)
    sizes = [_runs(context, 60, 2000, count) for count in counts]
    biases, spreads = [], []
    for drawn in _simulated(context, "estimators", sizes, counts, dim, sigma):
        fitted = epsilon_estimators.both_directions(DELTA, drawn.distance, drawn.ratio)
        biases.append(_over_noises(fitted - epsilon))
        pinned = epsilon_estimators.pinned_epsilon(DELTA, drawn.distance)
        square, error = _over_noises((pinned - pinned.mean()) ** 2)
        spreads.append((math.sqrt(square), 0.5 * error / math.sqrt(square)))
    leading_bias = [slopes.fitted_bias(count) for count in counts]
    leading_spread = [slopes.pinned_deviation(count) for count in counts]
    series = [
        curve(
            "Consistency: bias of fitted at equal variances",
            "k",
            "E ε̂ − ε",
            counts,
            -0.5,
            exact=leading_bias,
            simulated=[value for value, _ in biases],
            standard_error=[error for _, error in biases],
            exact_label="leading term",
            fitted_to=(100, math.inf),
            note="The leading term is (ε/m)a/√(πk).",
        ),
        curve(
            "Consistency: standard deviation of pinned",
            "k",
            "deviation of ε̂",
            counts,
            -0.5,
            exact=leading_spread,
            simulated=[value for value, _ in spreads],
            standard_error=[error for _, error in spreads],
            exact_label="leading term",
            note="The leading term is a/√k.",
        ),
    ]
    # The next term is of relative order 1/√k; five times that is allowed.
    p_values = [
        _beyond(value, leading, 5.0 * leading / math.sqrt(count), error, runs)
        for (value, error), leading, count, runs in zip(biases, leading_bias, counts, sizes, strict=True)
    ]
    p_values += [
        _beyond(math.log(value), math.log(leading), 5.0 / math.sqrt(count), error / value, runs)
        for (value, error), leading, count, runs in zip(spreads, leading_spread, counts, sizes, strict=True)
    ]
    null = "biases and deviations have their leading terms, to 5/√k"
    return _outcome(series, p_values, null, min(sizes), _NOISES, dim=dim, epsilon=epsilon, delta=DELTA)


def _too_many(context: Context) -> Outcome:
    """Compare pinned's error against k at fixed d: it falls, and rises where k is not small against d^(2/3)."""
    dim, epsilon = 10**4, 10.0
    sigma = float(gaussian_mechanism.noise_multiplier(epsilon, DELTA))
    slopes = consistency.slopes(DELTA, 1.0 / sigma)
    counts = (10, 20, 40, 80, 160, 320, 640, 1280)
    sizes = [_runs(context, 60, 400, count) for count in counts]
    means, errors = [], []
    for drawn in _simulated(context, "too-many", sizes, counts, dim, sigma):
        means.append(_over_noises(drawn.distance))
        square, error = _over_noises((epsilon_estimators.pinned_epsilon(DELTA, drawn.distance) - epsilon) ** 2)
        errors.append((math.sqrt(square), 0.5 * error / math.sqrt(square)))
    shifts = [consistency.shift(dim, count, sigma) for count in counts]
    leading = [
        slopes.mean * math.hypot(1.0 / math.sqrt(count), move) for count, move in zip(counts, shifts, strict=True)
    ]
    best = consistency.best_count(dim, sigma)
    series = [
        curve(
            f"Root mean square error of pinned, d = 10⁴, ε = {epsilon:g}",
            "k",
            "error of ε̂",
            counts,
            -0.5,
            exact=leading,
            exact_label="leading term",
            simulated=[value for value, _ in errors],
            standard_error=[error for _, error in errors],
            slope_of="exact",
            fitted_to=(0, best / 3.0),
            note=f"The error is least at about k = {best:.0f} = (2d²σ⁶)^(1/3).",
        ),
        curve(
            "Shift of √d·μ̂ from 1/σ, d = 10⁴",
            "k",
            "1/σ − E √d·μ̂",
            counts,
            1.0,
            exact=[-move for move in shifts],
            exact_label="leading term",
            simulated=[1.0 / sigma - value for value, _ in means],
            standard_error=[error for _, error in means],
            slope_of="exact",
            fitted_to=(0, best),
        ),
    ]
    # The centre 1/√(σ² + k/d) is exact but for terms of relative order 1/d.
    p_values = [
        _beyond(value, 1.0 / sigma + move, 5.0 / (sigma * dim), error, runs)
        for (value, error), move, runs in zip(means, shifts, sizes, strict=True)
    ]
    null = "the mean is 1/√(σ² + k/d), to 5/(σd)"
    return _outcome(series, p_values, null, min(sizes), _NOISES, dim=dim, epsilon=epsilon, delta=DELTA, best_count=best)


def _check(topic: str, source: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:
    return Check(f"theorems.convergence.{topic}", Subject.IMPLEMENTATION, source, statement, judge)


CHECKS = (
    _check(
        "null-moments",
        "Theorem 3.1 and Lemma A.1",
        "simulated moments of the cosine are the exact ones",
        _null_moments,
    ),
    _check(
        "normal-law",
        "Theorem 3.2, proofs_check.normal_distance",
        "the distance of √d·τ from N(0, 1) is as certified, and below its proven bound",
        _normal_law,
    ),
    _check(
        "release",
        "Theorem 3.3, proofs_check.finite_bounds",
        "exact moments and Chebyshev's bounds hold at finite d and k",
        _finite_theorem,
    ),
    _check(
        "estimators",
        "proofs_check.consistency",
        "the bias of fitted and the deviation of pinned have their leading terms",
        _estimators,
    ),
    _check(
        "too-many-canaries",
        "proofs_check.consistency",
        "k/d displaces the mean as derived, so that more canaries than (2d²σ⁶)^(1/3) make pinned worse",
        _too_many,
    ),
)
