"""CANIFE's likelihood ratio (Appendix A) and the laws of its score with DP noise (Section 3.2): every line judged.

Every entry of updates, canary and covariance is a symbol. A positive definite Σ is LLᵀ with L lower triangular, and
u = m + √k·Lz with z ~ N(0, I) is N(m, kΣ). So the exact log density is −‖z‖²/2 − log det(√k·L) − (n/2)·log(2π) with
z = L⁻¹(u − m)/√k: a change of variables, with which the printed formulas are compared for a general L. In one dimension
this is also the proof for every dimension: in an eigenbasis of Σ all quadratic forms are sums over the coordinates, and
the determinants products. Two and three dimensions with a general L are checked besides. g stands for ∇ℓ(z), Q for
(kΣ)⁻¹.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import sympy
from sympy import Expr, Matrix, Rational, Symbol, erfc, log, pi, sqrt

from canaryproof.proofs_check.displayed_lines import Kind, held, judged, line
from canaryproof.proofs_check.formula_text import text
from canaryproof.verify.papers.check.results import Check, Outcome

K, N, NOISE = sympy.symbols("k n sigma", positive=True)


class Setting(NamedTuple):
    """The quantities of the appendix's formulas in one dimension n: column vectors and n × n matrices."""

    u: Any
    mu: Any
    g: Any
    root: Any  # L
    precision: Any  # (kΣ)⁻¹


def vector(name: str, dimension: int) -> Any:
    """General column vector."""
    return Matrix(sympy.symbols(f"{name}_1:{dimension + 1}", real=True))


@cache
def setting(dimension: int) -> Setting:
    """Make a general setting: every entry of u, μ, g and L is a symbol."""
    root = sympy.zeros(dimension, dimension)
    for i in range(dimension):
        root[i, i] = Symbol(f"l_{i}{i}", positive=True)
        for j in range(i):
            root[i, j] = Symbol(f"l_{i}{j}", real=True)
    inverse = root.inv()
    u, mu, g = (vector(name, dimension) for name in ("u", "mu", "g"))
    return Setting(u, mu, g, root, inverse.T * inverse / K)


def form(matrix: Any, left: Any, right: Any) -> Expr:
    """leftᵀ·matrix·right."""
    value: Expr = (left.T * matrix * right)[0, 0]
    return value


def vanishes(expression: Expr) -> bool:
    """Whether an expression is shown to be 0 identically."""
    return bool(sympy.cancel(sympy.expand(sympy.expand_log(expression))) == 0)


# The laws of the score. Three dimensions stand for all, as only the span of the canary and the updates' sum counts.


def _score(canary: Any, sum_of_others: Any, noise: Expr, taking_part: Expr | int) -> tuple[Expr, Expr]:
    """Mean and variance of ⟨Σuᵢ + taking_part·u_c + N(0, noise²·I), u_c⟩, a Gaussian as it is linear in one."""
    z = vector("z", canary.rows)
    linear = sympy.Poly(sympy.expand((sum_of_others + taking_part * canary + noise * z).dot(canary)), *z)
    coefficients = [linear.coeff_monomial(variable) for variable in z]
    return linear.coeff_monomial(1), sum((c**2 for c in coefficients), sympy.S.Zero)


def _orthogonal_to(g: Any) -> Any:
    """Any vector of three dimensions that is orthogonal to g."""
    return g.cross(vector("a", 3))


def score_without(variance: Expr = NOISE**2) -> Outcome:
    """Judge ⟨ũ, g⟩ = N(0, variance·‖g‖²) without the canary, all updates being orthogonal to g."""
    g = vector("g", 3)
    mean, exact = _score(g, _orthogonal_to(g), NOISE, 0)
    holds = mean == 0 and vanishes(exact - variance * g.dot(g))
    return held(
        holds,
        "with ⟨uᵢ, g⟩ = 0 for the round's updates, as the text requires, the score's mean is 0 and its variance σ²‖g‖²",
    )


def score_with(factor: Expr = sympy.S.One) -> Outcome:
    """Judge N(factor·‖u_c‖², σ_c²) with the canary, σ_c² being the variance without it; printed is factor 1."""
    g = vector("g", 3)
    canary = Symbol("alpha", positive=True) * g
    means, variances = zip(*(_score(canary, _orthogonal_to(g), NOISE, part) for part in (0, 1)), strict=True)
    holds = means[0] == 0 and vanishes(means[1] - factor * canary.dot(canary)) and vanishes(variances[0] - variances[1])
    return held(
        holds,
        "for u_c = αg the centres are 0 and ‖u_c‖² and both variances σ_c² = α²σ²‖g‖² = σ²‖u_c‖²: N(0, 1) and "
        "N(‖u_c‖/σ, 1) up to scale",
    )


