import itertools
import math
import shutil

import numpy as np
import pytest
from scipy import special, stats

from canaryproof.kernels import null_cosine
from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.canaries import canary_clients, participation
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import (
    Insertion,
    Presentations,
    bernoulli,
    shuffled_epochs,
    uniform,
)
from canaryproof.verify.audit.canaries.round_scores import RoundScores
from canaryproof.verify.audit.estimators import algorithm_1
from canaryproof.verify.audit.estimators.noise_multiplier import Evidence
from canaryproof.verify.audit.files import checkpoint
from canaryproof.verify.audit.files.errors import InputError

DIM, COUNT, OBSERVED, ROUNDS = 600, 40, 25, 10
CANARIES = Canaries(3, COUNT, DIM)
ORTHONORMAL = OrthonormalCanaries(3, COUNT, DIM)
BOTH = pytest.mark.parametrize("canaries", [CANARIES, ORTHONORMAL], ids=["independent", "orthonormal"])


def scheduled(presentations=2, rounds=ROUNDS, count=COUNT, observed=OBSERVED):
    return uniform(0, 0, rounds, 1, Insertion(count, observed, Presentations(presentations)))


def deltas(rounds=ROUNDS, dim=DIM, seed=0):
    return np.random.default_rng(seed).standard_normal((rounds, dim))


def run(canary_clients, rows, sign=1.0):
    """Add the canaries to given rows, hand them over and return their sum."""
    total = np.zeros(canary_clients.canaries.dim)
    for t, row in enumerate(rows, start=canary_clients.rounds):
        delta = sign * (canary_clients.total(t, 2.0) + row)
        canary_clients.add(delta, round=t)
        total += delta
    return total


@BOTH
def test_scores_are_the_cosines_of_the_definition(canaries):
    canary_clients = CanaryClients(canaries, schedule := scheduled(), block=3)
    rows = deltas()
    vectors = np.stack([canaries.vector(j) for j in range(COUNT)]).astype(float)
    seen = np.stack([row + 2.0 * vectors[schedule.canaries(t)].sum(axis=0) for t, row in enumerate(rows)])
    total = run(canary_clients, rows)
    cosines = vectors @ seen.T / np.linalg.norm(seen, axis=1)
    observed, unobserved = canary_clients.all_rounds()
    assert observed == pytest.approx(cosines.max(axis=1)[:OBSERVED], abs=1e-6)
    assert unobserved == pytest.approx(cosines.max(axis=1)[OBSERVED:], abs=1e-6)
    final = vectors @ total / np.linalg.norm(total)
    assert np.concatenate(canary_clients.final(total)) == pytest.approx(final, abs=1e-6)
    assert canary_clients.warnings() == ()


def test_included_canaries_need_not_be_the_first():
    schedule = bernoulli(0, 0.5, ROUNDS, 4, Insertion(COUNT))
    canary_clients = CanaryClients(CANARIES, schedule)
    run(canary_clients, deltas())
    scores = RoundScores(CANARIES)
    for t, row in enumerate(deltas()):
        scores.add(2.0 * CANARIES.sum(schedule.canaries(t)) + row)
    observed, unobserved = canary_clients.all_rounds()
    assert np.array_equal(observed, scores.maxima[schedule.included])
    assert np.array_equal(unobserved, scores.maxima[~schedule.included])
    assert 0 < len(observed) < COUNT


def test_one_round_of_canaries_and_noise_is_algorithm_1():
    sigma, k = 1.54, 30
    canaries = Canaries(11, k, DIM)
    canary_clients = CanaryClients(canaries, scheduled(1, rounds=1, count=k, observed=k))
    release = canary_clients.total(0, 1.0) + sigma * noise(11, DIM)
    canary_clients.add(release)
    expected = algorithm_1.cosines(k, DIM, sigma, 11)
    observed, unobserved = canary_clients.final(release)
    assert np.array_equal(observed, expected)
    assert not len(unobserved)
    assert canary_clients.all_rounds()[0] == pytest.approx(expected, abs=2e-6 / math.sqrt(DIM))


