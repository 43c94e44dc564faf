"""Pages of a small fixed run, byte by byte. After a change that is meant: ``python tests/reports/test_golden.py``."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import made_up

from canaryproof.reports.formats import Format, report
from canaryproof.verify.papers.check.results import Effort, Run
from canaryproof.verify.papers.records.report_input import Material

FOLDER = Path(__file__).with_name("golden")
ENVIRONMENT = {"command": "canaryproof verify", "processor": "a processor"}


def made():
    """All formats but PDF, without pictures, which are another library's."""
    run = Run("0", Effort.QUICK, 0, tuple(r for r in made_up.results() if "convergence" not in r.evidence))
    material = Material(run, ENVIRONMENT, unjudged={"bounds": 3})
    files = {**report(material).files, **report(material, Format.HTML).files, **report(material, Format.JSON).files}
    return {name: contents.decode() for name, contents in files.items() if name != "results.schema.json"}


@pytest.fixture(scope="module")
def files():
    return made()


def test_all_files_are_there_and_no_other(files):
    assert sorted(files) == sorted(str(p.relative_to(FOLDER)) for p in FOLDER.rglob("*") if p.is_file())


@pytest.mark.parametrize("name", sorted(str(p.relative_to(FOLDER)) for p in FOLDER.rglob("*") if p.is_file()))
def test_files_are_as_they_were(files, name):
    assert files[name] == (FOLDER / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    for name, text in made().items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text, encoding="utf-8")
