"""Reading scores in tables, and what else auditing tools leave: rates, counts of guesses, or summaries.

jax_privacy 2.0 and PrivacyGuard write no file of their own: a user saves their arguments and results under the names
that they have there. memaudit 0.1 writes ``memaudit-report.json``. One-run audits after Steinke, Nasr and Jagielski
(arXiv 2305.08846) keep numbers m of canaries, r of guesses and v of right ones.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from canaryproof.kernels.arrays import Array
from canaryproof.kernels.refusals import short_repr, shorten
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import (
    LARGEST_COUNT,
    LARGEST_DOCUMENT,
    OWN_NAMES,
    PAIRS,
    LabelledTable,
    ScoreColumns,
    ScoreKind,
    array_names,
    checked_scores,
    content,
    is_number,
    labelled_scores,
    open_file,
    parsed_json,
    parsed_number,
    read_scores,
    read_table,
    table_of,
)
from canaryproof.verify.audit.rules import NumberRange

if TYPE_CHECKING:
    import pandas as pd

# Names of columns and fields, the shortest of each kind first.
_SCORE = ("score", "scores")
_MEMBER = ("member", "is_member", "membership", "included")
# Counts of a confusion matrix: members and others above the threshold, and below it.
_MATRIX = (("tp", "true_positives"), ("fp", "false_positives"), ("fn", "false_negatives"), ("tn", "true_negatives"))
_RATES = (("tpr", "true_positive_rate"), ("fpr", "false_positive_rate"))
_SIZES = (
    ("members", "n_members", "positives", "train_size"),
    ("others", "nonmembers", "n_nonmembers", "negatives", "test_size"),
)
_CANARIES = ("m", "canaries", "n_canaries", "num_canaries")
_GUESSES = ("r", "guesses", "n_guess", "n_guesses", "num_guesses", "c_cap")
_RIGHT = ("v", "right", "n_correct", "num_correct", "correct_guesses", "c")
_EPSILON = ("epsilon", "eps", "eps_lb")
_KNOWN = {
    *(*_SCORE, *_MEMBER, *chain.from_iterable((*PAIRS, *_MATRIX, *_RATES, *_SIZES))),
    *(*_CANARIES, *_GUESSES, *_RIGHT, *_EPSILON, "delta"),
}
_EXPECTED = (
    "columns score and member, or others that are given by name; or a column of each kind, as in and out, train and "
    "test, or observed and unobserved; or counts tp, fp, fn and tn; or rates fpr and tpr with the numbers of members "
    "and others; or counts m, r and v of canaries, guesses and right guesses; or memaudit's report, or data_size of "
    "PrivacyGuard's AnalysisNode"
)
# Bytes of a table's first line.
_LONGEST_HEAD = 10_000
_COUNT = NumberRange(f"be a whole number from 1 to {LARGEST_COUNT}", 1, LARGEST_COUNT, whole=True)


@dataclass(frozen=True)
class GuessCount:
    """Counts of one way to guess: m canaries, r guesses, and v of them right."""

    canaries: int
    guesses: int
    right: int


@dataclass(frozen=True)
class ReportedEpsilon:
    """ε and δ of a line; None where it has none."""

    epsilon: float | None
    delta: float | None


@dataclass(frozen=True, eq=False)
class OtherResult:
    """The result of an audit by another tool.

    Attributes
    ----------
    form
        Name of the form in which it was.
    scores
        Scores of members and, if it has them, of others; None if there are none. Of rates and of counts of a confusion
        matrix they are ranks that have these counts at as many thresholds.
    kind
        What the scores are, as given or by default.
    counts
        Counts of guesses, a row each.
    sizes
        Numbers of members and of others; None without scores and where a summary does not have them.
    reported
        ε and δ of each line that reports them.
    remarks
        What the form means for the result.
    repetitions
        How often a canary is in the data, at most.
    """

    form: str
    scores: ScoreColumns | None = None
    kind: ScoreKind = ScoreKind.ANY
    counts: tuple[GuessCount, ...] = ()
    sizes: tuple[int, int] | None = None
    reported: tuple[ReportedEpsilon, ...] = ()
    remarks: tuple[str, ...] = ()
    repetitions: int = 1


def read_result(
    path: Path,
    score: str | None = None,
    member: str | None = None,
    id_column: str | None = None,
    kind: ScoreKind | None = None,
    unobserved: Path | None = None,
) -> OtherResult:
    """Read scores, or a result of another tool.

    Parameters
    ----------
    path
        A ``.csv`` or ``.parquet`` table with a header, a ``.json`` document, or what ``read_scores`` reads.
    score, member
        Names of the columns with scores and with labels; by default the known ones.
    id_column
        Name of the column that says which canary a line is about, which has the mean of its lines' scores then.
    kind
        What the scores are. By default they are cosines under this package's own names ``observed`` and ``unobserved``
        and without a name, and scores of any kind in all other forms.
    unobserved
        A second file with the scores of canaries that did not take part, if ``path`` has the others' alone.

    Returns
    -------
    The result.

    Raises
    ------
    InputError
        If a file cannot be read, has none of the known forms, or breaks a rule.
    """
    if unobserved is not None:
        groups = [_one_kind(each, kind or ScoreKind.COSINE) for each in (path, unobserved)]
        return _of_scores("scores in two files", ScoreColumns(*groups), kind or ScoreKind.COSINE)
    if path.suffix.lower() == ".json":
        with open_file(path) as file:
            return _of_document(parsed_json(content(file, LARGEST_DOCUMENT)), score, member, id_column, kind)
    own = None if score or member or id_column else _own_names(path)
    if own is not None:
        chosen = kind or _usual_kind(own)
        return _of_scores("scores of both kinds", read_scores(path, chosen), chosen)
    with open_file(path, (".npy", ".npz", ".csv", ".parquet", ".json")) as file:
        needed = _KNOWN | {score or "", member or "", id_column or ""}
        return of_table(read_table(file, path.suffix.lower() == ".parquet", needed), score, member, id_column, kind)


def _one_kind(path: Path, kind: ScoreKind) -> Array:
    scores = read_scores(path, kind)
    if scores.unobserved is not None:
        raise InputError(f"{path}: must have scores of one kind alone, next to another file")
    return scores.observed


def _own_names(path: Path) -> set[str] | None:
    """Return the names in an array, an archive, or text of numbers alone or of our own names; else None."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return array_names(path)
    if suffix != ".csv":
        return set(OWN_NAMES) if suffix == ".npy" else None
    with open_file(path) as file:
        # A file of numbers alone may have millions of lines.
        head = file.readline(_LONGEST_HEAD).decode("utf-8-sig", errors="replace").split(",")
    names = {name.strip() for name in head}
    nameless = any(map(is_number, names)) or (len(head) == 1 and not names & _KNOWN)
    return set(OWN_NAMES) if nameless or names <= set(OWN_NAMES) else None


