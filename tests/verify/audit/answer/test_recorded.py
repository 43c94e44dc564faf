"""A claim is held against what a training recorded: its rounds, how they were drawn, and the ε of all of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import canaryproof as cp
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.answer.recorded import (
    holds,
    least_noise_share,
    mechanism_text,
    recorded_mechanism,
    sampling_test,
)
from canaryproof.verify.audit.answer.run_audit import audit
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.canaries.scores import RoundsRecord, Score
from canaryproof.verify.audit.levels import LEVEL, POWER
from tests.statuses import has_failed, ruling

ROUNDS, RATE, DELTA = 64, 1 / 8, 1e-5
HONEST = accountant.poisson(1.0, rate=RATE, rounds=ROUNDS)


def record(taken, members=400, rounds=ROUNDS, most=17):
    return RoundsRecord(Score.LIKELIHOOD, most, 0, rounds, 0, 0, None, members=members, taken=taken)


def with_record(scores, changed):
    return cp.Scores(scores.observed, scores.unobserved, inclusion=scores.inclusion, kind=scores.kind, record=changed)


def batches(rounds=ROUNDS, batch=125):
    return accountant.fixed_batches(1.0, batch=batch, records=1000, rounds=rounds, neighbours="add-or-remove")


@pytest.mark.parametrize("claim", [HONEST, batches()])
def test_the_test_of_sampling_rejects_an_honest_record_at_most_at_its_level(claim):
    """By the exact laws of all members' participations together, and of the member that has most."""
    members, level, exact = 400, 0.01, claim.rate is not None
    trials = members * ROUNDS
    critical = next(
        taken
        for taken in range(trials // 8, trials)
        if sampling_test(claim, record(taken, most=0), level).p_value < level
    )
    if exact:
        tail = stats.binom.sf(critical - 1, trials, RATE)
        assert 0.4 * level < tail <= 0.5 * level
    else:
        # The sum of 64 hypergeometric numbers of canaries in a batch; Chernoff's bound is above its tail.
        deviation = math.sqrt(ROUNDS * stats.hypergeom.var(1000, members, 125))
        assert stats.norm.sf((critical - 0.5 - trials * RATE) / deviation) < 0.5 * level
    most = next(most for most in range(8, 64) if sampling_test(claim, record(3200, most=most), level).p_value < level)
    assert members * stats.binom.sf(most - 1, ROUNDS, RATE) <= 0.5 * level


@pytest.mark.parametrize("claim", [HONEST, batches()])
def test_the_rate_that_would_be_noticed_is_noticed_with_probability_ninety_percent(claim):
    noticed, level = sampling_test(claim, record(3200), 0.01).noticed_rate, 0.01
    critical = next(t for t in range(3200, 25600) if sampling_test(claim, record(t, most=0), level).p_value < level)
    assert stats.binom.sf(critical - 1, 400 * ROUNDS, noticed) == pytest.approx(POWER, abs=1e-6)


def test_records_that_do_not_say_how_often_members_took_part_are_not_tested():
    silent = RoundsRecord(Score.LIKELIHOOD, 17, 0, ROUNDS, 0, 0, None)
    assert sampling_test(HONEST, silent, 0.01) is None
    assert sampling_test(None, record(3200), 0.01) is None
    assert sampling_test(accountant.epsilon_delta(3.0, DELTA), record(3200), 0.01) is None
    assert sampling_test(accountant.gaussian(1.0, participations=3), record(3200), 0.01) is None


@pytest.mark.parametrize("claim", [HONEST, batches()])
def test_the_recorded_mechanism_has_the_rounds_that_were_taken(claim):
    assert recorded_mechanism(claim, record(3200), sampled=True) == claim
    longer = recorded_mechanism(claim, record(3200, rounds=128), sampled=True)
    assert longer.rounds == 128
    assert longer.epsilon(DELTA) > claim.epsilon(DELTA)
    # Whose rounds were not drawn as claimed has the ε of known ones.
    known = recorded_mechanism(claim, record(3200), sampled=False)
    assert known == accountant.gaussian(1.0, participations=17, rounds=ROUNDS)
    assert recorded_mechanism(accountant.epsilon_delta(3.0, DELTA), record(3200), sampled=True) is None
    assert recorded_mechanism(None, record(3200), sampled=True) is None


def test_a_schedule_of_known_rounds_stands_for_as_many_rounds_as_it_has():
    import dp_accounting

    noises = [dp_accounting.GaussianDpEvent(noise) for noise in (1.0, 1.5, 2.0)]
    claim = accountant.from_event(dp_accounting.ComposedDpEvent(noises))
    assert recorded_mechanism(claim, record(9, rounds=3, most=3), sampled=False) == claim
    assert recorded_mechanism(claim, record(9, rounds=4, most=4), sampled=False) is None


def test_a_record_takes_part_once_in_a_shuffled_epoch():
    claim = accountant.shuffled(1.0, batches=8, epochs=2, neighbours="add-or-remove")
    assert claim.sampling.rate is None
    assert recorded_mechanism(claim, record(3200, rounds=16, most=2), sampled=False) == claim
    # More participations, or rounds, than an epoch has are no shuffled epochs.
    for rounds, most in ((16, 3), (17, 2)):
        known = recorded_mechanism(claim, record(3200, rounds=rounds, most=most), sampled=False)
        assert known == accountant.gaussian(1.0, participations=most, rounds=rounds)


def test_an_epsilon_of_another_accountant_may_be_smaller_by_a_hundredth():
    exact = HONEST.epsilon(DELTA)
    for factor, exactly, rounded in ((1.0, True, True), (1 / 1.005, None, True), (1 / 1.05, False, False)):
        claimed = factor * exact
        # The accountant's lower end is within 1% of its upper one.
        assert holds(HONEST, claimed, DELTA, exact=False) is rounded
        if factor != 1 / 1.005:
            assert holds(HONEST, claimed, DELTA, exact=True) is exactly
    wide = batches()
    between = 0.5 * (wide.epsilon(DELTA) + wide.attained_epsilon(DELTA))
    assert holds(wide, between, DELTA, exact=True) is None


@pytest.mark.parametrize(("dim", "data"), [(500, 0.0), (500, 8.0), (20_000, 30.0), (10**6, 0.0)])
def test_the_length_of_a_release_notices_the_share_that_is_said(dim, data):
    """Of 2,000 releases with this share of the noise 90% are too short, within 5e-7 of chance at either end."""
    level, sigma, runs = 1e-6, 1.54, 2000
    share = least_noise_share(sigma, dim, data, level)
    assert 0.5 < share < 1.0
    # A release is called short where it is so by more than 2%, too.
    quantile = sigma**2 * min(stats.chi2.ppf(level, dim), 0.98**2 * dim)
    noise = share * sigma
    lengths = noise**2 * stats.ncx2.rvs(dim, max((data / noise) ** 2, 1e-12), size=runs, random_state=0)
    short = int((lengths < quantile).sum())
    assert stats.binom.cdf(short, runs, POWER) > LEVEL / 2
    assert stats.binom.sf(short - 1, runs, POWER) > LEVEL / 2


def test_in_many_dimensions_no_more_is_promised_than_warned_of():
    dim = 2**17
    canaries = cp.OrthonormalCanaries(7, 300, dim)
    release = canaries.sum() + 1.54 * 0.983 * np.random.default_rng(1).normal(size=dim)
    found = cp.audit_release(
        release, canaries, delta=1e-6, noise_multiplier=1.54, data_norm=0.0, ask=["input", "leak", "noise"]
    )
    # This much is missing, which nobody says, and it was not promised.
    assert found.decision.outcome == "PASSED"
    assert "If only 97% of the claimed" in str(found)


def test_data_as_long_as_the_noise_leave_nothing_to_notice():
    assert least_noise_share(1.0, 1000, 40.0, 1e-6) == 0.0


def test_mechanisms_are_described():
    texts = [
        "noise multiplier 1, rate 0.125, 64 rounds",
        "noise multiplier 1, one participation",
        "noise multiplier 1, 3 participations",
        "noise multiplier 1, 2 shuffled epochs of 16 rounds in all",
        "the claimed mechanism in 64 rounds",
    ]
    shuffled = accountant.shuffled(1.0, batches=8, epochs=2, neighbours="replace")
    claims = (HONEST, accountant.gaussian(1.0), accountant.gaussian(1.0, participations=3), shuffled, batches())
    assert list(map(mechanism_text, claims)) == texts


# The claims that passed for 64 rounds at rate 1/8 though the record contradicts them, and two that hold.
CLAIMS = {
    "rate 1/16": accountant.poisson(1.0, rate=1 / 16, rounds=ROUNDS),
    "rate 1/32": accountant.poisson(1.0, rate=1 / 32, rounds=ROUNDS),
    "32 rounds": accountant.poisson(1.0, rate=RATE, rounds=32),
    "1 round": accountant.poisson(1.0, rate=RATE, rounds=1),
    "a bare number": 2.2657,
    "the truth": HONEST,
    "65 rounds": accountant.poisson(1.0, rate=RATE, rounds=65),
}
FAILS = {
    "rate 1/16": ("sampling", "accounting"),
    "rate 1/32": ("sampling", "accounting"),
    "32 rounds": ("accounting",),
    "1 round": ("accounting",),
    "a bare number": ("accounting",),
}


def trained(seed, dim=1000, members=200, noise=1.0):
    insertion = Insertion(2 * members, observed=members)
    clients = CanaryClients(
        cp.Canaries(seed, 2 * members, dim), bernoulli(0, RATE, ROUNDS, seed, insertion), noise_multiplier=1.0
    )
    rng = np.random.default_rng(seed)
    for t in range(ROUNDS):
        clients.add(noise * rng.normal(size=dim) + clients.total(t, 1.0), t)
    return clients.scores("likelihood")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 10))])
