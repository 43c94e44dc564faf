"""Expected values of others' tests, where they are of functions of ours; numbers alone are taken over.

They are of Opacus 1.6.0, ``tests/accountants_test.py`` (Rényi accounting; its PRV and GDP accountants have no
counterpart here), and of dp-accounting 0.6.0, ``gaussian_mechanism_test.py``.
"""

import pytest

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.papers.accounting import analytical, sampled_gaussian


def test_opacus_s_renyi_accountant() -> None:
    # test_rdp_accountant: 7 decimals there
    found = sampled_gaussian.rdp(1.5, 1e-5, int(90 / 0.04), 0.04)
    assert found == pytest.approx(7.32911117143, abs=5e-8)


@pytest.mark.parametrize(("steps", "expected"), [(int(90 / 0.04), 1.416), (2000, 1.3562)])
def test_opacus_s_noise_multiplier(steps: int, expected: float) -> None:
    # test_get_noise_multiplier_rdp_epochs and _steps: theirs stops where ε is at most 0.01 too small
    assert sampled_gaussian.rdp(expected - 5e-5, 1e-5, steps, 0.04) >= 7.99
    exact = sampled_gaussian.poisson_noise_multiplier(8.0, 1e-5, steps, 0.04)
    assert exact <= expected + 5e-5
    assert exact == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("epsilon", [1e-5, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e5])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1, 0.5, 0.9])
def test_epsilon_inverts_the_noise_multiplier(epsilon: float, delta: float) -> None:
    # test_get_epsilon_gaussian_inverts_get_sigma_gaussian: rtol 1e-7 there
    sigma = gaussian_mechanism.noise_multiplier(epsilon, delta)
    assert float(gaussian_mechanism.epsilon(delta, sigma)) == pytest.approx(epsilon, rel=1e-7)


@pytest.mark.parametrize("sigma", [1e-5, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e5])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1, 0.5, 0.9])
def test_the_noise_multiplier_inverts_epsilon(sigma: float, delta: float) -> None:
    # test_get_sigma_gaussian_inverts_get_epsilon_gaussian
    epsilon = float(gaussian_mechanism.epsilon(delta, sigma))
    recovered = float(gaussian_mechanism.noise_multiplier(epsilon, delta))
    if epsilon == 0.0:
        assert recovered <= sigma
    else:
        assert recovered == pytest.approx(sigma, rel=1e-7)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-1, 1e-2, 1e-3])
def test_privacy_loss_distributions_agree_with_the_exact_epsilon(sigma: float, delta: float) -> None:
    # test_get_epsilon_gaussian_pld
    found = analytical.pld(sigma, delta)
    assert found == pytest.approx(float(gaussian_mechanism.epsilon(delta, sigma)), rel=1e-7)