def _usual_kind(names: Collection[str]) -> ScoreKind:
    """Return what scores under some names are where nobody says it."""
    return ScoreKind.COSINE if OWN_NAMES[0] in names else ScoreKind.ANY


def of_frame(
    frame: "pd.DataFrame",
    score: str | None = None,
    member: str | None = None,
    id_column: str | None = None,
    kind: ScoreKind | None = None,
) -> OtherResult:
    """Return the result that a pandas DataFrame holds; a ``ValueError`` of one line says that it has no known form."""
    return of_table(table_of(frame), score, member, id_column, kind)


def of_table(
    table: LabelledTable,
    score: str | None,
    member: str | None,
    id_column: str | None = None,
    kind: ScoreKind | None = None,
) -> OtherResult:
    """Return the result that a table holds; a ``ValueError`` of one line says that it has no known form."""
    names = table.names
    columns = score or _first_alias(names, _SCORE), member or _first_alias(names, _MEMBER)
    pair = next((pair for pair in PAIRS if set(pair) <= set(names)), None)
    matrix, rates, sizes, counted = (
        [name for aliases in each if (name := _first_alias(names, aliases)) is not None]
        for each in (_MATRIX, _RATES, _SIZES, (_CANARIES, _GUESSES, _RIGHT))
    )
    reported: dict[str, Any] = {"reported": _lines_with_epsilon(table)}
    if all(columns) or score or member:
        chosen = kind or ScoreKind.ANY
        labelled = labelled_scores(table, columns[0] or _SCORE[0], columns[1] or _MEMBER[0], chosen, id_column)
        return _of_scores("scores with labels", labelled, chosen, **reported)
    if id_column is not None:
        raise ValueError(f"{id_column}: must stand next to columns of scores and labels")
    is_matrix = len(matrix) == len(_MATRIX)
    if is_matrix or len(rates) == len(_RATES):
        form = "counts of a confusion matrix" if is_matrix else "false and true positive rates"
        if kind is ScoreKind.COSINE:
            raise ValueError(f"must have cosines, and has {form}, of kind any")
        if not is_matrix and len(sizes) < len(_SIZES):
            raise ValueError("must have columns members and others, the numbers that the rates are of")
        points = _matrix_points(table, matrix) if is_matrix else _rate_points(table, rates, sizes)
        return _of_scores(form, _scores_at(points), ScoreKind.ANY, **reported)
    if pair is not None:
        chosen = kind or _usual_kind(pair)
        scores = ScoreColumns(*(_scores(table, name, chosen) for name in pair))
        return _of_scores("scores of both kinds", scores, chosen, **reported)
    if len(counted) == len((_CANARIES, _GUESSES, _RIGHT)):
        return OtherResult("counts of guesses", counts=_counts(table, counted), **reported)
    listed = shorten(", ".join(names), 200)
    raise ValueError(f"must have {_EXPECTED}; it has {listed}")


