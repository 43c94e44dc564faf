"""Suite ``orthonormal``: orthonormal canaries, the law of their scores, and what they do for estimates and bounds."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels._canary_stream import fill_signs
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.canaries import noise
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.kernels.reference import orthonormal_canaries as reference
from canaryproof.proofs_check import consistency, orthonormal_canaries
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS, AtlasClaim, Mechanism
from canaryproof.verify.audit.blindspots.ranges import ALPHA, Range, alarm_probability, by_estimate, ranges
from canaryproof.verify.audit.bounds.catalogue import MEASURED as METHODS
from canaryproof.verify.audit.bounds.lower_bound import (
    GAUSSIAN_CURVE,
    Coverage,
    Method,
    ScoreSample,
    normal_null,
    prepare,
)
from canaryproof.verify.audit.estimators import epsilon_estimators, simulation
from canaryproof.verify.audit.estimators.moments import Moments, from_two_groups
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.audit.levels import EPSILON, LEVEL, PART_LEVEL, POWER
from canaryproof.verify.papers.check.p_values import mean_p_value, share_above
from canaryproof.verify.papers.check.power import visible_distance, visible_mean, visible_share, visible_spread
from canaryproof.verify.papers.check.results import Check, Context, Design, Outcome, Subject, Verdict
from canaryproof.verify.papers.convergence.law import orthonormal_deviation
from canaryproof.verify.papers.convergence.series import curve
from canaryproof.verify.papers.records.evidence import CoverageRow, Series
from canaryproof.verify.papers.suites import bounds
from canaryproof.verify.papers.suites.bounds import AuditCell, ScoredMechanism

DELTA = 1e-6
# The largest error that the kernel states of a score, in units of 2⁻⁵³ times ‖v‖/√d and a layer.
_ONE_SCORE = 20.0


def _seeds(context: Context, purpose: str, count: int) -> list[int]:
    """Seeds of runs: of canaries and noise."""
    drawn: list[int] = context.key(f"orthonormal/{purpose}").generate_state(count, np.uint64).tolist()
    return drawn


def _held(holds: bool, finding: str, evidence: dict[str, Any], design: Design | None = None) -> Outcome:
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, evidence, design)


_UNIT = 2.0**-53


def _split(dim: int) -> tuple[int, int]:
    """Return the largest power of two up to d, and what is left."""
    order = 2 ** (dim.bit_length() - 1)
    return order, dim - order


def _walsh(vector: NDArray[Any]) -> NDArray[Any]:
    """Multiply by the Walsh–Hadamard matrix, level by level."""
    transformed, step = vector, 1
    while step < len(vector):
        pairs = transformed.reshape(-1, 2, step)
        transformed = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
        step *= 2
    return np.asarray(transformed / np.sqrt(vector.dtype.type(len(vector))))


def _extended(vector: Array, seed: int, layers: int) -> NDArray[Any]:
    """Multiply by the matrix of canaries in extended precision, in numpy."""
    (order, rest), extended = _split(len(vector)), vector.astype(np.longdouble)
    starts = [rest, 0] * layers + [0] if rest else [0] * layers
    for window, start in enumerate(starts):
        if rest and window == 2 * layers:
            cosine, sine = np.sqrt(np.longdouble(rest) / len(vector)), np.sqrt(np.longdouble(order) / len(vector))
            a, b = extended[:rest].copy(), extended[order:].copy()
            extended[:rest], extended[order:] = cosine * a - sine * b, sine * a + cosine * b
        words = np.empty(-(-order // 32), np.uint32)
        fill_signs(np.uint64(seed), np.uint64(window), words)
        bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")[:order]
        extended[start : start + order] = _walsh(extended[start : start + order] * (1.0 - 2.0 * bits))
    return extended


def _proven_error(dim: int, layers: int) -> float:
    """Bound of the norm of all scores' errors, for a vector of norm 1: formula (1) of the proof."""
    order, rest = _split(dim)
    levels = order.bit_length() - 1
    levels += 2 * (levels % 2)
    return 1.01 * _UNIT * ((2 * layers + 1) * levels + 5 if rest else layers * levels)


