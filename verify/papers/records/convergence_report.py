"""The report of ``canaryproof convergence``: its record, its answer in words, and its tables."""

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.files.json_records import Count, NonEmpty, to_document
from canaryproof.verify.audit.markup.digits import number, percent, percent_up, round_to_error
from canaryproof.verify.papers.records.convergence_record import ConvergenceSetting, EstimatorErrors, NormalDistances
from canaryproof.verify.papers.records.evidence import Series
from canaryproof.verify.papers.records.text_tables import Table, columns

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_WIDTH = 80
# The first screen has room for so many settings, and rows of estimators.
_MOST_SETTINGS, _MOST_ROWS = 3, 6
# From so many times ε on, an error is no longer printed in percent.
_MANY = 10.0
# The search for a number of canaries ends there.
_NONE = "No number of canaries up to 1e9"
# The estimator that Algorithm 1 prints.
PAPER = "fitted"


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class ConvergenceReport:
    """How near to ε Algorithm 1 comes at some d and k, and how fast that converges.

    Attributes
    ----------
    version
        Version that made it.
    delta, replicates, seed
        As asked.
    distances
        How far cosines are from normal, by dimension.
    settings
        Findings for each d, k and ε.
    orders
        Quantities along d or k, with the slope of their logarithms and that of the theorem.
    """

    version: str
    delta: float
    replicates: Count
    seed: Count
    distances: NonEmpty[NormalDistances]
    settings: NonEmpty[ConvergenceSetting]
    orders: tuple[Series, ...]

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with a row for each d, k, ε and estimator."""
        # Pandas takes a second to load.
        import pandas as pd

        return pd.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table as dictionaries."""
        return [
            {
                "dim": setting.dim,
                "canaries": setting.count,
                "epsilon": setting.epsilon,
                "noise_multiplier": setting.noise_multiplier,
                "delta": self.delta,
                **asdict(errors),
                "displaced_epsilon": setting.displaced_epsilon,
                "correlation": setting.correlation,
            }
            for setting in self.settings
            for errors in setting.estimators
        ]

    def to_json(self) -> dict[str, Any]:
        """Return everything in JSON's own types."""
        return {"answer": self.answer(), **to_document(self)}

    def plot(self) -> "Figure":
        """Draw how far off ε̂ is against k and against d."""
        # Loads matplotlib.
        from canaryproof.verify.papers.records.convergence_picture import accuracy

        return accuracy(self.first)

    @property
    def first(self) -> tuple[ConvergenceSetting, ...]:
        """The settings that the answer is about: the first d and k, and up to three ε."""
        head = self.settings[0]
        return tuple(each for each in self.settings if (each.dim, each.count) == (head.dim, head.count))[:3]

    @property
    def quantities(self) -> tuple[Series, ...]:
        """The first series of each quantity."""
        return tuple({row.quantity: row for row in reversed(self.orders)}.values())[::-1]

    def answer(self) -> str:
        """Return the answer in three sentences."""
        return " ".join((self._accuracy(), self._limit(), self._cost()))

    def _accuracy(self) -> str:
        head = self.first[0]
        within = [each.estimators[0].within for each in self.first]
        parts = [f"{_share(part)} ε = {number(each.epsilon)}" for part, each in zip(within, self.first, strict=True)]
        distance = "within" if max(within) < _MANY else "off by at most"
        little = ", and says little of it" if min(within) >= 1.0 else ""
        return (
            f"With d = {head.dim:,} and {head.count:,} canaries, ε̂ by {head.estimators[0].estimator} is {distance} "
            f"{enumeration(parts)} in 95 of 100 runs{little}{self._paper()}."
        )

    def _paper(self) -> str:
        """Say how near the paper's estimate comes, where the answer is about another one."""
        papers = [each for setting in self.first for each in setting.estimators[1:] if each.estimator == PAPER]
        parts = [_share(each.within).removesuffix(" of") for each in papers]
        return f"; by {PAPER}, the paper's estimate, it is {enumeration(parts)}" if parts else ""

    def _limit(self) -> str:
        """Say whether d or k is what limits the estimate, where d does most."""
        worst = max(self.first, key=lambda each: abs(each.displacement) / each.estimators[0].within)
        part = abs(worst.displacement) / worst.estimators[0].within
        at = f" at ε = {number(worst.epsilon)}" if len(self.first) > 1 else ""
        moved = f"{_change(worst.displacement)}{at}"
        if part < 0.1:
            return f"The number of canaries limits you, and not yet the dimension, which moves ε̂ by {moved}."
        if part < 0.5:
            return f"Chance limits you more than the dimension, which moves ε̂ by {moved}."
        return (
            f"The dimension limits you{at}: {worst.count:,} canaries lengthen a release of so few coordinates, so that "
            f"ε̂ tends to {number(worst.displaced_epsilon)} and not to {number(worst.epsilon)}."
        )

    def _cost(self) -> str:
        """Say how many canaries the best accuracy takes that some number of them reaches."""
        accuracies = sorted(needed.accuracy for needed in self.first[0].needed)
        counts_at = {
            accuracy: [
                next(needed.canaries for needed in setting.needed if needed.accuracy == accuracy)
                for setting in self.first
            ]
            for accuracy in accuracies
        }
        reached = next((accuracy for accuracy in accuracies if any(counts_at[accuracy])), None)
        dimensions = f"in {self.first[0].dim:,} dimensions"
        if reached is None:
            sentence = f"{_NONE} brings it within {percent_up(accuracies[-1])} {dimensions}"
        else:
            counts = enumeration([f"{round_up(size):,}" if size else "no number of" for size in counts_at[reached]])
            order = ", in this order" if len(self.first) > 1 else ""
            sentence = f"it takes {counts} canaries to be within {percent_up(reached)}{order}"
            if reached > accuracies[0]:
                next_best = max(accuracy for accuracy in accuracies if accuracy < reached)
                sentence = f"{_NONE} brings it within {percent_up(next_best)} {dimensions}; {sentence}"
        return f"{sentence[0].upper()}{sentence[1:]}{self._without_others()}."

    def _without_others(self) -> str:
        """Say how many canaries do where these are not in each other's scores, at the best accuracy that they reach."""
        for i in range(len(self.first[0].needed)):
            row = [sorted(each.needed, key=lambda size: size.accuracy)[i] for each in self.first]
            least = [each.orthonormal for each in row]
            if all(least):
                counts = enumeration([f"{round_up(size):,}" for size in least if size])
                return (
                    "; if canaries are orthonormal, or the others are taken out of each score, as an audit of a "
                    f"release does, {counts} bring it within {percent_up(row[0].accuracy)}"
                )
        return ""

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Return the report in words: the answer, and what is behind it in tables of 80 columns."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from textwrap.wrap(self.answer(), _WIDTH)
        yield ""
        for title, header, rows in tables(self, brief=True):
            yield title
            yield from columns(header, rows, _TEXT)
        if tables(self) != tables(self, brief=True):
            yield "All rows are on the page, which the same command with --out DIR writes."
        if any(not row.slope_interval[0] <= row.proven_slope <= row.slope_interval[1] for row in self.orders):
            yield from textwrap.wrap(_BENT, _WIDTH, initial_indent="Slopes ", subsequent_indent="       ")
        yield from textwrap.wrap(MEANING, _WIDTH, initial_indent="Means  ", subsequent_indent="       ")


