import itertools
import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.audit.accounting.sampling import SCHEDULED, Sampling
from canaryproof.verify.audit.canaries import participation
from canaryproof.verify.audit.canaries.participation import (
    Insertion,
    LastRounds,
    Presentations,
    bernoulli,
    check,
    shuffled_epochs,
    uniform,
)
from canaryproof.verify.audit.canaries.seeds import Purpose


class Own:
    """A participation that a user wrote: plain lists serve."""

    inclusion = "fixed"

    def __init__(self, clients, canaries, included=(True, True, False)):
        self.rounds = len(clients)
        self.included = np.array(included)
        self._clients, self._canaries = clients, canaries

    def clients(self, round):  # noqa: A002
        return self._clients[round]

    def canaries(self, round):  # noqa: A002
        return self._canaries[round]


def test_a_participation_of_ones_own_passes():
    check(Own([[0, 3], [], [2]], [[0], [1, 0], []]), clients=4, canaries=3)


LEVEL = 1e-6
MAKERS = {
    "shuffled": lambda seed, *canaries: shuffled_epochs(30, 7, 2, seed, *canaries),
    "uniform": lambda seed, *canaries: uniform(30, 7, 10, seed, *canaries),
    "bernoulli": lambda seed, *canaries: bernoulli(30, 0.2, 10, seed, *canaries),
}
INSERTIONS = {
    "like clients": Insertion(20, 10),
    "coins": Insertion(20),
    "presentations": Insertion(20, 10, Presentations(3)),
    "last rounds": Insertion(20, 10, LastRounds(4, 1.5)),
}


def matrix(rounds, members):
    """Whether a member takes part in a round, shape (members, rounds)."""
    there = np.zeros((members, len(rounds)), dtype=bool)
    for t, indices in enumerate(rounds):
        there[indices, t] = True
    return there