def test_zero_deltas_are_skipped_and_said():
    rows = deltas()
    canary_clients = CanaryClients(CANARIES, scheduled())
    with pytest.raises(ValueError, match="all_rounds: none of 0 rounds had a delta other than zero"):
        canary_clients.all_rounds()
    canary_clients.add(np.zeros(DIM), 0)
    with pytest.raises(ValueError, match="none of 1 rounds"):
        canary_clients.all_rounds()
    canary_clients.add(rows[1], 1)
    canary_clients.add(np.zeros(DIM, np.float32), 2)
    canary_clients.add(rows[3], 3)
    assert (canary_clients.rounds, canary_clients.skipped_rounds) == (4, 2)
    assert canary_clients.warnings() == ("2 of 4 rounds had a zero delta and were not scored",)
    scores = RoundScores(CANARIES)
    for row in rows[1], rows[3]:
        scores.add(row)
    assert np.array_equal(np.concatenate(canary_clients.all_rounds()), scores.maxima)


class TestSigns:
    """200 canaries, each in 2 of 40 rounds, in noise of 0.3 clip norms a coordinate.

    In the rounds √d·A/√Σr² has the mean −√400/√(0.3² + 10/d) = −65, in the final vector −√200·2/√(40·0.3² + 800/d) =
    −14: what lacks to 5.26 are nine deviations, a power of 1 − 1e-18.
    """

    schedule = scheduled(2, rounds=40, count=300, observed=200)
    canaries = Canaries(5, 300, 2000)

    def ran(self, sign, with_canaries=True):
        canary_clients = CanaryClients(self.canaries, self.schedule)
        rows = 0.6 * deltas(40, 2000)
        if with_canaries:
            return canary_clients, run(canary_clients, rows, sign)
        for row in rows:
            canary_clients.add(row)
        return canary_clients, rows.sum(axis=0)

    @pytest.mark.parametrize("with_canaries", [True, False])
    def test_updates_are_no_reason_to_warn(self, with_canaries):
        canary_clients, total = self.ran(1.0, with_canaries)
        canary_clients.final(total)
        assert canary_clients.warnings() == ()

    def test_gradients_are(self):
        canary_clients, total = self.ran(-1.0)
        assert canary_clients.warnings() == (
            "the rounds' deltas point away from their canaries: they look like gradients, not updates",
        )
        canary_clients.final(total)
        assert "the final vector points away from the observed canaries: its sign looks wrong" in (
            canary_clients.warnings()
        )
        # What is asked last counts.
        canary_clients.final(-total)
        assert len(canary_clients.warnings()) == 1

    def test_the_maxima_alone_would_not_have_told(self):
        observed, unobserved = self.ran(-1.0)[0].all_rounds()
        error = math.sqrt(observed.var() / len(observed) + unobserved.var() / len(unobserved))
        assert abs(observed.mean() - unobserved.mean()) < 4.0 * error

    def test_the_same_delta_in_all_rounds_is_one_piece_of_evidence(self):
        # Three deviations from 0 in one direction, seen in 40 rounds in which all take part.
        everybody = bernoulli(0, 1.0, 40, 0, Insertion(300, 300))
        canary_clients = CanaryClients(self.canaries, everybody)
        total, other = self.canaries.sum(), deltas(1, 2000)[0]
        other -= total * (other @ total) / (total @ total)
        cosine = -3.0 * math.sqrt(300 / 2000) / np.linalg.norm(total)
        delta = cosine * total / np.linalg.norm(total) + math.sqrt(1 - cosine**2) * other / np.linalg.norm(other)
        for _ in range(40):
            canary_clients.add(delta)
        assert canary_clients.warnings() == ()


def test_a_record_has_the_noise_of_its_likelihoods(tmp_path):
    drawn = bernoulli(0, 0.5, ROUNDS, 4, Insertion(COUNT, observed=OBSERVED))
    begun = CanaryClients(CANARIES, drawn, noise_multiplier=2.0)
    begun.add(deltas()[0], 0)
    begun.save(tmp_path / "state")
    for other in (2.0, 3.0, None):
        resumed = CanaryClients(CANARIES, drawn, noise_multiplier=other)
        resumed.load(tmp_path / "state")
        assert resumed.scores("likelihood").record.noise_multiplier == 2.0
    begun.noise_multiplier = None
    assert begun.scores("likelihood").record.noise_multiplier is None


