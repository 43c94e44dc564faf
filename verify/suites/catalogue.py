"""All suites by name."""

from canaryproof.verify import claims
from canaryproof.verify.suites import bounds, gaussian, numerics, paths, theorems

SUITES = {
    "numerics": (*numerics.CHECKS, *paths.CHECKS),
    "gaussian": gaussian.CHECKS,
    "theorems": theorems.CHECKS,
    "bounds": bounds.CHECKS,
    "claims": claims.CHECKS,
}
