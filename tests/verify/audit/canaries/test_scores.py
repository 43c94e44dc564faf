import json
import math

import numpy as np
import pandas as pd
import pytest

from canaryproof.verify.audit.canaries.scores import RoundsRecord, Score, Scores
from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces
from canaryproof.verify.audit.files.errors import InputError

VALUES = [0.25, -0.5, 0.125]


@pytest.mark.parametrize(
    "given",
    [
        VALUES,
        tuple(VALUES),
        np.array(VALUES),
        np.array(VALUES, np.float32),
        np.array(VALUES, np.float16),
        pd.Series(VALUES),
    ],
    ids=lambda given: f"{type(given).__name__} {getattr(given, 'dtype', '')}",
)
def test_floats_of_any_container_are_taken(given):
    scores = Scores(given, given, 10, "coin")
    for held in (scores.observed, scores.unobserved):
        assert held.dtype == np.float64
        assert held.tolist() == VALUES
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 1.0
    assert (scores.dim, scores.inclusion, scores.kind) == (10, "coin", "cosine")


def test_arrays_of_jax_are_taken():
    jax = pytest.importorskip("jax")
    for dtype in ("float32", "bfloat16"):
        assert Scores(jax.numpy.array(VALUES, dtype), dim=10).observed.tolist() == VALUES


def test_what_was_given_can_change_without_changing_the_scores():
    values = np.array(VALUES)
    scores = Scores(values, dim=10)
    values[0] = math.nan
    assert scores.observed.tolist() == VALUES


def test_scores_of_any_kind_may_be_large_and_cosines_not():
    scores = Scores([1e100, -3.0], [5.0, 7.0], kind="any")
    assert scores.observed.tolist() == [1e100, -3.0]
    assert not scores.ranked


@pytest.mark.parametrize("largest", [2e100, math.inf])
def test_scores_that_are_infinite_or_overflow_stand_for_their_ranks(largest):
    scores = Scores([largest, 0.0, largest], [5.0, -largest, 0.0], kind="any")
    assert scores.ranked
    assert scores.observed.tolist() == [5.5, 2.5, 5.5]
    assert scores.unobserved.tolist() == [4.0, 1.0, 2.5]


@pytest.mark.parametrize("dim", [10, 10.0, np.int32(10), np.float32(10.0)])
def test_a_dimension_is_any_whole_number(dim):
    assert Scores(VALUES, dim=dim).dim == 10


def test_they_are_shown_in_a_line():
    assert repr(Scores(VALUES, [0.1, 0.2], 10**6)) == (
        "Scores(3 observed, 2 unobserved, dim=1,000,000, inclusion='fixed', kind='cosine')"
    )
    assert (
        repr(Scores(VALUES, [0.1, 0.2], kind="any"))
        == "Scores(3 observed, 2 unobserved, inclusion='fixed', kind='any')"
    )


def recorded(**fields):
    traces = RoundTraces(np.array([0.25, -0.5]), np.array([3.0, 4.5]), 100, residual=False, rounds=4)
    record = {"participations": 2, "left_out": 1, "rounds": 4, "missing": 3, "skipped": 2} | fields
    record = {"traces": traces, "carry_over": -1.25} | record
    return RoundsRecord(score=Score.KNOWN_ROUNDS, **record)


@pytest.mark.parametrize(
    "scores",
    [
        Scores(VALUES, dim=10),
        Scores(VALUES, VALUES, inclusion="coin", neighbours="replace"),
        Scores([math.inf, 0.0], [1.0, -3.0], kind="any"),
        Scores(VALUES, dim=100, record=recorded()),
        Scores(VALUES, dim=100, record=recorded(counts=np.array([1, 3, 2]))),
        Scores(VALUES, VALUES, kind="any", record=recorded(traces=None)),
    ],
)
def test_saved_scores_are_read_as_they_were(tmp_path, scores):
    scores.save(tmp_path / "s.json")
    read = Scores.load(tmp_path / "s.json")
    for name in ("dim", "inclusion", "kind", "neighbours", "ranked"):
        assert getattr(read, name) == getattr(scores, name)
    for name in ("observed", "unobserved"):
        np.testing.assert_array_equal(getattr(read, name), getattr(scores, name))
    if scores.record is None:
        assert read.record is None
        return
    for name in ("score", "participations", "left_out", "rounds", "missing", "skipped"):
        assert getattr(read.record, name) == getattr(scores.record, name)
    np.testing.assert_array_equal(read.record.counts, scores.record.counts)
    if scores.record.traces is not None:
        assert vars(read.record.traces).keys() >= {"cosines", "lengths"}
        for name in ("cosines", "lengths", "dim", "residual", "rounds"):
            np.testing.assert_array_equal(getattr(read.record.traces, name), getattr(scores.record.traces, name))


