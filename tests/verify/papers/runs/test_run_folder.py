import json
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.papers.check.results import Check, Context, Effort, Outcome, Run, Subject, Verdict, perform
from canaryproof.verify.papers.records.report_input import document_of
from canaryproof.verify.papers.runs import expected
from canaryproof.verify.papers.runs.run_file import RunFile
from canaryproof.verify.papers.runs.run_folder import read_material, unjudged

CHECKS = [("claims", "final.a"), ("claims", "final.b"), ("claims", "final.c")]
ORIGIN = {"version": "0", "level": "quick", "seed": "7", "processor": "a processor"}
PUBLISHED = Path(__file__).parents[4] / "reports" / "published"
TRAINING = document_of((PUBLISHED / "plays" / "results.json").read_bytes())
CONTEXT = Context(Effort.QUICK, 7)


def result(name):
    check = Check(name, Subject.DOCUMENT, "place", "says", lambda _: Outcome(Verdict.CONFIRMED, "found", {"x": 1}))
    return perform("claims", check, CONTEXT)


@pytest.fixture
def interrupted(tmp_path):
    """A run with two of its three results."""
    with RunFile(tmp_path / "run.sqlite", ORIGIN, CHECKS, command="canaryproof verify") as file:
        for i in (1, 0):
            file.add(i, json.dumps(result(CHECKS[i][1]).to_json()))
    return tmp_path


def test_an_interrupted_run_has_a_report_of_what_it_found(interrupted):
    found = read_material(interrupted)
    assert [r.id for r in found.run.results] == ["final.a", "final.b"]
    assert (found.run.level, found.run.seed) == ("quick", 7)
    assert found.unfinished == "This run was interrupted. It has 2 results so far, and --resume goes on."
    assert (found.canife, found.trainings, found.run.version) == (None, {}, "0")
    assert found.environment == {**ORIGIN, "command": "canaryproof verify"}


def test_it_goes_on_afterwards(interrupted):
    read_material(interrupted)
    with RunFile(interrupted / "run.sqlite", ORIGIN, CHECKS, resume=True) as file:
        assert set(file.results()) == {0, 1}


def test_a_finished_run_is_read_from_its_results(interrupted):
    run = Run("0", Effort.QUICK, 7, (result("final.a"),))
    (interrupted / "results.json").write_text(json.dumps(run.to_json()))
    (interrupted / "environment.json").write_text('{"command": "c"}')
    found = read_material(interrupted)
    assert (found.run, found.unfinished, found.environment) == (run, "", {"command": "c"})


def test_a_folder_without_a_run_is_refused_and_left_as_it_is(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError) as caught:
            read_material(folder)
        assert caught.value.message.startswith(f"{folder}: ")
        assert "run.sqlite" not in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_run_file_is_refused(interrupted):
    data = (interrupted / "run.sqlite").read_bytes()
    (interrupted / "run.sqlite").write_bytes(data.replace(b'"found"', b'"fOund"'))
    with pytest.raises(InputError, match=r"run\.sqlite: is damaged"):
        read_material(interrupted)


TIMINGS = {
    "trainings": [
        {"cell": 0, "repetition": 0, "run": 0, "with_canaries": True, "training": 1.5, "scoring": 0, "noise": 0}
    ]
}


def forged(path, position, content):
    """Put something else in a result's place, with its checksum."""
    with closing(sqlite3.connect(path)) as database:
        (row,) = database.execute("SELECT position, suite, id FROM results WHERE position = ?", (position,))
        checksum = zlib.crc32(repr((*row, content)).encode())
        database.execute(
            "UPDATE results SET result = ?, checksum = ? WHERE position = ?", (content, checksum, position)
        )
        database.commit()


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("{", "line 1, column 2: truncated or damaged"),
        ("null", "the document: must be an object, not None"),
        ("[" * 900 + "]" * 900, "the document: must be an object, not [[["),
        ("{}", "id: is missing"),
        (json.dumps({**result("final.a").to_json(), "verdict": 1}), "verdict: must be text, not 1"),
        (b"{}", "is no text"),
        ("[" * 10**6, "is nested too deeply"),
    ],
)
def test_a_forged_checksum_is_not_believed(interrupted, content, rule):
    path = interrupted / "run.sqlite"
    forged(path, 0, content)
    with pytest.raises(InputError) as reading:
        read_material(interrupted)
    with RunFile(path, ORIGIN, CHECKS, resume=True) as file, pytest.raises(InputError) as resuming:
        file.check()
    for caught in (reading, resuming):
        assert caught.value.message.startswith(f"{path}: is damaged: a result: {rule}")
        assert "\n" not in caught.value.message


