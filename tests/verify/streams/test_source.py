import numpy as np
import pytest

from canaryproof.kernels.canaries import noise
from canaryproof.verify.suites import streams as plain
from canaryproof.verify.suites.stream import quality

# Seed, canary, purpose and first tile; the last one's counters are beyond 2³².
CHOSEN = np.array([[0, 0, 0, 0], [2**64 - 1, 2**32 - 1, 0, 7], [5 + 2**40, 3, 1, 1], [1, 2, 0, 2**22 + 1]], np.uint64)


def test_words_are_those_of_philox_in_plain_integers():
    words, _ = quality.streams(CHOSEN, 2 * quality.TILE)
    for row, (seed, index, purpose, tile) in zip(words, CHOSEN.tolist(), strict=True):
        for place in (0, 1, 1023, 1024, 2500, 4095, 4096, 8191):
            beyond, inside = divmod(place, quality.TILE)
            run, rest = divmod(inside, quality.RUN)
            counter = quality.RUN * (tile + beyond) + rest
            key = seed % 2**32, seed // 2**32
            assert row[place] == plain._philox((counter % 2**32, counter // 2**32, index, purpose), key)[run]


def test_coordinates_are_the_quantiles_of_their_words_and_those_of_the_kernel():
    words, coordinates = quality.streams(CHOSEN, quality.TILE)
    for row, of in zip(words, coordinates, strict=True):
        assert np.array_equal(quality.quantiles(row), of)
    made = quality.streams(np.array([[9, 0, 1, 0]], np.uint64), 2 * quality.TILE)[1][0]
    assert np.array_equal(made[:5000], noise(9, 5000))


@pytest.mark.parametrize("count", [1, 4095, 5000])
def test_quantiles_of_any_number_of_words(count):
    words = np.arange(count, dtype=np.uint32) * np.uint32(858_993)
    found = quality.quantiles(words)
    assert found.shape == (count,)
    assert np.array_equal(quality.quantiles(words[-1:]), found[-1:])
