"""Canaries of several groups of coordinates, each with a norm of its own."""

import math

import numpy as np
import pytest

from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.grouped_canaries import GroupedCanaries
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.canaries.round_scores import RoundScores

SIZES, NORMS, COUNT = (5, 40, 300), (0.5, 2.0, 1.0), 8
CANARIES = GroupedCanaries(3, COUNT, SIZES, NORMS)
DIM = sum(SIZES)
ENDS = np.cumsum(SIZES)[:-1]


def test_a_part_has_its_groups_share_of_the_norm():
    for j in range(COUNT):
        lengths = [np.linalg.norm(part) for part in np.split(CANARIES.vector(j), ENDS)]
        assert lengths == pytest.approx(np.array(NORMS) / np.linalg.norm(NORMS), rel=1e-6)


def test_directions_of_groups_of_one_size_differ():
    first, second = np.split(GroupedCanaries(3, 1, (50, 50), (1.0, 1.0)).vector(0), 2)
    # Independent directions have a cosine of 1/√50, at most 0.76 with 1 − 1e-8.
    assert abs(first @ second) / (np.linalg.norm(first) * np.linalg.norm(second)) < 0.76


def test_sums_and_cosines_are_those_of_the_vectors():
    vectors = np.array([CANARIES.vector(j) for j in range(COUNT)], np.float64)
    assert CANARIES.sum([1, 4], [2.0, -1.0]) == pytest.approx(2.0 * vectors[1] - vectors[4], abs=1e-6)
    block = np.random.default_rng(0).normal(size=(3, DIM))
    # A group may be zero.
    block[1, : SIZES[0]] = 0.0
    expected = block @ vectors.T / np.linalg.norm(block, axis=1, keepdims=True)
    assert CANARIES.cosines(block) == pytest.approx(expected, abs=1e-6)
    assert CANARIES.block_cosines(block) == pytest.approx(expected, abs=2e-6)
    assert CANARIES.cosines(block[0], [5]) == pytest.approx(expected[0, 5:6], abs=1e-6)


def trained(rounds, save=None, resume=None):
    clients = CanaryClients(CANARIES, bernoulli(0, 0.5, 4, 1, Insertion(COUNT, 4)))
    if resume is not None:
        clients.load(resume)
    for t in range(clients.rounds, rounds):
        noise = np.random.default_rng([t, 5]).normal(size=DIM)
        clients.add(clients.total(t, 1.0) + noise, t, known=np.zeros(DIM))
    if save is not None:
        clients.save(save)
    return clients


def test_scores_resume_with_the_same_bits(tmp_path):
    trained(2, save=tmp_path / "state")
    resumed, whole = trained(4, resume=tmp_path / "state"), trained(4)
    for score in ("known rounds", "largest"):
        assert np.array_equal(resumed.scores(score).observed, whole.scores(score).observed)
    with pytest.raises(ValueError, match="canaries: must be given, since they have groups"):
        RoundScores.load(tmp_path / "state.2")
    other = CanaryClients(
        GroupedCanaries(3, COUNT, SIZES, (1.0, 2.0, 1.0)), bernoulli(0, 0.5, 4, 1, Insertion(COUNT, 4))
    )
    with pytest.raises(ValueError, match="participation"):
        other.load(tmp_path / "state")


@pytest.mark.parametrize(
    ("sizes", "norms", "message"),
    [
        ((5, 1), (1.0, 1.0), "sizes: must be at least 2 each, since one coordinate has no random direction"),
        ((5, 4), (1.0,), "norms: must be one for each of 2 groups, not 1"),
        ((), (), "norms: must be one for each of 0 groups"),
        ((5,), (0.0,), "norms: must be positive and finite, not 0.0"),
        ((5,), (math.inf,), "norms: must be positive and finite, not inf"),
    ],
)
def test_groups_that_cannot_be_are_refused(sizes, norms, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        GroupedCanaries(0, 2, sizes, norms)


@pytest.mark.parametrize("vector", [np.zeros(DIM), np.full(DIM, np.nan), np.ones(DIM + 1)], ids=["zero", "nan", "long"])
def test_vectors_without_a_direction_are_refused(vector):
    with pytest.raises(ValueError, match=r"^vectors must be "):
        CANARIES.cosines(vector)
