import math

import mpmath
import numpy as np
import pytest

from canaryproof.verify.papers.check.results import Context, Effort
from canaryproof.verify.papers.suites.canife import samples
from canaryproof.verify.papers.suites.canife.samples import SCENARIOS, SETTING
from canaryproof.verify.papers.training.canary_scores import CanaryScores


@pytest.mark.deep
def test_pairs_share_seeds_and_less_noise_is_in_scores():
    context = Context(Effort.QUICK, 11)
    without, with_fault = samples.pairs(context, "halved", 2)
    again, _ = samples.pairs(context, "halved", 2)
    assert again is without
    assert without.rounds.shape == with_fault.rounds.shape == (2, samples.rounds() // SETTING.every)
    assert np.all(without.rounds <= 1.0)
    assert np.all(without.cosines > 0.0)
    assert np.all(with_fault.values["canife-law"] > without.values["canife-law"])
    assert np.all(without.deviations >= 1.0)
    assert set(without.values) == set(with_fault.values)


def test_scenarios_are_those_of_the_benchmark():
    from canaryproof.verify.papers.comparison import canife

    # The faults of a server are judged here alone.
    ours = {scenario.shuffled for scenario in SCENARIOS.values() if scenario.fault is None}
    assert ours == {scenario.shuffled for scenario in canife.SCENARIOS}
    assert {scenario.fault for scenario in canife.SCENARIOS} == {None}


def test_the_first_versions_estimate_by_a_second_road():
    """From the raw scores, in plain numpy, and ε of the Gaussian mechanism in mpmath."""
    done = samples._bench().train(np.random.SeedSequence(12), SCENARIOS["poisson"])
    scores = CanaryScores.of(done.trainer)
    observed, unobserved = scores.observed["all"], scores.unobserved["all"]
    squares = np.sum((observed - observed.mean()) ** 2) + np.sum((unobserved - unobserved.mean()) ** 2)
    pooled = math.sqrt(squares / (len(observed) + len(unobserved)))
    distance = mpmath.mpf((observed.mean() - unobserved.mean()) / pooled)
    assert distance > 0.5

    def excess(epsilon):
        upper, lower = distance / 2 - epsilon / distance, -distance / 2 - epsilon / distance
        return mpmath.ncdf(upper) - mpmath.exp(epsilon) * mpmath.ncdf(lower) - SETTING.delta

    epsilon = mpmath.findroot(excess, (0, 100), solver="bisect", tol=1e-20, maxsteps=200)
    assert samples._values_by_method(done)["algorithm-3-pinned"] == pytest.approx(float(epsilon), rel=1e-9)
