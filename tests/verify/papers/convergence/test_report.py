"""The convergence report: its numbers by second ways, its words, and its file."""

import dataclasses
import functools
import json
import math
import textwrap
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.estimators.moments import from_dimension, from_two_groups
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import read, to_document
from canaryproof.verify.audit.markup.digits import percent_up
from canaryproof.verify.papers.convergence import accuracy, errors, law, orders, report
from canaryproof.verify.papers.records.convergence_report import ConvergenceReport, tables

SMALL = {"dim": 1e4, "canaries": 40, "epsilon": 3.0, "estimator": ("pinned", "fitted"), "replicates": 200}


@pytest.fixture(scope="module")
def small():
    return report.convergence(**SMALL)


# d from 3 to 10⁹, k from 2 to 10⁵.
SETTINGS = [
    *((3, 2, 3.0), (10, 5, 0.3), (30, 10, 1.0), (100, 10, 10.0), (1000, 100, 3.0), (10**4, 40, 1.0)),
    *((10**4, 10**3, 30.0), (10**5, 300, 2.0), (10**6, 1000, 10.0), (10**7, 10**5, 1.0), (10**8, 10**4, 0.1)),
    (10**9, 10**5, 100.0),
]


@pytest.mark.deep(beyond=4)
@pytest.mark.parametrize(("dim", "count", "epsilon"), SETTINGS)
def test_distances_and_tails_are_those_of_quadrature(dim, count, epsilon):
    """½∫|f − φ|, the largest |F − Φ| and the tail, by mpmath's quadrature of the densities."""
    sigma = float(gaussian_mechanism.noise_multiplier(epsilon, 1e-6))
    score = law.threshold(sigma, epsilon)
    with mpmath.workdps(40):
        d, root = mpmath.mpf(dim), mpmath.sqrt(dim)
        constant = mpmath.loggamma(d / 2) - mpmath.loggamma((d - 1) / 2) - mpmath.log(mpmath.pi * d) / 2

        def density(t):
            return mpmath.exp(constant + (d - 3) / 2 * mpmath.log(max(1 - t * t / d, mpmath.mpf(10) ** -60)))

        def gap(t):
            return density(t) - mpmath.npdf(t)

        # The densities cross twice, or once if the cosine's ends where it is larger.
        edges = [0, mpmath.findroot(gap, (0.3, 1.2), solver="anderson")]
        edges += [mpmath.findroot(gap, (1.8, min(2.6, 0.999 * root)), solver="anderson")] if dim > 3 else []
        far = min(root, mpmath.mpf(30))
        pieces = [mpmath.quad(gap, piece) for piece in pairwise([*edges, far])]
        beyond = mpmath.ncdf(-far)
        variation = sum(map(abs, pieces)) + beyond
        kolmogorov = max(abs(sum(pieces[: i + 1])) for i in range(len(edges)))
        found = law.distances(dim)
        assert found.total_variation[0] == pytest.approx(float(variation), rel=1e-12)
        assert found.kolmogorov[0] == pytest.approx(float(max(kolmogorov, beyond)), rel=1e-12)
        if score < root:
            # Beyond some deviations more nothing is left of a tail.
            nodes = [mpmath.mpf(score) + mpmath.mpf(step) / 8 for step in range(100)]
            nodes = [node for node in nodes if node < root - mpmath.mpf(1) / 16]
            normal = mpmath.ncdf(-score)
            # The quadrature's errors are absolute, and tails are minute.
            tail = mpmath.quad(lambda t: density(t) / normal, [*nodes, min(root, nodes[-1] + 1)]) - 1
            assert law.tail_error(score, dim)[0] == pytest.approx(float(tail), rel=1e-12)
        else:
            assert law.tail_error(score, dim) == (-1.0, -1.0)
    assert found.total_variation[1] < found.total_variation_bound
    assert found.kolmogorov[1] < found.kolmogorov_bound
    # δ(ε) is what the mechanism has beyond the score, less e^ε times what the null has.
    delta = stats.norm.sf(score - 1.0 / sigma) - math.exp(epsilon) * stats.norm.sf(score)
    assert delta == pytest.approx(1e-6, rel=1e-6)
    # More canaries move ε̂ further, whatever the dimension.
    displaced = [law.displaced_epsilon(dim, k, sigma, 1e-6) for k in (count, 2 * count)]
    assert displaced[1] < displaced[0] < epsilon


