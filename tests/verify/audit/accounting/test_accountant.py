"""Claims give upper bounds of ε, named, and close to what independent ways compute."""

import doctest
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import absl.logging
import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from dp_accounting.dp_event import ZCDpEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import optimize, special, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.reference import gaussian_mechanism as reference
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.accounting.accountant import (
    Claim,
    RandomTrainings,
    as_claim,
    best_of,
    epsilon_delta,
    fixed_batches,
    from_event,
    gaussian,
    noise_multiplier,
    poisson,
)
from canaryproof.verify.audit.files.json_records import read, to_document
from tests.rows import chequered

ULPS = 64 * np.finfo(float).eps
Gaussian, Sampled = dp_accounting.GaussianDpEvent, dp_accounting.PoissonSampledDpEvent
Composed, Repeated = dp_accounting.ComposedDpEvent, dp_accounting.SelfComposedDpEvent
RELATIONS = {
    "add-or-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace": dp_accounting.NeighboringRelation.REPLACE_ONE,
}


def pair(neighbours, sigma, rate):
    """The dominating pairs' densities of one sampled round, by mpmath."""

    def density(mean):
        return lambda x: mp.npdf(x, mean, sigma)

    def mixed(mean):
        return lambda x: (1 - mpf(rate)) * density(0)(x) + mpf(rate) * density(mean)(x)

    return [(mixed(1), mixed(-1))] if neighbours == "replace" else [(mixed(1), density(0)), (density(0), mixed(1))]


def integrated_delta(neighbours, sigma, rate, epsilon):
    """δ(ε) of one sampled round: the hockey-stick divergence, integrated over where it is positive."""
    with mp.workdps(25):
        deltas = []
        for upper, lower in pair(neighbours, mpf(sigma), rate):
            # The likelihood ratio is monotone, so that the divergence is positive on one side of a root.
            grid = [mpf(x) / 4 * sigma for x in range(-100, 120 + int(8 / sigma))]
            positive = [x for x in grid if upper(x) > mp.exp(epsilon) * lower(x)]
            if not positive:
                deltas.append(mpf(0))
                continue
            low, high = (grid[0], positive[-1]) if positive[0] == grid[0] else (positive[0], grid[-1])
            edge = low if high == grid[-1] else high
            other = edge - sigma / 4 if edge == low else edge + sigma / 4
            root = mp.findroot(
                lambda x, u=upper, v=lower: mp.log(u(x)) - epsilon - mp.log(v(x)), (edge, other), solver="anderson"
            )
            ends = (root, grid[-1]) if high == grid[-1] else (grid[0], root)
            steps = mp.linspace(*ends, 12)
            deltas.append(mp.quad(lambda x, u=upper, v=lower: u(x) - mp.exp(epsilon) * v(x), steps))
        return max(deltas)


def test_a_record_set_to_zero_in_a_batch_of_fixed_size_moves_it_by_more_than_one_clip_norm():
    # In the batches without it another stands, with the opposite update: it moves the sum by two, or by one if zero.
    x = np.linspace(-12.0, 14.0, 400_001)
    width = x[1] - x[0]

    def density(move):
        return 0.99 * stats.norm.pdf(x) + 0.01 * stats.norm.pdf(x - move)

    excess = np.maximum(density(2.0) - np.exp(2.40) * density(1.0), 0.0).sum() * width
    assert excess < 1e-5 < np.maximum(density(2.0) - np.exp(2.39) * density(1.0), 0.0).sum() * width
    assert f"{accountant.poisson(1.0, rate=0.01, rounds=1).epsilon(1e-5):.2f}" == "0.20"


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize(
    ("sigma", "participations", "delta"),
    [(0.01, 1, 1e-5), (0.01, 10**6, 1e-300), (1.0, 8, 1e-5), (4.22, 1, 1e-6), (1e6, 1, 1e-30), (1e6, 10**6, 0.5)],
)
def test_known_rounds_are_exact(sigma, participations, delta, neighbours):
    claim = gaussian(sigma, participations=participations, rounds=10**6, neighbours=neighbours)
    with mp.workdps(60):
        noise = mpf(sigma) / mp.sqrt(participations) / (2 if neighbours == "replace" else 1)
        exact = float(reference.epsilon(delta, noise, digits=20))
    assert claim.epsilon(delta) == pytest.approx(exact, rel=ULPS, abs=1e-15)
    assert claim.basis(delta).startswith("exact Gaussian mechanism")
    assert claim.attacker == "known rounds"


@pytest.mark.parametrize(("epsilon", "printed"), [(1, "4.22"), (3, "1.54"), (10, "0.541")])
def test_noise_of_table_1_of_andrew_et_al(epsilon, printed):
    digits = len(printed.partition(".")[2])
    assert f"{noise_multiplier(epsilon, 1e-6):.{digits}f}" == printed
    assert gaussian(noise_multiplier(epsilon, 1e-6)).epsilon(1e-6) == pytest.approx(epsilon, rel=1e-14)


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize(
    ("sigma", "rate", "delta"), [(1.0, 0.1, 1e-5), (0.5, 0.01, 1e-3), (3.0, 0.5, 1e-10), (0.3, 0.9, 1e-5)]
)
def test_one_sampled_round_is_the_integral_of_its_pair(sigma, rate, delta, neighbours):
    claim = poisson(sigma, rate=rate, rounds=1, neighbours=neighbours)
    epsilon = claim.epsilon(delta)
    basis = "privacy loss distributions of 1 round" if neighbours == "replace" else "exact ε of one round"
    assert claim.basis(delta).startswith(basis)
    assert integrated_delta(neighbours, sigma, rate, epsilon) <= delta * (1.0 + 1e-12)
    assert integrated_delta(neighbours, sigma, rate, epsilon * (1.0 - 1e-4)) > delta * 0.999


def truth_of_one_round(sigma, rate, delta):
    """ε of one Poisson-sampled round, in closed form: δ(log(1 + q(e^ε − 1))) is q times δ(ε) without sampling."""
    return math.log1p(rate * math.expm1(float(gaussian_mechanism.epsilon(delta / rate, sigma))))


@pytest.mark.parametrize("delta", [1e-5, 1e-200])
@pytest.mark.parametrize(("sigma", "rate"), [(0.01, 0.1), (0.02, 0.5)])
def test_epsilon_above_700(sigma, rate, delta):
    claim = poisson(sigma, rate=rate, rounds=1)
    # The log of an e^ε that overflows.
    truth = float(gaussian_mechanism.epsilon(delta / rate, sigma)) + math.log(rate)
    assert truth <= claim.epsilon(delta) <= (truth - math.log(rate)) * (1.0 + 1e-7)


