import pytest

from canaryproof.proofs_check import theorem_3_3, theorem_3_3_square
from canaryproof.proofs_check.lines import Kind
from canaryproof.proofs_check.regime import equation, vanishes
from canaryproof.proofs_check.release_moments import moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K
from canaryproof.proofs_check.theorem_3_3_square import nonnegative

LINES = {line.id.removeprefix("final.theorem-3.3."): line for line in (*theorem_3_3.LINES, *theorem_3_3_square.LINES)}

# What exact moments say of the printed lines; all others hold as printed.
NOT_EXACT = {
    "norm-mean.1": Kind.WRONG_TERM,
    "uncorrelated": Kind.HYPOTHESIS,
    "norm-variance.1": Kind.WRONG_TERM,
    "norm-variance.2": Kind.WRONG_TERM,
    "product-variance.1": Kind.WRONG_TERM,
    "product-variance.2": Kind.WRONG_TERM,
    "square-mean.3": Kind.LEADING_ORDER,
    "square-mean.4": Kind.LEADING_ORDER,
    "square-variance": Kind.WRONG_TERM,
}


@pytest.mark.parametrize("topic", LINES)
def test_kind(topic):
    assert LINES[topic].judge().kind is NOT_EXACT.get(topic, Kind.EXACT)


def test_corrected_variances_are_called_exact():
    # The lines as they should read: nothing right is called wrong.
    norm = (2 * K * (K - 1) / D + 4 * K * SIGMA**2 + 2 * SIGMA**4 * D) / D**2
    assert equation(norm, moments("A")[1], vanishes).kind is Kind.EXACT
    product = (2 * K * (K - 1) / D + K * SIGMA**2) / K**2
    assert equation(product, moments("B")[1], vanishes).kind is Kind.EXACT
    assert equation(1 + SIGMA**2 + (K - 1) / D, moments("T")[0]).kind is Kind.EXACT


@pytest.mark.parametrize("factor", [1, 2, 3, 5])
def test_faults_seeded_into_a_right_line_are_found(factor):
    seeded = (K + factor * SIGMA**2 * D) / D
    assert (equation(seeded, moments("A")[0]).kind is Kind.EXACT) == (factor == 1)


def test_the_printed_variance_of_the_square_is_a_third_too_small():
    evidence = LINES["square-variance"].judge().evidence
    assert evidence["ratio_at_d1e6_k1e3_sigma1"] == pytest.approx(0.6649, abs=1e-4)
    assert evidence["leading_printed"] == "2·σ^4 + 2·σ^2"
    assert evidence["leading_exact"] == "2·σ^4 + 4·σ^2"


def test_nonnegative_proves_and_refuses():
    assert nonnegative((D - 2) * (K - 2) / D, 2, 2)
    assert not nonnegative((D - 3) / D, 2, 2)
