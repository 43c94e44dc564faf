import math
from importlib.resources import files

import numpy as np
import pytest
from scipy import integrate, special, stats

from canaryproof.kernels import gaussian_mechanism, two_gaussians
from canaryproof.proofs_check import discretised_canaries
from canaryproof.proofs_check.discretised_canaries import (
    TABLE,
    Estimates,
    Source,
    bounds,
    canary,
    coordinate,
    epsilon,
    estimates,
    judge,
    moments,
)
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites.stream_quality import quality

TEXT = (files("canaryproof.proofs_check") / "discretised_canaries.md").read_text()
KERNEL = Source()


def integrals(bits):
    """Moments of the error of the quantile at a cell's centre, by quadrature over each cell."""
    width, sums = 2.0 ** (1 - bits), np.zeros(4)

    def integral(q, ends, power, scale):
        def error(x):
            return (q - x) ** power * x**scale * stats.norm.pdf(x)

        return integrate.quad(error, *ends, epsabs=1e-14)[0]

    for i in range(2 ** (bits - 2)):
        q = -special.ndtri((i + 0.5) * width)
        ends = -special.ndtri((i + 1) * width), -special.ndtri(i * width)
        sums += 2 * np.array([*(integral(q, ends, *of) for of in ((2, 0), (4, 0), (2, 2))), q**2 * width])
    return sums


def test_errors_of_a_coordinate_are_those_of_quadrature():
    square, fourth, scaled, mean = integrals(6)
    found = coordinate(Source(6, 0.0, 0.0))
    assert found.square == pytest.approx(math.sqrt(square), rel=1e-9)
    assert found.fourth == pytest.approx(fourth**0.25, rel=1e-9)
    assert found.scaled == pytest.approx(math.sqrt(scaled), rel=1e-9)
    assert found.variance == pytest.approx(1 - mean, rel=1e-9)


def test_bounds_on_inner_cells_are_above_their_sums_and_not_far(monkeypatch):
    exact = discretised_canaries._cells(12)
    monkeypatch.setattr(discretised_canaries, "_CELLS", 32)
    for bound, value in zip(discretised_canaries._cells(12), exact, strict=True):
        assert 1.0 < float(bound) / float(value) < 1.2


def test_variance_lost_to_the_cells_is_that_of_the_law():
    # Two roads: ball arithmetic with a bound on the inner cells, and Euler and Maclaurin in floats.
    assert 1.0 < coordinate(Source(32, 0.0, 0.0)).variance / (1.0 - quality.moment(2)) < 1.01


def test_the_bounds_are_those_of_the_kernel():
    assert KERNEL.bits == quality.BITS
    assert KERNEL.quantile_error == quality.QUANTILE_ERROR


def coupled(rng, shape, source):
    """Normal numbers, and the values that the same words stand for, with the largest error alternating in sign."""
    words = 2 * rng.integers(0, 2 ** (source.bits - 1), shape) + 1
    exact = special.ndtri((words - 1 + 2 * rng.random(shape)) * 2.0**-source.bits)
    outer = np.minimum(words, 2**source.bits - words)
    errors = source.quantile_error * np.where(outer // 2 % 2, 1.0, -1.0)
    return exact, special.ndtri(words * 2.0**-source.bits) * (1.0 + errors)


def release_moments(vectors, sigma, unit):
    canaries = vectors[1:] / np.linalg.norm(vectors[1:], axis=1, keepdims=True)
    released = canaries
    if unit:
        mantissa, exponent = np.frexp(canaries)
        released = np.ldexp(np.round(mantissa / unit) * unit, exponent)
    release = released.sum(axis=0) + sigma * vectors[0]
    products = canaries @ release
    return np.array([release @ release / vectors.shape[1], products.mean(), (products**2).mean()])


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("dim", "count", "sigma", "source"),
    [
        (60, 8, 0.9, Source(8, 0.0, 0.0)),
        (60, 8, 0.9, Source(8, 0.01, 2.0**-8)),
        (60, 8, 0.9, Source(20, 0.01, 0.0)),
        (60, 8, 0.9, Source(20, 0.0, 2.0**-6)),
        (200, 30, 0.5, Source(12, 0.0, 0.0)),
        (200, 3, 3.0, Source(10, 1e-3, 2.0**-9)),
        (12, 40, 0.3, Source(7, 0.0, 0.0)),
    ],
)
def test_simulated_errors_are_below_the_bounds_and_not_far(dim, count, sigma, source):
    rng = np.random.default_rng(11)
    errors = []
    for _ in range(1000):
        exact, found = coupled(rng, (count + 1, dim), source)
        errors.append(release_moments(found, sigma, source.rounding) - release_moments(exact, sigma, 0.0))
    measured = np.sqrt(np.mean(np.square(errors), axis=0))
    bounds = moments(dim, count, sigma, source)
    shares = measured / np.array([bounds.a, bounds.b, bounds.t])
    assert (shares < 1.0).all()
    assert (shares > 0.01).all()


