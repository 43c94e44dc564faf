"""The figures of an audit's details are those of its record, under their names."""

import math
import re

import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.answer import page, report
from canaryproof.verify.audit.answer.notice import BoundTest
from canaryproof.verify.audit.answer.run_audit import audit, audit_release
from canaryproof.verify.audit.answer.text import (
    _enough,
    claim_of_faults,
    details,
    noticed_rows,
    unnoticed_rows,
)
from canaryproof.verify.audit.blindspots.ranges import BlindSpots, Range
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.levels import POWER
from tests.printed import numbers

DIM, DELTA, COUNT, NULL_COUNT = 10**6, 1e-6, 400, 300


def drawn(trace, deviation, count, seed):
    """Cosines with exactly this mean and deviation, in the null's deviations."""
    z = np.random.default_rng(seed).standard_normal(count)
    return (trace + deviation * (z - z.mean()) / z.std(ddof=1)) / math.sqrt(DIM)


OBSERVED, UNOBSERVED = drawn(0.71, 1.03, COUNT, 0), drawn(0.02, 0.97, NULL_COUNT, 1)


def closed():
    return audit(Scores(OBSERVED, dim=DIM), DELTA, claim=3.0, noise_multiplier=1.54)


def fitted():
    return audit(Scores(OBSERVED, UNOBSERVED, DIM), DELTA, claim=3.0)


def line(result, label):
    """What follows a label, to the next one."""
    text = " ".join(details(result, width=200).split())
    return text.partition(label)[2]


def plus_minus(result, label):
    value, error = re.match(r" (\S+) ± (\S+)", line(result, label)).groups()
    return float(value), float(error)


def agree(shown, value, error):
    """Whether a printed number and its error are these, with two digits of the error."""
    return abs(shown[0] - value) <= 0.06 * error and shown[1] == pytest.approx(error, rel=0.06)


def test_mean_and_ratio_and_their_errors_stand_under_their_names():
    # The population's deviation of the scores is that of the sample, but for √(1 − 1/k).
    ratio = 1.03
    assert agree(plus_minus(closed(), "standardised mean √d·μ̂"), 0.71, ratio / math.sqrt(COUNT))
    assert agree(plus_minus(closed(), "deviation ratio √d·σ̂"), ratio, ratio * math.sqrt(0.5 / COUNT))
    ratio, mean = 1.03 / 0.97, (0.71 - 0.02) / 0.97
    assert agree(
        plus_minus(fitted(), "standardised mean (μ̂ − μ₀)/σ₀"), mean, math.sqrt(ratio**2 / COUNT + 1.0 / NULL_COUNT)
    )
    assert agree(plus_minus(fitted(), "deviation ratio σ̂/σ₀"), ratio, ratio * math.sqrt(0.5 / COUNT + 0.5 / NULL_COUNT))


def test_p_values_stand_under_their_names():
    for result in (closed(), fitted()):
        shown = float(line(result, "equal variances").split()[2])
        assert shown == float(f"{result.variance_p_value:.2g}")
        shown = numbers(line(result, "observed are normal (Anderson–Darling)"))[:2]
        assert shown == [f"{result.normality.statistic:.3g}", f"{result.normality.p_value:.2g}"]
    ratio = (1.03 / 0.97) ** 2
    law = stats.f(COUNT - 1, NULL_COUNT - 1)
    assert fitted().variance_p_value == pytest.approx(2.0 * min(law.cdf(ratio), law.sf(ratio)), rel=0.02)
    shown = numbers(line(fitted(), "unobserved follow the null law (Kolmogorov–Smirnov)"))[:2]
    exact = stats.kstest(UNOBSERVED * math.sqrt(DIM), "norm")
    assert shown == [f"{exact.statistic:.3g}", f"{exact.pvalue:.2g}"]


def test_estimates_and_bounds_stand_in_their_columns():
    result = fitted()
    lines = [line.split() for line in details(result, width=200).splitlines()]
    for row in result.estimates:
        cells = next(cells for cells in lines if cells[:1] == [row.name])
        shown = [float(cells[i]) for i in (1, 2, 3, 5)]
        for cell, value in zip(shown, (row.epsilon, row.standard_error, row.low, row.high), strict=True):
            assert abs(cell - value) <= 0.06 * row.standard_error
    for row in result.bounds:
        cells = next(cells for cells in lines if cells[:2] == [row.name, "≥"])
        assert float(cells[2]) <= row.low < 1.01 * float(cells[2])
        assert float(cells[-1]) <= row.cap < 1.01 * float(cells[-1])


def test_the_heading_counts_the_scores():
    assert numbers(closed().details().splitlines()[0])[:3] == ["400", "1000000", "1e-06"]
    assert numbers(fitted().details().splitlines()[0])[:4] == ["400", "1000000", "1e-06", "300"]


def test_the_dilution_is_that_of_the_releases_norm():
    # Without its canaries, the release is 1.25 times as long as the claimed noise.
    rng = np.random.default_rng(3)
    canaries = Canaries(7, 200, 20_000)
    release = canaries.sum(np.arange(200)) + rng.standard_normal(20_000)
    result = audit_release(release, canaries, DELTA, noise_multiplier=0.8)
    rest = release - canaries.sum()
    assert numbers(line(result, "dilution ‖x‖²/(σ²d) − 1"))[:1] == [f"{rest @ rest / (0.64 * 20_000) - 1.0:.3g}"]


