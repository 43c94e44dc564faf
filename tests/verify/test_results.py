import json
import math

import pytest

from canaryproof.verify.results import Check, Context, Level, Outcome, Run, Subject, Verdict, perform


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