@pytest.mark.parametrize(("sigma", "rate", "rounds"), [(0.05, 0.1, 10), (0.2, 0.5, 4), (2.0, 0.3, 6)])
def test_known_rounds_with_a_binomial_number_are_its_mean(sigma, rate, rounds):
    delta = 1e-5
    found = accountant._by_known_rounds(poisson(sigma, rate=rate, rounds=rounds), delta)

    def mean(epsilon):
        return sum(
            mp.binomial(rounds, n) * mpf(rate) ** n * (1 - mpf(rate)) ** (rounds - n)
            * reference.delta(epsilon, mpf(sigma) / mp.sqrt(n), digits=20)
            for n in range(1, rounds + 1)
        )  # fmt: skip

    assert mean(found) <= delta
    assert mean(found * (1.0 - 1e-5)) > delta * (1.0 - 1e-6)


def test_noise_of_a_tenth_is_composed_to_a_percent():
    from dp_accounting.pld import privacy_loss_distribution as losses

    claim = poisson(0.1, rate=1e-4, rounds=100)
    # The losses of adding a record are too many for a grid, and at most 0.01 in all.
    assert claim.basis(1e-5).startswith("privacy loss distributions")
    below, above = (
        losses.from_gaussian_mechanism(
            0.1,
            sampling_prob=1e-4,
            pessimistic_estimate=high,
            value_discretization_interval=1e-2,
            use_connect_dots=high,
        )
        .self_compose(100)
        .get_epsilon_for_delta(1e-5)
        for high in (False, True)
    )
    # Both ends are 1% apart.
    assert below <= claim.epsilon(1e-5) <= 1.01 * above


def test_blocks_of_many_numbers_bound_their_mean():
    claim = poisson(40.0, rate=0.3, rounds=20_000)
    found = accountant._by_known_rounds(claim, 1e-6)
    numbers = np.arange(1, 20_001)
    weights = np.exp(
        special.gammaln(20_001) - special.gammaln(numbers + 1) - special.gammaln(20_001 - numbers)
        + numbers * math.log(0.3) + (20_000 - numbers) * math.log(0.7)
    )  # fmt: skip

    def mean(epsilon):
        return float(weights @ gaussian_mechanism.delta(epsilon, 40.0 / np.sqrt(numbers)))

    assert mean(found) <= 1e-6 < mean(found * 0.995)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize(("sigma", "rate", "rounds"), [(1.0, 0.125, 64), (3.0, 0.05, 1000), (0.7, 0.01, 300)])
def test_composition_lies_between_distributions_rounded_down_and_up(sigma, rate, rounds, neighbours):
    distance = 5e-4

    def rounded(pessimistic):
        one = pld.privacy_loss_distribution.from_gaussian_mechanism(
            sigma, pessimistic_estimate=pessimistic, value_discretization_interval=distance, sampling_prob=rate,
            use_connect_dots=False, neighboring_relation=RELATIONS[neighbours],
        )  # fmt: skip
        return one.self_compose(rounds).get_epsilon_for_delta(1e-5)

    found = poisson(sigma, rate=rate, rounds=rounds, neighbours=neighbours).epsilon(1e-5)
    low, high = rounded(False), rounded(True)
    assert low <= found <= high
    # Rounding to both sides is as far as a round's distance times their number; dots are connected closer.
    assert found <= 0.5 * (low + high) + 0.05 * (high - low)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(("sigma", "rate", "rounds"), [(1.0, 1 / 8, 64), (0.5, 0.01, 100), (20.0, 0.999, 100)])
def test_the_library_has_the_same_epsilon_to_its_distance_of_losses(sigma, rate, rounds):
    library = pld.PLDAccountant().compose(Repeated(Sampled(rate, Gaussian(sigma)), rounds)).get_epsilon(1e-5)
    assert poisson(sigma, rate=rate, rounds=rounds).epsilon(1e-5) == pytest.approx(library, rel=1e-4)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("sigma", "rate", "rounds", "distance"),
    [(1.0, 0.125, 64, 2e-5), (1.0, 0.001, 10**6, 3e-5), (30.0, 0.001, 10**5, 3e-6)],
)
def test_finer_distances_of_losses_change_little(sigma, rate, rounds, distance):
    library = pld.PLDAccountant(value_discretization_interval=distance)
    fine = library.compose(Repeated(Sampled(rate, Gaussian(sigma)), rounds)).get_epsilon(1e-6)
    assert poisson(sigma, rate=rate, rounds=rounds).epsilon(1e-6) == pytest.approx(fine, rel=0.05)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_two_sampled_rounds_are_the_integral_over_the_plane(neighbours):
    sigma, rate, delta = 1.0, 0.2, 1e-3
    epsilon = poisson(sigma, rate=rate, rounds=2, neighbours=neighbours).epsilon(delta)
    x = np.linspace(-9.0, 10.0, 4001)

    def normal(mean):
        return np.exp(-0.5 * (x - mean) ** 2) / math.sqrt(2.0 * math.pi)

    mixed, other = (1.0 - rate) * normal(0.0) + rate * normal(1.0), normal(0.0)
    if neighbours == "replace":
        other = (1.0 - rate) * normal(0.0) + rate * normal(-1.0)

    def integrated(upper, lower, at):
        return (
            np.maximum(0.0, np.outer(upper, upper) - math.exp(at) * np.outer(lower, lower)).sum() * (x[1] - x[0]) ** 2
        )

    def divergence(at):
        return max(integrated(mixed, other, at), integrated(other, mixed, at))

    assert divergence(epsilon) <= delta * (1.0 + 1e-5)
    assert divergence(epsilon * (1.0 - 1e-3)) > delta


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_opposite_updates_dominate_every_replacement(epsilon):
    sigma, rate, rng = 0.7, 0.3, np.random.default_rng(5)
    axis = np.linspace(-5.5, 5.5, 401)
    plane = np.stack(np.meshgrid(axis, axis), axis=-1)

    def divergence(update, other):
        first, second, zero = (
            np.exp(-0.5 * ((plane - mean) ** 2).sum(axis=-1) / sigma**2) for mean in (update, other, np.zeros(2))
        )
        upper, lower = ((1.0 - rate) * zero + rate * part for part in (first, second))
        area = (axis[1] - axis[0]) ** 2 / (2.0 * math.pi * sigma**2)
        return np.maximum(0.0, upper - math.exp(epsilon) * lower).sum() * area

    most = divergence(np.array([1.0, 0.0]), np.array([-1.0, 0.0]))
    for _ in range(20):
        angles, radii = rng.uniform(0.0, 2.0 * math.pi, 2), rng.uniform(0.0, 1.0, 2) ** 0.25
        updates = radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        # The grid's errors are below 4e-4.
        assert divergence(*updates) <= most * (1.0 + 4e-4)
    assert most == pytest.approx(float(integrated_delta("replace", sigma, rate, epsilon)), rel=4e-4)


