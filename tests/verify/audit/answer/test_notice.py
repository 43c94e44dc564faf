import dataclasses
import itertools
import math
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.accounting import accountant as accounting
from canaryproof.verify.audit.answer import notice
from canaryproof.verify.audit.answer.findings import GateOutcome
from canaryproof.verify.audit.answer.misuse import EACH_LEVEL
from canaryproof.verify.audit.answer.notice import BoundTest, Deciding, blind_spots, least_count, rounds_per_score
from canaryproof.verify.audit.answer.recorded import least_noise_share
from canaryproof.verify.audit.answer.run_audit import audit, audit_release
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS, AtlasClaim
from canaryproof.verify.audit.bounds import one_run
from canaryproof.verify.audit.bounds.catalogue import DEFAULT, METHODS
from canaryproof.verify.audit.bounds.lower_bound import Inclusion, normal_null, prepare
from canaryproof.verify.audit.bounds.one_run import curve_of, curve_p_value
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.estimators import noise_multiplier
from canaryproof.verify.audit.levels import LEVEL, POWER
from tests.statuses import ruling

NOISE = 5.0
# Scores that are simulated at once.
PIECE = 2_000_000


def cell(count, null_count, claim, delta, rounds=1, inclusion=Inclusion.FIXED):
    return BoundTest(claim, delta, 0.05, count, null_count, rounds, inclusion)


def power(test, share, noise=NOISE):
    """The probability that the bound is above the claim, at a share of the claimed noise."""
    return test.power(np.array([1.0 / (share * noise)]))


def audits_above(share, test, runs, key):
    """Count audits, simulated with the real bound, whose bound is above the claim."""
    rng, above = np.random.default_rng(key), 0
    count, null_count, rounds = test.count, test.null_count, test.rounds
    method = METHODS["one-run" if test.inclusion == "coin" else DEFAULT]
    step = max(1, PIECE // (rounds * (count + (null_count or 0))))
    for start in range(0, runs, step):
        size = min(step, runs - start)
        observed = rng.standard_normal((size, count, rounds))
        observed[..., 0] += 1.0 / (share * NOISE)
        observed = observed.max(axis=-1)
        if null_count is None:
            scores = prepare(observed, null=normal_null())
        else:
            unobserved = rng.standard_normal((size, null_count, rounds)).max(axis=-1)
            scores = prepare(observed, unobserved, inclusion=test.inclusion)
        above += int((method.values(scores, test.delta, test.level)[0] > test.claim).sum())
    return above


def check_promise(test, runs, key):
    share = test.noticed_share(NOISE)
    assert share is not None
    assert 0.9 <= power(test, share) < 0.91 or share == 1.0
    above = audits_above(share, test, runs, key)
    assert stats.binom.cdf(above, runs, POWER) > LEVEL
    # The promise is not far too cautious.
    assert stats.binom.sf(above - 1, runs, 0.95) > LEVEL


# No table serves 60 scores of each kind beyond a δ of 0.01.
BEYOND = cell(60, 60, 0.5, 0.05)


@pytest.mark.parametrize(
    "test", [cell(300, 300, 3.0, 1e-6), cell(300, None, 1.0, 1e-5), pytest.param(BEYOND, marks=pytest.mark.deep)]
)
def test_the_bound_is_above_the_claim_as_often_as_promised(test):
    runs = 600
    check_promise(test, runs, 1)
    # The test notices with probability 90% if it is so in 81% of the audits.
    assert stats.binom.cdf(stats.binom.ppf(LEVEL, runs, POWER) - 1, runs, 0.81) > POWER


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("claim", "noise", "count"),
    [(accounting.gaussian(1.0), 1.0, 300), (accounting.poisson(1.0, rate=0.5, rounds=3), 0.8, 100)],
)
def test_the_claims_curve_is_refuted_as_often_as_promised(claim, noise, count, monkeypatch):
    # Audits of equal size have equal numbers of guesses.
    monkeypatch.setattr(one_run, "number_for_curve", cache(one_run.number_for_curve))
    test = BoundTest(claim.epsilon(1e-5), 1e-5, 0.05, count, count, inclusion=Inclusion.COIN, curve=claim)
    share, runs = test.noticed_share(noise), 150
    curve, rng, refuted = curve_of(claim.tradeoff), np.random.default_rng(86), 0
    assert 0.9 <= power(test, share, noise) < 0.91
    for _ in range(runs):
        scores = prepare(
            rng.normal(size=count) + 1.0 / (share * noise), rng.normal(size=count), inclusion=Inclusion.COIN
        )
        refuted += curve_p_value(scores, curve) <= 0.05
    # The test notices with probability 90% if the curve is refuted in 71% of the audits.
    assert stats.binom.cdf(refuted, runs, POWER) > LEVEL
    assert stats.binom.cdf(stats.binom.ppf(LEVEL, runs, POWER) - 1, runs, 0.71) > POWER


