"""Who takes part in which round: the functions clients(t) and canaries(t) of Andrew et al. (arXiv 2302.03098).

A training loop takes any object with the attributes of ``Participation``, such as one's own; ``check`` tells what is
wrong with one. ``schedules`` makes those that the papers speak of. Rounds are numbered from 0.
"""

import operator
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.bounds.scores import Inclusion

Indices = NDArray[np.int64]
Members = Literal["clients", "canaries"]

_INCLUSIONS = tuple(inclusion.value for inclusion in Inclusion)


class Participation(Protocol):
    """What a training loop asks; a schedule of one's own needs no more."""

    @property
    def rounds(self) -> int:
        """Number of rounds."""

    @property
    def included(self) -> NDArray[np.bool_]:
        """Whether a canary is one of the population, shape (canaries,); the others stay unobserved."""

    @property
    def inclusion(self) -> str:
        """``fixed``, or ``coin`` if a fair coin of its own decided whether a canary is included."""

    def clients(self, round: int) -> Indices:  # noqa: A002
        """Return the clients who take part in a round."""

    def canaries(self, round: int) -> Indices:  # noqa: A002
        """Return the included canaries who take part in a round."""


@dataclass(frozen=True)
class Sampling:
    """How the rounds of one member of the population were drawn, which privacy accounting may profit from.

    Attributes
    ----------
    kind
        ``scheduled``: nothing to profit from; ``poisson``: in each round with probability ``rate``, independently of
        all others; ``without replacement``: each round's cohort is a uniform sample of fixed size; ``poisson number``:
        in a random number of rounds.
    rate
        Probability to take part in a round; a fraction cohort/population for ``without replacement``.
    """

    kind: Literal["scheduled", "poisson", "without replacement", "poisson number"]
    rate: float | Fraction | None = None


SCHEDULED = Sampling("scheduled")


def check(participation: Participation, clients: int, canaries: int) -> None:
    """Refuse a participation that a training loop cannot follow.

    Parameters
    ----------
    participation
        A participation, such as one's own.
    clients, canaries
        Number of clients and of all canaries.

    Raises
    ------
    ValueError
        With the rule that is broken, and the round.
    """
    checked_integer("participation: rounds", participation.rounds, 1)
    if participation.inclusion not in _INCLUSIONS:
        raise ValueError(
            f"participation: inclusion must be {' or '.join(_INCLUSIONS)}, not {participation.inclusion!r}"
        )
    checked_inclusion(participation, canaries)
    for t in range(participation.rounds):
        _checked_members("clients", t, participation.clients(t), clients)
        checked_canaries(participation, t)


def checked_inclusion(participation: Participation, canaries: int) -> NDArray[np.bool_]:
    """Return which canaries are included, if as many are spoken of as there are."""
    included = np.asarray(participation.included)
    if included.dtype != np.bool_ or included.shape != (canaries,):
        raise ValueError(
            f"participation: included must be bool of shape ({canaries},), not {included.dtype} of shape "
            f"{included.shape}"
        )
    return included


def checked_canaries(participation: Participation, round: int) -> Indices:  # noqa: A002
    """Return the canaries who take part in a round, if they may."""
    included = np.asarray(participation.included)
    members = _checked_members("canaries", round, participation.canaries(round), len(included))
    if not included[members].all():
        wrong = members[~included[members]][0]
        raise ValueError(f"participation: canaries({round}): canary {wrong} takes part and is not included")
    return members


def patterns(participation: Participation, members: Members) -> set[tuple[int, ...]]:
    """Return the distinct sets of rounds in which clients or canaries take part; of those who ever do."""
    rounds_of: defaultdict[int, list[int]] = defaultdict(list)
    for t in range(participation.rounds):
        for member in np.asarray(getattr(participation, members)(t)).tolist():
            rounds_of[member].append(t)
    return {tuple(rounds) for rounds in rounds_of.values()}


def checked_integer(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return an integer that lies in its range."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = low - 1
    if number < low or (high is not None and number > high):
        rule = f"from {low} to {high}" if high is not None else f"of at least {low}"
        raise ValueError(f"{name} must be an integer {rule}, not {value!r}")
    return number


def _checked_members(kind: Members, round: int, members: object, population: int) -> Indices:  # noqa: A002
    place = f"participation: {kind}({round})"
    array = np.asarray(members)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{place}: must be a one-dimensional array of integers, not {array.ndim}-d {array.dtype}")
    wrong = array[(array < 0) | (array >= population)]
    if len(wrong):
        raise ValueError(f"{place}: index {wrong[0]} is out of range, there are {population} {kind}")
    values, counts = np.unique(array, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"{place}: index {values[counts > 1][0]} takes part twice")
    return array.astype(np.int64)