@pytest.mark.parametrize("delta", [1e-16, 1e-30, 1e-280])
@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.1), (3.0, 0.01)])
def test_replacement_costs_no_more_than_a_removal_and_an_addition(sigma, rate, delta):
    claim, step = (poisson(sigma, rate=rate, rounds=1, neighbours=each) for each in ("replace", "add-or-remove"))
    epsilon = claim.epsilon(delta)
    # A removal alone is no more than a replacement.
    assert truth_of_one_round(sigma, rate, delta) <= epsilon <= claim.with_known_rounds(1).epsilon(delta)
    assert epsilon <= 2.0 * step.epsilon(max(1e-300, delta * delta)) + 1e-9


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("sigma", [0.8, 2.0])
def test_a_fixed_cohort_is_no_better_than_one_of_its_pairs(sigma):
    # Of two records one is drawn; the other's update is 0. The pair is that of Poisson sampling at 1/2.
    event = dp_accounting.SampledWithoutReplacementDpEvent(2, 1, Gaussian(sigma))
    claim = from_event(event, neighbours="replace")
    least = poisson(sigma, rate=0.5, rounds=1, neighbours="replace").epsilon(1e-5)
    assert least * (1.0 - 1e-5) <= claim.epsilon(1e-5) <= gaussian(sigma, neighbours="replace").epsilon(1e-5)


# Distributions lose δ to rounding by transforms; without sampling the loss is known.


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(("sigma", "rounds"), [(3.0, 100), (10.0, 1000), (100.0, 10_000)])
def test_transforms_lose_far_less_than_is_allowed_for(sigma, rounds):
    library = pld.privacy_loss_distribution.from_gaussian_mechanism(sigma, value_discretization_interval=2e-4)
    losses = library.self_compose(rounds)
    joint = sigma / math.sqrt(rounds)
    epsilons = np.linspace(0.0, float(gaussian_mechanism.epsilon(1e-15, joint)), 40)
    lost = gaussian_mechanism.delta(epsilons, joint) - losses.get_delta_for_epsilon(list(epsilons))
    assert lost.max() <= 0.03 * accountant._LOST * rounds


def test_library_s_renyi_accountant_takes_a_replacement_to_move_by_one_clip_norm():
    # Otherwise a claim's noise would not have to be halved for it.
    event = Gaussian(1.0)
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    printed = rdp.RdpAccountant(neighboring_relation=relation).compose(event).get_epsilon(1e-5)
    assert printed < pld.PLDAccountant(relation).compose(event).get_epsilon(1e-5)
    assert gaussian(1.0, neighbours="replace").epsilon(1e-5) == gaussian(0.5).epsilon(1e-5)


@given(
    sigma=st.floats(0.01, 1e6),
    taken=st.integers(1, 10**6),
    exponent=st.floats(-307.0, -0.01),
    factor=st.floats(1.001, 10.0),
)
def test_known_rounds_are_monotone(sigma, taken, exponent, factor):
    delta = 10.0**exponent
    claim = gaussian(sigma, participations=taken, rounds=10**6)
    epsilon = claim.epsilon(delta)
    assert claim.epsilon(min(delta * factor, 0.999)) <= epsilon
    assert gaussian(min(1e6, sigma * factor), participations=taken, rounds=10**6).epsilon(delta) <= epsilon
    assert claim.with_known_rounds(max(0, taken - 1)).epsilon(delta) <= epsilon
    assert gaussian(sigma, participations=taken, neighbours="replace").epsilon(delta) >= epsilon


@pytest.mark.deep
@settings(max_examples=60)
@given(
    sigma=st.floats(0.4, 20.0),
    rate=st.floats(0.001, 0.9),
    rounds=st.integers(1, 60),
    exponent=st.floats(-290.0, -1.0),
    factor=st.floats(1.2, 5.0),
)
def test_sampled_rounds_are_monotone_at_random(sigma, rate, rounds, exponent, factor):
    are_monotone(sigma, rate, rounds, 10.0**exponent, factor)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("sigma", "rate", "rounds", "delta", "factor"),
    [
        (1.0, 0.1, 20, 1e-5, 2.0),
        pytest.param(4.0, 0.5, 60, 1e-12, 1.2, marks=pytest.mark.deep),
        pytest.param(0.5, 0.02, 5, 1e-3, 5.0, marks=pytest.mark.deep),
        (2.0, 0.3, 9, 1e-100, 2.0),
    ],
)
def test_sampled_rounds_are_monotone_and_amplified(sigma, rate, rounds, delta, factor):
    are_monotone(sigma, rate, rounds, delta, factor)


def are_monotone(sigma, rate, rounds, delta, factor):
    claim = poisson(sigma, rate=rate, rounds=rounds)
    epsilon, tolerance = claim.epsilon(delta), 1.0 + 1e-6
    assert truth_of_one_round(sigma, rate, delta) <= epsilon * tolerance if delta < rate else epsilon >= 0.0
    assert epsilon <= claim.with_known_rounds(rounds).epsilon(delta)
    assert poisson(sigma, rate=rate, rounds=rounds, neighbours="replace").epsilon(delta) >= epsilon / tolerance
    assert claim.epsilon(min(0.5, delta * factor)) <= epsilon * tolerance
    assert poisson(sigma * factor, rate=rate, rounds=rounds).epsilon(delta) <= epsilon * tolerance
    assert poisson(sigma, rate=rate / factor, rounds=rounds).epsilon(delta) <= epsilon * tolerance
    assert poisson(sigma, rate=rate, rounds=rounds + 5).epsilon(delta) >= epsilon / tolerance


def test_nothing_left_to_chance_is_known():
    assert poisson(1.0, rate=1, rounds=20) == gaussian(1.0, participations=20)
    nobody = poisson(1.0, rate=0, rounds=20)
    assert nobody == gaussian(1.0, participations=0, rounds=20)
    assert nobody.epsilon(1e-300) == 0.0
    assert nobody.basis(1e-300) == "the record takes part in no round"
    assert nobody.power([0.0, 1e-9, 1.0]) == pytest.approx([0.0, 1e-9, 1.0], rel=1e-14)


