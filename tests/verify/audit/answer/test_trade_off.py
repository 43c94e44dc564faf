import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

import canaryproof as cp
from canaryproof.verify.audit.answer.trade_off import _ALL, _picture_indices, _rates, _thresholds

LEVEL = 1e-6


def audited(observed, unobserved=None, **options):
    options = {"delta": 1e-5} | options
    if unobserved is None:
        return cp.audit(cp.Scores(observed, dim=10_000), **options)
    return cp.audit(cp.Scores(observed, unobserved, kind="any"), **options)


def normal(seed, count=300, shift=1.5):
    rng = np.random.default_rng(seed)
    return rng.normal(shift, 1.0, count), rng.normal(size=count)


def test_estimates_are_the_shares_of_scores():
    observed, unobserved = normal(0, 40)
    curve = audited(observed, unobserved).curve()
    for threshold, fpr, fnr in zip(curve.thresholds, curve.false_positives, curve.false_negatives, strict=True):
        assert fpr[1] == np.mean(unobserved >= threshold)
        assert fnr[1] == pytest.approx(np.mean(observed < threshold))
    assert (np.diff(curve.thresholds) < 0.0).all()
    for rates in (curve.false_positives, curve.false_negatives):
        assert (rates[:, 0] <= rates[:, 1]).all()
        assert (rates[:, 1] <= rates[:, 2]).all()
        assert ((rates >= 0.0) & (rates <= 1.0)).all()


@pytest.mark.parametrize(
    ("draw", "tail"),
    [
        (lambda rng: rng.normal(size=30), stats.norm.sf),
        # Ties: the probability of a score at or above a threshold, and not above it.
        (lambda rng: rng.integers(0, 4, 30).astype(float), lambda x: np.clip((4.0 - np.ceil(x)) / 4.0, 0.0, 1.0)),
    ],
)
def test_all_limits_hold_at_once_as_often_as_is_said(draw, tail):
    runs, alpha, held = 2000, 0.1, 0
    rng, at = np.random.default_rng(1), np.linspace(-4.0, 4.0, 400)
    for _ in range(runs):
        rates = _rates(np.sort(draw(rng)), at, 0.5 * alpha)
        truth = tail(at)
        held += bool(((rates[:, 0] <= truth + 1e-12) & (truth <= rates[:, 2] + 1e-12)).all())
    assert stats.binom.cdf(held, runs, 1.0 - alpha) > LEVEL


def test_the_sides_of_the_band_share_what_the_confidence_leaves():
    """Two sides of the false negatives beside an exact null, and four of both rates else."""
    observed, unobserved = normal(4, 50)
    cosines = np.random.default_rng(4).normal(0.015, 0.01, 50)
    for curve, groups, sides in (
        (audited(cosines, confidence=0.9).curve(), (cosines,), 2),
        (audited(observed, unobserved, confidence=0.9).curve(), (observed, unobserved), 4),
    ):
        misses, *alarms = (_rates(np.sort(group), curve.thresholds, 0.1 / sides) for group in groups)
        assert curve.false_negatives == pytest.approx(1.0 - misses[:, ::-1])
        for rates in alarms:
            assert curve.false_positives == pytest.approx(rates)


def test_the_limit_of_epsilon_is_that_of_equation_1_at_the_limits():
    curve = audited(*normal(2)).curve()
    for delta in (0.0, 1e-5, 0.1):
        best = 0.0
        for (*_, fpr), (*_, fnr) in zip(curve.false_positives, curve.false_negatives, strict=True):
            for one, other in ((fpr, fnr), (fnr, fpr)):
                if 1.0 - delta - one > 0.0 and other > 0.0:
                    best = max(best, math.log((1.0 - delta - one) / other))
        assert curve.epsilon(delta) == pytest.approx(best)
    assert curve.epsilon(0.0) > curve.epsilon(0.1) > 0.0


def test_rates_and_advantage_are_the_best_of_all_thresholds():
    observed, unobserved = normal(3, 2000)
    curve = audited(observed, unobserved).curve()
    estimate, low = curve.true_positive_rate(0.01)
    assert estimate == pytest.approx(np.mean(observed > np.sort(unobserved)[-21]))
    assert low < stats.norm.sf(stats.norm.isf(0.01) - 1.5) < estimate + 0.1
    assert low > 0.0
    assert curve.true_positive_rate(0.0)[1] == 0.0
    advantage, at_least = curve.advantage
    exact = 2.0 * stats.norm.cdf(0.75) - 1.0
    assert at_least < exact < advantage + 0.05
    assert at_least > exact - 0.12


