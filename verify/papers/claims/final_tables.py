"""Claims that the numbers of the final version's Tables 2 to 6, Section 5.4 and Figures 1 and 3 decide."""

import math
from collections.abc import Collection, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.two_gaussians import Direction
from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.check.documents import FINAL
from canaryproof.verify.papers.check.power import visible_shift
from canaryproof.verify.papers.check.results import Design, Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import Within, close, conclude, fixed, holds, rounding
from canaryproof.verify.papers.claims import andrew_rules, clipping_range, costs, distributions
from canaryproof.verify.papers.claims.canife import rules as canife_rules
from canaryproof.verify.papers.claims.distributions import MEANS, EstimateLaw
from canaryproof.verify.papers.claims.needs_data import BENCHMARK, NeedsData
from canaryproof.verify.papers.claims.simulated_tables import CELLS, DELTA, PRINTED_RUNS, PrintedCell
from canaryproof.verify.papers.claims.transcripts import QUANTILES, Final, FirstVersion, QuantileRow, Row, columns

TABLE_2 = tuple(cell for cell in CELLS if cell.id.startswith("final.table2."))
# "Much" or "far" smaller is smaller by this factor at least; "in the ballpark" is within it.
FACTOR = 2.0


def same_magnitude(value: float, other: float) -> bool:
    """Return whether two numbers are of the same order of magnitude."""
    return close([value / other], Within.MAGNITUDE) is Verdict.CONFIRMED


def unbiased(cells: Sequence[PrintedCell]) -> tuple[str, float, Design]:
    """Test that printed means of simulated estimates are those of estimates without bias.

    Returns what was found, in words, the joint p-value (Bonferroni), and the test.
    """
    scores = [(cell.mean - cell.epsilon) / (cell.deviation / math.sqrt(PRINTED_RUNS)) for cell in cells]
    worst = max(scores, key=abs)
    p_value = min(1.0, len(scores) * 2.0 * float(stats.t.sf(abs(worst), PRINTED_RUNS - 1)))
    visible = visible_shift(PRINTED_RUNS, 1, LEVEL / len(cells))
    finding = f"the mean farthest from ε is {worst:+.1f} standard errors off (joint p = {p_value:.2f})"
    design = Design(
        "the printed means are those of normal estimates without bias",
        LEVEL,
        f"one has a bias of {visible:.2g} standard deviations",
        POWER,
        PRINTED_RUNS,
    )
    return finding, p_value, design


def as_stated(cell: PrintedCell, direction: Direction = "both") -> tuple[float, float]:
    """Return the moments of Algorithm 1's estimate as stated, with the deviation fitted, for a printed simulation."""
    sigma = float(gaussian_mechanism.noise_multiplier(cell.epsilon, DELTA))
    # The other canaries add to the noise.
    distance = 1.0 / math.hypot(sigma, math.sqrt(cell.count / cell.dim))
    return distributions.moments_fitted(distance, DELTA, cell.count, direction)


def judge_very_close(cells: Sequence[PrintedCell], stated: str = "fitted") -> Outcome:
    """Judge that estimates are very close to ε, without bias too, and deviate little, by less than 20%.

    ``stated`` is the document's estimator. What ``fitted`` gives is computed and not simulated.
    """
    errors = [cell.mean / cell.epsilon - 1.0 for cell in cells]
    deviations = [cell.deviation / cell.epsilon for cell in cells]
    finding, p_value, design = unbiased(cells)
    finding = (
        f"means are off by {', '.join(f'{error:+.1%}' for error in errors)}, standard deviations are "
        f"{', '.join(f'{value:.1%}' for value in deviations)} of ε; {finding}"
    )
    held = _close(errors) and max(deviations) < 0.2 and p_value >= LEVEL
    over: list[float] = []
    if stated == "fitted":
        over = [as_stated(cell)[0] / cell.epsilon - 1.0 for cell in cells]
        one_way = [as_stated(cell, "forward") for cell in cells]
        shifts = ", ".join(f"{mean / cell.epsilon - 1.0:+.0%}" for cell, (mean, _) in zip(cells, one_way, strict=True))
        wider = ", ".join(f"{own / cell.deviation:.1f}" for cell, (_, own) in zip(cells, one_way, strict=True))
        finding = (
            f"only of the first version's estimator, which gives the printed numbers: {finding}; Algorithm 1 as "
            f"stated, with the deviation fitted, is off by {', '.join(f'{value:+.0%}' for value in over)} in both "
            f"directions, and in the one that its last line has by {shifts} with {wider} times the printed deviations"
        )
    verdict = holds(held and _close(over), held)
    evidence = {"errors": errors, "deviations": deviations, "as_stated": over, "p_value": p_value, "level": LEVEL}
    return conclude(verdict, finding, design, **evidence)


