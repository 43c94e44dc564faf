import pytest

from canaryproof.verify.audit.blindspots import diagnostics, mechanisms
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS
from canaryproof.verify.papers.check.results import Context, Effort, Subject, Verdict
from canaryproof.verify.papers.records.evidence import AtlasCell, MethodAlarms
from canaryproof.verify.papers.suites import atlas, blindspots

CONTEXT = Context(Effort.QUICK, 7)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_is_in_the_atlas_and_as_foretold(name, quick_run):
    result = quick_run.results[f"blindspots.atlas.{name}"]
    assert result.verdict is Verdict.CONFIRMED, result.finding
    cells = result.evidence["cells"]
    assert {row["count"] for row in cells} == {100, 1000, 10_000}
    assert [row["value"] for row in cells if row["count"] == 100] == list(MECHANISMS[name].values)
    assert all(row["exact"] == (row["count"] == 100) for row in cells)
    assert set(atlas.ESTIMATORS) | set(atlas.COIN_BOUNDS) <= set(cells[0]["methods"])
    assert len(result.evidence["diagnosed"]) == (len(MECHANISMS[name].values) if MECHANISMS[name].draw else 0)


def test_the_full_level_has_the_exact_law_at_a_thousand_too():
    exact = {
        level: [s.count for s in blindspots.sizes(MECHANISMS["dilution"], Context(level, 0)) if s.exact]
        for level in Effort
    }
    assert exact == {Effort.SMOKE: [100], Effort.QUICK: [100], Effort.FULL: [100, 1000]}


def cell(rate, predicted, *, unlimited=3.0, alarms=0, runs=400):
    methods = {"fixed-sequence": MethodAlarms((3.0, 3.0, 3.0), 0.0, alarms, 100)}
    return AtlasCell(
        value=1.0,
        count=100,
        exact=True,
        truth=(3.0, 3.0),
        distance=1.0,
        runs=runs,
        rate=(rate, 0.0, 1.0),
        predicted=predicted,
        unlimited=(unlimited, unlimited),
        canife=None,
        methods=methods,
    )


def test_a_rate_that_is_not_the_foretold_one_is_found():
    right, wrong, small = cell(0.06, 0.05), cell(0.3, 0.05), cell(0.3, 0.05, runs=10)
    assert blindspots.wrong_rates([right, wrong, small]) == [wrong]
    assert blindspots.wrong_rates([cell(0.5, 0.95)]) != []


def test_a_bound_that_sees_what_is_not_there_is_found():
    right, wrong, seen = cell(0.0, 0.0, alarms=5), cell(0.0, 0.0, alarms=40), cell(0.0, 0.0, alarms=100, unlimited=4.0)
    assert blindspots.wrong_bounds([right, wrong, seen]) == [(wrong, "fixed-sequence")]


def test_a_prediction_that_forgets_the_data_is_found(monkeypatch):
    monkeypatch.setattr(blindspots, "cells", lambda *_: (cell(0.0, 1.0),))
    monkeypatch.setattr(blindspots, "diagnoses", lambda *_: ())
    assert blindspots.judge(CONTEXT, "dilution").verdict is Verdict.REFUTED


def test_the_part_without_noise_is_seen_by_canaries_that_are_confined_to_it():
    rows = {row.value: row for row in blindspots.diagnoses("no-noise-on-a-share", CONTEXT)}
    assert rows[0.01].confined > 0.99
    assert rows[0.01].tests["part-norms"].rate[0] == 1.0
    assert rows[0.0].confined is None


QUALIFIED = {
    *("final.section4.any-user", "submission.section4.any-user", "v1.section4.1.any-user"),
    *("v1.section4.worst-case", "v1.section4.unusual", "review.laplace"),
}
SENTENCES = [check for check in blindspots.CHECKS if check.subject is Subject.DOCUMENT]


@pytest.mark.parametrize("check", SENTENCES, ids=lambda check: check.id)
def test_the_documents_sentences_are_judged(check, quick_run):
    verdict = quick_run.results[check.id].verdict
    assert verdict is (Verdict.QUALIFIED if check.id in QUALIFIED else Verdict.CONFIRMED)


@pytest.mark.parametrize("check", SENTENCES, ids=lambda check: check.id)
def test_nothing_is_said_where_faults_are_seen_in_half_of_the_audits(check, monkeypatch):
    monkeypatch.setattr(atlas, "alarms_of", lambda _m, _v, _c, size, _k: size.runs // 2)
    assert check.judge(CONTEXT).verdict is Verdict.INCONCLUSIVE


def test_no_refutation_without_an_attack_that_wins(monkeypatch):
    monkeypatch.setattr(mechanisms, "are_impossible_alone", lambda releases, *_: (releases == releases).all(axis=-1))
    won = blindspots.attack(CONTEXT)
    assert won["with"] == won["without"] == won["releases"]
    assert blindspots._refutation(CONTEXT).verdict is Verdict.INCONCLUSIVE


def test_a_missed_fault_is_told_from_one_that_is_seen():
    missed, seen, between = blindspots.measured(
        CONTEXT, (("unclipped", 10.0), ("less-noise", 0.5), ("less-noise", 0.9))
    )
    assert [row["outcome"] for row in (missed, seen, between)] == ["missed", "seen", "between"]


DIAGNOSTICS = [check for check in blindspots.CHECKS if check.id.startswith("blindspots.diagnostics.")]


@pytest.mark.parametrize("check", DIAGNOSTICS, ids=lambda check: check.id)
def test_the_diagnostics_keep_their_word(check, quick_run):
    result = quick_run.results[check.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding


def test_data_that_the_test_is_not_told_of_are_found(monkeypatch):
    right = diagnostics.rounds_p_value
    monkeypatch.setattr(diagnostics, "rounds_p_value", lambda gram, sigma, dim, _data_norm: right(gram, sigma, dim))
    assert blindspots._with_data(CONTEXT).verdict is Verdict.REFUTED
