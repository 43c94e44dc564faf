import pytest
import sympy

from canaryproof.proofs_check import release_moments, theorem_3_3
from canaryproof.proofs_check.displayed_lines import Kind, displayed, kind_of
from canaryproof.proofs_check.limits import bounded, equation, limit, vanishes
from canaryproof.proofs_check.release_moments import moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, expectation, sum_of_variances
from canaryproof.proofs_check.theorem_3_3 import nonnegative
from canaryproof.verify.papers.check.results import Context, Effort

CONTEXT = Context(Effort.QUICK, 0)

LINES = {line.id.removeprefix("final.theorem-3.3."): line for line in theorem_3_3.LINES}

# What exact moments say of the printed lines; all others hold as printed.
NOT_EXACT = {
    "norm-mean.1": Kind.HYPOTHESIS,
    "uncorrelated": Kind.HYPOTHESIS,
    "norm-variance.1": Kind.LEADING_ORDER,
    "product-variance.1": Kind.LEADING_ORDER,
    "square-mean.3": Kind.LEADING_ORDER,
    "square-variance": Kind.WRONG_TERM,
}


@pytest.mark.parametrize("topic", LINES)
def test_kind(topic):
    assert kind_of(LINES[topic].judge(CONTEXT)) is NOT_EXACT.get(topic, Kind.EXACT)


ONE = sympy.Integer(1)


def tends_to_noise(mean):
    return limit(mean) == SIGMA**2


@pytest.mark.parametrize(
    ("kind", "judge"),
    [
        (Kind.FALSE, lambda: theorem_3_3._theorem(1 / SIGMA**2, ONE)),
        (Kind.FALSE, lambda: theorem_3_3._theorem(1 / SIGMA, 2 * ONE)),
        (Kind.FALSE, lambda: theorem_3_3._definition(1 / (K - 1))),
        (Kind.FALSE, lambda: theorem_3_3._rewriting(1)),
        (Kind.FALSE, lambda: theorem_3_3.converges("A", SIGMA)),
        (Kind.FALSE, lambda: theorem_3_3.converges("B", 1 + SIGMA)),
        (Kind.FALSE, lambda: theorem_3_3._chi_squared(D, D)),
        (Kind.FALSE, lambda: theorem_3_3._chi_squared(D - 1, 2 * D)),
        (Kind.FALSE, lambda: theorem_3_3._inner_product(0, 1 / (D + 2))),
        (Kind.EXACT, lambda: theorem_3_3._first_of_mean(True)),
        (Kind.EXACT, lambda: theorem_3_3._uncorrelated(False)),
        (Kind.FALSE, lambda: theorem_3_3._norm_converges(SIGMA**2)),
        (Kind.FALSE, lambda: theorem_3_3._both_equalities(2)),
        (Kind.FALSE, lambda: theorem_3_3.order("A", 0, "o(1)", vanishes)),
        (Kind.FALSE, lambda: theorem_3_3.order("A", 1, "O(1/d²)", lambda e: bounded(D**2 * e))),
        (Kind.FALSE, lambda: theorem_3_3.order("B", 1, "O(1/d)", lambda e: bounded(D * e))),
        (Kind.WRONG_TERM, lambda: theorem_3_3._exact_of("A", 0, (K + 2 * SIGMA**2 * D) / D, tends_to_noise)),
        (Kind.FALSE, lambda: theorem_3_3._goes_on(2 * SIGMA**2 / K, theorem_3_3._product_variance_printed)),
        (Kind.FALSE, lambda: theorem_3_3._deviation(1 / K)),
        (Kind.FALSE, lambda: theorem_3_3._scaled_deviation(D / theorem_3_3._NORM)),
        (Kind.FALSE, lambda: theorem_3_3._sufficient(SIGMA**2)),
        (Kind.EXACT, lambda: theorem_3_3._variance_of_square(lambda: moments("T")[1])),
        (Kind.WRONG_TERM, lambda: theorem_3_3._same_mean(1 + 2 * SIGMA**2)),
        (Kind.FALSE, lambda: theorem_3_3._by_case(lambda a, b: 2 * expectation(a, b, a, b))),
        (Kind.FALSE, lambda: theorem_3_3._at_most(1 / D, 1 / D**2)),
        (Kind.FALSE, lambda: theorem_3_3._together(2 * (K - 1) / (K * D))),
        (Kind.FALSE, lambda: theorem_3_3._together(3 * K / D)),
        (Kind.FALSE, lambda: theorem_3_3._mixed_sum(2 * SIGMA**2 / K)),
        (Kind.FALSE, lambda: theorem_3_3._noise_sum(SIGMA**4 / K)),
        (Kind.FALSE, lambda: theorem_3_3._squared_product(SIGMA**4)),
    ],
)
def test_an_altered_statement_changes_the_kind(kind, judge):
    assert kind_of(judge()) is kind


