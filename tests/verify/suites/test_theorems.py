from collections import Counter

import pytest

from canaryproof.proofs_check import theorem_3_3
from canaryproof.proofs_check.lines import Judgement, Kind, Line
from canaryproof.verify.check.results import Context, Level, Subject, Verdict
from canaryproof.verify.suites import theorems

CONTEXT = Context(Level.QUICK, 0)


def test_ids_are_unique():
    names = Counter(check.id for check in theorems.CHECKS)
    assert [name for name, times in names.items() if times > 1] == []


def test_every_displayed_line_has_a_check_and_a_missing_one_is_found(monkeypatch):
    assert theorems.missing_rows() == []
    monkeypatch.setitem(theorem_3_3.DISPLAYS, "mean of ‖ρ‖²/d", 5)
    assert theorems.missing_rows() == ["canaryproof.proofs_check.theorem_3_3: mean of ‖ρ‖²/d, row 5"]
    assert theorems._displayed(CONTEXT).verdict is Verdict.REFUTED


# Rows of the displays of the final version's Appendix A and Section 3.2, counted by hand.
@pytest.mark.parametrize(
    ("modules", "rows"),
    [
        (("theorem_3_1",), 8),
        (("lemma_a_1",), 0),
        (("theorem_3_2",), 4),
        (("theorem_3_3", "theorem_3_3_square"), 13 + 22),
        (("section_3_2",), 12),
    ],
)
def test_counts_of_displayed_lines(modules, rows):
    chosen = [module for module in theorems.MODULES if module.__name__.rpartition(".")[2] in modules]
    assert len(chosen) == len(modules)
    assert sum(sum(module.DISPLAYS.values()) for module in chosen) == rows


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        (Kind.EXACT, Verdict.CONFIRMED),
        (Kind.LEADING_ORDER, Verdict.QUALIFIED),
        (Kind.HYPOTHESIS, Verdict.QUALIFIED),
        (Kind.WRONG_TERM, Verdict.REFUTED),
        (Kind.FALSE, Verdict.REFUTED),
    ],
)
@pytest.mark.parametrize("ours", [True, False])
def test_kinds_become_verdicts(kind, verdict, ours):
    line = Line("x", "a source", "a statement", lambda: Judgement(kind, "found", {"a": 1}), "a display", 2, ours=ours)
    check = theorems._check_theorems(line)
    assert check.subject is (Subject.IMPLEMENTATION if ours else Subject.DOCUMENT)
    outcome = check.judge(CONTEXT)
    assert outcome.verdict is verdict
    assert outcome.evidence == {"kind": str(kind), "a": 1, "display": "a display", "row": 2}
