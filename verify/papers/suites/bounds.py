"""Suite ``bounds``: how often lower bounds lie above a known ε, and how far below, on simulated audits.

The audits are of mechanisms whose scores and whose ε at every δ are known.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, optimize, special, stats
from statsmodels.stats.power import TTestPower

from canaryproof.kernels import exact_law, gaussian_mechanism
from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.bounds import catalogue
from canaryproof.verify.audit.bounds.bayesian import Rate, quantile
from canaryproof.verify.audit.bounds.catalogue import DEFAULT
from canaryproof.verify.audit.bounds.catalogue import MEASURED as METHODS
from canaryproof.verify.audit.bounds.gaussian import epsilon_of_mu
from canaryproof.verify.audit.bounds.lower_bound import (
    GAUSSIAN_CURVE,
    Coverage,
    ExactNull,
    Method,
    ScoreSample,
    cosine_null,
    discrete_null,
    normal_null,
    prepare,
)
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.documents import CANIFE, FIRST_VERSION
from canaryproof.verify.papers.check.results import Check, Context, Design, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.records.evidence import (
    BoundCoverage,
    CoverageRow,
    DefaultBound,
    MeanBounds,
    NominalCoverage,
)
from canaryproof.verify.papers.suites import bounds_dependence, bounds_grid, bounds_trainings, bounds_values

Shape = tuple[int, ...]

# δ at which the Gaussian ones are calibrated to their nominal ε.
DELTA = 1e-5
# The rounded mechanism releases multiples of this.
_UNIT = 0.5
_REACH = 13.0


@dataclass(frozen=True)
class ScoredMechanism:
    """A mechanism audited canary by canary, independently."""

    name: str  # Family
    nominal: float  # ε that it is made for
    # draw, draw_null: draw scores of canaries that took part, and that did not.
    draw: Callable[[np.random.Generator, Shape], Array]
    draw_null: Callable[[np.random.Generator, Shape], Array]
    null: ExactNull  # The law of the latter
    epsilon: Callable[[float], float]  # ε at δ, exactly but for rounding


def shift(nominal: float, delta: float = DELTA) -> float:
    """Return the distance of the normal laws that have ε nominal at δ."""
    return 1.0 / float(gaussian_mechanism.noise_multiplier(nominal, delta)) if nominal > 0.0 else 0.0


def gaussian(nominal: float, at: float = DELTA) -> ScoredMechanism:
    """Return N(μ, 1) against N(0, 1), with ε nominal at the given δ."""
    mu = shift(nominal, at)
    return ScoredMechanism(
        "Gaussian",
        nominal,
        lambda rng, shape: mu + rng.standard_normal(shape),
        lambda rng, shape: rng.standard_normal(shape),
        normal_null(),
        lambda delta: float(gaussian_mechanism.epsilon(delta, 1.0 / mu)) if mu > 0.0 else 0.0,
    )


def _laplace_null() -> ExactNull:
    def log_tail(x: Array) -> Array:
        low = np.log1p(-0.5 * np.exp(np.minimum(x, 0.0)))
        return np.asarray(np.where(x > 0.0, -x - math.log(2.0), low))

    def inverse(log_tail: Array) -> Array:
        with np.errstate(divide="ignore"):
            low = np.log(2.0 * -np.expm1(log_tail))
        return np.asarray(np.where(log_tail < -math.log(2.0), -log_tail - math.log(2.0), low))

    return ExactNull("Laplace", log_tail, inverse)


def laplace(nominal: float) -> ScoredMechanism:
    """Return Laplace noise of scale 1 around ε and around 0, which is (ε, 0)-private."""
    return ScoredMechanism(
        "Laplace",
        nominal,
        lambda rng, shape: nominal + rng.laplace(size=shape),
        lambda rng, shape: rng.laplace(size=shape),
        _laplace_null(),
        # δ(e) = 1 − exp((e − ε)/2) for 0 ≤ e ≤ ε.
        lambda delta: max(0.0, nominal + 2.0 * math.log1p(-delta)),
    )


def randomised_response(nominal: float) -> ScoredMechanism:
    """Return the truth, 1 or 0, with probability e^ε/(1 + e^ε) and the other otherwise."""
    right, wrong = (float(special.expit(sign * nominal)) for sign in (1.0, -1.0))
    return ScoredMechanism(
        "randomised response",
        nominal,
        lambda rng, shape: (rng.random(shape) < right).astype(np.float64),
        lambda rng, shape: (rng.random(shape) < wrong).astype(np.float64),
        discrete_null([0.0, 1.0], [right, wrong]),
        lambda delta: max(0.0, math.log((right - delta) / wrong)) if right > delta else 0.0,
    )


def _atoms(mu: float) -> Array:
    """Probabilities of N(μ, 1) rounded to multiples of the unit, from −reach to reach."""
    ends = np.arange(-_REACH - 0.5 * _UNIT, _REACH + _UNIT, _UNIT) - mu
    # On either side from the tail that is small.
    below, above = np.diff(special.ndtr(ends)), -np.diff(special.ndtr(-ends))
    return np.asarray(np.where(ends[1:] <= 0.0, below, above))


def _rounded_null() -> ExactNull:
    return discrete_null(np.arange(-_REACH, _REACH + 0.5 * _UNIT, _UNIT), _atoms(0.0))


def rounded_gaussian(nominal: float) -> ScoredMechanism:
    """Return the Gaussian mechanism's score rounded to halves: full of ties, and a little more private."""
    mu = shift(nominal)
    with_canary, other = _atoms(mu), _atoms(0.0)

    def excess(epsilon: float, delta: float) -> float:
        both = ((with_canary, other), (other, with_canary))
        return max(float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) for p, q in both) - delta

    def epsilon(delta: float) -> float:
        if excess(0.0, delta) <= 0.0:
            return 0.0
        return float(optimize.brentq(excess, 0.0, nominal + 3.0, args=(delta,), xtol=1e-13))

    return ScoredMechanism(
        "rounded Gaussian",
        nominal,
        lambda rng, shape: _UNIT * np.rint((mu + rng.standard_normal(shape)) / _UNIT),
        lambda rng, shape: _UNIT * np.rint(rng.standard_normal(shape) / _UNIT),
        _rounded_null(),
        epsilon,
    )