_BENT = (
    "A theorem's slope is that of large d and k, with k small against d. Where a measured one differs, these d and k "
    "are not there yet."
)
MEANING = (
    "ε̂ is of an attacker who knows one canary alone and scores it by its cosine with the release, as Algorithm 1 "
    "prints. The release is noise and canaries, without others' data. The answer has the first estimator's errors: "
    "adaptive is the one of audits, fitted the paper's; covers: how often a 95% interval has ε."
)


def tables(report: ConvergenceReport, *, brief: bool = False) -> list[Table]:
    """Lay out what is behind the answer; ``brief`` leaves out rows that the first screen has no room for."""
    if brief:
        settings = report.settings[:_MOST_SETTINGS]
        each = _MOST_ROWS // len(settings)
        report = replace(
            report,
            settings=tuple(replace(setting, estimators=setting.estimators[:each]) for setting in settings),
            orders=report.quantities,
        )
    return [estimates(report), sizes(report), laws(report), orders(report)]


def estimates(report: ConvergenceReport) -> Table:
    """Lay out the errors of the estimators."""
    title = f"Estimates of {report.replicates:,} runs each, δ = {report.delta:g} (limit: of √k·RMSE, by Theorem 3.3)"
    header = [*_where(report), "estimator", "within", "bias", "deviation", "covers", "√k·RMSE", "limit"]
    pairs = [(setting, errors) for setting in report.settings for errors in setting.estimators]
    return title, header, [_estimate(report, *pair) for pair in pairs]


