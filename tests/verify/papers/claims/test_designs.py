"""Every claim whose verdict depends on chance declares its test."""

import math
import os

from canaryproof.verify.papers.check.results import Check, Context, Effort
from canaryproof.verify.papers.check.verdicts import LEVEL
from canaryproof.verify.papers.claims import CHECKS

# Claims that draw, but whose verdict does not depend on the draws.
ILLUSTRATIONS = {"canife.section1.gap": "the smallest gap decides; the simulated medians stand beside it"}
# Of the claims, every so many are judged anew.
EVERY = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 8


class _DrawnError(Exception):
    pass


class _NoRandomness(Context):
    def key(self, purpose):
        raise _DrawnError(purpose)


def draws(check: Check) -> bool:
    try:
        check.judge(_NoRandomness(Effort.QUICK, 0))
    except _DrawnError:
        return True
    return False


def test_every_claim_that_draws_has_a_design_or_illustrates(quick_run):
    without = [check for check in CHECKS if quick_run.results[check.id].design is None]
    some = [check for i, check in enumerate(without) if i % EVERY == 0 or check.id in ILLUSTRATIONS]
    assert {check.id for check in some if draws(check)} == set(ILLUSTRATIONS)


def test_designs_are_of_their_claims_and_not_of_what_is_drawn(quick_run):
    designs = {check: quick_run.results[check.id].design for check in CHECKS}
    assert any(designs.values())
    for i, (check, design) in enumerate(designs.items()):
        if design is not None:
            assert 0.0 < design.level <= LEVEL
            assert design.power >= 0.9
            assert design.runs > 1
        if i % EVERY == 0 and design is not None and draws(check):
            other = check.judge(Context(Effort.QUICK, 0)).design
            assert (other.null, other.level, other.runs) == (design.null, design.level, design.runs)


def test_the_ledger_leaves_the_budget_of_a_run_to_the_other_suites(quick_run):
    designs = (quick_run.results[check.id].design for check in CHECKS)
    assert math.fsum(design.level for design in designs if design) < 1e-4
