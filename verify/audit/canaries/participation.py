"""Participation: the functions clients(t) and canaries(t) of Andrew et al. (arXiv 2302.03098).

A training loop takes any object with the attributes of ``Participation``, such as one's own; ``check`` tells what is
wrong with one. ``shuffled_epochs``, ``uniform`` and ``bernoulli`` draw those that the papers speak of. They depend on
their arguments and the seed alone. Canaries come on top of a round's clients, so that clients take part in the same
rounds with and without them. Rounds are numbered from 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arguments import checked_integers
from canaryproof.kernels.arrays import Ints, on_host
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import check_type, checked_integer, refusals_of, short_repr
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.sampling import SCHEDULED, Members, Sampling
from canaryproof.verify.audit.bounds.lower_bound import Inclusion
from canaryproof.verify.audit.canaries.seeds import Purpose, Seed, generator

_INCLUSIONS = tuple(inclusion.value for inclusion in (Inclusion.FIXED, Inclusion.COIN))
# Above these a schedule would be drawn for hours, and no memory has it.
_MOST_MEMBERS, _MOST_ROUNDS = 2**32, 10**9
_MEAN = rules.NumberRange("lie in [0, 1e6]", 0.0, 1e6)


@set_module("canaryproof")
class Participation(Protocol):
    """The functions that a training loop asks of a schedule.

    A schedule of your own needs nothing else for the score of the largest cosine. That of known rounds also needs the
    rounds of unobserved canaries, and the likelihood the law of the sampling, which the package's own schedules have.

    Examples
    --------
    >>> import canaryproof as cp
    >>> schedule: cp.Participation = cp.uniform(100, cohort=10, rounds=5, seed=0)
    >>> len(schedule.clients(0))
    10
    """

    @property
    def rounds(self) -> int:
        """Number of rounds."""

    @property
    def included(self) -> NDArray[np.bool_]:
        """Whether a canary is one of the population, shape (canaries,); the others stay unobserved."""

    @property
    def inclusion(self) -> str:
        """``fixed``, or ``coin`` if a fair coin of its own decided whether a canary is included."""

    def clients(self, round: int) -> Ints:  # noqa: A002
        """Return the clients who take part in a round."""

    def canaries(self, round: int) -> Ints:  # noqa: A002
        """Return the included canaries who take part in a round."""


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
            f"participation: inclusion must be {' or '.join(_INCLUSIONS)}, not {short_repr(participation.inclusion)}"
        )
    checked_inclusion(participation, canaries)
    for t in range(participation.rounds):
        _checked_members("clients", t, participation.clients(t), clients)
        checked_canaries(participation, t)


def checked_inclusion(participation: Participation, canaries: int) -> NDArray[np.bool_]:
    """Return which canaries are included; there must be one entry per canary."""
    if not all(hasattr(participation, name) for name in ("rounds", "inclusion", "included", "clients", "canaries")):
        raise ValueError(
            f"participation: must be one, such as canaryproof.uniform returns, not {short_repr(participation)}"
        )
    included = np.asarray(participation.included)
    if included.dtype != np.bool_ or included.shape != (canaries,):
        raise ValueError(
            f"participation: included must be bool of shape ({canaries},), not {included.dtype} of shape "
            f"{included.shape}"
        )
    return included


def checked_canaries(participation: Participation, round: int) -> Ints:  # noqa: A002
    """Return the canaries who take part in a round, if they may."""
    included = np.asarray(participation.included)
    members = _checked_members("canaries", round, participation.canaries(round), len(included))
    if not included[members].all():
        wrong = members[~included[members]][0]
        raise ValueError(f"participation: canaries({round}): canary {wrong} takes part and is not included")
    return members


def _checked_members(kind: Members, round: int, members: object, population: int) -> Ints:  # noqa: A002
    return checked_members(f"participation: {kind}({round})", members, population, kind)


def checked_members(field: str, members: object, population: int, kind: Members = "canaries") -> Ints:
    """Return indices of members of a population, if none is out of range or repeated."""
    array = checked_integers(f"{field}:", members)  # type: ignore[arg-type]
    wrong = array[(array < 0) | (array >= population)]
    if len(wrong):
        raise ValueError(f"{field}: index {wrong[0]} is out of range, there are {population} {kind}")
    ordered = np.sort(array)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(again):
        raise ValueError(f"{field}: index {again[0]} takes part twice")
    return array.astype(np.int64)


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Presentations:
    """Each canary takes part once in each of several periods of equal length, at a random position (Section 5.2).

    Attributes
    ----------
    number
        Number of periods.
    """

    number: int


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class LastRounds:
    """A canary takes part in a Poisson number of the last rounds (first version, Section 4).

    Where clients are drawn with replacement in each round, the number of times that one takes part is nearly Poisson.
    The last rounds leave more of a trace in the final model.

    Attributes
    ----------
    rounds
        Number L of last rounds. A canary takes part at most once in a round, hence at most L times.
    mean
        Mean of the Poisson law. A canary that drew 0 is included all the same.
    """

    rounds: int
    mean: float


@set_module("canaryproof")
@dataclass(frozen=True)
class Insertion:
    """Which canaries there are, and when they take part.

    Attributes
    ----------
    count
        Number of canaries, observed and unobserved.
    observed
        The first so many are included; None if a fair coin decides for each.
    pattern
        Rounds in which included canaries take part; None if they do as clients do.

    Examples
    --------
    >>> import canaryproof as cp
    >>> inserted = cp.Insertion(20, observed=10)
    >>> schedule = cp.uniform(100, cohort=10, rounds=5, seed=0, canaries=inserted)
    >>> int(schedule.included.sum())
    10
    """

    count: int
    observed: int | None = None
    pattern: Presentations | LastRounds | None = None

    def __post_init__(self) -> None:
        checked_integer("count", self.count, 0, _MOST_MEMBERS)
        if self.observed is not None:
            checked_integer("observed", self.observed, 0, self.count)
        if self.pattern is not None:
            check_type("pattern", self.pattern, (Presentations, LastRounds), "None, Presentations or LastRounds")


NO_CANARIES = Insertion(0, 0)


@set_module("canaryproof.typing")
@dataclass(frozen=True, eq=False)
class Schedule:
    """A participation that was drawn.

    Attributes
    ----------
    client_rounds, canary_rounds
        For each round the indices of those who take part, in increasing order.
    unobserved_rounds
        For each round the indices of the canaries that are not included and would have taken part, drawn by the same
        law.
    included, inclusion
        As in ``Participation``.
    client_sampling, canary_sampling
        How the rounds of a client and of an included canary were drawn.
    """

    client_rounds: tuple[Ints, ...]
    canary_rounds: tuple[Ints, ...]
    unobserved_rounds: tuple[Ints, ...]
    included: NDArray[np.bool_]
    inclusion: str
    client_sampling: Sampling
    canary_sampling: Sampling

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self.client_rounds)

    def clients(self, round: int) -> Ints:  # noqa: A002
        """Return the clients who take part in a round."""
        return self.client_rounds[checked_integer("round", round, 0, self.rounds - 1)]

    def canaries(self, round: int) -> Ints:  # noqa: A002
        """Return the included canaries who take part in a round."""
        return self.canary_rounds[checked_integer("round", round, 0, self.rounds - 1)]

    def unobserved_members(self, round: int) -> Ints:  # noqa: A002
        """Return the canaries that are not included and would have taken part in a round."""
        return self.unobserved_rounds[checked_integer("round", round, 0, self.rounds - 1)]


@set_module("canaryproof")
def shuffled_epochs(clients: int, cohort: int, epochs: int, seed: Seed, canaries: Insertion = NO_CANARIES) -> Schedule:
    """Shuffle the clients in each epoch and let one cohort after the other take part.

    Cohorts are as equal as can be: an epoch has ⌈clients/cohort⌉ rounds, of at most ``cohort`` clients. A canary
    that does as clients do takes part once in each epoch.

    Parameters
    ----------
    clients
        Number of clients, at least 1.
    cohort
        Largest number of clients in a round.
    epochs
        Number of epochs.
    seed
        Seed of the schedule.
    canaries
        The canaries; none by default.

    Returns
    -------
    The schedule.

    Raises
    ------
    ValueError
        If a number is not an integer in its range.

    Examples
    --------
    >>> import canaryproof as cp
    >>> schedule = cp.shuffled_epochs(clients=1000, cohort=300, epochs=1, seed=0)
    >>> [len(schedule.clients(t)) for t in range(schedule.rounds)]
    [250, 250, 250, 250]
    """
    checked_integer("clients", clients, 1, _MOST_MEMBERS)
    checked_integer("cohort", cohort, 1, clients)
    checked_integer("epochs", epochs, 1, _MOST_ROUNDS)
    check_type("canaries", canaries, Insertion, "an Insertion")
    rng = generator(seed, Purpose.CLIENTS)
    rounds = math.ceil(clients / cohort)
    drawn = [cohort_members for _ in range(epochs) for cohort_members in _spread(np.arange(clients), rounds, rng)]
    return _schedule(drawn, SCHEDULED, canaries, Presentations(epochs), seed)


@set_module("canaryproof")
def uniform(clients: int, cohort: int, rounds: int, seed: Seed, canaries: Insertion = NO_CANARIES) -> Schedule:
    """Draw a cohort of fixed size in each round, without replacement in the round and independently of other rounds.

    A canary that does as clients do takes part in each round with probability cohort/clients, independently: the law
    of a single client's rounds.

    Parameters
    ----------
    clients
        Number of clients; may be 0.
    cohort
        Number of clients in a round.
    rounds
        Number of rounds.
    seed, canaries
        As for ``shuffled_epochs``.

    Returns
    -------
    The schedule.

    Raises
    ------
    ValueError
        If a number is not an integer in its range, or canaries are to do as clients do and there are none.

    Examples
    --------
    >>> import canaryproof as cp
    >>> schedule = cp.uniform(1000, cohort=100, rounds=3, seed=0)
    >>> [len(schedule.clients(t)) for t in range(3)]
    [100, 100, 100]
    """
    checked_integer("clients", clients, 0, _MOST_MEMBERS)
    checked_integer("cohort", cohort, 0, clients)
    checked_integer("rounds", rounds, 1, _MOST_ROUNDS)
    check_type("canaries", canaries, Insertion, "an Insertion")
    rng = generator(seed, Purpose.CLIENTS)
    drawn = [rng.choice(clients, cohort, replace=False) if cohort else np.arange(0) for _ in range(rounds)]
    if not clients:
        return _schedule(drawn, SCHEDULED, canaries, None, seed)
    rate = Fraction(cohort, clients)
    return _schedule(drawn, Sampling("without replacement", rate), canaries, float(rate), seed)


@set_module("canaryproof")
def bernoulli(clients: int, rate: float, rounds: int, seed: Seed, canaries: Insertion = NO_CANARIES) -> Schedule:
    """Let each client take part in each round with the same probability, independently (Poisson sampling).

    Parameters
    ----------
    clients, rounds, seed, canaries
        As for ``uniform``.
    rate
        Probability in [0, 1] to take part in a round; that of a canary too, if it does as clients do.

    Returns
    -------
    The schedule.

    Raises
    ------
    ValueError
        If a number is not an integer in its range, or the rate is no probability.

    Examples
    --------
    >>> import canaryproof as cp
    >>> schedule = cp.bernoulli(1000, 0.1, rounds=3, seed=0)
    >>> [len(schedule.clients(t)) for t in range(3)]
    [102, 113, 131]
    """
    checked_integer("clients", clients, 0, _MOST_MEMBERS)
    checked_integer("rounds", rounds, 1, _MOST_ROUNDS)
    check_type("canaries", canaries, Insertion, "an Insertion")
    rate = rules.PROBABILITY.number("rate", rate)
    drawn = _toss_coins(np.arange(clients), rate, rounds, generator(seed, Purpose.CLIENTS))
    return _schedule(drawn, Sampling("poisson", rate), canaries, rate, seed)


def _schedule(
    client_rounds: Sequence[Ints],
    client_sampling: Sampling,
    canaries: Insertion,
    like_clients: Presentations | float | None,
    seed: Seed,
) -> Schedule:
    """Add canaries to the clients' rounds; ``like_clients`` is their pattern, or their probability to take part."""
    rounds, everybody = len(client_rounds), np.arange(canaries.count)
    pattern = like_clients if canaries.pattern is None else canaries.pattern
    sampling, rng = SCHEDULED, generator(seed, Purpose.CANARIES)
    drawn: Sequence[Ints] = [everybody] * rounds
    others = drawn
    if canaries.observed is None:
        # Bounds that rest on coins need rounds that do not depend on them: all canaries' are drawn before.
        inclusion, included = Inclusion.COIN, generator(seed, Purpose.COINS).integers(2, size=canaries.count) == 1
        if canaries.count:
            all_rounds, sampling = _draw_rounds(everybody, pattern, rounds, rng)
            drawn, others = ([row[part[row]] for row in all_rounds] for part in (included, ~included))
    else:
        inclusion, included = Inclusion.FIXED, everybody < canaries.observed
        if canaries.count:
            drawn, sampling = _draw_rounds(everybody[included], pattern, rounds, rng)
            others, _ = _draw_rounds(everybody[~included], pattern, rounds, generator(seed, Purpose.UNOBSERVED))
    included.flags.writeable = False
    rows = _freeze(client_rounds), _freeze(drawn), _freeze(others)
    return Schedule(*rows, included, inclusion.value, client_sampling, sampling)


