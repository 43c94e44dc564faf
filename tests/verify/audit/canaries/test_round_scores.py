import contextlib
import math
import os
import subprocess
import sys
import textwrap
import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.canaries.round_scores import _SCORES, RoundScores, SampledTrace

PROPERTY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
COUNT, DIM = 5, 40


def deltas(rounds, dim=DIM, seed=0):
    return np.random.default_rng(seed).standard_normal((rounds, dim)).astype(np.float32)


def scored(rows, block=3, count=COUNT, seed=3, kind=Canaries):
    scores = RoundScores(kind(seed, count, rows.shape[1]), block)
    for row in rows:
        scores.add(row)
    return scores


@PROPERTY
@given(
    st.sampled_from([Canaries, OrthonormalCanaries]),
    st.integers(0, 2**64 - 1),
    st.integers(1, 6),
    st.integers(6, 5000),
    st.integers(1, 9),
    st.integers(1, 5),
)
def test_maxima_are_the_largest_cosines_over_rounds(kind, seed, count, dim, rounds, block):
    rows = deltas(rounds, dim, seed)
    canaries = np.stack([kind(seed, count, dim).vector(j) for j in range(count)]).astype(float)
    cosines = canaries @ rows.T.astype(float) / np.linalg.norm(rows.astype(float), axis=1)
    maxima = scored(rows, block, count, seed, kind).maxima
    # ``vector`` rounds to float32.
    assert maxima == pytest.approx(cosines.max(axis=1), abs=1e-6)
    exact = kind(seed, count, dim).cosines(rows).max(axis=0)
    # Two transforms in float32: 20 units a layer each, of 2⁻²⁴/√d.
    assert maxima == pytest.approx(exact, abs=(2e-6 if kind is Canaries else 4.8e-6) / math.sqrt(dim))


def drawn_members(rounds, count, rng):
    """Draw who takes part in each round, each canary with probability 1/2."""
    return [np.flatnonzero(rng.random(count) < 0.5) for _ in range(rounds)]


@PROPERTY
@given(st.integers(0, 2**64 - 1), st.integers(6, 3000), st.integers(1, 9), st.integers(1, 5))
def test_known_rounds_add_up_their_own_cosines(seed, dim, rounds, block):
    rows, members = deltas(rounds, dim, seed), drawn_members(rounds, COUNT, np.random.default_rng(seed))
    scores = RoundScores(Canaries(seed, COUNT, dim), block)
    for row, chosen in zip(rows, members, strict=True):
        scores.add(row, members=chosen)
    cosines = Canaries(seed, COUNT, dim).cosines(rows)
    values, counts = scores.known_rounds
    table = np.stack([np.isin(np.arange(COUNT), chosen) for chosen in members])
    assert np.array_equal(counts, table.sum(axis=0))
    expected = (cosines * table).sum(axis=0) / np.sqrt(np.maximum(counts, 1))
    assert values == pytest.approx(expected, abs=2e-6 * math.sqrt(rounds / dim))


@pytest.mark.parametrize("block", [1, 3, 20])
def test_what_is_carried_over_follows_its_definition(block):
    rows, rng = deltas(20), np.random.default_rng(2)
    observed = np.arange(COUNT) < 3
    table = rng.random((20, COUNT)) < 0.4
    scores = RoundScores(Canaries(3, COUNT, DIM), block)
    for row, own in zip(rows, table, strict=True):
        scores.add(row, members=np.flatnonzero(own & observed), unobserved=np.flatnonzero(own & ~observed))
    cosines = Canaries(3, COUNT, DIM).cosines(rows)
    carried, spreads = np.zeros((2, COUNT))
    for t in range(20):
        seen, takes = table[:t].any(axis=0), table[t] & observed
        for j in np.flatnonzero(seen & ~table[t]):
            carried[j] += cosines[t, j]
            spreads[j] += cosines[t, j]
        first, again = np.flatnonzero(takes & ~seen), np.flatnonzero(takes & seen)
        if len(first) and len(again):
            worth = 1.0 / (1.0 / len(first) + 1.0 / len(again))
            both = len(first) + len(again)
            around = math.sqrt(both / (both - 1)) * (cosines[t] - cosines[t, takes].mean())
            for group, share in ((first, -worth / len(first)), (again, worth / len(again))):
                carried[group] += share * cosines[t, group]
                spreads[group] += share * around[group]
    assert scores.carryover[0] == pytest.approx(carried, abs=1e-5)
    assert scores.carryover[1] == pytest.approx(spreads, abs=1e-5)


