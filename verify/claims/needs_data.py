"""Which experiment decides which claim on what the papers measured, and by which rule.

An experiment is one that comes with the package, at its full size: ``canaryproof train NAME --size full``. Cells of it
are found by the values that the rules name. ``BENCHMARK`` is ``canaryproof benchmark canife`` on Fashion-MNIST.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from canaryproof.verify.check.results import Context, Outcome, Verdict
from canaryproof.verify.check.verdicts import conclude
from canaryproof.verify.claims import andrew_rules, canife_rules, prediction
from canaryproof.verify.claims.andrew_rules import EMNIST, STACKOVERFLOW, Reading, quantiles, row
from canaryproof.verify.claims.experiment_results import FinishedExperiment, FinishedMeasurements
from canaryproof.verify.claims.transcripts import Canife, Final, FirstVersion, Row, Submission
from canaryproof.verify.training.data import idx

BENCHMARK = "benchmark canife"

# How far a number of clients may be from the printed one: TFF's StackOverflow has 342,477 and not 341,000, its EMNIST
# 3,400 in 62 classes and not 3,383.
CLIENTS_MARGIN = 0.02


@dataclass(frozen=True)
class Population:
    """What an experiment of the papers was trained on."""

    federation: str
    clients: int


_STACKOVERFLOW = Population("stackoverflow", Final.STACKOVERFLOW_CLIENTS)
_FEDERATED_EMNIST = Population("federated_emnist", Final.EMNIST_USERS)
_CELEBA, _SENT140, _SHAKESPEARE = (
    Population(task.id, task.users) for task in (Canife.CELEBA, Canife.SENT140, Canife.SHAKESPEARE)
)
# Where a client is an example; CIFAR-10 has 50,000 (Maddock et al., Appendix B).
_CIFAR10, _FASHION = Population("cifar10", 50_000), Population(idx.FASHION, Final.FASHION_EXAMPLES)
POPULATIONS: Mapping[str, Population] = {
    **dict.fromkeys(("final_table3", "final_figure2", "final_table5", "v1_table3", "v1_figure2"), _STACKOVERFLOW),
    **dict.fromkeys(("final_table4", "final_figure4", "submission_table3", "submission_figure2"), _FEDERATED_EMNIST),
    "fashion_mnist": _FASHION,
    "canife_figure1_shakespeare": _SHAKESPEARE,
    **dict.fromkeys(("canife_figure1_sent140", "canife_figure5c"), _SENT140),
    "canife_figure3": _CIFAR10,
    **dict.fromkeys(
        ("canife_figure1_celeba", "canife_figure5", "canife_figure8", "canife_figure8b", "canife_figure9"), _CELEBA
    ),
}

# None if a cell is missing.
Rule = Callable[[FinishedExperiment], Outcome | None]


@dataclass(frozen=True)
class Decision:
    """What decides a claim."""

    experiments: tuple[str, ...]
    judge: Callable[[FinishedMeasurements], Outcome | None]


def _one(name: str, rule: Rule) -> Decision:
    return Decision((name,), lambda measurements: rule(measurements.experiments[name]))


def _rows(
    claims: str, name: str, rows: Sequence[Row], readings: Mapping[str, Reading]
) -> Iterator[tuple[str, Decision]]:
    for number, printed in enumerate(rows, 1):
        yield claims.format(number), _one(name, partial(row, printed, readings))


def _quantiles(claims: str) -> Iterator[tuple[str, Decision]]:
    for number, (noise, runs, count, values) in enumerate(Final.TABLE_5, 1):
        yield claims.format(number), _one("final_table5", partial(quantiles, noise, runs, count, values))


def _anderson(
    claims: str, name: str, rows: Sequence[tuple[str, Sequence[str]]], presentations: Sequence[int]
) -> Iterator[tuple[str, Decision]]:
    for number, (noise, values) in enumerate(rows, 1):
        yield claims.format(number), _one(name, partial(andrew_rules.anderson, noise, presentations, values))


_NOISES, _EMNIST_NOISES = (tuple(one.noise for one in table) for table in (Final.TABLE_3, Final.TABLE_4))
_TIMES = (1, 2, 4, 8)
_TABLE_6 = [(noise, [f"{value:g}" for value in values]) for noise, values in Final.TABLE_6]
# Tables 2 and 4 of the first version have the noise with other digits.
_V1_NOISES = ("0", "0.1023", "0.2344")
_V1_TABLE_3 = [
    Row(noise, *(one.analytical, one.lower_all, one.estimate_all, one.lower_final, one.estimate_final))
    for (noise, *_), one in zip(FirstVersion.TABLE_2, FirstVersion.TABLE_3, strict=True)
]
_V1_TABLE_4 = list(zip(_V1_NOISES, FirstVersion.TABLE_4.values(), strict=True))
_FIGURES = {"separates": andrew_rules.separates, "rises": andrew_rules.rises}


def _figure(claim: str, name: str, what: str, noises: Sequence[str], times: Sequence[int]) -> tuple[str, Decision]:
    return f"{claim}.measured", _one(name, partial(_FIGURES[what], noises, times))


def _alike(figures: Mapping[str, tuple[Sequence[str], bool]]) -> Decision:
    """Return what decides that repetitions do the same on two data sets: estimates rise, and cosines if shown."""

    def judge(measurements: FinishedMeasurements) -> Outcome | None:
        found_of = {
            (name, rule): rule(noises, _TIMES, measurements.experiments[name])
            for name, (noises, cosines) in figures.items()
            for rule in (andrew_rules.rises, *([andrew_rules.separates] if cosines else []))
        }
        parts = [prediction.Part(one.verdict, f"{name}: {one.finding}") for (name, _), one in found_of.items() if one]
        if len(parts) < len(found_of):
            return None
        return conclude(prediction.worst(parts), "; ".join(part.text for part in parts))

    return Decision(tuple(figures), judge)


_TASKS = {task: f"canife_figure1_{task}" for task in ("sent140", "celeba", "shakespeare")}


def _stable(measurements: FinishedMeasurements) -> Outcome | None:
    return canife_rules.stable({task: measurements.experiments[name] for task, name in _TASKS.items()}, "sent140")


def _canife() -> Iterator[tuple[str, Decision]]:
    far = partial(canife_rules.far_below, ("10", "30", "50"))
    for task, name in _TASKS.items():
        yield f"figure1.{task}", _one(name, far)
        yield (
            f"section4.2.accuracy.{task}",
            _one(name, partial(canife_rules.model_accuracy, Canife.ACCURACIES[task], "50")),
        )
        yield f"section4.2.gap.{task}", _one(name, partial(canife_rules.gap, *Canife.GAPS[task]))
    sent140, celeba, shakespeare = _TASKS.values()
    means = ((Canife.HEALTH[0], 0), (Canife.LATE_HEALTH[0], Canife.LATE_ROUNDS))
    yield "section4.2.health.measured", _one(sent140, partial(canife_rules.health, means))
    yield "figure4.a", _one(sent140, canife_rules.settles)
    yield "figure4.b", _one(celeba, partial(canife_rules.gap, *Canife.GAPS["celeba"]))
    yield "section1.celeba", _one(celeba, partial(canife_rules.final_epsilon, "6", "50"))
    yield "figure4.c", Decision(tuple(_TASKS.values()), _stable)
    together = canife_rules.goes_with_accuracy
    for task, name in _TASKS.items():
        yield f"figure7.{task}", _one(name, partial(together, "epsilon", ("10", "30", "50")))
    yield "figure6", _one(shakespeare, canife_rules.at_its_bound)
    # The text says ε = 0, and means no noise.
    no_privacy = partial(canife_rules.model_accuracy, epsilon="inf", stated="0")
    yield (
        "appendixB.shakespeare.accuracy",
        _one(shakespeare, lambda found: no_privacy(Canife.FREE_ACCURACIES["shakespeare"], experiment=found)),
    )
    yield (
        "appendixB.sent140.accuracy",
        _one("canife_figure5c", lambda found: no_privacy(Canife.FREE_ACCURACIES["sent140"], experiment=found)),
    )
    yield "figure5.c", _one("canife_figure5c", partial(together, "model", ("inf",)))
    yield "section4.1.accuracy", _one("canife_figure3", partial(canife_rules.reached, "60"))
    for letter, deviation, noise in (("a", Canife.NOISELESS, "0"), ("b", Canife.DEVIATION, Canife.TOY_SIGMA)):
        yield f"figure3.{letter}", _one("canife_figure3", partial(canife_rules.deviation, deviation, noise))
    yield "figure3.c", _one("canife_figure3", canife_rules.clients_and_pools)
    yield "figure5.a", _one("canife_figure5", canife_rules.start_and_pool)
    yield "figure5.b", _one("canife_figure5", partial(canife_rules.steps, ((1000, "0.95"), (3000, "1.00"))))
    yield "section4.3.few-thousand", _one("canife_figure5", partial(canife_rules.steps, ((3000, "1.00"),)))
    yield "figure8.a", _one("canife_figure8", canife_rules.losses)
    yield "figure8.b", _one("canife_figure8b", partial(canife_rules.falls_with_clients, "accuracy"))
    yield "figure8.c", _one("canife_figure8b", partial(canife_rules.falls_with_clients, "composed"))
    yield "figure9", _one("canife_figure9", partial(canife_rules.norm_constants, 50, 600))


DECISIONS: Mapping[str, Decision] = dict(
    (
        *_rows("final.table3.row{}.measured", "final_table3", Final.TABLE_3, STACKOVERFLOW),
        *_rows("final.table4.row{}.measured", "final_table4", Final.TABLE_4, EMNIST),
        *_quantiles("final.table5.row{}.measured"),
        *_anderson("final.table6.row{}.measured", "final_figure2", _TABLE_6, _TIMES),
        _figure("final.figure1", "final_figure2", "separates", _NOISES, _TIMES),
        _figure("final.figure2", "final_figure2", "rises", _NOISES, _TIMES),
        _figure("final.figure3", "final_figure4", "separates", _EMNIST_NOISES, _TIMES),
        _figure("final.figure4", "final_figure4", "rises", _EMNIST_NOISES, _TIMES),
        *(
            (claim, _one("final_table3", andrew_rules.cost))
            for claim in ("final.section5.1.accuracy", "submission.section5.accuracy", "review.accuracy.decrease")
        ),
        (
            "final.section5.2.1.repetitions",
            _alike({"final_figure2": (_NOISES, True), "final_figure4": (_EMNIST_NOISES, True)}),
        ),
        (
            "submission.appendixD.repetitions",
            _alike({"final_figure2": (_NOISES, False), "submission_figure2": (("0.16", "0.18", "0.195"), False)}),
        ),
        *(
            (f"v1.table2.row{number}", _one("v1_table3", partial(andrew_rules.accuracies, noise, without, with_)))
            for number, (noise, _, without, with_) in enumerate(FirstVersion.TABLE_2, 1)
        ),
        *_rows("v1.table3.row{}", "v1_table3", _V1_TABLE_3, STACKOVERFLOW),
        *_anderson("v1.table4.row{}", "v1_figure2", _V1_TABLE_4, FirstVersion.REPETITIONS),
        _figure("v1.figure1", "v1_figure2", "separates", _V1_NOISES, FirstVersion.REPETITIONS),
        _figure("v1.figure2", "v1_figure2", "rises", _V1_NOISES, FirstVersion.REPETITIONS),
        *_rows("submission.table2.row{}", "final_table3", Submission.TABLE_2, STACKOVERFLOW),
        *_rows("submission.table3.row{}", "submission_table3", Submission.TABLE_3, EMNIST),
        *_anderson("submission.table4.row{}", "v1_figure2", _V1_TABLE_4, FirstVersion.REPETITIONS),
        *_quantiles("submission.table6.row{}"),
        _figure("submission.figure1", "final_figure2", "separates", _NOISES, _TIMES),
        _figure("submission.figure2", "submission_figure2", "rises", ("0.16", "0.18", "0.195"), _TIMES),
        _figure("submission.figure3", "final_figure2", "rises", _NOISES, _TIMES),
        *(
            (claim, Decision((BENCHMARK,), rule))
            for claim, rule in (
                ("final.section5.4.canife", partial(canife_rules.printed, "final.section5.4.canife")),
                ("submission.appendixH.canife", partial(canife_rules.printed, "final.section5.4.canife")),
                ("review.canife.bound", partial(canife_rules.printed, "review.canife.bound")),
                ("final.section5.4.cost", canife_rules.cost),
                ("submission.appendixH.cost", canife_rules.crafting),
            )
        ),
        *(
            (claim, Decision((BENCHMARK, "fashion_mnist"), canife_rules.ours))
            for claim in ("final.section5.4.ours", "submission.appendixH.canaries")
        ),
        *((f"canife.{claim}", decision) for claim, decision in _canife()),
    )
)

# Claims that no training decides, each with the reason.
UNDECIDABLE: Mapping[str, str] = {
    "canife.section4.hours": "hours on an A100 GPU are its, and no other machine's",
    "canife.section4.3.gpu": "minutes on a GPU that is not named are its, and no other machine's",
}


# By the user's finished experiments, or not yet.

_COMMAND = "canaryproof verify claims --data DIR"


def needs_data(claim: str, what: str) -> Callable[[Context], Outcome]:
    """Return the judge of a claim that only a data set decides."""
    return partial(decided, claim, what)


def decided(claim: str, what: str, context: Context, known: str = "", **evidence: Any) -> Outcome:
    """Judge a claim by the user's experiments; if they are not there, say what decides it."""
    if claim in UNDECIDABLE:
        finding = f"{known}needs {what}; no training here decides it: {UNDECIDABLE[claim]}"
        return conclude(Verdict.NEEDS_DATA, finding, data=what, **evidence)
    decision, lacking = DECISIONS[claim], ""
    there = context.measurements if isinstance(context.measurements, FinishedMeasurements) else None
    if there is not None and all(_in_full(there, name) for name in decision.experiments):
        others = {name: _other_data(there, name) for name in decision.experiments}
        lacking = "".join(f"; {name} is there on {data}" for name, data in others.items() if data)
        outcome = None if lacking else decision.judge(there)
        if outcome is not None:
            return conclude(outcome.verdict, known + outcome.finding, **evidence, **outcome.evidence)
        lacking = lacking or "; what is there lacks a cell or its canaries"
    elif there is not None:
        small = [name for name in decision.experiments if name in there.experiments and not _in_full(there, name)]
        lacking = "".join(f"; {name} is there at its quick size, which decides nothing" for name in small)
    commands = [_command(name) for name in decision.experiments]
    # The command that decides stands last, and the trainings before it.
    told = " and ".join(f"`{command}`" for command in commands)
    finding = f"{known}needs {what}{lacking}; {told}, then `{_COMMAND}`, decide it"
    return conclude(Verdict.NEEDS_DATA, finding, data=what, command="; ".join([*commands, _COMMAND]), **evidence)


def _in_full(there: FinishedMeasurements, name: str) -> bool:
    if name == BENCHMARK:
        return there.benchmark is not None
    return name in there.experiments and there.experiments[name].size == "full"


def _other_data(there: FinishedMeasurements, name: str) -> str:
    """Say what an experiment was trained on, if it is not what the paper has."""
    if name == BENCHMARK:
        return ""
    wanted = POPULATIONS[name]
    for cell in there.experiments[name].cells:
        near = abs(cell.clients / wanted.clients - 1.0) <= CLIENTS_MARGIN
        if cell.federation != wanted.federation or not near:
            return (
                f"{cell.federation} with {cell.clients:,} clients, and the paper's on {wanted.federation} with "
                f"{wanted.clients:,}"
            )
    return ""


def _command(name: str) -> str:
    if name == BENCHMARK:
        return "canaryproof benchmark canife --data FOLDER --level full --out DIR/canife"
    return f"canaryproof train {name} --data FOLDER --size full --out DIR/{name}"
