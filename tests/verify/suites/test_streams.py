import pytest

from canaryproof.verify.check.results import Verdict
from canaryproof.verify.suites import streams


@pytest.mark.parametrize("check", streams.CHECKS, ids=lambda check: check.id)
def test_the_kernels_pass(check, quick_run):
    result = quick_run.results[check.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding


# Random123's known answers for Philox 4×32-10.
@pytest.mark.parametrize(
    ("word", "answer"),
    [
        (0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (2**32 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ],
)
def test_philox_in_plain_integers(word: int, answer: tuple[int, ...]) -> None:
    assert streams._philox((word,) * 4, (word,) * 2) == answer


def test_coordinates_of_canaries_noise_and_seeds_differ() -> None:
    found = {streams.coordinate(*of, 5) for of in ((1, 0, 0), (1, 1, 0), (1, 0, 1), (2, 0, 0), (1 + 2**32, 0, 0))}
    assert len(found) == 5
