import math

import numpy as np
import pytest

from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.claims import final_bounds, model_changes
from canaryproof.verify.papers.claims.transcripts import Final

DELTA = Final.EMNIST_DELTA


def test_a_change_is_the_momentum_s_sum_of_rounds_and_its_length_that_of_its_noise():
    # By the optimizer's recursion, with vectors in few dimensions in place of scores.
    rounds, noise, momentum, canaries = 30, 0.4, 0.9, Final.CANARIES
    unobserved, observed = model_changes.largest_cosines(rounds, noise, momentum, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    scores = rng.standard_normal((rounds, 2 * canaries))
    scores[rng.integers(rounds, size=canaries), np.arange(canaries)] += 1.0 / noise
    velocity, variance, best = np.zeros(2 * canaries), 0.0, np.full(2 * canaries, -math.inf)
    for round_scores in scores:
        before, velocity = velocity, momentum * velocity + round_scores
        # Who sees all models has the round itself.
        np.testing.assert_allclose(velocity - momentum * before, round_scores, atol=1e-12)
        variance = momentum**2 * variance + 1.0
        best = np.maximum(best, velocity / math.sqrt(variance))
    np.testing.assert_allclose(np.concatenate([observed, unobserved]), best, rtol=1e-12)


def test_without_momentum_estimates_are_about_algorithm_3_s():
    values, _ = model_changes.estimates_and_bounds(200, 0.1, DELTA, 20, np.random.default_rng(6), momentum=0.0)
    limit = final_bounds.algorithm_3(200, 10.0, DELTA)
    # The mean of 20 whose deviation is 6% has an error of 1.4%; it is biased by less than that.
    assert abs(values.mean() / limit - 1.0) < 0.1


def test_a_lone_canary_is_seen_at_the_momentum_s_share_of_its_distance():
    # With so little noise the largest cosine is that of the own round, where the model moves as usual.
    _, observed = model_changes.largest_cosines(2000, 1e-4, 0.9, np.random.default_rng(7))
    assert np.median(observed) * 1e-4 == pytest.approx(math.sqrt(1.0 - 0.9**2), rel=1e-3)


@pytest.mark.parametrize(("momentum", "fits"), [(0.9, True), (0.0, False), (0.5, False)])
def test_only_the_printed_momentum_gives_table_4(momentum, fits):
    rng = np.random.default_rng(8)
    rows = [Final.TABLE_4[2], Final.TABLE_4[3]]
    p_values = [
        model_changes.surprise(
            float(row.estimate_all),
            model_changes.estimates_and_bounds(Final.EMNIST_ROUNDS, float(row.noise), DELTA, 12, rng, momentum)[0],
        )
        for row in rows
    ]
    assert (min(p_values) > 1e-3) is fits


def test_the_first_version_s_estimates_are_others():
    rows = [final_bounds.Row("0.0644", "100k", "", printed, "", "") for printed in ("1e5", "190")]
    for row, verdict in zip(rows, (Verdict.CONFIRMED, Verdict.REFUTED), strict=True):
        found = model_changes.judge_not_alone([row], 200, 8.2e-7, "test", Context(Effort.QUICK, 0))
        assert found.verdict is verdict


def test_a_table_of_other_numbers_is_refuted():
    rows = [final_bounds.Row("0.0958", "100", "", "500", "", "")]
    found = model_changes.judge_alone(rows, Final.EMNIST_ROUNDS, DELTA, "test", 15, Context(Effort.QUICK, 0))
    assert found.verdict is Verdict.REFUTED
    assert "bounds" not in found.finding
    # Canaries that take part as clients do are seen in more rounds.
    assert "shown once in each of 15 epochs" in found.finding
