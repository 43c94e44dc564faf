"""The published run, which is read once for all tests of a process: that takes half a second."""

from functools import cache
from pathlib import Path
from typing import Any

from canaryproof.verify.papers.check.results import Run
from canaryproof.verify.papers.records.report_input import read_run

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "reports" / "published"


@cache
def published_run() -> Run:
    return read_run(PUBLISHED)


@cache
def published_rows() -> dict[str, dict[str, Any]]:
    """The results by their ids, as the file has them."""
    return {row["id"]: row for row in published_run().to_json()["results"]}
