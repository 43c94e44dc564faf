"""CANIFE's experiments: models' parameters, counts and times, trainings' schedules, and results that need data.

What Appendix B leaves open is taken from the authors' public code (github.com/facebookresearch/canife) and from LEAF
(github.com/TalwalkarLab/leaf); a count that needs the code is qualified.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from scipy import stats

from canaryproof.verify.papers.check.documents import CANIFE
from canaryproof.verify.papers.check.results import Check, Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import Printed, conclude, fixed, holds, number, prints, rounding
from canaryproof.verify.papers.claims.canife import rules
from canaryproof.verify.papers.claims.experiment_results import FinishedExperiment
from canaryproof.verify.papers.claims.needs_data import POPULATIONS, NeedsData, undecidable
from canaryproof.verify.papers.claims.transcripts import Canife, Task


def _dense(inputs: int, outputs: int) -> int:
    return (inputs + 1) * outputs


def _convolution(width: int, inputs: int, outputs: int, bias: bool = True) -> int:
    return (width * width * inputs + bias) * outputs


def _normalisation(channels: int) -> int:
    """Scale and shift, the same for batch and for group normalisation."""
    return 2 * channels


def _lstm(inputs: int, hidden: int, biases: int) -> int:
    return 4 * hidden * (inputs + hidden + biases)


def _stacked_lstm(inputs: int, hidden: int, biases: int = 2) -> int:
    """Two layers; PyTorch gives each two bias vectors, TensorFlow one."""
    return _lstm(inputs, hidden, biases) + _lstm(hidden, hidden, biases)


def resnet18(classes: int, stem: int = 7) -> int:
    """Count the parameters of He et al.'s ResNet18 with three input channels."""
    total = _convolution(stem, 3, 64, bias=False) + _normalisation(64)
    inputs = 64
    for outputs in (64, 128, 256, 512):
        for first in (inputs, outputs):
            total += _convolution(3, first, outputs, bias=False) + _convolution(3, outputs, outputs, bias=False)
            total += 2 * _normalisation(outputs)
        if inputs != outputs:
            total += _convolution(1, inputs, outputs, bias=False) + _normalisation(outputs)
        inputs = outputs
    return total + _dense(512, classes)


def four_layers(classes: int, side: int, padding: int, normalisations: int, rounds_up: bool = False) -> int:
    """Count the parameters of four 3 × 3 convolutions of 32 channels, halved each, and one dense layer."""
    for _ in range(4):
        side = (side + 2 * padding - 2 + rounds_up) // 2
    convolutions = _convolution(3, 3, 32) + 3 * _convolution(3, 32, 32)
    return convolutions + normalisations * _normalisation(32) + _dense(32 * side * side, classes)


def sentiment(symbols: int, width: int, head: int = 0, biases: int = 2) -> int:
    """Count the parameters of the Sent140 LSTM: trained embedding, two layers of 100, two classes."""
    last = _dense(100, head) + _dense(head, 2) if head else _dense(100, 2)
    return symbols * width + _stacked_lstm(width, 100, biases) + last


def characters(symbols: int, classes: int, biases: int = 2) -> int:
    """Count the parameters of LEAF's Shakespeare LSTM: embedding in 8 dimensions, two layers of 256."""
    return 8 * symbols + _stacked_lstm(8, 256, biases) + _dense(256, classes)


# Characters of the three canaries of Table 1 (a line's end not counted, as its print is ambiguous).
TABLE_1 = " !&',123467;>?ADEFHIMNPQRVXYZabcdefghiklmnoprstuvwxy}"


class PrintedModel(NamedTuple):
    """A printed number of parameters, the counts as the text specifies the model, and those of unstated readings."""

    id: str
    name: str
    printed: int
    stated: Mapping[str, int]
    unstated: Mapping[str, int]


