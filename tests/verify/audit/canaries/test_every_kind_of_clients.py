"""What canary clients must do with every kind of canaries, and so must each class that is derived of them."""

from functools import cache

import numpy as np
import pytest

from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.canaries.scores import Score
from canaryproof.verify.audit.canaries.whitened_clients import WhitenedClients
from tests.verify.audit.canaries.test_every_kind_of_canaries import COUNT, DIM, MADE, Canaries, ShardedCanaries

ROUNDS, OBSERVED, CLIP = 5, 4, 2.0
SCHEDULE = bernoulli(0, 0.5, ROUNDS, 3, Insertion(COUNT, OBSERVED))
NOISE, OTHERS = np.random.default_rng(0).standard_normal((2, ROUNDS, DIM))
MAKE = {
    kind.__name__: lambda canaries=canaries: CanaryClients(
        canaries, SCHEDULE, block=3, noise_multiplier=0.5, keep_table=True
    )
    for kind, canaries in MADE.items()
} | {"WhitenedClients": lambda: WhitenedClients(MADE[Canaries], SCHEDULE, np.tril(np.ones((ROUNDS, ROUNDS))))}
# Those that keep all increments write none.
SAVED = [name for name in MAKE if name != "WhitenedClients"]

every_kind = pytest.mark.parametrize("name", MAKE)


def train(clients, end=ROUNDS, unit=1.0):
    """Go on to a round; others' updates are known, round 1 releases nothing, and no delta may be written to."""
    for t in range(clients.rounds, end):
        known = unit * OTHERS[t]
        delta = known if t == 1 else unit * (clients.total(t, CLIP) + NOISE[t]) + known
        delta.flags.writeable = known.flags.writeable = False
        clients.add(delta, t, known=known)
    return clients


def outcome(clients):
    """All that clients say of a training, as one array."""
    served = [Score.KNOWN_ROUNDS] if isinstance(clients, WhitenedClients) else list(Score)
    scores = [clients.scores(score) for score in served]
    traces = clients.traces
    parts = [part for each in scores for part in (each.observed, each.unobserved) if part is not None]
    table = [] if isinstance(clients, WhitenedClients) else clients.table
    return np.concatenate([*parts, *table, traces.cosines, traces.lengths, clients.evidence(1.0).log_values])


@cache
def whole(name):
    """The outcome of a training without interruption."""
    return outcome(train(MAKE[name]()))


def test_every_class_of_clients_is_in_the_list():
    assert {each.__name__ for each in CanaryClients.__subclasses__()} <= MAKE.keys()


@every_kind
def test_a_total_is_the_sum_of_the_participants_canaries(name):
    clients = MAKE[name]()
    for t in range(ROUNDS):
        members = clients.participants(t)
        assert SCHEDULE.canaries(t).tolist() == members.tolist()
        expected = CLIP * np.sum([MADE[Canaries].sum([j]) for j in members], axis=0)
        if name in ("Canaries", "ShardedCanaries", "WhitenedClients"):
            np.testing.assert_allclose(clients.total(t, CLIP), expected, atol=1e-12)
        np.testing.assert_allclose(clients.total(t, 4.0 * CLIP), 4.0 * clients.total(t, CLIP), rtol=1e-15)


@pytest.mark.parametrize("name", [name for name in MAKE if name != ShardedCanaries.__name__])
def test_updates_have_the_clip_norm_and_add_up(name):
    clients = MAKE[name]()
    for t in range(ROUNDS):
        updates = clients.updates(t, CLIP)
        assert (updates.dtype, updates.shape) == (np.float32, (len(clients.participants(t)), DIM))
        np.testing.assert_allclose(np.linalg.norm(updates.astype(float), axis=1), CLIP, rtol=1e-6)
        for update, j in zip(updates, clients.participants(t), strict=True):
            np.testing.assert_allclose(update, CLIP * clients.canaries.vector(j), rtol=1e-6)
        np.testing.assert_allclose(updates.astype(float).sum(axis=0), clients.total(t, CLIP), atol=1e-6)