def _of_scores(form: str, scores: ScoreColumns, kind: ScoreKind, **others: Any) -> OtherResult:
    sizes = None if scores.unobserved is None else (len(scores.observed), len(scores.unobserved))
    return OtherResult(form, scores, kind, sizes=sizes, **others)


@dataclass(frozen=True)
class _Point:
    """Numbers of members and others at or above a threshold, of all of each, and where a table says so."""

    hits: int
    alarms: int
    sizes: tuple[int, int]
    position: str


def _matrix_points(table: LabelledTable, names: Sequence[str]) -> list[_Point]:
    """Return the thresholds of a table with a confusion matrix in each line."""
    count = NumberRange(f"be a whole number from 0 to {LARGEST_COUNT}", 0, LARGEST_COUNT, whole=True)
    points = []
    for position, cells in _rows_of(table, names):
        values = [parsed_number(name, position, cell) for name, cell in zip(names, cells, strict=True)]
        hits, alarms, misses, quiet = (
            int(count.number(f"{position}: {name}", value)) for name, value in zip(names, values, strict=True)
        )
        points.append(_Point(hits, alarms, (hits + misses, alarms + quiet), position))
    return points


def _rate_points(table: LabelledTable, rates: Sequence[str], sizes: Sequence[str]) -> list[_Point]:
    """Return the thresholds of a table with both rates in each line, and of how many members and others they are."""
    totals = [_constant(table, name) for name in sizes]
    rows = list(_rows_of(table, rates))
    # Most writers print each number as short as it can be, so that the longest one shows how many digits there are.
    units = [10.0 ** -max((_decimals(cells[i]) for _, cells in rows), default=0) for i in range(2)]
    points = []
    for position, cells in rows:
        hits, alarms = (_count_of(*each) for each in zip(rates, [position] * 2, cells, totals, units, strict=True))
        points.append(_Point(hits, alarms, (totals[0], totals[1]), position))
    return points


def _constant(table: LabelledTable, name: str) -> int:
    """Return the one number of a column, which may stand in its first line alone."""
    cells = _nonempty_cells(table, name)
    values = {
        int(_COUNT.number(f"{name}, {position}", parsed_number(name, position, cell))) for position, cell in cells
    }
    if len(values) != 1:
        raise ValueError(f"{name}: must have one number in all lines")
    return values.pop()


