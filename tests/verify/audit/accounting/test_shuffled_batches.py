"""What is attained against shuffled epochs is never above what a test of the attacker reaches, and close to it."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import optimize, special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.accounting.accountant import Bracket, best_of, gaussian, poisson, shuffled
from canaryproof.verify.audit.accounting.shuffled_batches import attained_epsilon
from canaryproof.verify.audit.files.json_records import read, to_document
from tests.verify.audit.accounting import inversion


def largest_sum_is_at_most(c, noise, batches, mean):
    return special.ndtr((c - mean) / noise) * special.ndtr(c / noise) ** (batches - 1)


def threshold_epsilon(noise, batches, delta, lower):
    """ε of the best threshold of one epoch's largest sum, in 60 digits; its likelihood ratio rises."""
    with mp.workdps(60):

        def above(c, mean):
            return 1 - mp.ncdf((mpf(c) - mean) / mpf(noise)) * mp.ncdf(mpf(c) / mpf(noise)) ** (batches - 1)

        def epsilon(c):
            seen = above(c, 2) - mpf(delta)
            return float(mp.log(seen / above(c, lower))) if seen > 0 else 0.0

        grid = np.linspace(0.0, 2.0 + 12.0 * noise, 60)
        best = max(range(1, 59), key=lambda i: epsilon(grid[i]))
        found = optimize.minimize_scalar(
            lambda c: -epsilon(c), bounds=(grid[best - 1], grid[best + 1]), method="bounded"
        )
        return -found.fun


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(
    ("noise", "batches", "delta"), [(0.5, 100, 1e-6), (1.0, 10, 1e-5), (0.3, 1000, 1e-20), (0.2, 2, 1e-9)]
)
def test_one_epoch_is_attained_by_a_threshold(noise, batches, delta, replaced):
    truth = threshold_epsilon(noise, batches, delta, 0 if replaced else 1)
    value = attained_epsilon(noise, batches, 1, replaced, delta)
    assert 0.999 * truth - 1e-3 <= value <= truth * (1.0 + 1e-7)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(("noise", "batches", "delta"), [(0.5, 20, 1e-5), (0.8, 5, 1e-9)])
def test_two_epochs_are_the_sum_over_a_plane(noise, batches, delta):
    ends = np.concatenate([[-np.inf], np.linspace(-2.0 * noise, 2.0 + 9.0 * noise, 3000), [np.inf]])
    upper, lower = (np.diff(largest_sum_is_at_most(ends, noise, batches, mean)) for mean in (2.0, 1.0))

    def divergence(epsilon):
        return float(np.maximum(np.outer(upper, upper) - math.exp(epsilon) * np.outer(lower, lower), 0.0).sum())

    value = attained_epsilon(noise, batches, 2, False, delta)
    # Cells tell less than the largest sums do.
    assert divergence(value * (1.0 - 1e-3)) >= delta
    assert divergence(value * 1.002 + 1e-3) < delta


def losses_of_epoch(noise, batches, lower):
    """Losses and log masses of an epoch's largest sum, by its density."""
    x = np.linspace(-3.0 * noise, 2.0 + 12.0 * noise, 20_001).astype(np.longdouble)

    def log_density(mean):
        def log_normal(m):
            return -(((x - m) / noise) ** 2) / 2 - np.log(noise * np.sqrt(2 * np.pi))

        at, of = special.log_ndtr(np.asarray((x - mean) / noise, float)), special.log_ndtr(np.asarray(x / noise, float))
        own = log_normal(mean) + (batches - 1) * of
        other = np.log(batches - 1) + log_normal(0.0) + (batches - 2) * of + at
        return np.logaddexp(own, other)

    log = log_density(2.0)
    return log - log_density(lower), log + np.log(x[1] - x[0])


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("noise", "batches", "epochs", "replaced", "delta"),
    [
        (1.0, 10, 100, False, 1e-5),
        (0.7, 30, 20, True, 1e-12),
        (1.0, 100, 1000, False, 1e-6),
        (0.5, 50, 5, False, 1e-25),
    ],
)
def test_epochs_are_composed(noise, batches, epochs, replaced, delta):
    losses, logs = losses_of_epoch(noise, batches, 0.0 if replaced else 1.0)
    value = attained_epsilon(noise, batches, epochs, replaced, delta)

    def excess(epsilon):
        return inversion.log_delta(losses, logs, epochs, epsilon) - math.log(delta)

    assert excess(value * (1.0 - 1e-6)) >= 0.0
    assert excess(1.002 * value + 1e-3) < 0.0