@pytest.mark.parametrize("dim", [2, 3])
def test_distances_are_those_of_the_arcsine_and_of_the_uniform_law(dim):
    """√d times a cosine: by the closed forms of the distribution, between the points where the densities cross."""
    root = math.sqrt(dim)
    below = {2: lambda t: 0.5 + math.asin(t / root) / math.pi, 3: lambda t: 0.5 + 0.5 * t / root}[dim]
    density = {2: lambda t: 1.0 / (math.pi * math.sqrt(2.0 - t * t)), 3: lambda _: 0.5 / root}[dim]
    grid = np.linspace(1e-9, root - 1e-9, 2001)
    gaps = np.array([density(t) for t in grid]) - stats.norm.pdf(grid)
    changes = np.flatnonzero(np.sign(gaps[1:]) != np.sign(gaps[:-1]))
    crossings = [
        optimize.brentq(lambda t: density(t) - stats.norm.pdf(t), grid[i], grid[i + 1], xtol=1e-14) for i in changes
    ]
    ends = [0.0, *crossings, root]
    differences = [below(t) - stats.norm.cdf(t) for t in ends]
    variation = sum(abs(b - a) for a, b in pairwise(differences)) + stats.norm.sf(root)
    found = law.distances(dim)
    assert found.total_variation[0] == pytest.approx(variation, rel=1e-9)
    assert found.kolmogorov[0] == pytest.approx(max(map(abs, differences)), rel=1e-9)
    assert law.tail_error(1.0, dim)[0] == pytest.approx((1.0 - below(1.0)) / stats.norm.sf(1.0) - 1.0, rel=1e-9)


def literal_runs(rng, runs, dim, count, sigma):
    """Algorithm 1 as printed, every coordinate drawn."""
    canaries = rng.standard_normal((runs, count, dim))
    canaries /= np.linalg.norm(canaries, axis=2, keepdims=True)
    release = canaries.sum(axis=1) + sigma * rng.standard_normal((runs, dim))
    return canaries, release


def test_dependence_is_that_of_literal_runs():
    dim, count, sigma = 20, 5, 0.7
    canaries, release = literal_runs(np.random.Generator(np.random.MT19937(5)), 50_000, dim, count, sigma)
    products = np.einsum("rkd,rd->rk", canaries, release)
    measured = np.corrcoef(products[:, 0], products[:, 1])[0, 1]
    # A correlation of so many pairs errs by 1/√50,000 = 0.0045: five errors.
    assert law.correlation(dim, count, sigma) == pytest.approx(measured, abs=0.0224)
    assert law.correlation(dim, count, sigma) > 0.05


