from canaryproof.proofs_check import submission
from canaryproof.verify.papers.suites.theorems import MODULES

FINAL = {check.id: check for module in MODULES for check in module.LINES if check.id.startswith("final.")}


def test_each_line_has_the_statement_and_the_judge_of_the_final_versions():
    pairs = [(check.statement, check.judge) for check in submission.LINES]
    others = [(check.statement, check.judge) for name, check in FINAL.items() if name not in submission.ADDED]
    # Critical values and the test of normality stand in another module, as the submission has others.
    assert all(pair in others for pair in pairs)
    assert len({check.id for check in submission.LINES}) == len(pairs) > 100


def test_what_the_final_version_adds_is_there():
    assert set(submission.ADDED) <= FINAL.keys()


def test_ids_and_places_have_the_submissions_sections():
    places = {check.id: check.source for check in submission.LINES}
    assert places["submission.appendix-b.loss"] == "Andrew et al., anonymous submission, Appendix B"
    assert (
        places["submission.section-3.inference"] == "Andrew et al., anonymous submission, Section 3, after Algorithm 1"
    )
    assert not any("3.1" in name or "3.2" in name for name in places if "theorem" not in name)
