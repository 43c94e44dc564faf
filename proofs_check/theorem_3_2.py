"""Theorem 3.2: τ√d tends to N(0, 1) in distribution. Its proof, what the reviews say of it, and what the paper draws.

The printed density f̂_d of t = τ√d is compared with the one that follows from the law Beta(1/2, (d − 1)/2) of τ². Its
limit is taken for any fixed real t; Γ(d/2)/Γ((d − 1)/2), where it occurs, is replaced by √(d/2), as
``normal_distance.gamma_bounds`` proves that their ratio tends to 1. From the pointwise limit to the theorem leads
Scheffé's (1947): where densities converge almost everywhere to a density, their total variation distance vanishes. The
proven bound 0.396/(d − 1) on that distance says the same with a rate.
"""

from collections.abc import Callable, Sequence

import sympy
from sympy import Expr, Rational, exp, gamma, pi, sqrt

from canaryproof.proofs_check import normal_distance
from canaryproof.proofs_check.displayed_lines import Kind, held, judged, kind_of, line
from canaryproof.proofs_check.formula_text import text
from canaryproof.proofs_check.normal_distance import T
from canaryproof.proofs_check.sphere_moments import D, expectation
from canaryproof.proofs_check.theorem_3_1 import same
from canaryproof.verify.papers.check.results import Check, Outcome, Verdict

_DENSITY, _LIMIT = "Theorem 3.2, density of τ√d", "Theorem 3.2, limit of the density"
DISPLAYS: dict[str, int] = {_DENSITY: 2, _LIMIT: 2}

_NORMAL = exp(-(T**2) / 2) / sqrt(2 * pi)
_GAMMAS = gamma(D / 2) / gamma((D - 1) / 2)
_POWER = (D - 3) / 2
# As printed.
_ROW_1 = 1 / sqrt(D) * _GAMMAS / sqrt(pi) * (1 - (T / sqrt(D)) ** 2) ** _POWER
_ROW_2 = _GAMMAS / sqrt(pi * D) * (1 - T**2 / D) ** _POWER
# The two lines as they stand on the page: spelled from the formulas they would be the same.
_PRINTED_1 = "(1/√d)·Γ(d/2)/(Γ((d − 1)/2)·√π)·(1 − (t/√d)²)^((d − 3)/2)"
_PRINTED_2 = "Γ(d/2)/(Γ((d − 1)/2)·√(πd))·(1 − t²/d)^((d − 3)/2)"
_FACTORS = (_GAMMAS / sqrt(pi * D), (1 - T**2 / D) ** (D / 2), (1 - T**2 / D) ** Rational(-3, 2))
_FACTOR_LIMITS = (1 / sqrt(2 * pi), exp(-(T**2) / 2), sympy.Integer(1))
_GAMMA_LIMIT = sqrt(D / 2)

# A sequence of densities whose pointwise limit is no density: N(d, 1).
_ESCAPING = exp(-((T - D) ** 2) / 2) / sqrt(2 * pi)


def _limit(expression: Expr) -> Expr:
    """Limit for d → ∞ at fixed real t, of an expression in which Γ(d/2) occurs over Γ((d − 1)/2) only."""
    elementary = expression.subs(gamma(D / 2), _GAMMA_LIMIT * gamma((D - 1) / 2))
    value: Expr = sympy.simplify(sympy.limit(sympy.simplify(elementary), D, sympy.oo))
    return value


def _mass() -> Expr:
    """Mass of the printed density: with z = t²/d, √d·B(1/2, (d − 1)/2) times its constant."""
    constant = _ROW_2.subs(T, 0)
    beta = gamma(Rational(1, 2)) * gamma((D - 1) / 2) / gamma(D / 2)
    mass: Expr = sympy.simplify(constant * sqrt(D) * beta)
    return mass


def judge_density(printed: Expr) -> Outcome:
    """Judge a printed density of t = τ√d, |t| < √d, by the one that follows from τ² ~ Beta(1/2, (d − 1)/2).

    ``LEADING_ORDER`` if its limit is still that of N(0, 1).
    """
    # Half the density of |t|, z = t²/d: f_B(z)·t/d with f_B(z) = z^(−1/2)·(1 − z)^((d − 3)/2)/B(1/2, (d − 1)/2).
    exact = (1 - T**2 / D) ** _POWER * _GAMMAS / (sqrt(pi) * sqrt(D))
    equal = same(printed, exact, T)
    converges = equal or sympy.simplify(_limit(printed) - _NORMAL) == 0
    kind = Kind.EXACT if equal else Kind.LEADING_ORDER if converges else Kind.FALSE
    return judged(
        kind,
        f"the density is {text(exact)} on |t| < √d, and 0 elsewhere"
        + ("" if equal else f"; printed is {text(printed)}"),
        {"printed": text(printed), "exact": text(exact), "same": equal, "limit_is_normal": converges},
    )


