"""The diagnostics' levels and power, with residuals in coordinates."""

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.verify.blindspots import diagnostics
from canaryproof.verify.error_control import POWER, visible_distance
from canaryproof.verify.results import Check, Context, Design, Outcome, Subject, Verdict

Array = NDArray[np.float64]

# Of each check: all its tests, Bonferroni.
LEVEL = 1e-7
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
    runs = context.pick(4000, 40_000)
    found = _p_values(_noise(runs, np.random.default_rng(context.key("blindspots/diagnostics/level"))))
    # Twice the smaller of two uniform numbers, where it is below 1.
    smaller = found["part-norms"][found["part-norms"] < 1.0]
    found["part-norms"] = (1.0 - (1.0 - 0.5 * smaller) ** 2) / 0.75
    tests = {name: float(stats.kstest(p, "uniform").pvalue) for name, p in found.items()}
    # More than half of the runs are left in each.
    return _judged(tests, runs, "p-values have the laws stated", visible_distance(runs // 2, LEVEL / len(tests)))


def _with_data(context: Context) -> Outcome:
    """Count alarms where the same data are in every round, on the first axis, and the tests are told their norm."""
    runs = context.pick(4000, 40_000)
    residuals = _noise(runs, np.random.default_rng(context.key("blindspots/diagnostics/data")))
    residuals[:, :, 0] += _DATA_NORM
    tests = {
        name: float(stats.binom.sf(int((p <= _ALPHA).sum()) - 1, runs, _ALPHA))
        for name, p in _p_values(residuals, _DATA_NORM).items()
    }
    critical = int(stats.binom.isf(LEVEL / len(tests), runs, _ALPHA)) + 1
    visible = float(stats.beta.ppf(POWER, critical, runs - critical + 1)) - _ALPHA
    return _judged(tests, runs, f"alarms come in at most {_ALPHA:.0%} of runs", visible)


def _seen(context: Context) -> Outcome:
    """Compare rates of alarms with those computed: noise short by 3%, or on the first part by 10%, or on a subspace."""
    runs = context.pick(4000, 40_000)
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
    found = {"norm": _p_values(short * _noise(runs, rng))["norm"], "part-norms": _p_values(part)["part-norms"]}
    tests = {
        name: float(stats.binomtest(int((found[name] <= _ALPHA).sum()), runs, rate).pvalue)
        for name, rate in expected.items()
    }
    visible = math.sqrt(math.log(2.0 * len(tests) / LEVEL) / (2.0 * runs)) + math.sqrt(
        math.log(1.0 / (1.0 - POWER)) / (2.0 * runs)
    )
    outcome = _judged(tests, runs, "alarms come as often as computed", visible)
    rates = ", ".join(f"{name} {rate:.1%}" for name, rate in expected.items())
    return Outcome(outcome.verdict, f"{outcome.finding}; computed rates: {rates}", outcome.evidence, outcome.design)


def _judged(p_values: Mapping[str, float], runs: int, null: str, visible: float) -> Outcome:
    label, smallest = min(p_values.items(), key=lambda item: item[1])
    holds = smallest >= LEVEL / len(p_values)
    finding = f"smallest of {len(p_values)} p-values {smallest:.2g} ({label}; {runs:,} runs)"
    evidence = {"runs": runs, "level": LEVEL, "p_values": dict(p_values)}
    design = Design(null, LEVEL, f"a share of runs is off by {visible:.2g}", POWER, runs)
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, evidence, design)


def _check(name: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:
    source = "verify.blindspots.diagnostics"
    return Check(f"blindspots.diagnostics.{name}", Subject.IMPLEMENTATION, source, statement, judge)


CHECKS = (
    _check(
        "level", "without data, the diagnostics' p-values have exactly the laws that they are claimed to have", _level
    ),
    _check(
        "data", f"with the same data of a known norm in every round, alarms at {_ALPHA:.0%} come no oftener", _with_data
    ),
    _check("power", "norms of noise that is too small raise alarms as often as chi-square laws say", _seen),
)