def test_a_table_has_a_row_a_round(tmp_path):
    clients = CanaryClients(CANARIES, scheduled(), block=3, keep_table=True)
    for t, row in enumerate(deltas()):
        clients.add(np.zeros(DIM) if t == 2 else row, t)
    assert clients.table.shape == (ROUNDS, COUNT)
    assert np.flatnonzero(~clients.table.any(axis=1)).tolist() == [2]
    largest = np.delete(clients.table, 2, axis=0).max(axis=0)
    assert np.concatenate(clients.all_rounds()) == pytest.approx(largest, abs=1e-7)
    clients.save(tmp_path / "state")
    with pytest.raises(ValueError, match="must have a table if keep_table is True, else none"):
        CanaryClients(CANARIES, scheduled()).load(tmp_path / "state")


@pytest.mark.parametrize("place", [(checkpoint, "write"), (RoundScores, "save")])
def test_a_crash_while_saving_leaves_the_old_state(tmp_path, monkeypatch, place):
    canary_clients = CanaryClients(CANARIES, scheduled(), block=3)
    run(canary_clients, deltas()[:4])
    canary_clients.save(tmp_path / "state")
    run(canary_clients, deltas()[4:6])

    def crash(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(*place, crash)
        with pytest.raises(OSError, match="disk full"):
            canary_clients.save(tmp_path / "state")
    loaded = CanaryClients(CANARIES, scheduled())
    loaded.load(tmp_path / "state")
    assert loaded.rounds == 4
    canary_clients.save(tmp_path / "state")
    loaded.load(tmp_path / "state")
    assert loaded.rounds == 6
    assert {file.name for file in tmp_path.iterdir()} == {"state", "state.canaryproof-6"}


def test_neighbouring_files_are_left_alone(tmp_path):
    names = ["state.4", "state2.canaryproof-4", "state.txt", "other.3", "state.canaryproof-4.old"]
    for name in names:
        (tmp_path / name).touch()
    canary_clients = CanaryClients(CANARIES, scheduled())
    canary_clients.save(tmp_path / "state")
    assert {file.name for file in tmp_path.iterdir()} == {*names, "state", "state.canaryproof-0"}
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("state", "state.canaryproof-0")}
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize(
    ("canaries", "schedule", "message"),
    [
        (Canaries(4, COUNT, DIM), scheduled(), "seed: must be the same as here"),
        (Canaries(3, COUNT, DIM + 1), scheduled(), "dim: must be 601"),
        (ORTHONORMAL, scheduled(), "layers: must be 2"),
        (CANARIES, scheduled(observed=OBSERVED - 1), "participation: must be"),
        (CANARIES, scheduled(3), "participation: must be"),
        (Canaries(3, COUNT + 1, DIM), scheduled(count=COUNT + 1), "participation: must be"),
    ],
)
def test_a_state_of_other_canaries_is_refused(tmp_path, canaries, schedule, message):
    CanaryClients(CANARIES, scheduled()).save(tmp_path / "state")
    with pytest.raises(ValueError, match=message):
        CanaryClients(canaries, schedule).load(tmp_path / "state")


def test_a_damaged_state_is_refused(tmp_path):
    canary_clients = CanaryClients(CANARIES, scheduled())
    run(canary_clients, deltas()[:4])
    canary_clients.save(tmp_path / "state")
    fresh = CanaryClients(CANARIES, scheduled())
    other = CanaryClients(CANARIES, scheduled())
    other.add(deltas()[0])
    other.save(tmp_path / "other")
    shutil.copy(tmp_path / "other.canaryproof-1", tmp_path / "state.canaryproof-4")
    with pytest.raises(ValueError, match=r"state\.canaryproof-4: its canaries and rounds must be those of"):
        fresh.load(tmp_path / "state")
    (tmp_path / "state.canaryproof-4").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"state\.canaryproof-4: is not a readable \.npz file"):
        fresh.load(tmp_path / "state")
    (tmp_path / "state.canaryproof-4").unlink()
    with pytest.raises(InputError, match=r"state\.canaryproof-4: must be there, as .* is one of two files"):
        fresh.load(tmp_path / "state")
    (tmp_path / "state").write_bytes(b"")
    with pytest.raises(ValueError, match="state: is not a checkpoint"):
        fresh.load(tmp_path / "state")
    assert fresh.rounds == 0


@pytest.mark.parametrize("dim", [2, 3, 10, 30, 100, 1000, 10**5, 10**9])
def test_one_canary_in_one_round_keeps_the_level_exactly(dim):
    limit = canary_clients.LIMIT / math.sqrt(dim)
    assert limit >= 1.0 or null_cosine.logcdf(-limit, dim) < math.log(canary_clients.FALSE_ALARM)


