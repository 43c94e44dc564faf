"""The claim's own trade-off curve decides on the leak where coins do, and in no other audit."""

import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.accounting.accountant import gaussian, poisson
from canaryproof.verify.audit.answer.run_audit import Audit, audit
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.audit.bounds.one_run import curve_p_value, gaussian_curve
from canaryproof.verify.audit.canaries.scores import Scores

CLAIM = gaussian(1.0)
EPSILON = float(gaussian_mechanism.epsilon(1e-5, 1.0))


def scores(trace: float, inclusion: str = "coin") -> Scores:
    rng = np.random.default_rng(4)
    took_part = rng.random(2000) < 0.5
    every = rng.normal(size=2000) + trace * took_part
    return Scores(every[took_part], every[~took_part], kind="any", inclusion=inclusion)


def p_value(audited: Audit) -> float | None:
    return {each.name: each.value for each in audited.finding("leak").numbers}.get("p-value of the claim")


def test_half_of_the_claimed_noise_is_refuted_where_the_bound_is_below_the_claim() -> None:
    audited, drawn = audit(scores(2.0), 1e-5, claim=CLAIM), scores(2.0)
    leak = audited.finding("leak")
    assert audited.bound is not None
    assert audited.bound.low < EPSILON
    assert leak.status == "failed"
    expected = curve_p_value(prepare(drawn.observed, drawn.unobserved, inclusion="coin"), gaussian_curve(1.0))
    assert p_value(audited) == pytest.approx(expected, rel=1e-5)
    assert leak.because.startswith("the claim is refuted: under it, so many coins are guessed right with a probability")
    assert str(audited).startswith("NOT PASSED: the mechanism behind the claimed ε = 4.38 (δ = 1e-05) is refuted.")
    assert "at most 5% of honest runs are not passed by chance, by the test of the claim's curve" in " ".join(
        str(audited).lower().split()
    )


@pytest.mark.deep
@pytest.mark.parametrize(("trace", "refuted", "above"), [(2.0, 0.999, 0.053), (1.5, 0.59, 0.0)])
def test_the_curve_refutes_less_noise_as_often_as_the_page_says(trace: float, refuted: float, above: float) -> None:
    rng, seen, audits = np.random.default_rng(11), np.zeros(2), 200
    for _ in range(audits):
        took_part = rng.random(2000) < 0.5
        every = rng.normal(trace * took_part)
        drawn = prepare(every[took_part], every[~took_part], inclusion="coin")
        bound = METHODS["one-run"].values(drawn, 1e-5, 0.05)[0][0]
        seen += curve_p_value(drawn, gaussian_curve(1.0)) <= 0.05, bound > EPSILON
    for count, share in zip(seen, (refuted, above), strict=True):
        assert stats.binomtest(int(count), audits, share).pvalue > 1e-6


def test_the_claimed_noise_is_not_refuted_and_its_curve_would_notice_more_than_a_bound() -> None:
    audited, number = audit(scores(1.0), 1e-5, claim=CLAIM), audit(scores(1.0), 1e-5, claim=EPSILON)
    assert audited.finding("leak").status == "as claimed"
    assert "under the claim, so many coins are guessed right" in audited.finding("leak").because
    # Of an ε alone there is no curve.
    assert p_value(number) is None
    assert number.finding("leak").status == "cannot say"
    assert audited.noticed_share is not None
    assert number.noticed_share is not None
    assert audited.noticed_share > 1.4 * number.noticed_share


def test_other_audits_have_no_test_of_the_curve() -> None:
    fixed = audit(scores(2.0, "fixed"), 1e-5, claim=CLAIM)
    other = audit(scores(2.0), 1e-5, claim=CLAIM, bounds=("band",))
    nothing = audit(scores(2.0), 1e-5)
    assert [p_value(each) for each in (fixed, other, nothing)] == [None, None, None]


def test_a_bound_above_the_claim_contradicts_its_epsilon_too() -> None:
    audited = audit(scores(5.0), 1e-5, claim=poisson(1.0, rate=0.5, rounds=1))
    assert audited.bound is not None
    assert audited.claim is not None
    assert audited.bound.low > audited.claim
    assert str(audited).startswith("NOT PASSED: the claimed ε = ")
