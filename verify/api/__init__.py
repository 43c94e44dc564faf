"""Audit the privacy of one training run: an empirical ε from random canaries (Andrew et al., arXiv 2302.03098).

The first audit. Canaries are random unit vectors. Add them to what your mechanism sums, and audit what it releases::

    import numpy as np
    import canaryproof as cp

    canaries = cp.Canaries(seed=7, count=300, dim=100_000)
    noise = np.random.default_rng(1).normal(0, 1.54, 100_000)         # your mechanism: ε = 3 at δ = 1e-6
    release = canaries.sum(np.arange(300)) + noise                    # in units of the canaries' norm

    found = cp.audit_release(release, canaries, delta=1e-6, noise_multiplier=1.54)

    print(found)                                                      # the answer in a sentence, then its evidence
    found.to_frame()                                                  # every estimate and lower bound, a row each
    found.plot()                                                      # scores, estimate and claim in a picture

With scores instead of a release, cosines or any others such as logits or negated losses::

    cp.audit(cp.Scores(observed, dim=100_000), delta=1e-6, claim=3.0)
    cp.audit(cp.Scores(observed, unobserved, kind="any"), delta=1e-6)

In a training loop of your own, ``RoundScores`` keeps the scores, and ``CanaryClients`` the canaries too; in a training
by Opacus, ``OpacusCanaries`` inserts them. The modules ``two_gaussians``, ``gaussian_mechanism``, ``null_cosine`` and
``exact_law`` compute the numbers, ``certified`` proves them, and ``bounds`` has all lower bounds.
``canaryproof --help`` says what the command line does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if __name__ != "canaryproof":
    # This file lies in the folder of another package, and a second copy of it would have names of its own.
    raise ImportError(f"{__name__} is canaryproof itself: import canaryproof")

if TYPE_CHECKING:
    from canaryproof.kernels import certified as certified
    from canaryproof.kernels import exact_law as exact_law
    from canaryproof.kernels import gaussian_mechanism as gaussian_mechanism
    from canaryproof.kernels import null_cosine as null_cosine
    from canaryproof.kernels import two_gaussians as two_gaussians
    from canaryproof.kernels.canaries import Canaries as Canaries
    from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries as OrthonormalCanaries
    from canaryproof.verify.audit.accounting import accountant as accounting  # noqa: F401
    from canaryproof.verify.audit.answer.flower_inspection import FlowerInspection as FlowerInspection
    from canaryproof.verify.audit.answer.inspection import Inspection as Inspection
    from canaryproof.verify.audit.answer.inspection import self_test as self_test
    from canaryproof.verify.audit.answer.instruments import ResidualTests as ResidualTests
    from canaryproof.verify.audit.answer.instruments import SamplingTests as SamplingTests
    from canaryproof.verify.audit.answer.jax_inspection import JaxInspection as JaxInspection
    from canaryproof.verify.audit.answer.model_card import model_card as model_card
    from canaryproof.verify.audit.answer.opacus_inspection import OpacusInspection as OpacusInspection
    from canaryproof.verify.audit.answer.plan import plan as plan
    from canaryproof.verify.audit.answer.release_sums import release_sums as release_sums
    from canaryproof.verify.audit.answer.replay import replay as replay
    from canaryproof.verify.audit.answer.review import review as review
    from canaryproof.verify.audit.answer.rounds_plan import plan_rounds as plan_rounds
    from canaryproof.verify.audit.answer.run_audit import Audit as Audit
    from canaryproof.verify.audit.answer.run_audit import audit as audit
    from canaryproof.verify.audit.answer.run_audit import audit_release as audit_release
    from canaryproof.verify.audit.answer.training_audit import TrainingAudit as TrainingAudit
    from canaryproof.verify.audit.bounds import catalogue as bounds  # noqa: F401
    from canaryproof.verify.audit.canaries.canary_clients import CanaryClients as CanaryClients
    from canaryproof.verify.audit.canaries.grouped_canaries import GroupedCanaries as GroupedCanaries
    from canaryproof.verify.audit.canaries.opacus_canaries import OpacusCanaries as OpacusCanaries
    from canaryproof.verify.audit.canaries.participation import Insertion as Insertion
    from canaryproof.verify.audit.canaries.participation import Participation as Participation
    from canaryproof.verify.audit.canaries.participation import bernoulli as bernoulli
    from canaryproof.verify.audit.canaries.participation import scheduled as scheduled
    from canaryproof.verify.audit.canaries.participation import shuffled_epochs as shuffled_epochs
    from canaryproof.verify.audit.canaries.participation import uniform as uniform
    from canaryproof.verify.audit.canaries.round_scores import RoundScores as RoundScores
    from canaryproof.verify.audit.canaries.scores import Scores as Scores
    from canaryproof.verify.audit.canaries.shapes import flatten as flatten
    from canaryproof.verify.audit.canaries.shapes import left_out as left_out
    from canaryproof.verify.audit.canaries.shapes import split as split
    from canaryproof.verify.audit.canaries.sharded_canaries import ShardedCanaries as ShardedCanaries
    from canaryproof.verify.audit.canaries.whitened_clients import WhitenedClients as WhitenedClients
    from canaryproof.verify.audit.files.errors import InputError as InputError
    from canaryproof.verify.audit.files.stored_release import open_release as open_release

# The module of each public name; a name that is not in its module is the module itself.
_MODULES = {
    "Audit": "canaryproof.verify.audit.answer.run_audit",
    "Canaries": "canaryproof.kernels.canaries",
    "CanaryClients": "canaryproof.verify.audit.canaries.canary_clients",
    "GroupedCanaries": "canaryproof.verify.audit.canaries.grouped_canaries",
    "FlowerInspection": "canaryproof.verify.audit.answer.flower_inspection",
    "Inspection": "canaryproof.verify.audit.answer.inspection",
    "InputError": "canaryproof.verify.audit.files.errors",
    "Insertion": "canaryproof.verify.audit.canaries.participation",
    "OpacusCanaries": "canaryproof.verify.audit.canaries.opacus_canaries",
    "JaxInspection": "canaryproof.verify.audit.answer.jax_inspection",
    "OpacusInspection": "canaryproof.verify.audit.answer.opacus_inspection",
    "OrthonormalCanaries": "canaryproof.kernels.orthonormal_canaries",
    "Participation": "canaryproof.verify.audit.canaries.participation",
    "ResidualTests": "canaryproof.verify.audit.answer.instruments",
    "RoundScores": "canaryproof.verify.audit.canaries.round_scores",
    "SamplingTests": "canaryproof.verify.audit.answer.instruments",
    "Scores": "canaryproof.verify.audit.canaries.scores",
    "ShardedCanaries": "canaryproof.verify.audit.canaries.sharded_canaries",
    "WhitenedClients": "canaryproof.verify.audit.canaries.whitened_clients",
    "TrainingAudit": "canaryproof.verify.audit.answer.training_audit",
    "accounting": "canaryproof.verify.audit.accounting.accountant",
    "audit": "canaryproof.verify.audit.answer.run_audit",
    "audit_release": "canaryproof.verify.audit.answer.run_audit",
    "bernoulli": "canaryproof.verify.audit.canaries.participation",
    "bounds": "canaryproof.verify.audit.bounds.catalogue",
    "certified": "canaryproof.kernels.certified",
    "exact_law": "canaryproof.kernels.exact_law",
    "flatten": "canaryproof.verify.audit.canaries.shapes",
    "left_out": "canaryproof.verify.audit.canaries.shapes",
    "gaussian_mechanism": "canaryproof.kernels.gaussian_mechanism",
    "model_card": "canaryproof.verify.audit.answer.model_card",
    "null_cosine": "canaryproof.kernels.null_cosine",
    "open_release": "canaryproof.verify.audit.files.stored_release",
    "plan": "canaryproof.verify.audit.answer.plan",
    "plan_rounds": "canaryproof.verify.audit.answer.rounds_plan",
    "release_sums": "canaryproof.verify.audit.answer.release_sums",
    "replay": "canaryproof.verify.audit.answer.replay",
    "review": "canaryproof.verify.audit.answer.review",
    "scheduled": "canaryproof.verify.audit.canaries.participation",
    "self_test": "canaryproof.verify.audit.answer.inspection",
    "shuffled_epochs": "canaryproof.verify.audit.canaries.participation",
    "split": "canaryproof.verify.audit.canaries.shapes",
    "two_gaussians": "canaryproof.kernels.two_gaussians",
    "uniform": "canaryproof.verify.audit.canaries.participation",
}
__all__ = ["__version__", *_MODULES]

if not TYPE_CHECKING:
    # Hidden from type checkers, for which every name would exist.

    def __getattr__(name: str) -> Any:
        """Load a public name when it is first used: what it needs takes seconds to load."""
        if name == "__version__":
            # Takes ten times as long to load as all the rest.
            from importlib.metadata import version

            value = version("canaryproof")
        elif name in _MODULES:
            module = import_module(_MODULES[name])
            value = getattr(module, name, module)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
