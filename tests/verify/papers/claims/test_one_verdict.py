"""One rule, one verdict: the same printed number or sentence has the same verdict wherever it stands."""

import re
from collections import defaultdict
from itertools import combinations

import pytest

from canaryproof.proofs_check import submission
from canaryproof.verify.papers.check.results import Subject, Verdict
from canaryproof.verify.papers.runs import expected
from canaryproof.verify.papers.suites.catalogue import SUITES
from tests.verify.papers.claims.test_sentences import READ

EXPECTED = {name: verdict for (_, name), verdict in expected.read().items()}
CLAIMS = [check for suite in SUITES.values() for check in suite if check.subject is Subject.DOCUMENT]

# Sentences and numbers that several documents have, or one in two places.
SAME = {
    "6.24 where all canaries are said to be separated": (
        "final.table3.row1.cap",
        "v1.table3.row1.cap",
        "submission.table2.row1.cap",
        "review.epsilon-lo.cap",
    ),
    "6.25, the largest bound from canaries without a miss": (
        "final.table4.row1.cap",
        "final.table4.row2.cap",
        "submission.table3.row1.cap",
    ),
    "a 95%-confidence bound at some threshold": ("final.section5.1.confidence", "submission.section5.lower-bound"),
    "right to leading order": tuple(
        f"{document}.theorem-3.3.{line}"
        for document in ("final", "submission")
        for line in ("norm-variance.1", "product-variance.1", "square-mean.3")
    ),
    "wrong in the leading order": ("final.theorem-3.3.square-variance", "submission.theorem-3.3.square-variance"),
    "natural production-sized problems": ("final.section6.scale", "submission.section6.sizes", "v1.section6.sizes"),
    "an extremely small discrepancy for d > 1000": (
        "final.theorem-3.2.discrepancy",
        "v1.theorem-3.2.discrepancy",
    ),
    "estimates close to the analytical ε": (
        "final.section4.1.moderate",
        "submission.section4.moderate",
        "final.section5.2.1.close",
        "submission.table3.close",
    ),
    "ε̂ of the final model is far lower": ("final.section5.1.final-lower", "v1.table3.final", "submission.table2.final"),
    "a test of normality that does not reject": ("v1.section4.anderson", "final.section-3.anderson-darling"),
    "ε ∼ 1 with a little noise": (
        "final.section5.1.order-of-one",
        "submission.section5.regime",
    ),
    "34.5 at noise 0.2": ("final.section5.4.analytical", "submission.appendixH.epsilon", "review.canife.analytical"),
    "0.1% of the accuracy": ("final.section5.1.accuracy", "submission.section5.accuracy", "review.accuracy.decrease"),
    "easily separable in Figure 1": ("final.figure1.separable", "v1.figure1.separable", "submission.figure1.separable"),
    "printed critical values": (
        "v1.table4.critical-values",
        "submission.table4.critical-values",
        "final.table6.critical-values",
    ),
    "misprints with an evident reading": (
        "canife.appendix-a.densities.3",
        "canife.appendix-a.log-ratio.1",
        "canife.appendix-a.log-ratio.2",
        "final.theorem-3.2.distribution-function",
        "final.theorem-3.3.norm-mean.1",
    ),
    "the cosine's density, where d = 1 is not excluded": (
        "final.theorem-3.1.density",
        "final.theorem-3.1.angle-density.1",
    ),
    "the cosine's density, where the text is about large d": (
        "v1.theorem-3.1.proportional",
        "review.theorem-3.1.rate-of-change",
        "review.theorem-3.1.cap-integral",
        "review.theorem-3.1.volume-element",
    ),
    "settings that follow experiments of CANIFE's": ("final.section5.4.settings", "submission.appendixH.settings"),
    "a sweep of the later versions' estimator": (
        "final.section3.close",
        "submission.section3.close",
        "review.sweep.variance",
    ),
    "EMNIST's results are similar to StackOverflow's": ("final.section5.2.1.similar", "submission.appendixD.similar"),
    "more repetitions do the same on EMNIST": (
        "final.section5.2.1.repetitions",
        "submission.appendixD.repetitions",
        "final.figure4.measured",
        "submission.figure2.measured",
    ),
    "any user, whom canaries may not be like": (
        "final.section4.any-user",
        "submission.section4.any-user",
        "v1.section4.1.any-user",
        "v1.section4.unusual",
    ),
    "the only assumption": ("final.section4.same-distribution", "submission.section4.same-distribution"),
    "a gap between a round's theoretical and empirical ε": (
        "canife.section4.2.gap.sent140",
        "canife.section4.2.gap.celeba",
        "canife.section4.2.gap.shakespeare",
        "canife.figure4.b",
    ),
    "enough design iterations": ("canife.section4.3.few-thousand", "canife.figure5.b"),
    "any data, where few clients are many in one direction": ("final.footnote-2", "review.ratio-of-clients"),
    **{
        name: ids
        for name, ids in READ.items()
        if name
        in (
            "no a priori knowledge",
            "an iterate as a combination",
            "easier memorisation",
            "the largest angle",
            "no closed form",
            "the exact CDF",
            "the log domain",
            "CANIFE composes an equivalent noise",
            "CANIFE inverts and composes",
            "CANIFE's accountant",
            "a subset of clients",
        )
    },
    "an estimate that assumptions make inaccurate": (
        "final.section5.4.canife.shuffled",
        "submission.appendixH.canife.shuffled",
    ),
    "optimal ε of two Gaussians": ("final.section4.1.maximum", "submission.section4.maximum"),
}
# What is said of a number, by the ids of the claims that say it: two verdicts on one number are of two such sentences.
# Who is in none of them has the verdict of every claim that shares a number with it.
SAID_OF_IT = {
    "estimates from all rounds and from the final model, which clipping may exclude": (
        r"final\.table[34]\.row[2-6]\.measured|submission\.table[23]\.row[2-6]"
    ),
    "estimates without noise, of which clipping says nothing": (
        r"final\.table[34]\.row1\.measured|submission\.table[23]\.row1"
    ),
    "measured in a training, which data decide": (
        r"final\.table[56]\.row\d\.measured|submission\.table[46]\.row\d|v1\.table[234]\.row\d"
        r"|canife\.(figure3\.[ab]|section4\.2\.(accuracy\.\w+|health\.measured)|appendixB\.\w+\.accuracy)"
        r"|final\.section5\.4\.(canife|ours)|submission\.appendixH\.(canife|canaries)|review\.canife\.bound"
    ),
    "ε of a noise multiplier, by accounting": (
        r"final\.table[34]\.row\d\.noise|submission\.table3\.row\d\.epsilon|v1\.table2\.row\d\.epsilon"
        r"|(final\.section5\.4|review\.canife)\.analytical|submission\.appendixH\.epsilon"
    ),
    "a bound of ε, by accounting": r"submission\.table2\.row\d\.epsilon",
    "the largest bound that canaries allow": r"(final|submission|v1)\.table[234]\.row\d\.cap|review\.epsilon-lo\.cap",
    "no estimate is below its bound": r"review\.epsilon-lo\.not-falsified",
    "an estimate is between bound and analytical ε": r"review\.canife\.plausible",
    "estimates are high": (
        r"(final|submission|v1)\.table[34]\.high|(final\.section5\.1|submission\.section5|v1\.section5\.2)\.clipping"
    ),
    "estimates are close to the analytical ε": (
        r"final\.section5\.(1\.close|4\.closer)|submission\.(appendixH\.closer|table3\.close)"
    ),
    # The later versions print the first one's simulations for another estimator.
    "simulations of the first version's estimator": r"v1\.(table1\.row\d|section3\.close)",
    "simulations of the later versions' estimator": (
        r"final\.(table2\.row\d|section3\.close)|submission\.(table1\.row\d|section3\.close)"
    ),
    "σ of an ε, calibrated": r"(final\.table2|submission\.table1|v1\.table1)\.row\d\.sigma",
    "a client's share of a round, or the quotient that is printed": r"v1\.section5\.quotient",
    "a client's rate of sampling": r"v1\.section5\.rate",
    "a level, by its definition": r"final\.section-3\.anderson-darling\.level",
    "a test at a level that does not reject": r"final\.section-3\.anderson-darling",
    "critical values": r"(v1|submission)\.table4\.critical-values",
    "three statistics above the value": r"v1\.table4\.three",
    "the probability of three above the value": r"submission\.table4\.probability",
    "what fails where no noise is": r"canife\.section4\.1\.success",
    "a deviation is close to σ, which has an ε": r"canife\.section4\.1\.(deviation|epsilon)",
    "health is a share of the loss": r"canife\.section4\.2\.health",
    "simulations of a sweep over the dimension": r"review\.sweep\.d\w+\.epsilon\d+",
    "a procedure takes no less than its iterations": r"canife\.section4\.3\.times\.\w+",
}


