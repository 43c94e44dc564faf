import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from scipy import optimize, stats

from canaryproof.kernels.certified import gaussian_mechanism as certified
from canaryproof.verify.audit.canaries.participation import (
    Insertion,
    LastRounds,
    Presentations,
    bernoulli,
    shuffled_epochs,
    uniform,
)
from canaryproof.verify.papers.accounting.training import (
    ADD_OR_REMOVE,
    REPLACE,
    analytical_epsilon,
    noise_with_counts,
    noise_without_counts,
    patterns,
)
from canaryproof.verify.papers.training.clipping import AdaptiveClip, FixedClip
from canaryproof.verify.papers.training.noise import Correlated, Independent, SquareRoot, Tree

DELTA = 1e-5
FIXED = FixedClip(1.0)


def enclosed(epsilon, noise_multiplier):
    """Whether ε is that of the Gaussian mechanism, but for the rounding of the noise multiplier."""
    exact = certified.epsilon(DELTA, noise_multiplier)
    return exact.lo * (1.0 - 1e-13) <= epsilon <= exact.hi * (1.0 + 1e-13)


class Own:
    """A user's participation, of two canaries and two clients: it does not say how it was drawn."""

    rounds, included, inclusion = 8, np.array([True, True, False]), "fixed"

    def clients(self, round):  # noqa: A002
        return np.array([0, 1]) if round % 2 else np.array([0])

    def canaries(self, round):  # noqa: A002
        return np.array([], int) if round not in (0, 6, 7) else np.array([0]) if round == 0 else np.array([1])


@pytest.mark.parametrize("z", [0.1, 0.541, 1.54, 4.22])
def test_once_is_the_gaussian_mechanism(z):
    schedule = shuffled_epochs(30, 7, 1, 0, Insertion(20, 10))
    for members in ("canaries", "clients"):
        found = analytical_epsilon(Independent(z, 0), DELTA, schedule, FIXED, members)
        assert enclosed(found.epsilon, z)
        assert found.relation == ADD_OR_REMOVE
        assert "1 rounds known to the attacker" in found.rule


@pytest.mark.parametrize("presentations", [1, 2, 4, 8])
def test_presentations_compose(presentations):
    schedule = shuffled_epochs(40, 5, 1, 0, Insertion(20, 10, Presentations(presentations)))
    found = analytical_epsilon(Independent(1.2, 0), DELTA, schedule, FIXED)
    assert enclosed(found.epsilon, 1.2 / math.sqrt(presentations))
    assert enclosed(analytical_epsilon(Independent(1.2, 0), DELTA, schedule, FIXED, "clients").epsilon, 1.2)


def test_a_participation_of_ones_own_is_known_to_the_attacker():
    found = analytical_epsilon(Independent(1.0, 0), DELTA, Own(), FIXED)
    assert enclosed(found.epsilon, 1.0 / math.sqrt(2.0))
    assert "2 rounds" in found.rule
    assert enclosed(
        analytical_epsilon(Independent(1.0, 0), DELTA, Own(), FIXED, "clients").epsilon, 1.0 / math.sqrt(8.0)
    )


def test_correlated_noise_protects_the_worst_member_by_its_sensitivity():
    # Of the tree of 8 rounds, round 0 is in the nodes that end with 1, 2, 4 and 8, rounds 6 and 7 in those of 7 and 8
    # and of 8: squared norms of 4 and of 1 + 2².
    noise = Correlated(Tree(8), 1.7, 0)
    found = analytical_epsilon(noise, DELTA, Own(), FIXED)
    assert enclosed(found.epsilon, 1.7 / math.sqrt(5.0))
    assert "correlated noise" in found.rule
    first_only = uniform(0, 0, 8, 0, Insertion(2, 2, Presentations(1)))
    taken = {int(t) for t in range(8) if len(first_only.canary_rounds[t])}
    squares = max({0: 4, 1: 3, 2: 3, 3: 2, 4: 3, 5: 2, 6: 2, 7: 1}[t] for t in taken)
    assert enclosed(analytical_epsilon(noise, DELTA, first_only, FIXED).epsilon, 1.7 / math.sqrt(squares))
    # The identity is independent noise.
    same = analytical_epsilon(Correlated(SquareRoot(8, 1), 1.7, 0), DELTA, Own(), FIXED)
    assert enclosed(same.epsilon, 1.7 / math.sqrt(2.0))


def test_adaptive_clipping_costs_what_the_split_takes():
    clip = AdaptiveClip(0.1, 0.5, 0.2, 2.0, 0)
    noise = Independent(noise_without_counts(1.1, 2.0), 0)
    schedule = shuffled_epochs(40, 5, 1, 0, Insertion(20, 10, Presentations(4)))
    found = analytical_epsilon(noise, DELTA, schedule, clip)
    assert enclosed(found.epsilon, 1.1 / 2.0)
    assert "counts of unclipped" in found.rule
    # With correlated noise: squares of ‖C·‖/z and √r/(2σ_b) add up.
    tree = analytical_epsilon(Correlated(Tree(8), 1.7, 0), DELTA, Own(), clip)
    assert enclosed(tree.epsilon, 1.0 / math.sqrt(5.0 / 1.7**2 + 2.0 / 16.0))
    sampled = bernoulli(20, 0.2, 3, 0, Insertion(4, 4))
    plain = analytical_epsilon(Independent(1.1, 0), DELTA, sampled, FIXED)
    assert analytical_epsilon(noise, DELTA, sampled, clip).epsilon == pytest.approx(plain.epsilon, rel=1e-9)


