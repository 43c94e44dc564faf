from pathlib import Path

from tests.benchmarks import releases
from tests.benchmarks.processes import FailedError
from tests.benchmarks.releases import Release, Scores, WholeAudit
from tests.benchmarks.timing import Skipped


def scores(canaries, count, seconds):
    return {"canaries": canaries, "count": count, "seconds": seconds, "peak": 1_800_000_000}


DOCUMENT = {
    "environment": {"processor": "A Processor"},
    "threads": 2,
    "releases": [
        {"label": "d = 1,024", "skipped": "no room"},
        {
            "dim": 2**30,
            "reading": 2.0,
            "summing": 0.5,
            "scores": [scores("independent", 10, 16.0), scores("orthonormal", 1000, 32.0)],
            "audit": {"count": 1000, "seconds": 121.0, "peak": 1_800_000_000, "decision": "PASSED"}
            | {"claim": 4.886, "epsilon": 4.9, "low": 4.5, "high": 5.3},
        },
    ],
}


def test_scores_and_audits_stand_beside_the_reading_and_the_aim():
    text = releases.render(DOCUMENT)["releases.md"]
    assert "| d = 1,024 | skipped: no room |  |  |  |  |  |" in text
    assert "| 2³⁰ | 1,000 orthonormal | 32 | 30 | 1,800 | 2.0 | 0.50 |" in text
    assert "| 2³⁰ | 1,000 | 120 | 1,800 | 4.89 | 4.90 (4.50 to 5.30) | PASSED |" in text
    assert "The aim, 120 s and 10 GB, is not met." in text
    # 3 of 149 blocks go to a machine, and this release has 16.
    assert "takes 3.0 s with 10 independent canaries and 6.0 s with 1,000 orthonormal canaries on 64" in text


def test_a_release_that_cannot_be_measured_is_skipped(monkeypatch):
    def answer(job, _folder, dim=0, *_, **__):
        if dim == 2**20:
            raise FailedError("no room")
        cost = {"seconds": 1.0, "peak": 5}
        audit = {**cost, "decision": "PASSED", "claim": 1.0, "epsilon": 1.0, "low": 1.0, "high": 1.0}
        return {"released": {}, "reading": {"reading": 1.0, "summing": 1.0}, "scored": cost, "audited": audit}[job]

    monkeypatch.setattr(releases, "answer", answer)
    monkeypatch.setattr(releases, "RESET", Path("/"))
    begun = []
    skipped, measured = releases.measure((2**20, 256), begun.append).releases
    assert skipped == Skipped("d = 1,048,576", "no room")
    several = tuple(Scores("independent", count, 1.0, 5) for count in (10, 100))
    assert measured == Release(256, 1.0, 1.0, several, WholeAudit(64, 1.0, 5, "PASSED", 1.0, 1.0, 1.0, 1.0))
    assert begun[0] == "1,048,576 coordinates, writing"
