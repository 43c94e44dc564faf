import pytest

from canaryproof.verify.papers.check.results import Subject, Verdict
from canaryproof.verify.papers.claims.canife import CHECKS, experiments

# Only a training decides these.
MEASURED = {
    *(f"canife.section4.2.gap.{task}" for task in ("sent140", "celeba", "shakespeare")),
    *(check.id for check in experiments.MEASURED),
}


def test_ids_are_unique_and_name_the_document():
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    assert all(check.id.startswith("canife.") and check.subject is Subject.DOCUMENT for check in CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_only_what_a_training_decides_needs_data(check, quick_run):
    result = quick_run.results[check.id]
    needs = check.id in MEASURED
    assert (result.verdict is Verdict.NEEDS_DATA) == needs
    assert result.finding
    # It names the command that decides it, or says that none does.
    said = ("canaryproof train canife_", "no training here decides it")
    assert not needs or any(words in result.finding for words in said)
