import dataclasses
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from canaryproof.kernels import exact_law
from canaryproof.verify.audit.answer import page, text
from canaryproof.verify.audit.answer.misuse import MisuseWarning, Withheld
from canaryproof.verify.audit.answer.model_card import model_card
from canaryproof.verify.audit.answer.report import record
from canaryproof.verify.audit.answer.result import AuditRow, ClaimVerdict, EstimateRow, MechanismTest
from canaryproof.verify.audit.answer.run_audit import audit
from canaryproof.verify.audit.answer.shape import GoodnessOfFit
from canaryproof.verify.audit.answer.text import MOST_LINES, WIDTH, answer, details, summary
from canaryproof.verify.audit.blindspots.fault_map import summary as mapped
from canaryproof.verify.audit.canaries.scores import Score, Scores
from canaryproof.verify.audit.estimators.noise_multiplier import NoiseMultiplier
from canaryproof.verify.audit.files.reading import ScoreKind
from tests.printed import numbers

DIM, DELTA = 10**6, 1e-6
OBSERVED = exact_law.cosines(200, DIM, 1.54, np.random.default_rng(0))


@pytest.fixture(scope="module")
def found():
    return audit(Scores(OBSERVED, dim=DIM), DELTA, claim=3.0)


def bounded(found, low, coverage):
    row = AuditRow("fixed-sequence", 1, "lower bound", low, low, math.inf, coverage, math.inf, "nothing")
    return dataclasses.replace(found, bounds=(row,))


@pytest.mark.parametrize(
    ("low", "coverage", "clause"),
    [
        (
            1.7699,
            "proven",
            "; at least 1.7 with 95% confidence. {consistent}",
        ),
        (
            1.7699,
            "asymptotic",
            "; at least 1.7 with about 95% confidence. {consistent}",
        ),
        (
            0.0,
            "proven",
            "; no lower bound above 0. {consistent}",
        ),
        (
            1.7699,
            "heuristic",
            "; there is no lower bound of known coverage. {capped}",
        ),
        (3.01, "proven", "; at least 3.0 with 95% confidence. The claimed ε = 3 is exceeded by a valid lower bound."),
        (
            3.01,
            "asymptotic",
            "; at least 3.0 with about 95% confidence. The claimed ε = 3 is exceeded by an asymptotic lower bound.",
        ),
    ],
)
def test_the_answer_calls_a_bound_what_it_is(found, low, coverage, clause):
    sentences = {
        "consistent": f"Consistent with the claimed ε = 3; {math.floor(100 * found.noticed_share)}% of the claimed "
        "noise or less would have been noticed.",
        "capped": "The claimed ε = 3 is not tested: so few scores would have noticed no share of the claimed noise.",
    }
    assert answer(bounded(found, low, coverage)).endswith(clause.format(**sentences))


def test_a_bound_says_in_one_breath_what_it_rests_on():
    gaussian = audit(Scores(OBSERVED, dim=DIM), DELTA, bounds=("normal-scores",))
    assert answer(gaussian).endswith("with about 95% confidence, if the trade-off curve is Gaussian.")
    lines = " ".join(summary(gaussian).split())
    assert "at 95%, asymptotic, if the trade-off curve is Gaussian; needs independent scores" in lines
    rows = audit(Scores(OBSERVED, dim=DIM), DELTA).bounds
    assert [row.basis for row in rows] == ["asymptotic", "asymptotic, if the trade-off curve is Gaussian"]


def test_the_answer_has_as_many_digits_as_its_error_earns(found):
    row = dataclasses.replace(found.estimate, epsilon=3.3884, low=2.7712, high=8.5231, standard_error=0.3182)
    assert answer(dataclasses.replace(found, estimates=(row,), claim=None)).startswith(
        "ε̂ = 3.39 (95%: 2.77 to 8.52); at"
    )
    row = dataclasses.replace(row, epsilon=986.8, low=982.8, high=1108.6, standard_error=2.0)
    assert answer(dataclasses.replace(found, estimates=(row,))).startswith("ε̂ = 986.8 (95%: 982.8 to 1108.6); at")


def test_an_undecided_claim_says_why(found):
    (bound, *_) = found.bounds
    above = dataclasses.replace(found, claim=0.001, bounds=(dataclasses.replace(bound, low=0.0),))
    assert answer(above).endswith("The claimed ε = 0.001 is not decided: the estimate is above it, no lower bound is.")


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("count", [9, 1, 3])
def test_whatever_is_wrong_there_are_few_lines(found, count):
    warning = MisuseWarning("some", "Something that takes many words is wrong here. " * 3, "Mend it. " * 9, 0.0, False)
    warned = dataclasses.replace(found, warnings=(warning,) * count)
    for case in (warned, dataclasses.replace(warned, withheld=True, estimates=(), bounds=())):
        lines = summary(case).splitlines()
        assert len(lines) <= MOST_LINES
        assert max(map(len, lines)) <= WIDTH
        shown = sum(line.startswith("Warning") and "more, in the details" not in line for line in lines)
        left = [line for line in lines if "more, in the details." in line]
        assert left == ([] if shown == count else [f"Warning   {count - shown} more, in the details."])
        assert case.details().count("Something") == 3 * count


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


