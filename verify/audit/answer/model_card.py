"""An audit's part of a model card: facts of its record, and what each of them leaves unknown.

It claims no conformity with any guideline. Tables by NIST SP 800-226 and by Opinion 28/2024 of the European Data
Protection Board are not written: they would have to quote texts that this package was made without.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.answer.run_audit import Audit
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import read_json
from canaryproof.verify.audit.markup.digits import percent, round_down, round_to_error
from canaryproof.verify.audit.markup.markdown import table
from canaryproof.verify.audit.rules import short_repr

_FIELDS = (
    "answer",
    "decision",
    "findings",
    "claim",
    "delta",
    "confidence",
    "neighbours",
    "count",
    "null_count",
    "dim",
    "kind",
)
_MORE_FIELDS = (
    "inclusion",
    "mechanism",
    "noticed",
    "warnings",
    "estimate",
    "no_estimate",
    "bound",
    "estimates",
    "bounds",
)
# Facts that the answer to a question leaves unknown.
_UNKNOWN = {
    "input": "mistakes that leave no trace in the scores",
    "noise": "whether it is random, the same in each coordinate, and of a generator with enough states",
    "clipping": "whether each record is clipped that is unlike a random canary",
    "sampling": "whether records are drawn as canaries are",
    "accounting": "whether all that was trained and released is in the record",
    "leak": "what a stronger attacker learns",
    "plan": "what was tried before the plan was made",
}
_CHOSEN = {
    "fixed": "chosen in advance",
    "coin": "each by a fair coin of its own",
    "independent": "each in a training of its own",
}


@set_module("canaryproof")
def model_card(source: "Audit | str | Path | Mapping[str, Any]") -> str:
    """Write an audit's part of a model card.

    Parameters
    ----------
    source
        An audit; or its record: a file that ``canaryproof audit --json`` printed, or what that file holds. A report in
        JSON, which has the record in its field ``audit``, is taken too.

    Returns
    -------
    A section of Markdown: a table with a row for each fact, and what is not known of it.

    Raises
    ------
    InputError
        If a file cannot be read, or a field is missing.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> observed = cp.exact_law.cosines(1000, 10**6, 1.54, np.random.default_rng(0))
    >>> card = cp.model_card(cp.audit(cp.Scores(observed, dim=10**6), delta=1e-6, claim=3.01))
    >>> print(card.splitlines()[0])
    ## Privacy audit
    """
    if isinstance(source, Audit):
        name, record = "audit", json.loads(source.to_json())
    elif isinstance(source, str | Path):
        name, record = str(source), read_json(Path(source))
    else:
        name, record = "audit", source
    if isinstance(record, Mapping) and isinstance(record.get("audit"), Mapping):
        record = record["audit"]
    if not isinstance(record, Mapping):
        raise InputError(f"{name}: must be what canaryproof audit --json prints, not {short_repr(record)}")
    missing = [field for field in (*_FIELDS, *_MORE_FIELDS) if field not in record]
    if missing:
        raise InputError(
            f"{name}: must be what this version's canaryproof audit --json prints; it has no field {missing[0]}"
        )
    try:
        rows = table(("fact", "this audit", "not known"), _rows(record))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"{name}: a field is not as canaryproof audit --json prints it ({error})") from error
    return f"## Privacy audit\n\n{record['answer']}\n\n{rows}\n"


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    at = f"δ = {record['delta']:g}"
    claim = (
        "none" if record["claim"] is None else f"ε = {record['claim']:.4g} at {at}, neighbours: {record['neighbours']}"
    )
    yield "claim", claim, "whether it is the ε of the training: accounting below says what was looked at"
    decision = record["decision"]
    outcome = "none, as nothing is claimed" if decision is None else decision["outcome"]
    yield "decision", outcome, "no decision proves a claim"
    for finding in record["findings"]:
        yield finding["question"], f"{finding['status']}: {finding['because']}", _UNKNOWN[finding["question"]]
    yield "estimate", *_estimate(record, at)
    yield "lower bound", *_bound(record, at)
    others = "" if record["null_count"] is None else f" against {record['null_count']:,} that did not"
    dim = "" if record["dim"] is None else f", in {record['dim']:,} dimensions"
    chosen = _CHOSEN[record["inclusion"]]
    canaries = f"{record['count']:,} took part{others}{dim}; {chosen}; scores: {record['kind']}"
    yield "canaries", canaries, "how much more a real record, or one made to be seen, would show"
    yield "measured noise", *_noise(record)
    noticed = record["noticed"]
    less = (
        "not computed"
        if noticed is None
        else f"noise at {int(100 * noticed)}% of the claim or less, with probability 90%"
    )
    yield "would have been noticed", less, "faults that random canaries do not see: one unclipped client, released data"
    signs = "; ".join(warning["kind"] for warning in record["warnings"]) or "none"
    yield "signs of misuse", signs, _UNKNOWN["input"]
    for fact in ("training data and whose they are", "purpose and release of the model", "other attacks"):
        yield fact, "not part of an audit", "all of it: fill it in, or leave it out"


def _estimate(record: Mapping[str, Any], at: str) -> tuple[str, str]:
    if record["estimate"] is None:
        return f"none: {record['no_estimate']}", "what this attacker learns"
    row = _row(record["estimates"], record["estimate"]["name"])
    value, low, high = _digits(row, "epsilon", "low", "high")
    interval = f"{percent(record['confidence'])}: {low} to {high}"
    return f"ε̂ = {value} at {at} ({interval}; `{row['name']}`)", "the ε of a stronger attacker"


def _bound(record: Mapping[str, Any], at: str) -> tuple[str, str]:
    if record["bound"] is None:
        return "none", "whether anything leaks"
    row = _row(record["bounds"], record["bound"]["name"])
    value = "∞" if row["low"] is None else round_down(row["low"])
    cap = "" if row["cap"] is None else f", at most {round_down(row['cap'])} from so many canaries"
    return f"ε ≥ {value} at {at} (`{row['name']}`, {row['coverage']}{cap})", "how much more leaks"


def _noise(record: Mapping[str, Any]) -> tuple[str, str]:
    measured = record["mechanism"]
    if measured is None:
        return "not measured", "the noise that was added"
    claimed = "" if measured["claimed"] is None else f"; claimed {measured['claimed']:.4g}"
    value, low, high = _digits(measured, "value", "low", "high")
    return f"noise multiplier {value} ({low} to {high}){claimed}", _UNKNOWN["noise"]


def _row(rows: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return {row["name"]: row for row in rows}[name]


def _digits(measured: Mapping[str, Any], *names: str) -> Iterator[str]:
    """Print numbers with two digits of their standard error; infinite ones are None in JSON."""
    error = math.inf if measured["standard_error"] is None else measured["standard_error"]
    for name in names:
        yield "∞" if measured[name] is None else round_to_error(measured[name], error)
