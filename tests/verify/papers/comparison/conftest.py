from dataclasses import replace

import pytest

from canaryproof.verify.papers.accounting import analytical as accountants
from canaryproof.verify.papers.claims.canife import rules as canife_rules
from canaryproof.verify.papers.comparison import canife
from canaryproof.verify.papers.comparison.canife_training import Bench
from canaryproof.verify.papers.training.data import digits
from canaryproof.verify.papers.training.networks import model

TINY = replace(
    canife.PRINTED, batch=125, canaries=20, every=8, pool=150, steps=200, scores=(20, 60), noise_multiplier=1.0
)


@pytest.fixture(scope="session")
def bench():
    """Trainings of 12 rounds on the digits."""
    federation = digits.load(1, 0)
    return Bench(federation, model("two_layer", federation, hidden=8), TINY)


@pytest.fixture(scope="session")
def measured(bench):
    """A small benchmark."""

    def run(advance, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(canife.LEVELS, "tiny", canife.Repetitions(2, (canife.POISSON,), (0.1,)))
            # Seconds of work that its own tests do, and nothing is compiled twice.
            patch.setattr(accountants, "pld", lambda *_: 2.5)
            patch.setattr(canife, "Bench", lambda *_: bench)
            patch.setattr(canife, "DESIGNS", canife.BOTH)
            found = canife.measure(bench.federation, TINY, "tiny", None, advance, hidden=8, **options)
            return canife_rules.with_printed(found, fashion=False)

    return run


@pytest.fixture(scope="session")
def record(measured):
    """What a small benchmark found."""
    parts = []
    found = measured(parts.append)
    assert len(parts) == len(set(parts)) == 1 + 2 + 1
    return found