FAMILIES = (gaussian, laplace, randomised_response, rounded_gaussian)


ALPHA = 0.05
EPSILONS = (0.0, 0.5, 1.0, 3.0, 10.0)
# A quick run leaves the middle one to the full level, for time.
DELTAS = {Effort.SMOKE: (1e-6, 1e-2), Effort.QUICK: (1e-6, 1e-2), Effort.FULL: (1e-6, 1e-5, 1e-2)}
# Audits a cell, by number of scores.
_RUNS = {
    Effort.SMOKE: {100: 40, 1000: 12},
    Effort.QUICK: {100: 400, 1000: 100},
    Effort.FULL: {100: 10_000, 1000: 2000, 10_000: 200},
}
# The same where an audit takes longer: with coins, as their sizes differ, and for posterior intervals.
_FEWER = {
    Effort.SMOKE: {100: 40, 1000: 10},
    Effort.QUICK: {100: 100, 1000: 25},
    Effort.FULL: {100: 2000, 1000: 400, 10_000: 40},
}
_COSINE_RUNS = {
    Effort.SMOKE: {100: 20, 1000: 5},
    Effort.QUICK: {100: 60, 1000: 10},
    Effort.FULL: {100: 2000, 1000: 500, 10_000: 10},
}
DIM = 10**6
# Trainings of each kind, and bounds that take little time for their scores.
_TRAININGS = (8, 500, 4)
_QUICKLY = ("band", "normal-scores", "gaussian-dp")
# Relative margin of the truth, for its own rounding.
_ROUNDING = 1e-9

Families = Sequence[Callable[[float], ScoredMechanism]]


@dataclass(frozen=True)
class AuditCell:
    """Audits of one mechanism, and its ε by δ."""

    where: Mapping[str, Any]  # Names of the cell's mechanism and sizes
    truth: Mapping[float, float]  # ε by δ
    audits: tuple[ScoreSample, ...]  # The scores, in pieces of any number of audits


