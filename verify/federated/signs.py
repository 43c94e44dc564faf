"""Whether vectors point away from the canaries in them: gradients handed over for updates, or θ₀ − θ_T for θ_T − θ₀.

The evidence is A = Σ_t ⟨Σ_j c_j, δ_t⟩ over rounds t and their participants j, where δ_t is the delta's direction. If
the deltas do not depend on the canaries, A = Σ_j ⟨c_j, v_j⟩ with independent uniform directions c_j and ‖v_j‖ ≤ r_j,
the number of rounds in which j takes part. A coordinate of a uniform direction in R^d has a moment generating function
of at most exp(s²/2d), so that P(√d·A ≤ −x·√Σr_j²) ≤ exp(−x²/2), and x = 5.26 makes it 1e-6. Canaries with the right
sign make A larger, so that a false alarm is rarer still.

With the wrong sign √d·A/√Σr_j² has the mean −√k/s for k canaries that take part once, in deltas of norm s·√d clip
norms before they are divided, and a deviation of about 1: the power is Φ(√k/s − 5.26), 0.99 for k = 1,000 and s = 4.
Maxima over many rounds would hardly show it, since a canary then only misses one round of all.
"""

import math

import numpy as np
from numpy.typing import NDArray

LEVEL = 1e-6
LIMIT = math.sqrt(-2.0 * math.log(LEVEL))


def product(total: NDArray[np.float64], delta: NDArray[np.floating]) -> float:
    """Return ⟨total, δ⟩ for the direction δ of a vector that is not zero, without overflow."""
    scaled = delta / np.abs(delta).max().astype(np.float64)
    # numpy's own sums: a BLAS wakes threads that then wait busily for as long as the product takes.
    return float((total * scaled).sum() / math.sqrt(np.square(scaled).sum()))


def away(evidence: float, counts: NDArray[np.float64], dim: int) -> bool:
    """Tell whether the vectors point away from their canaries, falsely with a probability of at most ``LEVEL``.

    Parameters
    ----------
    evidence
        A, the sum of ``product``.
    counts
        Number r_j of rounds in which a canary takes part, shape (count,).
    dim
        Dimension d.
    """
    return math.sqrt(dim) * evidence < -LIMIT * float(np.linalg.norm(counts))
