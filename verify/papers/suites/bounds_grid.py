"""The grid of the suite ``bounds``: how close the default bound is to the best one, for scores of many shapes.

All scores are on the scale on which the null is N(0, 1), the normal scores of the null's tail. Bounds depend on nothing
else of a null that has no atoms.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import special, stats

from canaryproof.kernels import binomial
from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arrays import Array, Ints
from canaryproof.verify.audit.bounds.catalogue import DEFAULT
from canaryproof.verify.audit.bounds.catalogue import MEASURED as METHODS
from canaryproof.verify.audit.bounds.fixed_sequence import sequence
from canaryproof.verify.audit.bounds.lower_bound import Compute, ScoreSample, normal_null, prepare
from canaryproof.verify.audit.bounds.thresholds import alarms, misses, split_counts
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.results import Check, Context, Design, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.records.evidence import GridOfShapes, ShapeBounds

Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

_ALPHA, _POWER = 0.05, 0.99
_MEANS, _DEVIATIONS = (0.5, 1.0, 2.0, 4.0), (0.5, 0.8, 1.0, 1.25, 2.0)


@dataclass(frozen=True)
class GridSize:
    """Numbers of scores and audits, and values of δ."""

    count: int
    runs: int
    deltas: tuple[float, ...]


_SIZES = {
    Effort.SMOKE: (GridSize(100, 20, (1e-5,)), GridSize(1000, 10, (1e-5,))),
    Effort.QUICK: (GridSize(100, 60, (1e-5,)), GridSize(1000, 20, (1e-5,))),
    Effort.FULL: (
        GridSize(50, 200, (1e-6, 1e-5, 1e-3)),
        GridSize(100, 100, (1e-6, 1e-5, 1e-3)),
        GridSize(1000, 30, (1e-6, 1e-5, 1e-3)),
        GridSize(10_000, 20, (1e-6, 1e-5, 1e-3)),
        GridSize(100_000, 3, (1e-5, 1e-3)),
        GridSize(1_000_000, 2, (1e-5,)),
    ),
}
# The sharper half alone has a test for every block of ε from 0 on: dear for more scores than these.
_MOST_FOR_HALVES = {Effort.SMOKE: 1000, Effort.QUICK: 1000, Effort.FULL: 10_000}
# With more observed scores the null is exact: to sort as many unobserved ones, or to draw them, takes too long.
_MOST_UNOBSERVED = 10_000
# Unobserved scores for one observed score; none with an exact null.
_RATIOS = {
    Effort.SMOKE: {"exact": 0, "k": 1},
    Effort.QUICK: {"exact": 0, "k": 1},
    Effort.FULL: {"exact": 0, "k": 1, "10 k": 10},
}
# Audits of a cell have no more scores than these.
_MOST_SCORES = 1_000_000
# A bound on rare releases depends on few scores: these shapes have so many times the audits.
_MORE_RUNS = {"released with probability 0.001": 5, "released with probability 0.01": 3}
# Bounds that take a Gaussian trade-off curve for granted. They are no rivals: of these shapes, those of deviation 1
# alone have one, and there the default is compared with them apart.
_OF_A_CURVE = ("normal-scores", "gaussian-dp", "one-run-gaussian")
_WITH_THE_CURVE = tuple(f"N({mean:g}, 1²)" for mean in _MEANS)
# Shares of the best mean that are wanted: on average over the shapes, and in each cell, where that mean is not too
# small to be of use.
_SHARE, _LEAST, _USEFUL = 0.9, 0.75, 0.1
# The default's parts, with all of α.
_PARTS = ("band", "sharper half")


def _gaussian(mean: float, deviation: float) -> Draw:
    return lambda rng, shape: mean + deviation * rng.standard_normal(shape)


def _of_tail(tail: Array) -> Array:
    return np.asarray(-special.ndtri(np.clip(tail, 1e-300, 1.0 - 1e-16)))


def _student(freedom: int, shift: float) -> Draw:
    return lambda rng, shape: _of_tail(stats.t.sf(shift + rng.standard_t(freedom, shape), freedom))


def _laplace(shift: float) -> Draw:
    return lambda rng, shape: _of_tail(stats.laplace.sf(shift + rng.laplace(size=shape)))


def _mixed(share: float, shift: float) -> Draw:
    return lambda rng, shape: rng.standard_normal(shape) + shift * (rng.random(shape) < share)


def _maximum(rounds: int, shift: float) -> Draw:
    """Return the law of the largest of so many rounds' scores, N(shift, 1) and N(0, 1)."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        largest = shift + special.ndtri(rng.random(shape) ** (1.0 / rounds))
        return _of_tail(-np.expm1(rounds * special.log_ndtr(largest)))

    return draw


