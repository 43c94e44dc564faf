"""Level and power of Anderson and Darling's test of the cosine's distance from N(0, 1/d), at n samples.

t = τ√d has the distribution function Φ + φ·He₃/(4d) + O(d⁻²). Under n → ∞ with c = √n/(4d) fixed, a local alternative,
the empirical process √n(Fₙ − Φ) is in the limit a Brownian bridge with drift c·φ·He₃, and A² is Σ (√λⱼξⱼ + c·pⱼ)² with
independent ξⱼ ~ N(0, 1). In the basis √((2j + 1)/(j(j + 1)))·P¹ⱼ(2u − 1) the bridge's weighted kernel is diagonal,
λⱼ = 1/(j(j + 1)) (Anderson and Darling 1952), and by parts all else is Legendre coefficients of Hermite polynomials,

    aⱼ(m) = √(2j + 1) ∫ Pⱼ(2Φ(z) − 1) Heₘ(z) φ(z) dz:    pⱼ = √λⱼ·aⱼ(4),

and estimating the mean and the variance takes √λᵢλⱼ·(aᵢ(1)aⱼ(1) + aᵢ(2)aⱼ(2)/2) from the kernel (Stephens 1976). The
drift stays, as t has mean 0 and variance 1 exactly. The law's tail comes from its characteristic function (Imhof 1961;
Davies 1973). All this is floating-point and asymptotic. Probabilities of the limit law are good to 1e-6 for c ≤ 1/2
and to 2e-5 up to c = 8, by comparison with more terms and finer steps. Terms of order 1/d and 1/n are left out.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np
from numpy.polynomial.hermite_e import hermeval
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray
from scipy import optimize, special, stats

from canaryproof.proofs_check.displayed_lines import Kind, held, judged, line
from canaryproof.verify.papers.check.results import Check, Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import number

_TERMS = 200
_PERIOD, _LAST_FREQUENCY = 200.0, 450.0
_LARGEST_DRIFT = 8.0  # where A² is about 60

COUNT, DIM, LEVEL = 10**6, 1000, 0.15
# Critical values with mean and variance estimated, to be divided by 1 + a/n + b/n². The first are scipy's before 1.17.
STEPHENS_1974, _FACTORS_1974 = {0.15: 0.576, 0.10: 0.656, 0.05: 0.787, 0.025: 0.918, 0.01: 1.092}, (4.0, -25.0)
DAGOSTINO_1986, _FACTORS_1986 = {0.15: 0.561, 0.10: 0.631, 0.05: 0.752, 0.025: 0.873, 0.01: 1.035}, (0.75, 2.25)
ANDERSON_DARLING_1954 = {0.10: 1.933, 0.05: 2.492}  # nothing estimated
# Statistics of 1000 cosines each: v1's Table 4 and the final version's Table 6, row by row.
TABLE_4 = (0.464, 0.590, 0.396, 0.407, 0.196, 0.976, 0.422, 0.340, 0.432, 0.116, 0.326, 0.157, 0.347, 0.951, 0.401)
TABLE_6 = (
    *(0.219, 0.225, 0.336, 0.366, 0.462, 0.242, 0.444, 0.576),
    *(0.224, 0.369, 0.295, 0.445, 1.23, 0.636, 0.523, 0.255),
)
_CANARIES = 1000
_POWERS = (0.5, 0.9, 0.99)

DISPLAYS: dict[str, int] = {}


@dataclass(frozen=True, eq=False)
class LimitLaw:
    """Law of Σ (√λⱼξⱼ + c·pⱼ)² + r = Σ λⱼ(ξⱼ + c·bⱼ)² + r, with pⱼ = √λⱼ·bⱼ and ξⱼ independent N(0, 1).

    Attributes
    ----------
    weights
        λⱼ ≥ 0, shape (terms,).
    drifts
        pⱼ, shape (terms,).
    remainder
        r, the mean of the terms left out.
    """

    weights: NDArray[np.float64]
    drifts: NDArray[np.float64]
    remainder: float

    @cached_property
    def _characteristic(self) -> tuple[NDArray[np.float64], NDArray[np.complex128], NDArray[np.complex128]]:
        """Frequencies, log of the characteristic function for c = 0, and what c² adds to it."""
        step = 2 * math.pi / _PERIOD
        t: NDArray[np.float64] = np.arange(step / 2, _LAST_FREQUENCY, step, dtype=np.float64)
        log_central, per_square = np.zeros(len(t), np.complex128), np.zeros(len(t), np.complex128)
        log_central += 1j * t * self.remainder
        for weight, drift in zip(self.weights, self.drifts, strict=True):
            factor = 1 - 2j * weight * t
            log_central -= np.log(factor) / 2
            per_square += 1j * t * drift * drift / factor
        return t, log_central, per_square

    def sf(self, x: float, scale: float = 0.0) -> float:
        """Probability that the sum exceeds x, 0 < x ≤ 100, at scale c, 0 ≤ c ≤ 8; elsewhere a ValueError."""
        if not (0 < x <= 100 and 0 <= scale <= _LARGEST_DRIFT):
            raise ValueError(f"x must lie in (0, 100] and scale in [0, 8], got {x} and {scale}")
        t, log_central, per_square = self._characteristic
        # The midpoint sum of Gil-Pelaez' integral errs by P(sum > x + period) at most, as the sum is never negative.
        terms = np.exp(log_central + scale**2 * per_square - 1j * t * x).imag / t
        return float(0.5 + 2 / _PERIOD * terms.sum())


@cache
def limit_law(estimated: bool) -> LimitLaw:
    """Limit law of A² for samples of t = τ√d; its c is √n/(4d), and 0 for normal samples.

    ``estimated``: mean and variance are estimated, as by scipy's ``anderson``, and not given as those of N(0, 1).
    """
    z = np.arange(-1280, 1281) / 128
    j = np.arange(1, _TERMS + 1)
    basis = np.sqrt(2 * j + 1) * legvander(2 * special.ndtr(z) - 1, _TERMS)[:, 1:]
    roots = 1 / np.sqrt(j * (j + 1.0))
    projections = [roots * ((hermeval(z, np.eye(5)[m]) * stats.norm.pdf(z) / 128) @ basis) for m in (1, 2, 4)]
    mean, variance, drift = projections
    kernel = np.diag(roots**2)
    if estimated:
        kernel -= np.outer(mean, mean) + np.outer(variance, variance) / 2
    weights, axes = np.linalg.eigh(kernel)
    # Σ over j > J of 1/(j(j + 1)) is 1/(J + 1); what estimation takes from that is below 1e-8.
    return LimitLaw(np.maximum(weights, 0.0), axes.T @ drift, 1 / (_TERMS + 1))


def _drift(count: float, dim: float) -> float:
    return math.sqrt(count) / (4 * dim)


def critical_value(level: float, estimated: bool) -> float:
    """Value that A² exceeds with probability ``level``, 1e-6 ≤ level < 1 (else ValueError), for many normal samples.

    ``estimated`` is that of ``limit_law``. The value is good to 1e-6 for levels from 0.01 to 0.25.
    """
    if not 1e-6 <= level < 1:
        raise ValueError(f"level must lie in [1e-6, 1), got {level}")
    law = limit_law(estimated)
    return float(optimize.brentq(lambda x: law.sf(x) - level, 1e-3, 100.0, xtol=1e-12))


def power(count: float, dim: float, level: float, estimated: bool) -> float:
    """Chance that the test rejects normality of ``count`` cosines in dimension ``dim``.

    To leading order in 1/d and 1/n; ``level`` and ``estimated`` are those of ``critical_value``.
    """
    # Beyond the largest drift it is 1 within the accuracy, as the law grows with c.
    return limit_law(estimated).sf(critical_value(level, estimated), min(_drift(count, dim), _LARGEST_DRIFT))


def _drift_for_power(wanted: float, level: float, estimated: bool) -> float:
    if not level < wanted <= 1 - 1e-6:
        raise ValueError(f"power must lie above the level and be at most 1 - 1e-6, got {wanted}")
    law, value = limit_law(estimated), critical_value(level, estimated)
    return float(optimize.brentq(lambda scale: law.sf(value, scale) - wanted, 0.0, _LARGEST_DRIFT))


def samples_for_power(wanted: float, dim: float, level: float, estimated: bool) -> float:
    """Find the number of cosines for a power, level < power ≤ 1 − 1e-6 (else ValueError); see ``power``."""
    return (4 * dim * _drift_for_power(wanted, level, estimated)) ** 2


def dim_for_power(wanted: float, count: float, level: float, estimated: bool) -> float:
    """Find the dimension in which ``count`` cosines give a power; as for ``samples_for_power``."""
    return math.sqrt(count) / (4 * _drift_for_power(wanted, level, estimated))


def _listed(values: Iterable[float], form: str) -> str:
    return ", ".join(format(value, form) for value in values)


def _at(count: float, value: float, factors: tuple[float, float]) -> float:
    """Critical value for n samples from one for n → ∞."""
    return value / (1 + factors[0] / count + factors[1] / count**2)


def _judge_limit_law() -> Outcome:
    known = {level: critical_value(level, False) for level in ANDERSON_DARLING_1954}
    fitted = {level: critical_value(level, True) for level in DAGOSTINO_1986}
    off = max(abs(fitted[level] - value) for level, value in DAGOSTINO_1986.items())
    law = limit_law(False)
    trace, variance = float(law.weights.sum()) + law.remainder, 2 * float((law.weights**2).sum())
    facts = {
        "values of 1954": all(round(known[level], 3) == value for level, value in ANDERSON_DARLING_1954.items()),
        "values of 1986": off < 0.0015,
        "mean": abs(trace - 1) < 1e-12,
        "variance": abs(variance - 2 * (math.pi**2 - 9) / 3) < 1e-6,
    }
    return held(
        facts,
        f"Nothing estimated: critical values {known[0.10]:.4f} at 10% and {known[0.05]:.4f} at 5%, mean {trace:.6f}, "
        f"variance {variance:.6f}; mean and variance estimated: {_listed(fitted.values(), '.4f')} at "
        f"15%, 10%, 5%, 2.5% and 1%, within {off:.4f} of D'Agostino's table.",
    )


def _judge_conclusion() -> Outcome:
    detected, known = (power(COUNT, DIM, LEVEL, estimated) for estimated in (True, False))
    tabulated = limit_law(True).sf(_at(COUNT, STEPHENS_1974[LEVEL], _FACTORS_1974), _drift(COUNT, DIM))
    # The log likelihood ratio is normal in the limit, with signal c·√(E He₄²) = c·√24.
    best = float(stats.norm.sf(stats.norm.isf(LEVEL) - math.sqrt(24) * _drift(COUNT, DIM)))
    samples = [samples_for_power(wanted, DIM, LEVEL, True) for wanted in _POWERS]
    dims = [dim_for_power(wanted, COUNT, LEVEL, True) for wanted in _POWERS]
    # Not rejecting tells for normality if it would be as rare for the cosine's law as rejecting is for a normal one.
    return judged(
        Kind.EXACT if 1 - detected <= LEVEL else Kind.HYPOTHESIS,
        f"Only that it is not much larger: the test has powers {_listed(_POWERS, 'g')} at d = {_listed(dims, '.0f')}, "
        f"but {detected:.3f} at d = {DIM}, where it accepts the cosine's law with probability {1 - detected:.3f} and a "
        f"normal one with {1 - LEVEL:.3f}. The most powerful test has {best:.3f}; these powers take "
        f"{_listed(samples, '.3g')} samples.",
        {
            "power": {"estimated": detected, "critical_value_1974": tabulated, "known": known, "most_powerful": best},
            "samples": samples,
            "dims": dims,
        },
    )


def _judge_level(level: float = LEVEL) -> Outcome:
    right = critical_value(LEVEL, True)
    old, new = _at(COUNT, STEPHENS_1974[LEVEL], _FACTORS_1974), _at(COUNT, DAGOSTINO_1986[LEVEL], _FACTORS_1986)
    old_size, new_size = limit_law(True).sf(old), limit_law(True).sf(new)
    return judged(
        Kind.EXACT if round(limit_law(True).sf(right), 6) == level else Kind.FALSE,
        f"This is what a level is, and the value {right:.4f} has this one. Tables are a little off: that of 1974, "
        f"of which a caption of the final version quotes other values, has {old:.3f}, which {100 * old_size:.1f}% of "
        f"normal samples exceed; that of 1986, scipy's since 1.17, has {new:.3f}, which {100 * new_size:.1f}% exceed.",
        {"critical_value": right, "size_1974": old_size, "size_1986": new_size},
    )


def sample_critical_value(level: float, count: float) -> float:
    """Return the critical value for n normal samples whose mean and variance are estimated."""
    return _at(count, critical_value(level, True), _FACTORS_1986)


def _judge_caption(printed: dict[float, str], values: tuple[float, ...]) -> Outcome:
    rows, findings, verdicts, read = [], [], [], ""
    for level, value in printed.items():
        limit, right = critical_value(level, True), sample_critical_value(level, _CANARIES)
        # The correction for n is an approximation, and without one the value is for n → ∞.
        readings = {
            "the limit law, corrected for n": right,
            "the limit law": limit,
            "the table of 1974, corrected for n": _at(_CANARIES, STEPHENS_1974[level], _FACTORS_1974),
            "the table of 1974, not corrected for n": STEPHENS_1974[level],
        }
        ruled = number(value, readings, stated=("the limit law, corrected for n", "the limit law"))
        size = limit_law(True).sf(float(value) * limit / right)
        above, above_printed = (sum(v > threshold for v in values) for threshold in (right, float(value)))
        rows.append({"level": level, "right": right, "size": size, "above": above, **ruled.evidence})
        verdicts.append(ruled.verdict)
        read = f"Only by {ruled.reading}. " if ruled.verdict is Verdict.QUALIFIED else read
        findings.append(
            f"at {100 * level:.0f}% the value is {right:.3f}, {100 * size:.3g}% exceed {value}, and {above_printed} of "
            f"{len(values)} statistics do ({above} exceed the right value)"
        )
    finding = f"{read}For {_CANARIES} normal samples, {'; '.join(findings)}."
    if Verdict.REFUTED in verdicts:
        return judged(Kind.FALSE, finding, {"rows": rows})
    return judged(Kind.HYPOTHESIS if Verdict.QUALIFIED in verdicts else Kind.EXACT, finding, {"rows": rows})


LINES: tuple[Check, ...] = (
    line(
        "final.section-3.anderson-darling",
        "Section 3.1, after Theorem 3.2, with footnote 3",
        "Anderson and Darling's test at level 0.15, which does not reject normality of 10⁶ cosines at d = 1000, gives "
        "some confidence, though no proof, that the discrepancy is extremely small.",
        _judge_conclusion,
    ),
    line(
        "final.section-3.anderson-darling.level",
        "footnote 3",
        "The test at level 0.15 rejects 15% of truly normal samples.",
        _judge_level,
    ),
    line(
        "v1.table4.critical-values",
        "Section 5.3 and Table 4's caption",
        "For 1000 samples the critical values are 1.088 at 1% and 0.574 at 15%.",
        partial(_judge_caption, {0.01: "1.088", 0.15: "0.574"}, TABLE_4),
    ),
    line(
        "submission.table4.critical-values",
        "Appendix G, Table 4's caption",
        "For 1000 samples the critical values are 1.088 at 1% and 0.574 at 15%.",
        partial(_judge_caption, {0.01: "1.088", 0.15: "0.574"}, TABLE_4),
    ),
    line(
        "final.table6.critical-values",
        "Table 6's caption",
        "For 1000 samples the critical values are 0.656 at 10% and 1.092 at 1%.",
        partial(_judge_caption, {0.10: "0.656", 0.01: "1.092"}, TABLE_6),
    ),
    line(
        "ours.anderson-darling.limit-law",
        "our limit law of A²; Anderson and Darling 1954; D'Agostino 1986, Table 4.7",
        "It gives the critical values of 1954 in all printed digits, those of 1986 within 0.0015, and, nothing "
        "estimated, mean 1 and variance 2(π² − 9)/3.",
        _judge_limit_law,
        own=True,
    ),
)