@pytest.mark.parametrize("name", "ABTW")
def test_a_variance_that_stays_is_found(name, monkeypatch):
    monkeypatch.setattr(
        release_moments, "moments", lambda which: (moments(which)[0], moments(which)[1] + int(which == name))
    )
    assert kind_of(theorem_3_3.converges(name, limit(moments(name)[0]))) is Kind.FALSE
    if name != "T":
        assert kind_of(theorem_3_3._theorem(1 / SIGMA, ONE)) is Kind.FALSE


def test_correlated_products_would_be_found(monkeypatch):
    # As if no covariance vanished.
    monkeypatch.setattr(theorem_3_3, "expectation", lambda *edges: 1 + expectation(*edges))
    assert kind_of(theorem_3_3._uncorrelated(True)) is Kind.FALSE


def test_corrected_variances_are_called_exact():
    # The lines as they should read: nothing right is called wrong.
    norm = (2 * K * (K - 1) / D + 4 * K * SIGMA**2 + 2 * SIGMA**4 * D) / D**2
    assert kind_of(equation(norm, moments("A")[1], vanishes)) is Kind.EXACT
    product = (2 * K * (K - 1) / D + K * SIGMA**2) / K**2
    assert kind_of(equation(product, moments("B")[1], vanishes)) is Kind.EXACT
    assert kind_of(equation(1 + SIGMA**2 + (K - 1) / D, moments("T")[0])) is Kind.EXACT


@pytest.mark.parametrize("factor", [1, 2, 3, 5])
def test_faults_seeded_into_a_right_line_are_found(factor):
    seeded = (K + factor * SIGMA**2 * D) / D
    assert (kind_of(equation(seeded, moments("A")[0])) is Kind.EXACT) == (factor == 1)


def test_the_printed_variance_of_the_square_is_a_third_too_small():
    evidence = LINES["square-variance"].judge(CONTEXT).evidence
    assert evidence["ratio_at_d1e6_k1e3_sigma1"] == pytest.approx(0.6649, abs=1e-4)
    assert evidence["leading_printed"] == "2·σ⁴ + 2·σ²"
    assert evidence["leading_exact"] == "2·σ⁴ + 4·σ²"


def test_nonnegative_proves_and_refuses():
    assert nonnegative((D - 2) * (K - 2) / D, 2, 2)
    assert not nonnegative((D - 3) / D, 2, 2)


def test_the_displays_of_the_variance_add_up():
    # The three sums that the proof bounds one by one are the printed variance.
    rows = {displayed(line)[0] for line in theorem_3_3.LINES if displayed(line)}
    assert rows == set(theorem_3_3.DISPLAYS)
    triple = sum_of_variances(("i", "j"), ("i", "l"))
    by_hand = K * (2 * (K - 1) / D + (K - 1) * (K - 2) / D**2 + (K - 1) * 2 * (D - 1) / (D**2 * (D + 2)))
    assert sympy.cancel(triple - by_hand) == 0
    mixed = 2 * SIGMA**2 * sum_of_variances(("i", "j"), ("i", "Z"))
    assert sympy.cancel(mixed - 2 * SIGMA**2 * (K + K * (K - 1) / D)) == 0
