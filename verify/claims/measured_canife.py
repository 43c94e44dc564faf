"""Rules for what CANIFE (Maddock et al., arXiv 2210.02912) measured along trainings and on models as they stand."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import stats

from canaryproof.verify.claims import measured
from canaryproof.verify.claims.canife_numbers import CODE_DELTA
from canaryproof.verify.claims.final_printed import half_unit
from canaryproof.verify.claims.finished import Cell, Experiment, Training, Trials
from canaryproof.verify.claims.measured import ALPHA, NEAR, Part
from canaryproof.verify.claims.measured_figures import accuracy
from canaryproof.verify.results import Outcome, Verdict
from canaryproof.verify.sampled_rdp import rdp

# "Far below": by this factor at least.
_FAR = 2.0
# "Hardly", "little", "not much", "stays": means that differ by less than this factor.
_LITTLE = 1.25
# Of attacks: "almost 100%", and how far a printed share may be off, in shares.
_ALMOST, _SHARE = 0.98, 0.03

Quantity = Callable[[Trials], float]


def trials(cell: Cell) -> list[Trials]:
    """Return the attacks after the last round of all trainings of a cell."""
    return [one for run in cell.runs() if run.audits for one in run.audits[-1].trials]


def values(cell: Cell, quantity: str) -> list[float]:
    """Return one number of each of these attacks."""
    return [float(getattr(one, quantity)) for one in trials(cell)]


def model_accuracy(printed: str, epsilon: str, experiment: Experiment) -> Outcome | None:
    """Judge a printed test accuracy.

    Parameters
    ----------
    printed, epsilon
        The percentage; final ε, ``inf`` for a training without noise.
    experiment
        What was measured.
    """
    found = _private(experiment, epsilon)
    if not found:
        return None
    shares = [run.accuracy for cell in found for run in cell.runs()]
    return measured.readings({"as printed": [accuracy("test accuracy", printed, shares, ALPHA)]}, experiment)


def far_below(epsilons: Sequence[str], experiment: Experiment) -> Outcome | None:
    """Judge that CANIFE's ε̂ of whole trainings is far below each final ε: twofold or more, beyond its spread."""
    parts = []
    for epsilon in epsilons:
        found = _private(experiment, epsilon)
        if not found or (composed := _composed(found[0])) is None:
            return None
        low, high = _mean_interval(composed, ALPHA / len(epsilons))
        verdict = Verdict.REFUTED if low >= float(epsilon) else Verdict.INCONCLUSIVE
        if high < float(epsilon):
            verdict = Verdict.CONFIRMED if high <= float(epsilon) / _FAR else Verdict.QUALIFIED
        parts.append(Part(verdict, f"at ε = {epsilon} ε̂ is {measured.shown(composed)}"))
    return measured.readings({"as printed": parts}, experiment)


def gap(least: str, most: str, experiment: Experiment) -> Outcome | None:
    """Judge a printed ratio of a round's theoretical ε to the mean ε̂ of audits after the first epoch, at ε = 50."""
    found = _private(experiment, "50")
    if not found:
        return None
    cell = found[0]
    theory = rdp(cell.noise_multiplier, CODE_DELTA)
    ratios = [theory / np.mean([one for _, one in later]) for run in cell.runs() if (later := _after_epoch(cell, run))]
    if not ratios:
        return None
    low, high = float(least) - float(half_unit(least)), float(most) + float(half_unit(most))
    mean = float(np.mean(ratios))
    verdict = Verdict.CONFIRMED if low <= mean <= high else Verdict.REFUTED
    if verdict is Verdict.REFUTED and low / NEAR <= mean <= high * NEAR:
        verdict = Verdict.QUALIFIED
    text = f"{least} to {most} times, measured {measured.shown([float(one) for one in ratios])}, of ε = {theory:.3g}"
    return measured.readings({"as printed": [Part(verdict, text)]}, experiment)