SHAPES: dict[str, Draw] = {
    **{f"N({mean:g}, {deviation:g}²)": _gaussian(mean, deviation) for mean in _MEANS for deviation in _DEVIATIONS},
    "Laplace + 1": _laplace(1.0),
    "Laplace + 3": _laplace(3.0),
    "t₃ + 2": _student(3, 2.0),
    "Cauchy + 2": _student(1, 2.0),
    "Cauchy + 5": _student(1, 5.0),
    "subsampled, q = 0.1": _mixed(0.1, 2.5),
    "subsampled, q = 0.5": _mixed(0.5, 2.5),
    "released with probability 0.001": _mixed(0.001, 20.0),
    "released with probability 0.01": _mixed(0.01, 20.0),
    "maxima of 8 rounds": _maximum(8, 1.0),
    "maxima of 100 rounds": _maximum(100, 1.0),
}


# Others' bounds for unobserved scores: jax_privacy 2.0.0 (google-deepmind/jax_privacy, auditing.py).


@njit(cache=True, nogil=True)
def hull_thresholds(observed: Array, unobserved: Array) -> Ints:
    """Count observed and unobserved scores below the thresholds that span the ROC curve's concave hull.

    Both kinds of scores rise. The counts have the shape (2, thresholds).
    """
    points = np.zeros((2, len(observed) + len(unobserved) + 1), dtype=np.int64)
    i = j = size = 0
    while True:
        while size > 1 and _below(points[:, size - 2], points[:, size - 1], i, j):
            size -= 1
        points[0, size], points[1, size] = i, j
        size += 1
        if i == len(observed) and j == len(unobserved):
            return points[:, :size].copy()
        threshold = np.inf
        if i < len(observed):
            threshold = observed[i]
        if j < len(unobserved):
            threshold = min(threshold, unobserved[j])
        while i < len(observed) and observed[i] == threshold:
            i += 1
        while j < len(unobserved) and unobserved[j] == threshold:
            j += 1


@njit(cache=True, nogil=True)
def _below(first: Ints, second: Ints, i: int, j: int) -> bool:
    """Tell whether the second of three points is none of the hull's corners."""
    return bool((second[1] - first[1]) * (i - second[0]) <= (j - second[1]) * (second[0] - first[0]))


