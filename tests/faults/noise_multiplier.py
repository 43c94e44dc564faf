"""Faults of the measured noise multiplier and its test, and of scores of known rounds."""

from collections.abc import Callable

import numpy as np

from tests.faults.fault import Fault, Function

_MODULE = "canaryproof.verify.audit.estimators.noise_multiplier"


def _fault(name: str, description: str, function: str, make: Callable[[Function], Function], check: str) -> Fault:
    return Fault(f"noise.{name}", description, f"{_MODULE}:{function}", make, (f"audit.noise.{check}",))


FAULTS = (
    _fault(
        "two-sided",
        "p-values of both sides",
        "RoundTraces.p_value",
        lambda f: lambda self, noise: 2.0 * min(f(self, noise), 1.0 - f(self, noise)),
        "data",
    ),
    _fault(
        "weights",
        "the sum of z-scores not divided by its deviation",
        "RoundTraces.statistic",
        lambda f: lambda self, noise: f(self, noise) * float(np.linalg.norm(self.lengths)) / float(self.lengths.sum()),
        "level",
    ),
    _fault(
        "noncentrality",
        "a noncentrality that is 5% too large",
        "log_tails",
        lambda f: lambda cosines, shift, dim: f(cosines, 1.05 * np.asarray(shift), dim),
        "level",
    ),
    _fault(
        "likelihood",
        "the likelihood ratio without the canaries' length",
        "log_likelihood",
        lambda f: lambda cosines, shift, dim: f(cosines, shift, dim) + 0.5 * np.asarray(shift) ** 2,
        "evidence",
    ),
    _fault(
        "power",
        "the noticed share squared",
        "noticed_share",
        lambda f: lambda *given, **options: f(*given, **options) ** 2,
        "power",
    ),
    Fault(
        "known-rounds.wrong-norm",
        "the sum of a canary's cosines doubled",
        "canaryproof.verify.audit.canaries.canary_clients:CanaryClients.scores",
        lambda f: lambda self, score: _doubled(f(self, score)),
        ("audit.noise.known-rounds",),
    ),
)


def _doubled(scores: object) -> object:
    vars(scores)["observed"] = 2.0 * np.asarray(vars(scores)["observed"])
    return scores
