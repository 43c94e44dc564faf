"""Rules for what CANIFE (Maddock et al., arXiv 2210.02912) measured, and for what others print of it on their data."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from scipy import stats

from canaryproof.verify.audit.estimators.epsilon_estimators import pinned_epsilon
from canaryproof.verify.papers.accounting.sampled_gaussian import rdp
from canaryproof.verify.papers.check.power import visible_difference
from canaryproof.verify.papers.check.results import Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import conclude, holds, rounding
from canaryproof.verify.papers.claims import prediction
from canaryproof.verify.papers.claims.andrew_rules import accuracy, reported
from canaryproof.verify.papers.claims.experiment_results import FinishedExperiment
from canaryproof.verify.papers.claims.prediction import ALPHA, NEAR, Part
from canaryproof.verify.papers.claims.transcripts import Canife, Final
from canaryproof.verify.papers.comparison import canife_methods
from canaryproof.verify.papers.comparison.canife_designs import DESIGNS
from canaryproof.verify.papers.comparison.canife_designs import PRINTED as PRINTED_DESIGN
from canaryproof.verify.papers.comparison.canife_methods import SAMPLINGS, spread
from canaryproof.verify.papers.records.benchmark_record import (
    AuditedTraining,
    BenchmarkRecord,
    BenchmarkSizes,
    PrintedReading,
    PrintedRecord,
)
from canaryproof.verify.papers.records.training_record import (
    AuditRecord,
    CanifeAttackRecord,
    CanifeAuditRecord,
    CellRecord,
    TrainingRecord,
)

# "Far below": by this factor at least.
_FAR = 2.0
# "Hardly", "little", "not much", "stays": means that differ by less than this factor.
_LITTLE = 1.25
# The share of right attacks that is "almost 100%", and how far a printed share may be off.
_ALMOST, _SHARE = 0.98, 0.03


def audits(run: TrainingRecord) -> tuple[CanifeAuditRecord, ...]:
    """Return CANIFE's audits of a training, in order."""
    return () if run.canife is None else run.canife.audits


def epsilon_of(run: TrainingRecord) -> float | None:
    """Return CANIFE's ε̂ of a training: the mean over the attacks of an audit, of which most experiments have one."""
    # Attacks without errors are at the cap, as CANIFE's figures show them.
    composed = None if run.canife is None else run.canife.composed.get("capped")
    return math.fsum(composed) / len(composed) if composed else None


def attacks(cell: CellRecord) -> list[CanifeAttackRecord]:
    """Return the attacks after the last round of all trainings of a cell."""
    return [attack for run in cell.runs() if audits(run) for attack in audits(run)[-1].attacks]


def attack_values(cell: CellRecord, quantity: str) -> list[float]:
    """Return one number of each of these attacks."""
    return [float(attrgetter(quantity)(attack)) for attack in attacks(cell)]


def model_accuracy(printed: str, epsilon: str, experiment: FinishedExperiment, stated: str = "") -> Outcome | None:
    """Judge a printed test accuracy, at the ε of the text or at one that it is read as."""
    trained = _private(experiment, epsilon)
    if not trained:
        return None
    shares = [run.accuracy for cell in trained for run in cell.runs()]
    parts = [accuracy("test accuracy", printed, shares, ALPHA)]
    if not stated:
        return prediction.readings({"as printed": parts}, experiment)
    literal = [Part(Verdict.REFUTED, f"at ε = {stated} nothing is learnt")]
    return prediction.readings({"as printed": literal, f"for ε = {stated} read as ε = {epsilon}": parts}, experiment)


def far_below(epsilons: Sequence[str], experiment: FinishedExperiment) -> Outcome | None:
    """Judge that CANIFE's ε̂ of whole trainings is far below each final ε: twofold or more, beyond its spread."""
    parts = []
    for epsilon in epsilons:
        trained = _private(experiment, epsilon)
        if not trained or (composed := _composed(trained[0])) is None:
            return None
        low, high = _mean_interval(composed, ALPHA / len(epsilons))
        verdict = Verdict.REFUTED if low >= float(epsilon) else Verdict.INCONCLUSIVE
        if high < float(epsilon):
            verdict = Verdict.CONFIRMED if high <= float(epsilon) / _FAR else Verdict.QUALIFIED
        parts.append(Part(verdict, f"at ε = {epsilon} ε̂ is {prediction.shown(composed)}"))
    return prediction.readings({"as printed": parts}, experiment)


