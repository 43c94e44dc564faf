import json

import pytest
from click.testing import CliRunner

from canaryproof.verify.papers.check.results import Effort, Result, Run, Subject, Verdict
from canaryproof.verify.papers.suites.catalogue import SUITES
from tests.run_differences import TABLE, differences, main, new_names, renamed

NAMES = new_names(TABLE.read_text(encoding="utf-8"))


def test_the_later_names_are_those_of_the_checks():
    checks = [(suite, check) for suite, those in SUITES.items() for check in those]
    known = {
        "suite": {suite for suite, _ in checks},
        "id": {check.id for _, check in checks},
        "source": {check.source for _, check in checks},
    }
    for kind, there in known.items():
        later = {name for names in NAMES[kind].values() for name in names}
        assert later
        assert later <= there
        assert not set(NAMES[kind]) & there


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": [1, {"b": 2.0}]}, {"a": [1, {"b": 2.0}]}, []),
        ({"a": [1, {"b": 2.0}]}, {"a": [1, {"b": 2.5}]}, [".a[1].b: 2.0 -> 2.5"]),
        ({"a": [1, 2]}, {"a": [1]}, [".a: [1, 2] -> [1]"]),
        ({"a": 1}, {"b": 1}, [".a: 1 -> (none)", ".b: (none) -> 1"]),
    ],
)
def test_places_that_differ_are_named(before, after, found):
    assert list(differences(before, after)) == found


def row(name, suite, source, evidence):
    return Result(name, suite, Subject.IMPLEMENTATION, source, "a statement", Verdict.CONFIRMED, "a finding", evidence)


def compare(tmp_path, *rows):
    folders = []
    for i, each in enumerate(rows):
        folders.append(tmp_path / str(i))
        folders[-1].mkdir()
        text = json.dumps(Run("0", Effort.QUICK, 0, (each,)).to_json())
        (folders[-1] / "results.json").write_text(text, encoding="utf-8")
    return CliRunner().invoke(main, [str(folder) for folder in folders])


def test_other_names_alone_are_no_difference(tmp_path):
    old = row("gaussian.audit.files", "gaussian", "verify.files.reading", {"n": 1})
    new = row("audit.files", "audit", "verify.audit.files.reading", {"n": 1})
    assert compare(tmp_path, old, new).exit_code == 0


def test_other_numbers_and_a_wrong_suite_are(tmp_path):
    old = row("gaussian.audit.files", "gaussian", "verify.files.reading", {"n": 1})
    new = row("audit.files", "bounds", "verify.audit.files.reading", {"n": 2})
    done = compare(tmp_path, old, new)
    assert done.exit_code == 1
    assert done.output == "audit.files.suite: algorithm1 -> bounds\naudit.files.evidence.n: 1 -> 2\n"


def test_keys_of_evidence_have_their_later_names():
    old = {"id": "numerics.comparison.scipy", "suite": "numerics", "source": "a", "evidence": {"places": 3, "n": 1}}
    assert renamed(old, NAMES, {})["evidence"] == {"points": 3, "n": 1}
    other = old | {"id": "numerics.other"}
    assert renamed(other, NAMES, {})["evidence"] == other["evidence"]