def _estimate(report: ConvergenceReport, setting: ConvergenceSetting, errors: EstimatorErrors) -> list[str]:
    constant_error = errors.constant / math.sqrt(2.0 * errors.runs)
    return [
        *_coordinates(report, setting),
        errors.estimator,
        _share(errors.within).removesuffix(" of"),
        round_to_error(errors.bias, errors.bias_error),
        number(errors.deviation),
        percent(round(errors.coverage, 3)),
        round_to_error(errors.constant, constant_error),
        number(errors.limit_constant),
    ]


def sizes(report: ConvergenceReport) -> Table:
    """Lay out the sizes that accuracies take."""
    accuracies = [percent_up(needed.accuracy) for needed in report.settings[0].needed]
    name = report.settings[0].estimators[0].estimator
    title = f"k that brings {name} so near in 95 of 100 runs, and d from which on (–: none)"
    header = [*_where(report), *(f"k for {each}" for each in accuracies), *(f"d for {each}" for each in accuracies)]
    rows = [
        [
            *_coordinates(report, setting),
            *(_size(needed.canaries) for needed in setting.needed),
            *(_size(needed.dim) for needed in setting.needed),
        ]
        for setting in report.settings
    ]
    return title, header, rows


def _size(size: int | None) -> str:
    return "–" if size is None else f"{round_up(size):,}"


def laws(report: ConvergenceReport) -> Table:
    """Lay out how far from normal, how dependent and how displaced the scores are."""
    title = "Scores: total variation distance from normal, error of the tail that decides δ"
    header = [*_where(report), "distance", "proven", "tail", "correlation", "d moves ε̂", "orthonormal"]
    by_dim = {each.dim: each for each in report.distances}
    rows = []
    for setting in report.settings:
        law = by_dim[setting.dim]
        orthonormal = setting.orthonormal_error
        change = "–" if orthonormal is None else f"error × {orthonormal / setting.independent_error:.3g}"
        rows.append(
            [
                *_coordinates(report, setting),
                f"{law.total_variation[1]:.2e}",
                f"{law.total_variation_bound:.2e}",
                "–" if setting.tail_error is None else _change(setting.tail_error[0]),
                f"{setting.correlation:.1e}",
                _change(setting.displacement),
                change,
            ]
        )
    return title, header, rows


def orders(report: ConvergenceReport) -> Table:
    """Lay out measured orders of convergence and the theorems'."""
    title = "Orders: measured slopes of logarithms, 95% intervals, and the theorems' slopes"
    rows = []
    for row in report.orders:
        low, high = row.slope_interval
        half = 0.5 * (high - low)
        slope, error = (round_to_error(value, half) for value in (row.fitted_slope, half))
        rows.append([row.title, row.axis, f"{slope} ± {error}", f"{row.proven_slope:g}"])
    return title, ["quantity", "in", "slope", "theorem"], rows


def _where(report: ConvergenceReport) -> list[str]:
    """Return the header of the columns that tell settings apart."""
    differ: tuple[tuple[str, Callable[[ConvergenceSetting], float]], ...] = (
        ("d", lambda each: each.dim),
        ("k", lambda each: each.count),
        ("ε", lambda each: each.epsilon),
    )
    return [name for name, value in differ if len(set(map(value, report.settings))) > 1]


def _coordinates(report: ConvergenceReport, setting: ConvergenceSetting) -> list[str]:
    values = {"d": f"{setting.dim:,}", "k": f"{setting.count:,}", "ε": number(setting.epsilon)}
    return [values[name] for name in _where(report)]


_TEXT = ("estimator", "quantity", "in")


def round_up(size: int) -> int:
    """Return a size rounded up to two digits."""
    unit: int = 10 ** max(0, len(str(size)) - 2)
    return -(-size // unit) * unit


def _share(value: float) -> str:
    """Write an error as a share of ε, or as a multiple of it, rounded up."""
    return f"{percent_up(value)} of" if value < _MANY else f"{percent_up(0.01 * value)[:-1]} times"


def _change(value: float) -> str:
    sign = "-" if value < 0.0 else "+"
    return f"{sign}{number(100.0 * abs(value), 2)}%"


def enumeration(parts: Sequence[str]) -> str:
    """Join parts in a sentence."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