def made_up(found):
    """Replace all numbers of an audit; no two are equal."""
    traces = SimpleNamespace(cosines=np.zeros(17), noise_source="noise", p_value={1.75: 0.031}.get, trace_p_value=0.0)
    measured = NoiseMultiplier(1.4142, 1.2071, 1.8284, 0.1113, 0.54)
    estimate = EstimateRow("composed", 1, "estimate", 2.2361, 1.7321, 2.6458, "heuristic", math.inf, "", 0.2236, None)
    warning = MisuseWarning("some", "Something is wrong.", "Mend it.", None, Withheld.NOTHING)
    return dataclasses.replace(
        found,
        delta=2e-5,
        confidence=0.82,
        claim=4.3216,
        mechanism=MechanismTest(traces, measured, 1.75),
        variance_p_value=0.64,
        normality=GoodnessOfFit(0.33, 0.37),
        null_law=GoodnessOfFit(0.044, 0.28),
        warnings=(warning,) * 2,
        estimates=(estimate,),
        bounds=(AuditRow("some", 1, "lower bound", 1.6189, 1.6189, math.inf, "asymptotic", 5.5, "nothing"),),
    )


NOISE, NOTED = ["1.41", "82", "1.21", "1.83", "1.75"], ["1.41", "0.11", "17", "0.031"]
# Bound and test of the noise have half each of what the confidence leaves.
ESTIMATED, BOUNDED = ["2.24", "0.22", "82", "1.73", "2.65"], ["1.61", "91"]


def test_each_figure_of_the_summary_is_the_records():
    rng = np.random.default_rng(1)
    beside = audit(Scores(rng.normal(0.7, 1.0, 1203) / 1e3, rng.normal(size=1404) / 1e3, DIM), DELTA)
    assert numbers(summary(made_up(beside))) == [
        *(*NOISE, "2.24", "82", "1.73", "2.65", "1.6", "91", "4.32"),  # the answer
        *("1203", "1404", "1000000", "2e-05"),  # what was audited
        *("2", "0.37", "0.28", "0.64"),  # what was checked
        *(*NOTED, *ESTIMATED, *BOUNDED),
    ]


@pytest.mark.parametrize("noticed", [0.579, 0.5701, 0.9999])
def test_no_share_of_the_noise_that_would_not_be_noticed_is_said_to_be(found, noticed):
    result = dataclasses.replace(found)
    vars(result)["noticed_share"] = noticed
    share = f"{int(100.0 * noticed)}% of the claim"
    assert f"; {share}ed noise or less would have been noticed" in answer(result)
    assert f"{share}ed noise or less would have been noticed" in page.markdown(result, record(result))
    assert f"noise at {share} or less" in model_card(result)


def test_each_figure_of_scores_and_of_a_release_is_the_records(found):
    alone = dataclasses.replace(made_up(found), null_law=None)
    for result in (alone, dataclasses.replace(alone, release_norm=1000.0)):
        assert numbers(summary(result).partition("Audited")[2])[:6] == ["200", "1000000", "2e-05", "2", "0.37", "0.64"]


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
        observed=observed, unobserved=unobserved, record=record, kind=kind, neighbours=neighbours, ranked=ranked
    )
    shown = {
        "scores": scores,
        "request": SimpleNamespace(claim=changes.pop("asked", None)),
        "withheld": False,
        "warnings": (),
        "has_trace": True,
        "verdict": None,
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
        "masking_variance": 0.0,
        "mechanism": None,
        "normality": None,
        "null_law": None,
        "variance_p_value": 0.25,
        "has_equal_variances": True,
        "standardised_mean": 1.0,
        "shape": SimpleNamespace(reason=""),
        "estimates": (SimpleNamespace(name="adaptive"),),
        "estimate": SimpleNamespace(name="adaptive"),
        "bounds": (),
        "bound": None,
        "noise_multiplier": None,
        "blind_spots": None,
        "noticed_share": 0.5,
    }
    return SimpleNamespace(**{**shown, **changes})


