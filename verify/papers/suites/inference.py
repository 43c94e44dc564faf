"""Inference of the estimators at sizes where a wrong divisor, quantile or pooled deviation shows."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from canaryproof.kernels import gaussian_mechanism, threshold_attack
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.certified import estimates
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import Moments, Shape, from_dimension, from_two_groups
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.check.power import visible_mean
from canaryproof.verify.papers.check.results import Check, Context, Design, Outcome, Subject, Verdict
from canaryproof.verify.papers.check.verdicts import shares_hold
from canaryproof.verify.papers.convergence.errors import ESTIMATORS, adaptive_epsilon, fitted_epsilon
from canaryproof.verify.papers.suites.estimators import DELTA
from canaryproof.verify.papers.suites.worst_case.search import error_bound, in_ulps

# Level of each check: all its tests, Bonferroni.
_DIM = 10_000
# A wrong divisor moves the middle of Student's law more than its tails.
_CONFIDENCES = (0.5, 0.9)
# Claimed of a standard error, which takes the log deviation for normal.
_SPREAD = 0.05
# Claimed of its quadrature.
_QUADRATURE = 0.02
# The pooled test takes the distance's error from its leading terms: the larger one of the normal law's and that by the
# samples' kurtosis. So intervals of normal scores are somewhat longer than they need be.
_LESS, _MORE = 0.005, 0.02


def _outcome(p_values: Mapping[str, float], runs: int, null: str) -> Outcome:
    # The share in the middle of its law is the hardest to tell apart.
    visible = 0.5 * visible_mean(runs, LEVEL / len(p_values))
    return shares_hold(p_values, runs, null, f"{visible:.1%}")


def _frequency(events: NDArray[np.bool_], probability: float, margin: float = 0.0) -> float:
    """Two-sided p-value of a probability, known to within a margin."""
    count, runs = int(events.sum()), events.size
    below = stats.binom.cdf(count, runs, max(probability - margin, 0.0))
    above = stats.binom.sf(count - 1, runs, min(probability + margin, 1.0))
    return min(1.0, 2.0 * float(min(below, above)))


def _tails(estimate: Callable[[float], epsilon_estimators.Estimate], truth: float) -> dict[str, float]:
    """p-values of the shares of runs in which each end of an interval with equal tails is on the wrong side."""
    p_values = {}
    for confidence in _CONFIDENCES:
        ends, tail = estimate(confidence), 0.5 - 0.5 * confidence
        p_values[f"low end at {confidence:g}"] = _frequency(truth < ends.low, tail)
        p_values[f"high end at {confidence:g}"] = _frequency(truth > ends.high, tail)
    return p_values


def _closed_form(context: Context) -> Outcome:
    runs, count, distance = context.pick(5000, 100_000), 3, 3.0
    rng = np.random.default_rng(context.key("inference/closed"))
    moments = from_dimension((distance + rng.standard_normal((runs, count))) / math.sqrt(_DIM), _DIM)
    truth = float(gaussian_mechanism.epsilon(DELTA, 1.0 / distance))
    p_values = _tails(lambda confidence: epsilon_estimators.pinned_estimate(moments, DELTA, confidence), truth)
    p_values["median of pinned"] = _frequency(epsilon_estimators.pinned_estimate(moments, DELTA).epsilon < truth, 0.5)
    p_values["test of variances"] = float(stats.kstest(epsilon_estimators.variance_p_value(moments), "uniform").pvalue)
    none = from_dimension(rng.standard_normal((runs, count)) / math.sqrt(_DIM), _DIM)
    p_values["pinned is 0 without canaries"] = _frequency(
        epsilon_estimators.pinned_estimate(none, 0.5).epsilon == 0.0, _no_epsilon(count)
    )
    return _outcome(p_values, runs, "intervals and the test of variances have exactly their levels")


def _no_epsilon(count: int) -> float:
    """Probability that √d·μ̂ is below the distance m at which δ(0) = 2Φ(m/2) − 1 is 1/2, without canaries."""
    return float(special.ndtr(math.sqrt(count) * 2.0 * special.ndtri(0.75)))


def _unobserved(context: Context) -> Outcome:
    runs, count, null_count, distance = context.pick(4000, 100_000), 40, 60, 3.0
    rng = np.random.default_rng(context.key("inference/unobserved"))
    centre, scale = 0.02, 0.003
    seen = centre + scale * (distance + rng.standard_normal((runs, count)))
    moments = from_two_groups(seen, centre + scale * rng.standard_normal((runs, null_count)))
    truth = float(gaussian_mechanism.epsilon(DELTA, 1.0 / distance))
    p_values = {}
    for confidence in _CONFIDENCES:
        estimate = epsilon_estimators.pinned_estimate(moments, DELTA, confidence)
        inside = (estimate.low <= truth) & (truth <= estimate.high)
        p_values[f"coverage at {confidence:g}"] = _frequency(
            inside, confidence + 0.5 * (_MORE - _LESS), 0.5 * (_MORE + _LESS)
        )
    p_values["test of variances"] = float(stats.kstest(epsilon_estimators.variance_p_value(moments), "uniform").pvalue)
    # Apart from that test's symmetry: the F statistic itself, from the two samples' sums of squares.
    ratio = moments.ratio**2 * (count / (count - 1.0)) / (null_count / (null_count - 1.0))
    p_values["ratio of variances"] = float(
        stats.kstest(special.fdtr(count - 1.0, null_count - 1.0, ratio), "uniform").pvalue
    )
    null = f"intervals cover {_LESS:.1%} less to {_MORE:.1%} more than their levels, the test of variances exactly"
    return _outcome(p_values, runs, null)


def _norm(context: Context) -> Outcome:
    runs, dim, sigma = context.pick(4000, 100_000), 20, 0.5
    rng = np.random.default_rng(context.key("inference/norm"))
    release = sigma * rng.standard_normal((runs, dim))
    truth = float(gaussian_mechanism.epsilon(DELTA, sigma))
    p_values = _tails(lambda confidence: epsilon_estimators.norm_estimate(release, DELTA, confidence), truth)
    return _outcome(p_values, runs, "intervals have exactly their levels")


def _sampled_moments(
    rng: np.random.Generator, runs: int, distance: float, ratio: float, count: int, null_count: int | None
) -> Moments:
    """Draw moments of normal scores from the laws of samples' means and variances."""
    means = distance + ratio / math.sqrt(count) * rng.standard_normal(runs)
    deviations = ratio * np.sqrt(rng.chisquare(count - 1, runs) / count)
    if null_count is None:
        return Moments(means, deviations, count)
    unit = np.sqrt(rng.chisquare(null_count - 1, runs) / null_count)
    means = (means - rng.standard_normal(runs) / math.sqrt(null_count)) / unit
    return Moments(means, deviations / unit, count, float(null_count))


