import pytest
from sympy import sqrt

from canaryproof.proofs_check import data_vectors
from canaryproof.proofs_check.displayed_lines import Kind, kind_of
from canaryproof.proofs_check.limits import KAPPA
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K
from canaryproof.verify.papers.check.results import Context, Effort

CONTEXT = Context(Effort.QUICK, 0)

NOT_EXACT = {
    "final.footnote-2": Kind.HYPOTHESIS,
    "review.ratio-of-clients": Kind.HYPOTHESIS,
}


@pytest.mark.parametrize("line", data_vectors.LINES, ids=lambda line: line.id)
def test_kind(line):
    assert kind_of(line.judge(CONTEXT)) is NOT_EXACT.get(line.id, Kind.EXACT)


BETA = data_vectors._BETA


@pytest.mark.parametrize(
    ("kind", "judge"),
    [
        (Kind.EXACT, lambda: data_vectors._footnote(sqrt(D))),
        (Kind.FALSE, lambda: data_vectors._footnote(D**2)),
        (Kind.EXACT, lambda: data_vectors._ratio(sqrt(D))),
        (Kind.FALSE, lambda: data_vectors._ratio(D**2)),
        (Kind.EXACT, lambda: data_vectors._no_matter_how_many(sqrt(D), sqrt(D))),
        (Kind.EXACT, lambda: data_vectors._no_matter_how_many(D / 2, sqrt(D))),
        (Kind.FALSE, lambda: data_vectors._no_matter_how_many(D / 2, D / 3)),
        (Kind.FALSE, lambda: data_vectors._limit_law(1 / (SIGMA + sqrt(BETA)), 1)),
        (Kind.FALSE, lambda: data_vectors._limit_law(1 / sqrt(SIGMA**2 + BETA), 2)),
        (Kind.FALSE, lambda: data_vectors._independent_data(data_vectors._DATA**2)),
        (Kind.FALSE, lambda: data_vectors._dilution(10**5, 10**6, sqrt(1 + 100 / SIGMA**2))),
        (Kind.FALSE, lambda: data_vectors._dilution(10**3, 10**6, sqrt(1 + 10**4 / SIGMA**2))),
        (Kind.FALSE, lambda: data_vectors._proportional(1 / SIGMA, 1)),
        (Kind.FALSE, lambda: data_vectors._proportional(1 / sqrt(SIGMA**2 + KAPPA), 1 + KAPPA)),
        (Kind.FALSE, lambda: data_vectors._fixed_count(SIGMA**2 / K**2)),
    ],
)
def test_an_altered_statement_changes_the_kind(kind, judge):
    assert kind_of(judge()) is kind


def test_limit_without_data_is_the_theorems():
    mean, variance, concentrate = data_vectors.limits_with_data(0)
    assert concentrate
    assert str(mean) == "1/sigma"
    assert variance == 1
