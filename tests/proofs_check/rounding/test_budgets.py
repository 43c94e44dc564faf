import math

import numpy as np
import pytest

from canaryproof.kernels import gaussian_mechanism
from canaryproof.proofs_check.rounding import budgets
from canaryproof.verify.suites.worst_case.search import Domain, measure
from canaryproof.verify.suites.worst_case.table import read
from canaryproof.verify.suites.worst_case.targets import TARGETS

BY_NAME = {target.name: target for target in TARGETS}
PROVEN = budgets.proven()


def test_the_table_is_what_is_proven():
    assert budgets.written() == (budgets.files(budgets.__package__) / budgets.TABLE).read_text()


def test_all_functions_of_the_table_keep_their_budget_and_are_targets():
    assert set(PROVEN) == {row.function for row in budgets.read()}
    assert set(PROVEN) <= set(BY_NAME)
    assert all(0.0 < ulps <= budgets.BUDGET for ulps in PROVEN.values())


@pytest.mark.parametrize("name", PROVEN)
def test_no_error_found_is_above_the_proven_bound(name):
    target, rng = BY_NAME[name], np.random.default_rng(8)
    rows = [row.arguments for row in read() if row.function == name]
    rows += [target.draw(rng) for _ in range(300)]
    cases = [case for row in rows if (case := measure(target, Domain.PRACTICE, row))]
    assert len(cases) > 5
    # What the enclosure's own width adds is at most an ulp.
    assert max(case.ulps for case in cases) <= PROVEN[name] + 1.0


def test_cells_hold_points_of_practice():
    rng = np.random.default_rng(9)
    cells = budgets._cells()
    for _ in range(30):
        epsilon = math.exp(rng.uniform(math.log(0.1), math.log(50.0)))
        delta = 10.0 ** rng.uniform(-12.0, -0.01)
        sigma = float(gaussian_mechanism.noise_multiplier(epsilon, delta))
        u, m = epsilon * sigma - 0.5 / sigma, 1.0 / sigma
        (cell, *_) = [
            c
            for c in cells
            if float(c.u[0]) <= u <= float(c.u[1]) and float(c.epsilon[0]) <= epsilon <= float(c.epsilon[1])
        ]
        assert cell.m[0] < m < cell.m[1]
        assert cell.w[0] < u + m < cell.w[1]
        assert cell.delta[0] < delta < cell.delta[1]


def test_a_coarser_last_step_breaks_the_bound(monkeypatch):
    monkeypatch.setattr(budgets, "NOISE_STEP", 4e-8)
    monkeypatch.setattr(budgets, "EPSILON_STEP", 1e-7)
    cell = next(c for c in budgets._cells() if float(c.u[0]) > 6.0)
    for ulps in (budgets._epsilon_ulps, budgets._noise_ulps):
        assert budgets.at_precision(192, lambda f=ulps: f(cell)) > budgets.BUDGET


def test_a_worse_primitive_breaks_a_budget(monkeypatch):
    worse = {**budgets._table(), "Mills ratio, x > -37": 1e-16, "density at 0, d >= 100": 1e-14}
    monkeypatch.setattr(budgets, "_table", lambda: worse)
    broken = {row.function for row in budgets.rows() if row.ulps > budgets.BUDGET}
    assert {"null-cosine.pdf", "null-cosine.logpdf", "gaussian-mechanism.delta"} <= broken
