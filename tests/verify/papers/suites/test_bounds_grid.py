import math

import numpy as np
import pytest
from scipy import special, stats

from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import bounds_grid
from canaryproof.verify.papers.suites.bounds_grid import SHAPES, GridSize, label

CONTEXT = Context(Effort.QUICK, 42)
# jax_privacy 2.0.0, CanaryScoreAuditor(seen, unseen).epsilon_clopper_pearson(0.05, delta, one_sided=False): seed, shift
# and scale of the scores, δ, and ε.
JAX_PRIVACY = (
    (1, 1.0, 1.0, 1e-5, 0.9203900907491085),
    (2, 0.5, 0.6, 1e-5, 1.7074554643112159),
    (3, 3.0, 1.0, 0.001, 2.7776506697254715),
    (4, 0.0, 2.0, 0.0, 0.5568250878496235),
    (5, 0.0, 1.0, 1e-5, 0.0),
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A few audits of a few shapes, measured anew."""
    sizes = (GridSize(20, 40, (1e-5,)), GridSize(200, 20, (1e-5,)))
    monkeypatch.setattr(bounds_grid, "_SIZES", {Effort.QUICK: sizes})
    monkeypatch.setattr(
        bounds_grid, "SHAPES", {name: SHAPES[name] for name in ("N(2, 0.5²)", "N(2, 1²)", "Cauchy + 5")}
    )
    bounds_grid.cells.cache_clear()
    yield
    bounds_grid.cells.cache_clear()


def tail(name, x):
    """The law of a shape's score, by another formula: P(score ≥ x) on the scale of the null."""
    u = stats.norm.sf(x)
    return {
        "N(1, 2²)": stats.norm.sf(x, 1.0, 2.0),
        "Laplace + 3": stats.laplace.sf(stats.laplace.isf(u) - 3.0),
        "t₃ + 2": stats.t.sf(stats.t.isf(u, 3) - 2.0, 3),
        "Cauchy + 5": stats.cauchy.sf(stats.cauchy.isf(u) - 5.0),
        "subsampled, q = 0.1": 0.9 * u + 0.1 * stats.norm.sf(x - 2.5),
        "released with probability 0.01": 0.99 * u + 0.01 * stats.norm.sf(x - 20.0),
        "maxima of 8 rounds": -math.expm1(8.0 * stats.norm.logcdf(special.ndtri((1.0 - u) ** 0.125) - 1.0)),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        *("N(1, 2²)", "Laplace + 3", "t₃ + 2", "Cauchy + 5", "subsampled, q = 0.1"),
        *("released with probability 0.01", "maxima of 8 rounds"),
    ],
)
def test_shapes_have_their_laws(name):
    draws = SHAPES[name](np.random.default_rng(1), (50_000,))
    assert np.all(np.isfinite(draws))
    for x in (-1.0, 0.5, 2.0):
        assert stats.binomtest(int(np.sum(draws >= x)), 50_000, tail(name, x)).pvalue > 1e-7


@pytest.mark.deep
def test_shares_are_of_the_largest_mean():
    rows = bounds_grid.cells(CONTEXT)
    assert {(row.count, row.null) for row in rows} == {(n, null) for n in (20, 200) for null in ("exact", "k")}
    for row in rows:
        assert row.share == pytest.approx(row.means["fixed-sequence"] / max(row.means.values()))
        assert 0.0 < row.share <= 1.0
        assert row.means[row.best] == max(row.means.values())
        names = {"exact": {"normal-scores", "gaussian-dp"}, "k": {"gaussian-dp", "one-run-gaussian"}}[row.null]
        assert set(row.of_a_curve) == (names if row.shape == "N(2, 1²)" else set())
    assert bounds_grid._grid(CONTEXT).verdict is Verdict.CONFIRMED
    assert label(rows[0]) == "N(2, 0.5²), k = 20, exact null, δ = 1e-05"


@pytest.mark.parametrize(("seed", "shift", "scale", "delta", "expected"), JAX_PRIVACY)
def test_either_tail_is_that_of_jax_privacy(seed, shift, scale, delta, expected):
    rng = np.random.default_rng(seed)
    scores = prepare(shift + scale * rng.standard_normal(200), rng.standard_normal(150))
    assert bounds_grid.either_tail(scores, delta, 0.05)[0][0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_split_counts_the_half_that_has_not_chosen():
    scores = prepare(np.full(200, 3.0), np.zeros(100))
    # No error among the 100 and 50 that count: the upper limits of both rates at 97.5%.
    miss, alarm = 1.0 - 0.025 ** (1 / 100), 1.0 - 0.025 ** (1 / 50)
    expected = max(math.log((1.0 - miss) / alarm), math.log((1.0 - alarm) / miss))
    assert bounds_grid.split(scores, 0.0, 0.05)[0][0] == pytest.approx(expected, rel=1e-9)
    assert bounds_grid.split(prepare(np.zeros(200), np.zeros(100)), 0.0, 0.05)[0][0] == 0.0


def test_a_cell_far_below_the_best_is_found(monkeypatch):
    def poor(*_):
        # One shape alone is poor: the mean over all shapes may still do.
        return {
            "fixed-sequence": lambda s, *_: (np.full(40, 0.7 if s.observed.std() < 0.7 else 1.0), None),
            "bonferroni": lambda *_: (np.linspace(0.9, 1.1, 40), None),
        }

    monkeypatch.setattr(bounds_grid, "_SIZES", {Effort.QUICK: (GridSize(20, 40, (1e-5,)),)})
    monkeypatch.setattr(bounds_grid, "_SHARE", 0.5)
    monkeypatch.setattr(bounds_grid, "_methods", poor)
    assert bounds_grid._grid(CONTEXT).verdict is Verdict.REFUTED
    bounds_grid.cells.cache_clear()
    monkeypatch.setattr(bounds_grid, "_LEAST", 0.5)
    assert bounds_grid._grid(CONTEXT).verdict is Verdict.CONFIRMED


def test_a_poor_default_is_found(monkeypatch):
    monkeypatch.setattr(bounds_grid, "DEFAULT", "fixed-threshold")
    assert bounds_grid._grid(CONTEXT).verdict is Verdict.REFUTED


def test_a_bound_that_falls_with_more_scores_is_found(monkeypatch):
    right = bounds_grid._methods

    def stopped(level, kind, count):
        found = right(level, kind, count)
        compute = found["fixed-sequence"]
        found["fixed-sequence"] = lambda scores, delta, alpha: (20.0 / count * compute(scores, delta, alpha)[0], None)
        return found

    assert bounds_grid._consistent(CONTEXT).verdict is Verdict.CONFIRMED
    bounds_grid.cells.cache_clear()
    monkeypatch.setattr(bounds_grid, "_methods", stopped)
    assert bounds_grid._consistent(CONTEXT).verdict is Verdict.REFUTED