def independent_cells(
    context: Context, families: Families, kinds: Sequence[str], *, fewer: bool = False
) -> Iterator[AuditCell]:
    """Draw audits whose scores are each from a run of its own, by kinds of null; ``fewer`` draws a fifth."""
    for family in families:
        for epsilon in EPSILONS:
            mechanism = family(epsilon)
            for count, runs in (_FEWER if fewer else _RUNS)[context.level].items():
                rng = np.random.default_rng(context.key(f"bounds/{mechanism.name}/{epsilon}/{count}"))
                observed = mechanism.draw(rng, (runs, count))
                for kind in kinds:
                    if kind == "exact":
                        scores = prepare(observed, null=mechanism.null, independent=True)
                    else:
                        scores = prepare(observed, mechanism.draw_null(rng, (runs, count)), independent=True)
                    yield _cell(context, mechanism, count, kind, (scores,))


def coin_cells(context: Context, families: Families) -> Iterator[AuditCell]:
    """Draw audits in which a fair coin decides on every canary."""
    for family in families:
        for epsilon in EPSILONS:
            mechanism = family(epsilon)
            for count, runs in _FEWER[context.level].items():
                rng = np.random.default_rng(context.key(f"bounds/coin/{mechanism.name}/{epsilon}/{count}"))
                heads = rng.binomial(2 * count, 0.5, runs)
                audits = tuple(
                    prepare(mechanism.draw(rng, (1, k)), mechanism.draw_null(rng, (1, 2 * count - k)), inclusion="coin")
                    for k in heads
                )
                yield _cell(context, mechanism, count, "coin", audits)


def cosine_cells(context: Context) -> Iterator[AuditCell]:
    """Draw the cosines of single runs of Algorithm 1, which depend on each other, with exactly their joint law."""
    null = cosine_null(DIM)
    for epsilon in EPSILONS:
        sigma = float(gaussian_mechanism.noise_multiplier(epsilon, DELTA)) if epsilon > 0.0 else math.inf
        for count, runs in _COSINE_RUNS[context.level].items():
            rng = np.random.Generator(np.random.SFC64(context.key(f"bounds/cosines/{epsilon}/{count}")))
            if math.isinf(sigma):
                # Nothing of the canaries is in the release: independent cosines with a fixed direction.
                observed = rng.standard_normal((runs, count))
                observed /= np.sqrt(observed**2 + rng.chisquare(DIM - 1, (runs, count)))
            else:
                observed = np.array([exact_law.cosines(count, DIM, sigma, rng) for _ in range(runs)])
            deltas = DELTAS[context.level]
            truth = {d: float(gaussian_mechanism.epsilon(d, sigma)) if epsilon > 0.0 else 0.0 for d in deltas}
            where = {"mechanism": "cosines of one run", "epsilon": epsilon, "count": count, "null": "exact"}
            yield AuditCell(where, truth, (prepare(observed, null=null),))


def _cell(
    context: Context, mechanism: ScoredMechanism, count: int, kind: str, audits: tuple[ScoreSample, ...]
) -> AuditCell:
    where = {"mechanism": mechanism.name, "epsilon": mechanism.nominal, "count": count, "null": kind}
    return AuditCell(where, {delta: mechanism.epsilon(delta) for delta in DELTAS[context.level]}, audits)


def measure(method: Method, cells: Iterable[AuditCell], alpha: float = ALPHA) -> list[CoverageRow]:
    """Compute a bound for all audits of all cells that it serves: a row for each cell and δ."""
    rows = []
    for cell in cells:
        for delta, truth in cell.truth.items():
            bounds = [method.values(scores, delta, alpha)[0] for scores in cell.audits if method.can_use(scores)]
            if bounds:
                rows.append(_row(cell, delta, truth, np.concatenate(bounds)))
    return rows


def _row(cell: AuditCell, delta: float, truth: float, values: Array) -> CoverageRow:
    runs, above = len(values), int(np.sum(values > truth * (1.0 + _ROUNDING) + _ROUNDING))
    return CoverageRow(**cell.where, delta=delta, truth=truth, runs=runs, above=above, mean=float(values.mean()))


def p_values(rows: Sequence[CoverageRow], alpha: float = ALPHA) -> list[float]:
    """Return for each cell the probability of as many bounds above the truth, were it α."""
    return [float(stats.binom.sf(row.above - 1, row.runs, alpha)) for row in rows]


def label(row: CoverageRow) -> str:
    """Name a cell."""
    return (
        f"{row.mechanism}, ε = {row.epsilon:g}, k = {row.count:,}, δ = {row.delta:g}, {row.null} null"
        if row.null != "coin"
        else f"{row.mechanism}, ε = {row.epsilon:g}, {2 * row.count:,} coins, δ = {row.delta:g}"
    )