def test_scores_without_a_trace_show_none():
    observed, unobserved = normal(4, shift=0.0)
    curve = audited(observed, unobserved).curve()
    assert curve.epsilon(1e-5) == 0.0
    assert curve.advantage[1] == 0.0


def test_exact_nulls_have_no_band_of_false_positives():
    curve = audited(normal(5)[0] / 100.0).curve()
    assert (curve.false_positives[:, 0] == curve.false_positives[:, 2]).all()
    assert curve.false_positives[:, 1] == pytest.approx(stats.norm.sf(100.0 * curve.thresholds), abs=1e-3)


def test_millions_of_scores_have_some_thresholds():
    distinct = np.arange(100_000.0)[::-1]
    chosen = _thresholds(distinct)
    assert len(chosen) < _ALL + 300
    assert (chosen[:100] == distinct[:100]).all()
    assert chosen[-1] == 0.0


def test_the_table_and_the_picture():
    curve = audited(*normal(6), claim=2.0).curve()
    table = curve.to_frame()
    assert list(table.columns) == ["threshold", "fpr", "fpr_low", "fpr_high", "fnr", "fnr_low", "fnr_high"]
    assert len(table) == len(curve.thresholds)
    labels = [text.get_text() for text in curve.plot().axes[0].get_legend().get_texts()]
    assert labels == ["95% band", "measured", "claimed: ε = 2", "no privacy is lost"]


@pytest.mark.parametrize("shown", [None, 20_000])
def test_the_picture_has_the_rates_of_the_table_and_those_of_the_claim(shown):
    curve = audited(*normal(6), claim=2.0, delta=0.01).curve()
    if shown is not None:
        # Of many thresholds a picture has some.
        rates = np.linspace(0.0, 1.0, shown)[:, np.newaxis] + [-0.01, 0.0, 0.01]
        curve = dataclasses.replace(curve, thresholds=-rates[:, 1], false_positives=rates, false_negatives=1.0 - rates)
    at = np.arange(len(curve.thresholds)) if shown is None else np.asarray(_picture_indices(shown))
    assert (at[0], at[-1], len(at) < 700) == (0, len(curve.thresholds) - 1, True)
    linear, small = curve.plot().axes
    least = 0.5 / len(curve.thresholds)
    assert small.get_xlim() == pytest.approx((least, 1.0))
    assert small.get_ylim() == pytest.approx((least, 1.05))
    assert (small.get_xscale(), small.get_yscale(), linear.get_xscale()) == ("log", "log", "linear")
    assert [axes.get_ylabel() for axes in (linear, small)] == ["false negative rate", "true positive rate"]
    for axes in (linear, small):

        def drawn(false_negatives, axes=axes):
            return false_negatives if axes is linear else 1.0 - false_negatives

        measured, claimed, nothing = (line.get_xydata().T for line in axes.lines)
        assert measured == pytest.approx(np.array([curve.false_positives[at, 1], drawn(curve.false_negatives[at, 1])]))
        # The curve of (ε, δ) that a claim of ε = 2 leaves (Kairouz et al., Theorem 2.1).
        x, slope = claimed[0], math.exp(2.0)
        both = np.maximum(1.0 - 0.01 - slope * x, (1.0 - 0.01 - x) / slope)
        assert claimed[1] == pytest.approx(drawn(np.maximum(0.0, both)), abs=1e-12)
        assert (x[0], x[-1]) == pytest.approx((1e-6, 1.0))
        assert nothing[1] == pytest.approx(drawn(1.0 - nothing[0]))
        # The band goes along the lower limits, and back along the upper ones.
        (outline,) = (polygon.get_xy()[: 2 * len(at)] for polygon in axes.patches)
        ends = [np.r_[rates[at, 0], rates[at[::-1], 2]] for rates in (curve.false_positives, curve.false_negatives)]
        assert outline == pytest.approx(np.column_stack([ends[0], drawn(ends[1])]))


def test_an_audit_that_is_withheld_has_no_curve():
    withheld = dataclasses.replace(audited(*normal(7)), withheld=True)
    with pytest.raises(ValueError, match="curve: the audit is withheld"):
        withheld.curve()
