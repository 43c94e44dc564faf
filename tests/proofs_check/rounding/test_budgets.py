import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from flint import arb

from canaryproof.kernels import gaussian_mechanism, null_cosine
from canaryproof.proofs_check.rounding import budgets
from canaryproof.verify.suites.numerics import PATHS
from canaryproof.verify.suites.worst_case.search import Domain, measure
from canaryproof.verify.suites.worst_case.table import read
from canaryproof.verify.suites.worst_case.targets import TARGETS

BY_NAME = {target.name: target for target in (*TARGETS, *PATHS)}
PROVEN = budgets.proven()


def test_the_table_is_what_is_proven():
    assert budgets.written() == (budgets.files(budgets.__package__) / budgets.TABLE).read_text()


def test_all_functions_of_the_table_keep_their_budget_and_are_targets():
    assert set(PROVEN) == {row.function for row in budgets.read()}
    assert set(PROVEN) <= set(BY_NAME)
    assert all(0.0 < ulps <= budgets.BUDGET for ulps in PROVEN.values())


def test_the_readme_says_how_many_budgets_are_proven():
    said = re.search(
        r"(\d+) of (\d+) error budgets in practice are proven", (Path(__file__).parents[3] / "README.md").read_text()
    )
    assert said.groups() == (str(len(PROVEN)), str(len(BY_NAME)))


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


def test_the_fraction_of_the_null_cosine_lies_between_its_bounds():
    rng = np.random.default_rng(10)
    for _ in range(200):
        dim = math.exp(rng.uniform(math.log(100.0), math.log(1e12)))
        x = min(math.sqrt(2.0 / (dim + 2.0)) * math.exp(rng.exponential(0.5)), 0.999)
        ratio, base = (1.0 - x * x) / (x * x), dim - 2.0
        a = [ratio * k * (k + base) / ((2 * k + base - 1) * (2 * k + base + 1)) for k in range(2000)]
        fixed = [0.5 + math.sqrt(0.25 + c) for c in a]
        value = fixed[-1]
        for k in range(1999, 0, -1):
            value = 1.0 + a[k] / value
            assert fixed[k - 1] <= value * (1 + 1e-12)
            assert value <= fixed[k] * (1 + 1e-12)
            assert a[k] < min(k / 2, k * ratio / base) * (1 + 1e-12)
        assert null_cosine._tail_fraction(x, dim) == pytest.approx((dim - 1.0) * value, rel=1e-13)


@pytest.mark.parametrize(("name", "worse"), [("_SEAM", 1), ("_QUANTILE_STEP", 1e-7)])
def test_another_seam_or_last_step_of_the_null_cosine_breaks_its_bounds(name, worse, monkeypatch):
    monkeypatch.setattr(budgets, name, worse)
    try:
        found = budgets.at_precision(192, lambda: [row.ulps for row in budgets._tail_rows()])
    except RuntimeError:
        return
    assert max(found) > budgets.BUDGET


def test_too_few_steps_of_the_fraction_would_show():
    few = budgets.at_precision(192, lambda: max(float(budgets._fraction_start(low, 784)) for low in (2, 10)))
    assert few > 1e-9


def test_bounds_at_the_seam_hold():
    for dim in (100.0, 1e3, 1e6, 1e12):
        for square in (0.8, 2.0):
            x = math.sqrt(square / (dim + 2.0))
            tail = float(null_cosine.sf(x, dim))
            bounds = [
                float(budgets.at_precision(192, partial(bound, arb(square))))
                for bound in (budgets._most_central, budgets._least_slope)
            ]
            assert 0.5 - tail < bounds[0] < 0.5 - 0.9 * tail
            assert 0.9 * x * float(null_cosine.pdf(x, dim)) < bounds[1] < x * float(null_cosine.pdf(x, dim))
        assert tail < 0.11


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
