"""The laws of estimates by simulation, by normal cosines drawn one by one."""

import math

import numpy as np
import pytest

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.claims import laws
from canaryproof.verify.estimators import estimators

DELTA = 8.2e-7


@pytest.mark.parametrize("mean", [0.0, 0.15, 0.9])
@pytest.mark.parametrize("name", ["fitted", "pinned"])
def test_laws_by_simulation(name: str, mean: float) -> None:
    cosines = mean + np.random.default_rng(6).standard_normal((4000, 1000))
    means, ratios = cosines.mean(axis=1), cosines.std(axis=1)
    fitted = name == "fitted"
    sample = estimators.both_directions(DELTA, means, ratios) if fitted else estimators.pinned_epsilon(DELTA, means)
    values = np.quantile(sample[sample > 0.0], (0.05, 0.3, 0.5, 0.7, 0.95))
    law = (laws.fitted if fitted else laws.pinned)(values, mean, DELTA)[0]
    for value, probability in zip(values, law, strict=True):
        share = float((sample <= value).mean())
        assert share == pytest.approx(probability, abs=5.0 * math.sqrt(probability * (1.0 - probability) / sample.size))


def test_the_pinned_law_at_its_median() -> None:
    mean = 1.0 / float(gaussian_mechanism.noise_multiplier(3.0, DELTA))
    assert laws.pinned(3.0, mean, DELTA)[0, 0] == pytest.approx(0.5, abs=1e-9)


def test_quantiles_and_means_invert_the_law() -> None:
    value = laws.quantile(laws.fitted, 1.0 - 1e-7, 0.3, DELTA)
    assert 1.0 - laws.fitted(value, 0.3, DELTA)[0, 0] == pytest.approx(1e-7, rel=1e-2)
    assert laws.mean_at(laws.fitted, value, 1.0 - 1e-7, DELTA) == pytest.approx(0.3, abs=1e-4)


def test_what_is_noticed_is_noticed_as_often_as_said() -> None:
    # At a level at which a simulation sees it: two-sided, 0.02.
    far = laws.noticed_estimate_law(0.3, DELTA, 0.02)
    rng = np.random.default_rng(7)
    ratios = np.sqrt(rng.chisquare(999, 4000) / 1000)
    sample = estimators.both_directions(DELTA, far + rng.standard_normal(4000) / math.sqrt(1000), ratios)
    p_values = laws.two_sided(laws.fitted(sample, 0.3, DELTA)[0])
    assert (p_values < 0.02).mean() == pytest.approx(0.9, abs=5.0 * math.sqrt(0.09 / 4000))


def test_two_estimates_of_one_mean_and_of_two() -> None:
    assert laws.same_mean(3.0, 3.0, DELTA) == 1.0
    assert laws.same_mean(1.0, 9.0, DELTA) < 1e-9
    far = laws.noticed_beside(3.0, DELTA, 1e-6)
    assert laws.same_mean(3.0, far, DELTA) < 1e-6