def _close(errors: Sequence[float]) -> bool:
    return close([1.0, *(1.0 + error for error in errors)]) is Verdict.CONFIRMED


def judge_order(rows: Sequence[Row]) -> Outcome:
    """Judge that ε falls with the noise, a bound is below its estimate, and the final model tells less than all."""
    faults = [
        f"{column}: {value:g} then {later:g}"
        for column, values in columns(rows).items()
        for value, later in pairwise(values)
        if later > value
    ]
    for small, large in (
        ("lower_all", "estimate_all"),
        ("lower_final", "estimate_final"),
        ("estimate_final", "estimate_all"),
    ):
        faults += [
            f"{small} above {large} at noise {row.noise}"
            for row in rows
            if float(getattr(row, small)) > float(getattr(row, large))
        ]
    above = [r.noise for r in rows if float(r.lower_final) > float(r.lower_all)]
    finding = (
        "; ".join(faults)
        if faults
        else ("ε falls with the noise, bounds are below estimates, and the final model's estimates below all iterates'")
    )
    if above:
        finding += f"; at noise {', '.join(above)} the final model has the larger lower bound, as its FPR is exact"
    return conclude(holds(not faults), finding, faults=faults)


def _fraction_of_analytical(rows: Sequence[Row]) -> list[float]:
    return [float(row.estimate_all) / float(row.analytical) for row in rows if row.analytical != "inf"]


def judge_close(rows: Sequence[Row], relatively: bool = False) -> Outcome:
    """Judge that the estimates of given rows are close, or relatively close, to the analytical ε."""
    ratios, within = _fraction_of_analytical(rows), Within.MAGNITUDE if relatively else Within.ABOUT
    verdict = close(ratios, within)
    listed = ", ".join(f"{ratio:.2f} at noise {row.noise}" for ratio, row in zip(ratios, rows, strict=True))
    finding = f"ε̂/ε = {listed}, where {'relatively close' if relatively else 'close'} is {within}"
    if verdict is Verdict.QUALIFIED:
        finding = f"only to a factor of two: {finding}"
    if any(ratio > 1.0 for ratio in ratios):
        finding += "; but above 1 an estimate exceeds what is proven to be an upper bound"
    return conclude(verdict, finding, ratios=ratios)


# Section 5.1 calls the noise of 382 and 89.4 low and medium, and Section 5.2.1 that of 258 low.
_MODERATE = ("0.0496", "0.0986", "0.0487")


def judge_ballpark(rows: Sequence[Row], within: Within = Within.MAGNITUDE, moderate: Collection[str] = ()) -> Outcome:
    """Judge that at moderate noise estimates from all iterates are near the analytical ε: at least to a factor of two.

    ``moderate`` is the noise that the text calls low or medium; none where it does not say.
    """
    ratios = dict(zip((row.noise for row in rows), _fraction_of_analytical(rows), strict=True))
    near = [noise for noise, ratio in ratios.items() if same_magnitude(ratio, 1.0)]
    named = [noise for noise in ratios if noise in moderate]
    verdict = holds(
        close([ratios[noise] for noise in named or ratios], within) is Verdict.CONFIRMED,
        near and set(named) <= set(near),
    )
    listed = ", ".join(f"{ratio:.3g} at {noise}" for noise, ratio in ratios.items())
    finding = f"estimate over analytical ε is {listed}: within a factor of two in {len(near)} of {len(rows)}"
    if verdict is Verdict.QUALIFIED:
        other = ", ".join(noise for noise in ratios if noise not in near)
        reading = "" if named else f"if moderate noise means {', '.join(near)} and not {other}"
        factor = f"to a factor of two, where close is {within}" if within is Within.ABOUT else ""
        finding = f"only {' and '.join(filter(None, (factor, reading)))}: {finding}"
    if named:
        finding += f"; the text calls {', '.join(named)} low or medium"
    return conclude(verdict, finding, ratios=list(ratios.values()))


