"""Lines of a proof, and what exact arithmetic says of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """How a line of a proof fares."""

    EXACT = "exact"  # holds as printed, for all d and k that the text admits
    LEADING_ORDER = "right to leading order"  # what is printed is right; terms of lower order are missing
    WRONG_TERM = "wrong term"  # a printed term is wrong, and what the proof concludes from the line stands
    HYPOTHESIS = "needs a hypothesis"  # holds under one, or in a reading, that the finding names and the text does not
    FALSE = "false"  # and what is concluded from it falls as well


@dataclass(frozen=True)
class Judgement:
    """What was found about a line.

    Attributes
    ----------
    kind
        How the line fares.
    finding
        One sentence: what decides, and the corrected line where the printed one is not exact.
    evidence
        What is behind it, ready for JSON.
    """

    kind: Kind
    finding: str
    evidence: Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """A statement of a proof, or about one, and the function that judges it.

    Attributes
    ----------
    id
        Name, unique over all modules: document, statement and topic, such as ``final.theorem-3.3.mean-norm.2``.
    source
        Document and place.
    statement
        What it says, in our notation.
    judge
        Function that decides.
    display
        Name of the displayed formula that this is a line of; empty for prose.
    row
        Which line of the display, from 1.
    ours
        Whether the statement is ours and not a document's: anything but ``Kind.EXACT`` is then a fault of ours.
    """

    id: str
    source: str
    statement: str
    judge: Callable[[], Judgement]
    display: str = ""
    row: int = 0
    ours: bool = False


def held(holds: bool | Mapping[str, bool], finding: str, otherwise: Kind = Kind.FALSE, /, **evidence: Any) -> Judgement:
    """Judge a statement that exact arithmetic has proved or disproved.

    Parameters
    ----------
    holds
        Whether it holds; or whether each of the facts does that it rests on, by name.
    finding
        What is found if it does.
    otherwise
        How the line fares if it does not.
    **evidence
        What else is behind it, ready for JSON.

    Returns
    -------
    ``EXACT`` or ``otherwise``; the facts, by name, are in the evidence, and in the finding those that fail.
    """
    facts = {name: bool(fact) for name, fact in (holds if isinstance(holds, Mapping) else {"holds": holds}).items()}
    failed = [name for name, fact in facts.items() if not fact]
    text = f"fails ({'; '.join(failed)}): {finding}" if failed else finding
    return Judgement(otherwise if failed else Kind.EXACT, text, {**facts, **evidence})
