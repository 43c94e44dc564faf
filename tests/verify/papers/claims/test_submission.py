import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import pytest
from scipy import optimize, stats

from canaryproof.verify.papers.check.results import Context, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.claims import submission, submission_experiments
from canaryproof.verify.papers.claims.transcripts import Submission

NAMES_OF_CHANCE = ("submission.table1.row3",)
# Table 3's rows with noise, and the same with the first ε raised by 1.
PRINTED = tuple((row.noise, row.analytical) for row in Submission.TABLE_3[1:])
RAISED = (("0.16", "34.8"), *PRINTED[1:])


def test_ids_are_unique_and_all_are_statements_of_the_document() -> None:
    ids = [check.id for check in submission.CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(name.startswith("submission.") for name in ids)
    assert {check.subject for check in submission.CHECKS} == {Subject.DOCUMENT}


def test_another_seed_changes_no_verdict(quick_run):
    for name in NAMES_OF_CHANCE:
        check = next(check for check in submission.CHECKS if check.id == name)
        assert check.judge(Context(Effort.QUICK, 7)).verdict is quick_run.results[name].verdict


@pytest.mark.parametrize(
    ("judge", "verdict"),
    [
        (submission.judge_bounded, Verdict.CONFIRMED),
        (partial(submission.judge_bounded, [replace(Submission.TABLE_2[1], analytical="299")]), Verdict.REFUTED),
        (partial(submission_experiments.judge_users, "341k"), Verdict.CONFIRMED),
        (partial(submission_experiments.judge_users, others="35k"), Verdict.REFUTED),
        (partial(submission_experiments.judge_epsilon, "0.0986", "100"), Verdict.CONFIRMED),
        # One round has 99.23, which no smaller number bounds.
        (partial(submission_experiments.judge_epsilon, "0.0986", "99.2"), Verdict.REFUTED),
        (partial(submission_experiments.judge_delta, {"m = 341k": 341_000}), Verdict.CONFIRMED),
        (partial(submission_experiments.judge_delta, {"m = 34k": 34_000}), Verdict.REFUTED),
        (partial(submission_experiments.judge_emnist_epsilon, "0.16", "41.6"), Verdict.QUALIFIED),
        (partial(submission_experiments.judge_emnist_epsilon, "0.16", "34.8"), Verdict.REFUTED),
        (partial(submission_experiments.judge_emnist_delta, RAISED), Verdict.REFUTED),
        # At δ = 3383^(−1.1) one round of noise 0.16 and 0.315 has these ε.
        (
            partial(submission_experiments.judge_emnist_delta, (("0.16", "41.6"), ("0.315", "16.0"))),
            Verdict.REFUTED,
        ),
        (partial(submission_experiments.judge_epochs, (("0.16", "150"), ("0.315", "60"))), Verdict.CONFIRMED),
        (partial(submission.judge_three_of_fifteen, "0.40"), Verdict.CONFIRMED),
    ],
)
def test_another_number_changes_the_verdict(judge: partial[Outcome], verdict: Verdict) -> None:
    assert judge().verdict is verdict


def test_three_of_fifteen_by_scipy_and_by_counting() -> None:
    level = Fraction(3, 20)
    assert float(submission.exceedance(15, 3, level)) == pytest.approx(stats.binom.sf(2, 15, 0.15), rel=1e-12)
    assert submission.exceedance(15, 0, level) == 1
    found = submission.judge_three_of_fifteen("0.40").evidence
    by_size = submission.exceedance(15, 3, Fraction(found["size"]))
    assert (found["three"], found["at_size"]) == pytest.approx(
        (float(submission.exceedance(15, 3, level)), float(by_size)), rel=1e-12
    )
    # The printed probability is that of two or more; the table has three above the printed critical value.
    assert float(submission.exceedance(15, 2, level)) == pytest.approx(0.6814, abs=5e-5)
    assert sum(float(value) > 0.574 for row in Submission.TABLE_4.values() for value in row) == 3


def test_one_delta_fits_all_rows_of_table_3() -> None:
    low, high = submission_experiments.common_delta(PRINTED)
    middle = 0.5 * (low + high)
    assert 0.0076 < low < high < 0.0078
    # By the mechanism's own formula, and not by certified enclosures.
    for sigma, epsilon in ((float(a), float(b)) for a, b in PRINTED):
        shift, scale = epsilon * sigma, 0.5 / sigma
        delta = stats.norm.sf(shift - scale) - math.exp(epsilon) * stats.norm.sf(shift + scale)
        assert delta == pytest.approx(middle, rel=0.05)
    low, high = submission_experiments.common_delta(RAISED)
    assert low > high


def _epsilon(sigma: float, delta: float, rounds: int = 1) -> float:
    """Return the ε of Gaussian releases by the mechanism's own formula: so many are one with so much less noise."""
    scale = math.sqrt(rounds) / sigma

    def excess(epsilon: float) -> float:
        first, second = (sign * 0.5 * scale - epsilon / scale for sign in (1.0, -1.0))
        return float(stats.norm.cdf(first) - math.exp(epsilon) * stats.norm.cdf(second)) - delta

    return float(optimize.brentq(excess, 1e-3, 300.0))


def test_analytical_numbers_of_emnist_by_the_mechanisms_formula() -> None:
    five = _epsilon(0.16, submission_experiments.TABLE_3_DELTA, 5)
    close = submission_experiments.judge_close()
    # The first row with noise has 17.9 for the printed 33.8.
    shares = {"printed": 17.9 / 33.8, "epochs": 17.9 / five}
    assert close.evidence["ratios"] == pytest.approx(shares, rel=1e-9)
    assert f"{shares['epochs']:.2f} of that of 5 ({five:.1f})" in close.finding
    five = _epsilon(0.16, 3383**-1.1, 5)
    row = submission_experiments.judge_emnist_epsilon("0.16", "33.8")
    assert row.finding.endswith(f"; 5 rounds, one an epoch, have {five:.4g}")
    found = submission_experiments.judge_epochs().evidence
    composed = [_epsilon(float(sigma), found["delta"], 5) for sigma, _ in PRINTED]
    assert found["composed"] == pytest.approx(composed, rel=1e-9)
    # The least noise that prints like this has the most ε.
    bounded = [_epsilon(sigma, 341_000**-1.1) for sigma in (0.04955, 0.09855, 0.23165)]
    assert submission.judge_bounded().evidence["exact"] == pytest.approx(bounded, rel=1e-9)