def _standard_errors(context: Context) -> Outcome:
    runs, count = context.pick(3000, 50_000), 400
    distance = 1.0 / float(gaussian_mechanism.noise_multiplier(1.0, DELTA))
    rows: list[dict[str, Any]] = []
    # At 400 scores, adaptive changes its estimator at ratios of about 0.91 and 1.09.
    for null_count, ratio in itertools.product((None, 600), (1.0, 1.07, 1.5)):
        rng = np.random.default_rng(context.key(f"inference/errors/{null_count}/{ratio}"))
        moments = _sampled_moments(rng, runs, distance, ratio, count, null_count)
        # A standard error is claimed to be right if the moments are the true ones.
        truth = dataclasses.replace(moments, distance=np.asarray(distance), ratio=np.asarray(ratio))
        seen = {"fitted": fitted_epsilon(moments, DELTA), "adaptive": adaptive_epsilon(moments, DELTA)}
        if ratio == 1.0:
            seen["pinned"] = epsilon_estimators.pinned_epsilon(DELTA, epsilon_estimators.pinned_distance(moments))
        for name in ("fitted", "adaptive", "pinned"):
            if name in seen:
                claimed = float(ESTIMATORS[name](truth, DELTA).standard_error)
                # This is the error of the log deviation of so many estimates, which are not normal.
                error = 0.5 * math.sqrt((float(stats.kurtosis(seen[name], fisher=False)) - 1.0) / runs)
                row = {"claimed": claimed, "seen": float(seen[name].std(ddof=1)), "log_error": error}
                rows.append({"estimator": name, "ratio": ratio, "null_count": null_count, **row})
    reach = float(stats.norm.isf(0.5 * LEVEL / len(rows)))
    gaps = [abs(math.log(row["claimed"] / row["seen"])) for row in rows]
    holds = all(gap <= _SPREAD + reach * row["log_error"] for gap, row in zip(gaps, rows, strict=True))
    finding = f"claimed and seen differ by at most {math.expm1(max(gaps)):.1%} in {len(rows)} cases ({runs:,} runs)"
    evidence = {"runs": runs, "count": count, "margin": _SPREAD, "rows": rows}
    visible = _SPREAD + max(row["log_error"] for row in rows) * (reach + float(stats.norm.ppf(POWER)))
    design = Design(
        f"claimed and true deviations differ by at most {_SPREAD:.0%}",
        LEVEL,
        f"two differ by {math.expm1(visible):.0%}",
        POWER,
        runs,
    )
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, evidence, design)