@pytest.mark.parametrize(
    ("dim", "count", "epsilon"),
    [
        (200, 20, 3.0),
        pytest.param(600, 100, 10.0, marks=pytest.mark.deep),
        pytest.param(60, 5, 1.0, marks=pytest.mark.deep),
    ],
)
def test_errors_and_coverage_are_those_of_literal_runs(dim, count, epsilon):
    """Another generator, all coordinates: within 5 standard errors of both."""
    runs = 1000
    request = report.checked_request(dim, count, epsilon, None, 1e-6, ("adaptive", "pinned"), runs, 0)
    sigma = request.noise_multipliers[0]
    rng = np.random.Generator(np.random.MT19937(11))
    scores = []
    for _ in range(runs // 500):
        canaries, release = literal_runs(rng, 500, dim, count, sigma)
        products = np.einsum("rkd,rd->rk", canaries, release)
        scores.append(products / np.linalg.norm(release, axis=1)[:, None])
    moments = from_dimension(np.concatenate(scores), dim)
    for measured in report._measured_errors(request, dim, count).by_epsilon[0]:
        estimate = errors.ESTIMATORS[measured.estimator](moments, 1e-6)
        covered = float(((estimate.low <= epsilon) & (epsilon <= estimate.high)).mean())
        spread = math.sqrt(2.0 * covered * (1.0 - covered) / runs)
        assert measured.coverage == pytest.approx(covered, abs=5.0 * spread + 1e-9)
        bias = float(estimate.epsilon.mean()) - epsilon
        assert measured.bias == pytest.approx(bias, abs=5.0 * math.hypot(measured.bias_error, measured.bias_error))


@pytest.mark.parametrize(
    ("name", "dim", "count", "epsilon"),
    [
        pytest.param("pinned", 10**6, 1000, 3.0, marks=pytest.mark.deep),
        pytest.param("fitted", 10**5, 300, 2.0, marks=pytest.mark.deep),
        pytest.param("adaptive", 10**4, 2000, 3.0, marks=pytest.mark.deep),
        ("pinned", 10**9, 30, 1.0),
    ],
)
def test_predicted_errors_are_the_measured_ones(name, dim, count, epsilon):
    sigma = float(gaussian_mechanism.noise_multiplier(epsilon, 1e-6))
    runs = 1000
    request = report.checked_request(dim, count, epsilon, None, 1e-6, name, runs, 1)
    measured = report._measured_errors(request, dim, count).by_epsilon[0][0]
    predicted = accuracy.RunModel(name, 1e-6, epsilon, sigma).relative_error(dim, count)
    # A quantile at 95% of 1,000 runs errs by some 4%: five errors, and what the model leaves out.
    assert math.log(measured.within / predicted) == pytest.approx(0.0, abs=0.25)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 10.0])
def test_limits_of_the_errors_are_the_proven_ones(epsilon):
    """``proofs_check.consistency`` has the ratio of fitted to pinned; adaptive lies between."""
    sigma = float(gaussian_mechanism.noise_multiplier(epsilon, 1e-6))
    pinned, adaptive, fitted = (errors.limit_constant(name, 1e-6, sigma) for name in ("pinned", "adaptive", "fitted"))
    ratio = 1.0 + (epsilon**2 * sigma**2 + 1.0 / (4.0 * sigma**2)) / 2.0
    assert fitted / pinned == pytest.approx(math.sqrt(ratio), rel=1e-12)
    step = 1e-5
    slope = (
        gaussian_mechanism.epsilon(1e-6, 1.0 / (1.0 / sigma + step))
        - gaussian_mechanism.epsilon(1e-6, 1.0 / (1.0 / sigma - step))
    ) / (2.0 * step)
    assert pinned == pytest.approx(slope, rel=1e-6)
    # E[V²; |V| > c/√2] by quadrature.
    critical = stats.norm.isf(0.005)
    outside = 2.0 * integrate.quad(lambda v: 0.5 * v * v * stats.norm.pdf(v), critical, 40.0)[0]
    assert (adaptive**2 - pinned**2) / (fitted**2 - pinned**2) == pytest.approx(outside / 0.5, rel=1e-8)


def test_needed_sizes_are_where_the_error_is_small_enough():
    model = accuracy.RunModel("pinned", 1e-6, 10.0, float(gaussian_mechanism.noise_multiplier(10.0, 1e-6)))
    error = model.cached_error()
    count = accuracy.fewest_canaries(0.05, lambda k: error(10**6, k))
    assert error(10**6, count) <= 0.05 < error(10**6, int(0.97 * count))
    dim = accuracy.least_dimension(0.1, lambda d: error(d, 1000))
    assert error(dim, 1000) <= 0.1 < error(int(0.97 * dim), 1000)
    # Only near the optimum, between two powers of 2.
    narrow = accuracy.RunModel("pinned", 1e-6, 20.0, float(gaussian_mechanism.noise_multiplier(20.0, 1e-6)))
    error_of_count = functools.partial(narrow.cached_error(), 18_635)
    count = accuracy.fewest_canaries(0.1, error_of_count)
    assert error_of_count(count) <= 0.1 < min(map(error_of_count, (64, int(0.95 * count), 128)))
    # Crowded: no number of canaries does.
    assert accuracy.fewest_canaries(0.05, lambda k: error(1000, k)) is None
    assert accuracy.least_dimension(0.001, lambda d: error(d, 1000)) is None


