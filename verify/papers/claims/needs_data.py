"""Claims on what the papers measured: a row names the data and the experiments that decide it, and the rule.

An experiment is one that comes with the package, at its full size: ``canaryproof train NAME --size full``. Its cells
are selected by the values that the rules name. ``BENCHMARK`` is ``canaryproof benchmark canife`` on Fashion-MNIST.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from canaryproof.verify.papers.check.results import Context, Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import conclude
from canaryproof.verify.papers.claims.experiment_results import FinishedMeasurements
from canaryproof.verify.papers.claims.transcripts import Canife, Final
from canaryproof.verify.papers.records.training_record import NoAuditsError
from canaryproof.verify.papers.training.data import idx

BENCHMARK = "benchmark canife"
_COMMAND = "canaryproof verify claims --data DIR"

# How far a number of clients may be from the printed one: TFF's StackOverflow has 342,477 and not 341,000, its EMNIST
# 3,400 in 62 classes and not 3,383.
CLIENTS_MARGIN = 0.02


@dataclass(frozen=True)
class Population:
    """The clients that an experiment of the papers was trained on."""

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


@dataclass(frozen=True)
class NeedsData:
    """The rule of a claim that only a data set decides.

    ``judge`` takes the results of the experiments, or of the benchmark, and returns None if a cell is missing.
    ``before`` judges what is known without data; its verdict stands unless that is needs-data.
    """

    data: str
    experiments: tuple[str, ...]
    judge: Callable[..., Outcome | None]
    before: Callable[[], Outcome] | None = None

    def __call__(self, context: Context) -> Outcome:
        """Judge by the user's experiments; if they are missing, name the commands that make them."""
        known = Outcome(Verdict.NEEDS_DATA, "", {}) if self.before is None else self.before()
        if known.verdict is not Verdict.NEEDS_DATA:
            return known
        lacking = ""
        if isinstance(context.measurements, FinishedMeasurements):
            outcome, lacking = self._measured(context.measurements)
            if outcome is not None:
                evidence = {**known.evidence, **outcome.evidence}
                return conclude(outcome.verdict, known.finding + outcome.finding, **evidence)
        commands = [_command(name) for name in self.experiments]
        # The command that decides stands last, and the trainings before it.
        listed = " and ".join(f"`{command}`" for command in commands)
        return conclude(
            Verdict.NEEDS_DATA,
            f"{known.finding}needs {self.data}{lacking}; {listed}, then `{_COMMAND}`, decide it",
            data=self.data,
            command="; ".join([*commands, _COMMAND]),
            **known.evidence,
        )

    def _measured(self, measurements: FinishedMeasurements) -> tuple[Outcome | None, str]:
        """Return the outcome, or None and what the measurements lack."""
        if not all(_in_full(measurements, name) for name in self.experiments):
            small = [n for n in self.experiments if n in measurements.experiments and not _in_full(measurements, n)]
            return None, "".join(f"; {name} is there at its quick size, which decides nothing" for name in small)
        others = {name: other_data(measurements, name) for name in self.experiments}
        if any(others.values()):
            return None, "".join(f"; {name} is there on {data}" for name, data in others.items() if data)
        results = (measurements.experiments.get(name, measurements.benchmark) for name in self.experiments)
        try:
            outcome = self.judge(*results)
        except NoAuditsError:
            outcome = None
        return outcome, "" if outcome is not None else "; what is there lacks a cell or its canaries"


def undecidable(data: str, reason: str) -> Callable[[Context], Outcome]:
    """Return the rule of a claim that no training decides."""
    return lambda _: conclude(Verdict.NEEDS_DATA, f"needs {data}; no training here decides it: {reason}", data=data)


def _in_full(measurements: FinishedMeasurements, name: str) -> bool:
    if name == BENCHMARK:
        return measurements.benchmark is not None
    return name in measurements.experiments and measurements.experiments[name].size == "full"


def other_data(measurements: FinishedMeasurements, name: str) -> str:
    """Describe the data of an experiment if they are not the paper's."""
    if name == BENCHMARK:
        return ""
    wanted = POPULATIONS[name]
    for cell in measurements.experiments[name].cells:
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
