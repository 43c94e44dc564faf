import dataclasses

import pytest

from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import streams
from canaryproof.verify.papers.suites.stream_quality import quality
from tests.faults import FAULTS
from tests.faults.fault import seeded

*COORDINATES, QUALITY = streams.CHECKS


@pytest.mark.parametrize("check", COORDINATES, ids=lambda check: check.id)
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


CONTEXT = Context(Effort.QUICK, 3)


def test_the_stream_passes(quick_run):
    result = quick_run.results[QUALITY.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding
    assert result.evidence["coordinates"] >= 5_000_000
    assert result.evidence["scan"]["largest_error"] <= quality.QUANTILE_ERROR


@pytest.mark.deep
@pytest.mark.parametrize("name", ["stream.coefficient", "stream.shared"])
def test_faults_are_caught(name):
    with seeded(FAULTS[name]):
        assert QUALITY.judge(CONTEXT).verdict is Verdict.REFUTED


def exact_scan(**changes):
    moments = tuple(quality.moment(order) for order in (2, 4, 6, 8))
    return dataclasses.replace(quality.Scan(2**30, 4e-7, 1e-14, moments, True), **changes)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, Verdict.CONFIRMED),
        ({"largest_error": 4.7e-7}, Verdict.REFUTED),
        ({"symmetric": False}, Verdict.REFUTED),
        ({"moments": (1.0 + 1e-6, 3.0, 15.0, 105.0)}, Verdict.REFUTED),
    ],
)
def test_the_full_level_takes_all_words_and_their_moments(monkeypatch, changes, verdict):
    asked = []
    monkeypatch.setattr(quality, "scan", lambda stride: asked.append(stride) or exact_scan(**changes))
    judge = quality.judge
    monkeypatch.setattr(quality, "judge", lambda count, seed: asked.append(count) or judge(1, seed))
    assert QUALITY.judge(Context(Effort.FULL, 0)).verdict is verdict
    assert asked == [1, 10**9]
