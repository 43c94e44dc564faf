import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels import exact_law
from canaryproof.proofs_check import joint_law
from canaryproof.proofs_check.consistency import shift
from canaryproof.proofs_check.lines import Kind

NOT_EXACT = {"review.joint-law": Kind.HYPOTHESIS, "final.section-3.1.inference": Kind.WRONG_TERM}


@pytest.mark.parametrize("line", joint_law.LINES, ids=lambda line: line.id)
def test_kind(line):
    assert line.judge().kind is NOT_EXACT.get(line.id, Kind.EXACT)


@pytest.mark.parametrize(("dim", "count", "shows"), [(10**8, 1000, False), (10**4, 1000, True)])
def test_all_cosines_together_look_normal_only_where_k_is_small_against_d_to_two_thirds(dim, count, shows):
    """The mean of √d·g of 40 runs against N(1/σ, 1/(40k)): at level 1e-6, seen where k³ > d² and not where k³ ≪ d²."""
    rng = np.random.default_rng(20261121)
    means = [np.sqrt(dim) * exact_law.cosines(count, dim, 1.0, rng).mean() for _ in range(40)]
    z = (np.mean(means) - 1.0) * np.sqrt(40 * count)
    assert (abs(z) > stats.norm.isf(0.5e-6)) == shows
    # The power where it should be seen, by calculation: the shift is this many standard errors.
    if shows:
        assert abs(shift(dim, count, 1.0)) * np.sqrt(40 * count) > 9.0
    else:
        assert abs(shift(dim, count, 1.0)) * np.sqrt(40 * count) < 0.1
