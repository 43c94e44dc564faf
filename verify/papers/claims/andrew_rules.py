"""Rules for what Andrew et al. measured: bounds, estimates, quantiles, accuracies, Anderson's statistics, figures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import stats

from canaryproof.kernels.arrays import Array
from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.lower_bound import cosine_null, prepare
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import from_dimension, from_two_groups
from canaryproof.verify.papers.check.results import Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import conclude, rounding
from canaryproof.verify.papers.claims import prediction
from canaryproof.verify.papers.claims.experiment_results import BOUND, FinishedExperiment
from canaryproof.verify.papers.claims.prediction import ALPHA, ENOUGH, FEW, Part
from canaryproof.verify.papers.claims.transcripts import QUANTILES, Row
from canaryproof.verify.papers.records.training_record import AuditRecord, CellRecord

# Confidence of printed lower bounds.
_BOUND_ALPHA = 0.05
# Fifty experiments are printed; quantiles of fewer than twenty measured ones decide little.
_EXPERIMENTS, _FEWEST = 50, 20

Reading = Mapping[str, str]
AS_PRINTED: Reading = {"attack": "final", "estimator": "fitted"}
# The first version's estimator, and an attacker who knows the public initial model.
OTHERS: Mapping[str, Reading] = {
    "with the variance of the null": {"attack": "final", "estimator": "pinned"},
    "from the change of the model": {"attack": "change", "estimator": "fitted"},
}
STACKOVERFLOW = {"as printed": AS_PRINTED, **OTHERS}
# Clients take part in each epoch of EMNIST, and canaries "exactly as real users do".
EMNIST = {
    f"{name}{how}": {**reading, "canaries__participation": participation}
    for participation, how in (("clients", ""), ("periods", ", each canary once"))
    for name, reading in STACKOVERFLOW.items()
}


def reported(audit: AuditRecord, name: str) -> float:
    """Return an audit's estimate of that name, or the lower bound that the papers print."""
    return audit.bounds[BOUND].value if name == "bound" else audit.estimates[name].epsilon


def statistic(audit: AuditRecord) -> float:
    """Return Anderson's statistic of an audit; NaN if there is none."""
    return math.nan if audit.normality is None else audit.normality.statistic


class CosineSample(NamedTuple):
    """The cosines of an audit, as a simulation draws others like them."""

    observed: int
    unobserved: int | None
    distance: float
    distance_error: float
    ratio: float
    ratio_error: float


def simulated(audit: AuditRecord, dim: int, delta: float, draws: int) -> dict[str, tuple[float, float]]:
    """Return the ranges of estimates and of the bound over experiments that are simulated after one of the user's."""
    sample = CosineSample(*(getattr(audit, field) for field in CosineSample._fields))
    parts = {field: getattr(sample, field) for field in CosineSample._fields}
    parts |= {"statistic": statistic(audit)} | {name: reported(audit, name) for name in ("fitted", "pinned", "bound")}
    # The words are the seed of what is drawn.
    words = f"FinishedAudit({', '.join(f'{name}={value!r}' for name, value in parts.items())})"
    return _simulated(words, sample, dim, delta, draws)


@lru_cache(maxsize=64)
def _simulated(words: str, sample: CosineSample, dim: int, delta: float, draws: int) -> dict[str, tuple[float, float]]:
    rng = prediction.generator(words)
    # Our own error, and then the other experiment's.
    centre = sample.distance + sample.distance_error * rng.standard_normal((draws, 1))
    spread = sample.ratio * np.exp(sample.ratio_error / sample.ratio * rng.standard_normal((draws, 1)))
    observed = centre + spread * rng.standard_normal((draws, sample.observed))
    if sample.unobserved is None:
        observed /= math.sqrt(dim)
        moments = from_dimension(observed, dim)
        scores = prepare(observed, None, cosine_null(dim))
    else:
        unobserved = rng.standard_normal((draws, sample.unobserved))
        moments = from_two_groups(observed, unobserved)
        scores = prepare(observed, unobserved)
    values = {
        "fitted": epsilon_estimators.both_directions(delta, moments.distance, moments.ratio),
        "pinned": epsilon_estimators.pinned_epsilon(delta, epsilon_estimators.pinned_distance(moments)),
        "bound": METHODS["andrew"].compute(scores, delta, _BOUND_ALPHA)[0],
    }
    return {name: (float(np.min(drawn)), float(np.max(drawn))) for name, drawn in values.items()}


