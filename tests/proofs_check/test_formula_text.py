import re

import pytest
import sympy
from sympy import Rational, Symbol, exp, gamma, log, oo, pi, sqrt

from canaryproof.proofs_check.formula_text import shortened, text
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K
from canaryproof.verify.papers.suites.theorems import MODULES

T, MU = Symbol("t", positive=True), Symbol("mu_1", real=True)
LINES = [line for module in MODULES for line in module.LINES]


@pytest.mark.parametrize(
    ("expression", "spelled"),
    [
        (SIGMA**2 + K / D, "σ² + k/d"),
        (1 / (4 * sqrt(D)), "1/(4·√d)"),
        (-1 / (2 * SIGMA**3), "−1/(2·σ³)"),
        (1 / sqrt(SIGMA**2 + K / D), "1/√(σ² + k/d)"),
        (1 / (K + 1), "1/(k + 1)"),
        (K ** Rational(3, 2) / D, "k^(3/2)/d"),
        (T**12, "t¹²"),
        (K * (K - 1), "k² − k"),
        ((D + 2) / (D**2 + D), "(d + 2)/(d·(d + 1))"),
        (gamma(D / 2) / gamma((D - 1) / 2) / sqrt(pi), "Γ(d/2)/(√π·Γ((d − 1)/2))"),
        ((1 - T**2 / D) ** ((D - 3) / 2), "(1 − t²/d)^((d − 3)/2)"),
        ((T - MU) ** 2 * exp(-T), "(t − μ₁)²·exp(−t)"),
        (-sqrt(2) * log(1 - T) / 3, "−√2·log(1 − t)/3"),
        (2**D, "2^d"),
        (-oo, "−∞"),
        (-3, "−3"),
        (None, "none shown"),
    ],
)
def test_text(expression, spelled):
    assert text(expression) == spelled


@pytest.mark.parametrize("expression", [SIGMA**2 / (D + K), sqrt(D) * (K - 1) ** 3 / (2 * D), -(D**-2) + 1 / (K * D)])
def test_what_is_spelled_means_the_same(expression):
    spelled = re.sub("[²³]", lambda power: f"**{'²³'.index(power[0]) + 2}", text(expression))
    spelled = re.sub("√([a-z])", r"sqrt(\1)", spelled).replace("·", "*").replace("−", "-").replace("σ", "sigma")
    names = {str(symbol): symbol for symbol in (D, K, SIGMA)}
    assert sympy.cancel(sympy.sympify(spelled, locals=names) - expression) == 0


def test_what_is_too_long_is_in_the_evidence():
    assert shortened(SIGMA**2) == "σ²"
    assert "evidence" in shortened(sympy.expand((1 + D) ** 40))


def test_no_two_lines_of_a_document_have_the_same_statement():
    shown = [(line.id.partition(".")[0], line.statement) for line in LINES]
    assert [one for one in shown if shown.count(one) > 1] == []


def test_no_line_shows_code(quick_run):
    shown = {line.id: f"{line.statement} {quick_run.results[line.id].finding}" for line in LINES}
    code = re.compile(r"\*|sqrt\(|gamma\(|\bpi\b|\boo\b|sigma|epsilon")
    assert {name: text for name, text in shown.items() if code.search(text)} == {}