def fits(counts, probabilities):
    """Pearson's test that counts of cells have these probabilities; cells of less than 10 are put together."""
    expected = np.asarray(probabilities) * np.sum(counts)
    small = expected < 10.0
    if small.any():
        counts = np.append(np.asarray(counts)[~small], np.asarray(counts)[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
        if expected[-1] == 0.0:
            assert counts[-1] == 0
            counts, expected = counts[:-1], expected[:-1]
    return stats.chisquare(counts, expected * np.sum(counts) / expected.sum()).pvalue > LEVEL


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("insertion", INSERTIONS.values(), ids=INSERTIONS)
def test_a_schedule_depends_on_its_seed_alone(name, insertion):
    seed = np.random.SeedSequence(5, spawn_key=(3,))
    first, again, other = (MAKERS[name](one, insertion) for one in (seed, seed, 6))
    check(first, 30, 20)
    for part in ("client_rounds", "canary_rounds"):
        assert [x.tolist() for x in getattr(first, part)] == [x.tolist() for x in getattr(again, part)]
        assert [x.tolist() for x in getattr(first, part)] != [x.tolist() for x in getattr(other, part)]
    # Canaries don't move clients.
    without = MAKERS[name](seed)
    assert [x.tolist() for x in first.client_rounds] == [x.tolist() for x in without.client_rounds]
    assert not len(without.included)
    assert first.clients(3) is first.client_rounds[3]
    assert first.canaries(3) is first.canary_rounds[3]
    with pytest.raises(ValueError, match="read-only"):
        first.included[0] = False


@pytest.mark.parametrize(("clients", "cohort"), [(30, 7), (30, 10), (5, 5), (101, 2), (1, 1)])
def test_epochs_go_through_all_clients_once(clients, cohort):
    schedule = shuffled_epochs(clients, cohort, 3, 1, Insertion(15, 11))
    per_epoch = math.ceil(clients / cohort)
    assert schedule.rounds == 3 * per_epoch
    sizes = [len(x) for x in schedule.client_rounds]
    assert max(sizes) <= cohort
    assert max(sizes) - min(sizes) <= 1
    for members, rounds in ((clients, schedule.client_rounds), (11, schedule.canary_rounds)):
        epochs = matrix(rounds, members).reshape(members, 3, per_epoch)
        assert (epochs.sum(axis=2) == 1).all()
    if per_epoch > 1:
        assert schedule.client_rounds[0].tolist() != schedule.client_rounds[per_epoch].tolist()
    assert schedule.client_sampling == schedule.canary_sampling == SCHEDULED


@pytest.mark.parametrize("number", [1, 2, 4, 10])
def test_presentations_fall_into_equal_periods(number):
    schedule = uniform(30, 7, 10, 1, Insertion(25, 23, Presentations(number)))
    there = matrix(schedule.canary_rounds, 25)
    ends = np.arange(number + 1) * 10 // number
    for start, end in itertools.pairwise(ends.tolist()):
        period = there[:, start:end]
        assert period.sum(axis=1).tolist() == [1] * 23 + [0] * 2
        assert np.ptp(period.sum(axis=0)) <= 1
    assert np.ptp(np.diff(ends)) <= 1


def test_a_canarys_round_is_uniform_also_where_there_are_more_rounds_than_canaries():
    # Had the first rounds all the canaries, the last 4 cells would be empty, where 1143 are expected.
    runs, rounds = 2000, 7
    counts = np.zeros((3, rounds))
    for seed in range(runs):
        schedule = uniform(0, 0, rounds, seed, Insertion(3, 3, Presentations(1)))
        counts += matrix(schedule.canary_rounds, 3)
    assert counts.sum() == 3 * runs
    for row in counts:
        assert fits(row, np.full(rounds, 1 / rounds))


def test_uniform_cohorts_have_their_size_and_single_members_the_law_of_coins():
    schedule = uniform(2000, 600, 40, 1, Insertion(4000, 3000))
    assert {len(x) for x in schedule.client_rounds} == {600}
    law = stats.binom.pmf(np.arange(41), 40, 0.3)
    clients, canaries = matrix(schedule.client_rounds, 2000), matrix(schedule.canary_rounds, 4000)
    assert (clients.sum(axis=0) == 600).all()
    assert fits(np.bincount(clients.sum(axis=1), minlength=41), law)
    assert fits(np.bincount(canaries[:3000].sum(axis=1), minlength=41), law)
    assert not canaries[3000:].any()
    assert schedule.client_sampling.kind == "without replacement"
    assert schedule.client_sampling.rate.as_integer_ratio() == (3, 10)
    assert schedule.canary_sampling == Sampling("poisson", 0.3)


def test_bernoulli_rounds_have_the_law_of_coins_along_both_axes():
    # A rate of 0.32 would put the total 12 deviations off; the first test rejects beyond 4.9, and misses it with 1e-13.
    schedule = bernoulli(2000, 0.3, 40, 1, Insertion(2000, 2000))
    for rounds in (schedule.client_rounds, schedule.canary_rounds):
        there = matrix(rounds, 2000)
        assert stats.binomtest(int(there.sum()), 80_000, 0.3).pvalue > LEVEL
        assert fits(np.bincount(there.sum(axis=1), minlength=41), stats.binom.pmf(np.arange(41), 40, 0.3))
    assert schedule.client_sampling == schedule.canary_sampling == Sampling("poisson", 0.3)
    short = bernoulli(20, 0.3, 4000, 1, Insertion(20, 20))
    for rounds in (short.client_rounds, short.canary_rounds):
        assert fits(np.bincount([len(x) for x in rounds], minlength=21), stats.binom.pmf(np.arange(21), 20, 0.3))
    # Canaries do as clients do, and not as one of them.
    assert [x.tolist() for x in short.client_rounds] != [x.tolist() for x in short.canary_rounds]


def test_everybody_or_nobody():
    assert all(len(x) == 9 for x in bernoulli(9, 1.0, 3, 0).client_rounds)
    assert not any(len(x) for x in bernoulli(9, 0.0, 3, 0).client_rounds)
    assert not any(len(x) for x in bernoulli(0, 0.5, 3, 0).client_rounds)


def test_last_rounds_have_a_poisson_number():
    schedule = uniform(10, 5, 30, 1, Insertion(6000, 5000, LastRounds(4, 1.5)))
    there = matrix(schedule.canary_rounds, 6000)
    assert not there[:, :26].any()
    assert not there[5000:].any()
    law = stats.poisson.pmf(np.arange(5), 1.5)
    law[4] = stats.poisson.sf(3, 1.5)
    assert fits(np.bincount(there[:5000].sum(axis=1), minlength=5), law)
    # Those who take part once do so in any of the four.
    assert fits(there[there.sum(axis=1) == 1].sum(axis=0)[26:], np.full(4, 0.25))
    assert schedule.canary_sampling.kind == "poisson number"


def test_coins_are_fair_and_tossed_for_each():
    schedule = shuffled_epochs(30, 7, 1, 1, Insertion(8000))
    assert schedule.inclusion == "coin"
    included = schedule.included
    assert stats.binomtest(int(included.sum()), 8000, 0.5).pvalue > LEVEL
    pairs = np.bincount(included[::2] * 2 + included[1::2], minlength=4)
    assert fits(pairs, np.full(4, 0.25))
    assert (matrix(schedule.canary_rounds, 8000).sum(axis=1) == included).all()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("pattern", [None, Presentations(3), LastRounds(4, 1.5)], ids=["clients", "periods", "last"])
def test_rounds_do_not_depend_on_coins(name, pattern, monkeypatch):
    def drawn():
        schedule = MAKERS[name](5, Insertion(40, pattern=pattern))
        rounds = schedule.canary_rounds, schedule.unobserved_rounds
        return schedule.included, matrix(rounds[0], 40) | matrix(rounds[1], 40)

    def other_coins(seed, purpose):
        return own(6 if purpose is Purpose.COINS else seed, purpose)

    first, own = drawn(), participation.generator
    monkeypatch.setattr(participation, "generator", other_coins)
    second = drawn()
    assert (first[0] != second[0]).any()
    assert (first[1] == second[1]).all()


def test_without_coins_the_first_are_included():
    schedule = shuffled_epochs(30, 7, 1, 1, Insertion(20, 8))
    assert schedule.inclusion == "fixed"
    assert schedule.included.tolist() == [True] * 8 + [False] * 12
