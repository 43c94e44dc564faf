"""The accountings agree where theory says so, and bound one another in the right order."""

import math

import pytest

from canaryproof.verify.papers.accounting import analytical

STACKOVERFLOW_DELTA = 341_000**-1.1


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 4.0])
def test_exact_is_below_every_bound_of_it(sigma):
    exact = analytical.gaussian(sigma, 1e-6)
    assert exact <= analytical.pld(sigma, 1e-6) * (1.0 + 1e-9)
    assert analytical.pld(sigma, 1e-6) == pytest.approx(exact, rel=1e-3)
    assert exact < analytical.loss_tail(sigma, 1e-6)
    dense = analytical.rdp(sigma, 1e-6, orders="dense")
    assert exact < dense <= analytical.rdp(sigma, 1e-6)
    assert dense < analytical.rdp(sigma, 1e-6, conversion="classical", orders="dense")


def test_classical_conversion_attains_its_closed_form():
    # min over α of α/(2σ²) + log(1/δ)/(α - 1) is 1/(2σ²) + √(2 log(1/δ))/σ.
    closed = 0.5 / 0.05**2 + math.sqrt(2.0 * math.log(1e6)) / 0.05
    found = analytical.rdp(0.05, 1e-6, conversion="classical", orders="dense")
    assert closed <= found == pytest.approx(closed, rel=1e-5)


def test_participations_compose_as_one_round_of_less_noise():
    assert analytical.gaussian(1.0, 1e-5, 16) == analytical.gaussian(0.25, 1e-5)
    assert analytical.loss_tail(1.0, 1e-5, 16) == analytical.loss_tail(0.25, 1e-5)
    assert analytical.rdp(1.0, 1e-5, 16) == pytest.approx(analytical.rdp(0.25, 1e-5), rel=1e-12)
    assert analytical.pld(1.0, 1e-5, 16) == analytical.pld(0.25, 1e-5)


def test_to_replace_a_record_is_to_remove_one_at_half_the_noise():
    found = analytical.readings(1.0, 1e-5, rounds=16, participations=4)
    for where, times in (("4 of 16 rounds", 4), ("every round", 16), ("one round", 1)):
        assert found[f"exact Gaussian, {where}"] == analytical.gaussian(1.0, 1e-5, times)
        # Its sum moves by twice the clip norm.
        assert found[f"exact Gaussian, {where}, replacing a record"] == analytical.gaussian(1.0, 1e-5, 4 * times)


def test_tail_of_the_loss_is_its_definition():
    # P(N(1/(2σ²), 1/σ²) > ε) by the standard library's erfc.
    epsilon = analytical.loss_tail(0.3, 1e-4)
    assert 0.5 * math.erfc((epsilon * 0.3 - 0.5 / 0.3) / math.sqrt(2.0)) == pytest.approx(1e-4, rel=1e-10)


def test_sampling_amplifies():
    whole = analytical.rdp(1.0, 1e-5, 100)
    sampled = analytical.rdp(1.0, 1e-5, 100, 0.01)
    assert analytical.pld(1.0, 1e-5, 100, 0.01) < sampled < analytical.rdp(1.0, 1e-5, 100, 0.01, "classical") < whole
    # A replacement is a removal and an addition: more than one of them, less than two in a group of two.
    replaced = analytical.without_replacement(1.0, 1e-5, 100, 10, 1000)
    assert sampled < replaced < analytical.without_replacement(1.0, 1e-5, 100, 10, 1000, "classical") < whole


def test_readings_name_everything_once():
    found = analytical.readings(1.0, 1e-5, rounds=10, sampling=0.1, participations=2)
    assert next(iter(found)) == "exact Gaussian, 2 of 10 rounds"
    assert found["exact Gaussian, 2 of 10 rounds"] == analytical.gaussian(1.0, 1e-5, 2)
    assert found["exact Gaussian, every round"] == analytical.gaussian(1.0, 1e-5, 10)
    assert found["exact Gaussian, one round"] == analytical.gaussian(1.0, 1e-5)
    assert found["PLD, Poisson sampling"] == analytical.pld(1.0, 1e-5, 10, 0.1)
    assert all(value > 0.0 for value in found.values())
    assert not any("Poisson" in name for name in analytical.readings(1.0, 1e-5))


def test_first_reading_is_one_round_where_there_is_one_participation():
    assert next(iter(analytical.readings(0.0496, STACKOVERFLOW_DELTA, rounds=2048))) == "exact Gaussian, one round"


@pytest.mark.parametrize(
    ("sigma", "epsilon", "clients"),
    [(0.0496, 300, 341_000), (0.0986, 100, 341_000), (0.2317, 30, 341_000),
     (0.0487, 300, 15 * 3383), (0.0958, 100, 15 * 3383), (0.2207, 30, 15 * 3383)],
)  # fmt: skip
def test_printed_noise_is_calibrated_by_the_tail_of_the_loss(sigma, epsilon, clients):
    delta = clients**-1.1
    assert analytical.loss_tail(sigma + 5e-5, delta) < epsilon < analytical.loss_tail(sigma - 5e-5, delta)
    assert analytical.gaussian(sigma - 5e-5, delta) < epsilon