@pytest.mark.parametrize(("suite", "name"), [CHECKS[1], ("bounds", CHECKS[0][1])])
def test_a_result_in_another_s_place_is_refused(interrupted, suite, name):
    path = interrupted / "run.sqlite"
    forged(path, 0, json.dumps({**result(name).to_json(), "suite": suite}))
    with RunFile(path, ORIGIN, CHECKS, resume=True) as file, pytest.raises(InputError) as caught:
        file.check()
    assert caught.value.message == f"{path}: is damaged: a result of {name} stands for another"


def test_what_lies_beside_a_run_comes_along(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(Run("0", Effort.QUICK, 0, ()).to_json()))
    shutil.copy(PUBLISHED / "canife.json", tmp_path)
    for file, document in (("experiment", {}), ("results", TRAINING), ("timings", TIMINGS)):
        (tmp_path / "noise").mkdir(exist_ok=True)
        (tmp_path / "noise" / f"{file}.json").write_text(json.dumps(document))
    found = read_material(tmp_path)
    assert to_document(found.canife) == document_of((PUBLISHED / "canife.json").read_bytes())
    assert to_document(found.trainings["noise"].record) == TRAINING
    assert [one.training for one in found.trainings["noise"].timings] == [1.5]
    assert (found.environment, found.unfinished) == ({}, "")
    # A training without its times is not finished, or was moved here by hand.
    (tmp_path / "noise" / "timings.json").unlink()
    assert read_material(tmp_path).trainings == {}
    shutil.rmtree(tmp_path / "noise")
    (tmp_path / "canife.json").write_text("[]")
    with pytest.raises(InputError, match=r"canife\.json: the document: must be an object, not \[\]"):
        read_material(tmp_path)


def test_statements_that_were_not_judged_are_counted(monkeypatch):
    table = {
        ("claims", "final.a"): Verdict.CONFIRMED,
        ("claims", "b"): Verdict.REFUTED,
        ("bounds", "c"): Verdict.REFUTED,
    }
    monkeypatch.setattr(expected, "read", lambda: table)
    assert unjudged(Run("0", Effort.QUICK, 0, (result("final.a"),))) == {"claims": 1, "bounds": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["trainings", "results", "seed", "level", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def read_or_refused(folder):
    """The material, or the line that refuses it."""
    try:
        return read_material(folder), ""
    except InputError as error:
        return None, error.message


NAMES = ["results", "environment", "canife", "noise/experiment", "noise/results", "noise/timings"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(NAMES), st.binary(max_size=50) | JSON.map(lambda value: json.dumps(value).encode()))
def test_anything_in_a_folder_is_read_or_refused_by_name(tmp_path, name, content):
    (tmp_path / "noise").mkdir(exist_ok=True)
    for other in NAMES:
        (tmp_path / f"{other}.json").write_text("{}" if other == "environment" else '{"trainings": []}')
    # A record of a benchmark has no short form.
    (tmp_path / "canife.json").unlink()
    (tmp_path / "results.json").write_text(json.dumps(Run("0", Effort.QUICK, 0, ()).to_json()))
    (tmp_path / "noise" / "results.json").write_text(json.dumps(TRAINING))
    (tmp_path / f"{name}.json").write_bytes(content)
    found, message = read_or_refused(tmp_path)
    assert found or message.startswith(f"{tmp_path}/{name}.json: ")
    assert "\n" not in message


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_damage_to_the_run_file_leaves_a_traceback(interrupted, data):
    file = interrupted / "run.sqlite"
    sound = file.read_bytes()
    damaged = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(sound) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(damaged[: data.draw(st.sampled_from([len(damaged), len(damaged) // 2, 4096, 100, 0]))])
    found, message = read_or_refused(interrupted)
    for left in interrupted.iterdir():
        left.unlink()
    file.write_bytes(sound)
    assert "\n" not in message
    assert message or found.run.results == (result("final.a"), result("final.b"))