# The picture has these nominal rates of bounds above the truth, and this number of scores an audit.
_NOMINAL = (0.01, 0.02, 0.05, 0.1, 0.2)
_SMALL = 100
# One audit in so many has posterior intervals there, which take milliseconds and are not judged.
_POSTERIOR_SHARE = 4
_POWER = 0.99
# δ at which a mechanism of ε = 1 is made and asked about.
_OWN_DELTAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
_ONE_RUN = ("one-run", "one-run-gaussian")
# The bound that is for δ = 0 alone.
_PURE = "pure-dp"
# Printed bounds of which a claim speaks: that one has a confidence, and what the other lacks for it.
_CLAIMED = ("andrew", "canife")
_CODE = "canife-code"
# As printed, where no document here promises what is measured: Andrew et al. describe the one without a confidence, and
# the other's interval has a probability given a prior.
_NO_PROMISE = {
    "jagielski": "the bound of Jagielski et al. 2020, as Andrew et al. describe it",
    "bayesian": "the interval of Zanella-Béguelin et al., arXiv 2206.05199, read as a confidence interval",
}


def _families(method: Method) -> tuple[Callable[[float], ScoredMechanism], ...]:
    # A posterior interval takes a millisecond an audit, and makes no claim of its own.
    gaussian_only = GAUSSIAN_CURVE in method.assumptions or method.upper is not None
    return (gaussian,) if gaussian_only else FAMILIES


def _cells(context: Context, method: Method) -> Iterable[AuditCell]:
    if method.name in _ONE_RUN:
        return coin_cells(context, _families(method))
    if method.name == _PURE:
        cells = independent_cells(context, (laplace, randomised_response), ("exact",))
        return (replace(cell, truth={0.0: cell.where["epsilon"]}) for cell in cells)
    kinds = {"null": ("exact",), "unobserved": ("unobserved",)}.get(method.needs, ("exact", "unobserved"))
    return independent_cells(context, _families(method), kinds, fewer=method.upper is not None)


def _outcome(rows: Sequence[CoverageRow], alpha: float) -> Outcome:
    """Judge that no cell's rate is above α, by all of them at one level."""
    tails = p_values(rows, alpha)
    worst = min(range(len(rows)), key=lambda i: (tails[i], -rows[i].rate))
    row = rows[worst]
    wrong = sum(tail < LEVEL / len(rows) for tail in tails)
    low, high = row.interval
    finding = (
        f"{wrong} of {len(rows)} cells are significantly above {alpha:.3g}; most so {row.rate:.1%} "
        f"[{low:.1%}, {high:.1%}] of {row.runs:,} audits ({label(row)})"
    )
    # In the smallest cell, rates from this one on are found out.
    runs = min(row.runs for row in rows)
    critical = int(stats.binom.isf(LEVEL / len(rows), runs, alpha)) + 1
    visible = float(stats.beta.ppf(_POWER, critical, runs - critical + 1))
    evidence = to_document(BoundCoverage(alpha, LEVEL, visible, tuple(rows)))
    design = _design(alpha, visible, runs)
    return Outcome(Verdict.REFUTED if wrong else Verdict.CONFIRMED, finding, evidence, design)


def _design(alpha: float, visible: float, runs: int) -> Design:
    return Design(
        f"bounds are above ε in {alpha:.3g} of audits", LEVEL, f"in the smallest cell in {visible:.2g}", _POWER, runs
    )


def _coverage(context: Context, name: str) -> Outcome:
    method = METHODS[name]
    return _outcome(measure(method, _cells(context, method)), _rate_promised(method))


def _rate_promised(method: Method) -> float:
    """Return how often a limit at 95% may be above ε: a posterior interval is one of two sides."""
    return ALPHA if method.upper is None else 0.5 * ALPHA


def _exceeds(context: Context, name: str) -> Outcome:
    """Measure a limit that is above ε too often somewhere."""
    return _found_above(_coverage(context, name))


def _found_above(outcome: Outcome) -> Outcome:
    """Judge that limits are above ε too often somewhere, which a measurement can find and not exclude."""
    verdict = Verdict.CONFIRMED if outcome.verdict is Verdict.REFUTED else Verdict.INCONCLUSIVE
    return replace(outcome, verdict=verdict)


