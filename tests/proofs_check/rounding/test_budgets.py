import math
import re
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest
from flint import arb

from canaryproof.kernels import _tails, gaussian_mechanism, null_cosine, two_gaussians
from canaryproof.proofs_check.rounding import budgets
from canaryproof.verify.papers.suites.numerics import PATHS
from canaryproof.verify.papers.suites.worst_case.search import Domain, measure
from canaryproof.verify.papers.suites.worst_case.table import read
from canaryproof.verify.papers.suites.worst_case.targets import TARGETS

BY_NAME = {target.name: target for target in (*TARGETS, *PATHS)}
PROVEN = budgets.proven()


@pytest.mark.deep
def test_the_table_is_what_is_proven(tables):
    assert tables[1] == (budgets.files(budgets.__package__) / budgets.TABLE).read_text()


def test_all_functions_of_the_table_keep_their_budget_and_are_targets():
    assert set(PROVEN) == {row.function for row in budgets.read()}
    assert set(PROVEN) <= set(BY_NAME)
    assert all(0.0 < ulps <= budgets.BUDGET for ulps in PROVEN.values())


def test_the_readme_says_how_many_budgets_are_proven():
    said = re.search(
        r"(\d+) of (\d+) \[limits of rounding errors\]\(.*?\) are proven; (\d+) rest",
        (Path(__file__).parents[3] / "README.md").read_text(),
    )
    assert [int(number) for number in said.groups()] == [len(PROVEN), len(BY_NAME), len(BY_NAME) - len(PROVEN)]


@pytest.mark.deep(every=3)
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


def short_intervals(count):
    """Yield ε, m, s and δ where Z > ε on an interval that may be short, next to the largest loss, in practice."""
    rng = np.random.default_rng(11)
    while count:
        s, length = rng.uniform(0.5, 1.0), math.exp(rng.uniform(math.log(1e-3), math.log(5.0)))
        alpha, u = (s * s - 1.0) / 2.0, rng.uniform(-length / 2.0, 7.0)
        m = -alpha * (2.0 * u + length) / s
        epsilon = alpha * u * u + m * s * u + m * m / 2.0 - math.log(s)
        if 0.1 <= epsilon <= 50.0:
            delta = math.exp(float(two_gaussians.log_delta(epsilon, m, s, 0.0, 1.0, "forward")))
            if delta >= 1e-12:
                count -= 1
                yield epsilon, m, s, delta


def test_short_intervals_keep_the_proven_bounds():
    worst = {"two-gaussians.log-delta.forward": 0.0, "two-gaussians.epsilon.forward": 0.0}
    for epsilon, m, s, delta in short_intervals(200):
        for name, first in zip(worst, (epsilon, delta), strict=True):
            case = measure(BY_NAME[name], Domain.PRACTICE, (first, m, s, 0.0, 1.0))
            worst[name] = max(worst[name], case.ulps if case else 0.0)
    assert all(0.0 < ulps <= PROVEN[name] + 1.0 for name, ulps in worst.items())


def test_the_rule_errs_less_than_is_proven():
    # 1 − r in pairs of more digits, against the rule on the same interval.
    bound = float(budgets.at_precision(192, budgets._rule_error))
    with mpmath.workdps(30):
        for u, length in ((0.0, 0.1), (3.0, 0.5), (7.0, 1.0), (7.0, 20.0), (-0.05, 0.1)):
            alpha = -0.001 / length * max(u, 1.0)
            q = -alpha * length
            exact = mpmath.quad(
                lambda v, u=u, q=q, alpha=alpha: mpmath.exp(-u * v - v * v / 2) * -mpmath.expm1(-v * (q + alpha * v)),
                [0, min(length, 1.0), length],
            )
            found = _tails._integrals(u, q, alpha, length)[0][0]
            assert abs(found / exact - 1) < bound


@pytest.mark.parametrize(("name", "worse"), [("_CLOSE", 1 - 1e-6), ("_PAIR_STEP", 1e-9), ("_LEAST_EPSILON", arb(0.01))])
def test_other_numbers_break_the_bounds_of_two_gaussians(name, worse, monkeypatch):
    monkeypatch.setattr(budgets, name, worse)
    try:
        found = budgets.at_precision(192, lambda: [row.ulps for row in budgets._pair_rows()])
    except RuntimeError:
        return
    assert max(found) > budgets.BUDGET


def points_of_practice(count):
    """Yield near roots u with what the kernel computes there: q, α, s, excess, rest, and 1 − δ over φ(u)."""
    rng = np.random.default_rng(12)
    while count:
        s = rng.choice([1.0 + rng.choice([-1, 1]) * math.exp(rng.uniform(-12.0, -0.7)), rng.uniform(0.5, 2.0)])
        m = max(0.0, rng.choice([0.0, rng.uniform(0.0, 30.0), math.exp(rng.uniform(-7.0, 3.0))]))
        pair, excess_of = two_gaussians._standardise(m, s, 0.0, 1.0), math.exp(rng.uniform(-12.0, 0.0))
        largest = m * m / (2.0 * (1.0 - s * s)) - math.log(s) if s < 1.0 else 50.0
        epsilon = rng.choice([math.exp(rng.uniform(math.log(0.1), math.log(50.0))), largest * (1.0 - excess_of)])
        if not (0.5 <= s <= 2.0 and 0.1 <= epsilon <= min(largest, 50.0)):
            continue
        u, q, alpha, _, _, deviation = two_gaussians._root(epsilon, *pair)
        if not (q[0] > 0.0 and -9.0 < u[0] < 8.0):
            continue
        excess, rest = (value[0] for value in _tails.tails(u, q, alpha, pair[0], deviation))
        total = _tails.outside(u, q, alpha, pair[0], deviation)[0] + rest
        density = math.exp(-(u[0] ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
        if density * excess >= 1e-13 and density * total >= 1e-16:
            count -= 1
            yield u[0], q[0], alpha[0], excess, rest, total


def test_inequalities_of_two_gaussians_hold():
    most = float(budgets.at_precision(192, budgets._pair_step_square))
    ruled = 0
    for u, q, alpha, excess, rest, total in points_of_practice(8_000):
        ratio, length = rest / (excess + rest), -q / alpha if alpha < 0.0 else math.inf
        density = math.exp(-u * u / 2.0) / math.sqrt(2.0 * math.pi)
        small = density * excess <= 0.5
        assert u < float(budgets._FARTHEST)
        assert u >= -length / 2.0 * (1 + 1e-9)
        assert not small or ratio > 1 / 200
        assert small or total / rest < 1 + 6 * (math.sqrt(u * u + 2 * 50.7) + 1)
        assert alpha < 0.0 or ratio < 0.9989
        if ratio > 0.999:
            ruled += 1
            reach = min(length, math.sqrt(u * u + 92.0) - u)
            assert u >= 0.0 or length <= 1.0
            assert q * reach < 0.2
        # The density of the loss is at most 2φ(u)/q.
        scale = min(1.0 + abs(u), length / 2.0)
        curvature = q * q * (1.0 + (rest / excess if small else 0.0)) + 2.0 * q / rest
        assert scale**2 * curvature / 2.0 < most
    assert ruled > 40
