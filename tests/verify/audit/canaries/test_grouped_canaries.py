"""Canaries of several groups of coordinates, each with a norm of its own."""

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


def test_a_state_needs_the_groups_that_it_is_of(tmp_path):
    schedule = bernoulli(0, 0.5, 4, 1, Insertion(COUNT, 4))
    CanaryClients(CANARIES, schedule).save(tmp_path / "state")
    with pytest.raises(ValueError, match="canaries: must be given, since they have groups"):
        RoundScores.load(tmp_path / "state.canaryproof-0")
    other = CanaryClients(GroupedCanaries(3, COUNT, SIZES, (1.0, 2.0, 1.0)), schedule)
    with pytest.raises(ValueError, match="participation"):
        other.load(tmp_path / "state")
