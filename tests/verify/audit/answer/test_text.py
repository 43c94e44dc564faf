import dataclasses
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from canaryproof.kernels import exact_law
from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.answer import page, text
from canaryproof.verify.audit.answer.findings import Status
from canaryproof.verify.audit.answer.misuse import MisuseWarning, Withheld
from canaryproof.verify.audit.answer.model_card import model_card
from canaryproof.verify.audit.answer.report import ReportHeading, record
from canaryproof.verify.audit.answer.result import AuditRow
from canaryproof.verify.audit.answer.run_audit import audit, audit_release, finish
from canaryproof.verify.audit.answer.shape import GoodnessOfFit
from canaryproof.verify.audit.answer.text import MOST_LINES, WIDTH, answer, details, summary
from canaryproof.verify.audit.blindspots.fault_map import summary as mapped
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.files.reading import ScoreKind
from tests.printed import numbers
from tests.statuses import ruling

DIM, DELTA = 10**6, 1e-6
HEURISTIC = "heuristic: unproven, so that it fails no claim"
OBSERVED = exact_law.cosines(200, DIM, 1.54, np.random.default_rng(0))


@pytest.fixture(scope="module")
def found():
    return audit(Scores(OBSERVED, dim=DIM), DELTA, claim=3.0, notice=0.2)


def bounded(found, low, coverage):
    row = AuditRow("fixed-sequence", 1, "lower bound", low, low, math.inf, coverage, math.inf, "nothing")
    return finish(dataclasses.replace(found, bounds=(row,)))


@pytest.mark.parametrize(
    ("low", "coverage", "clause", "outcome"),
    [
        (1.7699, "proven", "ε is at least 1.76 (95% confidence)", "PASSED"),
        (1.7699, "asymptotic", "ε is at least 1.76 (about 95% confidence)", "PASSED"),
        (0.0, "proven", "no lower bound on ε above 0", "PASSED"),
        (1.7699, "heuristic", f"ε is at least 1.76 ({HEURISTIC})", "CANNOT SAY: leak"),
        (3.125, "proven", "ε is at least 3.12 (95% confidence)", "NOT PASSED: leak"),
        (3.125, "asymptotic", "ε is at least 3.12 (about 95% confidence)", "NOT PASSED: leak"),
        (3.125, "heuristic", f"ε is at least 3.12 ({HEURISTIC})", "CANNOT SAY: leak"),
    ],
)
def test_the_answer_calls_a_bound_what_it_is(found, low, coverage, clause, outcome):
    result = bounded(found, low, coverage)
    assert result.finding("leak").because.startswith(f"{clause}, claimed 3; estimate ")
    assert ruling(result) == outcome


def test_a_bound_says_in_one_breath_what_it_rests_on():
    gaussian = audit(Scores(OBSERVED, dim=DIM), DELTA, bounds=("normal-scores",))
    assert "(about 95% confidence), if the trade-off curve is Gaussian;" in gaussian.finding("leak").because
    assert "needs independent scores" in " ".join(details(gaussian).split())
    rows = audit(Scores(OBSERVED, dim=DIM), DELTA).bounds
    assert [row.basis for row in rows] == ["asymptotic", "asymptotic, if the trade-off curve is Gaussian", "proven"]


def test_an_estimate_has_as_many_digits_as_its_error_earns(found):
    row = dataclasses.replace(found.estimate, epsilon=3.3884, low=2.7712, high=8.5231, standard_error=0.3182)
    shown = finish(dataclasses.replace(found, estimates=(row,))).finding("leak").because
    assert shown.endswith("; estimate 3.39 (95%: 2.77 to 8.52)")
    row = dataclasses.replace(row, epsilon=986.8, low=982.8, high=1108.6, standard_error=2.0)
    shown = finish(dataclasses.replace(found, estimates=(row,))).finding("leak").because
    assert "; estimate 986.8 (95%: 982.8 to 1108.6);" in shown


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("count", [9, 1, 3])
def test_whatever_is_wrong_there_are_few_lines(found, count):
    warning = MisuseWarning("some", "Something that takes many words is wrong here. " * 3, "Mend it. " * 9, 0.0, False)
    warned = dataclasses.replace(found, warnings=(warning,) * count)
    for case in (warned, dataclasses.replace(warned, withheld=True, estimates=(), bounds=())):
        lines = summary(case).splitlines()
        assert len(lines) <= MOST_LINES
        assert max(map(len, lines)) <= WIDTH
        shown = sum(line.startswith("Note") and "more, in the details" not in line for line in lines)
        left = [line for line in lines if "more, in the details." in line]
        assert left == ([] if shown == count else [f"Note      {count - shown} more, in the details."])
        assert case.details().count("Something") == 3 * count


