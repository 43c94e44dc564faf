"""Canary clients under noise that a known matrix correlates over rounds."""

import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.answer.run_audit import audit
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, shuffled_epochs
from canaryproof.verify.audit.canaries.whitened_clients import WhitenedClients

ROUNDS, DIM, COUNT, SIGMA = 6, 2000, 200, 1.5
# Square root of the matrix of ones (Fichtenberger et al., arXiv 2202.11205): coefficients of (1 − x)^(−1/2).
COEFFICIENTS = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, ROUNDS))])
STRATEGY = np.array([[COEFFICIENTS[t - s] if s <= t else 0.0 for s in range(ROUNDS)] for t in range(ROUNDS)])


def trained(clients, share=1.0, matrix=STRATEGY, seed=0):
    """Train with correlated noise; the data are known."""
    rng = np.random.default_rng(seed)
    noise = np.linalg.solve(matrix, share * SIGMA * rng.normal(size=(ROUNDS, DIM)))
    for t in range(ROUNDS):
        others = 5.0 * rng.normal(size=DIM)
        clients.add(others + noise[t] + clients.total(t, 1.0), t, known=others)
    return clients


def made(epochs=1, strategy=STRATEGY):
    participation = shuffled_epochs(ROUNDS // epochs, 1, epochs, 0, Insertion(2 * COUNT, COUNT))
    return WhitenedClients(Canaries(7, 2 * COUNT, DIM), participation, strategy)


@pytest.mark.parametrize("epochs", [1, 2])
def test_whitened_scores_have_the_noise_of_the_claim(epochs):
    clients = trained(made(epochs))
    products, rounds = np.abs(STRATEGY.T @ STRATEGY), []
    for j in range(COUNT):
        taken = [t for t in range(ROUNDS) if j in clients.participants(t)]
        rounds.append(products[np.ix_(taken, taken)].sum())
    assert clients.sensitivity == pytest.approx(max(rounds) ** 0.5)
    noise = SIGMA / clients.sensitivity
    # 200 canaries of a squared weight of 1 to 3 measure 1/σ with a deviation of at most 1/√200: 5.3 of them.
    measured = clients.traces.noise_multiplier(1 - 1e-7)
    assert measured.low < noise < measured.high
    result = audit(clients.scores("known rounds"), 1e-5, claim=accountant.gaussian(noise))
    assert result.decision.outcome == "PASSED"
    assert clients.evidence(noise).alarm() is None
    assert clients.warnings() == ()
    assert trained(made(epochs), share=0.5).evidence(noise).alarm() is not None


def test_the_sensitivity_is_the_longest_whitened_sum_of_a_member_whatever_its_updates_signs():
    rounds = 4
    strategy = np.tril(np.random.default_rng(5).uniform(0.2, 3.0, (rounds, rounds)))
    participation = shuffled_epochs(rounds // 2, 1, 2, 0, Insertion(2 * COUNT, COUNT))
    clients = WhitenedClients(Canaries(7, 2 * COUNT, DIM), participation, strategy)
    signs = 1.0 - 2.0 * np.array(np.unravel_index(np.arange(2**rounds), (2,) * rounds))
    taken = {tuple(j in clients.participants(t) for t in range(rounds)) for j in range(COUNT)}
    longest = max(np.linalg.norm(strategy @ (signs * np.array(rows)[:, np.newaxis]), axis=0).max() for rows in taken)
    assert clients.sensitivity == pytest.approx(longest)


def test_a_score_is_the_best_combination_of_the_increments():
    """By hand: Σ_t C_ts u_t of a canary's round s, along the canary, up to the rounds' lengths."""
    clients = trained(made())
    white = STRATEGY @ np.array(clients._increments)
    white /= np.linalg.norm(white, axis=1, keepdims=True)
    members = [clients.participants(t) for t in range(ROUNDS)]
    scores = clients.scores("known rounds").observed
    for s in range(ROUNDS):
        column = STRATEGY[:, s] / np.linalg.norm(STRATEGY[:, s])
        made_canaries = np.array([clients.canaries.vector(j) for j in members[s]], float)
        included = np.flatnonzero(clients._included)
        assert scores[np.searchsorted(included, members[s])] == pytest.approx(
            made_canaries @ (column @ white), abs=1e-6
        )


def test_the_identity_is_independent_noise():
    clients = trained(made(strategy=np.eye(ROUNDS)), matrix=np.eye(ROUNDS))
    plain = trained(CanaryClients(clients.canaries, clients.participation), matrix=np.eye(ROUNDS))
    assert clients.sensitivity == 1.0
    expected = plain._scores.known_rounds[0][clients._included]
    assert clients.scores("known rounds").observed == pytest.approx(expected, abs=2e-6)
    assert clients.traces.cosines == pytest.approx(plain.traces.cosines, abs=1e-12)


def test_increments_are_not_written():
    with pytest.raises(ValueError, match="save: is not served"):
        made().save("file")