@pytest.mark.parametrize(("dim", "epsilon", "accuracy"), [(10**5, 2.0, 0.05), (10**4, 10.0, 0.1), (4000, 3.0, 0.3)])
def test_orthonormal_canaries_that_are_enough_are_so_by_their_formula(dim, epsilon, accuracy):
    sigma = float(gaussian_mechanism.noise_multiplier(epsilon, 1e-6))
    count = law.fewest_orthonormal(accuracy * epsilon, dim, sigma, 1e-6)
    slope = errors.limit_constant("pinned", 1e-6, sigma)
    reach = [stats.norm.isf(0.025) * slope * law.orthonormal_deviation(dim, k, 1.0 / sigma) for k in (count - 1, count)]
    assert reach[1] <= accuracy * epsilon < reach[0]
    assert law.fewest_orthonormal(1e-3 * epsilon, dim, sigma, 1e-6) is None
    assert law.fewest_orthonormal(epsilon, 2, sigma, 1e-6) in (None, 1)


def test_orthonormal_canaries_that_are_enough_are_so_in_literal_runs():
    """Scores c·release of orthonormal canaries, with all other directions unobserved: 95 of 100 runs are near."""
    dim, epsilon, accuracy, runs = 4000, 3.0, 0.3, 400
    sigma = float(gaussian_mechanism.noise_multiplier(epsilon, 1e-6))
    count = law.fewest_orthonormal(accuracy * epsilon, dim, sigma, 1e-6)
    # In a basis of which the canaries are part, the release's coordinates are the scores.
    scores = sigma * np.random.Generator(np.random.MT19937(8)).standard_normal((runs, dim))
    scores[:, :count] += 1.0
    moments = from_two_groups(scores[:, :count], scores[:, count:])
    near = np.abs(errors.POINT_ESTIMATES["pinned"](moments, 1e-6) - epsilon) <= accuracy * epsilon
    # ε is not linear in the distance: a share of 93 to 97% is meant, and tested at a level of 1e-6.
    assert stats.binomtest(int(near.sum()), runs, 0.95).pvalue > 1e-6


def test_orders_are_the_theorems(small):
    """Six dimensions or numbers of canaries; an interval of 95% is widened to one of 1e-6."""
    assert len(small.orders) >= 6
    for row in small.orders:
        half = 0.5 * (row.slope_interval[1] - row.slope_interval[0])
        assert row.fitted_slope == pytest.approx(row.proven_slope, abs=2.5 * half + 0.01), row.title
    displaced = orders.displacement(1000, 3.0, 1.54, 400, np.random.SeedSequence(3))[0]
    assert len(displaced.x) == 6
    assert displaced.fitted_slope == pytest.approx(-1.0, abs=2.5 * (displaced.slope_interval[1] - -1.0) + 0.03)


def test_the_answer_is_first_and_the_first_screen_is_short(small):
    lines = str(small).splitlines()
    assert lines[0].startswith("With d = 10,000 and 40 canaries, ε̂ by pinned is within ")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 82  # two accents, which take no column
    assert small.answer().count(". ") == 2
    # The paper's estimate stands beside the one that the answer is about.
    assert (
        f"by fitted, the paper's estimate, it is {percent_up(small.settings[0].estimators[1].within)}."
        in small.answer()
    )
    assert (
        "if canaries are orthonormal, or the others are taken out of each score, as an audit of a release does, "
        in small.answer()
    )
    several = dataclasses.replace(small, settings=small.settings * 30, orders=small.orders * 3)
    # The answer to the command without options takes six lines.
    behind = len(str(several).splitlines()) - len(textwrap.wrap(several.answer(), 80))
    assert behind + 6 <= 40
    assert any("--out" in line for line in str(several).splitlines())


@pytest.mark.parametrize(
    ("displaced", "words"),
    [(2.999, "not yet the dimension"), (2.6, "Chance limits you more"), (1.0, "tends to 1 and not to 3")],
)
def test_the_answer_names_what_limits(small, displaced, words):
    setting = dataclasses.replace(small.settings[0], displaced_epsilon=displaced)
    assert words in dataclasses.replace(small, settings=(setting,)).answer()


