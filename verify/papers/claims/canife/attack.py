"""CANIFE's attack on one model: its canary and loss, and the per-round ε̂ from counted errors (Section 3, C.1)."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels import binomial
from canaryproof.kernels.certified import binomial as certified
from canaryproof.verify.papers.check.documents import CANIFE
from canaryproof.verify.papers.check.results import Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import Printed, conclude, fixed, holds, number, prints
from canaryproof.verify.papers.claims.transcripts import Canife

# Clients' learning rates (Appendix B), and the clip norm that both loss and updates have.
RATES = {"CIFAR10": "0.01", "CelebA": "0.899", "Sent140": "5.75", "Shakespeare": "3"}
CLIP = Fraction(1)


def judge_norm(rates: Mapping[str, str]) -> Outcome:
    """Judge that a canary's gradient of norm C or more makes an update of norm C."""
    # One sample and one local epoch are one step: the update is the gradient times the rate, clipped to C.
    norms = {name: min(CLIP, Fraction(rate) * CLIP) for name, rate in rates.items()}
    takes = {name: CLIP / Fraction(rates[name]) for name, norm in norms.items() if norm < CLIP}
    short = ", ".join(
        f"{name} (rate {rates[name]}: ‖u_c‖ may be {float(norms[name]):g}, C takes a gradient of {float(least):.4g})"
        for name, least in takes.items()
    )
    full = ", ".join(name for name in rates if name not in takes)
    evidence: dict[str, Any] = {"least_norms": {name: float(norm) for name, norm in norms.items()}}
    if not takes:
        return conclude(holds(True), f"a step with rate 1 or more reaches C = 1: {full}", **evidence)
    return conclude(
        holds(False, full),
        f"only if the update is the gradient, clipped, or where the rate is at least 1 ({full or 'nowhere'}): as rate "
        f"times gradient not on {short}",
        **evidence,
    )


def judge_loss(clip: Fraction, other: Fraction) -> Outcome:
    """Judge that Algorithm 1 minimises the loss of equation (1), by the first terms' ratio at the text's C.

    The text fixes C = 1 below equation (1); the ratio at another C shows what that leaves out.
    """
    update, gradient = (Fraction(3, 5), Fraction(4, 5)), (Fraction(1), Fraction(2))

    def squared(factor: Fraction) -> Fraction:
        return sum((u * factor * g for u, g in zip(update, gradient, strict=True)), Fraction(0)) ** 2

    ratios = {value: squared(value) / squared(Fraction(1)) for value in (clip, other)}
    return conclude(
        holds(ratios[clip] == 1),
        f"at C = {clip}, which Section 3.3 fixes, its first term is that of equation (1) times {ratios[clip]}; at "
        f"C = {other} times {ratios[other]}, as Algorithm 1 has C·∇ℓ where equation (1) has ∇ℓ. The authors' public "
        "code (facebookresearch/canife, commit 8f4a9dd) has another loss by default: its first term is the clients' "
        "mean, not their sum, and of the gradient scaled to the norm C; it keeps the last iterate, as printed",
        ratios={str(value): float(ratio) for value, ratio in ratios.items()},
    )


# The per-round ε̂ from counted errors: its maximum, its infinities, the split of the trials (Section 3.4).

# δ by the name of the reading; the first is the text's.
_DELTAS = {
    "δ = 1/n": Fraction(1, Canife.TRIALS),
    "δ = 1e-5, the public code's": Fraction(1, 10**5),
    "δ = 0": Fraction(0),
    "δ = 2/n": Fraction(1, Canife.HALF),
}
# The least number of errors by how a count of zero is treated.
_LEFT_OUT = "terms with a zero count are left out"
_CONVENTIONS = {"a zero count makes it infinite": 1, _LEFT_OUT: 0}


def largest(delta: Fraction, least_errors: int) -> float:
    """Return the largest finite ε̂ of 50 trials with and 50 without the canary, over all counts of errors."""
    # (1 − δ − one)/other falls in both rates, so that the fewest errors have the largest, with at least one below.
    return math.log((1 - delta - Fraction(least_errors, Canife.HALF)) * Canife.HALF)


