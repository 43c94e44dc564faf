import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.claims import (
    submission,
    submission_appendices,
    submission_emnist,
    submission_stackoverflow,
    submission_versions,
)
from canaryproof.verify.claims.submission_printed import TABLE_4
from canaryproof.verify.results import Context, Level, Outcome, Subject, Verdict

QUICK = Context(Level.QUICK, 0)
NOT_CONFIRMED = {
    "submission.section4.maximum": Verdict.REFUTED,
    "submission.section5.users": Verdict.QUALIFIED,
    "submission.section5.rounds": Verdict.QUALIFIED,
    "submission.section5.accuracy": Verdict.QUALIFIED,
    **{f"submission.table2.row{n}.epsilon": Verdict.QUALIFIED for n in (2, 3, 4)},
    **{f"submission.table3.row{n}.epsilon": Verdict.REFUTED for n in (2, 3, 4, 5, 6)},
    **{
        f"submission.table{table}.row{n}": Verdict.NEEDS_DATA
        for table, rows in ((2, 4), (3, 6), (4, 3), (6, 4))
        for n in range(1, rows + 1)
    },
    "submission.table2.ballpark": Verdict.QUALIFIED,
    "submission.table2.noise-alone": Verdict.QUALIFIED,
    "submission.table2.v1.all": Verdict.REFUTED,
    "submission.table3.close": Verdict.REFUTED,
    "submission.table4.probability": Verdict.REFUTED,
    "submission.table4.figure1": Verdict.REFUTED,
    "submission.appendixD.data": Verdict.REFUTED,
    "submission.appendixD.parameters": Verdict.QUALIFIED,
    "submission.appendixE.plots": Verdict.REFUTED,
    "submission.appendixH.epsilon": Verdict.QUALIFIED,
    "submission.appendixH.canife": Verdict.NEEDS_DATA,
    "submission.appendixH.canaries": Verdict.NEEDS_DATA,
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {check.id: check.judge(QUICK) for check in submission.CHECKS}


def test_ids_are_unique_and_all_are_statements_of_the_document() -> None:
    ids = [check.id for check in submission.CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(name.startswith("submission.") for name in ids)
    assert {check.subject for check in submission.CHECKS} == {Subject.DOCUMENT}


def test_expected_verdicts(outcomes: dict[str, Outcome]) -> None:
    assert {name: o.verdict for name, o in outcomes.items() if o.verdict is not Verdict.CONFIRMED} == NOT_CONFIRMED


def test_another_seed_changes_no_verdict(outcomes: dict[str, Outcome]) -> None:
    for name in ("submission.table6.close", "submission.table2.noise-alone"):
        check = next(check for check in submission.CHECKS if check.id == name)
        assert check.judge(Context(Level.QUICK, 7)).verdict is outcomes[name].verdict


@pytest.mark.parametrize(
    ("judge", "verdict"),
    [
        (partial(submission_stackoverflow.judge_users, "341k"), Verdict.CONFIRMED),
        (partial(submission_stackoverflow.judge_users, others="35k"), Verdict.REFUTED),
        (partial(submission_stackoverflow.judge_epsilon, "0.0986", "103.3"), Verdict.QUALIFIED),
        (partial(submission_stackoverflow.judge_epsilon, "0.0986", "99.2"), Verdict.CONFIRMED),
        (partial(submission_stackoverflow.judge_epsilon, "0.0986", "110"), Verdict.REFUTED),
        (partial(submission_stackoverflow.judge_belief, "0.95"), Verdict.REFUTED),
        (partial(submission_emnist.judge_epsilon, "0.16", "41.6"), Verdict.QUALIFIED),
        (partial(submission_emnist.judge_parameters, "1.3"), Verdict.REFUTED),
        (partial(submission_emnist.judge_data, characters="383k"), Verdict.CONFIRMED),
        (partial(submission_emnist.judge_figure_2, ("0.16", "0.17")), Verdict.REFUTED),
        (partial(submission_appendices.judge_three_of_fifteen, "0.40"), Verdict.CONFIRMED),
        (partial(submission_appendices.judge_canife_epsilon, "0.2", "34.0"), Verdict.REFUTED),
        (partial(submission_appendices.judge_canife_closer, 30.0), Verdict.REFUTED),
        (partial(submission_appendices.judge_models, settings=3), Verdict.REFUTED),
        (partial(submission_versions.judge_same, [("1.97", "1.98")]), Verdict.REFUTED),
    ],
)
def test_another_number_changes_the_verdict(judge: partial[Outcome], verdict: Verdict) -> None:
    assert judge().verdict is verdict


def test_three_of_fifteen_by_scipy_and_by_counting() -> None:
    level = Fraction(3, 20)
    assert float(submission_appendices.exceedance(15, 3, level)) == pytest.approx(
        stats.binom.sf(2, 15, 0.15), rel=1e-12
    )
    assert submission_appendices.exceedance(15, 0, level) == 1
    # The printed probability is that of two or more; the table has three above the printed critical value.
    assert float(submission_appendices.exceedance(15, 2, level)) == pytest.approx(0.6814, abs=5e-5)
    assert sum(float(value) > 0.574 for row in TABLE_4.values() for value in row) == 3


def test_the_network_by_layers() -> None:
    # The convolutions as in the summary in TensorFlow Federated's emnist_models; the dense layers counted by hand.
    assert submission_emnist.convolutional_parameters(10) == 320 + 18_496 + 1_179_776 + 1290
    assert submission_emnist.convolutional_parameters(62) == 320 + 18_496 + 1_179_776 + 7998


@pytest.mark.parametrize("distance", [0.0, 4.3])
def test_moments_of_the_maximum_by_simulation(distance: float) -> None:
    rng, runs = np.random.default_rng(11), 4000
    scores = rng.standard_normal((runs, 2048))
    scores[:, 0] += distance
    largest = scores.max(axis=1)
    mean, deviation = submission_stackoverflow.maximum_moments(distance)
    assert largest.mean() == pytest.approx(mean, abs=5 * deviation / math.sqrt(runs))
    assert largest.std() == pytest.approx(deviation, rel=0.1)