def test_a_report_is_read_as_it_was_written(small):
    assert read(ConvergenceReport, to_document(small)) == small
    frame = small.to_frame()
    assert list(frame["estimator"]) == ["pinned", "fitted"]
    assert frame["within"].tolist() == [each.within for each in small.settings[0].estimators]
    assert [len(table[2]) for table in tables(small)][:3] == [2, 1, 1]


def test_an_interrupted_report_goes_on_from_its_file(small, tmp_path, monkeypatch):
    request = report.checked_request(
        SMALL["dim"], SMALL["canaries"], SMALL["epsilon"], None, 1e-6, SMALL["estimator"], SMALL["replicates"], 0
    )
    path = tmp_path / "run.sqlite"

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(report, "_orders_in_k", stop)
        with report.run_file(request, path) as file, pytest.raises(KeyboardInterrupt):
            report.make_report(request, file)
    with pytest.raises(InputError, match="--resume"), report.run_file(request, path):
        pass
    monkeypatch.setattr(report, "_predicted_errors", stop)  # it is kept
    with report.run_file(request, path, resume=True) as file:
        assert json.dumps(report.make_report(request, file).to_json()) == json.dumps(small.to_json())
    other = dataclasses.replace(request, seed=1)
    with pytest.raises(InputError, match="seed"), report.run_file(other, path, resume=True):
        pass


REFUSED = [
    ({"dim": 1}, "dim: must be a whole number from 2 to 1e12, not 1"),
    ({"canaries": 1}, "canaries: must be a whole number from 2 to 1e7, as one cosine has no variance, not 1"),
    ({"delta": 0.0}, "delta: must lie strictly between 0 and 1"),
    ({"epsilon": 0.0}, "epsilon: must lie between 0.001 and 10000, not 0.0"),
    ({"noise_multiplier": 1e5}, "noise_multiplier: must leave an epsilon from 0.001"),
    ({"epsilon": 1.0, "noise_multiplier": 1.0}, "noise_multiplier: must not be given with epsilon"),
    ({"estimator": "norm"}, "estimator: must be one of adaptive, fitted, pinned, threshold"),
    ({"replicates": 10}, "replicates: must be a whole number from 100 to 1e7"),
    ({"seed": -1}, "seed: must be a whole number from 0"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_is_out_of_range_is_refused_in_a_line(options, message):
    with pytest.raises(ValueError, match="^" + message.replace("(", r"\(")):
        report.convergence(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"dim": 2, "canaries": 2},
        {"dim": 1e5, "canaries": 50, "delta": 1e-300},
        *(
            pytest.param(each, marks=pytest.mark.deep)
            for each in (
                {"dim": 3, "canaries": 30, "epsilon": 0.01},
                {"dim": 1e12, "canaries": 50, "epsilon": 100.0},
                {"dim": 100, "canaries": 500, "noise_multiplier": 0.01},
            )
        ),
    ],
)
def test_extremes_have_an_answer(options):
    epsilon = None if "noise_multiplier" in options else 3.0
    found = report.convergence(**{"epsilon": epsilon, **options}, estimator="pinned", replicates=100)
    assert found.answer().startswith(f"With d = {int(options['dim']):,}")
    assert all(math.isfinite(each.within) for each in found.settings[0].estimators)
    to_document(found)


@pytest.mark.deep
def test_table_2_is_of_the_estimator_with_the_variance_held():
    """The paper prints 0.972 ± 0.148, 3.04 ± 0.137 and 9.98 ± 0.190 over 50 runs."""
    found = report.convergence(estimator=("pinned", "fitted"))
    for setting in found.settings:
        pinned, fitted = setting.estimators
        mean, deviation = setting.printed
        # Five standard errors of a mean of 50 runs.
        assert setting.epsilon + pinned.bias == pytest.approx(mean, abs=5.0 * pinned.deviation / math.sqrt(50))
        assert pinned.deviation == pytest.approx(deviation, rel=0.4)
        assert abs(setting.epsilon + fitted.bias - mean) > 5.0 * fitted.deviation / math.sqrt(50)