@pytest.mark.deep(beyond=3)
@pytest.mark.parametrize(
    ("mechanism", "neighbours"),
    chequered(
        [(0.01, 0.5, 10**6), (1e6, 0.5, 10**6), (1.0, 1e-6, 10**6), (1.0, 1.0 - 1e-12, 3), (0.3, 0.01, 10**5)],
        ["replace", "add-or-remove"],
    ),
)
def test_extremes_are_served(mechanism, neighbours):
    sigma, rate, rounds = mechanism
    claim = poisson(sigma, rate=rate, rounds=rounds, neighbours=neighbours)
    known = claim.with_known_rounds(rounds)
    for delta in (1e-5, 1e-300):
        assert 0.0 <= claim.epsilon(delta) <= known.epsilon(delta) < math.inf
        assert claim.basis(delta)


def test_power_of_known_rounds_is_the_gaussian_one():
    claim = gaussian(2.0, participations=9, rounds=20)
    alpha = np.array([0.0, 1e-300, 1e-20, 1e-3, 0.5, 1.0 - 1e-9, 1.0])
    power, missed = claim.power(alpha), claim.tradeoff(alpha)
    with mp.workdps(40):
        for each, found in list(zip(alpha, power, strict=True))[1:-1]:
            exact = mp.ncdf(mp.sqrt(2) * mp.erfinv(2 * mpf(each) - 1) + mpf(3) / 2) if each > 1e-10 else None
            if exact is not None:
                assert found == pytest.approx(float(exact), rel=1e-12)
    assert power + missed == pytest.approx(np.ones(7), abs=1e-15)
    assert power[0] == 0.0
    assert power[-1] == 1.0
    assert 0.0 < power[1] < 1e-200
    replaced = gaussian(4.0, participations=9, rounds=20, neighbours="replace")
    assert list(replaced.power(alpha)) == list(power)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_power_of_a_sampled_round_is_that_of_the_best_test(neighbours):
    sigma, rate = 0.8, 0.3
    claim = poisson(sigma, rate=rate, rounds=1, neighbours=neighbours)
    # The best tests reject above a threshold, or below it.
    thresholds = np.linspace(-4.0, 5.0, 181)

    def above(mean):
        return special.ndtr((mean - thresholds) / sigma)

    mixed = (1.0 - rate) * above(0.0) + rate * above(1.0)
    null = (1.0 - rate) * above(0.0) + rate * above(-1.0) if neighbours == "replace" else above(0.0)
    false, true = np.append(null, 1.0 - mixed), np.append(mixed, 1.0 - null)
    assert np.all(true <= claim.power(false) + 1e-12)
    # A claim is for both directions, so that tests may be mixed: this is their concave hull, by its tangents.
    slopes = np.exp(np.linspace(-8.0, 8.0, 2001))[:, None]
    tangents = np.max(true - slopes * false, axis=1, keepdims=True) + slopes * null
    assert np.max(claim.power(null) - tangents.min(axis=0)) < 1e-3


def test_power_of_a_sampled_claim_lies_between_those_of_knowing_less_and_more():
    claim = poisson(1.0, rate=0.125, rounds=64)
    alpha = np.array([1e-250, 1e-30, 1e-9, 1e-3, 0.1, 0.5])
    power = claim.power(alpha)
    assert np.all(np.diff(power) > 0.0)
    assert np.all(power >= alpha)
    assert np.all(power <= claim.with_known_rounds(64).power(alpha))
    for delta in (1e-3, 1e-6, 1e-9):
        # Sums over few values of the mean are finer than one pair.
        assert np.all(power <= (delta + math.exp(claim.epsilon(delta)) * alpha) * (1.0 + 1e-3))
    assert power + claim.tradeoff(alpha) == pytest.approx(np.ones(6), abs=1e-12)


def test_a_stated_epsilon_is_all_that_is_known():
    claim = epsilon_delta(1.0, 1e-5)
    assert claim.attacker == "unstated"
    assert claim.epsilon(1e-5) == claim.epsilon(1e-3) == 1.0
    assert claim.epsilon(9e-6) == math.inf
    assert claim.basis(9e-6) == "nothing is stated below δ = 1e-05"
    alpha = np.array([0.0, 0.01, 0.5, 1.0])
    expected = np.maximum.reduce([0 * alpha, 1 - 1e-5 - math.e * alpha, (1 - 1e-5 - alpha) / math.e])
    assert claim.tradeoff(alpha) == pytest.approx(expected, abs=1e-15)
    assert claim.power(alpha) == pytest.approx(1.0 - expected, abs=1e-15)


@pytest.mark.deep(beyond=3)
@pytest.mark.parametrize(
    ("target", "known"),
    chequered(
        [(2.0, 1e-5), (4.0, 1e-20)],
        [
            ({"rate": 0.125, "rounds": 64}, lambda sigma: poisson(sigma, rate=0.125, rounds=64)),
            ({"rate": 0.01, "rounds": 50, "neighbours": "replace"},
             lambda sigma: poisson(sigma, rate=0.01, rounds=50, neighbours="replace")),
            ({"rate": 1.0, "rounds": 7}, lambda sigma: gaussian(sigma, participations=7)),
            ({"participations": 3, "rounds": 7, "neighbours": "replace"},
             lambda sigma: gaussian(sigma, participations=3, neighbours="replace")),
        ],
    ),
)  # fmt: skip
def test_noise_multiplier_inverts_epsilon(target, known):
    (epsilon, delta), (arguments, claim) = target, known
    sigma = noise_multiplier(epsilon, delta, **arguments)
    assert claim(sigma).epsilon(delta) <= epsilon * (1.0 + ULPS)
    assert claim(sigma * (1.0 - 1e-5)).epsilon(delta) > epsilon


def test_noise_multiplier_stays_in_its_range():
    assert noise_multiplier(9999.0, 1e-5) == 0.01
    assert noise_multiplier(9999.0, 1e-5, rate=0.5, rounds=1) == 0.01


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("epsilon", "delta", "arguments"),
    [
        (8.0, 1e-6, {"rate": 0.01, "rounds": 2000}),
        (0.002, 1e-4, {"rate": 1e-5, "rounds": 100}),
        (300.0, 1e-5, {"rate": 0.3, "rounds": 100}),
        (2.0, 1e-30, {"rate": 0.001, "rounds": 10**5, "neighbours": "replace"}),
        (0.5, 1e-10, {"rate": 1e-3, "rounds": 10**7}),
    ],
)
def test_noise_multiplier_of_sampled_rounds_takes_few_accountings(epsilon, delta, arguments, monkeypatch):
    asked = []
    bound = accountant._bound
    monkeypatch.setattr(accountant, "_bound", lambda claim, at: asked.append(claim) or bound(claim, at))
    sigma = noise_multiplier(epsilon, delta, **arguments)
    # Each of them takes up to some seconds. From the ends of the range on there are 18 and more.
    assert len(set(asked)) <= 12
    assert poisson(sigma, **arguments).epsilon(delta) <= epsilon
    assert sigma == 0.01 or poisson(sigma * (1.0 - 1e-5), **arguments).epsilon(delta) > epsilon


