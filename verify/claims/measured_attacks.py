"""Rules for what CANIFE (Maddock et al., arXiv 2210.02912) varied: pool, clients, start, steps, loss, norm."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from scipy import stats

from canaryproof.verify.claims import measured
from canaryproof.verify.claims.finished import Cell, Experiment
from canaryproof.verify.claims.measured import ALPHA, Part
from canaryproof.verify.claims.measured_canife import factor, little, share_of, values
from canaryproof.verify.results import Outcome, Verdict

# Relative standard error of the mean of two deviations of fifty normal scores each.
_DEVIATION_ERROR = 1.0 / np.sqrt(2 * 2 * 49)


def reached(printed: str, experiment: Experiment) -> Outcome | None:
    """Judge that a model is trained to a printed test accuracy, in per cent, within the rounds that we allow."""
    best = [max((run.accuracy for run in cell.runs()), default=0.0) for cell in experiment.cells]
    short = [100 * one for one in best if 100 * one < float(printed)]
    text = f"{len(best) - len(short)} of {len(best)} trainings reach {printed}%"
    if short:
        text += f", others {measured.shown(short)}%"
    verdict = Verdict.CONFIRMED if not short else Verdict.QUALIFIED if len(short) < len(best) else Verdict.REFUTED
    return measured.readings({"as printed": [Part(verdict, text)]}, experiment)


def deviation(printed: str, noise: str, experiment: Experiment) -> Outcome | None:
    """Judge a printed standard deviation of histograms, at a noise multiplier, with 64 clients and a pool of 512."""
    cell = {"training__noise_multiplier": noise, "training__cohort": 64, "canife__pool": 512}
    found = measured.cells(experiment, **cell)
    drawn = [one for cell in found for one in values(cell, "deviation")]
    if len(found) != 1 or not drawn:
        return None
    if len(drawn) >= measured.FEW and min(drawn) > 0.0:
        interval = measured.student(drawn, ALPHA, logarithmic=True)
    else:
        reach = stats.norm.isf(0.5 * ALPHA) * _DEVIATION_ERROR * np.sqrt(1.0 + 1.0 / len(drawn))
        middle = float(np.mean(drawn))
        interval = (middle * float(np.exp(-reach)), middle * float(np.exp(reach)))
    return measured.readings({"as printed": [measured.number("deviation", printed, drawn, interval)]}, experiment)


def clients_and_pools(experiment: Experiment) -> Outcome | None:
    """Judge that deviations rise with clients a round at every pool, and that the pool matters less than clients do."""
    grid = {
        (int(cell.settings["training.cohort"]), int(cell.settings["canife.pool"])): float(np.mean(drawn))
        for cell in experiment.cells
        if cell.noise_multiplier == 0.0 and (drawn := values(cell, "deviation"))
    }
    cohorts, pools = (sorted({key[i] for key in grid}) for i in (0, 1))
    if len(cohorts) < 2 or len(pools) < 2 or len(grid) < len(cohorts) * len(pools):
        return None
    if min(grid.values()) <= 0.0:
        return None
    error = float(_DEVIATION_ERROR * np.sqrt(2.0))
    steps = [(f"pool {pool}", float(np.log(grid[cohorts[-1], pool] / grid[cohorts[0], pool])), error) for pool in pools]
    by_clients = float(np.mean([grid[cohorts[-1], pool] / grid[cohorts[0], pool] for pool in pools]))
    by_pools = float(np.mean([factor(grid[one, pools[0]], grid[one, pools[-1]]) for one in cohorts]))
    hardly = Part(
        Verdict.CONFIRMED if by_pools < by_clients else Verdict.REFUTED,
        f"mean factor {by_clients:.2g} from {cohorts[0]} to {cohorts[-1]} clients, {by_pools:.2g} from a pool of "
        f"{pools[0]} to {pools[-1]}",
    )
    return measured.readings(
        {"as printed": [measured.order("deviation with clients", steps, ALPHA), hardly]}, experiment
    )


def start_and_pool(experiment: Experiment) -> Outcome | None:
    """Judge that neither start nor pool changes the deviation much: mean factors, at 2,500 steps."""
    found = measured.cells(experiment, canife__steps=2500)
    means = {
        (str(cell.settings["canife.start"]), int(cell.settings["canife.pool"])): float(np.mean(drawn))
        for cell in found
        if (drawn := values(cell, "deviation"))
    }
    pools = sorted({pool for _, pool in means})
    if len(pools) < 2 or len(means) < 2 * len(pools):
        return None
    starts = float(np.mean([factor(means["noise", pool], means["sample", pool]) for pool in pools]))
    extremes = [[means[start, pool] for pool in pools] for start in ("noise", "sample")]
    widest = float(np.mean([factor(min(one), max(one)) for one in extremes]))
    parts = [
        Part(little(starts), f"mean factor {starts:.3g} between both starts"),
        Part(little(widest), f"{widest:.3g} between the pools that differ most"),
    ]
    return measured.readings({"as printed": parts}, experiment)


def steps(printed: Sequence[tuple[int, str]], experiment: Experiment) -> Outcome | None:
    """Judge the attack's accuracy after so many iterations of the design; 1.00 stands for almost 1.

    Parameters
    ----------
    printed
        Iterations, and the share.
    experiment
        What was measured.
    """
    parts = []
    for count, text in printed:
        found = measured.cells(experiment, canife__steps=count, canife__start="noise", canife__pool=512)
        drawn = [one for cell in found for one in values(cell, "accuracy")]
        if not drawn:
            return None
        mean = float(np.mean(drawn))
        # More than is printed for few iterations is no less true of "just so many are needed".
        verdict = Verdict.CONFIRMED if text != "1.00" and mean >= float(text) else share_of(text, mean)
        parts.append(Part(verdict, f"{count} iterations {text}, measured {measured.shown(drawn)}"))
    return measured.readings({"as printed": parts}, experiment)


def losses(experiment: Experiment) -> Outcome | None:
    """Judge that the covariance loss attacks better than the mean's, at every pool, by a test of ranks over all."""
    drawn = {
        loss: [one for cell in measured.cells(experiment, canife__loss=loss) for one in values(cell, "accuracy")]
        for loss in ("covariance", "mean")
    }
    if min(map(len, drawn.values())) < 2:
        return None
    test = stats.mannwhitneyu(drawn["covariance"], drawn["mean"], alternative="greater")
    text = ", ".join(f"{loss} {measured.shown(one)}" for loss, one in drawn.items())
    return measured.readings({"as printed": [_tested("accuracy", float(test.pvalue), text)]}, experiment)


