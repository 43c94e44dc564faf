"""What a method sees of a mechanism of the blind-spot atlas, by the atlas's numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from canaryproof.verify.results import Run

Evidence = Mapping[str, Any]

# Canaries at which pictures and verdicts are.
COUNT = 1000
# A method sees what it raises an alarm of in so many audits.
SEEN = 0.9
_PREFIX = "blindspots.atlas."
# What is tested beside the cosines, or by canaries elsewhere.
BESIDE = {"norm": "norm", "part-norms": "part norms", "rounds": "rounds", "confined": "confined canaries"}


class Verdict(StrEnum):
    """Whether a method sees what is wrong."""

    SEES = "sees it"
    MISSES = "misses it"
    CANNOT = "cannot see it in principle"
    NOTHING = "nothing is wrong"


@dataclass(frozen=True)
class Sight:
    """What a method sees.

    Attributes
    ----------
    verdict
        Whether it sees the mechanism where that is most broken.
    rate
        Share of audits with an alarm there; where nothing is wrong, the largest of any value: false ones.
    epsilon
        Median ε̂ there; None for a test.
    """

    verdict: Verdict
    rate: float
    epsilon: float | None


def atlas(run: Run) -> dict[str, Evidence]:
    """Return the evidence of a run on each mechanism, by name."""
    return {r.id.removeprefix(_PREFIX): r.evidence for r in run.measured.results if r.id.startswith(_PREFIX)}


def rows_at(found: Evidence, count: int = COUNT) -> list[Evidence]:
    """Return the cells with so many canaries, in the order of the parameter."""
    return [row for row in found["cells"] if row["count"] == count]


def harmless(found: Evidence) -> bool:
    """Whether the truth never exceeds what is claimed, to a few roundings."""
    return all(row["truth"][0] <= found["claimed"]["epsilon"] * (1.0 + 1e-9) for row in found["cells"])


def worst(rows: Sequence[Evidence]) -> int:
    """Return the place of the row with the largest truth, the last of several."""
    return max(range(len(rows)), key=lambda i: (rows[i]["truth"][0], i))


def sight(found: Evidence, method: str) -> Sight | None:
    """Say what a method sees of a mechanism with 1,000 canaries; nothing if it does not apply.

    A method cannot see it in principle if ε̂ of canaries without number, or of CANIFE's trials, is hardly above what is
    claimed.
    """
    rows = [row for row in rows_at(found) if method in row["methods"]]
    if not rows:
        return None
    # Of the default there are more audits than of the others.
    said = [{**row["methods"][method], **({"rate": row["rate"]} if method == "adaptive" else {})} for row in rows]
    if harmless(found):
        place = max(range(len(rows)), key=lambda i: said[i]["rate"][0])
        return Sight(Verdict.NOTHING, said[place]["rate"][0], said[place]["epsilon"][1])
    row, one = rows[worst(rows)], said[worst(rows)]
    limit = row["canife"] if method == "canife" else row["unlimited"][1]
    rate = one["rate"][0]
    if rate >= SEEN:
        verdict = Verdict.SEES
    else:
        unseen = limit <= found["margin"] * found["claimed"]["epsilon"]
        verdict = Verdict.CANNOT if unseen else Verdict.MISSES
    return Sight(verdict, rate, one["epsilon"][1])


def beside(found: Evidence, test: str) -> Sight | None:
    """Say what a test beside the cosines sees, or canaries that are confined to the part that is broken."""
    place = worst(rows_at(found))
    if place >= len(found["diagnosed"]):
        return None
    rates = [
        row["confined"] if test == "confined" else row["tests"].get(test, {}).get("rate", [None])[0]
        for row in found["diagnosed"]
    ]
    known = [rate for rate in rates if rate is not None]
    if harmless(found) and known:
        return Sight(Verdict.NOTHING, max(known), None)
    rate = rates[place]
    if rate is None and test == "confined" and known:
        rate = known[-1]
    if rate is None:
        return None
    return Sight(Verdict.SEES if rate >= SEEN else Verdict.MISSES, rate, None)


def audits_by(row: Evidence, method: str) -> int:
    """Return of how many audits a method's rate of alarms is: of the default there are more."""
    return int(row["runs"] if method == "adaptive" else row["methods"][method]["runs"])


def methods_of(found: Mapping[str, Evidence]) -> list[str]:
    """Return the names of all methods, CANIFE last."""
    names = dict.fromkeys(name for one in found.values() for row in rows_at(one) for name in row["methods"])
    return [*(name for name in names if name != "canife"), *(["canife"] if "canife" in names else [])]


def label(value: float) -> str:
    """Print a parameter."""
    return "∞" if math.isinf(value) else f"{value:,.6g}"


def share(rate: float) -> str:
    """Print a rate of alarms without decimals."""
    return f"{rate:.0%}"
