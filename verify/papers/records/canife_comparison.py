"""The answer of ``canaryproof benchmark canife``: CANIFE against random canaries, as a record and in words."""

import math
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.files.json_records import Count, NonEmpty, to_document
from canaryproof.verify.audit.markup.digits import number
from canaryproof.verify.papers.records.benchmark_record import BenchmarkRecord
from canaryproof.verify.papers.records.canife_outcomes import (
    ALGORITHM_3,
    ALGORITHM_3_BOUND,
    AS_USED,
    CANIFE_PRINTED,
    CANIFE_REDESIGNED,
    EQUAL_CANARIES,
    EQUAL_SECONDS,
    KNOWN_ROUNDS,
    ComparedOutcome,
)
from canaryproof.verify.papers.records.text_tables import Table, columns
from canaryproof.verify.papers.records.training_record import DATA_KNOWN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_WIDTH = 80


@set_module("canaryproof.typing")
@dataclass(frozen=True, kw_only=True)
class CanifeComparison:
    """CANIFE against random canaries in one training.

    Attributes
    ----------
    version
        Version that made it.
    trained
        Number of trainings that were made; 0 if scores were drawn from their laws.
    data
        The data of those trainings, or else those for which CANIFE's canaries were designed.
    dim, canaries, rounds, noise_multiplier, epsilon, delta
        The training: d, the number of random canaries, the rounds of its epoch, its noise, and its analytical ε at δ.
    scores, round_cap
        CANIFE's number of scores of a round, and the largest ε̂ of a round that so many can show.
    floor
        The least ε above 0 that CANIFE's accounting has at δ.
    seed
        Seed of all randomness.
    outcomes
        The methods.
    """

    version: str
    trained: Count
    data: str
    dim: Count
    canaries: Count
    rounds: Count
    noise_multiplier: float
    epsilon: float
    delta: float
    scores: Count
    round_cap: float
    floor: float
    seed: Count
    outcomes: NonEmpty[ComparedOutcome]

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with a row for each method and budget."""
        # Pandas takes a second to load.
        import pandas as pd

        return pd.DataFrame([asdict(each) for each in self.outcomes])

    def to_json(self) -> dict[str, Any]:
        """Return everything in JSON's own types."""
        return {"answer": self.answer(), **to_document(self)}

    def plot(self) -> "Figure":
        """Draw every method's ε̂ with its reach and its cap and the analytical ε."""
        # Loads matplotlib.
        from canaryproof.verify.papers.records.canife_picture import outcome_figure

        return outcome_figure(self.outcomes, self.epsilon, self.reach)

    @property
    def reach(self) -> str:
        """Which trainings lie between ``low`` and ``high``."""
        return "all trainings" if self.trained else "95 of 100"

    def find(self, name: str, budget: str = AS_USED) -> ComparedOutcome | None:
        """Return the outcome of a method at a budget, if there is one."""
        return next((each for each in self.outcomes if (each.name, each.budget) == (name, budget)), None)

    def answer(self) -> str:
        """Return the answer in a few sentences."""
        return " ".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds:,} rounds"
        yield f"The analytical ε of {rounds} is {number(self.epsilon)} at δ = {self.delta:g}."
        random, printed, redesigned = map(self.find, (KNOWN_ROUNDS, CANIFE_PRINTED, CANIFE_REDESIGNED))
        if random is not None:
            yield (
                f"{_canaries(random.canaries)} at random, for an attacker who knows their rounds and the others' "
                f"updates, measure {_with_reach(random)} in one training, and have no cap."
            )
        if printed is not None and redesigned is not None:
            trials = (printed.trainings - 1.0) * self.rounds
            yield (
                f"CANIFE gives {figure(printed.epsilon)} as printed and {figure(redesigned.epsilon)} as redesigned "
                f"here, by {_canaries(printed.canaries)} and {trials:,.0f} trial rounds."
            )
            yield self._cap(printed.cap, rounds)
        few, many = self.find(KNOWN_ROUNDS, EQUAL_CANARIES), self.find(CANIFE_PRINTED, EQUAL_CANARIES)
        if few is not None:
            more = "" if many is None else f"; CANIFE as printed has {figure(many.epsilon)} with {many.canaries:,}"
            yield f"{_canaries(few.canaries)} at random, as many as CANIFE designs, give {_with_reach(few)}{more}."

    def _cap(self, cap: float, rounds: str) -> str:
        """Say between which values CANIFE's finite numbers are, whatever leaks, and why."""
        shown = (
            f"from {self.scores} scores of a round, half of them with the canary, the largest finite ε̂ is "
            f"{figure(self.round_cap)}"
        )
        ends = f"its Rényi accounting has no ε between 0 and {figure(self.floor)} at δ = {self.delta:g}"
        if cap == 0.0:
            return f"Its finite estimates are 0, whatever leaks: {shown}, and {ends}."
        composed = f", and {rounds} of that, turned into noise at δ = {self.delta:g}, compose to no more"
        of_all = composed if self.rounds > 1 else ""
        least = f" Nor can it be as small as the analytical ε: {ends}." if self.epsilon < self.floor else ""
        return f"Its finite estimates cannot exceed {figure(cap)}, whatever leaks: {shown}{of_all}.{least}"

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Return the comparison in words: the answer, and the table behind it in 80 columns."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from textwrap.wrap(self.answer(), _WIDTH)
        yield ""
        title, header, rows = table(self)
        yield title
        lines = columns(header, rows, ("method",))
        yield next(lines)
        budget = AS_USED
        for outcome, line in zip(self.outcomes, lines, strict=True):
            if outcome.budget != budget:
                budget = outcome.budget
                yield f"  -- {_BUDGETS[budget]}"
            yield line
        yield from textwrap.wrap(meaning(self), _WIDTH, initial_indent="Means  ", subsequent_indent="       ")


