import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import orthonormal

CONTEXT = Context(Effort.QUICK, 3)


@pytest.mark.parametrize("layers", [1, 2])
def test_residuals_have_no_trace_of_who_took_part(layers):
    found = np.concatenate([orthonormal.residuals(seed, 500, 0.3, layers) for seed in range(40)])
    assert stats.kstest(found, "norm").pvalue >= 1e-6
    halves = found.reshape(40, 2, 250).mean(axis=2)
    assert np.abs(halves[:, 0] - halves[:, 1]).max() <= stats.norm.isf(1e-6 / 80) * np.sqrt(2.0 / 250)


def test_data_of_which_fixed_transforms_make_least_are_unit_vectors():
    for vector in (*orthonormal._worst_data(4096).values(), *orthonormal._worst_data(3000).values()):
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", ["orthonormal.estimates", "orthonormal.convergence"])
def test_other_seeds_hold_too(name):
    (check,) = (each for each in orthonormal.CHECKS if each.id == name)
    assert check.judge(CONTEXT).verdict is Verdict.CONFIRMED