def lower_limit(false_positives: int, false_negatives: int) -> float:
    """Return the 95% lower limit of ε̂ at δ = 1/n: the formula's value at the upper limits of both rates."""
    fp, fn = (certified.upper(count, Canife.HALF, 0.975).hi for count in (false_positives, false_negatives))
    return max(math.log((1.0 - 1.0 / Canife.TRIALS - rate) / other) for rate, other in ((fp, fn), (fn, fp)))


def judge_cap(printed: str) -> Outcome:
    """Judge the printed maximum of ε̂ for 100 trials."""
    caps = {
        f"{delta_name}, {convention}": largest(delta, least)
        for delta_name, delta in _DELTAS.items()
        for convention, least in _CONVENTIONS.items()
    }
    text = next(iter(_DELTAS))
    stated = [name for name in caps if name.startswith(text)]
    judged = number(printed, caps, stated)
    holding = [name for name, cap in caps.items() if prints(cap, printed)]
    listed = "; ".join(f"{name}: {cap:.4f}" for name, cap in caps.items())
    lowest = lower_limit(0, 0)
    limits = f"; at perfect separation the 95% limits are {lowest:.2f} and infinity"
    finding = listed + limits
    if judged.verdict is Verdict.QUALIFIED:
        at_text = " or ".join(f"{caps[name]:.4f}" for name in stated)
        both = [name for name in holding if name.endswith(_LEFT_OUT)]
        finding = (
            f"at the stated {text} {at_text}, never {printed}; only with {' or with '.join(holding)}{limits}. "
            f"Appendix C.5's infinity at 100% alone goes with {both[0] if both else 'none of these'}"
        )
    elif judged.verdict is Verdict.REFUTED:
        finding = f"no reading gives {printed} ({listed}){limits}"
    return conclude(judged.verdict, finding, caps=caps, lower_limit=lowest, **judged.evidence)


def _judge_infinite() -> Outcome:
    """Say what it takes that ε̂ is infinite at perfect accuracy only, which was seen in one training."""
    # Neither the highest score with the canary nor the lowest without: then no threshold has a count of zero with a
    # positive numerator. With a canary that does nothing all orders of the scores are equally likely.
    finite = Fraction(1, 2) * Fraction(Canife.HALF, Canife.TRIALS - 1)
    cap = largest(_DELTAS["δ = 1/n"], 0)
    fitting = " or ".join(name for name, delta in _DELTAS.items() if prints(largest(delta, 0), Canife.CAP))
    finding = (
        f"of one training, whose counted errors would decide. Where {_LEFT_OUT} ε̂ is infinite at 100% alone, and then "
        f"the largest finite value is {cap:.4f} at δ = 1/n; Section 3.4's {Canife.CAP} takes {fitting}. With 1/0 "
        "infinite one zero suffices, which even a canary without effect has with probability "
        f"{float(1 - finite):.3f}"
    )
    # Where counts of zero are infinite, accuracies below 100% can be, too.
    verdict = Verdict.CONFIRMED if finite == 1 else Verdict.INCONCLUSIVE
    return conclude(verdict, finding, infinite_without_effect=float(1 - finite), cap=cap)


def judge_insertion(inserted: int) -> Outcome:
    """Judge that so many of the trials are half of them, and compute the maximum of ε̂ for other parts."""
    caps = {count: split_cap(count, Canife.TRIALS - count) for count in range(1, Canife.TRIALS)}
    equal = float(stats.binom.pmf(Canife.HALF, Canife.TRIALS, 0.5))
    return conclude(
        holds(2 * inserted == Canife.TRIALS),
        f"as exactly half of the trials, as Section 4.1 has it, and the public code, which alternates: independently "
        f"with probability 1/2 that would have probability {equal:.3f}, and at δ = 1/n ε̂ could be more than "
        f"{caps[Canife.HALF]:.2f} ({split_cap(Canife.HALF + 5, Canife.HALF - 5):.2f} for 55 and 45, "
        f"{max(caps.values()):.2f} at the most)",
        exactly_half=equal,
        caps=caps,
    )


def split_cap(inserted: int, others: int) -> float:
    """Return the largest finite ε̂ at δ = 1/n with at least one error of each kind."""
    ratios = [
        (1.0 - Canife.SCORES_DELTA - 1.0 / count) * other for count, other in ((inserted, others), (others, inserted))
    ]
    return math.log(max(ratios))


# The per-round ε̂ as a statistic: its confidence limits, and the choice of its threshold (Section 3.4, C.1).


