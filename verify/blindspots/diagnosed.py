"""How often each diagnostic raises an alarm."""

from typing import Any

import numpy as np

from canaryproof.kernels import binomial
from canaryproof.verify.blindspots.diagnostics import DIAGNOSTICS
from canaryproof.verify.blindspots.mechanism import Claim, Mechanism
from canaryproof.verify.blindspots.methods import ALPHA
from canaryproof.verify.blindspots.power import CONFIDENCE


def measure(
    mechanism: Mechanism, value: float, claim: Claim, runs: int, key: np.random.SeedSequence
) -> dict[str, dict[str, Any]]:
    """Test residuals of a mechanism by all diagnostics that apply, each at level α = 5%.

    Parameters
    ----------
    mechanism, value, claim
        The mechanism, its parameter and the claim.
    runs
        Number of releases, or of series of them.
    key
        Root of the randomness.

    Returns
    -------
    For each diagnostic the median p-value, the number of alarms and their rate with its limits.
    """
    residual = mechanism.residual(value, claim, runs, np.random.default_rng(key))
    tested = {name: test(residual, claim) for name, test in DIAGNOSTICS.items()}
    found = {}
    for name, p_values in tested.items():
        if p_values is not None:
            alarms = int((p_values <= ALPHA).sum())
            rate = [alarms / runs, *binomial.interval(alarms, runs, CONFIDENCE)]
            found[name] = {"p_value": float(np.median(p_values)), "alarms": alarms, "rate": rate}
    return found