def test_no_claim_passes_that_the_record_contradicts(seed):
    scores = trained(seed)
    rulings = {}
    for name, claim in CLAIMS.items():
        result = audit(scores, DELTA, claim=claim)
        rulings[name] = ruling(result)
        assert all(has_failed(result, question) for question in FAILS.get(name, ())), name
    passed = {name for name, said in rulings.items() if said == "PASSED"}
    assert passed <= {"the truth", "65 rounds"}
    if seed == 0:
        assert passed == {"the truth", "65 rounds"}
    half = audit(trained(seed, noise=0.5), DELTA, claim=2.2657)
    assert ruling(half) != "PASSED"


def test_a_bare_claim_is_held_against_what_the_loop_was_given():
    scores, epsilon = trained(0), HONEST.epsilon(DELTA)
    assert (scores.record.noise_multiplier, scores.record.rate) == (1.0, RATE)
    for claim, said in ((epsilon, "PASSED"), (0.8 * epsilon, "NOT PASSED: accounting")):
        assert ruling(audit(scores, DELTA, claim=claim)) == said
    # Nothing is claimed by what a loop was trained_scores, and known rounds have no use for a rate.
    assert audit(scores, DELTA).decision is None
    known = replace(scores.record, score=Score.KNOWN_ROUNDS)
    claimed = audit(with_record(scores, known), DELTA, claim=epsilon)
    assert claimed.finding("accounting").status == "not looked at"
    assert claimed.configured == accountant.gaussian(1.0, participations=known.participations, rounds=ROUNDS)