MODELS = (
    PrintedModel(
        "celeba.resnet",
        "ResNet18 for CelebA's two classes",
        11_177_538,
        {"He et al.'s ResNet18 with 2 outputs": resnet18(2)},
        {"3 × 3 stem": resnet18(2, stem=3), "1,000 outputs": resnet18(1000)},
    ),
    PrintedModel(
        "celeba.cnn",
        "four-layer CNN after LEAF's",
        29_282,
        {"LEAF's, 84 × 84 pixels": four_layers(2, 84, 1, 4, rounds_up=True)},
        {
            "32 × 32 pixels padded by 2, one normalisation shared by the four layers": four_layers(2, 32, 2, 1),
            "the same with four normalisations": four_layers(2, 32, 2, 4),
        },
    ),
    PrintedModel(
        "sent140.lstm",
        "two-layer LSTM for Sent140 after LEAF's",
        272_102,
        {
            "LEAF's code, 400,001 words in 100 dimensions": sentiment(400_001, 100, 128, 1),
            "LEAF's paper, GloVe in 300 dimensions not trained, dense layer of 128": sentiment(0, 300, 128, 1),
            "the same with two biases": sentiment(0, 300, 128),
            "the same with one dense layer": sentiment(0, 300),
        },
        {"101 characters embedded in 300 dimensions and trained, one dense layer, two biases": sentiment(101, 300)},
    ),
    PrintedModel(
        "shakespeare.lstm",
        "two-layer LSTM for Shakespeare after LEAF's",
        819_920,
        {
            "LEAF's, 47 characters and classes": characters(47, 47, 1),
            "the same with two biases": characters(47, 47),
            "80 characters, 47 classes, two biases": characters(80, 47),
        },
        {"80 characters and classes, two biases": characters(80, 80), "the same, one bias": characters(80, 80, 1)},
    ),
)
PARAMETERS = {model.id: model.printed for model in MODELS}


def judge_model(model: PrintedModel, printed: str) -> Outcome:
    """Judge a number of parameters by the counts as the text specifies the model, and by unstated readings."""
    counts = {**model.stated, **model.unstated}
    listed = "; ".join(f"{name}: {count:,}" for name, count in counts.items())
    judged = number(printed, {name: Fraction(count) for name, count in counts.items()}, model.stated)
    stated = "; ".join(f"{name}: {counts[name]:,}" for name in model.stated)
    says = {
        Verdict.CONFIRMED: f"counted as stated: {stated}",
        Verdict.QUALIFIED: f"only with {judged.reading}; {stated}",
    }
    finding = says.get(judged.verdict, f"no reading gives {int(printed):,} ({listed})")
    return conclude(judged.verdict, finding, counts=counts, **judged.evidence)


def judge_classes(parameters: int, printed: str) -> Outcome:
    """Judge a number of classes by the parameters of LEAF's LSTM, which reads what it predicts, and by the canaries."""
    rows, classes = [], int(printed)
    for biases in (1, 2):
        constant = characters(0, 0, biases)
        solved, rest = divmod(parameters - constant, characters(1, 1, biases) - constant)
        rows.append({"biases": biases, "classes": solved, "left_over": rest})
    exact = [row for row in rows if row["left_over"] == 0]
    if not exact:
        return conclude(Verdict.INCONCLUSIVE, f"{parameters:,} parameters fit no number of classes", solutions=rows)
    solution = exact[0]["classes"]
    verdict = holds(solution == classes >= len(TABLE_1))
    return conclude(
        verdict,
        f"{parameters:,} parameters are those of {solution} classes and of no other number; "
        f"{classes} would make {characters(classes, classes):,}, or {characters(solution, classes):,} if it read "
        f"{solution} characters. LEAF's alphabet has 80, and the three canaries of Table 1 alone have {len(TABLE_1)}, "
        "the blank among them",
        solutions=rows,
        characters_of_table_1=len(TABLE_1),
    )


# Counts, times and percentages, compared with each other (Sections 4.1 to 4.3, Appendix B).


def judge_split(train: int, test: int, share: Fraction, published: int, source: str) -> Outcome:
    """Judge a split of users by a share to train on, and by the number of users that the data set has."""
    total = train + test
    split = math.floor(share * total)
    finding = (
        f"{train:,} + {test:,} = {total:,} users, {train / total:.4f} of them to train on; {source} has {published:,}"
    )
    evidence: dict[str, Any] = {"total": total, "published": published, "split": split}
    verdict = holds(split == train and total == published, split == train)
    if verdict is Verdict.REFUTED:
        finding = f"{finding}; ⌊{float(share)} × {total:,}⌋ = {split:,}"
    elif verdict is Verdict.QUALIFIED:
        whole = f"only as a sample of {total / published:.2%}, split {float(share):.0%} to {float(1 - share):.0%}"
        finding = f"{whole}: {finding}"
    return conclude(verdict, finding, **evidence)


