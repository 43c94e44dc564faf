"""One rule, one verdict: the same printed number or sentence has the same verdict wherever it stands."""

import re
from collections import defaultdict

import pytest

from canaryproof.verify.check.results import Subject, Verdict
from canaryproof.verify.claims import CHECKS, simulated_tables
from canaryproof.verify.engine import expected

EXPECTED = {name: verdict for (_, name), verdict in expected.read().items()}
CLAIMS = [check for check in (*CHECKS, *simulated_tables.CHECKS) if check.subject is Subject.DOCUMENT]

# Sentences and numbers that several documents have, or one in two places.
SAME = {
    "6.24 where all canaries are said to be separated": (
        "final.table3.row1.cap",
        "v1.table3.row1.cap",
        "submission.table2.row1.cap",
    ),
    "6.25, the largest bound from canaries without a miss": (
        "final.table4.row1.cap",
        "final.table4.row2.cap",
        "submission.table3.row1.cap",
    ),
    "a 95%-confidence bound": (
        "bounds.printed.andrew",
        "final.section5.1.confidence",
        "v1.section5.lower-bound",
        "submission.section5.lower-bound",
    ),
    "estimates close to the analytical ε": (
        "final.section4.1.moderate",
        "submission.section4.moderate",
        "final.section5.1.close",
        "final.section5.2.1.close",
        "submission.table3.close",
    ),
    "estimates in the ballpark of the analytical ε": ("final.table3.ballpark", "submission.table2.ballpark"),
    "ε̂ of the final model is far lower": ("final.section5.1.final-lower", "v1.table3.final", "submission.table2.final"),
    "a test of normality that does not reject": ("v1.section4.anderson", "final.section-3.anderson-darling"),
    "ε ∼ 1 with a little noise": (
        "final.section5.1.order-of-one",
        "v1.section5.2.regime",
        "submission.section5.regime",
    ),
    "3.89, the largest ε̂ of 100 trials": ("canife.section3.4.cap", "canife.section3.4.insertion"),
    "34.5 at noise 0.2": ("final.section5.4.analytical", "submission.appendixH.epsilon", "review.canife.analytical"),
    "0.1% of the accuracy": ("final.section5.1.decrease", "submission.section5.accuracy", "review.accuracy.decrease"),
    "easily separable in Figure 1": ("final.figure1.separable", "v1.figure1.separable", "submission.figure1.separable"),
    "optimal ε of two Gaussians": ("final.section4.1.maximum", "submission.section4.maximum"),
}
# Claims that share their numbers but not what is said of them, by a part of the id of each.
OTHERWISE = {
    # The first version's estimator gives Table 1; the later versions' does not, and they print the same table.
    ("v1.table1.row", "submission.table1.row"),
    ("v1.table1.row", "final.table2.row"),
    ("v1.section3.close", "final.section3.close"),
    ("v1.section3.close", "submission.section3.close"),
    # No estimate is below its lower bound, whatever the largest bound is.
    ("review.epsilon-lo.not-falsified", "cap"),
    # The tables print a bound; the answers say that none can be larger, which the tables' others refute.
    ("review.epsilon-lo.cap", "row1.cap"),
    # 0.081 is the quotient, cut off; a client's rate of sampling is another quotient.
    ("v1.section5.quotient", "v1.section5.rate"),
    # Three of 15 are no surprise; their probability is another number.
    ("v1.table4.three", "submission.table4.probability"),
}


@pytest.mark.parametrize("names", SAME.values(), ids=SAME.keys())
def test_the_same_sentence_has_the_same_verdict(names):
    assert len({EXPECTED[name] for name in names}) == 1, {name: str(EXPECTED[name]) for name in names}


def _numbers(statement):
    """Decimals of three digits or more, which two statements hardly share by chance."""
    return frozenset(n for n in re.findall(r"\d+\.\d+", statement) if len(n) > 3)


def test_statements_with_the_same_words_or_the_same_numbers_have_the_same_verdict():
    told = [check for check in CLAIMS if EXPECTED[check.id] is not Verdict.NEEDS_DATA]
    by_words, by_numbers = defaultdict(list), defaultdict(list)
    for check in told:
        by_words[check.statement].append(check.id)
        if numbers := _numbers(check.statement):
            by_numbers[numbers].append(check.id)
    for names in (*by_words.values(), *by_numbers.values()):
        for one in names:
            for other in names:
                if any((a in one and b in other) or (b in one and a in other) for a, b in OTHERWISE):
                    continue
                assert EXPECTED[one] is EXPECTED[other], (one, other)


def test_every_claim_has_the_expected_verdict(quick_run):
    assert {check.id: quick_run.results[check.id].verdict for check in CLAIMS} == {
        check.id: EXPECTED[check.id] for check in CLAIMS
    }


def test_what_is_inconclusive_says_what_would_decide(quick_run):
    for check in CLAIMS:
        result = quick_run.results[check.id]
        assert result.verdict is not Verdict.INCONCLUSIVE or "would decide" in result.finding