def _said(name):
    found = [said for said, pattern in SAID_OF_IT.items() if re.fullmatch(pattern, name)]
    assert len(found) < 2, name
    return found[0] if found else None


KINDS = {
    "a reading that the text does not state is no confirmation": (
        ("final.section5.2.1.similar", "submission.appendixD.similar"),
        Verdict.QUALIFIED,
    ),
    "a condition that the text itself states, or the technique that it names": (
        (
            "final.section-3.2.cases",
            "submission.appendix-b.cases",
            "review.one-training-run",
            "final.table1.canife",
            "submission.appendixG.gaussian",
        ),
        Verdict.CONFIRMED,
    ),
    "a prior, or a smallest ε, that the text does not state": (
        ("v1.section6.confidence", "v1.section6.probability"),
        Verdict.QUALIFIED,
    ),
    "a bound that keeps its confidence at a threshold fixed beforehand": (
        ("final.section5.1.confidence", "submission.section5.lower-bound", "v1.section5.lower-bound"),
        Verdict.QUALIFIED,
    ),
    "a condition that a footnote states, of a bound that does not keep its confidence without it": (
        ("v1.section5.limit",),
        Verdict.CONFIRMED,
    ),
    "what somebody said a later version will have": (
        tuple(check.id for check in CLAIMS if check.id.startswith("review.promise.")),
        Verdict.NEEDS_DATA,
    ),
    "a quotient of printed and exact value that tends to 1": (SAME["right to leading order"], Verdict.QUALIFIED),
    "a quotient that does not": (SAME["wrong in the leading order"], Verdict.REFUTED),
    "an attack that is hardly ever wrong in some rows only, or by many cosines together": (
        (
            "submission.table3.high",
            "final.figure3.separable",
            *SAME["easily separable in Figure 1"],
        ),
        Verdict.QUALIFIED,
    ),
    "a size that one of several problems has": (SAME["natural production-sized problems"], Verdict.QUALIFIED),
}


