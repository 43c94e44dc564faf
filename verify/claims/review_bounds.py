"""The reviews and answers on lower bounds, on the estimates beside them, and on CANIFE."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from fractions import Fraction

from canaryproof.verify.claims import canife_rates, final_noise, submission_printed
from canaryproof.verify.claims.canife_numbers import (
    CODE_DELTA,
    SCORES_DELTA,
    TRIALS,
    fixed,
    noise_for,
    prints,
)
from canaryproof.verify.claims.deciding import needs_data
from canaryproof.verify.claims.final_bounds import largest_bounds
from canaryproof.verify.claims.final_printed import (
    CANARIES,
    FASHION_BATCH,
    FASHION_EXAMPLES,
    TABLE_3,
    TABLE_4,
    Row,
)
from canaryproof.verify.claims.judging import claim, found, holds
from canaryproof.verify.results import Outcome, Verdict
from canaryproof.verify.sampled_rdp import rdp

_ANSWERS = "Reviews of Andrew et al., authors' answers"
TO_ZYJW, TO_ZCEQ, TO_LDHU = (f"{_ANSWERS} to reviewer {name}" for name in ("ZyjW", "zCeQ", "LDHu"))

# The submission's Table 2 is the final version's Table 3; its own EMNIST table is another.
SUBMISSION_EMNIST = tuple(Row(*astuple(row)) for row in submission_printed.TABLE_3)
SUBMISSION = {"StackOverflow": TABLE_3, "EMNIST": SUBMISSION_EMNIST}


def judge_cap(printed: str) -> Outcome:
    """Judge a maximum of the authors' lower bound from 1,000 canaries.

    Parameters
    ----------
    printed
        The maximum.
    """
    bounds = largest_bounds(CANARIES)
    stated = bounds["Jeffreys for FNR, exact FPR"]
    fitting = [name for name, bound in bounds.items() if prints(bound, printed)]
    above = [row.lower_all for row in (*TABLE_3, *TABLE_4, *SUBMISSION_EMNIST) if float(row.lower_all) > float(printed)]
    # The other direction of the hypothesis test divides by FPR, which is exact and can be as small as one likes.
    final = [row.lower_final for row in TABLE_4 if float(row.lower_final) > stated]
    listed = "; ".join(f"{name}: {bound:.4f}" for name, bound in bounds.items())
    finding = (
        f"1,000 canaries without a miss reach {stated:.4f} (for all readings: {listed}), and with the exact FPR in the "
        f"denominator there is no maximum: the papers print {', '.join(sorted(set(above)))}, and {', '.join(final)} "
        "for a final model"
    )
    verdict = Verdict.CONFIRMED if prints(stated, printed) else Verdict.QUALIFIED if fitting else Verdict.REFUTED
    return found(verdict, finding, bounds=bounds, printed_above=above, final_above=final)


def judge_not_falsified(tables: Mapping[str, Sequence[Row]]) -> Outcome:
    """Judge that no printed lower bound exceeds the estimate beside it.

    Parameters
    ----------
    tables
        Rows by name of the table.
    """
    pairs = [
        (name, float(low), float(estimate))
        for name, rows in tables.items()
        for row in rows
        for low, estimate in ((row.lower_all, row.estimate_all), (row.lower_final, row.estimate_final))
    ]
    wrong = [pair for pair in pairs if pair[1] > pair[2]]
    closest = min(pairs, key=lambda pair: pair[2] / pair[1])
    return found(
        holds(not wrong),
        f"{len(pairs) - len(wrong)} of {len(pairs)} estimates are above their lower bounds, the closest {closest[2]:g} "
        f"above {closest[1]:g}",
        pairs=len(pairs),
        wrong=wrong,
    )


def judge_ceiling(rounds: int, sampling: float, estimate: float) -> Outcome:
    """Judge that CANIFE has a maximum in the answers' comparison, by composing its largest per-round ε̂.

    Parameters
    ----------
    rounds
        Rounds of one epoch.
    sampling
        Share of the examples in a round.
    estimate
        The estimate by random canaries.
    """
    largest = canife_rates.largest(Fraction(1, TRIALS), 0)
    readings = {
        "σ̂ of one round, δ = 1e-5": noise_for(largest, lambda sigma: rdp(sigma, CODE_DELTA), 0.5, 2.0),
        "σ̂ of one round, δ = 1/n": noise_for(largest, lambda sigma: rdp(sigma, SCORES_DELTA), 0.5, 2.0),
        "σ̂ of 100 sampled rounds, δ = 1e-5 (CANIFE's public code)": noise_for(
            largest, lambda sigma: rdp(sigma, CODE_DELTA, TRIALS, sampling), 0.35, 1.0
        ),
    }
    composed = {name: rdp(sigma, CODE_DELTA, rounds, sampling) for name, sigma in readings.items()}
    listed = "; ".join(f"{name}: {value:.2f}" for name, value in composed.items())
    # A round without errors counts as infinite, so that there is a maximum of finite estimates only.
    verdict = Verdict.QUALIFIED if max(composed.values()) < estimate else Verdict.INCONCLUSIVE
    return found(
        verdict,
        f"only for finite per-round estimates (a round without errors counts as infinite): ε̂ ≤ {largest:.3f} in each "
        f"round composes to at most {listed}, whatever leaks; their own estimate is {estimate:g}, and the 0.879 that "
        "they had from CANIFE is above the first",
        largest=largest,
        composed=composed,
    )


def judge_lower_bound() -> Outcome:
    """Judge that CANIFE uses a lower bound of each round's ε, by its ε̂ and its own lower limit for equal counts."""
    point = canife_rates.largest(Fraction(1, TRIALS), 1)
    lower = canife_rates.lower_limit(1, 1)
    return found(
        Verdict.QUALIFIED if point > lower else Verdict.CONFIRMED,
        "only for the true rates of error, for which the formula is a lower bound; CANIFE puts in counted ones: one "
        f"error of each kind gives {point:.3f}, where its 95% lower limit, which it does not compose, is {lower:.3f}",
        point=point,
        lower=lower,
    )


CHECKS = (
    claim(
        "review.epsilon-lo.cap",
        TO_ZYJW + " and zCeQ",
        "The lower bound cannot exceed 6.24, its value where no canary is missed",
        fixed(judge_cap, "6.24"),
    ),
    claim(
        "review.epsilon-lo.not-falsified",
        TO_ZYJW + " and zCeQ",
        "No estimate is falsified by its lower bound, also below 6.24",
        fixed(judge_not_falsified, SUBMISSION),
    ),
    claim(
        "review.canife.analytical",
        TO_ZYJW,
        "34.5 is the analytical upper bound in the comparison with CANIFE (noise multiplier 0.2)",
        fixed(final_noise.judge_canife_epsilon, "34.5", 0.2),
    ),
    claim(
        "review.canife.maximum",
        TO_ZYJW,
        "There is a maximum that CANIFE's estimate cannot exceed, because samples are finite",
        fixed(judge_ceiling, math.ceil(FASHION_EXAMPLES / FASHION_BATCH), FASHION_BATCH / FASHION_EXAMPLES, 6.76),
    ),
    claim(
        "review.canife.lower-bound",
        TO_ZYJW + " and zCeQ",
        "CANIFE estimates a round's ε by a lower bound of it",
        fixed(judge_lower_bound),
    ),
    claim(
        "review.canife.bound",
        TO_ZYJW,
        "A lower bound from random canaries (its value is lost in our text) is above CANIFE's 0.879 and below 6.76",
        needs_data("review.canife.bound", "Fashion-MNIST"),
    ),
)