@pytest.mark.parametrize("kind", [Canaries, OrthonormalCanaries])
@pytest.mark.parametrize("rounds", [0, 2, 3, 7])
def test_the_table_has_every_cosine(rounds, kind):
    """Cosines by their definition, and the scores that follow from them; with and without deltas that wait."""
    rows, members = deltas(rounds), drawn_members(rounds, COUNT, np.random.default_rng(1))
    scores = RoundScores(kind(3, COUNT, DIM), 3, keep_table=True)
    for row, taking in zip(rows, members, strict=True):
        scores.add(row, members=taking)
    vectors = np.stack([scores.canaries.vector(j) for j in range(COUNT)]).astype(np.float64)
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)[:, np.newaxis]
    table = scores.table
    assert (table.dtype, table.shape) == (np.float32, (rounds, COUNT))
    assert table == pytest.approx(rows @ vectors.T / lengths / np.linalg.norm(vectors, axis=1), abs=1e-6)
    if rounds:
        assert scores.maxima == pytest.approx(table.max(axis=0), abs=1e-7)


@pytest.mark.parametrize("rate", [0.01, 0.5, 1.0])
def test_likelihoods_are_those_of_normal_traces(rate):
    dim, noise_multiplier = 2000, 0.8
    rows = deltas(7, dim)
    scores = RoundScores(Canaries(3, COUNT, dim), 3, SampledTrace(rate, noise_multiplier))
    for row in rows:
        scores.add(row)
    x = math.sqrt(dim) * Canaries(3, COUNT, dim).cosines(rows)
    ratio = stats.norm.pdf(x, 1.0 / noise_multiplier) / stats.norm.pdf(x)
    assert scores.likelihoods == pytest.approx(np.log(1.0 - rate + rate * ratio).sum(axis=0), abs=1e-4)


# Canaries in a release, its dimension and its noise: the variance of a cosine with all of it is .61/d.
CROWD, CROWDED, QUIET = 13, 2048, 0.1


def crowded_cosines(runs, data):
    """Draw cosines of an orthonormal canary that takes no part, shape (runs,), and of those that do, (runs, CROWD)."""
    others, own = np.empty((runs, CROWD)), np.empty(runs)
    for row in range(runs):
        rng = np.random.default_rng([57, row])
        canaries = OrthonormalCanaries(int(rng.integers(2**63)), CROWD + 1, CROWDED)
        release = canaries.sum(np.arange(CROWD)) + QUIET * rng.standard_normal(CROWDED)
        release[0] += data
        *others[row], own[row] = canaries.cosines(release)
    return own, others


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("runs", [500, 5000])
@pytest.mark.parametrize("data", [0.0, 5.0])
def test_orthonormal_canaries_have_the_null_law_beside_the_others(runs, data):
    """Theorem 5's addition: exact in d − m dimensions, less their part, and .61/d for the variance with it."""
    level, free = 1e-6, CROWDED - CROWD
    cosines, others = crowded_cosines(runs, data)
    own = cosines / np.sqrt(1.0 - np.square(others).sum(axis=1))
    law = stats.beta(0.5 * (free - 1), 0.5 * (free - 1))
    assert stats.kstest(law.cdf(0.5 + 0.5 * own), "uniform").pvalue >= 0.5 * level
    # Sums of squares of nearly normal variables, each by a quarter of the level.
    sides = stats.chi2(runs).ppf([0.125 * level, 1.0 - 0.125 * level])
    assert sides[0] <= free * np.square(own).sum() <= sides[1]
    rest = QUIET**2 * free + data**2
    ratio = rest / (rest + CROWD)
    assert sides[0] <= CROWDED * np.square(cosines).sum() / ratio <= sides[1]
    if not data:
        assert ratio == pytest.approx(0.61, abs=0.005)
        # The power: the law of the whole cosine is refused for the other.
        assert stats.chi2(runs).cdf(sides[0] / ratio) > 0.95


@pytest.mark.parametrize("block", [1, 2, 3, 7, 8, 32])
def test_the_block_changes_rounding_only(block):
    rows = deltas(20, 9000)
    assert scored(rows, block).maxima == pytest.approx(scored(rows, 20).maxima, abs=2e-6 / math.sqrt(9000))