def _limits(counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return binomial.interval(counts, Canife.HALF, 0.95)


def estimate(fp: NDArray[np.float64], fn: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """Return ε̂ of rates of error, infinite where one is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.log(np.maximum(1.0 - delta - rate, 0.0) / other) for rate, other in ((fp, fn), (fn, fp))]
    return np.asarray(np.maximum(*(np.nan_to_num(term, nan=-np.inf, posinf=np.inf) for term in terms)))


def coverage(delta: float, rates: Sequence[float]) -> dict[str, Any]:
    """Compute how often the limits of ε̂ hold the ε̂ of the true rates, exactly, at a threshold chosen beforehand."""
    counts = np.arange(Canife.HALF + 1)
    low, high = _limits(counts)
    lower = estimate(high[:, None], high[None, :], delta)
    upper = estimate(low[:, None], low[None, :], delta)
    worst: dict[str, Any] = {"both": 1.0, "lower": 1.0}
    for fp in rates:
        for fn in rates:
            true = float(estimate(np.asarray(fp), np.asarray(fn), delta))
            weights = np.outer(stats.binom.pmf(counts, Canife.HALF, fp), stats.binom.pmf(counts, Canife.HALF, fn))
            above = float(weights[lower <= true].sum())
            both = float(weights[(lower <= true) & (true <= upper)].sum())
            if both < worst["both"]:
                worst |= {"both": both, "rates": (fp, fn)}
            worst["lower"] = min(worst["lower"], above)
    return worst


class Selected(NamedTuple):
    """Law of the largest of the values that a rising threshold meets, for a canary that does nothing."""

    values: NDArray[np.float64]
    probabilities: NDArray[np.float64]


def selected(values: NDArray[np.float64]) -> Selected:
    """Compute the law of the largest finite value over all thresholds, all orders of the scores being equally likely.

    A threshold that rises from below all scores to above all walks from no false negatives to no false positives. The
    largest value stays below a number if and only if the walk keeps to the counts whose finite value does.
    """
    half = len(values) - 1
    levels = np.unique(values[np.isfinite(values)])
    allowed = ~np.isfinite(values) | (values <= levels[:, None, None])
    reached = np.zeros_like(allowed, dtype=np.float64)
    for fp in reversed(range(half + 1)):
        for fn in range(half + 1):
            before = np.full(levels.size, float((fp, fn) == (half, 0)))
            # The next score is a canary's with the share of canaries among the scores that are left.
            if fn > 0:
                before += reached[:, fp, fn - 1] * (half - fn + 1) / (half - fn + 1 + fp)
            if fp < half:
                before += reached[:, fp + 1, fn] * (fp + 1) / (half - fn + fp + 1)
            reached[:, fp, fn] = before * allowed[:, fp, fn]
    return Selected(levels, np.diff(reached[:, 0, half], prepend=0.0))


def estimates(delta: float, half: int = Canife.HALF) -> NDArray[np.float64]:
    """Compute ε̂ by counts of false positives and of false negatives."""
    rates = np.arange(half + 1) / half
    return estimate(rates[:, None], rates[None, :], delta)


def selected_miss(delta: float) -> tuple[float, float]:
    """Compute how often the lower limit at the largest finite ε̂ is above 0 for a canary that does nothing, exactly.

    Two probabilities: if of several thresholds with the largest ε̂ one with a lower limit of at most 0
    is taken, and one above 0.
    """
    values = estimates(delta)
    # Equal ε̂ of several counts may differ in their last bits, on one processor and not on another.
    with np.errstate(over="ignore"):
        rounded = np.round(values, 12)
    _, high = _limits(np.arange(Canife.HALF + 1))
    above = estimate(high[:, None], high[None, :], delta) > 0.0

    def miss(preferred: NDArray[np.bool_]) -> float:
        # Twice the rank of ε̂, and one more where preferred, orders by ε̂ first.
        ranks = np.searchsorted(np.unique(rounded), rounded).astype(np.float64)
        keys = np.where(np.isfinite(values), 2.0 * ranks + preferred, np.inf)
        law = selected(keys)
        return float(law.probabilities[np.isin(law.values, keys[above])].sum())

    return miss(~above), miss(above)


def _judge_limits() -> Outcome:
    allowed = 0.05
    worst = coverage(Canife.SCORES_DELTA, [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
    # Where a count is zero the figures show no limits: at the largest finite ε̂.
    least, most = selected_miss(Canife.SCORES_DELTA)
    finding = (
        f"with a threshold chosen in advance they hold with probability at least {worst['both']:.4f} (exactly, over 81 "
        f"pairs of rates). At the threshold of the largest finite ε̂ a canary without effect has a lower limit above 0 "
        f"with probability {least:.4f} to {most:.4f}"
    )
    held = worst["both"] >= 1.0 - allowed and most <= allowed
    return conclude(holds(held), finding, worst=worst, missed_least=least, missed_most=most)


def judge_conservative(law: Selected) -> Outcome:
    """Judge that the threshold of the largest ε̂ errs upwards, by what it makes of a canary that does nothing."""
    upwards = float(law.probabilities[law.values > 0.0].sum())
    below = np.cumsum(law.probabilities)
    median, extreme = (float(law.values[np.searchsorted(below, level)]) for level in (0.5, 0.95))
    return conclude(
        holds(upwards >= 0.95),
        f"where nothing leaks (ε = 0) the largest finite ε̂ of 100 trials is above 0 with probability {upwards:.4f}, "
        f"{median:.2f} in the median, above {extreme:.2f} in 5% of the cases: errs upwards, and so is no lower bound",
        above_zero=upwards,
        median=median,
        upper_5_percent=extreme,
    )


def _judge_infinite_limit() -> Outcome:
    low, _high = _limits(np.arange(Canife.HALF + 1))
    upper = estimate(low[:, None], low[None, :], Canife.SCORES_DELTA)
    zero = (np.arange(Canife.HALF + 1)[:, None] == 0) | (np.arange(Canife.HALF + 1)[None, :] == 0)
    infinite = np.isinf(upper) & (upper > 0)
    limit = float(upper[1, 1])
    # A rate at its upper end leaves a numerator of 0 for one term, and the other is infinite all the same.
    verdict = holds(np.array_equal(infinite, zero))
    return conclude(
        verdict,
        f"the upper limit is infinite exactly where a count is zero ({int(zero.sum())} of {zero.size} pairs of "
        f"counts); one error of each kind has the limit {limit:.2f}",
        pairs=int(infinite.sum()),
        one_error_each=limit,
    )


CHECKS = (
    CANIFE.claim(
        "section3.3.norm",
        "Section 3.3; learning rates of Appendix B",
        "A gradient of the canary no shorter than C = 1 ensures ‖u_c‖² = C²",
        fixed(judge_norm, RATES),
    ),
    CANIFE.claim(
        "algorithm1.loss",
        "Section 3.3, equation (1) and Algorithm 1",
        "Algorithm 1 minimises the loss of equation (1)",
        fixed(judge_loss, CLIP, Fraction(2)),
    ),
    CANIFE.claim(
        "section3.4.insertion",
        "Sections 3.4 and 4.1",
        "The canary is inserted into each of n rounds with probability 1/2: of 100 into half",
        fixed(judge_insertion, Canife.HALF),
    ),
    CANIFE.claim(
        "section3.4.cap",
        "Section 3.4",
        f"With n = 100 trials the per-round ε̂ is at most {Canife.CAP} (δ = 1/n in the sentence after)",
        Printed(Canife.CAP, judge_cap),
    ),
    CANIFE.claim(
        "appendixC5.infinite",
        "Appendix C.5",
        "In a training on Shakespeare without privacy a round's ε̂ is infinite only once, at an attack accuracy of 100%",
        fixed(_judge_infinite),
    ),
    CANIFE.claim(
        "section3.4.conservative",
        "Section 3.4",
        "Taking the threshold at which the per-round ε̂ is largest is conservative",
        lambda _: judge_conservative(selected(estimates(Canife.SCORES_DELTA))),
    ),
    CANIFE.claim(
        "appendixC1.limits",
        "Appendix C.1",
        "The per-round ε̂, maximal over thresholds, has 95% confidence intervals by Clopper and Pearson's method",
        fixed(_judge_limits),
    ),
    CANIFE.claim(
        "figure4.infinite-limits", "Figure 4", "A round's upper 95% limit can be infinite", fixed(_judge_infinite_limit)
    ),
)