def gap(least: str, most: str, experiment: FinishedExperiment) -> Outcome | None:
    """Judge a printed ratio of a round's theoretical ε to the mean ε̂ of audits after the first epoch, at ε = 50."""
    trained = _private(experiment, "50")
    if not trained:
        return None
    cell = trained[0]
    means = [np.mean(later) for run in cell.runs() if (later := _after_epoch(cell, run))]
    if not means:
        return None
    low, high = float(rounding(least)[0]), float(rounding(most)[1])

    def judged(delta: float) -> list[Part]:
        theory = rdp(cell.noise_multiplier, delta)
        ratios = [float(theory / mean_epsilon) for mean_epsilon in means]
        mean = float(np.mean(ratios))
        verdict = holds(low <= mean <= high, low / NEAR <= mean <= high * NEAR)
        return [Part(verdict, f"{least} to {most} times, measured {prediction.shown(ratios)}, of ε = {theory:.3g}")]

    # The δ of the theoretical ε is not printed.
    deltas = {"as printed": Canife.CODE_DELTA, "with δ = 1/n": Canife.SCORES_DELTA}
    return prediction.readings({name: judged(delta) for name, delta in deltas.items()}, experiment)


def health(printed: Sequence[tuple[str, int]], experiment: FinishedExperiment) -> Outcome | None:
    """Judge mean canary health over runs, as what it lacks of 1: in all rounds, and after so many."""
    trained = _private(experiment, "50")
    if not trained:
        return None
    parts = []
    for text, after in printed:
        later = ([audit for audit in audits(run) if audit.round > after] for run in trained[0].runs())
        means = [
            float(np.mean([1.0 - attack.canary.health for audit in rounds for attack in audit.attacks]))
            for rounds in later
            if rounds
        ]
        if len(means) < 2:
            return None
        lacking = f"{1 - float(text):.{len(text.partition('.')[2])}f}"
        interval = prediction.student(means, ALPHA / len(printed))
        parts.append(prediction.number(f"what health lacks after round {after}", lacking, means, interval))
    return prediction.readings({"as printed": parts}, experiment)