def test_the_canaries_that_would_suffice_notice_half_of_the_noise():
    observed = np.random.default_rng(0).normal(3.0, 1.0, 10) / 1e3
    result = audit(Scores(observed, dim=10**6), 1e-6, claim=8.0)
    count = int(re.search(r"Some ([\d,]+) canaries would notice half", " ".join(details(result).split()))[1])
    trace = np.array([2.0 / result.claimed_noise(8.0)])
    powers = [BoundTest(8.0, 1e-6, 0.05, n, None).power(trace) for n in (count // 2, count)]
    assert powers[0] < POWER <= powers[1]
    # The number is doubled from the 10 of this audit until it suffices.
    assert count in {10 * 2**n for n in range(4)}


def test_no_number_of_scores_is_named_that_would_not_decide():
    # Cosines crowd each other in few dimensions, so that the number needs more of these, too.
    observed = np.random.default_rng(0).normal(1.0, 1.0, 50)
    limit = "in so many dimensions that they are no noise to each other"
    said = [" ".join(details(audit(Scores(observed / d**0.5, dim=d), 1e-6, claim=3.0)).split()) for d in (1000, 10**8)]
    assert all("would notice half of the noise" in text for text in said)
    assert [limit in text for text in said] == [True, False]
    # An audit of a release takes the others out of each score.
    canaries = Canaries(7, 20, 1000)
    release = canaries.sum() + 1.54 * np.random.default_rng(2).normal(size=1000)
    released = " ".join(details(audit_release(release, canaries, DELTA, noise_multiplier=1.54)).split())
    assert ("would notice half of the noise" in released, limit in released) == (True, False)
    # A bound of losses without coins is heuristic, and stays so however many there are.
    rng = np.random.default_rng(1)
    observed, unobserved = rng.normal(1.0, 1.0, 100), rng.normal(size=100)
    kinds = {each: Scores(observed, unobserved, kind="any", inclusion=each) for each in ("fixed", "coin")}
    found = {each: audit(scores, 1e-6, claim=3.0) for each, scores in kinds.items()}
    named = {each: "would notice half" in " ".join(details(result).split()) for each, result in found.items()}
    assert named == {"fixed": False, "coin": True}
    assert "let a fair coin decide" in " ".join(str(found["fixed"]).split())
    assert "Take more scores" in " ".join(str(found["coin"]).split())


def test_each_bound_is_spoken_of_at_the_level_that_it_has(monkeypatch):
    # A test of the noise beside the bound leaves it half of what the confidence does.
    canaries = Canaries(7, 20, 20_000)
    release = canaries.sum(np.arange(20)) + np.random.default_rng(3).standard_normal(20_000)
    alone = audit(Scores(canaries.cosines(release), dim=20_000), DELTA, 0.9, claim=8.0)
    beside = audit_release(release, canaries, DELTA, 0.9, noise_multiplier=1.0, claim=8.0)
    asked = []
    monkeypatch.setattr(BoundTest, "sufficient_count", lambda test, _: asked.append(test.level))
    for result, percent in ((alone, "90%"), (beside, "95%")):
        _enough(result, 8.0)
        assert asked.pop() == pytest.approx(1.0 - float(percent[:-1]) / 100.0)
        assert f"ε, {percent}" in details(result)
        assert f" {percent} confidence)" in result.finding("leak").because or not result.bound.low
        assert f"and bounds {percent}." in page.markdown(
            result, report.record(result, report.ReportHeading("audit.html"))
        ).replace("\\", "")


def test_faults_stand_with_their_ends_and_the_largest_epsilon():
    seen = Range("less-noise", "less noise", "share", 0.123, 0.456, 7.89, 0.91)
    unseen = Range("unclipped", "no clipping", "norm", 23.4, 1234.5, 56.7, 0.2)
    single = Range("unclipped", "no clipping", "norm", 34.5, 34.5, math.inf, 0.2)
    spots = BlindSpots(1.2345, 3.456, True, (seen,), (unseen, single))
    assert noticed_rows(spots) == [("less noise", "share: 0.123 – 0.456")]
    assert [where for _, where, _ in unnoticed_rows(spots)] == [
        "norm: 23.4 – 1,234; ε up to 56.7",
        "norm: 34.5; ε up to ∞",
    ]
    assert numbers(claim_of_faults(spots)) == ["3.46", "1.234"]


def test_how_sharp_a_bound_can_be_is_said_of_scores_like_these():
    said = (
        "How sharp a bound can be: from 1,000 independent Gaussian scores of mean 1 (the nearest of 12 cases), "
        "fixed-sequence has a median of 2.45 at δ = 1e-05 and 95%, and no valid bound has one above 2.67."
    )
    assert said in " ".join(details(closed()).split())
    others = (
        fitted(),
        audit(Scores(OBSERVED, dim=DIM), 0.01),
        audit(Scores(OBSERVED, dim=DIM), DELTA, bounds=("band",)),
        audit(Scores(OBSERVED[:20], dim=DIM), DELTA),
    )
    assert not [found for found in others if "How sharp" in details(found)]
