import math

import numpy as np
from scipy import stats

from canaryproof.kernels import exact_law
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS, AtlasClaim
from canaryproof.verify.audit.blindspots.ranges import ALPHA, alarm_probability, by_estimate, ranges
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import from_dimension, from_two_groups
from canaryproof.verify.audit.levels import POWER

CLAIM = AtlasClaim(1.3905934566745368, 1e-5, 10**6)


COUNT = 1000
LEVEL = 1e-6


def rng():
    return np.random.default_rng(11)


def test_alarms_beside_unobserved_canaries_are_those_of_drawn_scores():
    value, count, null_count, runs, draws = 0.85, 100, 60, 4000, np.random.default_rng(4)
    residual = MECHANISMS["less-noise"].residual(value, CLAIM, runs, draws)
    shift = math.sqrt(CLAIM.dim) / np.sqrt(residual.gram[:, 0, 0] + count)
    unobserved = draws.standard_normal((runs, null_count))
    moments = from_two_groups(shift[:, np.newaxis] + draws.standard_normal((runs, count)), unobserved)
    raised = int(
        (epsilon_estimators.pinned_estimate(moments, CLAIM.delta, 1.0 - 2.0 * ALPHA).low > CLAIM.epsilon).sum()
    )
    found = alarm_probability(MECHANISMS["less-noise"], value, CLAIM, count, rng(), null_count)
    # At level 1e-6, a difference of 2.5% of all audits is noticed; the noncentral law is near to that of the scores.
    assert abs(raised / runs - found) < 0.025
    assert 0.1 < found < 0.4
    honest = alarm_probability(MECHANISMS["less-noise"], 1.0, CLAIM, count, rng(), null_count)
    assert abs(honest - ALPHA) < 0.01


def test_unobserved_canaries_cost_power():
    mechanism = MECHANISMS["less-noise"]
    closed, fitted = (alarm_probability(mechanism, 0.9, CLAIM, COUNT, rng(), null) for null in (None, COUNT))
    assert fitted < closed


NEVER = {"low-rank", "unclipped", "memorised", "released-outright", "normalised-after-noise", "few-states"}


def by_name(parts):
    return {part.mechanism: part for part in parts}


def test_what_nobody_sees_is_never_noticed_and_what_all_see_has_an_edge():
    noticed, missed = map(by_name, ranges(CLAIM, by_estimate(CLAIM, 1000)))
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
    few, many = (by_name(ranges(CLAIM, by_estimate(CLAIM, count))[0])["less-noise"].high for count in (100, 10_000))
    assert few < 0.75 < many < 1.0


def test_the_edge_is_where_nine_of_ten_audits_raise_an_alarm():
    """Cosines by their exact joint law, from another module than the atlas's."""
    count, dim, runs = 60, 10**5, 400
    claim = AtlasClaim(1.39, 1e-5, dim)
    edge = by_name(ranges(claim, by_estimate(claim, count))[0])["less-noise"].high
    rng = np.random.default_rng(2)
    cosines = np.array([exact_law.cosines(count, dim, edge * 1.39, rng) for _ in range(runs)])
    low = epsilon_estimators.adaptive_low(from_dimension(cosines, dim), 1e-5, 1.0 - 2.0 * ALPHA)
    raised = int((low > AtlasClaim(1.39, 1e-5, dim).epsilon).sum())
    # A hundredth for the test of variances.
    assert stats.binom.cdf(raised, runs, POWER - 0.01) > 1e-6
    assert stats.binom.sf(raised - 1, runs, POWER + 0.01) > 1e-6


def test_several_rounds_are_listed_beside_unobserved_canaries():
    noticed, missed = ranges(CLAIM, by_estimate(CLAIM, 200, 200), several=True)
    assert {"reused-noise", "correlated-noise", "low-rank-rounds", "fixed-batches"} <= set(by_name(missed))
    assert "final-iterate" not in by_name((*noticed, *missed))