def _at_chosen_thresholds(context: Context) -> Outcome:
    outcome = _exceeds(context, "andrew")
    return replace(outcome, finding=f"at thresholds that are best for the same cosines, {outcome.finding}")


def _at_one(context: Context) -> Outcome:
    """Measure the printed bound where ε = 1 at the very δ that is asked, of 1,000 Gaussian scores."""
    runs, count = context.pick(400, 4000, 100), 1000
    rows = []
    for delta in _OWN_DELTAS:
        mechanism = gaussian(1.0, delta)
        rng = np.random.default_rng(context.key(f"bounds/at-one/{delta}"))
        observed, unobserved = mechanism.draw(rng, (runs, count)), mechanism.draw_null(rng, (runs, count))
        audits = {
            "exact": prepare(observed, null=mechanism.null, independent=True),
            "unobserved": prepare(observed, unobserved, independent=True),
        }
        for kind, scores in audits.items():
            where = {"mechanism": mechanism.name, "epsilon": 1.0, "count": count, "null": kind}
            rows += measure(METHODS["andrew"], [AuditCell(where, {delta: mechanism.epsilon(delta)}, (scores,))])
    return _found_above(_outcome(rows, ALPHA))


def _dependent(context: Context) -> Outcome:
    cells = list(cosine_cells(context))
    rows = [
        replace(row, method=name)
        for name, method in METHODS.items()
        if not method.printed and method.upper is None and method.needs != "unobserved"
        for row in measure(method, cells)
    ]
    return _outcome([*rows, *_of_trainings(context)], ALPHA)


def _dependent_scores(context: Context) -> Outcome:
    """Judge the bounds that are proven for such scores, and measure all others too."""
    runs, count, delta = context.pick(100, 1000, 10), 1000, DELTAS[context.level][0]
    rows, proven = [], []
    for mechanism in bounds_dependence.MECHANISMS:
        rng = np.random.default_rng(context.key(f"bounds/dependent/{mechanism.name}"))
        null = replace(normal_null(), is_conditional=mechanism.is_conditional)
        exact = prepare(mechanism.draw(rng, np.full((runs, count), fill_value=True)), null=null)
        coins = rng.random((runs, 2 * count)) < 0.5
        tossed = tuple(
            prepare(scores[row], scores[~row], inclusion="coin")
            for scores, row in zip(mechanism.draw(rng, coins), coins, strict=True)
        )
        for kind, audits, total in (("exact", (exact,), count), ("coin", tossed, 2 * count)):
            for name, method in METHODS.items():
                at = 0.0 if name == _PURE else delta
                serves = method.can_use(audits[0]) and method.upper is None and (kind == "exact" or name in _ONE_RUN)
                if not serves or math.isinf(truth := mechanism.epsilon(at, total)):
                    continue
                where = {"mechanism": mechanism.name, "epsilon": truth, "count": count, "null": kind}
                measured = measure(method, [AuditCell(where, {at: truth}, audits)])
                named = [replace(row, method=name) for row in measured]
                rows += named
                assumes = GAUSSIAN_CURVE in method.assumptions
                proven += named if method.coverage(audits[0]) is Coverage.PROVEN and not assumes else []
    judged = _outcome(proven, ALPHA)
    most = max((row for row in rows if row.method == DEFAULT), key=lambda row: row.rate)
    finding = f"{judged.finding}; {DEFAULT}, which needs independence, in up to {most.rate:.0%} ({most.mechanism})"
    assert judged.evidence is not None
    evidence = to_document(BoundCoverage(ALPHA, LEVEL, judged.evidence["visible"], tuple(rows)))
    return replace(judged, finding=finding, evidence=evidence)