def test_quantile_of_participations_is_binomial():
    claim = poisson(1.0, rate=0.125, rounds=64)
    for probability in (0.0, 1e-6, 0.3, 0.5, 0.999, 1.0 - 1e-9):
        n = claim.participation_quantile(probability)
        assert special.bdtr(n, 64, 0.125) >= probability
        assert n == 0 or special.bdtr(n - 1, 64, 0.125) < probability
    assert claim.participation_quantile(1.0) <= 64
    assert claim.with_known_rounds(8).participation_quantile(0.9) == 8
    # Of a thousand records, drawn here, the most is larger.
    most = np.random.default_rng(0).binomial(64, 0.125, (5000, 1000)).max(axis=1)
    n = claim.participation_quantile(0.99, records=1000)
    assert stats.binom.sf((most > n).sum() - 1, 5000, 0.01) > 1e-6
    assert special.bdtrc(n, 64, 0.125) * 1000 <= 0.01 < special.bdtrc(n - 1, 64, 0.125) * 1000


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_events_are_the_claims_that_they_describe(neighbours):
    def claimed(event):
        return from_event(event, neighbours=neighbours)

    known = gaussian(1.5, participations=6, neighbours=neighbours)
    sampled = poisson(1.5, rate=0.1, rounds=6, neighbours=neighbours)
    assert claimed(Gaussian(1.5)) == gaussian(1.5, neighbours=neighbours)
    assert claimed(Repeated(Gaussian(1.5), 6)) == claimed(Composed([Gaussian(1.5)] * 6)) == known
    assert claimed(Repeated(Composed([Sampled(0.1, Gaussian(1.5)), dp_accounting.NoOpDpEvent()]), 6)) == sampled
    # Rounds of one sample are one round with less noise.
    assert claimed(Sampled(0.1, Repeated(Gaussian(3.0), 4))) == poisson(1.5, rate=0.1, rounds=1, neighbours=neighbours)
    # Squares of 1/σ add up: 1/0.8² + 1/0.6² = 1/0.48².
    mixed = claimed(Composed([Gaussian(0.8), Gaussian(0.6)]))
    assert mixed.epsilon(1e-9) == pytest.approx(gaussian(0.48, neighbours=neighbours).epsilon(1e-9), rel=1e-13)
    assert mixed.power(0.01) == pytest.approx(gaussian(0.48, neighbours=neighbours).power(0.01), rel=1e-12)
    assert mixed.attacker == "known rounds"
    assert mixed.noise_multiplier is None
    assert hash(mixed) == hash(claimed(Composed([Gaussian(0.8), Gaussian(0.6)])))


def test_rounds_of_several_rates_compose():
    event = Composed([Repeated(Sampled(0.1, Gaussian(1.0)), 10), Repeated(Sampled(0.2, Gaussian(1.0)), 10)])
    claim = from_event(event)
    fewer, more = (poisson(1.0, rate=rate, rounds=20) for rate in (0.1, 0.2))
    for delta in (1e-5, 1e-40):
        assert fewer.epsilon(delta) < claim.epsilon(delta) < more.epsilon(delta)
    assert claim.attacker == "sampling"
    assert claim.with_known_rounds(4) == gaussian(1.0, participations=4, rounds=20)
    assert from_event(event, neighbours="replace").basis(1e-40).endswith("of 20 rounds of several mechanisms")


def test_other_events_have_the_library_s_epsilon():
    laplace = from_event(dp_accounting.LaplaceDpEvent(1.0))
    # δ(ε) = 1 − e^((ε − 1)/2).
    assert laplace.epsilon(1e-3) == pytest.approx(1.0 + 2.0 * math.log1p(-1e-3), abs=1e-4)
    assert laplace.attacker == "known rounds"
    # Losses of 500 are on a wider grid.
    loud = from_event(dp_accounting.LaplaceDpEvent(2e-3)).epsilon(0.999)
    assert 0.0 <= loud - (500.0 + 2.0 * math.log(1e-3)) < 0.1
    concentrated = from_event(ZCDpEvent(0.02))
    # A Gaussian mechanism of noise multiplier 5 is one of those with ρ = 1/50.
    assert concentrated.epsilon(1e-5) >= gaussian(5.0).epsilon(1e-5)
    assert concentrated.basis(1e-5).startswith("Rényi")
    drawn = from_event(dp_accounting.SampledWithoutReplacementDpEvent(1000, 10, Gaussian(2.0)), neighbours="replace")
    assert drawn.epsilon(1e-5) <= gaussian(2.0, neighbours="replace").epsilon(1e-5)
    assert drawn.attacker == "sampling"
    revealed = from_event(dp_accounting.NonPrivateDpEvent())
    assert revealed.epsilon(0.5) == math.inf
    assert revealed.basis(0.5) == "no accounting gives a finite ε"
    assert revealed.power(0.1) == 1.0
    assert revealed.tradeoff(0.1) == 0.0


@pytest.mark.parametrize(
    ("event", "neighbours", "pure"),
    [
        (dp_accounting.LaplaceDpEvent(1.0), "add-or-remove", 1.0),
        (Repeated(dp_accounting.LaplaceDpEvent(1.0), 3), "add-or-remove", 3.0),
        (dp_accounting.RandomizedResponseDpEvent(0.5, 2), "replace", math.log(3.0)),
        (
            Repeated(Sampled(0.1, dp_accounting.LaplaceDpEvent(1.0)), 10),
            "add-or-remove",
            10 * math.log1p(0.1 * (math.e - 1.0)),
        ),
    ],
)
def test_a_pure_epsilon_holds_at_every_delta(event, neighbours, pure):
    claim = from_event(event, neighbours=neighbours)
    for delta in (1e-3, 1e-9, 1e-13, 1e-15, 1e-20, 1e-100):
        assert claim.epsilon(delta) <= pure * (1.0 + ULPS)
    assert claim.epsilon(0.0) == pytest.approx(pure, rel=1e-15)
    assert claim.basis(0.0) == "pure ε of the mechanism"


