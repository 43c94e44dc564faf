import dataclasses
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from canaryproof.kernels import exact_law
from canaryproof.verify.audit import page
from canaryproof.verify.audit.audit import audit
from canaryproof.verify.audit.misuse import MisuseWarning, Withheld
from canaryproof.verify.audit.model_card import model_card
from canaryproof.verify.audit.report import record
from canaryproof.verify.audit.result import AuditRow, EstimateRow, MechanismTest
from canaryproof.verify.audit.shape import GoodnessOfFit
from canaryproof.verify.audit.text import MOST_LINES, WIDTH, answer, details, number, summary
from canaryproof.verify.canaries.scores import Scores
from canaryproof.verify.estimators.noise_multiplier import NoiseMultiplier
from tests.printed import numbers

DIM, DELTA = 10**6, 1e-6
OBSERVED = exact_law.cosines(200, DIM, 1.54, np.random.default_rng(0))


@pytest.fixture(scope="module")
def found():
    return audit(Scores(OBSERVED, dim=DIM), DELTA, claim=3.0)


def bounded(found, low, coverage):
    row = AuditRow("fixed-sequence", "lower bound", low, low, math.inf, coverage, math.inf, "nothing")
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
        "consistent": f"Consistent with the claimed ε = 3; {math.floor(100 * found.noticed)}% of the claimed noise or "
        "less would have been noticed.",
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
    traces = SimpleNamespace(cosines=np.zeros(17), measures="noise", p_value={1.75: 0.031}.get, trace_p_value=0.0)
    measured = NoiseMultiplier(1.4142, 1.2071, 1.8284, 0.1113, 0.54)
    estimate = EstimateRow(
        "composed", "estimate", 2.2361, 1.7321, 2.6458, "heuristic", math.inf, "", 0.2236, lambda: (0.0, math.inf)
    )
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
        bounds=(AuditRow("some", "lower bound", 1.6189, 1.6189, math.inf, "asymptotic", 5.5, "nothing"),),
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
    vars(result)["noticed"] = noticed
    share = f"{int(100.0 * noticed)}% of the claim"
    assert f"; {share}ed noise or less would have been noticed" in answer(result)
    assert f"{share}ed noise or less would have been noticed" in page.markdown(result, record(result))
    assert f"noise at {share} or less" in model_card(result)


def test_each_figure_of_scores_and_of_a_release_is_the_records(found):
    alone = dataclasses.replace(made_up(found), null_law=None)
    for result in (alone, dataclasses.replace(alone, release_norm=1000.0)):
        assert numbers(summary(result).partition("Audited")[2])[:6] == ["200", "1000000", "2e-05", "2", "0.37", "0.64"]


def test_a_posterior_interval_stands_in_the_table_with_both_ends(found):
    row = AuditRow("bayesian", "posterior interval", 1.2399, 1.2399, 5.678, "heuristic", math.inf, "a prior")
    (line,) = (
        line for line in details(dataclasses.replace(found, bounds=(row,))).splitlines() if "posterior interval" in line
    )
    assert numbers(line) == ["1.23", "5.68"]


def test_large_numbers_are_whole():
    assert [number(value) for value in (math.inf, 12_345.6, 1000.0, 999.4, 0.01234)] == [
        "∞",
        "12,346",
        "1,000",
        "999",
        "0.0123",
    ]
