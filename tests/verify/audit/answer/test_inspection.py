import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.audit.answer.inspection import Inspection
from canaryproof.verify.audit.answer.instruments import InstrumentTest
from canaryproof.verify.audit.answer.replay import Replay, Replayed
from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import instruments

CLAIM = {"members": 200, "dim": 500, "noise_multiplier": 1.0, "clip_norm": 2.0, "rate": 0.2}


def training(weight=1.0, clip=True, insert=True, others=1.0, rounds=6):
    def run(inspection):
        rng = np.random.default_rng(0)
        updates = rng.normal(size=(inspection.members, 500)) * 0.05 + 0.05
        for _ in range(rounds):
            drawn = np.flatnonzero(rng.random(inspection.population) < 0.2)
            members, canaries = drawn[drawn < 200], drawn[drawn >= 200]
            known = updates[members].sum(axis=0)
            total = others * known
            for j in canaries if insert else ():
                update = inspection.update(j).astype(float)
                total = total + (update / (10.0 if clip else 1.0))
            noised = weight * (total + 2.0 * rng.normal(size=500))
            inspection.add(noised / (0.2 * 210), drawn, known / (0.2 * 210))

    return run


def refuted(run, **change):
    found = Inspection(**CLAIM | change)
    run(found)
    return {test.name for test in found.tests() if test.has_failed}, found


def test_an_honest_training_is_not_refuted():
    names, found = refuted(training())
    assert not names
    assert not found.has_failed
    assert str(found).startswith("None of 15 tests refutes the claim (6 rounds, 10 canaries).")
    assert found.rounds == 6


def test_before_the_first_round_there_are_no_tests():
    inspection = Inspection(**CLAIM)
    assert (inspection.tests(), inspection.has_failed, inspection.rounds) == ((), False, 0)
    assert str(inspection).startswith("No round was looked at so far.\n")


def test_a_canary_that_is_not_clipped_is_seen():
    names, found = refuted(training(clip=False))
    assert "clipping" in names
    observed = next(test.observed for test in found.tests() if test.name == "clipping")
    assert 9.0 < float(observed.split()[-3]) < 11.0


def test_the_others_weight_is_seen():
    names, found = refuted(training(others=1.4))
    assert "divisor" in names
    observed = next(test.observed for test in found.tests() if test.name == "divisor")
    assert 1.2 < float(observed.split()[-1].rstrip(".")) < 1.6


def test_canaries_that_never_enter_are_seen_in_time():
    assert "clipping" in refuted(training(insert=False, rounds=40))[0]


def test_others_updates_are_clipped_apart_from_the_training():
    inspection = Inspection(**CLAIM | {"dim": 2})
    assert inspection.clipped_sum([[3.0, 4.0], [0.3, 0.4]]) == pytest.approx([1.5, 2.0])
    assert inspection.clipped_sum(np.zeros((0, 2))) == pytest.approx([0.0, 0.0])


def test_a_replay_is_part_of_the_answer():
    inspection = Inspection(**CLAIM)
    training()(inspection)
    inspection.replay(lambda updates: updates.sum(axis=0), np.zeros((2, 500)))
    assert inspection.has_failed
    assert "replay: Refuted" in str(inspection)
    assert str(inspection).startswith("The claim is refuted by 1 of 16 tests")
    # A replay needs no round, and what it refutes is the answer then too.
    inspection = Inspection(**CLAIM)
    inspection.replay(lambda updates: updates.sum(axis=0), np.zeros((2, 500)))
    assert str(inspection).startswith(
        "The claim is refuted by 1 of 1 tests (0 rounds, 10 canaries).\n- replay: Refuted"
    )