def high_statement(rows: Sequence[Row]) -> str:
    """State that a table's estimates from all iterates are high."""
    listed = ", ".join(row.estimate_all for row in rows)
    return f"The estimates from all iterates ({listed}) are so high that membership inference is easy"


def judge_high(rows: Sequence[Row], delta: float) -> Outcome:
    """Judge that membership inference from all iterates is easy, by the documents' own footnote on what ε means.

    A suspicion of 10% may become a certainty of 90%. The best attack on one canary is for comparison: its scores are
    normal with one deviation and have the estimate as their ε.
    """
    certain = [1.0 / (1.0 + 9.0 * math.exp(-min(float(row.estimate_all), 700.0))) for row in rows]
    right = [accuracy(pinned_distance(row.estimate_all, delta)) for row in rows]
    low = [row.noise for row, share in zip(rows, certain, strict=True) if share <= CERTAIN]
    verdict = holds(not low, len(low) < len(rows))
    finding = (
        f"{'only ' if low else ''}in {len(rows) - len(low)} of {len(rows)} rows ε̂ takes a suspicion of 10% to a "
        f"certainty of more than {CERTAIN:.0%}: {', '.join(f'{share:.1%}' for share in certain)}. If scores have one "
        f"deviation, at δ = {delta:.2g}, the best attack on one canary is right in "
        f"{', '.join(f'{share:.1%}' for share in right)}"
    )
    return conclude(verdict, finding, certain=certain, accuracies=right, low=low)


DECREASE = (
    "Across the range of noise multipliers, 1,000 canaries have no significant impact on accuracy, at most a relative "
    "decrease of 0.1%"
)
# Accuracy in per cent without and with 1,000 canaries: no other table of the documents has it.
ACCURACIES = tuple(row[2:] for row in FirstVersion.TABLE_2)


def judge_decrease(printed: str, accuracies: Sequence[tuple[str, ...]] = ACCURACIES) -> Outcome:
    """Judge the largest decrease of accuracy by the first version's table."""
    limit = float(rounding(printed)[1])
    relative = max(100.0 * (1.0 - float(after) / float(before)) for before, after in accuracies)
    absolute = max(float(before) - float(after) for before, after in accuracies)
    # The decrease that is left if both accuracies were rounded in its favour.
    gaps = [(float(rounding(before)[0] - rounding(after)[1]), float(before)) for before, after in accuracies]
    least = max(0.0, *(100.0 * gap / before for gap, before in gaps))
    finding = (
        f"the first version's table has {absolute:.1f} percentage points at most, a relative decrease of "
        f"{relative:.2f}% as printed, and {least:.2f}% at least before rounding"
    )
    evidence: dict[str, Any] = {"relative": relative, "absolute": absolute, "least": least}
    verdict = holds(relative <= limit, absolute <= limit and least <= limit)
    if verdict is Verdict.QUALIFIED:
        finding = f"only as percentage points, not relative: {finding}"
    return conclude(verdict, finding, **evidence)


def judge_similar(rows: Sequence[Row], others: Sequence[Row]) -> Outcome:
    """Judge that two tables are similar: row by row, or at least by all comparisons of ``judge_order``."""
    ratios = {
        column: [b / a for a, b in zip(columns(rows)[column], columns(others)[column], strict=True)]
        for column in ("estimate_all", "estimate_final")
    }
    everywhere, final = ratios.values()
    finding = (
        "in their order, which is qualitatively, as the section says of Figures 3 and 4; row by row the second's "
        f"estimates are {min(final):.2f} to {max(final):.2f} times the first's "
        f"from the final model, and {min(everywhere):.2f} to {max(everywhere):.2f} times from all model deltas"
    )
    alike = close([ratio for values in ratios.values() for ratio in values]) is Verdict.CONFIRMED
    same = all(judge_order(table).verdict is Verdict.CONFIRMED for table in (rows, others))
    return conclude(holds(same and alike, same), f"only {finding}" if not alike else finding, ratios=ratios)


def _judge_separation() -> Outcome:
    ratios = [float(row.estimate_all) / float(row.lower_all) for row in Final.TABLE_3[:2]]
    return conclude(
        holds(min(ratios) > 10.0),
        f"{ratios[0]:.0f} and {ratios[1]:.0f} times; with a sampled null no bound from 1,000 canaries can exceed 6.26",
        ratios=ratios,
    )


