"""CANIFE's per-round ε̂ from counted errors: its maximum, its infinities, the split of the trials (Section 3.4)."""

import math
from fractions import Fraction
from typing import Any

from scipy import stats

from canaryproof.kernels.certified import binomial as certified
from canaryproof.verify.claims.canife_numbers import CAP, CODE_DELTA, HALF, PAPER, TRIALS, fixed, prints, rounding
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.results import Context, Outcome, Verdict

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
    evidence: dict[str, Any] = {"caps": caps, "printed": float(printed), "lower_limit": lowest}
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


def judge_insertion(printed: str) -> Outcome:
    """Judge that the canary is inserted with probability 1/2, by the printed maximum of ε̂ for half and half.

    Parameters
    ----------
    printed
        The maximum.
    """
    caps = {inserted: split_cap(inserted, TRIALS - inserted) for inserted in range(1, TRIALS)}
    most = float(rounding(printed)[1])
    above = float(sum(stats.binom.pmf(inserted, TRIALS, 0.5) for inserted, cap in caps.items() if cap > most))
    equal = float(stats.binom.pmf(HALF, TRIALS, 0.5))
    return found(
        Verdict.QUALIFIED if above > 0.0 else Verdict.CONFIRMED,
        f"only as exactly half of the trials (Section 4.1, and the public code, which alternates): independently with "
        f"probability 1/2 that has probability {equal:.3f}, and ε̂ can be more than {printed} with probability "
        f"{above:.3f} ({split_cap(HALF + 5, HALF - 5):.2f} for 55 and 45, {max(caps.values()):.2f} at the most)",
        exactly_half=equal,
        above=above,
        caps=caps,
    )


def split_cap(inserted: int, others: int) -> float:
    """Return the largest finite ε̂ at δ = 1e-5, the printed maximum's, with at least one error of each kind.

    Parameters
    ----------
    inserted, others
        Trials with the canary and without.
    """
    ratios = [(1.0 - CODE_DELTA - 1.0 / one) * other for one, other in ((inserted, others), (others, inserted))]
    return math.log(max(ratios))


CHECKS = (
    claim(
        "canife.section3.4.insertion",
        PAPER + "Section 3.4",
        f"The canary is inserted into each of 100 rounds with probability 1/2, and ε̂ is at most {CAP}",
        fixed(judge_insertion, CAP),
    ),
    claim(
        "canife.section3.4.cap",
        PAPER + "Section 3.4",
        f"With n = 100 trials the per-round ε̂ is at most {CAP} (δ = 1/n in the sentence after)",
        fixed(judge_cap, CAP),
    ),
    claim(
        "canife.appendixC5.infinite",
        PAPER + "Appendix C.5",
        "The per-round ε̂ is infinite only where the attack's accuracy reaches 100%",
        _judge_infinite,
    ),
)