def test_sums_of_a_shuffled_epoch_have_the_law_that_is_composed():
    rng = np.random.default_rng(20240317)
    noise, batches, size, draws = 0.5, 8, 4, 20_000
    for record, mean in ((1.0, 2.0), (0.0, 1.0), (-1.0, 0.0)):
        gradients = np.full(batches * size, -1.0)
        gradients[0] = record
        shuffles = rng.permuted(np.tile(gradients, (draws, 1)), axis=1).reshape(draws, batches, size)
        sums = shuffles.sum(axis=2) + size + rng.normal(0.0, noise, (draws, batches))
        largest = np.sort(sums.max(axis=1))
        law = largest_sum_is_at_most(largest, noise, batches, mean)
        distance = np.max(np.abs(law - (np.arange(draws) + 0.5) / draws)) + 0.5 / draws
        # Massart's inequality at the level 1e-7; a mean 0.2 away is noticed, as it moves the law by 0.07 at least.
        assert distance < math.sqrt(math.log(2.0 / 1e-7) / (2.0 * draws))


@pytest.mark.deep(every=40)
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize("delta", [0.9, 1e-5, 1e-30, 1e-300])
@pytest.mark.parametrize(("batches", "epochs"), [(2, 1), (2, 5 * 10**8), (10**9, 1), (30, 7), (10**4, 10**4)])
@pytest.mark.parametrize("noise", [0.01, 0.3, 30.0, 1e6])
def test_what_is_attained_is_below_the_upper_bound_everywhere(noise, batches, epochs, delta, neighbours):
    bracket = shuffled(noise, batches=batches, epochs=epochs, neighbours=neighbours).bracket(delta)
    together = gaussian(noise, participations=epochs, neighbours=neighbours).epsilon(delta)
    assert bracket.dominated == together
    # At least what the sum of all batches of all epochs says.
    distance = math.sqrt(epochs) * (2.0 if neighbours == "replace" else 1.0)
    least = float(gaussian_mechanism.epsilon(delta, noise * math.sqrt(batches) / distance))
    assert (1.0 - 1e-9) * least <= bracket.attained <= bracket.dominated


def test_shuffling_is_worse_than_sampling_where_noise_is_low():
    bracket = shuffled(0.5, batches=100, neighbours="add-or-remove").bracket(1e-6)
    assert bracket.attained > poisson(0.5, rate=0.01, rounds=100).epsilon(1e-6) + 3.0


def test_claims_of_shuffled_epochs():
    claim = shuffled(0.8, batches=20, epochs=3, neighbours="add-or-remove")
    assert str(claim) == "noise multiplier 0.8, 3 epochs of 20 shuffled batches (neighbours: add-or-remove)"
    assert claim.attacker == "sampling"
    assert claim.rounds == 60
    assert claim.participation_quantile(0.9) == 3
    assert claim.with_known_rounds(3).epsilon(1e-5) == claim.epsilon(1e-5)
    assert claim.with_noise_multiplier(2.0) == shuffled(2.0, batches=20, epochs=3, neighbours="add-or-remove")
    assert best_of(claim, trainings=4) == shuffled(0.8, batches=20, epochs=12, neighbours="add-or-remove")
    assert claim.basis(1e-5).endswith("the record's batch in each of 3 epochs of 20 shuffled batches")
    assert claim.power(0.01) == claim.with_known_rounds(3).power(0.01)
    assert claim.tradeoff(0.3) == claim.with_known_rounds(3).tradeoff(0.3)
    assert shuffled(0.8, batches=1, epochs=3, neighbours="replace") == gaussian(
        0.8, participations=3, neighbours="replace"
    )
    assert read(type(claim), to_document(claim)) == claim
    assert "epochs" not in to_document(gaussian(1.0))


def test_a_stated_epsilon_is_held_against_both_ends():
    bracket = Bracket(2.0, 3.0)
    answers = [bracket.is_private(epsilon) for epsilon in (1.9, 2.0, 2.9, 3.0, 4.0)]
    assert answers == [False, None, None, True, True]
    exact = gaussian(1.0).bracket(1e-5)
    assert exact.attained == exact.dominated