def row(printed: Row, readings: Mapping[str, Reading], experiment: FinishedExperiment) -> Outcome | None:
    """Judge a row of lower bounds and estimates from all rounds and from the final model; None if a cell is missing."""
    alpha = ALPHA / 4

    def judged(name: str, text: str, cell: CellRecord, attack: str, field: str) -> Part:
        audits = [repetition.audit(attack) for repetition in cell.results]
        values = [reported(audit, field) for audit in audits]
        usable = all(map(math.isfinite, values))
        if usable and len(values) >= ENOUGH:
            logarithmic = attack == "all" and field != "bound" and min(values) > 0.0
            interval = prediction.student(values, alpha, logarithmic=logarithmic)
            return prediction.number(name, text, values, interval, telling=field != "bound")
        if not usable:
            return prediction.number(name, text, values, None)
        draws = math.ceil(2.0 / alpha) - 1
        ends = [simulated(audit, cell.dim, cell.settings["audit.delta"], draws)[field] for audit in audits]
        # The interval of any of them, which is wider than that of all together.
        interval = min(low for low, _ in ends), max(high for _, high in ends)
        return prediction.number(name, text, values, interval, telling=field != "bound")

    parts = {}
    for name, reading in readings.items():
        swept = {field: value for field, value in reading.items() if "__" in field}
        cell = prediction.only_cell(experiment, training__noise_multiplier=printed.noise, **swept)
        if cell is None:
            return None
        attack, estimator = reading["attack"], reading["estimator"]
        parts[name] = [
            judged("lower bound, all rounds,", printed.lower_all, cell, "all", "bound"),
            judged("estimate, all rounds,", printed.estimate_all, cell, "all", "fitted"),
            judged("lower bound, final model,", printed.lower_final, cell, attack, "bound"),
            judged("estimate, final model,", printed.estimate_final, cell, attack, estimator),
        ]
    return prediction.readings(parts, experiment)


def quantiles(
    noise: str, runs: int, count: int, printed: Sequence[str], experiment: FinishedExperiment
) -> Outcome | None:
    """Judge quantiles of fifty experiments by their ranks among the measured ones, which are beta-binomial."""
    cell = prediction.only_cell(
        experiment, training__noise_multiplier=noise, canaries__runs=runs, canaries__count=count
    )
    if cell is None:
        return None

    def judged(attack: str, estimator: str) -> list[Part]:
        estimates = np.sort([reported(repetition.audit(attack), estimator) for repetition in cell.results])
        if len(estimates) < _FEWEST:
            return [Part(Verdict.INCONCLUSIVE, f"only {len(estimates)} experiments of {_EXPERIMENTS}")]
        alpha = ALPHA / len(printed)
        return [_quantile(share, text, estimates, alpha) for share, text in zip(QUANTILES, printed, strict=True)]

    parts = {name: judged(reading["attack"], reading["estimator"]) for name, reading in STACKOVERFLOW.items()}
    return prediction.readings(parts, experiment)


def _quantile(share: float, text: str, estimates: Array, alpha: float) -> Part:
    # A printed quantile lies between two order statistics of its fifty.
    lower = math.floor(share * (_EXPERIMENTS - 1)) + 1
    (low, high), count = (float(end) for end in rounding(text)), len(estimates)
    least = int(np.sum(estimates < low))
    most = int(np.sum(estimates <= high))
    few = stats.betabinom.cdf(most, count, lower, _EXPERIMENTS + 1 - lower)
    many = stats.betabinom.sf(least - 1, count, lower + 1, _EXPERIMENTS - lower)
    p_value = 2.0 * float(min(few, many))
    median = float(np.quantile(estimates, share))
    listed = f"quantile {share} {text}, measured {median:.3g} (p = {min(1.0, p_value):.2g})"
    if p_value >= alpha:
        return Part(Verdict.CONFIRMED, listed)
    near = median > 0.0 and 1.0 / prediction.NEAR <= float(text) / median <= prediction.NEAR
    return Part(Verdict.QUALIFIED if near else Verdict.REFUTED, listed)


# Accuracies, Anderson's statistics, figures.

# In percentage points, within which an accuracy is confirmed or qualified.
_POINT, _POINTS = 1.0, 3.0
# Presentations of a canary in the figures of the final version and of the submission.
TIMES = (1, 2, 4, 8)
# "Sharply", "dramatically": by this factor at least from the fewest presentations to the most.
_SHARP = 2.0


