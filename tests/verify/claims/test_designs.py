"""Every claim whose verdict depends on chance declares its test."""

import math

import pytest

from canaryproof.verify.claims import CHECKS
from canaryproof.verify.claims.judging import LEVEL
from canaryproof.verify.faults.trial import Answer, answer
from canaryproof.verify.results import Level

# Claims that draw, but whose verdict does not depend on the draws.
ILLUSTRATIONS = {"canife.section1.gap": "the smallest gap decides; the simulated medians stand beside it"}


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    return {check.id: answer(check.id, Level.QUICK, 0) for check in CHECKS}


def test_every_claim_that_draws_has_a_design_or_illustrates(answers: dict[str, Answer]) -> None:
    assert {name for name, found in answers.items() if found.random and found.design is None} == set(ILLUSTRATIONS)


def test_designs_are_of_their_claims_and_not_of_what_is_drawn(answers: dict[str, Answer]) -> None:
    designs = {name: found.design for name, found in answers.items() if found.design is not None}
    assert designs
    for design in designs.values():
        assert 0.0 < design.level <= LEVEL
        assert design.power >= 0.9
        assert design.runs > 1
    for name in (name for name, found in answers.items() if found.random and name in designs):
        other = answer(name, Level.QUICK, 1).design
        assert (other.null, other.level, other.runs) == (designs[name].null, designs[name].level, designs[name].runs)


def test_the_ledger_leaves_the_budget_of_a_run_to_the_other_suites(answers: dict[str, Answer]) -> None:
    assert math.fsum(found.design.level for found in answers.values() if found.design) < 1e-4
