"""The map of faults is whole, and the atlas, the suite and the examples have its names."""

import ast
import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from canaryproof.verify.audit.answer.plan import _LABELS
from canaryproof.verify.audit.blindspots.fault_map import (
    COLUMNS,
    INSTRUMENTS,
    MappedFault,
    detector_of,
    fault_map,
    summary,
)
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS
from canaryproof.verify.papers.suites.instruments import FAULTS
from tests import fault_map as measuring

ROOT = Path(__file__).parents[4]
NO_FAULTS = {"final-iterate", "other-canaries"}


def switches(example):
    """Return the faults that an example's switch has; importing the example needs its framework."""
    tree = ast.parse((ROOT / "examples" / f"{example}.py").read_text(encoding="utf-8"))
    (value,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FAULTS"
    ]
    return ast.literal_eval(value)


def test_each_fault_of_the_atlas_the_suite_and_the_examples_is_a_row():
    assert set(MECHANISMS) - set(fault_map()) == NO_FAULTS
    assert set(_LABELS) <= set(fault_map())
    assert set(FAULTS) <= set(fault_map())
    for example in ("opacus_training", "jax_privacy_training", "flower_app"):
        assert set(switches(example)) <= set(fault_map()), example


def test_a_row_has_an_instrument_or_the_reason_why_none_notices_it():
    for fault in fault_map().values():
        assert bool(fault.reason) == (fault.instrument is None), fault.name
        assert (fault.detector == "none") == (fault.instrument is None)
        assert set(fault.rounds) <= set(COLUMNS)
        assert not fault.instrument or fault.rounds[fault.instrument] == min(
            fault.rounds[name] for name in INSTRUMENTS if name in fault.rounds
        )
    assert fault_map()["low-rank"].detector == "residual (0.1)"
    # Where two notice it equally early, a replay is named: it needs no statistics.
    assert fault_map()["batch-twice"].detector == "replay"


def test_a_row_is_read_field_by_field():
    assert fault_map()["less-noise"] == MappedFault(
        name="less-noise",
        title="the noise has 80% of its deviation",
        setting="0.8",
        pitfall="",
        rounds={"residual": 1, "watch": 1},
        reason="",
    )
    table = ROOT / "verify" / "audit" / "blindspots" / "fault_map.csv"
    rows = list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))))
    assert [row["name"] for row in rows] == list(fault_map())
    for row in rows:
        fault = fault_map()[row["name"]]
        assert (fault.name, fault.title, fault.setting) == (row["name"], row["fault"], row["setting"])
        assert (fault.pitfall, fault.reason) == (row["pitfall"], row["reason"])
        assert {name: f"{fault.rounds.get(name, '')}" for name in COLUMNS} == {name: row[name] for name in COLUMNS}


def test_what_notices_a_row_of_the_atlas_is_told_in_a_few_words():
    assert {detector_of(name) for name in NO_FAULTS} == {"no fault of a training"}
    assert detector_of("less-noise") == "residual (0.8)"
    unnoticed = MappedFault("x", "a title", "", "", {"audit, 100 canaries": 1}, "a reason")
    assert (unnoticed.instrument, unnoticed.detector) == (None, "none")
    assert replace(unnoticed, setting="2").detector == "none (2)"
    # The first that notices it, and of several the one that is later in the table.
    rounds = {"residual": 3, "watch": 2, "sampling record": 2, "audit, 100 canaries": 1}
    assert replace(unnoticed, rounds=rounds).detector == "sampling record"


def test_each_row_without_a_reason_is_simulated_and_no_other():
    simulated = {*FAULTS, *measuring.MORE, *measuring.STEPS, *measuring.PAIRS, *measuring.CLAIMS, *measuring.EXAMPLES}
    assert simulated == {fault.name for fault in fault_map().values() if not fault.reason}


def test_the_twelve_pitfalls_of_jax_privacy_are_rows():
    assert {fault.pitfall for fault in fault_map().values()} - {""} == {
        "Division by batch size",
        "Sensitivity alignment",
        "Accounting and batch selection mismatch",
        "Public vs. private metadata",
        "Neighboring relation clarity",
        "Zero-sized batches and non-finite gradients",
        "Gradient accumulation",
        "Cross-example operations",
        "Auxiliary information",
        "Randomness and RNG injection",
        "Floating point robustness",
        "Finite-precision numerical error",
    }


def test_the_instrument_that_the_suite_declares_notices_a_fault_as_early_as_declared():
    for name, training in FAULTS.items():
        assert fault_map()[name].rounds[training.sees] <= training.rounds, name


def test_the_sentence_has_the_maps_counts():
    faults = fault_map().values()
    tested = sum(not fault.reason for fault in faults)
    seen = sum("audit, 100 canaries" in fault.rounds for fault in faults)
    assert seen < tested < len(faults)
    assert summary() == (
        f"Of {len(faults)} faults in the documentation's map of faults, 100 canaries at known rounds notice {seen}, "
        f"and an auditor's instruments notice {tested}."
    )


def test_two_seeds_and_examples_show_what_the_map_says():
    for name, training in {**FAULTS, **measuring.MORE, **measuring.PAIRS}.items():
        assert measuring.of_two_seeds(training) == ("two seeds" in fault_map()[name].rounds), name
    assert not measuring.of_two_seeds(measuring.HONEST)


def test_a_watch_notices_after_as_many_rounds_as_the_map_says_and_passes_the_honest_training():
    # One training a fault, and nine of ten notice it by then.
    named = {**FAULTS, **measuring.MORE, **measuring.PAIRS, **measuring.CLAIMS}
    missed = []
    for name, training in named.items():
        rounds = fault_map()[name].rounds.get("watch")
        if rounds and measuring.round_of_failure(training, rounds, 100) is None:
            missed.append(name)
    assert len(missed) <= 2, missed
    assert measuring.round_of_failure(measuring.HONEST, 32, 100) is None


def test_examples_show_what_the_map_says():
    assert all(map(measuring.of_examples, measuring.EXAMPLES))


@pytest.mark.deep
@pytest.mark.parametrize("name", [*measuring.STEPS, *measuring.MORE, *FAULTS])
def test_a_replay_notices_what_the_map_says(name):
    if name in measuring.STEPS:
        assert measuring.of_step(name)
    else:
        training = FAULTS.get(name) or measuring.MORE[name]
        assert measuring.replayed(training, 0) == ("replay" in fault_map()[name].rounds)
