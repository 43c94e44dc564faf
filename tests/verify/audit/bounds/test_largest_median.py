import math

import numpy as np
import pytest
from scipy import special

from canaryproof.verify.audit.bounds.catalogue import DEFAULT, METHODS
from canaryproof.verify.audit.bounds.fixed_sequence import hardest_law
from canaryproof.verify.audit.bounds.largest_median import ALPHA, DELTA, TABLE, largest_median, nearest
from canaryproof.verify.audit.bounds.lower_bound import normal_null, prepare


@pytest.mark.parametrize(("mean", "alpha"), [(2.0, 0.05), (4.0, 0.05), (4.0, 0.001)])
def test_of_one_score_it_has_a_closed_form(mean, alpha):
    """The best test rejects beyond μ, where the hardest private law has the tail e^ε·Φ(−μ) + δ and N(μ, 1) one half."""
    expected = math.log((alpha - DELTA) / special.ndtr(-mean))
    assert largest_median(1, mean, DELTA, alpha) == pytest.approx(expected, abs=0.002)


def draws(rng, size, epsilon, delta):
    """Draw from the law with the largest tail that privacy allows, by its inverse."""
    share = rng.random(size)
    tail = np.clip(np.maximum((share - delta) * np.exp(-epsilon), 1.0 - delta - np.exp(epsilon) * (1.0 - share)), 0, 1)
    return -special.ndtri(tail)


@pytest.mark.parametrize(("count", "mean"), [(100, 1.0), (100, 4.0), (1000, 2.0)])
def test_the_best_test_of_drawn_scores_rejects_half_of_the_time(count, mean):
    epsilon, audits = largest_median(count, mean, DELTA, ALPHA), 4000
    first, second, third, fourth = (x.item() for x in hardest_law(np.array([mean]), np.array(epsilon), DELTA))
    rng = np.random.default_rng([86, count])

    def statistics(scores):
        at = np.clip(scores, fourth, first)
        ratio = np.where(at > second, mean * at - epsilon, mean * np.minimum(at, third) + epsilon)
        return ratio.sum(axis=1)

    private = np.concatenate([statistics(draws(rng, (audits // 8, count), epsilon, DELTA)) for _ in range(8)])
    seen = np.concatenate([statistics(mean + rng.standard_normal((audits // 8, count))) for _ in range(8)])
    # Both quantiles are of the statistic's law; a shift of half a deviation moves the rate by .2.
    rate = (seen > np.quantile(private, 1.0 - ALPHA)).mean()
    # The rate's own deviation is .008; that of the quantile is .034 deviations of the statistic, or .014 of the rate.
    assert abs(rate - 0.5) < 5.0 * math.hypot(0.008, 0.014)


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.count}-{row.mean:g}")
def test_the_table_has_the_largest_medians(row):
    assert largest_median(row.count, row.mean, DELTA, ALPHA) == pytest.approx(row.largest, abs=0.006)
    assert 0.7 * row.largest < row.default < row.largest


@pytest.mark.deep
@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.count}-{row.mean:g}")
def test_the_table_has_the_default_s_medians(row):
    audits = min(1000, 1_000_000 // row.count)
    rng = np.random.default_rng([87, row.count, int(10 * row.mean)])
    scores = prepare(row.mean + rng.standard_normal((audits, row.count)), null=normal_null(), independent=True)
    values = np.sort(METHODS[DEFAULT].values(scores, DELTA, ALPHA)[0])
    # Five deviations of a median's rank, on either side.
    margin = math.ceil(2.5 * math.sqrt(audits))
    assert values[audits // 2 - margin] - 0.01 <= row.default <= values[audits // 2 + margin] + 0.01


def test_the_nearest_row():
    assert nearest(900, 1.9) == next(row for row in TABLE if (row.count, row.mean) == (1000, 2.0))
    assert nearest(10**6, 1.0) is None
    assert nearest(1000, 0.1) is None
    assert nearest(1000, -1.0) is None
    assert nearest(1000, math.nan) is None