MORE = "--details shows all estimates, bounds and tests; --plot FILE.svg draws them."
EQUAL = np.array([1.0, 2.0, 3.0])
NEAR = "Nothing of the canaries is seen: ε is near 0, or data hide them, or"
ABSENT = "they are not in this release (check seed, order of coordinates and file)"
NEXT = [
    ({"withheld": True}, "Fix the cause and audit again; --force computes the estimates anyway."),
    ({}, f"What is claimed? --claim EPSILON compares it. {MORE}"),
    ({"has_trace": False}, f"{NEAR} {ABSENT}. An audit of the released vector decides it. {MORE}"),
    ({"has_trace": False, "release_norm": 1.0}, f"{NEAR} {ABSENT}. {MORE}"),
    ({"has_trace": False, "kind": ScoreKind.ANY}, f"{NEAR} none took part. {MORE}"),
    (
        {"has_trace": False, "kind": ScoreKind.ANY, "observed": EQUAL, "unobserved": EQUAL},
        f"{NEAR} none took part, or each group was standardised alone, as their means are equal to nine digits. {MORE}",
    ),
    *(
        ({"verdict": verdict}, f"Look for less noise, or less clipping, than was claimed. {MORE}")
        for verdict in (ClaimVerdict.EXCEEDED, ClaimVerdict.REFUTED)
    ),
    (
        {"verdict": ClaimVerdict.AT_ITS_CAP, "masking_variance": 0.5},
        f"Take others' data out of what is audited, or audit each round. {MORE}",
    ),
    *(
        (
            {"verdict": verdict},
            "Take more canaries: --details says how many notice half of the claimed noise, and "
            f"{MORE.removeprefix('--details ')}",
        )
        for verdict in (ClaimVerdict.AT_ITS_CAP, ClaimVerdict.NOT_DECIDED)
    ),
    *(
        (
            {"verdict": ClaimVerdict.CONSISTENT, "has_blind_spots": listed},
            MORE.replace(";", " and the faults that this audit misses;" if listed else ";"),
        )
        for listed in (True, False)
    ),
]


@pytest.mark.parametrize(("changes", "said"), NEXT)
def test_what_to_do_next_is_said_of_what_was_found(changes, said):
    assert text._next(stub(**changes), text._SHELL) == said


UNTOLD = "The variances are not told apart, so that adaptive is pinned, with the upper end of fitted."
NULL = "A small p-value for the null law is expected where scores are maxima over rounds;"
ANY = "Only cosines have a known null:"
STATED = "The claim is taken to be of adding or removing a record;"
CAP = "A cap is a bound's value at perfect separation of as many scores:"
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
        [UNTOLD, "The observed mean is not positive, so that pinned is 0: it sees no trace of the canaries."],
    ),
    (
        {"standardised_mean": 0.0, "unobserved": EQUAL},
        [UNTOLD, "The observed mean is not above the null's, so that pinned is 0: it sees no trace of the canaries."],
    ),
    (
        {"shape": SimpleNamespace(reason="They are odd.")},
        [UNTOLD, "They are odd. The estimates and their intervals are of ε of two Gaussians"],
    ),
    ({"shape": SimpleNamespace(reason="They are odd."), "estimates": ()}, []),
    ({"asked": 3.0}, [UNTOLD, STATED]),
    ({"asked": 3.0, "neighbours": "replace"}, [UNTOLD]),
    ({"null_law": GoodnessOfFit(0.1, 0.2)}, [UNTOLD, NULL]),
    ({"kind": ScoreKind.ANY}, [UNTOLD, ANY]),
    (
        {"bounds": (BOUND, SimpleNamespace(coverage="heuristic"), SimpleNamespace(coverage="proven"), BOUND)},
        [UNTOLD, CAP, "A bound of asymptotic", "No proof covers a heuristic bound", "A bound of proven coverage"],
    ),
    *(
        ({"verdict": verdict, "claim": 3.0, "bound": BOUND} | known, [UNTOLD, *([ENOUGH] if said else [])])
        for verdict, known, said in (
            (ClaimVerdict.AT_ITS_CAP, {}, True),
            (ClaimVerdict.NOT_DECIDED, {}, True),
            (ClaimVerdict.NOT_DECIDED, {"bound": None}, True),
            (ClaimVerdict.CONSISTENT, {}, False),
            (ClaimVerdict.AT_ITS_CAP, {"bound": OWN}, False),
            (ClaimVerdict.AT_ITS_CAP, {"masking_variance": 0.5}, False),
            (ClaimVerdict.AT_ITS_CAP, {"delta": 0.0}, False),
        )
    ),
]


@pytest.mark.parametrize(("changes", "said"), REMARKS)
def test_remarks_are_made_where_they_belong_and_nowhere_else(changes, said, monkeypatch):
    monkeypatch.setattr(text, "_enough", lambda *_: ENOUGH)
    found = list(text.remarks(stub(**changes)))
    assert len(found) == len(said)
    assert all(sentence.startswith(begin) for sentence, begin in zip(found, said, strict=True))