@pytest.mark.parametrize(("steps", "levels"), [(1, 1), (2, 2), (3, 2), (4, 3), ([5, 8], 4), (1023, 10)])
def test_a_record_of_one_round_is_in_one_node_of_each_level_of_a_tree(steps, levels):
    tree = dp_accounting.SingleEpochTreeAggregationDpEvent(2.0, steps)
    claim = from_event(tree)
    assert claim.attacker == "known rounds"
    assert claim.epsilon(1e-6) == pytest.approx(gaussian(2.0, participations=levels).epsilon(1e-6), rel=1e-13)
    special_relation = dp_accounting.NeighboringRelation.REPLACE_SPECIAL
    library = rdp.RdpAccountant(neighboring_relation=special_relation).compose(tree)
    assert claim.epsilon(1e-6) <= library.get_epsilon(1e-6)


# By an accountant of its own on a grid of losses, rounded up and down, for the pair and for its two directions.
@pytest.mark.parametrize(
    ("batch", "records", "rounds", "neighbours", "attained", "dominated"),
    [
        (100, 10_000, 200, "replace", 7.73, 8.05),
        (100, 1000, 50, "replace", 22.6, 24.0),
        (100, 1000, 50, "add-or-remove", 22.6, 22.6),
    ],
)
def test_batches_of_fixed_size_lie_between_what_is_attained_and_the_pair(
    batch, records, rounds, neighbours, attained, dominated
):
    claim = fixed_batches(1.0, batch=batch, records=records, rounds=rounds, neighbours=neighbours)
    assert claim.attacker == "sampling"
    assert claim.epsilon(1e-5) == pytest.approx(dominated, rel=2e-3)
    assert claim.attained_epsilon(1e-5) == pytest.approx(attained / 1.01, rel=2e-3)
    event = dp_accounting.SampledWithoutReplacementDpEvent(records, batch, Gaussian(1.0))
    assert claim == from_event(Repeated(event, rounds), neighbours=neighbours)


def test_one_round_of_a_batch_is_attained_by_a_record_among_its_opposites():
    # The likelihood ratio of (1 − q)N(0) + qN(2) to N(0) rises, so that the best test has a threshold.
    claim = fixed_batches(1.0, batch=1, records=10, rounds=1, neighbours="replace")
    epsilon = claim.attained_epsilon(1e-3)
    thresholds = np.linspace(0.0, 8.0, 801)
    mixed = 0.9 * special.ndtr(-thresholds) + 0.1 * special.ndtr(2.0 - thresholds)
    assert np.max(mixed - math.exp(epsilon) * special.ndtr(-thresholds)) == pytest.approx(1e-3, rel=1e-4)
    assert epsilon == claim.epsilon(1e-3)


def test_a_record_set_to_zero_in_a_batch_of_fixed_size_is_further_than_one_clip_norm():
    # All others are its opposites, and one of them is in the batch where it is not.
    x = np.linspace(-12.0, 14.0, 40_001)

    def mixed(mean):
        return (0.99 * np.exp(-0.5 * x**2) + 0.01 * np.exp(-0.5 * (x - mean) ** 2)) / math.sqrt(2.0 * math.pi)

    def delta(epsilon):
        return np.maximum(mixed(2.0) - math.exp(epsilon) * mixed(1.0), 0.0).sum() * (x[1] - x[0])

    batches = fixed_batches(1.0, batch=1, records=100, rounds=1, neighbours="replace")
    assert delta(poisson(1.0, rate=0.01, rounds=1).epsilon(1e-5)) > 10 * 1e-5
    assert delta(batches.epsilon(1e-5)) < 1e-5 < delta(0.7 * batches.epsilon(1e-5))


def test_attained_is_exact_at_known_rounds_and_0_where_nothing_is_known():
    known = gaussian(1.0, participations=3)
    assert known.attained_epsilon(1e-5) == known.epsilon(1e-5)
    assert epsilon_delta(3.0, 1e-5).attained_epsilon(1e-5) == 0.0
    assert from_event(dp_accounting.LaplaceDpEvent(1.0)).attained_epsilon(1e-5) == 0.0
    sampled = poisson(1.0, rate=0.125, rounds=64)
    assert 0.98 * sampled.epsilon(1e-5) < sampled.attained_epsilon(1e-5) < sampled.epsilon(1e-5)


def test_what_is_attained_is_not_above_the_truth_where_losses_are_too_small_for_a_grid():
    # The chance to take part at all is 0.0014 here, so that ε is at most 0.0002.
    bracket = poisson(1.0, rate=3.4e-7, rounds=4259).bracket(1e-9)
    assert bracket.attained <= bracket.dominated < 2e-4


def test_where_adding_a_record_has_too_many_losses_for_a_grid_their_largest_sum_serves():
    # It was the ε of known rounds, 98.
    bracket = poisson(0.15, rate=2e-9, rounds=126).bracket(1e-22)
    assert bracket.attained < bracket.dominated < 1.011 * bracket.attained


def test_the_best_of_several_trainings_costs_all_of_them():
    assert best_of(gaussian(1.0, participations=2, rounds=5), trainings=3) == gaussian(1.0, participations=6, rounds=15)
    assert best_of(poisson(1.0, rate=0.1, rounds=5), trainings=3) == poisson(1.0, rate=0.1, rounds=15)
    assert best_of(epsilon_delta(2.0, 1e-6), trainings=40) == epsilon_delta(80.0, 40 * 1e-6)
    laplace = dp_accounting.LaplaceDpEvent(2.0)
    assert best_of(from_event(laplace), trainings=3).epsilon(0.0) == 1.5


AFFIRMED = {"settings_drawn_anew": True, "only_winner_released": True, "score_covered": True}
BINOMIAL = "truncated negative binomial"


def selection_epsilon(sigma, law, mean, shape, delta):
    """ε of private selection from a Gaussian mechanism, by theorems 2 and 6 of Papernot and Steinke on own grids."""
    orders = 1.0 + np.geomspace(1e-3, 1e4, 4001)

    def renyi(order):
        return order / (2.0 * sigma**2)

    def converted(divergences, at=delta):
        epsilons = divergences + np.log1p(-1.0 / orders) - (math.log(at) + np.log(orders)) / (orders - 1.0)
        return float(epsilons.min())

    if law == "Poisson":
        # Of each order, its largest ε̂; δ̂ is that of the Rényi divergences (Canonne, Kamath and Steinke 2020).
        hats = np.log1p(1.0 / (orders - 1.0))
        others = 1.0 + np.geomspace(1e-2, 1e3, 2000)[:, None]
        logs = (others - 1.0) * (renyi(others) - hats) + others * np.log1p(-1.0 / others) - np.log(others - 1.0)
        deltas = np.minimum(1.0, np.exp(np.minimum(logs.min(axis=0), 0.0)))
        return converted(renyi(orders) + mean * deltas + math.log(mean) / (orders - 1.0))

    def mean_of(gamma):
        if shape == 0.0:
            return (1.0 / gamma - 1.0) / math.log(1.0 / gamma)
        return shape * (1.0 - gamma) / (gamma * (1.0 - gamma**shape))

    gamma = optimize.brentq(lambda gamma: mean_of(gamma) - mean, 1e-9, 1.0 - 1e-9, xtol=1e-15)
    hat = (1.0 + shape) * ((1.0 - 1.0 / orders) * renyi(orders) + math.log(1.0 / gamma) / orders)
    return converted(renyi(orders) + hat.min() + math.log(mean) / (orders - 1.0))


