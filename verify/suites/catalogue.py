"""All suites by name."""

from importlib.util import find_spec

from canaryproof.verify import claims
from canaryproof.verify.suites import blindspots, bounds, canife, gaussian, numerics, paths, theorems, training

SUITES = {
    "numerics": (*numerics.CHECKS, *paths.CHECKS),
    "gaussian": gaussian.CHECKS,
    "theorems": theorems.CHECKS,
    "bounds": bounds.CHECKS,
    "blindspots": blindspots.CHECKS,
    "claims": claims.CHECKS,
    "training": training.CHECKS,
    "canife": canife.CHECKS,
}

# What a suite imports beyond the package's own dependencies.
_NEEDS = dict.fromkeys(("training", "canife"), ("jax", "flax", "optax", "sklearn"))


def lacking(suite: str) -> str:
    """Say what a suite needs and is not installed; nothing if nothing is."""
    missing = [module for module in _NEEDS.get(suite, ()) if find_spec(module) is None]
    return f"needs {', '.join(missing)}: pip install canaryproof[federated]" if missing else ""
