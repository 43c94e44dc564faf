"""The first version's Tables 2 to 4 and its figures: accuracies, lower bounds and estimates on StackOverflow."""

from fractions import Fraction
from functools import partial

from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.claims.v1_accounting import accountings, calibrated, cap, noise_alone
from canaryproof.verify.claims.v1_judging import (
    COHORT,
    ROUNDS,
    STACKOVERFLOW,
    STACKOVERFLOW_DELTA,
    STACKOVERFLOW_USERS,
    V1,
    Judge,
    agrees,
    belief,
    below,
    decreasing,
    experiment,
    fixed,
    holds,
    proven,
)
from canaryproof.verify.claims.v1_printed import REPETITIONS, TABLE_2, TABLE_3, TABLE_4, WEAK_CRITICAL_VALUE, columns
from canaryproof.verify.results import Check, Outcome, Verdict


def judge_epsilon(multiplier: str, epsilon: str) -> Outcome:
    """Judge a printed "ε RDP" against its noise multiplier.

    Parameters
    ----------
    multiplier, epsilon
        As printed.
    """
    quotient = COHORT / ROUNDS
    readings = accountings(STACKOVERFLOW_DELTA, ROUNDS, COHORT / STACKOVERFLOW_USERS, losses=False)
    readings |= accountings(STACKOVERFLOW_DELTA, ROUNDS, quotient, losses=False)
    readings |= accountings(STACKOVERFLOW_DELTA, ROUNDS, 1 / ROUNDS)
    stated = frozenset(f"RDP {how}, Poisson sampling at {quotient:.3g}" for how in ("improved", "classical"))
    outcome = calibrated(multiplier, epsilon, readings, STACKOVERFLOW_DELTA, stated)
    values = outcome.evidence["readings"]
    improved, loss = (f"{name}, Poisson sampling at {{:.3g}}" for name in ("RDP improved", "PLD"))
    finding = (
        f"{outcome.finding}; RDP at the printed rate {quotient:.3f} gives {values[improved.format(quotient)]:.6g}, and "
        f"at 1/{ROUNDS} PLD accounting gives {values[loss.format(1 / ROUNDS)]:.6g}"
    )
    return found(outcome.verdict, finding, **outcome.evidence)


def judge_accuracy() -> Outcome:
    """Judge that the canaries cost almost no accuracy, from the printed accuracies."""
    losses = [Fraction(without) - Fraction(with_) for _, _, without, with_ in TABLE_2]
    relative = [float(loss / Fraction(row[2])) for loss, row in zip(losses, TABLE_2, strict=True)]
    return found(
        holds(max(losses) <= Fraction(1, 10)),
        f"the largest printed loss is {float(max(losses)):g} percentage points, {100 * max(relative):.2f}% of the "
        "accuracy",
        losses=[float(loss) for loss in losses],
        relative=relative,
    )


def judge_same_noise() -> Outcome:
    """Judge that Tables 2 and 3 are of the same runs: noise to the printed digits, and ε."""
    pairs = [((a[0], a[1]), (b.noise, b.analytical)) for a, b in zip(TABLE_2, TABLE_3, strict=True)]
    agree = [agrees(Fraction(a[0]), b[0]) and a[1] == b[1] for a, b in pairs]
    return found(holds(all(agree)), f"{sum(agree)} of {len(agree)} rows agree; 0.1023 is printed 0.102", rows=pairs)


def judge_threat_models() -> Outcome:
    """Judge that the privacy loss is smaller when the final model alone is seen, by estimates and by lower bounds."""
    table = columns(TABLE_3)
    estimates = [a > b for a, b in zip(table["all"], table["final"], strict=True)]
    bounds = [a > b for a, b in zip(table["lower-all"], table["lower-final"], strict=True)]
    ratio = min(a / b for a, b in zip(table["all"], table["final"], strict=True))
    verdict = Verdict.REFUTED
    if all(estimates):
        verdict = Verdict.CONFIRMED if all(bounds) else Verdict.QUALIFIED
    return found(
        verdict,
        f"by the estimates in all rows, by a factor of {ratio:.0f} at least; by the 95% lower bounds in {sum(bounds)} "
        f"of {len(bounds)} rows: at noise 0.2344 it is {TABLE_3[-1].lower_all} for all iterates and "
        f"{TABLE_3[-1].lower_final} for the final model, which is one of them",
        estimates=estimates,
        bounds=bounds,
    )


def judge_clipping(estimate: str = TABLE_3[0].final) -> Outcome:
    """Judge that the estimate with clipping only still allows near certainty."""
    _, even = proven(lambda: belief(estimate, Fraction(1, 2)), "1")
    _, tenth = proven(lambda: belief(estimate, Fraction(1, 10)), "1")
    return found(
        holds(estimate == "5.49" and tenth > 0.9),
        f"ε = {estimate} takes even odds to {100 * even:.1f}% and a prior of 10% to {100 * tenth:.1f}%",
        even=even,
        tenth=tenth,
    )