GRID = [
    *(
        cell(count, null_count, claim, delta)
        for count in (50, 200, 1000)
        for null_count in (count, None)
        for claim in (0.3, 1.0, 2.0)
        for delta in (1e-6, 1e-3)
    ),
    cell(1000, 1000, 3.0, 1e-2),
    cell(1000, 1000, 5.0, 1e-6),
    cell(1000, None, 8.0, 1e-6),
    cell(100, 1000, 2.0, 1e-6),
    cell(1000, 100, 2.0, 1e-6),
    cell(20, 20, 1.0, 1e-6),
    cell(10, None, 3.0, 1e-6),
    cell(5000, 5000, 3.0, 1e-6),
    cell(300, 300, 2.0, 1e-6, rounds=10),
    cell(1000, 1000, 1.0, 1e-6, rounds=4),
    cell(20, 20, 0.5, 1e-6, inclusion=Inclusion.COIN),
    cell(500, 480, 3.0, 1e-5, inclusion=Inclusion.COIN),
]


@pytest.mark.deep
@pytest.mark.parametrize(("key", "test"), list(enumerate(GRID)))
def test_the_promise_is_kept_over_a_grid(key, test):
    check_promise(test, 2000, key)


@pytest.mark.deep
@pytest.mark.parametrize("null_count", [40_000, None])
def test_the_promise_is_kept_beyond_the_sizes_that_have_a_ladder(null_count):
    check_promise(cell(40_000, null_count, 3.0, 1e-6), 300, 5)


@pytest.mark.parametrize(
    ("count", "inclusion", "delta"),
    [
        (30, Inclusion.FIXED, 1e-6),
        (300, Inclusion.FIXED, 1e-6),
        (300, Inclusion.COIN, 1e-6),
        (60, Inclusion.FIXED, 0.05),
    ],
)
def test_nothing_is_noticed_where_the_cap_is_not_above_the_claim(count, inclusion, delta):
    scores = prepare(np.arange(count) + 1.0, -np.arange(count) - 1.0, inclusion=inclusion)
    cap = METHODS["one-run" if inclusion == "coin" else DEFAULT].bound(scores, delta, 0.05).cap
    assert cell(count, count, cap + 1e-6, delta, inclusion=inclusion).noticed_share(NOISE) is None
    assert cell(count, count, 0.98 * cap, delta, inclusion=inclusion).noticed_share(NOISE) is not None


@pytest.mark.parametrize("claim", [101.0, 1e4])
def test_no_number_of_unobserved_scores_notices_a_huge_claim(claim):
    assert cell(1000, 1000, claim, 1e-6).noticed_share(NOISE) is None
    assert cell(1000, 1000, claim, 1e-6, inclusion=Inclusion.COIN).noticed_share(NOISE) is None


def test_less_noise_more_scores_and_smaller_claims_are_noticed_more_often():
    powers = [power(cell(200, 200, 2.0, 1e-6), share) for share in (0.2, 0.15, 0.12, 0.1, 0.05)]
    assert powers == sorted(powers)
    assert powers[0] < 0.2
    assert powers[-1] > 0.98
    shares = [cell(size, size, 2.0, 1e-6).noticed_share(NOISE) for size in (100, 400, 1600)]
    assert shares == sorted(shares)
    shares = [cell(400, None, claim, 1e-6).noticed_share(NOISE) for claim in (4.0, 2.0, 1.0)]
    assert shares == sorted(shares)


def test_noise_that_the_claim_itself_exceeds_is_noticed_at_once():
    assert cell(1000, 1000, 3.0, 1e-6).noticed_share(0.3) == 1.0


def test_the_least_number_of_a_grid():
    assert least_count(lambda count: count >= 2, 100) == 2
    assert 1000 <= least_count(lambda count: count >= 1000, 10**6) <= 1050
    assert least_count(lambda count: count >= 100, 100) == 100
    assert least_count(lambda _: False, 100) is None


