import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels import exact_law
from canaryproof.verify.blindspots import alarms
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, Claim
from canaryproof.verify.blindspots.noticed import POWER, blind_spots, ranges
from canaryproof.verify.estimators import estimators

CLAIM = Claim(1.3905934566745368, 1e-5, 10**6)
NEVER = {"low-rank", "unclipped", "memorised", "released-outright", "few-states"}


def by_name(parts):
    return {part.mechanism: part for part in parts}


def test_what_nobody_sees_is_never_noticed_and_what_all_see_has_an_edge():
    noticed, missed = map(by_name, ranges(CLAIM, 1000))
    assert set(missed) >= NEVER
    assert NEVER.isdisjoint(noticed)
    for name in ("less-noise", "dilution", "no-noise-on-a-share", "half-noise-on-a-share"):
        assert noticed[name].alarm >= POWER > missed[name].alarm
    assert noticed["less-noise"].high <= missed["less-noise"].low <= 1.002 * noticed["less-noise"].high
    assert noticed["coarse-noise"].high + 1.0 == missed["coarse-noise"].low
    assert math.isinf(missed["no-noise-on-a-share"].epsilon)
    # Their ε is what is claimed: alarms are the auditor's, and where there is none nothing is missed.
    assert "other-canaries" in noticed
    assert {"other-canaries", "final-iterate", "laplace", "reused-noise"}.isdisjoint(missed)


def test_more_canaries_notice_more():
    few, many = (by_name(ranges(CLAIM, count)[0])["less-noise"].high for count in (100, 10_000))
    assert few < 0.75 < many < 1.0


def test_the_edge_is_where_nine_of_ten_audits_raise_an_alarm():
    """Cosines by their exact joint law, from another module than the atlas's."""
    count, dim, runs = 60, 10**5, 400
    edge = by_name(ranges(Claim(1.39, 1e-5, dim), count)[0])["less-noise"].high
    rng = np.random.default_rng(2)
    cosines = np.array([exact_law.cosines(count, dim, edge * 1.39, rng) for _ in range(runs)])
    low = alarms.default_low(estimators.from_dimension(cosines, dim), 1e-5)
    raised = int((low > Claim(1.39, 1e-5, dim).epsilon).sum())
    # A hundredth for the test of variances.
    assert stats.binom.cdf(raised, runs, POWER - 0.01) > 1e-6
    assert stats.binom.sf(raised - 1, runs, POWER + 0.01) > 1e-6


def test_several_rounds_are_listed_beside_unobserved_canaries():
    noticed, missed = ranges(CLAIM, 200, 200)
    assert {"reused-noise", "correlated-noise", "low-rank-rounds"} <= set(by_name(missed))
    assert "final-iterate" not in by_name((*noticed, *missed))


@pytest.mark.parametrize("sigma", [0.01, 1e6])
@pytest.mark.parametrize("delta", [1e-300, 0.9])
@pytest.mark.parametrize(("dim", "count"), [(1000, 2), (10**12, 10**5)])
def test_any_claim_has_its_lists(sigma, delta, dim, count):
    found = blind_spots(dim, delta, count, None, sigma)
    assert found is not None
    assert found.given
    for part in (*found.noticed, *found.unnoticed):
        assert part.mechanism in MECHANISMS
        assert part.low <= part.high
        assert 0.0 <= part.alarm <= 1.0
        assert part.epsilon >= 0.0


def test_without_a_claim_it_is_three_and_without_a_dimension_there_is_nothing():
    found = blind_spots(10**6, 1e-5, 100, None, None)
    assert found is not None
    assert found.epsilon == pytest.approx(3.0, rel=1e-9)
    assert not found.given
    assert blind_spots(None, 1e-5, 100, 100, 1.0) is None
    assert blind_spots(999, 1e-5, 100, None, 1.0) is None
