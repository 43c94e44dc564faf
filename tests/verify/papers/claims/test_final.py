"""The claims of the final version and their verdicts; faults in them are in the files beside."""

from canaryproof.verify.papers.check.results import Subject
from canaryproof.verify.papers.claims import final_bounds, final_noise, final_setting, final_tables

CHECKS = (*final_setting.CHECKS, *final_noise.CHECKS, *final_bounds.CHECKS, *final_tables.CHECKS)


def test_ids_are_unique_and_a_document_speaks():
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(check.id.startswith("final.") and check.subject is Subject.DOCUMENT for check in CHECKS)