@pytest.mark.parametrize("dim", [2, 3, 10, 1000])
@pytest.mark.parametrize("s", [0.1, 1.0, 3.0, 10.0])
def test_the_moment_generating_function_is_bounded_as_said(dim, s):
    # E exp(s·u) = Γ(d/2)·(2/s)^(d/2 − 1)·I_{d/2−1}(s) = ₀F₁(d/2; s²/4).
    assert special.hyp0f1(dim / 2, s * s / 4.0) <= math.exp(s * s / (2.0 * dim)) * (1.0 + 1e-12)


def test_the_limit_scales_with_the_counts():
    counts = np.array([3.0, 4.0, 0.0])
    edge = -canary_clients.LIMIT * 5.0 / math.sqrt(400)
    assert canary_clients.is_pointing_away(1.001 * edge, counts, 400)
    assert not canary_clients.is_pointing_away(0.999 * edge, counts, 400)
    assert not canary_clients.is_pointing_away(-1.001 * edge, counts, 400)
    # Nobody took part.
    assert not canary_clients.is_pointing_away(0.0, np.zeros(3), 400)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e300])
def test_products_do_not_overflow(scale):
    total, delta = np.array([1.0, 2.0, -2.0]), np.array([3.0, 0.0, 4.0])
    assert canary_clients.product(total, scale * delta) == pytest.approx(-1.0, rel=1e-12)


def test_the_power_is_the_one_stated():
    power = special.ndtr(math.sqrt(1000.0) / 4.0 - canary_clients.LIMIT)
    assert power == pytest.approx(0.99, abs=0.01)


# Scores by what an attacker knows, and the traces that measure the noise.


def noisy(schedule, canaries, noise=1.0, seed=0, known=None, **settings):
    """Train on noise, canaries and perhaps data that are known, and return the canary clients."""
    rng = np.random.default_rng(seed)
    clients = CanaryClients(canaries, schedule, **settings)
    for t in range(schedule.rounds):
        data = 0.0 if known is None else known[t]
        delta = clients.total(t, 1.0) + noise * rng.standard_normal(canaries.dim) + data
        clients.add(delta, t, known=None if known is None else data)
    return clients


def test_known_rounds_of_one_each_have_the_exact_null():
    dim, rounds = 3000, 6
    schedule = shuffled_epochs(rounds, 1, 1, 0, Insertion(300, observed=200))
    canaries = Canaries(5, 300, dim)
    clients = noisy(schedule, canaries)
    scores = clients.scores("known rounds")
    assert (scores.dim, scores.unobserved, scores.kind) == (dim, None, "cosine")
    assert (scores.record.score, scores.record.participations, scores.record.rounds) == ("known rounds", 1, rounds)
    assert scores.record.missing == scores.record.skipped == scores.record.left_out == 0
    rng, expected = np.random.default_rng(0), np.zeros(200)
    for t in range(rounds):
        members = clients.participants(t)
        delta = canaries.sum(members) + rng.standard_normal(dim)
        expected[members] = canaries.cosines(delta, members)
    assert scores.observed == pytest.approx(expected, abs=2e-6 / math.sqrt(dim) * 10)


def kept(schedule, canaries, rounds=None, known=False):
    """Train, keep what each round released beyond the known data, and return the clients and the deltas."""
    rng, clients, deltas = np.random.default_rng(3), CanaryClients(canaries, schedule), []
    for t in range(schedule.rounds if rounds is None else rounds):
        data, drift = rng.standard_normal((2, canaries.dim))
        delta = clients.total(t, 1.0) + data + 0.1 * t * drift if t != 2 else np.zeros(canaries.dim)
        clients.add(delta, t, known=0.5 * data if known and t != 2 else np.zeros(canaries.dim) if known else None)
        deltas.append(delta - 0.5 * data if known and t != 2 else delta)
    return clients, np.array(deltas)


