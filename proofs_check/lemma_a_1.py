"""Lemma A.1, and version 1's argument from the length of a Gaussian vector.

The length R = ‖Y‖ of Y ~ N(0, I_d) has the mean m(d) = √2 Γ((d + 1)/2)/Γ(d/2) and E R² = d. As m(d) m(d + 1) = d, and
m(d)/√d has an asymptotic series in 1/d (DLMF 5.11.13), that series g is the only one with
g(d) g(d + 1) = (1 + 1/d)^(−1/2) that starts with 1.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import sympy
from sympy import Expr, Rational, Symbol, gamma, pi, sqrt

from canaryproof.proofs_check.displayed_lines import Kind, held, judged, line
from canaryproof.proofs_check.formula_text import text
from canaryproof.proofs_check.sphere_moments import D, expectation
from canaryproof.proofs_check.theorem_3_1 import (
    TAU,
    area,
    even_moment,
    exact_density,
    judge_even_moments,
    judge_odd_moments,
    moment_by_pairings,
    moments_by_parts,
    same,
)
from canaryproof.verify.papers.check.results import Check, Outcome, Verdict

# 1/d.
_INVERSE = Symbol("h", positive=True)
_TERMS = 4
_HALF = Rational(1, 2)
_UNIT = sympy.Integer(1)
_ROOT = sqrt(D)
_LENGTH = Symbol("r", positive=True)

DISPLAYS: dict[str, int] = {}


def _judge_variance(printed: Any = 1 / D) -> Outcome:
    by_density = D**-1 if moments_by_parts() else sympy.nan
    facts = {
        "∫ τ² f_d(τ) dτ": sympy.cancel(by_density - printed) == 0,
        "sum over pairings": sympy.cancel(moment_by_pairings(2) - moment_by_pairings(1) ** 2 - printed) == 0,
        "d = 1, where τ is 1 or −1": printed.subs(D, 1) == 1,
    }
    return held(facts, "Exact for all d, even for d = 1, where the law has no density.")


def _judge_first_coordinate() -> Outcome:
    facts = {
        "the moments of the law are those of the density": judge_even_moments().verdict is Verdict.CONFIRMED
        and judge_odd_moments().verdict is Verdict.CONFIRMED,
        "e₁ has length 1": expectation(("v", "v")) == 1,
    }
    return held(facts, "Exact: it is the cosine with v = e₁; the moments agree too, and fix a law on [−1, 1].")


def _judge_mean(printed: Any = 0) -> Outcome:
    reflected = sympy.simplify(exact_density(D) - exact_density(D).subs(TAU, -TAU))
    facts = {"sum over pairings": moment_by_pairings(1) == printed, "density": reflected == printed == 0}
    return held(facts, "Exact: −x has the law of x.")


def _judge_second_moment() -> Outcome:
    facts = {"Var x₁ − E x₁²": sympy.cancel(moment_by_pairings(2) - moment_by_pairings(1) ** 2 - even_moment(1)) == 0}
    return held(facts, "Exact, as E x₁ = 0.")


def _judge_sum(printed: Any = 1) -> Outcome:
    facts = {
        "E ‖x‖²": sympy.cancel(expectation(("c", "c")) - printed) == 0,
        "d times the density's second moment": sympy.cancel(D * even_moment(1) - printed) == 0 and moments_by_parts(),
    }
    return held(facts, "Exact: the terms are bounded, and expectation is linear, whether or not they are independent.")


def _judge_share(printed: Any = 1 / D) -> Outcome:
    facts = {
        "d equal terms of sum 1": sympy.solve(D * TAU - 1, TAU) == [printed],
        "sum over pairings, the same for every unit vector": sympy.cancel(moment_by_pairings(2) - printed) == 0,
        "the density's second moment": sympy.cancel(even_moment(1) - printed) == 0 and moments_by_parts(),
    }
    return held(facts, "Exact: a permutation of the coordinates keeps the uniform law.")


def mean_length(dim: Any) -> Any:
    """Mean √2 Γ((d + 1)/2)/Γ(d/2) of the chi distribution with d degrees of freedom, the length of N(0, I_d)."""
    return sqrt(2) * gamma((dim + 1) / 2) / gamma(dim / 2)


@cache
def mean_length_series() -> Expr:
    """Series of the mean length of N(0, I_d) over √d in h = 1/d, exact up to terms of order h⁵."""
    h = _INVERSE
    series: Expr = sympy.Integer(1)
    for order in range(1, _TERMS + 1):
        # d + 1 in place of d is h/(1 + h) in place of h. A term c hⁿ changes the product's term in hⁿ by 2c.
        product = series * series.subs(h, h / (1 + h)) * sqrt(1 + h)
        series -= sympy.series(product, h, 0, order + 1).removeO().coeff(h, order) / 2 * h**order
    return series


def _lowest(series: Expr) -> str:
    """Write the three lowest terms of a series in h in terms of d."""
    terms = sorted(sympy.Add.make_args(series), key=lambda term: term.as_coeff_exponent(_INVERSE)[1])[:3]
    return " + ".join(text(term.subs(_INVERSE, 1 / D)) for term in terms).replace("+ −", "− ") + " + …"


def _judge_expansion(name: str, exact: Callable[[Any], Any], series: Callable[[Expr], Expr], printed: Any) -> Outcome:
    """Judge a value by the exact one at d = 1, 2, 3, and by its series, which comes from that of the mean length."""
    expansion = sympy.expand(series(mean_length_series()))
    quotient = sympy.limit(printed.subs(D, 1 / _INVERSE) / expansion, _INVERSE, 0)
    if not _product_is_dim() or quotient != 1:
        kind = Kind.WRONG_TERM
    elif all(sympy.simplify(exact(d) - printed.subs(D, d)) == 0 for d in map(sympy.Integer, (1, 2, 3))):
        kind = Kind.EXACT
    else:
        kind = Kind.LEADING_ORDER
    ratio = text(quotient) if quotient != 1 else "1, so the two agree to leading order"
    finding = (
        f"The {name} is {text(exact(D))} = {_lowest(expansion)}. As d → ∞ the ratio of {text(printed)} to it tends to "
        f"{ratio}."
    )
    return judged(kind, finding, {"at d = 1": text(sympy.simplify(exact(_UNIT))), "series": _lowest(expansion)})


def _product_is_dim() -> bool:
    return bool(sympy.gammasimp(mean_length(D) * mean_length(D + 1)) == D)


def _chi_density(dim: Any) -> Any:
    return 2 ** (1 - dim / 2) * _LENGTH ** (dim - 1) * sympy.exp(-(_LENGTH**2) / 2) / gamma(dim / 2)


def _judge_chi(printed: Callable[[Any], Any] = _chi_density) -> Outcome:
    exact = area(D) * _LENGTH ** (D - 1) * sympy.exp(-(_LENGTH**2) / 2) / (2 * pi) ** (D / 2)
    mean = sympy.integrate(_LENGTH * printed(D), (_LENGTH, 0, sympy.oo))
    facts = {
        "S_d r^(d−1) times the Gaussian density": same(printed(D), exact, _LENGTH, 1),
        "its mean is √2 Γ((d + 1)/2)/Γ(d/2)": sympy.gammasimp(sympy.powsimp(mean / mean_length(D))) == 1,
    }
    return held(facts, "Exact: with d degrees of freedom.")


def _judge_unit_sphere(radius: Any = _UNIT) -> Outcome:
    # E(R/√d − r)² = E R²/d − 2r·m(d)/√d + r².
    distance = sympy.expand(expectation(("Z", "Z")) / D - 2 * radius * mean_length_series() + radius**2)
    left = distance.subs(_INVERSE, 0)
    # "Essentially" and "for high d" are the text's own words for what is lost on the way to the limit.
    kind = Kind.EXACT if left == 0 and _product_is_dim() else Kind.FALSE
    finding = f"The direction is uniform, and E(‖Y/√d‖ − 1)² = {_lowest(distance)} goes to {text(left)}."
    return judged(kind, finding, {"mean squared distance from the sphere": _lowest(distance)})


def _gaussian_moment(pairs: int) -> Expr:
    """E (Y₁/√d)²ᵖ."""
    moment: Expr = sympy.cancel(expectation(*([("Z", "v")] * (2 * pairs))) / D**pairs)
    return moment


def _judge_coordinate(variance: Any = 1 / D) -> Outcome:
    t = Symbol("t", real=True)
    scaled, normal = (sympy.exp(-(t**2) / (2 * v)) / sqrt(2 * pi * v) for v in (1, variance))
    facts = {
        "density": same(sqrt(D) * scaled.subs(t, sqrt(D) * t), normal, t),
        "moments up to the eighth": all(
            sympy.cancel(_gaussian_moment(p) - sympy.factorial2(2 * p - 1) * variance**p) == 0 for p in range(1, 5)
        ),
    }
    return held(facts, "Exact, as Y₁ ~ N(0, 1).", Kind.WRONG_TERM)


def _judge_cosine(moment: Callable[[int], Any] = even_moment) -> Outcome:
    quotients = [sympy.cancel(_gaussian_moment(p) / moment(p)) for p in range(1, 5)]
    limits = [sympy.limit(quotient, D, sympy.oo) for quotient in quotients]
    # The text says it of high d, where Y/√d is essentially of unit length.
    kind = Kind.EXACT if all(limit == 1 for limit in limits) else Kind.FALSE
    finding = (
        "In the limit of high d: Y₁/√d is the inner product with e₁, the cosine is Y₁/‖Y‖. Both have the variance 1/d, "
        f"the fourth moment is ({text(quotients[1])}) times the cosine's, and the relative mean squared difference "
        f"{_lowest(sympy.expand(2 - 2 * mean_length_series()))}."
    )
    return judged(kind, finding, {f"moment {2 * p}": text(quotient) for p, quotient in enumerate(quotients, 1)})


def _length_mean(printed: Any = _ROOT) -> Outcome:
    return _judge_expansion("mean", mean_length, lambda g: g / sqrt(_INVERSE), printed)


def _length_variance(printed: Any = _HALF) -> Outcome:
    return _judge_expansion("variance", lambda d: d - mean_length(d) ** 2, lambda g: (1 - g**2) / _INVERSE, printed)


def _scaled_mean(printed: Any = _UNIT) -> Outcome:
    return _judge_expansion("mean", lambda d: mean_length(d) / sqrt(d), lambda g: g, printed)


def _scaled_variance(printed: Any = 1 / (2 * D)) -> Outcome:
    return _judge_expansion("variance", lambda d: 1 - mean_length(d) ** 2 / d, lambda g: 1 - g**2, printed)


_SOURCES = {
    "final": "Appendix A, Lemma A.1 and its proof",
    "v1": "Section 4 and footnote 3",
}


def _line(identity: str, statement: str, judge: Callable[[], Outcome]) -> Check:
    return line(identity, _SOURCES[identity.split(".", 1)[0]], statement, judge)


LINES: tuple[Check, ...] = (
    _line("final.lemma-a.1.variance", "The cosine of Theorem 3.1 has the variance 1/d.", _judge_variance),
    _line(
        "final.lemma-a.1.first-coordinate",
        "The first coordinate x₁ of a uniform direction has the cosine's law.",
        _judge_first_coordinate,
    ),
    _line("final.lemma-a.1.mean", "E x₁ = 0.", _judge_mean),
    _line("final.lemma-a.1.second-moment", "Var x₁ = E x₁².", _judge_second_moment),
    _line("final.lemma-a.1.sum", "The squares have the sum Σ E xᵢ² = 1.", _judge_sum),
    _line("final.lemma-a.1.share", "The xᵢ have one law, so that E x₁² = 1/d.", _judge_share),
    _line("v1.lemma-a.1.squared-cosine", "The expected squared cosine is 1/d.", _judge_variance),
    _line("v1.lemma-a.1.chi", "The length ‖Y‖ of Y ~ N(0, I_d) has the chi distribution.", _judge_chi),
    _line("v1.lemma-a.1.length-mean", "The length ‖Y‖ has the mean √d.", _length_mean),
    _line("v1.lemma-a.1.length-variance", "The length ‖Y‖ has the variance 1/2.", _length_variance),
    _line("v1.lemma-a.1.scaled-mean", "The length ‖Y/√d‖ has the mean 1.", _scaled_mean),
    _line("v1.lemma-a.1.scaled-variance", "The length ‖Y/√d‖ has the variance 1/(2d).", _scaled_variance),
    _line(
        "v1.lemma-a.1.unit-sphere", "For high d, Y/√d is essentially uniform on the unit sphere.", _judge_unit_sphere
    ),
    _line("v1.lemma-a.1.coordinate", "Y₁/√d ~ N(0, 1/d).", _judge_coordinate),
    _line("v1.lemma-a.1.cosine", "For high d Y₁/√d, as an inner product with e₁, is the cosine.", _judge_cosine),
)
