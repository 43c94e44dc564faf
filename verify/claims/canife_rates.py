"""CANIFE's per-round ε̂ from counted errors: its maximum, its infinities, its confidence limits (Section 3.4, C.1)."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels import binomial
from canaryproof.kernels.certified import binomial as certified
from canaryproof.verify.claims.canife_numbers import CAP, TRIALS, fixed, prints
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.results import Context, Outcome, Verdict

_PAPER = "Maddock et al., arXiv 2210.02912, "
# Half the trials have the canary, half do not (Section 4.1).
HALF = TRIALS // 2
# δ by the name of the reading; the first is the text's.
_DELTAS = {
    "δ = 1/n": Fraction(1, TRIALS),
    "δ = 1e-5, the public code's": Fraction(1, 10**5),
    "δ = 0": Fraction(0),
    "δ = 2/n": Fraction(1, HALF),
}
# What a count of zero makes of ε̂.
_CONVENTIONS = {"a zero count makes it infinite": 1, "terms with a zero count are left out": 0}


def largest(delta: Fraction, least_errors: int) -> float:
    """Return the largest finite ε̂ of 50 trials with and 50 without the canary, over all counts of errors.

    Parameters
    ----------
    delta
        δ of the formula.
    least_errors
        Errors that both counts have at least: 1 where a zero makes ε̂ infinite, 0 where its term is left out.
    """
    # (1 − δ − one)/other falls in both rates, so that the fewest errors have the largest, with at least one below.
    return math.log((1 - delta - Fraction(least_errors, HALF)) * HALF)


def lower_limit(false_positives: int, false_negatives: int) -> float:
    """Return the 95% lower limit of ε̂ at δ = 1/n: the formula's value at the upper limits of both rates.

    Parameters
    ----------
    false_positives, false_negatives
        Counted errors of 50 trials each.
    """
    fp, fn = (certified.upper(count, HALF, 0.975).hi for count in (false_positives, false_negatives))
    return max(math.log((1.0 - 1.0 / TRIALS - one) / other) for one, other in ((fp, fn), (fn, fp)))


def judge_cap(printed: str) -> Outcome:
    """Judge the printed maximum of ε̂ for 100 trials."""
    caps = {
        f"{delta_name}, {convention}": largest(delta, least)
        for delta_name, delta in _DELTAS.items()
        for convention, least in _CONVENTIONS.items()
    }
    text = next(iter(_DELTAS))
    holds = [name for name, cap in caps.items() if prints(cap, printed)]
    listed = "; ".join(f"{name}: {cap:.4f}" for name, cap in caps.items())
    lowest = lower_limit(0, 0)
    limits = f"; at perfect separation the 95% limits are {lowest:.2f} and infinity"
    evidence = {"caps": caps, "printed": float(printed), "lower_limit": lowest}
    if any(name.startswith(text) for name in holds):
        return found(Verdict.CONFIRMED, listed + limits, **evidence)
    if holds:
        return found(Verdict.QUALIFIED, f"only with {' or with '.join(holds)} ({listed}){limits}", **evidence)
    return found(Verdict.REFUTED, f"no reading gives {printed} ({listed}){limits}", **evidence)


def _judge_infinite(_: Context) -> Outcome:
    """Decide whether ε̂ is infinite at perfect accuracy only."""
    # Neither the highest score with the canary nor the lowest without: then no threshold has a count of zero with a
    # positive numerator. With a canary that does nothing all orders of the scores are equally likely.
    finite = Fraction(1, 2) * Fraction(HALF, TRIALS - 1)
    cap = largest(_DELTAS["δ = 1/n"], 0)
    finding = (
        f"only where terms with a zero count are left out, and then the largest finite value is {cap:.4f} at δ = 1/n "
        f"and not {CAP}; read as printed, with 1/0 infinite, one count of zero suffices: at 99% accuracy, and at the "
        f"best threshold of a canary that does nothing with probability {float(1 - finite):.3f}"
    )
    verdict = Verdict.CONFIRMED if finite == 1 else Verdict.QUALIFIED
    return found(verdict, finding, infinite_without_effect=float(1 - finite), cap=cap)


def _limits(counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return binomial.interval(counts, HALF, 0.95)


def _epsilon(fp: NDArray[np.float64], fn: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """ε̂ of rates, infinite where one is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.log(np.maximum(1.0 - delta - one, 0.0) / other) for one, other in ((fp, fn), (fn, fp))]
    return np.asarray(np.maximum(*(np.nan_to_num(term, nan=-np.inf, posinf=np.inf) for term in terms)))