def test_a_simulated_canary_moves_less_than_its_bound():
    source, rng = Source(8, 1e-3, 0.0), np.random.default_rng(12)
    exact, found = coupled(rng, (4000, 50), source)
    exact, found = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (exact, found))
    squares = ((exact - found) ** 2).sum(axis=1)
    second, fourth = canary(50, source)
    assert 0.3 < math.sqrt(squares.mean()) / second < 1.0
    assert 0.3 < np.mean(squares**2) ** 0.25 / fourth < 1.0


def test_simulated_estimates_move_less_than_the_bound():
    dim, count, sigma, source = 2000, 10, 2.0, Source(14, 0.0, 0.0)
    rng, within = np.random.default_rng(13), []
    for _ in range(200):
        seen = []
        for vectors in coupled(rng, (count + 1, dim), source):
            norm, mean, square = release_moments(vectors, sigma, 0.0)
            seen.append((mean / math.sqrt(norm), math.sqrt((square - mean**2) / norm)))
        bound = estimates(dim, count, sigma, 0.1, (abs(seen[1][0]), seen[1][1]), source)
        assert bound.mean < 0.1
        moved = np.abs(np.subtract(*seen))
        within.append(moved[0] <= bound.mean and moved[1] <= bound.deviation)
    # At least 0.9 is proven; 200 runs with fewer than 150 have a probability below 1e-9 then.
    assert sum(within) >= 150


def upwards(value):
    """Two digits, rounded up."""
    digits = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / digits) * digits:.2g}"


@pytest.mark.parametrize("true", TABLE)
def test_the_table_is_what_is_computed(true):
    cells = [upwards(bound) for bound in bounds(true, KERNEL)]
    assert f"| {true} | {' | '.join(cells)} |" in TEXT
    assert [float(cell) for cell in cells] == list(TABLE[true])


def test_the_check_holds_and_is_refuted_for_coarser_canaries():
    (check,) = discretised_canaries.CHECKS
    for true, (_, _, known, estimated) in TABLE.items():
        assert f"{true}" in check.statement
        assert f"{known:.2g}" in check.statement
        assert f"{estimated:.2g}" in check.statement
    context = Context(Effort.QUICK, 0)
    assert check.judge(context).verdict is Verdict.CONFIRMED
    assert judge(context, Source(rounding=2.0**-16)).verdict is Verdict.REFUTED


def test_the_parts_are_what_is_computed():
    dim, count = 10**6, 1000
    sigma = float(gaussian_mechanism.noise_multiplier(3, 1e-6))
    sources = Source(32, 0.0, 0.0), Source(60, 4.6e-7, 0.0), Source(60, 0.0, 2.0**-24), Source(60, 0.0, 0.0)
    seen = 1.0 / math.sqrt(sigma**2 + count / dim), 1.0
    for source in sources:
        assert upwards(estimates(dim, count, sigma, 0.01, seen, source).deviation) in TEXT.replace("\n", " ")


def test_errors_of_a_coordinate_are_printed_as_computed():
    found = coordinate(KERNEL)
    for value in (found.square, found.fourth, found.scaled, found.variance):
        assert upwards(value).replace("e-0", "e-").replace("0.0016", "1.6e-3") in TEXT


def test_no_estimate_in_between_moves_farther():
    seen, moved = (0.6, 1.01), Estimates(0.05, 0.03)
    grid = np.linspace(-1.0, 1.0, 41)
    means, deviations = np.meshgrid(seen[0] + moved.mean * grid, seen[1] + moved.deviation * grid)
    at = two_gaussians.epsilon(1e-6, means, deviations, 0.0, 1.0)
    largest = np.abs(at - two_gaussians.epsilon(1e-6, *seen, 0.0, 1.0)).max()
    assert largest <= epsilon(1e-6, seen, moved) <= 1.001 * largest


def test_small_dimensions_are_refused_and_weak_ones_unbounded():
    with pytest.raises(ValueError, match="dim must be at least 7"):
        canary(6, KERNEL)
    assert estimates(10, 3, 1.0, 0.01, (1.0, 1.0), KERNEL) == Estimates(math.inf, math.inf)
