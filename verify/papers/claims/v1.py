"""Claims of the first version of Andrew et al. (arXiv 2302.03098v1).

Its Section 3 and what a caption says of Anderson's critical values are lines of the suite of theorems.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Literal

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray
from scipy import special, stats

from canaryproof.kernels import binomial as limits
from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.certified import gaussian_mechanism as certified_mechanism
from canaryproof.kernels.threshold_attack import threshold_epsilon
from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.accounting import analytical
from canaryproof.verify.papers.check.documents import FIRST_VERSION, Document
from canaryproof.verify.papers.check.p_values import mean_p_value
from canaryproof.verify.papers.check.power import visible_mean
from canaryproof.verify.papers.check.results import Check, Context, Design, Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import Printed, conclude, fixed, holds, number, proven, rounding
from canaryproof.verify.papers.claims import andrew_rules, clipping_range, distributions
from canaryproof.verify.papers.claims.final_bounds import judge_confidence as judge_confidence_of_bound
from canaryproof.verify.papers.claims.final_setting import (
    PRINTED_LOSSES,
    PROBLEMS,
    SCALE,
    STACKOVERFLOW_TRAINING_CLIENTS,
    belief,
    judge_clipping,
    judge_orthogonal,
    judge_scale,
)
from canaryproof.verify.papers.claims.final_tables import TABLE_2, high_statement, judge_high, judge_very_close
from canaryproof.verify.papers.claims.needs_data import NeedsData
from canaryproof.verify.papers.claims.table_judges import (
    STACKOVERFLOW,
    calibrated,
    judge_regime,
    judge_separation,
    repeated,
    results_checks,
    sampled,
    separable,
)
from canaryproof.verify.papers.claims.transcripts import Final, FirstVersion, Row

# The relative excess that "slightly" is taken to allow, and the ε at which it is judged.
_SLIGHTLY = 0.1
_EPSILONS = (1.0, 3.0, 10.0)


def judge_advantage(context: Context) -> Outcome:
    """Judge that fitting mean and deviation to the canaries raises the estimate, for independent Gaussian cosines."""
    runs = context.pick(400, 4000)
    rng = np.random.default_rng(context.key("v1.section4.advantage"))
    rows: list[dict[str, float]] = []
    # Above or below ε, and above or below what is slightly more, as far as the sample tells: 1, −1 or 0.
    higher: list[float] = []
    slightly: list[float] = []
    level = LEVEL / (2 * len(_EPSILONS))
    for epsilon in _EPSILONS:
        distance = 1.0 / certified_mechanism.noise_multiplier(epsilon, FirstVersion.DELTA).lo
        means = distance + rng.standard_normal(runs) / math.sqrt(FirstVersion.CANARIES)
        ratios = np.sqrt(rng.chisquare(FirstVersion.CANARIES - 1, runs) / FirstVersion.CANARIES)
        estimates = threshold_epsilon(FirstVersion.DELTA, means, ratios)
        excess, error = float(estimates.mean()) - epsilon, float(estimates.std(ddof=1)) / math.sqrt(runs)
        rows.append({"epsilon": epsilon, "excess": excess, "error": error})
        for sides, allowed in ((higher, 0.0), (slightly, _SLIGHTLY * epsilon)):
            differs = mean_p_value(estimates, epsilon + allowed) < level
            sides.append(float(np.sign(excess - allowed)) if differs else 0.0)
    verdict = Verdict.INCONCLUSIVE
    if min(higher) < 0.0:
        verdict = Verdict.REFUTED
    elif min(higher) > 0.0 and max(slightly) > 0.0:
        verdict = Verdict.QUALIFIED
    elif min(higher) > 0.0 and max(slightly) < 0.0:
        verdict = Verdict.CONFIRMED
    listed = ", ".join(
        f"{row['excess']:+.3f} ± {row['error']:.3f} ({row['excess'] / row['epsilon']:+.0%}) at ε = {row['epsilon']:g}"
        for row in rows
    )
    finding = (
        f"mean excess of the estimate with fitted mean and deviation over the true ε, with {FirstVersion.CANARIES} "
        f"canaries: {listed}"
    )
    if verdict is Verdict.QUALIFIED:
        small = ", ".join(f"{row['epsilon']:g}" for row in rows if row["excess"] <= _SLIGHTLY * row["epsilon"])
        finding = f"higher, but slightly (by {_SLIGHTLY:.0%}) only at ε = {small or 'none'}: {finding}"
    design = Design(
        f"the mean estimate is above ε by less than {_SLIGHTLY:.0%} at each of {len(rows)} ε",
        LEVEL,
        f"at one ε it is above that by {visible_mean(runs, level):.2g} deviations of an estimate",
        POWER,
        runs,
    )
    return conclude(verdict, finding, design, rows=rows, level=LEVEL)


# "Somewhat": by less than a quarter of ε.
_SOMEWHAT = 0.25


def judge_threshold_choice(context: Context) -> Outcome:
    """Judge that a threshold chosen on the reported sample raises the 95% lower bound."""
    runs, epsilon = context.pick(200, 2000), 3.0
    rng = np.random.default_rng(context.key("v1.footnote5"))
    distance = 1.0 / certified_mechanism.noise_multiplier(epsilon, FirstVersion.DELTA).lo
    misses = limits.upper(np.arange(FirstVersion.CANARIES + 1), FirstVersion.CANARIES, 0.95, "jeffreys")

    def bound(thresholds: Array, missed: NDArray[np.int_]) -> Array:
        hidden = np.maximum(special.ndtr(thresholds) - FirstVersion.DELTA, 1e-300) / misses[missed]
        shown = np.maximum(1 - FirstVersion.DELTA - misses[missed], 1e-300)
        best: Array = np.maximum(np.log(hidden), np.log(shown) - special.log_ndtr(-thresholds))
        return best

    gains, above, ranks = [], 0, np.arange(FirstVersion.CANARIES)
    for _ in range(runs):
        first, second = (np.sort(distance + rng.standard_normal(FirstVersion.CANARIES)) for _ in range(2))
        # Between two canaries the misses are as many, and at the upper one the false positives are fewest.
        chosen = first[[np.argmax(bound(first, ranks))]]
        best = float(bound(second, ranks).max())
        gains.append(best - float(bound(chosen, np.searchsorted(second, chosen))[0]))
        above += best > epsilon
    gain, error = float(np.mean(gains)), float(np.std(gains, ddof=1) / math.sqrt(runs))
    p_value = float(stats.t.sf(gain / error, runs - 1))
    # At the best of all thresholds no bound is lower: where it is not higher in the mean, no gain is above 0.
    visible = error * (float(stats.t.isf(LEVEL, runs - 1)) + float(stats.norm.ppf(POWER)))
    design = Design("the bound is not higher in the mean", LEVEL, f"it is by {visible:.2g}", POWER, runs)
    verdict = holds(gain <= _SOMEWHAT * epsilon, True) if p_value < LEVEL else Verdict.INCONCLUSIVE
    much = "" if verdict is Verdict.CONFIRMED else f"higher, but by {gain / epsilon:.0%} of ε: "
    return conclude(
        verdict,
        f"{much}at ε = 3 the bound rises by {gain:.3f} ± {error:.3f} in the mean over one with a threshold from "
        f"another run, and lies above the true ε in {above} of {runs} runs",
        design,
        gain=gain,
        error=error,
        above=above,
        runs=runs,
        level=LEVEL,
    )


# Table 1 of this version and of the submission: the Gaussian mechanism, by each version's own estimator.

Estimator = Literal["pinned", "fitted"]
_DIM, _COUNT, _DELTA, _RUNS = 10**6, 1000, 1e-6, 50


def judge_cell(row: tuple[str, str, str, str], stated: Estimator, context: Context) -> Outcome:
    """Judge a printed mean and deviation of 50 estimates by draws of them.

    The cosines are taken as independent N(1/√(σ² + k/d), 1) in the null's units, which leaves out terms of relative
    size k/d = 0.001. The final version's table is judged independently of this, by the exact law.
    """
    _, epsilon, mean, deviation = row
    runs, printed = context.pick(4000, 40000), (float(mean), float(deviation))
    rng = np.random.default_rng(context.key(f"claims/table1/{epsilon}"))
    sigma = math.hypot(gaussian_mechanism.noise_multiplier(float(epsilon), _DELTA), math.sqrt(_COUNT / _DIM))
    means = 1.0 / sigma + rng.standard_normal(runs) / math.sqrt(_COUNT)
    ratios = np.sqrt(rng.chisquare(_COUNT - 1, runs) / _COUNT)
    samples = {
        "pinned": epsilon_estimators.pinned_epsilon(_DELTA, means),
        "fitted": epsilon_estimators.both_directions(_DELTA, means, ratios),
    }
    rows = {}
    for name, sample in samples.items():
        average, error = float(sample.mean()), float(sample.std(ddof=1))
        equal_means = stats.ttest_ind_from_stats(*printed, _RUNS, average, error, runs, equal_var=False)
        spread = stats.f(_RUNS - 1, runs - 1)
        ratio = (printed[1] / error) ** 2
        tail = min(spread.cdf(ratio), spread.sf(ratio))
        # Two tests, each at half the level.
        p_value = min(1.0, 2.0 * min(float(equal_means.pvalue), 2.0 * float(tail)))
        rows[name] = {"mean": average, "deviation": error, "p_value": p_value}
    agreeing = [name for name, values in rows.items() if values["p_value"] >= LEVEL]
    verdict = holds(stated in agreeing, agreeing)
    listed = ", ".join(
        f"{name} {values['mean']:.3f} ± {values['deviation']:.3f} "
        f"{'agrees' if name in agreeing else 'does not (p = {:.0e})'.format(values['p_value'])}"
        for name, values in rows.items()
    )
    # By the test of means, with as few degrees of freedom as Welch's can have.
    own, fit = rows["pinned"], rows["fitted"]
    error = math.hypot(own["deviation"] / math.sqrt(_RUNS), fit["deviation"] / math.sqrt(runs))
    shift = abs(fit["mean"] - own["mean"]) / error
    design = Design(
        f"the printed numbers are those of {_RUNS} runs of pinned",
        LEVEL,
        "they are those of fitted, both directions",
        float(stats.nct.sf(stats.t.isf(0.25 * LEVEL, _RUNS - 1), _RUNS - 1, shift)),
        runs,
    )
    finding = f"this version's estimator is {stated}: {listed}"
    if verdict is Verdict.QUALIFIED:
        finding = f"only of {agreeing[0]}, and {finding}"
    return conclude(verdict, finding, design, readings=rows, level=LEVEL, runs=runs)


def judge_not_rejected() -> Outcome:
    """Judge that a test which spares a million cosines at d = 1000 shows a small discrepancy, by its power."""
    count, dim, level = anderson_darling.COUNT, anderson_darling.DIM, anderson_darling.LEVEL
    power = anderson_darling.power(count, dim, level, True)
    return conclude(
        # Not rejecting is evidence if the test would have rejected.
        holds(power >= POWER, power > 0.0),
        f"only with a test of high power, and this one has {power:.2f}: it spares the cosine's law with probability "
        f"{1 - power:.2f} and a normal one with {1 - level:.2f}, so that not rejecting hardly tells them apart",
        power=power,
    )


def table_1_checks(document: Document, rows: tuple[tuple[str, str, str, str], ...], stated: Estimator) -> list[Check]:
    """Return the claims of a Table 1."""
    made = []
    for i, row in enumerate(rows, 1):
        made += [
            repeated(document, f"table1.row{i}.sigma", "Table 1", f"table2.row{i}.sigma"),
            document.claim(
                f"table1.row{i}",
                "Table 1",
                f"At d = 10⁶, k = 10³, δ = 10⁻⁶ and ε = {row[1]} the random canary method outputs the estimate "
                f"{row[2]} ± {row[3]} over {_RUNS} simulations",
                partial(judge_cell, row, stated),
            ),
        ]
    return made


# The text: the experiments' setting, beliefs and sizes.

# Even odds, and a small suspicion.
_PRIORS = Fraction(1, 2), Fraction(1, 10)

# Census Bureau, June 2021: ε of the files of persons and of housing units in the redistricting release.
_CENSUS = ("17.14", "2.47")


def judge_users(printed: str) -> Outcome:
    """Judge the number of users against the data set's documentation, or under the reading of the epoch's rounds."""
    count = STACKOVERFLOW_TRAINING_CLIENTS
    left = FirstVersion.ROUNDS * FirstVersion.COHORT - FirstVersion.CANARIES
    readings = {"all of the data set": count, "places of all rounds that canaries leave": left}
    judged = number(printed, {name: Fraction(users) for name, users in readings.items()})
    # Users of whom one 2048th a round rounds to the printed clients a round.
    fewest, most = (math.ceil(end * FirstVersion.ROUNDS) for end in rounding(str(FirstVersion.COHORT)))
    most = min(most, math.ceil(rounding(printed)[1]))
    return conclude(
        judged.verdict,
        f"TensorFlow Federated documents {count:,} training users, which is {count / 1000:.0f}k. {printed} fits those "
        f"who take part once if canaries count among the {FirstVersion.COHORT} clients of a round, which leaves "
        f"{left:,} places, or if {FirstVersion.COHORT} is rounded: {fewest:,} to {most - 1:,} users are so many in "
        f"each of {FirstVersion.ROUNDS} rounds",
        documented=count,
        **judged.evidence,
    )


def judge_delta(printed: str) -> Outcome:
    """Judge the value of δ = 341000^(−1.1)."""
    agreed, value = proven(lambda: arb(FirstVersion.USERS) ** arb(fmpq(-11, 10)), printed)
    return conclude(
        holds(agreed),
        f"341000^(−1.1) = {value:.6e}, which is {value * FirstVersion.USERS:.2f} of one over the number of users",
        delta=value,
    )


def judge_quotient(printed: str) -> Outcome:
    """Judge the decimal value of the quotient printed as the sampling rate."""
    rate = Fraction(FirstVersion.COHORT, FirstVersion.ROUNDS)
    judged = number(printed, {f"{FirstVersion.COHORT}/{FirstVersion.ROUNDS}": rate})
    cut = f", and {printed} only cut and not rounded" if judged.verdict is Verdict.QUALIFIED else ""
    finding = f"{FirstVersion.COHORT}/{FirstVersion.ROUNDS} = {float(rate):.5f} rounds to {float(rate):.3f}{cut}"
    return conclude(judged.verdict, finding, rate=float(rate), **judged.evidence)


def judge_rate(printed: str) -> Outcome:
    """Judge the sampling rate of a client in a round."""
    rate = Fraction(FirstVersion.COHORT, FirstVersion.USERS)
    judged = number(printed, {f"{FirstVersion.COHORT}/{FirstVersion.USERS:,}": rate})
    return conclude(
        judged.verdict,
        f"a client who takes part once in {FirstVersion.ROUNDS} rounds is sampled at 1/{FirstVersion.ROUNDS}, about "
        f"{FirstVersion.COHORT}/{FirstVersion.USERS:,} = {float(rate):.3e}. The printed quotient divides by the rounds "
        f"and not by the clients: with it a client takes part in {FirstVersion.COHORT} rounds on average. Table 2's ε "
        "are not of it either (`v1.table2.row2.epsilon`)",
        rate=float(rate),
        **judged.evidence,
    )


def judge_epochs(rounds: int = FirstVersion.ROUNDS, epochs: tuple[int, ...] = (1, 2, 3, 5, 10)) -> Outcome:
    """Judge that the rounds can be divided into the epochs, which the text does not say are equally long."""
    uneven = [n for n in epochs if rounds % n]
    finding = f"{rounds} rounds divide evenly by {', '.join(str(n) for n in epochs if n not in uneven)}"
    if uneven:
        finding += f", and by {', '.join(map(str, uneven))} into epochs that differ by a round"
    return conclude(holds(rounds >= max(epochs)), finding, remainders={n: rounds % n for n in epochs})


def judge_confidence(printed: str, epsilon: str = "5") -> Outcome:
    """Judge the decimal value of e^ε/(1 + e^ε), which the text gives as the belief that ε allows, without a prior."""
    even, low = (proven(partial(belief, epsilon, prior), printed)[1] for prior in _PRIORS)
    judged = number(printed, {"from even odds": even, "from a prior of 10%": low}, stated=())
    return conclude(
        judged.verdict,
        f"only from even odds, where e^{epsilon}/(1 + e^{epsilon}) = {100 * even:.3f}%; from a prior of 10% it is "
        f"{100 * low:.1f}%",
        even=even,
        tenth=low,
        **judged.evidence,
    )


def judge_loss_probability() -> Outcome:
    """Judge that an output with a loss above ε has probability δ at least, for the Gaussian mechanism at ε = 5.

    An ε that is only an upper bound promises no such output, as the mechanism without any leakage shows.
    """
    delta, epsilon = FirstVersion.DELTA, 5.0
    sigma = certified_mechanism.noise_multiplier(epsilon, delta).lo
    tail = float(stats.norm.sf(epsilon * sigma - 0.5 / sigma))
    return conclude(
        holds(False, tail >= delta),
        "only from even odds, and where no ε below 5 holds at the same δ: there δ = P(loss > ε) − e^ε·P'(loss > ε) is "
        f"at most P(loss > ε), which for the Gaussian mechanism at δ = {delta:.2e} is {tail:.2e}. An ε that is only an "
        "upper bound, as by accounting, promises no such output",
        delta=delta,
        probability=tail,
    )


def judge_census(printed: str) -> Outcome:
    """Judge the ε of the census of 2020 and that it lies in the range printed with it."""
    total = sum((Fraction(part) for part in _CENSUS), Fraction(0))
    judged = number(printed, {"both files together": total})
    return conclude(
        holds(judged.verdict is Verdict.CONFIRMED and 5 <= total <= 20),
        f"{' for persons plus '.join(_CENSUS)} for housing units is {float(total):g} in the redistricting "
        "data (Census Bureau, June 2021), in 5 to 20",
        total=float(total),
        **judged.evidence,
    )


# Tables 2 to 4 and the figures: accuracies, lower bounds and estimates on StackOverflow.

# The number that the text takes for the sampling rate.
_QUOTIENT = FirstVersion.COHORT / FirstVersion.ROUNDS


def _readings(noise_multiplier: float) -> dict[str, float]:
    values = analytical.readings(noise_multiplier, FirstVersion.DELTA, rounds=FirstVersion.ROUNDS)
    for rate in (FirstVersion.COHORT / FirstVersion.USERS, _QUOTIENT, 1 / FirstVersion.ROUNDS):
        values |= sampled(noise_multiplier, FirstVersion.DELTA, FirstVersion.ROUNDS, rate)
    return values


def judge_epsilon(multiplier: str, epsilon: str) -> Outcome:
    """Judge a printed "ε RDP" against its noise multiplier."""
    stated = frozenset(f"RDP {how}, Poisson sampling at {_QUOTIENT:.3g}" for how in ("improved", "classical"))
    table = [(row[0], row[1]) for row in FirstVersion.TABLE_2[1:]]
    outcome = calibrated(multiplier, epsilon, _readings, FirstVersion.DELTA, stated, table)
    # dp-accounting's orders begin at 1.1, and with little noise the best is nearer 1.
    fine = analytical.rdp(
        float(multiplier), FirstVersion.DELTA, FirstVersion.ROUNDS, 1 / FirstVersion.ROUNDS, orders="dense"
    )
    loss = analytical.pld(float(multiplier), FirstVersion.DELTA, FirstVersion.ROUNDS, 1 / FirstVersion.ROUNDS)
    least = min(value for name, value in outcome.evidence["readings"].items() if name.endswith(f"{_QUOTIENT:.3g}"))
    common = " or ".join(f"{name} ({outcome.evidence['readings'][name]:.6g})" for name in outcome.evidence["common"])
    finding = (
        f"only with another rate of sampling than the printed {FirstVersion.COHORT}/{FirstVersion.ROUNDS}: of all rows "
        f"{common or 'no reading'} gives the printed ε, and the rate is 1/{FirstVersion.ROUNDS}. At the printed rate "
        f"RDP gives {least:.6g} at dp-accounting's orders. By PLD accounting at 1/{FirstVersion.ROUNDS} ε is {loss:.6g}"
    )
    if fine < 0.99 * min(float(end) for end in rounding(epsilon)):
        finding += f". Rényi orders below 1.1 give {fine:.4g} there"
    return conclude(outcome.verdict, finding, loss_distribution=loss, fine_orders=fine, **outcome.evidence)


def judge_accuracy() -> Outcome:
    """Judge that the canaries cost almost no accuracy, from the printed accuracies."""
    losses = [Fraction(without) - Fraction(with_) for _, _, without, with_ in FirstVersion.TABLE_2]
    relative = [float(loss / Fraction(row[2])) for loss, row in zip(losses, FirstVersion.TABLE_2, strict=True)]
    return conclude(
        holds(max(losses) <= Fraction(1, 10)),
        f"the largest printed loss is {float(max(losses)):g} percentage points, {100 * max(relative):.2f}% of the "
        f"accuracy; {FirstVersion.CANARIES:,} canaries are {FirstVersion.CANARIES / FirstVersion.USERS:.2%} of the "
        "clients",
        losses=[float(loss) for loss in losses],
        relative=relative,
    )


def judge_gaussian_sets() -> Outcome:
    """Judge that most sets of cosines pass Anderson's test at 15%."""
    values = [float(value) for row in FirstVersion.TABLE_4.values() for value in row]
    above = sum(value > FirstVersion.WEAK_CRITICAL_VALUE for value in values)
    return conclude(
        holds(2 * above < len(values)),
        f"{len(values) - above} of {len(values)} statistics are at most {FirstVersion.WEAK_CRITICAL_VALUE}",
        above=above,
    )


