"""Loops give the same bits whether Python runs them or numba has compiled them."""

import inspect
import math
import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from canaryproof.kernels import _compiled, binomial, gaussian_mechanism, null_cosine, threshold_attack, two_gaussians
from canaryproof.kernels._compiled import CompiledFunction, evaluate, njit
from canaryproof.verify.audit.bounds import fixed_sequence, guesses, thresholds
from canaryproof.verify.papers.suites.worst_case.table import read
from canaryproof.verify.papers.suites.worst_case.targets import TARGETS

INFINITE = math.inf
KERNELS = (binomial, gaussian_mechanism, null_cosine, threshold_attack, two_gaussians)
LOOPS = {
    value for module in KERNELS for value in vars(module).values()
    if isinstance(value, CompiledFunction) and value.__module__ == module.__name__
    and list(inspect.signature(value).parameters)[-1] == "result"
}  # fmt: skip
# By the kernel and its first two arguments: where formulas divide by zero, take its logarithm or overflow, and the ends
# of domains.
DELTAS, SIGMAS, PAIRS = (2.0**-1022, 0.5, 1.0 - 2.0**-53), (1e-14, 1.0, 1e50), ((0.0, 1.0), (1e-10, 0.5, 1.0, 1e10))
EPSILONS = (0.0, 5e-324, 1.0, 1e28)
COSINES = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, INFINITE, -INFINITE, 5e-324)
EDGES = {
    ("null-cosine", "x", "dim"): product(COSINES, (2.0, 3.0, 4.0, 1e12)),
    ("null-cosine", "q", "dim"): product((0.0, 1.0, 0.5, 5e-324, 0.17), (2.0, 3.0, 1e12)),
    ("gaussian-mechanism", "epsilon", "noise_multiplier"): product(EPSILONS, SIGMAS),
    ("gaussian-mechanism", "delta", "noise_multiplier"): product(DELTAS, SIGMAS),
    ("gaussian-mechanism", "epsilon", "delta"): product(EPSILONS, DELTAS),
    ("two-gaussians", "epsilon", "mu1"): product(EPSILONS, *PAIRS, (0.0,), (1.0,)),
    ("two-gaussians", "delta", "mu1"): product(DELTAS, *PAIRS, (0.0,), (1.0,)),
    ("binomial", "successes", "trials"): ((0, 1, 1e-100), (1, 1, 0.9999999), (5, 1e9, 0.9999999)),
}
EDGES = {key: tuple(rows) for key, rows in EDGES.items()}


def both_ways(monkeypatch, call):
    """Return what a call gives where Python runs all loops, and where none; and the loops that were run."""
    run, results = set(), []
    for in_python in (True, False):

        def chosen(loop, _elements, in_python=in_python):
            run.add((loop, in_python))
            return in_python

        monkeypatch.setattr(CompiledFunction, "is_quick_in_python", chosen)
        results.append(call())
    return *results, run


def assert_same_bits(first, second):
    first, second = np.atleast_1d(first), np.atleast_1d(second)
    assert (first.dtype, first.shape) == (second.dtype, second.shape)
    # NaNs have a sign, of which nobody speaks.
    same = (first.view(np.int64) == second.view(np.int64)) | (np.isnan(first) & np.isnan(second))
    assert same.all(), f"{first[~same]} in Python, {second[~same]} compiled"


def inputs(target, draws):
    rng = np.random.default_rng(2027)
    rows = [*target.seams, *(worst.arguments for worst in read() if worst.function == target.name)]
    rows += [row for row in (target.draw(rng) for _ in range(draws)) if target.inside(*row)]
    return np.array([*rows, *EDGES[target.topic, *target.names[:2]]], dtype=float).T


def checked(target, draws, monkeypatch):
    """Compare a kernel's bits on edges, seams, worst inputs and draws, and return the loops."""
    arguments = inputs(target, draws)
    in_python, compiled, run = both_ways(monkeypatch, lambda: target.kernel(*arguments))
    assert_same_bits(in_python, compiled)
    return run


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("draws", [30, pytest.param(10_000, marks=pytest.mark.deep)])
def test_python_gives_a_kernels_bits_in_all_of_its_domain(monkeypatch, target, draws):
    assert {in_python for _, in_python in checked(target, draws, monkeypatch)} == {True, False}


