"""The sharpest valid bound: (ε, δ)-privacy is tested for one ε after another until one passes.

Each test holds its level whatever the mechanism (``known_null``, ``guesses``), and what it looks at is declared for its
ε, not chosen from the scores. As the tests come in a fixed order and the first that does not reject ends them, each may
have all of α (Maurer, Hothorn and Lehmacher 1995; proof in ``proofs_check/lower_bounds.md``).
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.bounds import guesses, known_null
from canaryproof.verify.bounds.lower_bound import Method, if_independent
from canaryproof.verify.bounds.scores import Scores

Array = NDArray[np.float64]

# Tested values of ε: this far apart, absolutely and, where that is more, relatively. They are made in blocks.
_STEP, _RATIO, _LARGEST_EPSILON = 0.01, 1.015, 1e4
_BLOCK = 32


@cache
def epsilon_sequence() -> tuple[tuple[float, ...], ...]:
    """Return the finite values of ε that are tested, in blocks."""
    low = np.arange(0.0, _STEP / (_RATIO - 1.0), _STEP)
    steps = math.ceil(math.log(_LARGEST_EPSILON / low[-1]) / math.log(_RATIO))
    values = np.concatenate([low, low[-1] * _RATIO ** np.arange(1.0, steps + 1.0)])
    return tuple(tuple(values[i : i + _BLOCK].tolist()) for i in range(0, len(values), _BLOCK))


def fixed_sequence(scores: Scores, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the largest ε up to which every test rejects.

    Parameters
    ----------
    scores
        The scores.
    delta, alpha
        δ and α.

    Returns
    -------
    Bounds and thresholds: beside unobserved scores the lowest score that the last test's guesses say took part, and
    NaN beside an exact null, where scores count by many thresholds.
    """
    reject = guesses.tests(scores, delta, alpha) if scores.null is None else known_null.tests(scores, delta, alpha)
    audits = len(scores.observed)
    values, thresholds = np.zeros(audits), np.full(audits, math.nan)
    left = np.arange(audits)
    for epsilons in epsilon_sequence():
        if not len(left):
            return values, thresholds
        found, places = reject(left, epsilons)
        rejected = np.cumprod(found, axis=1).sum(axis=1)
        last = np.maximum(rejected - 1, 0)
        bounds = np.array(epsilons)[last]
        better = (rejected > 0) & (bounds > 0.0)
        values[left[better]] = bounds[better]
        thresholds[left[better]] = places[np.flatnonzero(better), last[better]]
        left = left[rejected == len(epsilons)]
    if scores.null is not None:
        # The last of the sequence: that ε is finite.
        values[left[known_null.excludes_all(scores, delta, alpha)[left]]] = math.inf
    return values, thresholds


METHODS = (
    Method(
        "fixed-sequence",
        "exact tests of one ε after another, each at thresholds declared for it (canaryproof)",
        fixed_sequence,
        ("independent scores",),
        if_independent,
    ),
)
