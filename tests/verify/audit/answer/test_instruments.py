import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, special, stats

import canaryproof as cp
from canaryproof.kernels import arrays
from canaryproof.verify.audit.answer import instruments
from canaryproof.verify.audit.answer.instruments import LEVEL
from tests import memory

DIM = 2000


def noise(seed, dim=DIM):
    return np.random.default_rng(seed).normal(size=dim)


def residual_tests(vectors, sigma=1.0, **options):
    tests = cp.ResidualTests(sigma, len(vectors[0]), **options)
    for vector in vectors:
        tests.add(vector)
    return {test.name: test for test in tests.tests()}


def refuted(tests):
    return {name for name, test in tests.items() if test.has_failed}


def test_nothing_is_said_before_the_first_round():
    assert cp.ResidualTests(1.0, DIM).tests() == ()
    assert cp.SamplingTests(0.1, 10).tests() == ()
    assert math.isnan(cp.ResidualTests(1.0, DIM).measured_deviation)


@pytest.mark.parametrize("kind", ["float64", "float32", "float16"])
def test_honest_noise_is_not_refuted_in_any_number_format(kind):
    vectors = [noise(seed).astype(kind) for seed in range(4)]
    tests = residual_tests(vectors, layers=[1500, 499, 1])
    assert not refuted(tests)
    assert set(tests) == {
        *("noise", "noise by round", "equal rounds", "noise by layer", "mean", "normal law", "repeats within a round"),
        *("repeats between rounds", "span", "values"),
    }


@pytest.mark.parametrize("layers", [None, [700, 1, 255, 1044]])
def test_a_round_that_is_taken_by_slices_has_the_tests_of_one_in_one_piece(layers, monkeypatch):
    vectors = [noise(seed) for seed in range(5)]
    # A part of the first round is there twice, 600 coordinates apart.
    vectors[0][1000:1600] = vectors[0][400:1000]
    whole = residual_tests(vectors, layers=layers)
    for module in (arrays, instruments):
        monkeypatch.setattr(module, "SLICE", 64)
    sliced = residual_tests(vectors, layers=layers)
    assert {name: (test.observed, test.notices) for name, test in sliced.items()} == {
        name: (test.observed, test.notices) for name, test in whole.items()
    }
    for name, test in whole.items():
        assert sliced[name].p_value == pytest.approx(test.p_value, rel=1e-4, abs=0.0), name
    assert "repeats within a round" in refuted(sliced)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 128, 500, 640])
def test_products_by_distance_are_those_of_all_pairs(count, monkeypatch):
    for module in (arrays, instruments):
        monkeypatch.setattr(module, "SLICE", 64)
    values = noise(count, count)
    slices = list(instruments._products_by_distance(lambda part: values[part], count))
    products = np.concatenate(slices[::-1])
    expected = [values[: count - apart] @ values[apart:] for apart in range(1, count)]
    assert products == pytest.approx(expected, abs=1e-11)


@pytest.mark.deep
@pytest.mark.skipif(not memory.RESET.exists(), reason="needs /proc")
def test_a_long_round_takes_less_memory_than_two_copies_of_it():
    residual = np.random.default_rng(0).normal(size=10_000_000).astype(np.float32)
    tests = cp.ResidualTests(1.0, len(residual))
    # The first round loads what all need.
    tests.add(residual)
    before = memory.held()
    tests.add(residual)
    assert memory.peak() - before < 2 * 8 * len(residual)


@pytest.mark.parametrize(("dim", "layers"), [(2, None), (3, [1, 1, 1]), (9, [2, 7]), (31, None), (32, [1] * 32)])
def test_honest_noise_in_few_coordinates_is_not_refuted(dim, layers):
    # Layers of one coordinate leave signs, of which two rounds of 3 are parallel a quarter of the time.
    for seed in range(20):
        tests = residual_tests([noise([seed, t], dim) for t in range(8)], layers=layers)
        assert not refuted(tests)
        assert (tests["span"].p_value is None) == (dim < 32)


def test_rounds_without_noise_are_refuted_without_a_warning():
    nothing = np.zeros(DIM)
    assert "noise" in refuted(residual_tests([nothing] * 8, layers=[1500, 500]))
    assert "equal rounds" in refuted(residual_tests([nothing, nothing, 1e6 * noise(0)]))
    assert residual_tests([nothing] * 8)["span"].p_value == 1.0


def test_more_noise_than_claimed_is_not_refuted():
    assert not refuted(residual_tests([3.0 * noise(0), 3.0 * noise(1)]))
    layers = np.repeat([1.0, 4.0], [1500, 500])
    assert not refuted(residual_tests([layers * noise(seed) for seed in range(3)], layers=[1500, 500]))


def test_the_smallest_noise_that_is_noticed_is_noticed_with_ninety_percent():
    test = residual_tests([noise(0), noise(1)])["noise"]
    share = float(test.notices.split()[4])
    limit = 0.99**2 * stats.chi2.ppf(LEVEL, 2 * DIM)
    # It is printed with four digits.
    assert stats.chi2.cdf(limit / share**2, 2 * DIM) == pytest.approx(0.9, abs=0.005)
    assert refuted(residual_tests([0.8 * noise(0), 0.8 * noise(1)])) == {"noise", "noise by round"}
    assert refuted(residual_tests([(1.2 + 0.2 * (t % 3)) * noise(t) for t in range(6)])) == {"equal rounds"}
    # A share within the tolerance is none, at any size: just below 0.9 rounded down.
    assert cp.ResidualTests(1.0, DIM, tolerance=0.1)._shorter(10**12, 1) == "noise of at most 0.8999 of the claim"


