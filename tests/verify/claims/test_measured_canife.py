import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.check.declared_tests import LEVEL
from canaryproof.verify.check.results import Verdict
from canaryproof.verify.claims import measured_canife
from canaryproof.verify.claims.measured_canife import PRINTED, between, compared, visible_shift
from canaryproof.verify.comparison.canife_methods import METHODS


def sample(mean, deviation, runs):
    """Numbers with exactly this mean and deviation."""
    values = stats.norm.ppf((np.arange(runs) + 0.5) / runs)
    return mean + deviation * values / values.std(ddof=1)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        (sample(6.76, 1.06, 10), Verdict.CONFIRMED),
        (sample(7.5, 0.8, 10), Verdict.CONFIRMED),
        (sample(12.0, 1.06, 10), Verdict.REFUTED),
        (sample(6.76, 0.02, 10), Verdict.REFUTED),
        (sample(6.76, 40.0, 10), Verdict.REFUTED),
        (sample(6.76, 1.06, 3), Verdict.INCONCLUSIVE),
        ([6.76], Verdict.INCONCLUSIVE),
        ([6.5] * 10, Verdict.INCONCLUSIVE),
        ([6.0, math.inf], Verdict.REFUTED),
    ],
)
def test_a_printed_mean_and_deviation(values, verdict):
    assert compared(values, 6.76, 1.06, math.inf)[0] is verdict


def test_no_number_exceeds_its_cap():
    verdict, finding = compared([0.52] * 2, 0.879, 0.124, 0.5214)
    assert verdict is Verdict.REFUTED
    assert finding == "the cap is 0.521"


def test_the_visible_shift_is_seen_as_often_as_said():
    runs, rng = 10, np.random.default_rng(0)
    shift = visible_shift(runs)
    ours, theirs = shift + rng.standard_normal((2000, runs)), rng.standard_normal((2000, runs))
    seen = int(np.sum(stats.ttest_ind(ours, theirs, axis=1).pvalue <= 0.5 * LEVEL))
    assert stats.binomtest(seen, 2000, 0.9).pvalue > 1e-6


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        (sample(3.0, 0.3, 10), Verdict.CONFIRMED),
        (sample(0.3, 0.02, 10), Verdict.REFUTED),
        (sample(8.0, 0.1, 10), Verdict.REFUTED),
        (sample(1.0, 0.3, 10), Verdict.INCONCLUSIVE),
        ([2.0, 2.0], Verdict.INCONCLUSIVE),
        ([2.0], Verdict.INCONCLUSIVE),
    ],
)
def test_a_bound_between_two_numbers(values, verdict):
    assert between(values, 0.879, 6.76)[0] is verdict


def test_a_claim_follows_its_readings():
    confirmed, refuted, unclear = Verdict.CONFIRMED, Verdict.REFUTED, Verdict.INCONCLUSIVE
    for readings, verdict in (
        ((confirmed, refuted), confirmed),
        ((refuted, confirmed), Verdict.QUALIFIED),
        ((unclear, confirmed), Verdict.QUALIFIED),
        ((refuted, refuted), unclear),
        ((refuted, unclear), unclear),
    ):
        assert measured_canife._verdict(readings) is verdict


def test_readings_are_methods_and_numbers_those_of_the_ledger():
    names = {method.name for method in METHODS}
    assert all(name in names for printed in PRINTED for name in printed.readings)
    from canaryproof.verify.claims import CHECKS

    statements = {check.id: check.statement for check in CHECKS}
    for printed in PRINTED:
        for name in printed.ids:
            assert f"{printed.mean:g}" in statements[name]
            assert f"{printed.deviation:g}" in statements[name]
    assert "0.879" in statements["review.canife.bound"]