def test_a_release_that_fails_in_all_ways_is_answered_on_few_lines():
    canaries = Canaries(seed=7, count=300, dim=10_000)
    noise = np.random.default_rng(1).normal(0.0, 0.0154, 10_000)
    found = audit_release(canaries.sum(np.arange(300)) + noise, canaries, 1e-6, noise_multiplier=1.54)
    assert [str(finding.question) for finding in found.findings if finding.status is Status.FAILED] == ["noise", "leak"]
    lines = summary(found).splitlines()
    # What failed is said in full, on one screen all the same.
    assert len(lines) <= 30


@pytest.mark.parametrize(
    ("observed", "options"),
    [
        ([0.001, 0.003], {}),
        (40.0 + np.linspace(-2.0, 2.0, 500), {"claim": 3.0}),
        (np.linspace(-2.0, 2.0, 500), {"confidence": 1.0 - 1e-9, "noise_multiplier": 1e6}),
        (-np.linspace(1.0, 2.0, 500), {"claim": 1e4}),
    ],
)
def test_extremes_are_said_in_few_lines(observed, options):
    scores = Scores(np.asarray(observed) / (1.0 if len(observed) == 2 else 1000.0), dim=DIM)
    for force in (False, True):
        lines = str(audit(scores, DELTA, force=force, **options)).splitlines()
        assert len(lines) <= MOST_LINES
        assert max(map(len, lines)) <= WIDTH


def test_warnings_without_room_are_counted(found):
    for count in range(1, 30):
        made = [MisuseWarning("some", f"Warning number {i}.", "Look.", None, Withheld.NOTHING) for i in range(count)]
        printed = summary(dataclasses.replace(found, warnings=tuple(made)))
        left = re.search(r"(\d+) more, in the details", printed)
        assert printed.count("Warning number") + (int(left[1]) if left else 0) == count
    assert left is not None


@pytest.mark.parametrize("noticed", [0.579, 0.5701, 0.9999])
def test_no_share_of_the_noise_that_would_not_be_noticed_is_said_to_be(found, noticed):
    result = dataclasses.replace(found)
    vars(result)["noticed_share"] = noticed
    result = finish(result)
    vars(result)["noticed_share"] = noticed
    share = f"{int(100.0 * noticed)}% of the claim"
    assert f"If only {int(100.0 * noticed)}% of the noise that such an ε needs had been added" in answer(result)
    # Data are as good as noise to these canaries.
    assert "caught it nine times out of ten, unless others' data stood in for it." in " ".join(answer(result).split())
    shown = page.markdown(result, record(result, ReportHeading("audit.html")))
    assert f"{share}ed noise or less would have been noticed" in shown
    assert f"noise at {share} or less" in model_card(result)


def test_a_posterior_interval_stands_in_the_table_with_both_ends(found):
    row = AuditRow("bayesian", 1, "posterior interval", 1.2399, 1.2399, 5.678, "heuristic", math.inf, "a prior")
    (line,) = (
        line for line in details(dataclasses.replace(found, bounds=(row,))).splitlines() if "posterior interval" in line
    )
    assert numbers(line) == ["1.23", "5.68"]


def test_a_p_value_below_the_smallest_is_said_to_be_below_it():
    assert [text.shown_p_value(value, "1e-30") for value in (0.0123, 1.1e-30, 1e-30, 0.0)] == [
        *("p = 0.012", "p = 1.1e-30", "p < 1e-30", "p < 1e-30"),
    ]


