"""The claims of the final version and their verdicts; faults in them are in the files beside."""

import pytest

from canaryproof.verify.check.results import Subject, Verdict
from canaryproof.verify.claims import final_bounds, final_noise, final_setting, final_tables

CHECKS = (*final_setting.CHECKS, *final_noise.CHECKS, *final_bounds.CHECKS, *final_tables.CHECKS)
QUALIFIED = {
    "final.abstract.retrainings",
    "final.section6.sha3",
    "final.section5.1.epoch",
    "final.section5.2.1.parameters",
    "final.section5.2.1.rounds",
    "final.table3.row2.noise",
    "final.table3.row3.noise",
    "final.table3.row4.noise",
    "final.section5.1.footnote5",
    "final.table4.row2.noise",
    "final.table4.row3.noise",
    "final.table4.row4.noise",
    "final.table3.delta",
    "final.table4.delta",
    "final.section4.1.moderate",
    "final.section4.orthogonal",
    "final.section5.4.settings",
    "final.section5.4.closer",
    "final.figure1.separable",
    "final.figure3.separable",
    "final.section5.4.analytical",
    "final.table3.row1.cap",
    "final.table3.row2.cap",
    "final.table4.row1.cap",
    "final.table4.row2.cap",
    "final.section5.1.confidence",
    "final.appendixB.gaussian",
}
REFUTED = {
    "final.section5.2.1.size",
    "final.section5.tight",
    "final.section5.no-bound",
    "final.table3.below-analytical",
    "final.table4.epochs",
}
NEEDS_DATA = {
    *(f"final.table{table}.row{row}.measured" for table in (3, 4, 5, 6) for row in (1, 2, 3, 4)),
    *(f"final.figure{figure}.measured" for figure in (1, 2, 3, 4)),
    "final.section5.1.accuracy",
    "final.section5.4.canife",
    "final.section5.4.ours",
    "final.section5.4.cost",
}


def test_ids_are_unique_and_a_document_speaks():
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    assert set(ids) >= QUALIFIED | REFUTED | NEEDS_DATA
    assert all(check.id.startswith("final.") and check.subject is Subject.DOCUMENT for check in CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_verdict(check, quick_run):
    if check.id in QUALIFIED:
        expected = Verdict.QUALIFIED
    elif check.id in REFUTED:
        expected = Verdict.REFUTED
    else:
        expected = Verdict.NEEDS_DATA if check.id in NEEDS_DATA else Verdict.CONFIRMED
    result = quick_run.results[check.id]
    assert result.verdict is expected, result.finding