def judge_excess() -> Outcome:
    """Judge that one of the plotted 95% lower bounds may well exceed its estimate, because it is one of fifteen."""
    count = len(FirstVersion.TABLE_4) * len(FirstVersion.REPETITIONS)
    chance = 1 - Fraction(19, 20) ** count
    return conclude(
        holds(False, count == 15 and chance > Fraction(1, 20)),
        "only if the estimate stands for the truth, which is what a bound may exceed in 5% of cases: then "
        f"3 × 5 = {count} independent bounds of exactly 95% miss once or more with probability {float(chance):.3f}. "
        "With thresholds chosen on the same cosines, as footnote 5 says of these, they miss oftener (`v1.footnote5`)",
        probability=float(chance),
        count=count,
    )


def judge_three(printed: str) -> Outcome:
    """Judge that as many statistics as printed exceed the 15% point, and that so many are no surprise."""
    values = [float(value) for row in FirstVersion.TABLE_4.values() for value in row]
    law = anderson_darling.limit_law(True)
    above, count = sum(value > FirstVersion.WEAK_CRITICAL_VALUE for value in values), int(printed)
    chance = float(stats.binom.sf(count - 1, len(values), 0.15))
    p_values = sorted(law.sf(value) for value in values)
    # The smallest of 15 independent p-values, and the second.
    first, second = (float(stats.binom.sf(i, len(values), p)) for i, p in enumerate(p_values[:2]))
    return conclude(
        holds(above == count and chance > 0.05),
        f"{above} of {len(values)} are above {FirstVersion.WEAK_CRITICAL_VALUE}, and so many or more have "
        f"probability {chance:.3f}; "
        f"the largest two have p = {p_values[0]:.3f} and {p_values[1]:.3f}, as small as among {len(values)} with "
        f"probability {first:.2f} and {second:.3f}",
        above=above,
        chance=chance,
        p_values=p_values,
    )


