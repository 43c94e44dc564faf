"""All suites by name."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from canaryproof.verify.check.results import Check


@dataclass(frozen=True)
class Suite:
    """A suite of checks, whose modules are imported when its checks are first asked for."""

    checks: Callable[[], tuple[Check, ...]]
    # Modules that it imports beyond the package's own dependencies.
    needs: tuple[str, ...] = ()


def _numerics() -> tuple[Check, ...]:
    from canaryproof.verify.suites import numerics

    return numerics.CHECKS


def _algorithm1() -> tuple[Check, ...]:
    from canaryproof.proofs_check import discretised_canaries
    from canaryproof.verify.claims import simulated_tables
    from canaryproof.verify.suites import samplers, streams

    return (*simulated_tables.CHECKS, *samplers.CHECKS, *streams.CHECKS, *discretised_canaries.CHECKS)


def _estimators() -> tuple[Check, ...]:
    from canaryproof.verify.suites import estimators, inference

    return (*estimators.CHECKS, *inference.CHECKS)


def _audit() -> tuple[Check, ...]:
    from canaryproof.verify.suites import audit, noise_multiplier

    return (*audit.CHECKS, *noise_multiplier.CHECKS)


def _theorems() -> tuple[Check, ...]:
    from canaryproof.verify.suites import theorems

    return theorems.CHECKS


def _bounds() -> tuple[Check, ...]:
    from canaryproof.verify.suites import bounds

    return bounds.CHECKS


def _claims() -> tuple[Check, ...]:
    from canaryproof.verify import claims

    return claims.CHECKS


def _orthonormal() -> tuple[Check, ...]:
    from canaryproof.verify.suites import orthonormal

    return orthonormal.CHECKS


def _blindspots() -> tuple[Check, ...]:
    from canaryproof.verify.suites import blindspots

    return blindspots.CHECKS


def _training() -> tuple[Check, ...]:
    from canaryproof.verify.suites import training

    return training.CHECKS


def _canife() -> tuple[Check, ...]:
    from canaryproof.verify.suites.canife import designs, faults, measures, trainings

    return (*designs.CHECKS, *trainings.CHECKS, *measures.CHECKS, *faults.CHECKS)


_FEDERATED = ("jax", "flax", "optax", "sklearn")
# In the order in which results are listed. Two processes begin at the ends and meet at the claims, which are many small
# checks without pictures: so both end together.
_CATALOGUE = {
    "numerics": Suite(_numerics),
    "algorithm1": Suite(_algorithm1),
    "estimators": Suite(_estimators),
    "audit": Suite(_audit),
    "theorems": Suite(_theorems),
    "bounds": Suite(_bounds),
    "claims": Suite(_claims),
    "orthonormal": Suite(_orthonormal),
    "blindspots": Suite(_blindspots),
    "training": Suite(_training, needs=_FEDERATED),
    "canife": Suite(_canife, needs=_FEDERATED),
}


@cache
def _checks(suite: str) -> tuple[Check, ...]:
    return _CATALOGUE[suite].checks()


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
    needs = _CATALOGUE[suite].needs if suite in _CATALOGUE else ()
    missing = [module for module in needs if find_spec(module) is None]
    return f"needs {', '.join(missing)}: pip install canaryproof[federated]" if missing else ""
