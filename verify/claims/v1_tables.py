"""The first version's Tables 2 to 4 and its figures: accuracies, lower bounds and estimates on StackOverflow."""

from fractions import Fraction
from functools import partial

from scipy import stats

from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.claims import accounting
from canaryproof.verify.claims.deciding import needs_data
from canaryproof.verify.claims.judging import claim, found, holds
from canaryproof.verify.claims.v1_accounting import calibrated, noise_alone, sampled
from canaryproof.verify.claims.v1_estimates import checks, figure, judge_high, judge_regime, judge_separation
from canaryproof.verify.claims.v1_judging import (
    CANARIES,
    COHORT,
    ROUNDS,
    STACKOVERFLOW,
    STACKOVERFLOW_DELTA,
    STACKOVERFLOW_USERS,
    V1,
    agrees,
    belief,
    decreasing,
    experiment,
    placed,
    proven,
)
from canaryproof.verify.claims.v1_printed import REPETITIONS, TABLE_2, TABLE_3, TABLE_4, WEAK_CRITICAL_VALUE
from canaryproof.verify.results import Check, Outcome

# What the text takes for the sampling rate.
_QUOTIENT = COHORT / ROUNDS


def _readings(noise_multiplier: float) -> dict[str, float]:
    values = accounting.readings(noise_multiplier, STACKOVERFLOW_DELTA, rounds=ROUNDS)
    for rate in (COHORT / STACKOVERFLOW_USERS, _QUOTIENT, 1 / ROUNDS):
        values |= sampled(noise_multiplier, STACKOVERFLOW_DELTA, ROUNDS, rate)
    return values


def judge_epsilon(multiplier: str, epsilon: str) -> Outcome:
    """Judge a printed "ε RDP" against its noise multiplier.

    Parameters
    ----------
    multiplier, epsilon
        As printed.
    """
    stated = frozenset(f"RDP {how}, Poisson sampling at {_QUOTIENT:.3g}" for how in ("improved", "classical"))
    outcome = calibrated(multiplier, epsilon, _readings, STACKOVERFLOW_DELTA, stated)
    loss = accounting.pld(float(multiplier), STACKOVERFLOW_DELTA, ROUNDS, 1 / ROUNDS)
    stated_value = outcome.evidence["readings"][f"RDP improved, Poisson sampling at {_QUOTIENT:.3g}"]
    finding = (
        f"{outcome.finding}; RDP at the printed rate {_QUOTIENT:.3f} gives {stated_value:.6g}, and at 1/{ROUNDS} PLD "
        f"accounting gives {loss:.6g}"
    )
    return found(outcome.verdict, finding, loss_distribution=loss, **outcome.evidence)


def judge_accuracy() -> Outcome:
    """Judge that the canaries cost almost no accuracy, from the printed accuracies."""
    losses = [Fraction(without) - Fraction(with_) for _, _, without, with_ in TABLE_2]
    relative = [float(loss / Fraction(row[2])) for loss, row in zip(losses, TABLE_2, strict=True)]
    return found(
        holds(max(losses) <= Fraction(1, 10)),
        f"the largest printed loss is {float(max(losses)):g} percentage points, {100 * max(relative):.2f}% of the "
        f"accuracy; {CANARIES:,} canaries are {CANARIES / STACKOVERFLOW_USERS:.2%} of the clients",
        losses=[float(loss) for loss in losses],
        relative=relative,
    )


def judge_same_noise() -> Outcome:
    """Judge that Tables 2 and 3 are of the same runs: noise to the printed digits, and ε."""
    pairs = [((a[0], a[1]), (b.noise, b.analytical)) for a, b in zip(TABLE_2, TABLE_3, strict=True)]
    agree = [agrees(Fraction(a[0]), b[0]) and a[1] == b[1] for a, b in pairs]
    return found(holds(all(agree)), f"{sum(agree)} of {len(agree)} rows agree; 0.1023 is printed 0.102", rows=pairs)


def judge_clipping(estimate: str = TABLE_3[0].estimate_final) -> Outcome:
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


def judge_three(count: int = 3) -> Outcome:
    """Judge that as many statistics as printed exceed the 15% point, and that so many are no surprise."""
    values = [float(value) for row in TABLE_4.values() for value in row]
    law = anderson_darling.limit_law(True)
    above = sum(value > WEAK_CRITICAL_VALUE for value in values)
    chance = float(stats.binom.sf(count - 1, len(values), 0.15))
    p_values = sorted(law.sf(value) for value in values)
    # The smallest of 15 independent p-values, and the second.
    first, second = (float(stats.binom.sf(i, len(values), p)) for i, p in enumerate(p_values[:2]))
    return found(
        holds(above == count and chance > 0.05),
        f"{above} of {len(values)} are above {WEAK_CRITICAL_VALUE}, and so many or more have probability {chance:.3f}; "
        f"the largest two have p = {p_values[0]:.3f} and {p_values[1]:.3f}, as small as among {len(values)} with "
        f"probability {first:.2f} and {second:.3f}",
        above=above,
        chance=chance,
        p_values=p_values,
    )


def _row(table: int, number: int, statement: str) -> Check:
    return experiment(f"v1.table{table}", f"{V1}, Table {table}", number, statement, STACKOVERFLOW)


def _figure(number: int, statement: str) -> Check:
    source = f"{V1}, Section 5.3 and Figure {number}"
    id_ = f"v1.figure{number}.measured"
    return claim(id_, source, statement, needs_data(id_, STACKOVERFLOW))


_claim = placed("v1", V1)

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
    *checks(_claim, "v1.table3", f"{V1}, Table 3", TABLE_3, STACKOVERFLOW_DELTA, ROUNDS, STACKOVERFLOW),
    _claim(
        "table3.high",
        "Table 3's caption",
        "the estimates from all iterates are so high that membership inference is easy",
        partial(judge_high, TABLE_3),
    ),
    _claim(
        "section5.1.separation",
        "Section 5.1",
        "the estimates from all iterates are much higher than the lower bounds",
        partial(judge_separation, TABLE_3),
    ),
    _claim(
        "table3.noise-alone",
        "Table 3",
        "the final model's estimates with noise are 1.74, 1.22, 0.865 and 0.675",
        partial(noise_alone, TABLE_3[1:], STACKOVERFLOW_DELTA, ROUNDS),
    ),
    _claim(
        "section5.2.clipping",
        "Section 5.2",
        "with clipping only the final model's estimate is 5.49, which protects hardly at all",
        judge_clipping,
    ),
    _claim(
        "section5.2.regime",
        "Section 5.2",
        "with a little noise the final model's estimate comes near the regime of high privacy, about 1",
        partial(judge_regime, TABLE_3[1:]),
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
        "table4.three",
        "Table 4's caption",
        "three of the 15 statistics are above 0.574, the 15% point, which is no surprise for normal samples",
        judge_three,
    ),
    *figure(_claim, 1, [TABLE_3[0], TABLE_3[2], TABLE_3[4]], STACKOVERFLOW_DELTA),
    _figure(1, "the cosines' densities separate more with 1, 2, 3, 5 and 10 repetitions, and less with noise"),
    _figure(2, "the estimate rises sharply from 1 to 10 repetitions; one of the 15 lower bounds is above its estimate"),
    _claim(
        "figure2.excess",
        "Figure 2's caption",
        "one of 15 lower bounds exceeds its estimate, as may happen to 15 bounds of 95%",
        judge_excess,
    ),
)
