import pytest
import sympy
from sympy import sqrt

from canaryproof.proofs_check import first_version
from canaryproof.proofs_check.displayed_lines import Kind, kind_of
from canaryproof.proofs_check.limits import in_proportion, limit
from canaryproof.proofs_check.release_moments import moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K
from canaryproof.verify.papers.check.results import Context, Effort

CONTEXT = Context(Effort.QUICK, 0)

HYPOTHESES = {f"v1.section-3.{topic}" for topic in ("consistency", "canary-law", "independence", "estimator")}


@pytest.mark.parametrize("line", first_version.LINES, ids=lambda line: line.id)
def test_kind(line):
    assert kind_of(line.judge(CONTEXT)) is (Kind.HYPOTHESIS if line.id in HYPOTHESES else Kind.EXACT)


ONE = sympy.Integer(1)


@pytest.mark.parametrize(
    "judge",
    [
        lambda: first_version._coordinates(2 / D),
        lambda: first_version._with_sum(ONE, 2 * K / D),
        lambda: first_version._with_sum(2 * ONE, (K - 1) / D),
        lambda: first_version._with_noise(SIGMA**2 / D),
        lambda: first_version._dot_product_limit(ONE, 2 * SIGMA**2),
        lambda: first_version._dot_product_limit(2 * ONE, SIGMA**2),
        lambda: first_version._lengths(SIGMA * sqrt(D), K),
        lambda: first_version._lengths(SIGMA * D, sqrt(K)),
        lambda: first_version._release_length(SIGMA * sqrt(2 * D)),
        lambda: first_version._cosine_limit(1 / SIGMA, 1 / D),
        lambda: first_version._cosine_limit(1 / (SIGMA * sqrt(D)), 2 / D),
        lambda: first_version._independence(SIGMA / sqrt(D)),
        lambda: first_version._estimator(2 * SIGMA),
        lambda: first_version._length_alone(2 * SIGMA),
    ],
)
def test_an_altered_statement_is_found(judge):
    assert kind_of(judge()) is Kind.FALSE


@pytest.mark.parametrize("fails", [True, False])
def test_a_limit_beyond_few_canaries_needs_no_hypothesis(fails):
    kind = kind_of(first_version._few_canaries(True, fails, "found", "beyond"))
    assert kind is (Kind.HYPOTHESIS if fails else Kind.EXACT)


def test_the_limits_differ_where_the_hypothesis_is_needed():
    square = moments("A")[0]
    assert str(limit(square)) == "sigma**2"
    assert str(in_proportion(square)) == "kappa + sigma**2"