def _judge_final_lower() -> Outcome:
    ratios = [float(r.estimate_all) / float(r.estimate_final) for r in (*Final.TABLE_3, *Final.TABLE_4)]
    finding = f"smaller by factors of {min(ratios):.1f} to {max(ratios):.0f}"
    return conclude(holds(min(ratios) > 2.0), finding, ratios=ratios)


def _judge_order_of_one() -> Outcome:
    values = columns(Final.TABLE_3[1:])["estimate_final"]
    printed = ", ".join(row.estimate_final for row in Final.TABLE_3[1:])
    finding = f"{printed}: within a factor of two of 1 at every noise above 0"
    return conclude(close(values, Within.MAGNITUDE), finding, values=values)


def judge_gaussianity(rows: Sequence[tuple[str, tuple[float, ...]]] = Final.TABLE_6) -> Outcome:
    """Judge that Anderson's test cannot rule out that the sixteen sets of cosines are normal.

    What the test does at the levels usual for it is the statement, so that the verdict follows from the printed
    statistics, without chance.
    """
    law = anderson_darling.limit_law(True)
    p_values = {f"{noise}, {2**i}": law.sf(value) for noise, row in rows for i, value in enumerate(row)}
    label, smallest = min(p_values.items(), key=lambda item: item[1])
    rejected = [name for name, p in p_values.items() if p < 0.01]
    joint = 1.0 - (1.0 - smallest) ** len(p_values)
    verdict = holds(not rejected, joint >= 0.05)
    finding = (
        f"only for the sixteen together at level 5%: the set at noise and presentations {label} has p = "
        f"{smallest:.4f}, rejected at 1% by the table's caption; the chance of one such among sixteen is {joint:.3f}"
        if rejected
        else f"the smallest p-value is {smallest:.3f}, at {label}"
    )
    return conclude(verdict, finding, p_values=p_values, joint=joint)


def judge_much_closer(
    estimate: str = Final.ONE_SHOT[0], other: str = Final.CANIFE[0], analytical: str = Final.CANIFE_ANALYTICAL
) -> Outcome:
    """Judge that one estimate is much closer to the analytical ε than another."""
    nearer, farther, bound = float(estimate), float(other), float(analytical)
    gaps, ratios = [bound - value for value in (nearer, farther)], [bound / value for value in (nearer, farther)]
    # Much closer: at most half as far.
    by_ratio, by_distance = (2.0 * math.log(ratios[0]) <= math.log(ratios[1]), 2.0 * gaps[0] <= gaps[1])
    verdict = holds(by_ratio and by_distance, by_ratio)
    finding = (
        f"{nearer / bound:.0%} of the analytical ε against {farther / bound:.1%}, {nearer / farther:.1f} times "
        f"CANIFE's; but the distance shrinks only from {gaps[1]:.1f} to {gaps[0]:.1f}"
    )
    if verdict is Verdict.QUALIFIED:
        finding = f"only as a ratio: {finding}"
    return conclude(verdict, finding, shares=(nearer / bound, farther / bound), gaps=gaps)


# Figures 1 and 3 for a canary presented once, whose cosines Tables 3 and 4 summarise.


def cosine_distance(row: Row, delta: float, law: EstimateLaw = distributions.fitted) -> float:
    """Mean of the observed cosines, in the null's deviations, of which a row's estimate is the median.

    ``law`` is that of the document's estimator: with few canaries it is above ε where the deviation is fitted.
    """
    return distributions.mean_of_median(law, float(row.estimate_final), delta)


def pinned_distance(estimate: str, delta: float) -> float:
    """Mean of cosines with the null's deviation that has a printed estimate as its ε."""
    return 1.0 / float(gaussian_mechanism.noise_multiplier(float(estimate), delta))


# Share of right guesses of an attack on one canary that is easy.
EASY = 0.99
# From a suspicion of 10%: the documents' footnote calls 94% a very high degree of certainty.
CERTAIN = 0.9


def accuracy(shift: float) -> float:
    """Share of right guesses of the best attack on one canary, observed or not with probability 1/2 each."""
    return float(special.ndtr(0.5 * shift))