def test_looking_changes_nothing():
    rows = deltas(8)
    scores = RoundScores(Canaries(3, COUNT, DIM), 3)
    for t, row in enumerate(rows):
        scores.add(row, round=t)
        assert scores.rounds == t + 1
        assert np.array_equal(scores.maxima, scored(rows[: t + 1]).maxima)


@pytest.mark.parametrize("scale", [1e-300, 3e-310, 1e-45, 1.0, 1e300])
def test_the_unit_of_a_delta_does_not_matter(scale):
    rows = np.round(deltas(4).astype(float), 3)
    expected = scored(rows).maxima
    assert scored(rows * scale).maxima == pytest.approx(expected, abs=1e-7)
    # A power of two takes nothing from the digits.
    assert np.array_equal(scored(np.ldexp(rows, 900)).maxima, expected)


def test_a_subnormal_delta_of_float32_keeps_its_direction():
    rows = np.ldexp(np.round(64 * deltas(2)), -149).astype(np.float32)
    assert scored(rows).maxima == pytest.approx(scored(np.ldexp(rows.astype(float), 149)).maxima, abs=1e-7)


def test_memory_is_a_block():
    tracemalloc.start()
    scores = RoundScores(Canaries(3, 2, 2**20), 4)
    row = deltas(1, 2**20)[0]
    tracemalloc.reset_peak()
    held = tracemalloc.get_traced_memory()[0]
    for _ in range(10):
        scores.add(row)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 2**24 + 2**22 + 2**16
    # The kernel's own few megabytes.
    assert peak - held < 2**24


@pytest.mark.parametrize(("memory", "block"), [(4 * 5000 + 105 * COUNT, 1), (10 * 4 * 5000, 9), (1e9, 32)])
def test_the_block_fits_the_memory(memory, block):
    scores = RoundScores(Canaries(0, COUNT, 5000), memory=memory)
    assert scores.block == block
    assert scores._buffer.nbytes + 9 * block * COUNT + 96 * COUNT <= memory


@pytest.mark.parametrize("kind", [Canaries, OrthonormalCanaries])
def test_slices_of_deltas_are_scored_as_the_whole(kind):
    canaries, cut = kind(3, COUNT, 5000), 1234
    whole, of_slices = RoundScores(canaries, 1), RoundScores(canaries, 1)
    for t, delta in enumerate(np.random.default_rng(4).standard_normal((5, 5000))):
        whole.add(delta, t, [t])
        parts = canaries.partial_products(delta[:cut]), canaries.partial_products(delta[cut:], cut)
        of_slices.add(parts[0] + parts[1], t, [t])
    assert of_slices.maxima == pytest.approx(whole.maxima, abs=2e-6 / math.sqrt(5000))
    assert of_slices.known_rounds[0] == pytest.approx(whole.known_rounds[0], abs=1e-5 / math.sqrt(5000))
    np.testing.assert_array_equal(of_slices.known_rounds[1], whole.known_rounds[1])


def test_an_interrupted_round_can_be_added_again(monkeypatch):
    rows = deltas(6)
    scores = scored(rows[:2])

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Canaries, "block_cosines", interrupt)
        with pytest.raises(KeyboardInterrupt):
            scores.add(rows[2])
    for t in range(2, 6):
        scores.add(rows[t], round=t)
    assert np.array_equal(scores.maxima, scored(rows).maxima)


@pytest.mark.parametrize("kind", [Canaries, partial(OrthonormalCanaries, layers=3)])
@pytest.mark.parametrize("stop", range(9))
def test_resuming_gives_the_same_bits(tmp_path, stop, kind):
    rows, members = deltas(8, 5000), drawn_members(8, COUNT, np.random.default_rng(1))
    sampling = SampledTrace(0.25, 1.0)

    def go_on(scores, first, last):
        for t in range(first, last):
            scores.add(rows[t], round=t, members=members[t])
        return scores

    go_on(RoundScores(kind(3, COUNT, 5000), 3, sampling, keep_table=True), 0, stop).save(tmp_path / "state.npz")
    scores = RoundScores.load(tmp_path / "state.npz")
    assert (scores.canaries, scores.block, scores.rounds) == (kind(3, COUNT, 5000), 3, stop)
    go_on(scores, stop, 8)
    whole = go_on(RoundScores(kind(3, COUNT, 5000), 3, sampling, keep_table=True), 0, 8)
    assert np.array_equal(scores.table, whole.table)
    assert np.array_equal(scores.maxima, whole.maxima)
    assert np.array_equal(scores.known_rounds, whole.known_rounds)
    assert np.array_equal(scores.likelihoods, whole.likelihoods)
    assert np.array_equal(scores.carryover, whole.carryover)