def _canaries(context: Context) -> Outcome:
    """Compare canaries with their twin, their angles with zero, and scores with extended precision."""
    twin = angle = share = 0.0
    seeds = iter(_seeds(context, "canaries", 100))
    for dim, layers in ((2, 1), (5, 2), (31, 3), (64, 2)):
        seed = next(seeds)
        rows = reference.rows(seed, dim, dim)
        made = OrthonormalCanaries(seed, dim, dim, layers)
        with mpmath.workdps(30):
            for j in (0, dim - 1):
                exact = np.array(reference.vector(seed, dim, layers, rows[j]), dtype=np.float64)
                twin = max(twin, float(np.abs(made.sum([j]) - exact).max()))
    for dim in (3, 97, 400, context.pick(600, 2000)):
        every = OrthonormalCanaries(next(seeds), dim, dim)
        vectors = np.array([every.sum([j]) for j in range(dim)])
        angle = max(angle, float(np.abs(vectors @ vectors.T - np.eye(dim)).max()))
    for dim in (97, 4096, 65_537, context.pick(2**17, 2**20)):
        seed = next(seeds)
        some = OrthonormalCanaries(seed, dim, dim)
        for vector in (noise(some.seed, dim).astype(np.float64), np.eye(1, dim)[0]):
            errors = (some.scores(vector) - _extended(vector, seed, some.layers)[some._rows]) / np.linalg.norm(vector)
            proven = float(np.linalg.norm(errors)) / _proven_error(dim, some.layers)
            share = max(
                share, proven, float(np.abs(errors).max()) * math.sqrt(dim) / (_ONE_SCORE * some.layers * _UNIT)
            )
    finding = (
        f"coordinates within {twin:.1e} of the twin's, angles within {angle:.1e} of orthonormal, scores within "
        f"{share:.2g} of the stated error"
    )
    evidence = {"twin": twin, "angle": angle, "share_of_stated_error": share}
    return _held(twin <= 1e-14 and angle <= 1e-13 and share <= 1.0, finding, evidence)


def residuals(seed: int, dim: int, sigma: float, layers: int = 2) -> Array:
    """Scores of all d canaries in Gaussian noise, half of them included, less their means and over σ."""
    canaries = OrthonormalCanaries(seed, dim, dim, layers)
    included = np.arange(dim) < dim // 2
    released = canaries.sum(np.flatnonzero(included)) + sigma * noise(seed, dim).astype(np.float64)
    return np.asarray((canaries.scores(released) - included) / sigma)


