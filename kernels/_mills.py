"""Mills ratio of the standard normal, the factor that its tails share."""

import math

import numpy as np
from numba import njit

from canaryproof.kernels._double_double import two_product

_SQRT_TWO_PI = math.sqrt(2.0 * math.pi)
# Chebyshev coefficients of (x + 5/4)·M(x) in t = (x − 4)/(x + 4), which maps [0, ∞) to [−1, 1); the next one is
# 1.6e-18. The tests compute them again from 40-digit values.
CHEBYSHEV = np.array(
    [
        1.2725115262071467,
        -0.3046224932023002,
        0.020743800751366576,
        0.018900314056009556,
        -0.009647902886839274,
        0.0024131767948044865,
        -0.00029537624309189863,
        -1.1787649890512378e-05,
        9.541330920150613e-06,
        -5.770599592496592e-07,
        -2.614068425663512e-07,
        3.252354223857277e-08,
        8.391779373866574e-09,
        -1.3316974227565597e-09,
        -3.3760223072356855e-10,
        4.8730203335752976e-11,
        1.6141739645272252e-11,
        -1.440864432732929e-12,
        -8.309523757523984e-13,
        1.1264569276406513e-14,
        4.188887433776862e-14,
        3.2205895880141987e-15,
        -1.861657278268525e-15,
        -3.7648352578267714e-16,
        5.743245886102456e-17,
        2.842710295128663e-17,
        5.521910634962067e-19,
        -1.58633290074368e-18,
    ]
)


@njit(cache=True)
def mills_ratio(x: float) -> float:
    """Return P(X > x) / φ(x) for a standard normal X, for x > −37 (below, it overflows); relative error below 1e-15."""
    y = abs(x)
    t = 2.0 * (y - 4.0) / (y + 4.0)
    b1, b2 = 0.0, 0.0
    for n in range(CHEBYSHEV.size - 1, 0, -1):
        b1, b2 = CHEBYSHEV[n] + (t * b1 - b2), b1
    value: float = (CHEBYSHEV[0] + (0.5 * t * b1 - b2)) / (y + 1.25)
    if x >= 0.0:
        return value
    # Rounding the exponent, up to 684, would cost 600 ulps.
    h, low = two_product(0.5 * x, x)
    return _SQRT_TWO_PI * math.exp(h) * (1.0 + low) - value