COUNTED = {
    "score": "known rounds",
    **dict.fromkeys(("participations", "left_out", "rounds", "missing", "skipped"), 2),
    "traces": None,
}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"format": "canaryproof scores 2"}, "format: must be 'canaryproof scores 1', not 'canaryproof scores 2'"),
        ({"observed": [0.5, 3.0]}, "observed[1]: a cosine must lie in [-1, 1], not 3.0; other scores are of kind any"),
        ({"observed": [0.5, "x"]}, "observed[1]: must be a number, not 'x'"),
        ({"dim": -3}, "dim: must not be negative, not -3"),
        ({"record": {"score": "known rounds"}}, "record."),
        ({"record": {**COUNTED, "counts": [1, 2]}}, "record.counts: must be a positive number for each observed score"),
        ({"record": {**COUNTED, "counts": [1, 0, 2]}}, "record.counts: must be a positive number for each"),
        ({"record": {**COUNTED, "counts": [1, 2**63, 2]}}, "record.counts: must be whole numbers of 64 bits"),
        ({"record": {**COUNTED, "counts": 3}}, "record.counts: must be a list, not 3"),
        ({"record": {**COUNTED, "counts": [1, 2.0]}}, "record.counts[1]: must be a whole number, not 2.0"),
        ({"record": {**COUNTED, "skipped": -1}}, "record.skipped: must not be negative, not -1"),
        (
            {"record": {**COUNTED, "score": "mean"}},
            "record.score: must be one of largest, likelihood, known rounds, not ",
        ),
        (
            {
                "record": {
                    **COUNTED,
                    "traces": {"cosines": [2.0], "lengths": [1.0], "dim": 9, "residual": True, "rounds": 1},
                }
            },
            "record.traces: cosines: must lie in [-1, 1], and lengths be positive and finite",
        ),
        ({"kind": "cosines"}, "kind: must be one of cosine, any, not 'cosines'"),
    ],
)
def test_a_damaged_file_of_scores_is_refused_in_one_line(tmp_path, change, rule):
    path = tmp_path / "s.json"
    Scores(VALUES, dim=100, record=recorded()).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError) as caught:
        Scores.load(path)
    assert str(caught.value).startswith(f"{path}: {rule}")
    assert "\n" not in str(caught.value)


def test_a_file_of_scores_is_one_line_of_json(tmp_path):
    scores = Scores(VALUES, dim=100, record=recorded(counts=np.array([1, 3, 2])))
    scores.save(tmp_path / "s.json")
    assert (tmp_path / "s.json").read_text() == (
        '{"format": "canaryproof scores 1", "kind": "cosine", "inclusion": "fixed", "neighbours": "add-or-remove", '
        '"dim": 100, "ranked": false, "record": {"score": "known rounds", "participations": 2, "left_out": 1, '
        '"rounds": 4, "missing": 3, "skipped": 2, "traces": {"cosines": [0.25, -0.5], "lengths": [3.0, 4.5], '
        '"dim": 100, "residual": false, "rounds": 4}, "counts": [1, 3, 2], "carry_over": -1.25}, '
        f'"observed": {VALUES}, "unobserved": null}}'
    )


def test_scores_are_saved_as_json(tmp_path):
    with pytest.raises(ValueError, match=r"^path: must end in \.json, not 's\.npz'$"):
        Scores(VALUES, dim=10).save(tmp_path / "s.npz")
