import json
import math

import numpy as np
import pytest
from scipy import integrate, special, stats
from statsmodels.stats.diagnostic import anderson_statistic

from canaryproof.kernels import null_cosine
from canaryproof.proofs_check import anderson_darling
from canaryproof.proofs_check.anderson_darling import (
    LINES,
    critical_value,
    dim_for_power,
    limit_law,
    power,
    samples_for_power,
)
from canaryproof.proofs_check.displayed_lines import Kind, kind_of
from canaryproof.verify.papers.check.results import Context, Effort

CONTEXT = Context(Effort.QUICK, 0)

BY_ID = {line.id: line for line in LINES}
KEY = 20230206


def drift_energy(z):
    """(φ·He₃)² per dz, weighted by 1/(Φ(1 − Φ))."""
    return stats.norm.pdf(z) ** 3 * (z**3 - 3 * z) ** 2 / (special.ndtr(z) * special.ndtr(-z))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("final.section-3.anderson-darling", Kind.HYPOTHESIS),
        ("final.section-3.anderson-darling.level", Kind.EXACT),
        ("v1.table4.critical-values", Kind.HYPOTHESIS),
        ("final.table6.critical-values", Kind.HYPOTHESIS),
        ("ours.anderson-darling.limit-law", Kind.EXACT),
    ],
)
def test_kinds(name, kind):
    judgement = BY_ID[name].judge(CONTEXT)
    assert kind_of(judgement) is kind
    json.dumps(judgement.evidence)


def test_the_conclusion_would_stand_with_enough_samples(monkeypatch):
    monkeypatch.setattr(anderson_darling, "COUNT", 12 * 10**6)
    assert kind_of(BY_ID["final.section-3.anderson-darling"].judge(CONTEXT)) is Kind.EXACT


def test_another_share_than_the_level_is_false():
    assert kind_of(anderson_darling._judge_level(0.1)) is Kind.FALSE


def test_captions_with_right_values_are_exact_and_with_values_of_no_table_false():
    judge = BY_ID["final.table6.critical-values"].judge.decide.func
    assert kind_of(judge({0.10: "0.630", 0.01: "1.034"}, (0.3,) * 16)) is Kind.EXACT
    assert kind_of(judge({0.10: "0.656", 0.01: "1.034"}, (0.3,) * 16)) is Kind.HYPOTHESIS
    assert kind_of(judge({0.10: "0.656", 0.01: "1.050"}, (0.3,) * 16)) is Kind.FALSE


def test_a_wrong_kernel_is_noticed(monkeypatch):
    right = limit_law(False)
    monkeypatch.setattr(anderson_darling, "limit_law", lambda _: right)
    assert kind_of(BY_ID["ours.anderson-darling.limit-law"].judge(CONTEXT)) is Kind.FALSE


def test_the_cosine_is_a_local_alternative_of_this_sign():
    z = np.linspace(-4, 4, 17)
    normal, shift = stats.norm.cdf(z), stats.norm.pdf(z) * (z**3 - 3 * z) / 4
    rests = [null_cosine.cdf(z / math.sqrt(dim), dim) - normal - shift / dim for dim in (1e3, 1e4)]
    # Of order 1/d², so that ten times d makes it a hundred times smaller.
    assert np.max(np.abs(rests[0])) < 2e-6
    np.testing.assert_allclose(rests[0], 100 * rests[1], rtol=0.02, atol=1e-9)


def test_characteristic_function_without_estimation_is_that_in_closed_form():
    # Anderson and Darling 1952: √(−2πit/cos(π√(1 + 8it)/2)).
    t, log_central, _ = limit_law(False)._characteristic
    low = t < 20
    exact = -2j * np.pi * t[low] / np.cos(np.pi / 2 * np.sqrt(1 + 8j * t[low]))
    np.testing.assert_allclose(np.exp(2 * log_central[low]), exact, rtol=2e-4)
    np.testing.assert_allclose(np.exp(2 * log_central[t < 2]), exact[t[low] < 2], rtol=3e-6)


def test_percentile_of_marsaglia():
    # 0.1%: 5.9694, by Marsaglia and Marsaglia's (2004) own series for the limit.
    assert critical_value(0.001, False) == pytest.approx(5.9694, abs=5e-5)


