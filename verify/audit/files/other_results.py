"""Reading what other auditing tools leave: scores with labels, counts of guesses, or summaries.

jax_privacy 2.0 and PrivacyGuard write no file of their own: a user saves their arguments and results under the names
that they have there. memaudit 0.1 writes ``memaudit-report.json``. One-run audits after Steinke, Nasr and Jagielski
(arXiv 2305.08846) keep numbers m of canaries, r of guesses and v of right ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from canaryproof.verify.audit import rules
from canaryproof.verify.audit.files.reading import (
    LARGEST_COUNT,
    LARGEST_DOCUMENT,
    LabelledTable,
    ScoreColumns,
    ScoreKind,
    checked_scores,
    content,
    labelled_scores,
    open_file,
    parsed_json,
    parsed_number,
    read_scores,
    read_table,
    table_of,
)
from canaryproof.verify.audit.rules import NumberRange, shorten

if TYPE_CHECKING:
    import pandas as pd

# Names of columns and fields, the shortest of each kind first.
_SCORE = ("score", "scores")
_MEMBER = ("member", "is_member", "membership", "included")
_PAIRS = (
    *(("observed", "unobserved"), ("in_canary_scores", "out_canary_scores"), ("in", "out"), ("train", "test")),
    *(("member", "nonmember"), ("members", "nonmembers"), ("loss_train", "loss_test"), ("train_loss", "test_loss")),
)
_CANARIES = ("m", "canaries", "n_canaries", "num_canaries")
_GUESSES = ("r", "guesses", "n_guess", "n_guesses", "num_guesses", "c_cap")
_RIGHT = ("v", "right", "n_correct", "num_correct", "correct_guesses", "c")
_EPSILON = ("epsilon", "eps", "eps_lb")
_KNOWN = {*_SCORE, *_MEMBER, *chain.from_iterable(_PAIRS), *_CANARIES, *_GUESSES, *_RIGHT, *_EPSILON, "delta"}
_EXPECTED = (
    "columns score and member, or others that are given by name; or a column of each kind, as in and out, train and "
    "test, or observed and unobserved; or counts m, r and v of canaries, guesses and right guesses; or memaudit's "
    "report, or data_size of PrivacyGuard's AnalysisNode"
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
        Scores of members and of others; None if there are none.
    counts
        Counts of guesses, a row each.
    sizes
        Numbers of members and of others; None without scores and where a summary does not have them.
    reported
        ε and δ of each line that reports them.
    remarks
        What the form means for the result.
    """

    form: str
    scores: ScoreColumns | None = None
    counts: tuple[GuessCount, ...] = ()
    sizes: tuple[int, int] | None = None
    reported: tuple[ReportedEpsilon, ...] = ()
    remarks: tuple[str, ...] = ()


def read_result(
    path: Path, score: str | None = None, member: str | None = None, id_column: str | None = None
) -> OtherResult:
    """Read a result of another tool.

    Parameters
    ----------
    path
        A ``.csv`` or ``.parquet`` table with a header, a ``.json`` document, or an ``.npz`` as audits read it.
    score, member
        Names of the columns with scores and with labels; by default the known ones.
    id_column
        Name of the column that says which canary a line is about, which has the mean of its lines' scores then.

    Returns
    -------
    The result.

    Raises
    ------
    InputError
        If the file cannot be read, has none of the known forms, or breaks a rule.
    """
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _of_scores("scores of both kinds", read_scores(path, ScoreKind.ANY))
    with open_file(path, (".csv", ".npz", ".parquet", ".json")) as file:
        if suffix == ".json":
            return _of_document(parsed_json(content(file, LARGEST_DOCUMENT)), score, member, id_column)
        needed = _KNOWN | {score or "", member or "", id_column or ""}
        return of_table(read_table(file, suffix == ".parquet", needed), score, member, id_column)