def stub(**changes):
    """An audit of cosines that says nothing but what its sentences ask for."""
    observed, unobserved = changes.pop("observed", np.array([1.0, 2.0])), changes.pop("unobserved", None)
    record, kind = changes.pop("record", None), changes.pop("kind", ScoreKind.COSINE)
    neighbours, ranked = changes.pop("of", "add-or-remove"), changes.pop("ranked", False)
    scores = SimpleNamespace(
        observed=observed,
        unobserved=unobserved,
        record=record,
        kind=kind,
        neighbours=neighbours,
        ranked=ranked,
        inclusion="fixed",
    )
    shown = {
        "scores": scores,
        "request": SimpleNamespace(claim=changes.pop("asked", None)),
        "withheld": False,
        "warnings": (),
        "has_trace": True,
        "decision": None,
        "claim": None,
        "delta": DELTA,
        "confidence": 0.9,
        "level": 0.05,
        "count": 200,
        "null_count": None if unobserved is None else 300,
        "dim": DIM,
        "release_norm": None,
        "neighbours": "add-or-remove",
        "rounds_per_score": 1,
        "has_canaries": kind is ScoreKind.COSINE or record is not None,
        "is_masked": False,
        "is_not_normal": False,
        "can_hide_a_tail": False,
        "is_contradicted": False,
        "has_unequal_noise": False,
        "has_no_common_noise": False,
        "mechanism": None,
        "normality": None,
        "null_law": None,
        "variance_p_value": 0.25,
        "has_equal_variances": True,
        "standardised_mean": 1.0,
        "shape": SimpleNamespace(reason="", p_value=1.0),
        "estimates": (SimpleNamespace(name="adaptive"),),
        "estimate": SimpleNamespace(name="adaptive"),
        "bounds": (),
        "bound": None,
        "noise_multiplier": None,
        "blind_spots": None,
        "noticed_share": 0.5,
    }
    leak = SimpleNamespace(status=Status(changes.pop("leak", "as claimed")))
    shown |= {"decision": SimpleNamespace(), "finding": lambda _: leak}
    return SimpleNamespace(**{**shown, **changes})


EQUAL = np.array([1.0, 2.0, 3.0])
UNTOLD = "The variances are not told apart, so that adaptive is pinned, with the upper end of fitted."
NULL = "A small p-value for the null law is expected where scores are maxima over rounds;"
ANY = "The law of these scores without a leak is not known here:"
STATED = "The claim is taken to be of adding or removing a record;"
CAP = "A cap is the most that a bound can say with so many scores, whatever leaks."
ENOUGH = "So many canaries."
BOUND = SimpleNamespace(name="fixed-sequence", coverage="asymptotic")
OWN = SimpleNamespace(name="participations", coverage="asymptotic")
REMARKS = [
    ({}, [UNTOLD]),
    ({"has_equal_variances": False}, ["The variances differ, so that adaptive is fitted."]),
    ({"estimates": ()}, []),
    ({"estimates": (), "has_equal_variances": False}, []),
    (
        {"standardised_mean": 0.0},
        [UNTOLD, "The observed mean is not positive, so that pinned is 0: it sees no trace."],
    ),
    (
        {"standardised_mean": 0.0, "unobserved": EQUAL},
        [UNTOLD, "The observed mean is not above the null's, so that pinned is 0: it sees no trace."],
    ),
    (
        {"shape": SimpleNamespace(reason="They are odd.", p_value=1.0), "estimates": (), "is_not_normal": True},
        ["They are odd. The estimators take scores for normal, and their intervals miss the ε of other scores"],
    ),
    (
        {"shape": SimpleNamespace(reason="They are odd.")},
        [UNTOLD, "They are odd. The estimates and their intervals are of ε of two Gaussians"],
    ),
    ({"shape": SimpleNamespace(reason="They are odd."), "estimates": ()}, []),
    ({"can_hide_a_tail": True}, [UNTOLD, "So few scores may hide a heavy tail; if there is one, the intervals miss ε"]),
    ({"can_hide_a_tail": True, "estimates": ()}, []),
    ({"asked": 3.0}, [UNTOLD, STATED]),
    ({"asked": 3.0, "neighbours": "replace"}, [UNTOLD]),
    ({"null_law": GoodnessOfFit(0.1, 0.2)}, [UNTOLD, NULL]),
    ({"kind": ScoreKind.ANY}, [UNTOLD, ANY]),
    (
        {"bounds": (BOUND, SimpleNamespace(coverage="heuristic"), SimpleNamespace(coverage="proven"), BOUND)},
        [UNTOLD, CAP, "A bound of asymptotic", "No proof covers a heuristic bound", "A bound of proven coverage"],
    ),
    *(
        (
            {"leak": status, "claim": 3.0, "bound": BOUND, "noticed_share": 0.4} | known,
            [UNTOLD, *([ENOUGH] if said else [])],
        )
        for status, known, said in (
            ("cannot say", {}, True),
            ("cannot say", {"bound": None}, True),
            ("as claimed", {}, False),
            ("cannot say", {"noticed_share": None}, True),
            ("cannot say", {"noticed_share": 0.5}, False),
            ("cannot say", {"bound": OWN}, False),
            ("cannot say", {"is_masked": True}, False),
            ("cannot say", {"delta": 0.0}, False),
        )
    ),
]


