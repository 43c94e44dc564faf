import math
from types import SimpleNamespace

import numpy as np

from canaryproof.verify.papers.canife.measure import round_epsilon
from canaryproof.verify.papers.training import canife_record


def test_attacks_of_canife_have_the_delta_of_their_trials():
    scores = np.array([2.0, 0.1, 1.8, -0.2, 2.4, 0.3, 1.9, 0.5, 2.2, 1.0])
    inserted = np.array([True, False, True, False, True, False, True, False, True, True])
    found = {
        "scores": scores[np.newaxis, np.newaxis],
        "inserted": inserted[np.newaxis, np.newaxis],
        **{name: np.array([[value]]) for name, value in {"loss": 0.25, "initial_loss": 2.0, "norm": 1.0}.items()},
        "attempts": np.array([[1]]),
        "healthy": np.array([[True]]),
    }
    settings = SimpleNamespace(audit=SimpleNamespace(confidence=0.9))
    (attack,) = canife_record._attacks(found, 0, settings)
    assert attack.canary.health == 1.0 - 0.25 / 2.0
    expected = round_epsilon(scores[inserted], scores[~inserted], 0.1, alpha=0.1, zero_counts="capped")
    assert attack.epsilon.capped.epsilon == expected.epsilon
    assert 0.0 < expected.epsilon < math.inf
