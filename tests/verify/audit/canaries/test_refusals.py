"""What canaries, clients, participations, scores and shapes refuse, beside what every kind of canaries refuses."""

import math
from functools import partial

import numpy as np

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.grouped_canaries import GroupedCanaries
from canaryproof.verify.audit.canaries.participation import (
    Insertion,
    LastRounds,
    Presentations,
    bernoulli,
    check,
    checked_integer,
    fixed_schedule,
    shuffled_epochs,
    uniform,
)
from canaryproof.verify.audit.canaries.round_scores import RoundScores
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.canaries.shapes import flatten, split
from canaryproof.verify.audit.canaries.sharded_canaries import ShardedCanaries
from canaryproof.verify.audit.canaries.whitened_clients import WhitenedClients
from tests.refusals import refusals
from tests.verify.audit.canaries.test_participation import Own

COUNT, DIM, ROUNDS = 6, 40, 4
CANARIES, ORTHONORMAL = Canaries(3, COUNT, DIM), OrthonormalCanaries(3, COUNT, DIM)
SCHEDULE = bernoulli(0, 0.5, ROUNDS, 1, Insertion(COUNT, 4))
EPOCHS = shuffled_epochs(2, 1, 2, 0, Insertion(COUNT, 4))
DELTAS = np.random.default_rng(0).normal(size=(3, DIM))
GRAM = DELTAS @ DELTAS.T


# Rounds.


def added(delta=DELTAS[2], round=2, members=(0, 1), block=1, count=COUNT, halves=False):  # noqa: A002
    scores = RoundScores(Canaries(3, count, DIM), block)
    for row in DELTAS[:2]:
        scores.add(row)
    scores.add(CANARIES.partial_products(delta) if halves else delta, round, members)


def asked(name="maxima", rounds=1):
    scores = RoundScores(CANARIES)
    for row in DELTAS[:rounds]:
        scores.add(row)
    return getattr(scores, name)


# Clients.


def trained(canaries=CANARIES, rounds=3, known=False, noise_multiplier=None):
    clients = CanaryClients(canaries, SCHEDULE, noise_multiplier=noise_multiplier)
    for t in range(rounds):
        clients.add(DELTAS[t], t, known=np.zeros(DIM) if known else None)
    return clients


def next_round(delta=DELTAS[2], known=None, before=False):
    trained(rounds=2, known=before).add(delta, known=known)


def score(canaries=CANARIES, score="known rounds", gram=None, sampled=False):
    trained(canaries, noise_multiplier=1.0 if sampled else None).scores(score, gram)


def whitened(score="known rounds", gram=None, rounds=2):
    clients = WhitenedClients(CANARIES, SCHEDULE, np.eye(ROUNDS))
    for row in DELTAS[:rounds]:
        clients.add(row, known=np.zeros(DIM))
    clients.scores(score, gram)


def all_rounds(gram=((2.0, 1.0), (1.0, 2.0))):
    """Two rounds in which all canaries take part."""
    clients = CanaryClients(CANARIES, fixed_schedule(np.ones((2, COUNT), bool), np.arange(COUNT) < 4))
    for row in DELTAS[:2]:
        clients.add(row)
    clients.scores("known rounds", gram=gram)


def changed(row, column, factor):
    gram = GRAM.copy()
    gram[row, column] *= factor
    return gram


# Participations.


def own(clients=((0, 3), (), (2,)), canaries=((0,), (1, 0), ()), included=(True, True, False), inclusion="fixed"):
    participation = Own(clients, canaries, included)
    participation.inclusion = inclusion
    check(participation, clients=4, canaries=3)


def inserted(count=4, observed=4, pattern=Presentations(1)):  # noqa: B008
    uniform(5, 2, 3, 0, Insertion(count, observed, pattern))