@pytest.mark.parametrize(("law", "shape"), [(BINOMIAL, 1.0), (BINOMIAL, 0.0), (BINOMIAL, 3.0), ("Poisson", 1.0)])
@pytest.mark.parametrize(("sigma", "mean", "delta"), [(4.0, 16, 1e-5), (1.0, 40, 1e-6), (10.0, 3, 1e-9)])
def test_private_selection_is_that_of_its_theorems(law, shape, sigma, mean, delta):
    drawn = RandomTrainings(law=law, mean=mean, shape=shape, made=5, **AFFIRMED)
    claim = best_of(gaussian(sigma), trainings=drawn)
    truth = selection_epsilon(sigma, law, mean, shape, delta)
    # The library's orders are few.
    assert truth * (1.0 - 1e-3) <= claim.epsilon(delta) <= 1.02 * truth
    half = gaussian(2.0 * sigma, neighbours="replace")
    assert best_of(half, trainings=drawn).epsilon(delta) == pytest.approx(claim.epsilon(delta), rel=1e-12)


@pytest.mark.parametrize("law", [BINOMIAL, "Poisson"])
@pytest.mark.parametrize(("sigma", "mean"), [(1.0, 10), (4.0, 100)])
def test_the_best_of_random_gaussians_is_within_private_selection(law, sigma, mean):
    """The best of K outputs, K geometric or Poisson, has a density in closed form, and its δ(ε) is an integral."""
    drawn = RandomTrainings(law=law, mean=mean, made=5, **AFFIRMED)
    epsilon = best_of(gaussian(sigma), trainings=drawn).epsilon(1e-5)
    x = np.linspace(-12.0 * sigma, 1.0 + 12.0 * sigma, 200_001)

    def density(centre):
        z = (x - centre) / sigma
        normal, below, above = (
            np.exp(-0.5 * z**2) / (sigma * math.sqrt(2.0 * math.pi)),
            special.ndtr(z),
            special.ndtr(-z),
        )
        if law == "Poisson":
            return mean * np.exp(-mean * above) * normal
        return (1.0 / mean) / (1.0 - (1.0 - 1.0 / mean) * below) ** 2 * normal

    for upper, lower in ((density(1.0), density(0.0)), (density(0.0), density(1.0))):
        delta = np.maximum(upper - math.exp(epsilon) * lower, 0.0).sum() * (x[1] - x[0])
        assert delta < 1e-5
        assert upper.sum() * (x[1] - x[0]) == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("name", sorted(AFFIRMED))
def test_what_is_not_affirmed_is_composed(name):
    drawn = RandomTrainings(law=BINOMIAL, mean=16, made=21, **{**AFFIRMED, name: False})
    for claim in (gaussian(4.0), poisson(1.0, rate=0.1, rounds=5)):
        assert best_of(claim, trainings=drawn) == best_of(claim, trainings=21)
    everything = replace(drawn, **AFFIRMED)
    # No accountant has divergences of these.
    for claim in (epsilon_delta(2.0, 1e-6), poisson(1.0, rate=0.1, rounds=5, neighbours="replace")):
        assert best_of(claim, trainings=everything) == best_of(claim, trainings=21)


def test_the_best_training_is_a_claim_like_any_other():
    drawn = RandomTrainings(law="Poisson", mean=16, made=21, **AFFIRMED)
    claim = best_of(poisson(1.0, rate=0.1, rounds=50), trainings=drawn)
    assert (claim.attacker, claim.rounds, claim.participations) == ("sampling", 50, None)
    assert read(Claim, to_document(claim)) == claim
    known = best_of(gaussian(1.0, participations=3), trainings=drawn)
    assert (known.attacker, known.rounds, known.participations) == ("known rounds", 3, 3)
    laplace = from_event(dp_accounting.LaplaceDpEvent(2.0))
    assert best_of(laplace, trainings=replace(drawn, law=BINOMIAL)).epsilon(0.0) == 1.5


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_many_mechanisms_are_rounded_to_few(neighbours, monkeypatch):
    events = [Sampled(0.01 + i / 4000, Gaussian(1.0 + i / 30)) for i in range(12)]
    event = Composed([*(Repeated(each, 9) for each in events), Gaussian(20.0), Gaussian(30.0)])
    exact = from_event(event, neighbours=neighbours)
    epsilon, attained = exact.epsilon(1e-6), exact.attained_epsilon(1e-6)
    for cached in (accountant._bound, accountant._attained_epsilon):
        cached.cache_clear()
    monkeypatch.setattr(accountant, "_MOST_MECHANISMS", 10)
    rounded, rounded_attained = exact.epsilon(1e-6), exact.attained_epsilon(1e-6)
    # They lie between the truth and rounds that are all like the one that leaks most, or least.
    most, least = (
        from_event(Composed([Repeated(each, 108), Gaussian(20.0), Gaussian(30.0)]), neighbours=neighbours)
        for each in (Sampled(0.01275, Gaussian(1.0)), Sampled(0.01, Gaussian(1.0 + 11 / 30)))
    )
    assert epsilon < rounded < most.epsilon(1e-6)
    assert least.attained_epsilon(1e-6) < rounded_attained < attained
    for cached in (accountant._bound, accountant._attained_epsilon):
        cached.cache_clear()


def test_power_of_many_mechanisms_is_that_of_fewer_that_leak_more(monkeypatch):
    sampled = [Sampled(0.1, Gaussian(noise)) for noise in (1.0, 1.01, 1.5, 1.52)]
    claim, alpha = from_event(Composed(sampled)), np.array([1e-6, 0.01, 0.3])
    monkeypatch.setattr(accountant, "_DECADES", (0, 2, 6))
    with monkeypatch.context() as patch:
        accountant._pairs.cache_clear()
        exact = claim.power(alpha)
        patch.setattr(accountant, "_MOST_IN_CURVE", 3)
        accountant._pairs.cache_clear()
        fewer = claim.power(alpha)
    most = poisson(1.0, rate=0.1, rounds=4).power(alpha)
    assert np.all(exact < fewer)
    assert np.all(fewer < most)
    accountant._pairs.cache_clear()