@pytest.mark.parametrize("known", [False, True])
def test_a_gram_matrix_gives_cosines_with_the_sum_of_ones_own_directions(known):
    schedule = bernoulli(0, 0.3, 12, 1, Insertion(60, observed=40))
    clients, deltas = kept(schedule, Canaries(5, 60, 700), known=known)
    scores = clients.scores("known rounds", gram=deltas @ deltas.T)
    assert (scores.dim, scores.unobserved, scores.kind) == (700, None, "cosine")
    units = deltas / np.maximum(np.linalg.norm(deltas, axis=1, keepdims=True), 1e-30)
    expected = []
    for j in range(40):
        own = [t for t in range(12) if t != 2 and j in schedule.canaries(t)]
        if own:
            expected.append(float(clients.canaries.cosines(units[own].sum(axis=0), [j])[0]))
    assert len(expected) + scores.record.left_out == 40
    assert scores.observed == pytest.approx(np.array(expected), abs=1e-6)
    assert scores.record.participations > 1


def test_unobserved_canaries_have_rounds_by_the_same_law():
    schedule = bernoulli(0, 0.3, 40, 1, Insertion(400, observed=200))
    for t in range(schedule.rounds):
        assert not schedule.included[schedule.unobserved_members(t)].any()
    numbers = [sum(len(rows(t)) for t in range(40)) for rows in (schedule.canaries, schedule.unobserved_members)]
    # Binomial with 8,000 trials each.
    assert all(abs(number - 2400) < 4.9 * math.sqrt(8000 * 0.21) for number in numbers)
    clients = noisy(schedule, Canaries(5, 400, 2000), noise_multiplier=1.0)
    known, likelihood = clients.scores("known rounds"), clients.scores("likelihood")
    assert known.dim is None
    assert known.kind == likelihood.kind == "any"
    # √n times a trace of 1 for some 12 rounds.
    assert known.observed.mean() > 10.0 * known.unobserved.std() / math.sqrt(200.0)
    assert likelihood.observed.mean() > likelihood.unobserved.mean() + 2.0
    assert len(known.observed) + known.record.left_out == 200


def test_a_table_of_rounds_is_followed():
    table = np.zeros((4, 10), bool)
    table[[0, 1, 1, 3], [0, 1, 7, 2]] = True
    schedule = participation.fixed_schedule(table, np.arange(10) < 5)
    assert [schedule.canaries(t).tolist() for t in range(4)] == [[0], [1], [], [2]]
    assert [schedule.unobserved_members(t).tolist() for t in range(4)] == [[], [7], [], []]
    scores = noisy(schedule, Canaries(1, 10, 500)).scores("known rounds")
    assert len(scores.observed) == 3
    assert scores.record.left_out == 2


def test_traces_measure_first_rounds_unless_others_are_known():
    dim, rounds = 2000, 8
    table = np.zeros((rounds, 40), bool)
    table[:, :20] = True
    table[3:, 20:30] = True
    schedule = participation.fixed_schedule(table, np.arange(40) < 30)
    alone = noisy(schedule, Canaries(1, 40, dim)).traces
    assert len(alone.cosines) == 2
    assert not alone.residual
    data = 30.0 * np.random.default_rng(3).standard_normal((rounds, dim)) / math.sqrt(dim)
    known = noisy(schedule, Canaries(1, 40, dim), known=data).traces
    assert len(known.cosines) == rounds
    assert known.residual
    measured = known.noise_multiplier(1.0 - 1e-6)
    assert measured.low <= 1.0 <= measured.high
    # Directions of a transform are not uniform.
    orthonormal = OrthonormalCanaries(1, 40, dim)
    assert noisy(schedule, orthonormal).traces is None
    measured = noisy(schedule, orthonormal, known=data).traces.noise_multiplier(1.0 - 1e-6)
    assert measured.low <= 1.0 <= measured.high


def test_data_that_are_not_known_count_as_noise():
    dim = 2000
    schedule = shuffled_epochs(8, 1, 1, 0, Insertion(400, observed=400))
    rng = np.random.default_rng(4)
    clients = CanaryClients(Canaries(1, 400, dim), schedule)
    for t in range(8):
        data = rng.standard_normal(dim)
        data *= math.sqrt(3.0 * dim) / np.linalg.norm(data)
        clients.add(clients.total(t, 1.0) + rng.standard_normal(dim) + data, t)
    measured = clients.traces.noise_multiplier(1.0 - 1e-6)
    assert measured.low <= 2.0 <= measured.high
    assert clients.traces.p_value(1.0) > 0.5