def hockey_stick(epsilon, over, under):
    """δ(ε) between two mixtures of normal laws of deviation 1, given as pairs of weights and means, by quadrature."""
    x = np.linspace(-12.0, 12.0, 24_001)
    first, second = (sum(w * stats.norm.pdf(x, m) for w, m in mixture) for mixture in (over, under))
    return np.maximum(first - math.exp(epsilon) * second, 0.0).sum() * (x[1] - x[0])


def exact_epsilon(*mixtures):
    """ε between two mixtures, in the worse direction."""
    both = [optimize.brentq(lambda e, p=p: hockey_stick(e, *p) - DELTA, 0.0, 30.0) for p in (mixtures, mixtures[::-1])]
    return max(both)


def test_poisson_sampling_in_one_round_is_that_of_the_mixture():
    q, z = 0.3, 0.8
    schedule = bernoulli(20, q, 1, 0, Insertion(4, 4))
    found = analytical_epsilon(Independent(z, 0), DELTA, schedule, FIXED)
    exact = exact_epsilon([(1.0 - q, 0.0), (q, 1.0 / z)], [(1.0, 0.0)])
    assert exact - 1e-6 <= found.epsilon <= exact + 5e-4
    assert found.relation == ADD_OR_REMOVE
    assert "one round that is sampled at 0.3" in found.rule
    assert "before division by m" in found.rule


def test_poisson_sampling_in_two_rounds_is_that_of_their_product():
    q, z = 0.4, 1.3
    found = analytical_epsilon(Independent(z, 0), DELTA, bernoulli(0, q, 2, 0, Insertion(4, 4)), FIXED)
    x = np.linspace(-9.0, 9.0, 1201)
    mixture = (1.0 - q) * stats.norm.pdf(x) + q * stats.norm.pdf(x, 1.0 / z)
    first, second = np.outer(mixture, mixture), np.outer(stats.norm.pdf(x), stats.norm.pdf(x))
    cell = (x[1] - x[0]) ** 2

    def delta(epsilon, over, under):
        return np.maximum(over - math.exp(epsilon) * under, 0.0).sum() * cell

    exact = max(
        optimize.brentq(lambda e, p=p: delta(e, *p) - DELTA, 0.0, 30.0) for p in ((first, second), (second, first))
    )
    assert exact - 1e-4 <= found.epsilon <= exact + 1e-3


def test_so_little_noise_that_losses_overflow_is_that_of_known_rounds():
    found = analytical_epsilon(Independent(1e-6, 0), DELTA, bernoulli(10, 0.5, 3, 0), FIXED, "clients")
    assert found.rule.startswith(
        "rounds that the attacker knows, their number binomial, of 3 rounds of Poisson sampling"
    )
    assert found.relation == ADD_OR_REMOVE
    # All three have a probability of 1/8.
    least, most = (certified.epsilon(times * DELTA, 1e-6 / math.sqrt(3.0)) for times in (8.0, 1.0))
    assert least.lo * (1.0 - 1e-13) <= found.epsilon <= most.hi * (1.0 + 1e-13)


def test_without_replacement_is_for_replacement():
    # One of two clients is drawn; the other's update is 0, and the first one's is turned round. That is one pair of
    # neighbours, hence a lower bound on ε. At a rate of 1/2 and this noise a bound for a sensitivity of one clip norm
    # would fall below it.
    z = 0.8
    schedule = uniform(2, 1, 1, 0)
    found = analytical_epsilon(Independent(z, 0), DELTA, schedule, FIXED, "clients")
    least = exact_epsilon([(0.5, 0.0), (0.5, 1.0 / z)], [(0.5, 0.0), (0.5, -1.0 / z)])
    assert least <= found.epsilon
    assert found.relation == REPLACE
    wrong = analytical_epsilon(Independent(2.0 * z, 0), DELTA, schedule, FIXED, "clients")
    assert wrong.epsilon < least
    # Chance does not help where everybody takes part.
    everybody = analytical_epsilon(Independent(z, 0), DELTA, uniform(2, 2, 3, 0), FIXED, "clients")
    assert everybody.relation == ADD_OR_REMOVE
    assert enclosed(everybody.epsilon, z / math.sqrt(3.0))


