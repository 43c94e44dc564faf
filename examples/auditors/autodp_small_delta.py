# autodp 0.2.3.1: ana_gaussian_calibrator's noise at small δ and at large ε.
from autodp.calibrator_zoo import ana_gaussian_calibrator
from autodp.mechanism_zoo import ExactGaussianMechanism

for epsilon, delta in ((1.0, 1e-5), (1.0, 1e-12), (1.0, 1e-15), (50.0, 1e-5)):
    made = ana_gaussian_calibrator()(ExactGaussianMechanism, epsilon, delta)
    print(f"ε = {epsilon:g}, δ = {delta:g}: σ = {made.params['sigma']:.6f}, whose ε is {made.get_approxDP(delta):.6f}")
# Cause: calibrator_zoo.py, lines 121 and 164: Phi is 0.5·(1 + erf(t/√2)), which cancels in the tail. The search ends
# at an absolute error of 1e-12 in δ.
