"""How the document of a training experiment is read: its cells, and the audit that each attack is shown by."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

# The paper's own estimate, line 13 of Algorithm 2 and line 19 of Algorithm 3, and this package's default bound.
ESTIMATE, BOUND = "fitted", "fixed-sequence"


class Attack(NamedTuple):
    """What an attacker sees, in a word and in a sentence, and the null of the audit that shows it."""

    name: str
    score: str
    null: str


ATTACKS = {
    "all": Attack("all rounds", "Algorithm 3: the largest cosine with any round's delta", "unobserved"),
    "final": Attack("final model", "Algorithm 2 as printed: the cosine with θ_T", "exact"),
    "change": Attack("change of the model", "Algorithm 2 with θ_T − θ₀, as the initial model is public", "exact"),
}


def audit_of(result: Mapping[str, Any], attack: str) -> Mapping[str, Any]:
    """Return the audit of a cell's result that an attack is shown by."""
    audit: Mapping[str, Any] = result["audits"][attack][ATTACKS[attack].null]
    return audit


def spoken(field: str) -> str:
    """Name a field in words."""
    return field.partition(".")[2].replace("_", " ")


def value(swept: Any) -> str:
    """Render a swept value."""
    if isinstance(swept, float) or swept == "inf":
        return "∞" if math.isinf(float(swept)) else f"{swept:g}"
    return str(swept)


def label(swept: Mapping[str, Any]) -> str:
    """Name a cell, or a part of its swept values."""
    return ", ".join(f"{spoken(field)} {value(one)}" for field, one in swept.items())


def header_of(document: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    """Return the header of a table with a row for each cell: its swept fields, and the names of what is found."""
    return *(spoken(field) for axis in document["axes"] for field in axis), *names


def row_of(cell: Mapping[str, Any], *found: str) -> tuple[str, ...]:
    """Return a cell's row of such a table."""
    return *map(value, cell["swept"].values()), *found


def has_canaries(document: Mapping[str, Any]) -> bool:
    """Whether there are random canaries in the trainings."""
    return "audits" in document["cells"][0]["results"][0]


def has_canife(document: Mapping[str, Any]) -> bool:
    """Whether CANIFE audits the trainings."""
    return "canife" in document["cells"][0]
