import numpy as np
import pytest

from canaryproof.verify.canife.running import RunningMeasurement


def test_a_rounds_score_has_the_canary_or_has_not():
    rng = np.random.default_rng(1)
    running, without = RunningMeasurement(np.random.default_rng(2)), []
    for _ in range(40):
        aggregate, canary = rng.normal(size=(2, 5))
        running.add(aggregate, canary)
        without.append((canary @ aggregate, canary @ canary))
    observed, unobserved = running.scores()
    assert len(observed) + len(unobserved) == 40
    assert min(len(observed), len(unobserved)) > 0
    assert all(min(abs(score - a - b) for a, b in without) < 1e-12 for score in observed)
    assert all(min(abs(score - a) for a, _ in without) < 1e-12 for score in unobserved)


def test_windows_split_the_rounds():
    running = RunningMeasurement(np.random.default_rng(3))
    for i in range(20):
        running.add([float(i)], [1.0])
    parts = [np.concatenate(running.scores(first, first + 5)) for first in (0, 5, 10, 15)]
    assert sorted(np.concatenate(parts)) == pytest.approx(sorted(np.concatenate(running.scores())))
    assert [len(part) for part in parts] == [5, 5, 5, 5]