@pytest.mark.parametrize("draws", [30, pytest.param(10_000, marks=pytest.mark.deep)])
def test_python_gives_the_threshold_attacks_bits(monkeypatch, draws):
    rng = np.random.default_rng(2028)
    delta, distance = 10.0 ** rng.uniform(-300, -0.01, draws), rng.uniform(-80, 80, draws) * 10.0 ** -rng.integers(0, 9)
    ratio = np.where(rng.random(draws) < 0.2, 1.0, 10.0 ** rng.uniform(-5, 5, draws))
    call = lambda: threshold_attack.threshold_epsilon(delta, distance, ratio)  # noqa: E731
    in_python, compiled, _ = both_ways(monkeypatch, call)
    assert_same_bits(in_python, compiled)


def test_every_kernels_loops_are_tried(monkeypatch):
    tried = {loop for target in TARGETS for loop, _ in checked(target, 0, monkeypatch)}
    assert LOOPS - tried == {threshold_attack._thresholds}


@pytest.mark.parametrize("count", [1, 2, 300])
def test_python_gives_the_bits_of_the_bounds_loops(monkeypatch, count):
    rng = np.random.default_rng([2029, count])
    # Scores that are equal, and limits of logarithms that are infinite.
    observed, unobserved = (np.sort(np.round(rng.normal(shift, 1.0, (3, count)), 1)) for shift in (0.5, 0.0))
    logs = np.append(-math.inf, np.log(np.linspace(0.1, 1.0, count)))
    at = np.arange(0, count, 2)
    calls = {
        "exact": lambda: thresholds._exact(
            observed, at, np.log(rng.random((3, len(at)))), logs[::-1].copy(), logs, 1e-5, True
        ),
        "sweep": lambda: thresholds._sweep_sample(
            observed, unobserved, logs[::-1].copy(), logs, logs, logs[::-1].copy(), True
        ),
        "sums": lambda: (fixed_sequence._sums(observed, np.linspace(-3, 3, 9)),),
        "order": lambda: guesses.pooled_order(observed, unobserved),
    }
    for call in calls.values():
        rng = np.random.default_rng([2030, count])
        in_python, compiled, run = both_ways(monkeypatch, lambda call=call: call())
        assert {way for _, way in run} == {True, False}
        for first, second in zip(in_python, compiled, strict=True):
            assert_same_bits(first, second)


@njit(error_model="numpy")
def refused(a, b, which, result):
    for i in range(result.size):
        x, y = a[i], b[i]
        values = (x / y, x / (y / 3.0), math.log(x), math.log1p(x), math.sqrt(x), math.exp(x), math.expm1(x))
        result[i] = values[int(which[i])]


def test_python_has_numpys_value_where_it_refuses_to_calculate(monkeypatch):
    extremes = [0.0, -0.0, 1.0, -1.0, 800.0, -800.0, 1e308, -1e308, INFINITE, -INFINITE, math.nan, 5e-324]
    arguments = [array.ravel() for array in np.meshgrid(extremes, extremes, np.arange(7.0), indexing="ij")]
    with np.errstate(all="raise"):
        in_python, compiled, _ = both_ways(monkeypatch, lambda: evaluate(refused, *arguments))
    assert_same_bits(in_python, compiled)
    assert np.isinf(compiled).any()
    assert np.isnan(compiled).any()


@pytest.mark.parametrize("at", [0, 1, 49, 50, 51, 149])
def test_a_loop_that_python_has_begun_is_ended_by_compiled_code(monkeypatch, at):
    x = np.linspace(-0.3, 0.3, 150)
    whole = null_cosine.logsf(x, 1000.0)
    left = iter([True] * (at // _compiled._PIECE) + [False])
    monkeypatch.setattr(CompiledFunction, "is_quick_in_python", lambda *_: next(left))
    assert_same_bits(null_cosine.logsf(x, 1000.0), whole)


FEW = """
import sys, numpy as np, canaryproof as cp
few = cp.null_cosine.logsf(np.linspace(-0.1, 0.1, 100), 1000), cp.gaussian_mechanism.epsilon(1e-6, 1.0)
print("numba" in sys.modules)
cp.null_cosine.pdf(np.zeros(10**5), 1000)
print("numba" in sys.modules)
"""


def test_few_elements_load_no_compiler_and_many_do(tmp_path):
    place = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FEW], env=place, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