def read_known_columns(path: Path, kind: ScoreKind) -> ScoreColumns | None:
    """Read the scores of a ``.csv`` or ``.parquet`` table whose columns have one of the known pairs of names.

    None says that it has none, or those of ``read_scores``. An InputError says that the file breaks a rule.
    """
    with open_file(path, (".csv", ".parquet")) as file:
        parquet = path.suffix.lower() == ".parquet"
        if not parquet:
            # A file of numbers alone may have millions of lines.
            head = file.readline(_LONGEST_HEAD).decode("utf-8-sig", errors="replace").split(",")
            if _known_form({name.strip() for name in head}, _PAIRS[1:]) is None:
                return None
            file.seek(0)
        table = read_table(file, parquet, _KNOWN)
        form = _known_form(set(table.names), _PAIRS if parquet else _PAIRS[1:])
        if form is None:
            return None
        if form in _PAIRS:
            return ScoreColumns(*(_scores(table, name, kind) for name in form))
        return labelled_scores(table, *form, kind)


def _known_form(names: set[str], pairs: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Return the columns of scores and of labels, or of both kinds of scores."""
    score, member = _first_alias(list(names), _SCORE), _first_alias(list(names), _MEMBER)
    if score is not None and member is not None:
        return score, member
    return next((pair for pair in pairs if set(pair) <= names), None)


def of_frame(
    frame: "pd.DataFrame", score: str | None = None, member: str | None = None, id_column: str | None = None
) -> OtherResult:
    """Return the result that a pandas DataFrame holds; a ``ValueError`` of one line says that it has no known form."""
    return of_table(table_of(frame), score, member, id_column)


def of_table(table: LabelledTable, score: str | None, member: str | None, id_column: str | None = None) -> OtherResult:
    """Return the result that a table holds; a ``ValueError`` of one line says that it has no known form."""
    names = table.names
    reported: dict[str, Any] = {"reported": _lines_with_epsilon(table)}
    columns = score or _first_alias(names, _SCORE), member or _first_alias(names, _MEMBER)
    pair = next((pair for pair in _PAIRS if set(pair) <= set(names)), None)
    counted = [_first_alias(names, aliases) for aliases in (_CANARIES, _GUESSES, _RIGHT)]
    if all(columns) or score or member:
        labelled = labelled_scores(table, columns[0] or _SCORE[0], columns[1] or _MEMBER[0], ScoreKind.ANY, id_column)
        return _of_scores("scores with labels", labelled, **reported)
    if id_column is not None:
        raise ValueError(f"{id_column}: must stand next to columns of scores and labels")
    if pair is not None:
        scores = ScoreColumns(*(_scores(table, name) for name in pair))
        return _of_scores("scores of both kinds", scores, **reported)
    if all(counted):
        return OtherResult("counts of guesses", counts=_counts(table, [name or "" for name in counted]), **reported)
    listed = shorten(", ".join(names), 200)
    raise ValueError(f"must have {_EXPECTED}; it has {listed}")


def _of_scores(form: str, scores: ScoreColumns, **others: Any) -> OtherResult:
    if scores.unobserved is None:
        raise ValueError("must have scores of canaries that did not take part too")
    return OtherResult(form, scores, sizes=(len(scores.observed), len(scores.unobserved)), **others)


def _first_alias(names: Sequence[str], aliases: Sequence[str]) -> str | None:
    """Return the first of some names that is there."""
    return next((name for name in aliases if name in names), None)


def _nonempty_cells(table: LabelledTable, name: str) -> list[tuple[str, str]]:
    """Return the cells of a column that are not empty, each with its position."""
    cells = enumerate(table.cells(name))
    return [(table.position(row), cell) for row, cell in cells if cell.strip() not in ("", "nan", "None", "<NA>")]


def _scores(
    table: LabelledTable, name: str, kind: ScoreKind = ScoreKind.ANY
) -> "np.ndarray[Any, np.dtype[np.float64]]":
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
    for row, cells in enumerate(zip(*(table.cells(name) for name in names), strict=True)):
        position = table.position(row)
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


def _of_document(document: object, score: str | None, member: str | None, id_column: str | None) -> OtherResult:
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
    return of_table(_table(rows), score, member, id_column)


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
            raise ValueError(f"{field}.scores.headline_score: must be a number, not {rules.short_repr(value)}")
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
    return _of_scores("memaudit's report", ScoreColumns(observed, unobserved), remarks=tuple(remarks))


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
