import pytest

from canaryproof.verify.benchmark import canife
from canaryproof.verify.benchmark.canife_run import Bench
from canaryproof.verify.benchmark.canife_setting import Setting
from canaryproof.verify.claims import accounting as accountants
from canaryproof.verify.federated.data import digits
from canaryproof.verify.federated.models import model

TINY = Setting(batch=125, canaries=20, every=8, pool=150, steps=200, trials=(20, 60), noise_multiplier=1.0)


@pytest.fixture(scope="session")
def bench():
    """Trainings of 12 rounds on the digits."""
    federation = digits.load(1, 0)
    return Bench(federation, model("two_layer", federation, hidden=8), TINY)


@pytest.fixture(scope="session")
def document(bench):
    """What a small benchmark found."""
    parts = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(canife.LEVELS, "tiny", canife.Level(2, (canife.POISSON,), (0.1,)))
        # Seconds of work that its own tests do, and nothing is compiled twice.
        patch.setattr(accountants, "pld", lambda *_: 2.5)
        patch.setattr(canife, "Bench", lambda *_: bench)
        found = canife.measure(bench.federation, TINY, "tiny", None, parts.append, hidden=8)
    assert len(parts) == len(set(parts)) == 1 + 2 + 1
    return found
