"""The audit from end to end, its warnings, and the files that it reads: every number is computed in a second way."""

import dataclasses
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

from canaryproof.kernels import canaries as stream
from canaryproof.kernels import exact_law, gaussian_mechanism
from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.answer import inputs, misuse, plan, run_audit
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS, AtlasClaim
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.estimators import algorithm_1, epsilon_estimators
from canaryproof.verify.audit.estimators.moments import Moments, Shape
from canaryproof.verify.audit.files import reading
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.check.power import least_share
from canaryproof.verify.papers.check.results import Check, Context, Design, Outcome, Subject, Verdict
from canaryproof.verify.papers.suites.misuse_tests import misuse_tests

DELTA = 1e-6
# Relative tolerance of each number: far above rounding, far below any fault.
_TOLERANCE = 1e-9


def _differences(computed: dict[str, Any], expected: dict[str, Any]) -> dict[str, float]:
    return {
        name: math.inf
        if (computed[name] is None) != (value is None)
        else 0.0
        if value is None
        else abs(computed[name] - value) / max(abs(value), 1e-3)
        for name, value in expected.items()
    }


def _outcome(differences: dict[str, float], tolerance: float = _TOLERANCE) -> Outcome:
    label, worst = max(differences.items(), key=lambda item: item[1])
    holds = worst <= tolerance
    finding = f"largest relative difference of {len(differences)} numbers {worst:.1e} ({label})"
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, {"differences": differences})


def _anderson_darling(sample: Array) -> float:
    """Anderson and Darling's statistic for a normal law with fitted mean and deviation."""
    n = len(sample)
    z = np.sort((sample - sample.mean()) / sample.std(ddof=1))
    weights = 2.0 * np.arange(1, n + 1) - 1.0
    return float(-n - (weights * (special.log_ndtr(z) + special.log_ndtr(-z[::-1]))).sum() / n)


def _kolmogorov(sample: Array, dim: int) -> float:
    """Kolmogorov and Smirnov's distance from the law of a uniform direction's coordinate in R^d."""
    n, x = len(sample), np.sort(sample)
    below = 0.5 + 0.5 * np.sign(x) * special.betainc(0.5, 0.5 * (dim - 1.0), x**2)
    ranks = np.arange(n)
    return float(max((below - ranks / n).max(), ((ranks + 1.0) / n - below).max()))


def _estimates(result: run_audit.Audit, moments: Moments, confidence: float) -> dict[str, float]:
    """Differences of the audit's estimates from the estimators' own, and from their enclosures."""
    differences: dict[str, float] = {}
    for estimate in result.estimates:
        if estimate.name == "norm":
            continue
        direct = getattr(epsilon_estimators, f"{estimate.name}_estimate")(moments, DELTA, confidence)
        for field in ("epsilon", "standard_error", "low", "high"):
            pair = {estimate.name: getattr(estimate, field)}, {estimate.name: float(getattr(direct, field))}
            differences[f"{estimate.name}.{field}"] = _differences(*pair)[estimate.name]
        low, high = estimate.enclosure
        differences[f"{estimate.name}.certified"] = max(0.0, low - estimate.epsilon, estimate.epsilon - high) / max(
            estimate.epsilon, 0.01
        )
    return differences


def _shape(scores: Array | None) -> Shape | None:
    if scores is None:
        return None
    ordered, cut = np.sort(scores), int(0.5 * len(scores) / math.sqrt(len(scores) - 4.0))
    fourth = float(((scores - ordered[cut : len(scores) - cut].mean()) ** 4).mean())
    return Shape(np.asarray(stats.skew(scores)), np.asarray(fourth / scores.var() ** 2))


def _scores(context: Context) -> Outcome:
    rng = np.random.default_rng(context.key("auditing/scores"))
    dim, count, null_count, confidence = 1000, 30, 50, 0.8
    root = math.sqrt(dim)
    seen, unseen = (1.5 + rng.standard_normal(count)) / root, 1.1 * rng.standard_normal(null_count) / root
    differences: dict[str, float] = {}
    for label, null in (("closed form", None), ("unobserved", unseen)):
        result = run_audit.audit(Scores(seen, null, dim), DELTA, confidence, force=True)
        centre, scale = (0.0, 1.0 / root) if null is None else (null.mean(), null.std())
        distance, ratio = (seen.mean() - centre) / scale, seen.std() / scale
        many = math.inf if null is None else float(null_count)
        expected = {
            "count": count,
            "standardised_mean": distance,
            "deviation_ratio": ratio,
            "mean_error": math.sqrt(ratio**2 / count + 1.0 / many),
            "ratio_error": ratio * math.sqrt(0.5 / count + 0.5 / many),
            "normality": _anderson_darling(seen),
            "null_law": None if null is None else _kolmogorov(null, dim),
        }
        numbers = {name: getattr(result, name) for name in expected}
        numbers |= {name: numbers[name] and numbers[name].statistic for name in ("normality", "null_law")}
        moments = Moments(np.asarray(distance), np.asarray(ratio), count, many, _shape(seen), _shape(null))
        parts = _differences(numbers, expected) | _estimates(result, moments, confidence)
        differences |= {f"{name}, {label}": value for name, value in parts.items()}
    return _outcome(differences)


