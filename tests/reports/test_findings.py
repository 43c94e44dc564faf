from made_up import claim

from canaryproof.reports.claims import findings
from canaryproof.verify.check.results import Level, Run, Verdict


def names(*results):
    return [result.id for result in findings(Run("0", Level.QUICK, 0, results))]


def test_a_line_on_the_way_comes_last_and_each_suite_speaks_first(results):
    assert names(*results) == ["final.footnote", "final.tight", "final.line"]


def test_refuted_comes_before_qualified_and_others_never():
    some = claim("v1.a", Verdict.QUALIFIED), claim("v1.b", Verdict.REFUTED), claim("v1.c"), claim("ours.a")
    assert names(*some) == ["v1.b", "v1.a"]


def test_the_final_version_comes_first_and_what_is_of_no_privacy_later():
    some = (
        claim("canife.a", Verdict.REFUTED, statement="ε is large"),
        claim("final.a", Verdict.REFUTED, statement="there are 47 classes"),
        claim("final.b", Verdict.REFUTED, statement="the loss of privacy is small"),
    )
    assert names(*some) == ["final.b", "canife.a", "final.a"]


def test_a_second_finding_of_a_suite_waits_for_the_others():
    some = [claim(f"final.{i}", Verdict.REFUTED, "claims", "ε") for i in range(3)]
    assert names(*some, claim("bounds.a", Verdict.REFUTED, "bounds", "ε")) == ["final.0", "bounds.a", "final.1"]
