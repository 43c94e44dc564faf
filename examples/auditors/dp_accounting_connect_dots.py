# dp-accounting 0.6.0: a pessimistic ε of 100 Gaussian rounds is below the exact one at δ = 1e-12.
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from dp_accounting.pld import privacy_loss_distribution

exact = get_epsilon_gaussian(3.0 / 100**0.5, 1e-12)
one = privacy_loss_distribution.from_gaussian_mechanism(3.0, pessimistic_estimate=True)
for truncated in (1e-15, 1e-18):
    found = one.self_compose(100, tail_mass_truncation=truncated)
    values = found.get_epsilon_for_delta(1e-12), found.get_delta_for_epsilon(exact)
    print(f"truncated {truncated:g}: ε = {values[0]:.6f}, exactly {exact:.6f}; its δ is {values[1]:.5g}, exactly 1e-12")
# Cause: with the default tail_mass_truncation, 1e-15, some 3e-15 of δ is lost in self_compose; with 1e-18 it is not.
