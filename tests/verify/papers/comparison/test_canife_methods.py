import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from scipy import optimize

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.papers.accounting.sampled_gaussian import composed_epsilon, rdp
from canaryproof.verify.papers.canife.attack import ScoreLaw
from canaryproof.verify.papers.canife.measure import Deltas, rounds_served, training_epsilon
from canaryproof.verify.papers.comparison.canife import PRINTED
from canaryproof.verify.papers.comparison.canife_methods import METHODS, code_epsilon, exact, largest_round, spread
from canaryproof.verify.papers.records.benchmark_record import SpreadRecord

SETTING = replace(PRINTED, batch=4, canaries=100, every=10, pool=1, noise_multiplier=0.5)
PLAN = replace(SETTING.sizes(clients=100, dim=10_000), sampling=0.01)
BY_NAME = {method.name: method for method in METHODS}


def test_an_epoch_has_a_last_round_of_fewer_clients():
    epoch = replace(SETTING, batch=100, every=5).sizes(clients=1401, dim=10_000)
    assert (epoch.rounds, epoch.audited, epoch.sampling, epoch.dim) == (15, (5, 10, 15), 100 / 1401, 10_000)
    assert replace(SETTING, batch=100, every=5).sizes(clients=1400, dim=10_000).audited == (5, 10)


def audit(epsilons, shift=1.0, deviation=0.5):
    ends = dict(zip(("epsilon", "lower", "upper"), epsilons, strict=True))
    capped, separated = SimpleNamespace(**ends), SimpleNamespace(**{**ends, "epsilon": math.inf})
    attack = SimpleNamespace(scores=100, epsilon=SimpleNamespace(separated=separated, capped=capped))
    return SimpleNamespace(law=SimpleNamespace(shift=shift, deviation=deviation), attacks=(attack,))


@pytest.fixture
def found():
    audits = audit((3.0, 1.0, math.inf)), audit((2.0, -math.inf, 4.0), shift=0.9, deviation=0.6)
    return SimpleNamespace(canife={"as printed": audits, "redesigned": audits[::-1]})


def test_coins_have_the_cap_of_the_most_uneven_split():
    assert largest_round(100) == pytest.approx(math.log(0.99 * 50))
    assert largest_round(100, "coins") == pytest.approx(math.log(0.99 * 99))


def test_canife_composes_what_its_audits_found(found):
    served = rounds_served(PLAN.audited, PLAN.rounds)
    for name, deltas in (
        ("CANIFE as printed", Deltas.as_printed(100, 1e-5)),
        ("CANIFE as printed, conversion at 1/n", Deltas(0.01, 0.01, 1e-5)),
    ):
        value = BY_NAME[name].value(found, PLAN)
        for end, epsilons in (
            (value.epsilon, (3.0, 2.0)),
            (value.low, (1.0, -math.inf)),
            (value.high, (math.inf, 4.0)),
        ):
            assert end == training_epsilon(epsilons, served, PLAN.sampling, deltas)
        assert value.low < value.epsilon < value.high == math.inf
        largest = math.log(0.99 * 50)
        cap = BY_NAME[name].cap(found, PLAN)
        assert cap == training_epsilon((largest, largest), served, PLAN.sampling, deltas)
        assert value.epsilon < cap < math.inf


def test_without_a_cap_no_error_is_infinite(found):
    assert BY_NAME["CANIFE as printed, no errors are ∞"].value(found, PLAN).epsilon == math.inf


def test_the_redesign_has_its_own_audits(found):
    served = rounds_served(PLAN.audited, PLAN.rounds)
    expected = training_epsilon((2.0, 3.0), served, PLAN.sampling, Deltas.as_printed(100, 1e-5))
    assert BY_NAME["CANIFE redesigned"].value(found, PLAN).epsilon == expected


def test_the_public_code_has_sampled_rounds_cost_what_an_audit_found():
    found = code_epsilon((3.0, 2.0), PLAN)
    noise = [optimize.brentq(lambda s, e=e: rdp(s, 1e-5, 10, 0.01) - e, 0.2, 5.0, xtol=1e-12) for e in (3.0, 2.0)]
    assert found == pytest.approx(composed_epsilon(noise, [19, 6], 0.01, 1e-5), rel=1e-8)
    # No noise makes ten rounds cost so little.
    assert code_epsilon((1e-3, 1e-3), PLAN) == 0.0


def test_the_law_composes_its_own_noise(found):
    value = BY_NAME["CANIFE as printed, law of its scores"].value(found, PLAN)
    assert value.epsilon == composed_epsilon([0.5, 0.6 / 0.9], [19, 6], PLAN.sampling, PLAN.delta)


def test_canaries_without_an_update_never_show():
    assert exact((audit((0.0, 0.0, 0.0), shift=0.0, deviation=0.0),), replace(PLAN, audited=(10,))) == 0.0
    assert ScoreLaw(shift=0.0, noise=0.0, mean=0.0, clients=0.0).epsilon(1e-5) == 0.0


def test_a_sum_of_canaries_alone_caps_algorithm_2(found):
    cap = BY_NAME["Algorithm 2, final model"].cap(found, PLAN)
    assert cap == pytest.approx(float(gaussian_mechanism.epsilon(1e-5, 0.1)), rel=1e-9)


def test_each_method_says_what_it_is():
    assert {method.kind for method in METHODS} == {
        "estimate",
        "lower bound",
        "posterior interval",
        "composed estimate",
    }
    for method in METHODS:
        assert (method.needs.participation == "nothing") == (method.kind != "composed estimate")


def test_infinite_numbers_are_counted():
    assert spread([1.0, math.inf]) == SpreadRecord(math.inf, math.inf, 1)
    assert spread([1.0, 3.0]) == SpreadRecord(2.0, pytest.approx(math.sqrt(2.0)), 0)
    assert math.isnan(spread([1.0]).deviation)