def _release(context: Context) -> Outcome:
    rng = np.random.default_rng(context.key("auditing/release"))
    dim, count, sigma, confidence = 5000, 40, 0.7, 0.8
    seed = int(rng.integers(0, 2**63))
    release = algorithm_1.release(count, dim, sigma, seed)
    canaries = stream.Canaries(seed, count, dim)
    result = run_audit.audit_release(release, canaries, DELTA, confidence, noise_multiplier=sigma, force=True)
    vectors = np.array([canaries.vector(j) for j in range(count)], dtype=np.float64)
    rest = release - vectors.sum(axis=0)
    scored = rest + vectors
    cosines = (vectors * scored).sum(axis=1) / np.linalg.norm(scored, axis=1)
    length = float(np.linalg.norm(rest))
    tail = 0.5 - 0.5 * confidence
    low, high = (
        math.sqrt(q / dim) * math.sqrt(dim) / length
        for q in (float(stats.chi2.ppf(p, dim)) for p in (tail, 1.0 - tail))
    )
    norm = result.estimates[-1]
    numbers = {
        "count": result.count,
        "standardised_mean": result.standardised_mean,
        "deviation_ratio": result.deviation_ratio,
        "norm": norm.epsilon,
        "norm.low": norm.low,
        "norm.high": norm.high,
        "dilution": result.dilution,
    }
    outside = {
        f"{row.name}.certified": max(0.0, row.enclosure[0] - row.epsilon, row.epsilon - row.enclosure[1])
        for row in result.estimates
    }
    expected = {
        "count": count,
        "standardised_mean": math.sqrt(dim) * cosines.mean(),
        "deviation_ratio": math.sqrt(dim) * cosines.std(),
        "norm": float(gaussian_mechanism.epsilon(DELTA, length / math.sqrt(dim))),
        "norm.low": float(gaussian_mechanism.epsilon(DELTA, 1.0 / low)),
        "norm.high": float(gaussian_mechanism.epsilon(DELTA, 1.0 / high)),
        "dilution": length**2 / (sigma**2 * dim) - 1.0,
    }
    # The vectors are rounded to float32.
    return _outcome(_differences(numbers, expected) | outside, 1e-5)


def _same(read: Array | None, expected: Array | None) -> bool:
    if read is None or expected is None:
        return read is expected
    return np.array_equal(read, expected)


def _files(context: Context) -> Outcome:
    """Write cosines and a release in every form that is read, and read them back."""
    rng = np.random.default_rng(context.key("auditing/files"))
    seen, unseen = rng.uniform(-1.0, 1.0, 7), rng.uniform(-1.0, 1.0, 5)
    lines = [",".join(map(repr, row)) for row in zip(seen.tolist(), unseen.tolist(), strict=False)]
    rest = [f"{x!r}," for x in seen[len(unseen) :].tolist()]
    wrong, read = [], 0
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        np.save(directory / "seen.npy", seen)
        np.savez(directory / "both.npz", observed=seen, unobserved=unseen)
        np.savez_compressed(directory / "packed.npz", unobserved=unseen, observed=seen)
        (directory / "seen.csv").write_text("\n".join(map(repr, seen.tolist())))
        (directory / "both.csv").write_text("\n".join(["observed,unobserved", *lines, *rest]) + "\n")
        for name, null in (
            ("seen.npy", None), ("both.npz", unseen), ("packed.npz", unseen), ("seen.csv", None), ("both.csv", unseen),
        ):  # fmt: skip
            scores, read = reading.read_scores(directory / name), read + 1
            same = np.array_equal(scores.observed, seen) and _same(scores.unobserved, null)
            wrong += [] if same else [name]
        for dtype in (np.float32, np.float64):
            release = rng.standard_normal(9).astype(dtype)
            np.save(directory / "release.npy", release)
            again, read = reading.read_release(directory / "release.npy"), read + 1
            wrong += [] if again.dtype == dtype and np.array_equal(again, release) else [f"release in {again.dtype}"]
    finding = f"{read - len(wrong)} of {read} files are read as they were written"
    if wrong:
        finding += f"; not {', '.join(wrong)}"
    return Outcome(Verdict.REFUTED if wrong else Verdict.CONFIRMED, finding, {"files": read, "wrong": wrong})