def _limits(moments: Moments, confidence: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Joint limits of distance and ratio, each at the level √confidence, by scipy's other functions."""
    k, k0 = float(moments.count), moments.null_count
    distance, ratio = float(moments.distance), float(moments.ratio)
    tail = 0.5 * (1.0 - math.sqrt(confidence))
    # Unbiased deviations on both sides.
    unbiased = ratio * math.sqrt(k / (k - 1.0))
    if math.isfinite(k0):
        unbiased *= math.sqrt((k0 - 1.0) / k0)
        quantiles = special.fdtri(k - 1.0, k0 - 1.0, np.array([1.0 - tail, tail]))
        error = math.sqrt(ratio**2 / (k - 1.0) + 1.0 / k0 + distance**2 / (2.0 * k0))
    else:
        quantiles = special.chdtri(k - 1.0, np.array([tail, 1.0 - tail])) / (k - 1.0)
        error = ratio / math.sqrt(k - 1.0)
    low, high = (unbiased / math.sqrt(q) for q in quantiles)
    if moments.shape is not None and moments.null_shape is not None:
        # Bonett's for the log variance, two of them for a ratio; and the error of a deviation by its kurtosis.
        z = -float(special.ndtri(tail))
        correction, variance = 0.0, 0.0
        for size, shape, sign in ((k, moments.shape, 1.0), (k0, moments.null_shape, -1.0)):
            if math.isfinite(size):
                c = size / (size - z)
                correction += sign * math.log(c)
                variance += c * c * (float(shape.kurtosis) - (size - 3.0) / size) / (size - 1.0)
        ends = [unbiased * math.exp(0.5 * (correction + side * z * math.sqrt(variance))) for side in (-1.0, 1.0)]
        low, high = min(low, ends[0]), max(high, ends[1])
        skewness, kurtosis = float(moments.null_shape.skewness), float(moments.null_shape.kurtosis)
        own = 1.0 + skewness * distance + 0.25 * (kurtosis - 1.0) * distance**2
        error = max(error, math.sqrt(ratio**2 / (k - 1.0) + own / k0))
    reach = -float(special.stdtrit(min(k, k0) - 1.0, tail)) * error
    return (distance - reach, distance + reach), (float(low), float(high))


def _ranges(_: Context) -> Outcome:
    """Compare intervals with the range of ε over a fine grid of the joint rectangle."""
    worst, compared, empty = 0.0, 0, []
    heavy = (Shape(np.asarray(0.5), np.asarray(6.0)), Shape(np.asarray(-0.3), np.asarray(4.0)))
    for count, null_count, ratio, distance, (confidence, shapes) in itertools.product(
        (5, 100), (math.inf, 30.0), (0.8, 1.0, 1.3), (0.2, 1.5), ((0.6, ()), (0.95, ()), (0.95, heavy))
    ):
        moments = Moments(np.asarray(distance), np.asarray(ratio), count, null_count, *shapes)
        (left, right), (low, high) = _limits(moments, confidence)
        distances = np.append(np.linspace(left, right, 21), [0.0] if left < 0.0 < right else [])
        ratios = np.append(np.linspace(low, high, 21), [1.0] if low < 1.0 < high else [])
        for name, estimator, pair in (
            ("fitted", epsilon_estimators.fitted_estimate, epsilon_estimators.both_directions),
            ("threshold", epsilon_estimators.threshold_estimate, threshold_attack.threshold_epsilon),
        ):
            grid = pair(DELTA, np.abs(distances)[:, np.newaxis], ratios)
            estimate = estimator(moments, DELTA, confidence)
            ends = float(grid.min()), float(grid.max())
            gaps = [abs(float(x) - y) / max(y, 1e-3) for x, y in zip((estimate.low, estimate.high), ends, strict=True)]
            worst, compared = max(worst, *gaps), compared + 1
            if not float(estimate.low) <= float(estimate.epsilon) <= float(estimate.high):
                empty.append(f"{name}, k = {count}, k₀ = {null_count:g}")
    finding = f"largest relative difference {worst:.1e} of {compared} intervals"
    if empty:
        finding += f"; ε̂ outside: {empty[0]}"
    holds = worst <= 1e-9 and not empty
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, {"compared": compared, "worst": worst})