def judge_separable(row: Row, delta: float, law: EstimateLaw = distributions.fitted) -> Outcome:
    """Judge that observed cosines are easily distinguished from the null distribution."""
    shift, unfitted = cosine_distance(row, delta, law), pinned_distance(row.estimate_final, delta)
    right, errors = accuracy(shift), shift * math.sqrt(Final.CANARIES)
    # One cosine: hardly an error. A thousand: farther from 0 than chance explains.
    verdict = holds(right > EASY, errors > 5.0)
    finding = (
        f"by the document's estimator at δ = {delta:.2g}, {row.estimate_final} is the median of cosines {shift:.2f} "
        f"standard deviations above the null's. Their mean over {Final.CANARIES:,} canaries is {errors:.0f} standard "
        f"errors from 0, but the best attack on one canary is right in {right:.0%}. With one deviation for both, they "
        f"are {unfitted:.2f} above it, and the attack is right in {accuracy(unfitted):.0%}"
    )
    if verdict is Verdict.QUALIFIED:
        finding = f"only by many cosines together, for canaries presented once: {finding}"
    return conclude(verdict, finding, distance=shift, accuracy=right)


def judge_less_separable(rows: Sequence[Row], delta: float, law: EstimateLaw = distributions.fitted) -> Outcome:
    """Judge that observed cosines come closer to the null distribution as the noise grows."""
    shifts = [cosine_distance(row, delta, law) for row in rows]
    unfitted = [pinned_distance(row.estimate_final, delta) for row in rows]
    falling = all(shift > later for shift, later in pairwise(shifts))
    finding = (
        f"from noise {rows[0].noise} to {rows[-1].noise} they are {', '.join(f'{shift:.2f}' for shift in shifts)} "
        f"standard deviations above it ({', '.join(f'{shift:.2f}' for shift in unfitted)} if the deviation were not "
        "fitted), and the best attack on one canary is right in "
        f"{', '.join(f'{accuracy(shift):.0%}' for shift in shifts)}"
    )
    return conclude(holds(falling), finding, distances=shifts, unfitted=unfitted)


# Figures, each with the table of the same experiments.
_FIGURES = ((1, 3), (3, 4))


# Table 5: quantiles of ε̂ over fifty experiments, and what they say of the estimator.

_EXPERIMENTS = 50
# The quantiles of both documents' tables, in words.
LEVELS = ", ".join(f"{order:g}" for order in QUANTILES)
# By every usual definition a quantile lies between the order statistics with these ranks and the next.
_RANKS = np.array([round(order * _EXPERIMENTS) for order in QUANTILES])
# Tests of a row: of each quantile, and of how far the outermost are apart.
_PARTS = len(QUANTILES) + 1


def quantile_p_values(below: NDArray[np.float64]) -> NDArray[np.float64]:
    """p-values of printed quantiles of fifty estimates: one each, and one for how far the outermost are apart.

    ``below``: values of the estimate's law at the printed quantiles (last axis). The p-values are two-sided, and no
    smaller than the exact ones. Uniform draws take the place of the estimates. The next order statistic on the safe
    side takes that of a quantile between two.
    """
    low, high = stats.binom.sf(_RANKS - 1, _EXPERIMENTS, below), stats.binom.cdf(_RANKS, _EXPERIMENTS, below)
    ranks, apart = _RANKS[-1] - _RANKS[0], below[..., -1:] - below[..., :1]
    near, far = (stats.beta(between, _EXPERIMENTS + 1 - between) for between in (ranks - 1, ranks + 1))
    spread = np.minimum(near.cdf(apart), far.sf(apart))
    return np.minimum(1.0, 2.0 * np.concatenate([np.minimum(low, high), spread], axis=-1))


def joint_p_value(rows: Sequence[QuantileRow], law: EstimateLaw) -> float:
    """p-value of printed quantiles being those of estimates with one mean of the cosines: the largest over means."""
    tests = [quantile_p_values(law(np.asarray(row[3], dtype=float), MEANS, Final.STACKOVERFLOW_DELTA)) for row in rows]
    return min(1.0, len(rows) * _PARTS * float(np.concatenate(tests, axis=-1).min(axis=-1).max()))


