import itertools

import numpy as np
import pytest

from canaryproof.verify.suites.stream import quality
from canaryproof.verify.suites.stream.quality import LENGTH, READINGS, neighbours, place, read_readings


def one(seed, index, purpose, tile):
    return quality.streams(np.array([[seed, index, purpose, tile]], np.uint64), quality.TILE)


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("canaries", (6, 8, 0, 2)),
        ("seeds", (7, 7, 0, 2)),
        ("high bits of seeds", (6 + 2**56, 7, 0, 2)),
        ("canary and noise", (6, 7, 1, 2)),
    ],
)
def test_streams_are_interleaved(name, second):
    words, coordinates = read_readings(name, (6, 7, 0, 2))
    count = READINGS[name].count
    assert len(words) == len(coordinates) == LENGTH
    for number, chosen in enumerate(((6, 7, 0, 2), second)):
        expected = one(*chosen)
        assert np.array_equal(words[number::count][: quality.TILE], expected[0][0])
        assert np.array_equal(coordinates[number::count][: quality.TILE], expected[1][0])


def test_along_a_canary():
    words, _ = read_readings("one canary", (6, 7, 0, 2))
    assert np.array_equal(words[: quality.TILE], one(6, 7, 0, 2)[0][0])
    assert np.array_equal(words[quality.TILE : 2 * quality.TILE], one(6, 7, 0, 3)[0][0])


def test_the_last_stream_of_high_bits_has_the_highest_seed():
    words, _ = read_readings("high bits of seeds", (6, 7, 0, 2))
    assert np.array_equal(words[255::256], one(6 + (255 << 56), 7, 0, 2)[0][0])


def test_places_share_no_seed_and_stay_in_range():
    rng = np.random.default_rng(1)
    places = [place(number, rng) for number in range(2000)]
    assert all(second[0] - first[0] == READINGS["seeds"].count for first, second in itertools.pairwise(places))
    indices, tiles = [p[1] for p in places], [p[3] for p in places]
    assert min(indices) == min(tiles) == 0
    assert 2**31 < max(indices) <= 2**32 - READINGS["canaries"].count
    assert 2**27 < max(tiles) <= 2**28 - LENGTH // quality.TILE
    assert {p[2] for p in places} == {0}


def test_neighbours_differ_from_the_first_in_one_bit():
    rows = neighbours()
    assert len(np.unique(rows, axis=0)) == len(rows) == 1 + sum(quality._BITS)
    assert (np.bitwise_count(rows[1:] ^ rows[0]).sum(axis=1) == 1).all()
    assert (np.bitwise_or.reduce(rows) == [2**bits - 1 for bits in quality._BITS]).all()
