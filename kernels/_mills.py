"""Mills ratio of the standard normal, the factor that its tails share, as a pair of floats."""

import numpy as np
from numba import njit

from canaryproof.kernels import _double_double as dd

_SQRT_TWO_PI = (2.5066282746310007, -1.8328579980459167e-16)
# Chebyshev coefficients of (x + 5/4)·M(x) in t = (x − 4)/(x + 4), which maps [0, ∞) to [−1, 1), and what rounding them
# to floats left of the first seven; the next coefficient is 3.3e-23. The tests compute them again from 60-digit values.
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
        -2.72206016418744e-19,
        5.363408117907292e-20,
        2.5755409341818846e-20,
        1.0403386820459698e-21,
        -1.4696650953504986e-21,
        -3.3981841933182346e-22,
    ]
)
CHEBYSHEV_LOW = np.array(
    [
        -4.0227685981038293e-17,
        -1.826071993645225e-18,
        9.409853908082701e-19,
        2.67746389006407e-19,
        1.0503748550086895e-19,
        9.033921203597525e-20,
        1.863336510503336e-21,
    ]
)


@njit(cache=True, error_model="numpy")
def mills_ratio(xh: float, xl: float) -> tuple[float, float]:
    """Return P(X > x) / φ(x) of a standard normal X for x > −37 (below, it overflows), relative error below 1e-19."""
    yh, yl = (xh, xl) if xh >= 0.0 else (-xh, -xl)
    th, tl = dd.divide(*dd.add(yh, yl, -4.0, 0.0), *dd.add(yh, yl, 4.0, 0.0))
    t = 2.0 * th
    b1, b2 = 0.0, 0.0
    for n in range(CHEBYSHEV.size - 1, CHEBYSHEV_LOW.size - 1, -1):
        b1, b2 = CHEBYSHEV[n] + (t * b1 - b2), b1
    first, second = (b1, 0.0), (b2, 0.0)
    # The rounding of the others is at most 1e-21; that of these would show.
    for n in range(CHEBYSHEV_LOW.size - 1, 0, -1):
        product = dd.multiply(2.0 * th, 2.0 * tl, *first)
        first, second = dd.add(*dd.subtract(*product, *second), CHEBYSHEV[n], CHEBYSHEV_LOW[n]), first
    product = dd.subtract(*dd.multiply(th, tl, *first), *second)
    product = dd.add(*product, CHEBYSHEV[0], CHEBYSHEV_LOW[0])
    value = dd.divide(*product, *dd.add(yh, yl, 1.25, 0.0))
    if xh >= 0.0:
        return value
    whole = dd.multiply(*_SQRT_TWO_PI, *dd.exp(*dd.multiply(0.5 * xh, 0.5 * xl, xh, xl)))
    return dd.subtract(*whole, *value)