def _of_trainings(context: Context) -> Iterator[CoverageRow]:
    """Yield how often an attacker's bound is above the claim for him, in each training and by each score."""
    for audits in bounds_trainings.audits(context, context.pick(*_TRAININGS), ALPHA):
        claim = audits.training.claim
        truth = claim.epsilon(DELTA)
        names = {"mechanism": f"{audits.training.name}: {audits.score}", "null": audits.null}
        cell = AuditCell({**names, "epsilon": truth, "count": bounds_trainings.COUNT}, {DELTA: truth}, (audits.scores,))
        for name in (*_QUICKLY, DEFAULT) if context.level is Effort.FULL else _QUICKLY:
            if claim.participations is not None or GAUSSIAN_CURVE not in METHODS[name].assumptions:
                yield from (replace(row, method=name) for row in measure(METHODS[name], [cell]))
        for name, limits in audits.noise_limits.items():
            assert claim.participations is not None
            values = epsilon_of_mu(math.sqrt(claim.participations) / limits, DELTA)
            yield replace(_row(cell, DELTA, truth, values), method=name)


def _elsewhere(context: Context) -> Outcome:
    """Use the bounds that assume a Gaussian trade-off curve where there is none."""
    method = METHODS["normal-scores"]
    rows = measure(method, independent_cells(context, (laplace,), ("exact",)))
    return _found_above(_outcome(rows, ALPHA))


def _nominal(context: Context) -> Outcome:
    """Measure every method at several nominal levels, on small audits of Gaussian scores."""
    runs = context.pick(400, 4000, 60)
    methods = {name: m for name, m in METHODS.items() if name not in _ONE_RUN}
    rows = []
    for epsilon in (0.0, 1.0, 3.0):
        mechanism = gaussian(epsilon)
        rng = np.random.default_rng(context.key(f"bounds/nominal/{epsilon}"))
        observed, unobserved = mechanism.draw(rng, (runs, _SMALL)), mechanism.draw_null(rng, (runs, _SMALL))
        for kind, null in (("exact", mechanism.null), ("unobserved", None)):
            where = {"mechanism": mechanism.name, "epsilon": epsilon, "count": _SMALL, "null": kind}
            cells = []
            for size in (runs, runs // _POSTERIOR_SHARE):
                others = unobserved[:size] if null is None else None
                scores = prepare(observed[:size], others, null, independent=True)
                cells.append(AuditCell(where, {DELTA: mechanism.epsilon(DELTA)}, (scores,)))
            rows += [
                (nominal, replace(row, method=name, nominal=nominal))
                for name, method in methods.items()
                for nominal in _NOMINAL
                for row in measure(method, [cells[method.upper is not None]], nominal)
            ]
    own = [(nominal, row) for nominal, row in rows if row.method not in {*_CLAIMED, *_NO_PROMISE}]
    wrong = [row for nominal, row in own if stats.binom.sf(row.above - 1, row.runs, nominal) < LEVEL / len(own)]
    shares = [max(row.rate for promised, row in own if promised == nominal) for nominal in _NOMINAL]
    listed = ", ".join(f"{share:.1%} at {nominal:.0%}" for nominal, share in zip(_NOMINAL, shares, strict=True))
    finding = f"{len(wrong)} of {len(own)} cells are significantly above; largest rates {listed} ({runs:,} audits each)"
    verdict = Verdict.REFUTED if wrong else Verdict.CONFIRMED
    critical = int(stats.binom.isf(LEVEL / len(own), runs, max(_NOMINAL))) + 1
    visible = float(stats.beta.ppf(_POWER, critical, runs - critical + 1))
    evidence = to_document(NominalCoverage(LEVEL, tuple(row for _, row in rows)))
    return Outcome(verdict, finding, evidence, _design(max(_NOMINAL), visible, runs))


def _caps() -> tuple[dict[str, Any], ...]:
    """Values at perfect separation, from as many unobserved scores, of the bounds that users can name."""
    scores = {count: prepare(np.ones(count), np.zeros(count)) for count in (100, 1000, 10_000)}
    return tuple(
        {
            "method": name,
            **{
                f"{count}": float(method.values(s.perfect_separation, 1e-6, ALPHA)[0][0]) for count, s in scores.items()
            },
        }
        for name, method in catalogue.METHODS.items()
        if method.needs != "null"
    )


def _best(context: Context) -> Outcome:
    """Compare the means of all bounds that need nothing but independent scores, on Gaussian scores."""
    rivals = [
        method
        for method in METHODS.values()
        if not (method.printed or method.upper is not None or method.needs or GAUSSIAN_CURVE in method.assumptions)
    ]
    names = [method.name for method in rivals]
    default = names.index(DEFAULT)
    rows, shares = [], []
    # Each audit adds these to the default's leads over all, to first order: the largest mean is an estimate too. Cells
    # of one ε and size are made of the same audits.
    added: dict[tuple[float, int], Any] = {}
    for cell in independent_cells(context, (gaussian,), ("exact", "unobserved")):
        (scores,) = cell.audits
        for delta, truth in cell.truth.items():
            if cell.where["epsilon"] > 0.0 and truth > 0.0:
                values = np.array([method.values(scores, delta, ALPHA)[0] for method in rivals])
                means, errors = values.mean(axis=1), stats.sem(values, axis=1)
                largest = max(float(means.max()), 1e-9)
                shares.append(means / largest)
                lead = np.outer(means[default] - means, values[means.argmax()] / largest)
                key = cell.where["epsilon"], cell.where["count"]
                added[key] = added.get(key, 0.0) + (values[default] - values - lead) / largest
                by_method, by_error = _by_name(names, means), _by_name(names, errors)
                rows.append(MeanBounds(**cell.where, delta=delta, by_method=by_method, errors=by_error))
    mean_shares = np.mean(shares, axis=0)
    leads = mean_shares[default] - mean_shares
    errors = np.sqrt(sum(stats.sem(part, axis=1) ** 2 for part in added.values())) / len(rows)
    runs, level = min(part.shape[1] for part in added.values()), LEVEL / (len(names) - 1)
    rival = np.arange(len(names)) != default
    smaller = stats.t.cdf(leads[rival] / errors[rival], runs - 1) < level
    visible = math.sqrt(runs) * float(TTestPower().solve_power(None, runs, level, _POWER, "larger"))
    listed = ", ".join(
        f"{names[i]} {mean_shares[i]:.0%}" + (f" (behind by {leads[i]:.1%} ± {errors[i]:.1%})" if rival[i] else "")
        for i in np.argsort(-mean_shares)
    )
    first = sum(share[default] >= 1.0 for share in shares)
    evidence = DefaultBound(
        LEVEL,
        tuple(rows),
        shares=_by_name(names, mean_shares),
        caps=_caps(),
        leads=_by_name(names, leads),
        errors=_by_name(names, errors),
    )
    return Outcome(
        Verdict.REFUTED if smaller.any() else Verdict.CONFIRMED,
        f"largest in {first} of {len(rows)} cells; mean share of the largest: {listed}",
        to_document(evidence),
        Design("no other has a larger mean share", LEVEL, f"one is {visible:.2g} standard errors larger", _POWER, runs),
    )


def _by_name(names: Sequence[str], values: NDArray[np.float64]) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))