def by_design() -> Outcome:
    """Judge that a canary of loss 0 is orthogonal to the round's updates."""
    g, bound = Matrix([0, 1, 0]), 1
    held_out, of_the_round = Matrix([1, 0, 0]), Matrix([0, Rational(1, 2), Rational(1, 2)])
    shortfall = sympy.Max(bound - g.norm(), 0)
    loss = held_out.dot(g) ** 2 + shortfall**2
    mean, _ = _score(g, of_the_round, NOISE, 0)
    mean_in_span, _ = _score(g, Symbol("t", real=True) * held_out, NOISE, 0)
    kind = (Kind.HYPOTHESIS if mean != 0 else Kind.EXACT) if loss == 0 and mean_in_span == 0 else Kind.FALSE
    return judged(
        kind,
        "Holds if the round's updates lie in the span of the held-out ones and the loss is 0. Else it is a requirement "
        "that the design may miss, as Section 3.4 says of unseen updates: with (1, 0, 0) "
        f"held out, g = (0, 1, 0) has loss {text(loss)}, and an update (0, 1/2, 1/2) gives the score the mean "
        f"{text(mean)}",
        {"loss": text(loss), "mean": text(mean)},
    )


def weighted(noise_scales: bool = False) -> Outcome:
    """Judge that weighting the updates only scales the score, the noise being scaled with them or not."""
    weight, g = Symbol("w", positive=True), vector("g", 3)
    plain = _score(g, _orthogonal_to(g), NOISE, 1)

    def scales(noise: Expr) -> bool:
        mean, variance = _score(g, weight * _orthogonal_to(g), noise, weight)
        return vanishes(mean - weight * plain[0]) and vanishes(variance - weight**2 * plain[1])

    as_printed, with_hypothesis = scales(weight * NOISE if noise_scales else NOISE), scales(weight * NOISE)
    kind = Kind.EXACT if as_printed else Kind.HYPOTHESIS if with_hypothesis else Kind.FALSE
    return judged(
        kind,
        "holds if the noise is multiplied by the canary's weight w too; with the same noise only the centre moves to "
        "w‖u_c‖², the variance stays, and the separation is w‖u_c‖/σ instead of ‖u_c‖/σ",
        {"same_noise": as_printed, "noise_scaled": with_hypothesis},
    )


def noisy() -> Outcome:
    """Judge, along an eigenvector of Σ of eigenvalue λ, what DP noise does to gᵀQg."""
    variance = Symbol("lambda", positive=True)
    noise = NOISE**2
    inverse = 1 / (K * variance + noise)
    facts = {
        "same_form": sympy.simplify(1 / (K * (variance + noise / K)) - inverse) == 0,
        "smaller": sympy.factor(1 / (K * variance) - inverse).is_positive,
        "bounded": sympy.factor(1 / noise - inverse).is_positive,
    }
    return held(
        facts,
        "kΣ + σ²I = k(Σ + (σ²/k)I): the appendix stands with Σ + (σ²/k)I for Σ; the separation is smaller than without "
        "noise, at most ‖g‖²/σ², and finite for a singular Σ",
    )


# The likelihood ratio.

_DIMENSIONS = (1, 2, 3)
_Q = Symbol("q", positive=True)
# Φ(−√q/2), either error at threshold 0.
_BEST_ERROR = erfc(sqrt(_Q) / (2 * sqrt(2))) / 2
DISPLAYS: dict[str, int] = {"densities": 3, "log ratio": 3, "centers": 1, "estimate": 1, "score without the canary": 1}

Formula: TypeAlias = Callable[[Setting], Expr]


def log_density(s: Setting, mean: Any) -> Expr:
    """Log density of N(mean, kΣ) at u, by the change of variables."""
    z = s.root.inv() * (s.u - mean) / sqrt(K)
    density: Expr = -(z.T * z)[0, 0] / 2 - log((sqrt(K) * s.root).det()) - log(2 * pi) * Rational(s.u.rows, 2)
    return density


def _without(s: Setting) -> Expr:
    return log_density(s, K * s.mu)


def _with(s: Setting) -> Expr:
    return log_density(s, K * s.mu + s.g)


