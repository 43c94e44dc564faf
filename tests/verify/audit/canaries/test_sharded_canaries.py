"""Canaries whose coordinates are spread over processes: here threads, whose sums meet at a barrier."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.grouped_canaries import GroupedCanaries
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.canaries.sharded_canaries import ShardedCanaries

COUNT, DIM, ROUNDS = 12, 5000, 5
WHOLE = {
    "one norm": Canaries(5, COUNT, DIM),
    "two norms": GroupedCanaries(5, COUNT, (3000, 2000), (3.0, 4.0)),
}
# The second process has its coordinates in another order than the whole.
SHARDS = ([slice(0, 1000), slice(3500, 5000)], [slice(2500, 3500), slice(1000, 2500)])


def in_threads(function):
    """Call a function for each process, with what adds arrays up over all of them."""
    barrier, given = Barrier(len(SHARDS), timeout=1800), [np.zeros(0)] * len(SHARDS)

    def call(rank):
        def add_up(array):
            given[rank] = array
            barrier.wait()
            total = sum(given[1:], start=given[0])
            barrier.wait()
            return total

        return function(SHARDS[rank], add_up)

    with ThreadPoolExecutor(len(SHARDS)) as pool:
        return list(pool.map(call, range(len(SHARDS))))


def held(vector, shards):
    return np.concatenate([vector[shard] for shard in shards])


def trained(canaries, shards, known):
    """Train for some rounds, one of which releases nothing."""
    clients = CanaryClients(canaries, bernoulli(0, 0.5, ROUNDS, 3, Insertion(COUNT, COUNT // 2)), noise_multiplier=0.3)
    rng = np.random.default_rng(0)
    for t in range(ROUNDS):
        noise, others = rng.normal(size=(2, DIM)) * 0.3
        delta = clients.total(t, 2.0) + held(2.0 * noise + others, shards)
        clients.add(0.0 * delta if t == 3 else delta, t, known=0.0 * delta if t == 3 else known * held(others, shards))
    return clients


@pytest.mark.parametrize("name", WHOLE)
def test_processes_have_the_scores_of_one(name):
    alone = trained(WHOLE[name], [slice(0, DIM)], 1.0)
    final = np.random.default_rng(1).normal(size=(2, DIM))

    def process(shards, add_up):
        clients = trained(ShardedCanaries(WHOLE[name], shards, add_up), shards, 1.0)
        return clients, clients.final(np.array([held(row, shards) for row in final]))

    for clients, cosines in in_threads(process):
        assert (clients.rounds, clients.skipped_rounds, clients.warnings()) == (alone.rounds, 1, alone.warnings())
        for score in ("known rounds", "likelihood", "largest"):
            expected, scores = alone.scores(score), clients.scores(score)
            # One process adds products in float32.
            assert scores.observed == pytest.approx(expected.observed, abs=2e-5)
            assert scores.unobserved == pytest.approx(expected.unobserved, abs=2e-5)
        assert clients.evidence(0.3).log_values == pytest.approx(alone.evidence(0.3).log_values, rel=1e-12)
        for group, expected in zip(cosines, alone.final(final), strict=True):
            assert group == pytest.approx(expected, abs=1e-12)


def test_what_is_not_finite_in_one_process_is_refused_in_all():
    def process(shards, add_up):
        canaries = ShardedCanaries(WHOLE["one norm"], shards, add_up)
        vector = np.ones(canaries.held)
        vector[0] = np.nan if shards[0].start else 1.0
        clients = CanaryClients(canaries, bernoulli(0, 0.5, ROUNDS, 3, Insertion(COUNT, COUNT // 2)))
        with pytest.raises(ValueError, match="vector must be finite"):
            clients.add(vector, 0)
        with pytest.raises(ValueError, match="updates: are whole"):
            clients.updates(0, 1.0)
        with pytest.raises(ValueError, match=rf"vector must be of shape \({canaries.held},\)"):
            canaries.products(np.ones(3))
        return clients.rounds

    assert in_threads(process) == [0, 0]
