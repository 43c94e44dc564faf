import itertools
import math

import numpy as np
import pytest
from scipy import special, stats
from scipy.linalg import toeplitz

from canaryproof.verify.audit.canaries.seeds import Purpose, generator
from canaryproof.verify.papers.training.noise import Correlated, Independent, SquareRoot, Tree

LEVEL = 1e-6
ROUNDS = 8
PREFIX = np.tril(np.ones((ROUNDS, ROUNDS)))


def inverse(factor):
    rows = np.zeros((factor.rounds, factor.rounds))
    for t in range(factor.rounds):
        places, values = factor.row(t)
        rows[t, places] = values
    return rows


def square_root(rounds):
    """A^(1/2) by its closed form: binomial coefficients."""
    i = np.arange(rounds)
    return np.tril(toeplitz(special.binom(2 * i, i) / 4.0**i))


def banded_square_root(rounds, band):
    """The inverse of A^(−1/2) cut to a band."""
    i = np.arange(rounds)
    return np.linalg.inv(np.tril(toeplitz(np.where(i < band, special.binom(0.5, i) * (-1.0) ** i, 0.0))))


def tree(rounds):
    """The nodes by their leaves: n ends one of the length of its lowest bit."""
    rows = np.zeros((rounds, rounds))
    for n in range(1, rounds + 1):
        length = next(2**j for j in reversed(range(10)) if n % 2**j == 0)
        rows[n - 1, n - length : n] = 1.0
    return rows


FACTORS = {
    "square root": (SquareRoot(ROUNDS), square_root(ROUNDS)),
    "banded": (SquareRoot(ROUNDS, 3), banded_square_root(ROUNDS, 3)),
    "band of one": (SquareRoot(ROUNDS, 1), np.eye(ROUNDS)),
    "tree": (Tree(ROUNDS), tree(ROUNDS)),
}
each_factor = pytest.mark.parametrize(("factor", "strategy"), FACTORS.values(), ids=FACTORS)


class Own:
    """A factorisation of a user's: row t of C⁻¹ as given."""

    def __init__(self, rows):
        self.rounds, self._rows = len(rows), rows

    def row(self, round):  # noqa: A002
        places = np.flatnonzero(self._rows[round])
        return places, self._rows[round][places]


@each_factor
def test_rows_are_those_of_the_inverse(factor, strategy):
    assert inverse(factor) @ strategy == pytest.approx(np.eye(ROUNDS), abs=1e-12)


def test_the_square_root_is_one():
    strategy = np.linalg.inv(inverse(SquareRoot(60)))
    assert strategy @ strategy == pytest.approx(np.tril(np.ones((60, 60))), abs=1e-10)


def test_a_prefix_sum_adds_as_many_nodes_as_its_length_has_bits():
    nodes = np.tril(np.ones((37, 37))) @ inverse(Tree(37))
    assert set(nodes.ravel().tolist()) == {0.0, 1.0}
    assert nodes.sum(axis=1).tolist() == [(n + 1).bit_count() for n in range(37)]


def test_rows_cost_what_is_said():
    assert [len(SquareRoot(500, 16).row(t)[0]) for t in (0, 3, 15, 16, 499)] == [1, 4, 16, 16, 16]
    assert len(SquareRoot(500).row(499)[0]) == 500
    assert np.mean([len(Tree(512).row(t)[0]) for t in range(512)]) < 2.0


def law_holds(noise, strategy, dim=1500):
    """Test that C Z/(σS) has independent standard normal entries, by the exact laws of lengths and cosines of rows."""
    rows = strategy @ np.stack([noise.sample(t, dim, 2.0) for t in range(len(strategy))]) / (2.0 * 0.7)
    lengths = np.einsum("ij,ij->i", rows, rows)
    tails = [2.0 * min(stats.chi2.cdf(x, dim), stats.chi2.sf(x, dim)) for x in lengths]
    for a, b in itertools.combinations(range(len(rows)), 2):
        cosine = rows[a] @ rows[b] / math.sqrt(lengths[a] * lengths[b])
        # Without a correlation, exactly Student's t.
        tails.append(2.0 * stats.t.sf(abs(cosine) * math.sqrt((dim - 1) / (1.0 - cosine**2)), dim - 1))
    return min(tails) * len(tails) > LEVEL


@each_factor
def test_noise_has_its_covariance(factor, strategy):
    # One of 36 tests rejects beyond 5.55 deviations of 1/√1500 each, and a correlation of 0.2 is at 7.75: the power is
    # 0.98. Each factor but the identity has larger ones, hence the second half.
    noise = Correlated(factor, 0.7, 5)
    assert law_holds(noise, strategy)
    if factor.row(ROUNDS - 1)[0].size > 1:
        assert not law_holds(Independent(0.7, 5), strategy)
        assert not law_holds(noise, np.eye(ROUNDS))


def test_independent_noise_has_its_law():
    assert law_holds(Independent(0.7, 5), np.eye(ROUNDS))
    entries = np.concatenate([Independent(0.7, 5).sample(t, 1500, 2.0) for t in range(ROUNDS)]) / (2.0 * 0.7)
    assert stats.kstest(entries, "norm").pvalue > LEVEL


