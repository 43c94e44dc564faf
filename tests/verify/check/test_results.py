import json
import math

import pytest

from canaryproof.verify.check.results import Check, Context, Level, Outcome, Run, Subject, Verdict, perform


def judged(subject, verdict, evidence=None):
    check = Check("some.check", subject, "somewhere", "something", lambda _: Outcome(verdict, "found", evidence or {}))
    return perform("suite", check, Context(Level.QUICK, 0))


def draws(context, purpose):
    return context.key(purpose).generate_state(4).tolist()


def test_a_key_depends_on_seed_and_purpose_only():
    assert draws(Context(Level.QUICK, 1), "a") == draws(Context(Level.FULL, 1), "a")
    assert draws(Context(Level.QUICK, 1), "a") != draws(Context(Level.QUICK, 2), "a")
    assert draws(Context(Level.QUICK, 1), "a") != draws(Context(Level.QUICK, 1), "b")


def test_levels_pick_sample_sizes():
    assert Context(Level.QUICK, 0).pick(3, 5) == 3
    assert Context(Level.FULL, 0).pick(3, 5) == 5


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.CONFIRMED])
def test_only_our_own_statements_can_fail(verdict):
    assert judged(Subject.IMPLEMENTATION, verdict).failed
    assert not judged(Subject.DOCUMENT, verdict).failed


def test_confirmed_statements_do_not_fail():
    assert not judged(Subject.IMPLEMENTATION, Verdict.CONFIRMED).failed


def test_json_has_no_infinities():
    evidence = {"worst": math.inf, "rows": [{"value": math.nan}, (1.5, "text")]}
    run = Run("1", Level.QUICK, 0, (judged(Subject.DOCUMENT, Verdict.REFUTED, evidence),))
    document = json.loads(json.dumps(run.to_json(), allow_nan=False))
    assert document["results"][0]["evidence"] == {"worst": "inf", "rows": [{"value": "nan"}, [1.5, "text"]]}
    assert document["results"][0]["verdict"] == "refuted"


def test_a_run_reads_back_as_it_was():
    evidence = {"worst": math.inf, "rows": [{"value": -math.inf, "text": "infinite"}, (1.5, None, True)]}
    run = Run("1", Level.FULL, 7, (judged(Subject.DOCUMENT, Verdict.NEEDS_DATA, evidence),))
    document = run.to_json()
    again = Run.from_json(json.loads(json.dumps(document)))
    assert again.to_json() == document
    assert again.results[0].evidence["rows"][0]["value"] == -math.inf
    assert (again.level, again.results[0].verdict) == (Level.FULL, Verdict.NEEDS_DATA)


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
        Run.from_json(Run("1", Level.QUICK, 0, ()).to_json() | change)