def log_ratio(s: Setting) -> Expr:
    """Exact log(p₁/p₀)."""
    return _with(s) - _without(s)


def _printed_density(deviation: Callable[[Setting], Any], s: Setting) -> Expr:
    """Log of exp(−vᵀ(kΣ)⁻¹v/2)/√det(2πkΣ)."""
    v = deviation(s)
    printed: Expr = -form(s.precision, v, v) / 2 - log((2 * pi * K * s.root * s.root.T).det()) / 2
    return printed


def _half_difference(s: Setting) -> Expr:
    v = s.u - K * s.mu
    return (form(s.precision, v, v) - form(s.precision, v - s.g, v - s.g)) / 2


def _linear_ratio(s: Setting) -> Expr:
    return form(s.precision, s.g, s.u - K * s.mu) - form(s.precision, s.g, s.g) / 2


# The printed formula's characters (G for ∇ℓ(z)), and their meaning once the brackets match.
_SPLIT = "((u-kμ)-G(z)))^T(kΣ)^{-1}((u-kμ)-G(z))"
_SPLIT_REPAIRED = _SPLIT.replace(")))^T", "))^T")
_CENTRED = "(u-kμ)^T(kΣ)^{-1}(u-kμ)"
DENSITIES: tuple[tuple[str, Formula, Formula], ...] = (
    (f"p₀(u) = exp(-{_CENTRED}/2)/√det(2πkΣ)", partial(_printed_density, lambda s: s.u - K * s.mu), _without),
    (
        "p₁(u) = exp(-(u-(kμ+G(z)))^T(kΣ)^{-1}(u-(kμ+G(z)))/2)/√det(2πkΣ)",
        partial(_printed_density, lambda s: s.u - (K * s.mu + s.g)),
        _with,
    ),
    (f"p₁(u) = exp(-{_SPLIT}/2)/√det(2πkΣ)", partial(_printed_density, lambda s: (s.u - K * s.mu) - s.g), _with),
)
LOG_RATIO: tuple[tuple[str, Formula, Formula], ...] = (
    (f"log(p₁/p₀) = ({_CENTRED}-{_SPLIT})/2", _half_difference, log_ratio),
    (f"log(p₁/p₀) = ({_CENTRED}-{_SPLIT})/2", _half_difference, log_ratio),
    ("log(p₁/p₀) = G(z)^T(kΣ)^{-1}(u-kμ)-G(z)^T(kΣ)^{-1}G(z)/2", _linear_ratio, log_ratio),
)


def _agree(printed: Formula, exact: Formula) -> bool:
    return all(vanishes(printed(setting(n)) - exact(setting(n))) for n in _DIMENSIONS)


def formula(characters: str, printed: Formula, exact: Formula) -> Outcome:
    """Judge a printed formula: its characters, what they mean, and what is exact.

    A closing bracket too many is a misprint: the line holds in the reading without it, which the finding names.
    """
    surplus = characters.count(")") - characters.count("(")
    finding = "equal to the exact one, for a general Σ (Σ = LLᵀ)"
    evidence = {"printed": characters, "surplus_closing_brackets": surplus}
    if surplus > 0 and _agree(printed, exact):
        repaired = characters.replace(_SPLIT, _SPLIT_REPAIRED)
        finding = f"printed with {surplus} closing bracket too many; read as {repaired}, it is {finding}"
        return judged(Kind.HYPOTHESIS, finding, evidence)
    return held(_agree(printed, exact), finding, **evidence)


def centers(printed: frozenset[int]) -> Outcome:
    """Judge that log(p₁/p₀) at the two centres is ½·gᵀQg times one of the printed signs."""
    signs: dict[str, list[int]] = {"kμ": [], "kμ + g": []}
    for n in _DIMENSIONS:
        s = setting(n)
        for name, centre in (("kμ", K * s.mu), ("kμ + g", K * s.mu + s.g)):
            value = log_ratio(s._replace(u=centre))
            signs[name] += [sign for sign in (-1, 1) if vanishes(value - sign * form(s.precision, s.g, s.g) / 2)]
    right = all(len(set(found_signs)) == 1 and len(found_signs) == len(_DIMENSIONS) for found_signs in signs.values())
    return held(
        right and {found_signs[0] for found_signs in signs.values()} == printed,
        "−½·gᵀQg at kμ and +½·gᵀQg at kμ + g (the printed ± stands for the two, in the other order)",
    )