def _statement(method: Method) -> str:
    needs = ", ".join(method.assumptions)
    return f"the {method.name} bound at 95% is above ε in at most 5% of audits ({needs})"


def _own_check(name: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:
    return Check(f"bounds.{name}", Subject.IMPLEMENTATION, "verify.audit.bounds", statement, judge)


# Tolerance of the probability at a posterior quantile, which is adaptive quadrature's.
_POSTERIOR = 1e-8
# Scores on the wrong side and on the right one, observed and unobserved.
_SIDES = ((0, 40, 0, 40), (12, 38, 1, 59), (45, 5, 55, 5), (3, 97, 40, 60))


def _posterior(_: Context) -> Outcome:
    """Judge posterior quantiles of ε by the Beta laws of Jeffreys' prior and the region of (ε, δ)-privacy."""
    gaps = {}
    for missed, hit, false, passed in _SIDES:
        for above, delta in ((0.975, 1e-5), (0.5, 1e-3), (0.025, 1e-5)):
            epsilon = quantile(Rate(missed, hit), Rate(false, passed), delta, above)
            outside = _outside(epsilon, delta, (missed + 0.5, hit + 0.5), (false + 0.5, passed + 0.5))
            # At ε = 0 it may be exceeded less often than asked.
            gap = abs(outside - above) if epsilon > 0.0 else max(0.0, outside - above)
            gaps[f"{missed} of {missed + hit} missed, {false} of {false + passed} false, {above:g}"] = gap
    worst = max(gaps, key=gaps.__getitem__)
    finding = f"largest of {len(gaps)} differences of probability {gaps[worst]:.1g} ({worst})"
    return Outcome(Verdict.CONFIRMED if gaps[worst] <= _POSTERIOR else Verdict.REFUTED, finding, {"differences": gaps})


def _outside(epsilon: float, delta: float, fnr: tuple[float, float], fpr: tuple[float, float]) -> float:
    """Probability that the rates lie outside the region that privacy leaves, over the arc sine of one's root."""
    fnr_law, fpr_law = stats.beta(*fnr), stats.beta(*fpr)
    up = math.exp(epsilon)

    def density(angle: float) -> float:
        rate = math.sin(angle) ** 2
        low = max(0.0, 1.0 - delta - up * rate, (1.0 - delta - rate) / up)
        high = min(1.0, delta + up * (1.0 - rate), 1.0 + (delta - rate) / up)
        return float(fnr_law.pdf(rate) * math.sin(2.0 * angle) * (fpr_law.cdf(low) + fpr_law.sf(high)))

    kink = (1.0 - delta) / (1.0 + up)
    rates = sorted({0.0, delta, kink, 1.0 - kink, 1.0 - delta, 1.0, *fnr_law.ppf([1e-9, 0.01, 0.5, 0.99, 1.0 - 1e-9])})
    angles = [math.asin(math.sqrt(rate)) for rate in rates]
    pieces = [integrate.quad(density, *ends, epsabs=1e-11, limit=200)[0] for ends in pairwise(angles)]
    return math.fsum(pieces)


CHECKS = (
    *(
        _own_check(f"coverage.{name}", _statement(method), partial(_coverage, name=name))
        for name, method in METHODS.items()
        if name not in {*_CLAIMED, *_NO_PROMISE, _CODE}
    ),
    *(
        _own_check(
            f"printed.{name}",
            f"{words} is no confidence limit: its lower end at 95% is above ε in more than "
            f"{_rate_promised(METHODS[name]):.1%} of some audits",
            partial(_exceeds, name=name),
        )
        for name, words in _NO_PROMISE.items()
    ),
    _own_check(
        "dependent-cosines",
        f"on cosines of one run in {DIM:,} dimensions, and on every score of trainings with "
        f"{', '.join(each.name for each in bounds_trainings.TRAININGS)}, bounds are above ε in at most 5% of runs",
        _dependent,
    ),
    _own_check(
        "dependent-scores",
        "bounds of proven coverage are above ε in at most 5% of runs however the scores of a run depend on each other: "
        f"{', '.join(each.name for each in bounds_dependence.MECHANISMS)}",
        _dependent_scores,
    ),
    _own_check(
        "nominal",
        f"bounds that are not as printed keep what they promise at {', '.join(f'{x:.0%}' for x in _NOMINAL)}, from "
        f"{_SMALL} Gaussian scores",
        _nominal,
    ),
    _own_check(
        "gaussian-elsewhere",
        "the assumption of a Gaussian trade-off curve matters: with Laplace noise, normal-scores is above ε in more "
        "than 5% of audits",
        _elsewhere,
    ),
    _own_check(
        "default",
        f"of the bounds that need independent scores only, {DEFAULT} has the largest mean on Gaussian scores, relative "
        "to the largest of all in each cell",
        _best,
    ),
    FIRST_VERSION.claim(
        "section5.limit",
        "footnote 5",
        "For ε_lo to be a valid bound, its threshold must be chosen independently of the cosines",
        _at_chosen_thresholds,
    ),
    CANIFE.claim(
        "appendixC1.limit",
        "Appendix C.1",
        "The 95% lower limit at the largest ε̂ of the same scores is at most ε in at least 95% of audits",
        partial(_coverage, name="canife"),
    ),
    _own_check(
        f"printed.{_CODE}",
        "the 95% lower limit of CANIFE's public code (facebookresearch/canife) is at most ε in at least 95% of audits",
        partial(_coverage, name=_CODE),
    ),
    _own_check(
        "values",
        "bounds from a few scores have the values that other sums, roots and integrals give",
        bounds_values.values,
    ),
    _own_check(
        "posterior",
        f"posterior quantiles of ε have their probabilities under Jeffreys' prior, to {_POSTERIOR:g}",
        _posterior,
    ),
    *bounds_grid.CHECKS,
    _own_check(
        "printed.andrew-at-one",
        "`andrew` as printed, where ε is 1 at the δ asked: its 95% lower limit is above ε in more than 5% of audits",
        _at_one,
    ),
)