def accuracy(name: str, printed: str, values: Sequence[float], alpha: float) -> Part:
    """Judge an accuracy printed in per cent: confirmed within a percentage point, or where Student's law has it."""
    shares = 100.0 * np.asarray(values)
    least, most = (float(end) for end in rounding(printed))
    distance = max(0.0, least - float(shares.mean()), float(shares.mean()) - most)
    text = f"{name} {printed}%, measured {prediction.shown(shares.tolist())}%"
    inside = False
    if len(shares) >= FEW:
        low, high = prediction.student(shares.tolist(), alpha)
        inside = low <= float(printed) <= high and high - low <= 2 * _POINTS
    if inside or distance <= _POINT:
        return Part(Verdict.CONFIRMED, text)
    text += f", {distance:.2g} percentage points away"
    return Part(Verdict.QUALIFIED if distance <= _POINTS else Verdict.REFUTED, text)


def accuracies(noise: str, without: str, with_canaries: str, experiment: FinishedExperiment) -> Outcome | None:
    """Judge a row of accuracies without canaries and with them, and what they cost."""
    cell = prediction.only_cell(experiment, training__noise_multiplier=noise)
    if cell is None or any(run.accuracy_without is None for run in cell.runs()):
        return None
    runs = list(cell.runs())
    base = [run.accuracy_without or 0.0 for run in runs]
    parts = [
        accuracy("accuracy without canaries", without, base, ALPHA / 2),
        accuracy("with them", with_canaries, [run.accuracy for run in runs], ALPHA / 2),
    ]
    return prediction.readings({"as printed": parts}, experiment)


def cost(experiment: FinishedExperiment) -> Outcome | None:
    """Judge what canaries cost of accuracy: nothing that is significant, or else 0.1% of it at most.

    The error of a difference is at most that of two independent samples of held-out examples.
    """
    parts = []
    for cell in experiment.cells:
        runs = list(cell.runs())
        if any(run.accuracy_without is None for run in runs):
            return None
        base = float(np.mean([run.accuracy_without for run in runs]))
        lost = base - float(np.mean([run.accuracy for run in runs]))
        error = math.sqrt(2.0 * base * (1.0 - base) / (cell.test_examples * len(runs)))
        text = (
            f"at noise {cell.settings['training.noise_multiplier']} {100 * lost:+.3f} percentage points of "
            f"{100 * base:.2f}% (± {100 * error:.2g} at most)"
        )
        # The last printed digit of 0.1% leaves room for 0.15%.
        allowed = 0.0015 * base
        clear = float(stats.norm.isf(ALPHA / len(experiment.cells))) * error
        verdict = Verdict.CONFIRMED if lost <= allowed else Verdict.INCONCLUSIVE
        parts.append(Part(verdict if lost <= allowed + clear else Verdict.REFUTED, text))
    return prediction.readings({"as printed": parts}, experiment)


def anderson(
    noise: str, presentations: Sequence[int], printed: Sequence[str], experiment: FinishedExperiment
) -> Outcome | None:
    """Judge a row of Anderson's statistics: whether printed and measured sets of cosines may both be normal.

    Two draws of the statistic's null law say no more than that. Confirmed if no p-value of either is below 1%, all
    together; qualified if one that is printed is; refuted if one that is measured is.
    """
    law = anderson_darling.limit_law(True)
    parts = []
    for count, text in zip(presentations, printed, strict=True):
        cell = prediction.only_cell(experiment, training__noise_multiplier=noise, canaries__presentations=count)
        if cell is None:
            return None
        values = [statistic(audit) for audit in _final(cell)]
        if not all(map(math.isfinite, values)):
            parts.append(Part(Verdict.INCONCLUSIVE, f"{count} presentations have no statistic"))
            continue
        p_printed = float(law.sf(float(text)))
        # The law's tail is computed to 100, and falls.
        p_measured = min(1.0, len(values) * min(float(law.sf(min(value, 100.0))) for value in values))
        verdict = Verdict.CONFIRMED if min(p_printed, p_measured) >= ALPHA / (2 * len(printed)) else Verdict.QUALIFIED
        if p_measured < ALPHA / (2 * len(printed)):
            verdict = Verdict.REFUTED
        shown = prediction.shown(values)
        listed = f"{count} presentations {text} (p = {p_printed:.2g}), measured {shown} (p = {p_measured:.2g})"
        parts.append(Part(verdict, listed))
    return prediction.readings({"as printed": parts}, experiment)