@pytest.mark.parametrize(("names", "verdict"), KINDS.values(), ids=KINDS.keys())
def test_one_kind_of_error_has_one_verdict(names, verdict):
    assert {EXPECTED[name] for name in names} == {verdict}


def test_the_submissions_proofs_have_the_final_versions_verdicts():
    judges = {check.judge: check.id for check in CLAIMS if check.id.startswith("final.")}
    for check in submission.LINES:
        assert EXPECTED[check.id] is EXPECTED[judges[check.judge]]


@pytest.mark.parametrize("names", SAME.values(), ids=SAME.keys())
def test_the_same_sentence_has_the_same_verdict(names):
    assert len({EXPECTED[name] for name in names}) == 1, {name: str(EXPECTED[name]) for name in names}


def _numbers(statement):
    """Decimals of three digits or more, which two statements hardly share by chance."""
    return {n for n in re.findall(r"\d+\.\d+", statement) if len(n) > 3}


def test_what_is_said_alike_of_a_number_or_in_the_same_words_has_one_verdict():
    sharing = defaultdict(list)
    for check in CLAIMS:
        # A row of a chain only goes on from the row before.
        for key in {check.statement, *_numbers(check.statement)} - {check.statement if "…" in check.statement else ""}:
            sharing[key].append(check.id)
    for key, names in sharing.items():
        for one, other in combinations(names, 2):
            said = _said(one), _said(other)
            if None in said or said[0] == said[1]:
                assert EXPECTED[one] is EXPECTED[other], (key, one, other)


def test_each_sentence_on_numbers_is_some_claims():
    for pattern in SAID_OF_IT.values():
        assert any(re.fullmatch(pattern, check.id) for check in CLAIMS), pattern


def test_every_claim_has_the_expected_verdict(quick_run):
    assert {check.id: quick_run.results[check.id].verdict for check in CLAIMS} == {
        check.id: EXPECTED[check.id] for check in CLAIMS
    }


def test_what_is_inconclusive_says_what_would_decide(quick_run):
    for check in CLAIMS:
        result = quick_run.results[check.id]
        assert result.verdict is not Verdict.INCONCLUSIVE or "would decide" in result.finding