@pytest.mark.parametrize("rounds", [1, 2, 20, 500])
def test_the_number_of_rounds_is_found_by_the_unobserved_largest_cosines(rounds):
    drawn = np.random.default_rng(rounds).standard_normal((20, 400, rounds)).max(axis=2)
    found = np.log(
        [rounds_per_score(scale * scores) for scale, scores in zip(np.geomspace(1e-3, 1e3, 20), drawn, strict=True)]
    )
    # Within five standard errors of the mean over twenty; scores of one round are hardly ever taken for more.
    assert abs(found.mean() - math.log(rounds)) <= 5.0 * found.std() / math.sqrt(20)
    assert rounds_per_score(np.random.default_rng(0).standard_normal(100) - 3.0) == 1.0


@pytest.mark.parametrize("count", [100, 2500])
def test_scores_are_taken_for_the_largest_of_several_at_a_level_of_one_in_ten_million(count):
    drawn = np.random.default_rng(0).standard_normal(count)
    centred, critical = (drawn - drawn.mean()) / drawn.std(), stats.norm.isf(1e-7) / math.sqrt(count)
    assert rounds_per_score(centred + 0.99 * critical) == 1.0
    assert rounds_per_score(centred + 1.01 * critical) > 1.0


@pytest.mark.parametrize("rounds", [20, pytest.param(1, marks=pytest.mark.deep)])
def test_an_audit_notices_what_it_says_of_the_largest_of_several_rounds(rounds):
    rng, count, audits, exceeded = np.random.default_rng([3, rounds]), 400, 25, 0

    def drawn(noise):
        observed, unobserved = rng.standard_normal((2, count, rounds))
        observed[:, 0] += 1.0 / noise
        return audit(Scores(observed.max(axis=1) / 1e3, unobserved.max(axis=1) / 1e3, 10**6), 1e-5, claim=3.0)

    honest = drawn(1.0)
    sigma = honest.claimed_noise(3.0)
    for _ in range(audits):
        exceeded += drawn(drawn(sigma).noticed_share * sigma).finding("leak").status == "failed"
    # Each of these shares was taken from an honest audit, whose number of rounds is estimated.
    assert stats.binom.cdf(exceeded, audits, POWER) > LEVEL
    assert stats.binom.sf(exceeded - 1, audits, 0.2) < LEVEL


SIGMA = 1.54
CLAIM = AtlasClaim(SIGMA, 1e-6, 10**6)


def deciding(count, *, lengths=None, by_bound=True, claim=CLAIM, epsilon=3.0):
    bound = BoundTest(epsilon, claim.delta, 0.025, count, None)
    return Deciding(claim=claim, bound=bound, by_bound=by_bound, lengths=lengths, alone=False)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("lengths", [None, (math.sqrt(300.0),)])
def test_the_list_of_faults_begins_where_the_audit_s_own_promise_ends(lengths):
    tests = deciding(300, lengths=lengths, by_bound=lengths is None)
    (edge,) = (part.high for part in blind_spots(tests, given=True).noticed if part.mechanism == "less-noise")
    if lengths is None:
        share = tests.bound.noticed_share(SIGMA)
    else:
        share = noise_multiplier.noticed_share(SIGMA, np.array(lengths), 10**6, 0.025)
    assert edge == pytest.approx(share, rel=0.01)


@pytest.mark.parametrize(
    ("sigma", "lengths"),
    [(0.5, None), (2.0, None), (0.5, (math.sqrt(20.0),)), (2.0, (math.sqrt(200.0),))],
)
def test_data_hide_a_lack_of_noise_as_so_much_more_noise_would(sigma, lengths):
    claim = AtlasClaim(sigma, 1e-6, 10**6)
    tests = deciding(1000, lengths=lengths, by_bound=lengths is None, claim=claim, epsilon=claim.epsilon)
    fault, powers = MECHANISMS["less-noise"], []
    for share in (0.3, 0.5, 0.7):
        powers.append(dataclasses.replace(tests, hides=0.3).power(fault, share))
        assert powers[-1] == pytest.approx(tests.power(fault, math.sqrt(share**2 + 0.3)), abs=0.02)
    assert powers[0] > powers[-1] + 0.05


def test_a_fault_is_noticed_as_often_as_listed():
    """Releases are drawn along two axes: the residual, and what the canaries add."""
    tests, runs = deciding(200), 600
    (low,) = (part.low for part in blind_spots(tests, given=True).noticed if part.mechanism == "no-noise-on-a-share")
    rng = np.random.default_rng(3)
    residual = MECHANISMS["no-noise-on-a-share"].residual(low, CLAIM, runs, rng)
    traces = np.sqrt(CLAIM.dim / (residual.gram[:, 0, 0] + 200.0))
    observed = traces[:, np.newaxis] + rng.standard_normal((runs, 200))
    scores = prepare(observed, null=normal_null())
    above = int((METHODS[DEFAULT].values(scores, 1e-6, 0.025)[0] > 3.0).sum())
    assert stats.binom.cdf(above, runs, POWER) > LEVEL