def sum_of_updates(hypotheses: bool = False) -> Outcome:
    """Judge the law of the sum of k updates in any one direction, as printed or under the finding's hypotheses."""
    variance, mu, g, factor = sympy.symbols("Sigma mu g alpha", positive=True)
    correlation = Symbol("rho", real=True)
    # k variances and k(k − 1) covariances of pairs, and the noise; the canary's update is αg.
    excess = sympy.expand(K * (K - 1) * correlation * variance + NOISE**2)
    shift = sympy.expand(K * mu + factor * g - (K * mu + g))
    named = {correlation: 0, NOISE: 0, factor: 1}
    holds_with = excess.subs(named) == 0 and shift.subs(named) == 0
    holds = holds_with if hypotheses else excess == 0 and shift == 0
    return judged(
        Kind.EXACT if holds else Kind.HYPOTHESIS if holds_with else Kind.FALSE,
        "Holds for independent updates, u_c = g and no DP noise. Covariances ρΣ of pairs of updates add k(k − 1)ρΣ, "
        "u_c ∝ g is some αg, and the noise makes kΣ into kΣ + σ²I",
        {"excess_covariance": text(excess), "excess_shift": text(shift)},
    )


def separation(printed: Expr = _BEST_ERROR) -> Outcome:
    """Judge that the best test's error, given as a function of q = gᵀQg, falls as q grows."""
    # The log ratio is linear in u: N(∓q/2, q) if its coefficient Qg has the variance gᵀQ(kΣ)Qg = q.
    variance = all(
        vanishes(form(s.precision * K * s.root * s.root.T * s.precision - s.precision, s.g, s.g))
        for s in map(setting, _DIMENSIONS)
    )
    mean, deviation = -_Q / 2, sqrt(_Q)
    tail = erfc((0 - mean) / (deviation * sqrt(2))) / 2
    facts = {
        "variance_is_q": variance,
        "error_is_tail": sympy.simplify(tail - printed) == 0,
        "falls": sympy.diff(tail, _Q).is_negative,
    }
    return held(
        facts,
        "the log ratio is N(−q/2, q) without and N(q/2, q) with the canary, q = gᵀ(kΣ)⁻¹g: the best test's equal "
        "errors are Φ(−√q/2), which falls in q",
    )


def _spectral(weights: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Expr, Expr]:
    """gᵀΣg and gᵀΣ⁻¹g from g's squared coordinates in an eigenbasis and the eigenvalues."""
    pairs = list(zip(weights, values, strict=True))
    return sum((w * v for w, v in pairs), sympy.S.Zero), sum((w / v for w, v in pairs), sympy.S.Zero)


def surrogate() -> Outcome:
    """Judge that to minimise gᵀΣg serves to maximise gᵀΣ⁻¹g."""
    least = Symbol("lambda", positive=True)
    weights = sympy.symbols("w_1:4", positive=True)
    rises = sympy.symbols("t_1:4", nonnegative=True)
    spread, inverse = _spectral(weights, tuple(least + rise for rise in rises))
    # For every g, the eigenvector of the least eigenvalue λ with the same norm does better in both.
    norm = sum(weights)
    common = sympy.factor(spread - least * norm).is_nonnegative and sympy.factor(norm / least - inverse).is_nonnegative
    vectors = ((Rational(3, 5), 0, Rational(4, 5)), (0, 1, 0))
    mixed, pure = (_spectral(tuple(x**2 for x in g), (1, 4, 9)) for g in map(sympy.Matrix, vectors))
    same_norm = all(sum(sympy.sympify(x) ** 2 for x in g) == 1 for g in vectors)
    misleads = same_norm and bool(pure[0] < mixed[0]) and bool(pure[1] < mixed[1])
    shrinks = _spectral((0, 0, 0), (1, 4, 9)) == (0, 0)
    share, other = Symbol("w", positive=True), least + Symbol("t", positive=True)
    slopes = [sympy.diff(part, share) for part in _spectral((share, 1 - share), (least, other))]
    opposite = sympy.factor(-slopes[0] * slopes[1]).is_positive
    kind = (Kind.HYPOTHESIS if misleads or shrinks else Kind.EXACT) if common else Kind.FALSE
    return judged(
        kind,
        "Both have the same optimum if the norm is fixed and every direction can be attained. Without a fixed norm the "
        "minimum is g = 0. If some directions cannot be attained the order may turn: for Σ = diag(1, 4, 9), (0, 1, 0) "
        f"has {pure[0]} < {mixed[0]} and {pure[1]} < {mixed[1]} of (3/5, 0, 4/5)",
        {"common_optimum": bool(common), "opposite_in_two_dimensions": bool(opposite)},
    )