def test_the_weight_of_a_canary_has_the_law_of_a_regression():
    # The statistic by a regression of all rounds' numbers on the canaries' sums.
    names, found = refuted(training())
    del names
    test = next(test for test in found.tests() if test.name == "clipping")
    inspection = Inspection(**CLAIM)
    stacked = []
    add = inspection.add

    def record(release, drawn, known):
        canaries = drawn[drawn >= 200]
        total = sum((inspection.update(j) / 20.0 for j in canaries), np.zeros(500))
        stacked.append((total, (release - known) * 0.2 * 210 / 2.0))
        add(release, drawn, known)

    inspection.add = record
    training()(inspection)
    x, y = (np.concatenate(part) for part in zip(*stacked, strict=True))
    slope = x @ y / (x @ x)
    error = math.sqrt(((y - slope * x) ** 2).sum() / (len(x) - 1) / (x @ x))
    assert test.p_value == pytest.approx(2.0 * stats.t.sf(abs(slope - 1.0) / error, len(x) - 1), rel=1e-5)


def test_the_others_weights_have_the_law_of_a_regression_with_one_for_each_round():
    """F of the others' directions in all rounds, against all that is left of the noise."""
    rng, inspection = np.random.default_rng(1), Inspection(**CLAIM | {"divisor": 2.0, "dim": 30})
    products, rest = [], 0.0
    for weight in (1.0, 1.3, 0.9):
        known, noise = rng.normal(size=30), rng.normal(size=30)
        left = (weight - 1.0) * known + noise
        inspection.add(weight * known + noise, [1, 2], known)
        products.append(left @ known / np.linalg.norm(known))
        rest += left @ left - products[-1] ** 2
    (test,) = (test for test in inspection.tests() if test.name == "divisor")
    ratio = np.mean(np.square(products)) / (rest / (3 * 30 - 3))
    assert test.p_value == pytest.approx(stats.f.sf(ratio, 3, 3 * 30 - 3), rel=1e-6)
    worst = int(np.argmax(np.abs(products)))
    lengths = [length for _, length in inspection._others]
    assert test.observed == (
        f"In some round the others' updates enter with weight {1.0 + products[worst] / lengths[worst]:.4g}."
    )


def test_wrong_rounds_change_nothing():
    inspection = Inspection(**CLAIM)
    with pytest.raises(ValueError, match="known: must be finite"):
        inspection.add(np.ones(500), [], np.full(500, math.inf))
    assert inspection.rounds == 0


def test_the_quick_run_sees_every_fault(quick_run):
    for name in ("level", "power"):
        result = quick_run.results[f"blindspots.instruments.{name}"]
        assert result.verdict is Verdict.CONFIRMED, result.finding
    faults = quick_run.results["blindspots.instruments.power"].evidence["faults"]
    assert all(bool(fault["sees"]) != bool(fault["reason"]) for fault in faults.values())


def test_a_fault_that_no_instrument_sees_is_told(monkeypatch):
    monkeypatch.setattr(instruments, "FAULTS", {"less-noise": instruments.SimulatedTraining("residual", 1)})
    outcome = instruments._power(Context(Effort.QUICK, 0))
    assert outcome.verdict is Verdict.REFUTED


def test_an_audit_sees_missing_noise_and_no_fault_of_the_clipping():
    """Evidence is a p-value of level 1e-6; at half of the noise 100 canaries pass it by far after 16 rounds."""
    for name, seen in (("noise-per-microbatch", True), ("clip-after-average", False), ("fixed-size", False)):
        p_values = instruments.audited(instruments.FAULTS[name], 100, (1, 16), 3)
        assert (p_values[16] <= LEVEL) == seen, name
        assert p_values[16] <= p_values[1] <= 1.0