def test_trace_and_drift_by_quadrature():
    def estimated_part(z):
        return stats.norm.pdf(z) ** 3 * (1 + z * z / 2) / (special.ndtr(z) * special.ndtr(-z))

    law, known = limit_law(True), limit_law(False)
    trace = 1 - integrate.quad(estimated_part, -12, 12, epsabs=1e-13)[0]
    assert law.weights.sum() + law.remainder == pytest.approx(trace, abs=1e-8)
    energy = integrate.quad(drift_energy, -12, 12, epsabs=1e-13)[0]
    for one in (law, known):
        assert (one.drifts**2).sum() == pytest.approx(energy, abs=1e-5)


def test_weights_agree_with_nystrom():
    # Trapezoidal nodes in z in place of the Legendre basis.
    z = np.arange(-200, 201) / 25
    lower, upper = special.ndtr(z), special.ndtr(-z)
    density = stats.norm.pdf(z)
    least, largest = np.minimum.outer(z, z), np.maximum.outer(z, z)
    kernel = special.ndtr(least) * special.ndtr(-largest)
    kernel -= np.outer(density, density) * (1 + np.outer(z, z) / 2)
    root = np.sqrt(density / (lower * upper) / 25)
    weights = np.linalg.eigvalsh(root[:, None] * kernel * root)[::-1]
    np.testing.assert_allclose(weights[:6], np.sort(limit_law(True).weights)[::-1][:6], rtol=0, atol=2e-4)


@pytest.mark.parametrize("estimated", [False, True])
@pytest.mark.parametrize("scale", [0.0, 0.25, 0.9])
def test_tail_agrees_with_sampling_of_the_series(estimated, scale):
    # Binomial interval of level 1e-7 at a fixed key: half-width below 0.007.
    law, x, count = limit_law(estimated), critical_value(0.15, estimated), 150_000
    rng = np.random.default_rng([KEY, int(100 * scale), estimated])
    total = np.full(count, law.remainder)
    order = np.argsort(-law.weights)
    head, tail = order[:30], order[30:]
    for weight, drift in zip(law.weights[head], law.drifts[head], strict=True):
        total += (math.sqrt(weight) * rng.standard_normal(count) + scale * drift) ** 2
    total += law.weights[tail].sum() + scale**2 * (law.drifts[tail] ** 2).sum()
    low, high = stats.binom.interval(1 - 1e-7, count, law.sf(x, scale))
    assert low <= (total > x).sum() <= high


@pytest.mark.deep
def test_power_agrees_with_samples_of_cosines():
    # Level 1e-6 with 0.02 for what n = 40000 and d = 100 leave over; a power of 0.15, that of no drift, would be
    # noticed with probability above 0.999.
    count, dim, draws = 40_000, 100, 300
    rng = np.random.default_rng([KEY, 1])
    value, expected = critical_value(0.15, True), power(count, dim, 0.15, True)
    normal = rng.standard_normal((draws, count))
    cosines = normal / np.sqrt(normal**2 + rng.chisquare(dim - 1, (draws, count)))
    rejected = (anderson_statistic(cosines, axis=1) > value).sum()
    low = stats.binom.ppf(5e-7, draws, expected - 0.02)
    high = stats.binom.isf(5e-7, draws, expected + 0.02)
    assert low > stats.binom.isf(1e-3, draws, 0.15)
    assert low <= rejected <= high


@pytest.mark.parametrize("estimated", [False, True])
def test_powers_and_their_inverses(estimated):
    assert power(1, 1e9, 0.15, estimated) == pytest.approx(0.15, abs=1e-9)
    assert power(1e12, 100, 0.15, estimated) == pytest.approx(1, abs=1e-6)
    samples = samples_for_power(0.9, 1000, 0.15, estimated)
    assert power(samples, 1000, 0.15, estimated) == pytest.approx(0.9, abs=1e-9)
    assert power(1e6, dim_for_power(0.9, 1e6, 0.15, estimated), 0.15, estimated) == pytest.approx(0.9, abs=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: critical_value(0.0, True),
        lambda: critical_value(math.nan, True),
        lambda: samples_for_power(0.1, 1000, 0.15, True),
        lambda: samples_for_power(1.0, 1000, 0.15, True),
        lambda: limit_law(True).sf(0.0),
        lambda: limit_law(True).sf(1.0, 9.0),
    ],
)
def test_refusals(call):
    with pytest.raises(ValueError, match="must"):
        call()