def judge_spread(row: QuantileRow) -> Outcome:
    """Judge whether a row's quantiles are those of fifty estimates from 1,000 normal cosines each."""
    rows: dict[str, dict[str, Any]] = {}
    for name, law in (("fitted", distributions.fitted), ("pinned", distributions.pinned)):
        mean = distributions.mean_at(law, float(row[3][2]), 0.5, Final.STACKOVERFLOW_DELTA)
        rows[name] = {
            "distance": mean,
            "epsilon": float(epsilon_estimators.pinned_epsilon(Final.STACKOVERFLOW_DELTA, np.asarray(mean))),
            "quantiles": [distributions.quantile(law, order, mean, Final.STACKOVERFLOW_DELTA) for order in QUANTILES],
            "p_value": joint_p_value([row], law),
        }
    fitted, pinned = rows["fitted"], rows["pinned"]
    listed = ", ".join(f"{value:.2f}" for value in fitted["quantiles"])
    finding = (
        f"fitted Gaussians give {listed} (p = {fitted['p_value']:.2f}), a pinned variance far less spread "
        f"(p = {pinned['p_value']:.0e}); the median {row[3][2]} then belongs to a true ε of {fitted['epsilon']:.2f}"
    )
    # For normal estimates, the fifty of a narrower law have their outermost quantiles in an interval of so small a
    # probability under the other.
    ranks = _RANKS[-1] - _RANKS[0]
    within = stats.beta.ppf(LEVEL / (2 * _PARTS), ranks - 1, _EXPERIMENTS + 2 - ranks)
    reach = stats.beta.ppf(0.5 + 0.5 * POWER, _RANKS[-1] + 1, _EXPERIMENTS - _RANKS[-1])
    narrower = float(special.ndtri(reach) / special.ndtri(0.5 + 0.5 * within))
    design = Design(
        f"the printed row is of {_EXPERIMENTS} estimates by fitted, each from 1,000 independent normal cosines with "
        "the null's variance",
        LEVEL,
        f"they are of estimates with a deviation {narrower:.2g} times smaller",
        POWER,
        _EXPERIMENTS,
    )
    verdict = holds(fitted["p_value"] >= LEVEL)
    return conclude(verdict, finding, design, estimators=rows, level=LEVEL)


def judge_one_run_and_ten(rows: Sequence[QuantileRow] = Final.TABLE_5) -> Outcome:
    """Judge whether one run and ten runs at the same noise, in pairs of rows, differ by more than chance."""
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    values = np.array([[row[3] for row in pair] for pair in pairs], dtype=float)
    differences = (values[:, 1] / values[:, 0] - 1.0).ravel().tolist()
    p_value = min(1.0, len(pairs) * min(joint_p_value(pair, distributions.fitted) for pair in pairs))
    finding = (
        f"quantiles differ by {min(differences):+.0%} to {max(differences):+.0%}; that both are of fifty "
        f"estimates with one law has p = {p_value:.2g}"
    )
    # For normal estimates, one median is at the lower tail of a mean between, the other at its upper one.
    rank, parts = _RANKS[QUANTILES.index(0.5)], 2 * len(pairs) * _PARTS
    tail = special.ndtri(stats.beta.ppf(LEVEL / (2 * parts), rank, _EXPERIMENTS + 1 - rank))
    error = special.ndtri(stats.beta.ppf(0.5 + 0.5 * POWER, rank + 1, _EXPERIMENTS - rank))
    design = Design(
        f"both printed rows of a pair are of {_EXPERIMENTS} estimates by fitted, each from 1,000 independent normal "
        "cosines with the null's variance and one mean",
        LEVEL,
        f"in a pair they differ by {2.0 * (error - tail):.2g} deviations of an estimate",
        POWER,
        _EXPERIMENTS,
    )
    ordered = bool(np.all(np.diff(values) > 0.0))
    same = ordered and p_value >= LEVEL
    verdict = holds(same and _close(differences), same)
    if verdict is Verdict.QUALIFIED:
        finding = f"only within the error of {_EXPERIMENTS} experiments, where close is {Within.ABOUT}: {finding}"
    return conclude(verdict, finding, design, differences=differences, p_value=p_value, level=LEVEL)


def judge_medians(rows: Sequence[Row] = Final.TABLE_3) -> Outcome:
    """Judge that Table 5's medians of one run each are the estimates of Table 3."""
    pairs = [
        (row.estimate_final, quantiles[2])
        for row in rows
        for noise, runs, _, quantiles in Final.TABLE_5
        if runs == 1 and noise == row.noise
    ]
    listed = ", ".join(f"{estimate} and {median}" for estimate, median in pairs)
    same = all(estimate == median for estimate, median in pairs)
    return conclude(holds(same), listed, pairs=pairs)