@pytest.mark.parametrize("coarse", [False, True])
def test_no_test_depends_on_the_releases_unit(coarse):
    def looked_at(clip_norm, divisor):
        """Inspect the same training where a canary enters with ``clip_norm / divisor``, a power of 2."""
        rng, unit = np.random.default_rng(0), clip_norm / divisor
        inspection = Inspection(**CLAIM | {"clip_norm": clip_norm, "divisor": divisor})
        for _ in range(3):
            drawn = np.flatnonzero(rng.random(210) < 0.2)
            known = rng.normal(size=500)
            canaries = sum((inspection.update(j) / (10.0 * clip_norm) for j in drawn[drawn >= 200]), np.zeros(500))
            release = (known + canaries + rng.normal(size=500)).astype(np.float32)
            resolution = 2.0**-8 * unit if coarse else None
            inspection.add(unit * release, drawn, unit * known, resolution)
        for neighbours in ("add-or-remove", "replace"):
            inspection.replay(
                lambda rows: unit * np.tanh(np.nan_to_num(rows)).sum(axis=0), rng.normal(size=(2, 1)), neighbours
            )
        return inspection

    usual = looked_at(1.0, 1.0)
    assert not usual.has_failed
    # One member more changes the sum by 1 at most, another member by 2.
    assert [case.sensitivity for case in usual.replays] == [1.0, 2.0]
    for clip_norm, divisor in ((2.0**10, 1.0), (1.0, 2.0**10), (2.0**-6, 2.0**6)):
        assert str(looked_at(clip_norm, divisor)) == str(usual)
        assert looked_at(clip_norm, divisor).tests() == usual.tests()


def test_weights_that_are_said_to_be_noticed_are_noticed_with_ninety_percent():
    inspection, noise = Inspection(**CLAIM | {"divisor": 2.0}), np.random.default_rng(0).normal(size=500)
    canaries = sum(inspection.update(j).astype(float) / 20.0 for j in (200, 201, 202))
    known = 30.0 * np.eye(500)[7]
    inspection.add(canaries + known + noise, [0, 200, 201, 202], known)
    said = {test.name: test.notices.split() for test in inspection.tests()}
    deviation = math.sqrt(np.mean(noise**2))
    for name, word, length in (("clipping", -3, np.linalg.norm(canaries)), ("divisor", -4, 30.0)):
        off = float(said[name][word]) * length / deviation
        # The weight is printed with two digits.
        assert stats.norm.sf(stats.norm.isf(LEVEL / 2) - off) == pytest.approx(0.9, abs=0.04)


def test_an_inspection_prints_what_it_found_and_what_it_looked_at(monkeypatch):
    inspection = Inspection(**CLAIM)
    tests = (
        InstrumentTest("first", "It is odd.", 1e-9, "a small fault"),
        InstrumentTest("second", "It is fine.", 0.5, "a large fault"),
        InstrumentTest("third", "Nothing was there.", None),
    )
    inspection._residuals.add(np.full(500, 0.75))
    monkeypatch.setattr(inspection, "tests", lambda: tests)
    monkeypatch.setattr(type(inspection), "rounds", 7)
    looked = [
        "What was looked at, and the smallest fault that is noticed with 90%:",
        *("- first: a small fault", "- second: a large fault", "- third"),
    ]
    measured = "The training behaves as if its noise multiplier were 0.75; claimed 1."
    lines = str(inspection).splitlines()
    assert lines[:8] == [
        "The claim is refuted by 1 of 3 tests (7 rounds, 10 canaries).",
        measured,
        "- first: It is odd. (p = 1e-09)",
        "",
        *looked,
    ]
    assert lines[8:10] == ["", "What no instrument here sees:"]
    assert inspection.has_failed
    case = Replayed("one", (0, 1), 3.0, 2.1)
    inspection.replays += [Replay(2.0, "replace", (case,), None), Replay(2.0, "replace", (case,), case)]
    monkeypatch.setattr(inspection, "tests", lambda: tests[1:])
    assert str(inspection).splitlines()[:13] == [
        "The claim is refuted by 1 of 4 tests (7 rounds, 10 canaries).",
        measured,
        "- replay: Replacing a member changes the release by at most 1.5 of the claimed",
        "  sensitivity.",
        "- replay: Refuted: replacing a member changes it by 1.5 of the claim. Smallest",
        "  batch: one, and 2 others [0, 1]",
        "",
        looked[0],
        *looked[2:],
        "- replay: one member, beside whole and small batches",
        "",
        "What no instrument here sees:",
    ]
    assert inspection.has_failed
    inspection.replays.pop()
    assert not inspection.has_failed
    assert str(inspection).startswith("None of 3 tests refutes the claim (7 rounds, 10 canaries).")