def _rows_of(table: LabelledTable, names: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for row, cells in enumerate(zip(*(table.cells(name) for name in names), strict=True)):
        yield table.position(row), cells


def _decimals(cell: str) -> int:
    mantissa, _, exponent = cell.strip().lower().partition("e")
    return len(mantissa.partition(".")[2]) - (int(exponent) if exponent.lstrip("+-").isdecimal() else 0)


def _count_of(name: str, position: str, cell: str, total: int, unit: float) -> int:
    """Return how many of a total a printed rate is; a ``ValueError`` says that it is none, or could be several."""
    rate = NumberRange("be a number from 0 to 1", 0.0, 1.0).number(
        f"{position}: {name}", parsed_number(name, position, cell)
    )
    slack = 1e-9 * total + 1e-6
    low, high = (rate - 0.5 * unit) * total - slack, (rate + 0.5 * unit) * total + slack
    least, most = max(0, math.ceil(low)), min(total, math.floor(high))
    if least > most:
        raise ValueError(f"{position}: {name}: must be a share of {total:,}, and {cell.strip()} is none")
    if least < most and rate not in (0.0, 1.0):
        raise ValueError(
            f"{position}: {name}: must have more digits, as {cell.strip()} may be {least:,} to {most:,} of {total:,}"
        )
    return round(rate * total)


def _scores_at(points: Sequence[_Point]) -> ScoreColumns:
    """Return scores that have a table's counts at its thresholds: the number of thresholds that each one reaches."""
    if not points:
        raise ValueError("must have at least one line")
    if other := next((point for point in points if point.sizes != points[0].sizes), None):
        raise ValueError(f"{other.position}: must be of as many members and others as the first line")
    ordered = sorted(points, key=lambda point: (point.alarms, point.hits))
    for before, after in pairwise(ordered):
        if after.hits < before.hits:
            raise ValueError(
                f"{after.position}: must have at least {before.hits:,} members above its threshold, as many as "
                f"{before.position} has with no more others"
            )
    reached = np.arange(len(ordered) + 1.0)[::-1]
    members, others = points[0].sizes
    groups = {
        "members": np.repeat(reached, np.diff([0, *(each.hits for each in ordered), members])),
        "others": np.repeat(reached, np.diff([0, *(each.alarms for each in ordered), others])),
    }
    return ScoreColumns(*(checked_scores(name, values, ScoreKind.ANY) for name, values in groups.items()))


def _first_alias(names: Sequence[str], aliases: Sequence[str]) -> str | None:
    """Return the first of some names that is there."""
    return next((name for name in aliases if name in names), None)


def _nonempty_cells(table: LabelledTable, name: str) -> list[tuple[str, str]]:
    """Return the cells of a column that are not empty, each with its position."""
    cells = enumerate(table.cells(name))
    return [(table.position(row), cell) for row, cell in cells if cell.strip() not in ("", "nan", "None", "<NA>")]


def _scores(table: LabelledTable, name: str, kind: ScoreKind) -> Array:
    cells = _nonempty_cells(table, name)
    values = np.array([parsed_number(name, position, cell) for position, cell in cells], dtype=np.float64)
    return checked_scores(name, values, kind, lambda i: f"{name}, {cells[i][0]}")


def _lines_with_epsilon(table: LabelledTable) -> tuple[ReportedEpsilon, ...]:
    """Return ε and δ of each line that has one of them."""
    lines: dict[str, dict[str, float]] = {}
    for field, aliases in (("epsilon", _EPSILON), ("delta", ("delta",))):
        if (name := _first_alias(table.names, aliases)) is not None:
            for position, cell in _nonempty_cells(table, name):
                lines.setdefault(position, {})[field] = parsed_number(name, position, cell)
    return tuple(dict.fromkeys(ReportedEpsilon(line.get("epsilon"), line.get("delta")) for line in lines.values()))


def _counts(table: LabelledTable, names: Sequence[str]) -> tuple[GuessCount, ...]:
    rows = []
    for position, cells in _rows_of(table, names):
        values = [parsed_number(name, position, cell) for name, cell in zip(names, cells, strict=True)]
        try:
            rows.append(_check_count(names, values))
        except ValueError as error:
            raise ValueError(f"{position}: {error}") from None
    if not rows:
        raise ValueError("must have at least one line of counts")
    # A line for each δ may repeat what was counted.
    return tuple(dict.fromkeys(rows))


def _check_count(names: Sequence[str], values: Sequence[float]) -> GuessCount:
    canaries, guesses = (int(_COUNT.number(name, value)) for name, value in zip(names[:2], values[:2], strict=True))
    if guesses > canaries:
        raise ValueError(f"{names[1]}: must be at most {names[0]} = {canaries}, not {guesses}")
    right = NumberRange(f"be a whole number from 0 to {names[1]} = {guesses}", 0, guesses, whole=True)
    return GuessCount(canaries, guesses, int(right.number(names[2], values[2])))


def _of_document(
    document: object,
    score: str | None,
    member: str | None,
    id_column: str | None,
    kind: ScoreKind | None,
) -> OtherResult:
    if isinstance(document, Mapping) and id_column is None:
        if isinstance(document.get("per_canary"), list):
            return _memaudit(document)
        if isinstance(document.get("data_size"), Mapping):
            return _analysis_node(document)
    if isinstance(document, Mapping):
        lists = {name: value for name, value in document.items() if isinstance(value, list)}
        rows: Any = {name: value if name in lists else [value] for name, value in document.items()}
    else:
        rows = document
    return of_table(_table(rows), score, member, id_column, kind)


def _table(rows: Any) -> LabelledTable:
    import pandas as pd

    try:
        frame = pd.DataFrame(
            {name: pd.Series(cells, dtype=object) for name, cells in rows.items()}
            if isinstance(rows, Mapping)
            else rows
        )
    except Exception as error:
        # Pandas has no closed list of exceptions.
        raise ValueError(f"must have {_EXPECTED}; it is no table") from error
    return table_of(frame)


def _memaudit(report: Mapping[str, Any]) -> OtherResult:
    """Return the scores of memaudit's report: its headline score for each inserted canary and each control."""
    groups: dict[bool, list[float]] = {True: [], False: []}
    repetitions = 1
    for i, canary in enumerate(report["per_canary"]):
        field = f"per_canary[{i}]"
        if not isinstance(canary, Mapping) or not isinstance(canary.get("included"), bool):
            raise ValueError(f"{field}.included: must be true or false")
        scores = canary.get("scores")
        value = scores.get("headline_score") if isinstance(scores, Mapping) else None
        # A canary that could not be scored has no number.
        if value is None:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError(f"{field}.scores.headline_score: must be a number, not {short_repr(value)}")
        groups[canary["included"]].append(float(value))
        times = canary.get("repetitions")
        if canary["included"] and isinstance(times, int):
            repetitions = max(repetitions, times)
    observed, unobserved = (
        checked_scores(name, np.array(groups[included]), ScoreKind.ANY)
        for name, included in (("canaries that are included", True), ("canaries that are not", False))
    )
    remarks = ["memaudit reports rates of detection, and no ε"]
    if repetitions > 1:
        remarks.append(
            f"canaries are in the data up to {repetitions} times: the bound is for {repetitions} equal records "
            f"together, whose ε may be {repetitions} times that of one"
        )
    scores = ScoreColumns(observed, unobserved)
    return _of_scores("memaudit's report", scores, ScoreKind.ANY, remarks=tuple(remarks), repetitions=repetitions)


def _analysis_node(output: Mapping[str, Any]) -> OtherResult:
    """Return the sizes and ε of an ``AnalysisNodeOutput`` of PrivacyGuard, which has no scores."""
    names = ("train_size", "test_size")
    sizes = [int(_COUNT.number(f"data_size.{name}", output["data_size"].get(name))) for name in names]
    name = _first_alias(list(output), ("eps", "eps_lb", "eps_cp"))
    value = output.get(name or "")
    epsilon = None if value is None else NumberRange("be a number from 0", 0.0, np.inf).number(str(name), value)
    remarks = (
        "eps is the upper end of a bootstrap interval at a true positive rate of 1%, unless use_upper_bound is false: "
        "an estimate, and no lower bound",
    )
    return OtherResult(
        "PrivacyGuard's AnalysisNodeOutput",
        sizes=(sizes[0], sizes[1]),
        reported=(ReportedEpsilon(epsilon, None),),
        remarks=remarks,
    )