def _choices(context: Context) -> Outcome:
    """Compare adaptive with what its description says, run by run."""
    rng = np.random.default_rng(context.key("inference/choices"))
    wrong, compared = [], 0
    for null_count in (None, 80):
        moments = _sampled_moments(rng, 100, 1.0, 1.2, 100, null_count)
        k0 = moments.null_count
        if math.isfinite(k0):
            statistic = moments.ratio**2 * (100.0 / 99.0) * ((k0 - 1.0) / k0)
            below = np.asarray(special.fdtr(99.0, k0 - 1.0, statistic), dtype=np.float64)
        else:
            below = np.asarray(special.chdtr(99.0, 100.0 * moments.ratio**2), dtype=np.float64)
        equal = (below >= 0.005) & (below <= 0.995)
        adaptive, pinned, fitted = (
            estimator(moments, DELTA)
            for estimator in (
                epsilon_estimators.adaptive_estimate,
                epsilon_estimators.pinned_estimate,
                epsilon_estimators.fitted_estimate,
            )
        )
        for name in ("epsilon", "low"):
            expected = np.where(equal, getattr(pinned, name), getattr(fitted, name))
            wrong += [name] * int((getattr(adaptive, name) != expected).sum())
        wrong += ["high"] * int((adaptive.high != fitted.high).sum())
        # Heavy tails may make the test reject where limits by the scores' shape hold equal variances.
        tailed = dataclasses.replace(
            moments, shape=Shape(np.zeros_like(moments.ratio), np.full_like(moments.ratio, 9.0))
        )
        low = epsilon_estimators.adaptive_low(tailed, DELTA)
        wrong += ["low alone"] * int((low != epsilon_estimators.adaptive_estimate(tailed, DELTA).low).sum())
        compared += equal.size
    finding = f"{compared} runs, {len(wrong)} entries differ"
    return Outcome(
        Verdict.REFUTED if wrong else Verdict.CONFIRMED, finding, {"compared": compared, "wrong": len(wrong)}
    )


def _fine_error(estimate: Callable[[Moments, float], Array], moments: Moments) -> float:
    """Return the deviation of an estimate over normal laws of means and log deviations, on a fine grid of these."""
    k, k0 = moments.count, moments.null_count
    mean_steps, mean_weights = np.polynomial.hermite_e.hermegauss(5)
    # With a known null there is one deviation to integrate over. Two grids of one step would meet adaptive's jump at
    # the same places.
    steps, null_steps = np.linspace(-8.0, 8.0, 1601), np.zeros(1)
    if math.isfinite(k0):
        steps, null_steps = np.linspace(-6.0, 6.0, 71), np.linspace(-6.0, 6.0, 62)
    weights = (
        stats.norm.pdf(steps)[:, np.newaxis, np.newaxis] * stats.norm.pdf(null_steps)[:, np.newaxis] * mean_weights
    )
    weights /= weights.sum()
    deviations = moments.ratio * np.exp(math.sqrt(0.5 / (k - 1)) * steps)[:, np.newaxis, np.newaxis]
    null_deviations = np.exp(math.sqrt(0.5 / (k0 - 1)) * null_steps)[:, np.newaxis]
    distances = moments.distance + np.sqrt(moments.ratio**2 / (k - 1) + 1.0 / k0) * mean_steps
    distance, ratio = np.broadcast_arrays(distances / null_deviations, deviations / null_deviations)
    drawn = estimate(Moments(distance, ratio, k, k0), DELTA)
    mean = float((weights * drawn).sum())
    return math.sqrt(float((weights * (drawn - mean) ** 2).sum()))


