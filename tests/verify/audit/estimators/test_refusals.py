"""What the estimators and what they are made of refuse."""

from functools import partial

import numpy as np

from canaryproof.verify.audit.estimators.algorithm_1 import release
from canaryproof.verify.audit.estimators.epsilon_estimators import norm_estimate
from canaryproof.verify.audit.estimators.moments import from_dimension, from_two_groups
from canaryproof.verify.audit.estimators.noise_multiplier import Evidence, RoundTraces
from tests.refusals import refusals


def traces(cosines=np.array([0.1]), lengths=None, dim=10):  # noqa: B008
    return RoundTraces(cosines, np.ones_like(cosines) if lengths is None else lengths, dim, residual=True, rounds=1)


TABLE = {
    partial(release, count=7, dim=300, noise_multiplier=0.25, seed=5, data=np.eye(300)[:1]): [
        ("noise_multiplier", -1.0, "noise_multiplier must be finite and not negative"),
        ("noise_multiplier", np.nan, "noise_multiplier must be finite and not negative"),
        ("data", np.ones((2, 299)), "data must have the shape (n, 300)"),
        ("data", 2.0 * np.eye(300)[:1], "data vectors must have norm at most 1"),
        ("data", np.full((1, 300), np.nan), "data vectors must have norm at most 1"),
    ],
    partial(norm_estimate, release=np.ones(10), delta=1e-6): [
        ("release", np.zeros(10), "the release must not be the zero vector"),
    ],
    partial(from_dimension, observed=[0.1, 0.2], dim=10): [
        *(
            ("observed", value, "observed: a run needs at least two cosines")
            for value in ([], [0.1], 0.1, [[1.0], [2.0]])
        ),
        ("observed", [[0.1, 0.2], [0.3, 0.3]], "observed: the cosines of a run must not all be equal"),
    ],
    partial(from_two_groups, observed=[0.1, 0.2], unobserved=[0.3, 0.4]): [
        ("unobserved", [0.3, 0.3], "unobserved: the cosines of a run must not all be equal"),
    ],
    traces: [
        ("cosines", np.zeros(0), "cosines: must be one for each length, and at least one"),
        ("cosines", np.array([1.5]), "cosines: must lie in [-1, 1]"),
        ("cosines", np.array([np.nan]), "cosines: must lie in [-1, 1]"),
        ("lengths", np.array([0.0]), "lengths be positive and finite"),
        ("lengths", np.array([np.inf]), "lengths be positive and finite"),
        ("dim", 2, "dim: must be at least 3, not 2"),
    ],
    partial(traces, lengths=np.ones(1)): [
        ("cosines", np.zeros(2), "cosines: must be one for each length, and at least one"),
    ],
    Evidence(np.array([2]), np.zeros(1)).alarm: [
        ("level", value, "level: must lie strictly between 0 and 1, not ") for value in (0.0, 1.0, np.nan)
    ],
}


@refusals(TABLE)
def test_refusals(row):
    row.check()
