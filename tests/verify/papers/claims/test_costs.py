import pytest

from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims import costs


def test_shares_by_hand():
    # Two rounds of ten examples: 60 multiply-adds a parameter; 2,000 canaries in each round.
    shares = costs.shares(2, 10.0, 1)
    assert shares["Algorithm 3"] == pytest.approx(4000 / 60)
    assert shares["Algorithm 2, or known rounds"] == pytest.approx(2000 / 60)
    assert shares["CANIFE"] == pytest.approx(2500 * 515 / 60)


def test_canaries_are_negligible_where_training_is_dear():
    assert costs.judge_negligible().verdict is Verdict.QUALIFIED
    assert costs.judge_negligible().evidence["fashion"]["Algorithm 3"] > 1.0
    assert costs.judge_crafting().verdict is Verdict.CONFIRMED
