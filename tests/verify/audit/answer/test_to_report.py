"""What an audit says is to be reported are sentences of the page "Which number may I report?", filled in."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from canaryproof.verify.audit.accounting.accountant import gaussian
from canaryproof.verify.audit.answer.run_audit import Audit
from canaryproof.verify.audit.answer.text import details, to_report
from tests.verify.audit.answer.test_golden_answers import ANSWERS, losses, release

PAGE = Path(__file__).parents[4] / "docs/which_number.md"


@cache
def sentences() -> dict[str, re.Pattern[str]]:
    """Return the sentences of the page's tables, in which any words may stand for those in italics."""
    rows = re.findall(r"(?m)^\|.*\| ([^|]+) \|$", PAGE.read_text(encoding="utf-8").partition("## What was audited")[2])
    said = [row for row in rows if row not in ("say", "---") and "CANIFE" not in row and "prior" not in row]
    return {each: re.compile(re.sub(r"\\\*.+?\\\*", ".+?", re.escape(each))) for each in said}


def parsed(text: str) -> list[str]:
    """Return the sentences of the page that a text is made of; others fail."""
    found, rest = [], text
    while rest:
        ends = {
            each: match.end()
            for each, pattern in sentences().items()
            if (match := re.match(f"(?:{pattern.pattern})(?= |$)", rest))
        }
        assert ends, f"{rest!r} is on no page"
        # One sentence may begin another one.
        best = max(ends, key=lambda each: ends[each])
        found.append(best)
        rest = rest[ends[best] :].lstrip()
    return found


CASES = ANSWERS | {
    "asked and passed": lambda: release(ask=("input",)),
    "another share and passed": lambda: release(notice=0.4),
    "replacing": lambda: release(neighbours="replace"),
    "coins show nothing": lambda: losses(0.0, "coin", claim=4.0),
    "refuted by its curve alone": lambda: losses(2.0, "coin", claim=gaussian(1.0)),
    "no known coverage": lambda: losses(2.0, "fixed", bounds=("jagielski",)),
}


@cache
def found(name: str) -> Audit:
    return CASES[name]()


@pytest.mark.parametrize("name", CASES)
def test_each_sentence_is_on_the_page(name: str) -> None:
    text = to_report(found(name))
    assert parsed(text)
    assert " ".join(details(found(name)).split()).endswith(f"To report: {text}")


def test_each_sentence_of_the_page_is_used() -> None:
    used = {each for name in CASES for each in parsed(to_report(found(name)))}
    assert used == set(sentences())


def test_a_heuristic_bound_is_never_reported() -> None:
    assert "at least" not in to_report(found("losses_fixed"))
    assert np.isfinite(found("losses_fixed").bound.low)
