# diffprivlib 0.6.6: GaussianAnalytic's noise at small δ and at large ε.
from math import exp, expm1

from diffprivlib.mechanisms import GaussianAnalytic
from scipy.stats import norm

for epsilon, delta in ((1.0, 1e-5), (1.0, 1e-15), (50.0, 1e-5)):
    s = GaussianAnalytic(epsilon=epsilon, delta=delta, sensitivity=1.0).variance(0.0) ** 0.5
    first, second = norm.logcdf(0.5 / s - epsilon * s), epsilon + norm.logcdf(-0.5 / s - epsilon * s)
    print(f"ε = {epsilon:g}, δ = {delta:g}: σ = {s:.6f}, whose δ is {-exp(first) * expm1(second - first):.3g}")
# Cause: mechanisms/gaussian.py, line 168: phi is (1 + erf(x/√2))/2, which cancels where x is far below 0.
# scipy.special.ndtr does not.