def judge_limit_of_product(factors: Sequence[Expr] = _FACTORS) -> Outcome:
    """Judge that lim f̂_d is the product of the limits of the printed factors, and these finite."""
    limits = [_limit(factor) for factor in factors]
    product, finite = sympy.prod(factors), all(limit.is_finite for limit in limits)
    return held(
        same(product, _ROW_2, T) and finite,
        "the factors multiply to f̂_d, d/2 − 3/2 being (d − 3)/2, and each has a finite limit, for every real t",
        limits=[text(limit) for limit in limits],
    )


def judge_limits(printed: Sequence[Expr] = _FACTOR_LIMITS) -> Outcome:
    """Judge the printed limits of the three factors, expressions in t."""
    limits = [_limit(factor) for factor in _FACTORS]
    right = [sympy.simplify(limit - value) == 0 for limit, value in zip(limits, printed, strict=True)]
    return held(
        all(right) and normal_distance.gamma_bounds().verdict is Verdict.CONFIRMED,
        f"the factors tend to {', '.join(map(text, limits))}",
    )


def judge_gamma_ratio(printed: Expr = _GAMMA_LIMIT) -> Outcome:
    """Judge what Γ(d/2)/Γ((d − 1)/2) is printed to tend to: its square lies between two bounds that do."""
    ends = [sympy.limit(bound * D / 2 / printed**2, D, sympy.oo) for bound in (1 - 3 / (2 * D), 1 - 1 / D)]
    return held(
        ends == [1, 1] and normal_distance.gamma_bounds().verdict is Verdict.CONFIRMED,
        "(d/2)(1 − 3/(2d)) < (Γ(d/2)/Γ((d − 1)/2))² ≤ (d/2)(1 − 1/d)",
        limits_of_bounds_on_squared_ratio=[text(end) for end in ends],
    )


def judge_convergence(variance: int = 1) -> Outcome:
    """Judge that τ√d tends to N(0, variance) in law: the proven bound on the distance from N(0, 1) vanishes."""
    rate = sympy.limit(Rational(normal_distance.KOLMOGOROV) / (D - 1), D, sympy.oo)
    proven = normal_distance.judge_kolmogorov_bound().verdict is Verdict.CONFIRMED
    return held(
        bool(rate == 0 and variance == 1) and proven,
        "|P(τ ≤ λ/√d) − Φ(λ)| ≤ 0.138/(d − 1) for all λ and all d ≥ 2",
    )


def _distribution_function() -> Outcome:
    slope = sympy.simplify(sympy.diff(sympy.log(_ROW_2), T) * (D - T**2))
    falls, mass = sympy.simplify(slope + (D - 3) * T) == 0, _mass()
    # A distribution function does not fall; read as the density, as the proof uses it, it needs mass 1.
    kind = Kind.EXACT if not falls else Kind.HYPOTHESIS if mass == 1 else Kind.FALSE
    return judged(
        kind,
        "Only read as the density of t = τ√d, as the proof uses it, a misprint: f̂_d has mass 1, and falls for t > 0 "
        "where d > 3 (its logarithm by (d − 3)t/(d − t²)), which no distribution function does",
        {"log_slope_times_d_minus_t2": text(slope), "mass": text(mass)},
    )


def _undefined() -> Outcome:
    misnamed = _distribution_function().verdict is not Verdict.CONFIRMED
    return held(
        misnamed,
        "the only description of f̂_d, distribution function of t, does not fit the formula; t is not said to be τ√d",
    )


def _definition() -> Outcome:
    judgement, mass = judge_density(_ROW_2), _mass()
    return held(
        judgement.verdict is Verdict.CONFIRMED and mass == 1,
        "f̂_d is the density of τ√d; the final version nevertheless calls it the distribution function of t",
    )


def _limit_masses() -> tuple[Expr, Expr]:
    """Masses of the pointwise limits of f̂_d, and of the densities of N(d, 1)."""
    normal, escaping = (
        sympy.integrate(limit, (T, -sympy.oo, sympy.oo))
        for limit in (_limit(_ROW_2), sympy.limit(_ESCAPING, D, sympy.oo))
    )
    return normal, escaping


def _scheffe() -> Outcome:
    normal, escaping = _limit_masses()
    kind = Kind.FALSE if normal != 1 else Kind.EXACT if escaping == 1 else Kind.HYPOTHESIS
    return judged(
        kind,
        "a pointwise limit of densities gives convergence in distribution if it is itself a density (Scheffé); here it "
        "is, with mass 1. The densities of N(d, 1) tend to 0 at every point, and those laws do not converge",
        {"mass_of_limit": text(normal), "mass_of_limit_for_N(d,1)": text(escaping)},
    )


