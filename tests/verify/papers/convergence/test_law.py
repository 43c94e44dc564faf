import numpy as np

from canaryproof.verify.papers.convergence import law


def test_the_deviation_of_orthonormal_canaries_is_least_near_half_of_the_dimension():
    deviations = [law.orthonormal_deviation(1000, k, 0.5) for k in range(1, 1000)]
    assert 1 + int(np.argmin(deviations)) == 500