def _quadratures(_: Context) -> Outcome:
    """Compare standard errors at given moments with quadratures of another kind."""
    gaps = {}
    for distance, ratio, count, null_count in (
        (0.25, 1.0, 50, math.inf),
        (2.0, 0.9, 50, math.inf),
        (0.25, 1.06, 1000, math.inf),
        (2.0, 1.5, 1000, math.inf),
        (5.0, 1.02, 1000, 1000.0),
        (5.0, 1.5, 1000, 500.0),
    ):
        moments = Moments(np.asarray(distance), np.asarray(ratio), count, null_count)
        beside = "" if math.isinf(null_count) else f", k₀ = {null_count:g}"
        for name, estimate in (("fitted", fitted_epsilon), ("adaptive", adaptive_epsilon)):
            claimed = float(ESTIMATORS[name](moments, DELTA).standard_error)
            gaps[f"{name}, distance {distance:g}, ratio {ratio:g}, k = {count}{beside}"] = abs(
                math.log(claimed / _fine_error(estimate, moments))
            )
    for dim, sigma in itertools.product((1000, 100_000), (0.5, 4.0)):
        # ‖ρ‖²/σ² is chi-square; at the median of each of as many equal shares of its law.
        squares = stats.chi2.ppf((np.arange(2000) + 0.5) / 2000.0, dim)
        epsilon = epsilon_estimators.pinned_epsilon(DELTA, math.sqrt(dim) / (sigma * np.sqrt(squares)))
        claimed = float(epsilon_estimators.norm_estimate(np.full(dim, sigma), DELTA).standard_error)
        gaps[f"norm, d = {dim}, noise {sigma:g}"] = abs(math.log(claimed / float(epsilon.std())))
    label, worst = max(gaps.items(), key=lambda item: item[1])
    finding = f"largest of {len(gaps)} relative differences {worst:.2%} ({label})"
    return Outcome(Verdict.CONFIRMED if worst <= _QUADRATURE else Verdict.REFUTED, finding, {"differences": gaps})


def _enclosed(context: Context) -> Outcome:
    """Compare the estimates with their enclosures."""
    rng = np.random.default_rng(context.key("inference/enclosures"))
    worst: dict[str, float] = {}
    for _ in range(context.pick(12, 100)):
        delta = float(10.0 ** rng.uniform(-9.0, -2.0))
        distance, ratio = float(rng.normal(0.5, 1.5)), float(np.exp(rng.normal(0.0, 0.3)))
        for name, value, enclosure, allowed in (
            (
                "pinned",
                epsilon_estimators.pinned_epsilon(delta, np.asarray(distance)),
                estimates.pinned_epsilon(delta, distance),
                64.0,
            ),
            (
                "fitted",
                epsilon_estimators.both_directions(delta, np.asarray(distance), np.asarray(ratio)),
                estimates.fitted_epsilon(delta, distance, ratio),
                64.0,
            ),
            # Claimed by ``estimators.threshold-is-exact``: 1e-12.
            (
                "threshold",
                threshold_attack.threshold_epsilon(delta, distance, ratio),
                estimates.threshold_epsilon(delta, distance, ratio),
                4096.0,
            ),
        ):
            share = in_ulps(error_bound(float(value), enclosure), enclosure, 0.01) / allowed
            worst[name] = max(worst.get(name, 0.0), share)
    label, largest = max(worst.items(), key=lambda item: item[1])
    finding = f"largest error {largest:.2g} of what is allowed ({label})"
    return Outcome(Verdict.CONFIRMED if largest <= 1.0 else Verdict.REFUTED, finding, {"shares": worst})


def _check(topic: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:
    source = "verify.audit.estimators.epsilon_estimators"
    return Check(f"estimators.inference.{topic}", Subject.IMPLEMENTATION, source, statement, judge)


CHECKS = (
    _check(
        "closed-form",
        "with 3 normal cosines and the null N(0, 1/d), each end of pinned's interval is wrong exactly as often as its "
        "confidence says, and the test of variances keeps its level",
        _closed_form,
    ),
    _check(
        "unobserved",
        "with 40 normal scores and 60 unobserved ones, pinned's interval covers as often as its confidence says: at "
        "worst half a point less often, at most two points more",
        _unobserved,
    ),
    _check(
        "norm",
        "where the release is noise alone, each end of norm's interval is wrong as often as its confidence says",
        _norm,
    ),
    _check(
        "standard-errors",
        f"at the true moments, standard errors are the deviation of many estimates, to {_SPREAD:.0%}, near adaptive's "
        "change of estimator too",
        _standard_errors,
    ),
    _check(
        "quadrature",
        f"the standard errors of fitted, adaptive and norm are those of fine quadratures, to {_QUADRATURE:.0%}",
        _quadratures,
    ),
    _check(
        "ranges",
        "the intervals of fitted and threshold are the ranges of ε over the joint limits of distance and ratio, by the "
        "normal law or the scores' kurtosis, whichever are wider",
        _ranges,
    ),
    _check(
        "choices",
        "adaptive is pinned where the variances are not told apart at level 0.01, else fitted, with the upper end of "
        "fitted in any case",
        _choices,
    ),
    _check(
        "enclosures",
        "pinned and fitted lie within 64 ulps of their enclosures, threshold within 1e-12 (absolute below ε = 0.01)",
        _enclosed,
    ),
)