HIDDEN = "The lists above allow for what hides the claimed noise:"
DILUTED = "How much data dilute the cosines,"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"masking_variance": 0.5, "noise_multiplier": 1.0}, HIDDEN),
        ({"noise_multiplier": 1.0}, DILUTED),
        ({"noise_multiplier": 1.0, "release_norm": 5.0}, None),
        ({"release_norm": 5.0}, None),
    ],
)
def test_the_lists_of_faults_say_what_dilutes_them(changes, said):
    spots = SimpleNamespace(epsilon=3.0, noise_multiplier=1.54, given=True, noticed=(), unnoticed=())
    last = list(text._blind_spots(stub(blind_spots=spots, **changes), str))[-1]
    assert last == mapped() if said is None else last.startswith(said)


AUDITED = [
    ({}, "200 observed cosines, d = 1,000,000, at δ = 1e-06"),
    ({"dim": None, "unobserved": EQUAL}, "200 observed against 300 unobserved cosines, at δ = 1e-06"),
    (
        {"dim": None, "unobserved": EQUAL, "kind": ScoreKind.ANY, "ranked": True},
        "200 observed against 300 unobserved scores, by their ranks, at δ = 1e-06",
    ),
    ({"release_norm": 5.0}, "a released vector through its 200 canaries, d = 1,000,000, at δ = 1e-06"),
    ({"asked": 3}, "200 observed cosines, d = 1,000,000, at δ = 1e-06, neighbours: add or remove"),
    ({"neighbours": "replace"}, "200 observed cosines, d = 1,000,000, at δ = 1e-06, neighbours: replace"),
]


@pytest.mark.parametrize(("changes", "said"), AUDITED)
def test_what_was_audited_is_said_as_it_was_given(changes, said):
    assert text._audit_text(stub(**changes)) == said


FEW = "so few scores would have noticed no share of the claimed noise"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, FEW),
        ({"bound": SimpleNamespace(cap=2.999)}, "a bound from so many scores ends at 2.99"),
        ({"bound": SimpleNamespace(cap=3.0)}, "a bound from so many scores ends at 3.00"),
        ({"bound": SimpleNamespace(cap=3.01)}, FEW),
        (
            {"bound": SimpleNamespace(cap=2.0), "masking_variance": 0.5},
            "others' data, or more noise than claimed, would have hidden any lack of noise",
        ),
    ],
)
def test_a_claim_that_is_out_of_reach_has_its_reason(changes, said):
    assert text._out_of_reach(stub(**changes), 3.0) == said


KNOWS = "ε̂ is an estimate for an attacker who knows a random canary and sees"
NEITHER = "It is neither an upper nor a lower bound, and a low value excludes no other attack."
REPLACED = "It is of adding or removing a record, while the claim is of replacing one."
COMPOSED = SimpleNamespace(name="composed")


def recorded(score, residual):
    return SimpleNamespace(score=score, traces=None if residual is None else SimpleNamespace(residual=residual))


MEANINGS = [
    ({"withheld": True}, "The scores are not what they are said to be, so that an estimate would mean nothing."),
    (
        {"estimate": None},
        "No number here has a known coverage, so that none says what an attacker learns, or does not learn.",
    ),
    (
        {"estimate": None, "bound": BOUND},
        "The bound is for an attacker who knows a random canary and sees these cosines alone. It holds under every "
        "rising transform of the scores. A low value excludes no other attack.",
    ),
    ({}, f"{KNOWS} these cosines alone. {NEITHER}"),
    ({"release_norm": 5.0}, f"{KNOWS} this release. {NEITHER}"),
    ({"neighbours": "replace"}, f"{KNOWS} these cosines alone. {REPLACED} {NEITHER}"),
    ({"neighbours": "replace", "of": "replace"}, f"{KNOWS} these cosines alone. {NEITHER}"),
    ({"neighbours": "replace", "estimate": COMPOSED}, f"{KNOWS} these cosines alone. {NEITHER}"),
    *(
        ({"record": recorded(score, residual)}, f"{KNOWS} all releases, and knows {known}. {NEITHER}")
        for score, residual, known in (
            (Score.LARGEST, None, "nothing of its rounds"),
            (Score.LIKELIHOOD, False, "how its rounds were drawn"),
            (Score.KNOWN_ROUNDS, True, "its rounds, and all others' data"),
        )
    ),
]


@pytest.mark.parametrize(("changes", "said"), MEANINGS)
def test_numbers_are_for_the_attacker_who_has_them(changes, said):
    assert text.meaning(stub(**changes)) == said