@pytest.mark.deep
def test_thousands_of_mechanisms_are_accounted_for():
    events = [Sampled(0.01, Gaussian(1.0 + i / 3000)) for i in range(3000)]
    epsilon = from_event(Composed(events)).epsilon(1e-6)
    below, above = (poisson(noise, rate=0.01, rounds=3000).epsilon(1e-6) for noise in (2.0, 1.0))
    assert below < epsilon < above
    # The schedule by its own tenths, whose noise is rounded down by up to 0.1 and so leaks more, and rounded up.
    tenths = [Repeated(Sampled(0.01, Gaussian(1.0 + (i + 1) / 10)), 300) for i in range(10)]
    assert from_event(Composed(tenths)).epsilon(1e-6) < epsilon
    power = from_event(Composed(events)).power(0.05)
    assert from_event(Composed(tenths)).power(0.05) < power < poisson(1.0, rate=0.01, rounds=3000).power(0.05)
    laplace = [dp_accounting.LaplaceDpEvent(10.0 + i / 300) for i in range(3000)]
    assert from_event(Composed(laplace)).epsilon(1e-6) < math.fsum(1.0 / each.noise_multiplier for each in laplace)


def test_numbers_claims_and_events_are_claims():
    assert as_claim(3, 1e-6) == epsilon_delta(3.0, 1e-6)
    assert as_claim(3.0, 1e-6, "replace") == epsilon_delta(3.0, 1e-6, neighbours="replace")
    claim = gaussian(1.0, neighbours="replace")
    assert as_claim(claim, 1e-6) is as_claim(claim, 1e-6, "replace") is claim
    assert as_claim(Gaussian(1.0), 1e-6) == gaussian(1.0)
    assert as_claim(Gaussian(1.0), 1e-6, "replace") == claim


SAMPLED = poisson(1.0, rate=0.1, rounds=9)


def test_claims_say_what_they_are():
    assert str(gaussian(1.0)) == "noise multiplier 1, 1 of 1 round known to the attacker (neighbours: add-or-remove)"
    assert str(SAMPLED) == "noise multiplier 1, 9 rounds of Poisson sampling at 0.1 (neighbours: add-or-remove)"
    assert str(epsilon_delta(3, 1e-5, neighbours="replace")) == "ε = 3 at δ = 1e-05 (neighbours: replace)"
    assert str(from_event(dp_accounting.LaplaceDpEvent(2.0))).startswith("1 × LaplaceDpEvent(noise_multiplier=2.0)")


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize(
    ("noise", "batch", "rounds", "delta"),
    [(0.5, 250, 10, 1e-5), (1.0, 500, 10, 1e-5), (1.0, 250, 1, 1e-5), (3.0, 20, 40, 1e-9)],
)
def test_no_upper_bound_is_below_what_records_reach(neighbours, noise, batch, rounds, delta):
    """Not even as if in all rounds: a record that is missing in a batch of fixed size is replaced by another one."""
    claim = accountant.fixed_batches(noise, batch=batch, records=1000, rounds=rounds, neighbours=neighbours)
    assert 0.0 < claim.attained_epsilon(delta) <= claim.epsilon(delta)
    # One that is always drawn with opposites leaves the sum two clip norms away in every round of its own.
    every = accountant.gaussian(0.5 * noise, participations=rounds).epsilon(delta)
    assert claim.epsilon(delta) <= every


@pytest.mark.parametrize("noise", [0.7, 2.0])
def test_another_noise_multiplier_is_that_of_every_round(noise):
    batches = {"batch": 100, "records": 10_000, "rounds": 20, "neighbours": "replace"}
    made = accountant.fixed_batches(1.0, **batches).with_noise_multiplier(noise)
    assert made == accountant.fixed_batches(noise, **batches)
    assert made.epsilon(1e-5) == accountant.fixed_batches(noise, **batches).epsilon(1e-5)

    def mixed(sigma):
        parts = [dp_accounting.SelfComposedDpEvent(Gaussian(sigma), 2), Sampled(0.5, Gaussian(sigma))]
        return accountant.from_event(dp_accounting.ComposedDpEvent(parts))

    assert mixed(1.0).with_noise_multiplier(noise) == mixed(noise)
    assert poisson(1.0, rate=0.25, rounds=9).with_noise_multiplier(noise) == poisson(noise, rate=0.25, rounds=9)
    with pytest.raises(ValueError, match=r"^with_noise_multiplier: must be asked of a claim with one noise multiplier"):
        accountant.epsilon_delta(1.0, 1e-5).with_noise_multiplier(noise)
    with pytest.raises(ValueError, match=r"^noise_multiplier: must lie between"):
        mixed(1.0).with_noise_multiplier(0.001)


def test_examples_run():
    done = doctest.testmod(accountant)
    assert done.attempted >= 10
    assert done.failed == 0


@pytest.mark.deep
def test_the_library_is_loaded_for_its_events_alone():
    code = (
        "import sys, canaryproof as cp\n"
        "claim = cp.accounting.poisson(1.0, rate=1 / 8, rounds=64)\n"
        "claim.with_known_rounds(8).epsilon(1e-5), claim.with_known_rounds(8).power(0.1)\n"
        "cp.accounting.as_claim(3.0, 1e-5).tradeoff(0.1)\n"
        "claim.epsilon(1e-5), claim.epsilon(1e-100), claim.power(0.1)\n"
        "assert 'dp_accounting' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_orders_without_a_series_are_left_out_in_silence(caplog):
    """And what others log through absl meanwhile is heard."""
    accountant._bound.cache_clear()
    accountant._divergences.cache_clear()
    event = Sampled(1 / 8, Gaussian(1.0))
    # Rényi accounting serves so small a δ, and what is not Gaussian alone.
    assert from_event(Composed([event, dp_accounting.LaplaceDpEvent(1.0)])).epsilon(1e-100) < 21.0
    assert not caplog.records
    with accountant.silence_orders(), ThreadPoolExecutor() as threads:
        rdp.RdpAccountant().compose(event, 64)
        absl.logging.error("an error")
        threads.submit(absl.logging.warning, "of another thread").result()
    assert caplog.messages == ["an error", "of another thread"]
    caplog.clear()
    rdp.RdpAccountant().compose(event, 64)
    assert {record.levelname for record in caplog.records} == {"WARNING"}
