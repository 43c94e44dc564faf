"""All suites by name."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from canaryproof.verify.audit.files.errors import extra
from canaryproof.verify.papers.check.results import Check

# Modules whose checks make a suite, in the order in which results are listed; ``reports.pages`` has the pages' order.
# Two processes begin at the ends and meet at the claims, which are many small checks without pictures: so both end
# together.
_CATALOGUE = {
    "numerics": ("verify.papers.suites.numerics",),
    "algorithm1": (
        "verify.papers.claims.simulated_tables",
        "verify.papers.suites.samplers",
        "verify.papers.suites.streams",
        "proofs_check.discretised_canaries",
    ),
    "estimators": ("verify.papers.suites.estimators", "verify.papers.suites.inference"),
    "audit": ("verify.papers.suites.audit", "verify.papers.suites.noise_multiplier"),
    "theorems": ("verify.papers.suites.theorems",),
    "bounds": ("verify.papers.suites.bounds",),
    "claims": ("verify.papers.claims",),
    "orthonormal": ("verify.papers.suites.orthonormal",),
    "blindspots": ("verify.papers.suites.blindspots", "verify.papers.suites.instruments"),
    "training": ("verify.papers.suites.training",),
    "canife": tuple(f"verify.papers.suites.canife.{part}" for part in ("designs", "trainings", "measures", "faults")),
}
# Libraries that a suite imports beyond the package's own dependencies.
_NEEDED = dict.fromkeys(("training", "canife"), ("jax", "flax", "optax", "sklearn"))


@cache
def _checks(suite: str) -> tuple[Check, ...]:
    modules = (import_module(f"canaryproof.{name}") for name in _CATALOGUE[suite])
    return tuple(check for module in modules for check in module.CHECKS)


class _Suites(Mapping[str, tuple[Check, ...]]):
    """Imports a suite when it is first looked up: all of them take seconds, and few processes need all."""

    def __getitem__(self, suite: str) -> tuple[Check, ...]:
        return _checks(suite)

    def __contains__(self, suite: object) -> bool:
        return suite in _CATALOGUE

    def __iter__(self) -> Iterator[str]:
        return iter(_CATALOGUE)

    def __len__(self) -> int:
        return len(_CATALOGUE)


SUITES = _Suites()


def lacking(suite: str) -> str:
    """Return what a suite needs and is not installed, as part of a sentence; "" if nothing is missing."""
    missing = [module for module in _NEEDED.get(suite, ()) if find_spec(module) is None]
    return f"needs {', '.join(missing)}: {extra('federated')}" if missing else ""