def meaning(comparison: CanifeComparison) -> str:
    """Say what the numbers are of, and where they come from."""
    if comparison.trained:
        source = f"All are of the same {comparison.trained} trainings on {comparison.data}."
    else:
        source = (
            "No network was trained: scores are drawn from their laws. CANIFE's canaries are those that were "
            f"designed on {comparison.data}, by both designs; seconds are as measured there, in proportion to d. For "
            "random canaries they are an upper limit: the time in which each is scored in 32 rounds."
        )
    return (
        "Estimates take the noise to be Gaussian and alike in all rounds; the bound, at 95%, does not. Random canaries "
        "measure the noise, of an attacker who knows the others' updates. Algorithm 3 is the attack of Andrew et al., "
        "which knows no rounds. Its estimate, here in both directions, takes the largest of a canary's cosines to be "
        f"normal, which it is not where there are several rounds: do not rely on it. {source}"
    )


_BUDGETS = {
    AS_USED: "each method at its own size",
    EQUAL_CANARIES: "with as many canaries as the other has",
    EQUAL_SECONDS: "with as many seconds as CANIFE as printed takes",
}


def table(comparison: CanifeComparison) -> Table:
    """Lay out the methods."""
    noise = number(comparison.noise_multiplier)
    title = f"d = {comparison.dim:,}, noise multiplier {noise}; trial rounds are shares of a training"
    header = ["method", "ε̂", comparison.reach, "cap", "canaries", "trainings", "seconds"]
    return title, header, [_row(each) for each in comparison.outcomes]


def _row(outcome: ComparedOutcome) -> list[str]:
    return [
        outcome.name,
        figure(outcome.epsilon),
        _ends(outcome),
        "none" if math.isinf(outcome.cap) else figure(outcome.cap),
        f"{outcome.canaries:,}",
        number(outcome.trainings),
        number(outcome.seconds, 2),
    ]


def figure(value: float) -> str:
    """Write an ε, which may be infinite."""
    return "∞" if math.isinf(value) else number(value)


def _ends(outcome: ComparedOutcome) -> str:
    low, high = figure(outcome.low), figure(outcome.high)
    return low if low == high else f"{low} to {high}"


def _with_reach(outcome: ComparedOutcome) -> str:
    return f"{figure(outcome.epsilon)} ({_ends(outcome)})"


def from_trainings(record: BenchmarkRecord, floor: float) -> CanifeComparison:
    """Put the main methods of trainings together: the medians, and what all trainings lie between.

    ``floor`` is the record's.
    """
    scenario, setting, few = record.scenarios[0], record.setting, record.designs[0].counts[0]
    trial_rounds = setting.scores[0] * len(setting.audited)
    outcomes = []
    for method in scenario.methods:
        if method.name not in _IN_TRAININGS:
            continue
        name, values = _IN_TRAININGS[method.name], [value.epsilon for value in method.values]
        is_random = method.family == "oneshot"
        outcomes.append(
            ComparedOutcome(
                AS_USED,
                name,
                "lower bound" if name == ALGORITHM_3_BOUND else "estimate",
                float(np.median(values)),
                min(values),
                max(values),
                method.cap,
                setting.canaries if is_random else len(setting.audited),
                1.0 if is_random else 1.0 + trial_rounds / setting.rounds,
                scenario.seconds.oneshot if is_random else scenario.seconds.canife[method.family],
            )
        )
    analytical = scenario.analytical.epsilon
    return CanifeComparison(
        version=version("canaryproof"),
        trained=record.repeat,
        data=record.data.name.partition(",")[0],
        dim=setting.dim,
        canaries=setting.canaries,
        rounds=setting.rounds,
        noise_multiplier=setting.noise_multiplier,
        epsilon=math.inf if analytical is None else analytical,
        delta=setting.delta,
        scores=setting.scores[0],
        round_cap=few.round_cap,
        floor=floor,
        seed=record.seed,
        outcomes=tuple(sorted(outcomes, key=lambda each: list(_IN_TRAININGS.values()).index(each.name))),
    )


# The main methods, by their names in trainings.
_IN_TRAININGS = {
    f"Known rounds, {DATA_KNOWN}": KNOWN_ROUNDS,
    "Algorithm 3, all rounds": ALGORITHM_3,
    "Algorithm 3, all rounds: fixed-sequence": ALGORITHM_3_BOUND,
    CANIFE_PRINTED: CANIFE_PRINTED,
    CANIFE_REDESIGNED: CANIFE_REDESIGNED,
}


def _canaries(count: int) -> str:
    return "1 canary" if count == 1 else f"{count:,} canaries"