def judge_gaussian_sets() -> Outcome:
    """Judge that most sets of cosines pass Anderson's test at 15%."""
    values = [float(value) for row in TABLE_4.values() for value in row]
    above = sum(value > WEAK_CRITICAL_VALUE for value in values)
    return found(
        holds(2 * above < len(values)),
        f"{len(values) - above} of {len(values)} statistics are at most {WEAK_CRITICAL_VALUE}",
        above=above,
    )


def judge_excess() -> Outcome:
    """Judge that one of the plotted 95% lower bounds may well fail."""
    count = len(TABLE_4) * len(REPETITIONS)
    chance = 1 - Fraction(19, 20) ** count
    return found(
        holds(count == 15 and chance > Fraction(1, 20)),
        f"3 × 5 = {count} independent bounds of exactly 95% miss once or more with probability {float(chance):.3f}; "
        "what they may exceed is the truth, and not the estimate",
        probability=float(chance),
        count=count,
    )


def _row(table: int, number: int, statement: str) -> Check:
    return experiment(f"v1.table{table}", f"{V1}, Table {table}", number, statement, STACKOVERFLOW)


def _claim(place: str, source: str, statement: str, judge: Judge) -> Check:
    return fixed(f"v1.{place}", f"{V1}, {source}", statement, judge)


_ALL = columns(TABLE_3)
_FINAL_NOISE = tuple((row.noise, row.final) for row in TABLE_3[1:])

CHECKS: tuple[Check, ...] = (
    *(
        _claim(
            f"table2.row{number}.epsilon",
            "Section 5 and Tables 2 and 3",
            f"noise multiplier {noise} has ε = {epsilon} by Rényi accounting with Bernoulli sampling at 167/2048 for "
            "2048 rounds",
            partial(judge_epsilon, noise, epsilon),
        )
        for number, (noise, epsilon, _, _) in enumerate(TABLE_2, 1)
        if epsilon != "inf"
    ),
    *(
        _row(
            2,
            number,
            f"at noise multiplier {noise} the accuracy is {without}%, and {with_}% with 1,000 canaries",
        )
        for number, (noise, _, without, with_) in enumerate(TABLE_2, 1)
    ),
    _claim("table2.accuracy", "Table 2", "1,000 canaries have an almost negligible effect on accuracy", judge_accuracy),
    _claim(
        "table2.decreasing",
        "Table 2",
        "accuracy falls as the noise grows",
        lambda: decreasing({name: [float(row[i]) for row in TABLE_2] for name, i in (("without", 2), ("with", 3))}),
    ),
    _claim("table3.noise", "Tables 2 and 3", "both tables are of the same noise multipliers and ε", judge_same_noise),
    *(_row(3, number, row.statement()) for number, row in enumerate(TABLE_3, 1)),
    _claim(
        "table3.bounds",
        "Table 3",
        "the 95% lower bounds lie below the estimates",
        lambda: below(
            [
                *zip(_ALL["lower-all"], _ALL["all"], strict=True),
                *zip(_ALL["lower-final"], _ALL["final"], strict=True),
            ]
        ),
    ),
    _claim(
        "table3.decreasing",
        "Table 3",
        "lower bounds and estimates fall as the noise grows",
        lambda: decreasing(_ALL),
    ),
    _claim(
        "table3.final",
        "Table 3's caption and Section 6",
        "the privacy loss is much lower if the final model alone is seen",
        judge_threat_models,
    ),
    _claim(
        "table3.cap",
        "Section 5 and Table 3",
        "the lower bounds from all iterates, up to 6.24, are 95% bounds by Jeffreys' interval with 1,000 canaries",
        lambda: cap([row.lower_all for row in TABLE_3], STACKOVERFLOW_DELTA),
    ),
    claim(
        "v1.table3.noise-alone",
        f"{V1}, Table 3",
        "the final model's estimates with noise are 1.74, 1.22, 0.865 and 0.675",
        lambda context: noise_alone(_FINAL_NOISE, context),
    ),
    _claim(
        "section5.2.clipping",
        "Section 5.2",
        "with clipping only the final model's estimate is 5.49, which protects hardly at all",
        judge_clipping,
    ),
    *(
        _row(
            4,
            number,
            f"at noise {noise} the statistics for 1, 2, 3, 5 and 10 repetitions are {', '.join(values)}",
        )
        for number, (noise, values) in enumerate(TABLE_4.items(), 1)
    ),
    _claim(
        "section5.3.gaussian",
        "Section 5.3",
        "for most sets of cosines the test cannot reject normality at even 15%",
        judge_gaussian_sets,
    ),
    _claim(
        "figure2.excess",
        "Figure 2's caption",
        "one of 15 lower bounds exceeds its estimate, as may happen to 15 bounds of 95%",
        judge_excess,
    ),
)
