import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from canaryproof.verify.papers.records.training_record import Job
from canaryproof.verify.papers.training import configuration, cost
from canaryproof.verify.papers.training.jobs import Trainings

TEXT = (Path(__file__).parents[2] / "tiny.toml").read_text()
CANIFE = """
[canife]
every = 2
scores = 20
pool = 16
steps = 20
"""


@pytest.fixture
def trainings(tmp_path):
    def make(text=TEXT):
        (tmp_path / "tiny.toml").write_text(text)
        return Trainings(configuration.read(str(tmp_path / "tiny.toml"), "quick"), None)

    return make


def test_what_is_small_is_not_measured(trainings, monkeypatch):
    monkeypatch.setattr(cost, "_timed", lambda _: pytest.fail("measured"))
    made = trainings()
    found = cost.estimate(made, made.jobs)
    assert (found.trainings, found.rounds, found.clients, found.canaries) == (1, 12, 50, 40)
    assert (found.seconds, found.longest) == (None, None)
    assert found.lines()[0].startswith(
        "1 training of 12 rounds with 50 clients and 40 canaries, 310 parameters; arrays of "
    )
    assert found.lines()[1].startswith("not measured")


def test_pieces_are_multiplied_by_how_often_they_are_done(trainings, monkeypatch):
    monkeypatch.setattr(cost, "_SMALL", 0)
    monkeypatch.setattr(cost, "_timed", lambda _: 1.0)
    made = trainings()
    found = cost.estimate(made, made.jobs)
    data, model = made.federation(made.settings(made.jobs[0]).data), made.model(*_of(made))
    count = min(1000, cost._CANARIES // model.dim)
    # A chunk takes a second, and so do all canaries measured, a round's noise, and 64 examples.
    settings = made.settings(made.jobs[0])
    batch = min(settings.training.batch_size, settings.data.examples_per_client)
    chunk = cost.chunk_of(model, data, 50, batch)
    expected = 12 * (50 / chunk + 1.0 + 40 / (count * 32)) + 20 / count + len(data.test_labels) / 64
    assert found.seconds == pytest.approx(expected)
    assert found.longest == found.seconds


def _of(made):
    settings = made.settings(made.jobs[0])
    return settings.model, settings.data


def test_repetitions_cost_as_much_each(trainings, monkeypatch):
    monkeypatch.setattr(cost, "_SMALL", 0)
    monkeypatch.setattr(cost, "_timed", lambda _: 1.0)
    one, three = (trainings(f"repetitions = {count}\n{TEXT}") for count in (1, 3))
    single, several = (cost.estimate(made, made.jobs) for made in (one, three))
    assert several.trainings == 3
    assert several.seconds == pytest.approx(3 * single.seconds)
    assert several.longest == pytest.approx(single.longest)
    # Of what is done already nothing is left.
    assert cost.estimate(three, three.jobs[:1]).seconds == pytest.approx(single.seconds)


def test_audits_by_canife_are_added(trainings, monkeypatch):
    monkeypatch.setattr(cost, "_SMALL", 0)
    without, with_ = trainings(), trainings(TEXT + CANIFE)
    rows = [cost.estimate(made, made.jobs) for made in (without, with_)]
    assert with_.jobs == (Job(0, 0, 0, with_canaries=True),)
    # Both are measured, so that no more is certain than that something is.
    assert all(row.seconds > 0.0 for row in rows)
    pieces = cost._Pieces(with_)
    monkeypatch.setattr(cost, "_timed", lambda _: 1e-9)
    monkeypatch.setattr(pieces, "_measured_step", lambda *_: 7.0)
    plan = cost._Plan.of(with_, with_.jobs[0])
    assert plan.attacks == 6
    assert pieces.seconds(plan) == pytest.approx(6 * 20 * 7.0, rel=1e-3)
    # A client that several trials of an audit draw is trained once.
    pieces = cost._Pieces(with_)
    monkeypatch.setattr(pieces, "_measured_step", lambda *_: 0.0)
    monkeypatch.setattr(pieces, "_client", lambda _: 1.0)
    settings, clients = plan.settings, with_.federation(plan.settings.data).clients
    rng, drawn = np.random.default_rng(0), settings.training.cohort / clients
    once = np.mean([(rng.random((settings.canife.scores, clients)) < drawn).any(axis=0).sum() for _ in range(100)])
    mock = cost._mock_clients(with_.auditor(plan.job))
    expected = plan.rounds * settings.training.cohort + 6 * (mock + once)
    assert pieces.seconds(plan) == pytest.approx(expected, rel=0.01)


def test_spans_and_sizes_are_said_in_units_that_fit():
    rows = [(1.0, "1 seconds"), (119.0, "119 seconds"), (7000.0, "117 minutes"), (3600.0 * 30, "30 hours")]
    assert [cost._span(seconds) for seconds, _ in rows] == [text for _, text in rows]
    assert cost._bytes(2.5e9) == "2.5 GB"
    found = cost.Cost(2, 10, 5, 0, 7, 1e6, 5e5, 1e6, 3.2)
    first, second = found.lines()
    assert first == "2 trainings of 10 rounds with 5 clients, 7 parameters; arrays of 1 MB"
    assert re.fullmatch(
        r"about 12 days on \d+ cores? \(cpu\), from pieces measured in 3 s; --engine dask does .*", second
    )
    assert "the longest in 5.8 days" in second
    assert replace(found, seconds=None).lines()[1].startswith("not measured")