def _beside_noise(context: Context) -> Outcome:
    """Test that all scores of a run are independent normal numbers: each, their sum, and their neighbours' products."""
    dims = (2, 3, 10, 100, 1000, 10_000, context.pick(100_000, 10**6))
    p_values: dict[str, float] = {}
    drawn = 0
    for dim in dims:
        runs = max(3, min(context.pick(200, 2000, 50), context.pick(200_000, 4_000_000, 50_000) // dim))
        seeds = _seeds(context, f"noise/{dim}", runs)
        z = np.array([residuals(seed, dim, 2.5) for seed in seeds])
        drawn += z.size
        p_values[f"normal, d = {dim:,}"] = float(stats.kstest(z.ravel(), "norm").pvalue)
        p_values[f"sum, d = {dim:,}"] = float(stats.kstest(z.sum(axis=1) / math.sqrt(dim), "norm").pvalue)
        p_values[f"neighbours, d = {dim:,}"] = mean_p_value((z[:, 1:] * z[:, :-1]).ravel(), 0.0)
        p_values[f"squares, d = {dim:,}"] = float(
            2.0 * min(stats.chi2.cdf(q := (z**2).sum(), z.size), stats.chi2.sf(q, z.size))
        )
    label, smallest = min(p_values.items(), key=lambda item: item[1])
    level = PART_LEVEL / len(p_values)
    finding = f"smallest of {len(p_values)} p-values {smallest:.2g} ({label}); {drawn:,} scores"
    design = Design(
        "with Gaussian noise the scores of orthonormal canaries are independent normal numbers",
        LEVEL,
        f"the law of scores is off by {visible_distance(400, level):.2g} at d = 2, "
        f"by {visible_distance(100_000, level):.2g} from d = 1,000 on",
        POWER,
        drawn,
    )
    return _held(smallest >= level, finding, {"level": PART_LEVEL, "p_values": p_values, "scores": drawn}, design)


def _worst_data(dim: int) -> dict[str, Array]:
    """Make unit vectors that fixed transforms do least to: along axes, flat, and along a row of the transform."""
    order, rest = _split(dim)
    row, flat = np.zeros(dim), np.full(dim, 1.0 / math.sqrt(dim))
    row[rest:] = _walsh(np.eye(1, order, order // 3)[0])
    # Half of all Walsh functions are equal on two axes at this distance, the others opposite.
    pair = (np.eye(1, dim)[0] + np.eye(1, dim, order // 2)[0]) / math.sqrt(2.0)
    return {"an axis": np.eye(1, dim, dim - 1)[0], "two axes": pair, "a flat vector": flat, "a row of H": row}


def _beside_data(context: Context) -> Outcome:
    dim, power, taken, runs = 3000, 4096, 64, context.pick(300, 4000, 75)
    p_values: dict[str, float] = {}
    fourths: dict[str, float] = {}
    for label, vector in _worst_data(dim).items():
        seeds = _seeds(context, f"data/{label}", runs)
        # Rows of a seed are nearly independent if they are so few.
        scores = math.sqrt(dim) * np.array([OrthonormalCanaries(seed, taken, dim).scores(vector) for seed in seeds])
        p_values[f"normal, {label}"] = float(stats.kstest(scores.ravel(), "norm").pvalue)
        p_values[f"variance, {label}"] = mean_p_value(scores.ravel() ** 2, 1.0)
    for label, vector in _worst_data(power).items():
        fourth = float((vector**4).sum())
        for layers, exact in ((1, 3.0 - 2.0 * fourth), (2, 3.0 - (6.0 - 4.0 * fourth) / power)):
            seeds = _seeds(context, f"data/{label}/{layers}", runs)
            powers = power * np.array([OrthonormalCanaries(s, taken, power, layers).scores(vector) for s in seeds]) ** 2
            # A seed's scores share their signs: one mean a seed. On an axis scores of one layer have one size.
            means = (powers**2).mean(axis=1)
            if np.ptp(powers) < 1e-9:
                p_values[f"one size, {label}, {layers} layers"] = float(np.allclose(means, exact))
            else:
                p_values[f"fourth moment, {layers} layers, {label}"] = mean_p_value(means, exact)
            if layers == 1:
                fourths[label] = float(means.mean())
    name, smallest = min(p_values.items(), key=lambda item: item[1])
    level = PART_LEVEL / len(p_values)
    finding = (
        f"smallest of {len(p_values)} p-values {smallest:.2g} ({name}); fourth moments with one layer "
        f"{', '.join(f'{value:.3g} for {label}' for label, value in fourths.items())}"
    )
    visible = visible_distance(runs * taken, level)
    design = Design(
        "scores of two layers against fixed data are as normal as their draws can tell, and one layer has its moment",
        LEVEL,
        f"the law of scores is {visible:.2g} away from normal",
        POWER,
        runs * taken,
    )
    evidence = {"dim": dim, "runs": runs, "level": PART_LEVEL, "p_values": p_values, "fourth_moments": fourths}
    return _held(smallest >= level, finding, evidence, design)


def _exchangeable(context: Context) -> Outcome:
    """Test that labels mean nothing where the mechanism ignores who took part, at a small d and heavy data."""
    dim, count, runs = 40, 20, context.pick(2000, 40_000, 500)
    p_values = {}
    for label, vector in _worst_data(dim).items():
        seeds = _seeds(context, f"labels/{label}", runs)
        scores = np.array([OrthonormalCanaries(seed, count, dim).scores(vector) for seed in seeds])
        ranks = stats.rankdata(np.round(scores, 12), axis=1)[:, : count // 2].sum(axis=1)
        p_values[f"ranks of the first half, {label}"] = mean_p_value(ranks, 0.25 * count * (count + 1))
    # Along the first axes, squares of one layer are 1/d in the last rows and of any size in the others: only the order
    # of rows hides it.
    seeds, axes = _seeds(context, "labels/one layer", runs), np.eye(4, dim)
    squares = np.array([OrthonormalCanaries(seed, dim, dim, 1).scores(axes[seed % 4]) for seed in seeds]) ** 2
    ranks = stats.rankdata(np.round(squares, 12), axis=1)[:, : dim // 2].sum(axis=1)
    p_values["ranks of squares, one layer, first axes"] = mean_p_value(ranks, 0.25 * dim * (dim + 1))
    name, smallest = min(p_values.items(), key=lambda item: item[1])
    level = PART_LEVEL / len(p_values)
    design = Design(
        "which canaries are called observed says nothing of a release that does not depend on it",
        LEVEL,
        f"a mean rank is off by {visible_mean(runs, level):.2g} of its deviations",
        POWER,
        runs,
    )
    finding = f"smallest of {len(p_values)} p-values {smallest:.2g} ({name}), at d = {dim}"
    return _held(smallest >= level, finding, {"level": PART_LEVEL, "p_values": p_values, "runs": runs}, design)


def moments_of(seed: int, dim: int, observed: int, sigma: float, unobserved: int | None = None) -> Moments:
    """Moments of one run of Algorithm 1 with orthonormal canaries, its noise drawn by the stream; no data."""
    others = dim - observed if unobserved is None else unobserved
    canaries = OrthonormalCanaries(seed, observed + others, dim)
    released = canaries.sum(np.arange(observed)) + sigma * noise(seed, dim).astype(np.float64)
    scores = canaries.scores(released)
    return from_two_groups(scores[:observed], scores[observed:])


def _estimates(context: Context) -> Outcome:
    dim, runs = context.pick(2**14, 2**17), 40
    rows: list[dict[str, float]] = []
    p_values = []
    for epsilon in (1.0, 3.0, 10.0):
        sigma = float(gaussian_mechanism.noise_multiplier(epsilon, DELTA))
        for observed in (dim // 32, dim // 2):
            seeds = _seeds(context, f"estimates/{epsilon}/{observed}", runs)
            moments = (moments_of(seed, dim, observed, sigma) for seed in seeds)
            distances = np.array([float(epsilon_estimators.pinned_distance(sample)) for sample in moments])
            epsilons = epsilon_estimators.pinned_epsilon(DELTA, distances)
            z = (distances - 1.0 / sigma) / orthonormal_deviation(dim, observed, 1.0 / sigma)
            # Exactly normal but for the pooled deviation, whose law is as good as normal at these numbers.
            p_values += [
                2.0 * float(stats.norm.sf(abs(z.sum()) / math.sqrt(runs))),
                float(2.0 * min(stats.chi2.cdf(q := (z**2).sum(), runs), stats.chi2.sf(q, runs))),
            ]
            rows.append(
                {
                    "epsilon": epsilon,
                    "observed": observed,
                    "mean": float(epsilons.mean()),
                    "deviation": float(epsilons.std(ddof=1)),
                }
            )
    smallest, level = min(p_values), PART_LEVEL / len(p_values)
    last = [row for row in rows if row["observed"] == dim // 2]
    finding = f"smallest of {len(p_values)} p-values {smallest:.2g}; " + ", ".join(
        f"ε̂ = {row['mean']:.3f} ± {row['deviation']:.3f} for {row['epsilon']:g}" for row in last
    )
    design = Design(
        "the estimate from one run is unbiased to leading order, and its deviation is that of the proof",
        LEVEL,
        f"the distance is off by {visible_mean(runs, level):.2g} of its deviations",
        POWER,
        runs,
    )
    evidence = {"dim": dim, "delta": DELTA, "runs": runs, "level": PART_LEVEL, "p_values": p_values, "rows": rows}
    return _held(smallest >= level, f"{finding} (d = {dim:,}, k = d/2)", evidence, design)


def _root_mean_square(errors: Array) -> tuple[float, float]:
    squares = errors**2
    root = math.sqrt(float(squares.mean()))
    return root, float(squares.std(ddof=1)) / math.sqrt(len(squares)) / (2.0 * root)


_EPSILON = 10.0
# Draws of independent directions cost k².
_MOST_DEPENDENT = 15_000


def _distances(seed: int, dim: int, counts: Sequence[int], sigma: float) -> list[float]:
    """Distances that ``pinned`` goes by where so many canaries were in the release, all with the noise of one run.

    A canary adds 1 to its own score and 0 to all others, so that one transform serves every number of them.
    """
    noise_alone, distances = residuals(seed, dim, sigma), []
    for count in counts:
        seen, unseen = noise_alone[:count] + 1.0 / sigma, noise_alone[count:]
        deviation = unseen.std()
        distance = np.asarray((seen.mean() - unseen.mean()) / deviation)
        moments = Moments(distance, np.asarray(seen.std() / deviation), count, float(dim - count))
        distances.append(float(epsilon_estimators.pinned_distance(moments)))
    return distances


def _orthonormal_errors(context: Context, dim: int, sigma: float, runs: int) -> tuple[Series, list[float]]:
    """Errors of ε̂ up to k = d/2, all others unobserved, with p-values of the distance's deviation."""
    counts = [int(dim ** (step / 8)) for step in range(2, 8)] + [dim // 2]
    slope = consistency.slopes(DELTA, 1.0 / sigma).mean
    found_distances = np.array(
        [_distances(seed, dim, counts, sigma) for seed in _seeds(context, f"convergence/{dim}", runs)]
    )
    errors, expected, p_values = [], [], []
    for count, distances in zip(counts, found_distances.T, strict=True):
        errors.append(_root_mean_square(epsilon_estimators.pinned_epsilon(DELTA, distances) - _EPSILON))
        deviation = orthonormal_deviation(dim, count, 1.0 / sigma)
        expected.append(slope * deviation)
        squares = float((((distances - 1.0 / sigma) / deviation) ** 2).sum())
        # The variance has terms of the next order, 1/k; three times that is allowed.
        allowed = 3.0 / count
        tails = stats.chi2.cdf(squares / (1.0 - allowed), runs), stats.chi2.sf(squares / (1.0 + allowed), runs)
        p_values.append(2.0 * float(min(tails)))
    series = curve(
        f"Orthonormal canaries: root mean square error of pinned, d = {dim:,}, ε = {_EPSILON:g}",
        "k",
        "error of ε̂",
        counts,
        -0.5,
        exact=expected,
        exact_label="leading term",
        simulated=[value for value, _ in errors],
        standard_error=[error for _, error in errors],
        slope_of="exact",
        fitted_to=(0, dim / 10),
        note="All d − k other canaries are unobserved.",
    )
    return series, p_values


def _independent_errors(context: Context, dim: int, sigma: float, runs: int) -> Series:
    """Errors of ε̂ with canaries in independent directions, up to three times the best number of them."""
    best = consistency.best_count(dim, sigma)
    counts = [int(3.0 * best * 2.0**-halving) for halving in range(6, -1, -1)]
    counts = [count for count in counts if count <= _MOST_DEPENDENT]
    slope = consistency.slopes(DELTA, 1.0 / sigma).mean
    errors = []
    for count in counts:
        drawn = simulation.simulate(runs, count, dim, sigma, context.key(f"orthonormal/independent/{dim}/{count}"))
        errors.append(_root_mean_square(epsilon_estimators.pinned_epsilon(DELTA, drawn.distance) - _EPSILON))
    return curve(
        f"Independent directions: root mean square error of pinned, d = {dim:,}, ε = {_EPSILON:g}",
        "k",
        "error of ε̂",
        counts,
        -0.5,
        exact=[slope * math.hypot(1.0 / math.sqrt(k), consistency.shift(dim, k, sigma)) for k in counts],
        exact_label="leading term",
        simulated=[value for value, _ in errors],
        standard_error=[error for _, error in errors],
        slope_of="exact",
        fitted_to=(0, best / 3.0),
        note=f"Against the closed-form null N(0, 1/d), as in Algorithm 1. The error is least at k = {best:,.0f} or so.",
    )


def _convergence(context: Context) -> Outcome:
    """Compare errors of ε̂ along k: orthonormal canaries, and independent directions."""
    sigma = float(gaussian_mechanism.noise_multiplier(_EPSILON, DELTA))
    rows: list[Series] = []
    p_values: list[float] = []
    gains, fewest = [], context.pick(60, 1000, 20)
    for dim, runs in ((10**4, fewest), (10**5, 100), (10**6, 40), (10**7, 12))[: context.pick(1, 4)]:
        orthonormal, several = _orthonormal_errors(context, dim, sigma, runs)
        independent = _independent_errors(context, dim, sigma, runs)
        rows += [orthonormal, independent]
        p_values += several
        assert independent.exact is not None
        assert orthonormal.exact is not None
        gains.append(f"{min(independent.exact) / orthonormal.exact[-1]:.1f} at d = {dim:,}")
        fewest = min(fewest, runs)
    smallest, level = min(p_values), PART_LEVEL / len(p_values)
    finding = (
        f"smallest of {len(p_values)} p-values {smallest:.2g}; the least error of independent directions over that "
        f"with k = d/2, by leading terms: {', '.join(gains)}"
    )
    design = Design(
        "errors of ε̂ fall as 1/√k up to k = d/2, each number of canaries beside the noise of the same runs",
        LEVEL,
        f"the deviation of ε̂ is {visible_spread(fewest, level):.2g} times what it should be",
        POWER,
        fewest,
    )
    evidence = {"delta": DELTA, "level": PART_LEVEL, "p_values": p_values, "convergence": list(map(to_document, rows))}
    return _held(smallest >= level, finding, evidence, design)


def _bounds(context: Context) -> Outcome:
    """Count how often proven bounds from one run lie above ε, against unobserved scores and the exact null."""
    dim, observed, audits, confidence = 4000, 2000, context.pick(60, 600, 20), 0.95
    rows: list[dict[str, Any]] = []
    for epsilon in (1.0, 3.0, 10.0):
        sigma = float(gaussian_mechanism.noise_multiplier(epsilon, DELTA))
        seeds = _seeds(context, f"bounds/{epsilon}", audits)
        z = np.array([residuals(seed, dim, sigma) for seed in seeds])
        seen = z[:, :observed] + 1.0 / sigma
        for null, sample in (
            ("exact", prepare(seen, None, normal_null(), independent=True)),
            ("unobserved", prepare(seen, z[:, observed:], None, independent=True)),
        ):
            for method in _proven(sample):
                values, _ = method.values(sample, DELTA, 1.0 - confidence)
                above, mean = int((values > epsilon).sum()), float(values.mean())
                rows.append({"epsilon": epsilon, "null": null, "method": method.name, "above": above, "mean": mean})
    p_values = [share_above(row["above"], audits, 1.0 - confidence) for row in rows]
    smallest, level = min(p_values), LEVEL / len(p_values)
    sharpest = [max((r for r in rows if r["epsilon"] == e), key=lambda r: r["mean"]) for e in (1.0, 3.0, 10.0)]
    listed = ", ".join(f"{row['mean']:.3g} for ε = {row['epsilon']:g} ({row['method']})" for row in sharpest)
    finding = (
        f"at most {max(row['above'] for row in rows)} of {audits} audits above ε in {len(rows)} cells; largest mean "
        f"bounds {listed}, at d = {dim:,} and k = d/2"
    )
    design = Design(
        f"bounds from one run lie above ε in at most {1.0 - confidence:.0%} of runs",
        LEVEL,
        f"they do in {visible_share(audits, 1.0 - confidence, len(p_values)):.0%}",
        POWER,
        audits,
    )
    evidence = {"dim": dim, "observed": observed, "delta": DELTA, "audits": audits, "p_values": p_values, "rows": rows}
    return _held(smallest >= level, finding, evidence, design)


def _proven(sample: ScoreSample) -> list[Method]:
    """Return the bounds whose coverage is proven for such scores, none as printed and no posterior interval."""
    return [
        method
        for method in METHODS.values()
        if not method.printed
        and method.upper is None
        and method.can_use(sample)
        and method.coverage(sample) is Coverage.PROVEN
    ]


# ε that suite ``bounds`` has too, and canaries of an audit.
_COVERED, _COUNT = (0.5, 1.0, 3.0), 1000
# Decimals to which scores of a discrete mechanism are rounded: transforms err by some 1e-15.
_DECIMALS = 9


def _scored(mechanism: ScoredMechanism, seed: int, included: NDArray[np.bool_], data: Array | None = None) -> Array:
    """Score a release that has, along each direction of the canaries' basis, the mechanism's output, in or out."""
    canaries = OrthonormalCanaries(seed, len(included), len(included))
    rng, shape = np.random.default_rng(seed), included.shape
    released = canaries.sum(weights=np.where(included, mechanism.draw(rng, shape), mechanism.draw_null(rng, shape)))
    if data is not None:
        return canaries.scores(released + data)
    scores = canaries.scores(released)
    return scores if mechanism.null.atoms is None else np.round(scores, _DECIMALS)


def _cells(context: Context, mechanism: ScoredMechanism, runs: int) -> Iterator[AuditCell]:
    """Audit one-run releases: by the mechanism's null, by unobserved directions, and by coins with data."""
    purpose = f"coverage/{mechanism.name}/{mechanism.nominal}"
    fixed = np.arange(4 * _COUNT) < _COUNT
    scores = np.array([_scored(mechanism, seed, fixed) for seed in _seeds(context, purpose, runs)])
    coins, axis = [], 100.0 * np.eye(1, 2 * _COUNT)[0]
    for seed in _seeds(context, f"{purpose}/coin", runs):
        included = np.random.default_rng([seed, 1]).random(2 * _COUNT) < 0.5
        scored = _scored(mechanism, seed, included, axis)
        coins.append(prepare(scored[np.newaxis, included], scored[np.newaxis, ~included], inclusion="coin"))
    kinds = {
        "exact": (prepare(scores[:, :_COUNT], null=mechanism.null, independent=True),),
        "unobserved": (prepare(scores[:, :_COUNT], scores[:, _COUNT:], independent=True),),
        "coin": tuple(coins),
    }
    truth = {delta: mechanism.epsilon(delta) for delta in bounds.DELTAS[context.level]}
    for null, audits in kinds.items():
        where = {"mechanism": mechanism.name, "epsilon": mechanism.nominal, "count": _COUNT, "null": null}
        yield AuditCell(where, truth, audits)


def _coverage(context: Context) -> Outcome:
    """Count how often proven bounds lie above ε, one run an audit, on the mechanisms of suite ``bounds``."""
    runs, alpha = context.pick(20, 400, 12), bounds.ALPHA
    rows: list[CoverageRow] = []
    for family in bounds.FAMILIES:
        for epsilon in _COVERED:
            for cell in _cells(context, family(epsilon), runs):
                for method in _proven(cell.audits[0]):
                    if family is bounds.gaussian or GAUSSIAN_CURVE not in method.assumptions:
                        rows += [replace(row, method=method.name) for row in bounds.measure(method, [cell], alpha)]
    tails = bounds.p_values(rows, alpha)
    smallest, level = min(tails), LEVEL / len(tails)
    worst = max(rows, key=lambda row: row.rate)
    finding = (
        f"{sum(tail < level for tail in tails)} of {len(rows)} cells are significantly above {alpha:.0%}; at most "
        f"{worst.rate:.0%} of {runs} audits ({worst.method}, {bounds.label(worst)})"
    )
    design = Design(
        f"proven bounds from one run lie above ε in at most {alpha:.0%} of runs",
        LEVEL,
        f"in one cell they do in {visible_share(runs, alpha, len(tails), 2.0 * level):.0%}",
        POWER,
        runs,
    )
    return _held(smallest >= level, finding, {"level": LEVEL, "cells": list(map(to_document, rows))}, design)


# Canaries that the atlas is seen with, those that alarms are counted with, and numbers of independent ones, the best of
# which is compared.
_MANY, _DRAWN = 100_000, 2**15
_NUMBERS = tuple(round(10.0 ** (half / 2)) for half in range(6, 13))


def _seen(claim: AtlasClaim, count: int, *, orthonormal: bool = False) -> dict[str, Range]:
    """Return the parameters at which faults of single releases are seen with probability 90%, by mechanism."""
    noticed, _ = ranges(claim, by_estimate(claim, count, orthonormal=orthonormal))
    return {part.mechanism: part for part in noticed if part.epsilon > claim.epsilon * (1.0 + 1e-9)}


def _alarms(context: Context, claim: AtlasClaim, name: str, value: float, runs: int) -> int:
    """Count alarms of audits by orthonormal canaries, from released vectors."""
    rng, alarms = np.random.default_rng(context.key(f"orthonormal/atlas/{name}/residuals")), 0
    residual = MECHANISMS[name].residual(value, claim, runs, rng)
    for seed, grams in zip(_seeds(context, f"atlas/{name}", runs), residual.grams, strict=True):
        canaries = OrthonormalCanaries(seed, claim.dim, claim.dim)
        parts = [rng.standard_normal(dim) for dim in residual.dims]
        released = np.concatenate(
            [math.sqrt(gram[0, 0]) / np.linalg.norm(part) * part for gram, part in zip(grams, parts, strict=True)]
        )
        scores = canaries.scores((released + canaries.sum(np.arange(_DRAWN)))[np.newaxis])
        moments = from_two_groups(scores[:, :_DRAWN], scores[:, _DRAWN:])
        alarms += int((epsilon_estimators.adaptive_low(moments, claim.delta, 1.0 - 2.0 * ALPHA) > claim.epsilon).sum())
    return alarms


def _blind_spots(context: Context) -> Outcome:
    """Compare what orthonormal canaries see of the atlas with what the best number of independent ones sees."""
    claim = AtlasClaim(float(gaussian_mechanism.noise_multiplier(EPSILON, 1e-5)), 1e-5, 10**6)
    every, missed = ranges(claim, by_estimate(claim, _MANY, orthonormal=True))
    orthonormal, independent = _seen(claim, _MANY, orthonormal=True), [_seen(claim, count) for count in _NUMBERS]
    seen: list[dict[str, Any]] = []
    for name, part in orthonormal.items():
        # Parts that independent canaries see contain each other.
        best = max((parts[name] for parts in independent if name in parts), key=lambda row: row.high - row.low)
        seen.append({"fault": name, "orthonormal": (part.low, part.high), "independent": (best.low, best.high)})
    never = sorted({part.mechanism for part in missed} - {part.mechanism for part in every})
    wider = all(
        row["orthonormal"][0] <= row["independent"][0]
        and row["independent"][1] <= row["orthonormal"][1]
        and row["orthonormal"] != row["independent"]
        for row in seen
    )
    # Where half of all directions are canaries, alarms are counted at the ends of what is seen.
    drawn, runs = AtlasClaim(claim.noise_multiplier, claim.delta, 2 * _DRAWN), context.pick(40, 200, 15)
    counted: list[dict[str, Any]] = []
    for name, part in _seen(drawn, _DRAWN, orthonormal=True).items():

        def alarm(value: float, mechanism: Mechanism = MECHANISMS[name]) -> float:
            rng = np.random.default_rng(0)
            return alarm_probability(mechanism, value, drawn, _DRAWN, rng, _DRAWN, orthonormal=True)

        value = min((part.low, part.high), key=alarm)
        counted.append(
            {
                "fault": name,
                "value": value,
                "predicted": alarm(value),
                "alarms": _alarms(context, drawn, name, value, runs),
            }
        )
    p_values = [share_above(runs - row["alarms"], runs, 1.0 - row["predicted"]) for row in counted]
    smallest, level = min(p_values), PART_LEVEL / len(p_values)
    ends = {row["fault"]: row for row in seen}
    less_noise, share = ends["less-noise"], ends["no-noise-on-a-share"]
    finding = (
        f"orthonormal canaries see {less_noise['orthonormal'][1]:.3f} of the noise and a share of "
        f"{share['orthonormal'][0]:.3f} without noise, independent ones {less_noise['independent'][1]:.3f} and "
        f"{share['independent'][0]:.3f}; neither see {len(never)} faults; alarms at the ends "
        f"{', '.join(str(row['alarms']) for row in counted)} of {runs}, with {_DRAWN:,} canaries"
    )
    design = Design(
        f"at the ends of what orthonormal canaries see, at most {1.0 - POWER:.0%} of audits raise no alarm",
        LEVEL,
        f"at one of them {visible_share(runs, 1.0 - POWER, len(p_values), 2.0 * level):.0%} raise none",
        POWER,
        runs,
    )
    evidence = {"claim": EPSILON, "count": _MANY, "drawn": _DRAWN, "seen": seen, "never": never, "counted": counted}
    return _held(wider and smallest >= level, finding, {**evidence, "p_values": p_values}, design)


def _check(topic: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:
    return Check(f"orthonormal.{topic}", Subject.IMPLEMENTATION, "kernels.orthonormal_canaries", statement, judge)


def _checks() -> Iterator[Check]:
    yield _check("canaries", "canaries are orthonormal, and those of their twin, within the stated errors", _canaries)
    yield _check(
        "scores.noise", "with Gaussian noise all d scores of a run are independent normal numbers", _beside_noise
    )
    yield _check(
        "scores.data", "against the worst fixed data scores of two layers are normal with variance 1/d", _beside_data
    )
    yield _check(
        "scores.exchangeable",
        "a release that ignores who took part cannot tell observed canaries from others",
        _exchangeable,
    )
    yield _check("estimates", "ε̂ from one run is unbiased, with the stated error, at k up to d/2", _estimates)
    yield _check("convergence", "the error of ε̂ falls as 1/√k up to k = d/2, without interference", _convergence)
    yield _check(
        "coverage", "proven bounds from one run have their stated coverage on all mechanisms of suite bounds", _coverage
    )
    yield _check(
        "blind-spots",
        f"{_MANY:,} orthonormal canaries see smaller faults of the atlas than any number of independent ones",
        _blind_spots,
    )
    yield _check("bounds", "proven bounds, from one run with Gaussian noise, have their stated coverage", _bounds)


CHECKS = (*orthonormal_canaries.LINES, *_checks())