def test_faults_that_no_number_sees_are_never_listed_as_noticed():
    spots = blind_spots(deciding(10_000), given=True)
    never = {"unclipped", "memorised", "released-outright", "few-states"}
    assert never.isdisjoint(part.mechanism for part in spots.noticed)
    assert never <= {part.mechanism for part in spots.unnoticed}
    assert all(part.epsilon > 3.0 for part in spots.unnoticed)


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize("sigma", [0.01, 1e6])
@pytest.mark.parametrize(
    ("delta", "dim", "count"),
    [
        (1e-300, 1000, 2),
        (0.9, 1000, 2),
        (1e-300, 10**12, 10**4),
        pytest.param(0.9, 10**12, 10**4, marks=pytest.mark.deep),
    ],
)
def test_any_claim_has_its_lists(sigma, delta, dim, count):
    claim = AtlasClaim(sigma, delta, dim)
    epsilon = min(max(claim.epsilon, 0.001), 10_000.0)
    spots = blind_spots(deciding(count, lengths=(math.sqrt(count),), claim=claim, epsilon=epsilon), given=True)
    for part in (*spots.noticed, *spots.unnoticed):
        assert part.mechanism in MECHANISMS
        assert part.low <= part.high
        assert 0.0 <= part.alarm <= 1.0


@pytest.mark.parametrize(("crowded", "alone", "others"), [(True, False, 37), (False, False, 200), (False, True, 0)])
def test_a_fault_is_looked_for_at_the_traces_that_its_releases_leave(crowded, alone, others, monkeypatch):
    asked, fault = [], MECHANISMS["no-noise-on-a-share"]
    crowd = SimpleNamespace(shared=37, power=lambda *given: float(asked.append(given) or 0.25))
    monkeypatch.setattr(BoundTest, "power", lambda test, traces: float(asked.append((traces[0], test)) or 0.25))
    tests = dataclasses.replace(
        deciding(200), alone=alone, hides=0.5, crowd=(crowd, 1.3) if crowded else None, by_bound=not crowded
    )
    assert tests.power(fault, 0.5) == pytest.approx(0.25)
    squares, weight = notice.residuals(fault, 0.5, CLAIM)
    assert len(squares) == 40
    # Independent canaries of a release are noise to each other, and so are data of half of the noise's variance.
    lengths = squares + 0.5 * SIGMA**2 * CLAIM.dim + others * weight**2
    traces = np.quantile(weight * np.sqrt(CLAIM.dim / lengths), [0.1, 0.3, 0.5, 0.7, 0.9])
    assert [given[0] for given in asked] == pytest.approx(np.unique(traces))
    assert all(each[1:] == ((1.3, 0.025) if crowded else (tests.bound,)) for each in asked)


@pytest.mark.parametrize(("count", "null_count", "trace", "rounds"), [(90, 30, 1.5, 1), (60, 60, 0.8, 3)])
def test_the_number_of_unobserved_among_the_highest_has_the_moments_of_simulated_ones(count, null_count, trace, rounds):
    rng, runs, positions = np.random.default_rng(0), 20_000, np.array([60, 75, 90, 100, 110])
    z = rng.standard_normal((runs, count + null_count, rounds))
    z[:, :count, 0] += trace
    highest = np.argsort(-z.max(axis=2), axis=1)
    simulated = (highest >= count).cumsum(axis=1)[:, positions - 1]
    drawn = notice._unobserved_among_highest(np.array([trace]), rounds, count, null_count, positions)
    deviations = simulated.std(axis=0)
    assert (np.abs(drawn.mean(axis=0) - simulated.mean(axis=0)) < 0.06 * deviations).all()
    assert drawn.std(axis=0) == pytest.approx(deviations, rel=0.05)
    # Of so many runs a skewness errs by 0.017.
    assert stats.skew(drawn) == pytest.approx(stats.skew(simulated), abs=0.12)