@pytest.mark.parametrize("share", [0.8, 0.993, 1.0])
@pytest.mark.parametrize("score", [Score.KNOWN_ROUNDS, Score.LIKELIHOOD])
def test_a_bare_claim_is_judged_the_same_however_it_is_spelled(score, share):
    scores, epsilon = trained(0), share * HONEST.epsilon(DELTA)
    scores = with_record(scores, replace(scores.record, score=score))
    number, claim = (
        audit(scores, DELTA, claim=each) for each in (epsilon, cp.accounting.epsilon_delta(epsilon, DELTA))
    )
    assert number.findings == claim.findings
    assert ruling(number) == ruling(claim)


def test_a_rate_below_that_of_the_schedule_fails_though_few_canaries_do_not_show_it():
    scores = trained(3, members=4)
    result = audit(scores, DELTA, claim=accountant.poisson(1.0, rate=0.115, rounds=ROUNDS))
    assert result.sampling_test.p_value > 0.05
    assert ruling(result) == "NOT PASSED: sampling, accounting"
    assert "the schedule draws a canary at rate 0.125, claimed 0.115" in str(result).replace("\n", " ")
    larger = audit(scores, DELTA, claim=accountant.poisson(1.0, rate=0.2, rounds=ROUNDS))
    assert not has_failed(larger, "sampling")
    assert not has_failed(larger, "accounting")


def test_a_claim_of_more_noise_than_the_loop_was_given_fails_its_accounting():
    claim = accountant.poisson(1.02, rate=RATE, rounds=ROUNDS)
    result = audit(trained(0), DELTA, claim=claim)
    assert ruling(result) == "NOT PASSED: accounting"
    assert result.recorded == HONEST
    # The same if the audit is given the noise, and the loop was not.
    scores = trained(0)
    record = replace(scores.record, noise_multiplier=None)
    unsaid = cp.Scores(scores.observed, scores.unobserved, kind="any", record=record)
    assert has_failed(audit(unsaid, DELTA, claim=claim, noise_multiplier=1.0), "accounting")
    less = accountant.poisson(0.98, rate=RATE, rounds=ROUNDS)
    assert audit(trained(0), DELTA, claim=less).recorded == less