def coverage(delta: float, rates: Sequence[float]) -> dict[str, Any]:
    """Compute how often the limits of ε̂ hold the ε̂ of the true rates, exactly, at a threshold chosen beforehand.

    Parameters
    ----------
    delta
        δ of the formula.
    rates
        True rates of error to try, each pair of them.
    """
    counts = np.arange(HALF + 1)
    low, high = _limits(counts)
    lower = _epsilon(high[:, None], high[None, :], delta)
    upper = _epsilon(low[:, None], low[None, :], delta)
    worst: dict[str, Any] = {"both": 1.0, "lower": 1.0}
    for fp in rates:
        for fn in rates:
            true = float(_epsilon(np.asarray(fp), np.asarray(fn), delta))
            weights = np.outer(stats.binom.pmf(counts, HALF, fp), stats.binom.pmf(counts, HALF, fn))
            above = float(weights[lower <= true].sum())
            both = float(weights[(lower <= true) & (true <= upper)].sum())
            if both < worst["both"]:
                worst |= {"both": both, "rates": (fp, fn)}
            worst["lower"] = min(worst["lower"], above)
    return worst


def selected_miss(delta: float, runs: int, rng: np.random.Generator) -> int:
    """Count how often the lower limit lies above 0 for a canary that does nothing, at the threshold of the largest ε̂.

    Parameters
    ----------
    delta
        δ of the formula; where a canary does nothing, ε = 0 whatever δ.
    runs
        Audits to simulate.
    rng
        Source of the random orders of 50 scores with and 50 without.
    """
    with_canary = rng.permuted(np.tile(np.arange(TRIALS) < HALF, (runs, 1)), axis=1)
    # Above threshold i are the scores from i on: without the canary they are false positives.
    fn = np.cumsum(with_canary, axis=1)
    fp = HALF - np.cumsum(~with_canary, axis=1)
    estimates = _epsilon(fp / HALF, fn / HALF, delta)
    # The largest finite one: where a count is zero the papers' figures show no limits.
    estimates[~np.isfinite(estimates)] = -np.inf
    best = np.argmax(estimates, axis=1), np.arange(runs)
    _, high = _limits(np.arange(HALF + 1))
    lower = _epsilon(high[fp[best[1], best[0]]], high[fn[best[1], best[0]]], delta)
    return int(np.count_nonzero(lower > 0.0))


def _judge_limits(context: Context) -> Outcome:
    delta, runs, level, allowed = 1.0 / TRIALS, context.pick(2000, 20000), 1e-6, 0.05
    worst = coverage(delta, [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
    missed = selected_miss(delta, runs, np.random.default_rng(context.key("canife/limits")))
    # One-sided test of "misses at most 5%" at the level, and its power were it 10%.
    critical = int(stats.binom.isf(level, runs, allowed)) + 1
    power = float(stats.binom.sf(critical - 1, runs, 2 * allowed))
    finding = (
        f"at a threshold chosen beforehand they hold in at least {worst['both']:.4f} of the cases (exactly, over 81 "
        f"pairs of rates; two 95% intervals guarantee 90%); at the threshold of the largest finite ε̂ the lower limit "
        f"of a canary without effect is above 0 in {missed} of {runs:,} audits, no sign of more than 5%"
    )
    evidence = {"worst": worst, "runs": runs, "missed": missed, "level": level, "critical": critical, "power": power}
    holds = worst["both"] >= 1.0 - allowed and missed < critical
    return found(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, **evidence)


def _judge_infinite_limit(_: Context) -> Outcome:
    low, _high = _limits(np.arange(HALF + 1))
    upper = _epsilon(low[:, None], low[None, :], 1.0 / TRIALS)
    zero = (np.arange(HALF + 1)[:, None] == 0) | (np.arange(HALF + 1)[None, :] == 0)
    infinite = np.isinf(upper) & (upper > 0)
    one = float(upper[1, 1])
    # A rate at its upper end leaves a numerator of 0 for one term, and the other is infinite all the same.
    verdict = Verdict.CONFIRMED if np.array_equal(infinite, zero) else Verdict.REFUTED
    return found(
        verdict,
        f"the upper limit is infinite exactly where a count is zero ({int(zero.sum())} of {zero.size} pairs of "
        f"counts); one error of each kind has the limit {one:.2f}",
        pairs=int(infinite.sum()),
        one_error_each=one,
    )


CHECKS = (
    claim(
        "canife.section3.4.cap",
        _PAPER + "Section 3.4",
        f"With n = 100 trials the per-round ε̂ is at most {CAP} (δ = 1/n in the sentence after)",
        fixed(judge_cap, CAP),
    ),
    claim(
        "canife.appendixC5.infinite",
        _PAPER + "Appendix C.5",
        "The per-round ε̂ is infinite only where the attack's accuracy reaches 100%",
        _judge_infinite,
    ),
    claim(
        "canife.appendixC1.limits",
        _PAPER + "Appendix C.1",
        "The per-round ε̂, maximal over thresholds, has 95% confidence intervals by Clopper and Pearson's method",
        _judge_limits,
    ),
    claim(
        "canife.figure4.infinite-limits",
        _PAPER + "Figure 4",
        "Some rounds have an infinite upper 95% limit",
        _judge_infinite_limit,
    ),
)
