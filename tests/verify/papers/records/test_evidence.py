from dataclasses import is_dataclass
from typing import get_args, get_type_hints

import pytest

from canaryproof.verify.audit.files.json_records import Count, read, to_document
from canaryproof.verify.papers.check.results import Effort, Result, Run, Subject, Verdict
from canaryproof.verify.papers.records import evidence
from canaryproof.verify.papers.records.evidence import DiagnosticAlarms, PrintedEstimate, Series, is_of, records


def run(**evidence):
    """A run with a check for each evidence, by the last part of its id."""
    results = (
        Result(f"suite.{name}", "suite", Subject.IMPLEMENTATION, "", "s", Verdict.CONFIRMED, "f", fields)
        for name, fields in evidence.items()
    )
    return Run("0", Effort.QUICK, 0, tuple(results))


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
    assert list(to_document(read).items()) == list(alarms.items())


def test_a_field_that_breaks_a_rule_is_named_with_its_check():
    with pytest.raises(ValueError, match=r"^suite\.a: rate\[1\]: must be a number, not 'x'$"):
        records(run(a={"p_value": 0.5, "alarms": 1, "rate": [0.1, "x", 0.2]}), DiagnosticAlarms)


SERIES = {
    "title": "a title",
    "axis": "d",
    "quantity": "an ordinate",
    "x": [1.0, 1e300],
    "exact": [1.0, 2.0],
    "bound": None,
    "bound_label": "a bound",
    "simulated": None,
    "standard_error": None,
    "fitted_slope": -0.5,
    "slope_interval": [-0.6, -0.4],
    "slope_of": "exact",
    "confidence": 0.99,
    "proven_slope": -0.5,
}


def test_a_series_has_its_axes_and_one_ordinate_for_each_abscissa():
    for change in ({"axis": "k"}, {"slope_of": "bound"}, {"slope_of": "simulated"}, {"confidence": 0}, {"x": [1, 2]}):
        found = read(Series, {**SERIES, **change})
        assert to_document(found) == {**SERIES, **change, "exact_label": "exact", "note": ""}
    for change, message in (
        ({"axis": "n"}, "axis: must be one of d, k, not 'n'"),
        ({"slope_of": "exact_label"}, "slope_of: must be one of exact, bound, simulated, not 'exact_label'"),
        ({"confidence": 1.5}, "confidence: must be a number from 0 to 1, not 1.5"),
        ({"x": []}, "x: must not be empty"),
        *(
            ({"x": [1.0, value]}, f"x[1]: must be a positive number, not {value!r}")
            for value in (0.0, -1.0, float("inf"), float("nan"), True, "1")
        ),
        *(
            ({name: [1.0] * 3}, f"{name}: must have as many numbers as x, 2, not 3")
            for name in ("exact", "bound", "simulated", "standard_error")
        ),
    ):
        with pytest.raises(ValueError, match=r"^[^\n]+$") as error:
            read(Series, {**SERIES, **change})
        assert str(error.value).removeprefix("the document: ") == message


def test_no_whole_number_of_an_evidence_is_negative():
    def whole(kind):
        """Tell whether a whole number that may be negative is part of a type."""
        return kind is int or (kind != Count and any(map(whole, get_args(kind))))

    kinds = [kind for kind in vars(evidence).values() if is_dataclass(kind) and kind.__module__ == evidence.__name__]
    assert len(kinds) > 30
    for kind in kinds:
        hints = get_type_hints(kind, include_extras=True)
        assert [name for name, hint in hints.items() if whole(hint)] == [], kind


def test_an_evidence_with_a_field_that_may_be_missing_is_of_its_kind():
    (old,) = run(
        a={
            "judged": 1,
            "ulps": 0.5,
            "budget": 2.0,
            "share_of_budget": 0.25,
            "arguments": {},
            "value": 1.0,
            "enclosure": [0.5, 1.5],
        }
    ).results
    assert is_of(old, evidence.WorstCaseInPractice)
    assert read(evidence.WorstCaseInPractice, old.evidence).proven is None