# Sizes, noise multipliers and norms of data of honest audits.
_COUNTS, _DIMS = (2, 5, 20, 100, 300, 1000), (10, 100, 1000, 10**4, 10**6, 10**9)
_NOISES, _DATA_NORMS = (30.0, 4.2, 1.54, 0.54, 0.2, 0.05), (0.0, 0.0, 1.0, 30.0, 1000.0)


def _unseen(count: int, dim: int, rng: np.random.Generator) -> Array:
    """Draw cosines of uniform directions in R^d with any vector."""
    along = rng.standard_normal(count)
    return along / np.sqrt(along**2 + rng.chisquare(dim - 1, count))


def _largest(
    count: int, null_count: int, dim: int, noise: float, rounds: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw the largest cosine of each canary with unrelated rounds, of which observed ones are in one."""
    seen, unseen = (_unseen(size * rounds, dim, rng).reshape(size, rounds) for size in (count, null_count))
    trace = 1.0 / math.sqrt(noise**2 * dim + count)
    seen[:, 0] = trace + math.sqrt(1.0 - trace**2) * seen[:, 0]
    return seen.max(axis=1), unseen.max(axis=1)


def _unequal(count: int, dim: int, noise: float, rng: np.random.Generator) -> Array:
    """Draw cosines with the sum of rounds that canaries take part in unequally often, or with unequal weights."""
    epochs, batches = int(rng.choice([1, 4])), int(rng.choice([4, 16]))
    rounds = epochs * batches
    # Learning rates that decay, and what momentum leaves of each round.
    decay = 0.9 ** np.arange(rounds)
    weights = (np.ones(rounds), decay, 1.0 - 0.9 * decay[::-1])[rng.integers(3)]
    takes_part = (
        lambda: rng.random((count, rounds)) < float(rng.choice([0.02, 0.125, 0.5])),
        # Batches of each epoch anew, or of all epochs alike.
        lambda: np.eye(batches)[rng.integers(0, batches, (count, epochs))].reshape(count, rounds),
        lambda: np.tile(np.eye(batches)[rng.integers(0, batches, count)], epochs),
    )[rng.integers(3)]
    norms = takes_part() @ weights
    # The other canaries are noise to each one.
    length = math.sqrt(dim * noise**2 * float((weights**2).sum()) + float((norms**2).sum()))
    along = rng.standard_normal(count) + math.sqrt(dim) * norms / length
    return np.asarray(along / np.sqrt(along**2 + rng.chisquare(dim - 1, count)))


def _stored(cosines: Array, form: int) -> Array:
    """Round cosines as programs keep and print them."""
    mantissa, exponent = np.frexp(cosines)
    return np.asarray(
        (
            lambda: cosines,
            lambda: cosines.astype(np.float32).astype(np.float64),
            lambda: cosines.astype(np.float16).astype(np.float64),
            # The 8 bits of bfloat16, and the five digits that many programs print.
            lambda: np.ldexp(np.rint(np.ldexp(mantissa, 8)), exponent - 8),
            lambda: np.array([float(f"{cosine:.4e}") for cosine in cosines]),
        )[form]()
    )


def _of_any_shape(count: int, null_count: int, rng: np.random.Generator) -> list[Array]:
    """Draw scores of an arbitrary law and scale: as they are, rounded, in half precision or in few values."""
    total = count + null_count
    laws = (
        lambda: rng.standard_cauchy(total),
        lambda: rng.beta(0.3, 0.3, total),
        lambda: np.exp(2.0 * rng.standard_normal(total)),
        lambda: rng.standard_normal(total) + 8.0 * rng.integers(0, 2, total),
    )
    scores = laws[rng.integers(len(laws))]()
    forms = (
        lambda x: x,
        lambda x: x.round(2),
        lambda x: np.clip(x, -100.0, 100.0).astype(np.float16).astype(np.float64),
        lambda x: (x > np.median(x)).astype(np.float64),
        np.floor,
    )
    scores = forms[rng.integers(len(forms))](scores) * float(rng.choice([1e-300, 1e-20, 1.0, 1e60]))
    return np.split(scores, [count])


def _warnings(rng: np.random.Generator) -> tuple[misuse.MisuseWarning, ...]:
    """Draw an honest audit of a random size and kind, and return the warnings that rest on a test."""
    count, null_count = (int(x) for x in rng.choice(_COUNTS, 2))
    dim, noise, data = int(rng.choice(_DIMS)), float(rng.choice(_NOISES)), float(rng.choice(_DATA_NORMS))
    form = int(rng.choice([0, 0, 1, 2, 3, 4]))
    kind = rng.choice(
        ["release", "orthonormal", "scores", "unobserved", "unknown dimension", "rounds", "any", "unequal", "shapes"]
    )
    if kind == "orthonormal":
        # A release's coordinates along all directions, of which the first are canaries.
        dim = min(dim, 10**4)
        along = noise * rng.standard_normal(dim)
        count = min(count, dim // 2)
        along[:count] += 1.0
        length = float(np.linalg.norm(along))
        sides = along[:count] / length, along[count:] / length
        claimed = noise if data == 0.0 else None
        residual = math.sqrt(length**2 - 2.0 * float(along[:count].sum()) + count)
        warnings = misuse.misuse(*sides, noise_multiplier=claimed, release_norm=length, residual_norm=residual)
    elif kind == "unequal":
        unseen = _stored(_unseen(null_count, dim, rng), form) if rng.integers(2) else None
        seen = _unequal(count, dim, noise, rng)
        warnings = misuse.misuse(_stored(seen, form), unseen, dim)
    elif kind == "shapes":
        shaped = _of_any_shape(count, null_count, rng)
        warnings = misuse.misuse(shaped[0], shaped[1], kind="any")
    elif kind == "rounds":
        both = _largest(count, null_count, dim, noise, int(rng.choice([2, 5, 20])), rng)
        warnings = misuse.misuse(_stored(both[0], form), _stored(both[1], form), dim)
    else:
        products, norm = exact_law.inner_products(count, dim, noise, rng, data)
        observed, unobserved = np.clip(products / norm, -1.0, 1.0), _unseen(null_count, dim, rng)
        # Data are no misuse, but with a claimed noise multiplier they are worth a warning.
        claim = noise if data == 0.0 else None
        if kind == "release":
            square = noise**2 * rng.chisquare(dim) + data**2 + 2.0 * noise * data * rng.standard_normal()
            # Given what else is in a release, the inner products of independent canaries with it are independent.
            along = math.sqrt(square) * _unseen(count, dim, rng)
            warnings = misuse.misuse(
                (along + 1.0) / np.sqrt(square + 2.0 * along + 1.0),
                None,
                dim,
                noise_multiplier=claim,
                release_norm=math.sqrt(square + 2.0 * float(along.sum()) + count),
                residual_norm=math.sqrt(square),
                inserted=1,
            )
        elif kind == "any":
            warnings = misuse.misuse(np.exp(observed * math.sqrt(dim)), np.exp(unobserved * math.sqrt(dim)), kind="any")
        else:
            warnings = misuse.misuse(
                _stored(observed, form),
                None if kind == "scores" else _stored(unobserved, form),
                None if kind == "unknown dimension" else dim,
                noise_multiplier=claim,
            )
    # The direction of scores of any kind has a level of its own, and is held to that of the other tests here.
    return tuple(
        each
        for each in warnings
        if each.p_value is not None and (each.kind != "order" or each.p_value < misuse.EACH_LEVEL)
    )


def _honest(context: Context) -> Outcome:
    runs = context.pick(500, 10_000, 125)
    rng = np.random.default_rng(context.key("auditing/honest"))
    kinds = [warnings[0].kind for warnings in (_warnings(rng) for _ in range(runs)) if warnings]
    # One warning more than the declared level explains.
    allowed = int(stats.binom.isf(LEVEL, runs, LEVEL))
    share = least_share(lambda p: float(stats.binom.sf(allowed, runs, p)), POWER)
    named = f": {', '.join(sorted(set(kinds)))}" if kinds else ""
    return Outcome(
        Verdict.CONFIRMED if len(kinds) <= allowed else Verdict.REFUTED,
        f"{len(kinds)} of {runs:,} honest audits are warned{named}",
        {
            "runs": runs,
            "warned": len(kinds),
            "allowed": allowed,
            "kinds": sorted(set(kinds)),
            "tests": [
                dataclasses.asdict(test) | {"kinds": list(test.kinds)} for test in misuse_tests(1000, 1000, 10**6)
            ],
        },
        Design(
            f"an honest audit is warned with probability {LEVEL:g} at most",
            LEVEL,
            f"it is warned with probability {share:.2g} or more",
            POWER,
            runs,
        ),
    )


# Plans whose rows are tried, and the most canaries that are drawn for a row.
_PLANS = (
    {"noise_multiplier": 1.54, "dim": 2048},
    {"noise_multiplier": 0.3, "rounds": 4, "dim": 3000, "delta": 1e-4, "claim": 12.0},
    {"noise_multiplier": 2.0, "dim": 2048, "neighbours": "replace"},
)
_MOST_CANARIES = 200
# Level of the test of the noise in an audit of 95% confidence, which shares it with the bound.
_LEVEL_OF_TEST = 0.025


def _planned(context: Context) -> Outcome:
    """Test releases with each fault of a plan, by as many canaries as it says, and count the alarms."""
    runs = context.pick(20, 400, 5)
    rng = np.random.default_rng(context.key("auditing/plan"))
    rows: list[dict[str, Any]] = []
    for options in _PLANS:
        planned = plan.plan(**options)
        for fault in planned.faults:
            if fault.count is not None and fault.count <= _MOST_CANARIES:
                noticed = sum(_is_noticed(planned, fault, rng) for _ in range(runs))
                rows.append({**options, "fault": fault.name, "value": fault.value, "noticed": noticed})
    total, noticed = len(rows) * runs, sum(row["noticed"] for row in rows)
    # The first is of all rows together, the second of each; they share the level.
    fewest = int(stats.binom.ppf(0.5 * LEVEL, total, POWER))
    fewest_of_row = int(stats.binom.ppf(0.5 * LEVEL / len(rows), runs, POWER))
    holds = noticed >= fewest and all(row["noticed"] >= fewest_of_row for row in rows)
    share = 1.0 - least_share(lambda p: float(stats.binom.cdf(fewest - 1, total, 1.0 - p)), POWER)
    return Outcome(
        Verdict.CONFIRMED if holds else Verdict.REFUTED,
        f"{noticed:,} of {total:,} audits of {len(rows)} rows raise the alarm; least {min(r['noticed'] for r in rows)} "
        f"of {runs} in a row",
        {"rows": rows, "runs": runs, "fewest": fewest, "fewest of a row": fewest_of_row},
        Design(
            f"each fault of a plan is noticed with probability {POWER:g} at least",
            LEVEL,
            f"all are noticed with probability {share:.2g} at most",
            POWER,
            total,
        ),
    )


def _is_noticed(planned: plan.AuditPlan, fault: plan.PlannedFault, rng: np.random.Generator) -> bool:
    mechanism, count = MECHANISMS[fault.name], fault.count
    assert count is not None
    claimed = AtlasClaim(planned.release_noise, planned.delta, planned.dim)
    square = float(mechanism.residual(fault.value, claimed, 1, rng).gram[0, 0, 0])
    direction = rng.standard_normal(planned.dim)
    canaries = stream.Canaries(int(rng.integers(0, 2**63)), count, planned.dim)
    total = canaries.sum()
    release = math.sqrt(square) / float(np.linalg.norm(direction)) * direction
    release += float(mechanism.weights(fault.value)[0, 0]) * total
    # This is the test that refutes a claim; a whole audit would take twenty times as long.
    length = float(np.linalg.norm(total))
    cosine = float(total @ release) / (length * float(np.linalg.norm(release)))
    traces = inputs.release_traces(cosine, length, planned.dim)
    return traces.p_value(planned.release_noise) < _LEVEL_OF_TEST


def _check(topic: str, source: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:
    return Check(f"audit.{topic}", Subject.IMPLEMENTATION, source, statement, judge)


CHECKS = (
    _check(
        "scores",
        "verify.audit.answer",
        "an audit of cosines has the moments, errors, tests and estimates that plain formulas and the estimators give",
        _scores,
    ),
    _check(
        "release",
        "verify.audit.answer",
        "an audit of a release of Algorithm 1 finds the cosines of the canaries that were added, and its norm",
        _release,
    ),
    _check(
        "honest",
        "verify.audit.answer.misuse",
        "honest audits of all sizes, dimensions and ε, with data, unequal participation and scores of any shape too, "
        "are not warned of misuse",
        _honest,
    ),
    _check(
        "plan",
        "verify.audit.answer.plan",
        "as many canaries as a plan says notice each of its faults with probability 90%, by the test that refutes",
        _planned,
    ),
    _check("files", "verify.audit.files.reading", "files of every form are read as they were written", _files),
)