def test_the_state_is_no_larger_than_the_buffer(tmp_path):
    for rounds in (0, 2, 3):
        scored(deltas(rounds, 5000)).save(tmp_path / "state.npz")
        assert (tmp_path / "state.npz").stat().st_size < rounds % 3 * 20_000 + 4600


@pytest.mark.parametrize("place", ["fsync", "replace"])
def test_a_failed_save_leaves_the_old_state(tmp_path, monkeypatch, place):
    path = tmp_path / "state.npz"
    scored(deltas(2)).save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, place, fail)
    with pytest.raises(OSError, match="No space"):
        scored(deltas(4)).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    seen = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append("fsync") or fsync(handle))
    monkeypatch.setattr(os, "replace", lambda *names: seen.append("replace") or replace(*names))
    scored(deltas(2)).save(tmp_path / "state.npz")
    assert seen == ["fsync", "replace", "fsync"]


@pytest.mark.deep
def test_a_killed_loop_resumes_with_the_same_bits(tmp_path):
    path = tmp_path / "state.npz"
    script = """
        import sys
        import numpy as np
        from canaryproof.kernels.canaries import Canaries
        from canaryproof.verify.audit.canaries.round_scores import _SCORES, RoundScores, SampledTrace

        scores = RoundScores(Canaries(3, 5, 100_000), 3)
        rng = np.random.default_rng(0)
        while True:
            scores.add(rng.standard_normal(100_000, np.float32))
            scores.save(sys.argv[1])
            print("saved", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as loop:
        for _ in range(7):
            assert loop.stdout.readline() == "saved\n"
        # In the midst of a round or of a save.
        loop.kill()
    scores = RoundScores.load(path)
    assert scores.rounds >= 7
    rng = np.random.default_rng(0)
    rows = np.stack([rng.standard_normal(100_000, np.float32) for _ in range(scores.rounds + 2)])
    for t in range(scores.rounds, len(rows)):
        scores.add(rows[t], round=t)
    assert np.array_equal(scores.maxima, scored(rows).maxima)


def state(**changes):
    """Fields of a state after two rounds of a block of three."""
    fields = {
        name: np.uint64(x)
        for name, x in (("format", 4), ("seed", 3), ("count", 5), ("dim", 40), ("layers", 0), ("block", 3))
    }
    fields |= {"rounds": np.uint64(2), "maxima": np.full(5, -1.0), "buffer": deltas(2) / np.float32(8)}
    fields |= {"rate": np.float64(0.5), "noise_multiplier": np.float64(2.0), "members": np.zeros((2, 5), np.int8)}
    fields |= {name: np.zeros(5) for name in _SCORES[1:]}
    return {name: x for name, x in (fields | changes).items() if x is not None}


def written(path, content):
    if isinstance(content, dict):
        with path.open("wb") as file:
            np.savez(file, **content)
    else:
        path.write_bytes(content)
    return path


def refusal(path):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        RoundScores.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


BAD_STATES = [
    (b"", "is not a readable .npz file"),
    (b"seed", "is not a readable .npz file"),
    (
        state(maxima=None),
        "its fields must be format, seed, count, dim, layers, block, rounds, rate, noise_multiplier,",
    ),
    ({"observed": np.ones(3)}, "its fields must be format, seed"),
    (state(extra=np.ones(3)), "its fields must be"),
    (state(format=np.uint64(1)), "format: must be 4, not 1"),
    (state(layers=np.uint64(17)), "layers must be an integer"),
    (state(seed=np.int64(3)), "seed: must be uint64 of shape (), not int64 of ()"),
    (state(seed=np.array(["x"], object)), "seed: must be uint64 of shape (), not object of (1,)"),
    (state(rounds=np.full(1, 2, np.uint64)), "rounds: must be uint64 of shape (), not uint64 of (1,)"),
    (state(count=np.uint64(6)), "maxima: must be float64 of shape (6,), not float64 of (5,)"),
    (state(count=np.uint64(2**32)), "maxima: must be float64 of shape (4294967296,)"),
    (
        state(count=np.uint64(0), **{name: np.ones(0) for name in _SCORES}),
        "count must be an integer with 1",
    ),
    (state(rate=np.float64(1.5)), "rate must lie in (0, 1], not 1.5"),
    (state(noise_multiplier=np.float64(np.nan)), "noise_multiplier must be positive and finite, not nan"),
    (state(counts=np.full(5, 3.0)), "counts: must be numbers of rounds"),
    (state(counts=np.full(5, 0.5)), "counts: must be numbers of rounds"),
    (state(counts=np.full(5, np.nan)), "counts: must be numbers of rounds"),
    (state(sums=np.full(5, 1.5), counts=np.ones(5)), "sums: must be sums of so many cosines"),
    (state(likelihoods=np.full(5, np.inf)), "likelihoods: must be finite"),
    (state(members=np.zeros((2, 4), np.int8)), "members: must be int8 of shape (2, 5), not int8 of (2, 4)"),
    (state(members=np.full((2, 5), 3, np.int8)), "members: must be 0, 1 or 2"),
    (state(carried=np.full(5, np.nan)), "carried: must be finite"),
    (state(spreads=np.full(5, np.inf)), "spreads: must be finite"),
    (state(dim=np.uint64(41)), "buffer: must be float32 of shape (2, 41), not float32 of (2, 40)"),
    (state(dim=np.uint64(1)), "dim must be an integer with 2"),
    (state(dim=np.uint64(2**64 - 1)), "dim must be an integer with 2"),
    (state(block=np.uint64(0)), "block must be an integer from 1 to 65536, not 0"),
    (state(block=np.uint64(2)), "members: must be int8 of shape (0, 5)"),
    (state(rounds=np.uint64(4)), "members: must be int8 of shape (1, 5)"),
    (state(maxima=np.ones(5, np.float32)), "maxima: must be float64 of shape (5,), not float32"),
    (state(maxima=np.full(5, 1.5)), "maxima: a cosine must lie in [-1, 1]"),
    (state(maxima=np.append(np.ones(4), np.nan)), "maxima: a cosine must lie in [-1, 1]"),
    (state(buffer=np.asfortranarray(deltas(2) / 8)), "buffer: must be float32 of shape (2, 40)"),
    (state(buffer=np.zeros((2, 40), np.float32)), "buffer: a delta must be scaled to a maximum in (0, 1]"),
    (state(buffer=np.full((2, 40), np.nan, np.float32)), "buffer: a delta must be scaled to a maximum in (0, 1]"),
    (state(table=np.zeros((1, 5), np.float32)), "table: must be float32 of shape (0, 5), not float32 of (1, 5)"),
    (
        state(block=np.uint64(1), members=np.zeros((0, 5), np.int8), table=np.full((2, 5), np.nan, np.float32)),
        "table: a cosine must lie in [-1, 1]",
    ),
    (state(buffer=np.full((2, 40), 2, np.float32)), "buffer: a delta must be scaled to a maximum in (0, 1]"),
]


def test_the_state_that_is_damaged_below_is_a_good_one(tmp_path):
    assert RoundScores.load(written(tmp_path / "state.npz", state())).rounds == 2


@pytest.mark.parametrize(("content", "rule"), BAD_STATES)
def test_a_bad_state_is_refused_by_rule(tmp_path, content, rule):
    message = refusal(written(tmp_path / "state.npz", content))
    assert message.startswith(rule)
    assert len(message) < 200


def test_a_buffer_beyond_all_memory_is_refused(tmp_path):
    huge = state(block=np.uint64(2**16), dim=np.uint64(2**40))
    assert refusal(written(tmp_path / "state.npz", huge)) == "does not fit in memory"


@PROPERTY
@given(st.data())
def test_any_damage_is_refused_or_harmless(tmp_path, data):
    path, whole = tmp_path / "state.npz", scored(deltas(5))
    whole.save(path)
    damaged = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    # Any other exception fails.
    with contextlib.suppress(ValueError):
        scores = RoundScores.load(written(path, bytes(damaged)))
        # A date in the archive's directory, say.
        assert (scores.canaries, scores.block, scores.rounds) == (whole.canaries, whole.block, whole.rounds)
        assert np.array_equal(scores.maxima, whole.maxima)