@pytest.mark.parametrize("noise", [Independent(0.7, 5), Correlated(Tree(ROUNDS), 0.7, 5)], ids=["independent", "tree"])
def test_a_rounds_noise_depends_on_seed_and_round_alone(noise):
    before = noise.sample(5, 100, 2.0)
    noise.sample(2, 100, 2.0)
    assert np.array_equal(noise.sample(5, 100, 2.0), before)
    assert noise.sample(5, 100, 6.0) == pytest.approx(3.0 * before)
    other = Independent(0.7, 6) if isinstance(noise, Independent) else Correlated(Tree(ROUNDS), 0.7, 6)
    assert not np.isin(other.sample(5, 100, 2.0), before).any()
    assert not np.isin(noise.sample(4, 100, 2.0), before).any()
    assert before.shape == (100,)


def test_one_seed_serves_several_purposes():
    draws = [generator(5, purpose, 1).standard_normal() for purpose in Purpose]
    draws += [generator(np.random.SeedSequence(5, spawn_key=(int(p),)), Purpose.CLIENTS, 1).random() for p in Purpose]
    assert len(set(draws)) == len(draws)


def all_patterns(rounds):
    return [c for r in range(1, rounds + 1) for c in itertools.combinations(range(rounds), r)]


@each_factor
def test_sensitivity_is_what_the_worst_updates_reach(factor, strategy):
    noise = Correlated(factor, 0.7, 5)
    for rounds in all_patterns(ROUNDS):
        columns = strategy[:, rounds]
        # Signs are the updates in one dimension; none of more dimensions is worse where no product is negative.
        signs = np.array(list(itertools.product([1.0, -1.0], repeat=len(rounds))))
        worst = np.linalg.norm(signs @ columns.T, axis=1).max()
        assert noise.sensitivity(rounds) == pytest.approx(worst, rel=1e-12)


def test_sensitivity_bounds_what_updates_in_several_dimensions_reach():
    # Products of both signs: 0.6, −0.5 and the like.
    strategy = np.array([[1, 0, 0, 0], [0.6, 1, 0, 0], [-0.5, 0.8, 1, 0], [0.3, -0.9, 0.4, 1]])
    noise = Correlated(Own(np.linalg.inv(strategy)), 0.7, 5)
    rng = np.random.default_rng(0)
    for rounds in all_patterns(4):
        updates = rng.standard_normal((2000, len(rounds), 3))
        updates /= np.linalg.norm(updates, axis=2, keepdims=True)
        reached = np.linalg.norm(strategy[:, rounds] @ updates, axis=(1, 2)).max()
        assert reached <= noise.sensitivity(rounds) * (1.0 + 1e-12)
        # It is the sum over pairs of what a pair can reach at most.
        columns = strategy[:, rounds].T
        pairs = sum(abs(a @ b) for a in columns for b in columns)
        assert noise.sensitivity(rounds) == pytest.approx(math.sqrt(pairs), rel=1e-12)


def test_known_sensitivities():
    assert Independent(1.0, 0).sensitivity((3, 5, 9)) == pytest.approx(math.sqrt(3.0))
    for height in range(6):
        # Kairouz et al. 2021: a record is in one node of each level.
        assert Correlated(Tree(2**height), 1.0, 0).sensitivity((0,)) == pytest.approx(math.sqrt(height + 1))
    assert Correlated(SquareRoot(7, 1), 1.0, 0).sensitivity((0, 3)) == pytest.approx(math.sqrt(2.0))


def test_prefix_sums_have_less_noise_for_the_same_privacy():
    errors = {}
    for name, factor in {"none": SquareRoot(64, 1), "tree": Tree(64), "root": SquareRoot(64)}.items():
        spread = np.tril(np.ones((64, 64))) @ inverse(factor)
        errors[name] = Correlated(factor, 1.0, 0).sensitivity((0,)) ** 2 * (spread**2).sum() / 64
    assert errors["none"] == pytest.approx(65 / 2)
    assert errors["root"] < errors["tree"] < errors["none"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "row 0 must have places from 0 to 0"),
        (np.array([[1.0, 0.0], [0.5, 0.0]]), "row 1 must be finite, and not zero at place 1"),
        (np.array([[1.0, 0.0], [math.inf, 1.0]]), "row 1 must be finite"),
    ],
)
def test_a_factor_must_be_lower_triangular_and_invertible(rows, message):
    with pytest.raises(ValueError, match=message):
        Correlated(Own(rows), 1.0, 0)


def test_wrong_numbers_are_refused():
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="noise_multiplier must be finite and not negative"):
            Independent(wrong, 0)
        with pytest.raises(ValueError, match="noise_multiplier must be finite and not negative"):
            Correlated(Tree(3), wrong, 0)
    for make in (lambda: SquareRoot(0), lambda: SquareRoot(3, 0), lambda: Tree(0)):
        with pytest.raises(ValueError, match="must be an integer of at least 1"):
            make()
    for t in (-1, 3):
        with pytest.raises(ValueError, match="round must be an integer from 0 to 2"):
            Correlated(Tree(3), 1.0, 0).sample(t, 10, 1.0)


def test_no_noise_is_none():
    assert not Independent(0.0, 0).sample(0, 10, 1.0).any()
    assert not Correlated(Tree(3), 0.0, 0).sample(1, 10, 1.0).any()