def _cited(sources: str) -> Outcome:
    return conclude(
        Verdict.INCONCLUSIVE, f"the works that are cited are not among the documents; {sources} would decide"
    )


# Table 2 prints the noise with these digits. Table 3 has 0.102 for 0.1023, and Table 4 and Figure 1 0.102 and 0.234.
NOISES = ("0", "0.1023", "0.2344")
_NOISES_OF_TABLE_2 = tuple(row[0] for row in FirstVersion.TABLE_2)


def _measured(row: Row) -> NeedsData:
    row = replace(row, noise=_NOISES_OF_TABLE_2[FirstVersion.TABLE_3.index(row)])
    return NeedsData(
        STACKOVERFLOW,
        ("v1_table3",),
        partial(andrew_rules.row, row, andrew_rules.STACKOVERFLOW),
        partial(clipping_range.judge, row, clipping_range.FIRST_STACKOVERFLOW),
    )


def anderson_checks(document: Document, table: Mapping[str, Sequence[str]]) -> list[Check]:
    """Return the claims of a Table 4."""
    return [
        document.claim(
            f"table4.row{i}",
            "Table 4",
            f"At noise {noise} the statistics for 1, 2, 3, 5 and 10 repetitions are {', '.join(values)}",
            NeedsData(
                STACKOVERFLOW,
                ("v1_figure2",),
                partial(andrew_rules.anderson, NOISES[i - 1], FirstVersion.REPETITIONS, values),
            ),
        )
        for i, (noise, values) in enumerate(table.items(), 1)
    ]