def test_scheduled_rounds_keep_the_noise_that_the_loop_was_given(tmp_path):
    table = np.arange(40)[None, :] % 4 == np.arange(4)[:, None]
    clients = CanaryClients(cp.Canaries(0, 40, 500), cp.fixed_schedule(table, np.arange(40) < 20), noise_multiplier=1.0)
    rng = np.random.default_rng(0)
    for t in range(4):
        clients.add(rng.normal(size=500) + clients.total(t, 1.0), t)
    scores = clients.scores("known rounds")
    scores.save(path := tmp_path / "scores.json")
    record = cp.Scores.load(path).record
    assert (record.noise_multiplier, record.rate) == (1.0, None)
    epsilon = accountant.gaussian(1.0).epsilon(DELTA)
    for claim, status in ((epsilon, "as claimed"), (0.5 * epsilon, "not looked at")):
        assert audit(scores, DELTA, claim=claim).finding("accounting").status == status
    with pytest.raises(ValueError, match="need sampling"):
        clients.scores("likelihood")


@pytest.mark.parametrize(
    "schedule",
    [
        cp.uniform(40, cohort=10, rounds=4, seed=1, canaries=cp.Insertion(40, observed=20)),
        cp.bernoulli(40, 0.0, rounds=4, seed=1, canaries=cp.Insertion(40, observed=20)),
        cp.shuffled_epochs(40, 10, epochs=1, seed=1, canaries=cp.Insertion(40, observed=20)),
    ],
    ids=["fixed-batches", "nobody", "shuffled"],
)
def test_only_poisson_sampling_has_a_rate_that_a_bare_claim_is_held_against(schedule):
    # Batches of fixed size have a larger ε than Poisson sampling at their rate.
    clients = CanaryClients(cp.Canaries(0, 40, 500), schedule, noise_multiplier=1.0)
    rng = np.random.default_rng(0)
    for t in range(4):
        clients.add(rng.normal(size=500) + clients.total(t, 1.0), t)
    assert clients.scores("largest").record.rate is None


def test_a_bare_claim_is_held_against_the_mechanism_that_options_state():
    trained_scores = trained(0)
    scores = with_record(trained_scores, replace(trained_scores.record, noise_multiplier=None, rate=None))
    epsilon = HONEST.epsilon(DELTA)
    whole = {"noise_multiplier": 1.0, "rate": RATE, "rounds": ROUNDS}
    assert ruling(audit(scores, DELTA, claim=epsilon, **whole)) == "PASSED"
    assert ruling(audit(scores, DELTA, claim=0.8 * epsilon, **whole)) == "NOT PASSED: accounting"
    alone = audit(scores, DELTA, claim=epsilon, noise_multiplier=1.0)
    assert (alone.finding("accounting").status, alone.finding("sampling").status) == ("not looked at", "not looked at")
    assert "--rate" in alone.finding("accounting").do
    for options, rule in (
        ({"rate": RATE}, "rate: needs noise_multiplier"),
        ({"noise_multiplier": 1.0, "rate": RATE, "participations": 3}, "participations: must not be given with rate"),
        ({"noise_multiplier": 1.0, "rate": 2.0}, "rate: must be above 0 and at most 1"),
        ({"noise_multiplier": 1.0, "rate": 0.0}, "rate: must be above 0 and at most 1"),
        ({"noise_multiplier": 1.0, "rounds": 3}, "rounds: needs rate"),
        ({"participations": 3}, "participations: needs noise_multiplier"),
        ({"ask": ("plan",)}, "ask: must be "),
        ({"ask": 3}, "ask: must be a sequence of questions"),
        ({"ask": "leak"}, "ask: must be a sequence of questions"),
        ({"noise_multiplier": 1.0, "participations": 0}, "participations: must be a whole number from 1"),
    ):
        with pytest.raises(ValueError, match=f"^{rule}"):
            audit(scores, DELTA, claim=3.0, **options)
    with pytest.raises(ValueError, match=r"^rate: must not be given with a claim that says its mechanism"):
        audit(scores, DELTA, claim=HONEST, noise_multiplier=1.0, rate=0.1)


@pytest.mark.deep
@pytest.mark.timeout(5400)
def test_honest_releases_and_scores_are_not_passed_at_most_at_the_printed_level():
    """Of 2,000 honest runs more than 140 are NOT PASSED with probability 1e-5 if each is with 5%."""
    failed, canaries = 0, cp.Canaries(7, 100, 1000)
    total = canaries.sum()
    for seed in range(1000):
        rng = np.random.default_rng([seed, 1])
        release = total + rng.normal(0.0, 1.0, 1000)
        failed += cp.audit_release(release, canaries, DELTA, noise_multiplier=1.0).decision.status == 1
        observed, unobserved = rng.normal([[1.0], [0.0]], 1.0, (2, 100))
        scores = cp.Scores(observed, unobserved, kind="any", inclusion="independent")
        failed += audit(scores, DELTA, claim=accountant.gaussian(1.0)).decision.status == 1
    assert stats.binom.sf(failed - 1, 2000, 0.05) > LEVEL