def lower_bound() -> Outcome:
    """Judge gᵀΣ⁻¹g ≥ ‖g‖⁴/(gᵀΣg)."""
    weights, values = sympy.symbols("w_1:4", positive=True), sympy.symbols("lambda_1:4", positive=True)
    spread, inverse = _spectral(weights, values)
    pairs = combinations(zip(weights, values, strict=True), 2)
    squares = sum(w1 * w2 * (v1 - v2) ** 2 / (v1 * v2) for (w1, v1), (w2, v2) in pairs)
    return held(
        vanishes(spread * inverse - sum(weights) ** 2 - squares),
        "(gᵀΣg)(gᵀΣ⁻¹g) − ‖g‖⁴ = Σ over pairs of coordinates of gᵢ²gⱼ²(λᵢ − λⱼ)²/(λᵢλⱼ) ≥ 0, in any number of "
        "coordinates, with equality for eigenvectors only: at a fixed norm, a smaller gᵀΣg raises this bound",
    )


def _expected_form(s: Setting) -> Expr:
    """E⟨u, g⟩² for u = μ + Lz, z ~ N(0, I)."""
    z = vector("z", s.u.rows)
    polynomial = sympy.Poly(sympy.expand(form(sympy.eye(s.u.rows), s.mu + s.root * z, s.g) ** 2), *z)
    moments = {0: 1, 1: 0, 2: 1}
    terms = (coefficient * sympy.prod(moments[p] for p in powers) for powers, coefficient in polynomial.terms())
    return sum(terms, sympy.S.Zero)


def estimate(centred: bool = False) -> Outcome:
    """Judge gᵀΣg ≈ (1/n)·Σgᵀ(uuᵀ)g = (1/n)·Σ⟨u, g⟩², for updates of mean μ or (``centred``) of mean 0."""
    settings = [setting(n)._replace(mu=sympy.zeros(n, 1)) if centred else setting(n) for n in _DIMENSIONS]
    equality = all(vanishes(form(s.u * s.u.T, s.g, s.g) - form(sympy.eye(s.u.rows), s.u, s.g) ** 2) for s in settings)
    biases = [sympy.expand(_expected_form(s) - form(s.root * s.root.T, s.g, s.g)) for s in settings]
    unbiased = not any(biases)
    by_mean = all(vanishes(bias - form(s.mu * s.mu.T, s.g, s.g)) for bias, s in zip(biases, settings, strict=True))
    return judged(
        (Kind.EXACT if unbiased else Kind.HYPOTHESIS) if equality and by_mean else Kind.FALSE,
        "Only if Σ is the uncentred second moment here, or where ⟨μ, g⟩ = 0: in N(kμ, kΣ), before, Σ is the centred "
        "covariance, and the estimate has the mean gᵀΣg + ⟨μ, g⟩², because (1/n)·Σuuᵀ estimates Σ + μμᵀ. The second "
        "equality is exact",
        {"equality": equality, "bias": [text(bias) for bias in biases], "bias_is_of_the_mean": by_mean},
    )


def loss_term(multiple: Expr = N) -> Outcome:
    """Judge that the loss's first term Σ⟨u, g⟩² is the estimate times a constant, for two general updates."""
    first, second, g = (vector(name, 3) for name in ("u", "v", "g"))
    estimated = form((first * first.T + second * second.T) / 2, g, g)
    term = first.dot(g) ** 2 + second.dot(g) ** 2
    holds = vanishes(term - multiple.subs(N, 2) * estimated)
    return held(holds, f"Σ⟨u, g⟩² = {text(multiple)}·(1/n)Σgᵀuuᵀg: the constant is the number of updates")


def singular() -> Outcome:
    """Judge the rank of (1/n)·Σuuᵀ for n < d."""
    ranks = {}
    for count, dimension in ((1, 2), (1, 3), (2, 3)):
        total = sympy.zeros(dimension, dimension)
        for index in range(count):
            update = vector("uvw"[index], dimension)
            total += update * update.T / count
        ranks[f"n={count}, d={dimension}"] = sympy.expand(total.det()) == 0
    return held(
        ranks,
        "a sum of n matrices of rank 1 has rank at most n: for n < d the determinant is identically 0, and no inverse "
        "exists, at whatever cost",
    )


