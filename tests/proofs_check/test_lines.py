from canaryproof.proofs_check.lines import Judgement, Kind, held


def test_held_is_exact_only_if_all_facts_hold():
    assert held(True, "found.") == Judgement(Kind.EXACT, "found.", {"holds": True})
    assert held({"a": True, "b": True}, "found.", number=3).evidence == {"a": True, "b": True, "number": 3}
    failed = held({"a": True, "the other": False}, "found.", Kind.WRONG_TERM)
    assert failed.kind is Kind.WRONG_TERM
    assert "the other" in failed.finding
    assert held(False, "found.").kind is Kind.FALSE
