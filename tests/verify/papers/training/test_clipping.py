import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.papers.training.clipping import AdaptiveClip, FixedClip

LEVEL = 1e-6
NORMS = stats.lognorm(0.8, scale=3.0)


def followed(clip, share, rounds, participants=10**6):
    """Clip norms if the share of unclipped updates is this function of the clip norm."""
    norms = [clip.initial]
    for t in range(rounds):
        unclipped = round(share(norms[-1]) * participants)
        norms.append(clip.following(norms[-1], unclipped, participants, t))
    return np.array(norms)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("initial", [0.1, 300.0])
def test_the_clip_norm_finds_the_quantile(quantile, initial):
    clip = AdaptiveClip(initial, quantile, 0.2, 0.0, 0)
    assert followed(clip, NORMS.cdf, 400)[-1] == pytest.approx(NORMS.ppf(quantile), rel=1e-4)


@pytest.mark.parametrize("canaries", [0.1, 0.3])
def test_canaries_lower_the_quantile_of_the_clients(canaries):
    clip = AdaptiveClip(1.0, 0.5, 0.2, 0.0, 0)
    found = followed(clip, lambda norm: canaries + (1.0 - canaries) * NORMS.cdf(norm), 400)[-1]
    assert found == pytest.approx(NORMS.ppf((0.5 - canaries) / (1.0 - canaries)), rel=1e-4)


def test_too_many_canaries_leave_nothing_of_it():
    found = followed(AdaptiveClip(1.0, 0.5, 0.2, 0.0, 0), lambda norm: 0.6 + 0.4 * NORMS.cdf(norm), 400)[-1]
    assert found < math.exp(-0.2 * 0.09 * 400)


def test_noise_on_the_count_does_not_move_the_quantile():
    # log S_T − log S_0 = −η Σ(b̃_t − γ): the mean of b̃ is off by |log S_T/S_0|/(ηT) whatever the noise; that of the true
    # share, by N(0, σ_b²/(m²T)) more.
    clip, m, rounds = AdaptiveClip(1.0, 0.5, 0.2, 5.0, 3), 100, 4000
    norms = followed(clip, NORMS.cdf, rounds, m)
    shares = np.round(NORMS.cdf(norms[:-1]) * m) / m
    drift = math.log(norms[-1] / norms[0]) / (0.2 * rounds)
    deviation = 5.0 / (m * math.sqrt(rounds))
    assert 2.0 * stats.norm.sf(abs(shares.mean() - 0.5 + drift) / deviation) > LEVEL
    assert abs(drift) < 1e-2


def test_noise_on_the_count_has_its_law():
    clip = AdaptiveClip(1.0, 0.5, 0.1, 5.0, 3)
    steps = np.array([clip.following(2.0, 30, 100, t) / 2.0 for t in range(3000)])
    counts = 100 * (0.5 - np.log(steps) / 0.1)
    # The test notices a distance of 0.072 with probability 0.9 or more; a deviation of 7.5 is at 0.097.
    assert stats.kstest(counts, stats.norm(30.0, 5.0).cdf).pvalue > LEVEL
    assert stats.kstest(counts, stats.norm(30.0, 7.5).cdf).pvalue < LEVEL


def test_a_step_is_the_printed_one_and_repeats():
    clip = AdaptiveClip(1.0, 0.5, 0.2, 0.0, 3)
    assert clip.following(2.0, 80, 100, 0) == pytest.approx(2.0 * math.exp(-0.2 * 0.3), rel=1e-15)
    noisy = AdaptiveClip(1.0, 0.5, 0.2, 5.0, 3)
    assert noisy.following(2.0, 80, 100, 7) == noisy.following(2.0, 80, 100, 7)
    assert noisy.following(2.0, 80, 100, 7) != noisy.following(2.0, 80, 100, 8)
    assert noisy.following(2.0, 0, 0, 7) == 2.0
    assert FixedClip(1.5).following(1.5, 3, 10, 0) == FixedClip(1.5).initial == 1.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FixedClip(0.0), "initial must be positive and finite"),
        (lambda: FixedClip(math.nan), "initial"),
        (lambda: AdaptiveClip(math.inf, 0.5, 0.2, 5.0, 0), "initial"),
        (lambda: AdaptiveClip(1.0, 1.5, 0.2, 5.0, 0), r"quantile must lie in \[0, 1\]"),
        (lambda: AdaptiveClip(1.0, 0.5, -0.2, 5.0, 0), "rate must be finite and not negative"),
        (lambda: AdaptiveClip(1.0, 0.5, 0.2, math.nan, 0), "count_noise must be finite and not negative"),
        (lambda: AdaptiveClip(1.0, 0.5, 0.2, 5.0, 0).following(1.0, 11, 10, 0), "unclipped must be an integer from 0"),
        (lambda: AdaptiveClip(1.0, 0.5, 0.2, 5.0, 0).following(-1.0, 1, 10, 0), "clip_norm must be positive"),
        (lambda: AdaptiveClip(1.0, 0.5, 1e4, 0.0, 0).following(1.0, 10, 10, 6), "clip_norm after round 6 must be"),
    ],
)
def test_wrong_numbers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