def test_counts_beyond_ranks_are_numbers_of_unobserved_among_the_highest(monkeypatch):
    monkeypatch.setattr(notice, "declared_ranks", lambda _: np.array([1, 2, 3]))
    count, null_count = 5, 4
    # Least numbers of observed scores above the highest unobserved ones, and of unobserved below the lowest observed.
    for above, below in (((4, 3, 6), (2, 5, 3)), ((6, 6, 4), (5, 5, 5)), ((6, 5, 6), (1, 3, 4))):
        part = notice._rejection(count, null_count, [np.array(above), np.array(below)], notice._Guesses(0, 0, -1))
        for places in itertools.combinations(range(count + null_count), null_count):
            unobserved = np.isin(np.arange(count + null_count), places)
            observed = np.flatnonzero(~unobserved)
            rejected = any((~unobserved[: places[rank]]).sum() >= least for rank, least in enumerate(above)) or any(
                unobserved[observed[-1 - rank] :].sum() >= least for rank, least in enumerate(below)
            )
            among = np.r_[0, unobserved.cumsum()]
            assert bool((among[part.positions] <= part.most).any()) == rejected


def test_where_no_test_decides_there_is_no_list():
    assert blind_spots(deciding(100, by_bound=False), given=True) is None
    assert blind_spots(deciding(100, claim=AtlasClaim(SIGMA, 1e-6, 999)), given=True) is None


def test_what_scores_of_few_values_notice_is_not_known():
    rng = np.random.default_rng(8)
    labels = Scores(
        (rng.random(1000) < 0.9).astype(float),
        (rng.random(1000) < 0.7).astype(float),
        kind="any",
        inclusion="independent",
    )
    # Their ε at δ = 0 is log 3.
    found = audit(labels, 1e-5, claim=2.0)
    assert (ruling(found), found.noticed_share) == ("CANNOT SAY: leak", None)
    assert "how much missing noise it would have noticed is not known" in " ".join(str(found).split())
    # Whole numbers that are a quarter of a deviation apart lose next to nothing.
    numbers = Scores(*np.rint(4.0 * (np.array([[0.7], [0.0]]) + rng.standard_normal((2, 1000)))), kind="any")
    assert audit(numbers, 1e-5, claim=1.0).noticed_share is not None


def test_a_sufficient_number_is_doubled_and_rounded_up_to_two_digits(monkeypatch):
    asked = []

    def found(least, count, null_count=None):
        monkeypatch.setattr(
            BoundTest, "power", lambda test, traces: float(asked.append((test, *traces)) or test.count >= least)
        )
        return cell(count, null_count, 3.0, 1e-6).sufficient_count(0.5)

    # 17, 34, …, 544, 1088.
    assert found(1000, 17) == 1100
    assert (cell(1088, None, 3.0, 1e-6), 0.5) in asked
    assert found(1000, 17, 20) == 1100
    assert (cell(1088, 1088, 3.0, 1e-6), 0.5) in asked
    assert found(1000, 1000) == 1000
    assert [found(17 * least, 17) for least in (1, 2, 3, 5, 100)] == [17, 34, 68, 140, 2200]
    assert found(1000, 1001, 1001) == 1100
    assert found(10**6 + 1, 17) is None
    assert found(10**6, 17) == 10**6


def test_some_coins_suffice_where_more_are_too_many():
    """A δ of 1e-3 may show sixty canaries of 60,000, for which the bound by coins must allow."""
    test = dataclasses.replace(cell(237, 237, 1.0, 1e-3), inclusion=Inclusion.COIN)
    found = test.sufficient_count(0.8)
    assert power(dataclasses.replace(test, count=found, null_count=found), 0.25) >= POWER
    assert power(dataclasses.replace(test, count=30_000, null_count=30_000), 0.25) < POWER


def test_no_digit_depends_on_the_number_of_cores():
    tests = notice._exact_tests(1000, 3.0, 1e-6, 0.05)
    numbers = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            numbers.append([notice._power_by_thresholds(trace, 1000, tests) for trace in (0.05, 0.2, 0.35)])
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("data_norm", [0.0, 20.0, 40.0])
def test_beside_data_of_a_stated_norm_an_audit_promises_what_the_length_notices(data_norm):
    """Data as long as stated hide missing noise from the canaries, however many there are, but not from the length."""
    canaries, noise = Canaries(7, 300, 4000), np.random.default_rng(1).normal(0.0, 1.54, 4000)
    release = canaries.sum(np.arange(300)) + noise
    found = audit_release(release, canaries, 1e-6, noise_multiplier=1.54, data_norm=data_norm, ask=["input", "leak"])
    share = least_noise_share(1.54, 4000, data_norm, EACH_LEVEL)
    assert found.decision.outcome is GateOutcome.PASSED
    assert f"If only {math.floor(100.0 * share)}% of the claimed noise had been added" in " ".join(str(found).split())