def falls_with_clients(quantity: str, experiment: Experiment) -> Outcome | None:
    """Judge what clients a round do: accuracies of attacks fall slowly, or ε̂ of trainings rises, by rank correlation.

    Parameters
    ----------
    quantity
        ``accuracy`` or ``composed``.
    experiment
        What was measured.
    """
    pairs = [
        (float(cell.settings["training.cohort"]), one) for cell in experiment.cells for one in _each(cell, quantity)
    ]
    if len({cohort for cohort, _ in pairs}) < 2 or len(pairs) < 4:
        return None
    cohorts, drawn = np.array(sorted(pairs)).T
    if np.ptp(drawn) == 0.0:
        alike = Part(Verdict.INCONCLUSIVE, f"all {len(drawn)} are {drawn[0]:.3g}")
        return measured.readings({"as printed": [alike]}, experiment)
    falling = quantity == "accuracy"
    test = stats.spearmanr(cohorts, drawn, alternative="less" if falling else "greater")
    means = {c: float(np.mean([v for _, v in group])) for c, group in groupby(sorted(pairs), key=lambda pair: pair[0])}
    text = ", ".join(f"{cohort:.0f} clients {mean:.3g}" for cohort, mean in means.items())
    parts = [_tested("it", float(test.pvalue), text)]
    if falling:
        first, *_, last = means.values()
        parts.append(Part(little(factor(first, last)), f"by a factor of {factor(first, last):.3g}"))
    return measured.readings({"as printed": parts}, experiment)


def norm_constants(accuracy_at: int, health_at: int, experiment: Experiment) -> Outcome | None:
    """Judge that accuracy drops for norm constants above one, and health for those above another alone.

    Parameters
    ----------
    accuracy_at, health_at
        The constants.
    experiment
        What was measured.
    """
    parts = []
    for quantity, border in (("accuracy", accuracy_at), ("health", health_at)):
        drawn: dict[bool, list[float]] = {False: [], True: []}
        for cell in experiment.cells:
            drawn[float(cell.settings["canife.norm_constant"]) > border] += values(cell, quantity)
        if min(map(len, drawn.values())) < 2:
            return None
        test = stats.mannwhitneyu(drawn[False], drawn[True], alternative="greater")
        text = f"{quantity} to {border} {measured.shown(drawn[False])}, above {measured.shown(drawn[True])}"
        parts.append(_tested(quantity, float(test.pvalue), text))
    return measured.readings({"as printed": parts}, experiment)


def _tested(name: str, p_value: float, text: str) -> Part:
    verdict = Verdict.CONFIRMED if p_value <= ALPHA / 2 else Verdict.INCONCLUSIVE
    return Part(Verdict.REFUTED if p_value >= 1.0 - ALPHA / 2 else verdict, f"{name}: {text} (p = {p_value:.2g})")


def _each(cell: Cell, quantity: str) -> list[float]:
    if quantity == "composed":
        return [run.composed for run in cell.runs() if run.composed is not None]
    # Means over a training, whose audits depend on each other.
    return [
        float(np.mean([one.accuracy for audit in run.audits for one in audit.trials]))
        for run in cell.runs()
        if run.audits
    ]