def health(printed: Sequence[tuple[str, int]], experiment: Experiment) -> Outcome | None:
    """Judge mean canary health over runs, as what it lacks of 1: in all rounds, and after so many.

    Parameters
    ----------
    printed
        Means, and the rounds that are left out.
    experiment
        What was measured.
    """
    found = _private(experiment, "50")
    if not found:
        return None
    parts = []
    for text, after in printed:
        means = [
            float(np.mean([1.0 - one.health for audit in run.audits if audit.round > after for one in audit.trials]))
            for run in found[0].runs()
            if any(audit.round > after for audit in run.audits)
        ]
        if len(means) < 2:
            return None
        lacking = f"{1 - float(text):.{len(text.partition('.')[2])}f}"
        interval = measured.student(means, ALPHA / len(printed))
        parts.append(measured.number(f"what health lacks after round {after}", lacking, means, interval))
    return measured.readings({"as printed": parts}, experiment)


def settles(experiment: Experiment) -> Outcome | None:
    """Judge that ε̂ of rounds is level within an epoch, and stays: what comes later changes by little in the mean."""
    found = _private(experiment, "50")
    if not found:
        return None
    halves = []
    for run in found[0].runs():
        later = [value for _, value in _after_epoch(found[0], run)]
        if len(later) < 4:
            return None
        halves.append((np.mean(later[: len(later) // 2]), np.mean(later[len(later) // 2 :])))
    first, second = (float(np.mean(one)) for one in zip(*halves, strict=True))
    change = factor(first, second)
    text = f"ε̂ of rounds in the halves of what follows the first epoch: {first:.3g} and {second:.3g}"
    return measured.readings({"as printed": [Part(little(change), text)]}, experiment)


def stable(experiments: Mapping[str, Experiment], lowest: str) -> Outcome | None:
    """Judge that the final ε̂ varies little over runs, at ε = 50, and that one task's is the lowest.

    Parameters
    ----------
    experiments
        Experiments by task.
    lowest
        The task.
    """
    found = {task: cells[0] for task, one in experiments.items() if (cells := _private(one, "50"))}
    composed = {task: values for task, cell in found.items() if (values := _composed(cell)) is not None}
    if len(composed) != len(experiments) or any(len(one) < 2 for one in composed.values()):
        return None
    parts = []
    for task, drawn in composed.items():
        spread = float(np.std(drawn, ddof=1) / np.mean(drawn)) if np.isfinite(drawn).all() else math.inf
        parts.append(Part(little(1.0 + spread), f"{task}'s ε̂ is {measured.shown(drawn)}"))
    means = {task: float(np.mean(drawn)) for task, drawn in composed.items()}
    least = min(means, key=lambda task: means[task])
    parts.append(Part(Verdict.CONFIRMED if least == lowest else Verdict.REFUTED, f"{least}'s is lowest"))
    return measured.readings({"as printed": parts}, experiments[lowest])


def at_its_bound(experiment: Experiment) -> Outcome | None:
    """Judge that without privacy ε̂ of rounds stays at its bound, in nine audits of ten, and is infinite once."""
    found = _private(experiment, "inf")
    if not found:
        return None
    attacks = [one for run in found[0].runs() for audit in run.audits for one in audit.trials]
    if not attacks:
        return None
    # Without an error ε̂ is infinite; the largest finite one has a single error.
    bound = max(one.epsilon for one in attacks)
    share = float(np.mean([one.epsilon >= 0.9 * bound for one in attacks]))
    infinite = sum(math.isinf(one.separated) for one in attacks)
    runs = sum(1 for _ in found[0].runs())
    text = f"{share:.0%} of {len(attacks)} audits within a tenth of {bound:.3g}"
    once = Part(
        Verdict.CONFIRMED if 1 <= infinite <= 2 * runs else Verdict.QUALIFIED,
        f"infinite in {infinite} audits of {runs} trainings",
    )
    parts = [Part(Verdict.CONFIRMED if share >= 0.9 else Verdict.REFUTED, text), once]
    return measured.readings({"as printed": parts}, experiment)


def goes_with_accuracy(quantity: str, epsilons: Sequence[str], experiment: Experiment) -> Outcome | None:
    """Judge that two things rise together along trainings, by Spearman's correlation over audits.

    Parameters
    ----------
    quantity
        ``epsilon``: ε̂ of a round with the attack's accuracy; ``model``: the attack's accuracy with the model's, to
        almost 100% in the end.
    epsilons
        Final ε of the trainings; each must show it.
    experiment
        What was measured.
    """
    parts = []
    for epsilon in epsilons:
        found = _private(experiment, epsilon)
        pairs = [
            (one.accuracy, one.epsilon) if quantity == "epsilon" else (audit.accuracy, one.accuracy)
            for cell in found
            for run in cell.runs()
            for audit in run.audits
            for one in audit.trials
        ]
        if len(pairs) < 4:
            return None
        x, y = np.array(pairs).T
        if np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
            parts.append(Part(Verdict.INCONCLUSIVE, f"at ε = {epsilon} all {len(x)} audits are alike"))
            continue
        result = stats.spearmanr(x, y, alternative="greater")
        low, high = ALPHA / len(epsilons), 1.0 - ALPHA / len(epsilons)
        verdict = Verdict.CONFIRMED if result.pvalue <= low else Verdict.INCONCLUSIVE
        verdict = Verdict.REFUTED if result.pvalue >= high else verdict
        parts.append(Part(verdict, f"at ε = {epsilon} rank correlation {result.statistic:.2f} of {len(x)} audits"))
        if quantity == "model":
            last = float(np.mean([one for cell in found for one in values(cell, "accuracy")]))
            parts.append(Part(share_of("1.00", last), f"attack's accuracy in the end {last:.3f}"))
    return measured.readings({"as printed": parts}, experiment)


def share_of(printed: str, value: float) -> Verdict:
    """Judge a share of an attack; 1 stands for almost 1."""
    if printed == "1.00":
        return Verdict.CONFIRMED if value >= _ALMOST else Verdict.REFUTED
    return Verdict.CONFIRMED if abs(value - float(printed)) <= _SHARE else Verdict.REFUTED


def little(factor: float) -> Verdict:
    """Judge "little" by the factor between two means."""
    if factor <= _LITTLE:
        return Verdict.CONFIRMED
    return Verdict.QUALIFIED if factor <= NEAR else Verdict.REFUTED


def factor(one: float, other: float) -> float:
    """By how much the larger of two numbers exceeds the smaller."""
    low, high = sorted((one, other))
    return high / low if low > 0.0 else math.inf


def _private(experiment: Experiment, epsilon: str) -> list[Cell]:
    """Return the cells trained to a final ε, with CANIFE's audits; ``inf`` is no noise."""
    if epsilon == "inf":
        return [cell for cell in experiment.cells if cell.noise_multiplier == 0.0]
    return measured.cells(experiment, training__epsilon=epsilon)


def _composed(cell: Cell) -> list[float] | None:
    found = [run.composed for run in cell.runs()]
    return None if any(one is None for one in found) else [float(one) for one in found if one is not None]


def _mean_interval(drawn: Sequence[float], alpha: float) -> tuple[float, float]:
    """Interval of a mean by Student's law; of one draw there is none."""
    if len(drawn) < 2 or not np.isfinite(drawn).all():
        return 0.0, math.inf
    reach = stats.t.isf(0.5 * alpha, len(drawn) - 1) * np.std(drawn, ddof=1) / math.sqrt(len(drawn))
    return float(np.mean(drawn) - reach), float(np.mean(drawn) + reach)


def _after_epoch(cell: Cell, run: Training) -> list[tuple[int, float]]:
    """Return rounds and ε̂ of audits after the first epoch."""
    epoch = cell.clients / float(cell.settings["training.cohort"])
    return [(audit.round, one.epsilon) for audit in run.audits if audit.round > epoch for one in audit.trials]