def _draw_rounds(
    members: Ints, pattern: Presentations | LastRounds | float | None, rounds: int, rng: np.random.Generator
) -> tuple[Sequence[Ints], Sampling]:
    """Draw the rounds of some canaries."""
    if isinstance(pattern, Presentations):
        number = checked_integer("number", pattern.number, 1, rounds)
        periods = np.diff(np.arange(number + 1) * rounds // number)
        return [part for length in periods for part in _spread(members, length, rng)], SCHEDULED
    if isinstance(pattern, LastRounds):
        return _last(members, pattern, rounds, rng), Sampling("poisson number")
    if pattern is None:
        raise ValueError("pattern: without clients it must be said when canaries take part")
    return _toss_coins(members, pattern, rounds, rng), Sampling("poisson", pattern)


@set_module("canaryproof")
def fixed_schedule(table: ArrayLike, included: ArrayLike, inclusion: str = "fixed") -> Schedule:
    """Let canaries take part in rounds that you choose.

    Parameters
    ----------
    table
        Whether a round is a canary's, bool, shape (rounds, canaries). For a canary that is not included these are the
        rounds in which it would have taken part; they must be drawn by the same law.
    included
        Whether a canary takes part at all, bool, shape (canaries,).
    inclusion
        ``fixed``, or ``coin`` if a fair coin of its own decided whether a canary is included.

    Returns
    -------
    The schedule, without clients.

    Raises
    ------
    ValueError
        If an array has another type or shape, or ``inclusion`` is none of these.

    Examples
    --------
    >>> import canaryproof as cp
    >>> table = [[True, False, True], [False, True, False]]
    >>> schedule = cp.fixed_schedule(table, included=[True, True, False])
    >>> schedule.canaries(0)
    array([0])
    """
    with refusals_of("table:"):
        rows = on_host(table)
    with refusals_of("included:"):
        chosen = on_host(included)
    if rows.dtype != np.bool_ or rows.ndim != 2 or not len(rows):
        raise ValueError(f"table: must be bool of shape (rounds, canaries), not {rows.dtype} of shape {rows.shape}")
    if chosen.dtype != np.bool_ or chosen.shape != rows.shape[1:]:
        raise ValueError(f"included: must be bool of shape {rows.shape[1:]}, not {chosen.dtype} of {chosen.shape}")
    inclusion = rules.choice("inclusion", inclusion, _INCLUSIONS)
    frozen = chosen.copy()
    frozen.flags.writeable = False
    nobody = [np.arange(0)] * len(rows)
    drawn, others = ([np.flatnonzero(row & part) for row in rows] for part in (chosen, ~chosen))
    return Schedule(_freeze(nobody), _freeze(drawn), _freeze(others), frozen, inclusion, SCHEDULED, SCHEDULED)


def _spread(members: Ints, rounds: int, rng: np.random.Generator) -> list[Ints]:
    """Give each member one of the rounds, uniformly, such that no round has two more members than another."""
    # The offset makes the expected number the same in all rounds, also where there are fewer members than rounds.
    ends = (np.arange(rounds + 1) * len(members) + rng.integers(rounds)) // rounds
    return np.split(rng.permutation(members), ends[1:-1])


def _toss_coins(members: Ints, rate: float, rounds: int, rng: np.random.Generator) -> list[Ints]:
    """Let each member take part in each round with a probability, independently."""
    numbers = rng.binomial(len(members), rate, size=rounds)
    return [rng.choice(members, number, replace=False) if number else members[:0] for number in numbers]


def _last(members: Ints, pattern: LastRounds, rounds: int, rng: np.random.Generator) -> list[Ints]:
    """Let each member take part in a Poisson number of the last rounds."""
    last = checked_integer("rounds of the canaries", pattern.rounds, 1, rounds)
    mean = _MEAN.number("mean", pattern.mean)
    taking_part = np.zeros((last, len(members)), dtype=bool)
    for column, number in enumerate(rng.poisson(mean, len(members))):
        taking_part[rng.choice(last, min(number, last), replace=False), column] = True
    return [members[:0]] * (rounds - last) + [members[row] for row in taking_part]


def _freeze(rounds: Sequence[Ints]) -> tuple[Ints, ...]:
    """Sort indices, and make them read-only."""
    ordered = tuple(np.sort(indices) for indices in rounds)
    for indices in ordered:
        indices.flags.writeable = False
    return ordered
