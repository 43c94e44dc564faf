"""Scores in a file of any form, for every command that takes some: ``audit``, ``review`` and ``check-report``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from canaryproof.verify.audit.canaries.scores import Scores, of_document
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.other_results import OtherResult, read_result
from canaryproof.verify.audit.files.reading import ScoreKind, read_json

# Fields of ``Scores`` that a caller may give, with what they are where nobody says it.
UNASKED: dict[str, Any] = {
    "kind": None,
    "dim": None,
    "inclusion": "fixed",
    "neighbours": "add-or-remove",
    "inserted": None,
}
ONE_KIND = "unobserved: is needed for a review; without it, only audit reads cosines, with their dimension"
# Names of a table's columns, as arguments of ``read_result``.
COLUMNS = ("score", "member", "id_column")


def read_any_scores(
    path: Path, given: Mapping[str, Any], columns: Mapping[str, str | None], unobserved: Path | None = None
) -> tuple[Scores | None, OtherResult]:
    """Return the scores in a file, and all that it has; the scores are None where it has counts of guesses or sizes.

    Parameters
    ----------
    path, unobserved
        The file, and a second one with the scores of canaries that did not take part.
    given
        Fields of ``UNASKED``, without ``dim`` where both kinds of scores are needed; a file that ``Scores.save`` wrote
        says them itself.
    columns
        Names of columns, by ``COLUMNS``.

    Raises
    ------
    InputError
        If a file cannot be read or breaks a rule.
    ValueError
        If an argument breaks a rule, which names it.
    """
    if (columns.get("score") is None) != (columns.get("member") is None):
        raise ValueError("score: must be given with member, and member with score")
    for name in COLUMNS:
        if unobserved is not None and columns.get(name) is not None:
            option = name.removesuffix("_column")
            raise ValueError(f"unobserved: must not be given with {option}, which is for a file of both kinds")
    document = read_json(path) if path.suffix.lower() == ".json" and unobserved is None else None
    if not isinstance(document, dict) or "format" not in document:
        kind = None if given["kind"] is None else ScoreKind(given["kind"])
        result = read_result(path, **columns, kind=kind, unobserved=unobserved)
        return scores_of(result, given, path), result
    for name in COLUMNS:
        if columns.get(name) is not None:
            raise ValueError(f"{name.removesuffix('_column')}: must not be given with {path}, which has no columns")
    scores = of_document(path, document)
    for name, value in given.items():
        if value not in (UNASKED[name], getattr(scores, name)):
            raise ValueError(f"{name}: must not be given with {path}, which says it")
    sizes = None if scores.unobserved is None else (len(scores.observed), len(scores.unobserved))
    return scores, OtherResult("saved scores", sizes=sizes)


def scores_of(result: OtherResult, given: Mapping[str, Any], path: Path | None = None) -> Scores | None:
    """Return the scores of a result, checked; an ``InputError`` names the file that they are of, if it is given.

    Without ``dim`` among the fields there must be scores of both kinds.
    """
    read = result.scores
    if read is None:
        return None
    try:
        if read.unobserved is None and result.kind == ScoreKind.COSINE and "dim" not in given:
            raise ValueError(ONE_KIND)
        return Scores(read.observed, read.unobserved, **{**given, "kind": result.kind})
    except ValueError as error:
        if path is None:
            raise
        raise InputError(f"{path}: {error}") from error