# Claims that only the data sets decide.

_STACKOVERFLOW, _EMNIST, _FASHION = "StackOverflow (TFF)", "federated EMNIST (TFF)", "Fashion-MNIST"


_NOISES, _EMNIST_NOISES = (tuple(row.noise for row in table) for table in (Final.TABLE_3, Final.TABLE_4))


CHECKS = (
    FINAL.claim(
        "section3.close",
        "Section 3 and Table 2",
        "Algorithm 1's estimates 0.972 ± 0.148, 3.04 ± 0.137 and 9.98 ± 0.190 are very close to 1, 3 and 10, and "
        "deviate little",
        fixed(judge_very_close, TABLE_2),
    ),
    FINAL.claim(
        "section4.1.moderate",
        "Section 4.1",
        "At moderate noise the estimates from all rounds are close to the analytical ε (Tables 3 and 4)",
        fixed(judge_ballpark, (*Final.TABLE_3[1:], *Final.TABLE_4[1:]), Within.ABOUT, _MODERATE),
    ),
    FINAL.claim(
        "table3.ballpark",
        "caption of Table 3",
        "For moderate noise, which Section 5.1 calls low and medium, the estimate from all iterates is in the ballpark "
        "of the analytical ε",
        fixed(judge_ballpark, Final.TABLE_3[1:], Within.MAGNITUDE, _MODERATE),
    ),
    FINAL.claim(
        "section5.1.separation",
        "Section 5.1",
        "At the lower noise multipliers the estimates from all rounds are much higher than the lower bounds",
        fixed(_judge_separation),
    ),
    FINAL.claim(
        "section5.1.close",
        "Section 5.1",
        "At low and medium noise the estimates are relatively close to the analytical ε: 382 and 300, 89.4 and 100",
        fixed(judge_close, Final.TABLE_3[1:3], True),
    ),
    FINAL.claim(
        "section5.2.1.close",
        "Section 5.2.1",
        "All iterates and a low amount of noise give estimates close to the analytical bound, on EMNIST (258 and 300)",
        fixed(judge_close, Final.TABLE_4[1:2]),
    ),
    FINAL.claim(
        "section5.1.final-lower",
        "Sections 5.1 and 5.2.1, captions of Tables 3 and 4",
        "Estimates from the final model are far lower than those from all iterates, in Tables 3 and 4",
        fixed(_judge_final_lower),
    ),
    FINAL.claim(
        "section5.1.order-of-one",
        "Section 5.1",
        "With even a little noise the final model's estimate approaches the high-privacy regime of ε ∼ 1",
        fixed(_judge_order_of_one),
    ),
    FINAL.claim(
        "table4.high",
        "caption of Table 4",
        high_statement(Final.TABLE_4),
        fixed(judge_high, Final.TABLE_4, Final.EMNIST_DELTA),
    ),
    FINAL.claim(
        "section5.2.1.similar",
        "Section 5.2.1",
        "The results on EMNIST are similar to those on StackOverflow, those of Figures 3 and 4 qualitatively",
        fixed(judge_similar, Final.TABLE_3, Final.TABLE_4),
    ),
    FINAL.claim(
        "section5.4.closer",
        "Section 5.4",
        "An estimate of 6.76 is much closer to the analytical 34.5 than CANIFE's 0.879",
        fixed(judge_much_closer),
    ),
    FINAL.claim(
        "appendixB.gaussian",
        "Section 5.2, Appendix B and Table 6",
        "Anderson's test cannot rule out that the sixteen sets of 1000 cosines are Gaussian",
        fixed(judge_gaussianity),
    ),
    *(
        FINAL.claim(
            f"figure{figure}.separable",
            f"Section 5.2, Figure {figure} and Table {table}",
            "Without noise the distribution of observed cosines is easily separable from the null distribution",
            fixed(judge_separable, rows[0], delta),
        )
        for figure, table in _FIGURES
        for rows, _, delta in (Final.RESULTS[table],)
    ),
    FINAL.claim(
        "table5.close",
        "Section 5.3 and Table 5",
        "One run with 1000 canaries and ten runs with 100 have very close distributions of the estimate",
        fixed(judge_one_run_and_ten),
    ),
    *(
        FINAL.claim(
            f"table{table}.row{number}.measured",
            f"Table {table}",
            f"At noise {row.noise}: lower bound {row.lower_all} and estimate {row.estimate_all} from all model deltas, "
            f"{row.lower_final} and {row.estimate_final} from the final model",
            NeedsData(
                data,
                (f"final_table{table}",),
                partial(andrew_rules.row, row, readings),
                partial(clipping_range.judge, row, training),
            ),
        )
        for table, rows, data, readings, training in (
            (3, Final.TABLE_3, _STACKOVERFLOW, andrew_rules.STACKOVERFLOW, clipping_range.STACKOVERFLOW),
            (4, Final.TABLE_4, _EMNIST, andrew_rules.EMNIST, clipping_range.EMNIST),
        )
        for number, row in enumerate(rows, 1)
    ),
    *(
        FINAL.claim(
            f"table5.row{number}.measured",
            "Table 5",
            f"Fifty experiments at noise {noise} with {runs} × {canaries} canaries have the {LEVELS} quantiles "
            f"{', '.join(quantiles)}",
            NeedsData(
                _STACKOVERFLOW, ("final_table5",), partial(andrew_rules.quantiles, noise, runs, canaries, quantiles)
            ),
        )
        for number, (noise, runs, canaries, quantiles) in enumerate(Final.TABLE_5, 1)
    ),
    *(
        FINAL.claim(
            f"table6.row{number}.measured",
            "Table 6",
            f"At noise {noise} Anderson's statistics for 1, 2, 4 and 8 presentations are {', '.join(statistics)}",
            NeedsData(
                _STACKOVERFLOW,
                ("final_figure2",),
                partial(andrew_rules.anderson, noise, andrew_rules.TIMES, statistics),
            ),
        )
        for number, (noise, values) in enumerate(Final.TABLE_6, 1)
        for statistics in ([f"{value:g}" for value in values],)
    ),
    *(
        FINAL.claim(
            f"figure{number}.measured",
            f"Figure {number}",
            statement,
            NeedsData(data, (experiment,), partial(rule, noises, andrew_rules.TIMES)),
        )
        for first, data, experiment, noises in (
            (1, _STACKOVERFLOW, "final_figure2", _NOISES),
            (3, _EMNIST, "final_figure4", _EMNIST_NOISES),
        )
        for number, rule, statement in (
            (
                first,
                andrew_rules.separates,
                "Cosines separate more with 1, 2, 4, 8 presentations and less with noise",
            ),
            (
                first + 1,
                andrew_rules.rises,
                "The estimate rises sharply from 1 to 8 presentations at every noise",
            ),
        )
    ),
    FINAL.claim(
        "section5.2.1.repetitions",
        "Section 5.2.1, Figures 3 and 4",
        "The effect of more canary repetitions on EMNIST is qualitatively similar to the case of StackOverflow",
        NeedsData(
            f"{_STACKOVERFLOW} and {_EMNIST}",
            ("final_figure2", "final_figure4"),
            partial(andrew_rules.alike, (_NOISES, _EMNIST_NOISES), True),
        ),
    ),
    FINAL.claim(
        "section5.1.accuracy", "Section 5.1", DECREASE, NeedsData(_STACKOVERFLOW, ("final_table3",), andrew_rules.cost)
    ),
    FINAL.claim(
        "section5.4.canife",
        "Section 5.4",
        f"CANIFE's estimate is {' ± '.join(Final.CANIFE)}",
        NeedsData(_FASHION, (BENCHMARK,), partial(canife_rules.benchmark_reading, "final.section5.4.canife")),
    ),
    FINAL.claim(
        "section5.4.ours",
        "Section 5.4",
        f"The estimate from 1000 + 1000 canaries is {' ± '.join(Final.ONE_SHOT)}",
        NeedsData(_FASHION, (BENCHMARK, "fashion_mnist"), partial(canife_rules.one_shot, "final.section5.4.ours")),
    ),
    FINAL.claim(
        "section5.4.cost",
        "Sections 1 and 5.4",
        "Canaries add negligible computation, CANIFE's 2500 optimisation steps from a pool of 512 much",
        fixed(costs.judge_negligible),
    ),
)
