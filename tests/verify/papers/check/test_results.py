import dataclasses
import json
import math

import pytest

from canaryproof.verify.papers.check.documents import DOCUMENTS, FINAL, document_of
from canaryproof.verify.papers.check.results import (
    Check,
    Context,
    Design,
    Effort,
    Outcome,
    Result,
    Run,
    Subject,
    Verdict,
    false_alarms,
    over_budget,
    perform,
)


def judged(subject, verdict, evidence=None):
    check = Check("some.check", subject, "somewhere", "something", lambda _: Outcome(verdict, "found", evidence or {}))
    return perform("suite", check, Context(Effort.QUICK, 0))


def draws(context, purpose):
    return context.key(purpose).generate_state(4).tolist()


def test_a_key_depends_on_seed_and_purpose_only():
    assert draws(Context(Effort.QUICK, 1), "a") == draws(Context(Effort.FULL, 1), "a")
    assert draws(Context(Effort.QUICK, 1), "a") != draws(Context(Effort.QUICK, 2), "a")
    assert draws(Context(Effort.QUICK, 1), "a") != draws(Context(Effort.QUICK, 1), "b")


def test_levels_pick_sample_sizes():
    assert Context(Effort.QUICK, 0).pick(3, 5) == 3
    assert Context(Effort.FULL, 0).pick(3, 5) == Context(Effort.FULL, 0).pick(3, 5, 1) == 5
    assert Context(Effort.SMOKE, 0).pick(3, 5) == Context(Effort.QUICK, 0).pick(3, 5, 1) == 3
    assert Context(Effort.SMOKE, 0).pick(3, 5, 1) == 1


def test_a_result_has_each_part_of_its_check_and_of_its_outcome():
    design = Design("a null", 0.1, "an effect", 0.9, 5)
    asked = []

    def judge(context):
        asked.append(context)
        return Outcome(Verdict.QUALIFIED, "a finding", {"x": 1}, design)

    context = Context(Effort.FULL, 3)
    check = Check("an id", Subject.TOOL, "a source", "a statement", judge)
    assert perform("a suite", check, context) == Result(
        id="an id",
        suite="a suite",
        subject=Subject.TOOL,
        source="a source",
        statement="a statement",
        verdict=Verdict.QUALIFIED,
        finding="a finding",
        evidence={"x": 1},
        design=design,
    )
    assert asked == [context]


def test_a_claim_is_its_documents():
    check = FINAL.claim("table2.row1", "Table 2", "a statement", judged)
    assert check == Check(
        "final.table2.row1",
        Subject.DOCUMENT,
        "Andrew et al., arXiv 2302.03098, final version, Table 2",
        "a statement",
        judged,
    )
    assert document_of(check.id) is FINAL
    for document in DOCUMENTS:
        # Sources begin with the name, and pages with the title: both say which version it is.
        assert document_of(document.claim("a", "b", "c", judged).id) is document
    assert [document.id for document in DOCUMENTS] == ["final", "v1", "submission", "review", "canife", "own"]


def drawn(*levels):
    """A run of checks of these levels, and one that depends on no chance."""
    verdicts = [Verdict.CONFIRMED] * len(levels)
    designs = [*(Design("a null", level, "an effect", 0.9, 5) for level in levels), None]
    return Run(
        "1",
        Effort.QUICK,
        0,
        tuple(
            Result(f"{i}", "suite", Subject.IMPLEMENTATION, "", "", verdict, "", {}, design)
            for i, (verdict, design) in enumerate(zip([*verdicts, Verdict.REFUTED], designs, strict=True))
        ),
    )


def test_chance_is_told_by_the_tests_that_depend_on_it():
    run = drawn(2e-4, 3e-4)
    assert run.false_alarm_probability == pytest.approx(5e-4)
    assert [design.level for design in run.designs] == [2e-4, 3e-4]
    assert run.failures == run.results[2:]
    assert false_alarms(run) == (
        "2 verdicts depend on chance; the probability that it changes one of them is at most 0.0005, of 0.001 that a "
        "run may have"
    )
    # The whole budget may be spent.
    assert over_budget(run) == over_budget(drawn(1e-3)) == ""
    assert over_budget(drawn(1e-3, 1e-3, 1e-3)) == (
        "the levels of 3 tests add up to 0.003, more than the 0.001 that a run may have"
    )


def test_a_line_of_a_proof_says_its_kind_in_its_own_suite():
    (result,) = drawn().results
    for suite, evidence, is_line in (
        ("theorems", {"kind": "x"}, True),
        ("other", {"kind": "x"}, False),
        ("theorems", {}, False),
    ):
        assert dataclasses.replace(result, suite=suite, evidence=evidence).is_line is is_line


def test_a_document_has_no_more_results_than_a_run_may_have():
    empty = Run("1", Effort.QUICK, 0, ()).to_json()
    with pytest.raises(ValueError, match=r"^results: must have at most 10000, not 10001$"):
        Run.from_json(empty | {"results": [None] * 10_001})
    with pytest.raises(ValueError, match=r"^results\[0\]: must be an object, not None$"):
        Run.from_json(empty | {"results": [None] * 10_000})


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.CONFIRMED])
def test_only_our_own_statements_can_fail(verdict):
    assert judged(Subject.IMPLEMENTATION, verdict).failed
    assert not judged(Subject.DOCUMENT, verdict).failed


def test_confirmed_statements_do_not_fail():
    assert not judged(Subject.IMPLEMENTATION, Verdict.CONFIRMED).failed


def test_json_has_no_infinities():
    evidence = {"worst": math.inf, "rows": [{"value": math.nan}, (1.5, "text")]}
    run = Run("1", Effort.QUICK, 0, (judged(Subject.DOCUMENT, Verdict.REFUTED, evidence),))
    document = json.loads(json.dumps(run.to_json(), allow_nan=False))
    assert document["results"][0]["evidence"] == {"worst": "inf", "rows": [{"value": "nan"}, [1.5, "text"]]}
    assert document["results"][0]["verdict"] == "refuted"


def test_a_run_reads_back_as_it_was():
    evidence = {"worst": math.inf, "rows": [{"value": -math.inf, "text": "infinite"}, (1.5, None, True)]}
    run = Run("1", Effort.FULL, 7, (judged(Subject.DOCUMENT, Verdict.NEEDS_DATA, evidence),))
    document = run.to_json()
    again = Run.from_json(json.loads(json.dumps(document)))
    assert again.to_json() == document
    assert again.results[0].evidence["rows"][0]["value"] == -math.inf
    assert (again.level, again.results[0].verdict) == (Effort.FULL, Verdict.NEEDS_DATA)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": -1}, "seed: must not be negative, not -1"),
        ({"seed": True}, "seed: must be a whole number, not True"),
        ({"version": None}, "version: must be text, not None"),
        ({"results": {}}, "results: must be a list, not {}"),
        ({"results": [3]}, r"results\[0\]: must be an object, not 3"),
        ({"results": [{"id": "a"}]}, r"results\[0\].suite: is missing"),
        ({"colour": 1}, "colour: there is no such field; there are version, level, seed, results"),
    ],
)
def test_a_document_that_breaks_a_rule_is_refused(change, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        Run.from_json(Run("1", Effort.QUICK, 0, ()).to_json() | change)
