"""How fast what the theorems bound goes to zero, along d and along k: series with their measured slopes."""

import math
from collections.abc import Sequence

import numpy as np

from canaryproof.proofs_check import consistency
from canaryproof.verify.audit.estimators.moments import Moments
from canaryproof.verify.papers.convergence import law
from canaryproof.verify.papers.convergence.errors import POINT_ESTIMATES, limit_constant
from canaryproof.verify.papers.convergence.series import curve
from canaryproof.verify.papers.records.evidence import Series

# A ladder of dimensions has six steps of a factor of ten, one of them the user's.
_STEPS = 6
# Beyond 1e9 dimensions far tails take seconds to enclose.
_LEAST, _MOST = 100, 10**9
# Share of the release's length that canaries may have where the displacement is still of first order.
_SMALL = 0.03


def dims_about(dim: int) -> tuple[int, ...]:
    """Return six dimensions of at least 100, each ten times the last, three of them below the given one if possible."""
    first = dim
    while first < _LEAST:
        first *= 10
    for _ in range(3):
        first = first // 10 if first >= 10 * _LEAST else first
    while first * 10 ** (_STEPS - 1) > _MOST:
        first //= 10
    return tuple(first * 10**i for i in range(_STEPS))


def counts_about(count: int) -> tuple[int, ...]:
    """Return up to six numbers of canaries, each about twice the last, two of them above the given one."""
    return tuple(sorted({max(2, round(count * 2.0**i)) for i in range(-3, 3)}))


def normal_law(dims: Sequence[int]) -> list[Series]:
    """Return the distances of a null cosine from normal along d (Theorem 3.2)."""
    found_distances = [law.distances(dim) for dim in dims]
    return [
        curve(
            f"{name} distance from normal",
            "d",
            quantity,
            dims,
            -1.0,
            exact=[sum(getattr(each, key)) / 2.0 for each in found_distances],
            bound=[getattr(each, f"{key}_bound") for each in found_distances],
            bound_label="proven for all d",
            slope_of="exact",
        )
        for name, key, quantity in (
            ("Total variation", "total_variation", "½ ∫ |f − φ|"),
            ("Kolmogorov", "kolmogorov", "sup |F − Φ|"),
        )
    ]


def tail(dims: Sequence[int], epsilon: float, noise_multiplier: float) -> list[Series]:
    """Return the relative error of the normal tail that decides δ, along d; nothing where it is too far out."""
    score = law.threshold(noise_multiplier, epsilon)
    errors = [law.tail_error(score, dim) for dim in dims if dim > 100.0 * score**2]
    sizes = [abs(sum(each)) / 2.0 for each in errors if each is not None]
    if len(sizes) < 3 or not min(sizes) > 0.0:
        return []
    return [
        curve(
            f"Normal tail beyond {score:.3g} deviations, ε = {epsilon:g}",
            "d",
            "relative error",
            dims[-len(sizes) :],
            -1.0,
            exact=sizes,
            slope_of="exact",
        )
    ]


def _has_order(exact: Sequence[float], errors: Sequence[float]) -> bool:
    """Whether a slope can be fitted: chance does not hide three of the points."""
    return sum(value > 3.0 * error for value, error in zip(exact, errors, strict=True)) >= 3


def displacement(
    count: int, epsilon: float, noise_multiplier: float, runs: int, key: np.random.SeedSequence
) -> list[Series]:
    """Return how far the mean of √d·μ̂ is from 1/σ along d, at one k (Theorem 3.3, k = o(d)).

    The dimensions are those where canaries are a small part of the release's length; nothing where chance hides it.
    """
    first = max(2, math.ceil(count / (_SMALL * noise_multiplier**2)))
    dims = [first * 2**i for i in range(_STEPS) if first * 2**i <= _MOST]
    shifts = [
        _shift(runs, count, each, noise_multiplier, part) for each, part in zip(dims, key.spawn(len(dims)), strict=True)
    ]
    leading = [-consistency.shift(each, count, noise_multiplier) for each in dims]
    if not _has_order(leading, [error for _, error in shifts]):
        return []
    return [
        curve(
            f"Mean of √d·μ̂, k = {count:,}, ε = {epsilon:g}",
            "d",
            "1/σ − E √d·μ̂",
            dims,
            -1.0,
            exact=leading,
            exact_label="leading term",
            simulated=[value for value, _ in shifts],
            standard_error=[error for _, error in shifts],
        )
    ]


def _shift(runs: int, count: int, dim: int, sigma: float, key: np.random.SeedSequence) -> tuple[float, float]:
    """Estimate 1/σ − E B/√A, with its standard error; as E B = 1, B/σ is taken off, and with it nearly all chance."""
    drawn = law.releases(runs, count, dim, sigma, key)
    values = drawn["B"] * (1.0 / sigma - 1.0 / np.sqrt(drawn["A"]))
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(runs)


def estimate(
    name: str, delta: float, epsilon: float, noise_multiplier: float, dim: int, moments: Sequence[Moments]
) -> list[Series]:
    """Return the root mean square errors of ε̂ and of d·σ̂² along k (Theorem 3.3), from the moments of runs at each k."""
    counts = [each.count for each in moments]
    rows = []
    slope = consistency.slopes(delta, 1.0 / noise_multiplier).mean
    constant = limit_constant(name, delta, noise_multiplier)
    for title, quantity, values, leading in (
        (
            f"Error of {name}, d = {dim:,}, ε = {epsilon:g}",
            "root mean square of ε̂ − ε",
            [POINT_ESTIMATES[name](each, delta) - epsilon for each in moments],
            [
                math.hypot(constant / math.sqrt(count), slope * consistency.shift(dim, count, noise_multiplier))
                for count in counts
            ],
        ),
        (
            f"Error of √d·μ̂, d = {dim:,}, ε = {epsilon:g}",
            "root mean square of √d·μ̂ − 1/σ",
            [each.distance - 1.0 / noise_multiplier for each in moments],
            [math.hypot(1.0 / math.sqrt(count), consistency.shift(dim, count, noise_multiplier)) for count in counts],
        ),
        (
            f"Error of d·σ̂², d = {dim:,}, ε = {epsilon:g}",
            "root mean square of d·σ̂² − 1",
            [each.ratio**2 - 1.0 for each in moments],
            [math.sqrt(2.0 / count) for count in counts],
        ),
    ):
        roots = [math.sqrt(float((each**2).mean())) for each in values]
        errors = [
            float((each**2).std(ddof=1)) / math.sqrt(each.size) / (2.0 * root)
            for each, root in zip(values, roots, strict=True)
        ]
        if not _has_order(leading, errors):
            continue
        rows.append(
            curve(
                title,
                "k",
                quantity,
                counts,
                -0.5,
                exact=leading,
                exact_label="leading term",
                simulated=roots,
                standard_error=errors,
            )
        )
    return rows
