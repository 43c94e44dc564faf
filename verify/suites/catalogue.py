"""All suites by name."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from canaryproof.verify.check.results import Check

_SUITES = "canaryproof.verify.suites"
# Modules with the checks of each suite. Two processes begin at the ends and meet at the claims, which are many small
# checks and have no pictures: so they end together, and nothing is left to draw.
_MODULES = {
    "numerics": (f"{_SUITES}.numerics",),
    "gaussian": (f"{_SUITES}.gaussian",),
    "theorems": (f"{_SUITES}.theorems",),
    "bounds": (f"{_SUITES}.bounds",),
    "claims": ("canaryproof.verify.claims",),
    "orthonormal": (f"{_SUITES}.orthonormal",),
    "blindspots": (f"{_SUITES}.blindspots",),
    "training": (f"{_SUITES}.training",),
    "canife": (f"{_SUITES}.canife",),
}
# What a suite imports beyond the package's own dependencies.
_NEEDS = dict.fromkeys(("training", "canife"), ("jax", "flax", "optax", "sklearn"))


@cache
def _checks(suite: str) -> tuple[Check, ...]:
    return tuple(check for module in _MODULES[suite] for check in import_module(module).CHECKS)


class _Suites(Mapping[str, tuple[Check, ...]]):
    """Imports a suite when it is first looked up: all of them take seconds, and few processes need all."""

    def __getitem__(self, suite: str) -> tuple[Check, ...]:
        return _checks(suite)

    def __contains__(self, suite: object) -> bool:
        return suite in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


SUITES = _Suites()


def lacking(suite: str) -> str:
    """Say what a suite needs and is not installed; nothing if nothing is."""
    missing = [module for module in _NEEDS.get(suite, ()) if find_spec(module) is None]
    return f"needs {', '.join(missing)}: pip install canaryproof[federated]" if missing else ""