@every_kind
def test_a_training_is_counted_and_equal_ones_have_equal_bits(name):
    clients = train(MAKE[name](), 3)
    record = clients.scores("known rounds").record
    assert (clients.rounds, record.rounds, record.missing) == (3, 3, ROUNDS - 3)
    # Whitening adds earlier rounds to one that releases nothing.
    assert record.skipped == (0 if name == "WhitenedClients" else 1)
    assert len(clients.scores("known rounds").observed) + record.left_out == OBSERVED
    np.testing.assert_array_equal(outcome(train(clients)), whole(name))
    for more in (np.ones(DIM), np.zeros(DIM)):
        with pytest.raises(ValueError, match=r"^round must be an integer from 0 to 4, not 5$"):
            clients.add(more, known=np.zeros(DIM))


@every_kind
def test_the_unit_of_the_deltas_does_not_matter(name):
    for unit in (2.0**-90, 2.0**90):
        np.testing.assert_array_equal(outcome(train(MAKE[name](), unit=unit)), whole(name))


@every_kind
def test_asking_changes_nothing(name):
    clients = MAKE[name]()
    for end in range(3, ROUNDS + 1):
        train(clients, end)
        first = outcome(clients)
        clients.warnings()
        np.testing.assert_array_equal(outcome(clients), first)
    np.testing.assert_array_equal(outcome(clients), whole(name))


BAD_DELTAS = [
    ({"delta": np.append(np.ones(DIM - 1), np.nan)}, "finite"),
    ({"delta": np.append(np.ones(DIM - 1), np.inf)}, "finite"),
    ({"delta": np.ones(DIM + 1), "known": np.zeros(DIM + 1)}, "shape"),
    ({"delta": np.zeros(DIM + 1), "known": np.zeros(DIM + 1)}, "shape"),
    ({"delta": np.ones((1, DIM)), "known": np.zeros((1, DIM))}, "shape"),
    ({"delta": np.ones(DIM, int)}, "delta of round 2 must be floating-point numbers, not int64; flatten"),
    ({"known": np.zeros(DIM, int)}, "known: must be floating-point numbers, not int64; flatten"),
    ({"known": np.zeros(DIM - 1)}, "known: must have the "),
    ({"known": None}, "known: must be given"),
    ({"round": 1}, "round: it is the turn of round 2, not of 1"),
    ({"round": 3}, "round: it is the turn of round 2, not of 3"),
]


@every_kind
def test_a_delta_that_is_refused_changes_nothing(name):
    clients = train(MAKE[name](), 2)
    for arguments, rule in BAD_DELTAS:
        with pytest.raises(ValueError, match=rf"^[^\n]*{rule}[^\n]*$"):
            clients.add(**{"delta": np.ones(DIM), "round": 2, "known": np.zeros(DIM)} | arguments)
        assert clients.rounds == 2
    np.testing.assert_array_equal(outcome(train(clients)), whole(name))


@pytest.mark.parametrize("name", SAVED)
def test_a_training_that_goes_on_from_a_file_has_the_same_bits(name, tmp_path):
    clients = MAKE[name]()
    for end in range(ROUNDS + 1):
        train(clients, end).save(tmp_path / "state")
        clients = MAKE[name]()
        clients.load(tmp_path / "state")
        assert clients.rounds == end
    np.testing.assert_array_equal(outcome(clients), whole(name))
    assert {file.name for file in tmp_path.iterdir()} == {"state", f"state.canaryproof-{ROUNDS}"}


@every_kind
def test_rounds_without_a_delta_are_counted_and_said(name):
    clients = MAKE[name]()
    for t in range(ROUNDS):
        nothing = np.zeros(DIM)
        clients.add(nothing if t < 2 else clients.total(t, CLIP) + NOISE[t], t, known=nothing)
    assert (clients.rounds, clients.skipped_rounds) == (ROUNDS, 2)
    assert clients.warnings() == (f"2 of {ROUNDS} rounds had a zero delta and were not scored",)


@every_kind
def test_what_is_no_round_or_clip_norm_is_refused(name):
    clients = MAKE[name]()
    for number in (-1, ROUNDS, 0.5):
        with pytest.raises(ValueError, match=r"^round must be an integer from 0 to 4, not"):
            clients.participants(number)
    for norm in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"^clip_norm must be positive and finite, not"):
            clients.total(0, norm)
    with pytest.raises(ValueError, match=r"^score: must be"):
        train(clients, 1).scores("best")