def either_tail(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return Clopper and Pearson's bound at the hull's thresholds, α divided by their number.

    It is ``epsilon_clopper_pearson(alpha, delta, one_sided=False)``. That number depends on the scores: no proof covers
    it.
    """
    assert scores.unobserved is not None
    values = []
    for seen, unseen in zip(scores.observed, scores.unobserved, strict=True):
        missed, quiet = hull_thresholds(seen, unseen)
        each = 1.0 - 0.5 * alpha / len(missed)
        fnr = binomial.upper(missed, scores.count, each)
        fpr = binomial.upper(scores.null_count - quiet, scores.null_count, each)
        with np.errstate(divide="ignore"):
            gains = [np.log(np.maximum(1.0 - delta - miss, 0.0) / other) for miss, other in ((fnr, fpr), (fpr, fnr))]
        values.append(max(0.0, float(np.max(gains))))
    return np.array(values), np.empty(0)


def split(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return Clopper and Pearson's bound from one half of the scores, at the other half's best threshold."""
    counts = split_counts(scores, delta, alpha)
    miss, alarm = (
        limits(count, delta, 0.5 * alpha)
        for limits, count in ((misses, counts.half.count), (alarms, counts.half.null_count))
    )
    hits, false = counts.hits, counts.alarms
    gains = miss.log_rest[hits] - alarm.log_rate[false], alarm.log_rest[false] - miss.log_rate[hits]
    return np.where(np.isnan(counts.thresholds), 0.0, np.maximum(np.maximum(*gains), 0.0)), counts.thresholds


def _methods(level: Effort, kind: str, count: int) -> dict[str, Compute]:
    """Return the bounds that need nothing but independent scores, and the default's sharper half with all of α.

    Its other half with all of α is ``band``. As many unobserved scores as observed ones have others' bounds too; that
    from one run takes longer.
    """
    methods = {name: METHODS[name].compute for name in (DEFAULT, "band", "bonferroni", "fixed-threshold")}
    if count <= _MOST_FOR_HALVES[level]:
        methods["sharper half"] = lambda scores, delta, alpha: (sequence(scores, delta, alpha, 0.0, 1.0), np.empty(0))
    if kind == "k":
        methods |= {"jax_privacy": either_tail, "jax_privacy, split": split}
    if kind == "k" and level is Effort.FULL and count <= _MOST_FOR_HALVES[level]:
        methods["one-run"] = METHODS["one-run"].compute
    return methods


def _samples(context: Context, size: GridSize) -> Iterator[tuple[str, str, ScoreSample]]:
    """Draw all audits of a size: null by null, as the shapes share critical values."""
    null, count = normal_null(), size.count
    for kind, ratio in _RATIOS[context.level].items():
        if ratio and count > _MOST_UNOBSERVED:
            continue
        for shape, draw in SHAPES.items():
            rng = np.random.default_rng(context.key(f"bounds/grid/{shape}/{count}"))
            runs = _MORE_RUNS.get(shape, 1) * max(min(size.runs, _MOST_SCORES // ((1 + ratio) * count)), 2)
            observed = draw(rng, (runs, count))
            unobserved = rng.standard_normal((runs, ratio * count)) if ratio else None
            yield shape, kind, prepare(observed, unobserved, None if ratio else null, independent=True)


@cache
def cells(context: Context) -> tuple[ShapeBounds, ...]:
    """Measure all cells: means by method, and the default's share of the largest, with its standard errors."""
    rows = []
    for size in _SIZES[context.level]:
        for shape, kind, scores in _samples(context, size):
            methods = _methods(context.level, kind, size.count)
            for delta in size.deltas:
                values = {name: compute(scores, delta, _ALPHA)[0] for name, compute in methods.items()}
                where = {"shape": shape, "null": kind, "count": size.count, "delta": delta}
                rows.append(_cell(where, values, _of_a_curve(shape, scores, delta)))
    return tuple(rows)


def _of_a_curve(shape: str, scores: ScoreSample, delta: float) -> dict[str, float]:
    """Return the means of bounds that need a Gaussian trade-off curve, where there is one."""
    if shape not in _WITH_THE_CURVE or scores.count > _MOST_UNOBSERVED:
        return {}
    methods = [METHODS[name] for name in _OF_A_CURVE if METHODS[name].can_use(scores)]
    return {method.name: float(method.values(scores, delta, _ALPHA)[0].mean()) for method in methods}


def _cell(where: Mapping[str, Any], values: Mapping[str, Array], of_a_curve: Mapping[str, float]) -> ShapeBounds:
    means = {name: float(value.mean()) for name, value in values.items()}
    best = max(means, key=means.__getitem__)
    own, largest = means[DEFAULT], means[best]
    # To first order, as the largest mean is an estimate too.
    parts = (values[DEFAULT] - own / largest * values[best]) / largest if largest > 0.0 else np.zeros(2)
    return ShapeBounds(
        **where,
        runs=len(values[DEFAULT]),
        means=means,
        error=float(stats.sem(values[DEFAULT])),
        share=own / largest if largest > 0.0 else 1.0,
        share_error=float(stats.sem(parts)),
        of_a_curve=of_a_curve,
    )


def label(row: ShapeBounds) -> str:
    """Name a cell."""
    null = "exact null" if row.null == "exact" else f"{row.null} unobserved"
    return f"{row.shape}, k = {row.count:,}, {null}, δ = {row.delta:g}"


def _grid(context: Context) -> Outcome:
    """Judge each cell's share, and the mean over all shapes for every number of scores, null and δ."""
    rows = [row for row in cells(context) if max(row.means.values()) >= _USEFUL]
    groups: dict[tuple[int, str, float], list[ShapeBounds]] = {}
    for row in rows:
        groups.setdefault((row.count, row.null, row.delta), []).append(row)
    level = LEVEL / (len(groups) + len(rows))
    shares = {key: float(np.mean([row.share for row in group])) for key, group in groups.items()}
    errors = {key: math.hypot(*(row.share_error for row in group)) / len(group) for key, group in groups.items()}
    wrong = [key for key in groups if shares[key] + special.ndtri(1.0 - level) * errors[key] < _SHARE]
    poor = [row for row in rows if row.share + stats.t.isf(level, row.runs - 1) * row.share_error < _LEAST]
    enough, first = sum(row.share >= _SHARE for row in rows), sum(row.share >= 1.0 for row in rows)
    least = min(rows, key=lambda row: row.share)
    visible = (special.ndtri(1.0 - level) + special.ndtri(_POWER)) * max(errors.values())
    # By how much a cell's share is less where its test sees it.
    seen = [
        float(stats.t.isf(level, row.runs - 1) + stats.t.isf(1.0 - _POWER, row.runs - 1)) * row.share_error
        for row in rows
    ]
    # Rivals that are none of its parts.
    rivals = [max(v for name, v in row.means.items() if name not in (DEFAULT, *_PARTS)) for row in rows]
    own = [row.means[DEFAULT] for row in rows]
    near = sum(mine >= _SHARE * theirs for mine, theirs in zip(own, rivals, strict=True))
    ahead = sum(mine >= theirs for mine, theirs in zip(own, rivals, strict=True))
    mean, lowest, highest = np.mean([row.share for row in rows]), min(shares.values()), max(shares.values())
    return Outcome(
        Verdict.REFUTED if wrong or poor else Verdict.CONFIRMED,
        f"at least {_SHARE:.0%} of the best in {enough} of {len(rows)} cells, the best in {first} (without its own "
        f"parts {near} and {ahead}); least {least.share:.0%} ({label(least)}); mean {mean:.0%}, {lowest:.0%} to "
        f"{highest:.0%} by size, null and δ",
        to_document(GridOfShapes(LEVEL, _ALPHA, _SHARE, _LEAST, _USEFUL, cells(context))),
        Design(
            f"all shares are {_LEAST:.0%} or more, and their means over all shapes {_SHARE:.0%}",
            LEVEL,
            f"a mean is {visible:.2g} less, or a share {np.median(seen):.2g} in half of the cells and "
            f"{np.quantile(seen, 0.95):.2g} in 95% of them",
            _POWER,
            sum(row.runs for row in rows),
        ),
    )


def _consistent(context: Context) -> Outcome:
    """Judge that no mean is significantly below that of a tenth as many scores."""
    by_place = {(row.shape, row.null, row.delta, row.count): row for row in cells(context)}
    pairs = [
        (by_place[(*key[:3], key[3] // 10)], row)
        for key, row in by_place.items()
        if (*key[:3], key[3] // 10) in by_place and row.runs > 1
    ]
    level = LEVEL / len(pairs)
    falls, wrong = [], 0
    for few, many in pairs:
        fall = few.means[DEFAULT] - many.means[DEFAULT]
        error = math.hypot(few.error, many.error)
        # As few degrees of freedom as the smaller sample has, which is at least as much as Welch's.
        wrong += bool(fall > 0.0 and fall > stats.t.isf(level, min(few.runs, many.runs) - 1) * error)
        falls.append((fall, label(many)))
    worst = max(falls)
    runs = min(many.runs for _, many in pairs)
    visible = float(stats.t.isf(level, runs - 1) + stats.t.isf(1.0 - _POWER, runs - 1))
    return Outcome(
        Verdict.REFUTED if wrong else Verdict.CONFIRMED,
        f"{wrong} of {len(pairs)} means are significantly below that of a tenth as many scores; the largest fall is "
        f"{max(worst[0], 0.0):.2g} ({worst[1]})",
        {"level": LEVEL, "pairs": len(pairs), "fall": worst[0], "where": worst[1]},
        Design("means do not fall", LEVEL, f"one falls by {visible:.2g} standard errors", _POWER, runs),
    )


def _check(name: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:
    return Check(f"bounds.{name}", Subject.IMPLEMENTATION, "verify.audit.bounds", statement, judge, shared_key="cells")


CHECKS = (
    _check(
        "grid",
        f"{DEFAULT} has at least {_LEAST:.0%} of the best mean bound from independent scores for each of {len(SHAPES)} "
        f"shapes, and at least {_SHARE:.0%} on average over them, for every number of scores, null and δ",
        _grid,
    ),
    _check(
        "consistent",
        f"the mean of {DEFAULT} does not fall with ten times as many scores, for scores of {len(SHAPES)} shapes",
        _consistent,
    ),
)