# Claims that the final version repeats.
_REPEATED = {
    "abstract.retrainings": ("abstract and Section 1", "abstract.retrainings"),
    "section2.estimator": ("Section 2", "section2.equation1"),
    "section5.parameters": ("Section 5", "section5.1.parameters"),
    "section5.rounds": ("Section 5", "section5.1.epoch"),
    "section5.jeffreys": ("Section 5", "section5.1.jeffreys"),
    "section5.centered": ("Section 5", "section5.1.centered"),
}

CHECKS: tuple[Check, ...] = (
    *(repeated(FIRST_VERSION, name, section, original) for name, (section, original) in _REPEATED.items()),
    *table_1_checks(FIRST_VERSION, FirstVersion.TABLE_1, "pinned"),
    FIRST_VERSION.claim(
        "section5.lower-bound",
        "Section 5 and footnote 5",
        "With α = 0.05 and a threshold that is chosen independently of the cosines, ε_lo is a 95%-confidence bound",
        partial(judge_confidence_of_bound, disclosed=True),
    ),
    FIRST_VERSION.claim(
        "section3.close",
        "Section 3 and Table 1",
        "The estimates 0.972 ± 0.148, 3.04 ± 0.137 and 9.98 ± 0.190 are very close to 1, 3 and 10, and deviate little",
        fixed(judge_very_close, TABLE_2, "pinned"),
    ),
    FIRST_VERSION.claim(
        "section4.orthogonal",
        "Sections 1 and 4",
        "For models of high dimension, random vectors are nearly orthogonal to one another with high probability",
        fixed(judge_orthogonal, {"StackOverflow": Final.PARAMETERS["StackOverflow"]}),
    ),
    FIRST_VERSION.claim(
        "section4.anderson",
        "Section 4",
        "A million cosines at d = 1000 that Anderson's test at level 15% does not reject show the discrepancy to be "
        "extremely small",
        fixed(judge_not_rejected),
    ),
    FIRST_VERSION.claim(
        "section4.advantage",
        "Section 4",
        "An adversary who sees the mean and deviation before choosing the threshold has slightly higher estimates",
        judge_advantage,
    ),
    FIRST_VERSION.claim(
        "footnote5",
        "footnote 5",
        "Choosing the threshold on the same sample makes the lower bound somewhat higher than otherwise",
        judge_threshold_choice,
    ),
    FIRST_VERSION.claim("section5.users", "Section 5", "There are 341k real clients", Printed("341k", judge_users)),
    FIRST_VERSION.claim(
        "section5.delta", "Section 5", "The target is δ = 341000^(−1.1) ≈ 8.20 × 10⁻⁷", Printed("8.20e-7", judge_delta)
    ),
    FIRST_VERSION.claim(
        "section5.quotient", "Section 5", "The quotient is 167/2048 ≈ 0.081", Printed("0.081", judge_quotient)
    ),
    FIRST_VERSION.claim(
        "section5.rate",
        "Section 5",
        "The rate q of Bernoulli sampling that approximates a single participation of each of 341k clients is "
        "167/2048 ≈ 0.081",
        Printed("0.081", judge_rate),
    ),
    FIRST_VERSION.claim(
        "section5.3.epochs",
        "Section 5.3",
        "The 2048 rounds are divided into n epochs, of which each has each canary once, with n = 1, 2, 3, 5 or 10",
        fixed(judge_epochs),
    ),
    FIRST_VERSION.claim(
        "section6.confidence",
        "Section 6",
        "At ε = 5 an attacker can see an output that lets him conclude with confidence at least e⁵/(1 + e⁵) ≈ 99.3% "
        "that a user took part",
        Printed("0.993", judge_confidence),
    ),
    FIRST_VERSION.claim(
        "section6.probability",
        "Section 6",
        "At ε = 5, with a probability of at least δ, an attacker could observe an output that lets them conclude with "
        "confidence of at least 99.3% that a user took part",
        fixed(judge_loss_probability),
    ),
    FIRST_VERSION.claim(
        "section2.models",
        "Section 2",
        "Audits in the literature most often train on the order of thousands of models, or even hundreds of thousands "
        "(Tramèr et al.)",
        fixed(_cited, "their numbers of trained models"),
    ),
    FIRST_VERSION.claim(
        "section6.range", "Section 6", "Many published works report ε from 5 to 20", fixed(_cited, "their tables of ε")
    ),
    FIRST_VERSION.claim(
        "section6.census", "Section 6", "The census of 2020 was released with ε = 19.6", Printed("19.6", judge_census)
    ),
    FIRST_VERSION.claim(
        "section6.sizes",
        "Section 7",
        SCALE.format("significantly "),
        fixed(judge_scale, {"StackOverflow": PROBLEMS["StackOverflow"]}, PRINTED_LOSSES),
    ),
    *(
        FIRST_VERSION.claim(
            f"table2.row{number}.epsilon",
            "Section 5 and Tables 2 and 3",
            f"At noise multiplier {noise} Rényi accounting with Bernoulli sampling in 2048 rounds gives ε = {epsilon}",
            fixed(judge_epsilon, noise, epsilon),
        )
        for number, (noise, epsilon, _, _) in enumerate(FirstVersion.TABLE_2, 1)
        if epsilon != "inf"
    ),
    *(
        FIRST_VERSION.claim(
            f"table2.row{number}",
            "Table 2",
            f"At noise multiplier {noise} the accuracy is {without}%, and {with_}% with 1,000 canaries",
            NeedsData(STACKOVERFLOW, ("v1_table3",), partial(andrew_rules.accuracies, noise, without, with_)),
        )
        for number, (noise, _, without, with_) in enumerate(FirstVersion.TABLE_2, 1)
    ),
    FIRST_VERSION.claim(
        "table2.accuracy",
        "Table 2",
        "Table 2 shows an almost negligible effect of 1,000 canaries on accuracy",
        fixed(judge_accuracy),
    ),
    *results_checks(FIRST_VERSION, 3, FirstVersion.TABLE_3, _measured, "Section 5.1"),
    FIRST_VERSION.claim(
        "table3.high",
        "Table 3's caption",
        high_statement(FirstVersion.TABLE_3),
        fixed(judge_high, FirstVersion.TABLE_3, FirstVersion.DELTA),
    ),
    FIRST_VERSION.claim(
        "section5.1.separation",
        "Section 5.1",
        "The estimates from all iterates are much higher than the lower bounds",
        fixed(judge_separation, FirstVersion.TABLE_3),
    ),
    FIRST_VERSION.claim(
        "section5.2.clipping",
        "Section 5.2",
        "With clipping only the final model's estimate is 5.49, which is still essentially vacuous",
        fixed(judge_clipping, FirstVersion.TABLE_3[0].estimate_final),
    ),
    FIRST_VERSION.claim(
        "section5.2.regime",
        "Section 5.2",
        "With even a little noise the final model's estimate approaches the high-privacy regime",
        fixed(partial(judge_regime, FirstVersion.TABLE_3[1:], stated=False)),
    ),
    *anderson_checks(FIRST_VERSION, FirstVersion.TABLE_4),
    FIRST_VERSION.claim(
        "section5.3.gaussian",
        "Section 5.3",
        "For most sets of cosines the test cannot reject normality at even 15%",
        fixed(judge_gaussian_sets),
    ),
    FIRST_VERSION.claim(
        "table4.three",
        "Table 4's caption",
        "Three of the 15 statistics are above 0.574, which is no surprise for normal samples",
        Printed("3", judge_three),
    ),
    separable(FIRST_VERSION, FirstVersion.TABLE_3[0], distributions.thresholded),
    *(
        FIRST_VERSION.claim(
            f"figure{number}.measured",
            f"Section 5.3 and Figure {number}",
            statement,
            NeedsData(STACKOVERFLOW, ("v1_figure2",), partial(rule, NOISES, FirstVersion.REPETITIONS)),
        )
        for number, rule, statement in (
            (
                1,
                andrew_rules.separates,
                "The cosines' densities separate more with 1, 2, 3, 5 and 10 repetitions, and less with noise",
            ),
            (
                2,
                andrew_rules.rises,
                "For each noise level the estimate increases dramatically from 1 to 10 repetitions",
            ),
        )
    ),
    FIRST_VERSION.claim(
        "figure2.excess",
        "Figure 2's caption",
        "One of 15 lower bounds exceeds its estimate, perhaps as these are 95% bounds and 15 are plotted, and as both "
        "values vary",
        fixed(judge_excess),
    ),
)
