"""Suite ``blindspots``: what random canaries see of mechanisms whose ε is known, and what the documents say of it.

The atlas has what every method says of every mechanism, and whether that is what the residual alone predicts.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.blindspots import diagnostics, mechanisms
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS, AtlasClaim, Mechanism
from canaryproof.verify.audit.blindspots.ranges import ALPHA
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.audit.levels import LEVEL, LOOKS, PART_LEVEL, POWER, looks
from canaryproof.verify.papers.check.documents import FINAL, FIRST_VERSION, REVIEWS, SUBMISSION
from canaryproof.verify.papers.check.power import visible_distance, visible_mean
from canaryproof.verify.papers.check.results import Check, Context, Design, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.check.verdicts import conclude, shares_hold
from canaryproof.verify.papers.records.evidence import AtlasCell, Diagnosis, MechanismAtlas, StatedPrivacy
from canaryproof.verify.papers.suites import atlas, blindspots_truths
from canaryproof.verify.papers.suites.atlas import Size, confined

# The one setting of the atlas: what is claimed.
EPSILON, DELTA, DIM = 3.0, 1e-5, 10**6
# A prediction may err by so much: a hundredth for the test of variances, as much for what is not of leading order.
TOLERANCE = 0.02
# Up to so much more than the claimed ε, as an estimate of unlimited canaries, is no more than honest noise gives.
MARGIN = 1.02
_SIZES = {
    Effort.SMOKE: (Size(100, 100, 3, 1, True), Size(1000, 100, 3, 1, False), Size(10_000, 50, 0, 0, False)),
    Effort.QUICK: (Size(100, 400, 8, 2, True), Size(1000, 400, 10, 2, False), Size(10_000, 100, 0, 0, False)),
    Effort.FULL: (Size(100, 2000, 100, 8, True), Size(1000, 100, 60, 8, True), Size(10_000, 1000, 12, 4, False)),
}
# Scores that are no single cosine cost so many times more.
_SEVERAL = 10
# Canaries of one part, as many as in the picture of the others.
_CONFINED = 1000


@cache
def claimed() -> AtlasClaim:
    """Return what every mechanism of the atlas claims."""
    return AtlasClaim(float(gaussian_mechanism.noise_multiplier(EPSILON, DELTA)), DELTA, DIM)


def sizes(mechanism: Mechanism, context: Context) -> tuple[Size, ...]:
    """Return how much is drawn of a mechanism, at each k."""
    chosen = _SIZES[context.level]
    if mechanism.scores is None and max(mechanism.weights(value).shape[1] for value in mechanism.values) == 1:
        return chosen
    return tuple(
        Size(size.count, max(size.few, size.runs // _SEVERAL), size.few, size.coins, size.exact) for size in chosen
    )


@cache
def cells(name: str, context: Context) -> tuple[AtlasCell, ...]:
    """Measure a mechanism at all its values and all k; values of one k share their randomness."""
    mechanism = MECHANISMS[name]
    return tuple(
        atlas.measure(mechanism, value, claimed(), size, context.key(f"blindspots/{name}/{size.count}"))
        for size in sizes(mechanism, context)
        for value in mechanism.values
    )


def diagnoses(name: str, context: Context) -> tuple[Diagnosis, ...]:
    """Measure the diagnostics, and predict alarms of 1,000 canaries that are confined to the first part."""
    mechanism, setting = MECHANISMS[name], claimed()
    if mechanism.draw is None:
        return ()
    rows = []
    for value in mechanism.values:
        key = context.key(f"blindspots/{name}/diagnosed")
        tests = atlas.diagnose(mechanism, value, setting, context.pick(400, 2000, 100), key)
        dims = mechanism.residual(value, setting, 1, np.random.default_rng(key)).dims
        alarm = None
        if len(dims) > 1:
            part, rng = replace(setting, dim=dims[0]), np.random.default_rng(key)
            alarm = atlas.predict(confined(mechanism, setting), value, part, _CONFINED, rng).alarm
        rows.append(Diagnosis(value, tests, alarm))
    return tuple(rows)


def wrong_rates(rows: Sequence[AtlasCell]) -> list[AtlasCell]:
    """Return cells whose rate of alarms is significantly farther from the predicted one than the tolerance."""
    allowed = 0.5 * LEVEL / (2 * len(rows))
    wrong = []
    for row in rows:
        runs, alarms = row.runs, round(row.rate[0] * row.runs)
        above = stats.binom.sf(alarms - 1, runs, min(1.0, row.predicted + TOLERANCE))
        below = stats.binom.cdf(alarms, runs, max(0.0, row.predicted - TOLERANCE))
        if min(above, below) < allowed:
            wrong.append(row)
    return wrong


def unseen(row: AtlasCell) -> bool:
    """Whether no number of canaries would tell a cell from a mechanism that is what it claims."""
    return row.unlimited[1] <= MARGIN * EPSILON


def wrong_bounds(rows: Sequence[AtlasCell]) -> list[tuple[AtlasCell, str]]:
    """Return cells that nothing can be seen of, with bounds that raise alarms significantly too often."""
    pairs = [(row, name) for row in rows if unseen(row) for name in (*atlas.BOUNDS, *atlas.COIN_BOUNDS)]
    shown = [(row, name, row.methods[name]) for row, name in pairs if name in row.methods]
    allowed = 0.5 * LEVEL / max(1, len(shown))
    return [(row, name) for row, name, share in shown if stats.binom.sf(share.alarms - 1, share.runs, ALPHA) < allowed]


def judge(context: Context, name: str) -> Outcome:
    """Judge a mechanism's row of the atlas."""
    mechanism = MECHANISMS[name]
    rows = cells(name, context)
    rates, bounds = wrong_rates(rows), wrong_bounds(rows)
    farthest = max(rows, key=lambda row: abs(row.rate[0] - row.predicted))
    least = min(row.runs for row in rows)
    finding = (
        f"{len(rates)} of {len(rows)} rates are off by more than {TOLERANCE:g}, and {len(bounds)} bounds raise false "
        f"alarms too often. The largest difference is {farthest.rate[0]:.3f} for {farthest.predicted:.3f} "
        f"predicted (k = {farthest.count:,}, parameter {farthest.value:g}, {farthest.runs:,} audits)"
    )
    visible = TOLERANCE + 0.5 * visible_mean(least, 0.5 * LEVEL / len(rows))
    evidence = MechanismAtlas(
        title=mechanism.title,
        parameter=mechanism.parameter,
        claimed=StatedPrivacy(EPSILON, DELTA, claimed().noise_multiplier),
        dim=claimed().dim,
        reason=mechanism.truth(_broken(mechanism), claimed()).reason,
        leading_order=tuple(sorted({row.count for row in rows if not row.exact})),
        margin=MARGIN,
        cells=rows,
        diagnosed=diagnoses(name, context),
    )
    return Outcome(
        Verdict.REFUTED if rates or bounds else Verdict.CONFIRMED,
        finding,
        to_document(evidence),
        Design(
            "the rate of alarms of adaptive is the predicted one, and that of bounds at most 5% where nothing is seen",
            LEVEL,
            f"a rate is {visible:.2g} off in the smallest cell",
            POWER,
            least,
        ),
    )