def test_one_round_and_one_layer_are_looked_at_alone():
    vectors = [noise(seed) for seed in range(8)]
    vectors[5] = 0.75 * vectors[5]
    tests = residual_tests(vectors)
    assert refuted(tests) == {"noise by round", "equal rounds"}
    assert "round 5 has 0.7" in tests["noise by round"].observed
    layers = np.repeat([1.0, 0.5], [1900, 100])
    tests = residual_tests([layers * noise(seed) for seed in range(8)], layers=[1900, 100])
    assert refuted(tests) == {"noise by layer"}
    observed = tests["noise by layer"].observed
    assert observed.startswith("The noise of layer 1 has ")
    assert float(observed.split()[6]) == pytest.approx(0.5, abs=0.06)


def test_a_mean_that_is_not_zero_is_seen():
    assert "mean" in refuted(residual_tests([noise(seed) + 0.1 for seed in range(4)]))
    layers = np.repeat([0.0, 0.8], [1900, 100])
    assert "mean" in refuted(residual_tests([noise(seed) + layers for seed in range(2)], layers=[1900, 100]))


@pytest.mark.parametrize(
    ("draw", "rounds"),
    [
        (lambda rng: rng.laplace(size=DIM) / math.sqrt(2.0), 4),
        (lambda rng: rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), DIM), 1),
        (lambda rng: rng.standard_t(5, DIM), 8),
        (lambda rng: np.clip(rng.normal(size=DIM), -2.0, 2.0) * 1.05, 2),
        (lambda rng: rng.exponential(size=DIM) - 1.0, 1),
    ],
)
def test_noise_of_another_law_is_seen(draw, rounds):
    rng = np.random.default_rng(0)
    assert "normal law" in refuted(residual_tests([draw(rng) for _ in range(rounds)]))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda t: np.tile(noise(t, DIM // 4), 4), "repeats within a round"),
        (lambda t: np.concatenate([noise(t, DIM // 2), -noise(t, DIM // 2)]), "repeats within a round"),
        (lambda t: np.roll(noise(t), 7) * 0.6 + noise(t) * 0.8, "repeats within a round"),
        (lambda _: noise(0), "repeats between rounds"),
        (lambda t: (noise(t) + noise(t + 1)) / math.sqrt(2.0), "repeats between rounds"),
        (lambda t: (noise(t) + noise(t + 9)) / math.sqrt(2.0), "repeats between rounds"),
        (lambda t: math.sqrt(DIM / 40) * BASIS @ noise(t, 40), "span"),
    ],
)
def test_noise_that_depends_on_other_noise_is_seen(make, name):
    assert name in refuted(residual_tests([make(t) for t in range(12)]))


BASIS = np.linalg.qr(np.random.default_rng(1).normal(size=(DIM, 40)))[0]


def test_noise_of_few_values_is_seen():
    states = noise(5, 500)
    few = [np.random.default_rng(seed).choice(states, DIM) for seed in range(2)]
    assert "values" in refuted(residual_tests(few))
    # Half precision has few values: they are none of a fault where the release has that format.
    coarse = noise(0).astype(np.float16)
    assert "values" not in refuted(residual_tests([coarse]))
    assert "values" in refuted(residual_tests([coarse.astype(np.float64)]))
    bfloat = cp.ResidualTests(1.0, DIM)
    bfloat.add(noise(0), resolution=2.0**-8)
    assert bfloat.tests()[-1].p_value is None


@pytest.mark.parametrize("weights", [np.ones(10), np.arange(10.0), np.r_[5.0, np.ones(9)]])
def test_the_bound_of_signs_holds(weights):
    sums = np.abs([np.dot(signs, weights) for signs in itertools.product((-1, 1), repeat=10)])
    ratios = sums / np.linalg.norm(weights)
    for ratio in np.unique(ratios):
        assert np.mean(ratios >= ratio - 1e-12) <= instruments._hoeffding(ratio, 1)


def test_the_bound_of_many_sums_is_hoeffdings():
    assert instruments._hoeffding(6.0, 5) == pytest.approx(10.0 * math.exp(-18.0))
    assert instruments._hoeffding(0.1, 5) == 1.0


def test_the_comparisons_are_what_loops_say():
    vector = noise(3, 60)
    tests = cp.ResidualTests(1.0, 60)
    tests.add(vector)
    tests.add(noise(4, 60))
    direct = []
    for lag in range(1, 60):
        products = vector[:-lag] * vector[lag:]
        direct.append(abs(products.sum()) / np.linalg.norm(products))
    once = cp.ResidualTests(1.0, 60)
    once.add(vector)
    # The roots are held in single precision.
    assert once._lag == pytest.approx(max(direct), rel=1e-7)
    assert once._lags == 59
    products = vector * noise(4, 60)
    between = {test.name: test for test in tests.tests()}["repeats between rounds"]
    ratio = abs(products.sum()) / np.linalg.norm(products)
    assert between.p_value == pytest.approx(min(1.0, 4.0 * math.exp(-(ratio**2) / 2.0)), rel=1e-5)


def test_chernoffs_bound_is_above_the_binomial_tail():
    counts = np.arange(201.0)
    above = instruments._chernoff(counts, np.full(201, 60.0), 200, above=True)
    below = instruments._chernoff(counts, np.full(201, 60.0), 200, above=False)
    assert (np.exp(above) >= stats.binom.sf(counts - 1, 200, 0.3) - 1e-12).all()
    assert (np.exp(below) >= stats.binom.cdf(counts, 200, 0.3) - 1e-12).all()
    assert (above[:61] == 0.0).all()
    assert (below[60:] == 0.0).all()


def test_expected_counts_are_those_of_uniform_directions():
    tests = cp.ResidualTests(1.0, 5)
    rng = np.random.default_rng(0)
    for _ in range(1500):
        tests.add(rng.normal(size=5), resolution=0.0)
    assert tests._least == pytest.approx(tests._most)
    deviation = np.sqrt(tests._most * (1.0 - tests._most / 7500) + 1.0)
    assert (np.abs(tests._above - tests._most) < 5.5 * deviation).all()


def test_what_is_refused_changes_nothing():
    tests, sampling = cp.ResidualTests(1.0, DIM), cp.SamplingTests(0.5, 10)
    with pytest.raises(ValueError, match="residual: must be finite"):
        tests.add(np.full(DIM, math.nan))
    with pytest.raises(ValueError, match="drawn: must lie between 0 and 9"):
        sampling.add([1, 10])
    assert (tests.rounds, sampling.rounds) == (0, 0)


MEMBERS, RATE = 800, 0.1


def poisson(seed, rate=RATE):
    return np.flatnonzero(np.random.default_rng(seed).random(MEMBERS) < rate)


def sampled(batches):
    tests = cp.SamplingTests(RATE, MEMBERS)
    for drawn in batches:
        tests.add(drawn)
    return {test.name: test for test in tests.tests()}


def test_honest_sampling_is_not_refuted():
    tests = sampled([poisson(seed) for seed in range(20)])
    assert not refuted(tests)
    assert set(tests) == {"batch size", "spread of batch sizes", "participations", "returns"}
    empty = cp.SamplingTests(0.001, 100)
    for _ in range(5):
        empty.add([])
    assert not any(test.has_failed for test in empty.tests())


def epoch(t, seed):
    return np.random.default_rng(seed).permutation(MEMBERS)[t % 10 * 80 : (t % 10 + 1) * 80]


@pytest.mark.parametrize(
    ("make", "rounds", "names"),
    [
        (lambda t: np.random.default_rng(t).choice(MEMBERS, 80, replace=False), 8, {"spread of batch sizes"}),
        (lambda t: epoch(t, t // 10), 10, {"spread of batch sizes", "participations", "returns"}),
        (lambda t: epoch(t, 0), 20, {"spread of batch sizes", "participations", "returns"}),
        (lambda t: poisson(t, 0.15), 3, {"batch size"}),
        (lambda t: poisson(t // 2), 4, {"returns"}),
        (lambda t: poisson(t, np.where(np.arange(MEMBERS) < 80, 0.4, 0.06667)), 20, {"participations"}),
    ],
)
def test_other_sampling_is_seen(make, rounds, names):
    assert names <= refuted(sampled([make(t) for t in range(rounds)]))


def test_so_many_rounds_of_one_size_are_noticed():
    def fixed(rounds):
        return sampled([np.random.default_rng(t).choice(MEMBERS, 80, replace=False) for t in range(rounds)])

    stated = int(fixed(1)["spread of batch sizes"].notices.split()[-2])
    assert fixed(stated)["spread of batch sizes"].has_failed


@pytest.mark.parametrize(("size", "rate"), [(1, 0.5), (7, 0.1), (40, 0.03)])
def test_normal_numbers_of_counts_are_normal(size, rate):
    # The distribution function of a count, within its jump, is uniform: at each jump's quarter it is known exactly.
    class Quarter:
        def random(self, shape):
            return np.full(shape, 0.25)

    counts = np.arange(size + 1)
    numbers = special.ndtr(instruments._normal(counts, size, rate, Quarter()))
    expected = stats.binom.cdf(counts - 1, size, rate) + 0.25 * stats.binom.pmf(counts, size, rate)
    assert numbers == pytest.approx(expected, rel=1e-9)


def test_counts_in_the_far_tails_have_finite_numbers():
    far = instruments._normal([0, 10**6], 10**6, 0.5, np.random.default_rng(0))
    assert np.isfinite(far).all()
    assert far[0] < -37.0
    assert far[1] > 37.0


def test_p_values_of_honest_trainings_are_not_too_small():
    runs, small = 120, {}
    for seed in range(runs):
        rng = np.random.default_rng([9, seed])
        residuals, sampling = cp.ResidualTests(1.0, 64, layers=[40, 24]), cp.SamplingTests(0.2, 30)
        for _ in range(3):
            residuals.add(rng.normal(size=64))
            sampling.add(np.flatnonzero(rng.random(30) < 0.2))
        for test in (*residuals.tests(), *sampling.tests()):
            small[test.name] = small.get(test.name, 0) + (test.p_value is not None and test.p_value <= 0.05)
    worst = max(small.values())
    assert stats.binom.sf(worst - 1, runs, 0.05) > LEVEL / len(small)


@pytest.mark.deep
def test_the_page_has_the_smallest_faults_of_ten_thousand_and_a_million_coordinates():
    rng, noticed = np.random.default_rng(0), []
    for dim in (10**4, 10**6):
        tests = cp.ResidualTests(noise_multiplier=1.0, dim=dim)
        for _ in range(4):
            tests.add(rng.normal(size=dim).astype(np.float32))
        noticed.append({test.name: test.notices for test in tests.tests()})
    page = (Path(__file__).parents[4] / "docs/how/self_test.md").read_text(encoding="utf-8")
    rows = [f"| {name} | {text} | {noticed[1][name]} |" for name, text in noticed[0].items()]
    assert "\n".join(rows) in page


def test_honest_returns_are_found_at_no_more_than_the_level_over_all_lags():
    rng, runs = np.random.default_rng(11), 300
    small = 0
    for _ in range(runs):
        tests = cp.SamplingTests(rate=0.3, members=40)
        for drawn in rng.random((16, 40)) < 0.3:
            tests.add(np.flatnonzero(drawn))
        (p_value,) = (test.p_value for test in tests.tests() if test.name == "returns")
        small += p_value <= 0.05
    # The largest of 15 lags alone would be so small in half of the runs.
    assert small <= stats.binom.isf(LEVEL, runs, 0.05)


def law_power(number, off, share):
    """Probability that the test of the law rejects by the coordinates beyond two deviations, whose share is off."""
    counts = np.arange(number + 1)
    side = counts > number * share if off > 0.0 else counts < number * share
    log = stats.entropy([counts / number, 1.0 - counts / number], [[share], [1.0 - share]])
    rejects = side & (48 * np.exp(-number * log) <= LEVEL)
    return float(stats.binom.pmf(counts[rejects], number, share + off).sum())


@pytest.mark.parametrize("number", [6, 200, 2000, 100_000])
def test_the_share_of_the_law_that_is_noticed_with_ninety_percent_is_the_least(number):
    tests = cp.ResidualTests(1.0, number)
    tests.add(noise(3, number), resolution=0.0)
    off, share = tests._wrong_share(number), float(stats.beta.sf(4.0 / number, 0.5, 0.5 * (number - 1)))
    if off is None:
        # Not even if all of them are beyond two deviations.
        assert law_power(number, 1.0 - share, share) == 0.0
        return
    # Of few coordinates none beyond two deviations is too few.
    directions = [1.0, -1.0] if off < share else [1.0]
    assert min(law_power(number, direction * off, share) for direction in directions) == pytest.approx(0.9, abs=1e-6)


def test_the_faults_that_are_said_to_be_noticed_are_noticed_with_ninety_percent():
    """The probability of each test at its own smallest fault, from the law of its statistic there."""
    dim, rounds = 2000, 5
    residuals = cp.ResidualTests(1.0, dim)
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        residuals.add(rng.normal(size=dim))
    # Pairs of a round's values are equal with probability 2⁻²⁰ at most, and with 1/m where there are m.
    pairs = rounds * dim * (dim - 1) / 2
    critical = stats.binom.isf(LEVEL, rounds * dim, pairs / 2**20 / (rounds * dim)) + 1
    repeated = rounds * dim**2 / 2 / residuals._few_values()
    # Rounds of unequal noise add to the variance of a round's deviation, 1/(2d).
    said = {test.name: test.notices.split() for test in residuals.tests()}
    unequal = 1.0 + 2.0 * dim * float(said["equal rounds"][6]) ** 2
    off, two = float(said["normal law"][-1]), float(stats.beta.sf(4.0 / dim, 0.5, 0.5 * (dim - 1)))
    powers = {
        "values": stats.poisson.sf(critical - 1, repeated),
        "equal rounds": stats.chi2.sf(stats.chi2.isf(LEVEL, rounds - 1) / unequal, rounds - 1),
        "normal law": law_power(rounds * dim, off, two),
        "normal law, fewer": law_power(rounds * dim, -off, two),
        "signs": stats.norm.sf(math.sqrt(2.0 * math.log(2.0 * 7 / LEVEL)) - instruments._beyond(7)),
    }
    # Those that are read from the page are rounded up to two digits there.
    assert min(powers.values()) > 0.899
    assert max(power for name, power in powers.items() if name != "normal law, fewer") < 0.97


def test_each_test_of_the_residuals_says_what_it_saw_how_likely_that_is_and_what_it_notices():
    """The whole record of a small case, by textbook formulas and loops."""
    sigma, sizes, dim, rounds = 2.0, (150, 50), 200, 3
    vectors = [(1.7 + 0.2 * t) * noise(20 + t, dim) + 0.1 for t in range(rounds)]
    tests = cp.ResidualTests(sigma, dim, layers=sizes, tolerance=0.02)
    for vector in vectors:
        tests.add(vector, resolution=0.0)
    found = {test.name: test for test in tests.tests()}
    least, number, z = 0.98 * sigma, rounds * dim, stats.norm.ppf(0.9)
    parts = [np.split(vector, [sizes[0]]) for vector in vectors]
    squares = np.array([[(part**2).sum() for part in row] for row in parts])

    def shorter(freedom, tests=1):
        share = 0.98 * math.sqrt(stats.chi2.ppf(1e-6 / tests, freedom) / stats.chi2.ppf(0.9, freedom))
        return f"noise of at most {math.floor(1e4 * share) / 1e4:.4g} of the claim"

    def beyond(tests):
        return math.sqrt(2.0 * math.log(2.0 * tests / 1e-6)) + z

    def up(value):
        step = 10.0 ** (math.floor(math.log10(value)) - 1)
        return f"{math.ceil(value / step) * step:.2g}"

    def signs(ratio, tests):
        return min(1.0, 2.0 * tests * math.exp(-0.5 * ratio**2))

    expected = {
        "noise": (
            f"The noise has {math.sqrt(squares.sum() / number) / sigma:.5g} of the claimed deviation.",
            stats.chi2.cdf(squares.sum() / least**2, number),
            shorter(number),
        )
    }
    for part, sums, freedoms in (
        ("round", squares.sum(axis=1), [dim] * rounds),
        ("layer", squares.sum(axis=0), [rounds * size for size in sizes]),
    ):
        each = stats.chi2.cdf(sums / least**2, freedoms)
        worst = int(each.argmin())
        share = math.sqrt(sums[worst] / freedoms[worst]) / sigma
        expected[f"noise by {part}"] = (
            f"The noise of {part} {worst} has {share:.4g} of the claimed deviation.",
            min(1.0, len(sums) * each[worst]),
            f"{shorter(min(freedoms), len(sums))} in one {part}",
        )
    lengths = squares.sum(axis=1)
    ratios = [lengths[t] / (lengths[:t].sum() / t) for t in range(1, rounds)]
    scores = [stats.norm.ppf(stats.f.cdf(ratio, dim, dim * t)) for t, ratio in enumerate(ratios, 1)]
    shares = np.sqrt(lengths / dim) / sigma
    most = stats.chi2.isf(1e-6, rounds - 1) / stats.chi2.ppf(0.1, rounds - 1)
    expected["equal rounds"] = (
        f"Rounds have from {shares.min():.4g} to {shares.max():.4g} of the claimed deviation.",
        stats.chi2.sf(np.square(scores).sum(), rounds - 1),
        f"rounds' noise with a deviation of {up(math.sqrt((most - 1.0) / (2.0 * dim)))} of its mean",
    )
    sums = np.array([[part.sum() for part in row] for row in parts])
    strongest = max(
        *np.abs(sums.sum(axis=0)) / np.sqrt(squares.sum(axis=0)), abs(sums.sum()) / math.sqrt(squares.sum())
    )
    expected["mean"] = (
        f"The noise has a mean of {sums.sum() / number / sigma:.2g} of the claimed deviation.",
        signs(strongest, 3),
        f"a mean of {up(beyond(3) / math.sqrt(number))} deviations",
    )
    # Coordinates in the deviation of their own layer and round.
    scaled = [np.concatenate([part / np.sqrt((part**2).mean()) for part in row]) for row in parts]
    logs, everything = [], np.concatenate(scaled)
    for limit in np.arange(16) / 4.0:
        law = [stats.beta.sf(min(1.0, limit**2 / size), 0.5, 0.5 * (size - 1)) for size in sizes]
        share = sum(size * tail for size, tail in zip(sizes, law, strict=True)) / dim
        above = everything[np.abs(everything) > limit]
        count, positive = len(above), int((above > 0.0).sum())
        divergence = number * stats.entropy([count / number, 1.0 - count / number], [share, 1.0 - share])
        fair = stats.binom.cdf(min(positive, count - positive), count, 0.5)
        logs.append((min(-divergence, math.log(2.0 * fair)), limit, count / number, share))
    smallest, limit, count, share = min(logs)
    two = sum(size * stats.beta.sf(4.0 / size, 0.5, 0.5 * (size - 1)) for size in sizes) / dim
    off = optimize.brentq(lambda off: law_power(number, off, two) - 0.9, 0.01, 0.5)
    expected["normal law"] = (
        f"{count:.4%} of the coordinates are beyond {limit:g} deviations, where a normal law has {share:.4%}.",
        min(1.0, 48 * math.exp(smallest)),
        f"a share of coordinates beyond 2 measured deviations that is off by {up(off)}",
    )
    within = max(
        abs((vector[lag:] * vector[:-lag]).sum()) / math.sqrt(((vector[lag:] * vector[:-lag]) ** 2).sum())
        for vector in scaled[:2]  # of the first, the second, the fourth, … round
        for lag in range(1, dim)
    )
    pairs = {(s, t): scaled[s] * scaled[t] for s, t in itertools.combinations(range(rounds), 2)}
    shifted = [np.concatenate([pairs[s, s + lag] for s in range(rounds - lag)]) for lag in range(1, rounds)]
    between = max(abs(each.sum()) / math.sqrt((each**2).sum()) for each in [*pairs.values(), *shifted])
    for name, compared, ratio, number_of, size in (
        ("repeats within a round", "two coordinates at one distance", within, 2 * (dim - 1), dim),
        ("repeats between rounds", "two rounds", between, len(pairs) + rounds - 1, dim),
    ):
        expected[name] = (
            f"The strongest correlation of {compared} is {ratio:.3g} standard errors.",
            signs(ratio, number_of),
            f"a correlation of {up(instruments._least_correlation(number_of, size))} of {compared}",
        )
    expected["span"] = (
        "The noise of the first 3 rounds is compared with the span of those before.",
        found["span"].p_value,
        "noise in a space of few dimensions",
    )
    # Equal values of so many are expected in no round, and one of them has a p-value of 1.
    expected["values"] = (
        f"0 of {number} values repeat another of their round.",
        1.0,
        f"noise of at most {math.floor(tests._few_values() / 100) * 100:.2g} values in a round",
    )
    assert {name: (test.observed, test.notices) for name, test in found.items()} == {
        name: (observed, notices) for name, (observed, _, notices) in expected.items()
    }
    p_values = {name: p_value for name, (_, p_value, _) in expected.items()}
    assert {name: test.p_value for name, test in found.items()} == pytest.approx(p_values, rel=1e-5)


@pytest.mark.parametrize(("tests", "count"), [(100, 300), (10_000, 2000)])
def test_the_least_correlation_is_noticed_with_ninety_percent(tests, count):
    """By drawing; five errors of a share of 2,000 are 0.034."""
    correlation = instruments._least_correlation(tests, count)
    first, second = np.random.default_rng(0).normal(size=(2, 2000, count))
    products = first * (correlation * first + math.sqrt(1.0 - correlation**2) * second)
    ratios = products.sum(axis=1) / np.sqrt((products**2).sum(axis=1))
    noticed = (2.0 * tests * np.exp(-0.5 * ratios**2) < LEVEL).mean()
    assert noticed == pytest.approx(0.9, abs=0.034)
    # Few pairs show no correlation at all, as the root of their squares grows with it.
    assert instruments._least_correlation(tests, 50) is None


def faulty_noise(name, size, dim, rounds, rng):
    """Draw rounds of noise with a fault of this size."""
    earlier = np.zeros(dim)
    for t in range(rounds):
        vector = rng.normal(size=dim)
        if name == "noise" or (name == "noise by round" and t == rounds - 1):
            vector *= size
        elif name == "equal rounds":
            vector *= max(1.0 + size * rng.normal(), 1e-3)
        elif name == "mean":
            vector += size
        elif name == "repeats between rounds" and t == 1:
            vector = size * earlier + math.sqrt(1.0 - size**2) * vector
        earlier = vector
        yield vector


@pytest.mark.deep
@pytest.mark.parametrize(("dim", "rounds"), [(300, 2), (300, 6), (2000, 2), (1000, 30), (6000, 3)])
@pytest.mark.parametrize("name", ["noise", "noise by round", "equal rounds", "mean", "repeats between rounds"])
def test_the_smallest_faults_of_noise_are_noticed_with_ninety_percent(name, dim, rounds):
    """Each at its printed value, by drawing, as those of sampling."""
    honest = residual_tests(np.random.default_rng(0).normal(size=(rounds, dim)))
    size, runs, count = float(re.search(r"of (?:at most )?([\d.e-]+)", honest[name].notices)[1]), 100, 0
    for seed in range(runs):
        vectors = list(faulty_noise(name, size, dim, rounds, np.random.default_rng([seed, 5])))
        count += residual_tests(vectors)[name].has_failed
    assert count > stats.binom.ppf(1e-6, runs, 0.9)


def said_of_sampling(members, rate, rounds):
    """The printed smallest faults of a sampling record, as numbers."""
    tests, rng = cp.SamplingTests(rate, members), np.random.default_rng(1)
    for _ in range(rounds):
        tests.add(np.flatnonzero(rng.random(members) < rate))
    return {
        test.name: float(found[1])
        for test in tests.tests()
        if (found := re.search(r"(?:by|of|in) ([\d.e-]+)", test.notices))
    }


def caught(name, members, rate, draw, runs):
    """In how many of so many records of a fault a test fails."""
    count = 0
    for seed in range(runs):
        tests = cp.SamplingTests(rate, members)
        for drawn in draw(np.random.default_rng([seed, 71])):
            tests.add(drawn)
        count += next(test.has_failed for test in tests.tests() if test.name == name)
    return count


SAMPLED = [(60, 0.3, 8), (800, 0.1, 4), (3000, 0.01, 10), (5000, 0.05, 32), (2000, 0.001, 50), (1000, 0.1, 100)]


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(("members", "rate", "rounds"), SAMPLED)
def test_the_smallest_faults_of_sampling_are_noticed_with_ninety_percent(members, rate, rounds):
    """Each at its printed value, by drawing; 60 of 100 and fewer have a probability below 1e-12 of 90%, some of 80%."""
    said, runs = said_of_sampling(members, rate, rounds), 100

    def poisson_of(rates):
        return lambda rng: (np.flatnonzero(rng.random(members) < rates) for _ in range(rounds))

    def of_those_before(again):
        def draw(rng):
            drawn, other = rng.random(members) < rate, (rate - rate * again) / (1.0 - rate)
            for _ in range(rounds):
                yield np.flatnonzero(drawn)
                drawn = rng.random(members) < np.where(drawn, again, other)

        return draw

    faults = [("batch size", poisson_of(rate * (1.0 + sign * said["batch size"]))) for sign in (-1.0, 1.0)]
    if "participations" in said:
        deviation = math.sqrt(math.log1p(said["participations"] ** 2))
        quantiles = rate * np.exp(deviation * stats.norm.ppf((np.arange(members) + 0.5) / members))
        faults.append(("participations", poisson_of(np.minimum(quantiles * rate / quantiles.mean(), 1.0))))
        if said["participations"] < 1.0:
            halves = 1.0 + said["participations"] * np.where(np.arange(members) % 2, 1.0, -1.0)
            faults.append(("participations", poisson_of(rate * halves)))
    faults.append(("returns", of_those_before(min(rate + said["returns"], 1.0))))
    if "spread of batch sizes" in said:
        size, number = round(members * rate), int(said["spread of batch sizes"])
        faults.append(
            (
                "spread of batch sizes",
                lambda rng: (rng.choice(members, size, replace=False) for _ in range(number)),
            )
        )
    for name, draw in faults:
        # A fault of 90% is noticed less often than this with probability 1e-6.
        assert caught(name, members, rate, draw, runs) > stats.binom.ppf(1e-6, runs, 0.9), name


@pytest.mark.parametrize(
    ("members", "rate"), [(40, 0.5), (300, 0.3), (20_000, 0.01), (1000, 0.0123), (400, 0.004), (10**9, 0.01)]
)
def test_batches_of_one_size_are_noticed_with_ninety_percent(members, rate):
    """By draws of the test's own number; 1,712 of 2,000 and fewer have a probability below 1e-9 of 90%."""
    rounds, rng, noticed = instruments._rounds_of_fixed_sizes(members, rate), np.random.default_rng(83), []
    for size in {math.floor(members * rate), math.ceil(members * rate)}:
        drawn = np.full((2000, rounds), size)
        squares = np.square(instruments._normal(drawn, members, rate, rng))
        few = [2.0 * stats.chi2.cdf(squares[:, :count].sum(axis=1), count) <= LEVEL for count in (rounds, rounds - 1)]
        noticed.append([int(each.sum()) for each in few])
    enough, too_few = np.min(noticed, axis=0)
    assert enough > 1712
    assert too_few < 1880


def test_no_fault_is_named_where_none_is_noticed():
    assert "participations" not in said_of_sampling(800, 0.1, 2)
    # One of three members, where a round has .3 in the mean, is as many as Poisson sampling draws.
    assert instruments._rounds_of_fixed_sizes(3, 0.1) is None
    assert set(said_of_sampling(3, 0.5, 1)) <= {"spread of batch sizes"}


@pytest.mark.parametrize(("members", "rate", "rounds"), [(2, 0.5, 3), (3, 0.1, 2), (1, 0.5, 6)])
def test_p_values_of_a_few_members_are_not_too_small(members, rate, rounds):
    """In all records there are, each with its probability; draws that a record keys would favour some of them."""
    small = {}
    for drawn in itertools.product([False, True], repeat=members * rounds):
        tests = cp.SamplingTests(rate, members)
        for numbers in np.reshape(drawn, (rounds, members)):
            tests.add(np.flatnonzero(numbers))
        for test in tests.tests(notices=False):
            chance = rate ** sum(drawn) * (1.0 - rate) ** (len(drawn) - sum(drawn))
            small[test.name] = small.get(test.name, 0.0) + chance * (test.p_value <= 0.05)
    assert len(small) == 4
    assert max(small.values()) <= 0.05


def test_a_gross_fault_of_a_few_draws_is_seen():
    tests = cp.SamplingTests(0.001, 100)
    tests.add(np.arange(100))
    assert {test.name: test.has_failed for test in tests.tests(notices=False)}["batch size"]


def test_each_test_of_the_sampling_says_what_it_saw_how_likely_that_is_and_what_it_notices(monkeypatch):
    def standardised(counts, sizes, rate, _):
        return (np.asarray(counts) - np.asarray(sizes) * rate) / np.sqrt(np.asarray(sizes) * rate * (1.0 - rate))

    # The draws within the jumps of a count are tested apart.
    monkeypatch.setattr(instruments, "_normal", standardised)
    members, rate, rounds = 60, 0.3, 4
    batches = [np.flatnonzero(np.random.default_rng(t).random(members) < 0.35) for t in range(rounds)]
    tests = cp.SamplingTests(rate, members)
    for drawn in batches:
        tests.add(drawn)
    present = np.array([np.isin(np.arange(members), drawn) for drawn in batches])
    sizes, counts = present.sum(axis=1), present.sum(axis=0)
    deviation = math.sqrt(members * rate * (1.0 - rate))
    drawn = standardised(sizes, members, rate, None)

    def spread(square, freedom):
        return min(1.0, 2.0 * min(stats.chi2.cdf(square, freedom), stats.chi2.sf(square, freedom)))

    for faults in ("least_wrong_rate", "_least_wrong_rates", "_rounds_of_fixed_sizes"):
        # Their power is tested apart.
        monkeypatch.setattr(instruments, faults, lambda *_: 0.1234)
    lags = []
    for lag in range(1, rounds):
        both = [(present[t] & present[t + lag]).sum() for t in range(rounds - lag)]
        total = standardised(both, sizes[: rounds - lag], rate, None).sum() / math.sqrt(len(both))
        lags.append((abs(total), lag, sum(both) / sizes[: rounds - lag].sum()))
    strongest, lag, share = max(lags)
    later = "in the next round" if lag == 1 else f"{lag} rounds later"
    expected = [
        (
            "batch size",
            f"A round has {sizes.mean():.5g} members in the mean, where the claim has 18.",
            2.0 * stats.norm.sf(abs(drawn.sum()) / math.sqrt(rounds)),
            # Rounded up, as a smaller fault might not be noticed.
            "a rate that is wrong by 0.13 of itself",
        ),
        (
            "spread of batch sizes",
            f"The sizes of rounds have a deviation of {sizes.std():.4g}, where the claim has {deviation:.4g}.",
            spread((drawn**2).sum(), rounds),
            "one fixed size, in 0.1234 rounds",
        ),
        (
            "participations",
            f"A member takes part from {counts.min()} to {counts.max()} times in 4 rounds.",
            spread((standardised(counts, rounds, rate, None) ** 2).sum(), members),
            "rates of members with a deviation of 0.13 of their mean",
        ),
        (
            "returns",
            f"{share:.2%} of a round's members are drawn again {later}, where the claim has 30.00%.",
            min(1.0, 3 * 2.0 * stats.norm.sf(strongest)),
            "a share at the next round that is off by 0.038",
        ),
    ]
    found = tests.tests()
    assert [(test.name, test.observed, test.notices) for test in found] == [(a, b, d) for a, b, _, d in expected]
    assert [test.p_value for test in found] == pytest.approx([p_value for _, _, p_value, _ in expected], rel=1e-9)


@pytest.mark.parametrize("resolution", [0.0, 2.5e-5])
def test_repeated_values_are_held_against_those_of_an_honest_generator(resolution):
    sigma, dim, repeated = 2.0, 1000, 60
    vector = 3.0 * noise(0, dim)
    # Places apart, so that no two differ by less than the resolution.
    vector = np.sort(vector)
    vector[1::16][:repeated] = vector[::16][:repeated]
    tests = cp.ResidualTests(sigma, dim, tolerance=0.02)
    for _ in range(2):
        tests.add(vector, resolution=resolution)
    # A normal law of the least honest deviation has this probability at most in a step of four rounding errors.
    step = 4.0 * resolution
    most = 2.0**-20 + step / (math.sqrt(2.0 * math.pi) * 0.98 * sigma)
    values = np.floor(vector / step) if step else vector
    number = 2 * (dim - len(np.unique(values)))
    assert number >= 2 * repeated
    expected = 2 * 0.5 * dim * (dim - 1) * most
    (test,) = (test for test in tests.tests() if test.name == "values")
    assert test.p_value == pytest.approx(stats.binom.sf(number - 1, 2 * dim, expected / (2 * dim)), rel=1e-9, abs=0.0)
    assert test.observed == f"{number} of 2000 values repeat another of their round."


@pytest.mark.parametrize(("drawn", "said"), [(100, True), (99, False)])
def test_a_number_format_that_is_too_coarse_is_not_counted(drawn, said):
    # So many values are looked at as would be half of those that a step leaves.
    step = (0.5 / (drawn + 0.5) - 2.0**-20) * math.sqrt(2.0 * math.pi) * 0.99
    tests = cp.ResidualTests(1.0, DIM)
    tests.add(noise(0), resolution=0.25 * step)
    assert tests._drawn == drawn
    assert (tests.tests()[-1].p_value is not None) == said


def test_a_rounding_error_moves_each_limit_by_itself():
    tests, vector = cp.ResidualTests(1.0, 300, layers=[100, 200]), noise(0, 300)
    tests.add(vector, resolution=0.01)
    parts = np.split(vector, [100])
    # In deviations of the layer that has the smallest one.
    moved = 0.01 / min(math.sqrt(np.mean(part**2)) for part in parts)
    rounded = 2.0 ** (math.ceil(4.0 * math.log2(moved)) / 4.0)
    assert moved <= rounded < 1.19 * moved
    for limit, least, most in zip(np.arange(16) / 4.0, tests._least, tests._most, strict=True):
        for expected, sign in ((least, 1.0), (most, -1.0)):
            moved_limit = max(0.0, limit + sign * rounded)
            tails = [size * stats.beta.sf(moved_limit**2 / size, 0.5, 0.5 * (size - 1)) for size in (100, 200)]
            assert expected == pytest.approx(sum(tails), rel=1e-9)


def test_rounds_are_compared_with_the_first_and_the_last_ones_alone():
    """Rounds that repeat the first one or the one before are seen at any time; the cost of a round stays."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(150, 200))
    for number, earlier in ((149, 148), (149, 90), (149, 0), (149, 63)):
        tests = cp.ResidualTests(1.0, 200)
        for t, vector in enumerate(vectors):
            tests.add(vectors[earlier] if t == number else vector)
        assert [test.name for test in tests.tests() if test.has_failed] == ["repeats between rounds"], earlier
    # All pairs of the first 65 rounds, and each later one with the first 64 and the last 64.
    assert tests._pairs == sum(min(t, 64) + min(64, max(0, t - 64)) for t in range(150))
    assert tests._first.shape[1] == tests._last.shape[1] == 64


def test_returns_are_counted_as_by_sets_at_every_lag():
    rng = np.random.default_rng(5)
    rounds = [np.flatnonzero(rng.random(30) < 0.2) for _ in range(140)]
    tests = cp.SamplingTests(0.2, 30)
    for drawn in rounds:
        tests.add(rng.permutation(drawn))
    found = list(zip(*(each.tolist() for each in tests._overlaps), strict=True))
    sets = [set(drawn.tolist()) for drawn in rounds]
    assert found == [
        (lag, len(sets[t - lag]), len(sets[t - lag] & sets[t])) for t in range(140) for lag in range(1, min(t, 64) + 1)
    ]


def test_a_member_drawn_twice_fails_the_record_and_counts_once():
    once, twice = cp.SamplingTests(RATE, MEMBERS), cp.SamplingTests(RATE, MEMBERS)
    for t in range(6):
        drawn = poisson([3, t])
        once.add(drawn)
        twice.add(np.append(drawn, drawn[:2]) if t in (2, 4) else drawn)
    test, *others = twice.tests()
    assert (test.name, test.has_failed) == ("drawn once", True)
    assert test.observed == "Members were drawn twice in a round 4 times, for the first time in round 2."
    # All other tests are of who was there.
    assert tuple(others) == once.tests()
    assert not any(other.has_failed for other in others)


def records(*seeds, rounds=20):
    made = []
    for seed in seeds:
        made.append(cp.SamplingTests(RATE, MEMBERS))
        for t in range(rounds):
            made[-1].add(poisson([seed, t]))
    return made


def test_two_records_of_one_seed_are_equal_and_of_two_seeds_are_not():
    first, again, other = records(4, 4, 5)
    test = first.compare(again)
    assert (test.name, test.has_failed) == ("equal records", True)
    assert test.observed == "The same round of both trainings drew the same members in 20 of 20 rounds."
    assert not first.compare(other).has_failed
    # A training that begins anew from its first state is the same for as long as it goes.
    (short,) = records(4, rounds=3)
    assert first.compare(short).has_failed
    assert "in 3 of 3 rounds" in short.compare(first).observed
    assert first.compare(cp.SamplingTests(RATE, MEMBERS)).p_value is None
    # Of few members independent records are equal often: each of two is drawn in both rounds or in none.
    few = [cp.SamplingTests(0.5, 2) for _ in range(2)]
    for record in few:
        for drawn in ([0], [1], []):
            record.add(np.array(drawn, int))
    assert few[0].compare(few[1]).p_value == pytest.approx(0.25**3)
    with pytest.raises(ValueError, match=r"other: must have the rate 0.1 and 800 members, not 0.5 and 2"):
        first.compare(few[0])


def test_what_moves_without_noise_is_named():
    rng = np.random.default_rng(6)
    before = {"body": rng.normal(size=(20, 5)), "head": rng.normal(size=8), "frozen": rng.normal(size=9), "one": 0.5}

    def step(seed, head=0.0):
        drawn = np.random.default_rng(seed)
        moved = {"body": drawn.normal(size=(20, 5)), "head": 0.1 + head * drawn.normal(size=8), "frozen": 0, "one": 0.1}
        return {name: before[name] - moved[name] for name in before}

    tests = {test.name: test for test in cp.seed_tests(before, step(1), step(2))}
    assert list(tests) == list(before)
    assert refuted(tests) == {"head"}
    assert tests["head"].observed == "8 of 8 numbers that moved are the same with another seed of the noise."
    assert tests["head"].p_value == pytest.approx(16.0**-8)
    # What did not move needs no noise, and one number alone may be the same by chance.
    assert (tests["frozen"].p_value, tests["one"].p_value) == (None, 1 / 16)
    assert tests["one"].notices == ""
    assert not refuted({test.name: test for test in cp.seed_tests(before, step(1, head=1.0), step(2, head=1.0))})
    # The smallest number that is noticed, and one less.
    fewest = int(tests["body"].notices.split()[0])
    for same, fails in ((fewest, True), (fewest - 1, False)):
        other = step(2)
        other["body"].flat[:same] = step(1)["body"].flat[:same]
        assert (refuted({test.name: test for test in cp.seed_tests(before, step(1, 1.0), other)}) == {"body"}) is fails


def test_honest_noise_of_five_spacings_is_not_refuted():
    # In half precision the numbers between 1 and 2 are 2^-10 apart.
    for seed in range(20):
        before = {"p": np.full(1000, 1.5, np.float16)}
        one, other = (
            {"p": (1.4 + 5 * 2.0**-10 * np.random.default_rng([seed, i]).normal(size=1000)).astype(np.float16)}
            for i in range(2)
        )
        (test,) = cp.seed_tests(before, one, other)
        assert not test.has_failed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"first": {"a": np.zeros(2)}}, "first: must have the names of before"),
        ({"second": {"a": np.zeros(2), "b": np.zeros(3), "c": 1.0}}, "second: must have the names of before"),
        (
            {"second": {"a": np.zeros(2), "b": np.zeros(2)}},
            r"b: must have one shape in all three, not \(3,\), \(3,\) and",
        ),
    ],
)
def test_parameters_of_other_names_or_shapes_are_refused(change, words):
    given = {name: {"a": np.zeros(2), "b": np.zeros(3)} for name in ("before", "first", "second")}
    with pytest.raises(ValueError, match=words):
        cp.seed_tests(**{**given, **change})
