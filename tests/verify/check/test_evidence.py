import pytest

from canaryproof.verify.check.evidence import DiagnosticAlarms, PrintedEstimate, is_of, records
from canaryproof.verify.check.json_records import written
from canaryproof.verify.check.results import Level, Result, Run, Subject, Verdict


def run(**evidence):
    """A run with a check for each evidence, by the last part of its id."""
    results = (
        Result(f"suite.{name}", "suite", Subject.IMPLEMENTATION, "", "s", Verdict.CONFIRMED, "f", fields)
        for name, fields in evidence.items()
    )
    return Run("0", Level.QUICK, 0, tuple(results))


def test_evidence_is_of_a_kind_if_it_has_all_its_fields():
    measured = run(
        a={"mean": 1.5, "deviation": float("inf"), "runs": 50}, b={"mean": 1.5}, c={}, d={"p_value": 0.5, "alarms": 1}
    )
    assert records(measured, PrintedEstimate, "suite.") == {"a": PrintedEstimate(1.5, float("inf"), 50)}
    assert records(measured, PrintedEstimate, "other.") == {}
    assert [is_of(result, PrintedEstimate) for result in measured.results] == [True, False, False, False]


def test_other_fields_are_left_out_and_those_of_the_record_stand_in_its_order():
    alarms = {"p_value": 0.5, "alarms": 1, "rate": [0.1, 0.0, 0.2]}
    (read,) = records(run(a={"more": 1, **alarms}), DiagnosticAlarms).values()
    assert list(written(read).items()) == list(alarms.items())


def test_a_field_that_breaks_a_rule_is_named_with_its_check():
    with pytest.raises(ValueError, match=r"^suite\.a: rate\[1\]: must be a number, not 'x'$"):
        records(run(a={"p_value": 0.5, "alarms": 1, "rate": [0.1, "x", 0.2]}), DiagnosticAlarms)