def test_without_replacement_takes_the_better_of_two_bounds():
    schedule = uniform(100, 1, 20, 0)
    quiet = analytical_epsilon(Independent(0.2, 0), DELTA, schedule, FIXED, "clients")
    assert enclosed(quiet.epsilon, 0.1 / math.sqrt(20.0))
    assert quiet.relation == REPLACE
    assert "as if in all of 20 rounds" in quiet.rule
    loud = analytical_epsilon(Independent(1.0, 0), DELTA, schedule, FIXED, "clients")
    assert "of 1/100 each" in loud.rule
    assert loud.epsilon < certified.epsilon(DELTA, 0.5 / math.sqrt(20.0)).lo
    # Canaries beside them are drawn by coins of their own.
    beside = uniform(100, 1, 20, 0, Insertion(300, 300))
    assert analytical_epsilon(Independent(1.0, 0), DELTA, beside, FIXED).relation == ADD_OR_REMOVE


@pytest.mark.parametrize(
    ("noise", "schedule", "members", "why"),
    [
        (Independent(1.0, 0), uniform(9, 3, 8, 0, Insertion(4, 4, LastRounds(3, 1.0))), "canaries", "Poisson number"),
        (Correlated(Tree(8), 1.0, 0), bernoulli(9, 0.3, 8, 0, Insertion(4, 4)), "canaries", "correlated noise"),
        (Correlated(Tree(8), 1.0, 0), uniform(9, 3, 8, 0), "clients", "correlated noise with sampling"),
    ],
)
def test_none_is_known(noise, schedule, members, why):
    found = analytical_epsilon(noise, DELTA, schedule, FIXED, members)
    assert found.epsilon is None
    assert found.rule.startswith("none known")
    assert why in found.rule


@pytest.mark.parametrize(
    "schedule",
    [
        shuffled_epochs(9, 3, 1, 0, Insertion(4, 4)),
        bernoulli(9, 0.3, 8, 0, Insertion(4, 4)),
        uniform(9, 3, 8, 0, Insertion(4, 4, LastRounds(3, 1.0))),
    ],
)
def test_without_noise_epsilon_is_infinite(schedule):
    assert analytical_epsilon(Independent(0.0, 0), DELTA, schedule, FIXED).epsilon == math.inf
    assert analytical_epsilon(Independent(0.0, 0), DELTA, schedule, FIXED, "clients").epsilon == math.inf
    # A count without noise gives as much away.
    public_count = AdaptiveClip(1.0, 0.5, 0.2, 0.0, 0)
    assert analytical_epsilon(Independent(1.0, 0), DELTA, schedule, public_count).epsilon == math.inf


def test_who_never_takes_part_loses_nothing():
    for schedule in (shuffled_epochs(9, 3, 1, 0, Insertion(4, 0)), bernoulli(9, 0.0, 3, 0, Insertion(4, 4))):
        found = analytical_epsilon(Independent(0.0, 0), DELTA, schedule, FIXED)
        assert (found.epsilon, found.rule) == (0.0, "nobody takes part")


class Listed:
    """Who takes part, in lists by round."""

    def __init__(self, clients, canaries):
        self.rounds, self._clients, self._canaries = len(clients), clients, canaries

    def clients(self, round):  # noqa: A002
        return np.array(self._clients[round], int)

    def canaries(self, round):  # noqa: A002
        return np.array(self._canaries[round], int)


def test_patterns_are_the_sets_of_rounds():
    own = Listed([[0, 1], [1], [0, 2]], [[0, 1], [], [1]])
    assert patterns(own, "clients") == {(0, 2), (0, 1), (2,)}
    assert patterns(own, "canaries") == {(0,), (0, 2)}


@pytest.mark.parametrize(("z", "count_noise"), [(1.0, 5.0), (0.3, 0.2), (4.0, 2.5), (1.0, math.inf)])
def test_updates_and_counts_together_are_as_private_as_asked(z, count_noise):
    for_updates = noise_without_counts(z, count_noise)
    assert for_updates >= z
    assert noise_with_counts(for_updates, count_noise) == pytest.approx(z, rel=1e-14)
    # Squares of μ: 1 clip norm in noise z_Δ and 1/2 in noise σ_b.
    assert 1.0 / for_updates**2 + 0.25 / count_noise**2 == pytest.approx(1.0 / z**2, rel=1e-14)


def test_updates_and_counts_together_are_as_private_by_dp_accounting():
    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_accounting.GaussianDpEvent(noise_without_counts(1.0, 0.7)))
    accountant.compose(dp_accounting.GaussianDpEvent(0.7 / 0.5))
    exact = certified.epsilon(1e-5, 1.0)
    assert exact.lo <= accountant.get_epsilon(1e-5) <= exact.hi + 2e-3


def test_no_noise_stays_none():
    assert (
        noise_without_counts(0.0, 5.0)
        == noise_without_counts(0.0, 0.0)
        == noise_with_counts(0.0, 5.0)
        == noise_with_counts(1.0, 0.0)
        == 0.0
    )


@pytest.mark.parametrize("count_noise", [0.5, 0.0])
def test_counts_must_not_give_away_as_much_alone(count_noise):
    said = f"count_noise must be more than half the noise multiplier 1: {count_noise:g}"
    with pytest.raises(ValueError, match=said):
        noise_without_counts(1.0, count_noise)