def test_evidence_stops_a_training_without_noise_and_no_honest_one():
    dim, rounds = 2000, 6
    alarms = []
    for sigma in (0.3, 1.0):
        clients = CanaryClients(Canaries(0, 120, dim), bernoulli(0, 0.5, rounds, 1, Insertion(120, observed=60)))
        assert clients.evidence(1.0).alarm() is None
        assert len(clients.evidence(1.0).rounds) == 0
        rng = np.random.default_rng(5)
        for t in range(rounds):
            clients.add(clients.total(t, 1.0) + sigma * rng.normal(size=dim), t)
            evidence = clients.evidence(1.0)
        # Nobody took part for the first time in round 3.
        assert evidence.rounds.tolist() == [0, 1, 2, 4, 5]
        # Asked after each round or once, of this noise or of another, it is the same to the last bit.
        for claimed in (1.0, 2.0, 1.0):
            values = clients.evidence(claimed).log_values
            np.testing.assert_array_equal(values, clients.traces.log_evidence(claimed))
        alarms.append(evidence.alarm(1e-3))
        (axes,) = evidence.plot().axes
        assert axes.get_ylabel() == "evidence against the claim"
        assert axes.lines[0].get_xdata().tolist() == [1, 2, 3, 5, 6]
    assert alarms[0] is not None
    assert alarms[1] is None
    known = Evidence(np.array([0, 2, 5]), np.log([3.0, 50.0, 2.0]))
    assert [known.alarm(level) for level in (0.4, 0.1, 0.01)] == [0, 2, None]


def carried(seed, kind=Canaries, count=20, dim=256, noise=1.0, data=0.0, momentum=0.0, answer=0.0):
    """Return what later rounds show of canaries, beside data of one direction and others who undo a share of them."""
    rng, rounds = np.random.default_rng([9, seed]), 12
    schedule = bernoulli(0, 0.4, rounds, seed, Insertion(2 * count, observed=count))
    clients, model, buffer = CanaryClients(kind(seed, 2 * count, dim), schedule), np.zeros(dim), np.zeros(dim)
    others = data * rng.normal(size=dim)
    for t in range(rounds):
        total = clients.total(t, 1.0)
        buffer = momentum * buffer + total + others + noise * rng.normal(size=dim) - answer * model
        model += total
        clients.add(buffer, t)
    record = clients.scores("largest").record
    assert record is not None
    return record.carry_over


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize(
    "honest",
    [{"kind": OrthonormalCanaries, "data": 1.0}, {"noise": 0.01}, {}, {"data": 3.0}],
    ids=["orthonormal", "canaries alone", "noise", "data"],
)
def test_honest_rounds_carry_nothing_over(honest):
    # Its variance is at most 1, and half of that where canaries are few beside noise and data.
    values = np.array([carried(seed, **honest) for seed in range(40)])
    assert np.square(values).sum() <= special.chdtri(40, 1e-6 / 4)
    assert abs(values.sum()) <= math.sqrt(40.0) * special.ndtri(1.0 - 1e-6 / 8)


def test_momentum_and_answers_are_carried_over():
    # Of 400 canaries the largest value that there can be is √200 = 14.
    assert 6.0 < carried(1, count=400, dim=4096, momentum=0.9) < math.sqrt(200.0)
    assert carried(1, count=400, dim=4096, answer=0.3) < -6.0


def test_of_one_round_each_nothing_is_carried_over():
    clients = noisy(uniform(0, 0, 1, 1, Insertion(COUNT, OBSERVED, Presentations(1))), CANARIES)
    assert clients.scores("largest").record.carry_over == 0.0


def test_canaries_that_come_back_are_taken_out_of_what_is_measured():
    """The same cosine and length as in an orthonormal basis of the space orthogonal to their sum."""
    dim, back, new = 60, 5, 4
    canaries = Canaries(3, back + new, dim)
    takes_part = np.zeros((2, back + new), bool)
    takes_part[0, :back] = takes_part[1] = True
    clients = CanaryClients(canaries, participation.fixed_schedule(takes_part, np.ones(back + new, bool)))
    rng = np.random.default_rng(0)
    deltas = [clients.total(t, 2.0) + rng.normal(size=dim) for t in range(2)]
    for t, delta in enumerate(deltas):
        clients.add(0.1 * delta, round=t)
    returning, measured = canaries.sum(np.arange(back)), canaries.sum(np.arange(back, back + new))
    # Columns 2 to d of the orthogonal factor span what is orthogonal to the first column.
    basis = np.linalg.qr(np.column_stack([returning, rng.normal(size=(dim, dim - 1))]))[0][:, 1:]
    sums, released = basis.T @ measured, basis.T @ deltas[1]
    cosine = sums @ released / np.linalg.norm(sums) / np.linalg.norm(released)
    slope = cosine / math.sqrt(1.0 - cosine**2)
    assert clients.traces.lengths[1] == pytest.approx(np.linalg.norm(sums), rel=1e-6)
    found = clients.traces.cosines[1]
    assert found / math.sqrt(1.0 - found**2) * math.sqrt(dim - 1.0) == pytest.approx(
        slope * math.sqrt(dim - 2.0), rel=1e-6
    )


