# dp-accounting 0.6.0: a pessimistic ε of 100 Gaussian rounds is below the exact one at δ = 1e-12.
import numpy as np
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from dp_accounting.pld import privacy_loss_distribution

exact = get_epsilon_gaussian(3.0 / 100**0.5, 1e-12)
one = privacy_loss_distribution.from_gaussian_mechanism(3.0, pessimistic_estimate=True)
for kind in (np.float64, np.longdouble):
    one._pmf_remove._probs = one._pmf_remove._probs.astype(kind)
    found = one.self_compose(100)
    values = found.get_epsilon_for_delta(1e-12), found.get_delta_for_epsilon(exact)
    print(f"{kind.__name__}: ε = {values[0]:.6f}, exactly {exact:.6f}; its δ is {values[1]:.6g}, exactly 1e-12")
# Cause: pld/common.py, lines 288 and 289: the transforms round to 1e-16 of the largest of some 500,000 probabilities.
# Above ε they lose 4e-15 in all, more than the tail_mass_truncation of 1e-15 that is added. In 80 bits nothing is lost.
