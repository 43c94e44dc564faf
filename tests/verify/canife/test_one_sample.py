import math

import numpy as np
import pytest

from canaryproof.verify.canife.design import Designer, Settings
from canaryproof.verify.canife.factored import FactoredUpdates
from canaryproof.verify.canife.one_sample import Examples, study


@pytest.fixture(scope="module")
def cells(handwriting):
    federation, _, params = handwriting
    design = Examples(federation.test_inputs, federation.test_labels)
    # A pool that doesn't match the data: pixels and labels at random.
    rng = np.random.default_rng(1)
    other = Examples(rng.random((128, 8, 8, 1), np.float32), rng.integers(0, 10, 128).astype(np.int32))
    clients = Examples(federation.inputs[:200], federation.labels[:200])
    designer = Designer(FactoredUpdates(), Settings(steps=1000))

    def table(pool):
        return study(
            designer,
            params,
            pool,
            clients,
            10,
            pools=[128],
            cohorts=[4, 64],
            noise_multipliers=[0.0, 0.5],
            trials=400,
            rng=np.random.default_rng(2),
        )

    return table(design), table(other)


def test_all_combinations_in_order(cells):
    found = [(cell.pool, cell.mechanism.cohort, cell.mechanism.noise_multiplier) for cell in cells[0]]
    assert found == [(128, 4, 0.0), (128, 4, 0.5), (128, 64, 0.0), (128, 64, 0.5)]


def test_deviations_are_those_of_their_law(cells):
    for cell in (*cells[0], *cells[1]):
        assert len(cell.observed) == len(cell.unobserved) == 200
        # Two samples of 200: the mean deviation's own is 0.035 of it for Gaussian scores.
        assert cell.deviation == pytest.approx(cell.law.deviation, rel=0.35)
        assert cell.law.deviation == pytest.approx(math.hypot(cell.law.noise, cell.law.clients))


def test_a_pool_that_does_not_match_leaves_more_of_the_clients_in_the_scores(cells):
    matching, other = cells
    for one, two in zip(matching, other, strict=True):
        assert 2.0 * one.law.clients < two.law.clients
    assert matching[0].law.clients < matching[2].law.clients