def test_all_traces_are_those_of_a_training_whose_other_updates_are_known_to_be_nothing():
    schedule = bernoulli(0, 0.5, rounds=8, seed=3, canaries=Insertion(40, observed=20))
    alone = noisy(schedule, Canaries(1, 40, 300))
    known = noisy(schedule, Canaries(1, 40, 300), known=np.zeros((8, 300)))
    assert known.all_traces is None
    assert len(alone.traces.cosines) < len(alone.all_traces.cosines) == 8
    assert alone.all_traces.cosines == pytest.approx(known.traces.cosines, rel=1e-12)
    assert alone.all_traces.lengths == pytest.approx(known.traces.lengths, rel=1e-12)
    assert not alone.all_traces.residual
    # In an epoch nobody comes back.
    once = participation.shuffled_epochs(20, 5, 1, 0, Insertion(40, observed=20))
    assert noisy(once, Canaries(1, 40, 300)).all_traces is None


def test_deltas_are_compared_without_their_canaries(tmp_path):
    dim, rounds = 200, 5
    schedule = bernoulli(0, 0.5, rounds=rounds, seed=3, canaries=Insertion(12, observed=6))
    rng = np.random.default_rng(4)
    noises = rng.normal(size=(rounds, dim)) ** 3
    clients, rests = CanaryClients(Canaries(2, 12, dim), schedule), []
    for t in range(rounds):
        delta = 0.1 * (clients.total(t, 3.0) + noises[t] + (noises[t - 1] if t else 0.0))
        clients.add(delta, t)
        total = clients.total(t, 1.0)
        rest = delta - total * np.linalg.lstsq(total[:, np.newaxis], delta)[0]
        rests.append(rest / np.linalg.norm(rest))
        if t == 2:
            clients.save(tmp_path / "state.npz")
    record = clients.scores("largest").record
    pairs = [first @ second for first, second in itertools.pairwise(rests)]
    assert record.pairs == rounds - 1
    # One of a pair is kept in single precision.
    assert record.correlation == pytest.approx(np.mean(pairs), abs=1e-7)
    assert record.kurtosis == pytest.approx(min(dim * (rest**4).sum() for rest in rests), rel=1e-12)
    resumed = CanaryClients(Canaries(2, 12, dim), schedule)
    resumed.load(tmp_path / "state.npz")
    for t in range(3, rounds):
        resumed.add(0.1 * (resumed.total(t, 3.0) + noises[t] + noises[t - 1]), t)
    again = resumed.scores("largest").record
    assert (again.correlation, again.pairs, again.kurtosis) == (record.correlation, record.pairs, record.kurtosis)


def test_deltas_of_canaries_alone_are_not_compared():
    schedule = bernoulli(0, 0.9, rounds=3, seed=3, canaries=Insertion(12, observed=6))
    clients = CanaryClients(Canaries(2, 12, 200), schedule)
    for t in range(3):
        clients.add(clients.total(t, 1.0), t)
    record = clients.scores("largest").record
    assert (record.correlation, record.pairs, record.kurtosis) == (None, None, None)


@pytest.mark.deep
def test_the_noise_that_is_measured_beside_canaries_that_come_back_is_the_noise():
    """Half of the variance is of canaries that come back; p-values of the true noise are uniform."""
    p_values = []
    for seed in range(200):
        schedule = bernoulli(0, 0.5, rounds=6, seed=seed, canaries=Insertion(202, observed=200))
        clients, rng = CanaryClients(Canaries(seed, 202, 200), schedule), np.random.default_rng(seed)
        for t in range(6):
            clients.add(clients.total(t, 1.0) + rng.normal(size=200), round=t)
        p_values.append(clients.traces.p_value(1.0))
    assert stats.kstest(p_values, "uniform").pvalue > 1e-6