def judge_times(iteration: str, iterations: int, total: str) -> Outcome:
    """Judge that a procedure takes no less than its iterations, by times in seconds and rounded."""
    low, high = (float(end) * iterations for end in rounding(iteration))
    least, most = (float(end) for end in rounding(total))
    evidence: dict[str, Any] = {"iterations": (low, high), "total": (least, most)}
    finding = f"{iterations:,} iterations of {iteration} s are {low:.1f} to {high:.1f} s; {total} s are printed"
    if low <= most and least > high:
        finding = f"the design procedure takes {least - high:.1f} to {most - low:.1f} s more: {finding}"
    return conclude(holds(low <= most), finding, **evidence)


def judge_reduced(health: str, share: str) -> Outcome:
    """Judge by how many per cent a loss is reduced at a health, which is the share that it is improved by."""
    finding = f"health is the share by which the loss is improved: {health} of it, and {share}% are printed"
    return conclude(holds(prints(100 * Fraction(health), share)), finding)


def judge_healths(whole: tuple[str, str], late: tuple[str, str], late_rounds: int) -> Outcome:
    """Judge two printed means ± standard deviations of healths, of which none is above 1.

    The first can be of audits and not of five runs, the second of runs; and the early audits can make the difference.
    """
    early, audits = (1 + (rounds - 1) // Canife.SENT140.every for rounds in (late_rounds, Canife.SENT140.rounds))
    ends = [
        (audits * float(total) - (audits - early) * float(later)) / early
        for total, later in zip(rounding(whole[0]), reversed(rounding(late[0])), strict=True)
    ]
    runs = 5
    # Numbers of at most 1 are spread most where all that the mean lacks is in one of them.
    of_runs, of_audits, of_late_runs = (
        math.sqrt(count) * (1.0 - float(rounding(mean)[0]))
        for mean, count in ((whole[0], runs), (whole[0], runs * audits), (late[0], runs))
    )
    least, late_least = (float(rounding(deviation)[0]) for _, deviation in (whole, late))
    return conclude(
        holds(ends[0] <= 1.0 and of_runs < least <= of_audits and late_least <= of_late_runs),
        f"five numbers of at most 1 deviate by at most {of_runs:.3f} around {whole[0]}, by {of_late_runs:.3f} around "
        f"{late[0]}; the {early} early audits of {audits} then have a mean health of {ends[0]:.3f} to {ends[1]:.3f}",
        largest_of_runs=of_runs,
        largest_of_audits=of_audits,
        largest_of_late_runs=of_late_runs,
        early_mean=ends,
        early=early,
    )


def judge_utility(tasks: Sequence[Task] = (Canife.SENT140, Canife.SHAKESPEARE)) -> Outcome:
    """Judge on which tasks the printed accuracy without privacy is above that at ε = 50: on the first alone."""
    pairs = {task.name: (Canife.ACCURACIES[task.id], Canife.FREE_ACCURACIES[task.id]) for task in tasks}
    lost = {name: float(free) - float(private) for name, (private, free) in pairs.items()}
    listed = "; ".join(
        f"{name} {private}% at ε = 50, {free}% without: {lost[name]:+.1f} points"
        for name, (private, free) in pairs.items()
    )
    return conclude(
        holds([name for name, points in lost.items() if points > 0.0] == [tasks[0].name]),
        f"{listed}; no spread over runs is printed, and for Shakespeare 30 epochs at ε = 50 and 15 without",
        lost=lost,
    )


def judge_two_epochs(printed: str) -> Outcome:
    """Judge how many epochs 1,000 rounds on Sent140 are."""
    epochs = Fraction(1000, Canife.SENT140.epoch_rounds)
    judged = number(printed, {f"1,000 rounds of {Canife.SENT140.epoch_rounds} an epoch": epochs})
    return conclude(
        judged.verdict,
        f"1,000 rounds are {float(epochs):.2f} epochs of {Canife.SENT140.epoch_rounds} rounds, which rounds to two",
        epochs=float(epochs),
        **judged.evidence,
    )


def _judge_minutes() -> Outcome:
    mean = float(rounding("591")[1]) / 60.0
    return conclude(
        holds(mean <= 10.0),
        f"on average, as the sentence before has it: the larger of its two means, 591 s for {Canife.ITERATIONS:,} "
        f"iterations of ResNet18 on CelebA, is {mean:.2f} minutes at most. Of the longest design it says nothing",
        minutes=mean,
    )


def judge_pool(pool: int, users: int) -> Outcome:
    """Judge that a design pool of so many samples can come from so many users with one each."""
    verdict = holds(pool <= users)
    return conclude(verdict, f"{pool} of the {users:,} test users, each with a sample", share=pool / users)


# LEAF's README (github.com/TalwalkarLab/leaf), of Shakespeare its present one: an earlier one has 2,288 users. The file
# names in the README of the authors' code say 15% of Sent140, split 6 to 4, and 9 to 1 for the other two.
# CIFAR10 after its home page (cs.toronto.edu/~kriz/cifar.html), an image a user.
_LEAF = "LEAF's README"
_SPLITS = (
    ("cifar10", "An IID split of CIFAR10", 50_000, 10_000, Fraction(5, 6), 60_000, "CIFAR10's home page"),
    ("celeba", "LEAF's standard split of CelebA", Canife.CELEBA.users, 935, Fraction(9, 10), 9_343, _LEAF),
    ("sent140", "LEAF's standard split of Sent140", Canife.SENT140.users, 39_477, Fraction(6, 10), 660_120, _LEAF),
    (
        "shakespeare",
        "LEAF's standard split of Shakespeare",
        Canife.SHAKESPEARE.users,
        113,
        Fraction(9, 10),
        1_129,
        _LEAF,
    ),
)
_TIMES = (("sent140", "Sent140", "0.06", "165"), ("celeba", "CelebA (ResNet18)", "0.23", "591"))


# Trainings: rounds, epochs, clients a round and audits (Section 4, Appendices B and C).


def judge_rounds(task: Task) -> Outcome:
    """Judge rounds an epoch and in all by the clients and the epochs."""
    an_epoch = -(-task.users // task.cohort)
    total = an_epoch * task.epochs
    expected = float(Fraction(task.cohort, task.users) * total)
    held = (an_epoch, total) == (task.epoch_rounds, task.rounds)
    return conclude(
        holds(held),
        f"⌈{task.users:,}/{task.cohort}⌉ = {an_epoch} rounds an epoch, {total:,} in {task.epochs} epochs; a client "
        f"takes part {expected:.2f} times in expectation",
        epoch_rounds=an_epoch,
        rounds=total,
        participations=expected,
    )


def judge_audits(task: Task) -> Outcome:
    """Judge a number of audits by the rule that makes one every so many rounds."""
    as_printed = task.rounds // task.every
    # The authors' code audits at round 1 and then every ``every`` rounds.
    with_first = 1 + (task.rounds - 1) // task.every
    finding = (
        f"Algorithm 2 (r mod s = 0 for r from 1) audits {as_printed} times; with one at the first round it is "
        f"{with_first}"
    )
    judged = number(f"{task.audits}", {"Algorithm 2": float(as_printed), "an audit first": float(with_first)})
    evidence: dict[str, Any] = {"algorithm_2": as_printed, "with_first": with_first, **judged.evidence}
    if judged.verdict is Verdict.QUALIFIED:
        finding = f"only as a round number: {finding}"
        if task.audits == with_first:
            finding = (
                f"only with an audit at the first round, {with_first} in all; Algorithm 2 (r mod s = 0 for r from 1) "
                f"audits {as_printed} times"
            )
    if task.audits in (as_printed, with_first):
        return conclude(judged.verdict, finding, **evidence)
    others = ", ".join(
        f"{other.name} {1 + (other.rounds - 1) // other.every}" for other in Canife.TASKS if other is not task
    )
    return conclude(
        judged.verdict,
        f"{finding}, by the rule that gives the others' numbers ({others}), which this one does not follow",
        **evidence,
    )


def judge_epochs(task: Task, epochs: int) -> Outcome:
    """Judge a number of epochs of Appendix B by the rounds of Appendix C.3."""
    total = epochs * task.epoch_rounds
    evidence: dict[str, Any] = {"rounds": task.rounds, "rounds_of_these_epochs": total}
    if total == task.rounds:
        return conclude(holds(True), f"{total:,} rounds, as in Appendix C.3", **evidence)
    return conclude(
        holds(False, True),
        f"only for the run without privacy: Appendix C.3 has {task.rounds:,} rounds, which are {task.epochs} epochs; "
        f"{epochs} would be {total:,}",
        **evidence,
    )


def judge_clients(printed: int, tasks: Sequence[Task]) -> Outcome:
    """Judge a number of clients a round by those of Appendix C.3."""
    cohorts = {task.name: task.cohort for task in tasks}
    verdict = holds(set(cohorts.values()) == {printed})
    listed = ", ".join(f"{name} {cohort}" for name, cohort in cohorts.items())
    return conclude(verdict, f"Appendix C.3 has {listed}", cohorts=cohorts)


def judge_poisson(tasks: Sequence[Task]) -> Outcome:
    """Judge that a round of Poisson sampling has the printed number of clients."""
    rows = {task.name: float(stats.binom.pmf(task.cohort, task.users, task.sampling)) for task in tasks}
    listed = ", ".join(f"{name} {share:.3f}" for name, share in rows.items())
    return conclude(
        holds(all(share == 1.0 for share in rows.values()), rows),
        f"only as the expected number: a round of Poisson sampling has exactly so many clients with probability "
        f"{listed}; rounds of a fixed size are another mechanism, that the accounting is not for",
        exactly=rows,
    )


def judge_covered(tasks: Sequence[Task]) -> Outcome:
    """Judge that Algorithm 2 gives each round an estimate of the noise."""
    # The estimate of round r serves rounds r to r + s - 1, and the first audit is at r = s.
    missing = {task.name: min(task.every - 1, task.rounds) for task in tasks}
    listed = ", ".join(f"{name} {count}" for name, count in missing.items())
    return conclude(
        holds(not any(missing.values()), missing),
        f"only if an audit comes first, or if an estimate serves the rounds before it, as in the public code: with "
        f"audits at r mod s = 0 for r from 1 the rounds before the first have none ({listed})",
        missing=missing,
    )


# Experimental results, which only a training on the named data set decides.

# Data sets by the name of the federation.
_DATA = {"cifar10": "CIFAR10", **{task.id: task.data for task in Canife.TASKS}}
# The final ε of the trainings of Figures 1 and 7.
_LEVELS = ("10", "30", "50")


def _measured(
    id: str,  # noqa: A002
    section: str,
    statement: str,
    experiment: str,
    rule: Callable[[FinishedExperiment], Outcome | None],
) -> Check:
    """Return a claim that an experiment decides, on the data of its name."""
    return CANIFE.claim(
        id, section, statement, NeedsData(_DATA[POPULATIONS[experiment].federation], (experiment,), rule)
    )


MEASURED = (
    *(
        _measured(
            f"figure1.{task.id}",
            f"Section 4.2, Figure 1{panel}",
            f"{task.name}: there is a significant gap between ε̂ and the final ε of 10, 30 and 50",
            f"canife_figure1_{task.id}",
            partial(rules.far_below, _LEVELS),
        )
        for task, panel in ((Canife.SENT140, "a"), (Canife.CELEBA, "b"), (Canife.SHAKESPEARE, "c"))
    ),
    CANIFE.claim(
        "section4.hours",
        "Section 4, setup",
        "A training takes at most a few hours on an A100 GPU",
        undecidable("the four data sets and that GPU", "hours on an A100 GPU are its, and no other machine's"),
    ),
    _measured(
        "section4.1.accuracy",
        "Section 4.1",
        "ResNet18 on CIFAR10 is trained to 60% test accuracy",
        "canife_figure3",
        partial(rules.reached, "60"),
    ),
    _measured(
        "figure3.a",
        "Section 4.1, on Figure 3a",
        f"Without noise the histograms' mean standard deviation is {Canife.NOISELESS}",
        "canife_figure3",
        partial(rules.histogram_deviation, Canife.NOISELESS, "0"),
    ),
    _measured(
        "figure3.b",
        "Figure 3b",
        f"At σ = {Canife.TOY_SIGMA} the histograms' mean standard deviation is {Canife.DEVIATION}",
        "canife_figure3",
        partial(rules.histogram_deviation, Canife.DEVIATION, Canife.TOY_SIGMA),
    ),
    _measured(
        "figure3.c",
        "Figure 3c",
        "At 60% train accuracy the attack is much tighter with fewer clients a round; a larger design pool has a "
        "diminishing effect",
        "canife_figure3",
        rules.clients_and_pools,
    ),
    *(
        _measured(
            f"section4.2.accuracy.{task.id}",
            "Section 4.2",
            f"The test accuracy on {task.name} at ε = 50 is {Canife.ACCURACIES[task.id]}%",
            f"canife_figure1_{task.id}",
            partial(rules.model_accuracy, Canife.ACCURACIES[task.id], "50"),
        )
        for task in (Canife.SENT140, Canife.CELEBA, Canife.SHAKESPEARE)
    ),
    _measured(
        "section4.2.health.measured",
        "Section 4.2",
        f"On Sent140, canary health over five runs is {' ± '.join(Canife.HEALTH)} on average, and "
        f"{' ± '.join(Canife.LATE_HEALTH)} without the first 1,000 rounds of each",
        "canife_figure1_sent140",
        partial(rules.health, ((Canife.HEALTH[0], 0), (Canife.LATE_HEALTH[0], Canife.LATE_ROUNDS))),
    ),
    _measured(
        "figure4.a",
        "Figure 4a",
        "Sent140's per-round ε̂ grows to an almost constant level within one epoch and stays there",
        "canife_figure1_sent140",
        rules.settles,
    ),
    _measured(
        "figure4.b",
        "Figure 4b",
        f"On CelebA the gap between the theoretical per-round ε and ε̂ is {' to '.join(Canife.GAPS['celeba'])} times",
        "canife_figure1_celeba",
        partial(rules.gap, *Canife.GAPS["celeba"]),
    ),
    CANIFE.claim(
        "figure4.c",
        "Section 4.2, Figure 4c",
        "The final ε̂ of five runs is stable, and differs between tasks, most notably with Sent140",
        NeedsData(
            Canife.SENT140.data,
            tuple(f"canife_figure1_{task.id}" for task in (Canife.SENT140, Canife.CELEBA, Canife.SHAKESPEARE)),
            partial(rules.stable, "sent140"),
        ),
    ),
    _measured(
        "figure5.a",
        "Figure 5a",
        "Neither initialisation nor the pool's size has a significant effect on the mean deviation",
        "canife_figure5",
        rules.start_and_pool,
    ),
    _measured(
        "figure5.b",
        "Figure 5b",
        "With 1,000 design iterations the attack's accuracy is 95%, with 3,000 almost 100%",
        "canife_figure5",
        partial(rules.design_steps, ((1000, "0.95"), (3000, "1.00"))),
    ),
    _measured(
        "section4.3.few-thousand",
        "Section 4.3",
        "Only a few thousand design iterations are needed for near-optimal canaries",
        "canife_figure5",
        partial(rules.design_steps, ((3000, "1.00"),)),
    ),
    CANIFE.claim(
        "section4.3.gpu",
        "Section 4.3",
        "Designing a canary takes a few minutes on a GPU",
        undecidable(
            f"{Canife.CELEBA.data} and a GPU", "minutes on a GPU that is not named are its, and no other machine's"
        ),
    ),
    _measured(
        "figure5.c",
        "Figure 5c",
        "The attack's accuracy nears 100% as the model converges",
        "canife_figure5c",
        partial(rules.goes_with_accuracy, ("inf",)),
    ),
    *(
        _measured(
            f"appendixB.{task.id}.accuracy",
            "Appendix B",
            f"For ε = 0, which only ε = ∞ of Appendix C.5 can mean, the average {final}test accuracy on {task.name} is "
            f"{Canife.FREE_ACCURACIES[task.id]}% after 15 epochs",
            experiment,
            # The text says ε = 0, and means no noise.
            partial(rules.model_accuracy, Canife.FREE_ACCURACIES[task.id], "inf", stated="0"),
        )
        for task, final, experiment in (
            (Canife.SENT140, "", "canife_figure5c"),
            (Canife.SHAKESPEARE, "final ", "canife_figure1_shakespeare"),
        )
    ),
    _measured(
        "figure6",
        "Figure 6, Appendix C.5",
        "Without privacy the per-round ε̂ on Shakespeare is essentially constant and consistently reaches its bounds",
        "canife_figure1_shakespeare",
        rules.at_its_bound,
    ),
    _measured(
        "figure8.a",
        "Figure 8a, Appendix D",
        "There is a clear difference in accuracy: the covariance loss attacks better than the mean's (5 attacks)",
        "canife_figure8",
        rules.losses,
    ),
    _measured(
        "figure8.b",
        "Figure 8b, Appendix D",
        "Attack accuracy falls slowly with clients a round (5 runs)",
        "canife_figure8b",
        rules.falls_with_clients,
    ),
    _measured(
        "figure9",
        "Figure 9, Appendix D",
        "At 70% test accuracy, over 10 attacks, accuracy drops for norm constants above 50, health only above 600",
        "canife_figure9",
        partial(rules.norm_constants, 50, 600),
    ),
)


CHECKS = (
    *(
        CANIFE.claim(
            f"appendixB.{model.id}",
            "Appendix B",
            f"The {model.name} has {model.printed:,} parameters",
            Printed(f"{model.printed}", partial(judge_model, model)),
        )
        for model in MODELS
    ),
    CANIFE.claim(
        "appendixB.shakespeare.classes",
        "Appendix B",
        "Shakespeare is next-character prediction with 47 classes",
        Printed("47", partial(judge_classes, PARAMETERS["shakespeare.lstm"])),
    ),
    CANIFE.claim(
        "section4.1.pool",
        "Section 4.1, Appendix B",
        "A design pool of 512 comes from CIFAR10's 10,000 test users",
        fixed(judge_pool, Canife.POOL, 10_000),
    ),
    CANIFE.claim(
        "section4.2.epochs",
        "Section 4.2",
        "On Sent140 the first 1,000 rounds are two epochs",
        Printed("2", judge_two_epochs),
    ),
    CANIFE.claim(
        "section4.2.health",
        "Section 4.2",
        "A canary health of 0.990 is a loss reduced by 99%",
        Printed("99", partial(judge_reduced, Canife.LATE_HEALTH[0])),
    ),
    *(
        CANIFE.claim(
            f"section4.3.times.{id_}",
            "Section 4.3",
            f"{name}: an iteration takes {iteration} s on average, and the design procedure of 2,500 takes {total} s",
            fixed(judge_times, iteration, Canife.ITERATIONS, total),
        )
        for id_, name, iteration, total in _TIMES
    ),
    CANIFE.claim(
        "section4.3.minutes",
        "Section 4.3",
        "Designing a canary in 2,500 iterations takes, by its mean times, at most 10 minutes on a laptop's CPU",
        fixed(_judge_minutes),
    ),
    *(
        CANIFE.claim(
            f"appendixB.{id_}.users",
            "Appendix B",
            f"{name} has {train:,} train users and {test:,} test users",
            fixed(judge_split, train, test, share, total, source),
        )
        for id_, name, train, test, share, total, source in _SPLITS
    ),
    *(
        CANIFE.claim(
            f"appendixB.{task.id}.epochs",
            "Appendix B",
            f"The {task.name} model is trained for 15 epochs",
            fixed(judge_epochs, task, 15),
        )
        for task in (Canife.SENT140, Canife.SHAKESPEARE)
    ),
    CANIFE.claim(
        "figure4.clients",
        "Figure 4",
        "The models of Figures 4a and 4b are trained with 100 clients a round",
        fixed(judge_clients, 100, (Canife.SENT140, Canife.CELEBA)),
    ),
    CANIFE.claim(
        "section4.sampling",
        "Section 4, setup; Appendix C.3",
        "Clients are sampled by Poisson sampling, and 100 (Shakespeare: 60) take part in each round",
        fixed(judge_poisson, Canife.TASKS),
    ),
    CANIFE.claim(
        "algorithm2.rounds",
        "Appendix C.2, Algorithm 2",
        "An estimate holds from its audit to the next, and all rounds are composed so",
        fixed(judge_covered, Canife.TASKS),
    ),
    *(
        CANIFE.claim(
            f"appendixC3.{task.id}.rounds",
            "Appendix C.3",
            f"{task.name}: {task.cohort} clients a round make {task.epoch_rounds} rounds an epoch"
            # The text does not add CelebA's rounds up.
            + ("" if task is Canife.CELEBA else f", {task.rounds:,} in {task.epochs} epochs"),
            fixed(judge_rounds, task),
        )
        for task in Canife.TASKS
    ),
    *(
        CANIFE.claim(
            f"appendixC3.{task.id}.audits",
            "Appendix C.3",
            f"{task.name}: an audit every {task.every} rounds makes {task.audits} in {task.epochs} epochs",
            fixed(judge_audits, task),
        )
        for task in Canife.TASKS
    ),
    *MEASURED,
)
