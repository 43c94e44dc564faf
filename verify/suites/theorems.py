"""Suite ``theorems``: every line of the proofs, witnesses of the exact moments, and convergence in d and k."""

from itertools import chain
from types import ModuleType

from canaryproof.proofs_check import (
    anderson_darling,
    canife_a,
    consistency,
    data_vectors,
    first_version,
    joint_law,
    lemma_a_1,
    random_walk,
    section_3_2,
    theorem_3_1,
    theorem_3_2,
    theorem_3_3,
    theorem_3_3_square,
)
from canaryproof.proofs_check.lines import Kind, Line
from canaryproof.verify.results import Check, Context, Outcome, Subject, Verdict
from canaryproof.verify.suites import convergence, exact, witnesses

MODULES: tuple[ModuleType, ...] = (
    theorem_3_1,
    lemma_a_1,
    theorem_3_2,
    anderson_darling,
    theorem_3_3,
    theorem_3_3_square,
    random_walk,
    data_vectors,
    joint_law,
    first_version,
    consistency,
    section_3_2,
    canife_a,
)

_VERDICTS = {
    Kind.EXACT: Verdict.CONFIRMED,
    Kind.LEADING_ORDER: Verdict.QUALIFIED,
    Kind.HYPOTHESIS: Verdict.QUALIFIED,
    Kind.WRONG_TERM: Verdict.REFUTED,
    Kind.FALSE: Verdict.REFUTED,
}


def _judge(line: Line) -> Outcome:
    judgement = line.judge()
    evidence = {"kind": str(judgement.kind), **judgement.evidence}
    if line.display:
        evidence |= {"display": line.display, "row": line.row}
    return Outcome(_VERDICTS[judgement.kind], judgement.finding, evidence)


def _check(line: Line) -> Check:
    subject = Subject.IMPLEMENTATION if line.ours else Subject.DOCUMENT
    return Check(line.id, subject, line.source, line.statement, lambda _: _judge(line))


def missing_rows() -> list[str]:
    """Rows of displayed formulas that no line checks, and lines of rows that no display has."""
    missing = []
    for module in MODULES:
        printed = {(name, row) for name, rows in module.DISPLAYS.items() for row in range(1, rows + 1)}
        checked = {(line.display, line.row) for line in module.LINES if line.display}
        missing += [f"{module.__name__}: {name}, row {row}" for name, row in sorted(printed ^ checked)]
    return missing


def _displayed(_: Context) -> Outcome:
    missing = missing_rows()
    rows = sum(sum(module.DISPLAYS.values()) for module in MODULES)
    displays = sum(len(module.DISPLAYS) for module in MODULES)
    finding = f"{rows} rows of {displays} displays, each with a check" if not missing else "; ".join(missing)
    return Outcome(Verdict.REFUTED if missing else Verdict.CONFIRMED, finding, {"rows": rows, "displays": displays})


CHECKS = (
    *(_check(line) for line in chain.from_iterable(module.LINES for module in MODULES)),
    Check(
        "theorems.displayed-lines",
        Subject.IMPLEMENTATION,
        "proofs_check",
        "every displayed line of the proofs has a check",
        _displayed,
    ),
    *exact.CHECKS,
    *witnesses.CHECKS,
    *convergence.CHECKS,
)