def _conclusion() -> Outcome:
    """Scheffé's theorem asks that the limit is a density; the one that the proof finds is."""
    normal, _ = _limit_masses()
    finding = f"the limit that the proof finds has mass {text(normal)}: Scheffé's theorem applies, which is not named"
    return held(normal == 1, finding, mass_of_limit=text(normal))


def _theorem_needed() -> Outcome:
    judgement = _scheffe()
    return held(
        kind_of(judgement) is Kind.HYPOTHESIS,
        "pointwise convergence alone does not suffice (N(d, 1) is a counterexample); the theorem is Scheffé's, "
        "which the final version does not name either",
        **judgement.evidence,
    )


def _zero_outside() -> Outcome:
    far = sympy.limit(_ROW_2.subs(D, 7), T, sympy.oo)
    return held(
        far != 0,
        f"the formula is no density outside [−√d, √d]: at d = 7 it tends to {text(far)} as t grows",
    )


def _all_real() -> Outcome:
    inside = sympy.limit(D - T**2, D, sympy.oo) == sympy.oo
    limit = _limit(_ROW_2)
    return held(
        bool(inside and sympy.simplify(limit - _NORMAL) == 0),
        "every real t lies inside (−√d, √d) as soon as d > t², and f̂_d(t) tends to exp(−t²/2)/√(2π); the final version "
        "does not print the extension",
    )


def _asymptotically_gaussian() -> Outcome:
    pair = ("a", "b")
    mean, variance = expectation(pair), expectation(pair, pair)
    converges = judge_convergence().verdict is Verdict.CONFIRMED
    return held(
        bool(mean == 0 and sympy.simplify(variance - 1 / D) == 0) and converges,
        "mean 0 and variance 1/d hold for every d; in distribution τ√d tends to N(0, 1)",
    )


_PROOF = "Appendix A, proof of Theorem 3.2"
_TEXT = "Section 3.1"
_REVIEWER, _ANSWER = "reviewer, on the proof of Theorem 3.2", "authors' answer on Theorem 3.2"


def _line(topic: str, source: str, statement: str, judge: Callable[[], Outcome], display: str = "") -> Check:
    document, name = topic.split(":")
    row = int(name.rsplit(".", 1)[1]) if display else 0
    return line(f"{document}.theorem-3.2.{name}", source, statement, judge, display, row)


LINES: tuple[Check, ...] = (
    _line("final:convergence", f"{_TEXT}, Theorem 3.2", "P(τ ≤ λ/√d) → P(Z ≤ λ), Z ~ N(0, 1)", judge_convergence),
    _line("final:distribution-function", _PROOF, "The function f̂_d is the distribution function of t = τ√d",
          _distribution_function),
    _line("final:density.1", _PROOF, f"The density f̂_d(t) is {_PRINTED_1}", lambda: judge_density(_ROW_1), _DENSITY),
    _line("final:density.2", _PROOF, f"The density f̂_d(t) is {_PRINTED_2}", lambda: judge_density(_ROW_2), _DENSITY),
    _line("final:limit.1", _PROOF, "The limit of f̂_d(t) is the product of the limits of three factors",
          judge_limit_of_product, _LIMIT),
    _line("final:limit.2", _PROOF, "The three factors' limits are 1/√(2π), exp(−t²/2) and 1", judge_limits, _LIMIT),
    _line("final:gamma-ratio", _PROOF, "The quotient Γ(d/2)/Γ((d − 1)/2) ~ √(d/2)", judge_gamma_ratio),
    _line("final:conclusion", _PROOF, "The pointwise limit of f̂_d proves convergence in distribution", _conclusion),
    _line("v1:asymptotically-gaussian", "Section 4",
          "The cosine is asymptotically normal with mean 0 and variance 1/d", _asymptotically_gaussian),
    _line("review:undefined", _REVIEWER, "The function f̂_d is not defined (symbol lost in our copy)", _undefined),
    _line("review:theorem-needed", _REVIEWER, "The step from densities to distributions needs a theorem, to be named",
          _theorem_needed),
    _line("review:zero-outside", _REVIEWER, "The density is 0 outside [−√d, √d], which must be taken into account",
          _zero_outside),
    _line("review:answer-definition", _ANSWER, "The function f̂_d is the density of τ√d", _definition),
    _line("review:answer-scheffe", _ANSWER, "By Scheffé's theorem pointwise convergence of densities implies "
          "convergence in distribution", _scheffe),
    _line("review:answer-all-real", f"{_ANSWER} (its symbols are lost in the text)",
          "As d grows, the pointwise limit holds for all real t", _all_real),
    *normal_distance.DISTANCE_LINES,
    *normal_distance.TAIL_LINES,
)  # fmt: skip