def mean_alternative() -> Outcome:
    """Judge (1/n)·Σ⟨u, g⟩² = ⟨μ̂, g⟩² + gᵀΣ̂g, Σ̂ the centred sample covariance, for two updates."""
    first, second, g = (vector(name, 3) for name in ("u", "v", "g"))
    mean = (first + second) / 2
    spread = sum((form((u - mean) * (u - mean).T, g, g) for u in (first, second)), sympy.S.Zero) / 2
    holds = vanishes((first.dot(g) ** 2 + second.dot(g) ** 2) / 2 - mean.dot(g) ** 2 - spread)
    return held(holds, "what ⟨μ̂, g⟩² leaves out of the loss is gᵀΣ̂g, the part that stands for Σ")


def _line(topic: str, statement: str, judge: Callable[[], Outcome], display: str = "", row: int = 0) -> Check:
    name = f"canife.appendix-a.{topic}" + (f".{row}" if row else "")
    return line(name, "Appendix A", statement, judge, display, row)


def _score_line(topic: str, statement: str, judge: Callable[[], Outcome], display: str = "", row: int = 0) -> Check:
    return line(f"canife.section-3.2.{topic}", "Section 3.2", statement, judge, display, row)


def _own_line(topic: str, statement: str, judge: Callable[[], Outcome]) -> Check:
    return line(f"ours.canife.{topic}", "canife, Appendix A", statement, judge, own=True)


def _shown(rows: Sequence[tuple[str, Formula, Formula]], row: int) -> str:
    """Return a printed line, and say if it is the one before once more."""
    again = " (the line before, printed again)" if row > 1 and rows[row - 1] == rows[row - 2] else ""
    return f"The printed formula is {rows[row - 1][0]}{again}"


LINES: tuple[Check, ...] = (
    _line(
        "sum-of-updates",
        "If updates are N(μ, Σ), the sum of k is N(kμ, kΣ), or N(kμ + g, kΣ) with the canary.",
        sum_of_updates,
    ),
    *(
        _line(display.replace(" ", "-"), _shown(rows, row), partial(formula, *printed), display, row)
        for display, rows in (("densities", DENSITIES), ("log ratio", LOG_RATIO))
        for row, printed in enumerate(rows, 1)
    ),
    _line(
        "centers", "At u ∈ {kμ, kμ + g}, log(p₁/p₀) = ±½·gᵀ(kΣ)⁻¹g.", partial(centers, frozenset({-1, 1})), "centers", 1
    ),
    _line("separation", "A larger gᵀ(kΣ)⁻¹g separates the two Gaussians better.", separation),
    _line("surrogate", "Instead of maximising gᵀ(kΣ)⁻¹g one may minimise gᵀΣg.", surrogate),
    _line(
        "estimate",
        "With the (uncentred) covariance matrix estimated as (1/n)·Σuᵢuᵢᵀ, gᵀΣg ≈ (1/n)·Σgᵀ(uᵢuᵢᵀ)g = (1/n)·Σ⟨uᵢ, g⟩².",
        estimate,
        "estimate",
        1,
    ),
    _line("loss-term", "Up to a constant (1/n)·Σ⟨uᵢ, g⟩² is the first term of the loss (1).", loss_term),
    _score_line(
        "score-without.1",
        "Without the canary ⟨ũ, u_c⟩ ∝ Σ⟨uᵢ, g⟩ + ⟨N(0, σ²I), g⟩ = N(0, σ²‖g‖²).",
        score_without,
        "score without the canary",
        1,
    ),
    _score_line(
        "by-design", "By design the round's updates uᵢ and the canary's gradient g have ⟨uᵢ, g⟩ = 0.", by_design
    ),
    _score_line("score-with", "With the canary the score is N(‖u_c‖², σ_c²), σ_c² being that without.", score_with),
    _score_line("weighted", "Weights on the updates change the result by a fixed scaling factor only.", weighted),
    line(
        "ours.canife.noise",
        "canife, Appendix A",
        "With DP noise the covariance is kΣ + σ²I, and the separation is smaller and bounded.",
        noisy,
        own=True,
    ),
    _own_line("lower-bound", "gᵀΣ⁻¹g ≥ ‖g‖⁴/(gᵀΣg).", lower_bound),
    _own_line("singular", "From n < d updates, (1/n)·Σuᵢuᵢᵀ has no inverse.", singular),
    _own_line("mean-alternative", "(1/n)·Σ⟨uᵢ, g⟩² = ⟨μ̂, g⟩² + gᵀΣ̂g.", mean_alternative),
)