NO_INTEGERS = "participation: clients(0): must be a one-dimensional array of integers, not "
TABLE = {
    partial(GroupedCanaries, 0, 2, sizes=(5, 4), norms=(1.0, 1.0)): [
        ("sizes", (5, 1), "sizes: must be an integer of at least 2 each, since one coordinate has no random direction"),
        ("norms", (1.0,), "norms: must be one for each of 2 groups, not 1"),
        ("norms", (0.0, 1.0), "norms: must be positive and finite, not 0.0"),
        ("norms", (1.0, math.inf), "norms: must be positive and finite, not inf"),
    ],
    partial(ShardedCanaries, CANARIES, shards=[slice(0, DIM)], add_up=lambda own: own): [
        ("shards", [slice(0, 30)], "shards: must have 40 coordinates in all processes together, not 30"),
        (
            "shards",
            [slice(0, 0)],
            "coordinates must be a slice of step 1 with some of 40 coordinates, not slice(0, 0, None)",
        ),
    ],
    partial(RoundScores, CANARIES, block=1, memory=1e9): [
        *(
            ("block", block, "block must be an integer from 1 to 65536, not")
            for block in (0, -1, 2**16 + 1, 1.5, "3", None)
        ),
        *(
            ("memory", memory, f"memory must be at least {4 * DIM + 105 * COUNT} bytes, for one delta, not")
            for memory in (0, 4 * DIM + 105 * COUNT - 1)
        ),
        ("memory", math.nan, "memory: must be a number of bytes, not nan"),
    ],
    added: [
        ("delta", np.zeros(DIM), "delta of round 2 must be finite and not zero"),
        *(
            ("delta", np.append(np.ones(DIM - 1), wrong), "delta of round 2 must be finite and not zero")
            for wrong in (np.nan, np.inf, -np.inf)
        ),
        ("delta", np.ones(DIM + 1), "delta of round 2 must be of shape (40,), not (41,)"),
        ("delta", np.ones((1, DIM)), "delta of round 2 must be of shape (40,), not (1, 40)"),
        ("delta", np.ones(DIM, int), "delta of round 2 must be floating-point numbers, not int64; flatten"),
        *(("round", wrong, f"round: it is the turn of round 2, not of {wrong}") for wrong in (0, 1, 3, -1)),
        ("members", [COUNT], "members: index 6 is out of range, there are 6 canaries"),
        ("members", [1, 1], "members: index 1 takes part twice"),
        ("members", [0.5], "members: must be a one-dimensional array of integers"),
    ],
    partial(added, delta=DELTAS[2], halves=True): [
        ("block", 2, "delta: products of slices need a block of 1, and must be of all canaries"),
        ("count", COUNT + 1, "delta: products of slices need a block of 1, and must be of all canaries"),
    ],
    asked: [
        ("name", "table", "table: was not kept; ask for it by keep_table=True before the first round"),
        ("name", "likelihoods", "likelihoods: need sampling"),
        ("rounds", 0, "maxima: no round was added"),
    ],
    partial(asked, name="known_rounds"): [("rounds", 0, "known_rounds: no round was added")],
    partial(CanaryClients, canaries=CANARIES, participation=SCHEDULE, noise_multiplier=1.0): [
        (
            "participation",
            bernoulli(0, 0.5, ROUNDS, 1, Insertion(COUNT + 1, 4)),
            "participation: included must be bool of shape (6,), not bool of shape (7,)",
        ),
        ("noise_multiplier", 0.0, "noise_multiplier: must lie between 0.01 and 1e+06, not 0.0"),
    ],
    next_round: [
        ("delta", np.full(DIM, np.nan), "the model diverged in round 2: its delta is not finite"),
        ("known", np.zeros(DIM), "known: must be given in every round or in none"),
    ],
    partial(next_round, known=np.zeros(DIM), before=True): [
        ("known", None, "known: must be given in every round or in none"),
        ("known", np.zeros(DIM - 1), "known: must have the delta's shape (40,), not (39,)"),
    ],
    partial(trained().final, vector=DELTAS[0]): [
        ("vector", np.zeros(DIM), "zero update: the final vector has no direction"),
        ("vector", np.full(DIM, np.nan), "the model diverged: its final vector is not finite"),
        ("vector", np.ones(3), "vectors must be of shape (40,) or (n, 40), not (3,)"),
        ("vector", np.ones(DIM, int), "final vector must be floating-point numbers, not int64"),
    ],
    partial(trained().evidence, noise_multiplier=1.0): [("noise_multiplier", 0.0, "noise_multiplier: must ")],
    score: [
        ("score", "best", "score: must be one of largest, likelihood, known rounds, not 'best'"),
        ("gram", GRAM[:2], "gram: must have shape (3, 3), not (2, 3)"),
        ("gram", np.full((3, 3), np.nan), "gram: must be finite, and not negative on its diagonal"),
        ("gram", changed(1, 1, -1.0), "gram: must be finite, and not negative on its diagonal"),
        ("gram", changed(2, 2, 0.0), "gram: must be positive on its diagonal where a round's delta is not zero"),
        ("gram", changed(0, 1, 2.0), "gram: must be symmetric, and hold inner products"),
        ("gram", np.where(np.eye(3, dtype=bool), GRAM, 3.0 * GRAM.max()), "gram: must be symmetric"),
    ],
    partial(score, score="likelihood", sampled=True): [
        ("sampled", False, "likelihoods: need sampling, the law by which rounds are drawn"),
    ],
    partial(score, gram=GRAM): [
        ("score", "largest", "gram: is for known rounds of independent canaries"),
        ("canaries", ORTHONORMAL, "gram: is for known rounds of independent canaries"),
    ],
    all_rounds: [
        ("gram", ((1.0, -1.0), (-1.0, 1.0)), "gram: the directions of the rounds of canary 0 cancel each other"),
    ],
    partial(WhitenedClients, CANARIES, SCHEDULE, strategy=np.eye(ROUNDS)): [
        ("strategy", np.eye(3), "strategy: must have shape (4, 4), not (3, 3)"),
        ("strategy", np.ones((4, 4)), "strategy: must be finite, lower triangular and not zero on its diagonal"),
        ("strategy", np.zeros((4, 4)), "strategy: must be finite, lower triangular and not zero on its diagonal"),
        ("strategy", np.full((4, 4), np.nan), "strategy: must be finite, lower triangular and not zero on its dia"),
    ],
    whitened: [
        (
            "score",
            "likelihood",
            "score: must be known rounds where noise is correlated, without gram, not 'likelihood'",
        ),
        ("gram", GRAM, "score: must be known rounds where noise is correlated, without gram"),
        ("rounds", 0, "scores: no round was added"),
    ],
    own: [
        ("clients", ((0,), (4,), ()), "participation: clients(1): index 4 is out of range, there are 4 clients"),
        ("clients", ((-1,), (), ()), "participation: clients(0): index -1 is out of range, there are 4 clients"),
        ("clients", ((0, 1, 0), (), ()), "participation: clients(0): index 0 takes part twice"),
        ("clients", ((0.0,), (), ()), NO_INTEGERS + "1-d float64"),
        ("clients", ((True,), (), ()), NO_INTEGERS + "1-d bool"),
        ("clients", (((0,),), (), ()), NO_INTEGERS + "2-d"),
        ("canaries", ((3,), (), ()), "participation: canaries(0): index 3 is out of range, there are 3 canaries"),
        ("canaries", ((), (1, 2), ()), "participation: canaries(1): canary 2 takes part and is not included"),
        ("canaries", ((1, 1), (), ()), "participation: canaries(0): index 1 takes part twice"),
        ("included", (True, False), "participation: included must be bool of shape (3,), not bool of shape (2,)"),
        ("included", (1, 1, 0), "participation: included must be bool of shape (3,), not int64 of shape (3,)"),
        ("inclusion", "dice", "participation: inclusion must be fixed or coin, not 'dice'"),
    ],
    partial(own, clients=((0,),), canaries=((),)): [
        ("clients", (), "participation: rounds must be an integer of at least 1, not 0"),
    ],
    partial(fixed_schedule, table=np.ones((2, 3), bool), included=np.ones(3, bool)): [
        ("table", np.zeros((2, 3)), "table: must be bool of shape (rounds, canaries), not float64 of shape (2, 3)"),
        ("table", np.zeros(3, bool), "table: must be bool of shape (rounds, canaries), not bool of shape (3,)"),
        ("table", np.zeros((0, 3), bool), "table: must be bool of shape (rounds, canaries), not bool of shape (0, 3)"),
        ("included", np.ones(2, bool), "included: must be bool of shape (3,)"),
    ],
    partial(shuffled_epochs, clients=5, cohort=2, epochs=1, seed=0): [
        ("clients", 0, "clients must be an integer from 1 to 4294967296, not 0"),
        ("cohort", 6, "cohort must be an integer from 1 to 5, not 6"),
        ("epochs", 0, "epochs must be an integer from 1 to 1000000000, not 0"),
    ],
    partial(uniform, clients=5, cohort=2, rounds=1, seed=0): [
        ("cohort", 6, "cohort must be an integer from 0 to 5, not 6"),
        ("rounds", 0, "rounds must be an integer from 1 to 1000000000, not 0"),
    ],
    partial(uniform, clients=0, cohort=0, rounds=1, seed=0): [
        ("canaries", Insertion(4, 2), "pattern: without clients it must be said"),
    ],
    partial(bernoulli, clients=5, rate=0.5, rounds=1, seed=0): [
        *(("rate", rate, f"rate: must lie in [0, 1], not {rate}") for rate in (1.5, -0.1, math.nan)),
    ],
    partial(SCHEDULE.clients, round=0): [
        *(("round", number, f"round must be an integer from 0 to 3, not {number}") for number in (-1, ROUNDS)),
    ],
    inserted: [
        ("count", -1, "count must be an integer from 0 to 4294967296, not -1"),
        ("observed", 5, "observed must be an integer from 0 to 4, not 5"),
        ("pattern", Presentations(4), "number must be an integer from 1 to 3, not 4"),
        ("pattern", LastRounds(4, 1.0), "rounds of the canaries must be an integer from 1 to 3, not 4"),
        ("pattern", LastRounds(2, -1.0), "mean: must lie"),
    ],
    partial(checked_integer, "number", value=np.int64(3), low=1, high=3): [
        *(
            ("value", value, f"number must be an integer from 1 to 3, not {value!r}")
            for value in (0, 4, 1.0, "1", None)
        ),
    ],
    partial(Scores, observed=[0.1, 0.2], dim=10): [
        ("observed", [0.1, math.nan], "observed[1]: must be finite, not nan"),
        ("observed", [0.1, math.inf], "observed[1]: must be finite, not inf"),
        ("observed", [0.1, 1.5], "observed[1]: a cosine must lie in [-1, 1], not 1.5; other scores are of kind any"),
        ("observed", [0.1], "observed: must have at least 2 values, not 1"),
        ("observed", [0.1, 0.1], "observed: all 2 values are equal; their variance must not be zero"),
        ("observed", [1, 0], "observed: values must be floating-point, not int64"),
        ("observed", ["a", "b"], "observed: must be an array of numbers, not of <U1"),
        ("observed", [[0.1, 0.2]], "observed: the array must have one axis, not 2"),
        ("observed", 0.5, "observed: the array must have one axis, not 0"),
        ("observed", [0.1, [0.2]], "observed: must be an array of numbers ("),
        ("unobserved", [0.1], "unobserved: must have at least 2 values, not 1"),
        *(
            ("dim", value, f"dim: must be a whole number from 2 to 1e12, not {value!r}")
            for value in (1, 2.5, "10", math.nan, 1e13)
        ),
        ("dim", None, "dim: is needed, as there are no unobserved cosines"),
        ("inclusion", "coins", "inclusion: must be one of fixed, coin, independent, not 'coins'"),
        ("kind", "loss", "kind: must be one of cosine, any, not 'loss'"),
        ("kind", None, "kind: must be one of cosine, any, not None"),
        ("neighbours", "swap", "neighbours: must be one of add-or-remove, replace, not 'swap'"),
        ("neighbours", "replace", "unobserved: is needed where canaries replace others, as no law is known then"),
    ],
    partial(Scores, observed=[2.0, 3.0], unobserved=[0.1, 0.3], kind="any"): [
        ("dim", 10, "dim: is for cosines; scores of any kind have none"),
        ("observed", [1e200, math.nan], "observed[1]: must be a number, not nan"),
        ("unobserved", None, "unobserved: is needed for scores of any kind, as only cosines have a known null"),
    ],
    partial(flatten, tree=np.ones(2)): [
        *(
            ("tree", tree, f"tree: must be floating-point numbers, not {what}")
            for tree, what in (
                ({"a": [np.zeros(2), np.zeros(2, int)]}, "a.1 has int64; counters are left out by skip=[...]"),
                ({"steps": 3}, "steps has int64"),
                ([np.zeros(2, bool)], "0 has bool"),
                (np.zeros(2, complex), "complex128"),
                (np.zeros(2, np.longdouble), ""),
                (np.zeros(2, "V4"), ""),
                (object(), "object"),
                ({"a": np.zeros(1, np.int32), "b": np.zeros(1, np.int32)}, "a has int32, b has int32"),
            )
        ),
        ("tree", {"a": np.zeros(2), 1: np.zeros(2)}, "tree: must have keys of one type, which have an order"),
        ("tree", {}, "tree: has no arrays"),
        ("tree", None, "tree: has no arrays"),
        ("tree", iter([1.0, 2.0]), "tree: an iterator must give pairs of a name and an array"),
        ("skip", "*", "skip: must be a list of patterns, not the string '*'"),
    ],
    partial(flatten, tree=np.ones(2, int), scale=0.5): [
        ("tree", [np.zeros(2, bool)], "tree: must be floating-point numbers, not 0 has bool"),
        *(
            ("scale", scale, f"scale: must be positive and finite, not {scale}")
            for scale in (0.0, -1.0, math.inf, math.nan)
        ),
    ],
    partial(split, vector=np.zeros(6), like=[np.zeros((2, 2)), np.zeros(2)]): [
        *(("vector", np.zeros(size), f"vector must have 6 coordinates, as like has, not {size}") for size in (5, 7, 0)),
        ("vector", np.zeros((6, 1)), "vector must have one axis, not 2"),
    ],
}


@refusals(TABLE)
def test_refusals(row):
    row.check()