def _broken(mechanism: Mechanism) -> float:
    """Return the value of the largest ε, the last of several."""
    return max(reversed(mechanism.values), key=lambda value: mechanism.truth(value, claimed()).low)


def _statement(mechanism: Mechanism) -> str:
    return (
        f"{mechanism.title}: the default estimator's rate of alarms is as predicted, to {TOLERANCE:g}, and that of "
        f"false alarms of valid bounds at most {ALPHA:.0%}"
    )


# The diagnostics' levels and power, with residuals in coordinates.


# At which the diagnostics are used here.
_ALPHA = 0.05
_SIGMA = 0.7
_DIMS = (20, 60)
_DIM = sum(_DIMS)
_ROUNDS = 4
_DATA_NORM = 8.0


def _p_values(residuals: Array, data_norm: float = 0.0) -> dict[str, Array]:
    """Test residuals of several rounds, shape (runs, rounds, d)."""
    squares = residuals**2
    parts = np.stack([part.sum(axis=(1, 2)) for part in np.split(squares, [_DIMS[0]], axis=2)], axis=1)
    dims = tuple(_ROUNDS * dim for dim in _DIMS)
    gram = residuals @ residuals.swapaxes(1, 2)
    return {
        "norm": diagnostics.norm_p_value(squares.sum(axis=(1, 2)), _SIGMA, _ROUNDS * _DIM),
        "part-norms": diagnostics.part_norms_p_value(parts, _SIGMA, dims),
        "rounds": diagnostics.rounds_p_value(gram, _SIGMA, _DIM, data_norm),
    }


