"""What audits promise is counted, judged and kept as ``make coverage`` says."""

import json
from dataclasses import asdict

import pytest

from tests import coverage
from tests.coverage import (
    LEVEL,
    Cell,
    Planned,
    Promise,
    PValues,
    Setting,
    Uneven,
    _scores,
    broken,
    measure,
    render,
    settings,
)

CELL = Cell(dim=20_000, canaries=100, noise=1.0)


def with_misses(name: str, misses: int) -> dict[str, object]:
    """A setting in which ten audits kept all promises but one."""
    names = ("interval", "bound", "looks wrong", "not passed", "not noticed")
    promises = {each: {"misses": misses * (each == name), "tries": 10, "allowed": 0.05} for each in names}
    promises["looks wrong"]["allowed"] = 1e-6
    counts = {"epsilon": 4.38, "share": 0.8, "withheld": 0, "audits": 10, "seconds": 60.0}
    return {"cell": asdict(CELL), **counts, "promises": promises}


def test_promises_of_a_release_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cell, "audits", 4)
    row = measure(CELL)
    assert broken([row]) == []
    assert set(row) >= set(with_misses("bound", 0))
    assert f"Every promise was kept: 1 of {len(list(settings()))} settings have been run, in " in render([row])


@pytest.mark.parametrize("cell", [next(_scores()), Cell(1000, 300, 1.0, scores="cosines")], ids=str)
def test_promises_of_scores_are_kept(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cell, "audits", 4)
    row = measure(cell)
    assert broken([row]) == []
    assert row["promises"]["bound"]["tries"] == 4
    assert f"| {cell.scores} |" in render([row])


@pytest.mark.deep
@pytest.mark.parametrize("data", ["none", "descent"])
def test_promises_of_a_training_in_epochs_are_kept(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cell, "audits", 2)
    cell = Cell(2000, 60, 0.7, data, 0.3 * (data != "none"), rounds=6, rate=1 / 3, schedule="epochs")
    row = measure(cell)
    assert broken([row]) == []
    assert "| 6 at 0.333333, in epochs |" in render([row])


@pytest.mark.parametrize(("name", "misses"), [("interval", 9), ("looks wrong", 2), ("not noticed", 10)])
def test_a_broken_promise_is_said(name: str, misses: int) -> None:
    (line, *_) = broken([with_misses(name, misses)])
    assert line.startswith(f"{name}: ")
    assert "promises were not kept: " in render([with_misses(name, misses)])


def test_misses_too_few_in_each_setting_are_noticed_in_all_together() -> None:
    assert broken([with_misses("interval", 3)]) == []
    assert broken(20 * [with_misses("interval", 3)])[0].startswith("interval: all cells: ")


@pytest.mark.parametrize(
    ("counts", "documented", "said"),
    [
        ((0, 0), False, ("0 of 20 honest audits, none of them", "In 0 of 2 settings")),
        ((4, 5), False, ("9 of 20 honest audits, none of them", "In 1 of 2 settings")),
        ((1, 0), True, ("1 of 20 honest audits, 1 of them", "In 0 of 2 settings")),
    ],
)
def test_withheld_estimates_are_counted(counts: tuple[int, int], documented: bool, said: tuple[str, str]) -> None:
    cell = {**asdict(CELL), "documented": documented}
    shown = render([{**with_misses("bound", 0), "cell": cell, "withheld": count} for count in counts])
    assert f"An estimate was withheld in {said[0]} of a size that the docs use. {said[1]} that was" in shown


def test_p_value_is_of_at_least_so_many_misses() -> None:
    assert Promise(0, 10, 0.1).p_value == 1.0
    assert Promise(10, 10, 0.1).p_value == pytest.approx(1e-10)


def test_settings_that_are_done_are_not_run_again(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    kept = tmp_path / "coverage.jsonl"
    kept.write_text(json.dumps(with_misses("bound", 0)) + "\n", encoding="utf-8")
    monkeypatch.setattr(coverage, "_KEPT", kept)
    monkeypatch.setattr(coverage, "settings", lambda: iter([CELL]))
    monkeypatch.setattr(coverage, "measure", None)
    before = kept.read_text(encoding="utf-8")
    coverage.main(["--part", "0"], standalone_mode=False)
    assert kept.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        (Planned(0.3, 1000, participations=1), "| participations: 1 |"),
        (PValues(1, 50, 1.0, rounds=10, rate=0.02, of="members"), "| 50 members, 10 rounds at 0.02 |"),
        (
            Uneven(500, 40, 0.7, rounds=5, rate=0.2, known=True, schedule="epochs", most=4.0),
            "| falling, up to 4 times |",
        ),
    ],
    ids=str,
)
def test_promises_of_other_classes_are_kept(setting: Setting, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PValues, "audits", 50)
    monkeypatch.setattr(Uneven, "audits", 2)
    monkeypatch.setattr(Planned, "_audits", lambda *_: 3)
    row = measure(setting)
    assert broken([row]) == []
    assert shown in render([row])


def test_sums_of_a_plan_take_all_its_shares_together() -> None:
    promises = {
        f"not noticed as planned: share {share}, 9 canaries": asdict(Promise(2, 10, 0.1)) for share in (0.5, 0.9)
    }
    (key,) = sums = coverage.together([{"promises": promises}])
    assert key == ("not noticed as planned", 0.1)
    assert sums[key] == Promise(4, 20, 0.1)


@pytest.mark.deep
@pytest.mark.parametrize("setting", list(settings()), ids=str)
def test_promises_are_kept_in_all_settings(setting: Setting) -> None:
    assert broken([measure(setting)], LEVEL / len(list(settings()))) == []