def rises(noises: Sequence[str], presentations: Sequence[int], experiment: FinishedExperiment) -> Outcome | None:
    """Judge that estimates from the final model rise sharply with presentations: at every noise, twofold or more."""
    parts = []
    alpha = ALPHA / len(noises)
    above = 0
    for noise in noises:
        few, many = (
            prediction.only_cell(experiment, training__noise_multiplier=noise, canaries__presentations=count)
            for count in (presentations[0], presentations[-1])
        )
        if few is None or many is None:
            return None
        ends = [_distance(cell) for cell in (few, many)]
        means = [float(np.mean([reported(audit, "fitted") for audit in _final(cell)])) for cell in (few, many)]
        step = (f"noise {noise}", ends[1][0] - ends[0][0], math.hypot(ends[0][1], ends[1][1]))
        part = prediction.order(f"the cosines' mean at noise {noise}", [step], alpha)
        factor = means[1] / means[0] if means[0] > 0.0 else math.inf
        text = f"at noise {noise} ε̂ from {means[0]:.3g} to {means[1]:.3g}"
        verdict = part.verdict
        if verdict is Verdict.CONFIRMED and factor < _SHARP:
            verdict = Verdict.QUALIFIED
        parts.append(Part(verdict, text))
        above += sum(
            reported(audit, "bound") > reported(audit, "fitted")
            for count in presentations
            for cell in prediction.cells(experiment, training__noise_multiplier=noise, canaries__presentations=count)
            for audit in _final(cell)
        )
    # One of v1's fifteen; how many there are by chance is no verdict.
    parts[-1] = replace(parts[-1], text=f"{parts[-1].text}; {above} lower bounds are above their estimates")
    return prediction.readings({"as printed": parts}, experiment, bounds_above_estimates=above)


def separates(noises: Sequence[str], presentations: Sequence[int], experiment: FinishedExperiment) -> Outcome | None:
    """Judge that cosines separate more with presentations and less with noise, from one end to the other."""
    grid = {}
    for noise in noises:
        for count in presentations:
            cell = prediction.only_cell(experiment, training__noise_multiplier=noise, canaries__presentations=count)
            if cell is None:
                return None
            grid[noise, count] = _distance(cell)

    def step(name: str, low: tuple[str, int], high: tuple[str, int]) -> tuple[str, float, float]:
        (below, error), (above, other) = grid[low], grid[high]
        return name, above - below, math.hypot(error, other)

    first, last = presentations[0], presentations[-1]
    more = [step(f"noise {noise}", (noise, first), (noise, last)) for noise in noises]
    less = [step(f"{count} presentations", (noises[-1], count), (noises[0], count)) for count in presentations]
    parts = [
        prediction.order(f"separation from {first} to {last} presentations", more, ALPHA / 2),
        prediction.order(f"separation from noise {noises[-1]} to {noises[0]}", less, ALPHA / 2),
    ]
    listed = {f"{noise}, {count}": value for (noise, count), (value, _) in grid.items()}
    return prediction.readings({"as printed": parts}, experiment, distances=listed)


def _final(cell: CellRecord) -> list[AuditRecord]:
    return [repetition.audit("final") for repetition in cell.results]


def _distance(cell: CellRecord) -> tuple[float, float]:
    """Return the mean of the final model's cosines in the null's deviations, with its standard error."""
    audits = _final(cell)
    error = math.sqrt(sum(audit.distance_error**2 for audit in audits)) / len(audits)
    return float(np.mean([audit.distance for audit in audits])), error


def alike(noises: Sequence[Sequence[str]], cosines: bool, *experiments: FinishedExperiment) -> Outcome | None:
    """Judge that repetitions do the same on two data sets: estimates rise, and cosines separate if they are shown."""
    outcomes = {
        (experiment.name, rule): rule(levels, TIMES, experiment)
        for levels, experiment in zip(noises, experiments, strict=True)
        for rule in (rises, *([separates] if cosines else []))
    }
    parts = [Part(judged.verdict, f"{name}: {judged.finding}") for (name, _), judged in outcomes.items() if judged]
    if len(parts) < len(outcomes):
        return None
    return conclude(prediction.worst(parts), "; ".join(part.text for part in parts))