def _noise(runs: int, rng: np.random.Generator) -> Array:
    return np.asarray(_SIGMA * rng.standard_normal((runs, _ROUNDS, _DIM)))


def _level(context: Context) -> Outcome:
    """Compare p-values without data with their laws."""
    runs = context.pick(4000, 40_000, 1000)
    p_values = _p_values(_noise(runs, np.random.default_rng(context.key("blindspots/diagnostics/level"))))
    # Twice the smaller of two uniform numbers, where it is below 1.
    smaller = p_values["part-norms"][p_values["part-norms"] < 1.0]
    p_values["part-norms"] = (1.0 - (1.0 - 0.5 * smaller) ** 2) / 0.75
    tests = {name: float(stats.kstest(p, "uniform").pvalue) for name, p in p_values.items()}
    # More than half of the runs are left in each.
    visible = visible_distance(runs // 2, PART_LEVEL / len(tests))
    return shares_hold(tests, runs, "p-values have the laws stated", f"{visible:.2g}", PART_LEVEL)


def _with_data(context: Context) -> Outcome:
    """Count alarms where the same data are in every round, on the first axis, and the tests know their norm."""
    runs = context.pick(4000, 40_000, 1000)
    residuals = _noise(runs, np.random.default_rng(context.key("blindspots/diagnostics/data")))
    residuals[:, :, 0] += _DATA_NORM
    tests = {
        name: float(stats.binom.sf(int((p <= _ALPHA).sum()) - 1, runs, _ALPHA))
        for name, p in _p_values(residuals, _DATA_NORM).items()
    }
    critical = int(stats.binom.isf(PART_LEVEL / len(tests), runs, _ALPHA)) + 1
    visible = float(stats.beta.ppf(POWER, critical, runs - critical + 1)) - _ALPHA
    return shares_hold(tests, runs, f"alarms come in at most {_ALPHA:.0%} of runs", f"{visible:.2g}", PART_LEVEL)


def _seen(context: Context) -> Outcome:
    """Compare rates of alarms with those computed: noise short by 3%, or on the first part by 10%, or on a subspace."""
    runs = context.pick(4000, 40_000, 1000)
    rng = np.random.default_rng(context.key("blindspots/diagnostics/power"))
    short, layer = 0.97, 0.9
    part = _noise(runs, rng)
    part[:, :, : _DIMS[0]] *= layer
    small, large = (stats.chi2(_ROUNDS * dim) for dim in _DIMS)
    whole = stats.chi2(_ROUNDS * _DIM)
    expected = {
        "norm": float(whole.cdf(whole.ppf(_ALPHA) / short**2)),
        "part-norms": float(1.0 - small.sf(small.ppf(0.5 * _ALPHA) / layer**2) * large.sf(large.ppf(0.5 * _ALPHA))),
    }
    p_values = {"norm": _p_values(short * _noise(runs, rng))["norm"], "part-norms": _p_values(part)["part-norms"]}
    tests = {
        name: float(stats.binomtest(int((p_values[name] <= _ALPHA).sum()), runs, rate).pvalue)
        for name, rate in expected.items()
    }
    visible = math.sqrt(math.log(2.0 * len(tests) / PART_LEVEL) / (2.0 * runs)) + math.sqrt(
        math.log(1.0 / (1.0 - POWER)) / (2.0 * runs)
    )
    outcome = shares_hold(tests, runs, "alarms come as often as computed", f"{visible:.2g}", PART_LEVEL)
    rates = ", ".join(f"{name} {rate:.1%}" for name, rate in expected.items())
    return replace(outcome, finding=f"{outcome.finding}; computed rates: {rates}")


def _check(name: str, statement: str, decide: Callable[[Context], Outcome]) -> Check:
    source = "verify.audit.blindspots.diagnostics"
    return Check(f"blindspots.diagnostics.{name}", Subject.IMPLEMENTATION, source, statement, decide)


# The documents' sentences on what random canaries detect and miss are judged on the atlas's mechanisms.
#
# A mechanism is missed where the default estimator raises an alarm in less than a tenth of audits by 1,000
# canaries. It is seen where alarms come in more than nine tenths. A test decides on either. In between nothing is
# claimed.


_COUNT = 1000
_MISSED, _SEEN = 0.1, 0.9
# A case has at most this number of atlas. With 2,000, one seed of two left faults undecided that raise few more alarms
# than an honest mechanism. For the most visible of those that are to be missed 6% are predicted.
_RUNS = 10_000
_MOST = 0.07
# Sizes of the attack on coarse noise.
_ATTACKED, _COORDINATES, _BITS = 200, 1000, 24

# Mechanisms and their parameters.
Cases = tuple[tuple[str, float], ...]


def measured(context: Context, cases: Cases) -> list[dict[str, Any]]:
    """Count alarms of some mechanisms until it is plain which are missed and which are seen, all at one level."""
    rows = []
    level = LEVEL / (LOOKS * len(cases))
    for name, value in cases:
        mechanism, setting = MECHANISMS[name], claimed()
        key = context.key(f"blindspots/claims/{name}/{value}")
        alarms, before, missed, seen = 0, 0, False, False
        for runs in looks(_RUNS):
            size = Size(_COUNT, runs - before, 0, 0, False)
            alarms, before = alarms + atlas.alarms_of(mechanism, value, setting, size, key.spawn(1)[0]), runs
            missed = stats.binom.cdf(alarms, runs, _MISSED) < level
            seen = stats.binom.sf(alarms - 1, runs, _SEEN) < level
            if missed or seen:
                break
        truth = mechanism.truth(value, setting)
        limit = atlas.predict(mechanism, value, setting, _COUNT, np.random.default_rng(key.spawn(1)[0])).epsilon
        rows.append(
            {
                "mechanism": name,
                "value": value,
                "epsilon": truth.low,
                "unlimited": limit,
                "alarms": alarms,
                "runs": runs,
                "outcome": "missed" if missed else "seen" if seen else "between",
            }
        )
    return rows


def _words(rows: Iterable[dict[str, Any]]) -> str:
    return "; ".join(
        f"{row['mechanism']} ({MECHANISMS[row['mechanism']].parameter}: {row['value']:g}) has ε = "
        f"{row['epsilon']:.3g}, ε̂ tends to {row['unlimited']:.3g}, and {row['alarms'] / row['runs']:.1%} of audits "
        "raise an alarm"
        for row in rows
    )


def _design(rows: list[dict[str, Any]]) -> Design:
    # The last look alone counts here.
    critical = stats.binom.ppf(LEVEL / (LOOKS * len(rows)), _RUNS, _MISSED) - 1
    return Design(
        f"alarms come in more than {_MISSED:.0%} of audits",
        LEVEL,
        f"in {_MOST:.0%} or less",
        float(stats.binom.cdf(critical, _RUNS, _MOST)),
        _RUNS,
    )


def _judge(
    context: Context,
    missed: Cases,
    seen: Cases,
    verdict: Verdict,
    words: str,
) -> Outcome:
    """Judge what follows if some mechanisms whose ε is above what is claimed are missed, and others are seen."""
    rows = measured(context, (*missed, *seen))
    expected = ["missed"] * len(missed) + ["seen"] * len(seen)
    as_said = [row["outcome"] for row in rows] == expected
    private = all(row["epsilon"] > claimed().epsilon for row in rows[: len(missed)])
    return conclude(
        verdict if as_said and private else Verdict.INCONCLUSIVE,
        f"{words}. Where ε is to be {claimed().epsilon:g}, {_words(rows)}",
        _design(rows),
        cases=rows,
    )


def attack(context: Context) -> dict[str, Any]:
    """Attack releases in single precision with a client and without it: how often each is accused."""
    rng = np.random.default_rng(context.key("blindspots/attack"))
    sigma = claimed().noise_multiplier
    others = rng.standard_normal(_COORDINATES)
    client = np.full(_COORDINATES, _COORDINATES**-0.5)
    accused = {
        name: int(
            mechanisms.are_impossible_alone(
                mechanisms.coarse_release(vector, _BITS, sigma, rng, _ATTACKED), others, _BITS, sigma
            ).sum()
        )
        for name, vector in (("with", others + client), ("without", others))
    }
    return {"releases": _ATTACKED, "coordinates": _COORDINATES, "bits": _BITS, **accused}


def _refutation(context: Context) -> Outcome:
    rows = measured(context, (("coarse-noise", float(_BITS)), ("unclipped", 10.0)))
    won = attack(context)
    succeeds = won["with"] == _ATTACKED and won["without"] == 0
    low = all(row["outcome"] == "missed" for row in rows)
    finding = (
        f"an attack on noise from {_BITS}-bit uniforms in single precision finds a client in {won['with']} of "
        f"{_ATTACKED} releases, with {won['without']} false alarms, though ε̂ is as claimed: where ε is to be "
        f"{claimed().epsilon:g}, {_words(rows)}"
    )
    verdict = Verdict.CONFIRMED if succeeds and low else Verdict.INCONCLUSIVE
    return conclude(verdict, finding, _design(rows), cases=rows, attack=won)


def _on(missed: Cases, seen: Cases, verdict: Verdict, words: str) -> Callable[[Context], Outcome]:
    return partial(_judge, missed=missed, seen=seen, verdict=verdict, words=words)


_REVIEWS = replace(REVIEWS, name="reviews of Andrew et al.")


CHECKS: tuple[Check, ...] = (
    *blindspots_truths.CHECKS,
    _check(
        "level", "without data, the diagnostics' p-values have exactly the laws that they are claimed to have", _level
    ),
    _check(
        "data", f"with the same data of a known norm in every round, alarms at {_ALPHA:.0%} come no oftener", _with_data
    ),
    _check("power", "norms of noise that is too small raise alarms as often as chi-square laws say", _seen),
    *(
        Check(
            f"blindspots.atlas.{name}",
            Subject.IMPLEMENTATION,
            "verify.audit.blindspots",
            _statement(mechanism),
            partial(judge, name=name),
        )
        for name, mechanism in MECHANISMS.items()
    ),
    *(
        document.claim(
            f"{section}.any-user",
            section.replace("section", "Section "),
            "A low ε̂ is no formal bound, but evidence that who attacks by cosines has a hard time to tell the presence "
            f"of any given user{released}",
            _on(
                (("unclipped", 10.0), ("memorised", 10.0)),
                (),
                Verdict.QUALIFIED,
                "only for users who are treated as canaries are: canaries do not show a user whose vector is unclipped "
                "or memorised",
            ),
        )
        for document, section, released in (
            (FINAL, "section4", " from the final model"),
            (SUBMISSION, "section4", " from the final model"),
            (FIRST_VERSION, "section4.1", ""),
        )
    ),
    *(
        document.claim(
            f"{section}.same-distribution",
            section.replace("section", "Section "),
            "On the pattern of participation the only assumption is that canaries can be inserted with the same "
            "distribution as clients",
            _on(
                (("dilution", 1.0), ("dilution", 4.0)),
                (("dilution", 0.0),),
                Verdict.CONFIRMED,
                "on participation it is the only one; of the data it says nothing, and half the noise is missed where "
                "their sum is as long as the noise",
            ),
        )
        for document, section in ((FINAL, "section4"), (SUBMISSION, "section4"))
    ),
    Check(
        "blindspots.refutation",
        Subject.IMPLEMENTATION,
        "verify.audit.blindspots",
        "an attack succeeds on a mechanism for which the estimate is low, as Section 6 of Andrew et al. asks for",
        _refutation,
    ),
    FIRST_VERSION.claim(
        "section4.worst-case",
        "Section 4",
        "In high dimension, canaries in random directions are in some sense the worst case",
        _on(
            (("no-noise-on-a-share", 0.01), ("low-rank", 0.1)),
            (("no-noise-on-a-share", 0.9),),
            Verdict.QUALIFIED,
            "only where the noise is the same in all directions: random directions see its mean over all of them",
        ),
    ),
    FIRST_VERSION.claim(
        "section4.unusual",
        "Section 4",
        "The intention is evidence that an attacker cannot infer the presence of any user, no matter how unusual",
        _on(
            (("unclipped", 10.0), ("memorised", 10.0)),
            (),
            Verdict.QUALIFIED,
            "only for users who are treated as canaries are: canaries do not show a user whose vector is unclipped or "
            "memorised",
        ),
    ),
    _REVIEWS.claim(
        "attacks.generator",
        "ZyjW, and the authors' answer",
        "The method does not detect that the noise comes from a generator that is not cryptographically secure",
        _on(
            tuple(("few-states", bits) for bits in (64.0, 32.0, 16.0, 0.0)),
            (),
            Verdict.CONFIRMED,
            "scores have exactly the law that they have with good noise",
        ),
    ),
    _REVIEWS.claim(
        "attacks.precision",
        "ZyjW, and the authors' answer",
        "The method does not detect attacks on the finite precision of floating point numbers",
        _on(
            (("coarse-noise", 24.0), ("coarse-noise", 16.0), ("coarse-noise", 8.0)),
            (("coarse-noise", 2.0),),
            Verdict.CONFIRMED,
            "at 24 bits, those of single precision, and at 16 and 8 alarms are as rare as with exact noise; noise of 2 "
            "bits, which no floating point number has, is seen",
        ),
    ),
    _REVIEWS.claim(
        "average",
        "meta-review",
        "The method estimates an average ε and may fail to detect violations that do not affect all data alike",
        _on(
            (("unclipped", 10.0), ("memorised", 10.0), ("released-outright", 1e-3), ("no-noise-on-a-share", 0.01)),
            (("less-noise", 0.5),),
            Verdict.CONFIRMED,
            "violations for one client, one event or one layer are missed, and those for all are seen",
        ),
    ),
    _REVIEWS.claim(
        "laplace",
        "the authors' answer",
        "For the Laplace mechanism, canaries could perhaps be sampled from the vectors of unit ℓ₁ norm, to which its "
        "authors have not given much thought",
        _on(
            (("laplace", 0.1), ("laplace-spread", 10_000.0)),
            (("laplace-spread", 1.0), ("laplace-spread", 3.0)),
            Verdict.QUALIFIED,
            "only by a law on those of few coordinates; uniformly from all, their Euclidean norm is so small that a "
            "tenth of the noise is missed",
        ),
    ),
)