def settles(experiment: FinishedExperiment) -> Outcome | None:
    """Judge that ε̂ of rounds is level within an epoch, and stays: what comes later changes by little in the mean."""
    trained = _private(experiment, "50")
    if not trained:
        return None
    halves = []
    for run in trained[0].runs():
        later = _after_epoch(trained[0], run)
        if len(later) < 4:
            return None
        halves.append((np.mean(later[: len(later) // 2]), np.mean(later[len(later) // 2 :])))
    first, second = (float(np.mean(half)) for half in zip(*halves, strict=True))
    change = ratio_between(first, second)
    text = f"ε̂ of rounds in the halves of what follows the first epoch: {first:.3g} and {second:.3g}"
    return prediction.readings({"as printed": [Part(little(change), text)]}, experiment)


def stable(lowest: str, *experiments: FinishedExperiment) -> Outcome | None:
    """Judge that the final ε̂ varies little over runs, at ε = 50, and that one task's is the lowest."""
    by_task = {experiment.name.rpartition("_")[2]: experiment for experiment in experiments}
    first_cells = {task: cells[0] for task, experiment in by_task.items() if (cells := _private(experiment, "50"))}
    composed = {task: drawn for task, cell in first_cells.items() if (drawn := _composed(cell)) is not None}
    if len(composed) != len(experiments) or any(len(drawn) < 2 for drawn in composed.values()):
        return None
    parts = []
    for task, drawn in composed.items():
        relative = float(np.std(drawn, ddof=1) / np.mean(drawn)) if np.isfinite(drawn).all() else math.inf
        parts.append(Part(little(1.0 + relative), f"{task}'s ε̂ is {prediction.shown(drawn)}"))
    means = {task: float(np.mean(drawn)) for task, drawn in composed.items()}
    least = min(means, key=lambda task: means[task])
    parts.append(Part(holds(least == lowest), f"{least}'s is lowest"))
    return prediction.readings({"as printed": parts}, by_task[lowest])


def at_its_bound(experiment: FinishedExperiment) -> Outcome | None:
    """Judge that without privacy ε̂ of rounds stays at its bound, in nine audits of ten, and is infinite once."""
    trained = _private(experiment, "inf")
    if not trained:
        return None
    all_attacks = [attack for run in trained[0].runs() for audit in audits(run) for attack in audit.attacks]
    if not all_attacks:
        return None
    # Without an error ε̂ is infinite; the largest finite one has a single error.
    bound = max(attack.epsilon.capped.epsilon for attack in all_attacks)
    share = float(np.mean([attack.epsilon.capped.epsilon >= 0.9 * bound for attack in all_attacks]))
    infinite = sum(math.isinf(attack.epsilon.separated.epsilon) for attack in all_attacks)
    runs = sum(1 for _ in trained[0].runs())
    text = f"{share:.0%} of {len(all_attacks)} audits within a tenth of {bound:.3g}"
    once = Part(
        Verdict.CONFIRMED if 1 <= infinite <= 2 * runs else Verdict.QUALIFIED,
        f"infinite in {infinite} audits of {runs} trainings",
    )
    parts = [Part(holds(share >= 0.9), text), once]
    return prediction.readings({"as printed": parts}, experiment)


def goes_with_accuracy(epsilons: Sequence[str], experiment: FinishedExperiment) -> Outcome | None:
    """Judge that the accuracies of model and attack rise together, by Spearman's correlation over audits."""
    parts = []
    for epsilon in epsilons:
        trained = _private(experiment, epsilon)
        pairs = [
            (audit.model_accuracy, attack.accuracy)
            for cell in trained
            for run in cell.runs()
            for audit in audits(run)
            for attack in audit.attacks
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
        last = float(np.mean([share for cell in trained for share in attack_values(cell, "accuracy")]))
        parts.append(Part(share_of("1.00", last), f"attack's accuracy in the end {last:.3f}"))
    return prediction.readings({"as printed": parts}, experiment)


def share_of(printed: str, value: float) -> Verdict:
    """Judge a share of an attack; 1 stands for almost 1."""
    if printed == "1.00":
        return holds(value >= _ALMOST)
    return holds(abs(value - float(printed)) <= _SHARE)


def little(ratio: float) -> Verdict:
    """Judge "little" by the factor between two means."""
    if ratio <= _LITTLE:
        return Verdict.CONFIRMED
    return Verdict.QUALIFIED if ratio <= NEAR else Verdict.REFUTED


def ratio_between(first: float, second: float) -> float:
    """By how much the larger of two numbers exceeds the smaller."""
    low, high = sorted((first, second))
    return high / low if low > 0.0 else math.inf


def _private(experiment: FinishedExperiment, epsilon: str) -> list[CellRecord]:
    """Return the cells trained to a final ε, with CANIFE's audits; ``inf`` is no noise."""
    if epsilon == "inf":
        return [cell for cell in experiment.cells if cell.noise_multiplier == 0.0]
    return prediction.cells(experiment, training__epsilon=epsilon)


def _composed(cell: CellRecord) -> list[float] | None:
    composed = [epsilon_of(run) for run in cell.runs()]
    return None if None in composed else [value for value in composed if value is not None]


def _mean_interval(drawn: Sequence[float], alpha: float) -> tuple[float, float]:
    """Interval of a mean by Student's law; of one draw there is none."""
    if len(drawn) < 2 or not np.isfinite(drawn).all():
        return 0.0, math.inf
    reach = stats.t.isf(0.5 * alpha, len(drawn) - 1) * np.std(drawn, ddof=1) / math.sqrt(len(drawn))
    return float(np.mean(drawn) - reach), float(np.mean(drawn) + reach)


def _after_epoch(cell: CellRecord, run: TrainingRecord) -> list[float]:
    """Return ε̂ of the audits after the first epoch."""
    epoch = cell.clients / float(cell.settings["training.cohort"])
    return [attack.epsilon.capped.epsilon for audit in audits(run) if audit.round > epoch for attack in audit.attacks]


# Attacks on fixed models, with another pool, clients, start, steps, loss or norm.

# Relative standard error of the mean of two deviations of fifty normal scores each.
_DEVIATION_ERROR = 1.0 / np.sqrt(2 * 2 * 49)


def reached(printed: str, experiment: FinishedExperiment) -> Outcome | None:
    """Judge that a model is trained to a printed test accuracy, in per cent, within the rounds that we allow."""
    best = [max((run.accuracy for run in cell.runs()), default=0.0) for cell in experiment.cells]
    short = [100 * share for share in best if 100 * share < float(printed)]
    text = f"{len(best) - len(short)} of {len(best)} trainings reach {printed}%"
    if short:
        text += f", others {prediction.shown(short)}%"
    verdict = holds(not short, len(short) < len(best))
    return prediction.readings({"as printed": [Part(verdict, text)]}, experiment)


def histogram_deviation(printed: str, noise: str, experiment: FinishedExperiment) -> Outcome | None:
    """Judge a printed standard deviation of histograms, at a noise multiplier, with 64 clients and a pool of 512."""
    cell = {"training__noise_multiplier": noise, "training__cohort": 64, "canife__pool": 512}
    matching = prediction.cells(experiment, **cell)
    drawn = [value for cell in matching for value in attack_values(cell, "deviation")]
    if len(matching) != 1 or not drawn:
        return None
    if len(drawn) >= prediction.FEW and min(drawn) > 0.0:
        interval = prediction.student(drawn, ALPHA, logarithmic=True)
    else:
        reach = stats.norm.isf(0.5 * ALPHA) * _DEVIATION_ERROR * np.sqrt(1.0 + 1.0 / len(drawn))
        middle = float(np.mean(drawn))
        interval = (middle * float(np.exp(-reach)), middle * float(np.exp(reach)))
    return prediction.readings({"as printed": [prediction.number("deviation", printed, drawn, interval)]}, experiment)


def clients_and_pools(experiment: FinishedExperiment) -> Outcome | None:
    """Judge that deviations rise with clients a round at every pool, and that the pool matters less than clients do."""
    grid = {
        (int(cell.settings["training.cohort"]), int(cell.settings["canife.pool"])): float(np.mean(drawn))
        for cell in experiment.cells
        if cell.noise_multiplier == 0.0 and (drawn := attack_values(cell, "deviation"))
    }
    cohorts, pools = (sorted({key[i] for key in grid}) for i in (0, 1))
    if len(cohorts) < 2 or len(pools) < 2 or len(grid) < len(cohorts) * len(pools):
        return None
    if min(grid.values()) <= 0.0:
        return None
    error = float(_DEVIATION_ERROR * np.sqrt(2.0))
    steps = [(f"pool {pool}", float(np.log(grid[cohorts[-1], pool] / grid[cohorts[0], pool])), error) for pool in pools]
    by_clients = float(np.mean([grid[cohorts[-1], pool] / grid[cohorts[0], pool] for pool in pools]))
    by_pools = float(np.mean([ratio_between(grid[cohort, pools[0]], grid[cohort, pools[-1]]) for cohort in cohorts]))
    hardly = Part(
        holds(by_pools < by_clients),
        f"mean factor {by_clients:.2g} from {cohorts[0]} to {cohorts[-1]} clients, {by_pools:.2g} from a pool of "
        f"{pools[0]} to {pools[-1]}",
    )
    return prediction.readings(
        {"as printed": [prediction.order("deviation with clients", steps, ALPHA), hardly]}, experiment
    )


def start_and_pool(experiment: FinishedExperiment) -> Outcome | None:
    """Judge that neither start nor pool changes the deviation much: mean factors, at 2,500 steps."""
    matching = prediction.cells(experiment, canife__steps=2500)
    means = {
        (str(cell.settings["canife.start"]), int(cell.settings["canife.pool"])): float(np.mean(drawn))
        for cell in matching
        if (drawn := attack_values(cell, "deviation"))
    }
    pools = sorted({pool for _, pool in means})
    if len(pools) < 2 or len(means) < 2 * len(pools):
        return None
    starts = float(np.mean([ratio_between(means["noise", pool], means["sample", pool]) for pool in pools]))
    extremes = [[means[start, pool] for pool in pools] for start in ("noise", "sample")]
    widest = float(np.mean([ratio_between(min(by_pool), max(by_pool)) for by_pool in extremes]))
    parts = [
        Part(little(starts), f"mean factor {starts:.3g} between both starts"),
        Part(little(widest), f"{widest:.3g} between the pools that differ most"),
    ]
    return prediction.readings({"as printed": parts}, experiment)


def design_steps(printed: Sequence[tuple[int, str]], experiment: FinishedExperiment) -> Outcome | None:
    """Judge the attack's accuracy after so many iterations of the design; 1.00 stands for almost 1."""
    parts = []
    for count, text in printed:
        matching = prediction.cells(experiment, canife__steps=count, canife__start="noise", canife__pool=512)
        drawn = [share for cell in matching for share in attack_values(cell, "accuracy")]
        if not drawn:
            return None
        mean = float(np.mean(drawn))
        # More than is printed for few iterations is no less true of "just so many are needed".
        verdict = Verdict.CONFIRMED if text != "1.00" and mean >= float(text) else share_of(text, mean)
        parts.append(Part(verdict, f"{count} iterations {text}, measured {prediction.shown(drawn)}"))
    return prediction.readings({"as printed": parts}, experiment)


def losses(experiment: FinishedExperiment) -> Outcome | None:
    """Judge that the covariance loss attacks better than the mean's, at every pool, by a test of ranks over all."""
    drawn = {
        loss: [
            shares
            for cell in prediction.cells(experiment, canife__loss=loss)
            for shares in attack_values(cell, "accuracy")
        ]
        for loss in ("covariance", "mean")
    }
    if min(map(len, drawn.values())) < 2:
        return None
    test = stats.mannwhitneyu(drawn["covariance"], drawn["mean"], alternative="greater")
    text = ", ".join(f"{loss} {prediction.shown(shares)}" for loss, shares in drawn.items())
    return prediction.readings({"as printed": [_tested("accuracy", float(test.pvalue), text)]}, experiment)


def falls_with_clients(experiment: FinishedExperiment) -> Outcome | None:
    """Judge that accuracies of attacks fall slowly with clients a round, by ranks."""
    pairs = [(float(cell.settings["training.cohort"]), value) for cell in experiment.cells for value in _each(cell)]
    if len({cohort for cohort, _ in pairs}) < 2 or len(pairs) < 4:
        return None
    cohorts, drawn = np.array(sorted(pairs)).T
    if np.ptp(drawn) == 0.0:
        alike = Part(Verdict.INCONCLUSIVE, f"all {len(drawn)} are {drawn[0]:.3g}")
        return prediction.readings({"as printed": [alike]}, experiment)
    test = stats.spearmanr(cohorts, drawn, alternative="less")
    means = {c: float(np.mean([v for _, v in group])) for c, group in groupby(sorted(pairs), key=lambda pair: pair[0])}
    text = ", ".join(f"{cohort:.0f} clients {mean:.3g}" for cohort, mean in means.items())
    first, *_, last = means.values()
    ratio = ratio_between(first, last)
    parts = [_tested("it", float(test.pvalue), text), Part(little(ratio), f"by a factor of {ratio:.3g}")]
    return prediction.readings({"as printed": parts}, experiment)


def norm_constants(accuracy_at: int, health_at: int, experiment: FinishedExperiment) -> Outcome | None:
    """Judge that accuracy drops for norm constants above one, and health for those above another alone."""
    parts = []
    for quantity, of_attack, border in (("accuracy", "accuracy", accuracy_at), ("health", "canary.health", health_at)):
        drawn: dict[bool, list[float]] = {False: [], True: []}
        for cell in experiment.cells:
            drawn[float(cell.settings["canife.norm_constant"]) > border] += attack_values(cell, of_attack)
        if min(map(len, drawn.values())) < 2:
            return None
        test = stats.mannwhitneyu(drawn[False], drawn[True], alternative="greater")
        text = f"{quantity} to {border} {prediction.shown(drawn[False])}, above {prediction.shown(drawn[True])}"
        parts.append(_tested(quantity, float(test.pvalue), text))
    return prediction.readings({"as printed": parts}, experiment)


def _tested(name: str, p_value: float, text: str) -> Part:
    verdict = Verdict.CONFIRMED if p_value <= ALPHA / 2 else Verdict.INCONCLUSIVE
    return Part(Verdict.REFUTED if p_value >= 1.0 - ALPHA / 2 else verdict, f"{name}: {text} (p = {p_value:.2g})")


def _each(cell: CellRecord) -> list[float]:
    """Return mean accuracies over a training, whose audits depend on each other."""
    return [
        float(np.mean([attack.accuracy for audit in audits(run) for attack in audit.attacks]))
        for run in cell.runs()
        if audits(run)
    ]


# The comparison with CANIFE on Fashion-MNIST, and the benchmark's on the same data.
#
# Section 5.4 of the final version and Appendix H of the submission have the same two means and deviations. Neither says
# over how many trainings, how these sampled, at which δ a round's ε̂ was converted, nor what attack and estimator one of
# them is of. A reading is a whole training: a claim holds only if one training reproduces all numbers of the section.

# Probability to reject the reading that is right: 10⁻³ of a run, shared by the five claims that these data decide.
READING_LEVEL = 2e-4


class PrintedRange(NamedTuple):
    """A printed mean and deviation, and the claims that state it."""

    ids: tuple[str, ...]
    digits: tuple[str, str]

    @property
    def mean(self) -> float:
        """The printed mean."""
        return float(self.digits[0])

    @property
    def deviation(self) -> float:
        """The printed deviation."""
        return float(self.digits[1])


PRINTED_CANIFE = PrintedRange(("final.section5.4.canife", "submission.appendixH.canife"), Final.CANIFE)
PRINTED_OURS = PrintedRange(("final.section5.4.ours", "submission.appendixH.canaries"), Final.ONE_SHOT)
PRINTED = (PRINTED_CANIFE, PRINTED_OURS)
_BOUND = "review.canife.bound"
# The analytical ε of the section, and how far one by another accounting or δ may be off it.
_ANALYTICAL, _NEAR_ANALYTICAL = float(Final.CANIFE_ANALYTICAL), 1.1
# The authors' own lower bound, and one whose coverage is proven for independent scores.
_BOUNDS = ("andrew", "fixed-sequence")

_CONVERSIONS = ("", ", conversion at 1/n", ", conversion by the public code")
_CONVERTED = tuple(f"CANIFE {PRINTED_DESIGN}{conversion}" for conversion in _CONVERSIONS)

# A number of each training, and the largest that it can be.
_Values = tuple[list[float], float]


def claims(
    scenarios: Sequence[tuple[float | None, Sequence[AuditedTraining]]],
    names: Sequence[str],
    plan: BenchmarkSizes,
    fashion: bool,
) -> tuple[PrintedReading, ...]:
    """Compare printed with measured numbers: a row for each reading of each claim, with the verdicts of both.

    ``scenarios`` have their analytical ε and their trainings, and are ways to sample an epoch.
    """
    readings = {
        name: reading
        for named, (analytical, runs) in zip(names, scenarios, strict=True)
        for name, reading in _trainings(named, analytical, runs, plan).items()
    }
    judged = {
        name: {
            printed.ids: {
                method: compared(values, printed.mean, printed.deviation, cap)
                for method, (values, cap) in reading.numbers[printed.ids].items()
            }
            for printed in PRINTED
        }
        for name, reading in readings.items()
    }
    rows: list[PrintedReading] = []
    for printed in PRINTED:
        verdict = _verdict(
            [(readings[name].is_near, judged[name][printed.ids], judged[name].values()) for name in readings]
        )
        rows += [
            _row(
                printed.ids,
                f"{' ± '.join(printed.digits)} where ε = {_ANALYTICAL:g}",
                f"{name} (ε = {readings[name].analytical_text})",
                method,
                readings[name].numbers[printed.ids][method][0],
                of_reading,
                verdict,
                fashion,
            )
            for name, reading in readings.items()
            # Whoever counts as seen, CANIFE's audits are those of the same trainings.
            if printed is PRINTED_OURS or reading.excess
            for method, of_reading in judged[name][printed.ids].items()
        ]
    differences = [
        (name, method, values, positive(values))
        for name, reading in readings.items()
        for method, values in reading.excess.items()
    ]
    above = {of_reading for *_, (of_reading, _) in differences}
    verdict = Verdict.QUALIFIED if Verdict.CONFIRMED in above else Verdict.INCONCLUSIVE
    verdict = above.pop() if len(above) == 1 else verdict
    statement = "a lower bound minus CANIFE's ε̂ is above 0"
    return (
        *rows,
        *(
            _row((_BOUND,), statement, name, method, values, by, verdict, fashion)
            for name, method, values, by in differences
        ),
    )


class _Reading(NamedTuple):
    """One way to train: its values for each printed number, by the estimators or conversions that it may be of."""

    analytical: float | None
    numbers: Mapping[tuple[str, ...], Mapping[str, _Values]]
    excess: Mapping[str, list[float]]  # lower bounds minus CANIFE's ε̂, training by training

    @property
    def analytical_text(self) -> str:
        """The analytical ε."""
        return "unknown" if self.analytical is None else f"{self.analytical:.3g}"

    @property
    def is_near(self) -> bool:
        """Whether the printed analytical ε may be this training's, by some δ and accounting."""
        if self.analytical is None:
            return False
        return _ANALYTICAL / _NEAR_ANALYTICAL <= self.analytical <= _ANALYTICAL * _NEAR_ANALYTICAL


def _trainings(
    name: str, analytical: float | None, runs: Sequence[AuditedTraining], plan: BenchmarkSizes
) -> dict[str, _Reading]:
    """Return the readings of one way to sample: who counts as seen is one of these, where chance left somebody out."""
    canife = _canife_readings(runs, plan)
    algorithm_2 = {
        f"Algorithm 2, {words}": [run.oneshot[attack]["exact"].estimates["fitted"].epsilon for run in runs]
        for attack, words in (("final", "final model"), ("change", "change of the model"))
    }
    inserted = _algorithm_3([run.oneshot["all"]["unobserved"] for run in runs], plan) | algorithm_2
    excess = {
        f"{bound} − {method}": [
            run.oneshot["all"]["unobserved"].bounds[bound].value - value
            for run, value in zip(runs, values, strict=True)
        ]
        for bound in _BOUNDS
        for method, (values, _) in canife.items()
        if method in _CONVERTED
    }

    def reading(estimates: Mapping[str, list[float]], above: Mapping[str, list[float]]) -> _Reading:
        unlimited = {method: (values, math.inf) for method, values in estimates.items()}
        return _Reading(analytical, {PRINTED_CANIFE.ids: canife, PRINTED_OURS.ids: unlimited}, above)

    seen = [run.seen for run in runs if run.seen is not None]
    if len(seen) < len(runs):
        return {name: reading(inserted, excess)}
    return {
        f"{name}, all inserted canaries": reading(inserted, excess),
        f"{name}, canaries that took part": reading(_algorithm_3(seen, plan), {}),
    }


def _algorithm_3(of_trainings: Sequence[AuditRecord], plan: BenchmarkSizes) -> dict[str, list[float]]:
    """Return ε̂ of Algorithm 3 by estimators: as printed, the first version's, and by the mean in the null's units."""
    estimates = {
        f"Algorithm 3{words}": [audit.estimates[estimator].epsilon for audit in of_trainings]
        for estimator, words in (("fitted", ""), ("pinned", ": pinned"))
    }
    # ``pinned`` divides the mean by a deviation that the observed canaries' own inflates.
    estimates["Algorithm 3: mean in the null's deviations"] = [
        float(pinned_epsilon(plan.delta, np.array(audit.distance))) for audit in of_trainings
    ]
    return estimates


def _canife_readings(runs: Sequence[AuditedTraining], plan: BenchmarkSizes) -> dict[str, _Values]:
    """Return CANIFE's ε̂ by the choices that the papers leave to the printed design, and by conversions into noise."""
    scores = plan.scores[0]
    conversions: tuple[Callable[[tuple[float, ...]], float], ...] = (
        lambda epsilons: canife_methods.composed(epsilons, plan, plan.delta),
        lambda epsilons: canife_methods.composed(epsilons, plan, 1.0 / scores),
        lambda epsilons: canife_methods.code_epsilon(epsilons, plan),
    )
    readings = {}
    for design in DESIGNS:
        if design.kind not in ("printed", "choice") or design.name not in runs[0].canife:
            continue
        of_trainings = [
            tuple(audit.attacks[0].epsilon.capped.epsilon for audit in run.canife[design.name]) for run in runs
        ]
        for name, conversion in zip(_CONVERSIONS, conversions, strict=True):
            cap = conversion((canife_methods.largest_round(scores, design.inclusion),) * len(plan.audited))
            readings[f"CANIFE {design.name}{name}"] = [conversion(epsilons) for epsilons in of_trainings], cap
    return readings


def with_printed(record: BenchmarkRecord, fashion: bool) -> BenchmarkRecord:
    """Put the printed numbers, judged, into what ``benchmark canife`` measured without a fault of the server."""
    usual = [scenario for scenario in record.scenarios if scenario.name in SAMPLINGS]
    rows = claims(
        [(scenario.analytical.epsilon, scenario.runs or ()) for scenario in usual],
        [scenario.name for scenario in usual],
        record.setting,
        fashion,
    )
    return replace(record, printed=PrintedRecord(fashion, READING_LEVEL, rows))


def _row(
    ids: tuple[str, ...],
    statement: str,
    training: str,
    method: str,
    values: Sequence[float],
    judged: tuple[Verdict, str],
    verdict: Verdict,
    fashion: bool,
) -> PrintedReading:
    of_reading, finding = judged
    return PrintedReading(
        ", ".join(ids),
        statement,
        training,
        method,
        spread(values),
        reading=of_reading if fashion else Verdict.NEEDS_DATA,
        verdict=verdict if fashion else Verdict.NEEDS_DATA,
        finding=finding if fashion else "",
    )


_Judged = Mapping[str, tuple[Verdict, str]]


def _verdict(trainings: Sequence[tuple[bool, _Judged, Iterable[_Judged]]]) -> Verdict:
    """Verdict of a printed number from readings of the training, each with those of all numbers of the section.

    Only a training whose analytical ε may be the printed one, and that has all printed numbers, speaks for a claim: for
    what the text says, its first method, or else for another one. Where there is none the claim is not refuted:
    learning rate, width and a δ are not printed, and others may have it.
    """
    verdict = Verdict.INCONCLUSIVE
    for near, own, all_numbers in trainings:
        if near and all(Verdict.CONFIRMED in {judged for judged, _ in each.values()} for each in all_numbers):
            first, _ = next(iter(own.values()))
            if first is Verdict.CONFIRMED:
                return Verdict.CONFIRMED
            verdict = Verdict.QUALIFIED
    return verdict


def compared(values: Sequence[float], mean: float, deviation: float, cap: float) -> tuple[Verdict, str]:
    """Judge whether a printed mean and deviation may be of trainings like the measured, of which as many are supposed.

    Refuted if the printed mean is above the cap, or Welch's test of the means or the F test of the variances rejects.
    Else confirmed, unless the values are all equal, or the test could not have distinguished the printed mean from half
    of it.
    """
    runs, array = len(values), np.array(values)
    if mean > cap:
        return Verdict.REFUTED, f"the cap is {cap:.3g}"
    if runs < 2 or not np.isfinite(array).all():
        infinite = int(np.isinf(array).sum())
        return (Verdict.REFUTED, f"infinite in {infinite}") if infinite else (Verdict.INCONCLUSIVE, "one training")
    spread_of_runs = float(array.std(ddof=1))
    welch = float(
        stats.ttest_ind_from_stats(array.mean(), spread_of_runs, runs, mean, deviation, runs, equal_var=False).pvalue
    )
    finding = f"p = {welch:.2g} for the mean"
    p_values = [welch]
    # Numbers that are equal but for rounding have no normal law, and their variance no test.
    varied = spread_of_runs > 1e-9 * abs(array.mean())
    if varied:
        law, larger = stats.f(runs - 1, runs - 1), (deviation / spread_of_runs) ** 2
        p_values.append(2.0 * float(min(law.sf(larger), law.cdf(larger))))
        finding += f", {p_values[-1]:.2g} for the deviation"
    # Mean and deviation are both printed, and share the level.
    if min(p_values) <= 0.5 * READING_LEVEL:
        return Verdict.REFUTED, finding
    visible = visible_difference(runs, level=0.25 * READING_LEVEL)
    finding += f"; a shift of {visible:.2g} printed deviations would be seen"
    return (Verdict.CONFIRMED if varied and visible * deviation <= 0.5 * mean else Verdict.INCONCLUSIVE), finding


def positive(values: Sequence[float]) -> tuple[Verdict, str]:
    """Judge by Student's test whether the mean of differences of the same trainings is above 0."""
    array = np.array(values)
    if len(values) < 2 or not np.isfinite(array).all():
        return Verdict.INCONCLUSIVE, "one training, or an infinite number"
    if array.std() <= 1e-9 * np.abs(array).max():
        # Both numbers are their caps, of which Student's law says nothing.
        return Verdict.INCONCLUSIVE, "equal in all trainings"
    above = float(stats.ttest_1samp(array, 0.0, alternative="greater").pvalue)
    finding = f"p = {above:.2g} that it is not"
    if above <= 0.5 * READING_LEVEL:
        return Verdict.CONFIRMED, finding
    return (Verdict.REFUTED if above >= 1.0 - 0.5 * READING_LEVEL else Verdict.INCONCLUSIVE), finding


# The rows of the benchmark on Fashion-MNIST, and a training of our own.

_NOT_STATED = (
    "not stated, and ours: learning rates, width, how clients are sampled, where a design begins, the law of random "
    "pixels, δ of the conversion and how many trainings there were"
)


def benchmark_reading(claim: str, benchmark: BenchmarkRecord) -> Outcome | None:
    """Return what the benchmark says of a claim, training by training and reading by reading."""
    rows = [row for row in benchmark.printed.claims if claim in row.id.split(", ")] if benchmark.printed else []
    if not rows:
        return None
    listed = "; ".join(
        f"{training}: " + ", ".join(f"{row.method} {row.reading} ({row.finding})" for row in group)
        for training, group in groupby(rows, key=attrgetter("training"))
    )
    readings = {f"{row.training}: {row.method}": str(row.reading) for row in rows}
    finding = f"{listed}; {_NOT_STATED}"
    if claim != _BOUND and rows[0].verdict is Verdict.INCONCLUSIVE:
        finding = f"no one training gives all numbers of the section: {finding}"
    return conclude(rows[0].verdict, finding, readings=readings)


def one_shot(claim: str, benchmark: BenchmarkRecord, experiment: FinishedExperiment) -> Outcome | None:
    """Judge the printed mean and deviation of Algorithm 3 by the benchmark, and by another shuffled epoch."""
    outcome = benchmark_reading(claim, benchmark)
    cells = experiment.cells
    if outcome is None or len(cells) != 1 or not all(repetition.audits for repetition in cells[0].results):
        return None
    values = [reported(repetition.audit("all"), "fitted") for repetition in cells[0].results]
    verdict, finding = compared(values, PRINTED_OURS.mean, PRINTED_OURS.deviation, math.inf)
    shuffled = f"in another shuffled epoch {prediction.shown(values)} ({finding})"
    return conclude(outcome.verdict, f"{outcome.finding}; {shuffled}: {verdict}", shuffled=values, **outcome.evidence)
