import math

import pytest

from canaryproof.reports.training import audit_of, label, spoken, value


@pytest.mark.parametrize(
    ("swept", "shown"), [(1, "1"), (0.25, "0.25"), (300.0, "300"), (math.inf, "∞"), ("inf", "∞"), ("coin", "coin")]
)
def test_values_are_shown_as_they_were_written(swept, shown):
    assert value(swept) == shown


def test_fields_are_named_in_words():
    assert spoken("training.one_round_epsilon") == "one round epsilon"
    assert label({"training.one_round_epsilon": "inf", "canaries.count": 20}) == "one round epsilon ∞, count 20"
    assert label({}) == ""


def test_algorithm_3_has_unobserved_canaries_for_its_null_and_algorithm_2_the_exact_law():
    nulls = {"unobserved": "u", "exact": "e"}
    result = {"audits": dict.fromkeys(("all", "final", "change"), nulls)}
    assert [audit_of(result, attack) for attack in ("all", "final", "change")] == ["u", "e", "e"]