@pytest.mark.parametrize(("changes", "said"), REMARKS)
def test_remarks_are_made_where_they_belong_and_nowhere_else(changes, said, monkeypatch):
    monkeypatch.setattr(text, "_enough", lambda *_: ENOUGH)
    found = list(text.remarks(stub(**changes)))
    assert len(found) == len(said)
    assert all(sentence.startswith(begin) for sentence, begin in zip(found, said, strict=True))


def test_an_unproven_bound_is_heuristic_for_its_own_reason():
    """Of losses the members were fixed, of cosines the dimensions are few; other bounds have no proof anywhere."""
    rng, coins = np.random.default_rng(0), "If a fair coin decides"
    losses = [Scores(rng.normal(0.7, 1.0, 50), rng.normal(size=50), kind="any", inclusion=i) for i in ("fixed", "coin")]
    few, many = (Scores(*rng.normal(size=(2, 50)) / math.sqrt(dim), dim=dim) for dim in (20, 10**6))
    for scores, said in ((losses[0], coins), (losses[1], ""), (few, "In so few dimensions"), (many, "")):
        (found,) = (line for line in text.remarks(audit(scores, DELTA, bounds=("canife",))) if "heuristic" in line)
        assert found.startswith("No proof covers a heuristic bound: it may be above ε in any share of audits.")
        assert [part for part in (coins, "In so few dimensions") if part in found] == [said][: bool(said)]


def test_scores_too_few_for_a_shape_are_not_said_to_look_unusual():
    look = "Up to 1% of normal scores look otherwise"
    rng = np.random.default_rng(0)
    for observed, said in ((rng.normal(size=5), False), (rng.laplace(size=500) ** 3, True)):
        scores = Scores(observed, rng.normal(size=500), kind="any", inclusion="coin")
        assert any(look in line for line in text.remarks(audit(scores, DELTA))) is said


HIDDEN = "The lists above allow for what hides the claimed noise:"
DILUTED = "How much data dilute the cosines,"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"is_masked": True, "noise_multiplier": 1.0}, HIDDEN),
        ({"noise_multiplier": 1.0}, DILUTED),
        ({"noise_multiplier": 1.0, "release_norm": 5.0}, None),
        ({"release_norm": 5.0}, None),
    ],
)
def test_the_lists_of_faults_say_what_dilutes_them(changes, said):
    spots = SimpleNamespace(epsilon=3.0, noise_multiplier=1.54, given=True, noticed=(), unnoticed=())
    last = list(text._blind_spots(stub(blind_spots=spots, **changes), str))[-1]
    assert last == mapped() if said is None else last.startswith(said)
