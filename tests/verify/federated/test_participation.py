import numpy as np
import pytest

from canaryproof.verify.canaries.participation import check, checked_integer, patterns


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


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (Own([[0], [4]], [[], []]), r"clients\(1\): index 4 is out of range, there are 4 clients"),
        (Own([[-1]], [[]]), r"clients\(0\): index -1 is out of range"),
        (Own([[0, 1, 0]], [[]]), r"clients\(0\): index 0 takes part twice"),
        (Own([[0]], [[3]]), r"canaries\(0\): index 3 is out of range, there are 3 canaries"),
        (Own([[0], [0]], [[], [1, 2]]), r"canaries\(1\): canary 2 takes part and is not included"),
        (Own([[0]], [[1, 1]]), r"canaries\(0\): index 1 takes part twice"),
        (Own([[0.0]], [[]]), r"clients\(0\): must be a one-dimensional array of integers, not 1-d float64"),
        (Own([[True]], [[]]), r"clients\(0\): must be a one-dimensional array of integers, not 1-d bool"),
        (Own([[[0]]], [[]]), r"clients\(0\): must be a one-dimensional array of integers, not 2-d"),
        (Own([[0]], [[]], included=(True, False)), r"included must be bool of shape \(3,\), not bool of shape \(2,\)"),
        (Own([[0]], [[]], included=(1, 1, 0)), "included must be bool"),
        (Own([], []), "rounds must be an integer of at least 1, not 0"),
    ],
)
def test_one_line_says_what_is_wrong(own, message):
    with pytest.raises(ValueError, match=message) as caught:
        check(own, clients=4, canaries=3)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("participation: ")


def test_inclusion_must_be_known():
    own = Own([[0]], [[]])
    own.inclusion = "dice"
    with pytest.raises(ValueError, match="inclusion must be fixed or coin, not 'dice'"):
        check(own, 4, 3)


def test_patterns_are_the_sets_of_rounds():
    own = Own([[0, 1], [1], [0, 2]], [[0, 1], [], [1]])
    assert patterns(own, "clients") == {(0, 2), (0, 1), (2,)}
    assert patterns(own, "canaries") == {(0,), (0, 2)}


@pytest.mark.parametrize("value", [0, 4, 1.0, "1", None])
def test_integers_are_checked(value):
    with pytest.raises(ValueError, match="number must be an integer from 1 to 3"):
        checked_integer("number", value, 1, 3)
    assert checked_integer("number", np.int64(3), 1, 3) == 3
