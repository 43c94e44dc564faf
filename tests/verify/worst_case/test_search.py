from dataclasses import replace

import numpy as np
import pytest

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.suites.worst_case.search import Domain, measure, search
from canaryproof.verify.suites.worst_case.targets import TARGETS

BY_NAME = {target.name: target for target in TARGETS}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_draws_fill_both_domains(target):
    rng = np.random.default_rng(0)
    draws = [target.draw(rng) for _ in range(400)]
    assert sum(target.inside(*draw) for draw in draws) >= 300
    assert sum(measure(target, Domain.PRACTICE, draw) is not None for draw in draws[:100]) >= 3


def test_climbing_finds_a_narrow_fault():
    def wrong(epsilon, sigma):
        value = float(gaussian_mechanism.epsilon(epsilon, sigma))
        # A bump a tenth wide in log σ, that a climb feels from a distance.
        return value * (1.0 + 1e-15 + 1e-9 * np.exp(-((np.log(sigma / 37.0) / 0.1) ** 2)))

    target = replace(BY_NAME["gaussian-mechanism.epsilon"], kernel=wrong)
    case, judged = search(target, Domain.WHOLE, 1000, np.random.default_rng(0))
    assert judged > 1000
    assert case.arguments[1] == pytest.approx(37.0, rel=0.1)


def test_known_inputs_are_where_a_search_begins():
    target = BY_NAME["gaussian-mechanism.epsilon"]
    known = (0.25, 3.0)

    def wrong(delta, sigma):
        return np.nan if (delta, sigma) == known else gaussian_mechanism.epsilon(delta, sigma)

    case, _ = search(replace(target, kernel=wrong), Domain.WHOLE, 1, np.random.default_rng(0), [known])
    assert case.arguments == known


def test_inputs_outside_are_not_judged():
    target = BY_NAME["null-cosine.pdf"]
    assert measure(target, Domain.WHOLE, (0.5, 1.5)) is None
    assert measure(target, Domain.PRACTICE, (0.5, 99.0)) is None
    assert measure(target, Domain.PRACTICE, (0.5, 100.0)) is not None
    # e^−5000: no normal float.
    assert measure(target, Domain.WHOLE, (0.1, 1e6)) is None
